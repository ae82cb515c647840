/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two engines that shake hands in band: struct qpair with a listener and TLS that is none.
 *
 * Used by: test_handshake.c, test_conn_hs.c, test_longpkt.c, test_stateless.c; in userspace and
 * under KUnit. Time is virtual. What crosses the wire is noted by packet type.
 */
#ifndef QRDMA_TESTS_QHS_H
#define QRDMA_TESTS_QHS_H

#include "qpair.h"
#include "ftls.h"
#include "stateless.h"

#define QHS_LOG		256
#define QHS_PACKETS	4

/**
 * struct qhs_dgram - a datagram that was sent
 * @end: by whom
 * @len: bytes
 * @n: packets in it
 * @type: enum qrdma_pkt_type of each
 */
struct qhs_dgram {
	u8 end;
	u16 len;
	u8 n;
	u8 type[QHS_PACKETS];
};

/**
 * struct qhs - client, listener, and later the server
 * @p: engines, wire, time; the server's is NULL until a client's Initial was accepted
 * @cfg: what the engines are made from
 * @hs: the part of it that is about handshakes
 * @tp: their transport parameters
 * @cid: ids: client's, server's, what the client chooses for the server, what a Retry chooses
 * @tls: by end
 * @tpl: fields of it as a test wants them, applied when the end is made
 * @retry_slot: what the tag of a Retry is made with
 * @retry: the listener asks for a token first
 * @token: what a Retry hands out; it names the id that it answers to
 * @log: what was sent, oldest first
 * @nlog: datagrams, more than QHS_LOG are not noted
 * @drop: bit i: the ith datagram sent, counted from 0, is lost
 * @ev: all event bits seen, by end
 * @wire: the datagram on its way
 */
struct qhs {
	struct qpair p;
	struct qrdma_conn_config cfg[2];
	struct qrdma_hs_config hs[2];
	struct qrdma_tparams tp[2];
	struct qrdma_cid cid[4];
	struct ftls tls[2];
	struct {
		u32 hello;
		u32 cert;
		u32 ticket;
		bool early;
		u8 alert;
	} tpl[2];
	struct qrdma_slot *retry_slot;
	bool retry;
	u8 token[1 + QRDMA_CID_MAX];
	struct qhs_dgram log[QHS_LOG];
	u32 nlog;
	u64 drop;
	u32 ev[2];
	u8 wire[2048];
};

enum { QHS_CLIENT, QHS_SERVER, QHS_CHOSEN, QHS_RETRY };

static inline void qhs_cid(struct qrdma_cid *cid, const char *text)
{
	cid->len = 8;
	memcpy(cid->data, text, 8);
}

static inline struct qhs *qhs_new(struct q_test *test)
{
	struct qhs *h = kzalloc(sizeof(*h), GFP_KERNEL);
	int i;

	Q_ASSERT_NOT_NULL(test, h);
	h->p.now = QPAIR_START;
	h->p.delay = 10 * NSEC_PER_USEC;
	qhs_cid(&h->cid[QHS_CLIENT], "clientid");
	qhs_cid(&h->cid[QHS_SERVER], "serverid");
	qhs_cid(&h->cid[QHS_CHOSEN], "chosenid");
	qhs_cid(&h->cid[QHS_RETRY], "retryid!");
	for (i = 0; i < 2; i++) {
		qpair_tparams(&h->tp[i]);
		qpair_config(&h->cfg[i], i, &h->tp[i], NULL);
		h->cfg[i].scid = &h->cid[i];
		h->cfg[i].dcid = &h->cid[i ? QHS_CLIENT : QHS_CHOSEN];
		h->cfg[i].hs = &h->hs[i];
		h->tpl[i].hello = 280;
		h->tpl[i].cert = 700;
	}
	Q_ASSERT_EQ(test, ftls_slot(FTLS_RETRY_SECRET, true, NULL, &h->retry_slot), 0);
	h->hs[0].retry = h->retry_slot;
	return h;
}

static inline void qhs_free(struct qhs *h)
{
	qpair_free(&h->p);
	null_aead.slot_put(h->retry_slot);
	kfree(h);
}

