// SPDX-License-Identifier: GPL-2.0
/*
 * The in-band handshake on a connection that is made of queues: steps and blocking calls, full sockets, refusals of
 * either end and of the kernel, time-outs, key log, tickets. argv[1]: folder made by certs.sh.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common.h"
#include "wire.h"

/* Both ends of one run. */
static struct run {
	struct qrdma_handshake_options opt[2];
	struct qrdma_handshake *hs[2];
	int err[2];
	struct qrdma_reason why[2];
} run;

static const char *run_text(void)
{
	static char text[1024];

	size_t len = 0;

	for (int i = 0; i < 2; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s %d (%s) result %d alert %d broken %d ",
				i ? "server" : "client", run.err[i], run.why[i].text, wire[i].result, wire[i].alert,
				wire[i].broken);
	return text;
}

/* A client that trusts the test authority, and a server that it has a certificate of. */
static void run_init(void)
{
	wire_reset();
	memset(&run, 0, sizeof(run));
	for (int i = 0; i < 2; i++)
		run.opt[i].size = sizeof(run.opt[i]);
	run.opt[0].cred = cred_x509(NULL, "ca.pem");
	run.opt[0].peer_name = "server.test";
	run.opt[1].cred = cred_x509("server", "ca.pem");
}

static void run_end(void)
{
	for (int i = 0; i < 2; i++) {
		qrdma_handshake_free(run.hs[i]);
		qrdma_cred_free((struct qrdma_cred *)run.opt[i].cred);
		run.hs[i] = NULL;
	}
}

static void run_new(void)
{
	for (int i = 0; i < 2; i++) {
		run.err[i] = hs_new(&run.hs[i], &wire_transport, i, i, &run.opt[i], &run.why[i]);
		if (!run.err[i])
			run.err[i] = -EAGAIN;
	}
}

/* Steps in turn, at most @max of them. */
static void run_steps(int max)
{
	for (int n = 0; n < max && (run.err[0] == -EAGAIN || run.err[1] == -EAGAIN); n++)
		for (int i = 0; i < 2; i++)
			if (run.err[i] == -EAGAIN)
				run.err[i] = qrdma_handshake_step(run.hs[i], &run.why[i]);
}

static bool run_good(void)
{
	for (int i = 0; i < 2; i++) {
		if (run.err[i] || wire[i].result || wire[i].broken || run.why[i].error ||
		    wire[i].peer_params_len != 60u + !i)
			return false;
		if (memcmp(wire[i].secrets[QRDMA_CRYPTO_APP][1], wire[!i].secrets[QRDMA_CRYPTO_APP][0],
			   QRDMA_CRYPTO_SECRET_SIZE))
			return false;
	}
	return true;
}

static void test_steps(void)
{
	run_init();
	run_new();
	run_steps(100);
	check(run_good() && !strcmp(qrdma_handshake_alpn(run.hs[0]), "qrdma") &&
	      !qrdma_handshake_resumed(run.hs[0]), "steps of both ends", run_text());
	check(!qrdma_handshake_step(run.hs[0], &run.why[0]) && !qrdma_handshake_step(run.hs[1], NULL),
	      "a step more changes nothing", run_text());
	run_end();
	check(!wire[0].broken && !wire[1].broken && !wire[0].result, "what is complete is not given up", run_text());

	run_init();
	wire[0].state = QRDMA_STATE_CONNECTING;
	run_new();
	run_steps(3);
	check(run.err[0] == -EAGAIN && qrdma_handshake_events(run.hs[0]) == POLLOUT &&
	      qrdma_handshake_events(run.hs[1]) == POLLIN && qrdma_handshake_timeout(run.hs[0]) > 0,
	      "a client waits for its connect()", run_text());
	wire[0].state = QRDMA_STATE_HANDSHAKE;
	run_steps(100);
	check(run_good(), "and goes on behind it", run_text());
	run_end();

	run_init();
	wire[1].late = 3;
	run_new();
	while (wire[1].result)
		run_steps(1);
	check(run.err[1] == -EAGAIN && qrdma_handshake_events(run.hs[1]) == POLLOUT && wire[1].late == 2,
	      "a server waits for the first packet of the client", run_text());
	run_steps(5);
	check(run_good() && !wire[1].late, "and is done then", run_text());
	run_end();

	run_init();
	wire[1].late = 1000;
	run_new();
	while (wire[1].result)
		run_steps(1);
	wire[1].late = 0;
	wire[1].state = QRDMA_STATE_CLOSED;
	wire[1].end.error = ETIMEDOUT;
	run_steps(1);
	check(run.err[1] == -ETIMEDOUT && !wire[1].broken, "or hears that there is none", run_text());
	run_end();

	run_init();
	wire[0].room = wire[1].room = 7;
	wire[0].busy = 3;
	wire[1].busy = 5;
	run_new();
	run.err[0] = qrdma_handshake_step(run.hs[0], &run.why[0]);
	check(run.err[0] == -EAGAIN && qrdma_handshake_events(run.hs[0]) == (POLLIN | POLLOUT), "a full socket",
	      run_text());
	run_steps(2000);
	check(run_good(), "seven bytes at a time", run_text());
	run_end();
}

