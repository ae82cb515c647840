// SPDX-License-Identifier: GPL-2.0
/*
 * The steps of a handshake in band. See handshake.h for what this owns, who calls it, in which
 * context and under which lock.
 *
 * What a peer can make us keep before it is authenticated: QRDMA_HS_HELD packets without a key,
 * QRDMA_CSTREAM_RX_MAX bytes of CRYPTO data a level, one token. Each bound has its counter.
 */
#include "handshake.h"
#include "frame.h"

static const u8 hs_level_of_space[QRDMA_HS_SPACES] = {
	[QRDMA_SPACE_INITIAL]	= QRDMA_ENC_INITIAL,
	[QRDMA_SPACE_HANDSHAKE]	= QRDMA_ENC_HANDSHAKE,
};

/*
 * Birth and death
 */

static struct qrdma_buf *hs_copy(const u8 *data, u32 len, gfp_t gfp)
{
	struct qrdma_buf *buf = qrdma_buf_alloc(len, gfp);

	if (buf)
		memcpy(buf->data, data, len);
	return buf;
}

static struct qrdma_hs_space *hs_space_new(const struct qrdma_conn_config *cfg, u8 id, gfp_t gfp)
{
	struct qrdma_hs_space *space = kzalloc(sizeof(*space), gfp);

	if (!space)
		return NULL;
	space->sp.id = id;
	qrdma_keys_init(&space->sp.keys, cfg->aead);
	/* acknowledged at once (RFC 9000 s13.2.1) */
	qrdma_pnspace_init(&space->sp.pn, 0, 0);
	qrdma_cstream_init(&space->crypto);
	return space;
}

static bool hs_config_valid(const struct qrdma_conn_config *cfg)
{
	const struct qrdma_hs_config *hc = cfg->hs;

	if (!cfg->is_server)
		return cfg->dcid->len >= QRDMA_HS_CID_MIN && cfg->dcid->len <= QRDMA_CID_MAX &&
		       hc->token_len <= QRDMA_HS_TOKEN_MAX;
	return hc->odcid && hc->odcid->len <= QRDMA_CID_MAX &&
	       (!hc->retry_scid || hc->retry_scid->len <= QRDMA_CID_MAX);
}

/* Copies of what only some connections have. */
static int hs_init_client(struct qrdma_hs *hs, const struct qrdma_conn_config *cfg, gfp_t gfp)
{
	const struct qrdma_hs_config *hc = cfg->hs;

	if (hc->token_len) {
		hs->token = hs_copy(hc->token, hc->token_len, gfp);
		if (!hs->token)
			return -ENOMEM;
	}
	if (hc->remembered) {
		hs->remembered = kmemdup(hc->remembered, sizeof(*hc->remembered), gfp);
		if (!hs->remembered)
			return -ENOMEM;
	}
	if (hc->retry) {
		cfg->aead->slot_get(hc->retry);
		hs->retry = hc->retry;
	}
	return 0;
}

static void hs_init_ids(struct qrdma_hs *hs, const struct qrdma_conn_config *cfg)
{
	const struct qrdma_hs_config *hc = cfg->hs;

	if (!cfg->is_server) {
		hs->odcid = *cfg->dcid;
		hs->initial_cid = *cfg->dcid;
		hs->validated = true;
		return;
	}
	hs->odcid = *hc->odcid;
	hs->initial_cid = *hc->odcid;
	if (hc->retry_scid) {
		hs->retried = true;
		hs->retry_scid = *hc->retry_scid;
		hs->initial_cid = *hc->retry_scid;
	}
	hs->validated = hc->validated;
	hs->peer_cid = *cfg->dcid;
	hs->have_cid = true;
}

/* May anything leave? Not before there is a beginning; a server as much as RFC 9000 s8.1 says. */
static void hs_block(struct qrdma_conn *conn)
{
	const struct qrdma_hs *hs = conn->hs;

	if (conn->server)
		conn->recovery.blocked = qrdma_hs_credit(hs) < qrdma_hs_expand(conn);
	else
		conn->recovery.blocked = !hs->started || hs->renew;
}

