// SPDX-License-Identifier: GPL-2.0
/* What goes into a datagram, and in which form it is handed out for sealing. */
#include "qpeer.h"
#include "conn_state.h"

static struct qpeer *packer_client(struct q_test *test, u32 dcid_len)
{
	struct qrdma_conn_config cfg;
	struct qrdma_cid dcid = { .len = dcid_len, .data = "an id of the peer's" };
	struct qrdma_tparams tp;

	qpair_tparams(&tp);
	qpair_config(&cfg, false, &tp, &tp);
	cfg.dcid = &dcid;
	return qpeer_new_cfg(test, &cfg);
}

/* The first packet of a client: the empty STREAM frame that opens stream 0, and nothing else. */
Q_TEST(packer_first_packet)
{
	struct qpeer *p = qpeer_new(test, false);
	struct qrdma_frame *f;

	Q_EXPECT_GT(test, qpeer_take(p), 0);
	/* nothing is due once it has left, the packer need not be asked again for that */
	Q_EXPECT_GT(test, qrdma_conn_deadline(p->conn), p->now);
	f = qpeer_find(p, QRDMA_FRAME_STREAM);
	Q_ASSERT_NOT_NULL(test, f);
	Q_EXPECT_EQ(test, f->stream.id, 0);
	Q_EXPECT_EQ(test, f->stream.len, 0);
	Q_EXPECT_FALSE(test, f->stream.fin);
	Q_EXPECT_EQ(test, p->ngot, 1);
	Q_EXPECT_EQ(test, qpeer_take(p), 0);
	qpeer_free(p);
}

/* A packet with stream data: the frames before it in the scratch area, the data where it is. */
Q_TEST(packer_segments)
{
	struct qpeer *p = qpeer_new(test, false);
	struct qrdma_buf *buf[2];
	struct qrdma_tx *tx = &p->tx;
	int len, i;

	qpeer_drain(p);
	for (i = 0; i < 2; i++) {
		buf[i] = qrdma_buf_alloc(100, GFP_KERNEL);
		memset(buf[i]->data, 'a' + i, 100);
		qrdma_conn_write(p->conn, 0, buf[i], 0, 100);
	}
	/* an acknowledgment goes along */
	qpeer_type(p, QRDMA_FRAME_PING);
	qpeer_send(p);
	tx->data = p->wire;
	tx->cap = sizeof(p->wire);
	len = qrdma_packer_build(p->conn, tx, p->now);
	Q_ASSERT_GT(test, len, 0);
	Q_EXPECT_EQ(test, len, tx->len);
	Q_ASSERT_EQ(test, tx->op.nseg, 3);
	Q_EXPECT_TRUE(test, tx->op.seg[0].data == tx->scratch);
	Q_EXPECT_NULL(test, tx->op.seg[0].owner);
	for (i = 0; i < 2; i++) {
		Q_EXPECT_TRUE(test, tx->op.seg[1 + i].data == buf[i]->data);
		Q_EXPECT_PTR_EQ(test, tx->op.seg[1 + i].owner, buf[i]);
		/* ours, the send queue's, the operation's */
		Q_EXPECT_EQ(test, refcount_read(&buf[i]->refs), 3);
	}
	Q_EXPECT_EQ(test, tx->op.payload_len, tx->op.seg[0].len + 200);
	Q_EXPECT_EQ(test, tx->op.hdr_len + tx->op.payload_len + QRDMA_TAG_LEN, len);
	Q_EXPECT_EQ(test, tx->aead->seal(&tx->op), 0);
	Q_EXPECT_EQ(test, qrdma_tx_protect(tx), 0);
	qrdma_tx_release(tx);
	qrdma_tx_release(tx);
	for (i = 0; i < 2; i++) {
		Q_EXPECT_EQ(test, refcount_read(&buf[i]->refs), 2);
		qrdma_buf_put(buf[i]);
	}
	p->got_len = len;
	Q_EXPECT_TRUE(test, qpeer_decode(p));
	Q_EXPECT_EQ(test, p->ngot, 2);
	Q_EXPECT_EQ(test, p->got[1].stream.len, 200);
	Q_EXPECT_EQ(test, p->got[1].stream.data[100], 'b');
	qpeer_free(p);
}