static void server_turn(void)
{
	if (run.err[1] == -EAGAIN)
		run.err[1] = qrdma_handshake_step(run.hs[1], &run.why[1]);
}

static void test_blocking(void)
{
	run_init();
	run_new();
	qrdma_handshake_free(run.hs[0]);
	run.hs[0] = NULL;
	wire_reset();
	wire_turn = server_turn;
	run.err[0] = hs_run(&wire_transport, 0, false, &run.opt[0], &run.why[0]);
	server_turn();
	check(run_good(), "a client that blocks", run_text());
	run_end();

	run_init();
	run.opt[0].timeout_ms = 1;
	wire[0].silent = true;
	run.err[0] = hs_run(&wire_transport, 0, false, &run.opt[0], &run.why[0]);
	check(run.err[0] == -ETIMEDOUT && wire[0].result == ETIMEDOUT && run.why[0].error == -ETIMEDOUT,
	      "a peer that does not answer", run_text());
	run_end();
}

static void bad(const char *name, int client_err, int server_err, int finder, int alert)
{
	run_new();
	run_steps(100);
	check(run.err[0] == client_err && run.err[1] == server_err && wire[finder].result == -run.err[finder] &&
	      wire[finder].alert == alert && wire[!finder].result <= 0 && !wire[0].broken && !wire[1].broken &&
	      run.why[0].error == client_err && run.why[1].error == server_err, name, run_text());
	run_end();
}

static void test_refusals(void)
{
	static const char *const alpn[] = { "other" };

	run_init();
	run.opt[0].peer_name = "other.test";
	bad("wrong name", -EKEYREJECTED, -EKEYREJECTED, 0, 42);
	run_init();
	qrdma_cred_free((struct qrdma_cred *)run.opt[1].cred);
	run.opt[1].cred = cred_x509("expired", NULL);
	bad("expired", -EKEYEXPIRED, -EKEYEXPIRED, 0, 45);
	run_init();
	run.opt[0].alpn = alpn;
	run.opt[0].n_alpn = 1;
	bad("no protocol in common", -EPROTONOSUPPORT, -EPROTONOSUPPORT, 1, 120);
	/* the client is done by the time that the server refuses it */
	run_init();
	run.opt[1].require_peer_cert = 1;
	bad("client without a certificate", 0, -ENOKEY, 1, 116);
	run_init();
	qrdma_cred_free((struct qrdma_cred *)run.opt[0].cred);
	qrdma_cred_free((struct qrdma_cred *)run.opt[1].cred);
	run.opt[0].cred = cred_psk("bob", 1);
	run.opt[1].cred = cred_psk("alice", 1);
	bad("unknown identity", -EACCES, -EACCES, 1, 115);
}

