// SPDX-License-Identifier: GPL-2.0
/*
 * One handshake of qrdmad, at both ends, on the sockets of kernel.h: what the policy says is done, and each end tells
 * the kernel the errno of the cause. argv[1]: folder made by certs.sh.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include "common.h"
#include "kernel.h"
#include "log.h"
#include "session.h"

#define SERVER	"[server]\nauthenticate = server\ncertificate = @/server.pem\nkey = @/server.key\n"
#define MUTUAL	"[server]\ntrust = @/ca.pem\ncertificate = @/server.pem\nkey = @/server.key\n"
#define CLIENT	"[client]\nauthenticate = server\ntrust = @/ca.pem\n"
#define CLIENT_CERT "[client]\ntrust = @/ca.pem\ncertificate = @/client.pem\nkey = @/client.key\n"
#define PSK(role, file)	"[" role "]\nauthenticate = psk\npsk-file = @/" file "\n"

/* One end: its configuration, its session, what it came to. */
struct end {
	struct config *config;
	struct policies *policies;
	struct session *session;
	int err;
};

static struct end ends[2];

static void put(const char *name, const char *text)
{
	char *folder = realpath(path("."), NULL);
	FILE *f = fopen(path(name), "w");

	if (!f || !folder)
		exit(1);
	for (; *text; text++)
		if (*text == '@')
			fputs(folder, f);
		else
			fputc(*text, f);
	fclose(f);
	chmod(path(name), 0600);
	free(folder);
}

static void configure(struct end *end, const char *text)
{
	char why[CONFIG_WHY_SIZE];

	put("conf", text);
	if (config_load(&end->config, path("conf"), why) || policies_new(&end->policies, end->config, why)) {
		fprintf(stderr, "%s\n", why);
		exit(1);
	}
}

static void begin(int i, uint32_t timeout_ms)
{
	const struct session_job job = {
		.fd = KERNEL_FD + i,
		.role = i ? QRDMA_ROLE_SERVER : QRDMA_ROLE_CLIENT,
		.timeout_ms = timeout_ms,
	};

	ends[i].session = session_new(&job, ends[i].policies, NULL);
	ends[i].err = ends[i].session ? -EAGAIN : 0;
}

static void names(void)
{
	for (int i = 0; i < 2; i++) {
		kernel.name[i].sin6_family = AF_INET6;
		kernel.name[i].sin6_port = htons(i ? 7000 : 40000);
		inet_pton(AF_INET6, i ? "::ffff:10.9.0.2" : "::ffff:10.9.0.1", &kernel.name[i].sin6_addr);
	}
}

static void turn(int i)
{
	if (ends[i].err != -EAGAIN)
		return;
	if (!(session_events(ends[i].session) & (EPOLLIN | EPOLLOUT)))
		exit(1);
	ends[i].err = session_step(ends[i].session);
	/* a worker closes it at once */
	if (ends[i].err != -EAGAIN) {
		session_free(ends[i].session);
		ends[i].session = NULL;
	}
}

/* As far as they come; the results are in wire[]. */
static void run(const char *client, const char *server)
{
	kernel_reset();
	kernel.agent = true;
	names();
	memset(ends, 0, sizeof(ends));
	configure(&ends[0], client);
	configure(&ends[1], server);
	begin(0, 10000);
	begin(1, 10000);
	for (int i = 0; i < 20; i++)
		turn(i % 2);
}

static void finish(void)
{
	for (int i = 0; i < 2; i++) {
		session_free(ends[i].session);
		policies_free(ends[i].policies);
		config_free(ends[i].config);
	}
}

static void expect(const char *name, const char *client, const char *server, int client_result, int server_result,
		   int alert)
{
	char text[160];
	int finder;

	run(client, server);
	finder = wire[0].alert > 0 ? 0 : 1;
	finish();
	snprintf(text, sizeof(text), "results %d and %d, alerts %d and %d, faults %d, closes %d and %d", wire[0].result,
		 wire[1].result, wire[0].alert, wire[1].alert, kernel.faults, kernel.closes[0], kernel.closes[1]);
	check(wire[0].result == client_result && wire[1].result == server_result && !kernel.faults &&
	      (alert < 0 || wire[finder].alert == alert) && kernel.closes[0] == 1 && kernel.closes[1] == 1, name, text);
}

