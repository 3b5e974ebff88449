/* SPDX-License-Identifier: MIT */
/*
 * check_map.c -- mappings: parts of a file, a file several times, growth, addresses, and
 * segments far larger than memory.
 *
 * GOAL    every byte of a file is the same through whatever mapping, inside a transaction
 *         and from one to the next; mappings come, go and change their length without
 *         disturbing anybody.
 * METHOD  public header only.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"

/* must_fail -- a call that returns an address has failed with this errno, and words. */
#define must_fail(call, error) \
 (env_stale_message(), must_fail_with(__LINE__, #call, (call), (error)))

static void
must_fail_with(int line, const char *call, const void *got, int want)
{
    int error = errno;

    if (got != MAP_FAILED || error != want || strstr(xac_last_error(), "12345") != NULL)
        env_fail(__FILE__, line, "%s: %p, errno %d, \"%s\"; not errno %d", call, got,
                 error, xac_last_error(), want);
}

/* ---- parts --------------------------------------------------------------------------- */

START_TEST(part_holds_the_bytes_of_its_place)
{
    uint64_t *a, *b;
    int rc;

    env_init(DURABLE);
    a = env_map_at(3, 2);
    b = env_map_at(100, 1);
    do {
        must_ok(xbegin());
        *env_cell(a, 0) = 30;
        *env_cell(a, 1) = 40;
        *env_cell(b, 0) = 1000;
    } while ((rc = xend()) == ABORTED);
    must_eq(rc, COMMITTED);
    must_eq(file_size(ENV_FILE), 101 * env_page());
    must_ok(xMunmapAt(a));
    must_ok(xMunmap(ENV_FILE));
    a = env_map_at(0, 200);
    must_eq(env_get(env_cell(a, 3)), 30);
    must_eq(env_get(env_cell(a, 4)), 40);
    must_eq(env_get(env_cell(a, 100)), 1000);
    must_eq(env_get(env_cell(a, 99)), 0);
    env_detach();
    must_eq(file_u64(ENV_FILE, 3 * env_page()), 30);
    must_eq(file_u64(ENV_FILE, 100 * env_page()), 1000);
    must_eq(file_size(ENV_FILE), 200 * env_page());
}
END_TEST

START_TEST(arguments_are_checked)
{
    size_t page = env_page();
    uint64_t *a, *b;

    must_fail(xMmapAt(ENV_FILE, 0, page, 0), EPERM);
    must_refuse(xMunmapAt(&page), XAC_ENOINIT);
    env_init(NONDURABLE);
    must_fail(xMmapAt(NULL, 0, page, 0), EINVAL);
    must_fail(xMmapAt("", 0, page, 0), EINVAL);
    must_fail(xMmapAt(ENV_FILE, 1, page, 0), EINVAL);
    must_fail(xMmapAt(ENV_FILE, 0, 0, 0), EINVAL);
    must_fail(xMmapAt(ENV_FILE, 0, page + 1, 0), EINVAL);
    must_fail(xMmapAt(ENV_FILE, 0, page, XAC_MAY_MOVE), EINVAL);
    must_fail(xMmapAt(ENV_FILE, 0, page, 64), EINVAL);
    must_fail(xMmapAt(ENV_FILE, UINT64_MAX - page + 1, page, 0), EFBIG);
    must_fail(xMmapAt(ENV_FILE, page << 36, page, 0), EFBIG);
    must_fail(xMmapAt(ENV_FILE, (uint64_t)1 << 63, page, 0), EFBIG);
    must(!file_exists(ENV_FILE));
    a = env_map_at(1, 2);
    must_fail(xMremap(a, 0, 0), EINVAL);
    must_fail(xMremap(a, page - 1, 0), EINVAL);
    must_fail(xMremap(a, page, XAC_SAME_ADDRESS), EINVAL);
    must_fail(xMremap(env_cell(a, 1), page, 0), EINVAL);
    must_fail(xMremap(&page, page, 0), EINVAL);
    must_refuse(xMunmapAt(env_cell(a, 1)), XAC_ENOTMAPPED);
    must_refuse(xMunmapAt(NULL), XAC_ENOTMAPPED);
    must_ok(xbegin());
    must_fail(xMmapAt(ENV_FILE, 0, page, 0), EPERM);
    must_fail(xMremap(a, page, 0), EPERM);
    must_refuse(xMunmapAt(a), XAC_EINTXN);
    must_rc(xend(), COMMITTED);
    b = env_map_at(2, 2);
    must_refuse(xMunmap(ENV_FILE), XAC_EMAPPED);
    must(strstr(xac_last_error(), "xMunmapAt") != NULL);
    must_refuse(xMunmap("./" ENV_FILE), XAC_EMAPPED);
    must_ok(xMunmapAt(a));
    must_refuse(xMunmapAt(a), XAC_ENOTMAPPED);
    env_put(b, 7);
    must_ok(xMunmap(ENV_FILE));
    must_refuse(xMunmap(ENV_FILE), XAC_ENOTMAPPED);
    env_detach();
    must_eq(file_u64(ENV_FILE, 2 * page), 7);
}
END_TEST

/* ---- aliases: pages that are mapped several times ---------------------------------------- */

/* What loop tests vary: 1 alone and asking to stay mapped, 2 optimistic, 3 durable, 4 serial and
   asking to stay mapped. */
static uint64_t *
open_variant(int variant, size_t n_pages)
{
    static const int policies[] = {[2] = XAC_POLICY_OPTIMISTIC, [4] = XAC_POLICY_SERIAL};

    env_checking = variant == 1 || variant == 4 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)policies[variant])); /* 0: oldest-wins */
    return (uint64_t *)env_attach(variant == 3 ? DURABLE : NONDURABLE, n_pages);
}

