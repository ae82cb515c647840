// SPDX-License-Identifier: GPL-2.0
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"
#include "flow.h"

#define CHUNK	(64 << 10)

/*
 * SHA-256 (FIPS 180-4); the constants are fractions of roots of primes, computed at first use.
 */

static uint32_t sha_k[64];
static uint32_t sha_h[8];

/* The first 32 bits of the fraction of the square or cube root of @prime */
static uint32_t root_fraction(unsigned int prime, int power)
{
	unsigned __int128 low = 0, high = (unsigned __int128)20 << 32, mid, p;
	int i;

	/* largest mid with (mid / 2^32)^power <= prime */
	while (low + 1 < high) {
		mid = (low + high) / 2;
		p = mid;
		for (i = 1; i < power; i++)
			p = p * mid;
		if (p <= (unsigned __int128)prime << (32 * power))
			low = mid;
		else
			high = mid;
	}
	return low;
}

static void sha_constants(void)
{
	unsigned int n, d, i = 0;

	for (n = 2; i < 64; n++) {
		for (d = 2; d * d <= n && n % d; d++)
			;
		if (d * d <= n)
			continue;
		if (i < 8)
			sha_h[i] = root_fraction(n, 2);
		sha_k[i++] = root_fraction(n, 3);
	}
}

static uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void sha_block(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64], s[8], t1, t2;
	int i;

	for (i = 0; i < 16; i++) {
		memcpy(&w[i], block + 4 * i, 4);
		w[i] = be32toh(w[i]);
	}
	for (; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, state, sizeof(s));
	for (i = 0; i < 64; i++) {
		t1 = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
		     ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha_k[i] + w[i];
		t2 = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
		     ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += t1;
		s[0] = t1 + t2;
	}
	for (i = 0; i < 8; i++)
		state[i] += s[i];
}

void sha256_init(struct sha256 *sha)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, sha_constants);
	memcpy(sha->state, sha_h, sizeof(sha->state));
	sha->len = 0;
}

void sha256_add(struct sha256 *sha, const void *data, size_t len)
{
	size_t have = sha->len % sizeof(sha->block), part;

	sha->len += len;
	while (len) {
		part = sizeof(sha->block) - have;
		if (part > len)
			part = len;
		memcpy(sha->block + have, data, part);
		data = (const uint8_t *)data + part;
		len -= part;
		have = (have + part) % sizeof(sha->block);
		if (!have)
			sha_block(sha->state, sha->block);
	}
}

void sha256_end(struct sha256 *sha, uint8_t out[SHA256_LEN])
{
	uint64_t bits = htobe64(sha->len * 8);
	uint32_t word;
	int i;

	sha256_add(sha, "\x80", 1);
	while (sha->len % sizeof(sha->block) != sizeof(sha->block) - sizeof(bits))
		sha256_add(sha, "", 1);
	sha256_add(sha, &bits, sizeof(bits));
	for (i = 0; i < 8; i++) {
		word = htobe32(sha->state[i]);
		memcpy(out + 4 * i, &word, 4);
	}
}

/*
 * The pattern: each word of 8 bytes is a hash of its number.
 */

