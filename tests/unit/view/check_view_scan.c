/* SPDX-License-Identifier: MIT */
/*
 * check_view_scan.c -- a view that is scanned for stores gets a savepoint while a helper stores to it.
 *
 * GOAL    A store that comes while the view stops being scanned is before the savepoint or behind it;
 *         it is in what is committed, and a roll-back undoes it if it was behind.
 * METHOD  The last scan is over, and the view no longer known to userfaultfd; the system call is held
 *         up there until the helper has stored, or for HELD_MS: if the view cannot be stored to, the
 *         helper waits for the savepoint to be taken.
 */
#include <config.h>

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <xac_savepoint.h>
#include <xac_team.h>

#include "base/sys.h"
#include "tests/common/env.h"

#define PAGES   16u
#define HELD_MS 200
#define CELL    5u /* the page that the helper stores to */

static uint64_t *x;
static uint64_t txn;
static int (*real_ioctl)(int fd, unsigned long request, void *arg);
static _Atomic uint64_t has_joined, is_armed, is_held, is_stored;

static int
held_ioctl(int fd, unsigned long request, void *arg)
{
    int rc = real_ioctl(fd, request, arg);

    if (request == (unsigned long)UFFDIO_UNREGISTER && word_load(&is_armed) != 0) {
        word_store(&is_armed, 0);
        word_store(&is_held, 1);
        for (int ms = 0; ms < HELD_MS && word_load(&is_stored) == 0; ms++)
            proc_sleep_us(1000);
    }
    return rc;
}

static void
setup(void)
{
    env_setup();
    env_without_frames("scans are for views without them");
    must(setenv("XAC_ENGINE", "scan", 1) == 0);
    env_checking = XAC_CHECKING_FAST;
    must_ok(xac_set_option(XAC_OPT_POLICY, XAC_POLICY_SERIAL));
    x = (uint64_t *)env_attach(XAC_NONDURABLE, PAGES);
    for (int i = 0; i < 4; i++) { /* its views stay, and then they are scanned */
        must_ok(xac_begin());
        *env_cell(x, 1) = 1;
        must_rc(xac_end(), XAC_COMMITTED);
    }
    real_ioctl = xac_sys.ioctl;
    xac_sys.ioctl = held_ioctl;
}

static void *
help(void *arg)
{
    (void)arg;
    must_ok(xac_join(txn));
    word_store(&has_joined, 1);
    proc_await(&is_held, 1, 20);
    *(volatile uint64_t *)env_cell(x, CELL) = 7;
    word_store(&is_stored, 1);
    must_ok(xac_leave());
    return NULL;
}

/* save_beside -- a savepoint while the helper stores; ret the savepoint. */
static uint64_t
save_beside(void)
{
    pthread_t thread;
    uint64_t mark;

    must_ok(xac_team(&txn));
    must_eq(pthread_create(&thread, NULL, help, NULL), 0);
    proc_await(&has_joined, 1, 20);
    word_store(&is_armed, 1);
    must((mark = xac_savepoint()) != 0);
    must_eq(word_load(&is_held), 1); /* the view was scanned */
    must_eq(pthread_join(thread, NULL), 0);
    must_eq(*(volatile uint64_t *)env_cell(x, CELL), 7);
    return mark;
}

/* begin -- and store to every second page. */
static void
begin(void)
{
    must_ok(xac_begin());
    for (size_t page = 0; page < PAGES; page += 2)
        *env_cell(x, page) = 1;
}

static void
see_seven(void *arg)
{
    uint64_t *base = (uint64_t *)env_attach(XAC_NONDURABLE, PAGES);

    (void)arg;
    must_eq(env_get(env_cell(base, CELL)), 7);
    env_detach();
}

START_TEST(store_beside_is_committed)
{
    begin();
    must_ok(xac_release(save_beside()));
    must_rc(xac_end(), XAC_COMMITTED);
    must_eq(env_get(env_cell(x, CELL)), 7);
    env_detach();
    proc_run(see_seven, NULL);
}
END_TEST

START_TEST(store_beside_is_rolled_back)
{
    uint64_t mark;

    begin();
    mark = save_beside();
    must_ok(xac_rollback_to(mark));
    must_eq(*(volatile uint64_t *)env_cell(x, CELL), 0);
    must_rc(xac_end(), XAC_COMMITTED);
    must_eq(env_get(env_cell(x, CELL)), 0);
    must_eq(env_get(env_cell(x, 4)), 1);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("view_scan");
    TCase *tc = env_tcase_with(s, "scan", 60, setup);

    tcase_add_test(tc, store_beside_is_committed);
    tcase_add_test(tc, store_beside_is_rolled_back);
    return env_main(s);
}
