// SPDX-License-Identifier: GPL-2.0
/* Virtual time, randomness, and what to say when an invariant breaks. */
#include <stdarg.h>
#include "sim.h"

/* SplitMix64 */
u64 sim_rand(struct world *w)
{
	u64 z = w->rng += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

u64 sim_draw(struct world *w, u64 lo, u64 hi)
{
	return lo + sim_rand(w) % (hi - lo + 1);
}

bool sim_chance(struct world *w, u32 mille)
{
	return mille && sim_rand(w) % 1000 < mille;
}

static bool event_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_at(struct world *w, u64 at, void (*fn)(struct world *w, void *arg), void *arg)
{
	struct sim_event e = { max(at, w->now), w->order++, fn, arg };
	u32 i = w->nheap++, up;

	if (w->nheap > w->cap) {
		w->cap = w->cap ? 2 * w->cap : 256;
		w->heap = realloc(w->heap, w->cap * sizeof(*w->heap));
		if (!w->heap)
			shim_die("out of memory", __FILE__, __LINE__);
	}
	for (; i; i = up) {
		up = (i - 1) / 2;
		if (!event_before(&e, &w->heap[up]))
			break;
		w->heap[i] = w->heap[up];
	}
	w->heap[i] = e;
}

bool sim_step(struct world *w)
{
	struct sim_event first, last;
	u32 i = 0, down;

	if (!w->nheap)
		return false;
	first = w->heap[0];
	last = w->heap[--w->nheap];
	while ((down = 2 * i + 1) < w->nheap) {
		if (down + 1 < w->nheap && event_before(&w->heap[down + 1], &w->heap[down]))
			down++;
		if (!event_before(&w->heap[down], &last))
			break;
		w->heap[i] = w->heap[down];
		i = down;
	}
	w->heap[i] = last;
	w->now = first.at;
	w->stamp++;
	first.fn(w, first.arg);
	return true;
}

void sim_fail(struct world *w, const char *fmt, ...)
{
	va_list ap;

	/* the first one says it; what follows is its consequence */
	if (!w->failed) {
		printf("# scenario %s, seed %llu, at %llu us: ", w->name, w->seed, w->now / SIM_US);
		va_start(ap, fmt);
		vprintf(fmt, ap);
		va_end(ap);
		printf("\n# repeat with: sim -S %s -s %llu -n 1 -v\n", w->name, w->seed);
	}
	w->failed = true;
}
