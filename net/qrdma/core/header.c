// SPDX-License-Identifier: GPL-2.0
/*
 * Packet headers: parsing and building of the long form and of what is no packet with number.
 *
 * Owns: nothing. Called by, context, lock: see header.h; the short form is inline there.
 */
#include "header.h"

#define HDR_LENGTH_LEN	2	/* bytes of the Length field as we write it */

/* RFC 9000 s17.2.1: the list of versions fills the packet; the rest of the header is free. */
static enum qrdma_hdr_verdict hdr_parse_version_neg(struct qrdma_hdr *hdr, struct qrdma_cursor *c)
{
	hdr->type = QRDMA_PKT_VERSION_NEG;
	hdr->token = c->pos;
	hdr->token_len = qrdma_cursor_left(c);
	if (!hdr->token_len || hdr->token_len % sizeof(u32))
		return QRDMA_HDR_TRUNCATED;
	return QRDMA_HDR_OK;
}

/* RFC 9000 s17.2.5: token and tag fill the packet */
static enum qrdma_hdr_verdict hdr_parse_retry(struct qrdma_hdr *hdr, struct qrdma_cursor *c)
{
	size_t left = qrdma_cursor_left(c);

	if (left < QRDMA_RETRY_TAG_LEN)
		return QRDMA_HDR_TRUNCATED;
	hdr->token = c->pos;
	hdr->token_len = left - QRDMA_RETRY_TAG_LEN;
	hdr->tag = hdr->token + hdr->token_len;
	return hdr->token_len ? QRDMA_HDR_OK : QRDMA_HDR_RETRY;
}

/* RFC 9000 s17.2.2 .. s17.2.4: [token,] Length, packet number, payload */
static enum qrdma_hdr_verdict hdr_parse_numbered(struct qrdma_hdr *hdr, struct qrdma_cursor *c,
						 const u8 *data)
{
	u64 token_len, length;

	if (hdr->type == QRDMA_PKT_INITIAL) {
		if (!qrdma_cursor_varint(c, &token_len) ||
		    !qrdma_cursor_bytes(c, token_len, &hdr->token))
			return QRDMA_HDR_TRUNCATED;
		hdr->token_len = token_len;
	}
	if (!qrdma_cursor_varint(c, &length) || length > qrdma_cursor_left(c))
		return QRDMA_HDR_TRUNCATED;

	hdr->pn_off = c->pos - data;
	hdr->len = hdr->pn_off + length;	/* from here on: what follows is another packet */
	if (length < QRDMA_PN_LEN_MAX + QRDMA_HP_SAMPLE_LEN)
		return QRDMA_HDR_NO_SAMPLE;
	return QRDMA_HDR_OK;
}

enum qrdma_hdr_verdict qrdma_hdr_parse_long(struct qrdma_hdr *hdr, const u8 *data, u32 len)
{
	struct qrdma_cursor c;

	memset(hdr, 0, sizeof(*hdr));
	hdr->len = len;
	qrdma_cursor_init(&c, data, len);

	/* RFC 8999 s5.1: the same in all versions */
	if (!qrdma_cursor_u8(&c, &hdr->first) || !qrdma_cursor_u32(&c, &hdr->version) ||
	    !qrdma_cursor_u8(&c, &hdr->dcid_len) ||
	    !qrdma_cursor_bytes(&c, hdr->dcid_len, &hdr->dcid) ||
	    !qrdma_cursor_u8(&c, &hdr->scid_len) ||
	    !qrdma_cursor_bytes(&c, hdr->scid_len, &hdr->scid))
		return QRDMA_HDR_TRUNCATED;

	if (!hdr->version)
		return hdr_parse_version_neg(hdr, &c);
	if (hdr->version != QRDMA_QUIC_V1)
		return QRDMA_HDR_VERSION;
	/* RFC 9000 s17.2 */
	if (!(hdr->first & QRDMA_HDR_FIXED))
		return QRDMA_HDR_FIXED_BIT;
	if (hdr->dcid_len > QRDMA_CID_MAX || hdr->scid_len > QRDMA_CID_MAX)
		return QRDMA_HDR_CID_LEN;

	hdr->type = (hdr->first >> 4) & 3;
	if (hdr->type == QRDMA_PKT_RETRY)
		return hdr_parse_retry(hdr, &c);
	return hdr_parse_numbered(hdr, &c, data);
}

