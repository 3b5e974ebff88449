/* SPDX-License-Identifier: MIT */
/*
 * check_outofcore_aliases.c -- XAC_OPT_FRAMES: pages that a process has mapped several times.
 *
 * GOAL    A page is the same through all its mappings, wherever it has been meanwhile: shown by
 *         one of them, by several, or spilled.  It has memory once, and that counts.
 * METHOD  Two mappings that overlap, at different distances from where they begin, so that no
 *         page has the same number in both; files, frames and loops as in check_outofcore.c.  Whatever else mappings do is in check_map.c, which runs with
 *         frames too (check-frames-mode).
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_outofcore.h"

/* Pages that both mappings show, and the first one of them. */
#define BOTH  (2 * FRAMES)
#define FIRST (N_PAGES - BOTH)

/* Pages of the second mapping. */
#define N_B (BOTH + FRAMES)

/* a shows the file, b its end and more. */
struct pair {
    uint64_t *a, *b;
};

static struct pair
attach_pair(int flags)
{
    struct pair x = {.a = attach(flags)};

    x.b = env_map_at(FIRST, N_B);
    return x;
}

/* cell -- a page of the file that both show, through one of them. */
static uint64_t *
cell(const struct pair *x, bool by_b, size_t page)
{
    return by_b ? env_cell(x->b, page - FIRST) : env_cell(x->a, page);
}

/* Pages of memory that all mappings share, as the kernel says. */
static size_t
shared_pages(void)
{
    DIR *d = opendir("/proc/self/fd");
    const struct dirent *e;
    size_t bytes = 0;

    must(d != NULL);
    while ((e = readdir(d)) != NULL) {
        char text[64] = "";
        struct stat st;

        if (readlinkat(dirfd(d), e->d_name, text, sizeof text - 1) > 0
            && strncmp(text, "/memfd:xac-aliases", 16) == 0) {
            must_eq(fstatat(dirfd(d), e->d_name, &st, 0), 0);
            bytes += (size_t)st.st_blocks * 512;
        }
    }
    (void)closedir(d);
    return bytes / env_page();
}

/* must_be_bounded -- all that is shown has memory once, within the share of the mappings. */
static void
must_be_bounded(const struct pair *x)
{
    must(shared_pages() <= FRAMES / 8 + 1);
    must(present(x->a, N_PAGES) <= shared_pages());
    must(present(x->b, N_B) <= shared_pages());
}

/* store_all -- base + its place into every page that both show, every third through b. */
static void
store_all(const struct pair *x, uint64_t base)
{
    for (size_t p = FIRST; p < N_PAGES; p++)
        *cell(x, p % 3 == 0, p) = base + p;
}

/* must_show -- each page, through one and then the other. */
static void
must_show(const struct pair *x, uint64_t base)
{
    for (size_t p = FIRST; p < N_PAGES; p++) {
        uint64_t want = base == 0 ? 0 : base + p;

        if (*cell(x, p % 2 == 0, p) != want || *cell(x, p % 2 != 0, p) != want)
            env_fail(__FILE__, __LINE__, "page %zu: %llu and %llu, not %llu", p,
                     (unsigned long long)*cell(x, false, p),
                     (unsigned long long)*cell(x, true, p), (unsigned long long)want);
    }
}

static void
query_must_show(const struct pair *x, uint64_t base)
{
    must_ok(xbeginQuery());
    must_show(x, base);
    must_be_bounded(x);
    must_rc(xendQuery(), COMMITTED);
    must_eq(shared_pages(), 0);
}

/* ---- More pages than may be shown -------------------------------------------------------- */

