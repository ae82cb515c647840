// SPDX-License-Identifier: GPL-2.0
/*
 * Input: from the lane to the socket, through the AEAD into the engine. See input.h.
 */
#include <linux/interrupt.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/conn_hs.h"
#include "core/stateless.h"
#include "demux.h"
#include "input.h"
#include "listen.h"
#include "output.h"
#include "refuse.h"
#include "reset.h"

/* Datagrams that wait for an engine to be made: a client's first flight */
#define INPUT_EARLY_MAX		8

/**
 * struct input - one datagram between the lane and the engine
 * @rx: what the engine sees of it
 * @node: on the socket's list of idle, or of opened, records
 * @turns: who comes second, the submitter or the completion, goes on with an asynchronous open
 * @err: its result
 * @attempt: @attempt of the socket when the open began
 * @held: the engine had kept it for want of a key: @rx.buf is not a lane's buffer
 * @qs: socket; referenced while the open is in flight
 *
 * Owned by: the socket's lists, or the operation. @rx.buf holds the reference to the received
 * buffer.
 */
struct input {
	struct qrdma_rx rx;
	struct list_head node;
	atomic_t turns;
	int err;
	u32 attempt;
	bool held;
	struct qrdma_sock *qs;
};

/**
 * struct input_batch - sockets that got datagrams on this CPU since the tasklet ran
 * @lock: guards @list; taken by the lane's softirq and the tasklet
 * @list: by batch node
 * @tasklet: works them off
 */
struct input_batch {
	spinlock_t lock;	/* guards list */
	struct list_head list;
	struct tasklet_struct tasklet;
};

static DEFINE_PER_CPU(struct input_batch, input_batches);
static struct kmem_cache *input_cache;

static struct input *input_get(struct qrdma_sock *qs)
{
	struct input *in = list_first_entry_or_null(&qs->rxq.free, struct input, node);

	if (in) {
		list_del(&in->node);
		qs->rxq.nfree--;
		/* what the engine has noted of the last datagram */
		in->rx.total = 0;
		in->rx.alias = false;
		in->rx.at = 0;
		return in;
	}
	return kmem_cache_zalloc(input_cache, GFP_ATOMIC | __GFP_NOWARN);
}

/* The datagram is used up. Socket lock. */
static void input_put(struct qrdma_sock *qs, struct input *in)
{
	qrdma_buf_put(in->rx.buf);
	in->rx.buf = NULL;
	if (!qs->live || qs->rxq.nfree >= QRDMA_FREE_RECORDS) {
		kmem_cache_free(input_cache, in);
		return;
	}
	list_add(&in->node, &qs->rxq.free);
	qs->rxq.nfree++;
}

/* The socket is on a batch list already? rxq.lock is held. */
static bool input_mark_batched(struct qrdma_sock *qs)
{
	bool was = qs->rxq.batched;

	lockdep_assert_held(&qs->rxq.lock);
	qs->rxq.batched = true;
	return was;
}

/* To the batch list of this CPU. The reference to @qs goes along. Softirqs are off. */
static void input_batch(struct qrdma_sock *qs)
{
	struct input_batch *batch = this_cpu_ptr(&input_batches);

	spin_lock(&batch->lock);
	list_add_tail(&qs->rxq.batch, &batch->list);
	spin_unlock(&batch->lock);
	tasklet_schedule(&batch->tasklet);
}

/*
 * The second of submitter and completion is here: give the record back to the socket, which goes
 * on with it in the tasklet. Not here: an engine may end one request within the submission of
 * another, when the socket's lock is held.
 */
static void input_opened(struct input *in)
{
	struct qrdma_sock *qs = in->qs;
	bool batched;

	local_bh_disable();
	spin_lock(&qs->rxq.lock);
	list_add_tail(&in->node, &qs->rxq.done);
	batched = input_mark_batched(qs);
	spin_unlock(&qs->rxq.lock);
	if (batched)
		sock_put(&qs->sk);
	else
		input_batch(qs);
	local_bh_enable();
}

static void input_open_done(struct qrdma_aead_op *op, int err)
{
	struct input *in = container_of(op, struct input, rx.op);

	in->err = err;
	if (atomic_inc_return(&in->turns) == 2)
		input_opened(in);
}

