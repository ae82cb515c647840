// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's AEADs behind the port: RFC 9001 appendix A, all ciphers over
 * awkward memory, refusals, key generations, and many packets in flight.
 *
 * Every test takes -EINPROGRESS for an answer, so the whole suite also runs
 * against an asynchronous cipher: load tests/tools/qrdma_async_aead.c first.
 * What is put to the AEAD comes from kmalloc(): not a stack, not constants.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <crypto/aead.h>
#ifdef CONFIG_X86
#include <asm/fpu/api.h>
#endif

#include "crypto.h"
#include "crypto_vectors.h"
#include "unhex.h"

#define AEAD		(&qrdma_kernel_aead)
#define TEST_HDR_LEN	11
#define TEST_GUARD	32
#define TEST_SLOTS	8
#define TEST_FLIGHTS	64

/* In test->priv, so that a test which stops half way leaves no slot behind. */
struct fixture {
	struct qrdma_slot *slots[TEST_SLOTS];
	unsigned int nslots;
};

/* One packet, and how its sealing or opening ended */
struct flight {
	struct qrdma_aead_op op;
	struct completion ended;
	int err;
	bool later;	/* -EINPROGRESS was the first answer */
	bool holds;	/* a reference to the slot is the operation's own */
};

static const struct cipher_case {
	u32 cipher;
	u32 secret_len;
	const char *name;
} cipher_cases[] = {
	{ QRDMA_CIPHER_AES_128_GCM, 32, "AES-128-GCM" },
	{ QRDMA_CIPHER_AES_256_GCM, 48, "AES-256-GCM" },
	{ QRDMA_CIPHER_AES_128_CCM, 32, "AES-128-CCM" },
	{ QRDMA_CIPHER_CHACHA20_POLY1305, 32, "ChaCha20-Poly1305" },
};

