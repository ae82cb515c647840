// SPDX-License-Identifier: GPL-2.0
/*
 * One end: what output.c, input.c and the timer do around the engine in the kernel, with rings that
 * run full, an AEAD that answers later, a CPU that stalls and keys that take their time.
 */
#include "sim.h"
#include "conn_state.h"

struct out {
	struct end *e;
	struct qrdma_tx tx;
	u8 data[SIM_BUF];
};

struct arrival {
	struct arrival *next;
	struct end *e;
	struct qrdma_rx rx;
	int err;
};

/* an operation that ends later */
struct later {
	struct qrdma_aead_op *op;
	bool seal;
};

static struct world *current;	/* the port's operations carry no world */

static void later_ends(struct world *w, void *arg)
{
	struct later *l = arg;

	null_aead_run(l->op, l->seal);
	free(l);
}

static bool end_defer(struct qrdma_aead_op *op, bool seal)
{
	struct world *w = current;
	struct later *l;

	if (!sim_chance(w, w->p.async))
		return false;
	l = malloc(sizeof(*l));
	l->op = op;
	l->seal = seal;
	sim_at(w, w->now + sim_draw(w, 0, w->p.async_max), later_ends, l);
	return true;
}

/*
 * Sending
 */

static void out_free(struct out *o)
{
	qrdma_tx_release(&o->tx);
	o->e->slots--;
	free(o);
}

/* Seal the packets of a datagram one after the other. Return: false: one is under way. */
static bool out_seal(struct out *o, int err)
{
	while (!err && !qrdma_tx_protect(&o->tx)) {
		if (!qrdma_tx_next(&o->tx)) {
			link_send(o->e->w, o->e->i, o->tx.data, o->tx.len,
				  o->tx.ect ? QRDMA_ECN_ECT0 : QRDMA_ECN_NOT_ECT);
			break;
		}
		err = o->tx.aead->seal(&o->tx.op);
		if (err == -EINPROGRESS)
			return false;
	}
	out_free(o);
	return true;
}

static void out_sealed(struct qrdma_aead_op *op, int err)
{
	struct out *o = container_of(op, struct out, tx.op);
	struct end *e = o->e;
	bool blocked = e->blocked;

	if (!out_seal(o, err))
		return;
	e->blocked = false;
	if (blocked && e->conn)
		end_act(e, 0);
}

/* Numbers rise, in each space; the header is not protected yet. */
static void out_check_number(struct end *e, u8 first, u64 pn)
{
	u8 space = QRDMA_SPACE_APP;

	if (first & QRDMA_HDR_LONG && (first >> 4 & 3) != QRDMA_PKT_0RTT)
		space = (first >> 4 & 3) == QRDMA_PKT_INITIAL ? QRDMA_SPACE_INITIAL :
								QRDMA_SPACE_HANDSHAKE;
	if (pn < e->last_pn[space])
		sim_fail(e->w, "end %d: space %u: packet number %llu again", e->i, space, pn);
	e->last_pn[space] = pn + 1;
	e->built++;
}

/* What must be true of every datagram that the engine builds. */
static void out_check(struct end *e, const struct out *o, u32 probes, bool one_more, u64 in_flight)
{
	const struct qrdma_recovery *r = &e->conn->recovery;
	u64 cwnd = qrdma_cong_window(&r->cong);
	u32 i;

	for (i = 0; i < o->tx.parts; i++)
		out_check_number(e, o->tx.data[o->tx.part[i].off], o->tx.part[i].pn);
	out_check_number(e, *o->tx.op.pkt, o->tx.op.pn);
	e->tx_wire += o->tx.len;
	if (o->tx.len > e->conn->path.max_datagram)
		sim_fail(e->w, "end %d: datagram of %u bytes, the path takes %u", e->i, o->tx.len,
			 e->conn->path.max_datagram);
	/* padding of an ACK frame is in flight; a handshake that stands still asks no window */
	if (*o->data & QRDMA_HDR_LONG && (*o->data & 0xf0) != 0xd0)
		return;
	/* a CONNECTION_CLOSE is not in flight */
	if (r->in_flight > in_flight && r->in_flight > cwnd && !probes && !one_more)
		sim_fail(e->w, "end %d: %llu in flight, window %llu", e->i, r->in_flight, cwnd);
}

