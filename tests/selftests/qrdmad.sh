#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=400 short=no
# A program that knows nothing of handshakes, and qrdmad beside it: data moves under certificates and under keys; each
# cause is an errno of connect(); reload, the death of a worker and that of the module lose nothing that they need not.
#
# Both ends are of this machine and have one agent. What it is told about 10.9.0.1 it does as a server, and what about
# 10.9.0.2 as a client; [port] stands below both.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
DAEMON="$QRDMA_REPO/userspace/build/qrdmad"
CAT="$QRDMA_REPO/userspace/build/qrdma-cat"
PLAIN="$QRDMA_REPO/build/selftests/test_qrdmad"
DIR=/tmp/qrdmad
CONF=$DIR/conf
LOG=$DIR/log

say() { echo "# $*"; }
fact() { # fact TEXT COMMAND...
	_text=$1
	shift
	"$@" || {
		sed 's/^/# log: /' $LOG | tail -n 30
		guest_fail "NOT: $_text"
	}
	say "yes: $_text"
}
fails() { ! "$@"; }

certificate() { # certificate NAME AUTHORITY LINES
	certtool --generate-privkey --ecc --outfile "$1.key" 2>/dev/null
	printf 'cn = "%s"\nsigning_key\n%b' "$1" "$3" >"$1.tmpl"
	if [ "$2" ]; then
		set -- "$1" --generate-certificate --load-ca-certificate "$2.pem" --load-ca-privkey "$2.key"
	else
		set -- "$1" --generate-self-signed
	fi
	_name=$1
	shift
	certtool "$@" --load-privkey "$_name.key" --template "$_name.tmpl" --outfile "$_name.pem" 2>/dev/null
}

certificates() (
	cd $DIR || exit 1
	_names='dns_name = "host.test"\nip_address = "10.9.0.1"\nip_address = "10.9.0.2"\nip_address = "fd09::2"\n'
	certificate ca "" 'ca\ncert_signing_key\nexpiration_days = 30\n' &&
	certificate stranger "" 'ca\ncert_signing_key\nexpiration_days = 30\n' &&
	certificate host ca "expiration_days = 20\n$_names" &&
	certificate expired ca "activation_date = \"2020-01-01\"\nexpiration_date = \"2020-02-01\"\n$_names" &&
	certificate untrusted stranger "expiration_days = 20\n$_names"
)

# configure LINES: both roles mutual, and what is added
configure() {
	printf '%b\n' "[qrdmad]\nworkers = 2\nhost-key-file = $DIR/host.key" \
		"[server]\ncertificate = $DIR/host.pem\nkey = $DIR/host.key.pem\ntrust = $DIR/ca.pem\ntimeout = 60" \
		"[client]\ncertificate = $DIR/host.pem\nkey = $DIR/host.key.pem\ntrust = $DIR/ca.pem\ntimeout = 60" \
		"$1" >$CONF
}

settled() { grep -c 'workers take handshakes' $LOG; }
settled_again() { [ "$(settled)" -gt "$_before" ]; }

reload() { # reload LINES: when it returns, the new configuration is in force
	configure "$1"
	_before=$(settled)
	kill -HUP $MASTER
	wait_until 20 settled_again || guest_fail "no reload: $(tail -n 3 $LOG)"
}

# outcome "RESULT..." CONNECT-ARGUMENTS...: the client prints just that
outcome() {
	_want=$1
	shift
	_got=$($PLAIN connect "$@" | tr '\n' ' ')
	[ "$_got" = "$_want " ] || { say "it is '$_got', not '$_want'"; return 1; }
}

# cause TEXT ERRNO LINES [SECONDS]: one connection under this configuration
cause() {
	reload "$3"
	fact "$1 is $2" outcome "7001 $2 1" $B4 7001 1 100 "${4:-20}"
}

# They must not outlive the test, whose output is waited for.
MASTER=
SERVER=
CLIENT=
trap 'kill $MASTER $SERVER $CLIENT 2>/dev/null' EXIT
trap 'exit 1' TERM

umask 077
mkdir -p $DIR
fact "certificates are made" certificates
mv $DIR/host.key $DIR/host.key.pem
seq 1 3 >$DIR/small
for key in "psk 0" "psk.wrong 9"; do
	echo "me:${key#* }00102030405060708090a0b0c0d0e0f" >"$DIR/${key% *}"
done
echo "you:000102030405060708090a0b0c0d0e0f" >$DIR/psk.other
: >$LOG

# Nobody there
mkfifo $DIR/server
$PLAIN serve $B4 7001 7002 <$DIR/server >$DIR/server.out 2>&1 &
SERVER=$!
exec 5>$DIR/server
wait_until 20 grep -q ready $DIR/server.out || guest_fail "no server"
fact "without an agent connect() fails at once" outcome "7001 ESRCH 1" $B4 7001 1 100 20
fact "and who connects to us is refused" fails $CAT --in-band --ca $DIR/ca.pem --name host.test -i $DIR/small $B4 7001

configure ""
fact "a configuration is checked" $DAEMON --check -c $CONF
$DAEMON -v -c $CONF >$LOG 2>&1 &
MASTER=$!
_before=0
wait_until 20 settled_again || guest_fail "no agent: $(cat $LOG)"
fact "it has few rights" [ "$(sed -n 's/^CapEff:[ \t]*//p' /proc/$MASTER/status)" = 00000000000011e0 ]
for worker in $(pgrep -P $MASTER); do
	fact "and its workers have CAP_NET_ADMIN" grep -q '^CapEff:.*0000000000001000$' /proc/"$worker"/status
	fact "and are not root" grep -q '^Uid:.*65534' /proc/"$worker"/status
done