int qrdma_hs_create(struct qrdma_conn *conn, const struct qrdma_conn_config *cfg, u64 now,
		    gfp_t gfp)
{
	struct qrdma_hs *hs;
	u8 i;

	if (!hs_config_valid(cfg))
		return -EINVAL;
	hs = kzalloc(sizeof(*hs), gfp);
	if (!hs)
		return -ENOMEM;
	conn->hs = hs;
	INIT_LIST_HEAD(&hs->held);
	qrdma_keys_init(&hs->early, cfg->aead);
	qrdma_cstream_init(&hs->crypto);
	hs->local = *cfg->local;
	hs->early_until = QRDMA_NEVER;
	hs->expires = now + (cfg->hs->timeout ?: QRDMA_HS_TIMEOUT);
	hs_init_ids(hs, cfg);
	for (i = 0; i < QRDMA_HS_SPACES; i++) {
		hs->space[i] = hs_space_new(cfg, i, gfp);
		if (!hs->space[i])
			return -ENOMEM;
	}
	if (!cfg->is_server && hs_init_client(hs, cfg, gfp))
		return -ENOMEM;
	hs_block(conn);
	return 0;
}

static void hs_release(struct qrdma_hs *hs, struct qrdma_held *held)
{
	list_del(&held->node);
	hs->nheld[held->level]--;
	qrdma_buf_put(held->buf);
	kfree(held);
}

/* Packets of that level have no use any more; QRDMA_ENCS: of any. */
static void hs_release_level(struct qrdma_hs *hs, u8 level)
{
	struct qrdma_held *held, *next;

	list_for_each_entry_safe(held, next, &hs->held, node) {
		if (level == QRDMA_ENCS || held->level == level)
			hs_release(hs, held);
	}
}

static void hs_free_space(struct qrdma_hs *hs, u8 i)
{
	struct qrdma_hs_space *space = hs->space[i];

	if (!space)
		return;
	qrdma_keys_wipe(&space->sp.keys);
	qrdma_pnspace_destroy(&space->sp.pn);
	qrdma_cstream_purge(&space->crypto);
	kfree(space);
	hs->space[i] = NULL;
}

void qrdma_hs_destroy(struct qrdma_conn *conn)
{
	struct qrdma_hs *hs = conn->hs;
	u8 i;

	if (!hs)
		return;
	for (i = 0; i < QRDMA_HS_SPACES; i++)
		hs_free_space(hs, i);
	if (hs->retry)
		hs->early.aead->slot_put(hs->retry);
	qrdma_keys_wipe(&hs->early);
	qrdma_cstream_purge(&hs->crypto);
	hs_release_level(hs, QRDMA_ENCS);
	qrdma_buf_put(hs->token);
	qrdma_buf_put(hs->got);
	kfree(hs->remembered);
	kfree(hs->params);
	kfree(hs);
	conn->hs = NULL;
}

static void hs_validated(struct qrdma_conn *conn)
{
	conn->hs->validated = true;
	hs_block(conn);
}

/*
 * Keys that go
 */

void qrdma_hs_drop_space(struct qrdma_conn *conn, u8 space, u64 now)
{
	struct qrdma_hs *hs = conn->hs;

	if (!hs->space[space])
		return;
	hs_free_space(hs, space);
	hs_release_level(hs, hs_level_of_space[space]);
	qrdma_recovery_drop_space(&conn->recovery, space, now);
	if (conn->probe_space == space)
		conn->probes = 0;
}

void qrdma_hs_drop_early(struct qrdma_conn *conn)
{
	struct qrdma_hs *hs = conn->hs;

	qrdma_keys_wipe(&hs->early);
	hs_release_level(hs, QRDMA_ENC_EARLY);
	hs->early_until = QRDMA_NEVER;
}

void qrdma_hs_confirm(struct qrdma_conn *conn, u64 now)
{
	struct qrdma_hs *hs = conn->hs;

	if (hs->confirmed || !hs->complete)
		return;
	hs->confirmed = true;
	conn->recovery.confirmed = true;
	/* Finished came in a Handshake packet: whoever says that it verified has validated, too */
	hs_validated(conn);
	qrdma_hs_drop_space(conn, QRDMA_SPACE_INITIAL, now);
	qrdma_hs_drop_space(conn, QRDMA_SPACE_HANDSHAKE, now);
	conn->events |= QRDMA_EV_CONFIRMED;
}

