// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/* Scenes: listen(), accept(), connect(). */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <linux/sockios.h>

#include "contract.h"

static int connect_bytes(int fd, const void *addr, socklen_t len)
{
	return connect(fd, addr, len);
}

SCENE(connect_arguments)
{
	int fd = open_socket(O_NONBLOCK), fresh;
	union addr addr;

	end_addr(&addr, 'b', stage_six, 9);
	say("len-0", connect_bytes(fd, &addr, 0));
	say("len-1", connect_bytes(fd, &addr, 1));
	say("len-15", connect_bytes(fd, &addr, 15));
	say("fault", connect_bytes(fd, (void *)1, sizeof(addr)));
	end_addr(&addr, 'b', !stage_six, 9);
	say("other-family", connect_bytes(fd, &addr, end_addr_len(&addr)));
	addr.sa.sa_family = AF_UNIX;
	say("unix", connect_bytes(fd, &addr, sizeof(addr)));
	memset(&addr, 0, sizeof(addr));
	say("unspec", connect_bytes(fd, &addr, sizeof(addr)));
	end_addr(&addr, 'b', stage_six, 9);
	if (stage_six)
		inet_pton(AF_INET6, "ff0e::1", &addr.in6.sin6_addr);
	else
		inet_pton(AF_INET, "224.0.0.1", &addr.in.sin_addr);
	fresh = open_socket(O_NONBLOCK);
	say("multicast", connect_bytes(fresh, &addr, end_addr_len(&addr)));
	if (stage_six)
		inet_pton(AF_INET6, "fe80::1", &addr.in6.sin6_addr);
	else
		inet_pton(AF_INET, "255.255.255.255", &addr.in.sin_addr);
	fresh = open_socket(O_NONBLOCK);
	say("link-local-or-broadcast", connect_bytes(fresh, &addr, end_addr_len(&addr)));
	say_bits("bits", bits(fd));
	say("bad-fd", connect_to(-1, 'b', 9));
}

/* Nobody listens there. */
SCENE(connect_refused)
{
	int fd = open_socket(0);
	char c;

	say("connect", connect_to(fd, 'b', 9));
	say_bits("bits", bits(fd));
	say_err("error", error_of(fd));
	say("send", send(fd, &c, 1, MSG_NOSIGNAL));
	say("again", connect_to(fd, 'b', 9));
	fd = open_socket(O_NONBLOCK);
	say("non-blocking", connect_to(fd, 'b', 9));
	say_bits("non-blocking-bits", bits_until(fd, POLLERR));
	say_err("non-blocking-error", error_of(fd));
	say_err("non-blocking-error-again", error_of(fd));
	say_bits("non-blocking-bits-after", bits(fd));
}

/* A host that does not answer: contract.sh made a way to it that ends nowhere. */
static int connect_nowhere(int fd)
{
	union addr addr;

	end_addr(&addr, 'b', stage_six, 9);
	if (stage_six)
		addr.in6.sin6_addr.s6_addr[15] = 77;
	else
		addr.in.sin_addr.s_addr = htonl(ntohl(addr.in.sin_addr.s_addr) + 75);
	return connect(fd, &addr.sa, end_addr_len(&addr));
}

SCENE(connect_pending)
{
	int fd = open_socket(O_NONBLOCK), n = -3;
	union addr addr;
	socklen_t len = sizeof(addr);
	char c;

	bind_to(fd, 'a', 0);
	say("connect", connect_nowhere(fd));
	say_bits("bits", bits(fd));
	say("again", connect_nowhere(fd));
	say("other", connect_to(fd, 'b', 9));
	say("send", send(fd, "x", 1, MSG_NOSIGNAL));
	say("recv", recv(fd, &c, 1, 0));
	say("getpeername", getpeername(fd, &addr.sa, &len));
	say("listen", listen(fd, 1));
	say("bind", bind_to(fd, 'a', 0));
	say("accept", accept(fd, NULL, NULL));
	say("fionread", ioctl(fd, FIONREAD, &n));
	say("outq", ioctl(fd, SIOCOUTQ, &n));
	say("outq-n", n);
	say_err("error", error_of(fd));
	say("shutdown", shutdown(fd, SHUT_WR));
	say_bits("bits-after-shutdown", bits(fd));
	say("after-shutdown", connect_nowhere(fd));
	say("close", close(fd));
	fd = open_socket(O_NONBLOCK);
	bind_to(fd, 'a', 0);
	connect_nowhere(fd);
	memset(&addr, 0, sizeof(addr));
	say("unspec", connect(fd, &addr.sa, sizeof(addr)));
	say_bits("bits-after-unspec", bits(fd));
	say("after-unspec", connect_nowhere(fd));
}

