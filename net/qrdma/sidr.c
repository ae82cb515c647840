// SPDX-License-Identifier: GPL-2.0
/*
 * SIDR: one request, and the service that answers requests. See sidr.h.
 */
#include <linux/atomic.h>
#include <linux/etherdevice.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>

#include "core/header.h"
#include "sidr.h"

static ushort service_port = QRDMA_SIDR_PORT;
module_param(service_port, ushort, 0444);
MODULE_PARM_DESC(service_port, "port of the address resolution service; the same on all hosts");

/** enum - milliseconds */
enum {
	SIDR_ADDR_MS	= 50,	/* for the neighbour; see qrdma_sidr_ask() */
	SIDR_ROUTE_MS	= 200,
	SIDR_CM_MS	= 4000,	/* the CM finds no answer missing before this */
};

/**
 * struct sidr_service - a served namespace
 * @list: in sidr_services
 * @net: namespace; the cm_id holds it
 * @id: listens
 * @users: sockets; at 0 it goes
 */
struct sidr_service {
	struct list_head list;
	struct net *net;
	struct rdma_cm_id *id;
	u32 users;
};

static LIST_HEAD(sidr_services);
static DEFINE_SPINLOCK(sidr_lock);	/* guards the list and users; bottom halves off */
static DEFINE_MUTEX(sidr_mutex);	/* held while a service is made or destroyed */

static struct {
	atomic64_t asked;
	atomic64_t answered;
	atomic64_t bad_reply;
	atomic64_t served;
	atomic64_t rejected;
} sidr_count;

/* ---- private data ---- */

u32 qrdma_sidr_build(struct qrdma_sidr *sidr, const struct qrdma_sidr_info *info)
{
	u32 nlanes = min_t(u32, info->nlanes, QRDMA_SIDR_LANES);
	u32 len = offsetof(struct qrdma_sidr, qpn[nlanes]);
	u32 i;

	memset(sidr, 0, sizeof(*sidr));
	sidr->magic = cpu_to_be16(QRDMA_SIDR_MAGIC);
	sidr->version = QRDMA_SIDR_VERSION;
	sidr->len = len;
	sidr->max_datagram = cpu_to_be16(info->max_datagram);
	sidr->qkey = cpu_to_be32(info->qkey);
	sidr->reason = cpu_to_be16(info->reason);
	sidr->nlanes = nlanes;
	for (i = 0; i < nlanes; i++)
		sidr->qpn[i] = cpu_to_be32(info->qpn[i]);
	return len;
}

/* Whoever adds fields later adds them behind the lanes, so longer ones are fine. */
int qrdma_sidr_parse(const void *data, u32 size, struct qrdma_sidr_info *info)
{
	struct qrdma_sidr sidr = {};
	u32 i;

	memset(info, 0, sizeof(*info));
	if (!data || size < offsetof(struct qrdma_sidr, qpn))
		return -EPROTO;
	memcpy(&sidr, data, min_t(u32, size, sizeof(sidr)));
	if (be16_to_cpu(sidr.magic) != QRDMA_SIDR_MAGIC)
		return -EPROTO;
	if (sidr.version != QRDMA_SIDR_VERSION)
		return -EPROTONOSUPPORT;
	if (sidr.len > size || sidr.nlanes > QRDMA_SIDR_LANES ||
	    sidr.len < offsetof(struct qrdma_sidr, qpn[sidr.nlanes]))
		return -EPROTO;

	info->reason = be16_to_cpu(sidr.reason);
	if (info->reason)
		return 0;
	info->max_datagram = be16_to_cpu(sidr.max_datagram);
	info->qkey = be32_to_cpu(sidr.qkey);
	info->nlanes = sidr.nlanes;
	/* The smallest IB MTU is 256 bytes; the high bit says that the key is a privileged one. */
	if (!info->nlanes || info->max_datagram < 256 - QRDMA_PORT_HDR_LEN ||
	    info->max_datagram > QRDMA_UD_MAX - QRDMA_PORT_HDR_LEN || !(info->qkey & BIT(31)))
		return -EPROTO;
	for (i = 0; i < info->nlanes; i++) {
		info->qpn[i] = be32_to_cpu(sidr.qpn[i]);
		/* 24 bits, and not the two that management uses */
		if (info->qpn[i] < 2 || info->qpn[i] >> 24)
			return -EPROTO;
	}
	return 0;
}

