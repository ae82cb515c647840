// SPDX-License-Identifier: GPL-2.0
/*
 * Initial and Handshake packets of a datagram. See longpkt.h for what this owns, who calls it, in
 * which context and under which lock.
 *
 * They are few and small: their frames are written where they are sealed, CRYPTO data is copied.
 * Nothing is taken from its owner before it is certain that the packet can be numbered and sealed.
 */
#include "longpkt.h"
#include "handshake.h"
#include "frame.h"

/* fewer bytes of payload are not worth a packet */
#define LONGPKT_ROOM_MIN	64
/* most bytes of ACK frame in such a packet */
#define LONGPKT_ACK_MAX		128

/**
 * struct longpkt - a packet being written
 * @d: its datagram
 * @hsp: its packet number space
 * @w: where the next frame goes
 * @payload: where the first one is
 * @hdr: its header, without Length
 * @pkt: for recovery
 */
struct longpkt {
	struct qrdma_dgram *d;
	struct qrdma_hs_space *hsp;
	struct qrdma_writer w;
	u8 *payload;
	struct qrdma_hdr hdr;
	struct qrdma_sent_packet *pkt;
};

u32 qrdma_pn_choose(const struct qrdma_conn *conn, const struct qrdma_conn_space *space, u64 pn)
{
	u64 unacked = 0;
	u32 len;

	if (qrdma_recovery_largest_acked(&conn->recovery, space->id, &unacked))
		unacked++;
	len = qrdma_pn_len(pn, unacked);
	return len ? max_t(u32, len, QRDMA_PN_LEN_LEAST) : 0;
}

/* Header and place of the payload. Return: false: there is no room. */
static bool longpkt_begin(struct longpkt *p, struct qrdma_dgram *d, u8 space)
{
	struct qrdma_conn *conn = d->conn;
	const struct qrdma_cid *dcid = qrdma_path_dcid(&conn->path);
	struct qrdma_hs *hs = conn->hs;
	struct qrdma_hdr *hdr = &p->hdr;
	u32 head;

	p->d = d;
	p->hsp = hs->space[space];
	p->pkt = &d->sent[space];
	memset(p->pkt, 0, sizeof(*p->pkt));
	memset(hdr, 0, sizeof(*hdr));
	p->pkt->pn = p->hsp->sp.pn.next;
	hdr->pn = p->pkt->pn;
	hdr->pn_len = qrdma_pn_choose(conn, &p->hsp->sp, hdr->pn);
	if (!hdr->pn_len || hdr->pn > QRDMA_PN_MAX || qrdma_keys_exhausted(&p->hsp->sp.keys))
		return false;
	hdr->type = space == QRDMA_SPACE_INITIAL ? QRDMA_PKT_INITIAL : QRDMA_PKT_HANDSHAKE;
	hdr->dcid = dcid->data;
	hdr->dcid_len = dcid->len;
	hdr->scid = conn->path.scid.data;
	hdr->scid_len = conn->path.scid.len;
	if (hdr->type == QRDMA_PKT_INITIAL && !conn->server && hs->token) {
		hdr->token = hs->token->data;
		hdr->token_len = hs->token->len;
	}
	head = qrdma_hdr_long_size(hdr);
	if (d->len + head + LONGPKT_ROOM_MIN + QRDMA_TAG_LEN > d->limit)
		return false;
	p->payload = d->tx->data + d->len + head;
	qrdma_writer_init(&p->w, p->payload, d->limit - d->len - head - QRDMA_TAG_LEN);
	return true;
}

static void longpkt_note(struct longpkt *p, u8 type, u64 val, u32 len)
{
	struct qrdma_sent_frame *f = &p->pkt->frame[p->pkt->nframes++];

	f->type = type;
	f->flags = 0;
	f->id = p->hsp->sp.id;
	f->val = val;
	f->len = len;
}

static void longpkt_ack(struct longpkt *p)
{
	struct qrdma_pnspace *ps = &p->hsp->sp.pn;
	const struct qrdma_range *range;
	struct qrdma_writer w = p->w;
	struct qrdma_ack ack;
	u32 count;

	count = qrdma_pnspace_build_ack(ps, p->d->now, QRDMA_HS_ACK_EXPONENT, &ack, &range);
	if (!count)
		return;
	w.end = w.pos + min_t(u32, qrdma_writer_room(&w), LONGPKT_ACK_MAX);
	if (!qrdma_ack_encode(&w, &ack, range, count))
		return;
	p->w.pos = w.pos;
	qrdma_pnspace_ack_sent(ps);
	longpkt_note(p, QRDMA_FRAME_ACK, ack.largest, 0);
}

static void longpkt_crypto(struct longpkt *p)
{
	struct qrdma_seg seg[QRDMA_SEG_MAX];
	struct qrdma_frame f;
	u32 i, nseg;

	while (p->pkt->nframes < QRDMA_SENT_FRAMES &&
	       qrdma_cstream_next(&p->hsp->crypto, qrdma_writer_room(&p->w), QRDMA_SEG_MAX, &f, seg,
				  &nseg)) {
		qrdma_frame_encode(&p->w, &f);
		for (i = 0; i < nseg; i++) {
			qrdma_writer_bytes(&p->w, seg[i].data, seg[i].len);
			qrdma_buf_put(seg[i].owner);
		}
		longpkt_note(p, QRDMA_FRAME_CRYPTO, f.crypto.off, f.crypto.len);
		p->pkt->flags |= QRDMA_SENT_ELICITING | QRDMA_SENT_IN_FLIGHT;
	}
}

static void longpkt_ping(struct longpkt *p)
{
	struct qrdma_frame f = { .type = QRDMA_FRAME_PING };

	if (qrdma_frame_encode(&p->w, &f))
		p->pkt->flags |= QRDMA_SENT_ELICITING | QRDMA_SENT_IN_FLIGHT;
}

