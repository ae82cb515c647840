// SPDX-License-Identifier: GPL-2.0
/*
 * Handshakes that an agent makes: programs that know nothing of them connect, listen and accept as
 * over TCP; an agent in this process, or none, does what they do not see.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "agent.h"
#include "cases.h"
#include "flow.h"
#include "probe.h"
#include "tls.h"

static struct end_options fresh(void)
{
	return (struct end_options){ .seed = end_fresh_seed() };
}

/* A program's socket on host a; @ms: how long it may take to connect, 0: default */
static int client(int flags, uint32_t ms)
{
	struct end_options opt = { .type_flags = flags };
	int fd = CHECK(end_socket(&opt));
	socklen_t len = sizeof(opt.config);

	CHECK(getsockopt(fd, SOL_QRDMA, QRDMA_CONFIG, &opt.config, &len));
	EXPECT_EQ(opt.config.handshake, QRDMA_HANDSHAKE_AGENT);
	if (ms)
		opt.config.connect_timeout = ms;
	CHECK(setsockopt(fd, SOL_QRDMA, QRDMA_CONFIG, &opt.config, sizeof(opt.config)));
	ASSERT_EQ(end_bind(fd, 'a', false, 0), 0);
	return fd;
}

/* And one that listens on host b */
static int listener(int backlog)
{
	struct end_options opt = {};
	int fd = CHECK(end_socket(&opt));

	ASSERT_EQ(end_bind(fd, 'b', false, 0), 0);
	CHECK(listen(fd, backlog));
	return fd;
}

/*
 * A listener whose program speaks TLS itself, in a process of its own, for as long as this test, or
 * till it is killed
 */
static pid_t serve_self(int fd, const struct end_options *opt, int alert)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* An agent's socket that lives on here would be an agent to the next test. */
	for (int i = 3; i < 256; i++) {
		if (i != fd)
			close(i);
	}
	for (;;) {
		int child = accept(fd, NULL, NULL);

		if (child < 0)
			_exit(0);
		tls_server(child, opt, alert);
	}
}

static struct agent agent_here(void)
{
	struct agent agent;

	ASSERT_EQ(agent_open(&agent), 0);
	ASSERT_EQ(agent_join(&agent), 0);
	return agent;
}

static void carry(int one, int other)
{
	struct flow there = { .tx = one, .rx = other, .size = 100000, .half_close = true };
	struct flow back = { .tx = other, .rx = one, .size = 100000, .half_close = true };

	flow_start(&there);
	flow_start(&back);
	flow_wait(&there);
	flow_wait(&back);
	EXPECT(flow_good(&there) && there.saw_end);
	EXPECT(flow_good(&back) && back.saw_end);
}

/* Both ends leave it to the agent. */
TEST(success)
{
	struct end_options opt = fresh();
	struct agent_daemon *daemon = agent_start(&opt);
	int l = listener(8), fd = client(0, 0), child;
	struct sockaddr_in name;
	socklen_t len = sizeof(name);

	ASSERT(daemon);
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), 0);
	child = CHECK(accept(l, (struct sockaddr *)&name, &len));
	EXPECT_EQ(ntohs(name.sin_port), end_port(fd));
	EXPECT_EQ(info_of(fd).state, QRDMA_STATE_ESTABLISHED);
	EXPECT_EQ(info_of(child).state, QRDMA_STATE_ESTABLISHED);
	EXPECT_EQ(info_of(child).role, QRDMA_ROLE_SERVER);
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -EISCONN);
	carry(fd, child);
	close(fd);
	close(child);
	close(l);
	agent_stop(daemon);
}

