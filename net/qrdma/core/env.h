/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel names that core/ may use: the fixed list below and nothing else.
 *
 * Owns: the only #ifdef __KERNEL__ of core/, and QRDMA_NEVER. In the kernel the names come from
 * the kernel's headers, in userspace (unit tests, simulator, fuzzers) from
 * tests/shim/shim.h, which gives them the same meaning. A file of core/ that
 * needs a name found in neither does not build in userspace: that is the point.
 * Included by: every header of core/. Context and lock: none.
 *
 * Bytes of the wire are read and written through cursor.h, which is why no
 * get_unaligned_*() is on the list.
 */
#ifndef QRDMA_CORE_ENV_H
#define QRDMA_CORE_ENV_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/bitops.h>
#include <linux/bitmap.h>
#include <linux/log2.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <asm/byteorder.h>
#else
#include "shim.h"
#endif

#define QRDMA_NEVER	U64_MAX		/* a time that does not come */

#endif /* QRDMA_CORE_ENV_H */
