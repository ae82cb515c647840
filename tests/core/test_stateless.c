// SPDX-License-Identifier: GPL-2.0
/* core/stateless.c: what a server says before there is a connection. */
#include "qhs.h"

/* The first datagram of a client, into h->wire. Return: bytes. */
static int sl_first(struct q_test *test, struct qhs *h)
{
	int len;

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	len = qpair_build(&h->p, 0);
	Q_ASSERT_GT(test, len, 0);
	memcpy(h->wire, h->p.wire, len);
	return len;
}

Q_TEST(sl_look)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_hdr hdr;
	int len = sl_first(test, h);
	u8 *w = h->wire;

	Q_EXPECT_EQ(test, qrdma_stateless_look(w, len, 4000, &hdr), QRDMA_FIRST_INITIAL);
	Q_EXPECT_EQ(test, hdr.dcid_len, 8);
	Q_EXPECT_MEMEQ(test, hdr.dcid, "chosenid", 8);
	Q_EXPECT_MEMEQ(test, hdr.scid, "clientid", 8);
	Q_EXPECT_EQ(test, hdr.token_len, 0);
	/* 1200 bytes, or what the path takes */
	Q_EXPECT_EQ(test, qrdma_stateless_look(w, len - 1, 4000, &hdr), QRDMA_FIRST_DROP);
	Q_EXPECT_EQ(test, qrdma_stateless_look(w, 0, 4000, &hdr), QRDMA_FIRST_DROP);
	/* of another version, which may have longer ids */
	w[4] = 9;
	w[5] = 40;
	Q_EXPECT_EQ(test, qrdma_stateless_look(w, len, 4000, &hdr), QRDMA_FIRST_VERSION);
	Q_EXPECT_EQ(test, qrdma_stateless_look(w, 1019, 1020, &hdr), QRDMA_FIRST_DROP);
	w[4] = 0;	/* Version Negotiation is never answered */
	Q_EXPECT_EQ(test, qrdma_stateless_look(w, len, 4000, &hdr), QRDMA_FIRST_DROP);
	w[4] = 1;
	Q_EXPECT_EQ(test, qrdma_stateless_look(w, len, 4000, &hdr), QRDMA_FIRST_DROP);
	w[5] = 7;	/* too short to be random (RFC 9000 s7.2) */
	Q_EXPECT_EQ(test, qrdma_stateless_look(w, len, 4000, &hdr), QRDMA_FIRST_DROP);
	w[5] = 8;
	w[0] ^= 0x20;	/* Handshake */
	Q_EXPECT_EQ(test, qrdma_stateless_look(w, len, 4000, &hdr), QRDMA_FIRST_DROP);
	w[0] = 0x40;	/* short */
	Q_EXPECT_EQ(test, qrdma_stateless_look(w, len, 4000, &hdr), QRDMA_FIRST_DROP);
	qhs_free(h);
}

/* Both ends: the client of another version hears of ours. */
Q_TEST(sl_version_negotiation)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_hdr hdr, answer;
	struct qrdma_tx *tx = q_zalloc(test, sizeof(*tx));
	int len = sl_first(test, h);
	u8 out[64];

	h->wire[4] = 9;
	Q_ASSERT_EQ(test, qrdma_stateless_look(h->wire, len, 4000, &hdr), QRDMA_FIRST_VERSION);
	tx->data = out;
	tx->cap = 20;
	Q_EXPECT_EQ(test, qrdma_stateless_version_neg(tx, &hdr, 0xff), -EMSGSIZE);
	tx->cap = sizeof(out);
	len = qrdma_stateless_version_neg(tx, &hdr, 0xff);
	Q_ASSERT_GT(test, len, 0);
	Q_EXPECT_EQ(test, tx->len, len);
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&answer, out, len), QRDMA_HDR_OK);
	Q_EXPECT_EQ(test, answer.type, QRDMA_PKT_VERSION_NEG);
	Q_EXPECT_MEMEQ(test, answer.dcid, "clientid", 8);
	Q_EXPECT_MEMEQ(test, answer.scid, "chosenid", 8);
	Q_EXPECT_EQ(test, answer.token_len, 4);
	Q_EXPECT_EQ(test, qrdma_load_be32(answer.token), QRDMA_QUIC_V1);
	/* it offers what the client speaks: not for this client */
	qhs_rx(h, 0, out, len);
	Q_EXPECT_EQ(test, qhs_error(h, 0, NULL), U64_MAX);
	qhs_free(h);
}

Q_TEST(sl_retry_bounds)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_tx *tx = q_zalloc(test, sizeof(*tx));
	struct qrdma_hdr hdr;
	int len = sl_first(test, h);
	u8 out[100];

	Q_ASSERT_EQ(test, qrdma_stateless_look(h->wire, len, 4000, &hdr), QRDMA_FIRST_INITIAL);
	tx->data = out;
	tx->cap = sizeof(out);
	Q_EXPECT_EQ(test, qrdma_stateless_retry(tx, &null_aead, h->retry_slot, &hdr,
						&h->cid[QHS_RETRY], out, 0, 0), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_stateless_retry(tx, &null_aead, h->retry_slot, &hdr,
						&h->cid[QHS_RETRY], out, QRDMA_HS_TOKEN_MAX + 1,
						0), -EINVAL);
	/* the id must be another one (RFC 9000 s17.2.5.1) */
	Q_EXPECT_EQ(test, qrdma_stateless_retry(tx, &null_aead, h->retry_slot, &hdr,
						&h->cid[QHS_CHOSEN], out, 4, 0), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_stateless_retry(tx, &null_aead, h->retry_slot, &hdr,
						&h->cid[QHS_RETRY], h->wire, 90, 0), -EMSGSIZE);
	Q_EXPECT_NULL(test, tx->op.slot);
	qhs_free(h);
}

/* A client that is not wanted hears so at once. */
Q_TEST(sl_refuse)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_tx *tx = q_zalloc(test, sizeof(*tx));
	struct qrdma_slot *slot;
	struct qrdma_hdr hdr;
	int len = sl_first(test, h), err;
	u8 out[100];

	Q_ASSERT_EQ(test, qrdma_stateless_look(h->wire, len, 4000, &hdr), QRDMA_FIRST_INITIAL);
	Q_ASSERT_EQ(test, ftls_slot(QRDMA_ENC_INITIAL, true, &h->cid[QHS_CHOSEN], &slot), 0);
	tx->data = out;
	tx->cap = 40;
	Q_EXPECT_EQ(test, qrdma_stateless_refuse(tx, &null_aead, slot, &hdr, &h->cid[QHS_SERVER],
						 QRDMA_ERR_CONNECTION_REFUSED), -EMSGSIZE);
	tx->cap = sizeof(out);
	Q_EXPECT_EQ(test, qrdma_stateless_refuse(tx, &null_aead, slot, &hdr, &h->cid[QHS_SERVER],
						 QRDMA_ERR_CONNECTION_REFUSED), 0);
	Q_EXPECT_EQ(test, qpair_seal(tx), 0);
	qhs_rx(h, 0, out, tx->len);
	Q_EXPECT_EQ(test, qhs_error(h, 0, &err), QRDMA_ERR_CONNECTION_REFUSED);
	Q_EXPECT_EQ(test, err, ECONNREFUSED);
	null_aead.slot_put(slot);
	qhs_free(h);
}

Q_SUITE("qrdma-stateless",
	Q_CASE(sl_look),
	Q_CASE(sl_version_negotiation),
	Q_CASE(sl_retry_bounds),
	Q_CASE(sl_refuse));