/* Against a program that speaks TLS itself, in each role */
TEST(self_on_the_other_side)
{
	struct end_options opt = fresh();
	struct agent_daemon *daemon = agent_start(&opt);
	int l = CHECK(tls_listener('b', &opt, 8)), fd = client(0, 0), child;

	serve_self(l, &opt, 0);
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), 0);
	close(fd);
	close(l);

	l = listener(8);
	opt.seed = end_fresh_seed();
	fd = CHECK(tls_socket('a', &opt));
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), 0);
	EXPECT_EQ(tls_client(fd, &opt), 0);
	child = CHECK(accept(l, NULL, NULL));
	carry(fd, child);
	close(fd);
	close(child);
	close(l);
	agent_stop(daemon);
}

/* Nobody is in the group: said at once, by either side. */
TEST(no_agent)
{
	struct end_options opt = fresh();
	uint64_t absent = stat_of("agent_absent"), code;
	int fd = client(0, 0), l = listener(8);
	struct agent agent;

	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -ESRCH);
	EXPECT_EQ(reason_of(fd, NULL), QRDMA_REASON_NO_AGENT);
	EXPECT_EQ(stat_of("agent_absent"), absent + 1);
	close(fd);
	fd = client(SOCK_NONBLOCK, 0);
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -ESRCH);
	/* To know the family is not to be an agent. */
	ASSERT_EQ(agent_open(&agent), 0);
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -ESRCH);
	ASSERT_EQ(agent_join(&agent), 0);
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
	close(fd);
	agent_close(&agent);

	absent = stat_of("agent_absent");
	fd = CHECK(tls_socket('a', &opt));
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), 0);
	EXPECT_EQ(tls_client(fd, &opt), -ECONNREFUSED);
	EXPECT_EQ(reason_of(fd, &code), QRDMA_REASON_PEER_ERROR);
	EXPECT_EQ(code, 2);		/* CONNECTION_REFUSED */
	EXPECT_EQ(stat_of("agent_absent"), absent + 1);
	EXPECT_EQ(ready(l, POLLIN, 0), 0);
	close(fd);
	close(l);
}

/* There is an agent, and nobody listens. */
TEST(nobody_listens)
{
	struct end_options opt = fresh();
	struct agent_daemon *daemon = agent_start(&opt);
	int fd = client(0, 0);

	ASSERT(daemon);
	EXPECT_EQ(end_connect(fd, 'b', false, 9), -ECONNREFUSED);
	EXPECT_EQ(reason_of(fd, NULL), QRDMA_REASON_PEER_ERROR);
	close(fd);
	agent_stop(daemon);
}

/* An agent of another network namespace is none here. */
TEST(other_namespace)
{
	int fd = client(0, 0), l = listener(8), pipes[2];
	char c;

	CHECK(pipe(pipes));
	if (!fork()) {
		CHECK(unshare(CLONE_NEWNET));
		agent_here();
		CHECK(write(pipes[1], "x", 1));
		pause();
	}
	CHECK(read(pipes[0], &c, 1));
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -ESRCH);
	EXPECT_EQ(reason_of(fd, NULL), QRDMA_REASON_NO_AGENT);
	close(fd);
	close(l);
}

