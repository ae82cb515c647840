// SPDX-License-Identifier: GPL-2.0
/*
 * The handshake in band: a listener without a connection, and at both ends somebody who speaks TLS
 * and takes his time. What has to hold: no more than three times the bytes before the address is
 * validated, and an end in bounded time.
 */
#include "sim.h"
#include "conn_state.h"
#include "stateless.h"

#define HS_TIMEOUT	(100 * SIM_SEC)

static const struct qrdma_cid hs_chosen = { .len = 8, .data = "chosenid" };
static const struct qrdma_cid hs_retry = { .len = 8, .data = "retryid!" };

/* Of the engine being made, which takes a reference of its own. */
static struct qrdma_slot *hs_retry_slot;

/* What the client's first datagram says to the listener. */
static struct {
	struct qrdma_cid peer;
	struct qrdma_cid odcid;
	bool token;
} hs_asked;

void hs_config(struct end *e, struct qrdma_conn_config *cfg)
{
	static struct qrdma_hs_config hs;
	static struct qrdma_tparams remembered;

	memset(&hs, 0, sizeof(hs));
	hs.timeout = HS_TIMEOUT;
	cfg->hs = &hs;
	if (e->i) {
		cfg->dcid = &hs_asked.peer;
		hs.odcid = &hs_asked.odcid;
		hs.retry_scid = hs_asked.token ? &hs_retry : NULL;
		hs.validated = hs_asked.token;
		return;
	}
	cfg->dcid = &hs_chosen;
	if (e->w->p.early) {
		/* limits as they are, when they will hold, else others */
		remembered = *cfg->local;
		if (!e->w->p.early_taken)
			remembered.initial_max_data = sim_draw(e->w, 0, 100000);
		hs.remembered = &remembered;
	}
	if (!ftls_slot(FTLS_RETRY_SECRET, true, NULL, &hs_retry_slot))
		hs.retry = hs_retry_slot;
}

void hs_start(struct end *e)
{
	const struct sim_params *p = &e->w->p;
	unsigned long fail_at = shim_mem.fail_at;

	/* the engine is what is under test: the TLS of this world has memory */
	shim_mem.fail_at = 0;
	null_aead.slot_put(hs_retry_slot);
	hs_retry_slot = NULL;
	ftls_init(&e->tls, e->conn, e->i);
	e->tls.hello = p->hello;
	e->tls.cert = p->cert;
	e->tls.ticket = p->ticket;
	e->tls.early = e->i ? p->early_taken : p->early;
	ftls_start(&e->tls);
	shim_mem.fail_at = fail_at;
}

static void hs_tls(struct world *w, void *arg)
{
	struct end *e = arg;
	unsigned long fail_at = shim_mem.fail_at;
	u32 ev = e->tls_events;

	e->tls_events = 0;
	if (!e->conn)
		return;
	shim_mem.fail_at = 0;
	ftls_events(&e->tls, ev, w->now);
	shim_mem.fail_at = fail_at;
	if (e->tls.err)
		sim_fail(w, "end %d: TLS: %d in line %d", e->i, e->tls.err, e->tls.line);
	end_act(e, qrdma_conn_events(e->conn, w->now));
}

void hs_events(struct end *e, u32 ev)
{
	ev &= QRDMA_EV_CRYPTO | QRDMA_EV_INITIAL_KEYS;
	if (!e->w->p.inband || !ev)
		return;
	if (!e->tls_events)
		sim_at(e->w, e->w->now + sim_draw(e->w, 0, e->w->p.tls_max), hs_tls, e);
	e->tls_events |= ev;
}

