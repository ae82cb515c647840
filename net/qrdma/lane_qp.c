// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a lane: making its queue pair, reviving it when it died, closing. See lane_qp.h.
 *
 * On some devices one bad send (an address that has gone, a link that is down, a queue of the
 * network that is full) puts the queue pair into the error state, or blocks it, for everybody who
 * shares it. That is an ordinary event here: the queue pair is reset under the same number, the
 * receives are posted again, and what was in flight is lost packets to the engine.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "lane_qp.h"
#include "lane_ring.h"

/** enum - milliseconds */
enum {
	LANE_DRAIN_MS	= 1000,	/* for a queue pair in the error state to flush */
	LANE_RESET_MS	= 20,	/* least time between two resets */
	LANE_AGAIN_MS	= 100,	/* until a reset that failed is tried again */
};

static void lane_lock(struct qrdma_lane *lane)
	__acquires(&lane->rx_lock) __acquires(&lane->tx_lock)
{
	spin_lock_bh(&lane->rx_lock);
	spin_lock(&lane->tx_lock);
}

static void lane_unlock(struct qrdma_lane *lane)
	__releases(&lane->tx_lock) __releases(&lane->rx_lock)
{
	spin_unlock(&lane->tx_lock);
	spin_unlock_bh(&lane->rx_lock);
}

/* A new epoch: all slots of the other set are free. Both locks are held. */
static void lane_new_epoch(struct qrdma_lane *lane)
{
	struct qrdma_rx_slot *rx;
	u32 i;

	lane->epoch++;
	rx = lane->ring->rx[lane->epoch & 1];
	for (i = 0; i < lane->cfg.rx_depth; i++)
		rx[i].next = i + 1;
	lane->rx_free = 0;
	lane->tx_unsignaled = 0;
}

static void lane_ring_free(struct qrdma_lane_ring *ring)
{
	int i;

	if (!ring)
		return;
	for (i = 0; i < 2; i++) {
		kvfree(ring->tx[i]);
		kvfree(ring->rx[i]);
	}
	kfree(ring);
}

static struct qrdma_lane_ring *lane_ring_alloc(const struct qrdma_lane_config *cfg)
{
	struct qrdma_lane_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL);
	u32 i, set;

	if (!ring)
		return NULL;
	for (set = 0; set < 2; set++) {
		ring->tx[set] = kvcalloc(cfg->tx_depth, sizeof(*ring->tx[set]), GFP_KERNEL);
		ring->rx[set] = kvcalloc(cfg->rx_depth, sizeof(*ring->rx[set]), GFP_KERNEL);
		if (!ring->tx[set] || !ring->rx[set]) {
			lane_ring_free(ring);
			return NULL;
		}
		for (i = 0; i < cfg->tx_depth; i++)
			ring->tx[set][i].cqe.done = qrdma_lane_tx_done;
		for (i = 0; i < cfg->rx_depth; i++) {
			ring->rx[set][i].cqe.done = qrdma_lane_rx_done;
			ring->rx[set][i].index = i;
		}
	}
	return ring;
}

/* Interrupt or process */
static void lane_qp_event(struct ib_event *event, void *context)
{
	struct qrdma_lane *lane = context;

	lane->stats.qp_events++;
	qrdma_lane_fail(lane);
}

static int lane_qp_create(struct qrdma_lane *lane)
{
	const struct qrdma_lane_config *cfg = &lane->cfg;
	struct ib_qp_init_attr init = {
		.event_handler = lane_qp_event,
		.qp_context = lane,
		.send_cq = lane->cq,
		.recv_cq = lane->cq,
		.cap.max_send_wr = cfg->tx_depth,
		.cap.max_recv_wr = cfg->rx_depth,
		.cap.max_send_sge = 1,
		.cap.max_recv_sge = 2,
		.cap.max_inline_data = cfg->max_inline,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_UD,
		.port_num = cfg->port,
	};

	lane->qp = ib_create_qp(cfg->pd, &init);
	if (IS_ERR(lane->qp) && cfg->max_inline) {
		init.cap.max_inline_data = 0;
		lane->qp = ib_create_qp(cfg->pd, &init);
	}
	if (IS_ERR(lane->qp))
		return PTR_ERR(lane->qp);
	lane->qpn = lane->qp->qp_num;
	lane->max_inline = min_t(u32, init.cap.max_inline_data, cfg->max_inline);
	return 0;
}

