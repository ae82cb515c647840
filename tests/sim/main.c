// SPDX-License-Identifier: GPL-2.0
/*
 * Run scenarios: sim [-S scenario] [-s first seed] [-n how many] [-v]
 *
 * Without -S seed n runs scenario n modulo their number. Prints TAP, one test point a scenario; of
 * the first failure of each it prints the seed and the command that repeats it.
 */
#include <getopt.h>
#include "sim.h"
#include "conn_state.h"

#define SIM_TIME_MAX	(300 * SIM_SEC)	/* within so long everything has to come to its end */
#define SIM_EVENTS_MAX	20000000ULL

/* by scenario */
struct tally {
	u32 runs;
	u32 failed;
	u64 packets;
	u64 time;
};

/*
 * What the scenario does to the world while it runs
 */

static void mtu_known(struct world *w, void *arg)
{
	struct end *e = arg;

	if (!e->conn)
		return;
	qrdma_conn_set_path(e->conn, min(w->p.link[e->i].mtu, w->p.link[!e->i].mtu), w->now);
	end_act(e, 0);
}

static void mtu_changes(struct world *w, void *arg)
{
	u32 mtu = sim_draw(w, 600, SIM_BUF);
	int i;

	for (i = 0; i < 2; i++) {
		w->p.link[i].mtu = mtu;
		sim_at(w, w->now + sim_draw(w, 0, 5000) * SIM_US, mtu_known, &w->end[i]);
	}
}

static void lane_back(struct world *w, void *arg)
{
	struct end *e = arg;

	if (e->conn)
		end_act(e, qrdma_conn_kick(e->conn, w->now));
}

static void blackout(struct world *w, void *arg)
{
	u64 until = w->now + sim_draw(w, 0, w->p.blackout_max);
	u32 which = sim_draw(w, 1, 3);
	int i;

	for (i = 0; i < 2; i++) {
		if (!(which & BIT(i)))
			continue;
		w->p.link[i].dark_until = until;
		if (sim_chance(w, 500))
			sim_at(w, until, lane_back, &w->end[i]);
	}
}

static void key_update(struct world *w, void *arg)
{
	struct end *e = &w->end[sim_rand(w) & 1];

	if (e->conn && !qrdma_conn_key_update(e->conn))
		end_act(e, 0);
}

static void vanish(struct world *w, void *arg)
{
	end_destroy(arg);
}

static void close_early(struct world *w, void *arg)
{
	struct end *e = arg;

	if (e->conn)
		end_act(e, qrdma_conn_close(e->conn, 0, true, w->now));
}

static void schedule(struct world *w)
{
	u64 span = 1 + (w->p.script[0].bytes + w->p.script[1].bytes) * 20;	/* ns, 50 MB/s */
	u32 i;

	for (i = 0; i < w->p.mtu_changes; i++)
		sim_at(w, w->now + sim_draw(w, 0, span), mtu_changes, NULL);
	for (i = 0; i < w->p.blackouts; i++)
		sim_at(w, w->now + sim_draw(w, 0, span), blackout, NULL);
	for (i = 0; i < w->p.key_updates; i++)
		sim_at(w, w->now + sim_draw(w, 0, span), key_update, NULL);
	if (w->p.vanish)
		sim_at(w, w->now + w->p.vanish, vanish, &w->end[1]);
	if (w->p.destroy)
		sim_at(w, w->now + w->p.destroy, vanish, &w->end[0]);
	if (w->p.close_early)
		sim_at(w, w->now + w->p.close_early, close_early, &w->end[0]);
}

/*
 * A run
 */

static bool drained(const struct end *e)
{
	return !e->conn || e->conn->phase == QRDMA_CONN_DEAD;
}

