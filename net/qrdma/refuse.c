// SPDX-License-Identifier: GPL-2.0
/*
 * Refusals. See refuse.h.
 */
#include <linux/random.h>

#include "answer.h"
#include "core/stateless.h"
#include "crypto.h"
#include "initial.h"
#include "refuse.h"

/**
 * struct refuse_cause - of a client's Initial
 * @dcid: what the keys come from
 * @scid: whom the answer is for
 * @code: why
 */
struct refuse_cause {
	struct qrdma_cid dcid;
	struct qrdma_cid scid;
	u64 code;
};

/* Return: 0 or a negative errno. */
static int refuse_build(struct qrdma_answer_packet *packet, const void *from)
{
	const struct refuse_cause *cause = from;
	const struct qrdma_hdr hdr = {
		.type = QRDMA_PKT_INITIAL,
		.dcid = cause->dcid.data, .dcid_len = cause->dcid.len,
		.scid = cause->scid.data, .scid_len = cause->scid.len,
	};
	const struct qrdma_aead_ops *aead = &qrdma_kernel_aead;
	struct qrdma_slot *client, *server;
	struct qrdma_cid own = { .len = QRDMA_CID_LEN };
	int err;

	err = qrdma_initial_slots(cause->dcid.data, cause->dcid.len, &client, &server);
	if (err)
		return err;
	get_random_bytes(own.data, own.len);
	err = qrdma_stateless_refuse(&packet->tx, aead, server, &hdr, &own, cause->code);
	aead->slot_put(client);
	aead->slot_put(server);
	if (err)
		return err;
	err = qrdma_answer_seal(packet) ?: qrdma_tx_protect(&packet->tx);
	qrdma_tx_release(&packet->tx);
	return err;
}

static int refuse_make(const void *cause, u8 *data, u32 cap)
{
	return qrdma_answer_pack(refuse_build, cause, data, cap);
}

static const struct qrdma_answer_ops refuse_ops = {
	.make	= refuse_make,
	.sent	= QRDMA_STAT_REFUSED,
};

void qrdma_refuse_answer(const struct qrdma_rxbuf *rxbuf, const struct qrdma_hdr *hdr, u64 code)
{
	struct refuse_cause cause = { .code = code };

	BUILD_BUG_ON(sizeof(cause) > QRDMA_ANSWER_CAUSE);
	qrdma_cid_set(&cause.dcid, hdr->dcid, hdr->dcid_len);
	qrdma_cid_set(&cause.scid, hdr->scid, hdr->scid_len);
	qrdma_answer_begin(rxbuf, &refuse_ops, &cause, sizeof(cause), rxbuf->ifindex);
}
