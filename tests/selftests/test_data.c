// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * Bytes through a connection: blocking, non-blocking, epoll, flags, ioctls, splice.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <linux/sockios.h>

#include "cases.h"
#include "ends.h"

static void connected(int fd[2], const struct end_options *opt)
{
	int err = end_pair(fd, opt);

	if (err) {
		tap_fail("no connection: %s", strerror(-err));
		_exit(1);
	}
}

/* A pair of TCP, to compare with. */
static void tcp_pair(int fd[2])
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(in);
	int l = CHECK(socket(AF_INET, SOCK_STREAM, 0));

	CHECK(bind(l, (struct sockaddr *)&in, sizeof(in)));
	CHECK(listen(l, 1));
	CHECK(getsockname(l, (struct sockaddr *)&in, &len));
	fd[0] = CHECK(socket(AF_INET, SOCK_STREAM, 0));
	CHECK(connect(fd[0], (struct sockaddr *)&in, sizeof(in)));
	fd[1] = CHECK(accept(l, NULL, NULL));
	close(l);
}

/* Byte at an offset of the stream */
static unsigned char byte_at(uint64_t off)
{
	off *= 0x9e3779b97f4a7c15ULL;
	return off >> 56 ^ off >> 32;
}

static void fill(unsigned char *buf, size_t len, uint64_t off)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = byte_at(off + i);
}

static bool right(const unsigned char *buf, size_t len, uint64_t off)
{
	for (size_t i = 0; i < len; i++) {
		if (buf[i] != byte_at(off + i)) {
			tap_fail("wrong byte at %llu", (unsigned long long)(off + i));
			return false;
		}
	}
	return true;
}

struct transfer {
	int fd;
	size_t size;
	size_t chunk;
};

static void *writer(void *arg)
{
	struct transfer *t = arg;
	unsigned char *buf = malloc(t->chunk);

	for (size_t off = 0; off < t->size;) {
		size_t len = t->size - off < t->chunk ? t->size - off : t->chunk;
		ssize_t n;

		fill(buf, len, off);
		n = CHECK(send(t->fd, buf, len, 0));
		off += n;
	}
	free(buf);
	CHECK(shutdown(t->fd, SHUT_WR));
	return NULL;
}

static void *reader(void *arg)
{
	struct transfer *t = arg;
	unsigned char *buf = malloc(t->chunk);
	uint64_t off = 0;
	ssize_t n;

	while ((n = CHECK(recv(t->fd, buf, t->chunk, 0))) > 0) {
		if (!right(buf, n, off))
			break;
		off += n;
	}
	EXPECT_EQ(off, t->size);
	free(buf);
	return NULL;
}