void qrdma_hs_timeout(struct qrdma_conn *conn, u64 now)
{
	struct qrdma_hs *hs = conn->hs;

	if (hs->early_until <= now)
		qrdma_hs_drop_early(conn);
	if (!hs->complete && hs->expires <= now)
		qrdma_conn_fail(conn, ETIMEDOUT, QRDMA_ERR_CONNECTION_REFUSED, 0, now);
}

/*
 * How much a server may send
 */

void qrdma_hs_on_datagram(struct qrdma_conn *conn, u32 len)
{
	if (conn->hs->validated)
		return;
	conn->hs->rx_bytes += len;
	hs_block(conn);
}

void qrdma_hs_on_sent(struct qrdma_conn *conn, u32 len, bool handshake, u64 now)
{
	if (handshake && !conn->server)
		qrdma_hs_drop_space(conn, QRDMA_SPACE_INITIAL, now);
	if (conn->hs->validated)
		return;
	conn->hs->tx_bytes += len;
	hs_block(conn);
}

void qrdma_hs_start(struct qrdma_conn *conn)
{
	conn->hs->started = true;
	hs_block(conn);
}

/*
 * Packets that wait
 */

/* May the key of that level yet come? */
static bool hs_may_open(const struct qrdma_conn *conn, u8 level)
{
	const struct qrdma_hs *hs = conn->hs;

	switch (level) {
	case QRDMA_ENC_INITIAL:
		return hs->space[QRDMA_SPACE_INITIAL];
	case QRDMA_ENC_EARLY:
		return conn->server && !hs->complete && hs->early_state == QRDMA_EARLY_NONE;
	case QRDMA_ENC_HANDSHAKE:
		return hs->space[QRDMA_SPACE_HANDSHAKE];
	default:
		return true;
	}
}

bool qrdma_hs_hold(struct qrdma_conn *conn, const struct qrdma_rx *rx, u8 level, const u8 *pkt,
		   u32 len, u64 now)
{
	struct qrdma_hs *hs = conn->hs;
	struct qrdma_held *held;
	u32 i, n = 0;

	if (!hs_may_open(conn, level))
		return false;
	for (i = 0; i < QRDMA_ENCS; i++)
		n += hs->nheld[i];
	if (n == QRDMA_HS_HELD || hs->nheld[level] == QRDMA_HS_HELD_LEVEL)
		goto full;
	held = kmalloc(sizeof(*held), GFP_ATOMIC);
	if (!held)
		goto full;
	held->buf = hs_copy(pkt, len, GFP_ATOMIC);
	if (!held->buf) {
		kfree(held);
		goto full;
	}
	held->total = rx->total;
	held->at = now;
	held->level = level;
	held->ecn = rx->ecn;
	list_add_tail(&held->node, &hs->held);
	hs->nheld[level]++;
	return true;

full:
	hs->held_dropped++;
	return false;
}

bool qrdma_hs_take_held(struct qrdma_conn *conn, struct qrdma_rx *rx)
{
	struct qrdma_held *held = qrdma_conn_held_ready(conn);

	if (!held)
		return false;
	rx->buf = qrdma_buf_get(held->buf);
	rx->data = held->buf->data;
	rx->len = held->buf->len;
	rx->ecn = held->ecn;
	rx->total = held->total;
	rx->at = held->at;
	hs_release(conn->hs, held);
	return true;
}

/*
 * Before the first packet verifies: other versions, Retry
 */

bool qrdma_hs_on_version_neg(struct qrdma_conn *conn, const struct qrdma_hdr *hdr)
{
	const struct qrdma_hs *hs = conn->hs;
	u32 i;

	if (conn->server || conn->verified || hs->retried || conn->phase != QRDMA_CONN_OPEN ||
	    hdr->dcid_len != conn->path.scid.len || hdr->scid_len != hs->initial_cid.len ||
	    memcmp(hdr->dcid, conn->path.scid.data, hdr->dcid_len) ||
	    memcmp(hdr->scid, hs->initial_cid.data, hdr->scid_len))
		return false;
	/* one that offers what we asked for is a lie, or an echo */
	for (i = 0; i < hdr->token_len; i += sizeof(u32)) {
		if (qrdma_load_be32(hdr->token + i) == QRDMA_QUIC_V1)
			return false;
	}
	conn->error.err = EPROTONOSUPPORT;
	conn->error.remote = true;
	qrdma_conn_die(conn);
	return true;
}

