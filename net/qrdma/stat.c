// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of the socket layer. See stat.h.
 */
#include <linux/cpumask.h>

#include "stat.h"

DEFINE_PER_CPU(struct qrdma_stats, qrdma_stats);

static const char * const stat_names[__QRDMA_STAT_MAX] = {
	[QRDMA_STAT_RX]			= "rx",
	[QRDMA_STAT_RX_HEADER]		= "rx_drop_header",
	[QRDMA_STAT_RX_UNKNOWN]		= "rx_drop_unknown_id",
	[QRDMA_STAT_RX_NETNS]		= "rx_drop_netns",
	[QRDMA_STAT_RX_PORT]		= "rx_drop_port",
	[QRDMA_STAT_RX_FULL]		= "rx_drop_queue_full",
	[QRDMA_STAT_RX_NOMEM]		= "rx_drop_no_memory",
	[QRDMA_STAT_LISTEN_FULL]	= "rx_drop_backlog",
	[QRDMA_STAT_RX_LATE]		= "rx_drop_connection_ended",
	[QRDMA_STAT_RX_DEFERRED]	= "rx_deferred",
	[QRDMA_STAT_TX]			= "tx",
	[QRDMA_STAT_TX_SEAL]		= "tx_drop_seal",
	[QRDMA_STAT_TX_REFUSED]		= "tx_drop_lane",
	[QRDMA_STAT_TX_WAIT]		= "tx_wait_buffer",
	[QRDMA_STAT_SOCKETS]		= "sockets",
	[QRDMA_STAT_CONNECTIONS]	= "connections",
	[QRDMA_STAT_ORPHANS]		= "orphans",
	[QRDMA_STAT_ESTABLISHED]	= "established",
	[QRDMA_STAT_FAILED]		= "connect_failed",
	[QRDMA_STAT_ABORTED]		= "aborted",
	[QRDMA_STAT_MOVED]		= "moved",
	[QRDMA_STAT_STRANDED]		= "stranded",
	[QRDMA_STAT_RESET_SENT]		= "resets_sent",
	[QRDMA_STAT_REFUSED]		= "refusals_sent",
	[QRDMA_STAT_RETRY_SENT]		= "retries_sent",
	[QRDMA_STAT_RESET_HELD]		= "resets_held",
	[QRDMA_STAT_RESET_FAILED]	= "resets_failed",
	[QRDMA_STAT_RESET_GOT]		= "resets_received",
	[QRDMA_STAT_RETRY_GOT]		= "retries_received",
	[QRDMA_STAT_TOKEN_TAKEN]	= "tokens_taken",
	[QRDMA_STAT_TOKEN_IGNORED]	= "tokens_ignored",
	[QRDMA_STAT_TOKEN_REFUSED]	= "tokens_refused",
	[QRDMA_STAT_TOKEN_KEPT]		= "tokens_kept",
	[QRDMA_STAT_TOKEN_SPENT]	= "tokens_spent",
	[QRDMA_STAT_AGENT_ASKED]	= "agent_asked",
	[QRDMA_STAT_AGENT_ABSENT]	= "agent_absent",
	[QRDMA_STAT_AGENT_LEFT]		= "agent_left",
	[QRDMA_STAT_LOSS]		= "loss_events",
};

u64 qrdma_stat_read(enum qrdma_stat_item item)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(qrdma_stats, cpu).count[item]);
	return sum;
}

const char *qrdma_stat_name(enum qrdma_stat_item item)
{
	return stat_names[item];
}
