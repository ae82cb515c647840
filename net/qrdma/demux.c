// SPDX-License-Identifier: GPL-2.0
/*
 * From a destination connection id to its socket. See demux.h.
 */
#include <linux/rhashtable.h>

#include "demux.h"

static struct rhashtable demux_table;

/* The hash is keyed with a secret of its own, so chosen ids do not make long chains. */
static const struct rhashtable_params demux_params = {
	.key_len = QRDMA_CID_LEN,
	.key_offset = offsetof(struct qrdma_sock, cid),
	.head_offset = offsetof(struct qrdma_sock, cid_node),
	.automatic_shrinking = true,
};

int qrdma_demux_start(void)
{
	return rhashtable_init(&demux_table, &demux_params);
}

void qrdma_demux_stop(void)
{
	rhashtable_destroy(&demux_table);
}

int qrdma_demux_insert(struct qrdma_sock *qs)
{
	int err = rhashtable_lookup_insert_fast(&demux_table, &qs->cid_node, demux_params);

	return err == -EEXIST ? -EADDRINUSE : err;
}

void qrdma_demux_remove(struct qrdma_sock *qs)
{
	rhashtable_remove_fast(&demux_table, &qs->cid_node, demux_params);
}

struct qrdma_sock *qrdma_demux_find(const u8 *cid)
{
	struct qrdma_sock *qs;

	rcu_read_lock();
	qs = rhashtable_lookup(&demux_table, cid, demux_params);
	if (qs && !refcount_inc_not_zero(&qs->sk.sk_refcnt))
		qs = NULL;
	rcu_read_unlock();
	return qs;
}
