// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of net/qrdma/core/reasm.c: against an array of bytes, against floods, against an
 * allocator that fails.
 */
#include "qtest.h"
#include "reasm.h"

#define TRUESIZE	4352	/* a page and its overhead */
#define SPAN		(64U << 10)

static u32 pinned;	/* true sizes of all received buffers that are alive */

static void rx_release(struct qrdma_buf *buf)
{
	pinned -= buf->truesize;
	kfree(buf);
}

/* A received packet of @len bytes in a buffer that pins @truesize. */
static struct qrdma_buf *rx_buf(u32 len, u32 truesize)
{
	struct qrdma_buf *buf = kmalloc(sizeof(*buf) + len, GFP_KERNEL);

	if (!buf)
		return NULL;
	qrdma_buf_init(buf, (u8 *)(buf + 1), len, truesize, rx_release);
	pinned += truesize;
	return buf;
}

static u8 pattern(u64 off)
{
	return off * 7 + (off >> 8) * 13 + (off >> 16);
}

/* Insert pattern bytes as a packet of its own. */
static int put(struct qrdma_reasm *r, u64 off, u32 len)
{
	struct qrdma_buf *buf = rx_buf(len, TRUESIZE);
	int err;
	u32 i;

	for (i = 0; i < len; i++)
		buf->data[i] = pattern(off + i);
	err = qrdma_reasm_insert(r, off, buf->data, len, buf);
	qrdma_buf_put(buf);
	return err;
}

/* Read up to @len bytes and compare them with the pattern. */
static u64 get(struct q_test *test, struct qrdma_reasm *r, u64 len)
{
	struct qrdma_seg seg[3];
	u64 done = 0;
	u32 i, j, n;

	while (done < len && (n = qrdma_reasm_peek(r, 0, seg, ARRAY_SIZE(seg)))) {
		for (i = 0; i < n && done < len; i++) {
			seg[i].len = min_t(u64, seg[i].len, len - done);
			for (j = 0; j < seg[i].len; j++)
				if (seg[i].data[j] != pattern(r->read + j))
					Q_FAIL(test, "wrong byte at %llu", r->read + j);
			Q_EXPECT_EQ(test, qrdma_reasm_consume(r, seg[i].len), seg[i].len);
			done += seg[i].len;
		}
	}
	return done;
}

/* Everything that must hold between two calls. */
static void check(struct q_test *test, struct qrdma_reasm *r)
{
	struct qrdma_frag *frag, *head = NULL, *last = NULL, *other;
	u32 used = 0, frags = 0, runs = 0;
	bool again;

	list_for_each_entry(frag, &r->frags, node) {
		Q_ASSERT_TRUE(test, frag->len);
		Q_ASSERT_GE(test, frag->off, last ? last->off + last->len : r->read);
		Q_ASSERT_TRUE(test, frag->data >= frag->buf->data && frag->data + frag->len <=
			      frag->buf->data + frag->buf->len);
		if (!last || last->off + last->len < frag->off) {
			if (last)
				Q_ASSERT_TRUE(test, head->peer == last && last->peer == head);
			head = frag;
			runs++;
		}
		last = frag;
		frags++;
		if (frag != &frag->buf->frag)
			used += sizeof(*frag);
		again = false;
		list_for_each_entry(other, &r->frags, node) {
			if (other == frag)
				break;
			again |= other->buf == frag->buf;
		}
		if (!again)
			used += frag->buf->truesize;
	}
	if (last)
		Q_ASSERT_TRUE(test, head->peer == last && last->peer == head);
	Q_ASSERT_EQ(test, r->runs, runs);
	Q_ASSERT_EQ(test, r->mem->frags, frags);
	Q_ASSERT_EQ(test, r->mem->used, used);
	Q_ASSERT_LE(test, used, r->mem->cap);
}

static void finish(struct q_test *test, struct qrdma_reasm *r)
{
	qrdma_reasm_purge(r);
	check(test, r);
	Q_EXPECT_EQ(test, r->mem->used, 0);
	Q_EXPECT_EQ(test, r->mem->frags, 0);
	Q_EXPECT_EQ(test, pinned, 0);
}

