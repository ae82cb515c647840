// SPDX-License-Identifier: GPL-2.0
/*
 * Link: how a socket gets its connection and its path to the peer, changes the path, and gives
 * both up. See link.h.
 */
#include <linux/moduleparam.h>
#include <linux/random.h>

#include "core/conn_hs.h"
#include "crypto.h"
#include "demux.h"
#include "inband.h"
#include "input.h"
#include "link.h"
#include "output.h"

/* Another try for what failed, doubled up to LINK_RETRY_SHIFT_MAX times. */
#define LINK_RETRY_NS		(100ULL * NSEC_PER_MSEC)
#define LINK_RETRY_SHIFT_MAX	5

static bool ecn = true;
module_param(ecn, bool, 0644);
MODULE_PARM_DESC(ecn, "send the packets of new connections as ECN-capable where the path carries it");

static u32 link_hash(const struct qrdma_cid *cid)
{
	u32 i, hash = 2166136261U;	/* FNV-1a: the ids are random, this only folds them */

	for (i = 0; i < cid->len; i++)
		hash = (hash ^ cid->data[i]) * 16777619U;
	return hash;
}

/*
 * How long may nothing be heard before we ask: a third of what RFC 9000 s10.1 makes of both ends'
 * time-outs, in ns.
 */
static u64 link_keepalive(const struct qrdma_tparams *local, const struct qrdma_tparams *remote)
{
	u64 idle = min_not_zero(local->max_idle_timeout, remote->max_idle_timeout);

	return div_u64(min_t(u64, idle, QRDMA_ALARM_MS_MAX) * NSEC_PER_MSEC, 3);
}

static u32 link_reason(int err)
{
	switch (err) {
	case -EADDRNOTAVAIL:
		return QRDMA_REASON_NO_DEVICE;
	case -ENETUNREACH:
	case -ENETDOWN:
	case -EHOSTUNREACH:
		return QRDMA_REASON_NO_ROUTE;
	case -ECONNREFUSED:
	case -EHOSTDOWN:
		return QRDMA_REASON_NO_SERVICE;
	case -EPROTONOSUPPORT:
	case -EPROTO:
	case -EMSGSIZE:
		return QRDMA_REASON_INCOMPATIBLE;
	case -ENODEV:
		return QRDMA_REASON_DEVICE_GONE;
	case -ENOMEM:
	case -ENOBUFS:
		return QRDMA_REASON_NO_MEMORY;
	}
	return QRDMA_REASON_NO_ANSWER;
}

/*
 * The path is not to be used any more. The device can go: nothing of ours holds it when this
 * returns.
 */
static void link_drop_path(struct qrdma_sock *qs)
{
	struct qrdma_path *path = &qs->path;

	qrdma_output_unwait(qs);
	if (path->peer)
		qrdma_device_unreserve(path->peer->dev, qs->reserved);
	qs->reserved = 0;
	qrdma_ah_put(path->ah);
	qrdma_ah_put(path->ah_ect);
	qrdma_peer_put(path->peer);
	path->ah = NULL;
	path->ah_ect = NULL;
	path->peer = NULL;
	path->lane = NULL;
}

/* This is the path from now on. */
static int link_take_path(struct qrdma_sock *qs, struct qrdma_peer *peer)
{
	struct qrdma_path *path = &qs->path;
	u32 hash = link_hash(&qs->setup.dcid);
	struct qrdma_ah *ah = qrdma_peer_ah(peer, path->flow_label, false), *ect;

	if (IS_ERR(ah))
		return PTR_ERR(ah);
	/* without it nothing is marked, which to the engine is a path that does not carry it */
	ect = qrdma_peer_ah(peer, path->flow_label, true);
	link_drop_path(qs);
	path->ah = ah;
	path->ah_ect = IS_ERR(ect) ? NULL : ect;
	path->peer = qrdma_peer_get(peer);
	qrdma_device_put(path->last);
	path->last = qrdma_device_get(peer->dev);
	path->lane = qrdma_device_lane(peer->dev, link_hash(&qs->setup.scid));
	path->qpn = qrdma_peer_qpn(peer, hash);
	path->err = 0;
	path->retries = 0;
	qrdma_sock_clear_alarm(qs, QRDMA_ALARM_LOST);
	qrdma_sock_clear_alarm(qs, QRDMA_ALARM_RESOLVE);
	/*
	 * What was promised stays promised, whether this device can hold it or not; it will not
	 * grow before it can.
	 */
	if (!qrdma_device_reserve(peer->dev, qs->window))
		qs->reserved = qs->window;
	return 0;
}

