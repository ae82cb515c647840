// SPDX-License-Identifier: GPL-2.0
/*
 * Frames: decoding with every check that needs no state, encoding, and the attribute table.
 *
 * Owns: qrdma_frame_attr_table. Called by, context, lock: see frame.h.
 */
#include "frame.h"

#define FA_ANY_ROLE	(QRDMA_FA_CLIENT | QRDMA_FA_SERVER)
#define FA_ALL		(QRDMA_FA_INITIAL | QRDMA_FA_HANDSHAKE | QRDMA_FA_0RTT | QRDMA_FA_1RTT | \
			 FA_ANY_ROLE)
#define FA_NO_0RTT	(QRDMA_FA_INITIAL | QRDMA_FA_HANDSHAKE | QRDMA_FA_1RTT | FA_ANY_ROLE)
#define FA_APP		(QRDMA_FA_0RTT | QRDMA_FA_1RTT | FA_ANY_ROLE)
#define FA_1RTT		(QRDMA_FA_1RTT | FA_ANY_ROLE)
#define FA_DONE		(QRDMA_FA_1RTT | QRDMA_FA_SERVER)
/* sent once, and sent again when lost */
#define FA_ONCE		(QRDMA_FA_ELICITING | QRDMA_FA_IN_FLIGHT)
#define FA_AGAIN	(FA_ONCE | QRDMA_FA_RETRANSMIT)

/* Packets and rules: RFC 9000 s12.4 table 3, what 0-RTT cannot carry: s12.5; roles: s19.7, s19.20;
 * in flight: RFC 9002 s2; sent again: RFC 9000 s13.3; DATAGRAM: RFC 9221 s4, s5.
 */
const u16 qrdma_frame_attr_table[__QRDMA_FRAME_MAX] = {
	[QRDMA_FRAME_PADDING]		= FA_ALL | QRDMA_FA_IN_FLIGHT | QRDMA_FA_PROBING,
	[QRDMA_FRAME_PING]		= FA_ALL | FA_ONCE,
	[QRDMA_FRAME_ACK]		= FA_NO_0RTT,
	[QRDMA_FRAME_ACK_ECN]		= FA_NO_0RTT,
	[QRDMA_FRAME_RESET_STREAM]	= FA_APP | FA_AGAIN,
	[QRDMA_FRAME_STOP_SENDING]	= FA_APP | FA_AGAIN,
	[QRDMA_FRAME_CRYPTO]		= FA_NO_0RTT | FA_AGAIN,
	[QRDMA_FRAME_NEW_TOKEN]		= FA_DONE | FA_AGAIN,
	[QRDMA_FRAME_STREAM ... QRDMA_FRAME_STREAM_END] = FA_APP | FA_AGAIN | QRDMA_FA_FLOW,
	[QRDMA_FRAME_MAX_DATA]		= FA_APP | FA_AGAIN,
	[QRDMA_FRAME_MAX_STREAM_DATA]	= FA_APP | FA_AGAIN,
	[QRDMA_FRAME_MAX_STREAMS_BIDI]	= FA_APP | FA_AGAIN,
	[QRDMA_FRAME_MAX_STREAMS_UNI]	= FA_APP | FA_AGAIN,
	[QRDMA_FRAME_DATA_BLOCKED]	= FA_APP | FA_AGAIN,
	[QRDMA_FRAME_STREAM_DATA_BLOCKED] = FA_APP | FA_AGAIN,
	[QRDMA_FRAME_STREAMS_BLOCKED_BIDI] = FA_APP | FA_AGAIN,
	[QRDMA_FRAME_STREAMS_BLOCKED_UNI] = FA_APP | FA_AGAIN,
	[QRDMA_FRAME_NEW_CONNECTION_ID]	= FA_APP | FA_AGAIN | QRDMA_FA_PROBING,
	[QRDMA_FRAME_RETIRE_CONNECTION_ID] = FA_1RTT | FA_AGAIN,
	[QRDMA_FRAME_PATH_CHALLENGE]	= FA_APP | FA_ONCE | QRDMA_FA_PROBING,
	[QRDMA_FRAME_PATH_RESPONSE]	= FA_1RTT | FA_ONCE | QRDMA_FA_PROBING,
	[QRDMA_FRAME_CLOSE]		= FA_ALL,
	[QRDMA_FRAME_CLOSE_APP]		= FA_APP,
	[QRDMA_FRAME_HANDSHAKE_DONE]	= FA_DONE | FA_AGAIN,
	[QRDMA_FRAME_DATAGRAM]		= FA_APP | FA_ONCE,
	[QRDMA_FRAME_DATAGRAM_LEN]	= FA_APP | FA_ONCE,
};

