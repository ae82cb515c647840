/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Session tickets: the key that a server seals them with, and the wrapping that binds a client's to a server's name. */
#ifndef QRDMA_TICKETS_H
#define QRDMA_TICKETS_H

#include "qrdma.h"

#define TICKETS_KEY_LEN		64	/* bytes, as GnuTLS wants it */
#define TICKET_HEAD_LEN		40	/* bytes that ticket_wrap() puts in front */

/* The server's key, TICKETS_KEY_LEN bytes. */
const uint8_t *tickets_key(const struct qrdma_tickets *tickets);
/* Fills @head for a ticket that the server of that name issued. 0 or -EIO. */
int ticket_wrap(uint8_t head[TICKET_HEAD_LEN], const char *peer_name);
/* Was @ticket issued by the server of that name? 0, or -EINVAL, also when it is no ticket. */
int ticket_check(const uint8_t *ticket, size_t len, const char *peer_name);

#endif /* QRDMA_TICKETS_H */
