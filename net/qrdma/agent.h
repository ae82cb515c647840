/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Handshakes for the agent: those that wait for it, and those that it has (linux/qrdma_genl.h).
 *
 * Owns: a queue for each network namespace; struct qrdma_agent. Called by: inband.c and sock.c for
 * the socket whose handshake it is, its *target* (any context, lock of the target); agent_end.c for
 * the agent (process context). Nothing here looks into a socket.
 *
 * struct qrdma_agent
 *	found by:	struct qrdma_inband of the target; the queue; the agent's end
 *	owned by:	target and agent's end, by a reference each. The target leaves first,
 *			by qrdma_agent_over(), or the end does, by qrdma_agent_leave(). While there
 *			is an end it has a reference to the target; the queue has none: who is in
 *			it has a target that takes it out.
 *	dies when:	both have gone
 *	protected by:	the lock of its queue, taken in any context; a socket lock is taken before,
 *			wait queues of sockets within
 */
#ifndef QRDMA_AGENT_H
#define QRDMA_AGENT_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/uidgid.h>
#include <net/net_namespace.h>
#include <net/sock.h>

/**
 * struct qrdma_agent_ops - how agents are reached (genlink.c); any context
 * @present: may there be one? No agent of this namespace is missed; one of another may be found
 * @ready: tell the agents of a namespace that a handshake waits. Return: 0; -ESRCH: nobody heard
 */
struct qrdma_agent_ops {
	bool (*present)(struct net *net);
	int (*ready)(struct net *net);
};

/**
 * enum qrdma_agent_state - whose turn it is
 * @QRDMA_AGENT_NEW: the target's: there is nothing to be done yet
 * @QRDMA_AGENT_WAITING: in the queue
 * @QRDMA_AGENT_TAKEN: the agent's
 * @QRDMA_AGENT_OVER: nobody's: the target has ended, or has no agent
 */
enum qrdma_agent_state {
	QRDMA_AGENT_NEW,
	QRDMA_AGENT_WAITING,
	QRDMA_AGENT_TAKEN,
	QRDMA_AGENT_OVER,
};

/**
 * struct qrdma_agent - a handshake that is not the program's own affair
 * @refs: see above
 * @queue: of its namespace; there as long as target or end are
 * @node: in the queue
 * @target: the socket; referenced while there is an end
 * @end: the agent's socket, NULL: none
 * @state: changes to QRDMA_AGENT_OVER under the target's lock
 * @left: the end has gone; set before the target is told
 * @stuck: the target kept its lock from the agent for too long
 * @attempt: @attempt of the target; this and the following are set by inband.c before anybody else
 *	knows this
 * @role: QRDMA_ROLE_* of the target
 * @uid: owner of the target
 * @until: time at which the attempt is given up, of qrdma_sock_now()
 */
struct qrdma_agent {
	refcount_t refs;
	struct agent_queue *queue;
	struct list_head node;
	struct sock *target;
	struct sock *end;
	enum qrdma_agent_state state;
	bool left;
	bool stuck;
	u32 attempt;
	u32 role;
	kuid_t uid;
	u64 until;
};

/** qrdma_agent_start() - Return: 0 or a negative errno. @ops is there until qrdma_agent_stop(). */
int qrdma_agent_start(const struct qrdma_agent_ops *ops);

/** qrdma_agent_stop() - no socket is left */
void qrdma_agent_stop(void);

/** qrdma_agent_present() - is it worth while to begin? See struct qrdma_agent_ops. */
bool qrdma_agent_present(struct net *net);

/** qrdma_agent_new() - for @target. Context: process. Return: with a reference; NULL: no memory. */
struct qrdma_agent *qrdma_agent_new(struct sock *target);

/**
 * qrdma_agent_tell() - there is something to be done: queue it, or wake who has it
 * @agent: target locked; described by inband.c
 *
 * Return: 0; -ESRCH: there is no agent, and it is QRDMA_AGENT_OVER now.
 */
int qrdma_agent_tell(struct qrdma_agent *agent);

/**
 * qrdma_agent_over() - the target has ended: who has it is told, who waits for it misses it
 * @agent: target locked
 * @err: the target's error, positive; 0: none
 *
 * Harmless when it is over.
 */
void qrdma_agent_over(struct qrdma_agent *agent, int err);

/** qrdma_agent_is_over() - the target's lock, or a mere look */
static inline bool qrdma_agent_is_over(const struct qrdma_agent *agent)
{
	return READ_ONCE(agent->state) == QRDMA_AGENT_OVER;
}

/** qrdma_agent_put() - NULL is harmless */
void qrdma_agent_put(struct qrdma_agent *agent);

/** qrdma_agent_waits() - is there one to be taken? */
bool qrdma_agent_waits(struct net *net);

/**
 * qrdma_agent_take() - the oldest that waits, of each user in turn
 * @net: namespace
 * @end: the agent's socket for it
 *
 * Return: with a reference, and one to the target; NULL: none waits.
 */
struct qrdma_agent *qrdma_agent_take(struct net *net, struct sock *end);

/**
 * qrdma_agent_leave() - the mirror: the agent's socket goes
 * @agent: from qrdma_agent_take(); both references are used up
 * @again: it shall wait again, as the first one, unless it is over
 */
void qrdma_agent_leave(struct qrdma_agent *agent, bool again);

#endif /* QRDMA_AGENT_H */
