// SPDX-License-Identifier: GPL-2.0
/*
 * What receiving, sending and timing of a connection share: acknowledged and lost frames, the ways
 * to its end, event bits and the deadline.
 *
 * Owns: the phases of struct qrdma_conn. Called by: conn.c, conn_rx.c and packer.c, under the
 * socket lock.
 */
#include "conn_state.h"
#include "frame.h"

/* xoshiro256++ (Blackman and Vigna, public domain), seeded by the caller's random bytes */
u64 qrdma_conn_random(struct qrdma_conn *conn)
{
	u64 *s = conn->rng, sum = s[0] + s[3], out = (sum << 23 | sum >> 41) + s[0], t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = s[3] << 45 | s[3] >> 19;
	return out;
}

void qrdma_conn_skip_draw(struct qrdma_conn *conn, struct qrdma_conn_space *space)
{
	space->skip_in = QRDMA_CONN_SKIP_MIN + (u32)qrdma_conn_random(conn) % QRDMA_CONN_SKIP_SPAN;
}

/* The peer has our ACK frame, which was sent in space @f->id. */
static void conn_ack_acked(struct qrdma_conn *conn, const struct qrdma_sent_frame *f)
{
	struct qrdma_conn_space *space = qrdma_conn_space(conn, f->id);

	if (space)
		qrdma_pnspace_ack_acked(&space->pn, f->val);
}

static void conn_frame_acked(struct qrdma_conn *conn, const struct qrdma_sent_frame *f)
{
	struct qrdma_cstream *level;

	switch (f->type) {
	case QRDMA_FRAME_STREAM:
		qrdma_streams_acked(&conn->streams, f->id, f->val, f->len,
				    f->flags & QRDMA_STREAM_FIN);
		break;
	case QRDMA_FRAME_ACK:
		conn_ack_acked(conn, f);
		break;
	case QRDMA_FRAME_RETIRE_CONNECTION_ID:
		qrdma_path_retire_acked(&conn->path, f->val);
		break;
	case QRDMA_FRAME_CRYPTO:
		level = qrdma_conn_cstream(conn, f->id);
		if (level)
			qrdma_sendq_acked(&level->tx, f->val, f->len);
		break;
	case QRDMA_FRAME_HANDSHAKE_DONE:
		conn->hs->done = QRDMA_HS_DONE;
		break;
	case QRDMA_FRAME_NEW_TOKEN:
		conn->hs->give = QRDMA_HS_DONE;
		break;
	default:
		qrdma_streams_ctl_acked(&conn->streams, f->type, f->id, f->val);
	}
}

static void conn_frame_lost(struct qrdma_conn *conn, const struct qrdma_sent_frame *f)
{
	struct qrdma_cstream *level;

	switch (f->type) {
	case QRDMA_FRAME_STREAM:
		conn->n.bytes_resent += f->len;
		qrdma_streams_lost(&conn->streams, f->id, f->val, f->len,
				   f->flags & QRDMA_STREAM_FIN);
		break;
	case QRDMA_FRAME_ACK:
		/* a newer one says more (RFC 9000 s13.3) */
		break;
	case QRDMA_FRAME_RETIRE_CONNECTION_ID:
		qrdma_path_retire_lost(&conn->path, f->val);
		break;
	case QRDMA_FRAME_CRYPTO:
		level = qrdma_conn_cstream(conn, f->id);
		if (level)
			qrdma_sendq_lost(&level->tx, f->val, f->len);
		break;
	case QRDMA_FRAME_HANDSHAKE_DONE:
		if (conn->hs->done == QRDMA_HS_SENT)
			conn->hs->done = QRDMA_HS_DUE;
		break;
	case QRDMA_FRAME_NEW_TOKEN:
		if (conn->hs->give == QRDMA_HS_SENT)
			conn->hs->give = QRDMA_HS_DUE;
		break;
	default:
		qrdma_streams_ctl_lost(&conn->streams, f->type, f->id, f->val);
	}
}

void qrdma_conn_again(struct qrdma_conn *conn, const struct qrdma_sent *sent)
{
	u32 i;

	for (i = 0; i < sent->nframes; i++)
		conn_frame_lost(conn, &sent->frame[i]);
}

