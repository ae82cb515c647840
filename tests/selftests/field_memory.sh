#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=120 short=yes
# Pages that are not mapped, allocations that fail (F34).
exec "$QRDMA_REPO/build/selftests/test_field_memory"
