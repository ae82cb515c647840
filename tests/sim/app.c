// SPDX-License-Identifier: GPL-2.0
/*
 * The two programs: each writes a known sequence of bytes in pieces of any size, reads what the
 * other writes, half closes, resets, stops. Every byte read is compared.
 */
#include "sim.h"

static void app_write(struct world *w, void *arg);
static void app_read(struct world *w, void *arg);

u8 app_byte(u64 seed, int from, u64 off)
{
	return (u8)(((off ^ seed) + from) * 0x9e3779b1u >> 13);
}

static void app_fill(const struct end *e, u64 off, u8 *data, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		data[i] = app_byte(e->w->seed, e->i, off + i);
}

static void app_arm_write(struct end *e, u64 at)
{
	if (!e->app.write_armed)
		sim_at(e->w, at, app_write, e);
	e->app.write_armed = true;
}

static void app_arm_read(struct end *e, u64 at)
{
	if (!e->app.read_armed)
		sim_at(e->w, at, app_read, e);
	e->app.read_armed = true;
}

/* Return: bytes written, or the engine's error. */
static int app_write_some(struct end *e, u32 len)
{
	struct world *w = e->w;
	struct qrdma_buf *buf;
	u32 off, room;
	u8 *tail;
	int n;

	if (sim_chance(w, 600)) {
		n = qrdma_conn_write_tail(e->conn, 0, &tail);
		if (n < 0)
			return n;
		if (n) {
			n = min_t(u32, n, len);
			app_fill(e, e->app.written, tail, n);
			qrdma_conn_write_commit(e->conn, 0, n);
			return n;
		}
	}
	off = sim_chance(w, 100) ? sim_draw(w, 1, 50) : 0;
	room = sim_chance(w, 500) ? sim_draw(w, 0, 8000) : 0;
	buf = qrdma_buf_alloc(off + len + room, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	app_fill(e, e->app.written, buf->data + off, len);
	n = qrdma_conn_write(e->conn, 0, buf, off, len);
	qrdma_buf_put(buf);
	return n ? n : (int)len;
}

/* Write until there is no room, it is time for a pause, or the end. Return: false: not now. */
static bool app_write_more(struct end *e)
{
	const struct sim_script *s = &e->w->p.script[e->i];
	u64 unacked = qrdma_conn_unacked(e->conn, 0), left;
	struct world *w = e->w;
	int n;

	if (e->app.written >= s->reset_at) {
		n = qrdma_conn_reset(e->conn, 0, 7);
		e->app.want_write = n == -ENOENT;
		e->app.was_reset = !n;
		e->app.write_failed = n != -ENOENT;
		return false;
	}
	if (e->app.written == s->bytes) {
		n = qrdma_conn_finish(e->conn, 0);
		if (n == -ENOENT) {
			e->app.want_write = true;
			return false;
		}
		e->app.wrote_all = !n;
		e->app.write_failed = n;
		return false;
	}
	if (unacked >= w->p.tx_room) {
		e->app.want_write = true;
		return false;
	}
	left = min3(min(s->bytes, s->reset_at) - e->app.written, w->p.tx_room - unacked,
		    (u64)s->chunk);
	n = app_write_some(e, sim_draw(w, 1, left));
	if (n > 0) {
		e->app.written += n;
		return true;
	}
	switch (n) {
	case -ENOMEM:
	case -ENOBUFS:
		app_arm_write(e, w->now + SIM_MS);
		break;
	case -ENOENT:
		e->app.want_write = true;
		break;
	case -EPIPE:
		e->app.write_failed = true;
		break;
	default:
		sim_fail(w, "end %d: write says %d", e->i, n);
	}
	return false;
}

static void app_write(struct world *w, void *arg)
{
	struct end *e = arg;
	const struct sim_script *s = &w->p.script[e->i];

	e->app.write_armed = false;
	if (!e->conn || e->app.write_failed || e->app.wrote_all)
		return;
	while (app_write_more(e)) {
		if (s->gap && sim_chance(w, 300)) {
			app_arm_write(e, w->now + sim_draw(w, 0, s->gap));
			break;
		}
	}
	end_act(e, 0);
}

/* Return: false when there is nothing more to read now. */
static bool app_read_some(struct end *e)
{
	const struct sim_script *s = &e->w->p.script[e->i];
	struct world *w = e->w;
	const u8 *data;
	int n, i;

	if (e->app.read >= s->stop_at) {
		qrdma_conn_stop_reading(e->conn, 0, 9);
		e->app.was_stopped = true;
		e->app.read_failed = true;
		return false;
	}
	n = qrdma_conn_peek(e->conn, 0, 0, &data);
	if (n == -ECONNRESET) {
		e->app.read_failed = true;
		return false;
	}
	if (n <= 0) {
		e->app.read_all = qrdma_conn_at_eof(e->conn, 0);
		e->app.want_read = true;
		return false;
	}
	n = sim_draw(w, 1, min_t(u64, n, s->reads));
	for (i = 0; i < n; i++) {
		if (data[i] == app_byte(w->seed, !e->i, e->app.read + i))
			continue;
		sim_fail(w, "end %d: wrong byte at %llu", e->i, e->app.read + i);
		break;
	}
	e->app.read += n;
	qrdma_conn_consume(e->conn, 0, n);
	return true;
}

static void app_read(struct world *w, void *arg)
{
	struct end *e = arg;
	const struct sim_script *s = &w->p.script[e->i];

	e->app.read_armed = false;
	if (!e->conn || e->app.read_failed || e->app.read_all)
		return;
	e->app.want_read = false;
	while (app_read_some(e)) {
		if (s->read_gap && sim_chance(w, 200)) {
			app_arm_read(e, w->now + sim_draw(w, 0, s->read_gap));
			break;
		}
	}
	end_act(e, 0);
}

void app_start(struct end *e)
{
	e->app.want_read = true;
	app_arm_write(e, e->w->now);
}

void app_events(struct end *e, u32 ev)
{
	if (ev & QRDMA_EV_CLOSED) {
		e->app.closed = true;
		e->app.want_read = true;
	}
	if (ev & (QRDMA_EV_READABLE | QRDMA_EV_CLOSED) && e->app.want_read) {
		e->app.want_read = false;
		app_arm_read(e, e->w->now);
	}
	if (ev & (QRDMA_EV_WRITABLE | QRDMA_EV_ESTABLISHED | QRDMA_EV_CLOSED) &&
	    e->app.want_write) {
		e->app.want_write = false;
		app_arm_write(e, e->w->now);
	}
}

/* Both directions have come to their end, whichever. */
bool app_done(const struct world *w)
{
	const struct end *e;
	int i;

	for (i = 0; i < 2; i++) {
		e = &w->end[i];
		if (!e->conn || e->app.closed)
			continue;
		if (!e->app.read_all && !e->app.read_failed)
			return false;
		if (!e->app.write_failed && !(e->app.wrote_all && e->events & QRDMA_EV_ACKED &&
					      !qrdma_conn_unacked(e->conn, 0)))
			return false;
	}
	return true;
}

void app_check_end(struct world *w)
{
	const struct end *from, *to;
	int i;

	for (i = 0; i < 2; i++) {
		from = &w->end[i];
		to = &w->end[!i];
		if (to->app.read > from->app.written)
			sim_fail(w, "end %d read %llu bytes of %llu", !i, to->app.read,
				 from->app.written);
		if (to->app.read_all &&
		    (!from->app.wrote_all || to->app.read != from->app.written))
			sim_fail(w, "end %d: end of file after %llu bytes of %llu", !i,
				 to->app.read, from->app.written);
		if (w->p.vanish || w->p.destroy || w->p.close_early || from->app.was_reset ||
		    to->app.was_stopped)
			continue;
		if (!to->app.read_all || to->app.read != w->p.script[i].bytes)
			sim_fail(w, "end %d: %llu of %llu bytes read, no end of file", !i,
				 to->app.read, w->p.script[i].bytes);
	}
}
