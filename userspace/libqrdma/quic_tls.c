// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One TLS 1.3 session of a QUIC connection, on GnuTLS's hooks for QUIC. Called by handshake.c and its test; a session
 * belongs to one thread and never blocks. What the errors of the TLS library and the alerts of the peer mean is in
 * quic_tls_error.c.
 *
 * GnuTLS is handed whole handshake messages, and only those that may come at this place: what a peer can make it
 * buffer, and which of its post-handshake messages it can reach, is decided here. KeyUpdate, EndOfEarlyData and
 * ChangeCipherSpec do not exist in QUIC (RFC 9001 s6, s8.3, s8.4).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gnutls/gnutls.h>
#include "cred.h"
#include "keys.h"
#include "quic_tls.h"
#include "quic_tls_error.h"
#include "tickets.h"
#include "tls.h"

#define EXT_TRANSPORT_PARAMETERS	57	/* RFC 9001 s8.2 */
#define MESSAGE_HEAD		4
/* Longest message: of anybody, a chain of certificates. All messages of a handshake; one after it. */
#define HELLO_MAX		16384
#define MESSAGE_MAX		65536
#define HANDSHAKE_MAX		262144
#define POST_MESSAGE_MAX	16384
/* In a ClientHello: behind legacy_version and random (RFC 8446 s4.1.2). */
#define HELLO_SESSION_ID	34
#define KEYLOG_LABEL_MAX	40
#define RANDOM_LEN		32

struct quic_tls {
	struct cred_use use;		/* first: GnuTLS's user pointer is the address of both */
	gnutls_session_t session;
	bool server;
	bool require_peer_cert;
	bool want_ticket;
	bool complete;
	bool have_peer_params;
	bool alert_set;
	uint8_t read_level;		/* QRDMA_CRYPTO_* at which the next byte has to come */
	uint8_t alert;			/* the one that GnuTLS wanted to send */
	char *peer_name;
	char *alpn;
	uint8_t *params;
	size_t params_len;
	struct qrdma_reason why;
	/* the message that is coming in, and how much came in all */
	uint8_t *message;
	size_t message_len;
	size_t message_room;
	size_t handshake_len;
	struct quic_events events;
};

_Static_assert(offsetof(struct quic_tls, use) == 0, "the user pointer of a session is both");

static const uint32_t all_ciphers[] = {
	QRDMA_CIPHER_AES_GCM_128, QRDMA_CIPHER_CHACHA20,
	QRDMA_CIPHER_AES_GCM_256, QRDMA_CIPHER_AES_CCM_128,
};

static const struct {
	uint32_t type;
	gnutls_cipher_algorithm_t gnutls;
	const char *priority;
	bool sha384;
} ciphers[] = {
	{ QRDMA_CIPHER_AES_GCM_128, GNUTLS_CIPHER_AES_128_GCM, "AES-128-GCM", false },
	{ QRDMA_CIPHER_AES_GCM_256, GNUTLS_CIPHER_AES_256_GCM, "AES-256-GCM", true },
	{ QRDMA_CIPHER_AES_CCM_128, GNUTLS_CIPHER_AES_128_CCM, "AES-128-CCM", false },
	{ QRDMA_CIPHER_CHACHA20, GNUTLS_CIPHER_CHACHA20_POLY1305, "CHACHA20-POLY1305", false },
};

#define N_CIPHERS	(sizeof(ciphers) / sizeof(ciphers[0]))

static struct quic_tls *quic_of(gnutls_session_t session)
{
	return gnutls_session_get_ptr(session);
}

static const char *level_name(uint8_t level)
{
	static const char *const names[] = {
		[QRDMA_CRYPTO_APP] = "1-RTT",
		[QRDMA_CRYPTO_INITIAL] = "Initial",
		[QRDMA_CRYPTO_HANDSHAKE] = "Handshake",
		[QRDMA_CRYPTO_EARLY] = "0-RTT",
	};

	return level < sizeof(names) / sizeof(names[0]) ? names[level] : "unknown";
}

const struct quic_event *quic_tls_event(const struct quic_tls *quic)
{
	return quic->events.first;
}