/* What the agent is told, and may do; and what it may not */
TEST(agents_descriptor)
{
	struct end_options opt = fresh();
	struct agent agent = agent_here();
	int fd = client(SOCK_NONBLOCK, 20000), l = CHECK(tls_listener('b', &opt, 8)), yes = 1;
	struct qrdma_config config;
	struct sockaddr_in name;
	struct agent_job job;
	socklen_t len;
	char buf[2048];
	int level;

	EXPECT_EQ(agent_accept(&agent, &job), -EAGAIN);
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
	ASSERT_EQ(agent_accept_wait(&agent, &job), 0);
	EXPECT_EQ(agent_accept(&agent, &(struct agent_job){}), -EAGAIN);
	EXPECT_EQ(job.role, QRDMA_ROLE_CLIENT);
	EXPECT_EQ(job.uid, getuid());
	EXPECT(job.timeout > 0 && job.timeout <= 20000);
	EXPECT_EQ(fcntl(job.fd, F_GETFD), FD_CLOEXEC);
	EXPECT(fcntl(job.fd, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(end_port(job.fd), end_port(fd));
	len = sizeof(name);
	CHECK(getpeername(job.fd, (struct sockaddr *)&name, &len));
	EXPECT_EQ(ntohs(name.sin_port), end_port(l));
	EXPECT_EQ(info_of(job.fd).state, QRDMA_STATE_HANDSHAKE);
	EXPECT_EQ(so_error(job.fd), 0);
	EXPECT_EQ(reason_of(job.fd, NULL), QRDMA_REASON_NONE);
	EXPECT_EQ(ready(job.fd, POLLIN | POLLOUT, 0), POLLOUT);
	/* It never blocks, whatever its flags say. */
	CHECK(fcntl(job.fd, F_SETFL, 0));
	EXPECT_EQ(tls_recv(job.fd, &level, buf, sizeof(buf), 0), -EAGAIN);

	EXPECT_EQ(end_bind(job.fd, 'a', false, 0), -EOPNOTSUPP);
	EXPECT_EQ(end_connect(job.fd, 'b', false, 1), -EOPNOTSUPP);
	EXPECT_ERRNO(listen(job.fd, 1), EOPNOTSUPP);
	EXPECT_ERRNO(accept(job.fd, NULL, NULL), EOPNOTSUPP);
	EXPECT_ERRNO(shutdown(job.fd, SHUT_RDWR), EOPNOTSUPP);
	EXPECT_ERRNO(send(job.fd, "x", 1, MSG_NOSIGNAL), EOPNOTSUPP);
	EXPECT_ERRNO(recv(job.fd, buf, 1, 0), EINVAL);
	EXPECT_ERRNO(ioctl(job.fd, FIONREAD, &level), EOPNOTSUPP);
	EXPECT_ERRNO(setsockopt(job.fd, SOL_IPV6, 26, &yes, sizeof(yes)), EOPNOTSUPP);
	len = sizeof(config);
	EXPECT_ERRNO(getsockopt(job.fd, SOL_QRDMA, QRDMA_CONFIG, &config, &len), EOPNOTSUPP);
	EXPECT_ERRNO(setsockopt(job.fd, SOL_QRDMA, QRDMA_KEY_UPDATE, NULL, 0), EOPNOTSUPP);
	EXPECT_EQ(tls_send(job.fd, 9, "hello", 5), -EINVAL);
	EXPECT_EQ(tls_result(job.fd, 0, 0), -EINVAL);	/* no keys, no parameters */
	EXPECT_EQ(tls_result(job.fd, 512, 0), -EINVAL);

	/* The options of sockets are its own, not the program's. */
	CHECK(setsockopt(job.fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes)));
	len = sizeof(yes);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, &len));
	EXPECT_EQ(yes, 0);
	CHECK(fchown(job.fd, 65534, 65534));

	serve_self(l, &opt, 0);
	EXPECT_EQ(tls_client(job.fd, &opt), 0);
	EXPECT_EQ(ready(fd, POLLOUT, 60000), POLLOUT);
	/* After the result it looks on. */
	EXPECT_EQ(tls_recv(job.fd, &level, buf, sizeof(buf), 0), 0);
	EXPECT_EQ(info_of(job.fd).state, QRDMA_STATE_ESTABLISHED);
	close(job.fd);
	EXPECT_EQ(so_error(fd), 0);
	close(fd);
	close(l);
	agent_close(&agent);
}

