// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's AEADs behind the port of core/keys.h; what it owns, who calls it
 * and in which context is in crypto.h.
 *
 * The unmasked ciphers are taken. They may answer -EINPROGRESS (an engine, or
 * AES-NI while the vector unit is taken) or, as CRYPTO_TFM_REQ_MAY_BACKLOG is
 * given, -EBUSY: queued beyond the engine's limit. Both mean that the callback
 * follows. A backlogged request gets a callback more, with -EINPROGRESS, at the
 * time that the engine takes it; that one is ignored.
 *
 * Requests are kept for the next packet: a few at each processor, more in a
 * depot that all share, since an engine may complete on another processor than
 * the one that submits. Both are bounded; what does not fit is freed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/llist.h>
#include <linux/local_lock.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>
#include <crypto/aead.h>
#include <crypto/algapi.h>

#include "compat.h"
#include "hkdf.h"
#include "crypto.h"

#define CRYPTO_KEY_MAX		32
#define CRYPTO_IV_MAX		16
#define CRYPTO_POOL_MAX		32	/* requests kept at a processor */
#define CRYPTO_DEPOT_MAX	512	/* requests kept for all of them */

/* A header protection key. It outlives the generations of AEAD keys (RFC 9001
 * section 6.1), so they share it; wiped on the last put, which is in process
 * context as the first set is. It is made fast, at the price of memory, while
 * there is a generation to come or to go: the connection is in use then (field
 * case F29).
 */
struct hp_key {
	u32 refs;		/* slots that share it; hp_mutex */
	const struct cipher *cipher;
	union {
		struct qrdma_aes aes;
		u32 chacha[CHACHA_KEY_SIZE / sizeof(u32)];
	};
};

/* One row for each cipher: all that is known about it is here. */
struct cipher {
	u32 id;			/* enum qrdma_cipher */
	const char *name;	/* of the AEAD, for the crypto API */
	const char *hmac;	/* of the hash that derives its keys */
	u32 secret_len;		/* bytes of a traffic secret */
	u32 key_len;		/* bytes of the AEAD key and of the header protection key */
	u32 iv_size;		/* bytes of IV that the crypto API wants */
	u32 nonce_at;		/* where in it the nonce of RFC 9001 section 5.3 lies */
	u8 iv_lead;		/* first byte of an IV when the nonce lies behind it */
	int (*hp_set)(struct hp_key *key, const u8 *raw, u32 len);
	/* make it fast, and undo that; NULL: there is but one way */
	int (*hp_warm)(struct hp_key *key);
	void *(*hp_cool)(struct hp_key *key);
	void (*hp_mask)(const struct hp_key *key, const u8 *sample, u8 *mask);
};

struct qrdma_slot {
	refcount_t refs;
	const struct cipher *cipher;
	struct crypto_aead *tfm;
	struct hp_key *hp;
	u32 request_size;
	u8 iv[CRYPTO_IV_MAX];
	u8 secret[QRDMA_SECRET_MAX];
	struct llist_node dead;		/* on slots_dead once refs is 0 */
	void *cooled;			/* then: what made @hp fast, if not needed now */
};

/* One packet at the cipher. In use: holds a reference to its slot and belongs to
 * the call that submits it, then to the callback. Else: in a pool, or freed.
 */
struct request {
	struct request *next;		/* in a pool */
	u32 size;			/* bytes allocated */
	struct qrdma_slot *slot;
	struct qrdma_aead_op *op;
	u8 iv[CRYPTO_IV_MAX];
	struct scatterlist src[1 + QRDMA_SEG_MAX];
	struct scatterlist dst[1];
	struct aead_request aead;	/* last: the cipher's context follows */
};

struct pool {
	local_lock_t lock;		/* guards head and count */
	struct request *head;
	u32 count;
};

struct depot {
	spinlock_t lock;		/* guards head and count; inside no other lock */
	struct request *head;
	u32 count;
};

static DEFINE_PER_CPU(struct pool, pools) = { .lock = INIT_LOCAL_LOCK(lock) };
static struct depot depot = { .lock = __SPIN_LOCK_UNLOCKED(depot.lock) };

