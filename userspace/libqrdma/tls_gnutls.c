// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Credentials and TLS 1.3 sessions on GnuTLS; the only file that includes its headers. Called by oob.c and by the
 * application (credentials). A session belongs to one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gnutls/gnutls.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include "tls.h"

#define PSK_KEY_MIN	16
#define PSK_KEY_MAX	64
#define PSK_NAME_MAX	128
#define ALPN		"qrdma-oob/1"

struct psk {
	struct psk *next;
	char identity[PSK_NAME_MAX];
	uint8_t key[PSK_KEY_MAX];
	size_t len;
};

struct qrdma_cred {
	gnutls_certificate_credentials_t x509;
	bool have_cert;
	bool have_trust;
	struct psk *psks;	/* newest first: a client offers the first */
};

struct tls {
	gnutls_session_t session;
	gnutls_psk_client_credentials_t psk_client;
	gnutls_psk_server_credentials_t psk_server;
	const struct qrdma_cred *cred;
};

int reason_set(struct qrdma_reason *why, int error, const char *format, ...)
{
	va_list args;

	if (why) {
		why->error = error;
		va_start(args, format);
		vsnprintf(why->text, sizeof(why->text), format, args);
		va_end(args);
	}
	return error;
}

void tls_wipe(void *data, size_t len)
{
	gnutls_memset(data, 0, len);
}

int tls_random(void *data, size_t len)
{
	return gnutls_rnd(GNUTLS_RND_KEY, data, len) ? -EIO : 0;
}

int tls_digest(const void *data, size_t len, uint8_t out[32])
{
	return gnutls_hash_fast(GNUTLS_DIG_SHA256, data, len, out) ? -EIO : 0;
}

int qrdma_cred_new(struct qrdma_cred **cred)
{
	struct qrdma_cred *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (gnutls_certificate_allocate_credentials(&c->x509)) {
		free(c);
		return -ENOMEM;
	}
	*cred = c;
	return 0;
}

void qrdma_cred_free(struct qrdma_cred *cred)
{
	struct psk *psk;

	if (!cred)
		return;
	while ((psk = cred->psks)) {
		cred->psks = psk->next;
		tls_wipe(psk, sizeof(*psk));
		free(psk);
	}
	gnutls_certificate_free_credentials(cred->x509);
	free(cred);
}

int qrdma_cred_set_x509(struct qrdma_cred *cred, const char *cert_file, const char *key_file)
{
	int err;

	if (!cert_file || !key_file)
		return -EINVAL;
	if (access(cert_file, R_OK) || access(key_file, R_OK))
		return -ENOENT;
	err = gnutls_certificate_set_x509_key_file(cred->x509, cert_file, key_file, GNUTLS_X509_FMT_PEM);
	if (err < 0)
		return -EINVAL;
	cred->have_cert = true;
	return 0;
}

int qrdma_cred_set_trust(struct qrdma_cred *cred, const char *ca_file)
{
	int n;

	if (!ca_file) {
		n = gnutls_certificate_set_x509_system_trust(cred->x509);
	} else {
		if (access(ca_file, R_OK))
			return -ENOENT;
		n = gnutls_certificate_set_x509_trust_file(cred->x509, ca_file, GNUTLS_X509_FMT_PEM);
		if (n < 0)
			return -EINVAL;
	}
	if (n <= 0)
		return -ENOENT;
	cred->have_trust = true;
	return 0;
}

static const struct psk *psk_find(const struct qrdma_cred *cred, const char *identity)
{
	for (const struct psk *psk = cred->psks; psk; psk = psk->next)
		if (!strcmp(psk->identity, identity))
			return psk;
	return NULL;
}

int qrdma_cred_set_psk(struct qrdma_cred *cred, const char *identity, const uint8_t *key, size_t len)
{
	struct psk *psk;

	if (!identity || !*identity || strlen(identity) >= PSK_NAME_MAX || strpbrk(identity, ":\n"))
		return -EINVAL;
	if (!key || len < PSK_KEY_MIN || len > PSK_KEY_MAX)
		return -EINVAL;
	if (psk_find(cred, identity))
		return -EEXIST;
	psk = calloc(1, sizeof(*psk));
	if (!psk)
		return -ENOMEM;
	strcpy(psk->identity, identity);
	memcpy(psk->key, key, len);
	psk->len = len;
	psk->next = cred->psks;
	cred->psks = psk;
	return 0;
}

