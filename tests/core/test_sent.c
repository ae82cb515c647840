// SPDX-License-Identifier: GPL-2.0
/* Tests of core/sent.c: the ring of sent records against an array, at its cap, without memory. */
#include "qtest.h"
#include "sent.h"

/* Reserve and push, the way recovery does it. */
static int put(struct qrdma_sent_ring *ring, u64 pn)
{
	int err = qrdma_sent_ring_reserve(ring, pn);

	if (!err && !qrdma_sent_ring_push(ring, pn))
		err = -EIO;
	return err;
}

static u64 pn_of(const struct qrdma_sent *rec)
{
	return rec ? rec->pn : U64_MAX;
}

static void settle(struct qrdma_sent_ring *ring, u64 pn)
{
	qrdma_sent_ring_settle(ring, qrdma_sent_ring_find(ring, pn));
}

Q_TEST(sent_empty)
{
	struct qrdma_sent_ring ring;

	qrdma_sent_ring_init(&ring);
	Q_EXPECT_NULL(test, qrdma_sent_ring_find(&ring, 0));
	Q_EXPECT_NULL(test, qrdma_sent_ring_up(&ring, 0, U64_MAX));
	Q_EXPECT_NULL(test, qrdma_sent_ring_down(&ring, U64_MAX, 0));
	qrdma_sent_ring_trim(&ring);
	qrdma_sent_ring_clear(&ring);
}

Q_TEST(sent_find_and_walk)
{
	struct qrdma_sent_ring ring;
	u64 pn;

	qrdma_sent_ring_init(&ring);
	for (pn = 3; pn < 100; pn += 3)
		Q_ASSERT_EQ(test, put(&ring, pn), 0);
	Q_EXPECT_EQ(test, ring.next, 100);
	Q_EXPECT_EQ(test, put(&ring, 99), -EINVAL);
	Q_EXPECT_NULL(test, qrdma_sent_ring_find(&ring, 4));
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_find(&ring, 6)), 6);
	Q_EXPECT_NULL(test, qrdma_sent_ring_find(&ring, 102));
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, 0, U64_MAX)), 3);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, 4, 5)), U64_MAX);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, 4, 6)), 6);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_down(&ring, U64_MAX, 0)), 99);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_down(&ring, 98, 97)), U64_MAX);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_down(&ring, 98, 0)), 96);
	for (pn = 6; pn < 96; pn += 3)
		settle(&ring, pn);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, 4, U64_MAX)), 96);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_down(&ring, 95, 0)), 3);
	/* settled and not trimmed: still readable */
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_find(&ring, 6)), 6);
	settle(&ring, 3);
	qrdma_sent_ring_trim(&ring);
	Q_EXPECT_EQ(test, ring.base, 96);
	Q_EXPECT_NULL(test, qrdma_sent_ring_find(&ring, 6));
	qrdma_sent_ring_clear(&ring);
	Q_EXPECT_EQ(test, ring.next, 100);
	/* and on it goes */
	Q_EXPECT_EQ(test, put(&ring, 100), 0);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, 0, U64_MAX)), 100);
	qrdma_sent_ring_clear(&ring);
}

/* One packet in flight at a time: one chunk goes round, the allocator is left alone. */
Q_TEST(sent_steady_state)
{
	struct qrdma_sent_ring ring;
	u64 pn;

	qrdma_sent_ring_init(&ring);
	for (pn = 0; pn < 100000; pn++) {
		Q_ASSERT_EQ(test, put(&ring, pn), 0);
		if (pn == QRDMA_SENT_CHUNK)
			q_fail_alloc(1);
		settle(&ring, pn);
		qrdma_sent_ring_trim(&ring);
		Q_ASSERT_LE(test, ring.chunks, 1);
	}
	q_fail_alloc(0);
	Q_EXPECT_EQ(test, ring.slots, QRDMA_SENT_SLOTS_MIN);
	qrdma_sent_ring_clear(&ring);
}

