// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of net/qrdma/core/tparam.c.
 */
#include "qtest.h"
#include "tparam.h"
#include "frame.h"

#define OK	QRDMA_ERR_NO_ERROR
#define BAD	QRDMA_ERR_TRANSPORT_PARAMETER_ERROR

/* The client's parameters in the ClientHello of RFC 9001 A.2. */
Q_TEST(tparam_rfc9001_client)
{
	struct qrdma_tparams *tp = q_zalloc(test, sizeof(*tp));
	u8 buf[64], cid[8];
	size_t n;

	Q_ASSERT_NOT_NULL(test, tp);
	q_hex(cid, sizeof(cid), "8394c8f03e515708");
	n = q_hex(buf, sizeof(buf),
		  "0408ffffffffffffffff 05048000ffff 07048000ffff 080110 010480007530 090110 "
		  "0f088394c8f03e515708 06048000ffff");
	Q_ASSERT_EQ(test, n, 50);
	Q_ASSERT_EQ(test, qrdma_tparams_decode(tp, buf, n, false), OK);
	Q_EXPECT_EQ(test, tp->initial_max_data, QRDMA_VARINT_MAX);
	Q_EXPECT_EQ(test, tp->initial_max_stream_data_bidi_local, 65535);
	Q_EXPECT_EQ(test, tp->initial_max_stream_data_bidi_remote, 65535);
	Q_EXPECT_EQ(test, tp->initial_max_stream_data_uni, 65535);
	Q_EXPECT_EQ(test, tp->initial_max_streams_bidi, 16);
	Q_EXPECT_EQ(test, tp->initial_max_streams_uni, 16);
	Q_EXPECT_EQ(test, tp->max_idle_timeout, 30000);
	Q_EXPECT_TRUE(test, qrdma_tparams_has(tp, QRDMA_TP_INITIAL_SCID));
	Q_EXPECT_EQ(test, tp->initial_scid.len, 8);
	Q_EXPECT_MEMEQ(test, tp->initial_scid.data, cid, 8);
	/* and what it did not send */
	Q_EXPECT_EQ(test, tp->max_udp_payload_size, 65527);
	Q_EXPECT_EQ(test, tp->ack_delay_exponent, 3);
	Q_EXPECT_EQ(test, tp->max_ack_delay, 25);
	Q_EXPECT_EQ(test, tp->active_cid_limit, 2);
	Q_EXPECT_EQ(test, tp->max_datagram_frame_size, 0);
	Q_EXPECT_FALSE(test, tp->disable_active_migration);
	Q_EXPECT_FALSE(test, qrdma_tparams_has(tp, QRDMA_TP_RETRY_SCID));
}

struct tparam_vector {
	const char *hex;
	u64 from_client;
	u64 from_server;
};

#define TOKEN	"000102030405060708090a0b0c0d0e0f"
#define ID20	"0000000000000000000000000000000000000000"
#define ADDRESS	"7f000001 1f90 00000000000000000000000000000001 1f91"

