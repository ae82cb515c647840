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
 */
#include "packer.h"
#include "conn_state.h"
#include "frame.h"

/* most bytes of frame header before the data of a STREAM frame: type, id, offset, length */
#define PACKER_STREAM_HEAD	(1 + 8 + 8 + 4)
/* scratch that an ACK frame leaves for the others */
#define PACKER_ACK_LEAVES	64
/*
 * Bytes of packet number at least. RFC 9000 A.2 would often do with one, but here 128 packets pass
 * in some ten microseconds, and a packet that comes later than that could not be told any more.
 */
#define PACKER_PN_LEN_MIN	2
/* most bytes of a short header with its packet number */
#define PACKER_HEAD_MAX	(1 + QRDMA_CID_MAX + QRDMA_PN_LEN_MAX)
/* header protection samples 4 bytes behind the start of the packet number (RFC 9001 s5.4.2) */
#define PACKER_SAMPLE_MIN	4

/**
 * struct packer - a packet being put together
 * @conn: whose
 * @tx: the datagram
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
	packer_note(p, QRDMA_FRAME_ACK, 0, 0, ack.largest, 0);
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

static void packer_frames(struct packer *p)
{
	struct qrdma_conn *conn = p->conn;

	if (qrdma_path_pending(&conn->path))
		packer_path(p);
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

/**
 * packer_seal() - all is in: write the header, describe the seal
 * @p: the packet
 * @slot: key, the reference becomes the operation's
 * @phase: its key phase bit
 * @pn: packet number
 * @pn_len: bytes of it
 */
static void packer_seal(struct packer *p, struct qrdma_slot *slot, bool phase, u64 pn, u32 pn_len)
{
	const struct qrdma_cid *dcid = qrdma_path_dcid(&p->conn->path);
	struct qrdma_tx *tx = p->tx;
	struct qrdma_aead_op *op = &tx->op;
	struct qrdma_writer w;
	u32 len = packer_written(p) + p->data, least = PACKER_SAMPLE_MIN - pn_len;

	op->pn_off = 1 + dcid->len;
	op->hdr_len = op->pn_off + pn_len;
	if (op->nseg) {
		packer_flush(p);
	} else {
		if (p->expand)
			least = min_t(u32, p->room,
				      QRDMA_PATH_EXPAND - op->hdr_len - QRDMA_TAG_LEN);
		qrdma_writer_init(&w, tx->data + op->hdr_len, tx->cap - op->hdr_len);
		qrdma_writer_bytes(&w, tx->scratch, len);
		if (len < least) {
			qrdma_writer_zero(&w, least - len);
			len = least;
			p->pkt.flags |= QRDMA_SENT_IN_FLIGHT;
		}
		op->seg[0].data = tx->data + op->hdr_len;
		op->seg[0].len = len;
		op->seg[0].owner = NULL;
		op->nseg = 1;
	}
	qrdma_writer_init(&w, tx->data, tx->cap);
	qrdma_hdr_build_short(&w, dcid, phase ? QRDMA_HDR_PHASE : 0, pn, pn_len);
	op->slot = slot;
	op->pn = pn;
	op->pn_len = pn_len;
	op->pkt = tx->data;
	op->payload_len = len;
	tx->aead = p->conn->app.keys.aead;
	tx->len = op->hdr_len + len + QRDMA_TAG_LEN;
	p->conn->n.sealed++;
}

/**
 * packer_admit() - what may this packet hold?
 * @p: the packet
 * @limit: bytes of the datagram at most
 * @now: ns
 * @frames: more than an ACK frame
 *
 * Return: 1: build one; 0: there is nothing to send; -EAGAIN: not now.
 */
static int packer_admit(struct packer *p, u32 limit, u64 now, bool *frames)
{
	enum qrdma_send_verdict v = QRDMA_SEND_OK;
	struct qrdma_conn *conn = p->conn;
	u64 at;

	conn->paced_until = QRDMA_NEVER;
	*frames = conn->probes;
	if (!*frames && (conn->ping || qrdma_path_pending(&conn->path) ||
			 qrdma_streams_pending(&conn->streams))) {
		v = qrdma_recovery_may_send(&conn->recovery, limit, now, &at);
		*frames = v == QRDMA_SEND_OK;
		if (v == QRDMA_SEND_PACED)
			conn->paced_until = at;
	}
	if (*frames || qrdma_pnspace_ack_due(&conn->app.pn, now))
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
	u64 unacked = 0;

	if (space->pn.next > QRDMA_PN_MAX) {
		/* without a packet: there is no number for one (RFC 9000 s12.3) */
		conn->error.err = EKEYEXPIRED;
		qrdma_conn_die(conn);
		return -EKEYEXPIRED;
	}
	*skip = !space->skip_in && space->pn.next < QRDMA_PN_MAX;
	p->pkt.pn = space->pn.next + *skip;
	if (qrdma_recovery_largest_acked(&conn->recovery, space->id, &unacked))
		unacked++;
	*pn_len = qrdma_pn_len(p->pkt.pn, unacked);
	if (!*pn_len)
		return -EAGAIN;
	*pn_len = max_t(u32, *pn_len, PACKER_PN_LEN_MIN);
	p->record = frames || !qrdma_recovery_crowded(&conn->recovery, space->id);
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
	return qrdma_keys_seal(&space->keys, pn, phase);
}

