// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/* Scenes: bytes, and the flags of calls that move them. */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <linux/sockios.h>

#include "contract.h"

SCENE(bytes)
{
	struct ends e = join();
	char data[64] = {};

	say("send", send(e.client, "hello world", 11, 0));
	say("readable", readable_until(e.server, 11));
	say_bits("bits", bits(e.server));
	say("recv", recv(e.server, data, 5, 0));
	say_text("data", "%s", data);
	say("recv-rest", recv(e.server, data, sizeof(data), 0));
	say("recv-none", recv(e.server, data, sizeof(data), MSG_DONTWAIT));
	say("write", write(e.server, "back", 4));
	say("readable-back", readable_until(e.client, 4));
	say("read", read(e.client, data, 64));
	say("send-0", send(e.client, "", 0, 0));
	say("recv-0", recv(e.server, data, 0, MSG_DONTWAIT));
	say("send-fault", send(e.client, (void *)1, 10, 0));
	send(e.client, "x", 1, 0);
	readable_until(e.server, 1);
	say("recv-0-with-data", recv(e.server, data, 0, MSG_DONTWAIT));
	say("recv-fault", recv(e.server, (void *)1, 1, 0));
	say("recv-after-fault", recv(e.server, data, 1, MSG_DONTWAIT));
}

/* F35: flags of send() */
SCENE(send_flags)
{
	static const struct {
		const char *name;
		int flag;
	} flags[] = {
		{ "dontroute", MSG_DONTROUTE }, { "dontwait", MSG_DONTWAIT }, { "eor", MSG_EOR },
		{ "waitall", MSG_WAITALL }, { "nosignal", MSG_NOSIGNAL }, { "confirm", MSG_CONFIRM },
		{ "more", MSG_MORE }, { "peek", MSG_PEEK }, { "trunc", MSG_TRUNC },
		{ "ctrunc", MSG_CTRUNC }, { "syn", MSG_SYN }, { "fin", MSG_FIN }, { "rst", MSG_RST },
		{ "errqueue", MSG_ERRQUEUE }, { "waitforone", MSG_WAITFORONE }, { "proxy", MSG_PROXY },
		{ "fastopen", MSG_FASTOPEN }, { "zerocopy", MSG_ZEROCOPY }, { "cmsg-cloexec", MSG_CMSG_CLOEXEC },
		{ "unknown", 0x00400000 },
	};
	struct ends e = join();
	int sum = 0;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		int n = send(e.client, "abc", 3, flags[i].flag);

		say(flags[i].name, n);
		if (n > 0)
			sum += n;
	}
	say("arrived", readable_until(e.server, sum) == sum);
}

SCENE(recv_flags)
{
	static const struct {
		const char *name;
		int flag;
	} flags[] = {
		{ "peek", MSG_PEEK }, { "dontroute", MSG_DONTROUTE }, { "dontwait", MSG_DONTWAIT },
		{ "eor", MSG_EOR }, { "waitall", MSG_WAITALL }, { "nosignal", MSG_NOSIGNAL },
		{ "confirm", MSG_CONFIRM }, { "more", MSG_MORE }, { "oob", MSG_OOB }, { "trunc", MSG_TRUNC },
		{ "errqueue", MSG_ERRQUEUE }, { "waitforone", MSG_WAITFORONE },
		{ "cmsg-cloexec", MSG_CMSG_CLOEXEC }, { "peek-trunc", MSG_PEEK | MSG_TRUNC },
		{ "peek-waitall", MSG_PEEK | MSG_WAITALL }, { "unknown", 0x00400000 },
	};
	struct ends e = join();
	char data[64], label[64];
	int n = 0;

	send(e.client, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", 52, 0);
	readable_until(e.server, 52);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		memset(data, '.', sizeof(data));
		say(flags[i].name, recv(e.server, data, 2, flags[i].flag));
		snprintf(label, sizeof(label), "%s-data", flags[i].name);
		say_text(label, "%.3s", data);
	}
	ioctl(e.server, FIONREAD, &n);
	say("left", n);
}

SCENE(peek)
{
	struct ends e = join();
	char data[8] = {};

	send(e.client, "abc", 3, 0);
	readable_until(e.server, 3);
	say("peek", recv(e.server, data, 8, MSG_PEEK));
	say("peek-again", recv(e.server, data, 8, MSG_PEEK));
	send(e.client, "def", 3, 0);
	readable_until(e.server, 6);
	say("peek-both", recv(e.server, data, 8, MSG_PEEK));
	say("peek-waitall-dontwait", recv(e.server, data, 8, MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT));
	say("waitall-dontwait", recv(e.server, data, 8, MSG_WAITALL | MSG_DONTWAIT));
	say("trunc-none", recv(e.server, data, 8, MSG_TRUNC | MSG_DONTWAIT));
}

