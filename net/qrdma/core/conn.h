/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One QUIC connection: the machine between datagrams, time and the application.
 *
 * Owns: the connection's state and its parts (keys, packet number space, recovery, streams, path).
 * Called by: the datapath and the socket layer, always under the socket lock; never sleeps, has no
 * clock, calls nothing above it: it answers with event bits and the next deadline. Memory is
 * allocated with GFP_ATOMIC unless a gfp is passed. Time is u64 nanoseconds, monotonic;
 * QRDMA_NEVER is "no deadline". Errors are negative errno; protocol errors never mix with them,
 * they end the connection and are read by qrdma_conn_error().
 *
 * After any call that may change the deadline (rx_finish, timeout, the packer, application calls)
 * ask qrdma_conn_deadline() once per batch; QRDMA_EV_TIMER says that it moved.
 */
#ifndef QRDMA_CORE_CONN_H
#define QRDMA_CORE_CONN_H

#include "env.h"
#include "buf.h"
#include "config.h"
#include "ecn.h"
#include "event.h"
#include "header.h"
#include "keys.h"
#include "pnspace.h"
#include "rx.h"
#include "tparam.h"

struct qrdma_conn;

/** qrdma_conn_size() - bytes of memory of a connection, for a cache of them */
size_t qrdma_conn_size(void);

/**
 * qrdma_conn_create() - a connection
 * @cfg: what it is made from
 * @now: ns
 * @conn: the connection, owned by the caller
 * @gfp: allocation flags of this call
 *
 * One whose handshake runs out of band has only the application packet number space and is
 * "connecting" until the first packet of the peer verifies. The client's first packet opens stream
 * 0 with an empty STREAM frame, so call the packer once the keys are in. What follows
 * when the handshake runs in band is told in conn_hs.h.
 *
 * Return: 0; -EINVAL: a value that cannot be (id lengths, more active connection ids than path.h
 * holds, a datagram too small); -ENOMEM.
 */
int qrdma_conn_create(const struct qrdma_conn_config *cfg, u64 now, struct qrdma_conn **conn,
		      gfp_t gfp);

/**
 * qrdma_conn_destroy() - free it and all it holds, silently
 * @conn: connection; NULL is accepted
 *
 * Packets being sealed or opened hold their own references: they may end later by
 * qrdma_tx_release() and qrdma_rx_release().
 */
void qrdma_conn_destroy(struct qrdma_conn *conn);

/**
 * qrdma_conn_install_key() - the first key of one direction (1-RTT level)
 * @conn: connection
 * @send: direction: true seals
 * @cipher: enum qrdma_cipher
 * @cur: key from the traffic secret; the reference is taken over on success only
 *
 * Return: 0; -EEXIST: installed already, a second install would repeat nonces; -EINVAL: cipher.
 */
int qrdma_conn_install_key(struct qrdma_conn *conn, bool send, u32 cipher,
			   struct qrdma_slot *cur);

/**
 * qrdma_conn_next_keys() - after QRDMA_EV_NEED_KEY: what to derive the next generation from
 * @conn: connection
 * @send: direction; ask for both
 *
 * They are wanted when the connection is in use, or something has asked for them.
 *
 * Return: slot with a reference for the caller; NULL: none is wanted.
 */
struct qrdma_slot *qrdma_conn_next_keys(struct qrdma_conn *conn, bool send);

/**
 * qrdma_conn_install_next() - the generation derived from qrdma_conn_next_keys()
 * @conn: connection
 * @send: direction
 * @from: what it was derived from; the caller keeps that reference and drops it
 * @next: the reference is taken over on success only
 *
 * Return: 0; -ESTALE: @from is not the current one any more; -EEXIST: there is one already.
 */
int qrdma_conn_install_next(struct qrdma_conn *conn, bool send, struct qrdma_slot *from,
			    struct qrdma_slot *next);

/**
 * qrdma_conn_key_update() - seal with the next generation from now on (RFC 9001 s6)
 * @conn: connection
 *
 * Return: 0, then call the packer; -EAGAIN: the last one is not confirmed yet (RFC 9001 s6.1) or
 * less than three PTOs old (s6.5), or the next generation is not derived yet, which
 * qrdma_conn_next_keys() asks for now; -ENOTCONN: closing or closed.
 */
int qrdma_conn_key_update(struct qrdma_conn *conn);

