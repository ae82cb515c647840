// SPDX-License-Identifier: GPL-2.0
/*
 * Write 64 KiB and close, over and over (F23): that a send has completed is not that it was
 * delivered. The peer gets every byte and then the end, each time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"
#include "fact.h"
#include "flow.h"
#include "probe.h"

enum { THREADS = 4, SIZE = 64 << 10 };

struct worker {
	pthread_t thread;
	int rounds;
	int bad;
	char why[256];
};

static bool once(struct worker *worker, int round)
{
	const struct end_options opt = { .ipv6 = round & 1 };
	struct flow flow = { .size = SIZE, .close_tx = true };
	int fd[2], err = end_pair(fd, &opt);
	int tx = round / 2 & 1;

	if (err) {
		snprintf(worker->why, sizeof(worker->why), "connect: %s", strerror(-err));
		return false;
	}
	flow.tx = fd[tx];
	flow.rx = fd[!tx];
	flow_run(&flow);
	close(fd[!tx]);
	if (flow_good(&flow) && flow.saw_end)
		return true;
	snprintf(worker->why, sizeof(worker->why), "%s", flow_describe(&flow));
	return false;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	int i;

	for (i = 0; i < worker->rounds; i++)
		worker->bad += !once(worker, i);
	return NULL;
}

static bool is_quiet(void *arg)
{
	return !stat_of("connections");
}

TEST_TIMEOUT(write_and_close, 1200)
{
	int rounds = env_number("QRDMA_ROUNDS", 400, 40), bad = 0, i;
	struct worker worker[THREADS] = { 0 };

	for (i = 0; i < THREADS; i++) {
		worker[i].rounds = rounds / THREADS;
		pthread_create(&worker[i].thread, NULL, work, &worker[i]);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(worker[i].thread, NULL);
		bad += worker[i].bad;
		if (worker[i].bad)
			NOTE("%d went wrong, the last: %s", worker[i].bad, worker[i].why);
	}
	FACT(!bad, "%d times 64 KiB and close: every byte, then the end", rounds);
	FACT(wait_for(is_quiet, NULL), "all connections are over");
}