/* One line of a key file. 1: taken, 0: nothing in it or another identity, -errno. */
static int psk_line(struct qrdma_cred *cred, char *line, const char *identity)
{
	uint8_t key[PSK_KEY_MAX];
	gnutls_datum_t hex;
	size_t len = sizeof(key);
	char *colon;
	int err;

	line[strcspn(line, "\r\n")] = '\0';
	if (!*line || *line == '#')
		return 0;
	colon = strchr(line, ':');
	if (!colon)
		return -EINVAL;
	*colon = '\0';
	if (identity && strcmp(identity, line))
		return 0;
	hex.data = (unsigned char *)colon + 1;
	hex.size = strlen(colon + 1);
	if (gnutls_hex_decode(&hex, key, &len))
		err = -EINVAL;
	else
		err = qrdma_cred_set_psk(cred, line, key, len);
	tls_wipe(key, sizeof(key));
	return err ? err : 1;
}

int qrdma_cred_set_psk_file(struct qrdma_cred *cred, const char *file, const char *identity)
{
	char line[PSK_NAME_MAX + 2 * PSK_KEY_MAX + 4];
	struct stat st;
	int taken = 0;
	int err = 0;
	FILE *f;

	f = fopen(file, "re");
	if (!f)
		return -errno;
	if (fstat(fileno(f), &st)) {
		err = -errno;
	} else if (st.st_mode & (S_IRWXO | S_IWGRP)) {
		err = -EACCES;
	}
	while (!err && fgets(line, sizeof(line), f)) {
		if (!strchr(line, '\n') && !feof(f)) {
			err = -EINVAL;
			break;
		}
		err = psk_line(cred, line, identity);
		if (err > 0) {
			taken++;
			err = 0;
		}
	}
	if (!err && ferror(f))
		err = -EIO;
	tls_wipe(line, sizeof(line));
	fclose(f);
	if (err)
		return err;
	return taken ? 0 : -ENOKEY;
}

/* GnuTLS hands the key to gnutls_free(), so it gets a copy of its own. */
static int psk_copy(const struct psk *psk, gnutls_datum_t *key)
{
	key->data = gnutls_malloc(psk->len);
	if (!key->data)
		return -1;
	memcpy(key->data, psk->key, psk->len);
	key->size = psk->len;
	return 0;
}

static int psk_server_lookup(gnutls_session_t session, const char *identity, gnutls_datum_t *key)
{
	const struct tls *tls = gnutls_session_get_ptr(session);
	const struct psk *psk = psk_find(tls->cred, identity);

	return psk ? psk_copy(psk, key) : -1;
}

static int tls_set_psk(struct tls *tls, bool server)
{
	const struct psk *psk = tls->cred->psks;
	gnutls_datum_t key;
	int err;

	if (server) {
		if (gnutls_psk_allocate_server_credentials(&tls->psk_server))
			return -ENOMEM;
		gnutls_psk_set_server_credentials_function(tls->psk_server, psk_server_lookup);
		return gnutls_credentials_set(tls->session, GNUTLS_CRD_PSK, tls->psk_server) ? -ENOMEM : 0;
	}
	if (gnutls_psk_allocate_client_credentials(&tls->psk_client))
		return -ENOMEM;
	key.data = (unsigned char *)psk->key;
	key.size = psk->len;
	err = gnutls_psk_set_client_credentials(tls->psk_client, psk->identity, &key, GNUTLS_PSK_KEY_RAW);
	if (!err)
		err = gnutls_credentials_set(tls->session, GNUTLS_CRD_PSK, tls->psk_client);
	return err ? -ENOMEM : 0;
}

