// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * Socket options of SOL_QRDMA: what is refused and how, what can be read back, what cannot.
 */
#include <stddef.h>
#include <sys/mman.h>

#include "cases.h"
#include "ends.h"

static int new_socket(void)
{
	return CHECK(socket(AF_QRDMA, SOCK_STREAM, 0));
}

static int set(int fd, int name, const void *val, socklen_t len)
{
	return setsockopt(fd, SOL_QRDMA, name, val, len);
}

static int get(int fd, int name, void *val, socklen_t len)
{
	return getsockopt(fd, SOL_QRDMA, name, val, &len) ? -1 : (int)len;
}

struct option {
	const char *text;
	int name;
	socklen_t size;
};

static const struct option options[] = {
	{ "ids", QRDMA_CONNECTION_ID, sizeof(struct qrdma_connection_ids) },
	{ "close", QRDMA_CONNECTION_CLOSE, sizeof(struct qrdma_connection_close) },
	{ "key update", QRDMA_KEY_UPDATE, 0 },
	{ "parameters", QRDMA_TRANSPORT_PARAM, sizeof(struct qrdma_transport_param) },
	{ "config", QRDMA_CONFIG, sizeof(struct qrdma_config) },
	{ "secret", QRDMA_CRYPTO_SECRET, sizeof(struct qrdma_crypto_secret) },
};

/* F19: fixed width, checked size. */
TEST(set_size)
{
	char buf[512] = {};
	int fd = new_socket();

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		const struct option *o = &options[i];

		CASE(o->text);
		EXPECT_ERRNO(set(fd, o->name, buf, o->size + 1), EINVAL);
		EXPECT_ERRNO(set(fd, o->name, buf, sizeof(buf)), EINVAL);
		if (!o->size)
			continue;
		EXPECT_ERRNO(set(fd, o->name, buf, o->size - 1), EINVAL);
		EXPECT_ERRNO(set(fd, o->name, buf, 0), EINVAL);
		EXPECT_ERRNO(set(fd, o->name, NULL, o->size), EFAULT);
	}
}

TEST(get_size)
{
	static const struct option gets[] = {
		{ "close", QRDMA_CONNECTION_CLOSE, sizeof(struct qrdma_connection_close) },
		{ "parameters", QRDMA_TRANSPORT_PARAM, sizeof(struct qrdma_transport_param) },
		{ "config", QRDMA_CONFIG, sizeof(struct qrdma_config) },
		{ "info", QRDMA_INFO, sizeof(struct qrdma_info) },
	};
	unsigned char buf[1024];
	int fd = new_socket();

	for (size_t i = 0; i < sizeof(gets) / sizeof(*gets); i++) {
		CASE(gets[i].text);
		memset(buf, 0, sizeof(buf));
		EXPECT_ERRNO(get(fd, gets[i].name, buf, gets[i].size - 1), EINVAL);
		EXPECT_ERRNO(get(fd, gets[i].name, buf, 0), EINVAL);
		memset(buf + gets[i].size, 0xa5, sizeof(buf) - gets[i].size);
		EXPECT_EQ(get(fd, gets[i].name, buf, sizeof(buf)), gets[i].size);
		EXPECT_EQ(buf[gets[i].size], 0xa5);
		EXPECT_ERRNO(get(fd, gets[i].name, NULL, gets[i].size), EFAULT);
	}
}

TEST(unknown)
{
	int fd = new_socket(), val = 0;
	socklen_t len = sizeof(val);

	EXPECT_ERRNO(set(fd, 200, &val, sizeof(val)), ENOPROTOOPT);
	EXPECT_ERRNO(get(fd, 200, &val, sizeof(val)), ENOPROTOOPT);
	EXPECT_ERRNO(set(fd, QRDMA_INFO, &val, sizeof(val)), ENOPROTOOPT);
	EXPECT_ERRNO(setsockopt(fd, IPPROTO_TCP, 999, &val, sizeof(val)), ENOPROTOOPT);
	EXPECT_ERRNO(getsockopt(fd, IPPROTO_TCP, 999, &val, &len), ENOPROTOOPT);
}

static struct qrdma_connection_ids good_ids(void)
{
	return (struct qrdma_connection_ids) {
		.source_len = QRDMA_CONNECTION_ID_LEN,
		.dest_len = QRDMA_CONNECTION_ID_LEN,
		.source = "sourceID",
		.dest = "destinID",
	};
}

