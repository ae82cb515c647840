/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * AF_QRDMA: sockets whose bytes travel as QUIC packets in RDMA unreliable datagrams.
 *
 * The family number is 18, the slot of AF_ASH, which Linux never implemented: sock_register()
 * refuses numbers beyond the kernel's own table, and 18 is free in all kernels that the module
 * supports.
 */
#ifndef _UAPI_LINUX_QRDMA_H
#define _UAPI_LINUX_QRDMA_H

#include <linux/types.h>

#ifndef AF_QRDMA
#define AF_QRDMA	18
#define PF_QRDMA	AF_QRDMA
#endif

/* Third argument of socket(): which addresses the socket takes, as AF_SMC does. */
#define QRDMA_PROTO_IPV4	0
#define QRDMA_PROTO_IPV6	1

#define SOL_QRDMA	288

/*
 * Socket options of SOL_QRDMA. Names, structures and meaning follow draft-lxin-quic-socket-apis
 * where it has one.
 *
 * Every structure is of fixed size and its reserved bytes must be zero: a wrong size or dirty
 * padding is EINVAL, and so is a value out of range. A get with a buffer shorter than the
 * structure is EINVAL too; a longer one is filled up to the structure's size. What must be set
 * before connect() is EISCONN afterwards (EALREADY while connecting). Out of band connect() needs
 * connection ids, the peer's transport parameters and both secrets; with some of them it is ENOKEY,
 * and with none it is struct qrdma_config that says who makes the handshake.
 */
/* struct qrdma_connection_ids, set: before connect(), out of band */
#define QRDMA_CONNECTION_ID	4
/* struct qrdma_connection_close, set: close with a code; get: why it was closed */
#define QRDMA_CONNECTION_CLOSE	5
/* no value (length 0), set: start a key update; EAGAIN: the last one is not confirmed yet */
#define QRDMA_KEY_UPDATE	7
/* struct qrdma_transport_param, set and get; get looks at "remote" of the caller's buffer */
#define QRDMA_TRANSPORT_PARAM	8
#define QRDMA_CONFIG		9	/* struct qrdma_config, set before connect() and get */
/* struct qrdma_handshake_result, set: how TLS ended */
#define QRDMA_HANDSHAKE_RESULT	10
/*
 * bytes, up to QRDMA_TRANSPORT_PARAM_EXT_MAX: value of the TLS extension quic_transport_parameters;
 * get: ours, set: the peer's; EPROTO: they are refused, and the connection closes
 */
#define QRDMA_TRANSPORT_PARAM_EXT	11
/*
 * bytes, get: TLS messages that came after the handshake (NewSessionTicket) and were not yet
 * fetched; ENODATA: none
 */
#define QRDMA_SESSION_TICKET	12
/* struct qrdma_crypto_secret, set only: secrets go in, never out */
#define QRDMA_CRYPTO_SECRET	13
#define QRDMA_INFO		64	/* struct qrdma_info, get */

/* Role of an end whose handshake ran out of band. */
#define QRDMA_ROLE_CLIENT	0
#define QRDMA_ROLE_SERVER	1

/* the ids that AF_QRDMA makes and takes for itself */
#define QRDMA_CONNECTION_ID_LEN		8
#define QRDMA_CONNECTION_ID_MAX		20

struct qrdma_connection_ids {
	__u8	role;			/* QRDMA_ROLE_* */
	__u8	source_len;		/* QRDMA_CONNECTION_ID_LEN */
	__u8	dest_len;		/* 0 .. QRDMA_CONNECTION_ID_MAX */
	/* and the bytes of source and dest behind their lengths: zero */
	__u8	reserved[5];
	__u8	source[QRDMA_CONNECTION_ID_MAX];	/* the id that the peer sends to us */
	__u8	dest[QRDMA_CONNECTION_ID_MAX];		/* the id that we send to the peer */
};

struct qrdma_connection_close {
	__u64	code;			/* QUIC error code */
	__u64	frame_type;
	__u8	app;			/* 1: application error code (frame 0x1d); set: must be 1 */
	__u8	remote;			/* get: 1 when the peer closed; set: 0 */
	__u8	reserved[2];
	__u32	reason;			/* get: QRDMA_REASON_*; set: 0 */
};