/* Which errno a failed verification is: the certificate's dates apart from all else. */
static int verify_reason(struct tls *tls, struct qrdma_reason *why)
{
	unsigned int status = gnutls_session_get_verify_cert_status(tls->session);
	gnutls_datum_t text = { 0 };
	int err = -EKEYREJECTED;

	if (status & (GNUTLS_CERT_EXPIRED | GNUTLS_CERT_NOT_ACTIVATED))
		err = -EKEYEXPIRED;
	gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
	reason_set(why, err, "certificate of the peer: %s", text.data ? (char *)text.data : "not accepted");
	gnutls_free(text.data);
	return err;
}

static int tls_error(struct tls *tls, int code, const char *step, struct qrdma_reason *why)
{
	switch (code) {
	case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR:
	case GNUTLS_E_CERTIFICATE_ERROR:
		return verify_reason(tls, why);
	case GNUTLS_E_TIMEDOUT:
	case GNUTLS_E_AGAIN:
		return reason_set(why, -ETIMEDOUT, "%s: the peer did not answer in time", step);
	case GNUTLS_E_FATAL_ALERT_RECEIVED:
	case GNUTLS_E_WARNING_ALERT_RECEIVED:
		return reason_set(why, -ECONNREFUSED, "%s: the peer refused: %s", step,
				  gnutls_alert_get_name(gnutls_alert_get(tls->session)));
	case GNUTLS_E_PREMATURE_TERMINATION:
	case GNUTLS_E_PULL_ERROR:
	case GNUTLS_E_PUSH_ERROR:
		return reason_set(why, -ECONNRESET, "%s: the peer hung up", step);
	case GNUTLS_E_NO_CERTIFICATE_FOUND:
	case GNUTLS_E_CERTIFICATE_REQUIRED:
		return reason_set(why, -EKEYREJECTED, "%s: the peer sent no certificate", step);
	case GNUTLS_E_INSUFFICIENT_CREDENTIALS:
	case GNUTLS_E_NO_CIPHER_SUITES:
		return reason_set(why, -ENOKEY, "%s: no credentials that fit: %s", step, gnutls_strerror(code));
	case GNUTLS_E_MEMORY_ERROR:
		return reason_set(why, -ENOMEM, "%s: out of memory", step);
	default:
		return reason_set(why, -EPROTO, "%s: %s", step, gnutls_strerror(code));
	}
}

static const char *tls_priority(const struct tls_options *opt)
{
	/* One way to prove who we are per session; a mixture would let the peer choose the weaker. */
	if (opt->cred->psks)
		return "NONE:+VERS-TLS1.3:+AEAD:+ECDHE-PSK:+DHE-PSK:+AES-128-GCM:+CHACHA20-POLY1305:"
		       "+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:+SIGN-ALL";
	return "NORMAL:-VERS-ALL:+VERS-TLS1.3";
}

static int tls_setup(struct tls *tls, int fd, const struct tls_options *opt)
{
	static const gnutls_datum_t alpn = { (unsigned char *)ALPN, sizeof(ALPN) - 1 };
	int err;

	err = gnutls_init(&tls->session, (opt->server ? GNUTLS_SERVER : GNUTLS_CLIENT) |
			  GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);
	if (err)
		return -ENOMEM;
	gnutls_session_set_ptr(tls->session, tls);
	if (gnutls_priority_set_direct(tls->session, tls_priority(opt), NULL))
		return -EPROTO;
	if (opt->cred->psks)
		err = tls_set_psk(tls, opt->server);
	else
		err = gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, opt->cred->x509);
	if (err)
		return -ENOMEM;
	if (gnutls_alpn_set_protocols(tls->session, &alpn, 1, GNUTLS_ALPN_MANDATORY))
		return -ENOMEM;
	if (!opt->cred->psks) {
		if (!opt->server) {
			gnutls_session_set_verify_cert(tls->session, opt->peer_name, 0);
		} else if (opt->require_peer_cert) {
			gnutls_certificate_server_set_request(tls->session, GNUTLS_CERT_REQUIRE);
			gnutls_session_set_verify_cert(tls->session, NULL, 0);
		}
	}
	gnutls_transport_set_int(tls->session, fd);
	gnutls_handshake_set_timeout(tls->session, opt->timeout_ms);
	gnutls_record_set_timeout(tls->session, opt->timeout_ms);
	return 0;
}

