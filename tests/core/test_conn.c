// SPDX-License-Identifier: GPL-2.0
/* Connections: honest ends, time, keys, the end. What dishonest peers do: test_conn_rx.c. */
#include "qpeer.h"
#include "conn_state.h"

/* A client that has been heard and answered. */
static struct qpeer *conn_client(struct q_test *test)
{
	struct qpeer *p = qpeer_new(test, false);

	Q_ASSERT_GT(test, qpeer_take(p), 0);
	qpeer_ack(p, 0, p->got_pn, 0);
	Q_ASSERT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
	Q_ASSERT_TRUE(test, p->ev & QRDMA_EV_ESTABLISHED);
	p->ev = 0;
	return p;
}

Q_TEST(conn_moves_bytes)
{
	struct qpair *p = qpair_new(test);
	u8 *data = q_zalloc(test, 5000), *got = q_zalloc(test, 6000);
	u32 i;

	for (i = 0; i < 5000; i++)
		data[i] = i * 7;
	Q_EXPECT_EQ(test, qpair_write(p->conn[0], data, 5000), 0);
	Q_EXPECT_EQ(test, qrdma_conn_finish(p->conn[0], 0), 0);
	qpair_settle(p);
	Q_EXPECT_TRUE(test, p->ev[1] & QRDMA_EV_ESTABLISHED);
	Q_EXPECT_TRUE(test, p->ev[1] & QRDMA_EV_READABLE);
	Q_EXPECT_TRUE(test, qrdma_conn_rx_complete(p->conn[1], 0));
	Q_EXPECT_FALSE(test, qrdma_conn_at_eof(p->conn[1], 0));
	Q_EXPECT_EQ(test, qrdma_conn_readable(p->conn[1], 0), 5000);
	Q_EXPECT_EQ(test, qpair_read(p->conn[1], got, 6000), 5000);
	Q_EXPECT_MEMEQ(test, got, data, 5000);
	Q_EXPECT_TRUE(test, qrdma_conn_at_eof(p->conn[1], 0));
	Q_EXPECT_EQ(test, qpair_write(p->conn[1], "hello", 5), 0);
	qpair_run(p, NSEC_PER_SEC);
	Q_EXPECT_EQ(test, qpair_read(p->conn[0], got, 6000), 5);
	Q_EXPECT_MEMEQ(test, got, "hello", 5);
	Q_EXPECT_EQ(test, qrdma_conn_unacked(p->conn[0], 0), 0);
	Q_EXPECT_EQ(test, qrdma_conn_unacked(p->conn[1], 0), 0);
	Q_EXPECT_TRUE(test, p->ev[0] & QRDMA_EV_ACKED);
	Q_EXPECT_EQ(test, qrdma_conn_tx_mem(p->conn[0]), 0);
	Q_EXPECT_EQ(test, qrdma_conn_rx_mem(p->conn[1]), 0);
	qpair_free(p);
}

Q_TEST(conn_refuses_config)
{
	struct qrdma_conn_config cfg;
	struct qrdma_tparams tp, bad;
	struct qrdma_conn *conn;
	struct qrdma_cid cid = { .len = 5 };

	qpair_tparams(&tp);
	bad = tp;
	bad.ack_delay_exponent = 21;
	qpair_config(&cfg, false, &bad, &tp);
	Q_EXPECT_EQ(test, qrdma_conn_create(&cfg, 0, &conn, GFP_KERNEL), -EINVAL);
	/* more ids than there is room for */
	bad = tp;
	bad.active_cid_limit = QRDMA_PATH_CIDS + 1;
	qpair_config(&cfg, false, &bad, &tp);
	Q_EXPECT_EQ(test, qrdma_conn_create(&cfg, 0, &conn, GFP_KERNEL), -EINVAL);
	/* a peer that lets us open no stream */
	bad = tp;
	bad.initial_max_streams_bidi = 0;
	qpair_config(&cfg, false, &tp, &bad);
	Q_EXPECT_EQ(test, qrdma_conn_create(&cfg, 0, &conn, GFP_KERNEL), -EINVAL);
	qpair_config(&cfg, false, &tp, &tp);
	cfg.scid = &cid;
	Q_EXPECT_EQ(test, qrdma_conn_create(&cfg, 0, &conn, GFP_KERNEL), -EINVAL);
	qpair_config(&cfg, false, &tp, &tp);
	cfg.max_datagram = 100;
	Q_EXPECT_EQ(test, qrdma_conn_create(&cfg, 0, &conn, GFP_KERNEL), -EINVAL);
	qpair_config(&cfg, false, &tp, &tp);
	cfg.cong = 99;
	Q_EXPECT_EQ(test, qrdma_conn_create(&cfg, 0, &conn, GFP_KERNEL), -EINVAL);
	qrdma_conn_destroy(NULL);
}

Q_TEST(conn_create_without_memory)
{
	struct qrdma_conn_config cfg;
	struct qrdma_tparams tp;
	struct qrdma_conn *conn;
	u32 n;

	qpair_tparams(&tp);
	qpair_config(&cfg, false, &tp, &tp);
	for (n = 1; n < 3; n++) {
		if (!q_fail_alloc(n))
			Q_SKIP(test, "allocations do not fail on demand here");
		Q_EXPECT_EQ(test, qrdma_conn_create(&cfg, 0, &conn, GFP_KERNEL), -ENOMEM);
	}
	q_fail_alloc(0);
	Q_EXPECT_EQ(test, qrdma_conn_create(&cfg, 0, &conn, GFP_KERNEL), 0);
	qrdma_conn_destroy(conn);
}

