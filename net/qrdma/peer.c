// SPDX-License-Identifier: GPL-2.0
/*
 * Peers: the cache, the asking, the doubting. See peer.h for what is owned, who calls, the locks.
 *
 * Each entry has one work item, which alone starts and destroys requests and revokes peers; all
 * others set a flag under peer_lock and kick it. So the machine of an entry is entry_work().
 *
 * Asking is hedged: CM repeats a request only after seconds, so we send another one, from a fresh
 * cm_id, every hedge_ms; the first good answer wins.
 */
#include <linux/debugfs.h>
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <net/arp.h>
#include <net/ipv6.h>
#include <net/neighbour.h>
#include <net/net_namespace.h>
#include <net/netevent.h>

#include "peer.h"

static unsigned int resolve_ms = 10000;
module_param(resolve_ms, uint, 0644);
MODULE_PARM_DESC(resolve_ms, "give up asking a host after so long, ms");

static unsigned int hedge_ms = 200;
module_param(hedge_ms, uint, 0644);
MODULE_PARM_DESC(hedge_ms, "ask again when there is no answer for so long, ms");

static unsigned int peer_idle = 60;
module_param(peer_idle, uint, 0644);
MODULE_PARM_DESC(peer_idle, "forget a host that nobody uses after so long, s");

static unsigned int peers_max = 4096;
module_param(peers_max, uint, 0644);
MODULE_PARM_DESC(peers_max, "hosts in the cache, at most");

/** enum - bounds */
enum {
	PEER_TRIES_MAX	= 6,	/* requests of one entry at once */
	PEER_HASH_BITS	= 10,
};

#define PEER_GRACE_NS	(600 * NSEC_PER_MSEC)	/* for an address or port that has just come */
#define PEER_SPACING_NS	(20 * NSEC_PER_MSEC)	/* least time between two requests */
#define PEER_NARROW_NS	(10ULL * NSEC_PER_SEC)	/* ask one again that takes less than we send */
#define PEER_SUSPECT_NS	NSEC_PER_SEC		/* least time between two suspicions */

/** enum - bits of qrdma_peer_user.pending */
enum {
	PENDING_READY	= BIT(0),
	PENDING_STALE	= BIT(1),
	PENDING_MTU	= BIT(2),
	PENDING_GONE	= BIT(3),
};

/**
 * struct qrdma_peer_entry - a question, who asked it, and the answer
 * @node: in peer_hash, by remote address; unhashed: dead, no user is added any more
 * @idle: in peer_idle_list while there are no users
 * @refs: hash, queued work, users, peers
 * @key: the question
 * @users: who wants to know
 * @nusers: number of them
 * @peer: the answer in force, a reference; or NULL
 * @tries: requests, struct peer_try, oldest first
 * @ntries: number of them
 * @asked: requests sent since the asking began
 * @asking: an answer is wanted; with a @peer: to find out whether it still holds
 * @again: the users had an answer before: refusals are not taken for final
 * @reached: a request was sent, so the host is not without a neighbour
 * @stale: @peer does not hold any more
 * @flush: all requests are to be dropped
 * @end: the entry is to end, with this error for its users
 * @ended: it has
 * @last_err: of the last request that failed
 * @began: when the asking began; this and the following are monotonic ns
 * @next_try: when the next request may be sent
 * @next_suspect: when the next suspicion may be followed
 * @idle_since: when the last user left
 * @work: entry_work()
 *
 * Found by: key. Owned by: @refs. Dies: with the last one. Protected by: peer_lock.
 */
struct qrdma_peer_entry {
	struct hlist_node node;
	struct list_head idle;
	refcount_t refs;
	struct qrdma_sidr_key key;
	struct list_head users;
	u32 nusers;
	struct qrdma_peer *peer;
	struct list_head tries;
	u32 ntries;
	u32 asked;
	bool asking;
	bool again;
	bool reached;
	bool stale;
	bool flush;
	bool ended;
	int end;
	int last_err;
	u64 began;
	u64 next_try;
	u64 next_suspect;
	u64 idle_since;
	struct delayed_work work;
};

/**
 * struct peer_try - a request of an entry
 * @list: in entry->tries, or to be destroyed
 * @entry: who asks
 * @sidr: the request, NULL until it has been made
 * @finished: it has an answer or has failed
 */
struct peer_try {
	struct list_head list;
	struct qrdma_peer_entry *entry;
	struct qrdma_sidr_try *sidr;
	bool finished;
};

/**
 * struct peer_chores - what has to be done without the lock
 * @tries: requests to be destroyed
 * @peers: peers to be revoked, and a reference on each to be put
 */
struct peer_chores {
	struct list_head tries;
	struct list_head peers;
};

static DEFINE_SPINLOCK(peer_lock);	/* guards everything here; bottom halves off */
static DEFINE_HASHTABLE(peer_hash, PEER_HASH_BITS);
static LIST_HEAD(peer_idle_list);	/* entries without users, oldest first */
static u32 peer_seed;
static bool peer_running;
static struct qrdma_peer_stats peer_count;	/* under peer_lock */
static struct workqueue_struct *peer_wq;	/* entries: never blocks for long */
static struct workqueue_struct *peer_event_wq;	/* users */
static struct dentry *peer_debugfs;

