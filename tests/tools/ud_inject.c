// SPDX-License-Identifier: GPL-2.0
/*
 * Send anything to the queue pairs of AF_QRDMA, from a queue pair of one's own: what a hostile
 * host with a RoCE card can do.
 *
 * usage: ud_inject [-q QPN] [-k QKEY] [-l LANE] SOURCE DESTINATION
 *
 * SOURCE and DESTINATION are addresses of RDMA ports. The destination's queue pairs and their key
 * are asked for as Documentation/wire.md says, with this program's own idea of that format; -q and
 * -k overrule the answer, -l takes another than the first queue pair.
 *
 * Prints "ready QPN QKEY MAX" when it can send, then obeys lines of standard input, and answers
 * each with "sent COUNT ERRORS", by what the completions say:
 *	HEX [COUNT [LENGTH]]	the message HEX, COUNT times, filled up with 0xa5 to LENGTH; "-":
 *				no bytes of its own
 *	qpn QPN			from here on to this queue pair
 *	key QKEY		from here on with this key
 *	vary AT LEN		from here on these bytes are random, in each message anew
 * Ends at the end of its input. Exit 1: something did not work, told on standard error.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define SIDR_PORT	20804
#define SIDR_MAGIC	0x5144
#define SIDR_LANES	16
#define MESSAGE_MAX	4096
#define DEPTH		64
/* for an address, a route, an answer; each is asked for again, a lost one costs the CM seconds */
#define STEP_MS		2000
#define TRIES		10

struct sidr {
	uint16_t magic;
	uint8_t version;
	uint8_t len;
	uint16_t flags;
	uint16_t max;
	uint32_t qkey;
	uint16_t reason;
	uint8_t reserved;
	uint8_t lanes;
	uint32_t qpn[SIDR_LANES];
};

struct injector {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint8_t *buf;
	uint32_t qpn;
	uint32_t qkey;
	uint32_t max;
	unsigned int lane;
	unsigned long vary_at;
	unsigned long vary_len;
};

static void die(const char *what)
{
	fprintf(stderr, "ud_inject: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void complain(const char *what)
{
	fprintf(stderr, "ud_inject: %s\n", what);
	exit(1);
}

static socklen_t address(const char *text, struct sockaddr_storage *ss, uint16_t port)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *in = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		return sizeof(*in);
	}
	if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		return sizeof(*in6);
	}
	fprintf(stderr, "ud_inject: no address: %s\n", text);
	exit(2);
}

/* The next event, which the caller acknowledges; NULL: none came in time. */
static struct rdma_cm_event *next_event(struct injector *inj)
{
	struct pollfd pfd = { .fd = inj->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&pfd, 1, STEP_MS) != 1)
		return NULL;
	if (rdma_get_cm_event(inj->channel, &event))
		die("rdma_get_cm_event");
	return event;
}

static bool expect(struct injector *inj, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *event = next_event(inj);
	bool good = event && event->event == want;

	if (event)
		rdma_ack_cm_event(event);
	return good;
}

static bool take_answer(struct injector *inj, const struct rdma_ud_param *ud)
{
	const struct sidr *sidr = ud->private_data;

	if (ud->private_data_len < sizeof(*sidr) || be16toh(sidr->magic) != SIDR_MAGIC ||
	    sidr->version != 1 || !sidr->lanes || sidr->lanes > SIDR_LANES ||
	    sidr->len != 16 + 4 * sidr->lanes)
		complain("the answer is not one of AF_QRDMA, version 1");
	if (!(be32toh(sidr->qkey) & 1U << 31))
		complain("the key is not a privileged one");
	inj->qpn = be32toh(sidr->qpn[inj->lane % sidr->lanes]);
	inj->qkey = be32toh(sidr->qkey);
	inj->max = be16toh(sidr->max);
	inj->ah = ibv_create_ah(inj->pd, (struct ibv_ah_attr *)&ud->ah_attr);
	if (!inj->ah)
		die("ibv_create_ah");
	return true;
}

