/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inside of a connection: its struct, and the few steps that receiving, sending and timing
 * share: acknowledged and lost frames, the end of the connection, what to tell the caller.
 *
 * Owns: struct qrdma_conn. Called by: the files of the connection layer and nobody else; under the
 * socket lock, never sleeping.
 *
 * Life: OPEN (connecting until the first packet of the peer verifies) -> CLOSING (we said
 * CONNECTION_CLOSE) or DRAINING (the peer did), both for three PTOs -> DEAD. An idle time-out, an
 * abort and spent packet numbers lead to DEAD at once (RFC 9000 s10).
 */
#ifndef QRDMA_CORE_CONN_STATE_H
#define QRDMA_CORE_CONN_STATE_H

#include "env.h"
#include "event.h"
#include "hs_state.h"
#include "keys.h"
#include "pnspace.h"
#include "recovery.h"
#include "stream.h"
#include "path.h"

/* Post-handshake CRYPTO bytes of a peer that are taken before it is CRYPTO_BUFFER_EXCEEDED. */
#define QRDMA_CONN_CRYPTO_MAX	(16 * 1024)
/* PTOs in a row from which on the peer's address is doubted */
#define QRDMA_CONN_SUSPECT_PTOS	3
/* loss, in 1/1000, that the loss monitor reports unless told otherwise */
#define QRDMA_CONN_LOSS_PERMILLE	10
/* longest idle time-out that is kept, ms: a day; longer ones are none */
#define QRDMA_CONN_IDLE_MAX_MS	(24 * 3600 * 1000ULL)
/* when memory for a packet was short, ns until the next try */
#define QRDMA_CONN_RETRY	NSEC_PER_MSEC
/* quiet for so long, ns, a connection gives back the memory of its sent records */
#define QRDMA_CONN_TIDY		NSEC_PER_SEC
/* packets sent and received in a row from which on a connection has its next keys derived ahead */
#define QRDMA_CONN_KEYS_AHEAD	32
/* packets sent between two looks of the loss monitor */
#define QRDMA_CONN_LOSS_WINDOW	1000
/* A number is left out every so many packets, on average 384 (RFC 9000 s21.4, field case F66). */
#define QRDMA_CONN_SKIP_MIN	128
#define QRDMA_CONN_SKIP_SPAN	512

/** enum qrdma_conn_phase - where in its life a connection is */
enum qrdma_conn_phase {
	QRDMA_CONN_OPEN,
	QRDMA_CONN_CLOSING,
	QRDMA_CONN_DRAINING,
	QRDMA_CONN_DEAD,
};

/**
 * struct qrdma_conn - one connection
 * @cache: where this memory is from, NULL: kmalloc
 * @phase: enum qrdma_conn_phase
 * @server: role
 * @verified: a packet of the peer verified
 * @established: told to the caller
 * @ping: a PING is to be sent
 * @idle_armed: an ack-eliciting packet was sent since the last one came in (RFC 9000 s10.1)
 * @close_due: CONNECTION_CLOSE is to be sent (again)
 * @ack_exponent: ours
 * @peer_ack_exponent: the peer's
 * @probes: datagrams that are sent whatever window and pacing say (RFC 9002 s6.2.4)
 * @probe_from: where the next of them looks for something to repeat, a packet number
 * @probe_space: packet number space of @probes, enum qrdma_space
 * @app: the application packet number space, the only one of a handshake out of band
 * @hs: the handshake in band, NULL: out of band
 * @recovery: what was sent
 * @streams: all of them
 * @s0: stream 0, which is the socket; NULL on a server until the client opens it
 * @path: ids and datagram size
 * @datagram_max: largest datagram that the peer takes, bytes; U32_MAX: the path's owner knows
 * @max_datagram_frame: largest DATAGRAM frame welcome, bytes; 0: none
 * @key_packets_max: see struct qrdma_conn_config
 * @idle_timeout: ns, 0: none; the smaller of both ends'
 * @idle_since: when it last started, ns
 * @heard: when a packet of the peer last verified, ns
 * @keepalive: ns, 0: none
 * @keep_since: when the last packet came in, or a keepalive was sent, ns
 * @paced_until: what is pending may not leave before, QRDMA_NEVER: pacing holds nothing back
 * @tidied: when memory was last given back, ns
 * @keys_from: the next keys are derived ahead when that many packets were opened and sealed
 * @told: the deadline when the caller was last told that it moved
 * @said_tx: when the caller was last told to send; what was due by then needs no deadline
 * @close_until: end of closing or draining, ns
 * @close_seen: packets that came in while closing
 * @close_next: at so many the next CONNECTION_CLOSE is sent
 * @error: why it ended
 * @events: to be returned by the next call that returns any
 * @loss_permille: see struct qrdma_conn_config
 * @loss_sent: packets sent up to the last look of the loss monitor
 * @loss_lost: lost up to then
 * @rng: state of the generator, see qrdma_conn_random()
 * @n: counters, the rest of struct qrdma_conn_stats is read from the parts
 * @n.drops: received packets not used, by reason
 * @n.received: packets that verified and were new
 * @n.bytes_received: bytes of them
 * @n.opened: packets whose tag verified
 * @n.sealed: packets handed out for sealing
 * @n.bytes_resent: stream bytes that went back to be sent again
 * @n.bytes_delivered: stream bytes that the application consumed
 * @n.datagrams_dropped: DATAGRAM frames that nobody takes
 * @n.loss_events: times that the loss monitor found more than its limit
 *
 * Found by: the socket's pointer. Owned by: the socket. Dies by qrdma_conn_destroy(). Protected by:
 * the socket lock.
 */
