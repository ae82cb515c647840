#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=2 time=200 short=no
# iperf3 on both hosts, unmodified: one way, the other way, four streams, both ways at once, over IPv4 and IPv6; with loss again.
# What its client counts agrees with what its server counts.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
. "$QRDMA_REPO/tests/vm/guest/programs.sh"
SIZE=$(amount 8000000 400000000)

# Of the report: nobody saw an error, as many streams as were asked for; SIZE bytes were sent, both ways together if there are two, and all
# arrived but for what was in the buffers at the end. iperf3 stops reading when its client has sent enough: that is so over TCP, too.
CHECK='
import json, sys
report = json.load(sys.stdin)
size, streams, ways = map(int, sys.argv[1:])
if "error" in report:
    sys.exit(report["error"])
end = report["end"]
if len(end["streams"]) != streams * ways:
    sys.exit("%d streams" % len(end["streams"]))
total = 0
for name in ("", "_bidir_reverse")[:ways]:
    sent, got = end["sum_sent" + name]["bytes"], end["sum_received" + name]["bytes"]
    print("# sent %d, received %d" % (sent, got))
    total += sent
    if not max(1, sent - streams * 1500000) <= got <= sent:
        sys.exit("that cannot be")
if total < size:
    sys.exit("that is not enough")
'

measure() { # measure STREAMS WAYS ADDRESS ARGUMENTS...
	_streams=$1 _ways=$2 _address=$3
	shift 3
	run iperf3 -c "$_address" -n "$SIZE" --json "$@" >$DIR/report.log || return
	python3 -c "$CHECK" "$SIZE" "$_streams" "$_ways" <$DIR/report.log
}

measures() { # measures TEXT
	fact "$1: one way" measure 1 1 $B4
	fact "$1: the other way" measure 1 1 $B4 -R
	fact "$1: four streams" measure 4 1 $B4 -P 4
	fact "$1: both ways at once" measure 1 2 $B4 --bidir
	fact "$1: over IPv6" measure 1 1 $B6
}

programs_begin
if [ "$QRDMA_HOST" = b ]; then
	start server iperf3 -s
	fact "iperf3 listens" wait_until 60 listens 5201
	vm-barrier serving
else
	vm-barrier serving
	measures "no loss"
fi
lossy_round
if [ "$QRDMA_HOST" = b ]; then
	vm-barrier used
	stop "$pid"
else
	measures "loss"
	vm-barrier used
fi
programs_end