static uint64_t pattern_word(uint64_t seed, uint64_t number)
{
	uint64_t z = seed + (number + 1) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

void pattern_fill(uint64_t seed, uint64_t off, void *out, size_t len)
{
	uint8_t *at = out;
	uint64_t word;
	size_t skip, part;

	while (len) {
		word = htole64(pattern_word(seed, off / 8));
		skip = off % 8;
		part = 8 - skip < len ? 8 - skip : len;
		memcpy(at, (uint8_t *)&word + skip, part);
		at += part;
		off += part;
		len -= part;
	}
}

size_t pattern_check(uint64_t seed, uint64_t off, const void *data, size_t len)
{
	uint8_t want[4096];
	size_t done, part, i;

	for (done = 0; done < len; done += part) {
		part = len - done < sizeof(want) ? len - done : sizeof(want);
		pattern_fill(seed, off + done, want, part);
		if (!memcmp(want, (const uint8_t *)data + done, part))
			continue;
		for (i = 0; want[i] == ((const uint8_t *)data)[done + i]; i++)
			;
		return done + i;
	}
	return len;
}

/*
 * Flows
 */

static bool writer_may(struct flow *flow, size_t *len)
{
	bool may;

	pthread_mutex_lock(&flow->lock);
	may = !flow->stop;
	pthread_mutex_unlock(&flow->lock);
	if (flow->size && flow->size - flow->sent < *len)
		*len = flow->size - flow->sent;
	return may && *len;
}

static void *flow_write(void *arg)
{
	struct flow *flow = arg;
	uint8_t *buf = malloc(flow->chunk);
	struct sha256 sha;
	ssize_t n;
	size_t len;

	if (!buf)
		abort();
	sha256_init(&sha);
	while (len = flow->chunk, writer_may(flow, &len)) {
		pattern_fill(flow->seed, flow->sent, buf, len);
		n = send(flow->tx, buf, len, MSG_NOSIGNAL);
		if (n < 0) {
			flow->tx_err = -errno;
			break;
		}
		sha256_add(&sha, buf, n);
		flow->sent += n;
	}
	free(buf);
	sha256_end(&sha, flow->tx_sha);
	pthread_mutex_lock(&flow->lock);
	flow->tx_over = true;
	if (!flow->size && !flow->tx_err)
		flow->size = flow->sent;
	pthread_cond_broadcast(&flow->moved);
	pthread_mutex_unlock(&flow->lock);
	if (flow->tx_err)
		return NULL;
	if (flow->half_close && shutdown(flow->tx, SHUT_WR))
		flow->tx_err = -errno;
	if (flow->close_tx && close(flow->tx))
		flow->tx_err = -errno;
	return NULL;
}

static void reader_moved(struct flow *flow, size_t n, bool over)
{
	pthread_mutex_lock(&flow->lock);
	flow->received += n;
	flow->rx_over |= over;
	pthread_cond_broadcast(&flow->moved);
	pthread_mutex_unlock(&flow->lock);
}

/* All that the writer has to give was read, and no end is waited for. */
static bool reader_done(struct flow *flow)
{
	bool done;

	if (flow->half_close || flow->close_tx)
		return false;
	pthread_mutex_lock(&flow->lock);
	done = flow->size && flow->received == flow->size;
	pthread_mutex_unlock(&flow->lock);
	return done;
}

static void *flow_read(void *arg)
{
	struct flow *flow = arg;
	uint8_t *buf = malloc(flow->chunk);
	struct sha256 sha;
	size_t good;
	ssize_t n;

	if (!buf)
		abort();
	sha256_init(&sha);
	while (!reader_done(flow)) {
		n = recv(flow->rx, buf, flow->chunk, 0);
		if (n < 0) {
			flow->rx_err = -errno;
			break;
		}
		if (!n) {
			flow->saw_end = true;
			break;
		}
		good = pattern_check(flow->seed, flow->received, buf, n);
		if (good != (size_t)n) {
			flow->wrong_at = flow->received + good;
			flow->rx_err = -EBADMSG;
			break;
		}
		sha256_add(&sha, buf, n);
		reader_moved(flow, n, false);
	}
	free(buf);
	sha256_end(&sha, flow->rx_sha);
	reader_moved(flow, 0, true);
	return NULL;
}

void flow_start(struct flow *flow)
{
	flow->chunk = flow->chunk ?: CHUNK;
	flow->seed = end_fresh_seed();
	flow->tx_err = 0;
	flow->rx_err = 0;
	flow->sent = 0;
	flow->received = 0;
	flow->saw_end = false;
	flow->stop = false;
	flow->tx_over = false;
	flow->rx_over = false;
	pthread_mutex_init(&flow->lock, NULL);
	pthread_cond_init(&flow->moved, NULL);
	if (pthread_create(&flow->reader, NULL, flow_read, flow) ||
	    pthread_create(&flow->writer, NULL, flow_write, flow))
		abort();
}

int flow_wait(struct flow *flow)
{
	pthread_join(flow->writer, NULL);
	pthread_join(flow->reader, NULL);
	pthread_cond_destroy(&flow->moved);
	pthread_mutex_destroy(&flow->lock);
	if (!flow->tx_err && !flow->rx_err && flow->received != flow->sent)
		flow->rx_err = -ENODATA;
	return flow->tx_err ?: flow->rx_err;
}

int flow_run(struct flow *flow)
{
	flow_start(flow);
	return flow_wait(flow);
}

uint64_t flow_await(struct flow *flow, uint64_t bytes)
{
	uint64_t now;

	pthread_mutex_lock(&flow->lock);
	while (flow->received < bytes && !flow->rx_over)
		pthread_cond_wait(&flow->moved, &flow->lock);
	now = flow->received;
	pthread_mutex_unlock(&flow->lock);
	return now;
}

uint64_t flow_progress(struct flow *flow)
{
	return flow_await(flow, 0);
}

void flow_stop(struct flow *flow)
{
	pthread_mutex_lock(&flow->lock);
	flow->stop = true;
	pthread_mutex_unlock(&flow->lock);
}

bool flow_good(const struct flow *flow)
{
	return !flow->tx_err && !flow->rx_err && flow->received == flow->size &&
	       flow->sent == flow->size && !memcmp(flow->tx_sha, flow->rx_sha, SHA256_LEN);
}

const char *flow_describe(const struct flow *flow)
{
	static __thread char text[200];
	int n, i;

	n = snprintf(text, sizeof(text), "sent %llu (%s), received %llu (%s)%s",
		     (unsigned long long)flow->sent,
		     flow->tx_err ? strerror(-flow->tx_err) : "ok",
		     (unsigned long long)flow->received,
		     flow->rx_err ? strerror(-flow->rx_err) : "ok",
		     flow->saw_end ? ", end seen" : "");
	if (flow->rx_err == -EBADMSG)
		snprintf(text + n, sizeof(text) - n, ", first wrong byte at %llu",
			 (unsigned long long)flow->wrong_at);
	else if (!flow->rx_err) {
		n += snprintf(text + n, sizeof(text) - n, ", sha256 ");
		for (i = 0; i < 8; i++)
			n += snprintf(text + n, sizeof(text) - n, "%02x", flow->rx_sha[i]);
	}
	return text;
}
