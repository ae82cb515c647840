// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * socket, bind, connect, getsockname, getpeername, and the calls that there are not: errors and
 * results as TCP's, where TCP has the same case.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <linux/sockios.h>

#include "cases.h"
#include "ends.h"

static int new_socket(bool ipv6)
{
	return CHECK(socket(AF_QRDMA, SOCK_STREAM, ipv6 ? QRDMA_PROTO_IPV6 : QRDMA_PROTO_IPV4));
}

TEST(socket)
{
	int fd;

	EXPECT_ERRNO(socket(AF_QRDMA, SOCK_DGRAM, 0), ESOCKTNOSUPPORT);
	EXPECT_ERRNO(socket(AF_QRDMA, SOCK_RAW, 0), ESOCKTNOSUPPORT);
	EXPECT_ERRNO(socket(AF_QRDMA, SOCK_STREAM, 2), EPROTONOSUPPORT);
	EXPECT_ERRNO(socket(AF_QRDMA, SOCK_STREAM, IPPROTO_TCP), EPROTONOSUPPORT);
	fd = CHECK(socket(AF_QRDMA, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	EXPECT(fcntl(fd, F_GETFL) & O_NONBLOCK);
	EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

TEST(not_there)
{
	int sv[2];

	EXPECT_ERRNO(socketpair(AF_QRDMA, SOCK_STREAM, 0, sv), EOPNOTSUPP);
}

TEST(unconnected)
{
	int fd = new_socket(false), val;
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };
	union addr addr;
	socklen_t len = sizeof(addr);
	char c;

	signal(SIGPIPE, SIG_IGN);
	EXPECT_ERRNO(recv(fd, &c, 1, 0), ENOTCONN);
	EXPECT_ERRNO(send(fd, &c, 1, 0), EPIPE);
	EXPECT_ERRNO(shutdown(fd, SHUT_WR), ENOTCONN);
	EXPECT_ERRNO(shutdown(fd, 3), EINVAL);
	EXPECT_ERRNO(getpeername(fd, &addr.sa, &len), ENOTCONN);
	EXPECT_EQ(poll(&p, 1, 0), 1);
	EXPECT_EQ(p.revents, POLLOUT | POLLHUP);
	EXPECT_EQ(ioctl(fd, FIONREAD, &val), 0);
	EXPECT_EQ(val, 0);
	EXPECT_EQ(ioctl(fd, SIOCOUTQ, &val), 0);
	EXPECT_EQ(val, 0);
	EXPECT_ERRNO(ioctl(fd, 0x12345678, &val), ENOTTY);
	len = sizeof(addr);
	EXPECT_EQ(getsockname(fd, &addr.sa, &len), 0);
	EXPECT_EQ(len, sizeof(addr.in));
	EXPECT_EQ(addr.sa.sa_family, AF_INET);
	EXPECT_EQ(addr.in.sin_port, 0);
}

TEST(bind_errors)
{
	union addr addr;
	int fd = new_socket(false), six = new_socket(true);

	CASE("length");
	end_addr(&addr, 'a', false, 0);
	EXPECT_ERRNO(bind(fd, &addr.sa, 1), EINVAL);
	EXPECT_ERRNO(bind(fd, &addr.sa, sizeof(addr.in) - 1), EINVAL);
	EXPECT_ERRNO(bind(six, &addr.sa, sizeof(addr.in)), EINVAL);
	EXPECT_ERRNO(bind(six, &addr.sa, sizeof(addr)), EAFNOSUPPORT);
	end_addr(&addr, 'a', true, 0);
	EXPECT_ERRNO(bind(fd, &addr.sa, sizeof(addr.in6)), EAFNOSUPPORT);
	EXPECT_ERRNO(bind(six, &addr.sa, 20), EINVAL);
	CASE("not ours");
	end_addr(&addr, 'a', false, 0);
	inet_pton(AF_INET, "192.0.2.1", &addr.in.sin_addr);
	EXPECT_ERRNO(bind(fd, &addr.sa, sizeof(addr.in)), EADDRNOTAVAIL);
	inet_pton(AF_INET, "224.0.0.1", &addr.in.sin_addr);
	EXPECT_ERRNO(bind(fd, &addr.sa, sizeof(addr.in)), EADDRNOTAVAIL);
	end_addr(&addr, 'a', true, 0);
	inet_pton(AF_INET6, "2001:db8::1", &addr.in6.sin6_addr);
	EXPECT_ERRNO(bind(six, &addr.sa, sizeof(addr.in6)), EADDRNOTAVAIL);
	CASE("link-local");
	inet_pton(AF_INET6, "fe80::1", &addr.in6.sin6_addr);
	EXPECT_ERRNO(bind(six, &addr.sa, sizeof(addr.in6)), EINVAL);
	addr.in6.sin6_scope_id = 9999;
	EXPECT_ERRNO(bind(six, &addr.sa, sizeof(addr.in6)), ENODEV);
	CASE("privilege");
	if (!fork()) {
		if (setuid(65534))
			_exit(2);
		_exit(end_bind(fd, 'a', false, 80) == -EACCES ? 0 : 1);
	} else {
		int status;

		wait(&status);
		EXPECT_EQ(status, 0);
	}
	EXPECT_EQ(end_bind(fd, 'a', false, 80), 0);
	CASE("twice");
	EXPECT_EQ(end_bind(fd, 'a', false, 0), -EINVAL);
}

/* F38 */
TEST(bind_zero)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		int fd = new_socket(ipv6);
		union addr addr, want;
		socklen_t len = sizeof(addr);

		ASSERT_EQ(end_bind(fd, 'a', ipv6, 0), 0);
		EXPECT(end_port(fd) >= 1024);
		EXPECT_EQ(getsockname(fd, &addr.sa, &len), 0);
		end_addr(&want, 'a', ipv6, end_port(fd));
		EXPECT_EQ(len, end_addr_len(&want));
		EXPECT(!memcmp(&addr, &want, len));
	}
}

