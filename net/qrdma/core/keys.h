/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Key generations of one packet number space, and the AEAD port.
 *
 * Owns: which generation seals and which may open, the key phase bit, the usage
 * limits (RFC 9001 s6). Called by: conn.c, conn_rx.c and packer.c, serialised by
 * their caller (the socket lock), never sleeping. What the port's operations may
 * do in which context stands at struct qrdma_aead_ops.
 *
 * A generation is a slot of the port: refcounted, never edited. A packet holds a
 * reference to the slot it was begun with, so keys rotate under operations in
 * flight without waiting for them.
 *
 * The next generations are derived ahead of an update, for deriving sleeps, but only for a
 * connection that is in use: slots are large (field case F29). When they are missing and the peer
 * updates, its packets count as lost until they are there.
 */
#ifndef QRDMA_CORE_KEYS_H
#define QRDMA_CORE_KEYS_H

#include "env.h"
#include "buf.h"

#define QRDMA_TAG_LEN		16
#define QRDMA_IV_LEN		12
#define QRDMA_SAMPLE_LEN	16
#define QRDMA_HP_MASK_LEN	5
#define QRDMA_SECRET_MAX	48
#define QRDMA_SEG_MAX		8

/**
 * enum qrdma_cipher - TLS 1.3 cipher suites usable with QUIC (RFC 9001 s5.3)
 * @QRDMA_CIPHER_AES_128_GCM: TLS_AES_128_GCM_SHA256
 * @QRDMA_CIPHER_AES_256_GCM: TLS_AES_256_GCM_SHA384
 * @QRDMA_CIPHER_AES_128_CCM: TLS_AES_128_CCM_SHA256
 * @QRDMA_CIPHER_CHACHA20_POLY1305: TLS_CHACHA20_POLY1305_SHA256
 *
 * The values are the kernel's TLS_CIPHER_* numbers (linux/tls.h).
 */
enum qrdma_cipher {
	QRDMA_CIPHER_AES_128_GCM	= 51,
	QRDMA_CIPHER_AES_256_GCM	= 52,
	QRDMA_CIPHER_AES_128_CCM	= 53,
	QRDMA_CIPHER_CHACHA20_POLY1305	= 54,
};

/**
 * enum qrdma_level - encryption levels (RFC 9001 s2.1): which keys a packet is sealed with
 * @QRDMA_ENC_APP: 1-RTT
 * @QRDMA_ENC_INITIAL: keys that anybody can derive from a connection id
 * @QRDMA_ENC_HANDSHAKE: between ServerHello and confirmation
 * @QRDMA_ENC_EARLY: 0-RTT; carries no CRYPTO, shares its packet number space with APP
 * @QRDMA_ENCS: how many there are
 *
 * The values are those of QRDMA_CRYPTO_* in the uapi header.
 */
enum qrdma_level {
	QRDMA_ENC_APP		= 0,
	QRDMA_ENC_INITIAL	= 1,
	QRDMA_ENC_HANDSHAKE	= 2,
	QRDMA_ENC_EARLY		= 3,
	QRDMA_ENCS
};

/*
 * One installed key (AEAD key, IV, header protection key). Defined by the port;
 * refcounted, never edited, wiped on the last put.
 */
struct qrdma_slot;

/**
 * struct qrdma_seg - a piece of plaintext to be sealed
 * @data: first byte
 * @len: bytes
 * @owner: buffer that @data lies in, reference held by the operation; NULL when it lies in
 *	memory of the operation's own (struct qrdma_tx)
 */
struct qrdma_seg {
	const u8 *data;
	u32 len;
	struct qrdma_buf *owner;
};

