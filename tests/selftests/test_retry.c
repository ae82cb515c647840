// SPDX-License-Identifier: GPL-2.0
/*
 * Address validation (RFC 9000 section 8.1): who comes to a listener that has much to do shows first
 * that he can be reached. A Retry costs the server nothing that lasts (F67), a token of an earlier
 * connection saves the round trip, and one that is not good is as good as none (F69).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "fact.h"
#include "flow.h"
#include "inject.h"
#include "probe.h"
#include "tls.h"

enum {
	PORTS = 4,
	DCID = PORTS + 6,	/* type, version, length */
	LENGTH = PORTS + 1200,
	JUNK = 84,		/* as long as a token of ours */
};

static void parameter(const char *name, int value)
{
	if (shell("echo %d >/sys/module/qrdma/parameters/%s", value, name))
		BAIL("no parameter %s", name);
}

/* What a pair of ours has counted, since begin() */
static uint64_t before[4];
static const char * const counted[4] = { "retries_sent", "retries_received", "tokens_taken",
					 "tokens_spent" };

static void begin(void)
{
	for (int i = 0; i < 4; i++)
		before[i] = stat_of(counted[i]);
}

static void end(const char *what, uint64_t retries, uint64_t taken, uint64_t spent)
{
	uint64_t now[4];

	for (int i = 0; i < 4; i++)
		now[i] = stat_of(counted[i]) - before[i];
	/* A packet that is repeated before its answer is there has an answer of its own. */
	FACT(now[0] >= retries && !now[0] == !retries && now[1] == retries && now[2] >= taken &&
	     !now[2] == !taken && now[3] == spent,
	     "%s: %llu Retry sent, %llu followed, %llu tokens taken, %llu spent", what,
	     (unsigned long long)now[0], (unsigned long long)now[1], (unsigned long long)now[2],
	     (unsigned long long)now[3]);
}

/* Bytes go through a new connection, and its client has got a token for the next one. */
static void connect_once(int listener, bool ipv6)
{
	struct end_options opt = { .seed = end_fresh_seed(), .ipv6 = ipv6 };
	struct stat_is kept = { .name = "tokens_kept", .want = stat_of("tokens_kept") + 1 };
	struct flow flow = { .size = 20000 };
	int fd[2];

	ASSERT_EQ(tls_pair(fd, listener, &opt), 0);
	flow.tx = fd[1];
	flow.rx = fd[0];
	EXPECT_EQ(flow_run(&flow), 0);
	FACT(wait_for(stat_is, &kept), "the client has a token");
	close(fd[0]);
	close(fd[1]);
}

TEST(tokens)
{
	struct end_options opt = {};
	int listener = CHECK(tls_listener('b', &opt, 8)), other;

	begin();
	connect_once(listener, false);
	end("a listener with nothing to do", 0, 0, 0);

	parameter("retry_percent", 0);
	begin();
	connect_once(listener, false);
	end("a token of an earlier connection", 0, 1, 1);

	other = CHECK(tls_listener('b', &opt, 8));
	begin();
	connect_once(other, false);
	end("a client without a token", 1, 1, 0);
	close(other);

	parameter("retry_percent", 50);
	parameter("young_max", 0);
	other = CHECK(tls_listener('b', &opt, 8));
	begin();
	connect_once(other, false);
	end("a namespace with much to do", 1, 1, 0);
	close(other);

	opt.ipv6 = true;
	other = CHECK(tls_listener('b', &opt, 8));
	begin();
	connect_once(other, true);
	end("a client of IPv6", 1, 1, 0);
	begin();
	connect_once(other, true);
	end("and its token", 0, 1, 1);
	close(other);
	parameter("young_max", 1024);
	close(listener);
}

TEST(loss)
{
	struct end_options opt = {};

	parameter("retry_percent", 0);
	ASSERT_EQ(shell("link_loss delay 1ms loss 10%%"), 0);
	for (int i = 0; i < 8; i++) {
		int listener = CHECK(tls_listener('b', &opt, 8)), fd[2];

		opt.seed = end_fresh_seed();
		EXPECT_EQ(tls_pair(fd, listener, &opt), 0);
		close(fd[0]);
		close(fd[1]);
		close(listener);
	}
	ASSERT_EQ(shell("link_clear"), 0);
	parameter("retry_percent", 50);
}

