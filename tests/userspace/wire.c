// SPDX-License-Identifier: GPL-2.0
/* See wire.h. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "wire.h"

struct wire_end wire[2];
void (*wire_turn)(void);

void wire_reset(void)
{
	memset(wire, 0, sizeof(wire));
	for (int i = 0; i < 2; i++) {
		wire[i].state = QRDMA_STATE_HANDSHAKE;
		wire[i].result = -1;
		wire[i].alert = -1;
	}
	wire_turn = NULL;
}

void wire_close(int fd, uint64_t code)
{
	struct wire_end *peer = &wire[!fd];

	wire[fd].ended = true;
	if (peer->ended)
		return;
	peer->ended = true;
	peer->end.error = ECONNRESET;
	peer->end.by_transport = true;
	peer->end.remote = true;
	peer->end.code = code;
}

static int wire_state(int fd)
{
	if (!wire[fd].result && wire[fd].late) {
		wire[fd].late--;
		return QRDMA_STATE_HANDSHAKE;
	}
	return wire[fd].state;
}

static ssize_t wire_params(int fd, uint8_t *data, size_t size)
{
	size_t len = 60 + fd;

	if (size < len)
		return -EINVAL;
	memset(data, 0xa0 + fd, len);
	return len;
}

static ssize_t wire_send(int fd, uint8_t level, const uint8_t *data, size_t len)
{
	struct wire_end *end = &wire[fd];
	struct wire_end *peer = &wire[!fd];

	if (end->ended)
		return -ECONNRESET;
	if (level != QRDMA_CRYPTO_INITIAL && !end->have_secret[level][1])
		end->broken++;
	if (end->busy) {
		end->busy--;
		return -EAGAIN;
	}
	if (end->room && len > end->room)
		len = end->room;
	if (end->silent)
		return len;
	if (peer->len[level] + len > WIRE_QUEUE)
		return -EAGAIN;
	memcpy(peer->data[level] + peer->len[level], data, len);
	peer->len[level] += len;
	return len;
}

static ssize_t wire_recv(int fd, uint8_t *level, uint8_t *data, size_t size)
{
	static const uint8_t order[] = { QRDMA_CRYPTO_INITIAL, QRDMA_CRYPTO_HANDSHAKE };
	struct wire_end *end = &wire[fd];

	for (size_t i = 0; i < sizeof(order); i++) {
		size_t n = end->len[order[i]];

		if (!n || (order[i] != QRDMA_CRYPTO_INITIAL && !end->have_secret[order[i]][0]))
			continue;
		if (n > size)
			n = size;
		*level = order[i];
		memcpy(data, end->data[order[i]], n);
		end->len[order[i]] -= n;
		memmove(end->data[order[i]], end->data[order[i]] + n, end->len[order[i]]);
		return n;
	}
	if (end->ended)
		return end->end.error == ECONNRESET ? 0 : -end->end.error;
	return -EAGAIN;
}

static int wire_secret(int fd, uint8_t level, bool send, uint32_t cipher, const uint8_t *secret)
{
	struct wire_end *end = &wire[fd];

	if (end->refuse_secret)
		return -end->refuse_secret;
	if (end->have_secret[level][send])
		return -EEXIST;
	end->have_secret[level][send] = true;
	memcpy(end->secrets[level][send], secret, cipher == QRDMA_CIPHER_AES_GCM_256 ? 48 : 32);
	return 0;
}

static int wire_peer_params(int fd, const uint8_t *data, size_t len)
{
	struct wire_end *end = &wire[fd];

	if (end->refuse_params) {
		if (end->refuse_params == EPROTO)
			wire_close(fd, 8);
		return -end->refuse_params;
	}
	if (end->peer_params_len || len > sizeof(end->peer_params))
		end->broken++;
	memcpy(end->peer_params, data, len);
	end->peer_params_len = len;
	return 0;
}

static int wire_result(int fd, int error, uint8_t alert, bool judged)
{
	struct wire_end *end = &wire[fd];

	if (end->result >= 0)
		end->broken++;
	end->result = error;
	end->judged = judged;
	if (error) {
		end->alert = alert;
		end->state = QRDMA_STATE_CLOSED;
		wire_close(fd, 0x100 + alert);
		return 0;
	}
	if (!end->have_secret[QRDMA_CRYPTO_APP][0] || !end->have_secret[QRDMA_CRYPTO_APP][1] || !end->peer_params_len)
		end->broken++;
	end->state = QRDMA_STATE_ESTABLISHED;
	return 0;
}

static int wire_end(int fd, struct hs_end *end)
{
	*end = wire[fd].end;
	return 0;
}

static ssize_t wire_ticket(int fd, uint8_t *data, size_t size)
{
	struct wire_end *end = &wire[fd];
	size_t n = end->len[QRDMA_CRYPTO_APP];

	if (!n)
		return -ENODATA;
	if (n > size)
		n = size;
	memcpy(data, end->data[QRDMA_CRYPTO_APP], n);
	end->len[QRDMA_CRYPTO_APP] -= n;
	memmove(end->data[QRDMA_CRYPTO_APP], end->data[QRDMA_CRYPTO_APP] + n, end->len[QRDMA_CRYPTO_APP]);
	return n;
}

static int wire_wait(int fd, short events, int timeout_ms)
{
	if (!events || timeout_ms < 0)
		wire[fd].broken++;
	if (wire_turn)
		wire_turn();
	return 0;
}

const struct hs_transport wire_transport = {
	.state = wire_state,
	.params = wire_params,
	.send = wire_send,
	.recv = wire_recv,
	.secret = wire_secret,
	.peer_params = wire_peer_params,
	.result = wire_result,
	.end = wire_end,
	.ticket = wire_ticket,
	.wait = wire_wait,
};