/* Of kernel 6.9 and newer: each look begins where the last one ended. */
SCENE(peek_offset)
{
	struct ends e = join();
	char data[8] = {};
	int off = 1;

	send(e.client, "abcdef", 6, 0);
	readable_until(e.server, 6);
	say("set", setsockopt(e.server, SOL_SOCKET, SO_PEEK_OFF, &off, sizeof(off)));
	say("peek", recv(e.server, data, 2, MSG_PEEK));
	say_text("peek-data", "%.2s", data);
	say("peek-on", recv(e.server, data, 2, MSG_PEEK));
	say_text("peek-on-data", "%.2s", data);
	say("read", recv(e.server, data, 3, 0));
	say_text("read-data", "%.3s", data);
	say("peek-behind", recv(e.server, data, 8, MSG_PEEK | MSG_DONTWAIT));
	say_text("peek-behind-data", "%.1s", data);
	say("peek-end", recv(e.server, data, 8, MSG_PEEK | MSG_DONTWAIT));
	say("read-all", recv(e.server, data, 8, MSG_DONTWAIT));
}

/* F35: across packets */
SCENE(waitall)
{
	struct ends e = join();
	static char data[300000];
	ssize_t n = 0;

	if (!fork()) {
		while (n < (ssize_t)sizeof(data))
			n += write(e.client, data + n, sizeof(data) - n);
		_exit(0);
	}
	close(e.client);
	say("waitall", recv(e.server, data, 200000, MSG_WAITALL));
	say("waitall-end", recv(e.server, data, 200000, MSG_WAITALL));
	say("end", recv(e.server, data, 1, MSG_WAITALL));
}