/* ---- references ---- */

static void entry_put(struct qrdma_peer_entry *entry)
{
	if (refcount_dec_and_test(&entry->refs))
		kfree(entry);
}

/* Run the entry's work after @ns at the latest. A queued work has a reference. */
static void entry_kick(struct qrdma_peer_entry *entry, u64 ns)
{
	refcount_inc(&entry->refs);
	if (mod_delayed_work(peer_wq, &entry->work, ns ? nsecs_to_jiffies(ns) + 1 : 0))
		entry_put(entry);
}

void qrdma_peer_put(struct qrdma_peer *peer)
{
	if (!peer || !refcount_dec_and_test(&peer->refs))
		return;
	/* Whoever held the last reference, the paths were revoked before: see peer_chores. */
	entry_put(peer->entry);
	qrdma_device_put(peer->dev);
	kfree(peer);
}

static void chores_init(struct peer_chores *chores)
{
	INIT_LIST_HEAD(&chores->tries);
	INIT_LIST_HEAD(&chores->peers);
}

static void chores_do(struct peer_chores *chores)
{
	struct qrdma_peer *peer, *next_peer;
	struct peer_try *try, *next_try;

	list_for_each_entry_safe(peer, next_peer, &chores->peers, chore) {
		qrdma_ah_cache_revoke(&peer->ahs);
		qrdma_peer_put(peer);
	}
	list_for_each_entry_safe(try, next_try, &chores->tries, list) {
		if (try->sidr)
			qrdma_sidr_destroy(try->sidr);
		kfree(try);
	}
}

/* ---- users ---- */

static void user_notify(struct qrdma_peer_user *user, unsigned long what)
{
	lockdep_assert_held(&peer_lock);
	user->pending |= what;
	if (queue_work(peer_event_wq, &user->work))
		user->ops->hold(user);
}

static void entry_notify(struct qrdma_peer_entry *entry, unsigned long what)
{
	struct qrdma_peer_user *user;

	list_for_each_entry(user, &entry->users, list)
		user_notify(user, what);
}

/* The caller puts the user when it has released the lock. */
static void user_detach(struct qrdma_peer_user *user)
{
	struct qrdma_peer_entry *entry = user->entry;

	lockdep_assert_held(&peer_lock);
	list_del_init(&user->list);
	WRITE_ONCE(user->entry, NULL);
	user->pending = 0;
	peer_count.users--;
	if (!--entry->nusers && !hlist_unhashed(&entry->node)) {
		entry->idle_since = ktime_get_ns();
		list_add_tail(&entry->idle, &peer_idle_list);
		entry_kick(entry, 0);
	}
	entry_put(entry);
}

/* What the user is told next, out of what is pending; overtaken events are left out. */
static int user_next_event(struct qrdma_peer_user *user, struct qrdma_peer **peer)
{
	struct qrdma_peer_entry *entry = user->entry;
	unsigned long pending = user->pending;

	user->pending = 0;
	if (!entry)
		return -1;
	if (pending & PENDING_GONE)
		return QRDMA_PEER_GONE;
	if (!entry->peer) {
		if (!(pending & PENDING_STALE) || !user->told)
			return -1;
		user->told = false;
		return QRDMA_PEER_STALE;
	}
	if (!(pending & (PENDING_READY | PENDING_MTU)))
		return -1;
	*peer = qrdma_peer_get(entry->peer);
	if (!(pending & PENDING_READY) && user->told)
		return QRDMA_PEER_MTU;
	user->told = true;
	return QRDMA_PEER_READY;
}

static void user_work(struct work_struct *work)
{
	struct qrdma_peer_user *user = container_of(work, struct qrdma_peer_user, work);
	struct qrdma_peer *peer = NULL;
	bool detached = false;
	int event, err;
	u32 attach;

	if (user->ops->enter && !user->ops->enter(user)) {
		user->ops->put(user);
		return;
	}
	spin_lock_bh(&peer_lock);
	event = user_next_event(user, &peer);
	err = event == QRDMA_PEER_GONE ? user->err : 0;
	attach = user->attach;
	user->serving = attach;
	WRITE_ONCE(user->server, current);
	spin_unlock_bh(&peer_lock);

	if (event >= 0)
		user->ops->event(user, event, peer, err);
	WRITE_ONCE(user->server, NULL);
	if (user->ops->leave)
		user->ops->leave(user);
	qrdma_peer_put(peer);

	if (event == QRDMA_PEER_GONE) {
		spin_lock_bh(&peer_lock);
		/* Unless it was cancelled, or asks again already. */
		detached = user->entry && user->attach == attach;
		if (detached)
			user_detach(user);
		spin_unlock_bh(&peer_lock);
		if (detached)
			user->ops->put(user);
	}
	user->ops->put(user);
}

