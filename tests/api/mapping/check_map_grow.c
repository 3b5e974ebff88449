/* SPDX-License-Identifier: MIT */
/*
 * check_map_grow.c -- mappings that become longer and shorter; segments of 1 TiB; and
 * random sequences of all that mappings can do, against a model.
 *
 * GOAL    as check_map.c; nothing that was committed is lost by growth, whichever process dies at whichever moment.
 * METHOD  public header only.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"

/* ---- growth -------------------------------------------------------------------------- */

START_TEST(mapping_grows_and_shrinks_in_place)
{
    size_t page = env_page();
    uint64_t *a;

    env_checking = _i == 1 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    env_init(_i == 2 ? DURABLE : NONDURABLE);
    a = env_map_at(1, 2);
    env_put(env_cell(a, 1), 12);
    must(xMremap(a, 1000 * page, 0) == a);
    must_eq(file_size(ENV_FILE), 1001 * page);
    must_eq(env_get(env_cell(a, 1)), 12);
    env_put(env_cell(a, 999), 13);
    must_ok(xbegin());
    *env_cell(a, 1) = 14;
    *env_cell(a, 2) = 15;
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    must(xMremap(a, page, 0) == a);
    must(msync(env_cell(a, 1), page, MS_ASYNC) == -1 && errno == ENOMEM); /* unmapped */
    must_eq(file_size(ENV_FILE), 1001 * page);
    must(xMremap(a, page, 0) == a);
    must(xMremap(a, 2000 * page, 0) == a);
    must_eq(env_get(env_cell(a, 1)), 12);
    must_eq(env_get(env_cell(a, 2)), 0);
    must_eq(env_get(env_cell(a, 999)), 13);
    must_eq(env_get(env_cell(a, 1999)), 0);
    env_detach();
    must_eq(file_u64(ENV_FILE, 1000 * page), 13);
}
END_TEST

