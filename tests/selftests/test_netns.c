// SPDX-License-Identifier: GPL-2.0
/*
 * Network namespaces. They vanish while a peer is looked for in them: the search must not use
 * them when they are gone (the kernel counts references, and complains). Hosts live in them: sockets
 * of a namespace find those of the same namespace, as long as there are any.
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
#include "flow.h"
#include "probe.h"

#define PARAM	"/sys/module/qrdma/parameters/"

#define NETNS_MAX	"/proc/sys/user/max_net_namespaces"
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

/*
 * Is there none but the first any more? The kernel counts them until they are cleaned up: with a
 * limit of one, one can be made only then.
 */
static bool namespaces_freed(void *unused)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(!!unshare(CLONE_NEWNET));
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static bool all_freed(void)
{
	char max[24];
	bool freed;

	snprintf(max, sizeof(max), "%s", shell_line("cat " NETNS_MAX));
	set(NETNS_MAX, "1");
	freed = wait_for(namespaces_freed, NULL);
	set(NETNS_MAX, max);
	return freed;
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
	FACT(all_freed(), "and nobody keeps the namespaces");
}

/*
 * A namespace with an RDMA device, number @nr; the process is in it afterwards. Of its veth pair
 * one end stays outside: it goes when the namespace does.
 */
static void enter_host(int nr)
{
	char addr[32];

	snprintf(addr, sizeof(addr), "10.%d.0.1", nr);
	if (unshare(CLONE_NEWNET) ||
	    shell("ip link set lo up && ip link add dn%d index 7%d type dummy && "
		  "ip link add vn%d type veth peer name vt%d netns 1 && "
		  "ip addr add %s/24 dev dn%d && ip link set dn%d up && "
		  "rdma link add rxe%d type rxe netdev dn%d && wait_until 20 gid_has rxe%d 0a%02x:0001",
		  nr, nr, nr, nr, addr, nr, nr, nr, nr, nr, nr))
		BAIL("no host in a namespace");
	setenv("QRDMA_A4", addr, 1);
	setenv("QRDMA_B4", addr, 1);
}

/*
 * rxe before 7.0 looks for the route of each packet in the first namespace, by the number of the
 * net device. A device with the same number and address there makes it work within one host.
 */
static void twin(int nr, bool here)
{
	if (here ? shell("ip link add dt%d index 7%d type dummy && "
			 "ip addr add 10.%d.0.1/32 dev dt%d && ip link set dt%d up",
			 nr, nr, nr, nr, nr) : shell("ip link del dt%d", nr))
		BAIL("no twin of device %d", nr);
}

/* Run @fn in a process of its own. Its exit code */
static int apart(int (*fn)(int nr), int nr)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		enter_host(nr);
		_exit(fn(nr));
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
	       WEXITSTATUS(status) : -1;
}

static int host_talks(int nr)
{
	const struct end_options opt = { 0 };
	struct flow flow = { .size = 256 << 10, .half_close = true };
	int fd[2], err = end_pair(fd, &opt);

	FACT(!err, "sockets of a namespace find each other: %s", strerror(-err));
	if (err)
		return 1;
	flow.tx = fd[0];
	flow.rx = fd[1];
	flow_run(&flow);
	return !FACT(flow_good(&flow), "and talk: %s", flow_describe(&flow));
}

/* Where the device cannot send, the error says so. */
static int host_is_mute(int nr)
{
	const struct end_options opt = { 0 };
	int fd[2], err = end_pair(fd, &opt);

	return !FACT(!err || err == -ENETDOWN, "a device that does not send: %s", strerror(-err));
}

static bool host_gone(void *veth)
{
	return !if_nametoindex(veth);
}

TEST_TIMEOUT(host, 300)
{
	twin(41, true);
	EXPECT_EQ(apart(host_talks, 41), 0);
	twin(41, false);
	FACT(wait_for(host_gone, "vt41"), "nobody serves the namespace any more");
	EXPECT_EQ(apart(host_is_mute, 42), 0);
	FACT(wait_for(host_gone, "vt42"), "nor the other one");
}
