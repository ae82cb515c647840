/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frames of RFC 9000 s19 and RFC 9221: bytes to struct qrdma_frame and back, and what is true of
 * each type (which packets may carry it, does it ask for an ACK, ...), in one table.
 *
 * Owns: the attribute table, which is constant. No state: a frame is decoded and checked whole
 * before anybody acts on it.
 * Called by: conn.c (decode), packer.c (encode), pnspace.c and recovery.c (ACK ranges).
 * Context: any. Lock: none.
 */
#ifndef QRDMA_CORE_FRAME_H
#define QRDMA_CORE_FRAME_H

#include "env.h"
#include "cursor.h"
#include "header.h"

/** enum qrdma_err - QUIC transport error codes (RFC 9000 s20.1); never mixed with errno */
enum qrdma_err {
	QRDMA_ERR_NO_ERROR			= 0x00,
	QRDMA_ERR_INTERNAL_ERROR		= 0x01,
	QRDMA_ERR_CONNECTION_REFUSED		= 0x02,
	QRDMA_ERR_FLOW_CONTROL_ERROR		= 0x03,
	QRDMA_ERR_STREAM_LIMIT_ERROR		= 0x04,
	QRDMA_ERR_STREAM_STATE_ERROR		= 0x05,
	QRDMA_ERR_FINAL_SIZE_ERROR		= 0x06,
	QRDMA_ERR_FRAME_ENCODING_ERROR		= 0x07,
	QRDMA_ERR_TRANSPORT_PARAMETER_ERROR	= 0x08,
	QRDMA_ERR_CONNECTION_ID_LIMIT_ERROR	= 0x09,
	QRDMA_ERR_PROTOCOL_VIOLATION		= 0x0a,
	QRDMA_ERR_INVALID_TOKEN			= 0x0b,
	QRDMA_ERR_APPLICATION_ERROR		= 0x0c,
	QRDMA_ERR_CRYPTO_BUFFER_EXCEEDED	= 0x0d,
	QRDMA_ERR_KEY_UPDATE_ERROR		= 0x0e,
	QRDMA_ERR_AEAD_LIMIT_REACHED		= 0x0f,
	QRDMA_ERR_NO_VIABLE_PATH		= 0x10,
	QRDMA_ERR_CRYPTO_ERROR			= 0x0100, /* plus TLS alert, RFC 9001 s4.8 */
};

/** enum qrdma_frame_type - values on the wire; STREAM_END is the last with flag bits */
enum qrdma_frame_type {
	QRDMA_FRAME_PADDING		= 0x00,
	QRDMA_FRAME_PING		= 0x01,
	QRDMA_FRAME_ACK			= 0x02,
	QRDMA_FRAME_ACK_ECN		= 0x03,
	QRDMA_FRAME_RESET_STREAM	= 0x04,
	QRDMA_FRAME_STOP_SENDING	= 0x05,
	QRDMA_FRAME_CRYPTO		= 0x06,
	QRDMA_FRAME_NEW_TOKEN		= 0x07,
	QRDMA_FRAME_STREAM		= 0x08,	/* or with QRDMA_STREAM_* */
	QRDMA_FRAME_STREAM_END		= 0x0f,
	QRDMA_FRAME_MAX_DATA		= 0x10,
	QRDMA_FRAME_MAX_STREAM_DATA	= 0x11,
	QRDMA_FRAME_MAX_STREAMS_BIDI	= 0x12,
	QRDMA_FRAME_MAX_STREAMS_UNI	= 0x13,
	QRDMA_FRAME_DATA_BLOCKED	= 0x14,
	QRDMA_FRAME_STREAM_DATA_BLOCKED	= 0x15,
	QRDMA_FRAME_STREAMS_BLOCKED_BIDI = 0x16,
	QRDMA_FRAME_STREAMS_BLOCKED_UNI	= 0x17,
	QRDMA_FRAME_NEW_CONNECTION_ID	= 0x18,
	QRDMA_FRAME_RETIRE_CONNECTION_ID = 0x19,
	QRDMA_FRAME_PATH_CHALLENGE	= 0x1a,
	QRDMA_FRAME_PATH_RESPONSE	= 0x1b,
	QRDMA_FRAME_CLOSE		= 0x1c,	/* CONNECTION_CLOSE, error of QUIC */
	QRDMA_FRAME_CLOSE_APP		= 0x1d,	/* CONNECTION_CLOSE, error of the application */
	QRDMA_FRAME_HANDSHAKE_DONE	= 0x1e,
	QRDMA_FRAME_DATAGRAM		= 0x30,	/* up to the end of the packet */
	QRDMA_FRAME_DATAGRAM_LEN	= 0x31,	/* with a length */
	__QRDMA_FRAME_MAX
};

