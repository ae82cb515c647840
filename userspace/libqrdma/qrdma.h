/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libqrdma: sealed sockets over RDMA datagrams, with the handshake run by the caller.
 *
 * In band: the socket is connected or accepted as any other, and TLS 1.3 runs in the QUIC connection itself:
 * qrdma_handshake_self(), connect(), qrdma_client_handshake(); or qrdma_handshake_self(), listen(), accept(),
 * qrdma_server_handshake(). There is a step API for event loops. No call looks up a name.
 *
 * Out of band: two programs already joined by a TCP connection run TLS 1.3 over it, agree on addresses, ports,
 * connection ids and a cipher inside that TLS session, export one traffic secret for each direction and install them
 * in an AF_QRDMA socket. What comes back is an ordinary connected stream socket; the TCP connection is not needed
 * any more and can be closed.
 *
 * Functions return 0 or a descriptor on success and a negative errno on failure. The library is thread safe as long
 * as one object is used by one thread at a time; credentials may be shared by sessions once they are set up.
 */
#ifndef QRDMA_QRDMA_H
#define QRDMA_QRDMA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <linux/qrdma.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QRDMA_REASON_SIZE 256

/**
 * struct qrdma_reason - why a call failed, for people
 * @error: the negative errno that the call returned, 0 if none
 * @text: one line without a newline, always terminated
 */
struct qrdma_reason {
	int error;
	char text[QRDMA_REASON_SIZE];
};

/** struct qrdma_cred - who we are and whom we trust; opaque. */
struct qrdma_cred;

/**
 * qrdma_cred_new() - empty credentials
 * @cred: where they go; free with qrdma_cred_free()
 *
 * Return: 0, or -ENOMEM.
 */
int qrdma_cred_new(struct qrdma_cred **cred);

/** qrdma_cred_free() - forget and wipe; NULL is accepted. No session may use them any more. */
void qrdma_cred_free(struct qrdma_cred *cred);

/**
 * qrdma_cred_set_x509() - our certificate
 * @cred: credentials
 * @cert_file: PEM file, our certificate first, then its issuers
 * @key_file: PEM file with the private key of the first certificate
 *
 * Return: 0, -ENOENT a file cannot be read, -EINVAL not PEM or the key does not belong to the certificate.
 */
int qrdma_cred_set_x509(struct qrdma_cred *cred, const char *cert_file, const char *key_file);

/**
 * qrdma_cred_set_trust() - whose certificates are accepted
 * @cred: credentials
 * @ca_file: PEM file with one or more authorities; NULL: those that the system trusts
 *
 * Return: 0, -ENOENT no such file or no authority in it, -EINVAL not PEM.
 */
int qrdma_cred_set_trust(struct qrdma_cred *cred, const char *ca_file);

/**
 * qrdma_cred_set_psk() - a pre-shared key
 * @cred: credentials
 * @identity: its name, a non-empty string without ':' or newline, below 128 bytes
 * @key: the key
 * @len: bytes of @key, 16 to 64
 *
 * A client offers this key. A server accepts it; calling again adds another identity (a client keeps the last).
 *
 * Return: 0, -EINVAL, -EEXIST the server has that identity already, -ENOMEM.
 */
int qrdma_cred_set_psk(struct qrdma_cred *cred, const char *identity, const uint8_t *key, size_t len);

/**
 * qrdma_cred_set_psk_file() - pre-shared keys from a file
 * @cred: credentials
 * @file: lines of "identity:hexadecimal key"; empty lines and lines that start with '#' are passed over
 * @identity: take only this one; NULL: all
 *
 * Return: 0, -errno of opening, -EINVAL a line is malformed, -ENOKEY nothing was found, -EACCES others can read the
 * file.
 */
int qrdma_cred_set_psk_file(struct qrdma_cred *cred, const char *file, const char *identity);

/** struct qrdma_tickets - the key that a server's session tickets are sealed with; opaque. */
struct qrdma_tickets;

