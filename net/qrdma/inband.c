// SPDX-License-Identifier: GPL-2.0
/*
 * The handshake in band. See inband.h.
 *
 * The engine carries the bytes and asks for nothing of TLS; who speaks TLS sees sendmsg(),
 * recvmsg() and socket options. This file is what lies between: it never looks into the bytes.
 * QRDMA_CRYPTO_* of the programs are enum qrdma_level of the engine.
 */
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "core/conn_hs.h"
#include "crypto.h"
#include "demux.h"
#include "inband.h"
#include "initial.h"
#include "input.h"
#include "output.h"
#include "reset.h"
#include "retry.h"

/* Most handshake bytes of one sendmsg() */
#define INBAND_WRITE_MAX	(16 << 10)

/* TLS alert of one who cannot go on (RFC 8446 s6.2) */
#define INBAND_INTERNAL_ERROR	80

/*
 * Making
 */

static void inband_random_cid(struct qrdma_cid *cid)
{
	cid->len = QRDMA_CID_LEN;
	get_random_bytes(cid->data, QRDMA_CID_LEN);
}

/* @cid: what the Initial keys come from */
static int inband_make(struct qrdma_sock *qs, const struct qrdma_cid *cid)
{
	bool server = qs->setup.role == QRDMA_ROLE_SERVER;
	struct qrdma_inband *inband;
	int err = -ENOMEM;

	inband = kzalloc(sizeof(*inband), GFP_KERNEL_ACCOUNT);
	if (!inband)
		return -ENOMEM;
	inband->qs = qs;
	inband->by_agent = qs->setup.config.handshake == QRDMA_HANDSHAKE_AGENT;
	if (inband->by_agent) {
		inband->agent = qrdma_agent_new(&qs->sk);
		if (!inband->agent)
			goto err_free;
	}
	err = qrdma_initial_slots(cid->data, cid->len, &inband->slot[!server],
				  &inband->slot[server]);
	if (err)
		goto err_agent;
	WRITE_ONCE(qs->inband, inband);
	return 0;

err_agent:
	qrdma_agent_put(inband->agent);
err_free:
	kfree(inband);
	return err;
}

int qrdma_inband_client(struct qrdma_sock *qs)
{
	struct qrdma_setup *setup = &qs->setup;
	struct in6_addr server;
	int err;

	setup->role = QRDMA_ROLE_CLIENT;
	/* The stream is ours to open; more than that one the application asked for. */
	if (setup->local.initial_max_streams_bidi <= 1)
		setup->local.initial_max_streams_bidi = 0;
	/* left by an attempt of another role */
	setup->local.present &= ~BIT_ULL(QRDMA_TP_STATELESS_RESET_TOKEN);
	inband_random_cid(&setup->scid);
	inband_random_cid(&setup->dcid);
	err = inband_make(qs, &setup->dcid);
	if (err)
		return err;
	qrdma_addr_to_in6(&qs->remote, &server);
	qs->inband->token = qrdma_purse_take(sock_net(&qs->sk), &server,
					     qrdma_addr_port(&qs->remote));
	if (qs->inband->token)
		qrdma_stat_inc(QRDMA_STAT_TOKEN_SPENT);
	return 0;
}

int qrdma_inband_server(struct qrdma_sock *qs, const struct qrdma_cid *first,
			const struct qrdma_cid *peer, const struct qrdma_cid *odcid,
			bool validated)
{
	struct qrdma_setup *setup = &qs->setup;
	int err;

	setup->role = QRDMA_ROLE_SERVER;
	inband_random_cid(&setup->scid);
	if (!setup->local.initial_max_streams_bidi)
		setup->local.initial_max_streams_bidi = 1;
	qrdma_reset_token(setup->scid.data, setup->local.reset_token);
	setup->local.present |= BIT_ULL(QRDMA_TP_STATELESS_RESET_TOKEN);
	setup->dcid = *peer;
	err = inband_make(qs, first);
	if (err)
		return err;
	qs->inband->first = *first;
	qs->inband->odcid = odcid ? *odcid : *first;
	qs->inband->retried = odcid;
	qs->inband->validated = validated;
	return 0;
}

