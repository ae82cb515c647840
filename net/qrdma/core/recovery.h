/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Loss recovery of one connection: records of what was sent, the RTT, loss verdicts, the probe
 * timer.
 *
 * Owns: the sent records of all packet number spaces, the RTT estimate, bytes in flight, the
 * congestion controller of the current path, the peer's ECN counts.
 * Called by: packer.c (may a packet leave, it left), conn.c (an ACK frame came, time passed, keys
 * were dropped).
 * Context: any, never sleeps (GFP_ATOMIC). Lock: the caller serialises (the socket lock).
 *
 * Sources: RFC 9002 entire, RFC 9000 s13.4.2 (ECN). Times are ns; the caller's "now" never runs
 * backwards.
 *
 * What became of frames is handed back as two lists of records, each with the notes that packer.c
 * left in it. The lists and all records stay valid until the next call that is not const; the
 * owner walks them at once:
 *
 *	for (rec = res.acked; rec; rec = rec->next)
 *		for (i = 0; i < rec->nframes; i++)
 *			look at rec->frame[i]
 */
#ifndef QRDMA_CORE_RECOVERY_H
#define QRDMA_CORE_RECOVERY_H

#include "env.h"
#include "cong.h"
#include "ecn.h"
#include "frame.h"
#include "pnspace.h"
#include "rtt.h"
#include "sent.h"

/* kPacketThreshold (RFC 9002 s6.1.1), the value at the start */
#define QRDMA_PACKET_THRESHOLD		3
/* and how far reordering that was seen may raise it */
#define QRDMA_PACKET_THRESHOLD_MAX	64
/* kPersistentCongestionThreshold (RFC 9002 s7.6.1) */
#define QRDMA_PERSISTENT_PTOS		3
/* kGranularity where the owner names none */
#define QRDMA_GRANULARITY		(100ULL * NSEC_PER_USEC)
/* longest probe time-out that the backoff reaches */
#define QRDMA_PTO_MAX			(60ULL * NSEC_PER_SEC)
#define QRDMA_PROBES			2	/* datagrams per PTO (RFC 9002 s6.2.4) */
/* a lost packet's record is kept for that long after it was sent */
#define QRDMA_LOST_KEEP_PTOS		4
/* numbers on record from which on ACK-only packets are not recorded */
#define QRDMA_RECORD_ACKS		256
/* gaps in our own numbers that are remembered, per space */
#define QRDMA_SKIPS			4

/** enum qrdma_send_verdict - may a packet leave? */
enum qrdma_send_verdict {
	QRDMA_SEND_OK,
	QRDMA_SEND_WINDOW,	/* window full: an ACK or the deadline changes that */
	QRDMA_SEND_PACED,	/* not before the time given */
	QRDMA_SEND_RECORDS,	/* QRDMA_SENT_MAX numbers are on record: as for WINDOW */
	QRDMA_SEND_NOMEM,	/* no memory for its record: try later */
};

/**
 * struct qrdma_recovery_space - one packet number space
 * @ring: records
 * @scan: loss detection has settled everything below
 * @largest_acked: valid if @acked_any
 * @acked_any: the peer acknowledged something
 * @dropped: the keys are gone, nothing is sent or acknowledged here any more
 * @loss_time: when the next packet is lost by time, QRDMA_NEVER: none waits
 * @last_sent: when the last in-flight packet was sent
 * @newest_acked: latest send time of an acknowledged packet, valid if @acked_any
 * @out: in-flight packets without a verdict
 * @run_first: first packet of the current run of lost ack-eliciting packets (persistent congestion)
 * @run_last: last one
 * @run_since: when @run_first was sent
 * @run: there is such a run
 * @nskips: entries of @skip in use
 * @skip: numbers that were never sent, newest first
 */
