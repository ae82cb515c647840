// SPDX-License-Identifier: GPL-2.0
/*
 * Loss recovery: sent records, loss verdicts, probe timer, persistent congestion.
 *
 * Owns: struct qrdma_recovery. Called by: conn.c and packer.c in any context, serialised by the
 * caller (the socket lock); has no clock, never sleeps.
 *
 * Where this goes beyond RFC 9002:
 *  - time threshold and PTO are floored by the slowest loop from sending to the processed ACK that
 *    was seen lately, so that a stalled CPU is not taken for loss (field case F01);
 *  - a lost packet stays on record for some time; when it is acknowledged after all, the packet
 *    threshold rises to the reordering seen, and the controller may take back its cut;
 *  - whatever is in flight arms the PTO, whether its frames are sent again or not (F06);
 *  - ACK-only packets are on record only as long as an older packet is, and never hold the ring.
 */
#include "recovery.h"

#define RECOVERY_SHIFT_MAX	32	/* doublings of the PTO that are worth counting */

/* The first space that there is from number @i on, which is set to its own; NULL: there is none. */
static struct qrdma_recovery_space *recovery_space_from(const struct qrdma_recovery *r, u32 *i)
{
	for (; *i < QRDMA_SPACES; (*i)++) {
		if (r->space[*i])
			return r->space[*i];
	}
	return NULL;
}

int qrdma_recovery_init(struct qrdma_recovery *r, const struct qrdma_recovery_config *cfg, u64 now)
{
	u64 granularity = cfg->granularity ? cfg->granularity : QRDMA_GRANULARITY;
	struct qrdma_recovery_space *sp;
	u32 i;
	int err;

	memset(r, 0, sizeof(*r));
	err = qrdma_cong_init(&r->cong, cfg->alg, cfg->mds, granularity, now);
	if (err)
		return err;
	r->space[QRDMA_SPACE_APP] = &r->app;
	for (i = 0; i < QRDMA_SPACE_APP && !cfg->confirmed; i++) {
		r->space[i] = kzalloc(sizeof(*r->space[i]), GFP_ATOMIC);
		if (!r->space[i]) {
			qrdma_recovery_destroy(r);
			return -ENOMEM;
		}
	}
	for (i = 0; (sp = recovery_space_from(r, &i)); i++) {
		qrdma_sent_ring_init(&sp->ring);
		sp->loss_time = QRDMA_NEVER;
	}
	qrdma_rtt_init(&r->rtt, cfg->initial_rtt, granularity, now);
	r->packet_threshold = QRDMA_PACKET_THRESHOLD;
	r->max_ack_delay = cfg->max_ack_delay;
	r->is_server = cfg->is_server;
	r->confirmed = cfg->confirmed;
	r->peer_validated = cfg->is_server;
	r->anchor = now;
	r->clock = now;
	return 0;
}

/* A space of the handshake is over. */
static void recovery_free_space(struct qrdma_recovery *r, u32 i)
{
	if (i == QRDMA_SPACE_APP)
		return;
	kfree(r->space[i]);
	r->space[i] = NULL;
}

void qrdma_recovery_destroy(struct qrdma_recovery *r)
{
	struct qrdma_recovery_space *sp;
	u32 i;

	for (i = 0; (sp = recovery_space_from(r, &i)); i++) {
		qrdma_sent_ring_clear(&sp->ring);
		recovery_free_space(r, i);
	}
}

/* Time-outs and thresholds */

u64 qrdma_recovery_pto(const struct qrdma_recovery *r, u8 space)
{
	return qrdma_rtt_pto(&r->rtt) + (space == QRDMA_SPACE_APP ? r->max_ack_delay : 0);
}

/* How long the timer waits at first: the PTO, or what a slow loop takes if that is more. */
static u64 recovery_patience(const struct qrdma_recovery *r, u8 space)
{
	u64 floor = qrdma_rtt_floor(&r->rtt, qrdma_recovery_pto(r, QRDMA_SPACE_APP));
	u64 wait = max(qrdma_rtt_pto(&r->rtt), floor);

	return space == QRDMA_SPACE_APP ? wait + r->max_ack_delay : wait;
}

