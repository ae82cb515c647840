/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tool ud_inject (tests/tools), driven by a test: messages of any content to the queue pairs of
 * AF_QRDMA. Whatever does not work ends the test.
 */
#ifndef QRDMA_TEST_INJECT_H
#define QRDMA_TEST_INJECT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct inject {
	pid_t pid;
	FILE *in;		/* what it reads */
	FILE *out;		/* what it says */
	uint32_t qpn;		/* of the destination */
	uint32_t qkey;
	uint32_t max;		/* largest QUIC datagram that it takes */
	unsigned int posted;	/* not yet answered */
};

/* @args: of the tool, words of a shell in which tests/vm/guest/lib.sh was sourced */
void inject_open(struct inject *inject, const char *args);

/*
 * @count times the @len bytes @msg, filled up to @length (0: as they are). Return: how many were
 * sent; @errors (may be NULL): sends that ended with an error.
 */
uint64_t inject_send(struct inject *inject, const void *msg, size_t len, size_t length,
		     uint64_t count, uint64_t *errors);

/*
 * The same without waiting: at most INJECT_POSTED of them, then inject_reap() waits for all. Return:
 * sends that ended with an error.
 */
#define INJECT_POSTED	64
void inject_post(struct inject *inject, const void *msg, size_t len);
uint64_t inject_reap(struct inject *inject);

/* From here on to another queue pair, or with another key */
void inject_qpn(struct inject *inject, uint32_t qpn);
void inject_key(struct inject *inject, uint32_t qkey);

/* From here on these bytes of a message are random, in each that is sent */
void inject_vary(struct inject *inject, size_t at, size_t len);

void inject_close(struct inject *inject);

#endif
