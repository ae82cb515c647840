// SPDX-License-Identifier: GPL-2.0
/*
 * Key generations: which slot seals, which may open, when to move on.
 *
 * Owns: struct qrdma_keys. Called by: conn.c, conn_rx.c and packer.c under the socket lock; never
 * sleeps: new generations are derived elsewhere and installed here.
 *
 * Both directions move together (RFC 9001 s6): an end that updates first seals with generation n
 * while it still receives n - 1, and the other follows when the first packet of n verifies. So
 * tx_gen is rx_gen, or one more while an update of ours is under way, and never less.
 */
#include "keys.h"

/* packets of a generation kept for probes and CONNECTION_CLOSE, and of these for the latter */
#define KEYS_RESERVE	8
#define KEYS_RESERVE_CLOSE	2

/**
 * struct cipher_limits - usage limits of one cipher (RFC 9001 s6.6)
 * @cipher: enum qrdma_cipher
 * @seal_max: packets sealed with one key (confidentiality)
 * @fail_max: packets that failed to open, all keys of a connection together (integrity)
 */
struct cipher_limits {
	u32 cipher;
	u64 seal_max;
	u64 fail_max;
};

static const struct cipher_limits cipher_table[] = {
	{ QRDMA_CIPHER_AES_128_GCM,		BIT_ULL(23),	BIT_ULL(52) },
	{ QRDMA_CIPHER_AES_256_GCM,		BIT_ULL(23),	BIT_ULL(52) },
	{ QRDMA_CIPHER_AES_128_CCM,		2965820,	2965820 },	/* 2^21.5 */
	{ QRDMA_CIPHER_CHACHA20_POLY1305,	BIT_ULL(62),	BIT_ULL(36) },
};

static const struct cipher_limits *cipher_find(u32 cipher)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cipher_table); i++) {
		if (cipher_table[i].cipher == cipher)
			return &cipher_table[i];
	}
	return NULL;
}

static struct qrdma_slot *keys_ref(const struct qrdma_keys *keys, struct qrdma_slot *slot)
{
	if (slot)
		keys->aead->slot_get(slot);
	return slot;
}

void qrdma_keys_init(struct qrdma_keys *keys, const struct qrdma_aead_ops *aead)
{
	memset(keys, 0, sizeof(*keys));
	keys->aead = aead;
	keys->tx_first = U64_MAX;
	keys->rx_first = U64_MAX;
}

void qrdma_keys_wipe(struct qrdma_keys *keys)
{
	const struct qrdma_aead_ops *aead = keys->aead;

	aead->slot_put(keys->tx_cur);
	aead->slot_put(keys->tx_next);
	aead->slot_put(keys->rx_prev);
	aead->slot_put(keys->rx_cur);
	aead->slot_put(keys->rx_next);
	keys->tx_cur = NULL;
	keys->tx_next = NULL;
	keys->rx_prev = NULL;
	keys->rx_cur = NULL;
	keys->rx_next = NULL;
}

int qrdma_keys_install(struct qrdma_keys *keys, bool send, u32 cipher, u64 packets_max,
		       struct qrdma_slot *cur)
{
	const struct cipher_limits *limits = cipher_find(cipher);

	if (!limits || !cur)
		return -EINVAL;
	if (send ? keys->tx_cur : keys->rx_cur)
		return -EEXIST;
	if (send) {
		keys->tx_cur = cur;
		keys->tx_max = limits->seal_max;
		if (packets_max && packets_max < keys->tx_max)
			keys->tx_max = packets_max;
	} else {
		keys->rx_cur = cur;
		keys->rx_failed_max = limits->fail_max;
	}
	return 0;
}

void qrdma_keys_rest(struct qrdma_keys *keys)
{
	if (keys->tx_gen != keys->rx_gen || qrdma_keys_pressing(keys))
		return;
	keys->aead->slot_put(keys->tx_next);
	keys->aead->slot_put(keys->rx_next);
	keys->tx_next = NULL;
	keys->rx_next = NULL;
}

struct qrdma_slot *qrdma_keys_wanted(struct qrdma_keys *keys, bool send)
{
	if (send)
		return keys->tx_next ? NULL : keys_ref(keys, keys->tx_cur);
	return keys->rx_next ? NULL : keys_ref(keys, keys->rx_cur);
}

int qrdma_keys_install_next(struct qrdma_keys *keys, bool send, const struct qrdma_slot *from,
			    struct qrdma_slot *next)
{
	struct qrdma_slot **place = send ? &keys->tx_next : &keys->rx_next;

	if (!from || from != (send ? keys->tx_cur : keys->rx_cur))
		return -ESTALE;
	if (*place)
		return -EEXIST;
	*place = next;
	if (!qrdma_keys_lacking(keys))
		keys->asked = false;
	return 0;
}

static void keys_tx_advance(struct qrdma_keys *keys)
{
	keys->aead->slot_put(keys->tx_cur);
	keys->tx_cur = keys->tx_next;
	keys->tx_next = NULL;
	keys->tx_gen++;
	keys->tx_confirmed = false;
	keys->tx_sealed = 0;
	keys->tx_first = U64_MAX;
	keys->updates++;
}

