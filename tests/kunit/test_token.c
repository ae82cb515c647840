// SPDX-License-Identifier: GPL-2.0
/*
 * Address tokens: what was sealed comes out, and nothing else does; what a token is worth to whom.
 */
#include <kunit/test.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "retry.h"
#include "token.h"

enum { FROM = 4711 };

static const u8 retry_scid[QRDMA_CID_LEN] = "retryid!";

/* A client's first packet, as far as a token is concerned */
struct first {
	struct qrdma_rxbuf rxbuf;
	struct qrdma_hdr hdr;
	u8 ports[QRDMA_PORT_HDR_LEN];
	u8 token[QRDMA_TOKEN_LEN];
};

static struct qrdma_token token_of(u8 kind)
{
	struct qrdma_token token = { .kind = kind, .issued = ktime_get_real_seconds() };

	ipv6_addr_set_v4mapped(htonl(0x0a090001), &token.addr);
	if (kind == QRDMA_TOKEN_RETRY) {
		token.port = FROM;
		qrdma_cid_set(&token.odcid, (const u8 *)"twenty bytes of an id", QRDMA_CID_MAX);
		memcpy(token.scid, retry_scid, QRDMA_CID_LEN);
	}
	return token;
}

static void use_key(struct kunit *test, u8 first)
{
	u8 key[QRDMA_TOKEN_KEY_LEN] = { first };

	KUNIT_ASSERT_EQ(test, 0, qrdma_token_set_key(key));
}

static struct first *first_with(struct kunit *test, const struct qrdma_token *token)
{
	struct first *first = kunit_kzalloc(test, sizeof(*first), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, first);
	KUNIT_ASSERT_EQ(test, 0, qrdma_token_seal(token, first->token));
	put_unaligned_be16(FROM, first->ports);
	first->rxbuf.buf.data = first->ports;
	first->rxbuf.buf.len = sizeof(first->ports);
	ipv6_addr_set_v4mapped(htonl(0x0a090001), &first->rxbuf.saddr);
	first->hdr.dcid = retry_scid;
	first->hdr.dcid_len = QRDMA_CID_LEN;
	first->hdr.token = first->token;
	first->hdr.token_len = sizeof(first->token);
	return first;
}

static int look(const struct first *first)
{
	struct qrdma_cid odcid;

	return qrdma_retry_look(&first->rxbuf, &first->hdr, &odcid);
}

static void token_there_and_back(struct kunit *test)
{
	struct qrdma_token token = token_of(QRDMA_TOKEN_RETRY), back;
	u8 data[QRDMA_TOKEN_LEN], again[QRDMA_TOKEN_LEN];

	KUNIT_ASSERT_EQ(test, 0, qrdma_token_seal(&token, data));
	KUNIT_ASSERT_EQ(test, 0, qrdma_token_open(&back, data, sizeof(data)));
	KUNIT_EXPECT_EQ(test, token.kind, back.kind);
	KUNIT_EXPECT_EQ(test, token.issued, back.issued);
	KUNIT_EXPECT_EQ(test, token.port, back.port);
	KUNIT_EXPECT_TRUE(test, qrdma_cid_equal(&token.odcid, &back.odcid));
	KUNIT_EXPECT_EQ(test, 0, memcmp(token.scid, back.scid, sizeof(back.scid)));
	KUNIT_EXPECT_TRUE(test, ipv6_addr_equal(&token.addr, &back.addr));

	/* no two are alike in any part that could be told apart */
	KUNIT_ASSERT_EQ(test, 0, qrdma_token_seal(&token, again));
	KUNIT_EXPECT_NE(test, 0, memcmp(data, again, QRDMA_TOKEN_NONCE_LEN));
	KUNIT_EXPECT_NE(test, 0, memcmp(data + QRDMA_TOKEN_NONCE_LEN,
					again + QRDMA_TOKEN_NONCE_LEN, 16));
}

