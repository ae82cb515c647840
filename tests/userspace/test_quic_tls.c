// SPDX-License-Identifier: GPL-2.0
/*
 * The TLS driver of the in-band handshake, client against server in memory: who is let in, who is not, with which errno
 * and alert; and what a peer can do to it with bytes. argv[1]: folder made by certs.sh.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <gnutls/gnutls.h>
#include "common.h"
#include "quic_pair.h"

#define EXT_ALPN	16
#define EXT_PARAMS	57

/* Alerts of RFC 8446 s6 that are expected here. */
enum {
	UNEXPECTED_MESSAGE = 10, HANDSHAKE_FAILURE = 40, BAD_CERTIFICATE = 42, CERTIFICATE_EXPIRED = 45,
	ILLEGAL_PARAMETER = 47, UNKNOWN_CA = 48, DECODE_ERROR = 50, DECRYPT_ERROR = 51, MISSING_EXTENSION = 109,
	UNKNOWN_PSK_IDENTITY = 115, CERTIFICATE_REQUIRED = 116, NO_APPLICATION_PROTOCOL = 120,
};

static void pair_free(struct pair *p)
{
	pair_end(p);
	qrdma_cred_free((struct qrdma_cred *)p->side[PAIR_CLIENT].opt.cred);
	qrdma_cred_free((struct qrdma_cred *)p->side[PAIR_SERVER].opt.cred);
}

/* Runs it, checks that it completes, and frees it. */
static void good(const char *name, struct pair *p)
{
	pair_run(p);
	check(pair_good(p), name, pair_text(p));
	pair_free(p);
}

/* Runs it, checks the errno of each end and the alert of the one that found the fault, and frees it. */
static void bad(const char *name, struct pair *p, int client_err, int server_err, int finder, int alert)
{
	pair_run(p);
	check(p->side[PAIR_CLIENT].err == client_err && p->side[PAIR_SERVER].err == server_err &&
	      p->side[finder].alert == alert && p->side[finder].why.text[0], name, pair_text(p));
	pair_free(p);
}

static struct pair *pair_x509(struct pair *p)
{
	pair_init(p, cred_x509(NULL, "ca.pem"), "server.test", cred_x509("server", NULL));
	return p;
}

static struct pair *pair_mutual(struct pair *p, const char *client)
{
	pair_init(p, cred_x509(client, "ca.pem"), "server.test", cred_x509("server", "ca.pem"));
	p->side[PAIR_SERVER].opt.require_peer_cert = true;
	return p;
}

static struct pair *pair_psk(struct pair *p, const char *identity, uint8_t fill)
{
	pair_init(p, cred_psk(identity, fill), NULL, cred_psk("alice", 1));
	return p;
}

static void test_good(void)
{
	struct pair p;

	good("server certificate", pair_x509(&p));
	good("mutual certificates", pair_mutual(&p, "client"));
	pair_mutual(&p, "client")->side[PAIR_SERVER].opt.peer_name = "client.test";
	good("mutual certificates, both by name", &p);
	pair_init(&p, cred_x509(NULL, "ca.pem"), "10.9.0.2", cred_x509("server", NULL));
	good("server certificate by address", &p);
	good("pre-shared key", pair_psk(&p, "alice", 1));
}

