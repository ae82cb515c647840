// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of net/qrdma/core/header.c, among them the packets of RFC 9001 appendix A.
 */
#include "qtest.h"
#include "header.h"

#define DGRAM	1500

/* a header with two connection ids; the rest is for the test to fill in */
static void header_template(struct qrdma_hdr *hdr, u8 type, const u8 *ids, u8 dcid_len, u8 scid_len)
{
	memset(hdr, 0, sizeof(*hdr));
	hdr->type = type;
	hdr->dcid = ids;
	hdr->dcid_len = dcid_len;
	hdr->scid = ids + dcid_len;
	hdr->scid_len = scid_len;
	hdr->pn_len = 1;
}

/* RFC 9001 A.2: the client's Initial, 1200 bytes; only its head matters to us */
Q_TEST(header_rfc9001_client_initial)
{
	u8 *pkt = q_zalloc(test, 1200);
	u8 want[64], dcid[8], mask[5];
	struct qrdma_writer w;
	struct qrdma_hdr hdr;

	Q_ASSERT_NOT_NULL(test, pkt);
	q_hex(dcid, sizeof(dcid), "8394c8f03e515708");
	q_hex(mask, sizeof(mask), "437b9aec36");

	header_template(&hdr, QRDMA_PKT_INITIAL, dcid, 8, 0);
	hdr.pn = 2;
	hdr.pn_len = 4;
	qrdma_writer_init(&w, pkt, 1200);
	Q_ASSERT_TRUE(test, qrdma_hdr_build_long(&w, &hdr));
	Q_EXPECT_EQ(test, w.pos - pkt, 22);
	Q_EXPECT_EQ(test, qrdma_hdr_long_size(&hdr), 22);
	Q_EXPECT_EQ(test, hdr.pn_off, 18);
	qrdma_hdr_set_length(&hdr, pkt, 1162 + 16);
	q_hex(want, sizeof(want), "c300000001088394c8f03e5157080000449e00000002");
	Q_EXPECT_MEMEQ(test, pkt, want, 22);

	q_hex(pkt + 22, 16, "d1b1c98dd7689fb8ec11d242b123dc9b");
	qrdma_hdr_protect(pkt, hdr.pn_off, hdr.pn_len, mask);
	q_hex(want, sizeof(want),
	      "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11");
	Q_EXPECT_MEMEQ(test, pkt, want, 32);

	Q_ASSERT_EQ(test, qrdma_hdr_parse(&hdr, pkt, 1200), QRDMA_HDR_OK);
	Q_EXPECT_EQ(test, hdr.type, QRDMA_PKT_INITIAL);
	Q_EXPECT_EQ(test, hdr.version, QRDMA_QUIC_V1);
	Q_EXPECT_EQ(test, hdr.dcid_len, 8);
	Q_EXPECT_MEMEQ(test, hdr.dcid, dcid, 8);
	Q_EXPECT_EQ(test, hdr.scid_len, 0);
	Q_EXPECT_EQ(test, hdr.token_len, 0);
	Q_EXPECT_EQ(test, hdr.len, 1200);
	Q_EXPECT_EQ(test, hdr.pn_off, 18);
	Q_EXPECT_PTR_EQ(test, qrdma_hdr_sample(&hdr, pkt), pkt + 22);
	qrdma_hdr_unprotect(&hdr, pkt, mask);
	Q_EXPECT_EQ(test, hdr.first, 0xc3);
	Q_EXPECT_EQ(test, hdr.pn_len, 4);
	Q_EXPECT_EQ(test, hdr.pn, 2);
	Q_EXPECT_FALSE(test, qrdma_hdr_reserved(&hdr));
}

