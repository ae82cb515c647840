#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The newer Debian kernels: compile the module for them, or test it on them.
#
# usage: newer.sh build|check [SUITE...]       (default: trixie testing)
#
# "build" needs their source and modules_prepare only; what the kernel exports
# is looked up in its source then. "check" builds whole kernels with
# kunit.config and runs the system tests on them. Prints TAP; exits 4 when the
# mirror has none of the suites.
set -u

REPO=$(cd "$(dirname "$0")/../.." && pwd)
. "$REPO/scripts/env.sh"
cd "$REPO" || exit 1

# not_exported SOURCE-TREE KO...: symbols that the modules take from elsewhere, and that no line of the source exports
# (those of MACRO are made by macros).
MACRO='^(__SCT__.*|get_random_u[0-9]+|param_ops_.*)$'
not_exported() {
	_source=$1
	shift
	nm -u "$@" | awk 'NF == 2 { print $2 }' | sort -u >build/newer.taken
	grep -rhoE 'EXPORT_[A-Z_]*SYMBOL[A-Z_]*\([A-Za-z0-9_]+' --include='*.[chS]' "$_source" |
		sed 's/.*(//' | sort -u >build/newer.exported
	comm -23 build/newer.taken build/newer.exported | grep -vE "$MACRO" | sed 's/^/# not exported: /' | grep .
}

compile() {
	tree=$(tests/vm/kernel.sh prepare "$1") || return $?
	# No kernel was built, so no symbol is known, and that is no news.
	: >"$tree/build/Module.symvers"
	out=$(QRDMA_BUILD_NAME="$1-prepared" scripts/module.sh "$tree/build" \
		-j"$(nproc)" KBUILD_MODPOST_WARN=1 2>&1)
	rc=$?
	out=$(echo "$out" | grep -vE '\] undefined!$|^WARNING: modpost: suppressed')
	[ -z "$out" ] || { echo "$out" | sed 's/^/# /'; rc=1; }
	[ $rc -ne 0 ] || ! not_exported "$(scripts/setup.sh "source:$1")" "build/module/$1-prepared/net/qrdma/qrdma.ko" ||
		rc=1
	return $rc
}

try() {
	case $verb in
	build) compile "$1" ;;
	check) tests/vm/kernel.sh dir "$1" >/dev/null &&
		tests/vm/selftests --kernel "$1" ;;
	esac
}

verb=${1-}
case $verb in
build|check) shift ;;
*) die "usage: newer.sh build|check [SUITE...]" ;;
esac
[ $# -gt 0 ] || set -- trixie testing
n=0 bad=0 have=0
echo "TAP version 13"
echo "1..$#"
for suite; do
	n=$((n + 1))
	try "$suite"
	case $? in
	0) echo "ok $n $verb-$suite"; have=1 ;;
	4) echo "ok $n $verb-$suite # SKIP the mirror has no such kernel" ;;
	*) echo "not ok $n $verb-$suite"; bad=1; have=1 ;;
	esac
done
[ $bad -eq 0 ] || exit 1
[ $have -eq 1 ] || exit 4
