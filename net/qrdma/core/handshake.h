/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The steps of a handshake in band that receiving, sending and timing take: packets that wait for
 * keys, Retry, version negotiation, connection ids, keys that are discarded, confirmation.
 *
 * Owns: struct qrdma_hs of a connection. Called by: conn.c, conn_hs.c, conn_rx.c and the packers,
 * under the socket lock, never sleeping. All but qrdma_hs_destroy() want a connection that has one.
 */
#ifndef QRDMA_CORE_HANDSHAKE_H
#define QRDMA_CORE_HANDSHAKE_H

#include "env.h"
#include "config.h"
#include "rx.h"
#include "conn_state.h"

/**
 * qrdma_hs_create() - the part of a connection that a handshake in band needs
 * @conn: connection, its path made
 * @cfg: what it is made from, @cfg->hs not NULL
 * @now: ns
 * @gfp: allocation flags
 *
 * Return: 0; -EINVAL: a connection id that cannot be, a token too long; -ENOMEM.
 */
int qrdma_hs_create(struct qrdma_conn *conn, const struct qrdma_conn_config *cfg, u64 now,
		    gfp_t gfp);

/* Free it; nothing happens where there is none. */
void qrdma_hs_destroy(struct qrdma_conn *conn);

/**
 * qrdma_hs_expand() - how large a datagram with an Initial packet has to be (RFC 9000 s14.1)
 * @conn: connection
 *
 * Return: bytes.
 */
static inline u32 qrdma_hs_expand(const struct qrdma_conn *conn)
{
	return min(QRDMA_HS_EXPAND, conn->path.max_datagram);
}

/**
 * qrdma_hs_drop_space() - the keys of Initial or Handshake are discarded (RFC 9001 s4.9)
 * @conn: connection
 * @space: enum qrdma_space
 * @now: ns
 */
void qrdma_hs_drop_space(struct qrdma_conn *conn, u8 space, u64 now);

/**
 * qrdma_hs_drop_early() - 0-RTT keys are of no use any more (RFC 9001 s4.9.3)
 * @conn: connection
 */
void qrdma_hs_drop_early(struct qrdma_conn *conn);

/**
 * qrdma_hs_on_datagram() - a datagram came in, whatever is in it (RFC 9000 s8.1)
 * @conn: connection
 * @len: bytes
 */
void qrdma_hs_on_datagram(struct qrdma_conn *conn, u32 len);

/**
 * qrdma_hs_on_sent() - a datagram leaves
 * @conn: connection
 * @len: bytes
 * @handshake: it has a Handshake packet: a client's Initial keys go (RFC 9001 s4.9.1)
 * @now: ns
 */
void qrdma_hs_on_sent(struct qrdma_conn *conn, u32 len, bool handshake, u64 now);

/**
 * qrdma_hs_hold() - keep a packet until its key is there
 * @conn: connection
 * @rx: its datagram
 * @level: enum qrdma_level
 * @pkt: first byte, as it came
 * @len: bytes
 * @now: ns
 *
 * Return: false: that key will not come, or there is no room (counted).
 */
bool qrdma_hs_hold(struct qrdma_conn *conn, const struct qrdma_rx *rx, u8 level, const u8 *pkt,
		   u32 len, u64 now);

/**
 * qrdma_hs_take_held() - see qrdma_conn_held()
 * @conn: connection
 * @rx: filled
 */
bool qrdma_hs_take_held(struct qrdma_conn *conn, struct qrdma_rx *rx);

/**
 * qrdma_hs_start() - handshake bytes were written, or Initial keys renewed: packets may leave
 * @conn: connection
 */
void qrdma_hs_start(struct qrdma_conn *conn);

/**
 * qrdma_hs_on_version_neg() - client: Version Negotiation came in (RFC 9000 s6.2)
 * @conn: connection
 * @hdr: its header
 *
 * It is not authenticated: taken only as long as nothing else was. Then the connection is over.
 *
 * Return: false: ignored.
 */
bool qrdma_hs_on_version_neg(struct qrdma_conn *conn, const struct qrdma_hdr *hdr);

/**
 * qrdma_hs_begin_retry() - client: a Retry came in: describe how its tag is checked (RFC 9001 s5.8)
 * @conn: connection
 * @rx: its datagram; @rx->op and @rx->pseudo are filled
 * @hdr: its header
 * @pkt: first byte
 *
 * Return: false: it is to be ignored.
 */
bool qrdma_hs_begin_retry(struct qrdma_conn *conn, struct qrdma_rx *rx,
			  const struct qrdma_hdr *hdr, const u8 *pkt);

/**
 * qrdma_hs_end_retry() - its tag verified: start anew with its token and connection id
 * @conn: connection
 * @rx: its datagram; @rx->pseudo is dropped
 * @now: ns
 *
 * Return: false: it came too late, or there is no memory.
 */
bool qrdma_hs_end_retry(struct qrdma_conn *conn, struct qrdma_rx *rx, u64 now);

/**
 * qrdma_hs_opened() - a long header packet verified: is its source connection id right?
 * @conn: connection
 * @rx: its datagram
 *
 * A client learns the server's from the first one (RFC 9000 s7.2).
 *
 * Return: false: the packet is to be discarded.
 */
bool qrdma_hs_opened(struct qrdma_conn *conn, const struct qrdma_rx *rx);

/**
 * qrdma_hs_used() - all frames of a packet are applied: what follows from its level
 * @conn: connection
 * @level: enum qrdma_level
 * @now: ns
 */
void qrdma_hs_used(struct qrdma_conn *conn, u8 level, u64 now);

/**
 * qrdma_hs_on_crypto() - a CRYPTO frame came in
 * @conn: connection
 * @level: enum qrdma_level
 * @f: the frame
 * @buf: buffer that it lies in, NULL: copy
 * @verdict: QUIC error code after -EPROTO
 *
 * Return: 0, -EPROTO, -ENOMEM, -ENOBUFS.
 */
int qrdma_hs_on_crypto(struct qrdma_conn *conn, u8 level, const struct qrdma_frame *f,
		       struct qrdma_buf *buf, u64 *verdict);

/**
 * qrdma_hs_on_token() - client: NEW_TOKEN came in
 * @conn: connection
 * @f: the frame
 *
 * Return: 0, -ENOMEM.
 */
int qrdma_hs_on_token(struct qrdma_conn *conn, const struct qrdma_frame *f);

/**
 * qrdma_hs_confirm() - the handshake is confirmed: Handshake keys go (RFC 9001 s4.9.2)
 * @conn: connection
 * @now: ns
 */
void qrdma_hs_confirm(struct qrdma_conn *conn, u64 now);

/**
 * qrdma_hs_apply_params() - the peer's transport parameters hold from now on
 * @conn: connection
 * @tp: the parameters, checked
 * @now: ns
 */
void qrdma_hs_apply_params(struct qrdma_conn *conn, const struct qrdma_tparams *tp, u64 now);

/**
 * qrdma_hs_timeout() - time has passed
 * @conn: connection, open
 * @now: ns
 */
void qrdma_hs_timeout(struct qrdma_conn *conn, u64 now);

#endif /* QRDMA_CORE_HANDSHAKE_H */