START_TEST(stores_through_one_are_seen_through_the_other)
{
    struct pair x = attach_pair(MODE(_i));

    for (uint64_t round = 1; round <= 2; round++) {
        must_ok(xbegin());
        must_show(&x, (round - 1) << 32);
        store_all(&x, round << 32);
        must_be_bounded(&x);
        must_show(&x, round << 32);
        must_be_bounded(&x);
        must_rc(xend(), COMMITTED);
        must_eq(shared_pages(), 0);
        query_must_show(&x, round << 32);
    }
    must(env_stats().pages_spilled >= BOTH && env_stats().pages_fetched_back > 0);
    env_detach();
    must_eq(file_u64(ENV_FILE, (N_PAGES - 1) * env_page()),
            (UINT64_C(2) << 32) + N_PAGES - 1);
}
END_TEST

START_TEST(abort_restores_both)
{
    struct pair x = attach_pair(MODE(_i));

    must_ok(xbegin());
    store_all(&x, 1000);
    must_rc(xend(), COMMITTED);
    for (int round = 0; round < 2; round++) {
        must_ok(xbegin());
        must_eq(*cell(&x, true, FIRST), 1000 + FIRST);
        store_all(&x, 1u << 30);
        must_ok(xAbort());
        must_show(&x, 1u << 30); /* until the end it sees what it has stored */
        must_rc(xend(), ABORTED);
        query_must_show(&x, 1000);
    }
    env_detach();
}
END_TEST

/* What one has stored, and the other changed while it was spilled, and the first again. */
START_TEST(spilled_pages_come_back_through_either)
{
    struct pair x = attach_pair(NONDURABLE);

    must_ok(xbegin());
    for (uint64_t round = 1; round <= 4; round++) {
        for (size_t p = FIRST; p < N_PAGES; p++) {
            bool by_b = (p + round) % 2 == 0;

            must_eq(cell(&x, by_b, p)[round - 1], round == 1 ? 0 : p);
            if (round % 2 == 0 || p % 5 != 0) /* some are only read */
                cell(&x, !by_b, p)[round] = p;
            else
                cell(&x, by_b, p)[round] = p;
        }
        must_be_bounded(&x);
    }
    must_rc(xend(), COMMITTED);
    must_ok(xbeginQuery());
    for (size_t p = FIRST; p < N_PAGES; p++)
        for (size_t word = 1; word <= 4; word++)
            must_eq(cell(&x, p % 2 == 0, p)[word], p);
    must_rc(xendQuery(), COMMITTED);
    env_detach();
}
END_TEST

/* A store through one, unseen since it was spilled, must not be lost when the other, that has
   only been read, goes as well. */
START_TEST(what_is_spilled_survives_a_look_through_the_other)
{
    struct pair x = attach_pair(NONDURABLE);

    must_ok(xbegin());
    for (int round = 0; round < 3; round++) {
        if (round == 0)
            store_all(&x, 70);
        for (size_t p = FIRST; p < N_PAGES; p++) /* never by whom it was stored */
            must_eq(*cell(&x, p % 3 != 0, p), 70 + p);
    }
    must_show(&x, 70);
    must_rc(xend(), COMMITTED);
    query_must_show(&x, 70);
    env_detach();
}
END_TEST

/* The kernel takes shared pages out of the page table to swap them; here the program does. */
START_TEST(pages_taken_by_the_kernel_are_given_back)
{
    struct pair x = attach_pair(MODE(_i));
    const size_t few = 8;

    must_ok(xbegin());
    for (size_t p = FIRST; p < FIRST + few; p++)
        *cell(&x, p % 2 == 0, p) = p;
    must_eq(*cell(&x, true, FIRST + 1), FIRST + 1);
    must_eq(madvise(cell(&x, false, FIRST), few * env_page(), MADV_DONTNEED), 0);
    must_eq(madvise(cell(&x, true, FIRST), few * env_page(), MADV_DONTNEED), 0);
    for (size_t p = FIRST; p < FIRST + few / 2;
         p++) /* half of them is found by the commit */
        must_eq(cell(&x, p % 2 == 0, p)[0]++, p);
    must_rc(xend(), COMMITTED);

    must_ok(xbegin());
    for (size_t p = FIRST; p < FIRST + few; p++)
        must_eq(cell(&x, true, p)[0]++, p + (p < FIRST + few / 2));
    must_eq(madvise(cell(&x, true, FIRST), few * env_page(), MADV_DONTNEED), 0);
    for (size_t p = 0; p < FRAMES; p++) /* those are spilled from where they are */
        must_eq(env_cell(x.a, p)[0], 0);
    for (size_t p = FIRST; p < FIRST + few; p++)
        must_eq(*cell(&x, false, p), p + 1 + (p < FIRST + few / 2));
    must_rc(xend(), COMMITTED);
    must(env_stats().pages_spilled >= few);
    env_detach();
}
END_TEST