/* More pieces than an operation takes: the datagram ends there, the next one goes on. */
Q_TEST(packer_many_pieces)
{
	struct qpeer *p = qpeer_new(test, false);
	u32 next = 0, i;
	u8 byte;

	qpeer_drain(p);
	for (byte = 0; byte < 40; byte++)
		Q_EXPECT_EQ(test, qpair_write(p->conn, &byte, 1), 0);
	while (qpeer_take(p) > 0) {
		struct qrdma_frame *f = qpeer_find(p, QRDMA_FRAME_STREAM);

		Q_ASSERT_NOT_NULL(test, f);
		Q_EXPECT_EQ(test, f->stream.off, next);
		for (i = 0; i < f->stream.len; i++)
			Q_EXPECT_EQ(test, f->stream.data[i], next + i);
		next += f->stream.len;
		p->now += NSEC_PER_MSEC;
	}
	Q_EXPECT_EQ(test, next, 40);
	qpeer_free(p);
}

/* Datagrams are filled, and never more than the path and the buffer take. */
Q_TEST(packer_fills)
{
	struct qpeer *p = qpeer_new(test, false);
	u32 size, i;

	for (i = 0; i < 8; i++)
		qpair_write(p->conn, p->payload, 4096);
	qpeer_drain(p);
	for (size = 600; size < 1400; size += 37) {
		qrdma_conn_set_path(p->conn, size, p->now);
		p->conn->recovery.cong.s.cwnd = 1 << 20;
		p->now += NSEC_PER_MSEC;
		p->conn->probes = 0;
		qpair_write(p->conn, p->payload, 4096);
		Q_EXPECT_EQ(test, qpeer_take(p), size);
	}
	p->tx.data = p->wire;
	p->tx.cap = QRDMA_TX_MIN - 1;
	Q_EXPECT_EQ(test, qrdma_packer_build(p->conn, &p->tx, p->now), -EMSGSIZE);
	p->tx.cap = QRDMA_TX_MIN;
	p->now += NSEC_PER_MSEC;
	Q_EXPECT_EQ(test, qrdma_packer_build(p->conn, &p->tx, p->now), QRDMA_TX_MIN);
	qrdma_tx_release(&p->tx);
	qpeer_free(p);
}

/* RFC 9000 s8.2.2: the datagram of a PATH_RESPONSE is padded; so are tiny ones, for the sample. */
Q_TEST(packer_pads)
{
	struct qpeer *p = qpeer_new(test, false);
	struct qrdma_frame *f;

	qpeer_drain(p);
	qpeer_type(p, QRDMA_FRAME_PATH_CHALLENGE);
	qrdma_writer_bytes(&p->w, "12345678", 8);
	qpeer_send(p);
	qpair_write(p->conn, "data", 4);
	Q_EXPECT_EQ(test, qpeer_take(p), 1200);
	f = qpeer_find(p, QRDMA_FRAME_PATH_RESPONSE);
	Q_ASSERT_NOT_NULL(test, f);
	Q_EXPECT_MEMEQ(test, f->path.data, "12345678", 8);
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_PADDING));
	Q_EXPECT_LT(test, qpeer_take(p), 100);
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_STREAM));

	/* a path that does not take so much */
	qrdma_conn_set_path(p->conn, 1020, p->now);
	p->conn->probes = 0;
	qpeer_type(p, QRDMA_FRAME_PATH_CHALLENGE);
	qrdma_writer_bytes(&p->w, "12345678", 8);
	qpeer_send(p);
	p->now += NSEC_PER_MSEC;
	Q_EXPECT_EQ(test, qpeer_take(p), 1020);
	qpeer_free(p);
}

/* What the packer makes is released at once; Return: its bytes. */
static u32 packer_size(struct q_test *test, struct qpeer *p)
{
	u32 len;

	Q_EXPECT_GT(test, qrdma_packer_build(p->conn, &p->tx, p->now), 0);
	len = p->tx.len;
	qrdma_tx_release(&p->tx);
	return len;
}

/*
 * The peer's connection id may have any length, 0 too; no packet is so short that a stateless reset could not
 * look like it (RFC 9000 s10.3).
 */
