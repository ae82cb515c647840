// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tables: GnuTLS's error to errno, TLS alert to errno. Both ends of a failed handshake tell the same cause by the same
 * errno; who found it is in the words. Called by quic_tls.c and handshake.c; no state.
 */
#include <errno.h>
#include <gnutls/gnutls.h>
#include "cred.h"
#include "quic_tls.h"
#include "quic_tls_error.h"
#include "tls.h"

static const struct {
	int code;
	int error;
	int alert;		/* 0: the one that GnuTLS chose */
	const char *text;	/* NULL: GnuTLS's own words */
} codes[] = {
	{ GNUTLS_E_CERTIFICATE_REQUIRED, -ENOKEY, GNUTLS_A_CERTIFICATE_REQUIRED, "the peer sent no certificate" },
	{ GNUTLS_E_NO_CERTIFICATE_FOUND, -ENOKEY, GNUTLS_A_CERTIFICATE_REQUIRED, "the peer sent no certificate" },
	{ GNUTLS_E_INSUFFICIENT_CREDENTIALS, -ENOKEY, 0, "no credentials of the kind that the peer wants" },
	{ GNUTLS_E_PK_SIG_VERIFY_FAILED, -EKEYREJECTED, 0, "the peer cannot prove that its certificate is its own" },
	{ GNUTLS_E_UNSUPPORTED_VERSION_PACKET, -EPROTONOSUPPORT, 0, "the peer does not speak TLS 1.3" },
	{ GNUTLS_E_NO_APPLICATION_PROTOCOL, -EPROTONOSUPPORT, 0, "no application protocol (ALPN) in common" },
	{ GNUTLS_E_NO_CIPHER_SUITES, -EPROTONOSUPPORT, 0, "no cipher and kind of credentials in common" },
	{ GNUTLS_E_UNKNOWN_CIPHER_SUITE, -EPROTONOSUPPORT, 0, "no cipher in common" },
	{ GNUTLS_E_NO_COMMON_KEY_SHARE, -EPROTONOSUPPORT, 0, "no key exchange in common" },
	{ GNUTLS_E_MEMORY_ERROR, -ENOMEM, 0, "out of memory" },
};

static const struct {
	uint8_t alert;
	int error;
	const char *text;	/* NULL: the name of the alert says it */
} alerts[] = {
	{ GNUTLS_A_CERTIFICATE_REQUIRED, -ENOKEY, "it wants a certificate of us" },
	{ GNUTLS_A_CERTIFICATE_EXPIRED, -EKEYEXPIRED, "our certificate is out of date" },
	{ GNUTLS_A_CERTIFICATE_REVOKED, -EKEYREVOKED, "our certificate is revoked" },
	{ GNUTLS_A_BAD_CERTIFICATE, -EKEYREJECTED, "it does not accept our certificate" },
	{ GNUTLS_A_UNSUPPORTED_CERTIFICATE, -EKEYREJECTED, "it does not accept our kind of certificate" },
	{ GNUTLS_A_CERTIFICATE_UNKNOWN, -EKEYREJECTED, "it does not accept our certificate" },
	{ GNUTLS_A_UNKNOWN_CA, -EKEYREJECTED, "it does not trust the authority of our certificate" },
	{ GNUTLS_A_DECRYPT_ERROR, -EKEYREJECTED, "our key is not the one that it knows" },
	{ GNUTLS_A_UNKNOWN_PSK_IDENTITY, -EACCES, "it does not know the identity of our pre-shared key" },
	{ GNUTLS_A_PROTOCOL_VERSION, -EPROTONOSUPPORT, "it does not speak our version of TLS" },
	{ GNUTLS_A_NO_APPLICATION_PROTOCOL, -EPROTONOSUPPORT, "no application protocol (ALPN) in common" },
	{ GNUTLS_A_HANDSHAKE_FAILURE, -ECONNREFUSED, "no cipher or kind of credentials in common" },
};

uint8_t quic_tls_verify_alert(unsigned int status)
{
	if (status & (GNUTLS_CERT_EXPIRED | GNUTLS_CERT_NOT_ACTIVATED))
		return GNUTLS_A_CERTIFICATE_EXPIRED;
	if (status & GNUTLS_CERT_REVOKED)
		return GNUTLS_A_CERTIFICATE_REVOKED;
	if (status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA))
		return GNUTLS_A_UNKNOWN_CA;
	return GNUTLS_A_BAD_CERTIFICATE;
}

uint8_t quic_tls_verdict(const struct quic_tls_verdict *verdict, struct qrdma_reason *why)
{
	int code = verdict->code;

	if (verdict->psk_unknown) {
		reason_set(why, -EACCES, "TLS: the peer's pre-shared key has an identity that is not known here");
		return GNUTLS_A_UNKNOWN_PSK_IDENTITY;
	}
	/* GnuTLS has one error for whatever is wrong in a ClientHello, and the key's proof is the last thing in it */
	if (verdict->psk_wrong && code == GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER) {
		reason_set(why, -EKEYREJECTED, "TLS: the peer's pre-shared key is not the one known here");
		return GNUTLS_A_DECRYPT_ERROR;
	}
	if ((code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR || code == GNUTLS_E_CERTIFICATE_ERROR) &&
	    verdict->verify_status && ~verdict->verify_status) {
		cred_verify_error(verdict->verify_status, why);
		return quic_tls_verify_alert(verdict->verify_status);
	}
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (codes[i].code != code)
			continue;
		reason_set(why, codes[i].error, "TLS: %s", codes[i].text);
		return codes[i].alert ? codes[i].alert : verdict->alert;
	}
	reason_set(why, -EPROTO, "TLS: %s", gnutls_strerror(code));
	return verdict->alert;
}

int quic_alert_error(uint8_t alert, struct qrdma_reason *why)
{
	const char *name = gnutls_alert_get_name(alert);

	for (size_t i = 0; i < sizeof(alerts) / sizeof(alerts[0]); i++)
		if (alerts[i].alert == alert)
			return reason_set(why, alerts[i].error, "the peer refused: %s", alerts[i].text);
	if (name)
		return reason_set(why, -ECONNREFUSED, "the peer refused: %s", name);
	return reason_set(why, -ECONNREFUSED, "the peer refused with TLS alert %u", alert);
}
