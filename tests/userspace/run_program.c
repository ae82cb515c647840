// SPDX-License-Identifier: GPL-2.0
/*
 * The unmodified program that qrdma-run runs in its tests: run_program WHAT. Exit status 0: all was as it would be
 * without. Behind the preload stands run_record.c.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/qrdma.h>

#ifndef SYS_close_range
#define SYS_close_range	436
#endif
#define THREADS	64
#define FORKS	500

static int failed;

#define WANT(a, b)								\
	do {									\
		long a_ = (a), b_ = (b);					\
										\
		if (a_ != b_) {							\
			fprintf(stdout, "# %s:%d: %s is %ld, not %ld\n", __FILE__, __LINE__, #a, a_, b_); \
			failed = 1;						\
		}								\
	} while (0)

union addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static socklen_t addr_of(union addr *addr, const char *text, int port)
{
	memset(addr, 0, sizeof(*addr));
	if (strchr(text, ':')) {
		addr->in6.sin6_family = AF_INET6;
		addr->in6.sin6_port = htons(port);
		inet_pton(AF_INET6, text, &addr->in6.sin6_addr);
		return sizeof(addr->in6);
	}
	addr->in.sin_family = AF_INET;
	addr->in.sin_port = htons(port);
	inet_pton(AF_INET, text, &addr->in.sin_addr);
	return sizeof(addr->in);
}

static int option(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int val = -1;

	getsockopt(fd, level, name, &val, &len);
	return val;
}

static int domain_of(int fd)
{
	return option(fd, SOL_SOCKET, SO_DOMAIN);
}

/* A listener of its own, not by way of the preload; its port */
static int listener(int family, int *port)
{
	int fd = syscall(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	union addr addr;
	socklen_t len = addr_of(&addr, family == AF_INET6 ? "::1" : "127.0.0.1", 0);

	if (syscall(SYS_bind, fd, &addr, len) || listen(fd, 128))
		exit(3);
	getsockname(fd, &addr.sa, &len);
	*port = ntohs(family == AF_INET6 ? addr.in6.sin6_port : addr.in.sin_port);
	return fd;
}

static int say_args(int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		fwrite(argv[i], strlen(argv[i]) + 1, 1, stdout);
	return 0;
}

/* F46 */
static void check_socket(int family, int type, int flags, int protocol)
{
	bool stream = (family == AF_INET || family == AF_INET6) && type == SOCK_STREAM &&
		      (!protocol || protocol == IPPROTO_TCP);
	int fd = socket(family, type | flags, protocol);

	if (fd < 0) {
		WANT(stream, false);
		return;
	}
	WANT(domain_of(fd), stream ? AF_QRDMA : family);
	if (!stream && protocol)
		WANT(option(fd, SOL_SOCKET, SO_PROTOCOL), protocol);
	WANT(fcntl(fd, F_GETFD), flags & SOCK_CLOEXEC ? FD_CLOEXEC : 0);
	WANT(fcntl(fd, F_GETFL) & O_NONBLOCK, flags & SOCK_NONBLOCK ? O_NONBLOCK : 0);
	WANT(option(fd, SOL_SOCKET, SO_TYPE), type);
	close(fd);
}

static void sockets(void)
{
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6 };
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	static const int protocols[] = { 0, IPPROTO_TCP, IPPROTO_UDP, 262 /* MPTCP */ };

	for (int i = 0; i < 3 * 3 * 4 * 4; i++) {
		int flags = (i & 1 ? SOCK_NONBLOCK : 0) | (i & 2 ? SOCK_CLOEXEC : 0);

		check_socket(families[i / 48], types[i / 16 % 3], flags, protocols[i / 4 % 4]);
	}
	WANT(socket(AF_INET, SOCK_STREAM | 0x1000, 0), -1);
	WANT(socket(12345, SOCK_STREAM, 0), -1);
	WANT(errno, EAFNOSUPPORT);
}

static pthread_barrier_t barrier;

static void *open_socket(void *arg)
{
	int fd;

	pthread_barrier_wait(&barrier);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	return (void *)(long)(fd >= 0 && domain_of(fd) == AF_QRDMA);
}

/* F55 */
static void threads(void)
{
	pthread_t thread[THREADS];
	void *good;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		WANT(pthread_create(&thread[i], NULL, open_socket, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &good);
		WANT((long)good, 1);
	}
}

static bool enough;

static void *open_and_close(void *arg)
{
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
		close(socket(AF_INET6, SOCK_STREAM, 0));
	return NULL;
}

static int child_connects(const union addr *addr, socklen_t len)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	/* Of AF_QRDMA, as loopback is to be taken in this test */
	return fd < 0 || domain_of(fd) != AF_QRDMA || connect(fd, &addr->sa, len) || domain_of(fd) != AF_QRDMA;
}

