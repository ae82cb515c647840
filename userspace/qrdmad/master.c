// SPDX-License-Identifier: GPL-2.0
/*
 * See master.h.
 *
 * Workers belong to generations. A new configuration, or a kernel module that was loaded anew, makes a new
 * generation; when all of its workers take handshakes, those of older ones are told to take no more, and exit when
 * theirs are over. So at each moment somebody takes handshakes.
 */
#include <errno.h>
#include <linux/qrdma.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "genl.h"
#include "hostkey.h"
#include "log.h"
#include "master.h"
#include "notify.h"
#include "rights.h"
#include "worker.h"

/* A worker that lived so long is replaced at once, others later and later. */
#define LIFE_MS		5000
#define DELAY_MIN_MS	100
#define DELAY_MAX_MS	5000

/**
 * struct worker_process - one worker
 * @next: newest first
 * @pid: process
 * @channel: see struct worker_options
 * @generation: when it was made
 * @born: ms
 * @ready: takes handshakes
 * @retired: takes no more
 */
struct worker_process {
	struct worker_process *next;
	pid_t pid;
	int channel;
	unsigned int generation;
	int64_t born;
	bool ready;
	bool retired;
};

/**
 * struct master - its state
 * @file: of the configuration
 * @family: valid if @have_family
 * @generation: of the workers that are wanted
 * @settled: and that are there: older ones have been told to end
 * @delay: ms that the next worker is held back, 0: not
 * @due: when it may be made
 * @stopping: no more workers
 */
struct master {
	const char *file;
	struct config *config;
	struct policies *policies;
	struct rights_user user;
	struct genl *genl;
	struct genl_family family;
	bool have_family;
	int watch;
	int signals;
	struct worker_process *workers;
	unsigned int generation;
	bool settled;
	int delay;
	int64_t due;
	bool stopping;
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static unsigned int wanted(const struct master *m)
{
	long cpus;

	if (m->config->workers)
		return m->config->workers;
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	return cpus < 1 ? 1 : cpus > CONFIG_WORKERS_MAX ? CONFIG_WORKERS_MAX : cpus;
}

/* The family. */

/* Not there is no fault at a start of the system: the module comes with the first socket. */
static void family_look(struct master *m)
{
	struct genl_family family;
	int err = genl_family(m->genl, &family);
	int fd;

	if (err == -ENOENT) {
		/* asks the kernel for the module */
		fd = socket(AF_QRDMA, SOCK_STREAM | SOCK_CLOEXEC, QRDMA_PROTO_IPV4);
		if (fd >= 0)
			close(fd);
		err = genl_family(m->genl, &family);
	}
	if (err)
		log_line(LOG_WARNING, "waiting for the kernel module qrdma: %s", strerror(-err));
	m->have_family = !err;
	if (!err)
		m->family = family;
}

static void host_key_give(struct master *m)
{
	uint8_t key[HOSTKEY_LEN];
	bool made;
	int err;

	if (!m->config->host_key_file || !m->have_family)
		return;
	err = hostkey_load(m->config->host_key_file, key, &made);
	if (err) {
		log_line(LOG_ERROR, "host key %s: %s", m->config->host_key_file,
			 err == -EINVAL ? "not 64 hexadecimal digits" :
			 err == -EACCES ? "others can read it, or we cannot" : strerror(-err));
		return;
	}
	if (made)
		log_line(LOG_NOTICE, "made a host key: %s", m->config->host_key_file);
	err = genl_host_key(m->genl, &m->family, key);
	explicit_bzero(key, sizeof(key));
	if (err == -EPERM)
		log_line(LOG_INFO, "the host key is not for this network namespace to give");
	else if (err == -EBUSY)
		log_line(LOG_INFO, "the kernel has a host key already");
	else if (err)
		log_line(LOG_WARNING, "the kernel does not take the host key: %s", strerror(-err));
}

/* Workers. */

static void __attribute__((noreturn)) worker_child(struct master *m, int channel)
{
	const struct worker_options opt = {
		.config = m->config,
		.policies = m->policies,
		.family = &m->family,
		.user = &m->user,
		.channel = channel,
	};
	sigset_t set;

	/* what only the master may hold: the end of a channel is a message */
	for (struct worker_process *p = m->workers; p; p = p->next)
		close(p->channel);
	genl_close(m->genl);
	close(m->watch);
	close(m->signals);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	exit(worker_run(&opt));
}

static int worker_make(struct master *m)
{
	struct worker_process *p = calloc(1, sizeof(*p));
	int channel[2];

	if (!p)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel)) {
		free(p);
		return -errno;
	}
	p->pid = fork();
	if (!p->pid) {
		close(channel[0]);
		free(p);
		worker_child(m, channel[1]);
	}
	close(channel[1]);
	if (p->pid < 0) {
		int err = -errno;

		close(channel[0]);
		free(p);
		return err;
	}
	p->channel = channel[0];
	p->generation = m->generation;
	p->born = now_ms();
	p->next = m->workers;
	m->workers = p;
	return 0;
}

