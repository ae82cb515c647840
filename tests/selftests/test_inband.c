// SPDX-License-Identifier: GPL-2.0
/*
 * The handshake in band as a program sees it that runs it itself: connect, listen, accept, bytes of
 * the levels, keys, the result. TLS itself is not there: see tls.h.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>

#include "cases.h"
#include "flow.h"
#include "probe.h"
#include "tls.h"

static struct end_options fresh(void)
{
	return (struct end_options){ .seed = end_fresh_seed() };
}

/* Bytes both ways, each cipher, both families; the end is seen. */
static void carry(const struct end_options *opt, uint64_t size)
{
	int listener = CHECK(tls_listener('b', opt, 8)), fd[2];
	struct flow there, back;

	ASSERT_EQ(tls_pair(fd, listener, opt), 0);
	EXPECT_EQ(info_of(fd[0]).state, QRDMA_STATE_ESTABLISHED);
	EXPECT_EQ(info_of(fd[1]).role, QRDMA_ROLE_SERVER);
	EXPECT_EQ(info_of(fd[1]).cipher, opt->cipher ?: QRDMA_CIPHER_AES_GCM_128);
	there = (struct flow){ .tx = fd[0], .rx = fd[1], .size = size, .half_close = true };
	back = (struct flow){ .tx = fd[1], .rx = fd[0], .size = size, .half_close = true };
	flow_start(&there);
	flow_start(&back);
	flow_wait(&there);
	flow_wait(&back);
	EXPECT(flow_good(&there) && there.saw_end);
	EXPECT(flow_good(&back) && back.saw_end);
	close(fd[0]);
	close(fd[1]);
	close(listener);
}

TEST(ciphers)
{
	static const uint32_t ciphers[] = { QRDMA_CIPHER_AES_GCM_128, QRDMA_CIPHER_AES_GCM_256,
					    QRDMA_CIPHER_AES_CCM_128, QRDMA_CIPHER_CHACHA20 };
	struct end_options opt;
	size_t i;

	for (i = 0; i < 4; i++) {
		opt = fresh();
		opt.cipher = ciphers[i];
		carry(&opt, 100000);
	}
	opt = fresh();
	opt.ipv6 = true;
	carry(&opt, 100000);
}

TEST(loss)
{
	struct end_options opt = fresh();

	ASSERT_EQ(shell("link_loss delay 1ms loss 10%%"), 0);
	for (int i = 0; i < 5; i++) {
		opt.seed = end_fresh_seed();
		carry(&opt, 30000);
	}
	ASSERT_EQ(shell("link_clear"), 0);
}

/* connect() and poll(), without waiting */
TEST(non_blocking)
{
	struct end_options opt = fresh();
	int listener = CHECK(tls_listener('b', &opt, 8)), fd, child, level;
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	char bytes[64];

	CHECK(fcntl(listener, F_SETFL, O_NONBLOCK));
	EXPECT_ERRNO(accept(listener, NULL, NULL), EAGAIN);
	EXPECT_EQ(ready(listener, POLLIN, 0), 0);
	EXPECT_EQ(info_of(listener).state, QRDMA_STATE_LISTEN);

	opt.type_flags = SOCK_NONBLOCK;
	fd = CHECK(tls_socket('a', &opt));
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(listener)), -EINPROGRESS);
	EXPECT_EQ(ready(fd, POLLOUT, 60000), POLLOUT);
	EXPECT_EQ(info_of(fd).state, QRDMA_STATE_HANDSHAKE);
	EXPECT_EQ(so_error(fd), 0);
	EXPECT_EQ(tls_recv(fd, &level, bytes, sizeof(bytes), 0), -EAGAIN);
	EXPECT_ERRNO(send(fd, "x", 1, MSG_NOSIGNAL), EAGAIN);
	EXPECT_ERRNO(recv(fd, bytes, 1, 0), EINVAL);	/* no room for the level */
	EXPECT_EQ(ready(fd, POLLIN, 0), 0);

	/* Nobody is there before there are bytes. */
	EXPECT_EQ(ready(listener, POLLIN, 0), 0);
	EXPECT_EQ(tls_send(fd, QRDMA_CRYPTO_INITIAL, "hello", 5), 5);
	EXPECT_EQ(ready(listener, POLLIN, 60000), POLLIN);
	child = CHECK(accept4(listener, (struct sockaddr *)&name, &len, SOCK_NONBLOCK));
	EXPECT_EQ(ntohs(name.sin_port), end_port(fd));
	EXPECT_EQ(end_port(child), end_port(listener));
	EXPECT_EQ(info_of(child).state, QRDMA_STATE_HANDSHAKE);
	EXPECT_EQ(ready(child, POLLIN, 0), POLLIN);
	EXPECT_EQ(tls_recv(child, &level, bytes, 3, 0), 3);
	EXPECT_EQ(level, QRDMA_CRYPTO_INITIAL);
	EXPECT_EQ(tls_recv(child, &level, bytes + 3, 60, 0), 2);
	EXPECT(!memcmp(bytes, "hello", 5));
	EXPECT_EQ(tls_recv(child, &level, bytes, 60, 0), -EAGAIN);
	EXPECT_EQ(ready(child, POLLIN, 0), 0);

	/* Who goes away in the middle is an error to the other one. */
	close(child);
	EXPECT(ready(fd, POLLIN, 60000) & POLLERR);
	EXPECT_EQ(so_error(fd), ECONNRESET);
	close(fd);
	close(listener);
}

