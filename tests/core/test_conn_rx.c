// SPDX-License-Identifier: GPL-2.0
/* Connections against peers that break the protocol or want to use up memory. */
#include "qpeer.h"
#include "conn_state.h"

/* A server that has seen the client's first packet. */
static struct qpeer *rx_server(struct q_test *test)
{
	struct qpeer *p = qpeer_new(test, true);

	qpeer_stream(p, 0, 0, 0, false);
	Q_ASSERT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	Q_ASSERT_TRUE(test, p->ev & QRDMA_EV_ESTABLISHED);
	return p;
}

/*
 * Malformed and forbidden frames
 */

struct rx_bad {
	const char *name;
	const char *hex;
	u64 code;
};

/* a server is the receiver */
static const struct rx_bad rx_bad_server[] = {
	{ "no frame at all", "", QRDMA_ERR_PROTOCOL_VIOLATION },
	{ "unknown type", "21", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "unknown long type", "bfffffff", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "PING of two bytes", "4001", QRDMA_ERR_PROTOCOL_VIOLATION },
	{ "type cut off", "80", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "ACK cut off", "020000", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "ACK below zero", "0200000001", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "ACK with a gap below zero", "02050001020300", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "ACK with fewer ranges than said", "0205000900", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "ACK_ECN without counts", "0300000000", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "ACK of a packet that was not sent", "02 4fff 00 00 00", QRDMA_ERR_PROTOCOL_VIOLATION },
	{ "RESET_STREAM cut off", "040000", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "RESET_STREAM over credit", "0400 00 ffffffffffffffff", QRDMA_ERR_FLOW_CONTROL_ERROR },
	{ "RESET_STREAM of a stream of ours", "040300 00", QRDMA_ERR_STREAM_STATE_ERROR },
	{ "RESET_STREAM of a stream over the limit", "040400 00", QRDMA_ERR_STREAM_LIMIT_ERROR },
	{ "STOP_SENDING cut off", "0500", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "STOP_SENDING for a stream that only receives", "0502 00",
	  QRDMA_ERR_STREAM_STATE_ERROR },
	{ "STOP_SENDING for a stream that we did not open", "0501 00",
	  QRDMA_ERR_STREAM_STATE_ERROR },
	{ "CRYPTO cut off", "060005 0102", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "CRYPTO behind 2^62", "06ffffffffffffffff 01 00", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "CRYPTO far ahead", "06 8000ffff 01 00", QRDMA_ERR_CRYPTO_BUFFER_EXCEEDED },
	{ "NEW_TOKEN to a server", "070100", QRDMA_ERR_PROTOCOL_VIOLATION },
	{ "STREAM cut off", "0a0005 0102", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "STREAM behind 2^62", "0e00 ffffffffffffffff 01 00", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "STREAM over credit", "0e00 80040000 01 00", QRDMA_ERR_FLOW_CONTROL_ERROR },
	{ "STREAM of a stream over the limit", "0a04 01 00", QRDMA_ERR_STREAM_LIMIT_ERROR },
	{ "STREAM of a unidirectional stream", "0a02 01 00", QRDMA_ERR_STREAM_LIMIT_ERROR },
	{ "STREAM that only we can open", "0a01 01 00", QRDMA_ERR_STREAM_STATE_ERROR },
	{ "FIN before bytes that came", "0a00 02 0102 0b00 01 01", QRDMA_ERR_FINAL_SIZE_ERROR },
	{ "bytes behind the FIN", "0b00 01 01 0e00 01 01 02", QRDMA_ERR_FINAL_SIZE_ERROR },
	{ "two final sizes", "0b00 01 01 0400 00 02", QRDMA_ERR_FINAL_SIZE_ERROR },
	{ "MAX_DATA cut off", "10", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "MAX_STREAM_DATA cut off", "1100", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "MAX_STREAM_DATA for a stream that only receives", "1102 01",
	  QRDMA_ERR_STREAM_STATE_ERROR },
	{ "MAX_STREAMS over 2^60", "12 d000000000000001", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "DATA_BLOCKED cut off", "14", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "STREAM_DATA_BLOCKED for a stream that only sends", "1503 01",
	  QRDMA_ERR_STREAM_STATE_ERROR },
	{ "STREAMS_BLOCKED over 2^60", "16 d000000000000001", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "NEW_CONNECTION_ID cut off", "180100 08 00", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "NEW_CONNECTION_ID without an id", "180100 00 000102030405060708090a0b0c0d0e0f",
	  QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "NEW_CONNECTION_ID that retires itself", "180102 01 aa 000102030405060708090a0b0c0d0e0f",
	  QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "NEW_CONNECTION_ID with another id for number 0",
	  "180000 01 aa 000102030405060708090a0b0c0d0e0f", QRDMA_ERR_PROTOCOL_VIOLATION },
	{ "RETIRE_CONNECTION_ID of the one in use", "1900", QRDMA_ERR_PROTOCOL_VIOLATION },
	{ "RETIRE_CONNECTION_ID of one that was not issued", "1905",
	  QRDMA_ERR_PROTOCOL_VIOLATION },
	{ "RETIRE_CONNECTION_ID cut off", "19", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "PATH_CHALLENGE cut off", "1a0001", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "PATH_RESPONSE cut off", "1b0001", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "CONNECTION_CLOSE cut off", "1c00", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "HANDSHAKE_DONE to a server", "1e", QRDMA_ERR_PROTOCOL_VIOLATION },
	{ "DATAGRAM that was not negotiated", "30 00", QRDMA_ERR_PROTOCOL_VIOLATION },
	{ "DATAGRAM with a length", "31 01 00", QRDMA_ERR_PROTOCOL_VIOLATION },
	{ "DATAGRAM cut off", "31 05 00", QRDMA_ERR_FRAME_ENCODING_ERROR },
};

