// SPDX-License-Identifier: GPL-2.0
/*
 * The verbs layer (pool.c to sidr.c and peer.c of net/qrdma) without sockets: a module that sends
 * numbered messages to the same module on another port or host, which echoes them.
 *
 * A command is written to /sys/kernel/debug/qrdma/test; write() returns when it is done, with 0 or
 * a negative errno. Addresses are IPv6 or ::ffff:a.b.c.d; :: is any.
 *
 *	echo LOCAL REMOTE COUNT SIZE	messages of SIZE bytes; each is sent until its echo is there
 *	stop				have all echo commands end when what they sent has come back
 *	resolve LOCAL REMOTE COUNT	ask for the peer and cancel, that often
 *	cancel LOCAL REMOTE COUNT	the same, cancelling without waiting for the answer
 *	suspect LOCAL REMOTE		doubt the peer
 *	oversize LOCAL REMOTE		one byte too much; has to fail with EMSGSIZE
 *	reset				reset the queue pairs of all lanes
 *	hold COUNT			keep the next COUNT messages that are received
 *	release				let go of them
 *	take COUNT			take that many send buffers of the first lane (the rest: EAGAIN)
 *	give				put them back
 *	reserve BYTES, unreserve BYTES	credit on the first device
 *
 * In the link order of qrdma.ko these files are objects of their own; here they are included, as
 * nothing is exported for tests.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "pool.c"
#include "ah.c"
#include "lane.c"
#include "lane_qp.c"
#include "device.c"
#include "sidr.c"
#include "peer.c"

#define ECHO_PORT	7
#define ECHO_MAX	100000
#define ECHO_WINDOW	16
#define ECHO_RETRY	(HZ / 4)
#define ECHO_PAUSE	(HZ / 50)
#define ECHO_HOSTS	16

static unsigned int give_up = 60;
module_param(give_up, uint, 0644);
MODULE_PARM_DESC(give_up, "seconds that a command may take");

/* What follows the port header */
struct echo_msg {
	__be16 sport;
	__be16 dport;
	__be32 session;
	__be32 seq;
	u8 fill[];
};

/* A command in progress. event() takes the mutex as a socket's would take the socket lock. */
struct session {
	struct list_head list;
	refcount_t refs;
	u32 id;
	struct mutex lock;	/* guards user attachment, peer, ah, err */
	struct qrdma_peer_user user;
	struct qrdma_peer *peer;
	struct qrdma_ah *ah;
	int err;
	bool stop;
	wait_queue_head_t wait;
	/* under session_lock: */
	unsigned long *acked;
	u32 count;
	u32 nacked;
	u32 bad;
};

/* Who sends us requests */
struct host {
	refcount_t refs;
	struct in6_addr local, remote;
	struct qrdma_peer_user user;
	struct mutex lock;	/* serialises event() */
	struct qrdma_peer *peer;	/* these two under session_lock */
	struct qrdma_ah *ah;
};

static LIST_HEAD(sessions);
static DEFINE_SPINLOCK(session_lock);	/* guards sessions, hosts, held */
static atomic_t session_ids = ATOMIC_INIT(0);
static atomic_t session_count = ATOMIC_INIT(0);
static struct host *hosts[ECHO_HOSTS];
static LIST_HEAD(held);
static u32 hold_left;
static struct qrdma_txbuf **taken;
static u32 ntaken;
static DEFINE_MUTEX(taken_lock);	/* guards taken */
static struct dentry *test_file;
static bool test_stopping;

static u8 echo_byte(u32 seq, u32 i)
{
	return seq * 31 + i * 7;
}

/* ---- hosts that we echo to ---- */

static struct host *host_of(struct qrdma_peer_user *user)
{
	return container_of(user, struct host, user);
}

static void host_set(struct host *host, struct qrdma_peer *peer)
{
	struct qrdma_ah *ah = peer ? qrdma_peer_ah(peer, 0x77, false) : NULL;

	if (IS_ERR(ah))
		ah = NULL;
	spin_lock_bh(&session_lock);
	swap(host->peer, peer);
	swap(host->ah, ah);
	spin_unlock_bh(&session_lock);
	qrdma_ah_put(ah);
	qrdma_peer_put(peer);
}

