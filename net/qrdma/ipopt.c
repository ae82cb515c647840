// SPDX-License-Identifier: GPL-2.0
/*
 * Options of TCP and IP. See ipopt.h.
 *
 * Each is one row of a table: its values, its default, and how it is normalised. A socket that
 * never sets one has no memory for them.
 */
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/inet_ecn.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "ipopt.h"
#include "output.h"

/* How a value is taken */
#define IPOPT_FLAG	BIT(0)	/* anything but 0 is 1 */
#define IPOPT_DEFAULT	BIT(1)	/* -1 stands for the default */
#define IPOPT_ECN	BIT(2)	/* two bits of it are not the program's */
#define IPOPT_NEW	BIT(3)	/* not once there is a connection */

struct ipopt_row {
	u16 level;
	u16 name;
	s32 low, high;
	s32 dflt;
	u8 how;
};

#define FLAG(level, name, dflt)	{ level, name, INT_MIN, INT_MAX, dflt, IPOPT_FLAG }

/* The values that TCP takes, and its defaults */
static const struct ipopt_row ipopt_table[] = {
	FLAG(SOL_TCP, TCP_CORK, 0),
	FLAG(SOL_TCP, TCP_NODELAY, 0),
	FLAG(SOL_TCP, TCP_QUICKACK, 1),
	{ SOL_TCP, TCP_KEEPIDLE, 1, MAX_TCP_KEEPIDLE, TCP_KEEPALIVE_TIME / HZ },
	{ SOL_TCP, TCP_KEEPINTVL, 1, MAX_TCP_KEEPINTVL, TCP_KEEPALIVE_INTVL / HZ },
	{ SOL_TCP, TCP_KEEPCNT, 1, MAX_TCP_KEEPCNT, TCP_KEEPALIVE_PROBES },
	{ SOL_TCP, TCP_SYNCNT, 1, MAX_TCP_SYNCNT, TCP_SYN_RETRIES },
	{ SOL_TCP, TCP_LINGER2, INT_MIN, INT_MAX, TCP_FIN_TIMEOUT / HZ },
	{ SOL_TCP, TCP_DEFER_ACCEPT, INT_MIN, INT_MAX, 0 },
	{ SOL_TCP, TCP_WINDOW_CLAMP, INT_MIN, INT_MAX, 0 },
	{ SOL_TCP, TCP_USER_TIMEOUT, 0, INT_MAX, 0 },
	{ SOL_TCP, TCP_NOTSENT_LOWAT, INT_MIN, INT_MAX, 0 },
	{ SOL_TCP, TCP_MAXSEG, INT_MIN, INT_MAX, 0 },
	{ SOL_TCP, TCP_FASTOPEN, 0, INT_MAX, 0, IPOPT_NEW },
	{ SOL_TCP, TCP_THIN_LINEAR_TIMEOUTS, 0, 1, 0 },
	{ SOL_IP, IP_TOS, INT_MIN, INT_MAX, 0, IPOPT_ECN },
	{ SOL_IP, IP_TTL, 1, 255, IPDEFTTL, IPOPT_DEFAULT },
	{ SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT, IP_PMTUDISC_OMIT, IP_PMTUDISC_WANT },
	FLAG(SOL_IP, IP_BIND_ADDRESS_NO_PORT, 0),
	FLAG(SOL_IP, IP_RECVERR, 0),
	FLAG(SOL_IP, IP_RECVTTL, 0),
	FLAG(SOL_IP, IP_RECVTOS, 0),
	FLAG(SOL_IP, IP_PKTINFO, 0),
	{ SOL_IPV6, IPV6_TCLASS, 0, 255, 0, IPOPT_ECN | IPOPT_DEFAULT },
	{ SOL_IPV6, IPV6_UNICAST_HOPS, 0, 255, IPV6_DEFAULT_HOPLIMIT, IPOPT_DEFAULT },
	{ SOL_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT, IPV6_PMTUDISC_OMIT, IPV6_PMTUDISC_WANT },
	FLAG(SOL_IPV6, IPV6_AUTOFLOWLABEL, 1),
	FLAG(SOL_IPV6, IPV6_RECVERR, 0),
	FLAG(SOL_IPV6, IPV6_RECVPKTINFO, 0),
	FLAG(SOL_IPV6, IPV6_RECVHOPLIMIT, 0),
	FLAG(SOL_IPV6, IPV6_RECVTCLASS, 0),
	FLAG(SOL_IPV6, IPV6_FLOWINFO_SEND, 0),
};

#undef FLAG

#define IPOPT_CORK	0	/* its row */

