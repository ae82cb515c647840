// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes: posting, completing, refilling. What a lane is, who calls and under which locks: lane.h.
 * Opening, closing and reviving the queue pair: lane_qp.c.
 *
 * Sends. A ring of slots by position; the device works in order. A slot is written before it is
 * posted and found again by its ib_cqe. The last send of each chain is signalled, so every buffer
 * is covered by a completion that will come by itself.
 *
 * Receives. Slots from a free list; each has its room for the GRH, which stays mapped for the life
 * of the lane, and gets a page of the pool, which is mapped while it is posted.
 *
 * Epochs. There are two sets of slots. Reviving a queue pair changes over to the other one, so a
 * completion that lingers in the queue from before finds its slot out of date and touches nothing.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/ktime.h>
#include <net/dsfield.h>
#include <net/ipv6.h>

#include "lane.h"
#include "lane_ring.h"

static int lane_errno(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		return 0;
	case IB_WC_WR_FLUSH_ERR:
		return -ECONNABORTED;
	default:
		return -EIO;
	}
}

void qrdma_lane_fail(struct qrdma_lane *lane)
{
	if (READ_ONCE(lane->state) == QRDMA_LANE_CLOSED)
		return;
	queue_delayed_work(lane->cfg.wq, &lane->reset_work, 0);
}

/* ---- sends ---- */

static struct qrdma_tx_slot *lane_slot(struct qrdma_lane *lane, u32 pos)
{
	return &lane->ring->tx[lane->epoch & 1][pos & (lane->cfg.tx_depth - 1)];
}

static void lane_tx_unmap(struct qrdma_lane *lane, struct qrdma_tx_slot *slot)
{
	if (slot->mapped)
		ib_dma_unmap_page(lane->cfg.ibdev, slot->dma, slot->tx->len, DMA_TO_DEVICE);
	slot->mapped = false;
}

void qrdma_lane_reclaim(struct qrdma_lane *lane, u32 upto, int status, struct list_head *done)
{
	struct qrdma_tx_slot *slot;

	lockdep_assert_held(&lane->tx_lock);
	while (lane->tx_tail != upto) {
		slot = lane_slot(lane, lane->tx_tail++);
		lane_tx_unmap(lane, slot);
		qrdma_ah_unuse(slot->tx->ah);
		/* What was not signalled and is passed by a completion went well. */
		slot->tx->status = lane->tx_tail == upto ? status : 0;
		list_add_tail(&slot->tx->item.list, done);
		slot->tx = NULL;
	}
	lane->tx_progress = ktime_get_ns();
	if (status)
		lane->stats.tx_errors++;
}

void qrdma_lane_complete(struct list_head *done)
{
	struct qrdma_txbuf *tx, *next;

	list_for_each_entry_safe(tx, next, done, item.list) {
		list_del_init(&tx->item.list);
		qrdma_ah_put(tx->ah);
		tx->ah = NULL;
		/* From here on the callee may queue it again. */
		WRITE_ONCE(tx->queued, false);
		if (tx->done)
			tx->done(tx, tx->status);
		qrdma_txbuf_put(tx);
	}
}

/* Off the queue without having been posted. */
static void lane_tx_drop(struct qrdma_lane *lane, struct qrdma_txbuf *tx, int status,
			 struct list_head *done)
{
	lane->tx_queued--;
	tx->status = status;
	list_move_tail(&tx->item.list, done);
}

void qrdma_lane_drop_queue(struct qrdma_lane *lane, int status, struct list_head *done)
{
	struct qrdma_txbuf *tx, *next;

	lockdep_assert_held(&lane->tx_lock);
	list_for_each_entry_safe(tx, next, &lane->txq, item.list)
		lane_tx_drop(lane, tx, status, done);
}