/* The PTO with its backoff; what is longer than QRDMA_PTO_MAX to begin with is not made longer. */
static u64 recovery_backoff(const struct qrdma_recovery *r, u64 pto)
{
	u32 i;

	for (i = 0; i < r->pto_count && pto < QRDMA_PTO_MAX; i++)
		pto = min_t(u64, 2 * pto, QRDMA_PTO_MAX);
	return pto;
}

/* RFC 9002 s7.6.1; the max_ack_delay counts in every space */
static u64 recovery_persistent_time(const struct qrdma_recovery *r)
{
	return QRDMA_PERSISTENT_PTOS * qrdma_recovery_pto(r, QRDMA_SPACE_APP);
}

/* The clock of the caller never runs backwards; should it, time stands still here. */
static void recovery_tick(struct qrdma_recovery *r, u64 now)
{
	r->clock = max(r->clock, now);
}

/* Records */

static bool recovery_current(const struct qrdma_recovery *r, const struct qrdma_sent *rec)
{
	return rec->path == r->path;
}

/* Does the record keep the ring from moving on? */
static bool recovery_holds(const struct qrdma_recovery *r, const struct qrdma_sent *rec)
{
	u64 keep = QRDMA_LOST_KEEP_PTOS * qrdma_recovery_pto(r, QRDMA_SPACE_APP);

	if (rec->state == QRDMA_SENT_LOST)
		return r->clock < rec->time + keep;
	return rec->flags & QRDMA_SENT_IN_FLIGHT;
}

/* Give up what need not be on record any more; @force: lost packets too, all at the lower end. */
static void recovery_reap(struct qrdma_recovery *r, struct qrdma_recovery_space *sp, bool force)
{
	struct qrdma_sent *rec;

	while ((rec = qrdma_sent_ring_up(&sp->ring, sp->ring.base, U64_MAX))) {
		bool lost = rec->state == QRDMA_SENT_LOST;

		if (recovery_holds(r, rec)) {
			if (!force || !lost)
				break;
			r->stats.forgotten++;
		}
		qrdma_sent_ring_settle(&sp->ring, rec);
	}
	qrdma_sent_ring_trim(&sp->ring);
}

/* An in-flight packet got its verdict. */
static void recovery_land(struct qrdma_recovery *r, struct qrdma_recovery_space *sp,
			  const struct qrdma_sent *rec)
{
	if (!(rec->flags & QRDMA_SENT_IN_FLIGHT))
		return;
	sp->out--;
	if (recovery_current(r, rec))
		r->in_flight -= min_t(u64, rec->size, r->in_flight);
}

static bool recovery_nothing_out(const struct qrdma_recovery *r)
{
	const struct qrdma_recovery_space *sp;
	u32 i;

	for (i = 0; (sp = recovery_space_from(r, &i)); i++) {
		if (sp->out)
			return false;
	}
	return true;
}

/* Sending */

static enum qrdma_send_verdict recovery_verdict(struct qrdma_recovery *r, int err)
{
	switch (err) {
	case 0:
		return QRDMA_SEND_OK;
	case -ENOMEM:
		r->stats.nomem++;
		return QRDMA_SEND_NOMEM;
	default:
		WARN_ON_ONCE(err != -ENOBUFS);
		r->stats.refused++;
		return QRDMA_SEND_RECORDS;
	}
}

enum qrdma_send_verdict qrdma_recovery_reserve(struct qrdma_recovery *r, u8 space, u64 pn)
{
	struct qrdma_recovery_space *sp = r->space[space];
	int err;

	if (WARN_ON_ONCE(!sp || sp->dropped))
		return QRDMA_SEND_RECORDS;
	recovery_reap(r, sp, false);
	err = qrdma_sent_ring_reserve(&sp->ring, pn);
	if (err == -ENOBUFS) {
		recovery_reap(r, sp, true);
		err = qrdma_sent_ring_reserve(&sp->ring, pn);
	}
	return recovery_verdict(r, err);
}

enum qrdma_send_verdict qrdma_recovery_may_send(struct qrdma_recovery *r, u32 bytes, u64 now,
						u64 *at)
{
	if (r->in_flight + bytes > qrdma_cong_window(&r->cong) && !r->one_more)
		return QRDMA_SEND_WINDOW;
	*at = qrdma_cong_pace_at(&r->cong, bytes, r->rtt.smoothed, now);
	return *at > now ? QRDMA_SEND_PACED : QRDMA_SEND_OK;
}

