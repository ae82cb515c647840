/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A TLS that is none, for handshakes in band under test: messages of fixed sizes in the order of TLS
 * 1.3, secrets that both ends know, transport parameters as they are.
 *
 * Owns: struct ftls, one for each end. Used by: test_*.c, the simulator and the fuzzers; only names
 * of env.h. It does with conn_hs.h what the socket layer does.
 *
 *	ClientHello (INITIAL) -> ServerHello (INITIAL), EncryptedExtensions, Certificate, Finished
 *	(HANDSHAKE) -> Finished (HANDSHAKE) -> Ticket (APP)
 */
#ifndef QRDMA_TESTS_FTLS_H
#define QRDMA_TESTS_FTLS_H

#include "nullaead.h"
#include "conn_hs.h"
#include "frame.h"

#define FTLS_CIPHER	QRDMA_CIPHER_AES_128_GCM
#define FTLS_MSG_MAX	20000
#define FTLS_HEAD	4
/* bytes of body that tell of 0-RTT and of the length of the transport parameters */
#define FTLS_FIXED	4

enum ftls_msg {
	FTLS_CLIENT_HELLO = 1,
	FTLS_SERVER_HELLO,
	FTLS_EXTENSIONS,
	FTLS_CERTIFICATE,
	FTLS_FINISHED,
	FTLS_TICKET,
};

/**
 * struct ftls - one end
 * @conn: the engine
 * @server: role
 * @hello: bytes of a ClientHello at least
 * @cert: bytes of a Certificate
 * @ticket: bytes of the ticket that a server gives, 0: none
 * @early: client: 0-RTT is offered; server: it is taken if offered
 * @alert: the server refuses with this alert instead of ServerHello, 0: no
 * @expect: the message to come next
 * @got: bytes of @msg
 * @msg: what has come of it
 * @done: complete
 * @ticketed: client: the ticket came
 * @err: a call said something else than it should; 0: none did
 * @line: which
 */
struct ftls {
	struct qrdma_conn *conn;
	bool server;
	u32 hello;
	u32 cert;
	u32 ticket;
	bool early;
	u8 alert;
	u8 expect;
	u32 got;
	u8 msg[FTLS_MSG_MAX];
	bool done;
	bool ticketed;
	int err;
	int line;
};

static inline bool ftls_closed(const struct ftls *f)
{
	struct qrdma_conn_error e;

	qrdma_conn_error(f->conn, &e);
	return e.closed;
}

/* nothing has to succeed any more once the connection has ended */
#define FTLS_TRY(f, call) do {						\
	int ftls_err = (call);						\
									\
	if (ftls_err && !(f)->err && !ftls_closed(f)) {			\
		(f)->err = ftls_err;					\
		(f)->line = __LINE__;					\
	}								\
} while (0)

/* A slot that both ends make alike: @what, the end that seals, and an id. */
static inline int ftls_slot(u8 what, bool from_server, const struct qrdma_cid *cid,
			    struct qrdma_slot **slot)
{
	u8 secret[32] = { what, from_server };

	if (cid)
		memcpy(secret + 2, cid->data, cid->len);
	return null_aead.slot_new(FTLS_CIPHER, secret, sizeof(secret), slot);
}

#define FTLS_RETRY_SECRET	0xee

static inline int ftls_install(struct qrdma_conn *conn, u8 level, bool server, bool send)
{
	const struct qrdma_cid *cid = NULL;
	struct qrdma_slot *cur;
	int err;

	if (level == QRDMA_ENC_INITIAL)
		cid = qrdma_conn_initial_cid(conn);
	err = ftls_slot(level, send == server, cid, &cur);
	if (err)
		return err;
	err = qrdma_conn_install_level(conn, level, send, FTLS_CIPHER, cur);
	if (err)
		null_aead.slot_put(cur);
	return err;
}

static inline int ftls_install_both(struct ftls *f, u8 level)
{
	int err = ftls_install(f->conn, level, f->server, true);

	return err ? err : ftls_install(f->conn, level, f->server, false);
}