void quic_tls_event_done(struct quic_tls *quic)
{
	quic_events_pop(&quic->events);
}

/* Ends the session, once: @quic->why says why, @alert goes to the peer. */
static int quic_fail(struct quic_tls *quic, uint8_t alert)
{
	struct quic_event *event;

	event = quic_events_add(&quic->events, QUIC_EVENT_FAILED, NULL, 0);
	if (event) {
		event->error = quic->why.error;
		event->alert = alert;
	}
	return quic->why.error;
}

static int quic_fail_gnutls(struct quic_tls *quic, int code)
{
	const struct quic_tls_verdict verdict = {
		.code = code,
		.alert = quic->alert_set ? quic->alert : gnutls_error_to_alert(code, NULL),
		.verify_status = gnutls_session_get_verify_cert_status(quic->session),
		.psk_unknown = quic->server && quic->use.psk_unknown && !quic->use.psk_found,
		.psk_wrong = quic->server && quic->use.psk_found && quic->read_level == QRDMA_CRYPTO_INITIAL,
	};

	/* a hook has found the reason already */
	if (quic->why.error)
		return quic_fail(quic, quic->alert);
	return quic_fail(quic, quic_tls_verdict(&verdict, &quic->why));
}

/* For hooks: their return value makes gnutls_handshake() fail, and this is why. */
static int hook_fail(struct quic_tls *quic, int error, uint8_t alert, const char *text)
{
	if (!quic->why.error) {
		reason_set(&quic->why, error, "%s", text);
		quic->alert = alert;
	}
	return GNUTLS_E_INTERNAL_ERROR;
}

static int hook_no_memory(struct quic_tls *quic)
{
	return hook_fail(quic, -ENOMEM, GNUTLS_A_INTERNAL_ERROR, "out of memory");
}

/* The hooks that GnuTLS calls, from inside gnutls_handshake() and gnutls_handshake_write(). */

static int hook_level(gnutls_record_encryption_level_t level)
{
	switch (level) {
	case GNUTLS_ENCRYPTION_LEVEL_INITIAL:
		return QRDMA_CRYPTO_INITIAL;
	case GNUTLS_ENCRYPTION_LEVEL_HANDSHAKE:
		return QRDMA_CRYPTO_HANDSHAKE;
	case GNUTLS_ENCRYPTION_LEVEL_APPLICATION:
		return QRDMA_CRYPTO_APP;
	default:
		return -1;
	}
}

static int hook_message(gnutls_session_t session, gnutls_record_encryption_level_t level,
			gnutls_handshake_description_t type, const void *data, size_t len)
{
	struct quic_tls *quic = quic_of(session);

	if (type == GNUTLS_HANDSHAKE_CHANGE_CIPHER_SPEC)
		return 0;
	if (hook_level(level) < 0)
		return hook_fail(quic, -EPROTO, GNUTLS_A_INTERNAL_ERROR, "message at a level that is not in use");
	return quic_events_add_send(&quic->events, hook_level(level), data, len) ? hook_no_memory(quic) : 0;
}

static uint32_t hook_cipher(gnutls_session_t session)
{
	gnutls_cipher_algorithm_t cipher = gnutls_cipher_get(session);

	for (size_t i = 0; i < N_CIPHERS; i++)
		if (ciphers[i].gnutls == cipher)
			return ciphers[i].type;
	return 0;
}

static int hook_secret_one(struct quic_tls *quic, uint8_t level, bool send, const void *secret, size_t len)
{
	uint32_t cipher = hook_cipher(quic->session);
	struct quic_event *event;

	if (!cipher || len != keys_secret_len(cipher))
		return hook_fail(quic, -EPROTO, GNUTLS_A_INTERNAL_ERROR, "TLS chose a cipher that was not offered");
	event = quic_events_add(&quic->events, QUIC_EVENT_SECRET, secret, len);
	if (!event)
		return hook_no_memory(quic);
	event->level = level;
	event->send = send;
	event->cipher = cipher;
	return 0;
}

