// SPDX-License-Identifier: GPL-2.0
/*
 * The receiving half of a connection: from a datagram to applied frames.
 *
 * Owns: nothing. Called by: the datapath through conn.h, under the socket lock, never sleeping.
 *
 * A packet is opened between qrdma_conn_rx_begin() and qrdma_conn_rx_finish(), perhaps much later
 * and out of order; whatever may have changed meanwhile (keys, duplicates, the end of the
 * connection) is looked at when it finishes. Its payload is decoded and checked as a whole, then
 * applied frame by frame. Where memory runs out half-way the packet is not acknowledged: all frames
 * may be applied twice, so what the peer sends again does no harm.
 */
#include "conn.h"
#include "conn_state.h"
#include "handshake.h"
#include "frame.h"

/* Frames of a packet that are kept decoded between check and use: most have no more. */
#define CONN_RX_KEPT	3

/**
 * struct conn_payload - what a look over the whole payload found
 * @eliciting: the packet is to be acknowledged soon
 * @closes: it holds CONNECTION_CLOSE
 * @nkept: how many there are in @kept
 * @kept: the first frames, decoded
 * @rest: where the frame behind them begins
 */
struct conn_payload {
	bool eliciting;
	bool closes;
	u32 nkept;
	struct qrdma_frame kept[CONN_RX_KEPT];
	struct qrdma_cursor rest;
};

static enum qrdma_rx_verdict conn_rx_drop(struct qrdma_conn *conn, struct qrdma_rx *rx,
					  enum qrdma_drop why)
{
	rx->drop = why;
	conn->n.drops[why]++;
	return QRDMA_RX_DROP;
}

static enum qrdma_drop conn_rx_refused(enum qrdma_hdr_verdict v)
{
	return v == QRDMA_HDR_VERSION ? QRDMA_DROP_VERSION : QRDMA_DROP_HEADER;
}

/**
 * conn_rx_open() - describe how a packet is opened
 * @conn: connection
 * @rx: datagram; its level is set
 * @hdr: header, protected
 * @pkt: first byte of the packet
 * @keys: of its level, to open with
 * @ps: its packet number space
 *
 * Return: QRDMA_RX_OPEN or QRDMA_RX_DROP.
 */
static enum qrdma_rx_verdict conn_rx_open(struct qrdma_conn *conn, struct qrdma_rx *rx,
					  struct qrdma_hdr *hdr, u8 *pkt, struct qrdma_keys *keys,
					  struct qrdma_pnspace *ps)
{
	struct qrdma_aead_op *op = &rx->op;
	u8 mask[QRDMA_HP_MASK_LEN];

	rx->aead = keys->aead;
	if (unlikely(rx->aead->hp_mask(keys->rx_cur, qrdma_hdr_sample(hdr, pkt), mask)))
		return conn_rx_drop(conn, rx, QRDMA_DROP_CRYPTO);
	qrdma_hdr_unprotect(hdr, pkt, mask);
	op->pn = qrdma_pn_decode(ps->seen.count ? ps->largest + 1 : 0, hdr->pn, hdr->pn_len);
	if (likely(hdr->type == QRDMA_PKT_SHORT)) {
		op->slot = qrdma_keys_open(keys, op->pn, hdr->first & QRDMA_HDR_PHASE, &rx->gen);
	} else {
		rx->aead->slot_get(keys->rx_cur);
		op->slot = keys->rx_cur;
		rx->gen = 0;
	}
	if (unlikely(!op->slot))
		return conn_rx_drop(conn, rx, QRDMA_DROP_NO_KEY);
	op->pkt = pkt;
	op->pn_off = hdr->pn_off;
	op->pn_len = hdr->pn_len;
	op->hdr_len = hdr->pn_off + hdr->pn_len;
	op->payload_len = hdr->len - op->hdr_len;
	op->nseg = 0;
	rx->wire = hdr->len;
	rx->drop = QRDMA_DROP_NONE;
	return QRDMA_RX_OPEN;
}

/* No key (yet): keep the packet, or not. */
static enum qrdma_rx_verdict conn_rx_wait(struct qrdma_conn *conn, struct qrdma_rx *rx,
					  const u8 *pkt, u32 len, u64 now)
{
	if (!conn->hs || !qrdma_hs_hold(conn, rx, rx->level, pkt, len, now))
		return conn_rx_drop(conn, rx, QRDMA_DROP_NO_KEY);
	rx->drop = QRDMA_DROP_NONE;
	return QRDMA_RX_DROP;
}