static const struct tparam_vector tparam_vectors[] = {
	{ "", OK, OK },
	/* cut short: identifier, length, value */
	{ "40", BAD, BAD },
	{ "01", BAD, BAD },
	{ "0140", BAD, BAD },
	{ "0102", BAD, BAD },
	{ "0102 75", BAD, BAD },
	{ "01 ffffffffffffffff 00", BAD, BAD },
	/* an integer fills its parameter */
	{ "0100", BAD, BAD },
	{ "0101 40", BAD, BAD },
	{ "0102 0000", BAD, BAD },
	{ "0102 4000", OK, OK },
	/* repeated (s7.4) */
	{ "010100 010100", BAD, BAD },
	{ "010100 020000", BAD, BAD },
	{ "0c00 0c00", BAD, BAD },
	/* unknown, reserved for greasing (s18.1), with long identifiers: ignored */
	{ "1b00", OK, OK },
	{ "1100 1f0101 2100 3f00", OK, OK },
	{ "4059 02 abcd", OK, OK },
	{ "fffffffffffffffe 01 00", OK, OK },
	{ "1b0301", BAD, BAD },
	/* known ones may have a long identifier */
	{ "4001 01 05", OK, OK },
	/* s18.2: only a server sends these */
	{ "0000", BAD, OK },
	{ "0014" ID20, BAD, OK },
	{ "0015" ID20 "00", BAD, BAD },
	{ "0210" TOKEN, BAD, OK },
	{ "020f 000102030405060708090a0b0c0d0e", BAD, BAD },
	{ "0211" TOKEN "10", BAD, BAD },
	{ "1008 0102030405060708", BAD, OK },
	{ "1000", BAD, OK },
	{ "1015" ID20 "00", BAD, BAD },
	/* both send this one */
	{ "0f00", OK, OK },
	{ "0f14" ID20, OK, OK },
	{ "0f15" ID20 "00", BAD, BAD },
	/* max_udp_payload_size: 1020 is ours, see tparam.h */
	{ "0302 43fc", OK, OK },
	{ "0302 43fb", BAD, BAD },
	{ "0302 44b0", OK, OK },
	{ "0304 8000fff7", OK, OK },
	{ "0308 ffffffffffffffff", OK, OK },
	/* initial_max_streams_*: 2^60 (s4.6) */
	{ "0808 d000000000000000", OK, OK },
	{ "0808 d000000000000001", BAD, BAD },
	{ "0908 d000000000000000", OK, OK },
	{ "0908 d000000000000001", BAD, BAD },
	{ "0a01 14", OK, OK },
	{ "0a01 15", BAD, BAD },
	{ "0b02 7fff", OK, OK },
	{ "0b04 80004000", BAD, BAD },
	{ "0c00", OK, OK },
	{ "0c01 00", BAD, BAD },
	{ "0e01 02", OK, OK },
	{ "0e01 01", BAD, BAD },
	{ "0e01 00", BAD, BAD },
	{ "0e08 ffffffffffffffff", OK, OK },
	/* preferred_address: its connection id is 1..20 bytes, nothing is left over */
	{ "0d2a" ADDRESS "01 aa" TOKEN, BAD, OK },
	{ "0d29" ADDRESS "00" TOKEN, BAD, BAD },
	{ "0d3d" ADDRESS "14" ID20 TOKEN, BAD, OK },
	{ "0d3e" ADDRESS "15" ID20 "00" TOKEN, BAD, BAD },
	{ "0d2b" ADDRESS "01 aa" TOKEN "00", BAD, BAD },
	{ "0d29" ADDRESS "01 aa 000102030405060708090a0b0c0d0e", BAD, BAD },
	{ "2002 4400", OK, OK },
};

Q_TEST(tparam_limits)
{
	struct qrdma_tparams *tp = q_zalloc(test, sizeof(*tp));
	u64 client, server;
	u8 buf[80];
	size_t i, n;

	Q_ASSERT_NOT_NULL(test, tp);
	for (i = 0; i < ARRAY_SIZE(tparam_vectors); i++) {
		const struct tparam_vector *v = &tparam_vectors[i];

		n = q_hex(buf, sizeof(buf), v->hex);
		client = qrdma_tparams_decode(tp, buf, n, false);
		server = qrdma_tparams_decode(tp, buf, n, true);
		if (client != v->from_client || server != v->from_server)
			Q_FAIL(test, "vector %s: %llu from a client, %llu from a server",
			       v->hex, client, server);
	}
}

static void tparam_random_cid(struct qrdma_cid *cid, u32 min_len, u64 *seed)
{
	u32 i;

	cid->len = min_len + q_rand(seed) % (QRDMA_CID_MAX + 1 - min_len);
	for (i = 0; i < cid->len; i++)
		cid->data[i] = q_rand(seed);
}

static u64 tparam_random_int(u64 max, u64 *seed)
{
	return min(q_rand(seed) >> (2 + q_rand(seed) % 62), max);
}

