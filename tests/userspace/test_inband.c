// SPDX-License-Identifier: GPL-2.0
/*
 * The in-band handshake through the system calls of its socket. The linker puts the functions here in their place
 * (--wrap): descriptors 900 and 901 are the ends of wire.h behind the rules of include/uapi/linux/qrdma.h, and what
 * breaks these rules is counted. argv[1]: folder made by certs.sh.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common.h"
#include "wire.h"

#define FD		900
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

static int faults;
static uint32_t handshake[2];
static struct qrdma_connection_close closed[2];

static bool mine(int fd)
{
	return fd == FD || fd == FD + 1;
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
	faults++;
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
	fd -= FD;
	if (level == SOL_SOCKET && name == SO_ERROR) {
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
		config.handshake = handshake[fd];
		config.congestion = QRDMA_CONG_NEWRENO;
		return get_fixed(value, len, &config, sizeof(config));
	case QRDMA_CONNECTION_CLOSE:
		closed[fd].code = closed[fd].reason ? closed[fd].code : wire[fd].end.code;
		closed[fd].remote = wire[fd].end.remote;
		return get_fixed(value, len, &closed[fd], sizeof(closed[fd]));
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
	if (len != sizeof(*r) || !zero(r->reserved, sizeof(r->reserved)) || (!r->error && r->alert))
		return fault();
	return answer(wire_transport.result(fd, r->error, r->alert));
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	const struct qrdma_config *config = value;

	if (!mine(fd))
		return __real_setsockopt(fd, level, name, value, len);
	fd -= FD;
	if (level != SOL_QRDMA)
		return fault();
	switch (name) {
	case QRDMA_CONFIG:
		/* what is not meant to change stays as it was */
		if (len != sizeof(*config) || config->congestion != QRDMA_CONG_NEWRENO)
			return fault();
		handshake[fd] = config->handshake;
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
	return answer(wire_transport.send(fd - FD, info.level, msg->msg_iov[0].iov_base, msg->msg_iov[0].iov_len));
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
	n = wire_transport.recv(fd - FD, &info.level, msg->msg_iov[0].iov_base, msg->msg_iov[0].iov_len);
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
	return answer(wire_transport.wait(fds[0].fd - FD, fds[0].events, timeout));
}

static struct qrdma_handshake *server;
static struct qrdma_reason server_why;
static int server_err;

static void server_turn(void)
{
	if (server_err == -EAGAIN)
		server_err = qrdma_handshake_step(server, &server_why);
}

/* A blocking client against a server in steps; what the client says; the server's is in server_err. */
static int both(const char *name, struct qrdma_reason *why)
{
	struct qrdma_handshake_options opt = { .size = sizeof(opt), .peer_name = name };
	struct qrdma_handshake_options server_opt = { .size = sizeof(server_opt) };
	struct qrdma_cred *cred = cred_x509(NULL, "ca.pem");
	struct qrdma_cred *server_cred = cred_x509("server", NULL);
	int err;

	wire_reset();
	memset(closed, 0, sizeof(closed));
	opt.cred = cred;
	server_opt.cred = server_cred;
	server_err = -EAGAIN;
	if (qrdma_handshake_new(&server, FD + 1, 1, &server_opt, NULL))
		exit(1);
	wire_turn = server_turn;
	err = qrdma_client_handshake(FD, &opt, why);
	for (int i = 0; i < 5; i++)
		server_turn();
	qrdma_handshake_free(server);
	qrdma_cred_free(cred);
	qrdma_cred_free(server_cred);
	return err;
}

static void test_reason(uint32_t reason, uint64_t code, int err, const char *name)
{
	struct qrdma_reason why;

	wire_reset();
	memset(closed, 0, sizeof(closed));
	closed[0].reason = reason;
	closed[0].code = code;
	wire[0].end.remote = true;
	check(!qrdma_get_close_reason(FD, &why) && why.error == err && !why.text[0] == !err, name, why.text);
}

int main(int argc, char **argv)
{
	struct qrdma_reason why;
	char detail[1024];
	int err;

	test_start(argc, argv);
	check(!qrdma_handshake_self(FD) && handshake[0] == QRDMA_HANDSHAKE_SELF && !handshake[1],
	      "handshakes of our own", "");
	err = both("server.test", &why);
	snprintf(detail, sizeof(detail), "client %d (%s), server %d (%s), faults %d, broken %d %d", err, why.text,
		 server_err, server_why.text, faults, wire[0].broken, wire[1].broken);
	check(!err && !server_err && !faults && !wire[0].broken && !wire[1].broken &&
	      !memcmp(wire[0].secrets[QRDMA_CRYPTO_APP][1], wire[1].secrets[QRDMA_CRYPTO_APP][0], 48) &&
	      wire[0].peer_params_len == 61 && wire[1].peer_params_len == 60, "a handshake by system calls", detail);
	err = both("other.test", &why);
	check(err == -EKEYREJECTED && server_err == -EKEYREJECTED && wire[0].alert == 42 && !faults, "and its refusal",
	      why.text);
	test_reason(QRDMA_REASON_NONE, 0, 0, "no reason");
	test_reason(QRDMA_REASON_HANDSHAKE, 0x100 + 116, -ENOKEY, "a reason that is an alert");
	test_reason(QRDMA_REASON_IDLE, 0, -ETIMEDOUT, "a reason of this end");
	test_reason(QRDMA_REASON_PEER_ERROR, 3, -ECONNREFUSED, "an error of protocol");
	test_reason(QRDMA_REASON_PEER_CLOSE, 0, -ECONNRESET, "a close by the peer's application");
	test_reason(QRDMA_REASON_PEER_LOST, 0, -ECONNRESET, "a peer that was restarted");
	return test_end();
}