/* Design: at most 8 KiB for an idle connection, of which the engine has half. */
Q_TEST(conn_is_small)
{
	struct qpair *p = qpair_new(test);

	qpair_settle(p);
	qpair_write(p->conn[0], "x", 1);
	qpair_run(p, 5 * NSEC_PER_SEC);
	Q_EXPECT_EQ(test, p->conn[0]->recovery.app.ring.chunks, 0);
	Q_EXPECT_EQ(test, p->conn[1]->recovery.app.ring.chunks, 0);
	Q_EXPECT_LE(test, sizeof(struct qrdma_conn) + sizeof(struct qrdma_stream), 4096);
	/* and it works on */
	qpair_write(p->conn[1], "y", 1);
	qpair_run(p, NSEC_PER_SEC);
	Q_EXPECT_EQ(test, qrdma_conn_readable(p->conn[0], 0), 1);
	qpair_free(p);
}

/* The server can speak first, because the client opens the stream for it. */
Q_TEST(conn_server_first)
{
	struct qpair *p = qpair_new(test);
	u8 got[10];

	Q_EXPECT_EQ(test, qpair_write(p->conn[1], "banner", 6), -ENOENT);
	Q_EXPECT_EQ(test, qrdma_conn_finish(p->conn[1], 0), -ENOENT);
	qpair_settle(p);
	Q_EXPECT_TRUE(test, p->ev[1] & QRDMA_EV_ESTABLISHED);
	Q_EXPECT_EQ(test, p->sent[0], 1);
	Q_EXPECT_EQ(test, qpair_write(p->conn[1], "banner", 6), 0);
	qpair_settle(p);
	Q_EXPECT_TRUE(test, p->ev[0] & QRDMA_EV_ESTABLISHED);
	Q_EXPECT_EQ(test, qpair_read(p->conn[0], got, 10), 6);
	qpair_free(p);
}

/* The opening frame is lost: a probe repeats it, and only then is the server established. */
Q_TEST(conn_opening_lost)
{
	struct qpair *p = qpair_new(test);

	p->drop[0] = 1;
	qpair_settle(p);
	Q_EXPECT_FALSE(test, p->ev[1] & QRDMA_EV_ESTABLISHED);
	qpair_run(p, NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, p->ev[1] & QRDMA_EV_ESTABLISHED);
	qpair_free(p);
}

Q_TEST(conn_half_close_and_reset)
{
	struct qpair *p = qpair_new(test);
	u8 got[10];

	qpair_settle(p);
	Q_EXPECT_EQ(test, qrdma_conn_finish(p->conn[0], 0), 0);
	Q_EXPECT_EQ(test, qrdma_conn_finish(p->conn[0], 0), 0);
	Q_EXPECT_EQ(test, qpair_write(p->conn[0], "x", 1), -EPIPE);
	qpair_settle(p);
	Q_EXPECT_TRUE(test, qrdma_conn_at_eof(p->conn[1], 0));
	/* the other direction lives */
	Q_EXPECT_EQ(test, qpair_write(p->conn[1], "reply", 5), 0);
	qpair_settle(p);
	Q_EXPECT_EQ(test, qpair_read(p->conn[0], got, 10), 5);
	Q_EXPECT_EQ(test, qpair_write(p->conn[1], "more", 4), 0);
	Q_EXPECT_EQ(test, qrdma_conn_reset(p->conn[1], 0, 3), 0);
	qpair_settle(p);
	Q_EXPECT_EQ(test, qpair_read(p->conn[0], got, 10), -ECONNRESET);
	qpair_free(p);
}

Q_TEST(conn_stop_reading)
{
	struct qpair *p = qpair_new(test);

	qpair_settle(p);
	Q_EXPECT_EQ(test, qrdma_conn_stop_reading(p->conn[1], 0, 4), 0);
	qpair_settle(p);
	Q_EXPECT_TRUE(test, p->ev[0] & QRDMA_EV_WRITABLE);
	Q_EXPECT_EQ(test, qpair_write(p->conn[0], "x", 1), -EPIPE);
	qpair_run(p, NSEC_PER_SEC);
	qpair_free(p);
}

/* Streams that are not there. */
Q_TEST(conn_unknown_stream)
{
	struct qpair *p = qpair_new(test);
	const u8 *data;
	u8 *room;

	Q_EXPECT_EQ(test, qrdma_conn_peek(p->conn[0], 4, 0, &data), -ENOENT);
	Q_EXPECT_EQ(test, qrdma_conn_write_tail(p->conn[0], 4, &room), -ENOENT);
	Q_EXPECT_EQ(test, qrdma_conn_reset(p->conn[0], 4, 0), -ENOENT);
	Q_EXPECT_EQ(test, qrdma_conn_stop_reading(p->conn[0], 4, 0), -ENOENT);
	Q_EXPECT_EQ(test, qrdma_conn_consume(p->conn[0], 4, 1), 0);
	Q_EXPECT_EQ(test, qrdma_conn_readable(p->conn[0], 4), 0);
	Q_EXPECT_EQ(test, qrdma_conn_unacked(p->conn[0], 4), 0);
	Q_EXPECT_EQ(test, qrdma_conn_unsent(p->conn[0], 4), 0);
	Q_EXPECT_FALSE(test, qrdma_conn_at_eof(p->conn[0], 4));
	Q_EXPECT_FALSE(test, qrdma_conn_rx_complete(p->conn[0], 4));
	qrdma_conn_write_commit(p->conn[0], 4, 1);
	qpair_free(p);
}

