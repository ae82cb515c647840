/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Devices: one struct qrdma_device for each RoCE v2 port, with its lanes and pools.
 *
 * Owns: the ib_client, protection domain, receive pool, lanes, address handle domain, port state.
 * Called by: the module's start and stop, peer.c, datapath (look-ups, credit), ib_core (add,
 * remove, events), net device notifier.
 * Locks: rdev_lock (a spinlock, taken with bottom halves off) guards the list of devices.
 * Lock order: see lane.h.
 *
 * Lifetime: found on the list (qrdma_device_find*()) from add to remove; the memory lives as long
 * as somebody has a reference. Removal revokes what belongs to the hardware and waits for nobody:
 * afterwards every call on device, lane, buffer or handle is still allowed and says -ENODEV.
 */
#ifndef QRDMA_DEVICE_H
#define QRDMA_DEVICE_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "ah.h"
#include "lane.h"
#include "pool.h"

struct dentry;
struct qrdma_gid_table;

/** enum - bounds */
enum {
	QRDMA_LANES_MAX = 16,	/* lanes per port; their numbers have to fit into a SIDR reply */
};

/**
 * struct qrdma_verbs_ops - upward calls to the datapath, handed down at start
 * @rx: a message arrived. The callee owns @rxbuf: it drops its reference with
 *	qrdma_buf_put(&rxbuf->buf) when it is done, from any context, at any time. Softirq, no
 *	lock held; it may take socket locks (bh_lock_sock), queue and flush on the lane.
 * @tx_room: a qrdma_lane_tx_get() on this lane had returned NULL and can be tried again. Kworker,
 *	no lock held, may sleep (lock_sock). Spurious calls happen.
 *
 * All are mandatory. None is called any more once qrdma_device_stop() has returned; none is
 * called for a lane once it was closed by the removal of its device (peers are told by peer.h).
 */
struct qrdma_verbs_ops {
	void (*rx)(struct qrdma_lane *lane, struct qrdma_rxbuf *rxbuf);
	void (*tx_room)(struct qrdma_lane *lane);
};

/**
 * struct qrdma_device_watch - upward calls to peer.c
 * @gids: the GID table may have changed: every path has to be checked
 * @mtu: qrdma_device_max_datagram() has changed
 * @link: the port went up (or down)
 * @gone: the device is off the list and about to close its lanes: drop all paths and cm_ids of
 *	it. On return no address handle of it may come into being any more.
 *
 * All in process context, may sleep; never two at once for the same device.
 */
struct qrdma_device_watch {
	void (*gids)(struct qrdma_device *dev);
	void (*mtu)(struct qrdma_device *dev);
	void (*link)(struct qrdma_device *dev, bool up);
	void (*gone)(struct qrdma_device *dev);
};

/**
 * struct qrdma_device - a port
 * @ref: memory
 * @list: on the list of devices; under rdev_lock
 * @ibdev: device; not to be followed without qrdma_device_alive() under a lock that remove takes
 * @port: port number
 * @name: "rxe0:1": for people
 * @qkey: key of all its queue pairs; privileged (high bit)
 * @nlanes: number of lanes
 * @pd: protection domain
 * @ahs: address handle domain
 * @rx_pool: receive buffers of all lanes
 * @rx_depth: receives posted per lane
 * @wq: the module's workqueue
 * @capacity: bytes of credit that the pool can back (changes with the MTU)
 * @reserved: bytes of credit that sockets hold
 * @refused: times that credit was refused
 * @max_msg: port MTU, at most QRDMA_UD_MAX
 * @up: the port is active
 * @gone: the device has been removed
 * @events: what @event_work has to look at
 * @event_work: serves port and GID events
 * @event_handler: of ib_core
 * @gids: addresses of the port, RCU
 * @debugfs: its file
 * @mtu_changes: port MTU changes seen
 * @link_changes: port state changes seen
 * @gid_changes: GID table changes seen
 * @loss_events: connections of this port that were found to lose too much; counted by sock.c
 * @lane: the lanes
 *
 * Found by: (ib_device, port). Owned by: the list (one reference), peers, connections.
 * Dies: after removal, with the last reference.
 */
struct qrdma_device {
	struct kref ref;
	struct list_head list;
	struct ib_device *ibdev;
	u32 port;
	char name[IB_DEVICE_NAME_MAX + 8];
	u32 qkey;
	u32 nlanes;
	struct ib_pd *pd;
	struct qrdma_ah_domain ahs;
	struct qrdma_pool *rx_pool;
	u32 rx_depth;
	struct workqueue_struct *wq;
	atomic64_t capacity;
	atomic64_t reserved;
	atomic64_t refused;
	u32 max_msg;
	bool up;
	bool gone;
	unsigned long events;
	struct work_struct event_work;
	struct ib_event_handler event_handler;
	struct qrdma_gid_table __rcu *gids;
	struct dentry *debugfs;
	u64 mtu_changes;
	u64 link_changes;
	u64 gid_changes;
	atomic64_t loss_events;
	struct qrdma_lane lane[QRDMA_LANES_MAX];
};

