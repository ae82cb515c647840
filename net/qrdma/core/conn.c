// SPDX-License-Identifier: GPL-2.0
/*
 * A connection from outside: making it, keys, time, the application's calls, its end, its numbers.
 *
 * Owns: struct qrdma_conn as an allocation. Called by: the datapath and the socket layer through
 * conn.h, under the socket lock; never sleeps.
 */
#include "conn.h"
#include "conn_state.h"
#include "handshake.h"
#include "frame.h"

static int conn_init_recovery(struct qrdma_conn *conn, const struct qrdma_conn_config *cfg,
			      const struct qrdma_tparams *remote, u64 now)
{
	struct qrdma_recovery_config rc = {
		.is_server = cfg->is_server,
		.confirmed = !cfg->hs,
		.alg = cfg->cong,
		.mds = conn->path.max_datagram,
		.granularity = cfg->granularity,
		.initial_rtt = cfg->initial_rtt,
		.max_ack_delay = remote->max_ack_delay * NSEC_PER_MSEC,
	};

	int err = qrdma_recovery_init(&conn->recovery, &rc, now);

	if (!err && cfg->ecn)
		qrdma_ecn_start(&conn->recovery.ecn);
	return err;
}

static int conn_init_streams(struct qrdma_conn *conn, const struct qrdma_conn_config *cfg,
			     const struct qrdma_tparams *remote, gfp_t gfp)
{
	struct qrdma_stream *s;
	int err;

	err = qrdma_streams_init(&conn->streams, cfg->is_server, cfg->local, cfg->rx_mem_max,
				 cfg->tx_mem_max);
	if (err)
		return err;
	qrdma_streams_set_remote(&conn->streams, remote);
	/* in band the limits come with the handshake, unless they are remembered */
	if (cfg->is_server || (cfg->hs && !remote->initial_max_streams_bidi))
		return 0;
	s = qrdma_streams_open(&conn->streams, false, gfp);
	if (IS_ERR(s))
		return PTR_ERR(s) == -EAGAIN ? -EINVAL : PTR_ERR(s);
	/* so that the server may be the first to speak */
	qrdma_stream_announce(&conn->streams, s);
	conn->s0 = s;
	return 0;
}

static void conn_init_space(struct qrdma_conn *conn, const struct qrdma_conn_config *cfg)
{
	u64 ack_delay = cfg->local->max_ack_delay * NSEC_PER_MSEC;

	if (cfg->ack_delay)
		ack_delay = min(ack_delay, cfg->ack_delay);
	conn->app.id = QRDMA_SPACE_APP;
	qrdma_keys_init(&conn->app.keys, cfg->aead);
	qrdma_pnspace_init(&conn->app.pn, 0, ack_delay);
	qrdma_conn_skip_draw(conn, &conn->app);
}

/* The transport parameters that count at the beginning. Return: NULL: refused. */
static const struct qrdma_tparams *conn_remote(const struct qrdma_conn_config *cfg,
					       struct qrdma_tparams *unknown)
{
	const struct qrdma_tparams *remote = cfg->remote;

	if (cfg->hs) {
		remote = cfg->is_server ? NULL : cfg->hs->remembered;
		if (!remote) {
			qrdma_tparams_init(unknown);
			return unknown;
		}
	}
	return qrdma_tparams_valid(remote) ? remote : NULL;
}

static void conn_init(struct qrdma_conn *c, const struct qrdma_conn_config *cfg,
		      const struct qrdma_tparams *remote, u64 now)
{
	memcpy(c->rng, cfg->random, sizeof(c->rng));
	c->rng[0] |= 1;		/* all zero would stay so */
	c->server = cfg->is_server;
	c->ack_exponent = cfg->local->ack_delay_exponent;
	c->peer_ack_exponent = remote->ack_delay_exponent;
	c->max_datagram_frame = cfg->local->max_datagram_frame_size;
	c->datagram_max = U32_MAX;
	c->key_packets_max = cfg->key_packets_max;
	c->idle_timeout = qrdma_conn_idle_timeout(cfg->local, remote);
	c->idle_since = now;
	c->keepalive = cfg->keepalive;
	c->probe_space = QRDMA_SPACE_APP;
	c->paced_until = QRDMA_NEVER;
	c->told = QRDMA_NEVER;
	c->keys_from = QRDMA_CONN_KEYS_AHEAD;
	c->loss_permille = cfg->loss_permille ?: QRDMA_CONN_LOSS_PERMILLE;
}