/* a client is */
static const struct rx_bad rx_bad_client[] = {
	{ "NEW_TOKEN empty", "0700", QRDMA_ERR_FRAME_ENCODING_ERROR },
	{ "STREAM of a server's stream", "0a01 01 00", QRDMA_ERR_STREAM_LIMIT_ERROR },
	{ "STREAM of our stream that is not open", "0a04 01 00", QRDMA_ERR_STREAM_STATE_ERROR },
};

static void rx_try_bad(struct q_test *test, const struct rx_bad *bad, bool server)
{
	struct qpeer *p = server ? rx_server(test) : qpeer_new(test, false);
	struct qrdma_frame *f;
	u8 bytes[64];
	u32 len;

	len = q_hex(bytes, sizeof(bytes), bad->hex);
	qpeer_drain(p);
	qrdma_writer_bytes(&p->w, bytes, len);
	qpeer_send(p);
	if (qpeer_error(p) != bad->code)
		Q_FAIL(test, "%s: error %lld, expected %lld", bad->name, qpeer_error(p),
		       bad->code);
	Q_EXPECT_EQ(test, p->drop, QRDMA_DROP_PROTOCOL);
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_CLOSED);
	/* the peer is told */
	Q_EXPECT_GT(test, qpeer_take(p), 0);
	f = qpeer_find(p, QRDMA_FRAME_CLOSE);
	Q_EXPECT_NOT_NULL(test, f);
	if (f)
		Q_EXPECT_EQ(test, f->close.code, bad->code);
	qpeer_free(p);
}

Q_TEST(rx_malformed_frames)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rx_bad_server); i++)
		rx_try_bad(test, &rx_bad_server[i], true);
	for (i = 0; i < ARRAY_SIZE(rx_bad_client); i++)
		rx_try_bad(test, &rx_bad_client[i], false);
}

Q_TEST(rx_reserved_bits)
{
	struct qpeer *p = rx_server(test);

	p->first = 0x08;
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_PROTOCOL);
	Q_EXPECT_EQ(test, qpeer_error(p), QRDMA_ERR_PROTOCOL_VIOLATION);
	qpeer_free(p);
}

/* Good frames before a bad one are not applied. */
Q_TEST(rx_whole_or_nothing)
{
	struct qpeer *p = rx_server(test);

	qpeer_stream(p, 0, 0, 100, false);
	qpeer_numbers(p, QRDMA_FRAME_MAX_DATA, 1 << 30, U64_MAX);
	qpeer_type(p, 0x21);
	qpeer_send(p);
	Q_EXPECT_EQ(test, qpeer_error(p), QRDMA_ERR_FRAME_ENCODING_ERROR);
	Q_EXPECT_EQ(test, qrdma_conn_readable(p->conn, 0), 0);
	Q_EXPECT_LT(test, p->conn->streams.tx_flow.max, 1 << 30);
	qpeer_free(p);
}

/* What cannot be a packet of ours is dropped, counted and changes nothing. */
Q_TEST(rx_foreign_packets)
{
	static const struct {
		const char *hex;
		enum qrdma_drop drop;
	} pkt[] = {
		{ "00", QRDMA_DROP_HEADER },
		{ "40736572766572696400", QRDMA_DROP_HEADER },	/* no sample */
		/* fixed bit 0 */
		{ "0073657276657269640000000000000000000000000000000000000000", QRDMA_DROP_HEADER },
		/* another connection id */
		{ "4073657276657269650000000000000000000000000000000000000000", QRDMA_DROP_HEADER },
		/* does not verify */
		{ "4073657276657269640000000000000000000000000000000000000000", QRDMA_DROP_AUTH },
		/* version negotiation, and a version that is not ours */
		{ "c000000000087365727665726964000a0a0a0a", QRDMA_DROP_HEADER },
		{ "c00a0a0a0a08736572766572696400", QRDMA_DROP_VERSION },
		/* Initial: no such keys */
		{ "c00000000108736572766572696400 00 15 000000000000000000000000000000000000000000",
		  QRDMA_DROP_NO_KEY },
	};
	struct qpeer *p = rx_server(test);
	u64 received = p->conn->n.received;
	enum qrdma_drop drop;
	u8 bytes[128];
	u32 i, len;

	for (i = 0; i < ARRAY_SIZE(pkt); i++) {
		len = q_hex(bytes, sizeof(bytes), pkt[i].hex);
		Q_ASSERT_GT(test, len, 0);
		drop = QRDMA_DROP_NONE;
		qpair_rx(p->conn, bytes, len, p->now, &drop);
		if (i != 5)
			Q_EXPECT_EQ(test, drop, pkt[i].drop);
		else
			Q_EXPECT_NE(test, drop, QRDMA_DROP_NONE);
	}
	Q_EXPECT_EQ(test, qpeer_error(p), U64_MAX);
	Q_EXPECT_EQ(test, p->conn->n.received, received);
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	qpeer_free(p);
}

