// SPDX-License-Identifier: GPL-2.0
/*
 * Print the frequency of this host's time stamp counter in kHz.
 *
 * An emulated machine reads the host's counter, but finds out its frequency
 * with an emulated timer, which fails on a busy host: the guest would be left
 * with ticks for a clock. So it is told (machine.py). Each reading of both
 * clocks is taken as the tightest of many, which no preemption spoils.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define TRIES	2000
#define SPAN_NS	50000000

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void both(int64_t *ns, uint64_t *tsc)
{
	uint64_t before, after, best = UINT64_MAX;
	int64_t now;
	int i;

	for (i = 0; i < TRIES; i++) {
		before = __rdtsc();
		now = clock_ns();
		after = __rdtsc();
		if (after - before < best) {
			best = after - before;
			*ns = now;
			*tsc = before + best / 2;
		}
	}
}

int main(void)
{
	struct timespec span = { .tv_nsec = SPAN_NS };
	uint64_t tsc0 = 0, tsc1 = 0;
	int64_t ns0 = 0, ns1 = 0;

	both(&ns0, &tsc0);
	nanosleep(&span, NULL);
	both(&ns1, &tsc1);
	printf("%.0f\n", (tsc1 - tsc0) * 1e6 / (ns1 - ns0));
	return 0;
}
