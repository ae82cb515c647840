#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=1 time=600 short=yes
# The verbs layer alone: lanes, devices, peers, under everything that happens to
# a port (tests/tools/lanes/qrdma_lanes.c has the commands). The veth pair is
# one host to itself, twice: end a asks, end b echoes.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"

DIR=/sys/kernel/debug/qrdma
A=::ffff:$A4
B=::ffff:$B4
short=${QRDMA_SHORT:+1}
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

# value FILE KEY: the number behind the first KEY
value() { sed -n "s/.*\\<$2 \\([0-9]*\\).*/\\1/p" "$DIR/$1" | head -n 1; }
# sum FILE KEY: of the lanes
sum() { sed -n "s/^ .*\\<$2 \\([0-9]*\\).*/\\1/p" "$DIR/$1" | awk '{ s += $1 } END { print s + 0 }'; }
is() { [ "$(value "$1" "$2")" = "$3" ]; }
peers_gone() { is peers entries 0 && is peers tries 0; }

load() {
	insmod "$(dirname "$(module_dir)")/../tests/tools/lanes/qrdma_lanes.ko" "$@" ||
		guest_fail "cannot load qrdma_lanes.ko"
	wait_until 20 is rxe0:1 up 1 && wait_until 20 is rxe1:1 up 1
}
unload() { rmmod qrdma_lanes; }

rounds() { echo $((short ? ($1 + 9) / 10 : $1)); }

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
busy() { [ "$(sum rxe0:1 tx_posted)" -gt "$1" ]; }
# running: the background jobs have begun to send
running() { wait_until 30 busy $(($(sum rxe0:1 tx_posted) + 100)); }

qps() { rdma res show qp 2>/dev/null | grep -c 'qrdma_lanes'; }

[ ! -d /sys/module/qrdma ] || qrdma_unload
load

# ---- messages ----
sizes_ok() {
	local size
	for size in 16 255 256 257 1024 4095 4096; do
		verbs_ok echo $A $B "$(rounds 50)" $size || return 1
		verbs_ok echo $A6 $B6 "$(rounds 50)" $size || return 1
	done
}
check "every size arrives, IPv4 and IPv6" sizes_ok
check "small ones went inline" [ "$(sum rxe0:1 tx_inline)" -gt 0 ]
check "most sends of a chain are not signalled" \
	[ $(($(sum rxe0:1 tx_signaled) * 2)) -lt "$(sum rxe0:1 tx_posted)" ]
check "an oversize message is refused" verbs_fail "Message too long" oversize $A $B
check "the source address comes from the route" verbs_ok echo :: $B 10 100
check "two queue pairs per port, none per peer" [ "$(qps)" = 4 ]

# ---- peers ----
check "resolve again and again" verbs_ok resolve $A $B "$(rounds 1000)"
check "cancel again and again" verbs_ok cancel $A $B "$(rounds 1000)"
resolved=$(value peers resolved)
verbs suspect $A $B
more_resolved() { [ "$(value peers resolved)" -gt "$resolved" ]; }
check "a suspected peer is asked again" wait_until 30 more_resolved
check "the same answer replaces nothing" is peers replaced 0
check "no RDMA on that address" verbs_fail "Cannot assign requested address" \
	resolve ::ffff:127.0.0.1 $B 1
check "no multicast" verbs_fail "Invalid argument" resolve $A ::ffff:224.0.0.1 1
check "no mixed families" verbs_fail "Invalid argument" resolve $A6 $B 1
ip route add unreachable 10.77.0.0/16
check "no route" verbs_fail "No route to host" resolve :: ::ffff:10.77.0.1 1
echo 2000 >/sys/module/qrdma_lanes/parameters/resolve_ms
check "no such neighbour" verbs_fail "No route to host" resolve $A ::ffff:10.9.0.99 1
echo 10000 >/sys/module/qrdma_lanes/parameters/resolve_ms
echo 0 >/sys/module/qrdma_lanes/parameters/peer_idle
verbs resolve $A $B 1 >/dev/null
unused() { [ "$(grep -c '^peer.*users 0' $DIR/peers)" -le 2 ]; }
check "a peer that nobody uses is forgotten" wait_until 30 unused
check "fresh questions" verbs_ok resolve $A $B "$(rounds 200)"
tc qdisc add dev va root netem loss 40% limit 100000
hedged() { verbs_ok resolve $A $B 3 && verbs_ok resolve $A $B 3 && verbs_ok resolve $A $B 3; }
check "lost requests are repeated soon" hedged
tc qdisc del dev va root
echo 60 >/sys/module/qrdma_lanes/parameters/peer_idle

