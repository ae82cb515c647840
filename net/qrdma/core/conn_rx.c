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
#include "frame.h"

/**
 * struct conn_payload - what a look over the whole payload found
 * @eliciting: the packet is to be acknowledged soon
 * @closes: it holds CONNECTION_CLOSE
 */
struct conn_payload {
	bool eliciting;
	bool closes;
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

enum qrdma_rx_verdict qrdma_conn_rx_begin(struct qrdma_conn *conn, struct qrdma_rx *rx, u64 now)
{
	struct qrdma_conn_space *space = &conn->app;
	struct qrdma_pnspace *ps = &space->pn;
	struct qrdma_aead_op *op = &rx->op;
	u8 mask[QRDMA_HP_MASK_LEN];
	enum qrdma_hdr_verdict v;
	struct qrdma_hdr hdr;
	u8 *pkt = rx->data;

	if (!rx->len)
		return QRDMA_RX_DONE;
	if (conn->phase >= QRDMA_CONN_DRAINING) {
		rx->len = 0;
		return conn_rx_drop(conn, rx, QRDMA_DROP_STATE);
	}
	v = qrdma_hdr_parse(&hdr, pkt, rx->len);
	rx->data += hdr.len;
	rx->len -= hdr.len;
	if (unlikely(v != QRDMA_HDR_OK))
		return conn_rx_drop(conn, rx, conn_rx_refused(v));
	/* the levels of the handshake have no keys: it ran out of band */
	if (unlikely(hdr.type != QRDMA_PKT_SHORT || !space->keys.rx_cur))
		return conn_rx_drop(conn, rx, QRDMA_DROP_NO_KEY);
	if (unlikely(memcmp(hdr.dcid, conn->path.scid.data, QRDMA_CID_LEN)))
		return conn_rx_drop(conn, rx, QRDMA_DROP_HEADER);

	rx->aead = space->keys.aead;
	if (unlikely(rx->aead->hp_mask(space->keys.rx_cur, qrdma_hdr_sample(&hdr, pkt), mask)))
		return conn_rx_drop(conn, rx, QRDMA_DROP_CRYPTO);
	qrdma_hdr_unprotect(&hdr, pkt, mask);
	op->pn = qrdma_pn_decode(ps->seen.count ? ps->largest + 1 : 0, hdr.pn, hdr.pn_len);
	op->slot = qrdma_keys_open(&space->keys, op->pn, hdr.first & QRDMA_HDR_PHASE, &rx->gen);
	if (unlikely(!op->slot))
		return conn_rx_drop(conn, rx, QRDMA_DROP_NO_KEY);
	op->pkt = pkt;
	op->pn_off = hdr.pn_off;
	op->pn_len = hdr.pn_len;
	op->hdr_len = hdr.pn_off + hdr.pn_len;
	op->payload_len = hdr.len - op->hdr_len;
	op->nseg = 0;
	rx->wire = hdr.len;
	rx->drop = QRDMA_DROP_NONE;
	return QRDMA_RX_OPEN;
}

void qrdma_rx_release(struct qrdma_rx *rx)
{
	if (rx->op.slot)
		rx->aead->slot_put(rx->op.slot);
	rx->op.slot = NULL;
}

/* Decode and check all frames, change nothing. Return: QUIC error code, *@type what caused it. */
static u64 conn_rx_check(const struct qrdma_conn *conn, struct qrdma_cursor c,
			 struct conn_payload *what, u64 *type)
{
	u32 where = QRDMA_FA_1RTT | (conn->server ? QRDMA_FA_CLIENT : QRDMA_FA_SERVER);
	struct qrdma_frame frame;
	u64 code;

	what->eliciting = false;
	what->closes = false;
	*type = QRDMA_FRAME_PADDING;
	if (!qrdma_cursor_left(&c))
		return QRDMA_ERR_PROTOCOL_VIOLATION;	/* RFC 9000 s12.4 */
	while (qrdma_cursor_left(&c)) {
		code = qrdma_frame_decode(&c, where, &frame);
		if (unlikely(code)) {
			*type = frame.type;
			return code;
		}
		if (qrdma_frame_attr(frame.type) & QRDMA_FA_ELICITING)
			what->eliciting = true;
		if (frame.type == QRDMA_FRAME_CLOSE || frame.type == QRDMA_FRAME_CLOSE_APP)
			what->closes = true;
	}
	return QRDMA_ERR_NO_ERROR;
}

/* RFC 9000 s19.3: ACK Delay is in units of 2^exponent microseconds. */
static u64 conn_ack_delay(const struct qrdma_conn *conn, u64 wire)
{
	if (wire > (U64_MAX / NSEC_PER_USEC) >> conn->peer_ack_exponent)
		return U64_MAX;
	return (wire << conn->peer_ack_exponent) * NSEC_PER_USEC;
}

static int conn_rx_ack(struct qrdma_conn *conn, const struct qrdma_rx *rx,
		       const struct qrdma_ack *ack, u64 now, u64 *verdict)
{
	struct qrdma_recovery_result res;

	if (qrdma_keys_acked(&conn->app.keys, rx->gen, ack->largest)) {
		*verdict = QRDMA_ERR_KEY_UPDATE_ERROR;
		return -EPROTO;
	}
	*verdict = QRDMA_ERR_PROTOCOL_VIOLATION;
	if (qrdma_recovery_on_ack(&conn->recovery, QRDMA_SPACE_APP, ack,
				  conn_ack_delay(conn, ack->delay), now, &res))
		return -EPROTO;
	qrdma_conn_settle(conn, &res);
	return 0;
}

/* Nothing of TLS is taken after a handshake out of band; how much may come is bounded. */
static int conn_rx_crypto(u64 end, u64 *verdict)
{
	*verdict = QRDMA_ERR_CRYPTO_BUFFER_EXCEEDED;
	return end > QRDMA_CONN_CRYPTO_MAX ? -EPROTO : 0;
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
	return qrdma_path_on_new_cid(&conn->path, f->new_cid.seq, f->new_cid.retire_prior_to,
				     &cid, f->new_cid.reset_token, verdict);
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
		return conn_rx_crypto(f->crypto.off + f->crypto.len, verdict);
	case QRDMA_FRAME_DATAGRAM:
	case QRDMA_FRAME_DATAGRAM_LEN:
		return conn_rx_datagram(conn, f, verdict);
	case QRDMA_FRAME_CLOSE:
	case QRDMA_FRAME_CLOSE_APP:
		conn_rx_close(conn, f, now);
		return 0;
	default:
		/*
		 * Nothing to do: PADDING, PING; NEW_TOKEN and HANDSHAKE_DONE, as the handshake ran
		 * out of band; PATH_RESPONSE, as no path is being validated.
		 */
		return 0;
	}
}