/**
 * struct qrdma_aead_op - one packet to be sealed or opened
 * @slot: key to use; the operation holds a reference until it is done
 * @pn: full packet number, nonce = IV xor @pn (RFC 9001 s5.3)
 * @pkt: first byte of the packet; the @hdr_len bytes of header are the AAD
 * @hdr_len: bytes of header including the packet number; unprotected while sealing or opening
 * @pn_off: offset of the packet number in @pkt
 * @pn_len: bytes of packet number, 1..4
 * @payload_len: bytes of plaintext (seal), bytes of ciphertext with tag (open)
 * @seg: seal only: the plaintext in order; its total is @payload_len
 * @nseg: number of @seg
 * @done: called once when seal() or open() returned -EINPROGRESS, from any context (softirq or
 *	a kworker), with 0 or -errno; set by the caller of the port
 *
 * Sealing writes ciphertext and tag to @pkt + @hdr_len (@payload_len + QRDMA_TAG_LEN bytes of
 * room); opening is in place there. What is sealed either is exactly the destination (one @seg
 * whose data is @pkt + @hdr_len: seal in place) or does not overlap it at all.
 */
struct qrdma_aead_op {
	struct qrdma_slot *slot;
	u64 pn;
	u8 *pkt;
	u32 hdr_len;
	u32 pn_off;
	u32 pn_len;
	u32 payload_len;
	struct qrdma_seg seg[QRDMA_SEG_MAX];
	u32 nseg;
	void (*done)(struct qrdma_aead_op *op, int err);
};

/**
 * struct qrdma_aead_ops - the AEAD port
 * @slot_new: derive key, IV and header protection key from a traffic secret (RFC 9001 s5.1);
 *	sleeps. -EINVAL: wrong length for the cipher, -ENOPKG: cipher not there.
 * @slot_next: the next generation ("quic ku"; the header protection key stays, RFC 9001 s6.1);
 *	sleeps
 * @slot_get: take a reference; any context
 * @slot_put: drop it, NULL is accepted; any context; the last one wipes
 * @slot_same: true when @slot was made by exactly this cipher and secret (constant time;
 *	for refusing a second install: nonces would repeat)
 * @seal: 0, -EINPROGRESS (then @done of the operation follows; a backlogged request counts as in
 *	progress) or an error; any context, does not sleep
 * @open: the same; -EBADMSG: the tag does not verify
 * @hp_mask: header protection mask, QRDMA_HP_MASK_LEN bytes (RFC 9001 s5.4); synchronous, any
 *	context
 *
 * Implemented by the kernel crypto API, by a null cipher (simulator, fuzzing) and by a TLS
 * library (tests).
 */
struct qrdma_aead_ops {
	int (*slot_new)(u32 cipher, const u8 *secret, u32 len, struct qrdma_slot **slot);
	int (*slot_next)(struct qrdma_slot *cur, struct qrdma_slot **slot);
	void (*slot_get)(struct qrdma_slot *slot);
	void (*slot_put)(struct qrdma_slot *slot);
	bool (*slot_same)(struct qrdma_slot *slot, u32 cipher, const u8 *secret, u32 len);
	int (*seal)(struct qrdma_aead_op *op);
	int (*open)(struct qrdma_aead_op *op);
	int (*hp_mask)(struct qrdma_slot *slot, const u8 *sample, u8 *mask);
};

/**
 * struct qrdma_keys - the generations of one packet number space, both directions
 * @aead: the port
 * @tx_cur: seals
 * @tx_next: the generation after it, NULL until derived
 * @rx_prev: the generation before @rx_cur, for packets that were reordered around an update
 * @rx_cur: opens
 * @rx_next: tried when the key phase bit differs; NULL until derived
 * @tx_gen: number of @tx_cur, its low bit is the key phase sent
 * @rx_gen: number of @rx_cur
 * @asked: something needed a next generation that is not there
 * @tx_confirmed: a packet sealed with @tx_cur was acknowledged, so the next update may start
 * @tx_sealed: packets sealed with @tx_cur
 * @tx_max: packets that one generation may seal (RFC 9001 s6.6)
 * @tx_first: number of the first packet sealed with @tx_cur; U64_MAX before there is one
 * @rx_first: lowest number opened with @rx_cur; U64_MAX before there is one
 * @rx_last: highest number opened with @rx_cur
 * @rx_prev_until: when @rx_prev is dropped, ns
 * @rx_failed: packets that no generation could open, over the life of the connection
 * @rx_failed_max: at so many the connection has to end (RFC 9001 s6.6)
 * @updates: key updates of this end's sealing key
 *
 * Found by: embedded in the connection, one per space. Protected by: the connection's caller.
 */
