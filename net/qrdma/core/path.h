/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The path of one connection: connection ids of both ends, path validation answers, datagram size.
 *
 * Owns: the ids that the peer gave us and which of them is in use, what is owed to the peer about
 * them, its path challenges. The address is the datapath's: nothing here names one.
 * Called by: conn.c, conn_rx.c (received frames) and packer.c (what to send), under the socket
 * lock; never sleeps, allocates nothing.
 *
 * We issue one connection id, number 0, which the handshake brings to the peer (RFC 9000 s5.1.1).
 */
#ifndef QRDMA_CORE_PATH_H
#define QRDMA_CORE_PATH_H

#include "env.h"
#include "header.h"

#define QRDMA_PATH_CIDS		4	/* ids of the peer: bounds our active_connection_id_limit */
#define QRDMA_PATH_RETIRES	(2 * QRDMA_PATH_CIDS)	/* of them retired, not acked (s5.1.2) */
#define QRDMA_PATH_RESPONSES	4	/* PATH_RESPONSE frames owed (field case F64) */
#define QRDMA_PATH_DATA		8	/* bytes of PATH_CHALLENGE */
#define QRDMA_PATH_TOKEN	16	/* bytes of a stateless reset token */
#define QRDMA_PATH_EXPAND	1200	/* bytes of a datagram that validates a path (s8.2.1) */

/**
 * struct qrdma_path_cid - a connection id of the peer
 * @seq: its sequence number
 * @cid: the id
 * @token: its stateless reset token; zero for number 0 unless the peer gave one in the handshake
 */
struct qrdma_path_cid {
	u64 seq;
	struct qrdma_cid cid;
	u8 token[QRDMA_PATH_TOKEN];
};

/**
 * struct qrdma_path - see above
 * @scid: our connection id
 * @max_datagram: largest QUIC datagram that the path takes, bytes
 * @cids_max: how many ids of the peer may be active: our active_connection_id_limit
 * @nr_cids: in use of @cids
 * @nr_retires: in use of @retires
 * @nr_responses: in use of @responses
 * @cids: active ids of the peer in order of arrival; the first is the one in use
 * @retire_below: largest Retire Prior To seen
 * @retires: sequence numbers retired and not acknowledged
 * @retire_due: bit per element of @retires: to be sent (again)
 * @responses: challenges to be answered, oldest first
 * @refused: challenges dropped because @responses was full
 *
 * Owned by: the connection, embedded. Protected by: the socket lock.
 */
struct qrdma_path {
	struct qrdma_cid scid;
	u32 max_datagram;
	u8 cids_max;
	u8 nr_cids;
	u8 nr_retires;
	u8 nr_responses;
	struct qrdma_path_cid cids[QRDMA_PATH_CIDS];
	u64 retire_below;
	u64 retires[QRDMA_PATH_RETIRES];
	u32 retire_due;
	u8 responses[QRDMA_PATH_RESPONSES][QRDMA_PATH_DATA];
	u64 refused;
};

/**
 * qrdma_path_init() - the path that the handshake left us
 * @path: object
 * @scid: our connection id, QRDMA_CID_LEN bytes
 * @dcid: the peer's, its number 0
 * @cids_max: our active_connection_id_limit (RFC 9000 s18.2), 2..QRDMA_PATH_CIDS
 * @max_datagram: bytes
 *
 * Return: 0; -EINVAL: a value out of range.
 */
int qrdma_path_init(struct qrdma_path *path, const struct qrdma_cid *scid,
		    const struct qrdma_cid *dcid, u64 cids_max, u32 max_datagram);

/**
 * qrdma_path_dcid() - the connection id to send to
 * @path: object
 */
static inline const struct qrdma_cid *qrdma_path_dcid(const struct qrdma_path *path)
{
	return &path->cids[0].cid;
}

/**
 * qrdma_path_set_peer() - the peer's id of number 0 became known, or another (RFC 9000 s7.2)
 * @path: object, during a handshake in band
 * @cid: the id
 */
void qrdma_path_set_peer(struct qrdma_path *path, const struct qrdma_cid *cid);

