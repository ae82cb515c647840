// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options. See sockopt.h.
 *
 * Each option is one structure of fixed size. It is copied whole, checked whole, then applied
 * under the socket lock.
 */
#include <linux/net.h>
#include <linux/siphash.h>
#include <linux/sockptr.h>

#include "crypto.h"
#include "demux.h"
#include "inband.h"
#include "info.h"
#include "ipopt.h"
#include "link.h"
#include "output.h"
#include "reset.h"
#include "sockopt.h"

/* Those beyond are the kernel's own, which the programs never see. */
#define SOCKOPT_ERRNO_MAX	512

/*
 * The wire has milliseconds and we have microseconds: what is promised is at least what was asked
 * for.
 */
static u64 sockopt_us_to_ms(u32 us)
{
	return us / 1000 + !!(us % 1000);	/* DIV_ROUND_UP() would wrap around */
}

static void sockopt_config_defaults(struct qrdma_config *config)
{
	if (!config->granularity)
		config->granularity = QRDMA_GRANULARITY_US;
	if (!config->connect_timeout)
		config->connect_timeout = QRDMA_CONNECT_MS;
	if (!config->linger_timeout)
		config->linger_timeout = QRDMA_LINGER_MS;
}

/*
 * The byte stream is opened by the client, so only a server has a stream to grant. What
 * is more than that one the application asked for.
 */
static void sockopt_grant_stream(struct qrdma_setup *setup)
{
	u64 *streams = &setup->local.initial_max_streams_bidi;

	if (*streams <= 1)
		*streams = !setup->have_ids || setup->role == QRDMA_ROLE_SERVER;
}

/* What a new socket says to its peer. */
static void sockopt_local_defaults(struct qrdma_setup *setup)
{
	struct qrdma_tparams *tp = &setup->local;

	qrdma_tparams_init(tp);
	tp->max_idle_timeout = QRDMA_IDLE_MS;
	tp->initial_max_data = QRDMA_CREDIT_FIRST;
	tp->initial_max_stream_data_bidi_local = QRDMA_CREDIT_FIRST;
	tp->initial_max_stream_data_bidi_remote = QRDMA_CREDIT_FIRST;
	tp->max_ack_delay = QRDMA_ACK_DELAY_SAID_MS;
	setup->ack_delay_us = QRDMA_ACK_DELAY_SAID_MS * 1000;
	setup->idle_us = QRDMA_IDLE_MS * 1000;
	sockopt_grant_stream(setup);
}

void qrdma_setup_init(struct qrdma_setup *setup)
{
	sockopt_local_defaults(setup);
	qrdma_tparams_init(&setup->remote);
	sockopt_config_defaults(&setup->config);
	setup->config.handshake = QRDMA_HANDSHAKE_AGENT;
}

bool qrdma_setup_complete(const struct qrdma_setup *setup)
{
	return setup->have_ids && setup->have_remote && setup->slot[0] && setup->slot[1];
}

/* May what connect() uses still be changed? */
static int sockopt_unconnected(const struct qrdma_sock *qs)
{
	if (qs->live && qs->sk.sk_state == TCP_SYN_SENT)
		return -EALREADY;
	/* A listener's are what its children begin with. */
	if (qs->live || qs->spent || qs->listener)
		return -EISCONN;
	return 0;
}

static bool sockopt_zero(const void *data, size_t len)
{
	return !memchr_inv(data, 0, len);
}

static int sockopt_set_ids(struct qrdma_sock *qs, const struct qrdma_connection_ids *ids)
{
	struct qrdma_setup *setup = &qs->setup;
	int err;

	BUILD_BUG_ON(QRDMA_CONNECTION_ID_LEN != QRDMA_CID_LEN);
	BUILD_BUG_ON(QRDMA_CONNECTION_ID_MAX != QRDMA_CID_MAX);
	if (ids->role > QRDMA_ROLE_SERVER || ids->source_len != QRDMA_CONNECTION_ID_LEN ||
	    ids->dest_len > QRDMA_CONNECTION_ID_MAX ||
	    !sockopt_zero(ids->reserved, sizeof(ids->reserved)) ||
	    !sockopt_zero(ids->source + ids->source_len, sizeof(ids->source) - ids->source_len) ||
	    !sockopt_zero(ids->dest + ids->dest_len, sizeof(ids->dest) - ids->dest_len))
		return -EINVAL;
	err = sockopt_unconnected(qs);
	if (err)
		return err;
	setup->role = ids->role;
	setup->scid.len = ids->source_len;
	memcpy(setup->scid.data, ids->source, ids->source_len);
	setup->dcid.len = ids->dest_len;
	memcpy(setup->dcid.data, ids->dest, ids->dest_len);
	setup->have_ids = true;
	sockopt_grant_stream(setup);
	return 0;
}

