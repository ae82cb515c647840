// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/* Scenes: options. F40: what programs set can be set, and read back. */
#include <linux/tcp.h>
#include <netinet/in.h>

#include "contract.h"

#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND	33
#endif

struct row {
	const char *name;
	int level;
	int option;
	int value[4];	/* set one after the other */
};

/* Label for a number that is set: "name=5", "name=5-get" */
static void try_value(int fd, const struct row *r, int value)
{
	char label[64];
	int got = -2;
	socklen_t len = sizeof(got);

	snprintf(label, sizeof(label), "%s=%d", r->name, value);
	say(label, setsockopt(fd, r->level, r->option, &value, sizeof(value)));
	strcat(label, "-get");
	say(label, getsockopt(fd, r->level, r->option, &got, &len) ? -1 : got);
}

static void try_row(int fd, const struct row *r)
{
	char label[64];
	int got = -2;
	socklen_t len = sizeof(got);

	snprintf(label, sizeof(label), "%s-default", r->name);
	say(label, getsockopt(fd, r->level, r->option, &got, &len) ? -1 : got);
	for (int i = 0; i < 4 && (!i || r->value[i]); i++)
		try_value(fd, r, r->value[i]);
	snprintf(label, sizeof(label), "%s-short", r->name);
	say(label, setsockopt(fd, r->level, r->option, &got, 2));
}

static const struct row generic[] = {
	{ "reuseaddr", SOL_SOCKET, SO_REUSEADDR, { 1, 5 } },
	{ "reuseport", SOL_SOCKET, SO_REUSEPORT, { 1 } },
	{ "keepalive", SOL_SOCKET, SO_KEEPALIVE, { 1, 9 } },
	{ "broadcast", SOL_SOCKET, SO_BROADCAST, { 1 } },
	{ "dontroute", SOL_SOCKET, SO_DONTROUTE, { 1 } },
	{ "oobinline", SOL_SOCKET, SO_OOBINLINE, { 1 } },
	{ "rcvlowat", SOL_SOCKET, SO_RCVLOWAT, { 5, -1 } },
	{ "sndlowat", SOL_SOCKET, SO_SNDLOWAT, { 5 } },
	{ "priority", SOL_SOCKET, SO_PRIORITY, { 3, 7 } },
	{ "mark", SOL_SOCKET, SO_MARK, { 9 } },
	{ "timestamp", SOL_SOCKET, SO_TIMESTAMP, { 1 } },
	{ "timestampns", SOL_SOCKET, SO_TIMESTAMPNS, { 1 } },
	{ "passcred", SOL_SOCKET, SO_PASSCRED, { 1 } },
	{ "peek-off", SOL_SOCKET, SO_PEEK_OFF, { 1 } },
	{ "busy-poll", SOL_SOCKET, SO_BUSY_POLL, { 50 } },
	{ "max-pacing-rate", SOL_SOCKET, SO_MAX_PACING_RATE, { 100000 } },
	{ "zerocopy", SOL_SOCKET, SO_ZEROCOPY, { 1 } },
	{ "incoming-cpu", SOL_SOCKET, SO_INCOMING_CPU, { 1 } },
	{ "rxq-ovfl", SOL_SOCKET, SO_RXQ_OVFL, { 1 } },
	{ "no-check", SOL_SOCKET, SO_NO_CHECK, { 1 } },
	{ "unknown-socket", SOL_SOCKET, 999, { 1 } },
	{ "type", SOL_SOCKET, SO_TYPE, { 1 } },
	{ "unknown-level", 77, 1, { 1 } },
};

static void try_rows(const struct row *rows, size_t n)
{
	int fd = open_socket(0);

	for (size_t i = 0; i < n; i++)
		try_row(fd, &rows[i]);
}

#define ROWS(table)	try_rows(table, sizeof(table) / sizeof((table)[0]))

SCENE(options_socket)
{
	ROWS(generic);
}

