/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Test vectors are written as hexadecimal text; blanks in it mean nothing.
 */
#ifndef QRDMA_TESTS_KUNIT_UNHEX_H
#define QRDMA_TESTS_KUNIT_UNHEX_H

#include <kunit/test.h>
#include <linux/kernel.h>

/* bytes that @hex stands for */
static inline u32 hex_len(const char *hex)
{
	u32 digits = 0;

	for (; *hex; hex++)
		digits += *hex != ' ';
	return digits / 2;
}

/* They live as long as the test. */
static inline u8 *unhex(struct kunit *test, const char *hex)
{
	u32 i, len = hex_len(hex);
	u8 *data = kunit_kzalloc(test, len + 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < len; i++, hex += 2) {
		while (*hex == ' ')
			hex++;
		KUNIT_ASSERT_EQ(test, 0, hex2bin(data + i, hex, 1));
	}
	return data;
}

#endif /* QRDMA_TESTS_KUNIT_UNHEX_H */
