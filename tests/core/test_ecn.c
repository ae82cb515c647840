// SPDX-License-Identifier: GPL-2.0
/* Tests of core/ecn.c (RFC 9000 s13.4.2). */
#include "qtest.h"
#include "ecn.h"

#define APP	QRDMA_SPACE_APP

static u64 report(struct qrdma_ecn_path *ecn, u64 ect0, u64 ce, u32 newly)
{
	struct qrdma_ack ack = { .ecn = true, .ect0 = ect0, .ce = ce };

	return qrdma_ecn_on_ack(ecn, APP, &ack, newly);
}

static void start(struct qrdma_ecn_path *ecn, u32 marked)
{
	memset(ecn, 0, sizeof(*ecn));
	qrdma_ecn_start(ecn);
	while (marked--)
		qrdma_ecn_on_sent(ecn, APP);
}

Q_TEST(ecn_off_by_itself)
{
	struct qrdma_ecn_path ecn = {};

	Q_EXPECT_FALSE(test, qrdma_ecn_mark(&ecn));
	Q_EXPECT_EQ(test, report(&ecn, 100, 100, 0), 0);
	qrdma_ecn_new_path(&ecn);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_OFF);
}

Q_TEST(ecn_becomes_capable)
{
	struct qrdma_ecn_path ecn;

	start(&ecn, 3);
	Q_EXPECT_TRUE(test, qrdma_ecn_mark(&ecn));
	Q_EXPECT_EQ(test, report(&ecn, 2, 0, 2), 0);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_CAPABLE);
	/* more may be counted than acknowledged here: ACK frames get lost */
	Q_EXPECT_EQ(test, report(&ecn, 2, 1, 1), 1);
	Q_EXPECT_EQ(test, report(&ecn, 2, 1, 0), 0);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_CAPABLE);
	/* once capable, losses are not held against it */
	qrdma_ecn_on_lost(&ecn);
	Q_EXPECT_TRUE(test, qrdma_ecn_mark(&ecn));
}

Q_TEST(ecn_tests_with_few)
{
	struct qrdma_ecn_path ecn;
	u32 i;

	start(&ecn, QRDMA_ECN_TESTING);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_WAIT);
	Q_EXPECT_FALSE(test, qrdma_ecn_mark(&ecn));
	for (i = 0; i < QRDMA_ECN_TESTING - 1; i++)
		qrdma_ecn_on_lost(&ecn);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_WAIT);
	/* one came through */
	Q_EXPECT_EQ(test, report(&ecn, 1, 0, 1), 0);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_CAPABLE);

	/* none came through */
	start(&ecn, QRDMA_ECN_TESTING);
	for (i = 0; i < QRDMA_ECN_TESTING; i++)
		qrdma_ecn_on_lost(&ecn);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_FAILED);
	qrdma_ecn_start(&ecn);
	Q_EXPECT_FALSE(test, qrdma_ecn_mark(&ecn));
	qrdma_ecn_new_path(&ecn);
	Q_EXPECT_TRUE(test, qrdma_ecn_mark(&ecn));
}

Q_TEST(ecn_fails)
{
	struct qrdma_ack plain = {}, ect1 = { .ecn = true, .ect0 = 1, .ect1 = 1 };
	struct qrdma_ecn_path ecn;

	/* no counts although marked packets are acknowledged: the peer does not see the marks */
	start(&ecn, 3);
	qrdma_ecn_on_ack(&ecn, APP, &plain, 0);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_TEST);
	qrdma_ecn_on_ack(&ecn, APP, &plain, 1);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_FAILED);
	/* failed is failed */
	Q_EXPECT_EQ(test, report(&ecn, 1, 2, 1), 0);

	/* fewer counted than acknowledged: something bleaches them */
	start(&ecn, 3);
	report(&ecn, 1, 0, 2);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_FAILED);

	/* more than were marked */
	start(&ecn, 3);
	report(&ecn, 4, 0, 3);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_FAILED);
	start(&ecn, 3);
	Q_EXPECT_EQ(test, report(&ecn, 2, U64_MAX, 3), 0);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_FAILED);

	/* a count went back */
	start(&ecn, 3);
	report(&ecn, 1, 1, 2);
	report(&ecn, 3, 0, 1);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_FAILED);

	/* ECT(1) was never sent */
	start(&ecn, 3);
	qrdma_ecn_on_ack(&ecn, APP, &ect1, 1);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_FAILED);
}

/* The counts are the connection's: they go on when the path changes. */
Q_TEST(ecn_counts_outlive_path)
{
	struct qrdma_ecn_path ecn;

	start(&ecn, 4);
	report(&ecn, 3, 0, 3);
	qrdma_ecn_new_path(&ecn);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_TEST);
	qrdma_ecn_on_sent(&ecn, APP);
	Q_EXPECT_EQ(test, report(&ecn, 4, 1, 1), 1);
	Q_EXPECT_EQ(test, ecn.state, QRDMA_ECN_CAPABLE);
	/* each space counts for itself */
	Q_EXPECT_EQ(test, ecn.space[QRDMA_SPACE_HANDSHAKE].ect0, 0);
}

Q_SUITE("qrdma-ecn",
	Q_CASE(ecn_off_by_itself),
	Q_CASE(ecn_becomes_capable),
	Q_CASE(ecn_tests_with_few),
	Q_CASE(ecn_fails),
	Q_CASE(ecn_counts_outlive_path));
