/* SPDX-License-Identifier: MIT */
/*
 * transfers.c -- the experiment `transfers`: does a cache-oblivious tree stay so when several
 * processes use it, and when its pages have versions (Thesis section 5.5, theory 2 and 3; section 6.1,
 * question 6)?  A simulation: the accesses are those of the real trees, the caches and the
 * schedule are not.
 *
 * SCHEDULE  In each round every process has one transaction.  They are done one after the other on
 *           the tree, and their accesses are given to the caches in turn, one of each process.  A
 *           transaction that has touched a page that an earlier one of its round has stored to
 *           would have lost: its accesses come once more, after the round.  With --turns transactions
 *           run one after the other, as under XAC_POLICY_SERIAL, and none loses.
 */
#include <config.h>

#include "bench/simulate/transfers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/kit/micro.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"
#include "bench/systems/tree_kind.h"

#define VALUE_MAX   1024u
#define SEGMENT_MAX (UINT64_C(1) << 31)

static const struct contender {
    const char *name;
    const struct bench_tree_kind *kind;
    uint32_t block_bytes;
    bool is_btree;
} contenders[] = {
#ifdef HAVE_COMPILED
    {"btree-4K", &bench_kind_btree_traced, 4096, true},
    {"btree-64K", &bench_kind_btree_traced, 65536, true},
    {"cobtree", &bench_kind_cobtree_traced, 4096, false},
#endif
    {NULL, NULL, 0, false},
};

enum work {
    WORK_SEARCH,
    WORK_INSERT,
    WORK_BOTH, /* every second step inserts                                            */
    N_WORK
};
static const char *const work_names[N_WORK] = {"search", "insert", "both"};

static struct options {
    struct bench_common common;
    struct bench_words trees, work;
    struct bench_numbers procs, blocks;
    uint64_t memory, loaded, steps, value_bytes, seed;
    bool turns;
} o;

/* One tree, under one work, with so many processes. */
static struct run {
    const struct contender *contender;
    enum work work;
    unsigned n_procs;
    union bench_tree tree[BENCH_TRANSFER_PROCS_MAX]; /* a handle for each process       */
    unsigned char *base;
    size_t size;
    struct bench_accesses
        touched[BENCH_TRANSFER_PROCS_MAX]; /* by the round's transactions */
    bool loses[BENCH_TRANSFER_PROCS_MAX];
    uint32_t *stored; /* round in which a page was stored to                           */
    uint32_t n_rounds, n_attempts;
    uint64_t retries; /* counted steps only, as the caches                             */
    struct bench_transfer_caches caches[BENCH_NUMBERS_MAX]; /* by size of blocks        */
} run;

static void
usage(void)
{
    puts(
        "Block transfers of both trees with 1 to 8 processes (Thesis section 6.1, question 6),\n"
        "by a simulation: every load and store that the trees make in their segment goes to\n"
        "caches of --memory bytes in blocks of --blocks bytes, of which the least recently used\n"
        "one goes.  Columns, blocks per step:\n"
        "\n"
        "  own       each process has a cache; a store takes the block from all others\n"
        "  lost      of these, blocks that were lost to others' stores\n"
        "  versions  the same, with pages that have versions, as on libxac: a transaction's\n"
        "            first store to a page copies it, its commit takes the page from all others\n"
        "  shared    one cache of --memory for all\n"
        "  retries   transactions in a hundred that had to be run again\n"
        "\n"
        "Processes do one transaction each at the same time; who has touched a page that\n"
        "another one of the round has stored to runs again.\n"
        "\n"
        "  --trees LIST    btree-4K,btree-64K (blocks of the tree), cobtree; default all\n"
        "  --work LIST     search,insert,both; default all\n"
        "  --procs LIST    default 1,2,4,8\n"
        "  --blocks LIST   default 64,512,4096,32768\n"
        "  --memory N      default 256K\n"
        "  --loaded N      records there before; default 20000\n"
        "  --steps N       of all processes together; the first half fills the caches and is\n"
        "                  not counted; default 20000\n"
        "  --value-bytes N default 56\n"
        "  --turns         one transaction after the other, as under XAC_POLICY_SERIAL\n"
        "  --seed S        default 1; the same seed gives the same numbers\n"
        "  --quick         5000 records, 4000 steps, blocks of 64 and 4096\n"
        "  --json, --quiet, --help");
}

/* ---- The tree ------------------------------------------------------------------------------- */

/* tree_insert -- record i, by process p; ret 0 or an errno. */
static int
tree_insert(unsigned p, uint64_t i)
{
    unsigned char key[BENCH_KEY_BYTES], value[VALUE_MAX] = {1};

    bench_key_encode(bench_key(o.seed, i), key);
    return run.contender->kind->insert(&run.tree[p], key, value, TREE_ADD);
}

