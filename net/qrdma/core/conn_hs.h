/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The handshake in band (RFC 9001): what its owner, who speaks TLS, does with a connection.
 *
 * Owns: nothing. Called by: the socket layer, under the socket lock; never sleeps. The engine
 * carries handshake bytes and seals with the keys that it is given; it knows no TLS and derives
 * nothing: slots are made beforehand, where sleeping is allowed. Each call may leave events: ask
 * qrdma_conn_events() afterwards, then call the packer.
 *
 * Client::
 *
 *	qrdma_conn_create() with struct qrdma_hs_config, qrdma_conn_install_level(INITIAL) both
 *	ways, qrdma_conn_tparams() for TLS, qrdma_conn_crypto_write(INITIAL, ClientHello);
 *	on QRDMA_EV_CRYPTO: read, feed TLS, and do what TLS says in the order in which it says it:
 *	install_level(HANDSHAKE), qrdma_conn_early_verdict() if 0-RTT was tried,
 *	qrdma_conn_peer_tparams(), crypto_write(HANDSHAKE, Finished), install_level(APP),
 *	qrdma_conn_handshake_complete(). QRDMA_EV_ESTABLISHED follows; tickets come as
 *	QRDMA_EV_CRYPTO at level APP.
 *
 * Server, once stateless.h has found a good Initial::
 *
 *	create, install_level(INITIAL), give it the datagram; on QRDMA_EV_CRYPTO the same, with
 *	qrdma_conn_peer_tparams() before qrdma_conn_tparams(). After
 *	qrdma_conn_handshake_complete(): crypto_write(APP, ticket), qrdma_conn_give_token().
 *
 * Both: when QRDMA_EV_HELD is said, run each packet of qrdma_conn_held() through the receive loop.
 * A failure of TLS is qrdma_conn_close(conn, QRDMA_ERR_CRYPTO_ERROR + alert, false, now).
 */
#ifndef QRDMA_CORE_CONN_HS_H
#define QRDMA_CORE_CONN_HS_H

#include "conn.h"

/**
 * qrdma_conn_initial_cid() - what Initial keys are derived from (RFC 9001 s5.2)
 * @conn: connection, in band
 *
 * Changes when a client follows a Retry: QRDMA_EV_INITIAL_KEYS.
 *
 * Return: the id; NULL: out of band.
 */
const struct qrdma_cid *qrdma_conn_initial_cid(const struct qrdma_conn *conn);

/**
 * qrdma_conn_install_level() - a key of one level and direction
 * @conn: connection
 * @level: enum qrdma_level; the Initial ones both before anything else, and both anew after
 *	QRDMA_EV_INITIAL_KEYS. EARLY: a client's is for sending, a server's for receiving
 * @send: direction: true seals
 * @cipher: enum qrdma_cipher; Initial: QRDMA_CIPHER_AES_128_GCM
 * @cur: key from the traffic secret; the reference is taken over on success only
 *
 * APP is the same as qrdma_conn_install_key().
 *
 * Return: 0; -EEXIST: installed already; -EINVAL: cipher, level or direction, EARLY without
 * remembered parameters, a client's APP for sending before the verdict on 0-RTT; -ESTALE: the keys
 * of that level were discarded (RFC 9001 s4.9), 0-RTT is over, or the connection is; -EOPNOTSUPP:
 * out of band and not APP.
 */
int qrdma_conn_install_level(struct qrdma_conn *conn, u8 level, bool send, u32 cipher,
			     struct qrdma_slot *cur);

/**
 * qrdma_conn_tparams() - our transport parameters as TLS has to carry them
 * @conn: connection, in band
 * @data: room for the value of the extension quic_transport_parameters
 * @size: bytes of room, QRDMA_TP_ENCODED_MAX are always enough
 *
 * Those of struct qrdma_conn_config, with the connection ids of RFC 9000 s7.3 put in.
 *
 * Return: bytes written; -ENOBUFS: no room; -EOPNOTSUPP: out of band.
 */
int qrdma_conn_tparams(const struct qrdma_conn *conn, u8 *data, u32 size);

/**
 * qrdma_conn_peer_tparams() - the peer's transport parameters came out of TLS
 * @conn: connection, in band
 * @data: value of the extension
 * @len: its length; 0 when TLS has seen none, which is an error of the peer's
 * @now: ns
 *
 * Checked as a whole, the connection ids too (RFC 9000 s7.3, s7.4); they hold from now on. On a
 * client that is still to hear qrdma_conn_early_verdict() they hold from then on.
 *
 * Return: 0; -EPROTO: refused, the connection closes with TRANSPORT_PARAMETER_ERROR; -EALREADY:
 * they are known; -ENOMEM; -ENOTCONN: it has ended; -EOPNOTSUPP: out of band.
 */
int qrdma_conn_peer_tparams(struct qrdma_conn *conn, const u8 *data, u32 len, u64 now);

/**
 * qrdma_conn_crypto_write() - handshake bytes to be sent at a level
 * @conn: connection, in band
 * @level: INITIAL, HANDSHAKE or APP
 * @data: copied
 * @len: bytes
 *
 * They are repeated until they are acknowledged or the level's keys are discarded. A client's first
 * write starts the handshake.
 *
 * Return: 0; -ENOBUFS: over QRDMA_CSTREAM_TX_MAX bytes unacknowledged; -ENOMEM; -EINVAL: level;
 * -ESTALE: the level is over; -ENOTCONN: the connection has ended; -EOPNOTSUPP: out of band.
 */
