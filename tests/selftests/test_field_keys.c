// SPDX-License-Identifier: GPL-2.0
/*
 * Keys and the structures they come in: the same secret again (F18), sizes and padding of every
 * option (F19), what cannot be read back, what is refused once the keys are in use.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"
#include "fact.h"
#include "probe.h"

static int set(int fd, int name, const void *val, socklen_t len)
{
	return setsockopt(fd, SOL_QRDMA, name, val, len) ? errno : 0;
}

static int fresh(void)
{
	const struct end_options opt = { 0 };
	int fd = end_socket(&opt);

	if (fd < 0)
		BAIL("socket: %s", strerror(-fd));
	return fd;
}

static struct qrdma_crypto_secret secret_of(int send, uint32_t type, int seed)
{
	struct qrdma_crypto_secret s = { .send = send, .level = QRDMA_CRYPTO_APP, .type = type };

	memset(s.secret, seed, type == QRDMA_CIPHER_AES_GCM_256 ? 48 : 32);
	return s;
}

static int secret(int fd, int send, uint32_t type, int seed)
{
	const struct qrdma_crypto_secret s = secret_of(send, type, seed);

	return set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s));
}

TEST(secrets)
{
	static const uint32_t types[] = { QRDMA_CIPHER_AES_GCM_128, QRDMA_CIPHER_AES_GCM_256,
					  QRDMA_CIPHER_AES_CCM_128, QRDMA_CIPHER_CHACHA20 };
	struct qrdma_crypto_secret s;
	socklen_t len = sizeof(s);
	size_t i;
	int fd;

	for (i = 0; i < 4; i++) {
		fd = fresh();
		FACT(!secret(fd, 1, types[i], 1) && !secret(fd, 0, types[i], 2),
		     "cipher %u: both secrets go in", types[i]);
		FACT(secret(fd, 1, types[i], 1) == EEXIST && secret(fd, 0, types[i], 2) == EEXIST,
		     "cipher %u: the same again is refused", types[i]);
		FACT(!secret(fd, 1, types[i], 3), "cipher %u: another takes its place", types[i]);
		FACT(secret(fd, 0, types[i], 3) == EINVAL,
		     "cipher %u: one for both directions is refused", types[i]);
		close(fd);
	}
	fd = fresh();
	secret(fd, 1, types[0], 1);
	FACT(secret(fd, 0, types[3], 2) == EINVAL, "two ciphers are refused");
	FACT(secret(fd, 0, 0, 2) == EINVAL && secret(fd, 0, 50, 2) == EINVAL &&
	     secret(fd, 0, 55, 2) == EINVAL, "unknown ciphers are refused");
	FACT(secret(fd, 2, types[0], 2) == EINVAL, "a third direction is refused");
	s = secret_of(0, types[0], 2);
	s.level = QRDMA_CRYPTO_HANDSHAKE;
	FACT(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)) == EINVAL, "another level is refused");
	memset(&s, 0, sizeof(s));
	FACT(getsockopt(fd, SOL_QRDMA, QRDMA_CRYPTO_SECRET, &s, &len) && errno == ENOPROTOOPT,
	     "a secret cannot be read back");
	for (i = 0; i < sizeof(s) && !((char *)&s)[i]; i++)
		;
	FACT(i == sizeof(s), "and the buffer is untouched");
	close(fd);
}

/* An option's value that is good, and the bytes of it that have to be zero */
struct option {
	const char *what;
	int name;
	const void *good;
	size_t size;
	struct {
		size_t at, len;
	} zero[6];
};

static void sizes(const struct option *o)
{
	uint8_t *buf = calloc(1, o->size + 64);
	int fd = fresh(), bad = 0;
	size_t len;

	memcpy(buf, o->good, o->size);
	for (len = 0; len <= o->size + 64; len++) {
		if (len != o->size && set(fd, o->name, buf, len) != EINVAL) {
			NOTE("%s: %zu bytes instead of %zu", o->what, len, o->size);
			bad++;
		}
	}
	FACT(!bad, "%s: any other size is refused", o->what);
	/* A negative and a huge length */
	FACT(set(fd, o->name, buf, (socklen_t)-1) == EINVAL &&
	     set(fd, o->name, buf, 1 << 30) == EINVAL, "%s: so is nonsense", o->what);
	FACT(!set(fd, o->name, buf, o->size), "%s: the right size is taken", o->what);
	free(buf);
	close(fd);
}

static void padding(const struct option *o)
{
	uint8_t *buf = malloc(o->size);
	int fd = fresh(), bad = 0, tried = 0;
	size_t i, k;

	for (i = 0; i < 6; i++) {
		for (k = 0; k < o->zero[i].len; k++) {
			memcpy(buf, o->good, o->size);
			buf[o->zero[i].at + k] = 1 << (k % 8);
			tried++;
			if (set(fd, o->name, buf, o->size) == EINVAL)
				continue;
			NOTE("%s: byte %zu is not checked", o->what, o->zero[i].at + k);
			bad++;
		}
	}
	FACT(!bad && tried, "%s: each of %d bytes of padding has to be zero", o->what, tried);
	FACT(!set(fd, o->name, o->good, o->size), "%s: zero, it is taken", o->what);
	free(buf);
	close(fd);
}

#define ZERO(type, field)	{ offsetof(type, field), sizeof(((type *)0)->field) }

