// SPDX-License-Identifier: GPL-2.0
/*
 * Bytes received in any order, put in order. See reasm.h for what this owns, who calls it,
 * in which context and under which lock.
 *
 * The records form one list by offset. A maximal contiguous group is a run; its first and
 * last record point at each other. An insert looks for its place run by run: bytes inside a
 * run are there already, so records inside a run are never visited, and the number of runs
 * is bounded. In order and near the end of the list (or of the first run) it is one step.
 */
#include "reasm.h"

/*
 * When is a copy better than a reference?
 *
 * Never while hardly anything is pinned: a small message that is read at once is worth no
 * allocation, and a few buffers are a bound of their own. Beyond that, when the bytes are
 * less than an eighth of what their buffer pins; and less than a half once the account is
 * half full, for then memory is dearer than copying.
 */
#define REASM_SLACK		(16U << 10)
#define REASM_COPY_SHIFT	3
#define REASM_COPY_SHIFT_FULL	1

/* Compact buffers grow from the smallest to the largest of these, record and bytes together. */
#define REASM_COMPACT_MIN	128U
#define REASM_COMPACT_MAX	4096U

/* struct reasm_input - the bytes of one insert, trimmed to what is not there at its start */
struct reasm_input {
	u64 off;
	u64 end;
	const u8 *data;
	struct qrdma_buf *buf;
	u32 limit;
	u32 frag_limit;
};

static u64 frag_end(const struct qrdma_frag *frag)
{
	return frag->off + frag->len;
}

/* Tells compact buffers from those of others, too. */
static void reasm_compact_release(struct qrdma_buf *buf)
{
	kfree(buf);
}

/* Bytes that can be copied behind @prev, given that they continue it. */
static u32 reasm_room(const struct qrdma_frag *prev, u64 off)
{
	const struct qrdma_buf *buf;

	if (!prev || frag_end(prev) != off || prev->buf->release != reasm_compact_release)
		return 0;
	buf = prev->buf;
	return buf->data + buf->len - (prev->data + prev->len);
}

/* True size of a compact buffer: twice that of the one it continues, so that few are made. */
static size_t reasm_compact_size(const struct qrdma_frag *prev, u64 off, u32 len)
{
	size_t size = max_t(size_t, sizeof(struct qrdma_buf) + len, REASM_COMPACT_MIN);

	if (prev && frag_end(prev) == off && prev->buf->release == reasm_compact_release)
		size = max_t(size_t, size, min(2 * prev->buf->truesize, REASM_COMPACT_MAX));
	return (size_t)1 << fls64(size - 1);
}

static struct qrdma_buf *reasm_compact_alloc(size_t size)
{
	struct qrdma_buf *buf = kmalloc(size, GFP_ATOMIC);

	if (buf)
		qrdma_buf_init(buf, (u8 *)(buf + 1), size - sizeof(*buf), size,
			       reasm_compact_release);
	return buf;
}

static bool reasm_copies(const struct qrdma_mem *mem, const struct qrdma_buf *buf, u32 len)
{
	u32 shift = mem->used > mem->cap / 2 ? REASM_COPY_SHIFT_FULL : REASM_COPY_SHIFT;

	/* a buffer is charged to one account */
	if (!buf || (buf->pins && buf->mem != mem))
		return true;
	if ((u64)mem->used + qrdma_mem_cost(buf) <= min(REASM_SLACK, mem->cap / 8))
		return false;
	return (u64)len << shift < buf->truesize;
}

static struct qrdma_frag *reasm_first(const struct qrdma_reasm *reasm)
{
	if (list_empty(&reasm->frags))
		return NULL;
	return list_first_entry(&reasm->frags, struct qrdma_frag, node);
}

/* The first record of the run behind @prev, which ends a run; NULL as @prev is the beginning. */
static struct qrdma_frag *reasm_after(const struct qrdma_reasm *reasm,
				      const struct qrdma_frag *prev)
{
	const struct list_head *node = prev ? &prev->node : &reasm->frags;

	if (list_is_last(node, &reasm->frags))
		return NULL;
	return list_entry(node->next, struct qrdma_frag, node);
}

/* The last record of the last run that begins at or before @off, NULL when there is none. */
static struct qrdma_frag *reasm_find(const struct qrdma_reasm *reasm, u64 off)
{
	struct qrdma_frag *first = reasm_first(reasm);
	struct qrdma_frag *next, *tail;

	if (!first || first->off > off)
		return NULL;
	/* at the end: bytes in order, or newer than all others */
	tail = list_last_entry(&reasm->frags, struct qrdma_frag, node);
	if (tail->peer->off <= off)
		return tail;
	/* at the front: the gap that everything waits for */
	next = reasm_after(reasm, first->peer);
	if (next->off > off)
		return first->peer;
	while (tail->peer->off > off)
		tail = list_prev_entry(tail->peer, node);
	return tail;
}

