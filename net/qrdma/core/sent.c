// SPDX-License-Identifier: GPL-2.0
/*
 * Records of sent packets in a ring of chunks, indexed by packet number.
 *
 * Owns: the memory of the records. Called by: recovery.c, in any context (GFP_ATOMIC), serialised
 * by the caller.
 *
 * A chunk number is pn / QRDMA_SENT_CHUNK, its slot is that modulo the size of the directory. The
 * chunks from that of base to that of next - 1 never span more than the directory has slots, so
 * no two of them share one; a slot outside of that span is empty.
 */
#include "sent.h"

#define SENT_CHUNK_BYTES	(QRDMA_SENT_CHUNK * sizeof(struct qrdma_sent))
#define SENT_MAP_BITS		64

static u64 sent_chunk(u64 pn)
{
	return pn / QRDMA_SENT_CHUNK;
}

static u32 sent_index(u64 pn)
{
	return pn % QRDMA_SENT_CHUNK;
}

static u32 sent_pos(const struct qrdma_sent_ring *ring, u64 chunk)
{
	return chunk & (ring->slots - 1);
}

static struct qrdma_sent_slot *sent_slot(const struct qrdma_sent_ring *ring, u64 pn)
{
	return &ring->slot[sent_pos(ring, sent_chunk(pn))];
}

static u32 sent_map_words(u32 slots)
{
	return DIV_ROUND_UP(slots, SENT_MAP_BITS);
}

void qrdma_sent_ring_init(struct qrdma_sent_ring *ring)
{
	memset(ring, 0, sizeof(*ring));
}

void qrdma_sent_ring_clear(struct qrdma_sent_ring *ring)
{
	u32 i;

	for (i = 0; i < ring->slots; i++)
		kfree(ring->slot[i].rec);
	kfree(ring->slot);
	kfree(ring->map);
	kfree(ring->spare);
	ring->slot = NULL;
	ring->map = NULL;
	ring->spare = NULL;
	ring->slots = 0;
	ring->chunks = 0;
	ring->base = ring->next;
}

/* A bigger directory, the chunks in their new places. */
static int sent_grow(struct qrdma_sent_ring *ring, u32 slots)
{
	struct qrdma_sent_slot *slot = kcalloc(slots, sizeof(*slot), GFP_ATOMIC);
	u64 *map = kcalloc(sent_map_words(slots), sizeof(*map), GFP_ATOMIC);
	u64 chunk = sent_chunk(ring->base);
	u32 i;

	if (!slot || !map) {
		kfree(map);
		kfree(slot);
		return -ENOMEM;
	}
	for (i = 0; i < ring->slots; i++, chunk++) {
		const struct qrdma_sent_slot *from = &ring->slot[sent_pos(ring, chunk)];
		u32 to = chunk & (slots - 1);

		slot[to] = *from;
		if (from->live)
			map[to / SENT_MAP_BITS] |= BIT_ULL(to % SENT_MAP_BITS);
	}
	kfree(ring->slot);
	kfree(ring->map);
	ring->slot = slot;
	ring->map = map;
	ring->slots = slots;
	return 0;
}

/* One chunk goes round, any further is given back. */
static void sent_release(struct qrdma_sent_ring *ring, struct qrdma_sent_slot *slot)
{
	if (!slot->rec)
		return;
	if (!ring->spare) {
		ring->spare = slot->rec;
	} else {
		kfree(slot->rec);
		ring->chunks--;
	}
	slot->rec = NULL;
}

static int sent_provide(struct qrdma_sent_ring *ring, struct qrdma_sent_slot *slot)
{
	u32 i;

	if (slot->rec)
		return 0;
	slot->rec = ring->spare;
	ring->spare = NULL;
	if (!slot->rec) {
		slot->rec = kmalloc(SENT_CHUNK_BYTES, GFP_ATOMIC);
		if (!slot->rec)
			return -ENOMEM;
		ring->chunks++;
	}
	for (i = 0; i < QRDMA_SENT_CHUNK; i++)
		slot->rec[i].state = QRDMA_SENT_NONE;
	slot->live = 0;
	return 0;
}