/* A TLS alert says why. */
TEST(refused)
{
	const struct qrdma_handshake_result bad = { .judged = 2 };
	struct end_options opt = fresh();
	int listener = CHECK(tls_listener('b', &opt, 8)), fd, child;
	uint64_t code;

	fd = CHECK(tls_socket('a', &opt));
	pid_t pid = fork();

	if (!pid) {
		child = CHECK(accept(listener, NULL, NULL));
		_exit(tls_server(child, &opt, 48) ? 1 : 0);	/* unknown_ca */
	}
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(listener)), 0);
	EXPECT_EQ(tls_client(fd, &opt), -EKEYREJECTED);
	EXPECT_EQ(reason_of(fd, &code), QRDMA_REASON_HANDSHAKE);
	EXPECT_EQ(code, 0x100 + 48);
	waitpid(pid, NULL, 0);
	close(fd);

	/* And from the client's side */
	opt.seed = end_fresh_seed();
	fd = CHECK(tls_socket('a', &opt));
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(listener)), 0);
	EXPECT_EQ(tls_send(fd, QRDMA_CRYPTO_INITIAL, "hello", 5), 5);
	child = CHECK(accept(listener, NULL, NULL));
	EXPECT_ERRNO(setsockopt(fd, SOL_QRDMA, QRDMA_HANDSHAKE_RESULT, &bad, sizeof(bad)), EINVAL);
	EXPECT_EQ(tls_result(fd, ECONNREFUSED, 42), 0);
	EXPECT_EQ(so_error(fd), ECONNREFUSED);
	EXPECT(ready(child, 0, 60000) & POLLERR);
	EXPECT_EQ(so_error(child), EKEYREJECTED);
	EXPECT_EQ(reason_of(child, &code), QRDMA_REASON_HANDSHAKE);
	EXPECT_EQ(code, 0x100 + 42);
	close(fd);
	close(child);
	close(listener);
}

/* What TLS cannot have said */
TEST(nonsense)
{
	struct end_options opt = fresh();
	int listener = CHECK(tls_listener('b', &opt, 8)), fd;
	uint8_t big[20000] = {};
	socklen_t len;

	fd = CHECK(tls_socket('a', &opt));
	EXPECT_EQ(tls_send(fd, QRDMA_CRYPTO_INITIAL, "hello", 5), -ENOTCONN);
	EXPECT_EQ(tls_result(fd, 0, 0), -ENOTCONN);
	len = sizeof(big);
	EXPECT_ERRNO(getsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, big, &len), ENOTCONN);
	len = sizeof(big);
	EXPECT_ERRNO(getsockopt(fd, SOL_QRDMA, QRDMA_SESSION_TICKET, big, &len), ENOTCONN);

	EXPECT_EQ(end_connect(fd, 'b', false, end_port(listener)), 0);
	EXPECT_EQ(tls_send(fd, QRDMA_CRYPTO_EARLY, "hello", 5), -EINVAL);
	EXPECT_EQ(tls_send(fd, 9, "hello", 5), -EINVAL);
	EXPECT_EQ(tls_send(fd, QRDMA_CRYPTO_INITIAL, big, sizeof(big)), -EMSGSIZE);
	EXPECT_EQ(tls_secret(fd, QRDMA_CRYPTO_INITIAL, QRDMA_ROLE_CLIENT, 1, &opt), -EINVAL);
	EXPECT_EQ(tls_secret(fd, 7, QRDMA_ROLE_CLIENT, 1, &opt), -EINVAL);
	EXPECT_EQ(tls_result(fd, 0, 0), -EINVAL);	/* no keys, no parameters */
	EXPECT_EQ(tls_result(fd, 0, 40), -EINVAL);
	EXPECT_EQ(tls_result(fd, 4096, 40), -EINVAL);
	EXPECT_EQ(tls_secret(fd, QRDMA_CRYPTO_HANDSHAKE, QRDMA_ROLE_CLIENT, 1, &opt), 0);
	EXPECT_EQ(tls_secret(fd, QRDMA_CRYPTO_HANDSHAKE, QRDMA_ROLE_CLIENT, 1, &opt), -EEXIST);
	len = 4;
	EXPECT_ERRNO(getsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, big, &len), ENOBUFS);
	EXPECT_ERRNO(setsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, big, 0), EINVAL);
	EXPECT_ERRNO(setsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, big, 1025), EINVAL);
	/* Parameters without the connection ids of RFC 9000 s7.3 */
	EXPECT_ERRNO(setsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, "\x01\x01\x10", 3),
		     EPROTO);
	EXPECT_EQ(so_error(fd), EPROTO);
	close(fd);
	close(listener);
}

