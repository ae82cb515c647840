/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The agent's end: the descriptor by which an agent runs the handshake of somebody else's socket.
 *
 * Owns: struct proto and struct proto_ops of these descriptors. Called by: genlink.c, and the
 * socket layer of the kernel; process context, no lock.
 *
 * It is a socket of its own, with its own struct sock, credentials, errors and wait queue: nothing
 * that the kernel does to any socket reaches the target by it. What is done to the handshake is
 * done under the target's lock. It keeps its target, the module and its network namespace; closed
 * before there is a result it fails the handshake.
 */
#ifndef QRDMA_AGENT_END_H
#define QRDMA_AGENT_END_H

#include <linux/fs.h>
#include <linux/uidgid.h>
#include <net/net_namespace.h>

/**
 * struct qrdma_agent_offer - what an agent is told about a handshake
 * @role: QRDMA_ROLE_* of the socket
 * @timeout: milliseconds that are left
 * @uid: owner of the socket
 */
struct qrdma_agent_offer {
	u32 role;
	u32 timeout;
	kuid_t uid;
};

/**
 * qrdma_agent_end_open() - take the oldest handshake that waits
 * @net: namespace
 * @offer: filled
 *
 * Return: file; ERR_PTR(): -EAGAIN: none waits, -ENOMEM, -ENFILE.
 */
struct file *qrdma_agent_end_open(struct net *net, struct qrdma_agent_offer *offer);

/** qrdma_agent_end_undo() - nobody got that file: the handshake waits again. @file is put. */
void qrdma_agent_end_undo(struct file *file);

#endif /* QRDMA_AGENT_END_H */
