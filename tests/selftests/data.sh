#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=500 short=yes
# Bytes through a connection, in all the ways there are.
exec "$QRDMA_REPO/build/selftests/test_data"
