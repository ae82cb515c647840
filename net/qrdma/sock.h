/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The socket: struct qrdma_sock, what holds it, what guards it, and how events of the engine
 * become events of a socket.
 *
 * Owns: the socket's state and its wake-ups. Knows no packet and no path: output.h, input.h and
 * link.h do.
 *
 * CONTEXTS AND LOCKS
 * ==================
 * A connection's engine, and everything in struct qrdma_sock that does not say otherwise, is
 * touched only under the socket lock: lock_sock() in process context; bh_lock_sock() in softirq,
 * and then only while no process owns the lock. Softirq work that finds the socket owned sets a
 * bit in @deferred, which release_cb (input.c) works off when the owner lets go; both happen
 * under sk_lock.slock, so no bit is missed.
 *
 * Order, outer to inner; nothing is taken against it:
 *	1. socket lock; of a listener before that of a child
 *	2. port table mutex (process context only)
 *	3. batch list of a CPU (input.c), waiters for a send buffer (output.c); never together
 *	4. rxq.lock of one socket; lock of a listener (listen.h)
 *	5. locks of the verbs layer as lane.h lists them, the rhashtable's of demux.c
 * Upward calls of the verbs layer and completions of the AEAD come with none of these held.
 *
 * REFERENCES to a struct qrdma_sock
 * =================================
 *  - the file (struct socket), until release();
 *  - the connection: from qrdma_link_open() (connect) to qrdma_link_close(), whether or not there
 *    is a file;
 *  - a queued @work; a batch list; the list of waiters; an operation of the AEAD in flight; an
 *    attached peer user;
 *  - who found it in demux.c: RCU and refcount-not-zero; the memory goes by RCU (SOCK_RCU_FREE).
 * An armed timer holds none: it is cancelled by qrdma_link_close(), before the connection's
 * reference is dropped.
 *
 * LIFE OF A CONNECTION
 * ====================
 * connect(): id into demux, peer asked for -> peer READY: engine made, lane and address handle
 * taken, first packet -> first authenticated packet, or in band TLS is done: ESTABLISHED -> closed
 * by either side, or given up -> retire. Retiring is the only way out, and its order is
 * (qrdma_link_close(), process context, socket lock):
 *	1. out of demux: no lookup finds the socket any more; one that had found it has a reference
 *	   of its own and, after the lock, sees @live false;
 *	2. @live false: nothing arms the timer, queues work or sends from here on;
 *	3. peer user cancelled: no event() acts after this, for it asks under the socket lock;
 *	4. timer cancelled; its callback only needs sk_lock.slock for a moment, so waiting for it
 *	   cannot dead-lock;
 *	5. off the list of waiters; received and not yet opened packets are dropped; operations in
 *	   flight have references of their own to socket, buffers, slot, device and handle, and come
 *	   to nothing when they end;
 *	6. address handle, peer (and with it the device) put, credit given back;
 *	7. the engine stays for what may still be read, and is freed with the socket, or at once
 *	   when nobody can read it;
 *	8. the connection's reference is dropped.
 */
#ifndef QRDMA_SOCK_H
#define QRDMA_SOCK_H

#include <linux/hrtimer.h>
#include <linux/rhashtable-types.h>
#include <linux/qrdma.h>
#include <net/sock.h>

#include "core/conn.h"
#include "core/packer.h"
#include "addr.h"
#include "agent.h"
#include "peer.h"
#include "port.h"
#include "purse.h"
#include "stat.h"

/*
 * Bounds and defaults
 */
