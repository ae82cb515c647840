// SPDX-License-Identifier: GPL-2.0
/*
 * Output: ask the engine for datagrams, seal them, hand them to the lane; and the timer. See
 * output.h.
 */
#include <linux/slab.h>

#include "compat.h"
#include "demux.h"
#include "output.h"

/*
 * Room of the datagram that goes out although data has to wait for send buffers: enough for ACKs
 * and probes.
 */
#define OUTPUT_URGENT_MAX	256

/* The timer goes off no sooner than so many ns from now: other work gets its turn between. */
#define OUTPUT_TIMER_MIN	10000

/* Datagrams posted as one chain, at most. */
#define OUTPUT_CHAIN		32

/* Sockets that wait for send buffers, by lane. */
#define OUTPUT_WAIT_HASH	16

/**
 * struct output - one datagram between the engine and the lane
 * @tx: what the engine built
 * @node: on the socket's list of idle records
 * @turns: who comes second, the submitter or the completion, goes on with an asynchronous seal
 * @err: its result
 * @async: a seal of this datagram was asynchronous: the record has the references told below
 * @qs: socket; referenced while the seal is in flight
 * @buf: where the datagram is sealed to
 * @lane: where it goes; its device is referenced while the seal is in flight
 * @ah: how; referenced while the seal is in flight
 * @qpn: to which queue pair
 * @qkey: its key
 *
 * Owned by: the socket's list, or the operation. Protected by: the socket lock until the seal is
 * submitted.
 */
struct output {
	struct qrdma_tx tx;
	struct list_head node;
	atomic_t turns;
	int err;
	bool async;
	struct qrdma_sock *qs;
	struct qrdma_txbuf *buf;
	struct qrdma_lane *lane;
	struct qrdma_ah *ah;
	u32 qpn;
	u32 qkey;
};

static struct kmem_cache *output_cache;

static struct output_waiters {
	/* guards list, and qrdma_txq.waiting, .node and .wait_lane of who is on it */
	spinlock_t lock;
	struct list_head list;
} output_waiters[OUTPUT_WAIT_HASH];

int qrdma_output_start(void)
{
	int i;

	for (i = 0; i < OUTPUT_WAIT_HASH; i++) {
		spin_lock_init(&output_waiters[i].lock);
		INIT_LIST_HEAD(&output_waiters[i].list);
	}
	output_cache = kmem_cache_create("qrdma_output", sizeof(struct output), 0,
					 SLAB_HWCACHE_ALIGN, NULL);
	return output_cache ? 0 : -ENOMEM;
}

void qrdma_output_stop(void)
{
	kmem_cache_destroy(output_cache);
}

static struct output *output_get(struct qrdma_sock *qs)
{
	struct output *out = list_first_entry_or_null(&qs->txq.free, struct output, node);

	if (out) {
		list_del(&out->node);
		qs->txq.nfree--;
		return out;
	}
	return kmem_cache_zalloc(output_cache, GFP_ATOMIC | __GFP_NOWARN);
}

/* Socket lock. */
static void output_put(struct qrdma_sock *qs, struct output *out)
{
	if (qs->txq.nfree >= QRDMA_FREE_RECORDS) {
		kmem_cache_free(output_cache, out);
		return;
	}
	list_add(&out->node, &qs->txq.free);
	qs->txq.nfree++;
}

/*
 * The datagram is sealed, or is not to be: queue it. Any context; the record keeps only what is
 * freed with it.
 */
static void output_post(struct output *out)
{
	int err = out->err;

	if (err) {
		qrdma_stat_inc(QRDMA_STAT_TX_SEAL);
	} else {
		err = qrdma_lane_tx_queue(out->lane, out->buf, out->tx.len + QRDMA_PORT_HDR_LEN,
					  out->ah, out->qpn, out->qkey);
		qrdma_stat_inc(err ? QRDMA_STAT_TX_REFUSED : QRDMA_STAT_TX);
	}
	qrdma_tx_release(&out->tx);
	qrdma_lane_tx_put(out->buf);
	out->buf = NULL;
	out->err = err;
}

/* From the first asynchronous seal on the record has references of its own. */
static void output_hold(struct output *out)
{
	if (out->async)
		return;
	out->async = true;
	sock_hold(&out->qs->sk);
	qrdma_device_get(out->lane->dev);
	qrdma_ah_get(out->ah);
	atomic_inc(&out->qs->txq.inflight);
}