static void conn_free(struct qrdma_conn *conn)
{
	if (conn->cache)
		kmem_cache_free(conn->cache, conn);
	else
		kfree(conn);
}

size_t qrdma_conn_size(void)
{
	return sizeof(struct qrdma_conn);
}

int qrdma_conn_create(const struct qrdma_conn_config *cfg, u64 now, struct qrdma_conn **conn,
		      gfp_t gfp)
{
	const struct qrdma_tparams *remote;
	struct qrdma_tparams unknown;
	struct qrdma_conn *c;
	int err;

	remote = conn_remote(cfg, &unknown);
	if (!qrdma_tparams_valid(cfg->local) || !remote)
		return -EINVAL;
	c = cfg->cache ? kmem_cache_zalloc(cfg->cache, gfp) : kzalloc(sizeof(*c), gfp);
	if (!c)
		return -ENOMEM;
	c->cache = cfg->cache;
	conn_init(c, cfg, remote, now);
	err = qrdma_path_init(&c->path, cfg->scid, cfg->dcid, cfg->local->active_cid_limit,
			      min_t(u64, cfg->max_datagram, remote->max_udp_payload_size));
	if (err)
		goto free;
	/* what a client remembers for 0-RTT is another connection's token (RFC 9000 s7.4.1) */
	if (!cfg->hs && qrdma_tparams_has(remote, QRDMA_TP_STATELESS_RESET_TOKEN))
		qrdma_path_set_token(&c->path, remote->reset_token);
	err = conn_init_recovery(c, cfg, remote, now);
	if (err)
		goto free;
	err = conn_init_streams(c, cfg, remote, gfp);
	if (err)
		goto destroy_streams;
	if (cfg->hs)
		err = qrdma_hs_create(c, cfg, now, gfp);
	if (err)
		goto destroy_hs;
	conn_init_space(c, cfg);
	*conn = c;
	return 0;

destroy_hs:
	qrdma_hs_destroy(c);
destroy_streams:
	qrdma_streams_destroy(&c->streams);
	qrdma_recovery_destroy(&c->recovery);
free:
	conn_free(c);
	return err;
}

void qrdma_conn_destroy(struct qrdma_conn *conn)
{
	if (!conn)
		return;
	qrdma_hs_destroy(conn);
	qrdma_keys_wipe(&conn->app.keys);
	qrdma_streams_destroy(&conn->streams);
	qrdma_recovery_destroy(&conn->recovery);
	qrdma_pnspace_destroy(&conn->app.pn);
	memzero_explicit(conn->rng, sizeof(conn->rng));
	conn_free(conn);
}

/*
 * Keys
 */

/* The one of a handshake out of band; conn_hs.c has those of one in band. */
int qrdma_conn_install_key(struct qrdma_conn *conn, bool send, u32 cipher,
			   struct qrdma_slot *cur)
{
	return qrdma_keys_install(&conn->app.keys, send, cipher, conn->key_packets_max, cur);
}

struct qrdma_slot *qrdma_conn_next_keys(struct qrdma_conn *conn, bool send)
{
	if (!qrdma_conn_wants_keys(conn))
		return NULL;
	return qrdma_keys_wanted(&conn->app.keys, send);
}

int qrdma_conn_install_next(struct qrdma_conn *conn, bool send, struct qrdma_slot *from,
			    struct qrdma_slot *next)
{
	return qrdma_keys_install_next(&conn->app.keys, send, from, next);
}

int qrdma_conn_key_update(struct qrdma_conn *conn)
{
	int err;

	if (conn->phase != QRDMA_CONN_OPEN)
		return -ENOTCONN;
	/* RFC 9001 s6: not before the handshake is confirmed */
	if (!conn->recovery.confirmed)
		return -EAGAIN;
	err = qrdma_keys_update(&conn->app.keys, false);
	/* something has to carry the new phase to the peer */
	if (!err)
		conn->ping = true;
	return err;
}

