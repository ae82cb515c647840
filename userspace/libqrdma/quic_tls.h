/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * TLS 1.3 as QUIC uses it (RFC 9001): no records, bytes of handshake messages at encryption levels. This driver knows
 * no socket and no clock but the one that certificates are judged by: bytes go in with quic_tls_input(), and what is to
 * be done comes out as a queue of events, in the order in which it has to be done. Nothing blocks.
 */
#ifndef QRDMA_QUIC_TLS_H
#define QRDMA_QUIC_TLS_H

#include <stdbool.h>
#include "qrdma.h"
#include "quic_events.h"

#define QUIC_TLS_PARAMS_MAX	1024	/* bytes of a transport parameters extension */
#define QUIC_TLS_ALPN_MAX	8	/* protocols that one side names */
#define QUIC_TLS_ALPN_NAME_MAX	31	/* bytes of a name; GnuTLS takes no more */
#define QUIC_TLS_CIPHERS_MAX	8

struct quic_tls;

/**
 * struct quic_tls_options - one session; everything pointed to is copied, but @cred and @tickets must stay
 * @cred: credentials
 * @server: role
 * @require_peer_cert: server: refuse a client without a certificate that we trust
 * @peer_name: what the peer's certificate must carry; a server's NULL: any that is trusted; not needed with a
 *	pre-shared key
 * @ciphers: QRDMA_CIPHER_* in order of preference; the server's order decides
 * @n_ciphers: how many, at most QUIC_TLS_CIPHERS_MAX, 0: all
 * @alpn: protocols in order of preference; the server's order decides
 * @n_alpn: how many, 1 to QUIC_TLS_ALPN_MAX
 * @params: our quic_transport_parameters extension
 * @params_len: its bytes, at most QUIC_TLS_PARAMS_MAX
 * @keylog: make QUIC_EVENT_KEYLOG
 * @tickets: server: issue a ticket and take those issued under the same key; NULL: neither
 * @want_ticket: client: make QUIC_EVENT_TICKET
 * @ticket: client: a ticket of an earlier session; NULL: none
 * @ticket_len: its bytes
 */
struct quic_tls_options {
	const struct qrdma_cred *cred;
	bool server;
	bool require_peer_cert;
	const char *peer_name;
	const uint32_t *ciphers;
	size_t n_ciphers;
	const char *const *alpn;
	size_t n_alpn;
	const uint8_t *params;
	size_t params_len;
	bool keylog;
	const struct qrdma_tickets *tickets;
	bool want_ticket;
	const void *ticket;
	size_t ticket_len;
};

/* Are the options, but for @params, good? 0, -EINVAL, -ENOKEY with @why. */
int quic_tls_check(const struct quic_tls_options *opt, struct qrdma_reason *why);
/*
 * A session; a client's first event is its ClientHello. 0, or -EINVAL, -ENOKEY, -ENOMEM, -EPROTONOSUPPORT with @why.
 */
int quic_tls_new(struct quic_tls **quic, const struct quic_tls_options *opt, struct qrdma_reason *why);
/* Forgets and wipes; NULL is accepted. */
void quic_tls_free(struct quic_tls *quic);
/*
 * @len bytes of the peer's CRYPTO stream of @level, in order, of any length. 0, or the negative errno with which the
 * session failed, now or before; then QUIC_EVENT_FAILED is the last event.
 */
int quic_tls_input(struct quic_tls *quic, uint8_t level, const uint8_t *data, size_t len);
/* First event in the queue, NULL when there is none; quic_tls_event_done() takes it off and frees it. */
const struct quic_event *quic_tls_event(const struct quic_tls *quic);
void quic_tls_event_done(struct quic_tls *quic);
/* Why the session failed, error 0 when it has not. */
const struct qrdma_reason *quic_tls_reason(const struct quic_tls *quic);
/* Complete, and a ticket shortened it? */
bool quic_tls_resumed(const struct quic_tls *quic);
/* Client, complete: was it asked for a certificate, on which the server's verdict is not known? */
bool quic_tls_judged(const struct quic_tls *quic);
/* The protocol that was agreed on, NULL before that. */
const char *quic_tls_alpn(const struct quic_tls *quic);
/* What an alert of the peer says: a negative errno, and a line in @why. */
int quic_alert_error(uint8_t alert, struct qrdma_reason *why);

#endif /* QRDMA_QUIC_TLS_H */
