// SPDX-License-Identifier: GPL-2.0
/*
 * A handshake in band: two engines and a TLS that is none, a wire that the input commands, and
 * somebody who knows all keys and puts packets of his own between theirs.
 *
 * Whatever comes: a server stays within three times what it received until the client is validated,
 * what waits for keys stays within its bound, datagrams fit the path and numbers rise in each space,
 * whoever waits has a deadline, and nothing is left behind.
 */
#include "qhs.h"
#include "conn_state.h"

#define FUZZ_STEPS	1000
#define FUZZ_QUEUE	8

#define CHECK(c) do {							\
	if (!(c))							\
		shim_die("broken: " #c, __FILE__, __LINE__);		\
} while (0)

/**
 * struct fuzz_dgram - a datagram on its way
 * @to: end that it goes to
 * @len: bytes, 0: none
 * @data: the bytes
 */
struct fuzz_dgram {
	u8 to;
	u32 len;
	u8 data[2048];
};

/**
 * struct fuzz - a run
 * @in: bytes not used yet
 * @h: the two ends
 * @queue: on their way
 * @pn: number of the next packet that is put in, by receiver and space
 * @last: number of the last packet built plus one, by end and space
 * @rx: bytes that the server was given
 * @tx: bytes that it sent
 */
struct fuzz {
	struct qrdma_cursor in;
	struct qhs *h;
	struct fuzz_dgram queue[FUZZ_QUEUE];
	u64 pn[2][QRDMA_SPACES];
	u64 last[2][QRDMA_SPACES];
	u64 rx;
	u64 tx;
};

static struct q_test fuzz_test;

static u8 fuzz_u8(struct fuzz *f)
{
	u8 v = 0;

	qrdma_cursor_u8(&f->in, &v);
	return v;
}

static u32 fuzz_u16(struct fuzz *f)
{
	return fuzz_u8(f) << 8 | fuzz_u8(f);
}

static u8 fuzz_space(u8 level)
{
	return level == QRDMA_ENC_INITIAL ? QRDMA_SPACE_INITIAL :
	       level == QRDMA_ENC_HANDSHAKE ? QRDMA_SPACE_HANDSHAKE : QRDMA_SPACE_APP;
}

static void fuzz_check(struct fuzz *f)
{
	struct qrdma_hs_stats stats;
	struct qrdma_conn_error e;
	int i;

	for (i = 0; i < 2; i++) {
		const struct qrdma_conn *conn = f->h->p.conn[i];

		if (!conn)
			continue;
		qrdma_conn_hs_stats(conn, &stats);
		qrdma_conn_error(conn, &e);
		CHECK(stats.held <= QRDMA_HS_HELD);
		CHECK(stats.confirmed <= stats.complete);
		CHECK(e.closed == (conn->phase != QRDMA_CONN_OPEN));
		CHECK(conn->phase == QRDMA_CONN_DEAD || qrdma_conn_deadline(conn) != QRDMA_NEVER);
		CHECK(conn->hs->crypto.rx_mem.used <= conn->hs->crypto.rx_mem.cap);
		CHECK(conn->streams.rx_mem.used <= conn->streams.rx_mem.cap);
		CHECK(conn->streams.tx_flow.sent <= conn->streams.tx_flow.max);
		CHECK(conn->path.nr_cids >= 1 && conn->path.nr_cids <= conn->path.cids_max);
		if (i && !stats.validated)
			CHECK(f->tx <= 3 * f->rx);
	}
}

static void fuzz_number(struct fuzz *f, int end, u8 first, u64 pn)
{
	u8 type = first >> 4 & 3, space = QRDMA_SPACE_APP;

	if (first & QRDMA_HDR_LONG && type != QRDMA_PKT_0RTT)
		space = type == QRDMA_PKT_INITIAL ? QRDMA_SPACE_INITIAL : QRDMA_SPACE_HANDSHAKE;
	CHECK(pn >= f->last[end][space]);
	f->last[end][space] = pn + 1;
}

