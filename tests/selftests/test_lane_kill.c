// SPDX-License-Identifier: GPL-2.0
/*
 * The queue pair of a lane dies ten times while a file goes over it: by the link going down and
 * up, by the source address leaving the interface and coming back (the address handles are stale),
 * by the local net device refusing packets. The file arrives, and the counter of resets says ten.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"
#include "fact.h"
#include "flow.h"
#include "probe.h"

enum { KILLS = 10 };

/* What makes end a's interface whole again */
#define ROUTE	"ip route replace $B4 dev va src $A4 table 101"
#define NEIGH	"ip neigh replace $B4 lladdr $(cat /sys/class/net/vb/address) dev va nud permanent"
#define LINK	"ip link set va down; ip link set va up && " ROUTE " && " NEIGH
#define ADDRESS	"ip addr del $A4/24 dev va; ip addr add $A4/24 dev va noprefixroute && " ROUTE
/* Every packet is longer than what the bucket can ever hold. */
#define REFUSE	"tc qdisc add dev va root tbf rate 8bit burst 10 limit 10"
#define ACCEPT	"tc qdisc del dev va root"

struct kill {
	struct flow *flow;
	int fd;
	uint32_t qpn;		/* the lane's */
	int64_t resets;		/* when the kill began */
	uint64_t received;
	uint64_t enough;	/* bytes that went through since mean: it did not die */
};

static int64_t resets_of(uint32_t qpn)
{
	return lane_number("rxe0:1", qpn, "resets");
}

static bool is_reset(void *arg)
{
	struct kill *kill = arg;

	return resets_of(kill->qpn) > kill->resets;
}

static bool is_decided(void *arg)
{
	struct kill *kill = arg;

	return is_reset(kill) || flow_progress(kill->flow) >= kill->received + kill->enough;
}

/* Try to kill by something that the lane may survive, when nothing was being sent just then. */
static bool kill_maybe(struct kill *kill, const char *how)
{
	int rc = shell("%s", how);

	kill->received = flow_progress(kill->flow);
	return !rc && wait_for(is_decided, kill) && is_reset(kill);
}

/*
 * Or the connection has no path just now, so that nothing is sent: the kernel may take its time to
 * find the one before stale, which the last change of an address or the link has made so.
 */
static bool is_over(void *arg)
{
	struct kill *kill = arg;

	return is_reset(kill) || !info_of(kill->fd).local_qpn;
}

/* What it cannot survive, if something is sent */
static bool kill_surely(struct kill *kill)
{
	bool over;

	do {
		flow_await(kill->flow, flow_progress(kill->flow) + kill->enough);
		over = !shell(REFUSE) && wait_for(is_over, kill);
		over = !shell(ACCEPT) && over;
	} while (over && !is_reset(kill) && info_of(kill->fd).state == QRDMA_STATE_ESTABLISHED);
	return over;
}

TEST_TIMEOUT(lane_kill, 1200)
{
	static const char * const ways[] = { LINK, ADDRESS, NULL };
	static const char * const names[] = { "link down and up", "address gone and back",
					      "packets refused" };
	uint64_t size = env_number("QRDMA_FILE_MB", 64, 48) << 20;
	const struct end_options opt = { 0 };
	struct flow flow = { .size = size, .half_close = true };
	struct kill kill = { .flow = &flow, .enough = size / 100 };
	int by[3] = { 0 }, fd[2], i, way, err;
	struct qrdma_info info;
	int64_t begin;

	err = end_pair(fd, &opt);
	FACT(!err, "connect: %s", strerror(-err));
	if (err)
		return;
	kill.fd = fd[0];
	kill.qpn = info_of(fd[0]).local_qpn;
	begin = resets_of(kill.qpn);
	flow.tx = fd[0];
	flow.rx = fd[1];
	flow_start(&flow);
	for (i = 0; resets_of(kill.qpn) - begin < KILLS && i < KILLS; i++) {
		flow_await(&flow, size / (KILLS + 2) * (i + 1));
		kill.resets = resets_of(kill.qpn);
		way = i % 3;
		if (!ways[way] || !kill_maybe(&kill, ways[way])) {
			way = 2;
			kill_surely(&kill);
		}
		by[way] += is_reset(&kill);
		FACT(is_reset(&kill), "kill %d (%s) at byte %llu: %lld resets so far", i + 1,
		     names[way], (unsigned long long)flow_progress(&flow),
		     (long long)(resets_of(kill.qpn) - begin));
	}
	flow_wait(&flow);
	info = info_of(fd[0]);
	FACT(flow_good(&flow) && flow.saw_end, "the file arrives: %s", flow_describe(&flow));
	NOTE("by link %d, by address %d, by refusal %d; %llu packets sent, %llu lost", by[0],
	     by[1], by[2], (unsigned long long)info.packets_sent,
	     (unsigned long long)info.packets_lost);
	/* What it takes until the cause is over counts as relapses, not as other deaths. */
	NOTE("%lld relapses, %lld stalls", (long long)lane_number("rxe0:1", kill.qpn, "relapses"),
	     (long long)lane_number("rxe0:1", kill.qpn, "stalls"));
	FACT(info.lane_resets - begin == KILLS, "the counter of resets says %lld",
	     (long long)(info.lane_resets - begin));
}