/* any set that a server may send; bits of what is absent are random, too */
static void tparam_random(struct qrdma_tparams *tp, u64 *seed)
{
	qrdma_tparams_init(tp);
	tp->max_idle_timeout = tparam_random_int(QRDMA_VARINT_MAX, seed);
	tp->max_udp_payload_size = 1020 + tparam_random_int(70000, seed);
	tp->initial_max_data = tparam_random_int(QRDMA_VARINT_MAX, seed);
	tp->initial_max_stream_data_bidi_local = tparam_random_int(QRDMA_VARINT_MAX, seed);
	tp->initial_max_stream_data_bidi_remote = tparam_random_int(QRDMA_VARINT_MAX, seed);
	tp->initial_max_stream_data_uni = tparam_random_int(QRDMA_VARINT_MAX, seed);
	tp->initial_max_streams_bidi = tparam_random_int(QRDMA_STREAMS_MAX, seed);
	tp->initial_max_streams_uni = tparam_random_int(QRDMA_STREAMS_MAX, seed);
	tp->ack_delay_exponent = q_rand(seed) % 21;
	tp->max_ack_delay = q_rand(seed) % 16384;
	tp->active_cid_limit = 2 + tparam_random_int(1000, seed);
	tp->max_datagram_frame_size = tparam_random_int(QRDMA_VARINT_MAX, seed);
	tp->disable_active_migration = q_rand(seed) & 1;
	tparam_random_cid(&tp->original_dcid, 0, seed);
	tparam_random_cid(&tp->initial_scid, 0, seed);
	tparam_random_cid(&tp->retry_scid, 0, seed);
	tparam_random_cid(&tp->preferred.cid, 1, seed);
	qrdma_store_be64(tp->reset_token, q_rand(seed));
	qrdma_store_be64(tp->preferred.reset_token, q_rand(seed));
	qrdma_store_be64(tp->preferred.ipv6, q_rand(seed));
	qrdma_store_be32(tp->preferred.ipv4, q_rand(seed));
	tp->preferred.ipv4_port = q_rand(seed);
	tp->preferred.ipv6_port = q_rand(seed);
	tp->present = q_rand(seed);
}

#define SAME(field)	Q_ASSERT_EQ(test, a->field, b->field)
#define SAME_CID(id, field) do {						\
	Q_ASSERT_EQ(test, qrdma_tparams_has(b, id), server && qrdma_tparams_has(a, id)); \
	if (qrdma_tparams_has(b, id))						\
		Q_ASSERT_TRUE(test, qrdma_cid_equal(&a->field, &b->field));	\
} while (0)

static void tparam_expect_same(struct q_test *test, const struct qrdma_tparams *a,
			       const struct qrdma_tparams *b, bool server)
{
	SAME(max_idle_timeout);
	SAME(max_udp_payload_size);
	SAME(initial_max_data);
	SAME(initial_max_stream_data_bidi_local);
	SAME(initial_max_stream_data_bidi_remote);
	SAME(initial_max_stream_data_uni);
	SAME(initial_max_streams_bidi);
	SAME(initial_max_streams_uni);
	SAME(ack_delay_exponent);
	SAME(max_ack_delay);
	SAME(active_cid_limit);
	SAME(max_datagram_frame_size);
	SAME(disable_active_migration);
	SAME_CID(QRDMA_TP_ORIGINAL_DCID, original_dcid);
	SAME_CID(QRDMA_TP_RETRY_SCID, retry_scid);
	SAME_CID(QRDMA_TP_PREFERRED_ADDRESS, preferred.cid);
	Q_ASSERT_EQ(test, qrdma_tparams_has(a, QRDMA_TP_INITIAL_SCID),
		    qrdma_tparams_has(b, QRDMA_TP_INITIAL_SCID));
	if (qrdma_tparams_has(b, QRDMA_TP_INITIAL_SCID))
		Q_ASSERT_TRUE(test, qrdma_cid_equal(&a->initial_scid, &b->initial_scid));
	Q_ASSERT_EQ(test, qrdma_tparams_has(b, QRDMA_TP_STATELESS_RESET_TOKEN),
		    server && qrdma_tparams_has(a, QRDMA_TP_STATELESS_RESET_TOKEN));
	if (qrdma_tparams_has(b, QRDMA_TP_STATELESS_RESET_TOKEN))
		Q_ASSERT_MEMEQ(test, a->reset_token, b->reset_token, sizeof(a->reset_token));
	if (qrdma_tparams_has(b, QRDMA_TP_PREFERRED_ADDRESS)) {
		SAME(preferred.ipv4_port);
		SAME(preferred.ipv6_port);
		Q_ASSERT_MEMEQ(test, a->preferred.ipv4, b->preferred.ipv4, 4);
		Q_ASSERT_MEMEQ(test, a->preferred.ipv6, b->preferred.ipv6, 16);
		Q_ASSERT_MEMEQ(test, a->preferred.reset_token, b->preferred.reset_token, 16);
	}
}

