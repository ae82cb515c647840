// SPDX-License-Identifier: GPL-2.0
/* Key generations: which seals, which opens, when they move, when they die. */
#include "qtest.h"
#include "nullaead.h"

static const u8 keys_secret[32] = "a traffic secret";

static void keys_make(struct q_test *test, struct qrdma_slot **cur)
{
	Q_ASSERT_EQ(test, null_aead.slot_new(QRDMA_CIPHER_AES_128_GCM, keys_secret, 32, cur), 0);
}

static void keys_derive(struct qrdma_keys *keys, bool send)
{
	struct qrdma_slot *from = qrdma_keys_wanted(keys, send), *next;

	if (!from)
		return;
	if (!null_aead.slot_next(from, &next) &&
	    qrdma_keys_install_next(keys, send, from, next))
		null_aead.slot_put(next);
	null_aead.slot_put(from);
}

static void keys_setup(struct q_test *test, struct qrdma_keys *keys, u32 cipher, u64 max)
{
	struct qrdma_slot *cur;
	int send;

	qrdma_keys_init(keys, &null_aead);
	for (send = 0; send < 2; send++) {
		keys_make(test, &cur);
		Q_ASSERT_EQ(test, qrdma_keys_install(keys, send, cipher, max, cur), 0);
		keys_derive(keys, send);
	}
}

/* Seal as packet @pn. Return: the phase bit, -1 when there is no key. */
static int keys_seal(struct qrdma_keys *keys, u64 pn)
{
	struct qrdma_slot *slot;
	bool phase;

	slot = qrdma_keys_seal(keys, pn, &phase);
	if (!slot)
		return -1;
	null_aead.slot_put(slot);
	return phase;
}

/* A packet that verifies with what is chosen. Return: as qrdma_keys_opened(), -ENOKEY: none. */
static int keys_open(struct qrdma_keys *keys, u64 pn, bool phase)
{
	struct qrdma_slot *slot;
	u32 gen;

	slot = qrdma_keys_open(keys, pn, phase, &gen);
	if (!slot)
		return -ENOKEY;
	null_aead.slot_put(slot);
	return qrdma_keys_opened(keys, gen, pn, 1000);
}

Q_TEST(keys_install_once)
{
	struct qrdma_slot *cur;
	struct qrdma_keys keys;
	bool phase;
	u32 gen;

	qrdma_keys_init(&keys, &null_aead);
	Q_EXPECT_NULL(test, qrdma_keys_seal(&keys, 0, &phase));
	Q_EXPECT_NULL(test, qrdma_keys_open(&keys, 0, false, &gen));
	Q_EXPECT_NULL(test, qrdma_keys_wanted(&keys, true));
	keys_make(test, &cur);
	Q_EXPECT_EQ(test, qrdma_keys_install(&keys, true, 1, 0, cur), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_keys_install(&keys, true, QRDMA_CIPHER_AES_128_GCM, 0, NULL),
		    -EINVAL);
	Q_EXPECT_EQ(test, qrdma_keys_install(&keys, true, QRDMA_CIPHER_AES_128_GCM, 0, cur), 0);
	/* field case F18: the same nonces would come again */
	Q_EXPECT_EQ(test, qrdma_keys_install(&keys, true, QRDMA_CIPHER_AES_128_GCM, 0, cur),
		    -EEXIST);
	qrdma_keys_wipe(&keys);
	Q_EXPECT_NULL(test, keys.tx_cur);
}

