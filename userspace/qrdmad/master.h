/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The master: makes workers and keeps their number, gives the kernel the host key, and reloads the configuration. It
 * runs no handshake.
 */
#ifndef QRDMAD_MASTER_H
#define QRDMAD_MASTER_H

#include "policy.h"

/* @config and @policies, of @file, become the master's. Returns the exit code when it was told to end. */
int master_run(const char *file, struct config *config, struct policies *policies);

#endif /* QRDMAD_MASTER_H */
