/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rings of a lane: slots, and room to write work requests. The inside of struct qrdma_lane, for
 * lane.c and lane_qp.c only. Owned by: the lane. Locks: as said at the structs.
 */
#ifndef QRDMA_LANE_RING_H
#define QRDMA_LANE_RING_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "pool.h"

/** enum - constants of a lane */
enum {
	QRDMA_LANE_CHAIN	= 32,	/* sends posted with one call */
	QRDMA_LANE_BATCH	= 32,	/* receives posted with one call */
	QRDMA_LANE_RESERVE	= 32,	/* one in so many send buffers is for urgent packets */
	QRDMA_GRH_SLOT		= 64,	/* bytes between the GRHs of two receives */
};

/**
 * struct qrdma_tx_slot - a ring entry of the send queue
 * @cqe: what the completion brings back
 * @tx: buffer, NULL when the entry is free
 * @dma: address of its page, when @mapped
 * @pos: ring position
 * @epoch: of the lane when it was posted
 * @mapped: @dma has to be unmapped
 *
 * Protected by: lane->tx_lock.
 */
struct qrdma_tx_slot {
	struct ib_cqe cqe;
	struct qrdma_txbuf *tx;
	u64 dma;
	u32 pos;
	u32 epoch;
	bool mapped;
};

/**
 * struct qrdma_rx_slot - a posted receive
 * @cqe: what the completion brings back
 * @rx: buffer, NULL when the slot is free
 * @dma: address of its page
 * @index: which slot, and which GRH
 * @next: the next free slot
 * @epoch: of the lane when it was posted
 *
 * Protected by: lane->rx_lock.
 */
struct qrdma_rx_slot {
	struct ib_cqe cqe;
	struct qrdma_rxbuf *rx;
	u64 dma;
	u32 index;
	u32 next;
	u32 epoch;
};

/**
 * struct qrdma_lane_ring - slots, and room to write work requests
 * @tx: slots of even and odd epochs
 * @rx: the same for receives
 * @wr: chain being written; tx_lock
 * @sge: its pieces
 * @rx_wr: chain being written; rx_lock
 * @rx_sge: its pieces: GRH and page
 */
struct qrdma_lane_ring {
	struct qrdma_tx_slot *tx[2];
	struct qrdma_rx_slot *rx[2];
	struct ib_ud_wr wr[QRDMA_LANE_CHAIN];
	struct ib_sge sge[QRDMA_LANE_CHAIN];
	struct ib_recv_wr rx_wr[QRDMA_LANE_BATCH];
	struct ib_sge rx_sge[QRDMA_LANE_BATCH][2];
};

#endif /* QRDMA_LANE_RING_H */
