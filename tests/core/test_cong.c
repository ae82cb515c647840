// SPDX-License-Identifier: GPL-2.0
/* Tests of core/cong.c: NewReno (RFC 9002 s7), CUBIC (RFC 9438), undo, pacing. */
#include "qtest.h"
#include "cong.h"
#include "pnspace.h"

#define MDS	1000
#define US	1000ULL
#define MS	1000000ULL
#define S	1000000000ULL

static const u32 algs[] = { QRDMA_CONG_ALG_CUBIC, QRDMA_CONG_ALG_NEWRENO };

/* The whole window was in flight, @bytes of it are acknowledged. */
static void acked(struct qrdma_cong *c, u64 bytes, u64 srtt, u64 now)
{
	struct qrdma_cong_ack ack = {
		.now = now, .srtt = srtt, .bytes = bytes, .flight = qrdma_cong_window(c),
	};

	qrdma_cong_on_acked(c, &ack);
}

Q_TEST(cong_initial_window)
{
	struct qrdma_cong c;

	Q_EXPECT_EQ(test, qrdma_cong_init(&c, 2, MDS, MS, 0), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_cong_init(&c, 0, QRDMA_MDS_MIN - 1, MS, 0), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_cong_init(&c, 0, QRDMA_MDS_MAX + 1, MS, 0), -EINVAL);
	/* RFC 9002 s7.2: 10 datagrams, at most max(14720, 2 datagrams) */
	qrdma_cong_init(&c, 0, 1200, MS, 0);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 12000);
	qrdma_cong_init(&c, 0, 1472, MS, 0);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 14720);
	qrdma_cong_init(&c, 0, 4092, MS, 0);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 14720);
	qrdma_cong_init(&c, 0, 9000, MS, 0);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 18000);
	/* a new size while the window is the initial one */
	qrdma_cong_set_mds(&c, 1020);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 10200);
	qrdma_cong_set_mds(&c, 1);
	Q_EXPECT_EQ(test, c.mds, QRDMA_MDS_MIN);
}

Q_TEST(cong_slow_start)
{
	struct qrdma_cong c;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(algs); i++) {
		qrdma_cong_init(&c, algs[i], MDS, MS, 0);
		acked(&c, 4000, MS, MS);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), 14000);
		acked(&c, 14000, MS, 2 * MS);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), 28000);
		/* not the initial window any more: a larger datagram leaves it alone */
		qrdma_cong_set_mds(&c, 2 * MDS);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), 28000);
	}
}

/* RFC 9002 appendix B.6: half, once per recovery period */
Q_TEST(cong_newreno_cut)
{
	struct qrdma_cong c;
	u16 event;

	qrdma_cong_init(&c, QRDMA_CONG_ALG_NEWRENO, MDS, MS, 0);
	acked(&c, 30000, MS, MS);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 40000);
	event = qrdma_cong_on_lost(&c, 5 * MS, 1, 10 * MS);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 20000);
	Q_EXPECT_EQ(test, c.s.ssthresh, 20000);
	/* sent before the period began: no further cut */
	Q_EXPECT_EQ(test, qrdma_cong_on_lost(&c, 10 * MS, 3, 12 * MS), event);
	Q_EXPECT_TRUE(test, qrdma_cong_in_recovery(&c, 10 * MS));
	Q_EXPECT_FALSE(test, qrdma_cong_in_recovery(&c, 10 * MS + 1));
	qrdma_cong_on_ecn(&c, 9 * MS, 1, 2, 12 * MS);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 20000);
	/* sent within it: the next one */
	qrdma_cong_on_lost(&c, 11 * MS, 1, 20 * MS);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 10000);
	Q_EXPECT_EQ(test, c.events, 2);
}

/* One datagram for each window, however it is cut into acknowledgments. */
Q_TEST(cong_newreno_avoidance)
{
	struct qrdma_cong c;
	u64 i;

	qrdma_cong_init(&c, QRDMA_CONG_ALG_NEWRENO, MDS, MS, 0);
	acked(&c, 6000000 - 10000, MS, MS);
	qrdma_cong_on_lost(&c, 5 * MS, 1, 10 * MS);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 3000000);
	/* MDS * 1000 / 3000000 is 0: the bytes must not get lost in the rounding */
	for (i = 0; i < 2999; i++)
		acked(&c, 1000, MS, 20 * MS);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 3000000);
	acked(&c, 1000, MS, 20 * MS);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 3001000);
	acked(&c, 2 * 3001000, MS, 20 * MS);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 3003000);
}

