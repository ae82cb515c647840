/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Congestion control of one path: the window, the pacing rate, and the controllers behind one
 * table.
 *
 * Owns: window, threshold, recovery period, what is needed to undo a cut, the pacing bucket.
 * Bytes in flight are recovery.c's.
 * Called by: recovery.c (signals) and, through it, packer.c (window, pacing). Context: any, never
 * sleeps, allocates nothing. Lock: the caller serialises (the socket lock).
 *
 * Sources: RFC 9002 s7 and appendix B (NewReno), RFC 9438 (CUBIC). Windows are bytes, times are ns.
 */
#ifndef QRDMA_CORE_CONG_H
#define QRDMA_CORE_CONG_H

#include "env.h"

/** enum qrdma_cong_alg - congestion controllers; the values are QRDMA_CONG_* of the uapi header */
enum qrdma_cong_alg {
	QRDMA_CONG_ALG_CUBIC	= 0,
	QRDMA_CONG_ALG_NEWRENO	= 1,
	__QRDMA_CONG_ALG_MAX
};

/* bytes; more than the sent records of one connection can hold */
#define QRDMA_CWND_MAX		BIT(30)
#define QRDMA_MDS_MIN		512	/* bytes, smallest max datagram size that is believed */
#define QRDMA_MDS_MAX		65535

/**
 * struct qrdma_cong_state - what a controller changes and an undo brings back
 * @cwnd: congestion window, bytes
 * @ssthresh: slow start threshold, bytes; U64_MAX before the first congestion event
 * @acked: bytes acknowledged in congestion avoidance that did not make up a step yet
 * @cubic: CUBIC only (RFC 9438 s4.1.2)
 * @cubic.epoch: when this congestion avoidance stage began, ns
 * @cubic.limited_since: since when growth is held back by the application, QRDMA_NEVER if it is not
 * @cubic.w_max: window just before the last reduction, after fast convergence, bytes; 0: none
 * @cubic.prior: window just before the last reduction, bytes
 * @cubic.w_est: what Reno would have, bytes
 * @cubic.est_acked: fraction of @cubic.w_est, in bytes times window
 * @cubic.k: time from @cubic.epoch until the window is @cubic.w_max again, 1/1024 s
 * @cubic.started: @cubic.epoch, @cubic.k and @cubic.w_est are set
 */
struct qrdma_cong_state {
	u64 cwnd;
	u64 ssthresh;
	u64 acked;
	struct {
		u64 epoch;
		u64 limited_since;
		u64 w_max;
		u64 prior;
		u64 w_est;
		u64 est_acked;
		u64 k;
		bool started;
	} cubic;
};

struct qrdma_cong_ops;

/**
 * struct qrdma_cong - congestion control of one path
 * @ops: the controller
 * @s: its state
 * @undo: its state before the current congestion event
 * @undo_lost: packets declared lost in the current event and not seen since; @undo is taken back
 *	at 0
 * @undo_ok: @undo is valid
 * @cut: there was a congestion event on this path
 * @event: number of the current congestion event, goes with the packets lost in it
 * @recovery_start: time of it; packets sent up to then are in the recovery period (RFC 9002
 *	s7.3.2), if @cut
 * @mds: max datagram size, bytes
 * @granularity: timer granularity, ns
 * @rate_cap: upper bound of the pacing rate, bytes per second; 0: none. Set by the owner at any
 *	time
 * @tokens: pacing credit, bytes
 * @refilled: when @tokens was computed, ns
 * @pace_held: pacing held a packet back since the last acknowledgment
 * @events: congestion events so far
 * @undone: of these, taken back
 *
 * Found by: embedded in struct qrdma_recovery. Dies with it. Protected by: the caller.
 */
struct qrdma_cong {
	const struct qrdma_cong_ops *ops;
	struct qrdma_cong_state s;
	struct qrdma_cong_state undo;
	u32 undo_lost;
	bool undo_ok;
	bool cut;
	bool pace_held;
	u16 event;
	u64 recovery_start;
	u32 mds;
	u64 granularity;
	u64 rate_cap;
	u64 tokens;
	u64 refilled;
	u32 events;
	u32 undone;
};

/**
 * struct qrdma_cong_ack - what one ACK frame newly acknowledged
 * @now: ns
 * @srtt: smoothed RTT, ns
 * @bytes: in-flight bytes newly acknowledged that were sent after the recovery period (or outside
 *	of one)
 * @flight: bytes in flight after the last packet was sent, before this acknowledgment
 */
struct qrdma_cong_ack {
	u64 now;
	u64 srtt;
	u64 bytes;
	u64 flight;
};

/**
 * struct qrdma_cong_ops - one controller: a row of the table in cong.c
 * @name: for people
 * @reset: begin anew; window and threshold are set already
 * @acked: grow the window; not called while it is underused (RFC 9002 s7.8)
 * @limited: called instead of @acked while it is underused; NULL: nothing to do
 * @cut: a congestion event begins; @ce: by ECN marks, with @marks of @total packets marked.
 *	Return the new threshold, bytes; the window becomes that too, but not less than the minimum
 * @collapse: persistent congestion; the window has been set to the minimum; NULL: nothing to do
 *
 * None sleeps, allocates or looks beyond the struct qrdma_cong given to it.
 */
