#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=400 short=yes
# Programs and agents of this host that mean harm: to each other, and to the rest of it.
exec "$QRDMA_REPO/build/selftests/test_hostile_local"
