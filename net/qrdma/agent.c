// SPDX-License-Identifier: GPL-2.0
/*
 * Handshakes for the agent. See agent.h.
 */
#include <linux/slab.h>
#include <net/netns/generic.h>

#include "agent.h"
#include "stat.h"

/**
 * struct agent_queue - of one network namespace
 * @lock: guards what follows, and the agents of this namespace
 * @waiting: oldest first; each is of a socket of a program here, or counts in the backlog of one
 * @ends: agents' sockets
 */
struct agent_queue {
	spinlock_t lock;	/* guards waiting .. ends, and state, node and end of an agent */
	struct list_head waiting;
	u32 ends;
};

static unsigned int agent_net_id;
static const struct qrdma_agent_ops *agent_ops;

static int __net_init agent_net_init(struct net *net)
{
	struct agent_queue *queue = net_generic(net, agent_net_id);

	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->waiting);
	return 0;
}

static struct pernet_operations agent_net_ops = {
	.init	= agent_net_init,
	.id	= &agent_net_id,
	.size	= sizeof(struct agent_queue),
};

int qrdma_agent_start(const struct qrdma_agent_ops *ops)
{
	agent_ops = ops;
	return register_pernet_subsys(&agent_net_ops);
}

void qrdma_agent_stop(void)
{
	unregister_pernet_subsys(&agent_net_ops);
}

bool qrdma_agent_present(struct net *net)
{
	return agent_ops->present(net);
}

struct qrdma_agent *qrdma_agent_new(struct sock *target)
{
	struct qrdma_agent *agent = kzalloc(sizeof(*agent), GFP_KERNEL_ACCOUNT);

	if (!agent)
		return NULL;
	refcount_set(&agent->refs, 1);
	agent->queue = net_generic(sock_net(target), agent_net_id);
	INIT_LIST_HEAD(&agent->node);
	agent->target = target;
	return agent;
}

void qrdma_agent_put(struct qrdma_agent *agent)
{
	if (agent && refcount_dec_and_test(&agent->refs))
		kfree(agent);
}

static void agent_set_state(struct qrdma_agent *agent, enum qrdma_agent_state state)
{
	lockdep_assert_held(&agent->queue->lock);
	WRITE_ONCE(agent->state, state);
}

/* Nobody heard of it. That is no proof while there is one who is busy, and has lost events. */
static int agent_absent(struct qrdma_agent *agent, bool alone)
{
	struct agent_queue *queue = agent->queue;
	bool absent;

	spin_lock_bh(&queue->lock);
	absent = alone && agent->state == QRDMA_AGENT_WAITING;
	if (absent) {
		list_del_init(&agent->node);
		agent_set_state(agent, QRDMA_AGENT_OVER);
	}
	spin_unlock_bh(&queue->lock);
	return absent ? -ESRCH : 0;
}

int qrdma_agent_tell(struct qrdma_agent *agent)
{
	struct agent_queue *queue = agent->queue;
	bool alone, queued = false;

	spin_lock_bh(&queue->lock);
	alone = list_empty(&queue->waiting) && !queue->ends;
	if (agent->state == QRDMA_AGENT_NEW) {
		list_add_tail(&agent->node, &queue->waiting);
		agent_set_state(agent, QRDMA_AGENT_WAITING);
		queued = true;
	} else if (agent->end) {
		agent->end->sk_data_ready(agent->end);
	}
	spin_unlock_bh(&queue->lock);
	if (!queued)
		return 0;
	qrdma_stat_inc(QRDMA_STAT_AGENT_ASKED);
	if (agent_ops->ready(sock_net(agent->target)) != -ESRCH)
		return 0;
	return agent_absent(agent, alone);
}

void qrdma_agent_over(struct qrdma_agent *agent, int err)
{
	struct agent_queue *queue = agent->queue;
	struct sock *end;

	spin_lock_bh(&queue->lock);
	if (agent->state != QRDMA_AGENT_OVER) {
		list_del_init(&agent->node);
		agent_set_state(agent, QRDMA_AGENT_OVER);
		end = agent->end;
		if (end) {
			WRITE_ONCE(end->sk_err, err);
			end->sk_state_change(end);
		}
	}
	spin_unlock_bh(&queue->lock);
}

bool qrdma_agent_waits(struct net *net)
{
	struct agent_queue *queue = net_generic(net, agent_net_id);

	return !list_empty_careful(&queue->waiting);
}

struct qrdma_agent *qrdma_agent_take(struct net *net, struct sock *end)
{
	struct agent_queue *queue = net_generic(net, agent_net_id);
	struct qrdma_agent *agent;

	spin_lock_bh(&queue->lock);
	agent = list_first_entry_or_null(&queue->waiting, struct qrdma_agent, node);
	if (agent) {
		list_del_init(&agent->node);
		agent_set_state(agent, QRDMA_AGENT_TAKEN);
		agent->end = end;
		queue->ends++;
		refcount_inc(&agent->refs);
		sock_hold(agent->target);
	}
	spin_unlock_bh(&queue->lock);
	return agent;
}

void qrdma_agent_leave(struct qrdma_agent *agent, bool again)
{
	struct agent_queue *queue = agent->queue;
	struct sock *target = agent->target;

	spin_lock_bh(&queue->lock);
	agent->end = NULL;
	queue->ends--;
	if (again && agent->state == QRDMA_AGENT_TAKEN) {
		list_add(&agent->node, &queue->waiting);
		agent_set_state(agent, QRDMA_AGENT_WAITING);
	}
	spin_unlock_bh(&queue->lock);
	qrdma_agent_put(agent);
	sock_put(target);
}
