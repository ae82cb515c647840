/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Credentials as the TLS sessions of this library see them: one GnuTLS session is given what it needs to prove who we
 * are and to judge the peer. Included by the files that drive GnuTLS (tls_gnutls.c, quic_tls.c) and by no other.
 */
#ifndef QRDMA_CRED_H
#define QRDMA_CRED_H

#include <stdbool.h>
#include <gnutls/gnutls.h>
#include "qrdma.h"

/**
 * struct cred_role - what a session wants of its credentials
 * @cred: credentials, shared by sessions
 * @server: role
 * @require_peer_cert: server only
 * @peer_name: what the peer's certificate must carry; a server's NULL: any that is trusted will do
 */
struct cred_role {
	const struct qrdma_cred *cred;
	bool server;
	bool require_peer_cert;
	const char *peer_name;
};

/**
 * struct cred_use - credentials in use by one session
 * @cred: credentials
 * @psk_client: freed by cred_release()
 * @psk_server: freed by cred_release()
 * @verify: what is asked of the peer's certificate, read by GnuTLS as long as the session lives
 * @n_verify: how much of it is used
 * @psk_found: server: an identity that the client offered is one of ours
 * @psk_unknown: server: none of those that it offered so far
 */
struct cred_use {
	const struct qrdma_cred *cred;
	gnutls_psk_client_credentials_t psk_client;
	gnutls_psk_server_credentials_t psk_server;
	gnutls_typed_vdata_st verify[2];
	unsigned int n_verify;
	bool psk_found;
	bool psk_unknown;
};

/* Are they enough for the role? 0, -EINVAL nothing given or no name to verify, -ENOKEY a part is missing. */
int cred_check(const struct cred_role *role, struct qrdma_reason *why);
/* Have they pre-shared keys? Then certificates are not used. */
bool cred_is_psk(const struct qrdma_cred *cred);
/*
 * Gives @session its credentials and takes its user pointer, which becomes @use; @use must outlive the session and is
 * then released. 0 or -ENOMEM.
 */
int cred_apply(struct cred_use *use, gnutls_session_t session, const struct cred_role *role);
void cred_release(struct cred_use *use);
/*
 * Which errno a verification that failed with @status is, the certificate's dates apart from all else: -EKEYEXPIRED,
 * -EKEYREVOKED or -EKEYREJECTED; @why says more.
 */
int cred_verify_error(unsigned int status, struct qrdma_reason *why);

#endif /* QRDMA_CRED_H */
