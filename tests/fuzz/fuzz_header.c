// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzer of core/header.c: the input is a datagram. Whatever is in it, the packets found lie in
 * it one behind the other, and a header that was parsed can be built again from what was found.
 */
#include "env.h"
#include "header.h"

#define CHECK(c) do {								\
	if (!(c))								\
		shim_die("does not hold: " #c, __FILE__, __LINE__);		\
} while (0)

static bool inside(const u8 *data, u32 len, const u8 *p, u32 n)
{
	return p >= data && p + n <= data + len;
}

static void check_numbered(struct qrdma_hdr *hdr, u8 *pkt)
{
	struct qrdma_hdr again, out;
	struct qrdma_writer w;
	u8 buf[8192], copy[64], mask[5];

	CHECK(inside(pkt, hdr->len, qrdma_hdr_sample(hdr, pkt), QRDMA_HP_SAMPLE_LEN));
	/* any mask will do; on and off again is nothing */
	memcpy(mask, qrdma_hdr_sample(hdr, pkt), sizeof(mask));
	memcpy(copy, pkt + hdr->pn_off, 4);
	copy[4] = pkt[0];
	qrdma_hdr_unprotect(hdr, pkt, mask);
	CHECK(hdr->pn_len >= 1 && hdr->pn_len <= 4);
	CHECK(hdr->pn < 1ULL << (8 * hdr->pn_len));
	out = *hdr;
	if (hdr->type != QRDMA_PKT_SHORT && !qrdma_hdr_reserved(hdr)) {
		qrdma_writer_init(&w, buf, sizeof(buf));
		CHECK(qrdma_hdr_build_long(&w, &out));
		CHECK(w.pos - buf == qrdma_hdr_long_size(&out));
		CHECK(out.first == hdr->first);
		qrdma_hdr_set_length(&out, buf, 20);
		memset(w.pos, 0, 20);
		CHECK(qrdma_hdr_parse(&again, buf, w.pos + 20 - buf) == QRDMA_HDR_OK);
		CHECK(again.type == hdr->type && again.pn_off == out.pn_off);
		CHECK(qrdma_hdr_same_dcid(&again, hdr));
		CHECK(again.scid_len == hdr->scid_len && again.token_len == hdr->token_len);
		CHECK(!memcmp(again.scid, hdr->scid, hdr->scid_len));
		CHECK(!hdr->token_len || !memcmp(again.token, hdr->token, hdr->token_len));
	}
	qrdma_hdr_protect(pkt, hdr->pn_off, hdr->pn_len, mask);
	CHECK(!memcmp(copy, pkt + hdr->pn_off, 4) && copy[4] == pkt[0]);
}

static void check_packet(struct qrdma_hdr *hdr, enum qrdma_hdr_verdict verdict, u8 *pkt, u32 left)
{
	struct qrdma_writer w;
	u8 buf[1024];

	CHECK(hdr->len && hdr->len <= left);
	if (verdict == QRDMA_HDR_VERSION) {
		CHECK(inside(pkt, left, hdr->dcid, hdr->dcid_len));
		CHECK(inside(pkt, left, hdr->scid, hdr->scid_len));
		qrdma_writer_init(&w, buf, sizeof(buf));
		CHECK(qrdma_hdr_build_version_neg(&w, hdr, pkt[0]));
		CHECK(qrdma_hdr_parse(hdr, buf, w.pos - buf) == QRDMA_HDR_OK);
		CHECK(hdr->type == QRDMA_PKT_VERSION_NEG);
	}
	if (verdict != QRDMA_HDR_OK)
		return;
	CHECK(inside(pkt, hdr->len, hdr->dcid, hdr->dcid_len));
	if (hdr->type != QRDMA_PKT_SHORT)
		CHECK(inside(pkt, hdr->len, hdr->scid, hdr->scid_len));
	if (hdr->token_len)
		CHECK(inside(pkt, hdr->len, hdr->token, hdr->token_len));
	if (hdr->type == QRDMA_PKT_RETRY)
		CHECK(hdr->tag + QRDMA_RETRY_TAG_LEN == pkt + hdr->len);
	else if (hdr->type != QRDMA_PKT_VERSION_NEG)
		check_numbered(hdr, pkt);
}

int LLVMFuzzerTestOneInput(const u8 *input, size_t size);

int LLVMFuzzerTestOneInput(const u8 *input, size_t size)
{
	enum qrdma_hdr_verdict verdict;
	struct qrdma_hdr hdr;
	/* a copy of exactly that size: one byte too far is seen */
	u8 *data = malloc(size ? size : 1), *pkt = data;
	u32 left = size, len;

	memcpy(data, input, size);
	if (qrdma_hdr_reset_token(data, size))
		CHECK(size >= QRDMA_RESET_LEN_MIN);
	while (left) {
		verdict = qrdma_hdr_parse(&hdr, pkt, left);
		len = hdr.len;
		check_packet(&hdr, verdict, pkt, left);
		pkt += len;
		left -= len;
	}
	free(data);
	return 0;
}
