// SPDX-License-Identifier: GPL-2.0
/*
 * An asynchronous AEAD, for tests.
 *
 * While this module is loaded, the crypto API's own choice by priority gives it
 * to whoever asks for gcm(aes), ccm(aes) or rfc7539(chacha20,poly1305) without
 * refusing asynchronous ciphers: nothing has to be told to use it. It does the
 * work with the best synchronous cipher of that name, but always later, in a
 * kworker, and completes with bottom halves off as an engine's driver does.
 *
 * It has a queue like an engine. What comes when the queue is full, and every
 * busy_every-th request whatever its length, is "busy": with
 * CRYPTO_TFM_REQ_MAY_BACKLOG it is queued all the same, answered -EBUSY, and
 * told -EINPROGRESS when its turn comes; without, it is refused with -ENOSPC.
 *
 * Parameters, in /sys/module/qrdma_async_aead/parameters:
 *	queue_len	requests that the queue takes before it is full
 *	busy_every	see above; 0: never
 *	fail_every	every so many-th request fails with -EIO; 0: none
 *	hold		1: nothing is processed until 0 is written
 *	requests, backlogged, refused, completed, failed, peak: counts, read-only
 *			(peak: the longest that the queue was)
 *
 * Registering runs the crypto API's self tests, which count too.
 *
 * Lock: queue_lock guards the queue and the counts. Requests arrive in any
 * context up to softirq, the worker is the only one that takes them out.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/list.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <crypto/internal/aead.h>

/* A request's context; @sub is last, the synchronous cipher's context follows. */
struct async_job {
	int (*crypt)(struct aead_request *req);
	bool backlogged;
	bool fail;
	struct aead_request sub;
};

struct async_ctx {
	struct crypto_aead *child;
};

static unsigned int queue_len = 16;
module_param(queue_len, uint, 0644);
MODULE_PARM_DESC(queue_len, "requests that the queue takes before it is full");

static unsigned int busy_every = 7;
module_param(busy_every, uint, 0644);
MODULE_PARM_DESC(busy_every, "every so many-th request finds the queue full (0: none)");

static unsigned int fail_every;
module_param(fail_every, uint, 0644);
MODULE_PARM_DESC(fail_every, "every so many-th request fails with -EIO (0: none)");

static unsigned long requests, backlogged, refused, completed, failed, peak;
module_param(requests, ulong, 0444);
module_param(backlogged, ulong, 0444);
module_param(refused, ulong, 0444);
module_param(completed, ulong, 0444);
module_param(failed, ulong, 0444);
module_param(peak, ulong, 0444);

static DEFINE_SPINLOCK(queue_lock);
static LIST_HEAD(queue);
static unsigned long queued;
static bool hold;

static struct workqueue_struct *queue_wq;

static void queue_run(struct work_struct *work);
static DECLARE_WORK(queue_work_item, queue_run);

static int hold_set(const char *val, const struct kernel_param *kp)
{
	int err = param_set_bool(val, kp);

	if (!err && !READ_ONCE(hold) && queue_wq)
		queue_work(queue_wq, &queue_work_item);
	return err;
}

static const struct kernel_param_ops hold_ops = {
	.set = hold_set,
	.get = param_get_bool,
};
module_param_cb(hold, &hold_ops, &hold, 0644);
MODULE_PARM_DESC(hold, "1: keep requests in the queue until 0 is written");

static bool nth(unsigned int every)
{
	return every && requests % every == 0;
}

static int job_enqueue(struct aead_request *req, int (*crypt)(struct aead_request *req))
{
	struct async_job *job = aead_request_ctx(req);
	unsigned long flags;
	int err;

	spin_lock_irqsave(&queue_lock, flags);
	requests++;
	job->crypt = crypt;
	job->fail = nth(READ_ONCE(fail_every));
	job->backlogged = queued >= READ_ONCE(queue_len) || nth(READ_ONCE(busy_every));
	if (job->backlogged && !(aead_request_flags(req) & CRYPTO_TFM_REQ_MAY_BACKLOG)) {
		refused++;
		err = -ENOSPC;
	} else {
		err = job->backlogged ? -EBUSY : -EINPROGRESS;
		backlogged += job->backlogged;
		list_add_tail(&req->base.list, &queue);
		queued++;
		if (queued > peak)
			peak = queued;
	}
	spin_unlock_irqrestore(&queue_lock, flags);
	if (err != -ENOSPC)
		queue_work(queue_wq, &queue_work_item);
	return err;
}

static struct aead_request *job_dequeue(void)
{
	struct crypto_async_request *base = NULL;
	unsigned long flags;

	spin_lock_irqsave(&queue_lock, flags);
	if (!READ_ONCE(hold))
		base = list_first_entry_or_null(&queue, struct crypto_async_request, list);
	if (base) {
		list_del(&base->list);
		queued--;
	}
	spin_unlock_irqrestore(&queue_lock, flags);
	return base ? container_of(base, struct aead_request, base) : NULL;
}

