/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Sockets of AF_QRDMA seen from outside: NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY.
 *
 * A dump tells the listeners and connections of the caller's network namespace, those too whose
 * program has closed them and which still deliver. No privilege is needed, and nothing secret is
 * in it.
 */
#ifndef _UAPI_LINUX_QRDMA_DIAG_H
#define _UAPI_LINUX_QRDMA_DIAG_H

#include <linux/types.h>

/* A request with NLM_F_DUMP; anything else is EOPNOTSUPP. */
struct qrdma_diag_req {
	__u8	family;			/* AF_QRDMA */
	__u8	protocol;		/* 0 */
	__u16	reserved;		/* 0 */
	/* 1 << QRDMA_STATE_*: only sockets in one of these states; 0: all */
	__u32	states;
};

/* One for each socket, followed by attributes. */
struct qrdma_diag_msg {
	__u8	family;			/* AF_QRDMA */
	__u8	state;			/* QRDMA_STATE_* */
	__u8	protocol;		/* QRDMA_PROTO_* of socket() */
	__u8	reserved;
	__be16	local_port;
	__be16	remote_port;		/* 0 for a listener */
	__u8	local[16];		/* IPv6 address; IPv4 ones are mapped */
	__u8	remote[16];
	__u32	ifindex;		/* of a link-local address, or bound to */
	__u32	uid;			/* owner, in the caller's user namespace */
	/* bytes to be read; of a listener: connections that wait for accept() */
	__u32	rqueue;
	/* bytes that were written and not yet acknowledged; of a listener: its backlog */
	__u32	wqueue;
	__u32	inode;			/* 0: its program has closed it */
	__u32	cookie[2];
};

#define QRDMA_DIAG_PAD		0	/* makes what follows aligned */
#define QRDMA_DIAG_INFO		1	/* struct qrdma_info; not of a listener */
#define QRDMA_DIAG_CONG		2	/* u32, QRDMA_CONG_*; not of a listener */

#endif /* _UAPI_LINUX_QRDMA_DIAG_H */