static void cipher_describe(const struct cipher_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

static void vector_describe(const struct crypto_vector *v, char *desc)
{
	strscpy(desc, v->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(cipher, cipher_cases, cipher_describe);
KUNIT_ARRAY_PARAM(vector, crypto_vectors, vector_describe);

/* Helpers */

/* The test owns the slot: it is put when the test ends. */
static struct qrdma_slot *slot_keep(struct kunit *test, struct qrdma_slot *slot)
{
	struct fixture *fix = test->priv;

	if (fix->nslots == TEST_SLOTS) {
		AEAD->slot_put(slot);
		KUNIT_FAIL(test, "too many slots");
		return NULL;
	}
	return fix->slots[fix->nslots++] = slot;
}

static void slots_put(struct kunit *test)
{
	struct fixture *fix = test->priv;

	while (fix->nslots)
		AEAD->slot_put(fix->slots[--fix->nslots]);
}

static struct qrdma_slot *slot_of(struct kunit *test, u32 cipher, const u8 *secret, u32 len)
{
	struct qrdma_slot *slot = NULL;

	KUNIT_ASSERT_EQ(test, 0, AEAD->slot_new(cipher, secret, len, &slot));
	KUNIT_ASSERT_NOT_NULL(test, slot);
	return slot_keep(test, slot);
}

static struct qrdma_slot *slot_after(struct kunit *test, struct qrdma_slot *cur)
{
	struct qrdma_slot *slot = NULL;

	KUNIT_ASSERT_EQ(test, 0, AEAD->slot_next(cur, &slot));
	KUNIT_ASSERT_NOT_NULL(test, slot);
	return slot_keep(test, slot);
}

/* The slot of the param's cipher, made from the bytes 1, 2, 3 ... */
static struct qrdma_slot *slot_of_case(struct kunit *test)
{
	const struct cipher_case *c = test->param_value;
	u8 secret[QRDMA_SECRET_MAX];
	unsigned int i;

	for (i = 0; i < sizeof(secret); i++)
		secret[i] = i + 1;
	return slot_of(test, c->cipher, secret, c->secret_len);
}

static void flight_done(struct qrdma_aead_op *op, int err)
{
	struct flight *f = container_of(op, struct flight, op);

	f->err = err;
	if (f->holds)
		AEAD->slot_put(op->slot);
	complete(&f->ended);
}

/* A packet with room for @payload_len bytes and a tag, and a guard behind. */
static struct flight *flight_new(struct kunit *test, struct qrdma_slot *slot, u32 payload_len)
{
	struct flight *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	size_t room = TEST_HDR_LEN + payload_len + QRDMA_TAG_LEN + TEST_GUARD;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	init_completion(&f->ended);
	f->op.slot = slot;
	f->op.pn = 0x12345;
	f->op.hdr_len = TEST_HDR_LEN;
	f->op.pn_off = TEST_HDR_LEN - 2;
	f->op.pn_len = 2;
	f->op.payload_len = payload_len;
	f->op.done = flight_done;
	f->op.pkt = kunit_kzalloc(test, room, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->op.pkt);
	for (i = 0; i < TEST_HDR_LEN; i++)
		f->op.pkt[i] = 0x40 + i;
	memset(f->op.pkt + room - TEST_GUARD, 0xa5, TEST_GUARD);
	return f;
}

static void flight_seg(struct flight *f, const u8 *data, u32 len)
{
	f->op.seg[f->op.nseg].data = data;
	f->op.seg[f->op.nseg++].len = len;
}

static void flight_start(struct flight *f, int (*call)(struct qrdma_aead_op *op))
{
	int err;

	reinit_completion(&f->ended);
	err = call(&f->op);
	f->later = err == -EINPROGRESS;
	if (!f->later)
		flight_done(&f->op, err);
}

static int flight_land(struct flight *f)
{
	wait_for_completion(&f->ended);
	return f->err;
}

static int flight_seal(struct flight *f)
{
	flight_start(f, AEAD->seal);
	return flight_land(f);
}

/* Open what was sealed in the same packet. */
static int flight_open(struct flight *f)
{
	int err;

	f->op.payload_len += QRDMA_TAG_LEN;
	flight_start(f, AEAD->open);
	err = flight_land(f);
	f->op.payload_len -= QRDMA_TAG_LEN;
	return err;
}

static void expect_guard(struct kunit *test, const struct flight *f)
{
	const u8 *guard = f->op.pkt + f->op.hdr_len + f->op.payload_len + QRDMA_TAG_LEN;

	KUNIT_EXPECT_NULL(test, memchr_inv(guard, 0xa5, TEST_GUARD));
}

static u8 *pattern(struct kunit *test, u32 len)
{
	u8 *data = kunit_kmalloc(test, max(len, 1u), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < len; i++)
		data[i] = i * 7 + (i >> 8);
	return data;
}

/* Known packets */

/* RFC 9001 section 5.4.1 */
static void header_mask(u8 *pkt, u32 pn_off, u32 pn_len, const u8 *mask)
{
	u32 i;

	pkt[0] ^= mask[0] & (pkt[0] & 0x80 ? 0x0f : 0x1f);
	for (i = 0; i < pn_len; i++)
		pkt[pn_off + i] ^= mask[1 + i];
}

static struct flight *flight_of_vector(struct kunit *test, const struct crypto_vector *v,
				       struct qrdma_slot *slot)
{
	u32 hdr_len = hex_len(v->header);
	struct flight *f = flight_new(test, slot, v->payload_len + hdr_len);

	memcpy(f->op.pkt, unhex(test, v->header), hdr_len);
	f->op.hdr_len = hdr_len;
	f->op.pn = v->pn;
	f->op.pn_off = hdr_len - v->pn_len;
	f->op.pn_len = v->pn_len;
	f->op.payload_len = v->payload_len;
	return f;
}

static void crypto_vector_seal(struct kunit *test)
{
	const struct crypto_vector *v = test->param_value;
	u8 *payload = kunit_kzalloc(test, v->payload_len, GFP_KERNEL);
	u32 secret_len = hex_len(v->secret);
	u8 mask[QRDMA_HP_MASK_LEN];
	struct qrdma_slot *slot;
	struct flight *f;

	KUNIT_ASSERT_NOT_NULL(test, payload);
	memcpy(payload, unhex(test, v->payload), hex_len(v->payload));
	slot = slot_of(test, v->cipher, unhex(test, v->secret), secret_len);
	f = flight_of_vector(test, v, slot);
	flight_seg(f, payload, v->payload_len);
	KUNIT_ASSERT_EQ(test, 0, flight_seal(f));
	KUNIT_ASSERT_EQ(test, 0, AEAD->hp_mask(slot, f->op.pkt + f->op.pn_off + 4, mask));
	KUNIT_EXPECT_EQ(test, 0, memcmp(mask, unhex(test, v->mask), sizeof(mask)));
	header_mask(f->op.pkt, f->op.pn_off, v->pn_len, mask);
	KUNIT_EXPECT_EQ(test, 0, memcmp(f->op.pkt, unhex(test, v->packet),
					hex_len(v->packet)));
}

static void crypto_vector_open(struct kunit *test)
{
	const struct crypto_vector *v = test->param_value;
	u32 secret_len = hex_len(v->secret), plain = hex_len(v->payload);
	u8 mask[QRDMA_HP_MASK_LEN], *payload;
	struct qrdma_slot *slot;
	struct flight *f;

	slot = slot_of(test, v->cipher, unhex(test, v->secret), secret_len);
	f = flight_of_vector(test, v, slot);
	memcpy(f->op.pkt, unhex(test, v->packet), hex_len(v->packet));
	KUNIT_ASSERT_EQ(test, 0, AEAD->hp_mask(slot, f->op.pkt + f->op.pn_off + 4, mask));
	header_mask(f->op.pkt, f->op.pn_off, v->pn_len, mask);
	KUNIT_EXPECT_EQ(test, 0, memcmp(f->op.pkt, unhex(test, v->header), f->op.hdr_len));
	KUNIT_ASSERT_EQ(test, 0, flight_open(f));
	payload = f->op.pkt + f->op.hdr_len;
	KUNIT_EXPECT_EQ(test, 0, memcmp(payload, unhex(test, v->payload), plain));
	if (v->payload_len > plain)
		KUNIT_EXPECT_NULL(test, memchr_inv(payload + plain, 0, v->payload_len - plain));
}

/* RFC 9001 section 6.1: a new secret, AEAD key and IV, the same header protection */
static void crypto_vector_update(struct kunit *test)
{
	const struct crypto_vector *v = test->param_value;
	u32 secret_len = hex_len(v->secret);
	u8 *sample = pattern(test, QRDMA_SAMPLE_LEN);
	u8 mask[3][QRDMA_HP_MASK_LEN];
	struct qrdma_slot *cur, *next;
	struct flight *f;

	cur = slot_of(test, v->cipher, unhex(test, v->secret), secret_len);
	/* by the slow way, as there is one generation */
	AEAD->hp_mask(cur, sample, mask[2]);
	next = slot_after(test, cur);
	KUNIT_EXPECT_FALSE(test, AEAD->slot_same(next, v->cipher, unhex(test, v->secret),
						 secret_len));
	if (v->ku)
		KUNIT_EXPECT_TRUE(test, AEAD->slot_same(next, v->cipher, unhex(test, v->ku),
							secret_len));
	/* what the old generation sealed, the new one does not open */
	f = flight_of_vector(test, v, cur);
	flight_seg(f, pattern(test, v->payload_len), v->payload_len);
	KUNIT_ASSERT_EQ(test, 0, flight_seal(f));
	f->op.slot = next;
	KUNIT_EXPECT_EQ(test, -EBADMSG, flight_open(f));
	KUNIT_ASSERT_EQ(test, 0, flight_seal(f));
	KUNIT_EXPECT_EQ(test, 0, flight_open(f));

	/* the header protection key outlives the slot that it was derived for */
	AEAD->hp_mask(cur, sample, mask[0]);
	KUNIT_EXPECT_EQ(test, 0, memcmp(mask[0], mask[2], sizeof(mask[0])));
	AEAD->slot_get(next);
	slots_put(test);
	slot_keep(test, next);
	AEAD->hp_mask(next, sample, mask[1]);
	KUNIT_EXPECT_EQ(test, 0, memcmp(mask[0], mask[1], sizeof(mask[0])));
}

/* RFC 9001 appendix A.4, by the secret of section 5.8 */
static void crypto_retry(struct kunit *test)
{
	static const char secret[] =
		"d9c9943e6101fd200021506bcc02814c73030f25c79d71ce876eca876e6fca8e";
	static const char pseudo[] =		/* original id, then the packet */
		"088394c8f03e515708 "
		"ff000000010008f067a5502a4262b5746f6b656e";
	static const char tag[] = "04a265ba2eff4d829058fb3f0f2496ba";
	u32 len = hex_len(pseudo);
	struct qrdma_slot *slot = slot_of(test, QRDMA_CIPHER_AES_128_GCM,
					  unhex(test, secret), 32);
	struct flight *f = flight_new(test, slot, len);

	memcpy(f->op.pkt, unhex(test, pseudo), len);
	f->op.hdr_len = len;
	f->op.pn = 0;
	f->op.payload_len = 0;
	KUNIT_ASSERT_EQ(test, 0, flight_seal(f));
	KUNIT_EXPECT_EQ(test, 0, memcmp(f->op.pkt + len, unhex(test, tag), QRDMA_TAG_LEN));
	KUNIT_EXPECT_EQ(test, 0, flight_open(f));
	f->op.pkt[len - 1] ^= 1;
	KUNIT_EXPECT_EQ(test, -EBADMSG, flight_open(f));
}

/* Every cipher, awkward memory */

/* Pieces of a 4-page buffer: odd offsets, across pages, empty ones */
static const struct {
	u32 off, len;
} pieces[] = {
	{ PAGE_SIZE - 7, 13 }, { 1, 5 }, { 3, 0 }, { 2 * PAGE_SIZE - 1, 2 },
	{ 2 * PAGE_SIZE + 77, 1700 }, { 33, 1 }, { 3 * PAGE_SIZE - 1001, 1023 },
	{ PAGE_SIZE + 1, 31 },
};

static void crypto_scattered(struct kunit *test)
{
	struct qrdma_slot *slot = slot_of_case(test);
	u8 *pages = pattern(test, 4 * PAGE_SIZE), *before, *plain;
	struct flight *f, *ref;
	u32 total = 0, n;

	BUILD_BUG_ON(ARRAY_SIZE(pieces) > QRDMA_SEG_MAX);
	before = kunit_kzalloc(test, 4 * PAGE_SIZE, GFP_KERNEL);
	plain = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, before);
	KUNIT_ASSERT_NOT_NULL(test, plain);
	memcpy(before, pages, 4 * PAGE_SIZE);

	/* with 0, 1, 2 ... pieces, against the same bytes in one piece */
	for (n = 0; n <= ARRAY_SIZE(pieces); n++) {
		f = flight_new(test, slot, total);
		ref = flight_new(test, slot, total);
		for (u32 i = 0; i < n; i++)
			flight_seg(f, pages + pieces[i].off, pieces[i].len);
		flight_seg(ref, plain, total);
		KUNIT_ASSERT_EQ(test, 0, flight_seal(f));
		KUNIT_ASSERT_EQ(test, 0, flight_seal(ref));
		KUNIT_EXPECT_EQ(test, 0, memcmp(f->op.pkt, ref->op.pkt,
						TEST_HDR_LEN + total + QRDMA_TAG_LEN));
		expect_guard(test, f);
		KUNIT_EXPECT_EQ(test, 0, memcmp(pages, before, 4 * PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, 0, flight_open(f));
		KUNIT_EXPECT_EQ(test, 0, memcmp(f->op.pkt + TEST_HDR_LEN, plain, total));
		expect_guard(test, f);
		if (n < ARRAY_SIZE(pieces)) {
			memcpy(plain + total, pages + pieces[n].off, pieces[n].len);
			total += pieces[n].len;
		}
	}
}

/* Frames that were built where they go, alone and around other data */
static void crypto_in_place(struct kunit *test)
{
	struct qrdma_slot *slot = slot_of_case(test);
	u8 *plain = pattern(test, 300);
	struct flight *f, *ref = flight_new(test, slot, 300);
	u8 *at;

	flight_seg(ref, plain, 300);
	KUNIT_ASSERT_EQ(test, 0, flight_seal(ref));

	f = flight_new(test, slot, 300);
	at = f->op.pkt + TEST_HDR_LEN;
	memcpy(at, plain, 300);
	flight_seg(f, at, 300);
	KUNIT_ASSERT_EQ(test, 0, flight_seal(f));
	KUNIT_EXPECT_EQ(test, 0, memcmp(f->op.pkt, ref->op.pkt,
					TEST_HDR_LEN + 300 + QRDMA_TAG_LEN));

	f = flight_new(test, slot, 300);
	at = f->op.pkt + TEST_HDR_LEN;
	memcpy(at, plain, 9);
	memcpy(at + 270, plain + 270, 30);
	flight_seg(f, at, 9);
	flight_seg(f, plain + 9, 261);
	flight_seg(f, at + 270, 30);
	KUNIT_ASSERT_EQ(test, 0, flight_seal(f));
	KUNIT_EXPECT_EQ(test, 0, memcmp(f->op.pkt, ref->op.pkt,
					TEST_HDR_LEN + 300 + QRDMA_TAG_LEN));
	expect_guard(test, f);
}

static void crypto_tampered(struct kunit *test)
{
	struct qrdma_slot *slot = slot_of_case(test);
	u32 len = 50, whole = TEST_HDR_LEN + len + QRDMA_TAG_LEN, i;
	struct flight *f = flight_new(test, slot, len);
	u8 *sealed = kunit_kzalloc(test, whole, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sealed);
	flight_seg(f, pattern(test, len), len);
	KUNIT_ASSERT_EQ(test, 0, flight_seal(f));
	memcpy(sealed, f->op.pkt, whole);
	for (i = 0; i < whole; i++) {
		memcpy(f->op.pkt, sealed, whole);
		f->op.pkt[i] ^= 1 << (i % 8);
		KUNIT_EXPECT_EQ_MSG(test, -EBADMSG, flight_open(f), "byte %u", i);
	}
	/* another number is another nonce, also in bits that a header never shows */
	for (i = 0; i < 62; i++) {
		memcpy(f->op.pkt, sealed, whole);
		f->op.pn ^= 1ull << i;
		KUNIT_EXPECT_EQ_MSG(test, -EBADMSG, flight_open(f), "number, bit %u", i);
		f->op.pn ^= 1ull << i;
	}
	memcpy(f->op.pkt, sealed, whole);
	KUNIT_EXPECT_EQ(test, 0, flight_open(f));
}

/* Refusals */

static void crypto_refused_secrets(struct kunit *test)
{
	static const u32 unknown[] = { 0, 50, 55, 0x1301, U32_MAX };
	struct qrdma_slot *slot = NULL;
	u8 secret[64] = { 1 };
	u32 i, len;

	for (i = 0; i < ARRAY_SIZE(cipher_cases); i++)
		for (len = 0; len <= sizeof(secret); len++)
			if (len != cipher_cases[i].secret_len)
				KUNIT_EXPECT_EQ(test, -EINVAL,
						AEAD->slot_new(cipher_cases[i].cipher,
							       secret, len, &slot));
	for (i = 0; i < ARRAY_SIZE(unknown); i++)
		KUNIT_EXPECT_EQ(test, -EINVAL, AEAD->slot_new(unknown[i], secret, 32, &slot));
	KUNIT_EXPECT_NULL(test, slot);
	AEAD->slot_put(NULL);
}

static void crypto_refused_packets(struct kunit *test)
{
	struct qrdma_slot *slot = slot_of_case(test);
	struct flight *f = flight_new(test, slot, 64);
	u8 *data = pattern(test, 64);

	/* segments that are not the payload */
	KUNIT_EXPECT_EQ(test, -EINVAL, flight_seal(f));
	flight_seg(f, data, 63);
	KUNIT_EXPECT_EQ(test, -EINVAL, flight_seal(f));
	flight_seg(f, data, 2);
	KUNIT_EXPECT_EQ(test, -EINVAL, flight_seal(f));
	f->op.seg[1].len = U32_MAX;
	KUNIT_EXPECT_EQ(test, -EINVAL, flight_seal(f));
	f->op.nseg = QRDMA_SEG_MAX + 1;
	KUNIT_EXPECT_EQ(test, -EINVAL, flight_seal(f));
	expect_guard(test, f);

	/* no room for a tag */
	f->op.payload_len = QRDMA_TAG_LEN - 1;
	flight_start(f, AEAD->open);
	KUNIT_EXPECT_EQ(test, -EBADMSG, flight_land(f));
	f->op.payload_len = 0;
	flight_start(f, AEAD->open);
	KUNIT_EXPECT_EQ(test, -EBADMSG, flight_land(f));
}

/* F18: the same secret again would repeat nonces */
static void crypto_slot_same(struct kunit *test)
{
	u8 secret[32] = { 5, 6, 7 };
	struct qrdma_slot *slot = slot_of(test, QRDMA_CIPHER_AES_128_GCM, secret, 32);

	KUNIT_EXPECT_TRUE(test, AEAD->slot_same(slot, QRDMA_CIPHER_AES_128_GCM, secret, 32));
	KUNIT_EXPECT_FALSE(test, AEAD->slot_same(slot, QRDMA_CIPHER_AES_128_CCM, secret, 32));
	KUNIT_EXPECT_FALSE(test, AEAD->slot_same(slot, QRDMA_CIPHER_AES_128_GCM, secret, 31));
	secret[31] ^= 0x80;
	KUNIT_EXPECT_FALSE(test, AEAD->slot_same(slot, QRDMA_CIPHER_AES_128_GCM, secret, 32));
}

/* Contexts, and many packets at once */

/* The last reference may go with bottom halves off; so may everything but slot_new(). */
static void crypto_atomic(struct kunit *test)
{
	struct qrdma_slot *slot = slot_of_case(test);
	struct flight *f = flight_new(test, slot, 200);
	u8 mask[QRDMA_HP_MASK_LEN];

	flight_seg(f, pattern(test, 200), 200);
	local_bh_disable();
	flight_start(f, AEAD->seal);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, 0, flight_land(f));
	f->op.payload_len += QRDMA_TAG_LEN;
	local_bh_disable();
	AEAD->hp_mask(slot, f->op.pkt + TEST_HDR_LEN, mask);
	flight_start(f, AEAD->open);
	slots_put(test);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, 0, flight_land(f));
}

/* Seal TEST_FLIGHTS packets at once; with @drop, our reference goes meanwhile. */
static unsigned int fly_together(struct kunit *test, struct qrdma_slot *slot,
				 struct flight **flights, bool drop)
{
	unsigned int i, later = 0;

	for (i = 0; i < TEST_FLIGHTS; i++) {
		flights[i] = flight_new(test, slot, 100 + i);
		flight_seg(flights[i], pattern(test, 100 + i), 100 + i);
		flights[i]->op.pn = i;
		flights[i]->holds = true;
	}
	for (i = 0; i < TEST_FLIGHTS; i++) {
		AEAD->slot_get(slot);
		flight_start(flights[i], AEAD->seal);
	}
	if (drop)
		slots_put(test);
	for (i = 0; i < TEST_FLIGHTS; i++) {
		KUNIT_EXPECT_EQ(test, 0, flight_land(flights[i]));
		later += flights[i]->later;
		flights[i]->holds = false;
	}
	return later;
}

/* F14: a key that is dropped with packets in flight lives until they are done. */
static void crypto_in_flight(struct kunit *test)
{
	struct flight **flights = kunit_kcalloc(test, TEST_FLIGHTS, sizeof(*flights), GFP_KERNEL);
	struct qrdma_slot *slot;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, flights);
	fly_together(test, slot_of_case(test), flights, true);
	slot = slot_of_case(test);
	for (i = 0; i < TEST_FLIGHTS; i++) {
		flights[i]->op.slot = slot;
		KUNIT_EXPECT_EQ(test, 0, flight_open(flights[i]));
		expect_guard(test, flights[i]);
	}
}