/**
 * qrdma_conn_rx_begin() - take the next packet of a datagram
 * @conn: connection, found by the destination connection id
 * @rx: datagram; @data and @len move on with each call, so the loop ends
 * @now: ns
 *
 * Removes header protection in place (RFC 9001 s5.4), finds packet number and key. Where the
 * handshake runs out of band long header packets are dropped: no level but 1-RTT has keys there. In
 * band a packet whose key is yet to come is kept (and QRDMA_RX_DROP said), up to a limit.
 * QRDMA_DROP_NO_KEY may leave events behind: qrdma_conn_events().
 *
 * Return: see enum qrdma_rx_verdict.
 */
enum qrdma_rx_verdict qrdma_conn_rx_begin(struct qrdma_conn *conn, struct qrdma_rx *rx, u64 now);

/**
 * qrdma_conn_rx_finish() - a packet was opened, or failed to: check it and apply its frames
 * @conn: connection
 * @rx: as qrdma_conn_rx_begin() left it
 * @err: 0, -EBADMSG (the tag does not verify) or another error of the AEAD
 * @now: ns
 *
 * Drops the operation's reference to its slot. The duplicate check stands here, after the packet
 * verified (RFC 9000 s12.3). All frames are decoded and checked before the first is applied.
 *
 * Return: event bits.
 */
u32 qrdma_conn_rx_finish(struct qrdma_conn *conn, struct qrdma_rx *rx, int err, u64 now);

/**
 * qrdma_rx_release() - give up a packet that was begun and will not be finished
 * @rx: datagram; harmless when nothing was begun
 *
 * Any context, no lock; the connection may be gone.
 */
void qrdma_rx_release(struct qrdma_rx *rx);

/**
 * qrdma_conn_reset_token() - the token to look for in datagrams that belong to nobody
 * @conn: connection
 *
 * QRDMA_EV_RESET_TOKEN says that it is another one now.
 *
 * Return: QRDMA_PATH_TOKEN bytes; NULL: the peer gave none.
 */
const u8 *qrdma_conn_reset_token(const struct qrdma_conn *conn);

/**
 * qrdma_conn_on_stray() - a datagram came that no connection id leads to: a stateless reset?
 * @conn: connection whose token stands at its end, or might
 * @data: the datagram
 * @len: bytes of it
 * @now: ns
 *
 * If it is one the peer has lost the connection: it drains, ECONNRESET (RFC 9000 s10.3.1). Before
 * a packet of the peer has verified none is believed: the peer may only be about to be there.
 *
 * Return: event bits.
 */
u32 qrdma_conn_on_stray(struct qrdma_conn *conn, const u8 *data, u32 len, u64 now);

/**
 * qrdma_conn_deadline() - when qrdma_conn_timeout() has to be called
 * @conn: connection
 *
 * Return: ns, may lie in the past; QRDMA_NEVER: no timer runs.
 */
u64 qrdma_conn_deadline(const struct qrdma_conn *conn);

/**
 * qrdma_conn_timeout() - time has passed
 * @conn: connection
 * @now: ns; harmless when nothing is due
 *
 * Return: event bits.
 */
u32 qrdma_conn_timeout(struct qrdma_conn *conn, u64 now);

/*
 * Application side, stream @id (stream 0 is the socket). All return -ENOENT for a stream that does
 * not exist. Reading goes on after QRDMA_EV_CLOSED until what has arrived is consumed.
 */

/**
 * qrdma_conn_write() - append bytes to a stream, without a copy
 * @conn: connection
 * @id: stream
 * @buf: buffer that holds them; the connection takes its own reference
 * @off: where they start in @buf
 * @len: bytes
 *
 * The bytes must not change before they are acknowledged. Call the packer afterwards.
 *
 * Return: 0; -EPIPE: after FIN, reset, STOP_SENDING of the peer, or the end of the connection;
 * -ENOMEM; -ENOBUFS: over tx_mem_max.
 */
int qrdma_conn_write(struct qrdma_conn *conn, u64 id, struct qrdma_buf *buf, u32 off, u32 len);

/**
 * qrdma_conn_write_tail() - room behind the last bytes written, for small writes to share a buffer
 * @conn: connection
 * @id: stream
 * @room: first byte of it
 *
 * Return: bytes of room, 0: none; negative as qrdma_conn_write().
 */
int qrdma_conn_write_tail(struct qrdma_conn *conn, u64 id, u8 **room);

/**
 * qrdma_conn_write_commit() - bytes were copied to the room of qrdma_conn_write_tail()
 * @conn: connection
 * @id: stream
 * @len: bytes; at most the room
 */
void qrdma_conn_write_commit(struct qrdma_conn *conn, u64 id, u32 len);

