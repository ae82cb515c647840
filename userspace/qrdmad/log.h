/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lines for the journal: standard error, each with the priority prefix that sd-daemon(3) describes. Called from
 * everywhere; a process is one thread.
 */
#ifndef QRDMAD_LOG_H
#define QRDMAD_LOG_H

#include <stdbool.h>

enum log_level {
	LOG_ERROR = 3,
	LOG_WARNING = 4,
	LOG_NOTICE = 5,
	LOG_INFO = 6,
	LOG_DEBUG = 7,
};

/* What is written: lines up to this level; LOG_NOTICE to begin with. */
void log_set_level(enum log_level level);
/* Prefixes on or off; off to begin with, for people. */
void log_set_prefix(bool on);
/* One line, without a newline. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * The same for what a peer can cause: at most LOG_LIMIT lines in a second; how many were left out is told with the
 * next line.
 */
void log_limited(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define LOG_LIMIT	20

#endif /* QRDMAD_LOG_H */
