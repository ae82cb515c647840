// SPDX-License-Identifier: GPL-2.0
/*
 * The TLS half of the out-of-band handshake over a socket pair: who is let in, who is not and with which errno, and
 * that both ends export the same secret. argv[1]: folder made by certs.sh.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common.h"
#include "oob.h"
#include "tls.h"

/* One end of a session: what it was told to do and how it went. */
struct end {
	struct tls_options opt;
	int fd;
	int err;
	uint8_t secret[48];
	struct qrdma_reason why;
};

static void *end_run(void *arg)
{
	struct end *e = arg;
	struct tls *tls = NULL;
	uint8_t byte = 1;

	e->err = tls_new(&tls, e->fd, &e->opt, &e->why);
	if (!e->err)
		e->err = tls_export(tls, "EXPORTER-test", "context", 7, e->secret, sizeof(e->secret));
	/* In TLS 1.3 a client learns of a refusal only with the first byte after the handshake. */
	if (!e->err)
		e->err = tls_send(tls, &byte, 1, &e->why);
	if (!e->err)
		e->err = tls_recv(tls, &byte, 1, &e->why);
	tls_free(tls);
	shutdown(e->fd, SHUT_RDWR);
	return NULL;
}

static void pair_run(struct end *client, struct end *server)
{
	pthread_t thread;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		exit(1);
	client->fd = fd[0];
	server->fd = fd[1];
	server->opt.server = true;
	client->opt.timeout_ms = server->opt.timeout_ms = 20000;
	if (pthread_create(&thread, NULL, end_run, server))
		exit(1);
	end_run(client);
	pthread_join(thread, NULL);
	close(fd[0]);
	close(fd[1]);
}

/* Runs a session and checks the errno of each end; takes over the credentials. */
static void expect(const char *name, struct qrdma_cred *client_cred, const char *peer_name,
		   struct qrdma_cred *server_cred, bool mutual, int client_err, int server_err)
{
	struct end client = { .opt = { .cred = client_cred, .peer_name = peer_name } };
	struct end server = { .opt = { .cred = server_cred, .require_peer_cert = mutual } };
	char detail[700];

	pair_run(&client, &server);
	snprintf(detail, sizeof(detail), "client %d (%s), server %d (%s)", client.err, client.why.text,
		 server.err, server.why.text);
	check(client.err == client_err && server.err == server_err, name, detail);
	if (!client_err && !server_err)
		check(!memcmp(client.secret, server.secret, sizeof(client.secret)), "the same secret at both ends",
		      name);
	qrdma_cred_free(client_cred);
	qrdma_cred_free(server_cred);
}

static void test_x509(void)
{
	expect("server certificate", cred_x509(NULL, "ca.pem"), "server.test",
	       cred_x509("server", NULL), false, 0, 0);
	expect("server certificate by address", cred_x509(NULL, "ca.pem"), "10.9.0.2",
	       cred_x509("server", NULL), false, 0, 0);
	expect("mutual certificates", cred_x509("client", "ca.pem"), "server.test",
	       cred_x509("server", "ca.pem"), true, 0, 0);
	expect("wrong name", cred_x509(NULL, "ca.pem"), "other.test",
	       cred_x509("server", NULL), false, -EKEYREJECTED, -ECONNREFUSED);
	expect("wrong address", cred_x509(NULL, "ca.pem"), "10.9.0.1",
	       cred_x509("server", NULL), false, -EKEYREJECTED, -ECONNREFUSED);
	expect("expired", cred_x509(NULL, "ca.pem"), "server.test",
	       cred_x509("expired", NULL), false, -EKEYEXPIRED, -ECONNREFUSED);
	expect("untrusted authority", cred_x509(NULL, "ca.pem"), "server.test",
	       cred_x509("untrusted", NULL), false, -EKEYREJECTED, -ECONNREFUSED);
	expect("client without a certificate", cred_x509(NULL, "ca.pem"), "server.test",
	       cred_x509("server", "ca.pem"), true, -ECONNREFUSED, -EKEYREJECTED);
	expect("client of an untrusted authority", cred_x509("untrusted", "ca.pem"), "server.test",
	       cred_x509("server", "ca.pem"), true, -ECONNREFUSED, -EKEYREJECTED);
}

static void test_psk(void)
{
	expect("pre-shared key", cred_psk("alice", 1), NULL, cred_psk("alice", 1), false, 0, 0);
	expect("wrong key", cred_psk("alice", 1), NULL, cred_psk("alice", 2), false, -ECONNREFUSED, -EPROTO);
	expect("unknown identity", cred_psk("bob", 1), NULL, cred_psk("alice", 1), false, -ECONNREFUSED, -EPROTO);
	expect("key against certificate", cred_psk("alice", 1), NULL, cred_x509("server", NULL), false,
	       -ENOKEY, -ECONNREFUSED);
}

static int setup_error(struct tls_options *opt)
{
	struct qrdma_reason why;
	struct tls *tls;

	return tls_new(&tls, -1, opt, &why);
}