/* what stands in front of the type-specific fields, RFC 8999 s5.1 */
static bool hdr_put_invariant(struct qrdma_writer *w, u8 first, u32 version,
			      const u8 *dcid, u8 dcid_len, const u8 *scid, u8 scid_len)
{
	return qrdma_writer_u8(w, first) && qrdma_writer_u32(w, version) &&
	       qrdma_writer_u8(w, dcid_len) && qrdma_writer_bytes(w, dcid, dcid_len) &&
	       qrdma_writer_u8(w, scid_len) && qrdma_writer_bytes(w, scid, scid_len);
}

static u32 hdr_invariant_size(u32 dcid_len, u32 scid_len)
{
	return 1 + 4 + 1 + dcid_len + 1 + scid_len;
}

u32 qrdma_hdr_long_size(const struct qrdma_hdr *hdr)
{
	u32 size = hdr_invariant_size(hdr->dcid_len, hdr->scid_len) + HDR_LENGTH_LEN + hdr->pn_len;

	if (hdr->type == QRDMA_PKT_INITIAL)
		size += qrdma_varint_len(hdr->token_len) + hdr->token_len;
	return size;
}

bool qrdma_hdr_build_long(struct qrdma_writer *w, struct qrdma_hdr *hdr)
{
	struct qrdma_writer out = *w;

	if (qrdma_writer_room(w) < qrdma_hdr_long_size(hdr))
		return false;
	hdr->version = QRDMA_QUIC_V1;
	hdr->first = QRDMA_HDR_LONG | QRDMA_HDR_FIXED | hdr->type << 4 | (hdr->pn_len - 1);
	if (!hdr_put_invariant(&out, hdr->first, hdr->version, hdr->dcid, hdr->dcid_len,
			       hdr->scid, hdr->scid_len))
		return false;
	if (hdr->type == QRDMA_PKT_INITIAL &&
	    (!qrdma_writer_varint(&out, hdr->token_len) ||
	     !qrdma_writer_bytes(&out, hdr->token, hdr->token_len)))
		return false;

	/* a Length of two bytes: the payload is not known yet */
	if (!qrdma_writer_u16(&out, 0x4000))
		return false;
	hdr->pn_off = out.pos - w->pos;
	qrdma_pn_store(out.pos, hdr->pn, hdr->pn_len);
	w->pos = out.pos + hdr->pn_len;
	return true;
}

bool qrdma_hdr_build_retry(struct qrdma_writer *w, const struct qrdma_hdr *hdr, u8 unused)
{
	struct qrdma_writer out = *w;
	u8 first = QRDMA_HDR_LONG | QRDMA_HDR_FIXED | QRDMA_PKT_RETRY << 4 | (unused & 0x0f);

	if (!hdr_put_invariant(&out, first, QRDMA_QUIC_V1, hdr->dcid, hdr->dcid_len,
			       hdr->scid, hdr->scid_len) ||
	    !qrdma_writer_bytes(&out, hdr->token, hdr->token_len) ||
	    qrdma_writer_room(&out) < QRDMA_RETRY_TAG_LEN)
		return false;
	w->pos = out.pos;
	return true;
}

bool qrdma_hdr_build_version_neg(struct qrdma_writer *w, const struct qrdma_hdr *rx, u8 unused)
{
	struct qrdma_writer out = *w;

	/* both connection ids are echoed, each in the other's place */
	if (!hdr_put_invariant(&out, QRDMA_HDR_LONG | QRDMA_HDR_FIXED | unused, 0,
			       rx->scid, rx->scid_len, rx->dcid, rx->dcid_len) ||
	    !qrdma_writer_u32(&out, QRDMA_QUIC_V1))
		return false;
	w->pos = out.pos;
	return true;
}

bool qrdma_hdr_build_reset(struct qrdma_writer *w, u32 len, const u8 *random, const u8 *token)
{
	u32 head = len - QRDMA_RESET_TOKEN_LEN;
	u8 *first = w->pos;

	if (len < QRDMA_RESET_LEN_MIN || qrdma_writer_room(w) < len)
		return false;
	memcpy(first, random, head);
	*first = QRDMA_HDR_FIXED | (*first & 0x3f);
	memcpy(first + head, token, QRDMA_RESET_TOKEN_LEN);
	w->pos += len;
	return true;
}