enum {
	/* datagrams of one socket that wait to be opened */
	QRDMA_RXQ_MAX		= 512,
	/* operations of the AEAD in flight for one socket and direction */
	QRDMA_ASYNC_MAX		= 256,
	/* idle records that a socket keeps, each direction */
	QRDMA_FREE_RECORDS	= 1,
	/* SO_SNDBUF and SO_RCVBUF, bytes */
	QRDMA_BUF_DEFAULT	= 1 << 20,
	/* credit of a new connection, bytes; grows as the application reads */
	QRDMA_CREDIT_FIRST	= 16 << 10,
	/* timer granularity */
	QRDMA_GRANULARITY_US	= 100,
	/* connection ids of the peer that we keep: default, and most (core/path.h) */
	QRDMA_ACTIVE_CID_LIMIT	= 2,
	QRDMA_ACTIVE_CID_MAX	= 4,
	QRDMA_CONNECT_MS	= 30000,
	QRDMA_LINGER_MS		= 60000,
	QRDMA_IDLE_MS		= 60000,
	/* how long an acknowledgement waits for company */
	QRDMA_ACK_DELAY_US	= 1000,
	/* what the peer is told: with room for a late timer (RFC 9000 s13.2.1) */
	QRDMA_ACK_DELAY_SAID_MS	= 5,
	/* largest time-out that can be set: a day */
	QRDMA_ALARM_MS_MAX	= 24 * 3600 * 1000,
	/* MSG_MORE holds bytes back so long, as TCP does */
	QRDMA_CORK_MS		= 200,
	/* most that an agent waits for the lock of one target */
	QRDMA_AGENT_LOCK_MS	= 1000,
};

/* look again for credit, or for a send buffer */
#define QRDMA_RETRY_NS		(10ULL * NSEC_PER_MSEC)
/* a connection without a path lives so long */
#define QRDMA_STRANDED_NS	(1ULL * NSEC_PER_SEC)	/* timers of a connection without a path */
#define QRDMA_LOST_NS		(60ULL * NSEC_PER_SEC)

/*
 * Application error codes that AF_QRDMA uses itself (RFC 9000 s20.2: the application protocol is
 * the byte stream).
 */
#define QRDMA_APP_CLOSE		0	/* everything was delivered */
#define QRDMA_APP_ABORT		1	/* closed with unread data, or SO_LINGER with 0 */
#define QRDMA_APP_TIMEOUT	2	/* the orphan was not done in linger_timeout */

/* TLS failed: the first of 256 transport error codes, plus the alert (RFC 9001 s4.8) */
#define QRDMA_TLS_ERROR		0x100

/**
 * enum qrdma_alarm - what the socket's timer serves besides the engine's deadline
 * @QRDMA_ALARM_CONNECT: give up connecting
 * @QRDMA_ALARM_LINGER: give up delivering after close()
 * @QRDMA_ALARM_CORK: send what MSG_MORE held back
 * @QRDMA_ALARM_RETRY: credit was held for want of memory, or a packet for want of a buffer: look
 *	again
 * @QRDMA_ALARM_RESOLVE: ask for the peer again
 * @QRDMA_ALARM_KEYS: derive the next keys, which failed
 * @QRDMA_ALARM_LOST: there has been no path for too long
 */
enum qrdma_alarm {
	QRDMA_ALARM_CONNECT,
	QRDMA_ALARM_LINGER,
	QRDMA_ALARM_CORK,
	QRDMA_ALARM_RETRY,
	QRDMA_ALARM_RESOLVE,
	QRDMA_ALARM_KEYS,
	QRDMA_ALARM_LOST,
	__QRDMA_ALARM_MAX
};

/* Bits of qrdma_sock.deferred: what softirq could not do because a process owned the socket. */
enum {
	QRDMA_DEFER_RX,
	QRDMA_DEFER_TIMER,
	QRDMA_DEFER_TX,
	QRDMA_DEFER_WORK,	/* and what workers could not */
	QRDMA_DEFER_PEER,
};

/* Bits of qrdma_sock.todo: what has to be done in process context. */
enum {
	QRDMA_TODO_KEYS,	/* derive the next key generation */
	QRDMA_TODO_RESOLVE,	/* ask for the peer again */
	QRDMA_TODO_RETIRE,	/* the connection is over */
	QRDMA_TODO_SEND,	/* operations of the AEAD have ended: there is room for more */
	QRDMA_TODO_INITIAL,	/* derive the Initial keys anew, after a Retry */
	QRDMA_TODO_QUIET,	/* give back what an idle connection does not need */
	QRDMA_TODO_LEFT,	/* the agent has gone without a result */
};

