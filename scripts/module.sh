#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Build the kernel modules for one kernel, in build/module/NAME.
#
# usage: module.sh [--kunit] KERNEL [MAKE-ARGUMENT...]
#        OBJ=net/qrdma/x.o module.sh KERNEL     that object alone
#
# KERNEL is a name that tests/vm/kernel.sh knows, or the directory of a kernel
# build tree or headers, for which no modules of tests are built.  With --kunit the unit tests are in the module, and
# it is built in build/module/NAME-kunit.  The build directory is a farm of
# links to the sources, so kernels do not disturb each other and the work tree
# stays clean.
set -eu

REPO=$(cd "$(dirname "$0")/.." && pwd)
. "$REPO/scripts/env.sh"

kunit=
if [ "${1-}" = --kunit ]; then
	kunit=1
	shift
fi
[ $# -ge 1 ] || die "usage: module.sh [--kunit] KERNEL [MAKE-ARGUMENT...]"
kernel=$1
shift

tools=m
case $kernel in
*/*) tree=$kernel; name=${QRDMA_BUILD_NAME:-custom}; tools=${QRDMA_BUILD_NAME:+m} ;;
stock) tree=/usr/src/linux-headers-$(stock_release); name=stock ;;
*) tree=$("$REPO/tests/vm/kernel.sh" dir "$kernel")/build; name=$kernel ;;
esac
[ -e "$tree/Makefile" ] || die "$tree is not a kernel build tree"
out=$REPO/build/module/$name${kunit:+-kunit}

# What of the work tree takes part
sources() {
	cd "$REPO"
	find Kbuild net include tests/tools tests/kunit tests/core tests/shim \
		-type f \( -name 'Kbuild*' -o -name '*.[ch]' \) -print
}

mkdir -p "$out"
exec 9>"$out.lock"
flock 9
# A build of another kernel tree is of no use for this one.
stamp="$tree $(cat "$tree/include/config/kernel.release" 2>/dev/null)"
if [ "$(cat "$out/.tree" 2>/dev/null)" != "$stamp" ]; then
	rm -rf "$out"
	mkdir -p "$out"
	echo "$stamp" >"$out/.tree"
fi
sources | while read -r file; do
	[ -e "$out/$file" ] || {
		mkdir -p "$(dirname "$out/$file")"
		ln -sf "$REPO/$file" "$out/$file"
	}
done
find "$out" -xtype l -delete

# No vmlinux, no type information for modules: saying so keeps make silent.
make -s -C "$tree" M="$out" CONFIG_DEBUG_INFO_BTF_MODULES= QRDMA_TOOLS="$tools" ${kunit:+QRDMA_KUNIT=1} "$@" ${OBJ:-modules}
