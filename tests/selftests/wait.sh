#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# Time-outs and signals.
exec "$QRDMA_REPO/build/selftests/test_wait"
