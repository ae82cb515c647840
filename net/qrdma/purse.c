// SPDX-License-Identifier: GPL-2.0
/*
 * Purse. See purse.h.
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <net/ipv6.h>
#include <net/netns/generic.h>

#include "purse.h"

/**
 * struct purse - of one network namespace
 * @lock: guards what follows
 * @coins: youngest first
 */
struct purse {
	spinlock_t lock;	/* guards coins */
	struct list_head coins;
};

static unsigned int purse_net_id;

static int __net_init purse_net_init(struct net *net)
{
	struct purse *purse = net_generic(net, purse_net_id);

	spin_lock_init(&purse->lock);
	INIT_LIST_HEAD(&purse->coins);
	return 0;
}

static void coin_drop(struct qrdma_coin *coin)
{
	list_del(&coin->list);
	kfree(coin);
}

static void __net_exit purse_net_exit(struct net *net)
{
	struct purse *purse = net_generic(net, purse_net_id);
	struct qrdma_coin *coin, *next;

	list_for_each_entry_safe(coin, next, &purse->coins, list)
		coin_drop(coin);
}

static struct pernet_operations purse_net_ops = {
	.init	= purse_net_init,
	.exit	= purse_net_exit,
	.id	= &purse_net_id,
	.size	= sizeof(struct purse),
};

int qrdma_purse_start(void)
{
	return register_pernet_subsys(&purse_net_ops);
}

void qrdma_purse_stop(void)
{
	unregister_pernet_subsys(&purse_net_ops);
}

static bool coin_is_for(const struct qrdma_coin *coin, const struct in6_addr *server, u16 port)
{
	return coin->port == port && ipv6_addr_equal(&coin->server, server);
}

/* What is too old, and the oldest of all or of a server when there are too many. */
static void purse_clear(struct purse *purse, const struct in6_addr *server, u16 port)
{
	time64_t now = ktime_get_boottime_seconds();
	struct qrdma_coin *coin, *next;
	u32 n = 0, same = 0;

	list_for_each_entry_safe(coin, next, &purse->coins, list) {
		same += coin_is_for(coin, server, port);
		if (++n > QRDMA_PURSE_MAX || now - coin->got > QRDMA_PURSE_AGE ||
		    (coin_is_for(coin, server, port) && same > QRDMA_PURSE_SERVER_MAX))
			coin_drop(coin);
	}
}

int qrdma_purse_put(struct net *net, const struct in6_addr *server, u16 port, const u8 *token,
		    u32 len)
{
	struct purse *purse = net_generic(net, purse_net_id);
	struct qrdma_coin *coin;

	coin = kmalloc(struct_size(coin, token, len), GFP_ATOMIC | __GFP_NOWARN);
	if (!coin)
		return -ENOMEM;
	coin->server = *server;
	coin->port = port;
	coin->got = ktime_get_boottime_seconds();
	coin->len = len;
	memcpy(coin->token, token, len);
	spin_lock_bh(&purse->lock);
	list_add(&coin->list, &purse->coins);
	purse_clear(purse, server, port);
	spin_unlock_bh(&purse->lock);
	return 0;
}

struct qrdma_coin *qrdma_purse_take(struct net *net, const struct in6_addr *server, u16 port)
{
	struct purse *purse = net_generic(net, purse_net_id);
	struct qrdma_coin *coin, *found = NULL;

	spin_lock_bh(&purse->lock);
	purse_clear(purse, server, port);
	list_for_each_entry(coin, &purse->coins, list) {
		if (!coin_is_for(coin, server, port))
			continue;
		list_del(&coin->list);
		found = coin;
		break;
	}
	spin_unlock_bh(&purse->lock);
	return found;
}
