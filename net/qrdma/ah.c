// SPDX-License-Identifier: GPL-2.0
/*
 * Address handles. See ah.h for what is owned, who calls, and the two counts.
 */
#include <linux/etherdevice.h>
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <net/inet_ecn.h>
#include <rdma/ib_cache.h>

#include "ah.h"

static void domain_work(struct work_struct *work)
{
	struct qrdma_ah_domain *domain = container_of(work, struct qrdma_ah_domain, work);
	struct qrdma_ah *ah, *next;
	unsigned long flags;
	LIST_HEAD(dead);

	spin_lock_irqsave(&domain->lock, flags);
	list_splice_init(&domain->dead, &dead);
	spin_unlock_irqrestore(&domain->lock, flags);

	list_for_each_entry_safe(ah, next, &dead, node) {
		rdma_destroy_ah(ah->ibah, RDMA_DESTROY_AH_SLEEPABLE);
		qrdma_ah_put(ah);
		if (atomic_dec_and_test(&domain->live))
			wake_up_all(&domain->empty);
	}
}

void qrdma_ah_domain_start(struct qrdma_ah_domain *domain, struct ib_pd *pd,
			   struct workqueue_struct *wq)
{
	domain->pd = pd;
	domain->wq = wq;
	spin_lock_init(&domain->lock);
	INIT_LIST_HEAD(&domain->dead);
	INIT_WORK(&domain->work, domain_work);
	init_waitqueue_head(&domain->empty);
}

void qrdma_ah_domain_stop(struct qrdma_ah_domain *domain)
{
	while (!wait_event_timeout(domain->empty, !atomic_read(&domain->live), 10 * HZ))
		pr_err("qrdma: waiting for %d address handles\n", atomic_read(&domain->live));
	/* The work item that woke us may still be running. */
	cancel_work_sync(&domain->work);
}

/* Process context, @domain->live counts it already. Three references: slot, ib_ah, caller. */
static struct qrdma_ah *ah_create(struct qrdma_ah_domain *domain, struct rdma_ah_attr *attr)
{
	struct qrdma_ah *ah = kzalloc(sizeof(*ah), GFP_KERNEL);
	int err = -ENOMEM;

	if (!ah)
		goto fail;
	refcount_set(&ah->refs, 3);
	refcount_set(&ah->uses, 1);
	ah->flow_label = attr->grh.flow_label;
	ah->domain = domain;
	ah->ibah = rdma_create_ah(domain->pd, attr, RDMA_CREATE_AH_SLEEPABLE);
	if (IS_ERR(ah->ibah)) {
		err = PTR_ERR(ah->ibah);
		kfree(ah);
		goto fail;
	}
	atomic64_inc(&domain->created);
	return ah;
fail:
	atomic64_inc(&domain->failed);
	if (atomic_dec_and_test(&domain->live))
		wake_up_all(&domain->empty);
	return ERR_PTR(err);
}

void qrdma_ah_cache_init(struct qrdma_ah_cache *cache, struct qrdma_ah_domain *domain,
			 const struct rdma_ah_attr *attr)
{
	memset(cache, 0, sizeof(*cache));
	spin_lock_init(&cache->lock);
	cache->domain = domain;
	rdma_copy_ah_attr(&cache->attr, attr);
}

void qrdma_ah_cache_revoke(struct qrdma_ah_cache *cache)
{
	struct qrdma_ah *ah[QRDMA_AH_SLOTS];
	struct rdma_ah_attr attr;
	int i;

	spin_lock_bh(&cache->lock);
	if (cache->revoked) {
		spin_unlock_bh(&cache->lock);
		return;
	}
	cache->revoked = true;
	memcpy(ah, cache->ah, sizeof(ah));
	memset(cache->ah, 0, sizeof(cache->ah));
	attr = cache->attr;
	memset(&cache->attr, 0, sizeof(cache->attr));
	spin_unlock_bh(&cache->lock);

	for (i = 0; i < QRDMA_AH_SLOTS; i++) {
		if (!ah[i])
			continue;
		WRITE_ONCE(ah[i]->revoked, true);
		qrdma_ah_unuse(ah[i]);
		qrdma_ah_put(ah[i]);
	}
	rdma_destroy_ah_attr(&attr);
}

bool qrdma_ah_cache_check(struct qrdma_ah_cache *cache)
{
	bool valid = false;

	spin_lock_bh(&cache->lock);
	if (!cache->revoked) {
		rcu_read_lock();
		valid = !IS_ERR(rdma_read_gid_attr_ndev_rcu(cache->attr.grh.sgid_attr));
		rcu_read_unlock();
	}
	spin_unlock_bh(&cache->lock);
	return valid;
}

