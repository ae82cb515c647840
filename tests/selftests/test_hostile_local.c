// SPDX-License-Identifier: GPL-2.0
/*
 * Programs and agents of this host that mean harm. A program that keeps its socket's lock holds up
 * nobody else; nobody is told the secrets of another's connection; and whatever is called, in any
 * order and from many threads at once, against an agent that answers anything: all of it goes away.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent.h"
#include "cases.h"
#include "probe.h"
#include "tls.h"

enum { PAGE = 4096 };

/*
 * A page that does not come until it is told to. Half of an option's value lies in it, and the
 * kernel copies values of SOL_SOCKET with the socket's lock held.
 */
struct trap {
	int uffd;
	char *value;		/* struct linger across the edge */
	char *page;
};

static struct trap trap_set(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct trap trap;
	char *pages;

	trap.uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (trap.uffd < 0 && errno == ENOSYS)
		SKIP("this kernel has no userfaultfd");
	CHECK(trap.uffd);
	CHECK(ioctl(trap.uffd, UFFDIO_API, &api));
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT(pages != MAP_FAILED);
	memset(pages, 0, PAGE);
	trap.page = pages + PAGE;
	trap.value = trap.page - sizeof(int);
	range.range.start = (uintptr_t)trap.page;
	range.range.len = PAGE;
	CHECK(ioctl(trap.uffd, UFFDIO_REGISTER, &range));
	return trap;
}

/* So many threads sit in it. */
static void trap_wait(const struct trap *trap, int threads)
{
	struct uffd_msg msg;

	while (threads--)
		ASSERT_EQ(read(trap->uffd, &msg, sizeof(msg)), sizeof(msg));
}

static void trap_open(const struct trap *trap)
{
	struct uffdio_zeropage zero = { .range = { .start = (uintptr_t)trap->page, .len = PAGE } };

	CHECK(ioctl(trap->uffd, UFFDIO_ZEROPAGE, &zero));
}

struct prisoner {
	pthread_t thread;
	const struct trap *trap;
	int fd;
};

static void *sit(void *arg)
{
	struct prisoner *p = arg;

	setsockopt(p->fd, SOL_SOCKET, SO_LINGER, p->trap->value, sizeof(struct linger));
	return NULL;
}

static void sit_begin(struct prisoner *p, const struct trap *trap, int fd)
{
	pthread_attr_t attr;

	p->trap = trap;
	p->fd = fd;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	ASSERT_EQ(pthread_create(&p->thread, &attr, sit, p), 0);
}

static int program(void)
{
	struct end_options opt = { .type_flags = SOCK_NONBLOCK };
	int fd = CHECK(end_socket(&opt));

	ASSERT_EQ(end_bind(fd, 'a', false, 0), 0);
	return fd;
}

/* A listener that does all by itself, in a process of its own */
static void serve(int fd, const struct end_options *opt)
{
	if (fork())
		return;
	for (int i = 3; i < 64; i++) {
		if (i != fd)
			close(i);
	}
	for (;;) {
		int child = accept(fd, NULL, NULL);

		if (child < 0)
			_exit(0);
		tls_server(child, opt, 0);
	}
}

/* The agent is not to wait for a program that does not want it to go on. */
TEST(agent_goes_on)
{
	struct end_options opt = { .seed = end_fresh_seed() };
	int l = CHECK(tls_listener('b', &opt, 8)), fd = program(), other = program();
	struct trap trap = trap_set();
	struct agent_job job, next;
	struct prisoner prisoner;
	struct agent agent;
	struct sockaddr_in name;
	socklen_t len = sizeof(name);

	ASSERT_EQ(agent_open(&agent), 0);
	ASSERT_EQ(agent_join(&agent), 0);
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
	ASSERT(ready(agent.nl, POLLIN, 60000) & POLLIN);
	sit_begin(&prisoner, &trap, fd);
	trap_wait(&trap, 1);

	ASSERT_EQ(agent_accept(&agent, &job), 0);
	EXPECT_EQ(job.role, QRDMA_ROLE_CLIENT);
	EXPECT(job.timeout > 0);
	EXPECT_EQ(tls_send(job.fd, QRDMA_CRYPTO_INITIAL, "hello", 5), -ETIMEDOUT);
	EXPECT_EQ(ready(job.fd, POLLIN, 0), POLLHUP | POLLERR);
	EXPECT_EQ(tls_result(job.fd, 0, 0), -ENOTCONN);
	EXPECT_ERRNO(getpeername(job.fd, (struct sockaddr *)&name, &len), ENOTCONN);
	close(job.fd);

	serve(l, &opt);
	ASSERT_EQ(end_connect(other, 'b', false, end_port(l)), -EINPROGRESS);
	ASSERT_EQ(agent_accept_wait(&agent, &next), 0);
	EXPECT_EQ(tls_client(next.fd, &opt), 0);
	EXPECT_EQ(ready(other, POLLOUT, 60000), POLLOUT);
	EXPECT_EQ(so_error(other), 0);

	/* And the one whose handshake it was has lost it. */
	trap_open(&trap);
	pthread_join(prisoner.thread, NULL);
	EXPECT(ready(fd, POLLOUT, 60000) & POLLERR);
	EXPECT_EQ(so_error(fd), ECONNABORTED);
	close(next.fd);
	close(fd);
	close(other);
	agent_close(&agent);
}

