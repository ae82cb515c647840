// SPDX-License-Identifier: GPL-2.0
/* What may happen: one row a scenario, each drawn anew from every seed. */
#include "sim.h"

/* A calm world, from which the rows below depart. */
static void draw_base(struct world *w, struct sim_params *p)
{
	int i;

	p->datagram = sim_draw(w, 1020, 4092);
	for (i = 0; i < 2; i++) {
		struct sim_link *l = &p->link[i];
		struct sim_script *s = &p->script[i];

		l->delay = sim_draw(w, 1, 200) * SIM_US;
		l->mtu = SIM_BUF;
		s->bytes = sim_chance(w, 100) ? sim_draw(w, 0, 3) : sim_draw(w, 0, 300000);
		if (sim_chance(w, 100))
			s->bytes *= 10;
		s->chunk = sim_chance(w, 300) ? sim_draw(w, 1, 200) : sim_draw(w, 1000, 30000);
		/* small pieces of much data cost time and show little */
		if (s->chunk < 1000)
			s->bytes = min_t(u64, s->bytes, s->chunk * 1000);
		s->gap = sim_chance(w, 300) ? sim_draw(w, 1, 500) * SIM_US : 0;
		s->reads = sim_draw(w, 100, 20000);
		s->read_gap = sim_chance(w, 300) ? sim_draw(w, 1, 500) * SIM_US : 0;
		s->reset_at = U64_MAX;
		s->stop_at = U64_MAX;
	}
	p->derive_max = sim_draw(w, 0, 2) * SIM_MS;
	p->window = sim_draw(w, 20000, 500000);
	p->rx_mem = 2 * p->window + 200000;
	p->tx_room = sim_draw(w, 5000, 500000);
	p->idle_ms = 60000;
	p->cong = sim_rand(w) & 1;
}

static void draw_clean(struct world *w, struct sim_params *p)
{
	p->lossless = true;
	p->exact = true;
}

static void draw_loss(struct world *w, struct sim_params *p)
{
	p->link[0].loss = sim_draw(w, 0, 200);
	p->link[1].loss = sim_draw(w, 0, 200);
}

static void draw_heavy_loss(struct world *w, struct sim_params *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		p->link[i].loss = sim_draw(w, 200, 500);
		p->script[i].bytes = min_t(u64, p->script[i].bytes, 40000);
	}
}

static void draw_reorder(struct world *w, struct sim_params *p)
{
	p->link[0].reorder = sim_draw(w, 0, 300);
	p->link[1].reorder = sim_draw(w, 0, 300);
	p->link[0].jitter = sim_draw(w, 0, 300) * SIM_US;
	p->link[1].jitter = sim_draw(w, 0, 300) * SIM_US;
}

static void draw_dup(struct world *w, struct sim_params *p)
{
	p->link[0].dup = sim_draw(w, 1, 700);
	p->link[1].dup = sim_draw(w, 1, 700);
	p->link[0].jitter = sim_draw(w, 0, 100) * SIM_US;
}

static void draw_corrupt(struct world *w, struct sim_params *p)
{
	p->link[0].corrupt = sim_draw(w, 1, 150);
	p->link[1].corrupt = sim_draw(w, 1, 150);
}

static void draw_narrow(struct world *w, struct sim_params *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		p->link[i].rate = sim_draw(w, 1000, 100000);
		p->link[i].queue = sim_draw(w, 8000, 200000);
	}
}

/* long and wide: the window has to grow */
static void draw_wide(struct world *w, struct sim_params *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		p->link[i].delay = sim_draw(w, 5, 50) * SIM_MS;
		p->link[i].rate = 100000;
		p->link[i].queue = 400000;
	}
	p->window = sim_draw(w, 100000, 2000000);
	p->rx_mem = 3 * p->window;
	p->tx_room = 1000000;
	p->script[0].bytes = sim_draw(w, 100000, 1500000);
	p->script[0].chunk = 30000;
}

static void draw_mtu(struct world *w, struct sim_params *p)
{
	p->mtu_changes = sim_draw(w, 1, 5);
	p->link[0].mtu = p->datagram;
	p->link[1].mtu = p->datagram;
}

static void draw_blackout(struct world *w, struct sim_params *p)
{
	p->blackouts = sim_draw(w, 1, 4);
	p->blackout_max = sim_draw(w, 1, 3000) * SIM_MS;
}

static void draw_stall(struct world *w, struct sim_params *p)
{
	p->stalls = sim_draw(w, 1, 100);
	p->stall_max = sim_draw(w, 1, 4000) * SIM_US;
	p->lossless = true;
}

