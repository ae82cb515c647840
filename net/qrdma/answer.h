/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Answers to datagrams that belong to no connection: the way back to their sender, and how many of
 * them leave this host.
 *
 * Owns: the answers under way. What they say is the affair of reset.c, refuse.c and retry.c. Called
 * by: these (softirq, kworker), peer.c (the way to the sender; kworker).
 *
 * Bounds: so many a second leave this host (module parameter reset_rate), and few are under way,
 * whoever asks; all others are counted and forgotten. What is said at once to a host that is known,
 * in the caller's own time, is bounded by that time alone. Who makes an answer sees to it that it
 * is shorter than its cause, and that none of them is answered in turn.
 */
#ifndef QRDMA_ANSWER_H
#define QRDMA_ANSWER_H

#include <linux/completion.h>
#include <linux/refcount.h>

#include "core/packer.h"
#include "peer.h"
#include "pool.h"
#include "stat.h"

/* bytes of what an answer is made from */
#define QRDMA_ANSWER_CAUSE	64

/**
 * struct qrdma_answer_ops - a kind of answer; process context, may sleep
 * @make: write the QUIC datagram, at most @cap bytes, from a copy of its cause. Return: bytes; 0:
 *	there is nothing to be said any more; a negative errno
 * @sent: counts those that have left
 * @modest: leaves half of the places to others
 */
struct qrdma_answer_ops {
	int (*make)(const void *cause, u8 *data, u32 cap);
	enum qrdma_stat_item sent;
	bool modest;
};

/**
 * struct qrdma_answer_text - what is to be said, and to whom
 * @ops: the kind
 * @cause: what it is made from
 * @qpn: queue pair that the datagram came from
 * @from: port that the datagram was sent to
 * @to: port that it came from
 */
struct qrdma_answer_text {
	const struct qrdma_answer_ops *ops;
	u8 cause[QRDMA_ANSWER_CAUSE] __aligned(8);
	u32 qpn;
	u16 from;
	u16 to;
};

/**
 * struct qrdma_answer - an answer under way
 * @user: finds the way to the peer
 * @node: on the list of idle ones
 * @refs: one for the event that ends it, and those of @user
 * @ended: the event has been; event() only
 * @text: what it says
 *
 * Owned by: the list of idle ones, else its references.
 */
struct qrdma_answer {
	struct qrdma_peer_user user;
	struct list_head node;
	refcount_t refs;
	bool ended;
	struct qrdma_answer_text text;
};

/**
 * struct qrdma_answer_packet - a packet in the making
 * @tx: it
 * @sealed: by an asynchronous AEAD
 * @err: its result
 */
struct qrdma_answer_packet {
	struct qrdma_tx tx;
	struct completion sealed;
	int err;
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
 * @ifindex: net device that its sender is behind, 0: the route decides
 *
 * Context: any but hard interrupt.
 */
void qrdma_answer_begin(const struct qrdma_rxbuf *rxbuf, const struct qrdma_answer_ops *ops,
			const void *cause, size_t len, int ifindex);

/**
 * qrdma_answer_now() - the same at once, if its sender is a host that we know
 * @net: namespace of the datagram
 * @rxbuf: it; stays the caller's
 * @ops: how
 * @cause: what @ops needs to know
 * @len: its bytes, at most QRDMA_ANSWER_CAUSE
 * @ifindex: as in qrdma_answer_begin()
 *
 * Context: process, sleeps. Return: false: we do not know it.
 */
bool qrdma_answer_now(struct net *net, const struct qrdma_rxbuf *rxbuf,
		      const struct qrdma_answer_ops *ops, const void *cause, size_t len,
		      int ifindex);

/**
 * qrdma_answer_pack() - @make of an answer that is a packet
 * @build: build, seal and protect it in @packet, whose @tx.data and @tx.cap are set. Return: 0 or a
 *	negative errno
 * @cause: for @build
 * @data: room for the datagram
 * @cap: bytes of it
 *
 * Context: process, sleeps. Return: bytes; -ENOMEM, or what @build says.
 */
int qrdma_answer_pack(int (*build)(struct qrdma_answer_packet *packet, const void *cause),
		      const void *cause, u8 *data, u32 cap);

/**
 * qrdma_answer_seal() - for @build: seal a packet
 * @packet: @tx is built but for its @op.done
 *
 * Context: process, sleeps. Return: 0 or what the AEAD says.
 */
int qrdma_answer_seal(struct qrdma_answer_packet *packet);

#endif /* QRDMA_ANSWER_H */
