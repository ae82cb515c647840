#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The kernels that the test machines boot, by name.
#
# usage: kernel.sh dir NAME     build it if need be, then print its directory
#        kernel.sh path NAME    print that directory only; fails if not built
#        kernel.sh key NAME     what a cache of it has to be keyed by
#
# NAME is "stock" (Debian's image package), or a kernel built here from
# Debian's linux-source package with the config fragments listed below.
# A directory holds bzImage (boot/vmlinuz-* for stock), lib/modules/RELEASE,
# a file "release", and "build": the tree that modules are built against.
set -eu

REPO=$(cd "$(dirname "$0")/../.." && pwd)
. "$REPO/scripts/env.sh"
HERE=$REPO/tests/vm

# The fragments of each name. KUnit and the sanitizers share one kernel: a
# fresh machine then builds one, and every unit test runs under KASAN and
# lockdep as well. "plain" is for those who want to see the difference.
fragments() {
	case $1 in
	kunit|san) echo "$HERE/kunit.config $HERE/debug.config" ;;
	plain) echo "$HERE/kunit.config" ;;
	*) die "no kernel is named '$1' (stock, kunit, san, plain)" ;;
	esac
}

kernel_key() {
	files=$(fragments "$1")
	# shellcheck disable=SC2086
	{ stock_version; gcc -dumpfullversion; cat $files; echo layout 1; } |
		sha256sum | cut -c 1-16
}

# Each symbol of the fragments must have come through: a dependency that is
# not met drops a line without a word.
check_config() {
	# shellcheck disable=SC2046
	cat $(fragments "$1") | grep -E '^(CONFIG_|# CONFIG_.* is not set)' |
		while read -r line; do
			grep -qxF "$line" "$2" || echo "$line"
		done >"$2.dropped"
	[ ! -s "$2.dropped" ] ||
		die "not taken by kconfig: $(tr '\n' ' ' <"$2.dropped")"
}

kernel_build() {
	src=$("$REPO/scripts/setup.sh" source)
	out=$1/build
	rm -rf "$1"
	mkdir -p "$out"
	# shellcheck disable=SC2046
	cat $(fragments "$2") >"$1/fragment"
	mk="make -s -C $src O=$out KBUILD_BUILD_HOST=qrdma KBUILD_BUILD_USER=test \
LOCALVERSION=-qrdma"
	$mk KCONFIG_ALLCONFIG="$1/fragment" allnoconfig
	check_config "$2" "$out/.config"
	nice $mk -j"$(nproc)" bzImage modules
	$mk -s kernelrelease >"$1/release"
	$mk INSTALL_MOD_PATH="$1" modules_install
	cp "$out/arch/x86/boot/bzImage" "$1/bzImage"
	# A module needs headers, tools and symbol versions, not the objects.
	find "$out" \( -path "$out/scripts" -o -path "$out/tools" \) -prune -o \
		-type f \( -name '*.o' -o -name '*.a' -o -name '.*.cmd' -o \
		-name 'vmlinux*' ! -name '*.lds' \) -print0 | xargs -0 rm -f
}

# One builder at a time; a finished tree appears by a rename.
kernel_dir() {
	dir=$CACHE/kernel/$1-$(kernel_key "$1")
	mkdir -p "$CACHE/kernel"
	exec 9>"$dir.lock"
	flock 9
	if [ ! -e "$dir/done" ]; then
		say "building kernel '$1' in $dir (minutes; log: $dir.log)"
		if ! (kernel_build "$dir" "$1") >"$dir.log" 2>&1; then
			tail -n 20 "$dir.log" >&2
			die "kernel '$1' does not build"
		fi
		touch "$dir/done"
	fi
	flock -u 9
	echo "$dir"
}

[ $# -eq 2 ] || die "usage: kernel.sh dir|path|key NAME"
name=$2
[ "$name" != san ] || name=kunit
case $1:$name in
dir:stock) "$REPO/scripts/setup.sh" image; stock_dir ;;
path:stock) d=$(stock_dir); [ -d "$d/lib/modules" ] && echo "$d" ;;
key:stock) stock_version ;;
dir:*) kernel_dir "$name" ;;
path:*) d=$CACHE/kernel/$name-$(kernel_key "$name"); [ -e "$d/done" ] && echo "$d" ;;
key:*) kernel_key "$name" ;;
*) die "usage: kernel.sh dir|path|key NAME" ;;
esac
