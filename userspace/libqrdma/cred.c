// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Credentials: certificates, authorities and pre-shared keys, and how a GnuTLS session gets them. Called by the
 * application (qrdma_cred_*), tls_gnutls.c and quic_tls.c. Set up by one thread, then only read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gnutls/x509.h>
#include "cred.h"
#include "tls.h"

#define PSK_KEY_MIN	16
#define PSK_KEY_MAX	64
#define PSK_NAME_MAX	128

struct psk {
	struct psk *next;
	char identity[PSK_NAME_MAX];
	uint8_t key[PSK_KEY_MAX];
	size_t len;
};

struct qrdma_cred {
	gnutls_certificate_credentials_t x509;
	bool have_cert;
	bool have_trust;
	struct psk *psks;	/* newest first: a client offers the first */
};

int qrdma_cred_new(struct qrdma_cred **cred)
{
	struct qrdma_cred *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (gnutls_certificate_allocate_credentials(&c->x509)) {
		free(c);
		return -ENOMEM;
	}
	*cred = c;
	return 0;
}

void qrdma_cred_free(struct qrdma_cred *cred)
{
	struct psk *psk;

	if (!cred)
		return;
	while ((psk = cred->psks)) {
		cred->psks = psk->next;
		tls_wipe(psk, sizeof(*psk));
		free(psk);
	}
	gnutls_certificate_free_credentials(cred->x509);
	free(cred);
}

int qrdma_cred_set_x509(struct qrdma_cred *cred, const char *cert_file, const char *key_file)
{
	int err;

	if (!cert_file || !key_file)
		return -EINVAL;
	if (access(cert_file, R_OK) || access(key_file, R_OK))
		return -ENOENT;
	err = gnutls_certificate_set_x509_key_file(cred->x509, cert_file, key_file, GNUTLS_X509_FMT_PEM);
	if (err < 0)
		return -EINVAL;
	cred->have_cert = true;
	return 0;
}

int qrdma_cred_set_trust(struct qrdma_cred *cred, const char *ca_file)
{
	int n;

	if (!ca_file) {
		n = gnutls_certificate_set_x509_system_trust(cred->x509);
	} else {
		if (access(ca_file, R_OK))
			return -ENOENT;
		n = gnutls_certificate_set_x509_trust_file(cred->x509, ca_file, GNUTLS_X509_FMT_PEM);
		if (n < 0)
			return -EINVAL;
	}
	if (n <= 0)
		return -ENOENT;
	cred->have_trust = true;
	return 0;
}

/* Compares lengths too: an identity from the network may hold a NUL, and ends without one. */
static const struct psk *psk_find(const struct qrdma_cred *cred, const void *identity, size_t len)
{
	for (const struct psk *psk = cred->psks; psk; psk = psk->next)
		if (strlen(psk->identity) == len && !memcmp(psk->identity, identity, len))
			return psk;
	return NULL;
}

int qrdma_cred_set_psk(struct qrdma_cred *cred, const char *identity, const uint8_t *key, size_t len)
{
	struct psk *psk;

	if (!identity || !*identity || strlen(identity) >= PSK_NAME_MAX || strpbrk(identity, ":\n"))
		return -EINVAL;
	if (!key || len < PSK_KEY_MIN || len > PSK_KEY_MAX)
		return -EINVAL;
	if (psk_find(cred, identity, strlen(identity)))
		return -EEXIST;
	psk = calloc(1, sizeof(*psk));
	if (!psk)
		return -ENOMEM;
	strcpy(psk->identity, identity);
	memcpy(psk->key, key, len);
	psk->len = len;
	psk->next = cred->psks;
	cred->psks = psk;
	return 0;
}

/* One line of a key file. 1: taken, 0: nothing in it or another identity, -errno. */
static int psk_line(struct qrdma_cred *cred, char *line, const char *identity)
{
	uint8_t key[PSK_KEY_MAX];
	gnutls_datum_t hex;
	size_t len = sizeof(key);
	char *colon;
	int err;

	line[strcspn(line, "\r\n")] = '\0';
	if (!*line || *line == '#')
		return 0;
	colon = strchr(line, ':');
	if (!colon)
		return -EINVAL;
	*colon = '\0';
	if (identity && strcmp(identity, line))
		return 0;
	hex.data = (unsigned char *)colon + 1;
	hex.size = strlen(colon + 1);
	if (gnutls_hex_decode(&hex, key, &len))
		err = -EINVAL;
	else
		err = qrdma_cred_set_psk(cred, line, key, len);
	tls_wipe(key, sizeof(key));
	return err ? err : 1;
}

int qrdma_cred_set_psk_file(struct qrdma_cred *cred, const char *file, const char *identity)
{
	char line[PSK_NAME_MAX + 2 * PSK_KEY_MAX + 4];
	struct stat st;
	int taken = 0;
	int err = 0;
	FILE *f;

	f = fopen(file, "re");
	if (!f)
		return -errno;
	if (fstat(fileno(f), &st)) {
		err = -errno;
	} else if (st.st_mode & (S_IRWXO | S_IWGRP)) {
		err = -EACCES;
	}
	while (!err && fgets(line, sizeof(line), f)) {
		if (!strchr(line, '\n') && !feof(f)) {
			err = -EINVAL;
			break;
		}
		err = psk_line(cred, line, identity);
		if (err > 0) {
			taken++;
			err = 0;
		}
	}
	if (!err && ferror(f))
		err = -EIO;
	tls_wipe(line, sizeof(line));
	fclose(f);
	if (err)
		return err;
	return taken ? 0 : -ENOKEY;
}