void qrdma_peer_user_kick(struct qrdma_peer_user *user)
{
	spin_lock_bh(&peer_lock);
	if (user->entry && user->pending)
		user_notify(user, 0);
	spin_unlock_bh(&peer_lock);
}

void qrdma_peer_user_init(struct qrdma_peer_user *user, const struct qrdma_peer_user_ops *ops)
{
	memset(user, 0, sizeof(*user));
	user->ops = ops;
	INIT_LIST_HEAD(&user->list);
	INIT_WORK(&user->work, user_work);
}

bool qrdma_peer_user_attached(const struct qrdma_peer_user *user)
{
	return READ_ONCE(user->entry) &&
	       (READ_ONCE(user->server) != current || user->serving == user->attach);
}

void qrdma_peer_user_cancel(struct qrdma_peer_user *user)
{
	bool detached, pending = false;

	spin_lock_bh(&peer_lock);
	detached = user->entry;
	if (detached) {
		user_detach(user);
		pending = cancel_work(&user->work);
	}
	spin_unlock_bh(&peer_lock);
	if (pending)
		user->ops->put(user);
	if (detached)
		user->ops->put(user);
}

/* ---- an entry and its answer ---- */

static void entry_ask(struct qrdma_peer_entry *entry)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&peer_lock);
	if (!entry->asking) {
		entry->asking = true;
		entry->reached = false;
		entry->asked = 0;
		entry->last_err = 0;
		entry->began = now;
		entry->next_try = now;
	}
	entry_kick(entry, 0);
}

static void entry_drop_peer(struct qrdma_peer_entry *entry, struct peer_chores *chores)
{
	if (entry->peer)
		list_add(&entry->peer->chore, &chores->peers);
	entry->peer = NULL;
	entry->stale = false;
}

static void entry_drop_tries(struct qrdma_peer_entry *entry, struct peer_chores *chores)
{
	peer_count.tries -= entry->ntries;
	entry->ntries = 0;
	entry->flush = false;
	list_splice_tail_init(&entry->tries, &chores->tries);
}

static void entry_unhash(struct qrdma_peer_entry *entry)
{
	if (hlist_unhashed(&entry->node))
		return;
	hash_del(&entry->node);
	list_del_init(&entry->idle);
	peer_count.entries--;
	entry_put(entry);
}

/* The caller holds a reference besides the hash's. */
static void entry_end(struct qrdma_peer_entry *entry, int err, struct peer_chores *chores)
{
	struct qrdma_peer_user *user;

	lockdep_assert_held(&peer_lock);
	if (entry->ended)
		return;
	entry->ended = true;
	entry_unhash(entry);
	entry->asking = false;
	entry_drop_tries(entry, chores);
	entry_drop_peer(entry, chores);
	list_for_each_entry(user, &entry->users, list) {
		user->err = err;
		user_notify(user, PENDING_GONE);
	}
}

/* The asking is over, without an answer. */
static void entry_fail(struct qrdma_peer_entry *entry, int err, struct peer_chores *chores)
{
	pr_debug("qrdma: asking %pI6c from %pI6c: error %d after %u requests\n",
		 &entry->key.remote, &entry->key.local, err, entry->asked);
	peer_count.failed++;
	entry->asking = false;
	entry_drop_tries(entry, chores);
	/*
	 * It was only to find out whether the answer in force still holds: it stays, unless the
	 * host has said that it takes less than any connection needs.
	 */
	if (!entry->peer || err == -EMSGSIZE)
		entry_end(entry, err, chores);
}

/* Is there a point in asking again after this error? */
static bool entry_may_retry(const struct qrdma_peer_entry *entry, int err)
{
	switch (err) {
	case -EHOSTUNREACH:
	case -ETIMEDOUT:
	case -ENOMEM:
	case -EAGAIN:
		return true;
	case -EADDRNOTAVAIL:
	case -ENETDOWN:
	case -ENODEV:
	case -EHOSTDOWN:
		if (ktime_get_ns() - entry->began < PEER_GRACE_NS)
			return true;
		break;
	}
	return entry->again && !entry->peer;
}

static void entry_note_error(struct qrdma_peer_entry *entry, int err, struct peer_chores *chores)
{
	u64 now = ktime_get_ns();

	if (!entry->asking)
		return;
	entry->last_err = err;
	if (!entry_may_retry(entry, err)) {
		entry_fail(entry, err, chores);
		return;
	}
	/* A neighbour that was not there at once: again, without waiting. */
	if (err == -EHOSTUNREACH)
		entry->next_try = min(entry->next_try, now + PEER_SPACING_NS);
}

static struct qrdma_peer *peer_create(struct qrdma_peer_entry *entry,
				      const struct qrdma_sidr_try *sidr)
{
	struct qrdma_peer *peer = kzalloc(sizeof(*peer), GFP_ATOMIC);

	if (!peer)
		return NULL;
	refcount_set(&peer->refs, 1);
	peer->dev = qrdma_device_get(sidr->dev);
	peer->local = sidr->local;
	peer->remote = entry->key.remote;
	peer->ifindex = sidr->ifindex;
	peer->max_datagram = sidr->info.max_datagram;
	peer->qkey = sidr->info.qkey;
	peer->nlanes = sidr->info.nlanes;
	memcpy(peer->qpn, sidr->info.qpn, sizeof(peer->qpn));
	peer->rtt_ns = sidr->rtt_ns;
	peer->resolved_ns = ktime_get_ns();
	refcount_inc(&entry->refs);
	peer->entry = entry;
	qrdma_ah_cache_init(&peer->ahs, &sidr->dev->ahs, &sidr->attr);
	return peer;
}

