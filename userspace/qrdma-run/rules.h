/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which sockets become AF_QRDMA ones: what qrdma-run was told, in one environment variable, and what the preload
 * decides by it. Plain data without locks or allocations, so that it may be read from any thread, signal handler or
 * child.
 */
#ifndef QRDMA_RUN_RULES_H
#define QRDMA_RUN_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define RUN_ENV		"QRDMA_RUN"
#define RUN_RULES_MAX	64
#define RUN_TEXT_MAX	8192
#define RUN_LOG_MAX	1024

/* The first rule that matches decides. */
struct run_rule {
	bool take;
	uint8_t bits;		/* of net that count */
	uint8_t net[16];	/* IPv4 as a mapped address */
	uint16_t low, high;	/* ports; low 0: any */
};

struct run_rules {
	bool loopback;		/* take loopback addresses too */
	bool fallback;		/* to TCP, where there is no AF_QRDMA */
	bool verbose;
	bool named;		/* there is a take rule: what no rule matches is left */
	uint64_t err_dev, err_ino;	/* what standard error was at the start; 0: unknown */
	char log[RUN_LOG_MAX];	/* file for messages, "": standard error */
	size_t n;
	struct run_rule rule[RUN_RULES_MAX];
};

/*
 * "ADDRESS", "ADDRESS/BITS", "ADDRESS:PORT", ":PORT-PORT", "[IPv6 ADDRESS/BITS]:PORT", with "*" for all addresses.
 * Return: 0, or -1: it is not one.
 */
int run_rule_parse(struct run_rule *rule, const char *spec, bool take);

/*
 * Words with a blank between: take=SPEC leave=SPEC loopback fallback=tcp verbose stderr=DEVICE:INODE, and as the last
 * one log=FILE. Return: 0, or -1: there is another word, or too much.
 */
int run_rules_parse(struct run_rules *rules, const char *text);

/*
 * Does a socket that is to be bound, or connected, to @addr belong to AF_QRDMA? @addr is a whole sockaddr_in or
 * sockaddr_in6.
 */
bool run_rules_take_bind(const struct run_rules *rules, const struct sockaddr *addr);
bool run_rules_take_connect(const struct run_rules *rules, const struct sockaddr *addr);

#endif