struct qrdma_keys {
	const struct qrdma_aead_ops *aead;
	struct qrdma_slot *tx_cur;
	struct qrdma_slot *tx_next;
	struct qrdma_slot *rx_prev;
	struct qrdma_slot *rx_cur;
	struct qrdma_slot *rx_next;
	u32 tx_gen;
	u32 rx_gen;
	bool asked;
	bool tx_confirmed;
	u64 tx_sealed;
	u64 tx_max;
	u64 tx_first;
	u64 rx_first;
	u64 rx_last;
	u64 rx_prev_until;
	u64 rx_failed;
	u64 rx_failed_max;
	u32 updates;
};

/**
 * qrdma_keys_init() - no key installed
 * @keys: object
 * @aead: the port
 */
void qrdma_keys_init(struct qrdma_keys *keys, const struct qrdma_aead_ops *aead);

/**
 * qrdma_keys_wipe() - drop all generations; operations in flight keep theirs
 * @keys: object; its counters can still be read
 */
void qrdma_keys_wipe(struct qrdma_keys *keys);

/**
 * qrdma_keys_install() - the first generation of one direction
 * @keys: object
 * @send: direction: true seals
 * @cipher: enum qrdma_cipher, chooses the usage limits
 * @packets_max: packets that one generation may seal; 0 or more than the cipher allows: the
 *	cipher's limit
 * @cur: generation 0; the reference is taken over on success only
 *
 * Return: 0; -EEXIST: that direction has a key already, a second one would repeat nonces;
 * -EINVAL: unknown cipher.
 */
int qrdma_keys_install(struct qrdma_keys *keys, bool send, u32 cipher, u64 packets_max,
		       struct qrdma_slot *cur);

/**
 * qrdma_keys_lacking() - is a next generation missing?
 * @keys: object
 */
static inline bool qrdma_keys_lacking(const struct qrdma_keys *keys)
{
	return (keys->tx_cur && !keys->tx_next) || (keys->rx_cur && !keys->rx_next);
}

/**
 * qrdma_keys_pressing() - should what is missing be derived however little the keys are in use?
 * @keys: object
 */
static inline bool qrdma_keys_pressing(const struct qrdma_keys *keys)
{
	return keys->asked || (keys->tx_cur && keys->tx_sealed >= keys->tx_max / 4);
}

/**
 * qrdma_keys_rest() - the keys are not in use for now: give up the next generations
 * @keys: object
 *
 * Not during an update, whose answer is on its way, nor when they will be needed soon.
 */
void qrdma_keys_rest(struct qrdma_keys *keys);

/**
 * qrdma_keys_wanted() - does a direction lack its next generation?
 * @keys: object
 * @send: direction
 *
 * Return: the current generation with a reference for the caller, to derive the next one from in
 * a context that may sleep; NULL when nothing is wanted.
 */
struct qrdma_slot *qrdma_keys_wanted(struct qrdma_keys *keys, bool send);

/**
 * qrdma_keys_install_next() - the answer to qrdma_keys_wanted()
 * @keys: object
 * @send: direction
 * @from: what @next was derived from; not consumed
 * @next: the reference is taken over on success only
 *
 * Return: 0; -ESTALE: @from is not current any more; -EEXIST: there is a next one already.
 */
int qrdma_keys_install_next(struct qrdma_keys *keys, bool send, const struct qrdma_slot *from,
			    struct qrdma_slot *next);

/**
 * qrdma_keys_update() - start a key update: from now on the next generation seals
 * @keys: object
 * @urgent: the limit is near: do not wait for stragglers of the generation before
 *
 * RFC 9001 s6.1: not before a packet sealed with the current one was acknowledged, and not before
 * the peer has followed the last update. RFC 9001 s6.5: not before packets of the generation before
 * can be taken for lost, as their key phase bit is that of the next.
 *
 * Return: 0; -EAGAIN: not confirmed yet, or the next generation is not derived yet.
 */