/**
 * struct qrdma_setup - what the application set before connect(), out of band
 * @have_ids: connection ids and role are in
 * @have_remote: the peer's transport parameters are in
 * @role: QRDMA_ROLE_*
 * @scid: our connection id
 * @dcid: the peer's
 * @local: our transport parameters
 * @remote: the peer's
 * @ack_delay_us: our max_ack_delay as set, microseconds; @local has it in whole milliseconds
 * @idle_us: our idle time-out as set, microseconds
 * @remote_ack_us: the peer's, for getsockopt()
 * @remote_idle_us: the peer's, for getsockopt()
 * @cipher: QRDMA_CIPHER_*, 0: no secret is in
 * @slot: key of each direction (index: send), NULL: none, or spent: the engine has it alone
 * @digest: of the secrets, to refuse the same again after they are spent
 * @config: QRDMA_CONFIG with the defaults filled in
 */
struct qrdma_setup {
	bool have_ids;
	bool have_remote;
	u8 role;
	struct qrdma_cid scid;
	struct qrdma_cid dcid;
	struct qrdma_tparams local;
	struct qrdma_tparams remote;
	u32 ack_delay_us;
	u32 idle_us;
	u32 remote_ack_us;
	u32 remote_idle_us;
	u32 cipher;
	struct qrdma_slot *slot[2];
	u64 digest[2];
	struct qrdma_config config;
};

/**
 * struct qrdma_path - the way to the peer
 * @user: who asks peer.c
 * @peer: the answer, NULL while there is none; a reference
 * @lane: our lane on its device; valid as long as @peer
 * @last: device of the last peer; a reference, to its memory only
 * @ah: address handle; a reference
 * @ah_ect: the same for packets marked ECT(0); NULL: none are
 * @qpn: the peer's queue pair: where its last authenticated packet came from
 * @flow_label: 20 bits out of the peer's connection id
 * @changes: peers had so far, less one
 * @err: negative errno of the last failure, for when the connection is given up
 * @retries: failures in a row
 */
struct qrdma_path {
	struct qrdma_peer_user user;
	struct qrdma_peer *peer;
	struct qrdma_lane *lane;
	struct qrdma_device *last;
	struct qrdma_ah *ah;
	struct qrdma_ah *ah_ect;
	u32 qpn;
	u32 flow_label;
	u32 changes;
	int err;
	u32 retries;
};

/**
 * struct qrdma_rxq - datagrams between the lane and the engine
 * @lock: guards @in, @nr, @batched, @done
 * @in: struct qrdma_rxbuf, by item.list
 * @nr: number of them
 * @batched: the socket is on a batch list, which has a reference
 * @batch: on that list
 * @done: records whose asynchronous open has ended
 * @todo: taken from @in; socket lock
 * @free: idle records; socket lock
 * @nfree: number of them
 * @inflight: records whose open is in flight; socket lock
 */
struct qrdma_rxq {
	spinlock_t lock;	/* guards in .. done */
	struct list_head in;
	u32 nr;
	bool batched;
	struct list_head batch;
	struct list_head done;
	struct list_head todo;
	struct list_head free;
	u32 nfree;
	u32 inflight;
};

/**
 * struct qrdma_txq - datagrams between the engine and the lane
 * @free: idle records; socket lock
 * @nfree: number of them
 * @inflight: records whose seal is in flight
 * @waiting: on the list of those who wait for a send buffer, which has a reference; its lock
 * @node: on that list
 * @wait_lane: the lane waited for; same lock
 */
struct qrdma_txq {
	struct list_head free;
	u32 nfree;
	atomic_t inflight;
	bool waiting;
	struct list_head node;
	struct qrdma_lane *wait_lane;
};