static int tls_check(const struct tls_options *opt, struct qrdma_reason *why)
{
	const struct qrdma_cred *cred = opt->cred;

	if (!cred)
		return reason_set(why, -EINVAL, "no credentials given");
	if (cred->psks)
		return 0;
	if (opt->server && !cred->have_cert)
		return reason_set(why, -ENOKEY, "a server needs a certificate or a pre-shared key");
	if ((!opt->server || opt->require_peer_cert) && !cred->have_trust)
		return reason_set(why, -ENOKEY, "no trusted authority set: the peer could not be verified");
	if (!opt->server && !opt->peer_name)
		return reason_set(why, -EINVAL, "no name given that the server's certificate must carry");
	return 0;
}

int tls_new(struct tls **out, int fd, const struct tls_options *opt, struct qrdma_reason *why)
{
	struct tls *tls;
	int err;

	err = tls_check(opt, why);
	if (err)
		return err;
	tls = calloc(1, sizeof(*tls));
	if (!tls)
		return reason_set(why, -ENOMEM, "out of memory");
	tls->cred = opt->cred;
	err = tls_setup(tls, fd, opt);
	if (err) {
		reason_set(why, err, "TLS session cannot be set up");
		goto fail;
	}
	do {
		err = gnutls_handshake(tls->session);
	} while (err < 0 && !gnutls_error_is_fatal(err));
	if (err) {
		if (err != GNUTLS_E_FATAL_ALERT_RECEIVED)
			gnutls_alert_send_appropriate(tls->session, err);
		err = tls_error(tls, err, "TLS handshake", why);
		goto fail;
	}
	*out = tls;
	return 0;
fail:
	tls_free(tls);
	return err;
}

void tls_free(struct tls *tls)
{
	if (!tls)
		return;
	if (tls->session) {
		gnutls_bye(tls->session, GNUTLS_SHUT_WR);
		gnutls_deinit(tls->session);
	}
	if (tls->psk_client)
		gnutls_psk_free_client_credentials(tls->psk_client);
	if (tls->psk_server)
		gnutls_psk_free_server_credentials(tls->psk_server);
	free(tls);
}

/*
 * A peer that refuses says so and hangs up, and in TLS 1.3 a client may be writing by then: the write fails, and why is
 * still to be read.
 */
static int tls_send_error(struct tls *tls, int code, struct qrdma_reason *why)
{
	uint8_t byte;
	ssize_t n;

	if (code == GNUTLS_E_PUSH_ERROR) {
		n = gnutls_record_recv(tls->session, &byte, 1);
		if (n == GNUTLS_E_FATAL_ALERT_RECEIVED)
			code = n;
	}
	return tls_error(tls, code, "sending parameters", why);
}

int tls_send(struct tls *tls, const void *data, size_t len, struct qrdma_reason *why)
{
	const uint8_t *p = data;
	ssize_t n;

	while (len) {
		n = gnutls_record_send(tls->session, p, len);
		if (n == GNUTLS_E_INTERRUPTED)
			continue;
		if (n < 0)
			return tls_send_error(tls, n, why);
		p += n;
		len -= n;
	}
	return 0;
}

int tls_recv(struct tls *tls, void *data, size_t len, struct qrdma_reason *why)
{
	uint8_t *p = data;
	ssize_t n;

	while (len) {
		n = gnutls_record_recv(tls->session, p, len);
		if (n == GNUTLS_E_INTERRUPTED)
			continue;
		if (n == 0)
			return reason_set(why, -ECONNRESET, "waiting for parameters: the peer hung up");
		if (n < 0)
			return tls_error(tls, n, "waiting for parameters", why);
		p += n;
		len -= n;
	}
	return 0;
}

int tls_export(struct tls *tls, const char *label, const void *context, size_t context_len,
	       uint8_t *out, size_t len)
{
	return gnutls_prf_rfc5705(tls->session, strlen(label), label, context_len, context, len,
				  (char *)out) ? -EPROTO : 0;
}