/* A packet of a level without keys before one of ours in the same datagram. */
Q_TEST(rx_coalesced)
{
	struct qpeer *p = rx_server(test);
	u64 received = p->conn->n.received;
	enum qrdma_drop drop;
	u8 bytes[256];
	u32 len, mine;

	len = q_hex(bytes, sizeof(bytes),
		    "c00000000108736572766572696400 00 15 000000000000000000000000000000000000000000");
	qpeer_type(p, QRDMA_FRAME_PING);
	mine = qpeer_seal(p);
	memcpy(bytes + len, p->out, mine);
	qpair_rx(p->conn, bytes, len + mine, p->now, &drop);
	Q_EXPECT_EQ(test, drop, QRDMA_DROP_NONE);
	Q_EXPECT_EQ(test, p->conn->n.received, received + 1);
	Q_EXPECT_EQ(test, p->conn->n.drops[QRDMA_DROP_NO_KEY], 1);
	qpeer_free(p);
}

Q_TEST(rx_duplicates)
{
	struct qpeer *p = rx_server(test);
	enum qrdma_drop drop;
	u8 copy[256];
	u32 len;

	qpeer_stream(p, 0, 0, 10, false);
	len = qpeer_seal(p);
	memcpy(copy, p->out, len);
	qpair_rx(p->conn, copy, len, p->now, &drop);
	Q_EXPECT_EQ(test, drop, QRDMA_DROP_NONE);
	memcpy(copy, p->out, len);
	qpair_rx(p->conn, copy, len, p->now, &drop);
	Q_EXPECT_EQ(test, drop, QRDMA_DROP_DUPLICATE);
	Q_EXPECT_EQ(test, qrdma_conn_readable(p->conn, 0), 10);
	qpeer_free(p);
}

/* Two copies are being opened at once: the second to finish is the duplicate. */
Q_TEST(rx_duplicates_in_flight)
{
	struct qpeer *p = rx_server(test);
	struct qrdma_rx rx[2] = {};
	struct qrdma_buf *buf[2];
	u32 len, i;

	qpeer_stream(p, 0, 0, 10, false);
	len = qpeer_seal(p);
	for (i = 0; i < 2; i++) {
		buf[i] = qpair_copy(p->out, len);
		rx[i].buf = buf[i];
		rx[i].data = buf[i]->data;
		rx[i].len = len;
		Q_EXPECT_EQ(test, qrdma_conn_rx_begin(p->conn, &rx[i], p->now), QRDMA_RX_OPEN);
	}
	for (i = 0; i < 2; i++)
		qrdma_conn_rx_finish(p->conn, &rx[1 - i], 0, p->now);
	Q_EXPECT_EQ(test, rx[1].drop, QRDMA_DROP_NONE);
	Q_EXPECT_EQ(test, rx[0].drop, QRDMA_DROP_DUPLICATE);
	/* one that will never be finished */
	qpeer_type(p, QRDMA_FRAME_PING);
	len = qpeer_seal(p);
	for (i = 0; i < 2; i++)
		qrdma_buf_put(buf[i]);
	buf[0] = qpair_copy(p->out, len);
	rx[0].buf = buf[0];
	rx[0].data = buf[0]->data;
	rx[0].len = len;
	Q_EXPECT_EQ(test, qrdma_conn_rx_begin(p->conn, &rx[0], p->now), QRDMA_RX_OPEN);
	qpeer_free(p);
	qrdma_rx_release(&rx[0]);
	qrdma_buf_put(buf[0]);
}

/* An AEAD that fails for want of memory: nothing is concluded from it. */
Q_TEST(rx_aead_error)
{
	struct qpeer *p = rx_server(test);

	null_aead_fail = -ENOMEM;
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_CRYPTO);
	null_aead_fail = 0;
	Q_EXPECT_EQ(test, p->conn->app.keys.rx_failed, 0);
	Q_EXPECT_EQ(test, qpeer_error(p), U64_MAX);
	qpeer_free(p);
}

/* Over the cap of memory: not acknowledged, and taken when there is room again. */
Q_TEST(rx_no_memory)
{
	struct qrdma_conn_config cfg;
	struct qrdma_tparams tp;
	struct qrdma_frame *f;
	struct qpeer *p;
	const u8 *data;
	u64 last;
	u32 i;

	qpair_tparams(&tp);
	qpair_config(&cfg, true, &tp, &tp);
	cfg.rx_mem_max = 20000;
	p = qpeer_new_cfg(test, &cfg);
	for (i = 0; i < 20; i++) {
		qpeer_stream(p, 0, i * 1000, 1000, false);
		if (qpeer_send(p) != QRDMA_DROP_NONE)
			break;
	}
	Q_EXPECT_EQ(test, p->drop, QRDMA_DROP_NOMEM);
	Q_EXPECT_EQ(test, qpeer_error(p), U64_MAX);
	Q_EXPECT_LE(test, qrdma_conn_rx_mem(p->conn), 20000);
	last = p->pn - 1;
	Q_EXPECT_GT(test, qpeer_drain(p), 0);
	f = qpeer_find(p, QRDMA_FRAME_ACK);
	Q_ASSERT_NOT_NULL(test, f);
	Q_EXPECT_EQ(test, f->ack.largest, last - 1);
	/* read, then the same bytes again */
	while (qrdma_conn_peek(p->conn, 0, 0, &data) > 0)
		qrdma_conn_consume(p->conn, 0, 1000);
	qpeer_stream(p, 0, i * 1000, 1000, false);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	Q_EXPECT_EQ(test, qrdma_conn_readable(p->conn, 0), 1000);
	qpeer_free(p);
}

