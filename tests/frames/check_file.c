/* SPDX-License-Identifier: MIT */
/*
 * check_file.c -- pages of a pool in a file: past the page cache or not, many at once by
 * io_uring or one by one; calls that do a part or fail.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "../common/sysfault.h"
#include "base/sys.h"
#include "store.h"

#define PAGE_BYTES 4096
#define N_PAGES    200
#define PATH       "pages"

static struct xac_frames_file *file;
static struct xac_frames *pool;
static struct xac_frames_user *user;

static void
pool_make(unsigned flags, uint32_t n_frames)
{
    struct xac_frames_config c = {.n_pages = N_PAGES,
                                  .n_frames = n_frames,
                                  .n_users = 8,
                                  .page_bytes = PAGE_BYTES,
                                  .full_tries = 5};
    struct xac_frames_io io = {0};

    must_ok(xac_frames_file_open(PATH, PAGE_BYTES, flags, &io, &file));
    must_ok(xac_frames_create(&c, NULL, &io, &pool));
    must_ok(xac_frames_join(pool, &user));
}

static void
pool_end(void)
{
    must_be_whole(pool, 0);
    xac_frames_leave(user);
    xac_frames_close(pool);
    xac_frames_file_close(file);
}

static struct xac_frames_stats
stats(void)
{
    struct xac_frames_stats s;

    xac_frames_get_stats(pool, &s, sizeof s);
    return s;
}

static void
change(uint64_t page, uint64_t value)
{
    struct xac_frames_pin pin;

    must_ok(xac_frames_fix(user, page, 0, &pin));
    ((uint64_t *)pin.data)[PAGE_BYTES / 8 - 1] = ((uint64_t *)pin.data)[0] = value;
    xac_frames_mark_dirty(user, &pin);
    xac_frames_unfix(user, &pin);
}

static void
must_hold(const struct xac_frames_pin *pin, uint64_t value)
{
    must_eq(((uint64_t *)pin->data)[0], value);
    must_eq(((uint64_t *)pin->data)[PAGE_BYTES / 8 - 1], value);
}

static const unsigned all_flags[] = {0, XAC_FRAMES_DIRECT, XAC_FRAMES_NO_URING,
                                     XAC_FRAMES_DIRECT | XAC_FRAMES_NO_URING};

START_TEST(keep_pages_in_a_file)
{
    for (int k = 0; k < 4; k++) {
        struct xac_frames_pin pin;

        (void)unlink(PATH);
        pool_make(all_flags[k], 16);
        for (uint64_t page = 0; page < N_PAGES; page += 2)
            change(page, page + 1);
        must_ok(xac_frames_flush_all(user));
        must_ok(xac_frames_file_sync(file));
        pool_end();
        must_eq(file_u64(PATH, 42 * PAGE_BYTES), 43);
        pool_make(all_flags[k], 16);
        for (uint64_t page = 0; page < N_PAGES; page++) {
            must_ok(xac_frames_fix(user, page, 0, &pin));
            must_hold(&pin,
                      page % 2 == 0 ? page + 1 : 0); /* the last is behind the end */
            xac_frames_unfix(user, &pin);
        }
        printf("flags %u: in effect %u\n", all_flags[k], xac_frames_file_flags(file));
        must(k < 2 || (xac_frames_file_flags(file) & XAC_FRAMES_NO_URING) != 0);
        pool_end();
    }
}
END_TEST

START_TEST(fix_many_at_once)
{
    for (int k = 0; k < 4; k++) {
        struct xac_frames_pin pins[XAC_FRAMES_MANY];
        uint64_t pages[XAC_FRAMES_MANY];

        pool_make(all_flags[k], 100);
        for (uint64_t page = 0; page < N_PAGES; page++)
            change(page, 1000 * (uint64_t)k + page);
        must_ok(xac_frames_flush_all(user));
        pool_end();
        pool_make(all_flags[k], 100);
        for (uint64_t round = 0; round < 10; round++) {
            uint64_t reads = stats().reads;

            for (unsigned i = 0; i < XAC_FRAMES_MANY; i++)
                pages[i] = (round * 37 + 3 * i) % N_PAGES;
            must_ok(xac_frames_fix_many(user, XAC_FRAMES_MANY, pages, pins));
            must(round > 0 || stats().reads - reads == XAC_FRAMES_MANY);
            for (unsigned i = 0; i < XAC_FRAMES_MANY; i++) {
                must_hold(&pins[i], 1000 * (uint64_t)k + pages[i]);
                xac_frames_unfix(user, &pins[i]);
            }
        }
        must_eq(stats().hits + stats().misses, 10 * XAC_FRAMES_MANY);
        must_eq(stats().reads, stats().misses);
        pages[0] = N_PAGES;
        must_eq(xac_frames_fix_many(user, 1, pages, pins), EINVAL);
        must_eq(xac_frames_fix_many(user, 0, pages, pins), EINVAL);
        must_eq(xac_frames_fix_many(user, XAC_FRAMES_MANY + 1, pages, pins), EINVAL);
        pool_end();
    }
}
END_TEST

