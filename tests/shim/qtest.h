/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One test source, two runners: a userspace program printing TAP, and KUnit.
 *
 * A file tests/core/test_x.c mirrors net/qrdma/core/x.c and looks so:
 *
 *	#include "qtest.h"
 *	#include "x.h"
 *
 *	Q_TEST(x_refuses_zero)
 *	{
 *		Q_EXPECT_EQ(test, qrdma_x_check(0), -EINVAL);
 *	}
 *
 *	Q_SUITE("qrdma-x", Q_CASE(x_refuses_zero));
 *
 * In userspace Q_SUITE() defines main(): each source is a program of its own
 * (tests/core/Makefile). In the kernel Q_SUITE() puts a kunit_suite into the
 * module's suite section: tests/kunit adds tests/core/test_x.o to the objects
 * of the module with -I for tests/shim and net/qrdma/core, no wrapper and no
 * exported symbol. Test names are static, so two files may share one.
 *
 * In both runners Q_EXPECT_*() notes a failure and goes on, Q_ASSERT_*() ends
 * the test; a function that tests share takes "struct q_test *test" for them.
 * Big arrays belong in q_zalloc() or static, the kernel's stack is small. In
 * userspace a test that leaves more allocations behind than it found fails.
 * q_fail_alloc() returns false in the kernel, where no allocation can be made
 * to fail from here: such a test then calls Q_SKIP().
 */
#ifndef QRDMA_TESTS_QTEST_H
#define QRDMA_TESTS_QTEST_H

#include "env.h"

#ifdef __KERNEL__
#include <kunit/test.h>

#define Q_TEST(fn)			static void fn(struct kunit *test)
#define Q_CASE(fn)			KUNIT_CASE(fn)
#define Q_SUITE(title, ...)						\
	static struct kunit_case q_cases[] = { __VA_ARGS__, {} };	\
	static struct kunit_suite q_suite = {				\
		.name = title, .test_cases = q_cases,			\
	};								\
	kunit_test_suite(q_suite)

#define q_test				kunit
#define q_zalloc(test, n)		kunit_kzalloc(test, n, GFP_KERNEL)
#define q_seed()			1ULL
#define Q_SKIP(test, ...)		kunit_skip(test, __VA_ARGS__)
#define Q_FAIL(test, ...)		KUNIT_FAIL(test, __VA_ARGS__)
#define Q_CHECK(test, stop, ok, ...) do {				\
	if (stop)							\
		KUNIT_ASSERT_TRUE_MSG(test, ok, __VA_ARGS__);		\
	else								\
		KUNIT_EXPECT_TRUE_MSG(test, ok, __VA_ARGS__);		\
} while (0)

static inline bool q_fail_alloc(unsigned long n)
{
	return false;
}
#else
#include <setjmp.h>
#include <stdarg.h>

/**
 * struct q_test - one test being run
 * @failed: an expectation did not hold
 * @skipped: why it was skipped, NULL otherwise
 * @end: where Q_ASSERT_*() and Q_SKIP() go
 * @mem: memory of q_zalloc(), freed when the test ends
 * @nmem: how many of @mem are in use
 */
struct q_test {
	bool failed;
	const char *skipped;
	jmp_buf end;
	void *mem[64];
	unsigned int nmem;
};

struct q_case {
	void (*run)(struct q_test *test);
	const char *name;
};

#define Q_TEST(fn)			static void fn(struct q_test *test)
#define Q_CASE(fn)			{ fn, #fn }
#define Q_SUITE(title, ...)						\
	static const struct q_case q_cases[] = { __VA_ARGS__ };	\
	int main(void)							\
	{								\
		return q_run(title, q_cases, ARRAY_SIZE(q_cases));	\
	}								\
	_Static_assert(1, "")

__attribute__((format(printf, 2, 3)))
static inline void q_note(struct q_test *test, const char *fmt, ...)
{
	va_list ap;

	test->failed = true;
	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

#define Q_CHECK(test, stop, ok, fmt, ...) do {				\
	if (!(ok)) {							\
		q_note(test, "%s:%d: " fmt, __FILE__, __LINE__, ##__VA_ARGS__); \
		if (stop)						\
			longjmp((test)->end, 1);			\
	}								\
} while (0)
#define Q_FAIL(test, fmt, ...)		Q_CHECK(test, 0, 0, fmt, ##__VA_ARGS__)
#define Q_SKIP(test, why) do {						\
	(test)->skipped = (why);					\
	longjmp((test)->end, 1);					\
} while (0)

static inline void *q_zalloc(struct q_test *test, size_t n)
{
	if (test->nmem == ARRAY_SIZE(test->mem))
		shim_die("q_zalloc: too many blocks", __FILE__, __LINE__);
	return test->mem[test->nmem++] = calloc(1, n ? n : 1);
}

/* the nth allocation from here fails: 1 is the next, 0 switches it off */
static inline bool q_fail_alloc(unsigned long n)
{
	shim_mem.fail_at = n;
	return true;
}

/* QTEST_SEED in the environment repeats or varies a run */
static inline u64 q_seed(void)
{
	const char *s = getenv("QTEST_SEED");

	return s ? strtoull(s, NULL, 0) : 1;
}

