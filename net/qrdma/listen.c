// SPDX-License-Identifier: GPL-2.0
/*
 * Listeners. See listen.h.
 */
#include <linux/hashtable.h>
#include <linux/moduleparam.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <net/netns/generic.h>
#include <net/netns/hash.h>

#include "listen.h"

#define LISTEN_HASH_BITS	8

/* Readers: RCU. Writers: the lock. */
static DEFINE_HASHTABLE(listen_table, LISTEN_HASH_BITS);
static DEFINE_SPINLOCK(listen_lock);

static uint retry_percent = 50;
module_param(retry_percent, uint, 0644);
MODULE_PARM_DESC(retry_percent, "part of its backlog in unfinished handshakes from which on a listener answers new clients with a Retry, 0: always");

static uint young_max = 1024;
module_param(young_max, uint, 0644);
MODULE_PARM_DESC(young_max, "unfinished handshakes in a network namespace from which on all listeners do");

/**
 * struct listen_net - of one network namespace
 * @young: children of all its listeners that nobody may accept yet
 */
struct listen_net {
	atomic_t young;
};

static unsigned int listen_net_id;

static struct pernet_operations listen_net_ops = {
	.id	= &listen_net_id,
	.size	= sizeof(struct listen_net),
};

int qrdma_listen_start(void)
{
	return register_pernet_subsys(&listen_net_ops);
}

void qrdma_listen_stop(void)
{
	unregister_pernet_subsys(&listen_net_ops);
}

static u32 listen_key(const struct net *net, u16 port)
{
	return net_hash_mix(net) + port;
}

int qrdma_listen_insert(struct qrdma_sock *qs, work_func_t work)
{
	struct qrdma_listener *listener = kzalloc(sizeof(*listener), GFP_KERNEL_ACCOUNT);

	if (!listener)
		return -ENOMEM;
	listener->qs = qs;
	listener->net = sock_net(&qs->sk);
	spin_lock_init(&listener->lock);
	INIT_LIST_HEAD(&listener->in);
	INIT_LIST_HEAD(&listener->young);
	INIT_LIST_HEAD(&listener->ready);
	INIT_WORK(&listener->work, work);
	listener->open = true;
	qs->listener = listener;
	sock_hold(&qs->sk);
	spin_lock_bh(&listen_lock);
	hash_add_rcu(listen_table, &listener->node, listen_key(listener->net, qs->port.num));
	spin_unlock_bh(&listen_lock);
	return 0;
}

void qrdma_listen_remove(struct qrdma_sock *qs)
{
	struct qrdma_listener *listener = qs->listener;
	struct qrdma_rxbuf *rxbuf;
	bool was;

	if (!listener)
		return;
	spin_lock_bh(&listener->lock);
	was = listener->open;
	listener->open = false;
	spin_unlock_bh(&listener->lock);
	if (!was)
		return;
	spin_lock_bh(&listen_lock);
	hash_del_rcu(&listener->node);
	spin_unlock_bh(&listen_lock);
	if (cancel_work_sync(&listener->work))
		sock_put(&qs->sk);
	while ((rxbuf = qrdma_listen_take(listener))) {
		qrdma_device_put(rxbuf->lane->dev);
		qrdma_buf_put(&rxbuf->buf);
	}
	sock_put(&qs->sk);
}

/* How well does a listener fit? 0: not at all. */
static int listen_score(const struct qrdma_listener *listener, const struct net *net,
			const struct in6_addr *addr, u16 port, int ifindex)
{
	const struct qrdma_port *bound = &listener->qs->port;
	int score = 1;

	if (listener->net != net || READ_ONCE(bound->num) != port)
		return 0;
	if (!bound->any) {
		if (!ipv6_addr_equal(&bound->addr, addr))
			return 0;
		score += 4;
	} else if (ipv6_addr_v4mapped(addr)) {
		/* An IPv6 wildcard takes IPv4 too, but less gladly than an IPv4 one. */
		if (bound->v6only)
			return 0;
		score += ipv6_addr_v4mapped(&bound->addr);
	} else if (ipv6_addr_v4mapped(&bound->addr)) {
		return 0;
	}
	if (bound->ifindex) {
		if (bound->ifindex != ifindex)
			return 0;
		score += 2;
	}
	return score;
}

