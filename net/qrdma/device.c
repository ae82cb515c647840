// SPDX-License-Identifier: GPL-2.0
/*
 * Devices: a port comes, changes, goes. See device.h for what is owned, who calls, which locks.
 */
#include <linux/debugfs.h>
#include <linux/inetdevice.h>
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/rwsem.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>

#include "device.h"
#include "lane_qp.h"

static unsigned int lanes;
module_param(lanes, uint, 0444);
MODULE_PARM_DESC(lanes, "lanes (queue pairs) per port; 0: one per CPU, at most 8");

static unsigned int rx_ring = 512;
module_param(rx_ring, uint, 0444);
MODULE_PARM_DESC(rx_ring, "receives posted per lane");

static unsigned int tx_ring = 256;
module_param(tx_ring, uint, 0444);
MODULE_PARM_DESC(tx_ring, "sends posted per lane");

static unsigned int rx_pool = 32;
module_param(rx_pool, uint, 0444);
MODULE_PARM_DESC(rx_pool, "memory for received messages per port, MiB; bounds the credit of all sockets");

static unsigned int tx_pool = 16;
module_param(tx_pool, uint, 0444);
MODULE_PARM_DESC(tx_pool, "memory for messages to be sent, per lane, MiB");

static unsigned int signal_every = 16;
module_param(signal_every, uint, 0444);
MODULE_PARM_DESC(signal_every, "ask for a completion of every so many sends");

static unsigned int max_inline = 256;
module_param(max_inline, uint, 0444);
MODULE_PARM_DESC(max_inline, "messages up to so many bytes go inline, where the device can do so");

static unsigned int tx_stall = 2000;
module_param(tx_stall, uint, 0444);
MODULE_PARM_DESC(tx_stall, "reset a queue pair whose sends do not complete for so long, ms");

/** enum - bits of qrdma_device.events */
enum {
	RDEV_EV_PORT,		/* state or MTU */
	RDEV_EV_GIDS,
};

/**
 * struct qrdma_gid_table - addresses of a port, as received messages need them
 * @rcu: replaced as a whole
 * @nr: number of @gid
 * @gid: address, and the net device that it belongs to
 */
struct qrdma_gid_table {
	struct rcu_head rcu;
	u32 nr;
	struct qrdma_gid {
		struct in6_addr addr;
		const struct net *net;
		int ifindex;
	} gid[];
};

static LIST_HEAD(rdev_list);
static DEFINE_SPINLOCK(rdev_lock);	/* guards rdev_list; bottom halves off */
static atomic_t rdev_count = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(rdev_none);
static const struct qrdma_verbs_ops *rdev_ops;
static const struct qrdma_device_watch *rdev_watch;
static DECLARE_RWSEM(rdev_watch_sem);	/* held while a watch is called */
static struct workqueue_struct *rdev_wq;
static struct dentry *rdev_dir;
static u32 rdev_qkey;

/* ---- references and look-up ---- */

static void rdev_release(struct kref *ref)
{
	struct qrdma_device *dev = container_of(ref, struct qrdma_device, ref);
	u32 i;

	for (i = 0; i < dev->nlanes; i++)
		qrdma_lane_free(&dev->lane[i]);
	qrdma_pool_close(dev->rx_pool);
	kfree(dev);
	if (atomic_dec_and_test(&rdev_count))
		wake_up_all(&rdev_none);
}

void qrdma_device_put(struct qrdma_device *dev)
{
	if (dev)
		kref_put(&dev->ref, rdev_release);
}

struct qrdma_device *qrdma_device_find(const struct ib_device *ibdev, u32 port)
{
	struct qrdma_device *dev, *found = NULL;

	spin_lock_bh(&rdev_lock);
	list_for_each_entry(dev, &rdev_list, list) {
		if (dev->ibdev == ibdev && (dev->port == port || !port)) {
			found = qrdma_device_get(dev);
			break;
		}
	}
	spin_unlock_bh(&rdev_lock);
	return found;
}

