/* SPDX-License-Identifier: MIT */
/*
 * stress_trees.c -- many random operations on a tree, each compared with what must be.
 *
 * GOAL    no operation of a long life, in which the tree grows and shrinks many times, does
 *         anything but what it says; the tree is sound in between and at the end.
 * METHOD  built four times: both trees (MODEL_COBTREE), serial in one process
 *         (TREE_SERIAL) and transactional in several.  Key numbers belong to processes in
 *         turn, so neighbours belong to different ones.  What a process has done to
 *         its keys is known exactly; an entry of another must at least be one that its owner
 *         has made at some time.
 *
 * XAC_OPS operations, all processes together (40000), XAC_PROCESSES (4; serial: always 1),
 * XAC_SEED.
 */
#include <config.h>

#include "tree_model.h"

#include <sys/mman.h>
#include <unistd.h>

#define N_KEYS     60000u /* key numbers                                               */
#define PROCS_MAX  16u
#define PHASE      40000u /* operations of a process until its taste changes, at most  */
#define CHECKS     20u    /* looks at the whole tree, by the first process             */
#define SCAN_MOST  100u   /* entries of a range                                        */
#define VALUE_SIZE 40u

/* What an entry's value says: the key, and which of the owner's writes to it. */
struct note {
    uint64_t id;
    uint64_t version;
    uint64_t sum; /* of both, to see that they belong together                        */
    uint64_t fill[2];
};

struct shared {
    _Atomic uint64_t ready;   /* processes that have attached                         */
    uint64_t n_procs;         /* processes                                            */
    uint64_t n_ops;           /* operations of each                                   */
    uint64_t entries_max;     /* largest number of entries that a check saw           */
    uint32_t version[N_KEYS]; /* of the entry; 0: none.  The owner's only             */
    uint32_t writes[N_KEYS];  /* versions given away.  The owner's only               */
};

struct worker {
    struct shared *s;
    uint64_t me;
    uint64_t rng;
    struct model_tree *t;
};

#ifdef MODEL_COBTREE
# define NAME "cobtree"
#else
# define NAME "btree"
#endif

static const struct TREE(config) config = {
    .key_size = 8,
    .value_size = VALUE_SIZE,
#ifndef MODEL_COBTREE
    .block_size = 4096,
#endif
};

#define SEGMENT ((size_t)64 << 20)

static struct note
note_of(uint64_t id, uint64_t version)
{
    uint64_t sum = id * UINT64_C(0x9e3779b97f4a7c15) + version;

    return (struct note){.id = id, .version = version, .sum = rnd_next(&sum)};
}

/* Whether the owner of a key could have written this; for one's own, whether it did last. */
static void
expect_note(const struct worker *w, uint64_t id, const void *value)
{
    struct note note, want;

    memcpy(&note, value, sizeof note);
    want = note_of(id, note.version);
    must(memcmp(&note, &want, sizeof note) == 0);
    if (id % w->s->n_procs == w->me)
        must_eq(note.version, w->s->version[id]);
}

/* ---- operations -------------------------------------------------------------------- */

static uint64_t
own_id(struct worker *w)
{
    return rnd_below(&w->rng, N_KEYS / w->s->n_procs) * w->s->n_procs + w->me;
}

static void
step_insert(struct worker *w)
{
    uint64_t id = own_id(w);
    uint32_t *version = &w->s->version[id];
    bool had = *version != 0, existed = !had;
    int mode = rnd_below(&w->rng, 2) ? TREE_PUT : TREE_ADD;
    struct note note = note_of(id, ++w->s->writes[id]);
    unsigned char key[8];

    tree_key_u64(id, key);
    must_rc(TREE(insert)(w->t, key, &note, mode, &existed),
            had && mode == TREE_ADD ? EEXIST : 0);
    must_eq(existed, had);
    if (!had || mode == TREE_PUT)
        *version = w->s->writes[id];
}

static void
step_delete(struct worker *w)
{
    uint64_t id = own_id(w);
    unsigned char key[8];

    tree_key_u64(id, key);
    must_rc(TREE(delete)(w->t, key), w->s->version[id] != 0 ? 0 : ENOENT);
    w->s->version[id] = 0;
}

static void
step_search(struct worker *w)
{
    uint64_t id = rnd_below(&w->rng, N_KEYS);
    unsigned char key[8], value[VALUE_SIZE];
    int rc;

    tree_key_u64(id, key);
    rc = TREE(search)(w->t, key, value);
    if (id % w->s->n_procs == w->me)
        must_rc(rc, w->s->version[id] != 0 ? 0 : ENOENT);
    else
        must(rc == 0 || rc == ENOENT);
    if (rc == 0)
        expect_note(w, id, value);
}

/* A range as it is visited. */
struct range {
    struct worker *w;
    uint64_t next; /* least key number that may come                                 */
    uint64_t n;    /* entries seen                                                   */
    uint64_t most; /* and no more                                                    */
};

/* The entries of mine from r->next to before `to` must not be there. */
static void
expect_no_own(const struct range *r, uint64_t to)
{
    const struct shared *s = r->w->s;
    uint64_t id = r->next + (r->w->me + s->n_procs - r->next % s->n_procs) % s->n_procs;

    for (; id < to; id += s->n_procs)
        must_eq(s->version[id], 0);
}

