#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Inside a test machine: run tests one after the other, and print TAP.
#
# usage: selftests.sh NAME:SECONDS...
#
# Each test starts with the topology up (lib.sh), no loss on the link and the
# module loaded; it may break all of that.  With two hosts both run the same
# list in step, and a test passes when it passes on both.  The last result is
# that of the clean-up: modules gone, nothing left behind.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"

ready() {
	[ -d /sys/class/infiniband/rxe0 ] || topology_up
	link_clear
	[ -d /sys/module/qrdma ] || qrdma_load
}

# together NAME RC: the worse of both hosts' results (host b's return value
# is of no further use)
together() {
	[ "$QRDMA_HOSTS" -gt 1 ] || return "$2"
	vm-put "$1-$QRDMA_HOST" "$2"
	theirs=$(vm-get "$1-$other") || return 1
	vm-barrier "$1-done"
	case $2:$theirs in
	0:0) return 0 ;;
	0:4|4:0|4:4) return 4 ;;
	0:*) echo "    # host $other: exit code $theirs"; return "$theirs" ;;
	*) return "$2" ;;
	esac
}

report() {
	case $2 in
	0) echo "ok $n $1" ;;
	4) echo "ok $n $1 # SKIP see above" ;;
	124) echo "not ok $n $1 # time is up"; bad=1 ;;
	*) echo "not ok $n $1 # exit code $2"; bad=1 ;;
	esac
}

# Ends the process $2 when the other host's part of the test $1 has ended badly: nobody comes to its barriers any more.
watch_other() {
	case $(vm-get "$1-$other" 2>/dev/null) in
	0|4) ;;
	*) echo "# host $other has failed" && kill "$2" ;;
	esac
}

# guarded NAME SECONDS
guarded() {
	set -- "$1" timeout -k 5 "$2" "$QRDMA_REPO/tests/selftests/$1.sh"
	if [ "$QRDMA_HOSTS" -lt 2 ]; then
		shift
		"$@" 2>&1
		return
	fi
	(shift; exec "$@" 2>&1) &
	test=$!
	watch_other "$1" $test &
	watch=$!
	wait $test
	rc=$?
	kill $watch 2>/dev/null
	return $rc
}

run_test() {
	echo "qrdma-vm: test $1" >/dev/kmsg
	{
		(ready) && guarded "$1" "$2"
		echo $? >"/run/vm/rc-$1"
	} | sed -u 's/^/    /'
	together "$1" "$(cat "/run/vm/rc-$1")"
	report "$1" $?
}

# Nothing of ours may be left once the module is gone.
clean_up() {
	link_clear
	[ ! -d /sys/module/qrdma ] || rmmod qrdma || return 1
	[ "$QRDMA_HOSTS" -lt 2 ] || vm-barrier clean-up
	for module in $(cut -d ' ' -f 1 /proc/modules | grep '^qrdma'); do
		rmmod "$module" || return 1
	done
	if grep -i qrdma /proc/slabinfo /proc/net/protocols; then
		echo "# left behind"
		return 1
	fi
	topology_down
	[ "$QRDMA_KERNEL" != stock ] || modprobe -r rdma_rxe
}

if [ "$QRDMA_HOST" = a ]; then other=b; else other=a; fi
n=0
bad=0
echo "TAP version 13"
echo "1..$(($# + 1))"
for item; do
	n=$((n + 1))
	run_test "${item%:*}" "${item#*:}"
done
n=$((n + 1))
(clean_up) >/run/vm/clean-up 2>&1
rc=$?
sed 's/^/    /' /run/vm/clean-up
report clean-up $rc
exit $bad