static inline int qhs_make(struct qhs *h, int end)
{
	struct ftls *f = &h->tls[end];
	int err = qrdma_conn_create(&h->cfg[end], h->p.now, &h->p.conn[end], GFP_KERNEL);

	if (err)
		return err;
	ftls_init(f, h->p.conn[end], end);
	f->hello = h->tpl[end].hello;
	f->cert = h->tpl[end].cert;
	f->ticket = h->tpl[end].ticket;
	f->early = h->tpl[end].early;
	f->alert = h->tpl[end].alert;
	ftls_start(f);
	return f->err;
}

/* Note a datagram by the types of its packets. */
static inline void qhs_note(struct qhs *h, int end, const u8 *data, u32 len)
{
	struct qhs_dgram *d = &h->log[h->nlog];
	struct qrdma_hdr hdr;
	u32 left = len;

	if (h->nlog++ >= QHS_LOG)
		return;
	d->end = end;
	d->len = len;
	for (d->n = 0; left && d->n < QHS_PACKETS; data += hdr.len, left -= hdr.len) {
		if (qrdma_hdr_parse(&hdr, data, left) != QRDMA_HDR_OK)
			break;
		d->type[d->n++] = hdr.type;
	}
}

/* How many packets of a type did an end send? */
static inline u32 qhs_count(const struct qhs *h, int end, u8 type)
{
	u32 i, k, n = 0;

	for (i = 0; i < min_t(u32, h->nlog, QHS_LOG); i++)
		for (k = 0; h->log[i].end == end && k < h->log[i].n; k++)
			n += h->log[i].type[k] == type;
	return n;
}

/* Events of an end, until nothing more follows from them. Return: all of them. */
static inline u32 qhs_react(struct qhs *h, int end, u32 ev)
{
	struct qrdma_conn *conn = h->p.conn[end];
	struct qrdma_rx rx = {};
	enum qrdma_rx_verdict v;
	u32 all = ev, more = ev;

	while (more & (QRDMA_EV_CRYPTO | QRDMA_EV_INITIAL_KEYS | QRDMA_EV_HELD)) {
		ftls_events(&h->tls[end], more, h->p.now);
		more = qrdma_conn_events(conn, h->p.now);
		if (!(more & QRDMA_EV_HELD) || !qrdma_conn_held(conn, &rx)) {
			all |= more;
			continue;
		}
		while ((v = qrdma_conn_rx_begin(conn, &rx, h->p.now)) != QRDMA_RX_DONE) {
			if (v == QRDMA_RX_OPEN)
				more |= qrdma_conn_rx_finish(conn, &rx, rx.aead->open(&rx.op),
							     h->p.now);
		}
		qrdma_buf_put(rx.buf);
		memset(&rx, 0, sizeof(rx));
		all |= more;
	}
	h->ev[end] |= all;
	h->p.ev[end] |= all;
	return all;
}

static inline u32 qhs_rx(struct qhs *h, int end, const u8 *data, u32 len)
{
	u32 ev = qpair_rx(h->p.conn[end], data, len, h->p.now, NULL);

	return qhs_react(h, end, ev | qrdma_conn_events(h->p.conn[end], h->p.now));
}

/* The listener's answer without a connection. */
static inline void qhs_answer(struct qhs *h, struct qrdma_tx *tx, bool seal)
{
	if (seal) {
		tx->aead->seal(&tx->op);
		if (tx->op.pn_len)
			qrdma_tx_protect(tx);
		else
			qrdma_stateless_retry_end(tx);
	}
	qrdma_tx_release(tx);
	qhs_note(h, 1, tx->data, tx->len);
	h->p.now += h->p.delay;
	qhs_rx(h, 0, tx->data, tx->len);
}

