// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "agent.h"
#include "tls.h"

#ifndef SOL_NETLINK
#define SOL_NETLINK	270
#endif

struct message {
	struct nlmsghdr nlh;
	struct genlmsghdr genl;
	char attrs[8192];
};

static void put(struct message *m, int type, const void *data, size_t len)
{
	struct nlattr *nla = (void *)((char *)m + NLMSG_ALIGN(m->nlh.nlmsg_len));

	nla->nla_type = type;
	nla->nla_len = NLA_HDRLEN + len;
	memcpy((char *)nla + NLA_HDRLEN, data, len);
	m->nlh.nlmsg_len = NLMSG_ALIGN(m->nlh.nlmsg_len) + NLA_ALIGN(nla->nla_len);
}

static void begin(struct message *m, int family, int cmd)
{
	memset(m, 0, sizeof(*m));
	m->nlh.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	m->nlh.nlmsg_type = family;
	m->genl.cmd = cmd;
	m->genl.version = 1;
}

/* An attribute of @type among @len bytes at @data; NULL: there is none. */
static struct nlattr *find(void *data, int len, int type)
{
	struct nlattr *nla = data;

	while (len >= NLA_HDRLEN && nla->nla_len >= NLA_HDRLEN && nla->nla_len <= len) {
		if ((nla->nla_type & NLA_TYPE_MASK) == type)
			return nla;
		len -= NLA_ALIGN(nla->nla_len);
		nla = (void *)((char *)nla + NLA_ALIGN(nla->nla_len));
	}
	return NULL;
}

static void *inside(struct nlattr *nla)
{
	return (char *)nla + NLA_HDRLEN;
}

static struct nlattr *attr(struct message *m, int type)
{
	return find(m->attrs, m->nlh.nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), type);
}

static uint32_t number(struct message *m, int type)
{
	struct nlattr *nla = attr(m, type);
	uint32_t val = UINT32_MAX;

	if (nla && nla->nla_len == NLA_HDRLEN + sizeof(val))
		memcpy(&val, inside(nla), sizeof(val));
	return val;
}

/*
 * Ask, and wait for the answer, which comes to the same place; events are noted. One may come between
 * the kernel's look at its queue and the answer that says that nothing waits.
 */
