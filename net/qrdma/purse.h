/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Purse: the tokens that servers gave us in NEW_TOKEN frames, each good for one connection (RFC
 * 9000 section 8.1.3).
 *
 * Owns: the tokens of each network namespace. Called by: sock.c (a token came; any context),
 * inband.c (one is to be spent; process context). One lock for each namespace, innermost.
 *
 * A server is an address and a port: the kernel knows no names. Who connects to two servers of
 * different names there spends a token of the one at the other, which takes it or does not.
 *
 * Bounds: so many tokens of a namespace, so many of one server, and an age; the oldest goes first.
 */
#ifndef QRDMA_PURSE_H
#define QRDMA_PURSE_H

#include <linux/in6.h>
#include <linux/list.h>
#include <net/net_namespace.h>

/** enum - bounds */
enum {
	QRDMA_PURSE_MAX		= 256,	/* tokens of a network namespace */
	QRDMA_PURSE_SERVER_MAX	= 4,	/* of one server */
	QRDMA_PURSE_AGE		= 24 * 3600,	/* seconds */
};

/**
 * struct qrdma_coin - a token
 * @list: in the purse, youngest first
 * @server: address of the server, IPv4 mapped
 * @port: its port
 * @got: when, seconds since boot
 * @len: bytes of it
 * @token: they
 *
 * Owned by: the purse, then by who took it: kfree().
 */
struct qrdma_coin {
	struct list_head list;
	struct in6_addr server;
	u16 port;
	time64_t got;
	u32 len;
	u8 token[];
};

/** qrdma_purse_start() - before the first connection. Return: 0, -ENOMEM. */
int qrdma_purse_start(void);

/** qrdma_purse_stop() - no socket is left */
void qrdma_purse_stop(void);

/**
 * qrdma_purse_put() - a server gave us a token
 * @net: namespace of the connection
 * @server: address of the server, IPv4 mapped
 * @port: its port
 * @token: copied
 * @len: bytes
 *
 * Context: any. Return: 0; -ENOMEM: it is not kept.
 */
int qrdma_purse_put(struct net *net, const struct in6_addr *server, u16 port, const u8 *token,
		    u32 len);

/**
 * qrdma_purse_take() - the youngest token for a server, once and for all
 * @net: namespace of the connection
 * @server: address of the server, IPv4 mapped
 * @port: its port
 *
 * Context: any. Return: it, the caller's; NULL: there is none.
 */
struct qrdma_coin *qrdma_purse_take(struct net *net, const struct in6_addr *server, u16 port);

#endif /* QRDMA_PURSE_H */
