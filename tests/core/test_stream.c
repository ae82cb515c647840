// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of net/qrdma/core/stream.c: what RFC 9000 sections 2 to 4 demand of one end, and two
 * ends that talk over a wire which loses, repeats and reorders.
 */
#include "qtest.h"
#include "stream.h"
#include "tparam.h"

#define CAP	BIT(20)

static u8 pattern(u64 id, u64 off)
{
	return id * 31 + off * 7 + (off >> 8) * 13 + (off >> 16);
}

static void params(struct qrdma_tparams *tp, u64 conn, u64 stream, u64 streams)
{
	memset(tp, 0, sizeof(*tp));
	tp->initial_max_data = conn;
	tp->initial_max_stream_data_bidi_local = stream;
	tp->initial_max_stream_data_bidi_remote = stream;
	tp->initial_max_stream_data_uni = stream;
	tp->initial_max_streams_bidi = streams;
	tp->initial_max_streams_uni = streams;
}

/* A table whose both ends have the same parameters. */
static struct qrdma_streams *table(struct q_test *test, bool server, u64 conn, u64 stream,
				   u64 streams)
{
	struct qrdma_streams *t = q_zalloc(test, sizeof(*t));
	struct qrdma_tparams *tp = q_zalloc(test, sizeof(*tp));

	params(tp, conn, stream, streams);
	Q_ASSERT_EQ(test, qrdma_streams_init(t, server, tp, CAP, CAP), 0);
	qrdma_streams_set_remote(t, tp);
	return t;
}

static void finish(struct q_test *test, struct qrdma_streams *t)
{
	qrdma_streams_destroy(t);
	Q_EXPECT_EQ(test, t->nr, 0);
	Q_EXPECT_TRUE(test, list_empty(&t->tx));
	Q_EXPECT_TRUE(test, list_empty(&t->ctl));
	Q_EXPECT_TRUE(test, list_empty(&t->accept));
	Q_EXPECT_EQ(test, t->rx_mem.used, 0);
	Q_EXPECT_EQ(test, t->rx_mem.frags, 0);
	Q_EXPECT_EQ(test, t->tx_mem.used, 0);
	Q_EXPECT_EQ(test, t->tx_mem.frags, 0);
}

/* A STREAM frame with pattern bytes arrives. Return: 0, errno, or the QUIC error code. */
static s64 data(struct qrdma_streams *t, u64 id, u64 off, u32 len, bool fin)
{
	struct qrdma_buf *buf = qrdma_buf_alloc(max(len, 1U), GFP_KERNEL);
	struct qrdma_frame f = { .type = QRDMA_FRAME_STREAM };
	u64 verdict = 0;
	s64 err;
	u32 i;

	for (i = 0; i < len; i++)
		buf->data[i] = pattern(id, off + i);
	f.stream.id = id;
	f.stream.off = off;
	f.stream.len = len;
	f.stream.fin = fin;
	f.stream.data = buf->data;
	err = qrdma_streams_on_frame(t, &f, buf, &verdict);
	qrdma_buf_put(buf);
	return err == -EPROTO ? verdict : err;
}

static s64 reset(struct qrdma_streams *t, u64 id, u64 code, u64 final)
{
	struct qrdma_frame f = { .type = QRDMA_FRAME_RESET_STREAM };
	u64 verdict = 0;
	s64 err;

	f.reset.id = id;
	f.reset.code = code;
	f.reset.final_size = final;
	err = qrdma_streams_on_frame(t, &f, NULL, &verdict);
	return err == -EPROTO ? verdict : err;
}

static s64 stop(struct qrdma_streams *t, u64 id, u64 code)
{
	struct qrdma_frame f = { .type = QRDMA_FRAME_STOP_SENDING };
	u64 verdict = 0;
	s64 err;

	f.stop.id = id;
	f.stop.code = code;
	err = qrdma_streams_on_frame(t, &f, NULL, &verdict);
	return err == -EPROTO ? verdict : err;
}

static s64 limit(struct qrdma_streams *t, u64 type, u64 id, u64 max)
{
	struct qrdma_frame f = { .type = type };
	u64 verdict = 0;
	s64 err;

	f.max.id = id;
	f.max.max = max;
	err = qrdma_streams_on_frame(t, &f, NULL, &verdict);
	return err == -EPROTO ? verdict : err;
}

/* Write pattern bytes behind what was written, in a chunk with some room behind them. */
static int add(struct qrdma_streams *t, struct qrdma_stream *s, u32 len)
{
	struct qrdma_buf *buf = qrdma_buf_alloc(len + 500, GFP_KERNEL);
	int err;
	u32 i;

	if (!buf)
		return -ENOMEM;
	for (i = 0; i < len; i++)
		buf->data[i] = pattern(s->id, s->tx.end + i);
	err = qrdma_stream_write(t, s, buf, 0, len, GFP_KERNEL);
	qrdma_buf_put(buf);
	return err;
}

/* Take the next STREAM frame and drop its references. */
static bool take(struct qrdma_streams *t, u32 room, struct qrdma_stream_frame *frame)
{
	if (!qrdma_streams_next_frame(t, room, QRDMA_SEG_MAX, frame))
		return false;
	while (frame->nseg)
		qrdma_buf_put(frame->seg[--frame->nseg].owner);
	return true;
}

static void expect_frame(struct q_test *test, struct qrdma_streams *t, u64 id, u64 off, u32 len,
			 bool fin)
{
	struct qrdma_stream_frame frame;

	Q_EXPECT_TRUE(test, qrdma_streams_pending(t));
	Q_ASSERT_TRUE(test, take(t, 2000, &frame));
	Q_EXPECT_EQ(test, frame.id, id);
	Q_EXPECT_EQ(test, frame.off, off);
	Q_EXPECT_EQ(test, frame.len, len);
	Q_EXPECT_EQ(test, frame.fin, fin);
}

static void expect_ctl(struct q_test *test, struct qrdma_streams *t, u64 type, u64 id, u64 max)
{
	struct qrdma_frame f;

	Q_EXPECT_TRUE(test, qrdma_streams_pending_ctl(t));
	Q_EXPECT_FALSE(test, qrdma_streams_next_ctl(t, 1, &f));
	Q_ASSERT_TRUE(test, qrdma_streams_next_ctl(t, 100, &f));
	Q_ASSERT_EQ(test, f.type, type);
	if (type == QRDMA_FRAME_RESET_STREAM) {
		Q_EXPECT_EQ(test, f.reset.id, id);
		Q_EXPECT_EQ(test, f.reset.final_size, max);
	} else if (type == QRDMA_FRAME_STOP_SENDING) {
		Q_EXPECT_EQ(test, f.stop.id, id);
		Q_EXPECT_EQ(test, f.stop.code, max);
	} else {
		Q_EXPECT_EQ(test, f.max.id, id);
		Q_EXPECT_EQ(test, f.max.max, max);
	}
}

static void expect_quiet(struct q_test *test, struct qrdma_streams *t)
{
	struct qrdma_stream_frame frame;
	struct qrdma_frame f;

	Q_EXPECT_FALSE(test, qrdma_streams_pending(t));
	Q_EXPECT_FALSE(test, qrdma_streams_pending_ctl(t));
	Q_EXPECT_FALSE(test, qrdma_streams_next_ctl(t, 100, &f));
	Q_EXPECT_FALSE(test, take(t, 2000, &frame));
}