static int ask(struct agent *agent, struct message *m)
{
	unsigned int seq = ++agent->seq;
	ssize_t n;

	m->nlh.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	m->nlh.nlmsg_seq = seq;
	if (send(agent->nl, m, m->nlh.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		n = recv(agent->nl, m, sizeof(*m), 0);
		if (n < 0 && errno == ENOBUFS)
			continue;
		if (n < 0)
			return -errno;
		if (m->nlh.nlmsg_seq != seq) {
			agent->missed = true;
			continue;
		}
		if (m->nlh.nlmsg_type == NLMSG_ERROR)
			return ((struct nlmsgerr *)NLMSG_DATA(&m->nlh))->error;
		return 1;
	}
}

/* The acknowledgement behind an answer */
static int ask_with_answer(struct agent *agent, struct message *m)
{
	struct message ack;
	int err = ask(agent, m);

	if (err <= 0)
		return err ?: -ENODATA;
	do {
		if (recv(agent->nl, &ack, sizeof(ack), 0) < 0 && errno != ENOBUFS)
			return -errno;
	} while (ack.nlh.nlmsg_seq != agent->seq);
	return 0;
}

static int find_family(struct agent *agent)
{
	struct nlattr *nla, *group;
	struct message m;
	int err;

	begin(&m, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	put(&m, CTRL_ATTR_FAMILY_NAME, QRDMA_GENL_NAME, sizeof(QRDMA_GENL_NAME));
	err = ask_with_answer(agent, &m);
	if (err)
		return err;
	nla = attr(&m, CTRL_ATTR_FAMILY_ID);
	agent->family = *(uint16_t *)inside(nla);
	nla = attr(&m, CTRL_ATTR_MCAST_GROUPS);
	if (!nla)
		return -ENODATA;
	group = inside(nla);		/* there is one */
	nla = find(inside(group), group->nla_len - NLA_HDRLEN, CTRL_ATTR_MCAST_GRP_ID);
	agent->group = *(uint32_t *)inside(nla);
	return 0;
}

int agent_open(struct agent *agent)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK };
	int err;

	memset(agent, 0, sizeof(*agent));
	agent->nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (agent->nl < 0)
		return -errno;
	err = bind(agent->nl, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	if (!err)
		err = find_family(agent);
	if (err)
		close(agent->nl);
	return err;
}

int agent_join(struct agent *agent)
{
	return setsockopt(agent->nl, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &agent->group,
			  sizeof(agent->group)) ? -errno : 0;
}

int agent_leave(struct agent *agent)
{
	return setsockopt(agent->nl, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &agent->group,
			  sizeof(agent->group)) ? -errno : 0;
}

void agent_close(struct agent *agent)
{
	close(agent->nl);
}

int agent_accept(struct agent *agent, struct agent_job *job)
{
	struct message m;
	int err;

	do {
		agent->missed = false;
		begin(&m, agent->family, QRDMA_CMD_ACCEPT);
		err = ask_with_answer(agent, &m);
	} while (err == -EAGAIN && agent->missed);
	if (err)
		return err;
	job->fd = number(&m, QRDMA_A_ACCEPT_FD);
	job->role = number(&m, QRDMA_A_ACCEPT_ROLE);
	job->timeout = number(&m, QRDMA_A_ACCEPT_TIMEOUT);
	job->uid = number(&m, QRDMA_A_ACCEPT_UID);
	return 0;
}

int agent_accept_wait(struct agent *agent, struct agent_job *job)
{
	struct pollfd p = { .fd = agent->nl, .events = POLLIN };
	char event[256];
	int err;

	for (;;) {
		err = agent_accept(agent, job);
		if (err != -EAGAIN)
			return err;
		if (poll(&p, 1, 60000) < 1)
			return -ETIMEDOUT;
		recv(agent->nl, event, sizeof(event), MSG_DONTWAIT);
	}
}

int agent_host_key(struct agent *agent, const void *key, int len)
{
	struct message m;

	begin(&m, agent->family, QRDMA_CMD_HOST_KEY);
	if (len >= 0)
		put(&m, QRDMA_A_HOST_KEY, key, len);
	return ask(agent, &m);
}

struct agent_daemon {
	struct agent agent;
	const struct end_options *opt;
	pthread_t thread;
	int stop;
};

struct worker {
	const struct end_options *opt;
	struct agent_job job;
};

static void *work(void *arg)
{
	struct worker *worker = arg;

	if (worker->job.role == QRDMA_ROLE_CLIENT)
		tls_client(worker->job.fd, worker->opt);
	else
		tls_server(worker->job.fd, worker->opt, 0);
	close(worker->job.fd);
	free(worker);
	return NULL;
}

static int serve_one(struct agent_daemon *daemon)
{
	struct worker *worker = malloc(sizeof(*worker));
	pthread_t thread;
	int err = agent_accept(&daemon->agent, &worker->job);

	if (err) {
		free(worker);
		return err;
	}
	worker->opt = daemon->opt;
	pthread_create(&thread, NULL, work, worker);
	pthread_detach(thread);
	return 0;
}

static void *serve(void *arg)
{
	struct agent_daemon *daemon = arg;
	struct pollfd p[2] = {
		{ .fd = daemon->agent.nl, .events = POLLIN },
		{ .fd = daemon->stop, .events = POLLIN },
	};
	char event[256];

	for (;;) {
		while (!serve_one(daemon))
			;
		if (poll(p, 2, -1) < 0 || p[1].revents)
			return NULL;
		recv(daemon->agent.nl, event, sizeof(event), MSG_DONTWAIT);
	}
}

struct agent_daemon *agent_start(const struct end_options *opt)
{
	struct agent_daemon *daemon = calloc(1, sizeof(*daemon));

	daemon->opt = opt;
	daemon->stop = eventfd(0, EFD_CLOEXEC);
	if (agent_open(&daemon->agent) || agent_join(&daemon->agent) ||
	    pthread_create(&daemon->thread, NULL, serve, daemon)) {
		free(daemon);
		return NULL;
	}
	return daemon;
}

void agent_stop(struct agent_daemon *daemon)
{
	eventfd_write(daemon->stop, 1);
	pthread_join(daemon->thread, NULL);
	agent_close(&daemon->agent);
	close(daemon->stop);
	free(daemon);
}
