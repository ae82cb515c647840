#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=2 time=150 short=no
# memcached at b, and many threads at a that write values of 0 bytes to 1 MB and compare what they read; over IPv4 and IPv6, and with loss.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
. "$QRDMA_REPO/tests/vm/guest/programs.sh"
. "$QRDMA_REPO/scripts/env.sh"
JOB="$QRDMA_REPO/tests/selftests/programs/memcached_job.py"
THREADS=$(amount 12 64)
ROUNDS=$(amount 25 500)

MEMCACHED=$(program_dir memcached)/usr/bin/memcached || { echo "# SKIP: no memcached"; exit 4; }

job() { # job ADDRESS ROUNDS
	run python3 -B "$JOB" "$1" 11211 "$THREADS" "$2" >$DIR/job.log 2>&1 || return
	sed 's/^/# /' $DIR/job.log
}

programs_begin
if [ "$QRDMA_HOST" = b ]; then
	start server "$MEMCACHED" -u root -l "$B4,$B6" -p 11211 -t 4 -m 512 -I 2m -c 4096
	fact "memcached listens" wait_until 60 listens 11211
fi
vm-barrier serving
[ "$QRDMA_HOST" = b ] || fact "all is as it was written" job $B4 "$ROUNDS"
lossy_round
[ "$QRDMA_HOST" = b ] || fact "over IPv6, with loss, too" job $B6 $((ROUNDS / 5))
vm-barrier used
[ "$QRDMA_HOST" = a ] || fact "the server ends" stop "$pid"
programs_end