enum how { PLAIN, REUSE, V6ONLY };

static int bound(int family, const char *text, uint16_t port, enum how how, int type, int proto)
{
	int one = 1, fd = socket(type, SOCK_STREAM, proto);
	union addr addr = {};
	int err;

	if (fd < 0)
		return -errno;
	if (how == REUSE)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (how == V6ONLY)
		setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	addr.sa.sa_family = family;
	if (family == AF_INET6) {
		addr.in6.sin6_port = htons(port);
		inet_pton(AF_INET6, text, &addr.in6.sin6_addr);
	} else {
		addr.in.sin_port = htons(port);
		inet_pton(AF_INET, text, &addr.in.sin_addr);
	}
	err = bind(fd, &addr.sa, end_addr_len(&addr)) ? -errno : 0;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* F37: each pair of binds ends as it does with TCP. */
TEST(bind_conflicts)
{
	static const struct {
		int family;
		const char *text;
		enum how how;
	} binds[] = {
		{ AF_INET, "0.0.0.0", PLAIN }, { AF_INET, "0.0.0.0", REUSE },
		{ AF_INET, "127.0.0.1", PLAIN }, { AF_INET, "127.0.0.1", REUSE },
		{ AF_INET, "127.0.0.2", PLAIN },
		{ AF_INET6, "::", PLAIN }, { AF_INET6, "::", V6ONLY }, { AF_INET6, "::", REUSE },
		{ AF_INET6, "::1", PLAIN }, { AF_INET6, "::1", REUSE },
		{ AF_INET6, "::ffff:127.0.0.1", PLAIN },
		{ AF_INET6, "::ffff:127.0.0.1", V6ONLY },
	};
	int n = sizeof(binds) / sizeof(*binds);
	uint16_t port = 7000;

	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++, port++) {
			char text[128];
			int r[2][2];

			snprintf(text, sizeof(text), "%s/%d then %s/%d", binds[i].text,
				 binds[i].how, binds[j].text, binds[j].how);
			CASE(text);
			for (int q = 0; q < 2; q++) {
				r[q][0] = bound(binds[i].family, binds[i].text, port, binds[i].how,
						q ? AF_QRDMA : binds[i].family,
						q ? binds[i].family == AF_INET6 : 0);
				r[q][1] = bound(binds[j].family, binds[j].text, port, binds[j].how,
						q ? AF_QRDMA : binds[j].family,
						q ? binds[j].family == AF_INET6 : 0);
			}
			for (int k = 0; k < 2; k++)
				EXPECT_EQ(r[1][k] < 0 ? r[1][k] : 0, r[0][k] < 0 ? r[0][k] : 0);
			for (int q = 0; q < 2; q++) {
				for (int k = 0; k < 2; k++) {
					if (r[q][k] >= 0)
						close(r[q][k]);
				}
			}
			CASE("");
		}
	}
}

/* The mapped wildcard is that of IPv4. (TCP of 6.1 forgets it when addresses are bound later.) */
TEST(bind_mapped_wildcard)
{
	int fd = bound(AF_INET6, "::ffff:0.0.0.0", 7900, PLAIN, AF_QRDMA, 1);

	ASSERT(fd >= 0);
	EXPECT_EQ(bound(AF_INET6, "::ffff:127.0.0.1", 7900, PLAIN, AF_QRDMA, 1), -EADDRINUSE);
	EXPECT_EQ(bound(AF_INET, "127.0.0.1", 7900, PLAIN, AF_QRDMA, 0), -EADDRINUSE);
	EXPECT_EQ(bound(AF_INET6, "::", 7900, PLAIN, AF_QRDMA, 1), -EADDRINUSE);
	EXPECT(bound(AF_INET6, "::1", 7900, PLAIN, AF_QRDMA, 1) >= 0);
}

