// SPDX-License-Identifier: GPL-2.0
/*
 * The socket's state and wake-ups. See sock.h.
 */
#include <linux/sched/signal.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "core/conn_hs.h"
#include "crypto.h"
#include "sock.h"

static struct workqueue_struct *sock_wq;
struct kmem_cache *qrdma_sock_conns;

int qrdma_sock_start(void)
{
	qrdma_sock_conns = kmem_cache_create("qrdma_conn", qrdma_conn_size(), 0, 0, NULL);
	if (!qrdma_sock_conns)
		return -ENOMEM;
	sock_wq = alloc_workqueue("qrdma_sock", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (sock_wq)
		return 0;
	kmem_cache_destroy(qrdma_sock_conns);
	return -ENOMEM;
}

void qrdma_sock_stop(void)
{
	destroy_workqueue(sock_wq);
	kmem_cache_destroy(qrdma_sock_conns);
}

bool qrdma_sock_queue(struct work_struct *work)
{
	return queue_work(sock_wq, work);
}

void qrdma_sock_work(struct qrdma_sock *qs)
{
	sock_hold(&qs->sk);
	if (!qrdma_sock_queue(&qs->work))
		sock_put(&qs->sk);
}

void qrdma_sock_todo(struct qrdma_sock *qs, int bit)
{
	set_bit(bit, &qs->todo);
	qrdma_sock_work(qs);
}

/* As lock_sock() takes it. sk_lock.slock is held. */
static bool sock_lock_try(struct sock *sk)
{
	lockdep_assert_held(&sk->sk_lock.slock);
	if (sock_owned_by_user_nocheck(sk))
		return false;
	sk->sk_lock.owned = 1;
	return true;
}

bool qrdma_sock_lock_or_defer(struct qrdma_sock *qs, int bit)
{
	struct sock *sk = &qs->sk;
	bool got;

	spin_lock_bh(&sk->sk_lock.slock);
	got = sock_lock_try(sk);
	if (!got)
		set_bit(bit, &qs->deferred);
	spin_unlock_bh(&sk->sk_lock.slock);
	if (got)
		mutex_acquire(&sk->sk_lock.dep_map, 0, 1, _RET_IP_);
	return got;
}

int qrdma_sock_lock_for_agent(struct qrdma_sock *qs, struct qrdma_agent *agent)
{
	long timeo = msecs_to_jiffies(QRDMA_AGENT_LOCK_MS);
	struct sock *sk = &qs->sk;
	DEFINE_WAIT(wait);
	bool got;

	if (READ_ONCE(agent->stuck))
		return -ENOTCONN;
	spin_lock_bh(&sk->sk_lock.slock);
	got = sock_lock_try(sk);
	while (!got && timeo) {
		prepare_to_wait_exclusive(&sk->sk_lock.wq, &wait, TASK_UNINTERRUPTIBLE);
		spin_unlock_bh(&sk->sk_lock.slock);
		timeo = schedule_timeout(timeo);
		spin_lock_bh(&sk->sk_lock.slock);
		got = sock_lock_try(sk);
	}
	finish_wait(&sk->sk_lock.wq, &wait);
	spin_unlock_bh(&sk->sk_lock.slock);
	if (!got) {
		WRITE_ONCE(agent->stuck, true);
		return -ETIMEDOUT;
	}
	mutex_acquire(&sk->sk_lock.dep_map, 0, 1, _RET_IP_);
	return 0;
}

bool qrdma_sock_handshaking(const struct qrdma_sock *qs)
{
	const struct qrdma_inband *inband;
	bool ready;

	if (!qrdma_sock_connecting(qs))
		return false;
	rcu_read_lock();
	inband = READ_ONCE(qs->inband);
	ready = inband && !inband->by_agent && READ_ONCE(inband->ready) &&
		!READ_ONCE(inband->complete);
	rcu_read_unlock();
	return ready;
}

bool qrdma_sock_crypto_readable(const struct qrdma_sock *qs)
{
	const struct qrdma_inband *inband;
	bool readable;

	rcu_read_lock();
	inband = READ_ONCE(qs->inband);
	readable = inband && READ_ONCE(inband->readable);
	rcu_read_unlock();
	return readable;
}

void qrdma_sock_look_at_crypto(struct qrdma_sock *qs)
{
	bool readable = false;
	const u8 *data;
	int level;

	for (level = 0; level < QRDMA_ENCS && !readable; level++)
		readable = qrdma_conn_crypto_peek(qs->conn, level, &data) > 0;
	/* The connection may have retired while its reader slept. */
	if (qs->inband)
		WRITE_ONCE(qs->inband->readable, readable);
}

/*
 * As sk_stream_write_space(), which is not for modules: wake writers once a third of the buffer
 * is free.
 */
static void sock_write_space(struct sock *sk)
{
	struct socket *sock = READ_ONCE(sk->sk_socket);
	struct socket_wq *wq;

	if (!sock || !sk_stream_is_writeable(sk))
		return;
	clear_bit(SOCK_NOSPACE, &sock->flags);
	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND);
	if (wq && wq->fasync_list && !(READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN))
		sock_wake_async(wq, SOCK_WAKE_SPACE, POLL_OUT);
	rcu_read_unlock();
}

