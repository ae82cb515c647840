// SPDX-License-Identifier: GPL-2.0
/*
 * A whole connection: bytes become a sequence of actions of peer, application, time and path.
 *
 * The peer's packets verify (null AEAD), so what is in them reaches the engine. Whatever comes, the
 * engine's own packets are well formed, its numbers rise, its memory stays within the caps, the
 * window is kept, every byte that it sends is the one that was written, and nothing is left behind.
 */
#include "qpeer.h"
#include "conn_state.h"

#define FUZZ_STEPS	2000
#define FUZZ_PENDING	4

#define CHECK(c) do {							\
	if (!(c))							\
		shim_die("broken: " #c, __FILE__, __LINE__);		\
} while (0)

/**
 * struct fuzz - a run
 * @in: bytes not used yet
 * @p: peer and engine
 * @pending: packets that are being opened
 * @written: bytes that the application wrote
 * @last_pn: of the engine's last packet, plus one
 */
struct fuzz {
	struct qrdma_cursor in;
	struct qpeer *p;
	struct qrdma_rx pending[FUZZ_PENDING];
	u64 written;
	u64 last_pn;
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

/* small ones are the most interesting */
static u64 fuzz_number(struct fuzz *f)
{
	u8 kind = fuzz_u8(f);

	if (kind < 200)
		return kind % 50;
	if (kind < 240)
		return fuzz_u16(f);
	if (kind < 250)
		return (u64)fuzz_u16(f) << 16 | fuzz_u16(f);
	return QRDMA_VARINT_MAX - kind % 4;
}

/* what the application writes at an offset */
static u8 fuzz_byte(u64 off)
{
	return off * 0x9e3779b1u >> 11;
}

static void fuzz_check(struct fuzz *f)
{
	const struct qrdma_conn *conn = f->p->conn;
	const struct qrdma_streams *t = &conn->streams;
	struct qrdma_conn_stats stats;
	struct qrdma_conn_error e;

	CHECK(t->rx_mem.used <= t->rx_mem.cap);
	CHECK(t->tx_mem.used <= t->tx_mem.cap);
	CHECK(t->tx_flow.sent <= t->tx_flow.max);
	CHECK(conn->path.nr_cids >= 1 && conn->path.nr_cids <= conn->path.cids_max);
	CHECK(conn->path.nr_retires <= QRDMA_PATH_RETIRES);
	CHECK(conn->recovery.app.ring.chunks <=
	      QRDMA_SENT_MAX / QRDMA_SENT_CHUNK + 1);
	qrdma_conn_error(conn, &e);
	CHECK(e.closed == (conn->phase != QRDMA_CONN_OPEN));
	qrdma_conn_stats(conn, &stats);
	CHECK(conn->phase == QRDMA_CONN_DEAD || qrdma_conn_deadline(conn) != QRDMA_NEVER ||
	      !conn->idle_timeout);
}

/* A frame of a type that is one, with fields that may make sense. */
static void fuzz_frame(struct fuzz *f)
{
	struct qpeer *p = f->p;
	u64 type = fuzz_u8(f) % 0x32, a = fuzz_number(f), b = fuzz_number(f);
	u32 len = fuzz_u8(f);

	switch (type) {
	case QRDMA_FRAME_STREAM ... QRDMA_FRAME_STREAM_END:
		qpeer_stream(p, a % 8, b, len * (1 + fuzz_u8(f) % 8), type & 1);
		break;
	case QRDMA_FRAME_ACK:
	case QRDMA_FRAME_ACK_ECN:
		a %= 64;
		qpeer_ack(p, p->got_pn - min(p->got_pn, a + len), p->got_pn - min(p->got_pn, a), b);
		break;
	case QRDMA_FRAME_NEW_CONNECTION_ID:
		qpeer_new_cid(p, a, min(a, b), a);
		break;
	case QRDMA_FRAME_RESET_STREAM:
		qpeer_numbers(p, type, a % 8, len);
		qrdma_writer_varint(&p->w, b);
		break;
	default:
		qpeer_numbers(p, type, a, b);
		if (fuzz_u8(f) & 1)
			qrdma_writer_zero(&p->w, min_t(u32, len, 64));
	}
}

static void fuzz_raw(struct fuzz *f)
{
	u32 len = min_t(u32, fuzz_u8(f), qrdma_cursor_left(&f->in));
	const u8 *data;

	if (qrdma_cursor_bytes(&f->in, len, &data))
		qrdma_writer_bytes(&f->p->w, data, len);
}

/* An arbitrary datagram; it may begin like one of ours. */
static void fuzz_datagram(struct fuzz *f)
{
	u32 len = min_t(u32, fuzz_u8(f), qrdma_cursor_left(&f->in));
	u8 bytes[256];
	const u8 *data;

	if (!len || !qrdma_cursor_bytes(&f->in, len, &data))
		return;
	memcpy(bytes, data, len);
	if (bytes[0] & 1 && len > 9)
		memcpy(bytes + 1, f->p->server ? "serverid" : "clientid", 8);
	f->p->ev |= qpair_rx(f->p->conn, bytes, len, f->p->now, NULL);
}

/* The engine's next packet is read and checked. */
static bool fuzz_take(struct fuzz *f)
{
	struct qpeer *p = f->p;
	const struct qrdma_recovery *r = &p->conn->recovery;
	bool free_pass = p->conn->probes || r->one_more;
	u64 in_flight = r->in_flight;
	u32 i, j;
	int len;

	len = qpeer_take(p);
	CHECK(len != -EIO && len != -EMSGSIZE);
	/* the engine may have gone beyond the generations that the peer has ready */
	CHECK(len != -EBADMSG || p->conn->app.keys.tx_gen >= QPEER_GENS);
	if (len == -EKEYEXPIRED)
		CHECK(p->conn->phase != QRDMA_CONN_OPEN);
	if (len <= 0)
		return false;
	CHECK(len <= p->conn->path.max_datagram);
	CHECK(p->got_pn >= f->last_pn);
	f->last_pn = p->got_pn + 1;
	if (r->in_flight > in_flight && !free_pass)
		CHECK(r->in_flight <= qrdma_cong_window(&r->cong));
	for (i = 0; i < p->ngot; i++) {
		const struct qrdma_frame *g = &p->got[i];

		if (g->type < QRDMA_FRAME_STREAM || g->type > QRDMA_FRAME_STREAM_END)
			continue;
		CHECK(g->stream.id == 0 && g->stream.off + g->stream.len <= f->written);
		for (j = 0; j < g->stream.len; j++)
			CHECK(g->stream.data[j] == fuzz_byte(g->stream.off + j));
	}
	return true;
}

static void fuzz_write(struct fuzz *f)
{
	u32 len = fuzz_u16(f) % 5000, room = fuzz_u8(f), i;
	struct qrdma_conn *conn = f->p->conn;
	struct qrdma_buf *buf;
	u8 *at;
	int n;

	n = qrdma_conn_write_tail(conn, 0, &at);
	if (n > 0 && room & 1) {
		n = min_t(u32, n, len);
		for (i = 0; i < n; i++)
			at[i] = fuzz_byte(f->written + i);
		qrdma_conn_write_commit(conn, 0, n);
		f->written += n;
		return;
	}
	buf = qrdma_buf_alloc(len + room, GFP_KERNEL);
	if (!buf)
		return;
	for (i = 0; i < len; i++)
		buf->data[i] = fuzz_byte(f->written + i);
	if (!qrdma_conn_write(conn, 0, buf, 0, len))
		f->written += len;
	qrdma_buf_put(buf);
}

static void fuzz_read(struct fuzz *f)
{
	u32 n = fuzz_u16(f), got;
	static u8 to[4096];
	const u8 *data;
	int len;

	while ((len = qrdma_conn_peek(f->p->conn, 0, 0, &data)) > 0 && n) {
		got = min3((u32)len, n, (u32)sizeof(to));
		memcpy(to, data, got);
		qrdma_conn_consume(f->p->conn, 0, got);
		n -= got;
	}
}

/* For a while the peer is honest: what comes is acknowledged. */
static void fuzz_honest(struct fuzz *f)
{
	struct qpeer *p = f->p;
	u32 n;

	for (n = 0; n < 64; n++) {
		qrdma_conn_ping(p->conn);
		if (!fuzz_take(f))
			break;
		p->now += 100 * NSEC_PER_USEC;
		qpeer_ack(p, p->got_pn, p->got_pn, 0);
		qpeer_send(p);
	}
}

/* A packet of the peer that is opened later. */
static void fuzz_begin(struct fuzz *f)
{
	struct qrdma_rx *rx = &f->pending[fuzz_u8(f) % FUZZ_PENDING];
	u32 len;

	if (rx->buf)
		return;
	len = qpeer_seal(f->p);
	rx->buf = qpair_copy(f->p->out, len);
	if (!rx->buf)
		return;
	rx->data = rx->buf->data;
	rx->len = len;
	if (qrdma_conn_rx_begin(f->p->conn, rx, f->p->now) != QRDMA_RX_OPEN) {
		qrdma_buf_put(rx->buf);
		rx->buf = NULL;
	}
}

static void fuzz_end(struct fuzz *f, struct qrdma_rx *rx)
{
	if (!rx->buf)
		return;
	if (f->p->conn)
		f->p->ev |= qrdma_conn_rx_finish(f->p->conn, rx, null_open_now(&rx->op), f->p->now);
	else
		qrdma_rx_release(rx);
	qrdma_buf_put(rx->buf);
	rx->buf = NULL;
}

static void fuzz_app(struct fuzz *f)
{
	struct qrdma_conn *conn = f->p->conn;
	u8 what = fuzz_u8(f);

	switch (what % 10) {
	case 0:
		qrdma_conn_finish(conn, 0);
		break;
	case 1:
		qrdma_conn_reset(conn, 0, what);
		break;
	case 2:
		qrdma_conn_stop_reading(conn, 0, what);
		break;
	case 3:
		qrdma_conn_ping(conn);
		break;
	case 4:
		qrdma_conn_hold_credit(conn, what & 16);
		break;
	case 5:
		qrdma_conn_set_rx_window(conn, fuzz_number(f));
		break;
	case 6:
		qrdma_conn_key_update(conn);
		break;
	case 7:
		f->p->ev |= qrdma_conn_kick(conn, f->p->now);
		break;
	case 8:
		qrdma_conn_set_path(conn, 512 + fuzz_u16(f) % 3000, f->p->now);
		break;
	default:
		if (what > 240)
			f->p->ev |= qrdma_conn_close(conn, what, what & 1, f->p->now);
		else if (what > 230)
			qrdma_conn_abort(conn);
	}
}

static void fuzz_step(struct fuzz *f)
{
	struct qpeer *p = f->p;
	u8 op = fuzz_u8(f);
	u32 n;

	switch (op % 16) {
	case 0:
		fuzz_raw(f);
		break;
	case 1:
	case 2:
	case 3:
		fuzz_frame(f);
		break;
	case 4:
	case 5:
		qpeer_send(p);
		break;
	case 6:
		for (n = op / 16 + 1; n && fuzz_take(f); n--)
			;
		break;
	case 7:
		p->now += (u64)fuzz_u16(f) << op / 16;
		p->ev |= qrdma_conn_timeout(p->conn, p->now);
		break;
	case 8:
		qpeer_wait(p);
		break;
	case 9:
		fuzz_write(f);
		break;
	case 10:
		fuzz_read(f);
		break;
	case 11:
		fuzz_app(f);
		break;
	case 12:
		p->gen = (p->gen + (op >> 4 & 1)) % QPEER_GENS;
		p->pn += fuzz_number(f);
		p->pn -= min_t(u64, p->pn, op & 0x80 ? fuzz_number(f) : 0);
		p->pn = min_t(u64, p->pn, QRDMA_PN_MAX);
		p->first = op == 0xec ? 0x18 : 0;
		break;
	case 13:
		fuzz_begin(f);
		break;
	case 14:
		fuzz_end(f, &f->pending[op / 16 % FUZZ_PENDING]);
		break;
	default:
		if (op == 15)
			fuzz_datagram(f);
		else if (op < 64)
			shim_mem.fail_at = op / 16;
		else if (op < 96)
			fuzz_honest(f);
		else if (op < 128)
			qpair_derive(p->conn);
		else
			p->pn = p->pn ? p->pn - 1 : 0;
	}
	fuzz_check(f);
}

static struct qpeer *fuzz_make(struct fuzz *f)
{
	struct qrdma_tparams tp, peer;
	struct qrdma_conn_config cfg;
	u8 how = fuzz_u8(f);
	struct qpeer *p;

