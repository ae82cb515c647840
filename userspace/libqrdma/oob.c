// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The out-of-band handshake: what two ends say to each other inside a TLS session before they connect their
 * AF_QRDMA sockets. Called by the application, blocks, holds no state between calls.
 *
 *	client				server
 *	offer (ciphers, id, address)	->
 *				<-	answer (one cipher, id, address), or a refusal
 *	status				<->	status		keys are in the kernel, or why not
 *
 * The traffic secrets are exported from the session under the digest of offer and answer, so both ends hold the same
 * secrets only if they read the same words. Messages are fixed structures, integers big endian, reserved bytes zero.
 * Documentation/wire.md has the layout.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>
#include "keys.h"
#include "oob.h"
#include "socket.h"
#include "tls.h"

#define OOB_MAGIC	0x5152444d	/* "QRDM" */
#define OOB_VERSION	2
#define OOB_CIPHERS	8
#define OOB_TIMEOUT_MS	10000
#define OOB_IDLE_MS	120000

#define LABEL_CLIENT	"EXPORTER-qrdma client traffic"
#define LABEL_SERVER	"EXPORTER-qrdma server traffic"

enum { MSG_OFFER = 1, MSG_ANSWER = 2, MSG_STATUS = 3 };

/* Offer and answer have one layout; an answer names exactly one cipher, or a refusal. */
struct oob_hello {
	uint32_t magic;
	uint8_t version;
	uint8_t type;
	uint8_t family;		/* 4 or 6 */
	uint8_t id_len;
	uint8_t id[QRDMA_CONNECTION_ID_MAX];
	uint8_t addr[16];
	uint16_t port;
	uint16_t refusal;	/* errno of an answer that is a refusal, else 0 */
	uint16_t ciphers[OOB_CIPHERS];
	uint8_t ack_delay_exponent;
	uint8_t active_connection_id_limit;
	uint16_t reserved16;
	uint32_t max_ack_delay;			/* microseconds */
	uint32_t max_udp_payload_size;
	uint32_t max_idle_timeout;		/* microseconds */
	uint64_t max_data;
	uint64_t max_stream_data_bidi_local;
	uint64_t max_stream_data_bidi_remote;
	uint64_t max_streams_bidi;
	uint64_t reserved64;
	uint8_t reset_token[QRDMA_RESET_TOKEN_SIZE];	/* zero: none */
};

struct oob_status {
	uint32_t magic;
	uint8_t version;
	uint8_t type;
	uint16_t error;		/* errno, 0: keys are installed */
};

/* What goes over the wire has no holes. */
_Static_assert(sizeof(struct oob_hello) == 136, "layout of offer and answer");
_Static_assert(sizeof(struct oob_status) == 8, "layout of status");

/* One handshake in progress. */
struct oob {
	const struct qrdma_oob_options *opt;
	struct qrdma_reason *why;
	struct tls *tls;
	bool server;
	int fd;
	uint32_t cipher;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	struct oob_hello hello[2];	/* [0] offer, [1] answer */
};

static const uint32_t default_ciphers[] = {
	QRDMA_CIPHER_AES_GCM_128, QRDMA_CIPHER_CHACHA20,
	QRDMA_CIPHER_AES_GCM_256, QRDMA_CIPHER_AES_CCM_128,
};