static void start(struct qrdma_reasm *r, struct qrdma_mem *mem, u32 cap)
{
	pinned = 0;
	qrdma_mem_init(mem, cap);
	qrdma_reasm_init(r, mem);
}

Q_TEST(reasm_in_order_takes_no_memory)
{
	struct qrdma_seg seg[4];
	struct qrdma_buf *buf;
	struct qrdma_reasm r;
	struct qrdma_mem mem;
	u32 i, live;

	start(&r, &mem, 1U << 20);
	for (i = 0; i < 4; i++) {
		buf = rx_buf(1000, TRUESIZE);
		memset(buf->data, i, 1000);
		q_fail_alloc(1);
		Q_ASSERT_EQ(test, qrdma_reasm_insert(&r, 1000 * i, buf->data, 1000, buf), 0);
		q_fail_alloc(0);
		Q_EXPECT_EQ(test, refcount_read(&buf->refs), 2);
		qrdma_buf_put(buf);
	}
	check(test, &r);
	Q_EXPECT_EQ(test, r.runs, 1);
	Q_EXPECT_EQ(test, mem.used, 4 * TRUESIZE);
	Q_EXPECT_EQ(test, mem.copied, 0);
	Q_EXPECT_EQ(test, qrdma_reasm_readable(&r), 4000);
	Q_EXPECT_EQ(test, qrdma_reasm_peek(&r, 1500, seg, 4), 3);
	Q_EXPECT_EQ(test, seg[0].len, 500);
	Q_EXPECT_EQ(test, seg[0].data[0], 1);
	Q_EXPECT_EQ(test, seg[2].data[999], 3);
	Q_EXPECT_EQ(test, qrdma_reasm_peek(&r, 0, seg, 2), 2);
	Q_EXPECT_EQ(test, qrdma_reasm_peek(&r, 4000, seg, 4), 0);

	/* whoever keeps a reference keeps the bytes */
	Q_EXPECT_EQ(test, qrdma_reasm_peek(&r, 0, seg, 1), 1);
	qrdma_buf_get(seg[0].owner);
	Q_EXPECT_EQ(test, qrdma_reasm_consume(&r, 1500), 1500);
	check(test, &r);
	Q_EXPECT_EQ(test, mem.used, 3 * TRUESIZE);
	live = pinned;
	Q_EXPECT_EQ(test, live, 4 * TRUESIZE);
	Q_EXPECT_EQ(test, seg[0].data[999], 0);
	qrdma_buf_put(seg[0].owner);
	Q_EXPECT_EQ(test, qrdma_reasm_consume(&r, 99999), 2500);
	Q_EXPECT_EQ(test, qrdma_reasm_consume(&r, 1), 0);
	finish(test, &r);
}

Q_TEST(reasm_first_byte_wins)
{
	struct qrdma_buf *a = rx_buf(3000, TRUESIZE), *b = rx_buf(3000, TRUESIZE);
	struct qrdma_seg seg[8];
	struct qrdma_reasm r;
	struct qrdma_mem mem;
	u32 i, n, at = 0;

	start(&r, &mem, 1U << 20);
	pinned = 2 * TRUESIZE;
	memset(a->data, 'a', 3000);
	memset(b->data, 'b', 3000);
	/* two pieces of one buffer, then another one around and between them */
	Q_EXPECT_EQ(test, qrdma_reasm_insert(&r, 500, a->data, 1000, a), 0);
	Q_EXPECT_EQ(test, qrdma_reasm_insert(&r, 2000, a->data + 1500, 500, a), 0);
	Q_EXPECT_EQ(test, mem.used, TRUESIZE + sizeof(struct qrdma_frag));
	check(test, &r);
	Q_EXPECT_EQ(test, r.runs, 2);
	Q_EXPECT_EQ(test, qrdma_reasm_readable(&r), 0);
	Q_EXPECT_EQ(test, qrdma_reasm_peek(&r, 0, seg, 8), 0);
	Q_EXPECT_EQ(test, qrdma_reasm_insert(&r, 0, b->data, 3000, b), 0);
	check(test, &r);
	Q_EXPECT_EQ(test, r.runs, 1);
	Q_EXPECT_EQ(test, qrdma_reasm_readable(&r), 3000);
	qrdma_buf_put(a);
	qrdma_buf_put(b);

	n = qrdma_reasm_peek(&r, 0, seg, 8);
	Q_ASSERT_EQ(test, n, 5);
	for (i = 0; i < n; i++) {
		Q_EXPECT_EQ(test, seg[i].data[0], i & 1 ? 'a' : 'b');
		Q_EXPECT_EQ(test, seg[i].data[seg[i].len - 1], i & 1 ? 'a' : 'b');
		at += seg[i].len;
	}
	Q_EXPECT_EQ(test, at, 3000);
	finish(test, &r);
}

