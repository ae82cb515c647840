// SPDX-License-Identifier: GPL-2.0
/* See worker.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include "log.h"
#include "worker.h"

/* Descriptors that a worker has besides one for each handshake (a key log is a second one). */
#define OTHER_FILES	32
#define BATCH		32

/* Data of epoll: a slot, or one of these. */
#define AT_EVENTS	UINT32_MAX
#define AT_CHANNEL	(UINT32_MAX - 1)

/**
 * struct slot - room for one handshake
 * @session: NULL: free
 * @events: what epoll waits for
 * @over: to be freed when all that epoll has told is worked off
 */
struct slot {
	struct session *session;
	uint32_t events;
	bool over;
};

/**
 * struct worker - its loop
 * @more: a handshake may wait in the kernel
 * @draining: takes no more
 * @busy: slots in use
 */
struct worker {
	const struct worker_options *opt;
	struct genl *genl;
	int epoll;
	int events;
	bool more;
	bool draining;
	size_t n_slots;
	size_t busy;
	struct slot *slots;
};

static int worker_watch(const struct worker *w, int op, int fd, uint32_t events, uint32_t at)
{
	struct epoll_event event = { .events = events, .data.u32 = at };

	return epoll_ctl(w->epoll, op, fd, &event) ? -errno : 0;
}

/* Many handshakes are many descriptors. */
static void raise_limit(size_t handshakes)
{
	struct rlimit limit;
	rlim_t want = 2 * handshakes + OTHER_FILES;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= want)
		return;
	limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int worker_start(struct worker *w)
{
	int err;

	raise_limit(w->n_slots);
	w->slots = calloc(w->n_slots, sizeof(*w->slots));
	if (!w->slots)
		return -ENOMEM;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0)
		return -errno;
	err = rights_worker(w->opt->user);
	if (err)
		return err;
	err = genl_open(&w->genl);
	if (err)
		return err;
	w->events = genl_events(w->opt->family);
	if (w->events < 0)
		return w->events;
	err = worker_watch(w, EPOLL_CTL_ADD, w->events, EPOLLIN, AT_EVENTS);
	if (!err)
		err = worker_watch(w, EPOLL_CTL_ADD, w->opt->channel, EPOLLIN, AT_CHANNEL);
	if (!err && write(w->opt->channel, &(char){ WORKER_READY }, 1) != 1)
		err = -errno;
	return err;
}

/* From the group first: what the kernel tells from here on, it tells to others. */
static void worker_drain(struct worker *w)
{
	if (w->draining)
		return;
	w->draining = true;
	w->more = false;
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, w->opt->channel, NULL);
	close(w->events);
	w->events = -1;
	log_line(LOG_DEBUG, "worker finishes %zu handshakes", w->busy);
}

static void slot_end(struct worker *w, struct slot *slot)
{
	slot->over = true;
	/* there is room again for one that has waited */
	w->more = !w->draining;
}

/* As far as it goes now; @seen: what epoll said. */
static void slot_step(struct worker *w, struct slot *slot, uint32_t seen)
{
	uint32_t events;

	if (session_step(slot->session) != -EAGAIN) {
		slot_end(w, slot);
		return;
	}
	if (seen & (EPOLLHUP | EPOLLERR)) {
		session_abort(slot->session, "the program has closed its socket, or its time is up");
		slot_end(w, slot);
		return;
	}
	events = session_events(slot->session);
	if (events == slot->events)
		return;
	slot->events = events;
	if (worker_watch(w, EPOLL_CTL_MOD, session_fd(slot->session), events, slot - w->slots)) {
		session_abort(slot->session, "epoll failed");
		slot_end(w, slot);
	}
}

static void worker_reap(struct worker *w)
{
	for (size_t i = 0; i < w->n_slots && w->busy; i++) {
		struct slot *slot = &w->slots[i];

		if (!slot->over)
			continue;
		session_free(slot->session);
		memset(slot, 0, sizeof(*slot));
		w->busy--;
	}
}

/* Take one handshake. One at a time: other workers want some too, and those that run want to go on. */
static void worker_take(struct worker *w)
{
	struct session_job job;
	struct slot *slot = w->slots;
	int err = genl_accept(w->genl, w->opt->family, &job);

	if (err) {
		/* what waits is still there when a handshake has ended, or another begins */
		w->more = false;
		if (err != -EAGAIN)
			log_limited(LOG_WARNING, "the kernel gives no handshake: %s", strerror(-err));
		return;
	}
	/* one that is over is still there until all is worked off: @busy counts it */
	while (slot->session)
		slot++;
	slot->session = session_new(&job, w->opt->policies, w->opt->config->keylog_file);
	if (!slot->session)
		return;
	w->busy++;
	slot->events = session_events(slot->session);
	if (worker_watch(w, EPOLL_CTL_ADD, job.fd, slot->events, slot - w->slots)) {
		session_abort(slot->session, "epoll failed");
		slot_end(w, slot);
		return;
	}
	slot_step(w, slot, 0);
}

/* Milliseconds until a handshake times out, -1: there is none. */
static int worker_timeout(const struct worker *w)
{
	size_t left = w->busy;
	int timeout = -1;

	for (size_t i = 0; i < w->n_slots && left; i++) {
		int t;

		if (!w->slots[i].session)
			continue;
		left--;
		t = session_timeout(w->slots[i].session);
		if (timeout < 0 || t < timeout)
			timeout = t;
	}
	return timeout;
}

static void worker_expire(struct worker *w)
{
	size_t left = w->busy;

	for (size_t i = 0; i < w->n_slots && left; i++) {
		struct slot *slot = &w->slots[i];

		if (!slot->session)
			continue;
		left--;
		if (!slot->over && !session_timeout(slot->session))
			slot_step(w, slot, 0);
	}
}

static void worker_event(struct worker *w, const struct epoll_event *event)
{
	switch (event->data.u32) {
	case AT_EVENTS:
		if (w->events >= 0 && genl_drain(w->events))
			w->more = true;
		break;
	case AT_CHANNEL:
		/* the master says nothing: this is its end */
		worker_drain(w);
		break;
	default:
		if (!w->slots[event->data.u32].over)
			slot_step(w, &w->slots[event->data.u32], event->events);
	}
}

static int worker_loop(struct worker *w)
{
	struct epoll_event events[BATCH];

	while (!w->draining || w->busy) {
		bool take = w->more && w->busy < w->n_slots;
		int n = epoll_wait(w->epoll, events, BATCH, take ? 0 : worker_timeout(w));

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++)
			worker_event(w, &events[i]);
		worker_expire(w);
		if (take && !w->draining)
			worker_take(w);
		worker_reap(w);
	}
	return 0;
}

int worker_run(const struct worker_options *opt)
{
	struct worker w = {
		.opt = opt,
		.epoll = -1,
		.events = -1,
		.more = true,
		.n_slots = opt->config->handshakes,
	};
	int err = worker_start(&w);

	if (!err)
		err = worker_loop(&w);
	if (err)
		log_line(LOG_ERROR, "worker: %s", strerror(-err));
	genl_close(w.genl);
	if (w.events >= 0)
		close(w.events);
	if (w.epoll >= 0)
		close(w.epoll);
	free(w.slots);
	return err ? 1 : 0;
}
