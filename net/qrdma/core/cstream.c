// SPDX-License-Identifier: GPL-2.0
/*
 * CRYPTO data of one encryption level. See cstream.h for what this owns, who calls it, in which
 * context and under which lock.
 */
#include "cstream.h"

/* small messages share a buffer of so many bytes */
#define CSTREAM_CHUNK	512U

void qrdma_cstream_init(struct qrdma_cstream *cs)
{
	/* records and buffers cost as well: their share of the account is a quarter */
	qrdma_mem_init(&cs->tx_mem, QRDMA_CSTREAM_TX_MAX / 4 * 5);
	qrdma_mem_init(&cs->rx_mem, 4 * QRDMA_CSTREAM_RX_MAX);
	qrdma_sendq_init(&cs->tx, &cs->tx_mem);
	qrdma_reasm_init(&cs->rx, &cs->rx_mem);
}

void qrdma_cstream_purge(struct qrdma_cstream *cs)
{
	qrdma_sendq_purge(&cs->tx);
	qrdma_reasm_purge(&cs->rx);
}

int qrdma_cstream_write(struct qrdma_cstream *cs, const void *data, u32 len)
{
	struct qrdma_sendq *q = &cs->tx;
	struct qrdma_buf *buf;
	u32 room;
	u8 *at;
	int err;

	if (len > QRDMA_CSTREAM_TX_MAX || qrdma_sendq_unacked(q) + len > QRDMA_CSTREAM_TX_MAX)
		return -ENOBUFS;
	if (!len)
		return 0;
	room = qrdma_sendq_room(q, &at);
	if (room >= len) {
		memcpy(at, data, len);
		qrdma_sendq_commit(q, len);
		return 0;
	}
	buf = qrdma_buf_alloc(max(len, CSTREAM_CHUNK), GFP_ATOMIC);
	if (!buf)
		return -ENOMEM;
	memcpy(buf->data, data, len);
	err = qrdma_sendq_append(q, buf, 0, len, GFP_ATOMIC);
	qrdma_buf_put(buf);
	return err;
}

int qrdma_cstream_receive(struct qrdma_cstream *cs, const struct qrdma_frame *f,
			  struct qrdma_buf *buf)
{
	struct qrdma_reasm *rx = &cs->rx;
	u64 before = qrdma_reasm_readable(rx);
	int err;

	if (f->crypto.off + f->crypto.len > rx->read + QRDMA_CSTREAM_RX_MAX)
		return -EPROTO;
	err = qrdma_reasm_insert(rx, f->crypto.off, f->crypto.data, f->crypto.len, buf);
	if (err)
		return err;
	return qrdma_reasm_readable(rx) > before;
}

u32 qrdma_cstream_peek(const struct qrdma_cstream *cs, const u8 **data)
{
	struct qrdma_seg seg;

	if (!qrdma_reasm_peek(&cs->rx, 0, &seg, 1))
		return 0;
	*data = seg.data;
	return seg.len;
}

bool qrdma_cstream_next(struct qrdma_cstream *cs, u32 room, u32 max, struct qrdma_frame *f,
			struct qrdma_seg *seg, u32 *nseg)
{
	u64 avail, off;
	u32 head, len;

	avail = qrdma_sendq_next(&cs->tx, U64_MAX, &off);
	head = 1 + qrdma_varint_len(off);
	if (!avail || room <= head)
		return false;
	len = min_t(u64, avail, qrdma_varint_fit(room - head));
	if (!len)
		return false;
	f->type = QRDMA_FRAME_CRYPTO;
	f->crypto.off = off;
	f->crypto.len = qrdma_sendq_take(&cs->tx, off, len, seg, max, nseg);
	f->crypto.data = NULL;
	return f->crypto.len;
}
