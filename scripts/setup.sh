#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Make this machine able to build and test: Debian packages (scripts/packages)
# and the kernel image that the test machines boot.  Called by make; does
# nothing, quickly, when nothing is missing.
#
# usage: setup.sh [packages] [image] [source]     (default: packages image)
#
# "image" and "source" go to the cache directory (see scripts/env.sh); neither
# is installed.  "source" prints the directory of the unpacked kernel source.
set -eu

REPO=$(cd "$(dirname "$0")/.." && pwd)
. "$REPO/scripts/env.sh"

APT="apt-get -q -y -o DPkg::Lock::Timeout=900 -o Acquire::Retries=3"
updated=

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "needs root (no sudo here): $*"
	fi
}

# Package lists are refreshed at most once a run. A failing third-party list
# must not stop us: what we ask for next tells whether it mattered.
apt_update() {
	[ -z "$updated" ] || return 0
	updated=1
	as_root $APT update >&2 || say "apt-get update: some lists failed, going on"
}

wanted_packages() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$REPO/scripts/packages"
}

missing_packages() {
	wanted_packages | sort >"$tmp/wanted"
	# shellcheck disable=SC2046
	dpkg-query -W -f '${db:Status-Status} ${Package}\n' $(cat "$tmp/wanted") 2>/dev/null |
		sed -n 's/^installed //p' | sort >"$tmp/have"
	comm -23 "$tmp/wanted" "$tmp/have"
}

setup_packages() {
	missing=$(missing_packages | tr '\n' ' ')
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
		die "not root; please install: $missing"
	fi
	say "installing: $missing"
	apt_update
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive $APT \
		install --no-install-recommends $missing >&2
}

# fetch_deb PACKAGE VERSION DIR: the contents of a package, not installed.
# DIR appears only when it is complete.
fetch_deb() {
	work=$CACHE/fetch.$$
	rm -rf "$work"
	mkdir -p "$work/root" "$(dirname "$3")"
	(cd "$work" && $APT download "$1=$2" >&2) || { rm -rf "$work"; return 1; }
	dpkg-deb -x "$work"/*.deb "$work/root"
	chmod -R u+rwX "$work/root"
	mv -T "$work/root" "$3" 2>/dev/null || [ -d "$3" ]
	rm -rf "$work"
}

setup_image() {
	rel=$(stock_release)
	[ -n "$rel" ] || die "linux-headers-amd64 is not installed"
	dir=$(stock_dir)
	if [ ! -e "$dir/lib/modules/$rel/modules.dep.bin" ]; then
		rm -rf "$dir"
		ver=$(stock_version)
		if ! fetch_deb "linux-image-$rel" "$ver" "$dir"; then
			# Lists too old, or the archive moved on and dropped
			# that version: then headers and image move together.
			apt_update
			as_root env DEBIAN_FRONTEND=noninteractive $APT install \
				--no-install-recommends linux-headers-amd64 >&2
			rel=$(stock_release)
			ver=$(stock_version)
			dir=$(stock_dir)
			fetch_deb "linux-image-$rel" "$ver" "$dir" ||
				die "cannot fetch linux-image-$rel $ver"
		fi
		PATH=$PATH:/sbin:/usr/sbin depmod -b "$dir" "$rel"
	fi
}

setup_source() {
	series=$(stock_series)
	ver=$(stock_version)
	dir=$CACHE/source/linux-$series-$ver
	if [ ! -e "$dir/Makefile" ]; then
		deb=$CACHE/source/deb-$series-$ver
		rm -rf "$dir" "$deb" "$dir.part"
		fetch_deb "linux-source-$series" "$ver" "$deb" || {
			apt_update
			fetch_deb "linux-source-$series" "$ver" "$deb"
		} || die "cannot fetch linux-source-$series $ver"
		mkdir -p "$dir.part"
		tar -xJf "$deb/usr/src/linux-source-$series.tar.xz" \
			-C "$dir.part" --strip-components=1
		mv -T "$dir.part" "$dir"
		rm -rf "$deb"
	fi
	echo "$dir"
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
[ $# -gt 0 ] || set -- packages image
for part; do
	case $part in
	packages|image|source) "setup_$part" ;;
	*) die "unknown part: $part" ;;
	esac
done