static void test_kernel(void)
{
	run_init();
	wire[1].refuse_params = EPROTO;
	run_new();
	run_steps(100);
	check(run.err[1] == -EPROTO && wire[1].result == -1 && run.err[0] == -ECONNREFUSED && wire[0].result == -1,
	      "parameters that the kernel refuses", run_text());
	run_end();
	run_init();
	wire[0].refuse_secret = ENOPKG;
	bad("a cipher that the kernel lacks", -ENOPKG, -ECONNREFUSED, 0, 80);
	run_init();
	wire[0].state = QRDMA_STATE_CLOSED;
	wire[0].end.error = EHOSTUNREACH;
	run_new();
	run_steps(1);
	check(run.err[0] == -EHOSTUNREACH, "a connect() that failed", run_text());
	run_end();
	run_init();
	wire[0].state = QRDMA_STATE_INIT;
	run_new();
	run_steps(1);
	check(run.err[0] == -ENOTCONN, "a socket that is not connected", run_text());
	run_end();
	run_init();
	wire[0].state = QRDMA_STATE_ESTABLISHED;
	run_new();
	run_steps(1);
	check(run.err[0] == -EISCONN, "a socket that needs no handshake", run_text());
	run_end();
	run_init();
	run_new();
	run_steps(1);
	wire[0].ended = true;
	wire[0].end.error = ECONNRESET;
	wire[1].ended = true;
	wire[1].end.error = ETIMEDOUT;
	run_steps(10);
	check(run.err[0] == -ECONNRESET && run.err[1] == -ETIMEDOUT && wire[0].result == -1, "ends without a reason",
	      run_text());
	run_end();
	run_init();
	run_new();
	run_steps(1);
	qrdma_handshake_free(run.hs[0]);
	run.hs[0] = NULL;
	check(wire[0].result == ECONNABORTED && wire[0].alert == 90, "a handshake that is given up", run_text());
	run.err[0] = 0;
	run_steps(100);
	check(run.err[1] == -ECONNREFUSED, "and the peer hears of it", run_text());
	run_end();
}

static int option_error(int server)
{
	struct qrdma_handshake *hs = NULL;
	struct qrdma_reason why;
	int err = hs_new(&hs, &wire_transport, server, server, &run.opt[server], &why);

	qrdma_handshake_free(hs);
	return err == why.error ? err : 1;
}

static void test_options(void)
{
	static const char *const none[] = { NULL };
	struct qrdma_handshake *hs;
	struct qrdma_tickets *tickets;

	run_init();
	check(hs_new(&hs, &wire_transport, 0, false, NULL, NULL) == -EINVAL, "no options", "");
	run.opt[0].size--;
	check(option_error(0) == -EINVAL, "options of a wrong size", "");
	run.opt[0].size++;
	run.opt[0].timeout_ms = -1;
	check(option_error(0) == -EINVAL, "negative time-out", "");
	run.opt[0].timeout_ms = 0;
	run.opt[0].n_ciphers = 9;
	check(option_error(0) == -EINVAL, "too many ciphers", "");
	run.opt[0].n_ciphers = 0;
	run.opt[0].n_alpn = 1;
	check(option_error(0) == -EINVAL, "no list of protocols", "");
	run.opt[0].alpn = none;
	check(option_error(0) == -EINVAL, "protocol without a name", "");
	run.opt[0].n_alpn = 0;
	run.opt[0].peer_name = NULL;
	check(option_error(0) == -EINVAL, "no name to verify", "");
	run.opt[0].peer_name = "server.test";
	if (qrdma_tickets_new(&tickets, NULL, 0))
		exit(1);
	run.opt[0].tickets = tickets;
	check(option_error(0) == -EINVAL, "ticket key at a client", "");
	run.opt[0].tickets = NULL;
	run.opt[1].want_ticket = 1;
	check(option_error(1) == -EINVAL, "ticket at a server", "");
	run.opt[0].keylog_file = path("none/keylog");
	check(option_error(0) == -ENOENT, "key log that cannot be made", "");
	qrdma_tickets_free(tickets);
	run_end();
}