Q_TEST(stream_is_small)
{
	Q_EXPECT_LT(test, sizeof(struct qrdma_stream), 1024);
	Q_EXPECT_LT(test, sizeof(struct qrdma_streams), 1024);
}

/* RFC 9000 s3.2, s4.6, s19.4, s19.5, s19.8, s19.10, s19.13 */
Q_TEST(stream_ids)
{
	static const struct {
		u64 type;
		u64 id;
		s64 want;
	} c[] = {
		/* the peer's (a client's) first and second stream of each type */
		{ QRDMA_FRAME_STREAM, 0, 0 },
		{ QRDMA_FRAME_STREAM, 4, QRDMA_ERR_STREAM_LIMIT_ERROR },
		{ QRDMA_FRAME_STREAM, 2, 0 },
		{ QRDMA_FRAME_STREAM, 6, QRDMA_ERR_STREAM_LIMIT_ERROR },
		{ QRDMA_FRAME_STREAM, (1ULL << 62) - 4, QRDMA_ERR_STREAM_LIMIT_ERROR },
		{ QRDMA_FRAME_RESET_STREAM, 4, QRDMA_ERR_STREAM_LIMIT_ERROR },
		{ QRDMA_FRAME_STOP_SENDING, 4, QRDMA_ERR_STREAM_LIMIT_ERROR },
		{ QRDMA_FRAME_MAX_STREAM_DATA, 4, QRDMA_ERR_STREAM_LIMIT_ERROR },
		{ QRDMA_FRAME_STREAM_DATA_BLOCKED, 4, QRDMA_ERR_STREAM_LIMIT_ERROR },
		{ QRDMA_FRAME_MAX_STREAM_DATA, 0, 0 },
		{ QRDMA_FRAME_STREAM_DATA_BLOCKED, 2, 0 },
		/* we do not send on it */
		{ QRDMA_FRAME_STOP_SENDING, 2, QRDMA_ERR_STREAM_STATE_ERROR },
		{ QRDMA_FRAME_MAX_STREAM_DATA, 2, QRDMA_ERR_STREAM_STATE_ERROR },
		/* ours, opened */
		{ QRDMA_FRAME_STREAM, 1, 0 },
		{ QRDMA_FRAME_STOP_SENDING, 1, 0 },
		{ QRDMA_FRAME_MAX_STREAM_DATA, 3, 0 },
		/* ours, not opened */
		{ QRDMA_FRAME_STREAM, 5, QRDMA_ERR_STREAM_STATE_ERROR },
		{ QRDMA_FRAME_RESET_STREAM, 5, QRDMA_ERR_STREAM_STATE_ERROR },
		{ QRDMA_FRAME_STOP_SENDING, 5, QRDMA_ERR_STREAM_STATE_ERROR },
		{ QRDMA_FRAME_MAX_STREAM_DATA, 5, QRDMA_ERR_STREAM_STATE_ERROR },
		{ QRDMA_FRAME_STREAM_DATA_BLOCKED, 5, QRDMA_ERR_STREAM_STATE_ERROR },
		{ QRDMA_FRAME_STOP_SENDING, 7, QRDMA_ERR_STREAM_STATE_ERROR },
		/* the peer does not send on it */
		{ QRDMA_FRAME_STREAM, 3, QRDMA_ERR_STREAM_STATE_ERROR },
		{ QRDMA_FRAME_RESET_STREAM, 3, QRDMA_ERR_STREAM_STATE_ERROR },
		{ QRDMA_FRAME_STREAM_DATA_BLOCKED, 3, QRDMA_ERR_STREAM_STATE_ERROR },
		{ QRDMA_FRAME_RESET_STREAM, 0, 0 },
	};
	struct qrdma_streams *t = table(test, true, 1000, 1000, 1);
	s64 got;
	u32 i;

	Q_ASSERT_FALSE(test, IS_ERR(qrdma_streams_open(t, false, GFP_KERNEL)));
	Q_ASSERT_FALSE(test, IS_ERR(qrdma_streams_open(t, true, GFP_KERNEL)));
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		if (c[i].type == QRDMA_FRAME_STREAM)
			got = data(t, c[i].id, 0, 10, false);
		else if (c[i].type == QRDMA_FRAME_RESET_STREAM)
			got = reset(t, c[i].id, 1, 10);
		else if (c[i].type == QRDMA_FRAME_STOP_SENDING)
			got = stop(t, c[i].id, 1);
		else
			got = limit(t, c[i].type, c[i].id, 10);
		if (got != c[i].want)
			Q_FAIL(test, "case %u: %lld", i, got);
	}
	Q_EXPECT_EQ(test, t->nr, 4);
	finish(test, t);
}

Q_TEST(stream_parameters)
{
	struct qrdma_streams *t = q_zalloc(test, sizeof(*t));
	struct qrdma_tparams *tp = q_zalloc(test, sizeof(*tp));
	struct qrdma_stream *s, *u;

	params(tp, 1000, 100, QRDMA_STREAMS_PEER_MAX + 1);
	Q_EXPECT_EQ(test, qrdma_streams_init(t, false, tp, CAP, CAP), -EINVAL);
	params(tp, 1000, 100, 2);
	Q_ASSERT_EQ(test, qrdma_streams_init(t, false, tp, CAP, CAP), 0);
	Q_EXPECT_EQ(test, PTR_ERR(qrdma_streams_open(t, false, GFP_KERNEL)), -EAGAIN);
	tp->initial_max_stream_data_bidi_local = 11;
	tp->initial_max_stream_data_bidi_remote = 12;
	tp->initial_max_stream_data_uni = 13;
	qrdma_streams_set_remote(t, tp);
	Q_EXPECT_EQ(test, qrdma_streams_events(t), QRDMA_STREAM_EV_CREDIT);
	s = qrdma_streams_open(t, false, GFP_KERNEL);
	u = qrdma_streams_open(t, true, GFP_KERNEL);
	Q_ASSERT_FALSE(test, IS_ERR(s) || IS_ERR(u));
	Q_EXPECT_EQ(test, s->tx_flow.max, 12);
	Q_EXPECT_EQ(test, u->tx_flow.max, 13);
	Q_EXPECT_EQ(test, data(t, 1, 0, 0, false), 0);
	Q_EXPECT_EQ(test, qrdma_streams_find(t, 1)->tx_flow.max, 11);
	/* after 0-RTT: limits rise, never fall */
	tp->initial_max_stream_data_bidi_remote = 120;
	tp->initial_max_stream_data_bidi_local = 1;
	qrdma_streams_set_remote(t, tp);
	Q_EXPECT_EQ(test, s->tx_flow.max, 120);
	Q_EXPECT_EQ(test, qrdma_streams_find(t, 1)->tx_flow.max, 11);
	finish(test, t);
}

Q_TEST(stream_credit_of_the_peer)
{
	struct qrdma_streams *t = table(test, true, 1500, 1000, 4);

	Q_EXPECT_EQ(test, data(t, 0, 0, 1000, false), 0);
	Q_EXPECT_EQ(test, data(t, 0, 1000, 0, false), 0);
	Q_EXPECT_EQ(test, data(t, 0, 1000, 1, false), QRDMA_ERR_FLOW_CONTROL_ERROR);
	Q_EXPECT_EQ(test, data(t, 0, (1ULL << 62) - 1, 1, false), QRDMA_ERR_FLOW_CONTROL_ERROR);
	/* repeated bytes use nothing, bytes out of order use all below them */
	Q_EXPECT_EQ(test, data(t, 0, 0, 1000, false), 0);
	Q_EXPECT_EQ(test, data(t, 4, 499, 1, false), 0);
	Q_EXPECT_EQ(test, data(t, 4, 0, 499, false), 0);
	Q_EXPECT_EQ(test, data(t, 8, 0, 1, false), QRDMA_ERR_FLOW_CONTROL_ERROR);
	Q_EXPECT_EQ(test, reset(t, 8, 0, 1), QRDMA_ERR_FLOW_CONTROL_ERROR);
	Q_EXPECT_EQ(test, reset(t, 4, 0, 1001), QRDMA_ERR_FLOW_CONTROL_ERROR);
	Q_EXPECT_EQ(test, t->rx_flow.high, 1500);
	finish(test, t);
}

