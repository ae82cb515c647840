/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lanes: one UD queue pair with its completion queue, its rings and its buffer pool for sending.
 *
 * Owns: queue pair, completion queue, GRH memory, what is posted.
 * Called by: device.c (open, close, port state, resets), datapath (tx_*), the completion queue
 * (softirq). Lanes move bytes and never parse them; only the GRH is read, which is the network's.
 *
 * Lock order (outer to inner), for the whole of the verbs layer:
 *	socket lock > peer entry lock > lane->rx_lock, lane->tx_lock > ah cache lock > pool lock
 * Upward calls (rx, tx_room, done) are made with none of them held.
 *
 * Lifetime: a lane is part of its struct qrdma_device; whoever keeps a lane pointer keeps a
 * reference on the device. When the device is removed its lanes are closed: everything is still
 * callable, and says -ENODEV. So removal waits for no user.
 */
#ifndef QRDMA_LANE_H
#define QRDMA_LANE_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "pool.h"
#include "ah.h"

struct qrdma_device;
struct qrdma_lane_ring;
struct qrdma_rx_slot;

/**
 * enum qrdma_lane_state - what a lane can do
 * @QRDMA_LANE_CLOSED: nothing any more (or not yet): the device is gone
 * @QRDMA_LANE_UP: sends and receives
 * @QRDMA_LANE_RESETTING: the queue pair died and is being revived; sends wait in the queue
 */
enum qrdma_lane_state {
	QRDMA_LANE_CLOSED,
	QRDMA_LANE_UP,
	QRDMA_LANE_RESETTING,
};

/**
 * struct qrdma_lane_stats - counters of a lane
 * @tx_posted: messages posted
 * @tx_inline: of those, inline
 * @tx_bytes: bytes posted, port headers included
 * @tx_signaled: of @tx_posted, those that asked for a completion
 * @tx_errors: sends that ended with an error, flushed ones included
 * @tx_oversize: sends refused with -EMSGSIZE
 * @tx_stale: sends dropped because their address handle had been revoked
 * @tx_down: sends dropped or refused because the port was down
 * @tx_nobuf: times that qrdma_lane_tx_get() had no buffer
 * @tx_again: times that the device had no room although we counted some (-ENOMEM from a post)
 * @rx_packets: messages handed up
 * @rx_bytes: bytes handed up, port headers included
 * @rx_runt: messages dropped: shorter than a port header
 * @rx_nogrh: messages dropped: no GRH, or neither IPv4 nor IPv6 in it
 * @rx_errors: receives that ended with an error, flushed ones included
 * @rx_pauses: times that refilling paused because the pool was low
 * @rx_posted: receives posted at this moment
 * @tx_pending: sends posted and not completed at this moment
 * @tx_queued: sends queued and not posted at this moment
 * @resets: times that the queue pair died and was reset
 * @relapses: further resets, because it died again before a send had completed: the same death
 * @stalls: resets because a send did not complete in time
 * @forced: resets in which the device did not flush and buffers were taken back by force
 * @qp_events: asynchronous events of the queue pair
 */
struct qrdma_lane_stats {
	u64 tx_posted;
	u64 tx_inline;
	u64 tx_bytes;
	u64 tx_signaled;
	u64 tx_errors;
	u64 tx_oversize;
	u64 tx_stale;
	u64 tx_down;
	u64 tx_nobuf;
	u64 tx_again;
	u64 rx_packets;
	u64 rx_bytes;
	u64 rx_runt;
	u64 rx_nogrh;
	u64 rx_errors;
	u64 rx_pauses;
	u64 rx_posted;
	u64 tx_pending;
	u64 tx_queued;
	u64 resets;
	u64 relapses;
	u64 stalls;
	u64 forced;
	u64 qp_events;
};