/*
 * Open one packet. Return: true when the result is there, in @in->err; false: the record will
 * come back through rxq.done.
 */
static bool input_open(struct qrdma_sock *qs, struct input *in)
{
	int err;

	in->qs = qs;
	in->attempt = qs->attempt;
	in->rx.op.done = input_open_done;
	atomic_set(&in->turns, 0);
	err = in->rx.aead->open(&in->rx.op);
	if (err != -EINPROGRESS) {
		in->err = err;
		return true;
	}
	/* From here on @err of the record is the completion's, which may have been here already. */
	sock_hold(&qs->sk);
	qs->rxq.inflight++;
	/*
	 * Not input_opened() here, which would take the lock that we have: done by a list that we
	 * look at next.
	 */
	if (atomic_inc_return(&in->turns) == 2) {
		qs->rxq.inflight--;
		sock_put(&qs->sk);
		return true;
	}
	return false;
}

/* Apply an opened packet; note where it came from. */
static u32 input_finish(struct qrdma_sock *qs, struct input *in)
{
	const struct qrdma_rxbuf *rxbuf;
	u32 ev;

	/* The clock is read for each packet: opening a batch takes longer than some round trips. */
	ev = qrdma_conn_rx_finish(qs->conn, &in->rx, in->err, qrdma_sock_now());

	if (in->held || in->rx.drop != QRDMA_DROP_NONE || !qs->path.peer)
		return ev;
	/* Answers go to the queue pair that the last authenticated packet came from. */
	rxbuf = qrdma_rxbuf_of(in->rx.buf);
	if (ipv6_addr_equal(&rxbuf->saddr, &qs->path.peer->remote))
		qs->path.qpn = rxbuf->src_qp;
	return ev;
}

/* Packet after packet of a datagram, until it is used up or an open goes on without us. */
static u32 input_packets(struct qrdma_sock *qs, struct input *in)
{
	enum qrdma_rx_verdict verdict;
	u64 now = qrdma_sock_now();
	bool opened = false;
	u32 ev = 0;

	while (in->rx.len) {
		/* as in output_seal(): no softirq while the vector unit is ours */
		local_bh_disable();
		verdict = qrdma_conn_rx_begin(qs->conn, &in->rx, now);
		if (verdict == QRDMA_RX_OPEN)
			opened = input_open(qs, in);
		local_bh_enable();
		if (verdict != QRDMA_RX_OPEN) {
			/* of a generation that has to be derived? */
			if (unlikely(in->rx.drop == QRDMA_DROP_NO_KEY))
				ev |= qrdma_conn_events(qs->conn, now);
			continue;
		}
		if (!opened)
			return ev;
		ev |= input_finish(qs, in);
	}
	input_put(qs, in);
	return ev;
}

/* It came here by what it ends with, not by the connection id in it. */
static bool input_is_stray(const struct qrdma_sock *qs, const struct input *in)
{
	return !(in->rx.data[0] & QRDMA_HDR_LONG) &&
	       memcmp(in->rx.data + 1, qs->cid, QRDMA_CID_LEN);
}

static u32 input_datagram(struct qrdma_sock *qs, struct qrdma_rxbuf *rxbuf)
{
	struct input *in = input_get(qs);
	u32 ev;

	if (!in) {
		qrdma_stat_inc(QRDMA_STAT_RX_NOMEM);
		qrdma_buf_put(&rxbuf->buf);
		return 0;
	}
	in->held = false;
	in->rx.buf = &rxbuf->buf;
	in->rx.data = rxbuf->buf.data + QRDMA_PORT_HDR_LEN;
	in->rx.len = rxbuf->buf.len - QRDMA_PORT_HDR_LEN;
	in->rx.ecn = rxbuf->tclass & 3;
	in->rx.copy = !qs->path.peer || qrdma_device_rx_tight(qs->path.peer->dev);
	if (unlikely(input_is_stray(qs, in))) {
		ev = qrdma_conn_on_stray(qs->conn, in->rx.data, in->rx.len, qrdma_sock_now());
		input_put(qs, in);
		return ev;
	}
	return input_packets(qs, in);
}

static u32 input_held(struct qrdma_sock *qs)
{
	struct input *in;
	u32 ev = 0;

	while ((in = input_get(qs))) {
		in->held = true;
		if (!qrdma_conn_held(qs->conn, &in->rx)) {
			input_put(qs, in);
			break;
		}
		ev |= input_packets(qs, in);
	}
	return ev;
}

