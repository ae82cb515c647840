/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a connection is made from.
 *
 * Owns: nothing. Included by: conn.h for the socket layer; read by qrdma_conn_create() alone.
 * Context and lock: none.
 */
#ifndef QRDMA_CORE_CONFIG_H
#define QRDMA_CORE_CONFIG_H

#include "env.h"
#include "header.h"
#include "keys.h"
#include "tparam.h"

/* how long a handshake may take unless told otherwise, ns */
#define QRDMA_HS_TIMEOUT	(10ULL * NSEC_PER_SEC)
/* shortest connection id that a client may choose for a server, bytes (RFC 9000 s7.2) */
#define QRDMA_HS_CID_MIN	8
/* largest token taken (Retry, NEW_TOKEN) or sent, bytes; a larger one is ignored */
#define QRDMA_HS_TOKEN_MAX	512

/**
 * struct qrdma_hs_config - what a handshake in band is made from; all of it is copied
 * @odcid: server: destination connection id of the client's first Initial; after a Retry the one
 *	that the token names. Client: NULL, it is @dcid of struct qrdma_conn_config
 * @retry_scid: server, when the client came back with the token of a Retry: the id that the Retry
 *	gave it, which its Initial is sent to; NULL: there was none
 * @validated: server: a token has proved the client's address (RFC 9000 s8.1)
 * @token: client: token of an earlier connection (RFC 9000 s8.1.3), NULL: none
 * @token_len: bytes of it, at most QRDMA_HS_TOKEN_MAX
 * @retry: client: AES-128-GCM slot of the secret of RFC 9001 s5.8, a reference of its own is
 *	taken; NULL: Retry packets are ignored
 * @remembered: client: the server's transport parameters of the connection that gave the ticket,
 *	for 0-RTT (RFC 9000 s7.4.1); NULL: none. Server: not looked at
 * @timeout: how long the handshake may take, ns; 0: QRDMA_HS_TIMEOUT
 */
struct qrdma_hs_config {
	const struct qrdma_cid *odcid;
	const struct qrdma_cid *retry_scid;
	bool validated;
	const u8 *token;
	u32 token_len;
	struct qrdma_slot *retry;
	const struct qrdma_tparams *remembered;
	u64 timeout;
};

/**
 * struct qrdma_conn_config - what a connection is made from; all of it is copied
 * @aead: the AEAD port
 * @cache: where the connection's memory comes from, objects of qrdma_conn_size() bytes; NULL:
 *	kmalloc()
 * @is_server: role
 * @scid: our connection id (QRDMA_CID_LEN bytes)
 * @dcid: the peer's; in band: for a client random, 8 to 20 bytes (RFC 9000 s7.2), for a server
 *	the source connection id of the client's Initial
 * @local: our transport parameters (already sent, or to be sent, to the peer)
 * @remote: the peer's; not looked at in band, where they come with the handshake
 * @hs: the handshake runs in band; NULL: out of band
 * @max_datagram: largest QUIC datagram that the path takes, bytes (1 KiB paths give 1020)
 * @granularity: timer granularity, ns (RFC 9002 kGranularity); 0: the default of recovery.h
 * @initial_rtt: ns, measured by the address resolution; 0: RFC 9002 s6.2.2
 * @ack_delay: ns, how long an acknowledgement may wait; at most @local's max_ack_delay, 0: that
 * @cong: congestion controller, enum qrdma_cong_alg of cong.h
 * @rx_mem_max: cap of memory pinned by received stream data, bytes
 * @tx_mem_max: cap of memory of unacknowledged data, bytes (the socket enforces SO_SNDBUF itself;
 *	this is the hard cap)
 * @key_packets_max: packets that one key may seal before the connection must have moved to the next
 *	(an update starts by itself at 7/8); 0 or above the cipher's limit: the cipher's limit
 * @keepalive: send a PING when nothing has come in for so long, ns; 0: never. Keeps the idle
 *	time-out away as long as the peer answers (RFC 9000 s10.1.2)
 * @loss_permille: loss of more than this, in 1/1000 of the packets sent, raises QRDMA_EV_LOSS;
 *	0: 10 (1 %)
 * @ecn: have packets sent as ECT(0) as long as the path carries that (RFC 9000 s13.4.2); in band
 *	from the end of the handshake on
 * @random: seed for everything that the connection needs random
 */
struct qrdma_conn_config {
	const struct qrdma_aead_ops *aead;
	struct kmem_cache *cache;
	bool is_server;
	const struct qrdma_cid *scid;
	const struct qrdma_cid *dcid;
	const struct qrdma_tparams *local;
	const struct qrdma_tparams *remote;
	const struct qrdma_hs_config *hs;
	u32 max_datagram;
	u64 granularity;
	u64 initial_rtt;
	u64 ack_delay;
	u32 cong;
	u32 rx_mem_max;
	u32 tx_mem_max;
	u64 key_packets_max;
	u64 keepalive;
	u32 loss_permille;
	bool ecn;
	u8 random[32];
};

#endif /* QRDMA_CORE_CONFIG_H */
