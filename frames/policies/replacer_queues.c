/* SPDX-License-Identifier: MIT */
/*
 * replacer_queues.c -- 2Q, MQ and CAR: several queues, and ghosts.
 *
 *   2Q   T. Johnson, D. Shasha, VLDB 1994, the full version: A1in a quarter of the slots,
 *        A1out a half.
 *   MQ   Y. Zhou, J. Philbin, K. Li, USENIX 2001: eight queues, Qout four times the slots, a page
 *        falls by a queue after as many references as there are slots, times four.
 *   CAR  S. Bansal, D. Modha, FAST 2004.
 */
#include <config.h>

#include "frames/policies/replacer.h"

/* move -- between the lists a and b (numbers) through link 0; where tells the list, plus 1. */
static void
put(struct policy *p, unsigned list, uint32_t i)
{
    xac_assert(list < POLICY_LISTS);
    xac_assert(p->nodes[i].where == 0);
    xac_frames_list_push(p, &p->state->lists[list], 0, i);
    p->nodes[i].where = (uint8_t)(list + 1);
}

static void
out(struct policy *p, uint32_t i)
{
    xac_assert(p->nodes[i].where != 0);
    xac_frames_list_remove(p, &p->state->lists[p->nodes[i].where - 1], 0, i);
    p->nodes[i].where = 0;
}

/* take -- from the tail of a list; the slot is unknown then. */
static uint32_t
take_from(struct policy *p, unsigned list, policy_take *take, void *arg)
{
    uint32_t slot = xac_frames_list_take(p, &p->state->lists[list], 0, take, arg);

    xac_assert(list < POLICY_LISTS);
    if (slot != POLICY_NONE)
        p->nodes[slot].where = 0;
    return slot;
}

/* ghost_drop -- the oldest of a list of ghosts. */
static void
ghost_drop(struct policy *p, unsigned list)
{
    uint32_t oldest = p->state->lists[list].tail;

    if (oldest != POLICY_NONE) {
        xac_assert(oldest >= p->n); /* no slot */
        out(p, oldest);
        xac_frames_ghost_free(p, oldest);
    }
}

/* ghost_put -- remember slot's page at the head of a list of at most `most`. */
static void
ghost_put(struct policy *p, unsigned list, uint32_t slot, uint32_t most)
{
    uint32_t ghost;

    xac_assert(slot < p->n);
    xac_assert(most <= p->n_ghosts);
    if (p->nodes[slot].page == POLICY_NO_PAGE) /* dropped, not evicted */
        return;
    while (p->state->lists[list].n >= most && p->state->lists[list].n > 0)
        ghost_drop(p, list);
    ghost = xac_frames_ghost_new(p, p->nodes[slot].page);
    if (ghost == POLICY_NONE)
        return;
    node_count_set(p, ghost, node_count(p, slot));
    put(p, list, ghost);
}

/* ghost_end -- the page is here again; ret the list it was in, or -1; out its count. */
static int
ghost_end(struct policy *p, uint64_t page, uint32_t *countp)
{
    uint32_t ghost = xac_frames_ghost_find(p, page);
    int list;

    *countp = 0;
    if (ghost == POLICY_NONE)
        return -1;
    xac_assert(p->nodes[ghost].where != 0);
    list = p->nodes[ghost].where - 1;
    *countp = node_count(p, ghost);
    out(p, ghost);
    xac_frames_ghost_free(p, ghost);
    return list;
}

/* ---- 2Q ---------------------------------------------------------------------------- */

enum {
    Q_AM,
    Q_A1IN,
    Q_A1OUT
};

static uint32_t
quarter(uint32_t n)
{
    return n / 4 > 0 ? n / 4 : 1;
}

static uint32_t
half(uint32_t n)
{
    return n / 2 > 0 ? n / 2 : 1;
}

static void
q2_touch(struct policy *p, uint32_t slot)
{
    xac_assert(slot < p->n);
    if (p->nodes[slot].where == Q_AM + 1) {
        out(p, slot);
        put(p, Q_AM, slot);
    }
}

/* q2_ignores -- from A1in a page only leaves. */
static bool
q2_ignores(const struct policy *p, uint32_t slot)
{
    return p->nodes[slot].where == Q_A1IN + 1;
}

