// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of net/qrdma/core/sendq.c: chunks, tail room, ranges lost and acknowledged, against a
 * model of what the peer has and with an allocator that fails.
 */
#include "qtest.h"
#include "sendq.h"

#define FLIGHT	2048

static u8 pattern(u64 off)
{
	return off * 7 + (off >> 8) * 13 + (off >> 16);
}

static void fill(u8 *at, u64 off, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		at[i] = pattern(off + i);
}

/* Write pattern bytes in a chunk of @room bytes. */
static int add(struct qrdma_sendq *q, u32 len, u32 room)
{
	struct qrdma_buf *buf = qrdma_buf_alloc(room, GFP_KERNEL);
	int err;

	if (!buf)
		return -ENOMEM;
	fill(buf->data, q->end, len);
	err = qrdma_sendq_append(q, buf, 0, len, GFP_KERNEL);
	qrdma_buf_put(buf);
	return err;
}

/* Everything that must hold between two calls. */
static void check(struct q_test *test, struct qrdma_sendq *q)
{
	struct qrdma_spans *set[2] = { &q->lost, &q->acked };
	struct qrdma_frag *chunk, *last = NULL;
	u32 i, j, used = 0, frags = 0;

	Q_ASSERT_LE(test, q->una, q->nxt);
	Q_ASSERT_LE(test, q->nxt, q->end);
	list_for_each_entry(chunk, &q->chunks, node) {
		if (last)
			Q_ASSERT_EQ(test, chunk->off, last->off + last->len);
		else
			Q_ASSERT_LE(test, chunk->off, q->una);
		last = chunk;
		used += chunk->buf->truesize;
		frags++;
	}
	Q_ASSERT_EQ(test, last ? last->off + last->len : q->una, q->end);
	for (i = 0; i < 2; i++) {
		Q_ASSERT_LE(test, set[i]->nr, set[i]->room);
		for (j = 0; j < set[i]->nr; j++) {
			Q_ASSERT_LT(test, set[i]->span[j].from, set[i]->span[j].to);
			Q_ASSERT_LE(test, set[i]->span[j].to, q->nxt);
			Q_ASSERT_GE(test, set[i]->span[j].from, q->una + i);
			if (j)
				Q_ASSERT_GT(test, set[i]->span[j].from, set[i]->span[j - 1].to);
		}
		if (set[i]->span != set[i]->first)
			used += set[i]->room * sizeof(struct qrdma_span);
	}
	Q_ASSERT_EQ(test, q->mem->frags, frags);
	Q_ASSERT_EQ(test, q->mem->used, used);
}

static void put_segs(struct qrdma_seg *seg, u32 n)
{
	while (n--)
		qrdma_buf_put(seg[n].owner);
}

/* Send the next piece and check its bytes; where it begins is @*off. */
static u32 send_next(struct q_test *test, struct qrdma_sendq *q, u32 max, u64 *off)
{
	struct qrdma_seg seg[QRDMA_SEG_MAX];
	u32 i, j, n, len;
	u64 at;

	len = min_t(u64, qrdma_sendq_next(q, U64_MAX, off), max);
	if (!len)
		return 0;
	len = qrdma_sendq_take(q, *off, len, seg, ARRAY_SIZE(seg), &n);
	at = *off;
	for (i = 0; i < n; i++)
		for (j = 0; j < seg[i].len; j++, at++)
			if (seg[i].data[j] != pattern(at))
				Q_FAIL(test, "wrong byte at %llu", at);
	Q_EXPECT_EQ(test, at, *off + len);
	put_segs(seg, n);
	return len;
}