void qrdma_setup_drop_keys(struct qrdma_setup *setup)
{
	int i;

	for (i = 0; i < 2; i++) {
		qrdma_kernel_aead.slot_put(setup->slot[i]);
		setup->slot[i] = NULL;
	}
}

static void sock_destruct(struct sock *sk)
{
	struct qrdma_sock *qs = qrdma_sk(sk);

	qrdma_conn_destroy(qs->conn);
	qrdma_setup_drop_keys(&qs->setup);
	kfree(qs->listener);
	kfree(qs->kept);
	qrdma_stat_dec(QRDMA_STAT_SOCKETS);
}

void qrdma_sock_init(struct qrdma_sock *qs, bool ipv6, work_func_t work,
		     enum hrtimer_restart (*timer)(struct hrtimer *timer))
{
	struct sock *sk = &qs->sk;
	int i;

	qs->ipv6 = ipv6;
	qrdma_addr_any(&qs->local, ipv6);
	qrdma_addr_any(&qs->remote, ipv6);
	spin_lock_init(&qs->rxq.lock);
	INIT_LIST_HEAD(&qs->rxq.in);
	INIT_LIST_HEAD(&qs->rxq.done);
	INIT_LIST_HEAD(&qs->rxq.todo);
	INIT_LIST_HEAD(&qs->rxq.free);
	INIT_LIST_HEAD(&qs->txq.free);
	INIT_LIST_HEAD(&qs->txq.node);
	INIT_WORK(&qs->work, work);
	qrdma_hrtimer_setup(&qs->timer, timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	qs->timer_at = QRDMA_NEVER;
	for (i = 0; i < __QRDMA_ALARM_MAX; i++)
		qs->alarm[i] = QRDMA_NEVER;

	sk->sk_destruct = sock_destruct;
	sk->sk_write_space = sock_write_space;
	sk->sk_sndbuf = QRDMA_BUF_DEFAULT;
	sk->sk_rcvbuf = QRDMA_BUF_DEFAULT;
	sock_set_flag(sk, SOCK_RCU_FREE);
	qrdma_stat_inc(QRDMA_STAT_SOCKETS);
}

void qrdma_sock_unbind(struct qrdma_sock *qs)
{
	if (!qs->port.num)
		return;
	qrdma_port_release(&qs->port);
	qrdma_sidr_unserve(qs->port.net);
}

static void sock_set_error(struct qrdma_sock *qs, int err)
{
	WRITE_ONCE(qs->sk.sk_err, err);
	sk_error_report(&qs->sk);
}

/* The connection, or the attempt, is over: everybody who waits has to look again. */
static void sock_ended(struct qrdma_sock *qs, int state, int err)
{
	struct sock *sk = &qs->sk;

	if (qrdma_sock_connecting(qs))
		qrdma_stat_inc(QRDMA_STAT_FAILED);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	WRITE_ONCE(sk->sk_state, state);
	if (qs->inband && qs->inband->agent)
		qrdma_agent_over(qs->inband->agent, err);
	if (err)
		sock_set_error(qs, err);
	sk->sk_state_change(sk);
	sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_HUP);
}

static u32 sock_reason(const struct qrdma_conn_error *error)
{
	if (!error->app && error->code >= QRDMA_TLS_ERROR && error->code < QRDMA_TLS_ERROR + 256)
		return QRDMA_REASON_HANDSHAKE;
	switch (error->err) {
	case ETIMEDOUT:
		return QRDMA_REASON_IDLE;
	case EKEYEXPIRED:
		return QRDMA_REASON_KEY_LIMIT;
	case ENOMEM:
		return QRDMA_REASON_NO_MEMORY;
	}
	if (error->stateless)
		return QRDMA_REASON_PEER_LOST;
	if (!error->app && error->code)
		return error->remote ? QRDMA_REASON_PEER_ERROR : QRDMA_REASON_PROTOCOL;
	return error->remote ? QRDMA_REASON_PEER_CLOSE : QRDMA_REASON_LOCAL_CLOSE;
}