/* A length and that many bytes. */
static bool frame_get_data(struct qrdma_cursor *c, u32 *len, const u8 **data)
{
	u64 n;

	if (unlikely(!qrdma_cursor_varint(c, &n) || !qrdma_cursor_bytes(c, n, data)))
		return false;
	*len = n;
	return true;
}

/* All the bytes that are left. */
static void frame_get_rest(struct qrdma_cursor *c, u32 *len, const u8 **data)
{
	*len = qrdma_cursor_left(c);
	*data = c->pos;
	c->pos = c->end;
}

static bool frame_get_padding(struct qrdma_cursor *c, struct qrdma_frame *f)
{
	const u8 *first = c->pos;

	while (c->pos != c->end && !*c->pos)
		c->pos++;
	f->padding.len = 1 + (c->pos - first);
	return true;
}

/* RFC 9000 s19.3: walks over all ranges, none may reach below packet number 0 (s19.3.1). */
static bool frame_get_ack(struct qrdma_cursor *c, struct qrdma_frame *f)
{
	struct qrdma_ack *ack = &f->ack;
	u64 count, left, gap, len, lo;

	if (!qrdma_cursor_varint(c, &ack->largest) || !qrdma_cursor_varint(c, &ack->delay) ||
	    !qrdma_cursor_varint(c, &count) || !qrdma_cursor_varint(c, &ack->first))
		return false;
	if (ack->first > ack->largest)
		return false;

	lo = ack->largest - ack->first;
	ack->wire = c->pos;
	/* a count that the packet cannot carry ends this at the end of the packet (s20.1) */
	for (left = count; left; left--) {
		if (!qrdma_cursor_varint(c, &gap) || !qrdma_cursor_varint(c, &len))
			return false;
		/* both are below 2^62: no overflow */
		if (gap + 2 + len > lo)
			return false;
		lo -= gap + 2 + len;
	}
	ack->count = count;
	ack->wire_len = c->pos - ack->wire;

	ack->ecn = f->type == QRDMA_FRAME_ACK_ECN;
	if (!ack->ecn) {
		ack->ect0 = 0;
		ack->ect1 = 0;
		ack->ce = 0;
		return true;
	}
	return qrdma_cursor_varint(c, &ack->ect0) && qrdma_cursor_varint(c, &ack->ect1) &&
	       qrdma_cursor_varint(c, &ack->ce);
}

static bool frame_get_crypto(struct qrdma_cursor *c, struct qrdma_frame *f)
{
	if (!qrdma_cursor_varint(c, &f->crypto.off) ||
	    !frame_get_data(c, &f->crypto.len, &f->crypto.data))
		return false;
	/* RFC 9000 s19.6 */
	return f->crypto.off + f->crypto.len <= QRDMA_VARINT_MAX;
}

