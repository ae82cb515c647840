// SPDX-License-Identifier: GPL-2.0
/*
 * What a hostile host can send without keys: nonsense, pieces, foreign ids, packets of others
 * again. Each is dropped and counted where it should be, a connection under it lives on, its path
 * does not move, and no memory is used up.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "ends.h"
#include "fact.h"
#include "flow.h"
#include "inject.h"
#include "probe.h"

enum {
	ROCE_PORT = 4791,
	UD_SEND_ONLY = 0x64,
	HEADERS = 14 + 20 + 8 + 12 + 8,	/* Ethernet, IPv4, UDP, BTH, DETH */
	PORTS = 4,
	CAPTURED = 16,
	COUNT = 50,
};

struct message {
	size_t len;
	uint8_t data[4096];
};

static int fd[2];			/* the connection: client, server */
static struct inject inject;		/* to the server's lanes */
static struct qrdma_info server;	/* before anything hostile */
static struct message captured[CAPTURED];
static int ncaptured;

/*
 * Counters: one for each way that a datagram can be dropped
 */

enum drop { RUNT, HEADER, UNKNOWN, PORT, CONNECTION, FAILED, RECEIVED, DROPS };

/*
 * What becomes of a packet that nobody with the keys has sealed: it does not verify, or else it
 * claims the next keys, which a connection that is hardly used has not derived.
 */
enum { NOT_OURS = 1U << FAILED | 1U << CONNECTION };

static const char * const drop_names[] = { "runts", "no header", "unknown id", "wrong port",
					   "dropped by the connection", "not verified",
					   "received at all" };

struct counts {
	int64_t n[DROPS];
};

static struct counts counts_now(void)
{
	struct qrdma_info info = info_of(fd[1]);
	struct counts c;

	c.n[RUNT] = lanes_number("rxe1:1", "rx_runt");
	c.n[HEADER] = stat_of("rx_drop_header");
	c.n[UNKNOWN] = stat_of("rx_drop_unknown_id");
	c.n[PORT] = stat_of("rx_drop_port");
	c.n[CONNECTION] = info.packets_dropped;
	c.n[FAILED] = info.packets_failed;
	c.n[RECEIVED] = lanes_number("rxe1:1", "rx_packets");
	return c;
}

struct expect {
	struct counts before;
	int64_t total;
	unsigned int kinds;	/* bits: which kinds of drop they may be */
};

static int64_t dropped(const struct expect *expect, unsigned int kinds)
{
	struct counts now = counts_now();
	int64_t sum = 0;
	int i;

	for (i = 0; i < DROPS; i++) {
		if (kinds & 1U << i)
			sum += now.n[i] - expect->before.n[i];
	}
	return sum;
}

static bool is_counted(void *arg)
{
	struct expect *expect = arg;

	return dropped(expect, expect->kinds) >= expect->total;
}

/* Bytes both ways, and the path is where it was */
static bool lives_on(void)
{
	struct qrdma_info info;
	bool good = true;
	int i;

	for (i = 0; i < 2; i++) {
		struct flow flow = { .tx = fd[i], .rx = fd[!i], .size = 20000 };

		flow_run(&flow);
		if (!flow_good(&flow)) {
			NOTE("%s", flow_describe(&flow));
			good = false;
		}
	}
	info = info_of(fd[1]);
	if (info.remote_qpn != server.remote_qpn || info.peer_changes != server.peer_changes) {
		NOTE("the path has moved from queue pair %u to %u", server.remote_qpn,
		     info.remote_qpn);
		good = false;
	}
	return good;
}

static void expect_begin(struct expect *expect, int64_t total, unsigned int kinds)
{
	expect->before = counts_now();
	expect->total = total;
	expect->kinds = kinds;
}

static void expect_end(struct expect *expect, const char *what)
{
	bool counted = wait_for(is_counted, expect);
	int64_t got = dropped(expect, expect->kinds);
	int i;

	FACT(counted && got == expect->total, "%s: %lld of %lld were dropped and counted",
	     what, (long long)got, (long long)expect->total);
	for (i = 0; i < RECEIVED; i++) {
		int64_t n = dropped(expect, 1U << i);

		if (n)
			NOTE("%s: %lld %s", what, (long long)n, drop_names[i]);
	}
	FACT(lives_on(), "%s: the connection lives on", what);
}

static void begin(bool ipv6)
{
	const struct end_options opt = { .ipv6 = ipv6 };
	int err = end_pair(fd, &opt);

	if (err)
		BAIL("connect: %s", strerror(-err));
	server = info_of(fd[1]);
	lives_on();
	server = info_of(fd[1]);
	inject_open(&inject, ipv6 ? "$A6 $B6" : "$A4 $B4");
}

/*
 * Messages
 */

static void ports(struct message *msg)
{
	uint16_t src = htons(end_port(fd[0])), dst = htons(end_port(fd[1]));

	memcpy(msg->data, &src, 2);
	memcpy(msg->data + 2, &dst, 2);
}

