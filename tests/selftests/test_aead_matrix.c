// SPDX-License-Identifier: GPL-2.0
/*
 * Each cipher carries a file both ways, with a key update every hundred packets or so (F14). Run a
 * second time with the asynchronous ciphers of tests/tools loaded: then requests have to have gone
 * through them, some of them by way of their backlog.
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
#include "probe.h"

#define PARAMETERS	"/sys/module/qrdma_async_aead/parameters/"

enum { UPDATE_EVERY = 100 };

static unsigned long parameter(const char *name)
{
	char path[128] = PARAMETERS;
	unsigned long val = 0;
	FILE *file;

	file = fopen(strcat(path, name), "r");
	if (file) {
		if (fscanf(file, "%lu", &val) != 1)
			val = 0;
		fclose(file);
	}
	return val;
}

/* Ask for new keys whenever so many packets have been sent, until the flow is over. */
static void update_keys(struct flow *flow)
{
	uint64_t step = flow->size / 256, next = 0, at, sent, last = info_of(flow->tx).packets_sent;

	while ((at = flow_await(flow, next)) >= next && at < flow->size) {
		next = at + step;
		sent = info_of(flow->tx).packets_sent;
		if (sent - last < UPDATE_EVERY)
			continue;
		if (!setsockopt(flow->tx, SOL_QRDMA, QRDMA_KEY_UPDATE, NULL, 0))
			last = sent;
		else if (errno != EAGAIN)
			NOTE("key update: %s", strerror(errno));
	}
}

/* Return: key updates */
static uint64_t carry(int tx, int rx, const char *name, const char *way, uint64_t size)
{
	struct flow flow = { .tx = tx, .rx = rx, .size = size };
	struct qrdma_info before = info_of(tx), after;

	flow_start(&flow);
	update_keys(&flow);
	flow_wait(&flow);
	after = info_of(tx);
	FACT(flow_good(&flow), "%s, %s: %s", name, way, flow_describe(&flow));
	NOTE("%llu packets, %llu lost, %llu key updates",
	     (unsigned long long)(after.packets_sent - before.packets_sent),
	     (unsigned long long)(after.packets_lost - before.packets_lost),
	     (unsigned long long)(after.key_updates - before.key_updates));
	return after.key_updates - before.key_updates;
}

static void cipher_run(uint32_t type, const char *name)
{
	bool async = !access(PARAMETERS, F_OK);
	uint64_t size = env_number("QRDMA_FILE_KB", async ? 2048 : 4096, 512) << 10;
	unsigned long asked, failed, backlogged;
	uint64_t updates;
	const struct end_options opt = { .cipher = type };
	struct qrdma_info info[2];
	int fd[2], i, err;

	err = end_pair(fd, &opt);
	if (err)
		BAIL("%s: connect: %s", name, strerror(-err));
	/* Newer kernels test a cipher only when somebody asks for it first: that was just now. */
	asked = parameter("requests");
	failed = parameter("failed");
	backlogged = parameter("backlogged");
	updates = carry(fd[0], fd[1], name, "there", size);
	updates += carry(fd[1], fd[0], name, "back", size);
	/* An update has to be confirmed before the next: how many there are is a matter of time. */
	FACT(updates >= 1 + (size >> 22), "%s: the keys were updated %llu times", name,
	     (unsigned long long)updates);
	for (i = 0; i < 2; i++)
		info[i] = info_of(fd[i]);
	FACT(info[0].cipher == type && info[1].cipher == type, "%s: is what is used", name);
	FACT(!info[0].packets_failed && !info[1].packets_failed,
	     "%s: every packet has verified (not: %llu, %llu)", name,
	     (unsigned long long)info[0].packets_failed,
	     (unsigned long long)info[1].packets_failed);
	close(fd[0]);
	close(fd[1]);
	if (!async)
		return;
	/* A packet holds less than 4 KiB, is sealed and is opened. */
	asked = parameter("requests") - asked;
	FACT(asked > 4 * size / 4096, "%s: %lu requests were asynchronous", name, asked);
	failed = parameter("failed") - failed;
	backlogged = parameter("backlogged") - backlogged;
	FACT(backlogged && !failed, "%s: %lu of them were backlogged, %lu failed", name, backlogged,
	     failed);
}

TEST_TIMEOUT(aes_128_gcm, 600)
{
	cipher_run(QRDMA_CIPHER_AES_GCM_128, "AES-128-GCM");
}

TEST_TIMEOUT(aes_256_gcm, 600)
{
	cipher_run(QRDMA_CIPHER_AES_GCM_256, "AES-256-GCM");
}

TEST_TIMEOUT(aes_128_ccm, 600)
{
	cipher_run(QRDMA_CIPHER_AES_CCM_128, "AES-128-CCM");
}

TEST_TIMEOUT(chacha20_poly1305, 600)
{
	cipher_run(QRDMA_CIPHER_CHACHA20, "ChaCha20-Poly1305");
}
