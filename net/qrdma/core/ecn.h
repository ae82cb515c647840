/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Does the path carry ECN marks, and what does the peer report of them?
 *
 * Owns: struct qrdma_ecn_path. Called by: recovery.c; packer.c asks whether to mark. Context:
 * any, never sleeps, allocates nothing. Lock: the caller serialises.
 *
 * Packets that leave without a record (qrdma_recovery_pass(): acknowledgements and nothing else)
 * are not marked, as TCP does not mark its own.
 *
 * Source: RFC 9000 s13.4.2 and appendix A.4.
 */
#ifndef QRDMA_CORE_ECN_H
#define QRDMA_CORE_ECN_H

#include "env.h"
#include "frame.h"
#include "pnspace.h"

#define QRDMA_ECN_TESTING	10	/* packets marked before one must have been reported */

/** enum qrdma_ecn_state - what is known about the path */
enum qrdma_ecn_state {
	QRDMA_ECN_OFF,
	QRDMA_ECN_TEST,		/* the first packets are marked */
	QRDMA_ECN_WAIT,		/* enough were marked, no verdict yet: none is marked now */
	QRDMA_ECN_CAPABLE,
	QRDMA_ECN_FAILED,
};

/**
 * struct qrdma_ecn_count - one packet number space
 * @marked: packets sent with ECT(0)
 * @ect0: of these, reported by the peer as received so
 * @ce: of these, reported by the peer as received with CE
 */
struct qrdma_ecn_count {
	u64 marked;
	u64 ect0;
	u64 ce;
};

/**
 * struct qrdma_ecn_path - ECN of the current path
 * @state: enum qrdma_ecn_state
 * @marked: packets marked on this path, saturating
 * @lost: of these, lost before the state was CAPABLE
 * @space: counts of the connection, by enum qrdma_space; they outlive the path
 *
 * Found by: embedded in struct qrdma_recovery. Dies with it. Protected by: the caller.
 */
struct qrdma_ecn_path {
	enum qrdma_ecn_state state;
	u32 marked;
	u32 lost;
	struct qrdma_ecn_count space[QRDMA_SPACES];
};

/** qrdma_ecn_start() - begin to mark packets; no effect unless the state is OFF */
static inline void qrdma_ecn_start(struct qrdma_ecn_path *ecn)
{
	if (ecn->state == QRDMA_ECN_OFF)
		ecn->state = QRDMA_ECN_TEST;
}

/** qrdma_ecn_new_path() - test again, unless it is switched off */
static inline void qrdma_ecn_new_path(struct qrdma_ecn_path *ecn)
{
	ecn->marked = 0;
	ecn->lost = 0;
	if (ecn->state != QRDMA_ECN_OFF)
		ecn->state = QRDMA_ECN_TEST;
}

/** qrdma_ecn_mark() - is the next packet to be marked ECT(0)? */
static inline bool qrdma_ecn_mark(const struct qrdma_ecn_path *ecn)
{
	return ecn->state == QRDMA_ECN_TEST || ecn->state == QRDMA_ECN_CAPABLE;
}

/** qrdma_ecn_on_sent() - a packet marked ECT(0) leaves in @space */
void qrdma_ecn_on_sent(struct qrdma_ecn_path *ecn, u8 space);

/** qrdma_ecn_on_lost() - a packet marked on this path was declared lost: it may be the mark */
void qrdma_ecn_on_lost(struct qrdma_ecn_path *ecn);

/**
 * qrdma_ecn_on_ack() - check the counts in an ACK frame
 * @ecn: the object
 * @space: enum qrdma_space
 * @ack: the frame; it must raise the largest acknowledged number (others may come out of order)
 * @newly: newly acknowledged packets that were marked on this path
 *
 * Return: new CE marks; 0 also when the frame or the path failed the test.
 */
u64 qrdma_ecn_on_ack(struct qrdma_ecn_path *ecn, u8 space, const struct qrdma_ack *ack, u32 newly);

#endif /* QRDMA_CORE_ECN_H */