/* A client's first packet, but for what is sealed in it. Return: bytes; the rest is filled up. */
static size_t first_packet(uint8_t *msg, int from, int to, const uint8_t *token, size_t len)
{
	uint16_t port = htons(from);
	uint8_t *at = msg + PORTS;

	memcpy(msg, &port, 2);
	port = htons(to);
	memcpy(msg + 2, &port, 2);
	*at++ = 0xc3;
	memcpy(at, "\0\0\0\1\x08", 5);
	at += 5;
	if (getrandom(at, 8, 0) != 8)
		BAIL("getrandom");
	at += 8;
	*at++ = 8;
	memcpy(at, "hisownid", 8);
	at += 8;
	*at++ = 0x40 | len >> 8;
	*at++ = len;
	if (len)
		memcpy(at, token, len);
	at += len;
	len = LENGTH - (at + 2 - msg);
	*at++ = 0x40 | len >> 8;
	*at++ = len;
	return at - msg;
}

/* F69: tokens that nobody here has made */
TEST(foreign)
{
	struct stat_is ignored = { .name = "tokens_ignored", .want = stat_of("tokens_ignored") + 2 };
	struct stat_is sent = { .name = "retries_sent", .want = stat_of("retries_sent") + 2 };
	uint64_t taken = stat_of("tokens_taken");
	struct end_options opt = {};
	int listener = CHECK(tls_listener('b', &opt, 8));
	uint8_t msg[LENGTH], token[JUNK];
	struct inject inject;
	size_t len;

	inject_open(&inject, "$A4 $B4");
	if (getrandom(token, sizeof(token), 0) != sizeof(token))
		BAIL("getrandom");
	/* the first packet from an unknown host has to wait for the way back */
	connect_once(listener, false);
	for (int i = 0; i < 2; i++) {
		len = first_packet(msg, 77, end_port(listener), token, sizeof(token) - i);
		inject_send(&inject, msg, len, LENGTH, 1, NULL);
	}
	FACT(wait_for(stat_is, &ignored), "a token of somebody else is ignored");
	FACT(stat_of("retries_sent") + 2 == sent.want, "and its bearer taken as any other");
	parameter("retry_percent", 0);
	for (int i = 0; i < 2; i++) {
		len = first_packet(msg, 77, end_port(listener), token, i ? sizeof(token) : 1);
		inject_send(&inject, msg, len, LENGTH, 1, NULL);
	}
	FACT(wait_for(stat_is, &sent), "or he gets a Retry");
	FACT(stat_of("tokens_taken") == taken, "none was taken");
	parameter("retry_percent", 50);
	inject_close(&inject);
	close(listener);
}

/*
 * One round trip to a known host, by what goes over the wire: from the server's first byte on
 * nothing of the client's gets through, and it is connected nevertheless.
 */
struct side {
	pthread_t thread;
	int fd;
	const struct end_options *opt;
};

static void *client(void *arg)
{
	struct side *side = arg;

	return (void *)(intptr_t)tls_client(side->fd, side->opt);
}

static void *server(void *arg)
{
	struct side *side = arg;

	return (void *)(intptr_t)tls_server(side->fd, side->opt, 0);
}

static int64_t requests(void)
{
	return port_number("peers", "served");
}

TEST(one_round_trip)
{
	struct end_options opt = { .seed = end_fresh_seed() };
	int listener = CHECK(tls_listener('b', &opt, 8));
	struct side sides[2] = { { .opt = &opt }, { .opt = &opt } };
	uint64_t received;
	int64_t asked;
	void *result;
	char byte;

	connect_once(listener, false);		/* from here on they know each other */
	begin();
	asked = requests();
	sides[0].fd = CHECK(tls_socket('a', &opt));
	ASSERT_EQ(end_connect(sides[0].fd, 'b', false, end_port(listener)), 0);
	/* Later ones ask whether the way is still the same, as packets go unanswered. */
	asked = requests() - asked;
	pthread_create(&sides[0].thread, NULL, client, &sides[0]);
	sides[1].fd = CHECK(accept(listener, NULL, NULL));
	/* The client's first flight is there. */
	ASSERT_EQ(shell("link_devs() { echo va; }; link_loss loss 100%%"), 0);
	received = info_of(sides[1].fd).packets_received;
	pthread_create(&sides[1].thread, NULL, server, &sides[1]);
	pthread_join(sides[0].thread, &result);
	EXPECT_EQ((intptr_t)result, 0);
	EXPECT_EQ(info_of(sides[0].fd).state, QRDMA_STATE_ESTABLISHED);
	EXPECT_EQ(send(sides[0].fd, "x", 1, MSG_NOSIGNAL), 1);
	FACT(info_of(sides[1].fd).packets_received == received,
	     "the client is connected, and nothing of it has come since the server spoke");
	ASSERT_EQ(shell("link_clear"), 0);
	pthread_join(sides[1].thread, &result);
	EXPECT_EQ((intptr_t)result, 0);
	EXPECT_EQ(recv(sides[1].fd, &byte, 1, 0), 1);
	FACT(!asked, "nobody was asked for the way: %lld requests", (long long)asked);
	end("a known host", 0, 1, 1);
	close(sides[0].fd);
	close(sides[1].fd);
	close(listener);
}