static void server_id(uint8_t id[QRDMA_CONNECTION_ID_LEN])
{
	struct qrdma_connection_ids ids;
	socklen_t len = sizeof(ids);

	if (getsockopt(fd[1], SOL_QRDMA, QRDMA_CONNECTION_ID, &ids, &len))
		BAIL("QRDMA_CONNECTION_ID: %s", strerror(errno));
	memcpy(id, ids.source, QRDMA_CONNECTION_ID_LEN);
}

/* Ports, then noise */
static void noise(struct message *msg, size_t len)
{
	if (getrandom(msg->data, len, 0) != (ssize_t)len)
		BAIL("getrandom: %s", strerror(errno));
	if (len >= PORTS)
		ports(msg);
	msg->len = len;
}

/* A packet with a short header to the connection, of noise */
static void short_packet(struct message *msg, size_t len)
{
	noise(msg, len);
	msg->data[PORTS] = 0x40 | (msg->data[PORTS] & 0x3f);
	server_id(msg->data + PORTS + 1);
}

/* One with a long header, @type 0 Initial .. 3 Retry */
static void long_packet(struct message *msg, size_t len, int type, uint32_t version)
{
	uint8_t *at = msg->data + PORTS;

	noise(msg, len);
	*at++ = 0xc0 | type << 4 | 3;
	version = htonl(version);
	memcpy(at, &version, 4);
	at += 4;
	*at++ = QRDMA_CONNECTION_ID_LEN;
	server_id(at);
	at += QRDMA_CONNECTION_ID_LEN;
	*at++ = 8;
	at += 8;
	if (!type)
		*at++ = 0;	/* no token */
	if (type < 3) {
		uint16_t rest = htons(0x4000 | (msg->data + len - at - 2));

		memcpy(at, &rest, 2);
	}
}

static void send_one(const struct message *msg)
{
	uint64_t errors;

	if (inject_send(&inject, msg->data, msg->len, 0, 1, &errors) != 1)
		NOTE("a send of %zu bytes has failed", msg->len);
}

/*
 * What is sent
 */

TEST_TIMEOUT(runts, 600)
{
	struct expect expect;
	struct message msg;
	size_t len;

	begin(false);
	expect_begin(&expect, 4, 1U << RUNT);
	for (len = 0; len < PORTS; len++) {
		noise(&msg, len);
		send_one(&msg);
	}
	expect_end(&expect, "shorter than the ports");
}

TEST_TIMEOUT(rubbish, 600)
{
	struct expect expect;
	struct message msg;
	int i;

	begin(false);
	expect_begin(&expect, COUNT, 1U << HEADER | 1U << UNKNOWN);
	for (i = 0; i < COUNT; i++) {
		noise(&msg, PORTS + i * i % 2000);
		send_one(&msg);
	}
	expect_end(&expect, "rubbish");
}

TEST_TIMEOUT(foreign_ids, 600)
{
	struct expect expect;
	struct message msg;
	int i;

	begin(false);
	expect_begin(&expect, COUNT, 1U << UNKNOWN);
	for (i = 0; i < COUNT; i++) {
		short_packet(&msg, 200);
		msg.data[PORTS + 1 + i % 8] ^= 1 << (i / 8 % 8);
		send_one(&msg);
	}
	expect_end(&expect, "ids that nobody has");
	expect_begin(&expect, COUNT, 1U << PORT);
	for (i = 0; i < COUNT; i++) {
		short_packet(&msg, 200);
		msg.data[2] ^= 1 + i;
		send_one(&msg);
	}
	expect_end(&expect, "the right id, another port");
}

TEST_TIMEOUT(forged, 600)
{
	struct expect expect;
	struct message msg;
	int i;

	begin(false);
	expect_begin(&expect, COUNT, NOT_OURS);
	for (i = 0; i < COUNT; i++) {
		short_packet(&msg, PORTS + 40 + 80 * i);
		send_one(&msg);
	}
	expect_end(&expect, "forged packets");

	expect_begin(&expect, 28, 1U << HEADER | 1U << CONNECTION);
	for (i = 0; i < 28; i++) {
		/* from the id alone up to one byte less than a sample takes */
		short_packet(&msg, PORTS + 1);
		msg.len = PORTS + 1 + QRDMA_CONNECTION_ID_LEN + i % 20;
		send_one(&msg);
	}
	expect_end(&expect, "packets too short to be one");

	expect_begin(&expect, 6, 1U << HEADER | 1U << CONNECTION | 1U << FAILED | 1U << UNKNOWN);
	for (i = 0; i < 4; i++) {
		long_packet(&msg, 1200, i, 1);
		send_one(&msg);
	}
	long_packet(&msg, 1200, 0, 0xdeadbeef);
	send_one(&msg);
	long_packet(&msg, 100, 0, 0);
	send_one(&msg);
	expect_end(&expect, "long headers, other versions");
}