/* tree_search -- a record that is there from the beginning. */
static int
tree_search(unsigned p, uint64_t i)
{
    unsigned char key[BENCH_KEY_BYTES], value[VALUE_MAX];

    bench_key_encode(bench_key(o.seed, bench_key(o.seed + 1, i) % o.loaded), key);
    return run.contender->kind->search(&run.tree[p], key, value);
}

/* step -- number i, by process p, its accesses noted; ret 0, or 1 after a message. */
static int
step(unsigned p, uint64_t i)
{
    struct bench_accesses *to = &run.touched[p];
    bool inserts = run.work == WORK_INSERT || (run.work == WORK_BOTH && i % 2 == 0);
    int rc;

    to->n = 0;
    bench_traced_record(to, run.base, run.size);
    rc = inserts ? tree_insert(p, o.loaded + i) : tree_search(p, i);
    bench_traced_record(NULL, NULL, 0);
    if (rc != 0 || to->is_cut)
        return bench_fail("transfers: %s: step %llu: %s", run.contender->name,
                          (unsigned long long)i, strerror(rc != 0 ? rc : ENOMEM));
    return 0;
}

/* tree_open -- an anonymous segment with the first records; ret 0, or 1 after a message. */
static int
tree_open(void)
{
    const struct bench_tree_config config = {.count = o.loaded + o.steps,
                                             .key_size = BENCH_KEY_BYTES,
                                             .value_size = (uint32_t)o.value_bytes,
                                             .block_size = run.contender->block_bytes};
    int rc;

    run.size = run.contender->kind->size(&config);
    if (run.size == 0 || run.size > SEGMENT_MAX)
        return bench_fail("transfers: %s: a segment of %zu bytes is too large",
                          run.contender->name, run.size);
    run.base =
        mmap(NULL, run.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    run.stored = calloc(run.size / BENCH_TRANSFER_PAGE + 1, sizeof *run.stored);
    if (run.base == MAP_FAILED || run.stored == NULL)
        return bench_fail("transfers: out of memory");
    rc = run.contender->kind->create(&run.tree[0], run.base, run.size, &config);
    for (uint64_t i = 0; i < o.loaded && rc == 0; i++)
        rc = tree_insert(0, i);
    for (unsigned p = 1; p < run.n_procs && rc == 0; p++) {
        rc = run.contender->kind->open(&run.tree[p], run.base, run.size);
        /* Opening goes by the process's number; theirs would follow each other. */
        if (rc == 0 && run.contender->is_btree)
            run.tree[p].btree.arena =
                (run.tree[0].btree.arena + p) % run.tree[p].btree.n_arenas;
    }
    return rc == 0 ? 0
                   : bench_fail("transfers: %s: %s", run.contender->name, strerror(rc));
}

static void
tree_close(void)
{
    if (run.base != NULL && run.base != MAP_FAILED)
        (void)munmap(run.base, run.size);
    free(run.stored);
    for (unsigned p = 0; p < BENCH_TRANSFER_PROCS_MAX; p++)
        free(run.touched[p].v);
    for (unsigned i = 0; i < o.blocks.n; i++)
        bench_transfer_fini(&run.caches[i]);
    run = (struct run){0};
}

/* ---- The schedule ------------------------------------------------------------------------------ */

/* has_lost -- whether a transaction met a page that the round has stored to; notes what it stores. */
static bool
has_lost(const struct bench_accesses *touched)
{
    bool lost = false;

    for (size_t i = 0; i < touched->n; i++) {
        const struct bench_access *a = &touched->v[i];
        uint32_t end = (a->at + a->n - 1) / BENCH_TRANSFER_PAGE;

        for (uint32_t page = a->at / BENCH_TRANSFER_PAGE; page <= end; page++)
            lost |= run.stored[page] == run.n_rounds;
    }
    for (size_t i = 0; i < touched->n; i++) {
        const struct bench_access *a = &touched->v[i];
        uint32_t end = (a->at + a->n - 1) / BENCH_TRANSFER_PAGE;

        for (uint32_t page = a->at / BENCH_TRANSFER_PAGE; a->is_store && page <= end;
             page++)
            run.stored[page] = run.n_rounds;
    }
    return lost;
}

/* give -- access i of process p to all caches. */
static void
give(unsigned p, size_t i, uint32_t attempt, bool aborts)
{
    for (unsigned c = 0; c < o.blocks.n; c++)
        bench_transfer_access(&run.caches[c], p, attempt, &run.touched[p].v[i], aborts);
}

static void
commit(unsigned p)
{
    for (unsigned c = 0; c < o.blocks.n; c++)
        bench_transfer_commit(&run.caches[c], p, &run.touched[p]);
}

/* give_again -- all accesses of process p, alone. */
static void
give_again(unsigned p)
{
    run.n_attempts++;
    for (size_t i = 0; i < run.touched[p].n; i++)
        give(p, i, run.n_attempts, false);
    commit(p);
}

/* give_round -- an access of each in turn, until all are done; then the losers once more. */
static void
give_round(unsigned n)
{
    uint32_t first = run.n_attempts + 1;
    bool more = true;

    run.n_attempts += n;
    for (size_t i = 0; more; i++) {
        more = false;
        for (unsigned p = 0; p < n; p++) {
            if (i < run.touched[p].n) {
                give(p, i, first + p, run.loses[p]);
                more = true;
            } else if (i == run.touched[p].n && !run.loses[p]) {
                commit(p);
            }
        }
    }
    for (unsigned p = 0; p < n; p++)
        if (run.loses[p]) {
            run.retries++;
            give_again(p);
        }
}

/* round_of -- steps first .. first + n - 1, one of each process; ret 0, or 1 after a message. */
static int
round_of(uint64_t first, unsigned n)
{
    int rc = 0;

    run.n_rounds++;
    for (unsigned p = 0; p < n && rc == 0; p++) {
        rc = step(p, first + p);
        run.loses[p] = !o.turns && has_lost(&run.touched[p]);
    }
    if (rc == 0 && o.turns)
        for (unsigned p = 0; p < n; p++)
            give_again(p);
    else if (rc == 0)
        give_round(n);
    return rc;
}

/* all_rounds -- what is counted begins in the middle. */
static int
all_rounds(void)
{
    uint64_t warm = o.steps / 2 / run.n_procs * run.n_procs;
    int rc = 0;

    for (uint64_t i = 0; i < o.steps && rc == 0; i += run.n_procs) {
        uint64_t left = o.steps - i;

        if (i == warm) {
            run.retries = 0;
            for (unsigned c = 0; c < o.blocks.n; c++)
                run.caches[c].counts = (struct bench_transfers){0};
        }
        rc = round_of(i, left < run.n_procs ? (unsigned)left : run.n_procs);
        if (rc == 0 && bench_interrupted())
            rc = bench_fail("interrupted");
    }
    return rc;
}

/* ---- Report -------------------------------------------------------------------------------------- */

static void
print_json(const struct bench_transfer_caches *c, double n)
{
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "transfers");
    bench_json_str(stdout, "tree", run.contender->name);
    bench_json_str(stdout, "work", work_names[run.work]);
    bench_json_u64(stdout, "processes", run.n_procs);
    bench_json_bool(stdout, "turns", o.turns);
    bench_json_u64(stdout, "block_bytes", c->block_bytes);
    bench_json_u64(stdout, "memory_bytes", o.memory);
    bench_json_num(stdout, "own_blocks_per_step", (double)c->counts.own / n);
    bench_json_num(stdout, "own_blocks_lost_per_step", (double)c->counts.own_lost / n);
    bench_json_num(stdout, "version_blocks_per_step", (double)c->counts.versions / n);
    bench_json_num(stdout, "version_blocks_lost_per_step",
                   (double)c->counts.versions_lost / n);
    bench_json_num(stdout, "shared_blocks_per_step", (double)c->counts.shared / n);
    bench_json_num(stdout, "retries_per_step", (double)run.retries / n);
    bench_json_u64(stdout, "loaded", o.loaded);
    bench_json_u64(stdout, "steps", o.steps);
    bench_json_u64(stdout, "value_bytes", o.value_bytes);
    bench_json_u64(stdout, "seed", o.seed);
    bench_json_bool(stdout, "simulated", true);
    bench_json_str(stdout, "command", o.common.command);
    bench_json_end(stdout);
}