TEST(structures)
{
	const struct qrdma_crypto_secret short_secret = secret_of(0, QRDMA_CIPHER_CHACHA20, 5);
	const struct qrdma_crypto_secret long_secret = secret_of(0, QRDMA_CIPHER_AES_GCM_256, 5);
	const struct qrdma_transport_param param = { .max_ack_delay = 25000,
						     .ack_delay_exponent = 3,
						     .active_connection_id_limit = 2,
						     .max_udp_payload_size = 1500 };
	const struct qrdma_connection_ids ids = {
		.source_len = 8, .dest_len = 3, .source = "source12", .dest = "abc"
	};
	const struct qrdma_config config = { .granularity = 100 };
	const struct option options[] = {
		{ "secret of 32 bytes", QRDMA_CRYPTO_SECRET, &short_secret, sizeof(short_secret),
		  { ZERO(struct qrdma_crypto_secret, reserved),
		    { offsetof(struct qrdma_crypto_secret, secret) + 32, 16 } } },
		{ "secret of 48 bytes", QRDMA_CRYPTO_SECRET, &long_secret, sizeof(long_secret),
		  { ZERO(struct qrdma_crypto_secret, reserved) } },
		{ "transport parameters", QRDMA_TRANSPORT_PARAM, &param, sizeof(param),
		  { ZERO(struct qrdma_transport_param, stateless_reset_token) } },
		{ "connection ids", QRDMA_CONNECTION_ID, &ids, sizeof(ids),
		  { ZERO(struct qrdma_connection_ids, reserved),
		    { offsetof(struct qrdma_connection_ids, source) + 8, 12 },
		    { offsetof(struct qrdma_connection_ids, dest) + 3, 17 } } },
		{ "configuration", QRDMA_CONFIG, &config, sizeof(config),
		  { ZERO(struct qrdma_config, reserved) } },
	};
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		sizes(&options[i]);
		padding(&options[i]);
	}
}

TEST(keys_in_use)
{
	const struct end_options opt = { .seed = end_fresh_seed() };
	struct end_options other = { .seed = end_fresh_seed() };
	struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	int fd[2], err = end_pair(fd, &opt);

	if (!FACT(!err, "connect: %s", strerror(-err)))
		return;
	FACT(end_secret(fd[0], QRDMA_ROLE_CLIENT, 1, &opt) == -EEXIST,
	     "connected: the secret in use is refused as such");
	FACT(end_secret(fd[0], QRDMA_ROLE_CLIENT, 1, &other) == -EISCONN &&
	     end_ids(fd[0], QRDMA_ROLE_CLIENT, &other) == -EISCONN &&
	     end_params(fd[0], &other) == -EISCONN, "connected: nothing can be changed");
	FACT(!connect(fd[0], &nowhere, sizeof(nowhere)), "disconnect");
	/* Its packet numbers are used up: a second connection would use them, and nonces, again. */
	err = end_connect(fd[0], 'b', false, end_port(fd[1]));
	FACT(err == -ENOKEY, "keys that were used are good for no other connection: %s",
	     strerror(-err));
	err = end_secret(fd[0], QRDMA_ROLE_CLIENT, 1, &opt);
	FACT(err == -EEXIST || err == -EISCONN, "nor can they be installed again: %s",
	     strerror(-err));
	close(fd[0]);
	close(fd[1]);
}

/* Ciphers of this name that are in use, by /proc/crypto */
static int64_t ciphers_in_use(const char *want)
{
	char line[256], name[128] = "";
	FILE *f = fopen("/proc/crypto", "r");
	int64_t sum = 0;
	long refs;

	if (!f)
		BAIL("/proc/crypto: %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "name : %127s", name) != 1 && !strcmp(name, want) &&
		    sscanf(line, "refcnt : %ld", &refs) == 1)
			sum += refs;
	}
	fclose(f);
	return sum;
}

static bool are_in_use(void *arg)
{
	return ciphers_in_use("ccm(aes)") == *(int64_t *)arg;
}

static bool has_updated(void *arg)
{
	return !setsockopt(*(int *)arg, SOL_QRDMA, QRDMA_KEY_UPDATE, NULL, 0);
}

/*
 * A spent generation is not kept, not even to know that it came before; nor is one in advance by
 * who does not use its keys.
 */
TEST(spent_keys_go)
{
	/* one that the tests before do not leave behind */
	const struct end_options opt = { .seed = end_fresh_seed(),
					 .cipher = QRDMA_CIPHER_AES_CCM_128 };
	int64_t want = ciphers_in_use("ccm(aes)") + 4;
	int fd[2], i, err = end_pair(fd, &opt);

	if (!FACT(!err, "connect: %s", strerror(-err)))
		return;
	FACT(wait_for(are_in_use, &want), "two ends, two directions, one generation each");
	for (i = 0; i < 3; i++)
		FACT(wait_for(has_updated, &fd[0]), "key update %d", i + 1);
	FACT(wait_for(are_in_use, &want), "no more of them after three updates");
	FACT(end_secret(fd[0], QRDMA_ROLE_CLIENT, 1, &opt) == -EEXIST &&
	     end_secret(fd[0], QRDMA_ROLE_CLIENT, 0, &opt) == -EEXIST &&
	     end_secret(fd[1], QRDMA_ROLE_SERVER, 0, &opt) == -EEXIST,
	     "the first secrets are still known to have been there");
	close(fd[0]);
	close(fd[1]);
}