/* getsockname() of a socket that was not bound to an address shows the one that is used. */
static void link_take_local(struct qrdma_sock *qs, const struct qrdma_peer *peer)
{
	if (!qs->local_any)
		return;
	qrdma_addr_from_in6(&qs->local, &peer->local, qs->port.num, peer->ifindex, qs->ipv6);
	qrdma_port_narrow(&qs->port, &peer->local);
}

static u32 link_max_datagram(const struct qrdma_sock *qs, const struct qrdma_peer *peer)
{
	return min_t(u64, qrdma_peer_max_datagram(peer), qs->setup.remote.max_udp_payload_size);
}

static int link_install_keys(struct qrdma_sock *qs)
{
	const struct qrdma_aead_ops *aead = &qrdma_kernel_aead;
	struct qrdma_setup *setup = &qs->setup;
	int send, err;

	for (send = 0; send < 2; send++) {
		aead->slot_get(setup->slot[send]);
		err = qrdma_conn_install_key(qs->conn, send, setup->cipher, setup->slot[send]);
		if (err) {
			aead->slot_put(setup->slot[send]);
			return err;
		}
	}
	return 0;
}

/* The peer is known: make the engine. */
static int link_start(struct qrdma_sock *qs, struct qrdma_peer *peer)
{
	struct qrdma_setup *setup = &qs->setup;
	struct qrdma_hs_config hs;
	struct qrdma_conn_config cfg = {
		.aead = &qrdma_kernel_aead,
		.cache = qrdma_sock_conns,
		.is_server = setup->role == QRDMA_ROLE_SERVER,
		.scid = &setup->scid,
		.dcid = &setup->dcid,
		.local = &setup->local,
		.remote = &setup->remote,
		.max_datagram = link_max_datagram(qs, peer),
		.granularity = (u64)setup->config.granularity * NSEC_PER_USEC,
		.initial_rtt = peer->rtt_ns,
		.ack_delay = min_t(u64, setup->ack_delay_us, QRDMA_ACK_DELAY_US) * NSEC_PER_USEC,
		.cong = setup->config.congestion,
		.rx_mem_max = qrdma_sock_rx_cap(qs),
		.tx_mem_max = U32_MAX,
		.keepalive = link_keepalive(&setup->local, &setup->remote),
		.ecn = READ_ONCE(ecn),
	};
	int err;

	if (cfg.max_datagram < QRDMA_DATAGRAM_MIN)
		return -EMSGSIZE;
	if (qs->inband) {
		qrdma_inband_config(qs, &hs);
		cfg.hs = &hs;
	}
	get_random_bytes(cfg.random, sizeof(cfg.random));
	err = qrdma_conn_create(&cfg, qrdma_sock_now(), &qs->conn, GFP_KERNEL);
	memzero_explicit(cfg.random, sizeof(cfg.random));
	if (err)
		return err;
	qs->window = setup->local.initial_max_data;
	err = qs->inband ? qrdma_inband_begin(qs) : link_install_keys(qs);
	if (!err)
		err = link_take_path(qs, peer);
	/* Nobody has promised anything yet: more than the usual first credit has to be there. */
	if (!err && !qs->reserved && qs->window > QRDMA_CREDIT_FIRST) {
		link_drop_path(qs);
		err = -ENOBUFS;
	}
	if (err) {
		qrdma_conn_destroy(qs->conn);
		qs->conn = NULL;
		return err;
	}
	/* From here on packet numbers are used up: those keys are good for no other attempt. */
	if (!qs->inband) {
		qs->spent = true;
		qrdma_setup_drop_keys(setup);
	}
	qrdma_demux_set_token(qs, qrdma_conn_reset_token(qs->conn));
	return 0;
}