/* Used requests serve again: what is allocated does not grow with the packets. */
static void crypto_steady(struct kunit *test)
{
	struct flight **flights = kunit_kcalloc(test, TEST_FLIGHTS, sizeof(*flights), GFP_KERNEL);
	unsigned int i, round, rounds = 4 * num_possible_cpus();
	struct qrdma_slot *slot = slot_of_case(test);
	struct qrdma_crypto_stats before, after;

	KUNIT_ASSERT_NOT_NULL(test, flights);
	qrdma_crypto_stats_read(&before);
	fly_together(test, slot, flights, false);
	for (round = 1; round < rounds; round++) {
		for (i = 0; i < TEST_FLIGHTS; i++) {
			flights[i]->op.pn += TEST_FLIGHTS;
			flight_start(flights[i], AEAD->seal);
		}
		for (i = 0; i < TEST_FLIGHTS; i++)
			KUNIT_EXPECT_EQ(test, 0, flight_land(flights[i]));
	}
	qrdma_crypto_stats_read(&after);
	KUNIT_EXPECT_EQ(test, after.sync + after.async,
			before.sync + before.async + rounds * TEST_FLIGHTS);
	KUNIT_EXPECT_EQ(test, after.failed, before.failed);
	/* at most: all in flight, and each processor's pool (32) filled twice */
	KUNIT_EXPECT_LE(test, after.grown - before.grown,
			TEST_FLIGHTS + 64ull * num_possible_cpus());
}