int qrdma_keys_update(struct qrdma_keys *keys, bool urgent)
{
	if (qrdma_keys_lacking(keys))
		keys->asked = true;
	if (keys->rx_prev && !urgent)
		return -EAGAIN;
	if (!keys->tx_next || !keys->tx_confirmed || keys->tx_gen != keys->rx_gen)
		return -EAGAIN;
	keys_tx_advance(keys);
	return 0;
}

bool qrdma_keys_update_due(const struct qrdma_keys *keys)
{
	/* with limits of a few packets: early enough before the reserve */
	u64 early = min_t(u64, 2 * KEYS_RESERVE, keys->tx_max / 4 * 3);

	return keys->tx_cur && keys->tx_sealed >= keys->tx_max - max(keys->tx_max / 8, early);
}

bool qrdma_keys_exhausted(const struct qrdma_keys *keys)
{
	return keys->tx_cur &&
	       keys->tx_sealed >= keys->tx_max - min_t(u64, KEYS_RESERVE, keys->tx_max / 2);
}

bool qrdma_keys_spent(const struct qrdma_keys *keys)
{
	return qrdma_keys_exhausted(keys) && keys->tx_sealed + KEYS_RESERVE_CLOSE >= keys->tx_max;
}

struct qrdma_slot *qrdma_keys_seal(struct qrdma_keys *keys, u64 pn, bool *phase)
{
	if (!keys->tx_cur || keys->tx_sealed >= keys->tx_max)
		return NULL;
	keys->tx_sealed++;
	if (keys->tx_first == U64_MAX)
		keys->tx_first = pn;
	*phase = keys->tx_gen & 1;
	return keys_ref(keys, keys->tx_cur);
}

/*
 * Can an update of the peer be followed? It has to be answered with one of ours: no answer at hand,
 * no update.
 */
static bool keys_can_follow(struct qrdma_keys *keys)
{
	if (keys->rx_next && (keys->tx_gen != keys->rx_gen || keys->tx_next))
		return true;
	keys->asked = true;
	return false;
}

struct qrdma_slot *qrdma_keys_open(struct qrdma_keys *keys, u64 pn, bool phase, u32 *gen)
{
	if (phase == (keys->rx_gen & 1)) {
		*gen = keys->rx_gen;
		return keys_ref(keys, keys->rx_cur);
	}
	if (keys->rx_gen && pn < keys->rx_first) {
		*gen = keys->rx_gen - 1;
		return keys_ref(keys, keys->rx_prev);
	}
	if (!keys_can_follow(keys))
		return NULL;
	*gen = keys->rx_gen + 1;
	return keys_ref(keys, keys->rx_next);
}

static void keys_rx_advance(struct qrdma_keys *keys, u64 prev_until)
{
	keys->aead->slot_put(keys->rx_prev);
	keys->rx_prev = keys->rx_cur;
	keys->rx_prev_until = prev_until;
	keys->rx_cur = keys->rx_next;
	keys->rx_next = NULL;
	keys->rx_gen++;
	keys->rx_first = U64_MAX;
	keys->rx_last = 0;
}

int qrdma_keys_opened(struct qrdma_keys *keys, u32 gen, u64 pn, u64 prev_until)
{
	int moved = 0;

	if (gen == keys->rx_gen + 1) {
		/* a new key for a lower number than the old one had (RFC 9001 s6.4) */
		if (keys->rx_first != U64_MAX && pn < keys->rx_last)
			return -EKEYREJECTED;
		if (!keys_can_follow(keys))
			return -EAGAIN;
		if (keys->tx_gen == keys->rx_gen) {
			/* not one packet left under the key that answered the last update (s6.2) */
			if (keys->tx_gen && keys->tx_first == U64_MAX)
				return -EKEYREJECTED;
			keys_tx_advance(keys);
		}
		keys_rx_advance(keys, prev_until);
		moved = 1;
	}
	if (gen < keys->rx_gen)
		return pn > keys->rx_first ? -EKEYREJECTED : 0;
	keys->rx_first = min(keys->rx_first, pn);
	keys->rx_last = max(keys->rx_last, pn);
	return moved;
}

bool qrdma_keys_open_failed(struct qrdma_keys *keys)
{
	return ++keys->rx_failed >= keys->rx_failed_max;
}

int qrdma_keys_acked(struct qrdma_keys *keys, u32 gen, u64 largest)
{
	if (keys->tx_first == U64_MAX || largest < keys->tx_first)
		return 0;
	if (gen < keys->tx_gen)
		return -EKEYREJECTED;
	keys->tx_confirmed = true;
	return 0;
}

void qrdma_keys_expire(struct qrdma_keys *keys, u64 now)
{
	if (keys->rx_prev && keys->rx_prev_until <= now) {
		keys->aead->slot_put(keys->rx_prev);
		keys->rx_prev = NULL;
	}
}
