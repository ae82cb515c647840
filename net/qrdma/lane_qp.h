/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The life of a lane: opening, closing, port state, reviving a dead queue pair.
 *
 * Owns: queue pair and completion queue of the lane, and its state.
 * Called by: device.c, in process context but where a function says otherwise. Locks: see lane.h.
 */
#ifndef QRDMA_LANE_QP_H
#define QRDMA_LANE_QP_H

#include "lane.h"

/**
 * qrdma_lane_open() - make queue pair and rings, fill the receive ring
 * @lane: zeroed, with @dev and @index set
 * @cfg: copied
 *
 * Context: may sleep. Return: 0 or a negative errno (then nothing is left behind).
 */
int qrdma_lane_open(struct qrdma_lane *lane, const struct qrdma_lane_config *cfg);

/**
 * qrdma_lane_close() - give back everything that belongs to the device
 * @lane: open
 *
 * After that each call on the lane says -ENODEV, each queued send has had its done(-ENODEV), no
 * upward call is running or will be made. Buffers that are out stay valid.
 * Context: may sleep.
 */
void qrdma_lane_close(struct qrdma_lane *lane);

/**
 * qrdma_lane_free() - the last reference on the device has gone
 * @lane: closed, or never opened (zeroed)
 *
 * Context: any.
 */
void qrdma_lane_free(struct qrdma_lane *lane);

/**
 * qrdma_lane_set_port() - the port went up or down
 * @lane: lane
 * @up: posts resume; down: nothing is posted, sends are refused with -ENETDOWN and queued ones
 *	completed with it
 *
 * Context: any but hard interrupt.
 */
void qrdma_lane_set_port(struct qrdma_lane *lane, bool up);

/** qrdma_lane_set_mtu() - largest message from now on, bytes. Any context. */
void qrdma_lane_set_mtu(struct qrdma_lane *lane, u32 max_msg);

/** qrdma_lane_kick() - the receive pool has recovered: refill. Any context. */
void qrdma_lane_kick(struct qrdma_lane *lane);

/** qrdma_lane_reset() - the queue pair is to be reset (in a worker). Any context. */
void qrdma_lane_reset(struct qrdma_lane *lane);

#endif /* QRDMA_LANE_QP_H */
