// SPDX-License-Identifier: GPL-2.0
/*
 * The agent's end. See agent_end.h.
 */
#include <linux/file.h>
#include <linux/net.h>
#include <linux/pagemap.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/sockptr.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <net/sock.h>

#include "agent.h"
#include "agent_end.h"
#include "compat.h"
#include "inband.h"
#include "input.h"
#include "sockopt.h"

/**
 * struct agent_end - socket of an agent
 * @sk: must be first
 * @agent: the handshake; a reference, and one to its target. NULL: it was given back
 */
struct agent_end {
	struct sock sk;
	struct qrdma_agent *agent;
};

static struct proto agent_end_prot = {
	.name		= "QRDMA-AGENT",
	.owner		= THIS_MODULE,
	.obj_size	= sizeof(struct agent_end),
};

static struct agent_end *end_of(const struct socket *sock)
{
	return container_of(sock->sk, struct agent_end, sk);
}

static struct qrdma_sock *end_target(const struct agent_end *end)
{
	return qrdma_sk(end->agent->target);
}

/* Lock of the target. Return: 0; or why nothing can be done any more. */
static int end_check(struct agent_end *end)
{
	return qrdma_agent_is_over(end->agent) ? sock_error(&end->sk) ?: -ENOTCONN : 0;
}

static int end_release(struct socket *sock)
{
	struct qrdma_sock *qs;
	struct agent_end *end;

	if (!sock->sk)
		return 0;
	end = end_of(sock);
	if (end->agent) {
		qs = end_target(end);
		WRITE_ONCE(end->agent->left, true);
		if (!qrdma_sock_lock_or_defer(qs, QRDMA_DEFER_WORK)) {
			qrdma_sock_todo(qs, QRDMA_TODO_LEFT);
		} else {
			/* Another attempt to connect has another agent. */
			if (qs->inband && qs->inband->agent == end->agent)
				qrdma_inband_abandon(qs);
			release_sock(&qs->sk);
		}
		qrdma_agent_leave(end->agent, false);
	}
	sock_orphan(&end->sk);
	sock->sk = NULL;
	sock_put(&end->sk);
	return 0;
}

static int end_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
{
	struct agent_end *end = end_of(sock);
	struct qrdma_sock *qs = end_target(end);
	union qrdma_addr addr;
	int err;

	err = qrdma_sock_lock_for_agent(qs, end->agent);
	if (err)
		return err;
	err = qrdma_agent_is_over(end->agent) ? -ENOTCONN : 0;
	addr = peer ? qs->remote : qs->local;
	release_sock(&qs->sk);
	if (err)
		return err;
	memcpy(uaddr, &addr, qrdma_addr_len(&addr));
	return qrdma_addr_len(&addr);
}

static __poll_t end_poll(struct file *file, struct socket *sock, struct poll_table_struct *wait)
{
	struct agent_end *end = end_of(sock);
	__poll_t mask = EPOLLOUT | EPOLLWRNORM;

	sock_poll_wait(file, sock, wait);
	if (qrdma_agent_is_over(end->agent) || READ_ONCE(end->agent->stuck))
		return EPOLLHUP | EPOLLERR;
	if (qrdma_sock_crypto_readable(end_target(end)))
		mask |= EPOLLIN | EPOLLRDNORM;
	return mask;
}

static int end_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval,
			  unsigned int optlen)
{
	struct agent_end *end = end_of(sock);

	if (level != SOL_QRDMA)
		return -EOPNOTSUPP;
	return qrdma_sockopt_set_agent(end_target(end), end->agent, optname, optval, optlen);
}

static int end_getsockopt(struct socket *sock, int level, int optname, char __user *optval,
			  int __user *optlen)
{
	struct agent_end *end = end_of(sock);

	if (level != SOL_QRDMA)
		return -EOPNOTSUPP;
	return qrdma_sockopt_get_agent(end_target(end), end->agent, optname, optval, optlen);
}

/*
 * Nor does a target wait for pages of the agent: its lock is not held while they come. The bytes
 * of @msg that the last try has used up are given back. Return: is there a point in another try?
 */
static bool end_fault_in(struct msghdr *msg, size_t len, bool write)
{
	struct iov_iter *iter = &msg->msg_iter;
	size_t left, control;

	if (!user_backed_iter(iter) || fatal_signal_pending(current))
		return false;
	iov_iter_revert(iter, len - iov_iter_count(iter));
	if (!write)
		return fault_in_iov_iter_readable(iter, len) < len;
	left = fault_in_iov_iter_writeable(iter, len);
	control = min_t(size_t, msg->msg_controllen,
			CMSG_SPACE(sizeof(struct qrdma_handshake_info)));
	return left < len && !fault_in_writeable(msg->msg_control_user, control);
}

