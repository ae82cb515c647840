// SPDX-License-Identifier: GPL-2.0
/*
 * Congestion control of one path: NewReno and CUBIC behind one table, and pacing.
 *
 * Owns: struct qrdma_cong. Called by: recovery.c, and packer.c through it, in any context; the
 * caller serialises. Integer arithmetic only; the widest intermediate values are noted where they
 * come near 64 bits. A window is at most QRDMA_CWND_MAX (2^30), a datagram less than 2^16.
 */
#include "cong.h"
#include "pnspace.h"	/* QRDMA_NEVER */

#define CONG_INITIAL_PACKETS	10	/* RFC 9002 s7.2 */
#define CONG_INITIAL_BYTES	14720
#define CONG_MINIMUM_PACKETS	2
#define CONG_SLACK_PACKETS	3	/* a window with less room than that counts as used up */
#define CONG_RATE_MAX		BIT_ULL(40)	/* bytes per second */

#define CUBIC_TICK_DIV		1953125	/* ns doubled, divided by this: 1/1024 s */
#define CUBIC_TICKS_MAX		BIT(18)	/* 256 s; its third power has 54 bits */

static u64 cong_initial(u32 mds)
{
	return min_t(u64, CONG_INITIAL_PACKETS * (u64)mds,
		     max_t(u64, CONG_MINIMUM_PACKETS * (u64)mds, CONG_INITIAL_BYTES));
}

static u64 cong_minimum(const struct qrdma_cong *c)
{
	return CONG_MINIMUM_PACKETS * (u64)c->mds;
}

static void cong_set_window(struct qrdma_cong *c, u64 cwnd)
{
	c->s.cwnd = clamp_t(u64, cwnd, cong_minimum(c), QRDMA_CWND_MAX);
}

/* Slow start up to the threshold (RFC 9002 s7.3.1).
 * Return: acknowledged bytes left for congestion avoidance.
 */
static u64 cong_slow_start(struct qrdma_cong *c, u64 bytes)
{
	u64 grow;

	if (c->s.cwnd >= c->s.ssthresh)
		return bytes;
	grow = min(bytes, c->s.ssthresh - c->s.cwnd);
	cong_set_window(c, c->s.cwnd + grow);
	return bytes - grow;
}

/* NewReno: RFC 9002 s7.3, appendix B */

static void newreno_reset(struct qrdma_cong *c)
{
	c->s.acked = 0;
}

static void newreno_acked(struct qrdma_cong *c, const struct qrdma_cong_ack *ack)
{
	u64 steps;

	/* one datagram for each window acknowledged, counted in bytes (RFC 3465 s2.1) */
	c->s.acked += cong_slow_start(c, ack->bytes);
	if (c->s.acked < c->s.cwnd)
		return;
	steps = div64_u64_rem(c->s.acked, c->s.cwnd, &c->s.acked);
	cong_set_window(c, c->s.cwnd + steps * c->mds);
}

static u64 newreno_cut(struct qrdma_cong *c, bool ce, u64 marks, u64 total)
{
	c->s.acked = 0;
	return c->s.cwnd / 2;
}

/* CUBIC: RFC 9438; C is 0.4, beta is 0.7 */

static void cubic_reset(struct qrdma_cong *c)
{
	c->s.acked = 0;
	memset(&c->s.cubic, 0, sizeof(c->s.cubic));
	c->s.cubic.limited_since = QRDMA_NEVER;
}

/* Integer part of the cube root, bit by bit. */
static u64 cubic_root(u64 x)
{
	u64 root = 0, next;
	int bit;

	for (bit = 20; bit >= 0; bit--) {
		next = root | BIT_ULL(bit);
		if (next * next * next <= x)
			root = next;
	}
	return root;
}

static u64 cubic_ticks(u64 ns)
{
	/* ns are doubled: more than CUBIC_TICKS_MAX is cut before that can overflow */
	if (ns >= 256ULL * NSEC_PER_SEC)
		return CUBIC_TICKS_MAX;
	return div_u64(2 * ns, CUBIC_TICK_DIV);
}