static void
q2_admit(struct policy *p, uint32_t slot, uint64_t page)
{
    uint32_t count;
    bool known = ghost_end(p, page, &count) == Q_A1OUT;

    xac_assert(slot < p->n);
    p->nodes[slot].page = page;
    put(p, known ? Q_AM : Q_A1IN, slot);
}

static uint32_t
q2_victim(struct policy *p, policy_take *take, void *arg)
{
    bool in_first =
        p->state->lists[Q_A1IN].n > quarter(p->n) || p->state->lists[Q_AM].n == 0;
    uint32_t slot = POLICY_NONE;

    if (!in_first)
        slot = take_from(p, Q_AM, take, arg);
    if (slot == POLICY_NONE) {
        slot = take_from(p, Q_A1IN, take, arg);
        if (slot != POLICY_NONE)
            ghost_put(p, Q_A1OUT, slot, half(p->n));
    }
    return slot != POLICY_NONE || !in_first ? slot : take_from(p, Q_AM, take, arg);
}

const struct policy_ops xac_frames_2q = {
    .n_ghosts = half,
    .touch = q2_touch,
    .admit = q2_admit,
    .ignores = q2_ignores,
    .victim = q2_victim,
    .forget = out,
};

/* ---- MQ ---------------------------------------------------------------------------- */

#define MQ_QUEUES 8 /* lists 0 to 7; list 8 is Qout */
#define MQ_TIMES  4 /* Qout and life time, times the slots */

static uint32_t
mq_ghosts(uint32_t n)
{
    return MQ_TIMES * n;
}

/* mq_put -- into the queue of its count, with a new life time. */
static void
mq_put(struct policy *p, uint32_t slot)
{
    unsigned queue = 31 - (unsigned)__builtin_clz(node_count(p, slot));

    xac_assert(node_count(p, slot) > 0);
    put(p, queue < MQ_QUEUES ? queue : MQ_QUEUES - 1, slot);
    p->nodes[slot].expires = p->state->now + (uint64_t)MQ_TIMES * p->n;
}

/* mq_tick -- one reference: the oldest of each queue may fall by one. */
static void
mq_tick(struct policy *p)
{
    p->state->now++;
    for (unsigned queue = 1; queue < MQ_QUEUES; queue++) {
        uint32_t oldest = p->state->lists[queue].tail;

        if (oldest != POLICY_NONE && p->nodes[oldest].expires < p->state->now) {
            out(p, oldest);
            put(p, queue - 1, oldest);
            p->nodes[oldest].expires = p->state->now + (uint64_t)MQ_TIMES * p->n;
        }
    }
}

static void
mq_touch(struct policy *p, uint32_t slot)
{
    xac_assert(slot < p->n);
    out(p, slot);
    node_count_set(p, slot, node_count(p, slot) + 1);
    mq_put(p, slot);
    mq_tick(p);
}

static void
mq_admit(struct policy *p, uint32_t slot, uint64_t page)
{
    uint32_t count;

    xac_assert(slot < p->n);
    (void)ghost_end(p, page, &count);
    p->nodes[slot].page = page;
    node_count_set(p, slot, count + 1);
    mq_put(p, slot);
    mq_tick(p);
}

static uint32_t
mq_victim(struct policy *p, policy_take *take, void *arg)
{
    uint32_t slot = POLICY_NONE;

    for (unsigned queue = 0; queue < MQ_QUEUES && slot == POLICY_NONE; queue++)
        slot = take_from(p, queue, take, arg);
    if (slot != POLICY_NONE)
        ghost_put(p, MQ_QUEUES, slot, mq_ghosts(p->n));
    return slot;
}

const struct policy_ops xac_frames_mq = {
    .n_ghosts = mq_ghosts,
    .touch = mq_touch,
    .admit = mq_admit,
    .victim = mq_victim,
    .forget = out,
};

/* ---- CAR --------------------------------------------------------------------------- */

enum {
    CAR_T1,
    CAR_T2,
    CAR_B1,
    CAR_B2
};

static uint32_t
car_ghosts(uint32_t n)
{
    return 2 * n + 2;
}

