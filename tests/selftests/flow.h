/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bytes that go through a pair of descriptors and are checked: a thread writes, a thread reads.
 *
 * What goes through is made from the flow's seed and the offset, so the reader knows each byte and
 * can name the first wrong one; a SHA-256 of both sides is kept besides, as a file's would be.
 */
#ifndef QRDMA_TEST_FLOW_H
#define QRDMA_TEST_FLOW_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN	32

struct sha256 {
	uint32_t state[8];
	uint64_t len;
	uint8_t block[64];
};

void sha256_init(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t len);
void sha256_end(struct sha256 *sha, uint8_t out[SHA256_LEN]);

/* Bytes @off .. @off + @len of what belongs to @seed. */
void pattern_fill(uint64_t seed, uint64_t off, void *out, size_t len);
/* Index of the first byte that differs, @len: none does. */
size_t pattern_check(uint64_t seed, uint64_t off, const void *data, size_t len);

struct flow {
	/* set by the caller */
	int tx;			/* written to */
	int rx;			/* read from */
	uint64_t size;		/* bytes; 0: until flow_stop() */
	size_t chunk;		/* bytes per write and read, 0: 64 KiB */
	bool close_tx;		/* close the writer's end when all is written */
	bool half_close;	/* shutdown(SHUT_WR) then; the reader wants to see the end */
	/* what came of it: after flow_wait() */
	int tx_err;		/* 0 or -errno of the first write that failed */
	int rx_err;		/* the same; -ENODATA: the end came early; -EBADMSG: a wrong byte */
	uint64_t sent;
	uint64_t received;
	bool saw_end;		/* the reader read the end of the stream */
	uint64_t wrong_at;	/* offset of the first wrong byte */
	uint8_t tx_sha[SHA256_LEN];
	uint8_t rx_sha[SHA256_LEN];
	/* private */
	uint64_t seed;
	pthread_t writer, reader;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	bool stop, tx_over, rx_over;
};

/* Begin; every start needs its flow_wait(). */
void flow_start(struct flow *flow);

/* Till both threads have ended. Return: 0: every byte arrived; else the first error (tx, rx). */
int flow_wait(struct flow *flow);

/* Both. */
int flow_run(struct flow *flow);

/* Till so many bytes were read, or the reader has ended. Return: bytes read. */
uint64_t flow_await(struct flow *flow, uint64_t bytes);

/* Bytes read up to now. */
uint64_t flow_progress(struct flow *flow);

/* No more writes: the size is what has been written. */
void flow_stop(struct flow *flow);

/* Both digests are the same, and the size was reached. */
bool flow_good(const struct flow *flow);

/* What went wrong, in words; static storage. */
const char *flow_describe(const struct flow *flow);

#endif