bool qrdma_ipopt_level(int level)
{
	return level == SOL_TCP || level == SOL_IP || level == SOL_IPV6;
}

/* A socket of IPv6 has the options of both: it may talk to either. Return: row, -ENOPROTOOPT. */
static int ipopt_find(const struct qrdma_sock *qs, int level, int name)
{
	int i;

	if (level == SOL_IPV6 && !qs->ipv6)
		return -ENOPROTOOPT;
	for (i = 0; i < (int)ARRAY_SIZE(ipopt_table); i++) {
		if (ipopt_table[i].level == level && ipopt_table[i].name == name)
			return i;
	}
	return -ENOPROTOOPT;
}

static s32 ipopt_value(const struct qrdma_sock *qs, int row)
{
	return qs->kept ? qs->kept[row] : ipopt_table[row].dflt;
}

static s32 *ipopt_memory(void)
{
	s32 *kept = kmalloc_array(ARRAY_SIZE(ipopt_table), sizeof(*kept), GFP_KERNEL_ACCOUNT);
	int i;

	for (i = 0; kept && i < (int)ARRAY_SIZE(ipopt_table); i++)
		kept[i] = ipopt_table[i].dflt;
	return kept;
}

/* TCP has the time of so many retransmissions, each twice as late as the last. */
static s32 ipopt_defer(s32 seconds)
{
	s32 step = 1, sum = 0;
	int i;

	for (i = 0; i < U8_MAX && sum < seconds; i++) {
		sum += step;
		step = min_t(s32, step * 2, TCP_RTO_MAX / HZ);
	}
	return sum;
}

/* What TCP makes of a value that no range describes. Return: 0, -EINVAL. */
static int ipopt_normalise(int name, s32 *val)
{
	switch (name) {
	case TCP_LINGER2:
		if (*val < 0)
			*val = -1;
		else if (!*val)
			*val = TCP_FIN_TIMEOUT / HZ;
		else
			*val = min_t(s32, *val, TCP_FIN_TIMEOUT_MAX / HZ);
		break;
	case TCP_DEFER_ACCEPT:
		*val = ipopt_defer(*val);
		break;
	case TCP_WINDOW_CLAMP:
		if (*val)
			*val = max_t(s32, *val, SOCK_MIN_RCVBUF / 2);
		break;
	case TCP_MAXSEG:
		if (*val && (*val < TCP_MIN_MSS || *val > MAX_TCP_WINDOW))
			return -EINVAL;
		break;
	}
	return 0;
}

static int ipopt_keep(struct qrdma_sock *qs, int row, s32 val)
{
	const struct ipopt_row *r = &ipopt_table[row];
	s32 *kept;

	if ((r->how & IPOPT_DEFAULT) && val == -1)
		val = r->dflt;
	if (val < r->low || val > r->high)
		return -EINVAL;
	if ((r->how & IPOPT_NEW) && !((1 << qs->sk.sk_state) & (TCPF_CLOSE | TCPF_LISTEN)))
		return -EINVAL;
	if (r->how & IPOPT_FLAG)
		val = !!val;
	if (r->how & IPOPT_ECN)
		val &= 0xff & ~INET_ECN_MASK;
	if (r->level == SOL_TCP && ipopt_normalise(r->name, &val))
		return -EINVAL;
	if (!qs->kept) {
		if (val == r->dflt)
			return 0;
		kept = ipopt_memory();
		if (!kept)
			return -ENOMEM;
		/* Pairs with the address dependency in qrdma_ipopt_inherit(). */
		smp_store_release(&qs->kept, kept);
	}
	qs->kept[row] = val;
	if (row == IPOPT_CORK && !val)
		qrdma_output_run(qs, QRDMA_EV_TX);
	return 0;
}

static int ipopt_set_v6only(struct qrdma_sock *qs, s32 val)
{
	if (qs->bound)
		return -EINVAL;
	qs->sk.sk_ipv6only = !!val;
	return 0;
}

static const char *const ipopt_cong[] = {
	[QRDMA_CONG_CUBIC]	= "cubic",
	[QRDMA_CONG_NEWRENO]	= "reno",
};

static int ipopt_set_cong(struct qrdma_sock *qs, sockptr_t optval, unsigned int optlen)
{
	char name[TCP_CA_NAME_MAX] = {};
	u32 i;

	if (optlen < 1)
		return -EINVAL;
	if (copy_from_sockptr(name, optval, min_t(u32, optlen, sizeof(name) - 1)))
		return -EFAULT;
	for (i = 0; i < ARRAY_SIZE(ipopt_cong); i++) {
		if (!strcmp(name, ipopt_cong[i]))
			break;
	}
	if (i == ARRAY_SIZE(ipopt_cong))
		return -ENOENT;
	/* A connection keeps the one that it began with. */
	if ((qs->live || qs->spent) && i != qs->setup.config.congestion)
		return -EISCONN;
	qs->setup.config.congestion = i;
	return 0;
}

