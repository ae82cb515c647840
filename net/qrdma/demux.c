// SPDX-License-Identifier: GPL-2.0
/*
 * From a destination connection id to its socket. See demux.h.
 */
#include <linux/random.h>
#include <linux/rhashtable.h>
#include <linux/siphash.h>

#include "demux.h"

static struct rhashtable demux_table;
static struct rhashtable demux_tokens;
static siphash_key_t demux_token_key __read_mostly;
/* of ids that clients have chosen; the bytes behind an id's end are zero */
static struct rhashtable demux_first_table;

/* The hash is keyed with a secret of its own, so chosen ids do not make long chains. */
static const struct rhashtable_params demux_params = {
	.key_len = QRDMA_CID_LEN,
	.key_offset = offsetof(struct qrdma_sock, cid),
	.head_offset = offsetof(struct qrdma_sock, cid_node),
	.automatic_shrinking = true,
};

static const struct rhashtable_params demux_token_params = {
	.key_len = sizeof_field(struct qrdma_sock, token_hash),
	.key_offset = offsetof(struct qrdma_sock, token_hash),
	.head_offset = offsetof(struct qrdma_sock, token_node),
	.automatic_shrinking = true,
};

static const struct rhashtable_params demux_first_params = {
	.key_len = sizeof(struct qrdma_cid),
	.key_offset = offsetof(struct qrdma_inband, first),
	.head_offset = offsetof(struct qrdma_inband, first_node),
	.automatic_shrinking = true,
};

int qrdma_demux_start(void)
{
	int err = rhashtable_init(&demux_table, &demux_params);

	if (err)
		return err;
	get_random_bytes(&demux_token_key, sizeof(demux_token_key));
	err = rhashtable_init(&demux_tokens, &demux_token_params);
	if (err)
		goto err_table;
	err = rhashtable_init(&demux_first_table, &demux_first_params);
	if (err)
		goto err_tokens;
	return 0;

err_tokens:
	rhashtable_destroy(&demux_tokens);
err_table:
	rhashtable_destroy(&demux_table);
	return err;
}

void qrdma_demux_stop(void)
{
	rhashtable_destroy(&demux_tokens);
	rhashtable_destroy(&demux_first_table);
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

static u64 demux_token_hash(const u8 *token)
{
	/* 0 stands for none */
	return siphash(token, QRDMA_RESET_TOKEN_LEN, &demux_token_key) ?: 1;
}

void qrdma_demux_set_token(struct qrdma_sock *qs, const u8 *token)
{
	u64 hash = token ? demux_token_hash(token) : 0;

	if (qs->token_hash == hash)
		return;
	if (qs->token_hash)
		rhashtable_remove_fast(&demux_tokens, &qs->token_node, demux_token_params);
	qs->token_hash = hash;
	if (hash && rhashtable_lookup_insert_fast(&demux_tokens, &qs->token_node,
						  demux_token_params))
		qs->token_hash = 0;
}

static struct qrdma_sock *demux_find(struct rhashtable *table, const void *key,
				     const struct rhashtable_params params)
{
	struct qrdma_sock *qs;

	rcu_read_lock();
	qs = rhashtable_lookup(table, key, params);
	if (qs && !refcount_inc_not_zero(&qs->sk.sk_refcnt))
		qs = NULL;
	rcu_read_unlock();
	return qs;
}

struct qrdma_sock *qrdma_demux_find_token(const u8 *tail)
{
	u64 hash = demux_token_hash(tail);

	return demux_find(&demux_tokens, &hash, demux_token_params);
}

struct qrdma_sock *qrdma_demux_find(const u8 *cid)
{
	return demux_find(&demux_table, cid, demux_params);
}

int qrdma_demux_insert_first(struct qrdma_inband *inband)
{
	int err = rhashtable_lookup_insert_fast(&demux_first_table, &inband->first_node,
						demux_first_params);

	return err == -EEXIST ? -EADDRINUSE : err;
}

void qrdma_demux_remove_first(struct qrdma_inband *inband)
{
	rhashtable_remove_fast(&demux_first_table, &inband->first_node, demux_first_params);
}

struct qrdma_sock *qrdma_demux_find_first(const u8 *cid, u32 len)
{
	struct qrdma_sock *qs = NULL;
	struct qrdma_inband *inband;
	struct qrdma_cid key;

	if (len > sizeof(key.data))
		return NULL;
	qrdma_cid_set(&key, cid, len);
	rcu_read_lock();
	inband = rhashtable_lookup(&demux_first_table, &key, demux_first_params);
	if (inband && refcount_inc_not_zero(&inband->qs->sk.sk_refcnt))
		qs = inband->qs;
	rcu_read_unlock();
	return qs;
}

void qrdma_demux_walk_enter(struct rhashtable_iter *iter)
{
	rhashtable_walk_enter(&demux_table, iter);
}

struct qrdma_sock *qrdma_demux_walk_next(struct rhashtable_iter *iter)
{
	struct qrdma_sock *qs;

	rhashtable_walk_start(iter);
	do {
		qs = rhashtable_walk_next(iter);
		/* -EAGAIN: the table was made anew, the walk begins again */
	} while (IS_ERR(qs) || (qs && !refcount_inc_not_zero(&qs->sk.sk_refcnt)));
	rhashtable_walk_stop(iter);
	return qs;
}

void qrdma_demux_walk_exit(struct rhashtable_iter *iter)
{
	rhashtable_walk_exit(iter);
}