static bool frame_get_stream(struct qrdma_cursor *c, struct qrdma_frame *f)
{
	f->stream.off = 0;
	f->stream.fin = f->type & QRDMA_STREAM_FIN;
	if (unlikely(!qrdma_cursor_varint(c, &f->stream.id)))
		return false;
	if ((f->type & QRDMA_STREAM_OFF) && unlikely(!qrdma_cursor_varint(c, &f->stream.off)))
		return false;
	if (!(f->type & QRDMA_STREAM_LEN))
		frame_get_rest(c, &f->stream.len, &f->stream.data);
	else if (unlikely(!frame_get_data(c, &f->stream.len, &f->stream.data)))
		return false;
	/* RFC 9000 s19.8 */
	return f->stream.off + f->stream.len <= QRDMA_VARINT_MAX;
}

static bool frame_get_new_cid(struct qrdma_cursor *c, struct qrdma_frame *f)
{
	if (!qrdma_cursor_varint(c, &f->new_cid.seq) ||
	    !qrdma_cursor_varint(c, &f->new_cid.retire_prior_to) ||
	    !qrdma_cursor_u8(c, &f->new_cid.len))
		return false;
	/* RFC 9000 s19.15, both */
	if (f->new_cid.retire_prior_to > f->new_cid.seq)
		return false;
	if (f->new_cid.len < 1 || f->new_cid.len > QRDMA_CID_MAX)
		return false;
	return qrdma_cursor_bytes(c, f->new_cid.len, &f->new_cid.cid) &&
	       qrdma_cursor_bytes(c, QRDMA_RESET_TOKEN_LEN, &f->new_cid.reset_token);
}

static bool frame_get_close(struct qrdma_cursor *c, struct qrdma_frame *f)
{
	f->close.frame_type = 0;
	if (!qrdma_cursor_varint(c, &f->close.code))
		return false;
	if (f->type == QRDMA_FRAME_CLOSE && !qrdma_cursor_varint(c, &f->close.frame_type))
		return false;
	return frame_get_data(c, &f->close.len, &f->close.reason);
}

/* Fields of a frame whose type was read and is known. */
static bool frame_get(struct qrdma_cursor *c, struct qrdma_frame *f)
{
	switch (f->type) {
	case QRDMA_FRAME_STREAM ... QRDMA_FRAME_STREAM_END:
		return frame_get_stream(c, f);
	case QRDMA_FRAME_ACK:
	case QRDMA_FRAME_ACK_ECN:
		return frame_get_ack(c, f);
	case QRDMA_FRAME_PADDING:
		return frame_get_padding(c, f);
	case QRDMA_FRAME_PING:
	case QRDMA_FRAME_HANDSHAKE_DONE:
		return true;
	case QRDMA_FRAME_RESET_STREAM:
		return qrdma_cursor_varint(c, &f->reset.id) &&
		       qrdma_cursor_varint(c, &f->reset.code) &&
		       qrdma_cursor_varint(c, &f->reset.final_size);
	case QRDMA_FRAME_STOP_SENDING:
		return qrdma_cursor_varint(c, &f->stop.id) && qrdma_cursor_varint(c, &f->stop.code);
	case QRDMA_FRAME_CRYPTO:
		return frame_get_crypto(c, f);
	case QRDMA_FRAME_NEW_TOKEN:
		/* RFC 9000 s19.7: not empty */
		return frame_get_data(c, &f->token.len, &f->token.data) && f->token.len;
	case QRDMA_FRAME_MAX_DATA:
	case QRDMA_FRAME_DATA_BLOCKED:
		f->max.id = 0;
		return qrdma_cursor_varint(c, &f->max.max);
	case QRDMA_FRAME_MAX_STREAM_DATA:
	case QRDMA_FRAME_STREAM_DATA_BLOCKED:
		return qrdma_cursor_varint(c, &f->max.id) && qrdma_cursor_varint(c, &f->max.max);
	case QRDMA_FRAME_MAX_STREAMS_BIDI:
	case QRDMA_FRAME_MAX_STREAMS_UNI:
	case QRDMA_FRAME_STREAMS_BLOCKED_BIDI:
	case QRDMA_FRAME_STREAMS_BLOCKED_UNI:
		f->max.id = 0;
		/* RFC 9000 s19.11, s19.14 */
		return qrdma_cursor_varint(c, &f->max.max) && f->max.max <= QRDMA_STREAMS_MAX;
	case QRDMA_FRAME_NEW_CONNECTION_ID:
		return frame_get_new_cid(c, f);
	case QRDMA_FRAME_RETIRE_CONNECTION_ID:
		return qrdma_cursor_varint(c, &f->retire_cid.seq);
	case QRDMA_FRAME_PATH_CHALLENGE:
	case QRDMA_FRAME_PATH_RESPONSE:
		return qrdma_cursor_copy(c, f->path.data, sizeof(f->path.data));
	case QRDMA_FRAME_CLOSE:
	case QRDMA_FRAME_CLOSE_APP:
		return frame_get_close(c, f);
	case QRDMA_FRAME_DATAGRAM:
		frame_get_rest(c, &f->datagram.len, &f->datagram.data);
		return true;
	case QRDMA_FRAME_DATAGRAM_LEN:
		return frame_get_data(c, &f->datagram.len, &f->datagram.data);
	}
	return false;
}

