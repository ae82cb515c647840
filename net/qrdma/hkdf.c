// SPDX-License-Identifier: GPL-2.0
/*
 * HKDF over the kernel's HMACs; what it owns and who calls it is in hkdf.h.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <crypto/hash.h>

#include "hkdf.h"

#define HKDF_LABEL_PREFIX	"tls13 "
#define HKDF_LABEL_MAX		16

int qrdma_hkdf_init(struct qrdma_hkdf *kdf, const char *hmac)
{
	struct crypto_shash *tfm = crypto_alloc_shash(hmac, 0, 0);

	kdf->hmac = NULL;
	if (IS_ERR(tfm))
		return PTR_ERR(tfm) == -ENOENT ? -ENOPKG : PTR_ERR(tfm);
	if (crypto_shash_digestsize(tfm) > QRDMA_HKDF_HASH_MAX) {
		crypto_free_shash(tfm);
		return -EINVAL;
	}
	kdf->hmac = tfm;
	kdf->hash_len = crypto_shash_digestsize(tfm);
	return 0;
}

void qrdma_hkdf_free(struct qrdma_hkdf *kdf)
{
	crypto_free_shash(kdf->hmac);
	kdf->hmac = NULL;
}

int qrdma_hkdf_key(struct qrdma_hkdf *kdf, const u8 *prk, u32 len)
{
	return crypto_shash_setkey(kdf->hmac, prk, len);
}

int qrdma_hkdf_extract(struct qrdma_hkdf *kdf, const u8 *salt, u32 salt_len,
		       const u8 *ikm, u32 ikm_len, u8 *prk)
{
	static const u8 zeros[QRDMA_HKDF_HASH_MAX];
	int err;

	if (!salt || !salt_len) {
		salt = zeros;
		salt_len = kdf->hash_len;
	}
	err = crypto_shash_setkey(kdf->hmac, salt, salt_len);
	if (err)
		return err;
	return crypto_shash_tfm_digest(kdf->hmac, ikm, ikm_len, prk);
}

/* T(n) = HMAC(PRK, T(n - 1) | info | n), where T(0) is empty. */
static int hkdf_block(struct shash_desc *desc, const u8 *prev, u32 prev_len,
		      const u8 *info, u32 info_len, u8 n, u8 *out)
{
	return crypto_shash_init(desc) ?:
	       crypto_shash_update(desc, prev, prev_len) ?:
	       crypto_shash_update(desc, info, info_len) ?:
	       crypto_shash_finup(desc, &n, 1, out);
}

int qrdma_hkdf_expand(struct qrdma_hkdf *kdf, const u8 *info, u32 info_len, u8 *out, u32 len)
{
	SHASH_DESC_ON_STACK(desc, kdf->hmac);
	u8 block[QRDMA_HKDF_HASH_MAX];
	u32 done, part, prev = 0;
	int err = 0;
	u8 n = 0;

	if (len > 255 * kdf->hash_len)
		return -EINVAL;
	desc->tfm = kdf->hmac;
	for (done = 0; done < len; done += part) {
		err = hkdf_block(desc, block, prev, info, info_len, ++n, block);
		if (err)
			break;
		prev = kdf->hash_len;
		part = min(len - done, kdf->hash_len);
		memcpy(out + done, block, part);
	}
	if (err)
		memzero_explicit(out, len);
	memzero_explicit(block, sizeof(block));
	shash_desc_zero(desc);
	return err;
}

int qrdma_hkdf_label(struct qrdma_hkdf *kdf, const char *label, u8 *out, u32 len)
{
	/* uint16 length; opaque label<7..255>; opaque context<0..255> */
	u8 info[2 + 1 + sizeof(HKDF_LABEL_PREFIX) - 1 + HKDF_LABEL_MAX + 1];
	size_t label_len = strlen(label);
	u8 *at = info;

	if (label_len > HKDF_LABEL_MAX || len > 255 * kdf->hash_len)
		return -EINVAL;
	*at++ = len >> 8;
	*at++ = len;
	*at++ = sizeof(HKDF_LABEL_PREFIX) - 1 + label_len;
	memcpy(at, HKDF_LABEL_PREFIX, sizeof(HKDF_LABEL_PREFIX) - 1);
	at += sizeof(HKDF_LABEL_PREFIX) - 1;
	memcpy(at, label, label_len);
	at += label_len;
	*at++ = 0;
	return qrdma_hkdf_expand(kdf, info, at - info, out, len);
}
