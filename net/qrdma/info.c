// SPDX-License-Identifier: GPL-2.0
/*
 * What a socket tells about itself. See info.h.
 */
#include "info.h"

u8 qrdma_info_state(const struct qrdma_sock *qs)
{
	if (qrdma_sock_handshaking(qs))
		return QRDMA_STATE_HANDSHAKE;
	switch (qs->sk.sk_state) {
	case TCP_SYN_SENT:
	case TCP_SYN_RECV:
		return QRDMA_STATE_CONNECTING;
	case TCP_LISTEN:
		return QRDMA_STATE_LISTEN;
	case TCP_ESTABLISHED:
		return QRDMA_STATE_ESTABLISHED;
	case TCP_CLOSE_WAIT:
	case TCP_FIN_WAIT1:
		return QRDMA_STATE_CLOSING;
	}
	return qs->spent || qs->error.reason ? QRDMA_STATE_CLOSED : QRDMA_STATE_INIT;
}

static u32 info_ecn(enum qrdma_ecn_state state)
{
	switch (state) {
	case QRDMA_ECN_TEST:
	case QRDMA_ECN_WAIT:
		return QRDMA_INFO_ECN_TESTING;
	case QRDMA_ECN_CAPABLE:
		return QRDMA_INFO_ECN_ON;
	case QRDMA_ECN_FAILED:
		return QRDMA_INFO_ECN_FAILED;
	default:
		return QRDMA_INFO_ECN_OFF;
	}
}

static void info_conn(const struct qrdma_sock *qs, struct qrdma_info *info)
{
	struct qrdma_conn_stats stats;
	int i;

	qrdma_conn_stats(qs->conn, &stats);
	info->key_phase = stats.key_phase & 1;
	info->srtt = stats.srtt;
	info->rttvar = stats.rttvar;
	info->min_rtt = stats.min_rtt;
	info->cwnd = stats.cwnd;
	info->ssthresh = stats.ssthresh;
	info->in_flight = stats.in_flight;
	info->packets_sent = stats.sent;
	info->packets_received = stats.received;
	info->packets_lost = stats.lost;
	info->packets_spurious = stats.spurious;
	info->packets_opened = stats.opened;
	info->packets_failed = stats.open_failed;
	for (i = 0; i < __QRDMA_DROP_MAX; i++) {
		if (i != QRDMA_DROP_NONE && i != QRDMA_DROP_AUTH)
			info->packets_dropped += stats.drops[i];
	}
	info->packets_dropped += atomic_read(&qs->sk.sk_drops);
	info->bytes_sent = stats.bytes_sent;
	info->bytes_received = stats.bytes_received;
	info->bytes_acked = stats.bytes_acked;
	info->bytes_delivered = stats.bytes_delivered;
	info->key_updates = stats.key_updates;
	info->pto_count = stats.pto_count;
	info->max_datagram = stats.max_datagram;
	info->loss_events = stats.loss_events;
	info->packets_ce = stats.ce_marks;
	info->packets_ce_remote = stats.ce_reported;
	info->ecn = info_ecn(stats.ecn);
}

static void info_path(const struct qrdma_path *path, struct qrdma_info *info)
{
	struct qrdma_lane_stats stats;

	info->remote_qpn = path->qpn;
	info->flow_label = path->flow_label;
	info->peer_changes = path->changes;
	if (!path->peer)
		return;
	qrdma_lane_stats(path->lane, &stats);
	info->lane_resets = stats.resets;
	info->lane = path->lane->index;
	info->local_qpn = path->lane->qpn;
	info->port = path->peer->dev->port;
	strscpy(info->device, path->peer->dev->name, sizeof(info->device));
}

void qrdma_info_fill(const struct qrdma_sock *qs, struct qrdma_info *info)
{
	info->state = qrdma_info_state(qs);
	info->role = qs->setup.role;
	info->cipher = qs->setup.cipher;
	if (qs->conn)
		info_conn(qs, info);
	info_path(&qs->path, info);
}