/* A datagram reached the listener: what to make of it. */
static inline void qhs_listen(struct qhs *h, const u8 *data, u32 len)
{
	static struct qrdma_cid odcid, retry;
	static struct qrdma_cid peer;
	struct qrdma_hdr hdr;
	enum qrdma_first first = qrdma_stateless_look(data, len, h->cfg[1].max_datagram,
						&hdr);
	u8 answer[256];

	h->p.tx.data = answer;
	h->p.tx.cap = sizeof(answer);
	if (first == QRDMA_FIRST_VERSION && qrdma_stateless_version_neg(&h->p.tx, &hdr, 5) > 0)
		qhs_answer(h, &h->p.tx, false);
	if (first != QRDMA_FIRST_INITIAL)
		return;
	if (h->retry && !hdr.token_len) {
		h->token[0] = hdr.dcid_len;
		memcpy(h->token + 1, hdr.dcid, hdr.dcid_len);
		if (!qrdma_stateless_retry(&h->p.tx, &null_aead, h->retry_slot, &hdr,
					   &h->cid[QHS_RETRY], h->token, 1 + hdr.dcid_len, 3))
			qhs_answer(h, &h->p.tx, true);
		return;
	}
	/* It has to be authentic (RFC 9000 s8.1.4): here, to be the one that was given. */
	if (h->retry && (hdr.token_len != 1U + h->token[0] ||
			 memcmp(hdr.token, h->token, hdr.token_len)))
		return;
	peer.len = hdr.scid_len;
	memcpy(peer.data, hdr.scid, hdr.scid_len);
	odcid.len = hdr.dcid_len;
	memcpy(odcid.data, hdr.dcid, hdr.dcid_len);
	h->cfg[1].dcid = &peer;
	h->hs[1].odcid = &odcid;
	if (h->retry) {
		retry = odcid;
		odcid.len = hdr.token[0];
		memcpy(odcid.data, hdr.token + 1, odcid.len);
		h->hs[1].retry_scid = &retry;
		h->hs[1].validated = true;
	}
	if (!qhs_make(h, 1))
		qhs_rx(h, 1, data, len);
}

/* Let one end send all it has now. Return: datagrams. */
static inline u32 qhs_flush(struct qhs *h, int end)
{
	u32 n = 0, i;
	int len;

	while (h->p.conn[end] && n < 1000 && (len = qpair_build(&h->p, end)) > 0) {
		memcpy(h->wire, h->p.wire, len);
		i = h->nlog;
		qhs_note(h, end, h->wire, len);
		n++;
		h->p.sent[end]++;
		if (i < 64 && h->drop >> i & 1)
			continue;
		h->p.now += h->p.delay;
		if (h->p.conn[!end])
			qhs_rx(h, !end, h->wire, len);
		else
			qhs_listen(h, h->wire, len);
	}
	return n;
}

/* Until neither end has anything to send now. */
static inline void qhs_settle(struct qhs *h)
{
	while (qhs_flush(h, 0) + qhs_flush(h, 1))
		qpair_keys(&h->p);
	qpair_keys(&h->p);
}

/* Time goes on to the next deadline. Return: false: there is none before @until. */
static inline bool qhs_step(struct qhs *h, u64 until)
{
	u64 at = qrdma_conn_deadline(h->p.conn[0]);
	int i;

	if (h->p.conn[1])
		at = min(at, qrdma_conn_deadline(h->p.conn[1]));
	if (at > until)
		return false;
	h->p.now = max(h->p.now, at);
	for (i = 0; i < 2; i++) {
		if (h->p.conn[i])
			qhs_react(h, i, qrdma_conn_timeout(h->p.conn[i], h->p.now));
	}
	qhs_settle(h);
	return true;
}

static inline void qhs_run(struct qhs *h, u64 ns)
{
	u64 until = h->p.now + ns;
	u32 steps = 0;

	qhs_settle(h);
	while (steps++ < 10000 && qhs_step(h, until))
		;
	h->p.now = max(h->p.now, until);
}

/* Both are made and shake hands; fails the test when they do not. */
static inline void qhs_connect(struct q_test *test, struct qhs *h)
{
	Q_ASSERT_EQ(test, qhs_make(h, 0), 0);
	qhs_run(h, NSEC_PER_SEC);
	Q_ASSERT_NOT_NULL(test, h->p.conn[1]);
	Q_EXPECT_EQ(test, h->tls[0].err, 0);
	Q_EXPECT_EQ(test, h->tls[1].err, 0);
	Q_ASSERT_TRUE(test, h->tls[0].done && h->tls[1].done);
}

static inline u64 qhs_error(const struct qhs *h, int end, int *err)
{
	struct qrdma_conn_error e;

	qrdma_conn_error(h->p.conn[end], &e);
	if (err)
		*err = e.err;
	return e.closed ? e.code : U64_MAX;
}

#endif /* QRDMA_TESTS_QHS_H */