static void run_until_drained(struct world *w)
{
	bool closed = false;

	while (!w->failed && !(drained(&w->end[0]) && drained(&w->end[1]))) {
		if (w->p.nomem && !shim_mem.fail_at)
			shim_mem.fail_at = sim_draw(w, 1, 2 * w->p.nomem);
		if (!sim_step(w)) {
			sim_fail(w, "nothing happens any more");
			break;
		}
		if (w->now > SIM_TIME_MAX || w->stamp > SIM_EVENTS_MAX) {
			sim_fail(w, "no end after %llu events: read %llu of %llu and %llu of %llu",
				 w->stamp, w->end[1].app.read, w->p.script[0].bytes,
				 w->end[0].app.read, w->p.script[1].bytes);
			break;
		}
		if (!closed && app_done(w)) {
			closed = true;
			close_early(w, &w->end[0]);
		}
	}
	shim_mem.fail_at = 0;
}

/* A wire that loses nothing: nothing was taken for lost, and the window was not cut. */
static void check_lossless(struct world *w)
{
	struct qrdma_conn_stats stats;
	int i;

	for (i = 0; i < 2; i++) {
		qrdma_conn_stats(w->end[i].conn, &stats);
		if (stats.lost || w->end[i].conn->recovery.cong.events)
			sim_fail(w, "end %d: %llu packets lost on a good wire", i, stats.lost);
		if (w->p.exact && stats.retransmitted_bytes)
			sim_fail(w, "end %d: %llu bytes again on a good wire", i,
				 stats.retransmitted_bytes);
	}
}

/*
 * Marks count, and a path that does something else to them is found out: no packet is marked once
 * the first of the marked ones is known to have arrived as something else.
 */
static void check_ecn(struct world *w)
{
	const struct sim_link *l;
	struct qrdma_conn_stats s, peer;
	int i;

	for (i = 0; i < 2; i++) {
		l = &w->p.link[i];
		if (!w->end[i].conn || !w->end[!i].conn)
			continue;
		qrdma_conn_stats(w->end[i].conn, &s);
		qrdma_conn_stats(w->end[!i].conn, &peer);
		if (s.ce_reported > peer.ce_marks)
			sim_fail(w, "end %d: %llu CE marks, the peer saw %u", i, s.ce_reported,
				 peer.ce_marks);
		if (l->ce && !l->bleach && !l->mangle && s.ecn == QRDMA_ECN_CAPABLE &&
		    peer.ce_marks > 20 && !s.ce_reported)
			sim_fail(w, "end %d: %u CE marks went unseen", i, peer.ce_marks);
		if (s.ce_reported && !w->end[i].conn->recovery.cong.events)
			sim_fail(w, "end %d: marked, and the window was never cut", i);
		if ((l->bleach == 1000 || l->mangle == 1000) && s.ecn == QRDMA_ECN_CAPABLE)
			sim_fail(w, "end %d: marks count on a path that breaks them all", i);
		/* where packets are late or lost it may: RFC 9000 s13.4.2.2 is careful */
		if (w->p.exact && s.ecn == QRDMA_ECN_FAILED)
			sim_fail(w, "end %d: ECN fails on a path that carries it", i);
	}
}

static void check_drops(struct world *w)
{
	const struct end *e;
	int i;

	for (i = 0; i < 2; i++) {
		e = &w->end[i];
		if (!e->conn)
			continue;
		if (e->conn->n.received > w->end[!i].built)
			sim_fail(w, "end %d: %llu packets used, %llu were built", i,
				 e->conn->n.received, w->end[!i].built);
		/* with keys that live for few packets one may come two generations late */
		if (w->p.link[!i].corrupt || w->p.key_packets_max)
			continue;
		if (e->conn->n.drops[QRDMA_DROP_AUTH])
			sim_fail(w, "end %d: %llu packets did not verify", i,
				 e->conn->n.drops[QRDMA_DROP_AUTH]);
	}
}