/* @size bytes each way at once */
static void both_ways(int fd[2], size_t size, size_t write_chunk, size_t read_chunk)
{
	struct transfer t[4] = {
		{ fd[0], size, write_chunk }, { fd[1], size, write_chunk },
		{ fd[0], size, read_chunk }, { fd[1], size, read_chunk },
	};
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, i < 2 ? writer : reader, &t[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

TEST(blocking)
{
	static const struct {
		size_t size, write, read;
	} cases[] = {
		{ 1, 1, 1 },
		{ 5000, 1, 4096 },
		{ 100000, 977, 1 << 16 },
		{ 1 << 20, 1 << 20, 1 << 20 },
		{ 1 << 20, 65536, 100 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t size = cases[i].size;
		int fd[2];

		if (tap_short())
			size = size / 4 + 1;
		connected(fd, NULL);
		both_ways(fd, size, cases[i].write, cases[i].read);
		close(fd[0]);
		close(fd[1]);
	}
}

TEST(ipv6)
{
	struct end_options opt = { .ipv6 = true };
	int fd[2];

	connected(fd, &opt);
	both_ways(fd, 200000, 10000, 10000);
}

TEST(ciphers)
{
	static const uint32_t types[] = {
		QRDMA_CIPHER_AES_GCM_128, QRDMA_CIPHER_AES_GCM_256, QRDMA_CIPHER_AES_CCM_128,
		QRDMA_CIPHER_CHACHA20,
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		struct end_options opt = { .cipher = types[i] };
		int fd[2];

		connected(fd, &opt);
		both_ways(fd, 100000, 30000, 30000);
		close(fd[0]);
		close(fd[1]);
	}
}

TEST(newreno)
{
	struct end_options opt = { .config.congestion = QRDMA_CONG_NEWRENO };
	int fd[2];

	connected(fd, &opt);
	both_ways(fd, 200000, 10000, 10000);
}

/* Many small credits, and a receive buffer of the smallest size */
TEST(small_buffers)
{
	struct end_options opt = { .max_data = 600, .rcvbuf = 1, .sndbuf = 1 };
	int fd[2];

	connected(fd, &opt);
	both_ways(fd, 100000, 5000, 700);
}

TEST(nonblocking)
{
	struct end_options opt = { .type_flags = SOCK_NONBLOCK };
	unsigned char buf[9000];
	uint64_t sent = 0, got = 0, size = tap_short() ? 200000 : 1000000;
	int fd[2], err;

	connected(fd, &opt);
	EXPECT_ERRNO(recv(fd[0], buf, 1, 0), EAGAIN);
	while (got < size) {
		struct pollfd p[2] = {
			{ .fd = sent < size ? fd[0] : -1, .events = POLLOUT },
			{ .fd = fd[1], .events = POLLIN },
		};
		ssize_t n;

		ASSERT(poll(p, 2, 60000) > 0);
		ASSERT(!((p[0].revents | p[1].revents) & (POLLERR | POLLHUP)));
		if (p[0].revents) {
			size_t len = size - sent < sizeof(buf) ? size - sent : sizeof(buf);

			fill(buf, len, sent);
			n = send(fd[0], buf, len, 0);
			err = errno;
			if (n < 0)
				ASSERT_EQ(err, EAGAIN);
			else
				sent += n;
		}
		if (p[1].revents) {
			n = CHECK(recv(fd[1], buf, sizeof(buf), 0));
			ASSERT(n > 0);
			ASSERT(right(buf, n, got));
			got += n;
		}
	}
}

/* Edge triggered: one event for each change, none lost. */
TEST(epoll_edge)
{
	struct end_options opt = { .type_flags = SOCK_NONBLOCK, .sndbuf = 20000 };
	uint64_t sent = 0, got = 0, size = 400000;
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP };
	unsigned char buf[5000];
	int fd[2], ep = CHECK(epoll_create1(0));

	connected(fd, &opt);
	for (int i = 0; i < 2; i++) {
		ev.data.fd = fd[i];
		CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &ev));
	}
	while (got < size) {
		struct epoll_event e[4];
		int n = CHECK(epoll_wait(ep, e, 4, 60000));

		ASSERT(n > 0);
		for (int i = 0; i < n; i++) {
			ssize_t r;

			if (e[i].data.fd == fd[0] && (e[i].events & EPOLLOUT)) {
				while (sent < size) {
					size_t len = size - sent;

					if (len > sizeof(buf))
						len = sizeof(buf);
					fill(buf, len, sent);
					r = send(fd[0], buf, len, 0);
					if (r < 0)
						break;
					sent += r;
				}
			}
			if (e[i].data.fd == fd[1] && (e[i].events & EPOLLIN)) {
				while ((r = recv(fd[1], buf, sizeof(buf), 0)) > 0) {
					ASSERT(right(buf, r, got));
					got += r;
				}
			}
		}
	}
	shutdown(fd[0], SHUT_WR);
	ASSERT_EQ(epoll_wait(ep, &ev, 1, 60000), 1);
}

/* An epoll descriptor in another one (F48) */
TEST(epoll_nested)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int fd[2], in = CHECK(epoll_create1(0)), out = CHECK(epoll_create1(0));

	connected(fd, NULL);
	CHECK(epoll_ctl(in, EPOLL_CTL_ADD, fd[1], &ev));
	CHECK(epoll_ctl(out, EPOLL_CTL_ADD, in, &ev));
	EXPECT_EQ(epoll_wait(out, &ev, 1, 0), 0);
	CHECK(send(fd[0], "x", 1, 0));
	EXPECT_EQ(epoll_wait(out, &ev, 1, 60000), 1);
}