/* RFC 9001 A.3 */
Q_TEST(header_rfc9001_server_initial)
{
	u8 pkt[160], mask[5], built[32], want[32];
	struct qrdma_hdr hdr, out;
	struct qrdma_writer w;
	size_t len;

	len = q_hex(pkt, sizeof(pkt),
		    "cf000000010008f067a5502a4262b500 4075c0d95a482cd0991cd25b0aac406a "
		    "5816b6394100f37a1c69797554780bb3 8cc5a99f5ede4cf73c3ec2493a1839b3 "
		    "dbcba3f6ea46c5b7684df3548e7ddeb9 c3bf9c73cc3f3bded74b562bfb19fb84 "
		    "022f8ef4cdd93795d77d06edbb7aaf2f 58891850abbdca3d20398c276456cbc4 "
		    "2158407dd074ee");
	Q_ASSERT_EQ(test, len, 135);
	q_hex(mask, sizeof(mask), "2ec0d8356a");
	Q_ASSERT_EQ(test, qrdma_hdr_parse(&hdr, pkt, len), QRDMA_HDR_OK);
	Q_EXPECT_EQ(test, hdr.len, len);
	q_hex(want, sizeof(want), "2cd0991cd25b0aac406a5816b6394100");
	Q_EXPECT_MEMEQ(test, qrdma_hdr_sample(&hdr, pkt), want, QRDMA_HP_SAMPLE_LEN);
	qrdma_hdr_unprotect(&hdr, pkt, mask);
	Q_EXPECT_EQ(test, hdr.pn, 1);
	Q_EXPECT_EQ(test, hdr.pn_len, 2);
	q_hex(want, sizeof(want), "c1000000010008f067a5502a4262b50040750001");
	Q_EXPECT_MEMEQ(test, pkt, want, 20);

	/* and the other way round, from what was parsed */
	out = hdr;
	qrdma_writer_init(&w, built, sizeof(built));
	Q_ASSERT_TRUE(test, qrdma_hdr_build_long(&w, &out));
	qrdma_hdr_set_length(&out, built, len - 20);
	Q_EXPECT_EQ(test, w.pos - built, 20);
	Q_EXPECT_MEMEQ(test, built, want, 20);
}

/* RFC 9001 A.4 */
Q_TEST(header_rfc9001_retry)
{
	u8 pkt[64], built[64];
	struct qrdma_writer w;
	struct qrdma_hdr hdr;
	size_t len;

	len = q_hex(pkt, sizeof(pkt),
		    "ff000000010008f067a5502a4262b574 6f6b656e04a265ba2eff4d829058fb3f "
		    "0f2496ba");
	Q_ASSERT_EQ(test, len, 36);
	Q_ASSERT_EQ(test, qrdma_hdr_parse(&hdr, pkt, len), QRDMA_HDR_OK);
	Q_EXPECT_EQ(test, hdr.type, QRDMA_PKT_RETRY);
	Q_EXPECT_EQ(test, hdr.token_len, 5);
	Q_EXPECT_MEMEQ(test, hdr.token, "token", 5);
	Q_EXPECT_PTR_EQ(test, hdr.tag, pkt + len - 16);
	Q_EXPECT_EQ(test, hdr.dcid_len, 0);
	Q_EXPECT_EQ(test, hdr.scid_len, 8);

	qrdma_writer_init(&w, built, len);
	Q_ASSERT_TRUE(test, qrdma_hdr_build_retry(&w, &hdr, 0xf));
	Q_EXPECT_EQ(test, w.pos - built, len - 16);
	Q_EXPECT_MEMEQ(test, built, pkt, len - 16);
	qrdma_writer_init(&w, built, len - 1);
	Q_EXPECT_FALSE(test, qrdma_hdr_build_retry(&w, &hdr, 0));
	Q_EXPECT_PTR_EQ(test, w.pos, built);

	/* cut down to no token, then to no tag (s17.2.5.2) */
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&hdr, pkt, len - 5), QRDMA_HDR_RETRY);
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&hdr, pkt, len - 6), QRDMA_HDR_TRUNCATED);
}

