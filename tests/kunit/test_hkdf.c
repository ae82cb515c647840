// SPDX-License-Identifier: GPL-2.0
/*
 * HKDF against RFC 5869 appendix A.1 to A.3 (A.4 to A.7 are SHA-1, which QUIC
 * does not use), and against what RFC 9001 appendix A derives.
 */
#include <kunit/test.h>
#include <linux/string.h>

#include "hkdf.h"
#include "unhex.h"

#define SHA256_LEN	32

static void expect_bytes(struct kunit *test, const char *what, const u8 *got, const char *want)
{
	u32 len = hex_len(want);

	KUNIT_EXPECT_EQ_MSG(test, memcmp(got, unhex(test, want), len), 0, "%s is %*phN, not %s",
			    what, min_t(int, len, 64), got, want);
}

/* In test->priv, so that a test which stops half way leaves no hash behind. */
static int hkdf_case_init(struct kunit *test)
{
	struct qrdma_hkdf *kdf = kunit_kzalloc(test, sizeof(*kdf), GFP_KERNEL);

	if (!kdf)
		return -ENOMEM;
	test->priv = kdf;
	return qrdma_hkdf_init(kdf, "hmac(sha256)");
}

static void hkdf_case_exit(struct kunit *test)
{
	if (test->priv)
		qrdma_hkdf_free(test->priv);
}

static const struct rfc5869_case {
	const char *ikm, *salt, *info, *prk, *okm;
} rfc5869_cases[] = {
	{	/* A.1 */
		.ikm = "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
		.salt = "000102030405060708090a0b0c",
		.info = "f0f1f2f3f4f5f6f7f8f9",
		.prk = "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
		.okm = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf "
		       "34007208d5b887185865",
	}, {	/* A.2: longer inputs and outputs */
		.ikm = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f "
		       "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f "
		       "404142434445464748494a4b4c4d4e4f",
		.salt = "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f "
			"808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f "
			"a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
		.info = "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecf "
			"d0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeef "
			"f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
		.prk = "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
		.okm = "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c "
		       "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71 "
		       "cc30c58179ec3e87c14c01d5c1f3434f1d87",
	}, {	/* A.3: salt and info of length 0 */
		.ikm = "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
		.salt = "",
		.info = "",
		.prk = "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
		.okm = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d "
		       "9d201395faa4b61a96c8",
	},
};

static void hkdf_rfc5869(struct kunit *test)
{
	struct qrdma_hkdf *kdf = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rfc5869_cases); i++) {
		const struct rfc5869_case *c = &rfc5869_cases[i];
		u8 prk[SHA256_LEN], okm[96];

		KUNIT_ASSERT_EQ(test, 0, qrdma_hkdf_extract(kdf, unhex(test, c->salt),
							    hex_len(c->salt),
							    unhex(test, c->ikm),
							    hex_len(c->ikm), prk));
		expect_bytes(test, "PRK", prk, c->prk);
		KUNIT_ASSERT_EQ(test, 0, qrdma_hkdf_key(kdf, prk, sizeof(prk)));
		KUNIT_ASSERT_EQ(test, 0, qrdma_hkdf_expand(kdf, unhex(test, c->info),
							   hex_len(c->info), okm,
							   hex_len(c->okm)));
		expect_bytes(test, "OKM", okm, c->okm);
	}
}

/* The labels of RFC 9001 appendix A.1, as bytes and by name, give the same. */
static void hkdf_rfc9001_labels(struct kunit *test)
{
	static const struct {
		const char *label, *info;
		u32 len;
	} cases[] = {
		{ "client in", "00200f746c73313320636c69656e7420696e00", 32 },
		{ "server in", "00200f746c7331332073657276657220696e00", 32 },
		{ "quic key", "00100e746c7331332071756963206b657900", 16 },
		{ "quic iv", "000c0d746c733133207175696320697600", 12 },
		{ "quic hp", "00100d746c733133207175696320687000", 16 },
	};
	struct qrdma_hkdf *kdf = test->priv;
	u8 by_name[32], by_bytes[32];
	unsigned int i;

	KUNIT_ASSERT_EQ(test, 0, qrdma_hkdf_key(kdf, (const u8 *)"any secret", 10));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *info = cases[i].info;
		u32 len = cases[i].len;

		KUNIT_ASSERT_EQ(test, 0, qrdma_hkdf_label(kdf, cases[i].label, by_name, len));
		KUNIT_ASSERT_EQ(test, 0, qrdma_hkdf_expand(kdf, unhex(test, info), hex_len(info),
							   by_bytes, len));
		KUNIT_EXPECT_EQ_MSG(test, memcmp(by_name, by_bytes, len), 0, "%s",
				    cases[i].label);
	}
}

struct derived {
	const char *label, *want;
};