SCENE(messages)
{
	struct ends e = join();
	char a[4] = "abc", b[4] = "def", control[64], got[8] = {};
	struct iovec iov[2] = { { a, 3 }, { b, 3 } }, in[2] = { { got, 2 }, { got + 2, 6 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	struct mmsghdr many[2] = {};
	struct sockaddr_storage name;
	struct cmsghdr *cmsg = (struct cmsghdr *)control;
	socklen_t len = sizeof(name);

	say("writev", writev(e.client, iov, 2));
	readable_until(e.server, 6);
	say("readv", readv(e.server, in, 2));
	say_text("data", "%.6s", got);
	say("sendmsg", sendmsg(e.client, &msg, 0));
	readable_until(e.server, 6);
	msg = (struct msghdr){ .msg_iov = in, .msg_iovlen = 2, .msg_name = &name, .msg_namelen = sizeof(name),
			       .msg_control = control, .msg_controllen = sizeof(control) };
	say("recvmsg", recvmsg(e.server, &msg, 0));
	say("recvmsg-namelen", msg.msg_namelen);
	say("recvmsg-controllen", msg.msg_controllen);
	say("recvmsg-flags", msg.msg_flags);
	/* The name is not looked at. */
	say("sendto", sendto(e.client, "x", 1, 0, (struct sockaddr *)&name, sizeof(name)));
	readable_until(e.server, 1);
	say("recvfrom", recvfrom(e.server, got, 1, 0, (struct sockaddr *)&name, &len));
	say("recvfrom-len", len);
	memset(control, 0, sizeof(control));
	cmsg->cmsg_len = CMSG_LEN(4);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = 99;
	msg = (struct msghdr){ .msg_iov = iov, .msg_iovlen = 1, .msg_control = control,
			       .msg_controllen = CMSG_SPACE(4) };
	say("cmsg-unknown", sendmsg(e.client, &msg, 0));
	cmsg->cmsg_type = SCM_RIGHTS;
	say("cmsg-rights", sendmsg(e.client, &msg, 0));
	cmsg->cmsg_level = SOL_TCP;
	say("cmsg-tcp", sendmsg(e.client, &msg, 0));
	cmsg->cmsg_len = 3;
	say("cmsg-short", sendmsg(e.client, &msg, 0));
	many[0].msg_hdr = (struct msghdr){ .msg_iov = iov, .msg_iovlen = 1 };
	many[1].msg_hdr = (struct msghdr){ .msg_iov = iov + 1, .msg_iovlen = 1 };
	say("sendmmsg", sendmmsg(e.client, many, 2, 0));
	say("recvmmsg", recvmmsg(e.server, many, 2, MSG_WAITFORONE, NULL) >= 1);
}

SCENE(buffers)
{
	struct ends e = join();
	static char sink[1 << 20];
	long sum, got = 0;
	int n = 0;
	ssize_t r;

	say("outq", ioctl(e.client, SIOCOUTQ, &n));
	say("outq-n", n);
	sum = fill(e.client);
	say("full", send(e.client, "x", 1, MSG_NOSIGNAL));
	say_bits("full-bits", bits(e.client));
	ioctl(e.client, SIOCOUTQ, &n);
	say("outq-some", n > 0);
	ioctl(e.client, SIOCOUTQNSD, &n);
	say("outqnsd-some", n > 0);
	while (got < sum) {
		r = recv(e.server, sink, sizeof(sink), 0);
		if (r <= 0)
			break;
		got += r;
	}
	say("all-came", got == sum);
	say_bits("empty-bits", bits_until(e.client, POLLOUT));
	for (int i = 0; i < 4000; i++) {
		ioctl(e.client, SIOCOUTQ, &n);
		if (!n)
			break;
		usleep(1000);
	}
	say("outq-in-the-end", n);
	ioctl(e.client, SIOCOUTQNSD, &n);
	say("outqnsd-in-the-end", n);
}

SCENE(timeouts)
{
	struct ends e = join();
	struct timeval t = { .tv_usec = 20000 };
	char c;

	say("set-rcvtimeo", setsockopt(e.server, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	say("recv", recv(e.server, &c, 1, 0));
	say("recv-waitall", ({ send(e.client, "x", 1, 0); char b[2]; recv(e.server, b, 2, MSG_WAITALL); }));
	fill(e.client);
	fcntl(e.client, F_SETFL, 0);
	say("set-sndtimeo", setsockopt(e.client, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)));
	say("send", send(e.client, "x", 1, MSG_NOSIGNAL));
	t.tv_usec = 1000000;
	say("bad-usec", setsockopt(e.client, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)));
	say("short", setsockopt(e.client, SOL_SOCKET, SO_SNDTIMEO, &t, 4));
}

SCENE(lowat)
{
	struct ends e = join();
	socklen_t len = sizeof(int);
	int n = 4;
	char data[8];

	say("set", setsockopt(e.server, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof(n)));
	send(e.client, "abc", 3, 0);
	say("three", readable_until(e.server, 3));
	say_bits("three-bits", bits(e.server));
	say("three-recv", recv(e.server, data, 8, MSG_DONTWAIT));
	send(e.client, "abcde", 5, 0);
	say("five", readable_until(e.server, 5));
	say_bits("five-bits", bits(e.server));
	say("five-recv", recv(e.server, data, 8, 0));
	n = 0;
	setsockopt(e.server, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof(n));
	getsockopt(e.server, SOL_SOCKET, SO_RCVLOWAT, &n, &len);
	say("zero-is", n);
}

SCENE(out_of_band)
{
	struct ends e = join();
	int n = -3, one = 1;
	char c;

	say("send", send(e.client, "u", 1, MSG_OOB));
	say("atmark", ioctl(e.server, SIOCATMARK, &n));
	say("oobinline", setsockopt(e.server, SOL_SOCKET, SO_OOBINLINE, &one, sizeof(one)));
	say("recv-oob-inline", recv(e.server, &c, 1, MSG_OOB));
}

SCENE(cork)
{
	struct ends e = join();
	int one = 1, zero = 0;

	say("set", setsockopt(e.client, IPPROTO_TCP, TCP_CORK, &one, sizeof(one)));
	say("send", send(e.client, "abc", 3, 0));
	say("send-more", send(e.client, "def", 3, MSG_MORE));
	say("clear", setsockopt(e.client, IPPROTO_TCP, TCP_CORK, &zero, sizeof(zero)));
	say("came", readable_until(e.server, 6));
}

static int file_of(size_t len)
{
	int fd = memfd_create("contract", 0);

	if (fd < 0 || ftruncate(fd, len))
		give_up("memfd");
	return fd;
}

SCENE(files_through)
{
	struct ends e = join();
	int file = file_of(10000), p[2], n;
	off_t off = 1000;
	char data[8];

	if (pipe(p))
		give_up("pipe");
	say("sendfile", sendfile(e.client, file, NULL, 3000));
	say("sendfile-offset", sendfile(e.client, file, &off, 3000));
	say("offset-then", off);
	off = 10000;
	say("sendfile-end", sendfile(e.client, file, &off, 100));
	say("came", readable_until(e.server, 6000));
	n = splice(e.server, NULL, p[1], NULL, 5000, 0);
	say("splice-out", n > 0);
	say("splice-in", splice(p[0], NULL, e.client, NULL, n, 0) == n);
	say("came-again", readable_until(e.server, 6000));
	say("splice-offset", ({ off_t o = 0; splice(e.server, &o, p[1], NULL, 1, 0); }));
	say("sendfile-from-socket", sendfile(file, e.server, NULL, 10));
	say("copy", ({ memset(data, 1, 8); recv(e.server, data, 8, 0); }));
	say("data-0", data[0]);
	while (recv(e.server, data, 8, MSG_DONTWAIT) > 0)
		;
	non_blocking(e.server);
	say("splice-none", splice(e.server, NULL, p[1], NULL, 100, SPLICE_F_NONBLOCK));
	say("mmap", mmap(NULL, 4096, PROT_READ, MAP_SHARED, e.client, 0) == MAP_FAILED ? -1 : 0);
}

SCENE(zero_copy)
{
	struct ends e = join();
	int one = 1;

	say("without-option", send(e.client, "abc", 3, MSG_ZEROCOPY));
	say("came", readable_until(e.server, 3));
	say("option", setsockopt(e.client, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)));
}
