/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One handshake: from the descriptor that the kernel gave, by the policy for its peer, to the result. Called by
 * worker.c; never blocks.
 */
#ifndef QRDMAD_SESSION_H
#define QRDMAD_SESSION_H

#include <stdint.h>
#include "policy.h"

struct session;

/**
 * struct session_job - what the kernel says about a handshake
 * @fd: the agent end of a socket, non-blocking; the session's from now on
 * @role: QRDMA_ROLE_*
 * @timeout_ms: that are left
 * @uid: whose socket it is
 */
struct session_job {
	int fd;
	uint32_t role;
	uint32_t timeout_ms;
	uint32_t uid;
};

/*
 * @policies must stay; @keylog: file or NULL. NULL: it is over already, by policy or for want of memory: the kernel and
 * the log have been told, @job->fd is closed.
 */
struct session *session_new(const struct session_job *job, const struct policies *policies, const char *keylog);
/* -EAGAIN: wait for session_events() at most session_timeout(); else it is over, and the log has been told: free it. */
int session_step(struct session *session);
/* The socket is gone, or the process has to end: gives up what is not over. */
void session_abort(struct session *session, const char *why);
/* Closes the descriptor. */
void session_free(struct session *session);
int session_fd(const struct session *session);
/* EPOLLIN, EPOLLOUT or both. */
uint32_t session_events(const struct session *session);
/* Milliseconds. */
int session_timeout(const struct session *session);

#endif /* QRDMAD_SESSION_H */
