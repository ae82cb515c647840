/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One engine against a peer whose packets are written by hand: for what no honest peer sends.
 *
 * Used by: test_conn*.c, test_packer.c and fuzz_conn.c, in userspace and under KUnit.
 */
#ifndef QRDMA_TESTS_QPEER_H
#define QRDMA_TESTS_QPEER_H

#include "qpair.h"
#include "conn_state.h"
#include "longpkt.h"

#define QPEER_FRAMES	16
#define QPEER_WIRE	4096
#define QPEER_GENS	4	/* key generations that the peer has ready */

/**
 * struct qpeer - the peer by hand and the engine that it talks to
 * @conn: the engine
 * @server: role of the engine
 * @now: virtual time, ns
 * @ev: events not looked at yet
 * @drop: why the engine dropped the last packet
 * @pn: number of the next packet of the peer
 * @gen: key generation that the peer seals with
 * @first: bits of the first byte to be flipped (reserved bits)
 * @seal: generations to seal with
 * @open: generations to open with
 * @w: payload being written
 * @payload: its bytes
 * @tx: the engine's last packet
 * @wire: its bytes
 * @got: its frames, data leads into @wire
 * @ngot: how many
 * @got_pn: its number
 * @got_gen: generation that opened it
 * @got_len: bytes of the datagram
 */
struct qpeer {
	struct qrdma_conn *conn;
	bool server;
	u64 now;
	u32 ev;
	enum qrdma_drop drop;
	u64 pn;
	u32 gen;
	u8 first;
	struct qrdma_slot *seal[QPEER_GENS];
	struct qrdma_slot *open[QPEER_GENS];
	struct qrdma_writer w;
	u8 payload[QPEER_WIRE];
	struct qrdma_tx tx;
	u8 wire[QPEER_WIRE];
	u8 out[QPEER_WIRE];
	struct qrdma_frame got[QPEER_FRAMES];
	u32 ngot;
	u64 got_pn;
	u32 got_gen;
	u32 got_len;
};

static inline void qpeer_begin(struct qpeer *p)
{
	qrdma_writer_init(&p->w, p->payload, sizeof(p->payload));
}

/* The peer's keys: true when all could be made. */
static inline bool qpeer_keys(struct qpeer *p)
{
	u32 i;

	if (null_aead.slot_new(QPAIR_CIPHER, qpair_secret[!p->server], 32, &p->seal[0]) ||
	    null_aead.slot_new(QPAIR_CIPHER, qpair_secret[p->server], 32, &p->open[0]))
		return false;
	for (i = 1; i < QPEER_GENS; i++) {
		if (null_aead.slot_next(p->seal[i - 1], &p->seal[i]) ||
		    null_aead.slot_next(p->open[i - 1], &p->open[i]))
			return false;
	}
	return true;
}

static inline struct qpeer *qpeer_new_cfg(struct q_test *test, const struct qrdma_conn_config *cfg)
{
	struct qpeer *p = q_zalloc(test, sizeof(*p));

	Q_ASSERT_NOT_NULL(test, p);
	p->server = cfg->is_server;
	p->now = QPAIR_START;
	p->conn = qpair_make(test, cfg, p->now);
	Q_ASSERT_TRUE(test, qpeer_keys(p));
	qpeer_begin(p);
	return p;
}

static inline struct qpeer *qpeer_new(struct q_test *test, bool server)
{
	struct qrdma_tparams tp, peer;
	struct qrdma_conn_config cfg;

	qpair_tparams(&tp);
	peer = tp;
	tp.initial_max_streams_bidi = server;
	qpair_config(&cfg, server, &tp, &peer);
	return qpeer_new_cfg(test, &cfg);
}

static inline void qpeer_free(struct qpeer *p)
{
	u32 i;

	qrdma_conn_destroy(p->conn);
	for (i = 0; i < QPEER_GENS; i++) {
		null_aead.slot_put(p->seal[i]);
		null_aead.slot_put(p->open[i]);
	}
}