/**
 * struct qrdma_inband - a handshake in band
 * @qs: the socket
 * @first: server: destination connection id of the client's first packets (RFC 9000 s7.2), key of
 *	demux.c
 * @first_node: in its table
 * @odcid: server: where the very first one of them went to: another id, if there was a Retry
 * @retried: server: there was
 * @validated: server: a token has proved the client's address
 * @token: client: to be sent along, until the engine has it; NULL: none
 * @slot: Initial keys of both directions (index: send), until the engine has them
 * @ready: handshake bytes can be sent
 * @complete: QRDMA_HANDSHAKE_RESULT has told that TLS is done
 * @readable: some can be read; for poll() and waits without the lock
 * @err: errno that QRDMA_HANDSHAKE_RESULT has told, positive
 * @by_agent: the program sees nothing of it: QRDMA_HANDSHAKE_AGENT
 * @agent: who runs it then; a reference. NULL: the agent is done and has gone
 *
 * Owned by: the socket, from before qrdma_link_open() to qrdma_link_close(); freed by RCU.
 * Protected by: the socket lock.
 */
struct qrdma_inband {
	struct qrdma_sock *qs;
	struct qrdma_cid first;
	struct rhash_head first_node;
	struct qrdma_cid odcid;
	bool retried;
	bool validated;
	struct qrdma_coin *token;
	struct qrdma_slot *slot[2];
	bool ready;
	bool complete;
	bool readable;
	int err;
	bool by_agent;
	struct qrdma_agent *agent;
	struct rcu_head rcu;
};

/**
 * struct qrdma_sock - a socket of AF_QRDMA
 * @sk: must be first
 * @ipv6: made with QRDMA_PROTO_IPV6
 * @bound: there is a local port
 * @local_any: not to an address: the path decides
 * @live: there is a connection or an attempt at one: from qrdma_link_open() to qrdma_link_close()
 * @spent: the keys were used, or the connection was established in band; the socket cannot connect
 *	again
 * @closing: close() was called; the kernel goes on alone until all is delivered
 * @acked: all that was written, and FIN, is acknowledged
 * @local: bound or connected address and port
 * @remote: address and port of the peer
 * @port: entry of the port table
 * @setup: what the application set before connect()
 * @kept: values of the options of ipopt.h, NULL: all have their defaults
 * @conn: the engine; NULL before the peer is known
 * @cid: our connection id, key of demux.c
 * @cid_node: in its table
 * @token_hash: of the peer's stateless reset token, key of demux.c; 0: none is entered
 * @token_node: in its table
 * @inband: of a handshake in band, until the connection retires; NULL: it runs out of band
 * @listener: the socket listens, or did; until its memory goes
 * @path: the way to the peer
 * @rxq: input
 * @txq: output
 * @timer: engine's deadline and alarms; softirq
 * @timer_at: when it is armed for, QRDMA_NEVER: not armed
 * @alarm: times of enum qrdma_alarm, QRDMA_NEVER: not set
 * @deferred: QRDMA_DEFER_* bits
 * @todo: QRDMA_TODO_* bits
 * @attempt: counts connections and attempts at one
 * @work: serves @todo; while it is queued it has a reference
 * @readable: bytes that can be read, for poll() and waits without the lock
 * @rx_reset: reading says ECONNRESET once what is readable was read
 * @read_since: bytes read since the window last grew
 * @window: receive window in force, bytes
 * @reserved: credit reserved on the device, bytes
 * @credit_held: credit is held because receive memory is low
 * @error: why the connection ended, as QRDMA_CONNECTION_CLOSE tells
 *
 * Found by: file; demux.c by @cid. Dies: with the last reference, see the top of this file.
 * Protected by: the socket lock, where nothing else is said.
 */
struct qrdma_sock {
	struct sock sk;
	bool ipv6;
	bool bound;
	bool local_any;
	bool live;
	bool spent;
	bool closing;
	bool acked;
	union qrdma_addr local;
	union qrdma_addr remote;
	struct qrdma_port port;
	struct qrdma_setup setup;
	s32 *kept;

	struct qrdma_conn *conn;
	u8 cid[QRDMA_CID_LEN];
	struct rhash_head cid_node;
	u64 token_hash;
	struct rhash_head token_node;
	struct qrdma_inband *inband;
	struct qrdma_listener *listener;
	struct qrdma_path path;
	struct qrdma_rxq rxq;
	struct qrdma_txq txq;

