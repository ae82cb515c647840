// SPDX-License-Identifier: GPL-2.0
/* Tests of core/pnspace.c. */
#include "qtest.h"
#include "pnspace.h"

#define MS	1000000ULL
#define DELAY	(25 * MS)

static bool got(struct qrdma_pnspace *ps, u64 pn, u64 now)
{
	return qrdma_pnspace_on_received(ps, pn, true, QRDMA_ECN_NOT_ECT, now);
}

Q_TEST(pnspace_numbers_end)
{
	struct qrdma_pnspace ps;
	u64 pn = 77;

	qrdma_pnspace_init(&ps, 0, DELAY);
	Q_EXPECT_EQ(test, qrdma_pnspace_take(&ps, &pn), 0);
	Q_EXPECT_EQ(test, pn, 0);
	Q_EXPECT_EQ(test, qrdma_pnspace_take(&ps, &pn), 0);
	Q_EXPECT_EQ(test, pn, 1);

	/* F18: the last number is 2^62 - 1, and after it nothing wraps */
	qrdma_pnspace_init(&ps, QRDMA_PN_MAX - 1, DELAY);
	Q_EXPECT_EQ(test, qrdma_pnspace_take(&ps, &pn), 0);
	Q_EXPECT_EQ(test, qrdma_pnspace_take(&ps, &pn), 0);
	Q_EXPECT_EQ(test, pn, QRDMA_PN_MAX);
	Q_EXPECT_EQ(test, qrdma_pnspace_take(&ps, &pn), -EOVERFLOW);
	Q_EXPECT_EQ(test, qrdma_pnspace_take(&ps, &pn), -EOVERFLOW);
	Q_EXPECT_EQ(test, pn, QRDMA_PN_MAX);
	qrdma_pnspace_destroy(&ps);
}

Q_TEST(pnspace_duplicates)
{
	struct qrdma_pnspace ps;

	qrdma_pnspace_init(&ps, 0, DELAY);
	Q_EXPECT_FALSE(test, qrdma_pnspace_seen(&ps, 4));
	Q_EXPECT_TRUE(test, got(&ps, 4, 0));
	Q_EXPECT_TRUE(test, qrdma_pnspace_seen(&ps, 4));
	qrdma_pnspace_ack_sent(&ps);
	Q_EXPECT_FALSE(test, got(&ps, 4, 1));
	Q_EXPECT_EQ(test, ps.duplicates, 1);
	Q_EXPECT_EQ(test, qrdma_pnspace_deadline(&ps), QRDMA_NEVER);
	/* beyond what a packet number can be */
	Q_EXPECT_FALSE(test, got(&ps, QRDMA_PN_MAX + 1, 1));
	Q_EXPECT_TRUE(test, got(&ps, QRDMA_PN_MAX, 1));
	qrdma_pnspace_destroy(&ps);
}

/* RFC 9000 s13.2.2: every second ack-eliciting packet, and not later than the delay */
Q_TEST(pnspace_every_second)
{
	struct qrdma_pnspace ps;

	qrdma_pnspace_init(&ps, 0, DELAY);
	got(&ps, 0, 10 * MS);
	Q_EXPECT_EQ(test, qrdma_pnspace_deadline(&ps), 10 * MS + DELAY);
	Q_EXPECT_FALSE(test, qrdma_pnspace_ack_due(&ps, 10 * MS));
	Q_EXPECT_TRUE(test, qrdma_pnspace_ack_due(&ps, 10 * MS + DELAY));
	got(&ps, 1, 12 * MS);
	Q_EXPECT_TRUE(test, qrdma_pnspace_ack_due(&ps, 12 * MS));
	qrdma_pnspace_ack_sent(&ps);
	Q_EXPECT_FALSE(test, qrdma_pnspace_ack_due(&ps, 1000 * MS));
	got(&ps, 2, 20 * MS);
	Q_EXPECT_EQ(test, qrdma_pnspace_deadline(&ps), 20 * MS + DELAY);
}

/* RFC 9000 s13.2.1: packets that are not ack-eliciting never make an ACK due */
Q_TEST(pnspace_no_ack_of_acks)
{
	struct qrdma_pnspace ps;
	u64 pn;

	qrdma_pnspace_init(&ps, 0, DELAY);
	for (pn = 0; pn < 50; pn += 2)
		qrdma_pnspace_on_received(&ps, pn, false, QRDMA_ECN_NOT_ECT, 0);
	Q_EXPECT_EQ(test, qrdma_pnspace_deadline(&ps), QRDMA_NEVER);
	Q_EXPECT_TRUE(test, qrdma_pnspace_ack_useful(&ps));
	qrdma_pnspace_ack_sent(&ps);
	Q_EXPECT_FALSE(test, qrdma_pnspace_ack_useful(&ps));
	qrdma_pnspace_destroy(&ps);
}

/* RFC 9000 s13.2.1: Initial and Handshake are acknowledged at once */
Q_TEST(pnspace_handshake_at_once)
{
	struct qrdma_pnspace ps;

	qrdma_pnspace_init(&ps, 0, 0);
	got(&ps, 0, 3 * MS);
	Q_EXPECT_TRUE(test, qrdma_pnspace_ack_due(&ps, 3 * MS));
}