/**
 * struct qrdma_device_stats - counters of a device
 * @lanes: sum over its lanes
 * @rx_pool: receive pool
 * @nlanes: lanes (and queue pairs)
 * @ahs: address handles that exist
 * @ahs_created: that were ever made
 * @reserved: credit that is granted, bytes
 * @capacity: credit that may be granted, bytes
 * @refused: times that qrdma_device_reserve() said no
 * @mtu_changes: port MTU changes seen
 * @link_changes: port state changes seen
 * @gid_changes: GID table changes seen
 */
struct qrdma_device_stats {
	struct qrdma_lane_stats lanes;
	struct qrdma_pool_stats rx_pool;
	u32 nlanes;
	u32 ahs;
	u64 ahs_created;
	u64 reserved;
	u64 capacity;
	u64 refused;
	u64 mtu_changes;
	u64 link_changes;
	u64 gid_changes;
};

/**
 * qrdma_device_start() - register with ib_core; existing devices are added at once
 * @ops: upward calls; must stay valid until qrdma_device_stop()
 *
 * A device that cannot be used (no resources) is left out with a message, that is no error.
 * Start order: qrdma_device_start(), qrdma_peer_start(); stop order is the reverse.
 * Context: may sleep. Return: 0 or a negative errno.
 */
int qrdma_device_start(const struct qrdma_verbs_ops *ops);

/**
 * qrdma_device_stop() - remove all devices, wait for all buffers and references
 *
 * The caller has dropped, or will drop from other contexts, every reference, buffer and handle.
 * Context: may sleep.
 */
void qrdma_device_stop(void);

/** qrdma_device_set_watch() - for peer.c: who is told about changes; NULL: nobody. May sleep. */
void qrdma_device_set_watch(const struct qrdma_device_watch *watch);

/** qrdma_device_find() - the device of a port, with a reference; NULL. Any context but hardirq. */
struct qrdma_device *qrdma_device_find(const struct ib_device *ibdev, u32 port);

/**
 * qrdma_device_next() - walk over all devices
 * @prev: NULL to begin; its reference is dropped
 *
 * Return: the next one with a reference, or NULL.
 */
struct qrdma_device *qrdma_device_next(struct qrdma_device *prev);

/** qrdma_device_get() - one more reference. Any context. */
static inline struct qrdma_device *qrdma_device_get(struct qrdma_device *dev)
{
	kref_get(&dev->ref);
	return dev;
}

/** qrdma_device_put() - drop a reference; NULL is fine. Any context. */
void qrdma_device_put(struct qrdma_device *dev);

/** qrdma_device_alive() - not removed yet? */
static inline bool qrdma_device_alive(const struct qrdma_device *dev)
{
	return !READ_ONCE(dev->gone);
}

/** qrdma_device_up() - there, and its port is active? */
static inline bool qrdma_device_up(const struct qrdma_device *dev)
{
	return qrdma_device_alive(dev) && READ_ONCE(dev->up);
}

/**
 * qrdma_device_lane() - the lane for a hash
 * @dev: device
 * @hash: anything that spreads connections, e.g. the CPU or a connection id
 */
static inline struct qrdma_lane *qrdma_device_lane(struct qrdma_device *dev, u32 hash)
{
	return &dev->lane[hash % dev->nlanes];
}

/** qrdma_device_max_datagram() - largest QUIC datagram that the port takes now, bytes */
static inline u32 qrdma_device_max_datagram(const struct qrdma_device *dev)
{
	return READ_ONCE(dev->max_msg) - QRDMA_PORT_HDR_LEN;
}

/**
 * qrdma_device_reserve() - may so many more bytes of credit be granted to a peer?
 * @dev: device that the bytes will arrive on
 * @bytes: credit (MAX_DATA beyond what is granted already), bytes of stream data
 *
 * The sum over all sockets never exceeds what the receive pool can hold when every datagram is
 * full; small datagrams are copied by the socket layer. Reservations are given back with
 * qrdma_device_unreserve() as the bytes are consumed (or the connection ends), also after the
 * device is gone.
 *
 * Context: any.
 * Return: 0 and it is reserved; -ENOBUFS: grant no credit now (capacity used up, or the pool is
 * under its low mark), try again when the application has read; -ENODEV.
 */
int qrdma_device_reserve(struct qrdma_device *dev, u64 bytes);

/** qrdma_device_unreserve() - give back. Any context. */
void qrdma_device_unreserve(struct qrdma_device *dev, u64 bytes);

/** qrdma_device_rx_low() - receives are paused: grant no credit, drop what can be dropped */
static inline bool qrdma_device_rx_low(const struct qrdma_device *dev)
{
	return qrdma_pool_is_low(dev->rx_pool);
}

/**
 * qrdma_device_rx_tight() - keep no received buffer any longer than needed: copy what stays
 *
 * Comes before qrdma_device_rx_low(): buffers that sockets hold unread do not stop reception.
 */
static inline bool qrdma_device_rx_tight(const struct qrdma_device *dev)
{
	return qrdma_pool_is_tight(dev->rx_pool);
}

/** qrdma_device_stats() - fill @stats. Any context but hard interrupt. */
void qrdma_device_stats(struct qrdma_device *dev, struct qrdma_device_stats *stats);

/** qrdma_device_debugfs() - the directory "qrdma" of debugfs, for files of other layers; or NULL */
struct dentry *qrdma_device_debugfs(void);

#endif /* QRDMA_DEVICE_H */
