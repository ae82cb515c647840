// SPDX-License-Identifier: GPL-2.0
/*
 * The address family: sockets come, get names, connect and go; the module starts and stops.
 *
 * Owns: struct proto, struct proto_ops, /proc/net/qrdma. Called by: the socket layer of the
 * kernel, process context, without the socket lock unless said otherwise.
 */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/sockios.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <asm/ioctls.h>

#include "accept.h"
#include "agent.h"
#include "answer.h"
#include "compat.h"
#include "crypto.h"
#include "demux.h"
#include "diag.h"
#include "genlink.h"
#include "inband.h"
#include "input.h"
#include "link.h"
#include "listen.h"
#include "output.h"
#include "recvmsg.h"
#include "reset.h"
#include "retry.h"
#include "sendmsg.h"
#include "sockopt.h"
#include "token.h"

static struct proto qrdma_prot = {
	.name		= "QRDMA",
	.owner		= THIS_MODULE,
	.obj_size	= sizeof(struct qrdma_sock),
	.release_cb	= qrdma_input_release_cb,
};

/*
 * Names
 */

/* @addr may be kept from changing behind us only by the socket lock. */
static int sock_take_port(struct qrdma_sock *qs, const union qrdma_addr *addr, int scope)
{
	struct sock *sk = &qs->sk;
	struct qrdma_port *port = &qs->port;
	int err;

	port->net = sock_net(sk);
	qrdma_addr_to_in6(addr, &port->addr);
	port->any = qrdma_addr_is_any(addr);
	port->v6only = qs->ipv6 && sk->sk_ipv6only;
	port->ifindex = sk->sk_bound_dev_if ?: scope;
	port->reuse = sk->sk_reuse;
	/* Whoever has a port may be looked for; see qrdma_sock_unbind(). */
	err = qrdma_sidr_serve(port->net);
	if (err)
		return err;
	err = qrdma_port_take(port, qrdma_addr_port(addr));
	if (err) {
		qrdma_sidr_unserve(port->net);
		return err;
	}
	qs->local = *addr;
	qrdma_addr_set_port(&qs->local, port->num);
	qs->local_any = port->any;
	qs->bound = true;
	return 0;
}

/* An IPv6 socket that was told to keep to IPv6 takes no mapped address. */
static bool sock_family_ok(const struct qrdma_sock *qs, const union qrdma_addr *addr)
{
	return !(qs->ipv6 && qs->sk.sk_ipv6only && ipv6_addr_v4mapped(&addr->in6.sin6_addr));
}

/* Old programs leave the family out of the wildcard, and IPv4 takes it (SunOS did). */
static bool sock_is_unspec_any(const struct sockaddr *sa, int len)
{
	return len >= (int)sizeof(struct sockaddr_in) && sa->sa_family == AF_UNSPEC &&
	       ((const struct sockaddr_in *)sa)->sin_addr.s_addr == htonl(INADDR_ANY);
}

static int qrdma_bind(struct socket *sock, struct qrdma_sockaddr *uaddr, int len)
{
	struct sock *sk = sock->sk;
	struct qrdma_sock *qs = qrdma_sk(sk);
	struct net *net = sock_net(sk);
	union qrdma_addr addr;
	int scope, err;
	u16 port;

	if (!qs->ipv6 && sock_is_unspec_any((struct sockaddr *)uaddr, len)) {
		qrdma_addr_any(&addr, false);
		qrdma_addr_set_port(&addr, ntohs(((struct sockaddr_in *)uaddr)->sin_port));
	} else {
		err = qrdma_addr_from_user(&addr, qs->ipv6, (struct sockaddr *)uaddr, len);
		if (err)
			return err;
	}
	port = qrdma_addr_port(&addr);
	if (port && inet_port_requires_bind_service(net, port) &&
	    !ns_capable(net->user_ns, CAP_NET_BIND_SERVICE))
		return -EACCES;
	lock_sock(sk);
	if (qs->bound || qs->live || qs->listener)
		err = -EINVAL;
	else if (!sock_family_ok(qs, &addr))
		err = -EINVAL;
	else
		err = qrdma_addr_check_local(net, &addr, sk->sk_bound_dev_if, &scope);
	if (!err)
		err = sock_take_port(qs, &addr, scope);
	release_sock(sk);
	return err;
}

