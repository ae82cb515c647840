/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of the socket layer and of datagrams that found no connection.
 *
 * Owns: one set per CPU for the whole module, shown by /proc/net/qrdma (af_qrdma.c). What a
 * connection dropped is counted by the connection (core/conn.h); what a lane or peer counts
 * stands in their own headers. Called by: everyone above the lanes, any context, no lock.
 */
#ifndef QRDMA_STAT_H
#define QRDMA_STAT_H

#include <linux/percpu.h>
#include <linux/types.h>

/**
 * enum qrdma_stat_item - what is counted
 * @QRDMA_STAT_RX: datagrams that arrived
 * @QRDMA_STAT_RX_HEADER: dropped: no QUIC header of version 1
 * @QRDMA_STAT_RX_UNKNOWN: dropped: no connection has that id
 * @QRDMA_STAT_RX_NETNS: dropped: arrived on an interface of another network namespace than the
 *	socket's
 * @QRDMA_STAT_RX_PORT: dropped: the destination port is not the socket's
 * @QRDMA_STAT_RX_FULL: dropped: the socket's input queue is full
 * @QRDMA_STAT_RX_NOMEM: dropped: no memory for a record, or for a new connection
 * @QRDMA_STAT_LISTEN_FULL: dropped: the listener's backlog or queue is full
 * @QRDMA_STAT_RX_LATE: dropped: the connection ended before the datagram was looked at
 * @QRDMA_STAT_RX_DEFERRED: batches that waited for the socket's user
 * @QRDMA_STAT_TX: datagrams handed to a lane
 * @QRDMA_STAT_TX_SEAL: not sent: the AEAD failed
 * @QRDMA_STAT_TX_REFUSED: not sent: the lane refused it
 * @QRDMA_STAT_TX_WAIT: times that a connection had to wait for a send buffer
 * @QRDMA_STAT_SOCKETS: sockets that exist
 * @QRDMA_STAT_CONNECTIONS: connections that exist
 * @QRDMA_STAT_ORPHANS: connections that go on after close()
 * @QRDMA_STAT_ESTABLISHED: connections that were ever established
 * @QRDMA_STAT_FAILED: attempts to connect that failed
 * @QRDMA_STAT_ABORTED: connections ended by this end before all was delivered
 * @QRDMA_STAT_MOVED: times that a connection moved to a new answer of address resolution
 * @QRDMA_STAT_STRANDED: connections ended because no device reached the peer any more
 * @QRDMA_STAT_RESET_SENT: stateless resets sent for packets that belong to no connection
 * @QRDMA_STAT_REFUSED: refusals sent to clients that came to a port that nobody listens on
 * @QRDMA_STAT_RETRY_SENT: Retry packets sent to clients whose address was not validated
 * @QRDMA_STAT_RESET_HELD: none of these sent: too many in this second, or under way
 * @QRDMA_STAT_RESET_FAILED: none of these sent: no way to the sender, no buffer
 * @QRDMA_STAT_RESET_GOT: connections ended by a stateless reset of the peer
 * @QRDMA_STAT_RETRY_GOT: Retry packets that a connection of ours followed
 * @QRDMA_STAT_TOKEN_TAKEN: tokens that validated the address of a client
 * @QRDMA_STAT_TOKEN_IGNORED: tokens as good as none: not ours, too old, used before, another host's
 * @QRDMA_STAT_TOKEN_REFUSED: tokens of a Retry that are not good any more
 * @QRDMA_STAT_TOKEN_KEPT: tokens for the next connection that servers gave us
 * @QRDMA_STAT_TOKEN_SPENT: those of them that we have used
 * @QRDMA_STAT_AGENT_ASKED: handshakes that were queued for the agent
 * @QRDMA_STAT_AGENT_ABSENT: attempts to connect that failed, here or from elsewhere, because there
 *	is no agent
 * @QRDMA_STAT_AGENT_LEFT: handshakes that an agent took, and left without a result
 * @QRDMA_STAT_LOSS: times that the loss monitor of a connection found too much
 */
enum qrdma_stat_item {
	QRDMA_STAT_RX,
	QRDMA_STAT_RX_HEADER,
	QRDMA_STAT_RX_UNKNOWN,
	QRDMA_STAT_RX_NETNS,
	QRDMA_STAT_RX_PORT,
	QRDMA_STAT_RX_FULL,
	QRDMA_STAT_RX_NOMEM,
	QRDMA_STAT_LISTEN_FULL,
	QRDMA_STAT_RX_LATE,
	QRDMA_STAT_RX_DEFERRED,
	QRDMA_STAT_TX,
	QRDMA_STAT_TX_SEAL,
	QRDMA_STAT_TX_REFUSED,
	QRDMA_STAT_TX_WAIT,
	QRDMA_STAT_SOCKETS,
	QRDMA_STAT_CONNECTIONS,
	QRDMA_STAT_ORPHANS,
	QRDMA_STAT_ESTABLISHED,
	QRDMA_STAT_FAILED,
	QRDMA_STAT_ABORTED,
	QRDMA_STAT_MOVED,
	QRDMA_STAT_STRANDED,
	QRDMA_STAT_RESET_SENT,
	QRDMA_STAT_REFUSED,
	QRDMA_STAT_RETRY_SENT,
	QRDMA_STAT_RESET_HELD,
	QRDMA_STAT_RESET_FAILED,
	QRDMA_STAT_RESET_GOT,
	QRDMA_STAT_RETRY_GOT,
	QRDMA_STAT_TOKEN_TAKEN,
	QRDMA_STAT_TOKEN_IGNORED,
	QRDMA_STAT_TOKEN_REFUSED,
	QRDMA_STAT_TOKEN_KEPT,
	QRDMA_STAT_TOKEN_SPENT,
	QRDMA_STAT_AGENT_ASKED,
	QRDMA_STAT_AGENT_ABSENT,
	QRDMA_STAT_AGENT_LEFT,
	QRDMA_STAT_LOSS,
	__QRDMA_STAT_MAX
};

struct qrdma_stats {
	u64 count[__QRDMA_STAT_MAX];
};

DECLARE_PER_CPU(struct qrdma_stats, qrdma_stats);

static inline void qrdma_stat_add(enum qrdma_stat_item item, s64 n)
{
	this_cpu_add(qrdma_stats.count[item], n);
}

static inline void qrdma_stat_inc(enum qrdma_stat_item item)
{
	this_cpu_inc(qrdma_stats.count[item]);
}

static inline void qrdma_stat_dec(enum qrdma_stat_item item)
{
	this_cpu_dec(qrdma_stats.count[item]);
}

/**
 * qrdma_stat_read() - sum over all CPUs; sums of things that come and go are exact when nothing
 * moves
 */
u64 qrdma_stat_read(enum qrdma_stat_item item);

/** qrdma_stat_name() - for people and tools, a word without spaces */
const char *qrdma_stat_name(enum qrdma_stat_item item);

#endif /* QRDMA_STAT_H */
