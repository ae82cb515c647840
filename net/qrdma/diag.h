/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sockets seen from outside, by NETLINK_SOCK_DIAG (linux/qrdma_diag.h).
 *
 * Owns: the handler of the family. Called by: af_qrdma.c.
 */
#ifndef QRDMA_DIAG_H
#define QRDMA_DIAG_H

/** qrdma_diag_start() - Return: 0, -EBUSY. */
int qrdma_diag_start(void);

/** qrdma_diag_stop() - no dump is under way afterwards */
void qrdma_diag_stop(void);

#endif /* QRDMA_DIAG_H */
