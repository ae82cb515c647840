// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tls.h"

/* Bytes of the messages: the server's second one spans several datagrams. */
enum {
	CLIENT_HELLO = 300,
	SERVER_HELLO = 90,
	CERTIFICATE = 3000,
	FINISHED = 36,
	MESSAGE_MAX = 4096,
};

int tls_send(int fd, int level, const void *data, size_t len)
{
	char control[CMSG_SPACE(sizeof(struct qrdma_handshake_info))] = {};
	const struct qrdma_handshake_info info = { .level = level };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	cmsg->cmsg_level = SOL_QRDMA;
	cmsg->cmsg_type = QRDMA_HANDSHAKE_INFO;
	cmsg->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
	n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

int tls_recv(int fd, int *level, void *data, size_t size, int flags)
{
	char control[CMSG_SPACE(sizeof(struct qrdma_handshake_info))] = {};
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct qrdma_handshake_info info;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t n;

	n = recvmsg(fd, &msg, flags);
	if (n < 0)
		return -errno;
	cmsg = CMSG_FIRSTHDR(&msg);
	*level = -1;
	if (!cmsg)
		return n ? -EBADMSG : 0;
	if (cmsg->cmsg_level != SOL_QRDMA || cmsg->cmsg_type != QRDMA_HANDSHAKE_INFO ||
	    cmsg->cmsg_len != CMSG_LEN(sizeof(info)))
		return -EBADMSG;
	memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
	*level = info.level;
	return n;
}

/* Each level and direction has a secret of its own: those of end_secret() with another seed. */
int tls_secret(int fd, int level, int role, int send, const struct end_options *opt)
{
	struct qrdma_crypto_secret s = {
		.send = send,
		.level = level,
		.type = opt->cipher ?: QRDMA_CIPHER_AES_GCM_128,
	};
	bool of_client = (role == QRDMA_ROLE_CLIENT) == !!send;
	size_t len = s.type == QRDMA_CIPHER_AES_GCM_256 ? 48 : 32;

	for (size_t i = 0; i < len; i++)
		s.secret[i] = (opt->seed >> (i % 8 * 8)) + i + level * 64 + of_client * 7;
	return setsockopt(fd, SOL_QRDMA, QRDMA_CRYPTO_SECRET, &s, sizeof(s)) ? -errno : 0;
}

static int secrets(int fd, int level, int role, const struct end_options *opt)
{
	return tls_secret(fd, level, role, 0, opt) ?: tls_secret(fd, level, role, 1, opt);
}

int tls_result(int fd, int error, int alert)
{
	struct qrdma_handshake_result result = { .error = error, .alert = alert };

	return setsockopt(fd, SOL_QRDMA, QRDMA_HANDSHAKE_RESULT, &result, sizeof(result)) ?
	       -errno : 0;
}

int tls_socket(char host, const struct end_options *opt)
{
	struct qrdma_config config = opt->config;
	int fd = end_socket(opt), err;

	if (fd < 0)
		return fd;
	config.handshake = QRDMA_HANDSHAKE_SELF;
	err = setsockopt(fd, SOL_QRDMA, QRDMA_CONFIG, &config, sizeof(config)) ? -errno : 0;
	if (!err)
		err = end_bind(fd, host, opt->ipv6, 0);
	if (err)
		close(fd);
	return err ?: fd;
}

int tls_listener(char host, const struct end_options *opt, int backlog)
{
	int fd = tls_socket(host, opt);

	if (fd >= 0 && listen(fd, backlog)) {
		close(fd);
		return -errno;
	}
	return fd;
}

/* A message with our transport parameters: 2 bytes of length, then they, then zeros. */
static int send_params(int fd, int level, size_t len)
{
	uint8_t message[MESSAGE_MAX] = {};
	socklen_t n = len - 2;

	if (getsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, message + 2, &n))
		return -errno;
	message[0] = n >> 8;
	message[1] = n;
	return tls_send(fd, level, message, len);
}