#define VARIANTS 5

START_TEST(store_through_one_is_seen_through_the_other)
{
    uint64_t *a = open_variant(_i, 4);
    uint64_t *b = env_map_at(0, 4), *c = env_map_at(2, 4);

    must(a != b);
    for (uint64_t round = 1; round < 20; round++) {
        must_ok(xbegin());
        must_eq(*env_cell(a, 2), (round - 1) * 100);
        must_eq(*env_cell(b, 2), (round - 1) * 100);
        *env_cell(a, 2) = round * 100 + 1;
        must_eq(*env_cell(b, 2), round * 100 + 1);
        *env_cell(c, 0) = round * 100 + 2; /* never loaded before */
        must_eq(*env_cell(a, 2), round * 100 + 2);
        must_eq(*env_cell(b, 2), round * 100 + 2);
        *env_cell(b, 2) = round * 100;
        must_eq(env_cell(a, 2)[0], round * 100);
        must_eq(*env_cell(c, 0), round * 100);
        env_cell(b, 3)[round] = round; /* without having loaded */
        must_eq(env_cell(a, 3)[round], round);
        env_cell(a, 0)[1]++; /* twice mapped, loaded through one */
        env_cell(c, 3)[1]++; /* mapped once */
        must_rc(xend(), COMMITTED);
        must_eq(env_get(&env_cell(b, 3)[round]), round);
        must_eq(env_get(&env_cell(b, 0)[1]), round);
        must_eq(env_get(&env_cell(c, 3)[1]), round);
    }
    env_detach();
    must_eq(file_u64(ENV_FILE, 2 * env_page()), 1900);
}
END_TEST

START_TEST(abort_restores_all_mappings)
{
    uint64_t *a = open_variant(_i, 2), *b = env_map_at(0, 2);

    env_put(a, 5);
    for (int round = 0; round < 6; round++) {
        must_ok(xbegin());
        if (round % 2 == 0)
            must_eq(*a, 5);
        if (round < 4)
            *b = 99;
        must_eq(*a, round < 4 ? 99 : 5);
        *a = 77;
        must_eq(*b, 77);
        must_ok(xAbort());
        *env_cell(b, 1) = 3; /* goes on */
        must_eq(*env_cell(a, 1), 3);
        must_rc(xend(), ABORTED);
        must_eq(env_get(a), 5);
        must_eq(env_get(b), 5);
        must_eq(env_get(env_cell(a, 1)), 0);
    }
    env_detach();
}
END_TEST