static const char *gcm_driver(struct kunit *test, u32 *flags, char *name, size_t size)
{
	struct crypto_aead *tfm = crypto_alloc_aead("gcm(aes)", 0, 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR(tfm));
	strscpy(name, crypto_tfm_alg_driver_name(crypto_aead_tfm(tfm)), size);
	*flags = crypto_aead_tfm(tfm)->__crt_alg->cra_flags;
	crypto_free_aead(tfm);
	return name;
}

/* With the asynchronous cipher of tests/tools: later, and through the backlog */
static void crypto_async(struct kunit *test)
{
	struct flight **flights = kunit_kcalloc(test, TEST_FLIGHTS, sizeof(*flights), GFP_KERNEL);
	struct qrdma_crypto_stats before, after;
	char name[CRYPTO_MAX_ALG_NAME];
	u32 flags;

	KUNIT_ASSERT_NOT_NULL(test, flights);
	if (strncmp(gcm_driver(test, &flags, name, sizeof(name)), "qrdma-async", 11))
		kunit_skip(test, "qrdma_async_aead is not loaded, gcm(aes) is %s", name);
	qrdma_crypto_stats_read(&before);
	KUNIT_EXPECT_EQ(test, TEST_FLIGHTS,
			fly_together(test, slot_of_case(test), flights, false));
	qrdma_crypto_stats_read(&after);
	KUNIT_EXPECT_EQ(test, after.async - before.async, (u64)TEST_FLIGHTS);
	KUNIT_EXPECT_EQ(test, after.sync, before.sync);
	KUNIT_EXPECT_GT(test, after.backlogged, before.backlogged);
}