bool qrdma_hs_begin_retry(struct qrdma_conn *conn, struct qrdma_rx *rx,
			  const struct qrdma_hdr *hdr, const u8 *pkt)
{
	struct qrdma_hs *hs = conn->hs;
	u32 odcid_len = hs->odcid.len;
	struct qrdma_aead_op *op = &rx->op;
	struct qrdma_buf *pseudo;

	/* RFC 9000 s17.2.5.2: one Retry, before any other packet, and with another id than ours */
	if (conn->server || !hs->retry || conn->verified || hs->retried ||
	    hdr->token_len > QRDMA_HS_TOKEN_MAX || hdr->dcid_len != conn->path.scid.len ||
	    memcmp(hdr->dcid, conn->path.scid.data, hdr->dcid_len) ||
	    (hdr->scid_len == hs->initial_cid.len &&
	     !memcmp(hdr->scid, hs->initial_cid.data, hdr->scid_len)))
		return false;
	pseudo = qrdma_buf_alloc(1 + odcid_len + hdr->len, GFP_ATOMIC);
	if (!pseudo)
		return false;
	/* RFC 9001 s5.8: the tag covers the id of the first Initial, too */
	pseudo->data[0] = odcid_len;
	memcpy(pseudo->data + 1, hs->odcid.data, odcid_len);
	memcpy(pseudo->data + 1 + odcid_len, pkt, hdr->len);
	rx->pseudo = pseudo;
	rx->aead = hs->early.aead;
	rx->aead->slot_get(hs->retry);
	memset(op, 0, offsetof(struct qrdma_aead_op, seg));
	op->slot = hs->retry;
	op->pkt = pseudo->data;
	op->hdr_len = pseudo->len - QRDMA_RETRY_TAG_LEN;
	op->payload_len = QRDMA_RETRY_TAG_LEN;
	op->nseg = 0;
	return true;
}

/* What was sent counts as not sent: it goes again with the new id and token (RFC 9002 s6.3). */
static void hs_requeue(struct qrdma_conn *conn, u8 space, u64 now)
{
	struct qrdma_recovery_result res;

	qrdma_recovery_requeue(&conn->recovery, space, now, &res);
	qrdma_conn_settle(conn, &res);
}

bool qrdma_hs_end_retry(struct qrdma_conn *conn, struct qrdma_rx *rx, u64 now)
{
	struct qrdma_hs *hs = conn->hs;
	struct qrdma_buf *token = NULL;
	struct qrdma_keys *keys;
	struct qrdma_hdr hdr;
	u32 skip = 1 + rx->pseudo->data[0];
	bool ok;

	ok = !conn->verified && !hs->retried && hs->space[QRDMA_SPACE_INITIAL] &&
	     qrdma_hdr_parse(&hdr, rx->pseudo->data + skip,
			     rx->pseudo->len - skip) == QRDMA_HDR_OK;
	if (ok)
		token = hs_copy(hdr.token, hdr.token_len, GFP_ATOMIC);
	if (token) {
		qrdma_buf_put(hs->token);
		hs->token = token;
		hs->retried = true;
		hs->renew = true;
		hs->retry_scid.len = hdr.scid_len;
		memcpy(hs->retry_scid.data, hdr.scid, hdr.scid_len);
		hs->initial_cid = hs->retry_scid;
		qrdma_path_set_peer(&conn->path, &hs->retry_scid);
		keys = &hs->space[QRDMA_SPACE_INITIAL]->sp.keys;
		qrdma_keys_wipe(keys);
		qrdma_keys_init(keys, hs->early.aead);
		hs_requeue(conn, QRDMA_SPACE_INITIAL, now);
		hs_requeue(conn, QRDMA_SPACE_APP, now);
		hs_block(conn);
		conn->probes = 0;
		conn->events |= QRDMA_EV_INITIAL_KEYS;
	}
	qrdma_buf_put(rx->pseudo);
	rx->pseudo = NULL;
	return token;
}

/*
 * Packets that verified
 */

