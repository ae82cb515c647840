/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Address validation by tokens (RFC 9000 section 8.1): what the token in a client's first packet is
 * worth, Retry packets for clients that have none, and tokens for their next connection.
 *
 * Owns: the note of tokens that were used, the key of the tags of Retry packets. The answers are
 * answer.c's, what a token looks like is token.c's. Called by: accept.c, inband.c; process context.
 *
 * A Retry leaves nothing behind but the token in it: it is made from the datagram alone, and sent
 * in the time of who works off a listener's datagrams, which is one for each listener.
 */
#ifndef QRDMA_RETRY_H
#define QRDMA_RETRY_H

#include "core/header.h"
#include "core/keys.h"
#include "pool.h"
#include "token.h"

/** enum - how long a token is good, seconds */
enum {
	/* from the Retry to the packet that brings it back, lost ones included */
	QRDMA_RETRY_LIFE	= 30,
	QRDMA_RETRY_NEXT_LIFE	= 24 * 3600,
	/* how far the clock may have been set back since it was made */
	QRDMA_RETRY_SLACK	= 60,
};

/** enum qrdma_retry_verdict - what the token of a client's first packet is worth */
enum qrdma_retry_verdict {
	QRDMA_RETRY_NONE,	/* there is none, or one that is as good as none: not validated */
	QRDMA_RETRY_BACK,	/* it comes back with what a Retry gave it */
	QRDMA_RETRY_KNOWN,	/* an earlier connection gave it this one */
	QRDMA_RETRY_INVALID,	/* a Retry's that is not good (any more): will not follow another */
};

/** qrdma_retry_start() - after qrdma_crypto_start(). Return: 0, -ENOMEM, -ENOPKG. */
int qrdma_retry_start(void);

/** qrdma_retry_stop() - no socket is left */
void qrdma_retry_stop(void);

/** qrdma_retry_slot() - the key of the tags of Retry packets, the same for all; no reference */
struct qrdma_slot *qrdma_retry_slot(void);

/**
 * qrdma_retry_look() - what is the token worth?
 * @rxbuf: datagram of a client
 * @hdr: of the Initial in it
 * @odcid: of QRDMA_RETRY_BACK: where the client's very first packet went to
 *
 * Counts. A token of the kind QRDMA_RETRY_KNOWN is used up by that.
 *
 * Context: process, sleeps. Return: enum qrdma_retry_verdict.
 */
enum qrdma_retry_verdict qrdma_retry_look(const struct qrdma_rxbuf *rxbuf,
					  const struct qrdma_hdr *hdr, struct qrdma_cid *odcid);

/**
 * qrdma_retry_answer() - have the client come back with a token
 * @net: namespace of the listener
 * @rxbuf: its datagram; stays the caller's
 * @hdr: of the Initial in it
 * @ifindex: net device that the listener is bound to, 0: none
 *
 * Context: process, sleeps.
 */
void qrdma_retry_answer(struct net *net, const struct qrdma_rxbuf *rxbuf,
			const struct qrdma_hdr *hdr, int ifindex);

/**
 * qrdma_retry_next() - a token for a client's next connection
 * @client: its address, IPv4 mapped
 * @data: room for QRDMA_TOKEN_LEN bytes
 *
 * Context: process, sleeps. Return: 0; -ENOMEM; what the cipher says.
 */
int qrdma_retry_next(const struct in6_addr *client, u8 *data);

#endif /* QRDMA_RETRY_H */