static void test_x509(void)
{
	struct pair p;

	pair_init(&p, cred_x509(NULL, "ca.pem"), "other.test", cred_x509("server", NULL));
	bad("wrong name", &p, -EKEYREJECTED, -EKEYREJECTED, PAIR_CLIENT, BAD_CERTIFICATE);
	pair_init(&p, cred_x509(NULL, "ca.pem"), "10.9.0.1", cred_x509("server", NULL));
	bad("wrong address", &p, -EKEYREJECTED, -EKEYREJECTED, PAIR_CLIENT, BAD_CERTIFICATE);
	pair_init(&p, cred_x509(NULL, "ca.pem"), "server.test", cred_x509("expired", NULL));
	bad("expired", &p, -EKEYEXPIRED, -EKEYEXPIRED, PAIR_CLIENT, CERTIFICATE_EXPIRED);
	pair_init(&p, cred_x509(NULL, "ca.pem"), "server.test", cred_x509("untrusted", NULL));
	bad("untrusted authority", &p, -EKEYREJECTED, -EKEYREJECTED, PAIR_CLIENT, UNKNOWN_CA);
	pair_init(&p, cred_x509(NULL, "ca.pem"), "server.test", cred_x509("namesake", NULL));
	bad("a client's certificate at a server", &p, -EKEYREJECTED, -EKEYREJECTED, PAIR_CLIENT, BAD_CERTIFICATE);
	bad("no certificate", pair_mutual(&p, NULL), -ENOKEY, -ENOKEY, PAIR_SERVER, CERTIFICATE_REQUIRED);
	bad("client of an untrusted authority", pair_mutual(&p, "untrusted"), -EKEYREJECTED, -EKEYREJECTED, PAIR_SERVER,
	    UNKNOWN_CA);
	bad("a server's certificate at a client", pair_mutual(&p, "server"), -EKEYREJECTED, -EKEYREJECTED, PAIR_SERVER,
	    BAD_CERTIFICATE);
	pair_mutual(&p, "client")->side[PAIR_SERVER].opt.peer_name = "server.test";
	bad("client of another name", &p, -EKEYREJECTED, -EKEYREJECTED, PAIR_SERVER, BAD_CERTIFICATE);
	bad("expired client", pair_mutual(&p, "expired"), -EKEYEXPIRED, -EKEYEXPIRED, PAIR_SERVER, CERTIFICATE_EXPIRED);
}

static void test_psk(void)
{
	struct pair p;

	bad("wrong key", pair_psk(&p, "alice", 2), -EKEYREJECTED, -EKEYREJECTED, PAIR_SERVER, DECRYPT_ERROR);
	bad("unknown identity", pair_psk(&p, "bob", 1), -EACCES, -EACCES, PAIR_SERVER, UNKNOWN_PSK_IDENTITY);
	bad("identity that begins like ours", pair_psk(&p, "alic", 1), -EACCES, -EACCES, PAIR_SERVER,
	    UNKNOWN_PSK_IDENTITY);
	pair_init(&p, cred_psk("alice", 1), NULL, cred_x509("server", NULL));
	bad("key against certificate", &p, -ENOKEY, -ECONNREFUSED, PAIR_CLIENT, HANDSHAKE_FAILURE);
	pair_init(&p, cred_x509(NULL, "ca.pem"), "server.test", cred_psk("alice", 1));
	bad("certificate against key", &p, -ECONNREFUSED, -ENOKEY, PAIR_SERVER, HANDSHAKE_FAILURE);
}

static void test_ciphers(void)
{
	static const uint32_t all[] = { QRDMA_CIPHER_AES_GCM_128, QRDMA_CIPHER_AES_GCM_256, QRDMA_CIPHER_AES_CCM_128,
					QRDMA_CIPHER_CHACHA20 };
	static const uint32_t turned[] = { QRDMA_CIPHER_CHACHA20, QRDMA_CIPHER_AES_CCM_128 };
	struct pair p;
	char name[64];

	for (size_t i = 0; i < 4; i++) {
		pair_x509(&p);
		p.side[PAIR_CLIENT].opt.ciphers = &all[i];
		p.side[PAIR_CLIENT].opt.n_ciphers = 1;
		pair_run(&p);
		snprintf(name, sizeof(name), "cipher %s", qrdma_cipher_name(all[i]));
		check(pair_good(&p) && p.side[PAIR_SERVER].secrets[QRDMA_CRYPTO_APP][1].cipher == all[i], name,
		      pair_text(&p));
		pair_free(&p);
	}
	pair_x509(&p);
	p.side[PAIR_SERVER].opt.ciphers = turned;
	p.side[PAIR_SERVER].opt.n_ciphers = 2;
	pair_run(&p);
	check(pair_good(&p) && p.side[PAIR_CLIENT].secrets[QRDMA_CRYPTO_APP][1].cipher == QRDMA_CIPHER_CHACHA20,
	      "the server's order of ciphers decides", pair_text(&p));
	pair_free(&p);
	pair_x509(&p);
	p.side[PAIR_SERVER].opt.ciphers = turned;
	p.side[PAIR_SERVER].opt.n_ciphers = 2;
	p.side[PAIR_CLIENT].opt.ciphers = all;
	p.side[PAIR_CLIENT].opt.n_ciphers = 2;
	bad("no cipher in common", &p, -ECONNREFUSED, -EPROTONOSUPPORT, PAIR_SERVER, HANDSHAKE_FAILURE);
	pair_psk(&p, "alice", 1);
	p.side[PAIR_CLIENT].opt.ciphers = turned;
	p.side[PAIR_CLIENT].opt.n_ciphers = 1;
	good("pre-shared key with another cipher", &p);
}

