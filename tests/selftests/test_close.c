// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * How connections end: shutdown, close, SO_LINGER, signals of the end to the peer.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <time.h>
#include <linux/sockios.h>

#include "cases.h"
#include "ends.h"

static unsigned char buf[1 << 16];

static void connected(int fd[2], const struct end_options *opt)
{
	int err = end_pair(fd, opt);

	if (err) {
		tap_fail("no connection: %s", strerror(-err));
		_exit(1);
	}
}

static int events(int fd, int wanted)
{
	struct pollfd p = { .fd = fd, .events = wanted };

	return poll(&p, 1, 60000) == 1 ? p.revents : -1;
}

/* Bytes till the end; -errno */
static long drain(int fd)
{
	long got = 0;
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		got += n;
	return n < 0 ? -errno : got;
}

TEST(half_close)
{
	int fd[2];

	signal(SIGPIPE, SIG_IGN);
	connected(fd, NULL);
	CHECK(send(fd[0], "request", 7, 0));
	CHECK(shutdown(fd[0], SHUT_WR));
	EXPECT_ERRNO(send(fd[0], "x", 1, 0), EPIPE);
	EXPECT_EQ(drain(fd[1]), 7);
	EXPECT_EQ(events(fd[1], POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
	/* The other direction goes on. */
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(send(fd[1], buf, 1000, 0), 1000);
	CHECK(shutdown(fd[1], SHUT_WR));
	EXPECT_EQ(drain(fd[0]), 10000);
	EXPECT(events(fd[0], POLLIN) & POLLHUP);
	EXPECT_EQ(recv(fd[1], buf, 1, 0), 0);
}

TEST(sigpipe)
{
	int fd[2], status;
	pid_t pid;

	connected(fd, NULL);
	CHECK(shutdown(fd[0], SHUT_WR));
	for (int flag = 0; flag < 2; flag++) {
		pid = fork();
		if (!pid) {
			signal(SIGPIPE, SIG_DFL);
			if (send(fd[0], "x", 1, flag ? MSG_NOSIGNAL : 0) < 0 && errno == EPIPE)
				_exit(7);
			_exit(1);
		}
		waitpid(pid, &status, 0);
		if (flag)
			EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		else
			EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	}
}

TEST(shut_rd)
{
	int fd[2];

	connected(fd, NULL);
	CHECK(shutdown(fd[0], SHUT_RD));
	EXPECT_EQ(recv(fd[0], buf, 1, 0), 0);
	EXPECT(events(fd[0], POLLIN | POLLRDHUP) & POLLRDHUP);
	CHECK(send(fd[0], "still", 5, 0));
	EXPECT_EQ(recv(fd[1], buf, 5, MSG_WAITALL), 5);
}

/* Everything that was written before close() arrives, then the end (F23). */
TEST_TIMEOUT(close_delivers, 300)
{
	int rounds = tap_short() ? 10 : 60;

	for (int i = 0; i < rounds; i++) {
		int fd[2];

		connected(fd, NULL);
		ASSERT_EQ(send(fd[i & 1], buf, sizeof(buf), 0), sizeof(buf));
		close(fd[i & 1]);
		ASSERT_EQ(drain(fd[!(i & 1)]), sizeof(buf));
		close(fd[!(i & 1)]);
	}
}

/* Much more than fits into any window: delivery goes on after close(). */
TEST(close_goes_on)
{
	struct end_options opt = { .sndbuf = 1 << 20 };
	static unsigned char big[150000];
	int fd[2];

	connected(fd, &opt);
	ASSERT_EQ(send(fd[0], big, sizeof(big), 0), sizeof(big));
	close(fd[0]);
	EXPECT_EQ(drain(fd[1]), sizeof(big));
	signal(SIGPIPE, SIG_IGN);
	EXPECT(events(fd[1], POLLIN) & POLLIN);
}

static void linger(int fd, int on, int seconds)
{
	struct linger l = { .l_onoff = on, .l_linger = seconds };

	CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
}

/* F50 */
TEST(linger_zero)
{
	struct qrdma_connection_close why;
	socklen_t len = sizeof(why);
	int fd[2], err;

	connected(fd, NULL);
	linger(fd[0], 1, 0);
	close(fd[0]);
	EXPECT_EQ(drain(fd[1]), -ECONNRESET);
	EXPECT_EQ(getsockopt(fd[1], SOL_QRDMA, QRDMA_CONNECTION_CLOSE, &why, &len), 0);
	EXPECT_EQ(why.reason, QRDMA_REASON_PEER_CLOSE);
	EXPECT_EQ(drain(fd[1]), 0);
	EXPECT(events(fd[1], POLLIN) & POLLHUP);

	/* The same seen by poll and SO_ERROR */
	connected(fd, NULL);
	linger(fd[0], 1, 0);
	close(fd[0]);
	EXPECT(events(fd[1], POLLIN) & POLLERR);
	len = sizeof(err);
	EXPECT_EQ(getsockopt(fd[1], SOL_SOCKET, SO_ERROR, &err, &len), 0);
	EXPECT_EQ(err, ECONNRESET);
}

/* With time to linger, close() comes back when all is acknowledged. */
TEST(linger_waits)
{
	int fd[2], val;

	connected(fd, NULL);
	linger(fd[0], 1, 60);
	ASSERT_EQ(send(fd[0], buf, 10000, 0), 10000);
	close(fd[0]);
	CHECK(ioctl(fd[1], FIONREAD, &val));
	EXPECT_EQ(val, 10000);
}

/* And no later than said, when the peer takes nothing. */
TEST(linger_ends)
{
	struct end_options opt = { .rcvbuf = 1, .max_data = 1000, .config.linger_timeout = 3000 };
	int fd[2];

	connected(fd, &opt);
	linger(fd[0], 1, 1);
	ASSERT_EQ(send(fd[0], buf, 30000, 0), 30000);
	close(fd[0]);
	/*
	 * The kernel gives up, too, after linger_timeout, and the peer learns that it has not got
	 * all.
	 */
	EXPECT(events(fd[1], 0) & (POLLERR | POLLHUP));
	EXPECT(drain(fd[1]) < 0);
}

/* Unread bytes at close(): the peer is told that they are lost. */
TEST(close_unread)
{
	int fd[2];

	connected(fd, NULL);
	CHECK(send(fd[1], "unread", 6, 0));
	ASSERT(events(fd[0], POLLIN) & POLLIN);
	close(fd[0]);
	EXPECT_EQ(drain(fd[1]), -ECONNRESET);
}

/* Bytes that had arrived before the abort can still be read, as with TCP. */
TEST(reset_after_data)
{
	int fd[2], val = 0;

	connected(fd, NULL);
	CHECK(send(fd[0], "before", 6, 0));
	while (val < 6) {
		CHECK(ioctl(fd[1], FIONREAD, &val));
		poll(NULL, 0, 1);
	}
	linger(fd[0], 1, 0);
	close(fd[0]);
	ASSERT(events(fd[1], 0) & POLLHUP);
	EXPECT_EQ(recv(fd[1], buf, 100, 0), 6);
	EXPECT_ERRNO(recv(fd[1], buf, 100, 0), ECONNRESET);
}

/* The peer has closed: reading ends, writing fails. */
TEST(peer_closed)
{
	int fd[2], n;

	signal(SIGPIPE, SIG_IGN);
	connected(fd, NULL);
	close(fd[0]);
	EXPECT_EQ(drain(fd[1]), 0);
	/* As with TCP the first write may go into the void. */
	do {
		n = send(fd[1], "x", 1, 0);
	} while (n == 1 && poll(NULL, 0, 1) == 0);
	EXPECT(n == -1 && (errno == EPIPE || errno == ECONNRESET));
}

static void *close_soon(void *arg)
{
	int fd = *(int *)arg;

	while (1) {
		/* Till the other thread sleeps in its call */
		FILE *f;
		char path[64], state = 0;

		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
		f = fopen(path, "r");
		if (f && fscanf(f, "%*d %*s %c", &state) != 1)
			state = 0;
		if (f)
			fclose(f);
		if (state == 'S')
			break;
	}
	shutdown(fd, SHUT_RDWR);
	return NULL;
}

/* shutdown() by another thread ends a wait. */
TEST(shutdown_wakes)
{
	pthread_t t;
	int fd[2];

	connected(fd, NULL);
	pthread_create(&t, NULL, close_soon, &fd[0]);
	EXPECT_EQ(recv(fd[0], buf, 1, 0), 0);
	pthread_join(t, NULL);
}

TEST(close_while_connecting)
{
	struct end_options opt = { .type_flags = SOCK_NONBLOCK };

	for (int i = 0; i < 30; i++) {
		int fd = end_socket(&opt);

		ASSERT(fd >= 0);
		opt.seed = end_fresh_seed();
		ASSERT_EQ(end_setup(fd, QRDMA_ROLE_CLIENT, &opt), 0);
		ASSERT_EQ(end_bind(fd, 'a', false, 0), 0);
		ASSERT_EQ(end_connect(fd, 'b', false, 5100), -EINPROGRESS);
		if (i & 1)
			poll(NULL, 0, i);
		close(fd);
	}
}

/* A process that dies leaves no connection behind. */
TEST(killed)
{
	int fd[2], status;
	pid_t pid = fork();

	if (!pid) {
		connected(fd, NULL);
		send(fd[0], buf, sizeof(buf), MSG_DONTWAIT);
		raise(SIGKILL);
	}
	waitpid(pid, &status, 0);
	EXPECT(WIFSIGNALED(status));
}