/*
 * Acknowledgments
 */

/* Let a client send packets of full size. Return: how many left. */
static u32 rx_blast(struct qpeer *p, u32 bytes)
{
	static const u8 zeros[4096];
	u32 done;

	for (done = 0; done < bytes; done += 4096)
		if (qpair_write(p->conn, zeros, 4096))
			break;
	return qpeer_drain(p);
}

/* F66: a peer that acknowledges ahead of what arrived. */
Q_TEST(rx_ack_ahead)
{
	struct qpeer *p = qpeer_new(test, false);
	u64 cwnd;

	rx_blast(p, 20000);
	cwnd = qrdma_cong_window(&p->conn->recovery.cong);
	qpeer_ack(p, 0, p->got_pn + 50, 0);
	qpeer_send(p);
	Q_EXPECT_EQ(test, qpeer_error(p), QRDMA_ERR_PROTOCOL_VIOLATION);
	Q_EXPECT_LE(test, qrdma_cong_window(&p->conn->recovery.cong), cwnd);
	qpeer_free(p);
}

/* F66: a peer that acknowledges every number, those left out too, is found out within 1,000. */
Q_TEST(rx_ack_skipped)
{
	struct qpeer *p = qpeer_new(test, false);
	u64 skipped = 0, last = 0;

	while (qpeer_error(p) == U64_MAX && p->got_pn < 2000) {
		qrdma_conn_ping(p->conn);
		Q_ASSERT_GT(test, qpeer_take(p), 0);
		skipped += p->got_pn > last + 1;
		last = p->got_pn;
		p->now += NSEC_PER_MSEC;
		qpeer_ack(p, 0, last, 0);
		qpeer_send(p);
	}
	Q_EXPECT_EQ(test, qpeer_error(p), QRDMA_ERR_PROTOCOL_VIOLATION);
	Q_EXPECT_EQ(test, skipped, 1);
	Q_EXPECT_LT(test, last, 1000);
	qpeer_free(p);
}

/* Honest acknowledgments around the number left out do no harm. */
Q_TEST(rx_ack_around_skipped)
{
	struct qpeer *p = qpeer_new(test, false);
	u64 last = 0, first = 0;
	u32 i;

	for (i = 0; i < 3000; i++) {
		qrdma_conn_ping(p->conn);
		Q_ASSERT_GT(test, qpeer_take(p), 0);
		if (p->got_pn > last + 1)
			first = p->got_pn;
		last = p->got_pn;
		p->now += NSEC_PER_MSEC;
		qpeer_ack(p, first, last, 0);
		qpeer_send(p);
	}
	Q_EXPECT_EQ(test, qpeer_error(p), U64_MAX);
	Q_EXPECT_GT(test, last, 3000);
	Q_EXPECT_EQ(test, p->conn->recovery.stats.lost, 0);
	qpeer_free(p);
}

/* F04: a peer that says it held its acknowledgment back for 16 s. */
Q_TEST(rx_ack_delay_lie)
{
	struct qpeer *p = qpeer_new(test, false);
	u64 before = 0, after;
	u32 i;

	for (i = 0; i < 20; i++) {
		qrdma_conn_ping(p->conn);
		Q_ASSERT_GT(test, qpeer_take(p), 0);
		p->now += 500 * NSEC_PER_USEC;
		/* the unit is 8 us */
		qpeer_ack(p, 0, p->got_pn, i < 10 ? 0 : 16 * USEC_PER_SEC / 8);
		qpeer_send(p);
		if (i == 9)
			before = qrdma_recovery_pto(&p->conn->recovery, QRDMA_SPACE_APP);
	}
	after = qrdma_recovery_pto(&p->conn->recovery, QRDMA_SPACE_APP);
	Q_EXPECT_LE(test, after, 2 * before);
	Q_EXPECT_GE(test, 2 * after, before);
	/* the largest number there is, in the largest unit */
	qrdma_conn_ping(p->conn);
	Q_ASSERT_GT(test, qpeer_take(p), 0);
	p->conn->peer_ack_exponent = 20;
	qpeer_ack(p, 0, p->got_pn, QRDMA_VARINT_MAX);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	qpeer_free(p);
}

/* F08: the peer's numbers jump by 100,000; what comes late from before is a duplicate. */
Q_TEST(rx_numbers_jump)
{
	struct qpeer *p = rx_server(test);
	u64 old = p->pn;
	u32 i;

	p->pn += 100000;
	for (i = 0; i < 100; i++) {
		qpeer_stream(p, 0, i * 10, 10, false);
		Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	}
	Q_EXPECT_EQ(test, qrdma_conn_readable(p->conn, 0), 1000);
	/* every second number: the set of ranges runs full and its floor rises */
	for (i = 0; i < 200; i++) {
		p->pn++;
		qpeer_type(p, QRDMA_FRAME_PING);
		Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	}
	p->pn = old;
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_DUPLICATE);
	Q_EXPECT_EQ(test, qpeer_error(p), U64_MAX);
	qpeer_free(p);
}

/*
 * Floods: memory stays where it is, whatever comes (F64, F65)
 */

#ifdef __KERNEL__
#define RX_FLOOD	2000
static long rx_live(void)
{
	return 0;
}
#else
#define RX_FLOOD	100000
static long rx_live(void)
{
	return shim_mem.live;
}
#endif

