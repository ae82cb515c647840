// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of net/qrdma/core/frame.c.
 */
#include "qtest.h"
#include "frame.h"

#define ANYWHERE	(QRDMA_FA_1RTT | QRDMA_FA_SERVER)	/* where every frame may be */
#define ROOM		2048

static const u8 frame_bytes[64] = "the data of a frame is never looked at, it is only passed along";

/* RFC 9000 s12.4 table 3 with s12.5 and s13.3, RFC 9221; typed in by hand, apart from frame.c */
struct frame_fact {
	u8 first, last;
	const char *packets;	/* I H 0 1 */
	const char *spec;	/* N C P F as in the table; R: sent again; S: server only */
};

static const struct frame_fact frame_facts[] = {
	{ 0x00, 0x00, "IH01", "NP" },
	{ 0x01, 0x01, "IH01", "" },
	{ 0x02, 0x03, "IH1", "NC" },
	{ 0x04, 0x05, "01", "R" },
	{ 0x06, 0x06, "IH1", "R" },
	{ 0x07, 0x07, "1", "RS" },
	{ 0x08, 0x0f, "01", "RF" },
	{ 0x10, 0x17, "01", "R" },
	{ 0x18, 0x18, "01", "RP" },
	{ 0x19, 0x19, "1", "R" },
	{ 0x1a, 0x1a, "01", "P" },
	{ 0x1b, 0x1b, "1", "P" },
	{ 0x1c, 0x1c, "IH01", "NC" },	/* not in flight: RFC 9002 s2 */
	{ 0x1d, 0x1d, "01", "NC" },
	{ 0x1e, 0x1e, "1", "RS" },
	{ 0x30, 0x31, "01", "" },
};

static const struct frame_fact *frame_fact(u32 type)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(frame_facts); i++) {
		if (type >= frame_facts[i].first && type <= frame_facts[i].last)
			return &frame_facts[i];
	}
	return NULL;
}

Q_TEST(frame_table_is_complete)
{
	const struct frame_fact *fact;
	u32 type, attr;

	for (type = 0; type < 0x80; type++) {
		attr = qrdma_frame_attr(type);
		fact = frame_fact(type);
		if (!fact) {
			Q_EXPECT_EQ(test, attr, 0);
			continue;
		}
		Q_EXPECT_EQ(test, !!(attr & QRDMA_FA_INITIAL), !!strchr(fact->packets, 'I'));
		Q_EXPECT_EQ(test, !!(attr & QRDMA_FA_HANDSHAKE), !!strchr(fact->packets, 'H'));
		Q_EXPECT_EQ(test, !!(attr & QRDMA_FA_0RTT), !!strchr(fact->packets, '0'));
		Q_EXPECT_EQ(test, !!(attr & QRDMA_FA_1RTT), !!strchr(fact->packets, '1'));
		Q_EXPECT_EQ(test, !!(attr & QRDMA_FA_SERVER), 1);
		Q_EXPECT_EQ(test, !!(attr & QRDMA_FA_CLIENT), !strchr(fact->spec, 'S'));
		Q_EXPECT_EQ(test, !!(attr & QRDMA_FA_ELICITING), !strchr(fact->spec, 'N'));
		Q_EXPECT_EQ(test, !!(attr & QRDMA_FA_IN_FLIGHT), !strchr(fact->spec, 'C'));
		Q_EXPECT_EQ(test, !!(attr & QRDMA_FA_PROBING), !!strchr(fact->spec, 'P'));
		Q_EXPECT_EQ(test, !!(attr & QRDMA_FA_RETRANSMIT), !!strchr(fact->spec, 'R'));
		Q_EXPECT_EQ(test, !!(attr & QRDMA_FA_FLOW), !!strchr(fact->spec, 'F'));
	}
	Q_EXPECT_EQ(test, qrdma_frame_attr(U64_MAX), 0);
}

static u64 frame_rand_varint(u64 *seed)
{
	return q_rand(seed) >> (2 + q_rand(seed) % 62);
}

static u32 frame_rand_data(u64 *seed, const u8 **data)
{
	*data = frame_bytes;
	return q_rand(seed) % (sizeof(frame_bytes) + 1);
}