/* Does an answer say what we know already? */
static bool peer_same(struct qrdma_peer *peer, const struct qrdma_sidr_try *sidr)
{
	return peer->dev == sidr->dev && ipv6_addr_equal(&peer->local, &sidr->local) &&
	       peer->max_datagram == sidr->info.max_datagram && peer->qkey == sidr->info.qkey &&
	       peer->nlanes == sidr->info.nlanes &&
	       !memcmp(peer->qpn, sidr->info.qpn, sizeof(peer->qpn)) &&
	       qrdma_ah_cache_same(&peer->ahs, &sidr->attr);
}

static void entry_answer(struct qrdma_peer_entry *entry, const struct qrdma_sidr_try *sidr,
			 struct peer_chores *chores)
{
	struct qrdma_peer *peer;

	if (!entry->asking)
		return;
	if (entry->peer && peer_same(entry->peer, sidr)) {
		entry->asking = false;
		peer_count.resolved++;
		return;
	}
	peer = peer_create(entry, sidr);
	if (!peer) {
		entry_note_error(entry, -ENOMEM, chores);
		return;
	}
	/*
	 * The device was marked, or the GID went, before the lock was taken: then this answer is
	 * late. If it happens after this, those who tell us will find the peer in the entry.
	 */
	if (!qrdma_device_alive(peer->dev) || !qrdma_ah_cache_check(&peer->ahs)) {
		list_add(&peer->chore, &chores->peers);
		entry_note_error(entry, -EADDRNOTAVAIL, chores);
		return;
	}
	if (entry->peer)
		peer_count.replaced++;
	entry_drop_peer(entry, chores);
	entry->peer = peer;
	entry->asking = false;
	entry->again = true;
	peer_count.resolved++;
	entry_notify(entry, PENDING_READY);
}

/* Requests that have finished */
static void entry_harvest(struct qrdma_peer_entry *entry, struct peer_chores *chores)
{
	struct peer_try *try, *next;

	list_for_each_entry_safe(try, next, &entry->tries, list) {
		entry->reached |= try->sidr && READ_ONCE(try->sidr->sent);
		if (!try->finished)
			continue;
		list_move_tail(&try->list, &chores->tries);
		entry->ntries--;
		peer_count.tries--;
		if (try->sidr->err)
			entry_note_error(entry, try->sidr->err, chores);
		else
			entry_answer(entry, try->sidr, chores);
		/* A failure may have emptied the list under us. */
		if (list_empty(&entry->tries))
			break;
	}
	if (!entry->asking)
		entry_drop_tries(entry, chores);
}

/* Flags that others have set */
static void entry_obey(struct qrdma_peer_entry *entry, struct peer_chores *chores)
{
	u64 idle = (u64)peer_idle * NSEC_PER_SEC;

	if (entry->end || hlist_unhashed(&entry->node)) {
		entry_end(entry, entry->end, chores);
		return;
	}
	if (entry->flush)
		entry_drop_tries(entry, chores);
	if (entry->stale) {
		peer_count.stale++;
		entry_drop_peer(entry, chores);
		entry_notify(entry, PENDING_STALE);
		if (entry->nusers)
			entry_ask(entry);
	}
	if (entry->nusers)
		return;
	if (!entry->peer) {
		entry_end(entry, 0, chores);
	} else if (ktime_get_ns() - entry->idle_since >= idle) {
		peer_count.expired++;
		entry_end(entry, 0, chores);
	}
}

/* Kworker, handler lock of the cm_id held */
static void try_done(struct qrdma_sidr_try *sidr)
{
	struct peer_try *try = sidr->arg;

	spin_lock_bh(&peer_lock);
	try->sidr = sidr;
	try->finished = true;
	/* The entry lives: it has this request, and waits for us when it destroys it. */
	entry_kick(try->entry, 0);
	spin_unlock_bh(&peer_lock);
}

/*
 * A reference on the namespace, or NULL when it is going away: nobody uses the entry any more, or
 * it would be held. As long as the entry is hashed, peer_net_exit() has not been through.
 */
static struct net *entry_get_net(const struct qrdma_peer_entry *entry)
{
	lockdep_assert_held(&peer_lock);
	return hlist_unhashed(&entry->node) ? NULL : maybe_get_net(entry->key.net);
}

