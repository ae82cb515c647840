// SPDX-License-Identifier: GPL-2.0
/*
 * ECN on the wire (RFC 9000 section 13.4): packets leave as ECT(0), marks of congestion come back
 * to their sender, and a path that takes the marks off or turns them into others is found out
 * while the bytes go on.
 */
#include <string.h>
#include <unistd.h>

#include "ends.h"
#include "fact.h"
#include "flow.h"
#include "probe.h"

static int fd[2];

/* A new pair, and bytes from the client to the server over it */
static void transfer(const char *what, bool ipv6)
{
	const struct end_options opt = { .ipv6 = ipv6 };
	struct flow flow = { .size = env_number("QRDMA_ECN_KB", 512, 128) << 10 };
	struct qrdma_info info;
	int err = end_pair(fd, &opt);

	if (err)
		BAIL("%s: connect: %s", what, strerror(-err));
	flow.tx = fd[0];
	flow.rx = fd[1];
	flow_run(&flow);
	info = info_of(fd[0]);
	FACT(flow_good(&flow), "%s: every byte arrived: %s; %llu packets, %llu lost, ECN state %u",
	     what, flow_describe(&flow), (unsigned long long)info.packets_sent,
	     (unsigned long long)info.packets_lost, info.ecn);
}

static void done(void)
{
	close(fd[0]);
	close(fd[1]);
}

TEST_TIMEOUT(marks, 300)
{
	struct qrdma_info sender, receiver;

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		const char *what = ipv6 ? "IPv6" : "IPv4";

		transfer(what, ipv6);
		sender = info_of(fd[0]);
		FACT(sender.ecn == QRDMA_INFO_ECN_ON, "%s: the path carries ECN", what);
		done();
		/* what netem would drop it marks instead */
		if (shell("link_loss loss 10%% ecn"))
			BAIL("netem");
		transfer(what, ipv6);
		sender = info_of(fd[0]);
		receiver = info_of(fd[1]);
		FACT(receiver.packets_ce > 0 && sender.packets_ce_remote > 0 &&
		     sender.packets_ce_remote <= receiver.packets_ce,
		     "%s: %llu marks arrived, the sender knows of %llu", what,
		     (unsigned long long)receiver.packets_ce,
		     (unsigned long long)sender.packets_ce_remote);
		FACT(sender.ssthresh < 1ULL << 40, "%s: the window was cut", what);
		done();
		shell("link_clear");
	}
}

/* The path sets the two bits of each IPv4 packet from a to b. */
static void broken(const char *what, int bits)
{
	if (shell("tc qdisc add dev va clsact && tc filter add dev va egress protocol ip matchall "
		  "action pedit ex munge ip tos set %d retain 3 pipe action csum ip4h", bits))
		SKIP("tc cannot change packets here");
	transfer(what, false);
	/* that all is marked with CE is possible (RFC 9000 section 13.4.2) */
	FACT(info_of(fd[0]).ecn == (bits == 3 ? QRDMA_INFO_ECN_ON : QRDMA_INFO_ECN_FAILED),
	     "%s: is taken for what it is", what);
	FACT(info_of(fd[1]).ecn == QRDMA_INFO_ECN_ON || info_of(fd[1]).packets_sent < 20,
	     "%s: the other direction is none the worse", what);
	done();
	shell("tc qdisc del dev va clsact");
}

TEST_TIMEOUT(broken_paths, 300)
{
	broken("a path that takes marks off", 0);
	broken("a path that makes ECT(1) of them", 1);
	broken("a path that marks everything with CE", 3);
}

TEST(switched_off)
{
	if (shell("echo 0 >/sys/module/qrdma/parameters/ecn"))
		BAIL("no parameter");
	transfer("switched off", false);
	FACT(info_of(fd[0]).ecn == QRDMA_INFO_ECN_OFF && !info_of(fd[1]).packets_ce,
	     "switched off: no packet is marked");
	done();
	shell("echo 1 >/sys/module/qrdma/parameters/ecn");
}