static int oob_options(struct qrdma_oob_options *to, const struct qrdma_oob_options *from,
		       struct qrdma_reason *why)
{
	if (!from || from->size != sizeof(*from))
		return reason_set(why, -EINVAL, "options of a size that this library does not know");
	*to = *from;
	if (!to->n_ciphers) {
		to->ciphers = default_ciphers;
		to->n_ciphers = sizeof(default_ciphers) / sizeof(default_ciphers[0]);
	}
	if (to->n_ciphers > OOB_CIPHERS || !to->ciphers)
		return reason_set(why, -EINVAL, "too many ciphers");
	for (size_t i = 0; i < to->n_ciphers; i++)
		if (!keys_secret_len(to->ciphers[i]))
			return reason_set(why, -EINVAL, "unknown cipher %u", to->ciphers[i]);
	if (to->timeout_ms < 0 || to->idle_timeout_ms < 0 || to->idle_timeout_ms > 4000000)
		return reason_set(why, -EINVAL, "time-out out of range");
	if (!to->timeout_ms)
		to->timeout_ms = OOB_TIMEOUT_MS;
	if (!to->idle_timeout_ms)
		to->idle_timeout_ms = OOB_IDLE_MS;
	return 0;
}

/* A v4-mapped address is an IPv4 address: the RDMA path knows no other kind. */
static void addr_unmap(struct sockaddr_storage *addr)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (addr->ss_family != AF_INET6)
		return;
	memcpy(&in6, addr, sizeof(in6));
	if (!IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		return;
	in.sin_port = in6.sin6_port;
	memcpy(&in.sin_addr, &in6.sin6_addr.s6_addr[12], 4);
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &in, sizeof(in));
}

static int oob_local_addr(struct oob *o, int tcp)
{
	socklen_t len = sizeof(o->local);

	if (o->opt->local) {
		if (o->opt->local_len > sizeof(o->local) || o->opt->local_len < sizeof(struct sockaddr_in))
			return -EINVAL;
		memcpy(&o->local, o->opt->local, o->opt->local_len);
	} else {
		if (getsockname(tcp, (struct sockaddr *)&o->local, &len))
			return -errno;
		addr_unmap(&o->local);
		/* The TCP connection's port has no meaning in the port space of AF_QRDMA. */
		if (o->local.ss_family == AF_INET)
			((struct sockaddr_in *)&o->local)->sin_port = 0;
		else if (o->local.ss_family == AF_INET6)
			((struct sockaddr_in6 *)&o->local)->sin6_port = 0;
	}
	return socket_addr_len(&o->local) ? 0 : -EAFNOSUPPORT;
}

static void hello_put_addr(struct oob_hello *h, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	if (addr->ss_family == AF_INET) {
		h->family = 4;
		memcpy(h->addr, &in->sin_addr, 4);
		h->port = in->sin_port;
	} else {
		h->family = 6;
		memcpy(h->addr, &in6->sin6_addr, 16);
		h->port = in6->sin6_port;
	}
}

/* The scope of a link-local address is a matter of each host: ours. */
static int hello_get_addr(const struct oob_hello *h, const struct sockaddr_storage *local,
			  struct sockaddr_storage *addr)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = h->port };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = h->port };

	memset(addr, 0, sizeof(*addr));
	if (h->family == 4 && local->ss_family == AF_INET) {
		memcpy(&in.sin_addr, h->addr, 4);
		memcpy(addr, &in, sizeof(in));
	} else if (h->family == 6 && local->ss_family == AF_INET6) {
		memcpy(&in6.sin6_addr, h->addr, 16);
		if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
			in6.sin6_scope_id = ((const struct sockaddr_in6 *)local)->sin6_scope_id;
		memcpy(addr, &in6, sizeof(in6));
	} else {
		return -EAFNOSUPPORT;
	}
	return h->port ? 0 : -EPROTO;
}

