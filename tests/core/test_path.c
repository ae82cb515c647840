// SPDX-License-Identifier: GPL-2.0
/* Connection ids of the peer, what is owed about them, path challenges. */
#include "qtest.h"
#include "path.h"
#include "frame.h"

static const struct qrdma_cid path_scid = { .len = 8, .data = "ourcidid" };
static const struct qrdma_cid path_dcid = { .len = 8, .data = "theircid" };

static void path_setup(struct q_test *test, struct qrdma_path *path, u64 cids_max)
{
	Q_ASSERT_EQ(test, qrdma_path_init(path, &path_scid, &path_dcid, cids_max, 1020), 0);
}

/* NEW_CONNECTION_ID whose id and token follow from @mark. Return: 0 or the QUIC error code. */
static u64 path_new(struct qrdma_path *path, u64 seq, u64 retire, u8 mark)
{
	struct qrdma_cid cid = { .len = 8, .data = { mark } };
	u8 token[QRDMA_PATH_TOKEN] = { mark };
	u64 verdict;

	return qrdma_path_on_new_cid(path, seq, retire, &cid, token, &verdict) ? verdict : 0;
}

static u32 path_take_retires(struct qrdma_path *path, u64 *last)
{
	u32 n = 0;

	while (qrdma_path_next_retire(path, last))
		n++;
	return n;
}

Q_TEST(path_init_checks)
{
	struct qrdma_cid cid = { .len = 4 };
	struct qrdma_path path;

	Q_EXPECT_EQ(test, qrdma_path_init(&path, &cid, &path_dcid, 2, 1020), -EINVAL);
	cid.len = 21;
	Q_EXPECT_EQ(test, qrdma_path_init(&path, &path_scid, &cid, 2, 1020), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_path_init(&path, &path_scid, &path_dcid, 1, 1020), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_path_init(&path, &path_scid, &path_dcid, QRDMA_PATH_CIDS + 1,
					  1020), -EINVAL);
	Q_EXPECT_EQ(test, qrdma_path_init(&path, &path_scid, &path_dcid, 2, 511), -EINVAL);
	cid.len = 0;
	Q_EXPECT_EQ(test, qrdma_path_init(&path, &path_scid, &cid, 2, 512), 0);
	/* who has no ids cannot issue any (RFC 9000 s19.15) */
	Q_EXPECT_EQ(test, path_new(&path, 1, 0, 1), QRDMA_ERR_PROTOCOL_VIOLATION);
}

Q_TEST(path_keeps_ids)
{
	struct qrdma_path path;

	path_setup(test, &path, 3);
	Q_EXPECT_EQ(test, path_new(&path, 1, 0, 1), 0);
	Q_EXPECT_EQ(test, path_new(&path, 2, 0, 2), 0);
	/* a frame that was sent again */
	Q_EXPECT_EQ(test, path_new(&path, 2, 0, 2), 0);
	Q_EXPECT_EQ(test, path.nr_cids, 3);
	Q_EXPECT_EQ(test, path_new(&path, 3, 0, 3), QRDMA_ERR_CONNECTION_ID_LIMIT_ERROR);
	Q_EXPECT_EQ(test, path.nr_cids, 3);
	Q_EXPECT_MEMEQ(test, qrdma_path_dcid(&path)->data, path_dcid.data, 8);
	Q_EXPECT_FALSE(test, qrdma_path_pending(&path));
}

Q_TEST(path_contradictions)
{
	struct qrdma_cid cid = { .len = 8, .data = { 1 } };
	u8 token[QRDMA_PATH_TOKEN] = { 9 };
	struct qrdma_path path;
	u64 verdict;

	path_setup(test, &path, 4);
	Q_EXPECT_EQ(test, path_new(&path, 1, 0, 1), 0);
	/* the same number with another id, the same id with another number, another token */
	Q_EXPECT_EQ(test, path_new(&path, 1, 0, 2), QRDMA_ERR_PROTOCOL_VIOLATION);
	Q_EXPECT_EQ(test, path_new(&path, 2, 0, 1), QRDMA_ERR_PROTOCOL_VIOLATION);
	Q_EXPECT_EQ(test, qrdma_path_on_new_cid(&path, 1, 0, &cid, token, &verdict), -EPROTO);
	Q_EXPECT_EQ(test, verdict, QRDMA_ERR_PROTOCOL_VIOLATION);
	Q_EXPECT_EQ(test, path_new(&path, 2, 3, 2), QRDMA_ERR_FRAME_ENCODING_ERROR);
	Q_EXPECT_EQ(test, path.nr_cids, 2);
}

Q_TEST(path_retires)
{
	struct qrdma_path path;
	u64 seq = 0;

	path_setup(test, &path, 2);
	Q_EXPECT_EQ(test, path_new(&path, 1, 1, 1), 0);
	/* number 0 is gone, number 1 in use */
	Q_EXPECT_EQ(test, path.nr_cids, 1);
	Q_EXPECT_EQ(test, qrdma_path_dcid(&path)->data[0], 1);
	Q_EXPECT_TRUE(test, qrdma_path_pending(&path));
	Q_EXPECT_EQ(test, path_take_retires(&path, &seq), 1);
	Q_EXPECT_EQ(test, seq, 0);
	Q_EXPECT_FALSE(test, qrdma_path_pending(&path));
	qrdma_path_retire_lost(&path, 0);
	Q_EXPECT_EQ(test, path_take_retires(&path, &seq), 1);
	qrdma_path_retire_acked(&path, 0);
	Q_EXPECT_EQ(test, path.nr_retires, 0);
	/* late news about what is settled */
	qrdma_path_retire_lost(&path, 0);
	qrdma_path_retire_acked(&path, 0);
	Q_EXPECT_FALSE(test, qrdma_path_pending(&path));
}