/* Remember numbers that were left out. */
static void recovery_skip(struct qrdma_recovery_space *sp, u64 lo, u64 hi)
{
	memmove(&sp->skip[1], &sp->skip[0], (QRDMA_SKIPS - 1) * sizeof(sp->skip[0]));
	sp->skip[0].lo = lo;
	sp->skip[0].hi = hi;
	sp->nskips = min(sp->nskips + 1, QRDMA_SKIPS);
}

enum qrdma_send_verdict qrdma_recovery_pass(struct qrdma_recovery *r, u8 space, u64 pn, u64 now)
{
	struct qrdma_recovery_space *sp = r->space[space];
	u64 expected;
	int err;

	if (WARN_ON_ONCE(!sp))
		return QRDMA_SEND_RECORDS;
	expected = sp->ring.next;
	recovery_reap(r, sp, false);
	err = qrdma_sent_ring_pass(&sp->ring, pn);
	if (err)
		return recovery_verdict(r, err);
	if (pn > expected)
		recovery_skip(sp, expected, pn - 1);
	recovery_tick(r, now);
	r->stats.sent++;
	return QRDMA_SEND_OK;
}

void qrdma_recovery_on_sent(struct qrdma_recovery *r, u8 space,
			    const struct qrdma_sent_packet *pkt, u64 now)
{
	struct qrdma_recovery_space *sp = r->space[space];
	struct qrdma_sent *rec;
	u64 expected;

	if (WARN_ON_ONCE(!sp))
		return;
	expected = sp->ring.next;
	rec = qrdma_sent_ring_push(&sp->ring, pkt->pn);
	if (!rec)
		return;
	if (pkt->pn > expected)
		recovery_skip(sp, expected, pkt->pn - 1);

	recovery_tick(r, now);
	rec->time = r->clock;
	rec->size = pkt->size;
	rec->path = r->path;
	rec->flags = pkt->flags;
	if (rec->flags & QRDMA_SENT_ELICITING)
		rec->flags |= QRDMA_SENT_IN_FLIGHT;
	rec->nframes = min_t(u32, pkt->nframes, QRDMA_SENT_FRAMES);
	memcpy(rec->frame, pkt->frame, rec->nframes * sizeof(rec->frame[0]));

	r->stats.sent++;
	r->stats.bytes_sent += rec->size;
	if (rec->flags & QRDMA_SENT_ECT)
		qrdma_ecn_on_sent(&r->ecn, space);
	if (!(rec->flags & QRDMA_SENT_IN_FLIGHT))
		return;

	sp->out++;
	sp->last_sent = r->clock;
	r->anchor = r->clock;
	r->one_more = false;
	r->in_flight += rec->size;
	r->flight_at_send = r->in_flight;
	qrdma_cong_pace_sent(&r->cong, rec->size, r->rtt.smoothed, now);
}

/* Loss */

/* Numbers between @pn and @largest that were never sent do not count as packets (RFC 9002 A.10). */
static u64 recovery_distance(const struct qrdma_recovery_space *sp, u64 pn, u64 largest)
{
	u64 distance = largest - pn;
	u32 i;

	for (i = 0; i < sp->nskips; i++)
		if (sp->skip[i].lo > pn && sp->skip[i].hi < largest)
			distance -= sp->skip[i].hi - sp->skip[i].lo + 1;
	return distance;
}

/* Was anything sent after @since and before @until acknowledged in another space? */
static bool recovery_acked_elsewhere(const struct qrdma_recovery *r,
				     const struct qrdma_recovery_space *sp, u64 since, u64 until)
{
	const struct qrdma_recovery_space *other;
	u32 i;

	for (i = 0; (other = recovery_space_from(r, &i)); i++) {
		if (other != sp && other->acked_any && other->newest_acked > since &&
		    other->newest_acked < until)
			return true;
	}
	return false;
}