/* Small writes share a buffer. */
Q_TEST(conn_write_tail)
{
	struct qpair *p = qpair_new(test);
	struct qrdma_buf *buf = qrdma_buf_alloc(100, GFP_KERNEL);
	u8 got[100], *room;
	u32 i;

	qpair_settle(p);
	Q_EXPECT_EQ(test, qrdma_conn_write_tail(p->conn[0], 0, &room), 0);
	memset(buf->data, 'a', 10);
	Q_EXPECT_EQ(test, qrdma_conn_write(p->conn[0], 0, buf, 0, 10), 0);
	qrdma_buf_put(buf);
	for (i = 0; i < 9; i++) {
		Q_ASSERT_EQ(test, qrdma_conn_write_tail(p->conn[0], 0, &room), 90 - 10 * i);
		memset(room, 'b' + i, 10);
		qrdma_conn_write_commit(p->conn[0], 0, 10);
	}
	Q_EXPECT_EQ(test, qrdma_conn_unsent(p->conn[0], 0), 100);
	qpair_settle(p);
	Q_EXPECT_EQ(test, qpair_read(p->conn[1], got, 100), 100);
	for (i = 0; i < 100; i++)
		Q_EXPECT_EQ(test, got[i], 'a' + i / 10);
	qpair_free(p);
}

/* F03: requests and replies, one in flight: none ever waits for a timer. */
Q_TEST(conn_request_reply)
{
	struct qpair *p = qpair_new(test);
	u8 got[64];
	u32 i;

	qpair_settle(p);
	for (i = 0; i < 5000; i++) {
		memset(got, i, sizeof(got));
		Q_ASSERT_EQ(test, qpair_write(p->conn[0], got, 64), 0);
		Q_ASSERT_EQ(test, qpair_flush(p, 0), 1);
		Q_ASSERT_EQ(test, qpair_read(p->conn[1], got, 64), 64);
		Q_ASSERT_EQ(test, qpair_write(p->conn[1], got, 64), 0);
		Q_ASSERT_EQ(test, qpair_flush(p, 1), 1);
		Q_ASSERT_EQ(test, qpair_read(p->conn[0], got, 64), 64);
		Q_ASSERT_EQ(test, got[0], (u8)i);
	}
	Q_EXPECT_EQ(test, p->conn[0]->recovery.stats.lost, 0);
	qpair_free(p);
}

/* Reading opens credit, and the packer is asked for when that is worth telling. */
Q_TEST(conn_credit_follows_reading)
{
	struct qpair *p = qpair_new(test);
	u8 *data = q_zalloc(test, 200000);
	u32 i;

	qpair_settle(p);
	Q_EXPECT_EQ(test, qpair_write(p->conn[0], data, 200000), 0);
	qpair_run(p, NSEC_PER_SEC);
	Q_EXPECT_EQ(test, qrdma_conn_readable(p->conn[1], 0), 200000);
	Q_EXPECT_EQ(test, qrdma_conn_consume(p->conn[1], 0, 1000), 0);
	Q_EXPECT_TRUE(test, qrdma_conn_consume(p->conn[1], 0, 150000) & QRDMA_EV_TX);
	qpair_read(p->conn[1], data, 200000);
	for (i = 0; i < 10; i++) {
		Q_EXPECT_EQ(test, qpair_write(p->conn[0], data, 200000), 0);
		qpair_run(p, NSEC_PER_SEC);
		Q_EXPECT_EQ(test, qpair_read(p->conn[1], data, 200000), 200000);
	}
	qrdma_conn_set_rx_window(p->conn[1], 1000000);
	qpair_settle(p);
	Q_EXPECT_GT(test, p->conn[0]->streams.tx_flow.max, 2200000 + 500000);
	qpair_free(p);
}

/*
 * Time
 */

Q_TEST(conn_idle_timeout)
{
	struct qpeer *p = conn_client(test);
	struct qrdma_conn_error e;
	u64 start = p->now;

	while (!(p->ev & QRDMA_EV_CLOSED)) {
		Q_ASSERT_NE(test, qrdma_conn_deadline(p->conn), QRDMA_NEVER);
		qpeer_wait(p);
	}
	Q_EXPECT_EQ(test, p->now - start, 30 * NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_DRAINED);
	qrdma_conn_error(p->conn, &e);
	Q_EXPECT_EQ(test, e.err, ETIMEDOUT);
	Q_EXPECT_FALSE(test, e.remote);
	/* silently */
	Q_EXPECT_EQ(test, qpeer_take(p), 0);
	Q_EXPECT_EQ(test, qrdma_conn_deadline(p->conn), QRDMA_NEVER);
	qpeer_free(p);
}

/* Writing to a peer that is gone: probes, ever slower, then the idle time-out. */
Q_TEST(conn_peer_gone)
{
	struct qpeer *p = conn_client(test);
	u32 probes = 0, suspect = 0;
	u64 start = p->now;

	qpair_write(p->conn, "x", 1);
	qpeer_drain(p);
	while (!(p->ev & QRDMA_EV_CLOSED)) {
		p->ev = 0;
		qpeer_wait(p);
		suspect += !!(p->ev & QRDMA_EV_SUSPECT);
		while (qpeer_take(p) > 0) {
			probes++;
			/* what is missing is repeated, not only asked for */
			Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_STREAM));
		}
	}
	Q_EXPECT_GT(test, probes, 10);
	Q_EXPECT_LT(test, probes, 100);
	Q_EXPECT_GT(test, suspect, 3);
	Q_EXPECT_LE(test, p->now - start, 31 * NSEC_PER_SEC);
	qpeer_free(p);
}

