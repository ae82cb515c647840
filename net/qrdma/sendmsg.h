/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sendmsg: user bytes into stream 0.
 *
 * Owns: nothing that lasts. Called by: af_qrdma.c, process context, without the socket lock.
 */
#ifndef QRDMA_SENDMSG_H
#define QRDMA_SENDMSG_H

#include "sock.h"

/**
 * qrdma_sendmsg() - struct proto_ops
 *
 * Flags as TCP takes them: MSG_DONTWAIT, MSG_NOSIGNAL and MSG_MORE do something, MSG_OOB and
 * MSG_FASTOPEN are refused (-EOPNOTSUPP), others are ignored. A part that was taken before an
 * error is what is returned.
 *
 * Return: bytes, or -EPIPE (with SIGPIPE), -EAGAIN, -EINTR / -ERESTARTSYS, -ENOMEM, -EFAULT, the
 * socket's error.
 */
int qrdma_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);

#endif /* QRDMA_SENDMSG_H */
