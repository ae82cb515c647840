/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Userspace meaning of the kernel names that net/qrdma/core/ may use (env.h has
 * the list). Capped at 400 lines: a name belongs here only when core/ needs it.
 *
 * Owns: the allocation counters and the failure switch of the tests. Used by:
 * core/ when built in userspace, single threaded. WARN_ON() and a broken
 * reference count abort: no test and no fuzzer input may reach them.
 */
#ifndef QRDMA_TESTS_SHIM_H
#define QRDMA_TESTS_SHIM_H

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* types */
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef long long s64;
typedef unsigned __int128 shim_u128;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef u16 __be16;
typedef u32 __be32;
typedef u64 __be64;
typedef unsigned int gfp_t;

#define U8_MAX		((u8)~0U)
#define U16_MAX		((u16)~0U)
#define U32_MAX		((u32)~0U)
#define U64_MAX		((u64)~0ULL)
#define S32_MAX		((s32)(U32_MAX >> 1))
#define S64_MAX		((s64)(U64_MAX >> 1))

/* compiler */
#define __maybe_unused	__attribute__((unused))
#define __must_check	__attribute__((warn_unused_result))
#define __packed	__attribute__((packed))
#define __printf(a, b)	__attribute__((format(printf, a, b)))
#define noinline	__attribute__((noinline))
#undef __always_inline
#define __always_inline	inline __attribute__((always_inline))
#define fallthrough	__attribute__((fallthrough))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define barrier()	__asm__ __volatile__("" : : : "memory")
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
#define BUILD_BUG_ON(c)	_Static_assert(!(c), "BUILD_BUG_ON: " #c)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define sizeof_field(t, m) sizeof(((t *)0)->m)
#define offsetofend(t, m) (offsetof(t, m) + sizeof_field(t, m))
#define container_of(p, t, m) ((t *)((char *)(p) - offsetof(t, m)))

/* bugs */
static inline _Noreturn void shim_die(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	abort();
}

#define WARN_ON(c) ({							\
	bool __warn = !!(c);						\
									\
	if (unlikely(__warn))						\
		shim_die("WARN_ON: " #c, __FILE__, __LINE__);		\
	__warn;								\
})
#define WARN_ON_ONCE(c)	WARN_ON(c)

/* arithmetic */
#define min(a, b) ({ __typeof__(a) __a = (a); __typeof__(b) __b = (b);	\
	(void)(&__a == &__b); __a < __b ? __a : __b; })
#define max(a, b) ({ __typeof__(a) __a = (a); __typeof__(b) __b = (b);	\
	(void)(&__a == &__b); __a > __b ? __a : __b; })
#define min_t(t, a, b)	({ t __ta = (a); t __tb = (b); __ta < __tb ? __ta : __tb; })
#define max_t(t, a, b)	({ t __ta = (a); t __tb = (b); __ta > __tb ? __ta : __tb; })
#define min3(a, b, c)	min((__typeof__(a))min(a, b), c)
#define max3(a, b, c)	max((__typeof__(a))max(a, b), c)
#define clamp(v, lo, hi) min((__typeof__(v))max(v, lo), hi)
#define clamp_t(t, v, lo, hi) min_t(t, max_t(t, v, lo), hi)
#define swap(a, b) do { __typeof__(a) __s = (a); (a) = (b); (b) = __s; } while (0)
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define round_up(x, y)	((((x) - 1) | ((__typeof__(x))((y) - 1))) + 1)
#define round_down(x, y) ((x) & ~((__typeof__(x))((y) - 1)))
#define ALIGN(x, y)	round_up(x, y)
#define check_add_overflow(a, b, d) __builtin_add_overflow(a, b, d)
#define check_sub_overflow(a, b, d) __builtin_sub_overflow(a, b, d)
#define check_mul_overflow(a, b, d) __builtin_mul_overflow(a, b, d)
#define struct_size(p, m, n) (sizeof(*(p)) + sizeof(*(p)->m) * (n))

#define NSEC_PER_USEC	1000L
#define NSEC_PER_MSEC	1000000L
#define NSEC_PER_SEC	1000000000L
#define USEC_PER_MSEC	1000L
#define USEC_PER_SEC	1000000L
#define MSEC_PER_SEC	1000L

#define div64_u64(a, b)	((u64)(a) / (u64)(b))
#define div64_s64(a, b)	((s64)(a) / (s64)(b))
#define div_u64(a, b)	((u64)(a) / (u32)(b))
#define mul_u64_u32_div(a, m, d) ((u64)((shim_u128)(u64)(a) * (u32)(m) / (u32)(d)))
#define mul_u64_u64_shr(a, b, n) ((u64)(((shim_u128)(u64)(a) * (u64)(b)) >> (n)))