/* One instruction may need one page through two mappings at once. */
START_TEST(copy_from_a_page_to_itself)
{
    unsigned char *a = (unsigned char *)open_variant(_i, 1);
    unsigned char *b = (unsigned char *)env_map_at(0, 1);
    size_t half = env_page() / 2;

    must_ok(xbegin());
    for (size_t i = 0; i < half; i++)
        a[i] = (unsigned char)(i * 7);
    must_rc(xend(), COMMITTED);
    for (int round = 0; round < 3; round++) {
        unsigned char *to = round == 1 ? a : b, *from = round == 1 ? b : a;

        must_ok(xbegin());
#if defined(__x86_64__)
        {
            unsigned char *d = to + half, *s = from;
            size_t n = half;

            __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
        }
#else
        memcpy(to + half, from, half);
#endif
        must(memcmp(a, b + half, half) == 0);
        must(memcmp(b, a + half, half) == 0);
        must_rc(xend(), COMMITTED);
    }
    env_detach();
}
END_TEST

START_TEST(hints_and_queries_know_aliases)
{
    uint64_t *a = open_variant(_i, 2), *b = env_map_at(0, 2);
    int fd = open("plain", O_RDWR | O_CREAT, 0666);

    must(fd >= 0 && pwrite(fd, "12345678", 8, 0) == 8);
    must_ok(xbegin());
    must_ok(setPageAccess(a, READ));
    must_ok(setPageAccess(b, READ_WRITE));
    must_eq(pread(fd, b, 8, 0), 8);
    must_eq(*a, UINT64_C(0x3837363534333231));
    must_ok(setRangeAccess(a, 2 * env_page(), READ));
    must_eq(pwrite(fd, a, 16, 8), 16);
    must_ok(xbeginQuery());
    must_eq(*b, *a);
    must_ok(xendQuery());
    must_rc(xend(), COMMITTED);
    must_ok(xbeginQuery());
    must_eq(*a, *b);
    must_eq(*a, UINT64_C(0x3837363534333231));
    must_refuse(setPageAccess(a, READ_WRITE), XAC_EINQUERY);
    must_ok(xendQuery());
    close(fd);
    env_detach();
}
END_TEST

/* More scattered pages than there are islands, through two mappings that overlap. */
START_TEST(very_many_pages_through_two_mappings)
{
    const size_t n_pages = 60000, n_touched = 12000;
    uint64_t *a = open_variant(_i, n_pages);
    uint64_t *b = env_map_at(n_pages / 2, n_pages);
    uint64_t wrong = 0;

    for (uint64_t round = 1; round <= 3; round++) {
        must_ok(xbegin());
        for (size_t i = 0; i < n_touched; i++) {
            size_t page = i * 7919 % n_pages;
            uint64_t *here = env_cell(a, page);
            uint64_t *there = page < n_pages / 2 ? here : env_cell(b, page - n_pages / 2);

            wrong += *here != (round == 3 ? 2 : round - 1);
            if (i % 3 == 0)
                *here = round;
            else
                *there = round;
            wrong += *here != round || *there != round;
        }
        for (size_t i = 0; i < n_touched; i++)
            wrong += *env_cell(a, i * 7919 % n_pages) != round;
        if (round == 3)
            must_ok(xAbort());
        must_rc(xend(), round == 3 ? ABORTED : COMMITTED);
    }
    must_ok(xbeginQuery());
    for (size_t i = 0; i < n_pages; i++)
        wrong += *env_cell(b, i) != (i < n_pages / 2 ? *env_cell(a, n_pages / 2 + i) : 0);
    for (size_t i = 0; i < n_touched; i++)
        wrong += *env_cell(a, i * 7919 % n_pages) != 2;
    must_ok(xendQuery());
    must_eq(wrong, 0);
    env_detach();
}
END_TEST