/* May the run of lost packets go on up to @rec: was nothing between acknowledged? */
static bool recovery_run_goes_on(const struct qrdma_recovery *r,
				 const struct qrdma_recovery_space *sp,
				 const struct qrdma_sent *rec)
{
	const struct qrdma_sent *between;
	u64 pn;

	if (!sp->run || sp->run_last < sp->ring.base ||
	    recovery_acked_elsewhere(r, sp, sp->run_since, rec->time))
		return false;
	/* each number is looked at once: the next walk begins where this one ends */
	for (pn = sp->run_last + 1; pn < rec->pn; pn++) {
		between = qrdma_sent_ring_find(&sp->ring, pn);
		if (between && between->state == QRDMA_SENT_ACKED)
			return false;
	}
	return true;
}

/* An ack-eliciting packet was lost (RFC 9002 s7.6.2).
 * Return: true when that makes persistent congestion.
 */
static bool recovery_run(struct qrdma_recovery *r, struct qrdma_recovery_space *sp,
			 const struct qrdma_sent *rec)
{
	if (!r->rtt.sampled || rec->time <= r->rtt.first)
		return false;
	if (!recovery_run_goes_on(r, sp, rec)) {
		sp->run = true;
		sp->run_first = rec->pn;
		sp->run_since = rec->time;
	}
	sp->run_last = rec->pn;
	if (rec->time - sp->run_since <= recovery_persistent_time(r))
		return false;
	sp->run = false;
	return true;
}

/**
 * struct recovery_loss - what one round of loss detection found
 * @packets: lost packets that congestion may have dropped
 * @newest: when the newest of them was sent
 * @persistent: persistent congestion
 */
struct recovery_loss {
	u32 packets;
	u64 newest;
	bool persistent;
};

static void recovery_lose(struct qrdma_recovery *r, struct qrdma_recovery_space *sp,
			  struct qrdma_sent *rec, struct recovery_loss *loss)
{
	rec->state = QRDMA_SENT_LOST;
	r->stats.lost++;
	r->stats.bytes_lost += rec->size;
	recovery_land(r, sp, rec);
	if (!recovery_current(r, rec))
		return;
	if (rec->flags & QRDMA_SENT_ECT)
		qrdma_ecn_on_lost(&r->ecn);
	if (rec->flags & QRDMA_SENT_MTU_PROBE)
		return;
	loss->packets++;
	loss->newest = rec->time;
	if (rec->flags & QRDMA_SENT_ELICITING && recovery_run(r, sp, rec))
		loss->persistent = true;
}

static void recovery_tell_lost(struct qrdma_recovery *r, struct qrdma_sent *first,
			       const struct recovery_loss *loss, struct qrdma_recovery_result *res)
{
	u32 events = r->cong.events;
	struct qrdma_sent *rec;
	u16 event;

	if (!loss->packets)
		return;
	event = qrdma_cong_on_lost(&r->cong, loss->newest, loss->packets, r->clock);
	for (rec = first; rec; rec = rec->next)
		rec->event = event;
	if (r->cong.events != events)
		r->one_more = true;
	if (!loss->persistent)
		return;
	qrdma_cong_on_persistent(&r->cong);
	qrdma_rtt_renew(&r->rtt);
	r->stats.persistent++;
	res->persistent = true;
}

/* RFC 9002 A.10. Send times rise with the numbers, so what is lost is a run from the oldest open
 * packet on, and the first one that is not tells when the next will be.
 */
static void recovery_detect(struct qrdma_recovery *r, struct qrdma_recovery_space *sp,
			    struct qrdma_recovery_result *res)
{
	u64 delay = qrdma_rtt_loss_delay(&r->rtt, qrdma_recovery_pto(r, QRDMA_SPACE_APP));
	struct qrdma_sent **tail = &res->lost;
	struct recovery_loss loss = {};
	struct qrdma_sent *rec;

	sp->loss_time = QRDMA_NEVER;
	while (sp->acked_any && sp->scan < sp->largest_acked) {
		rec = qrdma_sent_ring_up(&sp->ring, sp->scan, sp->largest_acked - 1);
		if (!rec) {
			sp->scan = sp->largest_acked;
			break;
		}
		sp->scan = rec->pn;
		if (rec->state == QRDMA_SENT_OUT && rec->flags & QRDMA_SENT_IN_FLIGHT) {
			if (r->clock < rec->time + delay &&
			    recovery_distance(sp, rec->pn, sp->largest_acked) <
			    r->packet_threshold) {
				sp->loss_time = rec->time + delay;
				break;
			}
			recovery_lose(r, sp, rec, &loss);
			rec->next = NULL;
			*tail = rec;
			tail = &rec->next;
		}
		sp->scan++;
	}
	recovery_tell_lost(r, res->lost, &loss, res);
}