struct qrdma_device *qrdma_device_next(struct qrdma_device *prev)
{
	struct qrdma_device *dev = NULL;

	spin_lock_bh(&rdev_lock);
	/* A device that left the list meanwhile ends the walk. */
	if (!prev)
		dev = list_first_entry_or_null(&rdev_list, struct qrdma_device, list);
	else if (!prev->gone && !list_is_last(&prev->list, &rdev_list))
		dev = list_next_entry(prev, list);
	if (dev)
		qrdma_device_get(dev);
	spin_unlock_bh(&rdev_lock);
	qrdma_device_put(prev);
	return dev;
}

struct dentry *qrdma_device_debugfs(void)
{
	return rdev_dir;
}

/* ---- upward calls of the lanes ---- */

static void rdev_rx(struct qrdma_lane *lane, struct qrdma_rxbuf *rx)
{
	const struct qrdma_gid_table *table;
	u32 i;

	rcu_read_lock();
	table = rcu_dereference(lane->dev->gids);
	for (i = 0; table && i < table->nr; i++) {
		if (ipv6_addr_equal(&table->gid[i].addr, &rx->daddr)) {
			rx->net = table->gid[i].net;
			rx->ifindex = table->gid[i].ifindex;
			break;
		}
	}
	rcu_read_unlock();
	rdev_ops->rx(lane, rx);
}

static void rdev_tx_room(struct qrdma_lane *lane)
{
	rdev_ops->tx_room(lane);
}

static const struct qrdma_lane_ops rdev_lane_ops = {
	.rx		= rdev_rx,
	.tx_room	= rdev_tx_room,
};

/* Pool lock held, any context */
static void rdev_pool_resume(void *arg)
{
	struct qrdma_device *dev = arg;
	u32 i;

	for (i = 0; i < dev->nlanes; i++)
		qrdma_lane_kick(&dev->lane[i]);
}

static const struct qrdma_pool_ops rdev_pool_ops = {
	.resume = rdev_pool_resume,
};

/* ---- credit ---- */

static void rdev_set_capacity(struct qrdma_device *dev)
{
	struct qrdma_pool_stats pool;
	u64 spare;

	qrdma_pool_stats(dev->rx_pool, &pool);
	/* What rings and low mark need is not for credit; headers and tag take room as well. */
	spare = pool.max - pool.max / 8 - dev->nlanes * dev->rx_depth;
	atomic64_set(&dev->capacity, spare * (dev->max_msg - 64));
}

int qrdma_device_reserve(struct qrdma_device *dev, u64 bytes)
{
	if (!qrdma_device_alive(dev))
		return -ENODEV;
	if (qrdma_device_rx_low(dev))
		goto refuse;
	if (atomic64_add_return(bytes, &dev->reserved) <= atomic64_read(&dev->capacity))
		return 0;
	atomic64_sub(bytes, &dev->reserved);
refuse:
	atomic64_inc(&dev->refused);
	return -ENOBUFS;
}

void qrdma_device_unreserve(struct qrdma_device *dev, u64 bytes)
{
	atomic64_sub(bytes, &dev->reserved);
}

/* ---- what changes ---- */

/* Called by add, by the event work, and by remove when that has ended: one at a time. */
static void rdev_set_gids(struct qrdma_device *dev, struct qrdma_gid_table *table)
{
	struct qrdma_gid_table *old = rcu_replace_pointer(dev->gids, table, true);

	if (old)
		kvfree_rcu(old, rcu);
}