/* Ask for the peer again, later; or give up when that has gone on for too long. */
static void link_retry_later(struct qrdma_sock *qs)
{
	u32 shift = min_t(u32, qs->path.retries++, LINK_RETRY_SHIFT_MAX);
	u64 now = qrdma_sock_now();

	qrdma_sock_set_alarm(qs, QRDMA_ALARM_RESOLVE, now + (LINK_RETRY_NS << shift));
	if (qs->alarm[QRDMA_ALARM_LOST] == QRDMA_NEVER)
		qrdma_sock_set_alarm(qs, QRDMA_ALARM_LOST, now + QRDMA_LOST_NS);
	qrdma_output_arm(qs);
}

static int link_resolve(struct qrdma_sock *qs)
{
	struct sock *sk = &qs->sk;
	struct in6_addr local, remote;
	int ifindex = sk->sk_bound_dev_if;

	qrdma_addr_to_in6(&qs->local, &local);
	qrdma_addr_to_in6(&qs->remote, &remote);
	if (!ifindex && qs->ipv6)
		ifindex = qs->remote.in6.sin6_scope_id ?: qs->port.ifindex;
	return qrdma_peer_resolve(sock_net(sk), qs->local_any ? NULL : &local, &remote, ifindex,
				  &qs->path.user);
}

/*
 * The peer is known, and there is no address handle for it. When it is stale again already, the
 * next event is on its way; else none would come: ask anew.
 */
static void link_no_handle(struct qrdma_sock *qs, int err)
{
	qs->path.err = err;
	if (err == -ESTALE)
		return;
	qrdma_peer_user_cancel(&qs->path.user);
	link_drop_path(qs);
	link_retry_later(qs);
}

/* There is no path for now; the event that brings one is on its way, or time is up. */
static void link_wait(struct qrdma_sock *qs, int err)
{
	link_drop_path(qs);
	if (!qs->conn)
		return;
	qs->path.err = err;
	qrdma_sock_set_alarm(qs, QRDMA_ALARM_LOST, qrdma_sock_now() + QRDMA_LOST_NS);
	qrdma_output_arm(qs);
}

static void link_on_ready(struct qrdma_sock *qs, struct qrdma_peer *peer)
{
	u64 now = qrdma_sock_now();
	int err;

	if (qs->conn) {
		if (qs->path.peer == peer)
			return;
		if (link_max_datagram(qs, peer) < QRDMA_DATAGRAM_MIN) {
			link_wait(qs, -EMSGSIZE);
			return;
		}
		err = link_take_path(qs, peer);
		if (err) {
			link_no_handle(qs, err);
			return;
		}
		qs->path.changes++;
		qrdma_stat_inc(QRDMA_STAT_MOVED);
		link_take_local(qs, peer);
		qrdma_conn_set_path(qs->conn, link_max_datagram(qs, peer), now);
		qrdma_output_run(qs, qrdma_conn_kick(qs->conn, now) | QRDMA_EV_TX);
		return;
	}
	if (!qrdma_sock_connecting(qs))
		return;
	err = link_start(qs, peer);
	if (err == -ESTALE)
		return;
	if (err) {
		qrdma_sock_fail(qs, -err, link_reason(err));
		return;
	}
	link_take_local(qs, peer);
	if (qs->inband) {
		/* Who speaks TLS may begin; and what a client has sent is looked at. */
		if (qs->inband->by_agent)
			qrdma_output_run(qs, qrdma_sock_speak(qs));
		else
			qs->sk.sk_state_change(&qs->sk);
		qrdma_input_drain(qs);
		return;
	}
	/*
	 * Both ends connect, in no order: who comes second does not leave the first waiting for
	 * its probe time-out.
	 */
	if (qs->setup.role == QRDMA_ROLE_SERVER)
		qrdma_conn_ping(qs->conn);
	qrdma_output_run(qs, QRDMA_EV_TX);
}

