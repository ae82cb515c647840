// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of core/recovery.c: vectors from RFC 9002, the field cases F01, F04, F05, F06, F66, limits
 * of memory. test_recovery_model.c holds it against a naive model.
 */
#include "qtest.h"
#include "recovery_bench.h"

#define APP		QRDMA_SPACE_APP
#define INITIAL		QRDMA_SPACE_INITIAL
#define HANDSHAKE	QRDMA_SPACE_HANDSHAKE

Q_TEST(recovery_first_ack)
{
	struct bench *b = bench_new(test, true, true);
	const struct qrdma_sent *rec;
	u64 i;

	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), QRDMA_NEVER);
	for (i = 0; i < 4; i++) {
		b->now = 10 * MS + i;
		Q_EXPECT_EQ(test, bench_send(b, APP, 500), i);
	}
	Q_EXPECT_EQ(test, b->r.in_flight, 2000);
	b->now = 30 * MS;
	Q_EXPECT_EQ(test, bench_ack(b, APP, 0, 2, 0), 0);
	Q_EXPECT_EQ(test, b->r.in_flight, 500);
	Q_EXPECT_TRUE(test, b->res.sampled);
	Q_EXPECT_EQ(test, b->r.rtt.latest, 20 * MS - 2);
	Q_EXPECT_EQ(test, b->r.rtt.first, 30 * MS);
	/* largest first, notes as they were left */
	for (rec = b->res.acked, i = 2; rec; rec = rec->next, i--) {
		Q_EXPECT_EQ(test, rec->pn, i);
		Q_EXPECT_EQ(test, rec->state, QRDMA_SENT_ACKED);
		Q_EXPECT_EQ(test, rec->nframes, 1);
		Q_EXPECT_EQ(test, rec->frame[0].val, 1000 * i);
	}
	Q_EXPECT_EQ(test, i, U64_MAX);
	Q_EXPECT_NULL(test, b->res.lost);
	/* again: nothing new */
	Q_EXPECT_EQ(test, bench_ack(b, APP, 0, 2, 0), 0);
	Q_EXPECT_NULL(test, b->res.acked);
	Q_EXPECT_FALSE(test, b->res.sampled);
	bench_end(b);
}

/* RFC 9002 s6.1.1 */
Q_TEST(recovery_packet_threshold)
{
	struct bench *b = bench_new(test, true, true);
	u64 i;

	for (i = 0; i < 5; i++)
		bench_send(b, APP, 500);
	b->now += MS;
	bench_ack(b, APP, 2, 2, 0);
	Q_EXPECT_NULL(test, b->res.lost);
	bench_ack(b, APP, 3, 3, 0);
	Q_EXPECT_EQ(test, bench_count(b->res.lost), 1);
	Q_EXPECT_EQ(test, b->res.lost->pn, 0);
	bench_ack(b, APP, 4, 4, 0);
	Q_EXPECT_EQ(test, b->res.lost->pn, 1);
	Q_EXPECT_EQ(test, b->r.in_flight, 0);
	Q_EXPECT_EQ(test, b->r.stats.lost, 2);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), QRDMA_NEVER);
	bench_end(b);
}

/* Numbers that were never sent are no packets that overtook (RFC 9002 A.10). */
Q_TEST(recovery_threshold_without_gaps)
{
	struct bench *b = bench_new(test, true, true);

	bench_send(b, APP, 500);
	b->pn[APP] = 10;
	bench_send(b, APP, 500);
	b->pn[APP] = 20;
	bench_send(b, APP, 500);
	bench_send(b, APP, 500);
	b->now += MS;
	bench_ack(b, APP, 20, 20, 0);
	Q_EXPECT_NULL(test, b->res.lost);
	bench_ack(b, APP, 21, 21, 0);
	Q_EXPECT_EQ(test, bench_count(b->res.lost), 1);
	bench_end(b);
}

/* RFC 9002 s6.1.2: lost 9/8 RTT after it was sent, by the timer */
Q_TEST(recovery_time_threshold)
{
	struct bench *b = bench_new(test, true, true);

	b->now = 101 * MS;
	bench_send(b, APP, 500);
	bench_send(b, APP, 500);
	b->now = 109 * MS;
	bench_ack(b, APP, 1, 1, 0);
	Q_EXPECT_EQ(test, b->r.rtt.smoothed, 8 * MS);
	Q_EXPECT_NULL(test, b->res.lost);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), 110 * MS);
	bench_timeout(b, 110 * MS - 1);
	Q_EXPECT_NULL(test, b->res.lost);
	bench_timeout(b, 110 * MS);
	Q_EXPECT_EQ(test, bench_count(b->res.lost), 1);
	Q_EXPECT_EQ(test, b->res.probes, 0);
	Q_EXPECT_EQ(test, b->r.pto_count, 0);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), QRDMA_NEVER);
	bench_end(b);
}

