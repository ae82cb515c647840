// SPDX-License-Identifier: GPL-2.0
/*
 * Stateless resets. See reset.h.
 */
#include <linux/jiffies.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/wait.h>
#include <net/net_namespace.h>

#include "compat.h"
#include "demux.h"
#include "hkdf.h"
#include "peer.h"
#include "reset.h"
#include "stat.h"

enum {
	RESET_KEY_LEN	= 32,
	/* answers under way: the peer may have to be asked for its queue pairs first */
	RESET_JOBS	= 64,
	/* bytes of an answer at most: one that looks like a packet with little in it */
	RESET_LEN_MAX	= 42,
};

/* given at the start, until it is used */
static u8 reset_key[RESET_KEY_LEN];
/* the key is not a random one; reset.key_lock once it has started */
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

static uint reset_rate = 500;
module_param(reset_rate, uint, 0644);
MODULE_PARM_DESC(reset_rate, "stateless resets that may leave this host in a second, 0: none");

/**
 * struct reset_job - an answer under way
 * @user: finds the way to the peer
 * @node: on the list of idle jobs
 * @refs: one for the event that ends it, and those of @user
 * @ended: the event has been; event() only
 * @cid: what the packet was sent to
 * @len: bytes of the answer
 * @qpn: queue pair that the packet came from
 * @from: port that the packet was sent to
 * @to: port that it came from
 *
 * Owned by: the list of idle jobs, else its references.
 */
struct reset_job {
	struct qrdma_peer_user user;
	struct list_head node;
	refcount_t refs;
	bool ended;
	u8 cid[QRDMA_CID_LEN];
	u32 len;
	u32 qpn;
	u16 from;
	u16 to;
};

static struct reset_state {
	struct rw_semaphore key_lock;	/* guards the key of kdf */
	struct qrdma_hkdf kdf;
	spinlock_t lock;	/* guards idle .. second */
	struct list_head idle;
	u32 nidle;
	bool stopping;		/* or not yet started */
	u32 count;		/* answers in this second */
	unsigned long second;	/* jiffies when it began */
	wait_queue_head_t all_idle;
	struct reset_job job[RESET_JOBS];
} reset = {
	.key_lock	= __RWSEM_INITIALIZER(reset.key_lock),
	.lock		= __SPIN_LOCK_UNLOCKED(reset.lock),
	.idle		= LIST_HEAD_INIT(reset.idle),
	.stopping	= true,		/* until it has started */
	.all_idle	= __WAIT_QUEUE_HEAD_INITIALIZER(reset.all_idle),
};

void qrdma_reset_token(const u8 *cid, u8 *token)
{
	BUILD_BUG_ON(QRDMA_RESET_TOKEN_LEN > 32);
	down_read(&reset.key_lock);
	if (qrdma_hkdf_expand(&reset.kdf, cid, QRDMA_CID_LEN, token, QRDMA_RESET_TOKEN_LEN))
		memset(token, 0, QRDMA_RESET_TOKEN_LEN);
	up_read(&reset.key_lock);
}

int qrdma_reset_set_key(const u8 *key)
{
	int err = -EBUSY;

	down_write(&reset.key_lock);
	if (!reset_keyed)
		err = qrdma_hkdf_key(&reset.kdf, key, RESET_KEY_LEN);
	if (!err)
		reset_keyed = true;
	up_write(&reset.key_lock);
	return err;
}

static void reset_job_put(struct reset_job *job)
{
	if (!refcount_dec_and_test(&job->refs))
		return;
	spin_lock_bh(&reset.lock);
	list_add(&job->node, &reset.idle);
	if (++reset.nidle == RESET_JOBS)
		wake_up_all(&reset.all_idle);
	spin_unlock_bh(&reset.lock);
}

/* The way is known. */
static bool reset_send(const struct reset_job *job, struct qrdma_peer *peer)
{
	struct qrdma_lane *lane = qrdma_device_lane(peer->dev, job->from);
	u8 random[RESET_LEN_MAX], token[QRDMA_RESET_TOKEN_LEN];
	struct qrdma_writer w;
	struct qrdma_txbuf *buf;
	struct qrdma_ah *ah;
	bool ok;

	ah = qrdma_peer_ah(peer, 0, false);
	if (IS_ERR(ah))
		return false;
	buf = qrdma_lane_tx_get(lane);
	if (!buf) {
		qrdma_ah_put(ah);
		return false;
	}
	get_random_bytes(random, sizeof(random));
	qrdma_reset_token(job->cid, token);
	put_unaligned_be16(job->from, buf->data);
	put_unaligned_be16(job->to, buf->data + 2);
	qrdma_writer_init(&w, buf->data + QRDMA_PORT_HDR_LEN, job->len);
	ok = qrdma_hdr_build_reset(&w, job->len, random, token) &&
	     !qrdma_lane_tx_queue(lane, buf, QRDMA_PORT_HDR_LEN + job->len, ah, job->qpn,
				  peer->qkey);
	qrdma_lane_tx_put(buf);
	qrdma_lane_flush(lane);
	qrdma_ah_put(ah);
	return ok;
}

static struct reset_job *reset_job_of(struct qrdma_peer_user *user)
{
	return container_of(user, struct reset_job, user);
}

