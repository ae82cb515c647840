/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Peers: what a host answered when it was asked for its queue pairs.
 *
 * Owns: the cache of peers, the hedged resolution, the decision that a path is not valid any more.
 * Called by: datapath and socket layer; device.c through struct qrdma_device_watch; rdma_cm and
 * the neighbour table.
 *
 * Two objects. An *entry* (private) is a question: (netns, local address or any, remote address,
 * interface or any), with the users that asked and the state of the asking. A *peer* is an
 * answer: refcounted, never edited; when something changes there is a new peer and the users are
 * told.
 *
 * Locks: one lock for all of it, taken with bottom halves off, inside any socket lock, never held
 * across event() or put(). Sending does not take it.
 *
 * Lifetime: an entry lives while it has users or is younger than peer_idle seconds; its peer is
 * revoked with it: holders of the peer can still read it, its address handles say -ESTALE.
 */
#ifndef QRDMA_PEER_H
#define QRDMA_PEER_H

#include <linux/in6.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "ah.h"
#include "device.h"
#include "sidr.h"

struct net;
struct task_struct;
struct qrdma_peer_entry;

/**
 * struct qrdma_peer - how to reach a host
 * @refs: references
 * @dev: local device, with a reference
 * @local: local address, IPv4 in mapped form: what getsockname() is to show for an unbound socket
 * @remote: the peer's address, same form
 * @ifindex: net device of the local address
 * @max_datagram: largest QUIC datagram that the peer's port takes, bytes; see
 *	qrdma_peer_max_datagram()
 * @qkey: key of its queue pairs
 * @nlanes: number of @qpn, at least 1
 * @qpn: its queue pairs
 * @rtt_ns: time that request and reply took: a first RTT estimate, an upper bound
 * @resolved_ns: when (monotonic)
 *
 * Found by: the users of its entry. Owned by: its entry, connections. Dies: with the last
 * reference.
 * Protected by: nothing, constant (but for the AH cache, which locks itself).
 */
struct qrdma_peer {
	refcount_t refs;
	struct qrdma_device *dev;
	struct in6_addr local;
	struct in6_addr remote;
	int ifindex;
	u32 max_datagram;
	u32 qkey;
	u32 nlanes;
	u32 qpn[QRDMA_SIDR_LANES];
	u64 rtt_ns;
	u64 resolved_ns;
	/* private: for peer.c */
	struct qrdma_ah_cache ahs;
	struct qrdma_peer_entry *entry;	/* a reference, until the peer dies */
	struct list_head chore;
};

/**
 * enum qrdma_peer_event - what a user is told
 * @QRDMA_PEER_READY: here is the peer: the first one, or one that replaces the earlier one, which
 *	is not to be used any more. The callee takes a reference if it keeps it.
 * @QRDMA_PEER_STALE: the peer is not valid any more: stop sending (sends would say -ESTALE). A
 *	new one is being looked for: READY or GONE follows.
 * @QRDMA_PEER_MTU: qrdma_peer_max_datagram() of the peer has changed
 * @QRDMA_PEER_GONE: there is no peer and nobody looks for one; err says why. The user is detached
 *	(as after qrdma_peer_user_cancel()) and may be used to resolve again, also from within
 *	event().
 *
 * err of GONE: -EHOSTUNREACH (no neighbour), -ETIMEDOUT (the host did not answer), -ECONNREFUSED
 * (the host has no AF_QRDMA), -ENETUNREACH (no route), -EADDRNOTAVAIL (the address or route
 * belongs to no RDMA port of this namespace), -EPROTONOSUPPORT (another version), -EPROTO
 * (nonsense answer),
 * -EHOSTDOWN (the host has it, its port has no lanes), -ENODEV (the local device was removed),
 * -ENETDOWN (the local port could not send the request), -EMSGSIZE (the MTU of one of the ports
 * is too small), -ENOMEM, or what else rdma_cm said.
 */
enum qrdma_peer_event {
	QRDMA_PEER_READY,
	QRDMA_PEER_STALE,
	QRDMA_PEER_MTU,
	QRDMA_PEER_GONE,
};

struct qrdma_peer_user;