Q_TEST(reasm_duplicates_cost_nothing)
{
	struct qrdma_reasm r;
	struct qrdma_mem mem;
	u32 used;

	start(&r, &mem, 1U << 20);
	Q_EXPECT_EQ(test, put(&r, 0, 1000), 0);
	Q_EXPECT_EQ(test, put(&r, 2000, 1000), 0);
	used = mem.used;
	Q_EXPECT_EQ(test, put(&r, 0, 1000), 0);
	Q_EXPECT_EQ(test, put(&r, 100, 10), 0);
	Q_EXPECT_EQ(test, put(&r, 2999, 1), 0);
	Q_EXPECT_EQ(test, put(&r, 5000, 0), 0);
	Q_EXPECT_EQ(test, get(test, &r, 700), 700);
	Q_EXPECT_EQ(test, put(&r, 0, 700), 0);
	Q_EXPECT_EQ(test, put(&r, 0, 900), 0);
	Q_EXPECT_EQ(test, mem.used, used);
	check(test, &r);
	Q_EXPECT_EQ(test, put(&r, 0, 3000), 0);
	Q_EXPECT_EQ(test, get(test, &r, 9999), 2300);
	finish(test, &r);
}

struct model {
	struct qrdma_reasm r;
	struct qrdma_mem mem;
	u8 byte[SPAN];
	bool have[SPAN];
	u64 seed;
	u32 refused;
};

/* One packet with a few frames at random places, of random bytes. */
static void model_insert(struct q_test *test, struct model *m)
{
	u32 len = 1 + q_rand(&m->seed) % 1500;
	struct qrdma_buf *buf = rx_buf(len, 2048 + q_rand(&m->seed) % 6144);
	u32 at = 0, n, i, off;
	bool keep;
	int err;

	for (i = 0; i < len; i++)
		buf->data[i] = q_rand(&m->seed);
	while (at < len) {
		n = 1 + q_rand(&m->seed) % (q_rand(&m->seed) % 4 ? len - at : min(len - at, 8U));
		/* mostly near the first gap, sometimes anywhere */
		off = m->r.read + qrdma_reasm_readable(&m->r);
		if (q_rand(&m->seed) % 3)
			off += q_rand(&m->seed) % 4096;
		else if (q_rand(&m->seed) % 2)
			off = q_rand(&m->seed) % SPAN;
		off = min(off, SPAN - 1);
		n = min(n, SPAN - off);
		keep = q_rand(&m->seed) % 8;
		err = qrdma_reasm_insert(&m->r, off, buf->data + at, n, keep ? buf : NULL);
		if (err) {
			Q_ASSERT_EQ(test, err, -ENOBUFS);
			m->refused++;
		}
		for (i = 0; i < n && !err; i++) {
			if (off + i < m->r.read || m->have[off + i])
				continue;
			m->have[off + i] = true;
			m->byte[off + i] = buf->data[at + i];
		}
		at += n;
	}
	qrdma_buf_put(buf);
}

static void model_read(struct q_test *test, struct model *m)
{
	u64 want = 1 + q_rand(&m->seed) % 3000;
	u64 skip = q_rand(&m->seed) % 2000;
	struct qrdma_seg seg[5];
	u64 readable = 0;
	u32 i, j, n;
	u64 off;

	while (m->r.read + readable < SPAN && m->have[m->r.read + readable])
		readable++;
	Q_ASSERT_EQ(test, qrdma_reasm_readable(&m->r), readable);
	n = qrdma_reasm_peek(&m->r, skip, seg, ARRAY_SIZE(seg));
	Q_ASSERT_EQ(test, n > 0, skip < readable);
	off = m->r.read + skip;
	for (i = 0; i < n; i++) {
		for (j = 0; j < seg[i].len; j++)
			Q_ASSERT_EQ(test, seg[i].data[j], m->byte[off + j]);
		off += seg[i].len;
	}
	Q_ASSERT_LE(test, off, max(m->r.read + readable, m->r.read + skip));
	Q_ASSERT_EQ(test, qrdma_reasm_consume(&m->r, want), min(want, readable));
}