/* Fill in slot and work request number @n of the chain; an error: @tx cannot be sent. */
static int lane_tx_prepare(struct qrdma_lane *lane, struct qrdma_txbuf *tx, u32 n)
{
	struct qrdma_tx_slot *slot = lane_slot(lane, lane->tx_head + n);
	struct ib_ud_wr *wr = &lane->ring->wr[n];
	struct ib_sge *sge = &lane->ring->sge[n];

	if (tx->len > lane->max_msg) {
		lane->stats.tx_oversize++;
		return -EMSGSIZE;
	}
	if (!qrdma_ah_use(tx->ah)) {
		lane->stats.tx_stale++;
		return -ESTALE;
	}
	wr->wr.send_flags = 0;
	sge->length = tx->len;
	if (tx->len <= lane->max_inline) {
		sge->addr = (uintptr_t)tx->data;
		sge->lkey = 0;
		wr->wr.send_flags = IB_SEND_INLINE;
	} else {
		slot->dma = ib_dma_map_page(lane->cfg.ibdev, tx->item.page, 0, tx->len,
					    DMA_TO_DEVICE);
		if (ib_dma_mapping_error(lane->cfg.ibdev, slot->dma)) {
			qrdma_ah_unuse(tx->ah);
			return -ENOMEM;
		}
		slot->mapped = true;
		sge->addr = slot->dma;
		sge->lkey = lane->cfg.pd->local_dma_lkey;
	}
	slot->tx = tx;
	slot->pos = lane->tx_head + n;
	slot->epoch = lane->epoch;

	wr->wr.next = NULL;
	wr->wr.wr_cqe = &slot->cqe;
	wr->wr.sg_list = sge;
	wr->wr.num_sge = 1;
	wr->wr.opcode = IB_WR_SEND;
	wr->ah = tx->ah->ibah;
	wr->remote_qpn = tx->qpn;
	wr->remote_qkey = tx->qkey;
	return 0;
}

/* A chain out of the head of the queue, where the buffers stay until they are posted. */
static u32 lane_tx_chain(struct qrdma_lane *lane, u32 room, struct list_head *done)
{
	struct qrdma_lane_ring *ring = lane->ring;
	u32 unsignaled = lane->tx_unsignaled;
	struct qrdma_txbuf *tx, *next;
	u32 n = 0;
	int err;

	list_for_each_entry_safe(tx, next, &lane->txq, item.list) {
		if (n == room)
			break;
		err = lane_tx_prepare(lane, tx, n);
		if (err) {
			lane_tx_drop(lane, tx, err, done);
			continue;
		}
		if (n)
			ring->wr[n - 1].wr.next = &ring->wr[n].wr;
		if (qrdma_ring_signal(unsignaled, lane->cfg.signal_every, false)) {
			ring->wr[n].wr.send_flags |= IB_SEND_SIGNALED;
			unsignaled = 0;
		} else {
			unsignaled++;
		}
		n++;
	}
	if (n)
		ring->wr[n - 1].wr.send_flags |= IB_SEND_SIGNALED;
	return n;
}

/* The first @posted of @n work requests were taken by the device, the others were not. */
static void lane_tx_posted(struct qrdma_lane *lane, u32 n, u32 posted)
{
	struct qrdma_tx_slot *slot;
	unsigned int flags;
	u32 i;

	if (posted && lane->tx_head == lane->tx_tail)
		lane->tx_progress = ktime_get_ns();
	for (i = 0; i < n; i++) {
		slot = lane_slot(lane, lane->tx_head + i);
		if (i >= posted) {
			lane_tx_unmap(lane, slot);
			qrdma_ah_unuse(slot->tx->ah);
			slot->tx = NULL;
			continue;
		}
		list_del_init(&slot->tx->item.list);
		lane->tx_queued--;
		flags = lane->ring->wr[i].wr.send_flags;
		lane->stats.tx_posted++;
		lane->stats.tx_bytes += slot->tx->len;
		if (flags & IB_SEND_INLINE)
			lane->stats.tx_inline++;
		if (flags & IB_SEND_SIGNALED) {
			lane->stats.tx_signaled++;
			lane->tx_unsignaled = 0;
		} else {
			lane->tx_unsignaled++;
		}
	}
	lane->tx_head += posted;
}

static bool lane_tx_post_chain(struct qrdma_lane *lane, u32 n, struct list_head *done)
{
	struct qrdma_lane_ring *ring = lane->ring;
	const struct ib_send_wr *bad = &ring->wr[0].wr;
	u32 posted = n;
	int err;

	err = ib_post_send(lane->qp, &ring->wr[0].wr, &bad);
	if (err)
		posted = min_t(u32, container_of(bad, struct ib_ud_wr, wr) - ring->wr, n - 1);
	lane_tx_posted(lane, n, posted);
	if (!err)
		return true;
	if (err == -ENOMEM) {
		/* Later: by a completion, or by the watchdog if none is to come. */
		lane->stats.tx_again++;
		lane->tx_retry = true;
	} else {
		lane_tx_drop(lane, list_first_entry(&lane->txq, struct qrdma_txbuf, item.list),
			     err, done);
		lane->stats.tx_errors++;
		lane->tx_retry = true;
		qrdma_lane_fail(lane);
	}
	return false;
}

