// SPDX-License-Identifier: GPL-2.0
/*
 * The in-band handshake through the system calls of its socket, as kernel.h answers them. argv[1]: folder made by
 * certs.sh.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common.h"
#include "kernel.h"

static struct qrdma_handshake *server;
static struct qrdma_reason server_why;
static int server_err;

static void server_turn(void)
{
	if (server_err == -EAGAIN)
		server_err = qrdma_handshake_step(server, &server_why);
}

/* A blocking client against a server in steps; what the client says; the server's is in server_err. */
static int both(const char *name, struct qrdma_reason *why)
{
	struct qrdma_handshake_options opt = { .size = sizeof(opt), .peer_name = name };
	struct qrdma_handshake_options server_opt = { .size = sizeof(server_opt) };
	struct qrdma_cred *cred = cred_x509(NULL, "ca.pem");
	struct qrdma_cred *server_cred = cred_x509("server", NULL);
	int err;

	kernel_reset();
	opt.cred = cred;
	server_opt.cred = server_cred;
	server_err = -EAGAIN;
	if (qrdma_handshake_new(&server, KERNEL_FD + 1, 1, &server_opt, NULL))
		exit(1);
	wire_turn = server_turn;
	err = qrdma_client_handshake(KERNEL_FD, &opt, why);
	for (int i = 0; i < 5; i++)
		server_turn();
	qrdma_handshake_free(server);
	qrdma_cred_free(cred);
	qrdma_cred_free(server_cred);
	return err;
}

static void test_reason(uint32_t reason, uint64_t code, int err, const char *name)
{
	struct qrdma_reason why;

	kernel_reset();
	kernel.closed[0].reason = reason;
	kernel.closed[0].code = code;
	wire[0].end.remote = true;
	check(!qrdma_get_close_reason(KERNEL_FD, &why) && why.error == err && !why.text[0] == !err, name, why.text);
}

int main(int argc, char **argv)
{
	struct qrdma_reason why;
	char detail[1024];
	int err;

	test_start(argc, argv);
	check(!qrdma_handshake_self(KERNEL_FD) && kernel.handshake[0] == QRDMA_HANDSHAKE_SELF && !kernel.handshake[1],
	      "handshakes of our own", "");
	err = both("server.test", &why);
	snprintf(detail, sizeof(detail), "client %d (%s), server %d (%s), faults %d, broken %d %d", err, why.text,
		 server_err, server_why.text, kernel.faults, wire[0].broken, wire[1].broken);
	check(!err && !server_err && !kernel.faults && !wire[0].broken && !wire[1].broken &&
	      !memcmp(wire[0].secrets[QRDMA_CRYPTO_APP][1], wire[1].secrets[QRDMA_CRYPTO_APP][0], 48) &&
	      wire[0].peer_params_len == 61 && wire[1].peer_params_len == 60, "a handshake by system calls", detail);
	err = both("other.test", &why);
	check(err == -EKEYREJECTED && server_err == -EKEYREJECTED && wire[0].alert == 42 && !kernel.faults,
	      "and its refusal", why.text);
	test_reason(QRDMA_REASON_NONE, 0, 0, "no reason");
	test_reason(QRDMA_REASON_HANDSHAKE, 0x100 + 116, -ENOKEY, "a reason that is an alert");
	test_reason(QRDMA_REASON_IDLE, 0, -ETIMEDOUT, "a reason of this end");
	test_reason(QRDMA_REASON_PEER_ERROR, 3, -ECONNREFUSED, "an error of protocol");
	test_reason(QRDMA_REASON_PEER_CLOSE, 0, -ECONNRESET, "a close by the peer's application");
	test_reason(QRDMA_REASON_PEER_LOST, 0, -ECONNRESET, "a peer that was restarted");
	return test_end();
}
