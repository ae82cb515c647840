#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=420 short=yes
# The verbs layer alone, without sockets: lanes, devices, peers, pools, credit
# (tests/tools/lanes/qrdma_lanes.c has the commands). The veth pair is one host
# to itself, twice: end a asks, end b echoes.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"

DIR=/sys/kernel/debug/qrdma
PARAM=/sys/module/qrdma_lanes/parameters
A=::ffff:$A4
B=::ffff:$B4
MAC_B=$(cat /sys/class/net/vb/address)
n=0
bad=0

pass() { n=$((n + 1)); echo "ok $n $1"; }
fail() { n=$((n + 1)); bad=1; echo "not ok $n $1${2:+ # $2}"; }
check() { if "${@:2}"; then pass "$1"; else fail "$1"; fi; }

# verbs COMMAND: its error as text on stdout, nothing when it went well
verbs() { { echo "$*" >$DIR/test; } 2>&1 | sed -n 's/.*write error: //p'; }
verbs_ok() { local e; e=$(verbs "$@"); [ -z "$e" ] || { echo "# $*: $e"; return 1; }; }
verbs_fail() {
	local e
	e=$(verbs "${@:2}")
	[ "$e" = "$1" ] || { echo "# ${*:2}: '$e' and not '$1'"; return 1; }
}

# No processes in what is called in a loop: they are slow here.
# value FILE KEY: VALUE is the number behind the first KEY
value() {
	local line
	VALUE=0
	while read -r line; do
		[[ " $line" =~ " $2 "([0-9]+) ]] || continue
		VALUE=${BASH_REMATCH[1]}
		return
	done <"$DIR/$1"
}
# sum FILE KEY: VALUE is the sum over the lanes
sum() {
	local line
	VALUE=0
	while IFS= read -r line; do
		[[ "$line" =~ ^\ (.*\ )?"$2 "([0-9]+) ]] &&
			VALUE=$((VALUE + BASH_REMATCH[2]))
	done <"$DIR/$1"
}
is() { value "$1" "$2"; [ "$VALUE" = "$3" ]; }
more() { value "$1" "$2"; [ "$VALUE" -gt "$3" ]; }
more_sum() { sum "$1" "$2"; [ "$VALUE" -gt "$3" ]; }

