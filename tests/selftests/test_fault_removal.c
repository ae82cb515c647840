// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA devices go away under open and busy sockets: by name, with their net devices, with the
 * driver. Removal is quick, every blocked call comes back with ENODEV, nothing is left, and what
 * is added anew carries connections.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"
#include "flow.h"
#include "probe.h"
#include "tap.h"

enum {
	PAIRS = 25,
	ORPHANS = 3,
	LONELY = 2,	/* blocked in connect() to a port that nobody has */
	BUSY = 64 << 10,
};

/* What the two sockets of a pair do when the device goes */
enum kind {
	STREAM,		/* one writes, one reads */
	FULL,		/* one writes, the other reads nothing and polls for trouble */
	QUIET,		/* both read, nothing comes */
	POLLED,		/* both poll for input */
	ECHO,		/* a message to and fro; the server waits by epoll */
	KINDS
};

struct end {
	int fd;
	enum kind kind;
	bool client;
	pthread_t thread;
	_Atomic uint64_t moved;	/* bytes */
	int err;		/* what the last call said, positive */
};

static struct end ends[2 * PAIRS];

static ssize_t note(struct end *end, ssize_t n)
{
	if (n > 0)
		end->moved += n;
	else
		end->err = n ? errno : ESHUTDOWN;
	return n;
}

/* Wait for one of @events, then look why. */
static bool wait_poll(struct end *end, short events)
{
	struct pollfd pfd = { .fd = end->fd, .events = events };

	return poll(&pfd, 1, -1) == 1;
}

static bool wait_epoll(struct end *end)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
	int ep = epoll_create1(0), n;

	epoll_ctl(ep, EPOLL_CTL_ADD, end->fd, &event);
	n = epoll_wait(ep, &event, 1, -1);
	close(ep);
	return n == 1;
}

/* One step of what this end does; false when it has come to its end. */
static bool step(struct end *end, char *buf, size_t len)
{
	switch (end->kind) {
	case STREAM:
		return note(end, end->client ? send(end->fd, buf, len, MSG_NOSIGNAL) :
					       recv(end->fd, buf, len, 0)) > 0;
	case FULL:
		if (end->client)
			return note(end, send(end->fd, buf, len, MSG_NOSIGNAL)) > 0;
		return wait_poll(end, 0) && note(end, recv(end->fd, buf, len, 0)) > 0;
	case QUIET:
		return note(end, recv(end->fd, buf, len, 0)) > 0;
	case POLLED:
		return wait_poll(end, POLLIN) && note(end, recv(end->fd, buf, len, 0)) > 0;
	case ECHO:
		if (end->client)
			return note(end, send(end->fd, buf, 100, MSG_NOSIGNAL)) == 100 &&
			       note(end, recv(end->fd, buf, 100, MSG_WAITALL)) == 100;
		return wait_epoll(end) && note(end, recv(end->fd, buf, 100, MSG_WAITALL)) == 100 &&
		       note(end, send(end->fd, buf, 100, MSG_NOSIGNAL)) == 100;
	case KINDS:
		break;
	}
	return false;
}

static void *end_run(void *arg)
{
	static char zero[BUSY];
	struct end *end = arg;
	char *buf = malloc(sizeof(zero));

	memset(buf, 0, sizeof(zero));
	while (step(end, buf, sizeof(zero)))
		;
	free(buf);
	return NULL;
}

/* A server that does not read polls for trouble, and reads what is there when trouble comes. */
static bool is_busy(void *arg)
{
	int i;

	for (i = 0; i < 2 * PAIRS; i++) {
		bool moves = ends[i].kind == STREAM || ends[i].kind == ECHO ||
			     (ends[i].kind == FULL && ends[i].client);

		if (moves && ends[i].moved < (ends[i].kind == ECHO ? 400 : BUSY))
			return false;
	}
	return true;
}

static int open_pairs(void)
{
	const struct end_options opt = { 0 };
	int fd[2], i, k, err;

	for (i = 0; i < PAIRS; i++) {
		err = end_pair(fd, &opt);
		if (err)
			return err;
		for (k = 0; k < 2; k++) {
			struct end *end = &ends[2 * i + k];

			end->fd = fd[k];
			end->kind = i % KINDS;
			end->client = !k;
			end->moved = 0;
			end->err = 0;
			if (pthread_create(&end->thread, NULL, end_run, end))
				return -EAGAIN;
		}
	}
	return 0;
}

/* Written, closed, and the peer reads nothing: the kernel is still at it. */
static int leave_orphans(int kept[ORPHANS])
{
	static char buf[BUSY];
	const struct end_options opt = { .type_flags = SOCK_NONBLOCK };
	int fd[2], i, err;

	for (i = 0; i < ORPHANS; i++) {
		err = end_pair(fd, &opt);
		if (err)
			return err;
		while (send(fd[0], buf, sizeof(buf), MSG_NOSIGNAL) > 0)
			;
		close(fd[0]);
		kept[i] = fd[1];
	}
	return 0;
}

static void *lonely_run(void *arg)
{
	struct end *end = arg;

	end->err = -end_connect(end->fd, 'b', false, 9);
	return NULL;
}