/* A stage of congestion avoidance begins (s4.2, figure 2; s4.8 and s4.10 when there is no w_max) */
static void cubic_start(struct qrdma_cong *c, u64 now)
{
	u64 cwnd = c->s.cwnd;

	c->s.cubic.started = true;
	c->s.cubic.epoch = now;
	c->s.cubic.limited_since = QRDMA_NEVER;
	c->s.cubic.w_est = cwnd;
	c->s.cubic.est_acked = 0;
	c->s.acked = 0;
	if (c->s.cubic.w_max <= cwnd) {
		c->s.cubic.w_max = cwnd;
		c->s.cubic.k = 0;
		return;
	}
	/* K^3 = (w_max - cwnd) / mds / 0.4 in s^3; times 2^30 in ticks: below 2^30 * 5 * 2^29 */
	c->s.cubic.k = cubic_root(div64_u64(((c->s.cubic.w_max - cwnd) * 5) << 29, c->mds));
}

/* W_cubic(t) of figure 1, in bytes; @t in ticks. */
static u64 cubic_window(const struct qrdma_cong *c, u64 t)
{
	u64 k = c->s.cubic.k, w_max = c->s.cubic.w_max;
	u64 d = min_t(u64, t > k ? t - k : k - t, CUBIC_TICKS_MAX);
	/* 0.4 mds d^3 / 2^30: d^3 / 2^10 has 44 bits, and 2 mds 17 */
	u64 delta = div_u64((d * d * d >> 10) * 2 * c->mds, 5) >> 20;

	if (t > k)
		return w_max + delta;
	return w_max > delta ? w_max - delta : 0;
}

/* What Reno would have by now (s4.3): alpha is 9/17, and 1 once the old window is reached. */
static void cubic_estimate(struct qrdma_cong *c, u64 bytes)
{
	u32 alpha = c->s.cubic.w_est < c->s.cubic.prior ? 9 : 17;

	/* bytes * 17 * mds: below 2^51 */
	c->s.cubic.est_acked += bytes * alpha * c->mds;
	c->s.cubic.w_est += div64_u64_rem(c->s.cubic.est_acked, 17 * c->s.cwnd,
					  &c->s.cubic.est_acked);
}

static void cubic_acked(struct qrdma_cong *c, const struct qrdma_cong_ack *ack)
{
	u64 bytes = min_t(u64, cong_slow_start(c, ack->bytes), QRDMA_CWND_MAX);
	u64 cwnd = c->s.cwnd, elapsed, target;

	if (!bytes)
		return;
	if (!c->s.cubic.started)
		cubic_start(c, ack->now);
	/* time that the application left the window unused does not count (s5.8) */
	if (c->s.cubic.limited_since != QRDMA_NEVER) {
		c->s.cubic.epoch += ack->now - c->s.cubic.limited_since;
		c->s.cubic.limited_since = QRDMA_NEVER;
	}
	elapsed = ack->now - c->s.cubic.epoch;

	cubic_estimate(c, bytes);
	if (cubic_window(c, cubic_ticks(elapsed)) < c->s.cubic.w_est) {
		if (c->s.cubic.w_est > cwnd)
			cong_set_window(c, c->s.cubic.w_est);
		return;
	}
	/* concave and convex region (s4.4, s4.5): the target is where it should be in an RTT */
	target = clamp_t(u64, cubic_window(c, cubic_ticks(elapsed + ack->srtt)), cwnd,
			 cwnd + cwnd / 2);
	/* below 2^29 * 2^30 */
	c->s.acked += (target - cwnd) * bytes;
	cong_set_window(c, cwnd + div64_u64_rem(c->s.acked, cwnd, &c->s.acked));
}

