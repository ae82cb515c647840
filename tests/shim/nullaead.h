/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An AEAD port without secrets for tests, simulator and fuzzers: authenticates with a cheap keyed
 * hash, hides nothing. What it must catch it catches: a changed bit anywhere, a wrong key, a wrong
 * packet number.
 *
 * Owns: its slots. Used by: one test program at a time, single threaded. Works in userspace and
 * under KUnit: only names of env.h.
 *
 * Asynchronous operation: set null_aead_defer. It is asked for every operation, keeps the pointer
 * and returns true to have it answered -EINPROGRESS; null_aead_run() ends it later.
 */
#ifndef QRDMA_TESTS_NULLAEAD_H
#define QRDMA_TESTS_NULLAEAD_H

#include "keys.h"
#include "cursor.h"

struct qrdma_slot {
	refcount_t refs;
	u32 cipher;
	u64 secret;
	u64 key;
	u64 hp;
};

static __maybe_unused bool (*null_aead_defer)(struct qrdma_aead_op *op, bool seal);
static __maybe_unused int null_aead_fail;	/* error of every operation, for tests */

static inline u64 null_mix(u64 h, u64 v)
{
	h = (h ^ v) * 0x9fb21c651e98df25ULL;
	return h ^ h >> 29;
}

static inline u64 null_hash(u64 h, const u8 *p, size_t len)
{
	u64 v;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&v, p, 8);
		h = null_mix(h, v);
	}
	v = len;
	while (len--)
		v = v << 8 | *p++;
	return null_mix(h, v);
}

static inline int null_slot_make(u32 cipher, u64 secret, u64 hp, struct qrdma_slot **slot)
{
	struct qrdma_slot *s = kmalloc(sizeof(*s), GFP_ATOMIC);

	if (!s)
		return -ENOMEM;
	refcount_set(&s->refs, 1);
	s->cipher = cipher;
	s->secret = secret;
	s->key = null_mix(secret, 0x6b6579);
	s->hp = hp ? hp : null_mix(secret, 0x6870);
	*slot = s;
	return 0;
}

static inline int null_slot_new(u32 cipher, const u8 *secret, u32 len, struct qrdma_slot **slot)
{
	if (len < 16 || len > QRDMA_SECRET_MAX)
		return -EINVAL;
	return null_slot_make(cipher, null_hash(1, secret, len), 0, slot);
}

static inline int null_slot_next(struct qrdma_slot *cur, struct qrdma_slot **slot)
{
	return null_slot_make(cur->cipher, null_mix(cur->secret, 0x6b75), cur->hp, slot);
}

static inline void null_slot_get(struct qrdma_slot *slot)
{
	refcount_inc(&slot->refs);
}

static inline void null_slot_put(struct qrdma_slot *slot)
{
	if (slot && refcount_dec_and_test(&slot->refs))
		kfree(slot);
}

static inline bool null_slot_same(struct qrdma_slot *slot, u32 cipher, const u8 *secret, u32 len)
{
	return slot->cipher == cipher && slot->secret == null_hash(1, secret, len);
}

static inline void null_tag(const struct qrdma_aead_op *op, u32 len, u8 *tag)
{
	u64 h = null_mix(op->slot->key, op->pn);

	h = null_hash(h, op->pkt, op->hdr_len);
	h = null_hash(h, op->pkt + op->hdr_len, len);
	qrdma_store_be64(tag, h);
	qrdma_store_be64(tag + 8, ~h);
}

static inline int null_seal_now(struct qrdma_aead_op *op)
{
	u8 *out = op->pkt + op->hdr_len;
	u32 i, sum = 0;

	for (i = 0; i < op->nseg; i++) {
		const struct qrdma_seg *seg = &op->seg[i];

		/* the contract of the port: in place or apart */
		if (seg->data != out &&
		    WARN_ON(seg->data + seg->len > op->pkt &&
			    seg->data < op->pkt + op->hdr_len + op->payload_len + QRDMA_TAG_LEN))
			return -EINVAL;
		if (seg->data != out)
			memcpy(out, seg->data, seg->len);
		out += seg->len;
		sum += seg->len;
	}
	if (WARN_ON(sum != op->payload_len || op->nseg > QRDMA_SEG_MAX))
		return -EINVAL;
	null_tag(op, op->payload_len, out);
	return 0;
}

static inline int null_open_now(struct qrdma_aead_op *op)
{
	u32 len = op->payload_len - QRDMA_TAG_LEN;
	u8 tag[QRDMA_TAG_LEN];

	if (op->payload_len < QRDMA_TAG_LEN)
		return -EBADMSG;
	null_tag(op, len, tag);
	return memcmp(tag, op->pkt + op->hdr_len + len, QRDMA_TAG_LEN) ? -EBADMSG : 0;
}

static inline int null_seal(struct qrdma_aead_op *op)
{
	if (null_aead_fail)
		return null_aead_fail;
	if (null_aead_defer && null_aead_defer(op, true))
		return -EINPROGRESS;
	return null_seal_now(op);
}

static inline int null_open(struct qrdma_aead_op *op)
{
	if (null_aead_fail)
		return null_aead_fail;
	if (null_aead_defer && null_aead_defer(op, false))
		return -EINPROGRESS;
	return null_open_now(op);
}

static inline int null_hp_mask(struct qrdma_slot *slot, const u8 *sample, u8 *mask)
{
	u64 h = null_hash(slot->hp, sample, QRDMA_SAMPLE_LEN);

	memcpy(mask, &h, QRDMA_HP_MASK_LEN);
	return 0;
}

static const struct qrdma_aead_ops null_aead = {
	.slot_new	= null_slot_new,
	.slot_next	= null_slot_next,
	.slot_get	= null_slot_get,
	.slot_put	= null_slot_put,
	.slot_same	= null_slot_same,
	.seal		= null_seal,
	.open		= null_open,
	.hp_mask	= null_hp_mask,
};

/* A deferred operation ends now; calls its done(). */
static inline void null_aead_run(struct qrdma_aead_op *op, bool seal)
{
	op->done(op, seal ? null_seal_now(op) : null_open_now(op));
}

#endif /* QRDMA_TESTS_NULLAEAD_H */