/* When nobody reads, a writer is stopped, and poll() says so; reading lets it go on. */
TEST(back_pressure)
{
	struct end_options opt = { .type_flags = SOCK_NONBLOCK, .sndbuf = 40000, .rcvbuf = 40000 };
	struct pollfd p = { .events = POLLOUT };
	static unsigned char buf[1 << 16];
	uint64_t sent = 0, got = 0;
	ssize_t n;
	int fd[2];

	connected(fd, &opt);
	p.fd = fd[0];
	/*
	 * What is under way to the receiver's buffer makes room once more, until that is full,
	 * too.
	 */
	while (poll(&p, 1, 2000) == 1) {
		n = send(fd[0], buf, sizeof(buf), 0);
		if (n > 0)
			sent += n;
		else
			ASSERT_EQ(errno, EAGAIN);
		ASSERT(sent < 10 << 20);
	}
	EXPECT(sent >= 40000);
	while (got < sent) {
		struct pollfd q = { .fd = fd[1], .events = POLLIN };

		ASSERT_EQ(poll(&q, 1, 60000), 1);
		n = CHECK(recv(fd[1], buf, sizeof(buf), 0));
		got += n;
	}
	EXPECT_EQ(poll(&p, 1, 60000), 1);
}

struct flag {
	const char *name;
	int flag;
};

static const struct flag send_flags[] = {
	{ "0", 0 }, { "PEEK", MSG_PEEK }, { "DONTROUTE", MSG_DONTROUTE },
	{ "CTRUNC", MSG_CTRUNC },
	{ "TRUNC", MSG_TRUNC }, { "DONTWAIT", MSG_DONTWAIT }, { "EOR", MSG_EOR },
	{ "WAITALL", MSG_WAITALL }, { "FIN", MSG_FIN }, { "SYN", MSG_SYN },
	{ "CONFIRM", MSG_CONFIRM },
	{ "RST", MSG_RST }, { "ERRQUEUE", MSG_ERRQUEUE }, { "NOSIGNAL", MSG_NOSIGNAL },
	{ "MORE", MSG_MORE }, { "WAITFORONE", MSG_WAITFORONE }, { "ZEROCOPY", MSG_ZEROCOPY },
	{ "CMSG_CLOEXEC", MSG_CMSG_CLOEXEC },
};

/* F35: what TCP takes is taken, with the same result. */
TEST(send_flags)
{
	int tcp[2], ours[2];

	tcp_pair(tcp);
	connected(ours, NULL);
	for (size_t i = 0; i < sizeof(send_flags) / sizeof(*send_flags); i++) {
		char buf[16] = {};

		CASE(send_flags[i].name);
		EXPECT_EQ(send(ours[0], "hello", 5, send_flags[i].flag),
			  send(tcp[0], "hello", 5, send_flags[i].flag));
		EXPECT_EQ(recv(ours[1], buf, 5, MSG_WAITALL), 5);
		EXPECT(!strcmp(buf, "hello"));
		EXPECT_EQ(recv(tcp[1], buf, 5, MSG_WAITALL), 5);
	}
	CASE("OOB");
	EXPECT_ERRNO(send(ours[0], "x", 1, MSG_OOB), EOPNOTSUPP);
}

static const struct flag recv_flags[] = {
	{ "0", 0 }, { "OOB", MSG_OOB }, { "PEEK", MSG_PEEK }, { "DONTROUTE", MSG_DONTROUTE },
	{ "TRUNC", MSG_TRUNC }, { "PEEK|TRUNC", MSG_PEEK | MSG_TRUNC },
	{ "DONTWAIT", MSG_DONTWAIT },
	{ "EOR", MSG_EOR }, { "CONFIRM", MSG_CONFIRM }, { "ERRQUEUE", MSG_ERRQUEUE },
	{ "NOSIGNAL", MSG_NOSIGNAL }, { "MORE", MSG_MORE }, { "WAITFORONE", MSG_WAITFORONE },
	{ "CMSG_CLOEXEC", MSG_CMSG_CLOEXEC }, { "PEEK|DONTWAIT", MSG_PEEK | MSG_DONTWAIT },
};

static void readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	ASSERT_EQ(poll(&p, 1, 60000), 1);
}

