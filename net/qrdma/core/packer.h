/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fill one datagram: choose frames by priority, give it a number, record it in recovery, describe
 * how to seal it.
 *
 * Owns: nothing. Called by: the datapath, building under the socket lock with a buffer of its own;
 * the rest of struct qrdma_tx needs no lock and no connection.
 */
#ifndef QRDMA_CORE_PACKER_H
#define QRDMA_CORE_PACKER_H

#include "conn.h"
#include "tx.h"

/**
 * qrdma_packer_build() - fill one datagram
 * @conn: connection
 * @tx: datagram; @tx->cap may be less than the path takes, then the datagram is smaller
 * @now: ns
 *
 * Return: bytes of the datagram once sealed; 0: nothing to send now (the deadline says when);
 * -EAGAIN: pacing or the congestion window forbids it now (the deadline, or an ACK, says when);
 * -ENOMEM: the deadline says when to try again; -EMSGSIZE: @tx->cap is below QRDMA_TX_MIN;
 * -EKEYEXPIRED: usage limit of the key, or packet numbers at their end: the connection has ended by
 * then, qrdma_conn_timeout() returns the events of it. Except for the first, @tx holds nothing.
 */
int qrdma_packer_build(struct qrdma_conn *conn, struct qrdma_tx *tx, u64 now);

/**
 * qrdma_tx_protect() - protect the header of a sealed packet (RFC 9001 s5.4)
 * @tx: datagram; any context
 *
 * Return: 0 or the error of the port: then do not post it.
 */
int qrdma_tx_protect(struct qrdma_tx *tx);

/**
 * qrdma_tx_next() - go on to the next packet of the datagram
 * @tx: datagram whose @op was sealed and protected; any context
 *
 * Return: true: @op describes another packet, to be sealed and protected in turn; false: the
 * datagram is complete, post it.
 */
bool qrdma_tx_next(struct qrdma_tx *tx);

/**
 * qrdma_tx_release() - drop the references that a built datagram holds
 * @tx: datagram; any context, after the seal is done; harmless when nothing was built
 */
void qrdma_tx_release(struct qrdma_tx *tx);

#endif /* QRDMA_CORE_PACKER_H */
