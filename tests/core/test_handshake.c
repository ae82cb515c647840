// SPDX-License-Identifier: GPL-2.0
/* core/handshake.c: whole handshakes in band, packet by packet, on a wire that loses what is named. */
#include "qhs.h"
#include "conn_state.h"

#define HS_DATA	20000

/* A write of the client arrives, and one of the server too. */
static void hs_exchange(struct q_test *test, struct qhs *h)
{
	u8 *data = kzalloc(2 * HS_DATA, GFP_KERNEL), *got = data + HS_DATA;
	u32 i, end;

	Q_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < HS_DATA; i++)
		data[i] = i * 7 + (i >> 8);
	for (end = 0; end < 2; end++) {
		Q_ASSERT_EQ(test, qpair_write(h->p.conn[end], data, HS_DATA), 0);
		qhs_run(h, NSEC_PER_SEC);
		Q_EXPECT_EQ(test, qpair_read(h->p.conn[!end], got, HS_DATA), HS_DATA);
		Q_EXPECT_MEMEQ(test, data, got, HS_DATA);
	}
	kfree(data);
}

/* One round trip until the client may send data, and what it takes in packets. */
Q_TEST(hs_packet_count)
{
	struct qhs *h = qhs_new(test);
	const struct qhs_dgram *d = h->log;

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	qhs_settle(h);
	Q_EXPECT_TRUE(test, h->tls[0].done && h->tls[1].done);
	Q_EXPECT_EQ(test, h->nlog, 4);
	/* ClientHello */
	Q_EXPECT_EQ(test, d[0].end, 0);
	Q_EXPECT_EQ(test, d[0].n, 1);
	Q_EXPECT_EQ(test, d[0].type[0], QRDMA_PKT_INITIAL);
	Q_EXPECT_EQ(test, d[0].len, QPAIR_DATAGRAM);
	/* ServerHello, and the rest of its flight in the same datagram */
	Q_EXPECT_EQ(test, d[1].end, 1);
	Q_EXPECT_EQ(test, d[1].n, 2);
	Q_EXPECT_EQ(test, d[1].type[0], QRDMA_PKT_INITIAL);
	Q_EXPECT_EQ(test, d[1].type[1], QRDMA_PKT_HANDSHAKE);
	Q_EXPECT_EQ(test, d[1].len, QPAIR_DATAGRAM);
	/* Finished, and already a 1-RTT packet that opens stream 0 */
	Q_EXPECT_EQ(test, d[2].end, 0);
	Q_EXPECT_EQ(test, d[2].n, 3);
	Q_EXPECT_EQ(test, d[2].type[1], QRDMA_PKT_HANDSHAKE);
	Q_EXPECT_EQ(test, d[2].type[2], QRDMA_PKT_SHORT);
	/* HANDSHAKE_DONE */
	Q_EXPECT_EQ(test, d[3].end, 1);
	Q_EXPECT_EQ(test, d[3].type[0], QRDMA_PKT_SHORT);
	Q_EXPECT_TRUE(test, h->ev[0] & QRDMA_EV_ESTABLISHED && h->ev[1] & QRDMA_EV_ESTABLISHED);
	Q_EXPECT_TRUE(test, h->ev[0] & QRDMA_EV_CONFIRMED && h->ev[1] & QRDMA_EV_CONFIRMED);
	hs_exchange(test, h);
	qhs_free(h);
}

/* What is left of it afterwards: no keys, no space (RFC 9001 s4.9). */
Q_TEST(hs_discards_keys)
{
	struct qhs *h = qhs_new(test);
	int i;

	qhs_connect(test, h);
	for (i = 0; i < 2; i++) {
		const struct qrdma_hs *hs = h->p.conn[i]->hs;

		Q_EXPECT_NULL(test, hs->space[QRDMA_SPACE_INITIAL]);
		Q_EXPECT_NULL(test, hs->space[QRDMA_SPACE_HANDSHAKE]);
		Q_EXPECT_TRUE(test, hs->complete && hs->confirmed);
		Q_EXPECT_TRUE(test, h->p.conn[i]->recovery.confirmed);
		Q_EXPECT_EQ(test, ftls_install(h->p.conn[i], QRDMA_ENC_HANDSHAKE, i, true),
			    -ESTALE);
		Q_EXPECT_EQ(test, qrdma_conn_crypto_write(h->p.conn[i], QRDMA_ENC_INITIAL, "x",
							  1), -ESTALE);
	}
	qhs_free(h);
}