static DEFINE_PER_CPU(struct qrdma_crypto_stats, crypto_stats);	/* all but slots */
static atomic_t slots_alive = ATOMIC_INIT(0);
static LLIST_HEAD(slots_dead);
/* Guards refs of each header protection key, and whether it is warm. */
static DEFINE_MUTEX(hp_mutex);
static struct workqueue_struct *crypto_wq;

static void slots_reap(struct work_struct *work);
static DECLARE_WORK(slots_reap_work, slots_reap);

/* Header protection (RFC 9001 sections 5.4.3 and 5.4.4) */

static int hp_set_aes(struct hp_key *key, const u8 *raw, u32 len)
{
	return qrdma_aes_set(&key->aes, raw, len);
}

static int hp_warm_aes(struct hp_key *key)
{
	return qrdma_aes_warm(&key->aes);
}

static void *hp_cool_aes(struct hp_key *key)
{
	return qrdma_aes_cool(&key->aes);
}

static void hp_mask_aes(const struct hp_key *key, const u8 *sample, u8 *mask)
{
	u8 block[AES_BLOCK_SIZE];

	qrdma_aes_encrypt(&key->aes, block, sample);
	memcpy(mask, block, QRDMA_HP_MASK_LEN);
}

static int hp_set_chacha(struct hp_key *key, const u8 *raw, u32 len)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(key->chacha); i++)
		key->chacha[i] = get_unaligned_le32(raw + i * sizeof(u32));
	return 0;
}

/* The sample is the block counter (4 bytes) and the nonce (12). */
static void hp_mask_chacha(const struct hp_key *key, const u8 *sample, u8 *mask)
{
	struct qrdma_chacha state = { .x = {
		CHACHA_CONSTANT_EXPA, CHACHA_CONSTANT_ND_3,
		CHACHA_CONSTANT_2_BY, CHACHA_CONSTANT_TE_K,
	} };
	u8 block[CHACHA_BLOCK_SIZE];
	unsigned int i;

	memcpy(state.x + 4, key->chacha, sizeof(key->chacha));
	for (i = 0; i < 4; i++)
		state.x[12 + i] = get_unaligned_le32(sample + i * sizeof(u32));
	qrdma_chacha20_block(&state, block);
	memcpy(mask, block, QRDMA_HP_MASK_LEN);
	memzero_explicit(block, sizeof(block));
	memzero_explicit(&state, sizeof(state));
}

/* A generation joins, which is derived for a connection in use. A key that stays slow will do. */
static struct hp_key *hp_share(struct hp_key *key)
{
	mutex_lock(&hp_mutex);
	key->refs++;
	if (key->cipher->hp_warm)
		key->cipher->hp_warm(key);
	mutex_unlock(&hp_mutex);
	return key;
}

/* Return: what is to be discarded after a grace period, NULL: nothing. */
static void *hp_put(struct hp_key *key)
{
	void *cooled = NULL;

	if (!key)
		return NULL;
	mutex_lock(&hp_mutex);
	key->refs--;
	if (key->refs < 2 && key->cipher->hp_cool)
		cooled = key->cipher->hp_cool(key);
	if (!key->refs)
		kfree_sensitive(key);
	mutex_unlock(&hp_mutex);
	return cooled;
}

/* Ciphers */

static const struct cipher ciphers[] = {
	{
		.id = QRDMA_CIPHER_AES_128_GCM, .name = "gcm(aes)",
		.hmac = "hmac(sha256)", .secret_len = 32, .key_len = 16,
		.iv_size = 12, .nonce_at = 0,
		.hp_set = hp_set_aes, .hp_warm = hp_warm_aes, .hp_cool = hp_cool_aes,
		.hp_mask = hp_mask_aes,
	}, {
		.id = QRDMA_CIPHER_AES_256_GCM, .name = "gcm(aes)",
		.hmac = "hmac(sha384)", .secret_len = 48, .key_len = 32,
		.iv_size = 12, .nonce_at = 0,
		.hp_set = hp_set_aes, .hp_warm = hp_warm_aes, .hp_cool = hp_cool_aes,
		.hp_mask = hp_mask_aes,
	}, {
		/* RFC 3610 with a length field of 3 bytes: flags, nonce, 0 0 0 */
		.id = QRDMA_CIPHER_AES_128_CCM, .name = "ccm(aes)",
		.hmac = "hmac(sha256)", .secret_len = 32, .key_len = 16,
		.iv_size = 16, .nonce_at = 1, .iv_lead = 3 - 1,
		.hp_set = hp_set_aes, .hp_warm = hp_warm_aes, .hp_cool = hp_cool_aes,
		.hp_mask = hp_mask_aes,
	}, {
		.id = QRDMA_CIPHER_CHACHA20_POLY1305, .name = "rfc7539(chacha20,poly1305)",
		.hmac = "hmac(sha256)", .secret_len = 32, .key_len = 32,
		.iv_size = 12, .nonce_at = 0,
		.hp_set = hp_set_chacha, .hp_mask = hp_mask_chacha,
	},
};

