// SPDX-License-Identifier: GPL-2.0
/*
 * Stands for the kernel behind the preload, on a machine without the module: a socket of AF_QRDMA is one of TCP that
 * says it is AF_QRDMA's. Built as librun_record.so, and preloaded too; the preload's calls come here.
 *
 * RECORD_ABSENT=1: there is no AF_QRDMA. RECORD_REASON=N: connect() of an AF_QRDMA socket is refused, with that
 * QRDMA_REASON_*.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/qrdma.h>

#define SLOTS	65536

/* Inode numbers of the sockets that are AF_QRDMA's */
static unsigned long marked[SLOTS];

static unsigned long inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

static void mark(int fd, unsigned long is)
{
	unsigned long ino = inode_of(fd);

	__atomic_store_n(&marked[ino % SLOTS], is ? ino : 0, __ATOMIC_RELAXED);
}

static int is_marked(int fd)
{
	unsigned long ino = inode_of(fd);

	return ino && __atomic_load_n(&marked[ino % SLOTS], __ATOMIC_RELAXED) == ino;
}

int socket(int domain, int type, int protocol)
{
	int fd;

	if (domain != AF_QRDMA) {
		fd = syscall(SYS_socket, domain, type, protocol);
		if (fd >= 0)
			mark(fd, 0);
		return fd;
	}
	if (getenv("RECORD_ABSENT")) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	fd = syscall(SYS_socket, protocol == QRDMA_PROTO_IPV6 ? AF_INET6 : AF_INET, type, 0);
	if (fd >= 0)
		mark(fd, 1);
	return fd;
}

int getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	struct qrdma_connection_close *why = val;
	int family, ret;

	ret = syscall(SYS_getsockopt, fd, level, name, val, len);
	if (!is_marked(fd))
		return ret;
	if (level == SOL_SOCKET && name == SO_DOMAIN && !ret) {
		*(int *)val = AF_QRDMA;
	} else if (level == SOL_SOCKET && name == SO_PROTOCOL && !ret) {
		syscall(SYS_getsockopt, fd, level, SO_DOMAIN, &family, len);
		*(int *)val = family == AF_INET6 ? QRDMA_PROTO_IPV6 : QRDMA_PROTO_IPV4;
	} else if (level == SOL_QRDMA && name == QRDMA_CONNECTION_CLOSE && getenv("RECORD_REASON")) {
		memset(why, 0, sizeof(*why));
		why->reason = atoi(getenv("RECORD_REASON"));
		return 0;
	}
	return ret;
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	if (is_marked(fd) && getenv("RECORD_REASON")) {
		errno = ECONNREFUSED;
		return -1;
	}
	return syscall(SYS_connect, fd, addr, len);
}