static const struct row tcp[] = {
	{ "nodelay", IPPROTO_TCP, TCP_NODELAY, { 1, 0, 0 } },
	{ "cork", IPPROTO_TCP, TCP_CORK, { 1 } },
	{ "keepidle", IPPROTO_TCP, TCP_KEEPIDLE, { 300, 32767, 32768, -1 } },
	{ "keepintvl", IPPROTO_TCP, TCP_KEEPINTVL, { 30, 32767, 32768, -1 } },
	{ "keepcnt", IPPROTO_TCP, TCP_KEEPCNT, { 3, 127, 128, -1 } },
	{ "syncnt", IPPROTO_TCP, TCP_SYNCNT, { 3, 127, 128, -1 } },
	{ "linger2", IPPROTO_TCP, TCP_LINGER2, { 5, 1000, -7 } },
	{ "defer-accept", IPPROTO_TCP, TCP_DEFER_ACCEPT, { 1, 5, 30, -4 } },
	{ "window-clamp", IPPROTO_TCP, TCP_WINDOW_CLAMP, { 100000, 1 } },
	{ "quickack", IPPROTO_TCP, TCP_QUICKACK, { 0, 0 } },
	{ "quickack-on", IPPROTO_TCP, TCP_QUICKACK, { 1 } },
	{ "user-timeout", IPPROTO_TCP, TCP_USER_TIMEOUT, { 4000, -1 } },
	{ "notsent-lowat", IPPROTO_TCP, TCP_NOTSENT_LOWAT, { 16384 } },
	{ "maxseg", IPPROTO_TCP, TCP_MAXSEG, { 1000, 20, 40000 } },
	{ "fastopen", IPPROTO_TCP, TCP_FASTOPEN, { 5, -1 } },
	{ "thin-linear", IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, { 1, 2 } },
	{ "unknown-tcp", IPPROTO_TCP, 999, { 1 } },
};

SCENE(options_tcp)
{
	ROWS(tcp);
}

/* Nobody is there to give these a meaning, and who sets them would miss it. */
SCENE(options_tcp_meaning)
{
	int fd = open_socket(0), one = 1;
	char name[32] = {};
	socklen_t len = sizeof(name);

	say("inq", setsockopt(fd, IPPROTO_TCP, TCP_INQ, &one, sizeof(one)));
	say("fastopen-connect", setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof(one)));
	say("save-syn", setsockopt(fd, IPPROTO_TCP, TCP_SAVE_SYN, &one, sizeof(one)));
	say("tx-delay", setsockopt(fd, IPPROTO_TCP, TCP_TX_DELAY, &one, sizeof(one)));
	say("ulp", setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", 3));
	say("congestion", getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len));
	say("congestion-len", len);
	say_text("congestion-name", "%s", name);
	say("congestion-reno", setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	len = sizeof(name);
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len);
	say_text("congestion-now", "%s", name);
	say("congestion-cubic", setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5));
	say("congestion-none", setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "nosuch", 6));
	say("congestion-empty", setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "", 0));
	say("nodelay-fault", setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, (void *)1, sizeof(one)));
	len = sizeof(one);
	say("nodelay-get-fault", getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, (void *)7, &len));
	len = 2;
	say("nodelay-get-short", getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, name, &len));
	say("nodelay-get-short-len", len);
	len = -1;
	say("nodelay-get-negative", getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, name, &len));
}

static const struct row ip[] = {
	{ "tos", IPPROTO_IP, IP_TOS, { 0x10, 0x13, 0x2e0, -1 } },
	{ "ttl", IPPROTO_IP, IP_TTL, { 5, 256, -1, 255 } },
	{ "mtu-discover", IPPROTO_IP, IP_MTU_DISCOVER, { 2, 5, 6, -1 } },
	{ "bind-no-port", IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, { 1 } },
	{ "recverr", IPPROTO_IP, IP_RECVERR, { 1 } },
	{ "recvttl", IPPROTO_IP, IP_RECVTTL, { 1 } },
	{ "recvtos", IPPROTO_IP, IP_RECVTOS, { 1 } },
	{ "pktinfo", IPPROTO_IP, IP_PKTINFO, { 1 } },
	{ "freebind", IPPROTO_IP, IP_FREEBIND, { 1 } },
	{ "transparent", IPPROTO_IP, IP_TRANSPARENT, { 1 } },
	{ "minttl", IPPROTO_IP, IP_MINTTL, { 254 } },
	{ "unknown-ip", IPPROTO_IP, 999, { 1 } },
};

SCENE(options_ip)
{
	int fd = open_socket(0);
	unsigned char byte = 8;
	socklen_t len = 1;
	char buf[64];

	ROWS(ip);
	say("tos-byte", setsockopt(fd, IPPROTO_IP, IP_TOS, &byte, 1));
	say("tos-byte-get", getsockopt(fd, IPPROTO_IP, IP_TOS, &byte, &len) ? -1 : byte);
	say("tos-byte-len", len);
	say("tos-empty", setsockopt(fd, IPPROTO_IP, IP_TOS, &byte, 0));
	len = sizeof(buf);
	say("options", getsockopt(fd, IPPROTO_IP, IP_OPTIONS, buf, &len));
	say("options-len", len);
	len = sizeof(buf);
	say("mtu-unconnected", getsockopt(fd, IPPROTO_IP, IP_MTU, buf, &len));
}