const u8 *qrdma_conn_reset_token(const struct qrdma_conn *conn)
{
	return qrdma_path_token(&conn->path);
}

/*
 * Time
 */

u64 qrdma_conn_deadline(const struct qrdma_conn *conn)
{
	return qrdma_conn_next_deadline(conn);
}

static void conn_recovery_timeout(struct qrdma_conn *conn, u64 now)
{
	struct qrdma_recovery_result res;

	qrdma_recovery_on_timeout(&conn->recovery, now, &res);
	if (res.probes) {
		conn->probes = res.probes;
		conn->probe_space = res.probe_space;
		conn->probe_from = 0;
		if (conn->recovery.pto_count >= QRDMA_CONN_SUSPECT_PTOS)
			conn->events |= QRDMA_EV_SUSPECT;
	}
	qrdma_conn_settle(conn, &res);
}

u32 qrdma_conn_timeout(struct qrdma_conn *conn, u64 now)
{
	if (conn->phase == QRDMA_CONN_DEAD)
		return 0;
	if (conn->phase != QRDMA_CONN_OPEN) {
		if (conn->close_until <= now)
			qrdma_conn_die(conn);
		return qrdma_conn_collect(conn, now);
	}
	if (qrdma_conn_idle_at(conn) <= now) {
		conn->error.err = ETIMEDOUT;
		qrdma_conn_die(conn);
		return qrdma_conn_collect(conn, now);
	}
	qrdma_keys_expire(&conn->app.keys, now);
	if (conn->hs) {
		qrdma_hs_timeout(conn, now);
		if (conn->phase != QRDMA_CONN_OPEN)
			return qrdma_conn_collect(conn, now);
	}
	if (qrdma_recovery_deadline(&conn->recovery) <= now)
		conn_recovery_timeout(conn, now);
	if (qrdma_conn_tidy_at(conn) <= now) {
		qrdma_recovery_shrink(&conn->recovery, now);
		qrdma_pnspace_rest(&conn->app.pn);
		qrdma_keys_rest(&conn->app.keys);
		conn->keys_from = conn->n.opened + conn->n.sealed + QRDMA_CONN_KEYS_AHEAD;
		conn->tidied = now;
		conn->events |= QRDMA_EV_QUIET;
	}
	if (conn->paced_until <= now)
		conn->paced_until = QRDMA_NEVER;
	if (conn->keepalive && conn->verified && conn->keep_since + conn->keepalive <= now) {
		conn->ping = true;
		conn->keep_since = now;
	}
	return qrdma_conn_collect(conn, now);
}

/*
 * The application's side
 */

/* Looking a stream up changes nothing, so questions about one take a const connection. */
static struct qrdma_stream *conn_stream(const struct qrdma_conn *conn, u64 id)
{
	if (likely(!id && conn->s0))
		return conn->s0;
	return qrdma_streams_find((struct qrdma_streams *)&conn->streams, id);
}

/* For writing: the connection lives, the stream exists. */
static struct qrdma_stream *conn_stream_tx(const struct qrdma_conn *conn, u64 id, int *err)
{
	struct qrdma_stream *s = conn_stream(conn, id);

	*err = 0;
	if (conn->phase != QRDMA_CONN_OPEN)
		*err = -EPIPE;
	else if (!s)
		*err = -ENOENT;
	return s;
}

int qrdma_conn_write(struct qrdma_conn *conn, u64 id, struct qrdma_buf *buf, u32 off, u32 len)
{
	struct qrdma_stream *s;
	int err;

	s = conn_stream_tx(conn, id, &err);
	return err ?: qrdma_stream_write(&conn->streams, s, buf, off, len, GFP_ATOMIC);
}

int qrdma_conn_write_tail(struct qrdma_conn *conn, u64 id, u8 **room)
{
	struct qrdma_stream *s;
	int err;

	s = conn_stream_tx(conn, id, &err);
	if (!err)
		err = qrdma_stream_can_write(s);
	return err ?: min_t(u32, S32_MAX, qrdma_stream_room(s, room));
}

