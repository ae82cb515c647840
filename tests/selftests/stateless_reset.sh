#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# A host that has lost a connection says so, and is believed (RFC 9000 section 10.3, F68, F69).
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
"$QRDMA_REPO/build/selftests/test_stateless_reset"
rc=$?
topology_down
exit $rc
