/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generic netlink family (linux/qrdma_genl.h, Documentation/netlink/specs/qrdma.yaml).
 *
 * Owns: the family. Called by: generic netlink (process context), agent.c through
 * qrdma_genlink_agents (any context).
 */
#ifndef QRDMA_GENLINK_H
#define QRDMA_GENLINK_H

#include "agent.h"

/** qrdma_genlink_agents - how agent.c reaches agents; nobody is there before the start */
extern const struct qrdma_agent_ops qrdma_genlink_agents;

/** qrdma_genlink_start() - after qrdma_agent_start() and qrdma_reset_start(). Return: 0, errno. */
int qrdma_genlink_start(void);

/** qrdma_genlink_stop() - no socket is left */
void qrdma_genlink_stop(void);

#endif /* QRDMA_GENLINK_H */