static const struct cipher *cipher_find(u32 id)
{
	const struct cipher *c;

	for (c = ciphers; c < ciphers + ARRAY_SIZE(ciphers); c++)
		if (c->id == id)
			return c;
	return NULL;
}

static struct crypto_aead *cipher_alloc(const struct cipher *c)
{
	struct crypto_aead *tfm = crypto_alloc_aead(c->name, 0, 0);

	if (IS_ERR(tfm))
		return PTR_ERR(tfm) == -ENOENT ? ERR_PTR(-ENOPKG) : tfm;
	if (crypto_aead_ivsize(tfm) != c->iv_size) {
		crypto_free_aead(tfm);
		return ERR_PTR(-ENOPKG);
	}
	return tfm;
}

/* Key slots */

/* Nobody holds @slot: wipe what is ours at once, leave the ciphers to the worker. */
static void slot_bury(struct qrdma_slot *slot)
{
	memzero_explicit(slot->iv, sizeof(slot->iv));
	memzero_explicit(slot->secret, sizeof(slot->secret));
	if (llist_add(&slot->dead, &slots_dead))
		queue_work(crypto_wq, &slots_reap_work);
}

static void slots_reap(struct work_struct *work)
{
	struct llist_node *list = llist_del_all(&slots_dead);
	struct qrdma_slot *slot, *next;
	bool cooled = false;

	llist_for_each_entry(slot, list, dead) {
		crypto_free_aead(slot->tfm);
		slot->cooled = hp_put(slot->hp);
		cooled = cooled || slot->cooled;
	}
	/* Other generations may be protecting packets with what was taken away. */
	if (cooled)
		synchronize_rcu();
	llist_for_each_entry_safe(slot, next, list, dead) {
		if (slot->cooled)
			qrdma_aes_discard(slot->cooled);
		kfree_sensitive(slot);
		if (atomic_dec_and_test(&slots_alive))
			wake_up_var(&slots_alive);
	}
}

static void slot_get(struct qrdma_slot *slot)
{
	refcount_inc(&slot->refs);
}

static void slot_put(struct qrdma_slot *slot)
{
	if (slot && refcount_dec_and_test(&slot->refs))
		slot_bury(slot);
}

static struct qrdma_slot *slot_alloc(const struct cipher *c)
{
	struct qrdma_slot *slot = kzalloc(sizeof(*slot), GFP_KERNEL);

	if (!slot)
		return NULL;
	refcount_set(&slot->refs, 1);
	slot->cipher = c;
	atomic_inc(&slots_alive);
	return slot;
}

/* Cipher object and IV from the secret that @kdf is keyed with. */
static int slot_arm(struct qrdma_slot *slot, struct qrdma_hkdf *kdf)
{
	const struct cipher *c = slot->cipher;
	struct crypto_aead *tfm;
	u8 key[CRYPTO_KEY_MAX];
	int err;

	tfm = cipher_alloc(c);
	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	slot->tfm = tfm;
	slot->request_size = sizeof(struct request) + crypto_aead_reqsize(tfm);
	slot->iv[0] = c->iv_lead;
	err = qrdma_hkdf_label(kdf, "quic iv", slot->iv + c->nonce_at, QRDMA_IV_LEN) ?:
	      qrdma_hkdf_label(kdf, "quic key", key, c->key_len) ?:
	      crypto_aead_setkey(tfm, key, c->key_len) ?:
	      crypto_aead_setauthsize(tfm, QRDMA_TAG_LEN);
	memzero_explicit(key, sizeof(key));
	return err;
}