fact "certificates of both ends" outcome "7001 0 4" $B4 7001 4 100000 20
reload "[port 7001]\nauthenticate = psk\npsk-file = $DIR/psk"
fact "a key" outcome "7001 0 2" $B4 7001 2 100000 20

cause "a server whose certificate is out of date" EKEYEXPIRED \
	"[peer 10.9.0.1]\ncertificate = $DIR/expired.pem\nkey = $DIR/expired.key"
cause "a client whose certificate is out of date" EKEYEXPIRED \
	"[peer 10.9.0.2]\ncertificate = $DIR/expired.pem\nkey = $DIR/expired.key"
cause "a server that nobody trusts" EKEYREJECTED \
	"[peer 10.9.0.1]\ncertificate = $DIR/untrusted.pem\nkey = $DIR/untrusted.key"
cause "another name" EKEYREJECTED "[peer 10.9.0.2]\nname = other.test"
cause "its name" 0 "[peer 10.9.0.2]\nname = host.test"
cause "a client of another name" EKEYREJECTED "[peer 10.9.0.1]\nname = other.test"
cause "a key that the server does not know" EACCES "[port 7001]\nauthenticate = psk\npsk-file = $DIR/psk
[peer 10.9.0.2]\npsk-file = $DIR/psk.other"
cause "a wrong key" EKEYREJECTED "[port 7001]\nauthenticate = psk\npsk-file = $DIR/psk
[peer 10.9.0.2]\npsk-file = $DIR/psk.wrong"
cause "a key where certificates are wanted" ENOKEY "[peer 10.9.0.2]\nauthenticate = psk\npsk-file = $DIR/psk"
cause "a server that does not let us" ECONNREFUSED "[peer 10.9.0.1]\nallow = no"
cause "a policy that does not let us" EPERM "[peer 10.9.0.2]\nallow = no"
configure ""
sed -i -e '/^\[client\]/,$d' $CONF
_before=$(settled)
kill -HUP $MASTER
wait_until 20 settled_again || guest_fail "no reload"
fact "no certificate is ENOKEY" outcome "7001 ENOKEY 1" $B4 7001 1 100 20
reload "[port 7001]\nauthenticate = server\n[peer 10.9.0.2]\ntimeout = 0.5"
link_loss loss 100%
fact "silence is ETIMEDOUT" outcome "7001 ETIMEDOUT 1" $B4 7001 1 100 20
link_clear

# A bad configuration
cp $CONF $CONF.good
echo "[peer nobody]" >>$CONF
kill -HUP $MASTER
wait_until 20 grep -q 'stays as it was' $LOG || guest_fail "a bad configuration is taken"
cp $CONF.good $CONF
fact "a bad configuration changes nothing" outcome "7001 0 1" $B4 7001 1 100 20

# The death of a worker in the middle of a handshake
begun() { grep -c 'begins$' $LOG; }
begun_again() { [ "$(begun)" -gt "$_begun" ]; }
reload ""
link_loss loss 100%
_begun=$(begun)
$PLAIN connect $B4 7001 1 100 60 >$DIR/killed 2>&1 &
CLIENT=$!
wait_until 20 begun_again || guest_fail "no handshake begins: $(tail -n 3 $LOG)"
kill -KILL $(pgrep -P $MASTER)
wait $CLIENT
fact "a worker that dies is ECONNABORTED" grep -qx "7001 ECONNABORTED 1" $DIR/killed
link_clear
fact "and is replaced" outcome "7001 0 1" $B4 7001 1 100 20

# Many at a time, half of them with a wrong certificate, and loss
reload "[port 7002]\ncertificate = $DIR/untrusted.pem\nkey = $DIR/untrusted.key
[peer 10.9.0.1]\ncertificate = $DIR/host.pem\nkey = $DIR/host.key.pem"
link_loss loss 2%
# A close that is lost and not repeated in time (RFC 9000 s10.2: three PTO) leaves a host that knows of no connection.
$PLAIN connect $B4 7001,7002 200 2000 120 >$DIR/many
say "$(tr '\n' ';' <$DIR/many)"
fact "200 at a time: the right certificates" grep -qx '7001 0 100' $DIR/many
fact "and nobody with a wrong one" fails grep -q '^7002 0' $DIR/many
fact "but for a lost close for its own cause" [ 0 = "$(grep -cv -e '^7001 0 ' -e EKEYREJECTED -e ECONNRESET $DIR/many)" ]
fact "which is the rule" [ "$(sed -n 's/^7002 EKEYREJECTED //p' $DIR/many)" -ge 80 ]
link_clear

# Reload under load
$PLAIN connect $B4 7001 100 1000 120 >$DIR/load 2>&1 &
CLIENT=$!
for round in 1 2 3; do
	reload ""
done
wait $CLIENT
fact "reload loses no connection" grep -qx "7001 0 100" $DIR/load

# Connections may still say goodbye.
module_idle() { [ "$(cat /sys/module/qrdma/refcnt)" = 0 ]; }
module_leave() {
	wait_until 90 module_idle || guest_fail "the module is in use"
	qrdma_unload
}

# The module goes and comes back
kill $SERVER
wait $SERVER
exec 5>&-
token=$($PLAIN token)
_before=$(settled)
module_leave
wait_until 20 grep -q 'module qrdma is gone' $LOG || guest_fail "the agent does not miss the module"
qrdma_load
wait_until 20 settled_again || guest_fail "the agent does not see the module: $(tail -n 3 $LOG)"
fact "the host key is the same" [ "$token" = "$($PLAIN token)" ]
module_leave
qrdma_load reset_key="$(cat $DIR/host.key)"
fact "and the one in its file" [ "$token" = "$($PLAIN token)" ]

kill $MASTER
wait $MASTER
fact "it ends when it is told to" [ $? = 0 ]