static int sockopt_set_close(struct qrdma_sock *qs, const struct qrdma_connection_close *close)
{
	u32 ev;

	if (close->app != 1 || close->frame_type || close->remote || close->reason ||
	    close->code >> 62 || !sockopt_zero(close->reserved, sizeof(close->reserved)))
		return -EINVAL;
	if (!qs->live || !qs->conn)
		return -ENOTCONN;
	ev = qrdma_conn_close(qs->conn, close->code, true, qrdma_sock_now());
	qrdma_output_run(qs, ev | QRDMA_EV_TX);
	return 0;
}

static int sockopt_key_update(struct qrdma_sock *qs)
{
	int err;

	if (!qs->live || !qs->conn || qs->sk.sk_state != TCP_ESTABLISHED)
		return -ENOTCONN;
	err = qrdma_conn_key_update(qs->conn);
	if (err == -EAGAIN && qrdma_link_derive_keys(qs))
		err = qrdma_conn_key_update(qs->conn);
	if (!err)
		qrdma_output_run(qs, QRDMA_EV_TX | QRDMA_EV_NEED_KEY);
	return err;
}

/* 0 stands for the default, and is what a program says that does not care. */
static void sockopt_tparams_from_user(struct qrdma_tparams *tp,
				      const struct qrdma_transport_param *p)
{
	tp->disable_active_migration = p->disable_active_migration;
	tp->ack_delay_exponent = p->ack_delay_exponent;
	tp->active_cid_limit = p->active_connection_id_limit;
	tp->max_ack_delay = sockopt_us_to_ms(p->max_ack_delay);
	tp->max_udp_payload_size = p->max_udp_payload_size ?: QRDMA_TP_MAX_UDP_PAYLOAD_MAX;
	tp->max_idle_timeout = sockopt_us_to_ms(p->max_idle_timeout);
	tp->initial_max_data = p->max_data;
	tp->initial_max_stream_data_bidi_local = p->max_stream_data_bidi_local;
	tp->initial_max_stream_data_bidi_remote = p->max_stream_data_bidi_remote;
	tp->initial_max_stream_data_uni = p->max_stream_data_uni;
	tp->initial_max_streams_bidi = p->max_streams_bidi;
	tp->initial_max_streams_uni = p->max_streams_uni;
	tp->max_datagram_frame_size = p->max_datagram_frame_size;
}

static void sockopt_tparams_to_user(struct qrdma_transport_param *p, const struct qrdma_tparams *tp)
{
	p->disable_active_migration = tp->disable_active_migration;
	p->ack_delay_exponent = tp->ack_delay_exponent;
	p->active_connection_id_limit = min_t(u64, tp->active_cid_limit, U8_MAX);
	p->max_udp_payload_size = min_t(u64, tp->max_udp_payload_size, U32_MAX);
	p->max_data = tp->initial_max_data;
	p->max_stream_data_bidi_local = tp->initial_max_stream_data_bidi_local;
	p->max_stream_data_bidi_remote = tp->initial_max_stream_data_bidi_remote;
	p->max_stream_data_uni = tp->initial_max_stream_data_uni;
	p->max_streams_bidi = tp->initial_max_streams_bidi;
	p->max_streams_uni = tp->initial_max_streams_uni;
	p->max_datagram_frame_size = tp->max_datagram_frame_size;
}

static void sockopt_default(u64 *val, u64 dflt)
{
	if (!*val)
		*val = dflt;
}

static void sockopt_remote_token(struct qrdma_tparams *tp, const u8 *token)
{
	BUILD_BUG_ON(QRDMA_RESET_TOKEN_SIZE != QRDMA_RESET_TOKEN_LEN);
	if (sockopt_zero(token, QRDMA_RESET_TOKEN_SIZE))
		return;
	tp->present |= BIT_ULL(QRDMA_TP_STATELESS_RESET_TOKEN);
	memcpy(tp->reset_token, token, QRDMA_RESET_TOKEN_SIZE);
}

