#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=2 time=300 short=no
# socat between two hosts: a file each way, both ways at once with half close, programs behind a socket by pipes and on the socket itself, many
# clients of a forking listener; over IPv4 and IPv6, and with loss.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
. "$QRDMA_REPO/tests/vm/guest/programs.sh"
SIZE=$(amount 2000000 100000000)
CLIENTS=$(amount 10 200)
FILE=$DIR/file

fill() { seq 1 99999999 | sed "s/^/$1 /" | head -c "$2"; }
sum() { sha256sum <"$1" | cut -d ' ' -f 1; }

serve() { # serve NAME PORT ADDRESS [OPTION]: a listener that forks for each client
	start "$1" socat -t 60 $4 "TCP6-LISTEN:$2,ipv6only=0,fork,backlog=128" "$3"
	SERVERS="$SERVERS $pid"
	fact "socat listens for $1" wait_until 60 listens "$2"
}

send() { run socat -u "FILE:$FILE" "TCP:$1:7201"; }
fetch() { run socat -u "TCP:$1:7202" "CREATE:$DIR/fetched" && cmp $FILE $DIR/fetched; }
arrived() { [ "$(stat -c %s $DIR/sent)" = "$(stat -c %s $FILE)" ] && cmp $FILE $DIR/sent; }

# through ADDRESS PORT FILE: it comes back through the program at the other end, which sees the end of what we send
through() { run socat -t 60 - "TCP:$1:$2" <"$3" >"$3.back"; }
echoes() { through "$@" && cmp "$3" "$3.back"; }
sums() { through "$@" && [ "$(cut -d ' ' -f 1 "$3.back")" = "$(sum "$3")" ]; }

many_echo() {
	pids=
	for number in $(seq "$CLIENTS"); do
		fill "$number" $((number * 5000)) >"$DIR/many$number"
		echoes $B4 7204 "$DIR/many$number" &
		pids="$pids $!"
	done
	for pid in $pids; do
		wait "$pid" || return
	done
}

use() { # use TEXT ADDRESS
	fact "$1: a file there" send "$2"
	vm-barrier sent
	vm-barrier compared
	fact "$1: and another back" fetch "$2"
	fact "$1: a program behind pipes, both ways" echoes "$2" 7203 $FILE
	fact "$1: a program that has the socket" echoes "$2" 7204 $FILE
	fact "$1: half close, then an answer" sums "$2" 7205 $FILE
}

compare() {
	vm-barrier sent
	fact "$1: it has arrived" wait_until 60 arrived
	rm $DIR/sent
	vm-barrier compared
}

programs_begin
SERVERS=
fill x "$SIZE" >$FILE
if [ "$QRDMA_HOST" = b ]; then
	serve sink 7201 "OPEN:$DIR/sent,creat,trunc" -u
	serve source 7202 "FILE:$FILE" -U
	serve cat 7203 EXEC:cat
	serve cat-nofork 7204 EXEC:cat,nofork
	serve sum 7205 EXEC:sha256sum
	vm-barrier serving
	compare "no loss"
else
	vm-barrier serving
	use "no loss" $B4
	fact "$CLIENTS clients at a time" many_echo
fi
lossy_round
if [ "$QRDMA_HOST" = b ]; then
	compare "loss, IPv6"
	vm-barrier used
	for pid in $SERVERS; do
		stop "$pid"
	done
else
	use "loss, IPv6" "[$B6]"
	vm-barrier used
fi
programs_end