/* RFC 9001 A.5; its connection id is empty, which we send to and never receive */
Q_TEST(header_rfc9001_short)
{
	struct qrdma_cid none = { .len = 0 };
	u8 pkt[32], mask[5], want[32];
	struct qrdma_writer w;
	struct qrdma_hdr hdr;

	q_hex(mask, sizeof(mask), "aefefe7d03");
	qrdma_writer_init(&w, pkt, sizeof(pkt));
	Q_ASSERT_TRUE(test, qrdma_hdr_build_short(&w, &none, 0, 654360564, 3));
	q_hex(want, sizeof(want), "4200bff4");
	Q_ASSERT_EQ(test, w.pos - pkt, 4);
	Q_EXPECT_MEMEQ(test, pkt, want, 4);
	q_hex(pkt + 4, 17, "655e5cd55c41f69080575d7999c25a5bfb");
	qrdma_hdr_protect(pkt, 1, 3, mask);
	q_hex(want, sizeof(want), "4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
	Q_EXPECT_MEMEQ(test, pkt, want, 21);

	memset(&hdr, 0, sizeof(hdr));
	hdr.type = QRDMA_PKT_SHORT;
	hdr.pn_off = 1;
	q_hex(want, sizeof(want), "5e5cd55c41f69080575d7999c25a5bfb");
	Q_EXPECT_MEMEQ(test, qrdma_hdr_sample(&hdr, pkt), want, 16);
	qrdma_hdr_unprotect(&hdr, pkt, mask);
	Q_EXPECT_EQ(test, hdr.first, 0x42);
	Q_EXPECT_EQ(test, hdr.pn_len, 3);
	Q_EXPECT_EQ(test, hdr.pn, 49140);
}

Q_TEST(header_short)
{
	struct qrdma_cid cid = { .len = 8, .data = "12345678" };
	u8 mask[5] = { 0xff, 0x11, 0x22, 0x33, 0x44 }, pkt[64], flags;
	const u64 pn = 0x0102030405ULL;
	struct qrdma_writer w;
	struct qrdma_hdr hdr;
	u32 pn_len, len;

	for (pn_len = 1; pn_len <= 4; pn_len++) {
		memset(pkt, 0, sizeof(pkt));
		flags = pn_len & 1 ? QRDMA_HDR_PHASE : QRDMA_HDR_SPIN;
		qrdma_writer_init(&w, pkt, 9 + pn_len);
		Q_ASSERT_TRUE(test, qrdma_hdr_build_short(&w, &cid, flags, pn, pn_len));
		Q_EXPECT_EQ(test, qrdma_writer_room(&w), 0);
		qrdma_writer_init(&w, pkt, 8 + pn_len);
		Q_EXPECT_FALSE(test, qrdma_hdr_build_short(&w, &cid, flags, 1, pn_len));

		qrdma_hdr_protect(pkt, 9, pn_len, mask);
		Q_ASSERT_EQ(test, qrdma_hdr_parse(&hdr, pkt, sizeof(pkt)), QRDMA_HDR_OK);
		Q_EXPECT_EQ(test, hdr.type, QRDMA_PKT_SHORT);
		Q_EXPECT_EQ(test, hdr.len, sizeof(pkt));
		Q_EXPECT_EQ(test, hdr.dcid_len, 8);
		Q_EXPECT_MEMEQ(test, hdr.dcid, cid.data, 8);
		Q_EXPECT_EQ(test, hdr.pn_len, 0);
		qrdma_hdr_unprotect(&hdr, pkt, mask);
		Q_EXPECT_EQ(test, hdr.first, QRDMA_HDR_FIXED | flags | (pn_len - 1));
		Q_EXPECT_EQ(test, hdr.pn_len, pn_len);
		Q_EXPECT_EQ(test, hdr.pn, pn & ((1ULL << 8 * pn_len) - 1));
		Q_EXPECT_FALSE(test, qrdma_hdr_reserved(&hdr));
	}
	/* 9 bytes for the connection id, 29 for a sample */
	for (len = 1; len < sizeof(pkt); len++) {
		enum qrdma_hdr_verdict want = len < 9 ? QRDMA_HDR_TRUNCATED :
					      len < 29 ? QRDMA_HDR_NO_SAMPLE : QRDMA_HDR_OK;

		Q_EXPECT_EQ(test, qrdma_hdr_parse(&hdr, pkt, len), want);
		Q_EXPECT_EQ(test, hdr.len, len);
	}
	pkt[0] &= ~QRDMA_HDR_FIXED;
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&hdr, pkt, sizeof(pkt)), QRDMA_HDR_FIXED_BIT);
}

