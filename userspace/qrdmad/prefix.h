/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Addresses and prefixes of both families in one form: 128 bits, IPv4 as IPv4-mapped IPv6. No state.
 */
#ifndef QRDMAD_PREFIX_H
#define QRDMAD_PREFIX_H

#include <netinet/in.h>
#include <stdbool.h>

/* @len: of 128 bits; those behind it are zero */
struct prefix {
	struct in6_addr addr;
	unsigned int len;
};

#define PREFIX_TEXT	(INET6_ADDRSTRLEN + 4)

/*
 * "10.9.0.0/24", "fd09::/64", "10.9.0.1", "::ffff:10.9.0.0/120"; without a length it is one address. 0, or -EINVAL with
 * @why a static text.
 */
int prefix_parse(struct prefix *prefix, const char *text, const char **why);
/* The same in text; an IPv4 one as IPv4. */
void prefix_print(const struct prefix *prefix, char text[PREFIX_TEXT]);
bool prefix_equal(const struct prefix *a, const struct prefix *b);
bool prefix_match(const struct prefix *prefix, const struct in6_addr *addr);

/* Address and port (host order) of a sockaddr_in or sockaddr_in6; 0, or -EAFNOSUPPORT. */
int address_of(const struct sockaddr *sa, struct in6_addr *addr, unsigned int *port);
/* As the peer's certificate would carry it: an IPv4-mapped one as IPv4. */
void address_print(const struct in6_addr *addr, char text[INET6_ADDRSTRLEN]);

#endif /* QRDMAD_PREFIX_H */
