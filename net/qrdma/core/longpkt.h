/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Initial and Handshake packets of a datagram: built in place, one behind the other, padded at the
 * end (RFC 9000 s12.2, s14.1).
 *
 * Owns: nothing; struct qrdma_dgram lives on the stack of packer.c, which calls this under the
 * socket lock.
 */
#ifndef QRDMA_CORE_LONGPKT_H
#define QRDMA_CORE_LONGPKT_H

#include "env.h"
#include "conn_state.h"
#include "tx.h"

/* least bytes of packet number, see packer.c */
#define QRDMA_PN_LEN_LEAST	2
/* header protection samples 4 bytes behind the start of the packet number (RFC 9001 s5.4.2) */
#define QRDMA_SAMPLE_LEAST	4

/**
 * struct qrdma_dgram - a datagram being put together while a handshake goes on
 * @conn: whose
 * @tx: where it goes
 * @now: ns
 * @limit: bytes that it may have
 * @len: bytes so far, tags included
 * @frames: more than ACK frames may go
 * @urgent: CRYPTO frames may, too: see qrdma_conn_hs_urgent()
 * @initial: bytes of the Initial packet, which is the first; 0: there is none
 * @expand: it has to be padded to qrdma_hs_expand() bytes
 * @handshake: there is a Handshake packet
 * @sent: what recovery is to be told, by space; its size is 0 where there is no packet
 */
struct qrdma_dgram {
	struct qrdma_conn *conn;
	struct qrdma_tx *tx;
	u64 now;
	u32 limit;
	u32 len;
	bool frames;
	bool urgent;
	u32 initial;
	bool expand;
	bool handshake;
	struct qrdma_sent_packet sent[QRDMA_SPACES];
};

/**
 * qrdma_pn_choose() - number of the next packet, and its length on the wire
 * @conn: connection
 * @space: its packet number space
 * @pn: the number
 *
 * Return: 1..4; 0: too much is outstanding, no packet may be sent.
 */
u32 qrdma_pn_choose(const struct qrdma_conn *conn, const struct qrdma_conn_space *space, u64 pn);

/**
 * qrdma_longpkt_build() - put an Initial or Handshake packet behind what is there
 * @d: the datagram; in it qrdma_tx.part grows by one
 * @space: QRDMA_SPACE_INITIAL or QRDMA_SPACE_HANDSHAKE
 *
 * Return: 1: done; 0: nothing to send there, or no room; -ENOMEM; -EAGAIN: see
 * qrdma_packer_build(). Nothing is changed unless it is 1.
 */
int qrdma_longpkt_build(struct qrdma_dgram *d, u8 space);

/**
 * qrdma_longpkt_close() - the same, for a packet with CONNECTION_CLOSE alone
 * @d: the datagram
 * @space: QRDMA_SPACE_INITIAL or QRDMA_SPACE_HANDSHAKE
 * @f: the frame, type QRDMA_FRAME_CLOSE
 *
 * Return: as qrdma_longpkt_build().
 */
int qrdma_longpkt_close(struct qrdma_dgram *d, u8 space, const struct qrdma_frame *f);

/**
 * qrdma_longpkt_finish() - the datagram is complete: pad its Initial packet, write the lengths
 * @d: the datagram
 *
 * What stands behind the Initial packet is moved, and so is what @d->tx->op describes.
 */
void qrdma_longpkt_finish(struct qrdma_dgram *d);

#endif /* QRDMA_CORE_LONGPKT_H */
