/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An agent of its own for tests: the generic netlink family "qrdma", without a library, and a thread
 * that makes handshakes by tls.h.
 */
#ifndef QRDMA_TEST_AGENT_H
#define QRDMA_TEST_AGENT_H

#include <linux/qrdma_genl.h>

#include "ends.h"

/* A netlink socket that knows the family */
struct agent {
	int nl;
	int family;
	unsigned int group;
	unsigned int seq;
	bool missed;	/* an event came in front of an answer: look again */
};

/* What QRDMA_CMD_ACCEPT answers */
struct agent_job {
	int fd;
	uint32_t role;
	uint32_t timeout;
	uint32_t uid;
};

/* Return: 0, -errno. Into the group: it is an agent from then on. */
int agent_open(struct agent *agent);
int agent_join(struct agent *agent);
int agent_leave(struct agent *agent);
void agent_close(struct agent *agent);

/* Return: 0, -errno: -EAGAIN: none waits. */
int agent_accept(struct agent *agent, struct agent_job *job);
/* The same, as soon as one waits; a minute without one is -ETIMEDOUT. */
int agent_accept_wait(struct agent *agent, struct agent_job *job);
/* QRDMA_CMD_HOST_KEY with so many bytes */
int agent_host_key(struct agent *agent, const void *key, int len);

/* Makes every handshake of this namespace until it is stopped, each in a thread of its own. */
struct agent_daemon;

struct agent_daemon *agent_start(const struct end_options *opt);
void agent_stop(struct agent_daemon *daemon);

#endif
