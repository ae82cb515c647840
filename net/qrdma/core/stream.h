/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The streams of one connection: table, limits, both halves of each stream, credit on both
 * levels.
 *
 * Owns: every struct qrdma_stream, and through it received and written bytes. Called by:
 * conn.c (received frames, acknowledged and lost notes, application calls) and packer.c
 * (what to send), softirq or process context, under the socket lock; never sleeps.
 *
 * Results: errno says what happened to the call, a QUIC error code (RFC 9000 s20.1) what
 * the peer did wrong; they do not mix. qrdma_streams_on_frame() returns 0, or -EPROTO and
 * the code in *@verdict (close the connection), or -ENOBUFS / -ENOMEM: nothing changed,
 * drop the packet and do not acknowledge it.
 *
 * A stream socket is client-initiated bidirectional stream 0 of a table that allows one
 * such stream; nothing here depends on that.
 */
#ifndef QRDMA_CORE_STREAM_H
#define QRDMA_CORE_STREAM_H

#include "env.h"
#include "buf.h"
#include "frame.h"
#include "keys.h"
#include "flow.h"
#include "reasm.h"
#include "sendq.h"

struct qrdma_tparams;

/* streams of one type that a peer may have open at a time, whatever our parameters say */
#define QRDMA_STREAMS_PEER_MAX	128
#define QRDMA_STREAMS_HASH	16

/* Index of a type of stream in the table's arrays. */
#define QRDMA_BIDI	0
#define QRDMA_UNI	1

/*
 * Events, in struct qrdma_stream for one stream and collected in struct qrdma_streams; the
 * reader clears them.
 */
#define QRDMA_STREAM_EV_READABLE BIT(0)	/* more bytes, the end, or a reset to be read */
#define QRDMA_STREAM_EV_WRITABLE BIT(1)	/* memory of written bytes came free */
#define QRDMA_STREAM_EV_STOPPED	BIT(2)	/* STOP_SENDING came: writing is -EPIPE now */
#define QRDMA_STREAM_EV_OPENED	BIT(3)	/* the peer opened it: qrdma_streams_accept() */
#define QRDMA_STREAM_EV_ACKED	BIT(4)	/* all written and FIN (or the reset) is acknowledged */
#define QRDMA_STREAM_EV_CREDIT	BIT(5)	/* another stream may be opened by us */

/**
 * enum qrdma_owed - a frame that is sent until it is acknowledged
 * @QRDMA_OWED_NO: not wanted
 * @QRDMA_OWED_DUE: to be sent
 * @QRDMA_OWED_SENT: sent, unanswered
 * @QRDMA_OWED_DONE: acknowledged
 */
enum qrdma_owed {
	QRDMA_OWED_NO,
	QRDMA_OWED_DUE,
	QRDMA_OWED_SENT,
	QRDMA_OWED_DONE,
};

/**
 * struct qrdma_stream - one stream
 * @id: stream id (RFC 9000 s2.1)
 * @hash_next: chain of the table
 * @tx_node: in the table's list of streams that may have STREAM frames to send
 * @ctl_node: in the table's list of streams that may owe other frames
 * @accept_node: in the table's list of streams that the application did not ask for yet
 * @events: QRDMA_STREAM_EV_* bits
 * @released: the application let go; freed when both halves are at their end
 * @has_rx: there is a receiving half
 * @has_tx: there is a sending half
 * @rx: received bytes
 * @rx_flow: credit that the peer has
 * @rx_final: final size, U64_MAX while unknown
 * @rx_code: application error code of the peer's RESET_STREAM
 * @rx_reset: a RESET_STREAM cut the stream off; what was not read is gone
 * @rx_discard: bytes that come in are counted and dropped (reading was stopped)
 * @stop: our STOP_SENDING
 * @stop_code: its application error code
 * @tx: written bytes
 * @tx_flow: credit that we have
 * @open: the empty STREAM frame that shows a stream of ours to the peer before there are bytes
 * @fin: the FIN bit
 * @reset: our RESET_STREAM; @tx is empty then
 * @reset_code: its application error code
 * @stopped: the peer sent STOP_SENDING
 *
 * Found by: id in the table; the socket keeps a pointer to stream 0. Owned by: the table.
 * Dies when released by the application and finished in both directions, or with the table.
 * Protected by: the socket lock.
 */
struct qrdma_stream {
	u64 id;
	struct qrdma_stream *hash_next;
	struct list_head tx_node;
	struct list_head ctl_node;
	struct list_head accept_node;
	u32 events;
	bool released;
	bool has_rx;
	bool has_tx;