/* F53 */
static void forks(void)
{
	int port, status, fd = listener(AF_INET, &port);
	pthread_t thread;
	union addr addr;
	socklen_t len = addr_of(&addr, "127.0.0.1", port);
	pid_t pid;

	WANT(pthread_create(&thread, NULL, open_and_close, NULL), 0);
	for (int i = 0; i < FORKS && !failed; i++) {
		pid = fork();
		if (!pid)
			_exit(child_connects(&addr, len));
		close(accept(fd, NULL, NULL));
		waitpid(pid, &status, 0);
		WANT(status, 0);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 3;	/* ".", "..", and the directory itself */
}

/* F52 */
static void closefds(void)
{
	int port, fd, before;
	union addr addr;
	socklen_t len;

	before = open_fds();
	close(socket(AF_INET, SOCK_STREAM, 0));
	WANT(open_fds(), before);
	WANT(syscall(SYS_close_range, 3, ~0U, 0), 0);
	for (fd = 3; fd < 1024; fd++)
		close(fd);
	WANT(open_fds(), 3);
	listener(AF_INET, &port);
	len = addr_of(&addr, "127.0.0.1", port);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	WANT(domain_of(fd), AF_QRDMA);
	WANT(connect(fd, &addr.sa, len), 0);
	WANT(domain_of(fd), AF_INET);
	WANT(open_fds(), 5);
}

static void set(int fd, int level, int name, int val)
{
	WANT(setsockopt(fd, level, name, &val, sizeof(val)), 0);
}

/* What was set before is there after: bind() or connect() to what is left to TCP */
static void carry_one(int family, const char *text, bool by_bind)
{
	int port, lfd = listener(family, &port), fd;
	struct timeval t = { 5, 0 };
	socklen_t len = sizeof(t);
	struct linger linger = {};
	union addr addr;

	fd = socket(strchr(text, ':') ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	WANT(domain_of(fd), AF_QRDMA);
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set(fd, SOL_SOCKET, SO_SNDBUF, 30000);
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 77);
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 4321);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 9 }, sizeof(struct linger));

	if (by_bind) {
		addr_of(&addr, text, 0);
		WANT(bind(fd, &addr.sa, addr_of(&addr, text, 0)), 0);
	} else {
		if (connect(fd, &addr.sa, addr_of(&addr, text, port)))
			WANT(errno, EINPROGRESS);
	}
	WANT(domain_of(fd), strchr(text, ':') ? AF_INET6 : AF_INET);
	WANT(fcntl(fd, F_GETFD), FD_CLOEXEC);
	WANT(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	WANT(option(fd, SOL_SOCKET, SO_REUSEADDR), 1);
	WANT(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	WANT(option(fd, SOL_SOCKET, SO_SNDBUF), 60000);
	WANT(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	WANT(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 77);
	WANT(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 4321);
	memset(&t, 0, sizeof(t));
	getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, &len);
	WANT(t.tv_sec, 5);
	len = sizeof(linger);
	getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len);
	WANT(linger.l_linger, 9);
	close(fd);
	close(lfd);
}

static void carry(void)
{
	carry_one(AF_INET, "127.0.0.1", false);
	carry_one(AF_INET, "0.0.0.0", false);
	carry_one(AF_INET, "::ffff:127.0.0.1", false);
	carry_one(AF_INET6, "::1", false);
	carry_one(AF_INET, "127.0.0.1", true);
	carry_one(AF_INET6, "::1", true);
}

/* Sockets that stay what they are, and one that takes its name along */
static void stay(void)
{
	int port, lfd = listener(AF_INET, &port), fd;
	union addr addr, name;
	socklen_t len;

	fd = socket(AF_INET, SOCK_STREAM, 0);
	WANT(bind(fd, &addr.sa, addr_of(&addr, "0.0.0.0", 0)), 0);
	WANT(domain_of(fd), AF_QRDMA);
	len = sizeof(name);
	getsockname(fd, &name.sa, &len);
	/* To be let go of, so that the other one finds the port free: what stands for AF_QRDMA is TCP, too. */
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	WANT(connect(fd, &addr.sa, addr_of(&addr, "127.0.0.1", port)), 0);
	WANT(domain_of(fd), AF_INET);
	len = sizeof(addr);
	getsockname(fd, &addr.sa, &len);
	WANT(addr.in.sin_port, name.in.sin_port);
	close(fd);

	fd = socket(AF_INET, SOCK_STREAM, 0);
	WANT(listen(fd, 1), 0);
	WANT(domain_of(fd), AF_QRDMA);
	WANT(bind(fd, &addr.sa, 3), -1);
	WANT(errno, EINVAL);
	WANT(bind(fd, NULL, 0), -1);
	WANT(domain_of(fd), AF_QRDMA);
	WANT(connect(-1, &addr.sa, sizeof(addr.in)), -1);
	WANT(errno, EBADF);
	close(fd);
	close(lfd);
}

/* Loopback is taken, here: connect() to it falls back, or does not. */
static void fallback(bool falls)
{
	int port, lfd = listener(AF_INET, &port), fd;
	union addr addr;

	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0) {
		WANT(falls, false);
		WANT(errno, EAFNOSUPPORT);
		return;
	}
	WANT(connect(fd, &addr.sa, addr_of(&addr, "127.0.0.1", port)), falls ? 0 : -1);
	if (!falls)
		WANT(errno, ECONNREFUSED);
	WANT(domain_of(fd), falls ? AF_INET : AF_QRDMA);
	close(fd);
	close(lfd);
}

/* Descriptor 2 is a file of the program meanwhile. */
static void stderr_is_mine(const char *path)
{
	struct stat st;

	close(2);
	WANT(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644), 2);
	fallback(true);
	WANT(stat(path, &st), 0);
	WANT(st.st_size, 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "args"))
		return say_args(argc, argv);
	if (!strcmp(what, "sockets"))
		sockets();
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "forks"))
		forks();
	else if (!strcmp(what, "closefds"))
		closefds();
	else if (!strcmp(what, "carry"))
		carry();
	else if (!strcmp(what, "stay"))
		stay();
	else if (!strcmp(what, "falls"))
		fallback(true);
	else if (!strcmp(what, "refused"))
		fallback(false);
	else if (!strcmp(what, "stderr") && argc > 2)
		stderr_is_mine(argv[2]);
	else
		return 2;
	fflush(stdout);
	return failed;
}
