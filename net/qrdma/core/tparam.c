// SPDX-License-Identifier: GPL-2.0
/*
 * Transport parameters: one table of what each is, and a decoder and an encoder driven by it.
 *
 * Owns: tparam_table. Called by, context, lock: see tparam.h.
 */
#include "tparam.h"
#include "frame.h"

enum tparam_kind {
	TPARAM_UNKNOWN,
	TPARAM_INT,	/* u64 */
	TPARAM_FLAG,	/* bool; there or not */
	TPARAM_CID,	/* struct qrdma_cid */
	TPARAM_TOKEN,	/* u8[QRDMA_RESET_TOKEN_LEN] */
	TPARAM_ADDRESS,	/* struct qrdma_preferred_address */
};

/**
 * struct tparam_row - one parameter
 * @kind: enum tparam_kind
 * @server_only: a client must not send it (RFC 9000 s18.2)
 * @offset: of the field in struct qrdma_tparams
 * @dflt: value when absent
 * @min: smallest value allowed
 * @max: largest value allowed
 */
struct tparam_row {
	u8 kind;
	bool server_only;
	u16 offset;
	u64 dflt;
	u64 min;
	u64 max;
};

/* bytes of the longest value: the preferred address */
#define TPARAM_VALUE_MAX	(4 + 2 + 16 + 2 + 1 + QRDMA_CID_MAX + QRDMA_RESET_TOKEN_LEN)

#define TPARAM_OTHER(k, field, server) \
	{ .kind = (k), .server_only = (server), .offset = offsetof(struct qrdma_tparams, field) }
#define TPARAM_RANGE(field, d, lo, hi) \
	{ .kind = TPARAM_INT, .offset = offsetof(struct qrdma_tparams, field), \
	  .dflt = (d), .min = (lo), .max = (hi) }
#define TPARAM_ANY(field)	TPARAM_RANGE(field, 0, 0, QRDMA_VARINT_MAX)

/* RFC 9000 s18.2 (initial_max_streams_*: s4.6), RFC 9221 s3; by identifier */
static const struct tparam_row tparam_table[] = {
	[QRDMA_TP_ORIGINAL_DCID] = TPARAM_OTHER(TPARAM_CID, original_dcid, true),
	[QRDMA_TP_MAX_IDLE_TIMEOUT] = TPARAM_ANY(max_idle_timeout),
	[QRDMA_TP_STATELESS_RESET_TOKEN] = TPARAM_OTHER(TPARAM_TOKEN, reset_token, true),
	[QRDMA_TP_MAX_UDP_PAYLOAD_SIZE] =
		TPARAM_RANGE(max_udp_payload_size, QRDMA_TP_MAX_UDP_PAYLOAD_MAX,
			     QRDMA_TP_MAX_UDP_PAYLOAD_MIN, QRDMA_VARINT_MAX),
	[QRDMA_TP_INITIAL_MAX_DATA] = TPARAM_ANY(initial_max_data),
	[QRDMA_TP_INITIAL_MAX_STREAM_DATA_BIDI_LOCAL] =
		TPARAM_ANY(initial_max_stream_data_bidi_local),
	[QRDMA_TP_INITIAL_MAX_STREAM_DATA_BIDI_REMOTE] =
		TPARAM_ANY(initial_max_stream_data_bidi_remote),
	[QRDMA_TP_INITIAL_MAX_STREAM_DATA_UNI] = TPARAM_ANY(initial_max_stream_data_uni),
	[QRDMA_TP_INITIAL_MAX_STREAMS_BIDI] =
		TPARAM_RANGE(initial_max_streams_bidi, 0, 0, QRDMA_STREAMS_MAX),
	[QRDMA_TP_INITIAL_MAX_STREAMS_UNI] =
		TPARAM_RANGE(initial_max_streams_uni, 0, 0, QRDMA_STREAMS_MAX),
	[QRDMA_TP_ACK_DELAY_EXPONENT] = TPARAM_RANGE(ack_delay_exponent, 3, 0, 20),
	[QRDMA_TP_MAX_ACK_DELAY] = TPARAM_RANGE(max_ack_delay, 25, 0, (1 << 14) - 1),
	[QRDMA_TP_DISABLE_ACTIVE_MIGRATION] =
		TPARAM_OTHER(TPARAM_FLAG, disable_active_migration, false),
	[QRDMA_TP_PREFERRED_ADDRESS] = TPARAM_OTHER(TPARAM_ADDRESS, preferred, true),
	[QRDMA_TP_ACTIVE_CID_LIMIT] = TPARAM_RANGE(active_cid_limit, 2, 2, QRDMA_VARINT_MAX),
	[QRDMA_TP_INITIAL_SCID] = TPARAM_OTHER(TPARAM_CID, initial_scid, false),
	[QRDMA_TP_RETRY_SCID] = TPARAM_OTHER(TPARAM_CID, retry_scid, true),
	[QRDMA_TP_MAX_DATAGRAM_FRAME_SIZE] = TPARAM_ANY(max_datagram_frame_size),
};