	struct hrtimer timer;
	u64 timer_at;
	u64 alarm[__QRDMA_ALARM_MAX];
	unsigned long deferred;
	unsigned long todo;
	u32 attempt;
	struct work_struct work;

	u32 readable;
	bool rx_reset;
	u64 read_since;
	u64 window;
	u64 reserved;
	bool credit_held;
	struct qrdma_connection_close error;
};

static inline struct qrdma_sock *qrdma_sk(const struct sock *sk)
{
	return container_of(sk, struct qrdma_sock, sk);
}

/** qrdma_sock_connecting() - neither connected nor ended. Any context; no lock for a mere look. */
static inline bool qrdma_sock_connecting(const struct qrdma_sock *qs)
{
	return (1 << READ_ONCE(qs->sk.sk_state)) & (TCPF_SYN_SENT | TCPF_SYN_RECV);
}

/* Memory of connections */
extern struct kmem_cache *qrdma_sock_conns;

/** qrdma_sock_start() - before the first socket. Return: 0, -ENOMEM. */
int qrdma_sock_start(void);

/** qrdma_sock_stop() - after the last socket is gone: waits for their work items to return */
void qrdma_sock_stop(void);

/**
 * qrdma_sock_init() - fill a new socket
 * @qs: zeroed by sk_alloc() but for the generic part
 * @ipv6: which addresses it takes
 * @work: serves @todo
 * @timer: serves @timer
 */
void qrdma_sock_init(struct qrdma_sock *qs, bool ipv6, work_func_t work,
		     enum hrtimer_restart (*timer)(struct hrtimer *timer));

/** qrdma_setup_drop_keys() - @setup holds no key any more; a slot lives on while it is in use */
void qrdma_setup_drop_keys(struct qrdma_setup *setup);

/**
 * qrdma_sock_todo() - have a QRDMA_TODO_* bit served in process context. Any context; the socket
 * lock, but for QRDMA_TODO_SEND, QRDMA_TODO_LEFT and QRDMA_TODO_KEYS, which need only a reference.
 */
void qrdma_sock_todo(struct qrdma_sock *qs, int bit);

/** qrdma_sock_work() - have @work run. Any context, with a reference. */
void qrdma_sock_work(struct qrdma_sock *qs);

/**
 * qrdma_sock_lock_or_defer() - the socket lock, for a worker, which serves other sockets, too
 * @qs: socket, not locked
 * @bit: QRDMA_DEFER_*, for who has the lock to see when letting go of it
 *
 * A process can have the lock for as long as its program likes: the kernel copies values of
 * SOL_SOCKET under it, and a page may be slow to come (userfaultfd, FUSE).
 *
 * Context: process. Return: false: a process has it.
 */
bool qrdma_sock_lock_or_defer(struct qrdma_sock *qs, int bit);

/**
 * qrdma_sock_lock_for_agent() - the same for an agent, which cannot be told later
 * @qs: target, not locked
 * @agent: what the agent has of it
 *
 * Waits for QRDMA_AGENT_LOCK_MS. A target that keeps its lock for longer has lost the handshake.
 *
 * Context: process. Return: 0; -ETIMEDOUT; -ENOTCONN: that was so before.
 */
int qrdma_sock_lock_for_agent(struct qrdma_sock *qs, struct qrdma_agent *agent);

/** qrdma_sock_queue() - queue_work() on the queue of the sockets. Return: false: it was queued. */
bool qrdma_sock_queue(struct work_struct *work);

/**
 * qrdma_sock_react() - do what the engine's event bits ask for, but for sending
 * @qs: socket, locked
 * @ev: QRDMA_EV_* bits
 *
 * State, errors, wake-ups, work items, and the memory and bytes that poll() and the memory
 * accounting look at.
 *
 * Return: @ev and what has come up meanwhile; the caller serves QRDMA_EV_TX.
 */