/* Sends one more request. Returns its error, if it failed at once. */
static int entry_send(struct qrdma_peer_entry *entry)
{
	struct peer_try *try = kzalloc(sizeof(*try), GFP_KERNEL);
	struct qrdma_sidr_try *sidr;
	struct net *net;

	if (!try)
		return -ENOMEM;
	try->entry = entry;
	spin_lock_bh(&peer_lock);
	net = entry_get_net(entry);
	if (!net) {
		spin_unlock_bh(&peer_lock);
		kfree(try);
		return -ENETDOWN;
	}
	list_add_tail(&try->list, &entry->tries);
	entry->ntries++;
	peer_count.tries++;
	if (entry->asked++)
		peer_count.hedges++;
	spin_unlock_bh(&peer_lock);

	/* From here on the request holds it. */
	sidr = qrdma_sidr_ask(&entry->key, try_done, try);
	put_net(net);

	spin_lock_bh(&peer_lock);
	if (IS_ERR(sidr)) {
		list_del(&try->list);
		entry->ntries--;
		peer_count.tries--;
	} else {
		try->sidr = sidr;
	}
	spin_unlock_bh(&peer_lock);
	if (IS_ERR(sidr)) {
		kfree(try);
		return PTR_ERR(sidr);
	}
	return 0;
}

/* Is it time for a request? The oldest makes room when there are too many. */
static bool entry_wants_try(struct qrdma_peer_entry *entry, u64 now, struct peer_chores *chores)
{
	u64 hedge = (u64)max(hedge_ms, 1U) * NSEC_PER_MSEC;
	struct peer_try *oldest;

	if (!entry->asking || now < entry->next_try)
		return false;
	if (entry->ntries >= PEER_TRIES_MAX) {
		oldest = list_first_entry(&entry->tries, struct peer_try, list);
		list_move_tail(&oldest->list, &chores->tries);
		entry->ntries--;
		peer_count.tries--;
	}
	entry->next_try = now + (hedge << min(entry->asked / PEER_TRIES_MAX, 2U));
	return true;
}

/* The host took less than we can send when it answered: its port may have grown since. */
static bool entry_is_narrow(const struct qrdma_peer_entry *entry)
{
	const struct qrdma_peer *peer = entry->peer;

	return entry->nusers && peer && !entry->stale &&
	       peer->max_datagram < qrdma_device_max_datagram(peer->dev);
}

static void entry_schedule(struct qrdma_peer_entry *entry)
{
	u64 now = ktime_get_ns();
	u64 until;

	if (hlist_unhashed(&entry->node))
		return;
	if (entry->asking)
		until = min(entry->next_try, entry->began + (u64)resolve_ms * NSEC_PER_MSEC);
	else if (!entry->nusers)
		until = entry->idle_since + (u64)peer_idle * NSEC_PER_SEC;
	else if (entry_is_narrow(entry))
		until = entry->began + PEER_NARROW_NS;
	else
		return;
	/* Not if somebody has kicked it meanwhile: that is to be served at once. */
	refcount_inc(&entry->refs);
	if (!queue_delayed_work(peer_wq, &entry->work,
				until > now ? nsecs_to_jiffies(until - now) + 1 : 0))
		entry_put(entry);
}

static void entry_work(struct work_struct *work)
{
	struct qrdma_peer_entry *entry = container_of(work, struct qrdma_peer_entry, work.work);
	struct peer_chores chores;
	bool send;
	int err;
	u64 now;

	chores_init(&chores);
	spin_lock_bh(&peer_lock);
	entry_obey(entry, &chores);
	entry_harvest(entry, &chores);
	/* Not earlier: the asking may have begun just now. */
	now = ktime_get_ns();
	if (entry->asking && now - entry->began >= (u64)resolve_ms * NSEC_PER_MSEC)
		entry_fail(entry, entry->reached || !entry->last_err ? -ETIMEDOUT : entry->last_err,
			   &chores);
	if (!entry->asking && entry_is_narrow(entry) && now - entry->began >= PEER_NARROW_NS)
		entry_ask(entry);
	send = entry_wants_try(entry, now, &chores);
	spin_unlock_bh(&peer_lock);

	chores_do(&chores);
	chores_init(&chores);
	err = send ? entry_send(entry) : 0;

	spin_lock_bh(&peer_lock);
	/* At once means by the routing table: no neighbour was asked. */
	if (err == -EHOSTUNREACH && !entry->again)
		entry_fail(entry, err, &chores);
	else if (err)
		entry_note_error(entry, err, &chores);
	entry_schedule(entry);
	spin_unlock_bh(&peer_lock);
	chores_do(&chores);
	entry_put(entry);
}

/* ---- asking ---- */

static u32 peer_hashfn(const struct in6_addr *remote)
{
	return jhash(remote, sizeof(*remote), peer_seed);
}

static struct qrdma_peer_entry *entry_find(const struct qrdma_sidr_key *key)
{
	struct qrdma_peer_entry *entry;

	hash_for_each_possible(peer_hash, entry, node, peer_hashfn(&key->remote)) {
		if (ipv6_addr_equal(&entry->key.remote, &key->remote) &&
		    ipv6_addr_equal(&entry->key.local, &key->local) &&
		    entry->key.net == key->net && entry->key.ifindex == key->ifindex &&
		    !entry->end)
			return entry;
	}
	return NULL;
}

