/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Both ends of an AF_QRDMA connection with keys made from a number: no TLS. For tests only:
 * whoever knows the number reads the traffic.
 */
#ifndef QRDMA_TEST_ENDS_H
#define QRDMA_TEST_ENDS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <linux/qrdma.h>

#ifndef SOL_IPV6
#define SOL_IPV6	41
#endif

union addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* What is special about an end; all zero is the usual thing. */
struct end_options {
	uint64_t seed;		/* keys and ids come out of it; 0: a new one for each pair */
	uint32_t cipher;	/* QRDMA_CIPHER_*, 0: AES-128-GCM */
	bool ipv6;
	int sndbuf;		/* SO_SNDBUF, SO_RCVBUF; 0: default */
	int rcvbuf;
	uint64_t max_data;	/* first credit that the peer gets; 0: default */
	uint32_t idle_us;	/* max_idle_timeout; 0: default */
	struct qrdma_config config;
	int type_flags;		/* SOCK_NONBLOCK, SOCK_CLOEXEC */
};

/*
 * Address of host a or b ("10.9.0.1", "10.9.0.2", fd09::1, fd09::2), or of the environment's
 * QRDMA_A4 and so on.
 */
void end_addr(union addr *addr, char host, bool ipv6, uint16_t port);
socklen_t end_addr_len(const union addr *addr);

/* Steps of making an end; each returns 0 or -errno (end_socket: the descriptor). */
int end_socket(const struct end_options *opt);
int end_secret(int fd, int role, int send, const struct end_options *opt);
int end_ids(int fd, int role, const struct end_options *opt);
/* our own and the peer's, which are taken to be the same */
int end_params(int fd, const struct end_options *opt);
/* all of that */
int end_setup(int fd, int role, const struct end_options *opt);
int end_bind(int fd, char host, bool ipv6, uint16_t port);
int end_port(int fd);						/* bound port, or -errno */
int end_connect(int fd, char host, bool ipv6, uint16_t port);

/* A number that no other pair of this machine has. */
uint64_t end_fresh_seed(void);

/*
 * A connected pair in one process: fd[0] is the client, on host a's address, fd[1] the server, on
 * b's. Returns 0 or -errno; both blocking unless SOCK_NONBLOCK is among the flags.
 */
int end_pair(int fd[2], const struct end_options *opt);
/* The same in two steps, so that many can connect at a time */
int end_pair_begin(int fd[2], const struct end_options *options);
int end_pair_finish(int fd[2], const struct end_options *options);

#endif