/*
 * F67: a flood of forged first packets, from as many clients
 */

static struct {
	pthread_t thread;
	struct inject inject;
	int to;
	bool stop;
	uint64_t sent;
} attack;

static void *flood(void *arg)
{
	uint8_t msg[LENGTH];
	size_t len = first_packet(msg, 77, attack.to, NULL, 0);

	inject_open(&attack.inject, "$A4 $B4");
	inject_vary(&attack.inject, DCID, 8);
	while (!__atomic_load_n(&attack.stop, __ATOMIC_RELAXED)) {
		inject_send(&attack.inject, msg, len, LENGTH, 200, NULL);
		__atomic_add_fetch(&attack.sent, 200, __ATOMIC_RELAXED);
	}
	inject_close(&attack.inject);
	return NULL;
}

static bool is_under_way(void *arg)
{
	return __atomic_load_n(&attack.sent, __ATOMIC_RELAXED) >= *(uint64_t *)arg;
}

TEST_TIMEOUT(flooded, 400)
{
	enum { BACKLOG = 16, HONEST = 20 };
	struct end_options opt = { .seed = end_fresh_seed() };
	int listener = CHECK(tls_listener('b', &opt, 8)), target, old[2], fd[2], good = 0;
	struct stat_is sent = { .name = "retries_sent", .want = stat_of("retries_sent") + 100 };
	uint64_t conns, now, most = 0;
	struct flow flow = { .half_close = true };
	uint64_t begun = 400;
	struct slab_shot shot, after;
	char cache[48];
	int64_t growth;

	ASSERT_EQ(tls_pair(old, listener, &opt), 0);
	flow.tx = old[0];
	flow.rx = old[1];
	flow_start(&flow);
	target = CHECK(tls_listener('b', &opt, BACKLOG));
	attack.to = end_port(target);
	conns = stat_of("connections");
	pthread_create(&attack.thread, NULL, flood, NULL);
	FACT(wait_for(is_under_way, &begun), "the flood is on");
	FACT(wait_for(stat_is, &sent), "its packets are answered by Retry");
	slab_take(&shot);
	for (int i = 0; i < (tap_short() ? HONEST / 4 : HONEST); i++) {
		opt.seed = end_fresh_seed();
		if (EXPECT_EQ(tls_pair(fd, target, &opt), 0)) {
			good++;
			close(fd[0]);
			close(fd[1]);
		}
		now = stat_of("connections");
		most = now > most ? now : most;
	}
	flow_await(&flow, flow_progress(&flow) + (1 << 20));
	slab_take(&after);
	__atomic_store_n(&attack.stop, true, __ATOMIC_RELAXED);
	pthread_join(attack.thread, NULL);
	growth = slab_growth(&shot, &after, cache);
	NOTE("%llu forged, %llu answered, most grown: %s by %lld", (unsigned long long)attack.sent,
	     (unsigned long long)(stat_of("retries_sent") + 100 - sent.want), cache,
	     (long long)growth);
	FACT(good == (tap_short() ? HONEST / 4 : HONEST), "%d honest clients connected", good);
	/* the forged half of the backlog, and honest ones that are on their way out */
	FACT(most <= conns + BACKLOG + 2 * HONEST, "%llu connections at most, %llu before",
	     (unsigned long long)most, (unsigned long long)conns);
	/* The sanitizer's quarantine keeps what was freed. */
	FACT(tap_short() || growth < 2000, "memory is flat");
	flow_stop(&flow);
	flow_wait(&flow);
	FACT(flow_good(&flow) && flow.saw_end, "the transfer has gone on: %s",
	     flow_describe(&flow));
	close(target);
	close(listener);
	close(old[0]);
	close(old[1]);
}