	bool rx_reset;
	bool rx_discard;
	u8 stop;
	struct qrdma_reasm rx;
	struct qrdma_flow_rx rx_flow;
	u64 rx_final;
	u64 rx_code;
	u64 stop_code;

	bool stopped;
	u8 open;
	u8 fin;
	u8 reset;
	struct qrdma_sendq tx;
	struct qrdma_flow_tx tx_flow;
	u64 reset_code;
};

/**
 * struct qrdma_streams - the streams of one connection
 * @hash: id to stream
 * @tx: streams that may have STREAM frames to send, next one first
 * @ctl: streams that may owe other frames
 * @accept: streams of the peer for the application
 * @events: QRDMA_STREAM_EV_* bits of all streams
 * @nr: streams in the table
 * @server: role
 * @hold: memory is short: no credit is granted (MAX_DATA, MAX_STREAM_DATA, MAX_STREAMS)
 *	until it is false again
 * @grow: by type: grant another stream for each one of the peer's that ended; false keeps
 *	the first limit for good
 * @want: by type: the application wanted another stream and could not have one
 * @local: streams of ours by type: @sent is how many were opened, @max how many we may
 * @remote: streams of the peer by type: @high is how many were opened, @read how many ended
 * @stream_first: credit that the peer has on a new stream by our transport parameters: of ours
 *	(bidirectional), of the peer's (bidirectional), of the peer's (unidirectional)
 * @stream_window: receive window of streams, 0: their first credit
 * @stream_credit: credit of a new stream to send on: of ours (bidirectional), of the peer's
 *	(bidirectional), of ours (unidirectional)
 * @rx_flow: credit that the peer has on the connection
 * @tx_flow: credit that we have on the connection
 * @rx_mem: memory of received bytes, for the socket to charge
 * @tx_mem: memory of written bytes, for the socket to charge
 *
 * Owned by: the connection, embedded. Protected by: the socket lock.
 */
struct qrdma_streams {
	struct qrdma_stream *hash[QRDMA_STREAMS_HASH];
	struct list_head tx;
	struct list_head ctl;
	struct list_head accept;
	u32 events;
	u32 nr;
	bool server;
	bool hold;
	bool grow[2];
	bool want[2];
	struct qrdma_flow_tx local[2];
	struct qrdma_flow_rx remote[2];
	u64 stream_first[3];
	u64 stream_window;
	u64 stream_credit[3];
	struct qrdma_flow_rx rx_flow;
	struct qrdma_flow_tx tx_flow;
	struct qrdma_mem rx_mem;
	struct qrdma_mem tx_mem;
};

/**
 * struct qrdma_stream_frame - a STREAM frame to be written
 * @id: stream id
 * @off: offset of the first byte
 * @len: bytes
 * @fin: it ends the stream
 * @nseg: elements of @seg in use
 * @seg: the bytes; a reference to each owner is held and becomes the caller's
 */
struct qrdma_stream_frame {
	u64 id;
	u64 off;
	u32 len;
	bool fin;
	u32 nseg;
	struct qrdma_seg seg[QRDMA_SEG_MAX];
};

/**
 * qrdma_streams_init() - an empty table
 * @t: the table
 * @server: role
 * @local: our transport parameters: what the peer may do
 * @rx_cap: bytes of memory that received data may pin
 * @tx_cap: bytes of memory that written data may pin
 *
 * We have no credit until qrdma_streams_set_remote(). @grow is off for both types.
 *
 * Return: 0; -EINVAL when @local allows more than QRDMA_STREAMS_PEER_MAX streams of a type.
 */
int qrdma_streams_init(struct qrdma_streams *t, bool server, const struct qrdma_tparams *local,
		       u32 rx_cap, u32 tx_cap);

/**
 * qrdma_streams_set_remote() - the peer's transport parameters are known: what we may do
 * @t: the table
 * @remote: the parameters; limits only rise, also those of streams that are open (0-RTT,
 *	RFC 9000 s7.4.1)
 */
void qrdma_streams_set_remote(struct qrdma_streams *t, const struct qrdma_tparams *remote);

/**
 * qrdma_streams_rewind() - nothing that was sent so far counts, and no credit that we had: a server
 * refused 0-RTT (RFC 9000 s4.6, RFC 9001 s4.6.2)
 * @t: the table, with streams of ours only; the peer acknowledged none of their frames
 *
 * Call qrdma_streams_set_remote() for the new limits afterwards.
 */