/* The engine has ended. What has arrived can still be read; what was not acknowledged is lost. */
static void sock_on_closed(struct qrdma_sock *qs)
{
	struct qrdma_conn_error error;
	int state = TCP_CLOSE;

	qrdma_conn_error(qs->conn, &error);
	if (!error.closed || qs->error.reason)
		return;
	qs->error.code = error.code;
	qs->error.frame_type = error.frame_type;
	qs->error.app = error.app;
	qs->error.remote = error.remote;
	qs->error.reason = sock_reason(&error);
	if (error.stateless)
		qrdma_stat_inc(QRDMA_STAT_RESET_GOT);

	/* Who spoke TLS knows better what it means. */
	if (qs->inband && qs->inband->err && !error.remote)
		error.err = qs->inband->err;
	if (qrdma_sock_connecting(qs) && !error.err)
		error.err = ECONNRESET;
	if (qs->sk.sk_state == TCP_ESTABLISHED && error.remote && !error.err)
		state = TCP_CLOSE_WAIT;
	sock_ended(qs, state, error.err);
}

static void sock_on_established(struct qrdma_sock *qs)
{
	struct sock *sk = &qs->sk;

	if (!qrdma_sock_connecting(qs))
		return;
	qrdma_sock_clear_alarm(qs, QRDMA_ALARM_CONNECT);
	qs->spent = true;
	WRITE_ONCE(sk->sk_state, TCP_ESTABLISHED);
	qrdma_stat_inc(QRDMA_STAT_ESTABLISHED);
	sk->sk_state_change(sk);
	sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
}

/*
 * What poll(), waits and the memory accounting see of the engine, which is not theirs to look at.
 */
static void sock_mirror(struct qrdma_sock *qs, u32 ev)
{
	struct sock *sk = &qs->sk;
	const u8 *data;

	WRITE_ONCE(sk->sk_wmem_queued, min_t(u32, qrdma_conn_tx_mem(qs->conn), INT_MAX));
	atomic_set(&sk->sk_rmem_alloc, min_t(u32, qrdma_conn_rx_mem(qs->conn), INT_MAX));
	WRITE_ONCE(qs->readable, min_t(u64, qrdma_conn_readable(qs->conn, 0), INT_MAX));
	if (!(ev & QRDMA_EV_READABLE))
		return;
	if (qrdma_conn_rx_complete(qs->conn, 0))
		WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | RCV_SHUTDOWN);
	else if (!qs->readable && qrdma_conn_peek(qs->conn, 0, 0, &data) == -ECONNRESET)
		WRITE_ONCE(qs->rx_reset, true);
}

/*
 * Memory to receive into is short, or is so no more: RFC 9000 lets us grant nothing for as long
 * as we like.
 */
static void sock_check_credit(struct qrdma_sock *qs)
{
	bool hold;

	if (!qs->path.peer)
		return;
	hold = qrdma_device_rx_low(qs->path.peer->dev);
	if (hold)
		qrdma_sock_set_alarm(qs, QRDMA_ALARM_RETRY, qrdma_sock_now() + QRDMA_RETRY_NS);
	if (hold == qs->credit_held)
		return;
	qs->credit_held = hold;
	qrdma_conn_hold_credit(qs->conn, hold);
}

/* The server gave us a token for our next connection. */
static void sock_keep_token(struct qrdma_sock *qs)
{
	struct in6_addr server;
	const u8 *token;
	u32 len = qrdma_conn_token(qs->conn, &token);

	qrdma_addr_to_in6(&qs->remote, &server);
	if (len && !qrdma_purse_put(sock_net(&qs->sk), &server, qrdma_addr_port(&qs->remote), token,
				    len))
		qrdma_stat_inc(QRDMA_STAT_TOKEN_KEPT);
}

/* Nobody is there who would read it: what comes after a handshake is not to fill its room. */
static void sock_drop_crypto(struct qrdma_sock *qs)
{
	const u8 *data;
	int n;

	while ((n = qrdma_conn_crypto_peek(qs->conn, QRDMA_ENC_APP, &data)) > 0)
		qrdma_conn_crypto_consume(qs->conn, QRDMA_ENC_APP, n);
	qrdma_sock_look_at_crypto(qs);
}

