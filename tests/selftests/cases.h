/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small harness in kselftest style: TEST(name) { ... } makes a test, each runs in a process of
 * its own under a time-out, results are TAP lines. A failed EXPECT is told and the test goes on;
 * a failed ASSERT ends it. SKIP(reason) ends it as skipped. Exit status of the program: 0, 1 when
 * a test failed, 4 when all were skipped.
 *
 * Arguments of the program: names of the tests to run, all when there are none. QRDMA_SHORT=1 in
 * the environment makes tap_short() true: loops that are long only for thoroughness are to be
 * cut.
 */
#ifndef QRDMA_TEST_CASES_H
#define QRDMA_TEST_CASES_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

struct tap_test {
	const char *name;
	void (*fn)(void);
	int seconds;
	struct tap_test *next;
};

static struct tap_test *tap_tests, **tap_tail = &tap_tests;
static int tap_failed;
static const char *tap_case = "";

#define TAP_SKIP	4

static inline void tap_register(struct tap_test *t)
{
	*tap_tail = t;
	tap_tail = &t->next;
}

/* A test that may take so many seconds */
#define TEST_TIMEOUT(n, secs)							\
	static void test_##n(void);						\
	static struct tap_test tap_##n = { #n, test_##n, secs, NULL };		\
	__attribute__((constructor)) static void tap_reg_##n(void)		\
	{									\
		tap_register(&tap_##n);						\
	}									\
	static void test_##n(void)

#define TEST(n)	TEST_TIMEOUT(n, 120)

/* What follows is about this case of a table: named in the messages. */
#define CASE(text)	(tap_case = (text))

#define tap_fail(fmt, ...)							\
	do {									\
		printf("# %s:%d: %s%s" fmt "\n", __FILE__, __LINE__, tap_case,	\
		       *tap_case ? ": " : "", ##__VA_ARGS__);			\
		fflush(stdout);							\
		tap_failed = 1;							\
	} while (0)

#define SKIP(reason)								\
	do {									\
		printf("# skipped: %s\n", reason);				\
		fflush(stdout);							\
		_exit(TAP_SKIP);						\
	} while (0)

#define EXPECT(cond)								\
	({									\
		bool ok_ = (cond);						\
										\
		if (!ok_)							\
			tap_fail("%s", #cond);					\
		ok_;								\
	})

/* Two numbers; the second is what is wanted. */
#define EXPECT_EQ(a, b)								\
	({									\
		long long a_ = (a), b_ = (b);					\
										\
		if (a_ != b_)							\
			tap_fail("%s is %lld, not %lld", #a, a_, b_);		\
		a_ == b_;							\
	})

/* A call that has to fail with -1 and this errno */
#define EXPECT_ERRNO(call, err)							\
	({									\
		long long r_ = (call);						\
		int e_ = r_ < 0 ? errno : 0;					\
										\
		if (r_ != -1 || e_ != (err))					\
			tap_fail("%s is %lld (%s), not %s", #call, r_,		\
				 strerror(e_), strerror(err));			\
		r_ == -1 && e_ == (err);					\
	})

#define ASSERT(cond)								\
	do {									\
		if (!EXPECT(cond))						\
			_exit(1);						\
	} while (0)

#define ASSERT_EQ(a, b)								\
	do {									\
		if (!EXPECT_EQ(a, b))						\
			_exit(1);						\
	} while (0)

/* A call that must not fail: its value */
#define CHECK(call)								\
	({									\
		long long r_ = (call);						\
										\
		if (r_ < 0) {							\
			tap_fail("%s: %s", #call, strerror(errno));		\
			_exit(1);						\
		}								\
		r_;								\
	})

static inline bool tap_short(void)
{
	const char *s = getenv("QRDMA_SHORT");

	return s && *s == '1';
}

/* Run one test in a process group of its own, so that what it leaves behind ends with it. */
static inline int tap_run(const struct tap_test *t)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGALRM, SIG_DFL);
		alarm(t->seconds);
		t->fn();
		fflush(stdout);
		_exit(tap_failed);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	kill(-pid, SIGKILL);
	if (WIFSIGNALED(status)) {
		if (WTERMSIG(status) == SIGALRM)
			printf("# not over after %d seconds\n", t->seconds);
		else
			printf("# ended by signal %d\n", WTERMSIG(status));
		return 1;
	}
	return WEXITSTATUS(status);
}

static inline bool tap_wanted(const struct tap_test *t, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], t->name))
			return true;
	}
	return argc < 2;
}

int main(int argc, char **argv)
{
	int n = 0, failed = 0, skipped = 0, number = 0;
	struct tap_test *t;

	for (t = tap_tests; t; t = t->next)
		n += tap_wanted(t, argc, argv);
	printf("TAP version 13\n1..%d\n", n);
	for (t = tap_tests; t; t = t->next) {
		int status;

		if (!tap_wanted(t, argc, argv))
			continue;
		status = tap_run(t);
		number++;
		if (!status) {
			printf("ok %d - %s\n", number, t->name);
		} else if (status == TAP_SKIP) {
			printf("ok %d - %s # SKIP\n", number, t->name);
			skipped++;
		} else {
			printf("not ok %d - %s\n", number, t->name);
			failed++;
		}
		fflush(stdout);
	}
	if (failed)
		return 1;
	return n && skipped == n ? TAP_SKIP : 0;
}

#endif