static void test_alpn(void)
{
	static const char *const ours[] = { "one", "two" };
	static const char *const theirs[] = { "three", "two", "one" };
	struct pair p;

	pair_x509(&p);
	p.side[PAIR_CLIENT].opt.alpn = ours;
	bad("no protocol in common", &p, -EPROTONOSUPPORT, -EPROTONOSUPPORT, PAIR_SERVER, NO_APPLICATION_PROTOCOL);
	pair_x509(&p);
	p.side[PAIR_CLIENT].opt.alpn = ours;
	p.side[PAIR_CLIENT].opt.n_alpn = 2;
	p.side[PAIR_SERVER].opt.alpn = theirs;
	p.side[PAIR_SERVER].opt.n_alpn = 3;
	pair_run(&p);
	check(pair_good(&p) && !strcmp(quic_tls_alpn(p.side[PAIR_CLIENT].quic), "two") &&
	      !strcmp(quic_tls_alpn(p.side[PAIR_SERVER].quic), "two"), "the server's order of protocols decides",
	      pair_text(&p));
	pair_free(&p);
}

/* F11: a ClientHello spans packets, and so does all that follows. */
static void test_pieces(void)
{
	static const size_t pieces[] = { 1, 2, 3, 5, 100, 997 };
	static const char *const many[] = {
		"a-protocol-with-a-name-as-lon-1", "a-protocol-with-a-name-as-lon-2", "a-protocol-with-a-name-as-lon-3",
		"a-protocol-with-a-name-as-lon-4", "a-protocol-with-a-name-as-lon-5", "a-protocol-with-a-name-as-lon-6",
		"a-protocol-with-a-name-as-lon-7", "qrdma",
	};
	uint8_t params[QUIC_TLS_PARAMS_MAX] = { 0 };
	struct pair p;
	char name[64];

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		pair_mutual(&p, "client");
		p.piece = pieces[i];
		/* and a long one */
		p.side[PAIR_CLIENT].opt.params = params;
		p.side[PAIR_CLIENT].opt.params_len = sizeof(params);
		p.side[PAIR_CLIENT].opt.alpn = many;
		p.side[PAIR_CLIENT].opt.n_alpn = 8;
		snprintf(name, sizeof(name), "long messages in pieces of %zu bytes", pieces[i]);
		good(name, &p);
	}
}

/* Where the extension's type stands in a message, 0 when it is not there; good enough for messages of our own. */
static size_t find_ext(const uint8_t *data, size_t len, uint16_t type, uint16_t ext_len)
{
	for (size_t i = 4; i + 4 <= len; i++)
		if ((data[i] << 8 | data[i + 1]) == type && (data[i + 2] << 8 | data[i + 3]) == ext_len)
			return i;
	return 0;
}

static size_t edit_no_params(struct pair *p, int from, uint8_t level, uint8_t *data, size_t len)
{
	size_t at = find_ext(data, len, EXT_PARAMS, p->side[from].opt.params_len);

	(void)level;
	/* an extension that nobody knows */
	if (from == (int)p->arg && at)
		data[at] = 0xfa;
	return len;
}

static size_t edit_no_alpn(struct pair *p, int from, uint8_t level, uint8_t *data, size_t len)
{
	size_t at = find_ext(data, len, EXT_ALPN, 8);

	(void)level;
	if (from == (int)p->arg && at)
		data[at] = 0xfa;
	return len;
}

/* A legacy_session_id of 32 bytes, as TLS over TCP sends it. */
static size_t edit_session_id(struct pair *p, int from, uint8_t level, uint8_t *data, size_t len)
{
	size_t body;

	(void)p;
	if (from != PAIR_CLIENT || level != QRDMA_CRYPTO_INITIAL)
		return len;
	memmove(data + 39 + 32, data + 39, len - 39);
	memset(data + 39, 0x5a, 32);
	data[38] = 32;
	body = len + 32 - 4;
	data[1] = body >> 16;
	data[2] = body >> 8;
	data[3] = body;
	return len + 32;
}

/* Bytes behind ServerHello at the level whose keys have just been replaced. */
static size_t edit_left_over(struct pair *p, int from, uint8_t level, uint8_t *data, size_t len)
{
	if (from != (int)p->arg || (from == PAIR_SERVER && level != QRDMA_CRYPTO_INITIAL) ||
	    (from == PAIR_CLIENT && level != QRDMA_CRYPTO_HANDSHAKE))
		return len;
	data[len] = 2;
	return len + 1;
}

