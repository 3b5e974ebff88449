/* SPDX-License-Identifier: MIT */
/*
 * backoff_worker.c -- the processes of the experiment `backoff`: inserts into one tree by
 * xac_transact(), which waits as it is told between an abort and the next attempt.
 *
 * WINNER    The way that oldest-wins has by itself (libxac/txn/conflict.h, invariant 2), for any
 *           policy: each process counts when an insert begins and when it is over; a loser asks the
 *           library which process has won, and waits until this one's insert is over, or for 10 ms,
 *           twice as long for each further attempt, 1.28 s at most.  If no insert is under way there,
 *           it does not wait: the winner may have done its last one.
 */
#include <config.h>

#include "bench/contention/backoff.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>
#include <xac_stats.h>

#include "bench/kit/util.h"
#include "bench/systems/sys_xac.h"

#define TURN_TIMEOUT_MS (15u * 60 * 1000)

/* `exponential`: below this, doubled with each attempt. */
#define UNIT_NS     UINT64_C(10000)
#define DOUBLES_MAX 10u

/* `winner`: as the library's own for oldest-wins. */
#define WINNER_NS          UINT64_C(10000000)
#define WINNER_DOUBLES_MAX 7u
#define WINNER_YIELDS      100u
#define WINNER_SLEEP_NS    UINT64_C(50000)

enum order_kind {
    ORDER_OPEN,
    ORDER_LOAD,
    ORDER_RUN,
    ORDER_CLOSE,
    ORDER_CHECK
};
static const char *const order_names[] = {"open", "load", "run", "close", "check"};

enum {
    COUNT_COMMITS,
    COUNT_ABORTS,
    COUNT_MAX_RETRIES,
    COUNT_LONGEST_NS,
    COUNT_WAITED_NS
};

/* What processes show each other. */
struct shown {
    struct {
        _Atomic int pid;
        _Atomic uint64_t n_edges; /* begins and ends of inserts; odd: one is under way */
    } of[BENCH_TEAM_MAX];
};

/* A process's own; the parent has the turn and the shown only. */
static struct {
    struct bench_backoff_turn *turn;
    struct shown *shown;
    unsigned number;
    struct xac_segment segment;
    union bench_tree tree;
    uint64_t seed; /* of random waits                                                  */
    uint64_t waited_ns;
    /* The insert under way: */
    unsigned char key[BENCH_KEY_BYTES], value[BENCH_VALUE_BYTES];
    uint64_t attempts;
} me;

/* ---- Ways to wait ------------------------------------------------------------------------ */

static void
wait_none(void *arg, unsigned attempts)
{
    (void)arg;
    (void)attempts;
}

static void
wait_fixed(void *arg, unsigned attempts)
{
    uint64_t now = bench_now_ns();

    (void)arg;
    (void)attempts;
    bench_sleep_until(now + me.turn->options->fixed_us * 1000);
    me.waited_ns += bench_now_ns() - now;
}

static void
wait_exponential(void *arg, unsigned attempts)
{
    uint64_t now = bench_now_ns();
    uint64_t bound = UNIT_NS << (attempts < DOUBLES_MAX ? attempts : DOUBLES_MAX);

    (void)arg;
    bench_sleep_until(now + bench_key(me.seed++, me.number) % bound);
    me.waited_ns += bench_now_ns() - now;
}

/* number_of -- of the process with a pid; n_procs: it is none of ours. */
static unsigned
number_of(int pid)
{
    unsigned i = 0;

    while (i < me.turn->n_procs
           && atomic_load_explicit(&me.shown->of[i].pid, memory_order_relaxed) != pid)
        i++;
    return i;
}

static void
wait_winner(void *arg, unsigned attempts)
{
    unsigned doubles = attempts > 0 ? attempts - 1 : 0, other;
    uint64_t now = bench_now_ns(), until, n_edges;
    struct xac_conflict why = {0};

    (void)arg;
    if (xac_get_conflict(&why, sizeof why) != 0 || why.other_pid == 0)
        return; /* it has committed already: nobody to wait for */
    other = number_of(why.other_pid);
    if (other == me.turn->n_procs || other == me.number)
        return;
    doubles = doubles < WINNER_DOUBLES_MAX ? doubles : WINNER_DOUBLES_MAX;
    until = now + (WINNER_NS << doubles);
    /* Relaxed: only whether it changes is looked at. */
    n_edges = atomic_load_explicit(&me.shown->of[other].n_edges, memory_order_relaxed);
    for (unsigned n = 0; n_edges % 2 == 1 && bench_now_ns() < until; n++) {
        if (atomic_load_explicit(&me.shown->of[other].n_edges, memory_order_relaxed)
            != n_edges)
            break;
        if (n < WINNER_YIELDS)
            (void)sched_yield();
        else
            bench_sleep_until(bench_now_ns() + WINNER_SLEEP_NS);
    }
    me.waited_ns += bench_now_ns() - now;
}