/* Field case F10: a peer that reads nothing for long is not dead. */
Q_TEST(conn_keepalive)
{
	struct qrdma_conn_config cfg[2];
	struct qrdma_tparams tp;
	struct qpair *p;

	qpair_tparams(&tp);
	qpair_config(&cfg[0], false, &tp, &tp);
	qpair_config(&cfg[1], true, &tp, &tp);
	cfg[0].keepalive = 10 * NSEC_PER_SEC;
	p = qpair_new_cfg(test, cfg);
	qpair_run(p, 600 * NSEC_PER_SEC);
	Q_EXPECT_FALSE(test, (p->ev[0] | p->ev[1]) & QRDMA_EV_CLOSED);
	Q_EXPECT_GT(test, p->sent[0], 55);
	Q_EXPECT_LT(test, p->sent[0], 150);
	qpair_free(p);
}

/* Two idle ends do not acknowledge each other's acknowledgments. */
Q_TEST(conn_is_quiet)
{
	struct qpair *p = qpair_new(test);

	qpair_write(p->conn[0], "x", 1);
	qpair_run(p, NSEC_PER_SEC);
	p->sent[0] = 0;
	p->sent[1] = 0;
	qpair_run(p, 20 * NSEC_PER_SEC);
	Q_EXPECT_EQ(test, p->sent[0] + p->sent[1], 0);
	qpair_free(p);
}

/* An acknowledgment waits for company, but no longer than it may. */
Q_TEST(conn_ack_delay)
{
	struct qpeer *p = qpeer_new(test, true);
	struct qrdma_frame *f;
	u64 at;

	qpeer_stream(p, 0, 0, 10, false);
	qpeer_send(p);
	Q_EXPECT_FALSE(test, p->ev & QRDMA_EV_TX);
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_TIMER);
	Q_EXPECT_EQ(test, qpeer_take(p), 0);
	at = qrdma_conn_deadline(p->conn);
	Q_EXPECT_EQ(test, at, p->now + NSEC_PER_MSEC);
	p->ev = 0;
	qpeer_wait(p);
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_TX);
	/* what was announced is not announced again by the deadline */
	Q_EXPECT_GT(test, qrdma_conn_deadline(p->conn), p->now);
	Q_EXPECT_GT(test, qpeer_take(p), 0);
	f = qpeer_find(p, QRDMA_FRAME_ACK);
	Q_ASSERT_NOT_NULL(test, f);
	Q_EXPECT_EQ(test, f->ack.delay, 1000 >> 3);
	/* two at once: now */
	qpeer_stream(p, 0, 10, 10, false);
	qpeer_send(p);
	qpeer_stream(p, 0, 20, 10, false);
	p->ev = 0;
	qpeer_send(p);
	Q_EXPECT_TRUE(test, p->ev & QRDMA_EV_TX);
	qpeer_free(p);
}

/* F06: the window is full of answers to challenges, which are not repeated when lost. */
Q_TEST(conn_unrepeated_frames_arm_the_timer)
{
	struct qpeer *p = conn_client(test);
	u64 pto = qrdma_recovery_pto(&p->conn->recovery, QRDMA_SPACE_APP), start;
	u32 i, lost = 0;

	/* the minimum window, and every answer is lost */
	p->conn->recovery.cong.s.cwnd = 2 * QPAIR_DATAGRAM;
	for (i = 0; i < 20; i++) {
		qpeer_type(p, QRDMA_FRAME_PATH_CHALLENGE);
		qrdma_writer_bytes(&p->w, "challeng", 8);
		qpeer_send(p);
		lost += qpeer_drain(p);
	}
	Q_EXPECT_GT(test, lost, 0);
	qpair_write(p->conn, "data", 4);
	start = p->now;
	for (i = 0; i < 10 && !qpeer_find(p, QRDMA_FRAME_STREAM); i++) {
		qpeer_wait(p);
		while (!qpeer_find(p, QRDMA_FRAME_STREAM) && qpeer_take(p) > 0)
			;
	}
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_STREAM));
	Q_EXPECT_LE(test, p->now - start, 3 * pto);
	qpeer_free(p);
}

/* A lane was dead: probes leave at once. */
Q_TEST(conn_kick)
{
	struct qpeer *p = conn_client(test);
	u64 cwnd = qrdma_cong_window(&p->conn->recovery.cong);

	Q_EXPECT_FALSE(test, qrdma_conn_kick(p->conn, p->now) & QRDMA_EV_TX);
	qpair_write(p->conn, "lost", 4);
	Q_EXPECT_EQ(test, qpeer_drain(p), 1);
	Q_EXPECT_TRUE(test, qrdma_conn_kick(p->conn, p->now) & QRDMA_EV_TX);
	Q_EXPECT_GT(test, qpeer_take(p), 0);
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_STREAM));
	Q_EXPECT_EQ(test, qrdma_cong_window(&p->conn->recovery.cong), cwnd);
	Q_EXPECT_EQ(test, p->conn->recovery.pto_count, 0);
	qpeer_free(p);
}