static size_t edit_flip(struct pair *p, int from, uint8_t level, uint8_t *data, size_t len)
{
	(void)level;
	if (from == (int)(p->arg & 1) && p->side[from].sends == 1 && (p->arg >> 1) < len) {
		data[p->arg >> 1] ^= 0x21;
		p->edited = true;
	}
	return len;
}

static void test_rules(void)
{
	struct pair p;

	pair_x509(&p);
	p.edit = edit_no_params;
	p.arg = PAIR_CLIENT;
	bad("client without transport parameters", &p, -ECONNREFUSED, -EPROTO, PAIR_SERVER, MISSING_EXTENSION);
	pair_x509(&p);
	p.edit = edit_no_params;
	p.arg = PAIR_SERVER;
	bad("server without transport parameters", &p, -EPROTO, -ECONNREFUSED, PAIR_CLIENT, MISSING_EXTENSION);
	pair_x509(&p);
	p.edit = edit_no_alpn;
	p.arg = PAIR_CLIENT;
	bad("client without ALPN", &p, -EPROTONOSUPPORT, -EPROTONOSUPPORT, PAIR_SERVER, NO_APPLICATION_PROTOCOL);
	pair_x509(&p);
	p.edit = edit_no_alpn;
	p.arg = PAIR_SERVER;
	bad("server without ALPN", &p, -EPROTONOSUPPORT, -EPROTONOSUPPORT, PAIR_CLIENT, NO_APPLICATION_PROTOCOL);
	pair_x509(&p);
	p.edit = edit_session_id;
	bad("compatibility mode", &p, -ECONNREFUSED, -EPROTO, PAIR_SERVER, ILLEGAL_PARAMETER);
	pair_x509(&p);
	p.edit = edit_left_over;
	p.arg = PAIR_SERVER;
	bad("bytes behind ServerHello", &p, -EPROTO, -ECONNREFUSED, PAIR_CLIENT, UNEXPECTED_MESSAGE);
	pair_x509(&p);
	p.edit = edit_left_over;
	p.arg = PAIR_CLIENT;
	bad("bytes behind the client's Finished", &p, -ECONNREFUSED, -EPROTO, PAIR_SERVER, UNEXPECTED_MESSAGE);
}

/* Bytes given to one end of a finished or fresh session: errno, and the alert of its last event. */
static int feed(struct pair_side *s, uint8_t level, const void *data, size_t len)
{
	const struct quic_event *event;
	int err = quic_tls_input(s->quic, level, data, len);

	while ((event = quic_tls_event(s->quic))) {
		if (event->type == QUIC_EVENT_FAILED)
			s->alert = event->alert;
		quic_tls_event_done(s->quic);
	}
	return err;
}

static void feed_fresh(const char *name, int to, uint8_t level, const char *data, size_t len, int err, int alert)
{
	struct pair p;
	int got;

	pair_x509(&p);
	for (int i = 0; i < 2; i++)
		quic_tls_new(&p.side[i].quic, &p.side[i].opt, &p.side[i].why);
	got = feed(&p.side[to], level, data, len);
	check(got == err && p.side[to].alert == alert && feed(&p.side[to], level, data, len) == err, name,
	      quic_tls_reason(p.side[to].quic)->text);
	pair_free(&p);
}

static void feed_complete(const char *name, int to, uint8_t level, const char *data, size_t len, int err, int alert)
{
	struct pair p;
	int got;

	pair_x509(&p);
	pair_run(&p);
	got = feed(&p.side[to], level, data, len);
	check(got == err && p.side[to].alert == alert, name, quic_tls_reason(p.side[to].quic)->text);
	pair_free(&p);
}

