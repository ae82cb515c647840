/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A datagram on its way out of a connection.
 *
 * Owns: nothing. Included by: packer.h for the datapath, which embeds struct qrdma_tx in a record
 * of its own. Lock: the socket lock while it is built, then the record's owner alone.
 */
#ifndef QRDMA_CORE_TX_H
#define QRDMA_CORE_TX_H

#include "env.h"
#include "keys.h"

/* frames other than stream data that go with stream data in one packet, bytes */
#define QRDMA_TX_SCRATCH	256
/* smallest datagram that can be built, bytes */
#define QRDMA_TX_MIN		128

/* packets in one datagram at most, but for the last one: Initial, Handshake (RFC 9000 s12.2) */
#define QRDMA_TX_PARTS		2

/**
 * struct qrdma_tx_part - a packet of a datagram that waits to be sealed, its payload in place
 * @slot: key, with a reference
 * @pn: full packet number
 * @off: where it starts in the datagram
 * @payload_len: bytes of plaintext
 * @hdr_len: bytes of header with the packet number
 * @pn_off: where that is in it
 * @pn_len: and its length
 */
struct qrdma_tx_part {
	struct qrdma_slot *slot;
	u64 pn;
	u32 off;
	u32 payload_len;
	u16 hdr_len;
	u16 pn_off;
	u16 pn_len;
};

/**
 * struct qrdma_tx - a datagram on its way out
 * @data: room for the datagram (the DMA buffer)
 * @cap: bytes of room
 * @len: bytes of the datagram once sealed
 * @op: what to seal; holds references to the slot and to the buffers of its segments, dropped by
 *	qrdma_tx_release(); @op.done is the caller's
 * @aead: port to seal with
 * @ect: to be sent as ECT(0), else as Not-ECT (RFC 3168)
 * @parts: packets of the datagram that are still to be sealed after @op
 * @part: these; more than none only while a handshake in band goes on
 * @scratch: where frames other than stream data are built when stream data is in the packet, so
 *	that source and destination of the seal never overlap; lives in memory that a scatterlist
 *	may name (kmalloc or a page; not vmalloc, not a stack)
 *
 * The caller sets @data and @cap and zeroes the rest once. Order: qrdma_packer_build() under the
 * socket lock; aead->seal(&tx->op), which may complete later in any context; qrdma_tx_protect()
 * (header protection needs the ciphertext); as long as qrdma_tx_next() says so the same again; post
 * @len bytes at @data; qrdma_tx_release(). A datagram of which a seal failed is simply not posted:
 * its numbers are spent, recovery repairs it.
 */
struct qrdma_tx {
	u8 *data;
	u32 cap;
	u32 len;
	struct qrdma_aead_op op;
	const struct qrdma_aead_ops *aead;
	bool ect;
	u32 parts;
	struct qrdma_tx_part part[QRDMA_TX_PARTS];
	u8 scratch[QRDMA_TX_SCRATCH];
};

#endif /* QRDMA_CORE_TX_H */
