// SPDX-License-Identifier: GPL-2.0
/*
 * Refusals. See refuse.h.
 */
#include <linux/completion.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "answer.h"
#include "core/stateless.h"
#include "crypto.h"
#include "initial.h"
#include "refuse.h"

/**
 * struct refuse_cause - of a client's Initial
 * @dcid: what the keys come from
 * @scid: whom the answer is for
 */
struct refuse_cause {
	struct qrdma_cid dcid;
	struct qrdma_cid scid;
};

/**
 * struct refuse - a packet in the making
 * @tx: it
 * @sealed: by an asynchronous AEAD
 * @err: its result
 */
struct refuse {
	struct qrdma_tx tx;
	struct completion sealed;
	int err;
};

static void refuse_sealed(struct qrdma_aead_op *op, int err)
{
	struct refuse *refuse = container_of(op, struct refuse, tx.op);

	refuse->err = err;
	complete(&refuse->sealed);
}

/* Return: 0 or a negative errno. */
static int refuse_build(struct refuse *refuse, const struct refuse_cause *cause)
{
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
	err = qrdma_stateless_refuse(&refuse->tx, aead, server, &hdr, &own,
				     QRDMA_ERR_CONNECTION_REFUSED);
	aead->slot_put(client);
	aead->slot_put(server);
	if (err)
		return err;
	init_completion(&refuse->sealed);
	refuse->tx.op.done = refuse_sealed;
	err = aead->seal(&refuse->tx.op);
	if (err == -EINPROGRESS) {
		wait_for_completion(&refuse->sealed);
		err = refuse->err;
	}
	if (!err)
		err = qrdma_tx_protect(&refuse->tx);
	qrdma_tx_release(&refuse->tx);
	return err;
}

static int refuse_make(const struct qrdma_answer *answer, u8 *data, u32 cap)
{
	struct refuse_cause cause;
	struct refuse *refuse = kzalloc(sizeof(*refuse), GFP_KERNEL);
	int err;

	if (!refuse)
		return -ENOMEM;
	memcpy(&cause, answer->cause, sizeof(cause));
	refuse->tx.data = data;
	refuse->tx.cap = cap;
	err = refuse_build(refuse, &cause) ?: refuse->tx.len;
	kfree(refuse);
	return err;
}

static const struct qrdma_answer_ops refuse_ops = {
	.make	= refuse_make,
	.sent	= QRDMA_STAT_REFUSED,
};

void qrdma_refuse_answer(const struct qrdma_rxbuf *rxbuf, const struct qrdma_hdr *hdr)
{
	struct refuse_cause cause;

	BUILD_BUG_ON(sizeof(cause) > QRDMA_ANSWER_CAUSE);
	qrdma_cid_set(&cause.dcid, hdr->dcid, hdr->dcid_len);
	qrdma_cid_set(&cause.scid, hdr->scid, hdr->scid_len);
	qrdma_answer_begin(rxbuf, &refuse_ops, &cause, sizeof(cause));
}