static void host_put(struct qrdma_peer_user *user)
{
	struct host *host = host_of(user);

	if (refcount_dec_and_test(&host->refs))
		kfree(host);
}

static void host_hold(struct qrdma_peer_user *user)
{
	refcount_inc(&host_of(user)->refs);
}

static void host_event(struct qrdma_peer_user *user, enum qrdma_peer_event event,
		       struct qrdma_peer *peer, int err)
{
	struct host *host = host_of(user);
	struct host *gone = NULL;
	u32 i;

	mutex_lock(&host->lock);
	if (qrdma_peer_user_attached(user)) {
		if (event == QRDMA_PEER_READY)
			host_set(host, qrdma_peer_get(peer));
		else if (event != QRDMA_PEER_MTU)
			host_set(host, NULL);
	}
	mutex_unlock(&host->lock);
	if (event != QRDMA_PEER_GONE)
		return;
	/* The next request finds it again. */
	spin_lock_bh(&session_lock);
	for (i = 0; i < ECHO_HOSTS; i++) {
		if (hosts[i] == host) {
			gone = host;
			hosts[i] = NULL;
		}
	}
	spin_unlock_bh(&session_lock);
	if (gone)
		host_put(&gone->user);
}

static const struct qrdma_peer_user_ops host_ops = {
	.event	= host_event,
	.hold	= host_hold,
	.put	= host_put,
};

/* Softirq; session_lock is held */
static struct host *host_find(struct qrdma_rxbuf *rx)
{
	struct host **slot = NULL;
	struct host *host;
	u32 i;

	for (i = 0; i < ECHO_HOSTS; i++) {
		host = hosts[i];
		if (!host) {
			slot = &hosts[i];
			continue;
		}
		if (ipv6_addr_equal(&host->local, &rx->daddr) &&
		    ipv6_addr_equal(&host->remote, &rx->saddr))
			return host;
	}
	if (!slot || test_stopping)
		return NULL;
	host = kzalloc(sizeof(*host), GFP_ATOMIC);
	if (!host)
		return NULL;
	refcount_set(&host->refs, 1);
	mutex_init(&host->lock);
	host->local = rx->daddr;
	host->remote = rx->saddr;
	qrdma_peer_user_init(&host->user, &host_ops);
	if (qrdma_peer_resolve(&init_net, &host->local, &host->remote, 0, &host->user)) {
		kfree(host);
		return NULL;
	}
	*slot = host;
	return host;
}

static void echo_answer(struct qrdma_lane *lane, struct qrdma_rxbuf *rx)
{
	struct echo_msg *msg;
	struct qrdma_txbuf *tx;
	struct host *host;
	struct qrdma_ah *ah = NULL;
	u32 qkey = 0;

	spin_lock_bh(&session_lock);
	host = host_find(rx);
	if (host && host->ah) {
		ah = qrdma_ah_get(host->ah);
		qkey = host->peer->qkey;
	}
	spin_unlock_bh(&session_lock);
	if (!ah)
		return;
	tx = qrdma_lane_tx_get(lane);
	if (tx) {
		memcpy(tx->data, rx->buf.data, rx->buf.len);
		msg = (struct echo_msg *)tx->data;
		swap(msg->sport, msg->dport);
		if (!qrdma_lane_tx_queue(lane, tx, rx->buf.len, ah, rx->src_qp, qkey))
			qrdma_lane_flush(lane);
		qrdma_lane_tx_put(tx);
	}
	qrdma_ah_put(ah);
}

