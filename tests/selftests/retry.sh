#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=500 short=yes
# Address validation: Retry, tokens for the next connection, a flood of forged first packets (F67,
# F69), and the packets that a connect() to a known host costs.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
"$QRDMA_REPO/build/selftests/test_retry"
rc=$?
topology_down
exit $rc
