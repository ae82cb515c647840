// SPDX-License-Identifier: GPL-2.0
/* core/conn_hs.c: the owner's calls, transport parameters, 0-RTT. */
#include "qhs.h"
#include "conn_state.h"

#define NOW	QPAIR_START

static struct qrdma_conn *api_conn(struct q_test *test, struct qhs *h, int end)
{
	struct qrdma_conn *conn = NULL;

	h->cfg[1].dcid = &h->cid[QHS_CLIENT];
	h->hs[1].odcid = &h->cid[QHS_CHOSEN];
	Q_ASSERT_EQ(test, qrdma_conn_create(&h->cfg[end], NOW, &conn, GFP_KERNEL), 0);
	return conn;
}

Q_TEST(api_refuses)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_conn *conn;
	struct qrdma_cid small = { .len = 7 };
	struct qrdma_slot *slot;
	u8 buf[QRDMA_TP_ENCODED_MAX];
	const u8 *data;

	/* ids and tokens that cannot be */
	h->cfg[0].dcid = &small;
	Q_EXPECT_EQ(test, qrdma_conn_create(&h->cfg[0], NOW, &conn, GFP_KERNEL), -EINVAL);
	h->cfg[0].dcid = &h->cid[QHS_CHOSEN];
	h->hs[0].token = buf;
	h->hs[0].token_len = QRDMA_HS_TOKEN_MAX + 1;
	Q_EXPECT_EQ(test, qrdma_conn_create(&h->cfg[0], NOW, &conn, GFP_KERNEL), -EINVAL);
	h->hs[0].token_len = 0;
	Q_EXPECT_EQ(test, qrdma_conn_create(&h->cfg[1], NOW, &conn, GFP_KERNEL), -EINVAL);

	conn = api_conn(test, h, 0);
	Q_ASSERT_EQ(test, ftls_slot(1, true, NULL, &slot), 0);
	Q_EXPECT_EQ(test, qrdma_conn_install_level(conn, QRDMA_ENCS, true, FTLS_CIPHER, slot),
		    -EINVAL);
	Q_EXPECT_EQ(test, qrdma_conn_install_level(conn, QRDMA_ENC_INITIAL, true, 7, slot),
		    -EINVAL);
	/* nothing is remembered, and a client does not receive 0-RTT */
	Q_EXPECT_EQ(test, qrdma_conn_install_level(conn, QRDMA_ENC_EARLY, true, FTLS_CIPHER, slot),
		    -EINVAL);
	Q_EXPECT_EQ(test, qrdma_conn_install_level(conn, QRDMA_ENC_EARLY, false, FTLS_CIPHER, slot),
		    -EINVAL);
	Q_EXPECT_EQ(test, ftls_install(conn, QRDMA_ENC_INITIAL, false, true), 0);
	Q_EXPECT_EQ(test, ftls_install(conn, QRDMA_ENC_INITIAL, false, true), -EEXIST);
	Q_EXPECT_EQ(test, qrdma_conn_crypto_write(conn, QRDMA_ENC_EARLY, "x", 1), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_conn_crypto_write(conn, QRDMA_ENC_INITIAL, "x", U32_MAX), -ENOBUFS);
	Q_EXPECT_EQ(test, qrdma_conn_crypto_peek(conn, QRDMA_ENC_EARLY, &data), 0);
	Q_EXPECT_EQ(test, qrdma_conn_crypto_peek(conn, QRDMA_ENC_APP, &data), 0);
	Q_EXPECT_EQ(test, qrdma_conn_tparams(conn, buf, 5), -ENOBUFS);
	Q_EXPECT_EQ(test, qrdma_conn_handshake_complete(conn, NOW), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_conn_early_verdict(conn, true, NOW), -EALREADY);
	Q_EXPECT_EQ(test, qrdma_conn_key_update(conn), -EAGAIN);
	qrdma_conn_abort(conn);
	Q_EXPECT_EQ(test, qrdma_conn_crypto_write(conn, QRDMA_ENC_INITIAL, "x", 1), -ENOTCONN);
	Q_EXPECT_EQ(test, qrdma_conn_peer_tparams(conn, buf, 0, NOW), -ENOTCONN);
	Q_EXPECT_EQ(test, qrdma_conn_install_level(conn, QRDMA_ENC_INITIAL, false, FTLS_CIPHER,
						   slot), -ESTALE);
	qrdma_conn_destroy(conn);
	null_aead.slot_put(slot);
	qhs_free(h);
}