/* All bytes of a message of @level. Return: 0, -errno; -ECONNABORTED: the end came first. */
static int recv_message(int fd, int level, uint8_t *message, size_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t have = 0;
	int n, is;

	while (have < len) {
		n = tls_recv(fd, &is, message + have, len - have, 0);
		/* The agent's descriptor never blocks. */
		if (n == -EAGAIN && poll(&p, 1, -1) > 0)
			continue;
		if (n <= 0)
			return n ?: -ECONNABORTED;
		if (is != level)
			return -EBADMSG;
		have += n;
	}
	return 0;
}

static int recv_params(int fd, int level, size_t len)
{
	uint8_t message[MESSAGE_MAX];
	int err = recv_message(fd, level, message, len);

	if (err)
		return err;
	if (setsockopt(fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM_EXT, message + 2,
		       message[0] << 8 | message[1]))
		return -errno;
	return 0;
}

static int sent(int n)
{
	return n < 0 ? n : 0;
}

int tls_client(int fd, const struct end_options *opt)
{
	uint8_t message[MESSAGE_MAX] = {};
	int err;

	err = sent(send_params(fd, QRDMA_CRYPTO_INITIAL, CLIENT_HELLO));
	if (!err)
		err = recv_message(fd, QRDMA_CRYPTO_INITIAL, message, SERVER_HELLO);
	if (!err)
		err = secrets(fd, QRDMA_CRYPTO_HANDSHAKE, QRDMA_ROLE_CLIENT, opt);
	if (!err)
		err = recv_params(fd, QRDMA_CRYPTO_HANDSHAKE, CERTIFICATE);
	if (!err)
		err = sent(tls_send(fd, QRDMA_CRYPTO_HANDSHAKE, message, FINISHED));
	if (!err)
		err = secrets(fd, QRDMA_CRYPTO_APP, QRDMA_ROLE_CLIENT, opt);
	return err ?: tls_result(fd, 0, 0);
}

int tls_server(int fd, const struct end_options *opt, int alert)
{
	uint8_t message[MESSAGE_MAX] = {};
	int err;

	err = recv_params(fd, QRDMA_CRYPTO_INITIAL, CLIENT_HELLO);
	if (!err && alert)
		return tls_result(fd, EKEYREJECTED, alert);
	if (!err)
		err = sent(tls_send(fd, QRDMA_CRYPTO_INITIAL, message, SERVER_HELLO));
	if (!err)
		err = secrets(fd, QRDMA_CRYPTO_HANDSHAKE, QRDMA_ROLE_SERVER, opt);
	if (!err)
		err = sent(send_params(fd, QRDMA_CRYPTO_HANDSHAKE, CERTIFICATE));
	if (!err)
		err = secrets(fd, QRDMA_CRYPTO_APP, QRDMA_ROLE_SERVER, opt);
	if (!err)
		err = recv_message(fd, QRDMA_CRYPTO_HANDSHAKE, message, FINISHED);
	return err ?: tls_result(fd, 0, 0);
}

struct server {
	pthread_t thread;
	int listener;
	const struct end_options *opt;
	int fd;
	int err;
};

static void *serve(void *arg)
{
	struct server *server = arg;

	server->fd = accept(server->listener, NULL, NULL);
	server->err = server->fd < 0 ? -errno : tls_server(server->fd, server->opt, 0);
	return NULL;
}

int tls_pair(int fd[2], int listener, const struct end_options *opt)
{
	struct server server = { .listener = listener, .opt = opt };
	int err;

	fd[1] = -1;
	fd[0] = tls_socket('a', opt);
	if (fd[0] < 0)
		return fd[0];
	pthread_create(&server.thread, NULL, serve, &server);
	err = end_connect(fd[0], 'b', opt->ipv6, end_port(listener));
	if (!err)
		err = tls_client(fd[0], opt);
	if (err)
		shutdown(listener, SHUT_RD);	/* or accept() would wait for ever */
	pthread_join(server.thread, NULL);
	fd[1] = server.fd;
	if (!err)
		err = server.err;
	for (int i = 0; i < 2 && err; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
	return err;
}