struct qrdma_conn {
	struct kmem_cache *cache;
	u8 phase;
	bool server;
	bool verified;
	bool established;
	bool ping;
	bool idle_armed;
	bool close_due;
	u8 ack_exponent;
	u8 peer_ack_exponent;
	u8 probes;
	u8 probe_space;
	u64 probe_from;
	struct qrdma_conn_space app;
	struct qrdma_hs *hs;
	struct qrdma_recovery recovery;
	struct qrdma_streams streams;
	struct qrdma_stream *s0;
	struct qrdma_path path;
	u32 datagram_max;
	u64 max_datagram_frame;
	u64 key_packets_max;
	u64 idle_timeout;
	u64 idle_since;
	u64 heard;
	u64 keepalive;
	u64 keep_since;
	u64 paced_until;
	u64 tidied;
	u64 keys_from;
	u64 told;
	u64 said_tx;
	u64 close_until;
	u32 close_seen;
	u32 close_next;
	struct qrdma_conn_error error;
	u32 events;
	u32 loss_permille;
	u64 loss_sent;
	u64 loss_lost;
	u64 rng[4];
	struct {
		u64 drops[__QRDMA_DROP_MAX];
		u64 received;
		u64 bytes_received;
		u64 opened;
		u64 sealed;
		u64 bytes_resent;
		u64 bytes_delivered;
		u64 datagrams_dropped;
		u64 loss_events;
	} n;
};

/* The numbers and keys of a packet number space, NULL: there are none (any more). */
static inline struct qrdma_conn_space *qrdma_conn_space(struct qrdma_conn *conn, u8 space)
{
	if (likely(space == QRDMA_SPACE_APP))
		return &conn->app;
	if (!conn->hs || !conn->hs->space[space])
		return NULL;
	return &conn->hs->space[space]->sp;
}

/* The CRYPTO data that goes in a packet number space, NULL: there is none (any more). */
static inline struct qrdma_cstream *qrdma_conn_cstream(const struct qrdma_conn *conn, u8 space)
{
	struct qrdma_hs *hs = conn->hs;

	if (!hs)
		return NULL;
	if (space == QRDMA_SPACE_APP)
		return &hs->crypto;
	return hs->space[space] ? &hs->space[space]->crypto : NULL;
}

/**
 * qrdma_conn_random() - the next random number
 * @conn: connection
 *
 * For choices that a peer should not foresee; not for keys.
 */
u64 qrdma_conn_random(struct qrdma_conn *conn);

/**
 * qrdma_conn_skip_draw() - choose when the next packet number is left out
 * @conn: connection
 * @space: its packet number space
 */
void qrdma_conn_skip_draw(struct qrdma_conn *conn, struct qrdma_conn_space *space);

/**
 * qrdma_conn_three_ptos() - three probe time-outs, ns: how long ends and old keys last
 * @conn: connection
 */
static inline u64 qrdma_conn_three_ptos(const struct qrdma_conn *conn)
{
	return 3 * qrdma_recovery_pto(&conn->recovery, QRDMA_SPACE_APP);
}

/**
 * qrdma_conn_settle() - packets were acknowledged or lost: tell the owners of their frames
 * @conn: connection
 * @res: from recovery
 */
void qrdma_conn_settle(struct qrdma_conn *conn, const struct qrdma_recovery_result *res);

/**
 * qrdma_conn_again() - the frames of a packet are to be sent again
 * @conn: connection
 * @sent: the packet
 */
void qrdma_conn_again(struct qrdma_conn *conn, const struct qrdma_sent *sent);

/**
 * qrdma_conn_fail() - this end found an error: close with it (RFC 9000 s10.2, s11.1)
 * @conn: connection; nothing happens when it has ended already
 * @err: positive errno for the socket
 * @code: QUIC error code
 * @frame_type: frame that caused it, 0: none
 * @now: ns
 */
