/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A datagram on its way into a connection.
 *
 * Owns: nothing. Included by: conn.h for the datapath, which embeds struct qrdma_rx in a record of
 * its own; filled by qrdma_conn_rx_begin(). Lock: the socket lock, except while a packet of it is
 * being opened, when the AEAD port has @op.
 */
#ifndef QRDMA_CORE_RX_H
#define QRDMA_CORE_RX_H

#include "env.h"
#include "buf.h"
#include "event.h"
#include "keys.h"

/**
 * struct qrdma_rx - a datagram on its way in
 * @buf: holds the datagram; the caller's reference, the connection takes its own for what it keeps
 * @data: first byte of the next packet in it
 * @len: bytes left
 * @ecn: ECN codepoint of the datagram (0..3)
 * @copy: keep no reference to @buf: it is wanted back soon, and what stays is copied
 * @op: what to open; valid after QRDMA_RX_OPEN; @op.done is the caller's
 * @aead: port to open with; set with @op
 * @drop: reason after QRDMA_RX_DROP, and after qrdma_conn_rx_finish() (QRDMA_DROP_NONE: used)
 * @wire: bytes of the packet on the wire
 * @gen: key generation chosen
 * @total: bytes of the whole datagram; 0: it was not looked at yet
 * @level: enum qrdma_level of the packet
 * @alias: the first packet was sent to the connection id that a client chose for a server
 * @at: when it arrived if it had to wait for its key, ns; 0: just now
 * @pseudo: the Retry packet being checked, with what its tag covers in front of it
 *
 * The caller zeroes it and sets @buf, @data, @len, @ecn and @copy. Then::
 *
 *	while ((v = qrdma_conn_rx_begin(conn, rx, now)) != QRDMA_RX_DONE) {
 *		if (v == QRDMA_RX_DROP)
 *			continue;	(counted; rx->drop says why)
 *		err = rx->aead->open(&rx->op);	(or later, when -EINPROGRESS)
 *		ev |= qrdma_conn_rx_finish(conn, rx, err, now);
 *	}
 *
 * In band ask qrdma_conn_events() after the loop: a datagram may mean something although no packet
 * of it was opened (other versions, more that a server may send).
 *
 * Between begin and finish of one datagram others may begin and finish in any order and keys may
 * rotate; the same struct qrdma_rx takes part in one packet at a time. One that shall never be
 * finished ends by qrdma_rx_release().
 */
struct qrdma_rx {
	struct qrdma_buf *buf;
	u8 *data;
	u32 len;
	u8 ecn;
	bool copy;
	struct qrdma_aead_op op;
	const struct qrdma_aead_ops *aead;
	enum qrdma_drop drop;
	u32 wire;
	u32 gen;
	u32 total;
	u8 level;
	bool alias;
	u64 at;
	struct qrdma_buf *pseudo;
};

/**
 * enum qrdma_rx_verdict - answer of qrdma_conn_rx_begin()
 * @QRDMA_RX_DONE: nothing left in the datagram
 * @QRDMA_RX_OPEN: open the packet described in @op, then call qrdma_conn_rx_finish()
 * @QRDMA_RX_DROP: the packet is dropped and counted; go on with the next
 */
enum qrdma_rx_verdict {
	QRDMA_RX_DONE,
	QRDMA_RX_OPEN,
	QRDMA_RX_DROP,
};

#endif /* QRDMA_CORE_RX_H */