static inline u8 ftls_byte(u8 type, u32 at)
{
	return type * 31 + at * 7 + (at >> 8);
}

/* A message of @size bytes of body at least, which may carry our transport parameters. */
static inline int ftls_send(struct ftls *f, u8 level, u8 type, u32 size, bool params)
{
	u8 *msg = kmalloc(FTLS_HEAD + FTLS_FIXED + size + QRDMA_TP_ENCODED_MAX, GFP_ATOMIC);
	int len = 0, err;
	u32 i, body;

	if (!msg)
		return -ENOMEM;
	if (params)
		len = qrdma_conn_tparams(f->conn, msg + FTLS_HEAD + FTLS_FIXED,
					 QRDMA_TP_ENCODED_MAX);
	if (len < 0) {
		kfree(msg);
		return len;
	}
	body = max_t(u32, size, FTLS_FIXED + len);
	for (i = FTLS_FIXED + len; i < body; i++)
		msg[FTLS_HEAD + i] = ftls_byte(type, i);
	qrdma_store_be32(msg, body | (u32)type << 24);
	qrdma_store_be16(msg + FTLS_HEAD, f->early);
	qrdma_store_be16(msg + FTLS_HEAD + 2, len);
	err = qrdma_conn_crypto_write(f->conn, level, msg, FTLS_HEAD + body);
	kfree(msg);
	return err;
}

static inline void ftls_init(struct ftls *f, struct qrdma_conn *conn, bool server)
{
	memset(f, 0, sizeof(*f));
	f->conn = conn;
	f->server = server;
	f->hello = 280;
	f->cert = 700;
	f->expect = server ? FTLS_CLIENT_HELLO : FTLS_SERVER_HELLO;
}

/* Initial keys, and the client's first flight. */
static inline void ftls_start(struct ftls *f)
{
	FTLS_TRY(f, ftls_install_both(f, QRDMA_ENC_INITIAL));
	if (f->server)
		return;
	FTLS_TRY(f, ftls_send(f, QRDMA_ENC_INITIAL, FTLS_CLIENT_HELLO, f->hello, true));
	if (f->early)
		FTLS_TRY(f, ftls_install(f->conn, QRDMA_ENC_EARLY, false, true));
}

static inline void ftls_params(struct ftls *f, u64 now)
{
	const u8 *body = f->msg + FTLS_HEAD;
	int err = qrdma_conn_peer_tparams(f->conn, body + FTLS_FIXED, qrdma_load_be16(body + 2),
					  now);

	/* the peer's fault, and the connection closes because of it */
	if (err != -EPROTO)
		FTLS_TRY(f, err);
}

static inline void ftls_client_hello(struct ftls *f, u64 now)
{
	bool offered = qrdma_load_be16(f->msg + FTLS_HEAD);

	if (f->alert) {
		qrdma_conn_close(f->conn, QRDMA_ERR_CRYPTO_ERROR + f->alert, false, now);
		return;
	}
	ftls_params(f, now);
	if (ftls_closed(f))
		return;
	f->early = f->early && offered;
	FTLS_TRY(f, ftls_send(f, QRDMA_ENC_INITIAL, FTLS_SERVER_HELLO, 86, false));
	FTLS_TRY(f, ftls_install_both(f, QRDMA_ENC_HANDSHAKE));
	FTLS_TRY(f, ftls_send(f, QRDMA_ENC_HANDSHAKE, FTLS_EXTENSIONS, 0, true));
	FTLS_TRY(f, ftls_send(f, QRDMA_ENC_HANDSHAKE, FTLS_CERTIFICATE, f->cert, false));
	FTLS_TRY(f, ftls_send(f, QRDMA_ENC_HANDSHAKE, FTLS_FINISHED, 32, false));
	FTLS_TRY(f, ftls_install_both(f, QRDMA_ENC_APP));
	if (f->early)
		FTLS_TRY(f, ftls_install(f->conn, QRDMA_ENC_EARLY, true, false));
	else
		FTLS_TRY(f, qrdma_conn_early_verdict(f->conn, false, now));
	f->expect = FTLS_FINISHED;
}

