// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzer of core/stream.c and core/sendq.c: the input is a list of frames of a peer that keeps to
 * no rule, of calls of the application, and of packets being sent, acknowledged and lost, with
 * allocations that fail. Sums of credit must hold, bytes must be those that were written, and
 * nothing is left at the end.
 */
#include "env.h"
#include "cursor.h"
#include "stream.h"
#include "tparam.h"

#define CHECK(c) do {								\
	if (!(c))								\
		shim_die("does not hold: " #c, __FILE__, __LINE__);		\
} while (0)

#define FLIGHT	64
#define CAP	(64U << 10)
/* ranges that sending streams keep are not refused, but bounded */
#define TABLES	(6 * 2 * 2 * QRDMA_SENDQ_SPANS * (u32)sizeof(struct qrdma_span))

struct packet {
	u64 type;
	u64 id;
	u64 val;
	u32 len;
	bool fin;
};

static struct qrdma_streams t;
static struct packet flight[FLIGHT];
static u32 nflight;

static u8 pattern(u64 id, u64 off)
{
	return id * 31 + off * 7 + (off >> 8) * 13;
}

static void check_sendq(const struct qrdma_sendq *q)
{
	CHECK(q->una <= q->nxt && q->nxt <= q->end);
	CHECK(q->lost.nr <= q->lost.room && q->acked.nr <= q->acked.room);
	CHECK(!q->acked.nr || q->acked.span[0].from > q->una);
	CHECK(!q->lost.nr || (q->lost.span[0].from >= q->una &&
			      q->lost.span[q->lost.nr - 1].to <= q->nxt));
	CHECK(list_empty(&q->chunks) || q->end > q->una ||
	      !list_last_entry(&q->chunks, struct qrdma_frag, node)->len);
}

static void check(void)
{
	u64 sent = 0;
	u32 i, n = 0;

	for (i = 0; i < QRDMA_STREAMS_HASH; i++) {
		const struct qrdma_stream *s;

		for (s = t.hash[i]; s; s = s->hash_next) {
			CHECK(s->rx_flow.read <= s->rx_flow.high);
			CHECK(s->rx_flow.high <= s->rx_flow.max);
			CHECK(s->rx_final == U64_MAX || s->rx_flow.high <= s->rx_final);
			CHECK(s->tx_flow.sent == s->tx.nxt && s->tx.nxt <= s->tx_flow.max);
			CHECK(s->has_rx || list_empty(&s->rx.frags));
			CHECK((!s->reset && s->has_tx) || list_empty(&s->tx.chunks));
			check_sendq(&s->tx);
			sent += s->tx.nxt;
			n++;
		}
	}
	CHECK(n == t.nr);
	CHECK(sent <= t.tx_flow.sent);
	CHECK(t.rx_flow.read <= t.rx_flow.high && t.rx_flow.high <= t.rx_flow.max);
	CHECK(t.tx_flow.sent <= t.tx_flow.max && t.tx_mem.used <= CAP + TABLES);
	CHECK(t.rx_mem.used <= t.rx_mem.cap);
}