Q_TEST(header_reserved_bits)
{
	static const u8 no_mask[5];
	struct qrdma_hdr hdr;
	u8 pkt[40], bit;

	memset(pkt, 0, sizeof(pkt));
	hdr.pn_off = 9;
	for (bit = 0x01; bit; bit <<= 1) {
		pkt[0] = QRDMA_HDR_FIXED | bit;
		hdr.type = QRDMA_PKT_SHORT;
		if (bit != QRDMA_HDR_LONG) {
			qrdma_hdr_unprotect(&hdr, pkt, no_mask);
			Q_EXPECT_EQ(test, qrdma_hdr_reserved(&hdr), bit == 0x08 || bit == 0x10);
		}
		pkt[0] |= QRDMA_HDR_LONG;
		hdr.type = QRDMA_PKT_HANDSHAKE;
		qrdma_hdr_unprotect(&hdr, pkt, no_mask);
		Q_EXPECT_EQ(test, qrdma_hdr_reserved(&hdr), bit == 0x08 || bit == 0x04);
	}
}

/* whatever can be built is parsed to the same, and each cut is refused for the right reason */
Q_TEST(header_long_random)
{
	u8 *pkt = q_zalloc(test, DGRAM), ids[40], token[100];
	u64 seed = q_seed();
	struct qrdma_hdr in, out;
	struct qrdma_writer w;
	u32 i, n, payload, cut;

	Q_ASSERT_NOT_NULL(test, pkt);
	for (n = 0; n < 500; n++) {
		for (i = 0; i < sizeof(ids); i++)
			ids[i] = q_rand(&seed);
		header_template(&in, q_rand(&seed) % 3, ids, q_rand(&seed) % 21,
				q_rand(&seed) % 21);
		in.pn_len = 1 + q_rand(&seed) % 4;
		in.pn = q_rand(&seed) & ((1ULL << 8 * in.pn_len) - 1);
		if (in.type == QRDMA_PKT_INITIAL) {
			in.token = token;
			in.token_len = q_rand(&seed) % sizeof(token);
			memset(token, n, sizeof(token));
		}
		payload = 20 - in.pn_len + q_rand(&seed) % 1000;

		memset(pkt, 0, DGRAM);
		qrdma_writer_init(&w, pkt, qrdma_hdr_long_size(&in) - 1);
		Q_ASSERT_FALSE(test, qrdma_hdr_build_long(&w, &in));
		qrdma_writer_init(&w, pkt, qrdma_hdr_long_size(&in));
		Q_ASSERT_TRUE(test, qrdma_hdr_build_long(&w, &in));
		Q_ASSERT_EQ(test, qrdma_writer_room(&w), 0);
		qrdma_hdr_set_length(&in, pkt, payload);
		qrdma_hdr_protect(pkt, in.pn_off, in.pn_len, token);

		Q_ASSERT_EQ(test, qrdma_hdr_parse(&out, pkt, DGRAM), QRDMA_HDR_OK);
		qrdma_hdr_unprotect(&out, pkt, token);
		Q_ASSERT_EQ(test, out.type, in.type);
		Q_ASSERT_EQ(test, out.first, in.first);
		Q_ASSERT_EQ(test, out.pn, in.pn);
		Q_ASSERT_EQ(test, out.pn_len, in.pn_len);
		Q_ASSERT_EQ(test, out.pn_off, in.pn_off);
		Q_ASSERT_EQ(test, out.len, in.pn_off + in.pn_len + payload);
		Q_ASSERT_EQ(test, out.dcid_len, in.dcid_len);
		Q_ASSERT_EQ(test, out.scid_len, in.scid_len);
		Q_ASSERT_EQ(test, out.token_len, in.token_len);
		Q_ASSERT_MEMEQ(test, out.dcid, ids, in.dcid_len);
		Q_ASSERT_MEMEQ(test, out.scid, ids + in.dcid_len, in.scid_len);
		Q_ASSERT_TRUE(test, !in.token_len || !memcmp(out.token, token, in.token_len));

		for (cut = 1; cut < in.pn_off + in.pn_len + payload; cut++) {
			Q_ASSERT_EQ(test, qrdma_hdr_parse(&out, pkt, cut), QRDMA_HDR_TRUNCATED);
			Q_ASSERT_EQ(test, out.len, cut);
		}
	}
}