u32 qrdma_input_events(struct qrdma_sock *qs)
{
	u32 ev = qrdma_conn_events(qs->conn, qrdma_sock_now());

	if (ev & QRDMA_EV_HELD)
		ev |= input_held(qs);
	return ev;
}

/* Packets whose asynchronous open has ended. */
static u32 input_process_done(struct qrdma_sock *qs)
{
	struct input *in, *next;
	LIST_HEAD(done);
	u32 ev = 0;

	spin_lock_bh(&qs->rxq.lock);
	list_splice_init(&qs->rxq.done, &done);
	spin_unlock_bh(&qs->rxq.lock);
	list_for_each_entry_safe(in, next, &done, node) {
		list_del(&in->node);
		qs->rxq.inflight--;
		/* The engine that it belongs to may have been replaced. */
		if (!qs->live || !qs->conn || in->attempt != qs->attempt) {
			qrdma_rx_release(&in->rx);
			input_put(qs, in);
			continue;
		}
		ev |= input_finish(qs, in);
		ev |= input_packets(qs, in);
	}
	return ev;
}

static void input_fetch(struct qrdma_sock *qs)
{
	spin_lock_bh(&qs->rxq.lock);
	list_splice_tail_init(&qs->rxq.in, &qs->rxq.todo);
	qs->rxq.nr = 0;
	spin_unlock_bh(&qs->rxq.lock);
}

/* What was fetched, as far as the AEAD takes it. */
static u32 input_process_todo(struct qrdma_sock *qs)
{
	struct qrdma_rxbuf *rxbuf;
	u32 ev = 0;

	while (qs->rxq.inflight < QRDMA_ASYNC_MAX) {
		rxbuf = list_first_entry_or_null(&qs->rxq.todo, struct qrdma_rxbuf, item.list);
		if (!rxbuf)
			break;
		/* The engine is about to be made: link.c looks again then. */
		if (qs->live && !qs->conn && qs->inband)
			break;
		list_del(&rxbuf->item.list);
		if (!qs->live || !qs->conn) {
			qrdma_stat_inc(QRDMA_STAT_RX_LATE);
			qrdma_buf_put(&rxbuf->buf);
			continue;
		}
		ev |= input_datagram(qs, rxbuf);
	}
	return ev;
}

/*
 * All that is there. Socket lock, any context. Return: event bits.
 *
 * While the AEAD is behind, nothing is fetched: what waits in front of it is bounded by
 * QRDMA_RXQ_MAX, fetched and not fetched each.
 */
static u32 input_process(struct qrdma_sock *qs)
{
	u32 ev;

	ev = input_process_done(qs);
	ev |= input_process_todo(qs);
	if (list_empty(&qs->rxq.todo)) {
		input_fetch(qs);
		ev |= input_process_todo(qs);
	}
	/* A datagram may mean something to a handshake although nothing of it was opened. */
	if (qs->inband && qs->live && qs->conn)
		ev |= qrdma_input_events(qs);
	return ev;
}

/* A batch is complete: each socket of it sees what came. */
static void input_work_batch(struct tasklet_struct *t)
{
	struct input_batch *batch = from_tasklet(batch, t, tasklet);
	struct qrdma_sock *qs, *next;
	LIST_HEAD(list);

	spin_lock(&batch->lock);
	list_splice_init(&batch->list, &list);
	spin_unlock(&batch->lock);
	list_for_each_entry_safe(qs, next, &list, rxq.batch) {
		struct sock *sk = &qs->sk;

		list_del(&qs->rxq.batch);
		spin_lock(&qs->rxq.lock);
		qs->rxq.batched = false;
		spin_unlock(&qs->rxq.lock);

		bh_lock_sock(sk);
		if (sock_owned_by_user(sk)) {
			set_bit(QRDMA_DEFER_RX, &qs->deferred);
			qrdma_stat_inc(QRDMA_STAT_RX_DEFERRED);
		} else {
			qrdma_output_run(qs, input_process(qs));
		}
		bh_unlock_sock(sk);
		sock_put(sk);
	}
}