/* RFC 9002 s6.2.1 */
Q_TEST(recovery_pto_backoff)
{
	struct bench *b = bench_new(test, true, true);
	u64 pto, i;

	b->now = 5 * S;
	bench_send(b, APP, 500);
	/* 333 + 4 * 166.5 + 25 ms */
	pto = 1024 * MS;
	Q_EXPECT_EQ(test, qrdma_recovery_pto(&b->r, APP), pto);
	Q_EXPECT_EQ(test, qrdma_recovery_pto(&b->r, HANDSHAKE), 999 * MS);
	for (i = 1; i < 5; i++, pto *= 2) {
		Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), 5 * S + pto);
		bench_timeout(b, 5 * S + pto - 1);
		Q_EXPECT_EQ(test, b->res.probes, 0);
		bench_timeout(b, 5 * S + pto);
		Q_EXPECT_EQ(test, b->res.probes, QRDMA_PROBES);
		Q_EXPECT_EQ(test, b->res.probe_space, APP);
		Q_EXPECT_NULL(test, b->res.lost);
		Q_EXPECT_EQ(test, b->r.pto_count, i);
	}
	/* a PTO is no loss: the packet is still in flight */
	Q_EXPECT_EQ(test, b->r.in_flight, 500);
	/* a probe moves the timer, it does not set it back */
	b->now = 30 * S;
	bench_send(b, APP, 500);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), 30 * S + pto);
	/* the backoff ends somewhere */
	for (i = 0; i < 100; i++)
		bench_timeout(b, qrdma_recovery_deadline(&b->r));
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), 30 * S + QRDMA_PTO_MAX);
	/* an acknowledgment resets it */
	b->now += MS;
	bench_ack(b, APP, 1, 1, 0);
	Q_EXPECT_EQ(test, b->r.pto_count, 0);
	bench_end(b);
}

/* F01: a loop that was slow of late is waited for, up to two PTOs. */
Q_TEST(recovery_pto_floor)
{
	struct bench *b = bench_new(test, true, true);
	u64 i;

	b->r.max_ack_delay = 0;
	for (i = 0; i < 100; i++) {
		bench_send(b, APP, 500);
		b->now += i == 50 ? 500 * US : 200 * US;
		bench_ack(b, APP, i, i, 0);
	}
	Q_EXPECT_LE(test, qrdma_recovery_pto(&b->r, APP), 301 * US);
	bench_send(b, APP, 500);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), b->now + 500 * US);
	b->now += 5 * MS;
	bench_ack(b, APP, i, i, 0);
	for (i++; i < 200; i++) {
		bench_send(b, APP, 500);
		b->now += 200 * US;
		bench_ack(b, APP, i, i, 0);
	}
	bench_send(b, APP, 500);
	Q_EXPECT_LE(test, qrdma_recovery_deadline(&b->r), b->now + 602 * US);
	bench_end(b);
}

/* The PTO of the application space waits for the confirmation (RFC 9002 s6.2.1). */
Q_TEST(recovery_pto_unconfirmed)
{
	struct bench *b = bench_new(test, true, false);

	bench_send(b, APP, 500);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), QRDMA_NEVER);
	bench_send(b, HANDSHAKE, 500);
	/* no max_ack_delay there */
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), b->now + 999 * MS);
	b->now += MS;
	bench_send(b, INITIAL, 500);
	bench_timeout(b, b->now + 999 * MS);
	Q_EXPECT_EQ(test, b->res.probe_space, HANDSHAKE);
	b->r.confirmed = true;
	qrdma_recovery_drop_space(&b->r, INITIAL, b->now);
	qrdma_recovery_drop_space(&b->r, HANDSHAKE, b->now);
	Q_EXPECT_EQ(test, b->r.in_flight, 500);
	Q_EXPECT_EQ(test, b->r.pto_count, 0);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), 1024 * MS);
	bench_end(b);
}

/* RFC 9002 s6.2.2.1: the client keeps the handshake alive although nothing is in flight */
Q_TEST(recovery_client_anti_deadlock)
{
	struct bench *b = bench_new(test, false, false);

	b->now = S;
	bench_send(b, INITIAL, 1200);
	b->now += 10 * MS;
	bench_timeout(b, 2 * S - MS);
	Q_EXPECT_EQ(test, b->res.probe_space, INITIAL);
	Q_EXPECT_EQ(test, b->r.pto_count, 1);
	b->now = 2 * S;
	bench_ack(b, INITIAL, 0, 0, 0);
	/* not sure yet that the server is not blocked: the backoff stays */
	Q_EXPECT_EQ(test, b->r.pto_count, 1);
	Q_EXPECT_EQ(test, b->r.in_flight, 0);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), 2 * S + 6 * S);
	bench_timeout(b, 8 * S);
	Q_EXPECT_EQ(test, b->res.probes, 1);
	Q_EXPECT_EQ(test, b->res.probe_space, INITIAL);
	b->r.handshake_keys = true;
	bench_timeout(b, qrdma_recovery_deadline(&b->r));
	Q_EXPECT_EQ(test, b->res.probe_space, HANDSHAKE);
	/* an acknowledged Handshake packet ends that */
	bench_send(b, HANDSHAKE, 500);
	bench_ack(b, HANDSHAKE, 0, 0, 0);
	Q_EXPECT_EQ(test, b->r.pto_count, 0);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), QRDMA_NEVER);
	bench_end(b);
}

/* F05: no timer while the anti-amplification limit forbids sending; afterwards it may be overdue */
Q_TEST(recovery_server_blocked)
{
	struct bench *b = bench_new(test, true, false);

	bench_send(b, INITIAL, 1200);
	b->r.blocked = true;
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), QRDMA_NEVER);
	bench_timeout(b, 100 * S);
	Q_EXPECT_EQ(test, b->res.probes, 0);
	b->r.blocked = false;
	Q_EXPECT_LT(test, qrdma_recovery_deadline(&b->r), 100 * S);
	bench_timeout(b, 100 * S);
	Q_EXPECT_EQ(test, b->res.probes, QRDMA_PROBES);
	bench_end(b);
}

