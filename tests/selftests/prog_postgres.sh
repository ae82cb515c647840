#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=2 time=500 short=no
# PostgreSQL on b, unmodified, as a user without rights and without any other socket; psql and pgbench on a: queries, a benchmark of
# several clients, a large table out and in again, a query that is cancelled by a second connection, the end of the server
# under a client.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
. "$QRDMA_REPO/tests/vm/guest/programs.sh"
. "$QRDMA_REPO/scripts/env.sh"
PREFIX=$(program_dir postgresql-15) || { echo "# no PostgreSQL: scripts/setup.sh programs"; exit 4; }
CLIENTS=$(amount 4 16)
TRANSACTIONS=$(amount 10 500)
ROWS=$(amount 8000 1000000)
SCALE=1
PG=$DIR/pg

# The server's files where everybody may look for them; the cache need not be such a place.
server_files() {
	mkdir -p $PG $DIR/bin
	mount --bind "$PREFIX" $PG || guest_fail "no place for PostgreSQL"
	cp "$RUN" "$(dirname "$RUN")/libqrdma-preload.so" $DIR/bin
	mkdir -p $DIR/home
	chown nobody $DIR/home
}

as_nobody() { (cd $DIR/home && exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"); }

cluster() {
	as_nobody $PG/usr/lib/postgresql/15/bin/initdb -D $DIR/home/data -U postgres -A trust -E UTF8 --no-locale --no-sync \
		--no-instructions >$DIR/initdb.log 2>&1 || return
	cat >>$DIR/home/data/postgresql.conf <<-END
	listen_addresses = '$B4, $B6'
	unix_socket_directories = ''
	fsync = off
	jit = off
	log_connections = on
	tcp_keepalives_idle = 30
	tcp_keepalives_interval = 10
	tcp_keepalives_count = 6
	tcp_user_timeout = 60000
	client_connection_check_interval = 1000
	END
	cat >$DIR/home/data/pg_hba.conf <<-END
	host all,replication all $A4/32 trust
	host all,replication all $A6/128 trust
	END
}

serve() {
	server_files
	fact "a cluster is made" cluster
	(cd $DIR/home && exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \
		$DIR/bin/qrdma-run $PG/usr/lib/postgresql/15/bin/postgres -D $DIR/home/data) >$DIR/postgres.log 2>&1 &
	pid=$!
	STARTED="$STARTED $pid"
	fact "it listens" wait_until 60 listens 5432
}

BIN=$PREFIX/usr/lib/postgresql/15/bin
psql() { run "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 -d "$DB" "$@"; }
# The same in the background, with our standard input: sets $client
psql_stays() {
	{ "$RUN" "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 -d "$DB" "$@" <&4 4<&- 5>&- & } 4<&0
	client=$!
	STARTED="$STARTED $client"
}
says() { # says TEXT SQL
	_got=$(psql -c "$2")
	[ "$_got" = "$1" ] || { echo "# it says '$_got'"; return 1; }
}

# bench ARGUMENTS...: none of the transactions has failed, and all were done
bench() {
	_all=$((CLIENTS * TRANSACTIONS))
	run "$BIN/pgbench" -n -c "$CLIENTS" -j 2 -t "$TRANSACTIONS" "$@" "$DB" >$DIR/pgbench.log 2>&1 || return
	grep -q "actually processed: $_all/$_all\$" $DIR/pgbench.log && grep -q 'failed transactions: 0 ' $DIR/pgbench.log
}

# The sum of all balances is the same in each table, or else a transaction was done in part.
balanced() {
	says t "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(bbalance) FROM pgbench_branches)
		AND (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(tbalance) FROM pgbench_tellers)
		AND (SELECT count(*) FROM pgbench_history) = $1"
}

# A table to a's file, that file into another table, and that one to a file again
copy() {
	psql -c "DROP TABLE IF EXISTS one, two; CREATE TABLE two (n int, t text);
		CREATE TABLE one AS SELECT n, repeat(md5(n::text), 5) AS t FROM generate_series(1, $ROWS) n" 2>$DIR/copy.log &&
		psql -c "\\copy (SELECT * FROM one ORDER BY n) TO '$DIR/one'" &&
		psql -c "\\copy two FROM '$DIR/one'" &&
		psql -c "\\copy (SELECT * FROM two ORDER BY n) TO '$DIR/two'" &&
		[ "$(wc -l <$DIR/two)" = "$ROWS" ] && cmp $DIR/one $DIR/two &&
		says t "SELECT (SELECT md5(string_agg(t, ',' ORDER BY n)) FROM one) = (SELECT md5(string_agg(t, ',' ORDER BY n)) FROM two)"
}

sleeping() { says 1 "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"; }
cancelled() {
	psql_stays -c "SELECT pg_sleep(10000)" 2>$DIR/cancel.log
	wait_until 60 sleeping || return
	kill -INT "$client"
	! wait "$client" && grep -q 'canceling statement due to user request' $DIR/cancel.log
}

# By IPv6, and the server takes the whole name of whom it talks to from the socket
by_ipv6() {
	DB="host=$B6 user=postgres dbname=postgres gssencmode=disable"
	says "$A6|$B6|5432" "SELECT host(inet_client_addr()), host(inet_server_addr()), inet_server_port()"
	_rc=$?
	DB=$DB4
	return $_rc
}

# A client that is gone in the middle of a query is noticed
given_up() {
	psql_stays -c "SELECT pg_sleep(10000)" 2>$DIR/killed.log
	wait_until 60 sleeping || return
	kill -KILL "$client"
	wait "$client"
	wait_until 60 fails sleeping
}

DB4="host=$B4 user=postgres dbname=postgres gssencmode=disable keepalives_idle=30 keepalives_count=5 tcp_user_timeout=60000"
DB=$DB4

use() { # use ROUND
	fact "$1: who talks to whom" says "$A4|$B4|5432" "SELECT host(inet_client_addr()), host(inet_server_addr()), inet_server_port()"
	fact "$1: by IPv6" by_ipv6
	fact "$1: tables for the benchmark" run "$BIN/pgbench" -q -i -I dtGp -s $SCALE "$DB" 2>$DIR/init.log
	fact "$1: $CLIENTS clients" bench
	fact "$1: and with prepared statements, a connection for each transaction" bench -M prepared -C
	fact "$1: which left the sums as they should be" balanced $((2 * CLIENTS * TRANSACTIONS))
	fact "$1: $ROWS rows out, in, and out" copy
	fact "$1: a query is cancelled" cancelled
	fact "$1: a client that was killed is noticed" given_up
}

ready_to_end() { [ "$(wc -l <$DIR/last)" -ge 1 ]; }

programs_begin
if [ "$QRDMA_HOST" = b ]; then
	serve
	vm-barrier serving
else
	vm-barrier serving
	use clean
	TRANSACTIONS=$((TRANSACTIONS / 2))
	ROWS=$((ROWS / 4))
fi
lossy_round
if [ "$QRDMA_HOST" = b ]; then
	vm-barrier used
	fact "the server ends well, with a client there" stop "$pid" INT
	umount $PG
else
	use lossy
	mkfifo $DIR/sql
	exec 5<>$DIR/sql
	psql_stays <$DIR/sql >$DIR/last 2>$DIR/last.err
	exec 5>$DIR/sql
	echo "SELECT 'here';" >&5
	fact "a client stays" wait_until 60 ready_to_end
	vm-barrier used
	server_gone() { ! says 1 "SELECT 1" 2>/dev/null; }
	fact "until the server has gone" wait_until 60 server_gone
	echo "SELECT 'still here';" >&5
	exec 5>&-
	fact "then it fails" fails wait "$client"
	fact "and had the server's last words" grep -q 'terminating connection due to administrator command' $DIR/last.err
fi
programs_end