/* Is a long header packet for us? A server answers to the id that the client chose, too. */
static bool conn_rx_is_ours(struct qrdma_conn *conn, struct qrdma_rx *rx,
			    const struct qrdma_hdr *hdr, bool first)
{
	const struct qrdma_cid *ours = &conn->path.scid, *alias = &conn->hs->initial_cid;
	bool is_alias;

	if (hdr->dcid_len == ours->len && !memcmp(hdr->dcid, ours->data, ours->len))
		is_alias = false;
	else if (conn->server && rx->level != QRDMA_ENC_HANDSHAKE && hdr->dcid_len == alias->len &&
		 !memcmp(hdr->dcid, alias->data, alias->len))
		is_alias = true;
	else
		return false;
	/* all packets of a datagram go to the first one's id (RFC 9000 s12.2) */
	if (first)
		rx->alias = is_alias;
	return rx->alias == is_alias;
}

static bool conn_rx_level(struct qrdma_rx *rx, u8 type)
{
	switch (type) {
	case QRDMA_PKT_INITIAL:
		rx->level = QRDMA_ENC_INITIAL;
		return true;
	case QRDMA_PKT_0RTT:
		rx->level = QRDMA_ENC_EARLY;
		return true;
	case QRDMA_PKT_HANDSHAKE:
		rx->level = QRDMA_ENC_HANDSHAKE;
		return true;
	}
	return false;
}

/* Packet number space of a level, NULL: it is over. */
static struct qrdma_conn_space *conn_rx_space(struct qrdma_conn *conn, u8 level)
{
	if (likely(level == QRDMA_ENC_APP || level == QRDMA_ENC_EARLY))
		return &conn->app;
	return qrdma_conn_space(conn, level == QRDMA_ENC_INITIAL ? QRDMA_SPACE_INITIAL :
				      QRDMA_SPACE_HANDSHAKE);
}

static struct qrdma_keys *conn_rx_keys(struct qrdma_conn *conn, u8 level)
{
	struct qrdma_conn_space *space = conn_rx_space(conn, level);

	if (level == QRDMA_ENC_EARLY)
		return &conn->hs->early;
	return space ? &space->keys : NULL;
}

/* Initial, 0-RTT, Handshake, Retry or Version Negotiation. */
static enum qrdma_rx_verdict conn_rx_long(struct qrdma_conn *conn, struct qrdma_rx *rx,
					  struct qrdma_hdr *hdr, u8 *pkt, bool first, u64 now)
{
	struct qrdma_conn_space *space;

	if (hdr->type == QRDMA_PKT_VERSION_NEG) {
		qrdma_hs_on_version_neg(conn, hdr);
		return conn_rx_drop(conn, rx, QRDMA_DROP_VERSION);
	}
	if (hdr->type == QRDMA_PKT_RETRY) {
		if (!qrdma_hs_begin_retry(conn, rx, hdr, pkt))
			return conn_rx_drop(conn, rx, QRDMA_DROP_STATE);
		rx->wire = hdr->len;
		rx->drop = QRDMA_DROP_NONE;
		return QRDMA_RX_OPEN;
	}
	if (!conn_rx_level(rx, hdr->type) || !conn_rx_is_ours(conn, rx, hdr, first))
		return conn_rx_drop(conn, rx, QRDMA_DROP_HEADER);
	if (conn->server) {
		/* RFC 9000 s14.1 */
		if (rx->level == QRDMA_ENC_INITIAL && rx->total < qrdma_hs_expand(conn))
			return conn_rx_drop(conn, rx, QRDMA_DROP_HEADER);
	} else if (rx->level == QRDMA_ENC_EARLY || hdr->token_len) {
		/* RFC 9000 s17.2.2, s17.2.3: not from a server */
		return conn_rx_drop(conn, rx, QRDMA_DROP_HEADER);
	}
	if (!qrdma_conn_can_open(conn, rx->level))
		return conn_rx_wait(conn, rx, pkt, hdr->len, now);
	space = conn_rx_space(conn, rx->level);
	return conn_rx_open(conn, rx, hdr, pkt, conn_rx_keys(conn, rx->level), &space->pn);
}