static void model_run(struct q_test *test, struct model *m, u64 seed, u32 cap)
{
	u32 steps = 0;

	memset(m, 0, sizeof(*m));
	m->seed = seed;
	start(&m->r, &m->mem, cap);
	while (m->r.read < SPAN && steps++ < 20000) {
		model_insert(test, m);
		check(test, &m->r);
		Q_ASSERT_LE(test, pinned, cap);
		if (q_rand(&m->seed) % 2) {
			model_read(test, m);
			check(test, &m->r);
		}
	}
	/* bytes out of order may be refused, but never for good those that go on */
	Q_EXPECT_EQ(test, m->r.read, SPAN);
	finish(test, &m->r);
}

Q_TEST(reasm_random)
{
	struct model *m = q_zalloc(test, sizeof(*m));
	u64 seed = q_seed();
	u32 i;

	Q_ASSERT_NOT_NULL(test, m);
	for (i = 0; i < 4; i++)
		model_run(test, m, seed * 1000 + i, 1U << 20);
	Q_EXPECT_EQ(test, m->refused, 0);
	for (i = 0; i < 4; i++)
		model_run(test, m, seed * 2000 + i, 96U << 10);
	for (i = 0; i < 4; i++)
		model_run(test, m, seed * 3000 + i, 20U << 10);
	Q_EXPECT_GT(test, m->refused, 0);
}

/* Every byte a packet of its own, in order and unread: F65. */
Q_TEST(reasm_flood_in_order)
{
	struct qrdma_reasm r;
	struct qrdma_mem mem;
	u32 i;

	start(&r, &mem, 1U << 20);
	for (i = 0; i < SPAN; i++) {
		Q_ASSERT_EQ(test, put(&r, i, 1), 0);
		Q_ASSERT_LE(test, pinned, 16U << 10);
		/* a constant, and not even twice the credit that the peer used */
		Q_ASSERT_LE(test, mem.used, (16U << 10) + 4096 + 2 * i);
	}
	check(test, &r);
	Q_EXPECT_LE(test, mem.frags, 64);
	Q_EXPECT_EQ(test, get(test, &r, SPAN), SPAN);
	finish(test, &r);
}

/* Every other byte: no run ever grows. */
Q_TEST(reasm_flood_of_gaps)
{
	struct qrdma_reasm r;
	struct qrdma_mem mem;
	u32 i, refused = 0;
	int err;

	start(&r, &mem, 1U << 20);
	for (i = 1; i < SPAN; i += 2) {
		err = put(&r, i, 1);
		if (err) {
			Q_ASSERT_EQ(test, err, -ENOBUFS);
			refused++;
		}
		Q_ASSERT_LE(test, r.runs, QRDMA_REASM_RUNS);
		Q_ASSERT_LE(test, pinned, 16U << 10);
		Q_ASSERT_LE(test, mem.used, (16U << 10) + QRDMA_REASM_RUNS * 256);
	}
	check(test, &r);
	Q_EXPECT_EQ(test, refused, SPAN / 2 - QRDMA_REASM_RUNS);
	Q_EXPECT_EQ(test, mem.refused, refused);

	/* bytes in order go on: after each, some run ends or the reader moves */
	for (i = 0; i < SPAN; i++) {
		Q_ASSERT_EQ(test, put(&r, i, 1), 0);
		if (i % 100 == 0)
			get(test, &r, 50);
	}
	get(test, &r, SPAN);
	Q_EXPECT_EQ(test, r.read, SPAN);
	finish(test, &r);
}