/* The program's socket, while the agent works, is as TCP's in SYN_SENT. */
TEST(programs_socket)
{
	struct end_options opt = fresh();
	struct agent agent = agent_here();
	int fd = client(SOCK_NONBLOCK, 0), l = CHECK(tls_listener('b', &opt, 8));
	struct qrdma_config config = {};
	struct sockaddr_in name;
	struct agent_job job;
	socklen_t len;
	char c;

	serve_self(l, &opt, 0);
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
	ASSERT_EQ(agent_accept_wait(&agent, &job), 0);
	EXPECT_EQ(ready(fd, POLLIN | POLLOUT | POLLRDHUP, 0), 0);
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -EALREADY);
	EXPECT_ERRNO(send(fd, "x", 1, MSG_NOSIGNAL), EAGAIN);
	EXPECT_ERRNO(recv(fd, &c, 1, 0), EAGAIN);
	EXPECT_EQ(so_error(fd), 0);
	EXPECT_EQ(info_of(fd).state, QRDMA_STATE_CONNECTING);
	len = sizeof(name);
	EXPECT_ERRNO(getpeername(fd, (struct sockaddr *)&name, &len), ENOTCONN);
	EXPECT_ERRNO(setsockopt(fd, SOL_QRDMA, QRDMA_CONFIG, &config, sizeof(config)), EALREADY);
	/* What belongs to a handshake is not its affair. */
	EXPECT_EQ(tls_send(fd, QRDMA_CRYPTO_INITIAL, "hello", 5), -EBUSY);
	EXPECT_EQ(tls_secret(fd, QRDMA_CRYPTO_HANDSHAKE, QRDMA_ROLE_CLIENT, 1, &opt), -EBUSY);
	EXPECT_EQ(tls_result(fd, 0, 0), -EBUSY);
	len = 1;
	EXPECT_ERRNO(getsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, &c, &len), EBUSY);
	EXPECT_ERRNO(setsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, &c, 1), EBUSY);
	EXPECT_ERRNO(getsockopt(fd, SOL_QRDMA, QRDMA_SESSION_TICKET, &c, &len), EBUSY);

	EXPECT_EQ(tls_client(job.fd, &opt), 0);
	EXPECT_EQ(ready(fd, POLLIN | POLLOUT, 60000), POLLOUT);
	EXPECT_EQ(so_error(fd), 0);
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), 0);
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -EISCONN);
	EXPECT_EQ(tls_result(fd, 0, 0), -EBUSY);
	close(job.fd);
	close(fd);
	close(l);
	agent_close(&agent);
}

static const int errnos[] = { EACCES, EKEYREJECTED, EKEYEXPIRED, EKEYREVOKED, ENOKEY, ECONNREFUSED,
			      EPROTONOSUPPORT, ETIMEDOUT, ENOMEM, EHOSTUNREACH };

/* What the agent says is what connect() says. */
TEST(errors)
{
	struct end_options opt = fresh();
	struct agent agent = agent_here();
	int l = CHECK(tls_listener('b', &opt, 8)), fd;
	struct agent_job job;
	uint64_t code;
	size_t i;

	serve_self(l, &opt, 0);
	for (i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++) {
		fd = client(SOCK_NONBLOCK, 0);
		ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
		ASSERT_EQ(agent_accept_wait(&agent, &job), 0);
		EXPECT_EQ(tls_result(job.fd, errnos[i], 42), 0);
		EXPECT(ready(job.fd, 0, 0) & POLLHUP);
		EXPECT(ready(fd, POLLOUT, 60000) & POLLERR);
		EXPECT_EQ(reason_of(fd, &code), QRDMA_REASON_HANDSHAKE);
		EXPECT_EQ(code, 0x100 + 42);
		if (i % 2)
			EXPECT_EQ(so_error(fd), errnos[i]);
		else
			EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -errnos[i]);
		close(job.fd);
		/* Nor is the socket spoilt. */
		EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), i % 2 ? -ECONNABORTED :
			  -EINPROGRESS);
		close(fd);
	}
	close(l);
	agent_close(&agent);
}

