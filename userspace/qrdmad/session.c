// SPDX-License-Identifier: GPL-2.0
/* See session.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "log.h"
#include "session.h"

#define DEFAULT_TIMEOUT_MS	10000
/* TLS alerts (RFC 8446 s6.2) */
#define ALERT_ACCESS_DENIED	49
#define ALERT_INTERNAL_ERROR	80
#define TITLE_SIZE		(2 * INET6_ADDRSTRLEN + 80)

struct session {
	int fd;
	struct qrdma_handshake *handshake;
	char title[TITLE_SIZE];		/* which one, for the log */
};

/* What @job is about. */
struct subject {
	struct in6_addr peer;
	unsigned int port;		/* the server's */
	char peer_text[INET6_ADDRSTRLEN];
};

/* The kernel forgets it if the socket is gone meanwhile. */
static void session_result(int fd, int error, uint8_t alert)
{
	const struct qrdma_handshake_result result = { .error = error, .alert = alert };

	setsockopt(fd, SOL_QRDMA, QRDMA_HANDSHAKE_RESULT, &result, sizeof(result));
}

/* Whose handshake it is. 0 or -errno: the socket has none any more. */
static int session_subject(const struct session_job *job, struct subject *subject, char title[TITLE_SIZE])
{
	bool server = job->role == QRDMA_ROLE_SERVER;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	socklen_t local_len = sizeof(local);
	socklen_t remote_len = sizeof(remote);
	char local_text[INET6_ADDRSTRLEN];
	struct in6_addr here;
	unsigned int local_port;
	unsigned int remote_port;
	int err;

	if (getsockname(job->fd, (struct sockaddr *)&local, &local_len) ||
	    getpeername(job->fd, (struct sockaddr *)&remote, &remote_len))
		return -errno;
	err = address_of((struct sockaddr *)&local, &here, &local_port);
	if (!err)
		err = address_of((struct sockaddr *)&remote, &subject->peer, &remote_port);
	if (err)
		return err;
	subject->port = server ? local_port : remote_port;
	address_print(&here, local_text);
	address_print(&subject->peer, subject->peer_text);
	snprintf(title, TITLE_SIZE, "%s of user %u, %s port %u, peer %s port %u", server ? "server" : "client",
		 job->uid, local_text, local_port, subject->peer_text, remote_port);
	return 0;
}

static int session_timeout_ms(const struct session_job *job, const struct policy *policy)
{
	int ms = policy->timeout_ms ? policy->timeout_ms : DEFAULT_TIMEOUT_MS;

	if (job->timeout_ms && job->timeout_ms < (uint32_t)ms)
		ms = job->timeout_ms;
	return ms;
}

/* May it be tried? 0, or what the socket is told, positive. */
static int session_refusal(const struct session_job *job, const struct policy *policy, const char *title)
{
	const char *role = job->role == QRDMA_ROLE_SERVER ? "server" : "client";

	if (!policy) {
		log_limited(LOG_NOTICE, "%s: refused: there is no section [%s]", title, role);
		return job->role == QRDMA_ROLE_SERVER ? ECONNREFUSED : ENOKEY;
	}
	if (!policy->allow) {
		log_limited(LOG_NOTICE, "%s: refused: not allowed", title);
		return job->role == QRDMA_ROLE_SERVER ? ECONNREFUSED : EPERM;
	}
	return 0;
}

static int session_begin(struct session *session, const struct session_job *job, const struct policy *policy,
			 const struct subject *subject, const char *keylog)
{
	bool server = job->role == QRDMA_ROLE_SERVER;
	struct qrdma_handshake_options opt = {
		.size = sizeof(opt),
		.cred = policy->cred,
		.require_peer_cert = server && policy->auth == AUTH_MUTUAL,
		.ciphers = policy->ciphers,
		.n_ciphers = policy->n_ciphers,
		.timeout_ms = session_timeout_ms(job, policy),
		.keylog_file = keylog,
		.await_verdict = !server,
		.agent = 1,
	};
	struct qrdma_reason why;
	int err;

	if (policy->auth == AUTH_MUTUAL || (policy->auth == AUTH_SERVER && !server)) {
		opt.peer_name = policy->name;
		if (!opt.peer_name && !server)
			opt.peer_name = subject->peer_text;
	}
	err = qrdma_handshake_new(&session->handshake, session->fd, server, &opt, &why);
	if (!err)
		return 0;
	log_limited(LOG_ERROR, "%s: %s", session->title, why.text);
	session_result(session->fd, -err, ALERT_INTERNAL_ERROR);
	return err;
}

struct session *session_new(const struct session_job *job, const struct policies *policies, const char *keylog)
{
	struct session *session = calloc(1, sizeof(*session));
	const struct policy *policy;
	struct subject subject;
	int error = ENOMEM;

	if (!session || session_subject(job, &subject, session->title)) {
		/* without memory, or without a peer: it is of no use to anybody */
		session_result(job->fd, error, ALERT_INTERNAL_ERROR);
		goto fail;
	}
	session->fd = job->fd;
	policy = policy_find(policies, job->role, &subject.peer, subject.port);
	error = session_refusal(job, policy, session->title);
	if (error) {
		session_result(job->fd, error, ALERT_ACCESS_DENIED);
		goto fail;
	}
	if (session_begin(session, job, policy, &subject, keylog))
		goto fail;
	log_line(LOG_DEBUG, "%s: begins", session->title);
	return session;
fail:
	free(session);
	close(job->fd);
	return NULL;
}

int session_step(struct session *session)
{
	struct qrdma_reason why;
	struct qrdma_info info;
	const char *cipher = NULL;
	int err = qrdma_handshake_step(session->handshake, &why);

	if (err == -EAGAIN)
		return err;
	if (err) {
		log_limited(LOG_NOTICE, "%s: failed: %s", session->title, why.text);
		return err;
	}
	if (!qrdma_get_info(session->fd, &info))
		cipher = qrdma_cipher_name(info.cipher);
	log_line(LOG_DEBUG, "%s: established, %s", session->title, cipher ? cipher : "cipher unknown");
	return 0;
}

void session_abort(struct session *session, const char *why)
{
	log_limited(LOG_NOTICE, "%s: given up: %s", session->title, why);
}

void session_free(struct session *session)
{
	if (!session)
		return;
	/* tells the kernel and the peer if there is no result yet */
	qrdma_handshake_free(session->handshake);
	close(session->fd);
	free(session);
}

int session_fd(const struct session *session)
{
	return session->fd;
}

uint32_t session_events(const struct session *session)
{
	short events = qrdma_handshake_events(session->handshake);

	return (events & POLLIN ? EPOLLIN : 0) | (events & POLLOUT ? EPOLLOUT : 0);
}

int session_timeout(const struct session *session)
{
	return qrdma_handshake_timeout(session->handshake);
}