/* Why a connection failed or ended: finer than the errno of the socket, for people and tools. */
#define QRDMA_REASON_NONE		0
/* no RDMA device of this network namespace has the local address */
#define QRDMA_REASON_NO_DEVICE		1
#define QRDMA_REASON_NO_ROUTE		2	/* the address did not resolve to a neighbour */
#define QRDMA_REASON_NO_SERVICE		3	/* the host is there and has no AF_QRDMA */
#define QRDMA_REASON_INCOMPATIBLE	4	/* the host's AF_QRDMA speaks another version */
/* the host or the peer's socket did not answer in time */
#define QRDMA_REASON_NO_ANSWER		5
/* the RDMA device was removed, and no other reaches the peer */
#define QRDMA_REASON_DEVICE_GONE	6
#define QRDMA_REASON_IDLE		7	/* idle time-out (RFC 9000 s10.1) */
#define QRDMA_REASON_LOCAL_CLOSE	8	/* closed from this end */
#define QRDMA_REASON_PEER_CLOSE		9	/* closed by the peer's application */
#define QRDMA_REASON_PEER_ERROR		10	/* the peer found an error of protocol: see code */
#define QRDMA_REASON_PROTOCOL		11	/* this end found an error of protocol: see code */
/* the keys may not be used any more (RFC 9001 s6.6) */
#define QRDMA_REASON_KEY_LIMIT		12
#define QRDMA_REASON_NO_MEMORY		13
/* the peer's host has lost the connection, it was restarted (RFC 9000 s10.3) */
#define QRDMA_REASON_PEER_LOST		14
/* TLS failed: the alert is the code's low byte, and "remote" tells whose it was */
#define QRDMA_REASON_HANDSHAKE		15
/* nobody here makes handshakes: see QRDMA_HANDSHAKE_AGENT */
#define QRDMA_REASON_NO_AGENT		16

#define QRDMA_RESET_TOKEN_SIZE	16

/* What "0" says is a default stands for it when set, and get tells the value in force. */
struct qrdma_transport_param {
	__u8	remote;			/* 1: the peer's parameters, 0: our own */
	__u8	disable_active_migration;
	__u8	ack_delay_exponent;	/* 0 .. 20 */
	__u8	active_connection_id_limit;	/* 2 .. 4 for our own, 0: default */
	__u32	max_ack_delay;		/* microseconds */
	__u32	max_udp_payload_size;	/* bytes; 0: as the device allows */
	__u32	max_idle_timeout;	/* microseconds, 0: none */
	/* first credit, 0: default; it grows up to half of SO_RCVBUF as the application reads */
	__u64	max_data;
	__u64	max_stream_data_bidi_local;
	__u64	max_stream_data_bidi_remote;
	__u64	max_stream_data_uni;
	/*
	 * 0 and 1 stand for the byte stream: 1 for a server, 0 for a client, which opens it; get
	 * says 1 as long as the role is not set
	 */
	__u64	max_streams_bidi;
	__u64	max_streams_uni;
	__u64	max_datagram_frame_size;
	/*
	 * What a host that has lost the connection ends its answer with (RFC 9000 s10.3); zero:
	 * none. Our own is made from our connection id: get tells it once that is set (a
	 * destination of length 0 will do until the peer's is known), and set takes nothing else.
	 */
	__u8	stateless_reset_token[QRDMA_RESET_TOKEN_SIZE];
};

/* Congestion controllers. */
#define QRDMA_CONG_CUBIC	0
#define QRDMA_CONG_NEWRENO	1

/* Who speaks TLS when there are no keys of an out-of-band handshake. */
/* nobody: connect() is ENOKEY, listen() too */
#define QRDMA_HANDSHAKE_NONE	0
/*
 * this program. connect() returns as soon as handshake bytes can be sent, accept() as soon as some
 * have come; they go through sendmsg() and recvmsg() with QRDMA_HANDSHAKE_INFO, the secrets through
 * QRDMA_CRYPTO_SECRET. Accepted sockets inherit it.
 */
#define QRDMA_HANDSHAKE_SELF	1
/*
 * the agent of the network namespace (linux/qrdma_genl.h); what a new socket has. connect() and
 * accept() complete when the connection is established, and the program sees nothing of the
 * handshake: what belongs to one is EBUSY. Without an agent connect() is ESRCH, and who connects to
 * a listener is refused.
 */
#define QRDMA_HANDSHAKE_AGENT	2

struct qrdma_config {
	__u32	congestion;		/* QRDMA_CONG_* */
	/* microseconds, timer granularity (RFC 9002 kGranularity), up to 1,000,000, 0: default */
	__u32	granularity;
	__u32	connect_timeout;	/* milliseconds, 0: default */
	/* milliseconds that a closed socket goes on delivering, 0: default */
	__u32	linger_timeout;
	__u32	handshake;		/* QRDMA_HANDSHAKE_* */
	__u32	reserved2;
	__u64	reserved[1];
};

/* Encryption levels (RFC 9001 s2.1), in the order of the draft. */
#define QRDMA_CRYPTO_APP	0	/* 1-RTT */
#define QRDMA_CRYPTO_INITIAL	1
#define QRDMA_CRYPTO_HANDSHAKE	2
#define QRDMA_CRYPTO_EARLY	3	/* 0-RTT */

