#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# Neighbours, hardware addresses and MTUs change under a flow (F24, F28).
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
"$QRDMA_REPO/build/selftests/test_field_path"
rc=$?
topology_down
exit $rc
