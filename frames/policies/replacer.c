/* SPDX-License-Identifier: MIT */
/*
 * replacer.c -- see replacer.h: what the policies are made of.
 */
#include <config.h>

#include "frames/policies/replacer.h"

#include "xac_frames.h"

const struct policy_ops *
xac_frames_policy_ops(uint32_t policy)
{
    static const struct policy_ops *const all[XAC_FRAMES_N_POLICIES] = {
        [XAC_FRAMES_LRU] = &xac_frames_lru,
        [XAC_FRAMES_CLOCK] = &xac_frames_clock,
        [XAC_FRAMES_GCLOCK] = &xac_frames_gclock,
        [XAC_FRAMES_2Q] = &xac_frames_2q,
        [XAC_FRAMES_LIRS] = &xac_frames_lirs,
        [XAC_FRAMES_MQ] = &xac_frames_mq,
        [XAC_FRAMES_CAR] = &xac_frames_car,
        [XAC_FRAMES_RANDOM] = &xac_frames_random,
        [XAC_FRAMES_SWEEP] = &xac_frames_sweep,
        [XAC_FRAMES_GCLOCK_K] = &xac_frames_gclock_k,
    };

    return policy < XAC_FRAMES_N_POLICIES ? all[policy] : NULL;
}

/* ---- Memory ------------------------------------------------------------------------ */

uint64_t
xac_frames_policy_bytes(const struct policy_ops *ops, uint32_t n)
{
    uint64_t n_ghosts = ops->n_ghosts(n);

    return sizeof(struct policy_state) + (n + n_ghosts) * sizeof(struct policy_node)
           + (n_ghosts + 1) * sizeof(uint32_t);
}

void
xac_frames_policy_open(struct policy *p, const struct policy_ops *ops, uint32_t n,
                       void *memory)
{
    xac_assert(n > 0);
    xac_assert(memory != NULL);
    p->ops = ops;
    p->n = n;
    p->n_ghosts = ops->n_ghosts(n);
    p->n_buckets = p->n_ghosts + 1;
    p->state = memory;
    p->nodes = (struct policy_node *)(p->state + 1);
    p->buckets = (uint32_t *)(p->nodes + p->n + p->n_ghosts);
}

void
xac_frames_policy_init(struct policy *p)
{
    xac_assert(p->n_buckets == p->n_ghosts + 1);
    p->state->free_ghosts = POLICY_NONE;
    p->state->seed = UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < POLICY_LISTS; i++)
        p->state->lists[i] =
            (struct policy_list){.head = POLICY_NONE, .tail = POLICY_NONE};
    for (uint32_t i = 0; i < p->n_buckets; i++)
        p->buckets[i] = POLICY_NONE;
    for (uint32_t i = p->n_ghosts; i > 0; i--) {
        node_next_set(p, 0, p->n + i - 1, p->state->free_ghosts);
        p->state->free_ghosts = p->n + i - 1;
    }
}

/* ---- Lists ------------------------------------------------------------------------- */

/* join -- b comes after a in the list; NONE is its end. */
static void
join(struct policy *p, struct policy_list *list, int l, uint32_t a, uint32_t b)
{
    xac_assert(a == POLICY_NONE || a < p->n + p->n_ghosts);
    xac_assert(b == POLICY_NONE || b < p->n + p->n_ghosts);
    if (a == POLICY_NONE)
        list->head = b;
    else
        node_next_set(p, l, a, b);
    if (b == POLICY_NONE)
        list->tail = a;
    else
        node_prev_set(p, l, b, a);
}

void
xac_frames_list_push(struct policy *p, struct policy_list *list, int l, uint32_t i)
{
    xac_assert(i < p->n + p->n_ghosts);
    xac_assert((list->n == 0) == (list->head == POLICY_NONE));
    join(p, list, l, i, list->head);
    join(p, list, l, POLICY_NONE, i);
    list->n++;
    xac_assert(list->head == i);
}

void
xac_frames_list_remove(struct policy *p, struct policy_list *list, int l, uint32_t i)
{
    xac_assert(i < p->n + p->n_ghosts);
    xac_assert(list->n > 0);
    join(p, list, l, node_prev(p, l, i), node_next(p, l, i));
    list->n--;
    xac_assert((list->n == 0) == (list->head == POLICY_NONE));
}

void
xac_frames_list_swap(struct policy *p, struct policy_list *list, int l, uint32_t a,
                     uint32_t b)
{
    xac_assert(a != b);
    xac_assert(b < p->n + p->n_ghosts);
    join(p, list, l, node_prev(p, l, a), b);
    join(p, list, l, b, node_next(p, l, a));
}

uint32_t
xac_frames_list_take(struct policy *p, struct policy_list *list, int l, policy_take *take,
                     void *arg)
{
    enum policy_answer answer = POLICY_REFUSED;
    uint32_t i = list->tail;

    xac_assert(l == 0 || l == 1);
    while (i != POLICY_NONE && (answer = take(arg, i)) == POLICY_REFUSED)
        i = node_prev(p, l, i);
    if (answer != POLICY_TAKEN)
        return POLICY_NONE;
    xac_frames_list_remove(p, list, l, i);
    return i;
}

void
xac_frames_policy_warm(const struct policy *p, uint32_t slot)
{
    uint32_t n_nodes = p->n + p->n_ghosts;

    xac_assert(slot < p->n);
    for (int l = 0; l < 2; l++) {
        uint32_t prev = node_prev(p, l, slot), next = node_next(p, l, slot);

        if (prev < n_nodes) /* neither the end of a list, nor from a life long over */
            __builtin_prefetch(&p->nodes[prev], 1);
        if (next < n_nodes)
            __builtin_prefetch(&p->nodes[next], 1);
    }
}

/* ---- Ghosts ------------------------------------------------------------------------ */

static uint32_t *
bucket_of(struct policy *p, uint64_t page)
{
    xac_assert(p->n_buckets != 0);
    return &p->buckets[(page * UINT64_C(0x9e3779b97f4a7c15) >> 20) % p->n_buckets];
}

uint32_t
xac_frames_ghost_new(struct policy *p, uint64_t page)
{
    uint32_t ghost = p->state->free_ghosts;
    uint32_t *bucket = bucket_of(p, page);

    if (ghost == POLICY_NONE)
        return POLICY_NONE;
    xac_assert(ghost >= p->n);
    xac_assert(ghost < p->n + p->n_ghosts);
    p->state->free_ghosts = node_next(p, 0, ghost);
    p->nodes[ghost].page = page;
    p->nodes[ghost].chain = *bucket;
    p->nodes[ghost].expires = 0;
    p->nodes[ghost].in_stack = 0;
    node_count_set(p, ghost, 0);
    *bucket = ghost;
    return ghost;
}

uint32_t
xac_frames_ghost_find(struct policy *p, uint64_t page)
{
    uint32_t ghost = *bucket_of(p, page);

    while (ghost != POLICY_NONE && p->nodes[ghost].page != page)
        ghost = p->nodes[ghost].chain;
    return ghost;
}

void
xac_frames_ghost_free(struct policy *p, uint32_t ghost)
{
    uint32_t *at = bucket_of(p, p->nodes[ghost].page);

    xac_assert(ghost >= p->n);
    xac_assert(ghost < p->n + p->n_ghosts);
    while (*at != ghost)
        at = &p->nodes[*at].chain;
    *at = p->nodes[ghost].chain;
    p->nodes[ghost].where = 0;
    node_next_set(p, 0, ghost, p->state->free_ghosts);
    p->state->free_ghosts = ghost;
}
