// SPDX-License-Identifier: GPL-2.0
/*
 * Systems, and TLS 1.3 on top of their carriers: by GnuTLS in userspace, or GnuTLS's keys given to
 * the kernel (kTLS). AES-128-GCM, a pre-shared key with ECDHE, no tickets: what is measured is
 * records, and no certificates.
 */
#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "bench.h"

#define PRIORITY	"NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:" \
			"-KX-ALL:+ECDHE-PSK:-GROUP-ALL:+GROUP-X25519"
#define IDENTITY	"bench"
#define TLS_SALT	TLS_CIPHER_AES_GCM_128_SALT_SIZE

static const struct system systems[] = {
	{ "tcp", &carrier_tcp, CLEAR },
	{ "tcp+tls", &carrier_tcp, TLS_USER },
	{ "ktls", &carrier_tcp, TLS_KERNEL },
	{ "rsocket", &carrier_rsocket, CLEAR },
	{ "rc+tls", &carrier_rsocket, TLS_USER },
	{ "qrdma", &carrier_qrdma, OF_CARRIER },
};

const struct system *system_find(const char *name)
{
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		if (!strcmp(systems[i].name, name))
			return &systems[i];
	return NULL;
}

static void tls_check(const char *what, ssize_t ret)
{
	if (ret >= 0)
		return;
	gnutls_global_set_log_level(0);
	die(what, ret == GNUTLS_E_MEMORY_ERROR ? ENOMEM : EPROTO);
}

static uint8_t psk_bytes[32] = { 1, 2, 3, 4 };
static const gnutls_datum_t psk = { psk_bytes, sizeof(psk_bytes) };

static int psk_server(gnutls_session_t tls, const char *name, gnutls_datum_t *key)
{
	(void)tls;
	(void)name;
	key->data = gnutls_malloc(psk.size);
	if (!key->data)
		return -1;
	memcpy(key->data, psk.data, psk.size);
	key->size = psk.size;
	return 0;
}

/* Once for each process: making credentials is not part of a connection. */
static void credentials_set(struct conn *c)
{
	static gnutls_psk_server_credentials_t server;
	static gnutls_psk_client_credentials_t client;

	if (c->side == SIDE_A) {
		if (!client) {
			tls_check("credentials", gnutls_psk_allocate_client_credentials(&client));
			tls_check("key", gnutls_psk_set_client_credentials(client, IDENTITY, &psk,
									   GNUTLS_PSK_KEY_RAW));
		}
		tls_check("credentials", gnutls_credentials_set(c->tls, GNUTLS_CRD_PSK, client));
		return;
	}
	if (!server) {
		tls_check("credentials", gnutls_psk_allocate_server_credentials(&server));
		gnutls_psk_set_server_credentials_function(server, psk_server);
	}
	tls_check("credentials", gnutls_credentials_set(c->tls, GNUTLS_CRD_PSK, server));
}

static ssize_t rsocket_push(gnutls_transport_ptr_t ptr, const void *data, size_t len)
{
	carrier_rsocket.send(ptr, data, len);
	return len;
}

static ssize_t rsocket_pull(gnutls_transport_ptr_t ptr, void *data, size_t len)
{
	return carrier_rsocket.recv(ptr, data, len);
}

static void tls_open(const struct system *s, struct conn *c)
{
	int ret;

	tls_check("session", gnutls_init(&c->tls, (c->side == SIDE_A ? GNUTLS_CLIENT : GNUTLS_SERVER) |
					 GNUTLS_NO_TICKETS));
	tls_check("priority", gnutls_priority_set_direct(c->tls, PRIORITY, NULL));
	credentials_set(c);
	if (s->carrier == &carrier_tcp) {
		gnutls_transport_set_int(c->tls, c->fd);
	} else {
		gnutls_transport_set_ptr(c->tls, c);
		gnutls_transport_set_push_function(c->tls, rsocket_push);
		gnutls_transport_set_pull_function(c->tls, rsocket_pull);
	}
	do {
		ret = gnutls_handshake(c->tls);
	} while (ret < 0 && !gnutls_error_is_fatal(ret));
	tls_check("handshake", ret);
}

/* The keys of one direction go to the kernel. */
static void ktls_give(struct conn *c, bool read)
{
	struct tls12_crypto_info_aes_gcm_128 info = {
		.info.version = TLS_1_3_VERSION,
		.info.cipher_type = TLS_CIPHER_AES_GCM_128,
	};
	gnutls_datum_t mac, iv, key;
	unsigned char seq[8];

	tls_check("keys", gnutls_record_get_state(c->tls, read, &mac, &iv, &key, seq));
	memcpy(info.key, key.data, sizeof(info.key));
	memcpy(info.salt, iv.data, TLS_SALT);
	memcpy(info.iv, iv.data + TLS_SALT, sizeof(info.iv));
	memcpy(info.rec_seq, seq, sizeof(seq));
	if (setsockopt(c->fd, SOL_TLS, read ? TLS_RX : TLS_TX, &info, sizeof(info)))
		die("SOL_TLS", errno);
}

static void ktls_start(struct conn *c)
{
	if (setsockopt(c->fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")))
		die("TCP_ULP (module tls)", errno);
	ktls_give(c, false);
	ktls_give(c, true);
	gnutls_deinit(c->tls);
	c->tls = NULL;
}

void conn_open(const struct system *s, struct conn *c, enum side side, unsigned int index)
{
	memset(c, 0, sizeof(*c));
	c->side = side;
	c->index = index;
	s->carrier->open(c);
	if (s->secrecy == TLS_USER || s->secrecy == TLS_KERNEL)
		tls_open(s, c);
	if (s->secrecy == TLS_KERNEL)
		ktls_start(c);
}

void conn_send(const struct system *s, struct conn *c, const void *data, size_t len)
{
	const char *at = data;
	ssize_t n;

	if (!c->tls) {
		s->carrier->send(c, data, len);
		return;
	}
	while (len) {
		n = gnutls_record_send(c->tls, at, len);
		if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
			continue;
		tls_check("send", n);
		at += n;
		len -= n;
	}
}

size_t conn_recv(const struct system *s, struct conn *c, void *data, size_t len)
{
	ssize_t n;

	if (!c->tls)
		return s->carrier->recv(c, data, len);
	do {
		n = gnutls_record_recv(c->tls, data, len);
	} while (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED);
	tls_check("recv", n);
	return n;
}

void conn_recv_all(const struct system *s, struct conn *c, void *data, size_t len)
{
	size_t n;

	while (len) {
		n = conn_recv(s, c, data, len);
		if (!n)
			die("end of stream", ECONNRESET);
		data = (char *)data + n;
		len -= n;
	}
}

void conn_close(const struct system *s, struct conn *c)
{
	if (c->tls) {
		gnutls_bye(c->tls, GNUTLS_SHUT_WR);
		gnutls_deinit(c->tls);
	}
	s->carrier->close(c);
}
