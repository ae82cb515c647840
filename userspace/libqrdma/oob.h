/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parts of the out-of-band handshake that its unit test calls. */
#ifndef QRDMA_OOB_H
#define QRDMA_OOB_H

#include "qrdma.h"

/* First of @ours (host order) that is among @theirs (big endian), 0 when there is none. */
uint32_t oob_choose(const uint32_t *ours, size_t n_ours, const uint16_t *theirs, size_t n_theirs);

#endif /* QRDMA_OOB_H */
