/* SPDX-License-Identifier: MIT */
/*
 * check_in_place.c -- a process that is alone and announces every store updates its pages in place.
 *
 * GOAL    A program sees no difference: what is committed is there, what is given up is nowhere, and
 *         nothing is left behind.
 * METHOD  A model; mappings, checking and limits that change.  Those that come: check_in_place_comers.c.
 */
#include <config.h>

#include "check_in_place.h"

/* ---- Alone ----------------------------------------------------------------------------------- */

static void
must_leave_nothing(void (*test)(void))
{
    char path[4300], region[4200];

    test();
    env_region(ENV_DIR, region);
    in_place_file(path);
    env_detach();
    must(!file_exists(path));
    must(!file_exists(region));
}

static void
work_alone(void)
{
    uint64_t seed = env_seed(), *base = attach(), *file = malloc(PAGES * env_page());

    enter(base, PAGES);
    for (int k = 0; k < 300; k++)
        (void)try(base, PAGES, &seed);
    must_be_whole_now(base, PAGES);
    must_ok(xCheckpoint());
    must_be_whole_now(base, PAGES);
    must(file != NULL);
    file_read(ENV_FILE, 0, file, PAGES * env_page());
    (void)must_be_whole(file, PAGES);
    must_eq(*file, env_get(base));
    free(file);
    (void)try(base, PAGES, &seed);
}

START_TEST(alone_it_follows_the_model_and_leaves_nothing)
{
    must_leave_nothing(work_alone);
    (void)attach();
    env_detach();
}
END_TEST

/* What xAbort() takes back: of pages that have been written before, once or not since a checkpoint. */
START_TEST(what_is_given_up_is_nowhere)
{
    pid_t pid = serve_looks();
    uint64_t *base = attach(), sum;

    enter(base, PAGES);
    for (int round = 0; round < 8; round++) {
        if (round % 4 >= 2)
            must_ok(xCheckpoint());
        sum = env_get(base);
        must_ok(xbegin());
        if (round % 2 == 0)
            must_ok(setRangeAccess(base, PAGES * env_page(), READ_WRITE));
        for (uint64_t p = 0; p < PAGES; p++) {
            must_ok(setPageAccess(env_cell(base, p), READ_WRITE));
            set_page(base, p, 1000000 + p);
        }
        must_ok(xAbort());
        must_rc(xend(), ABORTED);
        must_ok(xbeginQuery());
        must_eq(must_be_whole(base, PAGES), sum);
        must_ok(xendQuery());
        must_ok(xbegin());
        change(base, 1 + (uint64_t)round);
        must_ok(setPageAccess(base, READ_WRITE));
        set_page(base, 0, *base + 1);
        must_rc(xend(), COMMITTED);
        if (round >= 4)
            process_comes(&(struct look){.sum = sum + 1});
        if (round >= 4)
            enter(base, PAGES);
    }
    proc_kill(pid);
    env_detach();
}
END_TEST

/* The heap announces its own stores; what it does is taken back like others' stores. */
START_TEST(a_heap_is_rolled_back)
{
    uint64_t seed = env_seed(), **root;
    struct xac_heap_totals totals;
    char *base;

    env_init(NONDURABLE);
    base = xMmap("heap.db", PAGES * env_page());
    must(base != MAP_FAILED);
    for (int k = 0; k < 2000; k++) {
        bool gives_up = rnd_below(&seed, 3) == 0;
        uint64_t *list, n = 0, kept;

        must_ok(xbegin());
        root = xRoot(base);
        must(root != NULL);
        must_ok(setPageAccess(root, READ_WRITE));
        list = *root;
        kept = list == NULL ? 0 : list[1];
        for (uint64_t *at = list; at != NULL; at = (uint64_t *)at[0])
            n++;
        must_eq(n, kept);
        if (n < 40 && rnd_below(&seed, 2) == 0) {
            uint64_t *cell = xMalloc(base, 16 + rnd_below(&seed, 600));

            must(cell != NULL);
            must_ok(setPageAccess(cell, READ_WRITE));
            cell[0] = (uint64_t)list;
            cell[1] = n + 1;
            *root = cell;
        } else if (list != NULL) {
            *root = (uint64_t *)list[0];
            must_ok(xFree(base, list));
        }
        if (gives_up)
            must_ok(xAbort());
        must_rc(xend(), gives_up ? ABORTED : COMMITTED);
        if (k % 100 == 99) {
            must_ok(xbegin());
            must_ok(xHeapCheck(base, &totals, sizeof totals));
            must_rc(xend(), COMMITTED);
        }
    }
    must(!has_engine() || is_in_place());
    env_detach();
}
END_TEST