/* a frame of @type with values that are allowed; of ACK only the smallest */
static void frame_random(struct qrdma_frame *f, u8 type, u64 *seed)
{
	memset(f, 0, sizeof(*f));
	f->type = type;
	switch (type) {
	case 0x00:
		f->padding.len = 1 + q_rand(seed) % 40;
		break;
	case 0x03:
		f->ack.ecn = true;
		break;
	case 0x04:
		f->reset.id = frame_rand_varint(seed);
		f->reset.code = frame_rand_varint(seed);
		f->reset.final_size = frame_rand_varint(seed);
		break;
	case 0x05:
		f->stop.id = frame_rand_varint(seed);
		f->stop.code = frame_rand_varint(seed);
		break;
	case 0x06:
		f->crypto.len = frame_rand_data(seed, &f->crypto.data);
		f->crypto.off = min(frame_rand_varint(seed), QRDMA_VARINT_MAX - f->crypto.len);
		break;
	case 0x07:
		f->token.data = frame_bytes;
		f->token.len = 1 + q_rand(seed) % sizeof(frame_bytes);
		break;
	case 0x08 ... 0x0f:
		f->stream.id = frame_rand_varint(seed);
		f->stream.len = frame_rand_data(seed, &f->stream.data);
		if (type & QRDMA_STREAM_OFF)
			f->stream.off = clamp(frame_rand_varint(seed), 1ULL,
					      QRDMA_VARINT_MAX - f->stream.len);
		f->stream.fin = type & QRDMA_STREAM_FIN;
		break;
	case 0x11:
	case 0x15:
		f->max.id = frame_rand_varint(seed);
		fallthrough;
	case 0x10:
	case 0x14:
		f->max.max = frame_rand_varint(seed);
		break;
	case 0x12:
	case 0x13:
	case 0x16:
	case 0x17:
		f->max.max = min(frame_rand_varint(seed), QRDMA_STREAMS_MAX);
		break;
	case 0x18:
		f->new_cid.seq = frame_rand_varint(seed);
		f->new_cid.retire_prior_to = frame_rand_varint(seed) % (f->new_cid.seq + 1);
		f->new_cid.len = 1 + q_rand(seed) % QRDMA_CID_MAX;
		f->new_cid.cid = frame_bytes;
		f->new_cid.reset_token = frame_bytes + 20;
		break;
	case 0x19:
		f->retire_cid.seq = frame_rand_varint(seed);
		break;
	case 0x1a:
	case 0x1b:
		memcpy(f->path.data, frame_bytes, sizeof(f->path.data));
		break;
	case 0x1c:
		f->close.frame_type = frame_rand_varint(seed);
		fallthrough;
	case 0x1d:
		f->close.code = frame_rand_varint(seed);
		f->close.len = frame_rand_data(seed, &f->close.reason);
		break;
	case 0x30:
	case 0x31:
		f->datagram.len = frame_rand_data(seed, &f->datagram.data);
		break;
	}
}

#define SAME(field) Q_ASSERT_EQ(test, a->field, b->field)
#define SAME_BYTES(ptr, n) do {						\
	SAME(n);							\
	Q_ASSERT_MEMEQ(test, a->ptr, b->ptr, a->n);			\
} while (0)

static void frame_expect_same(struct q_test *test, const struct qrdma_frame *a,
			      const struct qrdma_frame *b)
{
	SAME(type);
	switch (a->type) {
	case 0x00:
		SAME(padding.len);
		break;
	case 0x04:
		SAME(reset.id);
		SAME(reset.code);
		SAME(reset.final_size);
		break;
	case 0x05:
		SAME(stop.id);
		SAME(stop.code);
		break;
	case 0x06:
		SAME(crypto.off);
		SAME_BYTES(crypto.data, crypto.len);
		break;
	case 0x07:
		SAME_BYTES(token.data, token.len);
		break;
	case 0x08 ... 0x0f:
		SAME(stream.id);
		SAME(stream.off);
		SAME(stream.fin);
		SAME_BYTES(stream.data, stream.len);
		break;
	case 0x10 ... 0x17:
		SAME(max.id);
		SAME(max.max);
		break;
	case 0x18:
		SAME(new_cid.seq);
		SAME(new_cid.retire_prior_to);
		SAME_BYTES(new_cid.cid, new_cid.len);
		Q_ASSERT_MEMEQ(test, a->new_cid.reset_token, b->new_cid.reset_token, 16);
		break;
	case 0x19:
		SAME(retire_cid.seq);
		break;
	case 0x1a:
	case 0x1b:
		Q_ASSERT_MEMEQ(test, a->path.data, b->path.data, 8);
		break;
	case 0x1c:
	case 0x1d:
		SAME(close.code);
		SAME(close.frame_type);
		SAME_BYTES(close.reason, close.len);
		break;
	case 0x30:
	case 0x31:
		SAME_BYTES(datagram.data, datagram.len);
		break;
	}
}