void qrdma_inband_config(const struct qrdma_sock *qs, struct qrdma_hs_config *hs)
{
	const struct qrdma_inband *inband = qs->inband;

	memset(hs, 0, sizeof(*hs));
	hs->timeout = (u64)qs->setup.config.connect_timeout * NSEC_PER_MSEC;
	if (qs->setup.role == QRDMA_ROLE_SERVER) {
		hs->odcid = &inband->odcid;
		hs->retry_scid = inband->retried ? &inband->first : NULL;
		hs->validated = inband->validated;
		return;
	}
	hs->retry = qrdma_retry_slot();
	if (inband->token) {
		hs->token = inband->token->token;
		hs->token_len = inband->token->len;
	}
}

/* Give a key away, or drop it. */
static int inband_install(struct qrdma_sock *qs, u8 level, bool send, u32 cipher,
			  struct qrdma_slot *cur)
{
	int err = qrdma_conn_install_level(qs->conn, level, send, cipher, cur);

	if (err)
		qrdma_kernel_aead.slot_put(cur);
	return err;
}

static int inband_install_initial(struct qrdma_sock *qs, struct qrdma_slot *slot[2])
{
	int send, err = 0;

	for (send = 0; send < 2; send++) {
		if (err)
			qrdma_kernel_aead.slot_put(slot[send]);
		else
			err = inband_install(qs, QRDMA_ENC_INITIAL, send,
					     QRDMA_CIPHER_AES_128_GCM, slot[send]);
		slot[send] = NULL;
	}
	return err;
}

int qrdma_inband_begin(struct qrdma_sock *qs)
{
	int err = inband_install_initial(qs, qs->inband->slot);
	struct qrdma_agent *agent = qs->inband->agent;

	/* The engine has a copy. */
	kfree(qs->inband->token);
	qs->inband->token = NULL;
	if (agent) {
		agent->attempt = qs->attempt;
		agent->role = qs->setup.role;
		agent->uid = qs->sk.sk_uid;
		agent->until = qs->alarm[QRDMA_ALARM_CONNECT];
	}
	if (!err)
		WRITE_ONCE(qs->inband->ready, true);
	return err;
}

/* After calls that may have left events: act on them, and send. */
static void inband_run(struct qrdma_sock *qs)
{
	qrdma_output_run(qs, qrdma_input_events(qs) | QRDMA_EV_TX);
}

void qrdma_inband_rekey(struct qrdma_sock *qs)
{
	struct qrdma_slot *slot[2];
	const struct qrdma_cid *cid;
	int err;

	if (!qs->live || !qs->conn || !qs->inband)
		return;
	qrdma_stat_inc(QRDMA_STAT_RETRY_GOT);
	cid = qrdma_conn_initial_cid(qs->conn);
	err = qrdma_initial_slots(cid->data, cid->len, &slot[1], &slot[0]);
	if (!err)
		err = inband_install_initial(qs, slot);
	/* Without them nothing can be said any more. */
	if (err)
		qrdma_sock_fail(qs, -err, QRDMA_REASON_NO_MEMORY);
	else
		inband_run(qs);
}

void qrdma_inband_free(struct qrdma_sock *qs)
{
	struct qrdma_inband *inband = qs->inband;

	if (!inband)
		return;
	if (inband->agent) {
		qrdma_agent_over(inband->agent, 0);
		qrdma_agent_put(inband->agent);
	}
	qrdma_kernel_aead.slot_put(inband->slot[0]);
	qrdma_kernel_aead.slot_put(inband->slot[1]);
	kfree(inband->token);
	WRITE_ONCE(qs->inband, NULL);
	kfree_rcu(inband, rcu);
}

/*
 * Keys, parameters, the result
 */

/* Is there a handshake that one could act upon? */
static int inband_check(const struct qrdma_sock *qs)
{
	return qs->live && qs->conn && qs->inband && qs->inband->ready ? 0 : -ENOTCONN;
}

int qrdma_inband_secret(struct qrdma_sock *qs, const struct qrdma_crypto_secret *s, u32 len)
{
	const struct qrdma_aead_ops *aead = &qrdma_kernel_aead;
	struct qrdma_slot *slot;
	int err = inband_check(qs);
	u8 level = s->level;

	if (err)
		return err;
	/* Initial keys are nobody's but the kernel's. */
	if (level >= QRDMA_ENCS || level == QRDMA_ENC_INITIAL)
		return -EINVAL;
	err = aead->slot_new(s->type, s->secret, len, &slot);
	if (err)
		return err;
	err = inband_install(qs, level, s->send, s->type, slot);
	if (err)
		return err;
	if (level == QRDMA_ENC_APP)
		qs->setup.cipher = s->type;
	inband_run(qs);
	return 0;
}