/* -1: no result, the connection was ended by the other side before */
static void test_causes(void)
{
	expect("a certificate for the address", CLIENT, SERVER, 0, 0, -1);
	check(!wire[0].judged, "nothing to be judged", "");
	expect("mutual", CLIENT_CERT, MUTUAL, 0, 0, -1);
	check(wire[0].judged && !wire[1].judged, "the client waits for the server's verdict", "");
	expect("mutual, the client by name", CLIENT_CERT, MUTUAL "[peer 10.9.0.0/24]\nname = client.test\n", 0, 0,
	       -1);
	expect("a name that the peer's section gives", CLIENT "[peer 10.9.0.2]\nname = server.test\n", SERVER, 0, 0,
	       -1);
	expect("another name", CLIENT "[peer 10.9.0.2]\nname = other.test\n", SERVER, EKEYREJECTED, -1, 42);
	expect("a client of another name", CLIENT_CERT, MUTUAL "[port 7000]\nname = other.test\n", 0, EKEYREJECTED,
	       42);
	expect("an expired certificate", CLIENT,
	       "[server]\nauthenticate = server\ncertificate = @/expired.pem\nkey = @/expired.key\n", EKEYEXPIRED, -1,
	       45);
	expect("a stranger's certificate", CLIENT,
	       "[server]\nauthenticate = server\ncertificate = @/untrusted.pem\nkey = @/untrusted.key\n", EKEYREJECTED,
	       -1, 48);
	expect("a client without a certificate", CLIENT, MUTUAL, 0, ENOKEY, 116);
	check(wire[0].judged, "waits for it, too", "");
	expect("a key", PSK("client", "psk.a"), PSK("server", "psk.ab"), 0, 0, -1);
	expect("a key for one port", CLIENT "[port 7000]\nauthenticate = psk\npsk-file = @/psk.a\n",
	       SERVER "[port 7000]\nauthenticate = psk\npsk-file = @/psk.ab\n", 0, 0, -1);
	expect("an unknown key", PSK("client", "psk.c"), PSK("server", "psk.ab"), -1, EACCES, 115);
	expect("a wrong key", PSK("client", "psk.wrong"), PSK("server", "psk.ab"), -1, EKEYREJECTED, 51);
	expect("a key and a certificate", PSK("client", "psk.a"), SERVER, ENOKEY, -1, 40);
}

static void test_refusals(void)
{
	expect("a client without a section", SERVER, SERVER, ENOKEY, -1, 49);
	expect("a server without a section", CLIENT, CLIENT, -1, ECONNREFUSED, 49);
	expect("a peer to which nobody may connect", CLIENT "[peer 10.9.0.2]\nallow = no\n", SERVER, EPERM, -1, 49);
	expect("a peer that may not connect", CLIENT, SERVER "[peer 10.9.0.1]\nallow = no\n", -1, ECONNREFUSED, 49);
	expect("a port that is not served", CLIENT, SERVER "[port 7000]\nallow = no\n", -1, ECONNREFUSED, 49);
	expect("another port that is not served", CLIENT, SERVER "[port 40000]\nallow = no\n", 0, 0, -1);
}

static void test_ends(void)
{
	kernel_reset();
	kernel.agent = true;
	names();
	memset(ends, 0, sizeof(ends));
	configure(&ends[0], CLIENT);
	begin(0, 1);
	check(session_timeout(ends[0].session) <= 1, "the time that the kernel has left", "");
	while (session_timeout(ends[0].session))
		;
	turn(0);
	check(ends[0].err == -ETIMEDOUT && wire[0].result == ETIMEDOUT, "is over", "");
	kernel.unconnected = true;
	begin(0, 1000);
	check(!ends[0].session && kernel.closes[0] == 2, "a socket that has no peer any more", "");
	kernel_reset();
	kernel.agent = true;
	names();
	begin(0, 1000);
	turn(0);
	kernel.closed[0].reason = QRDMA_REASON_NO_ANSWER;
	wire[0].ended = true;
	turn(0);
	check(ends[0].err == -ETIMEDOUT && !kernel.faults, "one that ended has its reason", "");
	kernel_reset();
	kernel.agent = true;
	names();
	begin(0, 1000);
	turn(0);
	session_free(ends[0].session);
	ends[0].session = NULL;
	check(wire[0].result == ECONNABORTED && wire[0].alert == 90, "one that is given up tells the kernel", "");
	finish();
}

int main(int argc, char **argv)
{
	test_start(argc, argv);
	log_set_level(LOG_ERROR);
	put("psk.a", "a:000102030405060708090a0b0c0d0e0f\n");
	put("psk.ab", "b:100102030405060708090a0b0c0d0e0f\na:000102030405060708090a0b0c0d0e0f\n");
	put("psk.c", "c:000102030405060708090a0b0c0d0e0f\n");
	put("psk.wrong", "a:200102030405060708090a0b0c0d0e0f\n");
	test_causes();
	test_refusals();
	test_ends();
	return test_end();
}
