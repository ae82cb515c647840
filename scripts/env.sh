# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Where things are: sourced by the scripts of the harness, runs nothing.
# The callers set REPO to the top of the work tree first.

# Everything that is fetched or built once and kept between clones.
CACHE=${QRDMA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/qrdma}
export CACHE

say() { echo "$*" >&2; }
die() { echo "${0##*/}: $*" >&2; exit 1; }

# Release of the kernel that the tests boot: the one that the installed
# linux-headers-amd64 stands for (so that module and kernel are one version).
stock_release() {
	dpkg-query -W -f '${Depends}\n' linux-headers-amd64 2>/dev/null |
		sed -n 's/^.*linux-headers-\([^ ,]*-amd64\).*$/\1/p'
}

# Debian version of that kernel's packages.
stock_version() {
	dpkg-query -W -f '${Version}\n' "linux-headers-$(stock_release)" 2>/dev/null
}

# Upstream series of it ("6.1"), which names the linux-source package.
stock_series() {
	stock_release | sed 's/^\([0-9]*\.[0-9]*\)\..*$/\1/'
}

# The unpacked image package: boot/vmlinuz-*, lib/modules/*.
stock_dir() {
	echo "$CACHE/stock/$(stock_release)_$(stock_version)"
}

# program_dir NAME: where a program of scripts/programs is unpacked, or failure
program_dir() {
	set -- "$CACHE/programs/$1"_*
	[ -d "$1" ] || return 1
	shift $(($# - 1))
	echo "$1"
}