/* One frame of a type, the @n-th of a flood. */
static void rx_flood_frame(struct qpeer *p, u64 type, u32 n)
{
	u64 data = n;

	switch (type) {
	case QRDMA_FRAME_STREAM:
		/* a byte here and there, then the same again */
		qpeer_stream(p, 0, 2 * (n % 50000), 1, false);
		break;
	case QRDMA_FRAME_ACK:
		qpeer_ack(p, 0, 0, 0);
		break;
	case QRDMA_FRAME_CRYPTO:
		qpeer_numbers(p, type, n % 8000, 3);
		qrdma_writer_bytes(&p->w, &data, 3);
		break;
	case QRDMA_FRAME_NEW_TOKEN:
		qpeer_numbers(p, type, 8, U64_MAX);
		qrdma_writer_bytes(&p->w, &data, 8);
		break;
	case QRDMA_FRAME_STOP_SENDING:
	case QRDMA_FRAME_MAX_STREAM_DATA:
	case QRDMA_FRAME_STREAM_DATA_BLOCKED:
		qpeer_numbers(p, type, 0, n);
		break;
	case QRDMA_FRAME_RESET_STREAM:
		qpeer_numbers(p, type, 0, 0);
		qrdma_writer_varint(&p->w, 0);
		break;
	case QRDMA_FRAME_MAX_DATA:
	case QRDMA_FRAME_MAX_STREAMS_BIDI:
	case QRDMA_FRAME_MAX_STREAMS_UNI:
	case QRDMA_FRAME_DATA_BLOCKED:
	case QRDMA_FRAME_STREAMS_BLOCKED_BIDI:
	case QRDMA_FRAME_STREAMS_BLOCKED_UNI:
		qpeer_numbers(p, type, n, U64_MAX);
		break;
	case QRDMA_FRAME_NEW_CONNECTION_ID:
		qpeer_new_cid(p, 1, 0, 1);
		break;
	case QRDMA_FRAME_PATH_CHALLENGE:
	case QRDMA_FRAME_PATH_RESPONSE:
		qrdma_writer_varint(&p->w, type);
		qrdma_writer_bytes(&p->w, &data, 8);
		break;
	default:
		qpeer_type(p, type);
	}
}

static void rx_flood(struct q_test *test, bool server, u64 type)
{
	struct qpeer *p = qpeer_new(test, server);
	long live = 0;
	u32 i;

	qpeer_drain(p);
	for (i = 0; i < RX_FLOOD; i++) {
		rx_flood_frame(p, type, i);
		qpeer_send(p);
		/* the peer takes packets now and then, and acknowledges none but the first */
		if (i % 16 == 0)
			qpeer_drain(p);
		if (i == RX_FLOOD / 2)
			live = rx_live();
	}
	if (qpeer_error(p) != U64_MAX)
		Q_FAIL(test, "frame %llu: error %lld", type, qpeer_error(p));
	/* bytes that came twice at most fill the rest of a cap that is there */
	if (rx_live() > live + 4)
		Q_FAIL(test, "frame %llu: %ld allocations more", type, rx_live() - live);
	if (qrdma_conn_rx_mem(p->conn) > 1024 * 1024)
		Q_FAIL(test, "frame %llu: %u bytes held", type, qrdma_conn_rx_mem(p->conn));
	qpeer_free(p);
}

Q_TEST(rx_floods)
{
	static const u8 types[] = {
		QRDMA_FRAME_PADDING, QRDMA_FRAME_PING, QRDMA_FRAME_ACK, QRDMA_FRAME_STOP_SENDING,
		QRDMA_FRAME_RESET_STREAM, QRDMA_FRAME_CRYPTO, QRDMA_FRAME_STREAM,
		QRDMA_FRAME_MAX_DATA, QRDMA_FRAME_MAX_STREAM_DATA, QRDMA_FRAME_MAX_STREAMS_BIDI,
		QRDMA_FRAME_MAX_STREAMS_UNI, QRDMA_FRAME_DATA_BLOCKED,
		QRDMA_FRAME_STREAM_DATA_BLOCKED, QRDMA_FRAME_STREAMS_BLOCKED_BIDI,
		QRDMA_FRAME_STREAMS_BLOCKED_UNI, QRDMA_FRAME_NEW_CONNECTION_ID,
		QRDMA_FRAME_PATH_CHALLENGE, QRDMA_FRAME_PATH_RESPONSE,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		rx_flood(test, false, types[i]);
	/* what only a server may send */
	rx_flood(test, false, QRDMA_FRAME_NEW_TOKEN);
	rx_flood(test, false, QRDMA_FRAME_HANDSHAKE_DONE);
}

/* F64: challenges while nothing can be sent: a few are kept, the rest is dropped and counted. */
Q_TEST(rx_challenge_flood)
{
	struct qpeer *p = rx_server(test);
	struct qrdma_conn_stats stats;
	u32 i;

	for (i = 0; i < RX_FLOOD; i++) {
		rx_flood_frame(p, QRDMA_FRAME_PATH_CHALLENGE, i);
		Q_ASSERT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	}
	Q_EXPECT_EQ(test, p->conn->path.nr_responses, QRDMA_PATH_RESPONSES);
	qrdma_conn_stats(p->conn, &stats);
	Q_EXPECT_EQ(test, stats.capped, RX_FLOOD - QRDMA_PATH_RESPONSES);
	qpeer_free(p);
}

/* F64: ever new ids that retire the old ones, and no RETIRE_CONNECTION_ID is ever acknowledged. */
Q_TEST(rx_new_cid_flood)
{
	struct qpeer *p = rx_server(test);
	u32 i;

	for (i = 1; i < RX_FLOOD && qpeer_error(p) == U64_MAX; i++) {
		qpeer_new_cid(p, i, i, i);
		qpeer_send(p);
		qpeer_drain(p);
	}
	Q_EXPECT_EQ(test, qpeer_error(p), QRDMA_ERR_CONNECTION_ID_LIMIT_ERROR);
	Q_EXPECT_LE(test, i, QRDMA_PATH_RETIRES + 3);
	qpeer_free(p);
}

/*
 * Credit
 */

Q_TEST(rx_over_connection_credit)
{
	struct qrdma_conn_config cfg;
	struct qrdma_tparams tp;
	struct qpeer *p;

	qpair_tparams(&tp);
	tp.initial_max_data = 1000;
	qpair_config(&cfg, true, &tp, &tp);
	p = qpeer_new_cfg(test, &cfg);
	qpeer_stream(p, 0, 0, 1000, false);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	qpeer_stream(p, 0, 1000, 1, false);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_PROTOCOL);
	Q_EXPECT_EQ(test, qpeer_error(p), QRDMA_ERR_FLOW_CONTROL_ERROR);
	qpeer_free(p);
}