# soon CONDITION...: until it holds; the limit is for machines that are very slow
soon() {
	local end=$((SECONDS + 120))
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

load() {
	trap 'rmmod qrdma_lanes 2>/dev/null' EXIT
	insmod "$(dirname "$(module_dir)")/../tests/tools/lanes/qrdma_lanes.ko" give_up=400 "$@" ||
		guest_fail "cannot load qrdma_lanes.ko"
	soon is rxe0:1 up 1 && soon is rxe1:1 up 1
}
unload() { rmmod qrdma_lanes; }

# background COUNT COMMAND...: the results go to files
background() {
	rm -f /tmp/lanes.*
	jobs_left=$1
	for i in $(seq "$1"); do
		verbs "${@:2}" >"/tmp/lanes.$i" &
	done
}
# joined TEXT: all of them ended with it
joined() {
	wait
	local i bad_jobs=0
	for i in $(seq "$jobs_left"); do
		[ "$(cat "/tmp/lanes.$i")" = "$1" ] || bad_jobs=$((bad_jobs + 1))
	done
	[ $bad_jobs = 0 ] || { echo "# $bad_jobs of $jobs_left not '$1'"; sort /tmp/lanes.* | uniq -c |
		sed 's/^/# /'; return 1; }
}
# running: traffic flows (again)
running() { sum rxe0:1 rx_packets; soon more_sum rxe0:1 rx_packets $((VALUE + 500)); }
# traffic COUNT SIZE: in the background, until stopped
traffic() { background "$1" echo $A $B 100000 "$2"; running; }
# stopped: all of it has arrived
stopped() { verbs_ok stop && joined ""; }

# What goes with the address or the link of end a
routes_again() {
	ip -4 route replace $B4 dev va src $A4 table 101
	ip neigh replace $B4 lladdr $MAC_B dev va nud permanent
	ip neigh replace $B6 lladdr $MAC_B dev va nud permanent
}

qps() { rdma res show qp 2>/dev/null | grep -c 'qrdma_lanes'; }

[ ! -d /sys/module/qrdma ] || qrdma_unload
load

# ---- messages ----
sizes_ok() {
	local size
	for size in 16 256 257 4096; do
		verbs_ok echo $A $B 30 $size || return 1
		verbs_ok echo $A6 $B6 30 $size || return 1
	done
}
check "every size arrives, IPv4 and IPv6" sizes_ok
check "small ones went inline" more_sum rxe0:1 tx_inline 0
sum rxe0:1 tx_posted
posted=$VALUE
sum rxe0:1 tx_signaled
check "most sends of a chain are not signalled" [ $((VALUE * 2)) -lt $posted ]
check "an oversize message is refused" verbs_fail "Message too long" oversize $A $B
check "the source address comes from the route" verbs_ok echo :: $B 10 100
check "two queue pairs per port, none per peer" [ "$(qps)" = 4 ]

# ---- peers ----
check "resolve again and again" verbs_ok resolve $A $B 300
check "cancel again and again" verbs_ok cancel $A $B 300
value peers resolved
verbs suspect $A $B
check "a suspected peer is asked again" soon more peers resolved "$VALUE"
check "the same answer replaces nothing" is peers replaced 0
echo 0 >$PARAM/peer_idle
verbs resolve $A $B 1
unused() { [ "$(grep -c '^peer.*users 0' $DIR/peers)" = 0 ]; }
check "a peer that nobody uses is forgotten" soon unused
check "fresh questions" verbs_ok resolve $A $B 30
echo 60 >$PARAM/peer_idle

# ---- addresses and neighbours ----
traffic 3 1000
value peers stale
ip addr del $A4/24 dev va
check "an address that goes is noticed" soon more peers stale "$VALUE"
ip addr add $A4/24 dev va noprefixroute
routes_again
check "the address comes back, so does the traffic" running
check "all of it" stopped

traffic 3 1000
value peers stale
ip link set vb address 52:54:00:09:01:99
ip neigh replace $B4 lladdr 52:54:00:09:01:99 dev va nud permanent
check "a neighbour that moves is noticed" soon more peers stale "$VALUE"
check "the traffic follows it" running
check "all of it (neighbour)" stopped
ip link set vb address $MAC_B
routes_again

# ---- a device that goes ----
verbs_ok hold 200
verbs_ok take 50
traffic 10 1000
verbs_ok reserve 1000
check "removal waits for nobody" rdma link del rxe0
check "its users are told" joined "No such device"
check "it is gone" [ ! -e $DIR/rxe0:1 ]
rdma link del rxe1
check "so is the other one" [ ! -e $DIR/rxe1:1 ]
check "no queue pair is left" [ "$(qps)" = 0 ]
check "without a device there is no address" verbs_fail "Cannot assign requested address" \
	resolve $A $B 1
verbs_ok release
verbs_ok give
rxe_add rxe0 va 0a09:0001 fd09:0000:0000:0000:0000:0000:0000:0001
rxe_add rxe1 vb 0a09:0002 fd09:0000:0000:0000:0000:0000:0000:0002
soon is rxe0:1 up 1
soon is rxe1:1 up 1
check "a device that comes back works" verbs_ok echo $A $B 100 1000
value rxe0:1 "rx_pool out"
out=$VALUE
sum rxe0:1 rx_posted
check "no buffer is lost" [ "$out" = "$VALUE" ]
sum rxe0:1 "tx_pool out"
check "no send is left over" [ "$VALUE" = 0 ]
unload

# ---- pools that run low ----
load lanes=1 rx_ring=32 rx_pool=1 tx_pool=1
check "hold what arrives" verbs_ok hold 240
background 1 echo $A $B 1000 1000
check "a pool that is low pauses the receives" soon more_sum rxe1:1 rx_pauses 0
verbs_ok release
check "they go on when there is memory again" joined ""
check "no more than there are send buffers" \
	verbs_fail "Resource temporarily unavailable" take 1000
background 1 echo $A $B 100 1000
verbs_ok give
check "senders go on when there are buffers again" joined ""
value rxe0:1 capacity
check "credit up to what the pool can hold" verbs_ok reserve "$VALUE"
check "and not more" verbs_fail "No buffer space available" reserve 1
verbs_ok unreserve "$VALUE"
check "again" verbs_ok reserve "$VALUE"
verbs_ok unreserve "$VALUE"
unload

# ---- nothing stays ----
check "the module is gone" [ ! -d /sys/module/qrdma_lanes ]
check "nothing is left of it" [ "$(qps)" = 0 ]
topology_down
echo "1..$n"
exit $bad
