// SPDX-License-Identifier: GPL-2.0
/*
 * Carriers: TCP, rsocket (RC queue pairs of librdmacm), AF_QRDMA.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../selftests/ends.h"
#include "../../userspace/libqrdma/qrdma.h"
#include "bench.h"

enum {
	PORT_TCP	= 7000,
	PORT_RSOCKET	= 7001,
	PORT_QRDMA	= 8000,	/* and up: one for each connection */
	BACKLOG		= 512,
};

static int listener = -1;

static void addr_of(union addr *addr, enum side side, uint16_t port)
{
	end_addr(addr, side == SIDE_A ? 'a' : 'b', false, port);
}

/* TCP */

static void tcp_prepare(void)
{
	union addr addr;
	int one = 1;

	addr_of(&addr, SIDE_B, PORT_TCP);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(listener, &addr.sa, sizeof(addr.in)) || listen(listener, BACKLOG))
		die("listen", errno);
}

/* The client's address has to be said: the other one is local, too (see topology_up). */
static void tcp_open(struct conn *c)
{
	union addr addr;

	if (c->side == SIDE_B) {
		c->fd = accept(listener, NULL, NULL);
		if (c->fd < 0)
			die("accept", errno);
		return;
	}
	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	addr_of(&addr, SIDE_A, 0);
	if (c->fd < 0 || bind(c->fd, &addr.sa, sizeof(addr.in)))
		die("bind", errno);
	addr_of(&addr, SIDE_B, PORT_TCP);
	if (connect(c->fd, &addr.sa, sizeof(addr.in)))
		die("connect", errno);
}

static void fd_send(struct conn *c, const void *data, size_t len)
{
	const char *at = data;
	ssize_t n;

	while (len) {
		n = send(c->fd, at, len, 0);
		if (n < 0)
			die("send", errno);
		at += n;
		len -= n;
	}
}

static size_t fd_recv(struct conn *c, void *data, size_t len)
{
	ssize_t n = recv(c->fd, data, len, 0);

	if (n < 0)
		die("recv", errno);
	return n;
}

static void fd_close(struct conn *c)
{
	close(c->fd);
}

const struct carrier carrier_tcp = {
	.prepare = tcp_prepare,
	.open = tcp_open,
	.send = fd_send,
	.recv = fd_recv,
	.close = fd_close,
};

/* rsocket: it must not be used on both sides of a fork */

static void rs_start(enum side side)
{
	union addr addr;

	if (side == SIDE_A)
		return;
	addr_of(&addr, SIDE_B, PORT_RSOCKET);
	listener = rsocket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || rbind(listener, &addr.sa, sizeof(addr.in)) ||
	    rlisten(listener, BACKLOG))
		die("rlisten", errno);
}

static void rs_open(struct conn *c)
{
	union addr addr;

	if (c->side == SIDE_B) {
		c->fd = raccept(listener, NULL, NULL);
		if (c->fd < 0)
			die("raccept", errno);
		if (opt.conns > 1)
			tell();
		return;
	}
	c->fd = rsocket(AF_INET, SOCK_STREAM, 0);
	addr_of(&addr, SIDE_A, 0);
	if (c->fd < 0 || rbind(c->fd, &addr.sa, sizeof(addr.in)))
		die("rbind", errno);
	addr_of(&addr, SIDE_B, PORT_RSOCKET);
	if (rconnect(c->fd, &addr.sa, sizeof(addr.in)))
		die("rconnect", errno);
	/* librdmacm's listener loses a connection when the next one comes too soon */
	if (opt.conns > 1)
		hear();
}

static void rs_send(struct conn *c, const void *data, size_t len)
{
	const char *at = data;
	ssize_t n;

	while (len) {
		n = rsend(c->fd, at, len, 0);
		if (n < 0)
			die("rsend", errno);
		at += n;
		len -= n;
	}
}

static size_t rs_recv(struct conn *c, void *data, size_t len)
{
	ssize_t n = rrecv(c->fd, data, len, 0);

	if (n < 0)
		die("rrecv", errno);
	return n;
}

static void rs_close(struct conn *c)
{
	rshutdown(c->fd, SHUT_RDWR);
	rclose(c->fd);
}

const struct carrier carrier_rsocket = {
	.start = rs_start,
	.open = rs_open,
	.send = rs_send,
	.recv = rs_recv,
	.close = rs_close,
};

/* AF_QRDMA: keys that both sides know, or the out-of-band handshake of libqrdma over TCP */

static void qrdma_prepare(void)
{
	if (opt.handshake)
		tcp_prepare();
}

static void qrdma_join(struct conn *c)
{
	struct end_options end = {
		.seed = 0x1000001 + c->index,
		.cipher = opt.cipher,
		.type_flags = SOCK_NONBLOCK,
	};
	struct pollfd p = { .events = POLLOUT };
	socklen_t len = sizeof(int);
	int role = c->side == SIDE_A ? QRDMA_ROLE_CLIENT : QRDMA_ROLE_SERVER;
	char ours = c->side == SIDE_A ? 'a' : 'b', theirs = c->side == SIDE_A ? 'b' : 'a';
	uint16_t port = PORT_QRDMA + c->index % 1000;
	int err;

	c->fd = end_socket(&end);
	if (c->fd < 0)
		die("socket", c->fd);
	err = end_setup(c->fd, role, &end) ?: end_bind(c->fd, ours, false, port);
	if (err)
		die("setup", err);
	/* the server has to be there when the client's first packet comes */
	if (c->side == SIDE_A)
		hear();
	err = end_connect(c->fd, theirs, false, port);
	if (err && err != -EINPROGRESS)
		die("connect", err);
	if (c->side == SIDE_B)
		tell();
	p.fd = c->fd;
	if (poll(&p, 1, -1) != 1 || getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) || err)
		die("connect", err ? err : errno);
	if (fcntl(c->fd, F_SETFL, 0))
		die("fcntl", errno);
}

static const struct qrdma_cred *qrdma_credentials(void)
{
	static const uint8_t key[32] = { 1, 2, 3, 4 };
	static struct qrdma_cred *cred;

	if (!cred && (qrdma_cred_new(&cred) || qrdma_cred_set_psk(cred, "bench", key, sizeof(key))))
		die("credentials", ENOMEM);
	return cred;
}

static void qrdma_handshake(struct conn *c)
{
	struct qrdma_oob_options oob = {
		.size = sizeof(oob),
		.cred = qrdma_credentials(),
		.ciphers = &opt.cipher,
		.n_ciphers = 1,
		.timeout_ms = 60000,
	};
	struct qrdma_reason why = {};
	struct conn tcp = *c;

	tcp_open(&tcp);
	if (c->side == SIDE_A)
		c->fd = qrdma_oob_connect(tcp.fd, &oob, &why);
	else
		c->fd = qrdma_oob_accept(tcp.fd, &oob, &why);
	if (c->fd < 0)
		die(why.text, c->fd);
	close(tcp.fd);
}

static void qrdma_open(struct conn *c)
{
	if (opt.handshake)
		qrdma_handshake(c);
	else
		qrdma_join(c);
}

const struct carrier carrier_qrdma = {
	.prepare = qrdma_prepare,
	.open = qrdma_open,
	.send = fd_send,
	.recv = fd_recv,
	.close = fd_close,
};