static int lane_qp_modify(struct qrdma_lane *lane, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask = IB_QP_STATE;

	switch (state) {
	case IB_QPS_INIT:
		attr.port_num = lane->cfg.port;
		attr.qkey = lane->cfg.qkey;
		mask |= IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY;
		break;
	case IB_QPS_RTS:
		mask |= IB_QP_SQ_PSN;
		break;
	default:
		break;
	}
	return ib_modify_qp(lane->qp, &attr, mask);
}

/* From RESET to working, with receives posted. */
static int lane_qp_bring_up(struct qrdma_lane *lane)
{
	int err;

	err = lane_qp_modify(lane, IB_QPS_INIT);
	if (!err)
		err = lane_qp_modify(lane, IB_QPS_RTR);
	if (err)
		return err;
	spin_lock_bh(&lane->rx_lock);
	lane->rx_ok = lane->state != QRDMA_LANE_CLOSED;
	lane->rx_paused = false;
	qrdma_lane_refill(lane);
	spin_unlock_bh(&lane->rx_lock);
	return lane_qp_modify(lane, IB_QPS_RTS);
}

static bool lane_is_idle(struct qrdma_lane *lane)
{
	bool idle;

	lane_lock(lane);
	idle = lane->tx_head == lane->tx_tail && !lane->rx_posted;
	lane_unlock(lane);
	return idle;
}

/* After the queue pair was put into ERR: have all completions come? */
static bool lane_drain(struct qrdma_lane *lane)
{
	enum qrdma_lane_state state = lane->state;
	bool idle = false;

	/* Closing ends the wait of a reset in progress. */
	wait_event_timeout(lane->drained,
			   (idle = lane_is_idle(lane)) || READ_ONCE(lane->state) != state,
			   msecs_to_jiffies(LANE_DRAIN_MS));
	return idle;
}

/* The device does not know of anything that was posted any more: take it all back. */
static void lane_take_back(struct qrdma_lane *lane, int status)
{
	struct qrdma_rx_slot *slot;
	struct qrdma_rxbuf *rx;
	LIST_HEAD(done);
	u32 i;

	lane_lock(lane);
	for (i = 0; lane->rx_posted && i < lane->cfg.rx_depth; i++) {
		slot = &lane->ring->rx[lane->epoch & 1][i];
		if (!slot->rx)
			continue;
		rx = qrdma_lane_rx_take(lane, slot);
		qrdma_buf_put(&rx->buf);
		lane->rx_posted--;
	}
	/* One by one: all of them end with this status, not the last alone. */
	while (lane->tx_tail != lane->tx_head)
		qrdma_lane_reclaim(lane, lane->tx_tail + 1, status, &done);
	lane_new_epoch(lane);
	lane_unlock(lane);
	qrdma_lane_complete(&done);
}

/* ---- reviving ---- */

static bool lane_qp_works(struct qrdma_lane *lane)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	return !ib_query_qp(lane->qp, &attr, IB_QP_STATE, &init) && attr.qp_state == IB_QPS_RTS;
}

/* False: the lane is being closed. */
static bool lane_set_state(struct qrdma_lane *lane, enum qrdma_lane_state state)
{
	bool open;

	lane_lock(lane);
	open = lane->state != QRDMA_LANE_CLOSED;
	if (open)
		WRITE_ONCE(lane->state, state);
	if (state == QRDMA_LANE_RESETTING)
		lane->rx_ok = false;
	lane_unlock(lane);
	return open;
}

