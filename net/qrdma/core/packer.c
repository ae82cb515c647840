// SPDX-License-Identifier: GPL-2.0
/*
 * Put one datagram together.
 *
 * Owns: nothing. Called by: the datapath under the socket lock (building), or without any
 * (protecting, releasing); never sleeps, allocates nothing but what recovery's records need.
 *
 * Frames other than stream data are written to the scratch area of struct qrdma_tx; stream data is
 * named by segments and stays where the application's bytes are. A packet without stream data is
 * moved to its place in the datagram and sealed there. Nothing is taken from its owner before it is
 * certain that the packet can be numbered, recorded and sealed: from then on nothing fails.
 *
 * While a handshake in band goes on, Initial and Handshake packets (longpkt.c) come before the
 * 1-RTT or 0-RTT packet in one datagram; that one is built here as ever, at an offset.
 */
#include "packer.h"
#include "conn_state.h"
#include "handshake.h"
#include "longpkt.h"
#include "frame.h"

/* most bytes of frame header before the data of a STREAM frame: type, id, offset, length */
#define PACKER_STREAM_HEAD	(1 + 8 + 8 + 4)
/* most bytes of a NEW_TOKEN frame before the token */
#define PACKER_TOKEN_HEAD	(1 + 4)
/* scratch that an ACK frame leaves for the others */
#define PACKER_ACK_LEAVES	64
/* most bytes of a short header with its packet number */
#define PACKER_HEAD_MAX	(1 + QRDMA_CID_MAX + QRDMA_PN_LEN_MAX)

/**
 * struct packer - a packet being put together
 * @conn: whose
 * @tx: the datagram
 * @keys: to seal with: 1-RTT, or 0-RTT
 * @early: it is a 0-RTT packet
 * @base: where it starts in the datagram
 * @w: where the next frame goes in the scratch area
 * @mark: start of what is in the scratch area and not yet in a segment
 * @room: bytes of payload that the datagram still takes
 * @data: bytes of stream data in the segments
 * @expand: pad to what validates a path (RFC 9000 s8.2.2)
 * @record: recovery keeps a record of it
 * @pkt: for recovery
 */
struct packer {
	struct qrdma_conn *conn;
	struct qrdma_tx *tx;
	struct qrdma_keys *keys;
	bool early;
	u32 base;
	struct qrdma_writer w;
	u8 *mark;
	u32 room;
	u32 data;
	bool expand;
	bool record;
	struct qrdma_sent_packet pkt;
};

static u32 packer_written(const struct packer *p)
{
	return p->w.pos - p->tx->scratch;
}

/* Bytes that one more frame may have in the scratch area and in the datagram. */
static u32 packer_room(const struct packer *p)
{
	return min_t(u32, qrdma_writer_room(&p->w), p->room - packer_written(p) - p->data);
}

static void packer_note(struct packer *p, u8 type, u8 flags, u64 id, u64 val, u32 len)
{
	struct qrdma_sent_frame *f = &p->pkt.frame[p->pkt.nframes++];

	f->type = type;
	f->flags = flags;
	f->len = len;
	f->id = id;
	f->val = val;
}

static void packer_eliciting(struct packer *p)
{
	p->pkt.flags |= QRDMA_SENT_ELICITING | QRDMA_SENT_IN_FLIGHT;
}

static bool packer_put(struct packer *p, const struct qrdma_frame *f)
{
	if (qrdma_frame_size(f) > packer_room(p) || !qrdma_frame_encode(&p->w, f))
		return false;
	packer_eliciting(p);
	return true;
}

static void packer_ack(struct packer *p, u64 now)
{
	struct qrdma_pnspace *ps = &p->conn->app.pn;
	const struct qrdma_range *range;
	struct qrdma_writer w = p->w;
	struct qrdma_ack ack;
	u32 count;

	count = qrdma_pnspace_build_ack(ps, now, p->conn->ack_exponent, &ack, &range);
	if (!count)
		return;
	w.end = w.pos + min_t(u32, packer_room(p), QRDMA_TX_SCRATCH - PACKER_ACK_LEAVES);
	if (!qrdma_ack_encode(&w, &ack, range, count))
		return;
	p->w.pos = w.pos;
	qrdma_pnspace_ack_sent(ps);
	packer_note(p, QRDMA_FRAME_ACK, 0, QRDMA_SPACE_APP, ack.largest, 0);
}