static void echo_take(struct qrdma_rxbuf *rx)
{
	struct echo_msg *msg = (struct echo_msg *)rx->buf.data;
	u32 id = be32_to_cpu(msg->session), seq = be32_to_cpu(msg->seq);
	struct session *s;
	u32 i;

	spin_lock_bh(&session_lock);
	list_for_each_entry(s, &sessions, list) {
		if (s->id != id || seq >= s->count)
			continue;
		for (i = 0; i < rx->buf.len - sizeof(*msg); i++)
			s->bad += msg->fill[i] != echo_byte(seq, i);
		if (rx->net != &init_net || !rx->ifindex)
			s->bad++;
		if (!__test_and_set_bit(seq, s->acked)) {
			s->nacked++;
			wake_up(&s->wait);
		}
		break;
	}
	spin_unlock_bh(&session_lock);
}

static void test_rx(struct qrdma_lane *lane, struct qrdma_rxbuf *rx)
{
	struct echo_msg *msg = (struct echo_msg *)rx->buf.data;
	bool keep = false;

	spin_lock_bh(&session_lock);
	if (hold_left) {
		hold_left--;
		keep = true;
		list_add_tail(&rx->item.list, &held);
	}
	spin_unlock_bh(&session_lock);
	if (keep)
		return;
	if (rx->buf.len >= sizeof(*msg)) {
		if (msg->dport == cpu_to_be16(ECHO_PORT))
			echo_answer(lane, rx);
		else
			echo_take(rx);
	}
	qrdma_buf_put(&rx->buf);
}

static void test_tx_room(struct qrdma_lane *lane)
{
	struct session *s;

	spin_lock_bh(&session_lock);
	list_for_each_entry(s, &sessions, list)
		wake_up(&s->wait);
	spin_unlock_bh(&session_lock);
}

static const struct qrdma_verbs_ops test_ops = {
	.rx		= test_rx,
	.tx_room	= test_tx_room,
};

/* ---- sessions ---- */

static struct session *session_of(struct qrdma_peer_user *user)
{
	return container_of(user, struct session, user);
}

static void session_put(struct qrdma_peer_user *user)
{
	struct session *s = session_of(user);

	if (refcount_dec_and_test(&s->refs)) {
		kvfree(s->acked);
		kfree(s);
	}
}

static void session_hold(struct qrdma_peer_user *user)
{
	refcount_inc(&session_of(user)->refs);
}

static void session_set(struct session *s, struct qrdma_peer *peer)
{
	qrdma_ah_put(s->ah);
	qrdma_peer_put(s->peer);
	s->peer = peer;
	s->ah = peer ? qrdma_peer_ah(peer, s->id * 2654435761U, false) : NULL;
	if (IS_ERR(s->ah))
		s->ah = NULL;
}

static void session_event(struct qrdma_peer_user *user, enum qrdma_peer_event event,
			  struct qrdma_peer *peer, int err)
{
	struct session *s = session_of(user);

	mutex_lock(&s->lock);
	if (qrdma_peer_user_attached(user)) {
		switch (event) {
		case QRDMA_PEER_READY:
			session_set(s, qrdma_peer_get(peer));
			break;
		case QRDMA_PEER_STALE:
			session_set(s, NULL);
			break;
		case QRDMA_PEER_GONE:
			session_set(s, NULL);
			s->err = err;
			break;
		case QRDMA_PEER_MTU:
			break;
		}
	}
	mutex_unlock(&s->lock);
	wake_up(&s->wait);
}

static const struct qrdma_peer_user_ops session_ops = {
	.event	= session_event,
	.hold	= session_hold,
	.put	= session_put,
};

static struct session *session_begin(const struct in6_addr *local, const struct in6_addr *remote,
				     u32 count)
{
	struct session *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int err;

	if (!s)
		return ERR_PTR(-ENOMEM);
	refcount_set(&s->refs, 1);
	mutex_init(&s->lock);
	init_waitqueue_head(&s->wait);
	s->id = atomic_inc_return(&session_ids);
	s->count = count;
	s->acked = kvcalloc(BITS_TO_LONGS(count + 1), sizeof(long), GFP_KERNEL);
	qrdma_peer_user_init(&s->user, &session_ops);
	err = s->acked ? qrdma_peer_resolve(&init_net, local, remote, 0, &s->user) : -ENOMEM;
	if (err) {
		session_put(&s->user);
		return ERR_PTR(err);
	}
	spin_lock_bh(&session_lock);
	list_add(&s->list, &sessions);
	atomic_inc(&session_count);
	spin_unlock_bh(&session_lock);
	return s;
}

