// SPDX-License-Identifier: GPL-2.0
/*
 * The streams of one connection. See stream.h for what this owns, who calls it, in which
 * context and under which lock.
 *
 * A stream hangs in the list @tx of the table while it wants to send a STREAM frame, and in
 * the list @ctl while it wants to send another one; stream_update() follows every change of
 * state. Whether the connection's credit (or memory pressure) permits it is asked when a
 * frame is built.
 */
#include "stream.h"
#include "tparam.h"

static bool stream_is_local(const struct qrdma_streams *t, u64 id)
{
	return (id & 1) == t->server;
}

static u32 stream_type(u64 id)
{
	return id & 2 ? QRDMA_UNI : QRDMA_BIDI;
}

/* Index of a stream in the tables of first windows and credits. */
static u32 stream_kind(const struct qrdma_streams *t, u64 id)
{
	if (stream_type(id) == QRDMA_UNI)
		return 2;
	return stream_is_local(t, id) ? 0 : 1;
}

static struct qrdma_stream **streams_bucket(struct qrdma_streams *t, u64 id)
{
	return &t->hash[(id >> 2 ^ id << 2) % QRDMA_STREAMS_HASH];
}

static void stream_event(struct qrdma_streams *t, struct qrdma_stream *s, u32 event)
{
	s->events |= event;
	t->events |= event;
}

/* Do we wait for bytes of the peer? */
static bool stream_rx_open(const struct qrdma_stream *s)
{
	return s->has_rx && s->rx_final == U64_MAX && !s->rx_discard;
}

/* Is every byte up to the final size here, read or not? */
static bool stream_rx_complete(const struct qrdma_stream *s)
{
	return s->rx_flow.read + qrdma_reasm_readable(&s->rx) == s->rx_final;
}

static bool stream_rx_done(const struct qrdma_stream *s)
{
	return !s->has_rx || s->rx_reset || s->rx_flow.read == s->rx_final;
}

bool qrdma_stream_tx_done(const struct qrdma_stream *s)
{
	if (!s->has_tx || s->reset)
		return !s->has_tx || s->reset == QRDMA_OWED_DONE;
	return s->fin == QRDMA_OWED_DONE && !qrdma_sendq_unacked(&s->tx);
}

/* Has it a STREAM frame to send, given @credit new bytes by the connection's credit? */
static bool stream_wants_tx(const struct qrdma_stream *s, u64 credit)
{
	if (!s->has_tx || s->reset)
		return false;
	if (s->tx.lost.nr || s->open == QRDMA_OWED_DUE)
		return true;
	if (qrdma_sendq_unsent(&s->tx))
		return credit && qrdma_flow_tx_credit(&s->tx_flow);
	return s->fin == QRDMA_OWED_DUE;
}

static bool stream_wants_grant(const struct qrdma_stream *s)
{
	return stream_rx_open(s) && qrdma_flow_rx_due(&s->rx_flow);
}

static bool stream_wants_blocked(const struct qrdma_stream *s)
{
	return s->has_tx && !s->reset && qrdma_sendq_unsent(&s->tx) &&
	       qrdma_flow_tx_blocked(&s->tx_flow);
}

static bool stream_wants_ctl(const struct qrdma_stream *s, bool hold)
{
	return s->reset == QRDMA_OWED_DUE || s->stop == QRDMA_OWED_DUE ||
	       (!hold && stream_wants_grant(s)) || stream_wants_blocked(s);
}

static void stream_enlist(struct list_head *node, struct list_head *list, bool on)
{
	if (on != list_empty(node))
		return;
	if (on)
		list_add_tail(node, list);
	else
		list_del_init(node);
}

static void stream_update(struct qrdma_streams *t, struct qrdma_stream *s)
{
	stream_enlist(&s->tx_node, &t->tx, stream_wants_tx(s, U64_MAX));
	stream_enlist(&s->ctl_node, &t->ctl, stream_wants_ctl(s, false));
}

static struct qrdma_stream *stream_create(struct qrdma_streams *t, u64 id, gfp_t gfp)
{
	struct qrdma_stream **bucket = streams_bucket(t, id);
	struct qrdma_stream *s = kzalloc(sizeof(*s), gfp);
	bool bidi = stream_type(id) == QRDMA_BIDI;
	u32 kind = stream_kind(t, id);

