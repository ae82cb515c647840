// SPDX-License-Identifier: GPL-2.0
/*
 * Connection ids, path challenges and the datagram size of one connection.
 *
 * Owns: struct qrdma_path. Called by: conn.c, conn_rx.c and packer.c under the socket lock. Every
 * array here is filled by the peer and bounded: over the bound it is an error of the peer's
 * (ids, retirements) or a dropped and counted request (challenges).
 */
#include "path.h"
#include "frame.h"

int qrdma_path_init(struct qrdma_path *path, const struct qrdma_cid *scid,
		    const struct qrdma_cid *dcid, u64 cids_max, u32 max_datagram)
{
	if (scid->len != QRDMA_CID_LEN || dcid->len > QRDMA_CID_MAX || cids_max < 2 ||
	    cids_max > QRDMA_PATH_CIDS || max_datagram < QRDMA_DATAGRAM_MIN)
		return -EINVAL;
	memset(path, 0, sizeof(*path));
	path->scid = *scid;
	path->max_datagram = max_datagram;
	path->cids_max = cids_max;
	path->nr_cids = 1;
	path->cids[0].cid = *dcid;
	return 0;
}

void qrdma_path_set_peer(struct qrdma_path *path, const struct qrdma_cid *cid)
{
	path->cids[0].cid = *cid;
}

void qrdma_path_set_token(struct qrdma_path *path, const u8 *token)
{
	u32 i;

	for (i = 0; i < path->nr_cids; i++) {
		if (!path->cids[i].seq)
			memcpy(path->cids[i].token, token, QRDMA_PATH_TOKEN);
	}
}

const u8 *qrdma_path_token(const struct qrdma_path *path)
{
	static const u8 none[QRDMA_PATH_TOKEN];
	const u8 *token = path->cids[0].token;

	return memcmp(token, none, sizeof(none)) ? token : NULL;
}

bool qrdma_path_is_reset(const struct qrdma_path *path, const u8 *tail)
{
	const u8 *token = path->cids[0].token;
	u8 differ = 0;
	u32 i;

	for (i = 0; i < QRDMA_PATH_TOKEN; i++)
		differ |= token[i] ^ tail[i];
	return !differ && qrdma_path_token(path);
}

/* A number seen before must bring the same id and token, an id seen before the same number. */
static bool path_contradicts(const struct qrdma_path *path, u64 seq, const struct qrdma_cid *cid,
			     const u8 *token, bool *known)
{
	const struct qrdma_path_cid *have;
	u32 i;

	*known = false;
	for (i = 0; i < path->nr_cids; i++) {
		have = &path->cids[i];
		if (have->seq != seq) {
			if (qrdma_cid_equal(&have->cid, cid))
				return true;
			continue;
		}
		*known = true;
		if (!qrdma_cid_equal(&have->cid, cid))
			return true;
		/* number 0 came with the handshake; whether it had a token is not known here */
		if (seq && memcmp(have->token, token, QRDMA_PATH_TOKEN))
			return true;
	}
	return false;
}

static bool path_is_retiring(const struct qrdma_path *path, u64 seq)
{
	u32 i;

	for (i = 0; i < path->nr_retires; i++) {
		if (path->retires[i] == seq)
			return true;
	}
	return false;
}

static void path_retire(struct qrdma_path *path, u64 seq)
{
	path->retire_due |= BIT(path->nr_retires);
	path->retires[path->nr_retires++] = seq;
}

int qrdma_path_on_new_cid(struct qrdma_path *path, u64 seq, u64 retire_below,
			  const struct qrdma_cid *cid, const u8 *token, u64 *verdict)
{
	struct qrdma_path_cid *new;
	u32 i, kept = 0, gone = 0;
	bool known, add, late;

	*verdict = QRDMA_ERR_PROTOCOL_VIOLATION;
	if (!qrdma_path_dcid(path)->len)
		return -EPROTO;
	if (path_contradicts(path, seq, cid, token, &known))
		return -EPROTO;
	*verdict = QRDMA_ERR_FRAME_ENCODING_ERROR;
	if (retire_below > seq || !cid->len || cid->len > QRDMA_CID_MAX)
		return -EPROTO;

	*verdict = QRDMA_ERR_CONNECTION_ID_LIMIT_ERROR;
	retire_below = max(retire_below, path->retire_below);
	for (i = 0; i < path->nr_cids; i++)
		gone += path->cids[i].seq < retire_below;
	add = !known && seq >= retire_below;
	/* an id that arrives after it was retired is retired at once (s19.15) */
	late = !known && !add && !path_is_retiring(path, seq);
	if (path->nr_cids - gone + add > path->cids_max ||
	    path->nr_retires + gone + late > QRDMA_PATH_RETIRES)
		return -EPROTO;

	path->retire_below = retire_below;
	if (late)
		path_retire(path, seq);
	for (i = 0; i < path->nr_cids; i++) {
		if (path->cids[i].seq < retire_below)
			path_retire(path, path->cids[i].seq);
		else
			path->cids[kept++] = path->cids[i];
	}
	path->nr_cids = kept;
	if (add) {
		new = &path->cids[path->nr_cids++];
		new->seq = seq;
		new->cid = *cid;
		memcpy(new->token, token, QRDMA_PATH_TOKEN);
	}
	return 0;
}

int qrdma_path_on_retire_cid(const struct qrdma_path *path, u64 seq, u64 *verdict)
{
	*verdict = QRDMA_ERR_PROTOCOL_VIOLATION;
	return -EPROTO;
}

bool qrdma_path_on_challenge(struct qrdma_path *path, const u8 *data)
{
	if (path->nr_responses == QRDMA_PATH_RESPONSES) {
		path->refused++;
		return false;
	}
	memcpy(path->responses[path->nr_responses++], data, QRDMA_PATH_DATA);
	return true;
}

bool qrdma_path_next_response(struct qrdma_path *path, u8 *data)
{
	if (!path->nr_responses)
		return false;
	memcpy(data, path->responses[0], QRDMA_PATH_DATA);
	path->nr_responses--;
	memmove(path->responses[0], path->responses[1], path->nr_responses * QRDMA_PATH_DATA);
	return true;
}

bool qrdma_path_next_retire(struct qrdma_path *path, u64 *seq)
{
	u32 i;

	for (i = 0; i < path->nr_retires; i++) {
		if (path->retire_due & BIT(i)) {
			path->retire_due &= ~BIT(i);
			*seq = path->retires[i];
			return true;
		}
	}
	return false;
}

void qrdma_path_retire_acked(struct qrdma_path *path, u64 seq)
{
	u32 i, last = path->nr_retires - 1;

	for (i = 0; i < path->nr_retires; i++) {
		if (path->retires[i] != seq)
			continue;
		/* the last one takes the place, with its bit */
		path->retires[i] = path->retires[last];
		path->retire_due &= ~BIT(i);
		if (i != last && path->retire_due & BIT(last))
			path->retire_due |= BIT(i);
		path->retire_due &= ~BIT(last);
		path->nr_retires--;
		return;
	}
}

void qrdma_path_retire_lost(struct qrdma_path *path, u64 seq)
{
	u32 i;

	for (i = 0; i < path->nr_retires; i++) {
		if (path->retires[i] == seq)
			path->retire_due |= BIT(i);
	}
}
