/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a process may do: the master keeps what it needs to read keys and to make workers, a worker keeps CAP_NET_ADMIN,
 * which the handshakes of its network namespace are given for, and nothing else.
 */
#ifndef QRDMAD_RIGHTS_H
#define QRDMAD_RIGHTS_H

#include <sys/types.h>

/**
 * struct rights_user - whom workers run as
 * @uid: user
 * @gid: its group
 */
struct rights_user {
	uid_t uid;
	gid_t gid;
};

/* @name: of the passwd database, or a number (of user and group). 0, or -ENOENT. */
int rights_user(struct rights_user *user, const char *name);
/* Of the master, for good. 0 or -errno. */
int rights_master(void);
/* Of a worker, for good; @user does not matter unless the process is root. 0 or -errno. */
int rights_worker(const struct rights_user *user);

#endif /* QRDMAD_RIGHTS_H */