/* bytes of an encoded frame without which it cannot be read */
static u32 frame_needed(const struct qrdma_frame *f, u32 size)
{
	switch (f->type) {
	case 0x00:
		return 1;
	case 0x08 ... 0x0f:
		return f->type & QRDMA_STREAM_LEN ? size : size - f->stream.len;
	case 0x30:
		return 1;
	}
	return size;
}

/* Every type: out, back, and each truncation of both. */
Q_TEST(frame_round_trip)
{
	u8 *buf = q_zalloc(test, ROOM);
	struct qrdma_frame in, out;
	struct qrdma_cursor c;
	struct qrdma_writer w;
	u64 seed = q_seed();
	u32 type, n, size, cut;

	Q_ASSERT_NOT_NULL(test, buf);
	for (type = 0; type < __QRDMA_FRAME_MAX; type++) {
		if (!frame_fact(type) || type == QRDMA_FRAME_ACK || type == QRDMA_FRAME_ACK_ECN)
			continue;
		for (n = 0; n < 200; n++) {
			frame_random(&in, type, &seed);
			size = qrdma_frame_size(&in);
			for (cut = 0; cut < size; cut++) {
				qrdma_writer_init(&w, buf, cut);
				Q_ASSERT_FALSE(test, qrdma_frame_encode(&w, &in));
				Q_ASSERT_PTR_EQ(test, w.pos, buf);
			}
			qrdma_writer_init(&w, buf, ROOM);
			Q_ASSERT_TRUE(test, qrdma_frame_encode(&w, &in));
			Q_ASSERT_EQ(test, w.pos - buf, size);

			for (cut = 0; cut < frame_needed(&in, size); cut++) {
				qrdma_cursor_init(&c, buf, cut);
				Q_ASSERT_EQ(test, qrdma_frame_decode(&c, ANYWHERE, &out),
					    QRDMA_ERR_FRAME_ENCODING_ERROR);
				Q_ASSERT_PTR_EQ(test, c.pos, buf);
				Q_ASSERT_EQ(test, out.type, cut ? type : 0);
			}
			for (; cut <= size; cut++) {
				qrdma_cursor_init(&c, buf, cut);
				Q_ASSERT_EQ(test, qrdma_frame_decode(&c, ANYWHERE, &out),
					    QRDMA_ERR_NO_ERROR);
				Q_ASSERT_EQ(test, qrdma_cursor_left(&c), 0);
			}
			frame_expect_same(test, &in, &out);
		}
	}
}

struct frame_vector {
	const char *hex;
	u64 err;
	u64 type;
};