static int slot_set_hp(struct qrdma_slot *slot, struct qrdma_hkdf *kdf)
{
	const struct cipher *c = slot->cipher;
	u8 key[CRYPTO_KEY_MAX];
	int err;

	slot->hp = kzalloc(sizeof(*slot->hp), GFP_KERNEL);
	if (!slot->hp)
		return -ENOMEM;
	slot->hp->refs = 1;
	slot->hp->cipher = c;
	err = qrdma_hkdf_label(kdf, "quic hp", key, c->key_len) ?:
	      c->hp_set(slot->hp, key, c->key_len);
	memzero_explicit(key, sizeof(key));
	return err;
}

static int slot_new(u32 cipher, const u8 *secret, u32 len, struct qrdma_slot **out)
{
	const struct cipher *c = cipher_find(cipher);
	struct qrdma_slot *slot;
	struct qrdma_hkdf kdf;
	int err;

	if (!c || len != c->secret_len)
		return -EINVAL;
	slot = slot_alloc(c);
	if (!slot)
		return -ENOMEM;
	memcpy(slot->secret, secret, len);
	err = qrdma_hkdf_init(&kdf, c->hmac) ?:
	      qrdma_hkdf_key(&kdf, slot->secret, len) ?:
	      slot_set_hp(slot, &kdf) ?:
	      slot_arm(slot, &kdf);
	qrdma_hkdf_free(&kdf);
	if (err)
		slot_put(slot);
	else
		*out = slot;
	return err;
}

/* RFC 9001 section 6.1: a new secret, the same header protection key */
static int slot_next(struct qrdma_slot *cur, struct qrdma_slot **out)
{
	const struct cipher *c = cur->cipher;
	struct qrdma_slot *slot;
	struct qrdma_hkdf kdf;
	int err;

	slot = slot_alloc(c);
	if (!slot)
		return -ENOMEM;
	slot->hp = hp_share(cur->hp);
	err = qrdma_hkdf_init(&kdf, c->hmac) ?:
	      qrdma_hkdf_key(&kdf, cur->secret, c->secret_len) ?:
	      qrdma_hkdf_label(&kdf, "quic ku", slot->secret, c->secret_len) ?:
	      qrdma_hkdf_key(&kdf, slot->secret, c->secret_len) ?:
	      slot_arm(slot, &kdf);
	qrdma_hkdf_free(&kdf);
	if (err)
		slot_put(slot);
	else
		*out = slot;
	return err;
}

static bool slot_same(struct qrdma_slot *slot, u32 cipher, const u8 *secret, u32 len)
{
	const struct cipher *c = slot->cipher;

	return c->id == cipher && c->secret_len == len &&
	       !crypto_memneq(slot->secret, secret, len);
}

/* Requests */

static struct request *pool_take(void)
{
	struct request *req;
	unsigned long flags;
	struct pool *pool;

	local_lock_irqsave(&pools.lock, flags);
	pool = this_cpu_ptr(&pools);
	req = pool->head;
	if (req) {
		pool->head = req->next;
		pool->count--;
	}
	local_unlock_irqrestore(&pools.lock, flags);
	return req;
}

static bool pool_give(struct request *req)
{
	unsigned long flags;
	struct pool *pool;
	bool room;

	local_lock_irqsave(&pools.lock, flags);
	pool = this_cpu_ptr(&pools);
	room = pool->count < CRYPTO_POOL_MAX;
	if (room) {
		req->next = pool->head;
		pool->head = req;
		pool->count++;
	}
	local_unlock_irqrestore(&pools.lock, flags);
	return room;
}

static struct request *depot_take(void)
{
	struct request *req;
	unsigned long flags;

	if (!READ_ONCE(depot.count))
		return NULL;
	spin_lock_irqsave(&depot.lock, flags);
	req = depot.head;
	if (req) {
		depot.head = req->next;
		WRITE_ONCE(depot.count, depot.count - 1);
	}
	spin_unlock_irqrestore(&depot.lock, flags);
	return req;
}

static bool depot_give(struct request *req)
{
	unsigned long flags;
	bool room;

	spin_lock_irqsave(&depot.lock, flags);
	room = depot.count < CRYPTO_DEPOT_MAX;
	if (room) {
		req->next = depot.head;
		depot.head = req;
		WRITE_ONCE(depot.count, depot.count + 1);
	}
	spin_unlock_irqrestore(&depot.lock, flags);
	return room;
}