	if (!s)
		return NULL;
	s->id = id;
	s->has_rx = bidi || !stream_is_local(t, id);
	s->has_tx = bidi || stream_is_local(t, id);
	INIT_LIST_HEAD(&s->tx_node);
	INIT_LIST_HEAD(&s->ctl_node);
	INIT_LIST_HEAD(&s->accept_node);
	qrdma_reasm_init(&s->rx, &t->rx_mem);
	qrdma_flow_rx_init(&s->rx_flow, t->stream_first[kind]);
	if (t->stream_window)
		s->rx_flow.window = t->stream_window;
	s->rx_final = U64_MAX;
	qrdma_sendq_init(&s->tx, &t->tx_mem);
	qrdma_flow_tx_init(&s->tx_flow, t->stream_credit[kind]);
	s->hash_next = *bucket;
	*bucket = s;
	t->nr++;
	return s;
}

static void stream_free(struct qrdma_streams *t, struct qrdma_stream *s)
{
	struct qrdma_stream **pp = streams_bucket(t, s->id);

	while (*pp != s)
		pp = &(*pp)->hash_next;
	*pp = s->hash_next;
	list_del(&s->tx_node);
	list_del(&s->ctl_node);
	list_del(&s->accept_node);
	qrdma_reasm_purge(&s->rx);
	qrdma_sendq_purge(&s->tx);
	t->nr--;
	kfree(s);
}

/* The last step of every change of state: free the stream when nobody needs it any more. */
static void stream_settle(struct qrdma_streams *t, struct qrdma_stream *s)
{
	if (!s->released || !stream_rx_done(s) || !qrdma_stream_tx_done(s)) {
		stream_update(t, s);
		return;
	}
	if (!stream_is_local(t, s->id))
		t->remote[stream_type(s->id)].read++;
	stream_free(t, s);
}

int qrdma_streams_init(struct qrdma_streams *t, bool server, const struct qrdma_tparams *local,
		       u32 rx_cap, u32 tx_cap)
{
	if (local->initial_max_streams_bidi > QRDMA_STREAMS_PEER_MAX ||
	    local->initial_max_streams_uni > QRDMA_STREAMS_PEER_MAX)
		return -EINVAL;

	memset(t, 0, sizeof(*t));
	INIT_LIST_HEAD(&t->tx);
	INIT_LIST_HEAD(&t->ctl);
	INIT_LIST_HEAD(&t->accept);
	t->server = server;
	qrdma_flow_tx_init(&t->local[QRDMA_BIDI], 0);
	qrdma_flow_tx_init(&t->local[QRDMA_UNI], 0);
	qrdma_flow_rx_init(&t->remote[QRDMA_BIDI], local->initial_max_streams_bidi);
	qrdma_flow_rx_init(&t->remote[QRDMA_UNI], local->initial_max_streams_uni);
	t->stream_first[0] = local->initial_max_stream_data_bidi_local;
	t->stream_first[1] = local->initial_max_stream_data_bidi_remote;
	t->stream_first[2] = local->initial_max_stream_data_uni;
	qrdma_flow_rx_init(&t->rx_flow, local->initial_max_data);
	qrdma_flow_tx_init(&t->tx_flow, 0);
	qrdma_mem_init(&t->rx_mem, rx_cap);
	qrdma_mem_init(&t->tx_mem, tx_cap);
	return 0;
}

/* The peer allows @max streams of ours. */
static void streams_raise(struct qrdma_streams *t, u32 type, u64 max)
{
	if (!qrdma_flow_tx_raise(&t->local[type], max))
		return;
	t->want[type] = false;
	t->events |= QRDMA_STREAM_EV_CREDIT;
}

void qrdma_streams_set_remote(struct qrdma_streams *t, const struct qrdma_tparams *remote)
{
	const u64 credit[3] = {
		remote->initial_max_stream_data_bidi_remote,
		remote->initial_max_stream_data_bidi_local,
		remote->initial_max_stream_data_uni,
	};
	struct qrdma_stream *s;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(credit); i++)
		t->stream_credit[i] = max(t->stream_credit[i], credit[i]);
	qrdma_flow_tx_raise(&t->tx_flow, remote->initial_max_data);
	streams_raise(t, QRDMA_BIDI, remote->initial_max_streams_bidi);
	streams_raise(t, QRDMA_UNI, remote->initial_max_streams_uni);

	for (i = 0; i < QRDMA_STREAMS_HASH; i++) {
		for (s = t->hash[i]; s; s = s->hash_next) {
			qrdma_flow_tx_raise(&s->tx_flow, t->stream_credit[stream_kind(t, s->id)]);
			stream_update(t, s);
		}
	}
}

static void stream_owe_again(u8 *owed)
{
	if (*owed == QRDMA_OWED_SENT)
		*owed = QRDMA_OWED_DUE;
}