START_TEST(mapping_moves_only_if_it_may)
{
    size_t page = env_page();
    uint64_t *a, *b;
    void *wall;

    env_init(NONDURABLE);
    a = env_map_at(0, 2);
    env_put(env_cell(a, 1), 12);
    wall = mmap(env_cell(a, 4), page, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    must(wall == env_cell(a, 4));
    must(xMremap(a, 4 * page, 0) == a);
    must(xMremap(a, 5 * page, 0) == MAP_FAILED && errno == EADDRINUSE);
    must(strstr(xac_last_error(), "in the way") != NULL);
    must_eq(file_size(ENV_FILE), 4 * page);
    env_put(env_cell(a, 3), 33); /* it is as it was */
    b = (uint64_t *)xMremap(a, 5 * page, XAC_MAY_MOVE);
    must(b != MAP_FAILED && b != a);
    must(msync(a, page, MS_ASYNC) == -1 && errno == ENOMEM);
    must_eq(env_get(env_cell(b, 1)), 12);
    must_eq(env_get(env_cell(b, 3)), 33);
    env_put(env_cell(b, 4), 44);
    must(xMunmapAt(a) == XAC_ENOTMAPPED);
    must(munmap(wall, page) == 0);
    env_detach();
    env_init(NONDURABLE); /* and the next time it is where pointers say */
    must(env_map_at(0, 5) == a);
    must_eq(env_get(env_cell(a, 4)), 44);
    env_detach();
}
END_TEST

/* Aliases come and go with the length. */
START_TEST(growth_into_another_mapping_makes_aliases)
{
    size_t page = env_page();
    uint64_t *a, *b;

    env_checking = _i == 1 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    env_init(NONDURABLE);
    a = env_map_at(0, 2);
    b = env_map_at(4, 4);
    env_put(env_cell(b, 1), 50);
    must(xMremap(a, 6 * page, 0) == MAP_FAILED && errno == EADDRINUSE); /* b is there */
    a = (uint64_t *)xMremap(a, 6 * page, XAC_MAY_MOVE);
    must(a != MAP_FAILED);
    must_ok(xbegin());
    must_eq(*env_cell(a, 5), 50);
    *env_cell(a, 5) = 51;
    must_eq(*env_cell(b, 1), 51);
    *env_cell(b, 0) = 40;
    must_eq(*env_cell(a, 4), 40);
    must_rc(xend(), COMMITTED);
    must(xMremap(a, 5 * page, 0) == a);
    must_ok(xbegin());
    *env_cell(b, 1) = 52;
    *env_cell(a, 4) = 41;
    must_eq(*env_cell(b, 0), 41);
    must_rc(xend(), COMMITTED);
    must(xMremap(b, 3 * page, 0) == b);
    must_eq(env_get(env_cell(b, 1)), 52);
    must_eq(env_get(env_cell(a, 4)), 41);
    env_detach();
}
END_TEST

struct shared {
    _Atomic uint64_t step;
    _Atomic uint64_t stop;
    _Atomic uint64_t value;
};

static void
use_two_pages(void *arg)
{
    struct shared *s = (struct shared *)arg;
    uint64_t *a;
    uint64_t n = 0;

    env_init(DURABLE);
    a = env_map_at(0, 2);
    do {
        env_put(env_cell(a, 1), ++n);
        word_store(&s->value, n);
        word_store(&s->step, 1);
    } while (word_load(&s->stop) == 0);
    must_eq(env_get(env_cell(a, 1)), n);
    env_detach();
}

START_TEST(others_go_on_with_what_they_have_mapped)
{
    struct shared *s = (struct shared *)proc_shared(sizeof *s);
    pid_t other = proc_spawn(use_two_pages, s);
    uint64_t *a;

    proc_await(&s->step, 1, 10);
    env_init(DURABLE);
    a = env_map_at(0, 1);
    for (size_t n = 2; n < 40; n++) {
        must(xMremap(a, n * env_page(), 0) == a);
        env_put(env_cell(a, n - 1) + 1, n);
    }
    must_ok(xCheckpoint());
    word_store(&s->stop, 1);
    proc_join(other);
    for (size_t n = 2; n < 40; n++)
        must_eq(env_get(env_cell(a, n - 1) + 1), n);
    must_eq(env_get(env_cell(a, 1)), word_load(&s->value));
    env_detach();
}
END_TEST

/* grow_on -- one page longer each time, told when it is committed; to be killed. */
static void
grow_on(void *arg)
{
    struct shared *s = (struct shared *)arg;
    uint64_t n = word_load(&s->value);
    uint64_t *a;

    env_init(DURABLE);
    a = env_map_at(0, n + 1);
    for (;; n++) {
        must_eq(env_get(env_cell(a, n)), 0);
        env_put(env_cell(a, n), n + 1);
        word_store(&s->value, n + 1);
        must(xMremap(a, (n + 2) * env_page(), XAC_MAY_MOVE) == a);
    }
}

START_TEST(growth_survives_being_killed)
{
    struct shared *s = (struct shared *)proc_shared(sizeof *s);
    uint64_t seed = env_seed(), n, lost = 0;
    uint64_t *a;

    for (int round = 0; round < 25; round++) {
        pid_t pid;

        n = word_load(&s->value);
        pid = proc_spawn(grow_on, s);
        proc_await(&s->value, n + 1, 20);
        proc_sleep_us(rnd_below(&seed, 4000));
        proc_kill(pid);
        env_init(DURABLE);
        n = word_load(&s->value);
        must(file_size(ENV_FILE) >= n * env_page());
        a = env_map_at(0, n + 1);
        must_ok(xbeginQuery());
        for (uint64_t i = 0; i < n; i++)
            lost += *env_cell(a, i) != i + 1;
        must(*env_cell(a, n) == 0 || *env_cell(a, n) == n + 1);
        must_ok(xendQuery());
        must_eq(lost, 0);
        env_put(env_cell(a, n), 0); /* even one that was not told */
        env_detach();
    }
}
END_TEST

/* ---- 1 TiB --------------------------------------------------------------------------- */

#define TIB ((uint64_t)1 << 40)

/* resident_bytes -- memory of this process. */
static uint64_t
resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    must(f != NULL && fscanf(f, "%*s %llu", &pages) == 1);
    (void)fclose(f);
    return pages * env_page();
}

/* place -- page number i of those that the test touches: everywhere, first and last too. */
static uint64_t
place(uint64_t i, uint64_t n_pages)
{
    return i == 0 ? n_pages - 1 : i == 1 ? 0 : i * UINT64_C(0x9e3779b97f4a7c15) % n_pages;
}

#define PLACES 300