Q_TEST(sendq_chunks_and_room)
{
	struct qrdma_seg seg[8];
	struct qrdma_mem mem;
	struct qrdma_sendq q;
	u32 n, room;
	u64 off;
	u8 *at;

	qrdma_mem_init(&mem, 1U << 20);
	qrdma_sendq_init(&q, &mem);
	Q_EXPECT_EQ(test, qrdma_sendq_room(&q, &at), 0);
	Q_EXPECT_EQ(test, qrdma_sendq_next(&q, U64_MAX, &off), 0);

	Q_ASSERT_EQ(test, add(&q, 10, 100), 0);
	check(test, &q);
	room = qrdma_sendq_room(&q, &at);
	Q_EXPECT_EQ(test, room, 90);
	fill(at, 10, 20);
	qrdma_sendq_commit(&q, 20);
	Q_EXPECT_EQ(test, qrdma_sendq_unacked(&q), 30);
	Q_EXPECT_EQ(test, qrdma_sendq_unsent(&q), 30);

	/* bytes handed out stay as they are while more is written behind them */
	Q_EXPECT_EQ(test, qrdma_sendq_next(&q, U64_MAX, &off), 30);
	Q_EXPECT_EQ(test, qrdma_sendq_take(&q, 0, 30, seg, 8, &n), 30);
	Q_EXPECT_EQ(test, n, 1);
	Q_EXPECT_EQ(test, qrdma_sendq_room(&q, &at), 70);
	Q_EXPECT_PTR_EQ(test, at, seg[0].data + 30);
	fill(at, 30, 70);
	qrdma_sendq_commit(&q, 70);
	Q_EXPECT_EQ(test, qrdma_sendq_room(&q, &at), 0);
	Q_EXPECT_EQ(test, seg[0].len, 30);
	Q_EXPECT_EQ(test, qrdma_sendq_unsent(&q), 70);

	Q_ASSERT_EQ(test, add(&q, 100, 100), 0);
	Q_ASSERT_EQ(test, add(&q, 0, 100), 0);
	Q_ASSERT_EQ(test, add(&q, 100, 100), 0);
	check(test, &q);

	/* acknowledged: the queue lets go, the packet that still seals does not */
	Q_EXPECT_FALSE(test, qrdma_sendq_acked(&q, 0, 30));
	Q_EXPECT_EQ(test, qrdma_sendq_next(&q, 50, &off), 20);
	Q_EXPECT_EQ(test, off, 30);
	Q_EXPECT_EQ(test, send_next(test, &q, 1000, &off), 270);
	Q_EXPECT_EQ(test, qrdma_sendq_next(&q, U64_MAX, &off), 0);
	Q_EXPECT_EQ(test, qrdma_sendq_unsent(&q), 0);
	Q_EXPECT_TRUE(test, qrdma_sendq_acked(&q, 30, 270));
	check(test, &q);
	Q_EXPECT_EQ(test, mem.used, 0);
	Q_EXPECT_EQ(test, qrdma_sendq_unacked(&q), 0);
	Q_EXPECT_EQ(test, refcount_read(&seg[0].owner->refs), 1);
	Q_EXPECT_EQ(test, seg[0].data[29], pattern(29));
	put_segs(seg, n);
}

Q_TEST(sendq_refuses)
{
	struct qrdma_buf *buf = qrdma_buf_alloc(1000, GFP_KERNEL);
	struct qrdma_mem mem, foreign;
	struct qrdma_sendq q, other;
	u64 off;
	u8 *at;

	qrdma_mem_init(&mem, 2000);
	qrdma_mem_init(&foreign, 2000);
	qrdma_sendq_init(&q, &mem);
	qrdma_sendq_init(&other, &foreign);
	Q_EXPECT_EQ(test, qrdma_sendq_append(&q, buf, 1001, 0, GFP_KERNEL), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_sendq_append(&q, buf, 500, 501, GFP_KERNEL), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_sendq_append(&q, buf, 1, U32_MAX, GFP_KERNEL), -EINVAL);
	fill(buf->data, 500, 500);
	fill(buf->data + 500, 0, 500);
	Q_EXPECT_EQ(test, qrdma_sendq_append(&q, buf, 500, 500, GFP_KERNEL), 0);
	Q_EXPECT_EQ(test, qrdma_sendq_append(&other, buf, 0, 500, GFP_KERNEL), -EINVAL);
	if (q_fail_alloc(1))
		Q_EXPECT_EQ(test, qrdma_sendq_append(&q, buf, 0, 500, GFP_KERNEL), -ENOMEM);
	/* a second piece of the same buffer: charged once, and no room behind it */
	Q_EXPECT_EQ(test, qrdma_sendq_append(&q, buf, 0, 500, GFP_KERNEL), 0);
	Q_EXPECT_EQ(test, mem.used, buf->truesize + sizeof(struct qrdma_frag));
	Q_EXPECT_EQ(test, qrdma_sendq_room(&q, &at), 0);
	Q_EXPECT_EQ(test, add(&q, 10, 1000), -ENOBUFS);
	Q_EXPECT_EQ(test, mem.refused, 1);
	qrdma_buf_put(buf);
	Q_EXPECT_EQ(test, send_next(test, &q, 9999, &off), 1000);
	qrdma_sendq_acked(&q, 0, 1000);
	check(test, &q);
	Q_EXPECT_EQ(test, mem.used, 0);
}