u32 qrdma_sock_react(struct qrdma_sock *qs, u32 ev);

/**
 * qrdma_sock_fail() - the connection, or the attempt at one, ends now and without a packet
 * @qs: socket, locked
 * @err: errno for the application, positive; 0: nobody is told
 * @reason: QRDMA_REASON_*
 *
 * Retires. Harmless when there is none.
 */
void qrdma_sock_fail(struct qrdma_sock *qs, int err, u32 reason);

/**
 * qrdma_sock_unbind() - give back the port, and with the last of a namespace its SIDR service
 * @qs: socket, locked; harmless when it has no port
 */
void qrdma_sock_unbind(struct qrdma_sock *qs);

/**
 * qrdma_sock_was_read() - the application has consumed bytes: let the receive window grow
 * @qs: socket, locked, with an engine
 * @len: bytes
 *
 * Return: QRDMA_EV_TX when there is credit to be told, 0.
 */
u32 qrdma_sock_was_read(struct qrdma_sock *qs, u32 len);

/** qrdma_sock_window_max() - largest receive window that SO_RCVBUF stands for, bytes */
static inline u64 qrdma_sock_window_max(const struct qrdma_sock *qs)
{
	return max_t(u64, READ_ONCE(qs->sk.sk_rcvbuf) / 2, QRDMA_CREDIT_FIRST);
}

/**
 * qrdma_sock_lowat() - so many bytes make the socket readable. Any context, no lock.
 *
 * SO_RCVLOWAT, but no more than may come before the application reads: a window grows only then.
 */
static inline u32 qrdma_sock_lowat(const struct qrdma_sock *qs)
{
	u64 lowat = max(READ_ONCE(qs->sk.sk_rcvlowat), 1);

	return min_t(u64, lowat, max_t(u64, READ_ONCE(qs->window) / 2, 1));
}

/**
 * qrdma_sock_rx_cap() - memory that received data may pin, bytes
 *
 * More than the window: a datagram of 1 KiB pins a page. What is small against its page is copied
 * once half of this is used (core/reasm.h), so a window of bytes always fits.
 */
static inline u32 qrdma_sock_rx_cap(const struct qrdma_sock *qs)
{
	u64 window = max(qrdma_sock_window_max(qs), qs->setup.local.initial_max_data);

	return min_t(u64, window * 5 + (64 << 10), INT_MAX);
}

/**
 * qrdma_sock_handshaking() - handshake bytes are to be moved, by the program. Any context, no lock.
 */
bool qrdma_sock_handshaking(const struct qrdma_sock *qs);

/** qrdma_sock_crypto_readable() - some can be read. Any context, no lock. */
bool qrdma_sock_crypto_readable(const struct qrdma_sock *qs);

/**
 * qrdma_sock_speak() - who speaks TLS has something to do, or to look at
 * @qs: socket, locked, with an engine
 *
 * Return: event bits: the connection closes when there is nobody.
 */
u32 qrdma_sock_speak(struct qrdma_sock *qs);

/** qrdma_sock_look_at_crypto() - can handshake bytes be read now? Socket lock, with an engine. */
void qrdma_sock_look_at_crypto(struct qrdma_sock *qs);

/** qrdma_sock_now() - the clock of the engine and of all alarms, ns */
static inline u64 qrdma_sock_now(void)
{
	return ktime_get_ns();
}

static inline void qrdma_sock_set_alarm(struct qrdma_sock *qs, enum qrdma_alarm alarm, u64 at)
{
	qs->alarm[alarm] = at;
}

static inline void qrdma_sock_set_alarm_ms(struct qrdma_sock *qs, enum qrdma_alarm alarm, u32 ms)
{
	qs->alarm[alarm] = qrdma_sock_now() + (u64)ms * NSEC_PER_MSEC;
}

static inline void qrdma_sock_clear_alarm(struct qrdma_sock *qs, enum qrdma_alarm alarm)
{
	qs->alarm[alarm] = QRDMA_NEVER;
}

#endif /* QRDMA_SOCK_H */