/* No record below @base is live: give back the chunks that lie below it entirely. */
static void sent_advance(struct qrdma_sent_ring *ring, u64 base)
{
	u64 from = sent_chunk(ring->base), to = sent_chunk(base);
	u32 n = min_t(u64, to - from, ring->slots);

	while (n--)
		sent_release(ring, &ring->slot[sent_pos(ring, from++)]);
	ring->base = base;
}

/* Nothing is live: let the ring begin at @pn, whatever was reserved before. */
static void sent_rebase(struct qrdma_sent_ring *ring, u64 pn)
{
	u32 i;

	if (pn >= ring->base) {
		sent_advance(ring, pn);
		return;
	}
	for (i = 0; i < ring->slots; i++)
		sent_release(ring, &ring->slot[i]);
	ring->base = pn;
}

/* Make the directory wide enough for @pn. */
static int sent_reach(struct qrdma_sent_ring *ring, u64 pn)
{
	u32 slots = max_t(u32, ring->slots, QRDMA_SENT_SLOTS_MIN);
	u64 span;

	if (pn < ring->next)
		return -EINVAL;
	if (ring->base >= ring->next)
		sent_rebase(ring, pn);

	span = sent_chunk(pn) - sent_chunk(ring->base) + 1;
	if (span > QRDMA_SENT_SLOTS_MAX)
		return -ENOBUFS;
	while (slots < span)
		slots *= 2;
	return slots == ring->slots ? 0 : sent_grow(ring, slots);
}

int qrdma_sent_ring_reserve(struct qrdma_sent_ring *ring, u64 pn)
{
	int err;

	BUILD_BUG_ON(sizeof(struct qrdma_sent) > 128);
	err = sent_reach(ring, pn);
	return err ? err : sent_provide(ring, sent_slot(ring, pn));
}

int qrdma_sent_ring_pass(struct qrdma_sent_ring *ring, u64 pn)
{
	int err = sent_reach(ring, pn);

	if (!err)
		ring->next = pn + 1;
	return err;
}

struct qrdma_sent *qrdma_sent_ring_push(struct qrdma_sent_ring *ring, u64 pn)
{
	struct qrdma_sent_slot *slot;
	struct qrdma_sent *rec;
	u32 pos;

	if (WARN_ON_ONCE(pn < ring->next || !ring->slots ||
			 sent_chunk(pn) - sent_chunk(ring->base) >= ring->slots))
		return NULL;
	slot = sent_slot(ring, pn);
	if (WARN_ON_ONCE(!slot->rec))
		return NULL;

	pos = sent_pos(ring, sent_chunk(pn));
	rec = &slot->rec[sent_index(pn)];
	memset(rec, 0, offsetof(struct qrdma_sent, frame));
	rec->pn = pn;
	rec->state = QRDMA_SENT_OUT;
	slot->live |= BIT(sent_index(pn));
	ring->map[pos / SENT_MAP_BITS] |= BIT_ULL(pos % SENT_MAP_BITS);
	ring->next = pn + 1;
	return rec;
}

struct qrdma_sent *qrdma_sent_ring_find(const struct qrdma_sent_ring *ring, u64 pn)
{
	struct qrdma_sent *rec;

	if (pn < ring->base || pn >= ring->next)
		return NULL;
	rec = sent_slot(ring, pn)->rec;
	if (!rec)
		return NULL;
	rec += sent_index(pn);
	return rec->state == QRDMA_SENT_NONE ? NULL : rec;
}

/* Largest chunk number from @chunk down to @end with live records; false: there is none. */
static bool sent_chunk_down(const struct qrdma_sent_ring *ring, u64 *chunk, u64 end)
{
	u64 at = *chunk;

	for (;;) {
		u32 pos = sent_pos(ring, at), bit = pos % SENT_MAP_BITS;
		u64 word = ring->map[pos / SENT_MAP_BITS] & GENMASK_ULL(bit, 0);
		u64 back = word ? bit + 1 - fls64(word) : bit + 1;

		if (at - end < back)
			return false;
		at -= back;
		if (word)
			break;
	}
	*chunk = at;
	return true;
}

