/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a TLS session of QUIC wants to be done, in order. The queue belongs to quic_tls.c; others look at its head. */
#ifndef QRDMA_QUIC_EVENTS_H
#define QRDMA_QUIC_EVENTS_H

#include <stdbool.h>
#include "qrdma.h"

enum quic_event_type {
	QUIC_EVENT_SEND,	/* @data goes to the peer in CRYPTO frames of @level */
	QUIC_EVENT_SECRET,	/* @data is the traffic secret of @level and direction @send, for @cipher */
	QUIC_EVENT_PEER_PARAMS,	/* @data is the peer's quic_transport_parameters extension */
	QUIC_EVENT_KEYLOG,	/* @data is a line of a key log, newline included, no terminator */
	QUIC_EVENT_COMPLETE,	/* the handshake is complete */
	QUIC_EVENT_TICKET,	/* client: @data is a ticket for the next session */
	QUIC_EVENT_FAILED,	/* last of all: @error is why, @alert goes to the peer */
};

/**
 * struct quic_event - one thing to do
 * @next: the driver's
 * @type: what
 * @level: QRDMA_CRYPTO_* of SEND and SECRET
 * @send: SECRET: we seal with it
 * @cipher: SECRET: QRDMA_CIPHER_*
 * @error: FAILED: negative errno
 * @alert: FAILED: TLS alert
 * @len: bytes of @data
 * @data: bytes, wiped with the event
 */
struct quic_event {
	struct quic_event *next;
	enum quic_event_type type;
	uint8_t level;
	bool send;
	uint32_t cipher;
	int error;
	uint8_t alert;
	size_t len;
	uint8_t *data;
};

/**
 * struct quic_events - a queue of them; clear, then quic_events_init()
 * @first: the next to be done, NULL: none
 * @last: where the one after the last goes
 */
struct quic_events {
	struct quic_event *first;
	struct quic_event **last;
};

void quic_events_init(struct quic_events *events);
/* One more, with a copy of @len bytes; the caller fills the rest. NULL: no memory. */
struct quic_event *quic_events_add(struct quic_events *events, enum quic_event_type type, const void *data, size_t len);
/* Bytes to be sent: behind those of the same level, if these are last in the queue. 0 or -ENOMEM. */
int quic_events_add_send(struct quic_events *events, uint8_t level, const void *data, size_t len);
/* Takes the first off, wiped; there must be one. */
void quic_events_pop(struct quic_events *events);

#endif /* QRDMA_QUIC_EVENTS_H */