START_TEST(announced_pages_stay_announced_in_both)
{
    struct pair x;

    env_announce();
    x = attach_pair(NONDURABLE);
    must_ok(xbegin());
    for (size_t p = FIRST; p < N_PAGES; p++) {
        must_ok(setPageAccess(cell(&x, false, p), READ_WRITE));
        must_ok(setPageAccess(cell(&x, true, p), READ_WRITE));
    }
    must_be_bounded(&x);
    store_all(&x, 9);
    must_rc(xend(), COMMITTED);
    query_must_show(&x, 9);
    env_detach();
}
END_TEST

/* What a heap's mapping would hold is what others have stored, though it is spilled. */
START_TEST(no_heap_over_what_was_spilled)
{
    struct pair x = attach_pair(NONDURABLE);

    must_ok(xbegin());
    *cell(&x, false, N_PAGES - 1) = 5;
    for (size_t p = 0; p < FRAMES; p++)
        env_cell(x.a, p)[0] = p;
    must(env_stats().pages_spilled > 0);
    must(xRoot(x.b) == NULL && errno == EINVAL);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

/* Random loads, stores and hints through six mappings follow a model in plain memory. */
START_TEST(random_windows_follow_the_model)
{
    enum {
        WINDOWS = 6
    };
    uint64_t seed = env_seed() + (uint64_t)_i, *base[WINDOWS];
    size_t first[WINDOWS];
    uint64_t *model = calloc(N_PAGES, sizeof *model);
    uint64_t *mine = calloc(N_PAGES, sizeof *mine);

    must(model != NULL && mine != NULL);
    env_checking = _i % 2 == 1 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    must_ok(xSetOption(XAC_OPT_POLICY,
                       _i < 2 ? XAC_POLICY_OLDEST_WINS : XAC_POLICY_OPTIMISTIC));
    base[0] = attach(MODE(_i % 2));
    first[0] = 0;
    for (size_t w = 1; w < WINDOWS; w++) {
        first[w] = rnd_below(&seed, 3 * 100);
        base[w] = env_map_at(first[w], 100);
    }
    for (uint64_t round = 1; round <= 40; round++) {
        bool aborts = rnd_below(&seed, 4) == 0;

        memcpy(mine, model, N_PAGES * sizeof *mine);
        must_ok(xbegin());
        for (uint64_t n = rnd_below(&seed, 500); n > 0; n--) {
            size_t w = rnd_below(&seed, WINDOWS), page = rnd_below(&seed, 100);
            size_t p = first[w] + page;
            uint64_t *at = env_cell(base[w], page);

            if (rnd_below(&seed, 8) == 0)
                must_ok(setPageAccess(at, n % 2 == 0 ? READ : READ_WRITE));
            must_eq(*at, mine[p]);
            if (rnd_below(&seed, 2) == 0)
                *at = mine[p] = round << 20 | n;
        }
        must(shared_pages() <= FRAMES / 8 + 1);
        if (aborts)
            must_ok(xAbort());
        must_rc(xend(), aborts ? ABORTED : COMMITTED);
        memcpy(model, aborts ? model : mine, N_PAGES * sizeof *mine);
        if (round % 10 == 0)
            must_ok(xCheckpoint());
    }
    env_detach();
    for (size_t p = 0; p < N_PAGES; p++)
        must_eq(file_u64(ENV_FILE, p * env_page()), model[p]);
    free(model);
    free(mine);
    env_checking = XAC_CHECKING_STRICT;
}
END_TEST

/* ---- Mappings come and go ----------------------------------------------------------------- */

START_TEST(one_goes_and_the_other_stays)
{
    struct pair x = attach_pair(NONDURABLE);

    for (uint64_t round = 1; round <= 3; round++) {
        must_ok(xbegin());
        store_all(&x, round << 32);
        must_rc(xend(), COMMITTED);
        must_ok(xMunmapAt(round == 2 ? x.b : x.a));
        must_ok(xbegin());
        for (size_t p = FIRST; p < N_PAGES; p++)
            must_eq((*cell(&x, round != 2, p))++, (round << 32) + p);
        must(shared_pages() <= FRAMES / 8 + 1);
        must_rc(xend(), COMMITTED);
        must_eq(shared_pages(), 0);
        if (round == 2)
            x.b = env_map_at(FIRST, N_B);
        else
            x.a = env_map_at(0, N_PAGES);
        query_must_show(&x, (round << 32) + 1);
    }
    env_detach();
}
END_TEST

START_TEST(one_grows_over_the_other)
{
    struct pair x = {.a = attach(NONDURABLE)};

    must_ok(xbegin());
    write_all(x.a, 50);
    must_rc(xend(), COMMITTED);
    must(xMremap(x.a, FIRST * env_page(), 0) == x.a);
    x.b = env_map_at(FIRST, N_B);
    for (uint64_t round = 0; round < 2; round++) {
        x.a = (uint64_t *)xMremap(x.a, N_PAGES * env_page(), XAC_MAY_MOVE);
        must(x.a != MAP_FAILED);
        query_must_show(&x, 50 + round);
        must_ok(xbegin());
        store_all(&x, 51 + round);
        must_be_bounded(&x);
        must_rc(xend(), COMMITTED);
        must(xMremap(x.a, (FIRST + FRAMES * round) * env_page(), 0) == x.a);
        must_eq(env_get(env_cell(x.b, 3)), 51 + round + FIRST + 3);
    }
    env_detach();
}
END_TEST

/* A second mapping that fails because there is no descriptor changes nothing. */
START_TEST(refused_mappings_leave_the_first_as_it_was)
{
    struct pair x = {.a = attach(NONDURABLE)};
    struct rlimit few, all;
    int next = dup(STDERR_FILENO), n_refused = 0;

    must(next >= 0 && close(next) == 0);
    must_ok(xbegin());
    write_all(x.a, 8);
    must_rc(xend(), COMMITTED);
    must_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
    few = all;
    for (x.b = MAP_FAILED; x.b == MAP_FAILED; next++) {
        few.rlim_cur = (rlim_t)next;
        must_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        x.b = (uint64_t *)xMmapAt(ENV_FILE, FIRST * env_page(), N_B * env_page(), 0);
        must(x.b != MAP_FAILED || (errno == EMFILE && ++n_refused < 20));
        must_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
        query_must_hold(x.a, 8);
    }
    must(n_refused > 2);
    query_must_show(&x, 8);
    env_detach();
}
END_TEST

/* ---- Others ------------------------------------------------------------------------------- */

struct race {
    int flags;
    uint64_t policy;
    _Atomic uint64_t read, stored;
};

/* store_one -- a page that others have read. */
static void
store_one(void *arg)
{
    struct race *r = arg;
    uint64_t *x;

    must_ok(xSetOption(XAC_OPT_POLICY, r->policy));
    x = attach(r->flags);
    proc_await(&r->read, 1, 100);
    env_put(env_cell(x, FIRST + 1), 99);
    word_store(&r->stored, 1);
    env_detach();
}

START_TEST(what_was_read_through_one_conflicts_through_the_other)
{
    static const uint64_t policy[] = {XAC_POLICY_OPTIMISTIC, XAC_POLICY_YOUNGEST_WINS};
    struct race *r = proc_shared(sizeof *r);
    struct xac_conflict why;
    struct pair x;
    pid_t other;

    r->flags = MODE(_i % 2);
    r->policy = policy[_i / 2];
    other = proc_spawn(store_one, r);
    must_ok(xSetOption(XAC_OPT_POLICY, r->policy));
    x = attach_pair(r->flags);
    must_ok(xbegin());
    must_show(&x, 0); /* and almost all of it has been dropped since */
    word_store(&r->read, 1);
    proc_await(&r->stored, 1, 100);
    must_eq(*cell(&x, true, FIRST + 1), 0);
    *cell(&x, true, FIRST + 1) = 7;
    must_eq(*cell(&x, false, FIRST + 1), 7);
    must_rc(xend(), ABORTED);
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.file_offset, (FIRST + 1) * env_page());
    must_eq(env_get(cell(&x, false, FIRST + 1)), 99);
    must_eq(env_get(cell(&x, true, FIRST + 1)), 99);
    proc_join(other);
    env_detach();
}
END_TEST

