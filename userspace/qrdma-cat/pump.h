/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Moves bytes both ways between a pair of files and a connected socket. */
#ifndef QRDMA_CAT_PUMP_H
#define QRDMA_CAT_PUMP_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct pump_options - what is moved
 * @sock: connected socket
 * @in: read from here and sent; -1: nothing is sent
 * @out: what is received goes here
 * @progress: a progress line on standard error
 */
struct pump_options {
	int sock;
	int in;
	int out;
	bool progress;
};

struct pump_result {
	uint64_t sent;		/* bytes */
	uint64_t received;	/* bytes */
};

/* Until both directions have ended. 0, or -errno with a line on standard error. */
int pump_run(const struct pump_options *opt, struct pump_result *result);

#endif /* QRDMA_CAT_PUMP_H */