void qrdma_lane_post(struct qrdma_lane *lane, struct list_head *done)
{
	u32 room, n;

	lockdep_assert_held(&lane->tx_lock);
	lane->tx_retry = false;
	while (lane->state == QRDMA_LANE_UP && lane->port_up) {
		room = qrdma_ring_room(lane->tx_head, lane->tx_tail, lane->cfg.tx_depth);
		n = lane_tx_chain(lane, min_t(u32, room, QRDMA_LANE_CHAIN), done);
		if (!n || !lane_tx_post_chain(lane, n, done))
			break;
	}
	if (lane->state == QRDMA_LANE_CLOSED)
		return;
	if (lane->tx_retry)
		mod_delayed_work(lane->cfg.wq, &lane->watchdog, 1);
	else if (lane->tx_head != lane->tx_tail || lane->tx_queued)
		queue_delayed_work(lane->cfg.wq, &lane->watchdog,
				   msecs_to_jiffies(lane->cfg.stall_ms / 4) + 1);
}

void qrdma_lane_tx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct qrdma_tx_slot *slot = container_of(wc->wr_cqe, struct qrdma_tx_slot, cqe);
	struct qrdma_lane *lane = cq->cq_context;
	int status = lane_errno(wc->status);
	LIST_HEAD(done);
	bool idle;

	spin_lock_bh(&lane->tx_lock);
	if (slot->epoch != lane->epoch ||
	    !qrdma_ring_has(lane->tx_head, lane->tx_tail, slot->pos)) {
		spin_unlock_bh(&lane->tx_lock);
		return;
	}
	qrdma_lane_reclaim(lane, slot->pos + 1, status, &done);
	if (!status)
		lane->tx_relapses = 0;
	if (lane->tx_queued)
		qrdma_lane_post(lane, &done);
	idle = lane->state != QRDMA_LANE_UP && lane->tx_head == lane->tx_tail;
	spin_unlock_bh(&lane->tx_lock);

	qrdma_lane_complete(&done);
	if (idle)
		wake_up_all(&lane->drained);
	else if (status)
		qrdma_lane_fail(lane);
}

static struct qrdma_txbuf *lane_tx_get(struct qrdma_lane *lane, u32 reserve)
{
	struct qrdma_txbuf *tx;

	if (READ_ONCE(lane->state) == QRDMA_LANE_CLOSED)
		return NULL;
	tx = qrdma_pool_get_tx(lane->tx_pool, reserve);
	if (!tx) {
		spin_lock_bh(&lane->tx_lock);
		lane->stats.tx_nobuf++;
		spin_unlock_bh(&lane->tx_lock);
	}
	return tx;
}

struct qrdma_txbuf *qrdma_lane_tx_get(struct qrdma_lane *lane)
{
	return lane_tx_get(lane, lane->cfg.tx_bufs / QRDMA_LANE_RESERVE);
}

struct qrdma_txbuf *qrdma_lane_tx_get_urgent(struct qrdma_lane *lane)
{
	return lane_tx_get(lane, 0);
}

/* tx_lock is held */
static int lane_tx_check(struct qrdma_lane *lane, struct qrdma_txbuf *tx, u32 len,
			 struct qrdma_ah *ah)
{
	if (len < QRDMA_PORT_HDR_LEN)
		return -EINVAL;
	if (tx->queued)
		return -EBUSY;
	if (lane->state == QRDMA_LANE_CLOSED)
		return -ENODEV;
	if (len > lane->max_msg) {
		lane->stats.tx_oversize++;
		return -EMSGSIZE;
	}
	if (!lane->port_up) {
		lane->stats.tx_down++;
		return -ENETDOWN;
	}
	if (qrdma_ah_is_revoked(ah)) {
		lane->stats.tx_stale++;
		return -ESTALE;
	}
	return 0;
}

int qrdma_lane_tx_queue(struct qrdma_lane *lane, struct qrdma_txbuf *tx, u32 len,
			struct qrdma_ah *ah, u32 qpn, u32 qkey)
{
	int err;

	spin_lock_bh(&lane->tx_lock);
	err = lane_tx_check(lane, tx, len, ah);
	if (!err) {
		tx->len = len;
		tx->ah = qrdma_ah_get(ah);
		tx->qpn = qpn;
		tx->qkey = qkey;
		tx->queued = true;
		refcount_inc(&tx->refs);
		list_add_tail(&tx->item.list, &lane->txq);
		lane->tx_queued++;
	}
	spin_unlock_bh(&lane->tx_lock);
	return err;
}

void qrdma_lane_flush(struct qrdma_lane *lane)
{
	LIST_HEAD(done);

	spin_lock_bh(&lane->tx_lock);
	qrdma_lane_post(lane, &done);
	spin_unlock_bh(&lane->tx_lock);
	qrdma_lane_complete(&done);
}