START_TEST(heap_in_a_part_of_a_file)
{
    uint64_t *a, *b, *all, *p;
    struct xac_heap_totals t;

    env_init(NONDURABLE);
    a = env_map_at(0, 16);
    b = env_map_at(64, 64); /* sparse: no heap reaches beyond its mapping */
    all = env_map_at(64, 64);
    env_put(env_cell(all, 40), 17);
    must_ok(xbegin());
    must(xMalloc(b, 64) == NULL && errno == EINVAL); /* not blank */
    *env_cell(all, 40) = 0;
    p = (uint64_t *)xMalloc(b, 64);
    must(p >= b && p < env_cell(b, 64));
    *p = 123;
    must_eq(*(p - b + all), 123);
    must(xMalloc(a, 64) != NULL);
    must_ok(xHeapCheck(b, &t, sizeof t));
    must_eq(t.allocations, 1);
    must_ok(xHeapCheck(all, &t, sizeof t));
    must_eq(t.allocations, 1);
    must_ok(xFree(all, p - b + all));
    must_ok(xHeapCheck(b, &t, sizeof t));
    must_eq(t.allocations, 0);
    must_rc(xend(), COMMITTED);
    /* A store of this transaction through another mapping counts as contents. */
    must_ok(xMunmapAt(all));
    all = env_map_at(200, 8);
    b = env_map_at(200, 8);
    must_ok(xbegin());
    *env_cell(all, 5) = 1;
    must(xRoot(b) == NULL && errno == EINVAL);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

/* ---- threads --------------------------------------------------------------------------- */

struct windows {
    uint64_t *a, *b;
    _Atomic uint64_t step;
};

/* view_both -- a thread's own views of overlapping mappings are aliases, too. */
static void *
view_both(void *arg)
{
    struct windows *w = (struct windows *)arg;
    uint64_t *a = (uint64_t *)xView(w->a), *b = (uint64_t *)xView(w->b);

    must(a != MAP_FAILED && b != MAP_FAILED);
    must_ok(xbegin());
    *env_cell(a, 1) = 5;
    must_eq(*env_cell(b, 0), 5);
    *env_cell(b, 0) = 6;
    must_eq(*env_cell(a, 1), 6);
    word_store(&w->step, 1);
    proc_await(&w->step, 2, 20);
    must_rc(xend(), COMMITTED);
    must_ok(xUnview(a));
    must_eq(env_get(env_cell(b, 0)), 6);
    must_ok(xUnview(b));
    return NULL;
}

START_TEST(threads_have_aliases_of_their_own)
{
    struct windows w = {.step = 0};
    pthread_t thread;

    env_let_overlap();
    env_init(NONDURABLE);
    w.a = env_map_at(0, 2);
    w.b = env_map_at(1, 2);
    must(pthread_create(&thread, NULL, view_both, &w) == 0);
    proc_await(&w.step, 1, 20);
    must_eq(env_get(env_cell(w.b, 0)), 0); /* not committed */
    must_ok(xbegin());
    *env_cell(w.b, 1) = 9;
    must_rc(xend(), COMMITTED);
    must_fail(xMremap(w.a, 5 * env_page(), XAC_MAY_MOVE), EBUSY);
    must_refuse(xMunmapAt(w.b), EBUSY);
    word_store(&w.step, 2);
    must(pthread_join(thread, NULL) == 0);
    must_eq(env_get(env_cell(w.a, 1)), 6);
    must(xMremap(w.a, 5 * env_page(), XAC_MAY_MOVE) != MAP_FAILED);
    must_ok(xMunmapAt(w.b));
    env_detach();
}
END_TEST

/* ---- fork ------------------------------------------------------------------------------ */

struct shared {
    _Atomic uint64_t step;
    _Atomic uint64_t address;
};

/* A child has none of the parent's stores, and its own are not the parent's. */
START_TEST(child_has_aliases_of_its_own)
{
    struct shared *s = (struct shared *)proc_shared(sizeof *s);
    uint64_t *a = open_variant(_i, 2), *b = env_map_at(0, 2);
    int status;
    pid_t pid;

    env_put(a, 1);
    must_ok(xbegin());
    *a = 50;
    must_eq(*b, 50);
    pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        must_rc(xend(), XAC_EFORKED);
        must_eq(env_get(b), 1);
        must_eq(env_get(a), 1);
        must_ok(xbegin());
        *env_cell(b, 1) = 8;
        must_eq(*env_cell(a, 1), 8);
        word_store(&s->step, 1);
        proc_await(&s->step, 2, 10);
        must_eq(*env_cell(a, 1), 8);
        must_ok(xAbort());
        must_rc(xend(), ABORTED);
        env_detach();
        _exit(0);
    }
    proc_await(&s->step, 1, 10);
    must_eq(*b, 50);
    *b = 51;
    must_eq(*a, 51);
    word_store(&s->step, 2);
    must(waitpid(pid, &status, 0) == pid && status == 0);
    /* Alone and staying mapped, it has read what nobody knows: the child revoked it. */
    must_rc(xend(), _i == 1 ? ABORTED : COMMITTED);
    must_eq(env_get(a), _i == 1 ? 1 : 51);
    must_eq(env_get(env_cell(b, 1)), 0);
    env_detach();
}
END_TEST

