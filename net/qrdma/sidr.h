/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SIDR: asking a host for its queue pairs, and answering. One request, and the service.
 *
 * Owns: the format of the private data, the listening cm_ids, the cm_id of each request.
 * Called by: peer.c (requests), the socket layer (which namespaces are served), rdma_cm (kworkers).
 * Locks: a mutex and a spinlock of its own around the list of services; requests have none, their
 * owner is told once and destroys them.
 *
 * The service keeps no state about who asked: an answer depends on the port alone, so that it can
 * be given any number of times.
 */
#ifndef QRDMA_SIDR_H
#define QRDMA_SIDR_H

#include <linux/in6.h>
#include <linux/types.h>
#include <net/ipv6.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "device.h"

struct net;

/** enum - numbers of the SIDR service */
enum {
	QRDMA_SIDR_PORT		= 20804,	/* in RDMA_PS_UDP; a module parameter */
	QRDMA_SIDR_MAGIC	= 0x5144,	/* "QD" */
	QRDMA_SIDR_VERSION	= 1,
	QRDMA_SIDR_LANES	= QRDMA_LANES_MAX,
};

/**
 * struct qrdma_sidr - private data of request, reply and rejection; big endian
 * @magic: QRDMA_SIDR_MAGIC
 * @version: QRDMA_SIDR_VERSION
 * @len: bytes that count, from @magic on (the CM pads with zeroes to its own size)
 * @flags: none yet: sent as 0, ignored
 * @max_datagram: largest QUIC datagram that the sender's port takes, bytes
 * @qkey: key of the sender's queue pairs
 * @reason: rejection: enum qrdma_sidr_reason; else 0
 * @reserved: 0
 * @nlanes: number of @qpn
 * @qpn: the sender's queue pairs
 */
struct qrdma_sidr {
	__be16 magic;
	u8 version;
	u8 len;
	__be16 flags;
	__be16 max_datagram;
	__be32 qkey;
	__be16 reason;
	u8 reserved;
	u8 nlanes;
	__be32 qpn[QRDMA_SIDR_LANES];
};

/**
 * enum qrdma_sidr_reason - why a request was rejected
 * @QRDMA_SIDR_OK: it was not
 * @QRDMA_SIDR_FORMAT: not a request that we understand
 * @QRDMA_SIDR_NO_PORT: the port that it came in by has no lanes (not yet, or not any more)
 */
enum qrdma_sidr_reason {
	QRDMA_SIDR_OK,
	QRDMA_SIDR_FORMAT,
	QRDMA_SIDR_NO_PORT,
};

/**
 * struct qrdma_sidr_info - a struct qrdma_sidr, checked, in host order
 * @max_datagram: bytes
 * @qkey: key
 * @reason: enum qrdma_sidr_reason
 * @nlanes: number of @qpn; 0 in a rejection
 * @qpn: queue pairs
 */
struct qrdma_sidr_info {
	u32 max_datagram;
	u32 qkey;
	u32 reason;
	u32 nlanes;
	u32 qpn[QRDMA_SIDR_LANES];
};

/**
 * struct qrdma_sidr_key - what is asked for
 * @net: network namespace
 * @local: our address (IPv4 mapped), or any
 * @remote: the host's
 * @ifindex: interface to use, 0: any
 */
struct qrdma_sidr_key {
	struct net *net;
	struct in6_addr local;
	struct in6_addr remote;
	int ifindex;
};

/**
 * struct qrdma_sidr_try - one request
 * @key: what is asked
 * @done: called once, when @err and what follows it is final. Kworker; may sleep, must not call
 *	qrdma_sidr_destroy(). May be called before qrdma_sidr_ask() has returned.
 * @arg: for the owner
 * @err: 0 or why not
 * @sent: the request has been sent: the host has been reached as far as we know
 * @info: what the host said
 * @dev: the local port, with a reference; set as soon as it is known
 * @attr: path to the host, with a GID reference; only when @err is 0
 * @local: our address
 * @ifindex: net device of @local
 * @rtt_ns: time from request to answer
 *
 * Owned by: who called qrdma_sidr_ask(), until qrdma_sidr_destroy().
 */
