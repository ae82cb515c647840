#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=2 time=400 short=no
# redis on both hosts, unmodified: its benchmark from a with all kinds of requests, pipelines, large values and one connection for each
# request (F47); then two replicas at a, which a forked child of the server feeds (F56) while others write, without loss and with it.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
. "$QRDMA_REPO/tests/vm/guest/programs.sh"
SHORT_CONNECTIONS=$(amount 500 200000)
REQUESTS=$(amount 100 10000)
KEYS=$(amount 5000 200000)

# redis_serve NAME ADDRESS PORT ARGUMENTS...: asked by its local socket $DIR/NAME.sock, too
redis_serve() {
	_name=$1 _address=$2 _port=$3
	shift 3
	start "$_name" $DIR/redis-server --bind "$_address" --port "$_port" --unixsocket "$DIR/$_name.sock" --save '' --appendonly no \
		--protected-mode no --enable-debug-command yes --dir $DIR "$@"
	fact "$_name listens" wait_until 60 listens "$_port"
}

ask() { # ask NAME COMMAND...: by its local socket
	_sock=$DIR/$1.sock
	shift
	redis-cli -s "$_sock" "$@"
}

info() { ask "$1" info replication | tr -d '\r' | sed -n "s/^$2://p"; }

# benchmark COUNT ARGUMENTS...: so many kinds of requests were measured, and the program had nothing to complain of
benchmark() {
	_count=$1
	shift
	run redis-benchmark -h $B4 --csv "$@" >$DIR/bench.log 2>$DIR/bench-errors.log || return
	# It says so of each run without keep-alive.
	fails grep -v 'WARNING: Keepalive disabled' $DIR/bench-errors.log || return
	[ "$(grep -c '^"[^"]*","[0-9.]*"' $DIR/bench.log)" = "$_count" ]
}

# One connection for each request leaves nothing at either end: QPs, AHs, memory regions, slabs
short_connections() {
	fact "nothing is held" wait_until 60 quiet
	slabs_take
	held >$DIR/held
	vm-barrier redis-counted
	if [ "$QRDMA_HOST" = a ]; then
		fact "$SHORT_CONNECTIONS connections of one request each" benchmark 1 -k 0 -c 20 -n "$SHORT_CONNECTIONS" -t set
	fi
	vm-barrier redis-short
	fact "nothing is held" wait_until 60 quiet
	held >$DIR/held.now
	fact "all counts are what they were" diff $DIR/held $DIR/held.now
	fact "no slab cache has grown with them" fails slabs_grown $((SHORT_CONNECTIONS / 2))
}

# It has what was written before it was asked; the server may have pinged since.
in_step() { [ "$(info "$1" master_link_status)" = up ] && [ "$(info "$1" master_repl_offset)" -ge "$MASTER_OFFSET" ]; }
replicas() { [ "$(info master connected_slaves)" = 2 ]; }
syncs() { ask master info stats | tr -d '\r' | sed -n "s/^$1://p"; }

# same ROUND: both replicas have all that the master has, when nobody writes any more
same() {
	if [ "$QRDMA_HOST" = b ]; then
		fact "$1: two replicas" wait_until 60 replicas
		vm-barrier "redis-written-$1"
		vm-put "redis-offset-$1" "$(info master master_repl_offset)"
		vm-put "redis-digest-$1" "$(ask master debug digest) $(ask master dbsize)"
		vm-barrier "redis-same-$1"
		return
	fi
	run redis-benchmark -h $B4 -c 4 -n $((KEYS / 2)) -r "$KEYS" -d 200 -t set -q >$DIR/bench.log || guest_fail "$1: nobody writes"
	vm-barrier "redis-written-$1"
	MASTER_OFFSET=$(vm-get "redis-offset-$1")
	for name in replica1 replica2; do
		fact "$1: $name is in step" wait_until 60 in_step $name
		fact "$1: $name has what the master has" \
			[ "$(vm-get "redis-digest-$1")" = "$(ask $name debug digest) $(ask $name dbsize)" ]
	done
	vm-barrier "redis-same-$1"
}

# A full copy to both at once, and then what a broken link has missed
replication() { # replication ROUND
	if [ "$QRDMA_HOST" = a ]; then
		for name in replica1 replica2; do
			redis_serve $name $A4 "638${name#replica}" --replicaof $B4 6379
			eval "$name=$pid"
		done
	fi
	same "$1"
	if [ "$QRDMA_HOST" = b ]; then
		_full=$(syncs sync_full)
		ask master client kill type replica >/dev/null
	fi
	vm-barrier "redis-broken-$1"
	same "$1-again"
	if [ "$QRDMA_HOST" = b ]; then
		fact "$1: no second copy was needed" [ "$(syncs sync_full)" = "$_full" ]
	else
		for name in replica1 replica2; do
			ask $name shutdown nosave
			eval "wait \$$name" || guest_fail "$name did not end well"
		done
	fi
	vm-barrier "redis-end-$1"
}

programs_begin 6379
# the server's program, in the package that starts no daemon when it is installed
ln -s "$(command -v redis-check-rdb)" $DIR/redis-server
if [ "$QRDMA_HOST" = b ]; then
	redis_serve master $B4 6379 --repl-diskless-sync yes --repl-diskless-sync-max-replicas 2 --repl-backlog-size 64mb
	MASTER=$pid
fi
vm-barrier serving
if [ "$QRDMA_HOST" = a ]; then
	fact "all kinds of requests" benchmark 20 -c 4 -n "$REQUESTS"
	fact "in pipelines" benchmark 2 -c 4 -n $((REQUESTS * 50)) -P 16 -t set,get
	fact "with values of 2 MB" benchmark 2 -c 2 -n $((REQUESTS / 4)) -d 2000000 -t set,get
fi
vm-barrier redis-measured
short_connections
[ "$QRDMA_HOST" = a ] || ask master debug populate "$KEYS" key 500
replication clean
lossy_round
if [ "$QRDMA_HOST" = a ]; then
	fact "loss: all kinds of requests" benchmark 20 -c 4 -n $((REQUESTS / 4))
	fact "loss: a connection for each request" benchmark 1 -k 0 -c 20 -n $((SHORT_CONNECTIONS / 20)) -t get
fi
replication loss
if [ "$QRDMA_HOST" = b ]; then
	ask master shutdown nosave
	fact "the server ends" wait "$MASTER"
fi
programs_end
