// SPDX-License-Identifier: GPL-2.0
/*
 * qrdmad's configuration: each fault of a file has its words, and of the sections that fit a handshake the right one is
 * taken. argv[1]: folder made by certs.sh, which files of keys and configurations are written to.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common.h"
#include "hostkey.h"
#include "policy.h"

static struct config *config;
static struct policies *policies;
static char why[CONFIG_WHY_SIZE];

static void put(const char *name, const char *text, mode_t mode)
{
	FILE *f = fopen(path(name), "w");

	if (!f || fputs(text, f) < 0 || fclose(f) || chmod(path(name), mode))
		exit(1);
}

/* "@" in a configuration stands for the folder, as file names are absolute. */
static void put_config(const char *text)
{
	char *folder = realpath(path("."), NULL);
	FILE *f = fopen(path("conf"), "w");

	if (!f || !folder)
		exit(1);
	for (; *text; text++)
		if (*text == '@')
			fputs(folder, f);
		else
			fputc(*text, f);
	fclose(f);
	free(folder);
}

static int load(const char *text)
{
	int err;

	policies_free(policies);
	config_free(config);
	policies = NULL;
	config = NULL;
	*why = '\0';
	put_config(text);
	err = config_load(&config, path("conf"), why);
	if (err)
		return err;
	return policies_new(&policies, config, why);
}

static void good(const char *name, const char *text)
{
	int err = load(text);

	check(!err, name, why);
}

/* Refused, and each of the words is in what is said. */
static void refused(const char *name, const char *text, const char *word, const char *other)
{
	int err = load(text);

	check(err == -EINVAL && strstr(why, word) && strstr(why, other), name, why);
}

#define SERVER	"[server]\ncertificate = @/server.pem\nkey = @/server.key\n"
#define CLIENT	"[client]\nauthenticate = server\ntrust = @/ca.pem\n"

static void test_faults(void)
{
	char *absent = strdup(path("absent"));

	check(config_load(&config, absent, why) == -ENOENT && !config, "no file", why);
	free(absent);
	refused("an empty file", "", "neither", "[server]");
	refused("no sections", "hello\n", "hello", "");
	refused("another section", CLIENT "[peers]\n", "[peers]", "no such section");
	refused("another key", CLIENT "trusted = yes\n", "[client] trusted", "no such key");
	refused("another key of a peer", CLIENT "[peer ::1]\nport = 1\n", "[peer ::1] port", "no such key");
	refused("another key of the daemon", CLIENT "[qrdmad]\ntrust = /x\n", "[qrdmad] trust", "no such key");
	refused("a name for a peer", CLIENT "[peer a.example]\n", "[peer a.example]", "not looked up");
	refused("an address for a peer that is none", CLIENT "[peer 10.0.0.256]\n", "10.0.0.256", "not an address");
	refused("a prefix too long", CLIENT "[peer 10.0.0.0/33]\n", "10.0.0.0/33", "out of range");
	refused("a prefix that is no number", CLIENT "[peer 10.0.0.0/x]\n", "10.0.0.0/x", "out of range");
	refused("a prefix of nothing", CLIENT "[peer 10.0.0.0/]\n", "10.0.0.0/", "out of range");
	refused("bits behind a prefix", CLIENT "[peer 10.0.0.1/24]\n", "10.0.0.1/24", "bits behind");
	refused("bits behind an IPv6 prefix", CLIENT "[peer fd00::2/126]\n", "fd00::2/126", "bits behind");
	refused("a peer twice", CLIENT "[peer 10.0.0.1]\n[peer ::ffff:10.0.0.1/128]\n", "::ffff", "already");
	refused("a port twice", CLIENT "[port 7]\n[port 07]\n", "[port 07]", "already");
	refused("port 0", CLIENT "[port 0]\n", "[port 0]", "65535");
	refused("a port that is none", CLIENT "[port http]\n", "[port http]", "65535");
	refused("no workers", CLIENT "[qrdmad]\nworkers = 0\n", "workers", "64");
	refused("too many handshakes", CLIENT "[qrdmad]\nhandshakes = 4097\n", "handshakes", "4096");
	refused("a relative path", "[client]\ntrust = ca.pem\n", "[client] trust", "absolute");
	refused("an empty path", "[client]\ntrust =\n", "[client] trust", "absolute");
	refused("an empty name", CLIENT "name =\n", "[client] name", "no value");
	refused("no authentication", "[server]\nauthenticate = none\n", "authenticate", "not authenticated");
	refused("another authentication", "[server]\nauthenticate = both\n", "both", "psk");
	refused("allow perhaps", "[server]\nallow = perhaps\n", "perhaps", "neither");
	refused("no time", CLIENT "timeout = 0\n", "timeout", "seconds");
	refused("much time", CLIENT "timeout = 301\n", "timeout", "300");
	refused("another time", CLIENT "timeout = 5s\n", "timeout", "seconds");
	refused("another cipher", CLIENT "ciphers = aes-128-gcm, rot13\n", "ciphers", "'rot13'");
	refused("a cipher twice", CLIENT "ciphers = aes-128-gcm,aes-128-gcm\n", "ciphers", "twice");
	refused("text that is not UTF-8", CLIENT "name = a\xff\n", "name", "UTF-8");
	refused("half a certificate", "[server]\ncertificate = @/server.pem\n", "[server]", "together");
}

