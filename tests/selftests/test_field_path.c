// SPDX-License-Identifier: GPL-2.0
/*
 * The network changes under a flow: neighbour entries go, the peer's address of hardware changes
 * (F24), the MTU changes (F28). The flow goes on, and no packet leaves without a destination.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "ends.h"
#include "fact.h"
#include "flow.h"
#include "probe.h"

#define MAC_NEW		"52:54:00:09:01:12"
#define MAC_OLD		"52:54:00:09:01:02"
#define ROCE_PORT	4791

/* Watches an interface for RoCE packets to no destination. */
struct watch {
	int fd;
	pthread_t thread;
	atomic_ullong roce;
	atomic_ullong nowhere;
};

static bool is_roce(const uint8_t *frame, ssize_t len)
{
	/* IPv4 without options, as rxe sends */
	return len >= 42 && frame[12] == 8 && !frame[13] && frame[14] == 0x45 &&
	       frame[23] == IPPROTO_UDP && (frame[36] << 8 | frame[37]) == ROCE_PORT;
}

static void *watch_run(void *arg)
{
	static const uint8_t zero[ETH_ALEN];
	struct watch *watch = arg;
	uint8_t frame[64];
	ssize_t n;

	while ((n = recv(watch->fd, frame, sizeof(frame), 0)) >= 0) {
		if (!is_roce(frame, n))
			continue;
		watch->roce++;
		watch->nowhere += !memcmp(frame, zero, sizeof(zero));
	}
	return NULL;
}

static void watch_start(struct watch *watch, const char *dev)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(dev),
	};

	watch->fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	if (watch->fd < 0 || bind(watch->fd, (struct sockaddr *)&at, sizeof(at)) ||
	    pthread_create(&watch->thread, NULL, watch_run, watch))
		BAIL("cannot watch %s: %s", dev, strerror(errno));
}

static void watch_stop(struct watch *watch)
{
	pthread_cancel(watch->thread);
	pthread_join(watch->thread, NULL);
	close(watch->fd);
}

static uint64_t step;

/* Does it still move? */
static void goes_on(struct flow *flow, const char *what)
{
	uint64_t want = flow_progress(flow) + step;
	uint64_t got = flow_await(flow, want);

	FACT(got >= want, "%s: the flow goes on, %llu bytes by now", what,
	     (unsigned long long)got);
}

static void changes(struct flow *flow, const char *what, const char *command)
{
	int rc = shell("%s", command);

	if (rc)
		NOTE("%s: exit code %d", command, rc);
	goes_on(flow, what);
}

static void neighbours(struct flow *flow)
{
	struct watch watch = { 0 };

	watch_start(&watch, "va");
	changes(flow, "neighbours forgotten",
		"ip neigh del $B4 dev va; ip neigh del $A4 dev vb");
	/* va has the old address in its cache, until somebody notices that nothing comes back. */
	changes(flow, "peer's hardware address changed",
		"ip link set vb address " MAC_NEW "; ip neigh del $B4 dev va");
	changes(flow, "peer's hardware address changed and told",
		"ip link set vb address " MAC_OLD
		"; ip neigh replace $B4 lladdr " MAC_OLD " dev va nud permanent"
		"; ip neigh replace $A4 lladdr $(cat /sys/class/net/va/address) dev vb nud permanent");
	watch_stop(&watch);
	FACT(watch.roce && !watch.nowhere,
	     "%llu packets watched, %llu of them to no hardware address",
	     (unsigned long long)watch.roce, (unsigned long long)watch.nowhere);
}

struct size {
	int fd;
	int64_t want;
};

static bool is_size(void *arg)
{
	struct size *size = arg;

	return port_number("rxe0:1", "max_datagram") == size->want &&
	       port_number("rxe1:1", "max_datagram") == size->want &&
	       info_of(size->fd).max_datagram == size->want;
}

static bool is_size_of_path(void *arg)
{
	struct size *size = arg;

	return info_of(size->fd).max_datagram == size->want;
}

static bool is_size_of_port(void *arg)
{
	struct size *size = arg;

	return port_number("rxe0:1", "max_datagram") == size->want;
}