static void make_qp(struct injector *inj)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};

	inj->pd = ibv_alloc_pd(inj->id->verbs);
	if (!inj->pd)
		die("ibv_alloc_pd");
	inj->cq = ibv_create_cq(inj->id->verbs, DEPTH + 1, NULL, NULL, 0);
	if (!inj->cq)
		die("ibv_create_cq");
	init.send_cq = inj->cq;
	init.recv_cq = inj->cq;
	inj->qp = ibv_create_qp(inj->pd, &init);
	if (!inj->qp)
		die("ibv_create_qp");
	inj->buf = aligned_alloc(4096, MESSAGE_MAX);
	if (!inj->buf)
		die("aligned_alloc");
	inj->mr = ibv_reg_mr(inj->pd, inj->buf, MESSAGE_MAX, 0);
	if (!inj->mr)
		die("ibv_reg_mr");
}

static void start_qp(struct injector *inj, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = inj->id->port_num,
				    .qkey = qkey };

	if (ibv_modify_qp(inj->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		die("to INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(inj->qp, &attr, IBV_QP_STATE))
		die("to RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(inj->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		die("to RTS");
}

/* Ask once. */
static bool ask(struct injector *inj, struct sockaddr_storage *src, struct sockaddr_storage *dst)
{
	struct sidr sidr = {
		.magic = htobe16(SIDR_MAGIC),
		.version = 1,
		.len = 20,
		.max = htobe16(MESSAGE_MAX - 4),
		.qkey = htobe32(1U << 31),
		.lanes = 1,
		.qpn = { htobe32(0x123456) },
	};
	struct rdma_conn_param param = { .private_data = &sidr, .private_data_len = sidr.len };
	struct rdma_cm_event *event;
	bool good;

	if (rdma_resolve_addr(inj->id, (struct sockaddr *)src, (struct sockaddr *)dst, STEP_MS / 4))
		die("rdma_resolve_addr");
	if (!expect(inj, RDMA_CM_EVENT_ADDR_RESOLVED))
		return false;
	if (rdma_resolve_route(inj->id, STEP_MS))
		die("rdma_resolve_route");
	if (!expect(inj, RDMA_CM_EVENT_ROUTE_RESOLVED))
		return false;
	if (!inj->qp)
		make_qp(inj);
	param.qp_num = inj->qp->qp_num;
	if (rdma_connect(inj->id, &param))
		die("rdma_connect");
	event = next_event(inj);
	if (!event)
		return false;
	good = event->event == RDMA_CM_EVENT_ESTABLISHED && take_answer(inj, &event->param.ud);
	rdma_ack_cm_event(event);
	return good;
}

static void find_peer(struct injector *inj, const char *from, const char *to)
{
	struct sockaddr_storage src, dst;
	struct rdma_cm_id *asked[TRIES];
	int i;

	address(from, &src, 0);
	address(to, &dst, SIDR_PORT);
	inj->channel = rdma_create_event_channel();
	if (!inj->channel)
		die("rdma_create_event_channel");
	for (i = 0; i < TRIES; i++) {
		if (rdma_create_id(inj->channel, &inj->id, NULL, RDMA_PS_UDP))
			die("rdma_create_id");
		asked[i] = inj->id;
		if (ask(inj, &src, &dst))
			break;
	}
	/* The device of the last id is in use; those that failed are not needed. */
	while (i-- > 0) {
		if (asked[i] != inj->id)
			rdma_destroy_id(asked[i]);
	}
	if (!inj->ah)
		complain("the destination does not answer");
}

/* Wait for completions until at most @left are outstanding. */
static void reap(struct injector *inj, unsigned int *outstanding, unsigned int left,
		 unsigned long *errors)
{
	struct ibv_wc wc[8];
	int i, n;

	while (*outstanding > left) {
		n = ibv_poll_cq(inj->cq, 8, wc);
		if (n < 0)
			die("ibv_poll_cq");
		if (!n)
			sched_yield();
		for (i = 0; i < n; i++)
			*errors += wc[i].status != IBV_WC_SUCCESS;
		*outstanding -= n;
	}
}

static void send_many(struct injector *inj, uint32_t len, unsigned long count)
{
	struct ibv_sge sge = { .addr = (uintptr_t)inj->buf, .length = len, .lkey = inj->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = inj->ah, .remote_qpn = inj->qpn, .remote_qkey = inj->qkey },
	};
	unsigned long i, errors = 0;
	unsigned int outstanding = 0;
	struct ibv_send_wr *bad;

	for (i = 0; i < count; i++) {
		/* There is one buffer: what was sent from it has to have left. */
		reap(inj, &outstanding, inj->vary_len ? 0 : DEPTH / 2, &errors);
		if (inj->vary_at + inj->vary_len > len)
			complain("what is to vary is not in the message");
		if (getrandom(inj->buf + inj->vary_at, inj->vary_len, 0) != (ssize_t)inj->vary_len)
			die("getrandom");
		if (ibv_post_send(inj->qp, &wr, &bad))
			die("ibv_post_send");
		outstanding++;
	}
	reap(inj, &outstanding, 0, &errors);
	printf("sent %lu %lu\n", count - errors, errors);
	fflush(stdout);
}

static uint32_t unhex(struct injector *inj, const char *hex)
{
	uint32_t len = 0;
	unsigned int byte;

	if (!strcmp(hex, "-"))
		return 0;
	for (; *hex; hex += 2, len++) {
		if (len == MESSAGE_MAX || sscanf(hex, "%2x", &byte) != 1 || !hex[1])
			complain("that is no message in hexadecimal");
		inj->buf[len] = byte;
	}
	return len;
}

static void obey(struct injector *inj, const char *line)
{
	static char word[2 * MESSAGE_MAX + 1];
	unsigned long count = 1, length = 0;
	uint32_t len;

	if (sscanf(line, "qpn %i", (int *)&inj->qpn) == 1)
		return;
	if (sscanf(line, "key %i", (int *)&inj->qkey) == 1)
		return;
	if (sscanf(line, "vary %lu %lu", &inj->vary_at, &inj->vary_len) == 2) {
		if (inj->vary_at > MESSAGE_MAX || inj->vary_len > 256)
			complain("that is too much to vary");
		return;
	}
	if (sscanf(line, "%8192s %lu %lu", word, &count, &length) < 1)
		return;
	len = unhex(inj, word);
	if (length > MESSAGE_MAX)
		complain("a message has at most 4096 bytes");
	if (length > len) {
		memset(inj->buf + len, 0xa5, length - len);
		len = length;
	}
	send_many(inj, len, count);
}

int main(int argc, char **argv)
{
	static char line[2 * MESSAGE_MAX + 64];
	struct injector inj = { 0 };
	uint32_t qpn = 0, qkey = 0;
	int opt;

	while ((opt = getopt(argc, argv, "q:k:l:")) != -1) {
		switch (opt) {
		case 'q':
			qpn = strtoul(optarg, NULL, 0);
			break;
		case 'k':
			qkey = strtoul(optarg, NULL, 0);
			break;
		case 'l':
			inj.lane = strtoul(optarg, NULL, 0);
			break;
		default:
			optind = argc;
		}
	}
	if (argc - optind != 2) {
		fputs("usage: ud_inject [-q QPN] [-k QKEY] [-l LANE] SOURCE DESTINATION\n", stderr);
		return 2;
	}
	find_peer(&inj, argv[optind], argv[optind + 1]);
	if (qpn)
		inj.qpn = qpn;
	if (qkey)
		inj.qkey = qkey;
	start_qp(&inj, inj.qkey);
	printf("ready 0x%x 0x%x %u\n", inj.qpn, inj.qkey, inj.max);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(&inj, line);
	return 0;
}
