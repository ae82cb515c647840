// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU's translator that counts the guest's instructions between two marks (mark.h),
 * by address and by processor. It slows the guest down and changes nothing for it: under -icount
 * even the guest's clock does not notice.
 *
 * Counted are translation blocks: runs of instructions without a jump in between, which lie in one
 * function but for rare cases. A repeated string instruction counts once for each repetition. The
 * few instructions of a block that is left early by a fault are counted too often.
 *
 * Argument: out=FILE, where for each pair of marks there is
 *	mark NUMBER
 *	user COUNT COUNT ...		instructions of programs, for each processor
 *	ADDRESS COUNT COUNT ...		those of the kernel, for each block
 *
 * QEMU's header is in no package of Debian 12: what is used of version 1 of the interface is
 * declared here.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tools/mark.h"

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;

typedef void (*exec_fn)(unsigned int vcpu, void *arg);

enum { NO_REGISTERS = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*fn)(uint64_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, exec_fn fn, int flags,
					  void *arg);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, exec_fn fn, int flags,
					    void *arg);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

#define CPUS	2
#define BUCKETS	65536
#define KERNEL	0x8000000000000000ULL
#define NOP_LEN	7

/* All programs share the blocks of address 0, one for each number of instructions. */
struct block {
	struct block *next;	/* of the bucket */
	uint64_t addr;
	uint64_t insns;
	uint64_t runs[CPUS];
};

/*
 * Guards the list of each bucket, as processors that are threads of QEMU may translate at the same
 * time. The counters need no lock: each processor has its own.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *buckets[BUCKETS];
static FILE *out;
static int bits_left;
static unsigned int number;

static struct block *block_find(uint64_t addr, uint64_t insns)
{
	uint64_t hash = (addr * 31 + insns) * 0x9e3779b97f4a7c15ULL;
	struct block **at = &buckets[hash >> 48];
	struct block *b;

	pthread_mutex_lock(&lock);
	for (b = *at; b; b = b->next)
		if (b->addr == addr && b->insns == insns)
			break;
	if (!b) {
		b = calloc(1, sizeof(*b));
		if (!b)
			abort();
		b->addr = addr;
		b->insns = insns;
		b->next = *at;
		*at = b;
	}
	pthread_mutex_unlock(&lock);
	return b;
}

static void counts_clear(void)
{
	struct block *b;
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < BUCKETS; i++)
		for (b = buckets[i]; b; b = b->next)
			memset(b->runs, 0, sizeof(b->runs));
	pthread_mutex_unlock(&lock);
}

static void print_counts(const uint64_t *counts)
{
	int cpu;

	for (cpu = 0; cpu < CPUS; cpu++)
		fprintf(out, " %" PRIu64, counts[cpu]);
	fputc('\n', out);
}

/* What was counted when the number of the mark is complete is what was counted at MARK_END. */
struct total {
	uint64_t addr;
	uint64_t insns[CPUS];
};

static struct total *totals;
static size_t ntotals;
static uint64_t user[CPUS];

static void counts_take(void)
{
	static size_t room;
	struct block *b;
	int i, cpu;

	ntotals = 0;
	memset(user, 0, sizeof(user));
	pthread_mutex_lock(&lock);
	for (i = 0; i < BUCKETS; i++) {
		for (b = buckets[i]; b; b = b->next) {
			struct total t = { .addr = b->addr };
			uint64_t sum = 0;

			for (cpu = 0; cpu < CPUS; cpu++) {
				t.insns[cpu] = b->runs[cpu] * b->insns;
				sum += t.insns[cpu];
				if (!b->addr)
					user[cpu] += t.insns[cpu];
			}
			if (!sum || !b->addr)
				continue;
			if (ntotals == room) {
				room = room ? 2 * room : 16384;
				totals = realloc(totals, room * sizeof(*totals));
				if (!totals)
					abort();
			}
			totals[ntotals++] = t;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void counts_print(void)
{
	size_t i;

	fprintf(out, "mark %u\nuser", number);
	print_counts(user);
	for (i = 0; i < ntotals; i++) {
		fprintf(out, "%" PRIx64, totals[i].addr);
		print_counts(totals[i].insns);
	}
	fflush(out);
}

static void on_mark(unsigned int vcpu, void *arg)
{
	uintptr_t which = (uintptr_t)arg;

	(void)vcpu;
	switch (which) {
	case MARK_BEGIN:
		counts_clear();
		return;
	case MARK_END:
		counts_take();
		number = 0;
		bits_left = MARK_BITS;
		return;
	default:
		number = number << 1 | (which == MARK_ONE);
		if (!--bits_left)
			counts_print();
	}
}

static void on_block(unsigned int vcpu, void *arg)
{
	struct block *b = arg;

	b->runs[vcpu % CPUS]++;
}

/* Which mark is it? -1: none. */
static int mark_of(const struct qemu_plugin_insn *insn)
{
	const uint8_t *code = qemu_plugin_insn_data(insn);
	uint32_t disp;

	if (qemu_plugin_insn_size(insn) != NOP_LEN || code[0] != 0x0f || code[1] != 0x1f ||
	    code[2] != 0x80)
		return -1;
	memcpy(&disp, code + 3, sizeof(disp));
	disp -= MARK_BASE;
	return disp <= MARK_ONE ? (int)disp : -1;
}

static void on_translate(uint64_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb), i;
	uint64_t addr = qemu_plugin_tb_vaddr(tb);
	struct qemu_plugin_insn *insn;
	int mark;

	(void)id;
	if (addr < KERNEL)
		addr = 0;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGISTERS, block_find(addr, n));
	for (i = 0; i < n; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		mark = mark_of(insn);
		if (mark >= 0)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, NO_REGISTERS,
							       (void *)(uintptr_t)mark);
	}
}

__attribute__((visibility("default")))
int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv)
{
	int i;

	(void)info;
	for (i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
	if (!out) {
		fprintf(stderr, "counter: out=FILE is missing, or cannot be written\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
