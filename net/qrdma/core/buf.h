/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A flat, refcounted run of bytes (received packet, written data, copy), the record that
 * places a piece of it in a stream, and the account that knows what such pieces pin.
 *
 * Owns: the reference count of a buffer, and the arithmetic of an account.
 * Called by: everyone. References may be taken and dropped in any context (an asynchronous
 * AEAD drops them from its completion), so the count is atomic. Everything else (the embedded
 * record, @mem, @pins, the account) belongs to the one connection that holds the buffer and is
 * touched under its socket lock only.
 */
#ifndef QRDMA_CORE_BUF_H
#define QRDMA_CORE_BUF_H

#include "env.h"

struct qrdma_buf;

/**
 * struct qrdma_mem - what one connection pins in one direction
 * @used: bytes pinned now: true sizes of buffers, plus records and tables that had to be
 *	allocated
 * @cap: hard bound of @used; may be changed at any time, also below @used
 * @frags: records in use
 * @frag_cap: hard bound of @frags
 * @refused: how often a bound said no (the packet is then dropped and not acknowledged)
 * @nomem: how often the allocator said no
 * @copied: bytes that were copied because they were small against their buffer
 *
 * Shared by all streams of a connection: many streams are no way around the bound.
 * Lives in its owner (struct qrdma_streams, or the connection for CRYPTO data).
 */
struct qrdma_mem {
	u32 used;
	u32 cap;
	u32 frags;
	u32 frag_cap;
	u64 refused;
	u64 nomem;
	u64 copied;
};

/**
 * struct qrdma_frag - a piece of a buffer and its place in a stream
 * @node: in the list of a struct qrdma_reasm or struct qrdma_sendq, ordered by @off
 * @buf: owner of the bytes, one reference held; NULL: this (embedded) record is free
 * @peer: reasm only: the other end of the run of contiguous pieces that this one ends
 * @off: stream offset of @data
 * @data: first byte, within @buf
 * @len: bytes
 */
struct qrdma_frag {
	struct list_head node;
	struct qrdma_buf *buf;
	struct qrdma_frag *peer;
	u64 off;
	const u8 *data;
	u32 len;
};

/**
 * struct qrdma_buf - flat buffer
 * @refs: references; the last put calls @release
 * @truesize: bytes of memory that this buffer pins, overhead included
 * @len: bytes at @data that may be used. Received: the datagram. To be sent: the room, and
 *	what lies behind the bytes written so far may be written by the send queue's owner
 *	(set it to the end of the data where that must not be, as with pages of the user)
 * @data: first byte
 * @release: gives the memory back; any context
 * @frag: record for the first piece in use, so that the common case (one STREAM frame per
 *	packet, one chunk per buffer) allocates none; more pieces of the same buffer get
 *	records of their own
 * @mem: the account that @truesize is charged to, valid while @pins is not zero
 * @pins: pieces (records) that are charged to @mem
 *
 * Whoever embeds a buffer calls qrdma_buf_init() each time it is used anew. At the time of
 * @release no record refers to the buffer.
 */
struct qrdma_buf {
	refcount_t refs;
	u32 truesize;
	u32 len;
	u32 pins;
	u8 *data;
	void (*release)(struct qrdma_buf *buf);
	struct qrdma_mem *mem;
	struct qrdma_frag frag;
};

/**
 * qrdma_buf_init() - make an embedded buffer ready, with one reference
 * @buf: the buffer
 * @data: first byte
 * @len: bytes, see struct qrdma_buf
 * @truesize: bytes of memory pinned by it
 * @release: called by the last put, any context
 */
static inline void qrdma_buf_init(struct qrdma_buf *buf, u8 *data, u32 len, u32 truesize,
				  void (*release)(struct qrdma_buf *buf))
{
	refcount_set(&buf->refs, 1);
	buf->truesize = truesize;
	buf->len = len;
	buf->pins = 0;
	buf->data = data;
	buf->release = release;
	buf->mem = NULL;
	buf->frag.buf = NULL;
}

static inline struct qrdma_buf *qrdma_buf_get(struct qrdma_buf *buf)
{
	refcount_inc(&buf->refs);
	return buf;
}

