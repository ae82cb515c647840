/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a socket tells about itself: struct qrdma_info.
 *
 * Owns: nothing. Called by: sockopt.c, diag.c, under the socket lock.
 */
#ifndef QRDMA_INFO_H
#define QRDMA_INFO_H

#include "sock.h"

/** qrdma_info_state() - Return: QRDMA_STATE_*. */
u8 qrdma_info_state(const struct qrdma_sock *qs);

/**
 * qrdma_info_fill() - QRDMA_INFO
 * @qs: socket
 * @info: zero; what is known is filled in
 */
void qrdma_info_fill(const struct qrdma_sock *qs, struct qrdma_info *info);

#endif /* QRDMA_INFO_H */
