// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets seen from outside (linux/qrdma_diag.h): a dump tells what the sockets' owners see, every
 * socket once, those of one namespace only, and survives what comes and goes meanwhile. And what
 * qrdma-ss makes of it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/qrdma_diag.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "cases.h"
#include "ends.h"
#include "probe.h"
#include "tls.h"

#define SS	"\"$QRDMA_REPO\"/userspace/build/qrdma-ss"

enum { SOCKETS_MAX = 2048 };

/* A dump */
static struct {
	struct diag_entry {
		struct qrdma_diag_msg msg;
		struct qrdma_info info;
		bool has_info;
	} of[SOCKETS_MAX];
	size_t n;
} seen;

static int take_attr(const struct nlattr *attr, void *data)
{
	struct diag_entry *e = data;

	if (mnl_attr_get_type(attr) == QRDMA_DIAG_INFO &&
	    mnl_attr_get_payload_len(attr) == sizeof(e->info)) {
		memcpy(&e->info, mnl_attr_get_payload(attr), sizeof(e->info));
		e->has_info = true;
	}
	return MNL_CB_OK;
}

static int take(const struct nlmsghdr *nlh, void *data)
{
	struct diag_entry *e = &seen.of[seen.n];

	if (seen.n == SOCKETS_MAX || mnl_nlmsg_get_payload_len(nlh) < sizeof(e->msg))
		return MNL_CB_ERROR;
	memset(e, 0, sizeof(*e));
	memcpy(&e->msg, mnl_nlmsg_get_payload(nlh), sizeof(e->msg));
	seen.n++;
	return mnl_attr_parse(nlh, sizeof(e->msg), take_attr, e);
}

static struct mnl_socket *diag_open(void)
{
	struct mnl_socket *nl = mnl_socket_open(NETLINK_SOCK_DIAG);

	ASSERT(nl && !mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID));
	return nl;
}

static void diag_send(struct mnl_socket *nl, const void *req, size_t len, uint16_t flags)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	memcpy(mnl_nlmsg_put_extra_header(nlh, len), req, len);
	nlh->nlmsg_len = sizeof(*nlh) + len;
	ASSERT(mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) > 0);
}

/* Return: 0, -errno that the kernel answered with. */
static int diag_receive(struct mnl_socket *nl)
{
	static char buf[32 << 10];
	ssize_t len;
	int rc;

	seen.n = 0;
	do {
		len = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		rc = len < 0 ? -1 : mnl_cb_run(buf, len, 0, mnl_socket_get_portid(nl), take, NULL);
	} while (rc > 0);
	return rc ? -errno : 0;
}

static int dump(uint32_t states)
{
	const struct qrdma_diag_req req = { .family = AF_QRDMA, .states = states };
	struct mnl_socket *nl = diag_open();
	int err;

	diag_send(nl, &req, sizeof(req), NLM_F_DUMP);
	err = diag_receive(nl);
	mnl_socket_close(nl);
	return err;
}

static ino_t inode_of(int fd)
{
	struct stat st;

	ASSERT_EQ(fstat(fd, &st), 0);
	return st.st_ino;
}

/* How often is it there? @at: where, the last time. */
static int count_of(ino_t inode, struct diag_entry **at)
{
	size_t i;
	int n = 0;

	for (i = 0; i < seen.n; i++) {
		if (seen.of[i].msg.inode == inode) {
			*at = &seen.of[i];
			n++;
		}
	}
	return n;
}

static bool same_name(const uint8_t *addr, uint16_t port, const union addr *is)
{
	uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff };

	memcpy(mapped + 12, &is->in.sin_addr, 4);
	return !memcmp(addr, mapped, 16) && port == is->in.sin_port;
}

static bool all_acked(void *arg)
{
	int left = 1;

	return !ioctl(*(int *)arg, SIOCOUTQ, &left) && !left;
}

/* What a dump says of a connection is what its owner sees. */
TEST(same_as_inside)
{
	struct end_options opt = { 0 };
	union addr local, remote;
	socklen_t len = sizeof(local);
	struct diag_entry *e = NULL;
	struct qrdma_info info;
	char data[1000] = { 0 };
	int fd[2], i;

	ASSERT_EQ(end_pair(fd, &opt), 0);
	ASSERT_EQ(send(fd[0], data, sizeof(data), 0), (ssize_t)sizeof(data));
	ASSERT(wait_for(all_acked, &fd[0]));
	ASSERT_EQ(dump(0), 0);
	for (i = 0; i < 2; i++) {
		CASE(i ? "server" : "client");
		ASSERT_EQ(count_of(inode_of(fd[i]), &e), 1);
		info = info_of(fd[i]);
		ASSERT_EQ(getsockname(fd[i], &local.sa, &len), 0);
		ASSERT_EQ(getpeername(fd[i], &remote.sa, &len), 0);
		EXPECT(same_name(e->msg.local, e->msg.local_port, &local));
		EXPECT(same_name(e->msg.remote, e->msg.remote_port, &remote));
		EXPECT_EQ(e->msg.family, AF_QRDMA);
		EXPECT_EQ(e->msg.state, QRDMA_STATE_ESTABLISHED);
		EXPECT_EQ(e->msg.protocol, QRDMA_PROTO_IPV4);
		EXPECT_EQ(e->msg.uid, getuid());
		EXPECT_EQ(e->msg.rqueue, i ? sizeof(data) : 0);
		EXPECT_EQ(e->msg.wqueue, 0);
		EXPECT(e->has_info);
		EXPECT_EQ(e->info.cipher, info.cipher);
		EXPECT_EQ(e->info.role, info.role);
		EXPECT_EQ(e->info.local_qpn, info.local_qpn);
		EXPECT_EQ(e->info.flow_label, info.flow_label);
		EXPECT_EQ(e->info.bytes_acked, info.bytes_acked);
		EXPECT(!strcmp(e->info.device, info.device));
		EXPECT(e->info.packets_sent && e->info.packets_sent <= info.packets_sent);
	}
	CASE("");
	EXPECT_EQ(dump(1 << QRDMA_STATE_CONNECTING), 0);
	EXPECT_EQ(seen.n, 0);
	close(fd[0]);
	close(fd[1]);
}

