// SPDX-License-Identifier: GPL-2.0
/*
 * Address validation by tokens. See retry.h.
 */
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/siphash.h>

#include "answer.h"
#include "compat.h"
#include "core/stateless.h"
#include "crypto.h"
#include "initial.h"
#include "retry.h"
#include "stat.h"

/* Tokens that were used last are remembered in so many places; more push each other out. */
#define RETRY_USED_BITS		10

/**
 * struct retry_cause - of a client's Initial
 * @dcid: where it went to
 * @scid: whom the answer is for
 * @port: its port
 * @addr: its address
 */
struct retry_cause {
	struct qrdma_cid dcid;
	struct qrdma_cid scid;
	u16 port;
	struct in6_addr addr;
};

/* Key of the tags of Retry packets */
static struct qrdma_slot *retry_slot;
/* A hash of each token that a client has used, 0: none; no lock, exchanged */
static unsigned long retry_used[1 << RETRY_USED_BITS];
static siphash_key_t retry_used_key __read_mostly;

int qrdma_retry_start(void)
{
	get_random_bytes(&retry_used_key, sizeof(retry_used_key));
	return qrdma_initial_retry_slot(&retry_slot);
}

void qrdma_retry_stop(void)
{
	qrdma_kernel_aead.slot_put(retry_slot);
	retry_slot = NULL;
}

struct qrdma_slot *qrdma_retry_slot(void)
{
	return retry_slot;
}

/*
 * What a token is worth
 */

/* RFC 9000 s8.1.4: a replay is to be of little use. Return: it was not used before, it seems. */
static bool retry_first_use(const u8 *nonce)
{
	/* 0 stands for none */
	unsigned long hash = siphash(nonce, QRDMA_TOKEN_NONCE_LEN, &retry_used_key) | 1;
	u32 place = hash >> 1 & (ARRAY_SIZE(retry_used) - 1);

	return xchg(&retry_used[place], hash) != hash;
}

static bool retry_in_time(const struct qrdma_token *token, u32 life)
{
	s64 age = ktime_get_real_seconds() - token->issued;

	return age >= -QRDMA_RETRY_SLACK && age <= life;
}

static enum qrdma_retry_verdict retry_judge(const struct qrdma_token *token,
					    const struct qrdma_rxbuf *rxbuf,
					    const struct qrdma_hdr *hdr)
{
	bool his = ipv6_addr_equal(&token->addr, &rxbuf->saddr);

	if (token->kind == QRDMA_TOKEN_NEXT)
		return his && retry_in_time(token, QRDMA_RETRY_NEXT_LIFE) &&
		       retry_first_use(hdr->token) ? QRDMA_RETRY_KNOWN : QRDMA_RETRY_NONE;
	if (his && retry_in_time(token, QRDMA_RETRY_LIFE) &&
	    token->port == get_unaligned_be16(rxbuf->buf.data) &&
	    hdr->dcid_len == QRDMA_CID_LEN && !memcmp(hdr->dcid, token->scid, QRDMA_CID_LEN))
		return QRDMA_RETRY_BACK;
	return QRDMA_RETRY_INVALID;
}

enum qrdma_retry_verdict qrdma_retry_look(const struct qrdma_rxbuf *rxbuf,
					  const struct qrdma_hdr *hdr, struct qrdma_cid *odcid)
{
	enum qrdma_retry_verdict verdict = QRDMA_RETRY_NONE;
	struct qrdma_token token;

	if (!hdr->token_len)
		return QRDMA_RETRY_NONE;
	if (!qrdma_token_open(&token, hdr->token, hdr->token_len))
		verdict = retry_judge(&token, rxbuf, hdr);
	switch (verdict) {
	case QRDMA_RETRY_NONE:
		qrdma_stat_inc(QRDMA_STAT_TOKEN_IGNORED);
		break;
	case QRDMA_RETRY_INVALID:
		qrdma_stat_inc(QRDMA_STAT_TOKEN_REFUSED);
		break;
	case QRDMA_RETRY_BACK:
		*odcid = token.odcid;
		fallthrough;
	case QRDMA_RETRY_KNOWN:
		qrdma_stat_inc(QRDMA_STAT_TOKEN_TAKEN);
		break;
	}
	return verdict;
}

/*
 * New ones
 */

int qrdma_retry_next(const struct in6_addr *client, u8 *data)
{
	const struct qrdma_token token = {
		.kind = QRDMA_TOKEN_NEXT,
		.issued = ktime_get_real_seconds(),
		.addr = *client,
	};

	return qrdma_token_seal(&token, data);
}

static int retry_build(struct qrdma_answer_packet *packet, const void *from)
{
	const struct retry_cause *cause = from;
	const struct qrdma_hdr hdr = {
		.type = QRDMA_PKT_INITIAL,
		.dcid = cause->dcid.data, .dcid_len = cause->dcid.len,
		.scid = cause->scid.data, .scid_len = cause->scid.len,
	};
	struct qrdma_token token = {
		.kind = QRDMA_TOKEN_RETRY,
		.issued = ktime_get_real_seconds(),
		.addr = cause->addr,
		.port = cause->port,
		.odcid = cause->dcid,
	};
	struct qrdma_cid own = { .len = QRDMA_CID_LEN };
	u8 data[QRDMA_TOKEN_LEN];
	int err;

	get_random_bytes(own.data, own.len);
	memcpy(token.scid, own.data, own.len);
	err = qrdma_token_seal(&token, data);
	if (!err)
		err = qrdma_stateless_retry(&packet->tx, &qrdma_kernel_aead, retry_slot, &hdr, &own,
					    data, sizeof(data), get_random_u32());
	if (err)
		return err;
	err = qrdma_answer_seal(packet);
	if (!err)
		qrdma_stateless_retry_end(&packet->tx);
	qrdma_tx_release(&packet->tx);
	return err;
}

static int retry_make(const void *cause, u8 *data, u32 cap)
{
	return qrdma_answer_pack(retry_build, cause, data, cap);
}

static const struct qrdma_answer_ops retry_ops = {
	.make	= retry_make,
	.sent	= QRDMA_STAT_RETRY_SENT,
	.modest	= true,
};

void qrdma_retry_answer(struct net *net, const struct qrdma_rxbuf *rxbuf,
			const struct qrdma_hdr *hdr, int ifindex)
{
	struct retry_cause cause = {
		.port = get_unaligned_be16(rxbuf->buf.data),
		.addr = rxbuf->saddr,
	};

	BUILD_BUG_ON(sizeof(cause) > QRDMA_ANSWER_CAUSE);
	qrdma_cid_set(&cause.dcid, hdr->dcid, hdr->dcid_len);
	qrdma_cid_set(&cause.scid, hdr->scid, hdr->scid_len);
	/* The same question that the connection will ask (link.c), so it is asked once. */
	if (!ifindex && ipv6_addr_type(&rxbuf->saddr) & IPV6_ADDR_LINKLOCAL)
		ifindex = rxbuf->ifindex;
	if (!qrdma_answer_now(net, rxbuf, &retry_ops, &cause, sizeof(cause), ifindex))
		qrdma_answer_begin(rxbuf, &retry_ops, &cause, sizeof(cause), ifindex);
}
