/* SPDX-License-Identifier: MIT */
/*
 * check_areas.c -- the dispatcher of our own (fault_areas.c).
 *
 * GOAL    an address is given to the range that it is in, with that range's argument, and to
 *         nobody if there is none, after any sequence of insertions and removals.
 * METHOD  random ones beside a plain array.  This program has fault_areas.c compiled into it,
 *         so that it is tested in builds with libsigsegv, too.
 */
#include <config.h>

#include "fault/fault_areas.h"

#include <signal.h>
#include <stdint.h>

#include "tests/common/env.h"

#define SLOTS      500 /* places for a range, side by side, so that neighbours touch */
#define SLOT_BYTES 1024
#define STEPS      20000

static struct xac_areas set;

/* What should be there: of each slot, the bytes of it that are a range; 0 none. */
static struct slot {
    size_t length;
    void *ticket;
} slots[SLOTS];

static void *called_for; /* argument of the last call, and its address */
static void *called_with;
static int answer;

static int
on_area(void *addr, void *arg)
{
    called_for = arg;
    called_with = addr;
    return answer;
}

/* The addresses are never used. */
static uint8_t *
address_of(size_t slot, size_t offset)
{
    return (uint8_t *)(uintptr_t)(UINT64_C(0x200000000000) + slot * SLOT_BYTES + offset);
}

static void
must_dispatch(size_t slot, size_t offset)
{
    bool is_in = offset < slots[slot].length;
    uint8_t *addr = address_of(slot, offset);

    called_for = NULL;
    answer = 1;
    must_eq(xac_areas_dispatch(&set, addr), is_in);
    must(called_for == (is_in ? (void *)&slots[slot] : NULL));
    must(!is_in || called_with == addr);
    answer = 0; /* the function may refuse */
    must(!xac_areas_dispatch(&set, addr));
}

static void
toggle(size_t slot, size_t length)
{
    struct slot *s = &slots[slot];

    if (s->length > 0) {
        xac_areas_remove(&set, s->ticket);
        s->length = 0;
        return;
    }
    s->length = length;
    s->ticket = xac_areas_insert(&set, address_of(slot, 0), length, on_area, s);
    must(s->ticket != NULL);
}

START_TEST(dispatch_finds_the_range)
{
    uint64_t seed = env_seed();

    xac_areas_init(&set);
    for (int i = 0; i < STEPS; i++) {
        size_t slot, length;

        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        slot = (seed >> 33) % SLOTS;
        length = (seed >> 20) % 4 == 0 ? SLOT_BYTES : 1 + (seed >> 10) % SLOT_BYTES;
        toggle(slot, length);
        must_dispatch(slot, 0);
        must_dispatch(slot, SLOT_BYTES - 1);
        must_dispatch(slot, length - 1);
        must_dispatch(slot, length % SLOT_BYTES);
        must_dispatch((slot + 1) % SLOTS, 0);
        must_dispatch((slot + SLOTS - 1) % SLOTS, SLOT_BYTES - 1);
    }
    must(!xac_areas_dispatch(&set, NULL));
    must(!xac_areas_dispatch(&set, (void *)UINTPTR_MAX));
    for (size_t k = 0; k < SLOTS; k++) {
        if (slots[k].length > 0)
            toggle(k, 0);
    }
    must(!xac_areas_dispatch(&set, address_of(0, 0)));
    xac_areas_init(&set);
}
END_TEST

START_TEST(dispatch_in_an_empty_set_finds_nothing)
{
    xac_areas_init(&set);
    must(!xac_areas_dispatch(&set, address_of(0, 0)));
}
END_TEST

/* Invariant (1): a mistake of the library is not passed over. */
START_TEST(insert_refuses_an_overlap)
{
    xac_areas_init(&set);
    toggle(1, SLOT_BYTES);
    (void)xac_areas_insert(&set, address_of(_i == 0 ? 0 : 1, 1), SLOT_BYTES, on_area,
                           NULL);
}
END_TEST

static Suite *
areas_suite(void)
{
    Suite *s = suite_create("areas");
    TCase *tc = env_tcase(s, "areas", 20);

    tcase_add_test(tc, dispatch_finds_the_range);
    tcase_add_test(tc, dispatch_in_an_empty_set_finds_nothing);
    tcase_add_loop_test_raise_signal(tc, insert_refuses_an_overlap, SIGABRT, 0, 2);
    return s;
}

int
main(void)
{
    return env_main(areas_suite());
}