/* Checkpoints that are due come, also where each transaction writes more pages than one makes versions of
   at a time. */
START_TEST(automatic_checkpoints_come)
{
    uint64_t n_pages = 70000, *base, at = 0; /* 256 MiB of pages: one is due */
    struct xac_stats s = {.checkpoints = 0};

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 65536));
    base = env_attach(NONDURABLE, n_pages);
    for (uint64_t k = 0; k < 20000 && s.checkpoints == 0; k++) {
        must_ok(xbegin());
        for (uint64_t n = at < n_pages ? 2000 : 200; n > 0; n--, at++) {
            uint64_t *cell = env_cell(base, at % n_pages);

            must_ok(setPageAccess(cell, READ_WRITE));
            *cell += 1;
        }
        must_rc(xend(), COMMITTED);
        s = env_stats();
    }
    must(s.checkpoints > 0);
    env_detach();
}
END_TEST

static void
commit_and_checkpoint(void *arg)
{
    uint64_t seed = env_seed(), *base;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 65536));
    base = attach();
    enter(base, PAGES);
    for (;;) {
        if (try(base, PAGES, &seed))
            word_add(&board->committed, 1);
        if (rnd_below(&seed, 50) == 0)
            must_ok(xCheckpoint());
    }
}

/* anew -- a process of its own finds an environment, and puts a whole state into it: of what is not durable,
   not even that need be left when all participants have died. */
static void
anew(void *arg)
{
    uint64_t *base = attach();

    (void)arg;
    must_ok(xbegin());
    for (uint64_t p = 0; p < PAGES; p++) {
        must_ok(setPageAccess(env_cell(base, p), READ_WRITE));
        set_page(base, p, 0);
    }
    must_rc(xend(), COMMITTED);
    must_be_whole_now(base, PAGES);
    env_detach();
}

/* Killed while alone: the next one can go on. */
START_TEST(killed_while_alone)
{
    uint64_t seed = env_seed();

    for (int k = 0; k < 10; k++) {
        pid_t pid = proc_spawn(commit_and_checkpoint, NULL);

        proc_await(&board->committed, word_load(&board->committed) + 100, 60);
        proc_sleep_us(rnd_below(&seed, 3000));
        proc_kill(pid);
        proc_run(anew, NULL);
        proc_run(look, &(struct look){.sum = 0});
    }
}
END_TEST

/* Mappings that come, grow, shrink and go while pages are updated in place; one page mapped twice. */
START_TEST(mappings_change_while_alone)
{
    uint64_t *base = attach(), *second, *more, sum;

    enter(base, PAGES);
    sum = env_get(base);
    second = env_map_at(4, 8);
    must_eq(env_get(env_cell(second, 0)), env_get(env_cell(base, 4)));
    must_ok(xbegin());
    must_ok(setPageAccess(base, READ_WRITE));
    must_ok(setPageAccess(env_cell(second, 1), READ_WRITE));
    set_page(base, 0, sum + 1);
    for (size_t i = 0; i < words(); i++)
        env_cell(second, 1)[i] = word_of(5, env_cell(base, 5)[0] + (i == 0), i);
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    write_all(base, PAGES);
    must_eq(env_get(env_cell(second, 1)), env_get(env_cell(base, 5)));
    must_ok(xMunmapAt(second));
    write_all(base, PAGES);
    must_be_whole_now(base, PAGES);
    more = xMmap("more.db", 16 * env_page());
    must(more != MAP_FAILED);
    enter(base, PAGES);
    enter(more, 16);
    must_be_whole_now(base, PAGES);
    must_be_whole_now(more, 16);
    base = xMremap(base, (PAGES + 8) * env_page(), 0);
    must(base != MAP_FAILED);
    must_be_whole_now(base, PAGES + 8);
    enter(base, PAGES + 8);
    must_be_whole_now(base, PAGES + 8);
    must_ok(xMunmapAt(more));
    more = xMmap("more.db", 16 * env_page());
    must_be_whole_now(more, 16);
    sum = env_get(base);
    env_detach();
    base = env_attach(NONDURABLE, PAGES + 8);
    must_be_whole_now(base, PAGES + 8);
    must_eq(env_get(base), sum);
    env_detach();
}
END_TEST