/* The peer's alert comes to the agent, and to the program, in the words of libqrdma. */
TEST(alert)
{
	static const struct { int alert, err; } words[] = {
		{ 48, EKEYREJECTED }, { 45, EKEYEXPIRED }, { 44, EKEYREVOKED }, { 115, EACCES },
		{ 116, ENOKEY }, { 120, EPROTONOSUPPORT }, { 80, ECONNREFUSED },
	};
	struct end_options opt = fresh();
	struct agent agent = agent_here();
	struct agent_job job;
	uint64_t code;
	pid_t pid;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		int l = CHECK(tls_listener('b', &opt, 8)), fd = client(SOCK_NONBLOCK, 0);

		pid = serve_self(l, &opt, words[i].alert);
		ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
		ASSERT_EQ(agent_accept_wait(&agent, &job), 0);
		EXPECT_EQ(tls_client(job.fd, &opt), -words[i].err);
		EXPECT_EQ(reason_of(job.fd, &code), QRDMA_REASON_HANDSHAKE);
		EXPECT_EQ(code, 0x100 + words[i].alert);
		EXPECT_EQ(tls_result(job.fd, EACCES, 0), -ENOTCONN);
		EXPECT_EQ(so_error(fd), words[i].err);
		close(job.fd);
		close(fd);
		close(l);
		kill(pid, SIGKILL);
	}
	agent_close(&agent);
}

/* The agent goes, with and without a handshake in its hands. */
TEST(agent_dies)
{
	struct end_options opt = fresh();
	struct agent agent = agent_here();
	int l = CHECK(tls_listener('b', &opt, 8)), fd = client(0, 0);
	uint64_t left = stat_of("agent_left"), code;
	struct agent_job job;
	pid_t pid = fork();

	if (!pid) {
		if (agent_accept_wait(&agent, &job))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	serve_self(l, &opt, 0);
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -ECONNABORTED);
	EXPECT_EQ(reason_of(fd, &code), QRDMA_REASON_HANDSHAKE);
	EXPECT_EQ(code, 0x100 + 80);
	EXPECT_EQ(stat_of("agent_left"), left + 1);
	waitpid(pid, NULL, 0);
	close(fd);
	close(l);

	/* The server's side: the client hears of it, accept() does not. */
	l = listener(1);
	fd = CHECK(tls_socket('a', &opt));
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), 0);
	EXPECT_EQ(tls_send(fd, QRDMA_CRYPTO_INITIAL, "hello", 5), 5);
	ASSERT_EQ(agent_accept_wait(&agent, &job), 0);
	EXPECT_EQ(job.role, QRDMA_ROLE_SERVER);
	EXPECT_EQ(job.uid, getuid());
	close(job.fd);
	EXPECT(ready(fd, 0, 60000) & POLLERR);
	EXPECT_EQ(so_error(fd), ECONNREFUSED);
	EXPECT_EQ(reason_of(fd, &code), QRDMA_REASON_HANDSHAKE);
	EXPECT_EQ(code, 0x100 + 80);
	EXPECT_EQ(ready(l, POLLIN, 0), 0);
	close(fd);
	close(l);

	/* What waits for an agent that has gone is there for the next one. */
	l = CHECK(tls_listener('b', &opt, 8));
	fd = client(SOCK_NONBLOCK, 0);
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
	EXPECT_EQ(ready(agent.nl, POLLIN, 60000), POLLIN);
	agent_close(&agent);
	agent = agent_here();
	EXPECT_EQ(agent_accept(&agent, &job), 0);
	serve_self(l, &opt, 0);
	EXPECT_EQ(tls_client(job.fd, &opt), 0);
	EXPECT_EQ(ready(fd, POLLOUT, 60000), POLLOUT);
	close(job.fd);
	close(fd);
	close(l);
	agent_close(&agent);
}