Q_TEST(pnspace_gap_at_once)
{
	struct qrdma_pnspace ps;

	qrdma_pnspace_init(&ps, 0, DELAY);
	got(&ps, 0, 0);
	qrdma_pnspace_ack_sent(&ps);
	/* 1 is missing */
	got(&ps, 2, MS);
	Q_EXPECT_TRUE(test, qrdma_pnspace_ack_due(&ps, MS));
	qrdma_pnspace_ack_sent(&ps);
	/* 3 comes in order: 1 is older than the last ack-eliciting packet */
	got(&ps, 3, 2 * MS);
	Q_EXPECT_FALSE(test, qrdma_pnspace_ack_due(&ps, 2 * MS));
	qrdma_pnspace_ack_sent(&ps);
	/* 1 comes late */
	got(&ps, 1, 3 * MS);
	Q_EXPECT_TRUE(test, qrdma_pnspace_ack_due(&ps, 3 * MS));
	qrdma_pnspace_ack_sent(&ps);
	/* what is not ack-eliciting leaves no gap */
	qrdma_pnspace_on_received(&ps, 4, false, QRDMA_ECN_NOT_ECT, 4 * MS);
	got(&ps, 5, 4 * MS);
	Q_EXPECT_FALSE(test, qrdma_pnspace_ack_due(&ps, 4 * MS));
	qrdma_pnspace_destroy(&ps);
}

Q_TEST(pnspace_ce_at_once)
{
	struct qrdma_pnspace ps;

	qrdma_pnspace_init(&ps, 0, DELAY);
	qrdma_pnspace_on_received(&ps, 0, true, QRDMA_ECN_ECT0, 0);
	Q_EXPECT_FALSE(test, qrdma_pnspace_ack_due(&ps, 0));
	qrdma_pnspace_ack_sent(&ps);
	qrdma_pnspace_on_received(&ps, 1, true, QRDMA_ECN_CE, 1);
	Q_EXPECT_TRUE(test, qrdma_pnspace_ack_due(&ps, 1));
	qrdma_pnspace_on_received(&ps, 2, true, QRDMA_ECN_ECT1, 1);
	/* a duplicate is not counted */
	qrdma_pnspace_on_received(&ps, 2, true, QRDMA_ECN_ECT1, 1);
	qrdma_pnspace_on_received(&ps, 3, true, 200, 1);
	Q_EXPECT_EQ(test, ps.ect0, 1);
	Q_EXPECT_EQ(test, ps.ect1, 1);
	Q_EXPECT_EQ(test, ps.ce, 1);
}

Q_TEST(pnspace_build_ack)
{
	const struct qrdma_range *range;
	struct qrdma_pnspace ps;
	struct qrdma_ack ack;

	qrdma_pnspace_init(&ps, 0, DELAY);
	Q_EXPECT_EQ(test, qrdma_pnspace_build_ack(&ps, 0, 3, &ack, &range), 0);
	got(&ps, 1, 10 * MS);
	got(&ps, 2, 10 * MS);
	got(&ps, 9, 11 * MS);
	got(&ps, 5, 14 * MS);
	/* 2 ms after the largest came: 2000 us in units of 8 us */
	Q_EXPECT_EQ(test, qrdma_pnspace_build_ack(&ps, 13 * MS, 3, &ack, &range), 3);
	Q_EXPECT_EQ(test, ack.largest, 9);
	Q_EXPECT_EQ(test, ack.delay, 250);
	Q_EXPECT_FALSE(test, ack.ecn);
	Q_EXPECT_EQ(test, range[0].lo, 1);
	Q_EXPECT_EQ(test, range[0].hi, 2);
	Q_EXPECT_EQ(test, range[2].hi, 9);
	/* the largest exponent, and a clock that stands still */
	qrdma_pnspace_build_ack(&ps, 11 * MS, 20, &ack, &range);
	Q_EXPECT_EQ(test, ack.delay, 0);

	qrdma_pnspace_on_received(&ps, 10, true, QRDMA_ECN_ECT0, 15 * MS);
	qrdma_pnspace_build_ack(&ps, 15 * MS, 0, &ack, &range);
	Q_EXPECT_TRUE(test, ack.ecn);
	Q_EXPECT_EQ(test, ack.ect0, 1);
	qrdma_pnspace_destroy(&ps);
}

