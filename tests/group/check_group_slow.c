/* SPDX-License-Identifier: MIT */
/*
 * check_group_slow.c -- xraftd: a node whose environment does not keep up with what Raft decides.
 *
 * GOAL    Raft's log, which libraft has in memory, has a bound on each node: twice what a snapshot is taken after, one
 *         transaction, and what is under way.  A node that does not keep up holds back what comes, stays a follower, and has all
 *         in the end; the others go on.
 * METHOD  Three nodes on this machine, as in check_group, which take a snapshot after 1 MiB.  An old query holds up another
 *         generation on one of them.  Large transactions follow each other.
 */
#include <config.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group_run.h"
#include "tests/common/env.h"

#define PATIENCE_S 90
#define OPTIONS    "-q -s 1"
#define FILE_NAME  "records"
#define MIB        ((uint64_t)1 << 20)

/* What is under way to a node: libraft's leader sends 32 entries of at most 256 KiB. */
#define UNDER_WAY (8 * MIB)

/* ---- A node that is held up ---------------------------------------------------------- */

struct query {
    _Atomic uint64_t is_open, may_end;
    char dir[16];
};

/* query -- a child: one that is open for long. */
static void
query(void *arg)
{
    struct query *q = (struct query *)arg;
    const struct group_file *f;
    char path[64];

    must_ok(xInit(q->dir, XAC_DURABLE));
    (void)snprintf(path, sizeof path, "%s/" FILE_NAME, q->dir);
    f = (const struct group_file *)xMmap(path, sizeof *f);
    must((const void *)f != MAP_FAILED);
    must_ok(xbeginQuery());
    must(f->n < GROUP_RECORDS);
    word_store(&q->is_open, 1);
    while (word_load(&q->may_end) == 0)
        (void)poll(NULL, 0, 20);
    must_ok(xendQuery());
    must_ok(xShutdown());
}

/* await_redo -- until a node has what the group has now. */
static void
await_redo(const struct group *g, unsigned leader, unsigned number)
{
    double until = env_now() + PATIENCE_S;
    struct group_status there, here;

    must(group_ask(g, leader, &there));
    do {
        must(env_now() < until);
        (void)poll(NULL, 0, 20);
        must(group_ask(g, number, &here));
    } while (here.applied < there.replicated);
}

/* hold_up -- ret a node on which a query holds up another generation. */
static unsigned
hold_up(struct group *g, struct query *q, pid_t *reader)
{
    for (unsigned i = 0; i < 20; i++) {
        unsigned leader = group_await_leader(g, PATIENCE_S), next;
        unsigned slow = 1 + leader % GROUP_NODES;

        memcpy(q->dir, g->node[slow - 1].dir, sizeof q->dir);
        word_store(&q->is_open, 0);
        *reader = proc_spawn(query, q);
        proc_await(&q->is_open, 1, PATIENCE_S);
        group_await_acknowledged(g, 20, PATIENCE_S);
        await_redo(g, leader, slow); /* pages that the query keeps out of the file */
        group_kill(g, leader);
        next = group_await_leader(g, PATIENCE_S);
        group_start(g, leader, OPTIONS);
        if (next != slow)
            return slow;
        (void)proc_wait(*reader); /* it has been killed: its node leads */
    }
    env_fail(__FILE__, __LINE__, "the node with the query leads again and again");
}