/* An id that comes after its retirement is retired at once, once. */
Q_TEST(path_retires_late_ids)
{
	struct qrdma_path path;
	u64 seq = 0;

	path_setup(test, &path, 2);
	Q_EXPECT_EQ(test, path_new(&path, 5, 5, 5), 0);
	Q_EXPECT_EQ(test, path_take_retires(&path, &seq), 1);
	Q_EXPECT_EQ(test, path_new(&path, 3, 0, 3), 0);
	Q_EXPECT_EQ(test, path_new(&path, 3, 0, 3), 0);
	Q_EXPECT_EQ(test, path_take_retires(&path, &seq), 1);
	Q_EXPECT_EQ(test, seq, 3);
	Q_EXPECT_EQ(test, path.nr_cids, 1);
}

/* Retirements that nobody acknowledges are bounded (RFC 9000 s5.1.2, field case F64). */
Q_TEST(path_retire_bound)
{
	struct qrdma_path path;
	u64 seq, i, bad = 0;

	path_setup(test, &path, 2);
	for (i = 1; i < 100 && !bad; i++) {
		bad = path_new(&path, i, i, i);
		path_take_retires(&path, &seq);
	}
	Q_EXPECT_EQ(test, bad, QRDMA_ERR_CONNECTION_ID_LIMIT_ERROR);
	Q_EXPECT_EQ(test, path.nr_retires, QRDMA_PATH_RETIRES);
	Q_EXPECT_EQ(test, path.nr_cids, 1);
	/* in any order, each with its own "due" */
	for (i = 0; i < QRDMA_PATH_RETIRES; i += 2)
		qrdma_path_retire_lost(&path, i);
	for (i = 1; i < QRDMA_PATH_RETIRES; i += 2)
		qrdma_path_retire_acked(&path, i);
	Q_EXPECT_EQ(test, path.nr_retires, QRDMA_PATH_RETIRES / 2);
	for (i = 0; qrdma_path_next_retire(&path, &seq); i++)
		Q_EXPECT_EQ(test, seq & 1, 0);
	Q_EXPECT_EQ(test, i, QRDMA_PATH_RETIRES / 2);
}

Q_TEST(path_refuses_retiring_ours)
{
	struct qrdma_path path;
	u64 verdict;

	path_setup(test, &path, 2);
	Q_EXPECT_EQ(test, qrdma_path_on_retire_cid(&path, 0, &verdict), -EPROTO);
	Q_EXPECT_EQ(test, verdict, QRDMA_ERR_PROTOCOL_VIOLATION);
	Q_EXPECT_EQ(test, qrdma_path_on_retire_cid(&path, 1, &verdict), -EPROTO);
}

Q_TEST(path_challenges)
{
	u8 data[QRDMA_PATH_DATA] = {}, got[QRDMA_PATH_DATA];
	struct qrdma_path path;
	u32 i;

	path_setup(test, &path, 2);
	for (i = 0; i < QRDMA_PATH_RESPONSES; i++) {
		data[0] = i;
		Q_EXPECT_TRUE(test, qrdma_path_on_challenge(&path, data));
	}
	Q_EXPECT_FALSE(test, qrdma_path_on_challenge(&path, data));
	Q_EXPECT_EQ(test, path.refused, 1);
	for (i = 0; qrdma_path_next_response(&path, got); i++)
		Q_EXPECT_EQ(test, got[0], i);
	Q_EXPECT_EQ(test, i, QRDMA_PATH_RESPONSES);
	Q_EXPECT_FALSE(test, qrdma_path_pending(&path));
}

/* A handshake in band brings the peer's id and token later. */
Q_TEST(path_learns_the_peer)
{
	struct qrdma_cid cid = { .len = 5, .data = "later" };
	u8 token[QRDMA_PATH_TOKEN] = { 1, 2, 3 };
	struct qrdma_path path;

	path_setup(test, &path, 4);
	qrdma_path_set_peer(&path, &cid);
	Q_EXPECT_TRUE(test, qrdma_cid_equal(qrdma_path_dcid(&path), &cid));
	qrdma_path_set_token(&path, token);
	Q_EXPECT_MEMEQ(test, path.cids[0].token, token, QRDMA_PATH_TOKEN);
	/* it is that of number 0 alone */
	Q_EXPECT_EQ(test, path_new(&path, 1, 1, 7), 0);
	token[0] = 9;
	qrdma_path_set_token(&path, token);
	Q_EXPECT_EQ(test, path.cids[0].token[0], 7);
}

Q_SUITE("qrdma-path",
	Q_CASE(path_init_checks),
	Q_CASE(path_keeps_ids),
	Q_CASE(path_contradictions),
	Q_CASE(path_retires),
	Q_CASE(path_retires_late_ids),
	Q_CASE(path_retire_bound),
	Q_CASE(path_refuses_retiring_ours),
	Q_CASE(path_challenges),
	Q_CASE(path_learns_the_peer));