Q_TEST(tparam_round_trip)
{
	struct qrdma_tparams *in = q_zalloc(test, sizeof(*in));
	struct qrdma_tparams *out = q_zalloc(test, sizeof(*out));
	u8 *buf = q_zalloc(test, QRDMA_TP_ENCODED_MAX);
	struct qrdma_writer w;
	u64 seed = q_seed();
	size_t len, cut;
	bool server;
	int i;

	Q_ASSERT_NOT_NULL(test, in);
	Q_ASSERT_NOT_NULL(test, out);
	Q_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < 500; i++) {
		server = i & 1;
		tparam_random(in, &seed);
		Q_ASSERT_TRUE(test, qrdma_tparams_valid(in));
		qrdma_writer_init(&w, buf, QRDMA_TP_ENCODED_MAX);
		Q_ASSERT_TRUE(test, qrdma_tparams_encode(&w, in, server));
		len = w.pos - buf;
		Q_ASSERT_EQ(test, qrdma_tparams_decode(out, buf, len, server), OK);
		tparam_expect_same(test, in, out, server);

		for (cut = 0; cut < len; cut++) {
			qrdma_writer_init(&w, buf, cut);
			Q_ASSERT_FALSE(test, qrdma_tparams_encode(&w, in, server));
			Q_ASSERT_PTR_EQ(test, w.pos, buf);
		}
		/* cut behind a parameter it is a valid, smaller set: no crash is all we ask */
		for (cut = 0; cut < len; cut++)
			qrdma_tparams_decode(out, buf, cut, server);
	}
}

/* Every truncation inside a parameter is an error. */
Q_TEST(tparam_truncated)
{
	struct qrdma_tparams *tp = q_zalloc(test, sizeof(*tp));
	u8 buf[128], ends[128] = { 0 };
	struct qrdma_cursor c;
	const u8 *value;
	size_t len, cut;
	u64 id, n;

	Q_ASSERT_NOT_NULL(test, tp);
	len = q_hex(buf, sizeof(buf), "0008 0102030405060708 0210" TOKEN "0302 43fc 0c00 "
		    "0d2a" ADDRESS "01 aa" TOKEN "405901 00 2002 4400");
	Q_ASSERT_GT(test, len, 0);
	qrdma_cursor_init(&c, buf, len);
	while (qrdma_cursor_left(&c)) {
		ends[c.pos - buf] = 1;
		Q_ASSERT_TRUE(test, qrdma_cursor_varint(&c, &id));
		Q_ASSERT_TRUE(test, qrdma_cursor_varint(&c, &n));
		Q_ASSERT_TRUE(test, qrdma_cursor_bytes(&c, n, &value));
	}
	ends[len] = 1;
	for (cut = 0; cut <= len; cut++)
		Q_EXPECT_EQ(test, qrdma_tparams_decode(tp, buf, cut, true), ends[cut] ? OK : BAD);
}

