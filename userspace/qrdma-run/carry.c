// SPDX-License-Identifier: GPL-2.0
/*
 * From AF_QRDMA to TCP. See carry.h. Called by: the preload, in any thread; no state, no locks, no allocation.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <linux/qrdma.h>
#include "carry.h"

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX	62
#endif

#define VALUE_MAX	64

/* Options that may have been set before bind() or connect() */
static const struct {
	int level;
	int name;
} carried[] = {
	{ SOL_SOCKET, SO_REUSEADDR },
	{ SOL_SOCKET, SO_REUSEPORT },
	{ SOL_SOCKET, SO_KEEPALIVE },
	{ SOL_SOCKET, SO_BROADCAST },
	{ SOL_SOCKET, SO_DONTROUTE },
	{ SOL_SOCKET, SO_OOBINLINE },
	{ SOL_SOCKET, SO_LINGER },
	{ SOL_SOCKET, SO_SNDBUF },
	{ SOL_SOCKET, SO_RCVBUF },
	{ SOL_SOCKET, SO_SNDTIMEO },
	{ SOL_SOCKET, SO_RCVTIMEO },
	{ SOL_SOCKET, SO_RCVLOWAT },
	{ SOL_SOCKET, SO_PRIORITY },
	{ SOL_SOCKET, SO_MARK },
	{ SOL_SOCKET, SO_TIMESTAMP },
	{ SOL_SOCKET, SO_BUSY_POLL },
	{ SOL_SOCKET, SO_INCOMING_CPU },
	{ SOL_SOCKET, SO_ZEROCOPY },
	{ SOL_SOCKET, SO_BINDTOIFINDEX },
	{ IPPROTO_TCP, TCP_NODELAY },
	{ IPPROTO_TCP, TCP_CORK },
	{ IPPROTO_TCP, TCP_KEEPIDLE },
	{ IPPROTO_TCP, TCP_KEEPINTVL },
	{ IPPROTO_TCP, TCP_KEEPCNT },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT },
	{ IPPROTO_TCP, TCP_SYNCNT },
	{ IPPROTO_TCP, TCP_LINGER2 },
	{ IPPROTO_TCP, TCP_DEFER_ACCEPT },
	{ IPPROTO_TCP, TCP_QUICKACK },
	{ IPPROTO_TCP, TCP_FASTOPEN },
	{ IPPROTO_TCP, TCP_WINDOW_CLAMP },
	{ IPPROTO_TCP, TCP_MAXSEG },
	{ IPPROTO_TCP, TCP_CONGESTION },
	{ IPPROTO_IP, IP_TOS },
	{ IPPROTO_IP, IP_TTL },
	{ IPPROTO_IP, IP_FREEBIND },
	{ IPPROTO_IP, IP_TRANSPARENT },
	{ IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT },
	{ IPPROTO_IPV6, IPV6_V6ONLY },
	{ IPPROTO_IPV6, IPV6_TCLASS },
	{ IPPROTO_IPV6, IPV6_UNICAST_HOPS },
};

bool run_carry_possible(int fd)
{
	int domain = 0, err = errno;
	socklen_t len = sizeof(domain);
	struct qrdma_info info;
	bool ours;

	ours = !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_QRDMA;
	if (ours) {
		memset(&info, 0, sizeof(info));
		len = sizeof(info);
		if (!getsockopt(fd, SOL_QRDMA, QRDMA_INFO, &info, &len))
			ours = info.state == QRDMA_STATE_INIT || info.state == QRDMA_STATE_CLOSED;
	}
	errno = err;
	return ours;
}

/* What differs from a new socket was set by the program. */
static void carry_option(int from, int to, int fresh, int level, int name)
{
	unsigned char val[VALUE_MAX], dflt[VALUE_MAX];
	socklen_t len = sizeof(val), dlen = sizeof(dflt);
	int n;

	if (getsockopt(from, level, name, val, &len) || getsockopt(fresh, level, name, dflt, &dlen))
		return;
	if (len == dlen && !memcmp(val, dflt, len))
		return;
	if (level == SOL_SOCKET && (name == SO_SNDBUF || name == SO_RCVBUF)) {
		/* The kernel tells twice what it was told. */
		memcpy(&n, val, sizeof(n));
		n /= 2;
		memcpy(val, &n, sizeof(n));
	}
	setsockopt(to, level, name, val, len);
}

static void carry_options(int from, int to, int fresh)
{
	size_t i;

	for (i = 0; i < sizeof(carried) / sizeof(carried[0]); i++)
		carry_option(from, to, fresh, carried[i].level, carried[i].name);
}

static void carry_flags(int from, int to)
{
	struct f_owner_ex owner;
	int sig;

	if (!fcntl(from, F_GETOWN_EX, &owner) && owner.pid)
		fcntl(to, F_SETOWN_EX, &owner);
	sig = fcntl(from, F_GETSIG);
	if (sig > 0)
		fcntl(to, F_SETSIG, sig);
	fcntl(to, F_SETFL, fcntl(from, F_GETFL));
}

static int carry_name(int from, int to, const struct run_real *real)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} name;
	socklen_t len = sizeof(name);

	memset(&name, 0, sizeof(name));
	if (getsockname(from, &name.sa, &len))
		return -1;
	if (!(name.sa.sa_family == AF_INET6 ? name.in6.sin6_port : name.in.sin_port))
		return 0;
	return real->bind(to, &name.sa, len);
}

static int carry_place(int from, int to)
{
	int flags = fcntl(from, F_GETFD), ret;

	if (flags < 0)
		return -1;
	do {
		ret = dup3(to, from, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
	} while (ret < 0 && (errno == EINTR || errno == EBUSY));
	return ret < 0 ? -1 : 0;
}

int run_carry(int fd, const struct run_real *real)
{
	int protocol = QRDMA_PROTO_IPV4, to, fresh, ret = -1, err;
	socklen_t len = sizeof(protocol);

	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len))
		return -1;
	to = real->socket(protocol == QRDMA_PROTO_IPV6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (to < 0)
		return -1;
	fresh = real->socket(AF_QRDMA, SOCK_STREAM | SOCK_CLOEXEC, protocol);
	if (fresh >= 0) {
		carry_options(fd, to, fresh);
		carry_flags(fd, to);
		if (!carry_name(fd, to, real))
			ret = carry_place(fd, to);
	}
	err = errno;
	if (fresh >= 0)
		close(fresh);
	close(to);
	errno = err;
	return ret;
}