static void test_refusals(void)
{
	struct qrdma_cred *empty = cred_x509(NULL, NULL);
	struct qrdma_cred *trust = cred_x509(NULL, "ca.pem");
	struct tls_options opt = { .timeout_ms = 1000 };
	uint8_t key[64] = { 0 };

	check(setup_error(&opt) == -EINVAL, "no credentials", "");
	opt.cred = empty;
	check(setup_error(&opt) == -ENOKEY, "client that trusts nobody", "");
	opt.server = true;
	check(setup_error(&opt) == -ENOKEY, "server without a certificate", "");
	opt.server = false;
	opt.cred = trust;
	check(setup_error(&opt) == -EINVAL, "client without a name to verify", "");
	check(qrdma_cred_set_x509(empty, path("none.pem"), path("none.key")) == -ENOENT, "no such certificate", "");
	check(qrdma_cred_set_x509(empty, path("server.pem"), path("client.key")) == -EINVAL,
	      "key of another certificate", "");
	check(qrdma_cred_set_trust(empty, path("server.key")) < 0, "a key is no authority", "");
	check(qrdma_cred_set_psk(empty, "a", key, 15) == -EINVAL, "key too short", "");
	check(qrdma_cred_set_psk(empty, "a", key, 65) == -EINVAL, "key too long", "");
	check(qrdma_cred_set_psk(empty, "a:b", key, 16) == -EINVAL, "identity with a colon", "");
	check(qrdma_cred_set_psk(empty, "", key, 16) == -EINVAL, "identity empty", "");
	check(!qrdma_cred_set_psk(empty, "a", key, 16) && qrdma_cred_set_psk(empty, "a", key, 16) == -EEXIST,
	      "identity twice", "");
	qrdma_cred_free(empty);
	qrdma_cred_free(trust);
	qrdma_cred_free(NULL);
}

static int psk_file(const char *content, mode_t mode, const char *identity)
{
	struct qrdma_cred *cred;
	const char *name = path("psk");
	FILE *f = fopen(name, "w");
	int err;

	if (!f || fputs(content, f) < 0 || fclose(f) || chmod(name, mode) || qrdma_cred_new(&cred))
		exit(1);
	err = qrdma_cred_set_psk_file(cred, name, identity);
	qrdma_cred_free(cred);
	unlink(name);
	return err;
}

#define HEX16 "000102030405060708090a0b0c0d0e0f"

static void test_psk_file(void)
{
	check(!psk_file("# a comment\n\na:" HEX16 "\nb:" HEX16, 0600, NULL), "file of keys", "");
	check(!psk_file("a:" HEX16 "\nb:" HEX16 "\n", 0600, "b"), "one identity of a file", "");
	check(psk_file("a:" HEX16 "\n", 0600, "c") == -ENOKEY, "identity that is not in the file", "");
	check(psk_file("", 0600, NULL) == -ENOKEY, "empty file", "");
	check(psk_file("a:" HEX16 "\n", 0604, NULL) == -EACCES, "file that others can read", "");
	check(psk_file("a" HEX16 "\n", 0600, NULL) == -EINVAL, "line without a colon", "");
	check(psk_file("a:0g\n", 0600, NULL) == -EINVAL, "line that is not hexadecimal", "");
	check(psk_file("a:" HEX16 HEX16 HEX16 HEX16 HEX16 HEX16 HEX16 HEX16 HEX16 HEX16 "\n", 0600, NULL) == -EINVAL,
	      "line too long", "");
}

static int oob_error(struct qrdma_oob_options *opt)
{
	struct qrdma_reason why;

	return qrdma_oob_connect(-1, opt, &why);
}

static void test_options(void)
{
	const uint32_t ours[] = { QRDMA_CIPHER_AES_GCM_256, QRDMA_CIPHER_AES_GCM_128 };
	const uint16_t theirs[] = { __builtin_bswap16(51), __builtin_bswap16(52) };
	const uint32_t bad[] = { 50 };
	struct qrdma_oob_options opt = { .size = sizeof(opt) - 1 };

	check(oob_error(NULL) == -EINVAL, "no options", "");
	check(oob_error(&opt) == -EINVAL, "options of a wrong size", "");
	opt.size = sizeof(opt);
	opt.ciphers = bad;
	opt.n_ciphers = 1;
	check(oob_error(&opt) == -EINVAL, "unknown cipher", "");
	opt.ciphers = ours;
	opt.n_ciphers = 9;
	check(oob_error(&opt) == -EINVAL, "too many ciphers", "");
	opt.n_ciphers = 2;
	opt.timeout_ms = -1;
	check(oob_error(&opt) == -EINVAL, "negative time-out", "");
	check(oob_choose(ours, 2, theirs, 2) == QRDMA_CIPHER_AES_GCM_256, "our order decides", "");
	check(oob_choose(ours, 1, theirs, 1) == 0, "no cipher in common", "");
	check(qrdma_cipher_by_name("aes-128-ccm") == QRDMA_CIPHER_AES_CCM_128 && !qrdma_cipher_by_name("rot13") &&
	      !qrdma_cipher_by_name(NULL) && !qrdma_cipher_name(0), "names of ciphers", "");
}

int main(int argc, char **argv)
{
	test_start(argc, argv);
	unlink(path("keylog"));
	/* before the TLS library is used for the first time: it looks once */
	setenv("SSLKEYLOGFILE", path("keylog"), 1);
	test_refusals();
	test_psk_file();
	test_options();
	test_psk();
	test_x509();
	check(access(path("keylog"), F_OK), "no key log by the environment", "SSLKEYLOGFILE was heeded");
	return test_end();
}