/* Pieces just large enough to stay where they are, until the cap, out of order. */
Q_TEST(reasm_flood_to_the_cap)
{
	u32 cap = 128U << 10;
	struct qrdma_reasm r;
	struct qrdma_mem mem;
	u64 off, refused = 0;

	start(&r, &mem, cap);
	for (off = 2000; off < 400000; off += 1100) {
		refused += put(&r, off, 1000) != 0;
		Q_ASSERT_LE(test, mem.used, cap - cap / 4);
		Q_ASSERT_LE(test, pinned, mem.used);
	}
	check(test, &r);
	Q_EXPECT_GT(test, refused, 0);

	/* a quarter is left for bytes in order; read, they make room for more */
	for (off = 0; off < 400000; off += 1000) {
		Q_ASSERT_EQ(test, put(&r, off, 1000), 0);
		Q_ASSERT_LE(test, mem.used, cap);
		get(test, &r, 9999);
	}
	Q_EXPECT_EQ(test, r.read, 400000);
	finish(test, &r);
}

/* Unread bytes in order stop at the cap, and go on when they are read. */
Q_TEST(reasm_unread_to_the_cap)
{
	u32 cap = 64U << 10;
	struct qrdma_reasm r;
	struct qrdma_mem mem;
	u64 off = 0;

	start(&r, &mem, cap);
	while (!put(&r, off, 1000))
		off += 1000;
	Q_EXPECT_LE(test, mem.used, cap);
	Q_EXPECT_GE(test, off, 13000);
	Q_EXPECT_EQ(test, put(&r, off, 1000), -ENOBUFS);
	check(test, &r);
	get(test, &r, off);
	Q_EXPECT_EQ(test, put(&r, off, 1000), 0);
	Q_EXPECT_EQ(test, get(test, &r, 9999), 1000);

	/* a cap taken below what is pinned refuses, and loses nothing */
	Q_EXPECT_EQ(test, put(&r, off + 1000, 1000), 0);
	qrdma_mem_set_cap(&mem, 100);
	Q_EXPECT_EQ(test, put(&r, off + 2000, 1000), -ENOBUFS);
	Q_EXPECT_EQ(test, get(test, &r, 9999), 1000);
	finish(test, &r);
}

/*
 * A peer that fills its packets may use a window of a quarter of the cap, unread, whichever packet
 * comes late or when every other one does.
 */
Q_TEST(reasm_honest_peer)
{
	static const u32 sizes[] = { 990, 1400, 4000 };
	u32 cap = 256U << 10, i, j, k, n;
	struct qrdma_reasm r;
	struct qrdma_mem mem;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		n = cap / 4 / sizes[i];
		start(&r, &mem, cap);
		for (j = 0; j < n; j += 2)
			Q_ASSERT_EQ(test, put(&r, j * sizes[i], sizes[i]), 0);
		for (j = 1; j < n; j += 2)
			Q_ASSERT_EQ(test, put(&r, j * sizes[i], sizes[i]), 0);
		check(test, &r);
		Q_EXPECT_EQ(test, get(test, &r, cap), n * sizes[i]);
		finish(test, &r);

		for (k = 0; k < n; k++) {
			start(&r, &mem, cap);
			for (j = 0; j < n; j++)
				if (j != k)
					Q_ASSERT_EQ(test, put(&r, j * sizes[i], sizes[i]), 0);
			Q_ASSERT_EQ(test, put(&r, k * sizes[i], sizes[i]), 0);
			check(test, &r);
			Q_EXPECT_EQ(test, qrdma_reasm_readable(&r), n * sizes[i]);
			finish(test, &r);
		}
	}
}

/* Many frames of one packet: the buffer is charged once, records are bounded. */
Q_TEST(reasm_flood_of_frames)
{
	struct qrdma_buf *buf = rx_buf(4000, TRUESIZE);
	u32 cap = 64U << 10;
	struct qrdma_reasm r;
	struct qrdma_mem mem;
	u32 i, kept = 0;

	start(&r, &mem, cap);
	pinned = TRUESIZE;
	for (i = 0; i < 4000; i++)
		kept += !qrdma_reasm_insert(&r, 10 + 3 * i, buf->data + i, 1, buf);
	check(test, &r);
	Q_EXPECT_LE(test, mem.used, cap - cap / 4);
	Q_EXPECT_LE(test, mem.frags, mem.frag_cap - mem.frag_cap / 4);
	Q_EXPECT_EQ(test, mem.frags, kept);
	qrdma_buf_put(buf);
	finish(test, &r);
}