Q_TEST(stream_grants_at_half)
{
	struct qrdma_streams *t = table(test, true, 1500, 1000, 4);
	struct qrdma_stream *s;

	Q_EXPECT_EQ(test, data(t, 0, 0, 1000, false), 0);
	s = qrdma_streams_find(t, 0);
	Q_EXPECT_EQ(test, qrdma_stream_consume(t, s, 499), 499);
	expect_quiet(test, t);
	Q_EXPECT_EQ(test, qrdma_stream_consume(t, s, 1), 1);
	/* memory is short */
	qrdma_streams_hold(t, true);
	expect_quiet(test, t);
	Q_EXPECT_EQ(test, qrdma_stream_consume(t, s, 300), 300);
	expect_quiet(test, t);
	Q_EXPECT_EQ(test, data(t, 0, 1000, 1, false), QRDMA_ERR_FLOW_CONTROL_ERROR);
	qrdma_streams_hold(t, false);
	expect_ctl(test, t, QRDMA_FRAME_MAX_DATA, 0, 2300);
	expect_ctl(test, t, QRDMA_FRAME_MAX_STREAM_DATA, 0, 1800);
	expect_quiet(test, t);

	/* lost: again, with the latest value; an older one that is lost does not matter */
	Q_EXPECT_EQ(test, qrdma_stream_consume(t, s, 100), 100);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_MAX_DATA, 0, 2300);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_MAX_STREAM_DATA, 0, 1800);
	expect_ctl(test, t, QRDMA_FRAME_MAX_DATA, 0, 2400);
	expect_ctl(test, t, QRDMA_FRAME_MAX_STREAM_DATA, 0, 1900);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_MAX_DATA, 0, 2300);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_MAX_STREAM_DATA, 0, 1800);
	expect_quiet(test, t);

	/* another window, for open streams and for new ones, which begin with what was told */
	qrdma_streams_set_window(t, 10000);
	expect_ctl(test, t, QRDMA_FRAME_MAX_DATA, 0, 10900);
	expect_ctl(test, t, QRDMA_FRAME_MAX_STREAM_DATA, 0, 10900);
	Q_EXPECT_EQ(test, data(t, 4, 0, 1001, false), QRDMA_ERR_FLOW_CONTROL_ERROR);
	Q_EXPECT_EQ(test, data(t, 4, 0, 1000, false), 0);
	expect_ctl(test, t, QRDMA_FRAME_MAX_STREAM_DATA, 4, 10000);

	/* nothing more is granted when the size is known */
	Q_EXPECT_EQ(test, data(t, 0, 1000, 8000, true), 0);
	Q_EXPECT_EQ(test, qrdma_stream_consume(t, s, 8100), 8100);
	expect_ctl(test, t, QRDMA_FRAME_MAX_DATA, 0, 19000);
	expect_quiet(test, t);
	Q_EXPECT_TRUE(test, qrdma_stream_at_eof(s));
	finish(test, t);
}

/* RFC 9000 s4.5 */
Q_TEST(stream_final_size)
{
	struct qrdma_streams *t = table(test, true, 10000, 1000, 4);
	struct qrdma_stream *s;

	Q_EXPECT_EQ(test, data(t, 0, 0, 100, false), 0);
	Q_EXPECT_EQ(test, data(t, 0, 0, 50, true), QRDMA_ERR_FINAL_SIZE_ERROR);
	Q_EXPECT_EQ(test, reset(t, 0, 1, 99), QRDMA_ERR_FINAL_SIZE_ERROR);
	s = qrdma_streams_find(t, 0);
	Q_EXPECT_EQ(test, s->rx_final, U64_MAX);
	Q_EXPECT_EQ(test, data(t, 0, 150, 50, true), 0);
	Q_EXPECT_EQ(test, data(t, 0, 150, 51, false), QRDMA_ERR_FINAL_SIZE_ERROR);
	Q_EXPECT_EQ(test, data(t, 0, 201, 0, false), QRDMA_ERR_FINAL_SIZE_ERROR);
	Q_EXPECT_EQ(test, data(t, 0, 150, 40, true), QRDMA_ERR_FINAL_SIZE_ERROR);
	Q_EXPECT_EQ(test, data(t, 0, 200, 1, true), QRDMA_ERR_FINAL_SIZE_ERROR);
	Q_EXPECT_EQ(test, reset(t, 0, 1, 199), QRDMA_ERR_FINAL_SIZE_ERROR);
	Q_EXPECT_EQ(test, reset(t, 0, 1, 201), QRDMA_ERR_FINAL_SIZE_ERROR);
	Q_EXPECT_EQ(test, data(t, 0, 200, 0, true), 0);
	Q_EXPECT_EQ(test, qrdma_stream_consume(t, s, 999), 100);
	Q_EXPECT_FALSE(test, qrdma_stream_at_eof(s));
	Q_EXPECT_EQ(test, data(t, 0, 100, 50, false), 0);
	/* all is there: a reset now comes too late to matter */
	Q_EXPECT_EQ(test, reset(t, 0, 1, 200), 0);
	Q_EXPECT_EQ(test, qrdma_stream_rx_error(s), 0);
	Q_EXPECT_EQ(test, qrdma_stream_consume(t, s, 999), 100);
	Q_EXPECT_TRUE(test, qrdma_stream_at_eof(s));
	Q_EXPECT_EQ(test, data(t, 0, 0, 200, true), 0);

	/* an empty stream; the end is an event of its own */
	qrdma_streams_events(t);
	Q_EXPECT_EQ(test, data(t, 4, 0, 0, true), 0);
	Q_EXPECT_TRUE(test, qrdma_streams_events(t) & QRDMA_STREAM_EV_READABLE);
	Q_EXPECT_TRUE(test, qrdma_stream_at_eof(qrdma_streams_find(t, 4)));
	Q_EXPECT_EQ(test, data(t, 4, 0, 0, true), 0);
	Q_EXPECT_EQ(test, qrdma_streams_events(t), 0);
	/* the end before the bytes: no event; then the bytes */
	Q_EXPECT_EQ(test, data(t, 8, 10, 0, true), 0);
	Q_EXPECT_FALSE(test, qrdma_streams_events(t) & QRDMA_STREAM_EV_READABLE);
	Q_EXPECT_EQ(test, data(t, 8, 0, 10, false), 0);
	Q_EXPECT_TRUE(test, qrdma_streams_events(t) & QRDMA_STREAM_EV_READABLE);
	finish(test, t);
}