static void test_missing(void)
{
	refused("a server without a certificate", "[server]\nauthenticate = server\n", "[server]:", "'certificate'");
	refused("mutual is the default", SERVER, "[server]:", "'trust'");
	refused("a client without an authority", "[client]\nauthenticate = server\n", "[client]:", "'trust'");
	refused("a client without a certificate", "[client]\ntrust = @/ca.pem\n", "[client]:", "'certificate'");
	refused("a key without a file", "[client]\nauthenticate = psk\n", "[client]:", "'psk-file'");
	refused("sections that do not go together", CLIENT "[port 8]\nauthenticate = mutual\n[peer 10.0.0.0/8]\n",
		"[client] with [port 8]", "'certificate'");
	refused("and of a peer", CLIENT "[peer 10.0.0.0/8]\nauthenticate = psk\n", "[client] with [peer 10.0.0.0/8]",
		"'psk-file'");
	refused("a certificate that is not there",
		"[server]\nauthenticate = server\ncertificate = @/absent.pem\nkey = @/server.key\n", "absent.pem",
		"read");
	refused("a certificate and another's key",
		"[server]\nauthenticate = server\ncertificate = @/server.pem\nkey = @/client.key\n", "client.key",
		"own");
	refused("an authority that is not there", "[client]\nauthenticate = server\ntrust = @/absent.pem\n",
		"absent.pem", "read");
	refused("a file of keys that is not there", "[client]\nauthenticate = psk\npsk-file = @/absent\n", "absent",
		"No such file");
	put("psk", "me:000102030405060708090a0b0c0d0e0f\nyou:100102030405060708090a0b0c0d0e0f\n", 0600);
	put("psk.open", "me:000102030405060708090a0b0c0d0e0f\n", 0604);
	put("psk.bad", "me 000102030405060708090a0b0c0d0e0f\n", 0600);
	refused("a file of keys that others can read", "[client]\nauthenticate = psk\npsk-file = @/psk.open\n",
		"psk.open", "others");
	refused("a file of keys that is none", "[client]\nauthenticate = psk\npsk-file = @/psk.bad\n", "psk.bad",
		"IDENTITY");
	refused("an identity that is not there",
		"[client]\nauthenticate = psk\npsk-file = @/psk\npsk-identity = him\n", "psk", "no such identity");
	refused("a key with a cipher that does not go with it",
		"[client]\nauthenticate = psk\npsk-file = @/psk\nciphers = aes-256-gcm\n", "[client]", "aes-256-gcm");
	good("what is not allowed needs nothing", CLIENT "[port 8]\nallow = no\nauthenticate = mutual\n");
}

/* The policy for a peer given as text. */
static const struct policy *find(int role, const char *peer, unsigned int port)
{
	struct in6_addr addr;
	struct prefix one;
	const char *text;

	if (prefix_parse(&one, peer, &text))
		exit(1);
	addr = one.addr;
	return policy_find(policies, role, &addr, port);
}

static void is(const char *peer, unsigned int port, const char *name, int timeout_ms)
{
	const struct policy *p = find(QRDMA_ROLE_CLIENT, peer, port);
	char text[128];

	snprintf(text, sizeof(text), "%s port %u is %s, %d ms", peer, port, name ? name : "as it is", timeout_ms);
	check(p && p->timeout_ms == timeout_ms && !p->name == !name && (!name || !strcmp(p->name, name)), text,
	      p && p->name ? p->name : "");
}

static void test_match(void)
{
	good("a policy of many sections",
	     CLIENT "timeout = 1.5\n"
	     "[peer 10.0.0.0/8]\nname = ten\n"
	     "[peer 10.1.2.3]\nname = one\n"
	     "[peer 10.1.0.0/16]\nname = ten-one\n"
	     "[peer fd00::/8]\nname = fd\n"
	     "[peer fd00:1::/33]\nname = fd-one\n"
	     "[peer fd00:1::5]\ntimeout = 3\n"
	     "[port 80]\nname = web\ntimeout = 2\n"
	     "[port 81]\nname = other\n");
	is("192.168.0.1", 5, NULL, 1500);
	is("11.0.0.0", 5, NULL, 1500);
	is("10.255.255.255", 5, "ten", 1500);
	is("10.1.2.4", 5, "ten-one", 1500);
	is("10.1.2.3", 5, "one", 1500);
	is("::ffff:10.1.2.3", 5, "one", 1500);
	is("fe00::1", 5, NULL, 1500);
	is("fd00::1", 5, "fd", 1500);
	is("fd00:1:7fff::1", 5, "fd-one", 1500);
	is("fd00:1:8000::1", 5, "fd", 1500);
	is("192.168.0.1", 80, "web", 2000);
	is("192.168.0.1", 81, "other", 1500);
	is("10.1.2.3", 80, "one", 2000);
	/* the longest prefix alone, not the ones around it */
	is("fd00:1::5", 5, NULL, 3000);
	is("fd00:1::5", 80, "web", 3000);
	check(!find(QRDMA_ROLE_SERVER, "10.1.2.3", 80), "no section of the role", "");
	good("all of IPv4 and all", CLIENT "[peer 0.0.0.0/0]\nname = four\n[peer ::/0]\nname = all\n");
	is("10.1.2.3", 5, "four", 0);
	is("::ffff:1.2.3.4", 5, "four", 0);
	is("::1.2.3.4", 5, "all", 0);
}