/* F04: a peer that claims to have waited 16 s moves the PTO by no more than 2x */
Q_TEST(recovery_absurd_ack_delay)
{
	struct bench *b = bench_new(test, true, true);
	u64 pto, i;

	for (i = 0; i < 20; i++) {
		bench_send(b, APP, 500);
		b->now += 200 * US;
		bench_ack(b, APP, i, i, 20 * US);
	}
	pto = qrdma_recovery_pto(&b->r, APP);
	for (; i < 200; i++) {
		bench_send(b, APP, 500);
		b->now += 200 * US + i % 3 * 50 * US;
		bench_ack(b, APP, i, i, 16 * S);
		Q_ASSERT_LE(test, qrdma_recovery_pto(&b->r, APP), 2 * pto);
		Q_ASSERT_GE(test, 2 * qrdma_recovery_pto(&b->r, APP), pto);
	}
	/* before the confirmation the peer's max_ack_delay is no limit (RFC 9002 s5.3) */
	b->r.confirmed = false;
	for (; i < 400; i++) {
		bench_send(b, APP, 500);
		b->now += 200 * US + i % 3 * 50 * US;
		bench_ack(b, APP, i, i, i % 2 ? 16 * S : U64_MAX);
		Q_ASSERT_LE(test, qrdma_recovery_pto(&b->r, APP), 2 * pto);
	}
	bench_end(b);
}

/* RFC 9002 s7.6.3, the example, in seconds; the PTO is 2 s after the sample at 12.2 s */
Q_TEST(recovery_persistent_example)
{
	static const u64 at[] = { 0, 1000, 2000, 3000, 4000, 5000, 6000, 8000, 12000 };
	struct bench *b = bench_new(test, true, true);
	u64 base = 100 * S, cwnd, i;

	b->r.max_ack_delay = 0;
	b->now = base;
	bench_send(b, APP, 100);
	b->now = base + 500 * MS;
	bench_ack(b, APP, 0, 0, 0);
	cwnd = qrdma_cong_window(&b->r.cong);
	for (i = 1; i < ARRAY_SIZE(at); i++) {
		b->now = base + at[i] * MS;
		Q_EXPECT_EQ(test, bench_send(b, APP, 100), i);
	}
	b->r.rtt.smoothed = S;
	b->r.rtt.var = 100 * MS;
	b->now = base + 12200 * MS;
	bench_ack(b, APP, 8, 8, 0);
	Q_EXPECT_EQ(test, qrdma_recovery_pto(&b->r, APP), 2 * S);
	Q_EXPECT_EQ(test, bench_count(b->res.lost), 7);
	Q_EXPECT_TRUE(test, b->res.persistent);
	Q_EXPECT_LT(test, qrdma_cong_window(&b->r.cong), cwnd);
	/* the minimum, from which the packet acknowledged lets it grow again */
	Q_EXPECT_EQ(test, qrdma_cong_window(&b->r.cong), 2 * b->r.cong.mds + 100);
	/* s5.2: the least RTT is set anew */
	Q_EXPECT_EQ(test, b->r.rtt.min, 200 * MS);
	bench_end(b);
}

/* The same, with what keeps it from being persistent congestion.
 * @gap: acknowledge that packet first; @flags: of packets 1..7; @late: when the RTT sample comes;
 * @elsewhere: a packet sent in the Handshake space in between is acknowledged
 */
static bool persistent(struct q_test *test, u64 gap, u8 flags, u64 late, bool elsewhere)
{
	static const u64 at[] = { 0, 1000, 2000, 3000, 4000, 5000, 6000, 8000, 12000 };
	struct bench *b = bench_new_inband(test);
	bool found;
	u64 i;

	b->r.max_ack_delay = 0;
	bench_send(b, APP, 100);
	for (i = 1; i < ARRAY_SIZE(at); i++) {
		if (at[i - 1] <= late && late < at[i]) {
			b->now = late * MS;
			bench_ack(b, APP, 0, 0, 0);
		}
		b->now = at[i] * MS;
		bench_send_flags(b, APP, 100, i < 8 ? flags : QRDMA_SENT_ELICITING);
		if (elsewhere && i == 4)
			bench_send(b, HANDSHAKE, 100);
	}
	if (elsewhere)
		bench_ack(b, HANDSHAKE, 0, 0, 0);
	b->r.rtt.smoothed = S;
	b->r.rtt.var = 100 * MS;
	b->now = 12200 * MS;
	if (gap)
		bench_ack(b, APP, gap, gap, 0);
	b->r.rtt.smoothed = S;
	b->r.rtt.var = 100 * MS;
	bench_ack(b, APP, 8, 8, 0);
	found = b->res.persistent;
	bench_end(b);
	return found;
}

Q_TEST(recovery_persistent_conditions)
{
	u8 el = QRDMA_SENT_ELICITING;

	Q_EXPECT_TRUE(test, persistent(test, 0, el, 500, false));
	/* one in the middle came through; at the edge it does not matter */
	Q_EXPECT_FALSE(test, persistent(test, 4, el, 500, false));
	/* not ack-eliciting: the peer need not acknowledge those in time */
	Q_EXPECT_FALSE(test, persistent(test, 0, QRDMA_SENT_IN_FLIGHT, 500, false));
	/* no RTT sample before t = 3 s leaves 8 - 4 = 4 s */
	Q_EXPECT_FALSE(test, persistent(test, 0, el, 3000, false));
	/* something sent in between in another space came through */
	Q_EXPECT_FALSE(test, persistent(test, 0, el, 500, true));
}