/* What the checks of RFC 9000 s19 let pass and refuse, at the boundary. */
static const struct frame_vector frame_vectors[] = {
	{ "01", QRDMA_ERR_NO_ERROR, 0x01 },
	{ "1e", QRDMA_ERR_NO_ERROR, 0x1e },
	/* s12.4: shortest encoding of the type, and unknown types */
	{ "", QRDMA_ERR_FRAME_ENCODING_ERROR, 0 },
	{ "4001", QRDMA_ERR_PROTOCOL_VIOLATION, 0x01 },
	{ "80000001", QRDMA_ERR_PROTOCOL_VIOLATION, 0x01 },
	{ "c000000000000001", QRDMA_ERR_PROTOCOL_VIOLATION, 0x01 },
	{ "401f", QRDMA_ERR_PROTOCOL_VIOLATION, 0x1f },
	{ "4040", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x40 },
	{ "bfffffff", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x3fffffff },
	{ "40", QRDMA_ERR_FRAME_ENCODING_ERROR, 0 },
	{ "1f", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x1f },
	{ "20", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x20 },
	{ "2f", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x2f },
	{ "32", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x32 },
	{ "3f", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x3f },
	/* s19.3.1: numbers below zero */
	{ "02 05 00 00 05", QRDMA_ERR_NO_ERROR, 0x02 },
	{ "02 05 00 00 06", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x02 },
	{ "02 05 00 01 00 0300", QRDMA_ERR_NO_ERROR, 0x02 },
	{ "02 05 00 01 00 0400", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x02 },
	{ "02 05 00 01 00 0201", QRDMA_ERR_NO_ERROR, 0x02 },
	{ "02 05 00 01 00 0202", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x02 },
	{ "02 05 00 02 00 0000 0101", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x02 },
	{ "02 05 00 01 00 ffffffffffffffff ffffffffffffffff",
	  QRDMA_ERR_FRAME_ENCODING_ERROR, 0x02 },
	/* s20.1: more ranges than the packet carries */
	{ "02 05 00 02 00 0000 00", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x02 },
	{ "02 05 00 ffffffffffffffff 00 0000", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x02 },
	{ "03 05 00 00 00 010203", QRDMA_ERR_NO_ERROR, 0x03 },
	{ "03 05 00 00 00 0102", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x03 },
	/* s19.6, s19.8: offset and length together below 2^62 */
	{ "06 fffffffffffffffe 01 aa", QRDMA_ERR_NO_ERROR, 0x06 },
	{ "06 ffffffffffffffff 00", QRDMA_ERR_NO_ERROR, 0x06 },
	{ "06 ffffffffffffffff 01 aa", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x06 },
	{ "06 00 ffffffffffffffff", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x06 },
	{ "0e 00 fffffffffffffffe 01 aa", QRDMA_ERR_NO_ERROR, 0x0e },
	{ "0e 00 ffffffffffffffff 01 aa", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x0e },
	{ "0c 00 ffffffffffffffff aa", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x0c },
	{ "0a 00 ffffffffffffffff", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x0a },
	/* the opening of stream 0, empty; and an offset spelled out as 0 */
	{ "0a 00 00", QRDMA_ERR_NO_ERROR, 0x0a },
	{ "0e 00 4000 00", QRDMA_ERR_NO_ERROR, 0x0e },
	{ "08 00", QRDMA_ERR_NO_ERROR, 0x08 },
	/* s19.7: token not empty */
	{ "07 01 aa", QRDMA_ERR_NO_ERROR, 0x07 },
	{ "07 00", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x07 },
	/* s19.11, s19.14: 2^60 streams */
	{ "12 d000000000000000", QRDMA_ERR_NO_ERROR, 0x12 },
	{ "12 d000000000000001", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x12 },
	{ "13 d000000000000001", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x13 },
	{ "16 d000000000000000", QRDMA_ERR_NO_ERROR, 0x16 },
	{ "16 d000000000000001", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x16 },
	{ "17 d000000000000001", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x17 },
	/* s19.15: id of 1..20 bytes, Retire Prior To at most Sequence Number */
	{ "18 01 01 01 aa 000102030405060708090a0b0c0d0e0f", QRDMA_ERR_NO_ERROR, 0x18 },
	{ "18 01 02 01 aa 000102030405060708090a0b0c0d0e0f",
	  QRDMA_ERR_FRAME_ENCODING_ERROR, 0x18 },
	{ "18 01 01 00 000102030405060708090a0b0c0d0e0f",
	  QRDMA_ERR_FRAME_ENCODING_ERROR, 0x18 },
	{ "18 01 01 14 0000000000000000000000000000000000000000 "
	  "000102030405060708090a0b0c0d0e0f", QRDMA_ERR_NO_ERROR, 0x18 },
	{ "18 01 01 15 000000000000000000000000000000000000000000 "
	  "000102030405060708090a0b0c0d0e0f", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x18 },
	/* s19.19 */
	{ "1c 0a 06 02 6869", QRDMA_ERR_NO_ERROR, 0x1c },
	{ "1c 0a 06 03 6869", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x1c },
	{ "1d 0a 02 6869", QRDMA_ERR_NO_ERROR, 0x1d },
	{ "30", QRDMA_ERR_NO_ERROR, 0x30 },
	{ "31 00", QRDMA_ERR_NO_ERROR, 0x31 },
	{ "31 01", QRDMA_ERR_FRAME_ENCODING_ERROR, 0x31 },
};

Q_TEST(frame_limits)
{
	struct qrdma_frame f;
	struct qrdma_cursor c;
	u8 buf[64];
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(frame_vectors); i++) {
		const struct frame_vector *v = &frame_vectors[i];
		u64 err;

		n = q_hex(buf, sizeof(buf), v->hex);
		qrdma_cursor_init(&c, buf, n);
		err = qrdma_frame_decode(&c, ANYWHERE, &f);
		if (err != v->err || f.type != v->type)
			Q_FAIL(test, "vector %s: error %llu, type %llu", v->hex, err, f.type);
		Q_EXPECT_PTR_EQ(test, c.pos, err ? buf : buf + n);
	}
}