/*
 * May the peer have lost the connection? What it says of a packet that came before it had made the
 * connection may arrive long after that. A peer that has lost it answers the next probe in the same
 * way.
 */
static bool conn_rx_may_be_lost(const struct qrdma_conn *conn, u64 now)
{
	return conn->verified &&
	       now >= conn->heard + 3 * qrdma_recovery_pto(&conn->recovery, QRDMA_SPACE_APP);
}

/* RFC 9000 s10.3.1: @len bytes at @data belong to no packet of the peer; are they its reset? */
static bool conn_rx_stray(struct qrdma_conn *conn, const u8 *data, u32 len, u64 now)
{
	const u8 *tail = qrdma_hdr_reset_token(data, len);

	if (conn->phase >= QRDMA_CONN_DRAINING || !tail ||
	    !qrdma_path_is_reset(&conn->path, tail) || !conn_rx_may_be_lost(conn, now))
		return false;
	if (conn->phase == QRDMA_CONN_OPEN) {
		conn->error.err = ECONNRESET;
		conn->error.remote = true;
		conn->error.stateless = true;
	}
	qrdma_conn_begin_draining(conn, now);
	return true;
}

enum qrdma_rx_verdict qrdma_conn_rx_begin(struct qrdma_conn *conn, struct qrdma_rx *rx, u64 now)
{
	enum qrdma_rx_verdict verdict;
	enum qrdma_hdr_verdict v;
	struct qrdma_hdr hdr;
	u8 *pkt = rx->data;
	bool first = false;

	if (!rx->len) {
		rx->total = 0;
		rx->at = 0;
		return QRDMA_RX_DONE;
	}
	if (conn->phase >= QRDMA_CONN_DRAINING) {
		rx->len = 0;
		return conn_rx_drop(conn, rx, QRDMA_DROP_STATE);
	}
	if (!rx->total) {
		first = true;
		rx->alias = false;
		rx->total = rx->len;
		if (unlikely(conn->hs))
			qrdma_hs_on_datagram(conn, rx->len);
	} else if (rx->at) {
		first = true;
	}
	v = qrdma_hdr_parse(&hdr, pkt, rx->len);
	rx->data += hdr.len;
	rx->len -= hdr.len;
	if (unlikely(v != QRDMA_HDR_OK))
		return conn_rx_drop(conn, rx, conn_rx_refused(v));
	if (unlikely(hdr.type != QRDMA_PKT_SHORT)) {
		/* out of band the levels of the handshake have no keys */
		if (!conn->hs)
			return conn_rx_drop(conn, rx, QRDMA_DROP_NO_KEY);
		return conn_rx_long(conn, rx, &hdr, pkt, first, now);
	}
	rx->level = QRDMA_ENC_APP;
	if (unlikely(memcmp(hdr.dcid, conn->path.scid.data, QRDMA_CID_LEN) || rx->alias))
		return conn_rx_drop(conn, rx, QRDMA_DROP_HEADER);
	if (unlikely(!conn->app.keys.rx_cur || (conn->hs && !conn->hs->complete)))
		return conn_rx_wait(conn, rx, pkt, hdr.len, now);
	verdict = conn_rx_open(conn, rx, &hdr, pkt, &conn->app.keys, &conn->app.pn);
	/* a reset may look like a packet of the next key phase */
	if (unlikely(verdict == QRDMA_RX_DROP))
		conn_rx_stray(conn, pkt, hdr.len, now);
	return verdict;
}

void qrdma_rx_release(struct qrdma_rx *rx)
{
	if (rx->op.slot)
		rx->aead->slot_put(rx->op.slot);
	rx->op.slot = NULL;
	qrdma_buf_put(rx->pseudo);
	rx->pseudo = NULL;
}

/* Which frames may stand in a packet, by level and by who sent it. */
static u32 conn_rx_where(const struct qrdma_conn *conn, u8 level)
{
	static const u8 packet[QRDMA_ENCS] = {
		[QRDMA_ENC_INITIAL]	= QRDMA_FA_INITIAL,
		[QRDMA_ENC_EARLY]	= QRDMA_FA_0RTT,
		[QRDMA_ENC_HANDSHAKE]	= QRDMA_FA_HANDSHAKE,
		[QRDMA_ENC_APP]	= QRDMA_FA_1RTT,
	};

	return packet[level] | (conn->server ? QRDMA_FA_CLIENT : QRDMA_FA_SERVER);
}

