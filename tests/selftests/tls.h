/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What TLS would do in a handshake in band, without TLS: messages of the sizes that TLS has, the
 * transport parameters in them, secrets made from a number. For tests only.
 */
#ifndef QRDMA_TEST_TLS_H
#define QRDMA_TEST_TLS_H

#include "ends.h"

/* Handshake bytes of a level; return: bytes, -errno. */
int tls_send(int fd, int level, const void *data, size_t len);
/* The same, of the level that comes; flags of recvmsg(). 0: the connection has ended. */
int tls_recv(int fd, int *level, void *data, size_t size, int flags);
int tls_secret(int fd, int level, int role, int send, const struct end_options *opt);
int tls_result(int fd, int error, int alert);

/*
 * A socket whose handshake the program runs, bound to an address of host a or b. Return:
 * descriptor, -errno.
 */
int tls_socket(char host, const struct end_options *opt);
/* The same, listening */
int tls_listener(char host, const struct end_options *opt, int backlog);

/*
 * The whole handshake on a socket that connect() or accept() has left in it. @alert: the server
 * gives up with this TLS alert once it has read the client's parameters. Return: 0, -errno.
 */
int tls_client(int fd, const struct end_options *opt);
int tls_server(int fd, const struct end_options *opt, int alert);

/*
 * A connected pair: fd[0] has connected from host a to @listener, which is on host b, fd[1] was
 * accepted. @opt needs a seed. Return: 0, -errno.
 */
int tls_pair(int fd[2], int listener, const struct end_options *opt);

#endif
