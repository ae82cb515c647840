/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Socket options: what the application sets before connect(), keys in and never out, numbers out.
 *
 * Owns: struct qrdma_setup of a socket. Called by: af_qrdma.c, process context, without the
 * socket lock.
 */
#ifndef QRDMA_SOCKOPT_H
#define QRDMA_SOCKOPT_H

#include "sock.h"

/** qrdma_setup_init() - the defaults, for a new socket */
void qrdma_setup_init(struct qrdma_setup *setup);

/** qrdma_setup_complete() - is everything there that connect() needs? */
bool qrdma_setup_complete(const struct qrdma_setup *setup);

/** qrdma_setsockopt() - struct proto_ops; errors: see linux/qrdma.h */
int qrdma_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval,
		     unsigned int optlen);

/** qrdma_getsockopt() - struct proto_ops */
int qrdma_getsockopt(struct socket *sock, int level, int optname, char __user *optval,
		     int __user *optlen);

/**
 * qrdma_sockopt_set_agent() - the same through the agent's descriptor, level SOL_QRDMA
 * @qs: target, not locked
 * @agent: what the agent has of it
 * @optname: QRDMA_*
 * @optval: value
 * @optlen: its size
 *
 * Return: as qrdma_setsockopt(); -EOPNOTSUPP: not the agent's; -ENOTCONN: its handshake is over.
 */
int qrdma_sockopt_set_agent(struct qrdma_sock *qs, struct qrdma_agent *agent, int optname,
			    sockptr_t optval, unsigned int optlen);

/** qrdma_sockopt_get_agent() - the same for qrdma_getsockopt() */
int qrdma_sockopt_get_agent(struct qrdma_sock *qs, struct qrdma_agent *agent, int optname,
			    char __user *optval, int __user *optlen);

#endif /* QRDMA_SOCKOPT_H */