/* Decode and check all frames, change nothing. Return: QUIC error code, *@type what caused it. */
static u64 conn_rx_check(const struct qrdma_conn *conn, u8 level, struct qrdma_cursor c,
			 struct conn_payload *what, u64 *type)
{
	u32 where = conn_rx_where(conn, level);
	struct qrdma_frame spare, *frame;
	u64 code;

	what->eliciting = false;
	what->closes = false;
	what->nkept = 0;
	what->rest = c;
	*type = QRDMA_FRAME_PADDING;
	if (!qrdma_cursor_left(&c))
		return QRDMA_ERR_PROTOCOL_VIOLATION;	/* RFC 9000 s12.4 */
	while (qrdma_cursor_left(&c)) {
		frame = what->nkept < CONN_RX_KEPT ? &what->kept[what->nkept] : &spare;
		code = qrdma_frame_decode(&c, where, frame);
		if (unlikely(code)) {
			*type = frame->type;
			return code;
		}
		if (frame != &spare) {
			what->nkept++;
			what->rest = c;
		}
		if (qrdma_frame_attr(frame->type) & QRDMA_FA_ELICITING)
			what->eliciting = true;
		if (frame->type == QRDMA_FRAME_CLOSE || frame->type == QRDMA_FRAME_CLOSE_APP)
			what->closes = true;
	}
	return QRDMA_ERR_NO_ERROR;
}

/* RFC 9000 s19.3: ACK Delay is in units of 2^exponent microseconds. */
static u64 conn_ack_delay(const struct qrdma_conn *conn, u8 level, u64 wire)
{
	/* what a transport parameter says is for 1-RTT packets */
	u32 exponent = level == QRDMA_ENC_APP ? conn->peer_ack_exponent : QRDMA_HS_ACK_EXPONENT;

	if (wire > (U64_MAX / NSEC_PER_USEC) >> exponent)
		return U64_MAX;
	return (wire << exponent) * NSEC_PER_USEC;
}

static int conn_rx_ack(struct qrdma_conn *conn, const struct qrdma_rx *rx,
		       const struct qrdma_ack *ack, u64 now, u64 *verdict)
{
	struct qrdma_conn_space *space = conn_rx_space(conn, rx->level);
	struct qrdma_recovery_result res;

	if (rx->level == QRDMA_ENC_APP &&
	    qrdma_keys_acked(&conn->app.keys, rx->gen, ack->largest)) {
		*verdict = QRDMA_ERR_KEY_UPDATE_ERROR;
		return -EPROTO;
	}
	*verdict = QRDMA_ERR_PROTOCOL_VIOLATION;
	if (qrdma_recovery_on_ack(&conn->recovery, space->id, ack,
				  conn_ack_delay(conn, rx->level, ack->delay), now, &res))
		return -EPROTO;
	qrdma_conn_settle(conn, &res);
	/* a client may take that for confirmation, too (RFC 9001 s4.1.2) */
	if (unlikely(!conn->recovery.confirmed) && conn->app.keys.tx_confirmed)
		qrdma_hs_confirm(conn, now);
	return 0;
}

static int conn_rx_crypto(struct qrdma_conn *conn, struct qrdma_rx *rx,
			  const struct qrdma_frame *f, u64 *verdict)
{
	if (conn->hs)
		return qrdma_hs_on_crypto(conn, rx->level, f, rx->copy ? NULL : rx->buf, verdict);
	/* nothing of TLS is taken after a handshake out of band; how much may come is bounded */
	*verdict = QRDMA_ERR_CRYPTO_BUFFER_EXCEEDED;
	return f->crypto.off + f->crypto.len > QRDMA_CONN_CRYPTO_MAX ? -EPROTO : 0;
}

static int conn_rx_datagram(struct qrdma_conn *conn, const struct qrdma_frame *f, u64 *verdict)
{
	*verdict = QRDMA_ERR_PROTOCOL_VIOLATION;	/* RFC 9221 s3 */
	if (qrdma_frame_size(f) > conn->max_datagram_frame)
		return -EPROTO;
	conn->n.datagrams_dropped++;
	return 0;
}

