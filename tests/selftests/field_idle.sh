#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=600 short=no
# Thousands of open sockets (F29).
exec "$QRDMA_REPO/build/selftests/test_field_idle"