static void cubic_limited(struct qrdma_cong *c, const struct qrdma_cong_ack *ack)
{
	if (c->s.cubic.started && c->s.cubic.limited_since == QRDMA_NEVER)
		c->s.cubic.limited_since = ack->now;
}

static u64 cubic_cut(struct qrdma_cong *c, bool ce, u64 marks, u64 total)
{
	u64 cwnd = c->s.cwnd;

	/* fast convergence (s4.7): a flow that lost ground lets more of it go */
	c->s.cubic.w_max = cwnd < c->s.cubic.w_max ? div_u64(cwnd * 17, 20) : cwnd;
	c->s.cubic.prior = cwnd;
	c->s.cubic.started = false;
	c->s.acked = 0;
	return div_u64(cwnd * 7, 10);
}

/* As after a time-out of TCP (s4.8): the old window says nothing any more. */
static void cubic_collapse(struct qrdma_cong *c)
{
	c->s.cubic.w_max = 0;
	c->s.cubic.started = false;
	c->s.acked = 0;
}

static const struct qrdma_cong_ops cong_table[__QRDMA_CONG_ALG_MAX] = {
	[QRDMA_CONG_ALG_CUBIC] = {
		.name = "cubic",
		.reset = cubic_reset,
		.acked = cubic_acked,
		.limited = cubic_limited,
		.cut = cubic_cut,
		.collapse = cubic_collapse,
	},
	[QRDMA_CONG_ALG_NEWRENO] = {
		.name = "newreno",
		.reset = newreno_reset,
		.acked = newreno_acked,
		.cut = newreno_cut,
	},
};

void qrdma_cong_reset(struct qrdma_cong *c, u64 now)
{
	memset(&c->s, 0, sizeof(c->s));
	c->s.ssthresh = U64_MAX;
	c->s.cwnd = cong_initial(c->mds);
	c->ops->reset(c);
	c->cut = false;
	c->undo_ok = false;
	c->undo_lost = 0;
	c->pace_held = false;
	c->tokens = c->s.cwnd;
	c->refilled = now;
}

int qrdma_cong_init(struct qrdma_cong *c, u32 alg, u32 mds, u64 granularity, u64 now)
{
	if (alg >= __QRDMA_CONG_ALG_MAX || mds < QRDMA_MDS_MIN || mds > QRDMA_MDS_MAX)
		return -EINVAL;
	memset(c, 0, sizeof(*c));
	c->ops = &cong_table[alg];
	c->mds = mds;
	c->granularity = granularity;
	qrdma_cong_reset(c, now);
	return 0;
}

void qrdma_cong_set_mds(struct qrdma_cong *c, u32 mds)
{
	bool fresh = !c->cut && c->s.ssthresh == U64_MAX && c->s.cwnd == cong_initial(c->mds);

	c->mds = clamp_t(u32, mds, QRDMA_MDS_MIN, QRDMA_MDS_MAX);
	cong_set_window(c, fresh ? cong_initial(c->mds) : c->s.cwnd);
}

/* Was the window made use of, or would it have been but for pacing (RFC 9002 s7.8)? */
static bool cong_used(const struct qrdma_cong *c, u64 flight)
{
	u64 cwnd = c->s.cwnd;

	if (c->pace_held || flight + CONG_SLACK_PACKETS * (u64)c->mds >= cwnd)
		return true;
	return cwnd < c->s.ssthresh && flight > cwnd / 2;
}

void qrdma_cong_on_acked(struct qrdma_cong *c, const struct qrdma_cong_ack *ack)
{
	bool used = cong_used(c, ack->flight);

	c->pace_held = false;
	if (!ack->bytes)
		return;
	if (used)
		c->ops->acked(c, ack);
	else if (c->ops->limited)
		c->ops->limited(c, ack);
}

/* A new congestion event (RFC 9002 s7.3.2): the recovery period begins. */
static void cong_cut(struct qrdma_cong *c, bool ce, u64 marks, u64 total, u64 now)
{
	c->cut = true;
	c->recovery_start = now;
	c->event++;
	c->events++;
	c->s.ssthresh = max(c->ops->cut(c, ce, marks, total), cong_minimum(c));
	cong_set_window(c, c->s.ssthresh);
}