/* To the queue of its socket. The reference to @qs goes to the batch list, or is dropped. */
static void input_enqueue(struct qrdma_sock *qs, struct qrdma_rxbuf *rxbuf)
{
	bool first = false, full;

	spin_lock(&qs->rxq.lock);
	full = qs->rxq.nr >= (READ_ONCE(qs->conn) ? QRDMA_RXQ_MAX : INPUT_EARLY_MAX);
	if (!full) {
		list_add_tail(&rxbuf->item.list, &qs->rxq.in);
		qs->rxq.nr++;
		first = !input_mark_batched(qs);
	}
	spin_unlock(&qs->rxq.lock);
	if (full) {
		qrdma_stat_inc(QRDMA_STAT_RX_FULL);
		atomic_inc(&qs->sk.sk_drops);
		qrdma_buf_put(&rxbuf->buf);
	}
	if (first)
		input_batch(qs);
	else
		sock_put(&qs->sk);
}

static struct qrdma_sock *input_find_reset(const struct qrdma_rxbuf *rxbuf)
{
	const u8 *data = rxbuf->buf.data + QRDMA_PORT_HDR_LEN, *tail;

	tail = qrdma_hdr_reset_token(data, rxbuf->buf.len - QRDMA_PORT_HDR_LEN);
	return tail ? qrdma_demux_find_token(tail) : NULL;
}

/* Nobody listens there. Who wants a connection is told. */
static void input_refuse(const struct qrdma_rxbuf *rxbuf)
{
	const u8 *data = rxbuf->buf.data + QRDMA_PORT_HDR_LEN;
	u32 len = rxbuf->buf.len - QRDMA_PORT_HDR_LEN;
	struct qrdma_hdr hdr;

	if (qrdma_stateless_look(data, len, qrdma_lane_max_datagram(rxbuf->lane), &hdr) ==
	    QRDMA_FIRST_INITIAL)
		qrdma_refuse_answer(rxbuf, &hdr, QRDMA_ERR_CONNECTION_REFUSED);
}

/*
 * A datagram with a long header that is for no connection id of ours: for the id that a client has
 * chosen, or from a new client.
 */
static struct qrdma_sock *input_find_first(const struct qrdma_rxbuf *rxbuf,
					   const struct qrdma_hdr *hdr)
{
	struct qrdma_sock *qs = NULL;

	if (hdr)
		qs = qrdma_demux_find_first(hdr->dcid, hdr->dcid_len);
	if (!qs)
		qs = qrdma_listen_find(rxbuf->net, &rxbuf->daddr,
				       get_unaligned_be16(rxbuf->buf.data + 2), rxbuf->ifindex);
	if (!qs && rxbuf->net)
		input_refuse(rxbuf);
	return qs;
}

/*
 * No connection has that id. Is it a stateless reset for one of ours (RFC 9000 s10.3.1)? Else it is
 * from somebody who does not know yet that we have lost the connection.
 */
static struct qrdma_sock *input_find_stray(const struct qrdma_rxbuf *rxbuf,
					   const struct qrdma_hdr *hdr)
{
	struct qrdma_sock *qs;

	if (hdr->type != QRDMA_PKT_SHORT)
		return input_find_first(rxbuf, hdr);
	qs = input_find_reset(rxbuf);
	if (!qs)
		qrdma_reset_answer(rxbuf, hdr->dcid);
	return qs;
}

/* Whose datagram is it? NULL: nobody's, counted. */
static struct qrdma_sock *input_find(const struct qrdma_rxbuf *rxbuf)
{
	const u8 *data = rxbuf->buf.data;
	struct qrdma_sock *qs = NULL;
	struct qrdma_hdr hdr;
	bool ok;