/**
 * struct qrdma_lane_ops - upward calls of a lane, handed down by device.c
 * @rx: a message arrived; the callee owns the buffer. Softirq.
 * @tx_room: qrdma_lane_tx_get() had refused and can be tried again. Kworker, may sleep.
 */
struct qrdma_lane_ops {
	void (*rx)(struct qrdma_lane *lane, struct qrdma_rxbuf *rxbuf);
	void (*tx_room)(struct qrdma_lane *lane);
};

/**
 * struct qrdma_lane_config - what a lane is opened with
 * @ibdev: device
 * @pd: protection domain
 * @port: port number
 * @vector: completion vector
 * @qkey: key of the queue pair
 * @rx_pool: where receive buffers come from
 * @wq: workqueue for resets; unbound
 * @ops: upward calls
 * @max_msg: largest message (port MTU, at most QRDMA_UD_MAX)
 * @tx_depth: send ring entries, a power of two
 * @rx_depth: receive ring entries, a power of two
 * @tx_bufs: send buffers that may exist
 * @signal_every: k of "every k-th send is signalled"
 * @max_inline: inline bytes to ask for
 * @stall_ms: a posted send that takes longer than this means that the queue pair is stuck
 */
struct qrdma_lane_config {
	struct ib_device *ibdev;
	struct ib_pd *pd;
	u32 port;
	int vector;
	u32 qkey;
	struct qrdma_pool *rx_pool;
	struct workqueue_struct *wq;
	const struct qrdma_lane_ops *ops;
	u32 max_msg;
	u32 tx_depth;
	u32 rx_depth;
	u32 tx_bufs;
	u32 signal_every;
	u32 max_inline;
	u32 stall_ms;
};

/**
 * struct qrdma_lane - see the top of this file
 * @dev: the device that it is part of; constant
 * @index: which of the device's lanes; constant
 * @qpn: queue pair number; constant, survives resets
 * @max_msg: largest message in bytes, port header included; follows the MTU (READ_ONCE)
 * @max_inline: largest inline message in bytes; constant
 *
 * Found by: (device, index). Owned by: struct qrdma_device. Dies: with that.
 * Protected by: @tx_lock and @rx_lock as said at the fields; @state is written under both.
 */
struct qrdma_lane {
	struct qrdma_device *dev;
	u32 index;
	u32 qpn;
	u32 max_msg;
	u32 max_inline;
	/* private: for lane.c */
	struct qrdma_lane_config cfg;
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct qrdma_pool *tx_pool;
	enum qrdma_lane_state state;	/* written under both locks */
	u32 epoch;			/* parity: which of the two rings is in use; same */
	bool port_up;			/* tx_lock */
	u32 condemned;			/* epoch that is to be reset; READ_ONCE */

	spinlock_t tx_lock;		/* guards txq .. tx_stats */
	struct list_head txq;		/* queued, not posted */
	u32 tx_queued;			/* length of it */
	u32 tx_head;			/* next ring position to post; free running */
	u32 tx_tail;			/* oldest position not completed; free running */
	u32 tx_unsignaled;		/* posted since the last signalled one */
	bool tx_retry;			/* the device had no room: the watchdog tries again */
	u32 tx_relapses;		/* resets since a send has completed */
	u64 tx_progress;		/* when the tail last moved, ns */
	struct qrdma_lane_ring *ring;
	struct qrdma_lane_stats stats;	/* tx_* under tx_lock, rx_* under rx_lock, rest: worker */

	spinlock_t rx_lock;		/* guards rx_* */
	u32 rx_posted;
	u32 rx_free;			/* head of the list of free slots */
	bool rx_ok;			/* the queue pair takes receives */
	bool rx_paused;			/* the pool was low */
	u8 *grh;			/* GRH memory, one cache line aligned slot per receive */
	u64 grh_dma;

