// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Traffic secrets on their way into a socket, and the facts about each cipher. Called by oob.c, quic_tls.c
 * and the in-band transport; holds no state.
 */
#include <errno.h>
#include <string.h>
#include "keys.h"
#include "tls.h"

static const struct cipher {
	uint32_t type;
	size_t secret_len;	/* output of the suite's hash, bytes */
	const char *name;
} ciphers[] = {
	{ QRDMA_CIPHER_AES_GCM_128, 32, "aes-128-gcm" },
	{ QRDMA_CIPHER_AES_GCM_256, 48, "aes-256-gcm" },
	{ QRDMA_CIPHER_AES_CCM_128, 32, "aes-128-ccm" },
	{ QRDMA_CIPHER_CHACHA20, 32, "chacha20-poly1305" },
};

static const struct cipher *cipher_find(uint32_t type)
{
	for (size_t i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++)
		if (ciphers[i].type == type)
			return &ciphers[i];
	return NULL;
}

const char *qrdma_cipher_name(uint32_t cipher)
{
	const struct cipher *c = cipher_find(cipher);

	return c ? c->name : NULL;
}

uint32_t qrdma_cipher_by_name(const char *name)
{
	for (size_t i = 0; name && i < sizeof(ciphers) / sizeof(ciphers[0]); i++)
		if (!strcmp(ciphers[i].name, name))
			return ciphers[i].type;
	return 0;
}

size_t keys_secret_len(uint32_t cipher)
{
	const struct cipher *c = cipher_find(cipher);

	return c ? c->secret_len : 0;
}

int keys_install_level(int fd, uint8_t level, bool send, uint32_t cipher, const uint8_t *secret)
{
	struct qrdma_crypto_secret opt = {
		.send = send,
		.level = level,
		.type = cipher,
	};
	int err = 0;

	memcpy(opt.secret, secret, keys_secret_len(cipher));
	if (setsockopt(fd, SOL_QRDMA, QRDMA_CRYPTO_SECRET, &opt, sizeof(opt)))
		err = -errno;
	tls_wipe(&opt, sizeof(opt));
	return err;
}

int keys_install(int fd, bool send, uint32_t cipher, const uint8_t *secret)
{
	return keys_install_level(fd, QRDMA_CRYPTO_APP, send, cipher, secret);
}
