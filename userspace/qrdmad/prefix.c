// SPDX-License-Identifier: GPL-2.0
/* See prefix.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "prefix.h"

#define V4_OFFSET	96	/* bits before the address in an IPv4-mapped one */

static bool mapped(const struct in6_addr *addr)
{
	return IN6_IS_ADDR_V4MAPPED(addr);
}

static void map(struct in6_addr *out, const struct in_addr *in)
{
	memset(out, 0, sizeof(*out));
	out->s6_addr[10] = 0xff;
	out->s6_addr[11] = 0xff;
	memcpy(out->s6_addr + 12, in, sizeof(*in));
}

static bool bits_equal(const struct in6_addr *a, const struct in6_addr *b, unsigned int len)
{
	unsigned int bytes = len / 8;
	unsigned int rest = len % 8;

	if (memcmp(a, b, bytes))
		return false;
	return !rest || !((a->s6_addr[bytes] ^ b->s6_addr[bytes]) >> (8 - rest));
}

/* Decimal digits up to @max; -1: anything else. */
static int number(const char *text, int max)
{
	int n = 0;

	if (!*text || strlen(text) > 3)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		n = 10 * n + *text - '0';
	}
	return n > max ? -1 : n;
}

static int bad(const char **why, const char *text)
{
	*why = text;
	return -EINVAL;
}

int prefix_parse(struct prefix *prefix, const char *text, const char **why)
{
	char addr[INET6_ADDRSTRLEN];
	struct in6_addr cut = IN6ADDR_ANY_INIT;
	struct in_addr in;
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	int offset = 0;
	int len;

	if (!n || n >= sizeof(addr))
		return bad(why, "not an address");
	memcpy(addr, text, n);
	addr[n] = '\0';
	if (inet_pton(AF_INET, addr, &in) == 1) {
		map(&prefix->addr, &in);
		offset = V4_OFFSET;
	} else if (inet_pton(AF_INET6, addr, &prefix->addr) != 1) {
		return bad(why, "not an address (names are not looked up)");
	}
	len = slash ? number(slash + 1, 128 - offset) : 128 - offset;
	if (len < 0)
		return bad(why, "the length of the prefix is out of range");
	prefix->len = len + offset;
	for (unsigned int i = 0; i < prefix->len / 8; i++)
		cut.s6_addr[i] = prefix->addr.s6_addr[i];
	if (prefix->len % 8)
		cut.s6_addr[prefix->len / 8] = prefix->addr.s6_addr[prefix->len / 8] & (0xff00 >> prefix->len % 8);
	if (memcmp(&cut, &prefix->addr, sizeof(cut)))
		return bad(why, "there are bits behind the length of the prefix");
	return 0;
}

void prefix_print(const struct prefix *prefix, char text[PREFIX_TEXT])
{
	bool v4 = mapped(&prefix->addr) && prefix->len >= V4_OFFSET;
	char addr[INET6_ADDRSTRLEN];

	if (v4)
		inet_ntop(AF_INET, prefix->addr.s6_addr + 12, addr, sizeof(addr));
	else
		inet_ntop(AF_INET6, &prefix->addr, addr, sizeof(addr));
	snprintf(text, PREFIX_TEXT, "%s/%u", addr, prefix->len - (v4 ? V4_OFFSET : 0));
}

bool prefix_equal(const struct prefix *a, const struct prefix *b)
{
	return a->len == b->len && !memcmp(&a->addr, &b->addr, sizeof(a->addr));
}

bool prefix_match(const struct prefix *prefix, const struct in6_addr *addr)
{
	return bits_equal(&prefix->addr, addr, prefix->len);
}

int address_of(const struct sockaddr *sa, struct in6_addr *addr, unsigned int *port)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

	switch (sa->sa_family) {
	case AF_INET:
		map(addr, &in->sin_addr);
		*port = ntohs(in->sin_port);
		return 0;
	case AF_INET6:
		*addr = in6->sin6_addr;
		*port = ntohs(in6->sin6_port);
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}

void address_print(const struct in6_addr *addr, char text[INET6_ADDRSTRLEN])
{
	if (mapped(addr))
		inet_ntop(AF_INET, addr->s6_addr + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, addr, text, INET6_ADDRSTRLEN);
}
