/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Address handles: a few per peer, one per group of flow labels. Replaced, never edited.
 *
 * Owns: the ib_ah objects, and the peer's address attribute with the GID reference in it.
 * Called by: peer.c (cache), lane.c (use), datapath (put).
 *
 * Two counts. @refs keeps the memory. @uses keeps the ib_ah: one for being alive, one for each
 * send that is posted with it. Revoking takes away the first; so the ib_ah goes when its last
 * posted send has completed, whatever references are still held, and a device can leave without
 * asking anybody. Destruction happens in a worker as it may sleep.
 *
 * Locks: cache->lock (innermost but for the pool's), taken from any context with bottom halves
 * off.
 */
#ifndef QRDMA_AH_H
#define QRDMA_AH_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

/** enum - bounds */
enum {
	QRDMA_AH_PER_PEER = 16,	/* paths per peer; a power of two */
	QRDMA_AH_SLOTS = 2 * QRDMA_AH_PER_PEER,	/* handles: each path as Not-ECT and as ECT(0) */
};

/**
 * struct qrdma_ah_domain - the address handles of one port
 * @pd: protection domain that they live in
 * @wq: where they are destroyed
 * @work: destroys what is on @dead
 * @lock: guards @dead; innermost; taken in any context
 * @dead: handles that nobody uses any more
 * @live: number of ib_ah objects
 * @created: how many there ever were
 * @failed: times that the device refused one
 * @empty: woken when @live reaches 0
 *
 * Owned by: struct qrdma_device. Dies: after qrdma_ah_domain_stop().
 */
struct qrdma_ah_domain {
	struct ib_pd *pd;
	struct workqueue_struct *wq;
	struct work_struct work;
	spinlock_t lock;	/* guards dead */
	struct list_head dead;
	atomic_t live;
	atomic64_t created;
	atomic64_t failed;
	wait_queue_head_t empty;
};

/**
 * struct qrdma_ah - an address handle
 * @refs: memory
 * @uses: the ib_ah: alive + posted sends
 * @revoked: not to be posted with any more
 * @flow_label: flow label in it (20 bits)
 * @ibah: what the device knows
 * @domain: valid while @uses is not 0
 * @node: on domain->dead
 *
 * Found by: (cache, flow label). Owned by: its cache slot, connections and queued buffers
 * (@refs).
 */
struct qrdma_ah {
	refcount_t refs;
	refcount_t uses;
	bool revoked;
	u32 flow_label;
	struct ib_ah *ibah;
	struct qrdma_ah_domain *domain;
	struct list_head node;
};

/**
 * struct qrdma_ah_cache - all handles towards one peer
 * @lock: guards @ah, @revoked, @attr; taken with bottom halves off
 * @domain: of the port
 * @revoked: no handle is given out any more, @attr is destroyed
 * @attr: path to the peer; holds a GID reference until revoked
 * @ah: by hash of the flow label; those that mark ECT(0) behind the others
 *
 * Owned by: struct qrdma_peer.
 */
struct qrdma_ah_cache {
	spinlock_t lock;	/* guards all of it */
	struct qrdma_ah_domain *domain;
	bool revoked;
	struct rdma_ah_attr attr;
	struct qrdma_ah *ah[QRDMA_AH_SLOTS];
};

/** qrdma_ah_domain_start() - before the first cache. Cannot fail. */
void qrdma_ah_domain_start(struct qrdma_ah_domain *domain, struct ib_pd *pd,
			   struct workqueue_struct *wq);

/**
 * qrdma_ah_domain_stop() - wait until the last ib_ah is destroyed
 * @domain: of the port
 *
 * The caller has revoked all caches and closed all lanes, so that no handle is in use nor can
 * come into use.
 * Context: may sleep.
 */
void qrdma_ah_domain_stop(struct qrdma_ah_domain *domain);

/**
 * qrdma_ah_cache_init() - no handle yet
 * @cache: to be filled
 * @domain: of the port
 * @attr: path; copied, and the copy takes a GID reference of its own
 *
 * Context: any but hard interrupt.
 */
void qrdma_ah_cache_init(struct qrdma_ah_cache *cache, struct qrdma_ah_domain *domain,
			 const struct rdma_ah_attr *attr);

/**
 * qrdma_ah_cache_revoke() - the path is not valid any more, or the peer goes
 * @cache: of the peer
 *
 * Afterwards no handle of this cache is posted with, and the GID reference is dropped.
 * Idempotent.
 * Context: process.
 */
void qrdma_ah_cache_revoke(struct qrdma_ah_cache *cache);

/** qrdma_ah_cache_check() - not revoked, and its GID still exists? Any context but hardirq. */
bool qrdma_ah_cache_check(struct qrdma_ah_cache *cache);

/** qrdma_ah_cache_leads_to() - not revoked, and that is the next hop? Any context but hardirq. */
bool qrdma_ah_cache_leads_to(struct qrdma_ah_cache *cache, const u8 *dmac);

/** qrdma_ah_cache_same() - not revoked, and the same path? Any context but hardirq. */
bool qrdma_ah_cache_same(struct qrdma_ah_cache *cache, const struct rdma_ah_attr *attr);

/**
 * qrdma_ah_cache_get() - the handle for a flow label
 * @cache: of the peer
 * @ect: packets sent with it are marked ECT(0) (RFC 3168)
 * @flow_label: 20 bits, a hint: labels that fall into the same of QRDMA_AH_PER_PEER groups share
 *	a handle
 *
 * Context: process, may sleep.
 * Return: handle with a reference, or ERR_PTR: -ESTALE (cache revoked), -ENOMEM and what else the
 * device says.
 */
struct qrdma_ah *qrdma_ah_cache_get(struct qrdma_ah_cache *cache, u32 flow_label, bool ect);

/** qrdma_ah_get() - one more reference. Any context. */
static inline struct qrdma_ah *qrdma_ah_get(struct qrdma_ah *ah)
{
	refcount_inc(&ah->refs);
	return ah;
}

/** qrdma_ah_put() - drop a reference; NULL is fine. Any context. */
void qrdma_ah_put(struct qrdma_ah *ah);

/** qrdma_ah_is_revoked() - would a send with it be refused? */
static inline bool qrdma_ah_is_revoked(const struct qrdma_ah *ah)
{
	return READ_ONCE(ah->revoked);
}

/** qrdma_ah_use() - a send will be posted with it; false: revoked. Lane only. Any context. */
bool qrdma_ah_use(struct qrdma_ah *ah);

/** qrdma_ah_unuse() - that send has completed. Lane only. Any context. */
void qrdma_ah_unuse(struct qrdma_ah *ah);

#endif /* QRDMA_AH_H */
