// SPDX-License-Identifier: GPL-2.0
/*
 * Stateless resets (RFC 9000 section 10.3): a host that does not know a connection answers with a
 * token that only it can make, an end whose peer's token that is gives up at once, and nobody else
 * can have it do so. Few leave a host, each shorter than its cause (F68).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"
#include "fact.h"
#include "inject.h"
#include "probe.h"

enum { PORTS = 4, TOKEN = QRDMA_RESET_TOKEN_SIZE, LEN = 40 };

static int fd[2];
static uint8_t token[2][TOKEN];	/* of both ends' connection ids */

static struct qrdma_transport_param param_of(int of)
{
	struct qrdma_transport_param p = { 0 };
	socklen_t len = sizeof(p);

	if (getsockopt(of, SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &p, &len))
		BAIL("QRDMA_TRANSPORT_PARAM: %s", strerror(errno));
	return p;
}

/* A pair in which both know the other's token */
static void begin(void)
{
	const struct end_options opt = { .seed = end_fresh_seed(), .type_flags = SOCK_NONBLOCK };
	struct pollfd p = { .events = POLLOUT };
	struct qrdma_transport_param param;
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++) {
		fd[i] = end_socket(&opt);
		err = end_bind(fd[i], "ab"[i], false, 0);
		if (!err)
			err = end_setup(fd[i], i ? QRDMA_ROLE_SERVER : QRDMA_ROLE_CLIENT, &opt);
		memcpy(token[i], param_of(fd[i]).stateless_reset_token, TOKEN);
	}
	for (i = 0; i < 2 && !err; i++) {
		param = param_of(fd[!i]);
		param.remote = 1;
		if (setsockopt(fd[i], SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &param, sizeof(param)))
			err = -errno;
	}
	for (i = 0; i < 2 && !err; i++) {
		err = end_connect(fd[i], "ba"[i], false, end_port(fd[!i]));
		if (err == -EINPROGRESS)
			err = 0;
	}
	if (err)
		BAIL("connect: %s", strerror(-err));
	for (i = 0; i < 2; i++) {
		p.fd = fd[i];
		if (poll(&p, 1, 60000) != 1 ||
		    info_of(fd[i]).state != QRDMA_STATE_ESTABLISHED)
			BAIL("end %d is not connected", i);
	}
}

static void lost(int of, const char *what)
{
	struct pollfd p = { .fd = of };
	int err;

	FACT(poll(&p, 1, 60000) == 1 && p.revents & POLLERR, "%s: the socket fails", what);
	err = so_error(of);
	FACT(err == ECONNRESET && reason_of(of, NULL) == QRDMA_REASON_PEER_LOST,
	     "%s: %s, reason %u", what, strerror(err), reason_of(of, NULL));
}

static bool is_alone(void *arg)
{
	return stat_of("connections") <= 1;
}