/* Too many: the one that nobody has used for the longest time goes. */
static bool peer_make_room(void)
{
	struct qrdma_peer_entry *entry;

	if (peer_count.entries < peers_max)
		return true;
	entry = list_first_entry_or_null(&peer_idle_list, struct qrdma_peer_entry, idle);
	if (!entry)
		return false;
	peer_count.evicted++;
	/* The work finds it unhashed, and ends it. */
	entry_kick(entry, 0);
	entry_unhash(entry);
	return true;
}

static struct qrdma_peer_entry *entry_create(const struct qrdma_sidr_key *key)
{
	struct qrdma_peer_entry *entry;

	if (!peer_make_room()) {
		peer_count.refused++;
		return ERR_PTR(-ENOBUFS);
	}
	entry = kzalloc(sizeof(*entry), GFP_ATOMIC);
	if (!entry)
		return ERR_PTR(-ENOMEM);
	refcount_set(&entry->refs, 1);
	INIT_LIST_HEAD(&entry->idle);
	INIT_LIST_HEAD(&entry->users);
	INIT_LIST_HEAD(&entry->tries);
	INIT_DELAYED_WORK(&entry->work, entry_work);
	entry->key = *key;
	hash_add(peer_hash, &entry->node, peer_hashfn(&key->remote));
	peer_count.entries++;
	return entry;
}

static int peer_attach(const struct qrdma_sidr_key *key, struct qrdma_peer_user *user, bool *was)
{
	struct qrdma_peer_entry *entry;

	lockdep_assert_held(&peer_lock);
	if (!peer_running)
		return -ENETDOWN;
	if (user->entry && !hlist_unhashed(&user->entry->node))
		return -EBUSY;
	entry = entry_find(key);
	if (!entry)
		entry = entry_create(key);
	if (IS_ERR(entry))
		return PTR_ERR(entry);

	*was = user->entry;
	if (user->entry)
		user_detach(user);
	user->ops->hold(user);
	user->attach++;
	user->told = false;
	refcount_inc(&entry->refs);
	WRITE_ONCE(user->entry, entry);
	list_add_tail(&user->list, &entry->users);
	list_del_init(&entry->idle);
	entry->nusers++;
	peer_count.users++;
	if (entry->peer && !entry->stale)
		user_notify(user, PENDING_READY);
	else
		entry_ask(entry);
	return 0;
}

static struct qrdma_sidr_key peer_key(struct net *net, const struct in6_addr *local,
				      const struct in6_addr *remote, int ifindex)
{
	struct qrdma_sidr_key key = { .net = net, .remote = *remote, .ifindex = ifindex };

	/* Any address is one key, however it is written. */
	if (local && !qrdma_sidr_any(local))
		key.local = *local;
	return key;
}

int qrdma_peer_resolve(struct net *net, const struct in6_addr *local,
		       const struct in6_addr *remote, int ifindex, struct qrdma_peer_user *user)
{
	struct qrdma_sidr_key key = peer_key(net, local, remote, ifindex);
	bool v4 = ipv6_addr_v4mapped(remote);
	int type = ipv6_addr_type(remote);
	bool was = false;
	int err;

	if (qrdma_sidr_any(remote) || (type & IPV6_ADDR_MULTICAST) ||
	    (v4 && (ipv4_is_multicast(remote->s6_addr32[3]) ||
		    ipv4_is_lbcast(remote->s6_addr32[3]))) ||
	    (!v4 && (type & IPV6_ADDR_LINKLOCAL) && !ifindex))
		return -EINVAL;
	if (!qrdma_sidr_any(&key.local) && ipv6_addr_v4mapped(&key.local) != v4)
		return -EINVAL;
	spin_lock_bh(&peer_lock);
	err = peer_attach(&key, user, &was);
	spin_unlock_bh(&peer_lock);
	if (was)
		user->ops->put(user);
	return err;
}

struct qrdma_peer *qrdma_peer_known(struct net *net, const struct in6_addr *local,
				    const struct in6_addr *remote, int ifindex)
{
	struct qrdma_sidr_key key = peer_key(net, local, remote, ifindex);
	struct qrdma_peer_entry *entry;
	struct qrdma_peer *peer = NULL;

	spin_lock_bh(&peer_lock);
	entry = entry_find(&key);
	if (entry && entry->peer && !entry->stale)
		peer = qrdma_peer_get(entry->peer);
	spin_unlock_bh(&peer_lock);
	return peer;
}

void qrdma_peer_suspect(struct qrdma_peer *peer)
{
	struct qrdma_peer_entry *entry = peer->entry;
	u64 now = ktime_get_ns();

	spin_lock_bh(&peer_lock);
	if (entry->peer == peer && !entry->asking && !entry->stale && now >= entry->next_suspect) {
		entry->next_suspect = now + PEER_SUSPECT_NS;
		peer_count.suspects++;
		entry_ask(entry);
	}
	spin_unlock_bh(&peer_lock);
}

/* ---- what happens outside ---- */