Q_TEST(stream_reset_by_the_peer)
{
	struct qrdma_streams *t = table(test, true, 1000, 1000, 4);
	struct qrdma_stream *s;

	Q_EXPECT_EQ(test, data(t, 0, 0, 100, false), 0);
	Q_EXPECT_EQ(test, data(t, 0, 200, 100, false), 0);
	s = qrdma_streams_find(t, 0);
	Q_EXPECT_EQ(test, qrdma_stream_consume(t, s, 10), 10);
	qrdma_streams_events(t);
	Q_EXPECT_EQ(test, reset(t, 0, 77, 600), 0);
	Q_EXPECT_EQ(test, qrdma_streams_events(t), QRDMA_STREAM_EV_READABLE);
	Q_EXPECT_EQ(test, qrdma_stream_rx_error(s), -ECONNRESET);
	Q_EXPECT_EQ(test, s->rx_code, 77);
	Q_EXPECT_FALSE(test, qrdma_stream_at_eof(s));
	Q_EXPECT_EQ(test, qrdma_stream_readable(s), 0);
	Q_EXPECT_EQ(test, t->rx_mem.used, 0);
	/* up to the final size it counts as read */
	Q_EXPECT_EQ(test, t->rx_flow.read, 600);
	expect_ctl(test, t, QRDMA_FRAME_MAX_DATA, 0, 1600);
	expect_quiet(test, t);
	/* late bytes: checked, dropped */
	Q_EXPECT_EQ(test, data(t, 0, 100, 100, false), 0);
	Q_EXPECT_EQ(test, data(t, 0, 600, 1, false), QRDMA_ERR_FINAL_SIZE_ERROR);
	Q_EXPECT_EQ(test, reset(t, 0, 78, 600), 0);
	Q_EXPECT_EQ(test, reset(t, 0, 78, 601), QRDMA_ERR_FINAL_SIZE_ERROR);
	Q_EXPECT_EQ(test, s->rx_code, 77);
	Q_EXPECT_EQ(test, t->rx_mem.used, 0);
	Q_EXPECT_EQ(test, t->rx_flow.read, 600);
	Q_EXPECT_EQ(test, t->rx_flow.high, 600);

	/* nothing is left to come, but no FIN said that it is the end */
	Q_EXPECT_EQ(test, data(t, 4, 0, 10, false), 0);
	s = qrdma_streams_find(t, 4);
	Q_EXPECT_EQ(test, qrdma_stream_consume(t, s, 5), 5);
	Q_EXPECT_EQ(test, reset(t, 4, 77, 10), 0);
	Q_EXPECT_EQ(test, qrdma_stream_rx_error(s), -ECONNRESET);
	Q_EXPECT_FALSE(test, qrdma_stream_at_eof(s));
	finish(test, t);
}

Q_TEST(stream_stop_reading)
{
	struct qrdma_streams *t = table(test, true, 1000, 1000, 4);
	struct qrdma_stream *s;

	Q_EXPECT_EQ(test, data(t, 0, 0, 100, false), 0);
	Q_EXPECT_EQ(test, data(t, 0, 200, 100, false), 0);
	s = qrdma_streams_find(t, 0);
	qrdma_stream_stop(t, s, 9);
	qrdma_stream_stop(t, s, 10);
	Q_EXPECT_EQ(test, t->rx_mem.used, 0);
	Q_EXPECT_EQ(test, t->rx_flow.read, 300);
	Q_EXPECT_TRUE(test, qrdma_stream_at_eof(s));
	expect_ctl(test, t, QRDMA_FRAME_STOP_SENDING, 0, 9);
	expect_quiet(test, t);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_STOP_SENDING, 0, 0);
	expect_ctl(test, t, QRDMA_FRAME_STOP_SENDING, 0, 9);
	/* what comes in is not kept, its credit goes back; the stream itself gets none */
	Q_EXPECT_EQ(test, data(t, 0, 400, 400, false), 0);
	Q_EXPECT_EQ(test, t->rx_mem.used, 0);
	expect_ctl(test, t, QRDMA_FRAME_MAX_DATA, 0, 1800);
	expect_quiet(test, t);
	qrdma_streams_ctl_acked(t, QRDMA_FRAME_STOP_SENDING, 0, 0);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_STOP_SENDING, 0, 0);
	expect_quiet(test, t);
	Q_EXPECT_EQ(test, reset(t, 0, 9, 1000), 0);
	Q_EXPECT_EQ(test, t->rx_flow.read, 1000);
	Q_EXPECT_EQ(test, qrdma_stream_rx_error(s), 0);

	/* all is there already, read or not: nothing to stop */
	Q_EXPECT_EQ(test, data(t, 4, 0, 100, true), 0);
	qrdma_stream_stop(t, qrdma_streams_find(t, 4), 9);
	expect_quiet(test, t);
	Q_EXPECT_EQ(test, t->rx_mem.used, 0);
	/* a stop that was never sent is not sent when the end comes first */
	Q_EXPECT_EQ(test, data(t, 8, 0, 100, false), 0);
	qrdma_stream_stop(t, qrdma_streams_find(t, 8), 9);
	Q_EXPECT_EQ(test, data(t, 8, 100, 0, true), 0);
	expect_quiet(test, t);
	finish(test, t);
}

Q_TEST(stream_sends)
{
	struct qrdma_streams *t = table(test, false, 10000, 1000, 4);
	struct qrdma_stream_frame frame;
	struct qrdma_stream *s;

	s = qrdma_streams_open(t, false, GFP_KERNEL);
	Q_ASSERT_FALSE(test, IS_ERR(s));
	Q_EXPECT_EQ(test, s->id, 0);
	expect_quiet(test, t);

	/* shown to the peer before there are bytes, again when that was lost */
	qrdma_stream_announce(t, s);
	expect_frame(test, t, 0, 0, 0, false);
	expect_quiet(test, t);
	qrdma_streams_lost(t, 0, 0, 0, false);
	expect_frame(test, t, 0, 0, 0, false);
	qrdma_stream_announce(t, s);
	expect_quiet(test, t);
	Q_EXPECT_EQ(test, add(t, s, 300), 0);
	expect_frame(test, t, 0, 0, 300, false);
	qrdma_streams_lost(t, 0, 0, 0, false);
	expect_quiet(test, t);

	/* F36: SIOCOUTQ, SIOCOUTQNSD */
	Q_EXPECT_EQ(test, add(t, s, 400), 0);
	Q_EXPECT_EQ(test, qrdma_stream_unacked(s), 700);
	Q_EXPECT_EQ(test, qrdma_stream_unsent(s), 400);
	/* all of the frame is in the room that was given: 1 + 1 + 2 + 1 of header */
	Q_EXPECT_FALSE(test, take(t, 4, &frame));
	Q_EXPECT_FALSE(test, take(t, 5, &frame));
	Q_ASSERT_TRUE(test, take(t, 45, &frame));
	Q_EXPECT_EQ(test, frame.len, 40);
	Q_EXPECT_EQ(test, qrdma_stream_finish(t, s), 0);
	Q_EXPECT_EQ(test, qrdma_stream_finish(t, s), 0);
	Q_EXPECT_EQ(test, add(t, s, 1), -EPIPE);
	Q_ASSERT_TRUE(test, take(t, 100, &frame));
	Q_EXPECT_FALSE(test, frame.fin);
	expect_frame(test, t, 0, frame.off + frame.len, 700 - frame.off - frame.len, true);
	expect_quiet(test, t);

	qrdma_streams_acked(t, 0, 0, 300, false);
	Q_EXPECT_TRUE(test, qrdma_streams_events(t) & QRDMA_STREAM_EV_WRITABLE);
	qrdma_streams_acked(t, 0, 500, 200, false);
	qrdma_streams_lost(t, 0, 300, 400, true);
	expect_frame(test, t, 0, 300, 200, false);
	expect_frame(test, t, 0, 700, 0, true);
	qrdma_streams_acked(t, 0, 300, 200, false);
	Q_EXPECT_FALSE(test, qrdma_stream_all_acked(s));
	Q_EXPECT_EQ(test, t->tx_mem.used, 0);
	Q_EXPECT_FALSE(test, qrdma_streams_events(t) & QRDMA_STREAM_EV_ACKED);
	qrdma_streams_lost(t, 0, 700, 0, true);
	expect_frame(test, t, 0, 700, 0, true);
	qrdma_streams_acked(t, 0, 700, 0, true);
	Q_EXPECT_TRUE(test, qrdma_stream_all_acked(s));
	Q_EXPECT_TRUE(test, qrdma_streams_events(t) & QRDMA_STREAM_EV_ACKED);
	/* finished: the peer's STOP_SENDING and our reset mean nothing */
	Q_EXPECT_EQ(test, stop(t, 0, 5), 0);
	Q_EXPECT_EQ(test, qrdma_stream_reset(t, s, 5), 0);
	expect_quiet(test, t);
	finish(test, t);
}