/* Our own half: a fresh id, the socket's address and the parameters that the kernel will live by. */
static int hello_fill(struct oob *o, struct oob_hello *h)
{
	struct qrdma_transport_param param = { 0 };
	/* the peer's id is not known yet: hello_install() sets both */
	struct qrdma_connection_ids ids = {
		.role = o->server ? QRDMA_ROLE_SERVER : QRDMA_ROLE_CLIENT,
		.source_len = QRDMA_CONNECTION_ID_LEN,
	};
	socklen_t len = sizeof(param);
	int err;

	h->id_len = QRDMA_CONNECTION_ID_LEN;
	err = tls_random(h->id, h->id_len);
	if (err)
		return err;
	memcpy(ids.source, h->id, h->id_len);
	/* what we say of streams, and our reset token, follow from these */
	if (setsockopt(o->fd, SOL_QRDMA, QRDMA_CONNECTION_ID, &ids, sizeof(ids)))
		return -errno;
	if (getsockopt(o->fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &param, &len))
		return -errno;
	param.remote = 0;
	param.max_idle_timeout = o->opt->idle_timeout_ms * 1000U;
	if (setsockopt(o->fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &param, sizeof(param)))
		return -errno;
	if (getsockopt(o->fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &param, &len))
		return -errno;
	h->magic = htobe32(OOB_MAGIC);
	h->version = OOB_VERSION;
	h->type = o->server ? MSG_ANSWER : MSG_OFFER;
	hello_put_addr(h, &o->local);
	h->ack_delay_exponent = param.ack_delay_exponent;
	h->active_connection_id_limit = param.active_connection_id_limit;
	h->max_ack_delay = htobe32(param.max_ack_delay);
	h->max_udp_payload_size = htobe32(param.max_udp_payload_size);
	h->max_idle_timeout = htobe32(param.max_idle_timeout);
	h->max_data = htobe64(param.max_data);
	h->max_stream_data_bidi_local = htobe64(param.max_stream_data_bidi_local);
	h->max_stream_data_bidi_remote = htobe64(param.max_stream_data_bidi_remote);
	h->max_streams_bidi = htobe64(param.max_streams_bidi);
	memcpy(h->reset_token, param.stateless_reset_token, sizeof(h->reset_token));
	return 0;
}

static int hello_check(struct oob *o, const struct oob_hello *h, uint8_t type)
{
	if (be32toh(h->magic) != OOB_MAGIC || h->type != type)
		return reason_set(o->why, -EPROTO, "the peer does not speak the qrdma out-of-band protocol");
	if (h->version != OOB_VERSION)
		return reason_set(o->why, -EPROTONOSUPPORT, "the peer speaks version %u, this side %u",
				  h->version, OOB_VERSION);
	if (type == MSG_ANSWER && h->refusal)
		return reason_set(o->why, -ECONNREFUSED, "the peer refused: %s",
				  strerror(be16toh(h->refusal)));
	if (!h->id_len || h->id_len > QRDMA_CONNECTION_ID_MAX || h->reserved16 || h->reserved64 ||
	    h->ack_delay_exponent > 20)
		return reason_set(o->why, -EPROTO, "parameters of the peer out of range");
	if (hello_get_addr(h, &o->local, &o->remote))
		return reason_set(o->why, -EAFNOSUPPORT, "the peer's address is of another family");
	return 0;
}

static int hello_install(struct oob *o)
{
	const struct oob_hello *mine = &o->hello[o->server];
	const struct oob_hello *peer = &o->hello[!o->server];
	struct qrdma_connection_ids ids = {
		.role = o->server ? QRDMA_ROLE_SERVER : QRDMA_ROLE_CLIENT,
		.source_len = mine->id_len,
		.dest_len = peer->id_len,
	};
	struct qrdma_transport_param param = {
		.remote = 1,
		.ack_delay_exponent = peer->ack_delay_exponent,
		.active_connection_id_limit = peer->active_connection_id_limit,
		.max_ack_delay = be32toh(peer->max_ack_delay),
		.max_udp_payload_size = be32toh(peer->max_udp_payload_size),
		.max_idle_timeout = be32toh(peer->max_idle_timeout),
		.max_data = be64toh(peer->max_data),
		.max_stream_data_bidi_local = be64toh(peer->max_stream_data_bidi_local),
		.max_stream_data_bidi_remote = be64toh(peer->max_stream_data_bidi_remote),
		.max_streams_bidi = be64toh(peer->max_streams_bidi),
	};

	memcpy(param.stateless_reset_token, peer->reset_token, sizeof(peer->reset_token));
	memcpy(ids.source, mine->id, mine->id_len);
	memcpy(ids.dest, peer->id, peer->id_len);
	if (setsockopt(o->fd, SOL_QRDMA, QRDMA_CONNECTION_ID, &ids, sizeof(ids)))
		return -errno;
	if (setsockopt(o->fd, SOL_QRDMA, QRDMA_TRANSPORT_PARAM, &param, sizeof(param)))
		return -errno;
	return 0;
}