static void mtu(struct flow *flow, int mtu, int64_t datagram)
{
	struct size size = { .fd = flow->tx, .want = datagram };
	int rc = shell("ip link set va mtu %d && ip link set vb mtu %d", mtu, mtu);

	FACT(!rc && wait_for(is_size, &size), "MTU %d: datagrams of %u bytes", mtu,
	     info_of(flow->tx).max_datagram);
	goes_on(flow, "after a change of MTU");
}

/* The peer's port takes less from now on, and says so to who asks: silence makes us ask. */
static void mtu_of_peer(struct flow *flow)
{
	struct size size = { .fd = flow->tx, .want = 1020 };
	int rc = shell("ip link set vb mtu 1500");

	FACT(!rc && wait_for(is_size_of_path, &size), "the peer's MTU shrank: datagrams of %u bytes",
	     info_of(flow->tx).max_datagram);
	goes_on(flow, "with the peer's MTU");
	NOTE("%lld times suspected", (long long)port_number("peers", "suspects"));
	if (shell("ip link set vb mtu 4200"))
		BAIL("MTU of vb");
}

/* An MTU that is too small for a connection stops it, and lets no other begin. */
static void mtu_too_small(struct flow *flow)
{
	struct size size = { .want = 508 };
	const struct end_options opt = { 0 };
	int pair[2], err;

	FACT(!shell("ip link set va mtu 700") && wait_for(is_size_of_port, &size),
	     "an MTU of 512: datagrams of %lld bytes",
	     (long long)port_number("rxe0:1", "max_datagram"));
	err = end_pair(pair, &opt);
	FACT(err == -EMSGSIZE, "a new connection: %s", strerror(-err));
	if (shell("ip link set va mtu 4200"))
		BAIL("MTU of va");
	goes_on(flow, "with an MTU that it can use");
}

static bool has_no_path(void *arg)
{
	return !*info_of(*(int *)arg).device;
}

/*
 * The peer says that its MTU is too small: that stops the connection, as one of our own does, and
 * leaves it in peace when it has grown again.
 */
static void mtu_of_peer_too_small(struct flow *flow)
{
	const struct end_options opt = { 0 };
	int pair[2], err;

	FACT(!shell("ip link set vb mtu 700") && wait_for(has_no_path, &flow->tx),
	     "the peer has said that its MTU is too small");
	err = end_pair(pair, &opt);
	FACT(err == -EMSGSIZE, "a new connection: %s", strerror(-err));
	if (shell("ip link set vb mtu 4200"))
		BAIL("MTU of vb");
	goes_on(flow, "with an MTU of the peer that it can use");
}

static int fd[2];
static struct flow flow = { .half_close = true };

static void begin(void)
{
	const struct end_options opt = { 0 };
	int err = end_pair(fd, &opt);

	if (err)
		BAIL("connect: %s", strerror(-err));
	step = env_number("QRDMA_STEP_KB", 1024, 128) << 10;
	flow.tx = fd[0];
	flow.rx = fd[1];
	flow_start(&flow);
	goes_on(&flow, "before");
}

static void finish(void)
{
	struct qrdma_info info;

	flow_stop(&flow);
	flow_wait(&flow);
	FACT(flow_good(&flow) && flow.saw_end, "every byte arrived: %s", flow_describe(&flow));
	info = info_of(fd[0]);
	NOTE("%llu packets sent, %llu lost; %u times another answer for the peer, %u resets of the "
	     "lane; %lld refused as too long",
	     (unsigned long long)info.packets_sent, (unsigned long long)info.packets_lost,
	     info.peer_changes, info.lane_resets,
	     (long long)lanes_number("rxe0:1", "tx_oversize"));
}

TEST_TIMEOUT(neighbours, 600)
{
	begin();
	neighbours(&flow);
	finish();
}

TEST_TIMEOUT(mtu, 600)
{
	begin();
	mtu(&flow, 1500, 1020);
	mtu(&flow, 9000, 4092);
	mtu(&flow, 1280, 1020);
	mtu(&flow, 4200, 4092);
	finish();
}

TEST_TIMEOUT(mtu_of_peer, 600)
{
	begin();
	mtu_of_peer(&flow);
	finish();
}

TEST_TIMEOUT(mtu_of_peer_too_small, 600)
{
	begin();
	mtu_of_peer_too_small(&flow);
	finish();
}

TEST_TIMEOUT(mtu_too_small, 600)
{
	begin();
	mtu_too_small(&flow);
	finish();
}
