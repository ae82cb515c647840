#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Install AF_QRDMA on this machine (make install, make install-dkms).
#
# usage: install.sh module|dkms
#
# "module" builds qrdma.ko for kernel RELEASE (default: the running one) and
# puts it where modprobe finds it. "dkms" puts the sources where DKMS finds
# them and lets it build and install them, now and for each kernel to come;
# with DESTDIR they are put there and no more.
set -eu

REPO=$(cd "$(dirname "$0")/.." && pwd)
. "$REPO/scripts/env.sh"
DESTDIR=${DESTDIR-}
VERSION=$(sed -n 's/^VERSION := //p' "$REPO/userspace/Makefile")

install_module() {
	release=${RELEASE:-$(uname -r)}
	tree=/lib/modules/$release/build
	[ -e "$tree/Makefile" ] || die "no kernel headers in $tree (package linux-headers-$release)"
	"$REPO/scripts/module.sh" "$tree" -j"$(nproc)"
	install -D -m 644 "$REPO/build/module/custom/net/qrdma/qrdma.ko" \
		"$DESTDIR/lib/modules/$release/updates/qrdma.ko"
	[ -n "$DESTDIR" ] || PATH=$PATH:/sbin:/usr/sbin depmod "$release"
}

install_dkms() {
	sources=$DESTDIR/usr/src/qrdma-$VERSION
	rm -rf "$sources"
	cd "$REPO"
	find Kbuild net include -type f \( -name 'Kbuild*' -o -name '*.[ch]' \) |
		while read -r file; do
			install -D -m 644 "$file" "$sources/$file"
		done
	sed "s/@VERSION@/$VERSION/" scripts/dkms.conf.in >"$sources/dkms.conf"
	[ -z "$DESTDIR" ] || return 0
	command -v dkms >/dev/null || die "the package dkms is not installed"
	dkms remove "qrdma/$VERSION" --all >/dev/null 2>&1 || :
	dkms install "qrdma/$VERSION"
}

case ${1-} in
module|dkms) "install_$1" ;;
*) die "usage: install.sh module|dkms" ;;
esac
