// SPDX-License-Identifier: GPL-2.0
/* core/longpkt.c: Initial and Handshake packets, coalesced, padded, sealed one after the other. */
#include "qhs.h"
#include "conn_state.h"

/* Operations that end later, as an AEAD engine has them. */
static struct qrdma_aead_op *lp_pending;

static bool lp_defer(struct qrdma_aead_op *op, bool seal)
{
	if (!seal)
		return false;
	lp_pending = op;
	return true;
}

static void lp_done(struct qrdma_aead_op *op, int err)
{
}

/* The datagram with three packets, the client's second, into h->p.tx. */
static int lp_three(struct q_test *test, struct qhs *h)
{
	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	qhs_flush(h, 0);
	Q_ASSERT_NOT_NULL(test, h->p.conn[1]);
	qhs_flush(h, 1);
	h->p.tx.data = h->p.wire;
	h->p.tx.cap = sizeof(h->p.wire);
	return qrdma_packer_build(h->p.conn[0], &h->p.tx, h->p.now);
}

Q_TEST(lp_parts)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_tx *tx = &h->p.tx;
	u32 n = 1;
	int len = lp_three(test, h);

	Q_EXPECT_EQ(test, len, QPAIR_DATAGRAM);
	Q_EXPECT_EQ(test, tx->parts, 2);
	/* packet after packet, each sealed by an engine that answers later */
	null_aead_defer = lp_defer;
	tx->op.done = lp_done;
	for (;;) {
		Q_EXPECT_EQ(test, tx->aead->seal(&tx->op), -EINPROGRESS);
		null_aead_run(lp_pending, true);
		Q_EXPECT_EQ(test, qrdma_tx_protect(tx), 0);
		if (!qrdma_tx_next(tx))
			break;
		n++;
	}
	null_aead_defer = NULL;
	Q_EXPECT_EQ(test, n, 3);
	qrdma_tx_release(tx);
	qhs_rx(h, 1, h->p.wire, len);
	Q_EXPECT_TRUE(test, h->tls[1].done);
	qhs_free(h);
}

/* A datagram that is given up leaves nothing behind, whichever packet it was at. */
Q_TEST(lp_given_up)
{
	u32 at;

	for (at = 0; at < 3; at++) {
		struct qhs *h = qhs_new(test);
		u32 i;

		Q_ASSERT_GT(test, lp_three(test, h), 0);
		for (i = 0; i < at; i++)
			Q_EXPECT_TRUE(test, qrdma_tx_next(&h->p.tx));
		qrdma_tx_release(&h->p.tx);
		Q_EXPECT_FALSE(test, qrdma_tx_next(&h->p.tx));
		/* its numbers are spent; recovery repairs it */
		qhs_run(h, NSEC_PER_SEC);
		Q_EXPECT_TRUE(test, h->tls[0].done && h->tls[1].done);
		qhs_free(h);
	}
}

/* RFC 9000 s14.1: every datagram with an Initial that asks for an answer, over any path. */
Q_TEST(lp_padding)
{
	static const u32 path[] = { 600, 1020, 1199, 1200, 4092 };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(path); i++) {
		struct qhs *h = qhs_new(test);
		u32 least = min(path[i], 1200U);

		h->cfg[0].max_datagram = path[i];
		h->cfg[1].max_datagram = path[i];
		h->tpl[1].cert = 3000;
		if (path[i] > sizeof(h->wire)) {
			h->cfg[0].max_datagram = sizeof(h->wire);
			h->cfg[1].max_datagram = sizeof(h->wire);
		}
		/* what is lost is repeated, and padded again */
		h->drop = 0x15;
		Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
		qhs_run(h, 5 * NSEC_PER_SEC);
		Q_EXPECT_TRUE(test, h->tls[0].done && h->tls[1].done);
		for (k = 0; k < min_t(u32, h->nlog, QHS_LOG); k++) {
			Q_EXPECT_LE(test, h->log[k].len, path[i]);
			if (!h->log[k].end && h->log[k].type[0] == QRDMA_PKT_INITIAL)
				Q_EXPECT_GE(test, h->log[k].len, least);
		}
		qhs_free(h);
	}
}

/* A buffer too small for a padded Initial: none is built, and nothing is lost. */
Q_TEST(lp_small_buffer)
{
	struct qhs *h = qhs_new(test);
	u64 pn;

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	h->p.tx.data = h->p.wire;
	h->p.tx.cap = 300;
	pn = h->p.conn[0]->hs->space[QRDMA_SPACE_INITIAL]->sp.pn.next;
	Q_EXPECT_EQ(test, qrdma_packer_build(h->p.conn[0], &h->p.tx, h->p.now), 0);
	Q_EXPECT_EQ(test, h->p.conn[0]->hs->space[QRDMA_SPACE_INITIAL]->sp.pn.next, pn);
	qhs_run(h, NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, h->tls[0].done && h->tls[1].done);
	qhs_free(h);
}

/* A token goes with each Initial packet of the client. */
Q_TEST(lp_token)
{
	struct qhs *h = qhs_new(test);
	static u8 token[QRDMA_HS_TOKEN_MAX] = { 9, 8, 7 };
	struct qrdma_hdr hdr;
	int len;

	h->cfg[0].max_datagram = 1020;
	h->hs[0].token = token;
	h->hs[0].token_len = sizeof(token);
	h->tpl[0].hello = 700;
	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	while ((len = qpair_build(&h->p, 0)) > 0) {
		Q_EXPECT_EQ(test, len, 1020);
		Q_EXPECT_EQ(test, qrdma_stateless_look(h->p.wire, len, 1020, &hdr),
			    QRDMA_FIRST_INITIAL);
		Q_EXPECT_EQ(test, hdr.token_len, sizeof(token));
		Q_EXPECT_MEMEQ(test, hdr.token, token, sizeof(token));
		h->nlog++;
	}
	Q_EXPECT_EQ(test, h->nlog, 2);
	qhs_free(h);
}

/* No memory for a record: later. */
Q_TEST(lp_no_memory)
{
	struct qhs *h = qhs_new(test);

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	if (!q_fail_alloc(1)) {
		qhs_free(h);
		Q_SKIP(test, "no allocation fails here");
	}
	h->p.tx.data = h->p.wire;
	h->p.tx.cap = sizeof(h->p.wire);
	Q_EXPECT_EQ(test, qrdma_packer_build(h->p.conn[0], &h->p.tx, h->p.now), -ENOMEM);
	q_fail_alloc(0);
	Q_EXPECT_EQ(test, qrdma_conn_deadline(h->p.conn[0]), h->p.now + QRDMA_CONN_RETRY);
	qhs_run(h, NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, h->tls[0].done && h->tls[1].done);
	qhs_free(h);
}

Q_SUITE("qrdma-longpkt",
	Q_CASE(lp_parts),
	Q_CASE(lp_given_up),
	Q_CASE(lp_padding),
	Q_CASE(lp_small_buffer),
	Q_CASE(lp_token),
	Q_CASE(lp_no_memory));