/* All frames are in: number, header, what is to be sealed. */
static void longpkt_end(struct longpkt *p)
{
	struct qrdma_conn_space *sp = &p->hsp->sp;
	struct qrdma_dgram *d = p->d;
	struct qrdma_tx_part *part = &d->tx->part[d->tx->parts++];
	struct qrdma_writer w;
	bool phase;
	u32 least = QRDMA_SAMPLE_LEAST - p->hdr.pn_len, len = p->w.pos - p->payload;
	u64 pn;

	if (len < least) {
		qrdma_writer_zero(&p->w, least - len);
		len = least;
	}
	qrdma_pnspace_take(&sp->pn, &pn);
	qrdma_writer_init(&w, d->tx->data + d->len, d->limit - d->len);
	qrdma_hdr_build_long(&w, &p->hdr);
	part->slot = qrdma_keys_seal(&sp->keys, pn, &phase);
	part->pn = pn;
	part->off = d->len;
	part->pn_off = p->hdr.pn_off;
	part->pn_len = p->hdr.pn_len;
	part->hdr_len = p->hdr.pn_off + p->hdr.pn_len;
	part->payload_len = len;
	p->pkt->size = part->hdr_len + len + QRDMA_TAG_LEN;
	d->len += p->pkt->size;
	if (sp->id == QRDMA_SPACE_INITIAL)
		d->initial = p->pkt->size;
	else
		d->handshake = true;
	d->conn->n.sealed++;
}

/* RFC 9000 s14.1: every Initial of a client, an ack-eliciting one of a server is padded. */
static bool longpkt_expands(const struct qrdma_dgram *d, u8 space)
{
	return space == QRDMA_SPACE_INITIAL &&
	       (!d->conn->server || (d->sent[space].flags & QRDMA_SENT_ELICITING));
}

int qrdma_longpkt_build(struct qrdma_dgram *d, u8 space)
{
	struct qrdma_conn *conn = d->conn;
	struct qrdma_hs *hs = conn->hs;
	enum qrdma_send_verdict v;
	struct longpkt p;
	bool ack, crypto, probe;

	if (!qrdma_hs_can_send(hs, space))
		return 0;
	ack = qrdma_pnspace_ack_due(&hs->space[space]->sp.pn, d->now);
	crypto = (d->frames || d->urgent) && qrdma_cstream_pending(&hs->space[space]->crypto);
	probe = conn->probes && conn->probe_space == space;
	if (!ack && !crypto && !probe)
		return 0;
	if (space == QRDMA_SPACE_INITIAL && (!conn->server || crypto || probe) &&
	    d->limit < qrdma_hs_expand(conn))
		return 0;
	if (!longpkt_begin(&p, d, space))
		return 0;
	v = qrdma_recovery_reserve(&conn->recovery, space, p.hdr.pn);
	if (v != QRDMA_SEND_OK)
		return v == QRDMA_SEND_NOMEM ? -ENOMEM : -EAGAIN;
	if (ack || qrdma_pnspace_ack_useful(&p.hsp->sp.pn))
		longpkt_ack(&p);
	if (crypto)
		longpkt_crypto(&p);
	if (probe) {
		p.pkt->flags |= QRDMA_SENT_PROBE;
		if (!(p.pkt->flags & QRDMA_SENT_ELICITING))
			longpkt_ping(&p);
	}
	if (p.w.pos == p.payload)
		return 0;
	longpkt_end(&p);
	d->expand |= longpkt_expands(d, space);
	return 1;
}

int qrdma_longpkt_close(struct qrdma_dgram *d, u8 space, const struct qrdma_frame *f)
{
	struct longpkt p;

	if (!qrdma_hs_can_send(d->conn->hs, space) || !longpkt_begin(&p, d, space))
		return 0;
	if (!qrdma_frame_encode(&p.w, f))
		return 0;
	longpkt_end(&p);
	d->expand |= longpkt_expands(d, space);
	return 1;
}

/* The Initial packet is the first: what is behind it makes way. */
static void longpkt_pad(struct qrdma_dgram *d, u32 pad)
{
	struct qrdma_aead_op *op = &d->tx->op;
	struct qrdma_tx_part *part = &d->tx->part[0];
	u8 *end = d->tx->data + part->hdr_len + part->payload_len, *behind = end + QRDMA_TAG_LEN;
	u8 *stop = d->tx->data + d->len;
	u32 i;

	memmove(behind + pad, behind, stop - behind);
	memset(end, 0, pad);
	part->payload_len += pad;
	for (i = 1; i < d->tx->parts; i++)
		d->tx->part[i].off += pad;
	if (op->slot) {
		/* in place, or apart in the scratch area and in the writer's buffers */
		if (op->seg[0].data == op->pkt + op->hdr_len)
			op->seg[0].data += pad;
		op->pkt += pad;
	}
	d->len += pad;
	d->initial += pad;
	d->sent[QRDMA_SPACE_INITIAL].size += pad;
	/* padding makes it count (RFC 9002 s2) */
	d->sent[QRDMA_SPACE_INITIAL].flags |= QRDMA_SENT_IN_FLIGHT;
}

void qrdma_longpkt_finish(struct qrdma_dgram *d)
{
	u32 want = min(qrdma_hs_expand(d->conn), d->limit), i;
	struct qrdma_tx_part *part;

	if (d->expand && d->len < want)
		longpkt_pad(d, want - d->len);
	for (i = 0; i < d->tx->parts; i++) {
		part = &d->tx->part[i];
		qrdma_store_be16(d->tx->data + part->off + part->pn_off - 2,
				 0x4000 | (part->pn_len + part->payload_len + QRDMA_TAG_LEN));
	}
}