static const struct row ipv6[] = {
	{ "tclass", IPPROTO_IPV6, IPV6_TCLASS, { 0x20, 0x23, 256, -1 } },
	{ "unicast-hops", IPPROTO_IPV6, IPV6_UNICAST_HOPS, { 9, 256, -1, 255 } },
	{ "mtu-discover6", IPPROTO_IPV6, IPV6_MTU_DISCOVER, { 2, 5, 6, -1 } },
	{ "autoflowlabel", IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, { 0 } },
	{ "recverr6", IPPROTO_IPV6, IPV6_RECVERR, { 1 } },
	{ "recvpktinfo", IPPROTO_IPV6, IPV6_RECVPKTINFO, { 1 } },
	{ "recvhoplimit", IPPROTO_IPV6, IPV6_RECVHOPLIMIT, { 1 } },
	{ "recvtclass", IPPROTO_IPV6, IPV6_RECVTCLASS, { 1 } },
	{ "flowinfo-send", IPPROTO_IPV6, IPV6_FLOWINFO_SEND, { 1 } },
	{ "v6only", IPPROTO_IPV6, IPV6_V6ONLY, { 1, 0 } },
	{ "unknown-ipv6", IPPROTO_IPV6, 999, { 1 } },
};

SCENE(options_ipv6)
{
	ROWS(ipv6);
}

SCENE(buffer_sizes)
{
	static const int sizes[] = { 0, 1, 5000, 100000, 1 << 30, -1 };
	char label[32];
	int fd, val;
	socklen_t len = sizeof(val);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fd = open_socket(0);
		snprintf(label, sizeof(label), "sndbuf=%d", sizes[i]);
		say(label, setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sizes[i], sizeof(int)));
		getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &val, &len);
		strcat(label, "-get");
		say(label, val);
		snprintf(label, sizeof(label), "rcvbuf=%d", sizes[i]);
		say(label, setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &sizes[i], sizeof(int)));
		getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &val, &len);
		strcat(label, "-get");
		say(label, val);
		close(fd);
	}
}

/* What a running connection tells, and what it still takes */
SCENE(options_connected)
{
	struct ends e = join();
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int val, one = 1;

	memset(&info, 0, sizeof(info));
	say("info", getsockopt(e.client, IPPROTO_TCP, TCP_INFO, &info, &len));
	say("info-state", info.tcpi_state);
	say("info-rtt", info.tcpi_rtt > 0);
	say("info-mss", info.tcpi_snd_mss > 0);
	say("info-cwnd", info.tcpi_snd_cwnd > 0);
	len = 8;
	say("info-short", getsockopt(e.client, IPPROTO_TCP, TCP_INFO, &info, &len));
	say("info-short-len", len);
	len = sizeof(val);
	say("maxseg", getsockopt(e.client, IPPROTO_TCP, TCP_MAXSEG, &val, &len));
	say("maxseg-some", val > 500);
	say("mtu", getsockopt(e.client, stage_six ? IPPROTO_IPV6 : IPPROTO_IP, stage_six ? IPV6_MTU : IP_MTU,
			      &val, &len));
	say("nodelay", setsockopt(e.client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	say("keepalive", setsockopt(e.client, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)));
	say("keepidle", setsockopt(e.client, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one)));
	say("fastopen", setsockopt(e.client, IPPROTO_TCP, TCP_FASTOPEN, &one, sizeof(one)));
	say("congestion-same", setsockopt(e.client, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5));
	say("congestion-other", setsockopt(e.client, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	say("v6only", setsockopt(e.client, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)));
}

/* A listener's are those of who is accepted. */
SCENE(options_inherited)
{
	int listener = open_socket(0), fd = open_socket(0), server, val = 1;
	socklen_t len = sizeof(val);

	setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &val, sizeof(val));
	val = 55;
	setsockopt(listener, IPPROTO_TCP, TCP_KEEPIDLE, &val, sizeof(val));
	setsockopt(listener, IPPROTO_TCP, TCP_USER_TIMEOUT, &val, sizeof(val));
	bind_to(listener, 'b', 0);
	listen(listener, 1);
	bind_to(fd, 'a', 0);
	if (connect_to(fd, 'b', port_of(listener)))
		give_up("connect");
	server = accept(listener, NULL, NULL);
	say("nodelay", getsockopt(server, IPPROTO_TCP, TCP_NODELAY, &val, &len) ? -1 : val);
	say("keepidle", getsockopt(server, IPPROTO_TCP, TCP_KEEPIDLE, &val, &len) ? -1 : val);
	say("user-timeout", getsockopt(server, IPPROTO_TCP, TCP_USER_TIMEOUT, &val, &len) ? -1 : val);
}