void qrdma_streams_rewind(struct qrdma_streams *t)
{
	struct qrdma_stream *s;
	u32 i;

	memset(t->stream_credit, 0, sizeof(t->stream_credit));
	qrdma_flow_tx_init(&t->tx_flow, 0);
	for (i = 0; i < ARRAY_SIZE(t->local); i++) {
		t->local[i].max = 0;
		t->local[i].told = U64_MAX;
	}
	for (i = 0; i < QRDMA_STREAMS_HASH; i++) {
		for (s = t->hash[i]; s; s = s->hash_next) {
			qrdma_sendq_rewind(&s->tx);
			qrdma_flow_tx_init(&s->tx_flow, 0);
			stream_owe_again(&s->open);
			stream_owe_again(&s->fin);
			stream_owe_again(&s->reset);
			stream_owe_again(&s->stop);
			stream_update(t, s);
		}
	}
}

void qrdma_streams_destroy(struct qrdma_streams *t)
{
	u32 i;

	for (i = 0; i < QRDMA_STREAMS_HASH; i++)
		while (t->hash[i])
			stream_free(t, t->hash[i]);
}

struct qrdma_stream *qrdma_streams_find(struct qrdma_streams *t, u64 id)
{
	struct qrdma_stream *s = *streams_bucket(t, id);

	while (s && s->id != id)
		s = s->hash_next;
	return s;
}

struct qrdma_stream *qrdma_streams_open(struct qrdma_streams *t, bool uni, gfp_t gfp)
{
	struct qrdma_flow_tx *local = &t->local[uni ? QRDMA_UNI : QRDMA_BIDI];
	struct qrdma_stream *s;

	if (!qrdma_flow_tx_credit(local)) {
		t->want[uni ? QRDMA_UNI : QRDMA_BIDI] = true;
		return ERR_PTR(-EAGAIN);
	}
	s = stream_create(t, local->sent << 2 | (uni ? 2 : 0) | t->server, gfp);
	if (!s)
		return ERR_PTR(-ENOMEM);
	local->sent++;
	return s;
}

void qrdma_stream_announce(struct qrdma_streams *t, struct qrdma_stream *s)
{
	if (s->open == QRDMA_OWED_NO && !s->tx.nxt)
		s->open = QRDMA_OWED_DUE;
	stream_update(t, s);
}

struct qrdma_stream *qrdma_streams_accept(struct qrdma_streams *t)
{
	struct qrdma_stream *s;

	s = list_first_entry_or_null(&t->accept, struct qrdma_stream, accept_node);
	if (s)
		list_del_init(&s->accept_node);
	return s;
}

void qrdma_stream_release(struct qrdma_streams *t, struct qrdma_stream *s, u64 code)
{
	list_del_init(&s->accept_node);
	qrdma_stream_stop(t, s, code);
	qrdma_stream_finish(t, s);
	s->released = true;
	stream_settle(t, s);
}

/*
 * Received frames.
 */

#define STREAM_RX	true
#define STREAM_TX	false

/*
 * The stream that a frame is for (RFC 9000 s2.1, s3.2, s4.6); @rx: the frame is about its
 * receiving half. A stream of the peer is opened by its first frame, together with those of
 * its type below it. *@s is NULL when the stream has been and is gone.
 */
static int streams_lookup(struct qrdma_streams *t, u64 id, bool rx, struct qrdma_stream **s,
			  u64 *verdict)
{
	bool local = stream_is_local(t, id);
	u32 type = stream_type(id);
	struct qrdma_flow_rx *remote = &t->remote[type];
	u64 nr = id >> 2;

	if ((type == QRDMA_UNI && local == rx) || (local && nr >= t->local[type].sent)) {
		*verdict = QRDMA_ERR_STREAM_STATE_ERROR;
		return -EPROTO;
	}
	if (!local && nr >= remote->max) {
		*verdict = QRDMA_ERR_STREAM_LIMIT_ERROR;
		return -EPROTO;
	}
	while (!local && remote->high <= nr) {
		*s = stream_create(t, (remote->high << 2) | (id & 3), GFP_ATOMIC);
		if (!*s)
			return -ENOMEM;
		remote->high++;
		list_add_tail(&(*s)->accept_node, &t->accept);
		stream_event(t, *s, QRDMA_STREAM_EV_OPENED);
	}
	*s = qrdma_streams_find(t, id);
	return 0;
}

