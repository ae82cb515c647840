// SPDX-License-Identifier: GPL-2.0
/*
 * Ports: which local (address, port) is taken. See port.h.
 */
#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/hash.h>

#include "port.h"

#define PORT_HASH_BITS	12

static DEFINE_HASHTABLE(port_table, PORT_HASH_BITS);
/* Guards port_table and every entry in it. Nothing is taken under it. */
static DEFINE_MUTEX(port_mutex);

static u32 port_key(const struct net *net, u16 num)
{
	return net_hash_mix(net) + num;
}

static bool port_is_v4(const struct qrdma_port *port)
{
	return ipv6_addr_v4mapped(&port->addr);
}

/* Do the two sets of addresses have one in common? */
static bool port_overlap(const struct qrdma_port *a, const struct qrdma_port *b)
{
	bool v4 = port_is_v4(a);

	if (v4 == port_is_v4(b))
		return a->any || b->any || ipv6_addr_equal(&a->addr, &b->addr);
	/*
	 * One is of IPv4, the other of IPv6: they meet only when that one is the wildcard of both
	 * families.
	 */
	return v4 ? b->any && !b->v6only : a->any && !a->v6only;
}

bool qrdma_port_conflict(const struct qrdma_port *a, const struct qrdma_port *b)
{
	if (a->ifindex && b->ifindex && a->ifindex != b->ifindex)
		return false;
	if (!port_overlap(a, b))
		return false;
	if (a->reuse && b->reuse && !a->listening && !b->listening)
		return false;
	return true;
}

/* Is @num free for @port? @fresh: it must be free of all others, SO_REUSEADDR or not. */
static bool port_free(const struct qrdma_port *port, u16 num, bool fresh)
{
	const struct qrdma_port *other;

	lockdep_assert_held(&port_mutex);
	hash_for_each_possible(port_table, other, node, port_key(port->net, num)) {
		if (other->num != num || !net_eq(other->net, port->net))
			continue;
		if (fresh || qrdma_port_conflict(port, other))
			return false;
	}
	return true;
}

static u16 port_choose(const struct qrdma_port *port)
{
	int low, high;
	u32 i, range, start;

	lockdep_assert_held(&port_mutex);
	inet_get_local_port_range(port->net, &low, &high);
	range = high - low + 1;
	start = reciprocal_scale(get_random_u32(), range);
	for (i = 0; i < range; i++) {
		u16 num = low + (start + i) % range;

		if (!inet_is_local_reserved_port(port->net, num) && port_free(port, num, true))
			return num;
	}
	return 0;
}

int qrdma_port_take(struct qrdma_port *port, u16 num)
{
	int err = 0;

	mutex_lock(&port_mutex);
	if (!num) {
		num = port_choose(port);
		if (!num)
			err = -EADDRNOTAVAIL;
	} else if (!port_free(port, num, false)) {
		err = -EADDRINUSE;
	}
	if (!err) {
		port->num = num;
		hash_add(port_table, &port->node, port_key(port->net, num));
	}
	mutex_unlock(&port_mutex);
	return err;
}

void qrdma_port_share(struct qrdma_port *port, const struct qrdma_port *from,
		      const struct in6_addr *addr)
{
	mutex_lock(&port_mutex);
	port->net = from->net;
	port->addr = *addr;
	port->num = from->num;
	port->ifindex = from->ifindex;
	port->reuse = from->reuse;
	hash_add(port_table, &port->node, port_key(port->net, port->num));
	mutex_unlock(&port_mutex);
}

int qrdma_port_listen(struct qrdma_port *port, bool listening)
{
	const struct qrdma_port *other;
	int err = 0;

	mutex_lock(&port_mutex);
	port->listening = listening;
	hash_for_each_possible(port_table, other, node, port_key(port->net, port->num)) {
		/* Those that share the port are connections, which stand in nobody's way. */
		if (listening && other != port && other->num == port->num &&
		    net_eq(other->net, port->net) && other->listening &&
		    qrdma_port_conflict(port, other))
			err = -EADDRINUSE;
	}
	if (err)
		port->listening = false;
	mutex_unlock(&port_mutex);
	return err;
}

void qrdma_port_release(struct qrdma_port *port)
{
	mutex_lock(&port_mutex);
	if (port->num)
		hash_del(&port->node);
	port->num = 0;
	mutex_unlock(&port_mutex);
}

void qrdma_port_narrow(struct qrdma_port *port, const struct in6_addr *addr)
{
	mutex_lock(&port_mutex);
	port->addr = *addr;
	port->any = false;
	port->v6only = false;
	mutex_unlock(&port_mutex);
}