/**
 * qrdma_conn_finish() - FIN behind what was written; call the packer afterwards
 * @conn: connection
 * @id: stream
 *
 * Return: 0 (also when it stands there already); -EPIPE: reset, or the connection has ended.
 */
int qrdma_conn_finish(struct qrdma_conn *conn, u64 id);

/**
 * qrdma_conn_peek() - contiguous bytes to read
 * @conn: connection
 * @id: stream
 * @skip: bytes behind the read position
 * @data: first byte; valid until they are consumed
 *
 * Return: bytes, 0: none now (or the end, see qrdma_conn_at_eof()); -ECONNRESET: the peer reset
 * the stream.
 */
int qrdma_conn_peek(struct qrdma_conn *conn, u64 id, u64 skip, const u8 **data);

/**
 * qrdma_conn_consume() - bytes were read; opens credit
 * @conn: connection
 * @id: stream
 * @len: bytes; at most what qrdma_conn_readable() says
 *
 * Return: event bits: QRDMA_EV_TX when more credit is to be told to the peer.
 */
u32 qrdma_conn_consume(struct qrdma_conn *conn, u64 id, u32 len);

/**
 * qrdma_conn_at_eof() - has everything up to the peer's FIN been consumed?
 * @conn: connection
 * @id: stream
 */
bool qrdma_conn_at_eof(const struct qrdma_conn *conn, u64 id);

/**
 * qrdma_conn_rx_complete() - has everything up to the peer's FIN arrived, read or not?
 * @conn: connection
 * @id: stream
 */
bool qrdma_conn_rx_complete(const struct qrdma_conn *conn, u64 id);

/**
 * qrdma_conn_rx_full() - has the peer used up its credit, so that only reading brings more?
 * @conn: connection
 * @id: stream
 *
 * True only when all of these bytes can be read: none is missing among them.
 */
bool qrdma_conn_rx_full(const struct qrdma_conn *conn, u64 id);

/**
 * qrdma_conn_tx_done() - is nothing left to be delivered: are all bytes and FIN acknowledged, or
 * is the reset?
 * @conn: connection
 * @id: stream
 *
 * QRDMA_EV_ACKED says so when it happens; this tells whether it has happened.
 */
bool qrdma_conn_tx_done(const struct qrdma_conn *conn, u64 id);

/**
 * qrdma_conn_readable() - bytes that can be read without waiting (FIONREAD)
 * @conn: connection
 * @id: stream
 */
u64 qrdma_conn_readable(const struct qrdma_conn *conn, u64 id);

/**
 * qrdma_conn_unacked() - bytes written and not acknowledged (SIOCOUTQ)
 * @conn: connection
 * @id: stream
 */
u64 qrdma_conn_unacked(const struct qrdma_conn *conn, u64 id);

/**
 * qrdma_conn_unsent() - bytes written and not sent once (SIOCOUTQNSD)
 * @conn: connection
 * @id: stream
 */
u64 qrdma_conn_unsent(const struct qrdma_conn *conn, u64 id);

/**
 * qrdma_conn_stop_reading() - ask the peer to stop sending (STOP_SENDING); drops what has arrived
 * @conn: connection
 * @id: stream
 * @code: application error code
 *
 * Call the packer afterwards. Return: 0; -EALREADY: the stream has ended or was stopped.
 */
int qrdma_conn_stop_reading(struct qrdma_conn *conn, u64 id, u64 code);

/**
 * qrdma_conn_reset() - give up sending (RESET_STREAM); drops what is not acknowledged
 * @conn: connection
 * @id: stream
 * @code: application error code
 *
 * Call the packer afterwards. Return: 0; -EALREADY: everything is acknowledged, or reset already.
 */
int qrdma_conn_reset(struct qrdma_conn *conn, u64 id, u64 code);

/**
 * qrdma_conn_hold_credit() - under memory pressure grant nothing
 * @conn: connection
 * @hold: true from now on; false: grant again, then call the packer
 */
void qrdma_conn_hold_credit(struct qrdma_conn *conn, bool hold);

/**
 * qrdma_conn_set_rx_window() - how much may be on its way to us or unread (SO_RCVBUF)
 * @conn: connection
 * @bytes: of connection and stream credit alike; credit already granted is never taken back
 */
void qrdma_conn_set_rx_window(struct qrdma_conn *conn, u64 bytes);

/**
 * qrdma_conn_set_rx_mem_max() - another cap of memory pinned by received stream data
 * @conn: connection
 * @bytes: see struct qrdma_conn_config; what is pinned beyond it stays
 */
void qrdma_conn_set_rx_mem_max(struct qrdma_conn *conn, u32 bytes);