/* May the peer's bytes of @s go up to @end, which is the final size if @final? (s4.1, s4.5) */
static int stream_check(const struct qrdma_streams *t, const struct qrdma_stream *s, u64 end,
			bool final, u64 *verdict)
{
	u64 more = end > s->rx_flow.high ? end - s->rx_flow.high : 0;

	if (s->rx_final != U64_MAX ? end > s->rx_final || (final && end < s->rx_final) :
	    final && end < s->rx_flow.high) {
		*verdict = QRDMA_ERR_FINAL_SIZE_ERROR;
		return -EPROTO;
	}
	if (!qrdma_flow_rx_allows(&s->rx_flow, end) ||
	    !qrdma_flow_rx_allows(&t->rx_flow, t->rx_flow.high + more)) {
		*verdict = QRDMA_ERR_FLOW_CONTROL_ERROR;
		return -EPROTO;
	}
	return 0;
}

/* The peer has used its credit up to @end; on both levels, checked before. */
static void stream_used(struct qrdma_streams *t, struct qrdma_stream *s, u64 end)
{
	if (end > s->rx_flow.high) {
		t->rx_flow.high += end - s->rx_flow.high;
		s->rx_flow.high = end;
	}
}

/* Nobody will read what came in so far: the connection's credit is given back. */
static void stream_forgo(struct qrdma_streams *t, struct qrdma_stream *s)
{
	qrdma_reasm_purge(&s->rx);
	t->rx_flow.read += s->rx_flow.high - s->rx_flow.read;
	s->rx_flow.read = s->rx_flow.high;
}

static int streams_on_stream(struct qrdma_streams *t, const struct qrdma_frame *f,
			     struct qrdma_buf *buf, u64 *verdict)
{
	u64 end = f->stream.off + f->stream.len;
	struct qrdma_stream *s;
	u64 readable;
	int err;

	err = streams_lookup(t, f->stream.id, STREAM_RX, &s, verdict);
	if (err || !s)
		return err;
	err = stream_check(t, s, end, f->stream.fin, verdict);
	if (err)
		return err;

	if (s->rx_discard || s->rx_reset) {
		stream_used(t, s, end);
		stream_forgo(t, s);
		if (f->stream.fin)
			s->rx_final = end;
		if (stream_rx_done(s))
			s->stop = QRDMA_OWED_NO;
		stream_settle(t, s);
		return 0;
	}
	readable = qrdma_reasm_readable(&s->rx);
	err = qrdma_reasm_insert(&s->rx, f->stream.off, f->stream.data, f->stream.len, buf);
	if (err)
		return err;
	stream_used(t, s, end);
	if (qrdma_reasm_readable(&s->rx) > readable ||
	    (f->stream.fin && s->rx_final == U64_MAX && readable + s->rx_flow.read == end))
		stream_event(t, s, QRDMA_STREAM_EV_READABLE);
	if (f->stream.fin)
		s->rx_final = end;
	stream_settle(t, s);
	return 0;
}

static int streams_on_reset(struct qrdma_streams *t, const struct qrdma_frame *f, u64 *verdict)
{
	struct qrdma_stream *s;
	bool complete;
	int err;

	err = streams_lookup(t, f->reset.id, STREAM_RX, &s, verdict);
	if (err || !s)
		return err;
	err = stream_check(t, s, f->reset.final_size, true, verdict);
	if (err)
		return err;

	/* "Data Recvd" of s3.2: a FIN came, and everything before it: let it be read */
	complete = stream_rx_complete(s);
	stream_used(t, s, f->reset.final_size);
	s->rx_final = f->reset.final_size;
	if (!s->rx_reset && !complete) {
		s->rx_reset = true;
		s->rx_code = f->reset.code;
		s->stop = QRDMA_OWED_NO;
		stream_event(t, s, QRDMA_STREAM_EV_READABLE);
		stream_forgo(t, s);
	}
	stream_settle(t, s);
	return 0;
}

/* Cut the sending half off; what the peer was sent so far is its final size. */
static void stream_cut(struct qrdma_streams *t, struct qrdma_stream *s, u64 code)
{
	s->reset = QRDMA_OWED_DUE;
	s->reset_code = code;
	s->open = QRDMA_OWED_DONE;
	qrdma_sendq_purge(&s->tx);
	stream_event(t, s, QRDMA_STREAM_EV_WRITABLE);
}

