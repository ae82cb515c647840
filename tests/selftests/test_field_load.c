// SPDX-License-Identifier: GPL-2.0
/*
 * Load that queue pairs and completion queues do not like:
 *  - sends that complete late while acknowledgements are fast (F25): the local net device takes
 *    few packets at a time and the driver waits, so buffers are resent before they are back;
 *  - many senders at once into one host (F26): the completion queue holds what is posted;
 *  - datagrams larger than the receiver's MTU (F27): the other flows go on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"
#include "fact.h"
#include "flow.h"
#include "inject.h"
#include "probe.h"

enum { SENDERS = 64 };

TEST_TIMEOUT(late_completions, 600)
{
	const struct end_options opt = { 0 };
	struct flow flow = { .size = env_number("QRDMA_LATE_KB", 1024, 128) << 10,
			     .half_close = true };
	int64_t before = lanes_number("rxe0:1", "resets");
	struct qrdma_info info;
	int fd[2], err = end_pair(fd, &opt);

	if (!FACT(!err, "connect: %s", strerror(-err)))
		return;
	flow.tx = fd[0];
	flow.rx = fd[1];
	err = shell("tc qdisc add dev va root netem delay 50ms limit 16");
	flow_run(&flow);
	info = info_of(fd[0]);
	FACT(!err && flow_good(&flow) && flow.saw_end, "%s",
	     flow_describe(&flow));
	NOTE("%llu packets sent, %llu lost, %llu of them not really, %lld resets",
	     (unsigned long long)info.packets_sent, (unsigned long long)info.packets_lost,
	     (unsigned long long)info.packets_spurious,
	     (long long)(lanes_number("rxe0:1", "resets") - before));
	shell("link_clear");
	close(fd[0]);
	close(fd[1]);
}

/* Events of queue pairs, resets, receives that failed */
static int64_t harm_done(void)
{
	static const char * const names[] = { "qp_events", "resets", "rx_errors" };
	int64_t sum = 0;
	int i;

	for (i = 0; i < 3; i++)
		sum += lanes_number("rxe0:1", names[i]) + lanes_number("rxe1:1", names[i]);
	return sum;
}

TEST_TIMEOUT(many_senders, 600)
{
	uint64_t size = env_number("QRDMA_SENDER_KB", 256, 32) << 10;
	int64_t harm = harm_done();
	static struct flow flow[SENDERS];
	const struct end_options opt = { 0 };
	int fd[SENDERS][2], i, err, bad = 0;

	for (i = 0; i < SENDERS; i++) {
		err = end_pair(fd[i], &opt);
		if (err) {
			FACT(false, "connection %d: %s", i, strerror(-err));
			while (i-- > 0) {
				close(fd[i][0]);
				close(fd[i][1]);
			}
			return;
		}
	}
	for (i = 0; i < SENDERS; i++) {
		flow[i] = (struct flow){ .tx = fd[i][0], .rx = fd[i][1], .size = size,
					 .half_close = true };
		flow_start(&flow[i]);
	}
	for (i = 0; i < SENDERS; i++) {
		flow_wait(&flow[i]);
		if (flow_good(&flow[i]) && flow[i].saw_end)
			continue;
		NOTE("sender %d: %s", i, flow_describe(&flow[i]));
		bad++;
	}
	FACT(!bad, "%d times %llu bytes arrive", SENDERS,
	     (unsigned long long)size);
	FACT(harm_done() == harm, "no queue pair has come to harm");
	for (i = 0; i < SENDERS; i++) {
		close(fd[i][0]);
		close(fd[i][1]);
	}
}

struct fence {
	const char *port;
	int64_t want;
};

static bool has_received(void *arg)
{
	struct fence *fence = arg;

	return lanes_number(fence->port, "rx_packets") >= fence->want;
}

static bool is_smaller(void *arg)
{
	return port_number("rxe1:1", "max_datagram") == 1020;
}

/*
 * The receiver's net device has an MTU of 1500 and so its port one of 1024; what is sent to it
 * takes a way around the veth's own check of length.
 */
TEST_TIMEOUT(too_long, 600)
{
	const struct end_options opt = { 0 };
	struct flow flow = { .half_close = true };
	uint64_t errors, sent, step = 128 << 10, count = 500;
	struct fence fence = { .port = "rxe1:1" };
	struct inject inject;
	int64_t harm;
	int fd[2], err;

	if (shell("modprobe -q -a act_mirred cls_matchall sch_ingress && "
		  "tc qdisc add dev va clsact && "
		  "tc filter add dev va egress matchall action mirred ingress redirect dev vb")) {
		shell("tc qdisc del dev va clsact 2>/dev/null");
		SKIP("this kernel cannot redirect packets");
	}
	err = shell("ip link set vb mtu 1500") || !wait_for(is_smaller, NULL);
	if (!err)
		err = end_pair(fd, &opt);
	if (!FACT(!err, "connect: %s", strerror(err < 0 ? -err : 0)))
		goto out;
	NOTE("the receiver's port takes %lld bytes, the flow sends %u",
	     (long long)port_number("rxe1:1", "max_datagram"), info_of(fd[0]).max_datagram);
	flow.tx = fd[0];
	flow.rx = fd[1];
	flow_start(&flow);
	flow_await(&flow, step);
	harm = harm_done();
	inject_open(&inject, "$A4 $B4");
	fence.want = lanes_number("rxe1:1", "rx_packets") + count;
	sent = inject_send(&inject, NULL, 0, 4096, count, &errors);
	FACT(sent == count && !errors, "%llu datagrams of 4096 bytes are sent",
	     (unsigned long long)sent);
	FACT(wait_for(has_received, &fence), "they and others arrive");
	inject_close(&inject);
	flow_await(&flow, flow_progress(&flow) + step);
	flow_stop(&flow);
	flow_wait(&flow);
	FACT(flow_good(&flow) && flow.saw_end, "the flow goes on: %s",
	     flow_describe(&flow));
	FACT(harm_done() == harm, "no queue pair has come to harm");
	close(fd[0]);
	close(fd[1]);
out:
	shell("tc qdisc del dev va clsact; ip link set vb mtu $LINK_MTU");
}