/* The datagram came to its end on the asynchronous way: nobody else knows the record any more. */
static void output_finish_async(struct output *out)
{
	struct qrdma_sock *qs = out->qs;
	struct qrdma_lane *lane = out->lane;

	output_post(out);
	qrdma_lane_flush(lane);
	qrdma_ah_put(out->ah);
	qrdma_device_put(lane->dev);
	kmem_cache_free(output_cache, out);
	/* The socket's lock may be held: by the submitter, or by one whose seal ends ours. */
	if (atomic_dec_return(&qs->txq.inflight) == QRDMA_ASYNC_MAX / 2)
		qrdma_sock_todo(qs, QRDMA_TODO_SEND);
	sock_put(&qs->sk);
}

/* A packet is sealed: protect its header. Return: is there another in the datagram? */
static bool output_more(struct output *out)
{
	if (!out->err)
		out->err = qrdma_tx_protect(&out->tx);
	return !out->err && qrdma_tx_next(&out->tx);
}

/*
 * Seal packet after packet. Return: true when the datagram is complete, or has failed; false: the
 * completion of a seal goes on with it.
 */
static bool output_packets(struct output *out)
{
	int err;

	do {
		atomic_set(&out->turns, 0);
		err = out->tx.aead->seal(&out->tx.op);
		if (err != -EINPROGRESS) {
			out->err = err;
			continue;
		}
		/* From here on @err is the completion's, which may have been here already. */
		output_hold(out);
		if (atomic_inc_return(&out->turns) != 2)
			return false;
	} while (output_more(out));
	return true;
}

static void output_sealed(struct qrdma_aead_op *op, int err)
{
	struct output *out = container_of(op, struct output, tx.op);

	out->err = err;
	if (atomic_inc_return(&out->turns) != 2)
		return;
	if (output_more(out) && !output_packets(out))
		return;
	output_finish_async(out);
}

/*
 * Seal and queue. The record is used up. Return: false when the datagram did not leave, so that
 * more would not either.
 */
static bool output_seal(struct qrdma_sock *qs, struct output *out)
{
	struct qrdma_path *path = &qs->path;
	bool ok, over;

	out->qs = qs;
	out->lane = path->lane;
	out->ah = out->tx.ect && path->ah_ect ? path->ah_ect : path->ah;
	out->qpn = path->qpn;
	out->qkey = path->peer->qkey;
	out->async = false;
	out->tx.op.done = output_sealed;
	/*
	 * A softirq in the middle of this would find the processor's vector unit taken: what it
	 * seals and opens would go to a worker, and come back behind its successors.
	 */
	local_bh_disable();
	over = output_packets(out);
	if (over && !out->async)
		output_post(out);
	local_bh_enable();
	if (!over)
		return true;
	if (out->async) {
		output_finish_async(out);
		return true;
	}
	ok = !out->err;
	output_put(qs, out);
	return ok;
}

static struct output_waiters *output_waiters_of(const struct qrdma_lane *lane)
{
	return &output_waiters[(lane->qpn + lane->index) % OUTPUT_WAIT_HASH];
}

/* The lane had no buffer: it will call qrdma_output_tx_room(). */
static void output_wait(struct qrdma_sock *qs)
{
	struct output_waiters *w = output_waiters_of(qs->path.lane);

	if (READ_ONCE(qs->txq.waiting))
		return;
	qrdma_stat_inc(QRDMA_STAT_TX_WAIT);
	sock_hold(&qs->sk);
	spin_lock_bh(&w->lock);
	qs->txq.wait_lane = qs->path.lane;
	WRITE_ONCE(qs->txq.waiting, true);
	list_add_tail(&qs->txq.node, &w->list);
	spin_unlock_bh(&w->lock);
}

/* The lane of a socket that waits changes only here and in output_wait(). */
void qrdma_output_unwait(struct qrdma_sock *qs)
{
	struct output_waiters *w;
	bool was;

	if (!READ_ONCE(qs->txq.waiting))
		return;
	w = output_waiters_of(qs->txq.wait_lane);
	spin_lock_bh(&w->lock);
	was = qs->txq.waiting;
	if (was)
		list_del_init(&qs->txq.node);
	WRITE_ONCE(qs->txq.waiting, false);
	spin_unlock_bh(&w->lock);
	if (was)
		sock_put(&qs->sk);
}

