#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vm: hosts=2 time=300 short=no
# OpenSSH, unmodified: sshd on b, ssh, scp and sftp on a. Exit codes, bytes both ways and line by line, a terminal, a tree of files there
# by scp and back by sftp, forwarded ports, sessions that share a connection; sshd runs itself anew for each connection and closes what
# descriptors it finds (F52), and again when it is told to reload.
. "$QRDMA_REPO/tests/vm/guest/lib.sh"
. "$QRDMA_REPO/tests/vm/guest/programs.sh"
. "$QRDMA_REPO/scripts/env.sh"
PREFIX=$(program_dir openssh-server) || { echo "# no sshd: scripts/setup.sh programs"; exit 4; }
TREE=$(amount Documentation "Documentation include net scripts tests userspace")
LINES=$(amount 30 1000)
SIZE=$(amount 500000 50000000)
# The home of who logs in at b
THERE=$DIR/there

sshd_up() {
	grep -q '^sshd:' /etc/passwd || echo 'sshd:x:74:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
	# Who logs in has a home without anybody's dot files.
	echo "visitor:x:1000:65534::$THERE:/bin/sh" >>/etc/passwd
	echo 'visitor:*:20000:0:99999:7:::' >>/etc/shadow
	mkdir -p -m 755 /run/sshd $THERE
	cp "$PREFIX/usr/lib/openssh/sftp-server" $DIR
	chown 1000 $THERE
	ssh-keygen -q -t ed25519 -N '' -f $DIR/host_key
	vm-put ssh-host-key "$(cat $DIR/host_key.pub)"
	vm-get ssh-user-key >$DIR/authorized_keys
	cat >$DIR/sshd_config <<-END
	ListenAddress $B4:2222
	ListenAddress [$B6]:2222
	HostKey $DIR/host_key
	AuthorizedKeysFile $DIR/authorized_keys
	PrintMotd no
	PrintLastLog no
	PasswordAuthentication no
	KbdInteractiveAuthentication no
	StrictModes no
	UseDNS no
	PidFile $DIR/sshd.pid
	Subsystem sftp $DIR/sftp-server
	ClientAliveInterval 20
	LogLevel VERBOSE
	END
	start sshd "$PREFIX/usr/sbin/sshd" -D -e -f $DIR/sshd_config
	fact "sshd listens" wait_until 60 listens 2222
}

client_up() {
	ssh-keygen -q -t ed25519 -N '' -f $DIR/user_key
	vm-put ssh-user-key "$(cat $DIR/user_key.pub)"
	echo "b $(vm-get ssh-host-key)" >$DIR/known_hosts
	cat >$DIR/ssh_config <<-END
	Host b six
		HostName $B4
		Port 2222
		User visitor
		HostKeyAlias b
		IdentityFile $DIR/user_key
		IdentitiesOnly yes
		UserKnownHostsFile $DIR/known_hosts
		StrictHostKeyChecking yes
		BatchMode yes
		ServerAliveInterval 20
	END
	sed -i "s/^Host b six/&\nMatch originalhost six\n\tHostName $B6\nMatch all/" $DIR/ssh_config
	seq 1 9999999 | head -c "$SIZE" >$DIR/bytes
}

to_b() { run ssh -F $DIR/ssh_config "$@"; }
# The same in the background, with our standard input and without the other ends of our pipes: sets $session
stay_at_b() {
	{ "$RUN" ssh -F $DIR/ssh_config "$@" <&4 4<&- 5>&- 6>&- 7>&- & } 4<&0
	session=$!
	STARTED="$STARTED $session"
}
exits_with() { # exits_with CODE COMMAND...
	_code=$1
	shift
	"$@"
	[ $? = "$_code" ]
}

echoes() { # echoes SSH-ARGUMENTS...: all bytes come back
	to_b "$@" b cat <$DIR/bytes >$DIR/bytes.back && cmp $DIR/bytes $DIR/bytes.back
}

# One line at a time, each answered before the next is sent; arguments are those of ssh
line_by_line() {
	rm -f $DIR/ask $DIR/answer
	mkfifo $DIR/ask $DIR/answer
	exec 5<>$DIR/ask 6<>$DIR/answer
	stay_at_b "$@" <$DIR/ask >$DIR/answer
	exec 5>$DIR/ask 6<$DIR/answer
	_n=0
	while [ $_n -lt "$LINES" ]; do
		_n=$((_n + 1))
		echo "line $_n" >&5
		IFS= read -r _line <&6 || break
		[ "$_line" = "got line $_n" ] || break
	done
	exec 5>&- 6<&-
	wait $session && [ "$_line" = "got line $LINES" ]
}

# A terminal at b's end, which says what it is and how it ends
terminal() {
	to_b -tt b 'stty -onlcr; tty; read -r word; echo "word $word"; exit 3' >$DIR/tty.out <<-END
	hello
	END
	[ $? = 3 ] && grep -q '^/dev/pts/' $DIR/tty.out && grep -q '^word hello' $DIR/tty.out
}

