/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bounded reading and writing of the wire: bytes, big endian numbers, variable-length integers
 * (RFC 9000 s16), truncated packet numbers (RFC 9000 s17.1, appendix A.2 and A.3).
 *
 * Owns: nothing. The codec files touch wire bytes only through what stands here.
 * Called by: header.c, frame.c, tparam.c and what assembles packets. Context: any. Lock: none.
 *
 * Every call answers whether there was enough; when there was not, nothing is read, written or
 * moved.
 */
#ifndef QRDMA_CORE_CURSOR_H
#define QRDMA_CORE_CURSOR_H

#include "env.h"

#define QRDMA_VARINT_MAX	((1ULL << 62) - 1)
#define QRDMA_PN_MAX		QRDMA_VARINT_MAX	/* RFC 9000 s12.3 */
#define QRDMA_PN_LEN_MAX	4

/**
 * struct qrdma_cursor - reading position
 * @pos: next byte to read
 * @end: first byte that must not be read
 */
struct qrdma_cursor {
	const u8 *pos;
	const u8 *end;
};

/**
 * struct qrdma_writer - writing position
 * @pos: where the next byte goes
 * @end: first byte that must not be written
 */
struct qrdma_writer {
	u8 *pos;
	u8 *end;
};

static inline u16 qrdma_load_be16(const u8 *p)
{
	__be16 v;

	memcpy(&v, p, sizeof(v));
	return be16_to_cpu(v);
}

static inline u32 qrdma_load_be32(const u8 *p)
{
	__be32 v;

	memcpy(&v, p, sizeof(v));
	return be32_to_cpu(v);
}

static inline u64 qrdma_load_be64(const u8 *p)
{
	__be64 v;

	memcpy(&v, p, sizeof(v));
	return be64_to_cpu(v);
}

static inline void qrdma_store_be16(u8 *p, u16 n)
{
	__be16 v = cpu_to_be16(n);

	memcpy(p, &v, sizeof(v));
}

static inline void qrdma_store_be32(u8 *p, u32 n)
{
	__be32 v = cpu_to_be32(n);

	memcpy(p, &v, sizeof(v));
}

static inline void qrdma_store_be64(u8 *p, u64 n)
{
	__be64 v = cpu_to_be64(n);

	memcpy(p, &v, sizeof(v));
}

static inline void qrdma_cursor_init(struct qrdma_cursor *c, const void *data, size_t len)
{
	c->pos = data;
	c->end = c->pos + len;
}

/** qrdma_cursor_left() - bytes not read yet */
static inline size_t qrdma_cursor_left(const struct qrdma_cursor *c)
{
	return c->end - c->pos;
}

static inline bool qrdma_cursor_u8(struct qrdma_cursor *c, u8 *v)
{
	if (unlikely(c->pos == c->end))
		return false;
	*v = *c->pos++;
	return true;
}

static inline bool qrdma_cursor_u16(struct qrdma_cursor *c, u16 *v)
{
	if (unlikely(qrdma_cursor_left(c) < sizeof(*v)))
		return false;
	*v = qrdma_load_be16(c->pos);
	c->pos += sizeof(*v);
	return true;
}

static inline bool qrdma_cursor_u32(struct qrdma_cursor *c, u32 *v)
{
	if (unlikely(qrdma_cursor_left(c) < sizeof(*v)))
		return false;
	*v = qrdma_load_be32(c->pos);
	c->pos += sizeof(*v);
	return true;
}

/**
 * qrdma_cursor_bytes() - pass over bytes and say where they are
 * @c: position
 * @len: how many; any u64, so that a length from the wire needs no check before
 * @data: first of them, inside the memory that is being read
 *
 * Return: false when there are not so many.
 */
static inline bool qrdma_cursor_bytes(struct qrdma_cursor *c, u64 len, const u8 **data)
{
	if (unlikely(qrdma_cursor_left(c) < len))
		return false;
	*data = c->pos;
	c->pos += len;
	return true;
}

/** qrdma_cursor_copy() - read bytes into memory of the caller */
static inline bool qrdma_cursor_copy(struct qrdma_cursor *c, void *to, size_t len)
{
	if (unlikely(qrdma_cursor_left(c) < len))
		return false;
	memcpy(to, c->pos, len);
	c->pos += len;
	return true;
}

/**
 * qrdma_cursor_varint() - read a variable-length integer (RFC 9000 s16)
 * @c: position
 * @v: the value, at most QRDMA_VARINT_MAX; an encoding longer than needed is fine
 *
 * Return: false when it is cut off.
 */
static inline bool qrdma_cursor_varint(struct qrdma_cursor *c, u64 *v)
{
	const u8 *p = c->pos;
	size_t left = c->end - p;
	unsigned int len;

	if (unlikely(!left))
		return false;
	len = 1U << (*p >> 6);
	if (unlikely(left < len))
		return false;
	switch (len) {
	case 1:
		*v = *p;
		break;
	case 2:
		*v = qrdma_load_be16(p) & 0x3fff;
		break;
	case 4:
		*v = qrdma_load_be32(p) & 0x3fffffff;
		break;
	default:
		*v = qrdma_load_be64(p) & QRDMA_VARINT_MAX;
	}
	c->pos = p + len;
	return true;
}

/** qrdma_varint_len() - bytes of the shortest encoding; @v is at most QRDMA_VARINT_MAX */
static inline u32 qrdma_varint_len(u64 v)
{
	return v < BIT_ULL(6) ? 1 : v < BIT_ULL(14) ? 2 : v < BIT_ULL(30) ? 4 : 8;
}