START_TEST(a_node_that_does_not_keep_up_is_held_back)
{
    struct query *q = (struct query *)proc_shared(sizeof *q);
    double until = env_now() + PATIENCE_S;
    struct group_status s;
    struct group g;
    unsigned slow;
    pid_t reader;

    group_make(&g);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_start(&g, i, OPTIONS);
    group_await_acknowledged(&g, 20, PATIENCE_S);
    slow = hold_up(&g, q, &reader);
    group_write_large(&g); /* the others have it */
    group_await_acknowledged(&g, 20, PATIENCE_S);
    do { /* it has a line to the leader, and so on */
        must(env_now() < until);
        must(group_ask(&g, slow, &s));
        must(s.gathered <= 2 * MIB + UNDER_WAY);
        must_eq(strcmp(s.role, "follower"), 0);
    } while (s.gathered < 2 * MIB || s.held == 0);
    printf("gathered %.1f MiB, held %.1f MiB\n", (double)s.gathered / (double)MIB,
           (double)s.held / (double)MIB);
    must(s.held <= 2 * UNDER_WAY + MIB); /* of the leader now, and of the one before */
    must(group_leader(&g) != slow);
    word_store(&q->may_end, 1);
    proc_join(reader);
    group_await_acknowledged(&g, 20, PATIENCE_S);
    group_end_seen(&g, PATIENCE_S);
    for (unsigned i = 0; i < GROUP_NODES; i++)
        group_must_be_large(g.node[i].dir);
    group_free(&g);
}
END_TEST

/* ---- Large transactions -------------------------------------------------------------- */

#define EACH    (3 * MIB) /* more than a node may gather besides                       */
#define WRITERS 2
#define TIMES   20

struct writer {
    char dir[16];
    unsigned number;
};

/* write_many -- a child: transactions of that size, one behind the other. */
static void
write_many(void *arg)
{
    const struct writer *w = (const struct writer *)arg;
    char path[64];
    uint8_t *p;
    int rc;

    /* It does not wait for each: so the daemon finds several at once. */
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, 200));
    must_ok(xInit(w->dir, XAC_DURABLE));
    (void)snprintf(path, sizeof path, "%s/many%u", w->dir, w->number);
    p = (uint8_t *)xMmap(path, EACH);
    must((void *)p != MAP_FAILED);
    for (unsigned i = 1; i <= TIMES; i++) {
        do {
            must_ok(xbegin());
            memset(p, (int)i, EACH);
            rc = xend();
        } while (rc == ABORTED);
        must_eq(rc, COMMITTED);
    }
    must_ok(xSync());
    must_ok(xShutdown());
}

/* note_gathered -- the most on each node. */
static void
note_gathered(const struct group *g, uint64_t most[GROUP_NODES])
{
    for (unsigned i = 0; i < GROUP_NODES; i++) {
        struct group_status s;

        must(group_ask(g, i + 1, &s));
        most[i] = s.gathered > most[i] ? s.gathered : most[i];
    }
}

START_TEST(raft_is_shortened_between_large_transactions)
{
    struct writer w[WRITERS];
    uint64_t most[GROUP_NODES] = {0};
    struct group_status s;
    struct group g;
    unsigned leader, n_run = WRITERS;

    must_ok(setenv("XAC_GROUP_WAIT_MS", "60000", 1)); /* the disk may be slow */
    group_make(&g);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_start(&g, i, OPTIONS);
    leader = group_await_leader(&g, PATIENCE_S);
    for (unsigned i = 0; i < WRITERS; i++) {
        w[i] = (struct writer){.number = i};
        memcpy(w[i].dir, g.node[leader - 1].dir, sizeof w[i].dir);
        (void)proc_spawn(write_many, &w[i]);
    }
    while (n_run > 0) {
        int status;

        note_gathered(&g, most);
        if (waitpid(-1, &status, WNOHANG) > 0) {
            must_eq(status, 0);
            n_run--;
        }
    }
    must_eq(group_leader(&g), leader);
    group_await_agreement(&g, PATIENCE_S);
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        printf("node %u%s: %.1f MiB have gathered at the most\n", i,
               i == leader ? ", which leads" : "", (double)most[i - 1] / (double)MIB);
        /* The leader begins a transaction when nothing else is under way. */
        must(most[i - 1] <= 2 * MIB + EACH + (i == leader ? MIB / 4 : UNDER_WAY));
        must(group_ask(&g, i, &s));
        must(s.snapshots > 0);
    }
    group_end_equal(&g, PATIENCE_S);
    group_free(&g);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("group_slow");
    TCase *t = env_tcase(s, "group_slow", 400);

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    tcase_add_test(t, a_node_that_does_not_keep_up_is_held_back);
    tcase_add_test(t, raft_is_shortened_between_large_transactions);
    return env_main(s);
}
