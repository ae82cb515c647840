/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bytes written and not yet acknowledged: one object per sending stream, one per CRYPTO level.
 *
 * Owns: the references to chunks (struct qrdma_buf) from qrdma_sendq_append() until every
 * byte is acknowledged, and which bytes are to be sent again. Called by: stream.c and
 * conn.c, softirq or process context, under the socket lock; never sleeps (append takes the
 * allocation flags of its caller). Knows no stream id, no FIN and no credit.
 *
 * Small writes go behind the bytes of the last chunk: ask for the room, copy, commit. Bytes
 * that were handed out never change, so a packet being sealed is not disturbed by that.
 * Loss and acknowledgment are kept as ranges, not copies, in two bounded sets. When a set
 * is full (or cannot grow) the answer is to send more than needed, never to forget: an
 * acknowledged range that cannot be noted is sent again, and lost ranges are joined across
 * what lies between them.
 */
#ifndef QRDMA_CORE_SENDQ_H
#define QRDMA_CORE_SENDQ_H

#include "env.h"
#include "buf.h"
#include "keys.h"

#define QRDMA_SENDQ_SPANS	512	/* ranges in each set */
#define QRDMA_SENDQ_SPANS_MIN	4	/* of which need no allocation */

/** struct qrdma_span - bytes [@from, @to) of a stream */
struct qrdma_span {
	u64 from;
	u64 to;
};

/**
 * struct qrdma_spans - bounded, ordered set of ranges that neither touch nor overlap
 * @span: the ranges: @first, or an allocated array while there are more
 * @nr: in use
 * @room: elements of @span, at most QRDMA_SENDQ_SPANS
 * @first: never fails, so that no range can be lost for want of memory
 */
struct qrdma_spans {
	struct qrdma_span *span;
	u16 nr;
	u16 room;
	struct qrdma_span first[QRDMA_SENDQ_SPANS_MIN];
};

/**
 * struct qrdma_sendq - bytes on their way to the peer
 * @chunks: struct qrdma_frag by offset, without gaps; the last may have spare room behind it
 * @mem: account that is charged, outlives this object
 * @cur: the chunk to look for @nxt from, NULL when there is none
 * @again: the chunk to look for lost bytes from, NULL: the first
 * @una: every byte below is acknowledged
 * @nxt: next byte that was never sent
 * @end: behind the last byte written
 * @lost: ranges of [@una, @nxt) to be sent again
 * @acked: ranges of (@una, @nxt) acknowledged out of order
 *
 * Owned by: a stream or a CRYPTO level; dies with it (qrdma_sendq_purge()). Protected by:
 * the socket lock.
 */
struct qrdma_sendq {
	struct list_head chunks;
	struct qrdma_mem *mem;
	struct qrdma_frag *cur;
	struct qrdma_frag *again;
	u64 una;
	u64 nxt;
	u64 end;
	struct qrdma_spans lost;
	struct qrdma_spans acked;
};

void qrdma_sendq_init(struct qrdma_sendq *q, struct qrdma_mem *mem);

/**
 * qrdma_sendq_append() - a chunk behind what was written so far
 * @q: the queue
 * @buf: the chunk; the queue takes a reference of its own
 * @off: bytes of @buf to leave out at its start
 * @len: bytes to send, may be 0 (room only); what @buf->len says beyond @off + @len is room
 *	for later writes
 * @gfp: used only when the record embedded in @buf is taken
 *
 * Return: 0, -ENOBUFS over the account's cap, -ENOMEM, -EINVAL when @buf is too short or
 * belongs to another account.
 */
int qrdma_sendq_append(struct qrdma_sendq *q, struct qrdma_buf *buf, u32 off, u32 len,
		       gfp_t gfp);

/**
 * qrdma_sendq_room() - spare room behind the last chunk
 * @q: the queue
 * @at: where it begins; valid until the lock is given up
 *
 * Return: bytes, 0 for none.
 */
u32 qrdma_sendq_room(const struct qrdma_sendq *q, u8 **at);

/* @len bytes were written into that room: they are now part of the stream. */
void qrdma_sendq_commit(struct qrdma_sendq *q, u32 len);

/**
 * qrdma_sendq_next() - which bytes come next
 * @q: the queue
 * @limit: no byte at or behind this offset that was never sent (credit); bytes to be sent
 *	again have no limit
 * @off: offset of the first one
 *
 * Return: bytes to be sent from there, 0 for none.
 */
u64 qrdma_sendq_next(struct qrdma_sendq *q, u64 limit, u64 *off);

/**
 * qrdma_sendq_take() - hand out bytes for a packet; they count as sent from now on
 * @q: the queue
 * @off: what qrdma_sendq_next() said
 * @len: at most what it said
 * @seg: filled in order, each with a reference to its owner, which the caller drops
 * @max: elements of @seg
 * @nseg: elements filled
 *
 * A packet that is not sent after all is reported by qrdma_sendq_lost().
 *
 * Return: bytes handed out, less than @len when @max was reached.
 */
u32 qrdma_sendq_take(struct qrdma_sendq *q, u64 off, u32 len, struct qrdma_seg *seg, u32 max,
		     u32 *nseg);

/* The peer has [@off, @off + @len). Return: true when memory came free. */
bool qrdma_sendq_acked(struct qrdma_sendq *q, u64 off, u64 len);

/*
 * A packet with [@off, @off + @len) was lost, or not sent. Return: true when something is
 * to be sent again.
 */
bool qrdma_sendq_lost(struct qrdma_sendq *q, u64 off, u64 len);

/*
 * Nothing counts as sent: all bytes go again as new ones. Only as long as none was acknowledged
 * (0-RTT was refused).
 */
void qrdma_sendq_rewind(struct qrdma_sendq *q);

/*
 * Forget all bytes, sent or not: the stream was reset, the keys are gone. @end falls back
 * to @nxt, @una catches up.
 */
void qrdma_sendq_purge(struct qrdma_sendq *q);

/*
 * Written and not acknowledged (SIOCOUTQ); a range acknowledged out of order counts until
 * all before it is.
 */
static inline u64 qrdma_sendq_unacked(const struct qrdma_sendq *q)
{
	return q->end - q->una;
}

/* Written and never sent (SIOCOUTQNSD). */
static inline u64 qrdma_sendq_unsent(const struct qrdma_sendq *q)
{
	return q->end - q->nxt;
}

#endif /* QRDMA_CORE_SENDQ_H */
