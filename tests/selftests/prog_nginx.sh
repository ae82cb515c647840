#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=2 time=500 short=no
# nginx on b, unmodified, and curl and wrk on a: many requests on one connection, one connection for each request, a large file by
# sendfile, an upload, hundreds of requests on many connections, a proxy that comes by loopback TCP and goes on by AF_QRDMA; reload and
# upgrade of the program while requests come, none of which fails (F54); and a graceful end, behind which a download is whole.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
. "$QRDMA_REPO/tests/vm/guest/programs.sh"
. "$QRDMA_REPO/scripts/env.sh"
PREFIX=$(program_dir nginx) || { echo "# no nginx: scripts/setup.sh programs"; exit 4; }
REQUESTS=$(amount 100 5000)
CLIENTS=$(amount 20 200)
SECONDS_OF_WRK=$(amount 2 30)
RELOADS=$(amount 1 20)
SIZE=$(amount 1500000 200000000)
URL=http://$B4:8080

# What both hosts' nginx have in common; the rest of the configuration comes from standard input
nginx_start() {
	mkdir -p $DIR/www/upload $DIR/temp
	chown www-data $DIR/www/upload $DIR/temp
	{
		cat <<-END
		user www-data;
		worker_processes 2;
		pid $DIR/nginx.pid;
		error_log $DIR/nginx-error.log notice;
		# Workers and a program that takes over get no environment but this.
		env LD_PRELOAD;
		env QRDMA_RUN;
		events { worker_connections 1024; }
		http {
		include $PREFIX/etc/nginx/mime.types;
		access_log off;
		client_body_temp_path $DIR/temp/body;
		proxy_temp_path $DIR/temp/proxy;
		fastcgi_temp_path $DIR/temp/fastcgi;
		scgi_temp_path $DIR/temp/scgi;
		uwsgi_temp_path $DIR/temp/uwsgi;
		client_max_body_size 0;
		keepalive_requests 100000;
		END
		cat
		echo "}"
	} >$DIR/nginx.conf
	: >$DIR/nginx-error.log
	fact "nginx becomes a daemon" run "$PREFIX/usr/sbin/nginx" -c $DIR/nginx.conf -e $DIR/nginx-error.log
	pid=$(cat $DIR/nginx.pid)
	STARTED="$STARTED $pid"
}

serve() {
	nginx_start <<-END
	sendfile on;
	tcp_nopush on;
	server {
		listen $B4:8080 so_keepalive=60s:10s:5 backlog=300;
		listen [$B6]:8080 ipv6only=on;
		listen $B4:8081 deferred;
		root $DIR/www;
		location /upload/ { dav_methods PUT; }
	}
	END
	fact "nginx listens" wait_until 60 listens 8080
	seq 1 9999999 | head -c "$SIZE" >$DIR/www/large
	echo "a small file" >$DIR/www/small
	vm-put large-sum "$(sha256sum <$DIR/www/large)"
}

# Loopback belongs to TCP: who asks this one is no program of ours.
proxy() {
	nginx_start <<-END
	upstream b { server $B4:8080; keepalive 2; }
	server {
		listen 127.0.0.1:8000;
		location / { proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
	END
}

get() { run curl -sS --no-progress-meter --fail --max-time 120 "$@"; }
sum_is() { [ "$(sha256sum <"$1")" = "$2" ]; }

# requests CONNECTIONS CURL-ARGUMENTS...: all of them succeed, on so many connections
requests() {
	_connections=$1
	shift
	get -o /dev/null -w '%{http_code} %{num_connects}\n' "$@" "$URL/small?[1-$REQUESTS]" >$DIR/codes || return
	awk -v requests="$REQUESTS" -v connections="$_connections" '{ n += $1 == 200; c += $2 }
		END { print "# " n " requests, " c " connections"; exit n != requests || c > connections || c < 1 }' $DIR/codes
}

download() { # download URL
	get -o $DIR/large "$1" && sum_is $DIR/large "$LARGE_SUM"
}

upload() {
	get -T $DIR/large "$URL/upload/$1" && get -o $DIR/large "$URL/upload/$1" && sum_is $DIR/large "$LARGE_SUM"
}

# wrk knows no number of requests, only seconds: it is asked whether anything was wrong.
hammer() {
	run wrk -t 2 -c "$CLIENTS" -d "$SECONDS_OF_WRK" --timeout 60 "$1" >$DIR/wrk.log 2>&1 || return
	grep 'requests in' $DIR/wrk.log | sed 's/^ */# wrk: /' || return
	! grep -E 'Socket errors|Non-2xx| 0 requests' $DIR/wrk.log
}

proxied_one() { curl -sS --fail -o /dev/null http://127.0.0.1:8000/small; }
proxied() {
	curl -sS --fail -o $DIR/large http://127.0.0.1:8000/large && sum_is $DIR/large "$LARGE_SUM" &&
		curl -sS --fail -o /dev/null "http://127.0.0.1:8000/small?[1-20]"
}

use() { # use ROUND
	fact "$1: $REQUESTS requests on one connection" requests 1
	fact "$1: $REQUESTS requests on $CLIENTS connections" requests "$REQUESTS" --parallel --parallel-max "$CLIENTS"
	fact "$1: a connection for each request" requests "$REQUESTS" -H "Connection: close"
	fact "$1: a large file by sendfile" download "$URL/large"
	fact "$1: by IPv6" download "http://[$B6]:8080/large"
	fact "$1: a large file sent there and fetched again" upload "$1"
	fact "$1: wrk with $CLIENTS connections" hammer "$URL/small"
	fact "$1: wrk, at a listener that waits for data (TCP_DEFER_ACCEPT)" hammer "http://$B4:8081/small"
	fact "$1: through a proxy that came by TCP" proxied
}

# --- Requests that go on and on while the server changes

load() { # load CURL-ARGUMENTS...: until somebody says stop; a line for each request that was answered
	while [ ! -e $DIR/stop ]; do
		get -o /dev/null -w '%{http_code}\n' "$@" "$URL/small?[1-10]" >>$DIR/load.codes || return
	done
}

answered() { wc -l <$DIR/load.codes; }
more_answered() { [ "$(answered)" -ge "$_until" ]; }
goes_on() { # 30 requests later, of three loads
	_until=$(($(answered) + 30))
	wait_until 60 more_answered
}

under_load() {
	rm -f $DIR/stop
	: >$DIR/load.codes
	load & one=$!
	load -H "Connection: close" & two=$!
	load --parallel --parallel-max 10 & three=$!
	for change; do
		fact "requests are answered" goes_on
		vm-barrier "before-$change"
		vm-barrier "after-$change"
	done
	fact "and go on to be" goes_on
	: >$DIR/stop
	fact "no request on few connections has failed" wait $one
	fact "nor of those with a connection each" wait $two
	fact "nor of many at a time" wait $three
	fact "all $(answered) are good" fails grep -qvx 200 $DIR/load.codes
}

workers() { pgrep -P "$1" | sort; }
shut_down() { for _pid in $_old; do [ ! -e "/proc/$_pid" ] || return 1; done; }
two_workers() { [ "$(workers "$1" | wc -l)" = 2 ]; }
new_master() { [ -s $DIR/nginx.pid.oldbin ] && [ -s $DIR/nginx.pid ] && two_workers "$(cat $DIR/nginx.pid)"; }

reload() {
	_old=$(workers "$1")
	kill -HUP "$1"
	fact "reload: the old workers are done, and leave" wait_until 120 shut_down
	fact "reload: there are new ones" wait_until 60 two_workers "$1"
}

# A new program takes over the listeners, then the old one leaves. Sets $pid to the new one's.
upgrade() {
	kill -USR2 "$1"
	fact "upgrade: the new program runs beside the old one" wait_until 60 new_master
	pid=$(cat $DIR/nginx.pid)
	STARTED="$STARTED $pid"
	kill -QUIT "$1"
	fact "upgrade: the old one ends" wait_until 120 gone "$1"
}

begun() { [ "$(stat -c %s $DIR/slow 2>/dev/null || echo 0)" -gt 100000 ]; }
gone() { [ ! -e "/proc/$1" ]; }

changes=$(seq -s ' ' 1 "$RELOADS")
programs_begin
if [ "$QRDMA_HOST" = b ]; then
	serve
	vm-barrier serving
else
	LARGE_SUM=$(vm-get large-sum)
	proxy
	vm-barrier serving
	fact "the proxy listens" wait_until 60 proxied_one
	use clean
	REQUESTS=$((REQUESTS / 4))
fi
lossy_round
if [ "$QRDMA_HOST" = b ]; then
	for change in $changes; do
		vm-barrier "before-$change"
		reload "$pid"
		vm-barrier "after-$change"
	done
	vm-barrier before-upgrade
	upgrade "$pid"
	vm-barrier after-upgrade
	vm-barrier downloading
	kill -QUIT "$pid"
	vm-barrier quitting
	fact "nginx ends" wait_until 120 gone "$pid"
	fact "and had nothing to complain of" fails grep -E '\[(warn|error|crit|alert|emerg)\]' $DIR/nginx-error.log
else
	use lossy
	# shellcheck disable=SC2086
	under_load $changes upgrade
	get --limit-rate $((SIZE / 5)) -o $DIR/slow "$URL/large" & slow=$!
	fact "a slow download begins" wait_until 60 begun
	vm-barrier downloading
	vm-barrier quitting
	fact "and ends well, though the server was told to end" wait $slow
	fact "and is whole" sum_is $DIR/slow "$LARGE_SUM"
	kill -QUIT "$pid"
	fact "the proxy ends" wait_until 60 gone "$pid"
	fact "and had nothing to complain of" fails grep -E '\[(warn|error|crit|alert|emerg)\]' $DIR/nginx-error.log
fi
programs_end
