/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tests of faults look at and do besides sockets: counters of module and kernel, commands,
 * numbers of the environment.
 */
#ifndef QRDMA_TEST_PROBE_H
#define QRDMA_TEST_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/qrdma.h>

/* Number of the environment, else @dflt, or @shortened when QRDMA_SHORT is set. */
long env_number(const char *name, long dflt, long shortened);
bool env_short(void);

/* Counter of /proc/net/qrdma; a name that is not there ends the program. */
uint64_t stat_of(const char *name);

/*
 * Number behind the word @name in the module's debugfs file of a port ("rxe0:1"): of the port
 * itself, or the sum over its lanes. "peers" is a file too. -1: no such file.
 */
int64_t port_number(const char *port, const char *name);
int64_t lanes_number(const char *port, const char *name);

/* The same of the port's lane that has this queue pair */
int64_t lane_number(const char *port, uint32_t qpn, const char *name);

/* At least so much of a counter: for wait_for(). */
struct stat_is {
	const char *name;
	uint64_t want;
};

bool stat_is(void *arg);

/* QRDMA_INFO, SO_ERROR, QRDMA_CONNECTION_CLOSE (@code may be NULL); each ends the program when it cannot be had. */
struct qrdma_info info_of(int fd);
int so_error(int fd);
uint32_t reason_of(int fd, uint64_t *code);

/* What poll() says of a descriptor, -1: an error. */
int ready(int fd, int events, int ms);

/* Objects in use of a slab cache, -1: there is none. */
int64_t slab_objects(const char *cache);

/* A look at all slab caches */
struct slab_shot {
	struct {
		char name[48];
		uint64_t objects;
		uint32_t size;
		uint64_t bytes;		/* of its slabs, free objects in them included */
	} cache[400];
	size_t n;
};

void slab_take(struct slab_shot *shot);
/* Most objects that one cache has grown by since @before, and its name */
int64_t slab_growth(const struct slab_shot *before, const struct slab_shot *now, char name[48]);

/* kB of /proc/meminfo */
int64_t meminfo(const char *name);

/* Shell command; tests/vm/guest/lib.sh is sourced before. Return: its exit code. */
int shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* First line that it prints, static storage; "" when it fails. */
const char *shell_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Until @true_now says so: the caller names a state, not a time. Gives up after minutes (a test
 * that fails should say why), and then returns false.
 */
bool wait_for(bool (*true_now)(void *arg), void *arg);

uint64_t now_ns(void);

#endif