u16 qrdma_cong_on_lost(struct qrdma_cong *c, u64 sent_time, u32 packets, u64 now)
{
	if (!qrdma_cong_in_recovery(c, sent_time)) {
		c->undo = c->s;
		c->undo_lost = 0;
		c->undo_ok = true;
		cong_cut(c, false, 0, 0, now);
	}
	c->undo_lost += packets;
	return c->event;
}

bool qrdma_cong_on_spurious(struct qrdma_cong *c, u16 event)
{
	u64 cwnd = c->s.cwnd;

	if (!c->undo_ok || event != c->event || --c->undo_lost)
		return false;
	c->s = c->undo;
	cong_set_window(c, max(c->s.cwnd, cwnd));
	c->undo_ok = false;
	c->cut = false;
	c->undone++;
	return true;
}

void qrdma_cong_on_ecn(struct qrdma_cong *c, u64 sent_time, u64 marks, u64 total, u64 now)
{
	if (qrdma_cong_in_recovery(c, sent_time))
		return;
	cong_cut(c, true, marks, total, now);
	/* marks are real, there is nothing to take back */
	c->undo_ok = false;
}

void qrdma_cong_on_persistent(struct qrdma_cong *c)
{
	cong_set_window(c, 0);
	c->cut = false;
	if (c->ops->collapse)
		c->ops->collapse(c);
}

u64 qrdma_cong_pace_rate(const struct qrdma_cong *c, u64 srtt)
{
	u64 gain = c->s.cwnd < c->s.ssthresh ? 2 * NSEC_PER_SEC : NSEC_PER_SEC / 4 * 5;
	u64 rate = div64_u64(c->s.cwnd * gain, max_t(u64, srtt, 1));	/* below 2^30 * 2^31 */

	if (c->rate_cap)
		rate = min(rate, c->rate_cap);
	return clamp_t(u64, rate, 1, CONG_RATE_MAX);
}

u64 qrdma_cong_pace_burst(const struct qrdma_cong *c, u64 rate)
{
	return max(cong_initial(c->mds),
		   mul_u64_u64_div_u64(rate, 2 * c->granularity, NSEC_PER_SEC));
}

static void cong_refill(struct qrdma_cong *c, u64 rate, u64 now)
{
	u64 burst = qrdma_cong_pace_burst(c, rate), fill;

	if (now <= c->refilled)
		return;
	/* a burst that is more than the initial window is two ticks at this rate: no overflow */
	if (now - c->refilled >= mul_u64_u64_div_u64(burst, NSEC_PER_SEC, rate)) {
		c->tokens = burst;
		c->refilled = now;
		return;
	}
	/* time for less than a byte is left for the next time */
	fill = mul_u64_u64_div_u64(rate, now - c->refilled, NSEC_PER_SEC);
	c->tokens = min(c->tokens + fill, burst);
	c->refilled += mul_u64_u64_div_u64(fill, NSEC_PER_SEC, rate);
}

u64 qrdma_cong_pace_at(struct qrdma_cong *c, u32 bytes, u64 srtt, u64 now)
{
	u64 rate = qrdma_cong_pace_rate(c, srtt), wait;

	cong_refill(c, rate, now);
	if (c->tokens >= bytes)
		return now;
	c->pace_held = true;
	wait = mul_u64_u64_div_u64(bytes - c->tokens, NSEC_PER_SEC, rate) + 1;
	return max(c->refilled + wait, now + 1);
}

void qrdma_cong_pace_sent(struct qrdma_cong *c, u32 bytes, u64 srtt, u64 now)
{
	cong_refill(c, qrdma_cong_pace_rate(c, srtt), now);
	c->tokens -= min_t(u64, c->tokens, bytes);
}