/* Acknowledgment */

/**
 * struct recovery_acked - sums over one ACK frame
 * @tail: end of the list of newly acknowledged packets
 * @packets: how many
 * @ect: of these, marked on the current path
 * @eliciting: one was ack-eliciting
 * @any_before: the space had a largest acknowledged number before
 * @before: that number
 */
struct recovery_acked {
	struct qrdma_sent **tail;
	u32 packets;
	u32 ect;
	bool eliciting;
	bool any_before;
	u64 before;
};

/* Is the frame about packets that were sent, as far as that is remembered (RFC 9000 s13.1, F66)? */
static bool recovery_ack_valid(const struct qrdma_recovery_space *sp, const struct qrdma_ack *ack)
{
	struct qrdma_ack_iter it;
	struct qrdma_range range;
	u32 i;

	if (ack->largest >= sp->ring.next)
		return false;
	if (!sp->nskips)
		return true;
	qrdma_ack_iter_init(&it, ack);
	while (qrdma_ack_iter_next(&it, &range))
		for (i = 0; i < sp->nskips; i++)
			if (range.lo <= sp->skip[i].hi && range.hi >= sp->skip[i].lo)
				return false;
	return true;
}

/* It had been declared lost. */
static void recovery_spurious(struct qrdma_recovery *r, struct qrdma_recovery_space *sp,
			      const struct qrdma_sent *rec, const struct recovery_acked *sum,
			      struct qrdma_recovery_result *res)
{
	u64 reach;

	r->stats.spurious++;
	res->spurious++;
	if (sp->run && rec->pn >= sp->run_first && rec->pn <= sp->run_last)
		sp->run = false;
	if (!recovery_current(r, rec) || rec->flags & QRDMA_SENT_MTU_PROBE)
		return;
	if (sum->any_before && sum->before > rec->pn) {
		reach = recovery_distance(sp, rec->pn, sum->before) + 1;
		r->packet_threshold = max_t(u32, r->packet_threshold,
					    min_t(u64, reach, QRDMA_PACKET_THRESHOLD_MAX));
	}
	if (qrdma_cong_on_spurious(&r->cong, rec->event))
		r->one_more = false;
}

static void recovery_acked(struct qrdma_recovery *r, struct qrdma_recovery_space *sp,
			   struct qrdma_sent *rec, struct recovery_acked *sum,
			   struct qrdma_recovery_result *res)
{
	bool late = sum->any_before && rec->pn < sum->before;

	if (rec->state == QRDMA_SENT_LOST) {
		recovery_spurious(r, sp, rec, sum, res);
	} else {
		rec->state = QRDMA_SENT_ACKED;
		recovery_land(r, sp, rec);
	}
	r->stats.acked++;
	if (rec->flags & QRDMA_SENT_IN_FLIGHT)
		r->stats.bytes_acked += rec->size;
	if (rec->flags & QRDMA_SENT_ELICITING)
		sum->eliciting = true;
	if (recovery_current(r, rec)) {
		if (late && rec->flags & QRDMA_SENT_IN_FLIGHT)
			qrdma_rtt_loop(&r->rtt, r->clock - rec->time, r->clock);
		if (rec->flags & QRDMA_SENT_ECT)
			sum->ect++;
	}
	sp->newest_acked = max(sp->newest_acked, rec->time);
	qrdma_sent_ring_settle(&sp->ring, rec);
	sum->packets++;
	rec->next = NULL;
	*sum->tail = rec;
	sum->tail = &rec->next;
}

/* Take the newly acknowledged packets out of the ring: O(ranges + packets). */
static void recovery_take_acked(struct qrdma_recovery *r, struct qrdma_recovery_space *sp,
				const struct qrdma_ack *ack, struct recovery_acked *sum,
				struct qrdma_recovery_result *res)
{
	struct qrdma_ack_iter it;
	struct qrdma_range range;
	struct qrdma_sent *rec;