/* Whatever of the first datagrams is lost, the handshake completes and bytes arrive. */
Q_TEST(hs_any_loss)
{
	u64 drop;

	for (drop = 1; drop < 1024; drop++) {
		struct qhs *h = qhs_new(test);

		h->drop = drop;
		h->tpl[1].cert = drop % 3 * 1500;
		h->tpl[1].ticket = 300;
		Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
		qhs_run(h, 9 * NSEC_PER_SEC);
		if (!h->tls[0].done || !h->tls[1].done || h->tls[0].err || h->tls[1].err ||
		    !h->p.conn[0]->hs->confirmed || !h->tls[0].ticketed)
			Q_FAIL(test, "losing %llx: done %d %d, errors %d (%d) %d (%d)", drop,
			       h->tls[0].done, h->tls[1].done, h->tls[0].err, h->tls[0].line,
			       h->tls[1].err, h->tls[1].line);
		else if (drop % 64 == 1)
			hs_exchange(test, h);
		qhs_free(h);
	}
}

/* A server says no more than three times what it heard, until the client shows its Handshake keys. */
Q_TEST(hs_amplification)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_hs_stats stats;
	u32 i, sent = 0, got = 0;

	h->tpl[1].cert = 9000;
	h->cfg[0].max_datagram = 1020;
	h->cfg[1].max_datagram = 1020;
	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	/* the client's answers get lost, so that the server stays where it is */
	h->drop = ~1ULL;
	for (i = 1; i < 40; i++) {
		qhs_run(h, 200 * NSEC_PER_MSEC);
		if (!h->p.conn[1])
			break;
		qrdma_conn_hs_stats(h->p.conn[1], &stats);
		Q_EXPECT_LE(test, stats.tx_bytes, 3 * stats.rx_bytes);
	}
	for (i = 0; i < min_t(u32, h->nlog, 64); i++) {
		if (h->log[i].end)
			sent += h->log[i].len;
	}
	got = h->log[0].len;
	Q_EXPECT_EQ(test, got, 1020);
	Q_EXPECT_LE(test, sent, 3 * got);
	Q_EXPECT_GE(test, sent, 2 * got);
	/* blocked: no probe time-out runs, nothing spins */
	Q_EXPECT_TRUE(test, h->p.conn[1]->recovery.blocked);
	qhs_free(h);
}

/* A long certificate over the smallest path: more datagrams than the limit allows at once. */
Q_TEST(hs_long_chain)
{
	struct qhs *h = qhs_new(test);

	h->tpl[0].hello = 3000;		/* a ClientHello over three datagrams */
	h->tpl[1].cert = 15000;
	h->cfg[0].max_datagram = 1020;
	h->cfg[1].max_datagram = 1020;
	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	qhs_run(h, 5 * NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, h->tls[0].done && h->tls[1].done);
	Q_EXPECT_EQ(test, h->tls[0].err, 0);
	qhs_free(h);
}

Q_TEST(hs_retry)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_hs_stats stats;

	h->retry = true;
	qhs_connect(test, h);
	Q_EXPECT_EQ(test, qhs_count(h, 1, QRDMA_PKT_RETRY), 1);
	Q_EXPECT_TRUE(test, h->ev[0] & QRDMA_EV_INITIAL_KEYS);
	qrdma_conn_hs_stats(h->p.conn[0], &stats);
	Q_EXPECT_TRUE(test, stats.retried);
	qrdma_conn_hs_stats(h->p.conn[1], &stats);
	Q_EXPECT_TRUE(test, stats.retried && stats.validated);
	Q_EXPECT_EQ(test, stats.tx_bytes, 0);
	hs_exchange(test, h);
	qhs_free(h);
}

/* One Retry with a wrong tag, one with our own id, one too late: all ignored. */
Q_TEST(hs_retry_refused)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_tx *tx = q_zalloc(test, sizeof(*tx));
	struct qrdma_hdr hdr = {
		.dcid = (const u8 *)"chosenid", .dcid_len = 8,
		.scid = (const u8 *)"clientid", .scid_len = 8,
	};
	enum qrdma_drop drop;
	u8 wire[256];
	u32 i;

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	tx->data = wire;
	tx->cap = sizeof(wire);
	for (i = 0; i < 2; i++) {
		Q_ASSERT_EQ(test, qrdma_stateless_retry(tx, &null_aead, h->retry_slot, &hdr,
							&h->cid[QHS_RETRY], (const u8 *)"token", 5,
							0), 0);
		null_aead.seal(&tx->op);
		qrdma_stateless_retry_end(tx);
		qrdma_tx_release(tx);
		wire[tx->len - 1] ^= !i;	/* the first is broken, the second too late */
		if (i) {
			qhs_settle(h);
			Q_ASSERT_TRUE(test, h->tls[0].done);
		}
		qpair_rx(h->p.conn[0], wire, tx->len, h->p.now, &drop);
		Q_EXPECT_EQ(test, drop, i ? QRDMA_DROP_STATE : QRDMA_DROP_AUTH);
	}
	Q_EXPECT_FALSE(test, h->p.conn[0]->hs->retried);
	/* for a server it is nothing at all */
	memcpy(wire + 6, "serverid", 8);
	qpair_rx(h->p.conn[1], wire, tx->len, h->p.now, &drop);
	Q_EXPECT_EQ(test, drop, QRDMA_DROP_STATE);
	qhs_free(h);
}

