/* SPDX-License-Identifier: MIT */
/*
 * check_raftd_kept.c -- what counts, and the log of a node may not have on disk (recovery/raftd_kept.h).
 *
 * GOAL    An entry is kept until the log has it on disk; pieces of a data file until the block that names it counts, too.  The
 *         others are taken in order, up to the end of the generation.
 * METHOD  Entries without bodies; a place that notes what it is given.
 */
#include <config.h>

#include <stdlib.h>

#include "tests/common/env.h"
#include "recovery/raftd_kept.h"
#include "recovery/raftd_place.h"

static struct raftd_kept kept;
static uint64_t taken[16];
static unsigned n_taken;
static int take_rc;

int
raftd_place_take(struct raftd_place *p, const struct raftd_entry *e)
{
    (void)p;
    must(n_taken < sizeof taken / sizeof taken[0]);
    taken[n_taken++] = e->kind == RAFTD_DATA ? e->lsn + 1 : e->lsn;
    return take_rc;
}

static void
keep(enum raftd_kind kind, uint64_t lsn, uint64_t end)
{
    struct raftd_item *item = (struct raftd_item *)calloc(1, sizeof *item);

    must(item != NULL);
    item->kind = RAFTD_ITEM_ENTRY;
    item->at = (struct raftd_entry){.kind = kind, .lsn = lsn, .end = end};
    raftd_kept_add(&kept, item);
}

/* must_take -- those that are left: their LSNs, + 1 for a piece. */
static void
must_take(uint64_t until, unsigned n, const uint64_t *lsn)
{
    n_taken = 0;
    must_ok(raftd_kept_take(&kept, NULL, until));
    must_eq(n_taken, n);
    for (unsigned i = 0; i < n; i++)
        must_eq(taken[i], lsn[i]);
    must(raftd_kept_is_empty(&kept));
}

START_TEST(entries_stay_until_they_are_on_disk)
{
    raftd_kept_init(&kept);
    must(raftd_kept_is_empty(&kept));
    keep(RAFTD_BATCH, 1000, 1200);
    keep(RAFTD_BATCH, 1200, 1600);
    keep(RAFTD_BATCH, 1600, 1800);
    raftd_kept_drop(&kept, 1100, 1800); /* one of the first one's blocks is */
    must(!raftd_kept_is_empty(&kept));
    raftd_kept_drop(&kept, 1200, 1800);
    must_take(UINT64_MAX, 2, (uint64_t[]){1200, 1600});
    keep(RAFTD_BATCH, 1800, 2000);
    raftd_kept_drop(&kept, 2000, 2000);
    must(raftd_kept_is_empty(&kept));
}
END_TEST

START_TEST(pieces_stay_until_their_block_counts)
{
    raftd_kept_init(&kept);
    keep(RAFTD_DATA, 1000, 1000);
    keep(RAFTD_DATA, 1000, 1000);
    raftd_kept_drop(&kept, 1200, 1000); /* their block is on disk, and does not count */
    must(!raftd_kept_is_empty(&kept));
    keep(RAFTD_BATCH, 1000, 1200);
    raftd_kept_drop(&kept, 1000, 1200); /* it counts, and is not on disk */
    must_take(UINT64_MAX, 3, (uint64_t[]){1001, 1001, 1000});
    keep(RAFTD_DATA, 1200, 1200);
    keep(RAFTD_BATCH, 1200, 1300);
    keep(RAFTD_DATA, 1300, 1300);
    raftd_kept_drop(&kept, 1300, 1300);
    must_take(UINT64_MAX, 1, (uint64_t[]){1301});
}
END_TEST

START_TEST(what_will_never_count_is_not_taken)
{
    raftd_kept_init(&kept);
    keep(RAFTD_BATCH, 1000, 1200);
    keep(RAFTD_DATA, 1200, 1200);
    must_take(1200, 1, (uint64_t[]){1000});
    keep(RAFTD_BATCH, 1200, 1300);
    keep(RAFTD_BATCH, 1300, 1400);
    n_taken = 0;
    take_rc = XAC_EFOREIGN;
    must_eq(raftd_kept_take(&kept, NULL, UINT64_MAX), XAC_EFOREIGN);
    must_eq(n_taken, 1);
    must(raftd_kept_is_empty(&kept));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("raftd_kept");
    TCase *t = env_tcase(s, "raftd_kept", 60);

    tcase_add_test(t, entries_stay_until_they_are_on_disk);
    tcase_add_test(t, pieces_stay_until_their_block_counts);
    tcase_add_test(t, what_will_never_count_is_not_taken);
    return env_main(s);
}