	qrdma_ack_iter_init(&it, ack);
	while (qrdma_ack_iter_next(&it, &range) && range.hi >= sp->ring.base) {
		while ((rec = qrdma_sent_ring_down(&sp->ring, range.hi, range.lo))) {
			recovery_acked(r, sp, rec, sum, res);
			if (rec->pn == range.lo)
				break;
			range.hi = rec->pn - 1;
		}
	}
}

/* RFC 9002 s5.1, and s5.3 for what the peer says it waited */
static void recovery_rtt(struct qrdma_recovery *r, u8 space, const struct qrdma_ack *ack,
			 u64 ack_delay, const struct recovery_acked *sum,
			 struct qrdma_recovery_result *res)
{
	const struct qrdma_sent *head = res->acked;
	u64 took = r->clock - head->time;

	if (head->pn != ack->largest || head->state == QRDMA_SENT_LOST || !sum->eliciting ||
	    !recovery_current(r, head))
		return;
	/* Initial packets are acknowledged at once; what is claimed about them is of no use */
	if (space == QRDMA_SPACE_INITIAL)
		ack_delay = 0;
	if (r->confirmed)
		ack_delay = min(ack_delay, r->max_ack_delay);
	qrdma_rtt_sample(&r->rtt, took, ack_delay, r->clock);
	qrdma_rtt_loop(&r->rtt, took - min3(took, ack_delay, r->max_ack_delay), r->clock);
	res->sampled = true;
}

/* RFC 9002 s7.1; only frames that raise the largest number are looked at */
static void recovery_ecn(struct qrdma_recovery *r, u8 space, const struct qrdma_ack *ack,
			 const struct recovery_acked *sum, const struct qrdma_sent *head)
{
	u64 ce;

	if (sum->any_before && ack->largest <= sum->before)
		return;
	ce = qrdma_ecn_on_ack(&r->ecn, space, ack, sum->ect);
	r->stats.ce += ce;
	if (!ce || !recovery_current(r, head) || qrdma_cong_in_recovery(&r->cong, head->time))
		return;
	qrdma_cong_on_ecn(&r->cong, head->time, ce, sum->packets, r->clock);
	r->one_more = true;
}

/* Let the window grow by what was acknowledged outside of a recovery period. */
static void recovery_grow(struct qrdma_recovery *r, const struct qrdma_sent *list)
{
	struct qrdma_cong_ack ca = {
		.now = r->clock,
		.srtt = r->rtt.smoothed,
		.flight = r->flight_at_send,
	};
	const struct qrdma_sent *rec;

	for (rec = list; rec; rec = rec->next)
		if (rec->state == QRDMA_SENT_ACKED && rec->flags & QRDMA_SENT_IN_FLIGHT &&
		    recovery_current(r, rec) && !qrdma_cong_in_recovery(&r->cong, rec->time))
			ca.bytes += rec->size;
	qrdma_cong_on_acked(&r->cong, &ca);
}

int qrdma_recovery_on_ack(struct qrdma_recovery *r, u8 space, const struct qrdma_ack *ack,
			  u64 ack_delay, u64 now, struct qrdma_recovery_result *res)
{
	struct qrdma_recovery_space *sp = r->space[space];
	struct recovery_acked sum = { .tail = &res->acked };

	memset(res, 0, sizeof(*res));
	if (!sp || sp->dropped)
		return 0;
	sum.any_before = sp->acked_any;
	sum.before = sp->largest_acked;
	if (!recovery_ack_valid(sp, ack))
		return -EPROTO;

	recovery_tick(r, now);
	recovery_reap(r, sp, false);
	recovery_take_acked(r, sp, ack, &sum, res);
	sp->largest_acked = sp->acked_any ? max(sp->largest_acked, ack->largest) : ack->largest;
	sp->acked_any = true;
	if (!sum.packets)
		return 0;

	recovery_rtt(r, space, ack, ack_delay, &sum, res);
	recovery_ecn(r, space, ack, &sum, res->acked);
	recovery_detect(r, sp, res);
	recovery_grow(r, res->acked);

	/* the client is not sure before (RFC 9002 s6.2.1) */
	if (space == QRDMA_SPACE_HANDSHAKE)
		r->peer_validated = true;
	if (r->peer_validated || r->confirmed)
		r->pto_count = 0;
	r->anchor = r->clock;
	return 0;
}

