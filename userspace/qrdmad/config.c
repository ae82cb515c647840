// SPDX-License-Identifier: GPL-2.0
/*
 * The configuration file, read with GLib's GKeyFile. See config.h.
 *
 * One table says which keys there are, and where; a key that is not in it is an error, as a key that is ignored would
 * be a policy that the administrator only believes in.
 */
#include <errno.h>
#include <glib.h>
#include <qrdma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "config.h"

#define DEFAULT_HOST_KEY	"/var/lib/qrdma/host.key"
#define DEFAULT_USER		"nobody"
#define DEFAULT_HANDSHAKES	256
#define GENERAL			"qrdmad"
/* File names and names: as long as certificates and PATH_MAX have them. */
#define TEXT_MAX		4095

struct reader {
	GKeyFile *file;
	const char *group;
	const char *key;
	char *why;
};

static int bad(const struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int bad(const struct reader *r, const char *format, ...)
{
	size_t len = 0;
	va_list args;

	if (r->group)
		len = g_snprintf(r->why, CONFIG_WHY_SIZE, "[%s]%s%s: ", r->group, r->key ? " " : "",
				 r->key ? r->key : "");
	if (len >= CONFIG_WHY_SIZE)
		return -EINVAL;
	va_start(args, format);
	g_vsnprintf(r->why + len, CONFIG_WHY_SIZE - len, format, args);
	va_end(args);
	return -EINVAL;
}

/* Values. Each returns 0, or -EINVAL with words. */

static int value_number(const struct reader *r, const char *text, unsigned int min, unsigned int max,
			unsigned int *out)
{
	guint64 n;

	if (!g_ascii_string_to_unsigned(text, 10, min, max, &n, NULL))
		return bad(r, "'%s' is not a number from %u to %u", text, min, max);
	*out = n;
	return 0;
}

static int value_text(const struct reader *r, const char *text, char **out)
{
	if (!*text)
		return bad(r, "there is no value");
	if (strlen(text) > TEXT_MAX)
		return bad(r, "the value is too long");
	*out = g_strdup(text);
	return 0;
}

/* A daemon has no working directory that one could mean. */
static int value_file(const struct reader *r, const char *text, char **out)
{
	if (*text != '/')
		return bad(r, "'%s' is not an absolute path", text);
	return value_text(r, text, out);
}

static int value_allow(const struct reader *r, const char *text, struct settings *s)
{
	if (!strcmp(text, "yes"))
		s->allow = 1;
	else if (!strcmp(text, "no"))
		s->allow = 0;
	else
		return bad(r, "'%s' is neither yes nor no", text);
	return 0;
}

static int value_auth(const struct reader *r, const char *text, struct settings *s)
{
	static const char *const names[] = {
		[AUTH_MUTUAL] = "mutual",
		[AUTH_SERVER] = "server",
		[AUTH_PSK] = "psk",
	};

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		if (!strcmp(text, names[i])) {
			s->auth = i;
			return 0;
		}
	if (!strcmp(text, "none"))
		return bad(r, "there is no connection that is not authenticated: mutual, server or psk");
	return bad(r, "'%s' is none of mutual, server, psk", text);
}

static int value_certificate(const struct reader *r, const char *text, struct settings *s)
{
	return value_file(r, text, &s->certificate);
}

static int value_key(const struct reader *r, const char *text, struct settings *s)
{
	return value_file(r, text, &s->key);
}

static int value_trust(const struct reader *r, const char *text, struct settings *s)
{
	return strcmp(text, "system") ? value_file(r, text, &s->trust) : value_text(r, text, &s->trust);
}

static int value_psk_file(const struct reader *r, const char *text, struct settings *s)
{
	return value_file(r, text, &s->psk_file);
}

static int value_psk_identity(const struct reader *r, const char *text, struct settings *s)
{
	return value_text(r, text, &s->psk_identity);
}

static int value_name(const struct reader *r, const char *text, struct settings *s)
{
	if (strlen(text) > 255)
		return bad(r, "the name is too long");
	return value_text(r, text, &s->name);
}

static int value_timeout(const struct reader *r, const char *text, struct settings *s)
{
	char *end;
	double seconds = g_ascii_strtod(text, &end);

	if (end == text || *end || !(seconds >= 0.1 && seconds <= CONFIG_TIMEOUT_MAX))
		return bad(r, "'%s' is not a number of seconds from 0.1 to %d", text, CONFIG_TIMEOUT_MAX);
	s->timeout_ms = seconds * 1000;
	return 0;
}

static int value_ciphers(const struct reader *r, const char *text, struct settings *s)
{
	char **list = g_strsplit(text, ",", CONFIG_CIPHERS_MAX + 1);
	int err = 0;

	for (char **name = list; *name && !err; name++) {
		uint32_t cipher = qrdma_cipher_by_name(g_strstrip(*name));

		if (!cipher)
			err = bad(r, "unknown cipher '%s'", *name);
		for (size_t i = 0; i < s->n_ciphers; i++)
			if (s->ciphers[i] == cipher)
				err = bad(r, "'%s' is named twice", *name);
		if (!err)
			s->ciphers[s->n_ciphers++] = cipher;
	}
	if (!err && !s->n_ciphers)
		err = bad(r, "there is no value");
	g_strfreev(list);
	return err;
}

static const struct {
	const char *key;
	int (*value)(const struct reader *r, const char *text, struct settings *s);
} settings_keys[] = {
	{ "allow", value_allow },
	{ "authenticate", value_auth },
	{ "certificate", value_certificate },
	{ "key", value_key },
	{ "trust", value_trust },
	{ "psk-file", value_psk_file },
	{ "psk-identity", value_psk_identity },
	{ "name", value_name },
	{ "timeout", value_timeout },
	{ "ciphers", value_ciphers },
};

/* Sections. */

static int settings_key(const struct reader *r, const char *text, void *out)
{
	for (size_t i = 0; i < G_N_ELEMENTS(settings_keys); i++)
		if (!strcmp(r->key, settings_keys[i].key))
			return settings_keys[i].value(r, text, out);
	return bad(r, "there is no such key");
}

static int general_key(const struct reader *r, const char *text, void *out)
{
	struct config *config = out;

	if (!strcmp(r->key, "workers"))
		return value_number(r, text, 1, CONFIG_WORKERS_MAX, &config->workers);
	if (!strcmp(r->key, "handshakes"))
		return value_number(r, text, 1, CONFIG_HANDSHAKES_MAX, &config->handshakes);
	if (!strcmp(r->key, "user")) {
		g_free(config->user);
		config->user = NULL;
		return value_text(r, text, &config->user);
	}
	if (!strcmp(r->key, "host-key-file")) {
		g_free(config->host_key_file);
		config->host_key_file = NULL;
		return strcmp(text, "none") ? value_file(r, text, &config->host_key_file) : 0;
	}
	if (!strcmp(r->key, "keylog-file"))
		return value_file(r, text, &config->keylog_file);
	return bad(r, "there is no such key");
}

static int read_keys(struct reader *r, int (*key)(const struct reader *r, const char *text, void *out), void *out)
{
	char **keys = g_key_file_get_keys(r->file, r->group, NULL, NULL);
	int err = 0;

	for (char **k = keys; k && *k && !err; k++) {
		char *text = g_key_file_get_string(r->file, r->group, *k, NULL);

		r->key = *k;
		if (text)
			err = key(r, g_strstrip(text), out);
		else
			err = bad(r, "the value is not text in UTF-8, or has an unknown escape");
		g_free(text);
	}
	r->key = NULL;
	g_strfreev(keys);
	return err;
}

static int read_settings(struct reader *r, struct settings *s)
{
	int err;

	s->allow = -1;
	s->auth = -1;
	err = read_keys(r, settings_key, s);
	if (!err && !s->certificate != !s->key)
		err = bad(r, "'certificate' and 'key' go together");
	return err;
}

static int read_peer(struct reader *r, struct config *config, const char *text)
{
	struct peer_section *peer = &config->peers[config->n_peers];
	const char *why;

	if (config->n_peers == CONFIG_PEERS_MAX)
		return bad(r, "there are more than %d sections of this kind", CONFIG_PEERS_MAX);
	if (prefix_parse(&peer->prefix, text, &why))
		return bad(r, "%s", why);
	for (size_t i = 0; i < config->n_peers; i++)
		if (prefix_equal(&config->peers[i].prefix, &peer->prefix))
			return bad(r, "there is a section for these addresses already");
	config->n_peers++;
	return read_settings(r, &peer->settings);
}

static int read_port(struct reader *r, struct config *config, const char *text)
{
	struct port_section *port = &config->ports[config->n_ports];
	int err;

	if (config->n_ports == CONFIG_PORTS_MAX)
		return bad(r, "there are more than %d sections of this kind", CONFIG_PORTS_MAX);
	err = value_number(r, text, 1, 65535, &port->port);
	if (err)
		return err;
	for (size_t i = 0; i < config->n_ports; i++)
		if (config->ports[i].port == port->port)
			return bad(r, "there is a section for this port already");
	config->n_ports++;
	return read_settings(r, &port->settings);
}

static int read_group(struct reader *r, struct config *config)
{
	static const char *const roles[] = { [QRDMA_ROLE_CLIENT] = "client", [QRDMA_ROLE_SERVER] = "server" };

	if (!strcmp(r->group, GENERAL))
		return read_keys(r, general_key, config);
	for (size_t i = 0; i < G_N_ELEMENTS(roles); i++)
		if (!strcmp(r->group, roles[i])) {
			config->have[i] = true;
			return read_settings(r, &config->role[i]);
		}
	if (g_str_has_prefix(r->group, "peer "))
		return read_peer(r, config, r->group + strlen("peer "));
	if (g_str_has_prefix(r->group, "port "))
		return read_port(r, config, r->group + strlen("port "));
	return bad(r, "there is no such section");
}

static int peer_compare(const void *a, const void *b)
{
	const struct peer_section *x = a;
	const struct peer_section *y = b;

	return (int)y->prefix.len - (int)x->prefix.len;
}

static int read_all(struct reader *r, struct config *config)
{
	char **groups = g_key_file_get_groups(r->file, NULL);
	int err = 0;

	for (char **group = groups; *group && !err; group++) {
		r->group = *group;
		err = read_group(r, config);
	}
	r->group = NULL;
	g_strfreev(groups);
	if (!err && !config->have[QRDMA_ROLE_CLIENT] && !config->have[QRDMA_ROLE_SERVER])
		err = bad(r, "there is neither a section [client] nor one [server]");
	qsort(config->peers, config->n_peers, sizeof(config->peers[0]), peer_compare);
	return err;
}

/* GKeyFile's own words for what it cannot read; a missing file by its errno. */
static int open_file(const struct reader *r, const char *file)
{
	GError *error = NULL;
	int err = -EINVAL;

	if (access(file, R_OK)) {
		err = -errno;
		g_snprintf(r->why, CONFIG_WHY_SIZE, "%s", g_strerror(errno));
		return err;
	}
	if (g_key_file_load_from_file(r->file, file, G_KEY_FILE_NONE, &error))
		return 0;
	g_snprintf(r->why, CONFIG_WHY_SIZE, "%s", error->message);
	g_error_free(error);
	return err;
}

int config_load(struct config **out, const char *file, char why[CONFIG_WHY_SIZE])
{
	struct reader r = { .file = g_key_file_new(), .why = why };
	struct config *config = g_new0(struct config, 1);
	int err;

	config->handshakes = DEFAULT_HANDSHAKES;
	config->user = g_strdup(DEFAULT_USER);
	config->host_key_file = g_strdup(DEFAULT_HOST_KEY);
	err = open_file(&r, file);
	if (!err)
		err = read_all(&r, config);
	g_key_file_free(r.file);
	if (err) {
		config_free(config);
		return err;
	}
	*out = config;
	return 0;
}

static void settings_free(struct settings *s)
{
	g_free(s->certificate);
	g_free(s->key);
	g_free(s->trust);
	g_free(s->psk_file);
	g_free(s->psk_identity);
	g_free(s->name);
}

void config_free(struct config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < 2; i++)
		settings_free(&config->role[i]);
	/* the one behind the last may be half read */
	for (size_t i = 0; i < config->n_peers; i++)
		settings_free(&config->peers[i].settings);
	for (size_t i = 0; i < config->n_ports; i++)
		settings_free(&config->ports[i].settings);
	g_free(config->user);
	g_free(config->host_key_file);
	g_free(config->keylog_file);
	g_free(config);
}