/* GnuTLS hands the key to gnutls_free(), so it gets a copy of its own. */
static int psk_copy(const struct psk *psk, gnutls_datum_t *key)
{
	key->data = gnutls_malloc(psk->len);
	if (!key->data)
		return -1;
	memcpy(key->data, psk->key, psk->len);
	key->size = psk->len;
	return 0;
}

static int psk_server_lookup(gnutls_session_t session, const gnutls_datum_t *identity, gnutls_datum_t *key)
{
	struct cred_use *use = gnutls_session_get_ptr(session);
	const struct psk *psk = psk_find(use->cred, identity->data, identity->size);

	if (!psk) {
		use->psk_unknown = true;
		return -1;
	}
	use->psk_found = true;
	return psk_copy(psk, key);
}

static int cred_apply_psk(struct cred_use *use, gnutls_session_t session, bool server)
{
	const struct psk *psk = use->cred->psks;
	gnutls_datum_t key;
	int err;

	if (server) {
		if (gnutls_psk_allocate_server_credentials(&use->psk_server))
			return -ENOMEM;
		gnutls_psk_set_server_credentials_function2(use->psk_server, psk_server_lookup);
		return gnutls_credentials_set(session, GNUTLS_CRD_PSK, use->psk_server) ? -ENOMEM : 0;
	}
	if (gnutls_psk_allocate_client_credentials(&use->psk_client))
		return -ENOMEM;
	key.data = (unsigned char *)psk->key;
	key.size = psk->len;
	err = gnutls_psk_set_client_credentials(use->psk_client, psk->identity, &key, GNUTLS_PSK_KEY_RAW);
	if (!err)
		err = gnutls_credentials_set(session, GNUTLS_CRD_PSK, use->psk_client);
	return err ? -ENOMEM : 0;
}

/* A certificate made for clients does not prove a server, nor the other way round. */
static int cred_apply_x509(struct cred_use *use, gnutls_session_t session, const struct cred_role *role)
{
	const char *purpose = role->server ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER;
	unsigned int n = 0;

	if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, use->cred->x509))
		return -ENOMEM;
	if (role->server && !role->require_peer_cert)
		return 0;
	if (role->server)
		gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
	use->verify[n].type = GNUTLS_DT_KEY_PURPOSE_OID;
	use->verify[n++].data = (unsigned char *)purpose;
	if (role->peer_name) {
		use->verify[n].type = GNUTLS_DT_DNS_HOSTNAME;
		use->verify[n++].data = (unsigned char *)role->peer_name;
	}
	use->n_verify = n;
	gnutls_session_set_verify_cert2(session, use->verify, n, 0);
	return 0;
}

bool cred_is_psk(const struct qrdma_cred *cred)
{
	return cred->psks;
}

int cred_check(const struct cred_role *role, struct qrdma_reason *why)
{
	const struct qrdma_cred *cred = role->cred;

	if (!cred)
		return reason_set(why, -EINVAL, "no credentials given");
	if (cred->psks)
		return 0;
	if (role->server && !cred->have_cert)
		return reason_set(why, -ENOKEY, "a server needs a certificate or a pre-shared key");
	if ((!role->server || role->require_peer_cert) && !cred->have_trust)
		return reason_set(why, -ENOKEY, "no trusted authority set: the peer could not be verified");
	if (!role->server && !role->peer_name)
		return reason_set(why, -EINVAL, "no name given that the server's certificate must carry");
	return 0;
}

int cred_apply(struct cred_use *use, gnutls_session_t session, const struct cred_role *role)
{
	use->cred = role->cred;
	gnutls_session_set_ptr(session, use);
	/* GnuTLS would write secrets to the file that the environment names: that is not the environment's decision. */
	gnutls_session_set_keylog_function(session, NULL);
	if (use->cred->psks)
		return cred_apply_psk(use, session, role->server);
	return cred_apply_x509(use, session, role);
}

void cred_release(struct cred_use *use)
{
	if (use->psk_client)
		gnutls_psk_free_client_credentials(use->psk_client);
	if (use->psk_server)
		gnutls_psk_free_server_credentials(use->psk_server);
	use->psk_client = NULL;
	use->psk_server = NULL;
}

int cred_verify_error(unsigned int status, struct qrdma_reason *why)
{
	gnutls_datum_t text = { 0 };
	int err = -EKEYREJECTED;

	if (status & (GNUTLS_CERT_EXPIRED | GNUTLS_CERT_NOT_ACTIVATED))
		err = -EKEYEXPIRED;
	else if (status & GNUTLS_CERT_REVOKED)
		err = -EKEYREVOKED;
	gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
	reason_set(why, err, "certificate of the peer: %s", text.data ? (char *)text.data : "not accepted");
	gnutls_free(text.data);
	return err;
}
