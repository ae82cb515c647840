/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From a destination connection id to its socket.
 *
 * Owns: the tables of our connection ids, of those that clients chose for a start, and of the
 * peers' stateless reset tokens, one each for the whole module: an id is 64 random bits, so a
 * namespace of its own for each network namespace would separate nothing that the check of
 * namespace and port in input.c does not. Called by: input.c (softirq, RCU), link.c and accept.c
 * (process context), diag.c (process context).
 */
#ifndef QRDMA_DEMUX_H
#define QRDMA_DEMUX_H

#include <linux/rhashtable-types.h>

#include "sock.h"

/** qrdma_demux_start() - Return: 0, -ENOMEM. */
int qrdma_demux_start(void);

/** qrdma_demux_stop() - the table is empty */
void qrdma_demux_stop(void);

/**
 * qrdma_demux_insert() - packets for @qs->cid go to this socket from now on
 *
 * Return: 0; -EADDRINUSE: another socket has that id; -ENOMEM, -E2BIG, -EBUSY: the table cannot
 * grow.
 */
int qrdma_demux_insert(struct qrdma_sock *qs);

/** qrdma_demux_remove() - the mirror; look-ups that are under way may still find it */
void qrdma_demux_remove(struct qrdma_sock *qs);

/**
 * qrdma_demux_find() - the socket of a connection id
 * @cid: QRDMA_CID_LEN bytes
 *
 * Return: socket with a reference for the caller, NULL: none. Any context.
 */
struct qrdma_sock *qrdma_demux_find(const u8 *cid);

/**
 * qrdma_demux_set_token() - datagrams that end with this token are for @qs, too
 * @qs: socket, locked
 * @token: the peer's stateless reset token, NULL: none (any more)
 *
 * One that cannot be entered is only not looked for: the table cannot grow, or another connection
 * has it.
 */
void qrdma_demux_set_token(struct qrdma_sock *qs, const u8 *token);

/**
 * qrdma_demux_find_token() - the socket whose peer's token these bytes perhaps are
 * @tail: QRDMA_RESET_TOKEN_LEN bytes
 *
 * What is looked up is a keyed hash of them, so the time it takes tells nothing of a token (RFC
 * 9000 s10.3.1). The caller has the engine compare the bytes.
 *
 * Return: socket with a reference for the caller, NULL: none. Any context.
 */
struct qrdma_sock *qrdma_demux_find_token(const u8 *tail);

/**
 * qrdma_demux_insert_first() - and those for the id that a client has chosen for a start
 * @inband: a server's, with its @first
 *
 * The client sends to it until it has heard from the server (RFC 9000 s7.2).
 *
 * Return: as qrdma_demux_insert().
 */
int qrdma_demux_insert_first(struct qrdma_inband *inband);

/** qrdma_demux_remove_first() - the mirror */
void qrdma_demux_remove_first(struct qrdma_inband *inband);

/**
 * qrdma_demux_find_first() - the socket of an id that a client has chosen
 * @cid: its bytes
 * @len: number of them, up to QRDMA_CID_MAX
 *
 * Return: socket with a reference for the caller, NULL: none. Any context.
 */
struct qrdma_sock *qrdma_demux_find_first(const u8 *cid, u32 len);

/** qrdma_demux_walk_enter() - begin to look at all connections. Context: process. */
void qrdma_demux_walk_enter(struct rhashtable_iter *iter);

/**
 * qrdma_demux_walk_next() - the next one
 * @iter: begun and not ended
 *
 * One that comes or goes meanwhile may be missed, and when the table grows one may come twice.
 * Context: process.
 *
 * Return: socket with a reference for the caller, NULL: that was all.
 */
struct qrdma_sock *qrdma_demux_walk_next(struct rhashtable_iter *iter);

/** qrdma_demux_walk_exit() - the mirror of qrdma_demux_walk_enter() */
void qrdma_demux_walk_exit(struct rhashtable_iter *iter);

#endif /* QRDMA_DEMUX_H */