	if (rxbuf->buf.len <= QRDMA_PORT_HDR_LEN) {
		qrdma_stat_inc(QRDMA_STAT_RX_HEADER);
		return NULL;
	}
	ok = qrdma_hdr_parse(&hdr, data + QRDMA_PORT_HDR_LEN,
			     rxbuf->buf.len - QRDMA_PORT_HDR_LEN) == QRDMA_HDR_OK;
	if (ok && hdr.dcid_len == QRDMA_CID_LEN)
		qs = qrdma_demux_find(hdr.dcid);
	if (!qs && ok)
		qs = input_find_stray(rxbuf, &hdr);
	else if (!qs && data[QRDMA_PORT_HDR_LEN] & QRDMA_HDR_LONG)
		qs = input_find_first(rxbuf, NULL);
	else if (!qs)	/* the shortest resets are too short for a packet */
		qs = input_find_reset(rxbuf);
	if (!qs) {
		qrdma_stat_inc(ok ? QRDMA_STAT_RX_UNKNOWN : QRDMA_STAT_RX_HEADER);
		return NULL;
	}
	if (rxbuf->net && rxbuf->net != sock_net(&qs->sk)) {
		qrdma_stat_inc(QRDMA_STAT_RX_NETNS);
		goto drop;
	}
	if (get_unaligned_be16(data + 2) != READ_ONCE(qs->port.num)) {
		qrdma_stat_inc(QRDMA_STAT_RX_PORT);
		goto drop;
	}
	return qs;
drop:
	sock_put(&qs->sk);
	return NULL;
}

void qrdma_input_rx(struct qrdma_lane *lane, struct qrdma_rxbuf *rxbuf)
{
	struct qrdma_sock *qs = input_find(rxbuf);

	qrdma_stat_inc(QRDMA_STAT_RX);
	if (!qs)
		qrdma_buf_put(&rxbuf->buf);
	else
		qrdma_input_give(qs, rxbuf);
}

void qrdma_input_give(struct qrdma_sock *qs, struct qrdma_rxbuf *rxbuf)
{
	local_bh_disable();
	if (READ_ONCE(qs->listener))
		qrdma_listen_give(qs, rxbuf);
	else
		input_enqueue(qs, rxbuf);
	local_bh_enable();
}

void qrdma_input_drain(struct qrdma_sock *qs)
{
	u32 ev;

	if (!READ_ONCE(qs->rxq.nr) && list_empty(&qs->rxq.todo) &&
	    list_empty_careful(&qs->rxq.done))
		return;
	ev = input_process(qs);
	qrdma_output_run(qs, ev);
}

void qrdma_input_release_cb(struct sock *sk)
{
	struct qrdma_sock *qs = qrdma_sk(sk);
	u32 ev = 0;

	if (likely(!READ_ONCE(qs->deferred)))
		return;
	if (test_and_clear_bit(QRDMA_DEFER_RX, &qs->deferred))
		ev |= input_process(qs);
	if (test_and_clear_bit(QRDMA_DEFER_TX, &qs->deferred))
		ev |= QRDMA_EV_TX;
	qrdma_output_run(qs, ev);
	if (test_and_clear_bit(QRDMA_DEFER_TIMER, &qs->deferred))
		qrdma_output_timeout(qs);
	if (test_and_clear_bit(QRDMA_DEFER_WORK, &qs->deferred))
		qrdma_sock_work(qs);
	if (test_and_clear_bit(QRDMA_DEFER_PEER, &qs->deferred))
		qrdma_peer_user_kick(&qs->path.user);
}

void qrdma_input_rest(struct qrdma_sock *qs)
{
	struct input *in, *next;

	list_for_each_entry_safe(in, next, &qs->rxq.free, node)
		kmem_cache_free(input_cache, in);
	INIT_LIST_HEAD(&qs->rxq.free);
	qs->rxq.nfree = 0;
}

void qrdma_input_detach(struct qrdma_sock *qs)
{
	struct qrdma_rxbuf *rxbuf, *next_buf;

	input_fetch(qs);
	list_for_each_entry_safe(rxbuf, next_buf, &qs->rxq.todo, item.list) {
		list_del(&rxbuf->item.list);
		qrdma_stat_inc(QRDMA_STAT_RX_LATE);
		qrdma_buf_put(&rxbuf->buf);
	}
	qrdma_input_rest(qs);
}

int qrdma_input_start(void)
{
	int cpu;

	input_cache = kmem_cache_create("qrdma_input", sizeof(struct input), 0,
					SLAB_HWCACHE_ALIGN, NULL);
	if (!input_cache)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct input_batch *batch = per_cpu_ptr(&input_batches, cpu);

		spin_lock_init(&batch->lock);
		INIT_LIST_HEAD(&batch->list);
		tasklet_setup(&batch->tasklet, input_work_batch);
	}
	return 0;
}

void qrdma_input_stop(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&input_batches, cpu)->tasklet);
	kmem_cache_destroy(input_cache);
}