/* Loss above the limit is an event and takes the headroom out of the pace. */
static void conn_monitor_loss(struct qrdma_conn *conn)
{
	struct qrdma_recovery *r = &conn->recovery;
	u64 sent = r->stats.sent - conn->loss_sent;
	u64 lost = r->stats.lost - conn->loss_lost;

	if (sent < QRDMA_CONN_LOSS_WINDOW)
		return;
	conn->loss_sent = r->stats.sent;
	conn->loss_lost = r->stats.lost;
	if (lost * 1000 <= sent * conn->loss_permille) {
		r->cong.rate_cap = 0;
		return;
	}
	conn->events |= QRDMA_EV_LOSS;
	conn->n.loss_events++;
	r->cong.rate_cap = max_t(u64, 1, mul_u64_u64_div_u64(qrdma_cong_window(&r->cong),
							     NSEC_PER_SEC,
							     max_t(u64, 1, r->rtt.smoothed)));
}

void qrdma_conn_settle(struct qrdma_conn *conn, const struct qrdma_recovery_result *res)
{
	const struct qrdma_sent *sent;
	u32 i;

	for (sent = res->acked; sent; sent = sent->next) {
		for (i = 0; i < sent->nframes; i++)
			conn_frame_acked(conn, &sent->frame[i]);
	}
	for (sent = res->lost; sent; sent = sent->next)
		qrdma_conn_again(conn, sent);
	conn_monitor_loss(conn);
}

/* Nothing that was written can be delivered any more: give its memory back, wake who waits. */
static void conn_stop(struct qrdma_conn *conn, u8 phase)
{
	if (conn->phase == QRDMA_CONN_OPEN) {
		conn->events |= QRDMA_EV_CLOSED | QRDMA_EV_READABLE | QRDMA_EV_WRITABLE;
		if (conn->s0)
			qrdma_stream_reset(&conn->streams, conn->s0, 0);
	}
	conn->phase = phase;
	conn->error.closed = true;
	conn->probes = 0;
	conn->ping = false;
	conn->paced_until = QRDMA_NEVER;
}

void qrdma_conn_wipe(struct qrdma_conn *conn)
{
	struct qrdma_hs *hs = conn->hs;
	u32 i;

	qrdma_keys_wipe(&conn->app.keys);
	if (!hs)
		return;
	qrdma_keys_wipe(&hs->early);
	for (i = 0; i < QRDMA_HS_SPACES; i++) {
		if (hs->space[i])
			qrdma_keys_wipe(&hs->space[i]->sp.keys);
	}
}

bool qrdma_conn_can_seal(const struct qrdma_conn *conn)
{
	const struct qrdma_hs *hs = conn->hs;

	return conn->app.keys.tx_cur ||
	       (hs && (qrdma_hs_can_send(hs, QRDMA_SPACE_INITIAL) ||
		       qrdma_hs_can_send(hs, QRDMA_SPACE_HANDSHAKE) || qrdma_hs_early_tx(hs)));
}

void qrdma_conn_die(struct qrdma_conn *conn)
{
	if (conn->phase == QRDMA_CONN_DEAD)
		return;
	conn_stop(conn, QRDMA_CONN_DEAD);
	conn->events |= QRDMA_EV_DRAINED;
	conn->close_due = false;
	qrdma_recovery_destroy(&conn->recovery);
	qrdma_conn_wipe(conn);
}

/* What is on its way needs no verdict any more. */
static void conn_drop_flight(struct qrdma_conn *conn, u64 now)
{
	u8 i;

	for (i = conn->hs ? QRDMA_SPACE_INITIAL : QRDMA_SPACE_APP; i < QRDMA_SPACES; i++)
		qrdma_recovery_drop_space(&conn->recovery, i, now);
}

void qrdma_conn_begin_closing(struct qrdma_conn *conn, u64 now)
{
	if (!qrdma_conn_can_seal(conn)) {
		qrdma_conn_die(conn);
		return;
	}
	conn->close_until = now + qrdma_conn_three_ptos(conn);
	conn->close_due = true;
	conn->close_seen = 0;
	conn->close_next = 1;
	conn_drop_flight(conn, now);
	conn_stop(conn, QRDMA_CONN_CLOSING);
}

void qrdma_conn_begin_draining(struct qrdma_conn *conn, u64 now)
{
	conn->close_until = now + qrdma_conn_three_ptos(conn);
	conn->close_due = false;
	if (conn->phase == QRDMA_CONN_OPEN)
		conn_drop_flight(conn, now);
	conn_stop(conn, QRDMA_CONN_DRAINING);
}

void qrdma_conn_fail(struct qrdma_conn *conn, int err, u64 code, u64 frame_type, u64 now)
{
	if (conn->phase != QRDMA_CONN_OPEN)
		return;
	conn->error.err = err;
	conn->error.code = code;
	conn->error.frame_type = frame_type;
	qrdma_conn_begin_closing(conn, now);
}

