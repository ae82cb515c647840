// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of net/qrdma/core/flow.h: credit as RFC 9000 section 4 has it.
 */
#include "qtest.h"
#include "flow.h"

Q_TEST(flow_rx_grants_at_half)
{
	struct qrdma_flow_rx f;

	qrdma_flow_rx_init(&f, 1000);
	Q_EXPECT_EQ(test, f.max, 1000);
	Q_EXPECT_TRUE(test, qrdma_flow_rx_allows(&f, 1000));
	Q_EXPECT_FALSE(test, qrdma_flow_rx_allows(&f, 1001));
	Q_EXPECT_FALSE(test, qrdma_flow_rx_due(&f));

	f.read = 499;
	Q_EXPECT_FALSE(test, qrdma_flow_rx_due(&f));
	f.read = 500;
	Q_EXPECT_TRUE(test, qrdma_flow_rx_due(&f));
	Q_EXPECT_EQ(test, qrdma_flow_rx_next(&f), 1500);
	/* not granted before it is sent */
	Q_EXPECT_FALSE(test, qrdma_flow_rx_allows(&f, 1001));
	qrdma_flow_rx_grant(&f);
	Q_EXPECT_TRUE(test, qrdma_flow_rx_allows(&f, 1500));
	Q_EXPECT_FALSE(test, qrdma_flow_rx_due(&f));
}

Q_TEST(flow_rx_repeats_only_the_latest)
{
	struct qrdma_flow_rx f;

	qrdma_flow_rx_init(&f, 1000);
	f.read = 600;
	qrdma_flow_rx_grant(&f);
	f.read = 1200;
	qrdma_flow_rx_grant(&f);
	qrdma_flow_rx_lost(&f, 1600);
	Q_EXPECT_FALSE(test, qrdma_flow_rx_due(&f));
	qrdma_flow_rx_lost(&f, 2200);
	Q_EXPECT_TRUE(test, qrdma_flow_rx_due(&f));
	/* with what was read meanwhile */
	f.read = 1201;
	Q_EXPECT_EQ(test, qrdma_flow_rx_next(&f), 2201);
	qrdma_flow_rx_grant(&f);
	Q_EXPECT_FALSE(test, qrdma_flow_rx_due(&f));
}

Q_TEST(flow_rx_never_takes_back)
{
	struct qrdma_flow_rx f;

	qrdma_flow_rx_init(&f, 1000);
	f.window = 10;
	f.read = 500;
	Q_EXPECT_FALSE(test, qrdma_flow_rx_due(&f));
	qrdma_flow_rx_lost(&f, 1000);
	Q_EXPECT_TRUE(test, qrdma_flow_rx_due(&f));
	Q_EXPECT_EQ(test, qrdma_flow_rx_next(&f), 1000);
	qrdma_flow_rx_grant(&f);
	Q_EXPECT_EQ(test, f.max, 1000);

	/* a larger window opens at once */
	f.window = 4000;
	Q_EXPECT_TRUE(test, qrdma_flow_rx_due(&f));
	Q_EXPECT_EQ(test, qrdma_flow_rx_next(&f), 4500);
}

Q_TEST(flow_rx_ends)
{
	struct qrdma_flow_rx f;

	qrdma_flow_rx_init(&f, U64_MAX);
	Q_EXPECT_EQ(test, f.max, QRDMA_FLOW_MAX);
	f.read = QRDMA_FLOW_MAX;
	Q_EXPECT_EQ(test, qrdma_flow_rx_next(&f), QRDMA_FLOW_MAX);
	Q_EXPECT_FALSE(test, qrdma_flow_rx_due(&f));

	/* nothing granted, nothing to grant */
	qrdma_flow_rx_init(&f, 0);
	Q_EXPECT_FALSE(test, qrdma_flow_rx_due(&f));
	qrdma_flow_rx_init(&f, 1);
	Q_EXPECT_FALSE(test, qrdma_flow_rx_due(&f));
	f.read = 1;
	Q_EXPECT_TRUE(test, qrdma_flow_rx_due(&f));
}

Q_TEST(flow_tx_says_blocked_once)
{
	struct qrdma_flow_tx f;

	qrdma_flow_tx_init(&f, 0);
	Q_EXPECT_TRUE(test, qrdma_flow_tx_blocked(&f));
	f.told = 0;
	Q_EXPECT_FALSE(test, qrdma_flow_tx_blocked(&f));

	Q_EXPECT_TRUE(test, qrdma_flow_tx_raise(&f, 100));
	Q_EXPECT_FALSE(test, qrdma_flow_tx_raise(&f, 100));
	Q_EXPECT_FALSE(test, qrdma_flow_tx_raise(&f, 99));
	Q_EXPECT_EQ(test, qrdma_flow_tx_credit(&f), 100);
	Q_EXPECT_FALSE(test, qrdma_flow_tx_blocked(&f));
	f.sent = 100;
	Q_EXPECT_EQ(test, qrdma_flow_tx_credit(&f), 0);
	Q_EXPECT_TRUE(test, qrdma_flow_tx_blocked(&f));
	f.told = 100;
	Q_EXPECT_FALSE(test, qrdma_flow_tx_blocked(&f));
	qrdma_flow_tx_lost(&f, 0);
	Q_EXPECT_FALSE(test, qrdma_flow_tx_blocked(&f));
	qrdma_flow_tx_lost(&f, 100);
	Q_EXPECT_TRUE(test, qrdma_flow_tx_blocked(&f));
}

Q_SUITE("qrdma-flow",
	Q_CASE(flow_rx_grants_at_half),
	Q_CASE(flow_rx_repeats_only_the_latest),
	Q_CASE(flow_rx_never_takes_back),
	Q_CASE(flow_rx_ends),
	Q_CASE(flow_tx_says_blocked_once));
