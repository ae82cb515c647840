# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Unmodified programs between two hosts: sourced behind lib.sh, runs nothing by itself.
#
#   agent_up [PORT]       qrdmad with the certificate of this host, host-a or host-b of $QRDMA_CERTS; at this port a key that both know
#                         will do, which costs a small part of the time
#   agent_down            ends it, and sees that it ends well
#
# and for the tests tests/selftests/prog_NAME.sh:
#
#   programs_begin [PORT] a folder $DIR; no TCP between the hosts from here on; the agent; all of it ends with the test
#   programs_end          and what has to be so at the end: no program, no agent, no socket is left
#   run PROGRAM...        a program on AF_QRDMA
#   start NAME PROGRAM... the same in the background: sets $pid; its output is $DIR/NAME.log
#   stop PID [SIGNAL]     ends it and waits for it; its exit code
#   listens PORT          somebody listens on AF_QRDMA
#   fact TEXT COMMAND...  the command succeeds, or else the test fails and shows the ends of all logs
#   amount SHORT LONG     the second in "make programs"
#   quiet                 no connection is left, and no host is remembered
#   held                  what the module holds of this host, as text
#   slabs_grown COUNT     a slab cache has grown by so many objects since "slabs_take"
#   lossy_round           this round is the one with loss: 1 % of what either host sends
#
# Nothing that goes over TCP arrives at the other host. So what a program is seen to do between the hosts, it does on AF_QRDMA.

RUN="$QRDMA_REPO/userspace/build/qrdma-run"
SS="$QRDMA_REPO/userspace/build/qrdma-ss"
DIR=/tmp/programs
IDLE=/sys/module/qrdma/parameters/peer_idle

agent_ready() { grep -q 'workers take handshakes' $DIR/qrdmad.log; }

# Both ends show certificates. Files with keys have to be files of root here, whoever owns them outside of the machine.
agent_up() {
	mkdir -p $DIR
	for _name in "host-$QRDMA_HOST.pem" "host-$QRDMA_HOST.key" ca.pem; do
		install -m 600 "$QRDMA_CERTS/$_name" $DIR || guest_fail "no $_name"
	done
	for _role in server client; do
		printf '[%s]\ncertificate = %s.pem\nkey = %s.key\ntrust = %s\n' $_role \
			"$DIR/host-$QRDMA_HOST" "$DIR/host-$QRDMA_HOST" $DIR/ca.pem
	done >$DIR/qrdmad.conf
	if [ "${1:-}" ]; then
		(umask 077; echo "host:$(sha256sum <"$QRDMA_CERTS/ca.pem" | cut -d ' ' -f 1)" >$DIR/psk)
		printf '[port %s]\nauthenticate = psk\npsk-file = %s\n' "$1" $DIR/psk >>$DIR/qrdmad.conf
	fi
	: >$DIR/qrdmad.log
	"$QRDMA_REPO/userspace/build/qrdmad" --config $DIR/qrdmad.conf >>$DIR/qrdmad.log 2>&1 &
	AGENT=$!
	wait_until 60 agent_ready || guest_fail "qrdmad does not begin: $(cat $DIR/qrdmad.log)"
}

agent_down() {
	kill "$AGENT"
	wait "$AGENT" || guest_fail "qrdmad did not end well"
	AGENT=
}

fails() { ! "$@"; }

programs_tell() {
	for _log in $DIR/*.log; do
		tail -n 20 "$_log" | sed "s|^|# $(basename "$_log"): |"
	done
	$SS -ai | sed 's/^/# qrdma-ss: /'
}

fact() {
	_text=$1
	shift
	"$@" || { programs_tell; guest_fail "NOT: $_text"; }
	echo "# yes: $_text"
}

tcp_block() {
	for _dev in $(link_devs); do
		tc qdisc add dev "$_dev" clsact &&
		tc filter add dev "$_dev" ingress protocol ip prio 1 u32 match ip protocol 6 0xff action drop &&
		tc filter add dev "$_dev" ingress protocol ipv6 prio 2 u32 match ip6 protocol 6 0xff action drop ||
			guest_fail "TCP is not blocked on $_dev"
	done
}

tcp_unblock() {
	for _dev in $(link_devs); do
		tc qdisc del dev "$_dev" clsact 2>/dev/null || :
	done
}

# A program that outlived the test would keep its output open, and that is waited for.
programs_leave() {
	kill -KILL $STARTED $AGENT 2>/dev/null
	tcp_unblock
	echo "$PEER_IDLE" >$IDLE
}

programs_begin() {
	STARTED=
	AGENT=
	PEER_IDLE=$(cat $IDLE)
	echo 1 >$IDLE
	rm -rf $DIR
	mkdir -p $DIR
	trap programs_leave EXIT
	trap 'programs_tell; exit 1' TERM
	tcp_block
	agent_up "$@"
	vm-barrier programs-begin
}

module_idle() { [ "$(cat /sys/module/qrdma/refcnt)" = 0 ]; }

# Connections may still say goodbye, for as long as the peer's agent and programs are there.
programs_end() {
	vm-barrier programs-done
	for pid in $STARTED; do
		! kill -0 "$pid" 2>/dev/null || guest_fail "a program is left: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done
	agent_down
	link_clear
	fact "no socket is left" wait_until 60 module_idle
	vm-barrier programs-end
}

run() { "$RUN" "$@"; }

start() {
	_log=$DIR/$1.log
	shift
	"$RUN" "$@" >>"$_log" 2>&1 &
	pid=$!
	STARTED="$STARTED $pid"
}

stop() {
	kill -"${2:-TERM}" "$1"
	wait "$1"
}

listens() { $SS -Hl | grep -q ":$1 "; }

amount() { if [ "${QRDMA_LONG:-}" ]; then echo "$2"; else echo "$1"; fi; }

counter() { sed -n "s/^$1 //p" /proc/net/qrdma; }

quiet() {
	[ "$(counter connections)" = 0 ] && [ "$(counter orphans)" = 0 ] &&
		grep -q '^ahs 0 ' /sys/kernel/debug/qrdma/rxe0:1
}

held() {
	grep -Eo '^(ahs|credit reserved) [0-9]+| qps [0-9]+' /sys/kernel/debug/qrdma/rxe0:1
	grep -E '^(sockets|connections|orphans) ' /proc/net/qrdma
	rdma -j res show
}

slabs_take() { awk '/^[^#].* : / { print $1, $2 }' /proc/slabinfo >$DIR/slabs; }

slabs_grown() {
	awk -v limit="$1" 'NR == FNR { was[$1] = $2; next }
	/^[^#].* : / && $2 - was[$1] >= limit { print "# slab " $1 ": " was[$1] " -> " $2; bad = 1 }
	END { exit !bad }' $DIR/slabs /proc/slabinfo
}

lossy_round() {
	link_loss loss 1%
	vm-barrier lossy-round
	echo "# 1 % loss from here on"
}
