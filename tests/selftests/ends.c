// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "ends.h"

uint64_t end_fresh_seed(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		abort();
	return seed | 1;
}

/* splitmix64: the bytes only have to differ */
static void fill(uint64_t seed, uint64_t what, uint8_t *out, size_t len)
{
	uint64_t x = seed ^ (what * 0x9e3779b97f4a7c15ULL);

	for (size_t i = 0; i < len; i++) {
		uint64_t z = (x += 0x9e3779b97f4a7c15ULL);

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
		out[i] = z ^ (z >> 31);
	}
}

void end_addr(union addr *addr, char host, bool ipv6, uint16_t port)
{
	const char *name = ipv6 ? (host == 'a' ? "QRDMA_A6" : "QRDMA_B6") :
				  (host == 'a' ? "QRDMA_A4" : "QRDMA_B4");
	const char *dflt = ipv6 ? (host == 'a' ? "fd09::1" : "fd09::2") :
				  (host == 'a' ? "10.9.0.1" : "10.9.0.2");
	const char *text = getenv(name) ?: dflt;

	memset(addr, 0, sizeof(*addr));
	if (ipv6) {
		addr->in6.sin6_family = AF_INET6;
		addr->in6.sin6_port = htons(port);
		inet_pton(AF_INET6, text, &addr->in6.sin6_addr);
	} else {
		addr->in.sin_family = AF_INET;
		addr->in.sin_port = htons(port);
		inet_pton(AF_INET, text, &addr->in.sin_addr);
	}
}

socklen_t end_addr_len(const union addr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? sizeof(addr->in6) : sizeof(addr->in);
}

int end_socket(const struct end_options *opt)
{
	int fd = socket(AF_QRDMA, SOCK_STREAM | opt->type_flags,
			opt->ipv6 ? QRDMA_PROTO_IPV6 : QRDMA_PROTO_IPV4);

	return fd < 0 ? -errno : fd;
}

static int set(int fd, int level, int name, const void *val, socklen_t len)
{
	return setsockopt(fd, level, name, val, len) ? -errno : 0;
}

/* The client's secret seals what the client sends. */
int end_secret(int fd, int role, int send, const struct end_options *opt)
{
	struct qrdma_crypto_secret s = {
		.send = send,
		.level = QRDMA_CRYPTO_APP,
		.type = opt->cipher ?: QRDMA_CIPHER_AES_GCM_128,
	};
	bool of_client = (role == QRDMA_ROLE_CLIENT) == !!send;

	fill(opt->seed, of_client ? 1 : 2, s.secret, s.type == QRDMA_CIPHER_AES_GCM_256 ? 48 : 32);
	return set(fd, SOL_QRDMA, QRDMA_CRYPTO_SECRET, &s, sizeof(s));
}

int end_ids(int fd, int role, const struct end_options *opt)
{
	struct qrdma_connection_ids ids = {
		.role = role,
		.source_len = QRDMA_CONNECTION_ID_LEN,
		.dest_len = QRDMA_CONNECTION_ID_LEN,
	};

	fill(opt->seed, role == QRDMA_ROLE_CLIENT ? 3 : 4, ids.source, ids.source_len);
	fill(opt->seed, role == QRDMA_ROLE_CLIENT ? 4 : 3, ids.dest, ids.dest_len);
	return set(fd, SOL_QRDMA, QRDMA_CONNECTION_ID, &ids, sizeof(ids));
}

int end_params(int fd, const struct end_options *opt)
{
	struct qrdma_transport_param p = {};
	socklen_t len = sizeof(p);
	int err;

	if (getsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &p, &len))
		return -errno;
	p.max_streams_bidi = 0;
	if (opt->max_data) {
		p.max_data = opt->max_data;
		p.max_stream_data_bidi_local = opt->max_data;
		p.max_stream_data_bidi_remote = opt->max_data;
	}
	if (opt->idle_us)
		p.max_idle_timeout = opt->idle_us;
	err = set(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &p, sizeof(p));
	if (!err && getsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &p, &len))
		err = -errno;
	if (err)
		return err;
	p.remote = 1;
	/* but that each has its own token, and that the server alone grants a stream */
	memset(p.stateless_reset_token, 0, sizeof(p.stateless_reset_token));
	p.max_streams_bidi = !p.max_streams_bidi;
	return set(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &p, sizeof(p));
}