static int oob_install_keys(struct oob *o)
{
	size_t len = keys_secret_len(o->cipher);
	uint8_t client[QRDMA_CRYPTO_SECRET_SIZE];
	uint8_t server[QRDMA_CRYPTO_SECRET_SIZE];
	uint8_t context[32];
	int err;

	err = tls_digest(o->hello, sizeof(o->hello), context);
	if (!err)
		err = tls_export(o->tls, LABEL_CLIENT, context, sizeof(context), client, len);
	if (!err)
		err = tls_export(o->tls, LABEL_SERVER, context, sizeof(context), server, len);
	if (!err)
		err = keys_install(o->fd, true, o->cipher, o->server ? server : client);
	if (!err)
		err = keys_install(o->fd, false, o->cipher, o->server ? client : server);
	tls_wipe(client, sizeof(client));
	tls_wipe(server, sizeof(server));
	return err;
}

static int oob_socket(struct oob *o, int tcp)
{
	int err;

	err = oob_local_addr(o, tcp);
	if (err)
		return reason_set(o->why, err, "no address for the RDMA side");
	o->fd = socket_bound(&o->local, o->opt);
	if (o->fd == -EAFNOSUPPORT)
		return reason_set(o->why, o->fd, "AF_QRDMA is not there: is the qrdma module loaded?");
	if (o->fd < 0)
		return reason_set(o->why, o->fd, "AF_QRDMA socket: %s", strerror(-o->fd));
	return 0;
}

uint32_t oob_choose(const uint32_t *ours, size_t n_ours, const uint16_t *theirs, size_t n_theirs)
{
	for (size_t i = 0; i < n_ours; i++)
		for (size_t j = 0; j < n_theirs; j++)
			if (ours[i] == be16toh(theirs[j]))
				return ours[i];
	return 0;
}

/* Tell the client why there will be no answer; what fails here fails silently, the reason is already known. */
static int oob_refuse(struct oob *o, int err)
{
	struct oob_hello refusal = {
		.magic = htobe32(OOB_MAGIC),
		.version = OOB_VERSION,
		.type = MSG_ANSWER,
		.refusal = htobe16(-err),
	};

	tls_send(o->tls, &refusal, sizeof(refusal), NULL);
	return err;
}

static int oob_server_hello(struct oob *o, int tcp)
{
	struct oob_hello *offer = &o->hello[0];
	struct oob_hello *answer = &o->hello[1];
	int err;

	err = tls_recv(o->tls, offer, sizeof(*offer), o->why);
	if (err)
		return err;
	err = oob_socket(o, tcp);
	if (!err)
		err = hello_check(o, offer, MSG_OFFER);
	if (err)
		return oob_refuse(o, err);
	o->cipher = oob_choose(o->opt->ciphers, o->opt->n_ciphers, offer->ciphers, OOB_CIPHERS);
	if (!o->cipher)
		return oob_refuse(o, reason_set(o->why, -EPROTONOSUPPORT, "no cipher in common"));
	err = hello_fill(o, answer);
	if (err)
		return oob_refuse(o, reason_set(o->why, err, "transport parameters: %s", strerror(-err)));
	answer->ciphers[0] = htobe16(o->cipher);
	return tls_send(o->tls, answer, sizeof(*answer), o->why);
}

