// SPDX-License-Identifier: GPL-2.0
/* Tests of core/ranges.c. */
#include "qtest.h"
#include "ranges.h"

static void check_invariants(struct q_test *test, const struct qrdma_ranges *set)
{
	const struct qrdma_range *range = qrdma_ranges_array(set);
	u32 i;

	Q_ASSERT_LE(test, set->count, QRDMA_RANGES_MAX);
	for (i = 0; i < set->count; i++) {
		Q_ASSERT_LE(test, range[i].lo, range[i].hi);
		Q_ASSERT_GE(test, range[i].lo, set->floor);
		if (i)
			Q_ASSERT_GT(test, range[i].lo - range[i - 1].hi, 1);
	}
	if (set->count == QRDMA_RANGES_MAX)
		Q_ASSERT_EQ(test, set->floor, range[0].lo);
}

Q_TEST(ranges_empty)
{
	struct qrdma_ranges set;

	qrdma_ranges_init(&set);
	Q_EXPECT_NULL(test, qrdma_ranges_nth(&set, 0));
	Q_EXPECT_FALSE(test, qrdma_ranges_contains(&set, 0));
	Q_EXPECT_FALSE(test, qrdma_ranges_contains(&set, U64_MAX));
}

Q_TEST(ranges_in_order_is_one_range)
{
	struct qrdma_ranges set;
	u64 n;

	qrdma_ranges_init(&set);
	for (n = 5; n < 1000; n++)
		Q_ASSERT_TRUE(test, qrdma_ranges_add(&set, n));
	Q_EXPECT_EQ(test, set.count, 1);
	Q_EXPECT_EQ(test, qrdma_ranges_array(&set)->lo, 5);
	Q_EXPECT_EQ(test, qrdma_ranges_array(&set)->hi, 999);
	Q_EXPECT_FALSE(test, qrdma_ranges_add(&set, 5));
	Q_EXPECT_FALSE(test, qrdma_ranges_add(&set, 999));
	Q_EXPECT_FALSE(test, qrdma_ranges_contains(&set, 4));
}

Q_TEST(ranges_join_both_neighbours)
{
	struct qrdma_ranges set;

	qrdma_ranges_init(&set);
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 1));
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 3));
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 7));
	Q_EXPECT_EQ(test, set.count, 3);
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 2));
	Q_EXPECT_EQ(test, set.count, 2);
	Q_EXPECT_EQ(test, qrdma_ranges_nth(&set, 0)->lo, 7);
	Q_EXPECT_EQ(test, qrdma_ranges_nth(&set, 1)->lo, 1);
	Q_EXPECT_EQ(test, qrdma_ranges_nth(&set, 1)->hi, 3);
	Q_EXPECT_NULL(test, qrdma_ranges_nth(&set, 2));
	/* downwards, next to the lower end of a range */
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 6));
	Q_EXPECT_EQ(test, qrdma_ranges_nth(&set, 0)->lo, 6);
	Q_EXPECT_EQ(test, set.count, 2);
	check_invariants(test, &set);
}

Q_TEST(ranges_edges_of_u64)
{
	struct qrdma_ranges set;

	qrdma_ranges_init(&set);
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, U64_MAX));
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 0));
	Q_EXPECT_FALSE(test, qrdma_ranges_add(&set, U64_MAX));
	Q_EXPECT_EQ(test, set.count, 2);
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, U64_MAX - 1));
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 1));
	Q_EXPECT_EQ(test, set.count, 2);
	Q_EXPECT_EQ(test, qrdma_ranges_nth(&set, 0)->lo, U64_MAX - 1);
	Q_EXPECT_EQ(test, qrdma_ranges_nth(&set, 1)->hi, 1);
	qrdma_ranges_forget_below(&set, U64_MAX);
	Q_EXPECT_EQ(test, set.count, 1);
	Q_EXPECT_TRUE(test, qrdma_ranges_contains(&set, U64_MAX));
	Q_EXPECT_TRUE(test, qrdma_ranges_contains(&set, 12345));
	check_invariants(test, &set);
}