static inline u64 div64_u64_rem(u64 a, u64 b, u64 *rem)
{
	*rem = a % b;
	return a / b;
}

static inline u64 div_u64_rem(u64 a, u32 b, u32 *rem)
{
	*rem = a % b;
	return a / b;
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 mul, u64 div)
{
	shim_u128 q = (shim_u128)a * mul / div;

	/* the kernel's is a divide instruction on x86, which traps */
	if (q >> 64)
		shim_die("mul_u64_u64_div_u64: quotient over 64 bits", __FILE__, __LINE__);
	return (u64)q;
}

/* bits */
#define BITS_PER_LONG	(8 * (int)sizeof(long))
#define BIT(n)		(1UL << (n))
#define BIT_ULL(n)	(1ULL << (n))
#define GENMASK(h, l)	((~0UL << (l)) & (~0UL >> (BITS_PER_LONG - 1 - (h))))
#define GENMASK_ULL(h, l) ((~0ULL << (l)) & (~0ULL >> (63 - (h))))
#define BITS_TO_LONGS(n) DIV_ROUND_UP(n, BITS_PER_LONG)
#define DECLARE_BITMAP(name, n) unsigned long name[BITS_TO_LONGS(n)]
#define hweight8(x)	((unsigned int)__builtin_popcount((u8)(x)))
#define hweight32(x)	((unsigned int)__builtin_popcount((u32)(x)))
#define hweight64(x)	((unsigned int)__builtin_popcountll(x))
#define is_power_of_2(n) ((n) != 0 && (((n) & ((n) - 1)) == 0))
#define ilog2(n)	(fls64(n) - 1)
#define fls(x)		fls64((u32)(x))

#define __ffs(x)	((unsigned long)__builtin_ctzl(x))

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline void __set_bit(unsigned long n, unsigned long *map)
{
	map[n / BITS_PER_LONG] |= BIT(n % BITS_PER_LONG);
}

static inline void __clear_bit(unsigned long n, unsigned long *map)
{
	map[n / BITS_PER_LONG] &= ~BIT(n % BITS_PER_LONG);
}

static inline bool test_bit(unsigned long n, const unsigned long *map)
{
	return map[n / BITS_PER_LONG] & BIT(n % BITS_PER_LONG);
}

static inline void bitmap_zero(unsigned long *map, unsigned int n)
{
	memset(map, 0, BITS_TO_LONGS(n) * sizeof(long));
}

/* byte order */
#define cpu_to_be16(x)	htobe16(x)
#define cpu_to_be32(x)	htobe32(x)
#define cpu_to_be64(x)	((u64)htobe64(x))
#define be16_to_cpu(x)	be16toh(x)
#define be32_to_cpu(x)	be32toh(x)
#define be64_to_cpu(x)	((u64)be64toh(x))

/* error pointers */
#define ENOTSUPP	524
#define MAX_ERRNO	4095
#define IS_ERR_VALUE(x)	unlikely((unsigned long)(void *)(x) >= (unsigned long)-MAX_ERRNO)
#define ERR_PTR(e)	((void *)(long)(e))
#define PTR_ERR(p)	((long)(p))
#define IS_ERR(p)	IS_ERR_VALUE(p)
#define IS_ERR_OR_NULL(p) (!(p) || IS_ERR_VALUE(p))
#define ERR_CAST(p)	((void *)(p))

/* memory: counted, and made to fail on demand */
#define GFP_KERNEL	1U
#define GFP_ATOMIC	2U
#define GFP_NOWAIT	4U
#define __GFP_ZERO	8U
#define __GFP_NOWARN	16U

/**
 * struct shim_mem - state of the allocator
 * @live: allocations not yet freed
 * @fail_at: 1: the next allocation fails, 2: the one after it...; 0: none will
 */
struct shim_mem {
	long live;
	unsigned long fail_at;
};

__attribute__((weak)) struct shim_mem shim_mem;

static inline bool shim_mem_fails(void)
{
	return shim_mem.fail_at && --shim_mem.fail_at == 0;
}

static inline void *kmalloc(size_t n, gfp_t gfp)
{
	void *p = shim_mem_fails() ? NULL : malloc(n ? n : 1);

	if (!p)
		return NULL;
	shim_mem.live++;
	/* what nobody wrote must not look like zero */
	memset(p, gfp & __GFP_ZERO ? 0 : 0xa5, n);
	return p;
}

static inline void kfree(const void *p)
{
	if (p)
		shim_mem.live--;
	free((void *)p);
}

static inline void *krealloc(const void *p, size_t n, gfp_t gfp)
{
	if (!p)
		return kmalloc(n, gfp);
	return shim_mem_fails() ? NULL : realloc((void *)p, n ? n : 1);
}

static inline void *kmalloc_array(size_t n, size_t size, gfp_t gfp)
{
	size_t bytes;

	return check_mul_overflow(n, size, &bytes) ? NULL : kmalloc(bytes, gfp);
}

