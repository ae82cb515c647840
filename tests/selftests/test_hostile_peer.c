// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that has the keys and does not behave (F65): this program seals QUIC packets itself (RFC
 * 9000, RFC 9001, with GnuTLS) and sends them with ud_inject. One flood for each type of frame:
 * the connection lives on, or ends with the error of the RFC, and the kernel's memory does not
 * grow with the flood. It never acknowledges anything.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <gnutls/crypto.h>

#include "ends.h"
#include "fact.h"
#include "flow.h"
#include "inject.h"
#include "probe.h"

enum {
	PORT = 4433,		/* of ours; nobody has it */
	PORTS = 4,
	ID = QRDMA_CONNECTION_ID_LEN,
	NUMBER = 4,		/* bytes of packet number in each packet */
	HEADER = PORTS + 1 + ID + NUMBER,
	TAG = 16,
	SECRET = 32,
	FRAMES_MAX = 1000,
	SEED = 65,
	/* memory for received bytes that a socket of default size may pin, and some air */
	PAGES_MAX = 64,
};

static struct {
	struct inject inject;
	gnutls_aead_cipher_hd_t aead;
	gnutls_cipher_hd_t hp;
	uint8_t iv[12];
	uint8_t id[ID];		/* of the server */
	uint16_t port;		/* of the server */
	uint64_t number;	/* of the next packet */
	uint64_t off;		/* in stream 0: what the server can read */
	int fd;			/* the server's socket */
} peer;

/*
 * Packets
 */

static void expand(const uint8_t *secret, const char *label, uint8_t *out, size_t len)
{
	const gnutls_datum_t key = { (unsigned char *)secret, SECRET };
	uint8_t info[40];
	gnutls_datum_t in = { info, 0 };

	/* HkdfLabel of RFC 8446 s7.1, without a context */
	in.size = snprintf((char *)info + 3, sizeof(info) - 3, "tls13 %s", label) + 4;
	info[0] = 0;
	info[1] = len;
	info[2] = in.size - 4;
	info[in.size - 1] = 0;
	if (gnutls_hkdf_expand(GNUTLS_MAC_SHA256, &key, &in, out, len))
		BAIL("HKDF-Expand-Label");
}

static void install(const uint8_t *secret)
{
	uint8_t key[16], hp[16], zero[16] = { 0 };
	gnutls_datum_t datum = { key, sizeof(key) }, iv = { zero, sizeof(zero) };

	expand(secret, "quic key", key, sizeof(key));
	expand(secret, "quic iv", peer.iv, sizeof(peer.iv));
	expand(secret, "quic hp", hp, sizeof(hp));
	if (gnutls_aead_cipher_init(&peer.aead, GNUTLS_CIPHER_AES_128_GCM, &datum))
		BAIL("AES-128-GCM");
	datum.data = hp;
	/* One block of CBC with an IV of zero is one block of ECB. */
	if (gnutls_cipher_init(&peer.hp, GNUTLS_CIPHER_AES_128_CBC, &datum, &iv))
		BAIL("AES-128");
}

static void protect(uint8_t *packet)
{
	uint8_t *number = packet + 1 + ID, mask[16], zero[16] = { 0 };
	int i;

	gnutls_cipher_set_iv(peer.hp, zero, sizeof(zero));
	if (gnutls_cipher_encrypt2(peer.hp, number + 4, sizeof(mask), mask, sizeof(mask)))
		BAIL("header protection");
	packet[0] ^= mask[0] & 0x1f;
	for (i = 0; i < NUMBER; i++)
		number[i] ^= mask[1 + i];
}

/* What we never acknowledge keeps the server from telling us of more credit than the first. */
/* Till all packets are on the wire */
static void sent(void)
{
	if (inject_reap(&peer.inject))
		BAIL("a send has failed");
}