Q_TEST(keys_update_ours)
{
	struct qrdma_keys keys;

	keys_setup(test, &keys, QRDMA_CIPHER_AES_128_GCM, 0);
	Q_EXPECT_EQ(test, qrdma_keys_update(&keys, false), -EAGAIN);
	Q_EXPECT_EQ(test, keys_seal(&keys, 0), 0);
	Q_EXPECT_EQ(test, qrdma_keys_update(&keys, false), -EAGAIN);
	Q_EXPECT_EQ(test, qrdma_keys_acked(&keys, 0, 0), 0);
	Q_EXPECT_EQ(test, qrdma_keys_update(&keys, false), 0);
	Q_EXPECT_EQ(test, keys_seal(&keys, 1), 1);
	/* not followed, not derived, not acknowledged: not again */
	Q_EXPECT_EQ(test, qrdma_keys_update(&keys, false), -EAGAIN);
	keys_derive(&keys, true);
	Q_EXPECT_EQ(test, qrdma_keys_update(&keys, false), -EAGAIN);
	/* the peer still seals with the old one, then follows */
	Q_EXPECT_EQ(test, keys_open(&keys, 0, false), 0);
	Q_EXPECT_EQ(test, keys_open(&keys, 1, true), 1);
	Q_EXPECT_EQ(test, keys.tx_gen, 1);
	Q_EXPECT_EQ(test, qrdma_keys_acked(&keys, 1, 1), 0);
	keys_derive(&keys, false);
	/* the old one is kept for stragglers, whose phase is that of the next */
	Q_EXPECT_EQ(test, qrdma_keys_update(&keys, false), -EAGAIN);
	Q_EXPECT_EQ(test, qrdma_keys_deadline(&keys), 1000);
	qrdma_keys_expire(&keys, 999);
	Q_EXPECT_NOT_NULL(test, keys.rx_prev);
	qrdma_keys_expire(&keys, 1000);
	Q_EXPECT_NULL(test, keys.rx_prev);
	Q_EXPECT_EQ(test, qrdma_keys_deadline(&keys), U64_MAX);
	Q_EXPECT_EQ(test, qrdma_keys_update(&keys, false), 0);
	Q_EXPECT_EQ(test, keys_seal(&keys, 2), 0);
	Q_EXPECT_EQ(test, keys.updates, 2);
	qrdma_keys_wipe(&keys);
}

/* Idle keys have no next generation; what asks for one gets it. */
Q_TEST(keys_rest)
{
	struct qrdma_keys keys;
	bool phase;
	u32 gen;

	keys_setup(test, &keys, QRDMA_CIPHER_AES_128_GCM, 0);
	Q_EXPECT_FALSE(test, qrdma_keys_lacking(&keys));
	qrdma_keys_rest(&keys);
	Q_EXPECT_TRUE(test, qrdma_keys_lacking(&keys));
	Q_EXPECT_FALSE(test, qrdma_keys_pressing(&keys));
	/* the peer's update cannot be followed yet */
	Q_EXPECT_EQ(test, keys_open(&keys, 0, true), -ENOKEY);
	Q_EXPECT_TRUE(test, qrdma_keys_pressing(&keys));
	keys_derive(&keys, false);
	Q_EXPECT_TRUE(test, qrdma_keys_pressing(&keys));
	keys_derive(&keys, true);
	Q_EXPECT_FALSE(test, qrdma_keys_pressing(&keys));
	Q_EXPECT_EQ(test, keys_open(&keys, 0, true), 1);
	/* ours asks too */
	Q_EXPECT_EQ(test, keys_seal(&keys, 0), 1);
	Q_EXPECT_EQ(test, qrdma_keys_acked(&keys, 1, 0), 0);
	qrdma_keys_expire(&keys, 1000);
	Q_EXPECT_EQ(test, qrdma_keys_update(&keys, false), -EAGAIN);
	Q_EXPECT_TRUE(test, qrdma_keys_pressing(&keys));
	keys_derive(&keys, true);
	keys_derive(&keys, false);
	Q_EXPECT_EQ(test, qrdma_keys_update(&keys, false), 0);
	/* the peer is about to follow: not now */
	keys_derive(&keys, true);
	qrdma_keys_rest(&keys);
	Q_EXPECT_FALSE(test, qrdma_keys_lacking(&keys));
	Q_EXPECT_EQ(test, keys_open(&keys, 1, false), 1);
	keys_derive(&keys, false);
	/* a packet was being opened with the next one when that was given up */
	keys.aead->slot_put(qrdma_keys_open(&keys, 2, true, &gen));
	Q_EXPECT_EQ(test, gen, 3);
	qrdma_keys_rest(&keys);
	Q_EXPECT_EQ(test, qrdma_keys_opened(&keys, gen, 2, 1000), -EAGAIN);
	Q_EXPECT_EQ(test, keys.rx_gen, 2);
	Q_EXPECT_TRUE(test, qrdma_keys_pressing(&keys));
	keys.aead->slot_put(qrdma_keys_seal(&keys, 9, &phase));
	qrdma_keys_wipe(&keys);
}

