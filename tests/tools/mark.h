/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Marks in the stream of instructions, for tests/bench/counter.c to see: long NOPs that do nothing
 * on any machine. For programs and modules alike.
 *
 *	mark_begin();		counting starts, from zero
 *	...
 *	mark_end(number);	counting ends, what was counted is told under this number
 */
#ifndef QRDMA_TEST_MARK_H
#define QRDMA_TEST_MARK_H

/* nopl disp32(%rax), the displacement says which mark it is */
#define MARK_BASE	0x51440000
#define MARK_BEGIN	0
#define MARK_END	1
#define MARK_ZERO	2
#define MARK_ONE	3

#define MARK(which)								\
	asm volatile(".byte 0x0f, 0x1f, 0x80; .long %c0" : : "i"(MARK_BASE + (which)) : "memory")

#define MARK_BITS	24

static inline void mark_begin(void)
{
	MARK(MARK_BEGIN);
}

static inline void mark_end(unsigned int number)
{
	int bit;

	MARK(MARK_END);
	for (bit = MARK_BITS - 1; bit >= 0; bit--) {
		if (number >> bit & 1)
			MARK(MARK_ONE);
		else
			MARK(MARK_ZERO);
	}
}

#endif