/* ---- receives ---- */

static bool grh_parse_v4(const u8 *grh, struct qrdma_grh_info *info)
{
	const struct iphdr *ip = (const struct iphdr *)(grh + QRDMA_GRH_LEN - sizeof(*ip));

	if (ip->version != 4 || ip->ihl != 5)
		return false;
	info->family = AF_INET;
	info->tclass = ip->tos;
	info->hop_limit = ip->ttl;
	ipv6_addr_set_v4mapped(ip->saddr, &info->saddr);
	ipv6_addr_set_v4mapped(ip->daddr, &info->daddr);
	return true;
}

static bool grh_parse_v6(const u8 *grh, struct qrdma_grh_info *info)
{
	const struct ipv6hdr *ip = (const struct ipv6hdr *)grh;

	if (ip->version != 6)
		return false;
	info->family = AF_INET6;
	info->tclass = ipv6_get_dsfield(ip);
	info->hop_limit = ip->hop_limit;
	info->saddr = ip->saddr;
	info->daddr = ip->daddr;
	return true;
}

bool qrdma_grh_parse(const u8 *grh, int version, struct qrdma_grh_info *info)
{
	if (version == 4)
		return grh_parse_v4(grh, info);
	if (version == 6)
		return grh_parse_v6(grh, info);
	return false;
}

/* Does the message go up? rx_lock is held, so the GRH slot is still ours. */
static bool lane_rx_accept(struct qrdma_lane *lane, u32 index, const struct ib_wc *wc,
			   struct qrdma_rxbuf *rx)
{
	const u8 *grh = lane->grh + index * QRDMA_GRH_SLOT;
	struct qrdma_grh_info info;
	int version;

	if (wc->status != IB_WC_SUCCESS) {
		lane->stats.rx_errors++;
		return false;
	}
	if (wc->byte_len < QRDMA_GRH_LEN + QRDMA_PORT_HDR_LEN ||
	    wc->byte_len > QRDMA_GRH_LEN + QRDMA_UD_MAX) {
		lane->stats.rx_runt++;
		return false;
	}
	ib_dma_sync_single_for_cpu(lane->cfg.ibdev, lane->grh_dma + index * QRDMA_GRH_SLOT,
				   QRDMA_GRH_SLOT, DMA_FROM_DEVICE);
	if (wc->wc_flags & IB_WC_WITH_NETWORK_HDR_TYPE)
		version = wc->network_hdr_type == RDMA_NETWORK_IPV4 ? 4 : 6;
	else
		version = ib_get_rdma_header_version((const union rdma_network_hdr *)grh);
	if (!(wc->wc_flags & IB_WC_GRH) || !qrdma_grh_parse(grh, version, &info)) {
		lane->stats.rx_nogrh++;
		return false;
	}
	rx->buf.len = wc->byte_len - QRDMA_GRH_LEN;
	rx->lane = lane;
	rx->src_qp = wc->src_qp;
	rx->saddr = info.saddr;
	rx->daddr = info.daddr;
	rx->family = info.family;
	rx->tclass = info.tclass;
	rx->hop_limit = info.hop_limit;
	rx->ifindex = 0;
	rx->net = NULL;
	lane->stats.rx_packets++;
	lane->stats.rx_bytes += rx->buf.len;
	return true;
}

/* The slot's buffer, unmapped; the slot is free. rx_lock is held. */
struct qrdma_rxbuf *qrdma_lane_rx_take(struct qrdma_lane *lane, struct qrdma_rx_slot *slot)
{
	struct qrdma_rxbuf *rx = slot->rx;

	lockdep_assert_held(&lane->rx_lock);
	ib_dma_unmap_page(lane->cfg.ibdev, slot->dma, QRDMA_UD_MAX, DMA_FROM_DEVICE);
	slot->rx = NULL;
	slot->next = lane->rx_free;
	lane->rx_free = slot->index;
	return rx;
}

void qrdma_lane_rx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct qrdma_rx_slot *slot = container_of(wc->wr_cqe, struct qrdma_rx_slot, cqe);
	struct qrdma_lane *lane = cq->cq_context;
	struct qrdma_rxbuf *rx;
	bool accept, idle;

	spin_lock_bh(&lane->rx_lock);
	if (slot->epoch != lane->epoch || !slot->rx) {
		spin_unlock_bh(&lane->rx_lock);
		return;
	}
	rx = qrdma_lane_rx_take(lane, slot);
	lane->rx_posted--;
	accept = lane_rx_accept(lane, slot->index, wc, rx);
	if (lane->cfg.rx_depth - lane->rx_posted >= QRDMA_LANE_BATCH)
		qrdma_lane_refill(lane);
	idle = lane->state != QRDMA_LANE_UP && !lane->rx_posted;
	spin_unlock_bh(&lane->rx_lock);

	if (accept)
		lane->cfg.ops->rx(lane, rx);
	else
		qrdma_buf_put(&rx->buf);
	if (idle)
		wake_up_all(&lane->drained);
	else if (wc->status != IB_WC_SUCCESS)
		qrdma_lane_fail(lane);
}

