// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Keys of a server's session tickets, and the head of a client's: eight bytes of magic and version, then the digest of
 * the server's name. Called by the application (qrdma_tickets_*) and quic_tls.c. A key is read only once it is made.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tickets.h"
#include "tls.h"

static const uint8_t ticket_magic[8] = { 'q', 'r', 'd', 'm', 'a', 't', 0, 1 };

struct qrdma_tickets {
	uint8_t key[TICKETS_KEY_LEN];
};

int qrdma_tickets_new(struct qrdma_tickets **tickets, const uint8_t *key, size_t len)
{
	struct qrdma_tickets *t;

	if (key && len != TICKETS_KEY_LEN)
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	if (key) {
		memcpy(t->key, key, len);
	} else if (tls_random(t->key, sizeof(t->key))) {
		free(t);
		return -EIO;
	}
	*tickets = t;
	return 0;
}

void qrdma_tickets_free(struct qrdma_tickets *tickets)
{
	if (!tickets)
		return;
	tls_wipe(tickets, sizeof(*tickets));
	free(tickets);
}

const uint8_t *tickets_key(const struct qrdma_tickets *tickets)
{
	return tickets->key;
}

int ticket_wrap(uint8_t head[TICKET_HEAD_LEN], const char *peer_name)
{
	memcpy(head, ticket_magic, sizeof(ticket_magic));
	return tls_digest(peer_name, strlen(peer_name), head + sizeof(ticket_magic));
}

int ticket_check(const uint8_t *ticket, size_t len, const char *peer_name)
{
	uint8_t head[TICKET_HEAD_LEN];

	if (len <= sizeof(head) || ticket_wrap(head, peer_name))
		return -EINVAL;
	return memcmp(ticket, head, sizeof(head)) ? -EINVAL : 0;
}