static void test_messages(void)
{
	feed_fresh("a message that is too long", PAIR_SERVER, QRDMA_CRYPTO_INITIAL, "\1\377\377\377", 4, -EPROTO,
		   DECODE_ERROR);
	feed_fresh("a hello that is too long", PAIR_CLIENT, QRDMA_CRYPTO_INITIAL, "\2\0\77\375", 4, -EPROTO,
		   DECODE_ERROR);
	feed_fresh("ServerHello at a server", PAIR_SERVER, QRDMA_CRYPTO_INITIAL, "\2\0\0\0", 4, -EPROTO,
		   UNEXPECTED_MESSAGE);
	feed_fresh("an empty ClientHello", PAIR_SERVER, QRDMA_CRYPTO_INITIAL, "\1\0\0\0", 4, -EPROTO, DECODE_ERROR);
	feed_fresh("an empty ServerHello", PAIR_CLIENT, QRDMA_CRYPTO_INITIAL, "\2\0\0\0", 4, -EPROTO, DECODE_ERROR);
	feed_fresh("a TLS record", PAIR_SERVER, QRDMA_CRYPTO_INITIAL, "\26\3\1\2\0", 5, -EPROTO, UNEXPECTED_MESSAGE);
	feed_fresh("a level that has no keys yet", PAIR_SERVER, QRDMA_CRYPTO_HANDSHAKE, "\24\0\0\0", 4, -EPROTO,
		   UNEXPECTED_MESSAGE);
	feed_fresh("a level that has no CRYPTO frames", PAIR_SERVER, QRDMA_CRYPTO_EARLY, "\5\0\0\0", 4, -EPROTO,
		   UNEXPECTED_MESSAGE);
	feed_complete("KeyUpdate at a client", PAIR_CLIENT, QRDMA_CRYPTO_APP, "\30\0\0\1\0", 5, -EPROTO,
		      UNEXPECTED_MESSAGE);
	feed_complete("KeyUpdate at a server", PAIR_SERVER, QRDMA_CRYPTO_APP, "\30\0\0\1\0", 5, -EPROTO,
		      UNEXPECTED_MESSAGE);
	feed_complete("CertificateRequest after the handshake", PAIR_CLIENT, QRDMA_CRYPTO_APP, "\15\0\0\0", 4, -EPROTO,
		      UNEXPECTED_MESSAGE);
	feed_complete("a ticket at a server", PAIR_SERVER, QRDMA_CRYPTO_APP, "\4\0\0\0", 4, -EPROTO,
		      UNEXPECTED_MESSAGE);
	feed_complete("a ticket that nobody wants", PAIR_CLIENT, QRDMA_CRYPTO_APP, "\4\0\0\1\0", 5, 0, -1);
	feed_complete("an old level", PAIR_CLIENT, QRDMA_CRYPTO_INITIAL, "\2\0\0\0", 4, -EPROTO, UNEXPECTED_MESSAGE);
}

/* Nothing that is changed on the way leads to a connection, nor to a crash; the seed of the noise is fixed. */
static void test_noise(void)
{
	size_t complete = 0;
	size_t edited = 0;
	size_t stuck = 0;
	char detail[64];
	struct pair p;

	for (size_t at = 0; at < 360; at += 3) {
		for (int from = 0; from < 2; from++) {
			pair_x509(&p);
			p.edit = edit_flip;
			p.arg = at << 1 | from;
			pair_run(&p);
			edited += p.edited;
			if (p.edited && p.side[PAIR_CLIENT].complete && p.side[PAIR_SERVER].complete)
				complete++;
			pair_free(&p);
		}
	}
	snprintf(detail, sizeof(detail), "%zu of %zu sessions complete", complete, edited);
	check(!complete && edited, "a changed byte", detail);
	srand(1);
	for (int i = 0; i < 200; i++) {
		uint8_t noise[300];
		int to = i & 1;

		pair_x509(&p);
		for (int k = 0; k < 2; k++)
			quic_tls_new(&p.side[k].quic, &p.side[k].opt, &p.side[k].why);
		for (size_t k = 0; k < sizeof(noise); k++)
			noise[k] = rand();
		/* as far as the message itself */
		noise[0] = to == PAIR_SERVER ? 1 : 2;
		noise[1] = 0;
		noise[2] = 0;
		noise[3] = sizeof(noise) - 4 - (i % 7);
		if (!feed(&p.side[to], QRDMA_CRYPTO_INITIAL, noise, sizeof(noise)))
			stuck++;
		pair_free(&p);
	}
	snprintf(detail, sizeof(detail), "%zu sessions go on", stuck);
	check(!stuck, "noise for a hello", detail);
}