static int qrdma_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
{
	struct sock *sk = sock->sk;
	struct qrdma_sock *qs = qrdma_sk(sk);
	union qrdma_addr addr;
	int err = 0;

	lock_sock(sk);
	if (peer && ((peer == 1 && (1 << sk->sk_state) & (TCPF_CLOSE | TCPF_SYN_SENT)) ||
		     !qrdma_addr_port(&qs->remote)))
		err = -ENOTCONN;
	addr = peer ? qs->remote : qs->local;
	release_sock(sk);
	if (err)
		return err;
	memcpy(uaddr, &addr, qrdma_addr_len(&addr));
	return qrdma_addr_len(&addr);
}

/*
 * Connecting
 */

/* Without keys of an out-of-band handshake the program, or the agent, may run one in band. */
static bool sock_is_inband(const struct qrdma_sock *qs)
{
	const struct qrdma_setup *setup = &qs->setup;

	return setup->config.handshake != QRDMA_HANDSHAKE_NONE && !setup->have_ids &&
	       !setup->have_remote && !setup->slot[0] && !setup->slot[1];
}

/* The socket lock is held. Return: 0, or why the connection cannot be begun. */
static int sock_connect_begin(struct qrdma_sock *qs, const union qrdma_addr *remote)
{
	union qrdma_addr any;
	bool inband;
	int err;

	if (!qrdma_addr_port(remote))
		return -EINVAL;
	if (qrdma_addr_is_multicast(remote))
		return -ENETUNREACH;
	if (qrdma_addr_is_any(remote))
		return -EADDRNOTAVAIL;
	if (qs->ipv6 && ipv6_addr_type(&remote->in6.sin6_addr) & IPV6_ADDR_LINKLOCAL &&
	    !remote->in6.sin6_scope_id && !qs->sk.sk_bound_dev_if)
		return -EINVAL;
	if (!sock_family_ok(qs, remote))
		return -ENETUNREACH;
	inband = sock_is_inband(qs);
	if (qs->spent || (!inband && !qrdma_setup_complete(&qs->setup)))
		return -ENOKEY;
	/* What is left of an attempt that failed before it used the keys. */
	qrdma_link_close(qs);
	if (inband && qs->setup.config.handshake == QRDMA_HANDSHAKE_AGENT &&
	    !qrdma_agent_present(sock_net(&qs->sk))) {
		qrdma_stat_inc(QRDMA_STAT_AGENT_ABSENT);
		memset(&qs->error, 0, sizeof(qs->error));
		qs->error.reason = QRDMA_REASON_NO_AGENT;
		return -ESRCH;
	}
	if (!qs->bound) {
		qrdma_addr_any(&any, qs->ipv6);
		err = sock_take_port(qs, &any, 0);
		if (err)
			return err;
	}
	qs->remote = *remote;
	if (inband) {
		qrdma_conn_destroy(qs->conn);
		qs->conn = NULL;
		err = qrdma_inband_client(qs);
		if (err)
			return err;
	}
	err = qrdma_link_open(qs);
	if (err)
		qrdma_inband_free(qs);
	return err;
}

/* The socket lock is held, and given up while waiting. */
static void sock_connect_wait(struct sock *sk, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);

	add_wait_queue(sk_sleep(sk), &wait);
	sk->sk_write_pending++;
	while (sk->sk_state == TCP_SYN_SENT && !qrdma_sock_handshaking(qrdma_sk(sk)) && *timeo &&
	       !signal_pending(current)) {
		release_sock(sk);
		*timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, *timeo);
		lock_sock(sk);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	sk->sk_write_pending--;
}

/* Behind a connection that has been begun: what does connect() say now? */
static int sock_connect_result(struct socket *sock, int flags)
{
	struct sock *sk = sock->sk;
	long timeo = sock_sndtimeo(sk, flags & O_NONBLOCK);

	sock_connect_wait(sk, &timeo);
	if (sk->sk_state == TCP_SYN_SENT && !qrdma_sock_handshaking(qrdma_sk(sk))) {
		if (!timeo)
			return -EINPROGRESS;
		return sock_intr_errno(timeo);
	}
	if (sk->sk_state == TCP_CLOSE) {
		sock->state = SS_UNCONNECTED;
		return sock_error(sk) ?: -ECONNABORTED;
	}
	sock->state = SS_CONNECTED;
	return 0;
}

