#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=2 time=400 short=no
# Two hosts: bytes go both ways at once through a lossy link; then host b loses the module and its RDMA device under a
# transfer, without a last word, as when it boots anew. The connection at a ends with an error, and the next one
# finds b's new queue pairs.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
CAT="$QRDMA_REPO/userspace/build/qrdma-cat"
OPTS="--psk-file /tmp/two.psk --timeout 60"
SIZE=4000000

fact() { # fact TEXT COMMAND...
	_text=$1
	shift
	"$@" || guest_fail "NOT: $_text"
	echo "# yes: $_text"
}

listening() { ss -Hltn "sport = :7000" | grep -q .; }
has_bytes() { [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -ge "$2" ]; }
fill() { seq 1 9999999 | sed "s/^/$1 /" | head -c $SIZE >"$2"; }
ends_badly() { ! wait "$1"; }

# serve NAME ARGUMENTS: sets $pid to the server's, and tells the client
serve() {
	_round=$1
	shift
	$CAT -l $OPTS "$@" 7000 &
	pid=$!
	wait_until 60 listening || guest_fail "no server"
	vm-barrier "serving-$_round"
}

call() {
	vm-barrier "serving-$1"
	shift
	$CAT $OPTS "$@" "$B4" 7000
}

exchange() {
	if [ "$QRDMA_HOST" = a ]; then
		fact "$1: a sends and receives" call "$1" -i /tmp/two.a -o /tmp/two.got
		fact "$1: a has the file of b" cmp /tmp/two.got /tmp/two.b
	else
		serve "$1" -i /tmp/two.b -o /tmp/two.got
		fact "$1: b sends and receives" wait $pid
		fact "$1: b has the file of a" cmp /tmp/two.got /tmp/two.a
	fi
}

umask 077
echo "me:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" >/tmp/two.psk
fill a /tmp/two.a
fill b /tmp/two.b
link_loss delay 1ms loss 2% reorder 1%
exchange with-loss
link_clear

if [ "$QRDMA_HOST" = a ]; then
	call crash -i /dev/zero -o /dev/null 2>/tmp/two.err &
	pid=$!
	vm-barrier crashed
	fact "a's connection ends with an error" ends_badly $pid
	echo "# $(tail -n 1 /tmp/two.err)"
else
	serve crash -i /dev/null -o /tmp/two.flood
	fact "the transfer is under way" wait_until 60 has_bytes /tmp/two.flood 1000000
	tc qdisc add dev eth0 root netem loss 100%
	kill -9 $pid
	ends_badly $pid
	rm -f /tmp/two.flood
	rdma link del rxe0
	fact "the module goes" wait_until 60 rmmod qrdma
	link_clear
	rxe_add rxe0 eth0 0a09:0002 fd09:0000:0000:0000:0000:0000:0000:0002
	qrdma_load
	vm-barrier crashed
fi
vm-barrier again
exchange after-crash
