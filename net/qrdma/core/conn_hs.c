// SPDX-License-Identifier: GPL-2.0
/*
 * The handshake in band from outside: keys, handshake bytes, transport parameters, verdicts.
 *
 * Owns: nothing. Called by: the socket layer through conn_hs.h, under the socket lock; never
 * sleeps. What packets do to a handshake stands in handshake.c.
 */
#include "conn_hs.h"
#include "handshake.h"
#include "frame.h"

const struct qrdma_cid *qrdma_conn_initial_cid(const struct qrdma_conn *conn)
{
	return conn->hs ? &conn->hs->initial_cid : NULL;
}

u32 qrdma_conn_events(struct qrdma_conn *conn, u64 now)
{
	return qrdma_conn_collect(conn, now);
}

bool qrdma_conn_held(struct qrdma_conn *conn, struct qrdma_rx *rx)
{
	return conn->hs && qrdma_hs_take_held(conn, rx);
}

/*
 * Keys
 */

static int conn_install_early(struct qrdma_conn *conn, bool send, u32 cipher,
			      struct qrdma_slot *cur)
{
	struct qrdma_hs *hs = conn->hs;
	int err;

	if (send == conn->server || (send && !hs->remembered))
		return -EINVAL;
	if (hs->early_state == QRDMA_EARLY_REJECTED || hs->complete ||
	    (send && conn->app.keys.tx_cur))
		return -ESTALE;
	err = qrdma_keys_install(&hs->early, send, cipher, 0, cur);
	if (!err)
		hs->early_state = send ? QRDMA_EARLY_TRIED : QRDMA_EARLY_ACCEPTED;
	return err;
}

static int conn_install_app(struct qrdma_conn *conn, bool send, u32 cipher,
			    struct qrdma_slot *cur)
{
	struct qrdma_hs *hs = conn->hs;
	int err;

	/* packets of both kinds in one space: which ones a rejection means has to be known first */
	if (hs && !conn->server && send && hs->early_state == QRDMA_EARLY_TRIED)
		return -EINVAL;
	err = qrdma_keys_install(&conn->app.keys, send, cipher, conn->key_packets_max, cur);
	if (!err && hs && !conn->server && send)
		qrdma_hs_drop_early(conn);
	return err;
}

/* Initial and Handshake. */
static int conn_install_hs(struct qrdma_conn *conn, u8 space, bool send, u32 cipher,
			   struct qrdma_slot *cur)
{
	struct qrdma_hs *hs = conn->hs;
	struct qrdma_keys *keys;
	int err;

	if (!hs->space[space])
		return -ESTALE;
	keys = &hs->space[space]->sp.keys;
	err = qrdma_keys_install(keys, send, cipher, 0, cur);
	if (err)
		return err;
	if (space == QRDMA_SPACE_HANDSHAKE && send)
		conn->recovery.handshake_keys = true;
	if (space == QRDMA_SPACE_INITIAL && hs->renew && keys->tx_cur && keys->rx_cur) {
		hs->renew = false;
		qrdma_hs_start(conn);
	}
	return 0;
}

int qrdma_conn_install_level(struct qrdma_conn *conn, u8 level, bool send, u32 cipher,
			     struct qrdma_slot *cur)
{
	if (conn->phase != QRDMA_CONN_OPEN)
		return -ESTALE;
	if (level == QRDMA_ENC_APP)
		return conn_install_app(conn, send, cipher, cur);
	if (!conn->hs)
		return -EOPNOTSUPP;
	switch (level) {
	case QRDMA_ENC_INITIAL:
		return conn_install_hs(conn, QRDMA_SPACE_INITIAL, send, cipher, cur);
	case QRDMA_ENC_EARLY:
		return conn_install_early(conn, send, cipher, cur);
	case QRDMA_ENC_HANDSHAKE:
		return conn_install_hs(conn, QRDMA_SPACE_HANDSHAKE, send, cipher, cur);
	}
	return -EINVAL;
}

/*
 * Handshake bytes
 */

/* Packet number space whose packets carry the CRYPTO data of a level. Return: -EINVAL: none do. */
static int conn_crypto_space(u8 level)
{
	switch (level) {
	case QRDMA_ENC_INITIAL:
		return QRDMA_SPACE_INITIAL;
	case QRDMA_ENC_HANDSHAKE:
		return QRDMA_SPACE_HANDSHAKE;
	case QRDMA_ENC_APP:
		return QRDMA_SPACE_APP;
	}
	return -EINVAL;
}

int qrdma_conn_crypto_write(struct qrdma_conn *conn, u8 level, const void *data, u32 len)
{
	int space = conn_crypto_space(level), err;
	struct qrdma_cstream *to;

	if (!conn->hs)
		return -EOPNOTSUPP;
	if (conn->phase != QRDMA_CONN_OPEN)
		return -ENOTCONN;
	if (space < 0)
		return space;
	to = qrdma_conn_cstream(conn, space);
	if (!to)
		return -ESTALE;
	err = qrdma_cstream_write(to, data, len);
	if (!err && !conn->hs->started)
		qrdma_hs_start(conn);
	return err;
}