Q_TEST(sent_cap)
{
	struct qrdma_sent_ring ring;
	u64 pn;

	qrdma_sent_ring_init(&ring);
	for (pn = 0; pn < QRDMA_SENT_MAX; pn++)
		Q_ASSERT_EQ(test, put(&ring, pn), 0);
	Q_EXPECT_EQ(test, ring.slots, QRDMA_SENT_SLOTS_MAX);
	Q_EXPECT_EQ(test, ring.chunks, QRDMA_SENT_SLOTS_MAX);
	Q_EXPECT_EQ(test, put(&ring, pn), -ENOBUFS);
	/* all but the oldest have their verdict: still nothing */
	for (pn = 1; pn < QRDMA_SENT_MAX; pn++)
		settle(&ring, pn);
	qrdma_sent_ring_trim(&ring);
	Q_EXPECT_EQ(test, put(&ring, QRDMA_SENT_MAX), -ENOBUFS);
	settle(&ring, 0);
	qrdma_sent_ring_trim(&ring);
	Q_EXPECT_LE(test, ring.chunks, 1);
	Q_EXPECT_EQ(test, put(&ring, QRDMA_SENT_MAX), 0);
	qrdma_sent_ring_clear(&ring);
}

Q_TEST(sent_far_jumps)
{
	struct qrdma_sent_ring ring;
	u64 last = (1ULL << 62) - 1;

	qrdma_sent_ring_init(&ring);
	Q_EXPECT_EQ(test, put(&ring, 5), 0);
	Q_EXPECT_EQ(test, put(&ring, 5 + QRDMA_SENT_MAX), -ENOBUFS);
	Q_EXPECT_EQ(test, put(&ring, 5 + QRDMA_SENT_MAX - QRDMA_SENT_CHUNK), 0);
	Q_EXPECT_EQ(test, ring.chunks, 2);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, 6, U64_MAX)),
		    5 + QRDMA_SENT_MAX - QRDMA_SENT_CHUNK);
	settle(&ring, 5);
	settle(&ring, 5 + QRDMA_SENT_MAX - QRDMA_SENT_CHUNK);
	qrdma_sent_ring_trim(&ring);
	Q_EXPECT_EQ(test, put(&ring, 1ULL << 40), 0);
	settle(&ring, 1ULL << 40);
	qrdma_sent_ring_trim(&ring);
	/* without the trim the settled record must not be in the way either */
	Q_EXPECT_EQ(test, put(&ring, 1ULL << 50), 0);
	settle(&ring, 1ULL << 50);
	qrdma_sent_ring_trim(&ring);
	Q_EXPECT_EQ(test, put(&ring, last - 1), 0);
	Q_EXPECT_EQ(test, put(&ring, last), 0);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_down(&ring, U64_MAX, 0)), last);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, 0, U64_MAX)), last - 1);
	qrdma_sent_ring_clear(&ring);
}

/* A number reserved and not used, then others. */
Q_TEST(sent_reserve_only)
{
	struct qrdma_sent_ring ring;

	qrdma_sent_ring_init(&ring);
	Q_EXPECT_EQ(test, qrdma_sent_ring_reserve(&ring, 40), 0);
	qrdma_sent_ring_trim(&ring);
	Q_EXPECT_EQ(test, qrdma_sent_ring_reserve(&ring, 1), 0);
	Q_EXPECT_LE(test, ring.chunks, 2);
	Q_EXPECT_EQ(test, put(&ring, 1), 0);
	Q_EXPECT_NULL(test, qrdma_sent_ring_find(&ring, 0));
	settle(&ring, 1);
	qrdma_sent_ring_trim(&ring);
	Q_EXPECT_EQ(test, put(&ring, 1000), 0);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, 0, U64_MAX)), 1000);
	Q_EXPECT_EQ(test, qrdma_sent_ring_reserve(&ring, 1200), 0);
	Q_EXPECT_EQ(test, put(&ring, 1100), 0);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, 1001, U64_MAX)), 1100);
	qrdma_sent_ring_clear(&ring);
}

/* Numbers used without a record: no chunk for them, and they are not in the way. */
Q_TEST(sent_pass)
{
	struct qrdma_sent_ring ring;
	u64 pn;

	qrdma_sent_ring_init(&ring);
	for (pn = 0; pn < 1000; pn++)
		Q_ASSERT_EQ(test, qrdma_sent_ring_pass(&ring, pn), 0);
	Q_EXPECT_EQ(test, ring.chunks, 0);
	Q_EXPECT_EQ(test, put(&ring, 1000), 0);
	for (pn = 1001; pn < 2000; pn++)
		Q_ASSERT_EQ(test, qrdma_sent_ring_pass(&ring, pn), 0);
	Q_EXPECT_EQ(test, ring.chunks, 1);
	Q_EXPECT_EQ(test, qrdma_sent_ring_pass(&ring, 1999), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_sent_ring_pass(&ring, 1000 + QRDMA_SENT_MAX), -ENOBUFS);
	Q_EXPECT_EQ(test, put(&ring, 2000), 0);
	Q_EXPECT_NULL(test, qrdma_sent_ring_find(&ring, 1500));
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, 1001, U64_MAX)), 2000);
	Q_EXPECT_EQ(test, pn_of(qrdma_sent_ring_down(&ring, 1999, 0)), 1000);
	settle(&ring, 1000);
	qrdma_sent_ring_trim(&ring);
	Q_EXPECT_EQ(test, ring.base, 2000);
	qrdma_sent_ring_clear(&ring);
}