static void test_keylog(void)
{
	static const char *const labels[] = {
		"CLIENT_HANDSHAKE_TRAFFIC_SECRET ", "SERVER_HANDSHAKE_TRAFFIC_SECRET ", "CLIENT_TRAFFIC_SECRET_0 ",
		"SERVER_TRAFFIC_SECRET_0 ",
	};
	bool all = true;
	struct pair p;

	pair_x509(&p);
	p.side[PAIR_CLIENT].opt.keylog = true;
	pair_run(&p);
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		all = all && strstr(p.side[PAIR_CLIENT].keylog, labels[i]);
	check(pair_good(&p) && all, "key log where it is asked for", p.side[PAIR_CLIENT].keylog);
	check(!p.side[PAIR_SERVER].keylog_len, "and nowhere else", p.side[PAIR_SERVER].keylog);
	pair_free(&p);
	check(access(path("keylog"), F_OK), "no key log by the environment", "SSLKEYLOGFILE was heeded");
}

/* A first session with tickets, whose ticket goes to @ticket. */
static size_t ticket_get(struct qrdma_tickets *tickets, bool mutual, uint8_t *ticket, size_t size)
{
	struct pair p;
	size_t len;

	if (mutual)
		pair_mutual(&p, "client");
	else
		pair_x509(&p);
	p.side[PAIR_SERVER].opt.tickets = tickets;
	p.side[PAIR_CLIENT].opt.want_ticket = true;
	pair_run(&p);
	len = p.side[PAIR_CLIENT].ticket_len;
	check(pair_good(&p) && len && len < size && !quic_tls_resumed(p.side[PAIR_CLIENT].quic), "a ticket comes",
	      pair_text(&p));
	memcpy(ticket, p.side[PAIR_CLIENT].ticket, len);
	pair_free(&p);
	return len;
}

static void ticket_use(const char *name, struct pair *p, struct qrdma_tickets *tickets, const uint8_t *ticket,
		       size_t len, bool resumed)
{
	p->side[PAIR_SERVER].opt.tickets = tickets;
	p->side[PAIR_CLIENT].opt.ticket = ticket;
	p->side[PAIR_CLIENT].opt.ticket_len = len;
	pair_run(p);
	check(pair_good(p) && quic_tls_resumed(p->side[PAIR_CLIENT].quic) == resumed &&
	      quic_tls_resumed(p->side[PAIR_SERVER].quic) == resumed, name, pair_text(p));
	pair_free(p);
}

static void test_tickets(void)
{
	static uint8_t ticket[16384];
	static const uint8_t key[64] = { 1, 2, 3 };
	struct qrdma_tickets *tickets;
	struct qrdma_tickets *same;
	struct qrdma_tickets *other;
	struct pair p;
	size_t len;

	check(qrdma_tickets_new(&tickets, key, 63) == -EINVAL, "ticket key of a wrong length", "");
	if (qrdma_tickets_new(&tickets, key, 64) || qrdma_tickets_new(&same, key, 64) ||
	    qrdma_tickets_new(&other, NULL, 0))
		exit(1);
	len = ticket_get(tickets, false, ticket, sizeof(ticket));
	ticket_use("a ticket shortens the next session", pair_x509(&p), tickets, ticket, len, true);
	ticket_use("also at another server with that key", pair_x509(&p), same, ticket, len, true);
	ticket_use("not at one with another key", pair_x509(&p), other, ticket, len, false);
	ticket_use("not at one without tickets", pair_x509(&p), NULL, ticket, len, false);
	pair_mutual(&p, "client");
	p.side[PAIR_SERVER].opt.tickets = tickets;
	p.side[PAIR_CLIENT].opt.ticket = ticket;
	p.side[PAIR_CLIENT].opt.ticket_len = len;
	bad("a ticket does not stand for a certificate that was never shown", &p, -ENOKEY, -ENOKEY, PAIR_SERVER,
	    CERTIFICATE_REQUIRED);
	pair_init(&p, cred_x509(NULL, "ca.pem"), "10.9.0.2", cred_x509("server", NULL));
	p.side[PAIR_CLIENT].opt.ticket = ticket;
	p.side[PAIR_CLIENT].opt.ticket_len = len;
	pair_run(&p);
	check(p.side[PAIR_CLIENT].err == -EINVAL, "a ticket of another server", pair_text(&p));
	pair_free(&p);
	pair_x509(&p);
	p.side[PAIR_CLIENT].opt.ticket = ticket;
	p.side[PAIR_CLIENT].opt.ticket_len = 50;
	pair_run(&p);
	check(p.side[PAIR_CLIENT].err == -EINVAL, "a ticket cut short", pair_text(&p));
	pair_free(&p);
	len = ticket_get(tickets, true, ticket, sizeof(ticket));
	ticket_use("a ticket stands for a certificate", pair_mutual(&p, "client"), tickets, ticket, len, true);
	pair_mutual(&p, "client")->side[PAIR_SERVER].opt.peer_name = "server.test";
	p.side[PAIR_SERVER].opt.tickets = tickets;
	p.side[PAIR_CLIENT].opt.ticket = ticket;
	p.side[PAIR_CLIENT].opt.ticket_len = len;
	bad("but not for a name that is not in it", &p, -EKEYREJECTED, -EKEYREJECTED, PAIR_SERVER, BAD_CERTIFICATE);
	qrdma_tickets_free(tickets);
	qrdma_tickets_free(same);
	qrdma_tickets_free(other);
	qrdma_tickets_free(NULL);
}