Q_TEST(header_long_refused)
{
	u8 ids[64] = { 0 }, pkt[200];
	struct qrdma_writer w;
	struct qrdma_hdr hdr, out;

	memset(pkt, 0, sizeof(pkt));
	header_template(&hdr, QRDMA_PKT_HANDSHAKE, ids, 8, 8);
	qrdma_writer_init(&w, pkt, sizeof(pkt));
	Q_ASSERT_TRUE(test, qrdma_hdr_build_long(&w, &hdr));

	/* one byte short of a sample; what follows in the datagram is not lost */
	qrdma_hdr_set_length(&hdr, pkt, 18);
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&out, pkt, sizeof(pkt)), QRDMA_HDR_NO_SAMPLE);
	Q_EXPECT_EQ(test, out.len, hdr.pn_off + 19);
	qrdma_hdr_set_length(&hdr, pkt, 19);
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&out, pkt, sizeof(pkt)), QRDMA_HDR_OK);
	/* a Length over the end */
	qrdma_hdr_set_length(&hdr, pkt, sizeof(pkt) - hdr.pn_off - 1);
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&out, pkt, sizeof(pkt)), QRDMA_HDR_OK);
	qrdma_hdr_set_length(&hdr, pkt, sizeof(pkt) - hdr.pn_off);
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&out, pkt, sizeof(pkt)), QRDMA_HDR_TRUNCATED);
	Q_EXPECT_EQ(test, out.len, sizeof(pkt));

	qrdma_hdr_set_length(&hdr, pkt, 19);
	pkt[0] &= ~QRDMA_HDR_FIXED;
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&out, pkt, sizeof(pkt)), QRDMA_HDR_FIXED_BIT);
	pkt[0] |= QRDMA_HDR_FIXED;

	/* a token that claims 2^62 - 1 bytes */
	header_template(&hdr, QRDMA_PKT_INITIAL, ids, 0, 0);
	qrdma_writer_init(&w, pkt, sizeof(pkt));
	Q_ASSERT_TRUE(test, qrdma_hdr_build_long(&w, &hdr));
	memset(pkt + 7, 0xff, 8);
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&out, pkt, sizeof(pkt)), QRDMA_HDR_TRUNCATED);
}

Q_TEST(header_cid_too_long)
{
	u8 ids[64] = { 0 }, pkt[200];
	struct qrdma_writer w;
	struct qrdma_hdr hdr, out;
	int i;

	for (i = 0; i < 2; i++) {
		memset(pkt, 0, sizeof(pkt));
		header_template(&hdr, QRDMA_PKT_HANDSHAKE, ids, 20 + i, 21 - i);
		qrdma_writer_init(&w, pkt, sizeof(pkt));
		Q_ASSERT_TRUE(test, qrdma_hdr_build_long(&w, &hdr));
		qrdma_hdr_set_length(&hdr, pkt, 40);
		Q_EXPECT_EQ(test, qrdma_hdr_parse(&out, pkt, sizeof(pkt)), QRDMA_HDR_CID_LEN);
	}
}