TEST(recv_flags)
{
	int tcp[2], ours[2];

	tcp_pair(tcp);
	connected(ours, NULL);
	for (size_t i = 0; i < sizeof(recv_flags) / sizeof(*recv_flags); i++) {
		char a[16] = {}, b[16] = {};
		int ra, rb, ea, eb;

		CASE(recv_flags[i].name);
		CHECK(send(tcp[0], "hello", 5, 0));
		CHECK(send(ours[0], "hello", 5, 0));
		readable(tcp[1]);
		readable(ours[1]);
		errno = 0;
		ra = recv(tcp[1], a, sizeof(a), recv_flags[i].flag);
		ea = errno;
		errno = 0;
		rb = recv(ours[1], b, sizeof(b), recv_flags[i].flag);
		eb = errno;
		EXPECT_EQ(rb, ra);
		EXPECT_EQ(eb, ea);
		EXPECT(!memcmp(a, b, sizeof(a)));
		/* Did it take them? */
		ra = recv(tcp[1], a, sizeof(a), MSG_DONTWAIT);
		rb = recv(ours[1], b, sizeof(b), MSG_DONTWAIT);
		EXPECT_EQ(rb, ra);
	}
}

TEST(peek_waitall)
{
	static unsigned char out[30000], in[30000];
	int fd[2];

	connected(fd, NULL);
	fill(out, sizeof(out), 0);
	for (size_t off = 0; off < 12000; off += 1000)
		CHECK(send(fd[0], out + off, 1000, 0));
	EXPECT_EQ(recv(fd[1], in, 12000, MSG_PEEK | MSG_WAITALL), 12000);
	EXPECT(right(in, 12000, 0));
	EXPECT_EQ(recv(fd[1], in, 5, MSG_PEEK), 5);
	EXPECT(right(in, 5, 0));
	EXPECT_EQ(recv(fd[1], in, 11000, MSG_WAITALL), 11000);
	EXPECT(right(in, 11000, 0));
	/* MSG_TRUNC drops them unseen. */
	memset(in, 0, sizeof(in));
	EXPECT_EQ(recv(fd[1], in, 600, MSG_TRUNC), 600);
	EXPECT_EQ(in[0] | in[599], 0);
	EXPECT_EQ(recv(fd[1], in, sizeof(in), 0), 400);
	EXPECT(right(in, 400, 11600));
	/* The end cuts MSG_WAITALL short. */
	CHECK(send(fd[0], out, 700, 0));
	CHECK(shutdown(fd[0], SHUT_WR));
	EXPECT_EQ(recv(fd[1], in, sizeof(in), MSG_WAITALL), 700);
	EXPECT_EQ(recv(fd[1], in, sizeof(in), MSG_WAITALL), 0);
}

static void rcvtimeo(int fd, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
}

/* As much as goes in while nobody reads */
static size_t fill_up(int fd)
{
	static unsigned char out[4096];
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	size_t sum = 0;
	ssize_t n;

	do {
		fill(out, sizeof(out), sum);
		n = send(fd, out, sizeof(out), MSG_DONTWAIT);
		if (n > 0)
			sum += n;
	} while (n > 0 || poll(&p, 1, 300) > 0);
	return sum;
}

/* What is peeked at takes room: more than there is room for cannot be had. */
TEST(peek_waitall_beyond)
{
	static unsigned char in[16 << 20];
	int tcp[2], ours[2];
	ssize_t n;

	tcp_pair(tcp);
	connected(ours, NULL);
	for (int i = 0; i < 2; i++) {
		int *fd = i ? tcp : ours;

		CASE(i ? "TCP" : "QRDMA");
		rcvtimeo(fd[1], 200);
		CHECK(send(fd[0], "hello", 5, 0));
		EXPECT_EQ(recv(fd[1], in, 6, MSG_PEEK | MSG_WAITALL), 5);
		EXPECT_EQ(recv(fd[1], in, 5, MSG_WAITALL), 5);
		EXPECT(fill_up(fd[0]) < sizeof(in));
		n = recv(fd[1], in, sizeof(in), MSG_PEEK | MSG_WAITALL);
		EXPECT(n >= 10000 && n < (ssize_t)sizeof(in) && right(in, n, 0));
		EXPECT_EQ(recv(fd[1], in, n, MSG_WAITALL), n);
		EXPECT(right(in, n, 0));
	}
	/* TCP would wait for ever now; here the full window ends the wait. */
	CASE("no time-out");
	connected(ours, NULL);
	EXPECT(fill_up(ours[0]) < sizeof(in));
	n = recv(ours[1], in, sizeof(in), MSG_PEEK | MSG_WAITALL);
	EXPECT(n >= 10000 && n < (ssize_t)sizeof(in) && right(in, n, 0));
	CASE("");
}

