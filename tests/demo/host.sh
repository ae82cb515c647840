#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# One host of the demo, inside its machine. First act, over a lossy link: "a" has a file and sends it, "b" sends back
# what it got. Second act: "b" serves redis, "a" is its client; neither program knows of AF_QRDMA.
set -eu
. tests/vm/guest/lib.sh
. tests/vm/guest/programs.sh
CAT=userspace/build/qrdma-cat
OPTS="--ca $QRDMA_CERTS/ca.pem --timeout 60 -v"
GOT=/tmp/demo.got

step() { echo "== $QRDMA_HOST: $*"; }
listening() { ss -Hltn "sport = :$1" | grep -q .; }
sum() { sha256sum <"$1" | cut -d' ' -f1; }

# The control of the experiment: what goes in clear over this link is seen by the capture.
clear_send() {
	step "sending $(basename "$DEMO_CLEAR") in clear, by TCP: the control of the experiment"
	vm-barrier clear-listening
	socat -u "FILE:$DEMO_CLEAR" "TCP:$B4:7001"
	vm-barrier clear-done
}

clear_receive() {
	socat -u TCP-LISTEN:7001,reuseaddr OPEN:/dev/null &
	wait_until 60 listening 7001
	vm-barrier clear-listening
	wait $!
	vm-barrier clear-done
}

serve() { # qrdma-cat as a server; arguments are those of the transfer
	$CAT -l $OPTS --cert "$QRDMA_CERTS/server.pem" --key "$QRDMA_CERTS/server.key" "$@" 7000 &
	wait_until 60 listening 7000
	vm-barrier serving
	wait $! || guest_fail "the server's transfer failed"
}

call() { # and as a client
	vm-barrier serving
	$CAT $OPTS --name server.test "$@" "$B4" 7000 || guest_fail "the client's transfer failed"
}

redis_cli() { run redis-cli -h "$B4" -p 6379 "$@"; }

redis_serve() {
	agent_up
	# the server's program, in the package that starts no daemon when it is installed
	ln -s "$(command -v redis-check-rdb)" /tmp/redis-server
	$RUN /tmp/redis-server --bind "$B4" --port 6379 --save '' --appendonly no --protected-mode no >/tmp/redis.log &
	REDIS=$!
	wait_until 60 listens 6379 || guest_fail "redis does not listen on AF_QRDMA"
	step "qrdma-run redis-server listens"
	vm-barrier redis-up
	vm-barrier redis-talks
	step "sockets of this host (qrdma-ss -ai)"
	$SS -ai
	vm-barrier redis-done
	wait $REDIS || guest_fail "redis-server failed"
	agent_down
}

redis_use() {
	agent_up
	vm-barrier redis-up
	[ "$(redis_cli set demo:key "$DEMO_SECRET")" = OK ] || guest_fail "redis does not take a value"
	[ "$(redis_cli get demo:key)" = "$DEMO_SECRET" ] || guest_fail "redis does not return it"
	step "qrdma-run redis-benchmark, 4 clients, between emulated processors:"
	run redis-benchmark -h "$B4" -p 6379 -c 4 -n 2000 -d 100 -t set,get -q | tr '\r' '\n' | grep 'per second' ||
		guest_fail "the benchmark failed"
	$RUN redis-cli -h "$B4" -p 6379 subscribe nothing >/dev/null &
	SUBSCRIBER=$!
	wait_until 60 sh -c "$SS -H | grep -q ':6379 '"
	vm-barrier redis-talks
	step "sockets of this host (qrdma-ss -ai)"
	$SS -ai
	vm-barrier redis-done
	kill $SUBSCRIBER
	wait $SUBSCRIBER || true
	redis_cli shutdown nosave || guest_fail "redis does not end"
	agent_down
}

topology_up
qrdma_load
if [ "$1" = a ]; then clear_send; else clear_receive; fi
link_loss delay 1ms loss 2% reorder 1%
step "$(uname -r), RDMA device rxe0 on eth0, AF_QRDMA loaded; 2 % loss and 1 % reordering on what this host sends"

if [ "$1" = a ]; then
	step "sending $(basename "$DEMO_FILE"), $(stat -c %s "$DEMO_FILE") bytes, sha256 $(sum "$DEMO_FILE")"
	call -i "$DEMO_FILE" -o /dev/null
	vm-barrier there
	step "receiving it back"
	call -i /dev/null -o $GOT
	[ "$(sum $GOT)" = "$(sum "$DEMO_FILE")" ] || guest_fail "what came back is not what was sent"
	step "what came back has sha256 $(sum $GOT): equal"
else
	serve -i /dev/null -o $GOT
	[ "$(sum $GOT)" = "$(sum "$DEMO_FILE")" ] || guest_fail "what arrived is not what was sent"
	step "arrived with sha256 $(sum $GOT): equal"
	vm-barrier there
	serve -i $GOT -o /dev/null
fi
vm-barrier back
link_clear
step "no loss from here on"
if [ "$1" = a ]; then redis_use; else redis_serve; fi
qrdma_unload
topology_down
