#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Unit tests in the kernel: build the module with its tests for the KUnit
# kernel (which is also the sanitizer kernel), load it in a test machine, print
# the KTAP that it leaves in the kernel log.  Fails on "not ok", on no result
# at all, and when the kernel complains.
set -eu

REPO=$(cd "$(dirname "$0")/../.." && pwd)
"$REPO/scripts/module.sh" --kunit kunit -j"$(nproc)"
exec "$REPO/tests/vm/vm" run --kernel kunit --append log_buf_len=8M \
	--timeout "${KUNIT_TIMEOUT:-900}" --log "$REPO/build/kunit" \
	-- "$REPO/tests/kunit/guest.sh"
