/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The TLS session that an out-of-band handshake runs in; tls_gnutls.c runs it on GnuTLS.
 * Sessions block; each call waits at most the time-out given to tls_new().
 */
#ifndef QRDMA_TLS_H
#define QRDMA_TLS_H

#include <stdbool.h>
#include "qrdma.h"

struct tls;

/**
 * struct tls_options - one session
 * @cred: credentials
 * @server: role
 * @require_peer_cert: server only
 * @peer_name: what the peer's certificate must carry; a server's NULL: any that is trusted
 * @timeout_ms: limit of one step
 */
struct tls_options {
	const struct qrdma_cred *cred;
	bool server;
	bool require_peer_cert;
	const char *peer_name;
	int timeout_ms;
};

/* A session on the connected socket @fd, handshake done and peer verified. 0 or -errno as qrdma_oob_connect() lists. */
int tls_new(struct tls **tls, int fd, const struct tls_options *opt, struct qrdma_reason *why);
/* Says goodbye without waiting for an answer and frees; NULL is accepted. */
void tls_free(struct tls *tls);
/* All @len bytes or -errno. */
int tls_send(struct tls *tls, const void *data, size_t len, struct qrdma_reason *why);
int tls_recv(struct tls *tls, void *data, size_t len, struct qrdma_reason *why);
/* Exporter of RFC 8446 s7.5: @len bytes under @label and @context. 0 or -EPROTO. */
int tls_export(struct tls *tls, const char *label, const void *context, size_t context_len,
	       uint8_t *out, size_t len);
/* Random bytes fit for keys and ids. 0 or -EIO. */
int tls_random(void *data, size_t len);
/* SHA-256. 0 or -EIO. */
int tls_digest(const void *data, size_t len, uint8_t out[32]);
void tls_wipe(void *data, size_t len);

/* Fill @why (if any) and give @error back. */
int reason_set(struct qrdma_reason *why, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* QRDMA_TLS_H */
