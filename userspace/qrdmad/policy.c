// SPDX-License-Identifier: GPL-2.0
/* See policy.h. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>
#include "policy.h"

/* Credentials are made once for each set of sources. */
struct source {
	struct source *next;
	struct settings from;		/* borrowed texts */
	struct qrdma_cred *cred;
};

struct policies {
	const struct config *config;
	/* [role][1 + section of the port, 0: none][1 + section of the peer], flat */
	struct policy *policy[2];
	struct settings *merged[2];
	struct source *sources;
};

struct place {
	int role;
	const struct port_section *port;
	const struct peer_section *peer;
};

/* The sections that a decision is made of, for people. */
static int bad(const struct place *place, char *why, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int bad(const struct place *place, char *why, const char *format, ...)
{
	char prefix[PREFIX_TEXT];
	size_t len;
	va_list args;

	len = g_snprintf(why, CONFIG_WHY_SIZE, "[%s]", place->role == QRDMA_ROLE_SERVER ? "server" : "client");
	if (place->port)
		len += g_snprintf(why + len, CONFIG_WHY_SIZE - len, " with [port %u]", place->port->port);
	if (place->peer) {
		prefix_print(&place->peer->prefix, prefix);
		len += g_snprintf(why + len, CONFIG_WHY_SIZE - len, " with [peer %s]", prefix);
	}
	len += g_snprintf(why + len, CONFIG_WHY_SIZE - len, ": ");
	va_start(args, format);
	g_vsnprintf(why + len, CONFIG_WHY_SIZE - len, format, args);
	va_end(args);
	return -EINVAL;
}

static void lay_over(struct settings *s, const struct settings *over)
{
	if (over->allow >= 0)
		s->allow = over->allow;
	if (over->auth >= 0)
		s->auth = over->auth;
	if (over->certificate) {
		s->certificate = over->certificate;
		s->key = over->key;
	}
	if (over->trust)
		s->trust = over->trust;
	/* another file has other identities */
	if (over->psk_file) {
		s->psk_file = over->psk_file;
		s->psk_identity = NULL;
	}
	if (over->psk_identity)
		s->psk_identity = over->psk_identity;
	if (over->name)
		s->name = over->name;
	if (over->timeout_ms)
		s->timeout_ms = over->timeout_ms;
	if (over->n_ciphers) {
		memcpy(s->ciphers, over->ciphers, sizeof(s->ciphers));
		s->n_ciphers = over->n_ciphers;
	}
}

/* What is needed for that way to authenticate is there. */
static int check(const struct place *place, const struct settings *s, char *why)
{
	bool server = place->role == QRDMA_ROLE_SERVER;

	if (s->auth == AUTH_PSK) {
		if (!s->psk_file)
			return bad(place, why, "'authenticate = psk' needs 'psk-file'");
		if (s->n_ciphers == 1 && s->ciphers[0] == QRDMA_CIPHER_AES_GCM_256)
			return bad(place, why, "aes-256-gcm does not go with a pre-shared key");
		return 0;
	}
	if ((server || s->auth == AUTH_MUTUAL) && !s->certificate)
		return bad(place, why, "'authenticate = %s' needs 'certificate' and 'key'",
			   s->auth == AUTH_MUTUAL ? "mutual" : "server");
	if ((!server || s->auth == AUTH_MUTUAL) && !s->trust)
		return bad(place, why, "'trust' is needed to verify the peer: a file, or \"system\"");
	return 0;
}

static int read_psk(const struct place *place, struct qrdma_cred *cred, const struct settings *s, char *why)
{
	int err = qrdma_cred_set_psk_file(cred, s->psk_file, s->psk_identity);

	switch (err) {
	case 0:
		return 0;
	case -EACCES:
		return bad(place, why, "psk-file %s: others can read it, or we cannot", s->psk_file);
	case -ENOKEY:
		return bad(place, why, "psk-file %s: no such identity in it", s->psk_file);
	case -EINVAL:
		return bad(place, why, "psk-file %s: a line is not IDENTITY:HEXADECIMAL-KEY", s->psk_file);
	default:
		return bad(place, why, "psk-file %s: %s", s->psk_file, g_strerror(-err));
	}
}

/* libqrdma does not tell which of the two files it was, nor why. */
static int unreadable(const struct place *place, char *why, const char *certificate, const char *key)
{
	const char *file = certificate;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		file = key;
		fd = open(file, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return bad(place, why, "%s cannot be read: %s", file, g_strerror(errno));
	close(fd);
	return bad(place, why, "certificate %s or key %s cannot be read", certificate, key);
}

static int read_files(const struct place *place, struct qrdma_cred *cred, const struct settings *s, char *why)
{
	int err;

	if (s->auth == AUTH_PSK)
		return read_psk(place, cred, s, why);
	if (s->certificate) {
		err = qrdma_cred_set_x509(cred, s->certificate, s->key);
		if (err == -ENOENT)
			return unreadable(place, why, s->certificate, s->key);
		if (err)
			return bad(place, why, "certificate %s: no PEM, or key %s is not its own", s->certificate,
				   s->key);
	}
	if (s->trust) {
		err = qrdma_cred_set_trust(cred, strcmp(s->trust, "system") ? s->trust : NULL);
		if (err == -ENOENT)
			return bad(place, why, "trust %s cannot be read, or has no authority in it", s->trust);
		if (err)
			return bad(place, why, "trust %s: no PEM", s->trust);
	}
	return 0;
}

static bool same_source(const struct settings *a, const struct settings *b)
{
	bool psk = a->auth == AUTH_PSK;

	if (psk ? b->auth != AUTH_PSK : b->auth == AUTH_PSK)
		return false;
	if (psk)
		return !g_strcmp0(a->psk_file, b->psk_file) && !g_strcmp0(a->psk_identity, b->psk_identity);
	return !g_strcmp0(a->certificate, b->certificate) && !g_strcmp0(a->key, b->key) &&
	       !g_strcmp0(a->trust, b->trust);
}

static int credentials(struct policies *policies, const struct place *place, const struct settings *s,
		       const struct qrdma_cred **cred, char *why)
{
	struct source *source;
	int err;

	for (source = policies->sources; source; source = source->next)
		if (same_source(&source->from, s)) {
			*cred = source->cred;
			return 0;
		}
	source = g_new0(struct source, 1);
	if (qrdma_cred_new(&source->cred)) {
		g_free(source);
		return bad(place, why, "out of memory");
	}
	source->from = *s;
	source->next = policies->sources;
	policies->sources = source;
	err = read_files(place, source->cred, s, why);
	*cred = source->cred;
	return err;
}

static int decide(struct policies *policies, const struct place *place, struct settings *s, struct policy *policy,
		  char *why)
{
	int err;

	*s = policies->config->role[place->role];
	if (place->port)
		lay_over(s, &place->port->settings);
	if (place->peer)
		lay_over(s, &place->peer->settings);
	if (s->auth < 0)
		s->auth = AUTH_MUTUAL;
	policy->allow = s->allow != 0;
	if (!policy->allow)
		return 0;
	err = check(place, s, why);
	if (!err)
		err = credentials(policies, place, s, &policy->cred, why);
	policy->auth = s->auth;
	policy->name = s->name;
	policy->timeout_ms = s->timeout_ms;
	policy->ciphers = s->ciphers;
	policy->n_ciphers = s->n_ciphers;
	return err;
}

static size_t index_of(const struct config *config, size_t port, size_t peer)
{
	return port * (config->n_peers + 1) + peer;
}

static int decide_role(struct policies *policies, int role, char *why)
{
	const struct config *config = policies->config;
	size_t n = (config->n_ports + 1) * (config->n_peers + 1);
	struct place place = { .role = role };

	policies->policy[role] = g_new0(struct policy, n);
	policies->merged[role] = g_new0(struct settings, n);
	for (size_t port = 0; port <= config->n_ports; port++)
		for (size_t peer = 0; peer <= config->n_peers; peer++) {
			size_t i = index_of(config, port, peer);
			int err;

			place.port = port ? &config->ports[port - 1] : NULL;
			place.peer = peer ? &config->peers[peer - 1] : NULL;
			err = decide(policies, &place, &policies->merged[role][i], &policies->policy[role][i], why);
			if (err)
				return err;
		}
	return 0;
}

int policies_new(struct policies **out, const struct config *config, char why[CONFIG_WHY_SIZE])
{
	struct policies *policies = g_new0(struct policies, 1);
	int err = 0;

	policies->config = config;
	for (int role = 0; role < 2 && !err; role++)
		if (config->have[role])
			err = decide_role(policies, role, why);
	if (err) {
		policies_free(policies);
		return err;
	}
	*out = policies;
	return 0;
}

void policies_free(struct policies *policies)
{
	struct source *source;

	if (!policies)
		return;
	while ((source = policies->sources)) {
		policies->sources = source->next;
		qrdma_cred_free(source->cred);
		g_free(source);
	}
	for (int role = 0; role < 2; role++) {
		g_free(policies->policy[role]);
		g_free(policies->merged[role]);
	}
	g_free(policies);
}

const struct policy *policy_find(const struct policies *policies, int role, const struct in6_addr *peer,
				 unsigned int port)
{
	const struct config *config = policies->config;
	size_t port_at = 0;
	size_t peer_at = 0;

	if (!policies->policy[role])
		return NULL;
	for (size_t i = 0; i < config->n_ports && !port_at; i++)
		if (config->ports[i].port == port)
			port_at = i + 1;
	/* the longest prefix comes first */
	for (size_t i = 0; i < config->n_peers && !peer_at; i++)
		if (prefix_match(&config->peers[i].prefix, peer))
			peer_at = i + 1;
	return &policies->policy[role][index_of(config, port_at, peer_at)];
}
