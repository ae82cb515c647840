// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/* Scenes: poll(), select(), epoll, signals of readiness. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>

#include "contract.h"

static void say_epoll(const char *label, int ep)
{
	struct epoll_event ev = {};
	int n = epoll_wait(ep, &ev, 1, 0);
	char name[64];

	say(label, n);
	if (n > 0) {
		snprintf(name, sizeof(name), "%s-bits", label);
		say_bits(name, ev.events & 0x3fff);
	}
}

static int watch(int ep, int op, int fd, int events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };

	return epoll_ctl(ep, op, fd, &ev);
}

#define ALL	(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI)

SCENE(poll_bits)
{
	struct ends e = join();
	struct pollfd p = { .fd = e.client, .events = POLLIN };
	fd_set in, out, ex;
	struct timeval t = {};

	say("poll-none", poll(&p, 1, 0));
	p.events = POLLOUT;
	say("poll-out", poll(&p, 1, 0));
	say_bits("idle", bits(e.client));
	send(e.server, "x", 1, 0);
	readable_until(e.client, 1);
	say_bits("data", bits(e.client));
	p.events = 0;
	say("poll-nothing-asked", poll(&p, 1, 0));
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&ex);
	FD_SET(e.client, &in);
	FD_SET(e.client, &out);
	FD_SET(e.client, &ex);
	say("select", select(e.client + 1, &in, &out, &ex, &t));
	say("select-in", FD_ISSET(e.client, &in));
	say("select-out", FD_ISSET(e.client, &out));
	say("select-ex", FD_ISSET(e.client, &ex));
	close(e.client);
	p.events = POLLIN;
	say("poll-closed", poll(&p, 1, 0));
	say_bits("closed", p.revents);
}

/* F48 */
SCENE(epoll_level)
{
	struct ends e = join();
	int ep = epoll_create1(0), other = epoll_create1(0), outer = epoll_create1(0);
	char c;

	say("add", watch(ep, EPOLL_CTL_ADD, e.client, ALL));
	say("add-again", watch(ep, EPOLL_CTL_ADD, e.client, ALL));
	say("add-other", watch(other, EPOLL_CTL_ADD, e.client, EPOLLIN));
	say("nest", watch(outer, EPOLL_CTL_ADD, other, EPOLLIN));
	say_epoll("idle", ep);
	say_epoll("idle-nested", outer);
	send(e.server, "x", 1, 0);
	readable_until(e.client, 1);
	say_epoll("data", ep);
	say_epoll("data-again", ep);
	say_epoll("data-nested", outer);
	recv(e.client, &c, 1, 0);
	say_epoll("read", ep);
	say_epoll("read-nested", outer);
	say("modify", watch(ep, EPOLL_CTL_MOD, e.client, EPOLLIN));
	say_epoll("modified", ep);
	say("delete", watch(ep, EPOLL_CTL_DEL, e.client, 0));
	shutdown(e.server, SHUT_WR);
	bits_until(e.client, POLLRDHUP);
	say_epoll("deleted", ep);
	say_epoll("end-nested", outer);
}

SCENE(epoll_edge)
{
	struct ends e = join();
	int ep = epoll_create1(0);
	char data[8];

	say("add", watch(ep, EPOLL_CTL_ADD, e.client, ALL | EPOLLET));
	say_epoll("first", ep);
	say_epoll("first-again", ep);
	send(e.server, "x", 1, 0);
	readable_until(e.client, 1);
	say_epoll("data", ep);
	say_epoll("data-again", ep);
	send(e.server, "y", 1, 0);
	readable_until(e.client, 2);
	say_epoll("more", ep);
	recv(e.client, data, 8, 0);
	say_epoll("read", ep);
	shutdown(e.server, SHUT_WR);
	bits_until(e.client, POLLRDHUP);
	say_epoll("end", ep);
	say_epoll("end-again", ep);
}

SCENE(epoll_one_shot)
{
	struct ends e = join();
	int ep = epoll_create1(0);

	say("add", watch(ep, EPOLL_CTL_ADD, e.client, EPOLLIN | EPOLLONESHOT));
	send(e.server, "x", 1, 0);
	readable_until(e.client, 1);
	say_epoll("data", ep);
	say_epoll("data-again", ep);
	send(e.server, "y", 1, 0);
	readable_until(e.client, 2);
	say_epoll("more", ep);
	say("modify", watch(ep, EPOLL_CTL_MOD, e.client, EPOLLIN | EPOLLONESHOT));
	say_epoll("modified", ep);
}

SCENE(epoll_connecting)
{
	int listener = open_listener(4), fd = open_socket(O_NONBLOCK), ep = epoll_create1(0);
	struct epoll_event ev = {};

	bind_to(fd, 'a', 0);
	say("add", watch(ep, EPOLL_CTL_ADD, fd, EPOLLOUT | EPOLLET));
	say_epoll("unconnected", ep);
	say("connect", connect_to(fd, 'b', port_of(listener)));
	say("wait", epoll_wait(ep, &ev, 1, 5000));
	say_bits("bits", ev.events);
	say_err("error", error_of(fd));
	say("modify", watch(ep, EPOLL_CTL_MOD, fd, ALL));
	say_epoll("connected", ep);
}

SCENE(epoll_listener)
{
	int listener = open_listener(4), ep = epoll_create1(0), fd;
	struct epoll_event ev = {};

	say("add", watch(ep, EPOLL_CTL_ADD, listener, EPOLLIN | EPOLLEXCLUSIVE));
	say_epoll("idle", ep);
	fd = open_socket(O_NONBLOCK);
	bind_to(fd, 'a', 0);
	connect_to(fd, 'b', port_of(listener));
	say("wait", epoll_wait(ep, &ev, 1, 5000));
	say_bits("bits", ev.events);
	say("accept", accept(listener, NULL, NULL) >= 0);
	say_epoll("accepted", ep);
}

static volatile int ios;

static void on_io(int sig)
{
	ios++;
}

SCENE(signal_io)
{
	struct ends e = join();
	int one = 1, zero = 0;

	signal(SIGIO, on_io);
	say("setown", fcntl(e.client, F_SETOWN, getpid()));
	say("getown", fcntl(e.client, F_GETOWN) == getpid());
	say("fioasync", ioctl(e.client, FIOASYNC, &one));
	say("flag", !!(fcntl(e.client, F_GETFL) & O_ASYNC));
	send(e.server, "x", 1, 0);
	readable_until(e.client, 1);
	say("came", ios > 0);
	say("off", ioctl(e.client, FIOASYNC, &zero));
	say("flag-off", !!(fcntl(e.client, F_GETFL) & O_ASYNC));
}
