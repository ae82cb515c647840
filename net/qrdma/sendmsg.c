// SPDX-License-Identifier: GPL-2.0
/*
 * sendmsg: user bytes into stream 0. See sendmsg.h.
 *
 * Bytes are copied into chunks that the engine keeps until they are acknowledged; small writes
 * share a chunk. An error in the middle leaves the stream as if the call had asked for less.
 */
#include <linux/uio.h>

#include "inband.h"
#include "input.h"
#include "ipopt.h"
#include "output.h"
#include "sendmsg.h"

/* Memory of one chunk, its head included; a power of two, so that the allocator wastes nothing. */
#define SENDMSG_CHUNK_MIN	1024
#define SENDMSG_CHUNK_MAX	16384

/*
 * So many bytes are written before packets go out: the first are on their way while the rest is
 * copied.
 */
#define SENDMSG_PUSH		(64 << 10)

static bool sendmsg_connected(const struct sock *sk)
{
	return (1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT);
}

static int sendmsg_check(const struct qrdma_sock *qs)
{
	const struct sock *sk = &qs->sk;

	if (sk->sk_err || (sk->sk_shutdown & SEND_SHUTDOWN) || !qs->conn)
		return -EPIPE;
	return 0;
}

/* Into the room behind the last bytes written. Return: bytes, 0: no room. */
static int sendmsg_tail(struct qrdma_sock *qs, struct iov_iter *iter)
{
	size_t len;
	int room;
	u8 *at;

	room = qrdma_conn_write_tail(qs->conn, 0, &at);
	if (room <= 0)
		return room;
	len = copy_from_iter(at, min_t(size_t, room, iov_iter_count(iter)), iter);
	if (!len)
		return -EFAULT;
	qrdma_conn_write_commit(qs->conn, 0, len);
	return len;
}

/* Into a chunk of its own. Return: bytes. */
static int sendmsg_chunk(struct qrdma_sock *qs, struct iov_iter *iter)
{
	size_t len = iov_iter_count(iter) + sizeof(struct qrdma_buf);
	struct qrdma_buf *buf;
	int err;

	len = roundup_pow_of_two(clamp_t(size_t, len, SENDMSG_CHUNK_MIN, SENDMSG_CHUNK_MAX));
	buf = qrdma_buf_alloc(len - sizeof(*buf), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!buf)
		return -ENOMEM;
	len = copy_from_iter(buf->data, min_t(size_t, buf->len, iov_iter_count(iter)), iter);
	err = len ? qrdma_conn_write(qs->conn, 0, buf, 0, len) : -EFAULT;
	if (err && len)
		iov_iter_revert(iter, len);
	qrdma_buf_put(buf);
	return err ?: len;
}

/*
 * What was written may go. @more: the application said that more comes, so a short packet would
 * be a waste.
 */
static void sendmsg_push(struct qrdma_sock *qs, bool more)
{
	if (more && qrdma_conn_unsent(qs->conn, 0) < SENDMSG_PUSH) {
		qrdma_sock_react(qs, 0);
		if (qs->alarm[QRDMA_ALARM_CORK] == QRDMA_NEVER)
			qrdma_sock_set_alarm_ms(qs, QRDMA_ALARM_CORK, QRDMA_CORK_MS);
		qrdma_output_arm(qs);
		return;
	}
	qrdma_output_run(qs, QRDMA_EV_TX);
}

/* Wait until there is room for more. */
static int sendmsg_wait(struct qrdma_sock *qs, long *timeo)
{
	sendmsg_push(qs, false);
	qrdma_input_drain(qs);
	if (sk_stream_memory_free(&qs->sk))
		return 0;
	return sk_stream_wait_memory(&qs->sk, timeo);
}

/* Return: bytes taken, or an error when none were. */
static ssize_t sendmsg_bytes(struct qrdma_sock *qs, struct msghdr *msg, long timeo)
{
	struct sock *sk = &qs->sk;
	ssize_t copied = 0, pushed = 0;
	int ret = 0;

	while (iov_iter_count(&msg->msg_iter)) {
		ret = sendmsg_check(qs);
		if (ret)
			break;
		if (!sk_stream_memory_free(sk)) {
			ret = sendmsg_wait(qs, &timeo);
			if (ret)
				break;
			continue;
		}
		ret = sendmsg_tail(qs, &msg->msg_iter);
		if (!ret)
			ret = sendmsg_chunk(qs, &msg->msg_iter);
		if (ret < 0)
			break;
		copied += ret;
		qrdma_sock_react(qs, 0);
		if (copied - pushed >= SENDMSG_PUSH) {
			sendmsg_push(qs, false);
			qrdma_input_drain(qs);
			pushed = copied;
		}
	}
	if (copied && !sendmsg_check(qs))
		sendmsg_push(qs, (msg->msg_flags & MSG_MORE) || qrdma_ipopt_corked(qs));
	return copied ?: min(ret, 0);
}

int qrdma_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sock *sk = sock->sk;
	struct qrdma_sock *qs = qrdma_sk(sk);
	struct sockcm_cookie cookie = {};
	int level = -ENOENT;
	ssize_t ret;
	long timeo;

	if (msg->msg_flags & (MSG_OOB | MSG_FASTOPEN))
		return -EOPNOTSUPP;
	if (msg->msg_controllen) {
		level = qrdma_inband_level(msg);
		if (level < 0 && level != -ENOENT)
			return level;
		/* No option of SOL_SOCKET means anything here, but what is none is an error. */
		ret = sock_cmsg_send(sk, msg, &cookie);
		if (ret)
			return ret;
	}
	lock_sock(sk);
	if (level >= 0) {
		ret = qrdma_inband_by_agent(qs) ? -EBUSY : qrdma_inband_sendmsg(qs, msg, level);
		release_sock(sk);
		return ret;
	}
	timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	ret = 0;
	if (!sendmsg_connected(sk))
		ret = sk_stream_wait_connect(sk, &timeo);
	if (!ret)
		ret = sendmsg_check(qs);
	if (!ret)
		ret = sendmsg_bytes(qs, msg, timeo);
	if (ret < 0)
		ret = sk_stream_error(sk, msg->msg_flags, ret);
	release_sock(sk);
	return ret;
}