/*
 * A client that is not ours: its first guess of a key exchange is one that the server does not have, so that there is a
 * HelloRetryRequest and a second ClientHello (RFC 8446 s4.1.4).
 */
struct stranger {
	gnutls_session_t session;
	gnutls_certificate_credentials_t cred;
	uint8_t out[2][8192];		/* [level] */
	size_t out_len[2];
	int hellos;
};

static int stranger_message(gnutls_session_t session, gnutls_record_encryption_level_t level,
			    gnutls_handshake_description_t type, const void *data, size_t len)
{
	struct stranger *st = gnutls_session_get_ptr(session);
	int l = level != GNUTLS_ENCRYPTION_LEVEL_INITIAL;

	if (type == GNUTLS_HANDSHAKE_CHANGE_CIPHER_SPEC)
		return 0;
	st->hellos += type == GNUTLS_HANDSHAKE_CLIENT_HELLO;
	if (st->out_len[l] + len > sizeof(st->out[l]))
		return -1;
	memcpy(st->out[l] + st->out_len[l], data, len);
	st->out_len[l] += len;
	return 0;
}

static int stranger_params(gnutls_session_t session, gnutls_buffer_t out)
{
	(void)session;
	return gnutls_buffer_append_data(out, "params", 6) ? -1 : 6;
}

static int stranger_peer_params(gnutls_session_t session, const unsigned char *data, size_t len)
{
	(void)session;
	(void)data;
	(void)len;
	return 0;
}

static void stranger_new(struct stranger *st)
{
	gnutls_datum_t alpn = { (unsigned char *)"qrdma", 5 };

	memset(st, 0, sizeof(*st));
	if (gnutls_init(&st->session, GNUTLS_CLIENT | GNUTLS_KEY_SHARE_TOP | GNUTLS_NO_TICKETS) ||
	    gnutls_certificate_allocate_credentials(&st->cred) ||
	    gnutls_credentials_set(st->session, GNUTLS_CRD_CERTIFICATE, st->cred) ||
	    gnutls_alpn_set_protocols(st->session, &alpn, 1, 0) ||
	    gnutls_priority_set_direct(st->session, "NORMAL:-VERS-ALL:+VERS-TLS1.3:-GROUP-ALL:+GROUP-SECP521R1:"
				       "+GROUP-X25519:%DISABLE_TLS13_COMPAT_MODE", NULL) ||
	    gnutls_session_ext_register(st->session, "params", EXT_PARAMS, GNUTLS_EXT_TLS, stranger_peer_params,
					stranger_params, NULL, NULL, NULL, GNUTLS_EXT_FLAG_TLS |
					GNUTLS_EXT_FLAG_CLIENT_HELLO | GNUTLS_EXT_FLAG_EE))
		exit(1);
	gnutls_session_set_ptr(st->session, st);
	/* the environment asks for a key log, and a session that does nothing against it would write one */
	gnutls_session_set_keylog_function(st->session, NULL);
	gnutls_handshake_set_read_function(st->session, stranger_message);
}

/* What the server has to send is fed to the stranger; true when something was. */
static bool stranger_feed(struct stranger *st, struct pair_side *server)
{
	const struct quic_event *event = quic_tls_event(server->quic);

	if (!event)
		return false;
	if (event->type == QUIC_EVENT_SEND)
		gnutls_handshake_write(st->session, event->level == QRDMA_CRYPTO_INITIAL ?
				       GNUTLS_ENCRYPTION_LEVEL_INITIAL : GNUTLS_ENCRYPTION_LEVEL_HANDSHAKE,
				       event->data, event->len);
	server->params_len += event->type == QUIC_EVENT_PEER_PARAMS ? event->len : 0;
	server->complete = server->complete || event->type == QUIC_EVENT_COMPLETE;
	quic_tls_event_done(server->quic);
	return true;
}