/* Offset of the first byte that is missing. */
static u64 reasm_edge(const struct qrdma_reasm *reasm)
{
	const struct qrdma_frag *first = reasm_first(reasm);

	return first && first->off == reasm->read ? frag_end(first->peer) : reasm->read;
}

/* Make the run that ends with @tail and the one that begins with @head one. */
static void reasm_join(struct qrdma_reasm *reasm, struct qrdma_frag *tail,
		       struct qrdma_frag *head)
{
	struct qrdma_frag *first = tail->peer;
	struct qrdma_frag *last = head->peer;

	first->peer = last;
	last->peer = first;
	reasm->runs--;
}

/* Put @frag between @prev and @next, neighbouring ends of runs (NULL: end of the list). */
static void reasm_link(struct qrdma_reasm *reasm, struct qrdma_frag *prev,
		       struct qrdma_frag *frag, struct qrdma_frag *next)
{
	list_add(&frag->node, prev ? &prev->node : &reasm->frags);
	frag->peer = frag;
	reasm->runs++;
	if (prev && frag_end(prev) == frag->off)
		reasm_join(reasm, prev, frag);
	if (next && frag_end(frag) == next->off)
		reasm_join(reasm, frag, next);
}

/* Copy bytes behind @prev, a compact buffer that has the room. */
static void reasm_append(struct qrdma_reasm *reasm, struct qrdma_frag *prev, const u8 *data,
			 u32 len, struct qrdma_frag *next)
{
	u8 *to = prev->buf->data + (prev->data + prev->len - prev->buf->data);

	memcpy(to, data, len);
	prev->len += len;
	reasm->mem->copied += len;
	if (next && frag_end(prev) == next->off)
		reasm_join(reasm, prev, next);
}

/* One gap's worth of bytes: a charged record in @pending, or none when they can be appended. */
static int reasm_prepare_one(struct qrdma_mem *mem, const struct reasm_input *in,
			     const struct qrdma_frag *prev, u64 off, u32 len,
			     struct list_head *pending)
{
	const u8 *data = in->data + (off - in->off);
	bool copy = reasm_copies(mem, in->buf, len);
	struct qrdma_buf *buf = in->buf;
	struct qrdma_frag *frag;
	size_t cost;

	if (copy && reasm_room(prev, off) >= len)
		return 0;
	if (copy)
		cost = reasm_compact_size(prev, off, len);
	else
		cost = qrdma_mem_cost(buf) + (buf->frag.buf ? sizeof(*frag) : 0);
	if (mem->used + (u64)cost > in->limit || mem->frags >= in->frag_limit) {
		mem->refused++;
		return -ENOBUFS;
	}

	if (copy)
		buf = reasm_compact_alloc(cost);
	frag = buf ? qrdma_frag_new(buf, GFP_ATOMIC) : NULL;
	if (copy)
		qrdma_buf_put(buf);
	if (!frag) {
		mem->nomem++;
		return -ENOMEM;
	}
	if (copy) {
		memcpy(buf->data, data, len);
		data = buf->data;
		mem->copied += len;
	}
	frag->off = off;
	frag->data = data;
	frag->len = len;
	qrdma_frag_charge(mem, frag);
	list_add_tail(&frag->node, pending);
	return 0;
}

/* Everything that can fail: find the gaps that @in fills, make and charge what will fill them. */
static int reasm_prepare(struct qrdma_reasm *reasm, const struct reasm_input *in,
			 struct qrdma_frag *prev, struct list_head *pending)
{
	struct qrdma_frag *frag, *tmp, *next;
	u64 off = in->off;
	u64 stop;
	int err;

	while (off < in->end) {
		next = reasm_after(reasm, prev);
		stop = next ? min(in->end, next->off) : in->end;
		err = reasm_prepare_one(reasm->mem, in, prev, off, stop - off, pending);
		if (err)
			goto undo;
		if (!next)
			break;
		prev = next->peer;
		off = frag_end(prev);
	}
	return 0;

undo:
	list_for_each_entry_safe(frag, tmp, pending, node) {
		list_del(&frag->node);
		qrdma_frag_free(reasm->mem, frag);
	}
	return err;
}

/* What cannot fail: the same walk, now putting the records in. */
static void reasm_apply(struct qrdma_reasm *reasm, const struct reasm_input *in,
			struct qrdma_frag *prev, struct list_head *pending)
{
	struct qrdma_frag *frag, *next, *tail;
	u64 off = in->off;
	u64 stop;

