// SPDX-License-Identifier: GPL-2.0
/*
 * The limits: messages over a bare queue pair, UD or RC, from end a's device to end b's. As perftest
 * does it, but for two things: both sides wait for events instead of spinning, as on one CPU half of
 * what is counted would be the spinning; and the receiver gives credit, so that nothing is lost.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../selftests/ends.h"
#include "bench.h"

enum {
	DEPTH	= 512,		/* receives posted, sends outstanding */
	BATCH	= 16,		/* work requests posted with one call */
	CREDIT	= 128,		/* messages that the receiver grants at once */
	GRH	= 40,
	QKEY	= 0x11111111,
};

/* What one side tells the other */
struct address {
	union ibv_gid gid;
	uint32_t qpn;
};

struct raw {
	bool rc;
	enum side side;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *events;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	uint8_t *buf;
	size_t room;		/* bytes of the buffer for each message */
	int gid_index;
	struct address peer;
	uint64_t sent, completed, granted;
};

#define NEED(call)								\
	({									\
		typeof(call) r_ = (call);					\
										\
		if (!r_)							\
			die(#call, errno);					\
		r_;								\
	})
#define MUST(call)								\
	do {									\
		int r_ = (call);						\
										\
		if (r_)								\
			die(#call, r_ < 0 ? errno : r_);			\
	} while (0)

static struct ibv_context *device_open(const char *name)
{
	struct ibv_device **list = NEED(ibv_get_device_list(NULL));
	struct ibv_context *ctx = NULL;

	for (int i = 0; list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!ctx)
		die(name, ENODEV);
	return ctx;
}

/* The GID that is the side's IPv4 address */
static void gid_find(struct raw *r, struct address *ours)
{
	union addr addr;

	end_addr(&addr, r->side == SIDE_A ? 'a' : 'b', false, 0);
	for (r->gid_index = 0; !ibv_query_gid(r->ctx, 1, r->gid_index, &ours->gid); r->gid_index++)
		if (ours->gid.raw[10] == 0xff && ours->gid.raw[11] == 0xff &&
		    !memcmp(ours->gid.raw + 12, &addr.in.sin_addr, 4))
			return;
	die("no GID", ENODEV);
}

static void qp_to_init(struct raw *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (r->rc) {
		mask |= IBV_QP_ACCESS_FLAGS;
	} else {
		attr.qkey = QKEY;
		mask |= IBV_QP_QKEY;
	}
	MUST(ibv_modify_qp(r->qp, &attr, mask));
}

static struct ibv_ah_attr path_of(const struct raw *r)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh.dgid = r->peer.gid,
		.grh.sgid_index = r->gid_index,
		.grh.hop_limit = 64,
	};
}

static void qp_to_rts(struct raw *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask = IBV_QP_STATE;
	struct ibv_port_attr port;

	MUST(ibv_query_port(r->ctx, 1, &port));
	if (r->rc) {
		attr.ah_attr = path_of(r);
		attr.path_mtu = port.active_mtu;
		attr.dest_qp_num = r->peer.qpn;
		attr.min_rnr_timer = 12;
		attr.max_dest_rd_atomic = 1;
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	MUST(ibv_modify_qp(r->qp, &attr, mask));
	attr.qp_state = IBV_QPS_RTS;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (r->rc) {
		attr.timeout = 14;
		attr.retry_cnt = 7;
		attr.rnr_retry = 7;
		attr.max_rd_atomic = 1;
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	}
	MUST(ibv_modify_qp(r->qp, &attr, mask));
	if (!r->rc) {
		struct ibv_ah_attr path = path_of(r);

		r->ah = NEED(ibv_create_ah(r->pd, &path));
	}
}

static void raw_open(struct raw *r)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = r->rc ? IBV_QPT_RC : IBV_QPT_UD,
	};
	struct address ours;

	r->ctx = device_open(r->side == SIDE_A ? "rxe0" : "rxe1");
	r->pd = NEED(ibv_alloc_pd(r->ctx));
	r->events = NEED(ibv_create_comp_channel(r->ctx));
	r->cq = NEED(ibv_create_cq(r->ctx, 2 * DEPTH, NULL, r->events, 0));
	init.send_cq = r->cq;
	init.recv_cq = r->cq;
	r->qp = NEED(ibv_create_qp(r->pd, &init));
	r->room = opt.size + GRH;
	r->buf = NEED(calloc(DEPTH, r->room));
	r->mr = NEED(ibv_reg_mr(r->pd, r->buf, DEPTH * r->room, IBV_ACCESS_LOCAL_WRITE));
	gid_find(r, &ours);
	ours.qpn = r->qp->qp_num;
	tell_bytes(&ours, sizeof(ours));
	hear_bytes(&r->peer, sizeof(r->peer));
	qp_to_init(r);
	qp_to_rts(r);
}