static int conn_rx_new_cid(struct qrdma_conn *conn, const struct qrdma_frame *f, u64 *verdict)
{
	struct qrdma_cid cid = { .len = f->new_cid.len };

	memcpy(cid.data, f->new_cid.cid, cid.len);
	/* the id in use may be retired by it, and its token with it */
	conn->events |= QRDMA_EV_RESET_TOKEN;
	return qrdma_path_on_new_cid(&conn->path, f->new_cid.seq, f->new_cid.retire_prior_to,
				     &cid, f->new_cid.reset_token, verdict);
}

/* What the peer's alert (RFC 8446 s6.2) is for the socket. Return: errno, positive. */
static int conn_alert_errno(u8 alert)
{
	static const struct {
		u8 alert;
		int err;
	} table[] = {
		{ 42, EKEYREJECTED },		/* bad_certificate */
		{ 43, EKEYREJECTED },		/* unsupported_certificate */
		{ 44, EKEYREVOKED },		/* certificate_revoked */
		{ 45, EKEYEXPIRED },		/* certificate_expired */
		{ 46, EKEYREJECTED },		/* certificate_unknown */
		{ 48, EKEYREJECTED },		/* unknown_ca */
		{ 51, EKEYREJECTED },		/* decrypt_error */
		{ 70, EPROTONOSUPPORT },	/* protocol_version */
		{ 115, EACCES },		/* unknown_psk_identity */
		{ 116, ENOKEY },		/* certificate_required */
		{ 120, EPROTONOSUPPORT },	/* no_application_protocol */
	};
	int err = ECONNREFUSED;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].alert == alert)
			err = table[i].err;
	}
	return err;
}

static void conn_rx_close(struct qrdma_conn *conn, const struct qrdma_frame *f, u64 now)
{
	struct qrdma_conn_error *error = &conn->error;

	if (conn->phase == QRDMA_CONN_OPEN) {
		error->remote = true;
		error->app = f->type == QRDMA_FRAME_CLOSE_APP;
		error->code = f->close.code;
		error->frame_type = error->app ? 0 : f->close.frame_type;
		if (!error->app && error->code == QRDMA_ERR_CONNECTION_REFUSED)
			error->err = ECONNREFUSED;
		else if (!error->app && error->code >= QRDMA_ERR_CRYPTO_ERROR &&
			 error->code < QRDMA_ERR_CRYPTO_ERROR + 256)
			error->err = conn_alert_errno(error->code - QRDMA_ERR_CRYPTO_ERROR);
		else if (error->code || !qrdma_conn_rx_complete(conn, 0))
			error->err = ECONNRESET;
	}
	qrdma_conn_begin_draining(conn, now);
}

/* Apply a frame. Return: 0; -EPROTO: *@verdict; -ENOMEM, -ENOBUFS: the packet was not received. */
static int conn_rx_frame(struct qrdma_conn *conn, struct qrdma_rx *rx, const struct qrdma_frame *f,
			 u64 now, u64 *verdict)
{
	switch (f->type) {
	case QRDMA_FRAME_ACK:
	case QRDMA_FRAME_ACK_ECN:
		return conn_rx_ack(conn, rx, &f->ack, now, verdict);
	case QRDMA_FRAME_STREAM ... QRDMA_FRAME_STREAM_END:
	case QRDMA_FRAME_RESET_STREAM:
	case QRDMA_FRAME_STOP_SENDING:
	case QRDMA_FRAME_MAX_DATA ... QRDMA_FRAME_STREAMS_BLOCKED_UNI:
		return qrdma_streams_on_frame(&conn->streams, f, rx->copy ? NULL : rx->buf,
					      verdict);
	case QRDMA_FRAME_PATH_CHALLENGE:
		qrdma_path_on_challenge(&conn->path, f->path.data);
		return 0;
	case QRDMA_FRAME_NEW_CONNECTION_ID:
		return conn_rx_new_cid(conn, f, verdict);
	case QRDMA_FRAME_RETIRE_CONNECTION_ID:
		return qrdma_path_on_retire_cid(&conn->path, f->retire_cid.seq, verdict);
	case QRDMA_FRAME_CRYPTO:
		return conn_rx_crypto(conn, rx, f, verdict);
	case QRDMA_FRAME_DATAGRAM:
	case QRDMA_FRAME_DATAGRAM_LEN:
		return conn_rx_datagram(conn, f, verdict);
	case QRDMA_FRAME_CLOSE:
	case QRDMA_FRAME_CLOSE_APP:
		conn_rx_close(conn, f, now);
		return 0;
	case QRDMA_FRAME_HANDSHAKE_DONE:
		if (conn->hs)
			qrdma_hs_confirm(conn, now);
		return 0;
	case QRDMA_FRAME_NEW_TOKEN:
		return conn->hs ? qrdma_hs_on_token(conn, f) : 0;
	default:
		/* Nothing to do: PADDING, PING; PATH_RESPONSE, as no path is being validated. */
		return 0;
	}
}