	while (off < in->end) {
		next = reasm_after(reasm, prev);
		stop = next ? min(in->end, next->off) : in->end;
		/* joining runs moves the ends */
		tail = next ? next->peer : NULL;

		frag = list_first_entry_or_null(pending, struct qrdma_frag, node);
		if (frag && frag->off == off) {
			list_del(&frag->node);
			reasm_link(reasm, prev, frag, next);
		} else {
			reasm_append(reasm, prev, in->data + (off - in->off), stop - off, next);
		}
		if (!next)
			break;
		prev = tail;
		off = frag_end(prev);
	}
}

/* One more run? Only bytes that touch no other, and they fill one gap at most in part. */
static bool reasm_isolated(const struct qrdma_reasm *reasm, const struct reasm_input *in,
			   const struct qrdma_frag *prev)
{
	const struct qrdma_frag *next = reasm_after(reasm, prev);

	return !(prev && frag_end(prev) == in->off) && !(next && next->off <= in->end);
}

void qrdma_reasm_init(struct qrdma_reasm *reasm, struct qrdma_mem *mem)
{
	INIT_LIST_HEAD(&reasm->frags);
	reasm->mem = mem;
	reasm->read = 0;
	reasm->runs = 0;
}

int qrdma_reasm_insert(struct qrdma_reasm *reasm, u64 off, const u8 *data, u32 len,
		       struct qrdma_buf *buf)
{
	struct reasm_input in = { .off = off, .end = off + len, .data = data, .buf = buf };
	struct qrdma_mem *mem = reasm->mem;
	struct qrdma_frag *prev;
	LIST_HEAD(pending);
	int err;

	in.off = max(in.off, reasm->read);
	prev = reasm_find(reasm, in.off);
	if (prev)
		in.off = max(in.off, frag_end(prev));
	if (in.off >= in.end)
		return 0;
	in.data += in.off - off;

	in.limit = mem->cap;
	in.frag_limit = mem->frag_cap;
	if (in.off != reasm_edge(reasm)) {
		in.limit -= in.limit / 4;
		in.frag_limit -= in.frag_limit / 4;
		if (reasm->runs >= QRDMA_REASM_RUNS && reasm_isolated(reasm, &in, prev)) {
			mem->refused++;
			return -ENOBUFS;
		}
	}

	err = reasm_prepare(reasm, &in, prev, &pending);
	if (!err)
		reasm_apply(reasm, &in, prev, &pending);
	return err;
}

u64 qrdma_reasm_readable(const struct qrdma_reasm *reasm)
{
	return reasm_edge(reasm) - reasm->read;
}

u32 qrdma_reasm_peek(const struct qrdma_reasm *reasm, u64 skip, struct qrdma_seg *seg, u32 max)
{
	struct qrdma_frag *frag;
	u64 off = reasm->read;
	u32 n = 0;

	list_for_each_entry(frag, &reasm->frags, node) {
		if (n == max || frag->off != off)
			break;
		off = frag_end(frag);
		if (skip >= frag->len) {
			skip -= frag->len;
			continue;
		}
		seg[n].data = frag->data + skip;
		seg[n].len = frag->len - skip;
		seg[n].owner = frag->buf;
		n++;
		skip = 0;
	}
	return n;
}

/* Take the first record out, which is read to its end. */
static void reasm_drop_first(struct qrdma_reasm *reasm, struct qrdma_frag *first)
{
	struct qrdma_frag *tail = first->peer;
	struct qrdma_frag *next;

	if (tail == first) {
		reasm->runs--;
	} else {
		next = list_next_entry(first, node);
		next->peer = tail;
		tail->peer = next;
	}
	list_del(&first->node);
	qrdma_frag_free(reasm->mem, first);
}

u64 qrdma_reasm_consume(struct qrdma_reasm *reasm, u64 len)
{
	u64 left = min(len, qrdma_reasm_readable(reasm));
	struct qrdma_frag *first;
	u64 done = left;
	u32 n;

	while (left) {
		first = reasm_first(reasm);
		n = min_t(u64, left, first->len);
		first->off += n;
		first->data += n;
		first->len -= n;
		reasm->read += n;
		left -= n;
		if (!first->len)
			reasm_drop_first(reasm, first);
	}
	return done;
}

void qrdma_reasm_purge(struct qrdma_reasm *reasm)
{
	struct qrdma_frag *frag, *tmp;

	list_for_each_entry_safe(frag, tmp, &reasm->frags, node) {
		list_del(&frag->node);
		qrdma_frag_free(reasm->mem, frag);
	}
	reasm->runs = 0;
}
