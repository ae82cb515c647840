// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject.h"

static void die(const char *what)
{
	printf("Bail out! ud_inject: %s\n", what);
	fflush(stdout);
	exit(1);
}

static void inject_child(int in, int out, const char *args)
{
	char words[512];

	snprintf(words, sizeof(words),
		 ". \"$QRDMA_REPO/tests/vm/guest/lib.sh\"; "
		 "exec \"$QRDMA_REPO/build/selftests/ud_inject\" %s", args);
	dup2(in, 0);
	dup2(out, 1);
	execl("/bin/sh", "sh", "-c", words, NULL);
	_exit(127);
}

void inject_open(struct inject *inject, const char *args)
{
	int in[2], out[2];

	inject->posted = 0;
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		die(strerror(errno));
	fflush(stdout);
	inject->pid = fork();
	if (inject->pid < 0)
		die(strerror(errno));
	if (!inject->pid) {
		close(in[1]);
		close(out[0]);
		inject_child(in[0], out[1], args);
	}
	close(in[0]);
	close(out[1]);
	inject->in = fdopen(in[1], "w");
	inject->out = fdopen(out[0], "r");
	if (!inject->in || !inject->out)
		die(strerror(errno));
	if (fscanf(inject->out, "ready %i %i %u", (int *)&inject->qpn, (int *)&inject->qkey,
		   &inject->max) != 3)
		die("it is not ready");
}

static void inject_say(struct inject *inject, const void *msg, size_t len, size_t length,
		       uint64_t count)
{
	size_t i;

	if (!len)
		fputc('-', inject->in);
	for (i = 0; i < len; i++)
		fprintf(inject->in, "%02x", ((const uint8_t *)msg)[i]);
	fprintf(inject->in, " %llu %zu\n", (unsigned long long)count, length);
}

static uint64_t inject_hear(struct inject *inject, uint64_t *errors)
{
	unsigned long long sent, failed;

	fflush(inject->in);
	if (fscanf(inject->out, " sent %llu %llu", &sent, &failed) != 2)
		die("it has gone");
	if (errors)
		*errors = failed;
	return sent;
}

uint64_t inject_send(struct inject *inject, const void *msg, size_t len, size_t length,
		     uint64_t count, uint64_t *errors)
{
	inject_say(inject, msg, len, length, count);
	return inject_hear(inject, errors);
}

void inject_post(struct inject *inject, const void *msg, size_t len)
{
	inject_say(inject, msg, len, 0, 1);
	inject->posted++;
}

uint64_t inject_reap(struct inject *inject)
{
	uint64_t errors, sum = 0;

	for (; inject->posted; inject->posted--) {
		inject_hear(inject, &errors);
		sum += errors;
	}
	return sum;
}

void inject_qpn(struct inject *inject, uint32_t qpn)
{
	fprintf(inject->in, "qpn 0x%x\n", qpn);
}

void inject_vary(struct inject *inject, size_t at, size_t len)
{
	fprintf(inject->in, "vary %zu %zu\n", at, len);
}

void inject_key(struct inject *inject, uint32_t qkey)
{
	fprintf(inject->in, "key 0x%x\n", qkey);
}

void inject_close(struct inject *inject)
{
	int status;

	fclose(inject->in);
	fclose(inject->out);
	if (waitpid(inject->pid, &status, 0) != inject->pid || status)
		die("it has failed");
}
