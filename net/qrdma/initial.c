// SPDX-License-Identifier: GPL-2.0
/*
 * Initial keys. See initial.h.
 */
#include <linux/string.h>

#include "crypto.h"
#include "hkdf.h"
#include "initial.h"

#define INITIAL_SECRET_LEN	32	/* of SHA-256 */

/* RFC 9001 s5.2 */
static const u8 initial_salt[] = {
	0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17,
	0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
};

/* RFC 9001 s5.8: the key and the nonce given there come from this. */
static const u8 initial_retry_secret[INITIAL_SECRET_LEN] = {
	0xd9, 0xc9, 0x94, 0x3e, 0x61, 0x01, 0xfd, 0x20, 0x00, 0x21, 0x50, 0x6b, 0xcc, 0x02,
	0x81, 0x4c, 0x73, 0x03, 0x0f, 0x25, 0xc7, 0x9d, 0x71, 0xce, 0x87, 0x6e, 0xca, 0x87,
	0x6e, 0x6f, 0xca, 0x8e,
};

/* @kdf is keyed with the connection's Initial secret. */
static int initial_slot(struct qrdma_hkdf *kdf, const char *label, struct qrdma_slot **slot)
{
	u8 secret[INITIAL_SECRET_LEN];
	int err;

	err = qrdma_hkdf_label(kdf, label, secret, sizeof(secret)) ?:
	      qrdma_kernel_aead.slot_new(QRDMA_CIPHER_AES_128_GCM, secret, sizeof(secret), slot);
	memzero_explicit(secret, sizeof(secret));
	return err;
}

int qrdma_initial_slots(const u8 *cid, u32 len, struct qrdma_slot **client,
			struct qrdma_slot **server)
{
	struct qrdma_slot *mine, *theirs;
	u8 secret[INITIAL_SECRET_LEN];
	struct qrdma_hkdf kdf;
	int err;

	err = qrdma_hkdf_init(&kdf, "hmac(sha256)") ?:
	      qrdma_hkdf_extract(&kdf, initial_salt, sizeof(initial_salt), cid, len, secret) ?:
	      qrdma_hkdf_key(&kdf, secret, sizeof(secret)) ?:
	      initial_slot(&kdf, "client in", &mine);
	if (!err) {
		err = initial_slot(&kdf, "server in", &theirs);
		if (err)
			qrdma_kernel_aead.slot_put(mine);
	}
	qrdma_hkdf_free(&kdf);
	memzero_explicit(secret, sizeof(secret));
	if (err)
		return err;
	*client = mine;
	*server = theirs;
	return 0;
}

int qrdma_initial_retry_slot(struct qrdma_slot **slot)
{
	return qrdma_kernel_aead.slot_new(QRDMA_CIPHER_AES_128_GCM, initial_retry_secret,
					  sizeof(initial_retry_secret), slot);
}