TEST(ids)
{
	struct qrdma_connection_ids ids = good_ids(), got;
	int fd = new_socket();

	EXPECT_ERRNO(get(fd, QRDMA_CONNECTION_ID, &got, sizeof(got)), ENODATA);
	EXPECT_EQ(set(fd, QRDMA_CONNECTION_ID, &ids, sizeof(ids)), 0);
	EXPECT_EQ(get(fd, QRDMA_CONNECTION_ID, &got, sizeof(got)), sizeof(got));
	EXPECT(!memcmp(&ids, &got, sizeof(ids)));
	ids.dest_len = 0;
	memset(ids.dest, 0, sizeof(ids.dest));
	EXPECT_EQ(set(fd, QRDMA_CONNECTION_ID, &ids, sizeof(ids)), 0);

	CASE("role");
	ids = good_ids();
	ids.role = 2;
	EXPECT_ERRNO(set(fd, QRDMA_CONNECTION_ID, &ids, sizeof(ids)), EINVAL);
	CASE("source length");
	ids = good_ids();
	ids.source_len = 7;
	EXPECT_ERRNO(set(fd, QRDMA_CONNECTION_ID, &ids, sizeof(ids)), EINVAL);
	CASE("destination length");
	ids = good_ids();
	ids.dest_len = 21;
	EXPECT_ERRNO(set(fd, QRDMA_CONNECTION_ID, &ids, sizeof(ids)), EINVAL);
	CASE("reserved");
	ids = good_ids();
	ids.reserved[4] = 1;
	EXPECT_ERRNO(set(fd, QRDMA_CONNECTION_ID, &ids, sizeof(ids)), EINVAL);
	CASE("behind source");
	ids = good_ids();
	ids.source[QRDMA_CONNECTION_ID_LEN] = 1;
	EXPECT_ERRNO(set(fd, QRDMA_CONNECTION_ID, &ids, sizeof(ids)), EINVAL);
	CASE("behind destination");
	ids = good_ids();
	ids.dest[19] = 1;
	EXPECT_ERRNO(set(fd, QRDMA_CONNECTION_ID, &ids, sizeof(ids)), EINVAL);
}