int qrdma_conn_crypto_write(struct qrdma_conn *conn, u8 level, const void *data, u32 len);

/**
 * qrdma_conn_crypto_peek() - handshake bytes that came in at a level, in order
 * @conn: connection
 * @level: INITIAL, HANDSHAKE or APP
 * @data: first byte; valid until they are consumed
 *
 * After QRDMA_EV_CRYPTO ask INITIAL, HANDSHAKE and APP, each until it says 0.
 *
 * Return: contiguous bytes, 0: none now, or no such level.
 */
int qrdma_conn_crypto_peek(const struct qrdma_conn *conn, u8 level, const u8 **data);

/**
 * qrdma_conn_crypto_consume() - they were read
 * @conn: connection
 * @level: the level
 * @len: bytes, at most what qrdma_conn_crypto_peek() said
 */
void qrdma_conn_crypto_consume(struct qrdma_conn *conn, u8 level, u32 len);

/**
 * qrdma_conn_early_verdict() - did the server take 0-RTT?
 * @conn: connection, in band
 * @accepted: client: EncryptedExtensions had early_data; false also after a HelloRetryRequest.
 *	Server: false when it will install no 0-RTT key, so that what is kept for it is dropped
 * @now: ns
 *
 * After a rejection all 0-RTT data is sent again in 1-RTT packets, under the limits of the new
 * transport parameters. After acceptance limits below the remembered ones are a PROTOCOL_VIOLATION
 * (RFC 9000 s7.4.1).
 *
 * Return: 0; -EALREADY: told before, or 0-RTT was not tried; -EPROTO: the peer broke the protocol,
 * the connection closes; -EOPNOTSUPP: out of band.
 */
int qrdma_conn_early_verdict(struct qrdma_conn *conn, bool accepted, u64 now);

/**
 * qrdma_conn_handshake_complete() - TLS is done: Finished was sent and the peer's verified
 * @conn: connection, in band, its APP keys installed both ways and the peer's parameters known
 * @now: ns
 *
 * From here on 1-RTT packets are received. A server confirms the handshake with HANDSHAKE_DONE and
 * discards its Handshake keys.
 *
 * Return: 0; -EALREADY: told before; -EINVAL: something is missing; -EPROTO: see
 * qrdma_conn_early_verdict(); -ENOTCONN: the connection has ended; -EOPNOTSUPP: out of band.
 */
int qrdma_conn_handshake_complete(struct qrdma_conn *conn, u64 now);

/**
 * qrdma_conn_await_verdict() - a client's: the server has still to judge us
 * @conn: connection, in band, its handshake not complete
 *
 * With a certificate, a client's TLS is done before the server has looked at it. From here on
 * QRDMA_EV_ESTABLISHED comes when the handshake is confirmed (RFC 9001 s4.1.2): one round trip
 * later, and not at all if the server refuses.
 */
void qrdma_conn_await_verdict(struct qrdma_conn *conn);

/**
 * qrdma_conn_held() - the next packet that waited for its key and need not any more
 * @conn: connection
 * @rx: zeroed by the caller; filled as for a new datagram. rx->buf is a reference of the caller's
 *
 * Return: false when there is none; then @rx is as it was.
 */
bool qrdma_conn_held(struct qrdma_conn *conn, struct qrdma_rx *rx);

/**
 * qrdma_conn_give_token() - server: give the client a token for its next connection (NEW_TOKEN)
 * @conn: connection, its handshake complete
 * @token: copied
 * @len: bytes, 1 to QRDMA_HS_TOKEN_MAX
 *
 * Return: 0; -EALREADY: it was given one; -EINVAL; -ENOMEM; -ENOTCONN.
 */
int qrdma_conn_give_token(struct qrdma_conn *conn, const u8 *token, u32 len);

/**
 * qrdma_conn_token() - client: the latest token that the server gave us, after QRDMA_EV_TOKEN
 * @conn: connection
 * @token: its bytes, valid under the lock
 *
 * Return: bytes, 0: there is none.
 */
u32 qrdma_conn_token(const struct qrdma_conn *conn, const u8 **token);

/**
 * qrdma_conn_events() - what has happened since events were last returned
 * @conn: connection
 * @now: ns
 *
 * Return: event bits.
 */
u32 qrdma_conn_events(struct qrdma_conn *conn, u64 now);

/**
 * struct qrdma_hs_stats - the handshake in numbers, for QRDMA_INFO
 * @complete: TLS is done
 * @confirmed: and the peer knows (RFC 9001 s4.1.2)
 * @retried: client: a Retry was followed; server: the client came with the token of one
 * @validated: server: the client's address is validated
 * @early: enum qrdma_early
 * @rx_bytes: server, until validated: bytes of datagrams received
 * @tx_bytes: and sent, at most three times as many
 * @held: packets waiting for a key
 * @held_dropped: packets without a key that there was no room to keep
 */
struct qrdma_hs_stats {
	bool complete;
	bool confirmed;
	bool retried;
	bool validated;
	u8 early;
	u64 rx_bytes;
	u64 tx_bytes;
	u32 held;
	u32 held_dropped;
};

/**
 * qrdma_conn_hs_stats() - numbers of the handshake
 * @conn: connection
 * @stats: filled; all zero out of band
 */
void qrdma_conn_hs_stats(const struct qrdma_conn *conn, struct qrdma_hs_stats *stats);

#endif /* QRDMA_CORE_CONN_HS_H */