static void *tparam_field(struct qrdma_tparams *tp, const struct tparam_row *row)
{
	return (u8 *)tp + row->offset;
}

static const void *tparam_field_const(const struct qrdma_tparams *tp, const struct tparam_row *row)
{
	return (const u8 *)tp + row->offset;
}

static bool tparam_in_range(const struct tparam_row *row, u64 v)
{
	return v >= row->min && v <= row->max;
}

void qrdma_tparams_init(struct qrdma_tparams *tp)
{
	u32 id;

	memset(tp, 0, sizeof(*tp));
	for (id = 0; id < ARRAY_SIZE(tparam_table); id++) {
		const struct tparam_row *row = &tparam_table[id];

		if (row->kind == TPARAM_INT)
			*(u64 *)tparam_field(tp, row) = row->dflt;
	}
}

bool qrdma_tparams_valid(const struct qrdma_tparams *tp)
{
	u32 id;

	for (id = 0; id < ARRAY_SIZE(tparam_table); id++) {
		const struct tparam_row *row = &tparam_table[id];

		if (row->kind == TPARAM_INT &&
		    !tparam_in_range(row, *(const u64 *)tparam_field_const(tp, row)))
			return false;
	}
	return true;
}

static bool tparam_get_cid(struct qrdma_cursor *c, struct qrdma_cid *cid, size_t len)
{
	if (len > QRDMA_CID_MAX)
		return false;
	cid->len = len;
	return qrdma_cursor_copy(c, cid->data, len);
}

static bool tparam_get_address(struct qrdma_cursor *c, struct qrdma_preferred_address *a)
{
	u8 len;

	return qrdma_cursor_copy(c, a->ipv4, sizeof(a->ipv4)) &&
	       qrdma_cursor_u16(c, &a->ipv4_port) &&
	       qrdma_cursor_copy(c, a->ipv6, sizeof(a->ipv6)) &&
	       qrdma_cursor_u16(c, &a->ipv6_port) &&
	       /* RFC 9000 s18.2: not empty */
	       qrdma_cursor_u8(c, &len) && len && tparam_get_cid(c, &a->cid, len) &&
	       qrdma_cursor_copy(c, a->reset_token, sizeof(a->reset_token));
}

/* Reads the value of one parameter, all of it. */
static bool tparam_get(struct qrdma_cursor *c, const struct tparam_row *row, void *field)
{
	switch (row->kind) {
	case TPARAM_INT:
		if (!qrdma_cursor_varint(c, field) || !tparam_in_range(row, *(u64 *)field))
			return false;
		break;
	case TPARAM_FLAG:
		*(bool *)field = true;
		break;
	case TPARAM_CID:
		if (!tparam_get_cid(c, field, qrdma_cursor_left(c)))
			return false;
		break;
	case TPARAM_TOKEN:
		if (!qrdma_cursor_copy(c, field, QRDMA_RESET_TOKEN_LEN))
			return false;
		break;
	case TPARAM_ADDRESS:
		if (!tparam_get_address(c, field))
			return false;
		break;
	}
	return !qrdma_cursor_left(c);
}