/* Out of band there is none of it. */
Q_TEST(api_out_of_band)
{
	struct qpair *p = qpair_new(test);
	struct qrdma_conn *conn = p->conn[0];
	struct qrdma_hs_stats stats;
	struct qrdma_rx rx = {};
	struct qrdma_slot *slot;
	const u8 *data;
	u8 buf[64];

	Q_ASSERT_EQ(test, ftls_slot(1, true, NULL, &slot), 0);
	Q_EXPECT_EQ(test, qrdma_conn_install_level(conn, QRDMA_ENC_HANDSHAKE, true, FTLS_CIPHER,
						   slot), -EOPNOTSUPP);
	Q_EXPECT_NULL(test, qrdma_conn_initial_cid(conn));
	Q_EXPECT_EQ(test, qrdma_conn_tparams(conn, buf, sizeof(buf)), -EOPNOTSUPP);
	Q_EXPECT_EQ(test, qrdma_conn_peer_tparams(conn, buf, 0, NOW), -EOPNOTSUPP);
	Q_EXPECT_EQ(test, qrdma_conn_crypto_write(conn, QRDMA_ENC_INITIAL, "x", 1), -EOPNOTSUPP);
	Q_EXPECT_EQ(test, qrdma_conn_crypto_peek(conn, QRDMA_ENC_APP, &data), 0);
	Q_EXPECT_EQ(test, qrdma_conn_early_verdict(conn, true, NOW), -EOPNOTSUPP);
	Q_EXPECT_EQ(test, qrdma_conn_handshake_complete(conn, NOW), -EOPNOTSUPP);
	Q_EXPECT_EQ(test, qrdma_conn_give_token(p->conn[1], buf, 1), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_conn_token(conn, &data), 0);
	Q_EXPECT_FALSE(test, qrdma_conn_held(conn, &rx));
	qrdma_conn_hs_stats(conn, &stats);
	Q_EXPECT_EQ(test, stats.complete, false);
	null_aead.slot_put(slot);
	qpair_free(p);
}

Q_TEST(api_no_memory)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_conn *conn;
	u8 token[16] = {};
	u32 i;
	int err;

	h->hs[0].token = token;
	h->hs[0].token_len = sizeof(token);
	h->hs[0].remembered = &h->tp[1];
	for (i = 1; i < 20; i++) {
		if (!q_fail_alloc(i))
			Q_SKIP(test, "no allocation fails here");
		err = qrdma_conn_create(&h->cfg[0], NOW, &conn, GFP_KERNEL);
		q_fail_alloc(0);
		if (!err)
			break;
		Q_EXPECT_EQ(test, err, -ENOMEM);
	}
	Q_EXPECT_GE(test, i, 6);
	qrdma_conn_destroy(conn);
	qhs_free(h);
}

/**
 * struct api_params - a set of parameters that a peer may send
 * @from_server: by whom
 * @retried: there was a Retry
 * @odcid: index in struct qhs.cid, -1: absent; the same for the next two
 * @iscid: initial_source_connection_id
 * @rscid: retry_source_connection_id
 * @ok: it is right
 */
struct api_params {
	bool from_server;
	bool retried;
	s8 odcid;
	s8 iscid;
	s8 rscid;
	bool ok;
};

static void api_set(struct qhs *h, struct qrdma_tparams *tp, u8 id, struct qrdma_cid *cid, int index)
{
	if (index < 0)
		return;
	*cid = h->cid[index];
	tp->present |= BIT_ULL(id);
}

