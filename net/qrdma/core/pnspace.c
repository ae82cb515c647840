// SPDX-License-Identifier: GPL-2.0
/*
 * One packet number space: the next number to send, and what was received and is owed an ACK.
 *
 * Owns: struct qrdma_pnspace. Called by: conn.c and packer.c in any context, serialised by the
 * caller (the socket lock); has no clock, never sleeps.
 */
#include "pnspace.h"

void qrdma_pnspace_init(struct qrdma_pnspace *ps, u64 first, u64 ack_delay)
{
	memset(ps, 0, sizeof(*ps));
	qrdma_ranges_init(&ps->seen);
	ps->next = first;
	ps->deadline = QRDMA_NEVER;
	ps->late = QRDMA_NEVER;
	ps->told = QRDMA_NEVER;
	ps->ack_delay = ack_delay;
	ps->every = QRDMA_ACK_EVERY;
}

int qrdma_pnspace_take(struct qrdma_pnspace *ps, u64 *pn)
{
	if (ps->next > QRDMA_PN_MAX)
		return -EOVERFLOW;
	*pn = ps->next++;
	return 0;
}

/* Are all numbers from the last ack-eliciting packet up to @pn, which was just added, there? */
static bool pnspace_in_order(const struct qrdma_pnspace *ps, u64 pn)
{
	const struct qrdma_range *range;
	u32 i;

	if (!ps->eliciting)
		return true;
	if (pn < ps->eliciting)
		return false;
	for (i = 0; (range = qrdma_ranges_nth(&ps->seen, i)); i++)
		if (range->lo <= pn)
			return range->lo <= ps->eliciting;
	return false;
}

static void pnspace_count_ecn(struct qrdma_pnspace *ps, u8 ecn)
{
	if (ecn == QRDMA_ECN_ECT0)
		ps->ect0++;
	else if (ecn == QRDMA_ECN_ECT1)
		ps->ect1++;
	else if (ecn == QRDMA_ECN_CE)
		ps->ce++;
}

bool qrdma_pnspace_on_received(struct qrdma_pnspace *ps, u64 pn, bool eliciting, u8 ecn, u64 now)
{
	bool first = !ps->seen.count;
	u64 deadline;

	if (pn > QRDMA_PN_MAX || !qrdma_ranges_add(&ps->seen, pn)) {
		ps->duplicates++;
		return false;
	}
	pnspace_count_ecn(ps, ecn);
	if (first || pn > ps->largest) {
		ps->largest = pn;
		ps->largest_time = now;
	} else {
		ps->late = min(ps->late, pn);
	}
	/* a straggler from where nothing was to be reported any more */
	if (pn < ps->report_from)
		ps->report_from = pn;
	ps->news = true;
	if (!eliciting)
		return true;

	ps->unacked++;
	deadline = now;
	if (ps->unacked < ps->every && ecn != QRDMA_ECN_CE && pnspace_in_order(ps, pn))
		deadline += ps->ack_delay;
	ps->deadline = min(ps->deadline, deadline);
	ps->eliciting = max(ps->eliciting, pn + 1);
	return true;
}

u32 qrdma_pnspace_build_ack(const struct qrdma_pnspace *ps, u64 now, u32 exponent,
			    struct qrdma_ack *ack, const struct qrdma_range **range)
{
	u32 i = 0;

	if (!ps->seen.count)
		return 0;

	memset(ack, 0, sizeof(*ack));
	ack->largest = ps->largest;
	if (now > ps->largest_time)
		ack->delay = div_u64(now - ps->largest_time, NSEC_PER_USEC) >> exponent;
	ack->ecn = ps->ect0 || ps->ect1 || ps->ce;
	ack->ect0 = ps->ect0;
	ack->ect1 = ps->ect1;
	ack->ce = ps->ce;

	*range = qrdma_ranges_array(&ps->seen);
	while (i < ps->seen.count - 1 && (*range)->hi < ps->report_from) {
		i++;
		(*range)++;
	}
	return ps->seen.count - i;
}

void qrdma_pnspace_ack_sent(struct qrdma_pnspace *ps)
{
	ps->deadline = QRDMA_NEVER;
	ps->unacked = 0;
	ps->news = false;
	/* one generation after the other: what comes late all the time does not keep all of it */
	if (ps->told == QRDMA_NEVER) {
		ps->told = ps->late;
		ps->told_by = ps->largest;
		ps->late = QRDMA_NEVER;
	}
}

void qrdma_pnspace_ack_acked(struct qrdma_pnspace *ps, u64 largest)
{
	if (!ps->seen.count || largest > ps->largest)
		return;
	if (largest > ps->told_by)
		ps->told = QRDMA_NEVER;
	/* what came late was not in that frame, or perhaps not */
	largest = min3(largest, ps->late, ps->told);
	ps->report_from = max(ps->report_from, largest);
}
