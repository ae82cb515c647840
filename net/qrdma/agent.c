// SPDX-License-Identifier: GPL-2.0
/*
 * Handshakes for the agent. See agent.h.
 */
#include <linux/hash.h>
#include <linux/slab.h>
#include <net/netns/generic.h>

#include "agent.h"
#include "stat.h"

/* Lines of those that wait */
enum {
	AGENT_LINES_SHIFT	= 6,
	AGENT_LINES		= 1 << AGENT_LINES_SHIFT,
};

/**
 * struct agent_queue - of one network namespace
 * @lock: guards what follows, and the agents of this namespace
 * @waiting: by user and role, for one user's thousands not to keep everybody else from the agent,
 *	nor a listener's clients the programs that connect; oldest first; each is of a socket of
 *	a program here, or counts in the backlog of one
 * @turn: line that is looked at next
 * @nwaiting: of all lines
 * @ends: agents' sockets
 */
struct agent_queue {
	spinlock_t lock;	/* guards waiting .. ends, and state, node and end of an agent */
	struct list_head waiting[AGENT_LINES];
	u32 turn;
	u32 nwaiting;
	u32 ends;
};

static unsigned int agent_net_id;
static const struct qrdma_agent_ops *agent_ops;

static int __net_init agent_net_init(struct net *net)
{
	struct agent_queue *queue = net_generic(net, agent_net_id);
	int i;

	spin_lock_init(&queue->lock);
	for (i = 0; i < AGENT_LINES; i++)
		INIT_LIST_HEAD(&queue->waiting[i]);
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

static void agent_wait(struct agent_queue *queue, struct qrdma_agent *agent, bool first)
{
	u32 line = hash_32(__kuid_val(agent->uid) * 2 + (agent->role & 1), AGENT_LINES_SHIFT);

	agent_set_state(agent, QRDMA_AGENT_WAITING);
	queue->nwaiting++;
	if (first)
		list_add(&agent->node, &queue->waiting[line]);
	else
		list_add_tail(&agent->node, &queue->waiting[line]);
}

/* It waits no more, if it did. */
static void agent_unwait(struct agent_queue *queue, struct qrdma_agent *agent,
			 enum qrdma_agent_state state)
{
	if (agent->state == QRDMA_AGENT_WAITING) {
		list_del_init(&agent->node);
		queue->nwaiting--;
	}
	agent_set_state(agent, state);
}

/* Nobody heard of it. That is no proof while there is one who is busy, and has lost events. */
static int agent_absent(struct qrdma_agent *agent, bool alone)
{
	struct agent_queue *queue = agent->queue;
	bool absent;

	spin_lock_bh(&queue->lock);
	absent = alone && agent->state == QRDMA_AGENT_WAITING;
	if (absent)
		agent_unwait(queue, agent, QRDMA_AGENT_OVER);
	spin_unlock_bh(&queue->lock);
	return absent ? -ESRCH : 0;
}

int qrdma_agent_tell(struct qrdma_agent *agent)
{
	struct agent_queue *queue = agent->queue;
	bool alone, queued = false;

	spin_lock_bh(&queue->lock);
	alone = !queue->nwaiting && !queue->ends;
	if (agent->state == QRDMA_AGENT_NEW) {
		agent_wait(queue, agent, false);
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
		agent_unwait(queue, agent, QRDMA_AGENT_OVER);
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

	return READ_ONCE(queue->nwaiting);
}

/* One line after the other */
static struct qrdma_agent *agent_next(struct agent_queue *queue)
{
	struct list_head *line;
	u32 i;

	for (i = 0; i < AGENT_LINES && queue->nwaiting; i++) {
		line = &queue->waiting[queue->turn++ % AGENT_LINES];
		if (!list_empty(line))
			return list_first_entry(line, struct qrdma_agent, node);
	}
	return NULL;
}

struct qrdma_agent *qrdma_agent_take(struct net *net, struct sock *end)
{
	struct agent_queue *queue = net_generic(net, agent_net_id);
	struct qrdma_agent *agent;

	spin_lock_bh(&queue->lock);
	agent = agent_next(queue);
	if (agent) {
		agent_unwait(queue, agent, QRDMA_AGENT_TAKEN);
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
	if (again && agent->state == QRDMA_AGENT_TAKEN)
		agent_wait(queue, agent, true);
	spin_unlock_bh(&queue->lock);
	qrdma_agent_put(agent);
	sock_put(target);
}
