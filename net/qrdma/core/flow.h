/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Credit arithmetic of RFC 9000 section 4, the same for a stream and for the connection.
 *
 * Owns: nothing; plain numbers, all in bytes (or in streams, for the limits on streams).
 * Called by: stream.c, under the caller's serialisation.
 */
#ifndef QRDMA_CORE_FLOW_H
#define QRDMA_CORE_FLOW_H

#include "env.h"

#define QRDMA_FLOW_MAX	((1ULL << 62) - 1)	/* RFC 9000 s16: largest number on the wire */

/**
 * struct qrdma_flow_rx - credit that we grant
 * @max: largest offset (or sum, or number) granted, as the peer was told or is about to be told
 * @high: largest offset (or sum) that the peer has used
 * @read: consumed by the application, or given up for it
 * @window: what is granted beyond @read; may be changed at any time, what is granted is
 *	never taken back (s4.1)
 * @again: the frame that carried @max was lost
 */
struct qrdma_flow_rx {
	u64 max;
	u64 high;
	u64 read;
	u64 window;
	bool again;
};

/**
 * struct qrdma_flow_tx - credit that the peer grants
 * @max: largest offset (or sum, or number) granted
 * @sent: used of it; data sent again uses none
 * @told: the limit that a *_BLOCKED frame told the peer about, U64_MAX: none
 */
struct qrdma_flow_tx {
	u64 max;
	u64 sent;
	u64 told;
};

static inline void qrdma_flow_rx_init(struct qrdma_flow_rx *f, u64 window)
{
	f->window = min_t(u64, window, QRDMA_FLOW_MAX);
	f->max = f->window;
	f->high = 0;
	f->read = 0;
	f->again = false;
}

/* May the peer go up to @high? Otherwise: FLOW_CONTROL_ERROR (s4.1). */
static inline bool qrdma_flow_rx_allows(const struct qrdma_flow_rx *f, u64 high)
{
	return high <= f->max;
}

/* The credit that could be granted now. Does not overflow: @read <= @max <= QRDMA_FLOW_MAX. */
static inline u64 qrdma_flow_rx_target(const struct qrdma_flow_rx *f)
{
	return min_t(u64, f->read + f->window, QRDMA_FLOW_MAX);
}

/* Is a MAX_* frame due? When half of the window is used up, or the last such frame was lost. */
static inline bool qrdma_flow_rx_due(const struct qrdma_flow_rx *f)
{
	u64 target = qrdma_flow_rx_target(f);

	return f->again || (target > f->max && target - f->max >= (f->window + 1) / 2);
}

/* The limit that a MAX_* frame is to carry now; never smaller than an earlier one. */
static inline u64 qrdma_flow_rx_next(const struct qrdma_flow_rx *f)
{
	return max(f->max, qrdma_flow_rx_target(f));
}

/* The frame with that limit is sent: the peer may use it from now on. */
static inline void qrdma_flow_rx_grant(struct qrdma_flow_rx *f)
{
	f->max = qrdma_flow_rx_next(f);
	f->again = false;
}

/* The frame that carried @value was lost: only the latest is worth sending again (s13.3). */
static inline void qrdma_flow_rx_lost(struct qrdma_flow_rx *f, u64 value)
{
	if (value == f->max)
		f->again = true;
}

static inline void qrdma_flow_tx_init(struct qrdma_flow_tx *f, u64 max)
{
	f->max = max;
	f->sent = 0;
	f->told = U64_MAX;
}

static inline u64 qrdma_flow_tx_credit(const struct qrdma_flow_tx *f)
{
	return f->max > f->sent ? f->max - f->sent : 0;
}

/*
 * A MAX_* frame came in. Return: true when it opens credit; one that does not is ignored
 * (s4.1).
 */
static inline bool qrdma_flow_tx_raise(struct qrdma_flow_tx *f, u64 max)
{
	if (max <= f->max)
		return false;
	f->max = max;
	return true;
}

/* Is a *_BLOCKED frame due, given that there is more to send? Once per limit (s4.1). */
static inline bool qrdma_flow_tx_blocked(const struct qrdma_flow_tx *f)
{
	return f->sent >= f->max && f->told != f->max;
}

/* The *_BLOCKED frame for @value was lost. */
static inline void qrdma_flow_tx_lost(struct qrdma_flow_tx *f, u64 value)
{
	if (f->told == value)
		f->told = U64_MAX;
}

#endif /* QRDMA_CORE_FLOW_H */
