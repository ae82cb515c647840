/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Transport parameters (RFC 9000 s18, max_datagram_frame_size of RFC 9221 s3).
 *
 * Owns: the table of parameters with their ranges and defaults, which is constant.
 * Called by: conn.c and, for what a handshake in userspace brings, sockopt.c. Context: any.
 * Lock: none.
 */
#ifndef QRDMA_CORE_TPARAM_H
#define QRDMA_CORE_TPARAM_H

#include "env.h"
#include "cursor.h"
#include "header.h"

/** enum qrdma_tparam_id - values on the wire (RFC 9000 s18.2, RFC 9221 s3) */
enum qrdma_tparam_id {
	QRDMA_TP_ORIGINAL_DCID			= 0x00,	/* server only */
	QRDMA_TP_MAX_IDLE_TIMEOUT		= 0x01,
	QRDMA_TP_STATELESS_RESET_TOKEN		= 0x02,	/* server only */
	QRDMA_TP_MAX_UDP_PAYLOAD_SIZE		= 0x03,
	QRDMA_TP_INITIAL_MAX_DATA		= 0x04,
	QRDMA_TP_INITIAL_MAX_STREAM_DATA_BIDI_LOCAL = 0x05,
	QRDMA_TP_INITIAL_MAX_STREAM_DATA_BIDI_REMOTE = 0x06,
	QRDMA_TP_INITIAL_MAX_STREAM_DATA_UNI	= 0x07,
	QRDMA_TP_INITIAL_MAX_STREAMS_BIDI	= 0x08,
	QRDMA_TP_INITIAL_MAX_STREAMS_UNI	= 0x09,
	QRDMA_TP_ACK_DELAY_EXPONENT		= 0x0a,
	QRDMA_TP_MAX_ACK_DELAY			= 0x0b,
	QRDMA_TP_DISABLE_ACTIVE_MIGRATION	= 0x0c,
	QRDMA_TP_PREFERRED_ADDRESS		= 0x0d,	/* server only */
	QRDMA_TP_ACTIVE_CID_LIMIT		= 0x0e,
	QRDMA_TP_INITIAL_SCID			= 0x0f,
	QRDMA_TP_RETRY_SCID			= 0x10,	/* server only */
	QRDMA_TP_MAX_DATAGRAM_FRAME_SIZE	= 0x20,
};

/* RFC 9000 s18.2 calls a max_udp_payload_size below 1200 invalid. A QRDMA datagram over a
 * 1500-byte Ethernet has 1020 bytes, so an honest peer says 1020: that is the bound
 * here. Peers that only speak to larger paths send 1200 or more and notice no difference.
 */
#define QRDMA_TP_MAX_UDP_PAYLOAD_MIN	1020
#define QRDMA_TP_MAX_UDP_PAYLOAD_MAX	65527	/* default, RFC 9000 s18.2 */

/* bytes that suffice for any set that qrdma_tparams_encode() can write */
#define QRDMA_TP_ENCODED_MAX		384

/**
 * struct qrdma_preferred_address - where the server would rather be (RFC 9000 s18.2)
 * @ipv4: address, network order; address and port all zero: none
 * @ipv4_port: port, host order
 * @ipv6: address, network order; address and port all zero: none
 * @ipv6_port: port, host order
 * @cid: connection id of sequence number 1, 1..20 bytes
 * @reset_token: of @cid
 */
struct qrdma_preferred_address {
	u8 ipv4[4];
	u16 ipv4_port;
	u8 ipv6[16];
	u16 ipv6_port;
	struct qrdma_cid cid;
	u8 reset_token[QRDMA_RESET_TOKEN_LEN];
};

