/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a server says before there is a connection: a first look at a datagram that belongs to none,
 * and answers that leave nothing behind (RFC 9000 s5.2.2, s6.1, s8.1.2).
 *
 * Owns: nothing. Called by: the datapath; any context, no lock: what is built lies in the caller's
 * struct qrdma_tx.
 *
 * What stands in a token, and how its holder's address is bound to it, is the caller's: the engine
 * carries it. It has to be authentic (RFC 9000 s8.1.4).
 */
#ifndef QRDMA_CORE_STATELESS_H
#define QRDMA_CORE_STATELESS_H

#include "packer.h"

/** enum qrdma_first - what a datagram that belongs to no connection is */
enum qrdma_first {
	QRDMA_FIRST_DROP,	/* nothing to be answered */
	QRDMA_FIRST_INITIAL,	/* an Initial packet: a client that wants a connection */
	QRDMA_FIRST_VERSION,	/* of another version: qrdma_stateless_version_neg() */
};

/**
 * qrdma_stateless_look() - what is that datagram?
 * @data: first byte
 * @len: bytes
 * @max_datagram: largest datagram that the path takes: what a client has to fill, up to 1200 bytes
 *	(RFC 9000 s14.1)
 * @hdr: header of its first packet, unless it is to be dropped. Of an Initial: dcid (what Initial
 *	keys are derived from), scid, token
 *
 * Return: see enum qrdma_first.
 */
enum qrdma_first qrdma_stateless_look(const u8 *data, u32 len, u32 max_datagram,
				      struct qrdma_hdr *hdr);

/**
 * qrdma_stateless_version_neg() - say that version 1 is spoken here (RFC 9000 s6.1)
 * @tx: @data and @cap are set; @len becomes the bytes of the datagram, which needs no seal
 * @hdr: of a QRDMA_FIRST_VERSION
 * @random: seven random bits
 *
 * Return: bytes; -EMSGSIZE: no room.
 */
int qrdma_stateless_version_neg(struct qrdma_tx *tx, const struct qrdma_hdr *hdr, u8 random);

/**
 * qrdma_stateless_retry() - ask the client to come back with a token (RFC 9000 s8.1.2, s17.2.5)
 * @tx: @data and @cap are set, the rest zeroed; seal @op, then call qrdma_stateless_retry_end(),
 *	post @len bytes at @data, qrdma_tx_release(). There is no header to be protected
 * @aead: port of @slot
 * @slot: AES-128-GCM, of the secret of RFC 9001 s5.8; a reference is taken
 * @hdr: of a QRDMA_FIRST_INITIAL
 * @scid: the connection id that the client's next Initial has to be sent to, other than @hdr's
 * @token: to be brought back; it has to tell @hdr's dcid
 * @token_len: bytes, 1 to QRDMA_HS_TOKEN_MAX
 * @random: four random bits
 *
 * Return: 0; -EMSGSIZE: no room; -EINVAL: the id or the token cannot be.
 */
int qrdma_stateless_retry(struct qrdma_tx *tx, const struct qrdma_aead_ops *aead,
			  struct qrdma_slot *slot, const struct qrdma_hdr *hdr,
			  const struct qrdma_cid *scid, const u8 *token, u32 token_len, u8 random);

/**
 * qrdma_stateless_retry_end() - the tag is there: leave on the wire what goes over it
 * @tx: datagram; any context
 */
void qrdma_stateless_retry_end(struct qrdma_tx *tx);

/**
 * qrdma_stateless_refuse() - close a connection that will not be made (RFC 9000 s5.2.2)
 * @tx: @data and @cap are set, the rest zeroed; then as for any packet: seal, qrdma_tx_protect(),
 *	post, qrdma_tx_release()
 * @aead: port of @slot
 * @slot: Initial key of a server, derived from @hdr's dcid; a reference is taken
 * @hdr: of a QRDMA_FIRST_INITIAL
 * @scid: a connection id of ours
 * @code: QUIC error code, such as QRDMA_ERR_CONNECTION_REFUSED or QRDMA_ERR_INVALID_TOKEN
 *
 * One packet per key: its number is 0.
 *
 * Return: 0; -EMSGSIZE: no room.
 */
int qrdma_stateless_refuse(struct qrdma_tx *tx, const struct qrdma_aead_ops *aead,
			   struct qrdma_slot *slot, const struct qrdma_hdr *hdr,
			   const struct qrdma_cid *scid, u64 code);

#endif /* QRDMA_CORE_STATELESS_H */