Q_TEST(ranges_full_set_slides)
{
	struct qrdma_ranges set;
	u64 n;

	qrdma_ranges_init(&set);
	for (n = 0; n < QRDMA_RANGES_MAX; n++)
		Q_ASSERT_TRUE(test, qrdma_ranges_add(&set, 100 + 2 * n));
	Q_EXPECT_EQ(test, set.floor, 100);
	Q_EXPECT_EQ(test, set.dropped, 0);
	/* full: nothing below may come in any more */
	Q_EXPECT_FALSE(test, qrdma_ranges_add(&set, 99));
	Q_EXPECT_FALSE(test, qrdma_ranges_add(&set, 3));
	/* one more at the top, the lowest falls out */
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 1000));
	Q_EXPECT_EQ(test, set.dropped, 1);
	Q_EXPECT_EQ(test, set.floor, 102);
	Q_EXPECT_TRUE(test, qrdma_ranges_contains(&set, 101));
	/* one more in the middle */
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 500));
	Q_EXPECT_EQ(test, set.floor, 104);
	check_invariants(test, &set);
	/* right above the lowest, which falls out: it becomes part of the next one or the lowest */
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 105));
	Q_EXPECT_EQ(test, qrdma_ranges_array(&set)->lo, 104);
	Q_EXPECT_EQ(test, qrdma_ranges_array(&set)->hi, 106);
	check_invariants(test, &set);
	qrdma_ranges_destroy(&set);
}

/* A new range between the lowest and the second lowest of a full set. */
Q_TEST(ranges_full_set_insert_low)
{
	struct qrdma_ranges set;
	u64 n;

	qrdma_ranges_init(&set);
	for (n = 0; n < QRDMA_RANGES_MAX; n++)
		qrdma_ranges_add(&set, 10 * n);
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 5));
	Q_EXPECT_EQ(test, qrdma_ranges_array(&set)->lo, 5);
	Q_EXPECT_EQ(test, set.floor, 5);
	Q_EXPECT_TRUE(test, qrdma_ranges_contains(&set, 0));
	check_invariants(test, &set);
	qrdma_ranges_destroy(&set);
}

/* F08: far jumps never make the set refuse what lies ahead. */
Q_TEST(ranges_far_jumps)
{
	struct qrdma_ranges set;
	u64 n, i;

	qrdma_ranges_init(&set);
	for (n = 1, i = 0; i < 61; i++, n *= 2)
		Q_ASSERT_TRUE(test, qrdma_ranges_add(&set, n));
	check_invariants(test, &set);
	Q_EXPECT_TRUE(test, qrdma_ranges_contains(&set, 7));
	Q_EXPECT_FALSE(test, qrdma_ranges_contains(&set, n / 2 + 1));
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, n / 2 + 1));
	qrdma_ranges_destroy(&set);
}

Q_TEST(ranges_forget_below)
{
	struct qrdma_ranges set;
	u64 n;

	qrdma_ranges_init(&set);
	for (n = 10; n < 20; n++)
		qrdma_ranges_add(&set, n);
	qrdma_ranges_add(&set, 30);
	qrdma_ranges_forget_below(&set, 15);
	Q_EXPECT_EQ(test, qrdma_ranges_array(&set)->lo, 15);
	Q_EXPECT_TRUE(test, qrdma_ranges_contains(&set, 2));
	qrdma_ranges_forget_below(&set, 3);
	Q_EXPECT_EQ(test, set.floor, 15);
	qrdma_ranges_forget_below(&set, 20);
	Q_EXPECT_EQ(test, set.count, 1);
	qrdma_ranges_forget_below(&set, 31);
	Q_EXPECT_EQ(test, set.count, 0);
	Q_EXPECT_FALSE(test, qrdma_ranges_add(&set, 30));
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 31));
	check_invariants(test, &set);
}

/* Memory beyond that of the object is had when it is needed, and given back. */
Q_TEST(ranges_rest)
{
	struct qrdma_ranges set;
	u64 n;

	qrdma_ranges_init(&set);
	for (n = 0; n < QRDMA_RANGES_FEW; n++)
		qrdma_ranges_add(&set, 10 * n);
	Q_EXPECT_NULL(test, set.more);
	qrdma_ranges_add(&set, 10 * n);
	Q_EXPECT_NOT_NULL(test, set.more);
	qrdma_ranges_rest(&set);
	Q_EXPECT_NOT_NULL(test, set.more);
	for (n = 1; n < 10; n++)
		qrdma_ranges_add(&set, n);
	qrdma_ranges_rest(&set);
	Q_EXPECT_NULL(test, set.more);
	Q_EXPECT_EQ(test, set.count, QRDMA_RANGES_FEW);
	Q_EXPECT_EQ(test, qrdma_ranges_nth(&set, 0)->lo, 10 * QRDMA_RANGES_FEW);
	check_invariants(test, &set);
	qrdma_ranges_destroy(&set);
}

