#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# ECN: marks of congestion arrive, a path that breaks them is found out.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
"$QRDMA_REPO/build/selftests/test_ecn"
rc=$?
topology_down
exit $rc