/* Smallest chunk number from @chunk up to @end with live records; false: there is none. */
static bool sent_chunk_up(const struct qrdma_sent_ring *ring, u64 *chunk, u64 end)
{
	u32 width = min_t(u32, ring->slots, SENT_MAP_BITS);
	u64 at = *chunk;

	for (;;) {
		u32 pos = sent_pos(ring, at), bit = pos % SENT_MAP_BITS;
		u64 word = ring->map[pos / SENT_MAP_BITS] >> bit;
		u64 step = word ? fls64(word & -word) - 1 : width - bit;

		if (end - at < step)
			return false;
		at += step;
		if (word)
			break;
	}
	*chunk = at;
	return true;
}

/* Cut a span of numbers down to those that may have records; false: nothing is left of it. */
static bool sent_clamp(const struct qrdma_sent_ring *ring, u64 *lo, u64 *hi)
{
	if (!ring->slots || ring->base >= ring->next)
		return false;
	*lo = max(*lo, ring->base);
	*hi = min(*hi, ring->next - 1);
	return *lo <= *hi;
}

struct qrdma_sent *qrdma_sent_ring_down(const struct qrdma_sent_ring *ring, u64 hi, u64 lo)
{
	u64 chunk, end;
	u32 live;

	if (!sent_clamp(ring, &lo, &hi))
		return NULL;
	chunk = sent_chunk(hi);
	end = sent_chunk(lo);
	live = GENMASK(sent_index(hi), 0);
	for (;;) {
		u64 at = chunk;
		struct qrdma_sent_slot *slot;
		struct qrdma_sent *rec;

		if (!sent_chunk_down(ring, &chunk, end))
			return NULL;
		slot = &ring->slot[sent_pos(ring, chunk)];
		if (chunk != at)
			live = U32_MAX;
		live &= slot->live;
		if (live) {
			rec = &slot->rec[fls(live) - 1];
			return rec->pn >= lo ? rec : NULL;
		}
		if (chunk == end)
			return NULL;
		chunk--;
		live = U32_MAX;
	}
}

struct qrdma_sent *qrdma_sent_ring_up(const struct qrdma_sent_ring *ring, u64 lo, u64 hi)
{
	u64 chunk, end;
	u32 live;

	if (!sent_clamp(ring, &lo, &hi))
		return NULL;
	chunk = sent_chunk(lo);
	end = sent_chunk(hi);
	live = ~0U << sent_index(lo);
	for (;;) {
		u64 at = chunk;
		struct qrdma_sent_slot *slot;
		struct qrdma_sent *rec;

		if (!sent_chunk_up(ring, &chunk, end))
			return NULL;
		slot = &ring->slot[sent_pos(ring, chunk)];
		if (chunk != at)
			live = U32_MAX;
		live &= slot->live;
		if (live) {
			rec = &slot->rec[__ffs(live)];
			return rec->pn <= hi ? rec : NULL;
		}
		if (chunk == end)
			return NULL;
		chunk++;
		live = U32_MAX;
	}
}

void qrdma_sent_ring_settle(struct qrdma_sent_ring *ring, struct qrdma_sent *rec)
{
	struct qrdma_sent_slot *slot = sent_slot(ring, rec->pn);
	u32 pos = sent_pos(ring, sent_chunk(rec->pn));

	slot->live &= ~BIT(sent_index(rec->pn));
	if (!slot->live)
		ring->map[pos / SENT_MAP_BITS] &= ~BIT_ULL(pos % SENT_MAP_BITS);
}

void qrdma_sent_ring_trim(struct qrdma_sent_ring *ring)
{
	const struct qrdma_sent *first = qrdma_sent_ring_up(ring, ring->base, U64_MAX);

	if (first)
		sent_advance(ring, first->pn);
	else if (ring->base < ring->next)
		sent_advance(ring, ring->next);
	/* an idle ring keeps one chunk */
	if (!first && ring->spare && ring->chunks > 1) {
		kfree(ring->spare);
		ring->spare = NULL;
		ring->chunks--;
	}
}
