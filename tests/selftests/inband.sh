#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# The handshake in band: connect, listen, accept, bytes of the levels, keys, the result.
exec "$QRDMA_REPO/build/selftests/test_inband"
