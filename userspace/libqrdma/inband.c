// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The AF_QRDMA socket as the in-band handshake sees it: the calls of handshake.h on socket options and control
 * messages. Called by handshake.c, and by the application for why a connection ended. Holds no state.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "handshake.h"
#include "keys.h"
#include "tls.h"

/* Most bytes that one call takes. */
#define INBAND_SEND_MAX	16384

/* A control message of one struct qrdma_handshake_info, aligned as the macros want it. */
union info_buffer {
	char bytes[CMSG_SPACE(sizeof(struct qrdma_handshake_info))];
	struct cmsghdr align;
};

/* Those that the code of the close says nothing about. */
static const struct reason {
	int error;
	const char *text;
} reasons[] = {
	[QRDMA_REASON_NO_DEVICE] = { -EADDRNOTAVAIL, "no RDMA device here has the local address" },
	[QRDMA_REASON_NO_ROUTE] = { -EHOSTUNREACH, "the address of the peer did not resolve" },
	[QRDMA_REASON_NO_SERVICE] = { -ECONNREFUSED, "the host is there and has no AF_QRDMA" },
	[QRDMA_REASON_INCOMPATIBLE] = { -EPROTONOSUPPORT, "the host's AF_QRDMA speaks another version" },
	[QRDMA_REASON_NO_ANSWER] = { -ETIMEDOUT, "the peer did not answer in time" },
	[QRDMA_REASON_DEVICE_GONE] = { -ENODEV, "the RDMA device was removed" },
	[QRDMA_REASON_IDLE] = { -ETIMEDOUT, "the connection was idle for too long" },
	[QRDMA_REASON_LOCAL_CLOSE] = { -ECONNABORTED, "closed from this end" },
	[QRDMA_REASON_PEER_CLOSE] = { -ECONNRESET, "closed by the peer's application" },
	[QRDMA_REASON_KEY_LIMIT] = { -EKEYEXPIRED, "the keys may not be used any more" },
	[QRDMA_REASON_NO_MEMORY] = { -ENOMEM, "out of memory" },
	[QRDMA_REASON_PEER_LOST] = { -ECONNRESET, "the peer's host has lost the connection" },
	[QRDMA_REASON_NO_AGENT] = { -ESRCH, "no agent runs handshakes here" },
};

static const struct reason *reason_find(uint32_t number)
{
	if (number >= sizeof(reasons) / sizeof(reasons[0]) || !reasons[number].text)
		return NULL;
	return &reasons[number];
}

static int inband_state(int fd)
{
	struct qrdma_info info;
	int err = qrdma_get_info(fd, &info);

	return err ? err : info.state;
}

static ssize_t inband_params(int fd, uint8_t *data, size_t size)
{
	socklen_t len = size;

	return getsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, data, &len) ? -errno : (ssize_t)len;
}

static ssize_t inband_send(int fd, uint8_t level, const uint8_t *data, size_t len)
{
	struct qrdma_handshake_info info = { .level = level };
	struct iovec iov = { .iov_base = (uint8_t *)data, .iov_len = len < INBAND_SEND_MAX ? len : INBAND_SEND_MAX };
	union info_buffer control = { 0 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	cmsg->cmsg_level = SOL_QRDMA;
	cmsg->cmsg_type = QRDMA_HANDSHAKE_INFO;
	cmsg->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
	do {
		n = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static ssize_t inband_recv(int fd, uint8_t *level, uint8_t *data, size_t size)
{
	struct qrdma_handshake_info info;
	struct iovec iov = { .iov_base = data, .iov_len = size };
	union info_buffer control;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *cmsg;
	ssize_t n;

	do {
		n = recvmsg(fd, &msg, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	for (cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_QRDMA || cmsg->cmsg_type != QRDMA_HANDSHAKE_INFO ||
		    cmsg->cmsg_len < CMSG_LEN(sizeof(info)))
			continue;
		memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
		*level = info.level;
		return n;
	}
	return -EPROTO;
}

static int inband_peer_params(int fd, const uint8_t *data, size_t len)
{
	return setsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, data, len) ? -errno : 0;
}

static int inband_result(int fd, int error, uint8_t alert, bool judged)
{
	const struct qrdma_handshake_result result = {
		.error = error,
		.alert = error ? alert : 0,
		.judged = judged,
	};

	return setsockopt(fd, SOL_QRDMA, QRDMA_HANDSHAKE_RESULT, &result, sizeof(result)) ? -errno : 0;
}

static int inband_close(int fd, struct qrdma_connection_close *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return getsockopt(fd, SOL_QRDMA, QRDMA_CONNECTION_CLOSE, info, &len) ? -errno : 0;
}

static int inband_end(int fd, struct hs_end *end)
{
	struct qrdma_connection_close info;
	const struct reason *reason;
	socklen_t len = sizeof(end->error);
	int err = inband_close(fd, &info);

	if (err)
		return err;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &end->error, &len)) {
		/* an agent's: the error of the socket is for its program */
		if (errno != EOPNOTSUPP)
			return -errno;
		reason = reason_find(info.reason);
		end->error = reason ? -reason->error : 0;
	}
	end->by_transport = !info.app;
	end->remote = info.remote;
	end->code = info.code;
	return 0;
}

static ssize_t inband_ticket(int fd, uint8_t *data, size_t size)
{
	socklen_t len = size;

	return getsockopt(fd, SOL_QRDMA, QRDMA_SESSION_TICKET, data, &len) ? -errno : (ssize_t)len;
}

static int inband_wait(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	/* Interrupted or not, the caller looks at its clock. */
	return poll(&pfd, 1, timeout_ms) < 0 && errno != EINTR ? -errno : 0;
}

const struct hs_transport inband_transport = {
	.state = inband_state,
	.params = inband_params,
	.send = inband_send,
	.recv = inband_recv,
	.secret = keys_install_level,
	.peer_params = inband_peer_params,
	.result = inband_result,
	.end = inband_end,
	.ticket = inband_ticket,
	.wait = inband_wait,
};

int qrdma_handshake_self(int fd)
{
	struct qrdma_config config = { 0 };
	socklen_t len = sizeof(config);

	if (getsockopt(fd, SOL_QRDMA, QRDMA_CONFIG, &config, &len))
		return -errno;
	config.handshake = QRDMA_HANDSHAKE_SELF;
	return setsockopt(fd, SOL_QRDMA, QRDMA_CONFIG, &config, sizeof(config)) ? -errno : 0;
}

int qrdma_get_close_reason(int fd, struct qrdma_reason *why)
{
	struct qrdma_connection_close info;
	const struct reason *reason;
	struct hs_end end = { 0 };
	int err = inband_close(fd, &info);

	memset(why, 0, sizeof(*why));
	if (err)
		return err;
	reason = reason_find(info.reason);
	if (reason) {
		reason_set(why, reason->error, "%s", reason->text);
		return 0;
	}
	end.by_transport = !info.app;
	end.remote = info.remote;
	end.code = info.code;
	if (info.reason != QRDMA_REASON_NONE || (end.by_transport && end.code))
		hs_end_error(&end, why);
	return 0;
}