/* flag bits in the type of STREAM (RFC 9000 s19.8) */
#define QRDMA_STREAM_FIN	0x01
#define QRDMA_STREAM_LEN	0x02
#define QRDMA_STREAM_OFF	0x04

#define QRDMA_STREAMS_MAX	BIT_ULL(60)	/* RFC 9000 s4.6 */
#define QRDMA_PATH_DATA_LEN	8

/* Attributes of a frame type. The first four are the packets that may carry it, the next two the
 * roles that may send it: qrdma_frame_decode() is told one of each and refuses a frame that lacks
 * one.
 */
#define QRDMA_FA_INITIAL	BIT(0)
#define QRDMA_FA_HANDSHAKE	BIT(1)
#define QRDMA_FA_0RTT		BIT(2)
#define QRDMA_FA_1RTT		BIT(3)
#define QRDMA_FA_CLIENT		BIT(4)
#define QRDMA_FA_SERVER		BIT(5)
#define QRDMA_FA_ELICITING	BIT(6)	/* RFC 9000 s13.2.1 */
#define QRDMA_FA_IN_FLIGHT	BIT(7)	/* counts towards bytes in flight, RFC 9002 s2 */
#define QRDMA_FA_PROBING	BIT(8)	/* RFC 9000 s9.1 */
#define QRDMA_FA_RETRANSMIT	BIT(9)	/* what it says must reach the peer, RFC 9000 s13.3 */
#define QRDMA_FA_FLOW		BIT(10)	/* RFC 9000 s4 */

/** qrdma_frame_attr_table - attributes by type; 0: no such frame */
extern const u16 qrdma_frame_attr_table[__QRDMA_FRAME_MAX];

/** qrdma_frame_attr() - attributes of a frame type, 0 for an unknown one */
static inline u32 qrdma_frame_attr(u64 type)
{
	return likely(type < __QRDMA_FRAME_MAX) ? qrdma_frame_attr_table[type] : 0;
}

/**
 * struct qrdma_ack - an ACK frame (RFC 9000 s19.3)
 * @largest: largest packet number acknowledged
 * @delay: ACK Delay as on the wire: microseconds divided by 2^(ack_delay_exponent of its sender)
 * @ecn: the three counts are there
 * @ect0: packets received with ECT(0), in this packet number space
 * @ect1: the same for ECT(1)
 * @ce: the same for CE
 * @first: packets below @largest in its range (decoded only)
 * @count: further ranges in @wire (decoded only)
 * @wire_len: bytes at @wire (decoded only)
 * @wire: Gap and ACK Range Length pairs, checked (decoded only)
 *
 * Decoded: the ranges are read through struct qrdma_ack_iter, @wire leads into the packet.
 * To be sent: the ranges are an argument of qrdma_ack_encode().
 */
struct qrdma_ack {
	u64 largest;
	u64 delay;
	bool ecn;
	u64 ect0;
	u64 ect1;
	u64 ce;
	u64 first;
	u32 count;
	u32 wire_len;
	const u8 *wire;
};

/**
 * struct qrdma_frame - one frame
 * @type: value on the wire; set even when the rest was refused
 * @padding: PADDING, a run of them taken as one frame
 * @ack: ACK, ACK_ECN
 * @reset: RESET_STREAM
 * @stop: STOP_SENDING
 * @crypto: CRYPTO
 * @token: NEW_TOKEN
 * @stream: STREAM; @type tells whether there is a length, the rest follows from the fields
 * @max: MAX_DATA, MAX_STREAM_DATA, DATA_BLOCKED, STREAM_DATA_BLOCKED (bytes), MAX_STREAMS_*,
 *	STREAMS_BLOCKED_* (streams); the id only where the frame has one
 * @new_cid: NEW_CONNECTION_ID
 * @retire_cid: RETIRE_CONNECTION_ID
 * @path: PATH_CHALLENGE, PATH_RESPONSE
 * @close: CLOSE, CLOSE_APP (without frame_type)
 * @datagram: DATAGRAM, DATAGRAM_LEN
 *
 * Pointers lead into the packet (decoded) or to memory of the caller (to be encoded); lengths are
 * bytes. Dies with the packet.
 */