Q_TEST(stream_blocked_on_both_levels)
{
	struct qrdma_streams *t = table(test, false, 1500, 1000, 4);
	struct qrdma_stream *s, *u;

	s = qrdma_streams_open(t, false, GFP_KERNEL);
	u = qrdma_streams_open(t, false, GFP_KERNEL);
	Q_ASSERT_FALSE(test, IS_ERR(s) || IS_ERR(u));
	Q_EXPECT_EQ(test, add(t, s, 1200), 0);
	expect_frame(test, t, 0, 0, 1000, false);
	expect_ctl(test, t, QRDMA_FRAME_STREAM_DATA_BLOCKED, 0, 1000);
	expect_quiet(test, t);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_STREAM_DATA_BLOCKED, 0, 1000);
	expect_ctl(test, t, QRDMA_FRAME_STREAM_DATA_BLOCKED, 0, 1000);
	/* FIN waits for the bytes before it */
	Q_EXPECT_EQ(test, qrdma_stream_finish(t, s), 0);
	expect_quiet(test, t);

	Q_EXPECT_EQ(test, add(t, u, 600), 0);
	expect_frame(test, t, 4, 0, 500, false);
	expect_ctl(test, t, QRDMA_FRAME_DATA_BLOCKED, 0, 1500);
	expect_quiet(test, t);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_DATA_BLOCKED, 0, 1500);
	expect_ctl(test, t, QRDMA_FRAME_DATA_BLOCKED, 0, 1500);
	/* bytes sent again need no credit */
	qrdma_streams_lost(t, 4, 100, 50, false);
	expect_frame(test, t, 4, 100, 50, false);
	expect_quiet(test, t);
	Q_EXPECT_EQ(test, t->tx_flow.sent, 1500);

	/* stream credit alone does not help, connection credit does */
	Q_EXPECT_EQ(test, limit(t, QRDMA_FRAME_MAX_STREAM_DATA, 0, 1100), 0);
	expect_quiet(test, t);
	Q_EXPECT_EQ(test, limit(t, QRDMA_FRAME_MAX_DATA, 0, 1550), 0);
	expect_frame(test, t, 4, 500, 50, false);
	expect_ctl(test, t, QRDMA_FRAME_DATA_BLOCKED, 0, 1550);
	Q_EXPECT_EQ(test, limit(t, QRDMA_FRAME_MAX_DATA, 0, 9999), 0);
	/* streams take turns */
	expect_frame(test, t, 0, 1000, 100, false);
	expect_frame(test, t, 4, 550, 50, false);
	expect_ctl(test, t, QRDMA_FRAME_STREAM_DATA_BLOCKED, 0, 1100);
	Q_EXPECT_EQ(test, limit(t, QRDMA_FRAME_MAX_STREAM_DATA, 0, 1200), 0);
	expect_frame(test, t, 0, 1100, 100, true);
	expect_quiet(test, t);
	finish(test, t);
}

Q_TEST(stream_reset_by_us)
{
	struct qrdma_streams *t = table(test, false, 10000, 1000, 4);
	struct qrdma_stream_frame frame;
	struct qrdma_stream *s;

	s = qrdma_streams_open(t, false, GFP_KERNEL);
	Q_ASSERT_FALSE(test, IS_ERR(s));
	Q_EXPECT_EQ(test, add(t, s, 500), 0);
	Q_ASSERT_TRUE(test, take(t, 100, &frame));
	Q_EXPECT_EQ(test, qrdma_stream_reset(t, s, 42), 0);
	Q_EXPECT_EQ(test, qrdma_stream_reset(t, s, 43), 0);
	Q_EXPECT_EQ(test, t->tx_mem.used, 0);
	Q_EXPECT_EQ(test, qrdma_stream_unacked(s), 0);
	Q_EXPECT_EQ(test, add(t, s, 1), -EPIPE);
	Q_EXPECT_EQ(test, qrdma_stream_finish(t, s), -EPIPE);
	expect_ctl(test, t, QRDMA_FRAME_RESET_STREAM, 0, frame.len);
	Q_EXPECT_EQ(test, s->reset_code, 42);
	qrdma_streams_lost(t, 0, 0, frame.len, false);
	expect_quiet(test, t);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_RESET_STREAM, 0, 0);
	expect_ctl(test, t, QRDMA_FRAME_RESET_STREAM, 0, frame.len);
	Q_EXPECT_FALSE(test, qrdma_stream_all_acked(s));
	qrdma_streams_ctl_acked(t, QRDMA_FRAME_RESET_STREAM, 0, 0);
	Q_EXPECT_TRUE(test, qrdma_stream_all_acked(s));
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_RESET_STREAM, 0, 0);
	expect_quiet(test, t);

	/* asked for by the peer; what was sent when FIN was out, too */
	s = qrdma_streams_open(t, true, GFP_KERNEL);
	Q_ASSERT_FALSE(test, IS_ERR(s));
	Q_EXPECT_EQ(test, add(t, s, 500), 0);
	Q_EXPECT_EQ(test, qrdma_stream_finish(t, s), 0);
	expect_frame(test, t, 2, 0, 500, true);
	qrdma_streams_acked(t, 2, 500, 0, true);
	qrdma_streams_events(t);
	Q_EXPECT_EQ(test, stop(t, 2, 7), 0);
	Q_EXPECT_TRUE(test, qrdma_streams_events(t) & QRDMA_STREAM_EV_STOPPED);
	Q_EXPECT_EQ(test, stop(t, 2, 8), 0);
	Q_EXPECT_EQ(test, s->reset_code, 7);
	Q_EXPECT_EQ(test, qrdma_stream_can_write(s), -EPIPE);
	/* the application lets go: the reset must reach the peer yet */
	qrdma_stream_release(t, s, 0);
	expect_ctl(test, t, QRDMA_FRAME_RESET_STREAM, 2, 500);
	Q_EXPECT_NOT_NULL(test, qrdma_streams_find(t, 2));
	qrdma_streams_ctl_acked(t, QRDMA_FRAME_RESET_STREAM, 2, 0);
	Q_EXPECT_NULL(test, qrdma_streams_find(t, 2));
	finish(test, t);
}