# ---- queue pairs that die ----
resets=$(sum rxe0:1 resets)
background 5 echo $A $B "$(rounds 3000)" 1000
running
reset_more() { [ "$(sum rxe0:1 resets)" -gt "$resets" ]; }
for i in 1 2 3 4 5 6 7 8 9 10; do
	resets=$(sum rxe0:1 resets)
	verbs_ok reset
	wait_until 30 reset_more
done
check "resets under load lose nothing for good" joined ""
check "and keep the queue pairs" [ "$(qps)" = 4 ]

background 5 echo $A $B "$(rounds 2000)" 1000
running
stale=$(value peers stale)
ip addr del $A4/24 dev va
peers_stale() { [ "$(value peers stale)" -gt "$stale" ]; }
check "an address that goes is noticed" wait_until 30 peers_stale
ip addr add $A4/24 dev va noprefixroute
ip -4 route replace $B4 dev va src $A4 table 101
ip neigh replace $B4 lladdr "$(mac_of vb)" dev va nud permanent
check "the address comes back, so does the traffic" joined ""

background 5 echo $A $B "$(rounds 2000)" 1000
running
ip link set va down
check "a link that goes down is noticed" wait_until 30 is rxe0:1 up 0
ip link set va up
ip addr add $A6/64 dev va nodad noprefixroute 2>/dev/null
ip -4 route replace $B4 dev va src $A4 table 101
ip neigh replace $B4 lladdr "$(mac_of vb)" dev va nud permanent
check "the link comes back" wait_until 30 is rxe0:1 up 1
check "so does the traffic" joined ""

# A drop at our own end: the device tries for ever, or the queue pair dies.
echo 500 >/sys/module/qrdma_lanes/parameters/tx_stall 2>/dev/null
background 2 echo $A $B "$(rounds 2000)" 1000
running
resets=$(sum rxe0:1 resets)
tc qdisc add dev va root netem delay 10s limit 2
check "a send that is stuck is noticed" wait_until 60 reset_more
tc qdisc del dev va root
check "the traffic goes on" joined ""

# ---- neighbours and MTU ----
background 3 echo $A $B "$(rounds 2000)" 1000
running
stale=$(value peers stale)
ip link set vb address 52:54:00:09:01:99
ip neigh replace $B4 lladdr 52:54:00:09:01:99 dev va nud permanent
check "a neighbour that moves is noticed" wait_until 30 peers_stale
check "the traffic follows it" joined ""
ip link set vb address 52:54:00:09:01:02
ip neigh replace $B4 lladdr 52:54:00:09:01:02 dev va nud permanent
ip neigh replace $B6 lladdr 52:54:00:09:01:02 dev va nud permanent

background 3 echo $A $B "$(rounds 2000)" 4096
running
ip link set va mtu 1500
check "a smaller MTU is noticed" wait_until 30 is rxe0:1 max_datagram 1020
ip link set vb mtu 1500
check "and respected" joined ""
check "an oversize message is refused (1024)" verbs_fail "Message too long" oversize $A $B
ip link set va mtu $LINK_MTU
ip link set vb mtu $LINK_MTU
wait_until 30 is rxe0:1 max_datagram 4092
wait_until 30 is rxe1:1 max_datagram 4092
check "a larger one, too" verbs_ok echo $A $B 20 4096

# ---- a device that goes ----
verbs_ok hold 200
verbs_ok take 50
background "$(rounds 50)" echo $A $B 20000 1000
running
verbs_ok reserve 1000
start=$(date +%s%N)
rdma link del rxe0
took=$((($(date +%s%N) - start) / 1000000))
check "removal waits for nobody ($took ms)" [ $took -lt 5000 ]
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
wait_until 20 is rxe0:1 up 1
wait_until 20 is rxe1:1 up 1
check "a device that comes back works" verbs_ok echo $A $B 100 1000
check "no buffer is lost" [ "$(value rxe0:1 'rx_pool out')" = "$(sum rxe0:1 rx_posted)" ]
check "no send is left over" [ "$(sum rxe0:1 'tx_pool out')" = 0 ]
unload

# ---- pools that run low ----
load lanes=1 rx_ring=32 rx_pool=1 tx_pool=1
check "hold what arrives" verbs_ok hold 240
background 1 echo $A $B 1000 1000
paused() { [ "$(sum rxe1:1 rx_pauses)" -gt 0 ]; }
check "a pool that is low pauses the receives" wait_until 60 paused
check "and grants no credit" verbs_fail "No buffer space available" reserve 1000000000
verbs_ok release
check "they go on when there is memory again" joined ""
check "no more than there are send buffers" \
	verbs_fail "Resource temporarily unavailable" take 1000
background 1 echo $A $B 100 1000
verbs_ok give
check "senders go on when there are buffers again" joined ""
unload

# ---- nothing stays ----
check "the module is gone" [ ! -d /sys/module/qrdma_lanes ]
check "nothing is left of it" [ "$(qps)" = 0 ]
echo "1..$n"
exit $bad