/* The path takes less now: what was cut for the old size is cut anew. */
Q_TEST(conn_smaller_path)
{
	struct qpair *p = qpair_new(test);
	u8 *data = q_zalloc(test, 8000);
	u32 i;

	qpair_settle(p);
	for (i = 0; i < 8000; i++)
		data[i] = i * 11;
	/* the wire swallows what is too large now */
	p->drop[0] = 6;
	qpair_write(p->conn[0], data, 8000);
	qpair_flush(p, 0);
	qrdma_conn_set_path(p->conn[0], 700, p->now);
	p->drop[0] = 0;
	while (qpair_step(p, p->now + NSEC_PER_SEC)) {
		if (qrdma_conn_readable(p->conn[1], 0) == 8000)
			break;
	}
	Q_EXPECT_EQ(test, qpair_read(p->conn[1], data, 8000), 8000);
	for (i = 0; i < 8000; i++)
		Q_ASSERT_EQ(test, data[i], (u8)(i * 11));
	qpair_free(p);
}

/* More than one per cent lost is told, and takes the headroom out of the pace. */
Q_TEST(conn_loss_monitor)
{
	struct qpair *p = qpair_new(test);
	u8 *data = q_zalloc(test, 100000);
	u32 i;

	for (i = 0; i < 40 && !(p->ev[0] & QRDMA_EV_LOSS); i++) {
		p->drop[0] = 3;
		qpair_write(p->conn[0], data, 100000);
		qpair_run(p, NSEC_PER_SEC);
		qpair_read(p->conn[1], data, 100000);
	}
	Q_EXPECT_TRUE(test, p->ev[0] & QRDMA_EV_LOSS);
	Q_EXPECT_GT(test, p->conn[0]->recovery.cong.rate_cap, 0);
	p->ev[0] = 0;
	for (i = 0; i < 40; i++) {
		qpair_write(p->conn[0], data, 100000);
		qpair_run(p, NSEC_PER_SEC);
		qpair_read(p->conn[1], data, 100000);
	}
	Q_EXPECT_FALSE(test, p->ev[0] & QRDMA_EV_LOSS);
	Q_EXPECT_EQ(test, p->conn[0]->recovery.cong.rate_cap, 0);
	qpair_free(p);
}

/*
 * Keys
 */

Q_TEST(conn_key_updates)
{
	struct qpair *p = qpair_new(test);
	u32 done = 0, i;

	qpair_settle(p);
	for (i = 0; i < 100; i++) {
		done += !qrdma_conn_key_update(p->conn[i & 1]);
		qpair_write(p->conn[i & 1], "x", 1);
		qpair_run(p, 20 * NSEC_PER_MSEC);
	}
	/* who only followed the last one has nothing acknowledged under it yet, and waits */
	Q_EXPECT_GE(test, done, 45);
	Q_EXPECT_EQ(test, p->conn[0]->app.keys.tx_gen, done);
	Q_EXPECT_EQ(test, p->conn[1]->app.keys.tx_gen, done);
	Q_EXPECT_EQ(test, qrdma_conn_readable(p->conn[1], 0), 50);
	Q_EXPECT_EQ(test, p->conn[0]->n.drops[QRDMA_DROP_AUTH], 0);
	qpair_free(p);
}

/* Field case F15: the limit is 1,000; with next keys the connection moves on by itself. */
Q_TEST(conn_key_limit)
{
	struct qrdma_conn_config cfg[2];
	struct qrdma_tparams tp;
	struct qpair *p;
	u32 i;

	qpair_tparams(&tp);
	qpair_config(&cfg[0], false, &tp, &tp);
	qpair_config(&cfg[1], true, &tp, &tp);
	cfg[0].key_packets_max = 1000;
	p = qpair_new_cfg(test, cfg);
	for (i = 0; i < 5000; i++) {
		qrdma_conn_ping(p->conn[0]);
		qpair_run(p, 3 * NSEC_PER_MSEC);
	}
	Q_EXPECT_EQ(test, p->ev[0] & QRDMA_EV_CLOSED, 0);
	Q_EXPECT_GE(test, p->conn[0]->app.keys.tx_gen, 5);
	Q_EXPECT_LE(test, p->conn[0]->app.keys.tx_gen, 6);
	qpair_free(p);
}

/* The same where the next generation never comes: AEAD_LIMIT_REACHED, told to the peer. */
Q_TEST(conn_key_limit_no_next)
{
	struct qrdma_conn_config cfg[2];
	struct qrdma_conn_error e;
	struct qrdma_tparams tp;
	struct qpair *p;
	u32 i;

	qpair_tparams(&tp);
	qpair_config(&cfg[0], false, &tp, &tp);
	qpair_config(&cfg[1], true, &tp, &tp);
	cfg[0].key_packets_max = 1000;
	p = qpair_new_cfg(test, cfg);
	null_aead.slot_put(p->conn[0]->app.keys.tx_next);
	p->conn[0]->app.keys.tx_next = NULL;
	for (i = 0; i < 1500 && !(p->ev[0] & QRDMA_EV_CLOSED); i++) {
		p->ev[0] &= ~QRDMA_EV_NEED_KEY;
		qrdma_conn_ping(p->conn[0]);
		qpair_flush(p, 0);
		qpair_flush(p, 1);
		p->now += 3 * NSEC_PER_MSEC;
		p->ev[0] |= qrdma_conn_timeout(p->conn[0], p->now);
		p->ev[1] |= qrdma_conn_timeout(p->conn[1], p->now);
	}
	Q_EXPECT_LT(test, i, 1000);
	qrdma_conn_error(p->conn[0], &e);
	Q_EXPECT_EQ(test, e.err, EKEYEXPIRED);
	Q_EXPECT_EQ(test, e.code, QRDMA_ERR_AEAD_LIMIT_REACHED);
	Q_EXPECT_EQ(test, qpair_write(p->conn[0], "x", 1), -EPIPE);
	qpair_flush(p, 0);
	qrdma_conn_error(p->conn[1], &e);
	Q_EXPECT_TRUE(test, e.remote);
	Q_EXPECT_EQ(test, e.code, QRDMA_ERR_AEAD_LIMIT_REACHED);
	qpair_free(p);
}

