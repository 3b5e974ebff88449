/* SPDX-License-Identifier: MIT */
/*
 * check_shm.c -- the allocator of the control region and its growable arrays, by many
 * processes and threads at once, with deaths and without room.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "tests/common/sysfault.h"
#include "base/sys.h"
#include "shared/shm.h"

#define RESERVE ((size_t)2 << 30)

struct head {
    struct xac_shm_head shm;
    struct xac_array array;
    _Atomic uint64_t total; /* bytes handed out and not given back */
};

static struct xac_shm shm;
static struct head *head;

static void
make_region(void)
{
    int fd = open("region", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    must(fd >= 0);
    must_eq(xac_shm_create(&shm, fd, sizeof(struct head), RESERVE), 0);
    head = (struct head *)(void *)shm.base;
}

/* attach_again -- as a process that joins: a mapping of its own. */
static void
attach_again(void)
{
    int fd = open("region", O_RDWR | O_CLOEXEC);

    must(fd >= 0);
    must_eq(xac_shm_attach(&shm, fd, RESERVE), 0);
    head = (struct head *)(void *)shm.base;
}

static uint64_t
brk_now(void)
{
    return atomic_load_explicit(&head->shm.brk, memory_order_relaxed);
}

/* ---- blocks ----------------------------------------------------------------------------- */

#define HELD 48

struct held {
    uint64_t at;
    size_t n;
};

static void
fill(struct held h, uint64_t mark)
{
    uint64_t *p = xac_shm_at(&shm, h.at);

    for (size_t i = 0; i < h.n / 8; i++)
        p[i] = mark;
}

static void
must_be_all(struct held h, uint64_t mark)
{
    const uint64_t *p = xac_shm_at(&shm, h.at);

    for (size_t i = 0; i < h.n / 8; i++) {
        if (p[i] != mark)
            env_fail(__FILE__, __LINE__, "block of %zu bytes given out twice", h.n);
    }
}

/* churn -- allocate and free at random; nobody else writes into what is ours. */
static void *
churn(void *arg)
{
    uint64_t seed = env_seed() + *(uint64_t *)arg, mark = ~seed;
    struct held held[HELD] = {{0, 0}};

    for (int i = 0; i < 12000; i++) {
        struct held *h = &held[rnd_below(&seed, HELD)];

        if (h->at != 0) {
            must_be_all(*h, mark);
            xac_shm_free(&shm, h->at, h->n);
            h->at = 0;
            continue;
        }
        h->n = 8 * (1 + rnd_below(&seed, UINT64_C(16) << rnd_below(&seed, 6)));
        h->at = xac_shm_alloc(&shm, h->n);
        must(h->at != 0 && h->at % 64 == 0 && h->at >= sizeof(struct head));
        must_be_all(*h, 0);
        fill(*h, mark);
    }
    for (int i = 0; i < HELD; i++) {
        if (held[i].at != 0)
            xac_shm_free(&shm, held[i].at, held[i].n);
    }
    return NULL;
}

static void
churn_in_threads(void *arg)
{
    uint64_t number[2] = {*(uint64_t *)arg * 2, *(uint64_t *)arg * 2 + 1};
    pthread_t t;

    attach_again();
    must(pthread_create(&t, NULL, churn, &number[0]) == 0);
    (void)churn(&number[1]);
    must(pthread_join(t, NULL) == 0);
}

START_TEST(give_each_block_to_one)
{
    static uint64_t number[3] = {1, 2, 3};
    struct stat st;
    pid_t pid[3];

    for (int i = 0; i < 3; i++)
        pid[i] = proc_spawn(churn_in_threads, &number[i]);
    for (int i = 0; i < 3; i++)
        proc_join(pid[i]);
    must(fstat(shm.fd, &st) == 0);
    must((uint64_t)st.st_size >= xac_shm_size(&shm));
    must(brk_now() <= xac_shm_size(&shm));
}
END_TEST

START_TEST(go_on_when_others_are_killed)
{
    static uint64_t number[4] = {1, 2, 3, 4};
    uint64_t seed = env_seed();

    for (int round = 0; round < 10; round++) {
        pid_t pid[3];

        for (int i = 0; i < 3; i++)
            pid[i] = proc_spawn(churn_in_threads, &number[i]);
        proc_sleep_us(rnd_below(&seed, 20000));
        proc_kill(pid[0]);
        proc_kill(pid[1]);
        proc_join(pid[2]);
    }
}
END_TEST

START_TEST(use_freed_blocks_again)
{
    static const size_t sizes[] = {1, 64, 65, 4096, 4097, 100000, (size_t)3 << 20};
    uint64_t end;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        xac_shm_free(&shm, xac_shm_alloc(&shm, sizes[i]), sizes[i]);
    end = brk_now();
    for (int n = 0; n < 3000; n++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] - (n > 5); i++) {
            uint64_t at = xac_shm_alloc(&shm, sizes[i]);

            must(at != 0);
            must_eq(*(unsigned char *)xac_shm_at(&shm, at), 0);
            *(unsigned char *)xac_shm_at(&shm, at) = 1;
            xac_shm_free(&shm, at, sizes[i]);
        }
    }
    must_eq(brk_now(), end);
}
END_TEST

