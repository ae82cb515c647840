// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's AEADs alone: what sealing and opening cost when nothing is sent. Test module.
 *
 *	echo "NUMBER CIPHER SIZE COUNT seal|open" >/sys/module/qrdma_aead_bench/parameters/run
 *
 * does it COUNT times with SIZE bytes of payload, CIPHER being aes128, aes256, ccm or chacha, between
 * marks with that number (mark.h, for tests/bench/counter.c). As the data path does it: softirqs
 * off, a header of 16 bytes, the plain text and the packet in two places when sealing, in one when
 * opening. Process context, one write at a time.
 */
#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <crypto/aead.h>

#include "mark.h"

enum {
	HEADER		= 16,
	TAG		= 16,
	LEN_MAX	= 16384,
	COUNT_MAX	= 100000,
	IV_LEN		= 16,
};

static const struct cipher {
	const char *name;
	const char *algorithm;
	u32 key_len;
} ciphers[] = {
	{ "aes128", "gcm(aes)", 16 },
	{ "aes256", "gcm(aes)", 32 },
	{ "ccm", "ccm(aes)", 16 },
	{ "chacha", "rfc7539(chacha20,poly1305)", 32 },
};

struct job {
	unsigned int number;
	unsigned int size;
	unsigned int count;
	bool open;
	struct crypto_aead *tfm;
	struct aead_request *req;
	u8 *plain;
	u8 *packet;
	u8 *sealed;
};

static DEFINE_MUTEX(run_lock);	/* one job at a time */

static int job_seal(struct job *job)
{
	u8 iv[IV_LEN] = { 2 };	/* the length field of CCM has 3 bytes; else any nonce */
	struct scatterlist src[2], dst;

	sg_init_table(src, 2);
	sg_set_buf(&src[0], job->packet, HEADER);
	sg_set_buf(&src[1], job->plain, job->size);
	sg_init_one(&dst, job->packet, HEADER + job->size + TAG);
	aead_request_set_ad(job->req, HEADER);
	aead_request_set_crypt(job->req, src, &dst, job->size, iv);
	return crypto_aead_encrypt(job->req);
}

static int job_open(struct job *job)
{
	u8 iv[IV_LEN] = { 2 };
	struct scatterlist sg;

	sg_init_one(&sg, job->packet, HEADER + job->size + TAG);
	aead_request_set_ad(job->req, HEADER);
	aead_request_set_crypt(job->req, &sg, &sg, job->size + TAG, iv);
	return crypto_aead_decrypt(job->req);
}

/* What was opened in place cannot be opened again: it is put back each time, a copy that counts. */
static int job_once(struct job *job)
{
	if (!job->open)
		return job_seal(job);
	memcpy(job->packet, job->sealed, HEADER + job->size + TAG);
	return job_open(job);
}

static int job_run(struct job *job)
{
	unsigned int i;
	int err;

	err = job_seal(job);
	if (err)
		return err;
	memcpy(job->sealed, job->packet, HEADER + job->size + TAG);
	local_bh_disable();
	mark_begin();
	for (i = 0; i < job->count && !err; i++)
		err = job_once(job);
	mark_end(job->number);
	local_bh_enable();
	return err;
}

static int job_prepare(struct job *job, const struct cipher *cipher)
{
	u8 key[32] = { 1, 2, 3 };
	int err;

	job->tfm = crypto_alloc_aead(cipher->algorithm, 0, 0);
	if (IS_ERR(job->tfm)) {
		err = PTR_ERR(job->tfm);
		job->tfm = NULL;
		return err;
	}
	err = crypto_aead_setkey(job->tfm, key, cipher->key_len) ?:
	      crypto_aead_setauthsize(job->tfm, TAG);
	if (err)
		return err;
	job->req = aead_request_alloc(job->tfm, GFP_KERNEL);
	job->plain = kzalloc(job->size, GFP_KERNEL);
	job->packet = kzalloc(HEADER + job->size + TAG, GFP_KERNEL);
	job->sealed = kzalloc(HEADER + job->size + TAG, GFP_KERNEL);
	if (!job->req || !job->plain || !job->packet || !job->sealed)
		return -ENOMEM;
	aead_request_set_callback(job->req, 0, NULL, NULL);
	return 0;
}

static void job_free(struct job *job)
{
	kfree(job->sealed);
	kfree(job->packet);
	kfree(job->plain);
	if (job->req)
		aead_request_free(job->req);
	if (job->tfm)
		crypto_free_aead(job->tfm);
}

static const struct cipher *cipher_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ciphers); i++)
		if (!strcmp(ciphers[i].name, name))
			return &ciphers[i];
	return NULL;
}

static int run_set(const char *text, const struct kernel_param *kp)
{
	const struct cipher *cipher;
	char name[16], what[8];
	struct job job = {};
	int err;

	if (sscanf(text, "%u %15s %u %u %7s", &job.number, name, &job.size, &job.count, what) != 5)
		return -EINVAL;
	cipher = cipher_find(name);
	if (!cipher || !job.size || job.size > LEN_MAX || job.count > COUNT_MAX ||
	    (strcmp(what, "seal") && strcmp(what, "open")))
		return -EINVAL;
	job.open = !strcmp(what, "open");
	mutex_lock(&run_lock);
	err = job_prepare(&job, cipher);
	if (!err)
		err = job_run(&job);
	job_free(&job);
	mutex_unlock(&run_lock);
	return err;
}

static const struct kernel_param_ops run_ops = {
	.set = run_set,
};

module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "NUMBER CIPHER SIZE COUNT seal|open");

static int __init aead_bench_init(void)
{
	return 0;
}

static void __exit aead_bench_exit(void)
{
}

module_init(aead_bench_init);
module_exit(aead_bench_exit);
MODULE_DESCRIPTION("What the kernel's AEADs cost alone (test)");
MODULE_LICENSE("GPL");