static int sidr_reject_errno(const void *data, u32 size)
{
	struct qrdma_sidr_info info;
	int err = qrdma_sidr_parse(data, size, &info);

	if (err)
		return err;
	switch (info.reason) {
	case QRDMA_SIDR_FORMAT:
		return -EPROTONOSUPPORT;
	case QRDMA_SIDR_NO_PORT:
		return -EHOSTDOWN;
	default:
		return -ECONNREFUSED;
	}
}

int qrdma_sidr_errno(enum rdma_cm_event_type event, int status, const void *data, u32 size)
{
	switch (event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		if (status == -ENODEV)
			return -EADDRNOTAVAIL;
		if (status >= 0 || status == -ETIMEDOUT)
			return -EHOSTUNREACH;
		return status;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	case RDMA_CM_EVENT_UNREACHABLE:
		break;
	default:
		return status < 0 ? status : -EPROTO;
	}

	switch (status) {
	case IB_SIDR_UNSUPPORTED:
		return -ECONNREFUSED;
	case IB_SIDR_REJECT:
		return sidr_reject_errno(data, size);
	case IB_SIDR_NO_QP:
		return -EHOSTDOWN;
	case IB_SIDR_UNSUPPORTED_VERSION:
		return -EPROTONOSUPPORT;
	default:
		return status < 0 ? status : -EPROTO;
	}
}

static void sidr_describe(const struct qrdma_device *dev, struct qrdma_sidr_info *info)
{
	u32 i;

	memset(info, 0, sizeof(*info));
	info->max_datagram = qrdma_device_max_datagram(dev);
	info->qkey = dev->qkey;
	info->nlanes = dev->nlanes;
	for (i = 0; i < dev->nlanes; i++)
		info->qpn[i] = dev->lane[i].qpn;
}

/* ---- addresses ---- */

static void sidr_to_sockaddr(const struct in6_addr *addr, int ifindex, u16 port,
			     struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *in = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (ipv6_addr_v4mapped(addr)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		in->sin_addr.s_addr = addr->s6_addr32[3];
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		in6->sin6_addr = *addr;
		if (ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL)
			in6->sin6_scope_id = ifindex;
	}
}

static void sidr_from_sockaddr(const struct sockaddr_storage *ss, struct in6_addr *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;

	if (ss->ss_family == AF_INET)
		ipv6_addr_set_v4mapped(in->sin_addr.s_addr, addr);
	else
		*addr = in6->sin6_addr;
}

/* ---- one request ---- */

static int sidr_connect(struct qrdma_sidr_try *try, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {};
	struct qrdma_sidr_info info;
	struct qrdma_device *dev;
	struct qrdma_sidr sidr;

	dev = qrdma_device_find(id->device, id->port_num);
	if (!dev)
		return -EADDRNOTAVAIL;
	WRITE_ONCE(try->dev, dev);
	sidr_describe(dev, &info);
	if (info.max_datagram < QRDMA_DATAGRAM_MIN)
		return -EMSGSIZE;
	param.private_data = &sidr;
	param.private_data_len = qrdma_sidr_build(&sidr, &info);
	try->sent_ns = ktime_get_ns();
	try->sent = true;
	atomic64_inc(&sidr_count.asked);
	return rdma_connect_locked(id, &param);
}

static int sidr_check_path(struct qrdma_sidr_try *try, const struct rdma_ah_attr *attr)
{
	struct net_device *ndev;
	int err = 0;

	if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) || attr->type != RDMA_AH_ATTR_TYPE_ROCE ||
	    !attr->grh.sgid_attr || attr->grh.sgid_attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EPROTONOSUPPORT;
	if (is_zero_ether_addr(attr->roce.dmac))
		return -EHOSTUNREACH;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr->grh.sgid_attr);
	if (IS_ERR(ndev) || !net_eq(dev_net(ndev), try->key.net))
		err = -EADDRNOTAVAIL;
	else
		try->ifindex = ndev->ifindex;
	rcu_read_unlock();
	return err;
}

static int sidr_answer(struct qrdma_sidr_try *try, struct rdma_cm_id *id,
		       const struct rdma_ud_param *ud)
{
	int err;

	try->rtt_ns = ktime_get_ns() - try->sent_ns;
	err = qrdma_sidr_parse(ud->private_data, ud->private_data_len, &try->info);
	if (!err && !try->info.nlanes)
		err = -EPROTO;
	if (err) {
		atomic64_inc(&sidr_count.bad_reply);
		return err;
	}
	if (try->info.max_datagram < QRDMA_DATAGRAM_MIN)
		return -EMSGSIZE;
	err = sidr_check_path(try, &ud->ah_attr);
	if (err)
		return err;
	sidr_from_sockaddr(&id->route.addr.src_addr, &try->local);
	rdma_copy_ah_attr(&try->attr, &ud->ah_attr);
	atomic64_inc(&sidr_count.answered);
	return 0;
}

