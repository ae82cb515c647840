// SPDX-License-Identifier: GPL-2.0
/*
 * Accept. See accept.h.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "accept.h"
#include "core/stateless.h"
#include "demux.h"
#include "inband.h"
#include "input.h"
#include "ipopt.h"
#include "link.h"
#include "refuse.h"
#include "retry.h"
#include "sockopt.h"

/*
 * Children
 */

/* How far must a handshake have come? To its begin if the program runs it, else to its end. */
static bool child_presentable(const struct qrdma_sock *qs)
{
	return (qrdma_sock_handshaking(qs) && qrdma_sock_crypto_readable(qs)) ||
	       qs->sk.sk_state == TCP_ESTABLISHED;
}

/* Lock of the child. */
static void child_look(struct sock *sk)
{
	struct qrdma_sock *qs = qrdma_sk(sk);
	struct qrdma_child *child = sk->sk_user_data;
	struct qrdma_listener *parent;
	struct sock *wake = NULL;

	if (!child)
		return;
	parent = child->parent;
	spin_lock_bh(&parent->lock);
	if (parent->open && !child->ready) {
		if (sk->sk_state == TCP_CLOSE) {
			qrdma_listen_kick(parent);
		} else if (child_presentable(qs)) {
			child->ready = true;
			list_move_tail(&child->list, &parent->ready);
			qrdma_listen_young(parent, -1);
			wake = &parent->qs->sk;
		}
	}
	spin_unlock_bh(&parent->lock);
	/* It cannot go away: the child has a reference. */
	if (wake)
		wake->sk_data_ready(wake);
}

/* A child becomes a socket like any other. Its lock is held, it is in no list. */
static void child_release(struct qrdma_child *child)
{
	struct sock *sk = &child->qs->sk;

	sk->sk_user_data = NULL;
	sk->sk_data_ready = child->data_ready;
	sk->sk_state_change = child->state_change;
	sock_put(&child->parent->qs->sk);
	kfree(child);
}

/* Nobody will accept it. It is in no list; the list's reference is used up. */
static void child_bury(struct qrdma_child *child)
{
	struct qrdma_sock *qs = child->qs;
	struct sock *sk = &qs->sk;

	lock_sock(sk);
	child_release(child);
	qrdma_link_abort(qs);
	qrdma_link_let_go(qs);
	release_sock(sk);
	sock_put(sk);
}

static void children_bury(struct list_head *dead)
{
	struct qrdma_child *child, *next;

	list_for_each_entry_safe(child, next, dead, list) {
		list_del(&child->list);
		child_bury(child);
	}
}

/* What a socket has from its listener, as TCP does it */
static void child_inherit(struct sock *sk, const struct sock *parent)
{
	struct qrdma_sock *qs = qrdma_sk(sk);
	const struct qrdma_sock *from = qrdma_sk(parent);

	sk->sk_protocol = parent->sk_protocol;
	sk->sk_type = parent->sk_type;
	sk->sk_bound_dev_if = parent->sk_bound_dev_if;
	sk->sk_reuse = parent->sk_reuse;
	sk->sk_ipv6only = parent->sk_ipv6only;
	sk->sk_priority = parent->sk_priority;
	sk->sk_mark = parent->sk_mark;
	sk->sk_uid = parent->sk_uid;
	sk->sk_sndbuf = READ_ONCE(parent->sk_sndbuf);
	sk->sk_rcvbuf = READ_ONCE(parent->sk_rcvbuf);
	sk->sk_userlocks = parent->sk_userlocks;
	sk->sk_rcvlowat = READ_ONCE(parent->sk_rcvlowat);
	sk->sk_rcvtimeo = READ_ONCE(parent->sk_rcvtimeo);
	sk->sk_sndtimeo = READ_ONCE(parent->sk_sndtimeo);
	sk->sk_lingertime = READ_ONCE(parent->sk_lingertime);
	sock_valbool_flag(sk, SOCK_LINGER, sock_flag(parent, SOCK_LINGER));
	sock_valbool_flag(sk, SOCK_KEEPOPEN, sock_flag(parent, SOCK_KEEPOPEN));
	qs->setup.config = from->setup.config;
	qs->setup.local = from->setup.local;
	qs->setup.ack_delay_us = from->setup.ack_delay_us;
	qs->setup.idle_us = from->setup.idle_us;
}

