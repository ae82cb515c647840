// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

/* Far beyond anything that works; the runner's own limit comes first or soon after. */
#define PATIENCE_NS	(240ULL * 1000000000)

static void die(const char *what, const char *name)
{
	printf("Bail out! %s: %s\n", what, name);
	fflush(stdout);
	exit(1);
}

bool env_short(void)
{
	const char *text = getenv("QRDMA_SHORT");

	return text && *text;
}

long env_number(const char *name, long dflt, long shortened)
{
	const char *text = getenv(name);

	if (text && *text)
		return strtol(text, NULL, 0);
	return env_short() ? shortened : dflt;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

bool wait_for(bool (*true_now)(void *arg), void *arg)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	uint64_t end = now_ns() + PATIENCE_NS;

	while (!true_now(arg)) {
		if (now_ns() > end)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* The file as a string, which the caller frees; NULL: there is none. */
static char *slurp(const char *path)
{
	size_t len = 0, room = 65536;
	char *text = malloc(room);
	FILE *file = fopen(path, "r");
	size_t n;

	if (!file || !text) {
		free(text);
		if (file)
			fclose(file);
		return NULL;
	}
	while ((n = fread(text + len, 1, room - len - 1, file)) > 0) {
		len += n;
		if (room - len < 4096) {
			room *= 2;
			text = realloc(text, room);
			if (!text)
				die("memory", path);
		}
	}
	text[len] = '\0';
	fclose(file);
	return text;
}

/* The number behind the word @name in @text up to @end; -1: no such word. */
static int64_t number_behind(const char *text, const char *end, const char *name)
{
	size_t len = strlen(name);
	const char *at = text;

	while ((at = strstr(at, name)) && at < end) {
		if ((at == text || isspace(at[-1])) && at[len] == ' ')
			return strtoll(at + len, NULL, 0);
		at += len;
	}
	return -1;
}

uint64_t stat_of(const char *name)
{
	char *text = slurp("/proc/net/qrdma");
	int64_t number;

	if (!text)
		die("cannot read", "/proc/net/qrdma");
	number = number_behind(text, text + strlen(text), name);
	free(text);
	if (number < 0)
		die("no such counter in /proc/net/qrdma", name);
	return number;
}

bool stat_is(void *arg)
{
	struct stat_is *is = arg;

	return stat_of(is->name) >= is->want;
}

/* The number @name, summed over the lanes of a port, or of the lane @qpn, or with @head its own */
static int64_t port_sum(const char *port, const char *name, uint32_t qpn, bool head)
{
	int64_t sum = 0, part = -1;
	char path[128], *text;
	const char *at, *next;

	snprintf(path, sizeof(path), "/sys/kernel/debug/qrdma/%s", port);
	text = slurp(path);
	if (!text)
		return -1;
	at = text;
	next = strstr(text, "\nlane ");
	if (head) {
		part = number_behind(text, next ?: text + strlen(text), name);
		sum = part;
		next = NULL;
	}
	while (next) {
		at = next + 1;
		next = strstr(at, "\nlane ");
		if (qpn && number_behind(at, at + strlen(at), "qpn") != (int64_t)qpn)
			continue;
		part = number_behind(at, next ?: at + strlen(at), name);
		sum += part;
	}
	free(text);
	if (part < 0)
		die("no such number in debugfs", name);
	return sum;
}

int64_t port_number(const char *port, const char *name)
{
	return port_sum(port, name, 0, true);
}

int64_t lanes_number(const char *port, const char *name)
{
	return port_sum(port, name, 0, false);
}

int64_t lane_number(const char *port, uint32_t qpn, const char *name)
{
	return port_sum(port, name, qpn, false);
}

struct qrdma_info info_of(int fd)
{
	struct qrdma_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (getsockopt(fd, SOL_QRDMA, QRDMA_INFO, &info, &len))
		die("QRDMA_INFO", strerror(errno));
	return info;
}

int so_error(int fd)
{
	socklen_t len = sizeof(int);
	int err;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		die("SO_ERROR", strerror(errno));
	return err;
}

uint32_t reason_of(int fd, uint64_t *code)
{
	struct qrdma_connection_close close;
	socklen_t len = sizeof(close);

	if (getsockopt(fd, SOL_QRDMA, QRDMA_CONNECTION_CLOSE, &close, &len))
		die("QRDMA_CONNECTION_CLOSE", strerror(errno));
	if (code)
		*code = close.code;
	return close.reason;
}

int ready(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) < 0 ? -1 : p.revents;
}

void slab_take(struct slab_shot *shot)
{
	char *text = slurp("/proc/slabinfo"), *line, *save;

	if (!text)
		die("cannot read", "/proc/slabinfo");
	shot->n = 0;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned long long active, total, slabs;
		unsigned int size, pages;
		char name[48];

		if (sscanf(line,
			   "%47s %llu %llu %u %*u %u : tunables %*u %*u %*u : slabdata %*u %llu",
			   name, &active, &total, &size, &pages, &slabs) != 6)
			continue;
		if (shot->n == sizeof(shot->cache) / sizeof(shot->cache[0]))
			die("more slab caches than room for them", name);
		strcpy(shot->cache[shot->n].name, name);
		shot->cache[shot->n].objects = active;
		shot->cache[shot->n].size = size;
		shot->cache[shot->n++].bytes = slabs * pages * sysconf(_SC_PAGESIZE);
	}
	free(text);
}

int64_t slab_objects(const char *cache)
{
	struct slab_shot shot;
	size_t i;

	slab_take(&shot);
	for (i = 0; i < shot.n; i++) {
		if (!strcmp(shot.cache[i].name, cache))
			return shot.cache[i].objects;
	}
	return -1;
}

int64_t slab_growth(const struct slab_shot *before, const struct slab_shot *now, char name[48])
{
	int64_t most = INT64_MIN, growth;
	size_t i, k;

	for (i = 0; i < now->n; i++) {
		growth = now->cache[i].objects;
		for (k = 0; k < before->n; k++) {
			if (!strcmp(now->cache[i].name, before->cache[k].name))
				growth -= before->cache[k].objects;
		}
		if (growth > most) {
			most = growth;
			strcpy(name, now->cache[i].name);
		}
	}
	return most;
}

int64_t meminfo(const char *name)
{
	char *text = slurp("/proc/meminfo"), want[40];
	int64_t number;

	if (!text)
		die("cannot read", "/proc/meminfo");
	snprintf(want, sizeof(want), "%s:", name);
	number = number_behind(text, text + strlen(text), want);
	free(text);
	if (number < 0)
		die("not in /proc/meminfo", name);
	return number;
}

static void shell_words(char *out, size_t room, const char *fmt, va_list args)
{
	int n = snprintf(out, room, ". \"$QRDMA_REPO/tests/vm/guest/lib.sh\"; ");

	vsnprintf(out + n, room - n, fmt, args);
}

int shell(const char *fmt, ...)
{
	char words[2048];
	va_list args;
	int status;

	va_start(args, fmt);
	shell_words(words, sizeof(words), fmt, args);
	va_end(args);
	fflush(stdout);
	status = system(words);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const char *shell_line(const char *fmt, ...)
{
	static char line[4096];
	char words[2048];
	va_list args;
	FILE *pipe;

	va_start(args, fmt);
	shell_words(words, sizeof(words), fmt, args);
	va_end(args);
	fflush(stdout);
	pipe = popen(words, "r");
	if (!pipe || !fgets(line, sizeof(line), pipe))
		line[0] = '\0';
	if (pipe && pclose(pipe))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return line;
}