/* Take up to @n buffers and write the work requests for them. */
static u32 lane_rx_chain(struct qrdma_lane *lane, u32 n)
{
	struct qrdma_lane_ring *ring = lane->ring;
	struct qrdma_rx_slot *slot;
	struct qrdma_rxbuf *rx;
	struct ib_sge *sge;
	u32 i;

	for (i = 0; i < n; i++) {
		rx = qrdma_pool_is_low(lane->cfg.rx_pool) ? NULL :
		     qrdma_pool_get_rx(lane->cfg.rx_pool);
		if (!rx) {
			lane->rx_paused = true;
			lane->stats.rx_pauses++;
			break;
		}
		slot = &ring->rx[lane->epoch & 1][lane->rx_free];
		slot->dma = ib_dma_map_page(lane->cfg.ibdev, rx->item.page, 0, QRDMA_UD_MAX,
					    DMA_FROM_DEVICE);
		if (ib_dma_mapping_error(lane->cfg.ibdev, slot->dma)) {
			qrdma_buf_put(&rx->buf);
			break;
		}
		lane->rx_free = slot->next;
		slot->rx = rx;
		slot->epoch = lane->epoch;

		sge = ring->rx_sge[i];
		sge[0].addr = lane->grh_dma + slot->index * QRDMA_GRH_SLOT;
		sge[0].length = QRDMA_GRH_LEN;
		sge[0].lkey = lane->cfg.pd->local_dma_lkey;
		sge[1].addr = slot->dma;
		sge[1].length = QRDMA_UD_MAX;
		sge[1].lkey = lane->cfg.pd->local_dma_lkey;
		ib_dma_sync_single_for_device(lane->cfg.ibdev, sge[0].addr, QRDMA_GRH_SLOT,
					      DMA_FROM_DEVICE);
		ring->rx_wr[i].next = NULL;
		ring->rx_wr[i].wr_cqe = &slot->cqe;
		ring->rx_wr[i].sg_list = sge;
		ring->rx_wr[i].num_sge = 2;
		if (i)
			ring->rx_wr[i - 1].next = &ring->rx_wr[i];
	}
	return i;
}

void qrdma_lane_refill(struct qrdma_lane *lane)
{
	struct qrdma_lane_ring *ring = lane->ring;
	const struct ib_recv_wr *bad;
	struct qrdma_rx_slot *slot;
	struct qrdma_rxbuf *rx;
	u32 n, posted, i;
	int err = 0;

	lockdep_assert_held(&lane->rx_lock);
	while (lane->rx_ok && !lane->rx_paused && !err) {
		n = min_t(u32, lane->cfg.rx_depth - lane->rx_posted, QRDMA_LANE_BATCH);
		n = lane_rx_chain(lane, n);
		if (!n)
			break;
		bad = &ring->rx_wr[0];
		err = ib_post_recv(lane->qp, &ring->rx_wr[0], &bad);
		posted = err ? min_t(u32, bad - ring->rx_wr, n) : n;
		lane->rx_posted += posted;
		for (i = posted; i < n; i++) {
			slot = container_of(ring->rx_wr[i].wr_cqe, struct qrdma_rx_slot, cqe);
			rx = qrdma_lane_rx_take(lane, slot);
			qrdma_buf_put(&rx->buf);
		}
	}
	/* No completion may come that would try again. */
	if (lane->rx_ok && !lane->rx_paused && !lane->rx_posted)
		queue_delayed_work(lane->cfg.wq, &lane->watchdog, HZ / 10);
}

void qrdma_lane_stats(struct qrdma_lane *lane, struct qrdma_lane_stats *stats)
{
	spin_lock_bh(&lane->rx_lock);
	spin_lock(&lane->tx_lock);
	*stats = lane->stats;
	stats->rx_posted = lane->rx_posted;
	stats->tx_pending = qrdma_ring_used(lane->tx_head, lane->tx_tail);
	stats->tx_queued = lane->tx_queued;
	spin_unlock(&lane->tx_lock);
	spin_unlock_bh(&lane->rx_lock);
}
