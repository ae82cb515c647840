/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Address tokens: what a server hands a client, so that the client can show that it receives what
 * is sent to its address (RFC 9000 section 8.1). Sealing and opening; what follows from a token is
 * retry.c's affair.
 *
 * Owns: the key, which comes from the key of this host (reset.c), so a token outlives the module.
 * Called by: reset.c (the key), retry.c and inband.c; process context. A lock of its own, around
 * the key.
 *
 * A token is a random nonce and what AES-256-GCM makes of the rest, all of one length: who sees two
 * of them cannot tell whether they are of one kind, or of one client.
 */
#ifndef QRDMA_TOKEN_H
#define QRDMA_TOKEN_H

#include <linux/in6.h>

#include "core/header.h"

/** enum - sizes, bytes */
enum {
	QRDMA_TOKEN_KEY_LEN	= 32,
	QRDMA_TOKEN_NONCE_LEN	= 12,
	/* kind, time, port, length of the id, the id, the other id, address */
	QRDMA_TOKEN_TEXT_LEN	= 1 + 8 + 2 + 1 + QRDMA_CID_MAX + QRDMA_CID_LEN + 16,
	QRDMA_TOKEN_LEN		= QRDMA_TOKEN_NONCE_LEN + QRDMA_TOKEN_TEXT_LEN + 16,
};

/** enum qrdma_token_kind - how the client got it */
enum qrdma_token_kind {
	QRDMA_TOKEN_RETRY = 1,	/* in a Retry packet */
	QRDMA_TOKEN_NEXT,	/* in a NEW_TOKEN frame, for its next connection */
};

/**
 * struct qrdma_token - what stands in a token
 * @kind: enum qrdma_token_kind
 * @issued: when, seconds of real time: it is to be understood after a restart
 * @addr: address of the client, IPv4 mapped
 * @port: Retry: its port; else 0
 * @odcid: Retry: destination connection id of the client's first Initial; else empty
 * @scid: Retry: the id that the Retry gave the client; else zeros
 */
struct qrdma_token {
	u8 kind;
	s64 issued;
	struct in6_addr addr;
	u16 port;
	struct qrdma_cid odcid;
	u8 scid[QRDMA_CID_LEN];
};

/** qrdma_token_start() - before the key is set. Context: process. Return: 0, -ENOPKG, -ENOMEM. */
int qrdma_token_start(void);

/** qrdma_token_stop() - no token is sealed or opened any more */
void qrdma_token_stop(void);

/**
 * qrdma_token_set_key() - the key from now on; tokens of another one are nobody's
 * @key: QRDMA_TOKEN_KEY_LEN bytes
 *
 * Context: process, sleeps. Return: 0; what the cipher says.
 */
int qrdma_token_set_key(const u8 *key);

/**
 * qrdma_token_seal() - make a token
 * @token: what is to stand in it; @odcid has at most QRDMA_CID_MAX bytes
 * @data: room for QRDMA_TOKEN_LEN bytes
 *
 * Context: process, sleeps. Return: 0; -ENOMEM; what the cipher says.
 */
int qrdma_token_seal(const struct qrdma_token *token, u8 *data);

/**
 * qrdma_token_open() - what stands in a token?
 * @token: filled, if it is one of ours
 * @data: its bytes
 * @len: number of them
 *
 * Context: process, sleeps. Return: 0; -EBADMSG: none of ours; -ENOMEM.
 */
int qrdma_token_open(struct qrdma_token *token, const u8 *data, u32 len);

#endif /* QRDMA_TOKEN_H */
