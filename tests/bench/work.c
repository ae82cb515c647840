// SPDX-License-Identifier: GPL-2.0
/*
 * The works: what is measured, the same for all systems.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/qrdma.h>

#include "bench.h"

/* the most that the receiver asks for at once */
#define READ_MAX	(64 << 10)

static void *buffer_new(size_t len)
{
	void *buf = malloc(len);

	if (!buf)
		die("malloc", 12);
	memset(buf, 0x5a, len);
	return buf;
}

/*
 * AF_QRDMA's own counters, as the difference over the measured time.
 */
struct watch {
	struct qrdma_info info;
	bool there;
};

static void watch_begin(struct watch *w, const struct conn *c)
{
	socklen_t len = sizeof(w->info);

	memset(w, 0, sizeof(*w));
	w->there = !getsockopt(c->fd, SOL_QRDMA, QRDMA_INFO, &w->info, &len);
}

static void watch_end(struct watch *w, const struct conn *c)
{
	struct watch now;

	if (!w->there)
		return;
	watch_begin(&now, c);
	result_number("packets", now.info.packets_sent - w->info.packets_sent);
	result_number("answers", now.info.packets_received - w->info.packets_received);
	result_number("lost", now.info.packets_lost - w->info.packets_lost);
	result_number("spurious", now.info.packets_spurious - w->info.packets_spurious);
	result_number("datagram", now.info.max_datagram);
}

/* Messages go round over all connections: one reader knows where the next one comes. */
static void stream_send(const struct system *s, struct conn *c, const void *buf, uint64_t total)
{
	uint32_t i = 0;

	while (total) {
		size_t len = total < opt.size ? total : opt.size;

		conn_send(s, &c[i++ % opt.conns], buf, len);
		total -= len;
	}
}

static void stream_recv(const struct system *s, struct conn *c, void *buf, uint64_t total)
{
	uint32_t i = 0;

	if (opt.conns == 1) {
		while (total) {
			size_t len = total < READ_MAX ? total : READ_MAX;

			len = conn_recv(s, c, buf, len);
			if (!len)
				die("end of stream", 104);
			total -= len;
		}
		return;
	}
	while (total) {
		size_t len = total < opt.size ? total : opt.size;

		conn_recv_all(s, &c[i++ % opt.conns], buf, len);
		total -= len;
	}
}

/* A quarter goes before, for windows to grow and caches to fill. */
void work_stream(const struct system *s, enum side side)
{
	uint64_t warm = opt.total / 4 + (uint64_t)opt.size * opt.conns;
	struct conn *c = calloc(opt.conns, sizeof(*c));
	void *buf = buffer_new(opt.size > READ_MAX ? opt.size : READ_MAX);
	struct watch watch;
	uint32_t i;

	for (i = 0; i < opt.conns; i++)
		conn_open(s, &c[i], side, i);
	meet();
	if (side == SIDE_A) {
		stream_send(s, c, buf, warm);
		hear();
		watch_begin(&watch, &c[0]);
		measure_begin();
		stream_send(s, c, buf, opt.total);
		hear();
		measure_end();
		result_number("size", opt.size);
		result_number("bytes", opt.total);
		result_number("conns", opt.conns);
		if (opt.conns == 1)
			watch_end(&watch, &c[0]);
	} else {
		stream_recv(s, c, buf, warm);
		tell();
		stream_recv(s, c, buf, opt.total);
		tell();
	}
	meet();
	for (i = 0; i < opt.conns; i++)
		conn_close(s, &c[i]);
	free(buf);
	free(c);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void result_percentiles(uint64_t *ns, uint32_t n)
{
	qsort(ns, n, sizeof(*ns), by_value);
	result_number("p50", ns[n / 2]);
	result_number("p99", ns[(uint64_t)n * 99 / 100]);
	result_number("p99.9", ns[(uint64_t)n * 999 / 1000]);
}

static void echo_ask(const struct system *s, struct conn *c, void *buf, uint64_t *ns, uint32_t n)
{
	uint64_t last = now_ns(), now;
	uint32_t i;

	for (i = 0; i < n; i++) {
		conn_send(s, c, buf, opt.size);
		conn_recv_all(s, c, buf, opt.size);
		now = now_ns();
		ns[i] = now - last;
		last = now;
	}
}

void work_echo(const struct system *s, enum side side)
{
	uint32_t warm = opt.count / 4 + 4, i;
	uint64_t *ns = calloc(opt.count + warm, sizeof(*ns));
	void *buf = buffer_new(opt.size);
	struct watch watch;
	struct conn c;

	conn_open(s, &c, side, 0);
	meet();
	if (side == SIDE_A) {
		echo_ask(s, &c, buf, ns, warm);
		watch_begin(&watch, &c);
		measure_begin();
		echo_ask(s, &c, buf, ns, opt.count);
		measure_end();
		result_number("size", opt.size);
		result_number("count", opt.count);
		result_percentiles(ns, opt.count);
		watch_end(&watch, &c);
	} else {
		for (i = 0; i < warm + opt.count; i++) {
			conn_recv_all(s, &c, buf, opt.size);
			conn_send(s, &c, buf, opt.size);
		}
	}
	meet();
	conn_close(s, &c);
	free(buf);
	free(ns);
}

/* Open, a byte there and back, close. */
static void setup_once(const struct system *s, enum side me, unsigned int index)
{
	struct conn c;
	char byte = 1;

	conn_open(s, &c, me, index);
	if (me == SIDE_A) {
		conn_send(s, &c, &byte, 1);
		conn_recv_all(s, &c, &byte, 1);
	} else {
		conn_recv_all(s, &c, &byte, 1);
		conn_send(s, &c, &byte, 1);
	}
	conn_close(s, &c);
}

void work_setup(const struct system *s, enum side side)
{
	uint32_t warm = opt.count / 4 + 1, i;

	for (i = 0; i < warm; i++)
		setup_once(s, side, i);
	meet();
	if (side == SIDE_A)
		measure_begin();
	for (i = 0; i < opt.count; i++)
		setup_once(s, side, warm + i);
	/* until the last close of both */
	if (side == SIDE_A) {
		hear();
		measure_end();
		result_number("count", opt.count);
	} else {
		tell();
	}
}
