/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of recovery.c share: a recovery with its clock and numbers, and short ways to send
 * and acknowledge. ACK frames go through the encoder and the decoder, as on the wire.
 */
#ifndef QRDMA_TESTS_RECOVERY_BENCH_H
#define QRDMA_TESTS_RECOVERY_BENCH_H

#include "qtest.h"
#include "recovery.h"

#define US	1000ULL
#define MS	1000000ULL
#define S	1000000000ULL

#define BENCH_ACK_DELAY	(25 * MS)
#define BENCH_WIRE	1024

/**
 * struct bench - a recovery on the bench
 * @r: it
 * @res: result of the last call
 * @now: the clock
 * @pn: next number by space
 * @ecn: ACK frames carry the counts
 * @ect0: count
 * @ce: count
 * @frame: last ACK frame
 * @wire: its bytes
 */
struct bench {
	struct qrdma_recovery r;
	struct qrdma_recovery_result res;
	u64 now;
	u64 pn[QRDMA_SPACES];
	bool ecn;
	u64 ect0;
	u64 ce;
	struct qrdma_frame frame;
	u8 wire[BENCH_WIRE];
};

/* Datagrams of 1000 bytes, NewReno, timers of 100 us, a peer that waits up to 25 ms. */
static inline struct bench *bench_new(struct q_test *test, bool is_server, bool confirmed)
{
	struct qrdma_recovery_config cfg = {
		.is_server = is_server,
		.confirmed = confirmed,
		.alg = QRDMA_CONG_ALG_NEWRENO,
		.mds = 1000,
		.max_ack_delay = BENCH_ACK_DELAY,
	};
	struct bench *b = q_zalloc(test, sizeof(*b));

	Q_ASSERT_EQ(test, qrdma_recovery_init(&b->r, &cfg, 0), 0);
	return b;
}

/* A server whose handshake in band was just confirmed, its spaces still there. */
static inline struct bench *bench_new_inband(struct q_test *test)
{
	struct bench *b = bench_new(test, true, false);

	b->r.confirmed = true;
	return b;
}

static inline void bench_end(struct bench *b)
{
	qrdma_recovery_destroy(&b->r);
}

/* Send whatever window and pacing say; U64_MAX: there was no record for it. */
static inline u64 bench_send_flags(struct bench *b, u8 space, u16 size, u8 flags)
{
	struct qrdma_sent_packet pkt = {
		.pn = b->pn[space], .size = size, .flags = flags, .nframes = 1,
		.frame = { { .type = 8, .val = 1000 * b->pn[space] } },
	};

	if (qrdma_recovery_reserve(&b->r, space, pkt.pn) != QRDMA_SEND_OK)
		return U64_MAX;
	qrdma_recovery_on_sent(&b->r, space, &pkt, b->now);
	return b->pn[space]++;
}

static inline u64 bench_send(struct bench *b, u8 space, u16 size)
{
	return bench_send_flags(b, space, size, QRDMA_SENT_ELICITING);
}

/* Acknowledge ascending ranges. */
static inline int bench_ack_ranges(struct bench *b, u8 space, const struct qrdma_range *range,
				   u32 count, u64 delay)
{
	struct qrdma_ack ack = { .ecn = b->ecn, .ect0 = b->ect0, .ce = b->ce };
	struct qrdma_writer w;
	struct qrdma_cursor c;

	qrdma_writer_init(&w, b->wire, sizeof(b->wire));
	ack.largest = range[count - 1].hi;
	if (qrdma_ack_encode(&w, &ack, range, count) != count)
		return -EMSGSIZE;
	qrdma_cursor_init(&c, b->wire, sizeof(b->wire) - qrdma_writer_room(&w));
	if (qrdma_frame_decode(&c, QRDMA_FA_1RTT | QRDMA_FA_CLIENT, &b->frame))
		return -EBADMSG;
	return qrdma_recovery_on_ack(&b->r, space, &b->frame.ack, delay, b->now, &b->res);
}

static inline int bench_ack(struct bench *b, u8 space, u64 lo, u64 hi, u64 delay)
{
	struct qrdma_range range = { lo, hi };

	return bench_ack_ranges(b, space, &range, 1, delay);
}

static inline void bench_timeout(struct bench *b, u64 at)
{
	b->now = max(b->now, at);
	qrdma_recovery_on_timeout(&b->r, b->now, &b->res);
}

static inline u64 bench_count(const struct qrdma_sent *rec)
{
	u64 n;

	for (n = 0; rec; rec = rec->next)
		n++;
	return n;
}

#endif /* QRDMA_TESTS_RECOVERY_BENCH_H */
