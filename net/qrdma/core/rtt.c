// SPDX-License-Identifier: GPL-2.0
/*
 * Estimate of the round trip time of one path.
 *
 * Owns: struct qrdma_rtt. Called by: recovery.c in any context; the caller serialises.
 */
#include "rtt.h"

void qrdma_rtt_init(struct qrdma_rtt *rtt, u64 initial, u64 granularity, u64 now)
{
	memset(rtt, 0, sizeof(*rtt));
	rtt->smoothed = initial ? initial : QRDMA_INITIAL_RTT;
	rtt->var = rtt->smoothed / 2;
	rtt->granularity = granularity;
	rtt->loop_since = now;
}

void qrdma_rtt_sample(struct qrdma_rtt *rtt, u64 latest, u64 ack_delay, u64 now)
{
	u64 adjusted = latest, dev;

	rtt->latest = latest;
	if (!rtt->sampled) {
		rtt->sampled = true;
		rtt->first = now;
		rtt->min = latest;
		rtt->smoothed = latest;
		rtt->var = latest / 2;
		return;
	}
	rtt->min = min(rtt->min, latest);
	if (latest - rtt->min >= ack_delay)
		adjusted -= ack_delay;
	dev = adjusted > rtt->smoothed ? adjusted - rtt->smoothed : rtt->smoothed - adjusted;
	rtt->var = rtt->var - rtt->var / 4 + dev / 4;
	rtt->smoothed = rtt->smoothed - rtt->smoothed / 8 + adjusted / 8;
}

void qrdma_rtt_loop(struct qrdma_rtt *rtt, u64 took, u64 now)
{
	u64 age = now - rtt->loop_since;

	if (age >= QRDMA_LOOP_WINDOW) {
		rtt->loop[1] = age < 2 * QRDMA_LOOP_WINDOW ? rtt->loop[0] : 0;
		rtt->loop[0] = 0;
		rtt->loop_since = now;
	}
	rtt->loop[0] = max(rtt->loop[0], took);
}

u64 qrdma_rtt_loss_delay(const struct qrdma_rtt *rtt, u64 pto)
{
	u64 round = max(rtt->smoothed, rtt->latest);

	return max(max(round + round / 8, rtt->granularity), qrdma_rtt_floor(rtt, pto));
}