const struct bench_backoff bench_backoffs[] = {
    {"none", "the next attempt at once", wait_none},
    {"fixed", "sleeps --fixed-us", wait_fixed},
    {"exponential",
     "sleeps a random time below 20 us, twice that for each further attempt",
     wait_exponential},
    {"winner",
     "until the transaction that has won is over, as oldest-wins does by itself",
     wait_winner},
    {NULL, NULL, NULL},
};

const struct bench_backoff_tree bench_backoff_trees[] = {
    {"btree", &bench_kind_btree_txn},
    {"cobtree", &bench_kind_cobtree_txn},
    {NULL, NULL},
};

/* ---- A process --------------------------------------------------------------------------- */

/* open_tree -- number 0 makes it; ret 0 or a code. */
static int
open_tree(bool make)
{
    const struct bench_backoff_options *o = me.turn->options;
    const struct bench_tree_config sizes = {.count = o->loaded + o->count,
                                            .key_size = BENCH_KEY_BYTES,
                                            .value_size = BENCH_VALUE_BYTES,
                                            .block_size = 4096};
    const struct bench_config config = {.dir = me.turn->dir,
                                        .checkpoint_bytes = UINT64_C(256) << 20,
                                        .log_file_bytes = UINT64_C(16) << 20};
    size_t size = me.turn->tree->kind->size(&sizes);
    int rc = xac_set_option(XAC_OPT_POLICY, me.turn->policy->kind);

    if (rc == 0)
        rc = xac_set_backoff(me.turn->backoff->wait, NULL);
    if (rc == 0)
        rc = bench_xac_open(&me.segment, &config, size);
    if (rc != 0)
        return rc;
    rc = make ? me.turn->tree->kind->create(&me.tree, me.segment.base, size, &sizes)
              : me.turn->tree->kind->open(&me.tree, me.segment.base, size);
    if (rc != 0)
        (void)bench_xac_close(&me.segment);
    return rc;
}

/* close_tree -- ret 0 or a code; ENOMEM if a transaction aborted as there was no room. */
static int
close_tree(void)
{
    struct xac_stats stats = {0};
    int rc = xac_get_stats(&stats, sizeof stats), rc2;

    if (rc == 0 && stats.aborts_other != 0)
        rc = ENOMEM;
    rc2 = bench_xac_close(&me.segment);
    return rc != 0 ? rc : rc2;
}

/* insert_it -- one attempt, for xac_transact(). */
static int
insert_it(void *arg)
{
    int rc;

    (void)arg;
    me.attempts++;
    rc = me.turn->tree->kind->insert(&me.tree, me.key, me.value, TREE_ADD);
    return rc == XAC_FAILED ? 0 : rc; /* the transaction's end aborts, and says so */
}

/* insert -- record i; ret 0 or a code. */
static int
insert(uint64_t i)
{
    uint64_t key = bench_key(me.turn->options->seed, i);
    int rc;

    bench_key_encode(key, me.key);
    bench_value_fill(key, me.value);
    me.attempts = 0;
    rc = xac_transact(insert_it, NULL);
    return rc == XAC_COMMITTED ? 0 : rc;
}

/* load -- the first records. */
static int
load(void)
{
    int rc = 0;

    for (uint64_t i = 0; i < me.turn->options->loaded && rc == 0; i++)
        rc = insert(i);
    return rc;
}

/* count_edge -- an insert begins, or is over.  Relaxed: see wait_winner. */
static void
count_edge(void)
{
    atomic_fetch_add_explicit(&me.shown->of[me.number].n_edges, 1, memory_order_relaxed);
}

/* run -- every n_procs-th insert of the turn. */
static int
run(struct bench_answer *answer)
{
    const struct bench_backoff_options *o = me.turn->options;
    uint64_t *count = answer->count, now;
    int rc = 0;

    me.waited_ns = 0;
    now = answer->start_ns = answer->end_ns = bench_now_ns();
    for (uint64_t i = me.number; i < o->count && rc == 0; i += me.turn->n_procs) {
        count_edge();
        rc = insert(o->loaded + i);
        count_edge();
        answer->end_ns = bench_now_ns();
        count[COUNT_COMMITS]++;
        count[COUNT_ABORTS] += me.attempts - 1;
        if (me.attempts - 1 > count[COUNT_MAX_RETRIES])
            count[COUNT_MAX_RETRIES] = me.attempts - 1;
        if (answer->end_ns - now > count[COUNT_LONGEST_NS])
            count[COUNT_LONGEST_NS] = answer->end_ns - now;
        now = answer->end_ns;
    }
    count[COUNT_WAITED_NS] = me.waited_ns;
    return rc;
}

/* What a scan has seen: which keys, by two sums that do not depend on the order. */
struct seen {
    uint64_t n, sum, mixed;
    uint64_t wrong; /* values                                                          */
};