/* Towards the limit they are wanted however few packets there were. */
Q_TEST(keys_rest_not_near_the_limit)
{
	struct qrdma_keys keys;
	u32 i;

	keys_setup(test, &keys, QRDMA_CIPHER_AES_128_GCM, 40);
	for (i = 0; i < 10; i++) {
		Q_EXPECT_FALSE(test, qrdma_keys_pressing(&keys));
		Q_EXPECT_EQ(test, keys_seal(&keys, i), 0);
	}
	Q_EXPECT_TRUE(test, qrdma_keys_pressing(&keys));
	qrdma_keys_rest(&keys);
	Q_EXPECT_FALSE(test, qrdma_keys_lacking(&keys));
	qrdma_keys_wipe(&keys);
}

Q_TEST(keys_update_theirs)
{
	struct qrdma_keys keys;

	keys_setup(test, &keys, QRDMA_CIPHER_AES_128_GCM, 0);
	Q_EXPECT_EQ(test, keys_open(&keys, 10, false), 0);
	Q_EXPECT_EQ(test, keys_open(&keys, 12, true), 1);
	Q_EXPECT_EQ(test, keys.rx_gen, 1);
	Q_EXPECT_EQ(test, keys.tx_gen, 1);
	/* stragglers, and more of the new */
	Q_EXPECT_EQ(test, keys_open(&keys, 11, false), 0);
	Q_EXPECT_EQ(test, keys_open(&keys, 13, true), 0);
	/* the next one is not there yet */
	Q_EXPECT_EQ(test, keys_open(&keys, 14, false), -ENOKEY);
	keys_derive(&keys, false);
	/* there, but no answer to it */
	Q_EXPECT_EQ(test, keys_open(&keys, 14, false), -ENOKEY);
	keys_derive(&keys, true);
	/* answered none of the last with a packet (RFC 9001 s6.2) */
	Q_EXPECT_EQ(test, keys_open(&keys, 14, false), -EKEYREJECTED);
	Q_EXPECT_EQ(test, keys_seal(&keys, 5), 1);
	Q_EXPECT_EQ(test, keys_open(&keys, 14, false), 1);
	Q_EXPECT_EQ(test, keys.rx_gen, 2);
	qrdma_keys_wipe(&keys);
}

/* RFC 9001 s6.4: keys never go back as numbers rise. */
Q_TEST(keys_out_of_order)
{
	struct qrdma_keys keys;

	keys_setup(test, &keys, QRDMA_CIPHER_AES_128_GCM, 0);
	Q_EXPECT_EQ(test, keys_open(&keys, 20, false), 0);
	/* new keys below a number that had the old */
	Q_EXPECT_EQ(test, keys_open(&keys, 15, true), -EKEYREJECTED);
	Q_EXPECT_EQ(test, keys_open(&keys, 21, true), 1);
	/* old keys above one that had the new: only a packet begun before can say so */
	Q_EXPECT_EQ(test, qrdma_keys_opened(&keys, 0, 22, 1000), -EKEYREJECTED);
	Q_EXPECT_EQ(test, qrdma_keys_opened(&keys, 0, 19, 1000), 0);
	qrdma_keys_wipe(&keys);
}

Q_TEST(keys_ack_in_old_generation)
{
	struct qrdma_keys keys;

	keys_setup(test, &keys, QRDMA_CIPHER_AES_128_GCM, 0);
	keys_seal(&keys, 0);
	Q_EXPECT_EQ(test, qrdma_keys_acked(&keys, 0, 0), 0);
	Q_EXPECT_EQ(test, qrdma_keys_update(&keys, false), 0);
	/* nothing sealed with the new one yet */
	Q_EXPECT_EQ(test, qrdma_keys_acked(&keys, 0, 7), 0);
	keys_seal(&keys, 8);
	Q_EXPECT_EQ(test, qrdma_keys_acked(&keys, 0, 7), 0);
	Q_EXPECT_EQ(test, qrdma_keys_acked(&keys, 0, 8), -EKEYREJECTED);
	qrdma_keys_wipe(&keys);
}