struct qrdma_sock *qrdma_listen_find(const struct net *net, const struct in6_addr *addr, u16 port,
				     int ifindex)
{
	struct qrdma_listener *listener;
	struct qrdma_sock *best = NULL;
	int score, most = 0;

	if (!net)
		return NULL;
	rcu_read_lock();
	hash_for_each_possible_rcu(listen_table, listener, node, listen_key(net, port)) {
		score = listen_score(listener, net, addr, port, ifindex);
		if (score > most) {
			most = score;
			best = listener->qs;
		}
	}
	if (best && !refcount_inc_not_zero(&best->sk.sk_refcnt))
		best = NULL;
	rcu_read_unlock();
	return best;
}

struct qrdma_sock *qrdma_listen_next(const struct net *net, u64 *pos)
{
	/* the chain, and how many of it have been */
	u32 bucket = *pos >> 32, seen = *pos, i;
	struct qrdma_listener *listener;
	struct qrdma_sock *qs = NULL;

	rcu_read_lock();
	for (; bucket < HASH_SIZE(listen_table) && !qs; bucket++, seen = 0) {
		i = 0;
		hlist_for_each_entry_rcu(listener, &listen_table[bucket], node) {
			if (i++ < seen || listener->net != net ||
			    !refcount_inc_not_zero(&listener->qs->sk.sk_refcnt))
				continue;
			qs = listener->qs;
			break;
		}
		if (qs) {
			*pos = (u64)bucket << 32 | i;
			break;
		}
	}
	rcu_read_unlock();
	return qs;
}

void qrdma_listen_young(struct qrdma_listener *listener, int by)
{
	struct listen_net *of_net = net_generic(listener->net, listen_net_id);

	lockdep_assert_held(&listener->lock);
	listener->nyoung += by;
	atomic_add(by, &of_net->young);
}

bool qrdma_listen_loaded(struct qrdma_listener *listener)
{
	const struct listen_net *of_net = net_generic(listener->net, listen_net_id);
	u64 backlog = max(READ_ONCE(listener->qs->sk.sk_max_ack_backlog), 1U);

	return READ_ONCE(listener->nyoung) * 100ULL >= backlog * READ_ONCE(retry_percent) ||
	       atomic_read(&of_net->young) >= READ_ONCE(young_max);
}

void qrdma_listen_kick(struct qrdma_listener *listener)
{
	sock_hold(&listener->qs->sk);
	if (!qrdma_sock_queue(&listener->work))
		sock_put(&listener->qs->sk);
}

void qrdma_listen_give(struct qrdma_sock *qs, struct qrdma_rxbuf *rxbuf)
{
	struct qrdma_listener *listener = qs->listener;
	bool taken;

	spin_lock_bh(&listener->lock);
	taken = listener->open && listener->nr < QRDMA_LISTEN_QUEUE_MAX;
	if (taken) {
		/* The lane is looked at later: its device may have been removed then. */
		qrdma_device_get(rxbuf->lane->dev);
		list_add_tail(&rxbuf->item.list, &listener->in);
		listener->nr++;
		qrdma_listen_kick(listener);
	}
	spin_unlock_bh(&listener->lock);
	if (!taken) {
		qrdma_stat_inc(QRDMA_STAT_LISTEN_FULL);
		qrdma_buf_put(&rxbuf->buf);
	}
	sock_put(&qs->sk);
}

struct qrdma_rxbuf *qrdma_listen_take(struct qrdma_listener *listener)
{
	struct qrdma_rxbuf *rxbuf;

	spin_lock_bh(&listener->lock);
	rxbuf = list_first_entry_or_null(&listener->in, struct qrdma_rxbuf, item.list);
	if (rxbuf) {
		list_del(&rxbuf->item.list);
		listener->nr--;
	}
	spin_unlock_bh(&listener->lock);
	return rxbuf;
}