Q_TEST(stream_limits_of_ours)
{
	struct qrdma_streams *t = table(test, false, 10000, 1000, 1);

	Q_ASSERT_FALSE(test, IS_ERR(qrdma_streams_open(t, false, GFP_KERNEL)));
	expect_quiet(test, t);
	Q_EXPECT_EQ(test, PTR_ERR(qrdma_streams_open(t, false, GFP_KERNEL)), -EAGAIN);
	expect_ctl(test, t, QRDMA_FRAME_STREAMS_BLOCKED_BIDI, 0, 1);
	expect_quiet(test, t);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_STREAMS_BLOCKED_BIDI, 0, 1);
	expect_ctl(test, t, QRDMA_FRAME_STREAMS_BLOCKED_BIDI, 0, 1);
	qrdma_streams_events(t);
	Q_EXPECT_EQ(test, limit(t, QRDMA_FRAME_MAX_STREAMS_UNI, 0, 1), 0);
	Q_EXPECT_EQ(test, limit(t, QRDMA_FRAME_MAX_STREAMS_BIDI, 0, 1), 0);
	Q_EXPECT_EQ(test, qrdma_streams_events(t), 0);
	Q_EXPECT_EQ(test, limit(t, QRDMA_FRAME_MAX_STREAMS_BIDI, 0, 2), 0);
	Q_EXPECT_EQ(test, qrdma_streams_events(t), QRDMA_STREAM_EV_CREDIT);
	Q_ASSERT_FALSE(test, IS_ERR(qrdma_streams_open(t, false, GFP_KERNEL)));
	Q_EXPECT_NOT_NULL(test, qrdma_streams_find(t, 4));
	if (q_fail_alloc(1)) {
		Q_EXPECT_EQ(test, limit(t, QRDMA_FRAME_MAX_STREAMS_BIDI, 0, 3), 0);
		Q_EXPECT_EQ(test, PTR_ERR(qrdma_streams_open(t, false, GFP_KERNEL)), -ENOMEM);
		Q_EXPECT_EQ(test, qrdma_streams_open(t, false, GFP_KERNEL)->id, 8);
	}
	finish(test, t);
}

/* Streams of the peer come, end and are forgotten; others may come then, if that is wanted. */
Q_TEST(stream_limits_of_the_peer)
{
	struct qrdma_streams *t = table(test, true, 10000, 1000, 4);
	struct qrdma_stream *s;
	u64 id;

	/* opens those below it */
	Q_EXPECT_EQ(test, data(t, 8, 0, 10, false), 0);
	Q_EXPECT_TRUE(test, qrdma_streams_events(t) & QRDMA_STREAM_EV_OPENED);
	Q_EXPECT_EQ(test, t->nr, 3);
	for (id = 0; id <= 8; id += 4) {
		s = qrdma_streams_accept(t);
		Q_ASSERT_NOT_NULL(test, s);
		Q_EXPECT_EQ(test, s->id, id);
	}
	Q_EXPECT_NULL(test, qrdma_streams_accept(t));

	/* released, not finished: stopped and finished, but not forgotten */
	qrdma_stream_release(t, qrdma_streams_find(t, 8), 3);
	expect_ctl(test, t, QRDMA_FRAME_STOP_SENDING, 8, 3);
	expect_frame(test, t, 8, 0, 0, true);
	qrdma_streams_acked(t, 8, 0, 0, true);
	Q_EXPECT_NOT_NULL(test, qrdma_streams_find(t, 8));
	Q_EXPECT_EQ(test, reset(t, 8, 3, 20), 0);
	Q_EXPECT_NULL(test, qrdma_streams_find(t, 8));
	Q_EXPECT_EQ(test, t->rx_flow.read, 20);
	/* gone: frames are ignored, it does not come back */
	Q_EXPECT_EQ(test, data(t, 8, 0, 10, false), 0);
	Q_EXPECT_EQ(test, reset(t, 8, 3, 20), 0);
	Q_EXPECT_EQ(test, stop(t, 8, 3), 0);
	Q_EXPECT_EQ(test, limit(t, QRDMA_FRAME_MAX_STREAM_DATA, 8, 9999), 0);
	qrdma_streams_acked(t, 8, 0, 0, true);
	qrdma_streams_lost(t, 8, 0, 0, true);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_STOP_SENDING, 8, 0);
	qrdma_streams_ctl_acked(t, QRDMA_FRAME_STOP_SENDING, 8, 0);
	Q_EXPECT_EQ(test, t->nr, 2);

	/* a second one ends: half of four */
	s = qrdma_streams_find(t, 0);
	Q_EXPECT_EQ(test, data(t, 0, 0, 10, true), 0);
	Q_EXPECT_EQ(test, qrdma_stream_consume(t, s, 10), 10);
	Q_EXPECT_EQ(test, qrdma_stream_reset(t, s, 1), 0);
	expect_ctl(test, t, QRDMA_FRAME_RESET_STREAM, 0, 0);
	qrdma_streams_ctl_acked(t, QRDMA_FRAME_RESET_STREAM, 0, 0);
	qrdma_stream_release(t, s, 0);
	Q_EXPECT_NULL(test, qrdma_streams_find(t, 0));
	expect_quiet(test, t);
	Q_EXPECT_EQ(test, data(t, 16, 0, 10, false), QRDMA_ERR_STREAM_LIMIT_ERROR);
	t->grow[QRDMA_BIDI] = true;
	expect_ctl(test, t, QRDMA_FRAME_MAX_STREAMS_BIDI, 0, 6);
	expect_quiet(test, t);
	qrdma_streams_ctl_lost(t, QRDMA_FRAME_MAX_STREAMS_BIDI, 0, 6);
	expect_ctl(test, t, QRDMA_FRAME_MAX_STREAMS_BIDI, 0, 6);
	Q_EXPECT_EQ(test, data(t, 16, 0, 10, false), 0);
	finish(test, t);
}

/* As many as there may be, ended in another order than they were opened in. */
Q_TEST(stream_many)
{
	struct qrdma_streams *t = table(test, true, 10000, 1000, QRDMA_STREAMS_PEER_MAX);
	const u64 last = 4 * (QRDMA_STREAMS_PEER_MAX - 1);
	struct qrdma_stream *s;
	u64 id, i;

	Q_EXPECT_EQ(test, data(t, last, 0, 1, false), 0);
	Q_EXPECT_EQ(test, data(t, last + 2, 0, 1, false), 0);
	Q_EXPECT_EQ(test, data(t, last + 4, 0, 1, false), QRDMA_ERR_STREAM_LIMIT_ERROR);
	Q_EXPECT_EQ(test, t->nr, 2 * QRDMA_STREAMS_PEER_MAX);
	for (i = 0; i < QRDMA_STREAMS_PEER_MAX; i++) {
		id = 4 * (i * 37 % QRDMA_STREAMS_PEER_MAX) + 2;
		s = qrdma_streams_find(t, id);
		Q_ASSERT_NOT_NULL(test, s);
		Q_ASSERT_EQ(test, s->id, id);
		Q_EXPECT_EQ(test, qrdma_stream_can_write(s), -EPIPE);
		Q_EXPECT_EQ(test, qrdma_stream_reset(t, s, 1), -EPIPE);
		Q_EXPECT_EQ(test, data(t, id, 0, 1, true), 0);
		qrdma_stream_release(t, s, 0);
		Q_EXPECT_NULL(test, qrdma_streams_find(t, id));
		Q_EXPECT_EQ(test, t->nr, 2 * QRDMA_STREAMS_PEER_MAX - 1 - i);
	}
	Q_EXPECT_EQ(test, t->remote[QRDMA_UNI].read, QRDMA_STREAMS_PEER_MAX);

	/* frames of streams take turns, too */
	s = qrdma_streams_find(t, 0);
	Q_EXPECT_EQ(test, qrdma_stream_reset(t, s, 1), 0);
	qrdma_stream_stop(t, s, 2);
	qrdma_stream_stop(t, qrdma_streams_find(t, 4), 3);
	expect_ctl(test, t, QRDMA_FRAME_RESET_STREAM, 0, 0);
	expect_ctl(test, t, QRDMA_FRAME_STOP_SENDING, 4, 3);
	expect_ctl(test, t, QRDMA_FRAME_STOP_SENDING, 0, 2);
	expect_quiet(test, t);
	finish(test, t);
}

