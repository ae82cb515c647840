// SPDX-License-Identifier: GPL-2.0
/*
 * Pools of page-backed buffers.
 *
 * Owns: free buffers, and the count of those that are out. See pool.h for callers, contexts, locks.
 * A pool grows by single pages when it is asked for more than it has free, up to its bound; so in
 * the steady state nothing is allocated, and a machine that never has traffic pays little.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "pool.h"

/**
 * struct qrdma_pool - see pool.h
 * @lock: guards the rest
 * @free: buffers that nobody uses
 * @nfree: how many
 * @total: buffers that exist
 * @low: under the low mark, or had to refuse
 * @closed: the creator is gone
 * @ops: upward calls, NULL when there are none (any more)
 * @arg: their argument
 * @max: bound of @total
 * @low_mark: see qrdma_pool_create()
 * @keep: free buffers that are not given back to the system
 * @item_size: bytes of the descriptor
 * @node: NUMA node
 * @stats: counters
 */
struct qrdma_pool {
	spinlock_t lock;	/* innermost, taken from any context */
	struct list_head free;
	u32 nfree;
	u32 total;
	bool low;
	bool closed;
	const struct qrdma_pool_ops *ops;
	void *arg;
	u32 max;
	u32 low_mark;
	u32 keep;
	size_t item_size;
	int node;
	struct qrdma_pool_stats stats;
};

static atomic_t pool_count = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(pool_none);

static struct qrdma_pool_item *item_alloc(struct qrdma_pool *pool, gfp_t gfp)
{
	struct qrdma_pool_item *item = kzalloc_node(pool->item_size, gfp, pool->node);

	if (!item)
		return NULL;
	item->page = alloc_pages_node(pool->node, gfp, 0);
	if (!item->page) {
		kfree(item);
		return NULL;
	}
	item->pool = pool;
	return item;
}

static void item_free(struct qrdma_pool_item *item)
{
	put_page(item->page);
	kfree(item);
}

static void pool_free(struct qrdma_pool *pool)
{
	kfree(pool);
	if (atomic_dec_and_test(&pool_count))
		wake_up_all(&pool_none);
}

/* Buffers that can still be taken: free ones and those that may yet be made. */
static u32 pool_left(const struct qrdma_pool *pool)
{
	return pool->max - (pool->total - pool->nfree);
}

bool qrdma_pool_is_tight(const struct qrdma_pool *pool)
{
	return pool->max - (READ_ONCE(pool->total) - READ_ONCE(pool->nfree)) <
	       3 * pool->low_mark;
}

struct qrdma_pool *qrdma_pool_create(size_t item_size, u32 first, u32 max, u32 low, int node,
				     const struct qrdma_pool_ops *ops, void *arg)
{
	struct qrdma_pool *pool = kzalloc_node(sizeof(*pool), GFP_KERNEL, node);
	struct qrdma_pool_item *item;
	u32 i;

	if (!pool)
		return NULL;
	atomic_inc(&pool_count);
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->free);
	pool->ops = ops;
	pool->arg = arg;
	pool->max = max;
	pool->low_mark = low;
	pool->keep = max(max / 4, first);
	pool->item_size = item_size;
	pool->node = node;

	for (i = 0; i < min(first, max); i++) {
		item = item_alloc(pool, GFP_KERNEL | __GFP_NOWARN);
		if (!item) {
			qrdma_pool_close(pool);
			return NULL;
		}
		list_add(&item->list, &pool->free);
		pool->nfree++;
		pool->total++;
	}
	return pool;
}

static struct qrdma_pool_item *pool_get(struct qrdma_pool *pool, u32 reserve)
{
	struct qrdma_pool_item *item = NULL;
	unsigned long flags;
	bool grow = false;

	spin_lock_irqsave(&pool->lock, flags);
	if (pool_left(pool) <= reserve) {
		pool->stats.exhausted++;
	} else if (pool->nfree) {
		item = list_first_entry(&pool->free, struct qrdma_pool_item, list);
		list_del(&item->list);
		pool->nfree--;
	} else {
		pool->total++;
		grow = true;
	}
	if (!pool->low && (pool_left(pool) < pool->low_mark || !(item || grow))) {
		WRITE_ONCE(pool->low, true);
		pool->stats.low++;
	}
	spin_unlock_irqrestore(&pool->lock, flags);

	if (!grow)
		return item;
	item = item_alloc(pool, GFP_ATOMIC | __GFP_NOWARN);
	if (item)
		return item;

