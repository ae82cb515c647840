// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/* Scenes: shutdown(), close(), aborts. */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <linux/sockios.h>

#include "contract.h"

SCENE(half_close)
{
	struct ends e = join();
	union addr addr;
	socklen_t len = sizeof(addr);
	char data[16] = {};
	int n;

	send(e.client, "hello", 5, 0);
	say("shutdown", shutdown(e.client, SHUT_WR));
	say_bits("own-bits", bits(e.client));
	say("send-after", send(e.client, "x", 1, MSG_NOSIGNAL));
	say("shutdown-again", shutdown(e.client, SHUT_WR));
	say_bits("peer-bits", bits_until(e.server, POLLIN | POLLRDHUP));
	say("peer-fionread", ({ ioctl(e.server, FIONREAD, &n); n; }));
	say("peer-recv", recv(e.server, data, 16, 0));
	say("peer-end", recv(e.server, data, 16, 0));
	say("peer-end-again", recv(e.server, data, 16, 0));
	say("peer-peek-end", recv(e.server, data, 16, MSG_PEEK));
	say("peer-waitall-end", recv(e.server, data, 16, MSG_WAITALL));
	say_bits("peer-bits-at-end", bits(e.server));
	say("peer-fionread-end", ({ ioctl(e.server, FIONREAD, &n); n; }));
	say("peer-send", send(e.server, "reply", 5, 0));
	say("recv", ({ readable_until(e.client, 5); recv(e.client, data, 16, 0); }));
	say("getpeername", getpeername(e.client, &addr.sa, &len));
	say("peer-shutdown", shutdown(e.server, SHUT_WR));
	say_bits("own-bits-at-end", bits_until(e.client, POLLHUP));
	say_bits("peer-bits-both", bits_until(e.server, POLLHUP));
	say("recv-end", recv(e.client, data, 16, 0));
	say_err("error", error_of(e.client));
	say_err("peer-error", error_of(e.server));
	say("send-at-end", send(e.client, "x", 1, MSG_NOSIGNAL));
	say("peer-send-at-end", send(e.server, "x", 1, MSG_NOSIGNAL));
}

static void count_pipe(int sig)
{
	say("sigpipe", sig == SIGPIPE);
}

SCENE(shutdown_write_signals)
{
	struct ends e = join();

	signal(SIGPIPE, count_pipe);
	shutdown(e.client, SHUT_WR);
	say("send", send(e.client, "x", 1, 0));
	say("write", write(e.client, "x", 1));
}

SCENE(shutdown_read)
{
	struct ends e = join();
	char data[16];

	say("shutdown", shutdown(e.server, SHUT_RD));
	say_bits("bits", bits(e.server));
	say("recv", recv(e.server, data, 16, 0));
	/* The peer is not told. */
	say("peer-send", send(e.client, "hello", 5, 0));
	say_bits("peer-bits", bits(e.client));
	say("send", send(e.server, "back", 4, 0));
	say("peer-recv", ({ readable_until(e.client, 4); recv(e.client, data, 16, 0); }));
	say("again", shutdown(e.server, SHUT_RD));
	say_err("error", error_of(e.server));
}

SCENE(shutdown_both)
{
	struct ends e = join();
	char data[16];

	say("shutdown", shutdown(e.client, SHUT_RDWR));
	say_bits("bits", bits(e.client));
	say("recv", recv(e.client, data, 16, 0));
	say("send", send(e.client, "x", 1, MSG_NOSIGNAL));
	say_bits("peer-bits", bits_until(e.server, POLLRDHUP));
	say("peer-recv", recv(e.server, data, 16, 0));
	say("connect", connect_to(e.client, 'b', port_of(e.listener)));
	say("shutdown-bad", shutdown(e.client, 7));
}

SCENE(peer_closes)
{
	struct ends e = join();
	union addr addr;
	socklen_t len = sizeof(addr);
	char data[16];

	send(e.server, "bye", 3, 0);
	readable_until(e.client, 3);
	close(e.server);
	/* FIN comes first, the end of the connection may come a moment later. */
	say_bits("bits", bits_until(e.client, stage_qrdma ? POLLHUP : POLLRDHUP));
	say("recv", recv(e.client, data, 16, 0));
	say("recv-end", recv(e.client, data, 16, 0));
	say_err("error", error_of(e.client));
	say("getpeername", getpeername(e.client, &addr.sa, &len));
	say("shutdown", shutdown(e.client, SHUT_WR));
}

SCENE(send_to_closed)
{
	struct ends e = join();
	char data[16];

	close(e.server);
	bits_until(e.client, stage_qrdma ? POLLHUP : POLLRDHUP);
	say("send", send(e.client, "x", 1, MSG_NOSIGNAL));
	say_bits("bits", bits_until(e.client, POLLHUP));
	say("send-again", send(e.client, "x", 1, MSG_NOSIGNAL));
	say("send-then", send(e.client, "x", 1, MSG_NOSIGNAL));
	say("recv", recv(e.client, data, 16, MSG_DONTWAIT));
	say_err("error", error_of(e.client));
}

/* Unread bytes make close() an abort. */
SCENE(close_with_unread)
{
	struct ends e = join();
	union addr addr;
	socklen_t len = sizeof(addr);
	char data[16];

	send(e.client, "hello", 5, 0);
	readable_until(e.server, 5);
	close(e.server);
	say_bits("bits", bits_until(e.client, POLLERR | POLLHUP));
	say("recv", recv(e.client, data, 16, MSG_DONTWAIT));
	say("recv-again", recv(e.client, data, 16, MSG_DONTWAIT));
	say("send", send(e.client, "x", 1, MSG_NOSIGNAL));
	say_bits("bits-then", bits(e.client));
	say("getpeername", getpeername(e.client, &addr.sa, &len));
	say("shutdown", shutdown(e.client, SHUT_RDWR));
	say("outq", ({ int n; ioctl(e.client, SIOCOUTQ, &n) ? -1 : n; }));
}

/* F50 */
SCENE(linger_zero)
{
	struct ends e = join();
	struct linger linger = { 1, 0 };
	char data[16];

	say("set", setsockopt(e.server, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	say("close", close(e.server));
	say_bits("bits", bits_until(e.client, POLLERR));
	say_err("error", error_of(e.client));
	say_err("error-again", error_of(e.client));
	say_bits("bits-then", bits(e.client));
	say("recv", recv(e.client, data, 16, MSG_DONTWAIT));
}

SCENE(linger_zero_send)
{
	struct ends e = join();
	struct linger linger = { 1, 0 };

	setsockopt(e.server, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(e.server);
	bits_until(e.client, POLLERR);
	say("send", send(e.client, "x", 1, MSG_NOSIGNAL));
	say("send-again", send(e.client, "x", 1, MSG_NOSIGNAL));
}

SCENE(linger_long)
{
	struct ends e = join();
	struct linger linger = { 1, 5 };
	char data[16] = {};

	setsockopt(e.server, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	send(e.server, "last words", 10, 0);
	say("close", close(e.server));
	say("recv", recv(e.client, data, 10, MSG_WAITALL));
	say_text("data", "%s", data);
	say("end", recv(e.client, data, 10, 0));
}

SCENE(unread_then_reset)
{
	struct ends e = join();
	struct linger linger = { 1, 0 };
	char data[16];

	send(e.server, "last", 4, 0);
	readable_until(e.client, 4);
	setsockopt(e.server, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(e.server);
	say_bits("bits", bits_until(e.client, POLLERR));
	say("recv", recv(e.client, data, 16, MSG_DONTWAIT));
	say("recv-again", recv(e.client, data, 16, MSG_DONTWAIT));
}