/* F66 and RFC 9000 s13.1: ACKs of what was never sent, and the frame changes nothing */
Q_TEST(recovery_ack_of_unsent)
{
	struct bench *b = bench_new_inband(test);
	u64 cwnd, i;

	Q_EXPECT_EQ(test, bench_ack(b, APP, 0, 0, 0), -EPROTO);
	for (i = 0; i < 20; i++)
		bench_send(b, APP, 500);
	/* 20 and 21 are left out */
	b->pn[APP] = 22;
	bench_send(b, APP, 500);
	cwnd = qrdma_cong_window(&b->r.cong);
	b->now += MS;
	Q_EXPECT_EQ(test, bench_ack(b, APP, 0, 72, 0), -EPROTO);
	Q_EXPECT_EQ(test, bench_ack(b, APP, 0, 23, 0), -EPROTO);
	Q_EXPECT_EQ(test, bench_ack(b, APP, 0, 22, 0), -EPROTO);
	Q_EXPECT_EQ(test, bench_ack(b, APP, 21, 22, 0), -EPROTO);
	Q_EXPECT_EQ(test, bench_ack(b, APP, 20, 20, 0), -EPROTO);
	Q_EXPECT_EQ(test, bench_ack(b, HANDSHAKE, 0, 0, 0), -EPROTO);
	Q_EXPECT_EQ(test, qrdma_cong_window(&b->r.cong), cwnd);
	Q_EXPECT_EQ(test, b->r.in_flight, 21 * 500);
	Q_EXPECT_EQ(test, b->r.stats.acked, 0);
	Q_EXPECT_FALSE(test, b->r.app.acked_any);
	/* what was sent is fine */
	Q_EXPECT_EQ(test, bench_ack(b, APP, 22, 22, 0), 0);
	Q_EXPECT_EQ(test, bench_ack(b, APP, 0, 19, 0), 0);
	/* a gap is remembered when all around it is long settled; the oldest of many is not */
	for (i = 0; i < 1000; i++)
		bench_send(b, APP, 10);
	b->now += MS;
	Q_EXPECT_EQ(test, bench_ack(b, APP, 23, 1000, 0), 0);
	Q_EXPECT_EQ(test, bench_ack(b, APP, 0, 22, 0), -EPROTO);
	for (i = 0; i < QRDMA_SKIPS; i++) {
		b->pn[APP] += 5;
		bench_send(b, APP, 10);
	}
	Q_EXPECT_EQ(test, bench_ack(b, APP, 0, 22, 0), 0);
	Q_EXPECT_EQ(test, bench_ack(b, APP, 1022, 1028, 0), -EPROTO);
	bench_end(b);
}

/* Packets declared lost come back: counted, told, the cut undone, reordering believed */
Q_TEST(recovery_spurious)
{
	struct bench *b = bench_new(test, true, true);
	u64 cwnd, i;

	for (i = 0; i < 10; i++)
		bench_send(b, APP, 1000);
	cwnd = qrdma_cong_window(&b->r.cong);
	b->now += MS;
	bench_ack(b, APP, 6, 6, 0);
	Q_EXPECT_EQ(test, bench_count(b->res.lost), 4);
	Q_EXPECT_LT(test, qrdma_cong_window(&b->r.cong), cwnd);
	Q_EXPECT_EQ(test, b->r.in_flight, 5000);
	bench_ack(b, APP, 1, 3, 0);
	Q_EXPECT_EQ(test, b->res.spurious, 3);
	Q_EXPECT_EQ(test, bench_count(b->res.acked), 3);
	Q_EXPECT_EQ(test, b->res.acked->state, QRDMA_SENT_LOST);
	Q_EXPECT_EQ(test, b->res.acked->frame[0].val, 3000);
	/* 1 was overtaken by 6 */
	Q_EXPECT_EQ(test, b->r.packet_threshold, 6);
	Q_EXPECT_EQ(test, b->r.in_flight, 5000);
	Q_EXPECT_LT(test, qrdma_cong_window(&b->r.cong), cwnd);
	bench_ack(b, APP, 0, 0, 0);
	Q_EXPECT_GE(test, qrdma_cong_window(&b->r.cong), cwnd);
	Q_EXPECT_EQ(test, b->r.stats.spurious, 4);
	Q_EXPECT_EQ(test, b->r.cong.undone, 1);
	Q_EXPECT_EQ(test, b->r.packet_threshold, 7);
	/* only once */
	bench_ack(b, APP, 0, 3, 0);
	Q_EXPECT_NULL(test, b->res.acked);
	bench_end(b);
}

/* The threshold has an upper end, and a record of a lost packet a last day. */
Q_TEST(recovery_spurious_limits)
{
	struct bench *b = bench_new(test, true, true);
	u64 i;

	for (i = 0; i < 300; i++)
		bench_send(b, APP, 10);
	b->now += MS;
	bench_ack(b, APP, 250, 250, 0);
	bench_ack(b, APP, 0, 0, 0);
	Q_EXPECT_EQ(test, b->r.packet_threshold, QRDMA_PACKET_THRESHOLD_MAX);
	/* on record for a while, and only for a while */
	b->now += 3 * qrdma_recovery_pto(&b->r, APP);
	bench_ack(b, APP, 1, 1, 0);
	Q_EXPECT_EQ(test, b->res.spurious, 1);
	b->now += QRDMA_LOST_KEEP_PTOS * qrdma_recovery_pto(&b->r, APP);
	bench_ack(b, APP, 2, 2, 0);
	Q_EXPECT_EQ(test, b->res.spurious, 0);
	Q_EXPECT_NULL(test, b->res.acked);
	bench_end(b);
}