int qrdma_conn_crypto_peek(const struct qrdma_conn *conn, u8 level, const u8 **data)
{
	int space = conn_crypto_space(level);
	struct qrdma_cstream *from = space < 0 ? NULL : qrdma_conn_cstream(conn, space);

	return from ? min_t(u32, S32_MAX, qrdma_cstream_peek(from, data)) : 0;
}

void qrdma_conn_crypto_consume(struct qrdma_conn *conn, u8 level, u32 len)
{
	int space = conn_crypto_space(level);
	struct qrdma_cstream *from = space < 0 ? NULL : qrdma_conn_cstream(conn, space);

	if (from)
		qrdma_cstream_consume(from, len);
}

/*
 * Transport parameters
 */

int qrdma_conn_tparams(const struct qrdma_conn *conn, u8 *data, u32 size)
{
	const struct qrdma_hs *hs = conn->hs;
	struct qrdma_tparams tp;
	struct qrdma_writer w;

	if (!hs)
		return -EOPNOTSUPP;
	tp = hs->local;
	tp.initial_scid = conn->path.scid;
	tp.present |= BIT_ULL(QRDMA_TP_INITIAL_SCID);
	if (conn->server) {
		tp.original_dcid = hs->odcid;
		tp.present |= BIT_ULL(QRDMA_TP_ORIGINAL_DCID);
		if (hs->retried) {
			tp.retry_scid = hs->retry_scid;
			tp.present |= BIT_ULL(QRDMA_TP_RETRY_SCID);
		}
	}
	qrdma_writer_init(&w, data, size);
	if (!qrdma_tparams_encode(&w, &tp, conn->server))
		return -ENOBUFS;
	return w.pos - data;
}

/* RFC 9000 s7.3: are the connection ids those that were seen? */
static bool conn_params_authentic(const struct qrdma_conn *conn, const struct qrdma_tparams *tp)
{
	const struct qrdma_hs *hs = conn->hs;

	if (!hs->have_cid || !qrdma_tparams_has(tp, QRDMA_TP_INITIAL_SCID) ||
	    !qrdma_cid_equal(&tp->initial_scid, &hs->peer_cid))
		return false;
	if (conn->server)
		return true;
	if (!qrdma_tparams_has(tp, QRDMA_TP_ORIGINAL_DCID) ||
	    !qrdma_cid_equal(&tp->original_dcid, &hs->odcid))
		return false;
	if (qrdma_tparams_has(tp, QRDMA_TP_RETRY_SCID) != hs->retried)
		return false;
	return !hs->retried || qrdma_cid_equal(&tp->retry_scid, &hs->retry_scid);
}

/* RFC 9000 s7.4.1: what a server that takes 0-RTT may not lower */
static bool conn_params_reduced(const struct qrdma_tparams *was, const struct qrdma_tparams *is)
{
	return is->initial_max_data < was->initial_max_data ||
	       is->initial_max_stream_data_bidi_local < was->initial_max_stream_data_bidi_local ||
	       is->initial_max_stream_data_bidi_remote <
	       was->initial_max_stream_data_bidi_remote ||
	       is->initial_max_stream_data_uni < was->initial_max_stream_data_uni ||
	       is->initial_max_streams_bidi < was->initial_max_streams_bidi ||
	       is->initial_max_streams_uni < was->initial_max_streams_uni ||
	       is->active_cid_limit < was->active_cid_limit ||
	       is->max_datagram_frame_size < was->max_datagram_frame_size;
}

/* The verdict on 0-RTT and the new parameters are both known, or will not be. */
static int conn_params_settle(struct qrdma_conn *conn, const struct qrdma_tparams *tp, u64 now)
{
	const struct qrdma_hs *hs = conn->hs;

	if (hs->early_state == QRDMA_EARLY_ACCEPTED && hs->remembered &&
	    conn_params_reduced(hs->remembered, tp)) {
		qrdma_conn_fail(conn, EPROTO, QRDMA_ERR_PROTOCOL_VIOLATION, 0, now);
		return -EPROTO;
	}
	qrdma_hs_apply_params(conn, tp, now);
	return conn->phase == QRDMA_CONN_OPEN ? 0 : -EPROTO;
}

int qrdma_conn_peer_tparams(struct qrdma_conn *conn, const u8 *data, u32 len, u64 now)
{
	struct qrdma_hs *hs = conn->hs;
	struct qrdma_tparams tp;

	if (!hs)
		return -EOPNOTSUPP;
	if (conn->phase != QRDMA_CONN_OPEN)
		return -ENOTCONN;
	if (hs->have_params)
		return -EALREADY;
	if (qrdma_tparams_decode(&tp, data, len, !conn->server) ||
	    !conn_params_authentic(conn, &tp)) {
		qrdma_conn_fail(conn, EPROTO, QRDMA_ERR_TRANSPORT_PARAMETER_ERROR, 0, now);
		return -EPROTO;
	}
	if (!conn->server && hs->early_state == QRDMA_EARLY_TRIED) {
		hs->params = kmemdup(&tp, sizeof(tp), GFP_ATOMIC);
		if (!hs->params)
			return -ENOMEM;
		hs->have_params = true;
		return 0;
	}
	hs->have_params = true;
	return conn_params_settle(conn, &tp, now);
}