static inline void ftls_extensions(struct ftls *f, u64 now)
{
	int err = 0;

	if (f->early) {
		f->early = qrdma_load_be16(f->msg + FTLS_HEAD);
		err = qrdma_conn_early_verdict(f->conn, f->early, now);
	}
	if (err != -EPROTO)
		FTLS_TRY(f, err);
	ftls_params(f, now);
	f->expect = FTLS_CERTIFICATE;
}

static inline void ftls_finished(struct ftls *f, u64 now)
{
	if (!f->server) {
		FTLS_TRY(f, ftls_send(f, QRDMA_ENC_HANDSHAKE, FTLS_FINISHED, 32, false));
		FTLS_TRY(f, ftls_install_both(f, QRDMA_ENC_APP));
	}
	FTLS_TRY(f, qrdma_conn_handshake_complete(f->conn, now));
	if (f->server && f->ticket)
		FTLS_TRY(f, ftls_send(f, QRDMA_ENC_APP, FTLS_TICKET, f->ticket, false));
	f->done = true;
	f->expect = FTLS_TICKET;
}

/* A whole message is in f->msg. */
static inline void ftls_act(struct ftls *f, u64 now)
{
	u8 type = f->msg[0];
	u32 i, from = FTLS_FIXED + qrdma_load_be16(f->msg + FTLS_HEAD + 2);

	for (i = from; FTLS_HEAD + i < f->got; i++) {
		if (f->msg[FTLS_HEAD + i] != ftls_byte(type, i))
			FTLS_TRY(f, -EILSEQ);
	}
	if (type != f->expect)
		FTLS_TRY(f, -EBADMSG);
	if (f->err)
		return;
	switch (type) {
	case FTLS_CLIENT_HELLO:
		ftls_client_hello(f, now);
		break;
	case FTLS_SERVER_HELLO:
		FTLS_TRY(f, ftls_install_both(f, QRDMA_ENC_HANDSHAKE));
		f->expect = FTLS_EXTENSIONS;
		break;
	case FTLS_EXTENSIONS:
		ftls_extensions(f, now);
		break;
	case FTLS_CERTIFICATE:
		f->expect = FTLS_FINISHED;
		break;
	case FTLS_FINISHED:
		ftls_finished(f, now);
		break;
	case FTLS_TICKET:
		f->ticketed = true;
		break;
	}
}

/* Take bytes of a level as far as they belong to one message. Return: false: none left. */
static inline bool ftls_take(struct ftls *f, u8 level, u64 now)
{
	u32 want = FTLS_HEAD;
	const u8 *data;
	int n = qrdma_conn_crypto_peek(f->conn, level, &data);

	if (n <= 0)
		return false;
	if (f->got >= FTLS_HEAD)
		want += qrdma_load_be32(f->msg) & 0xffffff;
	if (want > FTLS_MSG_MAX || (f->got >= FTLS_HEAD && want < FTLS_HEAD + FTLS_FIXED)) {
		FTLS_TRY(f, -EOVERFLOW);
		qrdma_conn_crypto_consume(f->conn, level, n);
		return true;
	}
	n = min_t(u32, n, want - f->got);
	memcpy(f->msg + f->got, data, n);
	qrdma_conn_crypto_consume(f->conn, level, n);
	f->got += n;
	if (f->got < want || want == FTLS_HEAD)
		return true;
	ftls_act(f, now);
	f->got = 0;
	return true;
}

/* What the owner of the handshake does for the events of its connection. */
static inline void ftls_events(struct ftls *f, u32 ev, u64 now)
{
	u8 level;

	if (ev & QRDMA_EV_INITIAL_KEYS)
		FTLS_TRY(f, ftls_install_both(f, QRDMA_ENC_INITIAL));
	if (!(ev & QRDMA_EV_CRYPTO))
		return;
	for (level = 0; level < QRDMA_ENCS && !f->err; level++) {
		while (!f->err && ftls_take(f, level, now))
			;
	}
}

#endif /* QRDMA_TESTS_FTLS_H */
