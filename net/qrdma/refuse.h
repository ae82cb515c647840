/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Refusals: what a client hears who comes to a port that nobody listens on (RFC 9000 s5.2.2), or
 * with a token that is not good any more (s8.1.2).
 *
 * Owns: nothing; the answer is answer.c's. Called by: input.c (softirq), accept.c (kworker).
 */
#ifndef QRDMA_REFUSE_H
#define QRDMA_REFUSE_H

#include "core/header.h"
#include "pool.h"

/**
 * qrdma_refuse_answer() - a client's first packet came, and there will be no connection
 * @rxbuf: its datagram; stays the caller's
 * @hdr: of a QRDMA_FIRST_INITIAL (core/stateless.h), so the answer is shorter, and is not answered
 * @code: QRDMA_ERR_*
 *
 * Context: any but hard interrupt.
 */
void qrdma_refuse_answer(const struct qrdma_rxbuf *rxbuf, const struct qrdma_hdr *hdr, u64 code);

#endif /* QRDMA_REFUSE_H */