static bool were_asked(void *arg)
{
	return stat_of("agent_asked") >= *(uint64_t *)arg;
}

/* One user's many handshakes do not keep another's from the agent. */
TEST(users_take_turns)
{
	struct end_options opt = { .seed = end_fresh_seed() };
	int l = CHECK(tls_listener('b', &opt, 128)), many[64], one = program();
	uint64_t asked = stat_of("agent_asked");
	struct agent_job job[2];
	struct agent agent;

	ASSERT_EQ(agent_open(&agent), 0);
	ASSERT_EQ(agent_join(&agent), 0);
	for (int i = 0; i < 64; i++) {
		many[i] = program();
		CHECK(fchown(many[i], 65534, 65534));
		ASSERT_EQ(end_connect(many[i], 'b', false, end_port(l)), -EINPROGRESS);
	}
	asked += 64;
	ASSERT(wait_for(were_asked, &asked));
	ASSERT_EQ(end_connect(one, 'b', false, end_port(l)), -EINPROGRESS);
	asked++;
	ASSERT(wait_for(were_asked, &asked));
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(agent_accept(&agent, &job[i]), 0);
	EXPECT(job[0].uid != job[1].uid);
	for (int i = 0; i < 2; i++)
		close(job[i].fd);
	for (int i = 0; i < 64; i++)
		close(many[i]);
	close(one);
	close(l);
	agent_close(&agent);
}

/* More than a work queue of the kernel runs at a time */
enum { PRISONERS = 520 };

static bool gave_up(void *arg)
{
	return port_number("peers", "failed") > *(int64_t *)arg;
}

/* Workers are not to wait for such programs either: those of everybody's sockets. */
TEST_TIMEOUT(workers_go_on, 240)
{
	static struct prisoner prisoners[PRISONERS];
	struct end_options opt = { .type_flags = SOCK_NONBLOCK, .seed = end_fresh_seed() };
	struct end_options usual = {};
	int64_t failed = port_number("peers", "failed");
	struct trap trap = trap_set();
	union addr nobody;
	int pair[2];

	end_addr(&nobody, 'b', false, 9);
	nobody.in.sin_addr.s_addr = htonl(ntohl(nobody.in.sin_addr.s_addr) + 60);
	for (int i = 0; i < PRISONERS; i++) {
		int fd = CHECK(tls_socket('a', &opt));

		EXPECT_ERRNO(connect(fd, &nobody.sa, end_addr_len(&nobody)), EINPROGRESS);
		sit_begin(&prisoners[i], &trap, fd);
	}
	trap_wait(&trap, PRISONERS);
	/* All are to be told that there is nobody. */
	ASSERT(wait_for(gave_up, &failed));
	EXPECT_EQ(end_pair(pair, &usual), 0);
	close(pair[0]);
	close(pair[1]);

	trap_open(&trap);
	for (int i = 0; i < PRISONERS; i++) {
		pthread_join(prisoners[i].thread, NULL);
		EXPECT(ready(prisoners[i].fd, POLLOUT, 60000) & POLLERR);
		EXPECT(so_error(prisoners[i].fd) != 0);
		close(prisoners[i].fd);
	}
}

/*
 * Ids are seen on the wire. Who knows the id of a connection is not told the token that ends it
 * (RFC 9000 s10.3.2, s21.11).
 */