/* Of another size than int. Return: 0, an error, or 1: it is not one of these. */
static int ipopt_set_other(struct qrdma_sock *qs, int level, int optname, sockptr_t optval,
			   unsigned int optlen)
{
	int err;

	if (level == SOL_IP && optname == IP_OPTIONS)
		return optlen ? -ENOPROTOOPT : 0;
	if (level != SOL_TCP || optname != TCP_CONGESTION)
		return 1;
	lock_sock(&qs->sk);
	err = ipopt_set_cong(qs, optval, optlen);
	release_sock(&qs->sk);
	return err;
}

int qrdma_ipopt_set(struct qrdma_sock *qs, int level, int optname, sockptr_t optval,
		    unsigned int optlen)
{
	bool v6only = level == SOL_IPV6 && optname == IPV6_V6ONLY;
	int row = ipopt_find(qs, level, optname), err;
	s32 val = 0;
	u8 byte = 0;

	err = ipopt_set_other(qs, level, optname, optval, optlen);
	if (err <= 0)
		return err;
	if (level == SOL_TCP && optlen < sizeof(val))
		return -EINVAL;
	if (row < 0 && !(v6only && qs->ipv6))
		return row;
	if (level == SOL_IP && optlen < sizeof(val)) {
		if (optlen && copy_from_sockptr(&byte, optval, sizeof(byte)))
			return -EFAULT;
		val = byte;
	} else if (optlen < sizeof(val)) {
		return -EINVAL;
	} else if (copy_from_sockptr(&val, optval, sizeof(val))) {
		return -EFAULT;
	}
	lock_sock(&qs->sk);
	err = v6only ? ipopt_set_v6only(qs, val) : ipopt_keep(qs, row, val);
	release_sock(&qs->sk);
	return err;
}

/*
 * Telling
 */

static int ipopt_put(const void *val, int size, char __user *optval, int __user *optlen, int len)
{
	len = min(len, size);
	if (put_user(len, optlen) || copy_to_user(optval, val, len))
		return -EFAULT;
	return 0;
}

/* A value of a byte fits into a buffer of one: IP programs of old expect it. */
static int ipopt_put_ip(s32 val, char __user *optval, int __user *optlen, int len)
{
	u8 byte = val;

	if (len > 0 && len < (int)sizeof(val) && val >= 0 && val <= U8_MAX)
		return ipopt_put(&byte, sizeof(byte), optval, optlen, len);
	return ipopt_put(&val, sizeof(val), optval, optlen, len);
}

/* Bytes of stream in a packet, at most: what a segment is to TCP */
static s32 ipopt_maxseg(const struct qrdma_sock *qs)
{
	struct qrdma_conn_stats stats;
	int row = ipopt_find(qs, SOL_TCP, TCP_MAXSEG);

	if (!qs->conn)
		return ipopt_value(qs, row) ?: TCP_MSS_DEFAULT;
	qrdma_conn_stats(qs->conn, &stats);
	return stats.max_datagram;
}

static void ipopt_info_conn(struct qrdma_sock *qs, struct tcp_info *info)
{
	struct qrdma_conn_stats stats;

	qrdma_conn_stats(qs->conn, &stats);
	info->tcpi_snd_mss = stats.max_datagram;
	info->tcpi_rcv_mss = stats.max_datagram;
	info->tcpi_pmtu = stats.max_datagram;
	info->tcpi_rtt = div_u64(stats.srtt, NSEC_PER_USEC);
	info->tcpi_rttvar = div_u64(stats.rttvar, NSEC_PER_USEC);
	info->tcpi_min_rtt = div_u64(stats.min_rtt, NSEC_PER_USEC);
	if (stats.max_datagram) {
		info->tcpi_snd_cwnd = div_u64(stats.cwnd, stats.max_datagram);
		info->tcpi_snd_ssthresh = min_t(u64, div_u64(stats.ssthresh, stats.max_datagram),
						TCP_INFINITE_SSTHRESH);
		info->tcpi_unacked = div_u64(stats.in_flight + stats.max_datagram - 1,
					     stats.max_datagram);
	}
	info->tcpi_total_retrans = min_t(u64, stats.lost, U32_MAX);
	info->tcpi_bytes_acked = stats.bytes_acked;
	info->tcpi_bytes_received = stats.bytes_delivered;
	info->tcpi_bytes_sent = stats.bytes_sent;
	info->tcpi_bytes_retrans = stats.retransmitted_bytes;
	info->tcpi_segs_out = min_t(u64, stats.sent, U32_MAX);
	info->tcpi_segs_in = min_t(u64, stats.received, U32_MAX);
	info->tcpi_notsent_bytes = min_t(u64, qrdma_conn_unsent(qs->conn, 0), U32_MAX);
}

