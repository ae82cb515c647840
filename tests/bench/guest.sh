#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Inside the machine that counts: run the plan, a line at a time.
#
# usage: guest.sh PLAN
#
#	topology MTU		a veth pair of that MTU with rxe on both ends, the module
#	offload on|off		segmentation offloads of the pair
#	run ARGS...		qbench ARGS
#	aead ARGS...		the module that seals and opens without sending
#
# A line that fails is told on standard error, and the rest goes on; exit 1 then.
# Without a topology there is nothing to go on with: exit 2.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"

OUT=$QRDMA_REPO/build/bench
# The most that one measurement may take, seconds of this machine's clock: what
# works takes less than one, but while a file is read from the host the clock
# leaps from timer to timer, this one among them
LIMIT=3000

# Host a is CPU 0 and host b is CPU 1 where there are two: packets are worked
# off by the CPU of the host that they come to.
steer() {
	[ "$(nproc)" -gt 1 ] || return 0
	echo 1 >/sys/class/net/va/queues/rx-0/rps_cpus
	echo 2 >/sys/class/net/vb/queues/rx-0/rps_cpus
}

# While this machine waits for a file of the host its clock runs on to the next
# timer: a time-out of the crypto API may strike before the module that it
# waits for is read. What was read stays in memory, so again is better.
bench_load() {
	for _try in 1 2 3 4 5; do
		! (qrdma_load) || return 0
	done
	return 1
}

bench_topology() {
	if [ -d /sys/module/qrdma ]; then
		# closed sockets deliver and drain in the background
		wait_until 60 rmmod qrdma || return 1
		topology_down
	fi
	LINK_MTU=$1
	topology_up
	steer
	bench_load || return 1
	# where everything is now: a module may come to lie elsewhere
	cat /proc/kallsyms >>/mnt/share/kallsyms
}

bench_offload() {
	for dev in va vb; do
		ethtool -K $dev tso "$1" gso "$1" gro "$1" || return 1
	done
}

# All that is run is in memory before anything is measured.
prepare() {
	: >/mnt/share/kallsyms
	insmod "$(module_dir)/../../tests/tools/qrdma_aead_bench.ko"
	cp "$OUT/qbench" /tmp/qbench
	modprobe tls
	# rsocket spins for 10 us before it sleeps, by default; on one CPU that only
	# keeps the other side from running.
	mkdir -p /etc/rdma/rsocket
	echo 0 >/etc/rdma/rsocket/polling_time
	echo 0 >/proc/sys/kernel/randomize_va_space
}

bad=0
prepare
while read -r verb args; do
	case $verb in
	topology) (bench_topology "$args") || exit 2 ;;
	offload) bench_offload "$args" ;;
	# shellcheck disable=SC2086
	run) timeout -k 5 $LIMIT /tmp/qbench $args ;;
	aead) echo "$args" >/sys/module/qrdma_aead_bench/parameters/run ;;
	"#"*|"") ;;
	*) echo "guest: unknown line '$verb'" >&2; false ;;
	esac </dev/null || {
		echo "guest: failed: $verb $args" >&2
		bad=1
	}
done <"$1"
exit $bad