static inline void q_run_one(struct q_test *test, void (*run)(struct q_test *test))
{
	long live = shim_mem.live;

	memset(test, 0, sizeof(*test));
	if (!setjmp(test->end)) {
		run(test);
		/* not asked of a test cut short: it may well leave memory behind */
		if (shim_mem.live != live)
			q_note(test, "%ld allocations left behind", shim_mem.live - live);
	}
	shim_mem.fail_at = 0;
	while (test->nmem)
		free(test->mem[--test->nmem]);
}

static inline int q_run(const char *title, const struct q_case *c, size_t n)
{
	static struct q_test test;
	size_t i, bad = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n# %s, QTEST_SEED=%llu\n1..%zu\n", title, q_seed(), n);
	for (i = 0; i < n; i++) {
		q_run_one(&test, c[i].run);
		bad += test.failed;
		printf("%s %zu %s%s%s\n", test.failed ? "not ok" : "ok", i + 1, c[i].name,
		       test.skipped ? " # SKIP " : "", test.skipped ? test.skipped : "");
	}
	return bad ? 1 : 0;
}
#endif

#define Q_OP(test, stop, a, op, b) do {					\
	__typeof__((a) + 0) q_a = (a);				\
	__typeof__((b) + 0) q_b = (b);				\
									\
	Q_CHECK(test, stop, q_a op q_b, "%s " #op " %s, but they are %lld and %lld", \
		#a, #b, (long long)q_a, (long long)q_b);		\
} while (0)
#define Q_PTR(test, stop, a, op, b) do {				\
	const void *q_a = (a), *q_b = (b);				\
									\
	Q_CHECK(test, stop, q_a op q_b, "%s " #op " %s, but they are %p and %p", \
		#a, #b, q_a, q_b);					\
} while (0)
#define Q_MEM(test, stop, a, b, n)					\
	Q_CHECK(test, stop, !memcmp(a, b, n), "%s and %s differ within %llu bytes", \
		#a, #b, (unsigned long long)(n))

#define Q_EXPECT_EQ(test, a, b)		Q_OP(test, 0, a, ==, b)
#define Q_EXPECT_NE(test, a, b)		Q_OP(test, 0, a, !=, b)
#define Q_EXPECT_LT(test, a, b)		Q_OP(test, 0, a, <, b)
#define Q_EXPECT_LE(test, a, b)		Q_OP(test, 0, a, <=, b)
#define Q_EXPECT_GT(test, a, b)		Q_OP(test, 0, a, >, b)
#define Q_EXPECT_GE(test, a, b)		Q_OP(test, 0, a, >=, b)
#define Q_EXPECT_TRUE(test, a)		Q_CHECK(test, 0, a, "not true: %s", #a)
#define Q_EXPECT_FALSE(test, a)		Q_CHECK(test, 0, !(a), "not false: %s", #a)
#define Q_EXPECT_NULL(test, a)		Q_PTR(test, 0, a, ==, NULL)
#define Q_EXPECT_NOT_NULL(test, a)	Q_PTR(test, 0, a, !=, NULL)
#define Q_EXPECT_PTR_EQ(test, a, b)	Q_PTR(test, 0, a, ==, b)
#define Q_EXPECT_MEMEQ(test, a, b, n)	Q_MEM(test, 0, a, b, n)

#define Q_ASSERT_EQ(test, a, b)		Q_OP(test, 1, a, ==, b)
#define Q_ASSERT_NE(test, a, b)		Q_OP(test, 1, a, !=, b)
#define Q_ASSERT_LT(test, a, b)		Q_OP(test, 1, a, <, b)
#define Q_ASSERT_LE(test, a, b)		Q_OP(test, 1, a, <=, b)
#define Q_ASSERT_GT(test, a, b)		Q_OP(test, 1, a, >, b)
#define Q_ASSERT_GE(test, a, b)		Q_OP(test, 1, a, >=, b)
#define Q_ASSERT_TRUE(test, a)		Q_CHECK(test, 1, a, "not true: %s", #a)
#define Q_ASSERT_FALSE(test, a)		Q_CHECK(test, 1, !(a), "not false: %s", #a)
#define Q_ASSERT_NULL(test, a)		Q_PTR(test, 1, a, ==, NULL)
#define Q_ASSERT_NOT_NULL(test, a)	Q_PTR(test, 1, a, !=, NULL)
#define Q_ASSERT_PTR_EQ(test, a, b)	Q_PTR(test, 1, a, ==, b)
#define Q_ASSERT_MEMEQ(test, a, b, n)	Q_MEM(test, 1, a, b, n)

/**
 * q_rand() - next number of a seeded sequence (SplitMix64)
 * @state: the sequence; start it from q_seed() so that a run can be repeated
 */
static inline u64 q_rand(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/**
 * q_hex() - bytes of a vector written as hex digits, white space ignored
 * @out: room for @size bytes
 * @size: bytes of room
 * @hex: the digits
 *
 * Return: how many bytes there were; 0 when they do not fit or are no hex.
 */
static inline size_t q_hex(u8 *out, size_t size, const char *hex)
{
	unsigned int digit, half = 0, acc = 0;
	size_t n = 0;
	char c;

	for (; (c = *hex); hex++) {
		if (c == ' ' || c == '\n' || c == '\t')
			continue;
		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			digit = (c | 0x20) - 'a' + 10;
		else
			return 0;
		acc = acc << 4 | digit;
		half ^= 1;
		if (half)
			continue;
		if (n == size)
			return 0;
		out[n++] = acc;
	}
	return half ? 0 : n;
}

#endif /* QRDMA_TESTS_QTEST_H */