static void peer_gids_changed(struct qrdma_device *dev)
{
	struct qrdma_peer_entry *entry;
	int bucket;

	spin_lock_bh(&peer_lock);
	hash_for_each(peer_hash, bucket, entry, node) {
		if (entry->peer && entry->peer->dev == dev &&
		    !qrdma_ah_cache_check(&entry->peer->ahs)) {
			entry->stale = true;
			entry_kick(entry, 0);
		}
	}
	spin_unlock_bh(&peer_lock);
}

static void peer_mtu_changed(struct qrdma_device *dev)
{
	struct qrdma_peer_entry *entry;
	int bucket;

	spin_lock_bh(&peer_lock);
	hash_for_each(peer_hash, bucket, entry, node)
		if (entry->peer && entry->peer->dev == dev) {
			entry_notify(entry, PENDING_MTU);
			entry_kick(entry, 0);
		}
	spin_unlock_bh(&peer_lock);
}

/* A link that comes back may lead to other places. */
static void peer_link_changed(struct qrdma_device *dev, bool up)
{
	struct qrdma_peer_entry *entry;
	int bucket;

	if (!up)
		return;
	spin_lock_bh(&peer_lock);
	hash_for_each(peer_hash, bucket, entry, node)
		if (entry->peer && entry->peer->dev == dev && !entry->stale)
			entry_ask(entry);
	spin_unlock_bh(&peer_lock);
}

/* Any context but hard interrupt */
static int peer_netevent(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct neighbour *neigh = ptr;
	struct qrdma_peer_entry *entry;
	u8 ha[MAX_ADDR_LEN];
	struct in6_addr addr;

	if (event != NETEVENT_NEIGH_UPDATE || neigh->dev->addr_len != ETH_ALEN ||
	    !(READ_ONCE(neigh->nud_state) & NUD_VALID))
		return NOTIFY_DONE;
	if (neigh->tbl->family == AF_INET)
		ipv6_addr_set_v4mapped(*(__be32 *)neigh->primary_key, &addr);
	else if (neigh->tbl->family == AF_INET6)
		addr = *(struct in6_addr *)neigh->primary_key;
	else
		return NOTIFY_DONE;
	neigh_ha_snapshot((char *)ha, neigh, neigh->dev);

	spin_lock_bh(&peer_lock);
	hash_for_each_possible(peer_hash, entry, node, peer_hashfn(&addr)) {
		if (ipv6_addr_equal(&entry->key.remote, &addr) && entry->peer &&
		    entry->peer->ifindex == neigh->dev->ifindex &&
		    net_eq(entry->key.net, dev_net(neigh->dev)) &&
		    !qrdma_ah_cache_leads_to(&entry->peer->ahs, ha)) {
			entry->stale = true;
			entry_kick(entry, 0);
		}
	}
	spin_unlock_bh(&peer_lock);
	return NOTIFY_DONE;
}

static struct notifier_block peer_netevent_nb = {
	.notifier_call = peer_netevent,
};

/* Does the entry have to do with what goes? If so, it is marked for its work. */
static bool entry_leaves_device(struct qrdma_peer_entry *entry, const void *arg)
{
	struct peer_try *try;

	if (entry->peer && entry->peer->dev == arg) {
		entry->end = -ENODEV;
		return true;
	}
	list_for_each_entry(try, &entry->tries, list) {
		if (try->sidr && READ_ONCE(try->sidr->dev) == arg) {
			entry->flush = true;
			return true;
		}
	}
	return false;
}

static bool entry_leaves_net(struct qrdma_peer_entry *entry, const void *net)
{
	if (net && !net_eq(entry->key.net, net))
		return false;
	entry->end = -ENETDOWN;
	return true;
}

static struct qrdma_peer_entry *
peer_find_leaving(bool (*leaves)(struct qrdma_peer_entry *entry, const void *arg), const void *arg)
{
	struct qrdma_peer_entry *entry;
	int bucket;

	spin_lock_bh(&peer_lock);
	hash_for_each(peer_hash, bucket, entry, node) {
		if (leaves(entry, arg)) {
			refcount_inc(&entry->refs);
			spin_unlock_bh(&peer_lock);
			return entry;
		}
	}
	spin_unlock_bh(&peer_lock);
	return NULL;
}

/* On return each such entry has had its work run. The caller sees to it that no other appears. */
static void peer_purge(bool (*leaves)(struct qrdma_peer_entry *entry, const void *arg),
		       const void *arg)
{
	struct qrdma_peer_entry *entry;

	while ((entry = peer_find_leaving(leaves, arg))) {
		entry_kick(entry, 0);
		flush_delayed_work(&entry->work);
		entry_put(entry);
	}
}

/*
 * The device is off the list, so no request that begins now gets hold of it; an answer that is
 * already here is refused in entry_answer(). One that is just about to get hold of it is destroyed
 * when rdma_cm says that the device goes.
 */
static void peer_device_gone(struct qrdma_device *dev)
{
	peer_purge(entry_leaves_device, dev);
	/* Chores of works that had begun: they may hold the last GID references. */
	flush_workqueue(peer_wq);
}

