// SPDX-License-Identifier: GPL-2.0
/*
 * Bytes written and not yet acknowledged. See sendq.h for what this owns, who calls it, in
 * which context and under which lock.
 *
 * una <= nxt <= end. Chunks are freed in order, when every byte is below una; what is
 * acknowledged beyond it is noted, so that it is not sent again.
 */
#include "sendq.h"

static void spans_init(struct qrdma_spans *set)
{
	set->span = set->first;
	set->nr = 0;
	set->room = QRDMA_SENDQ_SPANS_MIN;
}

/* Empty, and back to the array that needs no memory. */
static void spans_reset(struct qrdma_spans *set, struct qrdma_mem *mem)
{
	if (set->span != set->first) {
		mem->used -= set->room * sizeof(*set->span);
		kfree(set->span);
	}
	spans_init(set);
}

static bool spans_grow(struct qrdma_spans *set, struct qrdma_mem *mem)
{
	u32 room = 2 * set->room;
	struct qrdma_span *span;

	if (set->room == QRDMA_SENDQ_SPANS)
		return false;
	span = kmalloc_array(room, sizeof(*span), GFP_ATOMIC);
	if (!span) {
		mem->nomem++;
		return false;
	}
	memcpy(span, set->span, set->nr * sizeof(*span));
	mem->used += room * sizeof(*span);
	if (set->span != set->first) {
		mem->used -= set->room * sizeof(*span);
		kfree(set->span);
	}
	set->span = span;
	set->room = room;
	return true;
}

