// SPDX-License-Identifier: GPL-2.0
/* See log.h. */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "log.h"

#define LINE_SIZE	1024

static enum log_level log_max = LOG_NOTICE;
static bool log_prefix;

void log_set_level(enum log_level level)
{
	log_max = level;
}

void log_set_prefix(bool on)
{
	log_prefix = on;
}

/* One write(): lines of several processes do not mix. */
static void log_write(enum log_level level, const char *format, va_list args)
{
	char line[LINE_SIZE];
	size_t len = 0;
	int n;

	if (level > log_max)
		return;
	if (log_prefix)
		len = snprintf(line, sizeof(line), "<%d>", level);
	else
		len = snprintf(line, sizeof(line), "qrdmad[%d]: ", getpid());
	n = vsnprintf(line + len, sizeof(line) - len - 1, format, args);
	if (n < 0)
		return;
	len += n;
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	/* Where it goes when that fails, nobody reads it either. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_write(level, format, args);
	va_end(args);
}

void log_limited(enum log_level level, const char *format, ...)
{
	static unsigned int lines;
	static unsigned int left_out;
	static time_t second;
	struct timespec now;
	va_list args;

	if (level > log_max)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec != second) {
		second = now.tv_sec;
		lines = 0;
	}
	if (lines >= LOG_LIMIT) {
		left_out++;
		return;
	}
	if (left_out)
		log_line(level, "%u lines left out", left_out);
	left_out = 0;
	lines++;
	va_start(args, format);
	log_write(level, format, args);
	va_end(args);
}