/* A child drops what it has inherited, and must not take the memory from its parent. */
START_TEST(child_takes_no_memory_from_its_parent)
{
    struct pair x;
    int status;
    pid_t pid;

    env_let_overlap();
    x = attach_pair(NONDURABLE);
    must_ok(xbegin());
    store_all(&x, 11);
    pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        must_rc(xend(), XAC_EFORKED);
        must_eq(env_get(cell(&x, true, N_PAGES - 1)), 0);
        must_ok(xbegin());
        must_show(&x, 0);
        must_ok(xAbort());
        must_rc(xend(), ABORTED);
        env_detach();
        _exit(0);
    }
    must(waitpid(pid, &status, 0) == pid && status == 0);
    must_show(&x, 11);
    must_rc(xend(), COMMITTED);
    query_must_show(&x, 11);
    env_detach();
}
END_TEST

/* Two commits through both, and a third transaction that dies at its end's door. */
static void
commit_and_die(void *arg)
{
    struct pair x = attach_pair(DURABLE);

    for (uint64_t round = 1; round <= 2; round++) {
        must_ok(xbegin());
        store_all(&x, round << 32);
        must_rc(xend(), COMMITTED);
        if (round == 1 && *(const bool *)arg)
            must_ok(xCheckpoint());
    }
    must_ok(xbegin());
    store_all(&x, UINT64_C(3) << 32);
}