/* The timer */

/* Earliest time at which a packet is lost by time, and its space. */
static u64 recovery_loss_time(const struct qrdma_recovery *r, u8 *space)
{
	const struct qrdma_recovery_space *sp;
	u64 at = QRDMA_NEVER;
	u32 i;

	for (i = 0; (sp = recovery_space_from(r, &i)); i++) {
		if (sp->loss_time < at) {
			at = sp->loss_time;
			*space = i;
		}
	}
	return at;
}

/* When the PTO expires, and for which space (RFC 9002 A.8). */
static u64 recovery_pto_time(const struct qrdma_recovery *r, u8 *space)
{
	const struct qrdma_recovery_space *sp;
	u64 at = QRDMA_NEVER, t;
	u32 i;

	/* a client keeps the handshake going when the server may not send (s6.2.2.1) */
	if (!r->peer_validated && !r->confirmed && !qrdma_recovery_hs_out(r)) {
		*space = r->handshake_keys ? QRDMA_SPACE_HANDSHAKE : QRDMA_SPACE_INITIAL;
		return r->anchor + recovery_backoff(r, qrdma_rtt_pto(&r->rtt));
	}
	for (i = 0; (sp = recovery_space_from(r, &i)); i++) {
		if (!sp->out || (i == QRDMA_SPACE_APP && !r->confirmed))
			continue;
		t = sp->last_sent + recovery_backoff(r, recovery_patience(r, i));
		if (t < at) {
			at = t;
			*space = i;
		}
	}
	return at;
}

u64 qrdma_recovery_deadline(const struct qrdma_recovery *r)
{
	u8 space;
	u64 at;

	if (r->kicked)
		return 0;
	at = recovery_loss_time(r, &space);
	if (at != QRDMA_NEVER)
		return at;
	return r->blocked ? QRDMA_NEVER : recovery_pto_time(r, &space);
}

void qrdma_recovery_kick(struct qrdma_recovery *r)
{
	r->kicked = !recovery_nothing_out(r);
}

/* Probes for the lowest space that has something in flight. */
static void recovery_probe(struct qrdma_recovery *r, struct qrdma_recovery_result *res)
{
	const struct qrdma_recovery_space *sp;
	u32 i;

	r->kicked = false;
	for (i = 0; (sp = recovery_space_from(r, &i)); i++) {
		if (sp->out) {
			res->probe_space = i;
			res->probes = QRDMA_PROBES;
			return;
		}
	}
}

void qrdma_recovery_on_timeout(struct qrdma_recovery *r, u64 now,
			       struct qrdma_recovery_result *res)
{
	u8 space = QRDMA_SPACE_APP;

	memset(res, 0, sizeof(*res));
	if (qrdma_recovery_deadline(r) > now)
		return;
	recovery_tick(r, now);
	r->anchor = r->clock;
	if (r->kicked) {
		recovery_probe(r, res);
		return;
	}
	if (recovery_loss_time(r, &space) != QRDMA_NEVER) {
		recovery_reap(r, r->space[space], false);
		recovery_detect(r, r->space[space], res);
		return;
	}
	recovery_pto_time(r, &space);
	res->probe_space = space;
	res->probes = r->space[space] && r->space[space]->out ? QRDMA_PROBES : 1;
	r->stats.ptos++;
	if (r->pto_count < RECOVERY_SHIFT_MAX)
		r->pto_count++;
}

const struct qrdma_sent *qrdma_recovery_oldest(const struct qrdma_recovery *r, u8 space, u64 from)
{
	const struct qrdma_recovery_space *sp = r->space[space];
	const struct qrdma_sent *rec;

	if (!sp)
		return NULL;
	/* below that everything has its verdict */
	from = max(from, sp->scan);
	while ((rec = qrdma_sent_ring_up(&sp->ring, from, U64_MAX))) {
		if (rec->state == QRDMA_SENT_OUT && rec->flags & QRDMA_SENT_ELICITING)
			return rec;
		from = rec->pn + 1;
	}
	return NULL;
}

