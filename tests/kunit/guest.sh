#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The part of run.sh that runs inside the test machine.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"

built=$QRDMA_REPO/build/module/kunit-kunit
# Loading runs the suites, before insmod returns: with the ciphers as they are,
# then with the asynchronous ones of tests/tools, and what else is there.
run_suites() {
	insmod "$built/net/qrdma/qrdma.ko" || guest_fail "cannot load qrdma.ko"
	rmmod qrdma || guest_fail "cannot remove qrdma"
}

run_suites
for module in "$built"/tests/tools/*.ko; do
	[ ! -e "$module" ] || insmod "$module" || guest_fail "insmod $module"
done
run_suites

results=/tmp/kunit.ktap
dmesg --raw | sed -n 's/^<[0-9]*>\[[ 0-9.]*\] //p' |
	grep -E '^ *(not ok|ok|#|1\.\.[0-9]|K?TAP version)( |$|[0-9])' >$results
cat $results
grep -q '^ *ok ' $results || guest_fail "no test has run"
! grep -q '^ *not ok ' $results
