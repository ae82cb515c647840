// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * qrdma-cat without TCP: sockets of AF_QRDMA that are connected, or listened on and accepted, as any other, and the
 * handshake of libqrdma in them. Called by main.c; holds no state.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "inband.h"

static int fail(const char *what, int err)
{
	fprintf(stderr, "qrdma-cat: %s: %s\n", what, strerror(-err));
	return err;
}

static int inband_lookup(const struct inband_options *opt, const char *host, const char *port, int flags,
			 struct addrinfo **list)
{
	struct addrinfo hints = {
		.ai_family = opt->family,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = flags,
	};
	int err = getaddrinfo(host, port, &hints, list);

	if (!err)
		return 0;
	fprintf(stderr, "qrdma-cat: %s port %s: %s\n", host ? host : "any address", port, gai_strerror(err));
	return -EHOSTUNREACH;
}

/* A socket for addresses of @family whose handshakes are ours. */
static int inband_socket(int family, int flags)
{
	int fd = socket(AF_QRDMA, SOCK_STREAM | SOCK_CLOEXEC | flags,
			family == AF_INET6 ? QRDMA_PROTO_IPV6 : QRDMA_PROTO_IPV4);
	int err;

	if (fd < 0)
		return -errno;
	err = qrdma_handshake_self(fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int inband_bind(int fd, const struct inband_options *opt, int family)
{
	struct addrinfo *local;
	int err;

	if (!opt->bind)
		return 0;
	err = inband_lookup(opt, opt->bind, "0", AI_NUMERICHOST, &local);
	if (err)
		return err;
	if (local->ai_family != family)
		err = -EAFNOSUPPORT;
	else if (bind(fd, local->ai_addr, local->ai_addrlen))
		err = -errno;
	freeaddrinfo(local);
	return err;
}

static int inband_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) ? -errno : 0;
}

/* The socket does not block while it connects: the handshake's time-out is for both. */
static int inband_connect_one(const struct inband_options *opt, const struct addrinfo *ai)
{
	int fd = inband_socket(ai->ai_family, SOCK_NONBLOCK);
	struct qrdma_reason why = { 0 };
	int err;

	if (fd < 0)
		return fail("AF_QRDMA socket", fd);
	err = inband_bind(fd, opt, ai->ai_family);
	if (err) {
		fail("address of this end", err);
	} else if (connect(fd, ai->ai_addr, ai->ai_addrlen) && errno != EINPROGRESS) {
		err = fail(opt->host, -errno);
	} else {
		err = qrdma_client_handshake(fd, &opt->handshake, &why);
		if (err)
			fprintf(stderr, "qrdma-cat: %s\n", why.text);
		else
			err = inband_blocking(fd);
	}
	if (!err)
		return fd;
	close(fd);
	return err;
}

int inband_connect(const struct inband_options *opt)
{
	struct addrinfo *list;
	int fd = inband_lookup(opt, opt->host, opt->port, 0, &list);

	if (fd)
		return fd;
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		fd = inband_connect_one(opt, ai);
		if (fd >= 0)
			break;
	}
	freeaddrinfo(list);
	return fd;
}

int inband_listen(const struct inband_options *opt)
{
	struct addrinfo *list;
	int one = 1;
	int err = inband_lookup(opt, opt->host, opt->port, AI_PASSIVE, &list);
	int fd = -1;

	if (err)
		return err;
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		fd = inband_socket(ai->ai_family, 0);
		if (fd < 0) {
			err = fd;
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (!bind(fd, ai->ai_addr, ai->ai_addrlen) && !listen(fd, 16))
			break;
		err = -errno;
		close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd < 0 ? fail("listening", err) : fd;
}

int inband_accept(int listener, const struct inband_options *opt)
{
	struct qrdma_reason why = { 0 };
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	int err;

	if (fd < 0) {
		if (errno == EINTR || errno == ECONNABORTED || errno == EAGAIN)
			return -EAGAIN;
		return fail("accept", -errno);
	}
	err = qrdma_server_handshake(fd, &opt->handshake, &why);
	if (!err)
		return fd;
	fprintf(stderr, "qrdma-cat: %s\n", why.text);
	close(fd);
	return -EAGAIN;
}