TEST(parameters)
{
	struct qrdma_transport_param p = {}, q;
	int fd = new_socket();

	EXPECT_EQ(get(fd, QRDMA_TRANSPORT_PARAM, &p, sizeof(p)), sizeof(p));
	EXPECT(p.max_data > 0 && p.max_streams_bidi > 0 && p.active_connection_id_limit >= 2);
	q = p;
	q.remote = 1;
	EXPECT_ERRNO(get(fd, QRDMA_TRANSPORT_PARAM, &q, sizeof(q)), ENODATA);

	/* What get says can be set, and comes back. */
	EXPECT_EQ(set(fd, QRDMA_TRANSPORT_PARAM, &p, sizeof(p)), 0);
	p.max_idle_timeout = 1234567;
	p.max_ack_delay = 777;
	p.max_data = 5000;
	EXPECT_EQ(set(fd, QRDMA_TRANSPORT_PARAM, &p, sizeof(p)), 0);
	q = (struct qrdma_transport_param) {};
	EXPECT_EQ(get(fd, QRDMA_TRANSPORT_PARAM, &q, sizeof(q)), sizeof(q));
	EXPECT(!memcmp(&p, &q, sizeof(p)));
	p.remote = 1;
	EXPECT_EQ(set(fd, QRDMA_TRANSPORT_PARAM, &p, sizeof(p)), 0);
	q.remote = 1;
	EXPECT_EQ(get(fd, QRDMA_TRANSPORT_PARAM, &q, sizeof(q)), sizeof(q));
	EXPECT(!memcmp(&p, &q, sizeof(p)));

#define REFUSED(field, value)								\
	do {										\
		CASE(#field " = " #value);						\
		q = p;									\
		q.field = (value);							\
		EXPECT_ERRNO(set(fd, QRDMA_TRANSPORT_PARAM, &q, sizeof(q)), EINVAL);	\
	} while (0)

	REFUSED(remote, 2);
	REFUSED(disable_active_migration, 2);
	REFUSED(ack_delay_exponent, 21);
	REFUSED(active_connection_id_limit, 1);
	REFUSED(max_ack_delay, 16384001);
	REFUSED(max_ack_delay, UINT32_MAX);
	REFUSED(max_udp_payload_size, 1019);
	REFUSED(max_data, 1ULL << 62);
	REFUSED(max_stream_data_uni, 1ULL << 62);
	REFUSED(max_streams_bidi, (1ULL << 60) + 1);
	p.remote = 0;
	REFUSED(stateless_reset_token[0], 1);
	REFUSED(stateless_reset_token[15], 1);
	REFUSED(max_data, 1ULL << 40);
	REFUSED(active_connection_id_limit, 5);
}

/* The client opens the byte stream: it has none to grant. */
TEST(streams_by_role)
{
	struct qrdma_transport_param p = {};
	struct qrdma_connection_ids ids = good_ids();
	int fd = new_socket();

	for (int role = QRDMA_ROLE_CLIENT; role <= QRDMA_ROLE_SERVER; role++) {
		ids.role = role;
		EXPECT_EQ(set(fd, QRDMA_CONNECTION_ID, &ids, sizeof(ids)), 0);
		for (int again = 0; again < 2; again++) {
			EXPECT_EQ(get(fd, QRDMA_TRANSPORT_PARAM, &p, sizeof(p)), sizeof(p));
			EXPECT_EQ(p.max_streams_bidi, role == QRDMA_ROLE_SERVER);
			p.max_streams_bidi = again;
			EXPECT_EQ(set(fd, QRDMA_TRANSPORT_PARAM, &p, sizeof(p)), 0);
		}
	}
}

TEST(config)
{
	struct qrdma_config c = {}, d;
	int fd = new_socket();

	EXPECT_EQ(get(fd, QRDMA_CONFIG, &d, sizeof(d)), sizeof(d));
	EXPECT_EQ(d.handshake, QRDMA_HANDSHAKE_AGENT);
	EXPECT_EQ(set(fd, QRDMA_CONFIG, &c, sizeof(c)), 0);
	EXPECT_EQ(get(fd, QRDMA_CONFIG, &c, sizeof(c)), sizeof(c));
	EXPECT(c.granularity && c.connect_timeout && c.linger_timeout);
	c.congestion = QRDMA_CONG_NEWRENO;
	c.connect_timeout = 4321;
	EXPECT_EQ(set(fd, QRDMA_CONFIG, &c, sizeof(c)), 0);
	EXPECT_EQ(get(fd, QRDMA_CONFIG, &d, sizeof(d)), sizeof(d));
	EXPECT(!memcmp(&c, &d, sizeof(c)));
	d = c;
	d.congestion = 2;
	EXPECT_ERRNO(set(fd, QRDMA_CONFIG, &d, sizeof(d)), EINVAL);
	d = c;
	d.granularity = 1000001;
	EXPECT_ERRNO(set(fd, QRDMA_CONFIG, &d, sizeof(d)), EINVAL);
	d = c;
	d.connect_timeout = ~0u;
	EXPECT_ERRNO(set(fd, QRDMA_CONFIG, &d, sizeof(d)), EINVAL);
	d = c;
	d.handshake = QRDMA_HANDSHAKE_AGENT + 1;
	EXPECT_ERRNO(set(fd, QRDMA_CONFIG, &d, sizeof(d)), EINVAL);
	d = c;
	d.reserved2 = 1;
	EXPECT_ERRNO(set(fd, QRDMA_CONFIG, &d, sizeof(d)), EINVAL);
	d = c;
	d.reserved[0] = 1;
	EXPECT_ERRNO(set(fd, QRDMA_CONFIG, &d, sizeof(d)), EINVAL);
}

static struct qrdma_crypto_secret secret(int send, unsigned int type, int byte)
{
	struct qrdma_crypto_secret s = { .send = send, .level = QRDMA_CRYPTO_APP, .type = type };

	memset(s.secret, byte, type == QRDMA_CIPHER_AES_GCM_256 ? 48 : 32);
	return s;
}

TEST(secret)
{
	static const unsigned int types[] = {
		QRDMA_CIPHER_AES_GCM_128, QRDMA_CIPHER_AES_GCM_256, QRDMA_CIPHER_AES_CCM_128,
		QRDMA_CIPHER_CHACHA20,
	};
	struct qrdma_crypto_secret s;
	int fd;

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		fd = new_socket();
		s = secret(0, types[i], 1);
		EXPECT_EQ(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), 0);
		s = secret(1, types[i], 2);
		EXPECT_EQ(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), 0);
		/* F18: a nonce would be used twice. */
		EXPECT_ERRNO(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), EEXIST);
		s = secret(1, types[i], 1);
		EXPECT_ERRNO(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), EINVAL);
		s = secret(1, types[i], 3);
		EXPECT_EQ(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), 0);
		close(fd);
	}

	fd = new_socket();
	s = secret(0, QRDMA_CIPHER_AES_GCM_128, 1);
	s.secret[32] = 1;
	EXPECT_ERRNO(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), EINVAL);
	s = secret(2, QRDMA_CIPHER_AES_GCM_128, 1);
	EXPECT_ERRNO(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), EINVAL);
	s = secret(0, QRDMA_CIPHER_AES_GCM_128, 1);
	s.reserved = 1;
	EXPECT_ERRNO(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), EINVAL);
	for (unsigned int level = 0; level < 6; level++) {
		if (level == QRDMA_CRYPTO_APP)
			continue;
		s = secret(0, QRDMA_CIPHER_AES_GCM_128, 1);
		s.level = level;
		EXPECT_ERRNO(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), EINVAL);
	}
	s = secret(0, 50, 1);
	EXPECT_ERRNO(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), EINVAL);
	s = secret(0, ~0u, 1);
	EXPECT_ERRNO(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), EINVAL);

	/* Both directions are of one suite. */
	s = secret(0, QRDMA_CIPHER_AES_GCM_128, 1);
	EXPECT_EQ(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), 0);
	s = secret(1, QRDMA_CIPHER_CHACHA20, 2);
	EXPECT_ERRNO(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), EINVAL);
}