struct qrdma_recovery_space {
	struct qrdma_sent_ring ring;
	u64 scan;
	u64 largest_acked;
	bool acked_any;
	bool dropped;
	bool run;
	u8 nskips;
	u64 loss_time;
	u64 last_sent;
	u64 newest_acked;
	u32 out;
	u64 run_first;
	u64 run_last;
	u64 run_since;
	struct qrdma_range skip[QRDMA_SKIPS];
};

/**
 * struct qrdma_recovery_stats - counters, and with qrdma_recovery_stats() the estimates too
 * @sent: packets
 * @acked: packets, ACK-only ones included as far as they were still on record
 * @lost: packets declared lost (ack-eliciting or in flight)
 * @spurious: of these, acknowledged later
 * @bytes_sent: of all packets
 * @bytes_acked: of in-flight packets
 * @bytes_lost: of in-flight packets
 * @ptos: probe time-outs
 * @persistent: times that persistent congestion was established
 * @refused: packets refused because QRDMA_SENT_MAX numbers were on record
 * @nomem: packets refused because there was no memory
 * @forgotten: records of lost packets given up early to make room
 * @ce: CE marks reported by the peer
 * @pto_count: consecutive PTOs now
 * @packet_threshold: reordering threshold now, packets
 * @srtt: ns, as the following
 * @rttvar: mean deviation
 * @min_rtt: least
 * @latest_rtt: last sample
 * @slowest_loop: floor of the time threshold
 * @cwnd: congestion window, bytes
 * @ssthresh: slow start threshold, bytes
 * @in_flight: bytes
 * @cong_events: congestion events
 * @cong_undone: of these, undone
 */
struct qrdma_recovery_stats {
	u64 sent;
	u64 acked;
	u64 lost;
	u64 spurious;
	u64 bytes_sent;
	u64 bytes_acked;
	u64 bytes_lost;
	u64 ptos;
	u64 persistent;
	u64 refused;
	u64 nomem;
	u64 forgotten;
	u64 ce;
	u32 pto_count;
	u32 packet_threshold;
	u64 srtt;
	u64 rttvar;
	u64 min_rtt;
	u64 latest_rtt;
	u64 slowest_loop;
	u64 cwnd;
	u64 ssthresh;
	u64 in_flight;
	u32 cong_events;
	u32 cong_undone;
};

/**
 * struct qrdma_recovery - loss recovery of one connection
 * @app: the space of 1-RTT packets, which is always there
 * @space: by enum qrdma_space; NULL: out of band, or dropped
 * @rtt: of the current path
 * @cong: of the current path
 * @in_flight: bytes in flight on the current path
 * @flight_at_send: what that was when the last packet left
 * @path: number of the current path, goes into the records
 * @pto_count: consecutive PTOs
 * @packet_threshold: kPacketThreshold, raised by reordering
 * @max_ack_delay: the peer's, ns; the owner may set it at any time
 * @anchor: from when the timer runs that keeps a client's handshake alive (RFC 9002 s6.2.2.1)
 * @is_server: role
 * @confirmed: owner sets it when the handshake is confirmed (RFC 9001 s4.1.2); out of band: at once
 * @handshake_keys: owner sets it when there are Handshake keys to send with
 * @peer_validated: the peer surely validated our address
 * @blocked: owner sets it while the anti-amplification limit forbids sending (field case F05)
 * @kicked: probes are due now, whatever the timer says
 * @one_more: a congestion event just began: one packet may leave over the window (RFC 9002 s7.3.2)
 * @clock: the latest "now"
 * @ecn: ECN of the current path
 * @stats: counters; the estimates in it are filled by qrdma_recovery_stats() only
 *
 * Found by: embedded in the connection. Dies by qrdma_recovery_destroy(). Protected by: the caller.
 */
