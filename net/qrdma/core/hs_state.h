/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inside of a handshake in band: its struct, and what can be told from it alone.
 *
 * Owns: nothing by itself; struct qrdma_hs hangs in struct qrdma_conn, NULL out of band.
 * Used by: conn_state.c, handshake.c, conn_hs.c, conn_rx.c and the packers, under the socket lock.
 */
#ifndef QRDMA_CORE_HS_STATE_H
#define QRDMA_CORE_HS_STATE_H

#include "env.h"
#include "event.h"
#include "header.h"
#include "keys.h"
#include "cstream.h"
#include "pnspace.h"
#include "tparam.h"

/* packets that wait for their key: in all, and of one level; bounded before authentication */
#define QRDMA_HS_HELD		16
#define QRDMA_HS_HELD_LEVEL	10
/* a datagram with an Initial packet is padded to that or the path's maximum */
#define QRDMA_HS_EXPAND		1200U
/* RFC 9000 s8.1: a server sends at most so many times what it received, until validated */
#define QRDMA_HS_AMPLIFY	3

/* exponent of ACK Delay in Initial and Handshake packets: the default (RFC 9000 s18.2) */
#define QRDMA_HS_ACK_EXPONENT	3
/* spaces that only a handshake has: indexes of struct qrdma_hs.space, values of enum qrdma_space */
#define QRDMA_HS_SPACES		2

/**
 * struct qrdma_conn_space - a packet number space and the keys of its level
 * @id: enum qrdma_space, index in recovery too
 * @keys: generations
 * @pn: numbers
 * @skip_in: packets until the next number is left out
 */
struct qrdma_conn_space {
	u8 id;
	struct qrdma_keys keys;
	struct qrdma_pnspace pn;
	u32 skip_in;
};

/**
 * struct qrdma_hs_space - Initial or Handshake: numbers, keys, CRYPTO data
 * @sp: numbers and keys
 * @crypto: handshake bytes
 *
 * Owned by: struct qrdma_hs, allocated; freed when its keys are discarded (RFC 9001 s4.9).
 */
struct qrdma_hs_space {
	struct qrdma_conn_space sp;
	struct qrdma_cstream crypto;
};

/**
 * struct qrdma_held - a packet that waits for its key
 * @node: in struct qrdma_hs.held, oldest first
 * @buf: a copy of it
 * @total: bytes of its datagram
 * @at: when it arrived, ns
 * @level: enum qrdma_level
 * @ecn: ECN codepoint of its datagram
 */
struct qrdma_held {
	struct list_head node;
	struct qrdma_buf *buf;
	u32 total;
	u64 at;
	u8 level;
	u8 ecn;
};

/**
 * enum qrdma_hs_owed - a frame that is sent until it is acknowledged
 * @QRDMA_HS_NO: not wanted
 * @QRDMA_HS_DUE: to be sent
 * @QRDMA_HS_SENT: sent, unanswered
 * @QRDMA_HS_DONE: acknowledged
 */
enum qrdma_hs_owed {
	QRDMA_HS_NO,
	QRDMA_HS_DUE,
	QRDMA_HS_SENT,
	QRDMA_HS_DONE,
};

/**
 * struct qrdma_hs - a handshake in band, and what is left of it afterwards
 * @space: Initial and Handshake; NULL once discarded
 * @early: 0-RTT keys: a client's seal, a server's open
 * @early_state: enum qrdma_early
 * @early_until: server: when @early is discarded, ns, QRDMA_NEVER: not yet known (RFC 9001 s4.9.3)
 * @crypto: CRYPTO data in 1-RTT packets (tickets)
 * @started: the owner wrote handshake bytes
 * @have_params: the peer's transport parameters are known
 * @complete: TLS is done
 * @judged: client: not established before it is @confirmed
 * @confirmed: RFC 9001 s4.1.2
 * @have_cid: client: the server's connection id is known
 * @retried: see struct qrdma_hs_stats
 * @renew: client: new Initial keys are wanted, the old ones are dropped
 * @validated: server: no limit on what is sent; client: always
 * @done: enum qrdma_hs_owed, HANDSHAKE_DONE
 * @give: enum qrdma_hs_owed, NEW_TOKEN with @token
 * @odcid: destination connection id of the client's first Initial
 * @initial_cid: the one that Initial keys are derived from: @odcid, after a Retry its id
 * @retry_scid: source connection id of the Retry, valid if @retried
 * @peer_cid: the peer's, as the handshake shows it; client: valid if @have_cid
 * @token: client: for our Initial packets; server: to be given (@give). NULL: none
 * @got: client: latest token of NEW_TOKEN, NULL: none
 * @retry: client: slot to check a Retry with, NULL: none
 * @local: our transport parameters, without ids
 * @remembered: client: what 0-RTT counts on; NULL: no 0-RTT
 * @params: client: the server's, as long as they wait for the verdict on 0-RTT; NULL: they do not
 * @rx_bytes: server: bytes of datagrams received
 * @tx_bytes: sent
 * @expires: when the handshake has taken too long, ns
 * @held: struct qrdma_held, oldest first
 * @nheld: of them, by level
 * @held_dropped: packets that there was no room for
 *
 * Owned by: the connection, allocated with it. Protected by: the socket lock.
 */
struct qrdma_hs {
	struct qrdma_hs_space *space[QRDMA_HS_SPACES];
	struct qrdma_keys early;
	u8 early_state;
	u64 early_until;
	struct qrdma_cstream crypto;
	bool started;
	bool have_params;
	bool complete;
	bool judged;
	bool confirmed;
	bool have_cid;
	bool retried;
	bool renew;
	bool validated;
	u8 done;
	u8 give;
	struct qrdma_cid odcid;
	struct qrdma_cid initial_cid;
	struct qrdma_cid retry_scid;
	struct qrdma_cid peer_cid;
	struct qrdma_buf *token;
	struct qrdma_buf *got;
	struct qrdma_slot *retry;
	struct qrdma_tparams local;
	struct qrdma_tparams *remembered;
	struct qrdma_tparams *params;
	u64 rx_bytes;
	u64 tx_bytes;
	u64 expires;
	struct list_head held;
	u8 nheld[QRDMA_ENCS];
	u32 held_dropped;
};

/* Keys to seal with at a level of the handshake's own? */
static inline bool qrdma_hs_can_send(const struct qrdma_hs *hs, u32 space)
{
	return hs->space[space] && hs->space[space]->sp.keys.tx_cur;
}

/* May the application know that the connection is established? */
static inline bool qrdma_hs_is_through(const struct qrdma_hs *hs)
{
	return hs->complete && (hs->confirmed || !hs->judged);
}

/* May a client send 0-RTT packets? Ends with its rejection, and when 1-RTT keys are there. */
static inline bool qrdma_hs_early_tx(const struct qrdma_hs *hs)
{
	return hs->early.tx_cur;
}

/* What a server may send before the client's address is validated, bytes. */
static inline u64 qrdma_hs_credit(const struct qrdma_hs *hs)
{
	if (hs->validated)
		return U64_MAX;
	return QRDMA_HS_AMPLIFY * hs->rx_bytes - hs->tx_bytes;
}

#endif /* QRDMA_CORE_HS_STATE_H */
