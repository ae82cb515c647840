// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * TLS 1.3 sessions on GnuTLS over a stream socket, for the handshake out of band, and small helpers on its primitives.
 * Called by oob.c and others. A session belongs to one thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gnutls/gnutls.h>
#include <gnutls/crypto.h>
#include "cred.h"
#include "tls.h"

#define ALPN		"qrdma-oob/1"

struct tls {
	gnutls_session_t session;
	struct cred_use use;
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

static int tls_error(struct tls *tls, int code, const char *step, struct qrdma_reason *why)
{
	switch (code) {
	case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR:
	case GNUTLS_E_CERTIFICATE_ERROR:
		return cred_verify_error(gnutls_session_get_verify_cert_status(tls->session), why);
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
	if (cred_is_psk(opt->cred))
		return "NONE:+VERS-TLS1.3:+AEAD:+ECDHE-PSK:+DHE-PSK:+AES-128-GCM:+CHACHA20-POLY1305:"
		       "+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:+SIGN-ALL";
	return "NORMAL:-VERS-ALL:+VERS-TLS1.3";
}

static int tls_setup(struct tls *tls, int fd, const struct tls_options *opt, const struct cred_role *role)
{
	static const gnutls_datum_t alpn = { (unsigned char *)ALPN, sizeof(ALPN) - 1 };
	int err;

	err = gnutls_init(&tls->session, (opt->server ? GNUTLS_SERVER : GNUTLS_CLIENT) |
			  GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);
	if (err)
		return -ENOMEM;
	if (gnutls_priority_set_direct(tls->session, tls_priority(opt), NULL))
		return -EPROTO;
	if (cred_apply(&tls->use, tls->session, role))
		return -ENOMEM;
	if (gnutls_alpn_set_protocols(tls->session, &alpn, 1, GNUTLS_ALPN_MANDATORY))
		return -ENOMEM;
	gnutls_transport_set_int(tls->session, fd);
	gnutls_handshake_set_timeout(tls->session, opt->timeout_ms);
	gnutls_record_set_timeout(tls->session, opt->timeout_ms);
	return 0;
}

int tls_new(struct tls **out, int fd, const struct tls_options *opt, struct qrdma_reason *why)
{
	const struct cred_role role = {
		.cred = opt->cred,
		.server = opt->server,
		.require_peer_cert = opt->require_peer_cert,
		.peer_name = opt->peer_name,
	};
	struct tls *tls;
	int err;

	err = cred_check(&role, why);
	if (err)
		return err;
	tls = calloc(1, sizeof(*tls));
	if (!tls)
		return reason_set(why, -ENOMEM, "out of memory");
	err = tls_setup(tls, fd, opt, &role);
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
	cred_release(&tls->use);
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
