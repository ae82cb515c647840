/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A bounded, sorted set of numbers kept as ranges: the packet numbers received in one space.
 *
 * Owns: the ranges. There are one or two of them nearly always, which are in the object; more have
 * an array of their own, until the caller says that it is quiet (field case F29).
 * Called by: pnspace.c. Context: any, never sleeps (GFP_ATOMIC). Lock: the caller serialises.
 */
#ifndef QRDMA_CORE_RANGES_H
#define QRDMA_CORE_RANGES_H

#include "env.h"
#include "cursor.h"

#define QRDMA_RANGES_MAX	32	/* ranges that a peer can make us keep, per set */
#define QRDMA_RANGES_FEW	3	/* that need no memory of their own */

/**
 * struct qrdma_ranges - the set
 * @floor: every number below counts as being in the set (RFC 9000 s13.2.3, field case F08)
 * @count: ranges in use
 * @dropped: ranges that fell out because the set was full, saturating
 * @more: array of QRDMA_RANGES_MAX, NULL: @few is enough
 * @few: QRDMA_RANGES_FEW of them
 *
 * The ranges are ascending, neither overlapping nor adjacent, none below @floor.
 * Found by: embedded in its owner. Dies by qrdma_ranges_destroy(). Protected by: the caller.
 * A full set has its @floor at its lowest range: whatever arrives later is either above it or is
 * refused as old, so a number that was let in is always a number that the set still holds.
 */
struct qrdma_ranges {
	u64 floor;
	u32 count;
	u32 dropped;
	struct qrdma_range *more;
	struct qrdma_range few[QRDMA_RANGES_FEW];
};

/**
 * qrdma_ranges_init() - make an empty set
 * @set: the set
 */
void qrdma_ranges_init(struct qrdma_ranges *set);

/** qrdma_ranges_destroy() - free what it has; the object may have been zeroed only */
void qrdma_ranges_destroy(struct qrdma_ranges *set);

/** qrdma_ranges_rest() - give memory back that few ranges do not need */
void qrdma_ranges_rest(struct qrdma_ranges *set);

/** qrdma_ranges_array() - all @count of them, ascending; valid until the set changes */
static inline const struct qrdma_range *qrdma_ranges_array(const struct qrdma_ranges *set)
{
	return set->more ?: set->few;
}

/**
 * qrdma_ranges_add() - put a number in
 * @set: the set
 * @n: the number; any u64
 *
 * A full set makes room by letting its lowest range fall out; so does one that finds no memory.
 * Cost: O(1) at the upper end, O(ranges) else.
 *
 * Return: true when @n is new, false when it was in the set or lies below the floor.
 */
bool qrdma_ranges_add(struct qrdma_ranges *set, u64 n);

/**
 * qrdma_ranges_contains() - is a number in the set, or below its floor?
 * @set: the set
 * @n: the number
 */
bool qrdma_ranges_contains(const struct qrdma_ranges *set, u64 n);

/**
 * qrdma_ranges_forget_below() - let everything below a number count as received
 * @set: the set
 * @floor: the new floor; one below the old floor changes nothing
 */
void qrdma_ranges_forget_below(struct qrdma_ranges *set, u64 floor);

/**
 * qrdma_ranges_nth() - ranges from the highest downwards
 * @set: the set
 * @i: 0 is the highest
 *
 * Return: the range, NULL when there are not so many. Valid until the set changes.
 */
static inline const struct qrdma_range *qrdma_ranges_nth(const struct qrdma_ranges *set, u32 i)
{
	return i < set->count ? &qrdma_ranges_array(set)[set->count - 1 - i] : NULL;
}

#endif /* QRDMA_CORE_RANGES_H */