static void packer_path(struct packer *p)
{
	struct qrdma_path *path = &p->conn->path;
	struct qrdma_frame f;
	u64 seq;

	while (path->nr_responses && packer_room(p) > QRDMA_PATH_DATA) {
		f.type = QRDMA_FRAME_PATH_RESPONSE;
		qrdma_path_next_response(path, f.path.data);
		packer_put(p, &f);
		p->expand = true;
	}
	while (p->pkt.nframes < QRDMA_SENT_FRAMES && packer_room(p) > sizeof(seq) &&
	       qrdma_path_next_retire(path, &seq)) {
		f.type = QRDMA_FRAME_RETIRE_CONNECTION_ID;
		f.retire_cid.seq = seq;
		packer_put(p, &f);
		packer_note(p, f.type, 0, 0, seq, 0);
	}
}

/* Credit, resets and the like: what stream.c wants to say beside data. */
static void packer_ctl(struct packer *p)
{
	struct qrdma_frame f = {};

	while (p->pkt.nframes < QRDMA_SENT_FRAMES &&
	       qrdma_streams_next_ctl(&p->conn->streams, packer_room(p), &f)) {
		packer_put(p, &f);
		switch (f.type) {
		case QRDMA_FRAME_RESET_STREAM:
			packer_note(p, f.type, 0, f.reset.id, 0, 0);
			break;
		case QRDMA_FRAME_STOP_SENDING:
			packer_note(p, f.type, 0, f.stop.id, 0, 0);
			break;
		default:
			packer_note(p, f.type, 0, f.max.id, f.max.max, 0);
		}
	}
}

/* What stands in the scratch area since the last segment becomes one. */
static void packer_flush(struct packer *p)
{
	struct qrdma_aead_op *op = &p->tx->op;
	struct qrdma_seg *seg;

	if (p->w.pos == p->mark)
		return;
	seg = &op->seg[op->nseg++];
	seg->data = p->mark;
	seg->len = p->w.pos - p->mark;
	seg->owner = NULL;
	p->mark = p->w.pos;
}

static void packer_streams(struct packer *p)
{
	struct qrdma_aead_op *op = &p->tx->op;
	struct qrdma_stream_frame sf;
	struct qrdma_frame f;
	u32 room;

	/* room for two more segments: the header of the frame, and at least one of data */
	while (p->pkt.nframes < QRDMA_SENT_FRAMES && op->nseg + 2 <= QRDMA_SEG_MAX &&
	       qrdma_writer_room(&p->w) >= PACKER_STREAM_HEAD) {
		room = p->room - packer_written(p) - p->data;
		if (!room || !qrdma_streams_next_frame(&p->conn->streams, room,
						       QRDMA_SEG_MAX - op->nseg - 1, &sf))
			return;
		f.type = QRDMA_FRAME_STREAM | QRDMA_STREAM_LEN;
		f.stream.id = sf.id;
		f.stream.off = sf.off;
		f.stream.len = sf.len;
		f.stream.fin = sf.fin;
		f.stream.data = NULL;
		qrdma_frame_encode(&p->w, &f);
		packer_eliciting(p);
		packer_note(p, QRDMA_FRAME_STREAM, sf.fin ? QRDMA_STREAM_FIN : 0, sf.id, sf.off,
			    sf.len);
		if (!sf.nseg)
			continue;
		packer_flush(p);
		memcpy(&op->seg[op->nseg], sf.seg, sf.nseg * sizeof(sf.seg[0]));
		op->nseg += sf.nseg;
		p->data += sf.len;
		/* one run of bytes: nothing that may be refused goes with what must arrive */
		if (unlikely(p->pkt.flags & QRDMA_SENT_PROBE))
			return;
	}
}

/* Bytes of somebody's behind what is in the scratch area. The references become the packet's. */
static void packer_segs(struct packer *p, const struct qrdma_seg *seg, u32 nseg)
{
	struct qrdma_aead_op *op = &p->tx->op;
	u32 i;

	packer_flush(p);
	for (i = 0; i < nseg; i++) {
		op->seg[op->nseg++] = seg[i];
		p->data += seg[i].len;
	}
}

/* Is there room for another frame of segments, with a header of @head bytes? */
static bool packer_seg_room(const struct packer *p, u32 head)
{
	return p->pkt.nframes < QRDMA_SENT_FRAMES && p->tx->op.nseg + 2 <= QRDMA_SEG_MAX &&
	       packer_room(p) > head;
}