START_TEST(fix_none_if_not_all)
{
    struct xac_frames_pin pins[20], one;
    uint64_t pages[20];

    pool_make(0, 16);
    for (unsigned i = 0; i < 20; i++)
        pages[i] = i;
    must_eq(xac_frames_fix_many(user, 20, pages, pins), ENOBUFS);
    must_be_whole(pool, 0);
    must_ok(xac_frames_fix(user, 19, 0, &one));
    must_eq(xac_frames_fix_many(user, 16, pages, pins), ENOBUFS);
    must_be_whole(pool, 1);
    xac_frames_unfix(user, &one);
    pages[7] = N_PAGES + 1;
    must_eq(xac_frames_fix_many(user, 10, pages, pins), EINVAL);
    must_be_whole(pool, 0);
    must_ok(xac_frames_fix_many(user, 7, pages, pins));
    must_be_whole(pool, 7);
    for (unsigned i = 0; i < 7; i++)
        xac_frames_unfix(user, &pins[i]);
    pool_end();
}
END_TEST

/* ---- Threads that fix many, with the ring and without -------------------------------- */

static void *
many_run(void *arg)
{
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    struct xac_frames_user *mine;

    must_ok(xac_frames_join(pool, &mine));
    for (int round = 0; round < 300; round++) {
        struct xac_frames_pin pins[8];
        uint64_t pages[8], first = mix(&seed) % (N_PAGES - 8);
        int rc;

        for (unsigned i = 0; i < 8; i++)
            pages[i] = first + i;
        do
            rc = xac_frames_fix_many(mine, 8, pages, pins);
        while (rc == ENOBUFS);
        must_ok(rc);
        for (unsigned i = 0; i < 8; i++) {
            must_hold(&pins[i], pages[i] + 5);
            xac_frames_unfix(mine, &pins[i]);
        }
    }
    xac_frames_leave(mine);
    return NULL;
}

