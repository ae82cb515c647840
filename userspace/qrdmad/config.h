/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the configuration file says, section by section; Documentation/qrdmad.md describes it. Read by main.c and by
 * master.c (SIGHUP), turned into decisions by policy.c. Nothing is looked up: no name, no user.
 */
#ifndef QRDMAD_CONFIG_H
#define QRDMAD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "prefix.h"

#define CONFIG_CIPHERS_MAX	8
#define CONFIG_PEERS_MAX	256
#define CONFIG_PORTS_MAX	64
#define CONFIG_WORKERS_MAX	64
#define CONFIG_HANDSHAKES_MAX	4096
#define CONFIG_TIMEOUT_MAX	300	/* seconds */
#define CONFIG_WHY_SIZE		512

enum authenticate {
	AUTH_MUTUAL,	/* both ends show a certificate */
	AUTH_SERVER,	/* the server does */
	AUTH_PSK,	/* both prove that they have a pre-shared key */
};

/**
 * struct settings - the keys of one section, or of several laid over each other; NULL, -1, 0: not there
 * @allow: 1 or 0
 * @auth: enum authenticate
 * @certificate: PEM file, goes with @key
 * @key: PEM file
 * @trust: PEM file, or "system"
 * @psk_file: see qrdma_cred_set_psk_file()
 * @psk_identity: the only one of it
 * @name: what the peer's certificate has to carry
 * @timeout_ms: of a handshake
 * @ciphers: QRDMA_CIPHER_*, the first is preferred
 * @n_ciphers: how many
 */
struct settings {
	int allow;
	int auth;
	char *certificate;
	char *key;
	char *trust;
	char *psk_file;
	char *psk_identity;
	char *name;
	int timeout_ms;
	uint32_t ciphers[CONFIG_CIPHERS_MAX];
	size_t n_ciphers;
};

struct peer_section {
	struct prefix prefix;
	struct settings settings;
};

struct port_section {
	unsigned int port;
	struct settings settings;
};

/**
 * struct config - one configuration file
 * @workers: processes, 0: one for each CPU
 * @handshakes: that one of them runs at a time
 * @user: whom they run as: a name or a number
 * @host_key_file: NULL: none is kept
 * @keylog_file: secrets of all handshakes go there, NULL: they do not
 * @have: there is a section [client], [server]
 * @role: their keys, by QRDMA_ROLE_*
 * @peers: sections [peer], the longest prefix first
 * @ports: sections [port]
 */
struct config {
	unsigned int workers;
	unsigned int handshakes;
	char *user;
	char *host_key_file;
	char *keylog_file;
	bool have[2];
	struct settings role[2];
	struct peer_section peers[CONFIG_PEERS_MAX];
	size_t n_peers;
	struct port_section ports[CONFIG_PORTS_MAX];
	size_t n_ports;
};

/* @why: a line that names the section and the key. 0, -errno of reading the file, or -EINVAL. */
int config_load(struct config **config, const char *file, char why[CONFIG_WHY_SIZE]);
/* NULL is accepted. */
void config_free(struct config *config);

#endif /* QRDMAD_CONFIG_H */