/* AES-NI of 6.1 and 6.12 defers while the vector unit is taken. */
static void crypto_fpu_taken(struct kunit *test)
{
#ifdef CONFIG_X86
	u8 secret[32] = { 9 };
	struct qrdma_slot *slot = slot_of(test, QRDMA_CIPHER_AES_128_GCM, secret, 32);
	struct flight *f = flight_new(test, slot, 200);
	char name[CRYPTO_MAX_ALG_NAME];
	u32 flags;

	gcm_driver(test, &flags, name, sizeof(name));
	if (!(flags & CRYPTO_ALG_ASYNC))
		kunit_skip(test, "%s is never asynchronous", name);
	flight_seg(f, pattern(test, 200), 200);
	kernel_fpu_begin();
	flight_start(f, AEAD->seal);
	kernel_fpu_end();
	KUNIT_EXPECT_EQ(test, 0, flight_land(f));
	KUNIT_EXPECT_TRUE(test, f->later);
	KUNIT_EXPECT_EQ(test, 0, flight_open(f));
#else
	kunit_skip(test, "x86 only");
#endif
}

static int crypto_case_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct fixture), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

static void crypto_case_exit(struct kunit *test)
{
	if (test->priv)
		slots_put(test);
}

/* 6.1 runs the suites of a module before the module's own start. */
static int crypto_suite_init(struct kunit_suite *suite)
{
	return qrdma_crypto_start();
}

