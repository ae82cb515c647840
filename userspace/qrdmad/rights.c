// SPDX-License-Identifier: GPL-2.0
/* See rights.h. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "rights.h"

#define CAP(x)	(1ULL << (x))

int rights_user(struct rights_user *user, const char *name)
{
	const struct passwd *pw;
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(name, &end, 10);
	if (!*end && *name >= '0' && *name <= '9') {
		if (errno || number >= (uid_t)-1)
			return -ENOENT;
		user->uid = number;
		user->gid = number;
		return 0;
	}
	pw = getpwnam(name);
	if (!pw)
		return -ENOENT;
	user->uid = pw->pw_uid;
	user->gid = pw->pw_gid;
	return 0;
}

static int caps_get(uint64_t *permitted)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return -errno;
	*permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	return 0;
}

static int caps_set(uint64_t caps)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct data[2] = {
		{ .effective = caps, .permitted = caps },
		{ .effective = caps >> 32, .permitted = caps >> 32 },
	};

	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

/* No program that it could run would have more: needs CAP_SETPCAP, without which nothing was there to give. */
static void caps_bound(uint64_t keep)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		if (cap >= 64 || !(keep & CAP(cap)))
			prctl(PR_CAPBSET_DROP, cap);
}

int rights_master(void)
{
	/* FSETID and CHOWN are not among them: files that it makes are its own */
	const uint64_t keep = CAP(CAP_NET_ADMIN) | CAP(CAP_SETUID) | CAP(CAP_SETGID) | CAP(CAP_SETPCAP) |
			      CAP(CAP_KILL);
	uint64_t have;
	int err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	err = caps_get(&have);
	if (err)
		return err;
	caps_bound(keep);
	return caps_set(have & keep);
}

int rights_worker(const struct rights_user *user)
{
	uint64_t have;
	int err = caps_get(&have);

	if (err)
		return err;
	if (!(have & CAP(CAP_NET_ADMIN)))
		return -EPERM;
	caps_bound(CAP(CAP_NET_ADMIN));
	if (!geteuid()) {
		if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setgroups(0, NULL) ||
		    setresgid(user->gid, user->gid, user->gid) || setresuid(user->uid, user->uid, user->uid))
			return -errno;
	}
	err = caps_set(CAP(CAP_NET_ADMIN));
	if (err)
		return err;
	/* keys are in its memory */
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? -errno : 0;
}
