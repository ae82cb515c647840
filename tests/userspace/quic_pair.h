/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two TLS drivers joined in memory: what one sends is given to the other in pieces of a chosen size, a failure of one
 * becomes an alert at the other, and secrets and parameters are kept to be compared.
 */
#ifndef TESTS_USERSPACE_QUIC_PAIR_H
#define TESTS_USERSPACE_QUIC_PAIR_H

#include <stdbool.h>
#include "quic_tls.h"

enum { PAIR_CLIENT, PAIR_SERVER };

/* A traffic secret as one end was told it. */
struct pair_secret {
	size_t len;
	uint32_t cipher;
	uint8_t secret[QRDMA_CRYPTO_SECRET_SIZE];
};

struct pair_side {
	struct quic_tls_options opt;
	struct quic_tls *quic;
	struct qrdma_reason why;
	bool complete;
	int err;			/* 0 while nothing is wrong */
	int alert;			/* that it sent, -1 none */
	struct pair_secret secrets[4][2];	/* [level][send] */
	uint8_t params[QUIC_TLS_PARAMS_MAX];	/* of the peer */
	size_t params_len;
	uint8_t ticket[16384];
	size_t ticket_len;
	char keylog[4096];
	size_t keylog_len;
	size_t sends;			/* events of that kind */
};

/*
 * @edit, when there is one, sees what @from sends at @level before it is delivered and may change it in place, at most
 * doubling it; the new length is returned.
 */
struct pair {
	struct pair_side side[2];
	size_t piece;			/* bytes, 0: as it comes */
	size_t (*edit)(struct pair *pair, int from, uint8_t level, uint8_t *data, size_t len);
	size_t arg;			/* for @edit */
	bool edited;			/* by @edit, if it says so */
};

/* Fills both ends with what every test wants: a name, a protocol, parameters of @params_len bytes. */
void pair_init(struct pair *pair, struct qrdma_cred *client, const char *peer_name, struct qrdma_cred *server);
/* Makes the drivers and runs until nothing moves any more. */
void pair_run(struct pair *pair);
/* Goes on with drivers that are there. */
void pair_pump(struct pair *pair);
/* Frees drivers, not credentials. */
void pair_end(struct pair *pair);
/* Both complete, the same secrets and each other's parameters. */
bool pair_good(const struct pair *pair);
/* What there is to say about a pair, in a static buffer. */
const char *pair_text(const struct pair *pair);

#endif /* TESTS_USERSPACE_QUIC_PAIR_H */
