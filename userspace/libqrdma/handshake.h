/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a handshake asks of the connection that it runs in. The socket (inband.c) is one answer, a test's fake
 * another. No call blocks but @wait.
 */
#ifndef QRDMA_HANDSHAKE_H
#define QRDMA_HANDSHAKE_H

#include <stdbool.h>
#include "qrdma.h"

/**
 * struct hs_end - how a connection ended
 * @error: errno that the connection tells, positive, 0 none
 * @by_transport: a QUIC transport error, not one of the application
 * @remote: the peer closed
 * @code: QUIC error code
 */
struct hs_end {
	int error;
	bool by_transport;
	bool remote;
	uint64_t code;
};

/**
 * struct hs_transport - a connection in its handshake, as calls with the fd given to hs_new()
 * @state: QRDMA_STATE_*, or -errno
 * @params: our transport parameters extension: bytes, or -errno
 * @send: bytes taken, all or some, -EAGAIN, or -errno
 * @recv: bytes of one level, 0 the connection has ended, -EAGAIN, or -errno
 * @secret: install a traffic secret: 0 or -errno
 * @peer_params: the peer's extension: 0, -EPROTO refused, or -errno
 * @result: the handshake is complete (error 0; @judged: of a client whose certificate the server has still to judge) or
 *	failed (positive errno, alert): 0 or -errno
 * @end: how the connection ended: 0 or -errno
 * @ticket: what came at QRDMA_CRYPTO_APP: bytes, -ENODATA, or -errno
 * @wait: until one of the poll() events or milliseconds have passed: 0 or -errno
 */
struct hs_transport {
	int (*state)(int fd);
	ssize_t (*params)(int fd, uint8_t *data, size_t size);
	ssize_t (*send)(int fd, uint8_t level, const uint8_t *data, size_t len);
	ssize_t (*recv)(int fd, uint8_t *level, uint8_t *data, size_t size);
	int (*secret)(int fd, uint8_t level, bool send, uint32_t cipher, const uint8_t *secret);
	int (*peer_params)(int fd, const uint8_t *data, size_t len);
	int (*result)(int fd, int error, uint8_t alert, bool judged);
	int (*end)(int fd, struct hs_end *end);
	ssize_t (*ticket)(int fd, uint8_t *data, size_t size);
	int (*wait)(int fd, short events, int timeout_ms);
};

/* The AF_QRDMA socket. */
extern const struct hs_transport inband_transport;

/* qrdma_handshake_new() on a transport. */
int hs_new(struct qrdma_handshake **handshake, const struct hs_transport *transport, int fd, bool server,
	   const struct qrdma_handshake_options *opt, struct qrdma_reason *why);
/* qrdma_client_handshake() and qrdma_server_handshake() on a transport. */
int hs_run(const struct hs_transport *transport, int fd, bool server, const struct qrdma_handshake_options *opt,
	   struct qrdma_reason *why);
/* What an end means: negative errno, and words. */
int hs_end_error(const struct hs_end *end, struct qrdma_reason *why);

#endif /* QRDMA_HANDSHAKE_H */
