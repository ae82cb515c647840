// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of net/qrdma/core/cursor.h.
 */
#include "qtest.h"
#include "cursor.h"

struct varint_case {
	const char *hex;
	u64 value;
	bool shortest;
};

/* RFC 9000 A.1, then the ends of each length (s16 table 4) */
static const struct varint_case varint_cases[] = {
	{ "c2197c5eff14e88c", 151288809941952652ULL, true },
	{ "9d7f3e7d", 494878333, true },
	{ "7bbd", 15293, true },
	{ "25", 37, true },
	{ "4025", 37, false },
	{ "00", 0, true },
	{ "3f", 63, true },
	{ "4040", 64, true },
	{ "7fff", 16383, true },
	{ "80004000", 16384, true },
	{ "bfffffff", 1073741823, true },
	{ "c000000040000000", 1073741824, true },
	{ "ffffffffffffffff", QRDMA_VARINT_MAX, true },
	{ "80000000", 0, false },
	{ "c000000000000000", 0, false },
};

Q_TEST(cursor_varint_vectors)
{
	struct qrdma_cursor c;
	struct qrdma_writer w;
	u8 in[8], out[8];
	size_t n, i, cut;
	u64 v;

	for (i = 0; i < ARRAY_SIZE(varint_cases); i++) {
		n = q_hex(in, sizeof(in), varint_cases[i].hex);
		Q_ASSERT_GT(test, n, 0);
		qrdma_cursor_init(&c, in, n);
		Q_EXPECT_TRUE(test, qrdma_cursor_varint(&c, &v));
		Q_EXPECT_EQ(test, v, varint_cases[i].value);
		Q_EXPECT_EQ(test, qrdma_cursor_left(&c), 0);

		for (cut = 0; cut < n; cut++) {
			qrdma_cursor_init(&c, in, cut);
			Q_EXPECT_FALSE(test, qrdma_cursor_varint(&c, &v));
			Q_EXPECT_EQ(test, qrdma_cursor_left(&c), cut);
		}
		if (!varint_cases[i].shortest)
			continue;
		Q_EXPECT_EQ(test, qrdma_varint_len(varint_cases[i].value), n);
		qrdma_writer_init(&w, out, n);
		Q_EXPECT_TRUE(test, qrdma_writer_varint(&w, varint_cases[i].value));
		Q_EXPECT_EQ(test, qrdma_writer_room(&w), 0);
		Q_EXPECT_MEMEQ(test, in, out, n);
		qrdma_writer_init(&w, out, n - 1);
		Q_EXPECT_FALSE(test, qrdma_writer_varint(&w, varint_cases[i].value));
		Q_EXPECT_EQ(test, qrdma_writer_room(&w), n - 1);
	}
}

Q_TEST(cursor_varint_too_large)
{
	struct qrdma_writer w;
	u8 out[16];

	qrdma_writer_init(&w, out, sizeof(out));
	Q_EXPECT_FALSE(test, qrdma_writer_varint(&w, QRDMA_VARINT_MAX + 1));
	Q_EXPECT_FALSE(test, qrdma_writer_varint(&w, U64_MAX));
	Q_EXPECT_EQ(test, qrdma_writer_room(&w), sizeof(out));
}

Q_TEST(cursor_varint_random)
{
	u64 seed = q_seed(), v, got;
	struct qrdma_cursor c;
	struct qrdma_writer w;
	u8 buf[8];
	int i;

	for (i = 0; i < 20000; i++) {
		v = q_rand(&seed) >> (2 + q_rand(&seed) % 62);
		qrdma_writer_init(&w, buf, sizeof(buf));
		Q_ASSERT_TRUE(test, qrdma_writer_varint(&w, v));
		Q_ASSERT_EQ(test, w.pos - buf, qrdma_varint_len(v));
		qrdma_cursor_init(&c, buf, w.pos - buf);
		Q_ASSERT_TRUE(test, qrdma_cursor_varint(&c, &got));
		Q_ASSERT_EQ(test, got, v);
		Q_ASSERT_EQ(test, qrdma_cursor_left(&c), 0);
	}
}

Q_TEST(cursor_varint_fit)
{
	u32 space, n;

	for (space = 1; space < 70000; space++) {
		n = qrdma_varint_fit(space);
		Q_ASSERT_LE(test, qrdma_varint_len(n) + n, space);
		Q_ASSERT_GT(test, qrdma_varint_len(n + 1) + n + 1, space);
	}
}