/* More than one message holds: each once. */
TEST(many)
{
	const struct end_options opt = { 0 };
	int n = tap_short() ? 40 : 200, fd[200][2], i;
	struct diag_entry *e;

	for (i = 0; i < n; i++)
		ASSERT_EQ(end_pair(fd[i], &opt), 0);
	ASSERT_EQ(dump(1 << QRDMA_STATE_ESTABLISHED), 0);
	EXPECT_EQ(seen.n, 2 * n);
	for (i = 0; i < 2 * n; i++)
		EXPECT_EQ(count_of(inode_of(fd[i / 2][i & 1]), &e), 1);
	EXPECT_EQ(atoi(shell_line(SS " -H | grep -c ^ESTAB")), 2 * n);
	EXPECT_EQ(atoi(shell_line(SS " -Hi | grep -c 'rxe.*aes-128-gcm.*rtt:'")), 2 * n);
	for (i = 0; i < 2 * n; i++)
		close(fd[i / 2][i & 1]);
}

TEST(listener)
{
	struct end_options opt = { 0 };
	int fd = CHECK(tls_listener('b', &opt, 8));
	struct diag_entry *e = NULL;

	ASSERT_EQ(dump(1 << QRDMA_STATE_LISTEN), 0);
	ASSERT_EQ(count_of(inode_of(fd), &e), 1);
	EXPECT_EQ(e->msg.state, QRDMA_STATE_LISTEN);
	EXPECT_EQ(ntohs(e->msg.local_port), end_port(fd));
	EXPECT_EQ(e->msg.remote_port, 0);
	EXPECT_EQ(e->msg.rqueue, 0);
	EXPECT_EQ(e->msg.wqueue, 8);
	EXPECT(!e->has_info);
	EXPECT_EQ(atoi(shell_line(SS " -Hl | grep -c '^LISTEN .*:%d '", end_port(fd))), 1);
	EXPECT_EQ(atoi(shell_line(SS " -H | grep -c ^LISTEN; true")), 0);
	close(fd);
	ASSERT_EQ(dump(1 << QRDMA_STATE_LISTEN), 0);
	EXPECT_EQ(seen.n, 0);
}

/* Its program has closed it, and it still delivers. */
TEST(orphan)
{
	const struct end_options opt = { .rcvbuf = 8192, .type_flags = SOCK_NONBLOCK };
	struct diag_entry *e = NULL;
	static char data[200000];
	int fd[2];

	ASSERT_EQ(end_pair(fd, &opt), 0);
	ASSERT(send(fd[0], data, sizeof(data), 0) > 0);
	close(fd[0]);
	ASSERT_EQ(dump(0), 0);
	ASSERT_EQ(count_of(0, &e), 1);
	EXPECT_EQ(e->msg.state, QRDMA_STATE_CLOSING);
	EXPECT(e->msg.wqueue > 0);
	close(fd[1]);
}

TEST(bad_requests)
{
	struct qrdma_diag_req req = { .family = AF_QRDMA };
	struct mnl_socket *nl = diag_open();
	char longer[sizeof(req) + 4] = { AF_QRDMA };

	diag_send(nl, &req, sizeof(req), 0);
	EXPECT_EQ(diag_receive(nl), -EOPNOTSUPP);
	diag_send(nl, &req, 4, NLM_F_DUMP);
	EXPECT_EQ(diag_receive(nl), -EINVAL);
	diag_send(nl, longer, sizeof(longer), NLM_F_DUMP);
	EXPECT_EQ(diag_receive(nl), -EINVAL);
	req.reserved = 1;
	diag_send(nl, &req, sizeof(req), NLM_F_DUMP);
	EXPECT_EQ(diag_receive(nl), -EINVAL);
	req.reserved = 0;
	req.protocol = 1;
	diag_send(nl, &req, sizeof(req), NLM_F_DUMP);
	EXPECT_EQ(diag_receive(nl), -EINVAL);
	mnl_socket_close(nl);
}

TEST(other_namespace)
{
	const struct end_options opt = { 0 };
	int fd[2];

	ASSERT_EQ(end_pair(fd, &opt), 0);
	ASSERT_EQ(unshare(CLONE_NEWNET), 0);
	EXPECT_EQ(dump(0), 0);
	EXPECT_EQ(seen.n, 0);
	close(fd[0]);
	close(fd[1]);
}

/* Connections come and go, and dumps are begun and left. */
TEST(coming_and_going)
{
	const struct qrdma_diag_req req = { .family = AF_QRDMA };
	int rounds = tap_short() ? 30 : 200, i, status = -1;
	const struct end_options opt = { 0 };
	struct mnl_socket *nl;
	int fd[2];
	pid_t pid = fork();

	ASSERT(pid >= 0);
	if (!pid) {
		for (i = 0; i < rounds; i++) {
			if (end_pair(fd, &opt))
				_exit(1);
			close(fd[i & 1]);
			close(fd[!(i & 1)]);
		}
		_exit(0);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		nl = diag_open();
		diag_send(nl, &req, sizeof(req), NLM_F_DUMP);
		mnl_socket_close(nl);
		EXPECT_EQ(dump(0), 0);
	}
	EXPECT_EQ(status, 0);
}
