// SPDX-License-Identifier: GPL-2.0
/*
 * Private data of SIDR: what is written is read back, what is wrong is refused, and each way to
 * fail has its errno.
 */
#include <kunit/test.h>
#include <linux/string.h>
#include <rdma/ib_cm.h>

#include "sidr.h"

/* What the CM carries: 180 bytes in a request, 136 in a reply. */
#define REPLY	136

static const struct qrdma_sidr_info good = {
	.max_datagram = 4092,
	.qkey = 0x80001234,
	.nlanes = 3,
	.qpn = { 17, 18, 0xfffffe },
};

static u8 *build(struct kunit *test, const struct qrdma_sidr_info *info, u32 *len)
{
	u8 *data = kunit_kzalloc(test, REPLY, GFP_KERNEL);
	struct qrdma_sidr sidr;

	KUNIT_ASSERT_NOT_NULL(test, data);
	memset(&sidr, 0xa5, sizeof(sidr));
	*len = qrdma_sidr_build(&sidr, info);
	KUNIT_ASSERT_LE(test, *len, REPLY);
	memcpy(data, &sidr, *len);
	return data;
}

static void sidr_bytes(struct kunit *test)
{
	static const u8 want[] = {
		0x51, 0x44, 1, 28, 0, 0, 0x0f, 0xfc, 0x80, 0, 0x12, 0x34, 0, 0, 0, 3,
		0, 0, 0, 17, 0, 0, 0, 18, 0, 0xff, 0xff, 0xfe,
	};
	u32 len;
	u8 *data = build(test, &good, &len);

	KUNIT_ASSERT_EQ(test, len, (u32)sizeof(want));
	KUNIT_EXPECT_EQ(test, memcmp(data, want, len), 0);
}

static void sidr_round(struct kunit *test)
{
	struct qrdma_sidr_info info = good, got;
	u32 i, len;
	u8 *data;

	for (info.nlanes = 1; info.nlanes <= QRDMA_SIDR_LANES; info.nlanes++) {
		for (i = 0; i < info.nlanes; i++)
			info.qpn[i] = 2 + i * 77;
		data = build(test, &info, &len);
		/* Padded as it arrives, and just as long as it is. */
		KUNIT_ASSERT_EQ(test, qrdma_sidr_parse(data, REPLY, &got), 0);
		KUNIT_EXPECT_EQ(test, memcmp(got.qpn, info.qpn, info.nlanes * 4), 0);
		KUNIT_ASSERT_EQ(test, qrdma_sidr_parse(data, len, &got), 0);
		KUNIT_EXPECT_EQ(test, got.max_datagram, info.max_datagram);
		KUNIT_EXPECT_EQ(test, got.qkey, info.qkey);
		KUNIT_EXPECT_EQ(test, got.nlanes, info.nlanes);
		/* Cut off anywhere */
		for (i = 0; i < len; i++)
			KUNIT_EXPECT_EQ(test, qrdma_sidr_parse(data, i, &got), -EPROTO);
	}
}

/* Data of a later release: more bytes behind the lanes, flags that we do not know */
static void sidr_longer(struct kunit *test)
{
	struct qrdma_sidr_info got;
	u32 len;
	u8 *data = build(test, &good, &len);

	data[3] += 40;
	data[4] = 0xff;
	memset(data + len, 0xee, 40);
	KUNIT_EXPECT_EQ(test, qrdma_sidr_parse(data, REPLY, &got), 0);
	KUNIT_EXPECT_EQ(test, got.nlanes, 3U);
}