/* RFC 9000 s7.3, row by row. */
Q_TEST(api_params_ids)
{
	static const struct api_params row[] = {
		{ true, false, QHS_CHOSEN, QHS_SERVER, -1, true },
		{ true, false, QHS_CLIENT, QHS_SERVER, -1, false },
		{ true, false, -1, QHS_SERVER, -1, false },
		{ true, false, QHS_CHOSEN, -1, -1, false },
		{ true, false, QHS_CHOSEN, QHS_RETRY, -1, false },
		{ true, false, QHS_CHOSEN, QHS_SERVER, QHS_RETRY, false },
		{ true, true, QHS_CHOSEN, QHS_SERVER, QHS_RETRY, true },
		{ true, true, QHS_CHOSEN, QHS_SERVER, QHS_CHOSEN, false },
		{ true, true, QHS_CHOSEN, QHS_SERVER, -1, false },
		{ false, false, -1, QHS_CLIENT, -1, true },
		{ false, false, -1, -1, -1, false },
		{ false, false, -1, QHS_SERVER, -1, false },
		{ false, false, QHS_CHOSEN, QHS_CLIENT, -1, false },
	};
	u8 data[QRDMA_TP_ENCODED_MAX];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		const struct api_params *r = &row[i];
		struct qhs *h = qhs_new(test);
		struct qrdma_conn *conn = api_conn(test, h, !r->from_server);
		struct qrdma_hs *hs = conn->hs;
		struct qrdma_tparams tp = h->tp[0];
		struct qrdma_conn_error e;
		struct qrdma_writer w;
		int err;

		if (r->from_server) {
			hs->have_cid = true;
			hs->peer_cid = h->cid[QHS_SERVER];
			hs->retried = r->retried;
			hs->retry_scid = h->cid[QHS_RETRY];
		}
		api_set(h, &tp, QRDMA_TP_ORIGINAL_DCID, &tp.original_dcid, r->odcid);
		api_set(h, &tp, QRDMA_TP_INITIAL_SCID, &tp.initial_scid, r->iscid);
		api_set(h, &tp, QRDMA_TP_RETRY_SCID, &tp.retry_scid, r->rscid);
		qrdma_writer_init(&w, data, sizeof(data));
		/* what a client may not send is written all the same */
		Q_ASSERT_TRUE(test, qrdma_tparams_encode(&w, &tp, true));
		err = qrdma_conn_peer_tparams(conn, data, w.pos - data, NOW);
		if (err != (r->ok ? 0 : -EPROTO))
			Q_FAIL(test, "row %u: %d", i, err);
		qrdma_conn_error(conn, &e);
		Q_EXPECT_EQ(test, e.closed, !r->ok);
		if (r->ok) {
			Q_EXPECT_EQ(test, qrdma_conn_peer_tparams(conn, data, 1, NOW), -EALREADY);
			Q_EXPECT_EQ(test, conn->streams.tx_flow.max, tp.initial_max_data);
		} else {
			Q_EXPECT_EQ(test, e.code, QRDMA_ERR_TRANSPORT_PARAMETER_ERROR);
		}
		qrdma_conn_destroy(conn);
		qhs_free(h);
	}
}

/* What the parameters change: idle time-out, datagram size, ACK delay, reset token, its address. */
Q_TEST(api_params_hold)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_conn *conn;
	u32 i;

	h->tp[1].max_udp_payload_size = 1100;
	h->tp[1].max_idle_timeout = 5000;
	h->tp[1].ack_delay_exponent = 7;
	h->tp[1].present = BIT_ULL(QRDMA_TP_STATELESS_RESET_TOKEN) |
			   BIT_ULL(QRDMA_TP_PREFERRED_ADDRESS);
	for (i = 0; i < QRDMA_RESET_TOKEN_LEN; i++)
		h->tp[1].reset_token[i] = i + 1;
	qhs_cid(&h->tp[1].preferred.cid, "otherone");
	qhs_connect(test, h);
	conn = h->p.conn[0];
	Q_EXPECT_EQ(test, conn->path.max_datagram, 1100);
	Q_EXPECT_EQ(test, conn->idle_timeout, 5 * NSEC_PER_SEC);
	Q_EXPECT_EQ(test, conn->peer_ack_exponent, 7);
	Q_EXPECT_EQ(test, conn->path.nr_cids, 2);
	Q_EXPECT_MEMEQ(test, conn->path.cids[0].token, h->tp[1].reset_token, QRDMA_PATH_TOKEN);
	/* a wider path changes nothing of what the peer takes */
	qrdma_conn_set_path(conn, 4000, h->p.now);
	Q_EXPECT_EQ(test, conn->path.max_datagram, 1100);
	qhs_free(h);
}

static void early_write(struct q_test *test, struct qhs *h, u32 len)
{
	u8 *data = kzalloc(len, GFP_KERNEL);
	u32 i;

	Q_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < len; i++)
		data[i] = i * 13;
	Q_EXPECT_EQ(test, qpair_write(h->p.conn[0], data, len), 0);
	Q_EXPECT_EQ(test, qrdma_conn_finish(h->p.conn[0], 0), 0);
	kfree(data);
}