/* A packet with these frames, to be followed by sent(); @reserved: the bits that have to be zero */
static void packet(const uint8_t *frames, size_t len, uint8_t reserved)
{
	uint8_t msg[HEADER + FRAMES_MAX + TAG], nonce[12];
	uint16_t port = htons(PORT);
	uint64_t number = htobe64(peer.number);
	uint32_t low = htonl(peer.number);
	size_t sealed = len + TAG, i;

	memcpy(msg, &port, 2);
	port = htons(peer.port);
	memcpy(msg + 2, &port, 2);
	msg[PORTS] = 0x40 | (reserved & 0x18) | (NUMBER - 1);
	memcpy(msg + PORTS + 1, peer.id, ID);
	memcpy(msg + PORTS + 1 + ID, &low, NUMBER);
	memcpy(nonce, peer.iv, sizeof(nonce));
	for (i = 0; i < 8; i++)
		nonce[4 + i] ^= ((uint8_t *)&number)[i];
	if (gnutls_aead_cipher_encrypt(peer.aead, nonce, sizeof(nonce), msg + PORTS, 1 + ID + NUMBER,
				       TAG, frames, len, msg + HEADER, &sealed))
		BAIL("seal");
	protect(msg + PORTS);
	peer.number++;
	inject_post(&peer.inject, msg, HEADER + sealed);
	if (peer.inject.posted == INJECT_POSTED)
		sent();
}

/* Variable-length integer, always in its longest form but for small values */
static uint8_t *varint(uint8_t *at, uint64_t val)
{
	uint64_t wire;

	if (val < 64) {
		*at = val;
		return at + 1;
	}
	wire = htobe64(val | 3ULL << 62);
	memcpy(at, &wire, 8);
	return at + 8;
}

/* STREAM of stream @id with offset and length, @len bytes of the pattern */
static uint8_t *stream(uint8_t *at, uint64_t id, uint64_t off, size_t len, bool fin)
{
	*at++ = 0x08 | 0x04 | 0x02 | fin;
	at = varint(at, id);
	at = varint(at, off);
	at = varint(at, len);
	pattern_fill(SEED, off, at, len);
	return at + len;
}

static void stream_packet(uint64_t off, size_t len)
{
	uint8_t frames[FRAMES_MAX];

	packet(frames, stream(frames, 0, off, len, false) - frames, 0);
}

/*
 * The connection
 */

static bool has_path(void *arg)
{
	return info_of(peer.fd).local_qpn;
}

static bool is_established(void *arg)
{
	return info_of(peer.fd).state == QRDMA_STATE_ESTABLISHED;
}

static void secret(int send, const uint8_t *bytes)
{
	struct qrdma_crypto_secret s = { .send = send, .level = QRDMA_CRYPTO_APP,
					 .type = QRDMA_CIPHER_AES_GCM_128 };

	memcpy(s.secret, bytes, SECRET);
	if (setsockopt(peer.fd, SOL_QRDMA, QRDMA_CRYPTO_SECRET, &s, sizeof(s)))
		BAIL("QRDMA_CRYPTO_SECRET: %s", strerror(errno));
}

static void begin(void)
{
	struct end_options opt = { .seed = end_fresh_seed(), .type_flags = SOCK_NONBLOCK,
				   .max_data = 256 << 10 };
	const struct qrdma_config patient = { .linger_timeout = 3600 * 1000 };
	struct qrdma_connection_ids ids;
	uint8_t ours[SECRET], theirs[SECRET];
	socklen_t len = sizeof(ids);
	int err;

	if (getrandom(ours, SECRET, 0) != SECRET || getrandom(theirs, SECRET, 0) != SECRET)
		BAIL("getrandom: %s", strerror(errno));
	install(ours);
	peer.fd = end_socket(&opt);
	err = end_bind(peer.fd, 'b', false, 0);
	/* no test waits for it */
	if (!err && setsockopt(peer.fd, SOL_QRDMA, QRDMA_CONFIG, &patient, sizeof(patient)))
		err = -errno;
	if (!err)
		err = end_ids(peer.fd, QRDMA_ROLE_SERVER, &opt);
	if (!err)
		err = end_params(peer.fd, &opt);
	if (err)
		BAIL("server: %s", strerror(-err));
	secret(0, ours);
	secret(1, theirs);
	peer.port = end_port(peer.fd);
	if (getsockopt(peer.fd, SOL_QRDMA, QRDMA_CONNECTION_ID, &ids, &len))
		BAIL("QRDMA_CONNECTION_ID: %s", strerror(errno));
	memcpy(peer.id, ids.source, ID);
	err = end_connect(peer.fd, 'a', false, PORT);
	if (err != -EINPROGRESS)
		BAIL("connect: %s", strerror(-err));
	inject_open(&peer.inject, "$A4 $B4");
	if (!wait_for(has_path, NULL))
		BAIL("the server finds no path");
	stream_packet(0, 0);
	sent();
	if (!wait_for(is_established, NULL))
		BAIL("the server does not take our first packet");
}