/**
 * qrdma_tickets_new() - a ticket key
 * @tickets: where it goes; free with qrdma_tickets_free()
 * @key: 64 bytes, the same on all servers that take each other's tickets; NULL: random, for this process alone
 * @len: bytes of @key
 *
 * Sessions share it, and it must outlive them. To change the key, use a new one for new sessions: tickets of the old
 * one then lead to full handshakes.
 *
 * Return: 0, -EINVAL a length other than 64, -ENOMEM, -EIO no random numbers.
 */
int qrdma_tickets_new(struct qrdma_tickets **tickets, const uint8_t *key, size_t len);

/** qrdma_tickets_free() - forget and wipe; NULL is accepted. No session may use it any more. */
void qrdma_tickets_free(struct qrdma_tickets *tickets);

/**
 * struct qrdma_handshake_options - how one in-band handshake is run; clear it, set @size, then what is wanted
 * @size: sizeof(struct qrdma_handshake_options)
 * @cred: credentials, needed
 * @peer_name: name or address that the peer's certificate must carry; a client needs it unless a PSK is used; a
 *	server's NULL: any certificate that we trust
 * @require_peer_cert: server: refuse a client without a certificate that we trust
 * @want_ticket: client: keep the tickets that the server sends for qrdma_handshake_ticket(); only with certificates
 * @ciphers: QRDMA_CIPHER_* in order of preference; the server's order decides. AES-256-GCM does not go with a PSK
 * @n_ciphers: how many, at most 8; 0: AES-128-GCM, ChaCha20-Poly1305, AES-256-GCM, AES-128-CCM
 * @alpn: names of application protocols (ALPN), 1 to 31 bytes each; the server's order decides
 * @n_alpn: how many, at most 8; 0: "qrdma"
 * @timeout_ms: limit for the whole handshake, milliseconds; 0: 10000
 * @keylog_file: append the secrets to this file in the form of SSLKEYLOGFILE: whoever reads it reads the connection.
 *	The file is made with mode 0600, a symbolic link is refused. NULL: none; the environment has no say in this
 * @tickets: server: issue one ticket to each client and take those of earlier sessions; NULL: no tickets; only with
 *	certificates
 * @ticket: client: what qrdma_handshake_ticket() gave in an earlier session with the same server; NULL: none.
 *	The server's certificate is not verified anew: the ticket stands for it
 * @ticket_len: bytes of @ticket
 * @await_verdict: client: when the server asks for our certificate, the connection is established only when it has
 *	accepted it, one round trip later. Without it a refusal comes when the handshake is over
 * @agent: the descriptor is the agent's end of a program's socket (linux/qrdma_genl.h): the handshake is complete when
 *	the kernel has been told so
 *
 * All but @cred and @tickets is copied.
 */
struct qrdma_handshake_options {
	size_t size;
	const struct qrdma_cred *cred;
	const char *peer_name;
	int require_peer_cert;
	int want_ticket;
	const uint32_t *ciphers;
	size_t n_ciphers;
	const char *const *alpn;
	size_t n_alpn;
	int timeout_ms;
	const char *keylog_file;
	const struct qrdma_tickets *tickets;
	const void *ticket;
	size_t ticket_len;
	int await_verdict;
	int agent;
};

/**
 * qrdma_handshake_self() - this program runs the handshakes of a socket, not an agent
 * @fd: AF_QRDMA socket before connect() or listen(); accepted sockets inherit it
 *
 * Return: 0 or -errno (-ENOPROTOOPT: not such a socket; -EISCONN: too late).
 */
int qrdma_handshake_self(int fd);