static int lane_revive(struct qrdma_lane *lane)
{
	bool drained;
	int err;

	lane_qp_modify(lane, IB_QPS_ERR);
	drained = lane_drain(lane);
	if (READ_ONCE(lane->state) == QRDMA_LANE_CLOSED)
		return -ENODEV;
	err = lane_qp_modify(lane, IB_QPS_RESET);
	if (err)
		return err;
	lane_take_back(lane, -ECONNABORTED);
	err = lane_qp_bring_up(lane);
	if (err)
		return err;

	spin_lock_bh(&lane->tx_lock);
	/* Nothing was sent since the last reset: that was no life, so this is no other death. */
	if (lane->tx_relapses++)
		lane->stats.relapses++;
	else
		lane->stats.resets++;
	if (!drained)
		lane->stats.forced++;
	spin_unlock_bh(&lane->tx_lock);
	return 0;
}

static void lane_reset_work(struct work_struct *work)
{
	struct qrdma_lane *lane = container_of(work, struct qrdma_lane, reset_work.work);
	u32 wait = qrdma_lane_patience(LANE_RESET_MS, READ_ONCE(lane->tx_relapses));
	unsigned long next = lane->last_reset + msecs_to_jiffies(wait);
	LIST_HEAD(done);
	int err;

	if (READ_ONCE(lane->state) == QRDMA_LANE_CLOSED)
		return;
	/* The epoch is changed by this work alone. */
	if (!qrdma_lane_dead(lane->epoch, lane_qp_works(lane), READ_ONCE(lane->condemned)))
		return;
	if (time_before(jiffies, next)) {
		queue_delayed_work(lane->cfg.wq, &lane->reset_work, next - jiffies + 1);
		return;
	}
	if (!lane_set_state(lane, QRDMA_LANE_RESETTING))
		return;
	lane->last_reset = jiffies;
	err = lane_revive(lane);
	if (err) {
		WRITE_ONCE(lane->condemned, lane->epoch);
		if (READ_ONCE(lane->state) != QRDMA_LANE_CLOSED)
			queue_delayed_work(lane->cfg.wq, &lane->reset_work,
					   msecs_to_jiffies(LANE_AGAIN_MS));
		return;
	}
	if (!lane_set_state(lane, QRDMA_LANE_UP))
		return;
	spin_lock_bh(&lane->tx_lock);
	qrdma_lane_post(lane, &done);
	spin_unlock_bh(&lane->tx_lock);
	qrdma_lane_complete(&done);
}

/* Seen of this generation: if it is reset before the worker comes to it, nothing is left to do. */
static void lane_condemn(struct qrdma_lane *lane, u32 epoch)
{
	WRITE_ONCE(lane->condemned, epoch);
	qrdma_lane_fail(lane);
}

void qrdma_lane_reset(struct qrdma_lane *lane)
{
	lane_condemn(lane, READ_ONCE(lane->epoch));
}

/* ---- timers and upward calls ---- */

static void lane_watchdog(struct work_struct *work)
{
	struct qrdma_lane *lane = container_of(work, struct qrdma_lane, watchdog.work);
	bool stalled = false;
	LIST_HEAD(done);
	u32 epoch;
	u64 limit;

	spin_lock_bh(&lane->tx_lock);
	epoch = lane->epoch;
	limit = (u64)qrdma_lane_patience(lane->cfg.stall_ms, lane->tx_relapses) * NSEC_PER_MSEC;
	if (lane->state == QRDMA_LANE_UP && lane->tx_head != lane->tx_tail &&
	    lane->condemned != epoch && ktime_get_ns() - lane->tx_progress > limit) {
		stalled = true;
		lane->stats.stalls++;
	}
	qrdma_lane_post(lane, &done);
	spin_unlock_bh(&lane->tx_lock);
	qrdma_lane_complete(&done);

	spin_lock_bh(&lane->rx_lock);
	qrdma_lane_refill(lane);
	spin_unlock_bh(&lane->rx_lock);

	if (stalled)
		lane_condemn(lane, epoch);
}