static int streams_on_stop_sending(struct qrdma_streams *t, const struct qrdma_frame *f,
				   u64 *verdict)
{
	struct qrdma_stream *s;
	int err;

	err = streams_lookup(t, f->stop.id, STREAM_TX, &s, verdict);
	if (err || !s)
		return err;
	if (s->stopped || qrdma_stream_tx_done(s))
		return 0;
	s->stopped = true;
	stream_event(t, s, QRDMA_STREAM_EV_STOPPED);
	if (!s->reset)
		stream_cut(t, s, f->stop.code);
	stream_settle(t, s);
	return 0;
}

static int streams_on_max_stream_data(struct qrdma_streams *t, const struct qrdma_frame *f,
				      u64 *verdict)
{
	struct qrdma_stream *s;
	int err;

	err = streams_lookup(t, f->max.id, STREAM_TX, &s, verdict);
	if (err || !s)
		return err;
	qrdma_flow_tx_raise(&s->tx_flow, f->max.max);
	stream_update(t, s);
	return 0;
}

int qrdma_streams_on_frame(struct qrdma_streams *t, const struct qrdma_frame *f,
			   struct qrdma_buf *buf, u64 *verdict)
{
	struct qrdma_stream *s;
	u32 type = QRDMA_BIDI;

	if (f->type >= QRDMA_FRAME_STREAM && f->type <= QRDMA_FRAME_STREAM_END)
		return streams_on_stream(t, f, buf, verdict);

	switch (f->type) {
	case QRDMA_FRAME_RESET_STREAM:
		return streams_on_reset(t, f, verdict);
	case QRDMA_FRAME_STOP_SENDING:
		return streams_on_stop_sending(t, f, verdict);
	case QRDMA_FRAME_MAX_DATA:
		qrdma_flow_tx_raise(&t->tx_flow, f->max.max);
		return 0;
	case QRDMA_FRAME_MAX_STREAM_DATA:
		return streams_on_max_stream_data(t, f, verdict);
	case QRDMA_FRAME_MAX_STREAMS_UNI:
		type = QRDMA_UNI;
		fallthrough;
	case QRDMA_FRAME_MAX_STREAMS_BIDI:
		streams_raise(t, type, f->max.max);
		return 0;
	case QRDMA_FRAME_STREAM_DATA_BLOCKED:
		return streams_lookup(t, f->max.id, STREAM_RX, &s, verdict);
	default:
		return 0;
	}
}

/*
 * Frames to be sent.
 */

/* Is a DATA_BLOCKED due: would a stream send more than the connection's credit allows? */
static bool streams_want_blocked(const struct qrdma_streams *t)
{
	const struct qrdma_stream *s;

	if (!qrdma_flow_tx_blocked(&t->tx_flow))
		return false;
	list_for_each_entry(s, &t->tx, tx_node)
		if (qrdma_sendq_unsent(&s->tx))
			return true;
	return false;
}

static bool streams_want_more(const struct qrdma_streams *t, u32 type)
{
	return t->want[type] && qrdma_flow_tx_blocked(&t->local[type]);
}

static bool streams_want_grant(const struct qrdma_streams *t, u32 type)
{
	const struct qrdma_flow_rx *remote = &t->remote[type];

	return !t->hold && (remote->again || (t->grow[type] && qrdma_flow_rx_due(remote)));
}

/* The frame that @s wants to send most, its state not yet changed. */
static bool stream_ctl(const struct qrdma_stream *s, bool hold, struct qrdma_frame *f)
{
	if (s->reset == QRDMA_OWED_DUE) {
		f->type = QRDMA_FRAME_RESET_STREAM;
		f->reset.id = s->id;
		f->reset.code = s->reset_code;
		f->reset.final_size = s->tx.nxt;
	} else if (s->stop == QRDMA_OWED_DUE) {
		f->type = QRDMA_FRAME_STOP_SENDING;
		f->stop.id = s->id;
		f->stop.code = s->stop_code;
	} else if (!hold && stream_wants_grant(s)) {
		f->type = QRDMA_FRAME_MAX_STREAM_DATA;
		f->max.id = s->id;
		f->max.max = qrdma_flow_rx_next(&s->rx_flow);
	} else if (stream_wants_blocked(s)) {
		f->type = QRDMA_FRAME_STREAM_DATA_BLOCKED;
		f->max.id = s->id;
		f->max.max = s->tx_flow.max;
	} else {
		return false;
	}
	return true;
}