/* ---- several processes, different parts -------------------------------------------------- */

#define ACCOUNTS 12

/* move_about -- moves between pages that it maps as parts, some of them overlapping. */
static void
move_about(void *arg)
{
    uint64_t who = *(const uint64_t *)arg, seed = env_seed() + who;
    uint64_t *part[ACCOUNTS];

    env_init(NONDURABLE);
    for (size_t p = 0; p < ACCOUNTS; p++) { /* one page here, three there */
        size_t first = (p + who) % 3 == 0 && p > 0 ? p - 1 : p;

        part[p] = env_cell(env_map_at(first, first < p ? 3 : 1 + who % 2), p - first);
    }
    for (int i = 0; i < 700;) {
        uint64_t total = 0;
        int rc;

        must_ok(xbegin());
        for (size_t p = 0; p < ACCOUNTS; p++)
            total += *part[p];
        must_eq(total, ACCOUNTS * 1000);
        *part[rnd_below(&seed, ACCOUNTS)] -= 1;
        *part[rnd_below(&seed, ACCOUNTS)] += 1;
        rc = xend();
        must(rc == COMMITTED || rc == ABORTED);
        i += rc == COMMITTED;
    }
    env_detach();
}

START_TEST(processes_map_different_parts)
{
    static const uint64_t who[3] = {0, 1, 2};
    static const int policies[] = {XAC_POLICY_OLDEST_WINS, XAC_POLICY_OPTIMISTIC,
                                   XAC_POLICY_SERIAL};
    uint64_t *x, total = 0;
    pid_t child[3];

    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)policies[_i]));
    x = (uint64_t *)env_attach(NONDURABLE, ACCOUNTS);
    for (size_t p = 0; p < ACCOUNTS; p++)
        env_put(env_cell(x, p), 1000);
    env_detach();
    for (int i = 0; i < 3; i++)
        child[i] = proc_spawn(move_about, (void *)(uintptr_t)&who[i]);
    for (int i = 0; i < 3; i++)
        proc_join(child[i]);
    x = (uint64_t *)env_attach(NONDURABLE, ACCOUNTS);
    must_ok(xbeginQuery());
    for (size_t p = 0; p < ACCOUNTS; p++)
        total += *env_cell(x, p);
    must_ok(xendQuery());
    must_eq(total, ACCOUNTS * 1000);
    env_detach();
}
END_TEST

