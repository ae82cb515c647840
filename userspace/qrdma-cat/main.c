// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * qrdma-cat: files and pipes over AF_QRDMA. Joins the two ends by TCP, lets libqrdma run the handshake there (or, when
 * it is to be in band, over RDMA itself), then moves standard input to the peer and what the peer sends to standard
 * output.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <qrdma.h>
#include "inband.h"
#include "pump.h"

#define CIPHERS_MAX	8
#define CLOSE_SECONDS	30

struct cat {
	bool listen;
	bool in_band;
	bool keep;
	bool progress;
	bool verbose;
	bool mutual;
	int family;
	const char *host;
	const char *port;
	const char *name;
	const char *bind;
	const char *cert;
	const char *key;
	const char *ca;
	const char *psk_file;
	const char *psk_identity;
	const char *input;
	const char *output;
	uint32_t ciphers[CIPHERS_MAX];
	size_t n_ciphers;
	int timeout_ms;
	struct qrdma_cred *cred;
};

static const char usage_text[] =
	"usage: qrdma-cat [options] HOST PORT\n"
	"       qrdma-cat -l [options] [ADDRESS] PORT\n"
	"Moves standard input to the peer, and what the peer sends to standard output, over AF_QRDMA.\n"
	"PORT is a TCP port, used for the handshake only; with --in-band a port of AF_QRDMA.\n\n"
	"  -l, --listen            wait for one connection\n"
	"  -k, --keep              with -l: go on with the next connection when one has ended\n"
	"      --in-band           run the handshake over RDMA itself: no TCP\n"
	"  -i, --input FILE        read from FILE (\"/dev/null\": only receive)\n"
	"  -o, --output FILE       write to FILE\n"
	"  -b, --bind ADDRESS      address of the RDMA device, when not that of the TCP connection\n"
	"  -4, -6                  IPv4 or IPv6 only\n"
	"      --cert FILE         our certificate (PEM, with its chain)\n"
	"      --key FILE          its private key\n"
	"      --ca FILE           authorities that we trust (default: the system's)\n"
	"      --name NAME         name in the peer's certificate (default of a client: HOST)\n"
	"      --mutual            with -l: the client needs a certificate too\n"
	"      --psk-file FILE     pre-shared keys, lines of IDENTITY:HEXKEY\n"
	"      --psk-identity ID   take only this key of the file\n"
	"      --cipher LIST       aes-128-gcm, aes-256-gcm, aes-128-ccm, chacha20-poly1305; first is preferred\n"
	"      --timeout SECONDS   limit of each step of the handshake (default 10)\n"
	"  -p, --progress          progress line on standard error\n"
	"  -v, --verbose           state and counters of the connection on standard error\n"
	"  -h, --help              this text\n"
	"  -V, --version           version\n";

enum { OPT_CERT = 256, OPT_KEY, OPT_CA, OPT_NAME, OPT_MUTUAL, OPT_PSK_FILE, OPT_PSK_ID, OPT_CIPHER, OPT_TIMEOUT,
	OPT_IN_BAND };

static const struct option long_options[] = {
	{ "listen", no_argument, NULL, 'l' },
	{ "keep", no_argument, NULL, 'k' },
	{ "in-band", no_argument, NULL, OPT_IN_BAND },
	{ "input", required_argument, NULL, 'i' },
	{ "output", required_argument, NULL, 'o' },
	{ "bind", required_argument, NULL, 'b' },
	{ "cert", required_argument, NULL, OPT_CERT },
	{ "key", required_argument, NULL, OPT_KEY },
	{ "ca", required_argument, NULL, OPT_CA },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "mutual", no_argument, NULL, OPT_MUTUAL },
	{ "psk-file", required_argument, NULL, OPT_PSK_FILE },
	{ "psk-identity", required_argument, NULL, OPT_PSK_ID },
	{ "cipher", required_argument, NULL, OPT_CIPHER },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "progress", no_argument, NULL, 'p' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 }
};

static void __attribute__((noreturn, format(printf, 1, 2))) die_usage(const char *format, ...)
{
	va_list args;

	fputs("qrdma-cat: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nTry 'qrdma-cat --help'.\n", stderr);
	exit(2);
}