/**
 * struct qrdma_tparams - the transport parameters of one end, sent or received
 * @max_idle_timeout: milliseconds; 0: none
 * @max_udp_payload_size: bytes, 1020.. (see QRDMA_TP_MAX_UDP_PAYLOAD_MIN); default 65527. Values
 *	over 65527 are allowed and mean no limit.
 * @initial_max_data: bytes
 * @initial_max_stream_data_bidi_local: bytes, streams opened by the end that sends this
 * @initial_max_stream_data_bidi_remote: bytes, streams opened by the end that receives this
 * @initial_max_stream_data_uni: bytes
 * @initial_max_streams_bidi: streams, up to 2^60
 * @initial_max_streams_uni: streams, up to 2^60
 * @ack_delay_exponent: 0..20; default 3
 * @max_ack_delay: milliseconds, 0..16383; default 25
 * @active_cid_limit: 2..; default 2
 * @max_datagram_frame_size: bytes of the whole DATAGRAM frame; 0: none welcome
 * @present: bit n: parameter n (below 64) was received; for sending: which of the fields below
 *	are valid
 * @disable_active_migration: the flag
 * @original_dcid: server: destination connection id of the client's first Initial
 * @initial_scid: source connection id of the first Initial
 * @retry_scid: server: source connection id of the Retry
 * @reset_token: server: for the connection id of the handshake
 * @preferred: server: preferred address
 *
 * Owned by: its holder, flat, may be copied. Protected by: the caller.
 */
struct qrdma_tparams {
	u64 max_idle_timeout;
	u64 max_udp_payload_size;
	u64 initial_max_data;
	u64 initial_max_stream_data_bidi_local;
	u64 initial_max_stream_data_bidi_remote;
	u64 initial_max_stream_data_uni;
	u64 initial_max_streams_bidi;
	u64 initial_max_streams_uni;
	u64 ack_delay_exponent;
	u64 max_ack_delay;
	u64 active_cid_limit;
	u64 max_datagram_frame_size;
	u64 present;
	bool disable_active_migration;
	struct qrdma_cid original_dcid;
	struct qrdma_cid initial_scid;
	struct qrdma_cid retry_scid;
	u8 reset_token[QRDMA_RESET_TOKEN_LEN];
	struct qrdma_preferred_address preferred;
};

static inline bool qrdma_tparams_has(const struct qrdma_tparams *tp, enum qrdma_tparam_id id)
{
	return tp->present & BIT_ULL(id);
}

/**
 * qrdma_tparams_init() - what holds for an end that sent nothing (RFC 9000 s18.2)
 * @tp: set to the defaults
 */
void qrdma_tparams_init(struct qrdma_tparams *tp);

/**
 * qrdma_tparams_valid() - are all integer parameters within their ranges?
 * @tp: the parameters
 *
 * Return: true when they are.
 */
bool qrdma_tparams_valid(const struct qrdma_tparams *tp);

/**
 * qrdma_tparams_decode() - read what the peer sent
 * @tp: the parameters, absent ones with their defaults; no meaning after an error
 * @data: value of the TLS extension quic_transport_parameters
 * @len: its length
 * @from_server: the peer is the server
 *
 * Unknown parameters are passed over (RFC 9000 s7.4.2), repeated known ones are an error (s7.4).
 * Whether the connection ids are there and right (s7.3) is for the caller to see: it depends on
 * how the handshake went.
 *
 * Return: QRDMA_ERR_NO_ERROR or QRDMA_ERR_TRANSPORT_PARAMETER_ERROR (frame.h).
 */
u64 qrdma_tparams_decode(struct qrdma_tparams *tp, const u8 *data, size_t len, bool from_server);

/**
 * qrdma_tparams_encode() - write what we send
 * @w: where; QRDMA_TP_ENCODED_MAX bytes are always enough
 * @tp: integers that differ from their default are written, and so is every other parameter
 *	whose bit in present is set (the flag: when it is true)
 * @from_server: we are the server; a client's server-only parameters are left out
 *
 * Return: false when there is no room or a value is out of range.
 */
bool qrdma_tparams_encode(struct qrdma_writer *w, const struct qrdma_tparams *tp, bool from_server);

#endif /* QRDMA_CORE_TPARAM_H */