static int qrdma_connect(struct socket *sock, struct qrdma_sockaddr *uaddr, int len, int flags)
{
	const struct sockaddr *sa = (struct sockaddr *)uaddr;
	struct sock *sk = sock->sk;
	struct qrdma_sock *qs = qrdma_sk(sk);
	union qrdma_addr remote;
	int err;

	if (len < (int)offsetofend(struct sockaddr, sa_family))
		return -EINVAL;
	lock_sock(sk);
	if (sa->sa_family == AF_UNSPEC) {
		qrdma_link_abort(qs);
		sock->state = SS_UNCONNECTED;
		err = 0;
		goto out;
	}
	/* A handshake in band that failed leaves the socket as an attempt to connect does. */
	if (sock->state == SS_CONNECTED && sk->sk_state == TCP_CLOSE && !qs->spent)
		sock->state = SS_UNCONNECTED;
	switch (sock->state) {
	case SS_CONNECTED:
		err = -EISCONN;
		break;
	case SS_CONNECTING:
		err = sock_connect_result(sock, flags);
		if (err == -EINPROGRESS)
			err = -EALREADY;
		break;
	case SS_UNCONNECTED:
		err = qrdma_addr_from_user(&remote, qs->ipv6, sa, len);
		if (!err && qs->listener)
			err = -EISCONN;
		if (!err)
			err = sock_connect_begin(qs, &remote);
		if (err)
			break;
		sock->state = SS_CONNECTING;
		err = sock_connect_result(sock, flags);
		break;
	default:
		err = -EINVAL;
	}
out:
	release_sock(sk);
	return err;
}

/*
 * Listening
 */

static int qrdma_listen(struct socket *sock, int backlog)
{
	struct sock *sk = sock->sk;
	struct qrdma_sock *qs = qrdma_sk(sk);
	union qrdma_addr any;
	int err = 0;

	lock_sock(sk);
	WRITE_ONCE(sk->sk_max_ack_backlog, backlog);
	if (sk->sk_state == TCP_LISTEN)
		goto out;
	err = -EINVAL;
	if (sock->state != SS_UNCONNECTED || sk->sk_state != TCP_CLOSE || qs->live || qs->spent ||
	    qs->listener)
		goto out;
	err = -ENOKEY;
	if (!sock_is_inband(qs))
		goto out;
	err = 0;
	if (!qs->bound) {
		qrdma_addr_any(&any, qs->ipv6);
		err = sock_take_port(qs, &any, 0);
	}
	if (!err)
		err = qrdma_accept_listen(qs);
	if (!err)
		WRITE_ONCE(sk->sk_state, TCP_LISTEN);
out:
	release_sock(sk);
	return err;
}

/* Take no connections any more. The lock is not held. */
static void sock_unlisten(struct qrdma_sock *qs)
{
	struct sock *sk = &qs->sk;

	lock_sock(sk);
	if (sk->sk_state == TCP_LISTEN) {
		WRITE_ONCE(sk->sk_state, TCP_CLOSE);
		sk->sk_state_change(sk);
	}
	release_sock(sk);
	qrdma_accept_stop(qs);
}

static int qrdma_accept(struct socket *sock, struct socket *newsock, QRDMA_ACCEPT_HOW)
{
	struct sock *sk = sock->sk;
	struct qrdma_sock *child;
	int err;

	lock_sock(sk);
	err = qrdma_accept_next(qrdma_sk(sk),
				sock_rcvtimeo(sk, qrdma_accept_flags(how) & O_NONBLOCK), &child);
	release_sock(sk);
	if (err)
		return err;
	lock_sock(&child->sk);
	sock_graft(&child->sk, newsock);
	newsock->state = SS_CONNECTED;
	release_sock(&child->sk);
	return 0;
}

/*
 * Ending
 */