static void session_finish(struct session *s)
{
	spin_lock_bh(&session_lock);
	list_del(&s->list);
	atomic_dec(&session_count);
	spin_unlock_bh(&session_lock);
	mutex_lock(&s->lock);
	qrdma_peer_user_cancel(&s->user);
	session_set(s, NULL);
	mutex_unlock(&s->lock);
	session_put(&s->user);
}

/* Until there is a peer, or none */
static int session_wait(struct session *s)
{
	long left = wait_event_interruptible_timeout(s->wait,
						     READ_ONCE(s->ah) || READ_ONCE(s->err),
						     give_up * HZ);

	if (left < 0)
		return left;
	if (!left)
		return -ETIME;
	return READ_ONCE(s->err);
}

/* One message; under s->lock */
static int session_send(struct session *s, u32 seq, u32 size)
{
	struct qrdma_lane *lane = qrdma_device_lane(s->peer->dev, s->id);
	struct qrdma_txbuf *tx = qrdma_lane_tx_get(lane);
	struct echo_msg *msg;
	u32 i;
	int err;

	if (!tx)
		return qrdma_device_alive(s->peer->dev) ? -EAGAIN : -ENODEV;
	msg = (struct echo_msg *)tx->data;
	msg->sport = cpu_to_be16(1);
	msg->dport = cpu_to_be16(ECHO_PORT);
	msg->session = cpu_to_be32(s->id);
	msg->seq = cpu_to_be32(seq);
	for (i = 0; i < size - sizeof(*msg) && size <= QRDMA_UD_MAX; i++)
		msg->fill[i] = echo_byte(seq, i);
	err = qrdma_lane_tx_queue(lane, tx, size, s->ah, qrdma_peer_qpn(s->peer, s->id),
				  s->peer->qkey);
	qrdma_lane_tx_put(tx);
	return err;
}

/* Send what is in the window and not echoed. Errors of single sends are losses. */
static void session_burst(struct session *s, u32 from, u32 limit, u32 size)
{
	u32 seq, mtu;

	mutex_lock(&s->lock);
	if (!s->ah)
		goto out;
	mtu = qrdma_peer_max_datagram(s->peer) + QRDMA_PORT_HDR_LEN;
	for (seq = from; seq < limit; seq++)
		if (!test_bit(seq, s->acked))
			session_send(s, seq, min(size, mtu));
	qrdma_lane_flush(qrdma_device_lane(s->peer->dev, s->id));
out:
	mutex_unlock(&s->lock);
}

static void session_suspect(struct session *s)
{
	mutex_lock(&s->lock);
	if (s->peer)
		qrdma_peer_suspect(s->peer);
	mutex_unlock(&s->lock);
}

/* All before @edge has come back, or it has ended. */
static bool session_past(const struct session *s, u32 count, u32 base, u32 edge)
{
	return READ_ONCE(s->err) || find_next_zero_bit(s->acked, count, base) >= edge;
}