TEST(secret_stays_inside)
{
	unsigned char buf[1024] = {};
	struct qrdma_crypto_secret s = secret(1, QRDMA_CIPHER_AES_GCM_128, 0x5a);
	int fd = new_socket();

	ASSERT_EQ(set(fd, QRDMA_CRYPTO_SECRET, &s, sizeof(s)), 0);
	EXPECT_ERRNO(get(fd, QRDMA_CRYPTO_SECRET, buf, sizeof(buf)), ENOPROTOOPT);
	for (int name = 0; name < 128; name++) {
		memset(buf, 0, sizeof(buf));
		get(fd, name, buf, sizeof(buf));
		EXPECT(!memmem(buf, sizeof(buf), s.secret, 8));
	}
}

TEST(state)
{
	struct end_options opt = {};
	struct qrdma_connection_close c = { .app = 1, .code = 3 };
	struct qrdma_connection_ids ids = good_ids();
	struct qrdma_config config = {};
	struct qrdma_info info;
	struct qrdma_crypto_secret s;
	int fd[2], err;

	CASE("before");
	fd[0] = new_socket();
	EXPECT_ERRNO(set(fd[0], QRDMA_KEY_UPDATE, NULL, 0), ENOTCONN);
	EXPECT_ERRNO(set(fd[0], QRDMA_CONNECTION_CLOSE, &c, sizeof(c)), ENOTCONN);
	EXPECT_EQ(get(fd[0], QRDMA_INFO, &info, sizeof(info)), sizeof(info));
	EXPECT_EQ(info.state, QRDMA_STATE_INIT);
	EXPECT_EQ(info.cipher, 0);
	close(fd[0]);

	CASE("connected");
	opt.seed = end_fresh_seed();
	err = end_pair(fd, &opt);
	ASSERT_EQ(err, 0);
	EXPECT_EQ(get(fd[0], QRDMA_INFO, &info, sizeof(info)), sizeof(info));
	EXPECT_EQ(info.state, QRDMA_STATE_ESTABLISHED);
	EXPECT_EQ(info.cipher, QRDMA_CIPHER_AES_GCM_128);
	EXPECT(info.local_qpn && info.remote_qpn && info.device[0] && info.max_datagram >= 1000);
	EXPECT(info.srtt > 0 && info.packets_sent > 0 && info.packets_opened > 0);
	EXPECT_EQ(info.packets_failed, 0);
	EXPECT_ERRNO(set(fd[0], QRDMA_CONNECTION_ID, &ids, sizeof(ids)), EISCONN);
	EXPECT_ERRNO(set(fd[0], QRDMA_CONFIG, &config, sizeof(config)), EISCONN);
	EXPECT_EQ(end_params(fd[0], &opt), -EISCONN);
	s = secret(1, QRDMA_CIPHER_AES_GCM_128, 9);
	EXPECT_ERRNO(set(fd[0], QRDMA_CRYPTO_SECRET, &s, sizeof(s)), EISCONN);
	EXPECT_EQ(end_secret(fd[0], QRDMA_ROLE_CLIENT, 1, &opt), -EEXIST);
	EXPECT_EQ(end_secret(fd[1], QRDMA_ROLE_SERVER, 0, &opt), -EEXIST);

	CASE("close with a code");
	c.reserved[0] = 1;
	EXPECT_ERRNO(set(fd[0], QRDMA_CONNECTION_CLOSE, &c, sizeof(c)), EINVAL);
	c.reserved[0] = 0;
	c.app = 0;
	EXPECT_ERRNO(set(fd[0], QRDMA_CONNECTION_CLOSE, &c, sizeof(c)), EINVAL);
	c.app = 1;
	c.code = 1ULL << 62;
	EXPECT_ERRNO(set(fd[0], QRDMA_CONNECTION_CLOSE, &c, sizeof(c)), EINVAL);
	c.code = 4711;
	EXPECT_EQ(set(fd[0], QRDMA_CONNECTION_CLOSE, &c, sizeof(c)), 0);
	EXPECT_ERRNO(recv(fd[1], &c, 1, 0), ECONNRESET);
	EXPECT_EQ(get(fd[1], QRDMA_CONNECTION_CLOSE, &c, sizeof(c)), sizeof(c));
	EXPECT_EQ(c.code, 4711);
	EXPECT_EQ(c.app, 1);
	EXPECT_EQ(c.remote, 1);
	EXPECT_EQ(c.reason, QRDMA_REASON_PEER_CLOSE);
	EXPECT_EQ(get(fd[0], QRDMA_CONNECTION_CLOSE, &c, sizeof(c)), sizeof(c));
	EXPECT_EQ(c.reason, QRDMA_REASON_LOCAL_CLOSE);
	EXPECT_EQ(c.remote, 0);
	EXPECT_EQ(get(fd[1], QRDMA_INFO, &info, sizeof(info)), sizeof(info));
	EXPECT_EQ(info.state, QRDMA_STATE_CLOSED);
}