static int qrdma_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	struct qrdma_sock *qs = qrdma_sk(sk);
	int err = 0;

	/* SHUT_RD, SHUT_WR, SHUT_RDWR to RCV_SHUTDOWN, SEND_SHUTDOWN, both */
	how++;
	if ((how & ~SHUTDOWN_MASK) || !how)
		return -EINVAL;
	if (how & RCV_SHUTDOWN && READ_ONCE(sk->sk_state) == TCP_LISTEN) {
		sock_unlisten(qs);
		return 0;
	}
	lock_sock(sk);
	if (qrdma_sock_connecting(qs)) {
		qrdma_link_abort(qs);
		sock->state = SS_UNCONNECTED;
	} else if (sk->sk_state == TCP_LISTEN) {
		/* SHUT_WR: nothing is ever sent. */
	} else if (sk->sk_state == TCP_CLOSE) {
		err = -ENOTCONN;
	} else {
		WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | how);
		if ((how & SEND_SHUTDOWN) && qs->conn) {
			qrdma_conn_finish(qs->conn, 0);
			qrdma_output_run(qs, QRDMA_EV_TX);
		}
	}
	/* Who waits looks again. */
	sk->sk_state_change(sk);
	release_sock(sk);
	return err;
}

/*
 * The application lets go of a connection that lives. As with TCP, unread bytes mean that the
 * peer is told of an abort, and so does SO_LINGER with 0; else what was written is delivered,
 * which may go on without us.
 */
static void sock_close_begin(struct qrdma_sock *qs)
{
	struct sock *sk = &qs->sk;
	bool abort = sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime;

	qrdma_input_drain(qs);
	/* With a connection that has ended there is nothing to deliver, nor to wait for. */
	if (!qs->conn || qrdma_sock_connecting(qs) || qs->error.reason) {
		qrdma_link_abort(qs);
		return;
	}
	qs->closing = true;
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	WRITE_ONCE(sk->sk_state, TCP_FIN_WAIT1);
	if (abort || qs->readable) {
		qrdma_stat_inc(QRDMA_STAT_ABORTED);
		qrdma_link_abort(qs);
		return;
	}
	qrdma_conn_finish(qs->conn, 0);
	/* What was settled before has its event behind it: a reset that the peer asked for. */
	if (qrdma_conn_tx_done(qs->conn, 0))
		qs->acked = true;
	qrdma_sock_set_alarm_ms(qs, QRDMA_ALARM_LINGER, qs->setup.config.linger_timeout);
	qrdma_output_run(qs, QRDMA_EV_TX);
}

/*
 * Until what was written is delivered, for as long as SO_LINGER allows or until a signal comes.
 * Under the socket lock, which is let go of meanwhile.
 */
static void sock_wait_settled(struct sock *sk, long timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);

	add_wait_queue(sk_sleep(sk), &wait);
	while (timeo && !signal_pending(current)) {
		if (sk_wait_event(sk, &timeo, READ_ONCE(sk->sk_state) != TCP_FIN_WAIT1, &wait))
			break;
	}
	remove_wait_queue(sk_sleep(sk), &wait);
}

static int qrdma_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct qrdma_sock *qs;
	long timeo = 0;

	if (!sk)
		return 0;
	qs = qrdma_sk(sk);
	if (sock_flag(sk, SOCK_LINGER) && !(current->flags & PF_EXITING))
		timeo = sk->sk_lingertime;
	sock_unlisten(qs);
	lock_sock(sk);
	if (qs->live) {
		sock_close_begin(qs);
		sock_wait_settled(sk, timeo);
	}
	qrdma_link_let_go(qs);
	release_sock(sk);
	sock->sk = NULL;
	sock_put(sk);
	return 0;
}

/*
 * The rest
 */

