/* SPDX-License-Identifier: GPL-2.0 */
/*
 * qbench: one measurement. Two processes are the two hosts: side a is the client and sends, side b
 * is the server and receives; with more than one CPU each has its own.
 *
 * A system is a carrier (how bytes go), and what makes them secret on top of it. The programs of
 * both sides are the same for all systems.
 */
#ifndef QRDMA_BENCH_H
#define QRDMA_BENCH_H

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum side { SIDE_A, SIDE_B };

enum secrecy { CLEAR, TLS_USER, TLS_KERNEL, OF_CARRIER };

struct options {
	const char *system;
	const char *work;
	unsigned int number;	/* of the measurement: for the marks */
	size_t size;		/* bytes of one write, or message */
	uint64_t total;		/* bytes to move */
	uint32_t count;		/* round trips, or connections */
	uint32_t conns;		/* connections at a time */
	uint32_t cipher;	/* QRDMA_CIPHER_* */
	bool handshake;		/* AF_QRDMA: by libqrdma, not with keys that are known */
	bool pin;		/* each side to its CPU, if there are two */
};

/* One end of a connection */
struct conn {
	enum side side;
	unsigned int index;	/* which one of the run */
	int fd;
	gnutls_session_t tls;	/* NULL: no TLS in userspace */
};

/*
 * How bytes go. Calls end the program when they fail.
 * prepare: once, before the processes part; start: once on each side, then.
 * send takes it all; recv gives what is there, at least a byte, 0 at the end.
 */
struct carrier {
	void (*prepare)(void);
	void (*start)(enum side side);
	void (*open)(struct conn *c);
	void (*send)(struct conn *c, const void *data, size_t len);
	size_t (*recv)(struct conn *c, void *data, size_t len);
	void (*close)(struct conn *c);
};

struct system {
	const char *name;
	const struct carrier *carrier;
	enum secrecy secrecy;
};

extern struct options opt;
extern const struct carrier carrier_tcp, carrier_rsocket, carrier_qrdma;

void die(const char *what, int err) __attribute__((noreturn));

/* Both sides come to a point; then both go on. */
void meet(void);
/* A word to the other side, and waiting for one */
void tell(void);
void hear(void);
/* Bytes over the same way, outside of measurements */
void tell_bytes(const void *data, size_t len);
void hear_bytes(void *data, size_t len);

/* A system's connections: what the works call (secure.c) */
const struct system *system_find(const char *name);
void conn_open(const struct system *s, struct conn *c, enum side side, unsigned int index);
void conn_send(const struct system *s, struct conn *c, const void *data, size_t len);
size_t conn_recv(const struct system *s, struct conn *c, void *data, size_t len);
void conn_recv_all(const struct system *s, struct conn *c, void *data, size_t len);
void conn_close(const struct system *s, struct conn *c);

/*
 * The measured time: side a calls these around the work, when side b has nothing else to do. The
 * result is a line of JSON.
 */
void measure_begin(void);
void measure_end(void);
uint64_t now_ns(void);
void result_number(const char *name, double value);
void result_print(void);

/* Works (work.c, verbs.c): run by both sides */
void work_stream(const struct system *s, enum side side);
void work_echo(const struct system *s, enum side side);
void work_setup(const struct system *s, enum side side);
void work_raw(bool rc, enum side side);

#endif
