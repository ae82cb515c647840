// SPDX-License-Identifier: GPL-2.0
/*
 * A bounded, sorted set of numbers kept as ranges.
 *
 * Owns: nothing but the array inside the object. Called by: pnspace.c, in any context; the caller
 * serialises. Numbers arrive in order nearly always, so the upper end is looked at first.
 */
#include "ranges.h"

void qrdma_ranges_init(struct qrdma_ranges *set)
{
	memset(set, 0, sizeof(*set));
}

/* Index of the first range that ends at or above @n; @count when all end below. */
static u32 ranges_find(const struct qrdma_ranges *set, u64 n)
{
	u32 lo = 0, hi = set->count;

	if (!hi || set->range[hi - 1].hi < n)
		return hi;
	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (set->range[mid].hi < n)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void ranges_remove(struct qrdma_ranges *set, u32 i)
{
	set->count--;
	memmove(&set->range[i], &set->range[i + 1], (set->count - i) * sizeof(set->range[0]));
}

/* A new range of one number before index @i. */
static void ranges_insert(struct qrdma_ranges *set, u32 i, u64 n)
{
	if (set->count == QRDMA_RANGES_MAX) {
		/* i is not 0: a full set has its floor at its lowest range */
		ranges_remove(set, 0);
		i--;
		if (set->dropped != U32_MAX)
			set->dropped++;
	}
	memmove(&set->range[i + 1], &set->range[i], (set->count - i) * sizeof(set->range[0]));
	set->range[i].lo = n;
	set->range[i].hi = n;
	set->count++;
	if (set->count == QRDMA_RANGES_MAX && set->floor < set->range[0].lo)
		set->floor = set->range[0].lo;
}

bool qrdma_ranges_add(struct qrdma_ranges *set, u64 n)
{
	u32 i = ranges_find(set, n);
	bool below, above;

	if (n < set->floor || (i < set->count && set->range[i].lo <= n))
		return false;

	below = i > 0 && n - set->range[i - 1].hi == 1;
	above = i < set->count && set->range[i].lo - n == 1;
	if (below && above) {
		set->range[i - 1].hi = set->range[i].hi;
		ranges_remove(set, i);
	} else if (below) {
		set->range[i - 1].hi = n;
	} else if (above) {
		set->range[i].lo = n;
	} else {
		ranges_insert(set, i, n);
	}
	return true;
}

bool qrdma_ranges_contains(const struct qrdma_ranges *set, u64 n)
{
	u32 i = ranges_find(set, n);

	return n < set->floor || (i < set->count && set->range[i].lo <= n);
}

void qrdma_ranges_forget_below(struct qrdma_ranges *set, u64 floor)
{
	u32 i;

	if (floor <= set->floor)
		return;
	set->floor = floor;
	i = ranges_find(set, floor);
	set->count -= i;
	memmove(&set->range[0], &set->range[i], set->count * sizeof(set->range[0]));
	if (set->count && set->range[0].lo < floor)
		set->range[0].lo = floor;
}