/* A path that had become too narrow may be there again, or this one has become so. */
static void link_on_mtu(struct qrdma_sock *qs, struct qrdma_peer *peer)
{
	if (!qs->conn)
		return;
	if (!qs->path.peer) {
		link_on_ready(qs, peer);
		return;
	}
	if (qs->path.peer != peer)
		return;
	if (link_max_datagram(qs, peer) < QRDMA_DATAGRAM_MIN) {
		link_wait(qs, -EMSGSIZE);
		return;
	}
	qrdma_conn_set_path(qs->conn, link_max_datagram(qs, peer), qrdma_sock_now());
	qrdma_output_run(qs, QRDMA_EV_TX);
}

/*
 * Nobody looks for the peer any more. A connection whose device was removed looks once for
 * another device that reaches the peer, which is decided at once when there is none; other causes
 * may pass, and are waited for. The addresses of a net device that is deleted go first, its RDMA
 * device later: so each time that nothing was found, the device is looked at.
 */
static void link_on_gone(struct qrdma_sock *qs, int err)
{
	const struct qrdma_device *last = qs->path.last;
	bool device_gone = qs->path.err == -ENODEV || (last && !qrdma_device_alive(last));

	link_drop_path(qs);
	if (!qs->conn) {
		qrdma_sock_fail(qs, -err, link_reason(err));
		return;
	}
	if (!device_gone && err == -ENODEV) {
		qs->path.err = -ENODEV;
		if (!link_resolve(qs))
			return;
		device_gone = true;
	}
	if (device_gone) {
		qrdma_stat_inc(QRDMA_STAT_STRANDED);
		qrdma_sock_fail(qs, ENODEV, QRDMA_REASON_DEVICE_GONE);
		return;
	}
	qs->path.err = err;
	link_retry_later(qs);
}

static struct qrdma_sock *link_of(struct qrdma_peer_user *user)
{
	return container_of(user, struct qrdma_sock, path.user);
}

static void link_event(struct qrdma_peer_user *user, enum qrdma_peer_event event,
		       struct qrdma_peer *peer, int err)
{
	struct qrdma_sock *qs = link_of(user);

	if (!qs->live || !qrdma_peer_user_attached(user))
		return;
	switch (event) {
	case QRDMA_PEER_READY:
		link_on_ready(qs, peer);
		break;
	case QRDMA_PEER_STALE:
		link_wait(qs, -EHOSTUNREACH);
		break;
	case QRDMA_PEER_MTU:
		link_on_mtu(qs, peer);
		break;
	case QRDMA_PEER_GONE:
		link_on_gone(qs, err);
		break;
	}
}

static bool link_enter(struct qrdma_peer_user *user)
{
	return qrdma_sock_lock_or_defer(link_of(user), QRDMA_DEFER_PEER);
}

static void link_leave(struct qrdma_peer_user *user)
{
	release_sock(&link_of(user)->sk);
}

static void link_hold(struct qrdma_peer_user *user)
{
	sock_hold(&link_of(user)->sk);
}

static void link_put(struct qrdma_peer_user *user)
{
	sock_put(&link_of(user)->sk);
}

static const struct qrdma_peer_user_ops link_user_ops = {
	.enter	= link_enter,
	.leave	= link_leave,
	.event	= link_event,
	.hold	= link_hold,
	.put	= link_put,
};

