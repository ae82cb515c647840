// SPDX-License-Identifier: GPL-2.0
/*
 * Network namespaces. They vanish while a peer is looked for in them: the search must not use
 * them when they are gone (the kernel counts references, and complains).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"
#include "fact.h"
#include "probe.h"

#define PARAM	"/sys/module/qrdma/parameters/"

#define CPUMASK	"/sys/devices/virtual/workqueue/cpumask"
#define PREEMPT	"/sys/kernel/debug/sched/preempt"

enum {
	WORKERS = 8,
	HOGS = 2,
};

static void set(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		BAIL("%s: %s", path, strerror(errno));
	close(fd);
}

static bool search_over(void *unused)
{
	return !port_number("peers", "users") && !port_number("peers", "tries");
}

static int loopback_up(void)
{
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	int rc = fd < 0 ? -1 : ioctl(fd, SIOCSIFFLAGS, &req);

	close(fd);
	return rc;
}

/* A connect() that asks again and again: there is a route, and no RDMA device. */
static int begin_search(void)
{
	const struct end_options opt = { .seed = end_fresh_seed(), .type_flags = SOCK_NONBLOCK };
	union addr addr = { .in = { .sin_family = AF_INET, .sin_port = htons(1),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	int fd = end_socket(&opt);
	int err = fd < 0 ? fd : end_setup(fd, QRDMA_ROLE_CLIENT, &opt);

	if (err)
		return err;
	return connect(fd, &addr.sa, sizeof(addr.in)) && errno != EINPROGRESS ? -errno : 0;
}

/* What ends by the end of the process: first the socket, then the last hold on the namespace. */
static void vanish_once(int round)
{
	int i, err;

	if (unshare(CLONE_NEWNET) || loopback_up())
		BAIL("no network namespace: %s", strerror(errno));
	err = begin_search();
	if (err)
		BAIL("connect: %s", strerror(-err));
	/* Not always at the same point of the search */
	for (i = 0; i < round * 7 % 200; i++)
		sched_yield();
	_exit(0);
}

static void vanish_worker(int rounds)
{
	int i, status;
	pid_t pid;

	for (i = 0; i < rounds; i++) {
		pid = fork();
		if (!pid)
			vanish_once(i);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			_exit(1);
	}
	_exit(0);
}

/*
 * Have the kernel's workers stop at any instruction, and for long: they may run on the second CPU
 * only, which is busy with what comes first. Other processes are not held up.
 */
static char preempt[16];	/* what it was before: the word in brackets */

static void slow_workers(pid_t hog[HOGS])
{
	cpu_set_t cpus;
	int i;

	for (i = 0; i < HOGS; i++) {
		hog[i] = fork();
		if (hog[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CPU_ZERO(&cpus);
		CPU_SET(1, &cpus);
		if (sched_setaffinity(0, sizeof(cpus), &cpus) || nice(-10) == -1)
			_exit(1);
		for (;;)
			;
	}
	snprintf(preempt, sizeof(preempt), "%s",
		 shell_line("sed 's/.*(\\(.*\\)).*/\\1/' " PREEMPT));
	if (*preempt)
		set(PREEMPT, "full");
	set(CPUMASK, "2");
}

static void usual_workers(const pid_t hog[HOGS])
{
	int i;

	set(CPUMASK, "3");
	if (*preempt)
		set(PREEMPT, preempt);
	for (i = 0; i < HOGS; i++) {
		kill(hog[i], SIGKILL);
		waitpid(hog[i], NULL, 0);
	}
}

TEST_TIMEOUT(vanish, 600)
{
	int rounds = env_number("QRDMA_ROUNDS", 10, 3);
	pid_t worker[WORKERS], hog[HOGS];
	int i, status, bad = 0;

	set(PARAM "hedge_ms", "1");
	slow_workers(hog);
	for (i = 0; i < WORKERS; i++) {
		worker[i] = fork();
		if (!worker[i])
			vanish_worker(rounds);
	}
	for (i = 0; i < WORKERS; i++)
		bad += waitpid(worker[i], &status, 0) != worker[i] || status;
	usual_workers(hog);
	set(PARAM "hedge_ms", "200");
	FACT(!bad, "%d namespaces came and went", WORKERS * rounds);
	FACT(wait_for(search_over, NULL), "nobody is searching: %lld users, %lld requests",
	     (long long)port_number("peers", "users"), (long long)port_number("peers", "tries"));
}
