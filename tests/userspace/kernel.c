// SPDX-License-Identifier: GPL-2.0
/* See kernel.h. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "kernel.h"

#define SEND_MAX	16384

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __real_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int __real_getpeername(int fd, struct sockaddr *addr, socklen_t *len);
int __real_close(int fd);
int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int __wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len);
int __wrap_close(int fd);

struct kernel kernel;

void kernel_reset(void)
{
	memset(&kernel, 0, sizeof(kernel));
	wire_reset();
}

static bool mine(int fd)
{
	return fd == KERNEL_FD || fd == KERNEL_FD + 1;
}

/* As the C library tells it. */
static ssize_t answer(ssize_t n)
{
	if (n >= 0)
		return n;
	errno = -n;
	return -1;
}

static int fault(void)
{
	kernel.faults++;
	errno = EINVAL;
	return -1;
}

static bool zero(const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len)
		if (p[--len])
			return false;
	return true;
}

static int get_fixed(void *value, socklen_t *len, const void *from, size_t size)
{
	if (*len < size)
		return fault();
	memcpy(value, from, size);
	*len = size;
	return 0;
}

static int get_bytes(socklen_t *len, ssize_t n)
{
	if (n < 0)
		return answer(n);
	*len = n;
	return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct qrdma_info info = { 0 };
	struct qrdma_config config = { 0 };
	int error;

	if (!mine(fd))
		return __real_getsockopt(fd, level, name, value, len);
	fd -= KERNEL_FD;
	if (level == SOL_SOCKET && name == SO_ERROR) {
		/* the program's, not the agent's */
		if (kernel.agent)
			return answer(-EOPNOTSUPP);
		error = wire[fd].end.error;
		return get_fixed(value, len, &error, sizeof(error));
	}
	if (level != SOL_QRDMA)
		return fault();
	switch (name) {
	case QRDMA_INFO:
		info.state = wire_transport.state(fd);
		return get_fixed(value, len, &info, sizeof(info));
	case QRDMA_CONFIG:
		config.handshake = kernel.handshake[fd];
		config.congestion = QRDMA_CONG_NEWRENO;
		return get_fixed(value, len, &config, sizeof(config));
	case QRDMA_CONNECTION_CLOSE:
		kernel.closed[fd].code = kernel.closed[fd].reason ? kernel.closed[fd].code : wire[fd].end.code;
		kernel.closed[fd].remote = wire[fd].end.remote;
		return get_fixed(value, len, &kernel.closed[fd], sizeof(kernel.closed[fd]));
	case QRDMA_TRANSPORT_PARAM_EXT:
		return get_bytes(len, wire_transport.params(fd, value, *len));
	case QRDMA_SESSION_TICKET:
		return get_bytes(len, wire_transport.ticket(fd, value, *len));
	default:
		return fault();
	}
}

static int set_secret(int fd, const struct qrdma_crypto_secret *s, socklen_t len)
{
	size_t used = s->type == QRDMA_CIPHER_AES_GCM_256 ? 48 : 32;

	if (len != sizeof(*s) || s->send > 1 || s->reserved || s->level == QRDMA_CRYPTO_INITIAL ||
	    !zero(s->secret + used, sizeof(s->secret) - used))
		return fault();
	return answer(wire_transport.secret(fd, s->level, s->send, s->type, s->secret));
}

static int set_result(int fd, const struct qrdma_handshake_result *r, socklen_t len)
{
	if (len != sizeof(*r) || !zero(r->reserved, sizeof(r->reserved)) || r->judged > 1 || (!r->error && r->alert))
		return fault();
	return answer(wire_transport.result(fd, r->error, r->alert, r->judged));
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	const struct qrdma_config *config = value;

	if (!mine(fd))
		return __real_setsockopt(fd, level, name, value, len);
	fd -= KERNEL_FD;
	if (level != SOL_QRDMA)
		return fault();
	switch (name) {
	case QRDMA_CONFIG:
		/* what is not meant to change stays as it was */
		if (len != sizeof(*config) || config->congestion != QRDMA_CONG_NEWRENO)
			return fault();
		kernel.handshake[fd] = config->handshake;
		return 0;
	case QRDMA_TRANSPORT_PARAM_EXT:
		if (!len || len > QRDMA_TRANSPORT_PARAM_EXT_MAX)
			return fault();
		return answer(wire_transport.peer_params(fd, value, len));
	case QRDMA_CRYPTO_SECRET:
		return set_secret(fd, value, len);
	case QRDMA_HANDSHAKE_RESULT:
		return set_result(fd, value, len);
	default:
		return fault();
	}
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	const struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	struct qrdma_handshake_info info;

	if (!mine(fd))
		return __real_sendmsg(fd, msg, flags);
	if (!cmsg || cmsg->cmsg_level != SOL_QRDMA || cmsg->cmsg_type != QRDMA_HANDSHAKE_INFO ||
	    cmsg->cmsg_len != CMSG_LEN(sizeof(info)) || msg->msg_iovlen != 1 || !(flags & MSG_DONTWAIT) ||
	    !(flags & MSG_NOSIGNAL))
		return fault();
	memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
	if (!zero(info.reserved, sizeof(info.reserved)))
		return fault();
	if (msg->msg_iov[0].iov_len > SEND_MAX)
		return answer(-EMSGSIZE);
	return answer(wire_transport.send(fd - KERNEL_FD, info.level, msg->msg_iov[0].iov_base,
					  msg->msg_iov[0].iov_len));
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	struct qrdma_handshake_info info = { 0 };
	ssize_t n;

	if (!mine(fd))
		return __real_recvmsg(fd, msg, flags);
	if (!(flags & MSG_DONTWAIT) || msg->msg_controllen < CMSG_SPACE(sizeof(info)))
		return fault();
	if (kernel.agent && wire[fd - KERNEL_FD].ended)
		return answer(-ENOTCONN);
	n = wire_transport.recv(fd - KERNEL_FD, &info.level, msg->msg_iov[0].iov_base, msg->msg_iov[0].iov_len);
	if (n <= 0) {
		msg->msg_controllen = 0;
		return answer(n);
	}
	cmsg->cmsg_level = SOL_QRDMA;
	cmsg->cmsg_type = QRDMA_HANDSHAKE_INFO;
	cmsg->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
	msg->msg_controllen = CMSG_SPACE(sizeof(info));
	return n;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (!mine(fds[0].fd))
		return __real_poll(fds, n, timeout);
	return answer(wire_transport.wait(fds[0].fd - KERNEL_FD, fds[0].events, timeout));
}

static int get_name(int end, struct sockaddr *addr, socklen_t *len)
{
	if (kernel.unconnected)
		return answer(-ENOTCONN);
	return get_fixed(addr, len, &kernel.name[end], sizeof(kernel.name[end]));
}

int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return mine(fd) ? get_name(fd - KERNEL_FD, addr, len) : __real_getsockname(fd, addr, len);
}

int __wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return mine(fd) ? get_name(!(fd - KERNEL_FD), addr, len) : __real_getpeername(fd, addr, len);
}

int __wrap_close(int fd)
{
	if (!mine(fd))
		return __real_close(fd);
	kernel.closes[fd - KERNEL_FD]++;
	return 0;
}