/* The listener's answer: come back with a token that names the id you chose. */
static void hs_send_retry(struct end *e, const struct qrdma_hdr *hdr)
{
	struct qrdma_slot *slot;
	struct qrdma_tx tx = {};
	u8 token[1 + QRDMA_CID_MAX], data[256];

	tx.data = data;
	tx.cap = sizeof(data);
	token[0] = hdr->dcid_len;
	memcpy(token + 1, hdr->dcid, hdr->dcid_len);
	if (ftls_slot(FTLS_RETRY_SECRET, true, NULL, &slot))
		return;
	if (!qrdma_stateless_retry(&tx, &null_aead, slot, hdr, &hs_retry, token,
				   1 + hdr->dcid_len, 0) && !null_seal_now(&tx.op)) {
		qrdma_stateless_retry_end(&tx);
		link_send(e->w, e->i, data, tx.len, QRDMA_ECN_NOT_ECT);
	}
	qrdma_tx_release(&tx);
	null_aead.slot_put(slot);
}

/* A token that is none of ours is dropped with its datagram: the wire may have broken it. */
static bool hs_token(const struct qrdma_hdr *hdr)
{
	if (!hdr->token_len || hdr->token[0] > QRDMA_CID_MAX ||
	    hdr->token_len != 1u + hdr->token[0])
		return false;
	hs_asked.odcid.len = hdr->token[0];
	memcpy(hs_asked.odcid.data, hdr->token + 1, hdr->token[0]);
	return qrdma_cid_equal(&hs_asked.odcid, &hs_chosen) && hdr->dcid_len == hs_retry.len &&
	       !memcmp(hdr->dcid, hs_retry.data, hs_retry.len);
}

bool hs_listen(struct end *e, const u8 *data, u32 len)
{
	struct world *w = e->w;
	unsigned long fail_at = shim_mem.fail_at;
	struct qrdma_hdr hdr;
	bool made;

	if (!w->p.inband || !e->i || e->made ||
	    qrdma_stateless_look(data, len, w->p.datagram, &hdr) != QRDMA_FIRST_INITIAL)
		return false;
	/* as a broken datagram would have it: nobody would ever open a packet of that client */
	if (hdr.scid_len != 8 || memcmp(hdr.scid, "clientid", 8))
		return false;
	shim_mem.fail_at = 0;
	hs_asked.token = w->p.retry;
	hs_asked.peer.len = hdr.scid_len;
	memcpy(hs_asked.peer.data, hdr.scid, hdr.scid_len);
	made = false;
	if (w->p.retry && !hdr.token_len) {
		hs_send_retry(e, &hdr);
	} else if (w->p.retry ? hs_token(&hdr) : hdr.dcid_len == hs_chosen.len &&
		   !memcmp(hdr.dcid, hs_chosen.data, hs_chosen.len)) {
		hs_asked.odcid = hs_chosen;
		made = end_make(e);
		if (made) {
			hs_start(e);
			app_start(e);
		}
	}
	shim_mem.fail_at = fail_at;
	return made;
}

/* RFC 9000 s8.1, counted here once more. */
void hs_check(struct end *e)
{
	struct qrdma_hs_stats stats;

	if (!e->w->p.inband || !e->i)
		return;
	qrdma_conn_hs_stats(e->conn, &stats);
	if (!stats.validated && e->tx_wire > 3 * e->rx_wire)
		sim_fail(e->w, "server sent %llu bytes and received %llu", e->tx_wire, e->rx_wire);
	if (stats.held > QRDMA_HS_HELD)
		sim_fail(e->w, "end %d: %u packets held", e->i, stats.held);
}

void hs_check_end(struct end *e)
{
	struct qrdma_hs_stats stats;

	if (!e->w->p.inband || !e->conn || e->w->p.vanish || e->w->p.destroy ||
	    e->w->p.close_early)
		return;
	qrdma_conn_hs_stats(e->conn, &stats);
	if (!stats.complete || stats.held)
		sim_fail(e->w, "end %d: handshake not complete, or %u packets left", e->i,
			 stats.held);
	if (!e->i && e->w->p.early &&
	    stats.early != (e->w->p.early_taken ? QRDMA_EARLY_ACCEPTED : QRDMA_EARLY_REJECTED))
		sim_fail(e->w, "0-RTT: %u", stats.early);
}