static void packer_init(struct packer *p, struct qrdma_conn *conn, struct qrdma_tx *tx)
{
	p->conn = conn;
	p->tx = tx;
	qrdma_writer_init(&p->w, tx->scratch, sizeof(tx->scratch));
	p->mark = tx->scratch;
	p->data = 0;
	p->expand = false;
	p->pkt.flags = 0;
	p->pkt.nframes = 0;
	tx->op.nseg = 0;
	tx->op.slot = NULL;
	tx->len = 0;
}

static int packer_build_close(struct qrdma_conn *conn, struct qrdma_tx *tx)
{
	const struct qrdma_conn_error *error = &conn->error;
	struct qrdma_frame f = { .type = QRDMA_FRAME_CLOSE };
	struct qrdma_slot *slot = NULL;
	struct packer p;
	bool phase;

	if (!conn->close_due)
		return 0;
	conn->close_due = false;
	packer_init(&p, conn, tx);
	p.room = QRDMA_TX_MIN - PACKER_HEAD_MAX - QRDMA_TAG_LEN;
	if (error->app)
		f.type = QRDMA_FRAME_CLOSE_APP;
	f.close.code = error->code;
	f.close.frame_type = error->frame_type;
	packer_put(&p, &f);
	p.pkt.pn = conn->app.pn.next;
	if (p.pkt.pn <= QRDMA_PN_MAX)
		slot = packer_spend(&p, false, &phase);
	if (!slot) {
		qrdma_conn_die(conn);
		return -EKEYEXPIRED;
	}
	packer_seal(&p, slot, phase, p.pkt.pn, QRDMA_PN_LEN_MAX);
	return tx->len;
}

/* Keys: update when it is time, end the connection when it is too late for that. */
static int packer_check_keys(struct qrdma_conn *conn, u64 now)
{
	struct qrdma_keys *keys = &conn->app.keys;

	if (likely(!qrdma_keys_update_due(keys)))
		return 0;
	qrdma_keys_update(keys, true);
	if (!qrdma_keys_exhausted(keys))
		return 0;
	/* the acknowledgment that allows the update may be on its way */
	if (conn->recovery.in_flight && !qrdma_keys_spent(keys))
		return conn->probes ? 0 : -EAGAIN;
	qrdma_conn_fail(conn, EKEYEXPIRED, QRDMA_ERR_AEAD_LIMIT_REACHED, 0, now);
	return -EKEYEXPIRED;
}

static void packer_sent(struct packer *p, u64 now)
{
	struct qrdma_conn *conn = p->conn;

	p->pkt.size = p->tx->len;
	if (likely(p->record))
		qrdma_recovery_on_sent(&conn->recovery, conn->app.id, &p->pkt, now);
	if (!(p->pkt.flags & QRDMA_SENT_ELICITING))
		return;
	conn->ping = false;
	if (!conn->idle_armed) {
		conn->idle_armed = true;
		conn->idle_since = now;
	}
}

int qrdma_packer_build(struct qrdma_conn *conn, struct qrdma_tx *tx, u64 now)
{
	u32 limit = min(tx->cap, conn->path.max_datagram), pn_len, head;
	struct qrdma_slot *slot;
	bool frames, skip, phase;
	struct packer p;
	int err;

	if (limit < QRDMA_TX_MIN)
		return -EMSGSIZE;
	if (unlikely(conn->phase != QRDMA_CONN_OPEN))
		return packer_build_close(conn, tx);
	if (!conn->app.keys.tx_cur)
		return 0;
	packer_init(&p, conn, tx);
	err = packer_admit(&p, limit, now, &frames);
	if (err <= 0)
		return err;
	err = packer_check_keys(conn, now) ?: packer_number(&p, frames, now, &skip, &pn_len);
	if (err)
		return err;

	head = 1 + qrdma_path_dcid(&conn->path)->len + pn_len;
	p.room = limit - head - QRDMA_TAG_LEN;
	if (qrdma_pnspace_ack_due(&conn->app.pn, now) ||
	    (frames && qrdma_pnspace_ack_useful(&conn->app.pn)))
		packer_ack(&p, now);
	if (frames) {
		if (unlikely(conn->probes))
			packer_probe(&p);
		else
			packer_frames(&p);
		if (!(p.pkt.flags & QRDMA_SENT_ELICITING) &&
		    (conn->ping || p.pkt.flags & QRDMA_SENT_PROBE))
			packer_ping(&p);
	}
	if (!packer_written(&p))
		return 0;
	slot = packer_spend(&p, skip, &phase);
	packer_seal(&p, slot, phase, p.pkt.pn, pn_len);
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

void qrdma_tx_release(struct qrdma_tx *tx)
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