/* An end builds a datagram; it waits in the queue, or is lost where that is full. */
static bool fuzz_build(struct fuzz *f, int end)
{
	struct qrdma_conn *conn = f->h->p.conn[end];
	struct qrdma_tx *tx = &f->h->p.tx;
	u8 wire[2048];
	int len;
	u32 i;

	if (!conn)
		return false;
	tx->data = wire;
	tx->cap = sizeof(wire);
	len = qrdma_packer_build(conn, tx, f->h->p.now);
	if (len <= 0)
		return false;
	CHECK(len == tx->len && len <= conn->path.max_datagram);
	for (i = 0; i < tx->parts; i++)
		fuzz_number(f, end, wire[tx->part[i].off], tx->part[i].pn);
	fuzz_number(f, end, *tx->op.pkt, tx->op.pn);
	CHECK(!qpair_seal(tx));
	if (end)
		f->tx += len;
	for (i = 0; i < FUZZ_QUEUE && f->queue[i].len; i++)
		;
	if (i == FUZZ_QUEUE)
		return true;
	f->queue[i].to = !end;
	f->queue[i].len = len;
	memcpy(f->queue[i].data, wire, len);
	return true;
}

static void fuzz_deliver(struct fuzz *f, int to, const u8 *data, u32 len)
{
	struct qhs *h = f->h;

	if (to)
		f->rx += len;
	if (h->p.conn[to])
		qhs_rx(h, to, data, len);
	else
		qhs_listen(h, data, len);
	/* a Retry is not the connection's */
	if (to && !h->p.conn[to])
		f->rx = 0;
}

/* One of the queue arrives: once, twice, broken, cut, or not at all. */
static void fuzz_arrive(struct fuzz *f, u8 how)
{
	struct fuzz_dgram *d = &f->queue[how % FUZZ_QUEUE];
	u32 len = d->len;

	if (!len)
		return;
	switch (how >> 3 & 7) {
	case 0:
		d->data[fuzz_u16(f) % len] ^= 1 + fuzz_u8(f);
		break;
	case 1:
		len = 1 + fuzz_u16(f) % len;
		break;
	case 2:
		d->len = 0;
		return;
	case 3:
		fuzz_deliver(f, d->to, d->data, len);
		return;
	}
	d->len = 0;
	fuzz_deliver(f, d->to, d->data, len);
}

/* A frame with fields that may make sense; most of them, where they may stand. */
static void fuzz_frame(struct fuzz *f, struct qrdma_writer *w)
{
	static u8 bytes[2048];
	struct qrdma_frame fr = { .type = fuzz_u8(f) % 0x20 };
	u32 len = fuzz_u16(f) % 1000, off = fuzz_u16(f);
	struct qrdma_range range;
	const u8 *raw;

	switch (fr.type) {
	case QRDMA_FRAME_ACK:
		range.hi = off % 32;
		range.lo = range.hi - min_t(u64, range.hi, len % 8);
		qrdma_ack_encode(w, &(struct qrdma_ack){ .delay = len }, &range, 1);
		return;
	case QRDMA_FRAME_CRYPTO:
		fr.crypto.off = off % 20000;
		fr.crypto.len = len;
		fr.crypto.data = bytes;
		break;
	case QRDMA_FRAME_NEW_TOKEN:
		fr.token.len = len;
		fr.token.data = bytes;
		break;
	case QRDMA_FRAME_STREAM:
		fr.type |= QRDMA_STREAM_LEN;
		fr.stream.id = off % 4;
		fr.stream.off = off % 3000;
		fr.stream.len = len;
		fr.stream.data = bytes;
		break;
	case QRDMA_FRAME_CLOSE:
		if (len % 4)
			return;
		fr.close.code = off;
		break;
	case QRDMA_FRAME_PING:
	case QRDMA_FRAME_HANDSHAKE_DONE:
		break;
	default:
		len = min_t(u32, len % 64, qrdma_cursor_left(&f->in));
		if (qrdma_cursor_bytes(&f->in, len, &raw))
			qrdma_writer_bytes(w, raw, len);
		return;
	}
	qrdma_frame_encode(w, &fr);
}