/* @req belongs to its owner again once this has told an end. */
static void job_tell(struct aead_request *req, int err)
{
	local_bh_disable();
	aead_request_complete(req, err);
	local_bh_enable();
}

static void job_run(struct aead_request *req)
{
	struct async_job *job = aead_request_ctx(req);
	struct async_ctx *ctx = crypto_aead_ctx(crypto_aead_reqtfm(req));
	unsigned long flags;
	int err;

	if (job->backlogged)
		job_tell(req, -EINPROGRESS);
	aead_request_set_tfm(&job->sub, ctx->child);
	aead_request_set_callback(&job->sub, aead_request_flags(req) & CRYPTO_TFM_REQ_MAY_SLEEP,
				  NULL, NULL);
	aead_request_set_crypt(&job->sub, req->src, req->dst, req->cryptlen, req->iv);
	aead_request_set_ad(&job->sub, req->assoclen);
	err = job->crypt(&job->sub);
	if (job->fail)
		err = -EIO;
	spin_lock_irqsave(&queue_lock, flags);
	completed++;
	failed += err != 0;
	spin_unlock_irqrestore(&queue_lock, flags);
	job_tell(req, err);
}

static void queue_run(struct work_struct *work)
{
	struct aead_request *req;

	while ((req = job_dequeue()))
		job_run(req);
}

static int async_encrypt(struct aead_request *req)
{
	return job_enqueue(req, crypto_aead_encrypt);
}

static int async_decrypt(struct aead_request *req)
{
	return job_enqueue(req, crypto_aead_decrypt);
}

static int async_setkey(struct crypto_aead *tfm, const u8 *key, unsigned int len)
{
	struct async_ctx *ctx = crypto_aead_ctx(tfm);

	crypto_aead_clear_flags(ctx->child, CRYPTO_TFM_REQ_MASK);
	crypto_aead_set_flags(ctx->child, crypto_aead_get_flags(tfm) & CRYPTO_TFM_REQ_MASK);
	return crypto_aead_setkey(ctx->child, key, len);
}

static int async_setauthsize(struct crypto_aead *tfm, unsigned int size)
{
	struct async_ctx *ctx = crypto_aead_ctx(tfm);

	return crypto_aead_setauthsize(ctx->child, size);
}

/* The mask keeps this module's own algorithm, which is asynchronous, out. */
static int async_init(struct crypto_aead *tfm)
{
	struct async_ctx *ctx = crypto_aead_ctx(tfm);
	struct crypto_aead *child;

	child = crypto_alloc_aead(crypto_tfm_alg_name(crypto_aead_tfm(tfm)), 0, CRYPTO_ALG_ASYNC);
	if (IS_ERR(child))
		return PTR_ERR(child);
	ctx->child = child;
	crypto_aead_set_reqsize(tfm, sizeof(struct async_job) + crypto_aead_reqsize(child));
	return 0;
}

static void async_exit(struct crypto_aead *tfm)
{
	struct async_ctx *ctx = crypto_aead_ctx(tfm);

	crypto_free_aead(ctx->child);
}

#define ASYNC_AEAD(name, driver, iv) {			\
	.setkey = async_setkey,				\
	.setauthsize = async_setauthsize,		\
	.encrypt = async_encrypt,			\
	.decrypt = async_decrypt,			\
	.init = async_init,				\
	.exit = async_exit,				\
	.ivsize = (iv),					\
	.maxauthsize = 16,				\
	.chunksize = 16,				\
	.base = {					\
		.cra_name = (name),			\
		.cra_driver_name = (driver),		\
		.cra_priority = 10000,			\
		.cra_flags = CRYPTO_ALG_ASYNC,		\
		.cra_blocksize = 1,			\
		.cra_ctxsize = sizeof(struct async_ctx),\
		.cra_module = THIS_MODULE,		\
	},						\
}

static struct aead_alg async_algs[] = {
	ASYNC_AEAD("gcm(aes)", "qrdma-async-gcm-aes", 12),
	ASYNC_AEAD("ccm(aes)", "qrdma-async-ccm-aes", 16),
	ASYNC_AEAD("rfc7539(chacha20,poly1305)", "qrdma-async-chacha20poly1305", 12),
};

static int __init async_aead_start(void)
{
	int err;

	queue_wq = alloc_workqueue("qrdma_async_aead", WQ_UNBOUND, 1);
	if (!queue_wq)
		return -ENOMEM;
	err = crypto_register_aeads(async_algs, ARRAY_SIZE(async_algs));
	if (err)
		destroy_workqueue(queue_wq);
	return err;
}

static void __exit async_aead_stop(void)
{
	crypto_unregister_aeads(async_algs, ARRAY_SIZE(async_algs));
	destroy_workqueue(queue_wq);
}

module_init(async_aead_start);
module_exit(async_aead_stop);

MODULE_DESCRIPTION("Asynchronous AEAD for tests");
MODULE_LICENSE("GPL");