Q_TEST(cursor_fixed_width)
{
	u8 buf[15], copy[8];
	const u8 *data;
	struct qrdma_cursor c;
	struct qrdma_writer w;
	u16 b;
	u32 d;
	u8 a;

	qrdma_writer_init(&w, buf, 11);
	Q_EXPECT_TRUE(test, qrdma_writer_u8(&w, 0x01));
	Q_EXPECT_TRUE(test, qrdma_writer_u16(&w, 0x0203));
	Q_EXPECT_TRUE(test, qrdma_writer_u32(&w, 0x04050607));
	Q_EXPECT_TRUE(test, qrdma_writer_bytes(&w, "abc", 3));
	Q_EXPECT_FALSE(test, qrdma_writer_u16(&w, 0));
	Q_EXPECT_FALSE(test, qrdma_writer_u32(&w, 0));
	Q_EXPECT_FALSE(test, qrdma_writer_bytes(&w, "de", 2));
	Q_EXPECT_FALSE(test, qrdma_writer_zero(&w, 2));
	Q_EXPECT_TRUE(test, qrdma_writer_zero(&w, 1));
	Q_EXPECT_FALSE(test, qrdma_writer_u8(&w, 0));
	Q_EXPECT_TRUE(test, qrdma_writer_bytes(&w, NULL, 0));
	Q_EXPECT_MEMEQ(test, buf, "\1\2\3\4\5\6\7abc", 11);

	qrdma_cursor_init(&c, buf, 11);
	Q_EXPECT_TRUE(test, qrdma_cursor_u8(&c, &a));
	Q_EXPECT_TRUE(test, qrdma_cursor_u16(&c, &b));
	Q_EXPECT_TRUE(test, qrdma_cursor_u32(&c, &d));
	Q_EXPECT_EQ(test, a, 0x01);
	Q_EXPECT_EQ(test, b, 0x0203);
	Q_EXPECT_EQ(test, d, 0x04050607);
	Q_EXPECT_FALSE(test, qrdma_cursor_bytes(&c, 5, &data));
	Q_EXPECT_FALSE(test, qrdma_cursor_bytes(&c, U64_MAX, &data));
	Q_EXPECT_FALSE(test, qrdma_cursor_copy(&c, copy, 5));
	Q_EXPECT_TRUE(test, qrdma_cursor_copy(&c, copy, 3));
	Q_EXPECT_MEMEQ(test, copy, "abc", 3);
	Q_EXPECT_FALSE(test, qrdma_cursor_u16(&c, &b));
	Q_EXPECT_FALSE(test, qrdma_cursor_u32(&c, &d));
	Q_EXPECT_TRUE(test, qrdma_cursor_bytes(&c, 1, &data));
	Q_EXPECT_PTR_EQ(test, data, buf + 10);
	Q_EXPECT_FALSE(test, qrdma_cursor_u8(&c, &a));
	Q_EXPECT_TRUE(test, qrdma_cursor_bytes(&c, 0, &data));

	qrdma_store_be64(buf, 0x0102030405060708ULL);
	Q_EXPECT_EQ(test, qrdma_load_be64(buf), 0x0102030405060708ULL);
	Q_EXPECT_EQ(test, buf[0], 1);
}

Q_TEST(cursor_pn_len)
{
	/* RFC 9000 A.2 */
	Q_EXPECT_EQ(test, qrdma_pn_len(0xac5c02, 0xabe8b3 + 1), 2);
	Q_EXPECT_EQ(test, qrdma_pn_len(0xace8fe, 0xabe8b3 + 1), 3);
	/* more than twice as large a range as what is outstanding (s17.1) */
	Q_EXPECT_EQ(test, qrdma_pn_len(0, 0), 1);
	Q_EXPECT_EQ(test, qrdma_pn_len(126, 0), 1);
	Q_EXPECT_EQ(test, qrdma_pn_len(127, 0), 2);
	Q_EXPECT_EQ(test, qrdma_pn_len(1127, 1001), 1);
	Q_EXPECT_EQ(test, qrdma_pn_len(1128, 1001), 2);
	Q_EXPECT_EQ(test, qrdma_pn_len(32766, 0), 2);
	Q_EXPECT_EQ(test, qrdma_pn_len(32767, 0), 3);
	Q_EXPECT_EQ(test, qrdma_pn_len(8388606, 0), 3);
	Q_EXPECT_EQ(test, qrdma_pn_len(8388607, 0), 4);
	Q_EXPECT_EQ(test, qrdma_pn_len(2147483646, 0), 4);
	Q_EXPECT_EQ(test, qrdma_pn_len(2147483647, 0), 0);
	Q_EXPECT_EQ(test, qrdma_pn_len(QRDMA_PN_MAX, QRDMA_PN_MAX), 1);
	Q_EXPECT_EQ(test, qrdma_pn_len(QRDMA_PN_MAX, 0), 0);
}