static void reset_event(struct qrdma_peer_user *user, enum qrdma_peer_event event,
			struct qrdma_peer *peer, int err)
{
	struct reset_job *job = reset_job_of(user);
	struct qrdma_sock *qs;

	if (job->ended || (event != QRDMA_PEER_READY && event != QRDMA_PEER_GONE))
		return;
	job->ended = true;
	/* Out of band both ends connect, in no order: this one may have come meanwhile. */
	qs = qrdma_demux_find(job->cid);
	if (qs)
		sock_put(&qs->sk);
	else if (event == QRDMA_PEER_READY && reset_send(job, peer))
		qrdma_stat_inc(QRDMA_STAT_RESET_SENT);
	else
		qrdma_stat_inc(QRDMA_STAT_RESET_FAILED);
	qrdma_peer_user_cancel(user);
	reset_job_put(job);
}

static void reset_hold(struct qrdma_peer_user *user)
{
	refcount_inc(&reset_job_of(user)->refs);
}

static void reset_put(struct qrdma_peer_user *user)
{
	reset_job_put(reset_job_of(user));
}

static const struct qrdma_peer_user_ops reset_user_ops = {
	.event	= reset_event,
	.hold	= reset_hold,
	.put	= reset_put,
};

/* A job, if one may begin now. */
static struct reset_job *reset_job_take(void)
{
	struct reset_job *job = NULL;

	spin_lock(&reset.lock);
	if (time_after(jiffies, reset.second + HZ)) {
		reset.second = jiffies;
		reset.count = 0;
	}
	if (!reset.stopping && reset.count < READ_ONCE(reset_rate))
		job = list_first_entry_or_null(&reset.idle, struct reset_job, node);
	if (job) {
		list_del(&job->node);
		reset.nidle--;
		reset.count++;
	}
	spin_unlock(&reset.lock);
	return job;
}

/* The namespace of a datagram, with a reference, if it is still there. */
static struct net *reset_net(const struct qrdma_rxbuf *rxbuf)
{
	struct net *net, *found = NULL;

	rcu_read_lock();
	for_each_net_rcu(net) {
		if (net == rxbuf->net) {
			found = maybe_get_net(net);
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

void qrdma_reset_answer(const struct qrdma_rxbuf *rxbuf, const u8 *cid)
{
	u32 len = rxbuf->buf.len - QRDMA_PORT_HDR_LEN;
	const u8 *data = rxbuf->buf.data;
	struct reset_job *job;
	struct net *net;
	int err;

	/* RFC 9000 s10.3.3: shorter than its cause, or two who forgot both go on for ever */
	if (len <= QRDMA_RESET_LEN_MIN)
		return;
	job = reset_job_take();
	if (!job) {
		qrdma_stat_inc(QRDMA_STAT_RESET_HELD);
		return;
	}
	refcount_set(&job->refs, 1);
	job->ended = false;
	net = reset_net(rxbuf);
	if (!net) {
		qrdma_stat_inc(QRDMA_STAT_RESET_FAILED);
		reset_job_put(job);
		return;
	}
	memcpy(job->cid, cid, QRDMA_CID_LEN);
	job->len = min_t(u32, len - 1, RESET_LEN_MAX);
	job->qpn = rxbuf->src_qp;
	job->to = get_unaligned_be16(data);
	job->from = get_unaligned_be16(data + 2);
	err = qrdma_peer_resolve(net, &rxbuf->daddr, &rxbuf->saddr, rxbuf->ifindex, &job->user);
	put_net(net);
	if (err) {
		qrdma_stat_inc(QRDMA_STAT_RESET_FAILED);
		reset_job_put(job);
	}
}

int qrdma_reset_start(void)
{
	int i, err;

	if (!reset_keyed)
		get_random_bytes(reset_key, sizeof(reset_key));
	err = qrdma_hkdf_init(&reset.kdf, "hmac(sha256)");
	if (!err)
		err = qrdma_hkdf_key(&reset.kdf, reset_key, sizeof(reset_key));
	memzero_explicit(reset_key, sizeof(reset_key));
	if (err) {
		qrdma_hkdf_free(&reset.kdf);
		return err;
	}
	spin_lock_bh(&reset.lock);
	for (i = 0; i < RESET_JOBS; i++) {
		qrdma_peer_user_init(&reset.job[i].user, &reset_user_ops);
		list_add(&reset.job[i].node, &reset.idle);
	}
	reset.nidle = RESET_JOBS;
	reset.second = jiffies;
	reset.stopping = false;
	spin_unlock_bh(&reset.lock);
	return 0;
}

static bool reset_is_idle(void)
{
	bool idle;

	spin_lock_bh(&reset.lock);
	idle = reset.nidle == RESET_JOBS;
	spin_unlock_bh(&reset.lock);
	return idle;
}

/* Each job ends by itself: the peer is found, or is not, in the time that asking for it takes. */
void qrdma_reset_stop(void)
{
	spin_lock_bh(&reset.lock);
	reset.stopping = true;
	spin_unlock_bh(&reset.lock);
	wait_event(reset.all_idle, reset_is_idle());
	qrdma_hkdf_free(&reset.kdf);
}