/* Without memory a few ranges have to do: the lowest fall out. */
Q_TEST(ranges_without_memory)
{
	struct qrdma_ranges set;
	u64 n;

	qrdma_ranges_init(&set);
	for (n = 1; n <= QRDMA_RANGES_FEW; n++)
		qrdma_ranges_add(&set, 10 * n);
	if (!q_fail_alloc(1))
		Q_SKIP(test, "allocations do not fail on demand here");
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 10 * n));
	Q_EXPECT_EQ(test, set.count, QRDMA_RANGES_FEW);
	Q_EXPECT_EQ(test, set.floor, 20);
	Q_EXPECT_EQ(test, set.dropped, 1);
	check_invariants(test, &set);
	/* the new one may be the lowest: then it is what falls out */
	qrdma_ranges_init(&set);
	for (n = 1; n <= QRDMA_RANGES_FEW; n++)
		qrdma_ranges_add(&set, 10 * n);
	q_fail_alloc(1);
	Q_EXPECT_FALSE(test, qrdma_ranges_add(&set, 5));
	Q_EXPECT_TRUE(test, qrdma_ranges_contains(&set, 5));
	Q_EXPECT_EQ(test, set.floor, 10);
	q_fail_alloc(0);
	Q_EXPECT_TRUE(test, qrdma_ranges_add(&set, 10 * n));
	Q_EXPECT_EQ(test, set.count, QRDMA_RANGES_FEW + 1);
	check_invariants(test, &set);
	qrdma_ranges_destroy(&set);
}

#define MODEL_MAX	2048

static void check_model(struct q_test *test, const struct qrdma_ranges *set, const u8 *model)
{
	u64 n;

	check_invariants(test, set);
	for (n = 0; n < MODEL_MAX; n++)
		Q_ASSERT_EQ(test, qrdma_ranges_contains(set, n), n < set->floor || model[n]);
}

/* Against a bitmap: what lies above the floor is exactly what was put in. */
Q_TEST(ranges_random_against_bitmap)
{
	u8 *model = q_zalloc(test, MODEL_MAX);
	u64 seed = q_seed(), round, step, n, at;
	struct qrdma_ranges set;

	for (round = 0; round < 60; round++) {
		u64 spread = 1 + q_rand(&seed) % 200;

		memset(model, 0, MODEL_MAX);
		qrdma_ranges_init(&set);
		for (step = 0, at = 0; step < 600; step++) {
			bool want;

			at = min_t(u64, at + q_rand(&seed) % 4, MODEL_MAX - 1);
			n = at - min(at, q_rand(&seed) % spread);
			want = n >= set.floor && !model[n];
			Q_ASSERT_EQ(test, qrdma_ranges_contains(&set, n), !want);
			Q_ASSERT_EQ(test, qrdma_ranges_add(&set, n), want);
			model[n] = 1;
			if (!(q_rand(&seed) % 128))
				qrdma_ranges_forget_below(&set, q_rand(&seed) % (at + 1));
			if (!(q_rand(&seed) % 64))
				qrdma_ranges_rest(&set);
			if (!(step % 50))
				check_model(test, &set, model);
		}
		check_model(test, &set, model);
		qrdma_ranges_destroy(&set);
	}
}

Q_SUITE("qrdma-ranges",
	Q_CASE(ranges_empty),
	Q_CASE(ranges_in_order_is_one_range),
	Q_CASE(ranges_join_both_neighbours),
	Q_CASE(ranges_edges_of_u64),
	Q_CASE(ranges_full_set_slides),
	Q_CASE(ranges_full_set_insert_low),
	Q_CASE(ranges_far_jumps),
	Q_CASE(ranges_forget_below),
	Q_CASE(ranges_rest),
	Q_CASE(ranges_without_memory),
	Q_CASE(ranges_random_against_bitmap));