struct qrdma_recovery {
	struct qrdma_recovery_space app;
	struct qrdma_recovery_space *space[QRDMA_SPACES];
	struct qrdma_rtt rtt;
	struct qrdma_cong cong;
	u64 in_flight;
	u64 flight_at_send;
	u16 path;
	u32 pto_count;
	u32 packet_threshold;
	u64 max_ack_delay;
	u64 anchor;
	bool is_server;
	bool confirmed;
	bool handshake_keys;
	bool peer_validated;
	bool blocked;
	bool kicked;
	bool one_more;
	u64 clock;
	struct qrdma_ecn_path ecn;
	struct qrdma_recovery_stats stats;
};

/**
 * struct qrdma_recovery_config - what recovery is made from
 * @is_server: role
 * @confirmed: the handshake is confirmed already (out of band)
 * @alg: enum qrdma_cong_alg
 * @mds: max datagram size, bytes
 * @granularity: timer granularity, ns; 0: QRDMA_GRANULARITY
 * @initial_rtt: ns; 0: QRDMA_INITIAL_RTT
 * @max_ack_delay: the peer's, ns
 */
struct qrdma_recovery_config {
	bool is_server;
	bool confirmed;
	u32 alg;
	u32 mds;
	u64 granularity;
	u64 initial_rtt;
	u64 max_ack_delay;
};

/**
 * struct qrdma_recovery_result - what an ACK frame or a time-out brought
 * @acked: newly acknowledged packets, largest number first; one that had been declared lost before
 *	is among them with state QRDMA_SENT_LOST, the others have QRDMA_SENT_ACKED
 * @lost: packets newly declared lost, smallest number first; their frames want sending again
 * @probes: datagrams that must be sent in @probe_space, each ack-eliciting, window and pacing not
 *	asked; 0: none
 * @probe_space: enum qrdma_space
 * @sampled: the RTT estimate was updated
 * @spurious: packets among @acked that had been declared lost
 * @persistent: persistent congestion was established
 */
struct qrdma_recovery_result {
	struct qrdma_sent *acked;
	struct qrdma_sent *lost;
	u8 probes;
	u8 probe_space;
	bool sampled;
	bool persistent;
	u32 spurious;
};

/**
 * struct qrdma_sent_packet - a packet about to leave
 * @pn: its number
 * @size: bytes, AEAD tag included
 * @flags: QRDMA_SENT_*
 * @nframes: notes in @frame, at most QRDMA_SENT_FRAMES
 * @frame: the notes
 */
struct qrdma_sent_packet {
	u64 pn;
	u16 size;
	u8 flags;
	u8 nframes;
	struct qrdma_sent_frame frame[QRDMA_SENT_FRAMES];
};

/**
 * qrdma_recovery_init() - begin
 * @r: the object
 * @cfg: what it is made from
 * @now: ns
 *
 * Return: 0, -EINVAL: unknown controller or bad @mds; -ENOMEM: for the spaces of a handshake.
 */
int qrdma_recovery_init(struct qrdma_recovery *r, const struct qrdma_recovery_config *cfg, u64 now);

/** qrdma_recovery_destroy() - free all records; the object may have been zeroed only */
void qrdma_recovery_destroy(struct qrdma_recovery *r);

/**
 * qrdma_recovery_reserve() - see to it that a packet can be recorded
 * @r: the object
 * @space: enum qrdma_space
 * @pn: its number, larger than all before
 *
 * Asked before the number is spent, for every packet, probes and ACK-only ones too:
 * qrdma_recovery_on_sent() cannot fail after it. Numbers left out since the last packet are taken
 * as never sent (RFC 9000 s21.4, field case F66).
 *
 * Return: QRDMA_SEND_OK, QRDMA_SEND_RECORDS or QRDMA_SEND_NOMEM.
 */
enum qrdma_send_verdict qrdma_recovery_reserve(struct qrdma_recovery *r, u8 space, u64 pn);

/**
 * qrdma_recovery_crowded() - are so many packets on record that ACK-only ones should not be?
 * @r: the object
 * @space: enum qrdma_space
 *
 * A peer that acknowledges nothing and asks for many ACK frames would otherwise make us keep a
 * record of each (field case F65). Such a packet leaves by qrdma_recovery_pass().
 */