static void test_roles(void)
{
	const struct policy *p;
	const struct policy *q;

	good("two roles",
	     SERVER "trust = @/ca.pem\n" CLIENT
	     "[peer 10.0.0.0/8]\nauthenticate = psk\npsk-file = @/psk\npsk-identity = you\n"
	     "[peer 10.0.0.1]\nallow = no\n"
	     "[port 9]\nallow = no\n"
	     "[peer 10.0.0.2]\nallow = yes\nciphers = chacha20-poly1305 , aes-128-gcm\n"
	     "[qrdmad]\nworkers = 3\nhandshakes = 5\nuser = me\nhost-key-file = none\nkeylog-file = /x\n");
	p = find(QRDMA_ROLE_SERVER, "11.0.0.1", 7);
	q = find(QRDMA_ROLE_CLIENT, "11.0.0.1", 7);
	check(p && p->allow && p->auth == AUTH_MUTUAL && q && q->allow && q->auth == AUTH_SERVER, "each its way", "");
	check(p && q && p->cred && q->cred && p->cred != q->cred, "with credentials of its own", "");
	p = find(QRDMA_ROLE_SERVER, "10.0.0.9", 7);
	q = find(QRDMA_ROLE_CLIENT, "10.0.0.9", 7);
	check(p && q && p->auth == AUTH_PSK && p->cred && p->cred == q->cred, "the same sources are read once", "");
	check(!find(QRDMA_ROLE_SERVER, "10.0.0.1", 7)->allow && !find(QRDMA_ROLE_CLIENT, "11.0.0.1", 9)->allow,
	      "a peer and a port that are not allowed", "");
	p = find(QRDMA_ROLE_SERVER, "10.0.0.2", 9);
	check(p->allow && p->n_ciphers == 2 && p->ciphers[0] == QRDMA_CIPHER_CHACHA20 &&
	      p->ciphers[1] == QRDMA_CIPHER_AES_GCM_128, "what a peer's section says stands over that of a port", "");
	check(config->workers == 3 && config->handshakes == 5 && !strcmp(config->user, "me") &&
	      !config->host_key_file && !strcmp(config->keylog_file, "/x"), "keys of the daemon", "");
	good("and their defaults", CLIENT);
	check(!config->workers && config->handshakes == 256 && config->host_key_file && !config->keylog_file,
	      "are as documented", "");
}

static void test_host_key(void)
{
	uint8_t key[HOSTKEY_LEN];
	uint8_t again[HOSTKEY_LEN];
	struct stat st;
	char *folder = strdup(path("state"));
	char *file = strdup(path("state/host.key"));
	bool made;

	unlink(file);
	rmdir(folder);
	check(!hostkey_load(file, key, &made) && made && !stat(file, &st) && (st.st_mode & 0777) == 0600 &&
	      st.st_size == 65, "a host key is made", "");
	check(!stat(folder, &st) && (st.st_mode & 0777) == 0700, "and its folder", "");
	check(!hostkey_load(file, again, &made) && !made && !memcmp(key, again, sizeof(key)), "and stays", "");
	chmod(file, 0640);
	check(hostkey_load(file, again, &made) == -EACCES, "one that others can read is not used", "");
	put("state/host.key", "0123", 0600);
	check(hostkey_load(file, again, &made) == -EINVAL, "nor half a one", "");
	put("state/host.key", "zz0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n", 0600);
	check(hostkey_load(file, again, &made) == -EINVAL, "nor one that is none", "");
	unlink(file);
	rmdir(folder);
	check(hostkey_load(path("state/deeper/host.key"), key, &made) == -ENOENT && !made,
	      "the folder of the folder is not", "");
	free(file);
	free(folder);
}

/* More sections than there may be. */
static void test_many(void)
{
	char *text = malloc(64 * (CONFIG_PEERS_MAX + 2));
	size_t len = sprintf(text, "%s", CLIENT);

	for (int i = 0; i < CONFIG_PEERS_MAX; i++)
		len += sprintf(text + len, "[peer 10.0.%d.%d]\n", i / 256, i % 256);
	good("as many peers as there may be", text);
	sprintf(text + len, "[peer 11.0.0.0]\n");
	refused("one too many", text, "[peer 11.0.0.0]", "more than");
	free(text);
}

int main(int argc, char **argv)
{
	test_start(argc, argv);
	test_faults();
	test_missing();
	test_match();
	test_roles();
	test_host_key();
	test_many();
	policies_free(policies);
	config_free(config);
	return test_end();
}
