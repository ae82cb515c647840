/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the connection tells its caller: event bits, reasons of dropped packets, why it ended.
 *
 * Owns: nothing. Included by: conn.h for the datapath and the socket layer, conn_state.h.
 * Context and lock: none.
 */
#ifndef QRDMA_CORE_EVENT_H
#define QRDMA_CORE_EVENT_H

#include "env.h"

/* Event bits that rx_finish, timeout and the application calls return: what the caller has to do */
#define QRDMA_EV_TX		BIT(0)	/* something may be sent: call the packer until it says 0 */
#define QRDMA_EV_READABLE	BIT(1)	/* stream 0 has bytes, FIN or a reset to read */
#define QRDMA_EV_WRITABLE	BIT(2)	/* memory of sent bytes came free, or writing has failed */
#define QRDMA_EV_ESTABLISHED	BIT(3)	/* a packet of the peer verified, and stream 0 is open */
#define QRDMA_EV_CLOSED		BIT(4)	/* terminal, see qrdma_conn_error(): nothing more arrives */
#define QRDMA_EV_NEED_KEY	BIT(5)	/* in process context: qrdma_conn_next_keys(), both ways */
#define QRDMA_EV_SUSPECT	BIT(6)	/* packets go unanswered: re-resolve the peer */
#define QRDMA_EV_TIMER		BIT(7)	/* the deadline changed */
#define QRDMA_EV_ACKED		BIT(8)	/* all written on stream 0 (FIN too) is acknowledged */
#define QRDMA_EV_DRAINED	BIT(9)	/* closing or draining is over: forget the connection */
#define QRDMA_EV_LOSS		BIT(10)	/* the loss monitor crossed its threshold */
#define QRDMA_EV_QUIET		BIT(17)	/* nothing moves: give back what only packets need */
#define QRDMA_EV_RESET_TOKEN	BIT(16)	/* qrdma_conn_reset_token() has changed */
/* and these only of a handshake in band (conn_hs.h) */
#define QRDMA_EV_CRYPTO		BIT(11)	/* handshake bytes can be read: qrdma_conn_crypto_peek() */
#define QRDMA_EV_HELD		BIT(12)	/* packets that waited for a key: qrdma_conn_held() */
#define QRDMA_EV_INITIAL_KEYS	BIT(13)	/* client, after a Retry: new Initial keys are wanted */
#define QRDMA_EV_CONFIRMED	BIT(14)	/* the handshake is confirmed (RFC 9001 s4.1.2) */
#define QRDMA_EV_TOKEN		BIT(15)	/* client: a token for the next time: qrdma_conn_token() */

/**
 * enum qrdma_drop - why a received packet was not used
 * @QRDMA_DROP_NONE: it was used
 * @QRDMA_DROP_HEADER: not parseable, fixed bit clear, too short for a sample, another
 *	connection id than ours
 * @QRDMA_DROP_VERSION: long header of another version than 1
 * @QRDMA_DROP_NO_KEY: no key for that level or key phase (yet, or any more)
 * @QRDMA_DROP_AUTH: the tag does not verify
 * @QRDMA_DROP_DUPLICATE: packet number seen already, or too old to tell
 * @QRDMA_DROP_STATE: the connection is closing, draining or dead
 * @QRDMA_DROP_NOMEM: no memory, or a cap reached: not acknowledged, the peer sends it again
 * @QRDMA_DROP_CRYPTO: the AEAD failed for another reason than the tag
 * @QRDMA_DROP_PROTOCOL: the packet broke the protocol; the connection closes because of it
 *
 * Counted per connection (and per device by the datapath).
 */
enum qrdma_drop {
	QRDMA_DROP_NONE,
	QRDMA_DROP_HEADER,
	QRDMA_DROP_VERSION,
	QRDMA_DROP_NO_KEY,
	QRDMA_DROP_AUTH,
	QRDMA_DROP_DUPLICATE,
	QRDMA_DROP_STATE,
	QRDMA_DROP_NOMEM,
	QRDMA_DROP_CRYPTO,
	QRDMA_DROP_PROTOCOL,
	__QRDMA_DROP_MAX
};

/**
 * enum qrdma_early - what became of 0-RTT
 * @QRDMA_EARLY_NONE: no key for it
 * @QRDMA_EARLY_TRIED: client: packets may leave, the verdict is open
 * @QRDMA_EARLY_ACCEPTED: the server takes it
 * @QRDMA_EARLY_REJECTED: it does not
 */
enum qrdma_early {
	QRDMA_EARLY_NONE,
	QRDMA_EARLY_TRIED,
	QRDMA_EARLY_ACCEPTED,
	QRDMA_EARLY_REJECTED,
};

/**
 * struct qrdma_conn_error - why it ended
 * @err: errno for the socket (positive), 0: it lives, or a clean close. ECONNRESET: the peer closed
 *	with an error, or in the middle of the data; ECONNREFUSED: it said CONNECTION_REFUSED
 *	or sent a TLS alert (@code is 0x100 plus its number, RFC 9001 s4.8) that is not about keys
 *	(ENOKEY, EACCES, EKEYREJECTED, EKEYEXPIRED, EKEYREVOKED) or versions (EPROTONOSUPPORT);
 *	ETIMEDOUT: idle time-out, or the handshake took too long; EPROTO: the peer broke the
 *	protocol; EPROTONOSUPPORT: it speaks no version of ours; EKEYEXPIRED: key usage limit or
 *	end of packet numbers; ENETDOWN: aborted
 * @closed: it has ended
 * @remote: the peer said so
 * @stateless: by a stateless reset: it has lost the connection (RFC 9000 s10.3)
 * @app: application close (0x1d)
 * @code: QUIC error code (RFC 9000 s20) or the application's
 * @frame_type: that caused it, 0: unknown
 */
struct qrdma_conn_error {
	int err;
	bool closed;
	bool remote;
	bool stateless;
	bool app;
	u64 code;
	u64 frame_type;
};

#endif /* QRDMA_CORE_EVENT_H */