static void
print(void)
{
    uint64_t warm = o.steps / 2 / run.n_procs * run.n_procs;
    double n = (double)(o.steps - warm);

    for (unsigned i = 0; i < o.blocks.n; i++) {
        const struct bench_transfer_caches *c = &run.caches[i];

        if (o.common.json)
            print_json(c, n);
        else
            printf("%-10s %-7s %5u %7u %9.3f %9.3f %9.3f %9.3f %9.3f %8.1f\n",
                   run.contender->name, work_names[run.work], run.n_procs, c->block_bytes,
                   (double)c->counts.own / n, (double)c->counts.own_lost / n,
                   (double)c->counts.versions / n, (double)c->counts.versions_lost / n,
                   (double)c->counts.shared / n, (double)run.retries * 100 / n);
    }
    fflush(stdout);
}

/* measure -- a tree, a work, a number of processes; ret 0, or 1 after a message. */
static int
measure(const struct contender *contender, enum work work, unsigned n_procs)
{
    int rc;

    run.contender = contender;
    run.work = work;
    run.n_procs = n_procs;
    bench_progress(contender->name, (uint64_t)work, N_WORK);
    rc = tree_open();
    for (unsigned i = 0; i < o.blocks.n && rc == 0; i++)
        rc = bench_transfer_init(&run.caches[i], n_procs, o.blocks.v[i], o.memory,
                                 run.size);
    if (rc == 0)
        rc = all_rounds();
    bench_progress_clear();
    if (rc == 0)
        print();
    tree_close();
    return rc;
}

