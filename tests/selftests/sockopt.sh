#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=200 short=yes
# Socket options: what is refused, what comes back, what never does.
exec "$QRDMA_REPO/build/selftests/test_sockopt"