Q_TEST(sendq_lost_goes_first)
{
	struct qrdma_mem mem;
	struct qrdma_sendq q;
	u64 off;

	qrdma_mem_init(&mem, 1U << 20);
	qrdma_sendq_init(&q, &mem);
	Q_ASSERT_EQ(test, add(&q, 1000, 1000), 0);
	Q_EXPECT_EQ(test, send_next(test, &q, 600, &off), 600);
	Q_EXPECT_TRUE(test, qrdma_sendq_lost(&q, 100, 100));
	Q_EXPECT_TRUE(test, qrdma_sendq_lost(&q, 300, 100));
	Q_EXPECT_TRUE(test, qrdma_sendq_lost(&q, 200, 50));
	check(test, &q);
	Q_EXPECT_EQ(test, q.lost.nr, 2);
	/* no credit, and yet */
	Q_EXPECT_EQ(test, qrdma_sendq_next(&q, 0, &off), 150);
	Q_EXPECT_EQ(test, off, 100);
	Q_EXPECT_EQ(test, send_next(test, &q, 70, &off), 70);
	Q_EXPECT_EQ(test, send_next(test, &q, 900, &off), 80);
	Q_EXPECT_EQ(test, off, 170);
	/* the first sending of a part of the rest arrives after all */
	Q_EXPECT_EQ(test, q.lost.nr, 1);
	Q_EXPECT_FALSE(test, qrdma_sendq_acked(&q, 320, 10));
	Q_EXPECT_EQ(test, q.lost.nr, 2);
	check(test, &q);
	Q_EXPECT_EQ(test, send_next(test, &q, 900, &off), 20);
	Q_EXPECT_EQ(test, off, 300);
	Q_EXPECT_EQ(test, send_next(test, &q, 900, &off), 70);
	Q_EXPECT_EQ(test, off, 330);
	Q_EXPECT_EQ(test, send_next(test, &q, 900, &off), 400);
	Q_EXPECT_EQ(test, off, 600);

	/* lost, but acknowledged before; lost, but below everything acknowledged */
	qrdma_sendq_acked(&q, 0, 300);
	Q_EXPECT_FALSE(test, qrdma_sendq_lost(&q, 320, 10));
	Q_EXPECT_FALSE(test, qrdma_sendq_lost(&q, 0, 300));
	Q_EXPECT_TRUE(test, qrdma_sendq_lost(&q, 290, 20));
	Q_EXPECT_EQ(test, send_next(test, &q, 900, &off), 10);
	Q_EXPECT_EQ(test, off, 300);
	/* what the queue never sent cannot be acknowledged or lost */
	Q_ASSERT_EQ(test, add(&q, 100, 100), 0);
	qrdma_sendq_acked(&q, 900, 5000);
	Q_EXPECT_TRUE(test, qrdma_sendq_lost(&q, 200, 5000));
	check(test, &q);
	Q_EXPECT_EQ(test, qrdma_sendq_unsent(&q), 100);

	qrdma_sendq_purge(&q);
	check(test, &q);
	Q_EXPECT_EQ(test, q.end, 1000);
	Q_EXPECT_EQ(test, qrdma_sendq_unacked(&q), 0);
	Q_EXPECT_EQ(test, qrdma_sendq_next(&q, U64_MAX, &off), 0);
	Q_EXPECT_FALSE(test, qrdma_sendq_lost(&q, 0, 1000));
	Q_EXPECT_FALSE(test, qrdma_sendq_acked(&q, 0, 1000));
	Q_EXPECT_EQ(test, mem.used, 0);
}