static void packer_token(struct packer *p)
{
	struct qrdma_hs *hs = p->conn->hs;
	struct qrdma_seg seg = { .data = hs->token->data, .len = hs->token->len };

	if (!packer_seg_room(p, PACKER_TOKEN_HEAD) ||
	    p->room - packer_written(p) - p->data < PACKER_TOKEN_HEAD + seg.len)
		return;
	qrdma_writer_varint(&p->w, QRDMA_FRAME_NEW_TOKEN);
	qrdma_writer_varint(&p->w, seg.len);
	packer_eliciting(p);
	packer_note(p, QRDMA_FRAME_NEW_TOKEN, 0, 0, 0, 0);
	hs->give = QRDMA_HS_SENT;
	seg.owner = qrdma_buf_get(hs->token);
	packer_segs(p, &seg, 1);
}

static void packer_crypto(struct packer *p)
{
	struct qrdma_aead_op *op = &p->tx->op;
	struct qrdma_seg seg[QRDMA_SEG_MAX];
	struct qrdma_frame f;
	u32 nseg;

	while (packer_seg_room(p, PACKER_STREAM_HEAD) &&
	       qrdma_cstream_next(&p->conn->hs->crypto, p->room - packer_written(p) - p->data,
				  QRDMA_SEG_MAX - op->nseg - 1, &f, seg, &nseg)) {
		qrdma_frame_encode(&p->w, &f);
		packer_eliciting(p);
		packer_note(p, f.type, 0, QRDMA_SPACE_APP, f.crypto.off, f.crypto.len);
		packer_segs(p, seg, nseg);
	}
}

/* What a handshake in band leaves to be said in 1-RTT packets. */
static void packer_hs(struct packer *p)
{
	struct qrdma_frame f = { .type = QRDMA_FRAME_HANDSHAKE_DONE };
	struct qrdma_hs *hs = p->conn->hs;

	if (hs->done == QRDMA_HS_DUE && p->pkt.nframes < QRDMA_SENT_FRAMES && packer_put(p, &f)) {
		packer_note(p, f.type, 0, 0, 0, 0);
		hs->done = QRDMA_HS_SENT;
	}
	/* these are segments, and padding is written in place */
	if (p->expand)
		return;
	if (hs->give == QRDMA_HS_DUE)
		packer_token(p);
	packer_crypto(p);
}

static void packer_frames(struct packer *p)
{
	struct qrdma_conn *conn = p->conn;

	if (!p->early && qrdma_path_pending(&conn->path))
		packer_path(p);
	if (!p->early && conn->hs)
		packer_hs(p);
	if (qrdma_streams_pending_ctl(&conn->streams))
		packer_ctl(p);
	/* a datagram that validates a path is padded, and padding is written in place */
	if (!p->expand)
		packer_streams(p);
}

/*
 * The first bytes that the peer is not known to have are sent again. A peer short of memory refuses
 * everything but these, and then they are what alone helps: so they go into the first probe.
 */
static void packer_repeat_first(struct packer *p, const struct qrdma_sent *old)
{
	struct qrdma_streams *t = &p->conn->streams;
	const struct qrdma_stream *s;
	u32 i;

	for (i = 0; i < old->nframes; i++) {
		if (old->frame[i].type != QRDMA_FRAME_STREAM)
			continue;
		s = qrdma_streams_find(t, old->frame[i].id);
		if (s)
			qrdma_streams_lost(t, s->id, s->tx.una, p->room, false);
	}
}

/* A probe has to elicit an acknowledgment; best it repeats what is missing (RFC 9002 s6.2.4). */
static void packer_probe(struct packer *p)
{
	struct qrdma_conn *conn = p->conn;
	const struct qrdma_sent *old;

	p->pkt.flags |= QRDMA_SENT_PROBE;
	old = qrdma_recovery_oldest(&conn->recovery, QRDMA_SPACE_APP, conn->probe_from);
	if (old && !conn->probe_from)
		packer_repeat_first(p, old);
	packer_frames(p);
	if (old && !(p->pkt.flags & QRDMA_SENT_ELICITING)) {
		qrdma_conn_again(conn, old);
		packer_frames(p);
	}
	conn->probe_from = old ? old->pn + 1 : U64_MAX;
	conn->probes--;
}

static void packer_ping(struct packer *p)
{
	struct qrdma_frame f = { .type = QRDMA_FRAME_PING };

	packer_put(p, &f);
}

