// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The in-band handshake: moves bytes between a connection (handshake.h) and the TLS driver (quic_tls.h), and does what
 * the driver's events say, in their order. Called by the application; one handshake belongs to one thread. Also the key
 * log, which is written here because the driver knows no files.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "handshake.h"
#include "quic_tls.h"
#include "tls.h"

#define HS_TIMEOUT_MS	10000
#define HS_READ_SIZE	16384
/* QUIC error codes 0x100 + TLS alert (RFC 9001 s4.8) */
#define QUIC_CRYPTO_ERROR	0x100
#define ALERT_INTERNAL_ERROR	80
#define ALERT_USER_CANCELED	90

/* HS_CONFIRM: TLS is through, and the connection is about to carry data */
enum hs_phase { HS_CONNECT, HS_RUN, HS_CONFIRM, HS_DONE, HS_FAILED };

struct qrdma_handshake {
	const struct hs_transport *transport;
	int fd;
	bool server;
	bool await_verdict;
	bool agent;
	enum hs_phase phase;
	short events;
	int64_t deadline;		/* CLOCK_MONOTONIC, milliseconds */
	int keylog;			/* descriptor or -1 */
	struct qrdma_reason why;	/* of HS_FAILED */
	/* what the driver will be made of, once the connection knows its parameters */
	struct quic_tls_options opt;
	char *peer_name;
	uint32_t ciphers[QUIC_TLS_CIPHERS_MAX];
	char *alpn[QUIC_TLS_ALPN_MAX];
	uint8_t *resume;
	struct quic_tls *quic;
	size_t sent;			/* bytes of the event in front that are sent */
	uint8_t *ticket;		/* the newest */
	size_t ticket_len;
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int hs_end_error(const struct hs_end *end, struct qrdma_reason *why)
{
	if (end->by_transport && end->remote && end->code >= QUIC_CRYPTO_ERROR && end->code < QUIC_CRYPTO_ERROR + 256)
		return quic_alert_error(end->code - QUIC_CRYPTO_ERROR, why);
	if (end->by_transport && end->code >= QUIC_CRYPTO_ERROR && end->code < QUIC_CRYPTO_ERROR + 256)
		return reason_set(why, end->error ? -end->error : -ECONNABORTED, "this end refused the peer");
	if (end->by_transport && end->code)
		return reason_set(why, end->remote ? -ECONNREFUSED : -EPROTO, "%s found a QUIC error %#llx",
				  end->remote ? "the peer" : "this end", (unsigned long long)end->code);
	if (end->error == ETIMEDOUT)
		return reason_set(why, -ETIMEDOUT, "the peer did not answer in time");
	if (end->error && end->error != ECONNRESET)
		return reason_set(why, -end->error, "the connection ended: %s", strerror(end->error));
	return reason_set(why, -ECONNRESET, "the peer hung up");
}

/* Ends the handshake; the peer is told unless the connection is gone (@alert < 0). */
static int hs_fail(struct qrdma_handshake *hs, int alert)
{
	hs->phase = HS_FAILED;
	if (alert >= 0)
		hs->transport->result(hs->fd, -hs->why.error, alert, false);
	return hs->why.error;
}

static int hs_fail_call(struct qrdma_handshake *hs, const char *what, int err)
{
	reason_set(&hs->why, err, "%s: %s", what, strerror(-err));
	return hs_fail(hs, ALERT_INTERNAL_ERROR);
}

/* The connection has ended, or a call says that it has (@err, 0 none). */
static int hs_ended(struct qrdma_handshake *hs, int err)
{
	struct hs_end end = { 0 };

	if (hs->transport->end(hs->fd, &end))
		memset(&end, 0, sizeof(end));
	if (!end.error)
		end.error = -err;
	hs_end_error(&end, &hs->why);
	return hs_fail(hs, -1);
}

/* Options. */

static int hs_copy(struct qrdma_handshake *hs, const struct qrdma_handshake_options *opt)
{
	static const char *const default_alpn[] = { "qrdma" };
	const char *const *alpn = opt->n_alpn ? opt->alpn : default_alpn;
	size_t n_alpn = opt->n_alpn ? opt->n_alpn : 1;

	if (opt->peer_name) {
		hs->peer_name = strdup(opt->peer_name);
		if (!hs->peer_name)
			return -ENOMEM;
	}
	for (size_t i = 0; i < n_alpn; i++) {
		hs->alpn[i] = strdup(alpn[i]);
		if (!hs->alpn[i])
			return -ENOMEM;
	}
	if (opt->ticket) {
		hs->resume = malloc(opt->ticket_len + 1);
		if (!hs->resume)
			return -ENOMEM;
		memcpy(hs->resume, opt->ticket, opt->ticket_len);
	}
	for (size_t i = 0; i < opt->n_ciphers; i++)
		hs->ciphers[i] = opt->ciphers[i];
	hs->opt = (struct quic_tls_options) {
		.cred = opt->cred,
		.server = hs->server,
		.require_peer_cert = opt->require_peer_cert,
		.peer_name = hs->peer_name,
		.ciphers = hs->ciphers,
		.n_ciphers = opt->n_ciphers,
		.alpn = (const char *const *)hs->alpn,
		.n_alpn = n_alpn,
		.keylog = opt->keylog_file,
		.tickets = opt->tickets,
		.want_ticket = opt->want_ticket,
		.ticket = hs->resume,
		.ticket_len = opt->ticket_len,
	};
	return 0;
}

static int hs_check(const struct qrdma_handshake_options *opt, bool server, struct qrdma_reason *why)
{
	if (!opt || opt->size != sizeof(*opt))
		return reason_set(why, -EINVAL, "options of a size that this library does not know");
	if (opt->n_ciphers > QUIC_TLS_CIPHERS_MAX || (opt->n_ciphers && !opt->ciphers))
		return reason_set(why, -EINVAL, "too many ciphers");
	if (opt->n_alpn > QUIC_TLS_ALPN_MAX || (opt->n_alpn && !opt->alpn))
		return reason_set(why, -EINVAL, "too many application protocols");
	for (size_t i = 0; i < opt->n_alpn; i++)
		if (!opt->alpn[i])
			return reason_set(why, -EINVAL, "an application protocol without a name");
	if (opt->timeout_ms < 0)
		return reason_set(why, -EINVAL, "time-out out of range");
	if (server ? opt->ticket || opt->want_ticket : !!opt->tickets)
		return reason_set(why, -EINVAL, "ticket options of the other end");
	return 0;
}

static int hs_keylog_open(struct qrdma_handshake *hs, const char *file, struct qrdma_reason *why)
{
	if (!file)
		return 0;
	hs->keylog = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
	if (hs->keylog < 0)
		return reason_set(why, -errno, "key log %s: %s", file, strerror(errno));
	return 0;
}

int hs_new(struct qrdma_handshake **out, const struct hs_transport *transport, int fd, bool server,
	   const struct qrdma_handshake_options *opt, struct qrdma_reason *why)
{
	struct qrdma_handshake *hs;
	int err;

	if (why)
		memset(why, 0, sizeof(*why));
	err = hs_check(opt, server, why);
	if (err)
		return err;
	hs = calloc(1, sizeof(*hs));
	if (!hs)
		return reason_set(why, -ENOMEM, "out of memory");
	hs->transport = transport;
	hs->fd = fd;
	hs->server = server;
	hs->await_verdict = opt->await_verdict;
	hs->agent = opt->agent;
	hs->events = POLLIN;
	hs->keylog = -1;
	hs->deadline = now_ms() + (opt->timeout_ms ? opt->timeout_ms : HS_TIMEOUT_MS);
	err = hs_copy(hs, opt);
	if (err)
		reason_set(why, err, "out of memory");
	if (!err)
		err = quic_tls_check(&hs->opt, why);
	if (!err)
		err = hs_keylog_open(hs, opt->keylog_file, why);
	if (err) {
		hs->phase = HS_FAILED;
		qrdma_handshake_free(hs);
		return err;
	}
	*out = hs;
	return 0;
}

void qrdma_handshake_free(struct qrdma_handshake *hs)
{
	if (!hs)
		return;
	if (hs->phase < HS_CONFIRM)
		hs->transport->result(hs->fd, ECONNABORTED, ALERT_USER_CANCELED, false);
	quic_tls_free(hs->quic);
	for (size_t i = 0; i < QUIC_TLS_ALPN_MAX; i++)
		free(hs->alpn[i]);
	if (hs->resume)
		tls_wipe(hs->resume, hs->opt.ticket_len);
	if (hs->ticket)
		tls_wipe(hs->ticket, hs->ticket_len);
	free(hs->resume);
	free(hs->ticket);
	free(hs->peer_name);
	if (hs->keylog >= 0)
		close(hs->keylog);
	free(hs);
}

/* A send that failed: is the connection at its end, or was it the call alone? */
static int hs_fail_send(struct qrdma_handshake *hs, int err)
{
	switch (err) {
	case -ENOBUFS:
	case -ENOMEM:
	case -EMSGSIZE:
	case -EINVAL:
		return hs_fail_call(hs, "sending the handshake", err);
	default:
		return hs_ended(hs, err);
	}
}

/* The driver's events. Each returns 0 done, -EAGAIN the socket is full, or the error that ended the handshake. */

static int event_send(struct qrdma_handshake *hs, const struct quic_event *event)
{
	ssize_t n;

	while (hs->sent < event->len) {
		n = hs->transport->send(hs->fd, event->level, event->data + hs->sent, event->len - hs->sent);
		if (n == -EAGAIN)
			return -EAGAIN;
		if (n < 0)
			return hs_fail_send(hs, n);
		hs->sent += n;
	}
	return 0;
}

static int event_keylog(struct qrdma_handshake *hs, const struct quic_event *event)
{
	ssize_t n;

	do {
		n = write(hs->keylog, event->data, event->len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return hs_fail_call(hs, "key log", -errno);
	return n == (ssize_t)event->len ? 0 : hs_fail_call(hs, "key log", -EIO);
}

static int event_ticket(struct qrdma_handshake *hs, const struct quic_event *event)
{
	uint8_t *copy = malloc(event->len);

	/* The one before stays good. */
	if (!copy)
		return 0;
	if (hs->ticket)
		tls_wipe(hs->ticket, hs->ticket_len);
	free(hs->ticket);
	memcpy(copy, event->data, event->len);
	hs->ticket = copy;
	hs->ticket_len = event->len;
	return 0;
}

static int event_peer_params(struct qrdma_handshake *hs, const struct quic_event *event)
{
	int err = hs->transport->peer_params(hs->fd, event->data, event->len);

	if (err == -EPROTO) {
		/* the kernel closes the connection itself, with a code of its own */
		reason_set(&hs->why, err, "the peer's transport parameters are against the rules");
		return hs_fail(hs, -1);
	}
	return err ? hs_fail_call(hs, "transport parameters of the peer", err) : 0;
}

static int event_do(struct qrdma_handshake *hs, const struct quic_event *event)
{
	int err;

	switch (event->type) {
	case QUIC_EVENT_SEND:
		return event_send(hs, event);
	case QUIC_EVENT_SECRET:
		err = hs->transport->secret(hs->fd, event->level, event->send, event->cipher, event->data);
		return err ? hs_fail_call(hs, "traffic secret", err) : 0;
	case QUIC_EVENT_PEER_PARAMS:
		return event_peer_params(hs, event);
	case QUIC_EVENT_KEYLOG:
		return event_keylog(hs, event);
	case QUIC_EVENT_COMPLETE:
		err = hs->transport->result(hs->fd, 0, 0, hs->await_verdict && quic_tls_judged(hs->quic));
		if (err)
			return hs_ended(hs, err);
		hs->phase = hs->agent ? HS_DONE : HS_CONFIRM;
		return 0;
	case QUIC_EVENT_TICKET:
		return event_ticket(hs, event);
	case QUIC_EVENT_FAILED:
		hs->why = *quic_tls_reason(hs->quic);
		return hs_fail(hs, event->alert);
	}
	return 0;
}

static int hs_flush(struct qrdma_handshake *hs)
{
	const struct quic_event *event;
	int err;

	while ((event = quic_tls_event(hs->quic))) {
		err = event_do(hs, event);
		if (err)
			return err;
		hs->sent = 0;
		quic_tls_event_done(hs->quic);
	}
	return 0;
}

/* Steps. */

static int hs_connect(struct qrdma_handshake *hs)
{
	uint8_t params[QUIC_TLS_PARAMS_MAX];
	int state = hs->transport->state(hs->fd);
	ssize_t n;

	if (state < 0)
		return hs_fail_call(hs, "state of the socket", state);
	switch (state) {
	case QRDMA_STATE_CONNECTING:
		hs->events = POLLOUT;
		return -EAGAIN;
	case QRDMA_STATE_HANDSHAKE:
		break;
	case QRDMA_STATE_ESTABLISHED:
		reason_set(&hs->why, -EISCONN, "the connection is established already");
		return hs_fail(hs, -1);
	default:
		return hs_ended(hs, -ENOTCONN);
	}
	n = hs->transport->params(hs->fd, params, sizeof(params));
	if (n < 0)
		return hs_fail_call(hs, "transport parameters", n);
	hs->opt.params = params;
	hs->opt.params_len = n;
	if (quic_tls_new(&hs->quic, &hs->opt, &hs->why))
		return hs_fail(hs, ALERT_INTERNAL_ERROR);
	hs->phase = HS_RUN;
	return 0;
}

/*
 * TLS is through. A server's connection carries data when the client's first packet under the last keys is in, and
 * until then a read of it is one of handshake bytes: not the application's.
 */
static int hs_confirm(struct qrdma_handshake *hs)
{
	int state = hs->transport->state(hs->fd);

	switch (state) {
	case QRDMA_STATE_CONNECTING:
	case QRDMA_STATE_HANDSHAKE:
		hs->events = POLLOUT;
		return -EAGAIN;
	case QRDMA_STATE_ESTABLISHED:
	case QRDMA_STATE_CLOSING:
		hs->phase = HS_DONE;
		return 0;
	default:
		return hs_ended(hs, state < 0 ? state : 0);
	}
}

static int hs_run_step(struct qrdma_handshake *hs)
{
	uint8_t data[HS_READ_SIZE];
	uint8_t level;
	ssize_t n;
	int err;

	for (;;) {
		err = hs_flush(hs);
		/* what is left once TLS is through is a ticket for which there is no room now */
		if (hs->phase == HS_CONFIRM || hs->phase == HS_DONE)
			return 0;
		if (err && err != -EAGAIN)
			return err;
		hs->events = POLLIN | (err ? POLLOUT : 0);
		n = hs->transport->recv(hs->fd, &level, data, sizeof(data));
		if (n == -EAGAIN)
			return -EAGAIN;
		if (n <= 0)
			return hs_ended(hs, n);
		err = quic_tls_input(hs->quic, level, data, n);
		if (err && !quic_tls_event(hs->quic)) {
			/* no memory even for saying so */
			hs->why = *quic_tls_reason(hs->quic);
			return hs_fail(hs, ALERT_INTERNAL_ERROR);
		}
	}
}

int qrdma_handshake_step(struct qrdma_handshake *hs, struct qrdma_reason *why)
{
	int err = 0;

	if (why)
		memset(why, 0, sizeof(*why));
	if (hs->phase == HS_CONNECT)
		err = hs_connect(hs);
	if (!err && hs->phase == HS_RUN)
		err = hs_run_step(hs);
	else if (!err && hs->phase == HS_DONE)
		hs_flush(hs);	/* a server's ticket for which there was no room */
	if (!err && hs->phase == HS_CONFIRM)
		err = hs_confirm(hs);
	if (err == -EAGAIN && now_ms() >= hs->deadline) {
		reason_set(&hs->why, -ETIMEDOUT, "the peer did not answer in time");
		hs_fail(hs, ALERT_USER_CANCELED);
	}
	if (hs->phase != HS_FAILED)
		return err;
	if (why)
		*why = hs->why;
	return hs->why.error;
}

short qrdma_handshake_events(const struct qrdma_handshake *hs)
{
	return hs->events;
}

int qrdma_handshake_timeout(const struct qrdma_handshake *hs)
{
	int64_t left = hs->deadline - now_ms();

	return left > 0 ? left : 0;
}

const char *qrdma_handshake_alpn(const struct qrdma_handshake *hs)
{
	return hs->quic ? quic_tls_alpn(hs->quic) : NULL;
}

int qrdma_handshake_resumed(const struct qrdma_handshake *hs)
{
	return hs->phase == HS_DONE && quic_tls_resumed(hs->quic);
}

ssize_t qrdma_handshake_ticket(struct qrdma_handshake *hs, void *ticket, size_t size)
{
	uint8_t data[HS_READ_SIZE];
	size_t len;
	ssize_t n;

	if (hs->phase != HS_DONE || !hs->opt.want_ticket)
		return -EINVAL;
	while ((n = hs->transport->ticket(hs->fd, data, sizeof(data))) > 0) {
		if (quic_tls_input(hs->quic, QRDMA_CRYPTO_APP, data, n))
			return -EPROTO;
		if (hs_flush(hs))
			return -EPROTO;
	}
	if (n < 0 && n != -ENODATA)
		return n;
	if (!hs->ticket)
		return -ENODATA;
	if (hs->ticket_len > size)
		return -EMSGSIZE;
	len = hs->ticket_len;
	memcpy(ticket, hs->ticket, len);
	tls_wipe(hs->ticket, len);
	free(hs->ticket);
	hs->ticket = NULL;
	return len;
}

int hs_run(const struct hs_transport *transport, int fd, bool server, const struct qrdma_handshake_options *opt,
	   struct qrdma_reason *why)
{
	struct qrdma_handshake *hs;
	int err;

	err = hs_new(&hs, transport, fd, server, opt, why);
	if (err)
		return err;
	while ((err = qrdma_handshake_step(hs, why)) == -EAGAIN) {
		err = transport->wait(fd, hs->events, qrdma_handshake_timeout(hs));
		if (err) {
			reason_set(why, err, "waiting for the peer: %s", strerror(-err));
			break;
		}
	}
	qrdma_handshake_free(hs);
	return err;
}

int qrdma_handshake_new(struct qrdma_handshake **handshake, int fd, int server,
			const struct qrdma_handshake_options *opt, struct qrdma_reason *why)
{
	return hs_new(handshake, &inband_transport, fd, server, opt, why);
}

int qrdma_client_handshake(int fd, const struct qrdma_handshake_options *opt, struct qrdma_reason *why)
{
	return hs_run(&inband_transport, fd, false, opt, why);
}

int qrdma_server_handshake(int fd, const struct qrdma_handshake_options *opt, struct qrdma_reason *why)
{
	return hs_run(&inband_transport, fd, true, opt, why);
}
