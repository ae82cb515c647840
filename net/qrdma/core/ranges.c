// SPDX-License-Identifier: GPL-2.0
/*
 * A bounded, sorted set of numbers kept as ranges.
 *
 * Owns: the ranges. Called by: pnspace.c, in any context; the caller serialises. Numbers arrive in
 * order nearly always, so the upper end is looked at first.
 */
#include "ranges.h"

void qrdma_ranges_init(struct qrdma_ranges *set)
{
	memset(set, 0, sizeof(*set));
}

void qrdma_ranges_destroy(struct qrdma_ranges *set)
{
	kfree(set->more);
	set->more = NULL;
	set->count = 0;
}

void qrdma_ranges_rest(struct qrdma_ranges *set)
{
	if (!set->more || set->count > QRDMA_RANGES_FEW)
		return;
	memcpy(set->few, set->more, set->count * sizeof(set->few[0]));
	kfree(set->more);
	set->more = NULL;
}

static struct qrdma_range *ranges_array(struct qrdma_ranges *set)
{
	return set->more ?: set->few;
}

/* Is there no room for another range, whatever is tried? */
static bool ranges_full(struct qrdma_ranges *set)
{
	if (set->more)
		return set->count == QRDMA_RANGES_MAX;
	if (set->count < QRDMA_RANGES_FEW)
		return false;
	set->more = kmalloc_array(QRDMA_RANGES_MAX, sizeof(*set->more), GFP_ATOMIC | __GFP_NOWARN);
	if (!set->more)
		return true;
	memcpy(set->more, set->few, sizeof(set->few));
	return false;
}

/* Index of the first range that ends at or above @n; @count when all end below. */
static u32 ranges_find(const struct qrdma_ranges *set, u64 n)
{
	const struct qrdma_range *range = qrdma_ranges_array(set);
	u32 lo = 0, hi = set->count;

	if (!hi || range[hi - 1].hi < n)
		return hi;
	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (range[mid].hi < n)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void ranges_remove(struct qrdma_ranges *set, u32 i)
{
	struct qrdma_range *range = ranges_array(set);

	set->count--;
	memmove(&range[i], &range[i + 1], (set->count - i) * sizeof(range[0]));
}

/* A new range of one number before index @i. Return: false: there is no room for it. */
static bool ranges_insert(struct qrdma_ranges *set, u32 i, u64 n)
{
	bool full = ranges_full(set);
	struct qrdma_range *range = ranges_array(set);

	if (full) {
		if (set->dropped != U32_MAX)
			set->dropped++;
		/* the lowest one falls out, which may be the new one */
		if (!i) {
			set->floor = range[0].lo;
			return false;
		}
		ranges_remove(set, 0);
		i--;
	}
	memmove(&range[i + 1], &range[i], (set->count - i) * sizeof(range[0]));
	range[i].lo = n;
	range[i].hi = n;
	set->count++;
	if ((full || set->count == QRDMA_RANGES_MAX) && set->floor < range[0].lo)
		set->floor = range[0].lo;
	return true;
}

bool qrdma_ranges_add(struct qrdma_ranges *set, u64 n)
{
	struct qrdma_range *range = ranges_array(set);
	u32 i = ranges_find(set, n);
	bool below, above;

	if (n < set->floor || (i < set->count && range[i].lo <= n))
		return false;

	below = i > 0 && n - range[i - 1].hi == 1;
	above = i < set->count && range[i].lo - n == 1;
	if (below && above) {
		range[i - 1].hi = range[i].hi;
		ranges_remove(set, i);
	} else if (below) {
		range[i - 1].hi = n;
	} else if (above) {
		range[i].lo = n;
	} else {
		return ranges_insert(set, i, n);
	}
	return true;
}

bool qrdma_ranges_contains(const struct qrdma_ranges *set, u64 n)
{
	u32 i = ranges_find(set, n);

	return n < set->floor || (i < set->count && qrdma_ranges_array(set)[i].lo <= n);
}

void qrdma_ranges_forget_below(struct qrdma_ranges *set, u64 floor)
{
	struct qrdma_range *range = ranges_array(set);
	u32 i;

	if (floor <= set->floor)
		return;
	set->floor = floor;
	i = ranges_find(set, floor);
	set->count -= i;
	memmove(&range[0], &range[i], set->count * sizeof(range[0]));
	if (set->count && range[0].lo < floor)
		range[0].lo = floor;
}