/* Values of linux/tls.h, repeated as the draft does so that this header stands alone. */
#define QRDMA_CIPHER_AES_GCM_128	51
#define QRDMA_CIPHER_AES_GCM_256	52
#define QRDMA_CIPHER_AES_CCM_128	53
#define QRDMA_CIPHER_CHACHA20		54	/* with Poly1305 */

#define QRDMA_CRYPTO_SECRET_SIZE	48

/*
 * The same secret twice in one direction is EEXIST; both directions must be of one type; ENOPKG:
 * no such cipher here.
 */
struct qrdma_crypto_secret {
	__u8	send;			/* 1: we seal with it, 0: we open with it */
	__u8	level;			/* QRDMA_CRYPTO_*; out of band: APP */
	__u16	reserved;
	__u32	type;			/* QRDMA_CIPHER_* */
	/* 32 bytes for SHA-256 suites, 48 for AES-256-GCM; the rest zero */
	__u8	secret[QRDMA_CRYPTO_SECRET_SIZE];
};

/* most bytes that QRDMA_TRANSPORT_PARAM_EXT takes or gives */
#define QRDMA_TRANSPORT_PARAM_EXT_MAX	1024

struct qrdma_handshake_result {
	/* 0: complete, both ends are known to each other; else what the socket's error shall be */
	__u32	error;
	__u8	alert;			/* TLS alert that the peer is told when there is an error */
	/*
	 * 1, a client that showed a certificate, or was asked for one: established only when the
	 * server has confirmed the handshake, one round trip later; if it refuses, connect() fails
	 */
	__u8	judged;
	__u8	reserved[2];
};

/*
 * Control message of SOL_QRDMA: the bytes of this call are TLS handshake messages, without records.
 * sendmsg(): of that level, all or none; EMSGSIZE: more than 16 KiB at once. recvmsg(), until the
 * connection is established: of one level for each call; EINVAL without room for it.
 */
#define QRDMA_HANDSHAKE_INFO	1

struct qrdma_handshake_info {
	__u8	level;			/* QRDMA_CRYPTO_INITIAL, _HANDSHAKE, _APP */
	__u8	reserved[7];
};

#define QRDMA_STATE_INIT	0
#define QRDMA_STATE_CONNECTING	1
#define QRDMA_STATE_ESTABLISHED	2
#define QRDMA_STATE_CLOSING	3
#define QRDMA_STATE_CLOSED	4
#define QRDMA_STATE_HANDSHAKE	5	/* in band: QRDMA_HANDSHAKE_INFO */
#define QRDMA_STATE_LISTEN	6

/* Are our packets marked as ECN-capable (RFC 3168, RFC 9000 section 13.4)? */
#define QRDMA_INFO_ECN_OFF	0
#define QRDMA_INFO_ECN_TESTING	1
#define QRDMA_INFO_ECN_ON	2
#define QRDMA_INFO_ECN_FAILED	3	/* no: the path, or the peer, does not bear it */

struct qrdma_info {
	__u8	state;			/* QRDMA_STATE_* */
	__u8	key_phase;
	__u8	role;			/* QRDMA_ROLE_* */
	__u8	port;			/* port of the RDMA device, 0: none yet */
	__u32	cipher;			/* QRDMA_CIPHER_*, 0 before a secret is in */
	__u64	srtt;			/* nanoseconds */
	__u64	rttvar;
	__u64	min_rtt;
	__u64	cwnd;			/* bytes */
	__u64	ssthresh;
	__u64	in_flight;
	__u64	packets_sent;
	__u64	packets_received;
	__u64	packets_lost;
	__u64	packets_spurious;	/* declared lost, acknowledged later */
	__u64	packets_opened;		/* tag verified */
	__u64	packets_failed;		/* tag did not verify */
	__u64	packets_dropped;	/* for another reason */
	__u64	bytes_sent;		/* datagram bytes */
	__u64	bytes_received;
	__u64	bytes_acked;		/* stream bytes */
	__u64	bytes_delivered;	/* stream bytes handed to the application */
	__u64	key_updates;
	__u32	pto_count;
	__u32	max_datagram;		/* largest QUIC datagram on this path, bytes */
	__u32	local_qpn;
	__u32	remote_qpn;
	__u32	flow_label;
	__u32	lane;			/* number of the lane on that port */
	/* how often the lane's QP was brought back from the error state */
	__u32	lane_resets;
	/* how often the connection moved to a new answer of address resolution */
	__u32	peer_changes;
	char	device[64];		/* name of the RDMA device */
	/* times that more than 1 % of the packets were lost, and the pace was cut for it */
	__u64	loss_events;
	__u64	packets_ce;		/* received with a congestion mark (ECN-CE) */
	__u64	packets_ce_remote;	/* of ours, received so by the peer */
	__u32	ecn;			/* QRDMA_INFO_ECN_* */
	__u32	reserved32;
	__u64	reserved[4];
};

#endif /* _UAPI_LINUX_QRDMA_H */