/* The same for what a handshake in band adds. */
static bool conn_hs_pending(const struct qrdma_conn *conn)
{
	struct qrdma_hs *hs = conn->hs;
	u32 i;

	for (i = 0; i < QRDMA_HS_SPACES; i++) {
		if (qrdma_hs_can_send(hs, i) && qrdma_cstream_pending(&hs->space[i]->crypto))
			return true;
	}
	if (conn->app.keys.tx_cur)
		return hs->done == QRDMA_HS_DUE || hs->give == QRDMA_HS_DUE ||
		       qrdma_cstream_pending(&hs->crypto);
	return qrdma_hs_early_tx(hs) &&
	       (conn->ping || qrdma_streams_pending(&conn->streams));
}

bool qrdma_conn_frames_pending(const struct qrdma_conn *conn)
{
	if (conn->app.keys.tx_cur &&
	    (conn->ping || qrdma_path_pending(&conn->path) ||
	     qrdma_streams_pending(&conn->streams)))
		return true;
	return conn->hs && conn_hs_pending(conn);
}

bool qrdma_conn_hs_urgent(const struct qrdma_conn *conn)
{
	const struct qrdma_recovery *r = &conn->recovery;
	const struct qrdma_hs *hs = conn->hs;
	u32 i;

	if (!hs || qrdma_recovery_hs_out(r))
		return false;
	for (i = 0; i < QRDMA_HS_SPACES; i++) {
		if (qrdma_hs_can_send(hs, i) && qrdma_cstream_pending(&hs->space[i]->crypto))
			return true;
	}
	return false;
}

u64 qrdma_conn_ack_at(const struct qrdma_conn *conn)
{
	const struct qrdma_hs *hs = conn->hs;
	u64 at = QRDMA_NEVER;
	u32 i;

	if (likely(conn->app.keys.tx_cur))
		at = qrdma_pnspace_deadline(&conn->app.pn);
	for (i = 0; hs && i < QRDMA_HS_SPACES; i++) {
		if (qrdma_hs_can_send(hs, i))
			at = min(at, qrdma_pnspace_deadline(&hs->space[i]->sp.pn));
	}
	return at;
}

bool qrdma_conn_tx_wanted(const struct qrdma_conn *conn, u64 now)
{
	if (conn->recovery.blocked)
		return false;
	if (conn->phase != QRDMA_CONN_OPEN)
		return conn->close_due;
	if (!qrdma_conn_can_seal(conn))
		return false;
	if (conn->probes || qrdma_conn_ack_at(conn) <= now || qrdma_conn_hs_urgent(conn))
		return true;
	if (conn->paced_until != QRDMA_NEVER && conn->paced_until > now)
		return false;
	if (qrdma_recovery_room(&conn->recovery) < conn->path.max_datagram &&
	    !conn->recovery.one_more)
		return false;
	return qrdma_conn_frames_pending(conn);
}

u64 qrdma_conn_idle_timeout(const struct qrdma_tparams *a,
			    const struct qrdma_tparams *b)
{
	u64 ms = min(a->max_idle_timeout, b->max_idle_timeout);

	if (!ms)
		ms = max(a->max_idle_timeout, b->max_idle_timeout);
	/* a number that a timer cannot hold is no limit */
	return ms > QRDMA_CONN_IDLE_MAX_MS ? 0 : ms * NSEC_PER_MSEC;
}

u64 qrdma_conn_idle_at(const struct qrdma_conn *conn)
{
	if (!conn->idle_timeout)
		return QRDMA_NEVER;
	return conn->idle_since + max(conn->idle_timeout, qrdma_conn_three_ptos(conn));
}

u64 qrdma_conn_tidy_at(const struct qrdma_conn *conn)
{
	const struct qrdma_recovery *r = &conn->recovery;
	const struct qrdma_recovery_space *sp = &r->app;
	u64 since = max(conn->keep_since, sp->last_sent);

	if (r->in_flight || (since <= conn->tidied && !sp->ring.chunks))
		return QRDMA_NEVER;
	return max(since, conn->tidied) + QRDMA_CONN_TIDY;
}

static u64 conn_hs_deadline(const struct qrdma_hs *hs)
{
	return min(hs->complete ? QRDMA_NEVER : hs->expires, hs->early_until);
}