static void worker_retire(struct worker_process *p)
{
	if (p->retired)
		return;
	p->retired = true;
	shutdown(p->channel, SHUT_WR);
}

static void hold_back(struct master *m)
{
	m->delay = m->delay ? 2 * m->delay : DELAY_MIN_MS;
	if (m->delay > DELAY_MAX_MS)
		m->delay = DELAY_MAX_MS;
	m->due = now_ms() + m->delay;
}

/* As many workers as are wanted; when they are ready, older ones go. */
static void master_settle(struct master *m)
{
	unsigned int there = 0;
	unsigned int ready = 0;

	if (m->stopping || !m->have_family)
		return;
	for (struct worker_process *p = m->workers; p; p = p->next) {
		there += p->generation == m->generation;
		ready += p->generation == m->generation && p->ready;
	}
	while (there < wanted(m) && now_ms() >= m->due) {
		int err = worker_make(m);

		if (err) {
			log_line(LOG_ERROR, "no worker: %s", strerror(-err));
			hold_back(m);
			return;
		}
		there++;
	}
	if (m->settled || ready < wanted(m))
		return;
	m->settled = true;
	for (struct worker_process *p = m->workers; p; p = p->next)
		if (p->generation != m->generation)
			worker_retire(p);
	notify_say("READY=1");
	log_line(LOG_NOTICE, "%u workers take handshakes", ready);
}

static void master_renew(struct master *m)
{
	m->generation++;
	m->settled = false;
	m->delay = 0;
	m->due = 0;
}

static void worker_gone(struct master *m, pid_t pid, int status)
{
	struct worker_process **at = &m->workers;
	struct worker_process *p;

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	p = *at;
	if (!p)
		return;
	*at = p->next;
	if (!p->retired || status) {
		if (WIFSIGNALED(status))
			log_line(LOG_ERROR, "worker %d was ended by signal %d", pid, WTERMSIG(status));
		else
			log_line(LOG_ERROR, "worker %d has ended, exit code %d", pid, WEXITSTATUS(status));
	}
	if (!p->retired) {
		if (now_ms() - p->born < LIFE_MS)
			hold_back(m);
		else
			m->delay = 0;
	}
	close(p->channel);
	free(p);
}

/* Events. */

static void master_reload(struct master *m)
{
	char why[CONFIG_WHY_SIZE];
	char text[80];
	struct policies *policies;
	struct config *config;
	struct rights_user user;
	int err;

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)now_ms() * 1000);
	notify_say(text);
	err = config_load(&config, m->file, why);
	if (!err) {
		err = policies_new(&policies, config, why);
		if (!err && rights_user(&user, config->user)) {
			snprintf(why, sizeof(why), "there is no user '%s'", config->user);
			policies_free(policies);
			err = -EINVAL;
		}
		if (err)
			config_free(config);
	}
	if (err) {
		log_line(LOG_ERROR, "%s: %s: the configuration stays as it was", m->file, why);
		notify_say("READY=1");
		return;
	}
	policies_free(m->policies);
	config_free(m->config);
	m->config = config;
	m->policies = policies;
	m->user = user;
	log_line(LOG_NOTICE, "reloaded %s", m->file);
	master_renew(m);
}

