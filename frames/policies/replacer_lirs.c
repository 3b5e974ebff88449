/* SPDX-License-Identifier: MIT */
/*
 * replacer_lirs.c -- LIRS: S. Jiang, X. Zhang, SIGMETRICS 2002.
 *
 * The stack S (link 0) orders pages by their last reference and ends in a LIR page; the queue Q
 * (link 1) holds the resident HIR pages, 1 % of the slots.  Pages of S that are no longer
 * resident are ghosts, through link 1 in a list of their own; at most twice the slots.
 */
#include <config.h>

#include "frames/policies/replacer.h"

enum {
    STACK,
    QUEUE,
    GHOSTS
};
enum {
    UNKNOWN,
    LIR,
    HIR,
    GHOST
};

static uint32_t
lirs_ghosts(uint32_t n)
{
    return 2 * n;
}

static uint32_t
hir_slots(uint32_t n)
{
    return n / 100 > 2 ? n / 100 : n > 2 ? 2 : 1;
}

static struct policy_list *
list(struct policy *p, int which)
{
    return &p->state->lists[which];
}

static void
stack_push(struct policy *p, uint32_t i)
{
    xac_assert(p->nodes[i].in_stack == 0);
    xac_frames_list_push(p, list(p, STACK), 0, i);
    p->nodes[i].in_stack = 1;
}

static void
stack_remove(struct policy *p, uint32_t i)
{
    xac_assert(p->nodes[i].in_stack != 0);
    xac_frames_list_remove(p, list(p, STACK), 0, i);
    p->nodes[i].in_stack = 0;
}

static void
ghost_end(struct policy *p, uint32_t ghost)
{
    xac_assert(p->nodes[ghost].where == GHOST);
    stack_remove(p, ghost);
    xac_frames_list_remove(p, list(p, GHOSTS), 1, ghost);
    xac_frames_ghost_free(p, ghost);
}

/* prune -- until the stack ends in a LIR page. */
static void
prune(struct policy *p)
{
    uint32_t i;

    while ((i = list(p, STACK)->tail) != POLICY_NONE && p->nodes[i].where != LIR) {
        if (p->nodes[i].where == GHOST)
            ghost_end(p, i);
        else
            stack_remove(p, i);
    }
}

/* lir_become -- from the top of the stack; there is one LIR page more. */
static void
lir_become(struct policy *p, uint32_t slot)
{
    xac_assert(p->nodes[slot].in_stack != 0);
    p->nodes[slot].where = LIR;
    p->state->now++;
}

/* lir_demote -- the LIR page with the oldest reference, if there are too many. */
static void
lir_demote(struct policy *p)
{
    uint32_t i = list(p, STACK)->tail;

    if (p->state->now <= p->n - hir_slots(p->n) || i == POLICY_NONE)
        return;
    stack_remove(p, i);
    p->nodes[i].where = HIR;
    p->state->now--;
    xac_frames_list_push(p, list(p, QUEUE), 1, i);
    prune(p);
}

static void
lirs_touch(struct policy *p, uint32_t slot)
{
    bool in_stack = p->nodes[slot].in_stack != 0;

    xac_assert(p->nodes[slot].where == LIR || p->nodes[slot].where == HIR);
    if (in_stack)
        stack_remove(p, slot);
    stack_push(p, slot);
    if (p->nodes[slot].where == HIR) {
        xac_frames_list_remove(p, list(p, QUEUE), 1, slot);
        if (in_stack) {
            lir_become(p, slot);
            lir_demote(p);
        } else {
            xac_frames_list_push(p, list(p, QUEUE), 1, slot);
        }
    }
    prune(p);
}

static void
lirs_admit(struct policy *p, uint32_t slot, uint64_t page)
{
    uint32_t ghost = xac_frames_ghost_find(p, page);

    xac_assert(p->nodes[slot].where == UNKNOWN);
    p->nodes[slot].page = page;
    if (ghost != POLICY_NONE)
        ghost_end(p, ghost);
    stack_push(p, slot);
    if (ghost != POLICY_NONE || p->state->now < p->n - hir_slots(p->n)) {
        lir_become(p, slot);
        lir_demote(p);
    } else {
        p->nodes[slot].where = HIR;
        xac_frames_list_push(p, list(p, QUEUE), 1, slot);
    }
    prune(p);
}

static void
lirs_forget(struct policy *p, uint32_t slot)
{
    xac_assert(p->nodes[slot].where == LIR || p->nodes[slot].where == HIR);
    if (p->nodes[slot].where == HIR)
        xac_frames_list_remove(p, list(p, QUEUE), 1, slot);
    else
        p->state->now--;
    if (p->nodes[slot].in_stack)
        stack_remove(p, slot);
    p->nodes[slot].where = UNKNOWN;
    prune(p);
}

/* ghost_begin -- what stays of a page in the stack that is no longer resident. */
static void
ghost_begin(struct policy *p, uint32_t slot)
{
    uint32_t ghost;

    xac_assert(p->nodes[slot].in_stack != 0);
    if (p->nodes[slot].page == POLICY_NO_PAGE) { /* dropped, not evicted */
        stack_remove(p, slot);
        return;
    }
    if (p->state->free_ghosts == POLICY_NONE)
        ghost_end(p, list(p, GHOSTS)->tail);
    ghost = xac_frames_ghost_new(p, p->nodes[slot].page);
    xac_assert(ghost != POLICY_NONE);
    p->nodes[ghost].where = GHOST;
    p->nodes[ghost].in_stack = 1;
    xac_frames_list_swap(p, list(p, STACK), 0, slot, ghost);
    xac_frames_list_push(p, list(p, GHOSTS), 1, ghost);
    p->nodes[slot].in_stack = 0;
}

static uint32_t
lirs_victim(struct policy *p, policy_take *take, void *arg)
{
    enum policy_answer answer = POLICY_REFUSED;
    uint32_t slot = xac_frames_list_take(p, list(p, QUEUE), 1, take, arg);

    if (slot != POLICY_NONE) {
        if (p->nodes[slot].in_stack)
            ghost_begin(p, slot);
        p->nodes[slot].where = UNKNOWN;
        return slot;
    }
    /* All of the queue are fixed: the oldest LIR page that is not. */
    for (slot = list(p, STACK)->tail; slot != POLICY_NONE && answer == POLICY_REFUSED;
         slot = node_prev(p, 0, slot))
        if (p->nodes[slot].where == LIR && (answer = take(arg, slot)) == POLICY_TAKEN) {
            lirs_forget(p, slot);
            return slot;
        }
    return POLICY_NONE;
}

const struct policy_ops xac_frames_lirs = {
    .n_ghosts = lirs_ghosts,
    .touch = lirs_touch,
    .admit = lirs_admit,
    .victim = lirs_victim,
    .forget = lirs_forget,
};
