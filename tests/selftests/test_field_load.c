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
#include "flow.h"
#include "inject.h"
#include "probe.h"
#include "tap.h"

enum { SENDERS = 64 };

static void late_completions(void)
{
	const struct end_options opt = { 0 };
	struct flow flow = { .size = env_number("QRDMA_LATE_KB", 1024, 128) << 10,
			     .half_close = true };
	int64_t before = lanes_number("rxe0:1", "resets");
	struct qrdma_info info;
	int fd[2], err = end_pair(fd, &opt);

	if (!tap_check(!err, "late completions: connect: %s", strerror(-err)))
		return;
	flow.tx = fd[0];
	flow.rx = fd[1];
	err = shell("tc qdisc add dev va root netem delay 50ms limit 16");
	flow_run(&flow);
	info = info_of(fd[0]);
	tap_check(!err && flow_good(&flow) && flow.saw_end, "late completions: %s",
		  flow_describe(&flow));
	tap_note("late completions: %llu packets sent, %llu lost, %llu of them not really, %lld resets",
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

static void many_senders(void)
{
	uint64_t size = env_number("QRDMA_SENDER_KB", 256, 32) << 10;
	int64_t harm = harm_done();
	static struct flow flow[SENDERS];
	const struct end_options opt = { 0 };
	int fd[SENDERS][2], i, err, bad = 0;

	for (i = 0; i < SENDERS; i++) {
		err = end_pair(fd[i], &opt);
		if (err) {
			tap_check(false, "many senders: connection %d: %s", i, strerror(-err));
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
		tap_note("sender %d: %s", i, flow_describe(&flow[i]));
		bad++;
	}
	tap_check(!bad, "many senders: %d times %llu bytes arrive", SENDERS,
		  (unsigned long long)size);
	tap_check(harm_done() == harm, "many senders: no queue pair has come to harm");
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

/*
 * The receiver's net device has an MTU of 1500 and so its port one of 1024; what is sent to it
 * takes a way around the veth's own check of length.
 */
static void too_long(void)
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
		tap_skip("too long: this kernel cannot redirect");
		return;
	}
	err = shell("ip link set vb mtu 1500");
	if (!err)
		err = end_pair(fd, &opt);
	if (!tap_check(!err, "too long: connect: %s", strerror(err < 0 ? -err : 0)))
		goto out;
	tap_check(info_of(fd[0]).max_datagram == 1020, "too long: the sockets agree on %u bytes",
		  info_of(fd[0]).max_datagram);
	flow.tx = fd[0];
	flow.rx = fd[1];
	flow_start(&flow);
	flow_await(&flow, step);
	harm = harm_done();
	inject_open(&inject, "$A4 $B4");
	fence.want = lanes_number("rxe1:1", "rx_packets") + count;
	sent = inject_send(&inject, NULL, 0, 4096, count, &errors);
	tap_check(sent == count && !errors, "too long: %llu datagrams of 4096 bytes are sent",
		  (unsigned long long)sent);
	tap_check(wait_for(has_received, &fence), "too long: they and others arrive");
	inject_close(&inject);
	flow_await(&flow, flow_progress(&flow) + step);
	flow_stop(&flow);
	flow_wait(&flow);
	tap_check(flow_good(&flow) && flow.saw_end, "too long: the flow goes on: %s",
		  flow_describe(&flow));
	tap_check(harm_done() == harm, "too long: no queue pair has come to harm");
	close(fd[0]);
	close(fd[1]);
out:
	shell("tc qdisc del dev va clsact; ip link set vb mtu $LINK_MTU");
}

int main(void)
{
	tap_start();
	many_senders();
	too_long();
	late_completions();
	return tap_end();
}
