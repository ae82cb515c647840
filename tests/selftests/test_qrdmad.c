// SPDX-License-Identifier: GPL-2.0
/*
 * A program that knows nothing of handshakes: socket, bind, listen, accept, connect, send, recv. For qrdmad.sh, which
 * runs the agent beside it.
 *
 *	test_qrdmad serve ADDRESS PORT...
 *		answers each connection with what it says, until its standard input ends; says "ready" before
 *	test_qrdmad connect ADDRESS PORT[,PORT...] COUNT BYTES TIMEOUT
 *		COUNT connections at a time, to each port in turn, from host a's address; each sends BYTES and wants
 *		them back. Prints, for each port, how many came to what: "7001 0 100", "7002 EKEYREJECTED 100"
 *	test_qrdmad token
 *		prints the stateless reset token that this host makes for a connection id
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ends.h"

#define CONNS_MAX	512
#define PORTS_MAX	16
#define ERRNO_MAX	200

/* One connection of either side. */
struct conn {
	int fd;
	int port;		/* index */
	int at;			/* in fds, server */
	bool connected;
	size_t sent;
	size_t received;
	char *data;		/* of a server: to be sent back */
	size_t len;
	bool eof;
};

static struct conn conns[CONNS_MAX];
static struct pollfd fds[CONNS_MAX + PORTS_MAX + 1];

static void die(const char *what)
{
	fprintf(stderr, "test_qrdmad: %s: %s\n", what, strerror(errno));
	exit(2);
}

static socklen_t address(union addr *addr, const char *text, int port)
{
	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, text, &addr->in.sin_addr) == 1) {
		addr->in.sin_family = AF_INET;
		addr->in.sin_port = htons(port);
	} else if (inet_pton(AF_INET6, text, &addr->in6.sin6_addr) == 1) {
		addr->in6.sin6_family = AF_INET6;
		addr->in6.sin6_port = htons(port);
	} else {
		errno = EINVAL;
		die(text);
	}
	return end_addr_len(addr);
}

static int plain_socket(const union addr *addr)
{
	int fd = socket(AF_QRDMA, SOCK_STREAM | SOCK_NONBLOCK,
			addr->sa.sa_family == AF_INET6 ? QRDMA_PROTO_IPV6 : QRDMA_PROTO_IPV4);

	if (fd < 0)
		die("socket");
	return fd;
}

/* How long a connect() may take: the machine is slow, and the test has many at a time. */
static void patience(int fd, int seconds)
{
	struct qrdma_config config;
	socklen_t len = sizeof(config);

	if (!seconds)
		return;
	if (getsockopt(fd, SOL_QRDMA, QRDMA_CONFIG, &config, &len))
		die("QRDMA_CONFIG");
	config.connect_timeout = seconds * 1000;
	if (setsockopt(fd, SOL_QRDMA, QRDMA_CONFIG, &config, sizeof(config)))
		die("QRDMA_CONFIG");
}

/* The server. */

static struct conn *conn_add(int fd)
{
	for (int i = 0; i < CONNS_MAX; i++)
		if (conns[i].fd < 0) {
			conns[i] = (struct conn){ .fd = fd, .data = malloc(65536) };
			return &conns[i];
		}
	close(fd);
	return NULL;
}

static void conn_drop(struct conn *c)
{
	close(c->fd);
	free(c->data);
	c->fd = -1;
}

static void conn_echo(struct conn *c)
{
	ssize_t n = 0;

	if (c->len < 65536 && !c->eof)
		n = recv(c->fd, c->data + c->len, 65536 - c->len, 0);
	if (n < 0 && errno != EAGAIN) {
		conn_drop(c);
		return;
	}
	c->eof |= !n && c->len < 65536;
	if (n > 0)
		c->len += n;
	n = c->len ? send(c->fd, c->data, c->len, MSG_NOSIGNAL) : 0;
	if (n < 0 && errno != EAGAIN) {
		conn_drop(c);
		return;
	}
	if (n > 0) {
		c->len -= n;
		memmove(c->data, c->data + n, c->len);
	}
	if (c->eof && !c->len)
		conn_drop(c);
}