/* What of it there is; the rest is 0. */
static int ipopt_get_info(struct qrdma_sock *qs, char __user *optval, int __user *optlen, int len)
{
	struct tcp_info info;

	memset(&info, 0, sizeof(info));
	lock_sock(&qs->sk);
	info.tcpi_state = qs->sk.sk_state;
	if (qs->conn)
		ipopt_info_conn(qs, &info);
	release_sock(&qs->sk);
	return ipopt_put(&info, sizeof(info), optval, optlen, len);
}

static int ipopt_get_cong(struct qrdma_sock *qs, char __user *optval, int __user *optlen, int len)
{
	char name[TCP_CA_NAME_MAX] = {};

	strscpy(name, ipopt_cong[READ_ONCE(qs->setup.config.congestion)], sizeof(name));
	return ipopt_put(name, sizeof(name), optval, optlen, len);
}

/* What a datagram may hold, as long as there is a path */
static int ipopt_get_mtu(struct qrdma_sock *qs, char __user *optval, int __user *optlen, int len)
{
	s32 mtu;

	lock_sock(&qs->sk);
	mtu = qs->path.peer && qs->conn ? ipopt_maxseg(qs) : -ENOTCONN;
	release_sock(&qs->sk);
	if (mtu < 0)
		return mtu;
	return ipopt_put(&mtu, sizeof(mtu), optval, optlen, len);
}

/* Those that are not kept, but known. Return: 0, an error, or 1: it is not one of these. */
static int ipopt_get_other(struct qrdma_sock *qs, int level, int optname, char __user *optval,
			   int __user *optlen, int len)
{
	s32 val;

	if (level == SOL_TCP && optname == TCP_INFO)
		return ipopt_get_info(qs, optval, optlen, len);
	if (level == SOL_TCP && optname == TCP_CONGESTION)
		return ipopt_get_cong(qs, optval, optlen, len);
	if ((level == SOL_IP && optname == IP_MTU) ||
	    (level == SOL_IPV6 && optname == IPV6_MTU && qs->ipv6))
		return ipopt_get_mtu(qs, optval, optlen, len);
	if (level == SOL_IP && optname == IP_OPTIONS)
		return put_user(0, optlen) ? -EFAULT : 0;
	if (level != SOL_IPV6 || optname != IPV6_V6ONLY || !qs->ipv6)
		return 1;
	val = qs->sk.sk_ipv6only;
	return ipopt_put(&val, sizeof(val), optval, optlen, len);
}

int qrdma_ipopt_get(struct qrdma_sock *qs, int level, int optname, char __user *optval,
		    int __user *optlen, int len)
{
	int row = ipopt_find(qs, level, optname);
	int ret = ipopt_get_other(qs, level, optname, optval, optlen, len);
	s32 val;

	if (ret <= 0)
		return ret;
	/* What TCP of IPv4 says of a level that it does not have */
	if (row < 0)
		return level == SOL_IPV6 && !qs->ipv6 ? -EOPNOTSUPP : row;
	lock_sock(&qs->sk);
	val = level == SOL_TCP && optname == TCP_MAXSEG ? ipopt_maxseg(qs) : ipopt_value(qs, row);
	release_sock(&qs->sk);
	if (level == SOL_IP)
		return ipopt_put_ip(val, optval, optlen, len);
	return ipopt_put(&val, sizeof(val), optval, optlen, len);
}

int qrdma_ipopt_inherit(struct qrdma_sock *child, const struct qrdma_sock *parent)
{
	/* The listener may be setting its first one: what is there is there for good. */
	const s32 *kept = READ_ONCE(parent->kept);

	if (!kept)
		return 0;
	child->kept = kmemdup(kept, sizeof(*kept) * ARRAY_SIZE(ipopt_table), GFP_KERNEL_ACCOUNT);
	return child->kept ? 0 : -ENOMEM;
}

bool qrdma_ipopt_corked(const struct qrdma_sock *qs)
{
	return ipopt_value(qs, IPOPT_CORK);
}
