/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The AEAD port of core/keys.h on the kernel's crypto API: packet protection of
 * RFC 9001 section 5 for the four ciphers, synchronous and asynchronous.
 *
 * Owns: key slots (struct qrdma_slot) and the requests that are in flight.
 * Called by: the datapath, which hands qrdma_kernel_aead to the engine, and by
 * the module's start and stop. Contexts are those that core/keys.h promises:
 * slots are made in process context, everything else runs anywhere up to softirq.
 * No lock of the caller is needed.
 *
 * struct qrdma_slot
 *	found by:	pointer; the engine's key generations hold it
 *	owned by:	references: each holder, and each request in flight
 *	dies when:	the last reference goes: secret, IV and header protection
 *			key are wiped at once, the kernel's cipher object is freed
 *			by a worker (its destructor may sleep)
 *	protected by:	nothing: never edited after it was made
 *
 * A slot also seals a Retry packet: the secret of RFC 9001 section 5.8, number 0,
 * the Retry pseudo-packet as header, no payload.
 */
#ifndef QRDMA_CRYPTO_H
#define QRDMA_CRYPTO_H

#include "core/keys.h"

/**
 * struct qrdma_crypto_stats - what the port did since the module was loaded
 * @sync: packets sealed or opened (or found bad) before the call returned
 * @async: packets whose end was told by op->done()
 * @backlogged: those of @async that the cipher's engine had no room for at once
 * @grown: requests allocated because no used one was at hand
 * @failed: packets refused for another reason than a bad tag (no memory, engine)
 * @slots: key slots that exist now
 */
struct qrdma_crypto_stats {
	u64 sync;
	u64 async;
	u64 backlogged;
	u64 grown;
	u64 failed;
	u64 slots;
};

/*
 * qrdma_kernel_aead - the port
 *
 * Beyond core/keys.h:
 * slot_new: -EINVAL also for a cipher that is none of enum qrdma_cipher; a slot that is not
 *	made leaves *slot untouched.
 * seal: segments may lie at any kernel address of the linear map (not on a stack, not
 *	vmalloc()ed). A segment may lie in the packet, but then exactly where its ciphertext
 *	goes. -EINVAL when the segments do not add up to the payload.
 * seal and open: -ENOMEM, -ENOSPC: nothing happened to the packet that matters, and done()
 *	will not be called; the caller drops it, and a packet sealed again has a new number.
 *	How many are in flight is for the caller to bound: an engine's backlog has no limit.
 * open: -EBADMSG also for a payload shorter than a tag. After an error the payload is garbage.
 */
extern const struct qrdma_aead_ops qrdma_kernel_aead;

/**
 * qrdma_crypto_start() - make the port usable
 *
 * Looks every cipher up once, so that a kernel module is loaded and self tests are over
 * before the first connection needs it. A cipher that this kernel lacks is logged and
 * refused later; a hash that it lacks is an error.
 *
 * Context: process, sleeps.
 * Return: 0, -ENOPKG when a hash is missing, -ENOMEM.
 */
int qrdma_crypto_start(void);

/**
 * qrdma_crypto_stop() - undo qrdma_crypto_start()
 *
 * Waits until the last slot is gone, so until no request is in flight: the caller has
 * dropped its own references first.
 *
 * Context: process, sleeps.
 */
void qrdma_crypto_stop(void);

/**
 * qrdma_crypto_stats_read() - sum the counters
 * @sum: filled in
 *
 * Context: any.
 */
void qrdma_crypto_stats_read(struct qrdma_crypto_stats *sum);

#endif /* QRDMA_CRYPTO_H */
