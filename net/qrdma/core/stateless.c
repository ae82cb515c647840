// SPDX-License-Identifier: GPL-2.0
/*
 * What a server says before there is a connection. See stateless.h for what this owns, who calls
 * it, in which context and under which lock.
 */
#include "stateless.h"
#include "config.h"
#include "hs_state.h"
#include "frame.h"

#define STATELESS_PN_LEN	4

enum qrdma_first qrdma_stateless_look(const u8 *data, u32 len, u32 max_datagram,
				      struct qrdma_hdr *hdr)
{
	enum qrdma_hdr_verdict v;

	/* a small datagram is never answered: it would make us an amplifier (RFC 9000 s14.1) */
	if (!len || !(data[0] & QRDMA_HDR_LONG) || len < min(QRDMA_HS_EXPAND, max_datagram))
		return QRDMA_FIRST_DROP;
	v = qrdma_hdr_parse_long(hdr, data, len);
	if (v == QRDMA_HDR_VERSION)
		return QRDMA_FIRST_VERSION;
	if (v != QRDMA_HDR_OK || hdr->type != QRDMA_PKT_INITIAL || hdr->dcid_len < QRDMA_HS_CID_MIN)
		return QRDMA_FIRST_DROP;
	return QRDMA_FIRST_INITIAL;
}

int qrdma_stateless_version_neg(struct qrdma_tx *tx, const struct qrdma_hdr *hdr, u8 random)
{
	struct qrdma_writer w;

	qrdma_writer_init(&w, tx->data, tx->cap);
	if (!qrdma_hdr_build_version_neg(&w, hdr, random & 0x7f))
		return -EMSGSIZE;
	tx->len = w.pos - tx->data;
	return tx->len;
}

int qrdma_stateless_retry(struct qrdma_tx *tx, const struct qrdma_aead_ops *aead,
			  struct qrdma_slot *slot, const struct qrdma_hdr *hdr,
			  const struct qrdma_cid *scid, const u8 *token, u32 token_len, u8 random)
{
	struct qrdma_hdr retry = {
		.dcid = hdr->scid, .dcid_len = hdr->scid_len,
		.scid = scid->data, .scid_len = scid->len,
		.token = token, .token_len = token_len,
	};
	struct qrdma_aead_op *op = &tx->op;
	struct qrdma_writer w;

	if (!token_len || token_len > QRDMA_HS_TOKEN_MAX ||
	    (scid->len == hdr->dcid_len && !memcmp(scid->data, hdr->dcid, scid->len)))
		return -EINVAL;
	/* the tag covers the id of the client's Initial as well (RFC 9001 s5.8) */
	qrdma_writer_init(&w, tx->data, tx->cap);
	if (!qrdma_writer_u8(&w, hdr->dcid_len) ||
	    !qrdma_writer_bytes(&w, hdr->dcid, hdr->dcid_len) ||
	    !qrdma_hdr_build_retry(&w, &retry, random & 0x0f))
		return -EMSGSIZE;
	aead->slot_get(slot);
	tx->aead = aead;
	tx->parts = 0;
	op->slot = slot;
	op->pn = 0;
	op->pkt = tx->data;
	op->hdr_len = w.pos - tx->data;
	op->pn_off = 1 + hdr->dcid_len;		/* where the packet starts; it has no number */
	op->pn_len = 0;
	op->payload_len = 0;
	op->nseg = 0;
	tx->len = op->hdr_len - op->pn_off + QRDMA_RETRY_TAG_LEN;
	return 0;
}

void qrdma_stateless_retry_end(struct qrdma_tx *tx)
{
	memmove(tx->data, tx->data + tx->op.pn_off, tx->len);
}

int qrdma_stateless_refuse(struct qrdma_tx *tx, const struct qrdma_aead_ops *aead,
			   struct qrdma_slot *slot, const struct qrdma_hdr *hdr,
			   const struct qrdma_cid *scid, u64 code)
{
	struct qrdma_frame f = { .type = QRDMA_FRAME_CLOSE, .close.code = code };
	struct qrdma_hdr out = {
		.type = QRDMA_PKT_INITIAL,
		.dcid = hdr->scid, .dcid_len = hdr->scid_len,
		.scid = scid->data, .scid_len = scid->len,
		.pn_len = STATELESS_PN_LEN,
	};
	struct qrdma_aead_op *op = &tx->op;
	struct qrdma_writer w;
	u8 *payload;

	qrdma_writer_init(&w, tx->data, tx->cap);
	if (!qrdma_hdr_build_long(&w, &out))
		return -EMSGSIZE;
	payload = w.pos;
	if (!qrdma_frame_encode(&w, &f) || qrdma_writer_room(&w) < QRDMA_TAG_LEN)
		return -EMSGSIZE;
	op->payload_len = w.pos - payload;
	qrdma_hdr_set_length(&out, tx->data, op->payload_len + QRDMA_TAG_LEN);
	aead->slot_get(slot);
	tx->aead = aead;
	tx->parts = 0;
	op->slot = slot;
	op->pn = 0;
	op->pkt = tx->data;
	op->hdr_len = payload - tx->data;
	op->pn_off = out.pn_off;
	op->pn_len = out.pn_len;
	op->seg[0].data = payload;
	op->seg[0].len = op->payload_len;
	op->seg[0].owner = NULL;
	op->nseg = 1;
	tx->len = op->hdr_len + op->payload_len + QRDMA_TAG_LEN;
	return 0;
}
