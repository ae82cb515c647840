// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * Waiting: time-outs, signals.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include "cases.h"
#include "ends.h"

static char buf[1 << 16];

static void connected(int fd[2], const struct end_options *opt)
{
	int err = end_pair(fd, opt);

	if (err) {
		tap_fail("no connection: %s", strerror(-err));
		_exit(1);
	}
}

static void timeout(int fd, int name, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	CHECK(setsockopt(fd, SOL_SOCKET, name, &tv, sizeof(tv)));
}

/* Fill what there is, so that the next write has to wait. */
static void fill_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	/* POLLOUT asks for a third of the buffer, send() takes what there is. */
	while (poll(&p, 1, 2000) == 1)
		send(fd, buf, sizeof(buf), MSG_DONTWAIT);
	while (send(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

TEST(timeouts)
{
	struct end_options opt = { .sndbuf = 10000, .rcvbuf = 10000 };
	int fd[2];

	connected(fd, &opt);
	timeout(fd[0], SO_RCVTIMEO, 100);
	timeout(fd[0], SO_SNDTIMEO, 100);
	EXPECT_ERRNO(recv(fd[0], buf, 1, 0), EAGAIN);
	fill_up(fd[0]);
	EXPECT_ERRNO(send(fd[0], buf, sizeof(buf), 0), EAGAIN);
}

TEST(connect_sndtimeo)
{
	struct end_options opt = { .seed = end_fresh_seed() };
	int fd = end_socket(&opt);

	ASSERT(fd >= 0);
	ASSERT_EQ(end_setup(fd, QRDMA_ROLE_CLIENT, &opt), 0);
	ASSERT_EQ(end_bind(fd, 'a', false, 0), 0);
	timeout(fd, SO_SNDTIMEO, 100);
	EXPECT_EQ(end_connect(fd, 'b', false, 5200), -EINPROGRESS);
}

static volatile int signals;

static void on_signal(int sig)
{
	signals++;
}

static void handler(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	CHECK(sigaction(SIGUSR1, &sa, NULL));
}

enum call { RECV, SEND, CONNECT, POLL, EPOLL, PEEK };

struct waiter {
	enum call call;
	int fd;
	long ret;
	int err;
	volatile int tid;
};

static void *wait_in(void *arg)
{
	struct waiter *w = arg;
	struct pollfd p = { .fd = w->fd, .events = POLLIN };
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = CHECK(epoll_create1(0));

	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, w->fd, &ev));
	w->tid = gettid();
	errno = 0;
	switch (w->call) {
	case RECV:
		w->ret = recv(w->fd, buf, 1, 0);
		break;
	case PEEK:
		w->ret = recv(w->fd, buf, 100, MSG_PEEK | MSG_WAITALL);
		break;
	case SEND:
		w->ret = send(w->fd, buf, sizeof(buf), 0);
		break;
	case CONNECT:
		errno = -end_connect(w->fd, 'b', false, 5201);
		w->ret = errno ? -1 : 0;
		break;
	case POLL:
		w->ret = poll(&p, 1, -1);
		break;
	case EPOLL:
		w->ret = epoll_wait(ep, &ev, 1, -1);
		break;
	}
	w->err = errno;
	return NULL;
}

/* Till the thread sleeps in its call */
static void asleep(struct waiter *w)
{
	char path[64], state = 0;

	while (state != 'S') {
		FILE *f;

		if (!w->tid)
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", w->tid);
		f = fopen(path, "r");
		if (!f)
			return;
		if (fscanf(f, "%*d %*s %c", &state) != 1)
			state = 0;
		fclose(f);
	}
}

/* F49: a signal ends each wait with EINTR. */
TEST_TIMEOUT(interrupted, 240)
{
	static const char * const names[] = { "recv", "send", "connect", "poll", "epoll", "peek" };
	struct end_options opt = { .sndbuf = 10000, .rcvbuf = 10000 };

	handler(0);
	for (int call = RECV; call <= PEEK; call++) {
		struct waiter w = { .call = call };
		pthread_t t;
		int fd[2];

		CASE(names[call]);
		if (call == CONNECT) {
			opt.seed = end_fresh_seed();
			w.fd = end_socket(&opt);
			ASSERT_EQ(end_setup(w.fd, QRDMA_ROLE_CLIENT, &opt), 0);
			ASSERT_EQ(end_bind(w.fd, 'a', false, 0), 0);
		} else {
			opt.seed = 0;
			connected(fd, &opt);
			w.fd = fd[0];
			if (call == SEND)
				fill_up(w.fd);
		}
		pthread_create(&t, NULL, wait_in, &w);
		asleep(&w);
		pthread_kill(t, SIGUSR1);
		pthread_join(t, NULL);
		EXPECT_EQ(w.ret, -1);
		EXPECT_EQ(w.err, EINTR);
		close(w.fd);
	}
}

/* With SA_RESTART a read goes on. */
TEST(restarted)
{
	struct waiter w = { .call = RECV };
	pthread_t t;
	int fd[2];

	handler(SA_RESTART);
	connected(fd, NULL);
	w.fd = fd[0];
	pthread_create(&t, NULL, wait_in, &w);
	asleep(&w);
	pthread_kill(t, SIGUSR1);
	while (!signals)
		;
	asleep(&w);
	CHECK(send(fd[1], "x", 1, 0));
	pthread_join(t, NULL);
	EXPECT_EQ(w.ret, 1);
}

/* A connect() that was interrupted goes on by itself. */
TEST(connect_goes_on)
{
	struct end_options opt = { .seed = end_fresh_seed() };
	struct waiter w = { .call = CONNECT };
	struct pollfd p = { .events = POLLOUT };
	int peer, err;
	socklen_t len = sizeof(err);
	pthread_t t;

	handler(0);
	w.fd = end_socket(&opt);
	ASSERT_EQ(end_setup(w.fd, QRDMA_ROLE_CLIENT, &opt), 0);
	ASSERT_EQ(end_bind(w.fd, 'a', false, 0), 0);
	peer = end_socket(&opt);
	ASSERT_EQ(end_setup(peer, QRDMA_ROLE_SERVER, &opt), 0);
	ASSERT_EQ(end_bind(peer, 'b', false, 5201), 0);
	pthread_create(&t, NULL, wait_in, &w);
	asleep(&w);
	pthread_kill(t, SIGUSR1);
	pthread_join(t, NULL);
	EXPECT_EQ(w.err, EINTR);
	EXPECT_EQ(end_connect(peer, 'a', false, end_port(w.fd)), 0);
	p.fd = w.fd;
	EXPECT_EQ(poll(&p, 1, 60000), 1);
	EXPECT_EQ(getsockopt(w.fd, SOL_SOCKET, SO_ERROR, &err, &len), 0);
	EXPECT_EQ(err, 0);
	EXPECT_EQ(send(w.fd, "x", 1, 0), 1);
	EXPECT_EQ(recv(peer, buf, 1, 0), 1);
}
