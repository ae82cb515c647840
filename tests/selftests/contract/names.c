// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/* Scenes: socket(), bind(), names, and calls on a socket that has no connection. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <linux/sockios.h>

#include "contract.h"

static int raw_socket(int type, int protocol)
{
	if (stage_qrdma)
		return socket(AF_QRDMA, type, protocol ?: stage_six);
	return socket(stage_six ? AF_INET6 : AF_INET, type, protocol);
}

SCENE(socket_arguments)
{
	int fd, sv[2];

	say("stream", raw_socket(SOCK_STREAM, 0) >= 0 ? 0 : -1);
	say("dgram", raw_socket(SOCK_DGRAM, 0) >= 0 ? 0 : -1);
	say("seqpacket", raw_socket(SOCK_SEQPACKET, 0));
	say("rdm", raw_socket(SOCK_RDM, 0));
	say("type-0", raw_socket(0, 0));
	say("type-11", raw_socket(11, 0));
	say("flag-0x1000", raw_socket(SOCK_STREAM | 0x1000, 0));
	say("protocol-negative", raw_socket(SOCK_STREAM, -1));
	say("protocol-300", raw_socket(SOCK_STREAM, 300));
	say("protocol-udp", raw_socket(SOCK_STREAM, IPPROTO_UDP));
	fd = raw_socket(SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	say("nonblock", !!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	say("cloexec", fcntl(fd, F_GETFD));
	say("access-mode", fcntl(fd, F_GETFL) & O_ACCMODE);
	say("socketpair", socketpair(stage_qrdma ? AF_QRDMA : stage_six ? AF_INET6 : AF_INET, SOCK_STREAM,
				     stage_qrdma ? stage_six : 0, sv));
}

static int number(int fd, int level, int name)
{
	int val = -2;
	socklen_t len = sizeof(val);

	return getsockopt(fd, level, name, &val, &len) ? -1 : val;
}

SCENE(new_socket)
{
	int fd = open_socket(0);

	say("type", number(fd, SOL_SOCKET, SO_TYPE));
	say("domain", number(fd, SOL_SOCKET, SO_DOMAIN));
	say("protocol", number(fd, SOL_SOCKET, SO_PROTOCOL));
	say("acceptconn", number(fd, SOL_SOCKET, SO_ACCEPTCONN));
	say("error", number(fd, SOL_SOCKET, SO_ERROR));
	say_bits("bits", bits(fd));
}

SCENE(unconnected)
{
	int fd = open_socket(O_NONBLOCK), n = -3;
	union addr addr;
	socklen_t len;
	char c = 0;

	say("recv", recv(fd, &c, 1, 0));
	say("recv-peek", recv(fd, &c, 1, MSG_PEEK));
	say("recv-oob", recv(fd, &c, 1, MSG_OOB));
	say("recv-errqueue", recv(fd, &c, 1, MSG_ERRQUEUE));
	say("recv-0", recv(fd, &c, 0, 0));
	say("read", read(fd, &c, 1));
	say("send", send(fd, &c, 1, MSG_NOSIGNAL));
	say("send-0", send(fd, &c, 0, MSG_NOSIGNAL));
	say("shutdown-rd", shutdown(fd, SHUT_RD));
	say("shutdown-wr", shutdown(fd, SHUT_WR));
	say("shutdown-rdwr", shutdown(fd, SHUT_RDWR));
	say("shutdown-3", shutdown(fd, 3));
	say("shutdown-negative", shutdown(fd, -1));
	len = sizeof(addr);
	say("getpeername", getpeername(fd, &addr.sa, &len));
	len = sizeof(addr);
	say("getsockname", getsockname(fd, &addr.sa, &len));
	say("getsockname-len", len);
	say("getsockname-family", addr.sa.sa_family);
	say("getsockname-port", port_of(fd));
	len = -1;
	say("getsockname-len-negative", getsockname(fd, &addr.sa, &len));
	len = 3;
	say("getsockname-short", getsockname(fd, &addr.sa, &len));
	say("getsockname-short-len", len);
	say("getsockname-fault", getsockname(fd, (void *)1, &len));
	say("accept", accept(fd, NULL, NULL));
	say("accept4-flags", accept4(fd, NULL, NULL, 0x1000));
	say("fionread", ioctl(fd, FIONREAD, &n));
	say("fionread-n", n);
	say("outq", ioctl(fd, SIOCOUTQ, &n));
	say("outq-n", n);
	say("outqnsd", ioctl(fd, SIOCOUTQNSD, &n));
	say("outqnsd-n", n);
	n = -3;
	say("atmark", ioctl(fd, SIOCATMARK, &n));
	say("atmark-n", n);
	say("ioctl-unknown", ioctl(fd, 0x12345678, &n));
	say("fionread-fault", ioctl(fd, FIONREAD, (void *)1));
	say_bits("bits", bits(fd));
}

SCENE(files)
{
	int fd = open_socket(0);
	struct stat st;
	char c = 0;

	signal(SIGPIPE, SIG_IGN);
	say("fstat", fstat(fd, &st));
	say("is-socket", !!S_ISSOCK(st.st_mode));
	say("lseek", lseek(fd, 0, SEEK_SET));
	say("pread", pread(fd, &c, 1, 0));
	say("pwrite", pwrite(fd, &c, 1, 0));
	say("fsync", fsync(fd));
	say("ftruncate", ftruncate(fd, 1));
	say("read-0", read(fd, &c, 0));
	say("write-0", write(fd, &c, 0));
}

static void on_pipe(int sig)
{
	say("sigpipe-came", sig == SIGPIPE);
}

SCENE(sigpipe)
{
	int fd = open_socket(0);

	signal(SIGPIPE, on_pipe);
	say("send", send(fd, "x", 1, 0));
	say("send-nosignal", send(fd, "x", 1, MSG_NOSIGNAL));
}

SCENE(bind_arguments)
{
	int fd = open_socket(0), other;
	union addr addr;

	end_addr(&addr, 'a', stage_six, 0);
	say("len-0", bind(fd, &addr.sa, 0));
	say("len-1", bind(fd, &addr.sa, 1));
	say("len-2", bind(fd, &addr.sa, 2));
	say("len-15", bind(fd, &addr.sa, 15));
	say("len-129", bind(fd, &addr.sa, 129));
	say("fault", bind(fd, (void *)1, sizeof(addr)));
	end_addr(&addr, 'a', !stage_six, 0);
	say("other-family", bind(fd, &addr.sa, sizeof(addr)));
	addr.sa.sa_family = AF_UNIX;
	say("unix", bind(fd, &addr.sa, sizeof(addr)));
	end_addr(&addr, 'a', stage_six, 0);
	addr.sa.sa_family = AF_UNSPEC;
	say("unspec", bind(fd, &addr.sa, sizeof(addr)));
	memset(&addr, 0, sizeof(addr));
	other = open_socket(0);
	say("unspec-any", bind(other, &addr.sa, sizeof(addr)));
	end_addr(&addr, 'a', stage_six, 0);
	if (stage_six)
		inet_pton(AF_INET6, "2001:db8::1", &addr.in6.sin6_addr);
	else
		inet_pton(AF_INET, "192.0.2.1", &addr.in.sin_addr);
	say("not-ours", bind(fd, &addr.sa, end_addr_len(&addr)));
	if (stage_six)
		inet_pton(AF_INET6, "ff02::1", &addr.in6.sin6_addr);
	else
		inet_pton(AF_INET, "224.0.0.1", &addr.in.sin_addr);
	say("multicast", bind(open_socket(0), &addr.sa, end_addr_len(&addr)));
	if (stage_six)
		inet_pton(AF_INET6, "fe80::1", &addr.in6.sin6_addr);
	else
		inet_pton(AF_INET, "255.255.255.255", &addr.in.sin_addr);
	say("link-local-or-broadcast", bind(open_socket(0), &addr.sa, end_addr_len(&addr)));
	say("good", bind_to(fd, 'a', 0));
	say("twice", bind_to(fd, 'a', 0));
	say("longer", ({ end_addr(&addr, 'a', stage_six, 0); bind(open_socket(0), &addr.sa, sizeof(addr)); }));
}

SCENE(bind_privileged)
{
	int fd = open_socket(0), status;

	if (!fork())
		_exit(setuid(65534) ? 99 : bind_to(fd, 'a', 80) ? errno : 0);
	wait(&status);
	say_err("nobody", -WEXITSTATUS(status));
	say("root", bind_to(fd, 'a', 80));
}

/* F38 */
SCENE(bind_zero)
{
	int fd = open_socket(0), second = open_socket(0);
	union addr addr, want;
	socklen_t len = sizeof(addr);

	say("bind", bind_to(fd, 'a', 0));
	say("port-is-there", port_of(fd) >= 1024);
	say("getsockname", getsockname(fd, &addr.sa, &len));
	end_addr(&want, 'a', stage_six, port_of(fd));
	say("same", !memcmp(&addr, &want, len));
	say("second", bind_to(second, 'a', port_of(fd)));
	close(fd);
	say("after-close", bind_to(second, 'a', ntohs(stage_six ? want.in6.sin6_port : want.in.sin_port)));
	fd = open_socket(0);
	say("listen-unbound", listen(fd, 1));
	say("listen-has-port", port_of(fd) > 0);
	say("bind-after-listen", bind_to(fd, 'a', 0));
	say_bits("bits", bits(second));
}

/*
 * F37: which two go together
 */

static const struct place {
	const char *name;
	const char *text;
	bool six;
	bool only;	/* IPV6_V6ONLY */
} places[] = {
	{ "any4", "0.0.0.0", false, false },
	{ "a4", "10.9.0.1", false, false },
	{ "b4", "10.9.0.2", false, false },
	{ "any6", "::", true, false },
	{ "only6", "::", true, true },
	{ "a6", "fd09::1", true, false },
	{ "many4", "::ffff:0.0.0.0", true, false },
	{ "ma4", "::ffff:10.9.0.1", true, false },
};

#define PLACES	(int)(sizeof(places) / sizeof(places[0]))

/* Return: descriptor, -errno. */
static int placed(const struct place *p, int port, int option)
{
	int fd = open_socket_of(p->six, 0), one = 1, err;
	union addr addr = {};

	if (p->only)
		setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (option && setsockopt(fd, SOL_SOCKET, option, &one, sizeof(one)))
		give_up("option");
	if (p->six) {
		addr.in6.sin6_family = AF_INET6;
		addr.in6.sin6_port = htons(port);
		inet_pton(AF_INET6, p->text, &addr.in6.sin6_addr);
	} else {
		addr.in.sin_family = AF_INET;
		addr.in.sin_port = htons(port);
		inet_pton(AF_INET, p->text, &addr.in.sin_addr);
	}
	err = bind(fd, &addr.sa, end_addr_len(&addr)) ? -errno : 0;
	if (err)
		close(fd);
	return err ?: fd;
}

/* A port that nobody has at any address, nor a connection of before that is on its way out. */
static int free_port(void)
{
	const struct place all = { .name = "all", .text = "::", .six = true };
	int fd = placed(&all, 0, 0), port;

	if (fd < 0)
		give_up("port");
	port = port_of(fd);
	close(fd);
	return port;
}

static void bind_two(const struct place *one, const struct place *two, int option, bool listening)
{
	static const char *const marks[] = { [0] = "", [SO_REUSEADDR] = "+reuse" };
	int first = placed(one, free_port(), option), second;
	char label[64];

	if (first < 0)
		give_up(one->name);
	/* Where the answer of TCP depends on the kernel: 6.1 lost a conflict here for a time. */
	if (!strcmp(one->name, "many4") && !strcmp(two->name, "ma4"))
		return;
	if (listening && listen(first, 1))
		give_up("listen");
	second = placed(two, port_of(first), option);
	snprintf(label, sizeof(label), "%s-%s%s%s", one->name, two->name, marks[option], listening ? "+listen" : "");
	say_err(label, second < 0 ? second : 0);
	if (second >= 0 && listening) {
		strcat(label, "-both");
		say(label, listen(second, 1));
	}
	if (second >= 0)
		close(second);
	close(first);
}

/* Both families are in it: once is enough. */
SCENE(bind_pairs)
{
	for (int i = 0; i < PLACES * PLACES && !stage_six; i++)
		bind_two(&places[i / PLACES], &places[i % PLACES], 0, false);
}

SCENE(bind_pairs_reuse)
{
	for (int i = 0; i < PLACES * PLACES && !stage_six; i++) {
		if (i % 3 && i / PLACES != i % PLACES)
			continue;
		bind_two(&places[i / PLACES], &places[i % PLACES], SO_REUSEADDR, false);
		bind_two(&places[i / PLACES], &places[i % PLACES], SO_REUSEADDR, true);
	}
}

SCENE(v6only)
{
	int fd = open_socket(0), one = 1, zero = 0;

	say("set", setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &one, sizeof(one)));
	say("get", number(fd, SOL_IPV6, IPV6_V6ONLY));
	say("short", setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &one, 2));
	say("bind", bind_to(fd, 'a', 0));
	say("after-bind", setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)));
	say("get-after-bind", number(fd, SOL_IPV6, IPV6_V6ONLY));
}