SCENE(connect_timeout)
{
	int fd = open_socket(0);
	struct timeval t = { .tv_usec = 50000 };

	bind_to(fd, 'a', 0);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
	say("connect", connect_nowhere(fd));
	say("again", connect_nowhere(fd));
}

static void nothing(int sig)
{
}

static void alarm_in(int us, bool restart)
{
	struct sigaction sa = { .sa_handler = nothing, .sa_flags = restart ? SA_RESTART : 0 };
	/* Again and again: the first may come before the call. */
	struct itimerval it = { .it_value = { .tv_usec = us }, .it_interval = { .tv_usec = us } };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
}

/* F49 */
SCENE(interrupted)
{
	struct ends e = join();
	int fd = open_socket(0);
	struct pollfd p = { .fd = e.client, .events = POLLIN };
	char c;

	bind_to(fd, 'a', 0);
	alarm_in(30000, false);
	say("connect", connect_nowhere(fd));
	say("accept", accept(e.listener, NULL, NULL));
	say("recv", recv(e.client, &c, 1, 0));
	say("poll", poll(&p, 1, -1));
	setitimer(ITIMER_REAL, &(struct itimerval){}, NULL);
	say("connect-again", ({ non_blocking(fd); connect_nowhere(fd); }));
}

SCENE(interrupted_with_timeout)
{
	struct ends e = join();
	struct timeval t = { .tv_sec = 5 };
	char c;

	setsockopt(e.client, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(e.listener, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	/* With a time-out a call is not restarted. */
	alarm_in(30000, true);
	say("recv", recv(e.client, &c, 1, 0));
	say("accept", accept(e.listener, NULL, NULL));
	setitimer(ITIMER_REAL, &(struct itimerval){}, NULL);
}

SCENE(connected)
{
	struct ends e = join();
	union addr addr, want;
	socklen_t len = sizeof(addr);
	int n;

	say("again", connect_to(e.client, 'b', port_of(e.listener)));
	say("again-server", connect_to(e.server, 'a', port_of(e.client)));
	say("listen", listen(e.client, 1));
	say("bind", bind_to(e.client, 'a', 0));
	say("accept", accept(e.client, NULL, NULL));
	say("getpeername", getpeername(e.client, &addr.sa, &len));
	end_addr(&want, 'b', stage_six, port_of(e.listener));
	say("peer-is-listener", len == end_addr_len(&want) && !memcmp(&addr, &want, len));
	len = sizeof(addr);
	getsockname(e.server, &addr.sa, &len);
	say("server-name-is-listener", len == end_addr_len(&want) && !memcmp(&addr, &want, len));
	len = sizeof(addr);
	getpeername(e.server, &addr.sa, &len);
	end_addr(&want, 'a', stage_six, port_of(e.client));
	say("peer-is-client", len == end_addr_len(&want) && !memcmp(&addr, &want, len));
	say_bits("client-bits", bits(e.client));
	say_bits("server-bits", bits(e.server));
	say_bits("listener-bits", bits(e.listener));
	say_err("error", error_of(e.client));
	say("fionread", ioctl(e.client, FIONREAD, &n));
	say("fionread-n", n);
}

/* AF_UNSPEC cuts a connection. */
SCENE(disconnect)
{
	struct ends e = join();
	union addr addr = {};
	socklen_t len = sizeof(addr);
	char c;

	say("unspec", connect(e.client, &addr.sa, sizeof(addr)));
	say("getpeername", getpeername(e.client, &addr.sa, &len));
	say_bits("bits", bits(e.client));
	say("send", send(e.client, "x", 1, MSG_NOSIGNAL));
	say_bits("server-bits", bits_until(e.server, POLLERR));
	say("server-recv", recv(e.server, &c, 1, MSG_DONTWAIT));
	say("server-recv-again", recv(e.server, &c, 1, MSG_DONTWAIT));
	say("connect", connect_to(e.client, 'b', port_of(e.listener)));
}

SCENE(connect_without_waiting)
{
	int listener = open_listener(4), fd = open_socket(O_NONBLOCK), server;

	bind_to(fd, 'a', 0);
	say("connect", connect_to(fd, 'b', port_of(listener)));
	say_bits("bits", bits_until(fd, POLLOUT));
	say_err("error", error_of(fd));
	say("again", connect_to(fd, 'b', port_of(listener)));
	say("again-then", connect_to(fd, 'b', port_of(listener)));
	say_bits("listener-bits", bits_until(listener, POLLIN));
	server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	say("accept", server >= 0);
	say_bits("listener-bits-after", bits(listener));
	say("send", send(fd, "hello", 5, 0));
	say("readable", readable_until(server, 5));
}

/* Not bound: the kernel chooses address and port. */
SCENE(connect_unbound)
{
	int listener = open_listener(4), fd = open_socket(0), server;
	union addr addr, want;
	socklen_t len = sizeof(addr);

	say("connect", connect_to(fd, 'b', port_of(listener)));
	server = accept(listener, &addr.sa, &len);
	say("accept", server >= 0);
	end_addr(&want, 'a', stage_six, port_of(fd));
	say("peer", !memcmp(&addr, &want, end_addr_len(&want)));
	len = sizeof(addr);
	getsockname(fd, &addr.sa, &len);
	say("own-name", !memcmp(&addr, &want, end_addr_len(&want)));
}

SCENE(listening)
{
	int fd = open_socket(0), n;
	union addr addr;
	socklen_t len = sizeof(addr);
	char c;

	bind_to(fd, 'b', 0);
	say("listen", listen(fd, 4));
	say("again", listen(fd, 8));
	say("negative", listen(fd, -1));
	say("zero", listen(fd, 0));
	len = sizeof(n);
	getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &n, &len);
	say("acceptconn", n);
	say_bits("bits", bits(fd));
	say("send", send(fd, "x", 1, MSG_NOSIGNAL));
	say("recv", recv(fd, &c, 1, MSG_DONTWAIT));
	say("connect", connect_to(fd, 'a', 9));
	len = sizeof(addr);
	say("getpeername", getpeername(fd, &addr.sa, &len));
	/* F36 */
	say("fionread", ioctl(fd, FIONREAD, &n));
	say("outq", ioctl(fd, SIOCOUTQ, &n));
	say("outqnsd", ioctl(fd, SIOCOUTQNSD, &n));
	say("atmark", ioctl(fd, SIOCATMARK, &n));
	say("shutdown-wr", shutdown(fd, SHUT_WR));
	non_blocking(fd);
	say("accept-fault", accept(fd, (void *)1, (void *)1));
	say("accept", accept(fd, NULL, NULL));
	say("accept4-flags", accept4(fd, NULL, NULL, 1));
	say("shutdown-rd", shutdown(fd, SHUT_RD));
	say_bits("bits-after", bits(fd));
	say("accept-after", accept(fd, NULL, NULL));
	say("listen-after", listen(fd, 4));
}

SCENE(accept_timeout)
{
	int fd = open_listener(4);
	struct timeval t = { .tv_usec = 20000 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	say("accept", accept(fd, NULL, NULL));
}

SCENE(accepting)
{
	int listener = open_socket(O_NONBLOCK), client[3], server, n = 1;
	struct linger linger = { 1, 7 };
	union addr addr;
	socklen_t len;

	bind_to(listener, 'b', 0);
	setsockopt(listener, SOL_SOCKET, SO_KEEPALIVE, &n, sizeof(n));
	setsockopt(listener, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	n = 40000;
	setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &n, sizeof(n));
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &n, sizeof(n));
	listen(listener, 8);
	for (int i = 0; i < 3; i++) {
		client[i] = open_socket(0);
		bind_to(client[i], 'a', 0);
		say(i ? i == 1 ? "connect-2" : "connect-3" : "connect-1",
		    connect_to(client[i], 'b', port_of(listener)));
	}
	bits_until(listener, POLLIN);
	len = 4;
	server = accept(listener, &addr.sa, &len);
	say("accept", server >= 0);
	say("accept-len", len);
	/* Of the listener's flags none is inherited, of its options all. */
	say("nonblock", !!(fcntl(server, F_GETFL) & O_NONBLOCK));
	say("cloexec", fcntl(server, F_GETFD));
	len = sizeof(n);
	getsockopt(server, SOL_SOCKET, SO_KEEPALIVE, &n, &len);
	say("keepalive", n);
	getsockopt(server, SOL_SOCKET, SO_SNDBUF, &n, &len);
	say("sndbuf", n);
	getsockopt(server, SOL_SOCKET, SO_RCVBUF, &n, &len);
	say("rcvbuf", n);
	len = sizeof(linger);
	getsockopt(server, SOL_SOCKET, SO_LINGER, &linger, &len);
	say("linger", linger.l_onoff * 100 + linger.l_linger);
	bits_until(listener, POLLIN);
	server = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	say("accept4", server >= 0);
	say("accept4-nonblock", !!(fcntl(server, F_GETFL) & O_NONBLOCK));
	say("accept4-cloexec", fcntl(server, F_GETFD));
	/* The third one is not accepted. */
	bits_until(listener, POLLIN);
	say("close", close(listener));
	say_bits("client-bits", bits_until(client[2], POLLERR));
	say("client-recv", recv(client[2], &n, 1, MSG_DONTWAIT));
	say_bits("first-bits", bits(client[0]));
}

/* What a client has written before it is accepted */
SCENE(before_accept)
{
	int listener = open_listener(4), fd = open_socket(0), server;
	char data[16] = {};

	bind_to(fd, 'a', 0);
	say("connect", connect_to(fd, 'b', port_of(listener)));
	say("send", send(fd, "hello", 5, 0));
	say("shutdown", shutdown(fd, SHUT_WR));
	server = accept(listener, NULL, NULL);
	say("accept", server >= 0);
	say("recv", recv(server, data, sizeof(data), MSG_WAITALL));
	say_text("data", "%s", data);
	say("recv-end", recv(server, data, sizeof(data), 0));
}

static void *accept_one(void *arg)
{
	int fd = accept(*(int *)arg, NULL, NULL);

	return (void *)(long)(fd < 0 ? -errno : 0);
}

SCENE(shutdown_wakes_accept)
{
	int listener = open_listener(4);
	pthread_t thread;
	void *ret;

	pthread_create(&thread, NULL, accept_one, &listener);
	/* Whether it waits already or not, it ends. */
	say("shutdown", shutdown(listener, SHUT_RDWR));
	pthread_join(thread, &ret);
	say_err("accept", (long)ret);
}

/* A port of its own: TCP connects to itself. */
SCENE(connect_to_itself)
{
	int fd = open_socket(O_NONBLOCK);

	bind_to(fd, 'b', 0);
	say("connect", connect_to(fd, 'b', port_of(fd)));
}

SCENE(connect_port_0)
{
	int fd = open_socket(O_NONBLOCK);

	bind_to(fd, 'a', 0);
	say("connect", connect_to(fd, 'b', 0));
	say_err("error", ({ bits_until(fd, POLLHUP); error_of(fd); }));
}
