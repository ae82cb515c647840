// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzer of core/frame.c: the first byte of the input says which packet and which role, the rest
 * is the payload. A frame that is let through lies in the payload, and encoded and decoded again
 * it is the same; one that is refused leaves no trace.
 */
#include "env.h"
#include "frame.h"

#define CHECK(c) do {								\
	if (!(c))								\
		shim_die("does not hold: " #c, __FILE__, __LINE__);		\
} while (0)

static void check_inside(const struct qrdma_cursor *all, const u8 *p, u32 n)
{
	CHECK(p >= all->pos && p + n <= all->end);
}

static void check_ack(const struct qrdma_cursor *all, const struct qrdma_ack *ack)
{
	struct qrdma_range range, last = { 0 };
	struct qrdma_ack_iter it;
	u32 n = 0;

	check_inside(all, ack->wire, ack->wire_len);
	qrdma_ack_iter_init(&it, ack);
	while (qrdma_ack_iter_next(&it, &range)) {
		CHECK(range.lo <= range.hi && range.hi <= QRDMA_PN_MAX);
		CHECK(n ? range.hi + 1 < last.lo : range.hi == ack->largest);
		last = range;
		n++;
	}
	CHECK(n == ack->count + 1);
	CHECK(it.rest.pos == it.rest.end);
}

static void check_content(const struct qrdma_cursor *all, const struct qrdma_frame *f)
{
	switch (f->type) {
	case QRDMA_FRAME_ACK:
	case QRDMA_FRAME_ACK_ECN:
		check_ack(all, &f->ack);
		break;
	case QRDMA_FRAME_CRYPTO:
		check_inside(all, f->crypto.data, f->crypto.len);
		CHECK(f->crypto.off + f->crypto.len <= QRDMA_VARINT_MAX);
		break;
	case QRDMA_FRAME_NEW_TOKEN:
		check_inside(all, f->token.data, f->token.len);
		CHECK(f->token.len);
		break;
	case QRDMA_FRAME_STREAM ... QRDMA_FRAME_STREAM_END:
		check_inside(all, f->stream.data, f->stream.len);
		CHECK(f->stream.off + f->stream.len <= QRDMA_VARINT_MAX);
		break;
	case QRDMA_FRAME_NEW_CONNECTION_ID:
		check_inside(all, f->new_cid.cid, f->new_cid.len);
		check_inside(all, f->new_cid.reset_token, QRDMA_RESET_TOKEN_LEN);
		CHECK(f->new_cid.len >= 1 && f->new_cid.len <= QRDMA_CID_MAX);
		CHECK(f->new_cid.retire_prior_to <= f->new_cid.seq);
		break;
	case QRDMA_FRAME_CLOSE:
	case QRDMA_FRAME_CLOSE_APP:
		check_inside(all, f->close.reason, f->close.len);
		break;
	case QRDMA_FRAME_DATAGRAM:
	case QRDMA_FRAME_DATAGRAM_LEN:
		check_inside(all, f->datagram.data, f->datagram.len);
		break;
	}
}

/* @used: bytes that the frame took on the wire; our encoding is the shortest */
static void check_again(const struct qrdma_frame *f, size_t used, u32 where)
{
	u32 size = qrdma_frame_size(f);
	u8 *one = malloc(size), *two = malloc(size);
	struct qrdma_frame again;
	struct qrdma_cursor c;
	struct qrdma_writer w;

	CHECK(size <= used);
	qrdma_writer_init(&w, one, size - 1);
	CHECK(!qrdma_frame_encode(&w, f));
	qrdma_writer_init(&w, one, size);
	CHECK(qrdma_frame_encode(&w, f));
	CHECK(w.pos == w.end);
	qrdma_cursor_init(&c, one, size);
	CHECK(qrdma_frame_decode(&c, where, &again) == QRDMA_ERR_NO_ERROR);
	CHECK(c.pos == c.end);
	qrdma_writer_init(&w, two, size);
	CHECK(qrdma_frame_encode(&w, &again));
	CHECK(w.pos == w.end && !memcmp(one, two, size));
	free(one);
	free(two);
}

int LLVMFuzzerTestOneInput(const u8 *input, size_t size);

int LLVMFuzzerTestOneInput(const u8 *input, size_t size)
{
	struct qrdma_cursor c, all, before;
	struct qrdma_frame f;
	u32 where;
	u8 *data;
	u64 err;

	if (size < 2)
		return 0;
	where = BIT(*input & 3) | (*input & 4 ? QRDMA_FA_SERVER : QRDMA_FA_CLIENT);
	data = malloc(--size);
	memcpy(data, input + 1, size);
	qrdma_cursor_init(&c, data, size);
	all = c;
	while (qrdma_cursor_left(&c)) {
		before = c;
		err = qrdma_frame_decode(&c, where, &f);
		if (err) {
			CHECK(err == QRDMA_ERR_FRAME_ENCODING_ERROR ||
			      err == QRDMA_ERR_PROTOCOL_VIOLATION);
			CHECK(c.pos == before.pos);
			break;
		}
		CHECK(c.pos > before.pos && c.pos <= all.end);
		CHECK((qrdma_frame_attr(f.type) & where) == where);
		check_content(&all, &f);
		check_again(&f, c.pos - before.pos, where);
	}
	free(data);
	return 0;
}
