// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/* Scenes: a descriptor in several hands. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "contract.h"

/* F56 */
SCENE(forked)
{
	struct ends e = join();
	char data[16] = {};
	int status;

	if (!fork()) {
		send(e.client, "child", 5, 0);
		_exit(recv(e.client, data, 4, MSG_WAITALL) == 4 ? 0 : 1);
	}
	say("recv", recv(e.server, data, 5, MSG_WAITALL));
	say_text("data", "%s", data);
	send(e.server, "back", 4, 0);
	wait(&status);
	say("child", WEXITSTATUS(status));
	/* The child's close() was not the last one. */
	say("send", send(e.client, "parent", 6, 0));
	say("recv-parent", recv(e.server, data, 6, MSG_WAITALL));
	close(e.client);
	say("end", recv(e.server, data, 1, 0));
}

SCENE(forked_listener)
{
	int listener = open_listener(4), fd, status;

	if (!fork()) {
		int server = accept(listener, NULL, NULL);

		_exit(server < 0 || write(server, "child", 5) != 5);
	}
	fd = open_socket(0);
	bind_to(fd, 'a', 0);
	say("connect", connect_to(fd, 'b', port_of(listener)));
	char data[8] = {};

	say("recv", recv(fd, data, 5, MSG_WAITALL));
	wait(&status);
	say("child", WEXITSTATUS(status));
	say("end", recv(fd, data, 5, 0));
	/* The listener is still there. */
	fd = open_socket(0);
	bind_to(fd, 'a', 0);
	say("again", connect_to(fd, 'b', port_of(listener)));
	say("accept", accept(listener, NULL, NULL) >= 0);
}

SCENE(duplicated)
{
	struct ends e = join();
	int two = dup(e.client), high = fcntl(e.client, F_DUPFD_CLOEXEC, 100);
	char data[16];

	say("dup", two >= 0);
	say("dupfd", high >= 100);
	close(e.client);
	say("send", send(two, "a", 1, 0));
	non_blocking(two);
	say("flag-shared", !!(fcntl(high, F_GETFL) & O_NONBLOCK));
	close(two);
	say("send-high", send(high, "b", 1, 0));
	say("recv", recv(e.server, data, 2, MSG_WAITALL));
	close(high);
	say("end", recv(e.server, data, 1, 0));
}

static int pass(int unix_fd, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(unix_fd, &msg, 0);
}

static int take(int unix_fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(unix_fd, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

SCENE(passed)
{
	struct ends e = join();
	int sv[2], fd;
	char data[16];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
		give_up("socketpair");
	say("pass", pass(sv[0], e.client));
	close(e.client);
	fd = take(sv[1]);
	say("taken", fd >= 0);
	say("send", send(fd, "abc", 3, 0));
	say("recv", recv(e.server, data, 3, MSG_WAITALL));
	say("pass-listener", pass(sv[0], e.listener));
	close(e.listener);
	fd = take(sv[1]);
	e.client = open_socket(0);
	bind_to(e.client, 'a', 0);
	say("connect", connect_to(e.client, 'b', port_of(fd)));
	say("accept", accept(fd, NULL, NULL) >= 0);
}

SCENE(flags)
{
	struct ends e = join();
	int one = 1, zero = 0;
	char c;

	say("fionbio", ioctl(e.client, FIONBIO, &one));
	say("is-set", !!(fcntl(e.client, F_GETFL) & O_NONBLOCK));
	say("recv", recv(e.client, &c, 1, 0));
	say("fionbio-off", ioctl(e.client, FIONBIO, &zero));
	say("is-off", !!(fcntl(e.client, F_GETFL) & O_NONBLOCK));
	say("fioclex", ioctl(e.client, FIOCLEX));
	say("cloexec", fcntl(e.client, F_GETFD));
	say("append", fcntl(e.client, F_SETFL, O_APPEND));
	say("getfl", fcntl(e.client, F_GETFL));
	say("setpipe", fcntl(e.client, F_GETPIPE_SZ));
}
