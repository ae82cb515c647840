/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Records of the packets sent in one packet number space, in a ring indexed by packet number.
 *
 * Owns: the memory of the records. What a record's state means is recovery.c's business.
 * Called by: recovery.c; conn.c and packer.c only read the records that recovery hands out.
 * Context: any, never sleeps (GFP_ATOMIC). Lock: the caller serialises.
 *
 * Records come in chunks of QRDMA_SENT_CHUNK, a chunk covers that many consecutive packet numbers
 * and hangs in a directory whose size is a power of two. So a number is found in O(1), the ring
 * grows and shrinks with what is in flight, and in steady state one spare chunk goes round
 * without the allocator.
 */
#ifndef QRDMA_CORE_SENT_H
#define QRDMA_CORE_SENT_H

#include "env.h"

#define QRDMA_SENT_CHUNK	16	/* records per chunk: with 128 bytes each, 2 KiB */
#define QRDMA_SENT_SLOTS_MIN	8	/* chunks in the smallest directory */
#define QRDMA_SENT_SLOTS_MAX	1024	/* and in the largest */
/* span of numbers held at once */
#define QRDMA_SENT_MAX		(QRDMA_SENT_SLOTS_MAX * QRDMA_SENT_CHUNK)
#define QRDMA_SENT_FRAMES	4	/* frames per packet that can be noted */

/**
 * struct qrdma_sent_frame - note of a frame in a sent packet: what its owner must know when it is
 * acked or lost
 * @type: frame type (RFC 9000 s19; all fit into a byte)
 * @flags: the owner's, for example FIN
 * @len: bytes of data
 * @id: stream id, encryption level, or sequence number
 * @val: offset of the data, limit granted, or largest number acknowledged
 */
struct qrdma_sent_frame {
	u8 type;
	u8 flags;
	u32 len;
	u64 id;
	u64 val;
};

#define QRDMA_SENT_ELICITING	BIT(0)	/* the peer has to acknowledge it (RFC 9002 s2) */
#define QRDMA_SENT_IN_FLIGHT	BIT(1)	/* counts against the window */
#define QRDMA_SENT_PROBE	BIT(2)	/* sent because of a PTO */
#define QRDMA_SENT_ECT		BIT(3)	/* marked ECT(0) */
/* its loss says nothing about congestion (RFC 9000 s14.4) */
#define QRDMA_SENT_MTU_PROBE	BIT(4)
#define QRDMA_SENT_PHASE	BIT(5)	/* key phase bit; for the owner */

/** enum qrdma_sent_state - of a record */
enum qrdma_sent_state {
	QRDMA_SENT_NONE,	/* no packet of that number was sent, or its record was given up */
	QRDMA_SENT_OUT,		/* sent, verdict open */
	QRDMA_SENT_ACKED,
	QRDMA_SENT_LOST,	/* declared lost, kept for a while: it may be acknowledged yet */
};

/**
 * struct qrdma_sent - one packet
 * @pn: packet number
 * @time: when it was sent, ns
 * @next: next one in the list that recovery returned
 * @size: bytes of the packet
 * @path: which path it went by, compared with the current one
 * @event: congestion event that it was declared lost in
 * @flags: QRDMA_SENT_*
 * @state: enum qrdma_sent_state
 * @nframes: notes in use
 * @frame: the notes
 *
 * Found by: packet number in the ring. Owned by: the ring. Dies when the ring is trimmed past it.
 */
struct qrdma_sent {
	u64 pn;
	u64 time;
	struct qrdma_sent *next;
	u16 size;
	u16 path;
	u16 event;
	u8 flags;
	u8 state : 4;
	u8 nframes : 4;
	struct qrdma_sent_frame frame[QRDMA_SENT_FRAMES];
};

/**
 * struct qrdma_sent_slot - place of a chunk in the directory
 * @rec: QRDMA_SENT_CHUNK records, NULL: none
 * @live: bit i: rec[i] is live (out or lost: an acknowledgment of it means something)
 */
struct qrdma_sent_slot {
	struct qrdma_sent *rec;
	u32 live;
};

/**
 * struct qrdma_sent_ring - records of one packet number space
 * @slot: directory, chunk number modulo size; NULL while there was nothing to record
 * @map: bit i: slot[i] has live records
 * @spare: an unused chunk, NULL: none
 * @slots: size of the directory, a power of two
 * @chunks: chunks allocated, the spare one included
 * @base: no live record has a smaller number
 * @next: one more than the largest number sent
 *
 * Found by: embedded in struct qrdma_recovery. Dies with it. Protected by: the caller.
 */
struct qrdma_sent_ring {
	struct qrdma_sent_slot *slot;
	u64 *map;
	struct qrdma_sent *spare;
	u32 slots;
	u32 chunks;
	u64 base;
	u64 next;
};

/** qrdma_sent_ring_init() - make an empty ring; allocates nothing */
void qrdma_sent_ring_init(struct qrdma_sent_ring *ring);

/** qrdma_sent_ring_clear() - free all memory; the ring can be used on and knows what was sent */
void qrdma_sent_ring_clear(struct qrdma_sent_ring *ring);

/**
 * qrdma_sent_ring_reserve() - see to it that the packet can be recorded
 * @ring: the ring
 * @pn: its number, not below @next
 *
 * Return: 0; -ENOBUFS: too many numbers since the oldest live record; -ENOMEM; -EINVAL: @pn is
 * below @next.
 */
int qrdma_sent_ring_reserve(struct qrdma_sent_ring *ring, u64 pn);

/**
 * qrdma_sent_ring_pass() - a number is used by a packet that needs no record
 * @ring: the ring
 * @pn: the number, not below @next
 *
 * Return: as qrdma_sent_ring_reserve().
 */
int qrdma_sent_ring_pass(struct qrdma_sent_ring *ring, u64 pn);

/**
 * qrdma_sent_ring_push() - record a packet
 * @ring: the ring
 * @pn: its number, reserved just before
 *
 * Return: the record, live and QRDMA_SENT_OUT, with only @pn filled in. NULL (and a warning) when
 * nothing was reserved.
 */
struct qrdma_sent *qrdma_sent_ring_push(struct qrdma_sent_ring *ring, u64 pn);

/** qrdma_sent_ring_find() - the record of a number, live or not; NULL: none, or no more */
struct qrdma_sent *qrdma_sent_ring_find(const struct qrdma_sent_ring *ring, u64 pn);

/** qrdma_sent_ring_down() - live record with the largest number from @hi down to @lo, NULL: none */
struct qrdma_sent *qrdma_sent_ring_down(const struct qrdma_sent_ring *ring, u64 hi, u64 lo);

/** qrdma_sent_ring_up() - live record with the smallest number from @lo up to @hi, NULL: none */
struct qrdma_sent *qrdma_sent_ring_up(const struct qrdma_sent_ring *ring, u64 lo, u64 hi);

/** qrdma_sent_ring_settle() - the record is not live any more, but readable until the next trim */
void qrdma_sent_ring_settle(struct qrdma_sent_ring *ring, struct qrdma_sent *rec);

/** qrdma_sent_ring_trim() - move @base to the oldest live record, give back the chunks below */
void qrdma_sent_ring_trim(struct qrdma_sent_ring *ring);

#endif /* QRDMA_CORE_SENT_H */
