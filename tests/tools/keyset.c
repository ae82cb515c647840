// SPDX-License-Identifier: GPL-2.0
/*
 * keyset: one end of an AF_QRDMA connection whose keys come from a number on the command line,
 * joined to standard input and output. Both ends are started with the same number. No TLS, no
 * secrecy: a tool for tests of the data path.
 *
 *	keyset [-6] [-c CIPHER] [-i] [-n] -r a|b -p PORT -q PEER-PORT -k NUMBER
 *
 * -r a: this is host a and the client, its peer is host b; -r b: the mirror. -c: aes128, aes256,
 * ccm, chacha. -n: read nothing, only write what comes. -i: print QRDMA_INFO to standard error at
 * the end.
 *
 * Exit status: 0 when the peer's end and all of standard input have been seen; 1 after an error.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../selftests/ends.h"

static void die(const char *what, int err)
{
	fprintf(stderr, "keyset: %s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

static uint32_t cipher(const char *name)
{
	if (!strcmp(name, "aes128"))
		return QRDMA_CIPHER_AES_GCM_128;
	if (!strcmp(name, "aes256"))
		return QRDMA_CIPHER_AES_GCM_256;
	if (!strcmp(name, "ccm"))
		return QRDMA_CIPHER_AES_CCM_128;
	if (!strcmp(name, "chacha"))
		return QRDMA_CIPHER_CHACHA20;
	die(name, EINVAL);
	return 0;
}

static void write_all(int fd, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n < 0)
			die("write", errno);
		buf += n;
		len -= n;
	}
}

/*
 * From standard input to the socket and from the socket to standard output, till both have ended.
 */
static void pump(int fd, bool input)
{
	static char buf[256 << 10];
	struct pollfd p[2] = {
		{ .fd = input ? 0 : -1, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};
	ssize_t n;

	if (!input && shutdown(fd, SHUT_WR))
		die("shutdown", errno);
	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (poll(p, 2, -1) < 0)
			die("poll", errno);
		if (p[1].fd >= 0 && p[1].revents) {
			n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
			if (n < 0 && errno != EAGAIN)
				die("recv", errno);
			if (n > 0)
				write_all(1, buf, n);
			if (!n)
				p[1].fd = -1;
		}
		if (p[0].fd >= 0 && p[0].revents) {
			n = read(0, buf, sizeof(buf));
			if (n < 0)
				die("read", errno);
			if (n > 0)
				write_all(fd, buf, n);
			if (!n) {
				p[0].fd = -1;
				if (shutdown(fd, SHUT_WR))
					die("shutdown", errno);
			}
		}
	}
}

static void print_info(int fd)
{
	struct qrdma_info i = {};
	socklen_t len = sizeof(i);

	if (getsockopt(fd, SOL_QRDMA, QRDMA_INFO, &i, &len))
		die("QRDMA_INFO", errno);
	fprintf(stderr,
		"state %u cipher %u device %s lane %u qpn %u->%u resets %u moves %u datagram %u\n"
		"srtt %llu us min %llu us cwnd %llu in flight %llu\n"
		"packets sent %llu received %llu lost %llu spurious %llu\n"
		"packets opened %llu failed %llu dropped %llu\n"
		"bytes sent %llu received %llu acked %llu delivered %llu\n",
		i.state, i.cipher, i.device, i.lane, i.local_qpn, i.remote_qpn, i.lane_resets,
		i.peer_changes, i.max_datagram, i.srtt / 1000, i.min_rtt / 1000, i.cwnd,
		i.in_flight, i.packets_sent, i.packets_received, i.packets_lost,
		i.packets_spurious, i.packets_opened, i.packets_failed, i.packets_dropped,
		i.bytes_sent, i.bytes_received, i.bytes_acked, i.bytes_delivered);
}

int main(int argc, char **argv)
{
	struct end_options opt = {};
	bool input = true, info = false;
	int role = -1, port = 0, peer = 0, fd, err, c;

	while ((c = getopt(argc, argv, "6c:inr:p:q:k:")) != -1) {
		switch (c) {
		case '6':
			opt.ipv6 = true;
			break;
		case 'c':
			opt.cipher = cipher(optarg);
			break;
		case 'i':
			info = true;
			break;
		case 'n':
			input = false;
			break;
		case 'r':
			role = *optarg == 'a' ? QRDMA_ROLE_CLIENT : QRDMA_ROLE_SERVER;
			break;
		case 'p':
			port = atoi(optarg);
			break;
		case 'q':
			peer = atoi(optarg);
			break;
		case 'k':
			opt.seed = strtoull(optarg, NULL, 0);
			break;
		default:
			return 1;
		}
	}
	if (role < 0 || !port || !peer || !opt.seed)
		die("usage: keyset [-6in] [-c CIPHER] -r a|b -p PORT -q PORT -k NUMBER", EINVAL);
	fd = end_socket(&opt);
	if (fd < 0)
		die("socket", fd);
	err = end_setup(fd, role, &opt);
	if (err)
		die("setup", err);
	err = end_bind(fd, role == QRDMA_ROLE_CLIENT ? 'a' : 'b', opt.ipv6, port);
	if (err)
		die("bind", err);
	err = end_connect(fd, role == QRDMA_ROLE_CLIENT ? 'b' : 'a', opt.ipv6, peer);
	if (err)
		die("connect", err);
	pump(fd, input);
	if (info)
		print_info(fd);
	if (close(fd))
		die("close", errno);
	return 0;
}
