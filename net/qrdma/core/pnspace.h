/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One packet number space: the next number to send, and what was received and is owed an
 * acknowledgment.
 *
 * Owns: the send counter, the set of received numbers, the ACK deadline, the ECN counts to report.
 * Called by: conn.c for each packet that verified, packer.c when it numbers a packet or builds an
 * ACK frame.
 * Context: any, never sleeps. Lock: the caller serialises (the socket lock).
 *
 * Sources: RFC 9000 s12.3 (numbers), s13.2 (ACK generation), s13.4 (ECN). Times are ns.
 */
#ifndef QRDMA_CORE_PNSPACE_H
#define QRDMA_CORE_PNSPACE_H

#include "env.h"
#include "cursor.h"
#include "frame.h"
#include "ranges.h"

#define QRDMA_ACK_EVERY		2	/* ack-eliciting packets per ACK frame (RFC 9000 s13.2.2) */

/** enum qrdma_space - packet number spaces (RFC 9000 s12.3) */
enum qrdma_space {
	QRDMA_SPACE_INITIAL,
	QRDMA_SPACE_HANDSHAKE,
	QRDMA_SPACE_APP,
	QRDMA_SPACES
};

/** enum qrdma_ecn - ECN field of a received datagram (RFC 3168) */
enum qrdma_ecn {
	QRDMA_ECN_NOT_ECT	= 0,
	QRDMA_ECN_ECT1		= 1,
	QRDMA_ECN_ECT0		= 2,
	QRDMA_ECN_CE		= 3,
};

/**
 * struct qrdma_pnspace - one space
 * @next: next number to send; above QRDMA_PN_MAX: there is none left
 * @seen: numbers received
 * @largest: largest number received; valid if @seen is not empty
 * @largest_time: when it arrived
 * @eliciting: largest ack-eliciting number received plus one, 0: none
 * @deadline: when an ACK frame is due, QRDMA_NEVER: none is owed
 * @report_from: ranges that end below need not be reported any more, the peer knows them (RFC
 *	9000 s13.2.4)
 * @late: lowest number that came after a larger one since the last ACK frame, QRDMA_NEVER: none
 * @told: the same of those that ACK frames have told about already, and which the peer may not
 *	know of yet
 * @told_by: an ACK frame with a larger number than this one told about @told
 * @ack_delay: how long an ACK frame may be put off; 0 in the spaces of the handshake
 * @every: an ACK frame is due after that many ack-eliciting packets
 * @unacked: ack-eliciting packets since the last ACK frame
 * @news: something arrived since the last ACK frame (an ACK frame sent along anyway would tell
 *	something new)
 * @ect0: packets received with ECT(0)
 * @ect1: packets received with ECT(1)
 * @ce: packets received with CE
 * @duplicates: packets refused because their number was seen or is too old
 *
 * Found by: embedded in the connection. Dies by qrdma_pnspace_destroy(). Protected by: the caller.
 */
struct qrdma_pnspace {
	u64 next;
	struct qrdma_ranges seen;
	u64 largest;
	u64 largest_time;
	u64 eliciting;
	u64 deadline;
	u64 report_from;
	u64 late;
	u64 told;
	u64 told_by;
	u64 ack_delay;
	u32 every;
	u32 unacked;
	bool news;
	u64 ect0;
	u64 ect1;
	u64 ce;
	u64 duplicates;
};

/**
 * qrdma_pnspace_init() - make a space
 * @ps: the space
 * @first: first number to send
 * @ack_delay: our max_ack_delay as it is kept, ns; 0 in Initial and Handshake (RFC 9000 s13.2.1)
 */
void qrdma_pnspace_init(struct qrdma_pnspace *ps, u64 first, u64 ack_delay);

/** qrdma_pnspace_destroy() - free what it has; the object may have been zeroed only */
static inline void qrdma_pnspace_destroy(struct qrdma_pnspace *ps)
{
	qrdma_ranges_destroy(&ps->seen);
}

/** qrdma_pnspace_rest() - nothing moves for now: give memory back */
static inline void qrdma_pnspace_rest(struct qrdma_pnspace *ps)
{
	qrdma_ranges_rest(&ps->seen);
}