/* RFC 9000 s13.2.4: what the peer knows is not reported again, and is still a duplicate */
Q_TEST(pnspace_ack_of_ack)
{
	const struct qrdma_range *range;
	struct qrdma_pnspace ps;
	struct qrdma_ack ack;

	qrdma_pnspace_init(&ps, 0, DELAY);
	got(&ps, 1, 0);
	got(&ps, 3, 0);
	got(&ps, 5, 0);
	got(&ps, 7, 0);
	qrdma_pnspace_ack_acked(&ps, 5);
	Q_EXPECT_EQ(test, qrdma_pnspace_build_ack(&ps, 0, 3, &ack, &range), 2);
	Q_EXPECT_EQ(test, range[0].lo, 5);
	Q_EXPECT_TRUE(test, qrdma_pnspace_seen(&ps, 1));
	Q_EXPECT_FALSE(test, qrdma_pnspace_seen(&ps, 2));
	/* an older confirmation, or one that cannot be, takes nothing back */
	qrdma_pnspace_ack_acked(&ps, 3);
	qrdma_pnspace_ack_acked(&ps, 1000);
	Q_EXPECT_EQ(test, qrdma_pnspace_build_ack(&ps, 0, 3, &ack, &range), 2);
	/* the top range is always there */
	qrdma_pnspace_ack_acked(&ps, 7);
	Q_EXPECT_EQ(test, qrdma_pnspace_build_ack(&ps, 0, 3, &ack, &range), 1);
	Q_EXPECT_EQ(test, range[0].lo, 7);
	/* a straggler below is news, and is reported */
	Q_EXPECT_TRUE(test, got(&ps, 2, 0));
	Q_EXPECT_EQ(test, qrdma_pnspace_build_ack(&ps, 0, 3, &ack, &range), 3);
	Q_EXPECT_EQ(test, range[0].lo, 1);
	Q_EXPECT_EQ(test, range[0].hi, 3);
	qrdma_pnspace_destroy(&ps);
}

static bool reports(const struct qrdma_pnspace *ps, u64 pn)
{
	const struct qrdma_range *range;
	struct qrdma_ack ack;
	u32 i, n = qrdma_pnspace_build_ack(ps, 0, 3, &ack, &range);

	for (i = 0; i < n; i++) {
		if (range[i].lo <= pn && pn <= range[i].hi)
			return true;
	}
	return false;
}

/* That the peer knows of a frame says nothing about what came after it was sent. */
Q_TEST(pnspace_straggler_before_ack_of_ack)
{
	struct qrdma_pnspace ps;

	qrdma_pnspace_init(&ps, 0, DELAY);
	got(&ps, 3, 0);
	got(&ps, 9, 0);
	qrdma_pnspace_ack_sent(&ps);
	got(&ps, 6, 0);
	qrdma_pnspace_ack_acked(&ps, 9);
	Q_EXPECT_TRUE(test, reports(&ps, 6));
	/* told about, but the peer may not know it: the frame before had the same number */
	qrdma_pnspace_ack_sent(&ps);
	qrdma_pnspace_ack_acked(&ps, 9);
	Q_EXPECT_TRUE(test, reports(&ps, 6));
	got(&ps, 11, 0);
	qrdma_pnspace_ack_sent(&ps);
	/* another one while the first waits for its turn */
	got(&ps, 7, 0);
	qrdma_pnspace_ack_acked(&ps, 11);
	Q_EXPECT_FALSE(test, reports(&ps, 3));
	Q_EXPECT_TRUE(test, reports(&ps, 7));
	got(&ps, 13, 0);
	qrdma_pnspace_ack_sent(&ps);
	got(&ps, 15, 0);
	qrdma_pnspace_ack_sent(&ps);
	qrdma_pnspace_ack_acked(&ps, 15);
	Q_EXPECT_FALSE(test, reports(&ps, 7));
	Q_EXPECT_TRUE(test, reports(&ps, 15));
	qrdma_pnspace_destroy(&ps);
}

/* F08: the peer leaves out 100,000 numbers; things go on, and what comes from before is refused */
Q_TEST(pnspace_far_jump)
{
	const struct qrdma_range *range;
	struct qrdma_pnspace ps;
	struct qrdma_ack ack;
	u64 pn, i;

	qrdma_pnspace_init(&ps, 0, DELAY);
	got(&ps, 0, 0);
	for (i = 0, pn = 100000; i < 2 * QRDMA_RANGES_MAX; i++, pn += 100000)
		Q_ASSERT_TRUE(test, got(&ps, pn, i));
	Q_EXPECT_EQ(test, ps.largest, pn - 100000);
	Q_EXPECT_EQ(test, qrdma_pnspace_build_ack(&ps, 0, 3, &ack, &range), QRDMA_RANGES_MAX);
	Q_EXPECT_FALSE(test, got(&ps, 1, 99));
	Q_EXPECT_FALSE(test, got(&ps, 100001, 99));
	Q_EXPECT_EQ(test, ps.duplicates, 2);
	Q_EXPECT_TRUE(test, got(&ps, ps.largest + 1, 100));
	Q_EXPECT_TRUE(test, got(&ps, ps.largest - 50000, 100));
	qrdma_pnspace_destroy(&ps);
}

Q_SUITE("qrdma-pnspace",
	Q_CASE(pnspace_numbers_end),
	Q_CASE(pnspace_duplicates),
	Q_CASE(pnspace_every_second),
	Q_CASE(pnspace_no_ack_of_acks),
	Q_CASE(pnspace_handshake_at_once),
	Q_CASE(pnspace_gap_at_once),
	Q_CASE(pnspace_ce_at_once),
	Q_CASE(pnspace_build_ack),
	Q_CASE(pnspace_ack_of_ack),
	Q_CASE(pnspace_straggler_before_ack_of_ack),
	Q_CASE(pnspace_far_jump));