Q_TEST(cong_minimum_and_persistent)
{
	struct qrdma_cong c;
	u64 i, t;

	for (i = 0; i < ARRAY_SIZE(algs); i++) {
		qrdma_cong_init(&c, algs[i], MDS, MS, 0);
		for (t = 1; t < 50; t++)
			qrdma_cong_on_lost(&c, t * 10 * MS, 1, t * 10 * MS + 1);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), 2 * MDS);
		Q_EXPECT_EQ(test, c.s.ssthresh, 2 * MDS);

		qrdma_cong_init(&c, algs[i], MDS, MS, 0);
		acked(&c, 90000, MS, MS);
		qrdma_cong_on_lost(&c, 5 * MS, 1, 10 * MS);
		t = c.s.ssthresh;
		qrdma_cong_on_persistent(&c);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), 2 * MDS);
		/* RFC 9002 s7.3.1: that is slow start, up to the threshold and not beyond */
		Q_EXPECT_FALSE(test, qrdma_cong_in_recovery(&c, 9 * MS));
		acked(&c, 1000, MS, 20 * MS);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), 3 * MDS);
		Q_EXPECT_EQ(test, c.s.ssthresh, t);
		acked(&c, t - 3 * MDS, MS, 21 * MS);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), t);
	}
}

/* RFC 9002 s7.8: a window that is not made use of does not grow */
Q_TEST(cong_application_limited)
{
	struct qrdma_cong c;
	struct qrdma_cong_ack ack = { .now = MS, .srtt = MS, .bytes = 3000, .flight = 30000 };
	u64 at;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(algs); i++) {
		qrdma_cong_init(&c, algs[i], MDS, MS, 0);
		acked(&c, 90000, MS, MS);
		qrdma_cong_on_acked(&c, &ack);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), 100000);
		/* half of it is use enough in slow start */
		ack.flight = 60000;
		qrdma_cong_on_acked(&c, &ack);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), 103000);
		/* and so is what pacing held back; for one acknowledgment */
		ack.flight = 1000;
		qrdma_cong_pace_sent(&c, 10000000, MS, MS);
		at = qrdma_cong_pace_at(&c, MDS, MS, MS);
		Q_EXPECT_GT(test, at, MS);
		qrdma_cong_on_acked(&c, &ack);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), 106000);
		qrdma_cong_on_acked(&c, &ack);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), 106000);
		/* half is not enough in congestion avoidance */
		qrdma_cong_on_lost(&c, 5 * MS, 1, 10 * MS);
		at = qrdma_cong_window(&c);
		ack.flight = at * 6 / 10;
		ack.bytes = 2 * at;
		ack.now = 20 * MS;
		qrdma_cong_on_acked(&c, &ack);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), at);
		ack.flight = 30000;
		ack.bytes = 3000;
	}
}

/* RFC 9438 s4.6, s4.7 */
Q_TEST(cong_cubic_cut)
{
	struct qrdma_cong c;

	qrdma_cong_init(&c, QRDMA_CONG_ALG_CUBIC, MDS, MS, 0);
	acked(&c, 90000, MS, MS);
	qrdma_cong_on_lost(&c, 5 * MS, 1, 10 * MS);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 70000);
	Q_EXPECT_EQ(test, c.s.cubic.w_max, 100000);
	/* cut again below the old w_max: fast convergence, 70000 * 1.7 / 2 */
	qrdma_cong_on_lost(&c, 15 * MS, 1, 20 * MS);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 49000);
	Q_EXPECT_EQ(test, c.s.cubic.w_max, 59500);
	Q_EXPECT_EQ(test, c.s.cubic.prior, 70000);
}

/*
 * Drive CUBIC through one stage: 100 ms RTT, w_max of 1000 datagrams, cut to 700. K is
 * cbrt(300 / 0.4) = 9.086 s.
 */
static void cubic_stage(struct qrdma_cong *c)
{
	qrdma_cong_init(c, QRDMA_CONG_ALG_CUBIC, MDS, MS, 0);
	acked(c, 990000, 100 * MS, MS);
	qrdma_cong_on_lost(c, 2 * MS, 1, 3 * MS);
}

