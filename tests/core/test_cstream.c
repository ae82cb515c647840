// SPDX-License-Identifier: GPL-2.0
/* core/cstream.c: CRYPTO data of a level, its bounds, loss and order. */
#include "qtest.h"
#include "cstream.h"

#define BYTES	3000

static u8 cs_byte(u64 off)
{
	return off * 11 + (off >> 8);
}

static void cs_fill(u8 *p, u64 off, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		p[i] = cs_byte(off + i);
}

static void cs_put(struct qrdma_seg *seg, u32 nseg)
{
	u32 i;

	for (i = 0; i < nseg; i++)
		qrdma_buf_put(seg[i].owner);
}

static int cs_receive(struct qrdma_cstream *cs, u64 off, u32 len)
{
	struct qrdma_frame f = { .type = QRDMA_FRAME_CRYPTO };
	static u8 data[BYTES];

	cs_fill(data, off, len);
	f.crypto.off = off;
	f.crypto.len = len;
	f.crypto.data = data;
	return qrdma_cstream_receive(cs, &f, NULL);
}

/* Everything written comes out as frames, in order, as large as the room. */
Q_TEST(cs_sends)
{
	struct qrdma_cstream *cs = q_zalloc(test, sizeof(*cs));
	struct qrdma_seg seg[QRDMA_SEG_MAX];
	struct qrdma_frame f;
	u8 data[100];
	u64 off = 0;
	u32 i, nseg;

	qrdma_cstream_init(cs);
	Q_EXPECT_FALSE(test, qrdma_cstream_pending(cs));
	for (i = 0; i < BYTES / sizeof(data); i++) {
		cs_fill(data, i * sizeof(data), sizeof(data));
		Q_ASSERT_EQ(test, qrdma_cstream_write(cs, data, sizeof(data)), 0);
	}
	Q_EXPECT_EQ(test, qrdma_cstream_write(cs, data, 0), 0);
	while (qrdma_cstream_next(cs, 700, QRDMA_SEG_MAX, &f, seg, &nseg)) {
		Q_EXPECT_EQ(test, f.crypto.off, off);
		Q_EXPECT_LE(test, qrdma_frame_size(&f), 700);
		Q_EXPECT_EQ(test, seg[0].data[0], cs_byte(off));
		off += f.crypto.len;
		cs_put(seg, nseg);
	}
	Q_EXPECT_EQ(test, off, BYTES);
	/* what is lost goes again, what is acknowledged does not */
	qrdma_sendq_lost(&cs->tx, 100, 500);
	qrdma_sendq_acked(&cs->tx, 0, 300);
	Q_ASSERT_TRUE(test, qrdma_cstream_next(cs, 1000, QRDMA_SEG_MAX, &f, seg, &nseg));
	Q_EXPECT_EQ(test, f.crypto.off, 300);
	Q_EXPECT_EQ(test, f.crypto.len, 300);
	cs_put(seg, nseg);
	Q_EXPECT_FALSE(test, qrdma_cstream_next(cs, 1000, QRDMA_SEG_MAX, &f, seg, &nseg));
	qrdma_cstream_purge(cs);
	Q_EXPECT_EQ(test, cs->tx_mem.used, 0);
}

/* No room for header and a byte: nothing is taken. */
Q_TEST(cs_no_room)
{
	struct qrdma_cstream *cs = q_zalloc(test, sizeof(*cs));
	struct qrdma_seg seg[QRDMA_SEG_MAX];
	struct qrdma_frame f;
	u32 room, nseg;

	qrdma_cstream_init(cs);
	Q_ASSERT_EQ(test, qrdma_cstream_write(cs, "abc", 3), 0);
	for (room = 0; room < 4; room++)
		Q_EXPECT_FALSE(test, qrdma_cstream_next(cs, room, 1, &f, seg, &nseg));
	Q_EXPECT_TRUE(test, qrdma_cstream_next(cs, 4, 1, &f, seg, &nseg));
	Q_EXPECT_EQ(test, f.crypto.len, 1);
	cs_put(seg, nseg);
	qrdma_cstream_purge(cs);
}

Q_TEST(cs_tx_bound)
{
	struct qrdma_cstream *cs = q_zalloc(test, sizeof(*cs));
	u8 *data = q_zalloc(test, QRDMA_CSTREAM_TX_MAX);
	u32 i;

	qrdma_cstream_init(cs);
	Q_EXPECT_EQ(test, qrdma_cstream_write(cs, data, QRDMA_CSTREAM_TX_MAX), 0);
	Q_EXPECT_EQ(test, qrdma_cstream_write(cs, data, 1), -ENOBUFS);
	qrdma_cstream_purge(cs);
	for (i = 0; i < 4; i++)
		Q_EXPECT_EQ(test, qrdma_cstream_write(cs, data, QRDMA_CSTREAM_TX_MAX / 4), 0);
	qrdma_cstream_purge(cs);
	if (q_fail_alloc(1))
		Q_EXPECT_EQ(test, qrdma_cstream_write(cs, data, 1), -ENOMEM);
	q_fail_alloc(0);
}

/* Bytes in any order; beyond the bound it is CRYPTO_BUFFER_EXCEEDED, at least 4096 are taken. */
Q_TEST(cs_receives)
{
	struct qrdma_cstream *cs = q_zalloc(test, sizeof(*cs));
	const u8 *data;
	u64 off = 0;
	u32 i, n;

	qrdma_cstream_init(cs);
	Q_EXPECT_EQ(test, qrdma_cstream_peek(cs, &data), 0);
	Q_EXPECT_EQ(test, cs_receive(cs, 1000, 1000), 0);
	Q_EXPECT_EQ(test, cs_receive(cs, 4000, 96), 0);
	Q_EXPECT_EQ(test, cs_receive(cs, 0, 1500), 1);
	Q_EXPECT_EQ(test, cs_receive(cs, 0, 1500), 0);
	Q_EXPECT_EQ(test, cs_receive(cs, 2000, 2000), 1);
	while ((n = qrdma_cstream_peek(cs, &data))) {
		for (i = 0; i < n; i++) {
			if (data[i] != cs_byte(off + i))
				Q_FAIL(test, "wrong byte at %llu", (unsigned long long)off + i);
		}
		qrdma_cstream_consume(cs, n);
		off += n;
	}
	Q_EXPECT_EQ(test, off, 4096);
	Q_EXPECT_EQ(test, cs_receive(cs, off + QRDMA_CSTREAM_RX_MAX - 10, 10), 0);
	Q_EXPECT_EQ(test, cs_receive(cs, off + QRDMA_CSTREAM_RX_MAX - 9, 10), -EPROTO);
	Q_EXPECT_EQ(test, cs_receive(cs, QRDMA_VARINT_MAX - 10, 10), -EPROTO);
	Q_EXPECT_LE(test, cs->rx_mem.used, cs->rx_mem.cap);
	qrdma_cstream_purge(cs);
	Q_EXPECT_EQ(test, cs->rx_mem.used, 0);
}

Q_SUITE("qrdma-cstream",
	Q_CASE(cs_sends),
	Q_CASE(cs_no_room),
	Q_CASE(cs_tx_bound),
	Q_CASE(cs_receives));