/* Somebody who knows the keys sends a packet to @to. */
static void fuzz_inject(struct fuzz *f, int to, u8 level)
{
	static u8 wire[2048], payload[1100];
	struct qrdma_conn *conn = f->h->p.conn[to];
	u8 space = fuzz_space(level), odd = fuzz_u8(f);
	struct qrdma_hdr hdr = { .pn_len = 4 };
	struct qrdma_aead_op op = { .pkt = wire };
	u8 mask[QRDMA_HP_MASK_LEN];
	const struct qrdma_cid *cid = level == QRDMA_ENC_INITIAL ?
				      qrdma_conn_initial_cid(conn) : NULL;
	struct qrdma_writer w, p;
	u32 n = 1 + odd % 4, len;

	if (ftls_slot(level, !to, cid, &op.slot))
		return;
	qrdma_writer_init(&p, payload, sizeof(payload));
	while (n--)
		fuzz_frame(f, &p);
	if (odd & 16)
		qrdma_writer_zero(&p, qrdma_writer_room(&p));
	len = max_t(u32, p.pos - payload, odd & 32 ? 0 : 1);
	f->pn[to][space] += 1 + (odd >> 6);
	hdr.pn = f->pn[to][space] + 50;
	hdr.type = level == QRDMA_ENC_INITIAL ? QRDMA_PKT_INITIAL :
		   level == QRDMA_ENC_EARLY ? QRDMA_PKT_0RTT : QRDMA_PKT_HANDSHAKE;
	hdr.dcid = f->h->cid[to].data;
	hdr.dcid_len = 8;
	hdr.scid = f->h->cid[!to].data;
	hdr.scid_len = 8;
	qrdma_writer_init(&w, wire, sizeof(wire));
	if (level == QRDMA_ENC_APP) {
		qrdma_hdr_build_short(&w, &f->h->cid[to], 0, hdr.pn, 4);
		hdr.pn_off = 9;
	} else {
		qrdma_hdr_build_long(&w, &hdr);
		qrdma_hdr_set_length(&hdr, wire, len + QRDMA_TAG_LEN);
	}
	op.pn = hdr.pn;
	op.hdr_len = w.pos - wire;
	op.payload_len = len;
	op.seg[0].data = payload;
	op.seg[0].len = len;
	op.nseg = 1;
	null_seal_now(&op);
	null_aead.hp_mask(op.slot, wire + hdr.pn_off + 4, mask);
	qrdma_hdr_protect(wire, hdr.pn_off, 4, mask);
	null_aead.slot_put(op.slot);
	len += op.hdr_len + QRDMA_TAG_LEN;
	/* a datagram of its own, large enough for an Initial */
	if (level == QRDMA_ENC_INITIAL && len < QPAIR_DATAGRAM) {
		memset(wire + len, 0, QPAIR_DATAGRAM - len);
		len = QPAIR_DATAGRAM;
	}
	fuzz_deliver(f, to, wire, len);
}

static void fuzz_raw(struct fuzz *f, int to)
{
	u32 len = min_t(u32, fuzz_u8(f), qrdma_cursor_left(&f->in));
	const u8 *raw;
	u8 bytes[QPAIR_DATAGRAM] = {};

	if (!len || !qrdma_cursor_bytes(&f->in, len, &raw))
		return;
	memcpy(bytes, raw, len);
	if (bytes[0] & 1 && len > 23) {
		bytes[0] |= 0xc0;
		qrdma_store_be32(bytes + 1, bytes[4] & 1);
		bytes[5] = 8;
		memcpy(bytes + 6, f->h->cid[to].data, 8);
		bytes[14] = 8;
		memcpy(bytes + 15, f->h->cid[bytes[15] % 4].data, 8);
	}
	fuzz_deliver(f, to, bytes, bytes[0] & 2 ? sizeof(bytes) : len);
}

static void fuzz_time(struct fuzz *f)
{
	struct qhs *h = f->h;
	u64 at = QRDMA_NEVER;
	int i;

	for (i = 0; i < 2; i++) {
		if (h->p.conn[i])
			at = min(at, qrdma_conn_deadline(h->p.conn[i]));
	}
	if (at != QRDMA_NEVER)
		h->p.now = max(h->p.now, at);
	for (i = 0; i < 2; i++) {
		if (h->p.conn[i])
			qhs_react(h, i, qrdma_conn_timeout(h->p.conn[i], h->p.now));
	}
}

