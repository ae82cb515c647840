// SPDX-License-Identifier: GPL-2.0
/*
 * recvmsg and poll: stream 0 to the user. See recvmsg.h.
 */
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "accept.h"
#include "inband.h"
#include "input.h"
#include "output.h"
#include "recvmsg.h"

/* What would end a wait for bytes, looked at without the lock, too. */
static bool recvmsg_ready(const struct qrdma_sock *qs, u32 have)
{
	const struct sock *sk = &qs->sk;

	return READ_ONCE(qs->readable) > have || READ_ONCE(qs->rx_reset) || READ_ONCE(sk->sk_err) ||
	       (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) || READ_ONCE(sk->sk_state) == TCP_CLOSE;
}

/*
 * @have: bytes that are there and are not enough (MSG_PEEK). Return: 0, or that the socket was
 * cut off meanwhile.
 */
static int recvmsg_wait(struct qrdma_sock *qs, u32 have, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = &qs->sk;
	int ret;

	add_wait_queue(sk_sleep(sk), &wait);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	ret = sk_wait_event(sk, timeo, recvmsg_ready(qs, have), &wait);
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	return min(ret, 0);
}

/* Nothing can be read now. Return: 0: wait; 1: it is the end; or the error. The order is TCP's. */
static int recvmsg_empty(const struct qrdma_sock *qs, long timeo)
{
	struct sock *sk = (struct sock *)&qs->sk;

	if (qs->rx_reset)
		return -ECONNRESET;
	if (sk->sk_err)
		return sock_error(sk);
	if (sk->sk_shutdown & RCV_SHUTDOWN)
		return 1;
	if (sk->sk_state == TCP_CLOSE)
		return -ENOTCONN;
	if (!timeo)
		return -EAGAIN;
	if (signal_pending(current))
		return sock_intr_errno(timeo);
	return 0;
}

/*
 * Bytes were read, and there are not enough of them: is there no use in waiting? What it is comes
 * with the next call. Bytes that were only peeked at keep the window shut: when it is full, more
 * of them do not come (TCP would wait for ever).
 */
static bool recvmsg_enough(const struct qrdma_sock *qs, bool peek, long timeo)
{
	const struct sock *sk = &qs->sk;

	if (peek && qs->conn && qrdma_conn_rx_full(qs->conn, 0))
		return true;
	return qs->rx_reset || sk->sk_err || (sk->sk_shutdown & RCV_SHUTDOWN) ||
	       sk->sk_state == TCP_CLOSE || !timeo || signal_pending(current);
}

/* A run of contiguous bytes to the user. Return: bytes, 0: there are none. */
static int recvmsg_run(struct qrdma_sock *qs, struct msghdr *msg, size_t len, u32 skip, int flags)
{
	const u8 *data;
	int n;

	if (!qs->conn)
		return 0;
	n = qrdma_conn_peek(qs->conn, 0, skip, &data);
	if (n <= 0)
		return 0;
	n = min_t(size_t, n, len);
	if (!(flags & MSG_TRUNC)) {
		n = copy_to_iter(data, n, &msg->msg_iter);
		if (!n)
			return -EFAULT;
	}
	return n;
}

/* Return: event bits. */
static u32 recvmsg_consume(struct qrdma_sock *qs, u32 len)
{
	u32 ev = qrdma_conn_consume(qs->conn, 0, len);

	sk_peek_offset_bwd(&qs->sk, len);
	return ev | qrdma_sock_was_read(qs, len);
}

