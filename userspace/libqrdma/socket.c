// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The AF_QRDMA socket as the rest of the library sees it. Called by oob.c; holds no state.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>
#include "socket.h"

#define STRING(x)	#x
#define XSTRING(x)	STRING(x)

const char *qrdma_version(void)
{
	return XSTRING(QRDMA_VERSION);
}

socklen_t socket_addr_len(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

static int socket_set(int fd, const struct qrdma_oob_options *opt)
{
	struct qrdma_config config = { 0 };
	socklen_t len = sizeof(config);

	if (opt->sndbuf && setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &opt->sndbuf, sizeof(opt->sndbuf)))
		return -errno;
	if (opt->rcvbuf && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &opt->rcvbuf, sizeof(opt->rcvbuf)))
		return -errno;
	if (getsockopt(fd, SOL_QRDMA, QRDMA_CONFIG, &config, &len))
		return -errno;
	config.congestion = opt->congestion;
	config.connect_timeout = opt->timeout_ms;
	if (setsockopt(fd, SOL_QRDMA, QRDMA_CONFIG, &config, sizeof(config)))
		return -errno;
	return 0;
}

int socket_bound(struct sockaddr_storage *addr, const struct qrdma_oob_options *opt)
{
	int protocol = addr->ss_family == AF_INET6 ? QRDMA_PROTO_IPV6 : QRDMA_PROTO_IPV4;
	socklen_t len = sizeof(*addr);
	int err;
	int fd;

	fd = socket(AF_QRDMA, SOCK_STREAM | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return -errno;
	err = socket_set(fd, opt);
	if (!err && bind(fd, (struct sockaddr *)addr, socket_addr_len(addr)))
		err = -errno;
	if (!err && getsockname(fd, (struct sockaddr *)addr, &len))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

int socket_connect(int fd, const struct sockaddr_storage *addr, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	int flags = fcntl(fd, F_GETFL);
	socklen_t len = sizeof(int);
	int err = 0;
	int n;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	if (connect(fd, (const struct sockaddr *)addr, socket_addr_len(addr))) {
		if (errno != EINPROGRESS)
			return -errno;
		do {
			n = poll(&pfd, 1, timeout_ms);
		} while (n < 0 && errno == EINTR);
		if (n < 0)
			return -errno;
		if (!n)
			return -ETIMEDOUT;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
			return -errno;
		if (err)
			return -err;
	}
	return fcntl(fd, F_SETFL, flags) ? -errno : 0;
}

int qrdma_get_info(int fd, struct qrdma_info *info)
{
	socklen_t len = sizeof(*info);

	return getsockopt(fd, SOL_QRDMA, QRDMA_INFO, info, &len) ? -errno : 0;
}

const char *qrdma_state_name(uint8_t state)
{
	static const char *const names[] = {
		[QRDMA_STATE_INIT] = "init",
		[QRDMA_STATE_CONNECTING] = "connecting",
		[QRDMA_STATE_ESTABLISHED] = "established",
		[QRDMA_STATE_CLOSING] = "closing",
		[QRDMA_STATE_CLOSED] = "closed",
		[QRDMA_STATE_HANDSHAKE] = "handshake",
		[QRDMA_STATE_LISTEN] = "listen",
	};

	return state < sizeof(names) / sizeof(names[0]) && names[state] ? names[state] : "unknown";
}