static void draw_async(struct world *w, struct sim_params *p)
{
	p->async = sim_draw(w, 100, 1000);
	p->async_max = sim_draw(w, 1, 300) * SIM_US;
}

static void draw_keys(struct world *w, struct sim_params *p)
{
	p->key_updates = sim_draw(w, 1, 20);
	p->key_packets_max = sim_chance(w, 500) ? sim_draw(w, 100, 2000) : 0;
	p->link[0].loss = sim_draw(w, 0, 50);
	p->link[1].loss = sim_draw(w, 0, 50);
	p->link[0].reorder = sim_draw(w, 0, 100);
	p->link[1].reorder = sim_draw(w, 0, 100);
	p->async = sim_draw(w, 0, 500);
	p->async_max = sim_draw(w, 1, 1000) * SIM_US;
	/* an update must be answered within the limit */
	p->derive_max = SIM_MS / 10;
	if (p->key_packets_max)
		p->window = sim_draw(w, 8000, 30000);
}

static void draw_window(struct world *w, struct sim_params *p)
{
	int i;

	p->window = sim_draw(w, 1, 8000);
	p->rx_mem = sim_draw(w, 40000, 80000);
	p->link[0].loss = sim_draw(w, 0, 50);
	p->link[1].reorder = sim_draw(w, 0, 50);
	for (i = 0; i < 2; i++)
		p->script[i].bytes = min_t(u64, p->script[i].bytes, 50ULL * p->window);
}

/* credit says yes, memory says no: packets are dropped unacknowledged */
static void draw_memory(struct world *w, struct sim_params *p)
{
	p->rx_mem = sim_draw(w, 20000, 60000);
	p->window = sim_draw(w, 20000, 100000);
	p->link[0].loss = sim_draw(w, 0, 50);
	p->link[1].loss = sim_draw(w, 0, 50);
	p->link[0].reorder = sim_draw(w, 0, 100);
}

static void draw_nomem(struct world *w, struct sim_params *p)
{
	p->nomem = sim_draw(w, 3, 50);
	p->link[0].loss = sim_draw(w, 0, 50);
	p->link[1].loss = sim_draw(w, 0, 50);
}

static void draw_reset(struct world *w, struct sim_params *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct sim_script *s = &p->script[i];

		if (sim_chance(w, 500))
			s->reset_at = sim_draw(w, 0, s->bytes);
		if (sim_chance(w, 500))
			s->stop_at = sim_draw(w, 0, p->script[!i].bytes);
	}
	p->link[0].loss = sim_draw(w, 0, 100);
	p->link[1].loss = sim_draw(w, 0, 100);
}

/* congestion is marked, more or less of it */
static void draw_ecn(struct world *w, struct sim_params *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		p->link[i].ce = sim_chance(w, 300) ? 1000 : sim_draw(w, 1, 300);
		p->script[i].bytes = max_t(u64, p->script[i].bytes, 100000);
		p->script[i].chunk = 30000;
	}
	p->link[0].loss = sim_draw(w, 0, 20);
	p->link[1].reorder = sim_draw(w, 0, 20);
}

/* marks come off, or turn into others: some of them, or all */
static void draw_ecn_broken(struct world *w, struct sim_params *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		u32 *what = sim_chance(w, 500) ? &p->link[i].bleach : &p->link[i].mangle;

		*what = sim_chance(w, 500) ? 1000 : sim_draw(w, 1, 500);
		p->link[i].ce = sim_draw(w, 0, 100);
		p->link[i].loss = sim_draw(w, 0, 50);
	}
}

static void draw_vanish(struct world *w, struct sim_params *p)
{
	p->vanish = sim_draw(w, 0, 50) * SIM_MS / 10;
	p->idle_ms = sim_draw(w, 1, 5000);
}

static void draw_destroy(struct world *w, struct sim_params *p)
{
	draw_async(w, p);
	p->destroy = sim_draw(w, 0, 50) * SIM_MS / 10;
	p->idle_ms = sim_draw(w, 1, 5000);
}

static void draw_close(struct world *w, struct sim_params *p)
{
	p->close_early = sim_draw(w, 0, 50) * SIM_MS / 10;
	p->link[0].loss = sim_draw(w, 0, 300);
	p->idle_ms = 5000;
}