void qrdma_conn_fail(struct qrdma_conn *conn, int err, u64 code, u64 frame_type, u64 now);

/**
 * qrdma_conn_begin_closing() - CONNECTION_CLOSE will be sent; @conn->error is filled in
 * @conn: connection, open
 * @now: ns
 *
 * Without a key to seal it with the connection is dead at once.
 */
void qrdma_conn_begin_closing(struct qrdma_conn *conn, u64 now);

/**
 * qrdma_conn_begin_draining() - the peer sent CONNECTION_CLOSE
 * @conn: connection, open or closing
 * @now: ns
 */
void qrdma_conn_begin_draining(struct qrdma_conn *conn, u64 now);

/**
 * qrdma_conn_die() - the end, without a packet; @conn->error is filled in
 * @conn: connection
 */
void qrdma_conn_die(struct qrdma_conn *conn);

/**
 * qrdma_conn_wipe() - drop the keys of all levels
 * @conn: connection
 */
void qrdma_conn_wipe(struct qrdma_conn *conn);

/**
 * qrdma_conn_wants_keys() - are next generations missing, and worth being derived?
 * @conn: connection
 */
static inline bool qrdma_conn_wants_keys(const struct qrdma_conn *conn)
{
	const struct qrdma_keys *keys = &conn->app.keys;

	return qrdma_keys_lacking(keys) && (conn->n.opened + conn->n.sealed >= conn->keys_from ||
					    qrdma_keys_pressing(keys));
}

/**
 * qrdma_conn_can_seal() - is there a key to send with, at any level?
 * @conn: connection
 */
bool qrdma_conn_can_seal(const struct qrdma_conn *conn);

/**
 * qrdma_conn_can_open() - can packets of a level be received?
 * @conn: connection, in band
 * @level: enum qrdma_level
 */
bool qrdma_conn_can_open(const struct qrdma_conn *conn, u8 level);

/**
 * qrdma_conn_held_ready() - the oldest packet that waited for its key and need not any more
 * @conn: connection, in band
 *
 * Return: NULL: there is none.
 */
struct qrdma_held *qrdma_conn_held_ready(const struct qrdma_conn *conn);

/**
 * qrdma_conn_frames_pending() - is there more to send than ACK frames and probes?
 * @conn: connection
 */
bool qrdma_conn_frames_pending(const struct qrdma_conn *conn);

/**
 * qrdma_conn_hs_urgent() - has the handshake to go on whatever window and pacing say?
 * @conn: connection
 *
 * So it is when handshake bytes wait and nothing of the handshake is on its way: what fills the
 * window may be lost 0-RTT packets, and no probe time-out runs for these before the handshake is
 * confirmed (RFC 9002 s6.2.1). One datagram, as a probe would be.
 */
bool qrdma_conn_hs_urgent(const struct qrdma_conn *conn);

/**
 * qrdma_conn_ack_at() - when the next ACK frame is due, of the spaces where one can be sent
 * @conn: connection
 *
 * Return: ns, QRDMA_NEVER: none is owed.
 */
u64 qrdma_conn_ack_at(const struct qrdma_conn *conn);

/**
 * qrdma_conn_tx_wanted() - is there a reason to call the packer?
 * @conn: connection
 * @now: ns
 */
bool qrdma_conn_tx_wanted(const struct qrdma_conn *conn, u64 now);

/**
 * qrdma_conn_idle_timeout() - the smaller of both ends' values, 0 stands for none (RFC 9000 s10.1)
 * @a: transport parameters of one end
 * @b: of the other
 *
 * Return: ns, 0: none.
 */
u64 qrdma_conn_idle_timeout(const struct qrdma_tparams *a, const struct qrdma_tparams *b);

/**
 * qrdma_conn_idle_at() - when the idle time-out ends the connection (RFC 9000 s10.1)
 * @conn: connection
 *
 * Return: ns, QRDMA_NEVER: there is none.
 */
u64 qrdma_conn_idle_at(const struct qrdma_conn *conn);

/**
 * qrdma_conn_tidy_at() - when memory that an idle connection does not need is given back
 * @conn: connection
 *
 * Return: ns, QRDMA_NEVER: there is none, or it is in use.
 */
u64 qrdma_conn_tidy_at(const struct qrdma_conn *conn);

/**
 * qrdma_conn_next_deadline() - see qrdma_conn_deadline()
 * @conn: connection
 */
u64 qrdma_conn_next_deadline(const struct qrdma_conn *conn);

/**
 * qrdma_conn_collect() - event bits to be returned now; clears what is remembered
 * @conn: connection
 * @now: ns
 */
u32 qrdma_conn_collect(struct qrdma_conn *conn, u64 now);

#endif /* QRDMA_CORE_CONN_STATE_H */
