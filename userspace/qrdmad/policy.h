/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the configuration means for one handshake: made whole when it is loaded, with every credential read, so that a
 * handshake opens no file and finds no fault in it. Read only afterwards; workers inherit it by fork().
 */
#ifndef QRDMAD_POLICY_H
#define QRDMAD_POLICY_H

#include <qrdma.h>
#include "config.h"

/**
 * struct policy - how one kind of handshake is run
 * @allow: whether
 * @auth: enum authenticate
 * @cred: credentials, NULL if not @allow
 * @name: what the peer's certificate has to carry; NULL: a server's its address, a client's anything that we trust
 * @timeout_ms: 0: the library's default
 * @ciphers: QRDMA_CIPHER_*
 * @n_ciphers: 0: the library's default
 */
struct policy {
	bool allow;
	enum authenticate auth;
	const struct qrdma_cred *cred;
	const char *name;
	int timeout_ms;
	const uint32_t *ciphers;
	size_t n_ciphers;
};

struct policies;

/*
 * Judges and reads all that @config names; @config stays the caller's, and must stay. 0, or -EINVAL with @why naming
 * the sections.
 */
int policies_new(struct policies **policies, const struct config *config, char why[CONFIG_WHY_SIZE]);
/* NULL is accepted. */
void policies_free(struct policies *policies);
/*
 * @role: QRDMA_ROLE_*; @peer: its address; @port: the server's, whoever asks. NULL: there is no section for the role.
 * Of the sections [peer] the one with the longest prefix is taken. Its keys stand over those of the section [port], and
 * these over those of [client] or [server].
 */
const struct policy *policy_find(const struct policies *policies, int role, const struct in6_addr *peer,
				 unsigned int port);

#endif /* QRDMAD_POLICY_H */