/* RFC 8999 s6, RFC 9000 s17.2.1 */
Q_TEST(header_version_negotiation)
{
	u8 *pkt = q_zalloc(test, DGRAM), *answer = q_zalloc(test, DGRAM);
	struct qrdma_hdr hdr, out;
	struct qrdma_writer w;
	u32 len;

	Q_ASSERT_NOT_NULL(test, pkt);
	Q_ASSERT_NOT_NULL(test, answer);
	/* a packet of another version, with longer ids than ours allow */
	qrdma_writer_init(&w, pkt, DGRAM);
	qrdma_writer_u8(&w, QRDMA_HDR_LONG);
	qrdma_writer_u32(&w, 0x1a2a3a4a);
	qrdma_writer_u8(&w, 255);
	memset(w.pos, 0xdd, 255);
	w.pos += 255;
	qrdma_writer_u8(&w, 200);
	memset(w.pos, 0xee, 200);
	Q_ASSERT_EQ(test, qrdma_hdr_parse(&hdr, pkt, DGRAM), QRDMA_HDR_VERSION);
	Q_EXPECT_EQ(test, hdr.version, 0x1a2a3a4a);
	Q_EXPECT_EQ(test, hdr.dcid_len, 255);
	Q_EXPECT_EQ(test, hdr.scid_len, 200);
	Q_EXPECT_EQ(test, hdr.len, DGRAM);

	len = 7 + 255 + 200 + 4;
	qrdma_writer_init(&w, answer, len - 1);
	Q_EXPECT_FALSE(test, qrdma_hdr_build_version_neg(&w, &hdr, 0x55));
	qrdma_writer_init(&w, answer, len);
	Q_ASSERT_TRUE(test, qrdma_hdr_build_version_neg(&w, &hdr, 0x15));
	Q_EXPECT_EQ(test, answer[0], 0xd5);
	Q_ASSERT_EQ(test, qrdma_hdr_parse(&out, answer, len), QRDMA_HDR_OK);
	Q_EXPECT_EQ(test, out.type, QRDMA_PKT_VERSION_NEG);
	Q_EXPECT_EQ(test, out.version, 0);
	Q_EXPECT_EQ(test, out.dcid_len, 200);
	Q_EXPECT_EQ(test, out.dcid[199], 0xee);
	Q_EXPECT_EQ(test, out.scid_len, 255);
	Q_EXPECT_EQ(test, out.scid[0], 0xdd);
	Q_EXPECT_EQ(test, out.token_len, 4);
	Q_EXPECT_EQ(test, qrdma_load_be32(out.token), QRDMA_QUIC_V1);
	/* the fixed bit means nothing here; the list must be one */
	answer[0] = QRDMA_HDR_LONG;
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&out, answer, len), QRDMA_HDR_OK);
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&out, answer, len - 1), QRDMA_HDR_TRUNCATED);
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&out, answer, len - 4), QRDMA_HDR_TRUNCATED);
}

/* Initial, Handshake and short in one datagram (RFC 9000 s12.2), then zeros */
Q_TEST(header_coalesced)
{
	struct qrdma_cid cid = { .len = 8, .data = "abcdefgh" };
	struct qrdma_hdr hdr, first, out;
	struct qrdma_writer w;
	u8 pkt[400], other[8] = { 0 };
	u32 at, n;

	memset(pkt, 0, sizeof(pkt));
	header_template(&hdr, QRDMA_PKT_INITIAL, cid.data, 8, 0);
	qrdma_writer_init(&w, pkt, sizeof(pkt));
	Q_ASSERT_TRUE(test, qrdma_hdr_build_long(&w, &hdr));
	qrdma_hdr_set_length(&hdr, pkt, 79);
	n = hdr.pn_off + 80;

	header_template(&hdr, QRDMA_PKT_HANDSHAKE, other, 8, 0);
	qrdma_writer_init(&w, pkt + n, sizeof(pkt) - n);
	Q_ASSERT_TRUE(test, qrdma_hdr_build_long(&w, &hdr));
	qrdma_hdr_set_length(&hdr, pkt + n, 99);
	n += hdr.pn_off + 100;

	qrdma_writer_init(&w, pkt + n, sizeof(pkt) - n);
	Q_ASSERT_TRUE(test, qrdma_hdr_build_short(&w, &cid, 0, 1, 1));

	Q_ASSERT_EQ(test, qrdma_hdr_parse(&first, pkt, sizeof(pkt)), QRDMA_HDR_OK);
	Q_EXPECT_EQ(test, first.type, QRDMA_PKT_INITIAL);
	at = first.len;
	Q_ASSERT_EQ(test, qrdma_hdr_parse(&out, pkt + at, sizeof(pkt) - at), QRDMA_HDR_OK);
	Q_EXPECT_EQ(test, out.type, QRDMA_PKT_HANDSHAKE);
	Q_EXPECT_FALSE(test, qrdma_hdr_same_dcid(&first, &out));
	at += out.len;
	Q_ASSERT_EQ(test, qrdma_hdr_parse(&out, pkt + at, sizeof(pkt) - at), QRDMA_HDR_OK);
	Q_EXPECT_EQ(test, out.type, QRDMA_PKT_SHORT);
	Q_EXPECT_TRUE(test, qrdma_hdr_same_dcid(&first, &out));
	Q_EXPECT_EQ(test, at + out.len, sizeof(pkt));

	/* zeros behind a long header packet are no packet */
	at = first.len;
	memset(pkt + at, 0, sizeof(pkt) - at);
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&out, pkt + at, sizeof(pkt) - at), QRDMA_HDR_FIXED_BIT);
	Q_EXPECT_EQ(test, at + out.len, sizeof(pkt));
}

