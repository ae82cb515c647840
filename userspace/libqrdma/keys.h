/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fills the key options of an AF_QRDMA socket and wipes its copies; also the table of ciphers. */
#ifndef QRDMA_KEYS_H
#define QRDMA_KEYS_H

#include <stdbool.h>
#include "qrdma.h"

/* Bytes of traffic secret for @cipher, 0 when unknown. */
size_t keys_secret_len(uint32_t cipher);
/* Install a traffic secret for one direction of @fd at a QRDMA_CRYPTO_*. 0 or -errno of setsockopt(). */
int keys_install_level(int fd, uint8_t level, bool send, uint32_t cipher, const uint8_t *secret);
/* The same at QRDMA_CRYPTO_APP. */
int keys_install(int fd, bool send, uint32_t cipher, const uint8_t *secret);

#endif /* QRDMA_KEYS_H */