/* What applications, and owners of handshakes who do not keep to the order, may call. */
static void fuzz_call(struct fuzz *f, int end)
{
	struct qrdma_conn *conn = f->h->p.conn[end];
	u8 what = fuzz_u8(f), level = what >> 4 & 3, buf[600] = {};

	switch (what & 15) {
	case 0:
		qpair_write(conn, buf, fuzz_u16(f) % sizeof(buf));
		break;
	case 1:
		qpair_read(conn, buf, sizeof(buf));
		break;
	case 2:
		qrdma_conn_finish(conn, 0);
		break;
	case 3:
		qrdma_conn_give_token(conn, buf, 1 + what);
		break;
	case 4:
		qrdma_conn_key_update(conn);
		break;
	case 5:
		qrdma_conn_crypto_write(conn, level, buf, fuzz_u16(f) % sizeof(buf));
		break;
	case 6:
		ftls_install(conn, level, end, what >> 6 & 1);
		break;
	case 7:
		qrdma_conn_peer_tparams(conn, buf, what % 2, f->h->p.now);
		break;
	case 8:
		qrdma_conn_early_verdict(conn, what >> 7, f->h->p.now);
		break;
	case 9:
		qrdma_conn_handshake_complete(conn, f->h->p.now);
		break;
	case 10:
		qrdma_conn_set_path(conn, 512 + fuzz_u16(f) % 1500, f->h->p.now);
		break;
	case 11:
		qrdma_conn_close(conn, what, what >> 7, f->h->p.now);
		break;
	case 12:
		qrdma_conn_kick(conn, f->h->p.now);
		break;
	case 13:
		if (what >> 4 == 15)
			qrdma_conn_abort(conn);
		break;
	default:
		qrdma_conn_ping(conn);
	}
	qhs_react(f->h, end, qrdma_conn_events(conn, f->h->p.now));
}

static void fuzz_step(struct fuzz *f)
{
	u8 what = fuzz_u8(f), end = what & 1;

	switch (what >> 1 & 7) {
	case 0:
	case 1:
		fuzz_build(f, end);
		break;
	case 2:
	case 3:
		fuzz_arrive(f, fuzz_u8(f));
		break;
	case 4:
		fuzz_time(f);
		break;
	case 5:
		if (f->h->p.conn[end])
			fuzz_inject(f, end, what >> 4 & 3);
		break;
	case 6:
		fuzz_raw(f, end);
		break;
	default:
		if (f->h->p.conn[end])
			fuzz_call(f, end);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct fuzz f;
	long live = shim_mem.live;
	u32 steps = 0, spins;
	u8 flags;
	int i;

	memset(&f, 0, sizeof(f));
	memset(&fuzz_test, 0, sizeof(fuzz_test));
	if (setjmp(fuzz_test.end))
		shim_die("no two ends", __FILE__, __LINE__);
	qrdma_cursor_init(&f.in, data, size);
	f.h = qhs_new(&fuzz_test);
	flags = fuzz_u8(&f);
	f.h->retry = flags & 1;
	if (flags & 2) {
		f.h->hs[0].remembered = &f.h->tp[1];
		f.h->tpl[0].early = true;
	}
	f.h->tpl[1].early = flags & 4;
	f.h->tpl[1].cert = (flags >> 3 & 7) * 1000;
	f.h->tpl[1].ticket = (flags >> 6) * 500;
	if (qhs_make(f.h, 0))
		shim_die("no client", __FILE__, __LINE__);
	while (qrdma_cursor_left(&f.in) && steps++ < FUZZ_STEPS) {
		fuzz_step(&f);
		fuzz_check(&f);
	}
	/* it comes to an end, and the engine does not send for ever */
	for (i = 0; i < 2; i++) {
		for (spins = 0; fuzz_build(&f, i); spins++)
			CHECK(spins < 10000);
	}
	qhs_free(f.h);
	CHECK(shim_mem.live == live);
	return 0;
}