static inline void *kmemdup(const void *src, size_t n, gfp_t gfp)
{
	void *p = kmalloc(n, gfp);

	return p ? memcpy(p, src, n) : NULL;
}

struct kmem_cache { size_t size; };
#define kmem_cache_zalloc(c, gfp) kmalloc((c)->size, (gfp) | __GFP_ZERO)
#define kmem_cache_free(c, p)	kfree(p)
#define kzalloc(n, gfp)		kmalloc(n, (gfp) | __GFP_ZERO)
#define kcalloc(n, size, gfp)	kmalloc_array(n, size, (gfp) | __GFP_ZERO)
#define kvmalloc(n, gfp)	kmalloc(n, gfp)
#define kvzalloc(n, gfp)	kzalloc(n, gfp)
#define kvcalloc(n, s, gfp)	kcalloc(n, s, gfp)
#define kvfree(p)		kfree(p)
#define memzero_explicit(p, n)	do { memset(p, 0, n); barrier(); } while (0)

/* reference counts */
typedef struct {
	int refs;
} refcount_t;

#define REFCOUNT_INIT(n) { .refs = (n) }

static inline void refcount_set(refcount_t *r, int n)
{
	r->refs = n;
}

static inline unsigned int refcount_read(const refcount_t *r)
{
	return r->refs;
}

static inline void refcount_inc(refcount_t *r)
{
	if (r->refs++ <= 0)
		shim_die("refcount_inc on a dead object", __FILE__, __LINE__);
}

static inline bool refcount_dec_and_test(refcount_t *r)
{
	if (r->refs <= 0)
		shim_die("refcount_dec on a dead object", __FILE__, __LINE__);
	return --r->refs == 0;
}

/* lists */
struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD_INIT(h) { &(h), &(h) }
#define LIST_HEAD(h)	struct list_head h = LIST_HEAD_INIT(h)

static inline void INIT_LIST_HEAD(struct list_head *h)
{
	h->next = h;
	h->prev = h;
}

static inline void shim_list_link(struct list_head *a, struct list_head *b)
{
	a->next = b;
	b->prev = a;
}

static inline void list_add(struct list_head *n, struct list_head *h)
{
	shim_list_link(n, h->next);
	shim_list_link(h, n);
}

static inline void list_add_tail(struct list_head *n, struct list_head *h)
{
	list_add(n, h->prev);
}

/* a deleted entry is poisoned, as in the kernel */
static inline void list_del(struct list_head *n)
{
	shim_list_link(n->prev, n->next);
	n->next = NULL;
	n->prev = NULL;
}

static inline void list_del_init(struct list_head *n)
{
	shim_list_link(n->prev, n->next);
	INIT_LIST_HEAD(n);
}

static inline bool list_empty(const struct list_head *h)
{
	return h->next == h;
}

static inline bool list_is_last(const struct list_head *n, const struct list_head *h)
{
	return n->next == h;
}

static inline void list_move(struct list_head *n, struct list_head *h)
{
	list_del(n);
	list_add(n, h);
}

static inline void list_move_tail(struct list_head *n, struct list_head *h)
{
	list_move(n, h->prev);
}

static inline void list_splice_tail_init(struct list_head *from, struct list_head *h)
{
	if (list_empty(from))
		return;
	shim_list_link(h->prev, from->next);
	shim_list_link(from->prev, h);
	INIT_LIST_HEAD(from);
}

#define list_entry(p, t, m)	container_of(p, t, m)
#define list_first_entry(h, t, m) list_entry((h)->next, t, m)
#define list_last_entry(h, t, m) list_entry((h)->prev, t, m)
#define list_first_entry_or_null(h, t, m) (list_empty(h) ? NULL : list_first_entry(h, t, m))
#define list_next_entry(p, m)	list_entry((p)->m.next, __typeof__(*(p)), m)
#define list_prev_entry(p, m)	list_entry((p)->m.prev, __typeof__(*(p)), m)
#define list_entry_is_head(p, h, m) (&(p)->m == (h))
#define list_for_each_entry(p, h, m)					\
	for (p = list_first_entry(h, __typeof__(*p), m);		\
	     !list_entry_is_head(p, h, m); p = list_next_entry(p, m))
#define list_for_each_entry_reverse(p, h, m)				\
	for (p = list_last_entry(h, __typeof__(*p), m);			\
	     !list_entry_is_head(p, h, m); p = list_prev_entry(p, m))
#define list_for_each_entry_safe(p, n, h, m)				\
	for (p = list_first_entry(h, __typeof__(*p), m), n = list_next_entry(p, m); \
	     !list_entry_is_head(p, h, m); p = n, n = list_next_entry(n, m))

#endif /* QRDMA_TESTS_SHIM_H */