#define MODEL_MAX	8192

/* Largest live number of the model in [lo, hi], U64_MAX: none. */
static u64 model_down(const u8 *live, u64 hi, u64 lo)
{
	u64 pn;

	for (pn = min_t(u64, hi, MODEL_MAX - 1) + 1; pn-- > lo;)
		if (live[pn])
			return pn;
	return U64_MAX;
}

static u64 model_up(const u8 *live, u64 lo, u64 hi)
{
	u64 pn;

	for (pn = lo; pn <= min_t(u64, hi, MODEL_MAX - 1); pn++)
		if (live[pn])
			return pn;
	return U64_MAX;
}

static void random_round(struct q_test *test, u64 *seed, u8 *live, u32 burst)
{
	struct qrdma_sent_ring ring;
	u64 pn = 0, lo, hi, at, i;

	memset(live, 0, MODEL_MAX);
	qrdma_sent_ring_init(&ring);
	while (pn < MODEL_MAX - 300) {
		for (i = q_rand(seed) % burst; i && pn < MODEL_MAX - 300; i--) {
			pn += q_rand(seed) % 16 ? 1 : 1 + q_rand(seed) % 200;
			Q_ASSERT_EQ(test, put(&ring, pn), 0);
			live[pn] = 1;
		}
		for (i = q_rand(seed) % burst; i; i--) {
			lo = ring.base + q_rand(seed) % (pn - ring.base + 2);
			hi = lo + q_rand(seed) % (2 * burst);
			at = model_up(live, lo, hi);
			Q_ASSERT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, lo, hi)), at);
			at = model_down(live, hi, lo);
			Q_ASSERT_EQ(test, pn_of(qrdma_sent_ring_down(&ring, hi, lo)), at);
			if (at == U64_MAX)
				continue;
			settle(&ring, at);
			live[at] = 0;
		}
		if (q_rand(seed) % 2) {
			qrdma_sent_ring_trim(&ring);
			at = model_up(live, 0, U64_MAX);
			Q_ASSERT_EQ(test, ring.base, min(at, ring.next));
			at = ring.next / QRDMA_SENT_CHUNK - ring.base / QRDMA_SENT_CHUNK;
			Q_ASSERT_LE(test, ring.chunks, at + 2);
		}
	}
	qrdma_sent_ring_clear(&ring);
}

Q_TEST(sent_random_against_array)
{
	u8 *live = q_zalloc(test, MODEL_MAX);
	u64 seed = q_seed();
	u32 i;

	for (i = 0; i < 40; i++)
		random_round(test, &seed, live, i % 4 ? 30 : 3000);
}

/* Every allocation on the way fails once: an error, nothing lost, and the next try goes on. */
Q_TEST(sent_without_memory)
{
	struct qrdma_sent_ring ring;
	u64 pn;
	int err;

	if (!q_fail_alloc(0))
		Q_SKIP(test, "allocations cannot be made to fail here");
	qrdma_sent_ring_init(&ring);
	for (pn = 0; pn < 1000; pn++) {
		u32 n = 1;

		do {
			q_fail_alloc(n++);
			err = qrdma_sent_ring_reserve(&ring, pn);
			q_fail_alloc(0);
			if (err)
				Q_ASSERT_EQ(test, err, -ENOMEM);
		} while (err);
		Q_ASSERT_NOT_NULL(test, qrdma_sent_ring_push(&ring, pn));
	}
	for (pn = 0; pn < 1000; pn++)
		Q_ASSERT_EQ(test, pn_of(qrdma_sent_ring_up(&ring, pn, pn)), pn);
	qrdma_sent_ring_clear(&ring);
}

Q_SUITE("qrdma-sent",
	Q_CASE(sent_empty),
	Q_CASE(sent_find_and_walk),
	Q_CASE(sent_steady_state),
	Q_CASE(sent_cap),
	Q_CASE(sent_far_jumps),
	Q_CASE(sent_reserve_only),
	Q_CASE(sent_pass),
	Q_CASE(sent_random_against_array),
	Q_CASE(sent_without_memory));