/* RFC 9000 s12.4, s12.5, s19.7, s19.20: the packet and the sender must be right */
Q_TEST(frame_not_permitted)
{
	static const u32 packets[] = {
		QRDMA_FA_INITIAL, QRDMA_FA_HANDSHAKE, QRDMA_FA_0RTT, QRDMA_FA_1RTT,
	};
	static const char letters[] = "IH01";
	const struct frame_fact *fact;
	struct qrdma_frame in, out;
	struct qrdma_cursor c;
	struct qrdma_writer w;
	u64 seed = q_seed(), err;
	u32 type, i, role;
	u8 buf[256];

	for (type = 0; type < __QRDMA_FRAME_MAX; type++) {
		fact = frame_fact(type);
		if (!fact)
			continue;
		frame_random(&in, type, &seed);
		qrdma_writer_init(&w, buf, sizeof(buf));
		Q_ASSERT_TRUE(test, qrdma_frame_encode(&w, &in));
		for (i = 0; i < 8; i++) {
			role = i & 4 ? QRDMA_FA_SERVER : QRDMA_FA_CLIENT;
			err = strchr(fact->packets, letters[i & 3]) &&
			      (role == QRDMA_FA_SERVER || !strchr(fact->spec, 'S')) ?
			      QRDMA_ERR_NO_ERROR : QRDMA_ERR_PROTOCOL_VIOLATION;
			qrdma_cursor_init(&c, buf, w.pos - buf);
			Q_EXPECT_EQ(test, qrdma_frame_decode(&c, packets[i & 3] | role, &out), err);
			Q_EXPECT_EQ(test, out.type, type);
		}
	}
}

/* The payload of the server's Initial in RFC 9001 A.3: an ACK and a CRYPTO frame. */
Q_TEST(frame_rfc9001_payload)
{
	struct qrdma_frame f;
	struct qrdma_cursor c;
	u8 buf[128];
	size_t n;

	n = q_hex(buf, sizeof(buf),
		  "02000000000600405a020000560303ee fce7f7b37ba1d1632e96677825ddf739 "
		  "88cfc79825df566dc5430b9a045a1200 130100002e00330024001d00209d3c94 "
		  "0d89690b84d08a60993c144eca684d10 81287c834d5311bcf32bb9da1a002b00 "
		  "020304");
	Q_ASSERT_EQ(test, n, 99);
	qrdma_cursor_init(&c, buf, n);
	Q_ASSERT_EQ(test, qrdma_frame_decode(&c, QRDMA_FA_INITIAL | QRDMA_FA_SERVER, &f), 0);
	Q_EXPECT_EQ(test, f.type, QRDMA_FRAME_ACK);
	Q_EXPECT_EQ(test, f.ack.largest, 0);
	Q_EXPECT_EQ(test, f.ack.first, 0);
	Q_EXPECT_EQ(test, f.ack.count, 0);
	Q_EXPECT_FALSE(test, f.ack.ecn);
	Q_ASSERT_EQ(test, qrdma_frame_decode(&c, QRDMA_FA_INITIAL | QRDMA_FA_SERVER, &f), 0);
	Q_EXPECT_EQ(test, f.type, QRDMA_FRAME_CRYPTO);
	Q_EXPECT_EQ(test, f.crypto.off, 0);
	Q_EXPECT_EQ(test, f.crypto.len, 0x5a);
	Q_EXPECT_PTR_EQ(test, f.crypto.data, buf + 9);
	Q_EXPECT_EQ(test, qrdma_cursor_left(&c), 0);
}

Q_TEST(frame_padding_is_one)
{
	struct qrdma_frame f;
	struct qrdma_cursor c;
	u8 buf[10] = { 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 };

	qrdma_cursor_init(&c, buf, sizeof(buf));
	Q_EXPECT_EQ(test, qrdma_frame_decode(&c, ANYWHERE, &f), 0);
	Q_EXPECT_EQ(test, f.padding.len, 5);
	Q_EXPECT_EQ(test, qrdma_frame_decode(&c, ANYWHERE, &f), 0);
	Q_EXPECT_EQ(test, f.type, QRDMA_FRAME_PING);
	Q_EXPECT_EQ(test, qrdma_frame_decode(&c, ANYWHERE, &f), 0);
	Q_EXPECT_EQ(test, f.padding.len, 4);
	Q_EXPECT_EQ(test, qrdma_cursor_left(&c), 0);
}

