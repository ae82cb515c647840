// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzer of core/reasm.c: the input is a list of calls (insert, read, peek, another cap, failing
 * allocations), compared with a plain array of bytes. What is pinned stays under the cap, and
 * nothing is left at the end.
 */
#include "env.h"
#include "cursor.h"
#include "reasm.h"

#define CHECK(c) do {								\
	if (!(c))								\
		shim_die("does not hold: " #c, __FILE__, __LINE__);		\
} while (0)

#define SPAN	(64U << 10)
#define CAP	(48U << 10)

struct state {
	struct qrdma_reasm r;
	struct qrdma_mem mem;
	u8 byte[SPAN];
	bool have[SPAN];
	u8 next;	/* bytes differ from insert to insert */
	u32 cap;	/* largest cap so far */
};

static struct state st;
static u32 pinned;

static void rx_release(struct qrdma_buf *buf)
{
	pinned -= buf->truesize;
	kfree(buf);
}

static struct qrdma_buf *rx_buf(u32 len, u32 truesize)
{
	unsigned long fail_at = shim_mem.fail_at;
	struct qrdma_buf *buf;

	/* not what is to fail */
	shim_mem.fail_at = 0;
	buf = kmalloc(sizeof(*buf) + len, GFP_KERNEL);
	shim_mem.fail_at = fail_at;
	qrdma_buf_init(buf, (u8 *)(buf + 1), len, truesize, rx_release);
	pinned += truesize;
	return buf;
}

static void check(void)
{
	struct qrdma_frag *frag, *head = NULL, *last = NULL;
	u32 frags = 0, runs = 0;

	list_for_each_entry(frag, &st.r.frags, node) {
		CHECK(frag->len);
		CHECK(frag->off >= (last ? last->off + last->len : st.r.read));
		if (!last || last->off + last->len < frag->off) {
			CHECK(!last || (head->peer == last && last->peer == head));
			head = frag;
			runs++;
		}
		last = frag;
		frags++;
	}
	CHECK(!last || (head->peer == last && last->peer == head));
	CHECK(st.r.runs == runs && runs <= QRDMA_REASM_RUNS + 1);
	CHECK(st.mem.frags == frags);
	CHECK(st.mem.used <= st.cap && pinned <= st.mem.used);
}

static void insert(u32 off, u32 len, u32 pieces, u32 truesize, bool copy)
{
	struct qrdma_buf *buf = rx_buf(max(len, 1U), truesize);
	u32 at, n, i, used, runs;
	int err;

	for (i = 0; i < len; i++)
		buf->data[i] = ++st.next;
	for (at = 0; at < len; at += n) {
		n = min(len - at, len / pieces + 1);
		used = st.mem.used;
		runs = st.r.runs;
		err = qrdma_reasm_insert(&st.r, off + at, buf->data + at, n, copy ? NULL : buf);
		if (err) {
			CHECK(err == -ENOBUFS || err == -ENOMEM);
			CHECK(st.mem.used == used && st.r.runs == runs);
			continue;
		}
		for (i = at; i < at + n; i++) {
			if (off + i < st.r.read || st.have[off + i])
				continue;
			st.have[off + i] = true;
			st.byte[off + i] = buf->data[i];
		}
	}
	qrdma_buf_put(buf);
}

static void look(u32 skip, u32 max)
{
	struct qrdma_seg seg[8];
	u64 readable = 0, off;
	u32 i, n;

	while (st.r.read + readable < SPAN && st.have[st.r.read + readable])
		readable++;
	CHECK(qrdma_reasm_readable(&st.r) == readable);
	n = qrdma_reasm_peek(&st.r, skip, seg, max);
	CHECK((n > 0) == (skip < readable));
	off = st.r.read + skip;
	for (i = 0; i < n; i++) {
		CHECK(seg[i].len && off + seg[i].len <= st.r.read + readable);
		CHECK(!memcmp(seg[i].data, st.byte + off, seg[i].len));
		off += seg[i].len;
	}
}

int LLVMFuzzerTestOneInput(const u8 *input, size_t size);

int LLVMFuzzerTestOneInput(const u8 *input, size_t size)
{
	struct qrdma_cursor c;
	u16 a, b;
	u8 op, x;

	memset(&st, 0, sizeof(st));
	st.cap = CAP;
	qrdma_mem_init(&st.mem, CAP);
	qrdma_reasm_init(&st.r, &st.mem);
	qrdma_cursor_init(&c, input, size);
	while (qrdma_cursor_u8(&c, &op) && qrdma_cursor_u16(&c, &a) && qrdma_cursor_u16(&c, &b) &&
	       qrdma_cursor_u8(&c, &x)) {
		shim_mem.fail_at = op & 0x80 ? 1 + (x >> 4) : 0;
		switch (op & 7) {
		case 0:
		case 1:		/* anywhere */
			b = min_t(u32, b % 2048, SPAN - a);
			insert(a, b, 1 + (x & 7), 256U << (op >> 4 & 7), op & 8);
			break;
		case 2:
		case 3:		/* where it goes on */
			a = min_t(u64, st.r.read + qrdma_reasm_readable(&st.r) + a % 64, SPAN - 1);
			b = min_t(u32, b % 2048, SPAN - a);
			insert(a, b, 1 + (x & 7), 256U << (op >> 4 & 7), op & 8);
			break;
		case 4:
			look(a, 1 + (x & 7));
			break;
		case 5:
		case 6:
			qrdma_reasm_consume(&st.r, a);
			break;
		case 7:
			qrdma_mem_set_cap(&st.mem, max_t(u32, a, 8192));
			st.cap = max(st.cap, st.mem.cap);
			break;
		}
		shim_mem.fail_at = 0;
		check();
		look(0, 8);
	}
	qrdma_reasm_purge(&st.r);
	check();
	CHECK(!st.mem.used && !st.mem.frags && !pinned);
	return 0;
}