	spin_lock_irqsave(&pool->lock, flags);
	pool->total--;
	pool->stats.nomem++;
	WRITE_ONCE(pool->low, true);
	spin_unlock_irqrestore(&pool->lock, flags);
	return NULL;
}

/* Any context. The pool is gone on return if this was the last buffer of a closed one. */
static void pool_put(struct qrdma_pool_item *item)
{
	struct qrdma_pool *pool = item->pool;
	struct qrdma_pool_item *excess = NULL;
	unsigned long flags;
	bool last;

	spin_lock_irqsave(&pool->lock, flags);
	/* Somebody else may still look at the page (it was handed out): it is not ours to reuse. */
	if (pool->closed || pool->nfree >= pool->keep || page_ref_count(item->page) != 1) {
		excess = item;
		pool->total--;
	} else {
		list_add(&item->list, &pool->free);
		pool->nfree++;
	}
	if (pool->low && pool_left(pool) >= 2 * pool->low_mark) {
		WRITE_ONCE(pool->low, false);
		if (pool->ops)
			pool->ops->resume(pool->arg);
	}
	last = pool->closed && !pool->total;
	spin_unlock_irqrestore(&pool->lock, flags);

	if (excess)
		item_free(excess);
	if (last)
		pool_free(pool);
}

static void pool_trim(struct qrdma_pool *pool, bool close)
{
	struct qrdma_pool_item *item, *next;
	unsigned long flags;
	LIST_HEAD(free);
	bool last;

	spin_lock_irqsave(&pool->lock, flags);
	pool->ops = NULL;
	pool->keep = 0;
	list_splice_init(&pool->free, &free);
	pool->total -= pool->nfree;
	pool->nfree = 0;
	pool->closed |= close;
	last = pool->closed && !pool->total;
	spin_unlock_irqrestore(&pool->lock, flags);

	list_for_each_entry_safe(item, next, &free, list)
		item_free(item);
	if (last)
		pool_free(pool);
}

void qrdma_pool_retire(struct qrdma_pool *pool)
{
	if (pool)
		pool_trim(pool, false);
}

void qrdma_pool_close(struct qrdma_pool *pool)
{
	if (pool)
		pool_trim(pool, true);
}

static void rxbuf_release(struct qrdma_buf *buf)
{
	pool_put(&qrdma_rxbuf_of(buf)->item);
}

struct qrdma_rxbuf *qrdma_pool_get_rx(struct qrdma_pool *pool)
{
	struct qrdma_pool_item *item = pool_get(pool, 0);
	struct qrdma_rxbuf *rx;

	if (!item)
		return NULL;
	rx = container_of(item, struct qrdma_rxbuf, item);
	qrdma_buf_init(&rx->buf, page_address(item->page), QRDMA_UD_MAX,
		       PAGE_SIZE + sizeof(*rx), rxbuf_release);
	return rx;
}

struct qrdma_txbuf *qrdma_pool_get_tx(struct qrdma_pool *pool, u32 reserve)
{
	struct qrdma_pool_item *item = pool_get(pool, reserve);
	struct qrdma_txbuf *tx;

	if (!item)
		return NULL;
	tx = container_of(item, struct qrdma_txbuf, item);
	tx->data = page_address(item->page);
	tx->len = 0;
	tx->done = NULL;
	tx->owner = NULL;
	tx->cookie = 0;
	tx->ah = NULL;
	tx->queued = false;
	refcount_set(&tx->refs, 1);
	return tx;
}

void qrdma_txbuf_put(struct qrdma_txbuf *tx)
{
	if (refcount_dec_and_test(&tx->refs))
		pool_put(&tx->item);
}

bool qrdma_pool_is_low(const struct qrdma_pool *pool)
{
	return READ_ONCE(pool->low);
}

void qrdma_pool_stats(struct qrdma_pool *pool, struct qrdma_pool_stats *stats)
{
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	*stats = pool->stats;
	stats->max = pool->max;
	stats->total = pool->total;
	stats->out = pool->total - pool->nfree;
	spin_unlock_irqrestore(&pool->lock, flags);
}

void qrdma_pool_wait_all(void)
{
	while (!wait_event_timeout(pool_none, !atomic_read(&pool_count), 10 * HZ))
		pr_err("qrdma: waiting for the buffers of %d pools\n", atomic_read(&pool_count));
	/* pool_free() may still be on its way out on another CPU. */
	synchronize_rcu();
}