/* @max limits the segments, the rest comes next. */
Q_TEST(sendq_segments)
{
	struct qrdma_seg seg[QRDMA_SEG_MAX];
	struct qrdma_mem mem;
	struct qrdma_sendq q;
	u64 off;
	u32 n, i;

	qrdma_mem_init(&mem, 1U << 20);
	qrdma_sendq_init(&q, &mem);
	for (i = 0; i < 10; i++)
		Q_ASSERT_EQ(test, add(&q, 10, 10), 0);
	Q_EXPECT_EQ(test, qrdma_sendq_next(&q, U64_MAX, &off), 100);
	Q_EXPECT_EQ(test, qrdma_sendq_take(&q, 0, 35, seg, 3, &n), 30);
	Q_EXPECT_EQ(test, n, 3);
	put_segs(seg, n);
	Q_EXPECT_EQ(test, qrdma_sendq_next(&q, U64_MAX, &off), 70);
	Q_EXPECT_EQ(test, off, 30);
	Q_EXPECT_EQ(test, qrdma_sendq_take(&q, 30, 35, seg, QRDMA_SEG_MAX, &n), 35);
	Q_EXPECT_EQ(test, n, 4);
	Q_EXPECT_EQ(test, seg[3].len, 5);
	put_segs(seg, n);
	qrdma_sendq_lost(&q, 0, 65);
	Q_EXPECT_EQ(test, qrdma_sendq_take(&q, 0, 65, seg, 1, &n), 10);
	put_segs(seg, n);
	Q_EXPECT_EQ(test, qrdma_sendq_next(&q, U64_MAX, &off), 55);
	Q_EXPECT_EQ(test, off, 10);
	qrdma_sendq_purge(&q);
	Q_EXPECT_EQ(test, mem.used, 0);
}

struct packet {
	u64 off;
	u32 len;
	u32 n;
	struct qrdma_seg seg[3];
};

struct model {
	struct qrdma_sendq q;
	struct qrdma_mem mem;
	struct packet flight[FLIGHT];
	u32 nr;
	struct packet late[FLIGHT];	/* declared lost, but may arrive yet */
	u32 nlate;
	u64 seed;
	u64 total;
	u64 sent;
	bool starve;	/* most allocations of the queue fail */
};

static void model_write(struct q_test *test, struct model *m)
{
	u32 len = 1 + q_rand(&m->seed) % (q_rand(&m->seed) % 4 ? 40 : 3000);
	u32 room, old;
	u8 *at;

	len = min_t(u64, len, m->total - m->q.end);
	room = qrdma_sendq_room(&m->q, &at);
	if (room) {
		len = min(len, room);
		fill(at, m->q.end, len);
		qrdma_sendq_commit(&m->q, len);
		return;
	}
	old = m->mem.used;
	if (len && add(&m->q, len, max(len, 512U)))
		Q_ASSERT_EQ(test, m->mem.used, old);
}

static void model_send(struct q_test *test, struct model *m)
{
	struct packet *p = &m->flight[m->nr];
	u32 max = 1 + q_rand(&m->seed) % 1200;
	u64 left;

	if (m->nr == FLIGHT)
		return;
	left = qrdma_sendq_next(&m->q, U64_MAX, &p->off);
	if (!left)
		return;
	p->len = qrdma_sendq_take(&m->q, p->off, min_t(u64, left, max), p->seg, 3, &p->n);
	Q_ASSERT_GT(test, p->len, 0);
	Q_ASSERT_LE(test, p->len, max);
	m->sent += p->len;
	m->nr++;
}