/**
 * qrdma_client_handshake() - run the handshake of a socket whose connect() returned 0 or EINPROGRESS
 * @fd: the socket, blocking or not; stays the caller's. After an error it is of no more use
 * @opt: options
 * @why: reason of a failure; may be NULL
 *
 * Blocks, at most @opt->timeout_ms.
 *
 * A server that refuses the client's certificate does so after the client is done: this call has returned 0 by then,
 * and the socket's next call fails; qrdma_get_close_reason() tells why.
 *
 * Return: 0 the socket carries data, or
 * -EINVAL options, or a ticket of another server; -ENOKEY a credential is missing: ours (nothing to prove who we are,
 * nobody whom we trust), or the peer's; -EKEYEXPIRED a certificate is out of date; -EKEYREVOKED it is revoked;
 * -EKEYREJECTED a certificate is not trusted, or not for that name, or a pre-shared key is wrong; -EACCES the identity
 * of a pre-shared key is not known; -EPROTONOSUPPORT no common version, cipher or application protocol; -EPROTO the
 * peer broke the protocol; -ECONNREFUSED the peer refused for another reason; -ETIMEDOUT; -ECONNRESET the peer hung up
 * without giving a reason; -ENOPKG the kernel lacks the cipher; -ENOMEM; errors of opening @opt->keylog_file;
 * -ENOTCONN no connection here; -EISCONN established already; errors of connect().
 * Either end reports a credential's fault by the same errno; whose it is, and who found it, is in @why.
 */
int qrdma_client_handshake(int fd, const struct qrdma_handshake_options *opt, struct qrdma_reason *why);

/** qrdma_server_handshake() - the same for a socket from accept(); see qrdma_client_handshake(). */
int qrdma_server_handshake(int fd, const struct qrdma_handshake_options *opt, struct qrdma_reason *why);

/** struct qrdma_handshake - one handshake, for event loops; opaque. */
struct qrdma_handshake;

/**
 * qrdma_handshake_new() - begin a handshake that does not block
 * @handshake: where it goes; free with qrdma_handshake_free()
 * @fd: as qrdma_client_handshake() takes it; must stay open as long as the handshake is there
 * @server: 0 client, 1 server
 * @opt: options
 * @why: reason of a failure; may be NULL
 *
 * Return: 0, or -EINVAL, -ENOKEY, -ENOMEM, errors of opening the key log.
 */
int qrdma_handshake_new(struct qrdma_handshake **handshake, int fd, int server,
			const struct qrdma_handshake_options *opt, struct qrdma_reason *why);

/**
 * qrdma_handshake_step() - go on as far as possible
 * @handshake: handshake
 * @why: reason of a failure; may be NULL
 *
 * Return: 0 complete (and again when called again); -EAGAIN: wait for qrdma_handshake_events() on the socket, at most
 * qrdma_handshake_timeout(), and call again; else as qrdma_client_handshake(), and the same when called again.
 */
int qrdma_handshake_step(struct qrdma_handshake *handshake, struct qrdma_reason *why);

/** qrdma_handshake_events() - what to poll() for after -EAGAIN: POLLIN, POLLOUT or both. */
short qrdma_handshake_events(const struct qrdma_handshake *handshake);

/** qrdma_handshake_timeout() - milliseconds until the handshake times out, 0 when it has; call the step then. */
int qrdma_handshake_timeout(const struct qrdma_handshake *handshake);

/** qrdma_handshake_alpn() - the application protocol agreed on, NULL before that; lives as long as @handshake. */
const char *qrdma_handshake_alpn(const struct qrdma_handshake *handshake);

/** qrdma_handshake_resumed() - 1 when it is complete and a ticket shortened it, else 0. */
int qrdma_handshake_resumed(const struct qrdma_handshake *handshake);

/**
 * qrdma_handshake_ticket() - client: a ticket that the server has sent since, for the next connection
 * @handshake: complete, with want_ticket
 * @ticket: where it goes
 * @size: bytes there; 8192 are enough for most
 *
 * A ticket is as good as the session's secrets: keep it as a key is kept. It serves for at most the time that the
 * server grants, an hour here.
 *
 * Return: bytes of the ticket; -ENODATA none has come yet; -EMSGSIZE @size is too small, the ticket is kept; -EPROTO
 * what came was no ticket; -EINVAL not complete, or tickets not wanted.
 */
ssize_t qrdma_handshake_ticket(struct qrdma_handshake *handshake, void *ticket, size_t size);

/**
 * qrdma_handshake_free() - forget and wipe; NULL is accepted
 *
 * A handshake that is not complete is given up: the peer is told, and the socket is of no more use.
 */
void qrdma_handshake_free(struct qrdma_handshake *handshake);