static int oob_client_hello(struct oob *o, int tcp)
{
	struct oob_hello *offer = &o->hello[0];
	struct oob_hello *answer = &o->hello[1];
	int err;

	err = oob_socket(o, tcp);
	if (err)
		return err;
	err = hello_fill(o, offer);
	if (err)
		return reason_set(o->why, err, "transport parameters: %s", strerror(-err));
	for (size_t i = 0; i < o->opt->n_ciphers; i++)
		offer->ciphers[i] = htobe16(o->opt->ciphers[i]);
	err = tls_send(o->tls, offer, sizeof(*offer), o->why);
	if (!err)
		err = tls_recv(o->tls, answer, sizeof(*answer), o->why);
	if (!err)
		err = hello_check(o, answer, MSG_ANSWER);
	if (err)
		return err;
	o->cipher = oob_choose(o->opt->ciphers, o->opt->n_ciphers, answer->ciphers, 1);
	if (!o->cipher)
		return reason_set(o->why, -EPROTO, "the peer chose a cipher that was not offered");
	return 0;
}

/* Both ends say whether their kernel took the keys: nobody connects to a socket that will never answer. */
static int oob_agree(struct oob *o, int mine)
{
	struct oob_status status = {
		.magic = htobe32(OOB_MAGIC),
		.version = OOB_VERSION,
		.type = MSG_STATUS,
		.error = htobe16(-mine),
	};
	int err;

	err = tls_send(o->tls, &status, sizeof(status), mine ? NULL : o->why);
	if (mine || err)
		return mine ? mine : err;
	err = tls_recv(o->tls, &status, sizeof(status), o->why);
	if (err)
		return err;
	if (be32toh(status.magic) != OOB_MAGIC || status.type != MSG_STATUS)
		return reason_set(o->why, -EPROTO, "the peer broke the protocol");
	if (status.error)
		return reason_set(o->why, -ECONNREFUSED, "the peer could not set up its socket: %s",
				  strerror(be16toh(status.error)));
	return 0;
}

static int oob_run(struct oob *o, int tcp)
{
	int err;

	err = o->server ? oob_server_hello(o, tcp) : oob_client_hello(o, tcp);
	if (err)
		return err;
	err = hello_install(o);
	if (!err)
		err = oob_install_keys(o);
	if (err)
		reason_set(o->why, err, "keys and parameters cannot be installed: %s", strerror(-err));
	err = oob_agree(o, err);
	if (err)
		return err;
	err = socket_connect(o->fd, &o->remote, o->opt->timeout_ms);
	if (err)
		return reason_set(o->why, err, "RDMA path to the peer: %s", strerror(-err));
	return 0;
}

static int oob_handshake(int tcp, const struct qrdma_oob_options *options, bool server,
			 struct qrdma_reason *why)
{
	struct qrdma_oob_options opt;
	struct tls_options tls_opt;
	struct oob o = { .opt = &opt, .why = why, .server = server, .fd = -1 };
	int err;

	if (why)
		memset(why, 0, sizeof(*why));
	err = oob_options(&opt, options, why);
	if (err)
		return err;
	tls_opt = (struct tls_options) {
		.cred = opt.cred,
		.server = server,
		.require_peer_cert = opt.require_peer_cert,
		.peer_name = opt.peer_name,
		.timeout_ms = opt.timeout_ms,
	};
	err = tls_new(&o.tls, tcp, &tls_opt, why);
	if (err)
		return err;
	err = oob_run(&o, tcp);
	tls_free(o.tls);
	if (err) {
		if (o.fd >= 0)
			close(o.fd);
		return err;
	}
	return o.fd;
}

int qrdma_oob_connect(int tcp, const struct qrdma_oob_options *opt, struct qrdma_reason *why)
{
	return oob_handshake(tcp, opt, false, why);
}

int qrdma_oob_accept(int tcp, const struct qrdma_oob_options *opt, struct qrdma_reason *why)
{
	return oob_handshake(tcp, opt, true, why);
}