/* The header of a 0-RTT packet (RFC 9000 s17.2.3). */
static void packer_long_header(const struct packer *p, struct qrdma_hdr *hdr, u32 pn_len)
{
	const struct qrdma_cid *dcid = qrdma_path_dcid(&p->conn->path);

	memset(hdr, 0, sizeof(*hdr));
	hdr->type = QRDMA_PKT_0RTT;
	hdr->dcid = dcid->data;
	hdr->dcid_len = dcid->len;
	hdr->scid = p->conn->path.scid.data;
	hdr->scid_len = p->conn->path.scid.len;
	hdr->pn = p->pkt.pn;
	hdr->pn_len = pn_len;
}

/* Bytes of header, packet number included. */
static u32 packer_head(const struct packer *p, u32 pn_len)
{
	struct qrdma_hdr hdr;

	if (likely(!p->early))
		return 1 + qrdma_path_dcid(&p->conn->path)->len + pn_len;
	packer_long_header(p, &hdr, pn_len);
	return qrdma_hdr_long_size(&hdr);
}

static void packer_write_header(struct packer *p, u8 *pkt, u32 head, bool phase, u32 pn_len,
				u32 payload_len)
{
	struct qrdma_writer w;
	struct qrdma_hdr hdr;

	qrdma_writer_init(&w, pkt, head);
	if (likely(!p->early)) {
		qrdma_hdr_build_short(&w, qrdma_path_dcid(&p->conn->path),
				      phase ? QRDMA_HDR_PHASE : 0, p->pkt.pn, pn_len);
		return;
	}
	packer_long_header(p, &hdr, pn_len);
	qrdma_hdr_build_long(&w, &hdr);
	qrdma_hdr_set_length(&hdr, pkt, payload_len + QRDMA_TAG_LEN);
}

/*
 * Bytes of payload at least: the sample of header protection has to be there, and a stateless reset
 * of the peer's must be able to look like our packets. (An acknowledgment alone is not padded: it
 * would count as in flight.)
 */
static u32 packer_least(const struct packer *p, u32 hdr_len, u32 pn_len)
{
	u32 least = QRDMA_SAMPLE_LEAST - pn_len, other = hdr_len + QRDMA_TAG_LEN;

	if ((p->pkt.flags & QRDMA_SENT_ELICITING) && other < QRDMA_RESET_LIKE)
		least = max_t(u32, least, QRDMA_RESET_LIKE - other);
	other += p->base;
	if (p->expand && other < QRDMA_PATH_EXPAND)
		least = max(least, min_t(u32, p->room, QRDMA_PATH_EXPAND - other));
	return least;
}

/**
 * packer_seal() - all is in: write the header, describe the seal
 * @p: the packet
 * @slot: key, the reference becomes the operation's
 * @phase: its key phase bit
 * @pn_len: bytes of packet number
 */
static void packer_seal(struct packer *p, struct qrdma_slot *slot, bool phase, u32 pn_len)
{
	struct qrdma_tx *tx = p->tx;
	struct qrdma_aead_op *op = &tx->op;
	struct qrdma_writer w;
	u32 len = packer_written(p) + p->data, least;

	op->pkt = tx->data + p->base;
	op->hdr_len = packer_head(p, pn_len);
	op->pn_off = op->hdr_len - pn_len;
	least = packer_least(p, op->hdr_len, pn_len);
	if (op->nseg) {
		if (unlikely(len < least) && op->nseg < QRDMA_SEG_MAX) {
			qrdma_writer_zero(&p->w, least - len);
			len = least;
		}
		packer_flush(p);
	} else {
		qrdma_writer_init(&w, op->pkt + op->hdr_len, tx->cap - p->base - op->hdr_len);
		qrdma_writer_bytes(&w, tx->scratch, len);
		if (len < least) {
			qrdma_writer_zero(&w, least - len);
			len = least;
			p->pkt.flags |= QRDMA_SENT_IN_FLIGHT;
		}
		op->seg[0].data = op->pkt + op->hdr_len;
		op->seg[0].len = len;
		op->seg[0].owner = NULL;
		op->nseg = 1;
	}
	packer_write_header(p, op->pkt, op->hdr_len, phase, pn_len, len);
	op->slot = slot;
	op->pn = p->pkt.pn;
	op->pn_len = pn_len;
	op->payload_len = len;
	tx->aead = p->keys->aead;
	p->pkt.size = op->hdr_len + len + QRDMA_TAG_LEN;
	tx->len = p->base + p->pkt.size;
	p->conn->n.sealed++;
}

