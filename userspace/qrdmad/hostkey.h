/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The host key: what a host makes the tokens of its stateless resets from, the same after each start. Read or made by
 * the master, as root.
 */
#ifndef QRDMAD_HOSTKEY_H
#define QRDMAD_HOSTKEY_H

#include <stdbool.h>
#include <stdint.h>

#define HOSTKEY_LEN	32

/*
 * 64 hexadecimal digits in @file; made there, with mode 0600, when there is none. @made tells so. 0, -EACCES: others
 * can read it; -EINVAL: it holds something else; -errno.
 */
int hostkey_load(const char *file, uint8_t key[HOSTKEY_LEN], bool *made);

#endif /* QRDMAD_HOSTKEY_H */
