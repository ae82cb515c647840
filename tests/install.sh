#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Installing: everything lands where programs, modprobe and DKMS look for it, and DKMS builds the module from what it was
# given. Into a directory of its own; nothing is installed on this machine. Prints TAP.
set -u

REPO=$(cd "$(dirname "$0")/.." && pwd)
cd "$REPO" || exit 1
. scripts/env.sh
ROOT=$(mktemp -d)
trap 'rm -rf "$ROOT"' EXIT
DESTDIR=$ROOT
RELEASE=$(stock_release)
export DESTDIR RELEASE
n=0
bad=0

result() { # result TEXT COMMAND...
	n=$((n + 1))
	_text=$1
	shift
	if "$@" >"$ROOT/log" 2>&1; then
		echo "ok $n $_text"
	else
		tail -n 20 "$ROOT/log" | sed 's/^/# /'
		echo "not ok $n $_text"
		bad=1
	fi
}

have() { # files below the root
	for _file; do
		[ -e "$ROOT/$_file" ] || { echo "missing: $_file"; return 1; }
	done
}

VERSION=$(sed -n 's/^VERSION := //p' userspace/Makefile)
linked_program() {
	echo '#include <qrdma/qrdma.h>
int main(void) { return !qrdma_version(); }' >"$ROOT/try.c"
	# shellcheck disable=SC2046
	gcc -o "$ROOT/try" "$ROOT/try.c" $(PKG_CONFIG_SYSROOT_DIR=$ROOT PKG_CONFIG_PATH=$ROOT/usr/local/lib/pkgconfig \
		pkg-config --cflags --libs libqrdma) && LD_LIBRARY_PATH=$ROOT/usr/local/lib "$ROOT/try"
}
dkms_run() { dkms "$@" --dkmstree "$ROOT/dkms" --sourcetree "$ROOT/usr/src" -k "$RELEASE"; }
dkms_builds() {
	mkdir -p "$ROOT/dkms" &&
	dkms_run add "qrdma/$VERSION" &&
	dkms_run build "qrdma/$VERSION" --kernelsourcedir "/usr/src/linux-headers-$RELEASE" &&
	find "$ROOT/dkms" -name 'qrdma.ko*' | grep .
}

echo "TAP version 13"
echo "1..6"
result "make install" make -s install
result "programs, library, agent and module are there" have usr/local/bin/qrdma-cat usr/local/bin/qrdma-run \
	usr/local/bin/qrdma-ss usr/local/sbin/qrdmad usr/local/lib/libqrdma.so.0 usr/local/lib/libqrdma-preload.so \
	usr/local/lib/systemd/system/qrdmad.service usr/local/include/linux/qrdma.h "lib/modules/$RELEASE/updates/qrdma.ko"
result "modprobe will load the module, and what it needs, for a socket" \
	sh -c "modinfo '$ROOT/lib/modules/$RELEASE/updates/qrdma.ko' | grep -q 'alias: *net-pf-18' &&
		modinfo '$ROOT/lib/modules/$RELEASE/updates/qrdma.ko' | grep -q 'depends:.*rdma_cm'"
result "a program is built with what was installed" linked_program
result "make install-dkms" make -s install-dkms
result "DKMS builds the module" dkms_builds
exit $bad
