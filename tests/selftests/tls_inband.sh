#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=400 short=yes
# TLS in band: libqrdma's handshake between two qrdma-cat, by certificate and by key, over a lossy link; what must be
# refused is refused, with its reason.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
CAT="$QRDMA_REPO/userspace/build/qrdma-cat"
DIR=/tmp/inband
PORT=7100

say() { echo "# $*"; }
fact() { # fact TEXT COMMAND...
	_text=$1
	shift
	"$@" || guest_fail "NOT: $_text"
	say "yes: $_text"
}
fails() { ! "$@"; }

listening() { "$QRDMA_REPO/userspace/build/qrdma-ss" -Hl | grep -q ":$1 "; }

# transfer TEXT SERVER-OPTIONS -- CLIENT-OPTIONS: a file there and another back.
transfer() {
	_text=$1
	_server=
	shift
	while [ "$1" != -- ]; do _server="$_server $1"; shift; done
	shift
	PORT=$((PORT + 1))
	$CAT --in-band -l $_server -i $DIR/b -o $DIR/got.b "$B4" $PORT 2>$DIR/server.err &
	_pid=$!
	wait_until 60 listening $PORT || return 1
	"$CAT" --in-band "$@" -i $DIR/a -o $DIR/got.a "$B4" $PORT 2>$DIR/client.err || return 1
	wait $_pid && cmp $DIR/a $DIR/got.b && cmp $DIR/b $DIR/got.a
}

# refused TEXT REASON SERVER-OPTIONS -- CLIENT-OPTIONS
refused() {
	_why=$2
	_what=$1
	shift 2
	fact "$_what is refused" fails transfer "$_what" "$@"
	kill $_pid 2>/dev/null
	wait $_pid
	fact "$_what: the reason is told ($(tail -n 1 $DIR/client.err))" \
		grep -qi "$_why" $DIR/client.err $DIR/server.err
}

umask 077
mkdir -p $DIR
sh "$QRDMA_REPO/tests/userspace/certs.sh" $DIR
head -c 1000000 "$QRDMA_REPO/build/module/$QRDMA_KERNEL/net/qrdma/qrdma.ko" >$DIR/a
seq 1 200000 >$DIR/b
echo "me:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" >$DIR/psk
echo "me:ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" >$DIR/wrong
SERVER="-v --cert $DIR/server.pem --key $DIR/server.key"
CLIENT="-v --ca $DIR/ca.pem --name server.test"

fact "certificate" transfer certificate $SERVER -- $CLIENT
fact "key" transfer key -v --psk-file $DIR/psk -- -v --psk-file $DIR/psk
fact "ChaCha20" transfer ChaCha20 $SERVER --cipher chacha20-poly1305 -- $CLIENT
fact "AES-256" transfer AES-256 $SERVER --cipher aes-256-gcm -- $CLIENT --cipher aes-256-gcm
link_loss delay 1ms loss 5%
fact "certificate, with loss" transfer loss $SERVER -- $CLIENT
link_clear
refused "another name" "name\|not trusted\|certificate" $SERVER -- -v --ca $DIR/ca.pem --name other.test
refused "a wrong key" "key" -v --psk-file $DIR/psk -- -v --psk-file $DIR/wrong
refused "a client without a certificate" "certificate" $SERVER --mutual --ca $DIR/ca.pem -- $CLIENT
