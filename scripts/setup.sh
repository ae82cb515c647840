#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Make this machine able to build and test: Debian packages (scripts/packages)
# and the kernel image that the test machines boot.  Called by make; does
# nothing, quickly, when nothing is missing.
#
# usage: setup.sh [packages] [image] [programs] [source] [source:SUITE] [big]
#        (default: packages image)
#
# "image", "programs" (scripts/programs) and the sources go to the cache
# directory (see scripts/env.sh); nothing of it is installed.  "programs" exits
# 4 when one of them cannot be had.  "source" prints the directory of the kernel
# source of the stock kernel's version, "source:SUITE" that of the kernel in
# another Debian suite ("trixie", "testing"), which exits 4 when the machine's
# mirror does not have it.
set -eu

REPO=$(cd "$(dirname "$0")/.." && pwd)
. "$REPO/scripts/env.sh"

APT="apt-get -q -y -o DPkg::Lock::Timeout=900 -o Acquire::Retries=3"
BIG_PACKAGES="gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static"
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

# The lines of scripts/packages or scripts/programs
wanted_from() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$REPO/scripts/$1"
}

missing_packages() {
	wanted_from packages | sort >"$tmp/wanted"
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

# What builds and runs programs of a big-endian machine: not everywhere to be
# had, so whoever asks for it has to live without.
setup_big() {
	dpkg-query -W -f '${db:Status-Status}\n' $BIG_PACKAGES 2>/dev/null |
		sort -u | grep -qx installed &&
		command -v s390x-linux-gnu-gcc qemu-s390x-static >/dev/null && return 0
	apt_update
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive $APT \
		install --no-install-recommends $BIG_PACKAGES >&2 || exit 4
}

# fetch_debs DIR PACKAGE[=VERSION]...: the contents of packages, not installed.
# DIR appears only when it is complete.
fetch_debs() {
	target=$1
	shift
	work=$CACHE/fetch.$$
	rm -rf "$work"
	mkdir -p "$work/root" "$(dirname "$target")"
	(cd "$work" && $APT download "$@" >&2) || { rm -rf "$work"; return 1; }
	for deb in "$work"/*.deb; do
		dpkg-deb -x "$deb" "$work/root"
	done
	chmod -R u+rwX "$work/root"
	mv -T "$work/root" "$target" 2>/dev/null || [ -d "$target" ]
	rm -rf "$work"
}

setup_image() {
	rel=$(stock_release)
	[ -n "$rel" ] || die "linux-headers-amd64 is not installed"
	dir=$(stock_dir)
	if [ ! -e "$dir/lib/modules/$rel/modules.dep.bin" ]; then
		rm -rf "$dir"
		ver=$(stock_version)
		if ! fetch_debs "$dir" "linux-image-$rel=$ver"; then
			# Lists too old, or the archive moved on and dropped
			# that version: then headers and image move together.
			apt_update
			as_root env DEBIAN_FRONTEND=noninteractive $APT install \
				--no-install-recommends linux-headers-amd64 >&2
			rel=$(stock_release)
			ver=$(stock_version)
			dir=$(stock_dir)
			fetch_debs "$dir" "linux-image-$rel=$ver" ||
				die "cannot fetch linux-image-$rel $ver"
		fi
		PATH=$PATH:/sbin:/usr/sbin depmod -b "$dir" "$rel"
	fi
}

# What ldd does not find for the programs below a directory
lost_libraries() {
	find "$1" -type f -perm -u=x \( -path '*/bin/*' -o -path '*/sbin/*' \) -exec ldd {} \; 2>/dev/null |
		sed -n 's/^[[:space:]]*\([^ ]*\) => not found$/\1/p' | sort -u | tr '\n' ' '
}

# setup_program NAME [PACKAGE...]: unpacked into the directory that program_dir prints
setup_program() {
	! program_dir "$1" >/dev/null || return 0
	ver=$(apt-cache show --no-all-versions "$1" 2>/dev/null | sed -n 's/^Version: //p')
	[ -n "$ver" ] || return 1
	dir=$CACHE/programs/$1_${ver#*:}
	fetch_debs "$dir" "$@" || return 1
	lost=$(lost_libraries "$dir")
	[ -z "$lost" ] || {
		rm -rf "$dir"
		say "$1 needs libraries that are not in scripts/packages: $lost"
		return 1
	}
}

setup_programs() {
	wanted_from programs >"$tmp/programs"
	bad=
	while read -r line; do
		# The first failure may be that of lists too old.
		# shellcheck disable=SC2086
		setup_program $line </dev/null || { apt_update && setup_program $line; } </dev/null ||
			bad="$bad ${line%% *}"
	done <"$tmp/programs"
	[ -z "$bad" ] || {
		say "cannot have these programs:$bad"
		exit 4
	}
}

# unpack_source SERIES VERSION: the tree out of a fetched linux-source package.
# One driver's register tables are a third of it, and nobody includes them.
unpack_source() {
	dir=$CACHE/source/linux-$1-$2
	deb=$CACHE/source/deb-$1-$2
	rm -rf "$dir.part"
	mkdir -p "$dir.part"
	tar -xJf "$deb/usr/src/linux-source-$1.tar.xz" -C "$dir.part" \
		--strip-components=1 --no-wildcards-match-slash \
		--exclude='linux-source-*/drivers/gpu/drm/amd/include/*'
	mv -T "$dir.part" "$dir"
	rm -rf "$deb"
}

setup_source() {
	series=$(stock_series)
	ver=$(stock_version)
	dir=$CACHE/source/linux-$series-$ver
	if [ ! -e "$dir/Makefile" ]; then
		deb=$CACHE/source/deb-$series-$ver
		rm -rf "$dir" "$deb"
		fetch_debs "$deb" "linux-source-$series=$ver" || {
			apt_update
			fetch_debs "$deb" "linux-source-$series=$ver"
		} || die "cannot fetch linux-source-$series $ver"
		unpack_source "$series" "$ver"
	fi
	echo "$dir"
}

# Where this machine gets its own Debian packages from.
mirror_uri() {
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	{
		sed -n 's/^deb  *\(\[[^]]*\]  *\)*\([^ ]*\)  *'"$codename"' .*$/\2/p' \
			/etc/apt/sources.list /etc/apt/sources.list.d/*.list || :
		for file in /etc/apt/sources.list.d/*.sources; do
			awk -v suite="$codename" 'BEGIN { RS = "" }
			{
				uri = ""; found = 0
				pattern = "[ \t]" suite "[ \t]"
				n = split($0, line, "\n")
				for (i = 1; i <= n; i++) {
					split(line[i], word, /[ \t]+/)
					if (line[i] ~ /^URIs:/)
						uri = word[2]
					if (line[i] ~ /^Suites:/ && line[i] " " ~ pattern)
						found = 1
				}
				if (found)
					print uri
			}' "$file"
		done
	} 2>/dev/null | head -n 1
}

# apt_suite SUITE COMMAND...: apt with the lists of another suite and nothing
# else, in a directory of its own: the machine's apt is not touched.
apt_suite() {
	dir=$CACHE/suite/$1
	cmd=$2
	shift 2
	"$cmd" -q -o Dir::Etc::sourcelist="$dir/sources.list" \
		-o Dir::Etc::sourceparts=- -o Dir::State::lists="$dir/lists" \
		-o Dir::Cache="$dir/cache" -o Dir::State::status="$dir/status" \
		-o APT::Get::List-Cleanup=0 -o Acquire::Languages=none \
		-o APT::Sandbox::User="$(id -un)" "$@"
}

# What the suite's linux-source package is, as "SERIES VERSION"; asked of the
# mirror once a week.
suite_kernel() {
	dir=$CACHE/suite/$1
	if [ -n "$(find "$dir/kernel" -mtime -7 2>/dev/null)" ]; then
		cat "$dir/kernel"
		return
	fi
	uri=$(mirror_uri)
	[ -n "$uri" ] || return 1
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	: >"$dir/status"
	key=/usr/share/keyrings/debian-archive-keyring.gpg
	echo "deb [signed-by=$key] $uri $1 main" >"$dir/sources.list"
	apt_suite "$1" apt-get update >"$dir/log" 2>&1
	series=$(apt_suite "$1" apt-cache depends linux-source 2>>"$dir/log" |
		sed -n 's/^.*Depends: linux-source-//p')
	ver=$(apt_suite "$1" apt-cache show "linux-source-$series" 2>>"$dir/log" |
		sed -n 's/^Version: //p' | head -n 1)
	[ -n "$series" ] && [ -n "$ver" ] || return 1
	echo "$series $ver" | tee "$dir/kernel"
}

setup_suite_source() {
	kernel=$(suite_kernel "$1") || {
		say "the mirror of this machine has no kernel source of '$1'"
		exit 4
	}
	series=${kernel% *}
	ver=${kernel#* }
	dir=$CACHE/source/linux-$series-$ver
	if [ ! -e "$dir/Makefile" ]; then
		deb=$CACHE/source/deb-$series-$ver
		rm -rf "$dir" "$deb"
		APT="apt_suite $1 apt-get -y"
		fetch_debs "$deb" "linux-source-$series=$ver" || {
			rm -f "$CACHE/suite/$1/kernel"
			say "cannot fetch linux-source-$series $ver"
			exit 4
		}
		unpack_source "$series" "$ver"
	fi
	echo "$CACHE/source/linux-$series-$ver"
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
[ $# -gt 0 ] || set -- packages image
for part; do
	case $part in
	packages|image|programs|source|big) "setup_$part" ;;
	source:*) setup_suite_source "${part#source:}" ;;
	*) die "unknown part: $part" ;;
	esac
done