static inline void qpeer_put(struct qpeer *p, const struct qrdma_frame *f)
{
	qrdma_frame_encode(&p->w, f);
}

static inline void qpeer_type(struct qpeer *p, u64 type)
{
	qrdma_writer_varint(&p->w, type);
}

static inline void qpeer_stream(struct qpeer *p, u64 id, u64 off, u32 len, bool fin)
{
	static const u8 zeros[QPEER_WIRE];
	struct qrdma_frame f = {
		.type = QRDMA_FRAME_STREAM | QRDMA_STREAM_LEN,
		.stream = { .id = id, .off = off, .len = len, .fin = fin, .data = zeros },
	};

	qpeer_put(p, &f);
}

static inline void qpeer_ack(struct qpeer *p, u64 lo, u64 hi, u64 delay)
{
	struct qrdma_ack ack = { .delay = delay };
	struct qrdma_range range = { .lo = lo, .hi = hi };

	qrdma_ack_encode(&p->w, &ack, &range, 1);
}

/* Frames of two plain numbers behind a type: most of the limits. */
static inline void qpeer_numbers(struct qpeer *p, u64 type, u64 a, u64 b)
{
	qrdma_writer_varint(&p->w, type);
	qrdma_writer_varint(&p->w, a);
	if (b != U64_MAX)
		qrdma_writer_varint(&p->w, b);
}

static inline void qpeer_new_cid(struct qpeer *p, u64 seq, u64 retire, u64 cid)
{
	u8 token[QRDMA_RESET_TOKEN_LEN] = { seq };

	qpeer_numbers(p, QRDMA_FRAME_NEW_CONNECTION_ID, seq, retire);
	qrdma_writer_u8(&p->w, 8);
	qrdma_writer_bytes(&p->w, &cid, 8);
	qrdma_writer_bytes(&p->w, token, sizeof(token));
}

/* Seal what was put, as packet @p->pn, into p->out. Return: bytes. */
static inline u32 qpeer_seal(struct qpeer *p)
{
	static const struct qrdma_cid cid[2] = {
		{ .len = 8, .data = "clientid" }, { .len = 8, .data = "serverid" }
	};
	u32 len = p->w.pos - p->payload;
	struct qrdma_aead_op op = { .slot = p->seal[p->gen], .pn = p->pn, .pkt = p->out };
	u8 mask[QRDMA_HP_MASK_LEN];
	struct qrdma_writer w;

	qrdma_writer_init(&w, p->out, sizeof(p->out));
	qrdma_hdr_build_short(&w, &cid[p->server], p->gen & 1 ? QRDMA_HDR_PHASE : 0, p->pn, 4);
	p->out[0] ^= p->first;
	op.hdr_len = w.pos - p->out;
	op.pn_off = op.hdr_len - 4;
	op.pn_len = 4;
	op.payload_len = len;
	if (len)
		memcpy(w.pos, p->payload, len);
	op.seg[0].data = w.pos;
	op.seg[0].len = len;
	op.nseg = 1;
	null_seal_now(&op);
	null_aead.hp_mask(op.slot, op.pkt + op.pn_off + 4, mask);
	qrdma_hdr_protect(op.pkt, op.pn_off, op.pn_len, mask);
	qpeer_begin(p);
	p->pn++;
	return op.hdr_len + len + QRDMA_TAG_LEN;
}

/* Send what was put. Return: why the engine did not use it. */
static inline enum qrdma_drop qpeer_send(struct qpeer *p)
{
	u32 len = qpeer_seal(p);

	p->ev |= qpair_rx(p->conn, p->out, len, p->now, &p->drop);
	return p->drop;
}

