/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Estimate of the round trip time of one path, and what follows from it: PTO base, loss delay.
 *
 * Owns: struct qrdma_rtt. Called by: recovery.c. Context: any, never sleeps, allocates nothing.
 * Lock: the caller serialises.
 *
 * Sources: RFC 9002 s5, s6.1.2, s6.2.1. Times are ns.
 */
#ifndef QRDMA_CORE_RTT_H
#define QRDMA_CORE_RTT_H

#include "env.h"

/* kInitialRtt (RFC 9002 s6.2.2) */
#define QRDMA_INITIAL_RTT	(333ULL * NSEC_PER_MSEC)
/* the slowest loop of at least that time back counts */
#define QRDMA_LOOP_WINDOW	((u64)NSEC_PER_SEC)

/* the floor that the slowest loop makes ends at that many PTOs */
#define QRDMA_LOOP_PTOS		2

/**
 * struct qrdma_rtt - estimate of the round trip time
 * @latest: last sample; 0 before the first
 * @min: least of the samples since the first one, or since persistent congestion
 * @smoothed: smoothed RTT; the initial RTT before the first sample
 * @var: mean deviation
 * @first: when the first sample was taken; valid if @sampled
 * @granularity: of the timers
 * @loop: slowest loop from sending to the processed ACK, in the current and in the last window
 * @loop_since: when the current window began
 * @sampled: there was a sample
 *
 * Found by: embedded in struct qrdma_recovery. Dies with it. Protected by: the caller.
 */
struct qrdma_rtt {
	u64 latest;
	u64 min;
	u64 smoothed;
	u64 var;
	u64 first;
	u64 granularity;
	u64 loop[2];
	u64 loop_since;
	bool sampled;
};

/**
 * qrdma_rtt_init() - begin, or begin anew on another path
 * @rtt: the estimate
 * @initial: guess until the first sample; 0: QRDMA_INITIAL_RTT
 * @granularity: of the timers
 * @now: now
 */
void qrdma_rtt_init(struct qrdma_rtt *rtt, u64 initial, u64 granularity, u64 now);

/**
 * qrdma_rtt_sample() - take a sample (RFC 9002 s5.3)
 * @rtt: the estimate
 * @latest: from sending to the ACK
 * @ack_delay: what the peer says it waited, limited by its max_ack_delay if that applies; left out
 *	when the sample would get below the least one seen (field case F04)
 * @now: now
 */
void qrdma_rtt_sample(struct qrdma_rtt *rtt, u64 latest, u64 ack_delay, u64 now);

/**
 * qrdma_rtt_loop() - the loop from sending a packet to processing its ACK took that long
 * @rtt: the estimate
 * @took: without what the peer waited on purpose
 * @now: now
 */
void qrdma_rtt_loop(struct qrdma_rtt *rtt, u64 took, u64 now);

/** qrdma_rtt_slowest() - slowest loop of late */
static inline u64 qrdma_rtt_slowest(const struct qrdma_rtt *rtt)
{
	return max(rtt->loop[0], rtt->loop[1]);
}

/** qrdma_rtt_pto() - the PTO without max_ack_delay and backoff (RFC 9002 s6.2.1) */
static inline u64 qrdma_rtt_pto(const struct qrdma_rtt *rtt)
{
	return rtt->smoothed + max(4 * rtt->var, rtt->granularity);
}

/**
 * qrdma_rtt_floor() - what a timer should wait at least, going by the slowest loop
 * @rtt: the estimate
 * @pto: the PTO, which bounds it
 *
 * A stalled CPU, here or there, is not loss (field case F01). One very slow loop must
 * not keep a real loss from being found for as long: QRDMA_LOOP_PTOS is the end of it.
 */
static inline u64 qrdma_rtt_floor(const struct qrdma_rtt *rtt, u64 pto)
{
	return min(qrdma_rtt_slowest(rtt), QRDMA_LOOP_PTOS * pto);
}

/**
 * qrdma_rtt_loss_delay() - a packet is lost when a later one was acknowledged and it is as old
 * @rtt: the estimate
 * @pto: the PTO, which bounds the floor
 *
 * RFC 9002 s6.1.2, with the floor of qrdma_rtt_floor().
 */
u64 qrdma_rtt_loss_delay(const struct qrdma_rtt *rtt, u64 pto);

/** qrdma_rtt_renew() - persistent congestion: the least is what was seen last (RFC 9002 s5.2) */
static inline void qrdma_rtt_renew(struct qrdma_rtt *rtt)
{
	rtt->min = rtt->latest;
}

#endif /* QRDMA_CORE_RTT_H */