static int hook_secret(gnutls_session_t session, gnutls_record_encryption_level_t tls_level,
		       const void *secret_read, const void *secret_write, size_t len)
{
	struct quic_tls *quic = quic_of(session);
	int level = hook_level(tls_level);
	int err = 0;

	if (level < 0)
		return hook_fail(quic, -EPROTO, GNUTLS_A_INTERNAL_ERROR, "secret for a level that is not in use");
	if (secret_write)
		err = hook_secret_one(quic, level, true, secret_write, len);
	if (!err && secret_read) {
		err = hook_secret_one(quic, level, false, secret_read, len);
		quic->read_level = level;
	}
	return err;
}

static int hook_alert(gnutls_session_t session, gnutls_record_encryption_level_t level,
		      gnutls_alert_level_t alert_level, gnutls_alert_description_t alert)
{
	struct quic_tls *quic = quic_of(session);

	(void)level;
	if (alert_level == GNUTLS_AL_FATAL && !quic->alert_set && !quic->why.error) {
		quic->alert_set = true;
		quic->alert = alert;
	}
	return 0;
}

static int hook_keylog(gnutls_session_t session, const char *label, const gnutls_datum_t *secret)
{
	char line[KEYLOG_LABEL_MAX + 2 * RANDOM_LEN + 2 * QRDMA_CRYPTO_SECRET_SIZE + 4];
	struct quic_tls *quic = quic_of(session);
	gnutls_datum_t client;
	gnutls_datum_t server;
	size_t len;
	int err = 0;

	gnutls_session_get_random(session, &client, &server);
	if (strlen(label) > KEYLOG_LABEL_MAX || client.size != RANDOM_LEN || secret->size > QRDMA_CRYPTO_SECRET_SIZE)
		return 0;
	len = sprintf(line, "%s ", label);
	for (size_t i = 0; i < client.size; i++)
		len += sprintf(line + len, "%02x", client.data[i]);
	line[len++] = ' ';
	for (size_t i = 0; i < secret->size; i++)
		len += sprintf(line + len, "%02x", secret->data[i]);
	line[len++] = '\n';
	if (!quic_events_add(&quic->events, QUIC_EVENT_KEYLOG, line, len))
		err = hook_no_memory(quic);
	tls_wipe(line, sizeof(line));
	return err;
}

/* What QUIC makes mandatory in the hellos, and TLS does not (RFC 9001 s8.1, s8.2). */
static int hello_check(struct quic_tls *quic)
{
	gnutls_datum_t alpn;

	if (!quic->have_peer_params)
		return hook_fail(quic, -EPROTO, GNUTLS_A_MISSING_EXTENSION,
				 "the peer sent no transport parameters: it does not speak QUIC");
	if (gnutls_alpn_get_selected_protocol(quic->session, &alpn))
		return hook_fail(quic, -EPROTONOSUPPORT, GNUTLS_A_NO_APPLICATION_PROTOCOL,
				 "the peer names no application protocol (ALPN)");
	free(quic->alpn);
	quic->alpn = strndup((char *)alpn.data, alpn.size);
	return quic->alpn ? 0 : hook_no_memory(quic);
}

/* At a server, when ClientHello is parsed and not answered yet. */
static int hook_client_hello(gnutls_session_t session, unsigned int type, unsigned int when, unsigned int incoming,
			     const gnutls_datum_t *message)
{
	struct quic_tls *quic = quic_of(session);

	(void)type;
	(void)when;
	(void)incoming;
	if (message->size > HELLO_SESSION_ID && message->data[HELLO_SESSION_ID])
		return hook_fail(quic, -EPROTO, GNUTLS_A_ILLEGAL_PARAMETER,
				 "the peer asks for the compatibility mode of TLS over TCP");
	return hello_check(quic);
}

static int params_send(gnutls_session_t session, gnutls_buffer_t out)
{
	struct quic_tls *quic = quic_of(session);
	int err = gnutls_buffer_append_data(out, quic->params, quic->params_len);

	if (err)
		return err;
	return quic->params_len;
}