/* Time is up: while it waits, and while the agent has it. */
TEST(timeout)
{
	struct agent agent = agent_here();
	int l = listener(8), fd = client(0, 300), level;
	struct agent_job job;
	char c;

	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -ETIMEDOUT);
	EXPECT_EQ(reason_of(fd, NULL), QRDMA_REASON_NO_ANSWER);
	EXPECT_EQ(agent_accept(&agent, &job), -EAGAIN);
	close(fd);

	fd = client(SOCK_NONBLOCK, 1000);
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
	ASSERT_EQ(agent_accept_wait(&agent, &job), 0);
	EXPECT_EQ(ready(job.fd, 0, 60000), POLLHUP | POLLERR);
	EXPECT_EQ(so_error(fd), ETIMEDOUT);
	EXPECT_EQ(tls_recv(job.fd, &level, &c, 1, 0), -ETIMEDOUT);
	EXPECT_EQ(tls_recv(job.fd, &level, &c, 1, 0), -ENOTCONN);
	EXPECT_EQ(tls_send(job.fd, QRDMA_CRYPTO_INITIAL, "hello", 5), -ENOTCONN);
	EXPECT_EQ(tls_result(job.fd, 0, 0), -ENOTCONN);
	EXPECT_EQ(end_port(job.fd), -ENOTCONN);
	EXPECT_EQ(reason_of(job.fd, NULL), QRDMA_REASON_NO_ANSWER);
	/* A second attempt is none of its business. */
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -ECONNABORTED);
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
	EXPECT_EQ(tls_send(job.fd, QRDMA_CRYPTO_INITIAL, "hello", 5), -ENOTCONN);
	close(job.fd);
	ASSERT_EQ(agent_accept_wait(&agent, &job), 0);
	EXPECT_EQ(ready(job.fd, POLLOUT, 0), POLLOUT);
	close(fd);
	close(job.fd);
	close(l);
	agent_close(&agent);
}

/* The program closes: while it waits, and while the agent has it; client and listener. */
TEST(closing)
{
	struct end_options opt = fresh();
	struct agent agent = agent_here();
	int l = listener(8), fd = client(SOCK_NONBLOCK, 0);
	struct agent_job job;

	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
	EXPECT_EQ(ready(agent.nl, POLLIN, 60000), POLLIN);
	close(fd);
	EXPECT_EQ(agent_accept(&agent, &job), -EAGAIN);

	fd = client(SOCK_NONBLOCK, 0);
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
	ASSERT_EQ(agent_accept_wait(&agent, &job), 0);
	close(fd);
	EXPECT_EQ(ready(job.fd, 0, 60000), POLLHUP | POLLERR);
	EXPECT_EQ(tls_result(job.fd, 0, 0), -ENOTCONN);
	close(job.fd);

	fd = CHECK(tls_socket('a', &opt));
	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), 0);
	EXPECT_EQ(tls_send(fd, QRDMA_CRYPTO_INITIAL, "hello", 5), 5);
	ASSERT_EQ(agent_accept_wait(&agent, &job), 0);
	close(l);
	EXPECT_EQ(ready(job.fd, 0, 60000), POLLHUP | POLLERR);
	EXPECT(ready(fd, 0, 60000) & POLLERR);
	close(job.fd);
	close(fd);
	agent_close(&agent);
}

static void on_signal(int sig)
{
}

struct late {
	struct agent agent;
	struct end_options *opt;
	pthread_t program;
	pid_t tid;
};

static bool program_sleeps(void *arg)
{
	struct late *late = arg;

	return !shell("grep -q 'State:.S' /proc/%d/task/%d/status", getpid(), late->tid);
}

/* Interrupts the program in connect(), then makes the handshake. */
static void *interrupt(void *arg)
{
	struct late *late = arg;
	struct agent_job job;

	if (agent_accept_wait(&late->agent, &job))
		return "nothing waits";
	if (!wait_for(program_sleeps, late))
		return "does not sleep";
	pthread_kill(late->program, SIGUSR1);
	if (tls_client(job.fd, late->opt))
		return "handshake";
	close(job.fd);
	return NULL;
}