/* A type of more than one byte: we know none, but how it is refused depends on its encoding. */
static noinline u64 frame_refuse_long_type(struct qrdma_cursor *c, struct qrdma_frame *f)
{
	const u8 *first = c->pos;

	if (!qrdma_cursor_varint(c, &f->type))
		return QRDMA_ERR_FRAME_ENCODING_ERROR;
	/* RFC 9000 s12.4: a type comes in its shortest encoding */
	if (c->pos - first != qrdma_varint_len(f->type))
		return QRDMA_ERR_PROTOCOL_VIOLATION;
	return QRDMA_ERR_FRAME_ENCODING_ERROR;
}

u64 qrdma_frame_decode(struct qrdma_cursor *c, u32 where, struct qrdma_frame *f)
{
	struct qrdma_cursor in = *c;
	u32 attr;

	f->type = 0;
	if (unlikely(in.pos == in.end))
		return QRDMA_ERR_FRAME_ENCODING_ERROR;
	if (unlikely(*in.pos & 0xc0))
		return frame_refuse_long_type(&in, f);
	f->type = *in.pos++;

	/* RFC 9000 s12.4: unknown; not in this packet; s19.7, s19.20: not from this role */
	attr = qrdma_frame_attr(f->type);
	if (unlikely(!attr))
		return QRDMA_ERR_FRAME_ENCODING_ERROR;
	if (unlikely((attr & where) != where))
		return QRDMA_ERR_PROTOCOL_VIOLATION;

	if (unlikely(!frame_get(&in, f)))
		return QRDMA_ERR_FRAME_ENCODING_ERROR;
	*c = in;
	return QRDMA_ERR_NO_ERROR;
}

static u32 frame_ack_size(const struct qrdma_ack *ack)
{
	u32 size = qrdma_varint_len(ack->largest) + qrdma_varint_len(ack->delay) +
		   qrdma_varint_len(ack->count) + qrdma_varint_len(ack->first) + ack->wire_len;

	if (ack->ecn)
		size += qrdma_varint_len(ack->ect0) + qrdma_varint_len(ack->ect1) +
			qrdma_varint_len(ack->ce);
	return size;
}