TEST(port_comes_back)
{
	int fd = new_socket(false);

	ASSERT_EQ(end_bind(fd, 'a', false, 6001), 0);
	close(fd);
	fd = new_socket(false);
	EXPECT_EQ(end_bind(fd, 'a', false, 6001), 0);
}

static int connect_text(int fd, const char *text, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &in.sin_addr);
	return connect(fd, (struct sockaddr *)&in, sizeof(in));
}

TEST(connect_errors)
{
	struct end_options opt = { .seed = end_fresh_seed() };
	union addr addr;
	int fd = new_socket(false);

	CASE("address");
	end_addr(&addr, 'b', false, 5000);
	EXPECT_ERRNO(connect(fd, &addr.sa, 1), EINVAL);
	EXPECT_ERRNO(connect(fd, &addr.sa, sizeof(addr.in) - 1), EINVAL);
	addr.sa.sa_family = AF_INET6;
	EXPECT_ERRNO(connect(fd, &addr.sa, sizeof(addr.in6)), EAFNOSUPPORT);
	EXPECT_ERRNO(connect_text(fd, "10.9.0.2", 0), EINVAL);
	CASE("keys");
	EXPECT_EQ(end_connect(fd, 'b', false, 5000), -ESRCH);	/* of whom? There is no agent. */
	ASSERT_EQ(end_ids(fd, QRDMA_ROLE_CLIENT, &opt), 0);
	EXPECT_EQ(end_connect(fd, 'b', false, 5000), -ENOKEY);
	ASSERT_EQ(end_params(fd, &opt), 0);
	EXPECT_EQ(end_connect(fd, 'b', false, 5000), -ENOKEY);
	ASSERT_EQ(end_secret(fd, QRDMA_ROLE_CLIENT, 0, &opt), 0);
	EXPECT_EQ(end_connect(fd, 'b', false, 5000), -ENOKEY);
	ASSERT_EQ(end_secret(fd, QRDMA_ROLE_CLIENT, 1, &opt), 0);
	CASE("no device");
	EXPECT_ERRNO(connect_text(fd, "127.0.0.1", 5000), EADDRNOTAVAIL);
	CASE("a failed attempt that used no key leaves the socket as it was");
	EXPECT_ERRNO(connect_text(fd, "127.0.0.1", 5000), EADDRNOTAVAIL);
}

/* The peer host is there and nobody answers for that connection id. */
TEST(connect_timeout)
{
	struct end_options opt = { .seed = end_fresh_seed(), .config.connect_timeout = 500 };
	struct qrdma_connection_close why;
	socklen_t len = sizeof(why);
	int fd = new_socket(false);

	ASSERT_EQ(end_bind(fd, 'a', false, 0), 0);
	ASSERT_EQ(end_setup(fd, QRDMA_ROLE_CLIENT, &opt), 0);
	EXPECT_EQ(end_connect(fd, 'b', false, 5001), -ETIMEDOUT);
	EXPECT_EQ(getsockopt(fd, SOL_QRDMA, QRDMA_CONNECTION_CLOSE, &why, &len), 0);
	EXPECT_EQ(why.reason, QRDMA_REASON_NO_ANSWER);
	/* Packet numbers were used: not again with these keys. */
	EXPECT_EQ(end_connect(fd, 'b', false, 5001), -ENOKEY);
	EXPECT_EQ(end_secret(fd, QRDMA_ROLE_CLIENT, 1, &opt), -EEXIST);
}

TEST(connect_states)
{
	struct end_options opt = { .seed = end_fresh_seed(), .type_flags = SOCK_NONBLOCK };
	struct pollfd p = { .events = POLLOUT };
	int fd[2], err;
	socklen_t len = sizeof(err);
	char c;

	for (int i = 0; i < 2; i++) {
		fd[i] = end_socket(&opt);
		ASSERT(fd[i] >= 0);
		ASSERT_EQ(end_bind(fd[i], "ab"[i], false, 0), 0);
		ASSERT_EQ(end_setup(fd[i], i, &opt), 0);
	}
	p.fd = fd[0];
	EXPECT_EQ(end_connect(fd[0], 'b', false, end_port(fd[1])), -EINPROGRESS);
	EXPECT_EQ(end_connect(fd[0], 'b', false, end_port(fd[1])), -EALREADY);
	EXPECT_EQ(poll(&p, 1, 0), 0);
	EXPECT_ERRNO(recv(fd[0], &c, 1, 0), EAGAIN);
	EXPECT_ERRNO(send(fd[0], &c, 1, 0), EAGAIN);
	EXPECT_EQ(end_connect(fd[1], 'a', false, end_port(fd[0])), -EINPROGRESS);
	EXPECT_EQ(poll(&p, 1, 60000), 1);
	EXPECT_EQ(p.revents, POLLOUT);
	EXPECT_EQ(getsockopt(fd[0], SOL_SOCKET, SO_ERROR, &err, &len), 0);
	EXPECT_EQ(err, 0);
	/* The first look after success tells of it, the next one that it is old. */
	EXPECT_EQ(end_connect(fd[0], 'b', false, end_port(fd[1])), 0);
	EXPECT_EQ(end_connect(fd[0], 'b', false, end_port(fd[1])), -EISCONN);
	EXPECT_EQ(end_bind(fd[0], 'a', false, 0), -EINVAL);
}

