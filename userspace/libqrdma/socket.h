/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* AF_QRDMA sockets: make, bind, parametrise, connect within a time limit. */
#ifndef QRDMA_SOCKET_H
#define QRDMA_SOCKET_H

#include "qrdma.h"

/* A socket bound to @addr (port 0: any, the chosen one is written back). Descriptor or -errno. */
int socket_bound(struct sockaddr_storage *addr, const struct qrdma_oob_options *opt);
/* connect() that gives up after @timeout_ms; the socket is blocking before and after. 0 or -errno. */
int socket_connect(int fd, const struct sockaddr_storage *addr, int timeout_ms);
/* Bytes of the address, 0 for a family that AF_QRDMA does not take. */
socklen_t socket_addr_len(const struct sockaddr_storage *addr);

#endif /* QRDMA_SOCKET_H */
