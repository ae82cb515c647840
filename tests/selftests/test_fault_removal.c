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
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "ends.h"
#include "fact.h"
#include "flow.h"
#include "probe.h"

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
	atomic_ullong moved;	/* bytes */
	int err;		/* what the last call said, positive */
};

static struct end ends[2 * PAIRS];
static uint64_t began;	/* when the last removal began */

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

/* A socket's memory goes some time after its last reference. */
static bool are_closed(void *arg)
{
	return stat_of("sockets") <= *(uint64_t *)arg;
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
			NOTE("socket %d, kind %d: %s", i, ends[i].kind, strerror(ends[i].err));
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
		NOTE("no connection: %s", strerror(-err));
	for (i = 0; i < 2 && good; i++) {
		flow.tx = fd[i];
		flow.rx = fd[!i];
		flow_run(&flow);
		good = flow_good(&flow);
		if (!good)
			NOTE("%s", flow_describe(&flow));
	}
	if (!err) {
		close(fd[0]);
		close(fd[1]);
	}
	return good;
}

/*
 * The same as "rdma link del", without the time that it takes to start a program on a machine as
 * busy as this one is just then. Return: 0 or -errno.
 */
static int link_delete(const char *name)
{
	struct {
		struct nlmsghdr hdr;
		struct nlattr attr;
		uint32_t index;
	} msg = {
		.hdr = { .nlmsg_len = sizeof(msg), .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
			 .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_DELLINK) },
		.attr = { .nla_len = sizeof(msg.attr) + sizeof(msg.index),
			  .nla_type = RDMA_NLDEV_ATTR_DEV_INDEX },
		.index = atoi(shell_line("rdma dev show %s", name)),
	};
	struct {
		struct nlmsghdr hdr;
		struct nlmsgerr err;
		char more[256];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA), err;

	/* The kernel has done it all when send() returns. */
	began = now_ns();
	if (fd < 0 || send(fd, &msg, sizeof(msg), 0) != sizeof(msg) ||
	    recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.hdr))
		err = -errno;
	else
		err = answer.hdr.nlmsg_type == NLMSG_ERROR ? answer.err.error : -EPROTO;
	close(fd);
	return err;
}

/* Seconds that it took to take a device away, or for the command; negative: it failed */
static double timed(const char *device, const char *command)
{
	double took;
	int rc;

	began = now_ns();
	rc = device ? link_delete(device) : shell("%s", command);
	took = (now_ns() - began) / 1e9;
	NOTE("%s: %d after %.3f s", device ?: command, rc, took);
	return rc ? -1 : took;
}

/* The device alone goes at once. With others it waits for them: that it ends is enough. */
static bool quick(double took, double limit)
{
	return took >= 0 && took < (env_short() ? 60 : limit);
}

/* @command takes both devices; NULL: first the clients', then the servers' by name. */
static void removal(const char *how, const char *command, const char *again)
{
	struct end lonely[LONELY] = { 0 };
	int kept[ORPHANS], i, bad = 0, err;
	uint64_t sockets = stat_of("sockets");

	err = open_pairs();
	if (!err)
		err = leave_orphans(kept);
	if (!err)
		err = open_lonely(lonely);
	if (err)
		BAIL("%s: sockets cannot be opened: %s", how, strerror(-err));
	FACT(wait_for(is_busy, NULL), "%s: %llu connections, all are busy", how,
	     (unsigned long long)stat_of("connections"));
	FACT(quick(timed(command ? NULL : "rxe0", command), command ? 60 : 5),
	     "%s: removal returns", how);
	FACT(!collect(true), "%s: every client has ENODEV", how);
	for (i = 0; i < LONELY; i++) {
		pthread_join(lonely[i].thread, NULL);
		bad += lonely[i].err != ENODEV;
		close(lonely[i].fd);
	}
	FACT(!bad, "%s: connect() comes back with ENODEV", how);
	if (!command)
		FACT(quick(timed("rxe1", NULL), 5), "%s: removal of the other returns", how);
	FACT(!collect(false), "%s: every server has ENODEV", how);
	FACT(wait_for(is_unconnected, NULL), "%s: no connection is left, no orphan", how);
	for (i = 0; i < 2 * PAIRS; i++)
		close(ends[i].fd);
	for (i = 0; i < ORPHANS; i++)
		close(kept[i]);
	FACT(wait_for(are_closed, &sockets), "%s: no socket is left", how);
	FACT(!shell("%s", again), "%s: the devices are added again", how);
	FACT(carries(), "%s: they carry a connection", how);
}

TEST_TIMEOUT(device_by_name, 600)
{
	FACT(carries(), "before: a connection carries bytes");
	removal("by name", NULL,
		"rxe_add rxe0 va 0a09:0001 fd09:0000:0000:0000:0000:0000:0000:0001 && "
		"rxe_add rxe1 vb 0a09:0002 fd09:0000:0000:0000:0000:0000:0000:0002");
}

TEST_TIMEOUT(net_device, 600)
{
	removal("net device", "ip link del va", "topology_down; topology_up");
}

TEST_TIMEOUT(driver, 600)
{
	if (access("/sys/module/rdma_rxe/initstate", F_OK))
		SKIP("the driver is part of this kernel");
	removal("driver", "rmmod rdma_rxe", "topology_down; topology_up");
}