bool qrdma_ah_cache_leads_to(struct qrdma_ah_cache *cache, const u8 *dmac)
{
	bool same;

	spin_lock_bh(&cache->lock);
	same = !cache->revoked && ether_addr_equal_unaligned(cache->attr.roce.dmac, dmac);
	spin_unlock_bh(&cache->lock);
	return same;
}

bool qrdma_ah_cache_same(struct qrdma_ah_cache *cache, const struct rdma_ah_attr *attr)
{
	bool same;

	spin_lock_bh(&cache->lock);
	same = !cache->revoked && cache->attr.grh.sgid_attr == attr->grh.sgid_attr &&
	       !memcmp(&cache->attr.grh.dgid, &attr->grh.dgid, sizeof(attr->grh.dgid)) &&
	       ether_addr_equal_unaligned(cache->attr.roce.dmac, attr->roce.dmac) &&
	       cache->attr.grh.traffic_class == attr->grh.traffic_class &&
	       cache->attr.sl == attr->sl;
	spin_unlock_bh(&cache->lock);
	return same;
}

/* A device that has no more of them need not stop a connection: it shares. */
static struct qrdma_ah *cache_any(struct qrdma_ah_cache *cache, u32 slot, struct qrdma_ah *none)
{
	struct qrdma_ah **like = &cache->ah[slot & QRDMA_AH_PER_PEER];
	int i;

	for (i = 0; i < QRDMA_AH_PER_PEER; i++)
		if (like[i])
			return qrdma_ah_get(like[i]);
	return none;
}

/* cache->lock is held. NULL: not there yet. */
static struct qrdma_ah *cache_find(struct qrdma_ah_cache *cache, u32 slot)
{
	if (cache->revoked)
		return ERR_PTR(-ESTALE);
	return cache->ah[slot] ? qrdma_ah_get(cache->ah[slot]) : NULL;
}

/* Into its slot, unless somebody was faster or the path is not valid any more. */
static struct qrdma_ah *cache_add(struct qrdma_ah_cache *cache, u32 slot, struct qrdma_ah *made)
{
	struct qrdma_ah *ah;

	spin_lock_bh(&cache->lock);
	ah = cache_find(cache, slot);
	if (!ah && IS_ERR(made)) {
		ah = cache_any(cache, slot, made);
	} else if (!ah) {
		cache->ah[slot] = made;
		ah = made;
	}
	spin_unlock_bh(&cache->lock);
	if (ah != made && !IS_ERR(made)) {
		qrdma_ah_unuse(made);
		qrdma_ah_put(made);
		qrdma_ah_put(made);
	}
	return ah;
}

/*
 * The object is made without a lock: the device's own locks are of those that process context
 * takes with bottom halves on.
 */
struct qrdma_ah *qrdma_ah_cache_get(struct qrdma_ah_cache *cache, u32 flow_label, bool ect)
{
	u32 slot = hash_32(flow_label, ilog2(QRDMA_AH_PER_PEER)) + ect * QRDMA_AH_PER_PEER;
	struct rdma_ah_attr attr;
	struct qrdma_ah *ah;

	spin_lock_bh(&cache->lock);
	ah = cache_find(cache, slot);
	if (!ah) {
		/* Before the object: who revokes and then waits for 0 must not miss one. */
		atomic_inc(&cache->domain->live);
		rdma_copy_ah_attr(&attr, &cache->attr);
	}
	spin_unlock_bh(&cache->lock);
	if (ah)
		return ah;
	attr.grh.flow_label = flow_label & IB_GRH_FLOWLABEL_MASK;
	attr.grh.traffic_class &= ~INET_ECN_MASK;
	if (ect)
		attr.grh.traffic_class |= INET_ECN_ECT_0;
	ah = ah_create(cache->domain, &attr);
	rdma_destroy_ah_attr(&attr);
	return cache_add(cache, slot, ah);
}

void qrdma_ah_put(struct qrdma_ah *ah)
{
	if (ah && refcount_dec_and_test(&ah->refs))
		kfree(ah);
}

bool qrdma_ah_use(struct qrdma_ah *ah)
{
	return !READ_ONCE(ah->revoked) && refcount_inc_not_zero(&ah->uses);
}

void qrdma_ah_unuse(struct qrdma_ah *ah)
{
	struct qrdma_ah_domain *domain = ah->domain;
	unsigned long flags;

	if (!refcount_dec_and_test(&ah->uses))
		return;
	/*
	 * Queued with the lock held: the worker, which has to take the lock first, cannot finish
	 * the last handle and let the domain go while we are still about to queue it.
	 */
	spin_lock_irqsave(&domain->lock, flags);
	list_add_tail(&ah->node, &domain->dead);
	queue_work(domain->wq, &domain->work);
	spin_unlock_irqrestore(&domain->lock, flags);
}