/*
 * What a process has seen of a list before it was stopped must not be right again by chance: not
 * after a million changes either.  Each change moves the tag, so that only lists of as many
 * blocks, or of two more or less, can have the same one.
 */
START_TEST(list_is_never_the_same_after_a_million_changes)
{
    uint64_t first = xac_shm_alloc(&shm, 64), second = xac_shm_alloc(&shm, 64);
    uint64_t third = xac_shm_alloc(&shm, 64);
    _Atomic uint64_t *list = &head->shm.free[0];
    uint64_t seen, now;

    xac_shm_free(&shm, second, 64);
    xac_shm_free(&shm, first, 64); /* the stopped process reads: first, second is next */
    seen = atomic_load_explicit(list, memory_order_relaxed);
    must_eq(xac_shm_alloc(&shm, 64), first);
    must_eq(xac_shm_alloc(&shm, 64), second); /* no longer free */
    xac_shm_free(&shm, third, 64);
    xac_shm_free(&shm, first, 64);
    for (uint64_t n = 4; n < (UINT64_C(1) << 22); n++) {
        now = atomic_load_explicit(list, memory_order_relaxed);
        if (now == seen)
            env_fail(__FILE__, __LINE__, "the same after %llu changes",
                     (unsigned long long)n);
        if (n % 2 == 0)
            must_eq(xac_shm_alloc(&shm, 64), first);
        else
            xac_shm_free(&shm, first, 64);
    }
}
END_TEST

/* ---- no room ---------------------------------------------------------------------------- */

/* must_serve_small -- a small block is still to be had from what is backed. */
static void
must_serve_small(void)
{
    uint64_t at = xac_shm_alloc(&shm, 64);

    must(at != 0);
    memset(xac_shm_at(&shm, at), 1, 64);
}

START_TEST(serve_small_blocks_after_a_large_one_failed)
{
    sysfault_arm(SYSFAULT_FAIL_ALL, SYSFAULT_GROW, 1, ENOSPC);
    must_eq(xac_shm_alloc(&shm, (size_t)64 << 20), 0);
    must_serve_small();
    sysfault_disarm();
    must_serve_small();
    must(xac_shm_alloc(&shm, (size_t)64 << 20) != 0);
    /* More than there are addresses. */
    must_eq(xac_shm_alloc(&shm, RESERVE), 0);
    must_serve_small();
}
END_TEST

START_TEST(lose_no_room_by_failing)
{
    uint64_t before;

    while (sysfault_count() == 0) { /* to the end of what is backed */
        sysfault_arm(SYSFAULT_FAIL_ALL, SYSFAULT_GROW, 1, ENOSPC);
        (void)xac_shm_alloc(&shm, 8192);
    }
    before = brk_now();
    for (int i = 0; i < 100000; i++)
        must_eq(xac_shm_alloc(&shm, 8192), 0);
    must_eq(brk_now(), before);
    sysfault_disarm();
    must(xac_shm_alloc(&shm, 8192) != 0);
}
END_TEST

START_TEST(stay_within_the_limit_of_file_size)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)3 << 20, .rlim_max = RLIM_INFINITY};
    unsigned n = 0;

    must(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    while (n < 10000) {
        uint64_t at = xac_shm_alloc(&shm, 4096);

        if (at == 0)
            break;
        memset(xac_shm_at(&shm, at), 1, 4096);
        n++;
    }
    must(n > 200 && n < 800);
    limit.rlim_cur = RLIM_INFINITY;
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    must(xac_shm_alloc(&shm, 4096) != 0);
}
END_TEST