static void token_forged(struct kunit *test)
{
	struct qrdma_token token = token_of(QRDMA_TOKEN_NEXT), back;
	u8 data[QRDMA_TOKEN_LEN + 1] = {};
	u32 i;

	KUNIT_ASSERT_EQ(test, 0, qrdma_token_seal(&token, data));
	for (i = 0; i < QRDMA_TOKEN_LEN; i++) {
		data[i] ^= 1 << i % 8;
		KUNIT_EXPECT_EQ(test, -EBADMSG, qrdma_token_open(&back, data, QRDMA_TOKEN_LEN));
		data[i] ^= 1 << i % 8;
	}
	for (i = 0; i < QRDMA_TOKEN_LEN; i++)
		KUNIT_EXPECT_EQ(test, -EBADMSG, qrdma_token_open(&back, data, i));
	KUNIT_EXPECT_EQ(test, -EBADMSG, qrdma_token_open(&back, data, sizeof(data)));
	KUNIT_EXPECT_EQ(test, 0, qrdma_token_open(&back, data, QRDMA_TOKEN_LEN));

	/* a host with another key, and the same one after its restart */
	use_key(test, 2);
	KUNIT_EXPECT_EQ(test, -EBADMSG, qrdma_token_open(&back, data, QRDMA_TOKEN_LEN));
	use_key(test, 1);
	KUNIT_EXPECT_EQ(test, 0, qrdma_token_open(&back, data, QRDMA_TOKEN_LEN));
}

static void token_of_a_retry(struct kunit *test)
{
	struct qrdma_token token = token_of(QRDMA_TOKEN_RETRY);
	struct first *first = first_with(test, &token);
	struct qrdma_cid odcid;

	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_BACK, (int)qrdma_retry_look(&first->rxbuf, &first->hdr,
								      &odcid));
	KUNIT_EXPECT_TRUE(test, qrdma_cid_equal(&token.odcid, &odcid));
	/* lost ones are sent again */
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_BACK, look(first));

	first->ports[1]++;
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_INVALID, look(first));
	first->ports[1]--;
	first->rxbuf.saddr.s6_addr[15]++;
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_INVALID, look(first));
	first->rxbuf.saddr.s6_addr[15]--;
	first->hdr.dcid = (const u8 *)"another!";
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_INVALID, look(first));
	first->hdr.dcid = retry_scid;
	first->token[40] ^= 1;
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_NONE, look(first));
	first->hdr.token_len = 0;
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_NONE, look(first));

	token.issued -= QRDMA_RETRY_LIFE + 2;
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_INVALID, look(first_with(test, &token)));
	token.issued += 2 * QRDMA_RETRY_LIFE + QRDMA_RETRY_SLACK;
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_INVALID, look(first_with(test, &token)));
}

static void token_for_the_next(struct kunit *test)
{
	struct qrdma_token token = token_of(QRDMA_TOKEN_NEXT);
	struct first *first = first_with(test, &token);

	first->rxbuf.saddr.s6_addr[15]++;
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_NONE, look(first));
	first->rxbuf.saddr.s6_addr[15]--;
	/* of any port, and once */
	first->ports[1]++;
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_KNOWN, look(first));
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_NONE, look(first));

	token.issued -= QRDMA_RETRY_LIFE + 2;
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_KNOWN, look(first_with(test, &token)));
	token.issued -= QRDMA_RETRY_NEXT_LIFE;
	KUNIT_EXPECT_EQ(test, QRDMA_RETRY_NONE, look(first_with(test, &token)));
}

static int token_suite_init(struct kunit_suite *suite)
{
	return qrdma_token_start();
}

static void token_suite_exit(struct kunit_suite *suite)
{
	qrdma_token_stop();
}

static int token_init(struct kunit *test)
{
	use_key(test, 1);
	return 0;
}

static struct kunit_case token_cases[] = {
	KUNIT_CASE(token_there_and_back),
	KUNIT_CASE(token_forged),
	KUNIT_CASE(token_of_a_retry),
	KUNIT_CASE(token_for_the_next),
	{}
};

static struct kunit_suite token_suite = {
	.name = "qrdma_token",
	.suite_init = token_suite_init,
	.suite_exit = token_suite_exit,
	.init = token_init,
	.test_cases = token_cases,
};

kunit_test_suite(token_suite);
