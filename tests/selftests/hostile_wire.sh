#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=no
# What a host without keys can send to our queue pairs.
exec "$QRDMA_REPO/build/selftests/test_hostile_wire"