static void rdev_build_gids(struct qrdma_device *dev)
{
	struct qrdma_gid_table *table;
	const struct ib_gid_attr *attr;
	struct net_device *ndev;
	struct ib_port_attr port;
	u32 i;

	/* In case of an error the old one stays: at worst messages name no net device. */
	if (ib_query_port(dev->ibdev, dev->port, &port))
		return;
	table = kvzalloc(struct_size(table, gid, port.gid_tbl_len), GFP_KERNEL);
	if (!table)
		return;
	for (i = 0; i < port.gid_tbl_len; i++) {
		attr = rdma_get_gid_attr(dev->ibdev, dev->port, i);
		if (IS_ERR(attr))
			continue;
		rcu_read_lock();
		ndev = rdma_read_gid_attr_ndev_rcu(attr);
		if (!IS_ERR(ndev) && attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP) {
			memcpy(&table->gid[table->nr].addr, &attr->gid, sizeof(attr->gid));
			table->gid[table->nr].ifindex = ndev->ifindex;
			table->gid[table->nr].net = dev_net(ndev);
			table->nr++;
		}
		rcu_read_unlock();
		rdma_put_gid_attr(attr);
	}
	rdev_set_gids(dev, table);
}

static int rdev_query_port(struct qrdma_device *dev, bool *up, u32 *max_msg)
{
	struct ib_port_attr attr;
	int err = ib_query_port(dev->ibdev, dev->port, &attr);

	if (err)
		return err;
	*up = attr.state == IB_PORT_ACTIVE;
	*max_msg = min_t(u32, ib_mtu_enum_to_int(attr.active_mtu), QRDMA_UD_MAX);
	return 0;
}

static void rdev_update_port(struct qrdma_device *dev)
{
	bool up, link_changed, mtu_changed;
	u32 i, max_msg;

	if (rdev_query_port(dev, &up, &max_msg))
		return;
	link_changed = up != dev->up;
	mtu_changed = max_msg != dev->max_msg;
	WRITE_ONCE(dev->up, up);
	WRITE_ONCE(dev->max_msg, max_msg);
	for (i = 0; i < dev->nlanes; i++) {
		qrdma_lane_set_mtu(&dev->lane[i], max_msg);
		qrdma_lane_set_port(&dev->lane[i], up);
	}
	if (link_changed)
		dev->link_changes++;
	if (mtu_changed) {
		dev->mtu_changes++;
		rdev_set_capacity(dev);
	}

	down_read(&rdev_watch_sem);
	if (rdev_watch && mtu_changed)
		rdev_watch->mtu(dev);
	if (rdev_watch && link_changed)
		rdev_watch->link(dev, up);
	up_read(&rdev_watch_sem);
}

static void rdev_update_gids(struct qrdma_device *dev)
{
	dev->gid_changes++;
	rdev_build_gids(dev);

	down_read(&rdev_watch_sem);
	if (rdev_watch)
		rdev_watch->gids(dev);
	up_read(&rdev_watch_sem);
}

static void rdev_event_work(struct work_struct *work)
{
	struct qrdma_device *dev = container_of(work, struct qrdma_device, event_work);

	if (test_and_clear_bit(RDEV_EV_GIDS, &dev->events))
		rdev_update_gids(dev);
	if (test_and_clear_bit(RDEV_EV_PORT, &dev->events))
		rdev_update_port(dev);
}

/* rdev_lock is held: so nothing is queued for a device that has left the list. */
static void rdev_queue_event(struct qrdma_device *dev, int event)
{
	lockdep_assert_held(&rdev_lock);
	if (!dev->gone) {
		set_bit(event, &dev->events);
		queue_work(dev->wq, &dev->event_work);
	}
}

/* Process context (ib_core's work queue) */
static void rdev_ib_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct qrdma_device *dev = container_of(handler, struct qrdma_device, event_handler);
	int bit = RDEV_EV_PORT;
	u32 i;

	switch (event->event) {
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
		break;
	case IB_EVENT_GID_CHANGE:
		bit = RDEV_EV_GIDS;
		break;
	default:
		return;
	}
	if (event->element.port_num != dev->port)
		return;
	/* At once: each send to a dead link may cost the queue pair. */
	if (event->event == IB_EVENT_PORT_ERR)
		for (i = 0; i < dev->nlanes; i++)
			qrdma_lane_set_port(&dev->lane[i], false);
	spin_lock_bh(&rdev_lock);
	rdev_queue_event(dev, bit);
	spin_unlock_bh(&rdev_lock);
}