static void lane_refill_work(struct work_struct *work)
{
	struct qrdma_lane *lane = container_of(work, struct qrdma_lane, refill_work);

	spin_lock_bh(&lane->rx_lock);
	lane->rx_paused = false;
	qrdma_lane_refill(lane);
	spin_unlock_bh(&lane->rx_lock);
}

void qrdma_lane_kick(struct qrdma_lane *lane)
{
	if (READ_ONCE(lane->state) != QRDMA_LANE_CLOSED)
		queue_work(lane->cfg.wq, &lane->refill_work);
}

static void lane_room_work(struct work_struct *work)
{
	struct qrdma_lane *lane = container_of(work, struct qrdma_lane, room_work);

	if (READ_ONCE(lane->state) != QRDMA_LANE_CLOSED)
		lane->cfg.ops->tx_room(lane);
}

/* Pool lock held, any context */
static void lane_pool_resume(void *arg)
{
	struct qrdma_lane *lane = arg;

	queue_work(lane->cfg.wq, &lane->room_work);
}

static const struct qrdma_pool_ops lane_pool_ops = {
	.resume = lane_pool_resume,
};

/* ---- opening and closing ---- */

void qrdma_lane_set_port(struct qrdma_lane *lane, bool up)
{
	LIST_HEAD(done);
	u32 queued;

	spin_lock_bh(&lane->tx_lock);
	lane->port_up = up;
	if (!up) {
		queued = lane->tx_queued;
		qrdma_lane_drop_queue(lane, -ENETDOWN, &done);
		lane->stats.tx_down += queued;
	}
	qrdma_lane_post(lane, &done);
	spin_unlock_bh(&lane->tx_lock);
	qrdma_lane_complete(&done);
	/* A send may have killed the queue pair while the link was down. */
	if (up)
		qrdma_lane_fail(lane);
}

void qrdma_lane_set_mtu(struct qrdma_lane *lane, u32 max_msg)
{
	WRITE_ONCE(lane->max_msg, max_msg);
}

static void lane_init(struct qrdma_lane *lane, const struct qrdma_lane_config *cfg)
{
	lane->cfg = *cfg;
	lane->max_msg = cfg->max_msg;
	lane->state = QRDMA_LANE_CLOSED;
	spin_lock_init(&lane->tx_lock);
	spin_lock_init(&lane->rx_lock);
	INIT_LIST_HEAD(&lane->txq);
	INIT_DELAYED_WORK(&lane->reset_work, lane_reset_work);
	INIT_DELAYED_WORK(&lane->watchdog, lane_watchdog);
	INIT_WORK(&lane->refill_work, lane_refill_work);
	INIT_WORK(&lane->room_work, lane_room_work);
	init_waitqueue_head(&lane->drained);
}

static int lane_grh_map(struct qrdma_lane *lane)
{
	size_t size = lane->cfg.rx_depth * QRDMA_GRH_SLOT;

	lane->grh = kzalloc(size, GFP_KERNEL);
	if (!lane->grh)
		return -ENOMEM;
	lane->grh_dma = ib_dma_map_single(lane->cfg.ibdev, lane->grh, size, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(lane->cfg.ibdev, lane->grh_dma)) {
		kfree(lane->grh);
		return -ENOMEM;
	}
	return 0;
}

static void lane_grh_unmap(struct qrdma_lane *lane)
{
	ib_dma_unmap_single(lane->cfg.ibdev, lane->grh_dma, lane->cfg.rx_depth * QRDMA_GRH_SLOT,
			    DMA_FROM_DEVICE);
	kfree(lane->grh);
	lane->grh = NULL;
}

