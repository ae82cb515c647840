// SPDX-License-Identifier: GPL-2.0
/*
 * qbench SYSTEM WORK [name=value...]: one measurement, one line of JSON on standard output.
 *
 *	SYSTEM	tcp tcp+tls ktls rc+tls qrdma, and raw: ud rc
 *	WORK	stream (size, total, conns), echo (size, count), setup (count); raw: stream
 *	name	number size total count conns cipher (aes128 aes256 ccm chacha) handshake pin
 *		(0, 1)
 *
 * Nothing here has a time-out: a run that hangs is ended by who started it.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <linux/qrdma.h>

#include "../tools/mark.h"
#include "bench.h"

struct options opt = {
	.size = 4096, .total = 1 << 20, .count = 100, .conns = 1,
	.cipher = QRDMA_CIPHER_AES_GCM_128, .pin = true,
};

static int other = -1;		/* to the other side */
static char result[2048];
static uint64_t began;

void die(const char *what, int err)
{
	fprintf(stderr, "qbench %s %s: %s: %s\n", opt.system, opt.work, what,
		strerror(err < 0 ? -err : err));
	exit(1);
}

void tell_bytes(const void *data, size_t len)
{
	if (send(other, data, len, 0) != (ssize_t)len)
		die("tell", errno);
}

void hear_bytes(void *data, size_t len)
{
	if (recv(other, data, len, MSG_WAITALL) != (ssize_t)len)
		die("the other side is gone", EPIPE);
}

void tell(void)
{
	tell_bytes("", 1);
}

void hear(void)
{
	char byte;

	hear_bytes(&byte, 1);
}

void meet(void)
{
	tell();
	hear();
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

void measure_begin(void)
{
	began = now_ns();
	mark_begin();
}

void measure_end(void)
{
	mark_end(opt.number);
	result_number("ns", now_ns() - began);
}

void result_number(const char *name, double value)
{
	size_t at = strlen(result);

	snprintf(result + at, sizeof(result) - at, ", \"%s\": %.15g", name, value);
}

void result_print(void)
{
	printf("{\"number\": %u, \"system\": \"%s\", \"work\": \"%s\"%s}\n", opt.number, opt.system,
	       opt.work, result);
	fflush(stdout);
}

static uint32_t cipher_of(const char *name)
{
	static const struct {
		const char *name;
		uint32_t id;
	} ciphers[] = {
		{ "aes128", QRDMA_CIPHER_AES_GCM_128 }, { "aes256", QRDMA_CIPHER_AES_GCM_256 },
		{ "ccm", QRDMA_CIPHER_AES_CCM_128 }, { "chacha", QRDMA_CIPHER_CHACHA20 },
	};

	for (size_t i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++)
		if (!strcmp(ciphers[i].name, name))
			return ciphers[i].id;
	die(name, EINVAL);
}

static void parse(char *arg)
{
	char *value = strchr(arg, '=');
	unsigned long long n;

	if (!value)
		die(arg, EINVAL);
	*value++ = '\0';
	n = strtoull(value, NULL, 0);
	if (!strcmp(arg, "number"))
		opt.number = n;
	else if (!strcmp(arg, "size"))
		opt.size = n;
	else if (!strcmp(arg, "total"))
		opt.total = n;
	else if (!strcmp(arg, "count"))
		opt.count = n;
	else if (!strcmp(arg, "conns"))
		opt.conns = n;
	else if (!strcmp(arg, "cipher"))
		opt.cipher = cipher_of(value);
	else if (!strcmp(arg, "handshake"))
		opt.handshake = n;
	else if (!strcmp(arg, "pin"))
		opt.pin = n;
	else
		die(arg, EINVAL);
}

/* With one CPU for each side, a side is a host: what it does runs where its packets come in. */
static void pin(enum side side)
{
	cpu_set_t set;

	if (!opt.pin || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	CPU_ZERO(&set);
	CPU_SET(side == SIDE_A ? 0 : 1, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity", errno);
}

static void run(const struct system *s, enum side side)
{
	pin(side);
	/* no page fault while something is measured */
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		die("mlockall", errno);
	if (s && s->carrier->start)
		s->carrier->start(side);
	meet();
	if (!s)
		work_raw(!strcmp(opt.system, "rc"), side);
	else if (!strcmp(opt.work, "stream"))
		work_stream(s, side);
	else if (!strcmp(opt.work, "echo"))
		work_echo(s, side);
	else if (!strcmp(opt.work, "setup"))
		work_setup(s, side);
	else
		die(opt.work, EINVAL);
	meet();
}

int main(int argc, char **argv)
{
	const struct system *s = NULL;
	int ends[2], status, i;
	pid_t child;

	opt.system = argc > 1 ? argv[1] : "?";
	opt.work = argc > 2 ? argv[2] : "?";
	if (argc < 3)
		die("usage: qbench SYSTEM WORK [name=value...]", EINVAL);
	for (i = 3; i < argc; i++)
		parse(argv[i]);
	if (strcmp(opt.system, "ud") && strcmp(opt.system, "rc")) {
		s = system_find(opt.system);
		if (!s)
			die("no such system", EINVAL);
		if (s->carrier->prepare)
			s->carrier->prepare();
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		die("socketpair", errno);
	child = fork();
	if (child < 0)
		die("fork", errno);
	other = ends[!child];
	close(ends[!!child]);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(s, SIDE_B);
		return 0;
	}
	run(s, SIDE_A);
	if (waitpid(child, &status, 0) < 0 || status)
		die("side b failed", ECHILD);
	result_print();
	return 0;
}
