// SPDX-License-Identifier: GPL-2.0
/*
 * Thousands of open sockets (F29): queue pairs belong to the port and not to the sockets, and a
 * connection that does nothing costs little memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"
#include "fact.h"
#include "flow.h"
#include "probe.h"

enum { MEMORY_MAX = 16 << 10 };	/* bytes for each socket */

/* Memory that is not free and not a cache, kB */
static int64_t memory_used(void)
{
	shell("echo 3 >/proc/sys/vm/drop_caches");
	return meminfo("MemTotal") - meminfo("MemFree") - meminfo("Cached") - meminfo("Buffers") -
	       meminfo("AnonPages") - meminfo("SReclaimable");
}

static bool is_quiet(void *arg)
{
	return !stat_of("connections");
}

static int64_t qps(void)
{
	return port_number("rxe0:1", "qps") + port_number("rxe1:1", "qps");
}

static bool still_works(int (*pair)[2], int count)
{
	struct flow flow = { .size = 10000 };
	int i, k, bad = 0;

	for (i = 0; i < count; i += count / 20 + 1) {
		for (k = 0; k < 2; k++) {
			flow.tx = pair[i][k];
			flow.rx = pair[i][!k];
			flow_run(&flow);
			if (flow_good(&flow))
				continue;
			NOTE("pair %d: %s", i, flow_describe(&flow));
			bad++;
		}
	}
	return !bad;
}

TEST_TIMEOUT(idle_sockets, 1200)
{
	int count = env_number("QRDMA_SOCKETS", 2000, 400) / 2, i, err = 0;
	const struct end_options opt = { .idle_us = 600 * 1000000 };
	const struct rlimit limit = { count * 2 + 200, count * 2 + 200 };
	int (*pair)[2] = calloc(count, sizeof(*pair)), warm[25][2];
	int64_t before, each, qps_before;
	char name[48] = "";
	static struct slab_shot first, last;

	if (!pair || setrlimit(RLIMIT_NOFILE, &limit))
		BAIL("descriptors: %s", strerror(errno));
	/* The device's pools and the tables grow with the first connections, and stay. */
	for (i = 0; i < 25 && !err; i++)
		err = end_pair(warm[i], &opt);
	FACT(!err, "connect: %s", strerror(-err));
	qps_before = qps();
	slab_take(&first);
	before = memory_used();
	for (i = 0; i < count && !err; i++)
		err = end_pair(pair[i], &opt);
	FACT(!err, "%d sockets are open: %s", 2 * i, strerror(-err));
	if (err)
		return;
	each = (memory_used() - before) * 1024 / (2 * count);
	slab_take(&last);
	slab_growth(&first, &last, name);
	FACT(each < MEMORY_MAX, "%lld bytes for each idle socket (slab cache most used: %s)",
	     (long long)each, name);
	FACT(qps() == qps_before, "%lld queue pairs, as with one connection", (long long)qps());
	FACT(still_works(pair, count), "the connections are alive");
	for (i = 0; i < count; i++) {
		close(pair[i][0]);
		close(pair[i][1]);
	}
	for (i = 0; i < 25; i++) {
		close(warm[i][0]);
		close(warm[i][1]);
	}
	FACT(wait_for(is_quiet, NULL), "all of them are over");
}