bool qrdma_hs_opened(struct qrdma_conn *conn, const struct qrdma_rx *rx)
{
	struct qrdma_hs *hs = conn->hs;
	const u8 *dcid_len = rx->op.pkt + 5;		/* RFC 9000 s17.2: type, version */
	const u8 *scid_len = dcid_len + 1 + *dcid_len;

	if (!hs->have_cid) {
		hs->peer_cid.len = *scid_len;
		memcpy(hs->peer_cid.data, scid_len + 1, *scid_len);
		hs->have_cid = true;
		qrdma_path_set_peer(&conn->path, &hs->peer_cid);
		return true;
	}
	return hs->peer_cid.len == *scid_len &&
	       !memcmp(hs->peer_cid.data, scid_len + 1, *scid_len);
}

void qrdma_hs_used(struct qrdma_conn *conn, u8 level, u64 now)
{
	struct qrdma_hs *hs = conn->hs;

	if (!conn->server)
		return;
	if (level == QRDMA_ENC_HANDSHAKE && !hs->validated)
		hs_validated(conn);
	/* RFC 9001 s4.9.1 */
	if (level == QRDMA_ENC_HANDSHAKE)
		qrdma_hs_drop_space(conn, QRDMA_SPACE_INITIAL, now);
	/* RFC 9001 s4.9.3: stragglers may come a little later */
	if (level == QRDMA_ENC_APP && hs->early.rx_cur && hs->early_until == QRDMA_NEVER)
		hs->early_until = now + qrdma_conn_three_ptos(conn);
}

int qrdma_hs_on_crypto(struct qrdma_conn *conn, u8 level, const struct qrdma_frame *f,
		       struct qrdma_buf *buf, u64 *verdict)
{
	u8 space = level == QRDMA_ENC_APP ? QRDMA_SPACE_APP :
		   level == QRDMA_ENC_INITIAL ? QRDMA_SPACE_INITIAL : QRDMA_SPACE_HANDSHAKE;
	int n = qrdma_cstream_receive(qrdma_conn_cstream(conn, space), f, buf);

	*verdict = QRDMA_ERR_CRYPTO_BUFFER_EXCEEDED;
	if (n > 0)
		conn->events |= QRDMA_EV_CRYPTO;
	return min(n, 0);
}

int qrdma_hs_on_token(struct qrdma_conn *conn, const struct qrdma_frame *f)
{
	struct qrdma_hs *hs = conn->hs;
	struct qrdma_buf *token;

	if (f->token.len > QRDMA_HS_TOKEN_MAX ||
	    (hs->got && hs->got->len == f->token.len &&
	     !memcmp(hs->got->data, f->token.data, f->token.len)))
		return 0;
	token = hs_copy(f->token.data, f->token.len, GFP_ATOMIC);
	if (!token)
		return -ENOMEM;
	qrdma_buf_put(hs->got);
	hs->got = token;
	conn->events |= QRDMA_EV_TOKEN;
	return 0;
}

/*
 * Transport parameters
 */

void qrdma_hs_apply_params(struct qrdma_conn *conn, const struct qrdma_tparams *tp, u64 now)
{
	u32 max_datagram;
	u64 verdict;

	conn->recovery.max_ack_delay = tp->max_ack_delay * NSEC_PER_MSEC;
	conn->peer_ack_exponent = tp->ack_delay_exponent;
	conn->idle_timeout = qrdma_conn_idle_timeout(&conn->hs->local, tp);
	conn->datagram_max = min_t(u64, tp->max_udp_payload_size, U32_MAX);
	max_datagram = max_t(u32, conn->datagram_max, QRDMA_DATAGRAM_MIN);
	if (max_datagram < conn->path.max_datagram) {
		conn->path.max_datagram = max_datagram;
		qrdma_recovery_set_mds(&conn->recovery, max_datagram);
	}
	if (qrdma_tparams_has(tp, QRDMA_TP_STATELESS_RESET_TOKEN)) {
		qrdma_path_set_token(&conn->path, tp->reset_token);
		conn->events |= QRDMA_EV_RESET_TOKEN;
	}
	/* RFC 9000 s5.1.1: an id of that address is number 1, used or not */
	if (qrdma_tparams_has(tp, QRDMA_TP_PREFERRED_ADDRESS) &&
	    qrdma_path_on_new_cid(&conn->path, 1, 0, &tp->preferred.cid,
				  tp->preferred.reset_token, &verdict))
		qrdma_conn_fail(conn, EPROTO, verdict, 0, now);
	qrdma_streams_set_remote(&conn->streams, tp);
}