/* One datagram. Return: false when there is no more to do now. */
static bool output_one(struct qrdma_sock *qs, bool *blocked)
{
	struct qrdma_lane *lane = qs->path.lane;
	u64 now = qrdma_sock_now();	/* sealing a burst takes longer than some round trips */
	struct qrdma_txbuf *buf;
	struct output *out;
	bool urgent = false;
	int len;

	if (atomic_read(&qs->txq.inflight) >= QRDMA_ASYNC_MAX) {
		*blocked = true;
		return false;
	}
	buf = qrdma_lane_tx_get(lane);
	if (!buf) {
		*blocked = true;
		urgent = true;
		output_wait(qs);
		buf = qrdma_lane_tx_get_urgent(lane);
		if (!buf)
			return false;
	}
	out = output_get(qs);
	if (!out) {
		*blocked = true;
		/* Nothing that is on its way would bring us here again. */
		qrdma_sock_set_alarm(qs, QRDMA_ALARM_RETRY, now + QRDMA_RETRY_NS);
		qrdma_lane_tx_put(buf);
		return false;
	}
	out->buf = buf;
	out->tx.data = buf->data + QRDMA_PORT_HDR_LEN;
	out->tx.cap = urgent ? OUTPUT_URGENT_MAX : qrdma_lane_max_datagram(lane);
	len = qrdma_packer_build(qs->conn, &out->tx, now);
	if (len <= 0) {
		qrdma_lane_tx_put(buf);
		output_put(qs, out);
		if (len == -EKEYEXPIRED)
			qrdma_sock_react(qs, QRDMA_EV_CLOSED);
		if (len == -ENOMEM)
			*blocked = true;
		return false;
	}
	put_unaligned_be16(qs->port.num, buf->data);
	put_unaligned_be16(qrdma_addr_port(&qs->remote), buf->data + 2);
	if (!output_seal(qs, out)) {
		*blocked = true;
		return false;
	}
	return !urgent;
}

/* All that may be sent now. The first are on the wire while the rest is being sealed. */
static void output_burst(struct qrdma_sock *qs, bool *blocked)
{
	u32 n = 0;

	while (output_one(qs, blocked)) {
		if (++n % OUTPUT_CHAIN == 0)
			qrdma_lane_flush(qs->path.lane);
	}
	qrdma_lane_flush(qs->path.lane);
}

/* When the timer has to go off. @blocked: what the engine would like to send now cannot go. */
static u64 output_deadline(struct qrdma_sock *qs, u64 now, bool blocked)
{
	u64 at = QRDMA_NEVER;
	int i;

	if (qs->conn) {
		at = qrdma_conn_deadline(qs->conn);
		if (blocked)
			at = max(at, now + (qs->path.ah ? QRDMA_RETRY_NS : QRDMA_STRANDED_NS));
	}
	for (i = 0; i < __QRDMA_ALARM_MAX; i++)
		at = min(at, qs->alarm[i]);
	return at;
}

