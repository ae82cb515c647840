// SPDX-License-Identifier: GPL-2.0
/*
 * Stateless resets. See reset.h.
 */
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/rwsem.h>

#include "answer.h"
#include "compat.h"
#include "demux.h"
#include "hkdf.h"
#include "reset.h"
#include "token.h"

enum {
	RESET_KEY_LEN	= 32,
	/* bytes of an answer at most: one that looks like a packet with little in it */
	RESET_LEN_MAX	= 42,
};

/* given at the start, until it is used */
static u8 reset_key[RESET_KEY_LEN];
/* the key is not a random one; reset_key_lock once it has started */
static bool reset_keyed;

static int reset_key_set(const char *val, const struct kernel_param *kp)
{
	if (reset_keyed)
		return -EBUSY;
	if (strlen(val) < 2 * RESET_KEY_LEN || hex2bin(reset_key, val, RESET_KEY_LEN))
		return -EINVAL;
	reset_keyed = true;
	return 0;
}

static const struct kernel_param_ops reset_key_ops = { .set = reset_key_set };

/* Goes in and never out: no file of it. */
module_param_cb(reset_key, &reset_key_ops, NULL, 0);
MODULE_PARM_DESC(reset_key, "secret of this host, 64 hexadecimal digits, the same after each start");

/**
 * struct reset_cause - of a packet for a connection that is not there
 * @cid: what it was sent to
 * @len: bytes of the answer
 */
struct reset_cause {
	u8 cid[QRDMA_CID_LEN];
	u32 len;
};

static struct qrdma_hkdf reset_kdf;
/* guards the key of reset_kdf */
static DECLARE_RWSEM(reset_key_lock);

void qrdma_reset_token(const u8 *cid, u8 *token)
{
	BUILD_BUG_ON(QRDMA_RESET_TOKEN_LEN > 32);
	down_read(&reset_key_lock);
	if (qrdma_hkdf_expand(&reset_kdf, cid, QRDMA_CID_LEN, token, QRDMA_RESET_TOKEN_LEN))
		memset(token, 0, QRDMA_RESET_TOKEN_LEN);
	up_read(&reset_key_lock);
}

/* The key of this host, for tokens of either kind. reset_key_lock is held, or nobody is there. */
static int reset_take_key(const u8 *key)
{
	u8 secret[QRDMA_TOKEN_KEY_LEN];
	int err;

	err = qrdma_hkdf_key(&reset_kdf, key, RESET_KEY_LEN) ?:
	      qrdma_hkdf_label(&reset_kdf, "qrdma token", secret, sizeof(secret)) ?:
	      qrdma_token_set_key(secret);
	memzero_explicit(secret, sizeof(secret));
	return err;
}

int qrdma_reset_set_key(const u8 *key)
{
	int err = -EBUSY;

	down_write(&reset_key_lock);
	if (!reset_keyed)
		err = reset_take_key(key);
	if (!err)
		reset_keyed = true;
	up_write(&reset_key_lock);
	return err;
}

static int reset_make(const void *from, u8 *data, u32 cap)
{
	u8 random[RESET_LEN_MAX], token[QRDMA_RESET_TOKEN_LEN];
	const struct reset_cause *cause = from;
	struct qrdma_writer w;
	struct qrdma_sock *qs;

	/* Out of band both ends connect, in no order: this one may have come meanwhile. */
	qs = qrdma_demux_find(cause->cid);
	if (qs) {
		sock_put(&qs->sk);
		return 0;
	}
	get_random_bytes(random, sizeof(random));
	qrdma_reset_token(cause->cid, token);
	qrdma_writer_init(&w, data, min(cause->len, cap));
	return qrdma_hdr_build_reset(&w, cause->len, random, token) ? cause->len : -EMSGSIZE;
}

static const struct qrdma_answer_ops reset_ops = {
	.make	= reset_make,
	.sent	= QRDMA_STAT_RESET_SENT,
};

void qrdma_reset_answer(const struct qrdma_rxbuf *rxbuf, const u8 *cid)
{
	u32 len = rxbuf->buf.len - QRDMA_PORT_HDR_LEN;
	struct reset_cause cause;

	/* RFC 9000 s10.3.3: shorter than its cause, or two who forgot both go on for ever */
	if (len <= QRDMA_RESET_LEN_MIN)
		return;
	memcpy(cause.cid, cid, QRDMA_CID_LEN);
	cause.len = min_t(u32, len - 1, RESET_LEN_MAX);
	qrdma_answer_begin(rxbuf, &reset_ops, &cause, sizeof(cause), rxbuf->ifindex);
}

int qrdma_reset_start(void)
{
	int err;

	if (!reset_keyed)
		get_random_bytes(reset_key, sizeof(reset_key));
	err = qrdma_hkdf_init(&reset_kdf, "hmac(sha256)");
	if (!err)
		err = reset_take_key(reset_key);
	memzero_explicit(reset_key, sizeof(reset_key));
	if (err)
		qrdma_hkdf_free(&reset_kdf);
	return err;
}

void qrdma_reset_stop(void)
{
	qrdma_hkdf_free(&reset_kdf);
}
