#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# One host of the demo, inside its machine: "a" has the file and sends it, "b" sends back what it got.
set -eu
. tests/vm/guest/lib.sh
CAT=userspace/build/qrdma-cat
OPTS="--ca $DEMO_CERTS/ca.pem --timeout 60 -v"
GOT=/tmp/demo.got

step() { echo "== $QRDMA_HOST: $*"; }
listening() { ss -Hltn "sport = :$1" | grep -q .; }
sum() { sha256sum <"$1" | cut -d' ' -f1; }

# The control of the experiment: what goes in clear over this link is seen by the capture.
clear_send() {
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
	$CAT -l $OPTS --cert "$DEMO_CERTS/server.pem" --key "$DEMO_CERTS/server.key" "$@" 7000 &
	wait_until 60 listening 7000
	vm-barrier serving
	wait $! || guest_fail "the server's transfer failed"
}

call() { # and as a client
	vm-barrier serving
	$CAT $OPTS --name server.test "$@" "$B4" 7000 || guest_fail "the client's transfer failed"
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
qrdma_unload
topology_down
