/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Output: ask the engine for datagrams, seal them, hand them to the lane; and the timer.
 *
 * Owns: output records (struct qrdma_tx and what its packet needs until it is posted), the list
 * of sockets that wait for a send buffer. Called by: input.c, link.c and the socket calls under
 * the socket lock; the timer (softirq); completions of asynchronous seals (any context, no lock);
 * the lane's tx_room (kworker).
 */
#ifndef QRDMA_OUTPUT_H
#define QRDMA_OUTPUT_H

#include "sock.h"

/** qrdma_output_start() - Return: 0, -ENOMEM. */
int qrdma_output_start(void);

/** qrdma_output_stop() - no socket is left */
void qrdma_output_stop(void);

/**
 * qrdma_output_run() - serve the engine's events: react, send what may be sent, arm the timer
 * @qs: socket, locked
 * @ev: QRDMA_EV_* bits that have come up since the last call
 *
 * To be called once per batch of whatever touched the engine. Posts one chain.
 */
void qrdma_output_run(struct qrdma_sock *qs, u32 ev);

/** qrdma_output_arm() - an alarm was set: see that the timer is early enough. Socket lock. */
void qrdma_output_arm(struct qrdma_sock *qs);

/** qrdma_output_timer() - the socket's timer, for qrdma_sock_init() */
enum hrtimer_restart qrdma_output_timer(struct hrtimer *timer);

/**
 * qrdma_output_timeout() - the timer has gone off and the socket is ours now: serve engine and
 * alarms. Socket lock.
 */
void qrdma_output_timeout(struct qrdma_sock *qs);

/**
 * qrdma_output_tx_room() - struct qrdma_verbs_ops: wake those who waited for a buffer of this
 * lane
 */
void qrdma_output_tx_room(struct qrdma_lane *lane);

/** qrdma_output_unwait() - wait for no buffer of the lane any more. Socket lock. */
void qrdma_output_unwait(struct qrdma_sock *qs);

/** qrdma_output_rest() - there is nothing to send for now: free idle records. Socket lock. */
void qrdma_output_rest(struct qrdma_sock *qs);

/**
 * qrdma_output_detach() - the connection retires: wait for no buffer, free idle records. Socket
 * lock.
 */
void qrdma_output_detach(struct qrdma_sock *qs);

#endif /* QRDMA_OUTPUT_H */
