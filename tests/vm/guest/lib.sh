# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Topologies for tests inside a test machine: sourced, runs nothing by itself.
#
#   topology_up      veth in one machine, pair in two; loads the RDMA modules
#   qrdma_load       loads qrdma.ko as built for the running kernel
#   qrdma_unload     removes it
#   link_loss ARGS   netem ARGS on what this machine sends (SIDR is spared)
#   link_clear       no netem any more
#   topology_down    takes the RDMA devices and the veth pair away
#
# Both topologies have the same addresses: end a is 10.9.0.1 and fd09::1, end
# b is 10.9.0.2 and fd09::2; netdev MTU 4200, which gives RoCE MTU 4096. In one
# machine a is rxe0 on va and b is rxe1 on vb; in two each has rxe0 on eth0.
# Neighbours are permanent: a cold entry costs an address resolution its whole
# time-out. TCP between a and b crosses the link too, in both topologies.

A4=10.9.0.1; A6=fd09::1; B4=10.9.0.2; B6=fd09::2
LINK_MTU=4200
# Source port of everything that rxe sends on QP 1, thus of SIDR.
SIDR_SPORT=55410
export A4 A6 B4 B6

guest_fail() {
	echo "guest: $*" >&2
	exit 1
}

# wait_until SECONDS COMMAND...: until it succeeds; states, not durations.
wait_until() {
	_left=$(($1 * 20))
	shift
	until "$@" >/dev/null 2>&1; do
		_left=$((_left - 1))
		[ "$_left" -gt 0 ] || return 1
		sleep 0.05
	done
}

rdma_modules() {
	for _m in ib_core rdma_cm ib_uverbs rdma_ucm rdma_rxe; do
		modprobe -q "$_m" || [ -d "/sys/module/$_m" ] ||
			guest_fail "cannot load $_m"
	done
}

# gid_has DEVICE TEXT: a GID of port 1 ends in TEXT
gid_has() {
	cat "/sys/class/infiniband/$1/ports/1/gids/"* 2>/dev/null | grep -q "$2\$"
}

# rxe_add DEVICE NETDEV V4SUFFIX V6SUFFIX: returns when its GIDs are there
rxe_add() {
	rdma link add "$1" type rxe netdev "$2" || guest_fail "no rxe on $2"
	wait_until 20 gid_has "$1" "$3" || guest_fail "no IPv4 GID on $1"
	wait_until 20 gid_has "$1" "$4" || guest_fail "no IPv6 GID on $1"
}

# The rules by which packets between two addresses of one machine take the
# wire: what comes in on an end is local, what goes to the other end leaves by
# the own end (also without a source address), and the local table is asked
# only after that. veth_rules 4|6 ADDRESS-A ADDRESS-B: lines for ip -batch
veth_rules() {
	cat <<-END
	rule add pref 10 iif va lookup local
	rule add pref 10 iif vb lookup local
	rule add pref 20 from $2 to $3 lookup 101
	rule add pref 20 from $3 to $2 lookup 102
	rule add pref 30 from all to $3 lookup 101
	rule add pref 30 from all to $2 lookup 102
	rule add pref 1000 lookup local
	rule del pref 0
	route add $3 dev va src $2 table 101
	route add $2 dev vb src $3 table 102
	neigh replace $3 lladdr $MAC_B dev va nud permanent
	neigh replace $2 lladdr $MAC_A dev vb nud permanent
	END
}