TEST(token_of_another)
{
	struct end_options opt = { .seed = end_fresh_seed() };
	struct qrdma_transport_param param = {};
	struct qrdma_connection_ids ids;
	socklen_t len = sizeof(param);
	static const char nothing[QRDMA_RESET_TOKEN_SIZE];
	int pair[2], fd;

	ASSERT_EQ(end_pair(pair, &opt), 0);
	fd = CHECK(end_socket(&opt));
	len = sizeof(ids);
	CHECK(getsockopt(pair[1], SOL_QRDMA, QRDMA_CONNECTION_ID, &ids, &len));
	CHECK(setsockopt(fd, SOL_QRDMA, QRDMA_CONNECTION_ID, &ids, sizeof(ids)));
	len = sizeof(param);
	EXPECT_ERRNO(getsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &param, &len), EADDRINUSE);
	/* Its owner is. */
	CHECK(getsockopt(pair[1], SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &param, &len));
	EXPECT(memcmp(param.stateless_reset_token, nothing, QRDMA_RESET_TOKEN_SIZE));
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

/*
 * The storm
 */

enum {
	SLOTS = 12,
	THREADS = 6,
	PORTS = 3,
	FIRST_PORT = 7300,
};

static _Atomic int slots[SLOTS];

struct rogue {
	pthread_t thread;
	unsigned int seed;
	int calls;
};

static unsigned int pick(struct rogue *r, unsigned int n)
{
	return rand_r(&r->seed) % n;
}

static int some(struct rogue *r)
{
	return slots[pick(r, SLOTS)];
}

/* A descriptor takes the place of another. */
static void keep(struct rogue *r, int fd)
{
	int old = fd < 0 ? -1 : atomic_exchange(&slots[pick(r, SLOTS)], fd);

	if (old >= 0)
		close(old);
}

static void fill(struct rogue *r, void *to, size_t len)
{
	uint8_t *at = to;

	while (len--)
		*at++ = pick(r, 3) ? 0 : pick(r, 256);
}

static void call_config(struct rogue *r, int fd)
{
	struct qrdma_config config = {
		.handshake = pick(r, 4), .connect_timeout = 1 + pick(r, 500),
		.linger_timeout = 1 + pick(r, 100),
	};

	setsockopt(fd, SOL_QRDMA, QRDMA_CONFIG, &config, sizeof(config));
}

static void call_option(struct rogue *r, int fd)
{
	static const int levels[] = { SOL_QRDMA, SOL_QRDMA, SOL_QRDMA, SOL_TCP, SOL_IP, SOL_IPV6 };
	static const int sizes[] = { 0, 1, 4, 8, 16, 24, 40, 48, 56, 64, 96, 120, 512, 1024 };
	int level = levels[pick(r, 6)], name = pick(r, 24);
	socklen_t len = sizes[pick(r, sizeof(sizes) / sizeof(sizes[0]))];
	char value[1024];

	fill(r, value, sizeof(value));
	if (pick(r, 2))
		setsockopt(fd, level, name, pick(r, 8) ? value : NULL, len);
	else
		getsockopt(fd, level, name, pick(r, 8) ? value : NULL, &len);
}

/* What an agent would say, as it comes */
static void call_handshake(struct rogue *r, int fd)
{
	struct end_options opt = { .seed = 1 + pick(r, 3) };
	char data[2048];
	socklen_t len;
	int level;

	switch (pick(r, 6)) {
	case 0:
		tls_send(fd, pick(r, 6), data, pick(r, sizeof(data)));
		break;
	case 1:
		tls_recv(fd, &level, data, pick(r, sizeof(data)), MSG_DONTWAIT);
		break;
	case 2:
		tls_secret(fd, pick(r, 5), pick(r, 2), pick(r, 2), &opt);
		break;
	case 3:
		tls_result(fd, pick(r, 2) ? 0 : pick(r, 600), pick(r, 256));
		break;
	case 4:
		len = sizeof(data);
		if (!getsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, data, &len))
			setsockopt(some(r), SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, data, len);
		break;
	default:
		len = pick(r, sizeof(data));
		getsockopt(fd, SOL_QRDMA, QRDMA_SESSION_TICKET, data, &len);
	}
}

static void call_connect(struct rogue *r, int fd)
{
	union addr to = {};

	end_addr(&to, pick(r, 8) ? 'b' : 'a', false, FIRST_PORT + pick(r, PORTS));
	if (!pick(r, 4))
		to.sa.sa_family = AF_UNSPEC;
	connect(fd, &to.sa, end_addr_len(&to));
}

static void call_bytes(struct rogue *r, int fd)
{
	char data[4096];
	size_t len = pick(r, sizeof(data));

	if (pick(r, 2))
		send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL | (pick(r, 2) ? MSG_MORE : 0));
	else
		recv(fd, data, len, MSG_DONTWAIT | (pick(r, 2) ? MSG_PEEK : MSG_TRUNC));
}