/* bytes behind the type, which always takes one */
static u32 frame_body_size(const struct qrdma_frame *f)
{
	switch (f->type) {
	case QRDMA_FRAME_STREAM ... QRDMA_FRAME_STREAM_END:
		return qrdma_varint_len(f->stream.id) +
		       (f->stream.off ? qrdma_varint_len(f->stream.off) : 0) +
		       (f->type & QRDMA_STREAM_LEN ? qrdma_varint_len(f->stream.len) : 0) +
		       f->stream.len;
	case QRDMA_FRAME_ACK:
	case QRDMA_FRAME_ACK_ECN:
		return frame_ack_size(&f->ack);
	case QRDMA_FRAME_PADDING:
		return f->padding.len - 1;
	case QRDMA_FRAME_RESET_STREAM:
		return qrdma_varint_len(f->reset.id) + qrdma_varint_len(f->reset.code) +
		       qrdma_varint_len(f->reset.final_size);
	case QRDMA_FRAME_STOP_SENDING:
		return qrdma_varint_len(f->stop.id) + qrdma_varint_len(f->stop.code);
	case QRDMA_FRAME_CRYPTO:
		return qrdma_varint_len(f->crypto.off) + qrdma_varint_len(f->crypto.len) +
		       f->crypto.len;
	case QRDMA_FRAME_NEW_TOKEN:
		return qrdma_varint_len(f->token.len) + f->token.len;
	case QRDMA_FRAME_MAX_DATA:
	case QRDMA_FRAME_DATA_BLOCKED:
	case QRDMA_FRAME_MAX_STREAMS_BIDI:
	case QRDMA_FRAME_MAX_STREAMS_UNI:
	case QRDMA_FRAME_STREAMS_BLOCKED_BIDI:
	case QRDMA_FRAME_STREAMS_BLOCKED_UNI:
		return qrdma_varint_len(f->max.max);
	case QRDMA_FRAME_MAX_STREAM_DATA:
	case QRDMA_FRAME_STREAM_DATA_BLOCKED:
		return qrdma_varint_len(f->max.id) + qrdma_varint_len(f->max.max);
	case QRDMA_FRAME_NEW_CONNECTION_ID:
		return qrdma_varint_len(f->new_cid.seq) +
		       qrdma_varint_len(f->new_cid.retire_prior_to) +
		       1 + f->new_cid.len + QRDMA_RESET_TOKEN_LEN;
	case QRDMA_FRAME_RETIRE_CONNECTION_ID:
		return qrdma_varint_len(f->retire_cid.seq);
	case QRDMA_FRAME_PATH_CHALLENGE:
	case QRDMA_FRAME_PATH_RESPONSE:
		return QRDMA_PATH_DATA_LEN;
	case QRDMA_FRAME_CLOSE:
		return qrdma_varint_len(f->close.code) + qrdma_varint_len(f->close.frame_type) +
		       qrdma_varint_len(f->close.len) + f->close.len;
	case QRDMA_FRAME_CLOSE_APP:
		return qrdma_varint_len(f->close.code) + qrdma_varint_len(f->close.len) +
		       f->close.len;
	case QRDMA_FRAME_DATAGRAM:
		return f->datagram.len;
	case QRDMA_FRAME_DATAGRAM_LEN:
		return qrdma_varint_len(f->datagram.len) + f->datagram.len;
	}
	return 0;	/* PING, HANDSHAKE_DONE */
}

u32 qrdma_frame_size(const struct qrdma_frame *f)
{
	return 1 + frame_body_size(f);
}

/* What follows a frame's fields: nothing when the caller sends it from where it is. */
static bool frame_put_data(struct qrdma_writer *w, const u8 *data, u32 len)
{
	return !data || qrdma_writer_bytes(w, data, len);
}

static bool frame_put_ack(struct qrdma_writer *w, const struct qrdma_ack *ack)
{
	if (!qrdma_writer_varint(w, ack->largest) || !qrdma_writer_varint(w, ack->delay) ||
	    !qrdma_writer_varint(w, ack->count) || !qrdma_writer_varint(w, ack->first) ||
	    !qrdma_writer_bytes(w, ack->wire, ack->wire_len))
		return false;
	return !ack->ecn || (qrdma_writer_varint(w, ack->ect0) &&
			     qrdma_writer_varint(w, ack->ect1) && qrdma_writer_varint(w, ack->ce));
}

