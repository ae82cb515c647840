/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections under test: two engines joined by a perfect wire (struct qpair), and one engine
 * against a peer whose packets are written by hand (struct qpeer), for what no honest peer sends.
 *
 * Used by: test_conn*.c, test_packer.c, in userspace and under KUnit. Time is virtual.
 */
#ifndef QRDMA_TESTS_QPAIR_H
#define QRDMA_TESTS_QPAIR_H

#include "qtest.h"
#include "nullaead.h"
#include "conn.h"
#include "conn_hs.h"
#include "conn_state.h"
#include "frame.h"
#include "packer.h"

#define QPAIR_DATAGRAM	1200
#define QPAIR_CIPHER	QRDMA_CIPHER_AES_128_GCM
#define QPAIR_START	(5ULL * NSEC_PER_SEC)

/* two traffic secrets: index 0 is sealed with by the client */
static const u8 qpair_secret[2][32] = { "client to server", "server to client" };

/* Transport parameters that most tests want. */
static inline void qpair_tparams(struct qrdma_tparams *tp)
{
	qrdma_tparams_init(tp);
	tp->initial_max_data = 256 * 1024;
	tp->initial_max_stream_data_bidi_local = 256 * 1024;
	tp->initial_max_stream_data_bidi_remote = 256 * 1024;
	tp->initial_max_streams_bidi = 1;
	tp->max_idle_timeout = 30000;
	tp->max_ack_delay = 1;
}

static inline void qpair_config(struct qrdma_conn_config *cfg, bool server,
				const struct qrdma_tparams *local,
				const struct qrdma_tparams *remote)
{
	static const struct qrdma_cid cid[2] = {
		{ .len = 8, .data = "clientid" }, { .len = 8, .data = "serverid" }
	};

	memset(cfg, 0, sizeof(*cfg));
	cfg->aead = &null_aead;
	cfg->is_server = server;
	cfg->scid = &cid[server];
	cfg->dcid = &cid[!server];
	cfg->local = local;
	cfg->remote = remote;
	cfg->max_datagram = QPAIR_DATAGRAM;
	cfg->initial_rtt = NSEC_PER_MSEC;
	cfg->rx_mem_max = 1024 * 1024;
	cfg->tx_mem_max = 1024 * 1024;
	cfg->random[0] = 1 + server;
}

/* The first key of one direction into a connection. */
static inline int qpair_install(struct qrdma_conn *conn, bool send, const u8 *secret)
{
	struct qrdma_slot *cur;
	int err;

	err = null_aead.slot_new(QPAIR_CIPHER, secret, 32, &cur);
	if (err)
		return err;
	err = qrdma_conn_install_key(conn, send, QPAIR_CIPHER, cur);
	if (err)
		null_aead.slot_put(cur);
	return err;
}

/* What the socket layer does after QRDMA_EV_NEED_KEY. */
static inline void qpair_derive(struct qrdma_conn *conn)
{
	struct qrdma_slot *from, *next;
	int send;

	for (send = 0; send < 2; send++) {
		from = qrdma_conn_next_keys(conn, send);
		if (!from)
			continue;
		if (!null_aead.slot_next(from, &next) &&
		    qrdma_conn_install_next(conn, send, from, next))
			null_aead.slot_put(next);
		null_aead.slot_put(from);
	}
}

/* From now on the next keys are derived ahead, as if the connection was in use. */
static inline void qpair_derive_ahead(struct qrdma_conn *conn)
{
	conn->keys_from = 0;
	qpair_derive(conn);
}

static inline struct qrdma_conn *qpair_make(struct q_test *test,
					    const struct qrdma_conn_config *cfg, u64 now)
{
	struct qrdma_conn *conn = NULL;

	Q_ASSERT_EQ(test, qrdma_conn_create(cfg, now, &conn, GFP_KERNEL), 0);
	Q_ASSERT_EQ(test, qpair_install(conn, true, qpair_secret[cfg->is_server]), 0);
	Q_ASSERT_EQ(test, qpair_install(conn, false, qpair_secret[!cfg->is_server]), 0);
	return conn;
}

/* A datagram of its own memory, as a receive buffer holds it. */
static inline struct qrdma_buf *qpair_copy(const u8 *data, u32 len)
{
	struct qrdma_buf *buf = qrdma_buf_alloc(len, GFP_KERNEL);

	if (buf)
		memcpy(buf->data, data, len);
	return buf;
}

/* Hand a datagram to a connection. Return: events; *@drop: reason of the last packet in it. */
static inline u32 qpair_rx(struct qrdma_conn *conn, const u8 *data, u32 len, u64 now,
			   enum qrdma_drop *drop)
{
	struct qrdma_buf *buf = qpair_copy(data, len);
	struct qrdma_rx rx = {};
	enum qrdma_rx_verdict v;
	u32 ev = 0;

	if (!buf)
		return 0;
	rx.buf = buf;
	rx.data = buf->data;
	rx.len = len;
	while ((v = qrdma_conn_rx_begin(conn, &rx, now)) != QRDMA_RX_DONE) {
		if (v == QRDMA_RX_DROP) {
			if (rx.drop == QRDMA_DROP_NO_KEY)
				ev |= qrdma_conn_events(conn, now);
			continue;
		}
		ev |= qrdma_conn_rx_finish(conn, &rx, rx.aead->open(&rx.op), now);
	}
	if (drop)
		*drop = rx.drop;
	qrdma_buf_put(buf);
	return ev;
}