/* An MTU that changes is announced by the net device alone. rtnl is held. */
static int rdev_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct qrdma_device *dev;

	switch (event) {
	case NETDEV_CHANGEMTU:
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		spin_lock_bh(&rdev_lock);
		list_for_each_entry(dev, &rdev_list, list)
			rdev_queue_event(dev, RDEV_EV_PORT);
		spin_unlock_bh(&rdev_lock);
		break;
	}
	return NOTIFY_DONE;
}

/* After the drivers' own notifiers, which update what we ask for. */
static struct notifier_block rdev_netdev_nb = {
	.notifier_call	= rdev_netdev_event,
	.priority	= -100,
};

/* ---- what people see ---- */

static void rdev_sum(struct qrdma_lane_stats *sum, const struct qrdma_lane_stats *add)
{
	const u64 *from = (const u64 *)add;
	u64 *to = (u64 *)sum;
	u32 i;

	BUILD_BUG_ON(sizeof(*sum) % sizeof(u64));
	for (i = 0; i < sizeof(*sum) / sizeof(u64); i++)
		to[i] += from[i];
}

void qrdma_device_stats(struct qrdma_device *dev, struct qrdma_device_stats *stats)
{
	struct qrdma_lane_stats lane;
	u32 i;

	memset(stats, 0, sizeof(*stats));
	for (i = 0; i < dev->nlanes; i++) {
		qrdma_lane_stats(&dev->lane[i], &lane);
		rdev_sum(&stats->lanes, &lane);
	}
	qrdma_pool_stats(dev->rx_pool, &stats->rx_pool);
	stats->nlanes = dev->nlanes;
	stats->ahs = atomic_read(&dev->ahs.live);
	stats->ahs_created = atomic64_read(&dev->ahs.created);
	stats->reserved = atomic64_read(&dev->reserved);
	stats->capacity = atomic64_read(&dev->capacity);
	stats->refused = atomic64_read(&dev->refused);
	stats->mtu_changes = dev->mtu_changes;
	stats->link_changes = dev->link_changes;
	stats->gid_changes = dev->gid_changes;
}

static void rdev_show_pool(struct seq_file *seq, const char *name,
			   const struct qrdma_pool_stats *pool)
{
	seq_printf(seq, "%s out %u total %u max %u exhausted %llu nomem %llu low %llu\n", name,
		   pool->out, pool->total, pool->max, pool->exhausted, pool->nomem, pool->low);
}

static void rdev_show_lane(struct seq_file *seq, struct qrdma_lane *lane)
{
	static const char * const states[] = { "closed", "up", "resetting" };
	struct qrdma_pool_stats pool;
	struct qrdma_lane_stats st;

	qrdma_lane_stats(lane, &st);
	qrdma_pool_stats(lane->tx_pool, &pool);
	seq_printf(seq, "lane %u qpn %u state %s inline_max %u\n", lane->index, lane->qpn,
		   states[READ_ONCE(lane->state)], lane->max_inline);
	seq_printf(seq, " tx_posted %llu tx_inline %llu tx_bytes %llu tx_signaled %llu\n",
		   st.tx_posted, st.tx_inline, st.tx_bytes, st.tx_signaled);
	seq_printf(seq, " tx_errors %llu tx_oversize %llu tx_stale %llu tx_down %llu\n",
		   st.tx_errors, st.tx_oversize, st.tx_stale, st.tx_down);
	seq_printf(seq, " tx_nobuf %llu tx_again %llu tx_pending %llu tx_queued %llu\n",
		   st.tx_nobuf, st.tx_again, st.tx_pending, st.tx_queued);
	seq_printf(seq, " rx_packets %llu rx_bytes %llu rx_posted %llu rx_pauses %llu\n",
		   st.rx_packets, st.rx_bytes, st.rx_posted, st.rx_pauses);
	seq_printf(seq, " rx_runt %llu rx_nogrh %llu rx_errors %llu\n", st.rx_runt, st.rx_nogrh,
		   st.rx_errors);
	seq_printf(seq, " resets %llu relapses %llu stalls %llu forced %llu qp_events %llu\n",
		   st.resets, st.relapses, st.stalls, st.forced, st.qp_events);
	rdev_show_pool(seq, " tx_pool", &pool);
}

