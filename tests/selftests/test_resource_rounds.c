// SPDX-License-Identifier: GPL-2.0
/*
 * Many rounds of connect, transfer and close, in all the ways that a connection can end. What the
 * kernel holds afterwards is what it held before: sockets, connections, address handles, queue
 * pairs, completion queues, memory regions, buffers, and no slab cache has grown with the rounds.
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

enum {
	THREADS = 4,
	MESSAGE = 8 << 10,
	WAYS = 6,
};

#define IDLE "/sys/module/qrdma/parameters/peer_idle"

struct worker {
	pthread_t thread;
	int first;
	int rounds;
	int bad;
	char why[160];
};

/* How a connection ends */
static void end_it(int fd[2], int way)
{
	const struct linger abort = { .l_onoff = 1 };
	char c = 0;

	switch (way) {
	case 0:			/* politely */
		shutdown(fd[0], SHUT_WR);
		while (recv(fd[1], &c, 1, 0) > 0)
			;
		break;
	case 1:			/* both at once */
		shutdown(fd[0], SHUT_RDWR);
		shutdown(fd[1], SHUT_RDWR);
		break;
	case 2:			/* one aborts */
		setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
		break;
	case 3:			/* with unread bytes */
		send(fd[0], &c, 1, MSG_NOSIGNAL);
		recv(fd[1], &c, 1, MSG_PEEK);
		break;
	case 4: {		/* with a code */
		struct qrdma_connection_close code = { .code = 7, .app = 1 };

		setsockopt(fd[0], SOL_QRDMA, QRDMA_CONNECTION_CLOSE, &code, sizeof(code));
		break;
	}
	default:		/* just close */
		break;
	}
	close(fd[way & 1]);
	close(fd[!(way & 1)]);
}

static bool once(struct worker *worker, int round)
{
	static const uint32_t cipher[] = { QRDMA_CIPHER_AES_GCM_128, QRDMA_CIPHER_AES_GCM_256,
					   QRDMA_CIPHER_AES_CCM_128, QRDMA_CIPHER_CHACHA20 };
	const struct end_options opt = { .cipher = cipher[round / WAYS % 4] };
	uint8_t out[MESSAGE], in[MESSAGE];
	int fd[2], i, err = end_pair(fd, &opt);

	if (err) {
		snprintf(worker->why, sizeof(worker->why), "round %d: connect: %s", round,
			 strerror(-err));
		return false;
	}
	for (i = 0; i < 2 && !err; i++) {
		pattern_fill(round, i, out, sizeof(out));
		if (send(fd[i], out, sizeof(out), MSG_NOSIGNAL) != sizeof(out) ||
		    recv(fd[!i], in, sizeof(in), MSG_WAITALL) != sizeof(in) ||
		    memcmp(in, out, sizeof(in))) {
			snprintf(worker->why, sizeof(worker->why), "round %d, direction %d: %s",
				 round, i, strerror(errno));
			err = -1;
		}
	}
	end_it(fd, err ? 5 : round % WAYS);
	return !err;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	int i;

	for (i = 0; i < worker->rounds; i++)
		worker->bad += !once(worker, worker->first + i);
	return NULL;
}

static int rounds(int first, int count)
{
	struct worker worker[THREADS] = { 0 };
	int i, bad = 0;

	for (i = 0; i < THREADS; i++) {
		worker[i].first = first + i * count / THREADS;
		worker[i].rounds = first + (i + 1) * count / THREADS - worker[i].first;
		pthread_create(&worker[i].thread, NULL, work, &worker[i]);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(worker[i].thread, NULL);
		bad += worker[i].bad;
		if (worker[i].bad)
			NOTE("%d rounds went wrong, the last: %s", worker[i].bad,
			     worker[i].why);
	}
	return bad;
}

/* Everything that is counted one by one, as text */
struct state {
	char text[2048];
};

static void state_read(struct state *state)
{
	int n = 0, i;

	for (i = 0; i < 2; i++) {
		const char *port = i ? "rxe1:1" : "rxe0:1";

		n += snprintf(state->text + n, sizeof(state->text) - n,
			      "%s: qps %lld, handles %lld, credit %lld, sends pending %lld, "
			      "queued %lld, buffers out %lld; ", port,
			      (long long)port_number(port, "qps"),
			      (long long)port_number(port, "ahs"),
			      (long long)port_number(port, "reserved"),
			      (long long)lanes_number(port, "tx_pending"),
			      (long long)lanes_number(port, "tx_queued"),
			      (long long)(lanes_number(port, "out") +
					  port_number(port, "out") -
					  lanes_number(port, "rx_posted")));
	}
	n += snprintf(state->text + n, sizeof(state->text) - n,
		      "sockets %llu, connections %llu, orphans %llu, users of peers %lld; ",
		      (unsigned long long)stat_of("sockets"),
		      (unsigned long long)stat_of("connections"),
		      (unsigned long long)stat_of("orphans"),
		      (long long)port_number("peers", "users"));
	n += snprintf(state->text + n, sizeof(state->text) - n, "protocols %s; ",
		      shell_line("awk '$1 == \"QRDMA\" { print $3 }' /proc/net/protocols"));
	snprintf(state->text + n, sizeof(state->text) - n, "rdma %s",
		 shell_line("rdma -j res show | tr -d '\\n'"));
}

static bool state_same(void *arg)
{
	struct state now;

	state_read(&now);
	return !strcmp(now.text, ((struct state *)arg)->text);
}

/* Nothing is left that goes by itself: hosts that nobody uses are forgotten after IDLE. */
static bool is_quiet(void *arg)
{
	return !stat_of("connections") && !stat_of("orphans") && !stat_of("sockets") &&
	       !port_number("peers", "tries") && !port_number("rxe0:1", "ahs") &&
	       !port_number("rxe1:1", "ahs");
}

TEST_TIMEOUT(resource_rounds, 1200)
{
	int count = env_number("QRDMA_ROUNDS", 1000, 120);
	static struct slab_shot before, after;
	struct state first, last;
	char name[48] = "";
	int64_t growth;
	int bad;

	FACT(!shell("cat " IDLE " >/tmp/idle && echo 1 >" IDLE),
	     "hosts are forgotten after a second");
	/* What is made once and kept: caches, pools */
	bad = rounds(0, count / 10);
	FACT(!bad && wait_for(is_quiet, NULL), "%d rounds to warm up", count / 10);
	state_read(&first);
	slab_take(&before);
	NOTE("%s", first.text);

	bad = rounds(count / 10, count);
	FACT(!bad, "%d rounds of connect, transfer and close", count);
	FACT(wait_for(is_quiet, NULL), "all connections are over");
	FACT(wait_for(state_same, &first), "all counts are what they were");
	state_read(&last);
	if (strcmp(first.text, last.text))
		NOTE("now: %s", last.text);
	slab_take(&after);
	growth = slab_growth(&before, &after, name);
	FACT(growth < count / 2, "no slab cache has grown with the rounds: most %lld (%s)",
	     (long long)growth, name);
	FACT(slab_objects("QRDMA") >= 0, "the sockets have a slab cache of their own");
	shell("cat /tmp/idle >" IDLE);
}