/* Our token is not for the application to choose; what get said it may set. */
static bool sockopt_own_token(const struct qrdma_setup *setup, const u8 *token)
{
	u8 own[QRDMA_RESET_TOKEN_LEN];

	if (sockopt_zero(token, QRDMA_RESET_TOKEN_SIZE))
		return true;
	if (!setup->have_ids)
		return false;
	qrdma_reset_token(setup->scid.data, own);
	return !memcmp(own, token, sizeof(own));
}

static int sockopt_set_tparams(struct qrdma_sock *qs, const struct qrdma_transport_param *p)
{
	struct qrdma_setup *setup = &qs->setup;
	struct qrdma_tparams tp;
	int err;

	if (p->remote > 1 || p->disable_active_migration > 1)
		return -EINVAL;
	qrdma_tparams_init(&tp);
	sockopt_tparams_from_user(&tp, p);
	if (p->remote) {
		sockopt_remote_token(&tp, p->stateless_reset_token);
	} else {
		if (!sockopt_own_token(setup, p->stateless_reset_token))
			return -EINVAL;
		sockopt_default(&tp.initial_max_data, QRDMA_CREDIT_FIRST);
		sockopt_default(&tp.initial_max_stream_data_bidi_local, tp.initial_max_data);
		sockopt_default(&tp.initial_max_stream_data_bidi_remote, tp.initial_max_data);
		sockopt_default(&tp.active_cid_limit, QRDMA_ACTIVE_CID_LIMIT);
		/*
		 * Promising more than the socket may ever hold would only lead to dropped
		 * packets.
		 */
		if (tp.initial_max_data > INT_MAX / 8 || tp.active_cid_limit > QRDMA_ACTIVE_CID_MAX)
			return -EINVAL;
	}
	if (!qrdma_tparams_valid(&tp))
		return -EINVAL;
	err = sockopt_unconnected(qs);
	if (err)
		return err;
	if (p->remote) {
		setup->remote = tp;
		setup->remote_ack_us = p->max_ack_delay;
		setup->remote_idle_us = p->max_idle_timeout;
		setup->have_remote = true;
	} else {
		setup->local = tp;
		setup->ack_delay_us = p->max_ack_delay;
		setup->idle_us = p->max_idle_timeout;
		sockopt_grant_stream(setup);
	}
	return 0;
}

static int sockopt_set_config(struct qrdma_sock *qs, const struct qrdma_config *config)
{
	int err;

	if (config->congestion > QRDMA_CONG_NEWRENO || config->granularity > USEC_PER_SEC ||
	    config->connect_timeout > QRDMA_ALARM_MS_MAX ||
	    config->linger_timeout > QRDMA_ALARM_MS_MAX ||
	    config->handshake > QRDMA_HANDSHAKE_AGENT || config->reserved2 ||
	    !sockopt_zero(config->reserved, sizeof(config->reserved)))
		return -EINVAL;
	err = sockopt_unconnected(qs);
	if (err)
		return err;
	qs->setup.config = *config;
	sockopt_config_defaults(&qs->setup.config);
	return 0;
}

/*
 * Bytes of secret for a cipher (RFC 9001 s5.1: the length of the suite's hash), 0: no such
 * cipher.
 */
static u32 sockopt_secret_len(u32 type)
{
	switch (type) {
	case QRDMA_CIPHER_AES_GCM_128:
	case QRDMA_CIPHER_AES_CCM_128:
	case QRDMA_CIPHER_CHACHA20:
		return 32;
	case QRDMA_CIPHER_AES_GCM_256:
		return 48;
	}
	return 0;
}

/* What is kept of a secret: enough to tell whether it comes again, under a key of this boot. */
static u64 sockopt_digest(const struct qrdma_crypto_secret *s, u32 len)
{
	static siphash_key_t key __read_mostly;

	net_get_random_once(&key, sizeof(key));
	return siphash(s->secret, len, &key) ^ s->type;
}

/* Is it the secret that this direction has, or had before it was spent? */
static bool sockopt_same_secret(const struct qrdma_sock *qs, const struct qrdma_crypto_secret *s,
				u32 len)
{
	const struct qrdma_setup *setup = &qs->setup;
	struct qrdma_slot *slot = setup->slot[s->send];

	if (slot)
		return qrdma_kernel_aead.slot_same(slot, s->type, s->secret, len);
	return qs->spent && setup->digest[s->send] == sockopt_digest(s, len);
}

