/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Listeners: who is asked when a datagram belongs to no connection.
 *
 * Owns: the table of listening (namespace, address, port), and for each listener the datagrams of
 * those who want a connection. Who they are, and what becomes of them, is accept.c's affair.
 * Called by: input.c (softirq, RCU), accept.c (process context).
 *
 * struct qrdma_listener
 *	found by:	qrdma_listen_find(), RCU; the socket's @listener
 *	owned by:	the socket, which it has a reference of while it is in the table
 *	dies:		with the socket's memory
 *	protected by:	@lock, taken in any context, innermost but for the verbs layer's locks; the
 *			lock of a child (accept.h) is taken before it, the listener's socket lock is
 *			not needed
 */
#ifndef QRDMA_LISTEN_H
#define QRDMA_LISTEN_H

#include "sock.h"

/** enum - bounds */
enum {
	/* datagrams of one listener that wait to be looked at */
	QRDMA_LISTEN_QUEUE_MAX = 256,
};

/**
 * struct qrdma_listener - a socket that takes connections
 * @node: in the table
 * @qs: the socket
 * @net: its namespace, for comparing
 * @lock: guards what follows
 * @open: connections are taken; false: the socket is closing
 * @in: struct qrdma_rxbuf, by item.list
 * @nr: number of them
 * @work: accept.c's: looks at @in, and buries children that died; it has a reference while queued
 * @young: children whose handshake has not come so far that accept() may return them, by
 *	struct qrdma_child.list; a reference for each
 * @ready: children for accept(), the same
 * @nyoung: length of @young
 * @count: length of both lists, bounded by the backlog
 */
struct qrdma_listener {
	struct hlist_node node;
	struct qrdma_sock *qs;
	const struct net *net;
	spinlock_t lock;	/* guards open .. count, but for work */
	bool open;
	struct list_head in;
	u32 nr;
	struct work_struct work;
	struct list_head young;
	struct list_head ready;
	u32 nyoung;
	u32 count;
};

/** qrdma_listen_start() - before the first socket. Return: 0, -ENOMEM. */
int qrdma_listen_start(void);

/** qrdma_listen_stop() - no socket is left */
void qrdma_listen_stop(void);

/**
 * qrdma_listen_insert() - take datagrams from now on
 * @qs: bound socket, locked
 * @work: looks at what came
 *
 * Context: process. Return: 0, -ENOMEM.
 */
int qrdma_listen_insert(struct qrdma_sock *qs, work_func_t work);

/**
 * qrdma_listen_remove() - the mirror: out of the table, closed, its queue empty, its work over
 * @qs: listening socket; not locked, or its work would wait for us. What is in the lists of
 *	children is the caller's then. Harmless for others.
 *
 * Context: process, sleeps.
 */
void qrdma_listen_remove(struct qrdma_sock *qs);

/**
 * qrdma_listen_find() - who takes connections there?
 * @net: namespace of the net device, to be compared
 * @addr: destination address, IPv4 mapped
 * @port: destination port
 * @ifindex: net device
 *
 * As TCP does: one bound to the address comes before a wildcard, one bound to the device before one
 * that is not. Any context.
 *
 * Return: listening socket with a reference for the caller, NULL: none.
 */
struct qrdma_sock *qrdma_listen_find(const struct net *net, const struct in6_addr *addr, u16 port,
				     int ifindex);

/**
 * qrdma_listen_next() - look at all listeners, one after the other
 * @net: of this namespace
 * @pos: 0 at first, then as it was left
 *
 * One that comes or goes meanwhile may be missed or come twice. Context: process.
 *
 * Return: listening socket with a reference for the caller, NULL: that was all.
 */
struct qrdma_sock *qrdma_listen_next(const struct net *net, u64 *pos);

/**
 * qrdma_listen_give() - a datagram for a listener
 * @qs: from qrdma_listen_find(); the reference is used up
 * @rxbuf: datagram, used up
 *
 * Any context.
 */
void qrdma_listen_give(struct qrdma_sock *qs, struct qrdma_rxbuf *rxbuf);

/**
 * qrdma_listen_young() - children were put into @young, or have left it
 * @listener: listener, @lock is held
 * @by: how many, negative: have left
 */
void qrdma_listen_young(struct qrdma_listener *listener, int by);

/**
 * qrdma_listen_loaded() - are there so many unfinished handshakes that who begins another one has
 * to show that he can be reached?
 * @listener: listener
 *
 * So many of its backlog (module parameter retry_percent), or of all listeners of the network
 * namespace (young_max). Any context.
 */
bool qrdma_listen_loaded(struct qrdma_listener *listener);

/** qrdma_listen_kick() - have the work run. Any context, @lock held or not. */
void qrdma_listen_kick(struct qrdma_listener *listener);

/**
 * qrdma_listen_take() - the next datagram, for the work
 *
 * Return: with the reference to its buffer, and one to the device of its lane; NULL: none.
 */
struct qrdma_rxbuf *qrdma_listen_take(struct qrdma_listener *listener);

#endif /* QRDMA_LISTEN_H */