/* Fail each allocation of a frame that opens streams and carries bytes to be copied (F34). */
Q_TEST(stream_out_of_memory)
{
	struct qrdma_streams *t = table(test, true, 10000, 1000, 4);
	struct qrdma_frame f = { .type = QRDMA_FRAME_STREAM };
	u8 bytes[100] = { 1, 2, 3 };
	struct qrdma_stream *s;
	unsigned long nth;
	u64 verdict;
	int err;

	if (!q_fail_alloc(0)) {
		finish(test, t);
		Q_SKIP(test, "allocations cannot be made to fail here");
	}
	f.stream.id = 8;
	f.stream.len = sizeof(bytes);
	f.stream.data = bytes;
	f.stream.fin = true;
	for (nth = 1; nth < 100; nth++) {
		q_fail_alloc(1);
		err = qrdma_streams_on_frame(t, &f, NULL, &verdict);
		q_fail_alloc(0);
		Q_EXPECT_EQ(test, err, -ENOMEM);
		Q_EXPECT_EQ(test, t->rx_flow.high, 0);
		Q_EXPECT_EQ(test, t->rx_mem.used, 0);
		q_fail_alloc(nth);
		err = qrdma_streams_on_frame(t, &f, NULL, &verdict);
		q_fail_alloc(0);
		if (!err)
			break;
		Q_ASSERT_EQ(test, err, -ENOMEM);
	}
	Q_EXPECT_EQ(test, err, 0);
	s = qrdma_streams_find(t, 8);
	Q_ASSERT_NOT_NULL(test, s);
	Q_EXPECT_EQ(test, qrdma_stream_consume(t, s, 100), 100);
	Q_EXPECT_TRUE(test, qrdma_stream_at_eof(s));

	/* writing: nothing is in the stream that was not taken, nothing that was taken is lost */
	Q_EXPECT_EQ(test, add(t, s, 100), 0);
	q_fail_alloc(1);
	Q_EXPECT_EQ(test, add(t, s, 100), -ENOMEM);
	q_fail_alloc(0);
	Q_EXPECT_EQ(test, qrdma_stream_unacked(s), 100);
	expect_frame(test, t, 8, 0, 100, false);
	finish(test, t);
}

/*
 * Two ends and a wire.
 */

#define WIRE	512
#define STREAMS	6
#define TOTAL	60000U

struct message {
	bool server;	/* who sent it */
	bool stream;
	bool arrived;
	struct qrdma_frame f;
	struct qrdma_buf *buf;
};

struct end {
	struct qrdma_streams t;
	u64 written[STREAMS];
	u64 read[STREAMS];
	bool eof[STREAMS];
};

struct world {
	struct end end[2];
	struct message wire[WIRE];
	u32 nr;
	u64 seed;
};

static void world_send(struct q_test *test, struct world *w, bool server)
{
	struct qrdma_streams *t = &w->end[server].t;
	struct message *m = &w->wire[w->nr];
	struct qrdma_stream_frame frame;
	u32 i, at = 0;

	if (w->nr == WIRE)
		return;
	memset(m, 0, sizeof(*m));
	m->server = server;
	if (q_rand(&w->seed) % 2 && qrdma_streams_next_ctl(t, 100, &m->f)) {
		w->nr++;
		return;
	}
	if (!qrdma_streams_next_frame(t, 10 + q_rand(&w->seed) % 1500,
				      1 + q_rand(&w->seed) % QRDMA_SEG_MAX, &frame))
		return;
	m->stream = true;
	m->buf = qrdma_buf_alloc(max(frame.len, 1U), GFP_KERNEL);
	m->buf->truesize += 2048;
	for (i = 0; i < frame.nseg; i++) {
		memcpy(m->buf->data + at, frame.seg[i].data, frame.seg[i].len);
		at += frame.seg[i].len;
		qrdma_buf_put(frame.seg[i].owner);
	}
	Q_ASSERT_EQ(test, at, frame.len);
	m->f.type = QRDMA_FRAME_STREAM;
	m->f.stream.id = frame.id;
	m->f.stream.off = frame.off;
	m->f.stream.len = frame.len;
	m->f.stream.fin = frame.fin;
	m->f.stream.data = m->buf->data;
	w->nr++;
}

static void world_arrive(struct q_test *test, struct world *w, struct message *m)
{
	struct qrdma_streams *t = &w->end[!m->server].t;
	u64 verdict = 0;
	int err;

	err = qrdma_streams_on_frame(t, &m->f, m->buf, &verdict);
	/* an honest peer never goes over its credit */
	if (err == -EPROTO)
		Q_FAIL(test, "frame %llu: verdict %llu", m->f.type, verdict);
	m->arrived |= !err;
	Q_ASSERT_LE(test, t->rx_mem.used, t->rx_mem.cap);
}

static void world_verdict(struct world *w, struct message *m)
{
	struct qrdma_streams *t = &w->end[m->server].t;
	const struct qrdma_frame *f = &m->f;
	bool reset = f->type == QRDMA_FRAME_RESET_STREAM || f->type == QRDMA_FRAME_STOP_SENDING;

	if (m->stream && m->arrived)
		qrdma_streams_acked(t, f->stream.id, f->stream.off, f->stream.len, f->stream.fin);
	else if (m->stream)
		qrdma_streams_lost(t, f->stream.id, f->stream.off, f->stream.len, f->stream.fin);
	else if (m->arrived)
		qrdma_streams_ctl_acked(t, f->type, f->max.id, reset ? 0 : f->max.max);
	else
		qrdma_streams_ctl_lost(t, f->type, f->max.id, reset ? 0 : f->max.max);
	qrdma_buf_put(m->buf);
	*m = w->wire[--w->nr];
}

/* Stream number @i is bidirectional stream @i of the client. */
static void world_app(struct q_test *test, struct world *w, bool server)
{
	struct end *e = &w->end[server];
	u32 i = q_rand(&w->seed) % STREAMS;
	struct qrdma_stream *s = qrdma_streams_find(&e->t, 4 * i);
	struct qrdma_seg seg[4];
	u64 off, n;
	u32 j, k, len;
	u8 *at;

	if (!s)
		return;
	len = min_t(u64, 1 + q_rand(&w->seed) % 2000, TOTAL - e->written[i]);
	if (len && q_rand(&w->seed) % 2) {
		n = qrdma_stream_room(s, &at);
		if (n && q_rand(&w->seed) % 2) {
			len = min_t(u64, len, n);
			for (j = 0; j < len; j++)
				at[j] = pattern(s->id, s->tx.end + j);
			qrdma_stream_commit(&e->t, s, len);
			e->written[i] += len;
		} else if (!add(&e->t, s, len)) {
			e->written[i] += len;
		}
		if (e->written[i] == TOTAL)
			Q_EXPECT_EQ(test, qrdma_stream_finish(&e->t, s), 0);
	}

	n = qrdma_stream_peek(s, 0, seg, ARRAY_SIZE(seg));
	off = e->read[i];
	for (j = 0; j < n; j++)
		for (k = 0; k < seg[j].len; k++, off++)
			if (seg[j].data[k] != pattern(4 * i, off))
				Q_FAIL(test, "stream %u: wrong byte at %llu", 4 * i, off);
	n = q_rand(&w->seed) % (off - e->read[i] + 1);
	Q_ASSERT_EQ(test, qrdma_stream_consume(&e->t, s, n), n);
	e->read[i] += n;
	e->eof[i] = qrdma_stream_at_eof(s);
}

