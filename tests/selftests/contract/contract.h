/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The contract: scenes of socket calls, each played over TCP and over AF_QRDMA with nothing but the family in
 * socket() changed. What a scene says is compared line by line (test_contract.c); a line is a row of the contract.
 *
 * A scene is a function that runs in a process of its own. It says results by a label that is unique in it; labels
 * have no blanks.
 */
#ifndef QRDMA_TEST_CONTRACT_H
#define QRDMA_TEST_CONTRACT_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ends.h"

struct scene {
	const char *name;
	void (*fn)(void);
	struct scene *next;
};

void scene_register(struct scene *scene);

#define SCENE(n)								\
	static void scene_##n(void);						\
	static struct scene record_##n = { #n, scene_##n, NULL };		\
	__attribute__((constructor)) static void register_##n(void)		\
	{									\
		scene_register(&record_##n);					\
	}									\
	static void scene_##n(void)

/* Which family is on stage */
extern bool stage_qrdma, stage_six;

/* What a call returned: "0", a number, or the name of its errno */
void say(const char *label, long long ret);
/* The same, for a call that returns 0 or -errno */
void say_err(const char *label, int err);
void say_bits(const char *label, int revents);
void say_text(const char *label, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What is not part of the contract went wrong: the scene ends. */
void give_up(const char *why) __attribute__((noreturn));

/* socket() of the family on stage, or of the other kind of address */
int open_socket(int flags);
int open_socket_of(bool six, int flags);
/* bind() to host a or b, or to the wildcard ('*') */
int bind_to(int fd, char host, int port);
int connect_to(int fd, char host, int port);
int port_of(int fd);
/* A listener on host b */
int open_listener(int backlog);

struct ends {
	int listener;
	int client;	/* on host a */
	int server;	/* accepted on host b */
};

/* A connected pair; ends the scene when there is none. */
struct ends join(void);

int error_of(int fd);
void non_blocking(int fd);
/* All bits of poll(), now */
int bits(int fd);
/* The same, once all of @want are there, or after seconds */
int bits_until(int fd, int want);
/* Bytes that can be read, once there are @n */
int readable_until(int fd, int n);
/* Writes until nothing more is taken (non-blocking); bytes. */
long fill(int fd);

#endif