/* RFC 9000 s10.3 */
Q_TEST(header_stateless_reset)
{
	u8 random[32], token[16], pkt[48];
	struct qrdma_writer w;
	struct qrdma_hdr hdr;

	memset(random, 0xff, sizeof(random));
	memset(token, 0x77, sizeof(token));
	qrdma_writer_init(&w, pkt, sizeof(pkt));
	Q_EXPECT_FALSE(test, qrdma_hdr_build_reset(&w, 20, random, token));
	Q_EXPECT_FALSE(test, qrdma_hdr_build_reset(&w, sizeof(pkt) + 1, random, token));
	Q_EXPECT_PTR_EQ(test, w.pos, pkt);
	Q_ASSERT_TRUE(test, qrdma_hdr_build_reset(&w, 21, random, token));
	Q_EXPECT_EQ(test, w.pos - pkt, 21);
	Q_EXPECT_EQ(test, pkt[0], 0x7f);
	Q_EXPECT_EQ(test, pkt[4], 0xff);
	Q_EXPECT_PTR_EQ(test, qrdma_hdr_reset_token(pkt, 21), pkt + 5);
	Q_EXPECT_MEMEQ(test, pkt + 5, token, 16);
	Q_EXPECT_NULL(test, qrdma_hdr_reset_token(pkt, 20));
	/* the smallest one is no packet, and still tells its connection id */
	Q_EXPECT_EQ(test, qrdma_hdr_parse(&hdr, pkt, 21), QRDMA_HDR_NO_SAMPLE);
	Q_EXPECT_PTR_EQ(test, hdr.dcid, pkt + 1);
}

Q_TEST(header_cid_equal)
{
	struct qrdma_cid a = { .len = 3, .data = "abc" }, b = { .len = 3, .data = "abd" };

	Q_EXPECT_FALSE(test, qrdma_cid_equal(&a, &b));
	b.data[2] = 'c';
	b.data[3] = 'x';
	Q_EXPECT_TRUE(test, qrdma_cid_equal(&a, &b));
	b.len = 4;
	Q_EXPECT_FALSE(test, qrdma_cid_equal(&a, &b));
}

Q_SUITE("qrdma-header",
	Q_CASE(header_rfc9001_client_initial),
	Q_CASE(header_rfc9001_server_initial),
	Q_CASE(header_rfc9001_retry),
	Q_CASE(header_rfc9001_short),
	Q_CASE(header_short),
	Q_CASE(header_reserved_bits),
	Q_CASE(header_long_random),
	Q_CASE(header_long_refused),
	Q_CASE(header_cid_too_long),
	Q_CASE(header_version_negotiation),
	Q_CASE(header_coalesced),
	Q_CASE(header_stateless_reset),
	Q_CASE(header_cid_equal));