int qrdma_keys_update(struct qrdma_keys *keys, bool urgent);

/**
 * qrdma_keys_update_due() - has the sealing key been used so much that an update should start?
 * @keys: object
 *
 * Return: true from 7/8 of the limit on, earlier where that is but a few packets.
 */
bool qrdma_keys_update_due(const struct qrdma_keys *keys);

/**
 * qrdma_keys_exhausted() - has the sealing key come close to its limit?
 * @keys: object
 *
 * True a few packets early: what is left is for probes, as an acknowledgment may yet allow the
 * update, and for CONNECTION_CLOSE (RFC 9001 s6.6).
 */
bool qrdma_keys_exhausted(const struct qrdma_keys *keys);

/**
 * qrdma_keys_spent() - is the sealing key good for CONNECTION_CLOSE only?
 * @keys: object
 */
bool qrdma_keys_spent(const struct qrdma_keys *keys);

/**
 * qrdma_keys_seal() - the generation for one packet to be sent; counts the use
 * @keys: object
 * @pn: its packet number
 * @phase: its key phase bit
 *
 * Return: slot with a reference for the caller; NULL: no key, or its limit is reached.
 */
struct qrdma_slot *qrdma_keys_seal(struct qrdma_keys *keys, u64 pn, bool *phase);

/**
 * qrdma_keys_open() - the generation for one received packet (RFC 9001 s6.3, s6.5)
 * @keys: object
 * @pn: its packet number
 * @phase: its key phase bit
 * @gen: number of the generation chosen, for qrdma_keys_opened()
 *
 * Return: slot with a reference for the caller; NULL: none for that phase (yet, or any more); when
 * it is yet to be derived, the keys are pressing now.
 */
struct qrdma_slot *qrdma_keys_open(struct qrdma_keys *keys, u64 pn, bool phase, u32 *gen);

/**
 * qrdma_keys_opened() - a packet verified; follow the peer's key update when it shows one
 * @keys: object
 * @gen: generation that opened it
 * @pn: its packet number
 * @prev_until: till when, ns, the generation before is kept should this be an update
 *
 * Return: 0; 1: the peer's update was followed, both next generations are wanted; -EAGAIN:
 * qrdma_keys_rest() has given up what is needed to follow, and the packet has to come again;
 * -EKEYREJECTED: KEY_UPDATE_ERROR, old keys after new ones (RFC 9001 s6.4) or a second update
 * before we could have answered the first (s6.2).
 */
int qrdma_keys_opened(struct qrdma_keys *keys, u32 gen, u64 pn, u64 prev_until);

/**
 * qrdma_keys_open_failed() - a packet did not verify
 * @keys: object
 *
 * Return: true when the integrity limit is reached: AEAD_LIMIT_REACHED (RFC 9001 s6.6).
 */
bool qrdma_keys_open_failed(struct qrdma_keys *keys);

/**
 * qrdma_keys_acked() - an ACK frame arrived
 * @keys: object
 * @gen: generation that opened the packet it came in
 * @largest: Largest Acknowledged
 *
 * Return: 0; -EKEYREJECTED: an acknowledgement of a packet of the new generation came in one of
 * the old (RFC 9001 s6.2).
 */
int qrdma_keys_acked(struct qrdma_keys *keys, u32 gen, u64 largest);

/**
 * qrdma_keys_expire() - drop the generation before, when its time has come
 * @keys: object
 * @now: ns
 */
void qrdma_keys_expire(struct qrdma_keys *keys, u64 now);

/**
 * qrdma_keys_deadline() - when qrdma_keys_expire() has something to do
 * @keys: object
 *
 * Return: ns, or QRDMA_NEVER.
 */
static inline u64 qrdma_keys_deadline(const struct qrdma_keys *keys)
{
	return keys->rx_prev ? keys->rx_prev_until : QRDMA_NEVER;
}

#endif /* QRDMA_CORE_KEYS_H */
