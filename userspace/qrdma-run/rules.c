// SPDX-License-Identifier: GPL-2.0
/*
 * Rules by address and port. See rules.h. Called by: qrdma-run, to check what it was told; the preload, once to parse
 * and then in any thread to decide.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "rules.h"

#define SPEC_MAX	128

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

/* Decimal without sign; -1: it is none, or more than @most. */
static long parse_number(const char *text, long most)
{
	char *end;
	long n;

	if (*text < '0' || *text > '9')
		return -1;
	n = strtol(text, &end, 10);
	return *end || n > most ? -1 : n;
}

static int rule_ports(struct run_rule *rule, char *text)
{
	char *dash = strchr(text, '-');
	long low, high;

	if (dash)
		*dash = '\0';
	low = parse_number(text, 65535);
	high = dash ? parse_number(dash + 1, 65535) : low;
	if (low < 1 || high < low)
		return -1;
	rule->low = low;
	rule->high = high;
	return 0;
}

static int rule_net(struct run_rule *rule, char *text)
{
	char *slash = strchr(text, '/');
	long bits, most = 128;

	if (!*text || !strcmp(text, "*"))
		return 0;
	if (slash)
		*slash = '\0';
	if (inet_pton(AF_INET, text, rule->net + 12) == 1) {
		memcpy(rule->net, mapped, sizeof(mapped));
		most = 32;
	} else if (inet_pton(AF_INET6, text, rule->net) != 1) {
		return -1;
	}
	bits = slash ? parse_number(slash + 1, most) : most;
	if (bits < 0)
		return -1;
	rule->bits = bits + 128 - most;
	return 0;
}

int run_rule_parse(struct run_rule *rule, const char *spec, bool take)
{
	char text[SPEC_MAX], *net = text, *ports = NULL, *end;

	memset(rule, 0, sizeof(*rule));
	rule->take = take;
	if (!*spec || strlen(spec) >= sizeof(text))
		return -1;
	strcpy(text, spec);
	if (*text == '[') {
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return -1;
		*end = '\0';
		net = text + 1;
		if (end[1])
			ports = end + 2;
	} else {
		end = strchr(text, ':');
		/* With a second one it is an address of IPv6. */
		if (end && !strchr(end + 1, ':')) {
			*end = '\0';
			ports = end + 1;
		}
	}
	if (rule_net(rule, net) || (ports && rule_ports(rule, ports)))
		return -1;
	return 0;
}

static int rules_add(struct run_rules *rules, const char *spec, bool take)
{
	if (rules->n == RUN_RULES_MAX || run_rule_parse(&rules->rule[rules->n], spec, take))
		return -1;
	rules->n++;
	rules->named |= take;
	return 0;
}

static int rules_stderr(struct run_rules *rules, const char *text)
{
	char *end;

	rules->err_dev = strtoull(text, &end, 10);
	if (*end != ':')
		return -1;
	rules->err_ino = strtoull(end + 1, &end, 10);
	return *end ? -1 : 0;
}

static int rules_word(struct run_rules *rules, const char *word)
{
	if (!strncmp(word, "take=", 5))
		return rules_add(rules, word + 5, true);
	if (!strncmp(word, "leave=", 6))
		return rules_add(rules, word + 6, false);
	if (!strncmp(word, "stderr=", 7))
		return rules_stderr(rules, word + 7);
	if (!strcmp(word, "loopback"))
		rules->loopback = true;
	else if (!strcmp(word, "fallback=tcp"))
		rules->fallback = true;
	else if (!strcmp(word, "verbose"))
		rules->verbose = true;
	else
		return -1;
	return 0;
}

int run_rules_parse(struct run_rules *rules, const char *text)
{
	char word[SPEC_MAX + 8];
	size_t len;

	memset(rules, 0, sizeof(*rules));
	if (strlen(text) >= RUN_TEXT_MAX)
		return -1;
	while (*text) {
		if (!strncmp(text, "log=", 4)) {
			/* A name of a file may hold blanks. */
			if (strlen(text + 4) >= sizeof(rules->log) || text[4] != '/')
				return -1;
			strcpy(rules->log, text + 4);
			return 0;
		}
		len = strcspn(text, " ");
		if (len >= sizeof(word))
			return -1;
		memcpy(word, text, len);
		word[len] = '\0';
		if (len && rules_word(rules, word))
			return -1;
		text += len + (text[len] == ' ');
	}
	return 0;
}

/* An address of either family as one of IPv6; the port in host order. */
static uint16_t addr_unify(uint8_t to[16], const struct sockaddr *addr)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (addr->sa_family == AF_INET6) {
		memcpy(&in6, addr, sizeof(in6));
		memcpy(to, &in6.sin6_addr, 16);
		return ntohs(in6.sin6_port);
	}
	memcpy(&in, addr, sizeof(in));
	memcpy(to, mapped, sizeof(mapped));
	memcpy(to + 12, &in.sin_addr, 4);
	return ntohs(in.sin_port);
}

static bool is_mapped(const uint8_t a[16])
{
	return !memcmp(a, mapped, sizeof(mapped));
}

static bool is_any(const uint8_t a[16])
{
	static const uint8_t zero[16];

	return !memcmp(a, zero, 16) || (is_mapped(a) && !memcmp(a + 12, zero, 4));
}

static bool is_loopback(const uint8_t a[16])
{
	static const uint8_t one[16] = { [15] = 1 };

	return !memcmp(a, one, 16) || (is_mapped(a) && a[12] == 127);
}

static bool rule_matches(const struct run_rule *rule, const uint8_t a[16], uint16_t port)
{
	unsigned int whole = rule->bits / 8, rest = rule->bits % 8;

	if (rule->low && (port < rule->low || port > rule->high))
		return false;
	if (memcmp(a, rule->net, whole))
		return false;
	return !rest || !((a[whole] ^ rule->net[whole]) & (uint8_t)(0xff << (8 - rest)));
}

static bool rules_take(const struct run_rules *rules, const uint8_t a[16], uint16_t port)
{
	size_t i;

	for (i = 0; i < rules->n; i++) {
		if (rule_matches(&rules->rule[i], a, port))
			return rules->rule[i].take;
	}
	if (is_loopback(a) && !rules->loopback)
		return false;
	return !rules->named;
}

bool run_rules_take_bind(const struct run_rules *rules, const struct sockaddr *addr)
{
	uint16_t port;
	uint8_t a[16];

	port = addr_unify(a, addr);
	/* Most likely the own end of a connection: connect() names the other one, and decides. */
	if (!port)
		return rules->loopback || !is_loopback(a);
	return rules_take(rules, a, port);
}

bool run_rules_take_connect(const struct run_rules *rules, const struct sockaddr *addr)
{
	uint16_t port;
	uint8_t a[16];

	port = addr_unify(a, addr);
	/* To connect to the wildcard is to connect to this host. */
	if (is_any(a)) {
		memcpy(a, mapped, sizeof(mapped));
		memcpy(a + 12, "\x7f\0\0\1", 4);
	}
	return rules_take(rules, a, port);
}
