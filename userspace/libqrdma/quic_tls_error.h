/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the TLS library's errors and the peer's alerts mean: errno, alert and words. No state; for quic_tls.c. */
#ifndef QRDMA_QUIC_TLS_ERROR_H
#define QRDMA_QUIC_TLS_ERROR_H

#include <stdbool.h>
#include "qrdma.h"

/**
 * struct quic_tls_verdict - what is known of a failed handshake
 * @code: GnuTLS's error
 * @alert: the alert that GnuTLS would send for it
 * @verify_status: of the peer's certificate, GNUTLS_CERT_*; all ones: it was not looked at
 * @psk_unknown: no identity that the peer offered is ours
 * @psk_wrong: one was, and the failure came before anything else could be wrong
 */
struct quic_tls_verdict {
	int code;
	uint8_t alert;
	unsigned int verify_status;
	bool psk_unknown;
	bool psk_wrong;
};

/* Fills @why with errno and words; the alert that goes to the peer. */
uint8_t quic_tls_verdict(const struct quic_tls_verdict *verdict, struct qrdma_reason *why);
/* The alert for a certificate that was not accepted. */
uint8_t quic_tls_verify_alert(unsigned int status);

#endif /* QRDMA_QUIC_TLS_ERROR_H */