/* The window takes more packets than the key may seal: they wait for the update, not for the end. */
Q_TEST(conn_key_limit_below_window)
{
	struct qrdma_conn_config cfg;
	struct qrdma_tparams tp;
	struct qpeer *p;
	u32 i, n;

	qpair_tparams(&tp);
	qpair_config(&cfg, false, &tp, &tp);
	cfg.key_packets_max = 20;
	p = qpeer_new_cfg(test, &cfg);
	qpair_derive_ahead(p->conn);
	/* an update frees nothing before its first packet is acknowledged */
	for (i = 0; i < 3; i++) {
		for (n = !!i; n < 30; n++) {
			qrdma_conn_ping(p->conn);
			if (qpeer_take(p) <= 0)
				break;
		}
		Q_EXPECT_EQ(test, n, 12);
		Q_EXPECT_EQ(test, qpeer_take(p), -EAGAIN);
		Q_EXPECT_EQ(test, p->got_gen, i);
		p->now += NSEC_PER_MSEC;
		p->gen = i;
		qpeer_ack(p, p->got_pn, p->got_pn, 0);
		Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
		/* the acknowledgment brings the update, and the peer follows */
		qrdma_conn_ping(p->conn);
		Q_EXPECT_GT(test, qpeer_take(p), 0);
		Q_EXPECT_EQ(test, p->got_gen, i + 1);
		p->gen = i + 1;
		qpeer_type(p, QRDMA_FRAME_PADDING);
		Q_EXPECT_EQ(test, qpeer_send(p), QRDMA_DROP_NONE);
		qpair_derive(p->conn);
	}
	Q_EXPECT_EQ(test, qpeer_error(p), U64_MAX);
	/* nobody answers any more: probes, then the end before the limit */
	for (i = 0; i < 200; i++) {
		qrdma_conn_ping(p->conn);
		qpeer_drain(p);
		if (qpeer_error(p) != U64_MAX)
			break;
		qpeer_wait(p);
	}
	Q_EXPECT_TRUE(test, qrdma_conn_timeout(p->conn, p->now) & QRDMA_EV_CLOSED);
	Q_EXPECT_EQ(test, qpeer_error(p), QRDMA_ERR_AEAD_LIMIT_REACHED);
	Q_EXPECT_GT(test, qpeer_take(p), 0);
	Q_EXPECT_NOT_NULL(test, qpeer_find(p, QRDMA_FRAME_CLOSE));
	qpeer_free(p);
}

/* F18: packet numbers come to their end: the key dies, nothing wraps, nothing more is sent. */
Q_TEST(conn_number_end)
{
	struct qpeer *p = conn_client(test);
	struct qrdma_conn_error e;
	u64 last = QRDMA_PN_MAX - 5;
	int len = 0;
	u32 i;

	p->conn->app.pn.next = last;
	/* the length on the wire goes by what was acknowledged */
	p->conn->recovery.app.largest_acked = last - 1;
	p->got_pn = last - 1;
	for (i = 0; i < 20; i++) {
		qrdma_conn_ping(p->conn);
		len = qpeer_take(p);
		if (len <= 0)
			break;
		Q_EXPECT_EQ(test, p->got_pn, last + i);
	}
	Q_EXPECT_EQ(test, i, 6);
	Q_EXPECT_EQ(test, len, -EKEYEXPIRED);
	p->ev = qrdma_conn_timeout(p->conn, p->now);
	qrdma_conn_error(p->conn, &e);
	Q_EXPECT_TRUE(test, e.closed);
	Q_EXPECT_EQ(test, e.err, EKEYEXPIRED);
	Q_EXPECT_EQ(test, qpeer_take(p), 0);
	Q_EXPECT_NULL(test, p->conn->app.keys.tx_cur);
	qpeer_free(p);
}

Q_TEST(conn_second_install)
{
	struct qpeer *p = qpeer_new(test, false);

	Q_EXPECT_EQ(test, qpair_install(p->conn, true, qpair_secret[0]), -EEXIST);
	Q_EXPECT_EQ(test, qpair_install(p->conn, false, qpair_secret[1]), -EEXIST);
	qpeer_free(p);
}

/* Nothing is sent or accepted before the keys are there. */
Q_TEST(conn_no_keys)
{
	struct qrdma_conn_config cfg;
	enum qrdma_drop drop;
	struct qrdma_tparams tp;
	struct qrdma_conn *conn;
	struct qrdma_tx *tx = q_zalloc(test, sizeof(*tx));
	u8 pkt[64] = { 0x40, 's', 'e', 'r', 'v', 'e', 'r', 'i', 'd' };

	qpair_tparams(&tp);
	qpair_config(&cfg, true, &tp, &tp);
	Q_ASSERT_EQ(test, qrdma_conn_create(&cfg, 0, &conn, GFP_KERNEL), 0);
	tx->data = q_zalloc(test, 2048);
	tx->cap = 2048;
	Q_EXPECT_EQ(test, qrdma_packer_build(conn, tx, 0), 0);
	qpair_rx(conn, pkt, sizeof(pkt), 0, &drop);
	Q_EXPECT_EQ(test, drop, QRDMA_DROP_NO_KEY);
	/* without a key nobody can be told */
	Q_EXPECT_TRUE(test, qrdma_conn_close(conn, 0, true, 0) & QRDMA_EV_DRAINED);
	qrdma_conn_destroy(conn);
}