/* A frame of the peer. Return: false when the connection is over. */
static bool peer(u8 op, u64 id, u64 off, u16 len, u8 x)
{
	static const u8 types[] = {
		QRDMA_FRAME_RESET_STREAM, QRDMA_FRAME_STOP_SENDING, QRDMA_FRAME_MAX_DATA,
		QRDMA_FRAME_MAX_STREAM_DATA, QRDMA_FRAME_MAX_STREAMS_BIDI,
		QRDMA_FRAME_MAX_STREAMS_UNI, QRDMA_FRAME_DATA_BLOCKED,
		QRDMA_FRAME_STREAM_DATA_BLOCKED, QRDMA_FRAME_STREAMS_BLOCKED_BIDI,
	};
	struct qrdma_frame f = { .type = QRDMA_FRAME_STREAM };
	struct qrdma_buf *buf = NULL;
	u64 verdict = 0;
	u32 i;
	int err;

	if (op & 0x10) {
		f.type = types[x % ARRAY_SIZE(types)];
		if (f.type == QRDMA_FRAME_RESET_STREAM) {
			f.reset.id = id;
			f.reset.final_size = off;
		} else {
			f.max.id = id;
			f.max.max = off;
		}
	} else {
		shim_mem.fail_at = 0;
		buf = qrdma_buf_alloc(len + 1, GFP_KERNEL);
		buf->truesize += x * 16;
		for (i = 0; i < len; i++)
			buf->data[i] = pattern(id, off + i);
		f.stream.id = id;
		f.stream.off = off;
		f.stream.len = len;
		f.stream.fin = op & 0x20;
		f.stream.data = buf->data;
		shim_mem.fail_at = op & 0x80 ? 1 + (x & 3) : 0;
	}
	err = qrdma_streams_on_frame(&t, &f, op & 0x40 ? NULL : buf, &verdict);
	qrdma_buf_put(buf);
	CHECK(!err || err == -EPROTO || err == -ENOBUFS || err == -ENOMEM);
	CHECK((err == -EPROTO) == (verdict != 0));
	CHECK(verdict == 0 || (verdict >= QRDMA_ERR_FLOW_CONTROL_ERROR &&
			       verdict <= QRDMA_ERR_FINAL_SIZE_ERROR));
	return err != -EPROTO;
}

static void app_read(struct qrdma_stream *s, u32 len)
{
	struct qrdma_seg seg[4];
	u64 off = s->rx_flow.read;
	u32 i, j, n;

	n = qrdma_stream_peek(s, 0, seg, ARRAY_SIZE(seg));
	CHECK((n > 0) == (qrdma_stream_readable(s) > 0));
	for (i = 0; i < n; i++)
		for (j = 0; j < seg[i].len; j++, off++)
			CHECK(seg[i].data[j] == pattern(s->id, off));
	qrdma_stream_consume(&t, s, len);
}

static void app_write(struct qrdma_stream *s, u32 len, u32 room)
{
	struct qrdma_buf *buf;
	u32 i, n;
	u8 *at;

	n = qrdma_stream_room(s, &at);
	if (n) {
		n = min(n, len);
		for (i = 0; i < n; i++)
			at[i] = pattern(s->id, s->tx.end + i);
		qrdma_stream_commit(&t, s, n);
		return;
	}
	buf = qrdma_buf_alloc(len + room, GFP_KERNEL);
	if (!buf)
		return;
	for (i = 0; i < len; i++)
		buf->data[i] = pattern(s->id, s->tx.end + i);
	qrdma_stream_write(&t, s, buf, 0, len, GFP_KERNEL);
	qrdma_buf_put(buf);
}

static void app(u8 op, u64 id, u16 len, u8 x)
{
	struct qrdma_stream *s = qrdma_streams_find(&t, id);

	if (x % 16 == 8)
		qrdma_streams_open(&t, op & 0x10, GFP_KERNEL);
	else if (x % 16 == 9)
		qrdma_streams_accept(&t);
	else if (x % 16 == 10)
		qrdma_streams_set_window(&t, len);
	else if (x % 16 == 11)
		qrdma_streams_hold(&t, op & 0x10);
	/* who let go does not call any more */
	if (!s || s->released)
		return;
	switch (x % 16) {
	case 0:
	case 1:
		app_write(s, len % 4096, x * 8);
		break;
	case 2:
	case 3:
		app_read(s, len);
		break;
	case 4:
		qrdma_stream_finish(&t, s);
		break;
	case 5:
		qrdma_stream_reset(&t, s, len);
		break;
	case 6:
		qrdma_stream_stop(&t, s, len);
		break;
	case 7:
		qrdma_stream_announce(&t, s);
		break;
	case 12:
		qrdma_stream_release(&t, s, len);
		break;
	}
}

