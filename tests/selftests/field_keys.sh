#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=120 short=yes
# Secrets again, sizes and padding of options (F18, F19).
exec "$QRDMA_REPO/build/selftests/test_field_keys"