/**
 * packer_admit() - what may this datagram hold?
 * @conn: connection
 * @limit: bytes of the datagram at most
 * @now: ns
 * @frames: more than an ACK frame
 *
 * Return: 1: build one; 0: there is nothing to send; -EAGAIN: not now.
 */
static int packer_admit(struct qrdma_conn *conn, u32 limit, u64 now, bool *frames)
{
	enum qrdma_send_verdict v = QRDMA_SEND_OK;
	u64 at;

	conn->paced_until = QRDMA_NEVER;
	*frames = conn->probes;
	if (!*frames && qrdma_conn_frames_pending(conn)) {
		v = qrdma_recovery_may_send(&conn->recovery, limit, now, &at);
		*frames = v == QRDMA_SEND_OK;
		if (v == QRDMA_SEND_PACED)
			conn->paced_until = at;
	}
	if (*frames || qrdma_conn_ack_at(conn) <= now || qrdma_conn_hs_urgent(conn))
		return 1;
	return v == QRDMA_SEND_OK ? 0 : -EAGAIN;
}

/**
 * packer_number() - find the packet's number and see to it that it can be recorded
 * @p: the packet
 * @frames: more than an ACK frame
 * @now: ns
 * @skip: the number before it is left out
 * @pn_len: bytes that it takes on the wire
 *
 * The number is not spent yet, except that of an ACK-only packet, which is certain to leave.
 *
 * Return: 0, -EAGAIN, -ENOMEM, -EKEYEXPIRED.
 */
static int packer_number(struct packer *p, bool frames, u64 now, bool *skip, u32 *pn_len)
{
	enum qrdma_send_verdict v;
	struct qrdma_conn *conn = p->conn;
	struct qrdma_conn_space *space = &conn->app;

	if (space->pn.next > QRDMA_PN_MAX) {
		/* without a packet: there is no number for one (RFC 9000 s12.3) */
		conn->error.err = EKEYEXPIRED;
		qrdma_conn_die(conn);
		return -EKEYEXPIRED;
	}
	*skip = !space->skip_in && space->pn.next < QRDMA_PN_MAX;
	p->pkt.pn = space->pn.next + *skip;
	*pn_len = qrdma_pn_choose(conn, space, p->pkt.pn);
	if (!*pn_len)
		return -EAGAIN;
	p->record = frames || !qrdma_recovery_crowded(&conn->recovery, space->id);
	/*
	 * What the peer reports of marks is checked against the record; a datagram that holds
	 * packets of the handshake, too, is not marked, for they count in spaces of their own.
	 */
	if (p->record && qrdma_ecn_mark(&conn->recovery.ecn) &&
	    (likely(!conn->hs) || conn->hs->confirmed)) {
		p->tx->ect = true;
		p->pkt.flags |= QRDMA_SENT_ECT;
	}
	if (likely(p->record))
		v = qrdma_recovery_reserve(&conn->recovery, space->id, p->pkt.pn);
	else
		v = qrdma_recovery_pass(&conn->recovery, space->id, p->pkt.pn, now);
	switch (v) {
	case QRDMA_SEND_OK:
		return 0;
	case QRDMA_SEND_NOMEM:
		conn->paced_until = now + QRDMA_CONN_RETRY;
		return -ENOMEM;
	default:
		return -EAGAIN;
	}
}

/* The number and, with it, the nonce are spent. */
static struct qrdma_slot *packer_spend(struct packer *p, bool skip, bool *phase)
{
	struct qrdma_conn_space *space = &p->conn->app;
	u64 pn;

	if (skip) {
		qrdma_pnspace_take(&space->pn, &pn);
		qrdma_conn_skip_draw(p->conn, space);
	} else if (space->skip_in) {
		space->skip_in--;
	}
	qrdma_pnspace_take(&space->pn, &pn);
	return qrdma_keys_seal(p->keys, pn, phase);
}

static void packer_init(struct packer *p, struct qrdma_conn *conn, struct qrdma_tx *tx)
{
	p->conn = conn;
	p->tx = tx;
	p->early = !conn->app.keys.tx_cur && conn->hs;
	p->keys = p->early ? &conn->hs->early : &conn->app.keys;
	p->base = 0;
	qrdma_writer_init(&p->w, tx->scratch, sizeof(tx->scratch));
	p->mark = tx->scratch;
	p->data = 0;
	p->expand = false;
	p->pkt.flags = 0;
	p->pkt.nframes = 0;
	tx->op.nseg = 0;
	tx->op.slot = NULL;
	tx->len = 0;
	tx->ect = false;
}

