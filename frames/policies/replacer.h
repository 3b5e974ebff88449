/* SPDX-License-Identifier: MIT */
/*
 * replacer.h -- replacement policies that need a lock: what they know of pages, in lists.
 *
 * WHAT      Which slot makes room.  A policy knows slots 0 to n - 1 that hold pages, and some of
 *           them the numbers of pages that were there (ghosts).
 * NOT       Frames, pins, tables, batches: locked.c. 
 * WHERE     In the pool's memory; indices, no pointers.
 * THREADS   under the lock of the policy's part, all of it; but touch() of a policy that touches alone.
 *
 * INVARIANTS
 *   Q1  A slot is known between admit() and victim() or forget(); node i is slot i's.
 *   Q2  Nodes from n on are ghosts: free, or in a list and in the index of pages.
 *   Q3  victim() offers slots in the policy's order until one is taken, or it is told that that
 *       is enough.
 */
#ifndef XAC_FRAMES_REPLACER_H
#define XAC_FRAMES_REPLACER_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"

#define POLICY_NONE    UINT32_MAX
#define POLICY_NO_PAGE UINT64_MAX
#define POLICY_LISTS   12
#define POLICY_LINE    64 /* bytes of a cache line */

/* Neighbours in a list: written under the lock, and read without it to warm the cache. */
struct policy_link {
    xac_shared _Atomic uint32_t prev, next;
};

/* One cache line each: what is changed under the lock is as few lines as can be. */
struct policy_node {
    alignas(POLICY_LINE) uint64_t page;
    uint64_t expires;           /* MQ: when it falls by a queue */
    struct policy_link link[2]; /* LIRS has a page in two lists */
    uint32_t chain;             /* next of the same bucket of the index */
    /* References, as far as the policy counts them; touched without the lock by some. */
    xac_shared _Atomic uint32_t count;
    uint8_t where;    /* the policy's; 0: the slot is unknown, the ghost is free */
    uint8_t in_stack; /* LIRS: in the stack */
};

struct policy_list {
    uint32_t head, tail, n;
};

struct policy_state {
    alignas(POLICY_LINE) struct policy_list lists[POLICY_LISTS];
    uint32_t free_ghosts; /* through link[0].next */
    uint32_t hand;
    uint64_t target; /* CAR: pages that T1 should have */
    uint64_t now;    /* MQ: references so far */
    uint64_t seed;   /* RANDOM */
};

/* A process's handle. */
struct policy {
    const struct policy_ops *ops;
    struct policy_state *state;
    struct policy_node *nodes;
    uint32_t *buckets;
    uint32_t n, n_ghosts, n_buckets;
    uint32_t count_max; /* GCLOCK_K: k */
    /* Clocks ask before they look at a slot's count; NULL: none is barred. */
    bool (*is_barred)(void *arg, uint32_t slot);
};

/* policy_take -- whether the slot can make room; if so it is taken. */
enum policy_answer {
    POLICY_REFUSED,
    POLICY_TAKEN,
    POLICY_ENOUGH /* this one cannot, and no other is to be offered in this search */
};
typedef enum policy_answer policy_take(void *arg, uint32_t slot);

struct policy_ops {
    /* touch() needs no lock, of a slot that is fixed; it may be one the policy does not know yet. */
    bool touches_alone;
    uint32_t (*n_ghosts)(uint32_t n);
    void (*touch)(struct policy *p, uint32_t slot);
    void (*admit)(struct policy *p, uint32_t slot, uint64_t page);
    /* After admit(): will no touch of the slot change anything, until it is unknown again?  NULL: each does. */
    bool (*ignores)(const struct policy *p, uint32_t slot);
    uint32_t (*victim)(struct policy *p, policy_take *take, void *arg); /* or NONE */
    void (*forget)(struct policy *p, uint32_t slot);
};

/* node_count, node_count_set -- a hint where it is touched without the lock. */
static inline uint32_t
node_count(const struct policy *p, uint32_t i)
{
    xac_assert_slow(i < p->n + p->n_ghosts);
    return atomic_load_explicit(&p->nodes[i].count, memory_order_relaxed);
}

static inline void
node_count_set(struct policy *p, uint32_t i, uint32_t count)
{
    xac_assert_slow(i < p->n + p->n_ghosts);
    atomic_store_explicit(&p->nodes[i].count, count, memory_order_relaxed);
}

/* node_prev, node_next -- neighbours through link `l`. */
static inline uint32_t
node_prev(const struct policy *p, int l, uint32_t i)
{
    xac_assert_slow(i < p->n + p->n_ghosts);
    return atomic_load_explicit(&p->nodes[i].link[l].prev, memory_order_relaxed);
}

static inline uint32_t
node_next(const struct policy *p, int l, uint32_t i)
{
    xac_assert_slow(i < p->n + p->n_ghosts);
    return atomic_load_explicit(&p->nodes[i].link[l].next, memory_order_relaxed);
}

static inline void
node_prev_set(struct policy *p, int l, uint32_t i, uint32_t prev)
{
    xac_assert_slow(i < p->n + p->n_ghosts);
    atomic_store_explicit(&p->nodes[i].link[l].prev, prev, memory_order_relaxed);
}

static inline void
node_next_set(struct policy *p, int l, uint32_t i, uint32_t next)
{
    xac_assert_slow(i < p->n + p->n_ghosts);
    atomic_store_explicit(&p->nodes[i].link[l].next, next, memory_order_relaxed);
}

/* By enum xac_frames_policy; NULL for NB_GCLOCK, which has no such thing. */
const struct policy_ops *xac_frames_policy_ops(uint32_t policy);

extern const struct policy_ops xac_frames_lru, xac_frames_clock, xac_frames_gclock;
extern const struct policy_ops xac_frames_2q, xac_frames_lirs, xac_frames_mq;
extern const struct policy_ops xac_frames_car, xac_frames_random, xac_frames_sweep;
extern const struct policy_ops xac_frames_gclock_k;

/* ---- replacer.c: lists and ghosts ------------------------------------------------------ */

/*
 * Bring into the cache what a touch of the slot changes: its node is there, its neighbours are not.
 * Without the lock: what it reads may be old, and is used for nothing else.
 */
void xac_frames_policy_warm(const struct policy *p, uint32_t slot);

/* Bytes for n slots; and a fresh state in zero-filled memory. */
uint64_t xac_frames_policy_bytes(const struct policy_ops *ops, uint32_t n);
void xac_frames_policy_open(struct policy *p, const struct policy_ops *ops, uint32_t n,
                            void *memory);
void xac_frames_policy_init(struct policy *p);

/* A list through link `l`: put at the head, take out, put b where a is. */
void xac_frames_list_push(struct policy *p, struct policy_list *list, int l, uint32_t i);
void xac_frames_list_remove(struct policy *p, struct policy_list *list, int l,
                            uint32_t i);
void xac_frames_list_swap(struct policy *p, struct policy_list *list, int l, uint32_t a,
                          uint32_t b);

/* The first from the tail that can be taken, taken out of the list; or NONE. */
uint32_t xac_frames_list_take(struct policy *p, struct policy_list *list, int l,
                              policy_take *take, void *arg);

/* A ghost for the page, or NONE if all are in use; find one; make one free. */
uint32_t xac_frames_ghost_new(struct policy *p, uint64_t page);
uint32_t xac_frames_ghost_find(struct policy *p, uint64_t page);
void xac_frames_ghost_free(struct policy *p, uint32_t ghost);

#endif /* XAC_FRAMES_REPLACER_H */
