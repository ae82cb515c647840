/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Initial keys: what protects the first packets of a handshake, and Retry packets.
 *
 * They come from the connection id that the client has chosen (RFC 9001 s5.2), so they keep nobody
 * out who sees the packets; they keep out who does not.
 *
 * Owns: nothing that outlives a call. Called by: the datapath, process context. No lock.
 */
#ifndef QRDMA_INITIAL_H
#define QRDMA_INITIAL_H

#include "core/keys.h"

/**
 * qrdma_initial_slots() - the Initial keys of a connection (RFC 9001 s5.2)
 * @cid: destination connection id of the client's first Initial packet, or of its first one
 *	after a Retry packet
 * @len: its bytes
 * @client: what the client seals with
 * @server: what the server seals with
 *
 * References for the caller, untouched after an error. Context: process, sleeps.
 *
 * Return: 0, -ENOPKG: no such cipher here, -ENOMEM.
 */
int qrdma_initial_slots(const u8 *cid, u32 len, struct qrdma_slot **client,
			struct qrdma_slot **server);

/**
 * qrdma_initial_retry_slot() - the key of the integrity tag of Retry packets (RFC 9001 s5.8)
 * @slot: a reference for the caller; seals number 0, the pseudo-packet as header, no payload
 *
 * Context: process, sleeps. Return: 0, -ENOPKG, -ENOMEM.
 */
int qrdma_initial_retry_slot(struct qrdma_slot **slot);

#endif /* QRDMA_INITIAL_H */