static u32 hs_version_neg(u8 *wire, const char *dcid, const char *scid, u32 version)
{
	struct qrdma_writer w;

	qrdma_writer_init(&w, wire, 64);
	qrdma_writer_u8(&w, 0xc0);
	qrdma_writer_u32(&w, 0);
	qrdma_writer_u8(&w, 8);
	qrdma_writer_bytes(&w, dcid, 8);
	qrdma_writer_u8(&w, 8);
	qrdma_writer_bytes(&w, scid, 8);
	qrdma_writer_u32(&w, 0x1a2a3a4a);
	qrdma_writer_u32(&w, version);
	return w.pos - wire;
}

Q_TEST(hs_version_negotiation)
{
	struct qhs *h = qhs_new(test);
	u8 wire[64];
	u32 len;
	int err;

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	/* not for us, not an answer to us, and one that offers our version */
	len = hs_version_neg(wire, "clientiD", "chosenid", 2);
	qhs_rx(h, 0, wire, len);
	len = hs_version_neg(wire, "clientid", "chosenID", 2);
	qhs_rx(h, 0, wire, len);
	len = hs_version_neg(wire, "clientid", "chosenid", QRDMA_QUIC_V1);
	qhs_rx(h, 0, wire, len);
	Q_EXPECT_EQ(test, qhs_error(h, 0, NULL), U64_MAX);
	len = hs_version_neg(wire, "clientid", "chosenid", 2);
	Q_EXPECT_TRUE(test, qhs_rx(h, 0, wire, len) & QRDMA_EV_CLOSED);
	Q_EXPECT_EQ(test, qhs_error(h, 0, &err), 0);
	Q_EXPECT_EQ(test, err, EPROTONOSUPPORT);
	/* cleanly: not one packet */
	Q_EXPECT_EQ(test, qhs_flush(h, 0), 0);
	qhs_free(h);

	/* once something has verified it is a lie */
	h = qhs_new(test);
	qhs_connect(test, h);
	qhs_rx(h, 0, wire, len);
	Q_EXPECT_EQ(test, qhs_error(h, 0, NULL), U64_MAX);
	qhs_free(h);
}

/* Nobody answers: it ends in bounded time, and the probes are few. */
Q_TEST(hs_timeout)
{
	struct qhs *h = qhs_new(test);
	int err;

	h->hs[0].timeout = 2 * NSEC_PER_SEC;
	h->drop = U64_MAX;
	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	qhs_run(h, NSEC_PER_SEC);
	Q_EXPECT_EQ(test, qhs_error(h, 0, NULL), U64_MAX);
	qhs_run(h, 2 * NSEC_PER_SEC);
	Q_EXPECT_NE(test, qhs_error(h, 0, &err), U64_MAX);
	Q_EXPECT_EQ(test, err, ETIMEDOUT);
	Q_EXPECT_LE(test, h->nlog, 30);
	qhs_free(h);
}

/* Nothing leaves before TLS has said something, however long that takes. */
Q_TEST(hs_silence_before_start)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_conn *conn;

	Q_ASSERT_EQ(test, qrdma_conn_create(&h->cfg[0], h->p.now, &conn, GFP_KERNEL), 0);
	h->p.conn[0] = conn;
	Q_ASSERT_EQ(test, ftls_install(conn, QRDMA_ENC_INITIAL, false, true), 0);
	Q_ASSERT_EQ(test, ftls_install(conn, QRDMA_ENC_INITIAL, false, false), 0);
	h->p.now += NSEC_PER_SEC;
	qrdma_conn_timeout(conn, h->p.now);
	Q_EXPECT_EQ(test, qhs_flush(h, 0), 0);
	Q_EXPECT_EQ(test, qrdma_conn_deadline(conn), QPAIR_START + QRDMA_HS_TIMEOUT);
	Q_EXPECT_EQ(test, qrdma_conn_crypto_write(conn, QRDMA_ENC_INITIAL, "hello", 5), 0);
	Q_EXPECT_EQ(test, qhs_flush(h, 0), 1);
	qhs_free(h);
}

