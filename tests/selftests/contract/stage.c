// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/* What scenes use. See contract.h. */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <time.h>

#include "../probe.h"
#include "../tls.h"
#include "contract.h"

bool stage_qrdma, stage_six;

static void line(const char *label, const char *text)
{
	printf("%s %s\n", label, text);
	fflush(stdout);
}

void say(const char *label, long long ret)
{
	char number[32];

	if (ret == -1) {
		line(label, strerrorname_np(errno) ?: "unknown");
		return;
	}
	snprintf(number, sizeof(number), "%lld", ret);
	line(label, number);
}

void say_err(const char *label, int err)
{
	errno = -err;
	say(label, err < 0 ? -1 : err);
}

void say_bits(const char *label, int revents)
{
	static const struct {
		int bit;
		const char *name;
	} names[] = {
		{ POLLIN, "IN" }, { POLLPRI, "PRI" }, { POLLOUT, "OUT" }, { POLLERR, "ERR" }, { POLLHUP, "HUP" },
		{ POLLRDHUP, "RDHUP" }, { POLLRDNORM, "RDNORM" }, { POLLWRNORM, "WRNORM" },
		{ POLLRDBAND, "RDBAND" }, { POLLWRBAND, "WRBAND" }, { POLLNVAL, "NVAL" },
	};
	char text[128] = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!(revents & names[i].bit))
			continue;
		if (*text)
			strcat(text, "+");
		strcat(text, names[i].name);
	}
	line(label, *text ? text : "none");
}

void say_text(const char *label, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	line(label, text);
}

void give_up(const char *why)
{
	printf("gave-up %s: %s\n", why, strerror(errno));
	fflush(stdout);
	_exit(1);
}

int open_socket_of(bool six, int flags)
{
	if (stage_qrdma)
		return socket(AF_QRDMA, SOCK_STREAM | flags, six ? QRDMA_PROTO_IPV6 : QRDMA_PROTO_IPV4);
	return socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | flags, 0);
}

int open_socket(int flags)
{
	int fd = open_socket_of(stage_six, flags);

	if (fd < 0)
		give_up("socket");
	return fd;
}

static socklen_t address(union addr *addr, char host, int port)
{
	end_addr(addr, host == '*' ? 'a' : host, stage_six, port);
	if (host == '*' && stage_six)
		memset(&addr->in6.sin6_addr, 0, sizeof(addr->in6.sin6_addr));
	else if (host == '*')
		addr->in.sin_addr.s_addr = 0;
	return end_addr_len(addr);
}

int bind_to(int fd, char host, int port)
{
	union addr addr;
	socklen_t len = address(&addr, host, port);

	return bind(fd, &addr.sa, len);
}

int connect_to(int fd, char host, int port)
{
	union addr addr;
	socklen_t len = address(&addr, host, port);

	return connect(fd, &addr.sa, len);
}

int port_of(int fd)
{
	return end_port(fd);
}

int open_listener(int backlog)
{
	int fd = open_socket(0);

	if (bind_to(fd, 'b', 0) || listen(fd, backlog))
		give_up("listener");
	return fd;
}

struct ends join(void)
{
	struct ends e;

	e.listener = open_listener(8);
	e.client = open_socket(0);
	if (bind_to(e.client, 'a', 0) || connect_to(e.client, 'b', port_of(e.listener)))
		give_up("connect");
	e.server = accept(e.listener, NULL, NULL);
	if (e.server < 0)
		give_up("accept");
	return e;
}

int error_of(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	return -err;
}

void non_blocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int bits(int fd)
{
	struct pollfd p = {
		.fd = fd,
		.events = POLLIN | POLLPRI | POLLOUT | POLLRDHUP | POLLRDNORM | POLLWRNORM | POLLRDBAND | POLLWRBAND,
	};

	poll(&p, 1, 0);
	return p.revents;
}

struct until {
	int fd;
	int want;
};

/* A state that does not come is a result, too: not as patient as wait_for(). */
static void wait_some(bool (*true_now)(void *arg), void *arg)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t end = now_ns() + 4000000000ULL;

	while (!true_now(arg) && now_ns() < end)
		nanosleep(&pause, NULL);
}

static bool have_bits(void *arg)
{
	struct until *u = arg;

	return (bits(u->fd) & u->want) == u->want;
}

int bits_until(int fd, int want)
{
	struct until u = { fd, want };

	wait_some(have_bits, &u);
	return bits(fd);
}

static bool have_bytes(void *arg)
{
	struct until *u = arg;
	int n = 0;

	return ioctl(u->fd, FIONREAD, &n) || n >= u->want;
}

int readable_until(int fd, int want)
{
	struct until u = { fd, want };
	int n = 0;

	wait_some(have_bytes, &u);
	return ioctl(fd, FIONREAD, &n) ? -1 : n;
}

long fill(int fd)
{
	static char block[65536];
	long sum = 0;
	ssize_t n;

	non_blocking(fd);
	while ((n = send(fd, block, sizeof(block), MSG_NOSIGNAL)) > 0)
		sum += n;
	return sum;
}