	struct delayed_work reset_work;	/* revives the queue pair */
	struct delayed_work watchdog;	/* finds stuck sends, tries again */
	struct work_struct refill_work;	/* the pool has recovered */
	struct work_struct room_work;	/* tells who waits for send buffers */
	wait_queue_head_t drained;	/* nothing is posted any more */
	unsigned long last_reset;	/* jiffies */
};

/**
 * qrdma_lane_tx_get() - take a send buffer
 * @lane: lane it will be sent on
 *
 * Context: any but hard interrupt.
 * Return: buffer, or NULL when the pool is empty or the lane closed. After a NULL of a lane that
 * is not closed, ops->tx_room() comes when there are buffers again.
 */
struct qrdma_txbuf *qrdma_lane_tx_get(struct qrdma_lane *lane);

/**
 * qrdma_lane_tx_get_urgent() - the same, out of the reserve as well
 * @lane: lane it will be sent on
 *
 * For packets that free memory or end something: ACKs, probes, closes.
 */
struct qrdma_txbuf *qrdma_lane_tx_get_urgent(struct qrdma_lane *lane);

/**
 * qrdma_lane_tx_put() - the owner needs the buffer no more
 * @tx: buffer or NULL
 *
 * May be called while the buffer is queued: it goes back to the pool after its completion (and
 * done() is still called). Any context; also after lane and device are gone.
 */
static inline void qrdma_lane_tx_put(struct qrdma_txbuf *tx)
{
	if (tx)
		qrdma_txbuf_put(tx);
}

/**
 * qrdma_lane_tx_queue() - append a message to what the next qrdma_lane_flush() posts
 * @lane: lane
 * @tx: buffer of this lane; not queued at present
 * @len: bytes of @tx->data to send: port header and one QUIC datagram
 * @ah: path; a reference of its own is taken
 * @qpn: destination queue pair
 * @qkey: its key (of the peer)
 *
 * The bytes must not change until done(). The queue is bounded by the pool.
 *
 * Context: any but hard interrupt; under a socket lock or not.
 * Return: 0; or the buffer was not queued and done() will not be called: -EMSGSIZE (longer than
 * lane->max_msg, counted), -ENETDOWN (port down), -ESTALE (handle revoked: wait for the new
 * peer),
 * -ENODEV (lane closed), -EBUSY (@tx is still queued), -EINVAL (shorter than a port header).
 */
int qrdma_lane_tx_queue(struct qrdma_lane *lane, struct qrdma_txbuf *tx, u32 len,
			struct qrdma_ah *ah, u32 qpn, u32 qkey);

/**
 * qrdma_lane_flush() - post what is queued, as one chain
 * @lane: lane
 *
 * What the ring has no room for stays queued and is posted by completions. A lane that is being
 * reset posts when it is up again. Context: any but hard interrupt.
 */
void qrdma_lane_flush(struct qrdma_lane *lane);

/** qrdma_lane_stats() - copy the counters. Any context but hard interrupt. */
void qrdma_lane_stats(struct qrdma_lane *lane, struct qrdma_lane_stats *stats);

/** qrdma_lane_max_datagram() - largest QUIC datagram that the local port takes, bytes. */
static inline u32 qrdma_lane_max_datagram(const struct qrdma_lane *lane)
{
	return READ_ONCE(lane->max_msg) - QRDMA_PORT_HDR_LEN;
}

/* What follows is arithmetic without a device, here so that it can be tested alone. */

/** qrdma_ring_used() - entries in use of a ring with free running positions */
static inline u32 qrdma_ring_used(u32 head, u32 tail)
{
	return head - tail;
}

/** qrdma_ring_room() - entries that can still be used */
static inline u32 qrdma_ring_room(u32 head, u32 tail, u32 depth)
{
	return depth - qrdma_ring_used(head, tail);
}

/** qrdma_ring_has() - is @pos one of the entries in use? */
static inline bool qrdma_ring_has(u32 head, u32 tail, u32 pos)
{
	return pos - tail < qrdma_ring_used(head, tail);
}