Q_TEST(cong_cubic_curve)
{
	/* figure 1 of RFC 9438, t seconds after the cut: 0.4 (t - 9.086)^3 + 1000 datagrams */
	static const struct {
		u64 t, w;
	} curve[] = {
		{ 1, 789 }, { 2, 858 }, { 4, 947 }, { 6, 988 }, { 8, 1000 }, { 9, 1000 },
		{ 10, 1000 }, { 12, 1010 }, { 14, 1047 }, { 16, 1132 },
	};
	u64 rtt = 100 * MS, now = 3 * MS, until;
	struct qrdma_cong c;
	u32 i;

	cubic_stage(&c);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), 700000);
	acked(&c, 1000, rtt, now);
	/* 9.0856 s in 1/1024 */
	Q_EXPECT_EQ(test, c.s.cubic.k, 9303);
	for (i = 0; i < ARRAY_SIZE(curve); i++) {
		until = 3 * MS + curve[i].t * S;
		while (now < until) {
			u64 w = qrdma_cong_window(&c), part;

			/* the window in ten acknowledgments per round trip */
			for (part = 0; part < 10; part++) {
				now += rtt / 10;
				acked(&c, w / 10, rtt, now);
			}
		}
		/* within 1 %: the window lags the curve by a fraction of a round trip */
		Q_EXPECT_GE(test, qrdma_cong_window(&c), curve[i].w * 990);
		Q_EXPECT_LE(test, qrdma_cong_window(&c), curve[i].w * 1010);
	}
}

/* RFC 9438 s4.3: at a short RTT like Reno, with alpha 9/17, and 1 above the old window */
Q_TEST(cong_cubic_reno_friendly)
{
	struct qrdma_cong c;
	u64 now = 10 * MS, rounds;

	qrdma_cong_init(&c, QRDMA_CONG_ALG_CUBIC, MDS, MS, 0);
	acked(&c, 90000, 50 * US, MS);
	qrdma_cong_on_lost(&c, 2 * MS, 1, 3 * MS);
	for (rounds = 0; rounds < 34; rounds++) {
		now += 50 * US;
		acked(&c, qrdma_cong_window(&c), 50 * US, now);
	}
	/* 34 rounds of 9/17 datagrams */
	Q_EXPECT_GE(test, qrdma_cong_window(&c), (70 + 18) * MDS - 100);
	Q_EXPECT_LE(test, qrdma_cong_window(&c), (70 + 18) * MDS);
	for (; rounds < 57; rounds++) {
		now += 50 * US;
		acked(&c, qrdma_cong_window(&c), 50 * US, now);
	}
	Q_EXPECT_GE(test, qrdma_cong_window(&c), 100 * MDS);
	Q_EXPECT_LE(test, qrdma_cong_window(&c), 101 * MDS);
	for (; rounds < 67; rounds++) {
		now += 50 * US;
		acked(&c, qrdma_cong_window(&c), 50 * US, now);
	}
	Q_EXPECT_GE(test, qrdma_cong_window(&c), 110 * MDS);
	Q_EXPECT_LE(test, qrdma_cong_window(&c), 111 * MDS);
}

/* RFC 9438 s5.8: idle time does not let the window jump */
Q_TEST(cong_cubic_idle)
{
	struct qrdma_cong_ack idle = { .srtt = 100 * MS, .bytes = 1000, .flight = 1000 };
	struct qrdma_cong c;
	u64 now = 3 * MS, before;

	cubic_stage(&c);
	acked(&c, 1000, 100 * MS, now);
	before = qrdma_cong_window(&c);
	idle.now = now + 10 * MS;
	qrdma_cong_on_acked(&c, &idle);
	idle.now = now + 60 * S;
	qrdma_cong_on_acked(&c, &idle);
	Q_EXPECT_EQ(test, qrdma_cong_window(&c), before);
	acked(&c, before, 100 * MS, now + 100 * S);
	/* as at 10 ms plus an RTT into the stage: hardly off the bottom */
	Q_EXPECT_LE(test, qrdma_cong_window(&c), 715 * MDS);
	/* the target is at most half as much again */
	acked(&c, qrdma_cong_window(&c), 100 * MS, now + 1000 * S);
	Q_EXPECT_LE(test, qrdma_cong_window(&c), 715 * MDS * 3 / 2);
}