u64 qrdma_tparams_decode(struct qrdma_tparams *tp, const u8 *data, size_t len, bool from_server)
{
	const struct tparam_row *row;
	struct qrdma_cursor c, value;
	const u8 *bytes;
	u64 id, n;

	qrdma_tparams_init(tp);
	qrdma_cursor_init(&c, data, len);
	while (qrdma_cursor_left(&c)) {
		if (!qrdma_cursor_varint(&c, &id) || !qrdma_cursor_varint(&c, &n) ||
		    !qrdma_cursor_bytes(&c, n, &bytes))
			return QRDMA_ERR_TRANSPORT_PARAMETER_ERROR;
		/* RFC 9000 s7.4.2: what we do not know is ignored */
		if (id >= ARRAY_SIZE(tparam_table) || !tparam_table[id].kind)
			continue;
		row = &tparam_table[id];
		/* RFC 9000 s7.4 */
		if (qrdma_tparams_has(tp, id))
			return QRDMA_ERR_TRANSPORT_PARAMETER_ERROR;
		/* RFC 9000 s18.2 */
		if (row->server_only && !from_server)
			return QRDMA_ERR_TRANSPORT_PARAMETER_ERROR;
		qrdma_cursor_init(&value, bytes, n);
		if (!tparam_get(&value, row, tparam_field(tp, row)))
			return QRDMA_ERR_TRANSPORT_PARAMETER_ERROR;
		tp->present |= BIT_ULL(id);
	}
	return QRDMA_ERR_NO_ERROR;
}

static bool tparam_put_address(struct qrdma_writer *w, const struct qrdma_preferred_address *a)
{
	return a->cid.len && a->cid.len <= QRDMA_CID_MAX &&
	       qrdma_writer_bytes(w, a->ipv4, sizeof(a->ipv4)) &&
	       qrdma_writer_u16(w, a->ipv4_port) &&
	       qrdma_writer_bytes(w, a->ipv6, sizeof(a->ipv6)) &&
	       qrdma_writer_u16(w, a->ipv6_port) &&
	       qrdma_writer_u8(w, a->cid.len) &&
	       qrdma_writer_bytes(w, a->cid.data, a->cid.len) &&
	       qrdma_writer_bytes(w, a->reset_token, sizeof(a->reset_token));
}

/* Writes the value of one parameter. */
static bool tparam_put(struct qrdma_writer *w, const struct tparam_row *row, const void *field)
{
	const struct qrdma_cid *cid = field;

	switch (row->kind) {
	case TPARAM_INT:
		return qrdma_writer_varint(w, *(const u64 *)field);
	case TPARAM_CID:
		return cid->len <= QRDMA_CID_MAX && qrdma_writer_bytes(w, cid->data, cid->len);
	case TPARAM_TOKEN:
		return qrdma_writer_bytes(w, field, QRDMA_RESET_TOKEN_LEN);
	case TPARAM_ADDRESS:
		return tparam_put_address(w, field);
	}
	return true;	/* TPARAM_FLAG: empty */
}

/* Is there anything to say about a parameter? */
static bool tparam_wanted(const struct qrdma_tparams *tp, u32 id, bool from_server)
{
	const struct tparam_row *row = &tparam_table[id];

	switch (row->kind) {
	case TPARAM_UNKNOWN:
		return false;
	case TPARAM_INT:
		return *(const u64 *)tparam_field_const(tp, row) != row->dflt;
	case TPARAM_FLAG:
		return *(const bool *)tparam_field_const(tp, row);
	}
	return qrdma_tparams_has(tp, id) && (from_server || !row->server_only);
}

bool qrdma_tparams_encode(struct qrdma_writer *w, const struct qrdma_tparams *tp, bool from_server)
{
	struct qrdma_writer out = *w, value;
	u8 buf[TPARAM_VALUE_MAX];
	u32 id, len;

	if (!qrdma_tparams_valid(tp))
		return false;
	for (id = 0; id < ARRAY_SIZE(tparam_table); id++) {
		const struct tparam_row *row = &tparam_table[id];

		if (!tparam_wanted(tp, id, from_server))
			continue;
		/* the length comes first: value by way of a buffer */
		qrdma_writer_init(&value, buf, sizeof(buf));
		if (!tparam_put(&value, row, tparam_field_const(tp, row)))
			return false;
		len = value.pos - buf;
		if (!qrdma_writer_varint(&out, id) || !qrdma_writer_varint(&out, len) ||
		    !qrdma_writer_bytes(&out, buf, len))
			return false;
	}
	*w = out;
	return true;
}