/* The server's flight is lost and it may not send more: the client's probe is what helps. */
Q_TEST(hs_client_breaks_deadlock)
{
	struct qhs *h = qhs_new(test);

	h->tpl[1].cert = 4000;
	/* all that the server may send, and the client's acknowledgments */
	h->drop = 0xfe;
	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	qhs_run(h, 5 * NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, h->tls[0].done && h->tls[1].done);
	qhs_free(h);
}

/* An alert of the server's reaches the client, whichever keys it has. */
Q_TEST(hs_alert)
{
	struct qhs *h = qhs_new(test);
	int err;

	h->tpl[1].alert = 42;	/* bad_certificate */
	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	qhs_settle(h);
	Q_EXPECT_EQ(test, qhs_error(h, 0, &err), QRDMA_ERR_CRYPTO_ERROR + 42);
	Q_EXPECT_EQ(test, err, EKEYREJECTED);
	Q_EXPECT_EQ(test, qhs_error(h, 1, NULL), QRDMA_ERR_CRYPTO_ERROR + 42);
	qhs_run(h, NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, h->ev[0] & QRDMA_EV_DRAINED && h->ev[1] & QRDMA_EV_DRAINED);
	qhs_free(h);
}

/* A client that the server has still to judge waits for its verdict, and no other does. */
Q_TEST(hs_await_verdict)
{
	int wait;

	for (wait = 0; wait < 2; wait++) {
		struct qhs *h = qhs_new(test);

		Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
		if (wait)
			qrdma_conn_await_verdict(h->p.conn[0]);
		/* HANDSHAKE_DONE and all after it */
		h->drop = ~7ULL;
		qhs_settle(h);
		Q_EXPECT_TRUE(test, h->tls[0].done && h->tls[1].done);
		Q_EXPECT_EQ(test, !!(h->ev[0] & QRDMA_EV_ESTABLISHED), !wait);
		h->drop = 0;
		qhs_run(h, 5 * NSEC_PER_SEC);
		Q_EXPECT_TRUE(test, h->ev[0] & QRDMA_EV_ESTABLISHED);
		hs_exchange(test, h);
		qhs_free(h);
	}
}

/* Each cause has its errno at the peer. */
Q_TEST(hs_alert_causes)
{
	static const struct {
		u8 alert;
		int err;
	} row[] = {
		{ 40, ECONNREFUSED }, { 42, EKEYREJECTED }, { 44, EKEYREVOKED }, { 45, EKEYEXPIRED },
		{ 48, EKEYREJECTED }, { 49, ECONNREFUSED }, { 51, EKEYREJECTED }, { 80, ECONNREFUSED },
		{ 115, EACCES }, { 116, ENOKEY }, { 120, EPROTONOSUPPORT }, { 255, ECONNREFUSED },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		struct qhs *h = qhs_new(test);
		int err;

		h->tpl[1].alert = row[i].alert;
		Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
		qhs_settle(h);
		qhs_error(h, 0, &err);
		if (err != row[i].err)
			Q_FAIL(test, "alert %u is %d", row[i].alert, err);
		qhs_free(h);
	}
}

/* An application that closes early is not quoted where anybody can read it (RFC 9000 s10.2.3). */
Q_TEST(hs_close_early)
{
	struct qhs *h = qhs_new(test);
	int err;

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	qhs_flush(h, 0);
	Q_ASSERT_NOT_NULL(test, h->p.conn[1]);
	qrdma_conn_close(h->p.conn[0], 77, true, h->p.now);
	qhs_settle(h);
	Q_EXPECT_EQ(test, qhs_error(h, 1, &err), QRDMA_ERR_APPLICATION_ERROR);
	Q_EXPECT_EQ(test, err, ECONNRESET);
	qhs_free(h);
}