/* The same for the connection as a whole; MAX_DATA comes before what streams want. */
static bool streams_ctl(const struct qrdma_streams *t, struct qrdma_frame *f)
{
	u32 type;

	for (type = QRDMA_BIDI; type <= QRDMA_UNI; type++) {
		f->max.id = 0;
		if (streams_want_grant(t, type)) {
			f->type = QRDMA_FRAME_MAX_STREAMS_BIDI + type;
			f->max.max = qrdma_flow_rx_next(&t->remote[type]);
			return true;
		}
		if (streams_want_more(t, type)) {
			f->type = QRDMA_FRAME_STREAMS_BLOCKED_BIDI + type;
			f->max.max = t->local[type].max;
			return true;
		}
	}
	if (!streams_want_blocked(t))
		return false;
	f->type = QRDMA_FRAME_DATA_BLOCKED;
	f->max.max = t->tx_flow.max;
	return true;
}

static bool streams_want_max_data(const struct qrdma_streams *t)
{
	return !t->hold && qrdma_flow_rx_due(&t->rx_flow);
}

/* @f, chosen for @s or (NULL) for the connection, is going to be sent. */
static void streams_ctl_sent(struct qrdma_streams *t, struct qrdma_stream *s,
			     const struct qrdma_frame *f)
{
	u32 type = f->type & 1 ? QRDMA_UNI : QRDMA_BIDI;

	switch (f->type) {
	case QRDMA_FRAME_RESET_STREAM:
		s->reset = QRDMA_OWED_SENT;
		break;
	case QRDMA_FRAME_STOP_SENDING:
		s->stop = QRDMA_OWED_SENT;
		break;
	case QRDMA_FRAME_MAX_DATA:
		qrdma_flow_rx_grant(&t->rx_flow);
		break;
	case QRDMA_FRAME_MAX_STREAM_DATA:
		qrdma_flow_rx_grant(&s->rx_flow);
		break;
	case QRDMA_FRAME_MAX_STREAMS_BIDI:
	case QRDMA_FRAME_MAX_STREAMS_UNI:
		qrdma_flow_rx_grant(&t->remote[type]);
		break;
	case QRDMA_FRAME_DATA_BLOCKED:
		t->tx_flow.told = f->max.max;
		break;
	case QRDMA_FRAME_STREAM_DATA_BLOCKED:
		s->tx_flow.told = f->max.max;
		break;
	case QRDMA_FRAME_STREAMS_BLOCKED_BIDI:
	case QRDMA_FRAME_STREAMS_BLOCKED_UNI:
		t->local[type].told = f->max.max;
		break;
	}
	if (s) {
		/* take turns */
		list_del_init(&s->ctl_node);
		stream_update(t, s);
	}
}

/* Choose the next frame that is not STREAM; *@s is NULL when it is the connection's. */
static bool streams_choose_ctl(const struct qrdma_streams *t, struct qrdma_stream **s,
			       struct qrdma_frame *f)
{
	struct qrdma_stream *pos;

	*s = NULL;
	if (streams_want_max_data(t)) {
		f->type = QRDMA_FRAME_MAX_DATA;
		f->max.id = 0;
		f->max.max = qrdma_flow_rx_next(&t->rx_flow);
		return true;
	}
	list_for_each_entry(pos, &t->ctl, ctl_node) {
		if (stream_ctl(pos, t->hold, f)) {
			*s = pos;
			return true;
		}
	}
	return streams_ctl(t, f);
}

bool qrdma_streams_pending_ctl(const struct qrdma_streams *t)
{
	struct qrdma_stream *s;
	struct qrdma_frame f;

	return streams_choose_ctl(t, &s, &f);
}

bool qrdma_streams_pending(const struct qrdma_streams *t)
{
	u64 credit = qrdma_flow_tx_credit(&t->tx_flow);
	const struct qrdma_stream *s;

	list_for_each_entry(s, &t->tx, tx_node)
		if (stream_wants_tx(s, credit))
			return true;
	return qrdma_streams_pending_ctl(t);
}

bool qrdma_streams_next_ctl(struct qrdma_streams *t, u32 room, struct qrdma_frame *f)
{
	struct qrdma_stream *s;

	if (!streams_choose_ctl(t, &s, f) || qrdma_frame_size(f) > room)
		return false;
	streams_ctl_sent(t, s, f);
	return true;
}

/* Build a STREAM frame of @s into @frame, all of it within @room. */
static bool stream_frame(struct qrdma_streams *t, struct qrdma_stream *s, u32 room, u32 max,
			 struct qrdma_stream_frame *frame)
{
	u64 credit = qrdma_flow_tx_credit(&t->tx_flow);
	u64 fresh = s->tx.nxt;
	u64 avail, off;
	u32 head, len;

