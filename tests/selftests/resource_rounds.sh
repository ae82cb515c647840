#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=no
# A thousand connections leave the kernel as it was.
exec "$QRDMA_REPO/build/selftests/test_resource_rounds"