/* One packet may go out over the window when a recovery period begins (RFC 9002 s7.3.2). */
Q_TEST(recovery_window)
{
	struct bench *b = bench_new(test, true, true);
	u64 at, i;

	/* mds 1000: the initial window is 10 packets */
	for (i = 0; i < 10; i++) {
		Q_EXPECT_EQ(test, qrdma_recovery_may_send(&b->r, 1000, b->now, &at),
			    QRDMA_SEND_OK);
		bench_send(b, APP, 1000);
	}
	Q_EXPECT_EQ(test, qrdma_recovery_room(&b->r), 0);
	Q_EXPECT_EQ(test, qrdma_recovery_may_send(&b->r, 1, b->now, &at), QRDMA_SEND_WINDOW);
	/* ACK-only packets do not count */
	bench_send_flags(b, APP, 50, 0);
	Q_EXPECT_EQ(test, b->r.in_flight, 10000);
	b->now += MS;
	bench_ack(b, APP, 3, 3, 0);
	Q_EXPECT_GT(test, b->r.in_flight + 1000, qrdma_cong_window(&b->r.cong));
	Q_EXPECT_EQ(test, qrdma_recovery_may_send(&b->r, 1000, b->now, &at), QRDMA_SEND_OK);
	bench_send(b, APP, 1000);
	Q_EXPECT_EQ(test, qrdma_recovery_may_send(&b->r, 1000, b->now, &at), QRDMA_SEND_WINDOW);
	bench_end(b);
}

Q_TEST(recovery_paced)
{
	struct bench *b = bench_new(test, true, true);
	u64 at = 0, i;

	/* a large window and a full bucket: the burst goes, then it is 5/4 window per RTT */
	b->r.cong.s.cwnd = 100000;
	b->r.cong.s.ssthresh = 100000;
	for (i = 0; qrdma_recovery_may_send(&b->r, 1000, b->now, &at) == QRDMA_SEND_OK; i++)
		bench_send(b, APP, 1000);
	Q_EXPECT_EQ(test, i, 10);
	/* 1000 bytes at 125,000 bytes per 333 ms */
	Q_EXPECT_GE(test, at, b->now + 333 * MS / 125);
	Q_EXPECT_LE(test, at, b->now + 333 * MS / 125 + 10);
	b->now = at;
	Q_EXPECT_EQ(test, qrdma_recovery_may_send(&b->r, 1000, b->now, &at), QRDMA_SEND_OK);
	bench_end(b);
}

/* Window and MTU probe: its loss is no sign of congestion (RFC 9000 s14.4). */
Q_TEST(recovery_mtu_probe)
{
	struct bench *b = bench_new(test, true, true);
	u64 i;

	bench_send_flags(b, APP, 4000, QRDMA_SENT_ELICITING | QRDMA_SENT_MTU_PROBE);
	for (i = 0; i < 4; i++)
		bench_send(b, APP, 500);
	b->now += MS;
	bench_ack(b, APP, 1, 4, 0);
	Q_EXPECT_EQ(test, bench_count(b->res.lost), 1);
	Q_EXPECT_EQ(test, b->r.in_flight, 0);
	Q_EXPECT_EQ(test, b->r.cong.events, 0);
	bench_end(b);
}

/* A window not made use of does not grow, one that is does (RFC 9002 s7.8). */
Q_TEST(recovery_application_limited)
{
	struct bench *b = bench_new(test, true, true);
	u64 i;

	for (i = 0; i < 100; i++) {
		bench_send(b, APP, 1000);
		b->now += MS;
		bench_ack(b, APP, i, i, 0);
	}
	Q_EXPECT_EQ(test, qrdma_cong_window(&b->r.cong), 10000);
	for (i = 0; i < 10; i++)
		bench_send(b, APP, 1000);
	b->now += MS;
	/* acknowledged piece by piece before anything new leaves: all of it counts */
	for (i = 100; i < 110; i++)
		bench_ack(b, APP, i, i, 0);
	Q_EXPECT_EQ(test, qrdma_cong_window(&b->r.cong), 20000);
	bench_end(b);
}

/* F06: the window is full of packets whose frames nobody repeats, and all of them are lost */
Q_TEST(recovery_unrepeated_packets)
{
	struct bench *b = bench_new(test, true, true);
	u64 at, pto, start;

	bench_send(b, APP, 100);
	b->now += MS;
	bench_ack(b, APP, 0, 0, 0);
	b->r.cong.s.cwnd = 2000;
	/* a PATH_CHALLENGE in a full datagram, and one of nothing but PADDING */
	bench_send_flags(b, APP, 1000, QRDMA_SENT_ELICITING);
	bench_send_flags(b, APP, 1000, QRDMA_SENT_IN_FLIGHT);
	Q_EXPECT_EQ(test, qrdma_recovery_may_send(&b->r, 1000, b->now, &at), QRDMA_SEND_WINDOW);
	pto = qrdma_recovery_pto(&b->r, APP);
	start = b->now;
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), start + pto);
	bench_timeout(b, start + pto);
	Q_EXPECT_EQ(test, b->res.probes, QRDMA_PROBES);
	bench_send_flags(b, APP, 1000, QRDMA_SENT_ELICITING | QRDMA_SENT_PROBE);
	bench_send_flags(b, APP, 1000, QRDMA_SENT_ELICITING | QRDMA_SENT_PROBE);
	b->now += MS;
	bench_ack(b, APP, 3, 4, 0);
	Q_EXPECT_EQ(test, bench_count(b->res.lost), 2);
	Q_EXPECT_EQ(test, b->r.in_flight, 0);
	Q_EXPECT_EQ(test, qrdma_recovery_may_send(&b->r, 1000, b->now, &at), QRDMA_SEND_OK);
	Q_EXPECT_LE(test, b->now, start + 3 * pto);

	/* PADDING alone arms it too */
	bench_send_flags(b, APP, 1000, QRDMA_SENT_IN_FLIGHT);
	Q_EXPECT_NE(test, qrdma_recovery_deadline(&b->r), QRDMA_NEVER);
	bench_end(b);
}