static void
write_until_killed(void *arg)
{
    struct shared *s = (struct shared *)arg;
    uint64_t *p;

    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS));
    env_init(NONDURABLE);
    p = env_map_at(9, 1);
    must_ok(xbegin());
    *p = 1;
    word_store(&s->step, 1);
    proc_sleep_us(60 * 1000 * 1000);
}

START_TEST(conflicts_name_the_place_in_the_file)
{
    struct shared *s = (struct shared *)proc_shared(sizeof *s);
    struct xac_conflict why;
    uint64_t *b;
    pid_t older;

    env_checking = XAC_CHECKING_STRICT; /* or a newcomer revokes (memory model, 34) */
    older = proc_spawn(write_until_killed, s);
    proc_await(&s->step, 1, 10);
    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS));
    env_init(NONDURABLE);
    (void)env_map_at(0, 3);
    b = env_map_at(7, 4);
    must_ok(xbegin());
    *env_cell(b, 2) = 2;
    must_rc(xend(), ABORTED);
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.file_offset, 9 * env_page());
    must(why.address == env_cell(b, 2));
    must_eq(why.other_pid, older);
    proc_kill(older);
    env_detach();
}
END_TEST

static void
touch_outside(void *arg)
{
    uint64_t *b;

    (void)arg;
    env_init(NONDURABLE);
    b = env_map_at(7, 4);
    *(volatile uint64_t *)(env_cell(b, 2) + 1) = 2;
}

START_TEST(stopped_program_is_told_the_place_in_the_file)
{
    char text[2048], want[64];
    int status = proc_capture(touch_outside, NULL, text, sizeof text);

    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    snprintf(want, sizeof want, "offset %zu ", 9 * env_page() + 8);
    if (strstr(text, want) == NULL)
        env_fail(__FILE__, __LINE__, "\"%s\" not in: %s", want, text);
}
END_TEST

/* ---- addresses --------------------------------------------------------------------------- */

static void
map_and_tell(void *arg)
{
    struct shared *s = (struct shared *)arg;
    uint64_t *a;

    env_init(DURABLE);
    a = (uint64_t *)xMmapAt(ENV_FILE, 8 * env_page(), 8 * env_page(), XAC_SAME_ADDRESS);
    must(a != MAP_FAILED);
    word_store(&s->address, (uint64_t)(uintptr_t)a);
    env_put(env_cell(a, 1), (uint64_t)(uintptr_t)env_cell(a, 3));
    env_put(env_cell(a, 3), 333);
    env_detach();
}

/* Pointers hold whichever part is mapped. */
static void
follow_pointer(void *arg)
{
    struct shared *s = (struct shared *)arg;
    uint64_t *a = (uint64_t *)(uintptr_t)word_load(&s->address), *p;

    env_init(DURABLE);
    p = (uint64_t *)xMmapAt(ENV_FILE, 9 * env_page(), env_page(), XAC_SAME_ADDRESS);
    must(p == env_cell(a, 1));
    must((uint64_t *)xMmapAt(ENV_FILE, 10 * env_page(), 6 * env_page(), XAC_SAME_ADDRESS)
         == env_cell(a, 2));
    must(xMmapAt(ENV_FILE, 0, 8 * env_page(), XAC_SAME_ADDRESS)
         == (void *)((unsigned char *)a - 8 * env_page()));
    must_ok(xbeginQuery());
    must_eq(*(uint64_t *)(uintptr_t)*p, 333);
    must_ok(xendQuery());
    /* It cannot be there twice. */
    must_fail(xMmapAt(ENV_FILE, 9 * env_page(), env_page(), XAC_SAME_ADDRESS),
              EADDRINUSE);
    must(strstr(xac_last_error(), ENV_FILE) != NULL);
    must(env_map_at(9, 1) != p);
    env_detach();
}

