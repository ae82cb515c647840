/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Input: from the lane to the socket, through the AEAD into the engine.
 *
 * Owns: input records (struct qrdma_rx and what its datagram needs while it is opened), the lists
 * of sockets that got datagrams in the completion batch that is running. Called by: the lane
 * (softirq), completions of asynchronous opens (any context, no lock), the socket calls and
 * release_sock() (process context).
 *
 * A completion handler hands up one message after the other. Each goes to its socket's queue, the
 * socket to the list of this CPU, and a tasklet, which runs when the handler is through, works
 * off the list: so a socket sees a batch, and answers with one acknowledgement and one chain of
 * posts.
 */
#ifndef QRDMA_INPUT_H
#define QRDMA_INPUT_H

#include "sock.h"

/** qrdma_input_start() - Return: 0, -ENOMEM. */
int qrdma_input_start(void);

/** qrdma_input_stop() - no lane calls any more, no socket is left */
void qrdma_input_stop(void);

/** qrdma_input_rx() - struct qrdma_verbs_ops: a message arrived */
void qrdma_input_rx(struct qrdma_lane *lane, struct qrdma_rxbuf *rxbuf);

/**
 * qrdma_input_give() - a datagram for a socket, or for a listener
 * @qs: the reference is used up
 * @rxbuf: the same
 *
 * Any context.
 */
void qrdma_input_give(struct qrdma_sock *qs, struct qrdma_rxbuf *rxbuf);

/**
 * qrdma_input_events() - what a handshake has come to, beside packets that were opened
 * @qs: socket, locked, with an engine
 *
 * Packets that waited for a key, and need not any more, go the way of all others.
 *
 * Return: event bits.
 */
u32 qrdma_input_events(struct qrdma_sock *qs);

/**
 * qrdma_input_drain() - a process has the socket lock: open what has arrived meanwhile
 * @qs: socket, locked
 *
 * Cheap when there is nothing. For the loops of sendmsg and recvmsg.
 */
void qrdma_input_drain(struct qrdma_sock *qs);

/**
 * qrdma_input_release_cb() - struct proto: do what softirq left to the owner. sk_lock.slock held,
 * softirqs off.
 */
void qrdma_input_release_cb(struct sock *sk);

/** qrdma_input_rest() - nothing comes in for now: free idle records. Socket lock. */
void qrdma_input_rest(struct qrdma_sock *qs);

/**
 * qrdma_input_detach() - the connection retires: drop what is queued, free idle records. Socket
 * lock.
 */
void qrdma_input_detach(struct qrdma_sock *qs);

#endif /* QRDMA_INPUT_H */
