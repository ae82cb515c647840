#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# Late completions, many senders, datagrams beyond the MTU (F25, F26, F27).
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
"$QRDMA_REPO/build/selftests/test_field_load"
rc=$?
topology_down
exit $rc
