// SPDX-License-Identifier: GPL-2.0
/* See common.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common.h"

static const char *dir;
static int tests;
static int failed;

void check(bool good, const char *name, const char *detail)
{
	tests++;
	if (!good)
		failed++;
	printf("%sok %d - %s%s%s\n", good ? "" : "not ", tests, name, good ? "" : " # ", good ? "" : detail);
}

const char *path(const char *name)
{
	static char buf[8][512];
	static int next;
	char *p = buf[next++ % 8];

	snprintf(p, sizeof(buf[0]), "%s/%s", dir, name);
	return p;
}

struct qrdma_cred *cred_x509(const char *name, const char *ca)
{
	struct qrdma_cred *cred;
	char cert[64];
	char key[64];

	if (qrdma_cred_new(&cred))
		exit(1);
	snprintf(cert, sizeof(cert), "%s.pem", name ? name : "");
	snprintf(key, sizeof(key), "%s.key", name ? name : "");
	if (name && qrdma_cred_set_x509(cred, path(cert), path(key)))
		exit(1);
	if (ca && qrdma_cred_set_trust(cred, path(ca)))
		exit(1);
	return cred;
}

struct qrdma_cred *cred_psk(const char *identity, uint8_t fill)
{
	struct qrdma_cred *cred;
	uint8_t key[32];

	memset(key, fill, sizeof(key));
	if (qrdma_cred_new(&cred) || qrdma_cred_set_psk(cred, identity, key, sizeof(key)))
		exit(1);
	return cred;
}

void test_start(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		exit(2);
	}
	dir = argv[1];
}

int test_end(void)
{
	printf("1..%d\n", tests);
	return failed ? 1 : 0;
}
