/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ports: which local (address, port) is taken. QRDMA's own 16-bit space in each network
 * namespace, with the rules of TCP for wildcards, SO_REUSEADDR and IPV6_V6ONLY. (Kernels refuse
 * SO_REUSEPORT for families other than their own.)
 *
 * Owns: the table. Packets are not found by it: that is demux.h.
 * Called by: the socket layer, process context. Lock: one mutex inside, taken under the socket
 * lock.
 */
#ifndef QRDMA_PORT_H
#define QRDMA_PORT_H

#include <linux/list.h>

#include "addr.h"

struct net;

/**
 * struct qrdma_port - one taken port
 * @node: in the table
 * @net: network namespace; the owner holds the reference
 * @addr: local address, IPv4 mapped
 * @num: port, host order; 0: not in the table
 * @ifindex: interface that it is limited to, 0: any
 * @any: @addr is a wildcard
 * @v6only: an IPv6 wildcard that does not cover IPv4
 * @reuse: SO_REUSEADDR was set
 * @listening: accepts connections, so that SO_REUSEADDR does not help others
 *
 * Owned by: the socket that embeds it, which fills all but @node and @num before qrdma_port_take().
 * Protected by: the table's mutex while @num is not 0.
 */
struct qrdma_port {
	struct hlist_node node;
	struct net *net;
	struct in6_addr addr;
	u16 num;
	int ifindex;
	bool any;
	bool v6only;
	bool reuse;
	bool listening;
};

/**
 * qrdma_port_take() - take a port
 * @port: the entry
 * @num: wanted port, 0: any free one of the namespace's ephemeral range
 *
 * Return: 0, -EADDRINUSE: taken by another (@num not 0), -EADDRNOTAVAIL: no free one is left
 * (@num 0).
 */
int qrdma_port_take(struct qrdma_port *port, u16 num);

/**
 * qrdma_port_share() - another entry for a port that is taken: an accepted socket has its
 * listener's
 * @port: zeroed
 * @from: the listener's
 * @addr: local address of the connection, IPv4 mapped
 */
void qrdma_port_share(struct qrdma_port *port, const struct qrdma_port *from,
		      const struct in6_addr *addr);

/**
 * qrdma_port_listen() - a taken port is listened on, or no more
 *
 * Return: 0, -EADDRINUSE: another one listens on it.
 */
int qrdma_port_listen(struct qrdma_port *port, bool listening);

/** qrdma_port_release() - give it back; no effect when none was taken */
void qrdma_port_release(struct qrdma_port *port);

/** qrdma_port_narrow() - a wildcard became this one address: the connection is made */
void qrdma_port_narrow(struct qrdma_port *port, const struct in6_addr *addr);

/**
 * qrdma_port_conflict() - may these two not be bound to one port number? Pure; for the table and
 * its test.
 */
bool qrdma_port_conflict(const struct qrdma_port *a, const struct qrdma_port *b);

#endif /* QRDMA_PORT_H */