static void output_set_timer(struct qrdma_sock *qs, u64 now, bool blocked)
{
	u64 at;

	if (!qs->live)
		return;
	at = output_deadline(qs, now, blocked);
	/*
	 * A timer that goes off too early looks again and costs less than moving it with each
	 * packet.
	 */
	if (at >= qs->timer_at)
		return;
	qs->timer_at = at;
	at = max(at, now + OUTPUT_TIMER_MIN);
	hrtimer_start(&qs->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

void qrdma_output_arm(struct qrdma_sock *qs)
{
	output_set_timer(qs, qrdma_sock_now(), false);
}

void qrdma_output_run(struct qrdma_sock *qs, u32 ev)
{
	bool blocked = false;

	ev = qrdma_sock_react(qs, ev);
	if (!qs->live)
		return;
	if (unlikely(ev & QRDMA_EV_RESET_TOKEN))
		qrdma_demux_set_token(qs, qrdma_conn_reset_token(qs->conn));
	if (qs->conn && (ev & QRDMA_EV_TX)) {
		qrdma_sock_clear_alarm(qs, QRDMA_ALARM_CORK);
		if (qs->path.ah)
			output_burst(qs, &blocked);
		else
			blocked = true;
	}
	output_set_timer(qs, qrdma_sock_now(), blocked);
}

/* An alarm has gone off. Return: event bits. */
static u32 output_alarm(struct qrdma_sock *qs, enum qrdma_alarm alarm, u64 now)
{
	switch (alarm) {
	case QRDMA_ALARM_CONNECT:
		qrdma_sock_fail(qs, ETIMEDOUT, QRDMA_REASON_NO_ANSWER);
		return 0;
	case QRDMA_ALARM_LINGER:
		qrdma_stat_inc(QRDMA_STAT_ABORTED);
		return qrdma_conn_close(qs->conn, QRDMA_APP_TIMEOUT, true, now) | QRDMA_EV_TX;
	case QRDMA_ALARM_CORK:
	case QRDMA_ALARM_RETRY:
		return QRDMA_EV_TX;
	case QRDMA_ALARM_RESOLVE:
		qrdma_sock_todo(qs, QRDMA_TODO_RESOLVE);
		return 0;
	case QRDMA_ALARM_KEYS:
		qrdma_sock_todo(qs, QRDMA_TODO_KEYS);
		return 0;
	case QRDMA_ALARM_LOST:
		qrdma_stat_inc(QRDMA_STAT_STRANDED);
		qrdma_sock_fail(qs, -qs->path.err, QRDMA_REASON_NO_ANSWER);
		return 0;
	default:
		return 0;
	}
}

void qrdma_output_timeout(struct qrdma_sock *qs)
{
	u64 now = qrdma_sock_now();
	u32 ev = 0;
	int i;

	qs->timer_at = QRDMA_NEVER;
	if (!qs->live)
		return;
	for (i = 0; i < __QRDMA_ALARM_MAX; i++) {
		if (qs->alarm[i] > now)
			continue;
		qrdma_sock_clear_alarm(qs, i);
		ev |= output_alarm(qs, i, now);
	}
	if (qs->conn)
		ev |= qrdma_conn_timeout(qs->conn, now);
	qrdma_output_run(qs, ev);
}

/* Something may be sent again. No lock is held, softirqs are on. */
static void output_kick(struct qrdma_sock *qs)
{
	struct sock *sk = &qs->sk;

	local_bh_disable();
	bh_lock_sock(sk);
	if (sock_owned_by_user(sk))
		set_bit(QRDMA_DEFER_TX, &qs->deferred);
	else
		qrdma_output_run(qs, QRDMA_EV_TX);
	bh_unlock_sock(sk);
	local_bh_enable();
}

enum hrtimer_restart qrdma_output_timer(struct hrtimer *timer)
{
	struct qrdma_sock *qs = container_of(timer, struct qrdma_sock, timer);
	struct sock *sk = &qs->sk;

	bh_lock_sock(sk);
	if (sock_owned_by_user(sk))
		set_bit(QRDMA_DEFER_TIMER, &qs->deferred);
	else
		qrdma_output_timeout(qs);
	bh_unlock_sock(sk);
	return HRTIMER_NORESTART;
}

void qrdma_output_tx_room(struct qrdma_lane *lane)
{
	struct output_waiters *w = output_waiters_of(lane);
	struct qrdma_sock *qs, *next;
	LIST_HEAD(mine);

	spin_lock_bh(&w->lock);
	list_for_each_entry_safe(qs, next, &w->list, txq.node) {
		if (qs->txq.wait_lane == lane)
			list_move_tail(&qs->txq.node, &mine);
	}
	/*
	 * Still "waiting" while on our list: qrdma_output_unwait() may take it off, under the
	 * same lock.
	 */
	while (!list_empty(&mine)) {
		qs = list_first_entry(&mine, struct qrdma_sock, txq.node);
		list_del_init(&qs->txq.node);
		WRITE_ONCE(qs->txq.waiting, false);
		spin_unlock_bh(&w->lock);

		output_kick(qs);
		sock_put(&qs->sk);

		spin_lock_bh(&w->lock);
	}
	spin_unlock_bh(&w->lock);
}

void qrdma_output_rest(struct qrdma_sock *qs)
{
	struct output *out, *next;

	list_for_each_entry_safe(out, next, &qs->txq.free, node)
		kmem_cache_free(output_cache, out);
	INIT_LIST_HEAD(&qs->txq.free);
	qs->txq.nfree = 0;
}

void qrdma_output_detach(struct qrdma_sock *qs)
{
	qrdma_output_unwait(qs);
	qrdma_output_rest(qs);
}
