// SPDX-License-Identifier: GPL-2.0
/* See genl.h. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/qrdma_genl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "genl.h"

/* Answers are short, and are there when the request is out. */
#define ANSWER_SIZE	8192
#define ANSWER_SECONDS	5
/* "notify" of the controller: the one group whose number is fixed (the id of its family) */
#define NOTIFY_GROUP	GENL_ID_CTRL

struct genl {
	struct mnl_socket *nl;
	unsigned int seq;
};

int genl_open(struct genl **out)
{
	const struct timeval limit = { .tv_sec = ANSWER_SECONDS };
	struct genl *genl = calloc(1, sizeof(*genl));
	int err;

	if (!genl)
		return -ENOMEM;
	genl->nl = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!genl->nl || mnl_socket_bind(genl->nl, 0, MNL_SOCKET_AUTOPID) ||
	    setsockopt(mnl_socket_get_fd(genl->nl), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit))) {
		err = -errno;
		genl_close(genl);
		return err;
	}
	*out = genl;
	return 0;
}

void genl_close(struct genl *genl)
{
	if (!genl)
		return;
	if (genl->nl)
		mnl_socket_close(genl->nl);
	free(genl);
}

static struct nlmsghdr *request(struct genl *genl, void *buf, uint16_t family, uint8_t cmd, uint8_t version,
				uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *head;

	nlh->nlmsg_type = family;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = ++genl->seq;
	head = mnl_nlmsg_put_extra_header(nlh, sizeof(*head));
	head->cmd = cmd;
	head->version = version;
	return nlh;
}

/* Send @nlh, and give the answer to @answer: one message, or the acknowledgement, which is not shown. 0 or -errno. */
static int talk(struct genl *genl, const struct nlmsghdr *nlh, mnl_cb_t answer, void *arg)
{
	char buf[ANSWER_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
	unsigned int port = mnl_socket_get_portid(genl->nl);
	ssize_t n;

	if (mnl_socket_sendto(genl->nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	do {
		n = mnl_socket_recvfrom(genl->nl, buf, sizeof(buf));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return mnl_cb_run(buf, n, nlh->nlmsg_seq, port, answer, arg) < 0 ? -errno : 0;
}

/* Attributes of a message, by number. */
struct attrs {
	const struct nlattr *attr[CTRL_ATTR_MAX + 1];
};

static int collect(const struct nlattr *attr, void *arg)
{
	struct attrs *attrs = arg;
	unsigned int type = mnl_attr_get_type(attr);

	if (type < sizeof(attrs->attr) / sizeof(attrs->attr[0]))
		attrs->attr[type] = attr;
	return MNL_CB_OK;
}

static uint32_t group_of(const struct nlattr *groups)
{
	const struct nlattr *one;

	mnl_attr_for_each_nested(one, groups) {
		struct attrs attrs = { 0 };
		const struct nlattr *name;
		const struct nlattr *id;

		if (mnl_attr_parse_nested(one, collect, &attrs) < 0)
			continue;
		name = attrs.attr[CTRL_ATTR_MCAST_GRP_NAME];
		id = attrs.attr[CTRL_ATTR_MCAST_GRP_ID];
		if (name && id && !mnl_attr_validate(name, MNL_TYPE_NUL_STRING) &&
		    !mnl_attr_validate(id, MNL_TYPE_U32) && !strcmp(mnl_attr_get_str(name), QRDMA_GENL_MCGRP_AGENT))
			return mnl_attr_get_u32(id);
	}
	return 0;
}

static int family_answer(const struct nlmsghdr *nlh, void *arg)
{
	struct genl_family *family = arg;
	struct attrs attrs = { 0 };
	const struct nlattr *id;

	if (mnl_attr_parse(nlh, sizeof(struct genlmsghdr), collect, &attrs) < 0)
		return MNL_CB_ERROR;
	id = attrs.attr[CTRL_ATTR_FAMILY_ID];
	if (!id || mnl_attr_validate(id, MNL_TYPE_U16) || !attrs.attr[CTRL_ATTR_MCAST_GROUPS]) {
		errno = EPROTO;
		return MNL_CB_ERROR;
	}
	family->id = mnl_attr_get_u16(id);
	family->group = group_of(attrs.attr[CTRL_ATTR_MCAST_GROUPS]);
	if (!family->group) {
		errno = EPROTO;
		return MNL_CB_ERROR;
	}
	return MNL_CB_OK;
}

int genl_family(struct genl *genl, struct genl_family *family)
{
	char buf[256] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *nlh = request(genl, buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, 0);

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, QRDMA_GENL_NAME);
	return talk(genl, nlh, family_answer, family);
}

static int accept_answer(const struct nlmsghdr *nlh, void *arg)
{
	struct session_job *job = arg;
	struct attrs attrs = { 0 };

	if (mnl_attr_parse(nlh, sizeof(struct genlmsghdr), collect, &attrs) < 0)
		return MNL_CB_ERROR;
	for (int i = QRDMA_A_ACCEPT_FD; i <= QRDMA_A_ACCEPT_MAX; i++)
		if (!attrs.attr[i] || mnl_attr_validate(attrs.attr[i], MNL_TYPE_U32)) {
			errno = EPROTO;
			return MNL_CB_ERROR;
		}
	job->fd = mnl_attr_get_u32(attrs.attr[QRDMA_A_ACCEPT_FD]);
	job->role = mnl_attr_get_u32(attrs.attr[QRDMA_A_ACCEPT_ROLE]);
	job->timeout_ms = mnl_attr_get_u32(attrs.attr[QRDMA_A_ACCEPT_TIMEOUT]);
	job->uid = mnl_attr_get_u32(attrs.attr[QRDMA_A_ACCEPT_UID]);
	return MNL_CB_OK;
}

int genl_accept(struct genl *genl, const struct genl_family *family, struct session_job *job)
{
	char buf[256] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *nlh = request(genl, buf, family->id, QRDMA_CMD_ACCEPT, QRDMA_GENL_VERSION, 0);
	int err;

	job->fd = -1;
	err = talk(genl, nlh, accept_answer, job);
	if (!err && (job->fd < 0 || job->role > QRDMA_ROLE_SERVER))
		err = -EPROTO;
	return err;
}

int genl_host_key(struct genl *genl, const struct genl_family *family, const uint8_t *key)
{
	char buf[256] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *nlh = request(genl, buf, family->id, QRDMA_CMD_HOST_KEY, QRDMA_GENL_VERSION, NLM_F_ACK);
	int err;

	mnl_attr_put(nlh, QRDMA_A_HOST_KEY, QRDMA_HOST_KEY_LEN, key);
	err = talk(genl, nlh, NULL, NULL);
	explicit_bzero(buf, sizeof(buf));
	return err;
}

static int group_socket(uint32_t group)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_GENERIC);
	int err;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group))) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int genl_events(const struct genl_family *family)
{
	return group_socket(family->group);
}

int genl_watch(void)
{
	return group_socket(NOTIFY_GROUP);
}

bool genl_drain(int fd)
{
	char buf[ANSWER_SIZE];
	bool some = false;
	ssize_t n;

	for (;;) {
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n > 0 || (n < 0 && errno == ENOBUFS))
			some = true;
		else if (n >= 0 || errno != EINTR)
			return some;
	}
}