/* CONNECTION_CLOSE in a 1-RTT packet, behind what is in the datagram. */
static int packer_close_app(struct qrdma_conn *conn, struct qrdma_tx *tx, u32 base)
{
	const struct qrdma_conn_error *error = &conn->error;
	struct qrdma_frame f = { .type = QRDMA_FRAME_CLOSE };
	struct qrdma_slot *slot = NULL;
	struct packer p;
	bool phase;

	packer_init(&p, conn, tx);
	p.base = base;
	p.room = QRDMA_TX_MIN - PACKER_HEAD_MAX - QRDMA_TAG_LEN;
	if (error->app)
		f.type = QRDMA_FRAME_CLOSE_APP;
	f.close.code = error->code;
	f.close.frame_type = error->frame_type;
	packer_put(&p, &f);
	p.pkt.pn = conn->app.pn.next;
	if (p.pkt.pn <= QRDMA_PN_MAX)
		slot = packer_spend(&p, false, &phase);
	if (!slot)
		return -EKEYEXPIRED;
	packer_seal(&p, slot, phase, QRDMA_PN_LEN_MAX);
	return tx->len;
}

static void packer_dgram_init(struct qrdma_dgram *d, struct qrdma_conn *conn, struct qrdma_tx *tx,
			      u64 now)
{
	memset(d, 0, sizeof(*d));
	d->conn = conn;
	d->tx = tx;
	d->now = now;
	d->limit = min_t(u64, min(tx->cap, conn->path.max_datagram), qrdma_hs_credit(conn->hs));
	tx->aead = conn->app.keys.aead;
	tx->ect = false;
}

/* All packets are described: let the first one to be sealed be in @tx->op. Return: bytes. */
static int packer_dgram_end(struct qrdma_dgram *d)
{
	struct qrdma_tx *tx = d->tx;

	tx->len = d->len;
	if (!tx->op.slot)
		qrdma_tx_next(tx);
	qrdma_hs_on_sent(d->conn, d->len, d->handshake, d->now);
	return d->len;
}

/*
 * While the handshake goes on nobody knows which keys the peer has: CONNECTION_CLOSE goes at every
 * level (RFC 9000 s10.2.3), and there what an application says is not for everybody to see.
 */
static int packer_close_hs(struct qrdma_conn *conn, struct qrdma_tx *tx, u64 now)
{
	const struct qrdma_conn_error *error = &conn->error;
	struct qrdma_frame f = { .type = QRDMA_FRAME_CLOSE };
	struct qrdma_dgram d;
	int len;
	u8 i;

	packer_dgram_init(&d, conn, tx, now);
	f.close.code = error->app ? QRDMA_ERR_APPLICATION_ERROR : error->code;
	f.close.frame_type = error->app ? 0 : error->frame_type;
	for (i = 0; i < QRDMA_HS_SPACES; i++)
		qrdma_longpkt_close(&d, i, &f);
	if (conn->app.keys.tx_cur && d.limit - d.len >= QRDMA_TX_MIN) {
		len = packer_close_app(conn, tx, d.len);
		d.len = max_t(int, len, d.len);
	}
	if (!d.len)
		return -EKEYEXPIRED;
	qrdma_longpkt_finish(&d);
	return packer_dgram_end(&d);
}

static int packer_build_close(struct qrdma_conn *conn, struct qrdma_tx *tx, u64 now)
{
	int len;

	if (!conn->close_due || conn->recovery.blocked)
		return 0;
	conn->close_due = false;
	if (unlikely(conn->hs) && !conn->hs->confirmed)
		len = packer_close_hs(conn, tx, now);
	else
		len = packer_close_app(conn, tx, 0);
	if (len < 0)
		qrdma_conn_die(conn);
	return len;
}

