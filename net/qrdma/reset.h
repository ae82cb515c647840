/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stateless resets (RFC 9000 section 10.3): what a host answers that has lost a connection.
 *
 * Owns: the key of this host, which the tokens of our connection ids are made from, and the key of
 * address tokens (token.h) is derived from. Called by: sockopt.c and
 * inband.c (tokens; process context), input.c (packets for no connection; softirq), genlink.c (the
 * key). The answers are answer.c's.
 *
 * A token is HMAC-SHA256 of the connection id, cut to 16 bytes: nothing is kept for each of them,
 * and a host that was started anew with the same key (module parameter reset_key, or given by the
 * agent) makes the same tokens, which its peers still know. One key serves all network namespaces,
 * as the ids are unique in all of them.
 *
 * An answer is shorter than what it answers, so two hosts that have both forgotten do not go on for
 * ever.
 */
#ifndef QRDMA_RESET_H
#define QRDMA_RESET_H

#include "lane.h"
#include "pool.h"
#include "core/header.h"

/** qrdma_reset_start() - before the first socket. Return: 0 or a negative errno. May sleep. */
int qrdma_reset_start(void);

/** qrdma_reset_stop() - no socket is left, nothing is answered any more */
void qrdma_reset_stop(void);

/**
 * qrdma_reset_set_key() - the key of this host, which should be the same after each start
 * @key: 32 bytes
 *
 * Connections whose tokens were made before do without them from then on. Context: process, sleeps.
 *
 * Return: 0; -EBUSY: it was given, by this or by the module parameter; what the hash says.
 */
int qrdma_reset_set_key(const u8 *key);

/**
 * qrdma_reset_token() - the stateless reset token of a connection id of ours
 * @cid: QRDMA_CID_LEN bytes
 * @token: room for QRDMA_RESET_TOKEN_LEN bytes; zero, which is none, when it cannot be made
 *
 * Context: process, may sleep.
 */
void qrdma_reset_token(const u8 *cid, u8 *token);

/**
 * qrdma_reset_answer() - a packet came that belongs to no connection
 * @rxbuf: its datagram; stays the caller's
 * @cid: the destination connection id in it, QRDMA_CID_LEN bytes
 *
 * Context: softirq.
 */
void qrdma_reset_answer(const struct qrdma_rxbuf *rxbuf, const u8 *cid);

#endif /* QRDMA_RESET_H */