/* F01: when all of an event's packets turn up after all, it is as if it had not been */
Q_TEST(cong_undo)
{
	struct qrdma_cong c;
	u16 event, old;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(algs); i++) {
		qrdma_cong_init(&c, algs[i], MDS, MS, 0);
		acked(&c, 90000, MS, MS);
		old = qrdma_cong_on_lost(&c, 2 * MS, 1, 3 * MS);
		event = qrdma_cong_on_lost(&c, 4 * MS, 2, 5 * MS);
		Q_EXPECT_NE(test, old, event);
		qrdma_cong_on_lost(&c, 5 * MS, 1, 6 * MS);
		Q_EXPECT_FALSE(test, qrdma_cong_on_spurious(&c, old));
		Q_EXPECT_FALSE(test, qrdma_cong_on_spurious(&c, event));
		Q_EXPECT_FALSE(test, qrdma_cong_on_spurious(&c, event));
		Q_EXPECT_TRUE(test, qrdma_cong_on_spurious(&c, event));
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), i ? 50000 : 70000);
		Q_EXPECT_FALSE(test, qrdma_cong_in_recovery(&c, 5 * MS));
		/* once only */
		Q_EXPECT_FALSE(test, qrdma_cong_on_spurious(&c, event));
		Q_EXPECT_EQ(test, c.undone, 1);

		/* persistent congestion that was none */
		event = qrdma_cong_on_lost(&c, 20 * MS, 1, 21 * MS);
		qrdma_cong_on_persistent(&c);
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), 2 * MDS);
		Q_EXPECT_TRUE(test, qrdma_cong_on_spurious(&c, event));
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), i ? 50000 : 70000);

		/* a mark is a mark */
		qrdma_cong_on_ecn(&c, 30 * MS, 1, 1, 31 * MS);
		event = qrdma_cong_on_lost(&c, 30 * MS, 1, 31 * MS);
		Q_EXPECT_FALSE(test, qrdma_cong_on_spurious(&c, event));
		Q_EXPECT_EQ(test, qrdma_cong_window(&c), i ? 25000 : 49000);
	}
}

Q_TEST(cong_pace_rate)
{
	struct qrdma_cong c;

	qrdma_cong_init(&c, QRDMA_CONG_ALG_NEWRENO, MDS, 100 * US, 0);
	/* slow start: twice 10,000 bytes in 1 ms */
	Q_EXPECT_EQ(test, qrdma_cong_pace_rate(&c, MS), 20000000);
	acked(&c, 90000, MS, MS);
	qrdma_cong_on_lost(&c, 2 * MS, 1, 3 * MS);
	/* 5/4 of 50,000 bytes in 1 ms */
	Q_EXPECT_EQ(test, qrdma_cong_pace_rate(&c, MS), 62500000);
	c.rate_cap = 1000;
	Q_EXPECT_EQ(test, qrdma_cong_pace_rate(&c, MS), 1000);
	c.rate_cap = 0;
	/* edges: no RTT at all, and a very long one */
	Q_EXPECT_GT(test, qrdma_cong_pace_rate(&c, 0), 1000000000ULL);
	Q_EXPECT_EQ(test, qrdma_cong_pace_rate(&c, U64_MAX), 1);
	/* a burst covers two ticks of the timer */
	Q_EXPECT_EQ(test, qrdma_cong_pace_burst(&c, 1000000000ULL), 200000);
	Q_EXPECT_EQ(test, qrdma_cong_pace_burst(&c, 1000), 10000);
}

/* Send as fast as pacing lets; over a second that must be the rate, burst apart. */
static void pace_run(struct q_test *test, struct qrdma_cong *c, u64 srtt, u64 tick)
{
	u64 rate = qrdma_cong_pace_rate(c, srtt), sent = 0, now = 0, at, burst;

	burst = qrdma_cong_pace_burst(c, rate);
	while (now < S) {
		at = qrdma_cong_pace_at(c, MDS, srtt, now);
		if (at > now) {
			/* the timer fires late, at its next tick */
			now = (at / tick + 1) * tick;
			continue;
		}
		qrdma_cong_pace_sent(c, MDS, srtt, now);
		sent += MDS;
	}
	Q_EXPECT_LE(test, sent, rate + burst + MDS);
	Q_EXPECT_GE(test, sent, rate - rate / 100);
}

