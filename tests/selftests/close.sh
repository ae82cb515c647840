#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=400 short=yes
# shutdown, close, SO_LINGER, and what the peer sees of them.
exec "$QRDMA_REPO/build/selftests/test_close"