static void raw_close(struct raw *r)
{
	if (r->ah)
		MUST(ibv_destroy_ah(r->ah));
	MUST(ibv_destroy_qp(r->qp));
	MUST(ibv_dereg_mr(r->mr));
	MUST(ibv_destroy_cq(r->cq));
	MUST(ibv_destroy_comp_channel(r->events));
	MUST(ibv_dealloc_pd(r->pd));
	MUST(ibv_close_device(r->ctx));
	free(r->buf);
}

static struct ibv_sge piece_of(const struct raw *r, uint64_t slot, size_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)(r->buf + slot % DEPTH * r->room),
		.length = len,
		.lkey = r->mr->lkey,
	};
}

static void post_recvs(struct raw *r, uint64_t first, uint32_t n)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	for (uint32_t i = 0; i < n; i++) {
		sge[i] = piece_of(r, first + i, r->room);
		wr[i] = (struct ibv_recv_wr){
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
		};
	}
	MUST(ibv_post_recv(r->qp, wr, &bad));
}

static void post_sends(struct raw *r, uint32_t n)
{
	struct ibv_send_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	for (uint32_t i = 0; i < n; i++) {
		sge[i] = piece_of(r, r->sent + i, opt.size);
		wr[i] = (struct ibv_send_wr){
			.wr_id = n,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = i + 1 == n ? IBV_SEND_SIGNALED : 0,
		};
		if (!r->rc) {
			wr[i].wr.ud.ah = r->ah;
			wr[i].wr.ud.remote_qpn = r->peer.qpn;
			wr[i].wr.ud.remote_qkey = QKEY;
		}
	}
	MUST(ibv_post_send(r->qp, wr, &bad));
	r->sent += n;
}

/* Completions that are there; at least one. Return: their number. */
static int wait_completions(struct raw *r, struct ibv_wc *wc, int room)
{
	struct ibv_cq *cq;
	void *arg;
	int n;

	for (;;) {
		n = ibv_poll_cq(r->cq, room, wc);
		if (n)
			break;
		MUST(ibv_req_notify_cq(r->cq, 0));
		/* one may have come before that */
		n = ibv_poll_cq(r->cq, room, wc);
		if (n)
			break;
		MUST(ibv_get_cq_event(r->events, &cq, &arg));
		ibv_ack_cq_events(cq, 1);
	}
	if (n < 0)
		die("ibv_poll_cq", EIO);
	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			die(ibv_wc_status_str(wc[i].status), EIO);
	return n;
}

static void raw_send(struct raw *r, uint64_t messages)
{
	uint64_t until = r->sent + messages;
	struct ibv_wc wc[BATCH];

	while (r->completed < until) {
		if (r->sent < until && r->sent == r->granted) {
			hear();
			r->granted += CREDIT;
		}
		while (r->sent < until && r->sent < r->granted && r->sent - r->completed < DEPTH) {
			uint64_t n = until - r->sent;

			if (n > BATCH)
				n = BATCH;
			if (n > r->granted - r->sent)
				n = r->granted - r->sent;
			post_sends(r, n);
		}
		if (r->sent < until && r->sent == r->granted)
			continue;
		for (int i = 0, n = wait_completions(r, wc, BATCH); i < n; i++)
			r->completed += wc[i].wr_id;
	}
}

static void raw_recv(struct raw *r, uint64_t messages)
{
	uint64_t until = r->completed + messages;
	struct ibv_wc wc[BATCH];

	while (r->completed < until) {
		uint64_t had = r->completed;
		int n = wait_completions(r, wc, BATCH);

		post_recvs(r, had, n);
		r->completed += n;
		if (r->completed / CREDIT != had / CREDIT)
			tell();
	}
}

/* Rounded up to whole grants of credit, and the sender starts with two of them. */
void work_raw(bool rc, enum side side)
{
	uint64_t n = (opt.total / opt.size + CREDIT - 1) / CREDIT * CREDIT;
	struct raw r = { .rc = rc, .side = side, .granted = 2 * CREDIT };

	raw_open(&r);
	if (side == SIDE_B)
		for (uint32_t i = 0; i < DEPTH; i += BATCH)
			post_recvs(&r, i, BATCH);
	meet();
	if (side == SIDE_A) {
		raw_send(&r, 2 * CREDIT);
		hear();
		hear();
		r.granted += 2 * CREDIT;
		measure_begin();
		raw_send(&r, n);
		/* the rest of the credit: all has arrived */
		while (r.granted < r.sent + 2 * CREDIT) {
			hear();
			r.granted += CREDIT;
		}
		measure_end();
		result_number("size", opt.size);
		result_number("bytes", n * opt.size);
	} else {
		raw_recv(&r, 2 * CREDIT + n);
	}
	meet();
	raw_close(&r);
}