/* Comes twice when a ClientHello is answered by HelloRetryRequest; the second must repeat it (RFC 8446 s4.1.2). */
static int params_receive(gnutls_session_t session, const unsigned char *data, size_t len)
{
	struct quic_tls *quic = quic_of(session);

	if (quic->have_peer_params)
		return 0;
	if (len > QUIC_TLS_PARAMS_MAX)
		return hook_fail(quic, -EPROTO, GNUTLS_A_ILLEGAL_PARAMETER,
				 "the peer's transport parameters are too long");
	if (!quic_events_add(&quic->events, QUIC_EVENT_PEER_PARAMS, data, len))
		return hook_no_memory(quic);
	quic->have_peer_params = true;
	return 0;
}

/* There is no record layer: whoever reaches for the transport gets an error, and no descriptor is touched. */
static ssize_t no_push(gnutls_transport_ptr_t ptr, const void *data, size_t len)
{
	(void)ptr;
	(void)data;
	(void)len;
	errno = ENOTCONN;
	return -1;
}

static ssize_t no_pull(gnutls_transport_ptr_t ptr, void *data, size_t len)
{
	(void)ptr;
	(void)data;
	(void)len;
	errno = ENOTCONN;
	return -1;
}

/* Setting a session up. */

static int setup_priority(struct quic_tls *quic, const struct quic_tls_options *opt)
{
	const uint32_t *list = opt->n_ciphers ? opt->ciphers : all_ciphers;
	size_t n = opt->n_ciphers ? opt->n_ciphers : sizeof(all_ciphers) / sizeof(all_ciphers[0]);
	bool psk = cred_is_psk(opt->cred);
	char text[512];
	size_t len;
	size_t taken = 0;

	/* One way to prove who we are per session; a mixture would let the peer choose the weaker. */
	len = snprintf(text, sizeof(text), "NONE:+VERS-TLS1.3:+AEAD:+COMP-NULL:%s:+GROUP-X25519:+GROUP-SECP256R1:"
		       "+GROUP-SECP384R1:+SIGN-ALL", psk ? "+ECDHE-PSK:+DHE-PSK" : "+ECDHE-RSA:+ECDHE-ECDSA");
	for (size_t i = 0; i < n; i++) {
		size_t c = 0;

		while (c < N_CIPHERS && ciphers[c].type != list[i])
			c++;
		if (c == N_CIPHERS)
			return reason_set(&quic->why, -EINVAL, "unknown cipher %u", list[i]);
		/* a pre-shared key is bound to SHA-256 (RFC 8446 s4.2.11) */
		if (psk && ciphers[c].sha384)
			continue;
		len += snprintf(text + len, sizeof(text) - len, ":+%s", ciphers[c].priority);
		taken++;
	}
	if (!taken)
		return reason_set(&quic->why, -EPROTONOSUPPORT, "no cipher given that goes with a pre-shared key");
	snprintf(text + len, sizeof(text) - len, ":%%DISABLE_TLS13_COMPAT_MODE:%%SERVER_PRECEDENCE:"
		 "%%PROFILE_MEDIUM");
	if (gnutls_priority_set_direct(quic->session, text, NULL))
		return reason_set(&quic->why, -EPROTO, "the TLS library does not take the list of ciphers");
	return 0;
}

static int setup_alpn(struct quic_tls *quic, const struct quic_tls_options *opt)
{
	gnutls_datum_t list[QUIC_TLS_ALPN_MAX];

	for (size_t i = 0; i < opt->n_alpn; i++) {
		list[i].data = (unsigned char *)opt->alpn[i];
		list[i].size = strlen(opt->alpn[i]);
	}
	if (gnutls_alpn_set_protocols(quic->session, list, opt->n_alpn,
				      GNUTLS_ALPN_MANDATORY | GNUTLS_ALPN_SERVER_PRECEDENCE))
		return reason_set(&quic->why, -ENOMEM, "out of memory");
	return 0;
}