/* The largest set fits where tparam.h says it does; nothing at all takes nothing. */
Q_TEST(tparam_sizes)
{
	struct qrdma_tparams *tp = q_zalloc(test, sizeof(*tp));
	u8 *buf = q_zalloc(test, QRDMA_TP_ENCODED_MAX);
	struct qrdma_writer w;

	Q_ASSERT_NOT_NULL(test, tp);
	Q_ASSERT_NOT_NULL(test, buf);
	qrdma_tparams_init(tp);
	qrdma_writer_init(&w, buf, 0);
	Q_EXPECT_TRUE(test, qrdma_tparams_encode(&w, tp, true));

	tp->max_idle_timeout = QRDMA_VARINT_MAX;
	tp->max_udp_payload_size = QRDMA_VARINT_MAX;
	tp->initial_max_data = QRDMA_VARINT_MAX;
	tp->initial_max_stream_data_bidi_local = QRDMA_VARINT_MAX;
	tp->initial_max_stream_data_bidi_remote = QRDMA_VARINT_MAX;
	tp->initial_max_stream_data_uni = QRDMA_VARINT_MAX;
	tp->initial_max_streams_bidi = QRDMA_STREAMS_MAX;
	tp->initial_max_streams_uni = QRDMA_STREAMS_MAX;
	tp->ack_delay_exponent = 20;
	tp->max_ack_delay = 16383;
	tp->active_cid_limit = QRDMA_VARINT_MAX;
	tp->max_datagram_frame_size = QRDMA_VARINT_MAX;
	tp->disable_active_migration = true;
	tp->original_dcid.len = QRDMA_CID_MAX;
	tp->initial_scid.len = QRDMA_CID_MAX;
	tp->retry_scid.len = QRDMA_CID_MAX;
	tp->preferred.cid.len = QRDMA_CID_MAX;
	tp->present = U64_MAX;
	qrdma_writer_init(&w, buf, QRDMA_TP_ENCODED_MAX);
	Q_EXPECT_TRUE(test, qrdma_tparams_encode(&w, tp, true));
}

Q_TEST(tparam_encode_refuses)
{
	struct qrdma_tparams *tp = q_zalloc(test, sizeof(*tp));
	struct qrdma_writer w;
	u8 buf[128];

	Q_ASSERT_NOT_NULL(test, tp);
#define REFUSED(set) do {							\
	qrdma_tparams_init(tp);							\
	tp->present = U64_MAX;							\
	tp->preferred.cid.len = 1;						\
	qrdma_writer_init(&w, buf, sizeof(buf));				\
	Q_EXPECT_TRUE(test, qrdma_tparams_encode(&w, tp, true));		\
	set;									\
	qrdma_writer_init(&w, buf, sizeof(buf));				\
	Q_EXPECT_FALSE(test, qrdma_tparams_encode(&w, tp, true));		\
	Q_EXPECT_PTR_EQ(test, w.pos, buf);					\
} while (0)

	REFUSED(tp->max_udp_payload_size = 1019);
	REFUSED(tp->ack_delay_exponent = 21);
	REFUSED(tp->max_ack_delay = 16384);
	REFUSED(tp->active_cid_limit = 1);
	REFUSED(tp->initial_max_streams_bidi = QRDMA_STREAMS_MAX + 1);
	REFUSED(tp->max_idle_timeout = QRDMA_VARINT_MAX + 1);
	REFUSED(tp->initial_scid.len = 21);
	REFUSED(tp->preferred.cid.len = 0);
	REFUSED(tp->preferred.cid.len = 21);
#undef REFUSED
}

Q_SUITE("qrdma-tparam",
	Q_CASE(tparam_rfc9001_client),
	Q_CASE(tparam_limits),
	Q_CASE(tparam_round_trip),
	Q_CASE(tparam_truncated),
	Q_CASE(tparam_sizes),
	Q_CASE(tparam_encode_refuses));
