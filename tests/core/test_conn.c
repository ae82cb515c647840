// SPDX-License-Identifier: GPL-2.0
/* Connections: honest ends on a wire that mostly works. What dishonest peers do: test_conn_rx.c. */
#include "qpair.h"

Q_TEST(conn_moves_bytes)
{
	struct qpair *p = qpair_new(test);
	u8 data[5000], got[6000];
	u32 i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i * 7;
	Q_EXPECT_EQ(test, qpair_write(p->conn[0], data, sizeof(data)), 0);
	Q_EXPECT_EQ(test, qrdma_conn_finish(p->conn[0], 0), 0);
	qpair_settle(p);
	Q_EXPECT_TRUE(test, p->ev[1] & QRDMA_EV_ESTABLISHED);
	Q_EXPECT_TRUE(test, p->ev[1] & QRDMA_EV_READABLE);
	Q_EXPECT_EQ(test, qpair_read(p->conn[1], got, sizeof(got)), sizeof(data));
	Q_EXPECT_MEMEQ(test, got, data, sizeof(data));
	Q_EXPECT_TRUE(test, qrdma_conn_at_eof(p->conn[1], 0));
	Q_EXPECT_EQ(test, qpair_write(p->conn[1], "hello", 5), 0);
	qpair_run(p, NSEC_PER_SEC);
	Q_EXPECT_EQ(test, qpair_read(p->conn[0], got, sizeof(got)), 5);
	Q_EXPECT_MEMEQ(test, got, "hello", 5);
	Q_EXPECT_EQ(test, qrdma_conn_unacked(p->conn[0], 0), 0);
	Q_EXPECT_EQ(test, qrdma_conn_unacked(p->conn[1], 0), 0);
	Q_EXPECT_TRUE(test, p->ev[0] & QRDMA_EV_ACKED);
	qpair_free(p);
}

Q_SUITE("qrdma-conn", Q_CASE(conn_moves_bytes));