/* Apply the checked payload. Return: why the packet was not used. */
static enum qrdma_drop conn_rx_apply(struct qrdma_conn *conn, struct qrdma_rx *rx,
				     const struct conn_payload *what, u64 now)
{
	u32 where = conn_rx_where(conn, rx->level), i = 0;
	struct qrdma_cursor c = what->rest;
	const struct qrdma_frame *frame;
	struct qrdma_frame more;
	u64 verdict;
	int err;

	while (conn->phase == QRDMA_CONN_OPEN) {
		if (likely(i < what->nkept)) {
			frame = &what->kept[i++];
		} else {
			if (!qrdma_cursor_left(&c) || qrdma_frame_decode(&c, where, &more))
				break;
			frame = &more;
		}
		err = conn_rx_frame(conn, rx, frame, now, &verdict);
		if (likely(!err))
			continue;
		if (err != -EPROTO)
			return QRDMA_DROP_NOMEM;
		qrdma_conn_fail(conn, EPROTO, verdict, frame->type, now);
		return QRDMA_DROP_PROTOCOL;
	}
	return QRDMA_DROP_NONE;
}

/* While closing only a CONNECTION_CLOSE matters; the others are answered with ours, ever rarer. */
static void conn_rx_closing(struct qrdma_conn *conn, const struct conn_payload *what, u64 now)
{
	if (what->closes) {
		qrdma_conn_begin_draining(conn, now);
		return;
	}
	if (++conn->close_seen >= conn->close_next) {
		conn->close_due = true;
		conn->close_next *= 2;
	}
}

/* What the level asks beyond the tag. Return: QRDMA_DROP_NONE, or why the packet is not used. */
static enum qrdma_drop conn_rx_level_check(struct qrdma_conn *conn, struct qrdma_rx *rx, u64 now)
{
	int err;

	if (unlikely(rx->level != QRDMA_ENC_APP))
		return qrdma_hs_opened(conn, rx) ? QRDMA_DROP_NONE : QRDMA_DROP_HEADER;
	err = qrdma_keys_opened(&conn->app.keys, rx->gen, rx->op.pn,
				now + qrdma_conn_three_ptos(conn));
	if (likely(err >= 0))
		return QRDMA_DROP_NONE;
	if (err == -EAGAIN)
		return QRDMA_DROP_NO_KEY;
	qrdma_conn_fail(conn, EPROTO, QRDMA_ERR_KEY_UPDATE_ERROR, 0, now);
	return QRDMA_DROP_PROTOCOL;
}

/*
 * Out of band the ends begin in no order: what a client has said before the server was there is
 * lost, and the server, who then speaks first, waits for it. One who had it would have
 * acknowledged it within max_ack_delay; what is younger may be under way.
 */
static void conn_rx_first(struct qrdma_conn *conn, u64 now)
{
	struct qrdma_recovery *r = &conn->recovery;

	if (!conn->server && !conn->hs && now - r->app.last_sent > r->max_ack_delay)
		qrdma_recovery_kick(r);
}

/* The packet verified and is new: follow the keys, check it, apply it. */
static enum qrdma_drop conn_rx_process(struct qrdma_conn *conn, struct qrdma_rx *rx,
				       struct qrdma_pnspace *ps, u64 now)
{
	const struct qrdma_aead_op *op = &rx->op;
	struct conn_payload what;
	struct qrdma_cursor c;
	enum qrdma_drop drop;
	u64 code, type;
	u8 reserved;
	bool first;