static void sidr_wrong(struct kunit *test)
{
	static const struct {
		u8 at, value;
		int err;
	} cases[] = {
		{ 0, 0x50, -EPROTO },		/* magic */
		{ 1, 0x45, -EPROTO },
		{ 2, 0, -EPROTONOSUPPORT },	/* version */
		{ 2, 2, -EPROTONOSUPPORT },
		{ 3, 27, -EPROTO },		/* shorter than its lanes */
		{ 3, 0, -EPROTO },
		{ 3, REPLY + 1, -EPROTO },	/* longer than what is there */
		{ 6, 0x10, -EPROTO },		/* larger than any UD message */
		{ 6, 0x00, -EPROTO },		/* smaller than any MTU (252 - 1 = 0x00fc - 1) */
		{ 8, 0x00, -EPROTO },		/* key without privilege */
		{ 15, 0, -EPROTO },		/* no lanes */
		{ 15, 4, -EPROTO },		/* more lanes than bytes */
		{ 15, 17, -EPROTO },		/* more lanes than we can hold */
		{ 16, 1, -EPROTO },		/* 25 bits */
		{ 19, 1, -EPROTO },		/* QP 1 */
		{ 19, 0, -EPROTO },
	};
	struct qrdma_sidr_info got;
	u32 i, len;
	u8 *data;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		data = build(test, &good, &len);
		data[cases[i].at] = cases[i].value;
		if (cases[i].at == 6 && !cases[i].value)
			data[7] = 0xfb;
		KUNIT_EXPECT_EQ_MSG(test, qrdma_sidr_parse(data, REPLY, &got), cases[i].err,
				    "byte %u is %u", cases[i].at, cases[i].value);
	}
	KUNIT_EXPECT_EQ(test, qrdma_sidr_parse(NULL, 0, &got), -EPROTO);
}

static void sidr_errnos(struct kunit *test)
{
	struct qrdma_sidr_info no_port = { .reason = QRDMA_SIDR_NO_PORT };
	struct qrdma_sidr_info format = { .reason = QRDMA_SIDR_FORMAT };
	struct qrdma_sidr_info later = { .reason = 99 };
	const struct {
		enum rdma_cm_event_type event;
		int status;
		const struct qrdma_sidr_info *data;
		int err;
	} cases[] = {
		{ RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, NULL, -EHOSTUNREACH },
		{ RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, NULL, -EADDRNOTAVAIL },
		{ RDMA_CM_EVENT_ADDR_ERROR, -EADDRNOTAVAIL, NULL, -EADDRNOTAVAIL },
		{ RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH, NULL, -ENETUNREACH },
		{ RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, NULL, -EHOSTUNREACH },
		{ RDMA_CM_EVENT_ADDR_ERROR, 0, NULL, -EHOSTUNREACH },
		{ RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, NULL, -EHOSTUNREACH },
		{ RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL, -ENODEV },
		{ RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, -ETIMEDOUT },
		{ RDMA_CM_EVENT_UNREACHABLE, IB_SIDR_UNSUPPORTED, NULL, -ECONNREFUSED },
		{ RDMA_CM_EVENT_UNREACHABLE, IB_SIDR_NO_QP, NULL, -EHOSTDOWN },
		{ RDMA_CM_EVENT_UNREACHABLE, IB_SIDR_UNSUPPORTED_VERSION, NULL, -EPROTONOSUPPORT },
		{ RDMA_CM_EVENT_UNREACHABLE, IB_SIDR_REJECT, &no_port, -EHOSTDOWN },
		{ RDMA_CM_EVENT_UNREACHABLE, IB_SIDR_REJECT, &format, -EPROTONOSUPPORT },
		{ RDMA_CM_EVENT_UNREACHABLE, IB_SIDR_REJECT, &later, -ECONNREFUSED },
		{ RDMA_CM_EVENT_UNREACHABLE, IB_SIDR_REJECT, NULL, -EPROTO },
		{ RDMA_CM_EVENT_UNREACHABLE, IB_SIDR_REDIRECT, NULL, -EPROTO },
		{ RDMA_CM_EVENT_REJECTED, 28, NULL, -EPROTO },
	};
	u32 i, len;
	u8 *data;
	int err;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		data = NULL;
		len = 0;
		if (cases[i].data)
			data = build(test, cases[i].data, &len);
		err = qrdma_sidr_errno(cases[i].event, cases[i].status, data, len);
		KUNIT_EXPECT_EQ_MSG(test, err, cases[i].err, "case %u", i);
	}
}

static struct kunit_case sidr_cases[] = {
	KUNIT_CASE(sidr_bytes),
	KUNIT_CASE(sidr_round),
	KUNIT_CASE(sidr_longer),
	KUNIT_CASE(sidr_wrong),
	KUNIT_CASE(sidr_errnos),
	{}
};

static struct kunit_suite sidr_suite = {
	.name = "qrdma-sidr",
	.test_cases = sidr_cases,
};

kunit_test_suite(sidr_suite);
