#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# A file arrives although its queue pair dies ten times.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
"$QRDMA_REPO/build/selftests/test_lane_kill"
rc=$?
topology_down
exit $rc