/* Names: those of the datagram. Return: 0, or that its host cannot be answered. */
static int child_name(struct qrdma_sock *qs, const struct qrdma_sock *parent,
		      const struct qrdma_rxbuf *rxbuf)
{
	u16 port = get_unaligned_be16(rxbuf->buf.data);
	int err = qrdma_ipopt_inherit(qs, parent) ?: qrdma_sidr_serve(sock_net(&qs->sk));

	if (err)
		return err;
	qrdma_addr_from_in6(&qs->local, &rxbuf->daddr, parent->port.num, rxbuf->ifindex, qs->ipv6);
	qrdma_addr_from_in6(&qs->remote, &rxbuf->saddr, port, rxbuf->ifindex, qs->ipv6);
	qrdma_port_share(&qs->port, &parent->port, &rxbuf->daddr);
	qs->bound = true;
	return 0;
}

/* A socket in the state of a new one; NULL: no memory. */
static struct qrdma_sock *child_sock(struct sock *parent)
{
	struct qrdma_sock *qs;
	struct sock *sk;

	sk = sk_alloc(sock_net(parent), PF_QRDMA, GFP_KERNEL, parent->sk_prot, 0);
	if (!sk)
		return NULL;
	sock_init_data(NULL, sk);
	sk->sk_state = TCP_CLOSE;
	qs = qrdma_sk(sk);
	qrdma_link_init(qs, qrdma_sk(parent)->ipv6);
	qrdma_setup_init(&qs->setup);
	child_inherit(sk, parent);
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, 1);
	return qs;
}

/* Hand it to the listener, unless that has closed meanwhile. The lock of the child is held. */
static bool child_adopt(struct qrdma_listener *parent, struct qrdma_child *child)
{
	struct sock *sk = &child->qs->sk;
	bool open;

	child->parent = parent;
	sock_hold(&parent->qs->sk);
	child->data_ready = sk->sk_data_ready;
	child->state_change = sk->sk_state_change;
	sk->sk_user_data = child;
	sk->sk_data_ready = child_look;
	sk->sk_state_change = child_look;
	spin_lock_bh(&parent->lock);
	open = parent->open;
	if (open) {
		list_add_tail(&child->list, &parent->young);
		qrdma_listen_young(parent, 1);
		parent->count++;
	}
	spin_unlock_bh(&parent->lock);
	if (!open)
		child_release(child);
	return open;
}

/*
 * A client's first packet: make the socket that answers. @odcid: where its very first one went to,
 * NULL: there was no Retry. @validated: its address is known to be its own.
 */
static int child_make(struct qrdma_listener *parent, const struct qrdma_rxbuf *rxbuf,
		      const struct qrdma_hdr *hdr, const struct qrdma_cid *odcid, bool validated)
{
	struct qrdma_cid first, peer;
	struct qrdma_child *child;
	struct qrdma_sock *qs;
	int err;

	child = kzalloc(sizeof(*child), GFP_KERNEL_ACCOUNT);
	if (!child)
		return -ENOMEM;
	qs = child_sock(&parent->qs->sk);
	if (!qs) {
		kfree(child);
		return -ENOMEM;
	}
	child->qs = qs;
	qrdma_cid_set(&first, hdr->dcid, hdr->dcid_len);
	qrdma_cid_set(&peer, hdr->scid, hdr->scid_len);
	lock_sock(&qs->sk);
	err = child_name(qs, parent->qs, rxbuf);
	if (!err)
		err = qrdma_inband_server(qs, &first, &peer, odcid, validated);
	if (!err)
		err = qrdma_link_open(qs);
	if (err) {
		qrdma_inband_free(qs);
		kfree(child);
	} else if (!child_adopt(parent, child)) {
		err = -ENOTCONN;
	}
	if (err) {
		qrdma_link_abort(qs);
		qrdma_link_let_go(qs);
	}
	release_sock(&qs->sk);
	if (err)
		sock_put(&qs->sk);
	return err;
}