/**
 * struct qrdma_oob_options - how one out-of-band connection is made; clear it, set @size, then what is wanted
 * @size: sizeof(struct qrdma_oob_options)
 * @cred: credentials, needed
 * @peer_name: name or address that the peer's certificate must carry; a client needs it unless a PSK is used; a
 *	server's NULL: any certificate that we trust
 * @require_peer_cert: server: refuse a client without a certificate that we trust
 * @local: address of the RDMA path on our side, port included (0: any); NULL: the address of the TCP socket
 * @local_len: bytes at @local
 * @ciphers: QRDMA_CIPHER_* in order of preference; the server's order decides
 * @n_ciphers: how many, at most 8; 0: AES-128-GCM, ChaCha20-Poly1305, AES-256-GCM, AES-128-CCM
 * @timeout_ms: limit for each step, milliseconds; 0: 10000
 * @idle_timeout_ms: max_idle_timeout that we advertise, milliseconds; 0: 120000
 * @congestion: QRDMA_CONG_*
 * @sndbuf: SO_SNDBUF in bytes, 0: system default
 * @rcvbuf: SO_RCVBUF in bytes, 0: system default
 */
struct qrdma_oob_options {
	size_t size;
	const struct qrdma_cred *cred;
	const char *peer_name;
	int require_peer_cert;
	const struct sockaddr *local;
	socklen_t local_len;
	const uint32_t *ciphers;
	size_t n_ciphers;
	int timeout_ms;
	int idle_timeout_ms;
	uint32_t congestion;
	int sndbuf;
	int rcvbuf;
};

/**
 * qrdma_oob_connect() - client side of the out-of-band handshake
 * @tcp: connected TCP socket (any stream socket when @opt->local is given); stays open and stays the caller's
 * @opt: options
 * @why: reason of a failure; may be NULL
 *
 * Blocks, each step at most @opt->timeout_ms.
 *
 * Return: descriptor of a connected AF_QRDMA socket (close-on-exec), or
 * -EINVAL options; -ENOKEY no usable credentials here; -EKEYREJECTED the peer's certificate is not trusted, or not for
 * that name; -EKEYEXPIRED it is out of date; -ECONNREFUSED the peer refused us (alert or status in @why);
 * -EPROTO the peer does not speak this protocol; -EPROTONOSUPPORT no common version or cipher; -ETIMEDOUT;
 * -ECONNRESET the peer hung up; -EAFNOSUPPORT the qrdma module is not there; errors of connect().
 */
int qrdma_oob_connect(int tcp, const struct qrdma_oob_options *opt, struct qrdma_reason *why);

/** qrdma_oob_accept() - server side of the same; see qrdma_oob_connect(). */
int qrdma_oob_accept(int tcp, const struct qrdma_oob_options *opt, struct qrdma_reason *why);

/**
 * qrdma_get_close_reason() - why a connection ended, for people
 * @fd: AF_QRDMA socket
 * @why: filled; error 0 when nothing is known
 *
 * A peer's TLS alert is told as qrdma_client_handshake() tells it.
 *
 * Return: 0 or -errno of asking.
 */
int qrdma_get_close_reason(int fd, struct qrdma_reason *why);

/**
 * qrdma_get_info() - state and counters of an AF_QRDMA socket
 * @fd: descriptor
 * @info: filled
 *
 * Return: 0 or -errno (-ENOPROTOOPT: not such a socket).
 */
int qrdma_get_info(int fd, struct qrdma_info *info);

/**
 * qrdma_cipher_name() / qrdma_cipher_by_name() - "aes-128-gcm", "aes-256-gcm", "aes-128-ccm", "chacha20-poly1305"
 *
 * Return: the name, NULL when unknown; the QRDMA_CIPHER_* number, 0 when unknown.
 */
const char *qrdma_cipher_name(uint32_t cipher);
uint32_t qrdma_cipher_by_name(const char *name);

/** qrdma_state_name() - name of a QRDMA_STATE_*, never NULL. */
const char *qrdma_state_name(uint8_t state);

/** qrdma_version() - version of the library, "MAJOR.MINOR.PATCH". */
const char *qrdma_version(void);

#ifdef __cplusplus
}
#endif

#endif /* QRDMA_QRDMA_H */