/* Two accounts never share a buffer's charge: the second one copies. */
Q_TEST(reasm_two_accounts)
{
	struct qrdma_buf *buf = rx_buf(2000, TRUESIZE);
	struct qrdma_reasm r, other;
	struct qrdma_mem mem, small;

	start(&r, &mem, 1U << 20);
	start(&other, &small, 64U << 10);
	pinned = TRUESIZE;
	memset(buf->data, 1, 2000);
	Q_EXPECT_EQ(test, qrdma_reasm_insert(&r, 0, buf->data, 1000, buf), 0);
	Q_EXPECT_EQ(test, qrdma_reasm_insert(&other, 0, buf->data + 1000, 1000, buf), 0);
	Q_EXPECT_EQ(test, small.copied, 1000);
	qrdma_buf_put(buf);
	check(test, &r);
	check(test, &other);
	Q_EXPECT_EQ(test, qrdma_reasm_consume(&r, 1000), 1000);
	Q_EXPECT_EQ(test, pinned, 0);
	finish(test, &other);
	finish(test, &r);
}

/*
 * Fail each allocation of one insert that fills many gaps: nothing changes. Gaps of 600 bytes are
 * filled with records of the one buffer, small ones with copies.
 */
static void out_of_memory(struct q_test *test, u32 gap, bool copy)
{
	u32 step = gap + 50, len = 6 * step;
	struct qrdma_buf *buf = rx_buf(len, TRUESIZE);
	struct qrdma_seg seg[16];
	struct qrdma_reasm r;
	struct qrdma_mem mem;
	u32 used, i;
	unsigned long nth;
	int err;

	start(&r, &mem, 1U << 20);
	pinned = TRUESIZE;
	for (i = 1; i <= 5; i++)
		Q_ASSERT_EQ(test, put(&r, i * step, 50), 0);
	used = mem.used;
	for (i = 0; i < len; i++)
		buf->data[i] = pattern(i);
	for (nth = 1; nth < 100; nth++) {
		q_fail_alloc(nth);
		err = qrdma_reasm_insert(&r, 0, buf->data, len, copy ? NULL : buf);
		q_fail_alloc(0);
		check(test, &r);
		if (!err)
			break;
		Q_ASSERT_EQ(test, err, -ENOMEM);
		Q_ASSERT_EQ(test, mem.used, used);
		Q_ASSERT_EQ(test, r.runs, 5);
		Q_ASSERT_EQ(test, mem.frags, 5);
		Q_ASSERT_EQ(test, refcount_read(&buf->refs), 1);
		Q_ASSERT_EQ(test, qrdma_reasm_peek(&r, 0, seg, ARRAY_SIZE(seg)), 0);
	}
	Q_EXPECT_EQ(test, err, 0);
	Q_EXPECT_EQ(test, mem.nomem, nth - 1);
	Q_EXPECT_GE(test, nth, 5);
	Q_EXPECT_EQ(test, get(test, &r, 9999), len);
	qrdma_buf_put(buf);
	finish(test, &r);
}

Q_TEST(reasm_out_of_memory)
{
	if (!q_fail_alloc(0))
		Q_SKIP(test, "allocations cannot be made to fail here");
	out_of_memory(test, 600, false);
	out_of_memory(test, 600, true);
	out_of_memory(test, 200, false);
}

Q_SUITE("qrdma-reasm",
	Q_CASE(reasm_in_order_takes_no_memory),
	Q_CASE(reasm_first_byte_wins),
	Q_CASE(reasm_duplicates_cost_nothing),
	Q_CASE(reasm_random),
	Q_CASE(reasm_flood_in_order),
	Q_CASE(reasm_flood_of_gaps),
	Q_CASE(reasm_flood_to_the_cap),
	Q_CASE(reasm_unread_to_the_cap),
	Q_CASE(reasm_honest_peer),
	Q_CASE(reasm_flood_of_frames),
	Q_CASE(reasm_two_accounts),
	Q_CASE(reasm_out_of_memory));