/**
 * qrdma_ring_signal() - has the next send to be signalled?
 * @unsignaled: sends since the last signalled one
 * @every: k
 * @last: it is the last of its chain, or the last that the ring has room for
 *
 * The last one always: else a buffer could wait for ever for a completion that a later send
 * brings.
 */
static inline bool qrdma_ring_signal(u32 unsignaled, u32 every, bool last)
{
	return last || unsignaled + 1 >= every;
}

/**
 * qrdma_lane_dead() - has this generation of the queue pair to be reset?
 * @epoch: generation, see lane.c
 * @works: the device says that it works
 * @condemned: the generation that somebody has given up, whatever the device says
 *
 * What is said of an earlier generation, or was seen of it and told late, is not about this one.
 */
static inline bool qrdma_lane_dead(u32 epoch, bool works, u32 condemned)
{
	return !works || condemned == epoch;
}

/**
 * qrdma_lane_patience() - how long to wait, when the last resets did not help
 * @ms: usual time
 * @relapses: resets since a send has completed
 *
 * Return: milliseconds, up to eight times @ms.
 */
static inline u32 qrdma_lane_patience(u32 ms, u32 relapses)
{
	return ms << min(relapses, 3U);
}

/**
 * struct qrdma_grh_info - what the area in front of a received message says
 * @saddr: source, IPv4 in mapped form
 * @daddr: destination, same form
 * @family: AF_INET or AF_INET6
 * @tclass: traffic class or TOS
 * @hop_limit: hop limit or TTL
 */
struct qrdma_grh_info {
	struct in6_addr saddr;
	struct in6_addr daddr;
	u16 family;
	u8 tclass;
	u8 hop_limit;
};

/**
 * qrdma_grh_parse() - read the GRH area of a RoCE v2 message
 * @grh: QRDMA_GRH_LEN bytes: an IPv6 header, or 20 bytes of nothing and an IPv4 header
 * @version: 4 or 6 when the completion or the IPv4 checksum told, 0: find out
 * @info: result
 *
 * Return: false when there is no such header.
 */
bool qrdma_grh_parse(const u8 *grh, int version, struct qrdma_grh_info *info);

/* For lane_qp.c only: the work that opening, closing and reviving need. */

/** qrdma_lane_fail() - have a worker ask whether the queue pair still works. Any context. */
void qrdma_lane_fail(struct qrdma_lane *lane);

/** qrdma_lane_reclaim() - take back ring positions before @upto; the last ended with @status */
void qrdma_lane_reclaim(struct qrdma_lane *lane, u32 upto, int status, struct list_head *done);

/** qrdma_lane_complete() - tell the owners of what is on @done. No lock held. */
void qrdma_lane_complete(struct list_head *done);

/** qrdma_lane_drop_queue() - take back all that is queued and not posted. tx_lock. */
void qrdma_lane_drop_queue(struct qrdma_lane *lane, int status, struct list_head *done);

/** qrdma_lane_post() - post what can be posted, what cannot be sent goes to @done. tx_lock. */
void qrdma_lane_post(struct qrdma_lane *lane, struct list_head *done);

/** qrdma_lane_rx_take() - the slot's buffer, unmapped; the slot is free. rx_lock. */
struct qrdma_rxbuf *qrdma_lane_rx_take(struct qrdma_lane *lane, struct qrdma_rx_slot *slot);

/** qrdma_lane_refill() - post receives while pool and device let us. rx_lock. */
void qrdma_lane_refill(struct qrdma_lane *lane);

/** qrdma_lane_tx_done() - completion of a send. Softirq. */
void qrdma_lane_tx_done(struct ib_cq *cq, struct ib_wc *wc);

/** qrdma_lane_rx_done() - completion of a receive. Softirq. */
void qrdma_lane_rx_done(struct ib_cq *cq, struct ib_wc *wc);

#endif /* QRDMA_LANE_H */
