#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# Written and closed at once: every byte arrives, then the end (F23).
exec "$QRDMA_REPO/build/selftests/test_field_close"