u32 qrdma_sock_speak(struct qrdma_sock *qs)
{
	bool server = qs->setup.role == QRDMA_ROLE_SERVER;
	struct qrdma_inband *inband = qs->inband;

	if (!inband->by_agent) {
		qs->sk.sk_data_ready(&qs->sk);
		return 0;
	}
	if (!inband->agent) {
		sock_drop_crypto(qs);
		return 0;
	}
	/* A server has nothing to say before a client has spoken. */
	if ((server && !inband->readable) || !qrdma_agent_tell(inband->agent))
		return 0;
	qrdma_stat_inc(QRDMA_STAT_AGENT_ABSENT);
	if (server) {
		inband->err = ECONNREFUSED;
		return qrdma_conn_close(qs->conn, QRDMA_ERR_CONNECTION_REFUSED, false,
					qrdma_sock_now());
	}
	qrdma_sock_fail(qs, ESRCH, QRDMA_REASON_NO_AGENT);
	return 0;
}

u32 qrdma_sock_react(struct qrdma_sock *qs, u32 ev)
{
	struct sock *sk = &qs->sk;

	if (!qs->conn)
		return 0;
	sock_check_credit(qs);
	if (ev & QRDMA_EV_ESTABLISHED)
		sock_on_established(qs);
	/* Without FIN the engine says so each time that nothing is under way. */
	if ((ev & QRDMA_EV_ACKED) && (sk->sk_shutdown & SEND_SHUTDOWN))
		qs->acked = true;
	/* What came in after close() was read by nobody: not a clean end, as a reset is none. */
	if (qs->acked && qs->closing)
		ev |= qrdma_conn_close(qs->conn, qrdma_conn_readable(qs->conn, 0) ?
				       QRDMA_APP_ABORT : QRDMA_APP_CLOSE, true, qrdma_sock_now());
	sock_mirror(qs, ev);
	if ((ev & QRDMA_EV_CRYPTO) && qs->inband) {
		qrdma_sock_look_at_crypto(qs);
		ev |= qrdma_sock_speak(qs);
	}
	if (ev & QRDMA_EV_TOKEN)
		sock_keep_token(qs);
	if (ev & QRDMA_EV_CLOSED)
		sock_on_closed(qs);
	if (ev & QRDMA_EV_INITIAL_KEYS)
		qrdma_sock_todo(qs, QRDMA_TODO_INITIAL);
	if (ev & QRDMA_EV_NEED_KEY)
		qrdma_sock_todo(qs, QRDMA_TODO_KEYS);
	if (ev & QRDMA_EV_QUIET)
		qrdma_sock_todo(qs, QRDMA_TODO_QUIET);
	if (ev & QRDMA_EV_LOSS) {
		qrdma_stat_inc(QRDMA_STAT_LOSS);
		if (qs->path.peer)
			atomic64_inc(&qs->path.peer->dev->loss_events);
	}
	if ((ev & QRDMA_EV_SUSPECT) && qs->path.peer)
		qrdma_peer_suspect(qs->path.peer);
	if (ev & QRDMA_EV_DRAINED)
		qrdma_sock_todo(qs, QRDMA_TODO_RETIRE);
	if ((ev & QRDMA_EV_READABLE) &&
	    (qs->readable >= qrdma_sock_lowat(qs) || qs->rx_reset ||
	     (sk->sk_shutdown & RCV_SHUTDOWN)))
		sk->sk_data_ready(sk);
	if (ev & QRDMA_EV_WRITABLE)
		sk->sk_write_space(sk);
	return ev;
}

void qrdma_sock_fail(struct qrdma_sock *qs, int err, u32 reason)
{
	if (!qs->live)
		return;
	if (qs->conn) {
		qrdma_conn_abort(qs->conn);
		sock_mirror(qs, 0);
	}
	if (!qs->error.reason) {
		qs->error.reason = reason;
		sock_ended(qs, TCP_CLOSE, err);
		qs->sk.sk_write_space(&qs->sk);
	}
	qrdma_sock_todo(qs, QRDMA_TODO_RETIRE);
}

/*
 * The window starts small and doubles whenever the application has read as much as it is, up to
 * what SO_RCVBUF stands for: many idle connections promise little, and a busy one needs a few
 * round trips to its full size. Beyond the first credit, which was promised before the device was
 * known, nothing is promised that the device's pool cannot hold.
 */
u32 qrdma_sock_was_read(struct qrdma_sock *qs, u32 len)
{
	u64 more, max = qrdma_sock_window_max(qs);

	qs->read_since += len;
	if (qs->window >= max || qs->read_since < qs->window || !qs->path.peer)
		return 0;
	qs->read_since = 0;
	more = min(qs->window, max - qs->window);
	if (qrdma_device_reserve(qs->path.peer->dev, more))
		return 0;
	qs->reserved += more;
	qs->window += more;
	qrdma_conn_set_rx_mem_max(qs->conn, qrdma_sock_rx_cap(qs));
	qrdma_conn_set_rx_window(qs->conn, qs->window);
	return QRDMA_EV_TX;
}
