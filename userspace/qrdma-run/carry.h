/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A socket of TCP in the place of one of AF_QRDMA on which nothing has happened yet.
 */
#ifndef QRDMA_RUN_CARRY_H
#define QRDMA_RUN_CARRY_H

#include <stdbool.h>
#include <sys/socket.h>

/* The calls behind the preload's own */
struct run_real {
	int (*socket)(int domain, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*connect)(int fd, const struct sockaddr *addr, socklen_t len);
};

/* Is @fd a socket of AF_QRDMA that neither listens nor has a connection? errno stays. */
bool run_carry_possible(int fd);

/*
 * Descriptor @fd becomes a TCP socket with the flags, the options that were set, and the name that it had. What epoll
 * was told about it, and other descriptors for it, keep the old one. Return: 0; -1: errno says why, and @fd is what it
 * was.
 */
int run_carry(int fd, const struct run_real *real);

#endif
