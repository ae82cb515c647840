// SPDX-License-Identifier: GPL-2.0
/*
 * core/recovery.c against a naive model: an array of packets, and the loops that RFC 9002 writes
 * down, over all of it each time. And field case F01: two ends, one of which stalls now and then.
 */
#include "qtest.h"
#include "recovery_bench.h"

#define APP		QRDMA_SPACE_APP
#define MODEL_MAX	3000
#define GAPS_MAX	MODEL_MAX

/* NONE was never sent, GONE is off the record. */
enum fate { NONE, OUT, ACKED, LOST, GONE };

struct packet {
	u64 time;
	u16 size;
	u8 flags;
	u8 fate;
	bool arrived;
};

/**
 * struct model - what recovery should know
 * @b: the recovery under test
 * @seed: of the random sequence
 * @sent: the packets; none is sent beyond @next
 * @next: next number
 * @acked_any: there was an ACK
 * @largest: largest acknowledged
 * @gap: numbers left out, in order
 * @gaps: how many
 */
struct model {
	struct bench *b;
	u64 seed;
	struct packet sent[MODEL_MAX];
	u64 next;
	bool acked_any;
	u64 largest;
	struct qrdma_range gap[GAPS_MAX];
	u32 gaps;
};

static bool held(const struct model *m, const struct packet *p, u64 clock)
{
	u64 keep = QRDMA_LOST_KEEP_PTOS * qrdma_recovery_pto(&m->b->r, APP);

	return p->fate == LOST ? clock < p->time + keep : p->flags & QRDMA_SENT_IN_FLIGHT;
}

static void model_reap(struct model *m, u64 clock)
{
	u64 pn;

	for (pn = 0; pn < m->next; pn++) {
		struct packet *p = &m->sent[pn];

		if (p->fate != OUT && p->fate != LOST)
			continue;
		if (held(m, p, clock))
			break;
		p->fate = GONE;
	}
}

static void check_flight(struct q_test *test, const struct model *m)
{
	u64 flight = 0, out = 0, pn;

	for (pn = 0; pn < m->next; pn++) {
		const struct packet *p = &m->sent[pn];

		if (p->fate == OUT && p->flags & QRDMA_SENT_IN_FLIGHT) {
			flight += p->size;
			out++;
		}
	}
	Q_ASSERT_EQ(test, m->b->r.in_flight, flight);
	Q_ASSERT_EQ(test, m->b->r.app.out, out);
}

/* RFC 9002 A.10 by hand, and what recovery found. */
static void check_lost(struct q_test *test, struct model *m)
{
	const struct qrdma_recovery *r = &m->b->r;
	const struct qrdma_sent *rec = m->b->res.lost;
	u64 delay = qrdma_rtt_loss_delay(&r->rtt, qrdma_recovery_pto(r, APP));
	u64 loss_time = QRDMA_NEVER, pn, reach;
	u32 i;

	for (pn = 0; m->acked_any && pn < m->largest; pn++) {
		struct packet *p = &m->sent[pn];

		if (p->fate != OUT || !(p->flags & QRDMA_SENT_IN_FLIGHT))
			continue;
		reach = m->largest - pn;
		for (i = m->gaps; i-- > 0 && i + QRDMA_SKIPS >= m->gaps;)
			if (m->gap[i].lo > pn && m->gap[i].hi < m->largest)
				reach -= m->gap[i].hi - m->gap[i].lo + 1;
		if (p->time + delay <= m->b->now || reach >= r->packet_threshold) {
			Q_ASSERT_NOT_NULL(test, rec);
			Q_ASSERT_EQ(test, rec->pn, pn);
			Q_ASSERT_EQ(test, rec->frame[0].val, 1000 * pn);
			rec = rec->next;
			p->fate = LOST;
		} else {
			loss_time = min(loss_time, p->time + delay);
		}
	}
	Q_ASSERT_NULL(test, rec);
	Q_ASSERT_EQ(test, r->app.loss_time, loss_time);
}