static void parse_ciphers(struct cat *cat, char *list)
{
	char *save = NULL;

	for (char *name = strtok_r(list, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		uint32_t cipher = qrdma_cipher_by_name(name);

		if (!cipher)
			die_usage("unknown cipher '%s'", name);
		if (cat->n_ciphers == CIPHERS_MAX)
			die_usage("too many ciphers");
		cat->ciphers[cat->n_ciphers++] = cipher;
	}
}

static int parse_seconds(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (*end || !(seconds > 0 && seconds <= 86400))
		die_usage("'%s' is not a number of seconds", text);
	return seconds * 1000;
}

static void parse_option(struct cat *cat, int c)
{
	switch (c) {
	case 'l':
		cat->listen = true;
		break;
	case 'k':
		cat->keep = true;
		break;
	case 'i':
		cat->input = optarg;
		break;
	case 'o':
		cat->output = optarg;
		break;
	case 'b':
		cat->bind = optarg;
		break;
	case '4':
		cat->family = AF_INET;
		break;
	case '6':
		cat->family = AF_INET6;
		break;
	case 'p':
		cat->progress = true;
		break;
	case 'v':
		cat->verbose = true;
		break;
	case OPT_IN_BAND:
		cat->in_band = true;
		break;
	case OPT_CERT:
		cat->cert = optarg;
		break;
	case OPT_KEY:
		cat->key = optarg;
		break;
	case OPT_CA:
		cat->ca = optarg;
		break;
	case OPT_NAME:
		cat->name = optarg;
		break;
	case OPT_MUTUAL:
		cat->mutual = true;
		break;
	case OPT_PSK_FILE:
		cat->psk_file = optarg;
		break;
	case OPT_PSK_ID:
		cat->psk_identity = optarg;
		break;
	case OPT_CIPHER:
		parse_ciphers(cat, optarg);
		break;
	case OPT_TIMEOUT:
		cat->timeout_ms = parse_seconds(optarg);
		break;
	case 'h':
		fputs(usage_text, stdout);
		exit(0);
	case 'V':
		printf("qrdma-cat %s\n", qrdma_version());
		exit(0);
	default:
		die_usage("unknown option");
	}
}

static void parse(struct cat *cat, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "lki:o:b:46pvhV", long_options, NULL)) != -1)
		parse_option(cat, c);
	argc -= optind;
	argv += optind;
	if (argc == 2) {
		cat->host = argv[0];
		cat->port = argv[1];
	} else if (argc == 1 && cat->listen) {
		cat->port = argv[0];
	} else {
		die_usage(cat->listen ? "need a PORT" : "need HOST and PORT");
	}
	if (!cat->cert != !cat->key)
		die_usage("--cert and --key go together");
	if (cat->psk_file && (cat->cert || cat->ca || cat->mutual || cat->name))
		die_usage("--psk-file stands alone: certificates are not used with it");
	if (cat->psk_identity && !cat->psk_file)
		die_usage("--psk-identity needs --psk-file");
	if (cat->listen && !cat->psk_file && !cat->cert)
		die_usage("a server needs --cert and --key, or --psk-file");
	if (cat->keep && !cat->listen)
		die_usage("--keep needs --listen");
	if (cat->in_band && cat->listen && cat->bind)
		die_usage("--bind is for the connecting end of --in-band: the listening end has its ADDRESS");
	if (!cat->name && !cat->listen)
		cat->name = cat->host;
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "qrdma-cat: %s: %s\n", what, strerror(-err));
	return err;
}

static int cat_credentials(struct cat *cat)
{
	int err;

	err = qrdma_cred_new(&cat->cred);
	if (err)
		return fail("credentials", err);
	if (cat->psk_file) {
		err = qrdma_cred_set_psk_file(cat->cred, cat->psk_file, cat->psk_identity);
		if (err == -EACCES)
			return fail("the file of keys has to be readable, and by nobody else (chmod 600)", err);
		return err ? fail(cat->psk_file, err) : 0;
	}
	if (cat->cert) {
		err = qrdma_cred_set_x509(cat->cred, cat->cert, cat->key);
		if (err)
			return fail(cat->cert, err);
	}
	if (!cat->listen || cat->mutual || cat->ca) {
		err = qrdma_cred_set_trust(cat->cred, cat->ca);
		if (err)
			return fail(cat->ca ? cat->ca : "authorities of the system", err);
	}
	return 0;
}