u64 qrdma_conn_next_deadline(const struct qrdma_conn *conn)
{
	u64 at, ack;

	if (conn->phase == QRDMA_CONN_DEAD)
		return QRDMA_NEVER;
	if (conn->phase != QRDMA_CONN_OPEN)
		return conn->close_until;
	at = min(conn->paced_until, qrdma_recovery_deadline(&conn->recovery));
	ack = qrdma_conn_ack_at(conn);
	if (ack > conn->said_tx && !conn->recovery.blocked)
		at = min(at, ack);
	if (conn->hs)
		at = min(at, conn_hs_deadline(conn->hs));
	at = min(at, qrdma_keys_deadline(&conn->app.keys));
	at = min(at, qrdma_conn_idle_at(conn));
	at = min(at, qrdma_conn_tidy_at(conn));
	if (conn->keepalive && conn->verified)
		at = min(at, conn->keep_since + conn->keepalive);
	return at;
}

/* A client in band opens stream 0 once the server allows it, so that it may speak. */
static void conn_open_stream(struct qrdma_conn *conn)
{
	struct qrdma_stream *s;

	if (conn->server || conn->s0 || conn->phase != QRDMA_CONN_OPEN ||
	    !qrdma_flow_tx_credit(&conn->streams.local[QRDMA_BIDI]))
		return;
	s = qrdma_streams_open(&conn->streams, false, GFP_ATOMIC);
	if (IS_ERR(s))
		return;
	qrdma_stream_announce(&conn->streams, s);
	conn->s0 = s;
}

static void conn_collect_stream(struct qrdma_conn *conn, u32 *ev)
{
	u32 was;

	qrdma_streams_events(&conn->streams);
	if (conn->hs)
		conn_open_stream(conn);
	if (!conn->s0)
		conn->s0 = qrdma_streams_find(&conn->streams, 0);
	if (!conn->s0)
		return;
	was = conn->s0->events;
	conn->s0->events = 0;
	if (was & QRDMA_STREAM_EV_READABLE)
		*ev |= QRDMA_EV_READABLE;
	if (was & (QRDMA_STREAM_EV_WRITABLE | QRDMA_STREAM_EV_STOPPED))
		*ev |= QRDMA_EV_WRITABLE;
	if (was & QRDMA_STREAM_EV_ACKED)
		*ev |= QRDMA_EV_ACKED;
}

bool qrdma_conn_can_open(const struct qrdma_conn *conn, u8 level)
{
	const struct qrdma_hs *hs = conn->hs;

	switch (level) {
	case QRDMA_ENC_INITIAL:
		return hs->space[QRDMA_SPACE_INITIAL] &&
		       hs->space[QRDMA_SPACE_INITIAL]->sp.keys.rx_cur;
	case QRDMA_ENC_EARLY:
		return hs->early.rx_cur;
	case QRDMA_ENC_HANDSHAKE:
		return hs->space[QRDMA_SPACE_HANDSHAKE] &&
		       hs->space[QRDMA_SPACE_HANDSHAKE]->sp.keys.rx_cur;
	default:
		/* not before the handshake is complete (RFC 9001 s5.7) */
		return conn->app.keys.rx_cur && hs->complete;
	}
}

struct qrdma_held *qrdma_conn_held_ready(const struct qrdma_conn *conn)
{
	struct qrdma_held *held;

	if (conn->phase >= QRDMA_CONN_DRAINING)
		return NULL;
	list_for_each_entry(held, &conn->hs->held, node) {
		if (qrdma_conn_can_open(conn, held->level))
			return held;
	}
	return NULL;
}

u32 qrdma_conn_collect(struct qrdma_conn *conn, u64 now)
{
	u32 ev = conn->events;
	u64 at;

	conn->events = 0;
	conn_collect_stream(conn, &ev);
	if (conn->verified && conn->s0 && !conn->established &&
	    (!conn->hs || qrdma_hs_is_through(conn->hs))) {
		conn->established = true;
		ev |= QRDMA_EV_ESTABLISHED;
	}
	if (qrdma_conn_wants_keys(conn))
		ev |= QRDMA_EV_NEED_KEY;
	if (qrdma_conn_tx_wanted(conn, now)) {
		ev |= QRDMA_EV_TX;
		conn->said_tx = now;
	}
	if (conn->hs && qrdma_conn_held_ready(conn))
		ev |= QRDMA_EV_HELD;
	at = qrdma_conn_next_deadline(conn);
	if (at != conn->told) {
		conn->told = at;
		ev |= QRDMA_EV_TIMER;
	}
	return ev;
}