static void early_read(struct q_test *test, struct qhs *h, u32 len)
{
	u8 *data = kzalloc(len + 1, GFP_KERNEL);
	u32 i;

	Q_ASSERT_NOT_NULL(test, data);
	Q_EXPECT_EQ(test, qpair_read(h->p.conn[1], data, len + 1), len);
	for (i = 0; i < len; i++) {
		if (data[i] != (u8)(i * 13))
			break;
	}
	Q_EXPECT_EQ(test, i, len);
	Q_EXPECT_TRUE(test, qrdma_conn_at_eof(h->p.conn[1], 0));
	kfree(data);
}

static struct qhs *early_new(struct q_test *test, bool taken)
{
	struct qhs *h = qhs_new(test);

	h->hs[0].remembered = &h->tp[1];
	h->tpl[0].early = true;
	h->tpl[1].early = taken;
	return h;
}

/* Data in the first datagram; the count is in packets. */
Q_TEST(early_packet_count)
{
	struct qhs *h = early_new(test, true);

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	early_write(test, h, 500);
	Q_EXPECT_EQ(test, qhs_flush(h, 0), 1);
	Q_EXPECT_EQ(test, h->log[0].n, 2);
	Q_EXPECT_EQ(test, h->log[0].type[0], QRDMA_PKT_INITIAL);
	Q_EXPECT_EQ(test, h->log[0].type[1], QRDMA_PKT_0RTT);
	Q_EXPECT_EQ(test, h->log[0].len, QPAIR_DATAGRAM);
	/* it is there, before the server has said a word */
	early_read(test, h, 500);
	Q_EXPECT_TRUE(test, h->ev[1] & QRDMA_EV_READABLE);
	Q_EXPECT_FALSE(test, h->ev[1] & QRDMA_EV_ESTABLISHED);
	qhs_run(h, NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, h->tls[0].done && h->tls[1].done);
	Q_EXPECT_EQ(test, h->tls[0].err, 0);
	Q_EXPECT_EQ(test, h->p.conn[0]->hs->early_state, QRDMA_EARLY_ACCEPTED);
	Q_EXPECT_TRUE(test, h->ev[0] & QRDMA_EV_ACKED);
	/* its keys are gone (RFC 9001 s4.9.3) */
	Q_EXPECT_NULL(test, h->p.conn[0]->hs->early.tx_cur);
	Q_EXPECT_NULL(test, h->p.conn[1]->hs->early.rx_cur);
	qhs_free(h);
}

/* A rejection costs a round trip and not one byte, whatever is lost meanwhile. */
Q_TEST(early_rejected)
{
	u64 drop;

	for (drop = 0; drop < 256; drop++) {
		struct qhs *h = early_new(test, false);

		h->drop = drop;
		Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
		early_write(test, h, 5000);
		qhs_run(h, 9 * NSEC_PER_SEC);
		if (!h->tls[0].done || h->tls[0].err || h->tls[1].err)
			Q_FAIL(test, "losing %llx: %d (%d), %d (%d)", drop, h->tls[0].err,
			       h->tls[0].line, h->tls[1].err, h->tls[1].line);
		else
			early_read(test, h, 5000);
		Q_EXPECT_EQ(test, h->p.conn[0]->hs->early_state, QRDMA_EARLY_REJECTED);
		qhs_free(h);
	}
}

Q_TEST(early_accepted_any_loss)
{
	u64 drop;

	for (drop = 0; drop < 256; drop++) {
		struct qhs *h = early_new(test, true);

		h->drop = drop;
		h->retry = drop & 1;
		Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
		early_write(test, h, 5000);
		qhs_run(h, 9 * NSEC_PER_SEC);
		if (!h->tls[0].done || h->tls[0].err || h->tls[1].err)
			Q_FAIL(test, "losing %llx: %d (%d), %d (%d)", drop, h->tls[0].err,
			       h->tls[0].line, h->tls[1].err, h->tls[1].line);
		else
			early_read(test, h, 5000);
		qhs_free(h);
	}
}