/**
 * qrdma_varint_fit() - how many bytes fit behind their own length
 * @space: bytes of room, 1 at least
 *
 * Return: the largest n such that the shortest encoding of n and n bytes fit into @space.
 */
static inline u32 qrdma_varint_fit(u32 space)
{
	if (space <= 64)
		return space - 1;
	if (space <= 16385)
		return space - 2;
	return max_t(u32, space - 4, 16383);
}

static inline void qrdma_writer_init(struct qrdma_writer *w, void *data, size_t len)
{
	w->pos = data;
	w->end = w->pos + len;
}

/** qrdma_writer_room() - bytes that may still be written */
static inline size_t qrdma_writer_room(const struct qrdma_writer *w)
{
	return w->end - w->pos;
}

static inline bool qrdma_writer_u8(struct qrdma_writer *w, u8 v)
{
	if (unlikely(w->pos == w->end))
		return false;
	*w->pos++ = v;
	return true;
}

static inline bool qrdma_writer_u16(struct qrdma_writer *w, u16 v)
{
	if (unlikely(qrdma_writer_room(w) < sizeof(v)))
		return false;
	qrdma_store_be16(w->pos, v);
	w->pos += sizeof(v);
	return true;
}

static inline bool qrdma_writer_u32(struct qrdma_writer *w, u32 v)
{
	if (unlikely(qrdma_writer_room(w) < sizeof(v)))
		return false;
	qrdma_store_be32(w->pos, v);
	w->pos += sizeof(v);
	return true;
}

static inline bool qrdma_writer_bytes(struct qrdma_writer *w, const void *data, size_t len)
{
	if (unlikely(qrdma_writer_room(w) < len))
		return false;
	if (len)
		memcpy(w->pos, data, len);
	w->pos += len;
	return true;
}

static inline bool qrdma_writer_zero(struct qrdma_writer *w, size_t len)
{
	if (unlikely(qrdma_writer_room(w) < len))
		return false;
	memset(w->pos, 0, len);
	w->pos += len;
	return true;
}

/**
 * qrdma_writer_varint() - write a variable-length integer, shortest encoding
 * @w: position
 * @v: the value
 *
 * Return: false when there is no room, and also when @v is over QRDMA_VARINT_MAX.
 */
static inline bool qrdma_writer_varint(struct qrdma_writer *w, u64 v)
{
	u32 len = qrdma_varint_len(v);
	u8 *p = w->pos;

	if (unlikely(qrdma_writer_room(w) < len || v > QRDMA_VARINT_MAX))
		return false;
	switch (len) {
	case 1:
		*p = v & 0x3f;
		break;
	case 2:
		qrdma_store_be16(p, (v & 0x3fff) | 0x4000);
		break;
	case 4:
		qrdma_store_be32(p, (v & 0x3fffffff) | 0x80000000);
		break;
	default:
		qrdma_store_be64(p, v | 3ULL << 62);
	}
	w->pos = p + len;
	return true;
}

/**
 * struct qrdma_range - packet numbers @lo to @hi, both included
 * @lo: smallest
 * @hi: largest, never below @lo
 */
struct qrdma_range {
	u64 lo;
	u64 hi;
};

/**
 * qrdma_pn_len() - bytes that a packet number needs on the wire (RFC 9000 s17.1, A.2)
 * @pn: packet number of the packet to be sent
 * @unacked: largest packet number that the peer acknowledged plus one, 0 when there is none
 *
 * Return: 1..4; 0 when not even four bytes span more than twice the packets that are outstanding:
 * such a packet must not be sent.
 */
static inline u32 qrdma_pn_len(u64 pn, u64 unacked)
{
	/* contiguous unacknowledged numbers, this one included; twice that is one bit more */
	u32 bits = fls64(pn - unacked + 1) + 1;

	return bits <= 32 ? DIV_ROUND_UP(bits, 8) : 0;
}

/** qrdma_pn_store() - write the low @len (1..4) bytes of @pn at @p */
static inline void qrdma_pn_store(u8 *p, u64 pn, u32 len)
{
	while (len--) {
		p[len] = pn;
		pn >>= 8;
	}
}

/** qrdma_pn_load() - read a truncated packet number of @len (1..4) bytes at @p */
static inline u64 qrdma_pn_load(const u8 *p, u32 len)
{
	u64 pn = 0;

	while (len--)
		pn = pn << 8 | *p++;
	return pn;
}

/**
 * qrdma_pn_decode() - full packet number (RFC 9000 A.3)
 * @expected: largest packet number of an authenticated packet of this space plus one, 0 when
 *	there is none
 * @pn: the truncated number
 * @len: its length on the wire, 1..4
 *
 * Return: the number closest to @expected whose low bytes are @pn; never over QRDMA_PN_MAX.
 */
static inline u64 qrdma_pn_decode(u64 expected, u64 pn, u32 len)
{
	u64 win = 1ULL << (8 * len);
	u64 full = (expected & ~(win - 1)) | pn;

	if (full + win / 2 <= expected && full < QRDMA_PN_MAX + 1 - win)
		return full + win;
	if ((full > expected + win / 2 || full > QRDMA_PN_MAX) && full >= win)
		return full - win;
	return full;
}

#endif /* QRDMA_CORE_CURSOR_H */