/* is_in -- whether a list, of which an empty one means all, has a name. */
static bool
is_in(const struct bench_words *list, const char *name)
{
    bool found = list->n == 0;

    for (unsigned i = 0; i < list->n; i++)
        found |= strcmp(list->v[i], name) == 0;
    return found;
}

/* check_words -- ret 0, or 1 after a message: a name that there is not. */
static int
check_words(void)
{
    unsigned n_trees = 0, n_work = 0;

    for (const struct contender *c = contenders; c->name != NULL; c++)
        n_trees += o.trees.n > 0 && is_in(&o.trees, c->name);
    for (unsigned w = 0; w < N_WORK; w++)
        n_work += o.work.n > 0 && is_in(&o.work, work_names[w]);
    if (contenders[0].name == NULL)
        return bench_fail(
            "transfers: this build cannot trace accesses: configure found no "
            "way to compile with -fsanitize=thread");
    if (n_trees != o.trees.n)
        return bench_fail("--trees: btree-4K, btree-64K, cobtree are wanted");
    return n_work == o.work.n ? 0 : bench_fail("--work: search, insert, both are wanted");
}

/* check_blocks -- ret 0, or 1 after a message. */
static int
check_blocks(void)
{
    for (unsigned i = 0; i < o.blocks.n; i++)
        if ((o.blocks.v[i] & (o.blocks.v[i] - 1)) != 0 || o.blocks.v[i] > o.memory)
            return bench_fail("--blocks %llu: a power of two is wanted, --memory at most",
                              (unsigned long long)o.blocks.v[i]);
    return 0;
}

/* set_defaults -- where the command line says nothing. */
static void
set_defaults(void)
{
    static const struct bench_numbers procs = {4, {1, 2, 4, 8}},
                                      blocks = {4, {64, 512, 4096, 32768}},
                                      few = {2, {64, 4096}};

    if (o.procs.n == 0)
        o.procs = procs;
    if (o.blocks.n == 0)
        o.blocks = o.common.quick ? few : blocks;
    if (o.loaded == 0)
        o.loaded = o.common.quick ? 5000 : 20000;
    if (o.steps == 0)
        o.steps = o.common.quick ? 4000 : 20000;
}

/* print_head -- of the table. */
static void
print_head(void)
{
    if (o.common.json)
        return;
    bench_print_command(&o.common, "simulated; blocks transferred per step");
    printf("%-10s %-7s %5s %7s %9s %9s %9s %9s %9s %8s\n", "tree", "work", "procs",
           "block", "own", "lost", "versions", "lost", "shared", "retries");
}

int
bench_transfers_main(int argc, char **argv)
{
    const struct bench_option table[] = {
        {.name = "trees", .words = &o.trees},
        {.name = "work", .words = &o.work},
        {.name = "procs",
         .numbers = &o.procs,
         .low = 1,
         .high = BENCH_TRANSFER_PROCS_MAX},
        {.name = "blocks", .numbers = &o.blocks, .low = 16, .high = 1 << 20},
        {.name = "memory", .number = &o.memory, .low = 4096, .high = 1 << 30},
        {.name = "loaded", .number = &o.loaded, .low = 1, .high = 10000000},
        {.name = "steps", .number = &o.steps, .low = 128, .high = 10000000},
        {.name = "value-bytes", .number = &o.value_bytes, .low = 1, .high = VALUE_MAX},
        {.name = "seed", .number = &o.seed, .high = UINT64_MAX},
        {.name = "turns", .flag = &o.turns},
        {0},
    };
    int rc = 0;

    o.memory = 256 << 10;
    o.value_bytes = 56;
    o.seed = 1;
    if (!bench_options_parse(argc, argv, table, usage, &o.common, &rc))
        return rc;
    set_defaults();
    if (check_words() != 0 || check_blocks() != 0)
        return 2;
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    print_head();
    for (const struct contender *c = contenders; c->name != NULL; c++)
        for (unsigned w = 0; w < N_WORK; w++)
            for (unsigned i = 0; i < o.procs.n && rc == 0; i++)
                if (is_in(&o.trees, c->name) && is_in(&o.work, work_names[w]))
                    rc = measure(c, (enum work)w, (unsigned)o.procs.v[i]);
    return rc;
}
