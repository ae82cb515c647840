// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is not there (F34): pages of the application that are not mapped, allocations that
 * fail in the kernel. Calls return what they have done, ENOMEM or EFAULT, and come back; the
 * stream stays what it was.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ends.h"
#include "fact.h"
#include "flow.h"
#include "probe.h"

#define FAILSLAB	"/sys/kernel/debug/failslab"

enum { SEED = 34, HOLE_AT = 64 << 10 };

static int fd[2];
static uint64_t sent, received;	/* offsets in the stream */
static uint8_t *map;		/* HOLE_AT bytes, a page that is not mapped, one that is */
static size_t page;

/* Read all that was sent; is it right? */
static bool stream_right(void)
{
	static uint8_t buf[HOLE_AT];
	size_t len;
	ssize_t n;

	while (received < sent) {
		len = sent - received < sizeof(buf) ? sent - received : sizeof(buf);
		n = recv(fd[1], buf, len, 0);
		if (n <= 0 || pattern_check(SEED, received, buf, n) != (size_t)n) {
			NOTE("at %llu of %llu: %s", (unsigned long long)received,
			     (unsigned long long)sent, n <= 0 ? strerror(errno) : "wrong byte");
			return false;
		}
		received += n;
	}
	return true;
}

static ssize_t write_vector(const struct iovec *iov, int count)
{
	ssize_t n = writev(fd[0], iov, count);

	if (n > 0)
		sent += n;
	return n < 0 ? -errno : n;
}

static void begin(void)
{
	const struct end_options opt = { 0 };
	int err;

	page = sysconf(_SC_PAGESIZE);
	map = mmap(NULL, HOLE_AT + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0);
	if (map == MAP_FAILED || munmap(map + HOLE_AT, page))
		BAIL("mmap: %s", strerror(errno));
	err = end_pair(fd, &opt);
	if (err)
		BAIL("connect: %s", strerror(-err));
}

TEST(hole_in_writes)
{
	struct iovec iov[3];
	uint8_t *hole;
	ssize_t n;

	begin();
	hole = map + HOLE_AT;

	iov[0] = (struct iovec){ hole, page };
	n = write_vector(iov, 1);
	FACT(n == -EFAULT, "write from a page that is not there: %zd", n);

	/* The whole of the good part, or what of it went before the bad one was seen */
	pattern_fill(SEED, sent, map, HOLE_AT);
	iov[0] = (struct iovec){ map, 1000 };
	iov[1] = (struct iovec){ hole, 1000 };
	iov[2] = (struct iovec){ map + 1000, 1000 };
	n = write_vector(iov, 3);
	FACT(n >= 0 ? n <= 1000 : n == -EFAULT, "good, bad, good: %zd bytes", n);
	FACT(stream_right(), "good, bad, good: the stream is right");

	pattern_fill(SEED, sent, map, HOLE_AT);
	iov[0] = (struct iovec){ map, HOLE_AT + page };
	n = write_vector(iov, 1);
	FACT(n >= 0 ? n <= HOLE_AT : n == -EFAULT, "a buffer with a hole at its end: %zd bytes", n);
	FACT(stream_right(), "a buffer with a hole at its end: the stream is right");

	pattern_fill(SEED, sent, map, 5000);
	iov[0] = (struct iovec){ map, 5000 };
	n = write_vector(iov, 1);
	FACT(n == 5000 && stream_right(), "the socket goes on");
}

TEST(hole_in_reads)
{
	uint8_t *hole, *before;
	ssize_t n;

	begin();
	hole = map + HOLE_AT;
	before = hole - 1000;

	pattern_fill(SEED, sent, map, 20000);
	n = send(fd[0], map, 20000, 0);
	if (n > 0)
		sent += n;
	n = recv(fd[1], hole, 100, 0);
	FACT(n < 0 && errno == EFAULT, "read into a page that is not there: %zd", n);
	/* 1000 bytes fit; who has told less loses nothing */
	n = recv(fd[1], before, 1000 + 100, 0);
	FACT(n > 0 ? n <= 1000 && pattern_check(SEED, received, before, n) == (size_t)n :
	     errno == EFAULT, "read into the end of what is there: %zd", n);
	if (n > 0)
		received += n;
	FACT(stream_right(), "no byte was lost");
	FACT(setsockopt(fd[0], SOL_QRDMA, QRDMA_CONFIG, hole, sizeof(struct qrdma_config)) &&
	     errno == EFAULT, "an option from a page that is not there");
}

/* Fail allocations of processes that ask for it: @percent of all that may wait, and that may not */
static bool fail_allocations(int percent)
{
	return !shell("cd %s && echo N >cache-filter && echo Y >task-filter && "
		      "echo N >ignore-gfp-wait && echo 1 >interval && echo -1 >times && "
		      "echo 0 >space && echo 0 >verbose && echo %d >probability",
		      FAILSLAB, percent);
}

static bool fail_me(bool on)
{
	FILE *file = fopen("/proc/self/make-it-fail", "w");
	bool good = file && fprintf(file, "%d", on) > 0;

	return file && !fclose(file) && good;
}

/* Write and read while allocations of this thread fail. */
static bool carry_failing(uint64_t bytes, unsigned int *failures)
{
	static uint8_t out[8192], in[8192];
	uint64_t end = sent + bytes;
	ssize_t n;

	while (received < end) {
		size_t len = end - sent < sizeof(out) ? end - sent : sizeof(out);

		pattern_fill(SEED, sent, out, len);
		n = len ? send(fd[0], out, len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
		if (n > 0)
			sent += n;
		else if (n < 0 && (errno == ENOMEM || errno == ENOBUFS))
			(*failures)++;
		else if (n < 0 && errno != EAGAIN)
			return false;
		n = recv(fd[1], in, sizeof(in), received < sent ? 0 : MSG_DONTWAIT);
		if (n > 0 && pattern_check(SEED, received, in, n) != (size_t)n) {
			errno = EBADMSG;
			return false;
		}
		if (n > 0)
			received += n;
		else if (n < 0 && (errno == ENOMEM || errno == ENOBUFS))
			(*failures)++;
		else if (!n || errno != EAGAIN)
			return false;
	}
	return true;
}

TEST_TIMEOUT(failing_allocations, 600)
{
	unsigned int failures = 0, i, refused = 0, made = 0;
	const struct end_options opt = { 0 };
	int pair[2], err, other = 0;
	bool good;

	if (access(FAILSLAB, F_OK) || !fail_allocations(10))
		SKIP("this kernel cannot fail allocations");
	begin();
	fail_me(true);
	good = carry_failing(env_number("QRDMA_FAIL_KB", 512, 512) << 10, &failures);
	err = errno;
	fail_me(false);
	FACT(good, "one allocation of ten fails: the stream is right: %s",
	     good ? "yes" : strerror(err));
	NOTE("%u calls said ENOMEM", failures);
	for (i = 0; i < 100; i++) {
		fail_me(true);
		err = end_pair(pair, &opt);
		fail_me(false);
		refused += err == -ENOMEM || err == -ENOBUFS;
		made += !err;
		if (!err) {
			close(pair[0]);
			close(pair[1]);
		} else if (err != -ENOMEM && err != -ENOBUFS && err != -ENFILE) {
			NOTE("a connection could not be made: %s", strerror(-err));
			other++;
		}
	}
	FACT(!other, "100 connections: %u made, %u refused for want of memory", made, refused);
	shell("echo 0 >%s/probability", FAILSLAB);
}