static bool is_readable(void *arg)
{
	uint8_t byte;

	return recv(peer.fd, &byte, 1, MSG_PEEK) >= 0 || errno != EAGAIN;
}

/* @len more bytes of stream 0, from packets of their own: does the server get them? */
static bool delivers(size_t len)
{
	uint8_t buf[800];
	size_t put, got = 0;
	ssize_t n;

	for (put = 0; put < len; put += n) {
		n = len - put < sizeof(buf) ? len - put : sizeof(buf);
		stream_packet(peer.off + put, n);
	}
	sent();
	while (got < len && wait_for(is_readable, NULL)) {
		n = recv(peer.fd, buf, sizeof(buf), 0);
		if (n <= 0 || pattern_check(SEED, peer.off + got, buf, n) != (size_t)n) {
			NOTE("after %zu bytes: %s", got, n < 0 ? strerror(errno) : "wrong bytes");
			return false;
		}
		got += n;
	}
	peer.off += got;
	return got == len;
}

static struct qrdma_connection_close how_closed(void)
{
	struct qrdma_connection_close how;
	socklen_t len = sizeof(how);

	if (getsockopt(peer.fd, SOL_QRDMA, QRDMA_CONNECTION_CLOSE, &how, &len))
		BAIL("QRDMA_CONNECTION_CLOSE: %s", strerror(errno));
	return how;
}

static bool has_ended(void *arg)
{
	return how_closed().reason != QRDMA_REASON_NONE;
}

static bool is_over(void *arg)
{
	return !stat_of("connections");
}

/* The socket is closed. */
static void closed(void)
{
	inject_close(&peer.inject);
	gnutls_aead_cipher_deinit(peer.aead);
	gnutls_cipher_deinit(peer.hp);
	peer.number = 0;
	peer.off = 0;
	FACT(wait_for(is_over, NULL), "the connection is over");
}

static void finish(void)
{
	const struct linger abort = { .l_onoff = 1 };

	setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
	close(peer.fd);
	closed();
}

/*
 * Floods: frames number @i of the flood
 */

static uint8_t *ping(uint8_t *at, uint64_t i)
{
	*at++ = 0x01;
	return at;
}

static uint8_t *padding(uint8_t *at, uint64_t i)
{
	memset(at, 0, 200);
	return at + 200;
}

static uint8_t *type_and(uint8_t *at, uint8_t type, uint64_t val)
{
	*at++ = type;
	return varint(at, val);
}

static uint8_t *ack_first(uint8_t *at, uint64_t i)
{
	at = type_and(at, 0x02, 0);	/* largest */
	at = varint(at, i);		/* delay */
	at = varint(at, 0);		/* ranges */
	return varint(at, 0);
}

static uint8_t *max_data(uint8_t *at, uint64_t i)
{
	return type_and(at, 0x10, i << 20);
}

static uint8_t *max_stream_data(uint8_t *at, uint64_t i)
{
	return varint(type_and(at, 0x11, 0), i << 20);
}

static uint8_t *max_streams(uint8_t *at, uint64_t i)
{
	return type_and(at, 0x12 + i % 2, i);
}

static uint8_t *blocked(uint8_t *at, uint64_t i)
{
	at = type_and(at, 0x14, i);
	at = varint(type_and(at, 0x15, 0), i);
	return type_and(at, 0x16 + i % 2, i);
}