/* Return: bytes, or an error when there were none. */
static ssize_t recvmsg_bytes(struct qrdma_sock *qs, struct msghdr *msg, size_t len, int flags,
			     long timeo)
{
	size_t target = sock_rcvlowat(&qs->sk, flags & MSG_WAITALL, len);
	u32 skip, ev = 0, begin = max(sk_peek_offset(&qs->sk, flags), 0);
	bool peek = flags & MSG_PEEK;
	size_t copied = 0;
	int ret;

	for (;;) {
		skip = peek ? begin + copied : 0;
		ret = copied < len ? recvmsg_run(qs, msg, len - copied, skip, flags) : 0;
		if (ret < 0)
			break;
		if (ret > 0) {
			copied += ret;
			if (peek)
				sk_peek_offset_fwd(&qs->sk, ret);
			else
				ev |= recvmsg_consume(qs, ret);
			if (copied == len)
				break;
			continue;
		}
		/* Credit and acknowledgements go before we wait, or return. */
		qrdma_output_run(qs, ev);
		ev = 0;
		qrdma_input_drain(qs);
		if (qs->readable > skip) {
			if (!len)
				break;
			continue;
		}
		if (copied >= target)
			break;
		if (copied)
			ret = recvmsg_enough(qs, peek, timeo);
		else
			ret = recvmsg_empty(qs, timeo);
		if (!ret)
			ret = recvmsg_wait(qs, skip, &timeo);
		if (ret)
			break;
	}
	qrdma_output_run(qs, ev);
	return copied ?: min(ret, 0);
}

int qrdma_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	struct qrdma_sock *qs = qrdma_sk(sk);
	ssize_t ret;

	if (flags & MSG_ERRQUEUE)
		return -EAGAIN;
	if (flags & MSG_OOB)
		return -EINVAL;
	msg->msg_namelen = 0;
	lock_sock(sk);
	if (sk->sk_state == TCP_LISTEN)
		ret = -ENOTCONN;
	else if (qrdma_sock_handshaking(qs))
		ret = qrdma_inband_recvmsg(qs, msg, len, flags);
	else
		ret = recvmsg_bytes(qs, msg, len, flags,
				    sock_rcvtimeo(sk, flags & MSG_DONTWAIT));
	release_sock(sk);
	return ret;
}

__poll_t qrdma_poll(struct file *file, struct socket *sock, struct poll_table_struct *wait)
{
	struct sock *sk = sock->sk;
	struct qrdma_sock *qs = qrdma_sk(sk);
	__poll_t mask = 0;
	u8 shutdown;
	int state;

	sock_poll_wait(file, sock, wait);
	state = READ_ONCE(sk->sk_state);
	shutdown = READ_ONCE(sk->sk_shutdown);
	if (state == TCP_LISTEN)
		return qrdma_accept_readable(qs) ? EPOLLIN | EPOLLRDNORM : 0;

	if (shutdown == SHUTDOWN_MASK || state == TCP_CLOSE)
		mask |= EPOLLHUP;
	if (shutdown & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (qrdma_sock_handshaking(qs)) {
		mask |= EPOLLOUT | EPOLLWRNORM;
		if (qrdma_sock_crypto_readable(qs))
			mask |= EPOLLIN | EPOLLRDNORM;
	} else if (state != TCP_SYN_SENT && state != TCP_SYN_RECV) {
		if (READ_ONCE(qs->readable) >= qrdma_sock_lowat(qs) || READ_ONCE(qs->rx_reset))
			mask |= EPOLLIN | EPOLLRDNORM;
		if (shutdown & SEND_SHUTDOWN) {
			mask |= EPOLLOUT | EPOLLWRNORM;
		} else if (sk_stream_is_writeable(sk)) {
			mask |= EPOLLOUT | EPOLLWRNORM;
		} else {
			sk_set_bit(SOCKWQ_ASYNC_NOSPACE, sk);
			set_bit(SOCK_NOSPACE, &sock->flags);
			/*
			 * Pairs with the look at the flag behind the release of memory: one of
			 * both sees the other.
			 */
			smp_mb__after_atomic();
			if (sk_stream_is_writeable(sk))
				mask |= EPOLLOUT | EPOLLWRNORM;
		}
	}
	/* Pairs with the order error, then wake-up: who was woken by an error sees it. */
	smp_rmb();
	if (READ_ONCE(sk->sk_err) || !skb_queue_empty_lockless(&sk->sk_error_queue))
		mask |= EPOLLERR;
	return mask;
}
