/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Link: how a socket gets its connection and its path to the peer, changes the path, and gives
 * both up.
 *
 * Owns: the steps from connect() to the first packet; what happens when a peer is replaced, goes
 * stale or is gone; the retiring of a connection (sock.h, "life of a connection"); the socket's
 * work item. Called by: the socket calls (process context, socket lock), peer.c (kworker), the
 * socket's work item.
 */
#ifndef QRDMA_LINK_H
#define QRDMA_LINK_H

#include "sock.h"

/** qrdma_link_init() - fill a new socket, see qrdma_sock_init() */
void qrdma_link_init(struct qrdma_sock *qs, bool ipv6);

/**
 * qrdma_link_open() - begin to connect
 * @qs: socket, locked, bound, in TCP_CLOSE, with @remote set, and its setup complete or @inband
 *
 * Afterwards the socket is in TCP_SYN_SENT, or in TCP_SYN_RECV where it is the server of a
 * handshake in band; the rest happens by events. Context: process.
 *
 * Return: 0; -EADDRINUSE: our connection id is in use; what qrdma_peer_resolve() says.
 */
int qrdma_link_open(struct qrdma_sock *qs);

/**
 * qrdma_link_close() - retire: see sock.h
 * @qs: socket, locked; process context. Harmless when there is no connection.
 */
void qrdma_link_close(struct qrdma_sock *qs);

/**
 * qrdma_link_abort() - end the connection, or the attempt, without ceremony; the peer is told
 * @qs: socket, locked. Harmless when there is none.
 */
void qrdma_link_abort(struct qrdma_sock *qs);

/**
 * qrdma_link_derive_keys() - derive the next keys, as far as they are wanted
 * @qs: socket, locked; process context. The lock is given up meanwhile.
 *
 * Return: false: the connection is over now.
 */
bool qrdma_link_derive_keys(struct qrdma_sock *qs);

/**
 * qrdma_link_let_go() - nobody has this socket any more: its connection, if there is one, goes on
 *	alone
 * @qs: socket, locked; process context. The caller puts its reference.
 */
void qrdma_link_let_go(struct qrdma_sock *qs);

#endif /* QRDMA_LINK_H */