Q_TEST(cursor_pn_decode)
{
	/* RFC 9000 A.3 */
	Q_EXPECT_EQ(test, qrdma_pn_decode(0xa82f30ea + 1, 0x9b32, 2), 0xa82f9b32);
	Q_EXPECT_EQ(test, qrdma_pn_decode(0, 0, 1), 0);
	Q_EXPECT_EQ(test, qrdma_pn_decode(0, 255, 1), 255);
	Q_EXPECT_EQ(test, qrdma_pn_decode(0x100, 0xff, 1), 0xff);
	Q_EXPECT_EQ(test, qrdma_pn_decode(0xff, 0x00, 1), 0x100);
	/* the end of the numbers: nothing beyond it, whatever comes */
	Q_EXPECT_EQ(test, qrdma_pn_decode(QRDMA_PN_MAX, 0xff, 1), QRDMA_PN_MAX);
	Q_EXPECT_EQ(test, qrdma_pn_decode(QRDMA_PN_MAX + 1, 0xff, 1), QRDMA_PN_MAX);
	Q_EXPECT_LE(test, qrdma_pn_decode(QRDMA_PN_MAX, 0, 1), QRDMA_PN_MAX);
	Q_EXPECT_LE(test, qrdma_pn_decode(QRDMA_PN_MAX + 1, 0, 1), QRDMA_PN_MAX);
	Q_EXPECT_LE(test, qrdma_pn_decode(QRDMA_PN_MAX + 1, 1, 4), QRDMA_PN_MAX);
}

/* the closest one wins, and of two equally close ones the higher: searched for by hand */
Q_TEST(cursor_pn_decode_closest)
{
	u64 expected, pn, full, best, dist, best_dist;

	for (expected = 0; expected < 800; expected++) {
		for (pn = 0; pn < 256; pn++) {
			best = pn;
			best_dist = U64_MAX;
			for (full = pn; full < 1400; full += 256) {
				dist = full > expected ? full - expected : expected - full;
				if (dist <= best_dist) {
					best = full;
					best_dist = dist;
				}
			}
			Q_ASSERT_EQ(test, qrdma_pn_decode(expected, pn, 1), best);
		}
	}
}

Q_TEST(cursor_pn_random)
{
	u64 seed = q_seed(), acked, pn, expected, got;
	u8 buf[4];
	u32 len;
	int i;

	for (i = 0; i < 50000; i++) {
		acked = q_rand(&seed) >> (2 + q_rand(&seed) % 60);
		pn = acked + (q_rand(&seed) & ((1ULL << (q_rand(&seed) % 31)) - 1));
		pn = min_t(u64, pn, QRDMA_PN_MAX);
		len = qrdma_pn_len(pn, acked);
		Q_ASSERT_GE(test, len, 1);
		/* the receiver has seen what it acknowledged, perhaps all that was sent since */
		expected = acked + (pn > acked ? q_rand(&seed) % (pn - acked + 1) : 0);
		qrdma_pn_store(buf, pn, len);
		got = qrdma_pn_load(buf, len);
		Q_ASSERT_EQ(test, got, pn & ((1ULL << (8 * len)) - 1));
		Q_ASSERT_EQ(test, qrdma_pn_decode(expected, got, len), pn);
	}
}

Q_SUITE("qrdma-cursor",
	Q_CASE(cursor_varint_vectors),
	Q_CASE(cursor_varint_too_large),
	Q_CASE(cursor_varint_random),
	Q_CASE(cursor_varint_fit),
	Q_CASE(cursor_fixed_width),
	Q_CASE(cursor_pn_len),
	Q_CASE(cursor_pn_decode),
	Q_CASE(cursor_pn_decode_closest),
	Q_CASE(cursor_pn_random));