/* Packets of the client on their way to the server, copied from the wire */
static void capture(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = if_nametoindex("vb") };
	int tap = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	struct message want = { 0 };
	uint8_t frame[8192];
	ssize_t n;

	if (tap < 0 || bind(tap, (struct sockaddr *)&at, sizeof(at)))
		BAIL("cannot watch the wire: %s", strerror(errno));
	ports(&want);
	while (ncaptured < CAPTURED) {
		struct message *msg = &captured[ncaptured];
		size_t len;

		lives_on();
		while ((n = recv(tap, frame, sizeof(frame), MSG_DONTWAIT)) > 0) {
			if (n < HEADERS + 4 || frame[12] != 8 || frame[23] != IPPROTO_UDP ||
			    (frame[36] << 8 | frame[37]) != ROCE_PORT ||
			    frame[42] != UD_SEND_ONLY ||
			    memcmp(frame + HEADERS, want.data, PORTS))
				continue;
			len = (frame[38] << 8 | frame[39]) - 8 - 20 - 4 - (frame[43] >> 4 & 3);
			if (len > sizeof(msg->data) || ncaptured == CAPTURED)
				break;
			msg->len = len;
			memcpy(msg->data, frame + HEADERS, len);
			if (++ncaptured < CAPTURED)
				msg++;
		}
	}
	close(tap);
}

TEST_TIMEOUT(replays, 600)
{
	struct expect expect;
	struct message msg;
	int i, k;

	begin(false);
	capture();
	expect_begin(&expect, 3 * CAPTURED, 1U << CONNECTION);
	for (k = 0; k < 3; k++) {
		for (i = 0; i < CAPTURED; i++)
			send_one(&captured[i]);
	}
	expect_end(&expect, "packets of the client again");

	expect_begin(&expect, CAPTURED, 1U << FAILED | 1U << CONNECTION);
	for (i = 0; i < CAPTURED; i++) {
		msg = captured[i];
		msg.len -= 1 + i % 4;
		send_one(&msg);
	}
	expect_end(&expect, "packets of the client, cut off");

	expect_begin(&expect, CAPTURED, NOT_OURS);
	for (i = 0; i < CAPTURED; i++) {
		msg = captured[i];
		msg.data[msg.len - 1] ^= 1;
		send_one(&msg);
	}
	expect_end(&expect, "packets of the client, one bit wrong");
}

TEST_TIMEOUT(wrong_key, 600)
{
	struct expect expect;
	struct message msg;
	int i;

	begin(false);
	expect_begin(&expect, 1, 1U << RECEIVED);
	noise(&msg, 100);
	inject_key(&inject, inject.qkey & ~(1U << 31));
	for (i = 0; i < COUNT; i++)
		send_one(&msg);
	inject_key(&inject, inject.qkey);
	send_one(&msg);
	FACT(wait_for(is_counted, &expect) && dropped(&expect, expect.kinds) == 1,
	     "with a key that is not a privileged one nothing arrives");
	FACT(lives_on(), "the connection lives on");
}

/* As much as one can send, while the connection is busy */
TEST_TIMEOUT(flood, 600)
{
	uint64_t count = env_number("QRDMA_FLOOD", 6000, 600), i;
	static struct slab_shot before, now;
	struct flow flow = { .half_close = true };
	struct message msg;
	char name[48] = "";
	int64_t growth;
	uint64_t errors = 0, failed, step;

	begin(false);
	flow.tx = fd[0];
	flow.rx = fd[1];
	flow_start(&flow);
	flow_await(&flow, 100000);
	slab_take(&before);
	for (i = 0; i < count; i += 200) {
		/* to the connection, to nobody, not even a header */
		if (i % 600 == 0)
			short_packet(&msg, 1000);
		else
			noise(&msg, i % 600 == 200 ? 4096 : 20);
		inject_send(&inject, msg.data, msg.len, 0, 200, &failed);
		errors += failed;
	}
	slab_take(&now);
	growth = slab_growth(&before, &now, name);
	step = flow_progress(&flow);
	flow_await(&flow, step + 100000);
	flow_stop(&flow);
	flow_wait(&flow);
	FACT(!errors && flow_good(&flow) && flow.saw_end, "flood of %llu: the flow goes on: %s",
	     (unsigned long long)count, flow_describe(&flow));
	FACT(growth < (int64_t)count / 3, "flood: no memory is taken: %lld objects of %s at most",
	     (long long)growth, name);
}

/* The other header in front */
TEST_TIMEOUT(over_ipv6, 600)
{
	struct expect expect;
	struct message msg;
	int i;

	begin(true);
	expect_begin(&expect, COUNT, NOT_OURS);
	for (i = 0; i < COUNT; i++) {
		short_packet(&msg, 300);
		send_one(&msg);
	}
	expect_end(&expect, "forged packets");
}