/*
 * The listener's work
 */

static bool accept_full(struct qrdma_listener *listener)
{
	bool full;

	spin_lock_bh(&listener->lock);
	full = listener->count > READ_ONCE(listener->qs->sk.sk_max_ack_backlog);
	spin_unlock_bh(&listener->lock);
	return full;
}

/* Those that have died before anybody accepted them */
static void accept_bury(struct qrdma_listener *listener)
{
	struct qrdma_child *child, *next;
	LIST_HEAD(dead);

	spin_lock_bh(&listener->lock);
	list_for_each_entry_safe(child, next, &listener->young, list) {
		if (READ_ONCE(child->qs->sk.sk_state) == TCP_CLOSE) {
			list_move(&child->list, &dead);
			qrdma_listen_young(listener, -1);
			listener->count--;
		}
	}
	spin_unlock_bh(&listener->lock);
	children_bury(&dead);
}

/*
 * A client that is not known yet: its socket, with a reference, or NULL: it has to come again, or
 * has come in vain. What was not answered is counted.
 */
static struct qrdma_sock *accept_client(struct qrdma_listener *listener,
					const struct qrdma_rxbuf *rxbuf,
					const struct qrdma_hdr *hdr)
{
	struct sock *sk = &listener->qs->sk;
	enum qrdma_retry_verdict verdict;
	struct qrdma_cid odcid;
	int err;

	if (accept_full(listener) || qrdma_device_rx_low(rxbuf->lane->dev)) {
		qrdma_stat_inc(QRDMA_STAT_LISTEN_FULL);
		return NULL;
	}
	verdict = qrdma_retry_look(rxbuf, hdr, &odcid);
	if (verdict == QRDMA_RETRY_INVALID) {
		qrdma_refuse_answer(rxbuf, hdr, QRDMA_ERR_INVALID_TOKEN);
		return NULL;
	}
	if (verdict == QRDMA_RETRY_NONE && qrdma_listen_loaded(listener)) {
		qrdma_retry_answer(sock_net(sk), rxbuf, hdr, READ_ONCE(sk->sk_bound_dev_if));
		return NULL;
	}
	err = child_make(listener, rxbuf, hdr, verdict == QRDMA_RETRY_BACK ? &odcid : NULL,
			 verdict != QRDMA_RETRY_NONE);
	if (err) {
		qrdma_stat_inc(QRDMA_STAT_RX_NOMEM);
		return NULL;
	}
	return qrdma_demux_find_first(hdr->dcid, hdr->dcid_len);
}

/* The reference to @rxbuf is used up. */
static void accept_datagram(struct qrdma_listener *listener, struct qrdma_rxbuf *rxbuf)
{
	const u8 *data = rxbuf->buf.data + QRDMA_PORT_HDR_LEN;
	u32 len = rxbuf->buf.len - QRDMA_PORT_HDR_LEN;
	struct qrdma_sock *qs;
	struct qrdma_hdr hdr;

	if (qrdma_stateless_look(data, len, qrdma_lane_max_datagram(rxbuf->lane), &hdr) !=
	    QRDMA_FIRST_INITIAL) {
		qrdma_stat_inc(QRDMA_STAT_RX_UNKNOWN);
		goto drop;
	}
	/* Of several datagrams of one client the first has made the socket. */
	qs = qrdma_demux_find_first(hdr.dcid, hdr.dcid_len);
	if (!qs)
		qs = accept_client(listener, rxbuf, &hdr);
	if (!qs)
		goto drop;
	qrdma_input_give(qs, rxbuf);
	return;
drop:
	qrdma_buf_put(&rxbuf->buf);
}

