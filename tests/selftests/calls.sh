#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# socket, bind, connect and names, with TCP's errors.
exec "$QRDMA_REPO/build/selftests/test_calls"
