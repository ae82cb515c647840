/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The connection that a handshake runs in, without a kernel: two ends, 0 and 1, joined by queues, with the rules of the
 * socket (bytes of a level need its keys, secrets go in once) checked and its faults made on demand.
 */
#ifndef TESTS_USERSPACE_WIRE_H
#define TESTS_USERSPACE_WIRE_H

#include "handshake.h"

#define WIRE_QUEUE	65536

/* One end; what is set before the run, and what the run left. */
struct wire_end {
	int state;			/* QRDMA_STATE_* */
	size_t room;			/* bytes that one send takes, 0: all */
	int busy;			/* so many sends say -EAGAIN */
	int refuse_params;		/* errno of the peer's parameters */
	int refuse_secret;		/* errno of the next secret */
	int late;			/* so often it is not established yet, when TLS is through */
	bool silent;			/* what it sends is lost */
	struct hs_end end;
	bool ended;
	uint8_t secrets[4][2][QRDMA_CRYPTO_SECRET_SIZE];
	bool have_secret[4][2];
	uint8_t peer_params[QRDMA_TRANSPORT_PARAM_EXT_MAX];
	size_t peer_params_len;
	int result;			/* errno, -1 none yet */
	int alert;
	bool judged;			/* the result said so */
	int broken;			/* rules of the socket that were broken */
	/* to be read by this end */
	uint8_t data[4][WIRE_QUEUE];
	size_t len[4];
};

extern struct wire_end wire[2];
/* Called by a wait of end 0, so that the other end goes on; NULL: nothing happens. */
extern void (*wire_turn)(void);
extern const struct hs_transport wire_transport;

/* Both ends in their handshakes, nothing sent. */
void wire_reset(void);
/* The end closes with this QUIC error code, of the transport. */
void wire_close(int fd, uint64_t code);

#endif /* TESTS_USERSPACE_WIRE_H */
