// SPDX-License-Identifier: GPL-2.0
/*
 * qrdma-ss: the sockets of AF_QRDMA in this network namespace, as ss shows those of TCP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <libmnl/libmnl.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/qrdma.h>
#include <linux/qrdma_diag.h>

#define NAMES(t)	(sizeof(t) / sizeof((t)[0]))
/* "[", address, "%", interface, "]:", port */
#define ENDPOINT_MAX	(INET6_ADDRSTRLEN + IF_NAMESIZE + 16)

/* values of "states" of a request */
enum { LISTENING = 1 << QRDMA_STATE_LISTEN };

struct options {
	uint32_t states;
	bool info;
	bool extended;
	bool headless;
};

static const char usage_text[] =
	"usage: qrdma-ss [options]\n"
	"Shows the AF_QRDMA sockets of this network namespace.\n\n"
	"  -l, --listening   only sockets that listen (default: only those that do not)\n"
	"  -a, --all         both\n"
	"  -i, --info        a second line: device, cipher, counters\n"
	"  -e, --extended    owner and inode\n"
	"  -H, --no-header   no header line\n"
	"  -h, --help        this text\n";

static const char * const state_names[] = {
	[QRDMA_STATE_INIT]		= "INIT",
	[QRDMA_STATE_CONNECTING]	= "CONNECTING",
	[QRDMA_STATE_ESTABLISHED]	= "ESTAB",
	[QRDMA_STATE_CLOSING]		= "CLOSING",
	[QRDMA_STATE_CLOSED]		= "CLOSED",
	[QRDMA_STATE_HANDSHAKE]		= "HANDSHAKE",
	[QRDMA_STATE_LISTEN]		= "LISTEN",
};

static const char * const cong_names[] = {
	[QRDMA_CONG_CUBIC]	= "cubic",
	[QRDMA_CONG_NEWRENO]	= "newreno",
};

static const char * const ecn_names[] = {
	[QRDMA_INFO_ECN_OFF]		= "off",
	[QRDMA_INFO_ECN_TESTING]	= "testing",
	[QRDMA_INFO_ECN_ON]		= "on",
	[QRDMA_INFO_ECN_FAILED]		= "failed",
};

/* A kernel that is newer than this program may have others. */
static const char *name_of(const char * const *names, size_t n, uint32_t value)
{
	return value < n && names[value] ? names[value] : "?";
}

static const char *cipher_name(uint32_t cipher)
{
	switch (cipher) {
	case QRDMA_CIPHER_AES_GCM_128:
		return "aes-128-gcm";
	case QRDMA_CIPHER_AES_GCM_256:
		return "aes-256-gcm";
	case QRDMA_CIPHER_AES_CCM_128:
		return "aes-128-ccm";
	case QRDMA_CIPHER_CHACHA20:
		return "chacha20-poly1305";
	}
	return "none";
}

/* @none: there is no peer */
static void print_endpoint(const uint8_t *addr, uint16_t port, uint32_t ifindex, bool none)
{
	bool ipv4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)addr);
	char host[INET6_ADDRSTRLEN], zone[IF_NAMESIZE + 1] = "", text[ENDPOINT_MAX] = "*:*";

	inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? addr + 12 : addr, host, sizeof(host));
	if (ifindex) {
		zone[0] = '%';
		if (!if_indextoname(ifindex, zone + 1))
			strcpy(zone + 1, "?");
	}
	if (!none)
		snprintf(text, sizeof(text), ipv4 ? "%s%s:%u" : "[%s%s]:%u", host, zone, port);
	printf(" %-26s", text);
}

static void print_info(const struct qrdma_info *info, uint32_t cong)
{
	printf("\t");
	if (info->device[0])
		printf("%.*s/%u lane:%u qp:%u-%u label:0x%05x ", (int)sizeof(info->device),
		       info->device, info->port, info->lane, info->local_qpn, info->remote_qpn,
		       info->flow_label);
	printf("%s phase:%u updates:%" PRIu64, cipher_name(info->cipher), info->key_phase,
	       (uint64_t)info->key_updates);
	printf(" %s cwnd:%" PRIu64 " flight:%" PRIu64 " rtt:%.3f/%.3f minrtt:%.3f mtu:%u ecn:%s",
	       name_of(cong_names, NAMES(cong_names), cong), (uint64_t)info->cwnd,
	       (uint64_t)info->in_flight, info->srtt / 1e6, info->rttvar / 1e6, info->min_rtt / 1e6,
	       info->max_datagram, name_of(ecn_names, NAMES(ecn_names), info->ecn));
	printf(" packets:%" PRIu64 "/%" PRIu64 " lost:%" PRIu64 " spurious:%" PRIu64,
	       (uint64_t)info->packets_sent, (uint64_t)info->packets_received,
	       (uint64_t)info->packets_lost, (uint64_t)info->packets_spurious);
	printf(" opened:%" PRIu64 " failed:%" PRIu64 " dropped:%" PRIu64,
	       (uint64_t)info->packets_opened, (uint64_t)info->packets_failed,
	       (uint64_t)info->packets_dropped);
	printf(" bytes:%" PRIu64 "/%" PRIu64 "\n", (uint64_t)info->bytes_acked,
	       (uint64_t)info->bytes_delivered);
}