/* Nobody listens there, whether or not somebody has the port: said at once, as TCP does. */
TEST(nobody_listens)
{
	uint64_t sent = stat_of("refusals_sent"), code;
	struct end_options opt = fresh();
	int bound = CHECK(tls_socket('b', &opt)), fd;

	for (int i = 0; i < 4; i++) {
		opt.ipv6 = i == 3;
		opt.seed = end_fresh_seed();
		fd = CHECK(tls_socket('a', &opt));
		EXPECT_EQ(end_connect(fd, 'b', opt.ipv6, i ? 9 : end_port(bound)), 0);
		EXPECT_EQ(tls_client(fd, &opt), -ECONNREFUSED);
		EXPECT_EQ(reason_of(fd, &code), QRDMA_REASON_PEER_ERROR);
		EXPECT_EQ(code, 2);	/* CONNECTION_REFUSED */
		close(fd);
	}
	EXPECT(stat_of("refusals_sent") >= sent + 4);
	close(bound);
}

/* Nobody answers: connect() is over, the handshake is not. */
TEST(silence)
{
	struct end_options opt = fresh();
	int fd, level;
	char c;

	ASSERT_EQ(shell("echo 0 >/sys/module/qrdma/parameters/reset_rate"), 0);
	opt.config.connect_timeout = 300;
	fd = CHECK(tls_socket('a', &opt));
	EXPECT_EQ(end_connect(fd, 'b', false, 9), 0);
	EXPECT_EQ(tls_send(fd, QRDMA_CRYPTO_INITIAL, "hello", 5), 5);
	EXPECT_EQ(tls_recv(fd, &level, &c, 1, 0), -ETIMEDOUT);
	ASSERT_EQ(shell("echo 500 >/sys/module/qrdma/parameters/reset_rate"), 0);
	/* The same socket may try again. */
	opt.seed = end_fresh_seed();
	int listener = CHECK(tls_listener('b', &opt, 1));

	EXPECT_EQ(end_connect(fd, 'b', false, end_port(listener)), 0);
	EXPECT_EQ(tls_send(fd, QRDMA_CRYPTO_INITIAL, "hello", 5), 5);
	EXPECT_EQ(ready(listener, POLLIN, 60000), POLLIN);
	close(fd);
	close(listener);
}