static void
fill_large(void *arg)
{
    const int flags = *(const int *)arg;
    const uint64_t n_pages = TIB / env_page();
    uint64_t *a = (uint64_t *)env_attach(flags, n_pages);
    uint64_t before = resident_bytes();
    uint64_t *end;

    for (int round = 1; round <= 2; round++) {
        must_ok(xbegin());
        for (uint64_t i = 0; i < PLACES; i++)
            *env_cell(a, place(i, n_pages)) = i + (uint64_t)round;
        must_rc(xend(), COMMITTED);
    }
    end = env_map_at(n_pages - 2, 2); /* aliases at the end */
    must_ok(xbegin());
    must_eq(*env_cell(end, 1), 2);
    env_cell(end, 1)[1] = 77;
    must_eq(env_cell(a, n_pages - 1)[1], 77);
    must_rc(xend(), COMMITTED);
    must_ok(xMunmapAt(end));
    must(resident_bytes() - before < ((uint64_t)64 << 20));
    if (flags == DURABLE)
        (void)kill(getpid(), SIGKILL);
    env_detach();
}

static void
find_large(void *arg)
{
    const int flags = *(const int *)arg;
    const uint64_t n_pages = TIB / env_page();
    uint64_t *a = (uint64_t *)env_attach(flags, n_pages);
    struct stat st;

    must_ok(xbeginQuery());
    for (uint64_t i = 0; i < PLACES; i++)
        must_eq(*env_cell(a, place(i, n_pages)), i + 2);
    must_eq(env_cell(a, n_pages - 1)[1], 77);
    must_ok(xendQuery());
    a = (uint64_t *)xMremap(a, 2 * TIB, XAC_MAY_MOVE); /* moves if it must */
    must(a != MAP_FAILED);
    env_put(env_cell(a, 2 * n_pages - 1), 5);
    env_detach();
    must(stat(ENV_FILE, &st) == 0);
    must_eq(st.st_size, 2 * TIB);
    must((uint64_t)st.st_blocks * 512 < ((uint64_t)64 << 20));
    must_eq(file_u64(ENV_FILE, 2 * TIB - env_page()), 5);
}

/* holds_sparse_files -- can the file system of the test hold such a file? */
static bool
holds_sparse_files(void)
{
    int fd = open("probe", O_RDWR | O_CREAT, 0600);
    bool does = fd >= 0 && ftruncate(fd, (off_t)(2 * TIB)) == 0;

    must(fd >= 0 && close(fd) == 0 && unlink("probe") == 0);
    if (!does)
        printf("files of 2 TiB cannot be made here: not tested\n");
    return does;
}

START_TEST(segment_of_one_tebibyte)
{
    static int flags;

    if (!holds_sparse_files())
        return;
    flags = _i;
    if (flags == DURABLE)
        (void)proc_wait(proc_spawn(fill_large, &flags)); /* killed */
    else
        proc_run(fill_large, &flags);
    proc_run(find_large, &flags);
}
END_TEST

/* ---- against a model --------------------------------------------------------------------- */

#define PAGES   24u
#define WINDOWS 6u
#define WORDS   3u /* of each page that take part */

struct game {
    uint64_t seed;
    uint64_t value[PAGES][WORDS]; /* committed                                      */
    uint64_t mine[PAGES][WORDS];  /* as the running transaction sees them           */
    uint64_t *base[WINDOWS];      /* NULL: not mapped                               */
    size_t first[WINDOWS], n[WINDOWS];
};

/* word_at -- a random word through a random window; the model's in *modelp. */
static uint64_t *
word_at(struct game *g, uint64_t **modelp)
{
    size_t w, page, word = rnd_below(&g->seed, WORDS);

    do
        w = rnd_below(&g->seed, WINDOWS);
    while (g->base[w] == NULL);
    page = rnd_below(&g->seed, g->n[w]);
    *modelp = &g->mine[g->first[w] + page][word];
    return env_cell(g->base[w], page) + word * 100;
}

static void
step_inside(struct game *g)
{
    uint64_t *model, *p = word_at(g, &model);

    switch (rnd_below(&g->seed, 8)) {
    case 0:
        must_ok(setPageAccess(p, READ));
        break;
    case 1:
        must_ok(setPageAccess(p, READ_WRITE));
        break;
    case 2:
    case 3:
    case 4:
        must_eq(*p, *model);
        break;
    case 5:
        must_ok(xbeginQuery());
        must_eq(*p, *model);
        must_ok(xendQuery());
        break;
    default:
        *model = rnd_next(&g->seed);
        *(volatile uint64_t *)p = *model;
        break;
    }
}