/* Packets without a key are kept, up to a limit, and only where a key may come. */
Q_TEST(hs_held)
{
	struct qhs *h = qhs_new(test);
	struct qrdma_hs_stats stats;
	struct qrdma_conn *conn;
	static const u8 head[15] = {
		0xe0, 0, 0, 0, QRDMA_QUIC_V1, 8, 'c', 'l', 'i', 'e', 'n', 't', 'i', 'd', 8,
	};
	const u32 len = 1200;
	u8 *pkt = q_zalloc(test, len);
	u32 i;

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	conn = h->p.conn[0];
	memcpy(pkt, head, sizeof(head));
	qrdma_store_be16(pkt + 23, 0x4000 | (len - 25));
	for (i = 0; i < 20; i++)
		qpair_rx(conn, pkt, len, h->p.now, NULL);
	qrdma_conn_hs_stats(conn, &stats);
	Q_EXPECT_EQ(test, stats.held, QRDMA_HS_HELD_LEVEL);
	Q_EXPECT_EQ(test, stats.held_dropped, 20 - QRDMA_HS_HELD_LEVEL);
	for (i = 0; i < 20; i++) {
		u8 small[64] = { 0x40, 'c', 'l', 'i', 'e', 'n', 't', 'i', 'd' };

		qpair_rx(conn, small, sizeof(small), h->p.now, NULL);
	}
	qrdma_conn_hs_stats(conn, &stats);
	Q_EXPECT_EQ(test, stats.held, QRDMA_HS_HELD);
	/* 0-RTT comes from no server */
	pkt[0] = 0xd0;
	i = conn->n.drops[QRDMA_DROP_HEADER];
	qpair_rx(conn, pkt, len, h->p.now, NULL);
	Q_EXPECT_EQ(test, conn->n.drops[QRDMA_DROP_HEADER], i + 1);
	/* they do no harm to a real handshake */
	qhs_run(h, NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, h->tls[0].done && h->tls[1].done);
	qrdma_conn_hs_stats(conn, &stats);
	Q_EXPECT_EQ(test, stats.held, 0);
	qhs_free(h);
}

/* A small Initial is not answered, nor one whose source id changes. */
Q_TEST(hs_bad_initials)
{
	struct qhs *h = qhs_new(test);
	enum qrdma_drop drop;
	u8 *wire = q_zalloc(test, 1200);
	int len;

	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	len = qpair_build(&h->p, 0);
	Q_ASSERT_EQ(test, len, 1200);
	memcpy(wire, h->p.wire, len);
	qhs_listen(h, wire, len);
	Q_ASSERT_NOT_NULL(test, h->p.conn[1]);
	/* the same again: seen */
	memcpy(wire, h->p.wire, len);
	qpair_rx(h->p.conn[1], wire, len, h->p.now, &drop);
	Q_EXPECT_NE(test, drop, QRDMA_DROP_NONE);
	/* cut: the datagram is too small, and no length fits */
	qpair_rx(h->p.conn[1], wire, 1100, h->p.now, &drop);
	Q_EXPECT_EQ(test, drop, QRDMA_DROP_HEADER);
	qhs_free(h);
}

/* Tokens for the next time: repeated until they arrive, taken once. */
Q_TEST(hs_token)
{
	struct qhs *h = qhs_new(test);
	u8 token[300] = { 1, 2, 3 };
	const u8 *got;

	qhs_connect(test, h);
	Q_EXPECT_EQ(test, qrdma_conn_token(h->p.conn[0], &got), 0);
	Q_EXPECT_EQ(test, qrdma_conn_give_token(h->p.conn[0], token, sizeof(token)), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_conn_give_token(h->p.conn[1], token, 0), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_conn_give_token(h->p.conn[1], token, sizeof(token)), 0);
	Q_EXPECT_EQ(test, qrdma_conn_give_token(h->p.conn[1], token, sizeof(token)), -EALREADY);
	h->drop = 1ULL << h->nlog;
	qhs_run(h, NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, h->ev[0] & QRDMA_EV_TOKEN);
	Q_ASSERT_EQ(test, qrdma_conn_token(h->p.conn[0], &got), sizeof(token));
	Q_EXPECT_MEMEQ(test, got, token, sizeof(token));
	qhs_free(h);

	/* and brought along */
	h = qhs_new(test);
	h->hs[0].token = token;
	h->hs[0].token_len = sizeof(token);
	h->hs[1].validated = true;
	qhs_connect(test, h);
	hs_exchange(test, h);
	qhs_free(h);
}

Q_SUITE("qrdma-handshake",
	Q_CASE(hs_packet_count),
	Q_CASE(hs_discards_keys),
	Q_CASE(hs_any_loss),
	Q_CASE(hs_amplification),
	Q_CASE(hs_long_chain),
	Q_CASE(hs_retry),
	Q_CASE(hs_retry_refused),
	Q_CASE(hs_version_negotiation),
	Q_CASE(hs_timeout),
	Q_CASE(hs_silence_before_start),
	Q_CASE(hs_client_breaks_deadlock),
	Q_CASE(hs_await_verdict),
	Q_CASE(hs_alert),
	Q_CASE(hs_alert_causes),
	Q_CASE(hs_close_early),
	Q_CASE(hs_held),
	Q_CASE(hs_bad_initials),
	Q_CASE(hs_token));
