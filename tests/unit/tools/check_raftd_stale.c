/* SPDX-License-Identifier: MIT */
/*
 * check_raftd_stale.c -- Raft's log that lies before its snapshot (recovery/raftd_stale.h).
 *
 * GOAL    It goes if all of it lies there, and stays in any other case.
 * METHOD  Empty files with the names that libraft uses.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <stdio.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "recovery/raftd_stale.h"

#define CLOSED_1 "0000000000139876-0000000000146194"
#define CLOSED_2 "0000000000146195-0000000000153833"
#define SNAPSHOT "snapshot-110-157058-19827268"

static void
make(const char *name)
{
    FILE *f = fopen(name, "we");

    must(f != NULL);
    must_ok(fclose(f));
}

static void
make_all(void)
{
    make(CLOSED_1);
    make(CLOSED_2);
    make("metadata1");
    make("snapshot-105-147705-19790167");
    make("snapshot-105-147705-19790167.meta");
    make(SNAPSHOT);
    make(SNAPSHOT ".meta");
}

START_TEST(log_before_the_snapshot_goes)
{
    make_all();
    must(raftd_stale_remove("."));
    must(access(CLOSED_1, F_OK) != 0);
    must(access(CLOSED_2, F_OK) != 0);
    must_ok(access("metadata1", F_OK));
    must_ok(access(SNAPSHOT, F_OK));
    must(!raftd_stale_remove(".")); /* there is none any more */
}
END_TEST

START_TEST(all_else_stays)
{
    static const char *const more[] = {"open-1", "0000000000153834-0000000000157058",
                                       "0000000000153834-0000000000157059"};

    make_all();
    if (_i < 3)
        make(more[_i]);
    else
        must_ok(unlink(SNAPSHOT ".meta")); /* it does not count */
    must(!raftd_stale_remove("."));
    must_ok(access(CLOSED_1, F_OK));
    must_ok(access(CLOSED_2, F_OK));
    must(!raftd_stale_remove("no such directory"));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("raftd_stale");
    TCase *c = env_tcase(s, "raftd_stale", 60);

    tcase_add_test(c, log_before_the_snapshot_goes);
    tcase_add_loop_test(c, all_else_stays, 0, 4);
    return env_main(s);
}