/* A packet reaches the peer: its bytes must be what was written, whatever happened meanwhile. */
static void model_arrive(struct q_test *test, struct packet *p)
{
	u64 at = p->off;
	u32 i, j;

	for (i = 0; i < p->n; i++)
		for (j = 0; j < p->seg[i].len; j++, at++)
			if (p->seg[i].data[j] != pattern(at))
				Q_FAIL(test, "wrong byte at %llu", at);
	Q_ASSERT_EQ(test, at, p->off + p->len);
}

/* The verdict on one packet, most often one of the oldest. */
static void model_verdict(struct q_test *test, struct model *m)
{
	struct packet p;
	u32 i;

	if (m->nlate && q_rand(&m->seed) % 16 == 0) {
		i = q_rand(&m->seed) % m->nlate;
		p = m->late[i];
		m->late[i] = m->late[--m->nlate];
		model_arrive(test, &p);
		qrdma_sendq_acked(&m->q, p.off, p.len);
		put_segs(p.seg, p.n);
		return;
	}
	if (!m->nr)
		return;
	i = q_rand(&m->seed) % (q_rand(&m->seed) % 2 ? min(m->nr, 4U) : m->nr);
	p = m->flight[i];
	m->flight[i] = m->flight[--m->nr];
	if (q_rand(&m->seed) % 4) {
		model_arrive(test, &p);
		qrdma_sendq_acked(&m->q, p.off, p.len);
		put_segs(p.seg, p.n);
	} else {
		qrdma_sendq_lost(&m->q, p.off, p.len);
		if (m->nlate < FLIGHT)
			m->late[m->nlate++] = p;
		else
			put_segs(p.seg, p.n);
	}
}

static void model_run(struct q_test *test, struct model *m, u64 seed, bool starve)
{
	u32 steps = 0;

	memset(m, 0, sizeof(*m));
	m->seed = seed;
	m->total = 300000;
	qrdma_mem_init(&m->mem, 8U << 20);
	qrdma_sendq_init(&m->q, &m->mem);
	while (m->q.una < m->total && steps++ < 100000) {
		q_fail_alloc(starve && q_rand(&m->seed) % 8 ? 1 : 0);
		switch (q_rand(&m->seed) % 4) {
		case 0:
			model_write(test, m);
			break;
		case 1:
			model_send(test, m);
			break;
		default:
			/* let many be in flight for a while, then few */
			if (steps / 3000 % 2 || q_rand(&m->seed) % 3 == 0)
				model_verdict(test, m);
		}
		if (steps % 16 == 0)
			check(test, &m->q);
	}
	q_fail_alloc(0);
	/* not one byte was forgotten */
	Q_EXPECT_EQ(test, m->q.una, m->total);
	check(test, &m->q);
	while (m->nr--)
		put_segs(m->flight[m->nr].seg, m->flight[m->nr].n);
	while (m->nlate--)
		put_segs(m->late[m->nlate].seg, m->late[m->nlate].n);
	Q_EXPECT_EQ(test, m->mem.used, 0);
}

Q_TEST(sendq_random)
{
	struct model *m = q_zalloc(test, sizeof(*m));
	u64 seed = q_seed();
	u32 i;

	Q_ASSERT_NOT_NULL(test, m);
	for (i = 0; i < 6; i++)
		model_run(test, m, seed * 1000 + i, false);
	for (i = 0; i < 6; i++)
		model_run(test, m, seed * 2000 + i, true);
}