static void draw_chaos(struct world *w, struct sim_params *p)
{
	draw_loss(w, p);
	draw_reorder(w, p);
	draw_dup(w, p);
	draw_corrupt(w, p);
	draw_async(w, p);
	draw_stall(w, p);
	p->lossless = false;
	draw_mtu(w, p);
	if (sim_chance(w, 500))
		draw_narrow(w, p);
	if (sim_chance(w, 300))
		draw_blackout(w, p);
	if (sim_chance(w, 300))
		draw_reset(w, p);
	if (sim_chance(w, 300))
		draw_window(w, p);
	if (sim_chance(w, 300))
		draw_nomem(w, p);
	p->key_updates = sim_draw(w, 0, 5);
}

/*
 * The handshake in band
 */

static void draw_hs(struct world *w, struct sim_params *p)
{
	int i;

	p->inband = true;
	p->hello = sim_chance(w, 200) ? sim_draw(w, 1000, 4000) : sim_draw(w, 200, 500);
	p->cert = sim_chance(w, 300) ? sim_draw(w, 4000, 15000) : sim_draw(w, 0, 3000);
	p->ticket = sim_chance(w, 500) ? sim_draw(w, 10, 2000) : 0;
	p->tls_max = sim_chance(w, 300) ? sim_draw(w, 1, 20) * SIM_MS : sim_draw(w, 0, 500) * SIM_US;
	p->retry = sim_chance(w, 300);
	p->early = sim_chance(w, 300);
	p->early_taken = sim_chance(w, 500);
	/* it is the beginning that is looked at */
	for (i = 0; i < 2; i++)
		p->script[i].bytes = min_t(u64, p->script[i].bytes, 60000);
}

static void draw_hs_loss(struct world *w, struct sim_params *p)
{
	draw_hs(w, p);
	p->link[0].loss = sim_draw(w, 0, 400);
	p->link[1].loss = sim_draw(w, 0, 400);
}

static void draw_hs_reorder(struct world *w, struct sim_params *p)
{
	draw_hs(w, p);
	draw_reorder(w, p);
	draw_dup(w, p);
}

static void draw_hs_corrupt(struct world *w, struct sim_params *p)
{
	draw_hs(w, p);
	draw_corrupt(w, p);
	p->link[0].loss = sim_draw(w, 0, 100);
}

static void draw_hs_async(struct world *w, struct sim_params *p)
{
	draw_hs(w, p);
	draw_async(w, p);
	draw_stall(w, p);
	p->lossless = false;
}

static void draw_hs_nomem(struct world *w, struct sim_params *p)
{
	draw_hs(w, p);
	draw_nomem(w, p);
}

static void draw_hs_early(struct world *w, struct sim_params *p)
{
	draw_hs(w, p);
	p->early = true;
	p->link[0].loss = sim_draw(w, 0, 300);
	p->link[1].loss = sim_draw(w, 0, 300);
	p->link[0].reorder = sim_draw(w, 0, 300);
}

static void draw_hs_vanish(struct world *w, struct sim_params *p)
{
	draw_hs(w, p);
	draw_vanish(w, p);
	p->link[0].loss = sim_draw(w, 0, 300);
}

static void draw_hs_chaos(struct world *w, struct sim_params *p)
{
	draw_hs(w, p);
	draw_loss(w, p);
	draw_reorder(w, p);
	draw_dup(w, p);
	draw_corrupt(w, p);
	draw_async(w, p);
	draw_stall(w, p);
	p->lossless = false;
	if (sim_chance(w, 300))
		draw_blackout(w, p);
	if (sim_chance(w, 300))
		draw_nomem(w, p);
	if (sim_chance(w, 200))
		draw_destroy(w, p);
}

#define ROW(n) { #n, draw_##n }

const struct sim_scenario sim_scenarios[] = {
	{ "base", draw_base },	/* drawn before any other, too */
	ROW(clean),
	ROW(loss),
	ROW(heavy_loss),
	ROW(reorder),
	ROW(dup),
	ROW(corrupt),
	ROW(narrow),
	ROW(wide),
	ROW(mtu),
	ROW(blackout),
	ROW(stall),
	ROW(async),
	ROW(keys),
	ROW(window),
	ROW(memory),
	ROW(nomem),
	ROW(reset),
	ROW(ecn),
	ROW(ecn_broken),
	ROW(vanish),
	ROW(destroy),
	ROW(close),
	ROW(chaos),
	ROW(hs),
	ROW(hs_loss),
	ROW(hs_reorder),
	ROW(hs_corrupt),
	ROW(hs_async),
	ROW(hs_nomem),
	ROW(hs_early),
	ROW(hs_vanish),
	ROW(hs_chaos),
};

const u32 sim_nr_scenarios = ARRAY_SIZE(sim_scenarios);