/* Nothing is granted while memory is short, and all of it afterwards. */
Q_TEST(rx_hold_credit)
{
	struct qpeer *p = rx_server(test);
	u64 off;

	qrdma_conn_hold_credit(p->conn, true);
	for (off = 0; off < 200000; off += 1000) {
		qpeer_stream(p, 0, off, 1000, false);
		Q_ASSERT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
		qrdma_conn_consume(p->conn, 0, 1000);
		while (qpeer_take(p) > 0) {
			Q_EXPECT_NULL(test, qpeer_find(p, QRDMA_FRAME_MAX_DATA));
			Q_EXPECT_NULL(test, qpeer_find(p, QRDMA_FRAME_MAX_STREAM_DATA));
		}
	}
	qrdma_conn_hold_credit(p->conn, false);
	Q_ASSERT_GT(test, qpeer_take(p), 0);
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_MAX_DATA));
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_MAX_STREAM_DATA));
	qpeer_free(p);
}

/* A sender without credit says so once per limit, and never sends beyond it. */
Q_TEST(rx_blocked_once)
{
	struct qrdma_conn_config cfg;
	struct qrdma_tparams tp;
	struct qpeer *p;
	u32 told = 0, bytes = 0, i;

	qpair_tparams(&tp);
	tp.initial_max_stream_data_bidi_remote = 3000;
	qpair_config(&cfg, false, &tp, &tp);
	p = qpeer_new_cfg(test, &cfg);
	Q_EXPECT_EQ(test, qpair_write(p->conn, p->payload, 4000), 0);
	for (i = 0; i < 20; i++) {
		while (qpeer_take(p) > 0) {
			struct qrdma_frame *f = qpeer_find(p, QRDMA_FRAME_STREAM);

			if (f)
				bytes = max_t(u32, bytes, f->stream.off + f->stream.len);
			told += !!qpeer_find(p, QRDMA_FRAME_STREAM_DATA_BLOCKED);
			qpeer_ack(p, 0, p->got_pn, 0);
			qpeer_send(p);
		}
		qpeer_type(p, QRDMA_FRAME_PING);
		qpeer_send(p);
	}
	Q_EXPECT_EQ(test, bytes, 3000);
	Q_EXPECT_EQ(test, told, 1);
	qpeer_numbers(p, QRDMA_FRAME_MAX_STREAM_DATA, 0, 4000);
	qpeer_send(p);
	Q_EXPECT_GT(test, qpeer_drain(p), 0);
	Q_EXPECT_EQ(test, qrdma_conn_unsent(p->conn, 0), 0);
	qpeer_free(p);
}

/*
 * Key updates (RFC 9001 s6)
 */

Q_TEST(rx_peer_updates_keys)
{
	struct qpeer *p = rx_server(test);
	u32 i;

	qpair_derive_ahead(p->conn);
	for (i = 1; i < QPEER_GENS; i++) {
		p->gen = i;
		qpeer_type(p, QRDMA_FRAME_PING);
		Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
		Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_NEED_KEY);
		qpair_derive(p->conn);
		qrdma_conn_ping(p->conn);
		Q_EXPECT_GT(test, qpeer_take(p), 0);
		Q_EXPECT_EQ(test, p->got_gen, i);
	}
	/* a straggler of the generation before */
	p->gen = QPEER_GENS - 2;
	p->pn -= 3;
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_DUPLICATE);
	Q_EXPECT_EQ(test, qpeer_error(p), U64_MAX);
	/* gone after three PTOs */
	while (p->conn->app.keys.rx_prev)
		qpeer_wait(p);
	p->pn--;
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NO_KEY);
	qpeer_free(p);
}

