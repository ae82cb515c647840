/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Options of the levels IPPROTO_TCP, IPPROTO_IP and IPPROTO_IPV6, which programs that were written
 * for TCP set: accepted as TCP accepts them, kept, and told again.
 *
 * Few of them mean something here: TCP_CORK holds bytes back, TCP_CONGESTION is the controller of
 * QRDMA_CONFIG, IPV6_V6ONLY decides what a bind takes, TCP_INFO and TCP_MAXSEG tell what is. An
 * option whose meaning would be missed when it is not met is not accepted (ENOPROTOOPT).
 *
 * Owns: qrdma_sock.kept. Called by: sockopt.c, accept.c, sendmsg.c, process context, under the
 * socket lock but for the calls that say otherwise.
 */
#ifndef QRDMA_IPOPT_H
#define QRDMA_IPOPT_H

#include <linux/sockptr.h>

#include "sock.h"

/** qrdma_ipopt_level() - is it a level of these options? Any context. */
bool qrdma_ipopt_level(int level);

/**
 * qrdma_ipopt_set() - setsockopt() of these levels. Without the socket lock.
 *
 * Return: 0, -ENOPROTOOPT: no such option here, or TCP's error for the value.
 */
int qrdma_ipopt_set(struct qrdma_sock *qs, int level, int optname, sockptr_t optval,
		    unsigned int optlen);

/** qrdma_ipopt_get() - getsockopt() of these levels; @len: *optlen, not negative. No lock held. */
int qrdma_ipopt_get(struct qrdma_sock *qs, int level, int optname, char __user *optval,
		    int __user *optlen, int len);

/** qrdma_ipopt_inherit() - a child has what its listener has. Return: 0, -ENOMEM. */
int qrdma_ipopt_inherit(struct qrdma_sock *child, const struct qrdma_sock *parent);

/** qrdma_ipopt_corked() - is TCP_CORK set? */
bool qrdma_ipopt_corked(const struct qrdma_sock *qs);

#endif /* QRDMA_IPOPT_H */