static void send(u8 op, u16 room, u8 x)
{
	struct packet *p = &flight[nflight];
	struct qrdma_stream_frame frame;
	struct qrdma_frame f;
	u64 at;
	u32 i, j;

	if (nflight == FLIGHT)
		return;
	memset(p, 0, sizeof(*p));
	if (op & 0x10) {
		if (!qrdma_streams_next_ctl(&t, room % 64, &f))
			return;
		CHECK(qrdma_frame_size(&f) <= room % 64);
		p->type = f.type;
		p->id = f.max.id;
		if (f.type != QRDMA_FRAME_RESET_STREAM && f.type != QRDMA_FRAME_STOP_SENDING)
			p->val = f.max.max;
		nflight++;
		return;
	}
	if (!qrdma_streams_next_frame(&t, room, 1 + x % QRDMA_SEG_MAX, &frame))
		return;
	at = frame.off;
	for (i = 0; i < frame.nseg; i++) {
		for (j = 0; j < frame.seg[i].len; j++, at++)
			CHECK(frame.seg[i].data[j] == pattern(frame.id, at));
		qrdma_buf_put(frame.seg[i].owner);
	}
	CHECK(at == frame.off + frame.len);
	f.type = QRDMA_FRAME_STREAM | QRDMA_STREAM_LEN;
	f.stream.id = frame.id;
	f.stream.off = frame.off;
	f.stream.len = frame.len;
	CHECK(qrdma_frame_size(&f) <= room);
	p->type = QRDMA_FRAME_STREAM;
	p->id = frame.id;
	p->val = frame.off;
	p->len = frame.len;
	p->fin = frame.fin;
	nflight++;
}

static void verdict(bool acked, u8 x)
{
	struct packet p;

	if (!nflight)
		return;
	x %= nflight;
	p = flight[x];
	/* a lost one may be acknowledged yet */
	if (acked)
		flight[x] = flight[--nflight];
	if (p.type != QRDMA_FRAME_STREAM)
		(acked ? qrdma_streams_ctl_acked : qrdma_streams_ctl_lost)(&t, p.type, p.id, p.val);
	else if (acked)
		qrdma_streams_acked(&t, p.id, p.val, p.len, p.fin);
	else
		qrdma_streams_lost(&t, p.id, p.val, p.len, p.fin);
}

int LLVMFuzzerTestOneInput(const u8 *input, size_t size);

int LLVMFuzzerTestOneInput(const u8 *input, size_t size)
{
	struct qrdma_tparams tp;
	struct qrdma_cursor c;
	bool more = true;
	u16 a, b;
	u8 op, x;

	if (!size--)
		return 0;
	memset(&tp, 0, sizeof(tp));
	tp.initial_max_data = 20000;
	tp.initial_max_stream_data_bidi_local = 8000;
	tp.initial_max_stream_data_bidi_remote = 9000;
	tp.initial_max_stream_data_uni = 10000;
	tp.initial_max_streams_bidi = 4;
	tp.initial_max_streams_uni = 2;
	CHECK(!qrdma_streams_init(&t, *input & 1, &tp, CAP, CAP));
	t.grow[QRDMA_BIDI] = *input & 2;
	qrdma_streams_set_remote(&t, &tp);
	nflight = 0;

	qrdma_cursor_init(&c, input + 1, size);
	while (more && qrdma_cursor_u8(&c, &op) && qrdma_cursor_u8(&c, &x) &&
	       qrdma_cursor_u16(&c, &a) && qrdma_cursor_u16(&c, &b)) {
		shim_mem.fail_at = op & 0x80 ? 1 + (x >> 6) : 0;
		switch (op & 7) {
		case 0:
		case 1:
			more = peer(op, a >> 12, b, a & 0xfff, x);
			break;
		case 2:
		case 3:
			app(op, a >> 12, b, x);
			break;
		case 4:
		case 5:
			send(op, b, x);
			break;
		default:
			verdict(op & 1, x);
		}
		shim_mem.fail_at = 0;
		check();
	}
	qrdma_streams_destroy(&t);
	CHECK(!t.nr && !t.rx_mem.used && !t.rx_mem.frags && !t.tx_mem.used && !t.tx_mem.frags);
	return 0;
}