static int qrdma_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct sock *sk = sock->sk;
	struct qrdma_sock *qs = qrdma_sk(sk);
	u64 val = 0;

	/* Nothing is urgent here, so nobody is ever at the mark. */
	if (cmd == SIOCATMARK)
		return put_user(0, (int __user *)arg);
	if (cmd != SIOCINQ && cmd != SIOCOUTQ && cmd != SIOCOUTQNSD)
		return -ENOIOCTLCMD;
	if (READ_ONCE(sk->sk_state) == TCP_LISTEN)
		return -EINVAL;
	lock_sock(sk);
	qrdma_input_drain(qs);
	if (qs->conn && cmd == SIOCINQ)
		val = qrdma_conn_readable(qs->conn, 0);
	else if (qs->conn && cmd == SIOCOUTQ)
		val = qrdma_conn_unacked(qs->conn, 0);
	else if (qs->conn)
		val = qrdma_conn_unsent(qs->conn, 0);
	release_sock(sk);
	return put_user((int)min_t(u64, val, INT_MAX), (int __user *)arg);
}

static const struct proto_ops qrdma_proto_ops = {
	.family		= PF_QRDMA,
	.owner		= THIS_MODULE,
	.release	= qrdma_release,
	.bind		= qrdma_bind,
	.connect	= qrdma_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= qrdma_accept,
	.getname	= qrdma_getname,
	.poll		= qrdma_poll,
	.ioctl		= qrdma_ioctl,
	.gettstamp	= sock_gettstamp,
	.listen		= qrdma_listen,
	.shutdown	= qrdma_shutdown,
	.setsockopt	= qrdma_setsockopt,
	.getsockopt	= qrdma_getsockopt,
	.sendmsg	= qrdma_sendmsg,
	.recvmsg	= qrdma_recvmsg,
	.mmap		= sock_no_mmap,
	.set_peek_off	= qrdma_set_peek_off,
};

static int qrdma_create(struct net *net, struct socket *sock, int protocol, int kern)
{
	struct qrdma_sock *qs;
	struct sock *sk;

	if (sock->type != SOCK_STREAM)
		return -ESOCKTNOSUPPORT;
	if (protocol != QRDMA_PROTO_IPV4 && protocol != QRDMA_PROTO_IPV6)
		return -EPROTONOSUPPORT;
	if (protocol == QRDMA_PROTO_IPV6 && !IS_ENABLED(CONFIG_IPV6))
		return -EAFNOSUPPORT;
	sk = sk_alloc(net, PF_QRDMA, GFP_KERNEL, &qrdma_prot, kern);
	if (!sk)
		return -ENOBUFS;
	sock->ops = &qrdma_proto_ops;
	sock->state = SS_UNCONNECTED;
	sock_init_data(sock, sk);
	sk->sk_protocol = protocol;
	sk->sk_state = TCP_CLOSE;
	qs = qrdma_sk(sk);
	qrdma_link_init(qs, protocol == QRDMA_PROTO_IPV6);
	qrdma_setup_init(&qs->setup);
	sock_prot_inuse_add(net, &qrdma_prot, 1);
	return 0;
}

static const struct net_proto_family qrdma_family = {
	.family	= PF_QRDMA,
	.create	= qrdma_create,
	.owner	= THIS_MODULE,
};

static int qrdma_proc_show(struct seq_file *seq, void *v)
{
	struct qrdma_crypto_stats crypto;
	int i;

	for (i = 0; i < __QRDMA_STAT_MAX; i++)
		seq_printf(seq, "%s %llu\n", qrdma_stat_name(i), qrdma_stat_read(i));
	qrdma_crypto_stats_read(&crypto);
	seq_printf(seq, "crypto_sync %llu\n", crypto.sync);
	seq_printf(seq, "crypto_async %llu\n", crypto.async);
	seq_printf(seq, "crypto_failed %llu\n", crypto.failed);
	return 0;
}

/*
 * The same numbers in every namespace: lanes are shared, and so are those who cannot be told
 * apart before they are known.
 */
static int __net_init qrdma_net_init(struct net *net)
{
	if (!proc_create_net_single("qrdma", 0444, net->proc_net, qrdma_proc_show, NULL))
		return -ENOMEM;
	return 0;
}

static void __net_exit qrdma_net_exit(struct net *net)
{
	remove_proc_entry("qrdma", net->proc_net);
}

static struct pernet_operations qrdma_net_ops = {
	.init	= qrdma_net_init,
	.exit	= qrdma_net_exit,
};

static const struct qrdma_verbs_ops qrdma_verbs = {
	.rx		= qrdma_input_rx,
	.tx_room	= qrdma_output_tx_room,
};

