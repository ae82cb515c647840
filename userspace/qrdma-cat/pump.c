// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The two directions of a connection, each a buffer that is filled at one end and emptied at the other. One thread,
 * poll(); a direction that waits for one end does not hold up the other. Called by main.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <qrdma.h>
#include "pump.h"

#define FLOW_SIZE	(256 * 1024)
#define PROGRESS_MS	500

/* One direction: bytes [head, tail) of @buf are read and not yet written. */
struct flow {
	int from;
	int to;
	size_t head;
	size_t tail;
	bool eof;	/* @from has ended */
	bool done;	/* and the end was passed on to @to */
	uint64_t bytes;
	uint8_t *buf;
};

struct pump {
	const struct pump_options *opt;
	struct flow up;		/* file to socket */
	struct flow down;	/* socket to file */
	uint64_t start_ms;
	uint64_t shown_ms;
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static void pump_progress(struct pump *p, bool last)
{
	uint64_t now = now_ms();
	uint64_t ms = now - p->start_ms;
	struct qrdma_info info;
	uint64_t total = p->up.bytes + p->down.bytes;

	if (!p->opt->progress || (!last && now - p->shown_ms < PROGRESS_MS))
		return;
	p->shown_ms = now;
	fprintf(stderr, "\r%" PRIu64 " B sent, %" PRIu64 " B received, %" PRIu64 " kB/s",
		p->up.bytes, p->down.bytes, ms ? total / ms : 0);
	if (!qrdma_get_info(p->opt->sock, &info))
		fprintf(stderr, ", rtt %" PRIu64 " us, cwnd %" PRIu64 ", lost %" PRIu64,
			(uint64_t)info.srtt / 1000, (uint64_t)info.cwnd, (uint64_t)info.packets_lost);
	fputs(last ? "\033[K\n" : "\033[K", stderr);
}

/* 0, or -errno. */
static int flow_fill(struct flow *f)
{
	ssize_t n;

	n = read(f->from, f->buf + f->tail, FLOW_SIZE - f->tail);
	if (n > 0)
		f->tail += n;
	else if (!n)
		f->eof = true;
	else if (errno != EAGAIN && errno != EINTR)
		return -errno;
	return 0;
}

static int flow_drain(struct flow *f)
{
	ssize_t n;

	n = write(f->to, f->buf + f->head, f->tail - f->head);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	f->head += n;
	f->bytes += n;
	if (f->head == f->tail)
		f->head = f->tail = 0;
	return 0;
}

static bool flow_wants_input(const struct flow *f)
{
	return !f->eof && f->tail < FLOW_SIZE;
}

static int pump_fail(const char *what, int err)
{
	fprintf(stderr, "qrdma-cat: %s: %s\n", what, strerror(-err));
	return err;
}

/* One round of poll() and what it allows. */
static int pump_step(struct pump *p)
{
	struct flow *up = &p->up;
	struct flow *down = &p->down;
	struct pollfd pfd[3] = {
		{ .fd = p->opt->sock },
		{ .fd = flow_wants_input(up) ? up->from : -1, .events = POLLIN },
		{ .fd = down->tail > down->head ? down->to : -1, .events = POLLOUT },
	};
	int err = 0;

	if (flow_wants_input(down))
		pfd[0].events |= POLLIN;
	if (up->tail > up->head)
		pfd[0].events |= POLLOUT;
	if (poll(pfd, 3, p->opt->progress ? PROGRESS_MS : -1) < 0)
		return errno == EINTR ? 0 : pump_fail("poll", -errno);

	if (pfd[1].revents)
		err = flow_fill(up);
	if (err)
		return pump_fail("reading input", err);
	if (up->tail > up->head)
		err = flow_drain(up);
	if (err)
		return pump_fail("sending", err);
	if ((pfd[0].revents & (POLLIN | POLLHUP | POLLERR)) && flow_wants_input(down))
		err = flow_fill(down);
	if (err)
		return pump_fail("receiving", err);
	if (pfd[2].revents)
		err = flow_drain(down);
	if (err)
		return pump_fail("writing output", err);
	if (up->eof && up->head == up->tail && !up->done) {
		if (shutdown(p->opt->sock, SHUT_WR))
			return pump_fail("ending", -errno);
		up->done = true;
	}
	return 0;
}

int pump_run(const struct pump_options *opt, struct pump_result *result)
{
	struct pump p = {
		.opt = opt,
		.up = { .from = opt->in, .to = opt->sock, .eof = opt->in < 0 },
		.down = { .from = opt->sock, .to = opt->out },
		.start_ms = now_ms(),
	};
	int flags = fcntl(opt->sock, F_GETFL);
	int err = 0;

	if (flags < 0 || fcntl(opt->sock, F_SETFL, flags | O_NONBLOCK))
		return pump_fail("socket", -errno);
	p.up.buf = malloc(FLOW_SIZE);
	p.down.buf = malloc(FLOW_SIZE);
	if (!p.up.buf || !p.down.buf)
		err = pump_fail("buffers", -ENOMEM);
	while (!err && !(p.up.done && p.down.eof && p.down.head == p.down.tail)) {
		err = pump_step(&p);
		pump_progress(&p, false);
	}
	pump_progress(&p, true);
	result->sent = p.up.bytes;
	result->received = p.down.bytes;
	free(p.up.buf);
	free(p.down.buf);
	return err;
}
