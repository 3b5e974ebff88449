/* SPDX-License-Identifier: MIT */
/*
 * check_group_behind.c -- xraftd: a node that is so far behind that Raft has only a snapshot for it.
 *
 * GOAL    It gets the log that it lacks from the leader, or a copy if the leader has no more that log; it ends with the same
 *         files as the others.  Killed in the middle, again and again, it goes on.  The others write meanwhile.
 * METHOD  Three nodes on this machine, as in check_group; one is away while the others write more than Raft keeps.  For the
 *         copy the leader's log has short segments, and is used again.  Random times, from a seed that is printed;
 *         XAC_KILLS of them.  XAC_LARGE transactions of 40 MiB are what it lacks (3).
 */
#include <config.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group_run.h"
#include "tests/common/env.h"

#define PATIENCE_S 90
#define OPTIONS    "-s 1"

/* Entries that Raft keeps behind a snapshot: of 1 MiB no more than that. */
#define RAFT_KEEPS 256

/* does_say -- the log of a node has the words. */
static bool
does_say(unsigned number, const char *words)
{
    char command[256];

    (void)snprintf(command, sizeof command, "grep -qs -e '%s' n%u.log", words, number);
    return system(command) == 0;
}

/* check_point -- a program at a node makes checkpoints, so that log can be used again. */
static void
check_point(const char *dir)
{
    pid_t pid = proc_fork();
    int status;

    if (pid == 0) {
        must_ok(xInit(dir, XAC_DURABLE));
        for (unsigned i = 0; i < 2; i++)
            must_ok(xCheckpoint());
        must_ok(xShutdown());
        _exit(0);
    }
    must_eq(waitpid(pid, &status, 0), pid);
    must_eq(status, 0);
}

/* leave_behind -- ret a node that has been away while the others wrote more than Raft keeps. */
static unsigned
leave_behind(struct group *g, bool is_small)
{
    struct group_status s;
    unsigned leader, away;
    uint64_t before, snapshots = 0;

    if (is_small)
        group_make_small(g);
    else
        group_make(g);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_start(g, i, OPTIONS);
    group_await_acknowledged(g, 20, PATIENCE_S);
    leader = group_await_leader(g, PATIENCE_S);
    away = 1 + leader % GROUP_NODES;
    group_kill(g, away);
    must(group_ask(g, leader, &s));
    before = s.entries;
    for (uint64_t i = env_number("XAC_LARGE", 3); i > 0; i--)
        group_write_large(g); /* 160 entries each */
    /* A page is logged whole the first time behind a checkpoint: so the log of some rounds fills several segments. */
    for (unsigned i = 0;
         i < (is_small ? 25 : 1) || snapshots == 0 || s.snapshots <= snapshots; i++) {
        group_await_acknowledged(g, 40, PATIENCE_S);
        leader = group_await_leader(g, PATIENCE_S);
        if (is_small)
            check_point(g->node[leader - 1].dir);
        must(group_ask(g, leader, &s));
        if (snapshots == 0 && s.entries > before + RAFT_KEEPS)
            snapshots = s.snapshots; /* the next one is behind all that the node lacks */
    }
    return away;
}

/* finish -- all agree. */
static void
finish(struct group *g)
{
    group_end_seen(g, PATIENCE_S);
    for (unsigned i = 0; i < GROUP_NODES; i++)
        group_must_be_large(g->node[i].dir);
    group_free(g);
}

START_TEST(a_node_far_behind_gets_log)
{
    struct group g;
    unsigned away = leave_behind(&g, false);

    group_start(&g, away, OPTIONS);
    group_await_acknowledged(&g, 20, PATIENCE_S);
    finish(&g);
    must(does_say(away, "has the log of node"));
    must(!does_say(away, "a copy is made"));
}
END_TEST

START_TEST(a_node_further_behind_gets_a_copy)
{
    struct group g;
    unsigned away = leave_behind(&g, true);
    char old[32], mine[32];

    /* What the library has left there goes, as old log does; what it does not know stays. */
    (void)snprintf(old, sizeof old, "n%u/xac-left", away);
    (void)snprintf(mine, sizeof mine, "n%u/mine", away);
    file_write(old, 0, "old", 3);
    file_write(mine, 0, "mine", 4);
    group_start(&g, away, OPTIONS);
    group_await_acknowledged(&g, 20, PATIENCE_S);
    finish(&g);
    must(!file_exists(old));
    must(file_exists(mine));
    must(does_say(away, "a copy is made"));
    must(does_say(away, "has the log of node"));
}
END_TEST

START_TEST(a_node_that_is_killed_while_it_catches_up_goes_on)
{
    unsigned kills = (unsigned)env_number("XAC_KILLS", 6);
    uint64_t seed = env_seed() + (uint64_t)_i;
    struct group g;
    unsigned away = leave_behind(&g, _i == 1);

    for (unsigned i = 0; i < kills; i++) {
        group_start(&g, away, OPTIONS);
        (void)poll(NULL, 0, 500 + (int)rnd_below(&seed, 2500));
        group_kill(&g, away);
    }
    group_start(&g, away, OPTIONS);
    group_await_acknowledged(&g, 20, PATIENCE_S);
    finish(&g);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("group_behind");
    TCase *t = env_tcase(s, "group_behind", 400), *copy = env_tcase(s, "copy", 400);

    tcase_add_test(t, a_node_far_behind_gets_log);
    tcase_add_test(copy, a_node_further_behind_gets_a_copy);
    tcase_add_loop_test(t, a_node_that_is_killed_while_it_catches_up_goes_on, 0, 2);
    return env_main(s);
}