/**
 * struct qrdma_peer_user_ops - what a user of a peer brings along
 * @enter: before an event: take what @event needs. false: it cannot be had now, and the owner calls
 *	qrdma_peer_user_kick() when it can. Kworker; must not wait for programs. NULL: nothing
 * @leave: undoes @enter
 * @event: something happened. Kworker, between @enter and @leave, may sleep. Calls for one user
 *	never overlap. @peer is set for READY and MTU, and borrowed; @err for GONE. Events that
 *	are overtaken by later ones may be left out (a READY before a GONE, say), never invented.
 *	It may run to its end after a cancel that it raced with: see qrdma_peer_user_cancel().
 * @hold: keep the memory of @user. Any context but hard interrupt, with the lock of peer.c held.
 * @put: undoes @hold, once for each @hold; any context but hard interrupt, possibly within
 *	qrdma_peer_user_cancel() (so it must not take the socket lock; sock_put() is fine when the
 *	caller of cancel has a reference of its own)
 */
struct qrdma_peer_user_ops {
	bool (*enter)(struct qrdma_peer_user *user);
	void (*leave)(struct qrdma_peer_user *user);
	void (*event)(struct qrdma_peer_user *user, enum qrdma_peer_event event,
		      struct qrdma_peer *peer, int err);
	void (*hold)(struct qrdma_peer_user *user);
	void (*put)(struct qrdma_peer_user *user);
};

/**
 * struct qrdma_peer_user - somebody who wants to know; embedded in the connection
 * @ops: set by qrdma_peer_user_init()
 *
 * Owned by: the connection. Protected by: the lock of peer.c.
 */
struct qrdma_peer_user {
	const struct qrdma_peer_user_ops *ops;
	/* private: for peer.c */
	struct list_head list;
	struct qrdma_peer_entry *entry;
	unsigned long pending;
	int err;
	bool told;			/* has had a READY, and no STALE since */
	u32 attach;			/* counts resolutions */
	u32 serving;			/* which of them the running event() belongs to */
	const struct task_struct *server;	/* who runs event() */
	struct work_struct work;
};

/** qrdma_peer_user_init() - not attached. */
void qrdma_peer_user_init(struct qrdma_peer_user *user, const struct qrdma_peer_user_ops *ops);

/** qrdma_peer_user_kick() - @enter will not fail now. Any context but hard interrupt. */
void qrdma_peer_user_kick(struct qrdma_peer_user *user);

/**
 * qrdma_peer_start() - start answering and asking; after qrdma_device_start()
 *
 * Context: may sleep. Return: 0 or a negative errno.
 */
int qrdma_peer_start(void);

/** qrdma_peer_stop() - undo; there are no users any more. May sleep. */
void qrdma_peer_stop(void);

/**
 * qrdma_peer_resolve() - find the peer, and stay informed about it
 * @net: network namespace
 * @local: local address to be used (IPv4 mapped), or NULL or :: or ::ffff:0.0.0.0 to have the
 *	route decide
 * @remote: address of the host (IPv4 mapped)
 * @ifindex: SO_BINDTODEVICE or scope of a link-local address, 0: any
 * @user: initialised and not attached
 *
 * Answers always through user->ops->event(), in a kworker, soon when the peer is cached. Server
 * side: @local = rxbuf->daddr, @remote = rxbuf->saddr.
 *
 * Context: any but hard interrupt; under a socket lock or not.
 * Return: 0 (event READY or GONE will come unless cancelled); else no event comes: -EBUSY (the
 * user is attached), -ENOBUFS (too many peers), -ENOMEM, -EINVAL (no unicast address, families
 * differ, link-local without @ifindex), -ENETDOWN (the module is stopping).
 */
int qrdma_peer_resolve(struct net *net, const struct in6_addr *local,
		       const struct in6_addr *remote, int ifindex, struct qrdma_peer_user *user);

/**
 * qrdma_peer_known() - the peer, if that was asked before
 * @net: as in qrdma_peer_resolve()
 * @local: the same
 * @remote: the same
 * @ifindex: the same
 *
 * Asks nobody, and keeps nothing alive. Context: any but hard interrupt.
 *
 * Return: the peer that is in force, with a reference; NULL: there is none.
 */
