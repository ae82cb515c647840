#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=300 short=yes
# Every cipher carries a file both ways; then so do the asynchronous ones.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
"$QRDMA_REPO/build/selftests/test_aead_matrix"
rc=$?
insmod "$(module_dir)/../../tests/tools/qrdma_async_aead.ko" ||
	guest_fail "cannot load the asynchronous ciphers"
"$QRDMA_REPO/build/selftests/test_aead_matrix" || rc=$?
# Keys go with the last packet that they are needed for.
wait_until 60 rmmod qrdma_async_aead || guest_fail "somebody still has its ciphers"
exit $rc