/*
 * The end
 */

/* A pair whose client has written one byte, which arrived. */
static struct qpair *conn_wrote(struct q_test *test, bool fin)
{
	struct qpair *p = qpair_new(test);

	qpair_settle(p);
	qpair_write(p->conn[0], "x", 1);
	if (fin)
		qrdma_conn_finish(p->conn[0], 0);
	qpair_settle(p);
	return p;
}

Q_TEST(conn_close)
{
	struct qpair *p = conn_wrote(test, true);
	struct qrdma_conn_error e;

	p->ev[0] = qrdma_conn_close(p->conn[0], 0, true, p->now);
	Q_EXPECT_TRUE(test, p->ev[0] & QRDMA_EV_CLOSED);
	/* once */
	Q_EXPECT_FALSE(test, qrdma_conn_close(p->conn[0], 1, true, p->now) & QRDMA_EV_CLOSED);
	qpair_settle(p);
	Q_EXPECT_TRUE(test, p->ev[1] & QRDMA_EV_CLOSED);
	qrdma_conn_error(p->conn[0], &e);
	Q_EXPECT_EQ(test, e.err, 0);
	Q_EXPECT_FALSE(test, e.remote);
	/* all of the client's bytes are there: clean */
	qrdma_conn_error(p->conn[1], &e);
	Q_EXPECT_EQ(test, e.err, 0);
	Q_EXPECT_TRUE(test, e.remote);
	qpair_run(p, NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, p->ev[0] & QRDMA_EV_DRAINED);
	Q_EXPECT_TRUE(test, p->ev[1] & QRDMA_EV_DRAINED);
	qpair_free(p);
}

/* A close in the middle of the data is not an end of file. */
Q_TEST(conn_close_cuts_off)
{
	struct qpair *p = conn_wrote(test, false);
	struct qrdma_conn_error e;

	qrdma_conn_close(p->conn[0], 0, true, p->now);
	qpair_settle(p);
	qrdma_conn_error(p->conn[1], &e);
	Q_EXPECT_EQ(test, e.err, ECONNRESET);
	qpair_free(p);
}

/*
 * Stateless resets (RFC 9000 s10.3)
 */

static const u8 conn_token[QRDMA_RESET_TOKEN_LEN] = "the peer's token";

/* A pair whose client knows a token of the server's. */
static struct qpair *conn_with_token(struct q_test *test)
{
	struct qrdma_tparams tp[2];
	struct qrdma_conn_config cfg[2];

	qpair_tparams(&tp[0]);
	qpair_tparams(&tp[1]);
	tp[1].present |= BIT_ULL(QRDMA_TP_STATELESS_RESET_TOKEN);
	memcpy(tp[1].reset_token, conn_token, sizeof(conn_token));
	qpair_config(&cfg[0], false, &tp[0], &tp[1]);
	qpair_config(&cfg[1], true, &tp[1], &tp[0]);
	return qpair_new_cfg(test, cfg);
}

static void conn_make_reset(u8 *data, u32 len)
{
	memset(data, 0x5a, len);
	memcpy(data + len - sizeof(conn_token), conn_token, sizeof(conn_token));
}

Q_TEST(conn_stateless_reset)
{
	struct qpair *p = conn_with_token(test);
	struct qrdma_conn_error e;
	u8 data[64];
	u32 ev;

	Q_ASSERT_TRUE(test, qrdma_conn_reset_token(p->conn[0]));
	Q_EXPECT_FALSE(test, qrdma_conn_reset_token(p->conn[1]));
	conn_make_reset(data, 40);
	/* the server may not be there yet */
	ev = qrdma_conn_on_stray(p->conn[0], data, 40, p->now);
	Q_EXPECT_FALSE(test, ev & QRDMA_EV_CLOSED);
	qpair_settle(p);
	qpair_write(p->conn[1], "x", 1);
	qpair_settle(p);
	/* it was there just now: what it said before is late */
	ev = qrdma_conn_on_stray(p->conn[0], data, 40, p->now);
	Q_EXPECT_FALSE(test, ev & QRDMA_EV_CLOSED);
	p->now += NSEC_PER_SEC;
	/* too short; one bit is wrong; to an end that knows no token */
	ev = qrdma_conn_on_stray(p->conn[0], data + 20, 20, p->now);
	data[39] ^= 1;
	ev |= qrdma_conn_on_stray(p->conn[0], data, 40, p->now);
	memset(data, 0, sizeof(data));
	ev |= qrdma_conn_on_stray(p->conn[1], data, 40, p->now);
	Q_EXPECT_FALSE(test, ev & QRDMA_EV_CLOSED);
	conn_make_reset(data, QRDMA_RESET_LEN_MIN);
	ev = qrdma_conn_on_stray(p->conn[0], data, QRDMA_RESET_LEN_MIN, p->now);
	Q_EXPECT_TRUE(test, ev & QRDMA_EV_CLOSED);
	qrdma_conn_error(p->conn[0], &e);
	Q_EXPECT_EQ(test, e.err, ECONNRESET);
	Q_EXPECT_TRUE(test, e.remote && e.stateless);
	/* RFC 9000 s10.3.1: it drains, so it says nothing more */
	Q_EXPECT_EQ(test, qpair_flush(p, 0), 0);
	qpair_run(p, NSEC_PER_SEC);
	Q_EXPECT_TRUE(test, p->ev[0] & QRDMA_EV_DRAINED);
	qpair_free(p);
}

