/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Generic netlink family of AF_QRDMA: how an agent takes the handshakes of programs that run none
 * themselves (QRDMA_HANDSHAKE_AGENT in linux/qrdma.h). The same in
 * Documentation/netlink/specs/qrdma.yaml.
 */
#ifndef _UAPI_LINUX_QRDMA_GENL_H
#define _UAPI_LINUX_QRDMA_GENL_H

#define QRDMA_GENL_NAME		"qrdma"
#define QRDMA_GENL_VERSION	1
/*
 * Who is in this group (CAP_NET_ADMIN in the user namespace that owns the network namespace) is an
 * agent of its network namespace; as long as nobody is, connect() fails at once.
 */
#define QRDMA_GENL_MCGRP_AGENT	"agent"

#define QRDMA_HOST_KEY_LEN	32

enum {
	/* event to QRDMA_GENL_MCGRP_AGENT, no attributes: a handshake waits */
	QRDMA_CMD_READY = 1,
	/*
	 * do, no attributes: the oldest waiting handshake, QRDMA_A_ACCEPT_*; EAGAIN: none waits.
	 * Needs CAP_NET_ADMIN as the group does, and takes only handshakes of the network namespace
	 * of the netlink socket.
	 */
	QRDMA_CMD_ACCEPT,
	/*
	 * do, QRDMA_A_HOST_KEY: the key of stateless resets, which should outlive a restart; EBUSY:
	 * one was given before; EPERM: not in the first network namespace.
	 */
	QRDMA_CMD_HOST_KEY,

	__QRDMA_CMD_MAX,
	QRDMA_CMD_MAX = (__QRDMA_CMD_MAX - 1)
};

/* Answer to QRDMA_CMD_ACCEPT */
enum {
	QRDMA_A_ACCEPT_FD = 1,	/* s32: descriptor, closed on exec, always non-blocking */
	QRDMA_A_ACCEPT_ROLE,	/* u32: QRDMA_ROLE_* */
	QRDMA_A_ACCEPT_TIMEOUT,	/* u32: milliseconds that are left */
	QRDMA_A_ACCEPT_UID,	/* u32: owner of the socket, as the agent's user namespace has it */

	__QRDMA_A_ACCEPT_MAX,
	QRDMA_A_ACCEPT_MAX = (__QRDMA_A_ACCEPT_MAX - 1)
};

/* QRDMA_CMD_HOST_KEY */
enum {
	QRDMA_A_HOST_KEY = 1,	/* binary: QRDMA_HOST_KEY_LEN bytes */

	__QRDMA_A_HOST_MAX,
	QRDMA_A_HOST_MAX = (__QRDMA_A_HOST_MAX - 1)
};

#endif /* _UAPI_LINUX_QRDMA_GENL_H */