static bool frame_put_stream(struct qrdma_writer *w, const struct qrdma_frame *f)
{
	if (unlikely(f->stream.off + f->stream.len > QRDMA_VARINT_MAX))
		return false;
	if (unlikely(!qrdma_writer_varint(w, f->stream.id)))
		return false;
	if (f->stream.off && unlikely(!qrdma_writer_varint(w, f->stream.off)))
		return false;
	if ((f->type & QRDMA_STREAM_LEN) && unlikely(!qrdma_writer_varint(w, f->stream.len)))
		return false;
	return frame_put_data(w, f->stream.data, f->stream.len);
}

static bool frame_put_new_cid(struct qrdma_writer *w, const struct qrdma_frame *f)
{
	return f->new_cid.len >= 1 && f->new_cid.len <= QRDMA_CID_MAX &&
	       f->new_cid.retire_prior_to <= f->new_cid.seq &&
	       qrdma_writer_varint(w, f->new_cid.seq) &&
	       qrdma_writer_varint(w, f->new_cid.retire_prior_to) &&
	       qrdma_writer_u8(w, f->new_cid.len) &&
	       qrdma_writer_bytes(w, f->new_cid.cid, f->new_cid.len) &&
	       qrdma_writer_bytes(w, f->new_cid.reset_token, QRDMA_RESET_TOKEN_LEN);
}

static bool frame_put_close(struct qrdma_writer *w, const struct qrdma_frame *f)
{
	return qrdma_writer_varint(w, f->close.code) &&
	       (f->type == QRDMA_FRAME_CLOSE_APP ||
		qrdma_writer_varint(w, f->close.frame_type)) &&
	       qrdma_writer_varint(w, f->close.len) &&
	       qrdma_writer_bytes(w, f->close.reason, f->close.len);
}

static bool frame_put(struct qrdma_writer *w, const struct qrdma_frame *f)
{
	switch (f->type) {
	case QRDMA_FRAME_STREAM ... QRDMA_FRAME_STREAM_END:
		return frame_put_stream(w, f);
	case QRDMA_FRAME_ACK:
	case QRDMA_FRAME_ACK_ECN:
		return f->ack.ecn == (f->type == QRDMA_FRAME_ACK_ECN) && frame_put_ack(w, &f->ack);
	case QRDMA_FRAME_PADDING:
		return f->padding.len && qrdma_writer_zero(w, f->padding.len - 1);
	case QRDMA_FRAME_PING:
	case QRDMA_FRAME_HANDSHAKE_DONE:
		return true;
	case QRDMA_FRAME_RESET_STREAM:
		return qrdma_writer_varint(w, f->reset.id) &&
		       qrdma_writer_varint(w, f->reset.code) &&
		       qrdma_writer_varint(w, f->reset.final_size);
	case QRDMA_FRAME_STOP_SENDING:
		return qrdma_writer_varint(w, f->stop.id) && qrdma_writer_varint(w, f->stop.code);
	case QRDMA_FRAME_CRYPTO:
		return f->crypto.off + f->crypto.len <= QRDMA_VARINT_MAX &&
		       qrdma_writer_varint(w, f->crypto.off) &&
		       qrdma_writer_varint(w, f->crypto.len) &&
		       frame_put_data(w, f->crypto.data, f->crypto.len);
	case QRDMA_FRAME_NEW_TOKEN:
		return f->token.len && qrdma_writer_varint(w, f->token.len) &&
		       qrdma_writer_bytes(w, f->token.data, f->token.len);
	case QRDMA_FRAME_MAX_DATA:
	case QRDMA_FRAME_DATA_BLOCKED:
		return qrdma_writer_varint(w, f->max.max);
	case QRDMA_FRAME_MAX_STREAM_DATA:
	case QRDMA_FRAME_STREAM_DATA_BLOCKED:
		return qrdma_writer_varint(w, f->max.id) && qrdma_writer_varint(w, f->max.max);
	case QRDMA_FRAME_MAX_STREAMS_BIDI:
	case QRDMA_FRAME_MAX_STREAMS_UNI:
	case QRDMA_FRAME_STREAMS_BLOCKED_BIDI:
	case QRDMA_FRAME_STREAMS_BLOCKED_UNI:
		return f->max.max <= QRDMA_STREAMS_MAX && qrdma_writer_varint(w, f->max.max);
	case QRDMA_FRAME_NEW_CONNECTION_ID:
		return frame_put_new_cid(w, f);
	case QRDMA_FRAME_RETIRE_CONNECTION_ID:
		return qrdma_writer_varint(w, f->retire_cid.seq);
	case QRDMA_FRAME_PATH_CHALLENGE:
	case QRDMA_FRAME_PATH_RESPONSE:
		return qrdma_writer_bytes(w, f->path.data, sizeof(f->path.data));
	case QRDMA_FRAME_CLOSE:
	case QRDMA_FRAME_CLOSE_APP:
		return frame_put_close(w, f);
	case QRDMA_FRAME_DATAGRAM:
		return frame_put_data(w, f->datagram.data, f->datagram.len);
	case QRDMA_FRAME_DATAGRAM_LEN:
		return qrdma_writer_varint(w, f->datagram.len) &&
		       frame_put_data(w, f->datagram.data, f->datagram.len);
	}
	return false;
}