static inline bool qrdma_recovery_crowded(const struct qrdma_recovery *r, u8 space)
{
	const struct qrdma_recovery_space *sp = r->space[space];

	return sp && sp->ring.next - sp->ring.base >= QRDMA_RECORD_ACKS;
}

/**
 * qrdma_recovery_pass() - an ACK-only packet leaves without a record
 * @r: the object
 * @space: enum qrdma_space
 * @pn: its number, larger than all before
 * @now: ns
 *
 * In place of qrdma_recovery_reserve() and, but for the size, of qrdma_recovery_on_sent().
 *
 * Return: as qrdma_recovery_reserve().
 */
enum qrdma_send_verdict qrdma_recovery_pass(struct qrdma_recovery *r, u8 space, u64 pn, u64 now);

/**
 * qrdma_recovery_may_send() - do window and pacing let an in-flight packet out?
 * @r: the object
 * @bytes: its size
 * @now: ns
 * @at: set with QRDMA_SEND_PACED: the time to try again
 *
 * Not asked for ACK-only packets and for probes after a PTO (RFC 9002 s7, s7.5).
 *
 * Return: QRDMA_SEND_OK, QRDMA_SEND_WINDOW or QRDMA_SEND_PACED.
 */
enum qrdma_send_verdict qrdma_recovery_may_send(struct qrdma_recovery *r, u32 bytes, u64 now,
						u64 *at);

/**
 * qrdma_recovery_room() - bytes that the window has left, 0: none
 * @r: the object
 */
static inline u64 qrdma_recovery_room(const struct qrdma_recovery *r)
{
	u64 cwnd = qrdma_cong_window(&r->cong);

	return cwnd > r->in_flight ? cwnd - r->in_flight : 0;
}

/**
 * qrdma_recovery_on_sent() - a packet leaves
 * @r: the object
 * @space: enum qrdma_space
 * @pkt: the packet; its number was reserved
 * @now: ns
 */
void qrdma_recovery_on_sent(struct qrdma_recovery *r, u8 space,
			    const struct qrdma_sent_packet *pkt, u64 now);

/**
 * qrdma_recovery_on_ack() - an ACK frame came
 * @r: the object
 * @space: space of the packet that it came in
 * @ack: the decoded frame
 * @ack_delay: its ACK Delay in ns, decoded with the peer's exponent; any value
 * @now: ns
 * @res: what it brought
 *
 * The frame is checked as a whole before anything is changed.
 *
 * Return: 0; -EPROTO: it acknowledges a packet that was never sent: PROTOCOL_VIOLATION (RFC 9000
 * s13.1).
 */
int qrdma_recovery_on_ack(struct qrdma_recovery *r, u8 space, const struct qrdma_ack *ack,
			  u64 ack_delay, u64 now, struct qrdma_recovery_result *res);

/**
 * qrdma_recovery_deadline() - when qrdma_recovery_on_timeout() wants to be called
 * @r: the object
 *
 * Return: ns, may lie in the past; QRDMA_NEVER: no timer runs.
 */
u64 qrdma_recovery_deadline(const struct qrdma_recovery *r);

/**
 * qrdma_recovery_on_timeout() - the deadline passed (RFC 9002 A.9)
 * @r: the object
 * @now: ns; before the deadline nothing happens
 * @res: what it brought: lost packets, or probes to be sent
 */
void qrdma_recovery_on_timeout(struct qrdma_recovery *r, u64 now,
			       struct qrdma_recovery_result *res);

/**
 * qrdma_recovery_kick() - make probes due at once, without backing off: the lane was dead and is
 * back, or the path moved
 * @r: the object
 *
 * Does nothing when nothing is in flight. The deadline is 0 until qrdma_recovery_on_timeout() is
 * called.
 */
void qrdma_recovery_kick(struct qrdma_recovery *r);