START_TEST(fix_many_by_threads)
{
    pthread_t threads[4];

    pool_make(0, 40);
    for (uint64_t page = 0; page < N_PAGES; page++)
        change(page, page + 5);
    for (uintptr_t i = 0; i < 4; i++)
        must_eq(pthread_create(&threads[i], NULL, many_run, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        must_eq(pthread_join(threads[i], NULL), 0);
    pool_end();
}
END_TEST

/* Meanwhile another user reads each of the pages for itself, and is first. */
static struct xac_frames_user *rival;

static int
number_read(void *arg, uint64_t page, void *data)
{
    (void)arg;
    memcpy(data, &page, sizeof page);
    return 0;
}

static int
number_write(void *arg, uint64_t page, const void *data)
{
    (void)arg, (void)page, (void)data;
    return 0;
}

static void
number_read_late(void *arg, unsigned n, const uint64_t *pages, void *const *datas,
                 int *rcs)
{
    for (unsigned i = 0; i < n; i++) {
        struct xac_frames_pin pin;

        must_ok(xac_frames_fix(rival, pages[i], 0, &pin));
        xac_frames_unfix(rival, &pin);
        rcs[i] = number_read(arg, pages[i], datas[i]);
    }
}

START_TEST(use_what_others_have_read)
{
    struct xac_frames_config c = {.n_pages = 50,
                                  .n_frames = 8,
                                  .n_users = 2,
                                  .page_bytes = 64};
    struct xac_frames_io io = {.read = number_read,
                               .write = number_write,
                               .read_many = number_read_late};
    struct xac_frames_pin pins[8];
    uint64_t pages[8];

    must_ok(xac_frames_create(&c, NULL, &io, &pool));
    must_ok(xac_frames_join(pool, &user));
    must_ok(xac_frames_join(pool, &rival));
    for (uint64_t round = 0; round < 5; round++) {
        for (unsigned i = 0; i < 8; i++)
            pages[i] = 8 * round + i;
        must_ok(xac_frames_fix_many(user, 8, pages, pins));
        for (unsigned i = 0; i < 8; i++) {
            must_eq(*(uint64_t *)pins[i].data, pages[i]);
            xac_frames_unfix(user, &pins[i]);
        }
        must_be_whole(pool, 0);
        must_eq(stats().reads_duplicate, 8 * (round + 1));
    }
    xac_frames_leave(user);
    xac_frames_leave(rival);
    xac_frames_close(pool);
}
END_TEST

/* ---- Calls that do a part, or fail (N21) ---------------------------------------------- */

static ssize_t (*whole_pread)(int, void *, size_t, off_t);

static ssize_t
part_pread(int fd, void *data, size_t n, off_t at)
{
    return whole_pread(fd, data, n > 1000 ? 1000 : n, at);
}

static ssize_t
failing_pread(int fd, void *data, size_t n, off_t at)
{
    (void)fd, (void)data, (void)n, (void)at;
    errno = EIO;
    return -1;
}

START_TEST(survive_short_and_failed_calls)
{
    struct xac_frames_pin pin, pins[4];
    uint64_t pages[] = {20, 21, 22, 23};

    pool_make(XAC_FRAMES_NO_URING, 16);
    sysfault_arm(SYSFAULT_SHORT, SYSFAULT_DATA, 1, 0);
    for (uint64_t page = 0; page < 40; page++)
        change(page, page + 9);
    must_ok(xac_frames_flush_all(user));
    sysfault_disarm();
    for (uint64_t page = 0; page < 40; page++)
        must_eq(file_u64(PATH, page * PAGE_BYTES + PAGE_BYTES - 8), page + 9);
    whole_pread = xac_sys.pread;
    xac_sys.pread = part_pread;
    for (uint64_t page = 0; page < 20; page++) {
        must_ok(xac_frames_fix(user, page, 0, &pin));
        must_hold(&pin, page + 9);
        xac_frames_unfix(user, &pin);
    }
    xac_sys.pread = failing_pread;
    must_eq(xac_frames_fix(user, 30, 0, &pin), EIO);
    must_eq(xac_frames_fix_many(user, 4, pages, pins), EIO);
    must_be_whole(pool, 0);
    xac_sys.pread = whole_pread;
    must_ok(xac_frames_fix_many(user, 4, pages, pins));
    for (int i = 0; i < 4; i++) {
        must_hold(&pins[i], pages[i] + 9);
        xac_frames_unfix(user, &pins[i]);
    }
    change(30, 77);
    sysfault_arm(SYSFAULT_FAIL_ALL, SYSFAULT_DATA, 1, ENOSPC);
    must_eq(xac_frames_flush(user, 30), ENOSPC);
    must_eq(xac_frames_flush_all(user), ENOSPC);
    sysfault_disarm();
    must_eq(file_u64(PATH, 30 * PAGE_BYTES), 39);
    must_ok(xac_frames_flush(user, 30));
    must_eq(file_u64(PATH, 30 * PAGE_BYTES), 77);
    sysfault_arm(SYSFAULT_FAIL_ALL, SYSFAULT_SYNCS, 1, EIO);
    must_eq(xac_frames_file_sync(file), EIO);
    sysfault_disarm();
    pool_end();
}
END_TEST

/* A real file system without room: no page is lost, and all come through when there is room. */
START_TEST(survive_a_full_device)
{
    struct xac_frames_io io = {0};
    struct xac_frames_file *full;
    char page[PAGE_BYTES] = {1};

    must_ok(xac_frames_file_open("/dev/full", PAGE_BYTES, 0, &io, &full));
    must_eq(io.write(io.arg, 0, page), ENOSPC);
    xac_frames_file_close(full);
}
END_TEST

START_TEST(refuse_files_that_cannot_be)
{
    struct xac_frames_io io = {0};

    must_eq(xac_frames_file_open("no/such/dir", 4096, 0, &io, &file), ENOENT);
    must_eq(xac_frames_file_open(PATH, 0, 0, &io, &file), EINVAL);
    must_eq(xac_frames_file_open(PATH, 512, XAC_FRAMES_DIRECT, &io, &file), EINVAL);
    must_eq(xac_frames_file_open(PATH, 4096, 4, &io, &file), EINVAL);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("pages in a file");
    TCase *t = env_tcase(s, "file", 120);

    tcase_add_test(t, keep_pages_in_a_file);
    tcase_add_test(t, fix_many_at_once);
    tcase_add_test(t, fix_none_if_not_all);
    tcase_add_test(t, fix_many_by_threads);
    tcase_add_test(t, use_what_others_have_read);
    tcase_add_test(t, survive_short_and_failed_calls);
    tcase_add_test(t, survive_a_full_device);
    tcase_add_test(t, refuse_files_that_cannot_be);
    return env_main(s);
}