static int tcp_lookup(const struct cat *cat, struct addrinfo **list)
{
	struct addrinfo hints = {
		.ai_family = cat->family,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = cat->listen ? AI_PASSIVE : 0,
	};
	int err = getaddrinfo(cat->host, cat->port, &hints, list);

	if (!err)
		return 0;
	fprintf(stderr, "qrdma-cat: %s port %s: %s\n", cat->host ? cat->host : "any address", cat->port,
		gai_strerror(err));
	return -EHOSTUNREACH;
}

/* connect() that does not outlast the time-out: a silent host would hold a blocking one for minutes. */
static int tcp_connect_one(const struct addrinfo *ai, int timeout_ms)
{
	int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, ai->ai_protocol);
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen)) {
		err = errno;
		if (err == EINPROGRESS) {
			int n = poll(&pfd, 1, timeout_ms);

			if (n > 0)
				n = getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
			else
				err = n ? errno : ETIMEDOUT;
			if (n < 0)
				err = errno;
		}
	}
	if (!err && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK))
		err = errno;
	if (!err)
		return fd;
	close(fd);
	return -err;
}

static int tcp_connect(const struct cat *cat)
{
	struct addrinfo *list;
	int fd = tcp_lookup(cat, &list);

	if (fd)
		return fd;
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		fd = tcp_connect_one(ai, cat->timeout_ms);
		if (fd >= 0)
			break;
	}
	freeaddrinfo(list);
	return fd < 0 ? fail(cat->host, fd) : fd;
}

static int tcp_listen(const struct cat *cat)
{
	struct addrinfo *list;
	int one = 1;
	int err = tcp_lookup(cat, &list);
	int fd = -1;

	if (err)
		return err;
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, ai->ai_protocol);
		if (fd < 0) {
			err = -errno;
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (!bind(fd, ai->ai_addr, ai->ai_addrlen) && !listen(fd, 16))
			break;
		err = -errno;
		close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd < 0 ? fail("listening", err) : fd;
}

static void cat_info(const struct cat *cat, int sock)
{
	struct qrdma_info i;
	const char *cipher;
	int err;

	if (!cat->verbose)
		return;
	err = qrdma_get_info(sock, &i);
	if (err) {
		fail("QRDMA_INFO", err);
		return;
	}
	cipher = qrdma_cipher_name(i.cipher);
	fprintf(stderr, "QRDMA_INFO state=%s cipher=%s key_phase=%u device=%s port=%u lane=%u\n",
		qrdma_state_name(i.state), cipher ? cipher : "none", i.key_phase, i.device, i.port, i.lane);
	fprintf(stderr, "QRDMA_INFO qpn=%u peer_qpn=%u flow_label=%#x max_datagram=%u lane_resets=%u\n",
		i.local_qpn, i.remote_qpn, i.flow_label, i.max_datagram, i.lane_resets);
	fprintf(stderr,
		"QRDMA_INFO srtt_us=%" PRIu64 " min_rtt_us=%" PRIu64 " cwnd=%" PRIu64 " in_flight=%" PRIu64 "\n",
		(uint64_t)i.srtt / 1000, (uint64_t)i.min_rtt / 1000, (uint64_t)i.cwnd, (uint64_t)i.in_flight);
	fprintf(stderr, "QRDMA_INFO sent=%" PRIu64 " received=%" PRIu64 " lost=%" PRIu64 " spurious=%" PRIu64
		" opened=%" PRIu64 " failed=%" PRIu64 " dropped=%" PRIu64 "\n",
		(uint64_t)i.packets_sent, (uint64_t)i.packets_received, (uint64_t)i.packets_lost,
		(uint64_t)i.packets_spurious, (uint64_t)i.packets_opened, (uint64_t)i.packets_failed,
		(uint64_t)i.packets_dropped);
	fprintf(stderr, "QRDMA_INFO bytes_acked=%" PRIu64 " bytes_delivered=%" PRIu64 "\n",
		(uint64_t)i.bytes_acked, (uint64_t)i.bytes_delivered);
}