/* Open and decode a datagram of the engine, p->got_len bytes at p->wire. */
static inline bool qpeer_decode(struct qpeer *p)
{
	u32 where = QRDMA_FA_1RTT | (p->server ? QRDMA_FA_SERVER : QRDMA_FA_CLIENT);
	struct qrdma_aead_op op = { .pkt = p->wire };
	/* qrdma_hdr_parse() is for connection ids as long as ours: the peer's own may be shorter */
	struct qrdma_hdr hdr = {
		.pn_off	= 1 + qrdma_path_dcid(&p->conn->path)->len,
		.len	= p->got_len,
	};
	u8 mask[QRDMA_HP_MASK_LEN];
	struct qrdma_cursor c;
	int err = -EBADMSG;

	if (p->wire[0] & QRDMA_HDR_LONG ||
	    hdr.len < hdr.pn_off + QRDMA_SAMPLE_LEAST + QRDMA_TAG_LEN)
		return false;
	null_aead.hp_mask(p->open[0], qrdma_hdr_sample(&hdr, p->wire), mask);
	qrdma_hdr_unprotect(&hdr, p->wire, mask);
	op.pn = qrdma_pn_decode(p->got_pn + 1, hdr.pn, hdr.pn_len);
	op.pn_off = hdr.pn_off;
	op.hdr_len = hdr.pn_off + hdr.pn_len;
	op.payload_len = hdr.len - op.hdr_len;
	for (p->got_gen = 0; p->got_gen < QPEER_GENS; p->got_gen++) {
		op.slot = p->open[p->got_gen];
		err = null_open_now(&op);
		if (!err)
			break;
	}
	if (err)
		return false;
	p->got_pn = op.pn;
	p->ngot = 0;
	qrdma_cursor_init(&c, op.pkt + op.hdr_len, op.payload_len - QRDMA_TAG_LEN);
	while (qrdma_cursor_left(&c) && p->ngot < QPEER_FRAMES) {
		if (qrdma_frame_decode(&c, where, &p->got[p->ngot]))
			return false;
		p->ngot++;
	}
	return true;
}

/* The engine's next datagram. Return: its bytes, or what the packer said; -EBADMSG: unreadable. */
static inline int qpeer_take(struct qpeer *p)
{
	int len;

	p->tx.data = p->wire;
	p->tx.cap = sizeof(p->wire);
	len = qrdma_packer_build(p->conn, &p->tx, p->now);
	if (len <= 0)
		return len;
	p->ngot = 0;
	if (p->tx.aead->seal(&p->tx.op) || qrdma_tx_protect(&p->tx))
		len = -EIO;
	qrdma_tx_release(&p->tx);
	p->got_len = max(len, 0);
	if (len > 0 && !qpeer_decode(p))
		return -EBADMSG;
	return len;
}

/* Take all there is. Return: datagrams; the frames of the last one stay. */
static inline u32 qpeer_drain(struct qpeer *p)
{
	u32 n = 0;

	while (n < 100000 && qpeer_take(p) > 0)
		n++;
	return n;
}

/* The frame of a type in the engine's last packet, NULL: none. */
static inline struct qrdma_frame *qpeer_find(struct qpeer *p, u64 type)
{
	u32 i;

	for (i = 0; i < p->ngot; i++) {
		if (p->got[i].type == type ||
		    (type == QRDMA_FRAME_STREAM && p->got[i].type >= QRDMA_FRAME_STREAM &&
		     p->got[i].type <= QRDMA_FRAME_STREAM_END))
			return &p->got[i];
	}
	return NULL;
}

/* Time goes to the engine's deadline. */
static inline void qpeer_wait(struct qpeer *p)
{
	u64 at = qrdma_conn_deadline(p->conn);

	if (at != QRDMA_NEVER)
		p->now = max(p->now, at);
	p->ev |= qrdma_conn_timeout(p->conn, p->now);
}

/* QUIC error code that the engine ended with; U64_MAX: it lives. */
static inline u64 qpeer_error(const struct qpeer *p)
{
	struct qrdma_conn_error e;

	qrdma_conn_error(p->conn, &e);
	return e.closed ? e.code : U64_MAX;
}

#endif /* QRDMA_TESTS_QPEER_H */
