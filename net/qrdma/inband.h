/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The handshake in band, between the engine and who speaks TLS: bytes of the levels, keys,
 * transport parameters, the result.
 *
 * Owns: struct qrdma_inband. Called by: link.c and accept.c (making, keys), the socket calls
 * (process context). The socket lock is held where nothing else is said.
 */
#ifndef QRDMA_INBAND_H
#define QRDMA_INBAND_H

#include "sock.h"

/**
 * qrdma_inband_client() - this socket is going to connect so
 * @qs: socket, before qrdma_link_open(); gets its connection ids, the Initial keys, and a token if
 *	there is one for that server
 *
 * Context: process, sleeps. Return: 0, -ENOMEM, -ENOPKG.
 */
int qrdma_inband_client(struct qrdma_sock *qs);

/**
 * qrdma_inband_server() - and this one answers to a client
 * @qs: new socket, before qrdma_link_open()
 * @first: destination connection id of the client's Initial
 * @peer: its source connection id
 * @odcid: the client follows a Retry, and had its first packet sent there; NULL: it does not
 * @validated: a token has proved its address
 *
 * Context: process, sleeps. Return: 0, -ENOMEM, -ENOPKG.
 */
int qrdma_inband_server(struct qrdma_sock *qs, const struct qrdma_cid *first,
			const struct qrdma_cid *peer, const struct qrdma_cid *odcid,
			bool validated);

/**
 * qrdma_inband_config() - what the engine is to know
 * @qs: socket
 * @hs: filled
 */
void qrdma_inband_config(const struct qrdma_sock *qs, struct qrdma_hs_config *hs);

/**
 * qrdma_inband_begin() - the engine is there: give it the Initial keys
 *
 * Return: 0 or a negative errno, which the engine would not survive.
 */
int qrdma_inband_begin(struct qrdma_sock *qs);

/** qrdma_inband_rekey() - QRDMA_TODO_INITIAL. Context: process, sleeps. */
void qrdma_inband_rekey(struct qrdma_sock *qs);

/** qrdma_inband_free() - the connection retires */
void qrdma_inband_free(struct qrdma_sock *qs);

/**
 * qrdma_inband_secret() - a traffic secret as TLS made it
 * @qs: socket
 * @s: checked but for its level
 * @len: bytes of secret
 *
 * Context: process, sleeps.
 *
 * Return: 0; -EINVAL: a level or cipher that cannot be; -EEXIST: there is one; -ESTALE: the keys of
 * that level were discarded; -ENOTCONN; -ENOPKG, -ENOMEM.
 */
int qrdma_inband_secret(struct qrdma_sock *qs, const struct qrdma_crypto_secret *s, u32 len);

/**
 * qrdma_inband_result() - QRDMA_HANDSHAKE_RESULT
 *
 * Return: 0; -EINVAL: keys or parameters are missing; -EALREADY; -ENOTCONN.
 */
int qrdma_inband_result(struct qrdma_sock *qs, const struct qrdma_handshake_result *result);

/** qrdma_inband_get_params() - our transport parameters. Return: bytes; -ENOBUFS; -ENOTCONN. */
int qrdma_inband_get_params(const struct qrdma_sock *qs, u8 *data, u32 size);

/** qrdma_inband_set_params() - the peer's. Return: 0; -EPROTO, -EALREADY, -ENOMEM, -ENOTCONN. */
int qrdma_inband_set_params(struct qrdma_sock *qs, const u8 *data, u32 len);

/**
 * qrdma_inband_get_ticket() - what came at the APP level
 *
 * Return: bytes, which are gone then; -ENODATA; -ENOTCONN.
 */
int qrdma_inband_get_ticket(struct qrdma_sock *qs, u8 *data, u32 size);

/**
 * qrdma_inband_sendmsg() - handshake bytes
 * @level: QRDMA_CRYPTO_*
 *
 * Return: bytes; -EMSGSIZE; -EINVAL: level; -ENOBUFS: too many unacknowledged; -ENOTCONN; -EPIPE:
 * the level is over; -ENOMEM, -EFAULT.
 */
ssize_t qrdma_inband_sendmsg(struct qrdma_sock *qs, struct msghdr *msg, u8 level);

/**
 * qrdma_inband_recvmsg() - handshake bytes of one level, with their control message
 *
 * Context: process; the lock is given up while waiting.
 *
 * Return: bytes; 0: the connection has ended without an error; -EINVAL: no room for the control
 * message; -EAGAIN, -EINTR, -ERESTARTSYS; -EFAULT; the socket's error.
 */
ssize_t qrdma_inband_recvmsg(struct qrdma_sock *qs, struct msghdr *msg, size_t len, int flags);

/**
 * qrdma_inband_recv_now() - the same for the agent: never waits, and leaves the socket's error
 *
 * Return: bytes; 0: the handshake is complete; -EINVAL, -EAGAIN, -EFAULT; -ENOTCONN.
 */
ssize_t qrdma_inband_recv_now(struct qrdma_sock *qs, struct msghdr *msg, size_t len, int flags);

/**
 * qrdma_inband_abandon() - the agent goes: without a result the handshake has failed
 * @qs: socket with a handshake that has an agent
 */
void qrdma_inband_abandon(struct qrdma_sock *qs);

/** qrdma_inband_by_agent() - is it none of the program's affairs? */
static inline bool qrdma_inband_by_agent(const struct qrdma_sock *qs)
{
	return qs->inband && qs->inband->by_agent;
}

/**
 * qrdma_inband_level() - is there a control message that names a level?
 * @msg: of a sendmsg()
 *
 * Return: QRDMA_CRYPTO_*; -ENOENT: there is none; -EINVAL: it is not as it should be.
 */
int qrdma_inband_level(struct msghdr *msg);

#endif /* QRDMA_INBAND_H */