void qrdma_conn_write_commit(struct qrdma_conn *conn, u64 id, u32 len)
{
	struct qrdma_stream *s;
	int err;

	s = conn_stream_tx(conn, id, &err);
	if (!err)
		qrdma_stream_commit(&conn->streams, s, len);
}

int qrdma_conn_finish(struct qrdma_conn *conn, u64 id)
{
	struct qrdma_stream *s;
	int err;

	s = conn_stream_tx(conn, id, &err);
	return err ?: qrdma_stream_finish(&conn->streams, s);
}

int qrdma_conn_reset(struct qrdma_conn *conn, u64 id, u64 code)
{
	struct qrdma_stream *s;
	int err;

	s = conn_stream_tx(conn, id, &err);
	return err ?: qrdma_stream_reset(&conn->streams, s, code);
}

int qrdma_conn_stop_reading(struct qrdma_conn *conn, u64 id, u64 code)
{
	struct qrdma_stream *s = conn_stream(conn, id);

	if (!s)
		return -ENOENT;
	qrdma_stream_stop(&conn->streams, s, code);
	return 0;
}

int qrdma_conn_peek(struct qrdma_conn *conn, u64 id, u64 skip, const u8 **data)
{
	struct qrdma_stream *s = conn_stream(conn, id);
	struct qrdma_seg seg;

	if (!s)
		return -ENOENT;
	if (!qrdma_stream_peek(s, skip, &seg, 1))
		return qrdma_stream_rx_error(s);
	*data = seg.data;
	return min_t(u32, S32_MAX, seg.len);
}

u32 qrdma_conn_consume(struct qrdma_conn *conn, u64 id, u32 len)
{
	struct qrdma_stream *s = conn_stream(conn, id);

	if (!s)
		return 0;
	conn->n.bytes_delivered += qrdma_stream_consume(&conn->streams, s, len);
	if (conn->phase != QRDMA_CONN_OPEN || !qrdma_streams_pending_ctl(&conn->streams))
		return 0;
	return QRDMA_EV_TX;
}

bool qrdma_conn_at_eof(const struct qrdma_conn *conn, u64 id)
{
	struct qrdma_stream *s = conn_stream(conn, id);

	return s && qrdma_stream_at_eof(s);
}

bool qrdma_conn_rx_complete(const struct qrdma_conn *conn, u64 id)
{
	const struct qrdma_stream *s = conn_stream(conn, id);

	return s && s->rx_final != U64_MAX && !s->rx_reset &&
	       s->rx.read + qrdma_stream_readable(s) == s->rx_final;
}

bool qrdma_conn_rx_full(const struct qrdma_conn *conn, u64 id)
{
	const struct qrdma_stream *s = conn_stream(conn, id);
	u64 end;

	if (!s)
		return false;
	end = s->rx.read + qrdma_stream_readable(s);
	return end == s->rx_flow.high && (end == s->rx_flow.max ||
	       conn->streams.rx_flow.high == conn->streams.rx_flow.max);
}

bool qrdma_conn_tx_done(const struct qrdma_conn *conn, u64 id)
{
	const struct qrdma_stream *s = conn_stream(conn, id);

	return s && qrdma_stream_tx_done(s);
}

u64 qrdma_conn_readable(const struct qrdma_conn *conn, u64 id)
{
	struct qrdma_stream *s = conn_stream(conn, id);

	return s ? qrdma_stream_readable(s) : 0;
}

u64 qrdma_conn_unacked(const struct qrdma_conn *conn, u64 id)
{
	struct qrdma_stream *s = conn_stream(conn, id);

	return s ? qrdma_stream_unacked(s) : 0;
}

u64 qrdma_conn_unsent(const struct qrdma_conn *conn, u64 id)
{
	struct qrdma_stream *s = conn_stream(conn, id);

	return s ? qrdma_stream_unsent(s) : 0;
}

void qrdma_conn_hold_credit(struct qrdma_conn *conn, bool hold)
{
	qrdma_streams_hold(&conn->streams, hold);
}

void qrdma_conn_set_rx_window(struct qrdma_conn *conn, u64 bytes)
{
	qrdma_streams_set_window(&conn->streams, bytes);
}