START_TEST(commits_through_both_survive_a_crash)
{
    bool checkpoints = _i != 0;
    struct pair x;

    proc_run(commit_and_die, &checkpoints);
    x = attach_pair(DURABLE);
    query_must_show(&x, UINT64_C(2) << 32);
    env_detach();
}
END_TEST

void
add_aliases(Suite *s)
{
    TCase *tc = env_tcase(s, "aliases", 120);

    tcase_add_loop_test(tc, stores_through_one_are_seen_through_the_other, 0, 2);
    tcase_add_loop_test(tc, abort_restores_both, 0, 2);
    tcase_add_test(tc, spilled_pages_come_back_through_either);
    tcase_add_test(tc, what_is_spilled_survives_a_look_through_the_other);
    tcase_add_loop_test(tc, pages_taken_by_the_kernel_are_given_back, 0, 2);
    tcase_add_test(tc, announced_pages_stay_announced_in_both);
    tcase_add_test(tc, no_heap_over_what_was_spilled);
    tcase_add_loop_test(tc, random_windows_follow_the_model, 0, 4);
    tcase_add_test(tc, one_goes_and_the_other_stays);
    tcase_add_test(tc, one_grows_over_the_other);
    tcase_add_test(tc, refused_mappings_leave_the_first_as_it_was);
    tcase_add_loop_test(tc, what_was_read_through_one_conflicts_through_the_other, 0, 4);
    tcase_add_test(tc, child_takes_no_memory_from_its_parent);
    tcase_add_loop_test(tc, commits_through_both_survive_a_crash, 0, 2);
}