static int sidr_event_errno(const struct qrdma_sidr_try *try, const struct rdma_cm_event *event)
{
	int err = qrdma_sidr_errno(event->event, event->status, event->param.ud.private_data,
				   event->param.ud.private_data_len);

	/* The CM says so too when it cannot send, but then it says so at once. */
	if (event->event == RDMA_CM_EVENT_UNREACHABLE && err == -ETIMEDOUT &&
	    ktime_get_ns() - try->sent_ns < (u64)SIDR_CM_MS * NSEC_PER_MSEC)
		return -ENETDOWN;
	return err;
}

/* Kworker, with the handler lock of the id. Never destroys the id: its owner does. */
static int sidr_try_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct qrdma_sidr_try *try = id->context;
	int err;

	if (try->finished)
		return 0;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = rdma_resolve_route(id, SIDR_ROUTE_MS);
		if (!err)
			return 0;
		err = qrdma_sidr_errno(RDMA_CM_EVENT_ROUTE_ERROR, err, NULL, 0);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = sidr_connect(try, id);
		if (!err)
			return 0;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		err = sidr_answer(try, id, &event->param.ud);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return 0;
	default:
		err = sidr_event_errno(try, event);
		break;
	}
	try->finished = true;
	try->err = err;
	try->done(try);
	return 0;
}

struct qrdma_sidr_try *qrdma_sidr_ask(const struct qrdma_sidr_key *key,
				      void (*done)(struct qrdma_sidr_try *try), void *arg)
{
	struct qrdma_sidr_try *try = kzalloc(sizeof(*try), GFP_KERNEL);
	struct sockaddr_storage local, remote;
	int err;

	if (!try)
		return ERR_PTR(-ENOMEM);
	try->key = *key;
	try->done = done;
	try->arg = arg;
	try->id = rdma_create_id(key->net, sidr_try_event, try, RDMA_PS_UDP, IB_QPT_UD);
	if (IS_ERR(try->id)) {
		err = PTR_ERR(try->id);
		goto err_free;
	}
	try->id->route.addr.dev_addr.bound_dev_if = key->ifindex;
	sidr_to_sockaddr(&key->local, key->ifindex, 0, &local);
	sidr_to_sockaddr(&key->remote, key->ifindex, service_port, &remote);
	err = rdma_resolve_addr(try->id,
				qrdma_sidr_any(&key->local) ? NULL : (struct sockaddr *)&local,
				(struct sockaddr *)&remote, SIDR_ADDR_MS);
	if (err) {
		err = qrdma_sidr_errno(RDMA_CM_EVENT_ADDR_ERROR, err, NULL, 0);
		goto err_id;
	}
	return try;

err_id:
	rdma_destroy_id(try->id);
err_free:
	kfree(try);
	return ERR_PTR(err);
}

void qrdma_sidr_destroy(struct qrdma_sidr_try *try)
{
	/* Waits for a handler that is running. */
	rdma_destroy_id(try->id);
	rdma_destroy_ah_attr(&try->attr);
	qrdma_device_put(try->dev);
	kfree(try);
}

/* ---- the service ---- */

static int sidr_serve_reject(struct rdma_cm_id *id, enum qrdma_sidr_reason reason)
{
	struct qrdma_sidr_info info = { .reason = reason };
	struct qrdma_sidr sidr;
	u32 len = qrdma_sidr_build(&sidr, &info);

	atomic64_inc(&sidr_count.rejected);
	return rdma_reject(id, &sidr, len, IB_CM_REJ_CONSUMER_DEFINED);
}

static void sidr_serve_request(struct rdma_cm_id *id, const struct rdma_ud_param *ud)
{
	struct rdma_conn_param param = {};
	struct qrdma_sidr_info info;
	struct qrdma_device *dev;
	struct qrdma_sidr sidr;

	if (qrdma_sidr_parse(ud->private_data, ud->private_data_len, &info) || !info.nlanes) {
		sidr_serve_reject(id, QRDMA_SIDR_FORMAT);
		return;
	}
	dev = qrdma_device_find(id->device, id->port_num);
	if (!dev) {
		sidr_serve_reject(id, QRDMA_SIDR_NO_PORT);
		return;
	}
	sidr_describe(dev, &info);
	param.private_data = &sidr;
	param.private_data_len = qrdma_sidr_build(&sidr, &info);
	param.qp_num = info.qpn[0];
	param.qkey = info.qkey;
	atomic64_inc(&sidr_count.served);
	rdma_accept(id, &param);
	qrdma_device_put(dev);
}