static void step_send(struct q_test *test, struct model *m)
{
	static const u8 kinds[] = {
		QRDMA_SENT_ELICITING, QRDMA_SENT_ELICITING, QRDMA_SENT_ELICITING,
		QRDMA_SENT_ELICITING | QRDMA_SENT_PROBE, QRDMA_SENT_IN_FLIGHT, 0,
	};
	u64 n = 1 + q_rand(&m->seed) % 20, pn;
	struct bench *b = m->b;

	while (n-- && m->next < MODEL_MAX - 100) {
		u8 flags = kinds[q_rand(&m->seed) % ARRAY_SIZE(kinds)];
		u16 size = 1 + q_rand(&m->seed) % 1400;
		u64 skip = 0;

		b->now += q_rand(&m->seed) % (20 * US);
		model_reap(m, b->r.clock);
		if (!(q_rand(&m->seed) % 32))
			skip = 1 + q_rand(&m->seed) % 40;
		b->pn[APP] = m->next + skip;
		if (!(q_rand(&m->seed) % 16))
			q_fail_alloc(1 + q_rand(&m->seed) % 3);
		pn = bench_send_flags(b, APP, size, flags);
		q_fail_alloc(0);
		if (pn == U64_MAX)
			continue;
		if (skip) {
			m->gap[m->gaps].lo = m->next;
			m->gap[m->gaps++].hi = m->next + skip - 1;
		}
		Q_ASSERT_EQ(test, pn, m->next + skip);
		m->next = pn + 1;
		m->sent[pn].time = b->now;
		m->sent[pn].size = size;
		m->sent[pn].flags = flags & QRDMA_SENT_ELICITING ?
				    flags | QRDMA_SENT_IN_FLIGHT : flags;
		m->sent[pn].fate = OUT;
	}
	check_flight(test, m);
}

/* The ranges of what arrived, downwards from @top. */
static u32 arrived(struct model *m, u64 top, struct qrdma_range *range, u32 max)
{
	u32 n = 0, i;
	u64 pn;

	for (pn = top + 1; pn-- > 0 && n < max;) {
		if (!m->sent[pn].arrived)
			continue;
		range[n].hi = pn;
		while (pn && m->sent[pn - 1].arrived)
			pn--;
		range[n++].lo = pn;
	}
	for (i = 0; i < n / 2; i++)
		swap(range[i], range[n - 1 - i]);
	return n;
}

static void check_acked(struct q_test *test, struct model *m, const struct qrdma_range *range,
			u32 count)
{
	const struct qrdma_sent *rec = m->b->res.acked;
	u64 spurious = 0, pn;

	while (count-- > 0) {
		for (pn = range[count].hi + 1; pn-- > range[count].lo;) {
			struct packet *p = &m->sent[pn];

			if (p->fate != OUT && p->fate != LOST)
				continue;
			Q_ASSERT_NOT_NULL(test, rec);
			Q_ASSERT_EQ(test, rec->pn, pn);
			Q_ASSERT_EQ(test, rec->size, p->size);
			Q_ASSERT_EQ(test, rec->state,
				    p->fate == LOST ? QRDMA_SENT_LOST : QRDMA_SENT_ACKED);
			spurious += p->fate == LOST;
			rec = rec->next;
			p->fate = ACKED;
		}
	}
	Q_ASSERT_NULL(test, rec);
	Q_ASSERT_EQ(test, m->b->res.spurious, spurious);
}

static void step_ack(struct q_test *test, struct model *m)
{
	struct qrdma_range range[32];
	struct bench *b = m->b;
	u64 pn, top;
	u32 count;

	if (!m->next)
		return;
	/* the oldest 50 that are under way arrive, most of them; late ones of before too */
	for (pn = 0, count = 0; pn < m->next && count < 50; pn++) {
		if (m->sent[pn].fate == NONE || m->sent[pn].arrived)
			continue;
		if (m->sent[pn].fate == OUT)
			count++;
		m->sent[pn].arrived = q_rand(&m->seed) % 100 < (m->sent[pn].fate == OUT ? 60 : 2);
	}
	/* mostly all, now and then an ACK frame that was overtaken */
	top = m->next - 1;
	if (!(q_rand(&m->seed) % 8))
		top -= min(top, q_rand(&m->seed) % 100);
	count = arrived(m, top, range, 1 + q_rand(&m->seed) % 32);
	if (!count)
		return;
	b->now += q_rand(&m->seed) % (300 * US);
	model_reap(m, b->now);
	Q_ASSERT_EQ(test, bench_ack_ranges(b, APP, range, count, q_rand(&m->seed) % (2 * MS)), 0);
	check_acked(test, m, range, count);
	m->largest = m->acked_any ? max(m->largest, range[count - 1].hi) : range[count - 1].hi;
	m->acked_any = true;
	if (b->res.acked)
		check_lost(test, m);
	else
		Q_ASSERT_NULL(test, b->res.lost);
	check_flight(test, m);
}

