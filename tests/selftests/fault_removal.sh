#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# RDMA devices go away under busy sockets, and come back.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
"$QRDMA_REPO/build/selftests/test_fault_removal"
rc=$?
topology_down
exit $rc
