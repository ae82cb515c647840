// SPDX-License-Identifier: GPL-2.0
/*
 * Answers to datagrams that belong to no connection. See answer.h.
 */
#include <linux/jiffies.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <net/net_namespace.h>

#include "answer.h"
#include "compat.h"

/* the peer may have to be asked for its queue pairs first */
#define ANSWER_MAX	64

static uint reset_rate = 500;
module_param(reset_rate, uint, 0644);
MODULE_PARM_DESC(reset_rate, "stateless resets and refusals that may leave this host in a second, 0: none");

static struct answer_state {
	spinlock_t lock;	/* guards what follows */
	struct list_head idle;
	u32 nidle;
	bool stopping;		/* or not yet started */
	u32 count;		/* answers in this second */
	unsigned long second;	/* jiffies when it began */
	wait_queue_head_t all_idle;
	struct qrdma_answer answer[ANSWER_MAX];
} answers = {
	.lock		= __SPIN_LOCK_UNLOCKED(answers.lock),
	.idle		= LIST_HEAD_INIT(answers.idle),
	.stopping	= true,		/* until it has started */
	.all_idle	= __WAIT_QUEUE_HEAD_INITIALIZER(answers.all_idle),
};

static void answer_put(struct qrdma_answer *answer)
{
	if (!refcount_dec_and_test(&answer->refs))
		return;
	spin_lock_bh(&answers.lock);
	list_add(&answer->node, &answers.idle);
	if (++answers.nidle == ANSWER_MAX)
		wake_up_all(&answers.all_idle);
	spin_unlock_bh(&answers.lock);
}

/* Return: bytes of the datagram that has left, 0: none was to, or a negative errno. */
static int answer_send(const struct qrdma_answer_text *text, struct qrdma_peer *peer)
{
	struct qrdma_lane *lane = qrdma_device_lane(peer->dev, text->from);
	struct qrdma_ah *ah = qrdma_peer_ah(peer, 0, false);
	struct qrdma_txbuf *buf;
	int len, err;

	if (IS_ERR(ah))
		return PTR_ERR(ah);
	buf = qrdma_lane_tx_get(lane);
	if (!buf) {
		qrdma_ah_put(ah);
		return -ENOBUFS;
	}
	put_unaligned_be16(text->from, buf->data);
	put_unaligned_be16(text->to, buf->data + 2);
	len = text->ops->make(text->cause, buf->data + QRDMA_PORT_HDR_LEN,
			      qrdma_lane_max_datagram(lane));
	if (len > 0) {
		err = qrdma_lane_tx_queue(lane, buf, QRDMA_PORT_HDR_LEN + len, ah, text->qpn,
					  peer->qkey);
		if (err)
			len = err;
	}
	qrdma_lane_tx_put(buf);
	qrdma_lane_flush(lane);
	qrdma_ah_put(ah);
	return len;
}

/* @err: of answer_send(), or why there was none */
static void answer_count(const struct qrdma_answer_text *text, int err)
{
	if (err > 0)
		qrdma_stat_inc(text->ops->sent);
	else if (err)
		qrdma_stat_inc(QRDMA_STAT_RESET_FAILED);
}

static struct qrdma_answer *answer_of(struct qrdma_peer_user *user)
{
	return container_of(user, struct qrdma_answer, user);
}

static void answer_event(struct qrdma_peer_user *user, enum qrdma_peer_event event,
			 struct qrdma_peer *peer, int err)
{
	struct qrdma_answer *answer = answer_of(user);

	if (answer->ended || (event != QRDMA_PEER_READY && event != QRDMA_PEER_GONE))
		return;
	answer->ended = true;
	if (event == QRDMA_PEER_READY)
		err = answer_send(&answer->text, peer);
	answer_count(&answer->text, err);
	qrdma_peer_user_cancel(user);
	answer_put(answer);
}

static void answer_user_hold(struct qrdma_peer_user *user)
{
	refcount_inc(&answer_of(user)->refs);
}

static void answer_user_put(struct qrdma_peer_user *user)
{
	answer_put(answer_of(user));
}

static const struct qrdma_peer_user_ops answer_user_ops = {
	.event	= answer_event,
	.hold	= answer_user_hold,
	.put	= answer_user_put,
};

/* An idle one, if it may be used now. */
static struct qrdma_answer *answer_take(bool modest)
{
	u32 spare = modest ? ANSWER_MAX / 2 : 0;
	struct qrdma_answer *answer = NULL;

	spin_lock_bh(&answers.lock);
	if (time_after(jiffies, answers.second + HZ)) {
		answers.second = jiffies;
		answers.count = 0;
	}
	if (!answers.stopping && answers.count < READ_ONCE(reset_rate) && answers.nidle > spare)
		answer = list_first_entry_or_null(&answers.idle, struct qrdma_answer, node);
	if (answer) {
		list_del(&answer->node);
		answers.nidle--;
		answers.count++;
	}
	spin_unlock_bh(&answers.lock);
	return answer;
}

