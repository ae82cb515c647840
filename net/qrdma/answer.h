/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Answers to datagrams that belong to no connection: the way back to their sender, and how many of
 * them leave this host.
 *
 * Owns: the answers under way. What they say is reset.c's and refuse.c's affair. Called by: these
 * (softirq), peer.c (the way to the sender; kworker).
 *
 * Bounds: so many a second leave this host (module parameter reset_rate), and few are under way,
 * whoever asks; all others are counted and forgotten. Who makes an answer sees to it that it is
 * shorter than its cause, and that none of them is answered in turn.
 */
#ifndef QRDMA_ANSWER_H
#define QRDMA_ANSWER_H

#include <linux/refcount.h>

#include "peer.h"
#include "pool.h"
#include "stat.h"

/* bytes of what an answer is made from */
#define QRDMA_ANSWER_CAUSE	64

struct qrdma_answer;

/**
 * struct qrdma_answer_ops - a kind of answer; process context, may sleep
 * @make: write the QUIC datagram, at most @cap bytes. Return: bytes; 0: there is nothing to be said
 *	any more; a negative errno
 * @sent: counts those that have left
 */
struct qrdma_answer_ops {
	int (*make)(const struct qrdma_answer *answer, u8 *data, u32 cap);
	enum qrdma_stat_item sent;
};

/**
 * struct qrdma_answer - an answer under way
 * @user: finds the way to the peer
 * @node: on the list of idle ones
 * @refs: one for the event that ends it, and those of @user
 * @ended: the event has been; event() only
 * @ops: what it says
 * @cause: what it is made from
 * @qpn: queue pair that the datagram came from
 * @from: port that the datagram was sent to
 * @to: port that it came from
 *
 * Owned by: the list of idle ones, else its references.
 */
struct qrdma_answer {
	struct qrdma_peer_user user;
	struct list_head node;
	refcount_t refs;
	bool ended;
	const struct qrdma_answer_ops *ops;
	u8 cause[QRDMA_ANSWER_CAUSE];
	u32 qpn;
	u16 from;
	u16 to;
};

/** qrdma_answer_start() - before the first datagram */
void qrdma_answer_start(void);

/** qrdma_answer_stop() - nothing is answered any more; before qrdma_peer_stop(). May sleep. */
void qrdma_answer_stop(void);

/**
 * qrdma_answer_begin() - answer a datagram
 * @rxbuf: it; stays the caller's
 * @ops: how
 * @cause: what @ops needs to know
 * @len: its bytes, at most QRDMA_ANSWER_CAUSE
 *
 * Context: softirq.
 */
void qrdma_answer_begin(const struct qrdma_rxbuf *rxbuf, const struct qrdma_answer_ops *ops,
			const void *cause, size_t len);

#endif /* QRDMA_ANSWER_H */