veth_up() {
	MAC_A=52:54:00:09:01:01 MAC_B=52:54:00:09:01:02
	echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
	ip -batch - <<-END || guest_fail "no veth pair"
	link add va address $MAC_A mtu $LINK_MTU type veth peer name vb address $MAC_B mtu $LINK_MTU
	link set va up
	link set vb up
	addr add $A4/24 dev va noprefixroute
	addr add $B4/24 dev vb noprefixroute
	addr add $A6/64 dev va nodad noprefixroute
	addr add $B6/64 dev vb nodad noprefixroute
	END
	for _dev in va vb; do
		echo 1 >"/proc/sys/net/ipv4/conf/$_dev/accept_local"
		echo 0 >"/proc/sys/net/ipv4/conf/$_dev/rp_filter"
	done
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	veth_rules 4 $A4 $B4 | ip -4 -batch - || guest_fail "IPv4 rules"
	veth_rules 6 $A6 $B6 | ip -6 -batch - || guest_fail "IPv6 rules"
	rxe_add rxe0 va 0a09:0001 fd09:0000:0000:0000:0000:0000:0000:0001
	rxe_add rxe1 vb 0a09:0002 fd09:0000:0000:0000:0000:0000:0000:0002
}

pair_up() {
	if [ "$QRDMA_HOST" = a ]; then _n=1; _p4=$B4; _p6=$B6; _pn=2
	else _n=2; _p4=$A4; _p6=$A6; _pn=1; fi
	ip neigh replace $_p4 lladdr 52:54:00:09:00:0$_pn dev eth0 nud permanent
	ip neigh replace $_p6 lladdr 52:54:00:09:00:0$_pn dev eth0 nud permanent
	rxe_add rxe0 eth0 0a09:000$_n fd09:0000:0000:0000:0000:0000:0000:000$_n
	vm-barrier topology-up
}

topology_up() {
	rdma_modules
	if [ "$QRDMA_HOSTS" -gt 1 ]; then pair_up; else veth_up; fi
}

topology_down() {
	for _dev in rxe0 rxe1; do
		[ ! -d /sys/class/infiniband/$_dev ] || rdma link del $_dev
	done
	[ ! -d /sys/class/net/va ] || ip link del va
	# The rules are there or not whatever became of the pair.
	ip rule | grep -q '^1000:' || return 0
	for _v in 4 6; do
		for _p in 10 10 20 20 30 30; do
			echo "rule del pref $_p"
		done | ip -$_v -batch -
		printf '%s\n' 'rule add pref 0 lookup local' \
			'rule del pref 1000' | ip -$_v -batch -
	done
}

# The netdevs that carry what this machine sends
link_devs() {
	if [ "$QRDMA_HOSTS" -gt 1 ]; then echo eth0; else echo va vb; fi
}

# netem on data packets only; its limit is far above any window, because rxe
# takes a local tail drop for an error of the queue pair and not for a loss.
link_loss() {
	link_clear
	for _dev in $(link_devs); do
		tc qdisc add dev "$_dev" root handle 1: prio bands 2 \
			priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
		tc qdisc add dev "$_dev" parent 1:1 handle 10: \
			netem limit 100000 "$@" || guest_fail "netem $*"
		tc filter add dev "$_dev" parent 1: protocol ip prio 1 u32 \
			match ip protocol 17 0xff \
			match ip sport $SIDR_SPORT 0xffff flowid 1:2
		tc filter add dev "$_dev" parent 1: protocol ipv6 prio 2 u32 \
			match ip6 protocol 17 0xff \
			match ip6 sport $SIDR_SPORT 0xffff flowid 1:2
	done
}

link_clear() {
	for _dev in $(link_devs); do
		tc qdisc del dev "$_dev" root 2>/dev/null || :
	done
	return 0
}

# Where "make module" leaves what it builds for the running kernel
module_dir() {
	echo "${QRDMA_MODULE_DIR:-$QRDMA_REPO/build/module/$QRDMA_KERNEL/net/qrdma}"
}

qrdma_load() {
	rdma_modules
	modprobe -q -a gcm ccm ecb chacha20poly1305 aesni_intel hmac sha256_generic
	insmod "$(module_dir)/qrdma.ko" "$@" || guest_fail "cannot load qrdma.ko"
}

qrdma_unload() {
	rmmod qrdma || guest_fail "cannot remove qrdma"
}