static void
see(struct seen *seen, uint64_t key)
{
    seen->n++;
    seen->sum += key;
    seen->mixed ^= bench_key(key, 1);
}

static int
visit(void *arg, const void *key, const void *value)
{
    unsigned char want[BENCH_VALUE_BYTES];
    uint64_t k = bench_key_decode(key);
    struct seen *seen = arg;

    bench_value_fill(k, want);
    seen->wrong += memcmp(value, want, sizeof want) != 0;
    see(seen, k);
    return 0;
}

/* check -- ret 0, EBADMSG if the records are not what was committed, or a code. */
static int
check(void)
{
    const struct bench_backoff_options *o = me.turn->options;
    struct seen want = {0}, found = {0};
    int rc = open_tree(false), rc2;

    if (rc != 0)
        return rc;
    for (uint64_t i = 0; i < o->loaded + o->count; i++)
        see(&want, bench_key(o->seed, i));
    rc = me.turn->tree->kind->scan(&me.tree, NULL, visit, &found);
    if (rc == 0 && memcmp(&want, &found, sizeof want) != 0)
        rc = EBADMSG;
    rc2 = close_tree();
    return rc != 0 ? rc : rc2;
}

static int
obey(void *arg, unsigned number, const struct bench_order *order,
     struct bench_answer *answer)
{
    me.turn = arg;
    me.number = number;
    me.seed = bench_key(me.turn->options->seed, UINT64_MAX - number);
    switch (order->kind) {
    case ORDER_OPEN:
        atomic_store_explicit(&me.shown->of[number].pid, (int)getpid(),
                              memory_order_relaxed);
        return open_tree(number == 0);
    case ORDER_LOAD:
        return load();
    case ORDER_RUN:
        return run(answer);
    case ORDER_CHECK:
        return check();
    default:
        return close_tree();
    }
}

/* ---- The turn ---------------------------------------------------------------------------- */

/* add_up -- the answers of all. */
static void
add_up(const struct bench_answer *answers, unsigned n, struct bench_backoff_counts *out)
{
    for (unsigned w = 0; w < n; w++) {
        const uint64_t *count = answers[w].count;

        out->commits += count[COUNT_COMMITS];
        out->aborts += count[COUNT_ABORTS];
        out->waited_ns += count[COUNT_WAITED_NS];
        if (count[COUNT_MAX_RETRIES] > out->max_retries)
            out->max_retries = count[COUNT_MAX_RETRIES];
        if (count[COUNT_LONGEST_NS] > out->longest_ns)
            out->longest_ns = count[COUNT_LONGEST_NS];
    }
}

/* work -- a team from the first opening to the last closing; ret 0, or 1 after a message. */
static int
work(struct bench_team *team, unsigned n, struct bench_backoff_counts *out)
{
    const struct bench_order open = {.kind = ORDER_OPEN}, load_it = {.kind = ORDER_LOAD},
                             close_it = {.kind = ORDER_CLOSE};
    const struct bench_order go = {.kind = ORDER_RUN, .timeout_ms = TURN_TIMEOUT_MS};
    struct bench_answer answers[BENCH_TEAM_MAX] = {{0}};
    int rc = bench_team_start(team, n);

    for (unsigned w = 0; w < n && rc == 0; w++) {
        rc = bench_team_ask(team, w, &open, &answers[0]);
        if (rc == 0 && w == 0)
            rc = bench_team_ask(team, w, &load_it, &answers[0]);
    }
    if (rc == 0)
        rc = bench_team_ask_all(team, &go, answers);
    if (rc == 0) {
        add_up(answers, n, out);
        out->ns = bench_team_ns(team, answers);
    }
    for (unsigned w = n; w-- > 0 && rc == 0;)
        rc = bench_team_ask(team, w, &close_it, &answers[0]);
    bench_team_stop(team);
    return rc;
}

int
bench_backoff_turn(struct bench_backoff_turn *turn, struct bench_backoff_counts *out)
{
    const struct bench_order look = {.kind = ORDER_CHECK};
    struct bench_team team = {.label = turn->policy->name,
                              .order_names = order_names,
                              .arg = turn,
                              .obey = obey,
                              .explain = bench_xac_explain};
    struct bench_answer answer;
    int rc;

    *out = (struct bench_backoff_counts){0};
    me.shown = mmap(NULL, sizeof *me.shown, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if ((void *)me.shown == MAP_FAILED)
        return bench_fail("mmap: %s", strerror(errno));
    rc = work(&team, turn->n_procs, out);
    if (rc == 0)
        rc = bench_team_start(&team, 1);
    if (rc == 0)
        rc = bench_team_ask(&team, 0, &look, &answer);
    bench_team_stop(&team);
    (void)munmap(me.shown, sizeof *me.shown);
    return rc;
}