/* A peer that acknowledges every other byte: bounded memory, nothing lost, everything sent. */
Q_TEST(sendq_every_other_byte)
{
	u32 total = 8 * QRDMA_SENDQ_SPANS;
	struct qrdma_span *span = q_zalloc(test, total * sizeof(*span));
	u64 off, sent = 0, again = 0;
	struct qrdma_mem mem;
	struct qrdma_sendq q;
	u32 i, n, nr = 0;

	Q_ASSERT_NOT_NULL(test, span);
	qrdma_mem_init(&mem, 1U << 20);
	qrdma_sendq_init(&q, &mem);
	Q_ASSERT_EQ(test, add(&q, total, total), 0);
	while ((n = send_next(test, &q, 1, &off)))
		sent += n;
	Q_EXPECT_EQ(test, sent, total);

	for (i = 1; i < total; i += 2)
		qrdma_sendq_acked(&q, i, 1);
	check(test, &q);
	Q_EXPECT_EQ(test, q.acked.nr, QRDMA_SENDQ_SPANS);
	Q_EXPECT_LE(test, mem.used, total + 256 + 2 * QRDMA_SENDQ_SPANS * sizeof(*q.acked.span));
	for (i = 0; i < total; i += 2)
		qrdma_sendq_lost(&q, i, 1);
	check(test, &q);

	/* some arrived after all: a range that was widened over their neighbours shrinks, too */
	for (i = 0; i < 100; i += 2) {
		qrdma_sendq_acked(&q, i, 1);
		check(test, &q);
	}
	Q_EXPECT_EQ(test, q.una, 100);

	/* what was noted as acknowledged is not sent again, everything else is */
	while ((n = send_next(test, &q, 100, &off))) {
		Q_ASSERT_LT(test, nr, total);
		span[nr].from = off;
		span[nr++].to = off + n;
		again += n;
	}
	check(test, &q);
	Q_EXPECT_LE(test, again, total - QRDMA_SENDQ_SPANS - 50);
	while (nr--)
		qrdma_sendq_acked(&q, span[nr].from, span[nr].to - span[nr].from);
	for (i = 0; i < 8 && (n = send_next(test, &q, total, &off)); i++)
		qrdma_sendq_acked(&q, off, n);
	Q_EXPECT_EQ(test, q.una, total);
	check(test, &q);
	Q_EXPECT_EQ(test, mem.used, 0);
}

/* 0-RTT was refused: what was sent, lost or not, is new again. */
Q_TEST(sendq_rewinds)
{
	struct qrdma_mem mem;
	struct qrdma_sendq q;
	u64 off;

	qrdma_mem_init(&mem, 1 << 20);
	qrdma_sendq_init(&q, &mem);
	qrdma_sendq_rewind(&q);
	Q_ASSERT_EQ(test, add(&q, 500, 500), 0);
	Q_ASSERT_EQ(test, add(&q, 500, 600), 0);
	Q_EXPECT_EQ(test, send_next(test, &q, 700, &off), 700);
	qrdma_sendq_lost(&q, 100, 50);
	qrdma_sendq_rewind(&q);
	check(test, &q);
	Q_EXPECT_EQ(test, q.nxt, 0);
	Q_EXPECT_EQ(test, q.lost.nr, 0);
	Q_EXPECT_EQ(test, send_next(test, &q, 300, &off), 300);
	Q_EXPECT_EQ(test, off, 0);
	Q_EXPECT_EQ(test, send_next(test, &q, 1000, &off), 700);
	qrdma_sendq_acked(&q, 0, 1000);
	Q_EXPECT_EQ(test, mem.used, 0);

	/* bytes that a reset threw away were never there */
	qrdma_sendq_init(&q, &mem);
	Q_ASSERT_EQ(test, add(&q, 500, 500), 0);
	Q_EXPECT_EQ(test, send_next(test, &q, 200, &off), 200);
	qrdma_sendq_purge(&q);
	qrdma_sendq_rewind(&q);
	check(test, &q);
	Q_EXPECT_EQ(test, q.end, 0);
	Q_EXPECT_EQ(test, mem.used, 0);
}

Q_SUITE("qrdma-sendq",
	Q_CASE(sendq_chunks_and_room),
	Q_CASE(sendq_refuses),
	Q_CASE(sendq_lost_goes_first),
	Q_CASE(sendq_segments),
	Q_CASE(sendq_random),
	Q_CASE(sendq_every_other_byte),
	Q_CASE(sendq_rewinds));