static void abort_close(int of)
{
	const struct linger abort = { .l_onoff = 1 };

	setsockopt(of, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
	close(of);
}

/* As a host that was started anew: the other end knows nothing of it. */
TEST_TIMEOUT(forgotten, 300)
{
	uint64_t before = stat_of("resets_received");
	const char none[TOKEN] = "";

	begin();
	FACT(memcmp(token[0], token[1], TOKEN) && memcmp(token[0], none, TOKEN),
	     "each end has a token of its own");
	if (shell("link_loss loss 100%%"))
		BAIL("netem");
	abort_close(fd[1]);
	FACT(wait_for(is_alone, NULL), "one end has gone and the other does not know");
	FACT(reason_of(fd[0], NULL) == QRDMA_REASON_NONE, "nothing has come through");
	shell("link_clear");
	if (send(fd[0], "hello?", 6, MSG_NOSIGNAL) != 6)
		BAIL("send: %s", strerror(errno));
	lost(fd[0], "the next packet");
	FACT(stat_of("resets_received") == before + 1, "it is counted");
	close(fd[0]);
}

/* Ports, then a packet of nobody's that ends with @end */
static size_t stray(uint8_t *msg, int from, int to, const uint8_t *end, size_t len)
{
	uint16_t port = htons(from);

	memcpy(msg, &port, 2);
	port = htons(to);
	memcpy(msg + 2, &port, 2);
	if (getrandom(msg + PORTS, len, 0) != (ssize_t)len)
		BAIL("getrandom");
	msg[PORTS] = 0x40 | (msg[PORTS] & 0x3f);
	if (end)
		memcpy(msg + PORTS + len - TOKEN, end, TOKEN);
	return PORTS + len;
}

TEST_TIMEOUT(believed, 300)
{
	struct stat_is sent = { .name = "resets_sent" };
	struct inject inject;
	uint8_t msg[PORTS + LEN], wrong[TOKEN], byte;
	int ports[2], bit;

	begin();
	ports[0] = end_port(fd[0]);
	ports[1] = end_port(fd[1]);
	inject_open(&inject, "$B4 $A4");
	inject_qpn(&inject, info_of(fd[0]).local_qpn);
	/* near misses; our own token; the right one, for another port */
	sent.want = stat_of(sent.name) + 9;
	for (bit = 0; bit < 128; bit += 16) {
		memcpy(wrong, token[1], TOKEN);
		wrong[bit / 8] ^= 1 << bit / 16;
		inject_send(&inject, msg, stray(msg, ports[1], ports[0], wrong, LEN), 0, 1, NULL);
	}
	inject_send(&inject, msg, stray(msg, ports[1], ports[0] ^ 1, token[1], LEN), 0, 1, NULL);
	inject_send(&inject, msg, stray(msg, ports[1], ports[0], token[0] + 1, LEN), 0, 1, NULL);
	FACT(wait_for(stat_is, &sent), "what belongs to nobody is answered: %llu",
	     (unsigned long long)stat_of(sent.name));
	if (send(fd[1], "x", 1, MSG_NOSIGNAL) != 1)
		BAIL("send: %s", strerror(errno));
	while (recv(fd[0], &byte, 1, 0) != 1 && errno == EAGAIN)
		poll(&(struct pollfd){ .fd = fd[0], .events = POLLIN }, 1, 1000);
	FACT(byte == 'x' && reason_of(fd[0], NULL) == QRDMA_REASON_NONE, "the connection lives");
	/*
	 * The shortest that there may be; again and again, as a host that has lost the connection
	 * says it: so soon after a packet of the peer the first may be late.
	 */
	do {
		inject_send(&inject, msg, stray(msg, ports[1], ports[0], token[1], 21), 0, 1,
			    NULL);
	} while (!poll(&(struct pollfd){ .fd = fd[0] }, 1, 100));
	lost(fd[0], "the token");
	inject_close(&inject);
	close(fd[0]);
	abort_close(fd[1]);
}

/* F68: what is too short gets no answer, and no more answers leave than the parameter says. */
TEST_TIMEOUT(bounded, 300)
{
	struct stat_is held = { .name = "resets_held" }, unknown = { .name = "rx_drop_unknown_id" };
	uint64_t before = stat_of("resets_sent"), answers;
	struct inject inject;
	uint8_t msg[PORTS + LEN];

	inject_open(&inject, "$B4 $A4");
	if (shell("echo 0 >/sys/module/qrdma/parameters/reset_rate"))
		BAIL("no parameter");
	held.want = stat_of(held.name) + 5;
	inject_send(&inject, msg, stray(msg, 1, 2, NULL, LEN), 0, 5, NULL);
	FACT(wait_for(stat_is, &held), "none may leave: they are counted");
	shell("echo 10 >/sys/module/qrdma/parameters/reset_rate");
	/* those of this second may have left already: go on until the next one has begun */
	do {
		unknown.want = stat_of(unknown.name) + 1000;
		inject_send(&inject, msg, stray(msg, 1, 2, NULL, LEN), 0, 1000, NULL);
		FACT(wait_for(stat_is, &unknown), "1000 packets for nobody");
		answers = stat_of("resets_sent") - before;
	} while (!answers);
	FACT(answers < 500, "%llu answers", (unsigned long long)answers);
	shell("echo 500 >/sys/module/qrdma/parameters/reset_rate");
	inject_close(&inject);
}