/* Kworker. The id of a request is destroyed by what we return. */
static int sidr_service_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	sidr_serve_request(id, &event->param.ud);
	return 1;
}

/* One id for both families. */
static struct rdma_cm_id *sidr_listen(struct net *net)
{
	struct sockaddr_storage any;
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(net, sidr_service_event, NULL, RDMA_PS_UDP, IB_QPT_UD);
	if (IS_ERR(id))
		return id;
	sidr_to_sockaddr(&in6addr_any, 0, service_port, &any);
	err = rdma_set_afonly(id, 0);
	if (!err)
		err = rdma_bind_addr(id, (struct sockaddr *)&any);
	if (!err)
		err = rdma_listen(id, 0);
	if (err) {
		rdma_destroy_id(id);
		return ERR_PTR(err);
	}
	return id;
}

static struct sidr_service *sidr_find(const struct net *net)
{
	struct sidr_service *service;

	lockdep_assert_held(&sidr_lock);
	list_for_each_entry(service, &sidr_services, list)
		if (net_eq(service->net, net))
			return service;
	return NULL;
}

static bool sidr_serve_again(struct net *net)
{
	struct sidr_service *service;

	spin_lock_bh(&sidr_lock);
	service = sidr_find(net);
	if (service)
		service->users++;
	spin_unlock_bh(&sidr_lock);
	return service;
}

int qrdma_sidr_serve(struct net *net)
{
	struct sidr_service *service;
	int err = 0;

	if (sidr_serve_again(net))
		return 0;
	mutex_lock(&sidr_mutex);
	if (sidr_serve_again(net))
		goto out;
	service = kzalloc(sizeof(*service), GFP_KERNEL);
	if (!service) {
		err = -ENOMEM;
		goto out;
	}
	service->net = net;
	service->users = 1;
	service->id = sidr_listen(net);
	if (IS_ERR(service->id)) {
		err = PTR_ERR(service->id);
		kfree(service);
		goto out;
	}
	spin_lock_bh(&sidr_lock);
	list_add(&service->list, &sidr_services);
	spin_unlock_bh(&sidr_lock);
out:
	mutex_unlock(&sidr_mutex);
	return err;
}

/* Services that nobody needs any more */
static void sidr_reap(struct work_struct *work)
{
	struct sidr_service *service, *next;
	LIST_HEAD(dead);

	mutex_lock(&sidr_mutex);
	spin_lock_bh(&sidr_lock);
	list_for_each_entry_safe(service, next, &sidr_services, list)
		if (!service->users)
			list_move(&service->list, &dead);
	spin_unlock_bh(&sidr_lock);
	list_for_each_entry_safe(service, next, &dead, list) {
		rdma_destroy_id(service->id);
		kfree(service);
	}
	mutex_unlock(&sidr_mutex);
}

static DECLARE_WORK(sidr_reap_work, sidr_reap);

void qrdma_sidr_unserve(struct net *net)
{
	struct sidr_service *service;

	spin_lock_bh(&sidr_lock);
	service = sidr_find(net);
	if (!WARN_ON_ONCE(!service) && !--service->users)
		schedule_work(&sidr_reap_work);
	spin_unlock_bh(&sidr_lock);
}

int qrdma_sidr_start(void)
{
	int err = qrdma_sidr_serve(&init_net);

	if (err)
		pr_err("qrdma: cannot listen on port %u: error %d\n", service_port, err);
	return err;
}

void qrdma_sidr_stop(void)
{
	qrdma_sidr_unserve(&init_net);
	flush_work(&sidr_reap_work);
	WARN_ON(!list_empty(&sidr_services));
}

void qrdma_sidr_stats(struct qrdma_sidr_stats *stats)
{
	stats->asked = atomic64_read(&sidr_count.asked);
	stats->answered = atomic64_read(&sidr_count.answered);
	stats->bad_reply = atomic64_read(&sidr_count.bad_reply);
	stats->served = atomic64_read(&sidr_count.served);
	stats->rejected = atomic64_read(&sidr_count.rejected);
}
