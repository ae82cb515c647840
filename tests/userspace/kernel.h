/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sockets of a handshake in band without a kernel. The linker puts the functions here in the place of the system
 * calls (--wrap): descriptors KERNEL_FD and KERNEL_FD + 1 are the ends of wire.h behind the rules of
 * include/uapi/linux/qrdma.h, and what breaks these rules is counted.
 */
#ifndef TESTS_USERSPACE_KERNEL_H
#define TESTS_USERSPACE_KERNEL_H

#include <netinet/in.h>
#include "wire.h"

#define KERNEL_FD	900

/**
 * struct kernel - both sockets
 * @agent: they are agent ends (linux/qrdma_genl.h)
 * @unconnected: and have no names any more
 * @name: addresses, of each end
 * @handshake: QRDMA_CONFIG
 * @closed: QRDMA_CONNECTION_CLOSE, but for what the wire knows
 * @closes: how often the descriptor was closed
 * @faults: calls that are against the rules
 */
struct kernel {
	bool agent;
	bool unconnected;
	struct sockaddr_in6 name[2];
	uint32_t handshake[2];
	struct qrdma_connection_close closed[2];
	int closes[2];
	int faults;
};

extern struct kernel kernel;

/* All zero, and the wire as it begins. */
void kernel_reset(void);

#endif /* TESTS_USERSPACE_KERNEL_H */
