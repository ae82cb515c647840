#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The kernels that the test machines boot, by name.
#
# usage: kernel.sh dir NAME     build it if need be, then print its directory
#        kernel.sh path NAME    print that directory only; fails if not built
#        kernel.sh prepare NAME build only what it takes to compile a module
#        kernel.sh key NAME     what a cache of it has to be keyed by
#
# NAME is "stock" (Debian's image package), or a kernel built here from
# Debian's linux-source package with the config fragments listed below: kunit
# (= san) and plain of the stock kernel's version, trixie and testing of those
# suites' (exit 4 when the mirror has none).
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
	trixie|testing) echo "$HERE/kunit.config $HERE/newer.config" ;;
	*) die "no kernel is named '$1' (stock, kunit, san, plain, trixie, testing)" ;;
	esac
}

source_dir() {
	case $1 in
	trixie|testing) "$REPO/scripts/setup.sh" "source:$1" ;;
	*) "$REPO/scripts/setup.sh" source ;;
	esac
}

kernel_key() {
	files=$(fragments "$1")
	case $1 in
	trixie|testing) ver=$(source_dir "$1") && ver=${ver##*/} || exit $? ;;
	*) ver=$(stock_version) ;;
	esac
	# shellcheck disable=SC2086
	{ echo "$ver"; gcc -dumpfullversion; cat $files; echo layout 1; } |
		sha256sum | cut -c 1-16
}

# Each symbol of the fragments must have come through: a dependency that is
# not met drops a line without a word. Newer kernels have other symbols.
check_config() {
	# shellcheck disable=SC2046
	cat $(fragments "$1") | grep -E '^(CONFIG_|# CONFIG_.* is not set)' |
		while read -r line; do
			grep -qxF "$line" "$2" || echo "$line"
		done >"$2.dropped"
	[ ! -s "$2.dropped" ] || [ "$1" = trixie ] || [ "$1" = testing ] ||
		die "not taken by kconfig: $(tr '\n' ' ' <"$2.dropped")"
}

# kernel_build DIR NAME [prepare]
kernel_build() {
	src=$(source_dir "$2")
	out=$1/build
	rm -rf "$1"
	mkdir -p "$out"
	# shellcheck disable=SC2046
	cat $(fragments "$2") >"$1/fragment"
	mk="make -s -C $src O=$out KBUILD_BUILD_HOST=qrdma KBUILD_BUILD_USER=test \
LOCALVERSION=-qrdma"
	$mk KCONFIG_ALLCONFIG="$1/fragment" allnoconfig
	check_config "$2" "$out/.config"
	if [ "${3-}" = prepare ]; then
		nice $mk -j"$(nproc)" modules_prepare
		return
	fi
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
	key=$(kernel_key "$1") || exit $?
	dir=$CACHE/kernel/$1-$key${2:+-$2}
	mkdir -p "$CACHE/kernel"
	exec 9>"$dir.lock"
	flock 9
	if [ ! -e "$dir/done" ]; then
		say "building kernel '$1' in $dir (minutes; log: $dir.log)"
		# (a subshell behind "if" would go on after an error)
		set +e
		(set -e; kernel_build "$dir" "$1" "${2-}") >"$dir.log" 2>&1
		rc=$?
		set -e
		if [ $rc -ne 0 ]; then
			tail -n 20 "$dir.log" >&2
			die "kernel '$1' does not build"
		fi
		touch "$dir/done"
	fi
	flock -u 9
	echo "$dir"
}

[ $# -eq 2 ] || die "usage: kernel.sh dir|path|prepare|key NAME"
name=$2
[ "$name" != san ] || name=kunit
case $1:$name in
dir:stock) "$REPO/scripts/setup.sh" image; stock_dir ;;
path:stock) d=$(stock_dir); [ -d "$d/lib/modules" ] && echo "$d" ;;
key:stock) stock_version ;;
dir:*) kernel_dir "$name" ;;
prepare:stock) die "the stock kernel has its headers package" ;;
prepare:*) kernel_dir "$name" prepare ;;
path:*) d=$CACHE/kernel/$name-$(kernel_key "$name"); [ -e "$d/done" ] && echo "$d" ;;
key:*) kernel_key "$name" ;;
*) die "usage: kernel.sh dir|path|prepare|key NAME" ;;
esac