TEST(zero_length)
{
	char c;
	int fd[2];

	connected(fd, NULL);
	EXPECT_EQ(send(fd[0], &c, 0, 0), 0);
	EXPECT_ERRNO(recv(fd[1], &c, 0, MSG_DONTWAIT), EAGAIN);
	CHECK(send(fd[0], "x", 1, 0));
	readable(fd[1]);
	EXPECT_EQ(recv(fd[1], &c, 0, 0), 0);
	EXPECT_EQ(recv(fd[1], &c, 1, 0), 1);
}

static int value(int fd, unsigned long cmd)
{
	int val = -1;

	CHECK(ioctl(fd, cmd, &val));
	return val;
}

/* F36: what was written is either acknowledged and readable, or waits. */
TEST(ioctls)
{
	struct end_options opt = { .type_flags = SOCK_NONBLOCK, .rcvbuf = 20000 };
	static unsigned char buf[60000];
	int fd[2], n;

	connected(fd, &opt);
	CHECK(send(fd[0], buf, 3000, 0));
	while (value(fd[0], SIOCOUTQ))
		poll(NULL, 0, 1);
	EXPECT_EQ(value(fd[1], FIONREAD), 3000);
	EXPECT_EQ(value(fd[0], SIOCOUTQNSD), 0);
	n = CHECK(send(fd[0], buf, sizeof(buf), 0));
	while (value(fd[0], SIOCOUTQ) + value(fd[1], FIONREAD) != n + 3000)
		poll(NULL, 0, 1);
	EXPECT(value(fd[0], SIOCOUTQ) > 0);
	EXPECT(value(fd[0], SIOCOUTQNSD) <= value(fd[0], SIOCOUTQ));
	for (int got = 0; got < n + 3000;) {
		readable(fd[1]);
		got += CHECK(recv(fd[1], buf, sizeof(buf), 0));
	}
	while (value(fd[0], SIOCOUTQ))
		poll(NULL, 0, 1);
	EXPECT_EQ(value(fd[1], FIONREAD), 0);
}

/* MSG_MORE holds bytes back for company, not for ever. */
TEST(more)
{
	struct qrdma_info before, after;
	socklen_t len = sizeof(before);
	char buf[64];
	int fd[2];

	connected(fd, NULL);
	CHECK(getsockopt(fd[0], SOL_QRDMA, QRDMA_INFO, &before, &len));
	for (int i = 0; i < 50; i++)
		CHECK(send(fd[0], "x", 1, MSG_MORE));
	EXPECT_EQ(recv(fd[1], buf, 50, MSG_WAITALL), 50);
	CHECK(getsockopt(fd[0], SOL_QRDMA, QRDMA_INFO, &after, &len));
	EXPECT(after.packets_sent - before.packets_sent < 25);
	CHECK(send(fd[0], "x", 1, MSG_MORE));
	CHECK(send(fd[0], "y", 1, 0));
	EXPECT_EQ(recv(fd[1], buf, 2, MSG_WAITALL), 2);
	CHECK(send(fd[0], "z", 1, MSG_MORE));
	CHECK(shutdown(fd[0], SHUT_WR));
	EXPECT_EQ(recv(fd[1], buf, 2, MSG_WAITALL), 1);
}

TEST(lowat)
{
	int fd[2], low = 10;
	struct pollfd p = { .events = POLLIN };
	char buf[16];

	connected(fd, NULL);
	p.fd = fd[1];
	CHECK(setsockopt(fd[1], SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low)));
	CHECK(send(fd[0], "12345", 5, 0));
	while (value(fd[1], FIONREAD) < 5)
		poll(NULL, 0, 1);
	EXPECT_EQ(poll(&p, 1, 0), 0);
	CHECK(send(fd[0], "67890", 5, 0));
	EXPECT_EQ(poll(&p, 1, 60000), 1);
	EXPECT_EQ(recv(fd[1], buf, sizeof(buf), 0), 10);
}