static bool out_build(struct end *e)
{
	const struct qrdma_recovery *r = &e->conn->recovery;
	u64 in_flight = r->in_flight;
	bool one_more = r->one_more;
	u32 probes = e->conn->probes;
	struct out *o;
	int len;

	if (e->slots == SIM_TX_SLOTS) {
		e->blocked = true;
		return false;
	}
	o = malloc(sizeof(*o));
	memset(&o->tx, 0, sizeof(o->tx));
	o->e = e;
	o->tx.data = o->data;
	o->tx.cap = sizeof(o->data);
	e->slots++;
	len = qrdma_packer_build(e->conn, &o->tx, e->w->now);
	if (len <= 0) {
		out_free(o);
		if (len == -EKEYEXPIRED)
			end_act(e, qrdma_conn_timeout(e->conn, e->w->now));
		return false;
	}
	if (len != o->tx.len)
		sim_fail(e->w, "end %d: built %d bytes, said %u", e->i, len, o->tx.len);
	out_check(e, o, probes, one_more, in_flight);
	o->tx.op.done = out_sealed;
	len = o->tx.aead->seal(&o->tx.op);
	if (len != -EINPROGRESS)
		out_seal(o, len);
	return true;
}

/*
 * Keys
 */

static void keys_derived(struct world *w, void *arg)
{
	struct end *e = arg;
	struct qrdma_slot *from, *next;
	int send;

	e->keys_wanted = false;
	if (!e->conn)
		return;
	for (send = 0; send < 2; send++) {
		from = qrdma_conn_next_keys(e->conn, send);
		if (!from)
			continue;
		if (!null_aead.slot_next(from, &next) &&
		    qrdma_conn_install_next(e->conn, send, from, next))
			null_aead.slot_put(next);
		null_aead.slot_put(from);
	}
	end_act(e, 0);
}

/*
 * Receiving
 */

static u32 arrival_run(struct arrival *a);

static void arrival_free(struct arrival *a)
{
	qrdma_buf_put(a->rx.buf);
	free(a);
}

static void arrival_opened(struct qrdma_aead_op *op, int err)
{
	struct arrival *a = container_of(op, struct arrival, rx.op);
	struct end *e = a->e;
	u32 ev;

	e->opens--;
	if (!e->conn) {
		qrdma_rx_release(&a->rx);
		arrival_free(a);
		return;
	}
	ev = qrdma_conn_rx_finish(e->conn, &a->rx, err, e->w->now);
	ev |= arrival_run(a);
	end_act(e, ev);
}

/* Packet after packet, until the datagram is used up or an open goes on without us. */
static u32 arrival_run(struct arrival *a)
{
	struct end *e = a->e;
	enum qrdma_rx_verdict v;
	u32 ev = 0;
	int err;

	while ((v = qrdma_conn_rx_begin(e->conn, &a->rx, e->w->now)) != QRDMA_RX_DONE) {
		if (v == QRDMA_RX_DROP)
			continue;
		a->rx.op.done = arrival_opened;
		err = a->rx.aead->open(&a->rx.op);
		if (err == -EINPROGRESS) {
			e->opens++;
			return ev;
		}
		ev |= qrdma_conn_rx_finish(e->conn, &a->rx, err, e->w->now);
	}
	arrival_free(a);
	return ev | qrdma_conn_events(e->conn, e->w->now);
}

