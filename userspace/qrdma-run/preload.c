// SPDX-License-Identifier: GPL-2.0
/*
 * libqrdma-preload.so: socket() makes an AF_QRDMA socket where the program asks for TCP. All else is the kernel's: the
 * program has a real descriptor. A socket that turns out, at bind() or connect(), to belong to what is left alone
 * becomes a TCP one there, before anything has happened on it.
 *
 * Context: any thread, signal handlers, and children between fork() and exec(). There is no lock, no allocation and no
 * descriptor that outlives a call; what is shared is written once, by the constructor or by the first call of another
 * library's, and only a counter after that. What the preload does itself goes to the calls behind it, never through
 * its own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/qrdma.h>
#include "carry.h"
#include "rules.h"

#define HOOK	__attribute__((visibility("default")))
#define LINE_MAX_LEN	512

HOOK int socket(int domain, int type, int protocol);
HOOK int bind(int fd, const struct sockaddr *addr, socklen_t len);
HOOK int connect(int fd, const struct sockaddr *addr, socklen_t len);

static pthread_once_t preload_once = PTHREAD_ONCE_INIT;
static struct run_real real;
static struct run_rules rules;
static bool rules_bad;
static unsigned int fallbacks;

/*
 * Standard error may since have become a file or a connection of the program: nothing is written there unless it is
 * what it was.
 */
static int log_open(void)
{
	struct stat st;

	if (*rules.log)
		return open(rules.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
	if (!rules.err_ino || fstat(2, &st) || st.st_dev != rules.err_dev || st.st_ino != rules.err_ino)
		return -1;
	return 2;
}

static void preload_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void preload_log(const char *fmt, ...)
{
	char line[LINE_MAX_LEN];
	int err = errno, fd, n;
	va_list ap;

	fd = log_open();
	if (fd >= 0) {
		n = snprintf(line, sizeof(line), "qrdma-run[%d]: %s: ", getpid(), program_invocation_short_name);
		va_start(ap, fmt);
		n += vsnprintf(line + n, sizeof(line) - n, fmt, ap);
		va_end(ap);
		if (n >= (int)sizeof(line))
			n = sizeof(line) - 1;
		line[n - 1] = '\n';
		if (write(fd, line, n) < 0)
			n = 0;
		if (fd != 2)
			close(fd);
	}
	errno = err;
}

static void preload_init(void)
{
	const char *text = getenv(RUN_ENV);

	real.socket = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
	real.bind = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
	real.connect = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
	if (!real.socket || !real.bind || !real.connect)
		abort();
	rules_bad = run_rules_parse(&rules, text ? text : "");
}

__attribute__((constructor)) static void preload_start(void)
{
	int err = errno;

	pthread_once(&preload_once, preload_init);
	errno = err;
}

static void fell_back(const char *why)
{
	unsigned int n = __atomic_add_fetch(&fallbacks, 1, __ATOMIC_RELAXED);

	preload_log("socket falls back to TCP, in the clear: %s; %u in this process\n", why, n);
}

/* Does the program ask for a byte stream over IP? */
static bool asks_for_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP);
}

HOOK int socket(int domain, int type, int protocol)
{
	int fd;

	preload_start();
	if (!asks_for_tcp(domain, type, protocol))
		return real.socket(domain, type, protocol);
	if (rules_bad) {
		/* Better no connection than one that the rules would have sealed. */
		errno = EINVAL;
		return -1;
	}
	fd = real.socket(AF_QRDMA, type, domain == AF_INET6 ? QRDMA_PROTO_IPV6 : QRDMA_PROTO_IPV4);
	if (fd >= 0 || errno != EAFNOSUPPORT || !rules.fallback)
		return fd;
	fd = real.socket(domain, type, protocol);
	if (fd >= 0)
		fell_back("this kernel has no AF_QRDMA");
	return fd;
}

/* A whole address for a socket that is still to become one thing or the other */
static bool undecided(int fd, const struct sockaddr *addr, socklen_t len)
{
	if (!addr || len < sizeof(addr->sa_family))
		return false;
	if (addr->sa_family == AF_INET ? len < sizeof(struct sockaddr_in) :
	    addr->sa_family != AF_INET6 || len < sizeof(struct sockaddr_in6))
		return false;
	return run_carry_possible(fd);
}

static int leave(int fd, const char *what)
{
	if (run_carry(fd, &real))
		return -1;
	if (rules.verbose)
		preload_log("descriptor %d is left to TCP at %s()\n", fd, what);
	return 0;
}

HOOK int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	preload_start();
	if (undecided(fd, addr, len) && !run_rules_take_bind(&rules, addr) && leave(fd, "bind"))
		return -1;
	return real.bind(fd, addr, len);
}

/*
 * Was there nobody to connect to by AF_QRDMA? Whoever was refused by the peer, or by a policy, has had an answer, and
 * gets no other one in the clear.
 */
static const char *nobody_there(int fd)
{
	struct qrdma_connection_close why;
	socklen_t len = sizeof(why);

	memset(&why, 0, sizeof(why));
	if (getsockopt(fd, SOL_QRDMA, QRDMA_CONNECTION_CLOSE, &why, &len))
		return NULL;
	switch (why.reason) {
	case QRDMA_REASON_NO_DEVICE:
		return "no RDMA device has the address (reason 1)";
	case QRDMA_REASON_NO_SERVICE:
		return "the host has no AF_QRDMA (reason 3)";
	case QRDMA_REASON_INCOMPATIBLE:
		return "the host speaks another version (reason 4)";
	}
	return NULL;
}

HOOK int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	const char *why;
	int ret, err;

	preload_start();
	if (!undecided(fd, addr, len))
		return real.connect(fd, addr, len);
	if (!run_rules_take_connect(&rules, addr)) {
		if (leave(fd, "connect"))
			return -1;
		return real.connect(fd, addr, len);
	}
	ret = real.connect(fd, addr, len);
	if (!ret || !rules.fallback || errno == EINPROGRESS)
		return ret;
	err = errno;
	why = nobody_there(fd);
	if (!why || run_carry(fd, &real)) {
		errno = err;
		return ret;
	}
	fell_back(why);
	return real.connect(fd, addr, len);
}