void qrdma_conn_set_rx_mem_max(struct qrdma_conn *conn, u32 bytes)
{
	qrdma_mem_set_cap(&conn->streams.rx_mem, bytes);
}

void qrdma_conn_ping(struct qrdma_conn *conn)
{
	if (conn->phase == QRDMA_CONN_OPEN)
		conn->ping = true;
}

u32 qrdma_conn_close(struct qrdma_conn *conn, u64 code, bool app, u64 now)
{
	if (conn->phase == QRDMA_CONN_OPEN) {
		conn->error.code = code;
		conn->error.app = app;
		qrdma_conn_begin_closing(conn, now);
	}
	return qrdma_conn_collect(conn, now);
}

void qrdma_conn_abort(struct qrdma_conn *conn)
{
	if (conn->phase == QRDMA_CONN_OPEN)
		conn->error.err = ENETDOWN;
	qrdma_conn_die(conn);
}

/*
 * The path
 */

void qrdma_conn_set_path(struct qrdma_conn *conn, u32 max_datagram, u64 now)
{
	bool smaller;

	max_datagram = min(max_datagram, conn->datagram_max);
	smaller = max_datagram < conn->path.max_datagram;
	conn->path.max_datagram = max_t(u32, max_datagram, QRDMA_DATAGRAM_MIN);
	qrdma_cong_set_mds(&conn->recovery.cong, conn->path.max_datagram);
	/* what is on its way may be too large to arrive */
	if (smaller && conn->phase == QRDMA_CONN_OPEN)
		qrdma_recovery_kick(&conn->recovery);
}

u32 qrdma_conn_kick(struct qrdma_conn *conn, u64 now)
{
	if (conn->phase == QRDMA_CONN_OPEN) {
		qrdma_recovery_kick(&conn->recovery);
		if (qrdma_recovery_deadline(&conn->recovery) <= now)
			conn_recovery_timeout(conn, now);
	}
	return qrdma_conn_collect(conn, now);
}

/*
 * Numbers
 */

void qrdma_conn_error(const struct qrdma_conn *conn, struct qrdma_conn_error *error)
{
	*error = conn->error;
}

u32 qrdma_conn_rx_mem(const struct qrdma_conn *conn)
{
	return conn->streams.rx_mem.used;
}

u32 qrdma_conn_tx_mem(const struct qrdma_conn *conn)
{
	return conn->streams.tx_mem.used;
}

void qrdma_conn_stats(const struct qrdma_conn *conn, struct qrdma_conn_stats *stats)
{
	struct qrdma_recovery_stats rs;

	qrdma_recovery_stats(&conn->recovery, &rs);
	memset(stats, 0, sizeof(*stats));
	stats->sent = rs.sent;
	stats->received = conn->n.received;
	stats->lost = rs.lost;
	stats->spurious = rs.spurious;
	stats->retransmitted_bytes = conn->n.bytes_resent;
	stats->opened = conn->n.opened;
	stats->open_failed = conn->app.keys.rx_failed;
	stats->sealed = conn->n.sealed;
	memcpy(stats->drops, conn->n.drops, sizeof(stats->drops));
	stats->bytes_sent = rs.bytes_sent;
	stats->bytes_received = conn->n.bytes_received;
	stats->bytes_acked = conn->s0 ? conn->s0->tx.una : 0;
	stats->bytes_delivered = conn->n.bytes_delivered;
	stats->capped = conn->path.refused + conn->n.datagrams_dropped;
	stats->srtt = rs.srtt;
	stats->rttvar = rs.rttvar;
	stats->min_rtt = rs.min_rtt;
	stats->latest_rtt = rs.latest_rtt;
	stats->cwnd = rs.cwnd;
	stats->in_flight = rs.in_flight;
	stats->ssthresh = rs.ssthresh;
	stats->pto_count = rs.pto_count;
	stats->key_phase = conn->app.keys.tx_gen;
	stats->key_updates = conn->app.keys.updates;
	stats->max_datagram = conn->path.max_datagram;
	stats->ce_marks = conn->app.pn.ce;
	stats->loss_events = conn->n.loss_events;
	stats->ecn = conn->recovery.ecn.state;
	stats->ce_reported = rs.ce;
}