/* Index of the first range that ends behind @pos. */
static u32 spans_find(const struct qrdma_spans *set, u64 pos)
{
	u32 lo = 0;
	u32 hi = set->nr;
	u32 mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (set->span[mid].to > pos)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static void spans_remove(struct qrdma_spans *set, u32 i, u32 n)
{
	set->nr -= n;
	memmove(&set->span[i], &set->span[i + n], (set->nr - i) * sizeof(*set->span));
}

static bool spans_insert(struct qrdma_spans *set, u32 i, u64 from, u64 to, struct qrdma_mem *mem)
{
	if (set->nr == set->room && !spans_grow(set, mem))
		return false;
	memmove(&set->span[i + 1], &set->span[i], (set->nr - i) * sizeof(*set->span));
	set->span[i].from = from;
	set->span[i].to = to;
	set->nr++;
	return true;
}

/* Return: false when that would be one range too many; the set is as it was. */
static bool spans_add(struct qrdma_spans *set, u64 from, u64 to, struct qrdma_mem *mem)
{
	/* one that ends at @from touches it */
	u32 i = from ? spans_find(set, from - 1) : 0;
	u32 j = i;

	while (j < set->nr && set->span[j].from <= to)
		j++;
	if (i == j)
		return spans_insert(set, i, from, to, mem);
	set->span[i].from = min(set->span[i].from, from);
	set->span[i].to = max(set->span[j - 1].to, to);
	spans_remove(set, i + 1, j - i - 1);
	return true;
}

/* The same, and when there is no room the nearest range is widened to cover this one, too. */
static void spans_cover(struct qrdma_spans *set, u64 from, u64 to, struct qrdma_mem *mem)
{
	struct qrdma_span *next, *prev;
	u32 i;

	if (spans_add(set, from, to, mem))
		return;
	i = spans_find(set, from);
	next = i < set->nr ? &set->span[i] : NULL;
	prev = i ? &set->span[i - 1] : NULL;
	if (!prev || (next && next->from - to < from - prev->to))
		next->from = from;
	else
		prev->to = to;
}

/* Take out what lies in [@from, @to), except where that needs a range too many. */
static void spans_del(struct qrdma_spans *set, u64 from, u64 to, struct qrdma_mem *mem)
{
	u32 i = spans_find(set, from);
	struct qrdma_span *span;
	u32 j;

	if (i < set->nr && set->span[i].from < from) {
		span = &set->span[i];
		if (span->to > to) {
			u64 end = span->to;

			if (spans_insert(set, i + 1, to, end, mem))
				set->span[i].to = from;
			return;
		}
		span->to = from;
		i++;
	}
	for (j = i; j < set->nr && set->span[j].to <= to; j++)
		;
	if (j < set->nr && set->span[j].from < to)
		set->span[j].from = to;
	spans_remove(set, i, j - i);
}

/* Take out what lies below @pos. */
static void spans_trim(struct qrdma_spans *set, u64 pos)
{
	u32 i = spans_find(set, pos);

	spans_remove(set, 0, i);
	if (set->nr && set->span[0].from < pos)
		set->span[0].from = pos;
}

static u64 chunk_end(const struct qrdma_frag *chunk)
{
	return chunk->off + chunk->len;
}

static struct qrdma_frag *sendq_first(const struct qrdma_sendq *q)
{
	if (list_empty(&q->chunks))
		return NULL;
	return list_first_entry(&q->chunks, struct qrdma_frag, node);
}

static struct qrdma_frag *sendq_after(const struct qrdma_sendq *q, struct qrdma_frag *chunk)
{
	if (list_is_last(&chunk->node, &q->chunks))
		return NULL;
	return list_next_entry(chunk, node);
}

static void sendq_drop_first(struct qrdma_sendq *q, struct qrdma_frag *first)
{
	if (q->cur == first)
		q->cur = sendq_after(q, first);
	if (q->again == first)
		q->again = NULL;
	list_del(&first->node);
	qrdma_frag_free(q->mem, first);
}

/* Let @una pass what is acknowledged behind it, and free what lies below. */
static bool sendq_advance(struct qrdma_sendq *q)
{
	struct qrdma_frag *first;
	bool freed = false;

	spans_trim(&q->acked, q->una);
	if (q->acked.nr && q->acked.span[0].from == q->una) {
		q->una = q->acked.span[0].to;
		spans_remove(&q->acked, 0, 1);
	}
	spans_trim(&q->lost, q->una);
	if (q->una == q->nxt) {
		spans_reset(&q->acked, q->mem);
		spans_reset(&q->lost, q->mem);
	}
	while ((first = sendq_first(q)) && chunk_end(first) <= q->una) {
		sendq_drop_first(q, first);
		freed = true;
	}
	return freed;
}

void qrdma_sendq_init(struct qrdma_sendq *q, struct qrdma_mem *mem)
{
	memset(q, 0, sizeof(*q));
	INIT_LIST_HEAD(&q->chunks);
	q->mem = mem;
	spans_init(&q->lost);
	spans_init(&q->acked);
}

int qrdma_sendq_append(struct qrdma_sendq *q, struct qrdma_buf *buf, u32 off, u32 len, gfp_t gfp)
{
	struct qrdma_mem *mem = q->mem;
	struct qrdma_frag *chunk;
	u64 cost;

	if (off > buf->len || len > buf->len - off || (buf->pins && buf->mem != mem))
		return -EINVAL;
	cost = qrdma_mem_cost(buf) + (buf->frag.buf ? sizeof(*chunk) : 0);
	if (mem->used + cost > mem->cap || mem->frags >= mem->frag_cap) {
		mem->refused++;
		return -ENOBUFS;
	}
	chunk = qrdma_frag_new(buf, gfp);
	if (!chunk) {
		mem->nomem++;
		return -ENOMEM;
	}
	chunk->off = q->end;
	chunk->data = buf->data + off;
	chunk->len = len;
	qrdma_frag_charge(mem, chunk);
	list_add_tail(&chunk->node, &q->chunks);
	if (!q->cur)
		q->cur = chunk;
	q->end += len;
	return 0;
}

u32 qrdma_sendq_room(const struct qrdma_sendq *q, u8 **at)
{
	struct qrdma_frag *last;
	struct qrdma_buf *buf;
	u32 used;

	if (list_empty(&q->chunks))
		return 0;
	last = list_last_entry(&q->chunks, struct qrdma_frag, node);
	buf = last->buf;
	/* a buffer in more than one piece has no room: another piece may lie there */
	if (last != &buf->frag || buf->pins > 1)
		return 0;
	used = last->data + last->len - buf->data;
	*at = buf->data + used;
	return buf->len - used;
}

void qrdma_sendq_commit(struct qrdma_sendq *q, u32 len)
{
	struct qrdma_frag *last = list_last_entry(&q->chunks, struct qrdma_frag, node);

	last->len += len;
	q->end += len;
}

u64 qrdma_sendq_next(struct qrdma_sendq *q, u64 limit, u64 *off)
{
	const struct qrdma_span *lost, *acked;
	u32 i;

	while (q->lost.nr) {
		/* a widened range may cover bytes that were acknowledged */
		lost = &q->lost.span[0];
		i = spans_find(&q->acked, lost->from);
		acked = i < q->acked.nr ? &q->acked.span[i] : NULL;
		if (acked && acked->from <= lost->from) {
			spans_trim(&q->lost, acked->to);
			continue;
		}
		*off = lost->from;
		return (acked ? min(acked->from, lost->to) : lost->to) - lost->from;
	}
	*off = q->nxt;
	limit = min(limit, q->end);
	return limit > q->nxt ? limit - q->nxt : 0;
}

u32 qrdma_sendq_take(struct qrdma_sendq *q, u64 off, u32 len, struct qrdma_seg *seg, u32 max,
		     u32 *nseg)
{
	bool fresh = off == q->nxt;
	struct qrdma_frag *chunk;
	u32 done = 0;
	u32 n = 0;
	u32 skip;

	chunk = fresh ? q->cur : q->again;
	if (!chunk || chunk->off > off)
		chunk = sendq_first(q);
	while (chunk && done < len && n < max) {
		if (chunk_end(chunk) > off + done) {
			skip = off + done - chunk->off;
			seg[n].data = chunk->data + skip;
			seg[n].len = min(chunk->len - skip, len - done);
			seg[n].owner = qrdma_buf_get(chunk->buf);
			done += seg[n].len;
			n++;
			if (fresh)
				q->cur = chunk;
			else
				q->again = chunk;
		}
		chunk = sendq_after(q, chunk);
	}
	*nseg = n;
	if (fresh)
		q->nxt += done;
	else
		spans_trim(&q->lost, off + done);
	return done;
}

bool qrdma_sendq_acked(struct qrdma_sendq *q, u64 off, u64 len)
{
	u64 from = max(off, q->una);
	u64 to = min(off + len, q->nxt);

	if (from >= to)
		return false;
	if (from > q->una && !spans_add(&q->acked, from, to, q->mem)) {
		/* no way to remember it: the peer gets these bytes again */
		spans_cover(&q->lost, from, to, q->mem);
		return false;
	}
	spans_del(&q->lost, from, to, q->mem);
	if (from == q->una)
		q->una = to;
	return sendq_advance(q);
}

bool qrdma_sendq_lost(struct qrdma_sendq *q, u64 off, u64 len)
{
	u64 from = max(off, q->una);
	u64 to = min(off + len, q->nxt);
	const struct qrdma_span *acked;
	bool again = false;
	u64 stop;
	u32 i;

	while (from < to) {
		i = spans_find(&q->acked, from);
		acked = i < q->acked.nr ? &q->acked.span[i] : NULL;
		if (acked && acked->from <= from) {
			from = acked->to;
			continue;
		}
		stop = acked ? min(acked->from, to) : to;
		spans_cover(&q->lost, from, stop, q->mem);
		from = stop;
		again = true;
	}
	return again;
}

void qrdma_sendq_rewind(struct qrdma_sendq *q)
{
	/* emptied by a reset: the peer has not seen those bytes either */
	if (list_empty(&q->chunks)) {
		q->una = 0;
		q->end = 0;
	}
	if (WARN_ON_ONCE(q->una))
		return;
	spans_reset(&q->lost, q->mem);
	spans_reset(&q->acked, q->mem);
	q->nxt = 0;
	q->cur = sendq_first(q);
	q->again = NULL;
}

void qrdma_sendq_purge(struct qrdma_sendq *q)
{
	struct qrdma_frag *first;

	while ((first = sendq_first(q)))
		sendq_drop_first(q, first);
	spans_reset(&q->lost, q->mem);
	spans_reset(&q->acked, q->mem);
	q->end = q->nxt;
	q->una = q->nxt;
}