/* What a probe may repeat. */
Q_TEST(recovery_oldest)
{
	struct bench *b = bench_new(test, true, true);
	const struct qrdma_sent *rec;
	u64 i;

	Q_EXPECT_NULL(test, qrdma_recovery_oldest(&b->r, APP, 0));
	bench_send_flags(b, APP, 100, 0);
	bench_send_flags(b, APP, 100, QRDMA_SENT_IN_FLIGHT);
	for (i = 2; i < 8; i++)
		bench_send(b, APP, 100);
	b->now += MS;
	bench_ack(b, APP, 4, 5, 0);
	/* 1 and 2 are lost */
	rec = qrdma_recovery_oldest(&b->r, APP, 0);
	Q_ASSERT_NOT_NULL(test, rec);
	Q_EXPECT_EQ(test, rec->pn, 3);
	rec = qrdma_recovery_oldest(&b->r, APP, rec->pn + 1);
	Q_ASSERT_NOT_NULL(test, rec);
	Q_EXPECT_EQ(test, rec->pn, 6);
	Q_EXPECT_NULL(test, qrdma_recovery_oldest(&b->r, APP, 8));
	bench_end(b);
}

/* Probes at once, without backing off. */
Q_TEST(recovery_kick)
{
	struct bench *b = bench_new(test, true, true);

	qrdma_recovery_kick(&b->r);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), QRDMA_NEVER);
	bench_send(b, APP, 100);
	qrdma_recovery_kick(&b->r);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), 0);
	bench_timeout(b, b->now);
	Q_EXPECT_EQ(test, b->res.probes, QRDMA_PROBES);
	Q_EXPECT_EQ(test, b->res.probe_space, APP);
	Q_EXPECT_EQ(test, b->r.pto_count, 0);
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), b->now + 1024 * MS);
	bench_end(b);
}

Q_TEST(recovery_requeue)
{
	struct bench *b = bench_new(test, false, false);
	u64 cwnd = qrdma_cong_window(&b->r.cong), i;

	for (i = 0; i < 40; i++)
		bench_send(b, APP, 100);
	bench_send_flags(b, APP, 50, 0);
	qrdma_recovery_requeue(&b->r, APP, b->now, &b->res);
	Q_EXPECT_EQ(test, bench_count(b->res.lost), 40);
	Q_EXPECT_EQ(test, b->res.lost->frame[0].val, 0);
	Q_EXPECT_EQ(test, b->r.in_flight, 0);
	Q_EXPECT_EQ(test, b->r.stats.lost, 0);
	Q_EXPECT_EQ(test, qrdma_cong_window(&b->r.cong), cwnd);
	/* they were sent, though */
	Q_EXPECT_EQ(test, bench_ack(b, APP, 0, 39, 0), 0);
	Q_EXPECT_NULL(test, b->res.acked);
	bench_send(b, APP, 100);
	b->now += MS;
	Q_EXPECT_EQ(test, bench_ack(b, APP, 41, 41, 0), 0);
	Q_EXPECT_EQ(test, bench_count(b->res.acked), 1);
	Q_EXPECT_NULL(test, b->res.lost);
	bench_end(b);
}

/* RFC 9000 s9.4: old packets tell nothing about the new path */
Q_TEST(recovery_new_path)
{
	struct bench *b = bench_new(test, true, true);
	u64 i;

	for (i = 0; i < 10; i++)
		bench_send(b, APP, 1000);
	b->now += MS;
	bench_ack(b, APP, 0, 2, 0);
	qrdma_recovery_new_path(&b->r, 50 * US, 2000, b->now);
	Q_EXPECT_EQ(test, b->r.in_flight, 0);
	Q_EXPECT_EQ(test, b->r.rtt.smoothed, 50 * US);
	Q_EXPECT_FALSE(test, b->r.rtt.sampled);
	Q_EXPECT_EQ(test, qrdma_cong_window(&b->r.cong), 14720);
	bench_send(b, APP, 2000);
	Q_EXPECT_EQ(test, b->r.in_flight, 2000);
	b->now += 50 * MS;
	/* 3 and 4 are lost, 5..9 arrived: no sample, no cut, no growth */
	bench_ack(b, APP, 5, 9, 0);
	Q_EXPECT_EQ(test, bench_count(b->res.lost), 2);
	Q_EXPECT_EQ(test, bench_count(b->res.acked), 5);
	Q_EXPECT_FALSE(test, b->r.rtt.sampled);
	Q_EXPECT_EQ(test, b->r.cong.events, 0);
	Q_EXPECT_EQ(test, qrdma_cong_window(&b->r.cong), 14720);
	Q_EXPECT_EQ(test, b->r.in_flight, 2000);
	bench_ack(b, APP, 10, 10, 0);
	Q_EXPECT_TRUE(test, b->r.rtt.sampled);
	Q_EXPECT_EQ(test, b->r.in_flight, 0);
	/* a straggler of the old path */
	bench_ack(b, APP, 3, 3, 0);
	Q_EXPECT_EQ(test, b->res.spurious, 1);
	Q_EXPECT_EQ(test, b->r.packet_threshold, QRDMA_PACKET_THRESHOLD);
	bench_end(b);
}