/* What programs and tools come in by; family_stop() is the mirror. */
static int __init family_start(void)
{
	int err;

	err = register_pernet_subsys(&qrdma_net_ops);
	if (err)
		return err;
	err = proto_register(&qrdma_prot, 1);
	if (err)
		goto err_net;
	err = qrdma_genlink_start();
	if (err)
		goto err_proto;
	err = qrdma_diag_start();
	if (err)
		goto err_genlink;
	err = sock_register(&qrdma_family);
	if (err)
		goto err_diag;
	return 0;

err_diag:
	qrdma_diag_stop();
err_genlink:
	qrdma_genlink_stop();
err_proto:
	proto_unregister(&qrdma_prot);
err_net:
	unregister_pernet_subsys(&qrdma_net_ops);
	return err;
}

static void __exit family_stop(void)
{
	sock_unregister(PF_QRDMA);
	qrdma_diag_stop();
	qrdma_genlink_stop();
	/*
	 * A socket's memory and its slots go by RCU; timers and completions that dropped the last
	 * reference are through their softirq after a grace period.
	 */
	rcu_barrier();
	proto_unregister(&qrdma_prot);
	unregister_pernet_subsys(&qrdma_net_ops);
}

/*
 * Bottom to top; qrdma_exit() is the mirror. Sockets hold the module, so none is left when exit
 * begins; what may still run are the last instructions of callbacks that dropped the last
 * reference, and each stop waits for its own.
 */
static int __init qrdma_init(void)
{
	int err;

	err = qrdma_crypto_start();
	if (err)
		return err;
	err = qrdma_token_start();
	if (err)
		goto err_crypto;
	err = qrdma_agent_start(&qrdma_genlink_agents);
	if (err)
		goto err_token;
	err = qrdma_purse_start();
	if (err)
		goto err_agent;
	err = qrdma_retry_start();
	if (err)
		goto err_purse;
	err = qrdma_listen_start();
	if (err)
		goto err_retry;
	err = qrdma_sock_start();
	if (err)
		goto err_listen;
	err = qrdma_demux_start();
	if (err)
		goto err_sock;
	err = qrdma_output_start();
	if (err)
		goto err_demux;
	err = qrdma_input_start();
	if (err)
		goto err_output;
	err = qrdma_device_start(&qrdma_verbs);
	if (err)
		goto err_input;
	err = qrdma_peer_start();
	if (err)
		goto err_device;
	err = qrdma_reset_start();
	if (err)
		goto err_peer;
	qrdma_answer_start();
	err = family_start();
	if (err)
		goto err_answer;
	return 0;

err_answer:
	qrdma_answer_stop();
	qrdma_reset_stop();
err_peer:
	qrdma_peer_stop();
err_device:
	qrdma_device_stop();
err_input:
	qrdma_input_stop();
err_output:
	qrdma_output_stop();
err_demux:
	qrdma_demux_stop();
err_sock:
	qrdma_sock_stop();
err_listen:
	qrdma_listen_stop();
err_retry:
	qrdma_retry_stop();
err_purse:
	qrdma_purse_stop();
err_agent:
	qrdma_agent_stop();
err_token:
	qrdma_token_stop();
err_crypto:
	qrdma_crypto_stop();
	return err;
}

static void __exit qrdma_exit(void)
{
	family_stop();
	qrdma_answer_stop();
	qrdma_reset_stop();
	qrdma_peer_stop();
	qrdma_device_stop();
	qrdma_input_stop();
	qrdma_output_stop();
	qrdma_demux_stop();
	qrdma_sock_stop();
	qrdma_listen_stop();
	qrdma_retry_stop();
	qrdma_purse_stop();
	qrdma_agent_stop();
	qrdma_token_stop();
	qrdma_crypto_stop();
}

module_init(qrdma_init);
module_exit(qrdma_exit);

MODULE_DESCRIPTION("AF_QRDMA: QUIC in RDMA unreliable datagrams, as sockets");
MODULE_LICENSE("GPL");
MODULE_ALIAS_NETPROTO(PF_QRDMA);
QRDMA_IMPORTS;