void qrdma_streams_rewind(struct qrdma_streams *t);

/* Free all streams and bytes. */
void qrdma_streams_destroy(struct qrdma_streams *t);

/* The stream, NULL when it does not exist (any more). */
struct qrdma_stream *qrdma_streams_find(struct qrdma_streams *t, u64 id);

/**
 * qrdma_streams_open() - open a stream of ours
 * @t: the table
 * @uni: unidirectional
 * @gfp: allocation flags
 *
 * The peer learns of it by its first frame; qrdma_stream_announce() asks for one.
 *
 * Return: the stream; ERR_PTR: -EAGAIN at the peer's limit (STREAMS_BLOCKED is sent,
 * QRDMA_STREAM_EV_CREDIT follows), -ENOMEM.
 */
struct qrdma_stream *qrdma_streams_open(struct qrdma_streams *t, bool uni, gfp_t gfp);

/*
 * Send an empty STREAM frame unless bytes go first, so that the other end may send on the
 * stream.
 */
void qrdma_stream_announce(struct qrdma_streams *t, struct qrdma_stream *s);

/* The next stream that the peer opened and the application has not asked for, NULL for none. */
struct qrdma_stream *qrdma_streams_accept(struct qrdma_streams *t);

/**
 * qrdma_stream_release() - the application lets go of a stream; the pointer is dead afterwards
 * @t: the table
 * @s: the stream
 * @code: application error code of the STOP_SENDING that tells the peer if it has not finished
 *
 * What was written is still delivered; without FIN or reset so far, FIN follows.
 */
void qrdma_stream_release(struct qrdma_streams *t, struct qrdma_stream *s, u64 code);

/**
 * qrdma_streams_on_frame() - a frame that concerns streams came in
 * @t: the table
 * @f: STREAM, RESET_STREAM, STOP_SENDING, MAX_DATA, MAX_STREAM_DATA, MAX_STREAMS, DATA_BLOCKED,
 *	STREAM_DATA_BLOCKED or STREAMS_BLOCKED, as qrdma_frame_decode() let it pass
 * @buf: buffer that the data of STREAM lies in, NULL: copy
 * @verdict: after -EPROTO: STREAM_STATE_ERROR, STREAM_LIMIT_ERROR, FLOW_CONTROL_ERROR or
 *	FINAL_SIZE_ERROR
 *
 * STOP_SENDING resets the sending half with its code. RESET_STREAM throws away what was not read,
 * unless all bytes are there already. A frame for a stream that is gone is ignored. *_BLOCKED is
 * only checked: credit follows reading, and lost grants are repeated.
 *
 * Return: 0, -EPROTO, -ENOBUFS, -ENOMEM.
 */
int qrdma_streams_on_frame(struct qrdma_streams *t, const struct qrdma_frame *f,
			   struct qrdma_buf *buf, u64 *verdict);

/*
 * Frames to be sent. Everything handed out counts as sent; a frame that did not leave after
 * all is reported as lost.
 */

/* Is there anything to send that credit allows? */
bool qrdma_streams_pending(const struct qrdma_streams *t);

/* Is there anything but STREAM frames to send? */
bool qrdma_streams_pending_ctl(const struct qrdma_streams *t);

/**
 * qrdma_streams_next_ctl() - next frame that is not STREAM
 * @t: the table
 * @room: bytes that there are for it; a frame that does not fit stays due
 * @f: the frame
 *
 * Return: true when @f is to be written.
 */
bool qrdma_streams_next_ctl(struct qrdma_streams *t, u32 room, struct qrdma_frame *f);

/**
 * qrdma_streams_next_frame() - next STREAM frame
 * @t: the table
 * @room: bytes that there are for all of it: type, stream id, offset (when not 0), length, data
 * @max: segments that it may consist of, 1 to QRDMA_SEG_MAX
 * @frame: the frame
 *
 * Bytes that were lost come first. Streams take turns.
 *
 * Return: true when @frame is to be written; its references are the caller's then.
 */
bool qrdma_streams_next_frame(struct qrdma_streams *t, u32 room, u32 max,
			      struct qrdma_stream_frame *frame);

/*
 * A packet with that STREAM frame was acknowledged, was lost (or was not sent after all).
 * Unknown streams are ignored.
 */
void qrdma_streams_acked(struct qrdma_streams *t, u64 id, u64 off, u32 len, bool fin);
void qrdma_streams_lost(struct qrdma_streams *t, u64 id, u64 off, u32 len, bool fin);