/* A request that is too small for the slot's cipher is replaced by one that
 * fits, so the pools come to hold what the largest cipher in use needs.
 */
static struct request *request_get(struct qrdma_aead_op *op)
{
	struct qrdma_slot *slot = op->slot;
	struct request *req;

	req = pool_take() ?: depot_take();
	if (req && req->size < slot->request_size) {
		kfree_sensitive(req);
		req = NULL;
	}
	if (!req) {
		req = kmalloc(slot->request_size, GFP_ATOMIC | __GFP_NOWARN);
		if (!req)
			return NULL;
		req->size = slot->request_size;
		this_cpu_inc(crypto_stats.grown);
	}
	slot_get(slot);
	req->slot = slot;
	req->op = op;
	return req;
}

static void request_put(struct request *req)
{
	struct qrdma_slot *slot = req->slot;

	memzero_explicit(req->iv, sizeof(req->iv));
	if (!pool_give(req) && !depot_give(req))
		kfree_sensitive(req);
	slot_put(slot);
}

static void requests_free(struct request *req)
{
	struct request *next;

	for (; req; req = next) {
		next = req->next;
		kfree_sensitive(req);
	}
}

static void request_done(qrdma_crypto_arg *arg, int err)
{
	struct request *req = qrdma_crypto_data(arg);
	struct qrdma_aead_op *op = req->op;

	if (err == -EINPROGRESS)	/* left the backlog */
		return;
	if (err && err != -EBADMSG)
		this_cpu_inc(crypto_stats.failed);
	request_put(req);
	op->done(op, err);
}

/* Nonce (RFC 9001 section 5.3): the IV exclusive-or the packet number. */
static void request_init(struct request *req)
{
	const struct qrdma_slot *slot = req->slot;
	u8 *at = req->iv + slot->cipher->nonce_at + QRDMA_IV_LEN - sizeof(u64);

	memcpy(req->iv, slot->iv, sizeof(req->iv));
	put_unaligned_be64(get_unaligned_be64(at) ^ req->op->pn, at);
	aead_request_set_tfm(&req->aead, slot->tfm);
	aead_request_set_callback(&req->aead, CRYPTO_TFM_REQ_MAY_BACKLOG, request_done, req);
	aead_request_set_ad(&req->aead, req->op->hdr_len);
}

/* Hand @req over; it is not ours any more when -EINPROGRESS is returned. */
static int request_submit(struct request *req, int (*crypt)(struct aead_request *aead))
{
	int err = crypt(&req->aead);

	if (err == -EBUSY) {
		this_cpu_inc(crypto_stats.backlogged);
		err = -EINPROGRESS;
	}
	if (err == -EINPROGRESS) {
		this_cpu_inc(crypto_stats.async);
		return err;
	}
	if (err && err != -EBADMSG)
		this_cpu_inc(crypto_stats.failed);
	else
		this_cpu_inc(crypto_stats.sync);
	request_put(req);
	return err;
}

/* Sealing and opening */

/* Header and segments as the cipher's source. Return: its entries, or -EINVAL
 * when the segments are not the payload.
 */
static int seal_map(const struct qrdma_aead_op *op, struct scatterlist *sg)
{
	u32 left = op->payload_len;
	unsigned int i, n = 1;

	if (op->nseg > QRDMA_SEG_MAX)
		return -EINVAL;
	sg_init_table(sg, 1 + op->nseg);
	sg_set_buf(&sg[0], op->pkt, op->hdr_len);
	for (i = 0; i < op->nseg; i++) {
		const struct qrdma_seg *seg = &op->seg[i];

		if (seg->len > left)
			return -EINVAL;
		left -= seg->len;
		if (seg->len)
			sg_set_buf(&sg[n++], seg->data, seg->len);
	}
	if (left)
		return -EINVAL;
	sg_mark_end(&sg[n - 1]);
	return n;
}