static void tell(const struct world *w)
{
	struct qrdma_conn_stats s;
	int i, d;

	for (i = 0; i < 2; i++) {
		if (!w->end[i].conn)
			continue;
		qrdma_conn_stats(w->end[i].conn, &s);
		printf("# end %d: sent %llu received %llu lost %llu spurious %llu again %llu bytes",
		       i, s.sent, s.received, s.lost, s.spurious, s.retransmitted_bytes);
		printf(", read %llu bytes, srtt %llu us, cwnd %llu, key %u, datagram %u, drops",
		       s.bytes_delivered, s.srtt / SIM_US, s.cwnd, s.key_phase, s.max_datagram);
		for (d = 0; d < __QRDMA_DROP_MAX; d++)
			printf(" %llu", s.drops[d]);
		printf("\n");
	}
}

static void run(u64 seed, const struct sim_scenario *s, bool verbose, struct tally *t)
{
	struct world w = { .seed = seed, .name = s->name, .verbose = verbose };
	long live = shim_mem.live;
	int i;

	w.rng = seed * 0x2545f4914f6cdd1dULL + 1;
	w.now = SIM_SEC;
	sim_scenarios[0].draw(&w, &w.p);
	if (s != &sim_scenarios[0])
		s->draw(&w, &w.p);
	for (i = 0; i < 2; i++) {
		w.end[i].w = &w;
		w.end[i].i = i;
	}
	end_start(&w.end[0]);
	end_start(&w.end[1]);
	schedule(&w);
	run_until_drained(&w);
	if (!w.failed) {
		app_check_end(&w);
		for (i = 0; i < 2; i++)
			hs_check_end(&w.end[i]);
		check_drops(&w);
		check_ecn(&w);
		if (w.p.lossless)
			check_lossless(&w);
	}
	if (verbose)
		tell(&w);
	t->time += w.now;
	t->packets += w.end[0].built + w.end[1].built;
	for (i = 0; i < 2; i++)
		end_destroy(&w.end[i]);
	while (sim_step(&w))
		;
	for (i = 0; i < 2; i++) {
		if (!end_quiet(&w.end[i]))
			sim_fail(&w, "end %d: something is still under way", i);
	}
	if (shim_mem.live != live)
		sim_fail(&w, "%ld allocations left behind", shim_mem.live - live);
	t->runs++;
	t->failed += w.failed;
	free(w.heap);
}

static void usage(void)
{
	u32 i;

	fprintf(stderr, "sim [-S scenario] [-s seed] [-n count] [-v]\nscenarios:");
	for (i = 0; i < sim_nr_scenarios; i++)
		fprintf(stderr, " %s", sim_scenarios[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

int main(int argc, char **argv)
{
	struct tally *tally = calloc(sim_nr_scenarios, sizeof(*tally));
	u64 seed = 1, count = 2000, n;
	bool verbose = false;
	int only = -1, opt;
	u32 i, bad = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, "S:s:n:v")) != -1) {
		switch (opt) {
		case 'S':
			for (i = 0; i < sim_nr_scenarios; i++) {
				if (!strcmp(sim_scenarios[i].name, optarg))
					only = i;
			}
			if (only < 0)
				usage();
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			count = strtoull(optarg, NULL, 0);
			break;
		case 'v':
			verbose = true;
			break;
		default:
			usage();
		}
	}

	for (n = 0; n < count; n++) {
		i = only < 0 ? (seed + n) % sim_nr_scenarios : (u32)only;
		/* one failure of a kind is enough to look at */
		if (!tally[i].failed)
			run(seed + n, &sim_scenarios[i], verbose, &tally[i]);
	}
	printf("TAP version 13\n1..%u\n", only < 0 ? sim_nr_scenarios : 1);
	for (i = 0, n = 0; i < sim_nr_scenarios; i++) {
		if (only >= 0 && i != (u32)only)
			continue;
		bad += tally[i].failed;
		printf("%s %llu sim %s # %u runs, %llu packets, %llu s\n",
		       tally[i].failed ? "not ok" : "ok", ++n, sim_scenarios[i].name,
		       tally[i].runs, tally[i].packets, tally[i].time / SIM_SEC);
	}
	free(tally);
	return bad ? 1 : 0;
}
