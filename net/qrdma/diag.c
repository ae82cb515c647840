// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets seen from outside. See diag.h.
 *
 * A dump is many calls: where it stands is in struct diag_walk, which lives from start to done of
 * netlink. Each socket is looked at under its lock, so a message is of one moment; the dump is not.
 */
#include <linux/module.h>
#include <linux/qrdma_diag.h>
#include <linux/sock_diag.h>
#include <net/netlink.h>

#include "accept.h"
#include "demux.h"
#include "diag.h"
#include "info.h"
#include "listen.h"

/**
 * struct diag_walk - where a dump stands
 * @iter: connections
 * @listeners: position among the listeners
 * @listening: these are not through yet
 * @held: did not fit into the message before, with a reference
 * @states: 1 << QRDMA_STATE_* of those that were asked for
 */
struct diag_walk {
	struct rhashtable_iter iter;
	u64 listeners;
	bool listening;
	struct qrdma_sock *held;
	u32 states;
};

static int diag_start(struct netlink_callback *cb)
{
	const struct qrdma_diag_req *req = nlmsg_data(cb->nlh);
	struct diag_walk *walk = kzalloc(sizeof(*walk), GFP_KERNEL);

	if (!walk)
		return -ENOMEM;
	walk->states = req->states ?: U32_MAX;
	walk->listening = true;
	qrdma_demux_walk_enter(&walk->iter);
	cb->args[0] = (long)walk;
	return 0;
}

static int diag_done(struct netlink_callback *cb)
{
	struct diag_walk *walk = (void *)cb->args[0];

	if (walk->held)
		sock_put(&walk->held->sk);
	qrdma_demux_walk_exit(&walk->iter);
	kfree(walk);
	return 0;
}

/* Return: the next socket of the namespace, with a reference; NULL: that was all. */
static struct qrdma_sock *diag_next(struct diag_walk *walk, const struct net *net)
{
	struct qrdma_sock *qs = walk->held;

	walk->held = NULL;
	if (qs)
		return qs;
	if (walk->listening) {
		qs = qrdma_listen_next(net, &walk->listeners);
		if (qs)
			return qs;
		walk->listening = false;
	}
	while ((qs = qrdma_demux_walk_next(&walk->iter))) {
		if (net_eq(sock_net(&qs->sk), net))
			return qs;
		sock_put(&qs->sk);
	}
	return NULL;
}

static void diag_queues(struct qrdma_sock *qs, struct qrdma_diag_msg *msg)
{
	if (msg->state == QRDMA_STATE_LISTEN) {
		msg->rqueue = qrdma_accept_ready(qs);
		msg->wqueue = READ_ONCE(qs->sk.sk_max_ack_backlog);
	} else if (qs->conn) {
		msg->rqueue = min_t(u64, qrdma_conn_readable(qs->conn, 0), U32_MAX);
		msg->wqueue = min_t(u64, qrdma_conn_unacked(qs->conn, 0), U32_MAX);
	}
}

static void diag_address(const union qrdma_addr *addr, u8 *in6, __be16 *port)
{
	if (!addr->sa.sa_family)
		return;
	qrdma_addr_to_in6(addr, (struct in6_addr *)in6);
	*port = htons(qrdma_addr_port(addr));
}

/* Under the socket lock. Return: 0, -EMSGSIZE: it does not fit. */
static int diag_fill(struct sk_buff *skb, const struct netlink_callback *cb, struct qrdma_sock *qs)
{
	struct user_namespace *user_ns = sk_user_ns(NETLINK_CB(cb->skb).sk);
	struct sock *sk = &qs->sk;
	struct qrdma_diag_msg *msg;
	struct nlattr *info;
	struct nlmsghdr *nlh;

	nlh = nlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, SOCK_DIAG_BY_FAMILY,
			sizeof(*msg), NLM_F_MULTI);
	if (!nlh)
		return -EMSGSIZE;
	msg = nlmsg_data(nlh);
	memset(msg, 0, sizeof(*msg));
	msg->family = PF_QRDMA;
	msg->state = qrdma_info_state(qs);
	msg->protocol = qs->ipv6 ? QRDMA_PROTO_IPV6 : QRDMA_PROTO_IPV4;
	diag_address(&qs->local, msg->local, &msg->local_port);
	diag_address(&qs->remote, msg->remote, &msg->remote_port);
	msg->ifindex = qs->port.ifindex;
	msg->uid = from_kuid_munged(user_ns, sock_net_uid(sock_net(sk), sk));
	msg->inode = sock_i_ino(sk);
	sock_diag_save_cookie(sk, msg->cookie);
	diag_queues(qs, msg);
	if (msg->state != QRDMA_STATE_LISTEN) {
		info = nla_reserve_64bit(skb, QRDMA_DIAG_INFO, sizeof(struct qrdma_info),
					 QRDMA_DIAG_PAD);
		if (!info || nla_put_u32(skb, QRDMA_DIAG_CONG, qs->setup.config.congestion)) {
			nlmsg_cancel(skb, nlh);
			return -EMSGSIZE;
		}
		memset(nla_data(info), 0, sizeof(struct qrdma_info));
		qrdma_info_fill(qs, nla_data(info));
	}
	nlmsg_end(skb, nlh);
	return 0;
}

static int diag_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct diag_walk *walk = (void *)cb->args[0];
	const struct net *net = sock_net(cb->skb->sk);
	struct qrdma_sock *qs;
	int err = 0;

	while (!err && (qs = diag_next(walk, net))) {
		lock_sock(&qs->sk);
		if (walk->states & BIT(qrdma_info_state(qs)))
			err = diag_fill(skb, cb, qs);
		release_sock(&qs->sk);
		if (err)
			walk->held = qs;
		else
			sock_put(&qs->sk);
	}
	return skb->len;
}

/* A request of the family. Return: errno for the caller; dumps answer by themselves. */
static int diag_request(struct sk_buff *skb, struct nlmsghdr *nlh)
{
	struct netlink_dump_control control = {
		.start	= diag_start,
		.dump	= diag_dump,
		.done	= diag_done,
	};
	const struct qrdma_diag_req *req = nlmsg_data(nlh);

	if (nlmsg_len(nlh) != sizeof(*req) || req->protocol || req->reserved)
		return -EINVAL;
	if (!(nlh->nlmsg_flags & NLM_F_DUMP))
		return -EOPNOTSUPP;
	return netlink_dump_start(sock_net(skb->sk)->diag_nlsk, skb, nlh, &control);
}

static const struct sock_diag_handler diag_handler = {
	.owner	= THIS_MODULE,
	.family	= PF_QRDMA,
	.dump	= diag_request,
};

int qrdma_diag_start(void)
{
	return sock_diag_register(&diag_handler);
}

void qrdma_diag_stop(void)
{
	sock_diag_unregister(&diag_handler);
}

MODULE_ALIAS_NET_PF_PROTO_TYPE(PF_NETLINK, NETLINK_SOCK_DIAG, PF_QRDMA);