/* For the client's next connection. One that cannot be made is only not there. */
static void inband_give_token(struct qrdma_sock *qs)
{
	u8 token[QRDMA_TOKEN_LEN];
	struct in6_addr client;

	qrdma_addr_to_in6(&qs->remote, &client);
	if (!qrdma_retry_next(&client, token))
		qrdma_conn_give_token(qs->conn, token, sizeof(token));
}

int qrdma_inband_result(struct qrdma_sock *qs, const struct qrdma_handshake_result *result)
{
	int err = inband_check(qs);

	if (err)
		return err;
	if (!result->error) {
		if (result->judged)
			qrdma_conn_await_verdict(qs->conn);
		err = qrdma_conn_handshake_complete(qs->conn, qrdma_sock_now());
		if (!err)
			WRITE_ONCE(qs->inband->complete, true);
		if (!err && qs->setup.role == QRDMA_ROLE_SERVER)
			inband_give_token(qs);
	} else if (qs->sk.sk_state == TCP_ESTABLISHED) {
		err = -EALREADY;
	} else {
		qs->inband->err = result->error;
		qrdma_sock_react(qs, qrdma_conn_close(qs->conn, QRDMA_TLS_ERROR + result->alert,
						      false, qrdma_sock_now()));
	}
	inband_run(qs);
	return err;
}

int qrdma_inband_get_params(const struct qrdma_sock *qs, u8 *data, u32 size)
{
	return inband_check(qs) ?: qrdma_conn_tparams(qs->conn, data, size);
}

int qrdma_inband_set_params(struct qrdma_sock *qs, const u8 *data, u32 len)
{
	int err = inband_check(qs);

	if (err)
		return err;
	err = qrdma_conn_peer_tparams(qs->conn, data, len, qrdma_sock_now());
	inband_run(qs);
	return err;
}

int qrdma_inband_get_ticket(struct qrdma_sock *qs, u8 *data, u32 size)
{
	u32 copied = 0;
	const u8 *from;
	int n;

	if (!qs->conn || !qs->inband)
		return -ENOTCONN;
	while (copied < size) {
		n = qrdma_conn_crypto_peek(qs->conn, QRDMA_ENC_APP, &from);
		if (n <= 0)
			break;
		n = min_t(u32, n, size - copied);
		memcpy(data + copied, from, n);
		qrdma_conn_crypto_consume(qs->conn, QRDMA_ENC_APP, n);
		copied += n;
	}
	return copied ?: -ENODATA;
}

/*
 * Bytes
 */

int qrdma_inband_level(struct msghdr *msg)
{
	const struct qrdma_handshake_info *info;
	struct cmsghdr *cmsg;
	int level = -ENOENT;

	for_each_cmsghdr(cmsg, msg) {
		if (!CMSG_OK(msg, cmsg))
			return -EINVAL;
		if (cmsg->cmsg_level != SOL_QRDMA)
			continue;
		info = CMSG_DATA(cmsg);
		if (cmsg->cmsg_type != QRDMA_HANDSHAKE_INFO || level != -ENOENT ||
		    cmsg->cmsg_len != CMSG_LEN(sizeof(*info)) ||
		    memchr_inv(info->reserved, 0, sizeof(info->reserved)))
			return -EINVAL;
		level = info->level;
	}
	return level;
}

ssize_t qrdma_inband_sendmsg(struct qrdma_sock *qs, struct msghdr *msg, u8 level)
{
	size_t len = iov_iter_count(&msg->msg_iter);
	int err = inband_check(qs);
	u8 *data;

	if (err)
		return err;
	if (level >= QRDMA_ENCS || level == QRDMA_ENC_EARLY)
		return -EINVAL;
	if (len > INBAND_WRITE_MAX)
		return -EMSGSIZE;
	if (!len)
		return 0;
	data = kmalloc(len, GFP_KERNEL_ACCOUNT);
	if (!data)
		return -ENOMEM;
	err = copy_from_iter_full(data, len, &msg->msg_iter) ? 0 : -EFAULT;
	if (!err)
		err = qrdma_conn_crypto_write(qs->conn, level, data, len);
	kfree(data);
	if (err)
		return err == -ESTALE ? -EPIPE : err;
	inband_run(qs);
	return len;
}