static void test_retry(void)
{
	struct stranger st;
	struct pair p;
	int code = GNUTLS_E_AGAIN;

	pair_x509(&p);
	if (quic_tls_new(&p.side[PAIR_SERVER].quic, &p.side[PAIR_SERVER].opt, NULL))
		exit(1);
	stranger_new(&st);
	for (int round = 0; round < 10 && !p.side[PAIR_SERVER].complete; round++) {
		if (code == GNUTLS_E_AGAIN)
			code = gnutls_handshake(st.session);
		for (int l = 0; l < 2; l++) {
			quic_tls_input(p.side[PAIR_SERVER].quic, l ? QRDMA_CRYPTO_HANDSHAKE : QRDMA_CRYPTO_INITIAL,
				       st.out[l], st.out_len[l]);
			st.out_len[l] = 0;
		}
		while (stranger_feed(&st, &p.side[PAIR_SERVER]))
			;
	}
	check(p.side[PAIR_SERVER].complete && !code && st.hellos == 2 && p.side[PAIR_SERVER].params_len == 6,
	      "a second ClientHello, parameters told once", quic_tls_reason(p.side[PAIR_SERVER].quic)->text);
	gnutls_deinit(st.session);
	gnutls_certificate_free_credentials(st.cred);
	pair_free(&p);
}

static int new_error(struct quic_tls_options *opt)
{
	struct qrdma_reason why = { 0 };
	struct quic_tls *quic = NULL;
	int err = quic_tls_new(&quic, opt, &why);

	quic_tls_free(quic);
	return err == why.error ? err : 1;
}

static void test_options(void)
{
	static const char *const empty[] = { "" };
	static const uint32_t unknown[] = { 50 };
	static const uint32_t sha384[] = { QRDMA_CIPHER_AES_GCM_256 };
	struct quic_tls_options opt;
	struct pair p;

	pair_x509(&p);
	opt = p.side[PAIR_CLIENT].opt;
	opt.cred = NULL;
	check(new_error(&opt) == -EINVAL, "no credentials", "");
	opt = p.side[PAIR_CLIENT].opt;
	opt.peer_name = NULL;
	check(new_error(&opt) == -EINVAL, "no name to verify", "");
	opt = p.side[PAIR_CLIENT].opt;
	opt.server = true;
	check(new_error(&opt) == -ENOKEY, "server without a certificate", "");
	opt = p.side[PAIR_CLIENT].opt;
	opt.n_alpn = 0;
	check(new_error(&opt) == -EINVAL, "no protocol", "");
	opt.n_alpn = 9;
	check(new_error(&opt) == -EINVAL, "too many protocols", "");
	opt.n_alpn = 1;
	opt.alpn = empty;
	check(new_error(&opt) == -EINVAL, "a protocol without a name", "");
	opt = p.side[PAIR_CLIENT].opt;
	opt.params_len = 0;
	check(new_error(&opt) == -EINVAL, "no transport parameters", "");
	opt.params_len = QUIC_TLS_PARAMS_MAX + 1;
	check(new_error(&opt) == -EINVAL, "too many transport parameters", "");
	opt = p.side[PAIR_CLIENT].opt;
	opt.ciphers = unknown;
	opt.n_ciphers = 1;
	check(new_error(&opt) == -EINVAL, "unknown cipher", "");
	pair_free(&p);
	pair_psk(&p, "alice", 1);
	opt = p.side[PAIR_CLIENT].opt;
	opt.ciphers = sha384;
	opt.n_ciphers = 1;
	check(new_error(&opt) == -EPROTONOSUPPORT, "a cipher that does not go with a pre-shared key", "");
	opt = p.side[PAIR_CLIENT].opt;
	opt.want_ticket = true;
	check(new_error(&opt) == -EINVAL, "tickets with a pre-shared key", "");
	pair_free(&p);
}

int main(int argc, char **argv)
{
	test_start(argc, argv);
	unlink(path("keylog"));
	/* before the TLS library is used for the first time: it looks once */
	setenv("SSLKEYLOGFILE", path("keylog"), 1);
	test_options();
	test_good();
	test_x509();
	test_psk();
	test_ciphers();
	test_alpn();
	test_pieces();
	test_rules();
	test_messages();
	test_retry();
	test_tickets();
	test_keylog();
	test_noise();
	return test_end();
}