static int sockopt_set_secret(struct qrdma_sock *qs, const struct qrdma_crypto_secret *s)
{
	const struct qrdma_aead_ops *aead = &qrdma_kernel_aead;
	struct qrdma_setup *setup = &qs->setup;
	struct qrdma_slot *other = setup->slot[!s->send];
	struct qrdma_slot *slot;
	u32 len = sockopt_secret_len(s->type);
	int err;

	if (s->send > 1 || s->reserved || !len ||
	    !sockopt_zero(s->secret + len, sizeof(s->secret) - len))
		return -EINVAL;
	if (qs->inband)
		return qrdma_inband_secret(qs, s, len);
	if (s->level != QRDMA_CRYPTO_APP)
		return -EINVAL;
	if (sockopt_same_secret(qs, s, len))
		return -EEXIST;
	err = sockopt_unconnected(qs);
	if (err)
		return err;
	/*
	 * Both directions have one cipher suite and a secret each (RFC 9001 s5.1): with the same
	 * one each nonce would be used twice.
	 */
	if (other && (setup->cipher != s->type || aead->slot_same(other, s->type, s->secret, len)))
		return -EINVAL;
	err = aead->slot_new(s->type, s->secret, len, &slot);
	if (err)
		return err;
	aead->slot_put(setup->slot[s->send]);
	setup->slot[s->send] = slot;
	setup->digest[s->send] = sockopt_digest(s, len);
	setup->cipher = s->type;
	return 0;
}

static int sockopt_set_result(struct qrdma_sock *qs, const struct qrdma_handshake_result *result)
{
	if (result->error >= SOCKOPT_ERRNO_MAX || (!result->error && result->alert) ||
	    result->judged > 1 ||
	    !sockopt_zero(result->reserved, sizeof(result->reserved)))
		return -EINVAL;
	return qrdma_inband_result(qs, result);
}

/* What belongs to a handshake in band is the affair of who runs it. */
static bool sockopt_of_handshake(int optname)
{
	return optname == QRDMA_CRYPTO_SECRET || optname == QRDMA_HANDSHAKE_RESULT ||
	       optname == QRDMA_TRANSPORT_PARAM_EXT || optname == QRDMA_SESSION_TICKET;
}

/* @agent: whose descriptor it is, NULL: the program's. Socket lock. */
static int sockopt_may(const struct qrdma_sock *qs, const struct qrdma_agent *agent, int optname)
{
	if (!agent)
		return qrdma_inband_by_agent(qs) && sockopt_of_handshake(optname) ? -EBUSY : 0;
	if (agent->attempt != qs->attempt)
		return -ENOTCONN;
	/* Why it ended, and what came before it did, can still be asked for. */
	if (qrdma_agent_is_over(agent) && optname != QRDMA_CONNECTION_CLOSE &&
	    optname != QRDMA_INFO && optname != QRDMA_SESSION_TICKET)
		return -ENOTCONN;
	return 0;
}

/* The program waits for its own lock as long as it takes. */
static int sockopt_lock(struct qrdma_sock *qs, struct qrdma_agent *agent)
{
	if (agent)
		return qrdma_sock_lock_for_agent(qs, agent);
	lock_sock(&qs->sk);
	return 0;
}

/* The one option whose value is of no fixed size */
static int sockopt_set_params_ext(struct qrdma_sock *qs, struct qrdma_agent *agent,
				  sockptr_t optval, unsigned int optlen)
{
	u8 *data;
	int err;

	if (!optlen || optlen > QRDMA_TRANSPORT_PARAM_EXT_MAX)
		return -EINVAL;
	data = memdup_sockptr(optval, optlen);
	if (IS_ERR(data))
		return PTR_ERR(data);
	err = sockopt_lock(qs, agent);
	if (!err) {
		err = sockopt_may(qs, agent, QRDMA_TRANSPORT_PARAM_EXT);
		if (!err)
			err = qrdma_inband_set_params(qs, data, optlen);
		release_sock(&qs->sk);
	}
	kfree(data);
	return err;
}

union sockopt_value {
	struct qrdma_connection_ids ids;
	struct qrdma_connection_close close;
	struct qrdma_transport_param param;
	struct qrdma_config config;
	struct qrdma_crypto_secret secret;
	struct qrdma_handshake_result result;
	struct qrdma_info info;
};

/* Bytes that the value of an option has; -1: no such option to be set. */
static int sockopt_set_size(int optname)
{
	switch (optname) {
	case QRDMA_CONNECTION_ID:
		return sizeof(struct qrdma_connection_ids);
	case QRDMA_CONNECTION_CLOSE:
		return sizeof(struct qrdma_connection_close);
	case QRDMA_KEY_UPDATE:
		return 0;
	case QRDMA_TRANSPORT_PARAM:
		return sizeof(struct qrdma_transport_param);
	case QRDMA_CONFIG:
		return sizeof(struct qrdma_config);
	case QRDMA_CRYPTO_SECRET:
		return sizeof(struct qrdma_crypto_secret);
	case QRDMA_HANDSHAKE_RESULT:
		return sizeof(struct qrdma_handshake_result);
	}
	return -1;
}