/* Two sockets cannot own one connection id. */
TEST(connection_id_in_use)
{
	struct end_options opt = { .seed = end_fresh_seed(), .type_flags = SOCK_NONBLOCK };
	int fd[2];

	for (int i = 0; i < 2; i++) {
		fd[i] = end_socket(&opt);
		ASSERT(fd[i] >= 0);
		ASSERT_EQ(end_bind(fd[i], 'a', false, 0), 0);
		ASSERT_EQ(end_setup(fd[i], QRDMA_ROLE_CLIENT, &opt), 0);
	}
	EXPECT_EQ(end_connect(fd[0], 'b', false, 5002), -EINPROGRESS);
	EXPECT_EQ(end_connect(fd[1], 'b', false, 5002), -EADDRINUSE);
}

TEST(names)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct end_options opt = { .ipv6 = ipv6 };
		union addr addr, want;
		socklen_t len;
		int fd[2], err = end_pair(fd, &opt);

		ASSERT_EQ(err, 0);
		for (int i = 0; i < 2; i++) {
			memset(&addr, 0xff, sizeof(addr));
			len = sizeof(addr);
			EXPECT_EQ(getpeername(fd[i], &addr.sa, &len), 0);
			end_addr(&want, "ba"[i], ipv6, end_port(fd[!i]));
			EXPECT_EQ(len, end_addr_len(&want));
			EXPECT(!memcmp(&addr, &want, len));
			len = 3;
			EXPECT_EQ(getsockname(fd[i], &addr.sa, &len), 0);
			EXPECT_EQ(len, end_addr_len(&want));
		}
	}
}

/* A socket that was not bound gets port and address from the way to the peer. */
TEST(autobind)
{
	struct end_options opt = { .seed = end_fresh_seed(), .type_flags = SOCK_NONBLOCK };
	struct pollfd p = { .events = POLLOUT };
	union addr addr, want;
	socklen_t len = sizeof(addr);
	int fd[2];

	for (int i = 0; i < 2; i++) {
		fd[i] = end_socket(&opt);
		ASSERT(fd[i] >= 0);
		ASSERT_EQ(end_setup(fd[i], i, &opt), 0);
	}
	ASSERT_EQ(end_bind(fd[1], 'b', false, 0), 0);
	EXPECT_EQ(end_connect(fd[0], 'b', false, end_port(fd[1])), -EINPROGRESS);
	EXPECT(end_port(fd[0]) > 0);
	EXPECT_EQ(end_connect(fd[1], 'a', false, end_port(fd[0])), -EINPROGRESS);
	p.fd = fd[0];
	EXPECT_EQ(poll(&p, 1, 60000), 1);
	EXPECT_EQ(p.revents, POLLOUT);
	EXPECT_EQ(getsockname(fd[0], &addr.sa, &len), 0);
	end_addr(&want, 'a', false, end_port(fd[0]));
	EXPECT(!memcmp(&addr, &want, sizeof(want.in)));
}

/* connect(AF_UNSPEC) and shutdown() while connecting give up. */
TEST(give_up)
{
	struct end_options opt = { .type_flags = SOCK_NONBLOCK };
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	for (int i = 0; i < 2; i++) {
		int fd = end_socket(&opt), err;
		socklen_t len = sizeof(err);

		opt.seed = end_fresh_seed();
		ASSERT_EQ(end_setup(fd, QRDMA_ROLE_CLIENT, &opt), 0);
		ASSERT_EQ(end_bind(fd, 'a', false, 0), 0);
		EXPECT_EQ(end_connect(fd, 'b', false, 5003), -EINPROGRESS);
		if (i)
			EXPECT_EQ(connect(fd, &unspec, sizeof(unspec)), 0);
		else
			EXPECT_EQ(shutdown(fd, SHUT_RDWR), 0);
		EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len), 0);
		EXPECT_ERRNO(shutdown(fd, SHUT_RDWR), ENOTCONN);
	}
}