/* Lowest level first, as the bytes of one decide about the next. Return: bytes, 0: none. */
static ssize_t inband_read(struct qrdma_sock *qs, struct msghdr *msg, size_t len, int flags)
{
	static const u8 order[] = { QRDMA_ENC_INITIAL, QRDMA_ENC_HANDSHAKE, QRDMA_ENC_APP };
	struct qrdma_handshake_info info = {};
	size_t i, n = 0;
	const u8 *data;
	int err;

	for (i = 0; i < ARRAY_SIZE(order) && !n; i++) {
		info.level = order[i];
		n = qrdma_conn_crypto_peek(qs->conn, info.level, &data);
	}
	if (!n)
		return 0;
	n = copy_to_iter(data, min(n, len), &msg->msg_iter);
	if (!n && len)
		return -EFAULT;
	err = put_cmsg(msg, SOL_QRDMA, QRDMA_HANDSHAKE_INFO, sizeof(info), &info);
	if (err)
		return err;
	if (!(flags & MSG_PEEK))
		qrdma_conn_crypto_consume(qs->conn, info.level, n);
	qrdma_sock_look_at_crypto(qs);
	return n;
}

/* Return: 0: look again. */
static int inband_wait(struct qrdma_sock *qs, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = &qs->sk;

	if (sk->sk_err)
		return sock_error(sk);
	if (sk->sk_state == TCP_CLOSE)
		return -ECONNABORTED;
	if (!*timeo)
		return -EAGAIN;
	if (signal_pending(current))
		return sock_intr_errno(*timeo);
	add_wait_queue(sk_sleep(sk), &wait);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	sk_wait_event(sk, timeo, sk->sk_err || !qrdma_sock_handshaking(qs) ||
		      qrdma_sock_crypto_readable(qs), &wait);
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	return 0;
}

ssize_t qrdma_inband_recvmsg(struct qrdma_sock *qs, struct msghdr *msg, size_t len, int flags)
{
	long timeo = sock_rcvtimeo(&qs->sk, flags & MSG_DONTWAIT);
	ssize_t ret;

	if (msg->msg_controllen < CMSG_SPACE(sizeof(struct qrdma_handshake_info)))
		return -EINVAL;
	if (!len)
		return 0;
	for (;;) {
		qrdma_input_drain(qs);
		ret = qs->conn ? inband_read(qs, msg, len, flags) : 0;
		if (ret)
			break;
		/* It is established meanwhile, or has ended. */
		if (!qrdma_sock_handshaking(qs)) {
			ret = qs->sk.sk_err ? sock_error(&qs->sk) : 0;
			break;
		}
		ret = inband_wait(qs, &timeo);
		if (ret)
			break;
	}
	return ret;
}

ssize_t qrdma_inband_recv_now(struct qrdma_sock *qs, struct msghdr *msg, size_t len, int flags)
{
	int err;

	if (msg->msg_controllen < CMSG_SPACE(sizeof(struct qrdma_handshake_info)))
		return -EINVAL;
	err = inband_check(qs);
	if (err)
		return err;
	/* What comes later is fetched in another way. */
	if (!len || qs->inband->complete)
		return 0;
	return inband_read(qs, msg, len, flags) ?: -EAGAIN;
}

void qrdma_inband_abandon(struct qrdma_sock *qs)
{
	const struct qrdma_handshake_result result = {
		.error = ECONNABORTED,
		.alert = INBAND_INTERNAL_ERROR,
	};
	struct qrdma_agent *agent = qs->inband->agent;

	if (!qrdma_agent_is_over(agent) && !qs->inband->complete) {
		qrdma_stat_inc(QRDMA_STAT_AGENT_LEFT);
		qrdma_inband_result(qs, &result);
	}
	qs->inband->agent = NULL;
	qrdma_agent_over(agent, 0);
	qrdma_agent_put(agent);
}