static int
visit_range(void *arg, const void *key, const void *value)
{
    struct range *r = arg;
    uint64_t id = tree_u64_key(key);

    must(id >= r->next && id < N_KEYS);
    expect_no_own(r, id);
    expect_note(r->w, id, value);
    r->next = id + 1;
    return ++r->n == r->most ? -7 : 0;
}

static void
step_scan(struct worker *w)
{
    uint64_t from = rnd_below(&w->rng, N_KEYS);
    uint64_t to = from + rnd_below(&w->rng, 2 * SCAN_MOST);
    struct range r = {.w = w, .next = from, .most = 1 + rnd_below(&w->rng, SCAN_MOST)};
    unsigned char key[8], end[8];
    int rc;

    if (to > N_KEYS)
        to = N_KEYS;
    tree_key_u64(from, key);
    tree_key_u64(to, end);
    rc = TREE(scan)(w->t, key, end, visit_range, &r);
    must_rc(rc, r.n == r.most ? -7 : 0);
    if (rc == 0)
        expect_no_own(&r, to);
}

/* The whole tree is sound. */
static uint64_t
look_at_all(struct worker *w)
{
    struct TREE(report) report;
    int rc = TREE(check)(w->t, &report);

    if (rc != 0)
        env_fail(__FILE__, __LINE__, "check: %d %s", rc, report.text);
    if (report.entries > w->s->entries_max)
        w->s->entries_max = report.entries;
    return report.entries;
}

/* All operations of one process. */
static void
run_steps(struct worker *w)
{
    uint64_t n = w->s->n_ops, phase = n / 4 < PHASE ? n / 4 + 1 : PHASE;

    for (uint64_t i = 0; i < n; i++) {
        uint64_t dice = rnd_below(&w->rng, 100);
        bool growing = i / phase % 2 == 0;

        if (dice < 25)
            step_search(w);
        else if (dice < 27)
            step_scan(w);
        else if (rnd_below(&w->rng, 100) < (growing ? 85 : 15))
            step_insert(w);
        else
            step_delete(w);
        if (w->me == 0 && i % (n / CHECKS + 1) == 0)
            look_at_all(w);
    }
}

/* ---- the two builds ------------------------------------------------------------------ */

#ifdef TREE_SERIAL

# define SUITE NAME "_serial"

static void
run_all(struct shared *s, struct worker *w)
{
    void *base = mmap(NULL, SEGMENT, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    static struct model_tree t;

    must(base != MAP_FAILED);
    must_ok(TREE(create)(&t, base, SEGMENT, &config));
    s->n_procs = 1;
    w->t = &t;
    run_steps(w);
    must_ok(TREE(open)(w->t, base, SEGMENT));
}

static void
leave(void)
{
}

#else

# define SUITE NAME "_txn"

/* Map the file and make or open the tree in it. */
static void
join(struct model_tree *t)
{
    void *base;
    int rc;

    env_init(NONDURABLE);
    base = xMmap(ENV_FILE, SEGMENT);
    must(base != MAP_FAILED);
    rc = TREE(create)(t, base, SEGMENT, &config);
    if (rc == EEXIST)
        rc = TREE(open)(t, base, SEGMENT);
    must_ok(rc);
}

static void
leave(void)
{
    env_detach();
}

static void
run_process(void *arg)
{
    struct worker *w = arg;
    struct model_tree t;

    join(&t);
    w->t = &t;
    t.hints = w->me % 2 != 0;
    word_add(&w->s->ready, 1);
    proc_await(&w->s->ready, w->s->n_procs, 60);
    run_steps(w);
    leave();
}

static void
run_all(struct shared *s, struct worker *w)
{
    static struct model_tree t;
    pid_t pid[PROCS_MAX];

    for (unsigned i = 0; i < s->n_procs; i++) {
        w[i] = (struct worker){.s = s, .me = i, .rng = env_seed() + i};
        pid[i] = proc_spawn(run_process, &w[i]);
    }
    for (unsigned i = 0; i < s->n_procs; i++)
        proc_join(pid[i]);
    join(&t);
    w->t = &t;
}

#endif

START_TEST(every_operation_does_what_it_says)
{
    struct shared *s = proc_shared(sizeof *s);
    struct worker w[PROCS_MAX] = {{.s = s, .rng = env_seed()}};
    struct range r = {.w = &w[0], .most = UINT64_MAX};
    uint64_t n_ops = env_number("XAC_OPS", 40000), total = 0;

    s->n_procs = env_number("XAC_PROCESSES", 4);
    if (s->n_procs > PROCS_MAX)
        s->n_procs = PROCS_MAX;
#ifdef TREE_SERIAL
    s->n_procs = 1;
#endif
    s->n_ops = n_ops / s->n_procs;
    run_all(s, w);
    for (size_t id = 0; id < N_KEYS; id++)
        total += s->version[id] != 0;
    s->n_procs = 1; /* all entries must be what their owners did last */
    must_eq(look_at_all(&w[0]), total);
    must_ok(TREE(scan)(w[0].t, NULL, NULL, visit_range, &r));
    expect_no_own(&r, N_KEYS);
    must_eq(r.n, total);
    leave();
    printf("%s: %llu operations, at most %llu entries at a check, %llu at the end\n",
           SUITE, (unsigned long long)n_ops, (unsigned long long)s->entries_max,
           (unsigned long long)total);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create(SUITE);
    TCase *tc = env_tcase(s, "model", 120 + (double)env_number("XAC_OPS", 40000) / 500);

    tcase_add_test(tc, every_operation_does_what_it_says);
    return env_main(s);
}