	qpair_tparams(&tp);
	if (how & 2)
		tp.max_datagram_frame_size = 1000;
	if (how & 4) {
		tp.initial_max_data = 3000;
		tp.initial_max_stream_data_bidi_local = 2000;
		tp.initial_max_stream_data_bidi_remote = 2000;
	}
	peer = tp;
	tp.initial_max_streams_bidi = how & 1;
	peer.initial_max_streams_bidi = 1;
	qpair_config(&cfg, how & 1, &tp, &peer);
	if (how & 8)
		cfg.key_packets_max = 40;
	if (how & 16)
		cfg.rx_mem_max = 30000;
	if (how & 32)
		cfg.keepalive = NSEC_PER_SEC;
	cfg.cong = how >> 6 & 1;
	p = qpeer_new_cfg(&fuzz_test, &cfg);
	if (how & 128) {
		/* not far from where packet numbers end */
		f->last_pn = QRDMA_PN_MAX - 100;
		p->conn->app.pn.next = f->last_pn;
		p->conn->recovery.app.largest_acked = f->last_pn - 1;
		p->conn->recovery.app.acked_any = true;
		p->got_pn = f->last_pn - 1;
	}
	return p;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	long live = shim_mem.live;
	struct fuzz f = {};
	u32 i;

	if (setjmp(fuzz_test.end))
		shim_die("no connection", __FILE__, __LINE__);
	qrdma_cursor_init(&f.in, data, size);
	f.p = fuzz_make(&f);
	for (i = 0; i < FUZZ_STEPS && qrdma_cursor_left(&f.in); i++)
		fuzz_step(&f);
	shim_mem.fail_at = 0;
	/* half of what is being opened ends after the connection */
	fuzz_end(&f, &f.pending[0]);
	fuzz_end(&f, &f.pending[1]);
	qpeer_free(f.p);
	f.p->conn = NULL;
	for (i = 0; i < FUZZ_PENDING; i++)
		fuzz_end(&f, &f.pending[i]);
	while (fuzz_test.nmem)
		free(fuzz_test.mem[--fuzz_test.nmem]);
	CHECK(shim_mem.live == live);
	return 0;
}