int qrdma_link_open(struct qrdma_sock *qs)
{
	struct sock *sk = &qs->sk;
	int err;

	memcpy(qs->cid, qs->setup.scid.data, QRDMA_CID_LEN);
	err = qrdma_demux_insert(qs);
	if (err)
		return err;
	if (qs->inband && qs->inband->first.len) {
		err = qrdma_demux_insert_first(qs->inband);
		if (err) {
			qrdma_demux_remove(qs);
			return err;
		}
	}
	sock_hold(sk);
	qrdma_stat_inc(QRDMA_STAT_CONNECTIONS);
	memset(&qs->error, 0, sizeof(qs->error));
	/* What an attempt that failed has left: nobody may have asked for its error. */
	WRITE_ONCE(sk->sk_err, 0);
	qs->credit_held = false;
	qs->attempt++;
	qs->live = true;
	qs->path.flow_label = link_hash(&qs->setup.dcid) & 0xfffff;
	qs->path.changes = 0;
	qs->path.err = 0;
	qs->path.retries = 0;
	WRITE_ONCE(sk->sk_shutdown, 0);
	WRITE_ONCE(sk->sk_state, qs->inband && qs->setup.role == QRDMA_ROLE_SERVER ? TCP_SYN_RECV :
		   TCP_SYN_SENT);
	qrdma_sock_set_alarm_ms(qs, QRDMA_ALARM_CONNECT, qs->setup.config.connect_timeout);
	err = link_resolve(qs);
	if (err) {
		WRITE_ONCE(sk->sk_state, TCP_CLOSE);
		qrdma_link_close(qs);
		return err;
	}
	qrdma_output_arm(qs);
	return 0;
}

/* The numbers are those of "life of a connection" in sock.h. */
void qrdma_link_close(struct qrdma_sock *qs)
{
	struct sock *sk = &qs->sk;
	int i;

	if (!qs->live)
		return;
	/* A request to retire that is on its way is for this connection, not for the next one. */
	clear_bit(QRDMA_TODO_RETIRE, &qs->todo);
	clear_bit(QRDMA_TODO_INITIAL, &qs->todo);
	qrdma_demux_remove(qs);					/* 1 */
	qrdma_demux_set_token(qs, NULL);
	if (qs->inband && qs->inband->first.len)
		qrdma_demux_remove_first(qs->inband);
	qs->live = false;					/* 2 */
	qrdma_peer_user_cancel(&qs->path.user);			/* 3 */
	hrtimer_cancel(&qs->timer);				/* 4 */
	qs->timer_at = QRDMA_NEVER;
	for (i = 0; i < __QRDMA_ALARM_MAX; i++)
		qrdma_sock_clear_alarm(qs, i);
	qrdma_output_detach(qs);				/* 5 */
	qrdma_input_detach(qs);
	link_drop_path(qs);					/* 6 */
	qrdma_device_put(qs->path.last);
	qs->path.last = NULL;
	qrdma_inband_free(qs);
	if (sock_flag(sk, SOCK_DEAD) || qs->error.reason == QRDMA_REASON_DEVICE_GONE) {
		qrdma_conn_destroy(qs->conn);			/* 7 */
		qs->conn = NULL;
		WRITE_ONCE(qs->readable, 0);
		WRITE_ONCE(sk->sk_wmem_queued, 0);
		atomic_set(&sk->sk_rmem_alloc, 0);
	}
	if (sock_flag(sk, SOCK_DEAD)) {
		qrdma_sock_unbind(qs);
		qrdma_stat_dec(QRDMA_STAT_ORPHANS);
	}
	qrdma_stat_dec(QRDMA_STAT_CONNECTIONS);
	sock_put(sk);						/* 8 */
}

void qrdma_link_let_go(struct qrdma_sock *qs)
{
	struct sock *sk = &qs->sk;

	/* The connection's reference keeps the socket; qrdma_link_close() releases the port. */
	if (qs->live)
		qrdma_stat_inc(QRDMA_STAT_ORPHANS);
	else
		qrdma_sock_unbind(qs);
	sock_orphan(sk);
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, -1);
}

void qrdma_link_abort(struct qrdma_sock *qs)
{
	if (qs->live && qs->conn)
		qrdma_output_run(qs, qrdma_conn_close(qs->conn, QRDMA_APP_ABORT, true,
						      qrdma_sock_now()) | QRDMA_EV_TX);
	else
		qrdma_sock_fail(qs, qrdma_sock_connecting(qs) ? ECONNRESET : 0,
				QRDMA_REASON_LOCAL_CLOSE);
}

