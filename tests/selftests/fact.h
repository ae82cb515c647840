/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Facts: what long tests find out, told on the way whether good or bad, on top of cases.h. With
 * numbers in them, so that a log says what happened and not only whether it was right.
 */
#ifndef QRDMA_TEST_FACT_H
#define QRDMA_TEST_FACT_H

#include "cases.h"

#define NOTE(fmt, ...)								\
	do {									\
		printf("# " fmt "\n", ##__VA_ARGS__);				\
		fflush(stdout);							\
	} while (0)

/* The text is what is to be; false fails the test, which goes on. */
#define FACT(cond, fmt, ...)							\
	({									\
		bool fact_ = (cond);						\
										\
		if (fact_)							\
			NOTE("yes: " fmt, ##__VA_ARGS__);			\
		else								\
			tap_fail("NOT: " fmt, ##__VA_ARGS__);			\
		fact_;								\
	})

/* Something is missing that the test needs. */
#define BAIL(fmt, ...)								\
	do {									\
		tap_fail(fmt, ##__VA_ARGS__);					\
		_exit(1);							\
	} while (0)

#endif