Q_TEST(packer_dcid_lengths)
{
	struct qrdma_tx *tx;
	struct qpeer *p;
	u32 len, least;

	for (len = 0; len <= QRDMA_CID_MAX; len++) {
		p = packer_client(test, len);
		tx = &p->tx;
		tx->data = p->wire;
		tx->cap = sizeof(p->wire);
		Q_EXPECT_GT(test, qrdma_packer_build(p->conn, tx, p->now), 0);
		Q_EXPECT_EQ(test, tx->op.pn_off, 1 + len);
		/* the sample lies within the packet (RFC 9001 s5.4.2) */
		least = max_t(u32, tx->op.pn_off + 4 + QRDMA_SAMPLE_LEN, QRDMA_RESET_LIKE);
		Q_EXPECT_GE(test, tx->len, least);
		Q_EXPECT_EQ(test, tx->aead->seal(&tx->op), 0);
		Q_EXPECT_EQ(test, qrdma_tx_protect(tx), 0);
		Q_EXPECT_MEMEQ(test, p->wire + 1, "an id of the peer's", min(len, 19U));
		qrdma_tx_release(tx);
		/* a single PING, the smallest packet there is */
		qrdma_conn_ping(p->conn);
		Q_EXPECT_EQ(test, packer_size(test, p), least);
		/* and a byte of the program's */
		Q_EXPECT_EQ(test, qpair_write(p->conn, "a", 1), 0);
		Q_EXPECT_GE(test, packer_size(test, p), least);
		qpeer_free(p);
	}
}

/* The first byte: fixed bit, no reserved bits, no spin, key phase as the generation says. */
Q_TEST(packer_first_byte)
{
	struct qpeer *p = qpeer_new(test, false);
	struct qrdma_tx *tx = &p->tx;

	tx->data = p->wire;
	tx->cap = sizeof(p->wire);
	Q_EXPECT_GT(test, qrdma_packer_build(p->conn, tx, p->now), 0);
	Q_EXPECT_EQ(test, p->wire[0], 0x41);
	qrdma_tx_release(tx);
	qpeer_ack(p, 0, 0, 0);
	qpeer_send(p);
	qpair_derive_ahead(p->conn);
	Q_EXPECT_EQ(test, qrdma_conn_key_update(p->conn), 0);
	Q_EXPECT_GT(test, qrdma_packer_build(p->conn, tx, p->now), 0);
	Q_EXPECT_EQ(test, p->wire[0], 0x45);
	qrdma_tx_release(tx);
	qpeer_free(p);
}

/* A seal that fails, or whose packet is never posted: the number is spent, the bytes come again. */
Q_TEST(packer_unsent_packet)
{
	struct qpeer *p = qpeer_new(test, false);
	struct qrdma_tx *tx = &p->tx;
	u64 pn;

	qpeer_drain(p);
	qpeer_ack(p, 0, p->got_pn, 0);
	qpeer_send(p);
	qpair_write(p->conn, "bytes", 5);
	tx->data = p->wire;
	tx->cap = sizeof(p->wire);
	Q_EXPECT_GT(test, qrdma_packer_build(p->conn, tx, p->now), 0);
	pn = tx->op.pn;
	qrdma_tx_release(tx);
	Q_EXPECT_EQ(test, qpeer_take(p), 0);
	qpeer_wait(p);
	Q_EXPECT_GT(test, qpeer_take(p), 0);
	Q_EXPECT_GT(test, p->got_pn, pn);
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_STREAM));
	qpeer_free(p);
}

/* Nothing is taken from its owner when there is no memory for the record. */
Q_TEST(packer_without_memory)
{
	struct qpeer *p = qpeer_new(test, false);
	u64 next = p->conn->app.pn.next;

	if (!q_fail_alloc(1)) {
		qpeer_free(p);
		Q_SKIP(test, "allocations do not fail on demand here");
	}
	Q_EXPECT_EQ(test, qpeer_take(p), -ENOMEM);
	q_fail_alloc(0);
	Q_EXPECT_EQ(test, p->conn->app.pn.next, next);
	Q_EXPECT_EQ(test, qrdma_conn_deadline(p->conn), p->now + QRDMA_CONN_RETRY);
	qpeer_wait(p);
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_TX);
	Q_EXPECT_GT(test, qpeer_take(p), 0);
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_STREAM));
	qpeer_free(p);
}

/* The window full: data waits, acknowledgments do not. */
Q_TEST(packer_window_full)
{
	struct qpeer *p = qpeer_new(test, false);
	u32 i;

	for (i = 0; i < 20; i++)
		qpair_write(p->conn, p->payload, 4096);
	while (qrdma_recovery_room(&p->conn->recovery) >= QPAIR_DATAGRAM) {
		if (qpeer_take(p) <= 0)
			qpeer_wait(p);
	}
	Q_EXPECT_GT(test, qrdma_conn_unsent(p->conn, 0), 0);
	Q_EXPECT_EQ(test, qpeer_take(p), -EAGAIN);
	for (i = 0; i < 2; i++) {
		qpeer_type(p, QRDMA_FRAME_PING);
		qpeer_send(p);
	}
	Q_EXPECT_GT(test, qpeer_take(p), 0);
	Q_EXPECT_EQ(test, p->ngot, 1);
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_ACK));
	Q_EXPECT_EQ(test, qpeer_take(p), -EAGAIN);
	qpeer_free(p);
}

