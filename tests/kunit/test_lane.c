// SPDX-License-Identifier: GPL-2.0
/*
 * What lanes compute without a device: ring positions, which sends are signalled, whether a queue
 * pair has to be reset and how long that is waited for, and the header in front of a received
 * message (layout: IBTA annex A17.4.5.1: an IPv4 header takes the last 20 of the 40 bytes).
 */
#include <kunit/test.h>
#include <linux/socket.h>
#include <linux/string.h>

#include "lane.h"

static void ring_positions(struct kunit *test)
{
	/* Free running, also over the end of the number range. */
	static const u32 starts[] = { 0, 1, 255, 0x7fffffff, U32_MAX - 3, U32_MAX };
	u32 i, n, tail, head;

	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		tail = starts[i];
		for (n = 0; n <= 8; n++) {
			head = tail + n;
			KUNIT_EXPECT_EQ(test, qrdma_ring_used(head, tail), n);
			KUNIT_EXPECT_EQ(test, qrdma_ring_room(head, tail, 8), 8 - n);
			KUNIT_EXPECT_FALSE(test, qrdma_ring_has(head, tail, head));
			KUNIT_EXPECT_FALSE(test, qrdma_ring_has(head, tail, tail - 1));
			KUNIT_EXPECT_EQ(test, qrdma_ring_has(head, tail, tail), n > 0);
			if (n)
				KUNIT_EXPECT_TRUE(test, qrdma_ring_has(head, tail, head - 1));
		}
	}
}

/* Post chains of all lengths: each ends signalled, and no run of others is longer than k - 1. */
static void ring_signals(struct kunit *test)
{
	u32 k, len, i, unsignaled;
	bool signal;

	for (k = 1; k <= 16; k *= 4) {
		unsignaled = 0;
		for (len = 1; len <= 40; len++) {
			for (i = 0; i < len; i++) {
				signal = qrdma_ring_signal(unsignaled, k, i == len - 1);
				unsignaled = signal ? 0 : unsignaled + 1;
				KUNIT_EXPECT_LT(test, unsignaled, k);
			}
			KUNIT_EXPECT_EQ(test, unsignaled, 0U);
		}
	}
}

/* One death, one reset: what is told late of a generation that is gone costs the next nothing. */
static void lane_deaths(struct kunit *test)
{
	static const u32 epochs[] = { 1, 2, 17, U32_MAX };
	u32 i, epoch;

	for (i = 0; i < ARRAY_SIZE(epochs); i++) {
		epoch = epochs[i];
		KUNIT_EXPECT_TRUE(test, qrdma_lane_dead(epoch, false, 0));
		KUNIT_EXPECT_TRUE(test, qrdma_lane_dead(epoch, false, epoch));
		KUNIT_EXPECT_TRUE(test, qrdma_lane_dead(epoch, false, epoch - 1));
		KUNIT_EXPECT_TRUE(test, qrdma_lane_dead(epoch, true, epoch));
		KUNIT_EXPECT_FALSE(test, qrdma_lane_dead(epoch, true, 0));
		KUNIT_EXPECT_FALSE(test, qrdma_lane_dead(epoch + 1, true, epoch));
		KUNIT_EXPECT_FALSE(test, qrdma_lane_dead(epoch, true, epoch - 1));
	}
}

static void lane_patience(struct kunit *test)
{
	static const u32 factor[] = { 1, 2, 4, 8, 8, 8 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(factor); i++)
		KUNIT_EXPECT_EQ(test, qrdma_lane_patience(20, i), 20 * factor[i]);
	KUNIT_EXPECT_EQ(test, qrdma_lane_patience(2000, U32_MAX), 16000U);
}

static const u8 grh_v4[QRDMA_GRH_LEN] = {
	/* left over from something else: it must not matter */
	0x60, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0x45, 0x03, 0x02, 0xac, 0x00, 0x00, 0x40, 0x00, 0x3f, 0x11, 0x00, 0x00,
	10, 9, 0, 2, 10, 9, 0, 1,
};

static const u8 grh_v6[QRDMA_GRH_LEN] = {
	/* traffic class 0xb9 (EF, ECT(1)), flow label 0x12345 */
	0x6b, 0x91, 0x23, 0x45, 0x10, 0x00, 0x11, 0x40,
	0xfd, 0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
	0xfd, 0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
};

static void grh_of_v4(struct kunit *test)
{
	static const u8 src[16] = { [10] = 0xff, 0xff, 10, 9, 0, 2 };
	static const u8 dst[16] = { [10] = 0xff, 0xff, 10, 9, 0, 1 };
	struct qrdma_grh_info info;

	KUNIT_ASSERT_TRUE(test, qrdma_grh_parse(grh_v4, 4, &info));
	KUNIT_EXPECT_EQ(test, info.family, AF_INET);
	KUNIT_EXPECT_EQ(test, info.tclass, 3);
	KUNIT_EXPECT_EQ(test, info.hop_limit, 63);
	KUNIT_EXPECT_EQ(test, memcmp(&info.saddr, src, 16), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&info.daddr, dst, 16), 0);
}

static void grh_of_v6(struct kunit *test)
{
	struct qrdma_grh_info info;

	KUNIT_ASSERT_TRUE(test, qrdma_grh_parse(grh_v6, 6, &info));
	KUNIT_EXPECT_EQ(test, info.family, AF_INET6);
	KUNIT_EXPECT_EQ(test, info.tclass, 0xb9);
	KUNIT_EXPECT_EQ(test, info.hop_limit, 64);
	KUNIT_EXPECT_EQ(test, memcmp(&info.saddr, grh_v6 + 8, 16), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&info.daddr, grh_v6 + 24, 16), 0);
}

static void grh_of_nothing(struct kunit *test)
{
	struct qrdma_grh_info info;
	u8 grh[QRDMA_GRH_LEN] = {};

	KUNIT_EXPECT_FALSE(test, qrdma_grh_parse(grh, 4, &info));
	KUNIT_EXPECT_FALSE(test, qrdma_grh_parse(grh, 6, &info));
	KUNIT_EXPECT_FALSE(test, qrdma_grh_parse(grh, 0, &info));
	KUNIT_EXPECT_FALSE(test, qrdma_grh_parse(grh, -1, &info));
	KUNIT_EXPECT_FALSE(test, qrdma_grh_parse(grh_v6, 4, &info));

	/* options do not fit into 20 bytes */
	memcpy(grh, grh_v4, sizeof(grh));
	grh[20] = 0x46;
	KUNIT_EXPECT_FALSE(test, qrdma_grh_parse(grh, 4, &info));
}

static struct kunit_case lane_cases[] = {
	KUNIT_CASE(ring_positions),
	KUNIT_CASE(ring_signals),
	KUNIT_CASE(lane_deaths),
	KUNIT_CASE(lane_patience),
	KUNIT_CASE(grh_of_v4),
	KUNIT_CASE(grh_of_v6),
	KUNIT_CASE(grh_of_nothing),
	{}
};

static struct kunit_suite lane_suite = {
	.name = "qrdma-lane",
	.test_cases = lane_cases,
};

kunit_test_suite(lane_suite);