	drop = conn_rx_level_check(conn, rx, now);
	if (unlikely(drop))
		return drop;
	qrdma_cursor_init(&c, op->pkt + op->hdr_len, op->payload_len - QRDMA_TAG_LEN);
	code = conn_rx_check(conn, rx->level, c, &what, &type);
	reserved = rx->level == QRDMA_ENC_APP ? QRDMA_HDR_SHORT_RESERVED : QRDMA_HDR_LONG_RESERVED;
	if (unlikely(op->pkt[0] & reserved)) {
		code = QRDMA_ERR_PROTOCOL_VIOLATION;	/* RFC 9000 s17.2, s17.3.1 */
		type = 0;
	}
	if (unlikely(conn->phase == QRDMA_CONN_CLOSING)) {
		if (!code)
			conn_rx_closing(conn, &what, now);
		return QRDMA_DROP_STATE;
	}
	if (unlikely(code)) {
		qrdma_conn_fail(conn, EPROTO, code, type, now);
		return QRDMA_DROP_PROTOCOL;
	}

	first = !conn->verified;
	conn->verified = true;
	conn->heard = now;
	conn->idle_armed = false;
	conn->idle_since = now;
	conn->keep_since = now;
	drop = conn_rx_apply(conn, rx, &what, now);
	if (drop != QRDMA_DROP_NONE)
		return drop;
	if (unlikely(first))
		conn_rx_first(conn, now);
	conn->n.received++;
	conn->n.bytes_received += rx->wire;
	/* a frame of it may have ended its own level, or the connection */
	if (likely(!conn->hs || conn_rx_space(conn, rx->level)))
		qrdma_pnspace_on_received(ps, op->pn, what.eliciting, rx->ecn, rx->at ?: now);
	if (unlikely(conn->hs) && conn->phase == QRDMA_CONN_OPEN)
		qrdma_hs_used(conn, rx->level, now);
	return QRDMA_DROP_NONE;
}

/* The tag verified: is the packet new, and is there still a place for it? */
static enum qrdma_drop conn_rx_verified(struct qrdma_conn *conn, struct qrdma_rx *rx, u64 now)
{
	struct qrdma_conn_space *space = conn_rx_space(conn, rx->level);

	conn->n.opened++;
	if (unlikely(!space))
		return QRDMA_DROP_NO_KEY;
	/* after the packet verified, not before (RFC 9000 s12.3) */
	if (qrdma_pnspace_seen(&space->pn, rx->op.pn)) {
		space->pn.duplicates++;
		return QRDMA_DROP_DUPLICATE;
	}
	return conn_rx_process(conn, rx, &space->pn, now);
}

/* It did not. */
static void conn_rx_failed(struct qrdma_conn *conn, const struct qrdma_rx *rx, u64 now)
{
	struct qrdma_keys *keys = conn_rx_keys(conn, rx->level);

	if (keys && keys->rx_cur && qrdma_keys_open_failed(keys))
		qrdma_conn_fail(conn, EKEYEXPIRED, QRDMA_ERR_AEAD_LIMIT_REACHED, 0, now);
}

u32 qrdma_conn_on_stray(struct qrdma_conn *conn, const u8 *data, u32 len, u64 now)
{
	conn_rx_stray(conn, data, len, now);
	return qrdma_conn_collect(conn, now);
}

u32 qrdma_conn_rx_finish(struct qrdma_conn *conn, struct qrdma_rx *rx, int err, u64 now)
{
	enum qrdma_drop drop = QRDMA_DROP_NONE;
	bool retry = rx->pseudo;

	if (unlikely(retry) && !err && conn->phase == QRDMA_CONN_OPEN)
		drop = qrdma_hs_end_retry(conn, rx, now) ? QRDMA_DROP_NONE : QRDMA_DROP_STATE;
	qrdma_rx_release(rx);
	if (conn->phase >= QRDMA_CONN_DRAINING) {
		drop = QRDMA_DROP_STATE;
	} else if (unlikely(err == -EBADMSG)) {
		drop = QRDMA_DROP_AUTH;
		/* the tag is where a reset has its token; opening in place leaves it alone */
		if (!retry && !conn_rx_stray(conn, rx->op.pkt,
					     rx->op.hdr_len + rx->op.payload_len, now))
			conn_rx_failed(conn, rx, now);
	} else if (unlikely(err)) {
		drop = QRDMA_DROP_CRYPTO;
	} else if (likely(!retry)) {
		drop = conn_rx_verified(conn, rx, now);
	}
	rx->drop = drop;
	if (drop)
		conn->n.drops[drop]++;
	return qrdma_conn_collect(conn, now);
}