/*
 * Verdicts
 */

/* All that left as 0-RTT counts as not sent; it goes again under other keys and other limits. */
static void conn_early_rejected(struct qrdma_conn *conn, u64 now)
{
	struct qrdma_recovery_result res;

	qrdma_hs_drop_early(conn);
	/* no notes are looked at: the streams are wound back whole */
	qrdma_recovery_requeue(&conn->recovery, QRDMA_SPACE_APP, now, &res);
	qrdma_streams_rewind(&conn->streams);
}

static int conn_early_client(struct qrdma_conn *conn, bool accepted, u64 now)
{
	struct qrdma_hs *hs = conn->hs;
	struct qrdma_tparams *params = hs->params;
	int err = 0;

	if (hs->early_state != QRDMA_EARLY_TRIED)
		return -EALREADY;
	hs->early_state = accepted ? QRDMA_EARLY_ACCEPTED : QRDMA_EARLY_REJECTED;
	if (!accepted)
		conn_early_rejected(conn, now);
	hs->params = NULL;
	if (params)
		err = conn_params_settle(conn, params, now);
	kfree(params);
	return err;
}

int qrdma_conn_early_verdict(struct qrdma_conn *conn, bool accepted, u64 now)
{
	struct qrdma_hs *hs = conn->hs;

	if (!hs)
		return -EOPNOTSUPP;
	if (!conn->server)
		return conn_early_client(conn, accepted, now);
	if (hs->early_state != QRDMA_EARLY_NONE)
		return -EALREADY;
	if (!accepted) {
		hs->early_state = QRDMA_EARLY_REJECTED;
		qrdma_hs_drop_early(conn);
	}
	return 0;
}

void qrdma_conn_await_verdict(struct qrdma_conn *conn)
{
	if (conn->hs && !conn->server && !conn->hs->complete)
		conn->hs->judged = true;
}

int qrdma_conn_handshake_complete(struct qrdma_conn *conn, u64 now)
{
	struct qrdma_hs *hs = conn->hs;
	const struct qrdma_keys *keys = &conn->app.keys;

	if (!hs)
		return -EOPNOTSUPP;
	if (conn->phase != QRDMA_CONN_OPEN)
		return -ENOTCONN;
	if (hs->complete)
		return -EALREADY;
	if (!hs->have_params || !keys->tx_cur || !keys->rx_cur)
		return -EINVAL;
	hs->complete = true;
	kfree(hs->remembered);
	hs->remembered = NULL;
	if (!conn->server)
		return 0;
	/* what is still held for 0-RTT will have no key */
	if (!hs->early.rx_cur)
		qrdma_hs_drop_early(conn);
	hs->done = QRDMA_HS_DUE;
	qrdma_hs_confirm(conn, now);
	return 0;
}

/*
 * Tokens
 */

int qrdma_conn_give_token(struct qrdma_conn *conn, const u8 *token, u32 len)
{
	struct qrdma_hs *hs = conn->hs;

	if (!hs || !conn->server || !len || len > QRDMA_HS_TOKEN_MAX)
		return -EINVAL;
	if (conn->phase != QRDMA_CONN_OPEN || !hs->complete)
		return -ENOTCONN;
	if (hs->give != QRDMA_HS_NO)
		return -EALREADY;
	hs->token = qrdma_buf_alloc(len, GFP_ATOMIC);
	if (!hs->token)
		return -ENOMEM;
	memcpy(hs->token->data, token, len);
	hs->give = QRDMA_HS_DUE;
	return 0;
}

u32 qrdma_conn_token(const struct qrdma_conn *conn, const u8 **token)
{
	const struct qrdma_hs *hs = conn->hs;

	if (!hs || !hs->got)
		return 0;
	*token = hs->got->data;
	return hs->got->len;
}

void qrdma_conn_hs_stats(const struct qrdma_conn *conn, struct qrdma_hs_stats *stats)
{
	const struct qrdma_hs *hs = conn->hs;
	u32 i;

	memset(stats, 0, sizeof(*stats));
	if (!hs)
		return;
	stats->complete = hs->complete;
	stats->confirmed = hs->confirmed;
	stats->retried = hs->retried;
	stats->validated = hs->validated;
	stats->early = hs->early_state;
	stats->rx_bytes = hs->rx_bytes;
	stats->tx_bytes = hs->tx_bytes;
	for (i = 0; i < QRDMA_ENCS; i++)
		stats->held += hs->nheld[i];
	stats->held_dropped = hs->held_dropped;
}