/** qrdma_recovery_hs_out() - is a packet of the handshake on its way? */
static inline bool qrdma_recovery_hs_out(const struct qrdma_recovery *r)
{
	u32 i;

	for (i = 0; i < QRDMA_SPACE_APP; i++) {
		if (r->space[i] && r->space[i]->out)
			return true;
	}
	return false;
}

/**
 * qrdma_recovery_oldest() - oldest ack-eliciting packet without a verdict: what a probe may repeat
 * @r: the object
 * @space: enum qrdma_space
 * @from: smallest number to look at; 0 for the first, pn + 1 for the next
 *
 * Return: the record, NULL: none.
 */
const struct qrdma_sent *qrdma_recovery_oldest(const struct qrdma_recovery *r, u8 space, u64 from);

/**
 * qrdma_recovery_drop_space() - the keys of a space are gone (RFC 9002 s6.4)
 * @r: the object
 * @space: enum qrdma_space
 * @now: ns
 *
 * Its packets leave the flight without a verdict; no notes are handed back.
 */
void qrdma_recovery_drop_space(struct qrdma_recovery *r, u8 space, u64 now);

/**
 * qrdma_recovery_requeue() - all packets of a space count as not sent: after a Retry, or when
 * 0-RTT was rejected
 * @r: the object
 * @space: enum qrdma_space
 * @now: ns
 * @res: they are in @lost
 *
 * No loss is counted and the window is left alone (RFC 9002 s6.3, s6.4). An ACK of them changes
 * nothing.
 */
void qrdma_recovery_requeue(struct qrdma_recovery *r, u8 space, u64 now,
			    struct qrdma_recovery_result *res);

/**
 * qrdma_recovery_new_path() - packets go another way from now on (RFC 9000 s9.4)
 * @r: the object
 * @initial_rtt: ns; 0: QRDMA_INITIAL_RTT
 * @mds: max datagram size of the path, bytes
 * @now: ns
 *
 * RTT, window and ECN state begin anew. What is on its way by the old path keeps its record, is
 * acknowledged or lost as ever, and counts neither in the flight nor in the estimates.
 */
void qrdma_recovery_new_path(struct qrdma_recovery *r, u64 initial_rtt, u32 mds, u64 now);

/** qrdma_recovery_set_mds() - the max datagram size of the path changed, bytes */
static inline void qrdma_recovery_set_mds(struct qrdma_recovery *r, u32 mds)
{
	qrdma_cong_set_mds(&r->cong, mds);
}

/**
 * qrdma_recovery_pto() - the probe time-out without backoff, ns (RFC 9002 s6.2.1)
 * @r: the object
 * @space: with the peer's max_ack_delay in QRDMA_SPACE_APP
 *
 * Closing, draining and path validation are measured in it too (RFC 9000 s8.2.4, s10.2).
 */
u64 qrdma_recovery_pto(const struct qrdma_recovery *r, u8 space);

/**
 * qrdma_recovery_largest_acked() - for the length of packet numbers (RFC 9000 A.2)
 * @r: the object
 * @space: enum qrdma_space
 * @pn: the largest acknowledged
 *
 * Return: false: nothing was acknowledged.
 */
static inline bool qrdma_recovery_largest_acked(const struct qrdma_recovery *r, u8 space, u64 *pn)
{
	const struct qrdma_recovery_space *sp = r->space[space];

	if (!sp)
		return false;
	*pn = sp->largest_acked;
	return sp->acked_any;
}

/**
 * qrdma_recovery_shrink() - the connection is idle: give back what memory can be
 * @r: the object
 * @now: ns
 *
 * That is all of each space with nothing on record.
 */
void qrdma_recovery_shrink(struct qrdma_recovery *r, u64 now);

/** qrdma_recovery_stats() - counters and estimates for QRDMA_INFO */
void qrdma_recovery_stats(const struct qrdma_recovery *r, struct qrdma_recovery_stats *stats);

#endif /* QRDMA_CORE_RECOVERY_H */
