/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two engines, one wire, virtual time: what the parts of the simulator share.
 *
 * A run is a function of (scenario, seed) alone: no clock, no address, no order of the host enters.
 * world.c is time and randomness, link.c the wire, end.c what the kernel does around the engine
 * (rings, asynchronous AEAD, timer, key derivation), hs.c the handshake in band with its listener,
 * app.c the two programs that write and read, scenario.c the table of what may happen, main.c the
 * command line.
 */
#ifndef QRDMA_TESTS_SIM_H
#define QRDMA_TESTS_SIM_H

#include "env.h"
#include "nullaead.h"
#include "conn.h"
#include "ftls.h"
#include "packer.h"

#define SIM_SEC		((u64)NSEC_PER_SEC)
#define SIM_MS		((u64)NSEC_PER_MSEC)
#define SIM_US		((u64)NSEC_PER_USEC)
#define SIM_BUF		4096	/* largest datagram on the wire */
#define SIM_TX_SLOTS	64	/* datagrams being sealed or waiting at one end */

struct world;
struct end;

/** struct sim_event - something that happens at a time; equal times in order of their making */
struct sim_event {
	u64 at;
	u64 order;
	void (*fn)(struct world *w, void *arg);
	void *arg;
};

/**
 * struct sim_link - one direction of the wire
 * @loss: per mille of datagrams that vanish; the same for @dup, @corrupt, @reorder
 * @ce: per mille of ECT datagrams that congestion marks; the same for @bleach (made Not-ECT) and
 *	@mangle (made ECT(1)), which no wire should do
 * @delay: ns
 * @jitter: up to so many ns more
 * @rate: bytes per ms, 0: no limit
 * @queue: bytes that wait for the rate at most
 * @mtu: larger datagrams vanish
 * @dark_until: everything vanishes until then
 * @busy_until: when the last queued datagram leaves
 */
struct sim_link {
	u32 loss;
	u32 dup;
	u32 corrupt;
	u32 reorder;
	u32 ce;
	u32 bleach;
	u32 mangle;
	u64 delay;
	u64 jitter;
	u32 rate;
	u32 queue;
	u32 mtu;
	u64 dark_until;
	u64 busy_until;
};

/**
 * struct sim_script - what one program does
 * @bytes: to be written
 * @chunk: largest write
 * @gap: up to so many ns between writes
 * @reads: largest read
 * @read_gap: up to so many ns between reads
 * @reset_at: after so many bytes written RESET_STREAM, U64_MAX: never
 * @stop_at: after so many bytes read STOP_SENDING, U64_MAX: never
 * @linger: does not close by itself
 */
struct sim_script {
	u64 bytes;
	u32 chunk;
	u64 gap;
	u32 reads;
	u64 read_gap;
	u64 reset_at;
	u64 stop_at;
};

/**
 * struct sim_params - a scenario, drawn
 * @link: by direction: client to server, server to client
 * @script: by end
 * @datagram: largest datagram at the start
 * @mtu_changes: how often it changes
 * @blackouts: how often both directions go dark for a while, and how long at most, ns
 * @blackout_max: ns
 * @stalls: per mille of arrivals after which the end does not look at its queue for a while
 * @stall_max: ns
 * @async: per mille of AEAD operations that end later, up to @async_max ns
 * @async_max: ns
 * @key_updates: how often an application asks for one
 * @key_packets_max: see struct qrdma_conn_config
 * @derive_max: ns until a wanted key is there
 * @window: receive window of both ends
 * @rx_mem: cap of received memory
 * @tx_room: bytes that an application keeps written and not acknowledged at most
 * @nomem: one of so many allocations fails, 0: none
 * @vanish: the server is gone at that time, 0: never
 * @destroy: the client is destroyed at that time whatever goes on, 0: never
 * @close_early: the client closes at that time whatever goes on, 0: never
 * @idle_ms: idle time-out of both
 * @cong: controller
 * @inband: the handshake runs in band
 * @hello: bytes of its ClientHello
 * @cert: bytes of its Certificate
 * @ticket: bytes of its ticket, 0: none
 * @tls_max: how long TLS thinks at most, ns
 * @retry: the listener asks for a token first
 * @early: the client sends 0-RTT
 * @early_taken: the server takes it
 * @lossless: nothing is lost: expect no packet to be taken for lost (field case F01)
 * @exact: nothing is late either: expect no byte to be sent twice
 */