/* Changes of keys and of the path */

void qrdma_recovery_drop_space(struct qrdma_recovery *r, u8 space, u64 now)
{
	struct qrdma_recovery_space *sp = r->space[space];
	struct qrdma_sent *rec;
	u64 from = 0;

	if (!sp)
		return;
	while ((rec = qrdma_sent_ring_up(&sp->ring, from, U64_MAX))) {
		if (rec->state == QRDMA_SENT_OUT)
			recovery_land(r, sp, rec);
		from = rec->pn + 1;
	}
	qrdma_sent_ring_clear(&sp->ring);
	sp->dropped = true;
	sp->run = false;
	sp->loss_time = QRDMA_NEVER;
	recovery_free_space(r, space);
	r->pto_count = 0;
	recovery_tick(r, now);
	r->anchor = r->clock;
}

void qrdma_recovery_requeue(struct qrdma_recovery *r, u8 space, u64 now,
			    struct qrdma_recovery_result *res)
{
	struct qrdma_recovery_space *sp = r->space[space];
	struct qrdma_sent **tail = &res->lost;
	struct qrdma_sent *rec;
	u64 from;

	memset(res, 0, sizeof(*res));
	recovery_tick(r, now);
	if (!sp)
		return;
	recovery_reap(r, sp, false);
	for (from = 0; (rec = qrdma_sent_ring_up(&sp->ring, from, U64_MAX)); from = rec->pn + 1) {
		qrdma_sent_ring_settle(&sp->ring, rec);
		if (rec->state != QRDMA_SENT_OUT || !(rec->flags & QRDMA_SENT_IN_FLIGHT))
			continue;
		recovery_land(r, sp, rec);
		rec->state = QRDMA_SENT_NONE;
		rec->next = NULL;
		*tail = rec;
		tail = &rec->next;
	}
	sp->scan = sp->ring.next;
	sp->run = false;
	sp->loss_time = QRDMA_NEVER;
	r->pto_count = 0;
	r->anchor = r->clock;
}

void qrdma_recovery_new_path(struct qrdma_recovery *r, u64 initial_rtt, u32 mds, u64 now)
{
	struct qrdma_recovery_space *sp;
	u32 i;

	recovery_tick(r, now);
	r->path++;
	r->in_flight = 0;
	r->flight_at_send = 0;
	r->one_more = false;
	r->pto_count = 0;
	r->packet_threshold = QRDMA_PACKET_THRESHOLD;
	qrdma_rtt_init(&r->rtt, initial_rtt, r->rtt.granularity, r->clock);
	qrdma_cong_set_mds(&r->cong, mds);
	qrdma_cong_reset(&r->cong, r->clock);
	for (i = 0; (sp = recovery_space_from(r, &i)); i++)
		sp->run = false;
	qrdma_ecn_new_path(&r->ecn);
}

void qrdma_recovery_shrink(struct qrdma_recovery *r, u64 now)
{
	struct qrdma_recovery_space *sp;
	u32 i;

	/* nothing else has moved the clock, by which lost packets are given up */
	recovery_tick(r, now);
	for (i = 0; (sp = recovery_space_from(r, &i)); i++) {
		recovery_reap(r, sp, false);
		if (sp->ring.base >= sp->ring.next)
			qrdma_sent_ring_clear(&sp->ring);
	}
}

void qrdma_recovery_stats(const struct qrdma_recovery *r, struct qrdma_recovery_stats *stats)
{
	*stats = r->stats;
	stats->pto_count = r->pto_count;
	stats->packet_threshold = r->packet_threshold;
	stats->srtt = r->rtt.smoothed;
	stats->rttvar = r->rtt.var;
	stats->min_rtt = r->rtt.min;
	stats->latest_rtt = r->rtt.latest;
	stats->slowest_loop = qrdma_rtt_slowest(&r->rtt);
	stats->cwnd = qrdma_cong_window(&r->cong);
	stats->ssthresh = r->cong.s.ssthresh;
	stats->in_flight = r->in_flight;
	stats->cong_events = r->cong.events;
	stats->cong_undone = r->cong.undone;
}
