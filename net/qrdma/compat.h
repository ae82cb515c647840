/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels that this module builds for: 6.1, 6.12 and
 * the newest one. Nothing else of the tree asks for a kernel version.
 *
 * Owns: nothing; names that mean the same on every kernel. Each entry says
 * what changed, and from which version on. Included by: any file of
 * net/qrdma (never core/), and by tests that are kernel code.
 */
#ifndef QRDMA_COMPAT_H
#define QRDMA_COMPAT_H

#include <linux/version.h>
#include <linux/types.h>
#include <linux/crypto.h>
#include <linux/hrtimer.h>
#include <linux/net.h>
#include <linux/socket.h>
#include <crypto/aes.h>
#include <crypto/chacha.h>
#include <crypto/internal/cipher.h>
#include <net/sock.h>

/* 6.12: asm/unaligned.h is gone */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include <linux/unaligned.h>
#endif

/* 7.0: linux/kernel.h does not bring hex2bin() any more; 6.1 has no header of its own for it */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <linux/kernel.h>
#else
#include <linux/hex.h>
#endif

/* 6.3: a crypto completion gets the caller's pointer; before, it got a request
 * of which only ->data may be used. A callback is written as
 * void done(qrdma_crypto_arg *arg, int err) and asks qrdma_crypto_data(arg) for
 * the pointer that it was registered with.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define qrdma_crypto_arg	struct crypto_async_request

static inline void *qrdma_crypto_data(struct crypto_async_request *arg)
{
	return arg->data;
}
#else
#define qrdma_crypto_arg	void

static inline void *qrdma_crypto_data(void *arg)
{
	return arg;
}
#endif

/* 6.16: the ChaCha state has a type of its own, before it was bare words */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
struct qrdma_chacha {
	u32 x[CHACHA_STATE_WORDS];
};

static inline void qrdma_chacha20_block(struct qrdma_chacha *state, u8 *out)
{
	chacha20_block(state->x, out);
}
#else
#define qrdma_chacha	chacha_state

static inline void qrdma_chacha20_block(struct chacha_state *state, u8 *out)
{
	chacha20_block(state, out);
}
#endif

/* 7.0: the library encrypts a block of AES with the instructions that the processor has for it, and
 * a key for encryption alone has a type of its own. Before, the library computes with tables, and
 * only the crypto API's single-block cipher is fast; but that is an object of 1 KiB. So there a key
 * is cold until qrdma_aes_warm() gives it one, and encrypts slowly; qrdma_aes_cool() takes it away,
 * to be freed by qrdma_aes_discard() after a grace period. Setting, warm() and cool() are
 * serialised by the caller, in process context; encrypting is not.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
struct qrdma_aes {
	struct crypto_cipher __rcu *warm;
	u32 len;
	u8 raw[AES_KEYSIZE_256];
};

static inline int qrdma_aes_set(struct qrdma_aes *aes, const u8 *raw, unsigned int len)
{
	memcpy(aes->raw, raw, len);
	aes->len = len;
	return aes_check_keylen(len);
}

static inline int qrdma_aes_warm(struct qrdma_aes *aes)
{
	struct crypto_cipher *tfm;
	int err;

	if (rcu_access_pointer(aes->warm))
		return 0;
	tfm = crypto_alloc_cipher("aes", 0, 0);
	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	err = crypto_cipher_setkey(tfm, aes->raw, aes->len);
	if (err)
		crypto_free_cipher(tfm);
	else
		rcu_assign_pointer(aes->warm, tfm);
	return err;
}

static inline void *qrdma_aes_cool(struct qrdma_aes *aes)
{
	return unrcu_pointer(xchg(&aes->warm, NULL));
}

static inline void qrdma_aes_discard(void *warm)
{
	crypto_free_cipher(warm);
}

static inline void qrdma_aes_encrypt(const struct qrdma_aes *aes, u8 *out, const u8 *in)
{
	struct crypto_aes_ctx ctx;
	struct crypto_cipher *tfm;

	rcu_read_lock();
	tfm = rcu_dereference(aes->warm);
	if (likely(tfm))
		crypto_cipher_encrypt_one(tfm, out, in);
	rcu_read_unlock();
	if (likely(tfm))
		return;
	aes_expandkey(&ctx, aes->raw, aes->len);
	aes_encrypt(&ctx, out, in);
	memzero_explicit(&ctx, sizeof(ctx));
}
#else
struct qrdma_aes {
	struct aes_enckey key;
};

static inline int qrdma_aes_set(struct qrdma_aes *aes, const u8 *raw, unsigned int len)
{
	return aes_prepareenckey(&aes->key, raw, len);
}

static inline int qrdma_aes_warm(struct qrdma_aes *aes)
{
	return 0;
}

static inline void *qrdma_aes_cool(struct qrdma_aes *aes)
{
	return NULL;
}

static inline void qrdma_aes_discard(void *warm)
{
}

static inline void qrdma_aes_encrypt(const struct qrdma_aes *aes, u8 *out, const u8 *in)
{
	aes_encrypt(&aes->key, out, in);
}
#endif

/* Name space of the symbols above. 6.13: it is a string; 7.0: it is not needed any more. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define QRDMA_IMPORTS		MODULE_IMPORT_NS(CRYPTO_INTERNAL)
#elif LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define QRDMA_IMPORTS		MODULE_IMPORT_NS("CRYPTO_INTERNAL")
#else
#define QRDMA_IMPORTS		static_assert(true)
#endif

/* 6.13: hrtimer_setup() takes the function along, 6.15: hrtimer_init() is gone */
static inline void qrdma_hrtimer_setup(struct hrtimer *timer,
				       enum hrtimer_restart (*function)(struct hrtimer *timer),
				       clockid_t clock, enum hrtimer_mode mode)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	hrtimer_init(timer, clock, mode);
	timer->function = function;
#else
	hrtimer_setup(timer, function, clock, mode);
#endif
}

/* 6.9: TCP takes SO_PEEK_OFF, and what it takes is taken by us */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define qrdma_set_peek_off	NULL
#else
#define qrdma_set_peek_off	sk_set_peek_off
#endif

/* 6.10: accept() of proto_ops takes one structure for what were two arguments */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define QRDMA_ACCEPT_HOW	int how, bool kern

static inline int qrdma_accept_flags(int how)
{
	return how;
}
#else
#define QRDMA_ACCEPT_HOW	struct proto_accept_arg *how

static inline int qrdma_accept_flags(struct proto_accept_arg *how)
{
	return how->flags;
}
#endif

/* 6.19: addresses in bind() and connect() of proto_ops have a type that claims no size */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
#define qrdma_sockaddr		sockaddr
#else
#define qrdma_sockaddr		sockaddr_unsized
#endif

#endif /* QRDMA_COMPAT_H */
