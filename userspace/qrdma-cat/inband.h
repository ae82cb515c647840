/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections of qrdma-cat whose handshake runs over RDMA itself. What fails is told on standard error. */
#ifndef QRDMA_CAT_INBAND_H
#define QRDMA_CAT_INBAND_H

#include <qrdma.h>

/**
 * struct inband_options - where and how
 * @family: AF_INET, AF_INET6, AF_UNSPEC: either
 * @host: name or address; NULL: all of ours (listening)
 * @port: of AF_QRDMA
 * @bind: our address (connecting), NULL: the kernel's choice
 * @handshake: handed to libqrdma
 */
struct inband_options {
	int family;
	const char *host;
	const char *port;
	const char *bind;
	struct qrdma_handshake_options handshake;
};

/* A connected socket with its handshake done, or -errno. */
int inband_connect(const struct inband_options *opt);
/* A listening socket, or -errno. */
int inband_listen(const struct inband_options *opt);
/* The next connection, its handshake done; -errno, -EAGAIN: this one failed, the next may not. */
int inband_accept(int listener, const struct inband_options *opt);

#endif /* QRDMA_CAT_INBAND_H */