static const struct qrdma_device_watch peer_watch = {
	.gids	= peer_gids_changed,
	.mtu	= peer_mtu_changed,
	.link	= peer_link_changed,
	.gone	= peer_device_gone,
};

/*
 * There are no sockets in the namespace any more, and its count is 0: requests in progress would
 * hold it, and entry_send() begins no other. So entries that are not hashed do not use it.
 */
static void __net_exit peer_net_exit(struct net *net)
{
	peer_purge(entry_leaves_net, net);
}

static struct pernet_operations peer_net_ops = {
	.exit = peer_net_exit,
};

/* ---- what people see ---- */

void qrdma_peer_stats(struct qrdma_peer_stats *stats)
{
	struct qrdma_sidr_stats sidr;

	qrdma_sidr_stats(&sidr);
	spin_lock_bh(&peer_lock);
	*stats = peer_count;
	spin_unlock_bh(&peer_lock);
	stats->served = sidr.served;
	stats->rejected = sidr.rejected;
	stats->bad_reply = sidr.bad_reply;
}

static int peer_debugfs_show(struct seq_file *seq, void *unused)
{
	struct qrdma_peer_entry *entry;
	struct qrdma_peer_stats st;
	int bucket;

	qrdma_peer_stats(&st);
	seq_printf(seq, "entries %llu users %llu tries %llu\n", st.entries, st.users, st.tries);
	seq_printf(seq, "resolved %llu failed %llu hedges %llu replaced %llu stale %llu\n",
		   st.resolved, st.failed, st.hedges, st.replaced, st.stale);
	seq_printf(seq, "suspects %llu evicted %llu expired %llu refused %llu\n", st.suspects,
		   st.evicted, st.expired, st.refused);
	seq_printf(seq, "served %llu rejected %llu bad_reply %llu\n", st.served, st.rejected,
		   st.bad_reply);
	spin_lock_bh(&peer_lock);
	hash_for_each(peer_hash, bucket, entry, node) {
		seq_printf(seq, "peer %pI6c from %pI6c users %u tries %u asking %d",
			   &entry->key.remote, &entry->key.local, entry->nusers, entry->ntries,
			   entry->asking);
		if (entry->peer)
			seq_printf(seq, " dev %s local %pI6c lanes %u qpn %u max %u rtt_us %llu",
				   entry->peer->dev->name, &entry->peer->local,
				   entry->peer->nlanes, entry->peer->qpn[0],
				   qrdma_peer_max_datagram(entry->peer),
				   div_u64(entry->peer->rtt_ns, NSEC_PER_USEC));
		seq_putc(seq, '\n');
	}
	spin_unlock_bh(&peer_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(peer_debugfs);

/* ---- start and stop ---- */

int qrdma_peer_start(void)
{
	int err = -ENOMEM;

	peer_seed = get_random_u32();
	peer_wq = alloc_workqueue("qrdma_peer", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!peer_wq)
		return err;
	peer_event_wq = alloc_workqueue("qrdma_peer_event", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!peer_event_wq)
		goto err_wq;
	err = register_pernet_subsys(&peer_net_ops);
	if (err)
		goto err_event_wq;
	err = register_netevent_notifier(&peer_netevent_nb);
	if (err)
		goto err_pernet;
	spin_lock_bh(&peer_lock);
	peer_running = true;
	spin_unlock_bh(&peer_lock);
	qrdma_device_set_watch(&peer_watch);
	err = qrdma_sidr_start();
	if (err)
		goto err_watch;
	peer_debugfs = debugfs_create_file("peers", 0400, qrdma_device_debugfs(), NULL,
					   &peer_debugfs_fops);
	return 0;

err_watch:
	spin_lock_bh(&peer_lock);
	peer_running = false;
	spin_unlock_bh(&peer_lock);
	qrdma_device_set_watch(NULL);
	unregister_netevent_notifier(&peer_netevent_nb);
err_pernet:
	unregister_pernet_subsys(&peer_net_ops);
err_event_wq:
	destroy_workqueue(peer_event_wq);
err_wq:
	destroy_workqueue(peer_wq);
	return err;
}

/*
 * 1. Nobody gets an entry any more.
 * 2. Nobody is answered any more.
 * 3. All entries end; their works have run, and nobody is left to kick them: requests are
 *    destroyed, the notifiers find no entry, the users are gone (the caller saw to it).
 * 4. The notifiers end, the work queues are empty.
 */
void qrdma_peer_stop(void)
{
	spin_lock_bh(&peer_lock);
	peer_running = false;
	spin_unlock_bh(&peer_lock);

	debugfs_remove(peer_debugfs);
	qrdma_sidr_stop();
	peer_purge(entry_leaves_net, NULL);
	WARN_ON(peer_count.users);

	qrdma_device_set_watch(NULL);
	unregister_netevent_notifier(&peer_netevent_nb);
	unregister_pernet_subsys(&peer_net_ops);
	destroy_workqueue(peer_event_wq);
	destroy_workqueue(peer_wq);
}
