/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Can a program be preloaded? The dynamic linker ignores LD_PRELOAD without a word for some, and their traffic would
 * go by TCP, in the clear: they are found out before they run.
 */
#ifndef QRDMA_RUN_TARGET_H
#define QRDMA_RUN_TARGET_H

#include <stddef.h>

/*
 * Looks at the file, and for a script at its interpreter. Return: 0: it can; -1: it cannot, and @why holds a sentence
 * for people.
 */
int run_target_check(const char *path, char *why, size_t size);

#endif