static uint8_t *new_id(uint8_t *at, uint64_t seq, uint64_t retire)
{
	at = varint(type_and(at, 0x18, seq), retire);
	*at++ = ID;
	pattern_fill(SEED, seq * 100, at, ID + 16);	/* and the token */
	return at + ID + 16;
}

static uint8_t *same_id(uint8_t *at, uint64_t i)
{
	return new_id(at, 1, 0);
}

static uint8_t *challenge(uint8_t *at, uint64_t i)
{
	*at++ = 0x1a;
	pattern_fill(SEED, i * 8, at, 8);
	return at + 8;
}

static uint8_t *response(uint8_t *at, uint64_t i)
{
	*at++ = 0x1b;
	pattern_fill(SEED, i * 8, at, 8);
	return at + 8;
}

static uint8_t *crypto_again(uint8_t *at, uint64_t i)
{
	at = varint(type_and(at, 0x06, i * 7 % 15000), 100);
	memset(at, 0xcc, 100);
	return at + 100;
}

static uint8_t *nothing_new(uint8_t *at, uint64_t i)
{
	return stream(at, 0, 0, peer.off < 500 ? peer.off : 500, false);
}

/* Every second byte ahead of what can be read */
static uint8_t *gaps(uint8_t *at, uint64_t i)
{
	return stream(at, 0, peer.off + 1 + 2 * (i % 4000), 1, false);
}

static const struct {
	const char *what;
	uint8_t *(*frames)(uint8_t *at, uint64_t i);
} floods[] = {
	{ "PING", ping },
	{ "PADDING", padding },
	{ "ACK of the first packet", ack_first },
	{ "MAX_DATA", max_data },
	{ "MAX_STREAM_DATA", max_stream_data },
	{ "MAX_STREAMS", max_streams },
	{ "all sorts of BLOCKED", blocked },
	{ "NEW_CONNECTION_ID, the same", same_id },
	{ "PATH_CHALLENGE", challenge },
	{ "PATH_RESPONSE", response },
	{ "CRYPTO within bounds", crypto_again },
	{ "STREAM, bytes that were read", nothing_new },
	{ "STREAM, every second byte", gaps },
};

/* Pages of received data that somebody holds */
static int64_t pages_held(void)
{
	return port_number("rxe1:1", "out") - lanes_number("rxe1:1", "rx_posted");
}

struct received {
	uint64_t want;
};

static bool all_received(void *arg)
{
	struct received *received = arg;
	struct qrdma_info info = info_of(peer.fd);

	return info.packets_opened + info.packets_failed + info.packets_dropped >= received->want;
}

static void flood(const char *what, uint8_t *(*frames)(uint8_t *, uint64_t), uint64_t count)
{
	static struct slab_shot before, after;
	struct received received = { .want = info_of(peer.fd).packets_opened + count };
	uint8_t buf[FRAMES_MAX];
	char name[48] = "";
	int64_t growth;
	uint64_t i;
	bool all;

	slab_take(&before);
	for (i = 0; i < count; i++)
		packet(buf, frames(buf, i) - buf, 0);
	sent();
	all = wait_for(all_received, &received);
	slab_take(&after);
	growth = slab_growth(&before, &after, name);
	FACT(all && growth < (int64_t)count / 2 && pages_held() < PAGES_MAX,
	     "%s: %llu packets, %lld objects of %s more, %lld pages held", what,
	     (unsigned long long)count, (long long)growth, name, (long long)pages_held());
	FACT(delivers(8001), "%s: the connection delivers", what);
}

TEST_TIMEOUT(floods, 900)
{
	uint64_t count = env_number("QRDMA_FLOOD", 1500, 300);
	size_t i;

	begin();
	FACT(delivers(1000), "before: the connection delivers");
	for (i = 0; i < sizeof(floods) / sizeof(floods[0]); i++)
		flood(floods[i].what, floods[i].frames, count);
	finish();
}

/*
 * Frames that end the connection, with the error that RFC 9000 names
 */

