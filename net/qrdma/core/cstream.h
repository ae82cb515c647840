/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CRYPTO data of one encryption level: handshake bytes on their way out and in (RFC 9000 s7.5,
 * s19.6).
 *
 * Owns: a send queue, a reassembly, their accounts. No keys, no packets.
 * Called by: handshake.c (received frames, the owner's bytes) and the packers, under the socket
 * lock; never sleeps.
 */
#ifndef QRDMA_CORE_CSTREAM_H
#define QRDMA_CORE_CSTREAM_H

#include "env.h"
#include "frame.h"
#include "reasm.h"
#include "sendq.h"

/* bytes beyond the read position that a peer may send; RFC 9000 s7.5 asks for 4096 */
#define QRDMA_CSTREAM_RX_MAX	(16U * 1024)
/* bytes written and not acknowledged; a long chain of certificates is well below */
#define QRDMA_CSTREAM_TX_MAX	(64U * 1024)

/**
 * struct qrdma_cstream - CRYPTO data of one level, both directions
 * @tx: written
 * @rx: received
 * @tx_mem: what @tx pins
 * @rx_mem: what @rx pins; four times the bytes, so that no honest peer is refused (reasm.h)
 *
 * Owned by: the connection's handshake state. Dies by qrdma_cstream_purge(). Protected by: the
 * socket lock.
 */
struct qrdma_cstream {
	struct qrdma_sendq tx;
	struct qrdma_reasm rx;
	struct qrdma_mem tx_mem;
	struct qrdma_mem rx_mem;
};

void qrdma_cstream_init(struct qrdma_cstream *cs);

/* Forget all bytes: the keys of the level are gone, or the connection is. */
void qrdma_cstream_purge(struct qrdma_cstream *cs);

/**
 * qrdma_cstream_write() - bytes to be sent
 * @cs: the object
 * @data: copied
 * @len: bytes
 *
 * Return: 0; -ENOBUFS: over QRDMA_CSTREAM_TX_MAX; -ENOMEM.
 */
int qrdma_cstream_write(struct qrdma_cstream *cs, const void *data, u32 len);

/**
 * qrdma_cstream_receive() - a CRYPTO frame came in
 * @cs: the object
 * @f: the frame
 * @buf: buffer that its data lies in, NULL: copy
 *
 * Return: 1: there is more to read than before; 0: nothing new; -EPROTO: CRYPTO_BUFFER_EXCEEDED;
 * -ENOBUFS, -ENOMEM: do not acknowledge the packet.
 */
int qrdma_cstream_receive(struct qrdma_cstream *cs, const struct qrdma_frame *f,
			  struct qrdma_buf *buf);

/* Contiguous bytes to read, 0: none. */
u32 qrdma_cstream_peek(const struct qrdma_cstream *cs, const u8 **data);

/* They were read. */
static inline void qrdma_cstream_consume(struct qrdma_cstream *cs, u32 len)
{
	qrdma_reasm_consume(&cs->rx, len);
}

/* Is there anything to be sent (again)? */
static inline bool qrdma_cstream_pending(struct qrdma_cstream *cs)
{
	u64 off;

	return qrdma_sendq_next(&cs->tx, U64_MAX, &off);
}

/**
 * qrdma_cstream_next() - the next CRYPTO frame
 * @cs: the object
 * @room: bytes that there are for all of it
 * @max: segments that it may consist of, 1 to QRDMA_SEG_MAX
 * @f: the frame, its data NULL
 * @seg: its bytes, each with a reference to its owner that the caller drops
 * @nseg: segments in use
 *
 * What is handed out counts as sent; if it was not after all say qrdma_sendq_lost().
 *
 * Return: true when @f is to be written.
 */
bool qrdma_cstream_next(struct qrdma_cstream *cs, u32 room, u32 max, struct qrdma_frame *f,
			struct qrdma_seg *seg, u32 *nseg);

#endif /* QRDMA_CORE_CSTREAM_H */
