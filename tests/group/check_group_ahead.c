/* SPDX-License-Identifier: MIT */
/*
 * check_group_ahead.c -- what a majority has before the leader has synced it.
 *
 * GOAL    The leader's log is proposed before it is synced there, so a majority has it, and other nodes apply it, while the sync is
 *         still under way.  It is not acknowledged before both are done.  When the leader's processes all die then, or its power
 *         fails, and its log has lost what was not synced, it gets that back: from its own Raft log, from the others', or from
 *         another node's log when Raft has it no more.
 * METHOD  Three nodes on this machine.  A program at the leader commits while its fdatasync() waits for the test
 *         (xac_sys); then the node's power fails (group_power.h).  Which sectors stay is drawn from a seed that is printed.
 */
#include <config.h>

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group_power.h"
#include "group_run.h"
#include "base/sys.h"
#include "base/names.h"
#include "tests/common/env.h"

#define PATIENCE_S 60
#define OPTIONS    "-s 1"

/* Transactions of the program before the one that waits for its sync. */
#define N_BEFORE 3

/* Of a large transaction: more than what Raft takes a snapshot after. */
#define LARGE_BYTES ((size_t)2 << 20)

/* Entries that Raft keeps behind a snapshot: of 1 MiB no more than that. */
#define RAFT_KEEPS 256

/* What test and program tell each other. */
struct stage {
    _Atomic uint64_t holds;        /* syncs wait                                       */
    _Atomic uint64_t n_held;       /* so many do                                       */
    _Atomic uint64_t acknowledged; /* transactions                                     */
    uint64_t first;                /* record                                          */
    bool is_large; /* the last transaction: it has a data file                        */
    uint64_t place[N_BEFORE + 1];
};

static struct stage *stage;

static int (*sync_file)(int fd);

/* is_segment -- of the log. */
static bool
is_segment(int fd)
{
    char link[64], path[4096];
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    must(n > 0);
    path[n] = '\0';
    return strstr(path, "/" XAC_LOG_PREFIX) != NULL;
}

/* sync_held -- for fdatasync(); data files are synced before their block is written. */
static int
sync_held(int fd)
{
    bool is_held = word_load(&stage->holds) != 0 && is_segment(fd);

    if (is_held)
        word_add(&stage->n_held, 1);
    while (is_held && word_load(&stage->holds) != 0)
        proc_sleep_us(1000);
    return sync_file(fd);
}

/* write_held -- a child: some transactions, and then one whose sync waits.  Exit code 4: the node does not lead. */
static _Noreturn void
write_held(const char *dir)
{
    struct group_file *f;
    char path[64];

    sync_file = xac_sys.fdatasync;
    xac_sys.fdatasync = sync_held;
    (void)snprintf(path, sizeof path, "%s/records", dir);
    if (xInit(dir, XAC_DURABLE) != 0)
        _exit(4);
    f = (struct group_file *)xMmap(path, sizeof *f);
    must((void *)f != MAP_FAILED);
    for (uint64_t i = 0; i <= N_BEFORE; i++) {
        word_store(&stage->holds, i == N_BEFORE);
        if (xbegin() != 0)
            _exit(4);
        stage->place[i] = f->n;
        f->record[f->n++] = stage->first + i;
        if (stage->is_large && i == N_BEFORE)
            memset((uint8_t *)(f + 1) - LARGE_BYTES, (int)(1 + stage->first % 250),
                   LARGE_BYTES);
        if (xend() != COMMITTED)
            _exit(4);
        word_add(&stage->acknowledged, 1);
    }
    _exit(0);
}

/* A program at the leader; its last transaction is not synced there. */
struct held {
    unsigned leader;
    pid_t pid;
};

/* is_ahead -- has a majority more than the leader has on disk, and have the others applied it? */
static bool
is_ahead(const struct group *g, unsigned leader)
{
    struct group_status s;
    struct group_log log;

    if (word_load(&stage->n_held) == 0 || !group_log_of(g, leader, &log)
        || log.durable == log.written)
        return false;
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        if (!group_ask(g, i, &s) || s.replicated != log.written
            || s.applied != log.written)
            return false;
    }
    return true;
}

/* tell_all -- print what keeps is_ahead() from being so. */
static void
tell_all(const struct group *g, unsigned leader)
{
    struct group_status s;
    struct group_log log = {.durable = 0};
    bool is_there = group_log_of(g, leader, &log);

    printf("node %u leads: %d syncs held; log %s, durable %" PRIu64 ", written %" PRIu64
           "\n",
           leader, (int)word_load(&stage->n_held), is_there ? "there" : "not there",
           log.durable, log.written);
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        if (group_ask(g, i, &s))
            printf("node %u: replicated %" PRIu64 ", applied %" PRIu64 "\n", i,
                   s.replicated, s.applied);
        else
            printf("node %u does not answer\n", i);
    }
    printf("node %u leads now\n", group_leader(g));
}

/* try_hold -- ret false: the leader has changed meanwhile. */
static bool
try_hold(struct group *g, struct held *h, bool is_large)
{
    double until = env_now() + PATIENCE_S;
    int status;

    memset(stage, 0, sizeof *stage);
    stage->first = g->next;
    stage->is_large = is_large;
    g->next += N_BEFORE + 1;
    h->leader = group_await_leader(g, PATIENCE_S);
    h->pid = fork();
    must(h->pid >= 0);
    if (h->pid == 0)
        write_held(g->node[h->leader - 1].dir);
    while (!is_ahead(g, h->leader)) {
        if (env_now() > until) {
            tell_all(g, h->leader);
            must(!"nobody was ahead of the leader's disk");
        }
        if (waitpid(h->pid, &status, WNOHANG) == h->pid) {
            must(WIFEXITED(status) ? WEXITSTATUS(status) == 4
                                   : WTERMSIG(status) == SIGKILL);
            return false;
        }
        (void)poll(NULL, 0, 50);
    }
    return true;
}