/* listen() and bind(), as TCP has them */
TEST(listening)
{
	struct end_options opt = fresh();
	int one, two, port, yes = 1;
	union addr addr;

	one = CHECK(end_socket(&opt));
	opt.config.handshake = QRDMA_HANDSHAKE_NONE;
	CHECK(setsockopt(one, SOL_QRDMA, QRDMA_CONFIG, &opt.config, sizeof(opt.config)));
	EXPECT_ERRNO(listen(one, 1), ENOKEY);	/* who would speak TLS? */
	close(one);

	one = CHECK(tls_listener('b', &opt, 1));
	port = end_port(one);
	EXPECT_ERRNO(accept(-1, NULL, NULL), EBADF);
	EXPECT_EQ(end_connect(one, 'a', false, 1), -EISCONN);
	EXPECT_ERRNO(send(one, "x", 1, MSG_NOSIGNAL), EPIPE);
	two = CHECK(end_socket(&opt));
	EXPECT_ERRNO(accept(two, NULL, NULL), EINVAL);
	EXPECT_EQ(end_bind(two, 'b', false, port), -EADDRINUSE);
	EXPECT_EQ(end_bind(two, 'a', false, port), 0);
	close(two);

	/* SO_REUSEADDR shares a port that nobody listens on. */
	two = CHECK(end_socket(&opt));
	CHECK(setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)));
	CHECK(setsockopt(two, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)));
	EXPECT_EQ(end_bind(two, 'b', false, port), -EADDRINUSE);
	close(two);
	close(one);

	/* A wildcard has the name that the client asked for. */
	one = CHECK(end_socket(&opt));
	opt.config.handshake = QRDMA_HANDSHAKE_SELF;
	CHECK(setsockopt(one, SOL_QRDMA, QRDMA_CONFIG, &opt.config, sizeof(opt.config)));
	CHECK(listen(one, 4));
	two = CHECK(tls_socket('a', &opt));
	EXPECT_EQ(end_connect(two, 'b', false, end_port(one)), 0);
	EXPECT_EQ(tls_send(two, QRDMA_CRYPTO_INITIAL, "hello", 5), 5);
	int child = CHECK(accept(one, NULL, NULL));
	socklen_t len = sizeof(addr);

	CHECK(getsockname(child, &addr.sa, &len));
	union addr want;

	end_addr(&want, 'b', false, end_port(one));
	EXPECT(!memcmp(&addr.in, &want.in, sizeof(want.in)));
	close(child);
	close(two);
	close(one);
}

static pid_t accept_tid;

static void *accept_it(void *arg)
{
	__atomic_store_n(&accept_tid, gettid(), __ATOMIC_RELEASE);
	return (void *)(intptr_t)(accept(*(int *)arg, NULL, NULL) < 0 ? errno : 0);
}

static bool accept_sleeps(void *arg)
{
	pid_t tid = __atomic_load_n(&accept_tid, __ATOMIC_ACQUIRE);

	return tid && !shell("grep -q 'State:.S' /proc/%d/task/%d/status", getpid(), tid);
}

/* shutdown() wakes who waits; a listener that closes takes its children along. */
TEST(closing)
{
	struct end_options opt = fresh();
	int listener, fd[8];
	pthread_t thread;
	void *result;

	listener = CHECK(tls_listener('b', &opt, 8));
	pthread_create(&thread, NULL, accept_it, &listener);
	EXPECT(wait_for(accept_sleeps, NULL));
	CHECK(shutdown(listener, SHUT_RD));
	pthread_join(thread, &result);
	EXPECT_EQ((intptr_t)result, EINVAL);
	EXPECT_ERRNO(listen(listener, 1), EINVAL);
	close(listener);

	listener = CHECK(tls_listener('b', &opt, 8));
	for (int i = 0; i < 8; i++) {
		opt.seed = end_fresh_seed();
		fd[i] = CHECK(tls_socket('a', &opt));
		EXPECT_EQ(end_connect(fd[i], 'b', false, end_port(listener)), 0);
		EXPECT_EQ(tls_send(fd[i], QRDMA_CRYPTO_INITIAL, "hello", 5), 5);
	}
	EXPECT_EQ(ready(listener, POLLIN, 60000), POLLIN);
	close(listener);
	/* Those whose first packet had come are told; the others find nobody. */
	int told = 0;

	for (int i = 0; i < 8; i++) {
		told += !!(ready(fd[i], 0, 2000) & POLLERR);
		close(fd[i]);
	}
	EXPECT(told >= 1);
}

static bool nothing_left(void *arg)
{
	return !stat_of("sockets") && !stat_of("connections") && !stat_of("orphans");
}

/* A backlog of one takes one more than one, as TCP's does; more wait until there is room. */
TEST(backlog)
{
	struct end_options opt = fresh();
	int listener = CHECK(tls_listener('b', &opt, 1)), fd[6], child;
	uint64_t full = stat_of("rx_drop_backlog");

	for (int i = 0; i < 6; i++) {
		opt.seed = end_fresh_seed();
		fd[i] = CHECK(tls_socket('a', &opt));
		EXPECT_EQ(end_connect(fd[i], 'b', false, end_port(listener)), 0);
		EXPECT_EQ(tls_send(fd[i], QRDMA_CRYPTO_INITIAL, "hello", 5), 5);
	}
	/* All six get in, as their clients repeat what is not answered. */
	for (int i = 0; i < 6; i++) {
		child = CHECK(accept(listener, NULL, NULL));
		close(child);
	}
	EXPECT(stat_of("rx_drop_backlog") > full);
	for (int i = 0; i < 6; i++)
		close(fd[i]);
	close(listener);
	EXPECT(wait_for(nothing_left, NULL));
}