struct qrdma_frame {
	u64 type;
	union {
		struct {
			u32 len;
		} padding;
		struct qrdma_ack ack;
		struct {
			u64 id;
			u64 code;
			u64 final_size;
		} reset;
		struct {
			u64 id;
			u64 code;
		} stop;
		struct {
			u64 off;
			u32 len;
			const u8 *data;
		} crypto;
		struct {
			u32 len;
			const u8 *data;
		} token;
		struct {
			u64 id;
			u64 off;
			u32 len;
			bool fin;
			const u8 *data;
		} stream;
		struct {
			u64 id;
			u64 max;
		} max;
		struct {
			u64 seq;
			u64 retire_prior_to;
			u8 len;
			const u8 *cid;
			const u8 *reset_token;	/* QRDMA_RESET_TOKEN_LEN bytes */
		} new_cid;
		struct {
			u64 seq;
		} retire_cid;
		struct {
			u8 data[QRDMA_PATH_DATA_LEN];
		} path;
		struct {
			u64 code;
			u64 frame_type;
			u32 len;
			const u8 *reason;
		} close;
		struct {
			u32 len;
			const u8 *data;
		} datagram;
	};
};

/**
 * qrdma_frame_decode() - take one frame from an opened packet and check it whole
 * @c: the payload, not at its end (an empty payload is the caller's PROTOCOL_VIOLATION, RFC 9000
 *	s12.4); moved behind the frame, not moved at all on an error
 * @where: QRDMA_FA_INITIAL, _HANDSHAKE, _0RTT or _1RTT: the packet's type, together with
 *	QRDMA_FA_CLIENT or _SERVER: the peer's role
 * @f: the frame; on an error only its type is valid
 *
 * Checked here is all that needs no state: encoding, ranges, permitted in this packet and from
 * this role. Stream states, limits and the like are the caller's.
 *
 * Return: QRDMA_ERR_NO_ERROR; QRDMA_ERR_FRAME_ENCODING_ERROR: malformed or unknown;
 * QRDMA_ERR_PROTOCOL_VIOLATION: not permitted here, or a type not in its shortest encoding.
 */
u64 qrdma_frame_decode(struct qrdma_cursor *c, u32 where, struct qrdma_frame *f);

/**
 * qrdma_frame_size() - how much will qrdma_frame_encode() write when the data is there?
 * @f: a frame that could come out of qrdma_frame_decode()
 *
 * Data (STREAM, CRYPTO, DATAGRAM) comes last and is counted: what is before it is the size less
 * the length.
 *
 * Return: bytes.
 */
u32 qrdma_frame_size(const struct qrdma_frame *f);

/**
 * qrdma_frame_encode() - write one frame, shortest encoding
 * @w: where
 * @f: the frame. STREAM: fin and off go by their fields, of the flags in the type only
 *	QRDMA_STREAM_LEN is looked at. STREAM, CRYPTO and DATAGRAM without data (NULL): all but the
 *	data is written, the caller sends that behind it from where it is.
 *
 * Return: false when there is no room or a value is out of range; nothing is written then.
 */
bool qrdma_frame_encode(struct qrdma_writer *w, const struct qrdma_frame *f);

/**
 * qrdma_ack_encode() - write an ACK frame with as many ranges as fit, the highest first
 * @w: where; its room is the limit
 * @ack: delay, ecn and the counts are looked at
 * @range: ascending, neither overlapping nor adjacent (struct qrdma_ranges has them so)
 * @count: ranges, 1 at least
 *
 * Return: how many ranges were written; 0: not even one fits, nothing is written.
 */
u32 qrdma_ack_encode(struct qrdma_writer *w, const struct qrdma_ack *ack,
		     const struct qrdma_range *range, u32 count);

/**
 * struct qrdma_ack_iter - walk over the ranges of a decoded ACK, highest first
 * @rest: pairs not read yet
 * @range: range to be handed out next
 * @left: ranges not handed out
 */
struct qrdma_ack_iter {
	struct qrdma_cursor rest;
	struct qrdma_range range;
	u32 left;
};

/** qrdma_ack_iter_init() - start with the range of @ack->largest */
static inline void qrdma_ack_iter_init(struct qrdma_ack_iter *it, const struct qrdma_ack *ack)
{
	qrdma_cursor_init(&it->rest, ack->wire, ack->wire_len);
	it->range.hi = ack->largest;
	it->range.lo = ack->largest - ack->first;
	it->left = ack->count + 1;
}

/**
 * qrdma_ack_iter_next() - hand out one range
 * @it: the walk, of an ACK that qrdma_frame_decode() let pass
 * @range: the range
 *
 * Return: false when there is none left.
 */
static inline bool qrdma_ack_iter_next(struct qrdma_ack_iter *it, struct qrdma_range *range)
{
	u64 gap, len;

	if (!it->left)
		return false;
	*range = it->range;
	if (--it->left) {
		if (!qrdma_cursor_varint(&it->rest, &gap) ||
		    !qrdma_cursor_varint(&it->rest, &len)) {
			it->left = 0;	/* cannot be: the frame was checked */
		} else {
			it->range.hi = it->range.lo - gap - 2;
			it->range.lo = it->range.hi - len;
		}
	}
	return true;
}

#endif /* QRDMA_CORE_FRAME_H */
