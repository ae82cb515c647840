#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=2 time=200 short=no
# Python's asyncio between two hosts: many clients at a time, half close, back-pressure, sendfile, abort, refusal; over IPv4 and IPv6, and with
# loss. tests/selftests/programs/asyncio_job.py says what each job is.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
. "$QRDMA_REPO/tests/vm/guest/programs.sh"
JOB="$QRDMA_REPO/tests/selftests/programs/asyncio_job.py"
CLIENTS=$(amount 50 500)
SIZE=$(amount 4000000 100000000)
JOBS=6

all_jobs() { # all_jobs ADDRESS CLIENTS SIZE
	run python3 -B "$JOB" use "$1" 7100 "$2" "$3" >$DIR/jobs.log 2>&1 || return
	sed 's/^/# /' $DIR/jobs.log
	[ "$(wc -l <$DIR/jobs.log)" = $JOBS ]
}

programs_begin
if [ "$QRDMA_HOST" = b ]; then
	start server python3 -B "$JOB" serve "::,0.0.0.0" 7100
	fact "the server listens" wait_until 60 listens 7100
fi
vm-barrier serving
[ "$QRDMA_HOST" = b ] || fact "all jobs" all_jobs $B4 "$CLIENTS" "$SIZE"
lossy_round
if [ "$QRDMA_HOST" = a ]; then
	fact "all jobs over IPv6, with loss" all_jobs $B6 $((CLIENTS / 5)) $((SIZE / 4))
fi
vm-barrier used
if [ "$QRDMA_HOST" = b ]; then
	fact "the server ends" stop "$pid"
	sed 's/^/# /' $DIR/server.log
fi
programs_end
