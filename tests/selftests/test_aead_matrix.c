// SPDX-License-Identifier: GPL-2.0
/*
 * Each cipher carries a file both ways, with a key update every hundred packets or so. Run a
 * second time with the asynchronous ciphers of tests/tools loaded (the argument "async"): then
 * requests have to have gone through them, some of them by way of their backlog.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"
#include "flow.h"
#include "probe.h"
#include "tap.h"

#define PARAMETERS	"/sys/module/qrdma_async_aead/parameters/"

enum { UPDATE_EVERY = 100 };

static const struct {
	uint32_t type;
	const char *name;
} ciphers[] = {
	{ QRDMA_CIPHER_AES_GCM_128, "AES-128-GCM" },
	{ QRDMA_CIPHER_AES_GCM_256, "AES-256-GCM" },
	{ QRDMA_CIPHER_AES_CCM_128, "AES-128-CCM" },
	{ QRDMA_CIPHER_CHACHA20, "ChaCha20-Poly1305" },
};

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
	uint64_t step = flow->size / 64, next = 0, at, sent, last = info_of(flow->tx).packets_sent;

	while ((at = flow_await(flow, next)) >= next && at < flow->size) {
		next = at + step;
		sent = info_of(flow->tx).packets_sent;
		if (sent - last < UPDATE_EVERY)
			continue;
		if (!setsockopt(flow->tx, SOL_QRDMA, QRDMA_KEY_UPDATE, NULL, 0))
			last = sent;
		else if (errno != EAGAIN)
			tap_note("key update: %s", strerror(errno));
	}
}

static void carry(int tx, int rx, const char *name, const char *way, uint64_t size)
{
	struct flow flow = { .tx = tx, .rx = rx, .size = size };
	struct qrdma_info before = info_of(tx), after;

	flow_start(&flow);
	update_keys(&flow);
	flow_wait(&flow);
	after = info_of(tx);
	tap_check(flow_good(&flow), "%s, %s: %s", name, way, flow_describe(&flow));
	tap_note("%llu packets, %llu lost, %llu key updates",
		 (unsigned long long)(after.packets_sent - before.packets_sent),
		 (unsigned long long)(after.packets_lost - before.packets_lost),
		 (unsigned long long)(after.key_updates - before.key_updates));
	tap_check(after.key_updates - before.key_updates >= 3, "%s, %s: the keys were updated",
		  name, way);
}

static void cipher_run(uint32_t type, const char *name, uint64_t size)
{
	const struct end_options opt = { .cipher = type };
	struct qrdma_info info[2];
	int fd[2], i, err;

	err = end_pair(fd, &opt);
	tap_check(!err, "%s: connect: %s", name, strerror(-err));
	if (err)
		return;
	carry(fd[0], fd[1], name, "there", size);
	carry(fd[1], fd[0], name, "back", size);
	for (i = 0; i < 2; i++)
		info[i] = info_of(fd[i]);
	tap_check(info[0].cipher == type && info[1].cipher == type, "%s: is what is used", name);
	tap_check(!info[0].packets_failed && !info[1].packets_failed,
		  "%s: every packet has verified: %llu and %llu have not", name,
		  (unsigned long long)info[0].packets_failed,
		  (unsigned long long)info[1].packets_failed);
	close(fd[0]);
	close(fd[1]);
}

int main(int argc, char **argv)
{
	bool async = argc > 1 && !strcmp(argv[1], "async");
	uint64_t size = env_number("QRDMA_FILE_KB", async ? 2048 : 4096, 512) << 10;
	unsigned long asked = parameter("requests"), completed;
	size_t i;

	tap_start();
	for (i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++) {
		cipher_run(ciphers[i].type, ciphers[i].name, size);
		if (!async)
			continue;
		completed = parameter("requests") - asked;
		asked += completed;
		/* A page holds 4 KiB, so there are at least so many to seal and to open. */
		tap_check(completed > 4 * size / 4096, "%s: %lu requests were asynchronous",
			  ciphers[i].name, completed);
	}
	if (async)
		tap_check(parameter("backlogged") > 0 && !parameter("failed"),
			  "%lu requests were backlogged, %lu failed", parameter("backlogged"),
			  parameter("failed"));
	return tap_end();
}