/* The namespace of a datagram, with a reference, if it is still there. */
static struct net *answer_net(const struct qrdma_rxbuf *rxbuf)
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

static bool answer_write(struct qrdma_answer_text *text, const struct qrdma_rxbuf *rxbuf,
			 const struct qrdma_answer_ops *ops, const void *cause, size_t len)
{
	const u8 *data = rxbuf->buf.data;

	if (WARN_ON_ONCE(len > QRDMA_ANSWER_CAUSE))
		return false;
	text->ops = ops;
	memcpy(text->cause, cause, len);
	text->qpn = rxbuf->src_qp;
	text->to = get_unaligned_be16(data);
	text->from = get_unaligned_be16(data + 2);
	return true;
}

void qrdma_answer_begin(const struct qrdma_rxbuf *rxbuf, const struct qrdma_answer_ops *ops,
			const void *cause, size_t len, int ifindex)
{
	struct qrdma_answer_text text;
	struct qrdma_answer *answer;
	struct net *net;
	int err;

	if (!answer_write(&text, rxbuf, ops, cause, len))
		return;
	answer = answer_take(ops->modest);
	if (!answer) {
		qrdma_stat_inc(QRDMA_STAT_RESET_HELD);
		return;
	}
	refcount_set(&answer->refs, 1);
	answer->ended = false;
	net = answer_net(rxbuf);
	if (!net) {
		qrdma_stat_inc(QRDMA_STAT_RESET_FAILED);
		answer_put(answer);
		return;
	}
	answer->text = text;
	err = qrdma_peer_resolve(net, &rxbuf->daddr, &rxbuf->saddr, ifindex, &answer->user);
	put_net(net);
	if (err) {
		qrdma_stat_inc(QRDMA_STAT_RESET_FAILED);
		answer_put(answer);
	}
}

bool qrdma_answer_now(struct net *net, const struct qrdma_rxbuf *rxbuf,
		      const struct qrdma_answer_ops *ops, const void *cause, size_t len,
		      int ifindex)
{
	struct qrdma_answer_text text;
	struct qrdma_peer *peer;

	peer = qrdma_peer_known(net, &rxbuf->daddr, &rxbuf->saddr, ifindex);
	if (!peer)
		return false;
	if (answer_write(&text, rxbuf, ops, cause, len))
		answer_count(&text, answer_send(&text, peer));
	qrdma_peer_put(peer);
	return true;
}

int qrdma_answer_pack(int (*build)(struct qrdma_answer_packet *packet, const void *cause),
		      const void *cause, u8 *data, u32 cap)
{
	struct qrdma_answer_packet *packet = kzalloc(sizeof(*packet), GFP_KERNEL);
	int err;

	if (!packet)
		return -ENOMEM;
	packet->tx.data = data;
	packet->tx.cap = cap;
	err = build(packet, cause) ?: packet->tx.len;
	kfree(packet);
	return err;
}

static void answer_sealed(struct qrdma_aead_op *op, int err)
{
	struct qrdma_answer_packet *packet = container_of(op, struct qrdma_answer_packet, tx.op);

	packet->err = err;
	complete(&packet->sealed);
}

int qrdma_answer_seal(struct qrdma_answer_packet *packet)
{
	int err;

	init_completion(&packet->sealed);
	packet->tx.op.done = answer_sealed;
	err = packet->tx.aead->seal(&packet->tx.op);
	if (err != -EINPROGRESS)
		return err;
	wait_for_completion(&packet->sealed);
	return packet->err;
}

void qrdma_answer_start(void)
{
	int i;

	spin_lock_bh(&answers.lock);
	for (i = 0; i < ANSWER_MAX; i++) {
		qrdma_peer_user_init(&answers.answer[i].user, &answer_user_ops);
		list_add(&answers.answer[i].node, &answers.idle);
	}
	answers.nidle = ANSWER_MAX;
	answers.second = jiffies;
	answers.stopping = false;
	spin_unlock_bh(&answers.lock);
}

static bool answers_are_idle(void)
{
	bool idle;

	spin_lock_bh(&answers.lock);
	idle = answers.nidle == ANSWER_MAX;
	spin_unlock_bh(&answers.lock);
	return idle;
}

/* Each ends by itself: the peer is found, or is not, in the time that asking for it takes. */
void qrdma_answer_stop(void)
{
	spin_lock_bh(&answers.lock);
	answers.stopping = true;
	spin_unlock_bh(&answers.lock);
	wait_event(answers.all_idle, answers_are_idle());
}
