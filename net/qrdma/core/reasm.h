/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bytes received in any order, put in order: one object per stream, one per CRYPTO level.
 *
 * Owns: the references to received buffers that hold bytes not yet read. Called by:
 * stream.c and conn.c, softirq or process context, under the socket lock; never sleeps,
 * allocates with GFP_ATOMIC.
 *
 * Bytes stay where they were received (a reference, no copy), except when they are few
 * against the memory that their buffer pins: then they are copied into a compact buffer,
 * behind earlier copied bytes where possible. So what is pinned is bounded by the account's
 * cap, and a peer that sends its credit in tiny pieces cannot pin more than a small
 * multiple of it.
 *
 * A quarter of the cap is kept for bytes that continue what can be read: out-of-order
 * bytes, which may not be given up once acknowledged, can never block the byte that
 * everything waits for. A receive window of at most a quarter of the cap is never refused
 * to a peer that fills its packets, whichever one is late and however slowly the bytes are
 * read; when one is refused nevertheless, it is sent again.
 *
 * Where two frames disagree about a byte the first one wins (RFC 9000 s2.2 leaves it open).
 */
#ifndef QRDMA_CORE_REASM_H
#define QRDMA_CORE_REASM_H

#include "env.h"
#include "buf.h"
#include "keys.h"

/* runs of contiguous bytes that are kept apart: bounds the search of an insert */
#define QRDMA_REASM_RUNS	512

/**
 * struct qrdma_reasm - ordered bytes with gaps
 * @frags: struct qrdma_frag by offset, without overlap
 * @mem: account that is charged, outlives this object
 * @read: offset of the next byte to be read
 * @runs: maximal contiguous groups in @frags
 *
 * Owned by: a stream or a CRYPTO level; dies with it (qrdma_reasm_purge()). Protected by:
 * the socket lock. The first and the last record of a run point at each other (@peer), so
 * an insert steps over runs, not records.
 */
struct qrdma_reasm {
	struct list_head frags;
	struct qrdma_mem *mem;
	u64 read;
	u32 runs;
};

void qrdma_reasm_init(struct qrdma_reasm *reasm, struct qrdma_mem *mem);

/**
 * qrdma_reasm_insert() - bytes of a STREAM or CRYPTO frame
 * @reasm: the object
 * @off: offset of the first byte; @off + @len does not overflow (the caller has checked its
 *	limits)
 * @data: the bytes
 * @len: how many; 0 is accepted and does nothing
 * @buf: buffer that @data lies in; a reference is taken for what is kept in place. NULL:
 *	always copy
 *
 * Return: 0, also when nothing was new; -ENOBUFS: over a bound of memory, records or gaps;
 * -ENOMEM: no memory. After an error the object is as it was, and the caller must not
 * acknowledge the packet.
 */
int qrdma_reasm_insert(struct qrdma_reasm *reasm, u64 off, const u8 *data, u32 len,
		       struct qrdma_buf *buf);

/* Bytes that can be read now, in order. */
u64 qrdma_reasm_readable(const struct qrdma_reasm *reasm);

/**
 * qrdma_reasm_peek() - look at bytes in order without taking them
 * @reasm: the object
 * @skip: bytes behind the read position to begin at (MSG_PEEK at an offset)
 * @seg: filled in order; @owner is borrowed, whoever keeps the bytes beyond
 *	qrdma_reasm_consume() takes a reference. Bytes once shown never change.
 * @max: elements of @seg
 *
 * Return: elements filled, 0 when nothing can be read there.
 */
u32 qrdma_reasm_peek(const struct qrdma_reasm *reasm, u64 skip, struct qrdma_seg *seg, u32 max);

/**
 * qrdma_reasm_consume() - the next bytes were read
 * @reasm: the object
 * @len: how many, at most what is readable
 *
 * Return: bytes consumed.
 */
u64 qrdma_reasm_consume(struct qrdma_reasm *reasm, u64 len);

/* Give everything up; the object stays usable, at the same read position. */
void qrdma_reasm_purge(struct qrdma_reasm *reasm);

#endif /* QRDMA_CORE_REASM_H */