static void step_timeout(struct q_test *test, struct model *m)
{
	u64 at = qrdma_recovery_deadline(&m->b->r);
	u32 ptos = m->b->r.pto_count;
	bool loss = m->b->r.app.loss_time != QRDMA_NEVER;

	if (at == QRDMA_NEVER)
		return;
	m->b->now = max(m->b->now, at);
	if (loss)
		model_reap(m, m->b->now);
	bench_timeout(m->b, at);
	Q_ASSERT_NULL(test, m->b->res.acked);
	if (loss) {
		check_lost(test, m);
		Q_ASSERT_EQ(test, m->b->res.probes, 0);
	} else {
		Q_ASSERT_NULL(test, m->b->res.lost);
		Q_ASSERT_EQ(test, m->b->res.probes, QRDMA_PROBES);
		Q_ASSERT_EQ(test, m->b->r.pto_count, min(ptos + 1, 32U));
	}
	check_flight(test, m);
}

Q_TEST(recovery_random_against_model)
{
	struct model *m = q_zalloc(test, sizeof(*m));
	u64 seed = q_seed(), lost = 0, spurious = 0, ptos = 0;
	u32 round, idle;

	for (round = 0; round < 12; round++) {
		memset(m, 0, sizeof(*m));
		m->seed = q_rand(&seed);
		m->b = bench_new(test, true, true);
		for (idle = 0; m->next < MODEL_MAX - 100 && idle < 2000; idle++) {
			u64 dice = q_rand(&m->seed) % 20;

			if (dice < 8)
				step_send(test, m);
			else if (dice < 19)
				step_ack(test, m);
			else
				step_timeout(test, m);
		}
		lost += m->b->r.stats.lost;
		spurious += m->b->r.stats.spurious;
		ptos += m->b->r.stats.ptos;
		bench_end(m->b);
	}
	/* the dice did what they are for */
	Q_EXPECT_GT(test, lost, 100);
	Q_EXPECT_GT(test, spurious, 10);
	Q_EXPECT_GT(test, ptos, 1);
}

/* F01: two ends on a lossless link, RTT 200 us; one packet in fifty is overtaken by others. */

#define WIRE_MAX	512
#define ONE_WAY		(100 * US)
#define PEER_DELAY	MS

/* A packet under way, and an ACK frame; when they arrive comes first. */
struct data {
	u64 at;
	u64 pn;
};

struct report {
	u64 at;
	u32 count;
	u64 delay;
	struct qrdma_range range[QRDMA_RANGES_MAX];
};

struct stall_sim {
	struct bench *b;
	struct qrdma_pnspace peer;
	u64 seed;
	u64 peer_free;
	u64 link_free;
	struct data data[WIRE_MAX];
	u32 ndata;
	struct report acks[WIRE_MAX];
	u32 nacks;
};

static u32 first_data(const struct stall_sim *sim)
{
	u32 best = 0, i;

	for (i = 1; i < sim->ndata; i++)
		if (sim->data[i].at < sim->data[best].at)
			best = i;
	return best;
}

static u32 first_ack(const struct stall_sim *sim)
{
	u32 best = 0, i;

	for (i = 1; i < sim->nacks; i++)
		if (sim->acks[i].at < sim->acks[best].at)
			best = i;
	return best;
}

static void sim_send(struct q_test *test, struct stall_sim *sim)
{
	struct bench *b = sim->b;
	u64 at;

	while (sim->ndata < WIRE_MAX &&
	       qrdma_recovery_may_send(&b->r, 1000, b->now, &at) == QRDMA_SEND_OK) {
		struct data *d = &sim->data[sim->ndata++];

		d->pn = bench_send(b, APP, 1000);
		Q_ASSERT_NE(test, d->pn, U64_MAX);
		sim->link_free = max(sim->link_free, b->now) + US;
		d->at = sim->link_free + ONE_WAY;
		if (!(q_rand(&sim->seed) % 50))
			d->at += 10 * US;
	}
}

static void sim_peer_ack(struct stall_sim *sim, u64 now)
{
	struct report *a = &sim->acks[sim->nacks];
	const struct qrdma_range *range;
	struct qrdma_ack ack;

	if (sim->nacks == WIRE_MAX)
		return;
	a->count = qrdma_pnspace_build_ack(&sim->peer, now, 0, &ack, &range);
	memcpy(a->range, range, a->count * sizeof(*range));
	a->delay = ack.delay * US;
	a->at = now + ONE_WAY;
	sim->nacks++;
	qrdma_pnspace_ack_sent(&sim->peer);
}