static uint32_t
car_n(struct policy *p, unsigned list)
{
    return p->state->lists[list].n;
}

static void
car_touch(struct policy *p, uint32_t slot)
{
    if (node_count(p, slot) != 1)
        node_count_set(p, slot, 1);
}

/*
 * car_turn -- the tail of a clock: taken, or moved to the head of T2 (used) or of its own.
 *
 * out  *blockedp  one more if it cannot be taken now
 */
static enum policy_answer
car_turn(struct policy *p, unsigned clock, policy_take *take, void *arg,
         uint32_t *blockedp)
{
    enum policy_answer answer = POLICY_REFUSED;
    uint32_t slot = p->state->lists[clock].tail;
    bool used = node_count(p, slot) != 0;
    /*
     * A use counts whether or not the page may leave: inner pages that were not promoted would
     * fill T1, of which leaves then have less (2 % more misses).
     */
    bool is_barred = p->is_barred != NULL && p->is_barred(arg, slot);

    xac_assert(slot < p->n);
    xac_assert(node_count(p, slot) <= 1);
    if (!used && !is_barred)
        answer = take(arg, slot);
    out(p, slot);
    if (answer == POLICY_TAKEN) {
        ghost_put(p, clock == CAR_T1 ? CAR_B1 : CAR_B2, slot, car_ghosts(p->n));
    } else {
        node_count_set(p, slot, 0);
        put(p, used ? CAR_T2 : clock, slot);
        *blockedp += !used;
    }
    return answer;
}

/*
 * car_victim -- from T1 if it has more than its share; from the other clock when all of the one
 * are blocked (Gilbert).  A turn blocks, or ends a use: so it ends.
 */
static uint32_t
car_victim(struct policy *p, policy_take *take, void *arg)
{
    enum policy_answer answer = POLICY_REFUSED;
    uint32_t blocked[] = {0, 0}; /* turns of T1, of T2, that found a slot not to be had */

    while (answer == POLICY_REFUSED) {
        uint64_t want = p->state->target > 1 ? p->state->target : 1;
        uint32_t n1 = car_n(p, CAR_T1), n2 = car_n(p, CAR_T2), slot;
        bool is_first = (n1 >= want || blocked[CAR_T2] >= n2) && blocked[CAR_T1] < n1;
        unsigned clock = is_first ? CAR_T1 : CAR_T2;

        if (blocked[clock] >= car_n(p, clock))
            return POLICY_NONE;
        slot = p->state->lists[clock].tail;
        answer = car_turn(p, clock, take, arg, &blocked[clock]);
        if (answer == POLICY_TAKEN)
            return slot;
    }
    return POLICY_NONE;
}

static void
car_admit(struct policy *p, uint32_t slot, uint64_t page)
{
    uint32_t n_b1 = car_n(p, CAR_B1), n_b2 = car_n(p, CAR_B2), count;
    int known = ghost_end(p, page, &count);
    uint64_t *target = &p->state->target;

    xac_assert(slot < p->n);
    if (known == CAR_B1) {
        *target += n_b2 / n_b1 > 1 ? n_b2 / n_b1 : 1;
        *target = *target < p->n ? *target : p->n;
    } else if (known == CAR_B2) {
        uint64_t less = n_b1 / n_b2 > 1 ? n_b1 / n_b2 : 1;

        *target -= less < *target ? less : *target;
    } else if (car_n(p, CAR_T1) + n_b1 >= p->n && n_b1 > 0) {
        ghost_drop(p, CAR_B1);
    } else if (car_n(p, CAR_T1) + car_n(p, CAR_T2) + n_b1 + n_b2 >= 2 * p->n) {
        ghost_drop(p, CAR_B2);
    }
    p->nodes[slot].page = page;
    node_count_set(p, slot, 0);
    put(p, known < 0 ? CAR_T1 : CAR_T2, slot);
    xac_assert(*target <= p->n);
}

const struct policy_ops xac_frames_car = {
    .touches_alone = true,
    .n_ghosts = car_ghosts,
    .touch = car_touch,
    .admit = car_admit,
    .victim = car_victim,
    .forget = out,
};