static void serve_once(const int *listener, int n_ports)
{
	int n = 0;

	for (int i = 0; i < n_ports; i++)
		fds[n++] = (struct pollfd){ .fd = listener[i], .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	for (int i = 0; i < CONNS_MAX; i++)
		if (conns[i].fd >= 0) {
			conns[i].at = n;
			fds[n++] = (struct pollfd){ .fd = conns[i].fd, .events = POLLIN * !conns[i].eof |
						    POLLOUT * !!conns[i].len };
		}
	if (poll(fds, n, -1) < 0)
		die("poll");
	if (fds[n_ports].revents)
		exit(0);
	for (int i = 0; i < CONNS_MAX; i++)
		if (conns[i].fd >= 0 && fds[conns[i].at].revents)
			conn_echo(&conns[i]);
	for (int i = 0; i < n_ports; i++) {
		int fd = fds[i].revents ? accept4(listener[i], NULL, NULL, SOCK_NONBLOCK) : -1;

		if (fd >= 0)
			conn_add(fd);
	}
}

static void __attribute__((noreturn)) serve(const char *text, int n_ports, char **ports)
{
	int listener[PORTS_MAX];
	union addr addr;

	for (int i = 0; i < CONNS_MAX; i++)
		conns[i].fd = -1;
	for (int i = 0; i < n_ports && i < PORTS_MAX; i++) {
		socklen_t len = address(&addr, text, atoi(ports[i]));

		listener[i] = plain_socket(&addr);
		patience(listener[i], 60);
		if (bind(listener[i], &addr.sa, len) || listen(listener[i], CONNS_MAX))
			die("listen");
	}
	printf("ready\n");
	fflush(stdout);
	for (;;)
		serve_once(listener, n_ports);
}

/* The client. */

static int counts[PORTS_MAX][ERRNO_MAX];

static void conn_over(struct conn *c, int err)
{
	counts[c->port][err < ERRNO_MAX ? err : 0]++;
	close(c->fd);
	c->fd = -1;
}

static char byte_at(size_t pos)
{
	return pos * 7 + pos / 251;
}

static void conn_talk(struct conn *c, size_t bytes)
{
	char data[16384];
	ssize_t n;

	if (!c->connected) {
		int err = 0;
		socklen_t len = sizeof(err);

		getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
		if (err) {
			conn_over(c, err);
			return;
		}
		c->connected = true;
	}
	n = bytes - c->sent < sizeof(data) ? bytes - c->sent : sizeof(data);
	for (ssize_t i = 0; i < n; i++)
		data[i] = byte_at(c->sent + i);
	n = n ? send(c->fd, data, n, MSG_NOSIGNAL) : 0;
	if (n > 0)
		c->sent += n;
	n = recv(c->fd, data, sizeof(data), 0);
	if (!n || (n < 0 && errno != EAGAIN)) {
		conn_over(c, n ? errno : ENODATA);
		return;
	}
	for (ssize_t i = 0; i < n; i++)
		if (data[i] != byte_at(c->received + i)) {
			conn_over(c, EBADMSG);
			return;
		}
	if (n > 0)
		c->received += n;
	if (c->received == bytes)
		conn_over(c, 0);
}

static void conn_open(struct conn *c, const char *text, int port, int seconds)
{
	const char *own = strchr(text, ':') ? "fd09::1" : "10.9.0.1";
	union addr addr;
	socklen_t len = address(&addr, own, 0);

	c->fd = plain_socket(&addr);
	patience(c->fd, seconds);
	if (bind(c->fd, &addr.sa, len))
		die("bind");
	len = address(&addr, text, port);
	if (!connect(c->fd, &addr.sa, len))
		c->connected = true;
	else if (errno != EINPROGRESS)
		conn_over(c, errno);
}

static int client(char **argv)
{
	int ports[PORTS_MAX], n_ports = 0, count = atoi(argv[2]), left;
	size_t bytes = atoi(argv[3]);

	for (char *p = strtok(argv[1], ","); p && n_ports < PORTS_MAX; p = strtok(NULL, ","))
		ports[n_ports++] = atoi(p);
	for (int i = 0; i < count; i++) {
		conns[i].port = i % n_ports;
		conn_open(&conns[i], argv[0], ports[i % n_ports], atoi(argv[4]));
	}
	do {
		left = 0;
		for (int i = 0; i < count; i++) {
			const struct conn *c = &conns[i];

			fds[i] = (struct pollfd){ .fd = c->fd, .events = POLLIN * c->connected |
						  POLLOUT * (!c->connected || c->sent < bytes) };
			left += c->fd >= 0;
		}
		if (left && poll(fds, count, -1) < 0)
			die("poll");
		for (int i = 0; i < count; i++)
			if (conns[i].fd >= 0 && fds[i].revents)
				conn_talk(&conns[i], bytes);
	} while (left);
	for (int p = 0; p < n_ports; p++)
		for (int err = 0; err < ERRNO_MAX; err++)
			if (counts[p][err])
				printf("%d %s %d\n", ports[p], err ? strerrorname_np(err) : "0", counts[p][err]);
	return 0;
}

/* It is made from the connection id and the host key. */
static int token(void)
{
	struct qrdma_connection_ids ids = {
		.role = QRDMA_ROLE_SERVER,
		.source_len = QRDMA_CONNECTION_ID_LEN,
		.source = "hostkey",
	};
	struct qrdma_transport_param param = { 0 };
	socklen_t len = sizeof(param);
	int fd = socket(AF_QRDMA, SOCK_STREAM, QRDMA_PROTO_IPV4);

	if (fd < 0 || setsockopt(fd, SOL_QRDMA, QRDMA_CONNECTION_ID, &ids, sizeof(ids)) ||
	    getsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &param, &len))
		die("token");
	for (int i = 0; i < QRDMA_RESET_TOKEN_SIZE; i++)
		printf("%02x", param.stateless_reset_token[i]);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "serve"))
		serve(argv[2], argc - 3, argv + 3);
	if (argc == 7 && !strcmp(argv[1], "connect") && atoi(argv[4]) <= CONNS_MAX)
		return client(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "token"))
		return token();
	fprintf(stderr, "usage: test_qrdmad serve|connect|token ...\n");
	return 2;
}