struct qrdma_sidr_try {
	struct qrdma_sidr_key key;
	void (*done)(struct qrdma_sidr_try *try);
	void *arg;
	int err;
	bool sent;
	struct qrdma_sidr_info info;
	struct qrdma_device *dev;
	struct rdma_ah_attr attr;
	struct in6_addr local;
	int ifindex;
	u64 rtt_ns;
	/* private: for sidr.c */
	struct rdma_cm_id *id;
	u64 sent_ns;
	bool finished;
};

/**
 * struct qrdma_sidr_stats - counters
 * @asked: requests sent
 * @answered: good answers
 * @bad_reply: answers that made no sense
 * @served: requests answered
 * @rejected: requests rejected
 */
struct qrdma_sidr_stats {
	u64 asked;
	u64 answered;
	u64 bad_reply;
	u64 served;
	u64 rejected;
};

/** qrdma_sidr_any() - is it :: or ::ffff:0.0.0.0? */
static inline bool qrdma_sidr_any(const struct in6_addr *addr)
{
	return ipv6_addr_any(addr) || (ipv6_addr_v4mapped(addr) && !addr->s6_addr32[3]);
}

/** qrdma_sidr_start() - begin to serve the initial namespace. May sleep. 0 or a negative errno. */
int qrdma_sidr_start(void);

/** qrdma_sidr_stop() - undo; all requests are destroyed and all namespaces unserved. May sleep. */
void qrdma_sidr_stop(void);

/**
 * qrdma_sidr_serve() - answer requests in a network namespace
 * @net: namespace
 *
 * To be called for each socket that takes a port: a listening cm_id holds its namespace, so one is
 * kept only as long as there are such sockets. The initial namespace is always served.
 * Context: may sleep; a socket lock may be held. Return: 0 or a negative errno.
 */
int qrdma_sidr_serve(struct net *net);

/** qrdma_sidr_unserve() - the port was given back. Any context but hard interrupt. */
void qrdma_sidr_unserve(struct net *net);

/**
 * qrdma_sidr_ask() - send a request
 * @key: what is asked
 * @done: see struct qrdma_sidr_try
 * @arg: see struct qrdma_sidr_try
 *
 * Address and route are resolved with short time-outs (an unanswered address resolution waits for
 * the whole of its time-out even when the answer came meanwhile), so -EHOSTUNREACH may mean: again.
 * The request itself is never given up here; the owner destroys it when it has waited enough.
 *
 * Context: may sleep. Return: the request, or ERR_PTR when it failed at once.
 */
struct qrdma_sidr_try *qrdma_sidr_ask(const struct qrdma_sidr_key *key,
				      void (*done)(struct qrdma_sidr_try *try), void *arg);

/** qrdma_sidr_destroy() - end a request, finished or not; done() does not run any more. Sleeps. */
void qrdma_sidr_destroy(struct qrdma_sidr_try *try);

/** qrdma_sidr_stats() - fill @stats. Any context. */
void qrdma_sidr_stats(struct qrdma_sidr_stats *stats);

/* What follows is arithmetic without a device, here so that it can be tested alone. */

/**
 * qrdma_sidr_build() - write private data
 * @sidr: result, all of it is set
 * @info: what to say
 *
 * Return: bytes.
 */
u32 qrdma_sidr_build(struct qrdma_sidr *sidr, const struct qrdma_sidr_info *info);

/**
 * qrdma_sidr_parse() - read and check private data
 * @data: bytes from the CM
 * @size: how many
 * @info: result
 *
 * Return: 0; -EPROTO (not ours, lengths or values wrong), -EPROTONOSUPPORT (another version).
 */
int qrdma_sidr_parse(const void *data, u32 size, struct qrdma_sidr_info *info);

/**
 * qrdma_sidr_errno() - what the failure of a request means to a user
 * @event: what rdma_cm reported
 * @status: of the event; with RDMA_CM_EVENT_ADDR_ERROR also what rdma_resolve_addr() returned
 * @data: private data of a rejection, or NULL
 * @size: its length
 *
 * Return: negative errno.
 */
int qrdma_sidr_errno(enum rdma_cm_event_type event, int status, const void *data, u32 size);

#endif /* QRDMA_SIDR_H */