static void call_new(struct rogue *r)
{
	struct end_options opt = { .type_flags = SOCK_NONBLOCK };
	int fd = end_socket(&opt);

	call_config(r, fd);
	keep(r, fd);
}

static void call_more(struct rogue *r, int fd)
{
	struct linger linger = { .l_onoff = pick(r, 2) };
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int n;

	switch (pick(r, 6)) {
	case 0:
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		break;
	case 1:
		getsockname(fd, (struct sockaddr *)&name, &len);
		break;
	case 2:
		getpeername(fd, (struct sockaddr *)&name, &len);
		break;
	case 3:
		ready(fd, POLLIN | POLLOUT, 0);
		break;
	case 4:
		ioctl(fd, pick(r, 2) ? FIONREAD : TIOCOUTQ, &n);
		break;
	default:
		keep(r, dup(fd));
	}
}

static void *rogue(void *arg)
{
	static const int backlogs[] = { -1, 0, 1, 3, 1 << 30 };
	struct rogue *r = arg;

	while (r->calls--) {
		int fd = some(r);

		switch (pick(r, 16)) {
		case 0:
		case 1:
			call_new(r);
			break;
		case 2:
			end_bind(fd, pick(r, 4) ? 'b' : 'a', false,
				 pick(r, 3) ? FIRST_PORT + pick(r, PORTS) : 0);
			break;
		case 3:
			listen(fd, backlogs[pick(r, 5)]);
			break;
		case 4:
		case 5:
			call_connect(r, fd);
			break;
		case 6:
		case 7:
			keep(r, accept4(fd, NULL, NULL, SOCK_NONBLOCK));
			break;
		case 8:
			shutdown(fd, pick(r, 4));
			break;
		case 9:
			call_config(r, fd);
			break;
		case 10:
			call_option(r, fd);
			break;
		case 11:
		case 12:
			call_handshake(r, fd);
			break;
		case 13:
			call_bytes(r, fd);
			break;
		default:
			call_more(r, fd);
		}
	}
	return NULL;
}

/* An agent that lets anybody have what it is given, or drops it, or does its work. */
static void *rogue_agent(void *arg)
{
	struct rogue *r = arg;
	struct end_options opt = { .seed = 1 };
	struct agent_job job;
	struct agent agent;

	if (agent_open(&agent))
		return "cannot be an agent";
	while (r->calls--) {
		if (pick(r, 32))
			agent_join(&agent);
		else
			agent_leave(&agent);
		if (agent_accept(&agent, &job)) {
			ready(agent.nl, POLLIN, 1);
			continue;
		}
		switch (pick(r, 4)) {
		case 0:
			keep(r, job.fd);
			break;
		case 1:
			tls_result(job.fd, ECONNREFUSED, 40);
			tls_result(job.fd, 0, 0);
			close(job.fd);
			break;
		case 2:
			tls_secret(job.fd, QRDMA_CRYPTO_APP, job.role, 1, &opt);
			keep(r, dup(job.fd));
			close(job.fd);
			break;
		default:
			close(job.fd);
		}
	}
	agent_close(&agent);
	return NULL;
}

static bool module_idle(void *arg)
{
	return !shell("test \"$(cat /sys/module/qrdma/refcnt)\" = 0") &&
	       !stat_of("sockets") && !stat_of("connections");
}

TEST_TIMEOUT(storm, 240)
{
	unsigned int seed = env_number("QRDMA_SEED", 1, 1);
	int calls = env_number("QRDMA_CALLS", 3000, 600);
	struct rogue rogues[THREADS + 2];
	void *failed;
	int i;

	for (i = 0; i < SLOTS; i++)
		slots[i] = -1;
	for (i = 0; i < THREADS + 2; i++) {
		rogues[i] = (struct rogue){ .seed = seed * 100 + i,
					    .calls = i < THREADS ? calls : calls / 10 };
		ASSERT_EQ(pthread_create(&rogues[i].thread, NULL, i < THREADS ? rogue : rogue_agent,
					 &rogues[i]), 0);
	}
	for (i = 0; i < THREADS + 2; i++) {
		pthread_join(rogues[i].thread, &failed);
		if (failed)
			tap_fail("%s", (char *)failed);
	}
	for (i = 0; i < SLOTS; i++)
		close(slots[i]);
	/* What memory is left would be found when the module goes. */
	EXPECT(wait_for(module_idle, NULL));
}