/* A CE mark is a congestion event (RFC 9002 s7.1); one per round trip */
Q_TEST(recovery_ecn)
{
	struct bench *b = bench_new(test, true, true);
	u64 cwnd, i;

	qrdma_ecn_start(&b->r.ecn);
	for (i = 0; i < 6; i++)
		bench_send_flags(b, APP, 1000, QRDMA_SENT_ELICITING | QRDMA_SENT_ECT);
	b->now += MS;
	b->ecn = true;
	b->ect0 = 2;
	bench_ack(b, APP, 0, 1, 0);
	Q_EXPECT_EQ(test, b->r.ecn.state, QRDMA_ECN_CAPABLE);
	cwnd = qrdma_cong_window(&b->r.cong);
	b->ce = 1;
	b->ect0 = 3;
	bench_ack(b, APP, 2, 3, 0);
	Q_EXPECT_EQ(test, b->r.cong.events, 1);
	Q_EXPECT_LT(test, qrdma_cong_window(&b->r.cong), cwnd);
	Q_EXPECT_EQ(test, b->r.stats.ce, 1);
	b->ce = 3;
	bench_ack(b, APP, 4, 5, 0);
	Q_EXPECT_EQ(test, b->r.cong.events, 1);
	Q_EXPECT_EQ(test, b->r.stats.ce, 3);
	Q_EXPECT_EQ(test, b->r.ecn.state, QRDMA_ECN_CAPABLE);
	bench_end(b);
}

/* An endless stream of ACK-only packets, none acknowledged, holds no memory. */
Q_TEST(recovery_ack_only_forever)
{
	struct bench *b = bench_new(test, true, true);
	u64 i;

	for (i = 0; i < 50000; i++) {
		bench_send_flags(b, APP, 40, 0);
		Q_ASSERT_LE(test, b->r.app.ring.chunks, 2);
	}
	Q_EXPECT_EQ(test, qrdma_recovery_deadline(&b->r), QRDMA_NEVER);
	/* behind a packet that waits, they are on record and can be acknowledged */
	bench_send(b, APP, 100);
	bench_send_flags(b, APP, 40, 0);
	b->now += MS;
	bench_ack(b, APP, i, i + 1, 0);
	Q_EXPECT_EQ(test, bench_count(b->res.acked), 2);
	Q_EXPECT_TRUE(test, b->res.sampled);
	bench_end(b);
}

/* F65: when many packets wait, ACK-only ones go off the record; a gap among them is remembered. */
Q_TEST(recovery_pass)
{
	struct bench *b = bench_new(test, true, true);
	u64 i, pn;

	for (i = 0; i < QRDMA_RECORD_ACKS; i++) {
		Q_EXPECT_FALSE(test, qrdma_recovery_crowded(&b->r, APP));
		bench_send(b, APP, 10);
	}
	Q_EXPECT_TRUE(test, qrdma_recovery_crowded(&b->r, APP));
	i = b->r.app.ring.chunks;
	for (pn = b->pn[APP] + 1; pn < b->pn[APP] + 3000; pn++)
		Q_ASSERT_EQ(test, qrdma_recovery_pass(&b->r, APP, pn, b->now), QRDMA_SEND_OK);
	Q_EXPECT_EQ(test, b->r.app.ring.chunks, i);
	b->now += MS;
	Q_EXPECT_EQ(test, bench_ack(b, APP, b->pn[APP], b->pn[APP], 0), -EPROTO);
	Q_EXPECT_EQ(test, bench_ack(b, APP, b->pn[APP] + 1, pn - 1, 0), 0);
	Q_EXPECT_NULL(test, b->res.acked);
	Q_EXPECT_EQ(test, bench_ack(b, APP, 0, b->pn[APP] - 1, 0), 0);
	Q_EXPECT_EQ(test, bench_count(b->res.acked), QRDMA_RECORD_ACKS);
	/* settled records go with the next packet */
	b->pn[APP] = pn;
	bench_send(b, APP, 10);
	Q_EXPECT_FALSE(test, qrdma_recovery_crowded(&b->r, APP));
	bench_end(b);
}

/* All records in use: refused by name, and usable again once something settles. */
Q_TEST(recovery_records_full)
{
	struct bench *b = bench_new(test, true, true);
	u64 i, pn;

	for (i = 0; i < QRDMA_SENT_MAX; i++)
		bench_send(b, APP, 1);
	pn = b->pn[APP];
	Q_EXPECT_EQ(test, qrdma_recovery_reserve(&b->r, APP, pn), QRDMA_SEND_RECORDS);
	Q_EXPECT_EQ(test, b->r.stats.refused, 1);
	/* all but the first arrive: it is lost, and kept for a while; not when room is needed */
	b->now += MS;
	bench_ack(b, APP, 1, QRDMA_SENT_MAX - 1, 0);
	Q_EXPECT_EQ(test, bench_count(b->res.acked), QRDMA_SENT_MAX - 1);
	Q_EXPECT_EQ(test, bench_count(b->res.lost), 1);
	Q_EXPECT_EQ(test, qrdma_recovery_reserve(&b->r, APP, pn), QRDMA_SEND_OK);
	Q_EXPECT_EQ(test, b->r.stats.forgotten, 1);
	Q_EXPECT_LE(test, b->r.app.ring.chunks, 2);
	bench_send(b, APP, 1);
	b->now += MS;
	bench_ack(b, APP, pn, pn, 0);
	qrdma_recovery_shrink(&b->r, b->now);
	Q_EXPECT_EQ(test, b->r.app.ring.chunks, 0);
	Q_EXPECT_NULL(test, b->r.app.ring.slot);
	/* and on it goes */
	bench_send(b, APP, 1);
	bench_ack(b, APP, pn + 1, pn + 1, 0);
	Q_EXPECT_EQ(test, bench_count(b->res.acked), 1);
	bench_end(b);
}

