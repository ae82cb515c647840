/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pools of page-backed buffers: what receives are posted from, and what is sent from.
 *
 * Owns: the pages. Knows nothing of devices: buffers are DMA-mapped by the lane when they are
 * posted and unmapped at completion, so a buffer that somebody holds pins neither a lane nor a
 * device.
 * Called by: lane.c and device.c (get, close), anybody who holds a buffer (release).
 * Context: every function but create and close runs in any context, hard interrupts included.
 * Locks: the pool's own lock, which is the innermost one of the module.
 *
 * Lifetime: qrdma_pool_close() drops the creator's interest; the pool itself dies with the last
 * buffer that comes back.
 */
#ifndef QRDMA_POOL_H
#define QRDMA_POOL_H

#include <linux/in6.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "core/buf.h"

struct qrdma_ah;
struct qrdma_lane;
struct qrdma_pool;
struct net;

/** enum - sizes on the wire and in the buffers, bytes */
enum {
	QRDMA_PORT_HDR_LEN	= 4,	/* source and destination port, big endian */
	QRDMA_UD_MAX		= 4096,	/* largest UD message of any port */
	QRDMA_GRH_LEN		= 40,	/* what a received UD message is preceded by */
};

/**
 * struct qrdma_pool_item - what every buffer of a pool starts with
 * @list: free list of the pool; the holder's to use while the buffer is out
 * @pool: where the buffer goes back to
 * @page: the memory, one page, never high memory
 */
struct qrdma_pool_item {
	struct list_head list;
	struct qrdma_pool *pool;
	struct page *page;
};

/**
 * struct qrdma_rxbuf - one received UD message
 * @item: pool linkage
 * @buf: the payload behind the GRH: starts with the port header, ends with the QUIC datagram.
 *	Its release gives the buffer back to the pool, from any context, also when lane and device
 *	are long gone.
 * @lane: lane it arrived on; valid during the rx() call, later only while the holder has a
 *	reference on the device
 * @src_qp: queue pair number that it was sent from
 * @saddr: address of the sender out of the GRH, IPv4 in mapped form (::ffff:a.b.c.d)
 * @daddr: address it was sent to, same form
 * @family: AF_INET or AF_INET6: what the outer header was
 * @tclass: traffic class or TOS byte; the two low bits are the ECN field
 * @hop_limit: hop limit or TTL as it arrived
 * @ifindex: net device that @daddr belongs to, 0 when the GID has just gone
 * @net: network namespace of that net device: to be compared, never to be followed; NULL when the
 *	GID has just gone
 *
 * Found by: nobody, it is handed over. Owned by: whoever has a reference on @buf. Dies: never,
 * goes back to the pool.
 * Protected by: nothing; the fields behind @buf are written once, before the rx() call.
 */
struct qrdma_rxbuf {
	struct qrdma_pool_item item;
	struct qrdma_buf buf;
	struct qrdma_lane *lane;
	u32 src_qp;
	struct in6_addr saddr;
	struct in6_addr daddr;
	u16 family;
	u8 tclass;
	u8 hop_limit;
	int ifindex;
	const struct net *net;
};

static inline struct qrdma_rxbuf *qrdma_rxbuf_of(struct qrdma_buf *buf)
{
	return container_of(buf, struct qrdma_rxbuf, buf);
}

/**
 * struct qrdma_txbuf - one UD message to be sent
 * @item: pool linkage; @item.list belongs to the lane while the buffer is queued, else to the
 *	owner
 * @data: QRDMA_UD_MAX bytes of room, one page: port header, then the sealed QUIC datagram
 * @len: bytes to send, port header included (set by qrdma_lane_tx_queue())
 * @done: called exactly once for each qrdma_lane_tx_queue() that returned 0, when the send
 *	completion is in and device and lane do not touch the buffer any more. @status is 0 or a
 *	negative errno: -ECONNABORTED (flushed by a reset of the queue pair: as good as lost),
 *	-ESTALE (the address handle was revoked before the packet was posted), -ENETDOWN (the port
 *	went down first), -ENODEV (the device is gone). 0 does not mean that it was delivered (nor
 *	sent). Softirq or a kworker, no lane lock held: it may queue and flush on the lane. NULL:
 *	nobody wants to know. It is called even if the owner put the buffer meanwhile, so @owner
 *	has to stay valid until then.
 * @owner: for the owner's use, as is @cookie
 * @cookie: see @owner
 * @ah: address handle, with a reference, while queued
 * @refs: one for the owner, one for the lane while queued
 * @qpn: destination queue pair
 * @qkey: its key
 * @status: what @done will be told
 * @queued: the lane has it
 *
 * Found by: ring position. Owned by: the caller of qrdma_lane_tx_get(). Dies: with the later of
 * the owner's qrdma_lane_tx_put() and the completion, then goes back to the pool.
 * Protected by: the owner may write @data, @done, @owner, @cookie while the buffer is not queued;
 * the rest is the lane's.
 */