static int sockopt_set(struct qrdma_sock *qs, int optname, const union sockopt_value *val)
{
	switch (optname) {
	case QRDMA_CONNECTION_ID:
		return sockopt_set_ids(qs, &val->ids);
	case QRDMA_CONNECTION_CLOSE:
		return sockopt_set_close(qs, &val->close);
	case QRDMA_KEY_UPDATE:
		return sockopt_key_update(qs);
	case QRDMA_TRANSPORT_PARAM:
		return sockopt_set_tparams(qs, &val->param);
	case QRDMA_CONFIG:
		return sockopt_set_config(qs, &val->config);
	case QRDMA_CRYPTO_SECRET:
		return sockopt_set_secret(qs, &val->secret);
	case QRDMA_HANDSHAKE_RESULT:
		return sockopt_set_result(qs, &val->result);
	}
	return -ENOPROTOOPT;
}

static int sockopt_set_user(struct qrdma_sock *qs, struct qrdma_agent *agent, int optname,
			    sockptr_t optval, unsigned int optlen)
{
	union sockopt_value val = {};
	int size, err;

	if (optname == QRDMA_TRANSPORT_PARAM_EXT)
		return sockopt_set_params_ext(qs, agent, optval, optlen);
	size = sockopt_set_size(optname);
	if (size < 0)
		return -ENOPROTOOPT;
	if (optlen != size)
		return -EINVAL;
	err = copy_from_sockptr(&val, optval, size) ? -EFAULT : sockopt_lock(qs, agent);
	if (!err) {
		err = sockopt_may(qs, agent, optname) ?: sockopt_set(qs, optname, &val);
		release_sock(&qs->sk);
	}
	memzero_explicit(&val, sizeof(val));
	return err;
}

int qrdma_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval,
		     unsigned int optlen)
{
	struct sock *sk = sock->sk;

	if (qrdma_ipopt_level(level))
		return qrdma_ipopt_set(qrdma_sk(sk), level, optname, optval, optlen);
	if (level != SOL_QRDMA)
		return -ENOPROTOOPT;
	return sockopt_set_user(qrdma_sk(sk), NULL, optname, optval, optlen);
}

int qrdma_sockopt_set_agent(struct qrdma_sock *qs, struct qrdma_agent *agent, int optname,
			    sockptr_t optval, unsigned int optlen)
{
	if (!sockopt_of_handshake(optname) || optname == QRDMA_SESSION_TICKET)
		return -EOPNOTSUPP;
	return sockopt_set_user(qs, agent, optname, optval, optlen);
}

/*
 * The token of an id ends the connection that has it (RFC 9000 s21.11), and ids are seen on the
 * wire: who names the id of another socket is not told.
 */
static int sockopt_tell_token(const struct qrdma_sock *qs, u8 *token)
{
	const u8 *cid = qs->setup.scid.data;
	struct qrdma_sock *owner = qrdma_demux_find(cid);
	bool taken = owner && owner != qs;

	if (owner)
		sock_put(&owner->sk);
	if (taken)
		return -EADDRINUSE;
	qrdma_reset_token(cid, token);
	return 0;
}

/* Fill @val, which is zero but for what the caller asked with. Return: bytes, or an error. */
static int sockopt_get(const struct qrdma_sock *qs, int optname, union sockopt_value *val)
{
	const struct qrdma_setup *setup = &qs->setup;
	bool remote;
	int err = 0;

	switch (optname) {
	case QRDMA_CONNECTION_ID:
		if (!setup->have_ids)
			return -ENODATA;
		val->ids.role = setup->role;
		val->ids.source_len = setup->scid.len;
		val->ids.dest_len = setup->dcid.len;
		memcpy(val->ids.source, setup->scid.data, setup->scid.len);
		memcpy(val->ids.dest, setup->dcid.data, setup->dcid.len);
		return sizeof(val->ids);
	case QRDMA_CONNECTION_CLOSE:
		val->close = qs->error;
		return sizeof(val->close);
	case QRDMA_TRANSPORT_PARAM:
		remote = val->param.remote;
		if (val->param.remote > 1)
			return -EINVAL;
		if (remote && !setup->have_remote)
			return -ENODATA;
		sockopt_tparams_to_user(&val->param, remote ? &setup->remote : &setup->local);
		val->param.max_ack_delay = remote ? setup->remote_ack_us : setup->ack_delay_us;
		val->param.max_idle_timeout = remote ? setup->remote_idle_us : setup->idle_us;
		if (remote)
			memcpy(val->param.stateless_reset_token, setup->remote.reset_token,
			       QRDMA_RESET_TOKEN_LEN);
		else if (setup->have_ids)
			err = sockopt_tell_token(qs, val->param.stateless_reset_token);
		return err ?: sizeof(val->param);
	case QRDMA_CONFIG:
		val->config = setup->config;
		return sizeof(val->config);
	case QRDMA_INFO:
		qrdma_info_fill(qs, &val->info);
		return sizeof(val->info);
	}
	return -ENOPROTOOPT;
}