/* What was lost is given up in time, although nothing moves any more. */
Q_TEST(recovery_shrink_after_loss)
{
	struct bench *b = bench_new(test, true, true);
	u32 i;

	for (i = 0; i < 6; i++)
		bench_send(b, APP, 100);
	b->now += MS;
	bench_ack(b, APP, 1, 5, 0);
	Q_EXPECT_EQ(test, bench_count(b->res.lost), 1);
	qrdma_recovery_shrink(&b->r, b->now);
	Q_EXPECT_EQ(test, b->r.app.ring.chunks, 1);
	qrdma_recovery_shrink(&b->r, b->now + 1000 * MS);
	Q_EXPECT_EQ(test, b->r.app.ring.chunks, 0);
	bench_end(b);
}

/* An idle connection, with all three spaces, stays small. */
Q_TEST(recovery_idle_memory)
{
	struct bench *b = bench_new(test, true, true);
	u64 i;

	for (i = 0; i < 1000; i++) {
		bench_send(b, APP, 100);
		b->now += MS;
		bench_ack(b, APP, i, i, 0);
	}
	qrdma_recovery_reserve(&b->r, APP, 1000);
	Q_EXPECT_EQ(test, b->r.app.ring.chunks, 1);
	Q_EXPECT_EQ(test, b->r.app.ring.slots, QRDMA_SENT_SLOTS_MIN);
	Q_EXPECT_LE(test, sizeof(struct qrdma_sent), 128);
	Q_EXPECT_LE(test, sizeof(struct qrdma_recovery), 1536);
	bench_end(b);
}

Q_TEST(recovery_without_memory)
{
	struct bench *b = bench_new(test, true, true);
	u64 pn, n;

	if (!q_fail_alloc(0))
		Q_SKIP(test, "allocations cannot be made to fail here");
	for (pn = 0; pn < 500; pn++) {
		enum qrdma_send_verdict verdict;

		n = 1;
		do {
			q_fail_alloc(n++);
			verdict = qrdma_recovery_reserve(&b->r, APP, pn);
			q_fail_alloc(0);
			Q_ASSERT_TRUE(test, verdict == QRDMA_SEND_OK ||
				      verdict == QRDMA_SEND_NOMEM);
		} while (verdict != QRDMA_SEND_OK);
		bench_send(b, APP, 10);
	}
	Q_EXPECT_GT(test, b->r.stats.nomem, 10);
	b->now += MS;
	bench_ack(b, APP, 0, 499, 0);
	Q_EXPECT_EQ(test, bench_count(b->res.acked), 500);
	Q_EXPECT_EQ(test, b->r.in_flight, 0);
	bench_end(b);
}

Q_TEST(recovery_config)
{
	struct qrdma_recovery_config cfg = { .alg = 99, .mds = 1000 };
	struct qrdma_recovery *r = q_zalloc(test, sizeof(*r));
	struct qrdma_recovery_stats stats;

	/* never begun */
	qrdma_recovery_destroy(r);
	Q_EXPECT_EQ(test, qrdma_recovery_init(r, &cfg, 0), -EINVAL);
	cfg.alg = QRDMA_CONG_ALG_CUBIC;
	cfg.initial_rtt = 30 * US;
	Q_EXPECT_EQ(test, qrdma_recovery_init(r, &cfg, 0), 0);
	Q_EXPECT_EQ(test, qrdma_recovery_pto(r, HANDSHAKE), 30 * US + QRDMA_GRANULARITY);
	qrdma_recovery_stats(r, &stats);
	Q_EXPECT_EQ(test, stats.srtt, 30 * US);
	Q_EXPECT_EQ(test, stats.cwnd, 10000);
	Q_EXPECT_EQ(test, stats.ssthresh, U64_MAX);
	qrdma_recovery_destroy(r);
}

Q_SUITE("qrdma-recovery",
	Q_CASE(recovery_config),
	Q_CASE(recovery_first_ack),
	Q_CASE(recovery_packet_threshold),
	Q_CASE(recovery_threshold_without_gaps),
	Q_CASE(recovery_time_threshold),
	Q_CASE(recovery_pto_backoff),
	Q_CASE(recovery_pto_floor),
	Q_CASE(recovery_pto_unconfirmed),
	Q_CASE(recovery_client_anti_deadlock),
	Q_CASE(recovery_server_blocked),
	Q_CASE(recovery_absurd_ack_delay),
	Q_CASE(recovery_persistent_example),
	Q_CASE(recovery_persistent_conditions),
	Q_CASE(recovery_ack_of_unsent),
	Q_CASE(recovery_spurious),
	Q_CASE(recovery_spurious_limits),
	Q_CASE(recovery_window),
	Q_CASE(recovery_paced),
	Q_CASE(recovery_mtu_probe),
	Q_CASE(recovery_application_limited),
	Q_CASE(recovery_unrepeated_packets),
	Q_CASE(recovery_oldest),
	Q_CASE(recovery_kick),
	Q_CASE(recovery_requeue),
	Q_CASE(recovery_new_path),
	Q_CASE(recovery_ecn),
	Q_CASE(recovery_ack_only_forever),
	Q_CASE(recovery_pass),
	Q_CASE(recovery_records_full),
	Q_CASE(recovery_shrink_after_loss),
	Q_CASE(recovery_idle_memory),
	Q_CASE(recovery_without_memory));