/* Values that no decoder would take are not sent either. */
Q_TEST(frame_encode_refuses)
{
	struct qrdma_frame f;
	struct qrdma_writer w;
	u8 buf[128];

#define REFUSED(t, ...) do {							\
	f = (struct qrdma_frame){ .type = (t), __VA_ARGS__ };			\
	qrdma_writer_init(&w, buf, sizeof(buf));				\
	Q_EXPECT_FALSE(test, qrdma_frame_encode(&w, &f));			\
	Q_EXPECT_PTR_EQ(test, w.pos, buf);					\
} while (0)

	REFUSED(QRDMA_FRAME_PADDING);
	REFUSED(QRDMA_FRAME_ACK, .ack.ecn = true);
	REFUSED(QRDMA_FRAME_ACK_ECN);
	REFUSED(QRDMA_FRAME_NEW_TOKEN);
	REFUSED(QRDMA_FRAME_MAX_DATA, .max.max = QRDMA_VARINT_MAX + 1);
	REFUSED(QRDMA_FRAME_MAX_STREAMS_UNI, .max.max = QRDMA_STREAMS_MAX + 1);
	REFUSED(QRDMA_FRAME_STREAMS_BLOCKED_BIDI, .max.max = QRDMA_STREAMS_MAX + 1);
	REFUSED(QRDMA_FRAME_CRYPTO, .crypto.off = QRDMA_VARINT_MAX, .crypto.len = 1);
	REFUSED(QRDMA_FRAME_STREAM, .stream.off = QRDMA_VARINT_MAX, .stream.len = 1);
	REFUSED(QRDMA_FRAME_NEW_CONNECTION_ID, .new_cid.cid = frame_bytes,
		.new_cid.reset_token = frame_bytes);
	REFUSED(QRDMA_FRAME_NEW_CONNECTION_ID, .new_cid.cid = frame_bytes,
		.new_cid.reset_token = frame_bytes, .new_cid.len = 21);
	REFUSED(QRDMA_FRAME_NEW_CONNECTION_ID, .new_cid.cid = frame_bytes,
		.new_cid.reset_token = frame_bytes, .new_cid.len = 8,
		.new_cid.retire_prior_to = 1);
	REFUSED(0x1f);
	REFUSED(0x32);
	REFUSED(0x101);
#undef REFUSED
}

/* Without data the frame ends where the caller puts it. */
Q_TEST(frame_data_sent_separately)
{
	struct qrdma_frame f = {
		.type = QRDMA_FRAME_STREAM | QRDMA_STREAM_LEN,
		.stream = { .id = 4, .off = 70, .len = 300, .fin = true },
	};
	struct qrdma_writer w;
	u8 buf[16], want[16];
	size_t n;

	n = q_hex(want, sizeof(want), "0f 04 4046 412c");
	qrdma_writer_init(&w, buf, n);
	Q_ASSERT_TRUE(test, qrdma_frame_encode(&w, &f));
	Q_EXPECT_EQ(test, w.pos - buf, n);
	Q_EXPECT_MEMEQ(test, buf, want, n);
	Q_EXPECT_EQ(test, qrdma_frame_size(&f), n + 300);

	/* the last frame of a packet needs no length; flags are made from the fields */
	f.type = QRDMA_FRAME_STREAM | QRDMA_STREAM_OFF;
	f.stream.off = 0;
	qrdma_writer_init(&w, buf, sizeof(buf));
	Q_ASSERT_TRUE(test, qrdma_frame_encode(&w, &f));
	Q_EXPECT_EQ(test, w.pos - buf, 2);
	Q_EXPECT_MEMEQ(test, buf, "\x09\x04", 2);
	Q_EXPECT_EQ(test, qrdma_frame_size(&f), 2 + 300);

	f = (struct qrdma_frame){ .type = QRDMA_FRAME_DATAGRAM_LEN, .datagram.len = 9 };
	qrdma_writer_init(&w, buf, sizeof(buf));
	Q_ASSERT_TRUE(test, qrdma_frame_encode(&w, &f));
	Q_EXPECT_MEMEQ(test, buf, "\x31\x09", 2);
	f = (struct qrdma_frame){ .type = QRDMA_FRAME_CRYPTO, .crypto.len = 9 };
	qrdma_writer_init(&w, buf, sizeof(buf));
	Q_ASSERT_TRUE(test, qrdma_frame_encode(&w, &f));
	Q_EXPECT_MEMEQ(test, buf, "\x06\x00\x09", 3);
}

#define MANY	100