static int end_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct agent_end *end = end_of(sock);
	struct qrdma_sock *qs = end_target(end);
	int level = msg->msg_controllen ? qrdma_inband_level(msg) : -ENOENT;
	ssize_t ret;

	if (level == -ENOENT || (msg->msg_flags & (MSG_OOB | MSG_FASTOPEN)))
		return -EOPNOTSUPP;
	if (level < 0)
		return level;
	do {
		ret = qrdma_sock_lock_for_agent(qs, end->agent);
		if (ret)
			break;
		pagefault_disable();
		ret = end_check(end);
		if (!ret)
			ret = qrdma_inband_sendmsg(qs, msg, level);
		pagefault_enable();
		release_sock(&qs->sk);
	} while (ret == -EFAULT && end_fault_in(msg, len, false));
	return ret;
}

static int end_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct agent_end *end = end_of(sock);
	struct qrdma_sock *qs = end_target(end);
	ssize_t ret;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return -EOPNOTSUPP;
	msg->msg_namelen = 0;
	do {
		ret = qrdma_sock_lock_for_agent(qs, end->agent);
		if (ret)
			break;
		/* What has come may end it. */
		if (!qrdma_agent_is_over(end->agent))
			qrdma_input_drain(qs);
		pagefault_disable();
		ret = end_check(end);
		if (!ret)
			ret = qrdma_inband_recv_now(qs, msg, len, flags);
		pagefault_enable();
		release_sock(&qs->sk);
	} while (ret == -EFAULT && end_fault_in(msg, len, true));
	return ret;
}

static const struct proto_ops agent_end_ops = {
	.family		= PF_QRDMA,
	.owner		= THIS_MODULE,
	.release	= end_release,
	.bind		= sock_no_bind,
	.connect	= sock_no_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= sock_no_accept,
	.getname	= end_getname,
	.poll		= end_poll,
	.ioctl		= sock_no_ioctl,
	.listen		= sock_no_listen,
	.shutdown	= sock_no_shutdown,
	.setsockopt	= end_setsockopt,
	.getsockopt	= end_getsockopt,
	.sendmsg	= end_sendmsg,
	.recvmsg	= end_recvmsg,
	.mmap		= sock_no_mmap,
};

/* A socket that has no handshake yet */
static struct socket *end_make(struct net *net)
{
	struct socket *sock;
	struct sock *sk;
	int err;

	err = sock_create_lite(PF_QRDMA, SOCK_STREAM, 0, &sock);
	if (err)
		return ERR_PTR(err);
	sk = sk_alloc(net, PF_QRDMA, GFP_KERNEL, &agent_end_prot, 0);
	if (!sk) {
		sock_release(sock);
		return ERR_PTR(-ENOBUFS);
	}
	sock_init_data(NULL, sk);
	sk->sk_type = SOCK_STREAM;
	sk->sk_state = TCP_CLOSE;
	sock_graft(sk, sock);
	sock->ops = &agent_end_ops;
	__module_get(THIS_MODULE);
	sock->state = SS_CONNECTED;
	return sock;
}

/* Return: false: it has ended meanwhile. */
static bool end_describe(const struct agent_end *end, struct qrdma_agent_offer *offer)
{
	const struct qrdma_agent *agent = end->agent;
	u64 now = qrdma_sock_now();

	offer->role = agent->role;
	offer->timeout = agent->until > now ? div_u64(agent->until - now, NSEC_PER_MSEC) : 0;
	offer->uid = agent->uid;
	return !qrdma_agent_is_over(agent);
}

struct file *qrdma_agent_end_open(struct net *net, struct qrdma_agent_offer *offer)
{
	struct socket *sock = end_make(net);
	struct agent_end *end;
	struct file *file;

	if (IS_ERR(sock))
		return ERR_CAST(sock);
	end = end_of(sock);
	/* Which puts the socket when it fails. */
	file = sock_alloc_file(sock, O_CLOEXEC | O_NONBLOCK, NULL);
	if (IS_ERR(file))
		return file;
	while ((end->agent = qrdma_agent_take(net, &end->sk))) {
		if (end_describe(end, offer))
			return file;
		qrdma_agent_leave(end->agent, false);
	}
	fput(file);
	return ERR_PTR(-EAGAIN);
}

void qrdma_agent_end_undo(struct file *file)
{
	struct agent_end *end = end_of(sock_from_file(file));

	qrdma_agent_leave(end->agent, true);
	end->agent = NULL;
	fput(file);
}