Q_TEST(cong_pace_bucket)
{
	struct qrdma_cong c;

	qrdma_cong_init(&c, QRDMA_CONG_ALG_NEWRENO, MDS, 100 * US, 0);
	pace_run(test, &c, MS, 1);
	/* a coarse timer does not lower the rate: 100 us at 200 MB/s */
	qrdma_cong_init(&c, QRDMA_CONG_ALG_NEWRENO, MDS, 100 * US, 0);
	pace_run(test, &c, 100 * US, 100 * US);
	/* a cap, asked about every few ns: fractions of a byte add up */
	qrdma_cong_init(&c, QRDMA_CONG_ALG_NEWRENO, MDS, 100 * US, 0);
	c.rate_cap = 30000;
	pace_run(test, &c, MS, 1);
	/* after a pause there is one burst, not more */
	Q_EXPECT_LE(test, qrdma_cong_pace_at(&c, 10000, MS, 100 * S), 100 * S);
	qrdma_cong_pace_sent(&c, 10000, MS, 100 * S);
	Q_EXPECT_GT(test, qrdma_cong_pace_at(&c, MDS, MS, 100 * S), 100 * S);
	/* what was not asked about may overdraw, and is not owed for ever */
	qrdma_cong_pace_sent(&c, 60000, MS, 100 * S);
	Q_EXPECT_LE(test, qrdma_cong_pace_at(&c, MDS, MS, 100 * S), 100 * S + S / 30 + 1);
}

/* Whatever comes in whatever order: bounds hold, nothing overflows (UBSan watches). */
Q_TEST(cong_random_bounds)
{
	u64 seed = q_seed(), now, i, at;
	struct qrdma_cong c;
	u16 event = 0;
	u32 round;

	for (round = 0; round < 400; round++) {
		u32 mds = QRDMA_MDS_MIN + q_rand(&seed) % (QRDMA_MDS_MAX - QRDMA_MDS_MIN);
		u64 srtt = 1ULL << (q_rand(&seed) % 40);

		qrdma_cong_init(&c, algs[round % 2], mds, q_rand(&seed) % S, 0);
		for (i = 0, now = 0; i < 300; i++) {
			now += q_rand(&seed) % (srtt + S);
			switch (q_rand(&seed) % 16) {
			case 0:
				event = qrdma_cong_on_lost(&c, q_rand(&seed) % (now + 1),
							   1 + q_rand(&seed) % 3, now);
				break;
			case 1:
				qrdma_cong_on_persistent(&c);
				break;
			case 2:
				qrdma_cong_on_ecn(&c, q_rand(&seed) % (now + 1), 1, 2, now);
				break;
			case 3:
				qrdma_cong_on_spurious(&c, event);
				break;
			case 4:
				at = qrdma_cong_pace_at(&c, mds, srtt, now);
				Q_ASSERT_LE(test, at - min(at, now), mds * S + 1);
				break;
			default:
				at = q_rand(&seed) % (1 + 2 * qrdma_cong_window(&c));
				acked(&c, at, srtt, now);
			}
			Q_ASSERT_GE(test, qrdma_cong_window(&c), 2 * (u64)mds);
			Q_ASSERT_LE(test, qrdma_cong_window(&c), QRDMA_CWND_MAX);
			Q_ASSERT_GE(test, c.s.ssthresh, 2 * (u64)mds);
		}
	}
}

Q_SUITE("qrdma-cong",
	Q_CASE(cong_initial_window),
	Q_CASE(cong_slow_start),
	Q_CASE(cong_newreno_cut),
	Q_CASE(cong_newreno_avoidance),
	Q_CASE(cong_minimum_and_persistent),
	Q_CASE(cong_application_limited),
	Q_CASE(cong_cubic_cut),
	Q_CASE(cong_cubic_curve),
	Q_CASE(cong_cubic_reno_friendly),
	Q_CASE(cong_cubic_idle),
	Q_CASE(cong_undo),
	Q_CASE(cong_pace_rate),
	Q_CASE(cong_pace_bucket),
	Q_CASE(cong_random_bounds));