static int setup_tickets(struct quic_tls *quic, const struct quic_tls_options *opt)
{
	gnutls_datum_t key;

	if (opt->server && opt->tickets) {
		key.data = (unsigned char *)tickets_key(opt->tickets);
		key.size = TICKETS_KEY_LEN;
		if (gnutls_session_ticket_enable_server(quic->session, &key))
			return reason_set(&quic->why, -ENOMEM, "out of memory");
	} else if (!opt->server && opt->ticket) {
		if (!quic->peer_name || ticket_check(opt->ticket, opt->ticket_len, quic->peer_name))
			return reason_set(&quic->why, -EINVAL, "the ticket is not one of this server");
		if (gnutls_session_set_data(quic->session, (const char *)opt->ticket + TICKET_HEAD_LEN,
					    opt->ticket_len - TICKET_HEAD_LEN))
			return reason_set(&quic->why, -EINVAL, "the ticket is damaged");
	}
	return 0;
}

/* Which of its names the server is meant by; an address is none (RFC 6066 s3). */
static int setup_name(struct quic_tls *quic)
{
	uint8_t addr[sizeof(struct in6_addr)];
	const char *name = quic->peer_name;

	if (quic->server || !name || inet_pton(AF_INET, name, addr) == 1 || inet_pton(AF_INET6, name, addr) == 1)
		return 0;
	if (gnutls_server_name_set(quic->session, GNUTLS_NAME_DNS, name, strlen(name)))
		return reason_set(&quic->why, -EINVAL, "'%s' is not a name that a server can have", name);
	return 0;
}