TEST(interrupted)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct end_options opt = fresh();
	int l = CHECK(tls_listener('b', &opt, 8)), fd = client(0, 0);
	struct late late = { .agent = agent_here(), .opt = &opt, .program = pthread_self(),
			     .tid = gettid() };
	pthread_t thread;
	void *failed;

	sigaction(SIGUSR1, &act, NULL);
	pthread_create(&thread, NULL, interrupt, &late);
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINTR);
	serve_self(l, &opt, 0);
	/* It goes on by itself; the next call waits for its end. */
	EXPECT_EQ(end_connect(fd, 'b', false, end_port(l)), 0);
	pthread_join(thread, &failed);
	if (failed)
		tap_fail("%s", (char *)failed);
	close(fd);
	close(l);
	agent_close(&late.agent);
}

/* Messages after the handshake, from agent to agent */
TEST(tickets)
{
	struct end_options opt = fresh();
	struct agent agent = agent_here();
	int l = listener(8), fd = client(SOCK_NONBLOCK, 0), child;
	struct agent_job job[2];
	char ticket[64], more[1000] = {};
	socklen_t len = sizeof(ticket);
	int go[2], done[2];
	pid_t pid;

	ASSERT_EQ(end_connect(fd, 'b', false, end_port(l)), -EINPROGRESS);
	ASSERT_EQ(agent_accept_wait(&agent, &job[0]), 0);
	CHECK(pipe(go));
	CHECK(pipe(done));
	pid = fork();
	if (!pid) {
		close(job[0].fd);
		if (agent_accept_wait(&agent, &job[1]) || tls_server(job[1].fd, &opt, 0) ||
		    tls_send(job[1].fd, QRDMA_CRYPTO_APP, "ticket", 6) != 6)
			_exit(1);
		while (read(go[0], ticket, 1) == 1) {
			for (int i = 0; i < 8; i++)
				tls_send(job[1].fd, QRDMA_CRYPTO_APP, more, sizeof(more));
			if (write(done[1], "x", 1) != 1)
				break;
		}
		_exit(2);
	}
	EXPECT_EQ(tls_client(job[0].fd, &opt), 0);
	EXPECT_EQ(ready(fd, POLLOUT, 60000), POLLOUT);
	EXPECT_EQ(ready(job[0].fd, POLLIN, 60000), POLLIN);
	CHECK(getsockopt(job[0].fd, SOL_QRDMA, QRDMA_SESSION_TICKET, ticket, &len));
	EXPECT_EQ(len, 6);
	EXPECT(!memcmp(ticket, "ticket", 6));
	len = sizeof(ticket);
	EXPECT_ERRNO(getsockopt(job[0].fd, SOL_QRDMA, QRDMA_SESSION_TICKET, ticket, &len), ENODATA);
	/* A result, once told, is told. */
	EXPECT_EQ(tls_result(job[0].fd, EACCES, 42), -EALREADY);
	child = CHECK(accept(l, NULL, NULL));
	close(job[0].fd);
	CHECK(fcntl(fd, F_SETFL, 0));
	/* Those that come now are for nobody, be they more than a connection has room for. */
	for (int i = 0; i < 4; i++) {
		CHECK(write(go[1], "x", 1));
		CHECK(read(done[0], ticket, 1));
		CHECK(write(child, "hello", 5));
		EXPECT_EQ(recv(fd, ticket, 5, MSG_WAITALL), 5);
	}
	kill(pid, SIGKILL);
	carry(fd, child);
	close(fd);
	close(child);
	close(l);
	agent_close(&agent);
}

