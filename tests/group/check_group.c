/* SPDX-License-Identifier: MIT */
/*
 * check_group.c -- three nodes of a group (xraftd), and a program that writes to the one that leads.
 *
 * GOAL    Whatever is killed or stopped, and whenever: what was acknowledged is on all nodes, in the same place, once; the
 *         nodes' files are equal, byte by byte.  The group goes on while two of three run, and the old leader comes back as
 *         one that follows.
 * METHOD  Daemons and writer are processes, on this machine.  The writer says what it begins and what was acknowledged, and is
 *         started again where the leader is.  Random rounds, from a seed that is printed: XAC_ROUNDS of them.
 */
#include <config.h>

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "group_run.h"

/* An election takes two seconds at most, if it succeeds at once. */
#define PATIENCE_S 60

/* start_all -- the nodes that do not run. */
static void
start_all(struct group *g, const char *options)
{
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        if (g->node[i - 1].pid == 0)
            group_start(g, i, options);
    }
}

/* end_all -- in order, and compare. */
static void
end_all(struct group *g)
{
    group_end_seen(g, PATIENCE_S);
    group_free(g);
}

START_TEST(a_group_writes_to_all_its_nodes)
{
    struct group g;

    group_make(&g);
    start_all(&g, "");
    (void)group_await_leader(&g, PATIENCE_S);
    group_await_acknowledged(&g, 200, PATIENCE_S);
    end_all(&g);
}
END_TEST

START_TEST(another_node_leads_when_the_leader_dies)
{
    struct group_status s;
    unsigned old, new;
    struct group g;
    double died;

    group_make(&g);
    start_all(&g, "");
    old = group_await_leader(&g, PATIENCE_S);
    group_await_acknowledged(&g, 100, PATIENCE_S);
    group_kill(&g, old);
    died = env_now();
    group_kill_writer(&g);
    group_await_acknowledged(&g, 1, PATIENCE_S);
    printf("%.2f s from the leader's death to the next commit\n", env_now() - died);
    new = group_leader(&g);
    must(new != old);
    group_await_acknowledged(&g, 100, PATIENCE_S);
    group_start(&g, old, "");
    group_await_acknowledged(&g, 100, PATIENCE_S);
    group_kill_writer(&g);
    group_await_agreement(&g, PATIENCE_S);
    must(group_ask(&g, old, &s));
    must_eq(strcmp(s.state, "standby"), 0);
    end_all(&g);
}
END_TEST

/* pause_for -- let the writer write meanwhile, if it can. */
static void
pause_for(unsigned ms)
{
    (void)poll(NULL, 0, (int)ms);
}

/* disturb -- kill or stop something; all that was killed is started again. */
static void
disturb(struct group *g, uint64_t *seed)
{
    unsigned leader = group_leader(g), any = 1 + (unsigned)rnd_below(seed, GROUP_NODES);
    pid_t stopped = 0;

    switch (rnd_below(seed, 7)) {
    case 0: /* the leader's daemon, and what writes there */
        if (leader != 0)
            group_kill(g, leader);
        group_kill_writer(g);
        break;
    case 1: /* the daemon only: the writer waits */
        if (leader != 0)
            group_kill(g, leader);
        break;
    case 2:
        group_kill(g, any);
        break;
    case 3:
        group_kill_writer(g);
        break;
    case 4: /* no majority is left */
        group_kill(g, any);
        group_kill(g, any % GROUP_NODES + 1);
        break;
    case 5: /* a daemon that stands still comes back and hears that it has been deposed */
        stopped = leader != 0 ? g->node[leader - 1].pid : g->node[any - 1].pid;
        break;
    default:
        stopped = g->writer;
    }
    if (stopped != 0)
        (void)kill(stopped, SIGSTOP);
    pause_for((unsigned)rnd_below(seed, 4000));
    if (stopped != 0)
        (void)kill(stopped, SIGCONT);
    start_all(g, "-s 1");
}

START_TEST(nothing_acknowledged_is_lost_whatever_dies)
{
    uint64_t seed = env_seed(), rounds = env_number("XAC_ROUNDS", 5);
    struct group g;

    group_make(&g);
    start_all(&g, "-s 1");
    (void)group_await_leader(&g, PATIENCE_S);
    for (uint64_t i = 0; i < rounds; i++) {
        double begun = env_now();

        group_await_acknowledged(&g, 1 + rnd_below(&seed, 300), PATIENCE_S);
        disturb(&g, &seed);
        group_await_acknowledged(&g, 1, PATIENCE_S);
        printf("round %" PRIu64 ": %.2f s, %" PRIu64 " acknowledged of %" PRIu64 "\n", i,
               env_now() - begun, g.n_acknowledged, g.next - 1);
    }
    end_all(&g);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("group");
    TCase *t = env_tcase(s, "group", 1200);

    (void)setvbuf(stdout, NULL, _IOLBF, 0);

    tcase_add_test(t, a_group_writes_to_all_its_nodes);
    tcase_add_test(t, another_node_leads_when_the_leader_dies);
    tcase_add_test(t, nothing_acknowledged_is_lost_whatever_dies);
    return env_main(s);
}