static int setup_session(struct quic_tls *quic, const struct quic_tls_options *opt)
{
	unsigned int flags = (opt->server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NO_SIGNAL | GNUTLS_NONBLOCK |
			     GNUTLS_NO_END_OF_EARLY_DATA | GNUTLS_NO_AUTO_SEND_TICKET |
			     /* so that the server can say what is wrong with it, not that there is none */
			     GNUTLS_FORCE_CLIENT_CERT;
	const struct cred_role role = {
		.cred = opt->cred,
		.server = opt->server,
		.require_peer_cert = opt->require_peer_cert,
		.peer_name = quic->peer_name,
	};
	int err;

	if (opt->server ? !opt->tickets : !opt->want_ticket && !opt->ticket)
		flags |= GNUTLS_NO_TICKETS;
	if (gnutls_init(&quic->session, flags))
		return reason_set(&quic->why, -ENOMEM, "out of memory");
	gnutls_transport_set_push_function(quic->session, no_push);
	gnutls_transport_set_pull_function(quic->session, no_pull);
	err = setup_priority(quic, opt);
	if (!err && cred_apply(&quic->use, quic->session, &role))
		err = reason_set(&quic->why, -ENOMEM, "out of memory");
	if (!err)
		err = setup_alpn(quic, opt);
	if (!err)
		err = setup_name(quic);
	if (!err)
		err = setup_tickets(quic, opt);
	if (err)
		return err;
	if (opt->keylog)
		gnutls_session_set_keylog_function(quic->session, hook_keylog);
	gnutls_handshake_set_max_packet_length(quic->session, MESSAGE_MAX);
	gnutls_handshake_set_read_function(quic->session, hook_message);
	gnutls_handshake_set_secret_function(quic->session, hook_secret);
	gnutls_alert_set_read_function(quic->session, hook_alert);
	if (quic->server)
		gnutls_handshake_set_hook_function(quic->session, GNUTLS_HANDSHAKE_CLIENT_HELLO, GNUTLS_HOOK_POST,
						   hook_client_hello);
	if (gnutls_session_ext_register(quic->session, "quic_transport_parameters", EXT_TRANSPORT_PARAMETERS,
					GNUTLS_EXT_TLS, params_receive, params_send, NULL, NULL, NULL,
					GNUTLS_EXT_FLAG_TLS | GNUTLS_EXT_FLAG_CLIENT_HELLO | GNUTLS_EXT_FLAG_EE))
		return reason_set(&quic->why, -ENOMEM, "out of memory");
	return 0;
}

int quic_tls_check(const struct quic_tls_options *opt, struct qrdma_reason *why)
{
	const struct cred_role role = {
		.cred = opt->cred,
		.server = opt->server,
		.require_peer_cert = opt->require_peer_cert,
		.peer_name = opt->peer_name,
	};

	if (!opt->n_alpn || opt->n_alpn > QUIC_TLS_ALPN_MAX)
		return reason_set(why, -EINVAL, "one to %d application protocols are needed", QUIC_TLS_ALPN_MAX);
	for (size_t i = 0; i < opt->n_alpn; i++)
		if (!opt->alpn[i] || !*opt->alpn[i] || strlen(opt->alpn[i]) > QUIC_TLS_ALPN_NAME_MAX)
			return reason_set(why, -EINVAL, "the name of an application protocol has 1 to %d bytes",
					  QUIC_TLS_ALPN_NAME_MAX);
	if (opt->n_ciphers > QUIC_TLS_CIPHERS_MAX || (opt->n_ciphers && !opt->ciphers))
		return reason_set(why, -EINVAL, "too many ciphers");
	if (opt->cred && cred_is_psk(opt->cred) && (opt->tickets || opt->ticket || opt->want_ticket))
		return reason_set(why, -EINVAL, "a pre-shared key needs no tickets");
	return cred_check(&role, why);
}

static int setup_copies(struct quic_tls *quic, const struct quic_tls_options *opt)
{
	quic->params = malloc(opt->params_len);
	if (opt->peer_name)
		quic->peer_name = strdup(opt->peer_name);
	if (!quic->params || (opt->peer_name && !quic->peer_name))
		return reason_set(&quic->why, -ENOMEM, "out of memory");
	memcpy(quic->params, opt->params, opt->params_len);
	quic->params_len = opt->params_len;
	return 0;
}

static int quic_run(struct quic_tls *quic);

int quic_tls_new(struct quic_tls **out, const struct quic_tls_options *opt, struct qrdma_reason *why)
{
	struct quic_tls *quic;
	int err;

	err = quic_tls_check(opt, why);
	if (err)
		return err;
	if (!opt->params_len || opt->params_len > QUIC_TLS_PARAMS_MAX)
		return reason_set(why, -EINVAL, "transport parameters of 1 to %d bytes are needed",
				  QUIC_TLS_PARAMS_MAX);
	quic = calloc(1, sizeof(*quic));
	if (!quic)
		return reason_set(why, -ENOMEM, "out of memory");
	quic_events_init(&quic->events);
	quic->server = opt->server;
	quic->require_peer_cert = opt->require_peer_cert;
	quic->want_ticket = opt->want_ticket;
	quic->read_level = QRDMA_CRYPTO_INITIAL;
	err = setup_copies(quic, opt);
	if (!err)
		err = setup_session(quic, opt);
	if (!err)
		err = quic_run(quic);
	if (err) {
		if (why)
			*why = quic->why;
		quic_tls_free(quic);
		return err;
	}
	*out = quic;
	return 0;
}

void quic_tls_free(struct quic_tls *quic)
{
	if (!quic)
		return;
	while (quic->events.first)
		quic_events_pop(&quic->events);
	if (quic->session)
		gnutls_deinit(quic->session);
	cred_release(&quic->use);
	tls_wipe(quic->message, quic->message_room);
	free(quic->message);
	free(quic->params);
	free(quic->peer_name);
	free(quic->alpn);
	free(quic);
}

/* Running it. */

/*
 * A ticket stands for an earlier session, whose server may have asked for less than this one does, and whose client's
 * certificate may be out of date by now.
 */
static int resumed_check(struct quic_tls *quic)
{
	unsigned int status;
	unsigned int n;

	if (!quic->server || !quic->require_peer_cert || !gnutls_session_is_resumed(quic->session))
		return 0;
	if (!gnutls_certificate_get_peers(quic->session, &n)) {
		reason_set(&quic->why, -ENOKEY, "the peer came with a ticket that stands for no certificate");
		return quic_fail(quic, GNUTLS_A_CERTIFICATE_REQUIRED);
	}
	if (gnutls_certificate_verify_peers(quic->session, quic->use.verify, quic->use.n_verify, &status))
		status = GNUTLS_CERT_INVALID;
	if (!status)
		return 0;
	cred_verify_error(status, &quic->why);
	return quic_fail(quic, quic_tls_verify_alert(status));
}

static int quic_completed(struct quic_tls *quic)
{
	int err = resumed_check(quic);

	if (err)
		return err;
	quic->complete = true;
	if (!quic_events_add(&quic->events, QUIC_EVENT_COMPLETE, NULL, 0)) {
		reason_set(&quic->why, -ENOMEM, "out of memory");
		return quic_fail(quic, GNUTLS_A_INTERNAL_ERROR);
	}
	/* Without tickets enabled this does nothing. A ticket that cannot be made is no reason to fail. */
	if (quic->server)
		gnutls_session_ticket_send(quic->session, 1, 0);
	return 0;
}

static int quic_run(struct quic_tls *quic)
{
	int code;

	do {
		code = gnutls_handshake(quic->session);
	} while (code == GNUTLS_E_INTERRUPTED);
	if (code == GNUTLS_E_AGAIN)
		return 0;
	return code ? quic_fail_gnutls(quic, code) : quic_completed(quic);
}

static int quic_ticket(struct quic_tls *quic)
{
	uint8_t head[TICKET_HEAD_LEN];
	gnutls_datum_t data;
	uint8_t *ticket;
	struct quic_event *event = NULL;

	if (!(gnutls_session_get_flags(quic->session) & GNUTLS_SFLAGS_SESSION_TICKET) ||
	    ticket_wrap(head, quic->peer_name) || gnutls_session_get_data2(quic->session, &data))
		return 0;
	ticket = malloc(sizeof(head) + data.size);
	if (ticket) {
		memcpy(ticket, head, sizeof(head));
		memcpy(ticket + sizeof(head), data.data, data.size);
		event = quic_events_add(&quic->events, QUIC_EVENT_TICKET, ticket, sizeof(head) + data.size);
		tls_wipe(ticket, sizeof(head) + data.size);
		free(ticket);
	}
	tls_wipe(data.data, data.size);
	gnutls_free(data.data);
	return event ? 0 : -ENOMEM;
}

/* Is a message of this type one that the peer may send now? */
static bool message_expected(const struct quic_tls *quic, uint8_t type)
{
	switch (quic->read_level) {
	case QRDMA_CRYPTO_INITIAL:
		return type == (quic->server ? GNUTLS_HANDSHAKE_CLIENT_HELLO : GNUTLS_HANDSHAKE_SERVER_HELLO);
	case QRDMA_CRYPTO_HANDSHAKE:
		if (type == GNUTLS_HANDSHAKE_CERTIFICATE_PKT || type == GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY ||
		    type == GNUTLS_HANDSHAKE_FINISHED)
			return true;
		return !quic->server && (type == GNUTLS_HANDSHAKE_ENCRYPTED_EXTENSIONS ||
					 type == GNUTLS_HANDSHAKE_CERTIFICATE_REQUEST);
	default:
		return !quic->server && type == GNUTLS_HANDSHAKE_NEW_SESSION_TICKET;
	}
}

static int message_input(struct quic_tls *quic)
{
	static const gnutls_record_encryption_level_t levels[] = {
		[QRDMA_CRYPTO_INITIAL] = GNUTLS_ENCRYPTION_LEVEL_INITIAL,
		[QRDMA_CRYPTO_HANDSHAKE] = GNUTLS_ENCRYPTION_LEVEL_HANDSHAKE,
		[QRDMA_CRYPTO_APP] = GNUTLS_ENCRYPTION_LEVEL_APPLICATION,
	};
	bool post = quic->complete;
	int code;

	if (post && !quic->want_ticket)
		return 0;
	code = gnutls_handshake_write(quic->session, levels[quic->read_level], quic->message, quic->message_len);
	if (code < 0)
		return quic_fail_gnutls(quic, code);
	if (post)
		return quic_ticket(quic);
	code = quic_run(quic);
	/* at a client there is no hook behind the parsing of this message */
	if (!code && quic->message[0] == GNUTLS_HANDSHAKE_ENCRYPTED_EXTENSIONS && hello_check(quic))
		return quic_fail(quic, quic->alert);
	return code;
}

static size_t message_max(const struct quic_tls *quic)
{
	switch (quic->read_level) {
	case QRDMA_CRYPTO_INITIAL:
		return HELLO_MAX;
	case QRDMA_CRYPTO_HANDSHAKE:
		return MESSAGE_MAX;
	default:
		return POST_MESSAGE_MAX;
	}
}

static int message_head_check(struct quic_tls *quic, size_t len)
{
	if (!message_expected(quic, quic->message[0])) {
		reason_set(&quic->why, -EPROTO, "the peer sent a TLS message of type %u in %s packets, out of place",
			   quic->message[0], level_name(quic->read_level));
		return quic_fail(quic, GNUTLS_A_UNEXPECTED_MESSAGE);
	}
	if (len > message_max(quic) || quic->handshake_len + len > HANDSHAKE_MAX) {
		reason_set(&quic->why, -EPROTO, "the peer's TLS messages are too long");
		return quic_fail(quic, GNUTLS_A_DECODE_ERROR);
	}
	return 0;
}

/* Grows with what has come, not with what was announced. */
static int message_room(struct quic_tls *quic, size_t room)
{
	uint8_t *more;

	if (room <= quic->message_room)
		return 0;
	if (room < 2 * quic->message_room)
		room = 2 * quic->message_room;
	more = realloc(quic->message, room);
	if (!more) {
		reason_set(&quic->why, -ENOMEM, "out of memory");
		return quic_fail(quic, GNUTLS_A_INTERNAL_ERROR);
	}
	quic->message = more;
	quic->message_room = room;
	return 0;
}

/* Takes what belongs to the message that is coming in, and hands it on when it is whole. Bytes taken or -errno. */
static ssize_t message_take(struct quic_tls *quic, const uint8_t *data, size_t len)
{
	size_t want = MESSAGE_HEAD;
	size_t taken;
	int err;

	if (quic->message_len >= MESSAGE_HEAD)
		want += quic->message[1] << 16 | quic->message[2] << 8 | quic->message[3];
	taken = want - quic->message_len < len ? want - quic->message_len : len;
	err = message_room(quic, quic->message_len + taken);
	if (err)
		return err;
	memcpy(quic->message + quic->message_len, data, taken);
	quic->message_len += taken;
	if (quic->message_len < want)
		return taken;
	if (want == MESSAGE_HEAD) {
		want += quic->message[1] << 16 | quic->message[2] << 8 | quic->message[3];
		err = message_head_check(quic, want);
		if (err)
			return err;
		/* an empty body: whole already */
		if (want > MESSAGE_HEAD)
			return taken;
	}
	if (!quic->complete)
		quic->handshake_len += quic->message_len;
	err = message_input(quic);
	quic->message_len = 0;
	return err ? err : (ssize_t)taken;
}

int quic_tls_input(struct quic_tls *quic, uint8_t level, const uint8_t *data, size_t len)
{
	ssize_t n;

	if (quic->why.error)
		return quic->why.error;
	while (len) {
		/* bytes left over when the keys have changed are an error too (RFC 9001 s4.1.3) */
		if (level != quic->read_level) {
			reason_set(&quic->why, -EPROTO, "the peer sent TLS messages in %s packets, due in %s packets",
				   level_name(level), level_name(quic->read_level));
			return quic_fail(quic, GNUTLS_A_UNEXPECTED_MESSAGE);
		}
		n = message_take(quic, data, len);
		if (n < 0)
			return n;
		data += n;
		len -= n;
	}
	return 0;
}

const struct qrdma_reason *quic_tls_reason(const struct quic_tls *quic)
{
	return &quic->why;
}

bool quic_tls_resumed(const struct quic_tls *quic)
{
	return quic->complete && gnutls_session_is_resumed(quic->session);
}

bool quic_tls_judged(const struct quic_tls *quic)
{
	return !quic->server && quic->complete && gnutls_certificate_client_get_request_status(quic->session);
}

const char *quic_tls_alpn(const struct quic_tls *quic)
{
	return quic->alpn;
}
