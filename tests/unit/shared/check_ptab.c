/* SPDX-License-Identifier: MIT */
/*
 * check_ptab.c -- the page table: every page number has an entry of its own, wherever it
 * lies, whichever process makes it first.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "tests/common/sysfault.h"
#include "shared/ptab.h"

#define RESERVE ((size_t)4 << 30)

struct head {
    struct xac_shm_head shm;
    _Atomic uint64_t root[2];
};

static struct xac_shm shm;
static struct head *head;

static void
map_region(bool is_new)
{
    int fd = open("region", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    must(fd >= 0);
    must_eq(is_new ? xac_shm_create(&shm, fd, sizeof(struct head), RESERVE)
                   : xac_shm_attach(&shm, fd, RESERVE),
            0);
    head = (struct head *)(void *)shm.base;
}

static void
make_region(void)
{
    map_region(true);
}

static uint64_t
find(uint32_t file, uint64_t page_no)
{
    struct xac_page *p = xac_ptab_page(&shm, &head->root[file - 1], file, page_no);
    uint64_t id;

    if (p == NULL)
        return 0;
    id = atomic_load_explicit(&p->id, memory_order_relaxed);
    must_eq(xac_page_file(id), file);
    must_eq(xac_page_no(id), page_no);
    return xac_shm_offset(&shm, p);
}

static int
by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* must_stand_apart -- no two of n entries overlap. */
static void
must_stand_apart(const uint64_t *at, size_t n)
{
    uint64_t *sorted = malloc(n * sizeof *sorted);

    must(sorted != NULL);
    memcpy(sorted, at, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    for (size_t i = 1; i < n; i++)
        must(sorted[i] >= sorted[i - 1] + sizeof(struct xac_page));
    free(sorted);
}

START_TEST(keep_far_apart_pages_apart)
{
    static uint64_t at[4 * XAC_PAGE_NO_BITS];
    size_t n = 0;

    for (unsigned bit = 0; bit < XAC_PAGE_NO_BITS; bit++) {
        at[n++] = find(1, UINT64_C(1) << bit);
        at[n++] = find(2, UINT64_C(1) << bit);
        if (bit > 1)
            at[n++] = find(1, (UINT64_C(1) << bit) + 1);
        if (bit > 2)
            at[n++] = find(1, (UINT64_C(1) << bit) - 1);
    }
    at[n++] = find(1, 0);
    at[n++] = find(2, 0);
    at[n++] = find(1, XAC_PAGE_NO_MAX);
    must_stand_apart(at, n);
    must_eq(find(1, XAC_PAGE_NO_MAX), at[n - 1]);
    must_eq(find(2, 0), at[n - 2]);
    must_eq(find(1, 0), at[n - 3]);
}
END_TEST

START_TEST(find_random_pages_again)
{
    static uint64_t page[20000], at[20000];
    uint64_t seed = env_seed();

    /* Dense and sparse; the same number may come twice. */
    for (size_t i = 0; i < 20000; i++) {
        page[i] = i < 10000 ? rnd_below(&seed, 5000)
                            : rnd_below(&seed, UINT64_C(1) << rnd_below(&seed, 25));
        at[i] = find(1, page[i]);
        must(at[i] != 0);
    }
    for (size_t i = 0; i < 20000; i++)
        must_eq(find(1, page[i]), at[i]);
}
END_TEST

#define RACE_PAGES 3000u
static uint64_t *found; /* [process][page] */

static void
race(void *arg)
{
    uint64_t who = *(uint64_t *)arg;

    map_region(false);
    for (uint64_t i = 0; i < RACE_PAGES; i++)
        found[who * RACE_PAGES + i] = find(1, i * 977 % 100003 << (i % 3 * 6));
}

START_TEST(agree_when_many_make_the_same)
{
    static uint64_t number[4] = {0, 1, 2, 3};
    pid_t pid[4];

    found = proc_shared(4 * RACE_PAGES * sizeof *found);
    for (int i = 0; i < 4; i++)
        pid[i] = proc_spawn(race, &number[i]);
    for (int i = 0; i < 4; i++)
        proc_join(pid[i]);
    for (uint64_t i = 0; i < 4 * RACE_PAGES; i++)
        must_eq(found[i], found[i % RACE_PAGES]);
}
END_TEST

#define GROW_ROUNDS 200

static _Atomic uint64_t n_grown;

/* grow -- one tree after the other, leaf by leaf. */
static void *
grow(void *arg)
{
    for (int round = 0; round < GROW_ROUNDS; round++) {
        atomic_store_explicit(&head->root[0], 0, memory_order_release);
        for (uint64_t i = 0; i < 60; i++)
            must(find(1, i * XAC_PTAB_LEAF_PAGES) != 0);
    }
    word_store(&n_grown, 1);
    return arg;
}

START_TEST(is_sound_while_it_grows)
{
    pthread_t thread;

    must(pthread_create(&thread, NULL, grow, NULL) == 0);
    while (word_load(&n_grown) == 0)
        xac_ptab_assert(&shm, &head->root[0], 1);
    must(pthread_join(thread, NULL) == 0);
}
END_TEST

START_TEST(fail_cleanly_without_room)
{
    uint64_t n = 0;

    sysfault_arm(SYSFAULT_FAIL_ALL, SYSFAULT_GROW, 1, ENOSPC);
    while (find(1, n << 16) != 0)
        n++;
    must(n > 10);
    must_eq(find(1, n << 16), 0);
    sysfault_disarm();
    must(find(1, n << 16) != 0);
    must(find(1, 0) != 0);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("ptab");
    TCase *tc = env_tcase(s, "ptab", 60);

    tcase_add_checked_fixture(tc, make_region, NULL);
    tcase_add_test(tc, keep_far_apart_pages_apart);
    tcase_add_test(tc, find_random_pages_again);
    tcase_add_test(tc, agree_when_many_make_the_same);
    tcase_add_test(tc, is_sound_while_it_grows);
    tcase_add_test(tc, fail_cleanly_without_room);
    return env_main(s);
}