/* A window of 0-RTT packets is lost but for the first: no time-out is needed for the handshake. */
Q_TEST(early_mostly_lost)
{
	struct qhs *h = early_new(test, true);
	u32 i, sent;

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	early_write(test, h, 100000);
	/* the window's worth of datagrams, of which only the first arrives */
	h->drop = ~1ULL;
	sent = qhs_flush(h, 0);
	Q_EXPECT_GT(test, sent, 4);
	h->drop = 0;
	for (i = 0; i < 3; i++) {
		qhs_flush(h, 1);
		qhs_flush(h, 0);
	}
	Q_EXPECT_TRUE(test, h->tls[0].done);
	Q_EXPECT_TRUE(test, h->tls[1].done);
	qhs_run(h, 5 * NSEC_PER_SEC);
	early_read(test, h, 100000);
	qhs_free(h);
}

/* After a rejection the new limits count, lower ones too. */
Q_TEST(early_rejected_lower_limits)
{
	struct qhs *h = early_new(test, false);
	struct qrdma_tparams remembered = h->tp[1];

	h->hs[0].remembered = &remembered;
	h->tp[1].initial_max_data = 1000;
	h->tp[1].initial_max_stream_data_bidi_remote = 700;
	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	early_write(test, h, 5000);
	qhs_settle(h);
	Q_EXPECT_EQ(test, h->p.conn[0]->streams.tx_flow.sent, 700);
	Q_EXPECT_EQ(test, qrdma_conn_readable(h->p.conn[1], 0), 700);
	Q_EXPECT_EQ(test, qhs_error(h, 1, NULL), U64_MAX);
	qhs_free(h);
}

/* A server that takes 0-RTT may not lower what the client counted on (RFC 9000 s7.4.1). */
Q_TEST(early_accepted_lower_limits)
{
	struct qhs *h = early_new(test, true);
	struct qrdma_tparams remembered = h->tp[1];
	int err;

	h->hs[0].remembered = &remembered;
	remembered.initial_max_data++;
	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	early_write(test, h, 50);
	qhs_settle(h);
	Q_EXPECT_EQ(test, qhs_error(h, 0, &err), QRDMA_ERR_PROTOCOL_VIOLATION);
	Q_EXPECT_EQ(test, err, EPROTO);
	qhs_free(h);
}

/* A reset token is of one connection: none is remembered (RFC 9000 s7.4.1). */
Q_TEST(early_forgets_token)
{
	struct qhs *h = early_new(test, true);
	struct qrdma_tparams remembered = h->tp[1];

	memset(remembered.reset_token, 7, sizeof(remembered.reset_token));
	remembered.present |= BIT_ULL(QRDMA_TP_STATELESS_RESET_TOKEN);
	h->hs[0].remembered = &remembered;
	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	Q_EXPECT_NULL(test, qrdma_conn_reset_token(h->p.conn[0]));
	qhs_run(h, NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, h->tls[0].done && h->tls[1].done);
	Q_EXPECT_NULL(test, qrdma_conn_reset_token(h->p.conn[0]));
	qhs_free(h);
}

/* The verdict comes before 1-RTT packets can. */
Q_TEST(early_verdict_first)
{
	struct qhs *h = early_new(test, true);
	struct qrdma_conn *conn;

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	conn = h->p.conn[0];
	Q_EXPECT_EQ(test, ftls_install(conn, QRDMA_ENC_APP, false, true), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_conn_early_verdict(conn, false, NOW), 0);
	Q_EXPECT_EQ(test, qrdma_conn_early_verdict(conn, false, NOW), -EALREADY);
	Q_EXPECT_EQ(test, ftls_install(conn, QRDMA_ENC_APP, false, true), 0);
	Q_EXPECT_EQ(test, ftls_install(conn, QRDMA_ENC_EARLY, false, true), -ESTALE);
	qhs_free(h);
}

Q_SUITE("qrdma-conn-hs",
	Q_CASE(api_refuses),
	Q_CASE(api_out_of_band),
	Q_CASE(api_no_memory),
	Q_CASE(api_params_ids),
	Q_CASE(api_params_hold),
	Q_CASE(early_packet_count),
	Q_CASE(early_rejected),
	Q_CASE(early_accepted_any_loss),
	Q_CASE(early_mostly_lost),
	Q_CASE(early_rejected_lower_limits),
	Q_CASE(early_accepted_lower_limits),
	Q_CASE(early_forgets_token),
	Q_CASE(early_verdict_first));