/**
 * qrdma_pnspace_take() - the next number to send
 * @ps: the space
 * @pn: the number
 *
 * A number taken is spent, whether the packet leaves or not: with it goes a nonce.
 *
 * Return: 0, -EOVERFLOW: all are used up; the keys must not be used any more (RFC 9000 s12.3,
 * field case F18).
 */
int qrdma_pnspace_take(struct qrdma_pnspace *ps, u64 *pn);

/**
 * qrdma_pnspace_seen() - was that packet received before, or is it too old to tell?
 * @ps: the space
 * @pn: its full number
 *
 * Asked before a packet is processed; does not count.
 */
static inline bool qrdma_pnspace_seen(const struct qrdma_pnspace *ps, u64 pn)
{
	return qrdma_ranges_contains(&ps->seen, pn);
}

/**
 * qrdma_pnspace_on_received() - a packet verified and all its frames were processed
 * @ps: the space
 * @pn: its full number
 * @eliciting: it holds an ack-eliciting frame
 * @ecn: enum qrdma_ecn of its datagram; other values count as QRDMA_ECN_NOT_ECT
 * @now: when it arrived, ns
 *
 * Sets the ACK deadline: at once when it is the second ack-eliciting packet, came out of order,
 * leaves a gap behind or bears a CE mark (RFC 9000 s13.2.1, s13.2.2); else after @ack_delay.
 *
 * Return: true; false: seen before or too old, counted, nothing else changed.
 */
bool qrdma_pnspace_on_received(struct qrdma_pnspace *ps, u64 pn, bool eliciting, u8 ecn, u64 now);

/** qrdma_pnspace_deadline() - when an ACK frame is due, ns; QRDMA_NEVER: none is owed */
static inline u64 qrdma_pnspace_deadline(const struct qrdma_pnspace *ps)
{
	return ps->deadline;
}

/** qrdma_pnspace_ack_due() - must an ACK frame be sent now? */
static inline bool qrdma_pnspace_ack_due(const struct qrdma_pnspace *ps, u64 now)
{
	return ps->deadline != QRDMA_NEVER && ps->deadline <= now;
}

/**
 * qrdma_pnspace_ack_useful() - would an ACK frame tell the peer something new?
 * @ps: the space
 *
 * Then it is sent along with other frames, although none is due.
 */
static inline bool qrdma_pnspace_ack_useful(const struct qrdma_pnspace *ps)
{
	return ps->news;
}

/**
 * qrdma_pnspace_build_ack() - what an ACK frame has to say
 * @ps: the space
 * @now: when the frame is built, ns
 * @exponent: our ack_delay_exponent, 0..20 (RFC 9000 s18.2)
 * @ack: filled for qrdma_ack_encode(): largest, delay, and ECN counts once there are any
 *	(RFC 9000 s13.4.1)
 * @range: the ranges, ascending; they lead into @ps and are valid until the next packet is noted
 *
 * Return: how many ranges, 0: nothing was received.
 */
u32 qrdma_pnspace_build_ack(const struct qrdma_pnspace *ps, u64 now, u32 exponent,
			    struct qrdma_ack *ack, const struct qrdma_range **range);

/**
 * qrdma_pnspace_ack_sent() - an ACK frame with the highest range is on its way
 * @ps: the space
 *
 * To be called when the packet is sure to be sent; a frame that was built and not sent is simply
 * not noted.
 */
void qrdma_pnspace_ack_sent(struct qrdma_pnspace *ps);

/**
 * qrdma_pnspace_ack_acked() - the peer has our ACK frame: it need not hear of those ranges again
 * (RFC 9000 s13.2.4)
 * @ps: the space
 * @largest: largest number that the frame acknowledged
 *
 * The numbers stay known as duplicates. The range that holds the largest number received is
 * always reported.
 */
void qrdma_pnspace_ack_acked(struct qrdma_pnspace *ps, u64 largest);

#endif /* QRDMA_CORE_PNSPACE_H */