/* The handshake on @tcp: a connected AF_QRDMA socket or -errno, told. */
static int cat_handshake(const struct cat *cat, int tcp)
{
	struct qrdma_oob_options opt = {
		.size = sizeof(opt),
		.cred = cat->cred,
		.peer_name = cat->name,
		.require_peer_cert = cat->mutual,
		.ciphers = cat->ciphers,
		.n_ciphers = cat->n_ciphers,
		.timeout_ms = cat->timeout_ms,
	};
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *local = NULL;
	struct qrdma_reason why;
	int sock;

	if (cat->bind) {
		if (getaddrinfo(cat->bind, "0", &hints, &local))
			return fail(cat->bind, -EADDRNOTAVAIL);
		opt.local = local->ai_addr;
		opt.local_len = local->ai_addrlen;
	}
	if (cat->listen)
		sock = qrdma_oob_accept(tcp, &opt, &why);
	else
		sock = qrdma_oob_connect(tcp, &opt, &why);
	if (local)
		freeaddrinfo(local);
	if (sock < 0)
		fprintf(stderr, "qrdma-cat: %s\n", why.text);
	return sock;
}

static void cat_close_reason(int sock)
{
	struct qrdma_reason why;

	if (!qrdma_get_close_reason(sock, &why) && why.error)
		fprintf(stderr, "qrdma-cat: %s\n", why.text);
}

/* Moves the bytes and closes @sock. */
static int cat_transfer(const struct cat *cat, int sock)
{
	struct linger linger = { .l_onoff = 1, .l_linger = CLOSE_SECONDS };
	struct pump_options opt = {
		.sock = sock,
		.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.progress = cat->progress,
	};
	struct pump_result result = { 0 };
	int err = 0;

	if (cat->input)
		opt.in = open(cat->input, O_RDONLY | O_CLOEXEC);
	if (cat->output)
		opt.out = open(cat->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (opt.in < 0 || opt.out < 0)
		err = fail(opt.in < 0 ? cat->input : cat->output, -errno);
	if (!err) {
		err = pump_run(&opt, &result);
		if (err)
			cat_close_reason(sock);
	}
	cat_info(cat, opt.sock);
	if (setsockopt(opt.sock, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) && !err)
		err = fail("SO_LINGER", -errno);
	close(opt.sock);
	if (cat->input && opt.in >= 0)
		close(opt.in);
	if (cat->output && opt.out >= 0 && close(opt.out) && !err)
		err = fail(cat->output, -errno);
	return err;
}

/* The same on what TCP has joined, which is closed. */
static int cat_transfer_tcp(const struct cat *cat, int tcp)
{
	int sock = cat_handshake(cat, tcp);

	close(tcp);
	return sock < 0 ? sock : cat_transfer(cat, sock);
}

static int cat_in_band(const struct cat *cat)
{
	const struct inband_options opt = {
		.family = cat->family,
		.host = cat->host,
		.port = cat->port,
		.bind = cat->bind,
		.handshake = {
			.size = sizeof(opt.handshake),
			.cred = cat->cred,
			.peer_name = cat->name,
			.require_peer_cert = cat->mutual,
			.ciphers = cat->ciphers,
			.n_ciphers = cat->n_ciphers,
			.timeout_ms = cat->timeout_ms,
		},
	};
	int listener;
	int sock;
	int err;

	if (!cat->listen) {
		sock = inband_connect(&opt);
		return sock < 0 ? sock : cat_transfer(cat, sock);
	}
	listener = inband_listen(&opt);
	if (listener < 0)
		return listener;
	do {
		sock = inband_accept(listener, &opt);
		err = sock < 0 ? sock : cat_transfer(cat, sock);
	} while (cat->keep && (sock >= 0 || sock == -EAGAIN));
	close(listener);
	return err;
}

static int cat_serve(const struct cat *cat)
{
	int listener = tcp_listen(cat);
	int err;

	if (listener < 0)
		return listener;
	do {
		int tcp = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (tcp < 0) {
			err = errno == EINTR || errno == ECONNABORTED ? 0 : fail("accept", -errno);
			if (err)
				break;
			continue;
		}
		err = cat_transfer_tcp(cat, tcp);
	} while (cat->keep);
	close(listener);
	return err;
}

int main(int argc, char **argv)
{
	struct cat cat = { .family = AF_UNSPEC, .timeout_ms = 10000 };
	int err;

	parse(&cat, argc, argv);
	signal(SIGPIPE, SIG_IGN);
	err = cat_credentials(&cat);
	if (!err && cat.in_band) {
		err = cat_in_band(&cat);
	} else if (!err && cat.listen) {
		err = cat_serve(&cat);
	} else if (!err) {
		err = tcp_connect(&cat);
		if (err >= 0)
			err = cat_transfer_tcp(&cat, err);
	}
	qrdma_cred_free(cat.cred);
	return err ? 1 : 0;
}