/* One that looks like a packet of this connection and does not open */
Q_TEST(conn_stateless_reset_unopened)
{
	struct qpair *p = conn_with_token(test);
	struct qrdma_conn_error e;
	enum qrdma_drop drop;
	u8 data[64];

	qpair_settle(p);
	qpair_write(p->conn[1], "x", 1);
	qpair_settle(p);
	p->now += NSEC_PER_SEC;
	conn_make_reset(data, sizeof(data));
	data[0] = QRDMA_HDR_FIXED;
	memcpy(data + 1, "clientid", 8);
	qpair_rx(p->conn[0], data, sizeof(data), p->now, &drop);
	/* by its key phase bit, which is chance */
	Q_EXPECT_TRUE(test, drop == QRDMA_DROP_AUTH || drop == QRDMA_DROP_NO_KEY);
	qrdma_conn_error(p->conn[0], &e);
	Q_EXPECT_TRUE(test, e.closed && e.stateless);
	Q_EXPECT_EQ(test, e.err, ECONNRESET);
	qpair_free(p);
}

Q_TEST(conn_abort)
{
	struct qpair *p = qpair_new(test);
	struct qrdma_conn_error e;
	u32 ev;

	qpair_settle(p);
	qpair_write(p->conn[0], "x", 1);
	qrdma_conn_abort(p->conn[0]);
	ev = qrdma_conn_close(p->conn[0], 0, true, p->now);
	Q_EXPECT_TRUE(test, ev & QRDMA_EV_CLOSED && ev & QRDMA_EV_DRAINED);
	qrdma_conn_error(p->conn[0], &e);
	Q_EXPECT_EQ(test, e.err, ENETDOWN);
	Q_EXPECT_EQ(test, qpair_flush(p, 0), 0);
	Q_EXPECT_EQ(test, qrdma_conn_tx_mem(p->conn[0]), 0);
	Q_EXPECT_EQ(test, qrdma_conn_key_update(p->conn[0]), -ENOTCONN);
	qrdma_conn_ping(p->conn[0]);
	Q_EXPECT_EQ(test, qpair_flush(p, 0), 0);
	qpair_free(p);
}

Q_TEST(conn_statistics)
{
	struct qpair *p = qpair_new(test);
	struct qrdma_conn_stats s[2];
	u8 *data = q_zalloc(test, 10000);

	qpair_settle(p);
	p->drop[0] = 1;
	qpair_write(p->conn[0], data, 10000);
	qpair_run(p, NSEC_PER_SEC);
	qpair_read(p->conn[1], data, 10000);
	qrdma_conn_stats(p->conn[0], &s[0]);
	qrdma_conn_stats(p->conn[1], &s[1]);
	Q_EXPECT_EQ(test, s[0].bytes_acked, 10000);
	Q_EXPECT_EQ(test, s[1].bytes_delivered, 10000);
	Q_EXPECT_EQ(test, s[0].lost, 1);
	Q_EXPECT_GT(test, s[0].retransmitted_bytes, 1000);
	Q_EXPECT_EQ(test, s[0].sent, s[1].received + 1);
	Q_EXPECT_EQ(test, s[0].sent, s[0].sealed);
	Q_EXPECT_EQ(test, s[1].opened, s[1].received);
	Q_EXPECT_EQ(test, s[0].in_flight, 0);
	Q_EXPECT_GT(test, s[0].srtt, 0);
	Q_EXPECT_EQ(test, s[0].max_datagram, QPAIR_DATAGRAM);
	qpair_free(p);
}

Q_SUITE("qrdma-conn",
	Q_CASE(conn_moves_bytes),
	Q_CASE(conn_refuses_config),
	Q_CASE(conn_create_without_memory),
	Q_CASE(conn_is_small),
	Q_CASE(conn_server_first),
	Q_CASE(conn_opening_lost),
	Q_CASE(conn_half_close_and_reset),
	Q_CASE(conn_stop_reading),
	Q_CASE(conn_unknown_stream),
	Q_CASE(conn_write_tail),
	Q_CASE(conn_request_reply),
	Q_CASE(conn_credit_follows_reading),
	Q_CASE(conn_idle_timeout),
	Q_CASE(conn_peer_gone),
	Q_CASE(conn_keepalive),
	Q_CASE(conn_is_quiet),
	Q_CASE(conn_ack_delay),
	Q_CASE(conn_unrepeated_frames_arm_the_timer),
	Q_CASE(conn_kick),
	Q_CASE(conn_smaller_path),
	Q_CASE(conn_loss_monitor),
	Q_CASE(conn_key_updates),
	Q_CASE(conn_key_limit),
	Q_CASE(conn_key_limit_no_next),
	Q_CASE(conn_key_limit_below_window),
	Q_CASE(conn_number_end),
	Q_CASE(conn_second_install),
	Q_CASE(conn_no_keys),
	Q_CASE(conn_close),
	Q_CASE(conn_close_cuts_off),
	Q_CASE(conn_stateless_reset),
	Q_CASE(conn_stateless_reset_unopened),
	Q_CASE(conn_abort),
	Q_CASE(conn_statistics));
