// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzer of core/tparam.c: the first byte of the input says which role sent the rest. A set that
 * is let through is within its ranges, and encoded and decoded again it is the same.
 */
#include "env.h"
#include "tparam.h"
#include "frame.h"

#define CHECK(c) do {								\
	if (!(c))								\
		shim_die("does not hold: " #c, __FILE__, __LINE__);		\
} while (0)

int LLVMFuzzerTestOneInput(const u8 *input, size_t size);

int LLVMFuzzerTestOneInput(const u8 *input, size_t size)
{
	u8 one[QRDMA_TP_ENCODED_MAX], two[QRDMA_TP_ENCODED_MAX], *data;
	struct qrdma_tparams tp, again;
	struct qrdma_writer w1, w2;
	bool server;
	u64 err;

	if (!size)
		return 0;
	server = *input & 1;
	data = malloc(--size + 1);
	memcpy(data, input + 1, size);
	/* the end of what is allocated is the end of what may be read */
	data = realloc(data, size ? size : 1);
	err = qrdma_tparams_decode(&tp, data, size, server);
	CHECK(!err || err == QRDMA_ERR_TRANSPORT_PARAMETER_ERROR);
	free(data);
	if (err)
		return 0;

	CHECK(qrdma_tparams_valid(&tp));
	CHECK(server || !qrdma_tparams_has(&tp, QRDMA_TP_STATELESS_RESET_TOKEN));
	qrdma_writer_init(&w1, one, sizeof(one));
	CHECK(qrdma_tparams_encode(&w1, &tp, server));
	CHECK(qrdma_tparams_decode(&again, one, w1.pos - one, server) == QRDMA_ERR_NO_ERROR);
	qrdma_writer_init(&w2, two, sizeof(two));
	CHECK(qrdma_tparams_encode(&w2, &again, server));
	CHECK(w1.pos - one == w2.pos - two && !memcmp(one, two, w1.pos - one));
	return 0;
}