int qrdma_lane_open(struct qrdma_lane *lane, const struct qrdma_lane_config *cfg)
{
	int err = -ENOMEM;

	lane_init(lane, cfg);
	lane->ring = lane_ring_alloc(cfg);
	if (!lane->ring)
		return err;
	err = lane_grh_map(lane);
	if (err)
		goto err_ring;
	lane->tx_pool = qrdma_pool_create(sizeof(struct qrdma_txbuf),
					  cfg->tx_bufs / QRDMA_LANE_RESERVE * 2, cfg->tx_bufs,
					  cfg->tx_bufs / QRDMA_LANE_RESERVE,
					  dev_to_node(&cfg->ibdev->dev), &lane_pool_ops, lane);
	if (!lane->tx_pool) {
		err = -ENOMEM;
		goto err_grh;
	}
	/* Room for everything that can be posted at once: an overrun kills the queue pair. */
	lane->cq = ib_alloc_cq(cfg->ibdev, lane, cfg->tx_depth + cfg->rx_depth, cfg->vector,
			       IB_POLL_SOFTIRQ);
	if (IS_ERR(lane->cq)) {
		err = PTR_ERR(lane->cq);
		goto err_pool;
	}
	err = lane_qp_create(lane);
	if (err)
		goto err_cq;
	lane_lock(lane);
	lane_new_epoch(lane);
	WRITE_ONCE(lane->state, QRDMA_LANE_RESETTING);
	lane_unlock(lane);
	err = lane_qp_bring_up(lane);
	if (err)
		goto err_qp;
	lane->last_reset = jiffies - HZ;
	lane_set_state(lane, QRDMA_LANE_UP);
	return 0;

err_qp:
	qrdma_lane_close(lane);
	qrdma_lane_free(lane);
	return err;
err_cq:
	ib_free_cq(lane->cq);
err_pool:
	qrdma_pool_close(lane->tx_pool);
	lane->tx_pool = NULL;
err_grh:
	lane_grh_unmap(lane);
err_ring:
	lane_ring_free(lane->ring);
	lane->ring = NULL;
	return err;
}

static void lane_cancel_work(struct qrdma_lane *lane)
{
	cancel_delayed_work_sync(&lane->reset_work);
	cancel_delayed_work_sync(&lane->watchdog);
	cancel_work_sync(&lane->refill_work);
	cancel_work_sync(&lane->room_work);
}

/*
 * 1. CLOSED, under both locks: from here on nothing is queued, posted or refilled by anybody, and
 *    the works do nothing.
 * 2. The pool makes no upward call any more, so nobody waits for buffers of this lane for ever: who
 *    uses it is told by the peers that the device is gone.
 * 3. The works are stopped; a reset in progress sees CLOSED and is woken.
 * 4. The queue pair flushes, and is destroyed: no event handler runs any more.
 * 5. The completion queue is freed, which waits for its softirq: no completion runs any more.
 * 6. Works that 4 and 5 queued are stopped; there is nobody left to queue any.
 * 7. What did not flush is taken back, what was queued is given back, with -ENODEV.
 * 8. The memory that the device wrote to is unmapped; slots are freed, nobody refers to them.
 */
void qrdma_lane_close(struct qrdma_lane *lane)
{
	LIST_HEAD(done);

	lane_lock(lane);
	WRITE_ONCE(lane->state, QRDMA_LANE_CLOSED);
	lane->rx_ok = false;
	lane_unlock(lane);

	qrdma_pool_retire(lane->tx_pool);

	wake_up_all(&lane->drained);
	lane_cancel_work(lane);

	lane_qp_modify(lane, IB_QPS_ERR);
	if (!lane_drain(lane))
		lane->stats.forced++;
	ib_destroy_qp(lane->qp);
	ib_free_cq(lane->cq);
	lane_cancel_work(lane);

	lane_take_back(lane, -ENODEV);
	spin_lock_bh(&lane->tx_lock);
	qrdma_lane_drop_queue(lane, -ENODEV, &done);
	spin_unlock_bh(&lane->tx_lock);
	qrdma_lane_complete(&done);

	lane_grh_unmap(lane);
	lane_ring_free(lane->ring);
	lane->ring = NULL;
}

void qrdma_lane_free(struct qrdma_lane *lane)
{
	qrdma_pool_close(lane->tx_pool);
}