static int op_seal(struct qrdma_aead_op *op)
{
	struct scatterlist *src;
	struct request *req;
	int n;

	req = request_get(op);
	if (!req) {
		this_cpu_inc(crypto_stats.failed);
		return -ENOMEM;
	}
	n = seal_map(op, req->src);
	if (n < 0) {
		request_put(req);
		return n;
	}
	request_init(req);
	sg_init_one(req->dst, op->pkt, op->hdr_len + op->payload_len + QRDMA_TAG_LEN);
	src = req->src;
	if (n == 1 || (n == 2 && sg_virt(&src[1]) == op->pkt + op->hdr_len))
		src = req->dst;		/* all of it is in place */
	aead_request_set_crypt(&req->aead, src, req->dst, op->payload_len, req->iv);
	return request_submit(req, crypto_aead_encrypt);
}

static int op_open(struct qrdma_aead_op *op)
{
	struct request *req;

	if (op->payload_len < QRDMA_TAG_LEN)
		return -EBADMSG;
	req = request_get(op);
	if (!req) {
		this_cpu_inc(crypto_stats.failed);
		return -ENOMEM;
	}
	request_init(req);
	sg_init_one(req->dst, op->pkt, op->hdr_len + op->payload_len);
	aead_request_set_crypt(&req->aead, req->dst, req->dst, op->payload_len, req->iv);
	return request_submit(req, crypto_aead_decrypt);
}

static int slot_hp_mask(struct qrdma_slot *slot, const u8 *sample, u8 *mask)
{
	slot->cipher->hp_mask(slot->hp, sample, mask);
	return 0;
}

const struct qrdma_aead_ops qrdma_kernel_aead = {
	.slot_new = slot_new,
	.slot_next = slot_next,
	.slot_get = slot_get,
	.slot_put = slot_put,
	.slot_same = slot_same,
	.seal = op_seal,
	.open = op_open,
	.hp_mask = slot_hp_mask,
};

/* Start and stop */

static int cipher_warm_up(const struct cipher *c)
{
	struct crypto_aead *tfm;
	struct qrdma_hkdf kdf;
	int err;

	err = qrdma_hkdf_init(&kdf, c->hmac);
	qrdma_hkdf_free(&kdf);
	if (err) {
		pr_err("%s: not to be had (%d)\n", c->hmac, err);
		return err;
	}
	tfm = cipher_alloc(c);
	if (IS_ERR(tfm))
		pr_notice("%s: not to be had (%ld)\n", c->name, PTR_ERR(tfm));
	else
		crypto_free_aead(tfm);
	return 0;
}

int qrdma_crypto_start(void)
{
	unsigned int i;
	int err;

	crypto_wq = alloc_workqueue("qrdma_crypto", WQ_UNBOUND, 0);
	if (!crypto_wq)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(ciphers); i++) {
		err = cipher_warm_up(&ciphers[i]);
		if (err)
			goto err_wq;
	}
	return 0;

err_wq:
	destroy_workqueue(crypto_wq);
	return err;
}

/* 1. No new slot: the callers are gone. 2. A slot dies only after the requests
 * that hold it, so with the last slot the last callback has come as far as its
 * last reference. 3. Callbacks run with bottom halves off: after a grace period
 * all have returned. 4. Nobody queues work now; destroying the queue waits for
 * the worker. 5. Nobody takes or gives requests now.
 */
void qrdma_crypto_stop(void)
{
	int cpu;

	wait_var_event(&slots_alive, !atomic_read(&slots_alive));
	synchronize_rcu();
	destroy_workqueue(crypto_wq);
	for_each_possible_cpu(cpu) {
		struct pool *pool = per_cpu_ptr(&pools, cpu);

		requests_free(pool->head);
		pool->head = NULL;
		pool->count = 0;
	}
	requests_free(depot.head);
	depot.head = NULL;
	depot.count = 0;
}

void qrdma_crypto_stats_read(struct qrdma_crypto_stats *sum)
{
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct qrdma_crypto_stats *one = per_cpu_ptr(&crypto_stats, cpu);

		sum->sync += READ_ONCE(one->sync);
		sum->async += READ_ONCE(one->async);
		sum->backlogged += READ_ONCE(one->backlogged);
		sum->grown += READ_ONCE(one->grown);
		sum->failed += READ_ONCE(one->failed);
	}
	sum->slots = atomic_read(&slots_alive);
}