static void test_keylog(void)
{
	char file[512];
	char link[512];
	char text[4096] = "";
	struct stat st;
	FILE *f;

	strcpy(file, path("keylog-asked"));
	strcpy(link, path("keylog-link"));
	unlink(file);
	unlink(link);
	run_init();
	run.opt[1].keylog_file = file;
	run_new();
	run_steps(100);
	f = fopen(file, "r");
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	}
	check(run_good() && !stat(file, &st) && (st.st_mode & 0777) == 0600 &&
	      strstr(text, "SERVER_TRAFFIC_SECRET_0 "),
	      "key log, for its owner only", text);
	run_end();
	if (symlink(file, link))
		exit(1);
	run_init();
	run.opt[0].keylog_file = link;
	check(option_error(0) == -ELOOP, "key log through a link", "");
	run_end();
	check(access(path("keylog"), F_OK), "no key log by the environment", "SSLKEYLOGFILE was heeded");
	unlink(link);
	unlink(file);
}

static void test_tickets(void)
{
	static uint8_t ticket[16384];
	struct qrdma_tickets *tickets;
	ssize_t len;

	if (qrdma_tickets_new(&tickets, NULL, 0))
		exit(1);
	run_init();
	run.opt[0].want_ticket = 1;
	run.opt[1].tickets = tickets;
	run_new();
	check(qrdma_handshake_ticket(run.hs[0], ticket, sizeof(ticket)) == -EINVAL, "a ticket before its time", "");
	run_steps(100);
	check(qrdma_handshake_ticket(run.hs[0], ticket, 10) == -EMSGSIZE, "no room for a ticket", run_text());
	len = qrdma_handshake_ticket(run.hs[0], ticket, sizeof(ticket));
	check(run_good() && len > 0, "a ticket", run_text());
	check(qrdma_handshake_ticket(run.hs[0], ticket, sizeof(ticket)) == -ENODATA, "and no second one", run_text());
	run_end();

	run_init();
	run.opt[0].ticket = ticket;
	run.opt[0].ticket_len = len;
	run.opt[1].tickets = tickets;
	run_new();
	run_steps(100);
	check(run_good() && qrdma_handshake_resumed(run.hs[0]) && qrdma_handshake_resumed(run.hs[1]),
	      "the ticket shortens the next handshake", run_text());
	run_end();

	run_init();
	run.opt[0].want_ticket = 1;
	run_new();
	run_steps(100);
	memcpy(wire[0].data[QRDMA_CRYPTO_APP], "\4\0\0\2\0\0", 6);
	wire[0].len[QRDMA_CRYPTO_APP] = 6;
	check(run_good() && qrdma_handshake_ticket(run.hs[0], ticket, sizeof(ticket)) == -EPROTO,
	      "garbage for a ticket", run_text());
	run_end();
	qrdma_tickets_free(tickets);
}

static void test_ends(void)
{
	struct hs_end end = { .by_transport = true, .remote = true, .code = 0x100 + 45 };
	struct qrdma_reason why;

	check(hs_end_error(&end, &why) == -EKEYEXPIRED && why.text[0], "an alert in a close", why.text);
	end.code = 0x100 + 255;
	check(hs_end_error(&end, &why) == -ECONNREFUSED, "an alert that nobody knows", why.text);
	end.code = 2;
	check(hs_end_error(&end, &why) == -ECONNREFUSED, "CONNECTION_REFUSED", why.text);
	end.remote = false;
	end.code = 8;
	check(hs_end_error(&end, &why) == -EPROTO, "an error that this end found", why.text);
	end.code = 0x100 + 42;
	check(hs_end_error(&end, &why) == -ECONNABORTED, "an alert of this end", why.text);
	end.by_transport = false;
	end.error = ENODEV;
	check(hs_end_error(&end, &why) == -ENODEV, "an errno", why.text);
	/* not an AF_QRDMA socket */
	check(qrdma_get_close_reason(0, &why) < 0 && !why.error, "a close of something else", why.text);
	check(qrdma_handshake_self(0) < 0, "handshakes of something else", "");
}

int main(int argc, char **argv)
{
	test_start(argc, argv);
	unlink(path("keylog"));
	/* before the TLS library is used for the first time: it looks once */
	setenv("SSLKEYLOGFILE", path("keylog"), 1);
	test_options();
	test_steps();
	test_blocking();
	test_refusals();
	test_kernel();
	test_keylog();
	test_tickets();
	test_ends();
	return test_end();
}
