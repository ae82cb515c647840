// SPDX-License-Identifier: GPL-2.0
/*
 * ECN validation of one path.
 *
 * Owns: struct qrdma_ecn_path. Called by: recovery.c in any context; the caller serialises.
 */
#include "ecn.h"

void qrdma_ecn_on_sent(struct qrdma_ecn_path *ecn, u8 space)
{
	ecn->space[space].marked++;
	if (ecn->marked != U32_MAX)
		ecn->marked++;
	if (ecn->state == QRDMA_ECN_TEST && ecn->marked >= QRDMA_ECN_TESTING)
		ecn->state = QRDMA_ECN_WAIT;
}

void qrdma_ecn_on_lost(struct qrdma_ecn_path *ecn)
{
	if (ecn->state != QRDMA_ECN_TEST && ecn->state != QRDMA_ECN_WAIT)
		return;
	ecn->lost++;
	if (ecn->state == QRDMA_ECN_WAIT && ecn->lost >= ecn->marked)
		ecn->state = QRDMA_ECN_FAILED;
}

/* Can these counts be true (RFC 9000 s13.4.2.1)? */
static bool ecn_plausible(const struct qrdma_ecn_count *count, const struct qrdma_ack *ack,
			  u32 newly)
{
	/* what was counted cannot become less, and ECT(1) was never sent */
	if (ack->ect0 < count->ect0 || ack->ce < count->ce || ack->ect1)
		return false;
	/* no more can arrive than was marked, and all that is acknowledged must be counted */
	if (ack->ect0 > count->marked || ack->ce > count->marked - ack->ect0)
		return false;
	return ack->ect0 - count->ect0 + ack->ce - count->ce >= newly;
}

u64 qrdma_ecn_on_ack(struct qrdma_ecn_path *ecn, u8 space, const struct qrdma_ack *ack, u32 newly)
{
	struct qrdma_ecn_count *count = &ecn->space[space];
	u64 ce;

	if (ecn->state == QRDMA_ECN_OFF || ecn->state == QRDMA_ECN_FAILED)
		return 0;
	if (ack->ecn ? !ecn_plausible(count, ack, newly) : newly) {
		ecn->state = QRDMA_ECN_FAILED;
		return 0;
	}
	if (!ack->ecn)
		return 0;
	ce = ack->ce - count->ce;
	count->ect0 = ack->ect0;
	count->ce = ack->ce;
	if (newly)
		ecn->state = QRDMA_ECN_CAPABLE;
	return ce;
}