static int on_attr(const struct nlattr *attr, void *data)
{
	const struct nlattr **table = data;
	uint16_t type = mnl_attr_get_type(attr);

	if (type <= QRDMA_DIAG_CONG)
		table[type] = attr;
	return MNL_CB_OK;
}

static int on_socket(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *attrs[QRDMA_DIAG_CONG + 1] = { NULL };
	const struct options *opts = data;
	const struct qrdma_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
	bool listens = msg->state == QRDMA_STATE_LISTEN;
	struct qrdma_info info;
	const struct nlattr *attr;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg) ||
	    mnl_attr_parse(nlh, sizeof(*msg), on_attr, attrs) != MNL_CB_OK) {
		errno = EPROTO;
		return MNL_CB_ERROR;
	}
	printf("%-10s %8u %8u", name_of(state_names, NAMES(state_names), msg->state), msg->rqueue,
	       msg->wqueue);
	print_endpoint(msg->local, ntohs(msg->local_port), msg->ifindex, false);
	print_endpoint(msg->remote, ntohs(msg->remote_port), 0, listens);
	if (opts->extended)
		printf(" uid:%u ino:%u", msg->uid, msg->inode);
	printf("\n");
	attr = attrs[QRDMA_DIAG_INFO];
	if (opts->info && attr) {
		/* as much of it as kernel and program both know */
		memset(&info, 0, sizeof(info));
		memcpy(&info, mnl_attr_get_payload(attr),
		       mnl_attr_get_payload_len(attr) < sizeof(info) ?
		       mnl_attr_get_payload_len(attr) : sizeof(info));
		attr = attrs[QRDMA_DIAG_CONG];
		print_info(&info, attr && !mnl_attr_validate(attr, MNL_TYPE_U32) ?
			   mnl_attr_get_u32(attr) : UINT32_MAX);
	}
	return MNL_CB_OK;
}

/* Return: 0, -1 with errno. */
static int dump(struct mnl_socket *nl, const struct options *opts)
{
	/* each message is a few hundred bytes, and as many as fit come at once */
	static char buf[32 << 10];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct qrdma_diag_req *req;
	unsigned int port = mnl_socket_get_portid(nl);
	ssize_t len;
	int rc;

	nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = 1;
	req = mnl_nlmsg_put_extra_header(nlh, sizeof(*req));
	req->family = AF_QRDMA;
	req->states = opts->states;
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -1;
	do {
		len = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		rc = len < 0 ? -1 : mnl_cb_run(buf, len, 1, port, on_socket, (void *)opts);
	} while (rc > 0);
	return rc;
}

static void parse(int argc, char **argv, struct options *opts)
{
	static const struct option table[] = {
		{ "listening", no_argument, NULL, 'l' }, { "all", no_argument, NULL, 'a' },
		{ "info", no_argument, NULL, 'i' }, { "extended", no_argument, NULL, 'e' },
		{ "no-header", no_argument, NULL, 'H' }, { "help", no_argument, NULL, 'h' }, { 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "laieHh", table, NULL)) != -1) {
		switch (c) {
		case 'l':
			opts->states = LISTENING;
			break;
		case 'a':
			opts->states = 0;
			break;
		case 'i':
			opts->info = true;
			break;
		case 'e':
			opts->extended = true;
			break;
		case 'H':
			opts->headless = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(0);
		default:
			fputs(usage_text, stderr);
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "qrdma-ss: %s: there are no filters\n%s", argv[optind], usage_text);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct options opts = { .states = ~LISTENING };
	struct mnl_socket *nl;

	parse(argc, argv, &opts);
	nl = mnl_socket_open(NETLINK_SOCK_DIAG);
	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID)) {
		fprintf(stderr, "qrdma-ss: netlink: %s\n", strerror(errno));
		return 1;
	}
	if (!opts.headless)
		printf("%-10s %8s %8s %-26s %-26s%s\n", "State", "Recv-Q", "Send-Q", "Local Address:Port",
		       "Peer Address:Port", opts.extended ? " Owner" : "");
	if (dump(nl, &opts)) {
		fprintf(stderr, "qrdma-ss: %s\n",
			errno == ENOENT ? "the module qrdma is not loaded" : strerror(errno));
		return 1;
	}
	mnl_socket_close(nl);
	return fflush(stdout) ? 1 : 0;
}
