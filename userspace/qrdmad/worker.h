/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A worker: a process that takes handshakes from the kernel and runs a bounded number of them at a time in one loop.
 * Forked by master.c with the policies in its memory.
 */
#ifndef QRDMAD_WORKER_H
#define QRDMAD_WORKER_H

#include "genl.h"
#include "policy.h"
#include "rights.h"

/* What the worker writes to its channel when it takes handshakes. */
#define WORKER_READY	'R'

/**
 * struct worker_options - one worker
 * @config: bounds, key log
 * @policies: decisions
 * @family: numbers of the netlink family
 * @user: whom it becomes
 * @channel: socket to the master; its end tells the worker to take no more, finish and exit
 */
struct worker_options {
	const struct config *config;
	const struct policies *policies;
	const struct genl_family *family;
	const struct rights_user *user;
	int channel;
};

/* Returns the exit code when all handshakes are over. */
int worker_run(const struct worker_options *opt);

#endif /* QRDMAD_WORKER_H */