/**
 * qrdma_path_set_token() - the stateless reset token of number 0 (RFC 9000 s18.2)
 * @path: object
 * @token: QRDMA_PATH_TOKEN bytes
 */
void qrdma_path_set_token(struct qrdma_path *path, const u8 *token);

/**
 * qrdma_path_token() - what a stateless reset of the peer would end with (RFC 9000 s10.3.1)
 * @path: object
 *
 * Only the id in use counts: the peer has no reason to answer to another.
 *
 * Return: QRDMA_PATH_TOKEN bytes, NULL: the peer gave none.
 */
const u8 *qrdma_path_token(const struct qrdma_path *path);

/**
 * qrdma_path_is_reset() - is it a stateless reset of the peer?
 * @path: object
 * @tail: the last QRDMA_PATH_TOKEN bytes of a datagram
 *
 * Takes the same time whatever the bytes are (RFC 9000 s10.3.1).
 */
bool qrdma_path_is_reset(const struct qrdma_path *path, const u8 *tail);

/**
 * qrdma_path_on_new_cid() - NEW_CONNECTION_ID came in (RFC 9000 s19.15, s5.1.1, s5.1.2)
 * @path: object
 * @seq: sequence number
 * @retire_below: Retire Prior To, at most @seq
 * @cid: the id
 * @token: stateless reset token, QRDMA_PATH_TOKEN bytes
 * @verdict: QUIC error code after -EPROTO: PROTOCOL_VIOLATION, CONNECTION_ID_LIMIT_ERROR,
 *	FRAME_ENCODING_ERROR
 *
 * Return: 0 or -EPROTO; nothing changed then.
 */
int qrdma_path_on_new_cid(struct qrdma_path *path, u64 seq, u64 retire_below,
			  const struct qrdma_cid *cid, const u8 *token, u64 *verdict);

/**
 * qrdma_path_on_retire_cid() - RETIRE_CONNECTION_ID came in (RFC 9000 s19.16)
 * @path: object
 * @seq: sequence number of an id of ours
 * @verdict: QUIC error code after -EPROTO
 *
 * We have issued number 0 alone, and the packet itself was sent to it: neither it nor an id that
 * was never issued can be retired by a peer that keeps to the protocol.
 *
 * Return: -EPROTO, *@verdict is PROTOCOL_VIOLATION.
 */
int qrdma_path_on_retire_cid(const struct qrdma_path *path, u64 seq, u64 *verdict);

/**
 * qrdma_path_on_challenge() - PATH_CHALLENGE came in (RFC 9000 s8.2.2)
 * @path: object
 * @data: QRDMA_PATH_DATA bytes to be sent back
 *
 * Return: false: dropped and counted, too many wait for their answer.
 */
bool qrdma_path_on_challenge(struct qrdma_path *path, const u8 *data);

/**
 * qrdma_path_next_response() - take the next PATH_RESPONSE to be sent
 * @path: object
 * @data: QRDMA_PATH_DATA bytes
 *
 * It is sent once: the peer repeats its challenge (RFC 9000 s13.3).
 *
 * Return: false when there is none.
 */
bool qrdma_path_next_response(struct qrdma_path *path, u8 *data);

/**
 * qrdma_path_next_retire() - take the next RETIRE_CONNECTION_ID to be sent
 * @path: object
 * @seq: sequence number that it retires
 *
 * Return: false when there is none.
 */
bool qrdma_path_next_retire(struct qrdma_path *path, u64 *seq);

/**
 * qrdma_path_retire_acked() - a RETIRE_CONNECTION_ID frame arrived
 * @path: object
 * @seq: the number in it
 */
void qrdma_path_retire_acked(struct qrdma_path *path, u64 seq);

/**
 * qrdma_path_retire_lost() - a RETIRE_CONNECTION_ID frame was lost: send it again
 * @path: object
 * @seq: the number in it
 */
void qrdma_path_retire_lost(struct qrdma_path *path, u64 seq);

/**
 * qrdma_path_pending() - is a frame of the path to be sent?
 * @path: object
 */
static inline bool qrdma_path_pending(const struct qrdma_path *path)
{
	return path->nr_responses || path->retire_due;
}

#endif /* QRDMA_CORE_PATH_H */