/* A worker leaves it to who has the lock; see qrdma_sock_lock_or_defer(). */
static bool link_lock_again(struct qrdma_sock *qs, bool worker)
{
	if (worker)
		return qrdma_sock_lock_or_defer(qs, QRDMA_DEFER_WORK);
	lock_sock(&qs->sk);
	return true;
}

/*
 * Derive the next generation of a direction; the lock is given up meanwhile, for the cipher may
 * have to be looked up. Return: false: a worker has not got it back.
 */
static bool link_derive_key(struct qrdma_sock *qs, bool send, bool worker)
{
	const struct qrdma_aead_ops *aead = &qrdma_kernel_aead;
	struct qrdma_slot *from, *next = NULL;
	int err;

	if (!qs->live || !qs->conn)
		return true;
	from = qrdma_conn_next_keys(qs->conn, send);
	if (!from)
		return true;
	release_sock(&qs->sk);
	err = aead->slot_next(from, &next);
	if (!link_lock_again(qs, worker)) {
		qrdma_sock_todo(qs, QRDMA_TODO_KEYS);
		aead->slot_put(next);
		aead->slot_put(from);
		return false;
	}
	if (err) {
		qrdma_sock_set_alarm(qs, QRDMA_ALARM_KEYS, qrdma_sock_now() + LINK_RETRY_NS);
		qrdma_output_arm(qs);
	} else if (!qs->conn || qrdma_conn_install_next(qs->conn, send, from, next)) {
		aead->slot_put(next);
	}
	aead->slot_put(from);
	return true;
}

bool qrdma_link_derive_keys(struct qrdma_sock *qs)
{
	link_derive_key(qs, false, false);
	link_derive_key(qs, true, false);
	return qs->live && qs->conn;
}

/* Another attempt to connect has another agent. */
static void link_agent_left(struct qrdma_sock *qs)
{
	if (qs->inband && qs->inband->agent && READ_ONCE(qs->inband->agent->left))
		qrdma_inband_abandon(qs);
}

static void link_work(struct work_struct *work)
{
	struct qrdma_sock *qs = container_of(work, struct qrdma_sock, work);
	struct sock *sk = &qs->sk;

	if (!qrdma_sock_lock_or_defer(qs, QRDMA_DEFER_WORK))
		goto out;
	if (test_and_clear_bit(QRDMA_TODO_RETIRE, &qs->todo))
		qrdma_link_close(qs);
	if (test_and_clear_bit(QRDMA_TODO_LEFT, &qs->todo))
		link_agent_left(qs);
	if (test_and_clear_bit(QRDMA_TODO_INITIAL, &qs->todo))
		qrdma_inband_rekey(qs);
	if (test_and_clear_bit(QRDMA_TODO_KEYS, &qs->todo)) {
		if (!link_derive_key(qs, false, true) || !link_derive_key(qs, true, true))
			goto out;
		qrdma_output_run(qs, QRDMA_EV_TX);
	}
	if (test_and_clear_bit(QRDMA_TODO_QUIET, &qs->todo)) {
		qrdma_output_rest(qs);
		qrdma_input_rest(qs);
	}
	if (test_and_clear_bit(QRDMA_TODO_RESOLVE, &qs->todo) && qs->live && !qs->path.peer &&
	    !qrdma_peer_user_attached(&qs->path.user) && link_resolve(qs))
		link_retry_later(qs);
	if (test_and_clear_bit(QRDMA_TODO_SEND, &qs->todo))
		qrdma_output_run(qs, QRDMA_EV_TX);
	release_sock(sk);
out:
	sock_put(sk);
}

void qrdma_link_init(struct qrdma_sock *qs, bool ipv6)
{
	qrdma_sock_init(qs, ipv6, link_work, qrdma_output_timer);
	qrdma_peer_user_init(&qs->path.user, &link_user_ops);
}