static int rdev_debugfs_show(struct seq_file *seq, void *unused)
{
	struct qrdma_device *dev = seq->private;
	struct qrdma_device_stats st;
	u32 i;

	qrdma_device_stats(dev, &st);
	seq_printf(seq, "device %s up %d max_datagram %u qps %u\n", dev->name, READ_ONCE(dev->up),
		   qrdma_device_max_datagram(dev), st.nlanes);
	seq_printf(seq, "ahs %u ahs_created %llu\n", st.ahs, st.ahs_created);
	seq_printf(seq, "credit reserved %llu capacity %llu refused %llu\n", st.reserved,
		   st.capacity, st.refused);
	seq_printf(seq, "changes mtu %llu link %llu gid %llu\n", st.mtu_changes, st.link_changes,
		   st.gid_changes);
	seq_printf(seq, "resets %llu sent %llu received %llu loss_events %llu\n", st.lanes.resets,
		   st.lanes.tx_posted, st.lanes.rx_packets,
		   (u64)atomic64_read(&dev->loss_events));
	rdev_show_pool(seq, "rx_pool", &st.rx_pool);
	for (i = 0; i < dev->nlanes; i++)
		rdev_show_lane(seq, &dev->lane[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rdev_debugfs);

/* ---- a port comes ---- */

static u32 rdev_lane_count(const struct ib_device *ibdev)
{
	u32 nr = lanes ? lanes : min(num_online_cpus(), 8U);

	return clamp_t(u32, nr, 1, min_t(u32, ibdev->num_comp_vectors, QRDMA_LANES_MAX));
}

/* Ring sizes that the device can do, powers of two. */
static int rdev_depths(struct qrdma_device *dev, struct qrdma_lane_config *cfg)
{
	const struct ib_device_attr *attr = &dev->ibdev->attrs;
	u32 most = min(attr->max_qp_wr, attr->max_cqe / 2);

	if (attr->max_recv_sge < 2 || most < 16)
		return -EOPNOTSUPP;
	most = rounddown_pow_of_two(most);
	cfg->tx_depth = min_t(u32, roundup_pow_of_two(clamp(tx_ring, 16U, 1U << 14)), most);
	cfg->rx_depth = min_t(u32, roundup_pow_of_two(clamp(rx_ring, 16U, 1U << 14)), most);
	return 0;
}

static int rdev_open_lanes(struct qrdma_device *dev, struct qrdma_lane_config *cfg, u32 want)
{
	struct qrdma_lane *lane;
	int err = 0;

	while (dev->nlanes < want) {
		lane = &dev->lane[dev->nlanes];
		lane->dev = dev;
		lane->index = dev->nlanes;
		cfg->vector = dev->nlanes;
		err = qrdma_lane_open(lane, cfg);
		if (err) {
			memset(lane, 0, sizeof(*lane));
			break;
		}
		dev->nlanes++;
	}
	return dev->nlanes ? 0 : err;
}

static int rdev_open(struct qrdma_device *dev)
{
	struct qrdma_lane_config cfg = {
		.ibdev = dev->ibdev,
		.port = dev->port,
		.qkey = dev->qkey,
		.wq = dev->wq,
		.ops = &rdev_lane_ops,
		.tx_bufs = clamp(tx_pool, 1U, 1024U) * (SZ_1M / PAGE_SIZE),
		.signal_every = max(signal_every, 1U),
		.max_inline = min_t(u32, max_inline, QRDMA_UD_MAX),
		.stall_ms = max(tx_stall, 100U),
	};
	u32 want = rdev_lane_count(dev->ibdev);
	u32 rings, max, i;
	int err;

	err = rdev_depths(dev, &cfg);
	if (!err)
		err = rdev_query_port(dev, &dev->up, &dev->max_msg);
	if (err)
		return err;
	dev->rx_depth = cfg.rx_depth;
	dev->pd = ib_alloc_pd(dev->ibdev, 0);
	if (IS_ERR(dev->pd))
		return PTR_ERR(dev->pd);
	qrdma_ah_domain_start(&dev->ahs, dev->pd, dev->wq);

	rings = want * cfg.rx_depth;
	max = max_t(u32, clamp(rx_pool, 1U, 16384U) * (SZ_1M / PAGE_SIZE), 2 * rings);
	dev->rx_pool = qrdma_pool_create(sizeof(struct qrdma_rxbuf), rings + max / 8 * 2, max,
					 max / 8, dev_to_node(&dev->ibdev->dev), &rdev_pool_ops,
					 dev);
	if (!dev->rx_pool) {
		err = -ENOMEM;
		goto err_pd;
	}
	cfg.pd = dev->pd;
	cfg.rx_pool = dev->rx_pool;
	cfg.max_msg = dev->max_msg;
	err = rdev_open_lanes(dev, &cfg, want);
	if (err)
		goto err_pool;
	for (i = 0; i < dev->nlanes; i++)
		qrdma_lane_set_port(&dev->lane[i], dev->up);
	rdev_set_capacity(dev);
	rdev_build_gids(dev);
	return 0;

err_pool:
	qrdma_pool_close(dev->rx_pool);
	dev->rx_pool = NULL;
err_pd:
	ib_dealloc_pd(dev->pd);
	return err;
}

static int rdev_add_port(struct ib_device *ibdev, u32 port)
{
	struct qrdma_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int err;

	if (!dev)
		return -ENOMEM;
	atomic_inc(&rdev_count);
	kref_init(&dev->ref);
	INIT_LIST_HEAD(&dev->list);
	INIT_WORK(&dev->event_work, rdev_event_work);
	dev->ibdev = ibdev;
	dev->port = port;
	dev->qkey = rdev_qkey;
	dev->wq = rdev_wq;
	snprintf(dev->name, sizeof(dev->name), "%s:%u", dev_name(&ibdev->dev), port);
	err = rdev_open(dev);
	if (err) {
		pr_warn("qrdma: %s is not used: error %d\n", dev->name, err);
		qrdma_device_put(dev);
		return err;
	}
	dev->debugfs = debugfs_create_file(dev->name, 0400, rdev_dir, dev, &rdev_debugfs_fops);

	spin_lock_bh(&rdev_lock);
	list_add_tail(&dev->list, &rdev_list);
	spin_unlock_bh(&rdev_lock);
	INIT_IB_EVENT_HANDLER(&dev->event_handler, ibdev, rdev_ib_event);
	ib_register_event_handler(&dev->event_handler);

	/* What happened before the handler was there */
	spin_lock_bh(&rdev_lock);
	rdev_queue_event(dev, RDEV_EV_PORT);
	rdev_queue_event(dev, RDEV_EV_GIDS);
	spin_unlock_bh(&rdev_lock);
	return 0;
}

/* ---- a port goes ---- */

/*
 * 1. Off the list, and marked: no event is queued for it, nobody finds it any more.
 * 2. No event handler and no event work runs any more.
 * 3. peer.c drops all paths and cm_ids: no address handle is made any more, those that exist are
 *    revoked, so nothing new is posted with them. Users are told, in their own time.
 * 4. The receive pool makes no upward call any more.
 * 5. Lanes are closed: whatever was posted or queued is given back; no upward call any more.
 * 6. So all uses of address handles have ended: wait for the worker that destroys them.
 * 7. Nothing of this port is left in the protection domain.
 * 8. The list's reference is dropped. Sockets may hold others for as long as they like: lanes say
 *    -ENODEV, buffers go back to pools that live as long as the buffers do.
 */
static void rdev_remove_port(struct qrdma_device *dev)
{
	u32 i;

	spin_lock_bh(&rdev_lock);
	list_del_init(&dev->list);
	WRITE_ONCE(dev->gone, true);
	spin_unlock_bh(&rdev_lock);

	ib_unregister_event_handler(&dev->event_handler);
	cancel_work_sync(&dev->event_work);

	down_read(&rdev_watch_sem);
	if (rdev_watch)
		rdev_watch->gone(dev);
	up_read(&rdev_watch_sem);

	qrdma_pool_retire(dev->rx_pool);
	for (i = 0; i < dev->nlanes; i++)
		qrdma_lane_close(&dev->lane[i]);

	qrdma_ah_domain_stop(&dev->ahs);
	ib_dealloc_pd(dev->pd);

	debugfs_remove(dev->debugfs);
	rdev_set_gids(dev, NULL);
	qrdma_device_put(dev);
}

static int rdev_add(struct ib_device *ibdev)
{
	int err = -EOPNOTSUPP;
	bool some = false;
	u32 port;

	rdma_for_each_port(ibdev, port) {
		/* UD messages with a GRH of IP, and a CM that resolves IP addresses by SIDR */
		if (!rdma_protocol_roce_udp_encap(ibdev, port) || !rdma_cap_ib_cm(ibdev, port))
			continue;
		err = rdev_add_port(ibdev, port);
		some |= !err;
	}
	return some ? 0 : err;
}

static void rdev_remove(struct ib_device *ibdev, void *data)
{
	struct qrdma_device *dev;

	/* Removal of one ib_device is not concurrent with itself. */
	while ((dev = qrdma_device_find(ibdev, 0))) {
		rdev_remove_port(dev);
		qrdma_device_put(dev);
	}
}

static struct ib_client rdev_client = {
	.name	= "qrdma",
	.add	= rdev_add,
	.remove	= rdev_remove,
};

void qrdma_device_set_watch(const struct qrdma_device_watch *watch)
{
	down_write(&rdev_watch_sem);
	rdev_watch = watch;
	up_write(&rdev_watch_sem);
}

int qrdma_device_start(const struct qrdma_verbs_ops *ops)
{
	int err;

	rdev_ops = ops;
	/* Privileged: the high bit. One per load, so packets for an earlier load get nowhere. */
	rdev_qkey = get_random_u32() | BIT(31);
	rdev_wq = alloc_workqueue("qrdma", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	if (!rdev_wq)
		return -ENOMEM;
	rdev_dir = debugfs_create_dir("qrdma", NULL);
	err = register_netdevice_notifier(&rdev_netdev_nb);
	if (err)
		goto err_wq;
	err = ib_register_client(&rdev_client);
	if (err)
		goto err_notifier;
	return 0;

err_notifier:
	unregister_netdevice_notifier(&rdev_netdev_nb);
err_wq:
	debugfs_remove_recursive(rdev_dir);
	destroy_workqueue(rdev_wq);
	return err;
}

void qrdma_device_stop(void)
{
	ib_unregister_client(&rdev_client);
	unregister_netdevice_notifier(&rdev_netdev_nb);
	while (!wait_event_timeout(rdev_none, !atomic_read(&rdev_count), 10 * HZ))
		pr_err("qrdma: waiting for the users of %d ports\n", atomic_read(&rdev_count));
	qrdma_pool_wait_all();
	debugfs_remove_recursive(rdev_dir);
	destroy_workqueue(rdev_wq);
}