TEST(key_update)
{
	struct qrdma_info info;
	char buf[64] = {};
	int fd[2], updates = 0;

	ASSERT_EQ(end_pair(fd, NULL), 0);
	/*
	 * Each is confirmed by what goes to and fro, and the old key has its time (RFC 9001
	 * s6.5).
	 */
	while (updates < 3) {
		if (!set(fd[0], QRDMA_KEY_UPDATE, NULL, 0))
			updates++;
		else
			ASSERT_EQ(errno, EAGAIN);
		for (int j = 0; j < 2; j++) {
			ASSERT_EQ(send(fd[j], buf, sizeof(buf), 0), sizeof(buf));
			ASSERT_EQ(recv(fd[!j], buf, sizeof(buf), MSG_WAITALL), sizeof(buf));
		}
	}
	EXPECT_EQ(updates, 3);
	EXPECT_EQ(get(fd[0], QRDMA_INFO, &info, sizeof(info)), sizeof(info));
	EXPECT_EQ(info.key_updates, 3);
	EXPECT_EQ(info.key_phase, 1);
	EXPECT_EQ(info.packets_failed, 0);
	EXPECT_EQ(get(fd[1], QRDMA_INFO, &info, sizeof(info)), sizeof(info));
	EXPECT_EQ(info.packets_failed, 0);
}

TEST(v6only)
{
	int fd = CHECK(socket(AF_QRDMA, SOCK_STREAM, QRDMA_PROTO_IPV6)), val = 1, got = 0;
	socklen_t len = sizeof(got);

	EXPECT_EQ(setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &val, sizeof(val)), 0);
	EXPECT_EQ(getsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &got, &len), 0);
	EXPECT_EQ(got, 1);
	EXPECT_EQ(len, sizeof(got));
	fd = new_socket();
	EXPECT_ERRNO(setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &val, sizeof(val)), ENOPROTOOPT);
}
