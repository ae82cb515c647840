// SPDX-License-Identifier: GPL-2.0
/*
 * Address tokens. See token.h.
 *
 * The nonce is random: 96 bits make it safe to seal 2^32 tokens under one key, and far more before
 * a nonce is likely to come twice (NIST SP 800-38D, section 8.3).
 */
#include <linux/err.h>
#include <linux/random.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <crypto/aead.h>

#include "compat.h"
#include "token.h"

#define TOKEN_TAG_LEN	16

/**
 * struct token_op - one token in the cipher's hands
 * @nonce: in clear in the token
 * @text: sealed or not, then the tag
 * @req: the cipher's; its own memory lies behind it
 */
struct token_op {
	u8 nonce[QRDMA_TOKEN_NONCE_LEN];
	u8 text[QRDMA_TOKEN_TEXT_LEN + TOKEN_TAG_LEN];
	struct aead_request req;
};

static struct crypto_aead *token_tfm;
/* guards the key of token_tfm */
static DECLARE_RWSEM(token_key_lock);

int qrdma_token_start(void)
{
	struct crypto_aead *tfm = crypto_alloc_aead("gcm(aes)", 0, 0);
	int err;

	BUILD_BUG_ON(sizeof_field(struct token_op, text) + QRDMA_TOKEN_NONCE_LEN !=
		     QRDMA_TOKEN_LEN);
	if (IS_ERR(tfm))
		return PTR_ERR(tfm) == -ENOENT ? -ENOPKG : PTR_ERR(tfm);
	err = crypto_aead_setauthsize(tfm, TOKEN_TAG_LEN);
	if (err) {
		crypto_free_aead(tfm);
		return err;
	}
	token_tfm = tfm;
	return 0;
}

void qrdma_token_stop(void)
{
	crypto_free_aead(token_tfm);
	token_tfm = NULL;
}

int qrdma_token_set_key(const u8 *key)
{
	int err;

	down_write(&token_key_lock);
	err = crypto_aead_setkey(token_tfm, key, QRDMA_TOKEN_KEY_LEN);
	up_write(&token_key_lock);
	return err;
}

static struct token_op *token_op_new(void)
{
	return kzalloc(sizeof(struct token_op) + crypto_aead_reqsize(token_tfm), GFP_KERNEL);
}

static int token_crypt(struct token_op *op, bool seal)
{
	DECLARE_CRYPTO_WAIT(wait);
	struct scatterlist sg;
	int err;

	sg_init_one(&sg, op->text, sizeof(op->text));
	aead_request_set_tfm(&op->req, token_tfm);
	aead_request_set_callback(&op->req, CRYPTO_TFM_REQ_MAY_BACKLOG | CRYPTO_TFM_REQ_MAY_SLEEP,
				  crypto_req_done, &wait);
	aead_request_set_ad(&op->req, 0);
	aead_request_set_crypt(&op->req, &sg, &sg,
			       seal ? QRDMA_TOKEN_TEXT_LEN : sizeof(op->text), op->nonce);
	down_read(&token_key_lock);
	err = crypto_wait_req(seal ? crypto_aead_encrypt(&op->req) :
			      crypto_aead_decrypt(&op->req), &wait);
	up_read(&token_key_lock);
	return err;
}

static void token_write(const struct qrdma_token *token, u8 *at)
{
	*at++ = token->kind;
	put_unaligned_be64(token->issued, at);
	at += 8;
	put_unaligned_be16(token->port, at);
	at += 2;
	*at++ = token->odcid.len;
	memcpy(at, token->odcid.data, token->odcid.len);
	at += QRDMA_CID_MAX;
	memcpy(at, token->scid, QRDMA_CID_LEN);
	at += QRDMA_CID_LEN;
	memcpy(at, &token->addr, sizeof(token->addr));
}

static void token_read(struct qrdma_token *token, const u8 *at)
{
	token->kind = *at++;
	token->issued = get_unaligned_be64(at);
	at += 8;
	token->port = get_unaligned_be16(at);
	at += 2;
	qrdma_cid_set(&token->odcid, at + 1, min_t(u8, *at, QRDMA_CID_MAX));
	at += 1 + QRDMA_CID_MAX;
	memcpy(token->scid, at, QRDMA_CID_LEN);
	at += QRDMA_CID_LEN;
	memcpy(&token->addr, at, sizeof(token->addr));
}

int qrdma_token_seal(const struct qrdma_token *token, u8 *data)
{
	struct token_op *op = token_op_new();
	int err;

	if (!op)
		return -ENOMEM;
	get_random_bytes(op->nonce, sizeof(op->nonce));
	/* The cipher may count in it. */
	memcpy(data, op->nonce, sizeof(op->nonce));
	token_write(token, op->text);
	err = token_crypt(op, true);
	if (!err)
		memcpy(data + sizeof(op->nonce), op->text, sizeof(op->text));
	kfree_sensitive(op);
	return err;
}

int qrdma_token_open(struct qrdma_token *token, const u8 *data, u32 len)
{
	struct token_op *op;
	int err;

	if (len != QRDMA_TOKEN_LEN)
		return -EBADMSG;
	op = token_op_new();
	if (!op)
		return -ENOMEM;
	memcpy(op->nonce, data, sizeof(op->nonce));
	memcpy(op->text, data + sizeof(op->nonce), sizeof(op->text));
	err = token_crypt(op, false);
	if (!err)
		token_read(token, op->text);
	kfree_sensitive(op);
	return err;
}