/* RFC 9001 s6.6, field case F15 */
Q_TEST(keys_seal_limit)
{
	struct qrdma_keys keys;
	u64 pn = 0;

	keys_setup(test, &keys, QRDMA_CIPHER_AES_128_GCM, 1000);
	while (!qrdma_keys_update_due(&keys))
		Q_ASSERT_EQ(test, keys_seal(&keys, pn++), 0);
	Q_EXPECT_EQ(test, pn, 875);
	Q_EXPECT_FALSE(test, qrdma_keys_exhausted(&keys));
	while (!qrdma_keys_exhausted(&keys))
		Q_ASSERT_EQ(test, keys_seal(&keys, pn++), 0);
	Q_EXPECT_EQ(test, pn, 992);
	/* some are left for probes, the last to say goodbye, then it is over */
	while (!qrdma_keys_spent(&keys))
		Q_ASSERT_EQ(test, keys_seal(&keys, pn++), 0);
	Q_EXPECT_EQ(test, pn, 998);
	while (keys_seal(&keys, pn) == 0)
		pn++;
	Q_EXPECT_EQ(test, pn, 1000);
	/* the next generation begins anew, even now */
	Q_EXPECT_EQ(test, qrdma_keys_acked(&keys, 0, 999), 0);
	Q_EXPECT_EQ(test, qrdma_keys_update(&keys, true), 0);
	Q_EXPECT_EQ(test, keys_seal(&keys, pn), 1);
	Q_EXPECT_FALSE(test, qrdma_keys_update_due(&keys));
	Q_EXPECT_FALSE(test, qrdma_keys_spent(&keys));
	qrdma_keys_wipe(&keys);
}

Q_TEST(keys_cipher_limits)
{
	static const struct {
		u32 cipher;
		u64 seal;
		u64 fail;
	} row[] = {
		{ QRDMA_CIPHER_AES_128_GCM, 1ULL << 23, 1ULL << 52 },
		{ QRDMA_CIPHER_AES_256_GCM, 1ULL << 23, 1ULL << 52 },
		{ QRDMA_CIPHER_AES_128_CCM, 2965820, 2965820 },
		{ QRDMA_CIPHER_CHACHA20_POLY1305, 1ULL << 62, 1ULL << 36 },
	};
	struct qrdma_keys keys;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		/* more than the cipher allows is not to be had */
		keys_setup(test, &keys, row[i].cipher, U64_MAX);
		Q_EXPECT_EQ(test, keys.tx_max, row[i].seal);
		Q_EXPECT_EQ(test, keys.rx_failed_max, row[i].fail);
		keys.rx_failed = row[i].fail - 2;
		Q_EXPECT_FALSE(test, qrdma_keys_open_failed(&keys));
		Q_EXPECT_TRUE(test, qrdma_keys_open_failed(&keys));
		qrdma_keys_wipe(&keys);
	}
}

/* What was derived from a generation that is not current any more is refused. */
Q_TEST(keys_stale_derivation)
{
	struct qrdma_slot *from, *next;
	struct qrdma_keys keys;

	keys_setup(test, &keys, QRDMA_CIPHER_AES_128_GCM, 0);
	from = keys.rx_cur;
	null_aead.slot_get(from);
	Q_EXPECT_NULL(test, qrdma_keys_wanted(&keys, false));
	Q_ASSERT_EQ(test, null_aead.slot_next(from, &next), 0);
	Q_EXPECT_EQ(test, qrdma_keys_install_next(&keys, false, from, next), -EEXIST);
	Q_EXPECT_EQ(test, keys_open(&keys, 1, true), 1);
	Q_EXPECT_EQ(test, qrdma_keys_install_next(&keys, false, from, next), -ESTALE);
	null_aead.slot_put(next);
	null_aead.slot_put(from);
	qrdma_keys_wipe(&keys);
}

/* An operation in flight keeps its key, whatever becomes of the generations. */
Q_TEST(keys_in_flight)
{
	struct qrdma_slot *slot;
	struct qrdma_keys keys;
	bool phase;

	keys_setup(test, &keys, QRDMA_CIPHER_AES_128_GCM, 0);
	slot = qrdma_keys_seal(&keys, 0, &phase);
	Q_ASSERT_NOT_NULL(test, slot);
	qrdma_keys_wipe(&keys);
	Q_EXPECT_EQ(test, refcount_read(&slot->refs), 1);
	null_aead.slot_put(slot);
}

Q_SUITE("qrdma-keys",
	Q_CASE(keys_install_once),
	Q_CASE(keys_update_ours),
	Q_CASE(keys_rest),
	Q_CASE(keys_rest_not_near_the_limit),
	Q_CASE(keys_update_theirs),
	Q_CASE(keys_out_of_order),
	Q_CASE(keys_ack_in_old_generation),
	Q_CASE(keys_seal_limit),
	Q_CASE(keys_cipher_limits),
	Q_CASE(keys_stale_derivation),
	Q_CASE(keys_in_flight));