/* Packets that waited for a key, as if they came now. */
static u32 end_held(struct end *e)
{
	struct arrival *a;
	u32 ev = 0;

	for (;;) {
		a = calloc(1, sizeof(*a));
		a->e = e;
		if (!qrdma_conn_held(e->conn, &a->rx)) {
			free(a);
			return ev;
		}
		ev |= arrival_run(a);
	}
}

static u32 end_arrived(struct end *e, struct arrival *a)
{
	if (!e->conn && !hs_listen(e, a->rx.data, a->rx.len)) {
		arrival_free(a);
		return 0;
	}
	e->rx_wire += a->rx.len;
	return arrival_run(a);
}

static void end_drain_queue(struct end *e)
{
	struct arrival *a;
	u32 ev = 0;

	while ((a = e->queue)) {
		e->queue = a->next;
		if (!e->queue)
			e->queue_tail = &e->queue;
		ev |= end_arrived(e, a);
	}
	if (e->conn)
		end_act(e, ev);
}

static void end_wakes(struct world *w, void *arg)
{
	struct end *e = arg;

	if (e->stalled_until <= w->now)
		end_drain_queue(e);
}

void end_receive(struct end *e, struct qrdma_buf *buf, u8 ecn)
{
	struct world *w = e->w;
	struct arrival *a = calloc(1, sizeof(*a));

	a->e = e;
	a->rx.buf = buf;
	a->rx.data = buf->data;
	a->rx.len = buf->len;
	a->rx.ecn = ecn;
	*e->queue_tail = a;
	e->queue_tail = &a->next;
	if (e->stalled_until > w->now)
		return;
	if (sim_chance(w, w->p.stalls)) {
		e->stalled_until = w->now + sim_draw(w, 0, w->p.stall_max);
		sim_at(w, e->stalled_until, end_wakes, e);
		return;
	}
	end_drain_queue(e);
}

/*
 * The timer
 */

static void timer_fires(struct world *w, void *arg)
{
	struct end *e = arg;

	if (!e->conn || e->timer_at > w->now)
		return;
	if (e->stalled_until > w->now) {
		e->timer_at = e->stalled_until;
		sim_at(w, e->timer_at, timer_fires, e);
		return;
	}
	e->timer_at = QRDMA_NEVER;
	end_act(e, qrdma_conn_timeout(e->conn, w->now));
}

static void timer_arm(struct end *e)
{
	u64 at = qrdma_conn_deadline(e->conn);

	/* what is due and cannot leave waits for a slot, not for the timer */
	if (e->blocked && at <= e->w->now)
		at = e->w->now + SIM_MS;
	if (at >= e->timer_at)
		return;
	e->timer_at = max(at, e->w->now);
	sim_at(e->w, e->timer_at, timer_fires, e);
}

/*
 * The end as a whole
 */

void end_act(struct end *e, u32 ev)
{
	struct world *w = e->w;
	u32 spins = 0;

	if (ev & QRDMA_EV_HELD)
		ev |= end_held(e);
	e->events |= ev;
	if (w->verbose && ev & ~(QRDMA_EV_TX | QRDMA_EV_TIMER))
		printf("# %8llu us end %d: events %#x\n", w->now / SIM_US, e->i, ev);
	if (ev & QRDMA_EV_NEED_KEY && !e->keys_wanted) {
		e->keys_wanted = true;
		sim_at(w, w->now + sim_draw(w, 0, w->p.derive_max), keys_derived, e);
	}
	hs_events(e, ev);
	app_events(e, ev);
	while (e->conn && out_build(e)) {
		if (++spins > 100000) {
			sim_fail(w, "end %d: sends without end", e->i);
			break;
		}
	}
	if (!e->conn)
		return;
	end_check(e);
	hs_check(e);
	timer_arm(e);
}