/* The pace: what may not leave yet has its time, and leaves then. */
Q_TEST(packer_paced)
{
	struct qpeer *p = qpeer_new(test, false);
	u32 i, paced = 0;
	u64 at;

	/* a round trip is known, the window is wide */
	for (i = 0; i < 10; i++) {
		qrdma_conn_ping(p->conn);
		Q_ASSERT_GT(test, qpeer_take(p), 0);
		p->now += 10 * NSEC_PER_MSEC;
		qpeer_ack(p, p->got_pn, p->got_pn, 0);
		qpeer_send(p);
	}
	p->conn->recovery.cong.s.cwnd = 200000;
	for (i = 0; i < 30; i++)
		qpair_write(p->conn, p->payload, 4096);
	for (i = 0; i < 1000 && qrdma_conn_unsent(p->conn, 0); i++) {
		if (qpeer_take(p) > 0)
			continue;
		at = qrdma_conn_deadline(p->conn);
		Q_ASSERT_GT(test, at, p->now);
		Q_ASSERT_LT(test, at, p->now + 10 * NSEC_PER_MSEC);
		paced++;
		p->now = at - 1;
		Q_EXPECT_FALSE(test, qrdma_conn_timeout(p->conn, p->now) & QRDMA_EV_TX);
		p->now = at;
		Q_EXPECT_TRUE(test, qrdma_conn_timeout(p->conn, p->now) & QRDMA_EV_TX);
	}
	Q_EXPECT_EQ(test, qrdma_conn_unsent(p->conn, 0), 0);
	Q_EXPECT_GT(test, paced, 2);
	qpeer_free(p);
}

/* A probe brings the first bytes that are missing, before new ones and before later packets. */
Q_TEST(packer_probe_repeats_first)
{
	struct qpeer *p = qpeer_new(test, false);
	struct qrdma_frame *f;
	u32 i;

	qpeer_drain(p);
	qpeer_ack(p, 0, p->got_pn, 0);
	qpeer_send(p);
	qpair_write(p->conn, p->payload, 3000);
	Q_EXPECT_EQ(test, qpeer_drain(p), 3);
	/* the peer has the last packet, then nothing more comes of it */
	qpeer_ack(p, p->got_pn, p->got_pn, 0);
	qpeer_send(p);
	for (i = 0; i < 3; i++) {
		while (!p->conn->probes) {
			qpeer_drain(p);
			qpeer_wait(p);
			Q_ASSERT_EQ(test, qpeer_error(p), U64_MAX);
		}
		qpair_write(p->conn, p->payload, 1000);
		Q_EXPECT_GT(test, qpeer_take(p), 0);
		f = qpeer_find(p, QRDMA_FRAME_STREAM);
		Q_ASSERT_NOT_NULL(test, f);
		Q_EXPECT_EQ(test, f->stream.off, 0);
		Q_EXPECT_GT(test, f->stream.len, 1000);
		qpeer_drain(p);
	}
	qpeer_free(p);
}

/* Many gaps: the acknowledgment takes what fits and leaves room for others. */
Q_TEST(packer_long_ack)
{
	struct qpeer *p = qpeer_new(test, false);
	u32 i;

	qpeer_drain(p);
	for (i = 0; i < 100; i++) {
		p->pn += 100000;
		qpeer_type(p, QRDMA_FRAME_PING);
		qpeer_send(p);
	}
	qpair_write(p->conn, "data", 4);
	Q_EXPECT_GT(test, qpeer_take(p), 0);
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_ACK));
	Q_EXPECT_GT(test, qpeer_find(p, QRDMA_FRAME_ACK)->ack.count, 10);
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_STREAM));
	qpeer_free(p);
}

Q_SUITE("qrdma-packer",
	Q_CASE(packer_first_packet),
	Q_CASE(packer_segments),
	Q_CASE(packer_many_pieces),
	Q_CASE(packer_fills),
	Q_CASE(packer_pads),
	Q_CASE(packer_dcid_lengths),
	Q_CASE(packer_first_byte),
	Q_CASE(packer_unsent_packet),
	Q_CASE(packer_without_memory),
	Q_CASE(packer_window_full),
	Q_CASE(packer_paced),
	Q_CASE(packer_probe_repeats_first),
	Q_CASE(packer_long_ack));