/* A connection that was hardly used has no keys in advance (field case F29). */
Q_TEST(rx_update_of_idle)
{
	struct qpeer *p = rx_server(test);
	u32 i;

	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	Q_EXPECT_FALSE(test, p->ev & QRDMA_EV_NEED_KEY);
	qpair_derive(p->conn);
	Q_EXPECT_TRUE(test, qrdma_keys_lacking(&p->conn->app.keys));
	/* the first packet of the update is lost, as it were, and the second is not */
	p->gen = 1;
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NO_KEY);
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_NEED_KEY);
	qpair_derive(p->conn);
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	qpeer_drain(p);
	Q_EXPECT_EQ(test, p->got_gen, 1);
	/* in use: now they are derived ahead */
	for (i = 0; i < QRDMA_CONN_KEYS_AHEAD; i++) {
		p->ev = 0;
		qpeer_type(p, QRDMA_FRAME_PING);
		qpeer_send(p);
	}
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_NEED_KEY);
	qpair_derive(p->conn);
	Q_EXPECT_FALSE(test, qrdma_keys_lacking(&p->conn->app.keys));
	/* and given up when it is quiet for long */
	qpeer_drain(p);
	qpeer_ack(p, 0, p->got_pn, 0);
	qpeer_send(p);
	for (p->ev = 0, i = 0; i < 100 && !(p->ev & QRDMA_EV_QUIET); i++) {
		qpeer_wait(p);
		qpeer_drain(p);
	}
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_QUIET);
	Q_EXPECT_TRUE(test, qrdma_keys_lacking(&p->conn->app.keys));
	Q_EXPECT_FALSE(test, p->ev & QRDMA_EV_NEED_KEY);
	Q_EXPECT_NULL(test, qrdma_conn_next_keys(p->conn, true));
	qpeer_free(p);
}

/*
 * The server came later than the client's first packet: its first one brings that again. But not
 * what may still be under way.
 */
Q_TEST(rx_first_brings_lost_opening)
{
	u32 late;

	for (late = 0; late < 2; late++) {
		struct qpeer *p = qpeer_new(test, false);
		u64 at;

		Q_EXPECT_GT(test, qpeer_take(p), 0);
		Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_STREAM));
		p->now += p->conn->recovery.max_ack_delay + late;
		qpeer_type(p, QRDMA_FRAME_PING);
		qpeer_send(p);
		at = p->now;
		qpeer_wait(p);
		Q_EXPECT_EQ(test, p->now == at, late);
		if (late) {
			Q_EXPECT_GT(test, qpeer_take(p), 0);
			Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_STREAM));
		}
		qpeer_free(p);
	}
}

/* Old keys for a number behind the update. */
Q_TEST(rx_old_keys_again)
{
	struct qpeer *p = rx_server(test);
	u8 late[128];
	u32 len;

	qpair_derive_ahead(p->conn);
	p->gen = 1;
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	/* the phase bit says "next", which is not derived: no key, no harm */
	p->gen = 0;
	qpeer_type(p, QRDMA_FRAME_PING);
	len = qpeer_seal(p);
	memcpy(late, p->out, len);
	qpair_rx(p->conn, late, len, p->now, &p->drop);
	Q_EXPECT_EQ(test, p->drop, QRDMA_DROP_NO_KEY);
	Q_EXPECT_EQ(test, qpeer_error(p), U64_MAX);
	qpeer_free(p);
}

/* The packet was begun under a key that became old while it was being opened. */
Q_TEST(rx_old_keys_in_flight)
{
	struct qpeer *p = rx_server(test);
	struct qrdma_buf *buf;
	struct qrdma_rx rx = {};
	u32 len;

	qpair_derive_ahead(p->conn);
	p->pn = 10;
	qpeer_type(p, QRDMA_FRAME_PING);
	len = qpeer_seal(p);
	buf = qpair_copy(p->out, len);
	rx.buf = buf;
	rx.data = buf->data;
	rx.len = len;
	Q_EXPECT_EQ(test, qrdma_conn_rx_begin(p->conn, &rx, p->now), QRDMA_RX_OPEN);
	/* numbers 5 and 11 come with the next generation */
	p->gen = 1;
	p->pn = 11;
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	qrdma_conn_rx_finish(p->conn, &rx, rx.aead->open(&rx.op), p->now);
	Q_EXPECT_EQ(test, rx.drop, QRDMA_DROP_NONE);
	p->gen = 1;
	p->pn = 5;
	qpeer_type(p, QRDMA_FRAME_PING);
	/* phase and number say generation 0, which it is not */
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	qrdma_buf_put(buf);
	qpeer_free(p);
}

/* An acknowledgment of a packet of the new generation comes in one of the old. */
Q_TEST(rx_ack_in_old_phase)
{
	struct qpeer *p = qpeer_new(test, false);

	Q_EXPECT_GT(test, qpeer_take(p), 0);
	Q_EXPECT_EQ(test, qrdma_conn_key_update(p->conn), -EAGAIN);
	qpair_derive(p->conn);
	qpeer_ack(p, 0, p->got_pn, 0);
	qpeer_send(p);
	Q_EXPECT_EQ(test, qrdma_conn_key_update(p->conn), 0);
	Q_EXPECT_GT(test, qpeer_take(p), 0);
	Q_EXPECT_EQ(test, p->got_gen, 1);
	/* one at a time */
	qpair_derive(p->conn);
	Q_EXPECT_EQ(test, qrdma_conn_key_update(p->conn), -EAGAIN);
	qpeer_ack(p, 0, p->got_pn, 0);
	qpeer_send(p);
	Q_EXPECT_EQ(test, qpeer_error(p), QRDMA_ERR_KEY_UPDATE_ERROR);
	qpeer_free(p);
}

