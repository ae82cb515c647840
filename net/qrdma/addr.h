/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Socket addresses: what the application says, and whether this host may use it.
 *
 * Owns: nothing, these are values. Called by: the socket layer and the port table, process
 * context, no lock.
 */
#ifndef QRDMA_ADDR_H
#define QRDMA_ADDR_H

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/types.h>

struct net;

/** union qrdma_addr - an IPv4 or IPv6 address with its port, in the form that applications use */
union qrdma_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static inline u16 qrdma_addr_port(const union qrdma_addr *addr)
{
	return ntohs(addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_port : addr->in.sin_port);
}

static inline void qrdma_addr_set_port(union qrdma_addr *addr, u16 port)
{
	if (addr->sa.sa_family == AF_INET6)
		addr->in6.sin6_port = htons(port);
	else
		addr->in.sin_port = htons(port);
}

static inline int qrdma_addr_len(const union qrdma_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? sizeof(addr->in6) : sizeof(addr->in);
}

/**
 * qrdma_addr_from_user() - take over an address that came through bind() or connect()
 * @addr: result, without stray bytes
 * @ipv6: the socket is one of IPv6
 * @sa: the address, in kernel memory
 * @len: bytes of it that the application gave
 *
 * Return: 0, -EINVAL: too short, -EAFNOSUPPORT: of another family than the socket.
 */
int qrdma_addr_from_user(union qrdma_addr *addr, bool ipv6, const struct sockaddr *sa, int len);

/** qrdma_addr_any() - the wildcard of a family, port 0 */
void qrdma_addr_any(union qrdma_addr *addr, bool ipv6);

/** qrdma_addr_is_any() - true for 0.0.0.0, :: and ::ffff:0.0.0.0 */
bool qrdma_addr_is_any(const union qrdma_addr *addr);

/** qrdma_addr_is_multicast() - true for multicast addresses and the IPv4 broadcast address */
bool qrdma_addr_is_multicast(const union qrdma_addr *addr);

/** qrdma_addr_to_in6() - the address alone as IPv6, IPv4 mapped */
void qrdma_addr_to_in6(const union qrdma_addr *addr, struct in6_addr *in6);

/**
 * qrdma_addr_from_in6() - the mirror
 * @addr: result
 * @in6: address, IPv4 mapped
 * @port: port
 * @ifindex: interface, told for a link-local address
 * @ipv6: the form that an IPv6 socket shows: IPv4 stays mapped; else @in6 is of IPv4
 */
void qrdma_addr_from_in6(union qrdma_addr *addr, const struct in6_addr *in6, u16 port, int ifindex,
			 bool ipv6);

/**
 * qrdma_addr_unmap() - the form that address resolution wants: ::ffff:a.b.c.d becomes a.b.c.d
 * @to: result
 * @from: any address
 */
void qrdma_addr_unmap(union qrdma_addr *to, const union qrdma_addr *from);

/**
 * qrdma_addr_check_local() - may a socket be bound here?
 * @net: network namespace
 * @addr: wildcard or address
 * @ifindex: interface that the socket is bound to, 0: none
 * @scope: result, the interface that a link-local address names, 0 otherwise
 *
 * Return: 0, -EADDRNOTAVAIL: not an address of this host, -EINVAL: link-local without interface,
 * or another one than
 * @ifindex, -ENODEV: no such interface.
 */
int qrdma_addr_check_local(struct net *net, const union qrdma_addr *addr, int ifindex, int *scope);

#endif /* QRDMA_ADDR_H */