/* What must be true of an engine at any time. */
void end_check(struct end *e)
{
	const struct qrdma_streams *t = &e->conn->streams;

	if (t->rx_mem.used > t->rx_mem.cap)
		sim_fail(e->w, "end %d: %u bytes received held, cap %u", e->i, t->rx_mem.used,
			 t->rx_mem.cap);
	if (t->tx_mem.used > t->tx_mem.cap)
		sim_fail(e->w, "end %d: %u bytes written held, cap %u", e->i, t->tx_mem.used,
			 t->tx_mem.cap);
	if (t->tx_flow.sent > t->tx_flow.max)
		sim_fail(e->w, "end %d: sent %llu, credit %llu", e->i, t->tx_flow.sent,
			 t->tx_flow.max);
	if (e->conn->error.closed && e->conn->error.err == EPROTO)
		sim_fail(e->w, "end %d: error %#llx of frame %#llx", e->i, e->conn->error.code,
			 e->conn->error.frame_type);
}

static void end_install(struct end *e, bool send, const u8 *secret)
{
	struct qrdma_slot *cur;

	if (null_aead.slot_new(QRDMA_CIPHER_AES_128_GCM, secret, 32, &cur) ||
	    qrdma_conn_install_key(e->conn, send, QRDMA_CIPHER_AES_128_GCM, cur))
		sim_fail(e->w, "end %d: no key installed", e->i);
}

bool end_make(struct end *e)
{
	static const struct qrdma_cid cid[2] = {
		{ .len = 8, .data = "clientid" }, { .len = 8, .data = "serverid" }
	};
	struct world *w = e->w;
	struct qrdma_tparams tp;
	struct qrdma_conn_config cfg = {
		.aead = &null_aead,
		.is_server = e->i,
		.scid = &cid[e->i],
		.dcid = &cid[!e->i],
		.local = &tp,
		.remote = &tp,
		.max_datagram = w->p.datagram,
		.initial_rtt = 2 * (w->p.link[0].delay + w->p.link[1].delay) + 100 * SIM_US,
		.ack_delay = 500 * SIM_US,
		.cong = w->p.cong,
		.rx_mem_max = w->p.rx_mem,
		.tx_mem_max = 4 * 1024 * 1024,
		.key_packets_max = w->p.key_packets_max,
		.ecn = true,
	};
	u64 r;
	int i;

	qrdma_tparams_init(&tp);
	tp.initial_max_data = w->p.window;
	tp.initial_max_stream_data_bidi_local = w->p.window;
	tp.initial_max_stream_data_bidi_remote = w->p.window;
	tp.initial_max_streams_bidi = 1;
	tp.max_idle_timeout = w->p.idle_ms;
	tp.max_ack_delay = 1;
	for (i = 0; i < 4; i++) {
		r = sim_rand(w);
		memcpy(cfg.random + 8 * i, &r, 8);
	}
	if (w->p.inband)
		hs_config(e, &cfg);
	e->made = true;
	if (qrdma_conn_create(&cfg, w->now, &e->conn, GFP_KERNEL)) {
		sim_fail(w, "end %d: not created", e->i);
		return false;
	}
	return true;
}

void end_start(struct end *e)
{
	static const u8 secret[2][32] = { "client to server", "server to client" };

	current = e->w;
	null_aead_defer = end_defer;
	e->queue_tail = &e->queue;
	e->timer_at = QRDMA_NEVER;
	/* the server of a handshake in band is made by its first datagram */
	if (!e->w->p.inband || !e->i) {
		if (!end_make(e))
			return;
		if (e->w->p.inband) {
			hs_start(e);
		} else {
			end_install(e, true, secret[e->i]);
			end_install(e, false, secret[!e->i]);
		}
	}
	if (e->conn) {
		app_start(e);
		end_act(e, 0);
	}
}

void end_destroy(struct end *e)
{
	qrdma_conn_destroy(e->conn);
	e->conn = NULL;
	e->made = true;
	e->blocked = false;
	end_drain_queue(e);
}

/* Nothing of it is under way any more. */
bool end_quiet(const struct end *e)
{
	return !e->slots && !e->opens && !e->queue;
}