/* Apply the checked payload. Return: why the packet was not used. */
static enum qrdma_drop conn_rx_apply(struct qrdma_conn *conn, struct qrdma_rx *rx,
				     struct qrdma_cursor c, u64 now)
{
	u32 where = QRDMA_FA_1RTT | (conn->server ? QRDMA_FA_CLIENT : QRDMA_FA_SERVER);
	struct qrdma_frame frame;
	u64 verdict;
	int err;

	while (qrdma_cursor_left(&c) && conn->phase == QRDMA_CONN_OPEN) {
		if (qrdma_frame_decode(&c, where, &frame))
			break;
		err = conn_rx_frame(conn, rx, &frame, now, &verdict);
		if (likely(!err))
			continue;
		if (err != -EPROTO)
			return QRDMA_DROP_NOMEM;
		qrdma_conn_fail(conn, EPROTO, verdict, frame.type, now);
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

/* The packet verified and is new: follow the keys, check it, apply it. */
static enum qrdma_drop conn_rx_process(struct qrdma_conn *conn, struct qrdma_rx *rx, u64 now)
{
	const struct qrdma_aead_op *op = &rx->op;
	struct qrdma_pnspace *ps = &conn->app.pn;
	struct conn_payload what;
	struct qrdma_cursor c;
	enum qrdma_drop drop;
	u64 code, type;

	if (qrdma_keys_opened(&conn->app.keys, rx->gen, op->pn,
			      now + qrdma_conn_three_ptos(conn)) < 0) {
		qrdma_conn_fail(conn, EPROTO, QRDMA_ERR_KEY_UPDATE_ERROR, 0, now);
		return QRDMA_DROP_PROTOCOL;
	}
	qrdma_cursor_init(&c, op->pkt + op->hdr_len, op->payload_len - QRDMA_TAG_LEN);
	code = conn_rx_check(conn, c, &what, &type);
	if (unlikely(op->pkt[0] & QRDMA_HDR_SHORT_RESERVED)) {
		code = QRDMA_ERR_PROTOCOL_VIOLATION;	/* RFC 9000 s17.3.1 */
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

	conn->verified = true;
	conn->idle_armed = false;
	conn->idle_since = now;
	conn->keep_since = now;
	drop = conn_rx_apply(conn, rx, c, now);
	if (drop == QRDMA_DROP_NONE) {
		qrdma_pnspace_on_received(ps, op->pn, what.eliciting, rx->ecn, now);
		conn->n.received++;
		conn->n.bytes_received += rx->wire;
	}
	return drop;
}

u32 qrdma_conn_rx_finish(struct qrdma_conn *conn, struct qrdma_rx *rx, int err, u64 now)
{
	enum qrdma_drop drop = QRDMA_DROP_NONE;

	qrdma_rx_release(rx);
	if (conn->phase >= QRDMA_CONN_DRAINING) {
		drop = QRDMA_DROP_STATE;
	} else if (unlikely(err == -EBADMSG)) {
		drop = QRDMA_DROP_AUTH;
		if (qrdma_keys_open_failed(&conn->app.keys))
			qrdma_conn_fail(conn, EKEYEXPIRED, QRDMA_ERR_AEAD_LIMIT_REACHED, 0, now);
	} else if (unlikely(err)) {
		drop = QRDMA_DROP_CRYPTO;
	} else {
		conn->n.opened++;
		/* after the packet verified, not before (RFC 9000 s12.3) */
		if (qrdma_pnspace_seen(&conn->app.pn, rx->op.pn)) {
			drop = QRDMA_DROP_DUPLICATE;
			conn->app.pn.duplicates++;
		} else {
			drop = conn_rx_process(conn, rx, now);
		}
	}
	rx->drop = drop;
	if (drop)
		conn->n.drops[drop]++;
	return qrdma_conn_collect(conn, now);
}