/* Ascending ranges with gaps, as a range set holds them. */
static u32 frame_random_ranges(struct qrdma_range *range, u64 *seed)
{
	u32 n = 1 + q_rand(seed) % MANY, i;
	u32 shift = 40 + q_rand(seed) % 24;
	u64 at = q_rand(seed) >> shift;

	for (i = 0; i < n; i++) {
		range[i].lo = at;
		range[i].hi = at + (q_rand(seed) >> shift);
		at = range[i].hi + 2 + (q_rand(seed) >> shift);
	}
	return n;
}

Q_TEST(frame_ack_round_trip)
{
	struct qrdma_range *range = q_zalloc(test, MANY * sizeof(*range)), got;
	u8 *buf = q_zalloc(test, ROOM), *copy = q_zalloc(test, ROOM);
	struct qrdma_ack_iter it;
	struct qrdma_frame f;
	struct qrdma_cursor c;
	struct qrdma_writer w;
	u64 seed = q_seed();
	u32 n, i, round, cut, size;

	Q_ASSERT_NOT_NULL(test, range);
	Q_ASSERT_NOT_NULL(test, buf);
	Q_ASSERT_NOT_NULL(test, copy);
	for (round = 0; round < 300; round++) {
		struct qrdma_ack ack = {
			.delay = frame_rand_varint(&seed),
			.ecn = round & 1,
			.ect0 = frame_rand_varint(&seed),
			.ect1 = frame_rand_varint(&seed),
			.ce = frame_rand_varint(&seed),
		};

		n = frame_random_ranges(range, &seed);
		qrdma_writer_init(&w, buf, ROOM);
		Q_ASSERT_EQ(test, qrdma_ack_encode(&w, &ack, range, n), n);
		size = w.pos - buf;
		for (cut = 0; cut < size; cut++) {
			qrdma_cursor_init(&c, buf, cut);
			Q_ASSERT_EQ(test, qrdma_frame_decode(&c, ANYWHERE, &f),
				    QRDMA_ERR_FRAME_ENCODING_ERROR);
		}
		qrdma_cursor_init(&c, buf, size);
		Q_ASSERT_EQ(test, qrdma_frame_decode(&c, ANYWHERE, &f), QRDMA_ERR_NO_ERROR);
		Q_ASSERT_EQ(test, qrdma_cursor_left(&c), 0);
		Q_ASSERT_EQ(test, f.type, ack.ecn ? QRDMA_FRAME_ACK_ECN : QRDMA_FRAME_ACK);
		Q_ASSERT_EQ(test, f.ack.largest, range[n - 1].hi);
		Q_ASSERT_EQ(test, f.ack.delay, ack.delay);
		Q_ASSERT_EQ(test, f.ack.ecn, ack.ecn);
		Q_ASSERT_EQ(test, f.ack.ect0, ack.ecn ? ack.ect0 : 0);
		Q_ASSERT_EQ(test, f.ack.ect1, ack.ecn ? ack.ect1 : 0);
		Q_ASSERT_EQ(test, f.ack.ce, ack.ecn ? ack.ce : 0);

		qrdma_ack_iter_init(&it, &f.ack);
		for (i = n; i; i--) {
			Q_ASSERT_TRUE(test, qrdma_ack_iter_next(&it, &got));
			Q_ASSERT_EQ(test, got.lo, range[i - 1].lo);
			Q_ASSERT_EQ(test, got.hi, range[i - 1].hi);
		}
		Q_ASSERT_FALSE(test, qrdma_ack_iter_next(&it, &got));
		Q_ASSERT_FALSE(test, qrdma_ack_iter_next(&it, &got));

		/* what was decoded can be encoded as it is */
		Q_ASSERT_EQ(test, qrdma_frame_size(&f), size);
		qrdma_writer_init(&w, copy, size);
		Q_ASSERT_TRUE(test, qrdma_frame_encode(&w, &f));
		Q_ASSERT_MEMEQ(test, buf, copy, size);
	}
}