/* Waits for every slot: a leak would be seen here. */
static void crypto_suite_exit(struct kunit_suite *suite)
{
	qrdma_crypto_stop();
}

static struct kunit_case crypto_cases[] = {
	KUNIT_CASE_PARAM(crypto_vector_seal, vector_gen_params),
	KUNIT_CASE_PARAM(crypto_vector_open, vector_gen_params),
	KUNIT_CASE_PARAM(crypto_vector_update, vector_gen_params),
	KUNIT_CASE(crypto_retry),
	KUNIT_CASE_PARAM(crypto_scattered, cipher_gen_params),
	KUNIT_CASE_PARAM(crypto_in_place, cipher_gen_params),
	KUNIT_CASE_PARAM(crypto_tampered, cipher_gen_params),
	KUNIT_CASE(crypto_refused_secrets),
	KUNIT_CASE_PARAM(crypto_refused_packets, cipher_gen_params),
	KUNIT_CASE(crypto_slot_same),
	KUNIT_CASE_PARAM(crypto_atomic, cipher_gen_params),
	KUNIT_CASE_PARAM(crypto_in_flight, cipher_gen_params),
	KUNIT_CASE_PARAM(crypto_steady, cipher_gen_params),
	KUNIT_CASE_PARAM(crypto_async, cipher_gen_params),
	KUNIT_CASE(crypto_fpu_taken),
	{ }
};

static struct kunit_suite crypto_suite = {
	.name = "qrdma-crypto",
	.suite_init = crypto_suite_init,
	.suite_exit = crypto_suite_exit,
	.init = crypto_case_init,
	.exit = crypto_case_exit,
	.test_cases = crypto_cases,
};

kunit_test_suite(crypto_suite);