/*
 * The same for another frame: its type, its stream id and its limit, 0 where it has none.
 * Types that are not of this file are ignored.
 */
void qrdma_streams_ctl_acked(struct qrdma_streams *t, u64 type, u64 id, u64 max);
void qrdma_streams_ctl_lost(struct qrdma_streams *t, u64 type, u64 id, u64 max);

/*
 * The application's side.
 */

/**
 * qrdma_stream_write() - append a buffer
 * @t: the table
 * @s: the stream
 * @buf: the chunk; the stream takes its own reference; see qrdma_sendq_append() for @off,
 *	@len and room behind them
 * @off: bytes of @buf to leave out at its start
 * @len: bytes, may be 0
 * @gfp: allocation flags
 *
 * Return: 0, -EPIPE after FIN, reset or STOP_SENDING (and on a stream without sending
 * half), -ENOBUFS, -ENOMEM, -EINVAL.
 */
int qrdma_stream_write(struct qrdma_streams *t, struct qrdma_stream *s, struct qrdma_buf *buf,
		       u32 off, u32 len, gfp_t gfp);

/*
 * Room behind the last chunk: bytes (0 for none) and where; valid until the lock is given
 * up. 0 when writing is -EPIPE.
 */
u32 qrdma_stream_room(const struct qrdma_stream *s, u8 **at);

/* @len bytes were copied there. */
void qrdma_stream_commit(struct qrdma_streams *t, struct qrdma_stream *s, u32 len);

/* May the application write? 0 or -EPIPE. */
int qrdma_stream_can_write(const struct qrdma_stream *s);

/*
 * FIN behind what was written. Return: 0 (also the second time), -EPIPE after reset or
 * STOP_SENDING.
 */
int qrdma_stream_finish(struct qrdma_streams *t, struct qrdma_stream *s);

/*
 * RESET_STREAM: throw away what is not acknowledged. Return: 0 (also when all is
 * acknowledged or it was reset before), -EPIPE.
 */
int qrdma_stream_reset(struct qrdma_streams *t, struct qrdma_stream *s, u64 code);

/* Bytes that can be read now (FIONREAD). */
u64 qrdma_stream_readable(const struct qrdma_stream *s);

/* Look at them: see qrdma_reasm_peek(). */
u32 qrdma_stream_peek(const struct qrdma_stream *s, u64 skip, struct qrdma_seg *seg, u32 max);

/* They were read: frees memory and opens credit. Return: bytes consumed. */
u64 qrdma_stream_consume(struct qrdma_streams *t, struct qrdma_stream *s, u64 len);

/*
 * All bytes up to FIN were read; also when reading was stopped and on a stream without
 * receiving half.
 */
bool qrdma_stream_at_eof(const struct qrdma_stream *s);

/*
 * What to tell a reader when nothing is readable and it is not the end: 0 to wait,
 * -ECONNRESET (RESET_STREAM, @rx_code).
 */
int qrdma_stream_rx_error(const struct qrdma_stream *s);

/*
 * Stop reading: STOP_SENDING, bytes that come in are dropped, their credit is given back on
 * the connection.
 */
void qrdma_stream_stop(struct qrdma_streams *t, struct qrdma_stream *s, u64 code);

/* Has the sending half ended: is all and its FIN acknowledged, or its reset? */
bool qrdma_stream_tx_done(const struct qrdma_stream *s);

/* Is all that was written, and FIN or reset if there was one, acknowledged? */
bool qrdma_stream_all_acked(const struct qrdma_stream *s);

/*
 * Receive window of the connection and of its streams in bytes, for those that are open and
 * those to come.
 */
void qrdma_streams_set_window(struct qrdma_streams *t, u64 window);

/* Grant no more credit (@hold), or grant again what has become due. */
void qrdma_streams_hold(struct qrdma_streams *t, bool hold);

/* Return and clear the collected events. */
static inline u32 qrdma_streams_events(struct qrdma_streams *t)
{
	u32 events = t->events;

	t->events = 0;
	return events;
}

/* Written and not acknowledged (SIOCOUTQ); written and never sent (SIOCOUTQNSD). */
static inline u64 qrdma_stream_unacked(const struct qrdma_stream *s)
{
	return qrdma_sendq_unacked(&s->tx);
}

static inline u64 qrdma_stream_unsent(const struct qrdma_stream *s)
{
	return qrdma_sendq_unsent(&s->tx);
}

#endif /* QRDMA_CORE_STREAM_H */