/* Keys: update when it is time, end the connection when it is too late for that. */
static int packer_check_keys(struct qrdma_conn *conn, struct qrdma_keys *keys, u64 now)
{
	if (likely(!qrdma_keys_update_due(keys)))
		return 0;
	if (conn->recovery.confirmed)
		qrdma_keys_update(keys, true);
	if (!qrdma_keys_exhausted(keys))
		return 0;
	/* the acknowledgment that allows the update may be on its way */
	if (conn->recovery.in_flight && !qrdma_keys_spent(keys))
		return conn->probes ? 0 : -EAGAIN;
	qrdma_conn_fail(conn, EKEYEXPIRED, QRDMA_ERR_AEAD_LIMIT_REACHED, 0, now);
	return -EKEYEXPIRED;
}

static void packer_armed(struct qrdma_conn *conn, u64 now)
{
	if (!conn->idle_armed) {
		conn->idle_armed = true;
		conn->idle_since = now;
	}
}

static void packer_sent(struct packer *p, u64 now)
{
	struct qrdma_conn *conn = p->conn;

	if (likely(p->record))
		qrdma_recovery_on_sent(&conn->recovery, conn->app.id, &p->pkt, now);
	if (!(p->pkt.flags & QRDMA_SENT_ELICITING))
		return;
	conn->ping = false;
	packer_armed(conn, now);
}

/**
 * packer_build_app() - a 1-RTT or 0-RTT packet
 * @p: the packet, its base set
 * @limit: bytes of the datagram at most
 * @frames: more than an ACK frame
 * @now: ns
 *
 * Return: bytes of the datagram with it; 0: nothing to send; -EAGAIN, -ENOMEM, -EKEYEXPIRED.
 */
static int packer_build_app(struct packer *p, u32 limit, bool frames, u64 now)
{
	struct qrdma_conn *conn = p->conn;
	bool probe = conn->probes && conn->probe_space == QRDMA_SPACE_APP, skip, phase;
	struct qrdma_slot *slot;
	u32 pn_len;
	int err;

	err = packer_number(p, frames, now, &skip, &pn_len);
	if (err)
		return err;
	p->room = limit - p->base - packer_head(p, pn_len) - QRDMA_TAG_LEN;
	if (!p->early && (qrdma_pnspace_ack_due(&conn->app.pn, now) ||
			  (frames && qrdma_pnspace_ack_useful(&conn->app.pn))))
		packer_ack(p, now);
	if (frames) {
		if (unlikely(probe))
			packer_probe(p);
		else
			packer_frames(p);
		if (!(p->pkt.flags & QRDMA_SENT_ELICITING) &&
		    (conn->ping || p->pkt.flags & QRDMA_SENT_PROBE))
			packer_ping(p);
	}
	if (!packer_written(p))
		return 0;
	slot = packer_spend(p, skip, &phase);
	packer_seal(p, slot, phase, pn_len);
	return p->tx->len;
}

/* Probes of the handshake repeat the oldest of both spaces (RFC 9002 s6.2.4). */
static void packer_repeat_hs(struct qrdma_conn *conn)
{
	const struct qrdma_sent *old;
	u8 i;

	for (i = 0; i < QRDMA_HS_SPACES; i++) {
		if (!qrdma_hs_can_send(conn->hs, i) ||
		    qrdma_cstream_pending(&conn->hs->space[i]->crypto))
			continue;
		old = qrdma_recovery_oldest(&conn->recovery, i, 0);
		if (old)
			qrdma_conn_again(conn, old);
	}
}

/* Is there something to seal a packet of the application's space with, and something to put in? */
static bool packer_wants_app(const struct qrdma_dgram *d)
{
	const struct qrdma_conn *conn = d->conn;

	if (d->limit - d->len < QRDMA_TX_MIN)
		return false;
	if (conn->app.keys.tx_cur)
		return d->frames || qrdma_pnspace_ack_due(&conn->app.pn, d->now);
	return d->frames && qrdma_hs_early_tx(conn->hs);
}

/* Tell recovery of the Initial and Handshake packets. */
static void packer_dgram_sent(struct qrdma_dgram *d)
{
	struct qrdma_conn *conn = d->conn;
	u8 i;

	for (i = 0; i < QRDMA_HS_SPACES; i++) {
		if (!d->sent[i].size)
			continue;
		qrdma_recovery_on_sent(&conn->recovery, i, &d->sent[i], d->now);
		if (d->sent[i].flags & QRDMA_SENT_ELICITING)
			packer_armed(conn, d->now);
	}
}

