// SPDX-License-Identifier: GPL-2.0
/*
 * Initial keys against RFC 9001 appendix A.1, and the key of Retry packets against section 5.8.
 */
#include <kunit/test.h>

#include "crypto.h"
#include "initial.h"
#include "unhex.h"

#define AEAD	(&qrdma_kernel_aead)

static void expect_secret(struct kunit *test, struct qrdma_slot *slot, const char *secret)
{
	KUNIT_EXPECT_TRUE(test, AEAD->slot_same(slot, QRDMA_CIPHER_AES_128_GCM,
						unhex(test, secret), 32));
}

static void initial_vectors(struct kunit *test)
{
	static const char cid[] = "8394c8f03e515708";
	struct qrdma_slot *client, *server;

	KUNIT_ASSERT_EQ(test, 0, qrdma_initial_slots(unhex(test, cid), hex_len(cid), &client,
						     &server));
	expect_secret(test, client,
		      "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea");
	expect_secret(test, server,
		      "3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b");
	AEAD->slot_put(client);
	AEAD->slot_put(server);
}

/* An id may be empty as far as the derivation goes. */
static void initial_any_length(struct kunit *test)
{
	struct qrdma_slot *client, *server;
	u8 cid[20] = { 1 };

	KUNIT_ASSERT_EQ(test, 0, qrdma_initial_slots(cid, 0, &client, &server));
	AEAD->slot_put(client);
	AEAD->slot_put(server);
	KUNIT_ASSERT_EQ(test, 0, qrdma_initial_slots(cid, sizeof(cid), &client, &server));
	AEAD->slot_put(client);
	AEAD->slot_put(server);
}

static void initial_retry(struct kunit *test)
{
	struct qrdma_slot *slot;

	KUNIT_ASSERT_EQ(test, 0, qrdma_initial_retry_slot(&slot));
	expect_secret(test, slot,
		      "d9c9943e6101fd200021506bcc02814c73030f25c79d71ce876eca876e6fca8e");
	AEAD->slot_put(slot);
}

static int initial_suite_init(struct kunit_suite *suite)
{
	return qrdma_crypto_start();
}

static void initial_suite_exit(struct kunit_suite *suite)
{
	qrdma_crypto_stop();
}

static struct kunit_case initial_cases[] = {
	KUNIT_CASE(initial_vectors),
	KUNIT_CASE(initial_any_length),
	KUNIT_CASE(initial_retry),
	{}
};

static struct kunit_suite initial_suite = {
	.name = "qrdma_initial",
	.suite_init = initial_suite_init,
	.suite_exit = initial_suite_exit,
	.test_cases = initial_cases,
};

kunit_test_suite(initial_suite);