struct qrdma_txbuf {
	struct qrdma_pool_item item;
	u8 *data;
	u32 len;
	void (*done)(struct qrdma_txbuf *tx, int status);
	void *owner;
	u64 cookie;
	/* private: for lane.c */
	struct qrdma_ah *ah;
	refcount_t refs;
	u32 qpn;
	u32 qkey;
	int status;
	bool queued;
};

/**
 * struct qrdma_pool_stats - a look at a pool
 * @max: buffers that may exist
 * @total: buffers that exist
 * @out: of those, not in the pool: posted, queued, or held by sockets
 * @exhausted: times that a buffer was asked for and there was none
 * @nomem: times that the pool wanted to grow and the kernel had no page
 * @low: times that the pool fell under its low mark
 */
struct qrdma_pool_stats {
	u32 max;
	u32 total;
	u32 out;
	u64 exhausted;
	u64 nomem;
	u64 low;
};

/**
 * struct qrdma_pool_ops - what a pool tells its creator
 * @resume: the pool was under its low mark (or had refused a buffer) and has recovered. Any
 *	context, pool lock held: may queue a work item and no more. Not called any more once
 *	qrdma_pool_retire() or qrdma_pool_close() has returned.
 */
struct qrdma_pool_ops {
	void (*resume)(void *arg);
};

/**
 * qrdma_pool_create() - a pool of receive or send buffers
 * @item_size: sizeof(struct qrdma_rxbuf) or sizeof(struct qrdma_txbuf)
 * @first: buffers to be made at once, at least twice @low: when no memory can be had for more, so
 *	many are out, and one of them will come back
 * @max: buffers that it may hold
 * @low: below this many buffers left the pool is low (qrdma_pool_is_low()), until twice as many
 *	are left
 * @node: NUMA node of the memory
 * @ops: upward calls
 * @arg: their argument
 *
 * The other buffers are made when they are first asked for; when more than a quarter of @max is not
 * in use, what comes back beyond goes back to the system.
 *
 * Context: may sleep.
 * Return: the pool or NULL.
 */
struct qrdma_pool *qrdma_pool_create(size_t item_size, u32 first, u32 max, u32 low, int node,
				     const struct qrdma_pool_ops *ops, void *arg);

/**
 * qrdma_pool_retire() - no upward calls any more, and no buffers kept
 * @pool: pool or NULL
 *
 * The creator still refers to the pool, but has stopped taking buffers; those that are out come
 * back and are freed. On return ops->resume() neither runs nor will.
 */
void qrdma_pool_retire(struct qrdma_pool *pool);

/**
 * qrdma_pool_close() - the creator is done with it
 * @pool: pool or NULL
 *
 * Buffers that are out come back later, from anybody; the last one takes the pool with it.
 */
void qrdma_pool_close(struct qrdma_pool *pool);

/**
 * qrdma_pool_get_rx() - take a receive buffer
 * @pool: pool of such
 *
 * Return: a buffer with one reference on its @buf, whose length is QRDMA_UD_MAX; NULL when there
 * is none.
 */
struct qrdma_rxbuf *qrdma_pool_get_rx(struct qrdma_pool *pool);

/**
 * qrdma_pool_get_tx() - take a send buffer
 * @pool: pool of such
 * @reserve: leave this many for others
 *
 * Return: a buffer with one reference; NULL when there is none, then ops->resume() comes later.
 */
struct qrdma_txbuf *qrdma_pool_get_tx(struct qrdma_pool *pool, u32 reserve);

/** qrdma_txbuf_put() - drop a reference, the last one gives the buffer back. Any context. */
void qrdma_txbuf_put(struct qrdma_txbuf *tx);

/** qrdma_pool_is_low() - under the low mark and not recovered yet? Any context, lockless. */
bool qrdma_pool_is_low(const struct qrdma_pool *pool);

/** qrdma_pool_is_tight() - under three times the low mark? Any context, lockless, a snapshot. */
bool qrdma_pool_is_tight(const struct qrdma_pool *pool);

/** qrdma_pool_stats() - fill @stats. Any context. */
void qrdma_pool_stats(struct qrdma_pool *pool, struct qrdma_pool_stats *stats);

/**
 * qrdma_pool_wait_all() - wait until each pool that was ever made is gone
 *
 * For module exit, after everybody who could hold a buffer has been stopped: the release
 * functions live in this module.
 * Context: may sleep. Complains every ten seconds.
 */
void qrdma_pool_wait_all(void);

#endif /* QRDMA_POOL_H */