/**
 * qrdma_conn_ping() - send a PING (keepalive); call the packer afterwards
 * @conn: connection
 */
void qrdma_conn_ping(struct qrdma_conn *conn);

/**
 * qrdma_conn_close() - end it: CONNECTION_CLOSE follows, what is not acknowledged is dropped
 * @conn: connection
 * @code: error code
 * @app: @code is the application's (frame 0x1d)
 * @now: ns
 *
 * The connection closes for three PTOs (RFC 9000 s10.2.1), then says QRDMA_EV_DRAINED. Does
 * nothing when it is closing already.
 *
 * Return: event bits.
 */
u32 qrdma_conn_close(struct qrdma_conn *conn, u64 code, bool app, u64 now);

/**
 * qrdma_conn_abort() - end it silently: no packet can leave (the device is gone)
 * @conn: connection
 */
void qrdma_conn_abort(struct qrdma_conn *conn);

/**
 * qrdma_conn_set_path() - a new peer address or a new MTU
 * @conn: connection
 * @max_datagram: largest QUIC datagram that it takes, bytes
 * @now: ns
 *
 * The packets in flight stay valid, QUIC finds them by number; those larger than the new path takes
 * are lost and their contents cut anew.
 */
void qrdma_conn_set_path(struct qrdma_conn *conn, u32 max_datagram, u64 now);

/**
 * qrdma_conn_kick() - packets in flight are probably lost (a lane died, sends were refused)
 * @conn: connection
 * @now: ns
 *
 * Sends probes at once instead of waiting for the PTO; the window is not cut for it.
 *
 * Return: event bits.
 */
u32 qrdma_conn_kick(struct qrdma_conn *conn, u64 now);

/**
 * qrdma_conn_error() - why it ended
 * @conn: connection
 * @error: filled
 */
void qrdma_conn_error(const struct qrdma_conn *conn, struct qrdma_conn_error *error);

/**
 * qrdma_conn_rx_mem() - memory pinned by received stream data, bytes: what the socket charges
 * @conn: connection
 */
u32 qrdma_conn_rx_mem(const struct qrdma_conn *conn);

/**
 * qrdma_conn_tx_mem() - memory of data written and not acknowledged, bytes
 * @conn: connection
 */
u32 qrdma_conn_tx_mem(const struct qrdma_conn *conn);

/**
 * struct qrdma_conn_stats - numbers for QRDMA_INFO
 * @sent: packets
 * @received: packets that verified and were new
 * @lost: packets declared lost
 * @spurious: declared lost, acknowledged later
 * @retransmitted_bytes: stream bytes sent again
 * @opened: packets whose tag verified
 * @open_failed: packets whose tag did not
 * @sealed: packets handed out for sealing
 * @drops: by reason
 * @bytes_sent: datagram bytes
 * @bytes_received: packet bytes of @received
 * @bytes_acked: stream bytes
 * @bytes_delivered: stream bytes handed to the application
 * @capped: frames of the peer ignored because a queue was at its cap (PATH_CHALLENGE)
 * @srtt: ns
 * @rttvar: ns
 * @min_rtt: ns
 * @latest_rtt: ns
 * @cwnd: bytes
 * @in_flight: bytes
 * @ssthresh: bytes
 * @pto_count: probe time-outs in a row
 * @key_phase: generation of the sealing key
 * @key_updates: of the sealing key
 * @max_datagram: bytes
 * @ce_marks: packets received with ECN-CE
 * @loss_events: QRDMA_EV_LOSS so far
 * @ecn: what is known about the path
 * @ce_reported: packets of ours that the peer received with ECN-CE
 */
struct qrdma_conn_stats {
	u64 sent, received, lost, spurious, retransmitted_bytes;
	u64 opened, open_failed;
	u64 sealed;
	u64 drops[__QRDMA_DROP_MAX];
	u64 bytes_sent, bytes_received, bytes_acked, bytes_delivered;
	u64 capped;
	u64 srtt, rttvar, min_rtt, latest_rtt;
	u64 cwnd, in_flight, ssthresh;
	u32 pto_count, key_phase, key_updates;
	u32 max_datagram;
	u32 ce_marks;
	u64 loss_events;
	enum qrdma_ecn_state ecn;
	u64 ce_reported;
};

/**
 * qrdma_conn_stats() - numbers for QRDMA_INFO
 * @conn: connection
 * @stats: filled
 */
void qrdma_conn_stats(const struct qrdma_conn *conn, struct qrdma_conn_stats *stats);

#endif /* QRDMA_CORE_CONN_H */