/* And those that one gets */
static int sockopt_get_bytes(struct qrdma_sock *qs, struct qrdma_agent *agent, int optname,
			     char __user *optval, int __user *optlen, int len)
{
	int size = min_t(int, len, optname == QRDMA_SESSION_TICKET ? SZ_16K :
			 QRDMA_TRANSPORT_PARAM_EXT_MAX);
	u8 *data = kmalloc(max(size, 1), GFP_KERNEL_ACCOUNT);
	int n;

	if (!data)
		return -ENOMEM;
	n = sockopt_lock(qs, agent);
	if (!n) {
		n = sockopt_may(qs, agent, optname);
		if (!n && optname == QRDMA_SESSION_TICKET)
			n = qrdma_inband_get_ticket(qs, data, size);
		else if (!n)
			n = qrdma_inband_get_params(qs, data, size);
		release_sock(&qs->sk);
	}
	if (n >= 0 && (put_user(n, optlen) || copy_to_user(optval, data, n)))
		n = -EFAULT;
	kfree(data);
	return min(n, 0);
}

static int sockopt_get_user(struct qrdma_sock *qs, struct qrdma_agent *agent, int optname,
			    char __user *optval, int __user *optlen, int len)
{
	union sockopt_value val;
	int size;

	if (optname == QRDMA_TRANSPORT_PARAM_EXT || optname == QRDMA_SESSION_TICKET)
		return sockopt_get_bytes(qs, agent, optname, optval, optlen, len);
	memset(&val, 0, sizeof(val));
	if (optname == QRDMA_TRANSPORT_PARAM && len >= (int)sizeof(val.param) &&
	    get_user(val.param.remote, &((struct qrdma_transport_param __user *)optval)->remote))
		return -EFAULT;
	size = sockopt_lock(qs, agent);
	if (size)
		return size;
	size = sockopt_may(qs, agent, optname) ?: sockopt_get(qs, optname, &val);
	/* What to the program is connecting is a handshake to the agent. */
	if (agent && optname == QRDMA_INFO && val.info.state == QRDMA_STATE_CONNECTING)
		val.info.state = QRDMA_STATE_HANDSHAKE;
	release_sock(&qs->sk);
	if (size < 0)
		return size;
	if (len < size)
		return -EINVAL;
	if (put_user(size, optlen) || copy_to_user(optval, &val, size))
		return -EFAULT;
	return 0;
}

int qrdma_getsockopt(struct socket *sock, int level, int optname, char __user *optval,
		     int __user *optlen)
{
	struct sock *sk = sock->sk;
	int len;

	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	if (qrdma_ipopt_level(level))
		return qrdma_ipopt_get(qrdma_sk(sk), level, optname, optval, optlen, len);
	/* TCP's errors, which are another one for IPv4 */
	if (level != SOL_QRDMA)
		return qrdma_sk(sk)->ipv6 ? -ENOPROTOOPT : -EOPNOTSUPP;
	return sockopt_get_user(qrdma_sk(sk), NULL, optname, optval, optlen, len);
}

int qrdma_sockopt_get_agent(struct qrdma_sock *qs, struct qrdma_agent *agent, int optname,
			    char __user *optval, int __user *optlen)
{
	int len;

	if (optname != QRDMA_TRANSPORT_PARAM_EXT && optname != QRDMA_SESSION_TICKET &&
	    optname != QRDMA_CONNECTION_CLOSE && optname != QRDMA_INFO)
		return -EOPNOTSUPP;
	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	return sockopt_get_user(qs, agent, optname, optval, optlen, len);
}