/* A datagram of several packets: the handshake goes on. */
static int packer_build_hs(struct qrdma_conn *conn, struct qrdma_tx *tx, u64 now)
{
	struct qrdma_dgram d;
	struct packer p;
	int err, len = 0;
	u8 i;

	if (conn->recovery.blocked)
		return 0;
	packer_dgram_init(&d, conn, tx, now);
	packer_init(&p, conn, tx);
	err = packer_admit(conn, d.limit, now, &d.frames);
	if (err <= 0)
		return err;
	err = p.keys->tx_cur ? packer_check_keys(conn, p.keys, now) : 0;
	if (err)
		return err;
	d.urgent = qrdma_conn_hs_urgent(conn);
	if (conn->probes && conn->probe_space != QRDMA_SPACE_APP)
		packer_repeat_hs(conn);
	for (i = 0; i < QRDMA_HS_SPACES && err >= 0; i++)
		err = qrdma_longpkt_build(&d, i);
	if (err >= 0 && packer_wants_app(&d)) {
		p.base = d.len;
		len = packer_build_app(&p, d.limit, d.frames, now);
		if (unlikely(conn->phase != QRDMA_CONN_OPEN)) {
			qrdma_tx_release(tx);
			return len;
		}
	}
	if (conn->probes && conn->probe_space != QRDMA_SPACE_APP)
		conn->probes--;
	d.len = max_t(int, len, d.len);
	if (!d.len) {
		/* not even a probe had a key */
		conn->probes = 0;
		if (err == -ENOMEM)
			conn->paced_until = now + QRDMA_CONN_RETRY;
		return min(err, len);
	}
	qrdma_longpkt_finish(&d);
	packer_dgram_sent(&d);
	if (len > 0)
		packer_sent(&p, now);
	return packer_dgram_end(&d);
}

int qrdma_packer_build(struct qrdma_conn *conn, struct qrdma_tx *tx, u64 now)
{
	u32 limit = min(tx->cap, conn->path.max_datagram);
	struct packer p;
	bool frames;
	int err;

	tx->parts = 0;
	if (limit < QRDMA_TX_MIN)
		return -EMSGSIZE;
	if (unlikely(conn->phase != QRDMA_CONN_OPEN)) {
		packer_init(&p, conn, tx);
		return packer_build_close(conn, tx, now);
	}
	if (unlikely(conn->hs) && !conn->hs->confirmed)
		return packer_build_hs(conn, tx, now);
	if (!conn->app.keys.tx_cur)
		return 0;
	packer_init(&p, conn, tx);
	err = packer_admit(conn, limit, now, &frames);
	if (err <= 0)
		return err;
	err = packer_check_keys(conn, p.keys, now) ?: packer_build_app(&p, limit, frames, now);
	if (err <= 0)
		return err;
	packer_sent(&p, now);
	return tx->len;
}

int qrdma_tx_protect(struct qrdma_tx *tx)
{
	struct qrdma_aead_op *op = &tx->op;
	u8 mask[QRDMA_HP_MASK_LEN];
	int err;

	err = tx->aead->hp_mask(op->slot, op->pkt + op->pn_off + QRDMA_PN_LEN_MAX, mask);
	if (!err)
		qrdma_hdr_protect(op->pkt, op->pn_off, op->pn_len, mask);
	return err;
}

/* What is described in @tx->op is done with. */
static void packer_op_release(struct qrdma_tx *tx)
{
	struct qrdma_aead_op *op = &tx->op;
	u32 i;

	for (i = 0; i < op->nseg; i++)
		qrdma_buf_put(op->seg[i].owner);
	op->nseg = 0;
	if (op->slot)
		tx->aead->slot_put(op->slot);
	op->slot = NULL;
}

bool qrdma_tx_next(struct qrdma_tx *tx)
{
	struct qrdma_aead_op *op = &tx->op;
	const struct qrdma_tx_part *part;

	if (likely(!tx->parts))
		return false;
	packer_op_release(tx);
	part = &tx->part[--tx->parts];
	op->slot = part->slot;
	op->pn = part->pn;
	op->pkt = tx->data + part->off;
	op->hdr_len = part->hdr_len;
	op->pn_off = part->pn_off;
	op->pn_len = part->pn_len;
	op->payload_len = part->payload_len;
	op->seg[0].data = op->pkt + op->hdr_len;
	op->seg[0].len = op->payload_len;
	op->seg[0].owner = NULL;
	op->nseg = 1;
	return true;
}

void qrdma_tx_release(struct qrdma_tx *tx)
{
	packer_op_release(tx);
	while (tx->parts)
		tx->aead->slot_put(tx->part[--tx->parts].slot);
}
