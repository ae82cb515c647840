#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=no
# What a peer with keys can send, frame by frame (F08, F65).
exec "$QRDMA_REPO/build/selftests/test_hostile_peer"
