// SPDX-License-Identifier: GPL-2.0
/*
 * Buffer pools: the bound, the reserve, the low mark and the call that ends it, pages that somebody
 * else still looks at, and a pool that is closed while its buffers are out.
 */
#include <kunit/test.h>
#include <linux/mm.h>

#include "pool.h"

#define POOL_MAX	64
#define POOL_LOW	8
#define POOL_FIRST	16

static u32 resumed;

static void count_resume(void *arg)
{
	++*(u32 *)arg;
}

static const struct qrdma_pool_ops ops = {
	.resume = count_resume,
};

static struct qrdma_pool *make(struct kunit *test, size_t size)
{
	struct qrdma_pool *pool;

	resumed = 0;
	pool = qrdma_pool_create(size, POOL_FIRST, POOL_MAX, POOL_LOW, NUMA_NO_NODE, &ops, &resumed);
	KUNIT_ASSERT_NOT_NULL(test, pool);
	return pool;
}

static void pool_bounds(struct kunit *test)
{
	struct qrdma_pool *pool = make(test, sizeof(struct qrdma_rxbuf));
	struct qrdma_rxbuf *rx[POOL_MAX];
	struct qrdma_pool_stats st;
	u32 i;

	qrdma_pool_stats(pool, &st);
	KUNIT_EXPECT_EQ(test, st.total, POOL_FIRST);
	KUNIT_EXPECT_EQ(test, st.out, 0U);
	for (i = 0; i < POOL_MAX; i++) {
		rx[i] = qrdma_pool_get_rx(pool);
		KUNIT_ASSERT_NOT_NULL(test, rx[i]);
		KUNIT_EXPECT_EQ(test, rx[i]->buf.len, QRDMA_UD_MAX);
		KUNIT_EXPECT_EQ(test, qrdma_pool_is_low(pool), POOL_MAX - i - 1 < POOL_LOW);
		memset(rx[i]->buf.data, i, rx[i]->buf.len);
	}
	KUNIT_EXPECT_NULL(test, qrdma_pool_get_rx(pool));
	qrdma_pool_stats(pool, &st);
	KUNIT_EXPECT_EQ(test, st.out, POOL_MAX);
	KUNIT_EXPECT_EQ(test, st.exhausted, 1ULL);
	KUNIT_EXPECT_EQ(test, st.low, 1ULL);

	/* Low until twice the mark is left, and then told once. */
	for (i = 0; i < POOL_MAX; i++) {
		KUNIT_EXPECT_EQ(test, rx[i]->buf.data[17], (u8)i);
		qrdma_buf_put(&rx[i]->buf);
		KUNIT_EXPECT_EQ(test, qrdma_pool_is_low(pool), i + 1 < 2 * POOL_LOW);
		KUNIT_EXPECT_EQ(test, resumed, i + 1 >= 2 * POOL_LOW);
	}
	qrdma_pool_stats(pool, &st);
	KUNIT_EXPECT_EQ(test, st.out, 0U);
	KUNIT_EXPECT_LE(test, st.total, POOL_MAX / 4);
	qrdma_pool_close(pool);
}

static void pool_reserve(struct kunit *test)
{
	struct qrdma_pool *pool = make(test, sizeof(struct qrdma_txbuf));
	struct qrdma_txbuf *tx[POOL_MAX];
	u32 i;

	for (i = 0; i < POOL_MAX - POOL_LOW; i++) {
		tx[i] = qrdma_pool_get_tx(pool, POOL_LOW);
		KUNIT_ASSERT_NOT_NULL(test, tx[i]);
	}
	KUNIT_EXPECT_NULL(test, qrdma_pool_get_tx(pool, POOL_LOW));
	for (; i < POOL_MAX; i++) {
		tx[i] = qrdma_pool_get_tx(pool, 0);
		KUNIT_ASSERT_NOT_NULL(test, tx[i]);
	}
	/* Who was refused hears of it, though the mark was never passed. */
	while (i--)
		qrdma_txbuf_put(tx[i]);
	KUNIT_EXPECT_EQ(test, resumed, 1U);
	qrdma_pool_close(pool);
}

static void pool_refs(struct kunit *test)
{
	struct qrdma_pool *pool = make(test, sizeof(struct qrdma_txbuf));
	struct qrdma_txbuf *tx = qrdma_pool_get_tx(pool, 0);
	struct qrdma_pool_stats st;

	KUNIT_ASSERT_NOT_NULL(test, tx);
	refcount_inc(&tx->refs);
	qrdma_txbuf_put(tx);
	qrdma_pool_stats(pool, &st);
	KUNIT_EXPECT_EQ(test, st.out, 1U);
	qrdma_txbuf_put(tx);
	qrdma_pool_stats(pool, &st);
	KUNIT_EXPECT_EQ(test, st.out, 0U);
	qrdma_pool_close(pool);
}

static void pool_shared_page(struct kunit *test)
{
	struct qrdma_pool *pool = make(test, sizeof(struct qrdma_rxbuf));
	struct qrdma_rxbuf *rx = qrdma_pool_get_rx(pool);
	struct qrdma_pool_stats st;
	struct page *page;

	KUNIT_ASSERT_NOT_NULL(test, rx);
	page = rx->item.page;
	get_page(page);
	qrdma_buf_put(&rx->buf);
	/* Not ours alone: it must not be received into again. */
	KUNIT_EXPECT_EQ(test, page_ref_count(page), 1);
	qrdma_pool_stats(pool, &st);
	KUNIT_EXPECT_EQ(test, st.total, POOL_FIRST - 1);
	put_page(page);
	qrdma_pool_close(pool);
}

static void pool_closed(struct kunit *test)
{
	struct qrdma_pool *pool = make(test, sizeof(struct qrdma_rxbuf));
	struct qrdma_rxbuf *rx[POOL_MAX];
	u32 i;

	for (i = 0; i < POOL_MAX; i++) {
		rx[i] = qrdma_pool_get_rx(pool);
		KUNIT_ASSERT_NOT_NULL(test, rx[i]);
	}
	qrdma_pool_retire(pool);
	qrdma_pool_close(pool);
	for (i = 0; i < POOL_MAX; i++)
		qrdma_buf_put(&rx[i]->buf);
	KUNIT_EXPECT_EQ(test, resumed, 0U);
}

static struct kunit_case pool_cases[] = {
	KUNIT_CASE(pool_bounds),
	KUNIT_CASE(pool_reserve),
	KUNIT_CASE(pool_refs),
	KUNIT_CASE(pool_shared_page),
	KUNIT_CASE(pool_closed),
	{}
};

static struct kunit_suite pool_suite = {
	.name = "qrdma-pool",
	.test_cases = pool_cases,
};

kunit_test_suite(pool_suite);