static uint8_t *beyond_credit(uint8_t *at, uint64_t i)
{
	return stream(at, 0, 1 << 30, 1, false);
}

static uint8_t *beyond_streams(uint8_t *at, uint64_t i)
{
	return stream(at, 4, 0, 1, false);
}

static uint8_t *never_opened(uint8_t *at, uint64_t i)
{
	return stream(at, 1, 0, 1, false);
}

static uint8_t *two_ends(uint8_t *at, uint64_t i)
{
	at = stream(at, 0, 0, 10, true);
	return stream(at, 0, 0, 20, true);
}

static uint8_t *many_ids(uint8_t *at, uint64_t i)
{
	int seq;

	for (seq = 1; seq < 8; seq++)
		at = new_id(at, seq, 0);
	return at;
}

static uint8_t *ids_retired(uint8_t *at, uint64_t i)
{
	int seq;

	/* Each takes the place of all before; what is owed an answer adds up. */
	for (seq = 1; seq < 20; seq++)
		at = new_id(at, 20 * i + seq, 20 * i + seq);
	return at;
}

static uint8_t *retire_unknown(uint8_t *at, uint64_t i)
{
	return type_and(at, 0x19, 77);
}

static uint8_t *crypto_beyond(uint8_t *at, uint64_t i)
{
	at = varint(type_and(at, 0x06, 1 << 20), 1);
	*at++ = 0;
	return at;
}

static uint8_t *new_token(uint8_t *at, uint64_t i)
{
	at = type_and(at, 0x07, 1);
	*at++ = 0;
	return at;
}

static uint8_t *handshake_done(uint8_t *at, uint64_t i)
{
	*at++ = 0x1e;
	return at;
}

static uint8_t *datagram(uint8_t *at, uint64_t i)
{
	*at++ = 0x30;
	memset(at, 0xdd, 100);
	return at + 100;
}

static uint8_t *ack_future(uint8_t *at, uint64_t i)
{
	at = type_and(at, 0x02, 1 << 20);
	at = varint(at, 0);
	at = varint(at, 0);
	return varint(at, 0);
}

static uint8_t *ack_below_zero(uint8_t *at, uint64_t i)
{
	at = type_and(at, 0x02, 0);
	at = varint(at, 0);
	at = varint(at, 0);
	return varint(at, 1);
}

static uint8_t *unknown_type(uint8_t *at, uint64_t i)
{
	*at++ = 0x21;
	return at;
}

static uint8_t *cut_off(uint8_t *at, uint64_t i)
{
	return stream(at, 0, 0, 100, false) - 50;
}

static uint8_t *too_many_streams(uint8_t *at, uint64_t i)
{
	return type_and(at, 0x12, (1ULL << 60) + 1);
}

static uint8_t *no_frame(uint8_t *at, uint64_t i)
{
	return at;
}

static const struct {
	const char *what;
	uint8_t *(*frames)(uint8_t *at, uint64_t i);
	uint64_t code;
	uint8_t reserved;
	int packets;
} errors[] = {
	{ "STREAM beyond the credit", beyond_credit, 0x03, 0, 1 },
	{ "STREAM of a stream too many", beyond_streams, 0x04, 0, 1 },
	{ "STREAM of one that we never opened", never_opened, 0x05, 0, 1 },
	{ "STREAM with two ends", two_ends, 0x06, 0, 1 },
	{ "NEW_CONNECTION_ID, too many", many_ids, 0x09, 0, 1 },
	{ "NEW_CONNECTION_ID, retired at once", ids_retired, 0x09, 0, 30 },
	{ "RETIRE_CONNECTION_ID of none", retire_unknown, 0x0a, 0, 1 },
	{ "CRYPTO beyond bounds", crypto_beyond, 0x0d, 0, 1 },
	{ "NEW_TOKEN to a server", new_token, 0x0a, 0, 1 },
	{ "HANDSHAKE_DONE to a server", handshake_done, 0x0a, 0, 1 },
	{ "DATAGRAM, which was not agreed", datagram, 0x0a, 0, 1 },
	{ "ACK of what was never sent", ack_future, 0x0a, 0, 1 },
	{ "ACK below zero", ack_below_zero, 0x07, 0, 1 },
	{ "a frame that there is not", unknown_type, 0x07, 0, 1 },
	{ "a frame cut off", cut_off, 0x07, 0, 1 },
	{ "MAX_STREAMS beyond 2^60", too_many_streams, 0x07, 0, 1 },
	{ "no frame", no_frame, 0x0a, 0, 1 },
	{ "reserved bits", ping, 0x0a, 0x18, 1 },
};

