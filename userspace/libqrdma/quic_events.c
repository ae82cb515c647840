// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The queue of what a TLS session wants to be done. Called by quic_tls.c only; no lock, the session's thread. A peer
 * cannot make it grow: each of its messages makes a handful of events, and the handshake has few messages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "quic_events.h"
#include "tls.h"

void quic_events_init(struct quic_events *events)
{
	events->first = NULL;
	events->last = &events->first;
}

struct quic_event *quic_events_add(struct quic_events *events, enum quic_event_type type, const void *data, size_t len)
{
	struct quic_event *event = calloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->type = type;
	event->data = malloc(len ? len : 1);
	if (!event->data) {
		free(event);
		return NULL;
	}
	if (len)
		memcpy(event->data, data, len);
	event->len = len;
	*events->last = event;
	events->last = &event->next;
	return event;
}

/* TLS makes a flight message by message; the peer may as well get it in one go. */
int quic_events_add_send(struct quic_events *events, uint8_t level, const void *data, size_t len)
{
	struct quic_event *event = events->first;
	uint8_t *more;

	while (event && event->next)
		event = event->next;
	if (event && event->type == QUIC_EVENT_SEND && event->level == level) {
		more = realloc(event->data, event->len + len);
		if (!more)
			return -ENOMEM;
		memcpy(more + event->len, data, len);
		event->data = more;
		event->len += len;
		return 0;
	}
	event = quic_events_add(events, QUIC_EVENT_SEND, data, len);
	if (!event)
		return -ENOMEM;
	event->level = level;
	return 0;
}

void quic_events_pop(struct quic_events *events)
{
	struct quic_event *event = events->first;

	events->first = event->next;
	if (!events->first)
		events->last = &events->first;
	tls_wipe(event->data, event->len);
	free(event->data);
	free(event);
}