/* A second update before we could have answered the first. */
Q_TEST(rx_hasty_updates)
{
	struct qpeer *p = rx_server(test);

	qpair_derive_ahead(p->conn);
	p->gen = 1;
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	qpair_derive(p->conn);
	p->gen = 2;
	qpeer_type(p, QRDMA_FRAME_PING);
	qpeer_send(p);
	Q_EXPECT_EQ(test, qpeer_error(p), QRDMA_ERR_KEY_UPDATE_ERROR);
	qpeer_free(p);
}

/*
 * The end
 */

Q_TEST(rx_peer_closes)
{
	struct qpeer *p = rx_server(test);
	struct qrdma_frame f = { .type = QRDMA_FRAME_CLOSE_APP, .close = { .code = 77 } };
	struct qrdma_conn_error e;
	u64 until;

	qpeer_drain(p);
	qpeer_put(p, &f);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_CLOSED);
	qrdma_conn_error(p->conn, &e);
	Q_EXPECT_TRUE(test, e.closed && e.remote && e.app);
	Q_EXPECT_EQ(test, e.code, 77);
	Q_EXPECT_EQ(test, e.err, ECONNRESET);
	/* draining: nothing is sent, whatever comes */
	qpeer_type(p, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_STATE);
	Q_EXPECT_EQ(test, qpeer_take(p), 0);
	Q_EXPECT_EQ(test, qpair_write(p->conn, "x", 1), -EPIPE);
	until = p->now + qrdma_conn_three_ptos(p->conn);
	Q_EXPECT_EQ(test, qrdma_conn_deadline(p->conn), until);
	qpeer_wait(p);
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_DRAINED);
	Q_EXPECT_EQ(test, qrdma_conn_deadline(p->conn), QRDMA_NEVER);
	qpeer_free(p);
}

/* A close that cuts nothing off is clean. */
Q_TEST(rx_peer_closes_clean)
{
	struct qpeer *p = rx_server(test);
	struct qrdma_frame f = { .type = QRDMA_FRAME_CLOSE_APP };
	struct qrdma_conn_error e;
	u8 byte;

	qpeer_stream(p, 0, 0, 1, true);
	qpeer_put(p, &f);
	qpeer_send(p);
	qrdma_conn_error(p->conn, &e);
	Q_EXPECT_TRUE(test, e.closed);
	Q_EXPECT_EQ(test, e.err, 0);
	/* what arrived can still be read */
	Q_EXPECT_TRUE(test, qrdma_conn_rx_complete(p->conn, 0));
	Q_EXPECT_EQ(test, qpair_read(p->conn, &byte, 1), 1);
	Q_EXPECT_TRUE(test, qrdma_conn_at_eof(p->conn, 0));
	qpeer_free(p);
}

/* Closing: CONNECTION_CLOSE is repeated for what comes in, ever more rarely, for three PTOs. */
Q_TEST(rx_closing_answers)
{
	struct qpeer *p = rx_server(test);
	u32 i, answers = 0;

	qpeer_drain(p);
	p->ev = qrdma_conn_close(p->conn, 5, true, p->now);
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_TX && p->ev & QRDMA_EV_CLOSED);
	Q_EXPECT_GT(test, qpeer_take(p), 0);
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_CLOSE_APP));
	Q_EXPECT_EQ(test, qpeer_take(p), 0);
	for (i = 0; i < 1000; i++) {
		qpeer_type(p, QRDMA_FRAME_PING);
		Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_STATE);
		answers += qpeer_drain(p);
	}
	Q_EXPECT_EQ(test, answers, 10);
	/* the peer's own close ends the answers */
	qpeer_put(p, &(struct qrdma_frame){ .type = QRDMA_FRAME_CLOSE });
	qpeer_send(p);
	for (i = 0; i < 1000; i++) {
		qpeer_type(p, QRDMA_FRAME_PING);
		qpeer_send(p);
		Q_EXPECT_EQ(test, qpeer_take(p), 0);
	}
	p->ev = 0;
	qpeer_wait(p);
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_DRAINED);
	qpeer_free(p);
}

Q_SUITE("qrdma-conn-rx",
	Q_CASE(rx_malformed_frames),
	Q_CASE(rx_reserved_bits),
	Q_CASE(rx_whole_or_nothing),
	Q_CASE(rx_foreign_packets),
	Q_CASE(rx_coalesced),
	Q_CASE(rx_duplicates),
	Q_CASE(rx_duplicates_in_flight),
	Q_CASE(rx_aead_error),
	Q_CASE(rx_no_memory),
	Q_CASE(rx_ack_ahead),
	Q_CASE(rx_ack_skipped),
	Q_CASE(rx_ack_around_skipped),
	Q_CASE(rx_ack_delay_lie),
	Q_CASE(rx_numbers_jump),
	Q_CASE(rx_floods),
	Q_CASE(rx_challenge_flood),
	Q_CASE(rx_new_cid_flood),
	Q_CASE(rx_over_connection_credit),
	Q_CASE(rx_hold_credit),
	Q_CASE(rx_blocked_once),
	Q_CASE(rx_peer_updates_keys),
	Q_CASE(rx_update_of_idle),
	Q_CASE(rx_first_brings_lost_opening),
	Q_CASE(rx_old_keys_again),
	Q_CASE(rx_old_keys_in_flight),
	Q_CASE(rx_ack_in_old_phase),
	Q_CASE(rx_hasty_updates),
	Q_CASE(rx_peer_closes),
	Q_CASE(rx_peer_closes_clean),
	Q_CASE(rx_closing_answers));