static void accept_work(struct work_struct *work)
{
	struct qrdma_listener *listener = container_of(work, struct qrdma_listener, work);
	struct qrdma_device *dev;
	struct qrdma_rxbuf *rxbuf;

	accept_bury(listener);
	while ((rxbuf = qrdma_listen_take(listener))) {
		dev = rxbuf->lane->dev;
		accept_datagram(listener, rxbuf);
		qrdma_device_put(dev);
	}
	sock_put(&listener->qs->sk);
}

int qrdma_accept_listen(struct qrdma_sock *qs)
{
	int err = qrdma_port_listen(&qs->port, true);

	if (err)
		return err;
	err = qrdma_listen_insert(qs, accept_work);
	if (err)
		qrdma_port_listen(&qs->port, false);
	return err;
}

void qrdma_accept_stop(struct qrdma_sock *qs)
{
	struct qrdma_listener *listener = qs->listener;
	LIST_HEAD(orphans);

	if (!listener)
		return;
	qrdma_listen_remove(qs);
	spin_lock_bh(&listener->lock);
	list_splice_init(&listener->young, &orphans);
	list_splice_init(&listener->ready, &orphans);
	qrdma_listen_young(listener, -listener->nyoung);
	listener->count = 0;
	spin_unlock_bh(&listener->lock);
	children_bury(&orphans);
	qrdma_port_listen(&qs->port, false);
}

/*
 * accept()
 */

bool qrdma_accept_readable(const struct qrdma_sock *qs)
{
	return !list_empty_careful(&qs->listener->ready);
}

u32 qrdma_accept_ready(const struct qrdma_sock *qs)
{
	struct qrdma_listener *listener = qs->listener;
	const struct qrdma_child *child;
	u32 n = 0;

	spin_lock_bh(&listener->lock);
	list_for_each_entry(child, &listener->ready, list)
		n++;
	spin_unlock_bh(&listener->lock);
	return n;
}

static struct qrdma_child *accept_take(struct qrdma_listener *listener)
{
	struct qrdma_child *child;

	spin_lock_bh(&listener->lock);
	child = list_first_entry_or_null(&listener->ready, struct qrdma_child, list);
	if (child) {
		list_del(&child->list);
		listener->count--;
	}
	spin_unlock_bh(&listener->lock);
	return child;
}

/* The socket lock is held, and given up while waiting. */
static void accept_wait(struct qrdma_sock *qs, long *timeo)
{
	struct sock *sk = &qs->sk;
	DEFINE_WAIT(wait);

	prepare_to_wait_exclusive(sk_sleep(sk), &wait, TASK_INTERRUPTIBLE);
	release_sock(sk);
	if (!qrdma_accept_readable(qs) && READ_ONCE(sk->sk_state) == TCP_LISTEN)
		*timeo = schedule_timeout(*timeo);
	lock_sock(sk);
	finish_wait(sk_sleep(sk), &wait);
}

int qrdma_accept_next(struct qrdma_sock *qs, long timeo, struct qrdma_sock **next)
{
	struct sock *sk = &qs->sk;
	struct qrdma_child *child;

	for (;;) {
		if (sk->sk_state != TCP_LISTEN)
			return -EINVAL;
		child = accept_take(qs->listener);
		if (child)
			break;
		if (!timeo)
			return -EAGAIN;
		if (signal_pending(current))
			return sock_intr_errno(timeo);
		accept_wait(qs, &timeo);
	}
	*next = child->qs;
	lock_sock_nested(&child->qs->sk, SINGLE_DEPTH_NESTING);
	child_release(child);
	release_sock(&(*next)->sk);
	return 0;
}
