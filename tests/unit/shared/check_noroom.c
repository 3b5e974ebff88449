/* SPDX-License-Identifier: MIT */
/*
 * check_noroom.c -- no room in the control region, or no mappings left, in the middle of
 * a transaction.
 *
 * GOAL    the transaction aborts and says why, sees its snapshot until then, and leaves
 *         nothing; a query goes on; with room again everything is as before.  Mappings
 *         that the program has used up cost nothing but larger units.
 * METHOD  xac_sys.fallocate fails, for the region grows by it; mappings are really used
 *         up.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/common/env.h"
#include "base/sys.h"

#define N_PAGES 400000 /* sparse: enough for the page table to outgrow the region */
#define STEP    64     /* pages: each in another leaf of the page table */

static uint64_t *x;
static size_t words; /* of a page */
static int (*real_fallocate)(int, int, off_t, off_t);

static int
full_fallocate(int fd, int mode, off_t offset, off_t length)
{
    (void)fd;
    (void)mode;
    (void)offset;
    (void)length;
    errno = ENOSPC;
    return -1;
}

static void
fill_up(void)
{
    real_fallocate = xac_sys.fallocate;
    xac_sys.fallocate = full_fallocate;
}

static void
make_room(void)
{
    xac_sys.fallocate = real_fallocate;
}

static void
attach(uint64_t policy)
{
    words = env_page() / sizeof *x;
    must_ok(xSetOption(XAC_OPT_POLICY, policy));
    x = env_attach(NONDURABLE, N_PAGES);
}

static uint64_t *
cell(uint64_t page)
{
    return x + page * words;
}

START_TEST(transaction_without_room_aborts)
{
    struct xac_conflict why;
    uint64_t seen = 0;

    attach((uint64_t)_i);
    env_put(cell(0), 1);
    fill_up();
    must_ok(xbegin());
    for (uint64_t p = 0; p < N_PAGES; p += STEP) {
        seen += *cell(p);
        *cell(p) += 1;
    }
    must_eq(seen, 1);
    must_eq(*cell(0), 2);
    must_eq(*cell(STEP), 1);
    must_eq(xValidate(), FAILED);
    must_refuse(xend(), ENOSPC);
    must(strstr(xLastError(), "control region") != NULL);
    must(strstr(xLastError(), " bytes") != NULL);
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.kind, XAC_CONFLICT_RESOURCE);
    must_eq(why.error, ENOSPC);
    make_room();
    must_eq(env_get(cell(0)), 1);
    must_eq(env_get(cell(STEP)), 0);
    must_eq(env_get(cell(N_PAGES / STEP / 2 * STEP)), 0);
    env_put(cell(N_PAGES - 1), 7);
    must_eq(env_get(cell(N_PAGES - 1)), 7);
    env_detach();
}
END_TEST

START_TEST(query_without_room_goes_on)
{
    uint64_t sum = 0;

    attach(0);
    for (uint64_t p = 0; p < 10; p++)
        env_put(cell(p * 1000), p);
    fill_up();
    must_ok(xbeginQuery());
    for (uint64_t p = 0; p < N_PAGES; p += STEP)
        sum += *cell(p);
    for (uint64_t p = 0; p < 10; p++)
        must_eq(*cell(p * 1000), p);
    must_ok(xendQuery());
    make_room();
    must_eq(sum, 8); /* of the ten, page 8000 is a multiple of STEP */
    env_put(cell(STEP), 1);
    must_eq(env_get(cell(STEP)), 1);
    env_detach();
}
END_TEST

/* Take all mappings but a few: pages of one area with alternating protections. */
static void
use_up_mappings(void)
{
    size_t page = env_page();
    size_t n = (size_t)1 << 17;
    char *p = mmap(NULL, n * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t i = 1;

    must(p != MAP_FAILED);
    while (i < n && mprotect(p + i * page, page, PROT_READ) == 0)
        i += 2;
    must(i < n); /* vm.max_map_count is higher than this test thinks */
    for (size_t k = 0; k < 100 && i > 2; k++) {
        i -= 2;
        must(mprotect(p + i * page, page, PROT_NONE) == 0);
    }
}

START_TEST(used_up_mappings_do_no_harm)
{
    attach((uint64_t)_i * XAC_POLICY_OPTIMISTIC); /* the default, and that */
    use_up_mappings();
    must_ok(xbegin());
    for (uint64_t p = 0; p < 2000; p++)
        *cell(p * 5 + 1) = p + 1;
    must_ok(xend());
    must_ok(xbeginQuery());
    for (uint64_t p = 0; p < 2000; p++) {
        must_eq(*cell(p * 5 + 1), p + 1);
        must_eq(*cell(p * 5 + 2), 0);
    }
    must_ok(xendQuery());
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("noroom");
    TCase *tc = env_tcase(s, "region", 60);

    tcase_add_loop_test(tc, transaction_without_room_aborts, 0, XAC_POLICY_SERIAL + 1);
    tcase_add_test(tc, query_without_room_goes_on);
    tc = env_tcase(s, "mappings", 120);
    tcase_add_loop_test(tc, used_up_mappings_do_no_harm, 0, 2);
    return env_main(s);
}
