#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=200 short=yes
# Sockets seen from outside: NETLINK_SOCK_DIAG, and qrdma-ss.
exec "$QRDMA_REPO/build/selftests/test_diag"