bool qrdma_frame_encode(struct qrdma_writer *w, const struct qrdma_frame *f)
{
	struct qrdma_writer out = *w;
	u8 type = f->type;

	if (type >= QRDMA_FRAME_STREAM && type <= QRDMA_FRAME_STREAM_END)
		type = QRDMA_FRAME_STREAM | (type & QRDMA_STREAM_LEN) |
		       (f->stream.off ? QRDMA_STREAM_OFF : 0) |
		       (f->stream.fin ? QRDMA_STREAM_FIN : 0);
	if (!qrdma_writer_u8(&out, type) || !frame_put(&out, f))
		return false;
	*w = out;
	return true;
}

/* bytes of the pair that leads from the range @above to @range */
static u32 frame_range_size(const struct qrdma_range *above, const struct qrdma_range *range)
{
	return qrdma_varint_len(above->lo - range->hi - 2) +
	       qrdma_varint_len(range->hi - range->lo);
}

u32 qrdma_ack_encode(struct qrdma_writer *w, const struct qrdma_ack *ack,
		     const struct qrdma_range *range, u32 count)
{
	const struct qrdma_range *r = &range[count - 1];
	struct qrdma_ack head = {
		.largest = r->hi,
		.delay = ack->delay,
		.ecn = ack->ecn,
		.ect0 = ack->ect0,
		.ect1 = ack->ect1,
		.ce = ack->ce,
		.first = r->hi - r->lo,
	};
	size_t room = qrdma_writer_room(w);
	struct qrdma_writer out = *w;
	u32 n, size;

	/* how many fit; the length of their number is part of that */
	size = 1 + frame_ack_size(&head);
	if (size > room)
		return 0;
	for (n = 1; n < count; n++) {
		u32 more = frame_range_size(r + 1 - n, r - n) + qrdma_varint_len(n) -
			   qrdma_varint_len(n - 1);

		if (size + more > room)
			break;
		size += more;
	}

	head.count = n - 1;
	if (!qrdma_writer_u8(&out, ack->ecn ? QRDMA_FRAME_ACK_ECN : QRDMA_FRAME_ACK) ||
	    !qrdma_writer_varint(&out, head.largest) || !qrdma_writer_varint(&out, head.delay) ||
	    !qrdma_writer_varint(&out, head.count) || !qrdma_writer_varint(&out, head.first))
		return 0;
	for (; r > &range[count - n]; r--) {
		if (!qrdma_writer_varint(&out, r->lo - r[-1].hi - 2) ||
		    !qrdma_writer_varint(&out, r[-1].hi - r[-1].lo))
			return 0;
	}
	if (ack->ecn && !(qrdma_writer_varint(&out, ack->ect0) &&
			  qrdma_writer_varint(&out, ack->ect1) &&
			  qrdma_writer_varint(&out, ack->ce)))
		return 0;
	*w = out;
	return n;
}