TEST_TIMEOUT(errors, 900)
{
	struct qrdma_connection_close how;
	uint8_t frames[FRAMES_MAX], byte;
	ssize_t n;
	size_t i;
	int k;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		begin();
		for (k = 0; k < errors[i].packets; k++)
			packet(frames, errors[i].frames(frames, k) - frames, errors[i].reserved);
		sent();
		FACT(wait_for(has_ended, NULL), "%s: ends the connection", errors[i].what);
		how = how_closed();
		FACT(how.code == errors[i].code && !how.remote && !how.app &&
		     how.reason == QRDMA_REASON_PROTOCOL, "%s: error 0x%llx", errors[i].what,
		     (unsigned long long)how.code);
		/* What arrived before can still be read, as with TCP. */
		while ((n = recv(peer.fd, &byte, 1, 0)) > 0)
			;
		FACT(n < 0 && errno == EPROTO, "%s: the socket says so: %s", errors[i].what,
		     n < 0 ? strerror(errno) : "no error");
		finish();
	}
}

/* F08: packet numbers jump ahead and back; none is taken twice. */
TEST(numbers_jump)
{
	struct qrdma_info before, now;
	struct received received;
	uint8_t frame = 0x01;

	begin();
	FACT(delivers(1000), "before: the connection delivers");
	peer.number += 100000;
	FACT(delivers(1000), "100,000 numbers ahead: the connection delivers");
	peer.number += 1U << 30;
	FACT(delivers(1000), "2^30 numbers ahead: the connection delivers");
	before = info_of(peer.fd);
	peer.number -= (1U << 30) + 50000;
	received.want = before.packets_opened + before.packets_failed + before.packets_dropped + 2;
	packet(&frame, 1, 0);
	peer.number--;
	packet(&frame, 1, 0);
	sent();
	FACT(wait_for(all_received, &received), "one of the numbers left out arrives, twice");
	now = info_of(peer.fd);
	FACT(now.packets_dropped > before.packets_dropped && !now.packets_failed,
	     "it is not taken twice: %llu dropped",
	     (unsigned long long)(now.packets_dropped - before.packets_dropped));
	peer.number += (1U << 30) + 60000;
	FACT(delivers(1000), "the connection delivers");
	finish();
}

/* Acknowledge all that was sent; it is too little yet for numbers to be left out. */
static bool all_acked(void *arg)
{
	uint64_t largest = info_of(peer.fd).packets_sent - 1;
	uint8_t frames[FRAMES_MAX], *at;

	at = varint(type_and(frames, 0x02, largest), 0);
	at = varint(varint(at, 0), largest);
	packet(frames, at - frames, 0);
	sent();
	return !info_of(peer.fd).in_flight;
}

static bool has_sent_more(void *arg)
{
	return info_of(peer.fd).packets_sent > *(uint64_t *)arg;
}

/* Nobody wants what we send and we have said that we stop: close() has nothing to wait for. */
TEST(stopped_then_closed)
{
	uint8_t frames[FRAMES_MAX], *at;
	uint64_t before;

	begin();
	FACT(wait_for(all_acked, NULL), "the server's first packets are acknowledged");
	before = info_of(peer.fd).packets_sent;
	at = varint(type_and(frames, 0x05, 0), 7);
	packet(frames, at - frames, 0);
	sent();
	FACT(wait_for(has_sent_more, &before), "the server answers STOP_SENDING");
	FACT(wait_for(all_acked, NULL), "its RESET_STREAM is acknowledged");
	close(peer.fd);
	closed();
}