static void
work_with_a_limit(void *arg)
{
    const struct rlimit limit = {.rlim_cur = 8 << 20, .rlim_max = RLIM_INFINITY};
    uint64_t n_pages = 4096, *base;

    (void)arg;
    base = env_attach(NONDURABLE, n_pages);
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (uint64_t k = 0; k < ENOUGH; k++) {
        must_ok(xbegin());
        change(base, 1 + k % 50);
        must_ok(setPageAccess(base, READ_WRITE));
        set_page(base, 0, *base + 1);
        must_rc(xend(), COMMITTED);
    }
    must_be_whole_now(base, n_pages);
    must_eq(env_get(base), ENOUGH);
}

/* A limit on the size of files: all goes on, in place or not. */
START_TEST(files_may_not_be_large)
{
    proc_run(work_with_a_limit, NULL);
}
END_TEST

/* ---- Checking changes ------------------------------------------------------------------------ */

/* From stores that are announced to those that trap, and that nobody loses anything. */
START_TEST(checking_becomes_strict)
{
    uint64_t *base = attach(), sum;

    enter(base, PAGES);
    sum = env_get(base);
    (void)xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_STRICT);
    must_ok(xbeginQuery());
    must_eq(must_be_whole(base, PAGES), sum);
    must_ok(xendQuery());
    must_ok(xbegin());
    change(base, 3);
    must_ok(setPageAccess(base, READ_WRITE));
    set_page(base, 0, *base + 1);
    must_rc(xend(), COMMITTED);
    must_be_whole_now(base, PAGES);
    env_detach();
    proc_run(look, &(struct look){.sum = sum + 1});
}
END_TEST

/* breach -- a store that is not announced, beside one that is (XAC_CHECKING_TRUSTED). */
static void
breach(uint64_t *base)
{
    must_ok(xbegin());
    change(base, 3);
    must_ok(setPageAccess(base, READ_WRITE));
    set_page(base, 0, *base + 1);
    env_cell(base, 7)[9]++;
    must_rc(xend(), COMMITTED);
}

/* Others may see a store that breaks the promise, for the page is the newest one; on no other page. */
START_TEST(what_is_not_announced_is_of_no_other_page)
{
    uint64_t *base, sum;
    pid_t pid;

    pid = serve_looks();
    base = attach();
    enter(base, PAGES);
    sum = env_get(base);
    breach(base);
    must_ok(xbegin());
    must_ok(setPageAccess(env_cell(base, 7), READ_WRITE));
    set_page(base, 7, *env_cell(base, 7));
    must_rc(xend(), COMMITTED);
    process_comes(&(struct look){.sum = sum + 1});
    proc_kill(pid);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("in_place");
    TCase *t = env_tcase_with(s, "alone", 120, setup);

    tcase_add_test(t, alone_it_follows_the_model_and_leaves_nothing);
    tcase_add_test(t, what_is_given_up_is_nowhere);
    tcase_add_test(t, a_heap_is_rolled_back);
    tcase_add_test(t, automatic_checkpoints_come);
    tcase_add_test(t, killed_while_alone);
    tcase_add_test(t, mappings_change_while_alone);
    tcase_add_test(t, files_may_not_be_large);
    t = env_tcase_with(s, "checking", 120, setup);
    tcase_add_test(t, checking_becomes_strict);
    tcase_add_test(t, what_is_not_announced_is_of_no_other_page);
    return env_main(s);
}