struct qrdma_cong_ops {
	const char *name;
	void (*reset)(struct qrdma_cong *c);
	void (*acked)(struct qrdma_cong *c, const struct qrdma_cong_ack *ack);
	void (*limited)(struct qrdma_cong *c, const struct qrdma_cong_ack *ack);
	u64 (*cut)(struct qrdma_cong *c, bool ce, u64 marks, u64 total);
	void (*collapse)(struct qrdma_cong *c);
};

/**
 * qrdma_cong_init() - begin in slow start with the initial window (RFC 9002 s7.2)
 * @c: the object
 * @alg: enum qrdma_cong_alg
 * @mds: max datagram size, bytes, QRDMA_MDS_MIN..QRDMA_MDS_MAX
 * @granularity: timer granularity, ns
 * @now: ns
 *
 * Return: 0, -EINVAL: no such controller, or @mds out of range.
 */
int qrdma_cong_init(struct qrdma_cong *c, u32 alg, u32 mds, u64 granularity, u64 now);

/**
 * qrdma_cong_reset() - a new path: back to the initial window, same controller (RFC 9000 s9.4)
 * @c: the object
 * @now: ns
 */
void qrdma_cong_reset(struct qrdma_cong *c, u64 now);

/**
 * qrdma_cong_set_mds() - the max datagram size changed (RFC 9002 s7.2)
 * @c: the object
 * @mds: bytes; pulled into QRDMA_MDS_MIN..QRDMA_MDS_MAX
 *
 * A window that is still the initial one follows; any other only keeps its minimum.
 */
void qrdma_cong_set_mds(struct qrdma_cong *c, u32 mds);

/**
 * qrdma_cong_in_recovery() - was a packet sent within the recovery period, or before it?
 * @c: the object
 * @sent_time: when it was sent, ns
 */
static inline bool qrdma_cong_in_recovery(const struct qrdma_cong *c, u64 sent_time)
{
	return c->cut && sent_time <= c->recovery_start;
}

/** qrdma_cong_window() - congestion window, bytes */
static inline u64 qrdma_cong_window(const struct qrdma_cong *c)
{
	return c->s.cwnd;
}

/**
 * qrdma_cong_on_acked() - packets were acknowledged
 * @c: the object
 * @ack: sums over the ACK frame
 */
void qrdma_cong_on_acked(struct qrdma_cong *c, const struct qrdma_cong_ack *ack);

/**
 * qrdma_cong_on_lost() - in-flight packets of this path were declared lost
 * @c: the object
 * @sent_time: when the newest of them was sent
 * @packets: how many
 * @now: ns
 *
 * Return: number of the congestion event that they belong to, to be kept with them for
 * qrdma_cong_on_spurious().
 */
u16 qrdma_cong_on_lost(struct qrdma_cong *c, u64 sent_time, u32 packets, u64 now);

/**
 * qrdma_cong_on_spurious() - a packet declared lost was acknowledged after all
 * @c: the object
 * @event: what qrdma_cong_on_lost() returned for it
 *
 * When all packets of the current event came back so, the event is undone (RFC 9438 s4.9.2).
 *
 * Return: true when this call undid it.
 */
bool qrdma_cong_on_spurious(struct qrdma_cong *c, u16 event);

/**
 * qrdma_cong_on_ecn() - the peer reports more CE marks (RFC 9002 s7.1)
 * @c: the object
 * @sent_time: when the largest packet acknowledged by that ACK frame was sent
 * @marks: new CE marks
 * @total: packets newly acknowledged by the frame
 * @now: ns
 */
void qrdma_cong_on_ecn(struct qrdma_cong *c, u64 sent_time, u64 marks, u64 total, u64 now);

/**
 * qrdma_cong_on_persistent() - persistent congestion (RFC 9002 s7.6): down to the minimum window
 * @c: the object
 *
 * Called after qrdma_cong_on_lost() for the same packets.
 */
void qrdma_cong_on_persistent(struct qrdma_cong *c);

/**
 * qrdma_cong_pace_rate() - the pacing rate (RFC 9002 s7.7)
 * @c: the object
 * @srtt: smoothed RTT, ns
 *
 * Twice the window per RTT in slow start, 5/4 of it later, at most @rate_cap.
 *
 * Return: bytes per second, at least 1.
 */
u64 qrdma_cong_pace_rate(const struct qrdma_cong *c, u64 srtt);

/**
 * qrdma_cong_pace_burst() - how many bytes may leave at once
 * @c: the object
 * @rate: what qrdma_cong_pace_rate() said
 *
 * The initial window, or what the rate yields in two ticks of the timer if that is more: a coarse
 * timer must not lower the rate.
 */
u64 qrdma_cong_pace_burst(const struct qrdma_cong *c, u64 rate);

/**
 * qrdma_cong_pace_at() - when may a packet leave?
 * @c: the object
 * @bytes: its size
 * @srtt: smoothed RTT, ns
 * @now: ns
 *
 * Packets with nothing but ACK frames and probes after a PTO are not asked about. A packet held
 * back is remembered: a window left unused for that reason still grows (RFC 9002 s7.8).
 *
 * Return: @now or earlier: at once; else the time, ns.
 */
u64 qrdma_cong_pace_at(struct qrdma_cong *c, u32 bytes, u64 srtt, u64 now);

/**
 * qrdma_cong_pace_sent() - an in-flight packet left
 * @c: the object
 * @bytes: its size
 * @srtt: smoothed RTT, ns
 * @now: ns
 */
void qrdma_cong_pace_sent(struct qrdma_cong *c, u32 bytes, u64 srtt, u64 now);

#endif /* QRDMA_CORE_CONG_H */