struct qrdma_peer *qrdma_peer_known(struct net *net, const struct in6_addr *local,
				    const struct in6_addr *remote, int ifindex);

/**
 * qrdma_peer_user_cancel() - no more events, please
 * @user: attached or not
 *
 * Does not wait, so it can be called under lock_sock (which event() takes). No event() begins
 * after it; one that had begun may still run, so event() must ask qrdma_peer_user_attached()
 * after it has taken the socket lock, and do nothing when it says no. The memory is safe until
 * @put.
 *
 * Context: any but hard interrupt.
 */
void qrdma_peer_user_cancel(struct qrdma_peer_user *user);

/**
 * qrdma_peer_user_attached() - are events wanted?
 * @user: user
 *
 * To be asked under the lock that the owner holds around cancel and resolve. Within event(): is
 * this event still wanted? False when the owner has cancelled, or cancelled and resolved anew,
 * since the event came about.
 */
bool qrdma_peer_user_attached(const struct qrdma_peer_user *user);

/**
 * qrdma_peer_suspect() - packets to this peer go unanswered
 * @peer: in force or not
 *
 * Asks again in the background, at most once a second for all connections to that host. The same
 * answer: nothing happens. Another: READY with the new peer. None: nothing happens, the
 * connections decide themselves how long they wait. Any context but hard interrupt.
 */
void qrdma_peer_suspect(struct qrdma_peer *peer);

/** qrdma_peer_get() - one more reference. Any context. */
static inline struct qrdma_peer *qrdma_peer_get(struct qrdma_peer *peer)
{
	refcount_inc(&peer->refs);
	return peer;
}

/** qrdma_peer_put() - drop a reference; NULL is fine. Any context but hard interrupt. */
void qrdma_peer_put(struct qrdma_peer *peer);

/**
 * qrdma_peer_ah() - the address handle for a flow label towards the peer
 * @peer: in force or not
 * @flow_label: 20 bits
 * @ect: of packets marked ECT(0)
 *
 * To be kept by the connection for as long as its peer is the same, and dropped with
 * qrdma_ah_put().
 * Context: process, may sleep. Return: handle or ERR_PTR, see qrdma_ah_cache_get().
 */
static inline struct qrdma_ah *qrdma_peer_ah(struct qrdma_peer *peer, u32 flow_label, bool ect)
{
	return qrdma_ah_cache_get(&peer->ahs, flow_label, ect);
}

/** qrdma_peer_qpn() - the peer's queue pair for a hash (until its packets tell a better one) */
static inline u32 qrdma_peer_qpn(const struct qrdma_peer *peer, u32 hash)
{
	return peer->qpn[hash % peer->nlanes];
}

/** qrdma_peer_max_datagram() - largest QUIC datagram that both ports take now, bytes */
static inline u32 qrdma_peer_max_datagram(const struct qrdma_peer *peer)
{
	return min(peer->max_datagram, qrdma_device_max_datagram(peer->dev));
}

/**
 * struct qrdma_peer_stats - counters of the peer layer
 * @entries: questions in the cache
 * @users: users attached
 * @tries: cm_ids that exist at this moment
 * @resolved: answers
 * @failed: questions given up
 * @hedges: further requests sent because the first was not answered at once
 * @replaced: peers replaced
 * @stale: peers found to be not valid any more
 * @suspects: times that a peer was suspected and asked again
 * @evicted: idle entries dropped because there were too many
 * @expired: idle entries dropped because of their age
 * @refused: resolutions refused, too many peers
 * @served: requests answered
 * @rejected: requests rejected
 * @bad_reply: answers that made no sense
 */
struct qrdma_peer_stats {
	u64 entries;
	u64 users;
	u64 tries;
	u64 resolved;
	u64 failed;
	u64 hedges;
	u64 replaced;
	u64 stale;
	u64 suspects;
	u64 evicted;
	u64 expired;
	u64 refused;
	u64 served;
	u64 rejected;
	u64 bad_reply;
};

/** qrdma_peer_stats() - fill @stats. Any context. */
void qrdma_peer_stats(struct qrdma_peer_stats *stats);

#endif /* QRDMA_PEER_H */