struct sim_params {
	struct sim_link link[2];
	struct sim_script script[2];
	u32 datagram;
	u32 mtu_changes;
	u32 blackouts;
	u64 blackout_max;
	u32 stalls;
	u64 stall_max;
	u32 async;
	u64 async_max;
	u32 key_updates;
	u64 key_packets_max;
	u64 derive_max;
	u32 window;
	u32 rx_mem;
	u32 tx_room;
	u32 nomem;
	u64 vanish;
	u64 destroy;
	u64 close_early;
	u32 idle_ms;
	u32 cong;
	bool inband;
	u32 hello;
	u32 cert;
	u32 ticket;
	u64 tls_max;
	bool retry;
	bool early;
	bool early_taken;
	bool lossless;
	bool exact;
};

/** struct sim_scenario - a row of the table: draws the parameters */
struct sim_scenario {
	const char *name;
	void (*draw)(struct world *w, struct sim_params *p);
};

/**
 * struct end - one engine and what the kernel has around it
 * @w: its world
 * @i: 0: client, 1: server
 * @conn: the engine; NULL once destroyed
 * @slots: datagrams being sealed
 * @last_pn: number of the last packet built plus one, by space
 * @built: packets built
 * @opens: opens in flight
 * @stalled_until: the queue is not looked at before
 * @queue: arrived and not looked at, oldest first
 * @timer_at: when the timer goes off, QRDMA_NEVER: not armed
 * @blocked: no slot was free when the engine had something to send
 * @keys_wanted: a derivation is under way
 * @events: all event bits seen
 * @made: there was an engine
 * @tls: in band: who speaks TLS
 * @tls_events: what it has to look at
 * @rx_wire: bytes of datagrams that the engine was given
 * @tx_wire: and of those that it built
 * @app: the program
 */
struct end {
	struct world *w;
	int i;
	struct qrdma_conn *conn;
	u32 slots;
	u64 last_pn[QRDMA_SPACES];
	u64 built;
	u32 opens;
	u64 stalled_until;
	struct arrival *queue;
	struct arrival **queue_tail;
	u64 timer_at;
	bool blocked;
	bool keys_wanted;
	u32 events;
	bool made;
	struct ftls tls;
	u32 tls_events;
	u64 rx_wire;
	u64 tx_wire;
	struct {
		u64 written;
		u64 read;
		bool wrote_all;
		bool was_reset;
		bool was_stopped;
		bool read_all;
		bool write_failed;
		bool read_failed;
		bool write_armed;
		bool read_armed;
		bool want_write;
		bool want_read;
		bool closed;
	} app;
};

/**
 * struct world - a run
 * @now: virtual time, ns
 * @rng: generator
 * @seed: of the run
 * @name: scenario
 * @p: parameters drawn
 * @end: client, server
 * @heap: events
 * @nheap: in use
 * @cap: allocated
 * @order: number of the next event
 * @stamp: events so far
 * @failed: an invariant broke
 * @verbose: print what happens
 */
struct world {
	u64 now;
	u64 rng;
	u64 seed;
	const char *name;
	struct sim_params p;
	struct end end[2];
	struct sim_event *heap;
	u32 nheap;
	u32 cap;
	u64 order;
	u64 stamp;
	bool failed;
	bool verbose;
};

/* world.c */
u64 sim_rand(struct world *w);
/* uniform in lo..hi */
u64 sim_draw(struct world *w, u64 lo, u64 hi);
/* true for @mille of 1000 */
bool sim_chance(struct world *w, u32 mille);
void sim_at(struct world *w, u64 at, void (*fn)(struct world *w, void *arg), void *arg);
/* one event; false: there is none */
bool sim_step(struct world *w);
__printf(2, 3)
void sim_fail(struct world *w, const char *fmt, ...);

/* link.c */
void link_send(struct world *w, int from, const u8 *data, u32 len, u8 ecn);

/* hs.c */
void hs_config(struct end *e, struct qrdma_conn_config *cfg);
void hs_start(struct end *e);
/* events of the handshake; what TLS has to do is done some time later */
void hs_events(struct end *e, u32 ev);
/* a datagram for which there is no engine yet; true: there is one now, give it to that */
bool hs_listen(struct end *e, const u8 *data, u32 len);
void hs_check(struct end *e);
void hs_check_end(struct end *e);

/* end.c */
void end_start(struct end *e);
/* make the engine */
bool end_make(struct end *e);
void end_receive(struct end *e, struct qrdma_buf *buf, u8 ecn);
/* act on event bits, then send and arm the timer */
void end_act(struct end *e, u32 ev);
void end_destroy(struct end *e);
bool end_quiet(const struct end *e);
void end_check(struct end *e);

/* app.c */
u8 app_byte(u64 seed, int from, u64 off);
void app_start(struct end *e);
void app_events(struct end *e, u32 ev);
bool app_done(const struct world *w);
void app_check_end(struct world *w);

/* scenario.c */
extern const struct sim_scenario sim_scenarios[];
extern const u32 sim_nr_scenarios;

#endif /* QRDMA_TESTS_SIM_H */
