/* SPDX-License-Identifier: GPL-2.0 */
/*
 * recvmsg and poll: stream 0 to the user.
 *
 * Owns: nothing that lasts. Called by: af_qrdma.c, process context, without the socket lock.
 */
#ifndef QRDMA_RECVMSG_H
#define QRDMA_RECVMSG_H

#include "sock.h"

/**
 * qrdma_recvmsg() - struct proto_ops
 *
 * Flags as TCP takes them: MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL and MSG_TRUNC (drop the bytes
 * instead of copying them) do something; MSG_OOB is -EINVAL as there are no urgent bytes,
 * MSG_ERRQUEUE is -EAGAIN as there is no such queue.
 *
 * Return: bytes, 0 at the end; or -EAGAIN, -EINTR / -ERESTARTSYS, -ENOTCONN, -EFAULT, the
 * socket's error.
 */
int qrdma_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags);

/** qrdma_poll() - struct proto_ops */
__poll_t qrdma_poll(struct file *file, struct socket *sock, struct poll_table_struct *wait);

#endif /* QRDMA_RECVMSG_H */
