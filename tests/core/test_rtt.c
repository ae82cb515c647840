// SPDX-License-Identifier: GPL-2.0
/* Tests of core/rtt.c. */
#include "qtest.h"
#include "rtt.h"

#define US	1000ULL
#define MS	1000000ULL
#define S	1000000000ULL

Q_TEST(rtt_before_the_first_sample)
{
	struct qrdma_rtt rtt;

	qrdma_rtt_init(&rtt, 0, MS, 0);
	/* RFC 9002 s6.2.2: 333 ms, hence a PTO of about a second */
	Q_EXPECT_EQ(test, rtt.smoothed, 333 * MS);
	Q_EXPECT_EQ(test, rtt.var, 333 * MS / 2);
	Q_EXPECT_EQ(test, qrdma_rtt_pto(&rtt), 999 * MS);
	/* measured by the address resolution */
	qrdma_rtt_init(&rtt, 40 * US, 100 * US, 0);
	Q_EXPECT_EQ(test, qrdma_rtt_pto(&rtt), 140 * US);
}

/* RFC 9002 s5.3, computed by hand */
Q_TEST(rtt_samples)
{
	struct qrdma_rtt rtt;

	qrdma_rtt_init(&rtt, 0, MS, 0);
	qrdma_rtt_sample(&rtt, 80 * MS, 25 * MS, 100 * MS);
	/* the first one replaces the guess, its ACK delay is left out */
	Q_EXPECT_EQ(test, rtt.smoothed, 80 * MS);
	Q_EXPECT_EQ(test, rtt.var, 40 * MS);
	Q_EXPECT_EQ(test, rtt.min, 80 * MS);
	Q_EXPECT_EQ(test, rtt.first, 100 * MS);
	/* 120 - 24 = 96: var = 3/4 * 40 + 1/4 * 16 = 34, srtt = 7/8 * 80 + 96/8 = 82 */
	qrdma_rtt_sample(&rtt, 120 * MS, 24 * MS, 200 * MS);
	Q_EXPECT_EQ(test, rtt.var, 34 * MS);
	Q_EXPECT_EQ(test, rtt.smoothed, 82 * MS);
	Q_EXPECT_EQ(test, rtt.latest, 120 * MS);
	/* 90 - 24 is below the least: var = 3/4 * 34 + 1/4 * 8, srtt = 7/8 * 82 + 90/8 */
	qrdma_rtt_sample(&rtt, 90 * MS, 24 * MS, 300 * MS);
	Q_EXPECT_EQ(test, rtt.var, 27500 * US);
	Q_EXPECT_EQ(test, rtt.smoothed, 83 * MS);
	/* the least follows downwards only, without the ACK delay */
	qrdma_rtt_sample(&rtt, 75 * MS, 0, 400 * MS);
	Q_EXPECT_EQ(test, rtt.min, 75 * MS);
	Q_EXPECT_EQ(test, rtt.first, 100 * MS);
	qrdma_rtt_sample(&rtt, 300 * MS, 0, 400 * MS);
	qrdma_rtt_renew(&rtt);
	Q_EXPECT_EQ(test, rtt.min, 300 * MS);
}

/* F04: whatever ACK delay is claimed, the estimate stays between least and unadjusted sample */
Q_TEST(rtt_absurd_delay)
{
	u64 seed = q_seed(), i;
	struct qrdma_rtt rtt;

	qrdma_rtt_init(&rtt, 0, 100 * US, 0);
	for (i = 0; i < 10000; i++) {
		u64 delay = q_rand(&seed) >> (q_rand(&seed) % 64);

		qrdma_rtt_sample(&rtt, 50 * US + q_rand(&seed) % (10 * US), delay, i);
		Q_ASSERT_LE(test, rtt.smoothed, 61 * US);
		Q_ASSERT_GE(test, rtt.smoothed, 49 * US);
		Q_ASSERT_LE(test, rtt.var, 30 * US);
	}
}

Q_TEST(rtt_loss_delay)
{
	struct qrdma_rtt rtt;

	qrdma_rtt_init(&rtt, 0, MS, 0);
	qrdma_rtt_sample(&rtt, 80 * MS, 0, 0);
	/* RFC 9002 s6.1.2: 9/8 of the greater of smoothed and latest */
	Q_EXPECT_EQ(test, qrdma_rtt_loss_delay(&rtt, S), 90 * MS);
	qrdma_rtt_sample(&rtt, 160 * MS, 0, 0);
	Q_EXPECT_EQ(test, qrdma_rtt_loss_delay(&rtt, S), 180 * MS);
	qrdma_rtt_sample(&rtt, 8 * MS, 0, 0);
	/* srtt is 7/8 * 90 + 1 */
	Q_EXPECT_EQ(test, qrdma_rtt_loss_delay(&rtt, S), rtt.smoothed + rtt.smoothed / 8);
	/* floored by the granularity */
	qrdma_rtt_init(&rtt, 0, MS, 0);
	qrdma_rtt_sample(&rtt, 10 * US, 0, 0);
	Q_EXPECT_EQ(test, qrdma_rtt_loss_delay(&rtt, S), MS);
}

/* F01: floored by the slowest loop of late, but not by more than two PTOs */
Q_TEST(rtt_slowest_loop)
{
	struct qrdma_rtt rtt;
	u64 now = 5 * S;

	qrdma_rtt_init(&rtt, 0, 100 * US, now);
	qrdma_rtt_sample(&rtt, 200 * US, 0, now);
	qrdma_rtt_loop(&rtt, 1500 * US, now);
	qrdma_rtt_loop(&rtt, 300 * US, now + MS);
	Q_EXPECT_EQ(test, qrdma_rtt_slowest(&rtt), 1500 * US);
	Q_EXPECT_EQ(test, qrdma_rtt_loss_delay(&rtt, 10 * MS), 1500 * US);
	Q_EXPECT_EQ(test, qrdma_rtt_loss_delay(&rtt, 400 * US), 800 * US);
	/* it counts for one window at least, and for two at most */
	qrdma_rtt_loop(&rtt, 250 * US, now + QRDMA_LOOP_WINDOW);
	Q_EXPECT_EQ(test, qrdma_rtt_slowest(&rtt), 1500 * US);
	qrdma_rtt_loop(&rtt, 250 * US, now + 2 * QRDMA_LOOP_WINDOW);
	Q_EXPECT_EQ(test, qrdma_rtt_slowest(&rtt), 250 * US);
	/* after a long silence nothing old counts */
	qrdma_rtt_loop(&rtt, 9 * MS, now + 2 * QRDMA_LOOP_WINDOW);
	qrdma_rtt_loop(&rtt, 200 * US, now + 50 * QRDMA_LOOP_WINDOW);
	Q_EXPECT_EQ(test, qrdma_rtt_slowest(&rtt), 200 * US);
}

Q_SUITE("qrdma-rtt",
	Q_CASE(rtt_before_the_first_sample),
	Q_CASE(rtt_samples),
	Q_CASE(rtt_absurd_delay),
	Q_CASE(rtt_loss_delay),
	Q_CASE(rtt_slowest_loop));