# The trees of the repository: there by scp, sums of all files there, back by sftp
tree() { # tree NAME
	_there=$THERE/$1
	(
		cd "$QRDMA_REPO" || exit 1
		to_b b "mkdir $_there" &&
			run scp -q -F $DIR/ssh_config -r $TREE "b:$_there" &&
			find $TREE -type f -exec sha256sum {} + >$DIR/sums &&
			to_b b "cd $_there && sha256sum --quiet -c && find . -type f | wc -l" <$DIR/sums >$DIR/count
	) || return
	[ "$(cat $DIR/count)" = "$(wc -l <$DIR/sums)" ] || return
	echo "# $(wc -l <$DIR/sums) files"
	echo "get -r $_there $DIR" | run sftp -q -F $DIR/ssh_config -b - b >$DIR/sftp.log || return
	(cd "$DIR/$1" && sha256sum --quiet -c $DIR/sums)
}

old_scp() {
	run scp -O -q -F $DIR/ssh_config $DIR/bytes b:bytes.old && run scp -O -q -F $DIR/ssh_config b:bytes.old $DIR/bytes.back &&
		cmp $DIR/bytes $DIR/bytes.back
}

tcp_listens() { ss -Hltn "sport = :$1" | grep -q .; }

# Both ends of a forwarded port are loopback, and so TCP: between the hosts it is AF_QRDMA. At b, port 9001 echoes.
forwarded() {
	socat "TCP-LISTEN:9003,bind=127.0.0.1,reuseaddr,fork" EXEC:cat &
	_here=$!
	stay_at_b -N -o ExitOnForwardFailure=yes -L 127.0.0.1:9002:127.0.0.1:9001 -R 127.0.0.1:9004:127.0.0.1:9003 b
	wait_until 60 tcp_listens 9002 &&
		socat -t 60 "FILE:$DIR/bytes!!CREATE:$DIR/bytes.back" TCP:127.0.0.1:9002 &&
		cmp $DIR/bytes $DIR/bytes.back &&
		to_b b "socat -t 60 - TCP:127.0.0.1:9004" <$DIR/bytes >$DIR/bytes.back &&
		cmp $DIR/bytes $DIR/bytes.back
	_rc=$?
	kill $session $_here
	wait $session $_here
	return $_rc
}

# Descriptors are passed to the process that has the connection.
shared() {
	stay_at_b -M -N -S $DIR/master b
	wait_until 60 test -S $DIR/master || return
	for _n in 1 2 3; do
		[ "$(to_b -S $DIR/master b "echo $_n")" = $_n ] || return
	done
	echoes -S $DIR/master || return
	to_b -S $DIR/master -O exit b 2>/dev/null || return
	# Its own code is 255 then: it had no command.
	wait $session
	[ ! -S $DIR/master ]
}

use() { # use ROUND
	fact "$1: an exit code" exits_with 7 to_b b 'exit 7'
	fact "$1: a signal" exits_with 255 to_b b 'kill -9 $$'
	fact "$1: by IPv6" exits_with 0 to_b six true
	fact "$1: bytes both ways at once" echoes
	fact "$1: and compressed" echoes -C
	fact "$1: $LINES lines, one at a time" line_by_line b 'while read -r l; do echo "got $l"; done'
	fact "$1: a terminal" terminal
	fact "$1: files by scp and sftp" tree "$1"
	fact "$1: a file by the scp of old" old_scp
	fact "$1: ports of both ends" forwarded
	fact "$1: sessions that share a connection" shared
}

programs_begin
if [ "$QRDMA_HOST" = b ]; then
	sshd_up
	socat TCP-LISTEN:9001,bind=127.0.0.1,reuseaddr,fork EXEC:cat &
	STARTED="$STARTED $!"
	echo_pid=$!
	vm-barrier serving
else
	client_up
	vm-barrier serving
	use clean
	TREE=Documentation
fi
lossy_round
reloaded() { [ "$(grep -c 'Server listening' $DIR/sshd.log)" -ge 4 ]; }
if [ "$QRDMA_HOST" = b ]; then
	vm-barrier waiting
	kill -HUP "$pid"
	fact "sshd is told to reload, and listens again" wait_until 60 reloaded
	vm-barrier reloaded
	vm-barrier used
	fact "sshd ends well" stop "$pid"
	kill $echo_pid
	wait $echo_pid
else
	mkfifo $DIR/wait
	exec 7<>$DIR/wait
	stay_at_b b 'echo begun; cat' <$DIR/wait >$DIR/waited
	waiting=$session
	exec 7>$DIR/wait
	fact "a session begins" wait_until 60 grep -q begun $DIR/waited
	vm-barrier waiting
	vm-barrier reloaded
	use lossy
	echo "still there" >&7
	exec 7>&-
	fact "a session of before the reload goes on" wait $waiting
	fact "and has its bytes" grep -qx 'still there' $DIR/waited
	vm-barrier used
fi
programs_end
