/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of libqrdma share: TAP, and credentials of the folder that certs.sh made. Single threads only. */
#ifndef TESTS_USERSPACE_COMMON_H
#define TESTS_USERSPACE_COMMON_H

#include <stdbool.h>
#include "qrdma.h"

/* Takes the folder of certificates from the command line; exits when it is not there. */
void test_start(int argc, char **argv);
/* One line of TAP; @detail is shown when it is not good. */
void check(bool good, const char *name, const char *detail);
/* The plan; the exit code of main(). */
int test_end(void);
/* A file of the folder; one of eight static buffers. */
const char *path(const char *name);
/* Credentials with certificate @name and authority @ca, each or none; exits when they cannot be had. */
struct qrdma_cred *cred_x509(const char *name, const char *ca);
/* One pre-shared key of 32 bytes @fill. */
struct qrdma_cred *cred_psk(const char *identity, uint8_t fill);

#endif /* TESTS_USERSPACE_COMMON_H */