static inline void qrdma_buf_put(struct qrdma_buf *buf)
{
	if (buf && refcount_dec_and_test(&buf->refs))
		buf->release(buf);
}

static inline void qrdma_buf_kfree(struct qrdma_buf *buf)
{
	kfree(buf);
}

/**
 * qrdma_buf_alloc() - a buffer with its bytes behind it in one allocation
 * @len: bytes
 * @gfp: allocation flags
 *
 * Return: the buffer with one reference, NULL when there is no memory.
 */
static inline struct qrdma_buf *qrdma_buf_alloc(u32 len, gfp_t gfp)
{
	struct qrdma_buf *buf = kmalloc(sizeof(*buf) + len, gfp);

	if (buf)
		qrdma_buf_init(buf, (u8 *)(buf + 1), len, sizeof(*buf) + len, qrdma_buf_kfree);
	return buf;
}

/**
 * qrdma_mem_init() - an empty account
 * @mem: the account
 * @cap: hard bound in bytes; the bound on records follows from it
 */
static inline void qrdma_mem_init(struct qrdma_mem *mem, u32 cap)
{
	memset(mem, 0, sizeof(*mem));
	mem->cap = cap;
	mem->frag_cap = max_t(u32, cap / 512, 64);
}

/**
 * qrdma_mem_set_cap() - another bound (SO_RCVBUF, SO_SNDBUF)
 * @mem: the account
 * @cap: hard bound in bytes; what is pinned beyond it stays
 */
static inline void qrdma_mem_set_cap(struct qrdma_mem *mem, u32 cap)
{
	mem->cap = cap;
	mem->frag_cap = max_t(u32, cap / 512, 64);
}

/* A buffer is charged once, however many pieces of it the account's owner keeps. */
static inline u32 qrdma_mem_cost(const struct qrdma_buf *buf)
{
	return buf->pins ? 0 : buf->truesize;
}

static inline void qrdma_mem_pin(struct qrdma_mem *mem, struct qrdma_buf *buf)
{
	if (!buf->pins++) {
		buf->mem = mem;
		mem->used += buf->truesize;
	}
}

static inline void qrdma_mem_unpin(struct qrdma_buf *buf)
{
	if (!--buf->pins) {
		buf->mem->used -= buf->truesize;
		buf->mem = NULL;
	}
}

/**
 * qrdma_frag_new() - a record for a piece of a buffer: the embedded one, or an allocated one
 * @buf: the buffer; its embedded record is taken when it is free
 * @gfp: allocation flags
 *
 * Takes a reference on @buf. Charges nothing: see qrdma_frag_charge().
 *
 * Return: the record with @buf set, NULL when there is no memory.
 */
static inline struct qrdma_frag *qrdma_frag_new(struct qrdma_buf *buf, gfp_t gfp)
{
	struct qrdma_frag *frag = &buf->frag;

	if (frag->buf) {
		frag = kmalloc(sizeof(*frag), gfp);
		if (!frag)
			return NULL;
	}
	frag->buf = qrdma_buf_get(buf);
	return frag;
}

/* The record goes into a queue that accounts to @mem. */
static inline void qrdma_frag_charge(struct qrdma_mem *mem, struct qrdma_frag *frag)
{
	qrdma_mem_pin(mem, frag->buf);
	mem->frags++;
	if (frag != &frag->buf->frag)
		mem->used += sizeof(*frag);
}

/* The record is given back without having been charged. */
static inline void qrdma_frag_drop(struct qrdma_frag *frag)
{
	struct qrdma_buf *buf = frag->buf;

	if (frag == &buf->frag)
		frag->buf = NULL;
	else
		kfree(frag);
	qrdma_buf_put(buf);
}

/* The record leaves its queue: the mirror of new and charge. */
static inline void qrdma_frag_free(struct qrdma_mem *mem, struct qrdma_frag *frag)
{
	mem->frags--;
	if (frag != &frag->buf->frag)
		mem->used -= sizeof(*frag);
	qrdma_mem_unpin(frag->buf);
	qrdma_frag_drop(frag);
}

#endif /* QRDMA_CORE_BUF_H */
