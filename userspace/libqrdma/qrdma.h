/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libqrdma: sealed sockets over RDMA datagrams, with the handshake run by the caller.
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

/**
 * struct qrdma_oob_options - how one out-of-band connection is made; clear it, set @size, then what is wanted
 * @size: sizeof(struct qrdma_oob_options)
 * @cred: credentials, needed
 * @peer_name: client: name or address that the server's certificate must carry; needed unless a PSK is used
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