/* What the least of all participants can reach holds for all. */
START_TEST(grow_no_further_than_all_can_reach)
{
    struct xac_shm small;
    uint64_t at, last = 0;
    int fd = open("region", O_RDWR | O_CLOEXEC);

    must(fd >= 0);
    must_eq(xac_shm_attach(&small, fd, RESERVE / 2), 0);
    must_eq(xac_shm_fit(&small), 0);
    must_eq(xac_shm_alloc(&shm, RESERVE / 2), 0); /* there would be room, but for small */
    for (int i = 0; i < 10; i++) {
        at = xac_shm_alloc(&shm, (size_t)1 << 20);
        must(at != 0);
        last = at > last ? at : last;
    }
    *(uint64_t *)xac_shm_at(&shm, last) = 17;
    must_eq(*(uint64_t *)xac_shm_at(&small, last), 17);
    must_eq(xac_shm_limit(&shm, xac_shm_size(&shm) - ((uint64_t)1 << 20)), ENOMEM);
    must_eq(xac_shm_limit(&shm, xac_shm_size(&shm)), 0);
    while (xac_shm_alloc(&shm, (size_t)1 << 20) != 0)
        ;
    must_eq(xac_shm_alloc(&small, (size_t)1 << 20), 0);
    xac_shm_detach(&small);
    must_eq(xac_shm_limit(&shm, RESERVE), 0); /* it has gone */
    must(xac_shm_alloc(&shm, (size_t)1 << 20) != 0);
}
END_TEST

static int (*real_fallocate)(int fd, int mode, off_t offset, off_t length);
static int interruptions;

static int
interrupted_fallocate(int fd, int mode, off_t offset, off_t length)
{
    if (interruptions-- > 0) {
        errno = EINTR;
        return -1;
    }
    return real_fallocate(fd, mode, offset, length);
}

START_TEST(go_on_after_an_interrupted_growth)
{
    real_fallocate = xac_sys.fallocate;
    xac_sys.fallocate = interrupted_fallocate;
    interruptions = 3;
    must(xac_shm_alloc(&shm, (size_t)8 << 20) != 0);
    must(interruptions <= 0);
}
END_TEST

/* ---- arrays ----------------------------------------------------------------------------- */

#define ELEM 24u

static void
stand_apart(uint64_t n)
{
    for (uint64_t i = 1; i < n; i++) {
        const uint8_t *a = xac_array_at(&shm, &head->array, i - 1);
        const uint8_t *b = xac_array_at(&shm, &head->array, i);

        must(b >= a + ELEM || b + ELEM <= a);
    }
}

START_TEST(keep_elements_where_they_are)
{
    static uint64_t was[5000];

    xac_array_init(&head->array, ELEM, 4);
    for (uint64_t i = 0; i < 5000; i++) {
        must_eq(xac_array_reserve(&shm, &head->array, i), 0);
        was[i] = xac_shm_offset(&shm, xac_array_at(&shm, &head->array, i));
        memcpy(xac_array_at(&shm, &head->array, i), &i, sizeof i);
    }
    for (uint64_t i = 0; i < 5000; i++) {
        must_eq(xac_shm_offset(&shm, xac_array_at(&shm, &head->array, i)), was[i]);
        must(memcmp(xac_array_at(&shm, &head->array, i), &i, sizeof i) == 0);
    }
    stand_apart(5000);
    /* Far away, with nothing in between. */
    must_eq(xac_array_reserve(&shm, &head->array, 1000000), 0);
    must(xac_array_at(&shm, &head->array, 1000000) != NULL);
}
END_TEST

static void
add_to_array(void *arg)
{
    (void)arg;
    attach_again();
    for (uint64_t i = 0; i < 4000; i++) {
        _Atomic uint64_t *e;

        must_eq(xac_array_reserve(&shm, &head->array, i), 0);
        e = xac_array_at(&shm, &head->array, i);
        (void)atomic_fetch_add_explicit(e, 1, memory_order_relaxed);
    }
}

START_TEST(grow_arrays_by_racing_processes)
{
    pid_t pid[4];

    xac_array_init(&head->array, ELEM, 1);
    for (int i = 0; i < 4; i++)
        pid[i] = proc_spawn(add_to_array, NULL);
    for (int i = 0; i < 4; i++)
        proc_join(pid[i]);
    for (uint64_t i = 0; i < 4000; i++)
        must_eq(*(uint64_t *)xac_array_at(&shm, &head->array, i), 4);
    stand_apart(4000);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("shm");
    TCase *tc = env_tcase(s, "shm", 120);

    tcase_add_checked_fixture(tc, make_region, NULL);
    tcase_add_test(tc, give_each_block_to_one);
    tcase_add_test(tc, go_on_when_others_are_killed);
    tcase_add_test(tc, use_freed_blocks_again);
    tcase_add_test(tc, list_is_never_the_same_after_a_million_changes);
    tcase_add_test(tc, serve_small_blocks_after_a_large_one_failed);
    tcase_add_test(tc, lose_no_room_by_failing);
    tcase_add_test(tc, stay_within_the_limit_of_file_size);
    tcase_add_test(tc, grow_no_further_than_all_can_reach);
    tcase_add_test(tc, go_on_after_an_interrupted_growth);
    tcase_add_test(tc, keep_elements_where_they_are);
    tcase_add_test(tc, grow_arrays_by_racing_processes);
    return env_main(s);
}
