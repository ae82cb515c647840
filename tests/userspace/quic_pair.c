// SPDX-License-Identifier: GPL-2.0
/* See quic_pair.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "quic_pair.h"

#define PARAMS_LEN	64

static const char *const alpn[] = { "qrdma" };
static uint8_t params[2][PARAMS_LEN];

void pair_init(struct pair *pair, struct qrdma_cred *client, const char *peer_name, struct qrdma_cred *server)
{
	memset(pair, 0, sizeof(*pair));
	for (int i = 0; i < 2; i++) {
		memset(params[i], 0xc1 + i, PARAMS_LEN);
		pair->side[i].opt.server = i == PAIR_SERVER;
		pair->side[i].opt.alpn = alpn;
		pair->side[i].opt.n_alpn = 1;
		pair->side[i].opt.params = params[i];
		pair->side[i].opt.params_len = PARAMS_LEN;
	}
	pair->side[PAIR_CLIENT].opt.cred = client;
	pair->side[PAIR_CLIENT].opt.peer_name = peer_name;
	pair->side[PAIR_SERVER].opt.cred = server;
}

static void pair_deliver(struct pair *pair, int to, uint8_t level, const uint8_t *data, size_t len)
{
	struct pair_side *s = &pair->side[to];
	size_t piece = pair->piece ? pair->piece : len;

	for (size_t off = 0; off < len && !s->err; off += piece) {
		/* a copy of exact size, so that a read beyond the end is seen */
		size_t n = len - off < piece ? len - off : piece;
		uint8_t *copy = malloc(n);

		memcpy(copy, data + off, n);
		s->err = quic_tls_input(s->quic, level, copy, n);
		free(copy);
	}
}

static void pair_send(struct pair *pair, int from, const struct quic_event *event)
{
	uint8_t *data = malloc(2 * event->len + 64);
	size_t len = event->len;

	pair->side[from].sends++;
	memcpy(data, event->data, len);
	if (pair->edit)
		len = pair->edit(pair, from, event->level, data, len);
	pair_deliver(pair, !from, event->level, data, len);
	free(data);
}

static void pair_event(struct pair *pair, int i, const struct quic_event *event)
{
	struct pair_side *s = &pair->side[i];
	struct pair_side *peer = &pair->side[!i];
	struct pair_secret *secret;

	switch (event->type) {
	case QUIC_EVENT_SEND:
		pair_send(pair, i, event);
		break;
	case QUIC_EVENT_SECRET:
		secret = &s->secrets[event->level][event->send];
		secret->len = event->len;
		secret->cipher = event->cipher;
		memcpy(secret->secret, event->data, event->len);
		break;
	case QUIC_EVENT_PEER_PARAMS:
		s->params_len = event->len;
		memcpy(s->params, event->data, event->len);
		break;
	case QUIC_EVENT_KEYLOG:
		if (s->keylog_len + event->len < sizeof(s->keylog)) {
			memcpy(s->keylog + s->keylog_len, event->data, event->len);
			s->keylog_len += event->len;
		}
		break;
	case QUIC_EVENT_COMPLETE:
		s->complete = true;
		break;
	case QUIC_EVENT_TICKET:
		s->ticket_len = event->len < sizeof(s->ticket) ? event->len : 0;
		memcpy(s->ticket, event->data, s->ticket_len);
		break;
	case QUIC_EVENT_FAILED:
		s->alert = event->alert;
		s->err = event->error;
		/* when a connection ends it does so for both; the first error counts */
		if (!peer->err)
			peer->err = quic_alert_error(event->alert, &peer->why);
		break;
	}
}

void pair_pump(struct pair *pair)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (int i = 0; i < 2; i++) {
			const struct quic_event *event;

			while ((event = quic_tls_event(pair->side[i].quic))) {
				pair_event(pair, i, event);
				quic_tls_event_done(pair->side[i].quic);
				moved = true;
			}
		}
	}
	for (int i = 0; i < 2; i++)
		if (quic_tls_reason(pair->side[i].quic)->error)
			pair->side[i].why = *quic_tls_reason(pair->side[i].quic);
}

void pair_run(struct pair *pair)
{
	bool made = true;

	for (int i = 0; i < 2; i++) {
		struct pair_side *s = &pair->side[i];

		s->alert = -1;
		s->err = quic_tls_new(&s->quic, &s->opt, &s->why);
		if (s->err)
			made = false;
	}
	if (made)
		pair_pump(pair);
}

void pair_end(struct pair *pair)
{
	for (int i = 0; i < 2; i++) {
		quic_tls_free(pair->side[i].quic);
		pair->side[i].quic = NULL;
	}
}

bool pair_good(const struct pair *pair)
{
	static const uint8_t levels[] = { QRDMA_CRYPTO_HANDSHAKE, QRDMA_CRYPTO_APP };

	for (int i = 0; i < 2; i++) {
		const struct pair_side *s = &pair->side[i];
		const struct pair_side *peer = &pair->side[!i];

		if (!s->complete || s->err || s->params_len != peer->opt.params_len ||
		    memcmp(s->params, peer->opt.params, s->params_len))
			return false;
		for (size_t l = 0; l < sizeof(levels); l++) {
			const struct pair_secret *ours = &s->secrets[levels[l]][1];
			const struct pair_secret *theirs = &peer->secrets[levels[l]][0];

			if (!ours->len || ours->len != theirs->len || ours->cipher != theirs->cipher ||
			    memcmp(ours->secret, theirs->secret, ours->len))
				return false;
		}
	}
	return true;
}

const char *pair_text(const struct pair *pair)
{
	static char text[1024];
	const struct pair_side *c = &pair->side[PAIR_CLIENT];
	const struct pair_side *s = &pair->side[PAIR_SERVER];

	snprintf(text, sizeof(text), "client %d alert %d%s (%s), server %d alert %d%s (%s)", c->err, c->alert,
		 c->complete ? " complete" : "", c->why.text, s->err, s->alert, s->complete ? " complete" : "",
		 s->why.text);
	return text;
}