	avail = qrdma_sendq_next(&s->tx, min(s->tx_flow.max, fresh + credit), &off);
	head = 1 + qrdma_varint_len(s->id) + (off ? qrdma_varint_len(off) : 0);
	if (room <= head)
		return false;
	len = min_t(u64, avail, qrdma_varint_fit(room - head));
	frame->nseg = 0;
	if (len)
		len = qrdma_sendq_take(&s->tx, off, len, frame->seg, max, &frame->nseg);
	fresh = s->tx.nxt - fresh;
	s->tx_flow.sent += fresh;
	t->tx_flow.sent += fresh;

	frame->id = s->id;
	frame->off = off;
	frame->len = len;
	frame->fin = s->fin == QRDMA_OWED_DUE && off + len == s->tx.end;
	if (!len && !frame->fin && (avail || s->open != QRDMA_OWED_DUE))
		return false;
	if (frame->fin)
		s->fin = QRDMA_OWED_SENT;
	if (s->open == QRDMA_OWED_DUE)
		s->open = QRDMA_OWED_SENT;
	return true;
}

bool qrdma_streams_next_frame(struct qrdma_streams *t, u32 room, u32 max,
			      struct qrdma_stream_frame *frame)
{
	struct qrdma_stream *s, *tmp;

	list_for_each_entry_safe(s, tmp, &t->tx, tx_node) {
		if (stream_frame(t, s, room, max, frame)) {
			/* take turns */
			list_del_init(&s->tx_node);
			stream_update(t, s);
			return true;
		}
		stream_update(t, s);
	}
	return false;
}

void qrdma_streams_acked(struct qrdma_streams *t, u64 id, u64 off, u32 len, bool fin)
{
	struct qrdma_stream *s = qrdma_streams_find(t, id);

	if (!s || s->reset)
		return;
	if (qrdma_sendq_acked(&s->tx, off, len))
		stream_event(t, s, QRDMA_STREAM_EV_WRITABLE);
	if (fin)
		s->fin = QRDMA_OWED_DONE;
	if (s->open == QRDMA_OWED_SENT)
		s->open = QRDMA_OWED_DONE;
	if (qrdma_stream_all_acked(s))
		stream_event(t, s, QRDMA_STREAM_EV_ACKED);
	stream_settle(t, s);
}

void qrdma_streams_lost(struct qrdma_streams *t, u64 id, u64 off, u32 len, bool fin)
{
	struct qrdma_stream *s = qrdma_streams_find(t, id);

	if (!s || s->reset)
		return;
	qrdma_sendq_lost(&s->tx, off, len);
	if (fin && s->fin == QRDMA_OWED_SENT)
		s->fin = QRDMA_OWED_DUE;
	/* bytes sent after it open the stream as well */
	if (!len && !fin && s->open == QRDMA_OWED_SENT && !s->tx.nxt)
		s->open = QRDMA_OWED_DUE;
	stream_update(t, s);
}

void qrdma_streams_ctl_acked(struct qrdma_streams *t, u64 type, u64 id, u64 max)
{
	struct qrdma_stream *s;

	if (type != QRDMA_FRAME_RESET_STREAM && type != QRDMA_FRAME_STOP_SENDING)
		return;
	s = qrdma_streams_find(t, id);
	if (!s)
		return;
	if (type == QRDMA_FRAME_STOP_SENDING) {
		s->stop = QRDMA_OWED_DONE;
	} else {
		s->reset = QRDMA_OWED_DONE;
		stream_event(t, s, QRDMA_STREAM_EV_ACKED);
	}
	stream_settle(t, s);
}

void qrdma_streams_ctl_lost(struct qrdma_streams *t, u64 type, u64 id, u64 max)
{
	struct qrdma_stream *s;

	switch (type) {
	case QRDMA_FRAME_MAX_DATA:
		qrdma_flow_rx_lost(&t->rx_flow, max);
		return;
	case QRDMA_FRAME_MAX_STREAMS_BIDI:
	case QRDMA_FRAME_MAX_STREAMS_UNI:
		qrdma_flow_rx_lost(&t->remote[type & 1], max);
		return;
	case QRDMA_FRAME_DATA_BLOCKED:
		qrdma_flow_tx_lost(&t->tx_flow, max);
		return;
	case QRDMA_FRAME_STREAMS_BLOCKED_BIDI:
	case QRDMA_FRAME_STREAMS_BLOCKED_UNI:
		qrdma_flow_tx_lost(&t->local[type & 1], max);
		return;
	}

	s = qrdma_streams_find(t, id);
	if (!s)
		return;
	switch (type) {
	case QRDMA_FRAME_RESET_STREAM:
		if (s->reset == QRDMA_OWED_SENT)
			s->reset = QRDMA_OWED_DUE;
		break;
	case QRDMA_FRAME_STOP_SENDING:
		if (s->stop == QRDMA_OWED_SENT)
			s->stop = QRDMA_OWED_DUE;
		break;
	case QRDMA_FRAME_MAX_STREAM_DATA:
		qrdma_flow_rx_lost(&s->rx_flow, max);
		break;
	case QRDMA_FRAME_STREAM_DATA_BLOCKED:
		qrdma_flow_tx_lost(&s->tx_flow, max);
		break;
	}
	stream_update(t, s);
}

