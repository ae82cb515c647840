/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Accept: from a client's first packet to a socket that accept() returns.
 *
 * Owns: children, which are sockets that nobody has accepted yet. Called by: af_qrdma.c (process
 * context), the listener's work item.
 *
 * struct qrdma_child
 *	A child is in one of its listener's two lists (listen.h), which has a reference, until it
 *	is accepted, or dies first and is buried by the listener's work, or until the listener
 *	closes. The child's callbacks of struct sock, called under its lock, move it from young to
 *	ready, and ask for the burial.
 *	found by:	lists of the listener; sk_user_data of the socket
 *	dies when:	accept() returns the socket, or with it
 *	protected by:	@lock of the listener
 */
#ifndef QRDMA_ACCEPT_H
#define QRDMA_ACCEPT_H

#include "listen.h"

/**
 * struct qrdma_child - what a socket is before it is accepted
 * @qs: the socket
 * @parent: its listener, whose socket it has a reference to
 * @list: in @young or @ready of the listener
 * @ready: in @ready
 * @data_ready: the socket's callback, once it is accepted
 * @state_change: the same
 */
struct qrdma_child {
	struct qrdma_sock *qs;
	struct qrdma_listener *parent;
	struct list_head list;
	bool ready;
	void (*data_ready)(struct sock *sk);
	void (*state_change)(struct sock *sk);
};

/**
 * qrdma_accept_listen() - listen()
 * @qs: socket, locked, bound
 *
 * Context: process. Return: 0, -EADDRINUSE: another one listens there, -ENOMEM.
 */
int qrdma_accept_listen(struct qrdma_sock *qs);

/**
 * qrdma_accept_stop() - take no connections any more; those that nobody has accepted are aborted
 * @qs: socket, not locked. Harmless for one that does not listen.
 *
 * Context: process, sleeps.
 */
void qrdma_accept_stop(struct qrdma_sock *qs);

/**
 * qrdma_accept_next() - the next socket for accept()
 * @qs: listening socket, locked; the lock is given up while waiting
 * @timeo: jiffies to wait, 0: not at all
 * @child: a reference for the caller, not locked
 *
 * Return: 0; -EAGAIN, -EINTR, -ERESTARTSYS; -EINVAL: it does not listen (any more).
 */
int qrdma_accept_next(struct qrdma_sock *qs, long timeo, struct qrdma_sock **child);

/** qrdma_accept_readable() - is there one? Any context, no lock. */
bool qrdma_accept_readable(const struct qrdma_sock *qs);

/** qrdma_accept_ready() - how many wait for accept()? @qs: listening socket. Any context. */
u32 qrdma_accept_ready(const struct qrdma_sock *qs);

#endif /* QRDMA_ACCEPT_H */