static void
find_taken(void *arg)
{
    struct shared *s = (struct shared *)arg;
    unsigned char *wanted = (unsigned char *)(uintptr_t)word_load(&s->address);
    int fd = open("squatter", O_RDWR | O_CREAT, 0666);
    struct image *before;

    must(fd >= 0);
    must(mmap(wanted + 7 * env_page(), env_page(), PROT_NONE,
              MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0)
         == wanted + 7 * env_page());
    env_init(DURABLE);
    before = image_take(".");
    must_fail(xMmapAt(ENV_FILE, 8 * env_page(), 8 * env_page(), XAC_SAME_ADDRESS),
              EADDRINUSE);
    must(strstr(xac_last_error(), "squatter") != NULL);
    must_unchanged(before, ".");
    image_free(before);
    must(xMmapAt(ENV_FILE, 8 * env_page(), 7 * env_page(), XAC_SAME_ADDRESS) == wanted);
    must(xMmapAt(ENV_FILE, 15 * env_page(), env_page(), 0) != MAP_FAILED);
    close(fd);
    env_detach();
}

START_TEST(same_address_or_not_at_all)
{
    struct shared *s = (struct shared *)proc_shared(sizeof *s);

    proc_run(map_and_tell, s);
    proc_run(find_taken, s);
    proc_run(follow_pointer, s);
}
END_TEST

/* A file gets addresses that belong to no other one, mapped here or not. */
START_TEST(large_files_do_not_take_each_others_addresses)
{
    enum {
        FILES = 12
    };
    const uint64_t size = (uint64_t)1 << 42;
    uint64_t from[FILES];
    char name[16];

    for (int i = 0; i < FILES; i++) {
        void *p;

        env_init(NONDURABLE); /* a run each: nothing else is mapped */
        snprintf(name, sizeof name, "large%d", i);
        p = xMmapAt(name, 0, i % 3 == 0 ? size : env_page(), XAC_SAME_ADDRESS);
        if (p == MAP_FAILED)
            env_fail(__FILE__, __LINE__, "%s: %s", name, xac_last_error());
        from[i] = (uint64_t)(uintptr_t)p;
        env_detach();
    }
    env_init(NONDURABLE); /* and all together */
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "large%d", i);
        must(xMmapAt(name, 0, i % 3 == 0 ? size : env_page(), XAC_SAME_ADDRESS)
             == (void *)(uintptr_t)from[i]);
    }
    env_detach();
}
END_TEST

static Suite *
map_suite(void)
{
    Suite *s = suite_create("map");
    TCase *tc = env_tcase(s, "parts", 60);

    tcase_add_test(tc, part_holds_the_bytes_of_its_place);
    tcase_add_test(tc, arguments_are_checked);
    tcase_add_test(tc, conflicts_name_the_place_in_the_file);
    tcase_add_test(tc, stopped_program_is_told_the_place_in_the_file);
    tcase_add_test(tc, heap_in_a_part_of_a_file);
    tcase_add_loop_test(tc, processes_map_different_parts, 0, 3);
    tc = env_tcase(s, "aliases", 120);
    tcase_add_loop_test(tc, store_through_one_is_seen_through_the_other, 0, VARIANTS);
    tcase_add_loop_test(tc, abort_restores_all_mappings, 0, VARIANTS);
    tcase_add_loop_test(tc, copy_from_a_page_to_itself, 0, VARIANTS);
    tcase_add_loop_test(tc, hints_and_queries_know_aliases, 0, VARIANTS);
    tcase_add_loop_test(tc, very_many_pages_through_two_mappings, 0, VARIANTS);
    tcase_add_loop_test(tc, child_has_aliases_of_its_own, 0, 2);
    tcase_add_test(tc, threads_have_aliases_of_their_own);
    tc = env_tcase(s, "addresses", 60);
    tcase_add_test(tc, same_address_or_not_at_all);
    tcase_add_test(tc, large_files_do_not_take_each_others_addresses);
    return s;
}

int
main(void)
{
    return env_main(map_suite());
}