/**
 * struct qpair - two engines and a wire that loses only what @drop names
 * @conn: the client, the server
 * @ev: events not looked at yet, by end
 * @now: virtual time, ns
 * @delay: time that passes with every datagram, ns
 * @tx: the datagram on its way
 * @wire: its bytes
 * @sent: datagrams by end
 * @drop: by end: datagrams still to be lost
 */
struct qpair {
	struct qrdma_conn *conn[2];
	u32 ev[2];
	u64 now;
	u64 delay;
	struct qrdma_tx tx;
	u8 wire[2048];
	u32 sent[2];
	u32 drop[2];
};

static inline struct qpair *qpair_new_cfg(struct q_test *test, struct qrdma_conn_config cfg[2])
{
	struct qpair *p = q_zalloc(test, sizeof(*p));
	int i;

	Q_ASSERT_NOT_NULL(test, p);
	p->now = QPAIR_START;
	p->delay = 10 * NSEC_PER_USEC;
	for (i = 0; i < 2; i++)
		p->conn[i] = qpair_make(test, &cfg[i], p->now);
	return p;
}

static inline struct qpair *qpair_new(struct q_test *test)
{
	struct qrdma_conn_config cfg[2];
	struct qrdma_tparams tp;

	qpair_tparams(&tp);
	qpair_config(&cfg[0], false, &tp, &tp);
	qpair_config(&cfg[1], true, &tp, &tp);
	return qpair_new_cfg(test, cfg);
}

static inline void qpair_free(struct qpair *p)
{
	qrdma_conn_destroy(p->conn[0]);
	qrdma_conn_destroy(p->conn[1]);
}

/* Seal all packets of a datagram. */
static inline int qpair_seal(struct qrdma_tx *tx)
{
	int err;

	do {
		err = tx->aead->seal(&tx->op);
		if (!err)
			err = qrdma_tx_protect(tx);
	} while (!err && qrdma_tx_next(tx));
	qrdma_tx_release(tx);
	return err;
}

/* Build and seal one datagram. Return: its length, or what the packer said. */
static inline int qpair_build(struct qpair *p, int end)
{
	int len;

	p->tx.data = p->wire;
	p->tx.cap = sizeof(p->wire);
	len = qrdma_packer_build(p->conn[end], &p->tx, p->now);
	if (len > 0 && qpair_seal(&p->tx))
		len = -EIO;
	return len;
}

/* Let one end send all it has now. Return: datagrams. */
static inline u32 qpair_flush(struct qpair *p, int end)
{
	u32 n = 0;
	int len;

	while (n < 10000 && (len = qpair_build(p, end)) > 0) {
		n++;
		p->sent[end]++;
		if (p->drop[end]) {
			p->drop[end]--;
			continue;
		}
		p->now += p->delay;
		p->ev[!end] |= qpair_rx(p->conn[!end], p->wire, len, p->now, NULL);
	}
	return n;
}

static inline void qpair_keys(struct qpair *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (p->ev[i] & QRDMA_EV_NEED_KEY)
			qpair_derive(p->conn[i]);
		p->ev[i] &= ~QRDMA_EV_NEED_KEY;
	}
}

/* Run until neither end has anything to send now. */
static inline void qpair_settle(struct qpair *p)
{
	while (qpair_flush(p, 0) + qpair_flush(p, 1))
		qpair_keys(p);
	qpair_keys(p);
}

/* Time goes on to the next deadline. Return: false: there is none before @until. */
static inline bool qpair_step(struct qpair *p, u64 until)
{
	u64 at = min(qrdma_conn_deadline(p->conn[0]), qrdma_conn_deadline(p->conn[1]));
	int i;

	if (at > until)
		return false;
	p->now = max(p->now, at);
	for (i = 0; i < 2; i++)
		p->ev[i] |= qrdma_conn_timeout(p->conn[i], p->now);
	qpair_settle(p);
	return true;
}

/* Run for some time. */
static inline void qpair_run(struct qpair *p, u64 ns)
{
	u64 until = p->now + ns;
	u32 steps = 0;

	qpair_settle(p);
	while (steps++ < 100000 && qpair_step(p, until))
		;
	p->now = max(p->now, until);
}

/* Write bytes, copied into a buffer of their own. */
static inline int qpair_write(struct qrdma_conn *conn, const void *data, u32 len)
{
	struct qrdma_buf *buf = qpair_copy(data, len);
	int err;

	if (!buf)
		return -ENOMEM;
	err = qrdma_conn_write(conn, 0, buf, 0, len);
	qrdma_buf_put(buf);
	return err;
}

/* Read up to @len bytes. Return: how many, or what qrdma_conn_peek() said. */
static inline int qpair_read(struct qrdma_conn *conn, u8 *data, u32 len)
{
	const u8 *from;
	u32 done = 0;
	int n;

	while (done < len) {
		n = qrdma_conn_peek(conn, 0, 0, &from);
		if (n <= 0)
			return done ? (int)done : n;
		n = min_t(u32, n, len - done);
		memcpy(data + done, from, n);
		qrdma_conn_consume(conn, 0, n);
		done += n;
	}
	return done;
}

#endif /* QRDMA_TESTS_QPAIR_H */