/*
 * The application's side.
 */

int qrdma_stream_can_write(const struct qrdma_stream *s)
{
	return !s->has_tx || s->stopped || s->reset || s->fin ? -EPIPE : 0;
}

int qrdma_stream_write(struct qrdma_streams *t, struct qrdma_stream *s, struct qrdma_buf *buf,
		       u32 off, u32 len, gfp_t gfp)
{
	int err = qrdma_stream_can_write(s);

	if (!err)
		err = qrdma_sendq_append(&s->tx, buf, off, len, gfp);
	if (!err)
		stream_update(t, s);
	return err;
}

u32 qrdma_stream_room(const struct qrdma_stream *s, u8 **at)
{
	return qrdma_stream_can_write(s) ? 0 : qrdma_sendq_room(&s->tx, at);
}

void qrdma_stream_commit(struct qrdma_streams *t, struct qrdma_stream *s, u32 len)
{
	qrdma_sendq_commit(&s->tx, len);
	stream_update(t, s);
}

int qrdma_stream_finish(struct qrdma_streams *t, struct qrdma_stream *s)
{
	if (!s->has_tx || s->stopped || s->reset)
		return -EPIPE;
	if (!s->fin)
		s->fin = QRDMA_OWED_DUE;
	stream_update(t, s);
	return 0;
}

int qrdma_stream_reset(struct qrdma_streams *t, struct qrdma_stream *s, u64 code)
{
	if (!s->has_tx)
		return -EPIPE;
	if (s->reset || qrdma_stream_tx_done(s))
		return 0;
	stream_cut(t, s, code);
	stream_update(t, s);
	return 0;
}

u64 qrdma_stream_readable(const struct qrdma_stream *s)
{
	return qrdma_reasm_readable(&s->rx);
}

u32 qrdma_stream_peek(const struct qrdma_stream *s, u64 skip, struct qrdma_seg *seg, u32 max)
{
	return qrdma_reasm_peek(&s->rx, skip, seg, max);
}

u64 qrdma_stream_consume(struct qrdma_streams *t, struct qrdma_stream *s, u64 len)
{
	u64 n = qrdma_reasm_consume(&s->rx, len);

	s->rx_flow.read += n;
	t->rx_flow.read += n;
	stream_update(t, s);
	return n;
}

bool qrdma_stream_at_eof(const struct qrdma_stream *s)
{
	return !s->has_rx || s->rx_discard || (!s->rx_reset && s->rx_flow.read == s->rx_final);
}

int qrdma_stream_rx_error(const struct qrdma_stream *s)
{
	return s->rx_reset && !s->rx_discard ? -ECONNRESET : 0;
}

void qrdma_stream_stop(struct qrdma_streams *t, struct qrdma_stream *s, u64 code)
{
	if (!s->has_rx || s->rx_discard || s->rx_reset)
		return;
	if (!stream_rx_complete(s)) {
		s->stop = QRDMA_OWED_DUE;
		s->stop_code = code;
	}
	s->rx_discard = true;
	stream_forgo(t, s);
	stream_update(t, s);
}

bool qrdma_stream_all_acked(const struct qrdma_stream *s)
{
	if (s->reset)
		return s->reset == QRDMA_OWED_DONE;
	return !qrdma_sendq_unacked(&s->tx) &&
	       (s->fin == QRDMA_OWED_NO || s->fin == QRDMA_OWED_DONE);
}

void qrdma_streams_set_window(struct qrdma_streams *t, u64 window)
{
	struct qrdma_stream *s;
	u32 i;

	window = min_t(u64, window, QRDMA_FLOW_MAX);
	t->rx_flow.window = window;
	t->stream_window = window;
	for (i = 0; i < QRDMA_STREAMS_HASH; i++) {
		for (s = t->hash[i]; s; s = s->hash_next) {
			s->rx_flow.window = window;
			stream_update(t, s);
		}
	}
}

void qrdma_streams_hold(struct qrdma_streams *t, bool hold)
{
	t->hold = hold;
}
