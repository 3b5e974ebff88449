/* SPDX-License-Identifier: MIT */
/*
 * replacer_simple.c -- LRU, CLOCK, GCLOCK, RANDOM and SWEEP: no ghosts.
 *
 * GCLOCK is the textbook's: the hand tests, then decrements; without a cap.  GCLOCK_K is that of
 * M. F. Gilbert, "Evaluation of Pointer Swizzling Techniques for DBMS Buffer Management" (TU
 * Kaiserslautern, 2016): a page comes in with count 0, and a hit sets it to k.  SWEEP takes the
 * next slot in the circle that can be taken.
 */
#include <config.h>

#include "frames/policies/replacer.h"

static uint32_t
no_ghosts(uint32_t n)
{
    (void)n;
    return 0;
}

/* ---- LRU --------------------------------------------------------------------------- */

static void
lru_forget(struct policy *p, uint32_t slot)
{
    xac_assert(p->nodes[slot].where != 0);
    xac_frames_list_remove(p, &p->state->lists[0], 0, slot);
    p->nodes[slot].where = 0;
}

static void
lru_admit(struct policy *p, uint32_t slot, uint64_t page)
{
    xac_assert(p->nodes[slot].where == 0);
    p->nodes[slot].page = page;
    p->nodes[slot].where = 1;
    xac_frames_list_push(p, &p->state->lists[0], 0, slot);
}

static void
lru_touch(struct policy *p, uint32_t slot)
{
    xac_assert(p->nodes[slot].where != 0);
    xac_frames_list_remove(p, &p->state->lists[0], 0, slot);
    xac_frames_list_push(p, &p->state->lists[0], 0, slot);
}

static uint32_t
lru_victim(struct policy *p, policy_take *take, void *arg)
{
    uint32_t slot = xac_frames_list_take(p, &p->state->lists[0], 0, take, arg);

    if (slot != POLICY_NONE)
        p->nodes[slot].where = 0;
    return slot;
}

const struct policy_ops xac_frames_lru = {
    .n_ghosts = no_ghosts,
    .touch = lru_touch,
    .admit = lru_admit,
    .victim = lru_victim,
    .forget = lru_forget,
};

/* ---- Hands ------------------------------------------------------------------------- */

static void
hand_forget(struct policy *p, uint32_t slot)
{
    xac_assert(p->nodes[slot].where != 0);
    p->nodes[slot].where = 0;
}

static void
hand_admit(struct policy *p, uint32_t slot, uint64_t page)
{
    xac_assert(slot < p->n);
    xac_assert(p->nodes[slot].where == 0);
    p->nodes[slot].page = page;
    p->nodes[slot].where = 1;
    node_count_set(p, slot, 1);
}

static void
new_admit(struct policy *p, uint32_t slot, uint64_t page)
{
    hand_admit(p, slot, page);
    node_count_set(p, slot, 0);
}

static void
max_touch(struct policy *p, uint32_t slot)
{
    if (node_count(p, slot) != p->count_max)
        node_count_set(p, slot, p->count_max);
}

static void
count_touch(struct policy *p, uint32_t slot)
{
    atomic_fetch_add_explicit(&p->nodes[slot].count, 1, memory_order_relaxed);
}

static void
bit_touch(struct policy *p, uint32_t slot)
{
    if (node_count(p, slot) != 1) /* most often it is: the line stays shared */
        node_count_set(p, slot, 1);
}

static void
no_touch(struct policy *p, uint32_t slot)
{
    (void)p;
    (void)slot;
}

/* hand_take -- the first from the hand on that has no count left and can be taken. */
static uint32_t
hand_take(struct policy *p, bool counts, policy_take *take, void *arg)
{
    enum policy_answer answer = POLICY_REFUSED;

    xac_assert(p->state->hand < p->n);
    for (uint32_t refused = 0; refused < p->n && answer == POLICY_REFUSED;) {
        uint32_t slot = p->state->hand;

        p->state->hand = slot + 1 < p->n ? slot + 1 : 0;
        if (p->is_barred != NULL && p->nodes[slot].where != 0
            && p->is_barred(arg, slot)) {
            refused++; /* its count stays: what bars it is a use */
        } else if (counts && p->nodes[slot].where != 0 && node_count(p, slot) > 0) {
            atomic_fetch_sub_explicit(&p->nodes[slot].count, 1, memory_order_relaxed);
            refused = 0;
        } else if (p->nodes[slot].where != 0
                   && (answer = take(arg, slot)) == POLICY_TAKEN) {
            p->nodes[slot].where = 0;
            return slot;
        } else {
            refused++;
        }
    }
    return POLICY_NONE;
}

static uint32_t
clock_victim(struct policy *p, policy_take *take, void *arg)
{
    return hand_take(p, true, take, arg);
}

static uint32_t
sweep_victim(struct policy *p, policy_take *take, void *arg)
{
    return hand_take(p, false, take, arg);
}

static uint32_t
random_victim(struct policy *p, policy_take *take, void *arg)
{
    uint64_t x = p->state->seed;

    x ^= x << 13; /* xorshift64 */
    x ^= x >> 7;
    x ^= x << 17;
    p->state->seed = x;
    p->state->hand = (uint32_t)((x >> 16) % p->n);
    return hand_take(p, false, take, arg);
}

const struct policy_ops xac_frames_clock = {
    .touches_alone = true,
    .n_ghosts = no_ghosts,
    .touch = bit_touch,
    .admit = hand_admit,
    .victim = clock_victim,
    .forget = hand_forget,
};
const struct policy_ops xac_frames_gclock = {
    .touches_alone = true,
    .n_ghosts = no_ghosts,
    .touch = count_touch,
    .admit = hand_admit,
    .victim = clock_victim,
    .forget = hand_forget,
};
const struct policy_ops xac_frames_gclock_k = {
    .touches_alone = true,
    .n_ghosts = no_ghosts,
    .touch = max_touch,
    .admit = new_admit,
    .victim = clock_victim,
    .forget = hand_forget,
};
const struct policy_ops xac_frames_random = {
    .touches_alone = true,
    .n_ghosts = no_ghosts,
    .touch = no_touch,
    .admit = hand_admit,
    .victim = random_victim,
    .forget = hand_forget,
};
const struct policy_ops xac_frames_sweep = {
    .touches_alone = true,
    .n_ghosts = no_ghosts,
    .touch = no_touch,
    .admit = hand_admit,
    .victim = sweep_victim,
    .forget = hand_forget,
};