static int test_echo(const struct in6_addr *local, const struct in6_addr *remote, u32 count,
		     u32 size)
{
	unsigned long until = jiffies + give_up * HZ;
	u32 base = 0, edge = 0, before;
	struct session *s;
	int err;

	if (!count || count > ECHO_MAX || size < sizeof(struct echo_msg) || size > QRDMA_UD_MAX)
		return -EINVAL;
	s = session_begin(local, remote, count);
	if (IS_ERR(s))
		return PTR_ERR(s);
	err = session_wait(s);
	while (!err && READ_ONCE(s->nacked) < count) {
		base = find_next_zero_bit(s->acked, count, base);
		if (READ_ONCE(s->stop))
			count = max(edge, 1U);
		edge = min(base + ECHO_WINDOW, count);
		session_burst(s, base, edge, size);
		/* The window goes round, or time is up and what is missing goes again. */
		before = READ_ONCE(s->nacked);
		if (!wait_event_interruptible_timeout(s->wait, session_past(s, count, base, edge),
						      ECHO_RETRY) &&
		    before == READ_ONCE(s->nacked))
			session_suspect(s);
		err = READ_ONCE(s->err);
		if (!err && signal_pending(current))
			err = -EINTR;
		if (!err && time_after(jiffies, until))
			err = -ETIME;
		/* Leave some of a slow machine to those who watch. */
		schedule_timeout_interruptible(ECHO_PAUSE + atomic_read(&session_count));
	}
	if (!err && s->bad)
		err = -EILSEQ;
	session_finish(s);
	return err;
}

static int test_resolve(const struct in6_addr *local, const struct in6_addr *remote, u32 count,
			bool wait)
{
	struct session *s;
	int err = 0;

	while (count-- && !err) {
		s = session_begin(local, remote, 1);
		if (IS_ERR(s))
			return PTR_ERR(s);
		if (wait)
			err = session_wait(s);
		session_finish(s);
	}
	return err;
}

static int test_suspect(const struct in6_addr *local, const struct in6_addr *remote)
{
	struct session *s = session_begin(local, remote, 1);
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	err = session_wait(s);
	if (!err)
		session_suspect(s);
	session_finish(s);
	return err;
}

static int test_oversize(const struct in6_addr *local, const struct in6_addr *remote)
{
	struct session *s = session_begin(local, remote, 1);
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	err = session_wait(s);
	if (!err) {
		mutex_lock(&s->lock);
		err = s->ah ? session_send(s, 0, qrdma_device_max_datagram(s->peer->dev) +
					   QRDMA_PORT_HDR_LEN + 1) : -EAGAIN;
		mutex_unlock(&s->lock);
	}
	session_finish(s);
	return err;
}

/* ---- commands without an address ---- */

static int test_reset(void)
{
	struct qrdma_device *dev = NULL;
	u32 i;

	while ((dev = qrdma_device_next(dev)))
		for (i = 0; i < dev->nlanes; i++)
			qrdma_lane_reset(&dev->lane[i]);
	return 0;
}

static int test_stop(void)
{
	struct session *s;

	spin_lock_bh(&session_lock);
	list_for_each_entry(s, &sessions, list) {
		WRITE_ONCE(s->stop, true);
		wake_up(&s->wait);
	}
	spin_unlock_bh(&session_lock);
	return 0;
}

static int test_hold(u32 count)
{
	spin_lock_bh(&session_lock);
	hold_left = count;
	spin_unlock_bh(&session_lock);
	return 0;
}

static int test_release(void)
{
	struct qrdma_rxbuf *rx, *next;
	LIST_HEAD(list);

	spin_lock_bh(&session_lock);
	hold_left = 0;
	list_splice_init(&held, &list);
	spin_unlock_bh(&session_lock);
	list_for_each_entry_safe(rx, next, &list, item.list)
		qrdma_buf_put(&rx->buf);
	return 0;
}

static void test_give(void)
{
	mutex_lock(&taken_lock);
	while (ntaken)
		qrdma_lane_tx_put(taken[--ntaken]);
	kvfree(taken);
	taken = NULL;
	mutex_unlock(&taken_lock);
}

static int test_take(u32 count)
{
	struct qrdma_device *dev = qrdma_device_next(NULL);
	int err = 0;

	if (!dev)
		return -ENODEV;
	mutex_lock(&taken_lock);
	if (taken || count > ECHO_MAX) {
		err = -EINVAL;
		goto out;
	}
	taken = kvcalloc(count, sizeof(*taken), GFP_KERNEL);
	if (!taken) {
		err = -ENOMEM;
		goto out;
	}
	while (ntaken < count && !err) {
		taken[ntaken] = qrdma_lane_tx_get(&dev->lane[0]);
		if (taken[ntaken])
			ntaken++;
		else
			err = -EAGAIN;
	}
out:
	mutex_unlock(&taken_lock);
	qrdma_device_put(dev);
	return err;
}

