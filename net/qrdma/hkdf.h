/* SPDX-License-Identifier: GPL-2.0 */
/*
 * HKDF (RFC 5869) and HKDF-Expand-Label (RFC 8446 section 7.1).
 *
 * Owns: nothing that outlives a call; the caller holds a struct qrdma_hkdf while
 * it derives. Called by: crypto.c, in process context: keying and expanding
 * sleep. No lock: a struct qrdma_hkdf belongs to one caller.
 */
#ifndef QRDMA_HKDF_H
#define QRDMA_HKDF_H

#include <linux/types.h>

struct crypto_shash;

/** QRDMA_HKDF_HASH_MAX - bytes of the largest hash that is used (SHA-384) */
#define QRDMA_HKDF_HASH_MAX	48

/**
 * struct qrdma_hkdf - one hash, keyed with one pseudorandom key
 * @hmac: the keyed hash; owned
 * @hash_len: bytes that the hash puts out
 */
struct qrdma_hkdf {
	struct crypto_shash *hmac;
	u32 hash_len;
};

/**
 * qrdma_hkdf_init() - take hold of a hash
 * @kdf: filled in; give it back with qrdma_hkdf_free()
 * @hmac: the kernel's name of it, "hmac(sha256)"
 *
 * Context: process, sleeps.
 * Return: 0, -ENOPKG when this kernel has no such hash, -ENOMEM.
 */
int qrdma_hkdf_init(struct qrdma_hkdf *kdf, const char *hmac);

/**
 * qrdma_hkdf_free() - wipe the key and give the hash back
 * @kdf: whether or not qrdma_hkdf_init() succeeded on it
 */
void qrdma_hkdf_free(struct qrdma_hkdf *kdf);

/**
 * qrdma_hkdf_key() - set the pseudorandom key that is expanded from now on
 * @kdf: initialised
 * @prk: a traffic secret, or what qrdma_hkdf_extract() gave
 * @len: bytes of @prk
 *
 * Context: process, sleeps.
 * Return: 0 or a negative errno.
 */
int qrdma_hkdf_key(struct qrdma_hkdf *kdf, const u8 *prk, u32 len);

/**
 * qrdma_hkdf_extract() - HKDF-Extract (RFC 5869 section 2.2)
 * @kdf: initialised; keyed with the salt afterwards
 * @salt: NULL or empty for the default, a string of zeros
 * @salt_len: bytes of @salt
 * @ikm: input keying material
 * @ikm_len: bytes of @ikm
 * @prk: room for @kdf->hash_len bytes
 *
 * Context: process, sleeps.
 * Return: 0 or a negative errno.
 */
int qrdma_hkdf_extract(struct qrdma_hkdf *kdf, const u8 *salt, u32 salt_len,
		       const u8 *ikm, u32 ikm_len, u8 *prk);

/**
 * qrdma_hkdf_expand() - HKDF-Expand (RFC 5869 section 2.3)
 * @kdf: keyed
 * @info: context, may be empty
 * @info_len: bytes of @info
 * @out: output keying material; wiped when the call fails
 * @len: bytes wanted, 255 hashes at most
 *
 * Context: process, sleeps.
 * Return: 0, -EINVAL when @len is too large, or another negative errno.
 */
int qrdma_hkdf_expand(struct qrdma_hkdf *kdf, const u8 *info, u32 info_len, u8 *out, u32 len);

/**
 * qrdma_hkdf_label() - HKDF-Expand-Label with an empty context (RFC 8446 section 7.1)
 * @kdf: keyed
 * @label: without the "tls13 " in front, "quic key"; 16 bytes at most
 * @out: output keying material; wiped when the call fails
 * @len: bytes wanted, 255 hashes at most
 *
 * Context: process, sleeps.
 * Return: 0, -EINVAL when @label or @len is too large, or another negative errno.
 */
int qrdma_hkdf_label(struct qrdma_hkdf *kdf, const char *label, u8 *out, u32 len);

#endif /* QRDMA_HKDF_H */