static bool world_done(const struct world *w)
{
	u32 i, j;

	for (i = 0; i < 2; i++)
		for (j = 0; j < STREAMS; j++)
			if (!w->end[i].eof[j])
				return false;
	return true;
}

static void world_run(struct q_test *test, struct world *w, u64 seed, u64 window, u32 cap)
{
	struct qrdma_tparams *tp = q_zalloc(test, sizeof(*tp));
	struct message *m;
	u32 i, steps;

	memset(w, 0, sizeof(*w));
	w->seed = seed;
	params(tp, 3 * window, window, STREAMS);
	for (i = 0; i < 2; i++) {
		Q_ASSERT_EQ(test, qrdma_streams_init(&w->end[i].t, i, tp, cap, CAP), 0);
		qrdma_streams_set_remote(&w->end[i].t, tp);
	}
	for (i = 0; i < STREAMS; i++)
		qrdma_stream_announce(&w->end[0].t,
				      qrdma_streams_open(&w->end[0].t, false, GFP_KERNEL));

	for (steps = 0; !world_done(w) && steps < 400000; steps++) {
		switch (q_rand(&w->seed) % 6) {
		case 0:
		case 1:
			world_app(test, w, q_rand(&w->seed) % 2);
			break;
		case 2:
		case 3:
			world_send(test, w, q_rand(&w->seed) % 2);
			break;
		default:
			if (!w->nr)
				break;
			m = &w->wire[q_rand(&w->seed) % w->nr];
			/* one in eight never arrives, one in two again and again */
			if (q_rand(&w->seed) % 8)
				world_arrive(test, w, m);
			if (q_rand(&w->seed) % 2)
				world_verdict(w, m);
		}
		if (q_rand(&w->seed) % 512 == 0)
			qrdma_streams_hold(&w->end[q_rand(&w->seed) % 2].t, q_rand(&w->seed) % 2);
	}
	Q_EXPECT_TRUE(test, world_done(w));
	for (i = 0; i < STREAMS; i++) {
		Q_EXPECT_EQ(test, w->end[0].read[i], TOTAL);
		Q_EXPECT_EQ(test, w->end[1].read[i], TOTAL);
	}

	/* everything released and acknowledged: both tables are empty */
	for (i = 0; i < STREAMS; i++) {
		qrdma_stream_release(&w->end[0].t, qrdma_streams_find(&w->end[0].t, 4 * i), 0);
		qrdma_stream_release(&w->end[1].t, qrdma_streams_find(&w->end[1].t, 4 * i), 0);
	}
	for (steps = 0; w->nr || w->end[0].t.nr || w->end[1].t.nr; steps++) {
		if (steps == 10000)
			Q_FAIL(test, "streams do not end");
		if (w->nr) {
			world_arrive(test, w, &w->wire[0]);
			world_verdict(w, &w->wire[0]);
		}
		world_send(test, w, steps % 2);
		if (steps > 10000)
			break;
	}
	finish(test, &w->end[0].t);
	finish(test, &w->end[1].t);
}

Q_TEST(stream_two_ends)
{
	struct world *w = q_zalloc(test, sizeof(*w));
	u64 seed = q_seed();
	u32 i;

	Q_ASSERT_NOT_NULL(test, w);
	for (i = 0; i < 4; i++)
		world_run(test, w, seed * 1000 + i, 8000, 4 * CAP);
	/* credit over what memory can hold: refused, not acknowledged, sent again */
	for (i = 0; i < 4; i++)
		world_run(test, w, seed * 2000 + i, 16000, 40000);
}

/* 0-RTT was refused: all goes again, within the limits of the new parameters alone. */
Q_TEST(stream_rewinds)
{
	struct qrdma_streams *t = table(test, false, 1000, 800, 3);
	struct qrdma_stream *data = qrdma_streams_open(t, false, GFP_KERNEL);
	struct qrdma_stream *empty = qrdma_streams_open(t, false, GFP_KERNEL);
	struct qrdma_stream *cut = qrdma_streams_open(t, false, GFP_KERNEL);
	struct qrdma_tparams *tp = q_zalloc(test, sizeof(*tp));

	Q_ASSERT_EQ(test, add(t, data, 600), 0);
	Q_ASSERT_EQ(test, qrdma_stream_finish(t, data), 0);
	expect_frame(test, t, 0, 0, 600, true);
	qrdma_stream_announce(t, empty);
	expect_frame(test, t, 4, 0, 0, false);
	Q_ASSERT_EQ(test, add(t, cut, 100), 0);
	expect_frame(test, t, 8, 0, 100, false);
	Q_ASSERT_EQ(test, qrdma_stream_reset(t, cut, 5), 0);
	expect_ctl(test, t, QRDMA_FRAME_RESET_STREAM, 8, 100);

	qrdma_streams_rewind(t);
	Q_EXPECT_EQ(test, t->tx_flow.sent, 0);
	Q_EXPECT_EQ(test, t->tx_flow.max, 0);
	params(tp, 500, 300, 3);
	qrdma_streams_set_remote(t, tp);
	/* the server has seen none of its bytes */
	expect_ctl(test, t, QRDMA_FRAME_RESET_STREAM, 8, 0);
	expect_frame(test, t, 4, 0, 0, false);
	expect_frame(test, t, 0, 0, 300, false);
	Q_EXPECT_EQ(test, t->tx_flow.sent, 300);
	expect_ctl(test, t, QRDMA_FRAME_STREAM_DATA_BLOCKED, 0, 300);
	Q_EXPECT_EQ(test, limit(t, QRDMA_FRAME_MAX_STREAM_DATA, 0, 700), 0);
	expect_frame(test, t, 0, 300, 200, false);
	Q_EXPECT_EQ(test, t->tx_flow.sent, 500);
	finish(test, t);
}

Q_SUITE("qrdma-stream",
	Q_CASE(stream_is_small),
	Q_CASE(stream_ids),
	Q_CASE(stream_parameters),
	Q_CASE(stream_credit_of_the_peer),
	Q_CASE(stream_grants_at_half),
	Q_CASE(stream_final_size),
	Q_CASE(stream_reset_by_the_peer),
	Q_CASE(stream_stop_reading),
	Q_CASE(stream_sends),
	Q_CASE(stream_blocked_on_both_levels),
	Q_CASE(stream_reset_by_us),
	Q_CASE(stream_limits_of_ours),
	Q_CASE(stream_limits_of_the_peer),
	Q_CASE(stream_many),
	Q_CASE(stream_out_of_memory),
	Q_CASE(stream_two_ends),
	Q_CASE(stream_rewinds));