static int test_reserve(u64 bytes, bool give)
{
	struct qrdma_device *dev = qrdma_device_next(NULL);
	int err = 0;

	if (!dev)
		return -ENODEV;
	if (give)
		qrdma_device_unreserve(dev, bytes);
	else
		err = qrdma_device_reserve(dev, bytes);
	qrdma_device_put(dev);
	return err;
}

static int test_addressed(const char *verb, char *local_text, char *remote_text, u32 a, u32 b)
{
	struct in6_addr local, remote;

	if (!in6_pton(local_text, -1, local.s6_addr, -1, NULL) ||
	    !in6_pton(remote_text, -1, remote.s6_addr, -1, NULL))
		return -EINVAL;
	if (!strcmp(verb, "echo"))
		return test_echo(&local, &remote, a, b);
	if (!strcmp(verb, "resolve"))
		return test_resolve(&local, &remote, a, true);
	if (!strcmp(verb, "cancel"))
		return test_resolve(&local, &remote, a, false);
	if (!strcmp(verb, "suspect"))
		return test_suspect(&local, &remote);
	if (!strcmp(verb, "oversize"))
		return test_oversize(&local, &remote);
	return -EINVAL;
}

static int test_command(char *text)
{
	char verb[16], local[64], remote[64];
	u64 number = 0;
	u32 a = 0, b = 0;

	if (sscanf(text, "%15s %63s %63s %u %u", verb, local, remote, &a, &b) >= 3)
		return test_addressed(verb, local, remote, a, b);
	if (sscanf(text, "%15s %llu", verb, &number) < 1)
		return -EINVAL;
	if (!strcmp(verb, "reset"))
		return test_reset();
	if (!strcmp(verb, "stop"))
		return test_stop();
	if (!strcmp(verb, "hold"))
		return test_hold(number);
	if (!strcmp(verb, "release"))
		return test_release();
	if (!strcmp(verb, "take"))
		return test_take(number);
	if (!strcmp(verb, "reserve") || !strcmp(verb, "unreserve"))
		return test_reserve(number, verb[0] == 'u');
	if (strcmp(verb, "give"))
		return -EINVAL;
	test_give();
	return 0;
}

static ssize_t test_write(struct file *file, const char __user *data, size_t len, loff_t *pos)
{
	char text[256];
	int err;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, data, len))
		return -EFAULT;
	text[len] = 0;
	err = test_command(text);
	return err ? err : len;
}

static const struct file_operations test_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= test_write,
};

static int __init lanes_init(void)
{
	int err = qrdma_device_start(&test_ops);

	if (err)
		return err;
	err = qrdma_peer_start();
	if (err) {
		qrdma_device_stop();
		return err;
	}
	test_file = debugfs_create_file("test", 0200, qrdma_device_debugfs(), NULL, &test_fops);
	return 0;
}

static void __exit lanes_exit(void)
{
	struct host *host;
	u32 i;

	debugfs_remove(test_file);
	test_release();
	test_give();
	spin_lock_bh(&session_lock);
	test_stopping = true;
	spin_unlock_bh(&session_lock);
	for (i = 0; i < ECHO_HOSTS; i++) {
		spin_lock_bh(&session_lock);
		host = hosts[i];
		hosts[i] = NULL;
		spin_unlock_bh(&session_lock);
		if (!host)
			continue;
		mutex_lock(&host->lock);
		qrdma_peer_user_cancel(&host->user);
		host_set(host, NULL);
		mutex_unlock(&host->lock);
		host_put(&host->user);
	}
	qrdma_peer_stop();
	qrdma_device_stop();
}

module_init(lanes_init);
module_exit(lanes_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("The verbs layer of AF_QRDMA with an echo program, for tests");