/* count -- the program's transactions that are acknowledged. */
static void
count(struct group *g)
{
    uint64_t n = word_load(&stage->acknowledged);

    for (uint64_t i = 0; i < n; i++)
        g->place[stage->first + i] = stage->place[i] + 1;
    g->n_acknowledged += n;
    word_store(&stage->acknowledged, 0);
}

/* hold -- a majority is ahead of the leader's disk. */
static struct held
hold(struct group *g, bool is_large)
{
    struct held h;

    if (stage == NULL)
        stage = (struct stage *)proc_shared(sizeof *stage);
    while (!try_hold(g, &h, is_large))
        count(g);
    proc_sleep_us(100000);
    must_eq(word_load(&stage->acknowledged), N_BEFORE); /* and no more */
    return h;
}

/* let_go -- ret when all is acknowledged. */
static void
let_go(struct group *g, const struct held *h)
{
    int status;

    word_store(&stage->holds, 0);
    must_eq(waitpid(h->pid, &status, 0), h->pid);
    must_eq(status, 0);
    count(g);
}

/* kill_held -- what has not been synced never is. */
static void
kill_held(struct group *g, const struct held *h)
{
    must_ok(kill(h->pid, SIGKILL));
    must_eq(waitpid(h->pid, NULL, 0), h->pid);
    count(g);
}

/* start_all -- the nodes that do not run. */
static void
start_all(struct group *g)
{
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        if (g->node[i - 1].pid == 0)
            group_start(g, i, OPTIONS);
    }
}

/* begin -- a group that has written something. */
static void
begin(struct group *g)
{
    group_make(g);
    start_all(g);
    group_await_acknowledged(g, 10, PATIENCE_S);
    group_kill_writer(g);
}

/* finish -- all agree. */
static void
finish(struct group *g)
{
    group_end_seen(g, PATIENCE_S);
    group_free(g);
}

START_TEST(a_majority_is_ahead_of_the_disk)
{
    struct held h;
    struct group g;

    begin(&g);
    h = hold(&g, false);
    let_go(&g, &h);
    finish(&g);
}
END_TEST

/* lose_power -- of the leader, which is ahead of its disk; the others may end, too.  ret it. */
static unsigned
lose_power(struct group *g, enum group_loss loss, bool is_large, bool all_end,
           uint64_t *seed)
{
    struct held h = hold(g, is_large);

    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        if (all_end && i != h.leader)
            group_kill(g, i);
    }
    kill_held(g, &h);
    must(group_cut_power(g, h.leader, loss, seed) > 0);
    return h.leader;
}

START_TEST(what_was_not_synced_comes_again)
{
    uint64_t seed = env_seed(), rounds = env_number("XAC_ROUNDS", 5);
    struct group g;

    begin(&g);
    for (uint64_t i = 0; i < rounds; i++) {
        enum group_loss loss = (enum group_loss)((i + 1) % GROUP_LOSSES);
        bool is_large = i / 2 % 2 == 0;
        bool all_end = i % 2 == 1; /* the same node may lead again */
        double begun = env_now();

        (void)lose_power(&g, loss, is_large, all_end, &seed);
        start_all(&g);
        group_await_acknowledged(&g, 5, PATIENCE_S);
        group_kill_writer(&g);
        printf("round %" PRIu64 ": loss %d, %s%s: %.2f s\n", i, loss,
               is_large ? "large, " : "", all_end ? "all end" : "others go on",
               env_now() - begun);
    }
    finish(&g);
}
END_TEST

/* Raft's log does not reach back to what the node has lost. */
START_TEST(what_was_not_synced_is_fetched)
{
    uint64_t seed = env_seed(), before, snapshots = 0;
    struct group_status s;
    unsigned old, leader;
    struct group g;

    begin(&g);
    old = lose_power(&g, GROUP_LOSES_ALL, false, false, &seed);
    leader = group_await_leader(&g, PATIENCE_S);
    must(group_ask(&g, leader, &s));
    before = s.entries;
    for (unsigned i = 0; i < 2; i++)
        group_write_large(&g); /* 160 entries each */
    do {
        group_await_acknowledged(&g, 40, PATIENCE_S);
        must(group_ask(&g, group_await_leader(&g, PATIENCE_S), &s));
        if (snapshots == 0 && s.entries > before + RAFT_KEEPS)
            snapshots = s.snapshots; /* the next one is behind all that the node lacks */
    } while (snapshots == 0 || s.snapshots <= snapshots);
    group_start(&g, old, OPTIONS);
    group_await_acknowledged(&g, 20, PATIENCE_S);
    finish(&g);
    must_ok(system("grep -q 'has the log of node' n[123].log"));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("group_ahead");
    TCase *t = env_tcase(s, "group_ahead", 600);

    (void)setvbuf(stdout, NULL, _IOLBF, 0);

    tcase_add_test(t, a_majority_is_ahead_of_the_disk);
    tcase_add_test(t, what_was_not_synced_comes_again);
    tcase_add_test(t, what_was_not_synced_is_fetched);
    return env_main(s);
}
