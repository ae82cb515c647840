// SPDX-License-Identifier: GPL-2.0
/*
 * Socket addresses: what the application says, and whether this host may use it. See addr.h.
 */
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "addr.h"

int qrdma_addr_from_user(union qrdma_addr *addr, bool ipv6, const struct sockaddr *sa, int len)
{
	memset(addr, 0, sizeof(*addr));
	/* The scope id came later than the rest: RFC 2133 programs leave it out. */
	if (len < (ipv6 ? SIN6_LEN_RFC2133 : (int)sizeof(addr->in)))
		return -EINVAL;
	if (sa->sa_family != (ipv6 ? AF_INET6 : AF_INET))
		return -EAFNOSUPPORT;
	if (ipv6) {
		memcpy(&addr->in6, sa, min_t(int, len, sizeof(addr->in6)));
		addr->in6.sin6_flowinfo = 0;
		return 0;
	}
	addr->in.sin_family = AF_INET;
	addr->in.sin_port = ((const struct sockaddr_in *)sa)->sin_port;
	addr->in.sin_addr = ((const struct sockaddr_in *)sa)->sin_addr;
	return 0;
}

void qrdma_addr_any(union qrdma_addr *addr, bool ipv6)
{
	memset(addr, 0, sizeof(*addr));
	addr->sa.sa_family = ipv6 ? AF_INET6 : AF_INET;
}

bool qrdma_addr_is_any(const union qrdma_addr *addr)
{
	union qrdma_addr plain;

	qrdma_addr_unmap(&plain, addr);
	if (plain.sa.sa_family == AF_INET6)
		return ipv6_addr_any(&plain.in6.sin6_addr);
	return plain.in.sin_addr.s_addr == htonl(INADDR_ANY);
}

bool qrdma_addr_is_multicast(const union qrdma_addr *addr)
{
	union qrdma_addr plain;

	qrdma_addr_unmap(&plain, addr);
	if (plain.sa.sa_family == AF_INET6)
		return ipv6_addr_is_multicast(&plain.in6.sin6_addr);
	return ipv4_is_multicast(plain.in.sin_addr.s_addr) ||
	       ipv4_is_lbcast(plain.in.sin_addr.s_addr);
}

void qrdma_addr_to_in6(const union qrdma_addr *addr, struct in6_addr *in6)
{
	if (addr->sa.sa_family == AF_INET6)
		*in6 = addr->in6.sin6_addr;
	else
		ipv6_addr_set_v4mapped(addr->in.sin_addr.s_addr, in6);
}

void qrdma_addr_unmap(union qrdma_addr *to, const union qrdma_addr *from)
{
	__be16 port;
	__be32 ip;

	if (from->sa.sa_family != AF_INET6 || !ipv6_addr_v4mapped(&from->in6.sin6_addr)) {
		*to = *from;
		return;
	}
	port = from->in6.sin6_port;
	ip = from->in6.sin6_addr.s6_addr32[3];
	memset(to, 0, sizeof(*to));
	to->in.sin_family = AF_INET;
	to->in.sin_port = port;
	to->in.sin_addr.s_addr = ip;
}

void qrdma_addr_from_in6(union qrdma_addr *addr, const struct in6_addr *in6, u16 port, int ifindex,
			 bool ipv6)
{
	qrdma_addr_any(addr, ipv6);
	if (ipv6) {
		addr->in6.sin6_addr = *in6;
		if (ipv6_addr_type(in6) & IPV6_ADDR_LINKLOCAL)
			addr->in6.sin6_scope_id = ifindex;
	} else {
		addr->in.sin_addr.s_addr = in6->s6_addr32[3];
	}
	qrdma_addr_set_port(addr, port);
}

static int addr_check_local6(struct net *net, const struct sockaddr_in6 *in6, int ifindex,
			     int *scope)
{
#if IS_ENABLED(CONFIG_IPV6)
	const struct net_device *dev = NULL;
	int err = 0;

	if (__ipv6_addr_needs_scope_id(__ipv6_addr_type(&in6->sin6_addr))) {
		if (in6->sin6_scope_id) {
			if (ifindex && ifindex != (int)in6->sin6_scope_id)
				return -EINVAL;
			ifindex = in6->sin6_scope_id;
		}
		if (!ifindex)
			return -EINVAL;
		*scope = ifindex;
	}
	rcu_read_lock();
	if (ifindex) {
		dev = dev_get_by_index_rcu(net, ifindex);
		if (!dev)
			err = -ENODEV;
	}
	if (!err && !ipv6_chk_addr(net, &in6->sin6_addr, dev, 0))
		err = -EADDRNOTAVAIL;
	rcu_read_unlock();
	return err;
#else
	return -EADDRNOTAVAIL;
#endif
}

int qrdma_addr_check_local(struct net *net, const union qrdma_addr *addr, int ifindex, int *scope)
{
	union qrdma_addr plain;

	*scope = 0;
	if (qrdma_addr_is_any(addr))
		return 0;
	if (qrdma_addr_is_multicast(addr))
		return -EADDRNOTAVAIL;
	qrdma_addr_unmap(&plain, addr);
	if (plain.sa.sa_family == AF_INET6)
		return addr_check_local6(net, &plain.in6, ifindex, scope);
	if (inet_addr_type(net, plain.in.sin_addr.s_addr) != RTN_LOCAL)
		return -EADDRNOTAVAIL;
	return 0;
}