static void master_stop(struct master *m)
{
	for (struct worker_process *p = m->workers; p; p = p->next) {
		if (m->stopping)
			kill(p->pid, SIGKILL);
		worker_retire(p);
	}
	if (!m->stopping)
		notify_say("STOPPING=1");
	m->stopping = true;
}

static void master_children(struct master *m)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		worker_gone(m, pid, status);
}

static void master_signal(struct master *m)
{
	struct signalfd_siginfo info;

	while (read(m->signals, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGCHLD:
			master_children(m);
			break;
		case SIGHUP:
			if (!m->stopping)
				master_reload(m);
			break;
		default:
			master_stop(m);
		}
	}
}

/* A family came or went: was it ours? */
static void master_family(struct master *m)
{
	struct genl_family family;
	int err;

	genl_drain(m->watch);
	err = genl_family(m->genl, &family);
	if (err) {
		if (m->have_family)
			log_line(LOG_NOTICE, "the kernel module qrdma is gone");
		m->have_family = false;
		return;
	}
	if (m->have_family && family.id == m->family.id && family.group == m->family.group)
		return;
	m->have_family = true;
	m->family = family;
	host_key_give(m);
	master_renew(m);
}

/* Has a worker said that it is ready? Its end is told by SIGCHLD. */
static void master_channel(struct worker_process *p)
{
	char c;

	if (recv(p->channel, &c, 1, MSG_DONTWAIT) == 1)
		p->ready = c == WORKER_READY;
}

static int master_timeout(const struct master *m)
{
	int64_t left = m->due - now_ms();

	if (m->stopping || !m->have_family || !m->delay || left < 0)
		return -1;
	return left + 1;
}

static int master_loop(struct master *m)
{
	/* two generations and more: who is not polled now is so later */
	struct pollfd fds[2 + 4 * CONFIG_WORKERS_MAX];
	struct worker_process *of[2 + 4 * CONFIG_WORKERS_MAX];
	size_t n;

	for (;;) {
		master_settle(m);
		if (m->stopping && !m->workers)
			return 0;
		fds[0] = (struct pollfd){ .fd = m->signals, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = m->watch, .events = POLLIN };
		n = 2;
		for (struct worker_process *p = m->workers; p && n < sizeof(fds) / sizeof(fds[0]); p = p->next) {
			if (p->ready || p->retired)
				continue;
			of[n] = p;
			fds[n++] = (struct pollfd){ .fd = p->channel, .events = POLLIN };
		}
		if (poll(fds, n, master_timeout(m)) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		for (size_t i = 2; i < n; i++)
			if (fds[i].revents & POLLIN)
				master_channel(of[i]);
		if (fds[1].revents)
			master_family(m);
		if (fds[0].revents)
			master_signal(m);
	}
}

static int master_start(struct master *m)
{
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	m->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (m->signals < 0)
		return -errno;
	err = genl_open(&m->genl);
	if (err)
		return err;
	/* before the first look: what comes in between is told */
	m->watch = genl_watch();
	return m->watch < 0 ? m->watch : 0;
}

int master_run(const char *file, struct config *config, struct policies *policies)
{
	struct master m = {
		.file = file,
		.config = config,
		.policies = policies,
		.watch = -1,
		.signals = -1,
	};
	int err;

	if (rights_user(&m.user, config->user)) {
		log_line(LOG_ERROR, "there is no user '%s'", config->user);
		err = -ENOENT;
	} else {
		err = master_start(&m);
		if (!err) {
			family_look(&m);
			host_key_give(&m);
			/* nothing will be ready before the module is there: that is no reason to hold up a start */
			if (!m.have_family)
				notify_say("READY=1\nSTATUS=waiting for the kernel module");
			err = master_loop(&m);
		}
		if (err)
			log_line(LOG_ERROR, "%s", strerror(-err));
	}
	genl_close(m.genl);
	if (m.watch >= 0)
		close(m.watch);
	if (m.signals >= 0)
		close(m.signals);
	policies_free(m.policies);
	config_free(m.config);
	return err ? 1 : 0;
}