/* F34: a hole in what is to be sent ends the call there; the stream goes on. */
TEST(fault)
{
	long page = sysconf(_SC_PAGESIZE);
	unsigned char *map = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static unsigned char in[1 << 16];
	struct iovec v[3] = { { map, 100 }, { map + page, 100 }, { map + 2 * page, 100 } };
	ssize_t n;
	int fd[2];

	connected(fd, NULL);
	CHECK(munmap(map + page, page));
	fill(map, page, 0);
	EXPECT_ERRNO(send(fd[0], map + page, 10, 0), EFAULT);
	n = CHECK(writev(fd[0], v, 3));
	EXPECT_EQ(n, 100);
	n = CHECK(send(fd[0], map + 100, 2 * page - 100, 0));
	EXPECT_EQ(n, page - 100);
	EXPECT_EQ(recv(fd[1], in, page, MSG_WAITALL), page);
	EXPECT(right(in, page, 0));
	CHECK(send(fd[0], "abcdef", 6, 0));
	readable(fd[1]);
	EXPECT_ERRNO(recv(fd[1], map + page, 6, 0), EFAULT);
	EXPECT_EQ(recv(fd[1], in, 6, MSG_WAITALL), 6);
	EXPECT(!memcmp(in, "abcdef", 6));
}

TEST(sendfile_splice)
{
	size_t size = 100000, off = 0;
	unsigned char *buf = malloc(size);
	int file = CHECK(memfd_create("data", 0)), pipes[2], fd[2];
	off_t pos = 0;

	connected(fd, NULL);
	fill(buf, size, 0);
	ASSERT_EQ(write(file, buf, size), size);
	ASSERT_EQ(sendfile(fd[0], file, &pos, size), size);
	CHECK(pipe(pipes));
	while (off < size) {
		ssize_t n = CHECK(splice(fd[1], NULL, pipes[1], NULL, 30000, 0));

		ASSERT(n > 0);
		ASSERT_EQ(read(pipes[0], buf, n), n);
		ASSERT(right(buf, n, off));
		off += n;
	}
	EXPECT_EQ(off, size);
	/* From a pipe to the socket */
	ASSERT_EQ(write(pipes[1], "through", 7), 7);
	ASSERT_EQ(splice(pipes[0], NULL, fd[0], NULL, 7, 0), 7);
	ASSERT_EQ(recv(fd[1], buf, 7, MSG_WAITALL), 7);
	EXPECT(!memcmp(buf, "through", 7));
}

/* Parent and child use one socket (F56). */
TEST(fork_shares)
{
	char buf[64];
	int fd[2], got = 0, status;
	pid_t pid;

	connected(fd, NULL);
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 100; i++)
			CHECK(send(fd[0], "c", 1, 0));
		_exit(0);
	}
	for (int i = 0; i < 100; i++)
		CHECK(send(fd[0], "p", 1, 0));
	close(fd[0]);
	while (1) {
		int n = CHECK(recv(fd[1], buf, sizeof(buf), 0));

		if (!n)
			break;
		got += n;
	}
	EXPECT_EQ(got, 200);
	waitpid(pid, &status, 0);
	EXPECT_EQ(status, 0);
}

/* Many connections at once, each with its own bytes */
TEST(many)
{
	enum { N = 40 };
	static int fd[N][2];
	char buf[32];

	for (int i = 0; i < N; i++)
		connected(fd[i], NULL);
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < 2; j++) {
			snprintf(buf, sizeof(buf), "connection %d end %d", i, j);
			ASSERT_EQ(send(fd[i][j], buf, sizeof(buf), 0), sizeof(buf));
		}
	}
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < 2; j++) {
			char want[32];

			snprintf(want, sizeof(want), "connection %d end %d", i, !j);
			ASSERT_EQ(recv(fd[i][j], buf, sizeof(buf), MSG_WAITALL), sizeof(buf));
			EXPECT(!strcmp(buf, want));
		}
	}
}