/* For every room: as many ranges as fit, not one less, and those the highest. */
Q_TEST(frame_ack_space_limit)
{
	struct qrdma_range *range = q_zalloc(test, MANY * sizeof(*range));
	u8 *buf = q_zalloc(test, ROOM);
	struct qrdma_ack ack = { .delay = 1000 };
	u32 n, k, written, round, room;
	struct qrdma_frame f;
	struct qrdma_cursor c;
	struct qrdma_writer w;
	u64 seed = q_seed();
	u32 need[MANY + 2];

	Q_ASSERT_NOT_NULL(test, range);
	Q_ASSERT_NOT_NULL(test, buf);
	for (round = 0; round < 20; round++) {
		ack.ecn = round & 1;
		n = round ? frame_random_ranges(range, &seed) : 0;
		/* once with more ranges than a one-byte count can tell */
		for (; !round && n < MANY; n++)
			range[n] = (struct qrdma_range){ 3 * n, 3 * n };
		/* bytes that the k highest take */
		for (k = 1; k <= n; k++) {
			qrdma_writer_init(&w, buf, ROOM);
			Q_ASSERT_EQ(test, qrdma_ack_encode(&w, &ack, range + n - k, k), k);
			need[k] = w.pos - buf;
		}
		need[n + 1] = U32_MAX;
		for (room = 0, k = 0; room <= need[n] + 1; room++) {
			while (need[k + 1] <= room)
				k++;
			qrdma_writer_init(&w, buf, room);
			written = qrdma_ack_encode(&w, &ack, range, n);
			Q_ASSERT_EQ(test, written, k);
			Q_ASSERT_EQ(test, w.pos - buf, k ? need[k] : 0);
			if (!k)
				continue;
			qrdma_cursor_init(&c, buf, w.pos - buf);
			Q_ASSERT_EQ(test, qrdma_frame_decode(&c, ANYWHERE, &f), 0);
			Q_ASSERT_EQ(test, f.ack.largest, range[n - 1].hi);
			Q_ASSERT_EQ(test, f.ack.count, k - 1);
		}
	}
}

Q_TEST(frame_ack_extremes)
{
	struct qrdma_range range[2] = { { 0, 0 }, { QRDMA_PN_MAX, QRDMA_PN_MAX } }, got;
	struct qrdma_ack ack = { .delay = 0 };
	struct qrdma_ack_iter it;
	struct qrdma_frame f;
	struct qrdma_cursor c;
	struct qrdma_writer w;
	u8 buf[64];

	qrdma_writer_init(&w, buf, sizeof(buf));
	Q_ASSERT_EQ(test, qrdma_ack_encode(&w, &ack, range, 2), 2);
	qrdma_cursor_init(&c, buf, w.pos - buf);
	Q_ASSERT_EQ(test, qrdma_frame_decode(&c, ANYWHERE, &f), 0);
	qrdma_ack_iter_init(&it, &f.ack);
	Q_EXPECT_TRUE(test, qrdma_ack_iter_next(&it, &got));
	Q_EXPECT_EQ(test, got.lo, QRDMA_PN_MAX);
	Q_EXPECT_TRUE(test, qrdma_ack_iter_next(&it, &got));
	Q_EXPECT_EQ(test, got.hi, 0);
	Q_EXPECT_FALSE(test, qrdma_ack_iter_next(&it, &got));

	/* everything at once */
	range[0].hi = QRDMA_PN_MAX;
	qrdma_writer_init(&w, buf, sizeof(buf));
	Q_ASSERT_EQ(test, qrdma_ack_encode(&w, &ack, range, 1), 1);
	qrdma_cursor_init(&c, buf, w.pos - buf);
	Q_ASSERT_EQ(test, qrdma_frame_decode(&c, ANYWHERE, &f), 0);
	qrdma_ack_iter_init(&it, &f.ack);
	Q_EXPECT_TRUE(test, qrdma_ack_iter_next(&it, &got));
	Q_EXPECT_EQ(test, got.lo, 0);
	Q_EXPECT_EQ(test, got.hi, QRDMA_PN_MAX);

	/* a delay that no varint can hold */
	ack.delay = U64_MAX;
	qrdma_writer_init(&w, buf, sizeof(buf));
	Q_EXPECT_EQ(test, qrdma_ack_encode(&w, &ack, range, 1), 0);
	Q_EXPECT_PTR_EQ(test, w.pos, buf);
}

Q_SUITE("qrdma-frame",
	Q_CASE(frame_table_is_complete),
	Q_CASE(frame_round_trip),
	Q_CASE(frame_limits),
	Q_CASE(frame_not_permitted),
	Q_CASE(frame_rfc9001_payload),
	Q_CASE(frame_padding_is_one),
	Q_CASE(frame_encode_refuses),
	Q_CASE(frame_data_sent_separately),
	Q_CASE(frame_ack_round_trip),
	Q_CASE(frame_ack_space_limit),
	Q_CASE(frame_ack_extremes));
