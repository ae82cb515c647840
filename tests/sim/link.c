// SPDX-License-Identifier: GPL-2.0
/* One direction of the wire: loses, repeats, breaks, delays and reorders datagrams. */
#include "sim.h"

struct flight {
	struct end *to;
	u32 len;
	u8 ecn;
	u8 data[];
};

static void flight_lands(struct world *w, void *arg)
{
	struct flight *f = arg;
	/* the receive ring is filled ahead: its buffers never fail */
	unsigned long fail_at = shim_mem.fail_at;
	struct qrdma_buf *buf;

	shim_mem.fail_at = 0;
	buf = qrdma_buf_alloc(f->len, GFP_ATOMIC);
	shim_mem.fail_at = fail_at;
	memcpy(buf->data, f->data, f->len);
	end_receive(f->to, buf, f->ecn);
	free(f);
}

static void link_fly(struct world *w, struct sim_link *l, int from, const u8 *data, u32 len,
		     u8 ecn, u64 at)
{
	struct flight *f = malloc(sizeof(*f) + len);
	u32 i, bits;

	f->to = &w->end[!from];
	f->len = len;
	f->ecn = ecn;
	memcpy(f->data, data, len);
	if (sim_chance(w, l->corrupt)) {
		for (bits = sim_draw(w, 1, 4); bits; bits--) {
			i = sim_draw(w, 0, len * 8 - 1);
			f->data[i / 8] ^= 1 << i % 8;
		}
		if (sim_chance(w, 100))
			f->len = sim_draw(w, 1, len);
	}
	sim_at(w, at, flight_lands, f);
}

static u8 link_mark(struct world *w, const struct sim_link *l, u8 ecn)
{
	if (ecn == QRDMA_ECN_NOT_ECT)
		return ecn;
	if (sim_chance(w, l->bleach))
		return QRDMA_ECN_NOT_ECT;
	if (sim_chance(w, l->mangle))
		return QRDMA_ECN_ECT1;
	return sim_chance(w, l->ce) ? QRDMA_ECN_CE : ecn;
}

void link_send(struct world *w, int from, const u8 *data, u32 len, u8 ecn)
{
	struct sim_link *l = &w->p.link[from];
	u64 at = max(w->now, l->busy_until), copies = 1;

	if (w->now < l->dark_until || len > l->mtu || sim_chance(w, l->loss))
		return;
	if (l->rate) {
		if ((at - w->now) * l->rate / SIM_MS > l->queue)
			return;
		at += len * SIM_MS / l->rate;
		l->busy_until = at;
	}
	at += l->delay;
	ecn = link_mark(w, l, ecn);
	copies += sim_chance(w, l->dup);
	while (copies--) {
		u64 when = at + (l->jitter ? sim_draw(w, 0, l->jitter) : 0);

		if (sim_chance(w, l->reorder))
			when += sim_draw(w, 0, 4 * l->delay + 100 * SIM_US);
		link_fly(w, l, from, data, len, ecn, when);
	}
}