int end_setup(int fd, int role, const struct end_options *opt)
{
	int err = end_ids(fd, role, opt);

	if (!err)
		err = end_params(fd, opt);
	if (!err)
		err = set(fd, SOL_QRDMA, QRDMA_CONFIG, &opt->config, sizeof(opt->config));
	if (!err && opt->sndbuf)
		err = set(fd, SOL_SOCKET, SO_SNDBUF, &opt->sndbuf, sizeof(opt->sndbuf));
	if (!err && opt->rcvbuf)
		err = set(fd, SOL_SOCKET, SO_RCVBUF, &opt->rcvbuf, sizeof(opt->rcvbuf));
	if (!err)
		err = end_secret(fd, role, 0, opt);
	if (!err)
		err = end_secret(fd, role, 1, opt);
	return err;
}

int end_bind(int fd, char host, bool ipv6, uint16_t port)
{
	union addr addr;

	end_addr(&addr, host, ipv6, port);
	return bind(fd, &addr.sa, end_addr_len(&addr)) ? -errno : 0;
}

int end_port(int fd)
{
	union addr addr;
	socklen_t len = sizeof(addr);

	if (getsockname(fd, &addr.sa, &len))
		return -errno;
	return ntohs(addr.sa.sa_family == AF_INET6 ? addr.in6.sin6_port : addr.in.sin_port);
}

int end_connect(int fd, char host, bool ipv6, uint16_t port)
{
	union addr addr;

	end_addr(&addr, host, ipv6, port);
	return connect(fd, &addr.sa, end_addr_len(&addr)) ? -errno : 0;
}

/* Till a connect() that said EINPROGRESS has ended. */
static int finish_connect(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err;

	if (poll(&p, 1, 60000) != 1)
		return -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	return -err;
}

static void close_pair(int fd[2])
{
	int i;

	for (i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

int end_pair_begin(int fd[2], const struct end_options *options)
{
	struct end_options opt = options ? *options : (struct end_options){};
	int i, err = 0;

	opt.type_flags |= SOCK_NONBLOCK;
	if (!opt.seed)
		opt.seed = end_fresh_seed();
	fd[0] = -1;
	fd[1] = -1;
	for (i = 0; i < 2 && !err; i++) {
		fd[i] = end_socket(&opt);
		err = fd[i] < 0 ? fd[i] : end_bind(fd[i], "ab"[i], opt.ipv6, 0);
		if (!err)
			err = end_setup(fd[i], i ? QRDMA_ROLE_SERVER : QRDMA_ROLE_CLIENT, &opt);
	}
	for (i = 0; i < 2 && !err; i++) {
		err = end_connect(fd[i], "ba"[i], opt.ipv6, end_port(fd[!i]));
		if (err == -EINPROGRESS)
			err = 0;
	}
	if (err)
		close_pair(fd);
	return err;
}

int end_pair_finish(int fd[2], const struct end_options *options)
{
	bool block = !options || !(options->type_flags & SOCK_NONBLOCK);
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++)
		err = finish_connect(fd[i]);
	for (i = 0; i < 2 && !err && block; i++) {
		if (fcntl(fd[i], F_SETFL, fcntl(fd[i], F_GETFL) & ~O_NONBLOCK))
			err = -errno;
	}
	if (err)
		close_pair(fd);
	return err;
}

int end_pair(int fd[2], const struct end_options *options)
{
	return end_pair_begin(fd, options) ?: end_pair_finish(fd, options);
}
