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

enum {
	MEMORY_MAX = 10 << 10,	/* bytes for each socket; F29 asks for 16 KiB */
	BATCH = 50,		/* pairs that connect at a time */
};

/* Memory that is not free and not a cache, kB */
static int64_t memory_used(void)
{
	shell("echo 3 >/proc/sys/vm/drop_caches");
	return meminfo("MemTotal") - meminfo("MemFree") - meminfo("Cached") - meminfo("Buffers") -
	       meminfo("AnonPages") - meminfo("SReclaimable");
}

static int open_batch(int (*pair)[2], int count, const struct end_options *opt)
{
	int i, err = 0;

	for (i = 0; i < count && !err; i++)
		err = end_pair_begin(pair[i], opt);
	for (i = 0; i < count && !err; i++)
		err = end_pair_finish(pair[i], opt);
	return err;
}

/* Where it goes, for people: slab caches that have grown by more than 64 bytes for each socket. */
static int64_t tell_slabs(const struct slab_shot *before, const struct slab_shot *now, int sockets)
{
	int64_t sum = 0;

	for (size_t i = 0; i < now->n; i++) {
		int64_t objects = now->cache[i].objects, bytes = now->cache[i].bytes;

		for (size_t k = 0; k < before->n; k++) {
			if (strcmp(now->cache[i].name, before->cache[k].name))
				continue;
			objects -= before->cache[k].objects;
			bytes -= before->cache[k].bytes;
		}
		sum += bytes;
		if (bytes >= 64 * sockets)
			NOTE("%6.0f bytes for each: %.2f objects of %s (%u)",
			     (double)bytes / sockets, (double)objects / sockets,
			     now->cache[i].name, now->cache[i].size);
	}
	return sum / sockets;
}

static bool is_quiet(void *arg)
{
	return !stat_of("connections");
}

/*
 * A second after its last packet a connection gives back what it needs for packets only; kmalloc-2k
 * has the records of packets that were sent.
 */
static int64_t packet_objects(void)
{
	return slab_objects("qrdma_output") + slab_objects("qrdma_input") +
	       slab_objects("kmalloc-2k");
}

static bool is_idle(void *arg)
{
	return packet_objects() < *(int64_t *)arg;
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

TEST_TIMEOUT(idle_sockets, 580)
{
	int count = env_number("QRDMA_SOCKETS", 20000, 400) / 2, i, err = 0;
	const struct end_options opt = { .idle_us = 600 * 1000000 };
	const struct rlimit limit = { count * 2 + 200, count * 2 + 200 };
	int (*pair)[2] = calloc(count, sizeof(*pair)), warm[25][2];
	int64_t before, each, slabs, qps_before, limit_packets;
	char name[48] = "";
	static struct slab_shot first, last;

	if (!pair || setrlimit(RLIMIT_NOFILE, &limit))
		BAIL("descriptors: %s", strerror(errno));
	/* The device's pools and the tables grow with the first connections, and stay. */
	for (i = 0; i < 25 && !err; i++)
		err = end_pair(warm[i], &opt);
	FACT(!err, "connect: %s", strerror(-err));
	qps_before = qps();
	limit_packets = packet_objects() + 300;
	slab_take(&first);
	before = memory_used();
	for (i = 0; i < count && !err; i += BATCH)
		err = open_batch(pair + i, BATCH < count - i ? BATCH : count - i, &opt);
	FACT(!err, "%d sockets are open: %s", 2 * count, strerror(-err));
	if (err)
		return;
	limit_packets += count / 10;
	FACT(wait_for(is_idle, &limit_packets), "they keep no records of packets");
	each = (memory_used() - before) * 1024 / (2 * count);
	slab_take(&last);
	slabs = tell_slabs(&first, &last, 2 * count);
	slab_growth(&first, &last, name);
	FACT(slabs < MEMORY_MAX, "%lld bytes of slab caches for each idle socket",
	     (long long)slabs);
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