static bool is_connecting(void *arg)
{
	struct end *end = arg;

	return info_of(end->fd).state == QRDMA_STATE_CONNECTING && info_of(end->fd).packets_sent;
}

static int open_lonely(struct end lonely[LONELY])
{
	struct end_options opt = { 0 };
	int i, err;

	for (i = 0; i < LONELY; i++) {
		opt.seed = end_fresh_seed();
		lonely[i].fd = end_socket(&opt);
		err = end_bind(lonely[i].fd, 'a', false, 0);
		if (!err)
			err = end_setup(lonely[i].fd, QRDMA_ROLE_CLIENT, &opt);
		if (err)
			return err;
		if (pthread_create(&lonely[i].thread, NULL, lonely_run, &lonely[i]))
			return -EAGAIN;
		if (!wait_for(is_connecting, &lonely[i]))
			return -ETIMEDOUT;
	}
	return 0;
}

static bool is_unconnected(void *arg)
{
	return stat_of("connections") == 0;
}

/* Join the threads of the clients, or of the servers; which did not get ENODEV? */
static int collect(bool client)
{
	int i, bad = 0;

	for (i = 0; i < 2 * PAIRS; i++) {
		if (ends[i].client != client)
			continue;
		pthread_join(ends[i].thread, NULL);
		if (ends[i].err != ENODEV) {
			tap_note("socket %d, kind %d: %s", i, ends[i].kind, strerror(ends[i].err));
			bad++;
		}
	}
	return bad;
}

/* Bytes both ways over what is there now */
static bool carries(void)
{
	const struct end_options opt = { 0 };
	struct flow flow = { .size = 1 << 20 };
	int fd[2], i, err = end_pair(fd, &opt);
	bool good = !err;

	if (err)
		tap_note("no connection: %s", strerror(-err));
	for (i = 0; i < 2 && good; i++) {
		flow.tx = fd[i];
		flow.rx = fd[!i];
		flow_run(&flow);
		good = flow_good(&flow);
		if (!good)
			tap_note("%s", flow_describe(&flow));
	}
	if (!err) {
		close(fd[0]);
		close(fd[1]);
	}
	return good;
}

/* Seconds that the command took, negative when it failed */
static double timed(const char *command)
{
	uint64_t begin = now_ns();
	int rc = shell("%s", command);
	double took = (now_ns() - begin) / 1e9;

	tap_note("%s: exit code %d after %.3f s", command, rc, took);
	return rc ? -1 : took;
}

static bool quick(double took)
{
	return took >= 0 && took < (env_short() ? 60 : 5);
}

/*
 * @first takes the clients' device, or both; then @second, if there is one, the servers'. @again
 * brings all back.
 */
static void removal(const char *how, const char *first, const char *second, const char *again)
{
	struct end lonely[LONELY] = { 0 };
	int kept[ORPHANS], i, bad = 0, err;
	uint64_t sockets = stat_of("sockets");

	err = open_pairs();
	if (!err)
		err = leave_orphans(kept);
	if (!err)
		err = open_lonely(lonely);
	tap_check(!err, "%s: sockets are open: %s", how, strerror(-err));
	tap_check(wait_for(is_busy, NULL), "%s: %llu connections, all are busy", how,
		  (unsigned long long)stat_of("connections"));
	tap_check(quick(timed(first)), "%s: removal returns", how);
	tap_check(!collect(true), "%s: every client has ENODEV", how);
	for (i = 0; i < LONELY; i++) {
		pthread_join(lonely[i].thread, NULL);
		bad += lonely[i].err != ENODEV;
		close(lonely[i].fd);
	}
	tap_check(!bad, "%s: connect() comes back with ENODEV", how);
	if (second)
		tap_check(quick(timed(second)), "%s: removal of the other returns", how);
	tap_check(!collect(false), "%s: every server has ENODEV", how);
	tap_check(wait_for(is_unconnected, NULL), "%s: no connection is left, no orphan", how);
	for (i = 0; i < 2 * PAIRS; i++)
		close(ends[i].fd);
	for (i = 0; i < ORPHANS; i++)
		close(kept[i]);
	tap_check(stat_of("sockets") <= sockets, "%s: no socket is left", how);
	tap_check(!shell("%s", again), "%s: the devices are added again", how);
	tap_check(carries(), "%s: they carry a connection", how);
}

int main(void)
{
	tap_start();
	tap_check(carries(), "before: a connection carries bytes");
	removal("rdma link del", "rdma link del rxe0", "rdma link del rxe1",
		"rxe_add rxe0 va 0a09:0001 fd09:0000:0000:0000:0000:0000:0000:0001 && "
		"rxe_add rxe1 vb 0a09:0002 fd09:0000:0000:0000:0000:0000:0000:0002");
	if (!env_short())
		removal("ip link del", "ip link del va", NULL, "topology_down; topology_up");
	if (!access("/sys/module/rdma_rxe/initstate", F_OK))
		removal("rmmod", "rmmod rdma_rxe", NULL, "topology_down; topology_up");
	return tap_end();
}