static void expect_derived(struct kunit *test, const u8 *secret, const struct derived *d)
{
	struct qrdma_hkdf *kdf = test->priv;
	u8 out[32];

	KUNIT_ASSERT_EQ(test, 0, qrdma_hkdf_key(kdf, secret, SHA256_LEN));
	for (; d->label; d++) {
		KUNIT_ASSERT_EQ(test, 0, qrdma_hkdf_label(kdf, d->label, out,
							  hex_len(d->want)));
		expect_bytes(test, d->label, out, d->want);
	}
}

static const struct derived initial_secrets[] = {
	{ "client in", "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea" },
	{ "server in", "3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b" },
	{ }
};

static const struct derived client_keys[] = {
	{ "quic key", "1f369613dd76d5467730efcbe3b1a22d" },
	{ "quic iv", "fa044b2f42a3fd3b46fb255c" },
	{ "quic hp", "9f50449e04a0e810283a1e9933adedd2" },
	{ }
};

static const struct derived server_keys[] = {
	{ "quic key", "cf3a5331653c364c88f0f379b6067e37" },
	{ "quic iv", "0ac1493ca1905853b0bba03e" },
	{ "quic hp", "c206b8d9b9f0f37644430b490eeaa314" },
	{ }
};

/* RFC 9001 appendix A.5; its last line is the update of section 6.1 */
static const struct derived chacha_keys[] = {
	{ "quic key", "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8" },
	{ "quic iv", "e0459b3474bdd0e44a41c144" },
	{ "quic hp", "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4" },
	{ "quic ku", "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9" },
	{ }
};

/* RFC 9001 section 5.8: the fixed key and nonce of Retry packets */
static const struct derived retry_keys[] = {
	{ "quic key", "be0c690b9f66575a1d766b54e368c84e" },
	{ "quic iv", "461599d35d632bf2239825bb" },
	{ }
};

static void hkdf_rfc9001_keys(struct kunit *test)
{
	u8 *salt = unhex(test, "38762cf7f55934b34d179ae6a4c80cadccbb7f0a");
	u8 *cid = unhex(test, "8394c8f03e515708");
	struct qrdma_hkdf *kdf = test->priv;
	u8 initial[SHA256_LEN];

	KUNIT_ASSERT_EQ(test, 0, qrdma_hkdf_extract(kdf, salt, 20, cid, 8, initial));
	expect_bytes(test, "initial_secret", initial,
		     "7db5df06e7a69e432496adedb00851923595221596ae2ae9fb8115c1e9ed0a44");
	expect_derived(test, initial, initial_secrets);
	expect_derived(test, unhex(test, initial_secrets[0].want), client_keys);
	expect_derived(test, unhex(test, initial_secrets[1].want), server_keys);
	expect_derived(test, unhex(test, "9ac312a7f877468ebe69422748ad00a1 "
				   "5443f18203a07d6060f688f30f21632b"), chacha_keys);
	expect_derived(test, unhex(test, "d9c9943e6101fd200021506bcc02814c "
				   "73030f25c79d71ce876eca876e6fca8e"), retry_keys);
}

static void hkdf_limits(struct kunit *test)
{
	struct qrdma_hkdf *kdf = test->priv;
	u32 most = 255 * SHA256_LEN;
	u8 *out = kunit_kzalloc(test, most + 1, GFP_KERNEL);
	struct qrdma_hkdf none;
	u8 small[8];

	KUNIT_ASSERT_NOT_NULL(test, out);
	KUNIT_ASSERT_EQ(test, 0, qrdma_hkdf_key(kdf, out, SHA256_LEN));
	KUNIT_EXPECT_EQ(test, 0, qrdma_hkdf_expand(kdf, NULL, 0, out, most));
	KUNIT_EXPECT_EQ(test, 0, out[most]);
	KUNIT_EXPECT_EQ(test, -EINVAL, qrdma_hkdf_expand(kdf, NULL, 0, out, most + 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, qrdma_hkdf_label(kdf, "quic hp", out, most + 1));
	KUNIT_EXPECT_EQ(test, 0, qrdma_hkdf_label(kdf, "sixteen letters.", small, 8));
	KUNIT_EXPECT_EQ(test, -EINVAL, qrdma_hkdf_label(kdf, "seventeen letters", small, 8));
	KUNIT_EXPECT_EQ(test, -ENOPKG, qrdma_hkdf_init(&none, "hmac(no-such-hash)"));
	qrdma_hkdf_free(&none);
}

static struct kunit_case hkdf_cases[] = {
	KUNIT_CASE(hkdf_rfc5869),
	KUNIT_CASE(hkdf_rfc9001_labels),
	KUNIT_CASE(hkdf_rfc9001_keys),
	KUNIT_CASE(hkdf_limits),
	{ }
};

static struct kunit_suite hkdf_suite = {
	.name = "qrdma-hkdf",
	.init = hkdf_case_init,
	.exit = hkdf_case_exit,
	.test_cases = hkdf_cases,
};

kunit_test_suite(hkdf_suite);
