/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fill one datagram: choose frames by priority, give it a number, record it in recovery, describe
 * how to seal it.
 *
 * Owns: nothing. Called by: the datapath, building under the socket lock with a buffer of its own;
 * the rest of struct qrdma_tx needs no lock and no connection.
 */
#ifndef QRDMA_CORE_PACKER_H
#define QRDMA_CORE_PACKER_H

#include "conn.h"

/* frames other than stream data that go with stream data in one packet, bytes */
#define QRDMA_TX_SCRATCH	256
/* smallest datagram that can be built, bytes */
#define QRDMA_TX_MIN		128

/**
 * struct qrdma_tx - a datagram on its way out
 * @data: room for the datagram (the DMA buffer)
 * @cap: bytes of room
 * @len: bytes of the datagram once sealed
 * @op: what to seal; holds references to the slot and to the buffers of its segments, dropped by
 *	qrdma_tx_release(); @op.done is the caller's
 * @aead: port to seal with
 * @scratch: where frames other than stream data are built when stream data is in the packet, so
 *	that source and destination of the seal never overlap; lives in memory that a scatterlist
 *	may name (kmalloc or a page; not vmalloc, not a stack)
 *
 * The caller sets @data and @cap and zeroes @op once. Order: qrdma_packer_build() under the socket
 * lock; aead->seal(&tx->op), which may complete later in any context; qrdma_tx_protect() (header
 * protection needs the ciphertext); post; qrdma_tx_release(). A packet whose seal failed is simply
 * not posted: its number is spent, recovery repairs it.
 */
struct qrdma_tx {
	u8 *data;
	u32 cap;
	u32 len;
	struct qrdma_aead_op op;
	const struct qrdma_aead_ops *aead;
	u8 scratch[QRDMA_TX_SCRATCH];
};

/**
 * qrdma_packer_build() - fill one datagram
 * @conn: connection
 * @tx: datagram; @tx->cap may be less than the path takes, then the datagram is smaller
 * @now: ns
 *
 * Return: bytes of the datagram once sealed; 0: nothing to send now (the deadline says when);
 * -EAGAIN: pacing or the congestion window forbids it now (the deadline, or an ACK, says when);
 * -ENOMEM: the deadline says when to try again; -EMSGSIZE: @tx->cap is below QRDMA_TX_MIN;
 * -EKEYEXPIRED: usage limit of the key, or packet numbers at their end: the connection has ended by
 * then, qrdma_conn_timeout() returns the events of it. Except for the first, @tx holds nothing.
 */
int qrdma_packer_build(struct qrdma_conn *conn, struct qrdma_tx *tx, u64 now);

/**
 * qrdma_tx_protect() - protect the header of a sealed packet (RFC 9001 s5.4)
 * @tx: datagram; any context
 *
 * Return: 0 or the error of the port: then do not post it.
 */
int qrdma_tx_protect(struct qrdma_tx *tx);

/**
 * qrdma_tx_release() - drop the references that a built datagram holds
 * @tx: datagram; any context, after the seal is done; harmless when nothing was built
 */
void qrdma_tx_release(struct qrdma_tx *tx);

#endif /* QRDMA_CORE_PACKER_H */