/* Children that the agent has count in the backlog; who is done first is accepted first. */
TEST(backlog)
{
	struct end_options opt = fresh();
	struct agent agent = agent_here();
	int l = listener(1), fd[3], child, i;
	uint64_t full = stat_of("rx_drop_backlog");
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	struct agent_job job[3];

	for (i = 0; i < 3; i++) {
		fd[i] = CHECK(tls_socket('a', &opt));
		ASSERT_EQ(end_connect(fd[i], 'b', false, end_port(l)), 0);
	}
	for (i = 0; i < 2; i++) {
		if (!fork())
			_exit(!!tls_client(fd[i], &opt));
		ASSERT_EQ(agent_accept_wait(&agent, &job[i]), 0);
	}
	if (!fork())
		_exit(!!tls_client(fd[2], &opt));
	while (stat_of("rx_drop_backlog") == full)
		;
	EXPECT_EQ(agent_accept(&agent, &job[2]), -EAGAIN);
	EXPECT_EQ(tls_server(job[1].fd, &opt, 0), 0);
	child = CHECK(accept(l, (struct sockaddr *)&name, &len));
	EXPECT_EQ(ntohs(name.sin_port), end_port(fd[1]));
	close(child);
	/* Its client repeats what was not answered. */
	ASSERT_EQ(agent_accept_wait(&agent, &job[2]), 0);
	EXPECT_EQ(ready(l, POLLIN, 0), 0);
	for (i = 0; i < 3; i++) {
		close(job[i].fd);
		close(fd[i]);
	}
	close(l);
	agent_close(&agent);
}

#define MANY	50

TEST_TIMEOUT(many, 240)
{
	int l = listener(MANY), fd[MANY], n = tap_short() ? 20 : MANY, i, child;
	struct end_options opt = fresh();
	struct agent_daemon *daemon = agent_start(&opt);

	ASSERT(daemon);
	for (i = 0; i < n; i++) {
		fd[i] = client(SOCK_NONBLOCK, 120000);
		EXPECT_EQ(end_connect(fd[i], 'b', false, end_port(l)), -EINPROGRESS);
	}
	for (i = 0; i < n; i++) {
		child = CHECK(accept(l, NULL, NULL));
		CHECK(write(child, "hello", 5));
		close(child);
	}
	for (i = 0; i < n; i++) {
		char buf[5];

		EXPECT(ready(fd[i], POLLIN, 60000) & POLLIN);
		EXPECT_EQ(recv(fd[i], buf, 5, 0), 5);
		close(fd[i]);
	}
	close(l);
	agent_stop(daemon);
}

/* Both take who may administer the network. */
TEST(permission)
{
	struct agent_job job;
	struct agent agent;

	CHECK(setresuid(65534, 65534, 65534));
	ASSERT_EQ(agent_open(&agent), 0);
	EXPECT_EQ(agent_join(&agent), -EPERM);
	EXPECT_EQ(agent_accept(&agent, &job), -EPERM);
	EXPECT_EQ(agent_host_key(&agent, "0123456789abcdef0123456789abcdef", 32), -EPERM);
	agent_close(&agent);
}

TEST(host_key)
{
	struct agent agent;
	int err;

	ASSERT_EQ(agent_open(&agent), 0);
	EXPECT_EQ(agent_host_key(&agent, "0123456789abcdef", 16), -ERANGE);
	EXPECT_EQ(agent_host_key(&agent, NULL, -1), -EINVAL);
	/* Another test may have given it. */
	err = agent_host_key(&agent, "0123456789abcdef0123456789abcdef", 32);
	EXPECT(!err || err == -EBUSY);
	EXPECT_EQ(agent_host_key(&agent, "0123456789abcdef0123456789abcdef", 32), -EBUSY);
	agent_close(&agent);
	CHECK(unshare(CLONE_NEWNET));
	ASSERT_EQ(agent_open(&agent), 0);
	EXPECT_EQ(agent_host_key(&agent, "0123456789abcdef0123456789abcdef", 32), -EPERM);
	agent_close(&agent);
}

static bool nothing_left(void *arg)
{
	return !stat_of("sockets") && !stat_of("connections") && !stat_of("orphans");
}

TEST(leak)
{
	EXPECT(wait_for(nothing_left, NULL));
}