static void
play_transaction(struct game *g)
{
    bool is_abort = rnd_below(&g->seed, 4) == 0;

    memcpy(g->mine, g->value, sizeof g->value);
    must_ok(xbegin());
    for (uint64_t i = 0, n = rnd_below(&g->seed, 60); i < n; i++)
        step_inside(g);
    if (is_abort)
        must_ok(xAbort());
    must_rc(xend(), is_abort ? ABORTED : COMMITTED);
    if (!is_abort)
        memcpy(g->value, g->mine, sizeof g->value);
}

/* change_window -- map, unmap or resize one of them. */
static void
change_window(struct game *g, size_t w)
{
    size_t n;

    if (g->base[w] == NULL) {
        g->first[w] = rnd_below(&g->seed, PAGES);
        g->n[w] = 1 + rnd_below(&g->seed, PAGES - g->first[w]);
        g->base[w] = env_map_at(g->first[w], g->n[w]);
        return;
    }
    n = 1 + rnd_below(&g->seed, PAGES - g->first[w]);
    if (w > 0 && rnd_below(&g->seed, 2) == 0) {
        must_ok(xMunmapAt(g->base[w]));
        g->base[w] = NULL;
    } else {
        void *p = xMremap(g->base[w], n * env_page(), XAC_MAY_MOVE);

        must(p != MAP_FAILED);
        g->base[w] = (uint64_t *)p;
        g->n[w] = n;
    }
}

static void
look_at_all(struct game *g)
{
    uint64_t *model, *p;

    memcpy(g->mine, g->value, sizeof g->value);
    must_ok(xbeginQuery());
    for (int i = 0; i < 60; i++) {
        p = word_at(g, &model);
        must_eq(*p, *model);
    }
    must_ok(xendQuery());
}

/* in_a_child -- the same with the mappings that a child inherits; nothing stays. */
static void
in_a_child(void *arg)
{
    struct game *g = (struct game *)arg;

    look_at_all(g);
    memcpy(g->mine, g->value, sizeof g->value);
    must_ok(xbegin());
    for (int i = 0; i < 20; i++)
        step_inside(g);
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    look_at_all(g);
    env_detach();
}

START_TEST(random_mappings_follow_the_model)
{
    static struct game g;
    static const int policies[] = {XAC_POLICY_OLDEST_WINS, XAC_POLICY_OPTIMISTIC,
                                   XAC_POLICY_SERIAL};
    pid_t companion = 0;

    memset(&g, 0, sizeof g);
    g.seed = env_seed() * 100 + (uint64_t)_i;
    env_checking = _i % 3 == 1 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)policies[_i / 3 % 3]));
    if (_i % 3 == 2)
        companion = env_companion(_i % 4 == 0 ? DURABLE : NONDURABLE, PAGES);
    env_init(_i % 4 == 0 ? DURABLE : NONDURABLE);
    change_window(&g, 0);
    for (int i = 0; i < 150; i++) {
        uint64_t what = rnd_below(&g.seed, 20);

        if (what < 5)
            change_window(&g, rnd_below(&g.seed, WINDOWS));
        else if (what == 5)
            must_ok(xCheckpoint());
        else if (what == 6 && i % 3 == 0)
            proc_run(in_a_child, &g);
        else if (what < 10)
            look_at_all(&g);
        else
            play_transaction(&g);
    }
    if (companion != 0)
        proc_kill(companion);
    env_detach();
    for (size_t p = 0; p < file_size(ENV_FILE) / env_page(); p++) {
        for (size_t word = 0; word < WORDS; word++)
            must_eq(file_u64(ENV_FILE, p * env_page() + word * 800), g.value[p][word]);
    }
}
END_TEST

static Suite *
grow_suite(void)
{
    Suite *s = suite_create("map grow");
    TCase *tc = env_tcase(s, "growth", 120);

    tcase_add_loop_test(tc, mapping_grows_and_shrinks_in_place, 0, 3);
    tcase_add_test(tc, mapping_moves_only_if_it_may);
    tcase_add_loop_test(tc, growth_into_another_mapping_makes_aliases, 0, 2);
    tcase_add_test(tc, others_go_on_with_what_they_have_mapped);
    tcase_add_test(tc, growth_survives_being_killed);
    tc = env_tcase(s, "large", 120);
    tcase_add_loop_test(tc, segment_of_one_tebibyte, 0, 2);
    tc = env_tcase(s, "model", 120);
    tcase_add_loop_test(tc, random_mappings_follow_the_model, 0,
                        (int)env_number("XAC_GAMES", 24));
    return s;
}

int
main(void)
{
    return env_main(grow_suite());
}