/* The peer takes packets one after the other, as they come; now and then it stalls. */
static void sim_arrive(struct stall_sim *sim, u32 i)
{
	struct data d = sim->data[i];
	u64 done;

	sim->data[i] = sim->data[--sim->ndata];
	if (!(q_rand(&sim->seed) % 1000))
		sim->peer_free = d.at + MS + q_rand(&sim->seed) % MS;
	done = max(d.at, sim->peer_free);
	sim->peer_free = done + 10;
	qrdma_pnspace_on_received(&sim->peer, d.pn, true, QRDMA_ECN_NOT_ECT, done);
	if (qrdma_pnspace_ack_due(&sim->peer, done))
		sim_peer_ack(sim, done);
}

static void sim_ack(struct q_test *test, struct stall_sim *sim, u32 i)
{
	struct report *a = &sim->acks[i];

	sim->b->now = max(sim->b->now, a->at);
	Q_ASSERT_EQ(test, bench_ack_ranges(sim->b, APP, a->range, a->count, a->delay), 0);
	sim->acks[i] = sim->acks[--sim->nacks];
}

/* Let whatever comes first happen. */
static void sim_step(struct q_test *test, struct stall_sim *sim)
{
	struct bench *b = sim->b;
	u32 d = first_data(sim), a = first_ack(sim);
	u64 data = sim->ndata ? sim->data[d].at : QRDMA_NEVER;
	u64 acks = sim->nacks ? sim->acks[a].at : QRDMA_NEVER;
	u64 owed = max(qrdma_pnspace_deadline(&sim->peer), sim->peer_free);
	u64 timer = qrdma_recovery_deadline(&b->r), paced = QRDMA_NEVER, first;

	if (qrdma_recovery_may_send(&b->r, 1000, b->now, &paced) == QRDMA_SEND_WINDOW)
		paced = QRDMA_NEVER;
	if (qrdma_pnspace_deadline(&sim->peer) == QRDMA_NEVER)
		owed = QRDMA_NEVER;
	first = min(min(min(data, acks), min(owed, timer)), paced);
	Q_ASSERT_NE(test, first, QRDMA_NEVER);
	if (first == data) {
		sim_arrive(sim, d);
	} else if (first == acks) {
		sim_ack(test, sim, a);
	} else if (first == owed) {
		sim_peer_ack(sim, first);
	} else if (first == timer) {
		bench_timeout(b, timer);
		/* probes go out over the window */
		while (b->res.probes-- && sim->ndata < WIRE_MAX) {
			sim->data[sim->ndata].pn = bench_send(b, APP, 1000);
			sim->data[sim->ndata++].at = b->now + ONE_WAY;
		}
	} else {
		b->now = max(b->now, paced);
	}
	sim_send(test, sim);
}

Q_TEST(recovery_stalled_peer)
{
	struct stall_sim *sim = q_zalloc(test, sizeof(*sim));
	struct qrdma_recovery *r;
	u64 until = 500 * MS;

	sim->b = bench_new(test, true, true);
	sim->seed = q_seed();
	r = &sim->b->r;
	r->max_ack_delay = PEER_DELAY;
	r->cong.s.ssthresh = 64000;
	qrdma_pnspace_init(&sim->peer, 0, PEER_DELAY);
	sim_send(test, sim);
	while (sim->b->now < until) {
		sim_step(test, sim);
		/* the test is about stalls, not about a window without end */
		r->cong.s.cwnd = min_t(u64, r->cong.s.cwnd, 200000);
	}
	/* the first stalls surprise, the others are reckoned with */
	Q_EXPECT_LT(test, r->stats.ptos, 5);
	/* under 0.1 % of the packets, and no cut that stayed */
	Q_EXPECT_GT(test, r->stats.sent, 100000);
	Q_EXPECT_LT(test, r->stats.lost * 1000, r->stats.sent);
	Q_EXPECT_EQ(test, r->cong.events, r->cong.undone);
	Q_EXPECT_GE(test, qrdma_cong_window(&r->cong), 64000);
	bench_end(sim->b);
	qrdma_pnspace_destroy(&sim->peer);
}

Q_SUITE("qrdma-recovery-model",
	Q_CASE(recovery_random_against_model),
	Q_CASE(recovery_stalled_peer));
