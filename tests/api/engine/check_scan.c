/* SPDX-License-Identifier: MIT */
/*
 * check_scan.c -- stores that do not trap, but are found by a scan of the page table.
 *
 * GOAL    While a participant is alone, large transactions stop trapping, and small ones begin
 *         again, by themselves; what was stored is committed or rolled back; stray
 *         stores stop the program; if a scan fails, nothing is committed and traps come back.
 * METHOD  counters; a model of the pages; children.  Where the kernel cannot scan, what is about
 *         traps says so and passes.  check_engine.c has XAC_ENGINE=scan among the others.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "visits.h"

#define PAGES 512

/* scans -- has the system got it?  Says so if not. */
static bool
scans(void)
{
    bool has;

    must(setenv("XAC_ENGINE", "scan", 1) == 0);
    env_init(NONDURABLE);
    has = env_stats().engine == XAC_ENGINE_SCAN;
    must(has || env_stats().engine_error != 0);
    must_ok(xShutdown());
    if (!has)
        printf("no asynchronous write-protection here\n");
    return has;
}

/* load_all -- so that all is there, and alone it stays. */
static void
load_all(uint64_t *base)
{
    must_ok(xbegin());
    for (uint64_t p = 0; p < PAGES; p++)
        (void)*(volatile uint64_t *)env_cell(base, p);
    must_eq(xend(), COMMITTED);
}

/* store -- every step-th page from the first on; ret what xend() said. */
static int
store(uint64_t *base, uint64_t first, uint64_t step, uint64_t value)
{
    must_ok(xbegin());
    for (uint64_t p = first; p < PAGES; p += step)
        *env_cell(base, p) = value;
    return xend();
}

/* must_hold -- every step-th page has that value, the others another one. */
static void
must_hold(uint64_t *base, uint64_t step, uint64_t value, uint64_t other)
{
    must_ok(xbeginQuery());
    for (uint64_t p = 0; p < PAGES; p++)
        must_eq(*env_cell(base, p), p % step == 0 ? value : other);
    must_ok(xendQuery());
}

START_TEST(large_transactions_stop_trapping)
{
    uint64_t before = 0, after, n = 0, *base;

    if (!scans())
        return;
    must(unsetenv("XAC_ENGINE") == 0);
    env_checking = XAC_CHECKING_FAST;
    base = env_attach(_i == 0 ? NONDURABLE : DURABLE, PAGES);
    load_all(base);
    for (uint64_t k = 1; k <= 20; k++) {
        before = env_traps();
        must_eq(store(base, 0, 2, k), COMMITTED); /* more ranges than come by one scan */
        must_hold(base, 2, k, 0);
    }
    must_eq(env_traps(), before); /* the last of them had none */
    must_eq(env_stats().engine, XAC_ENGINE_UFFD);
    do { /* small ones: it is cheaper to trap than to scan */
        before = env_traps();
        must_eq(store(base, PAGES - 1 - n % 256, PAGES, 1), COMMITTED);
        after = env_traps();
    } while (after == before && ++n < 1000);
    must(n > 0 && n < 1000);
    env_detach();
    base = env_attach(_i == 0 ? NONDURABLE : DURABLE, PAGES);
    must_eq(env_get(env_cell(base, 0)), 20);
    env_detach();
}
END_TEST

START_TEST(uffd_never_scans)
{
    uint64_t before = 0, *base;

    if (!scans())
        return;
    must(setenv("XAC_ENGINE", "uffd", 1) == 0);
    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, PAGES);
    load_all(base);
    for (uint64_t k = 1; k <= 20; k++) {
        before = env_traps();
        must_eq(store(base, 0, 2, k), COMMITTED);
    }
    must_eq(env_traps(), before + PAGES / 2);
    env_detach();
}
END_TEST

/* Scanned from the second transaction on. */
static uint64_t *
attach_scanned(void)
{
    uint64_t *base;

    must(setenv("XAC_ENGINE", "scan", 1) == 0);
    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, PAGES);
    load_all(base);
    return base;
}

START_TEST(rolled_back_and_queries_inside)
{
    uint64_t before, *base;

    if (!scans())
        return;
    base = attach_scanned();
    must_eq(store(base, 0, 3, 1), COMMITTED);
    before = env_traps();
    must_ok(xbegin());
    for (uint64_t p = 0; p < PAGES; p++)
        *env_cell(base, p) = 99;
    must_ok(xAbort());
    must_eq(xend(), ABORTED);
    must_hold(base, 3, 1, 0);
    before = env_traps(); /* those of pages that were rolled back */
    must_ok(xbegin());
    *env_cell(base, 0) = 5;
    must_ok(setPageAccess(env_cell(base, 1), READ_WRITE));
    must_ok(xbeginQuery());
    must_eq(*env_cell(base, 0), 5);
    must_ok(xendQuery());
    *env_cell(base, 0) = 1; /* again, behind the query's scan */
    *env_cell(base, 3) = 7;
    *env_cell(base, 1) = 8;
    must_eq(xValidate(), PENDING);
    must_eq(xend(), COMMITTED);
    must_eq(env_traps(), before);
    must_eq(env_get(env_cell(base, 3)), 7);
    must_eq(env_get(env_cell(base, 1)), 8);
    must_eq(store(base, 3, PAGES, 1), COMMITTED);
    must_eq(store(base, 1, PAGES, 0), COMMITTED);
    base = xMremap(base, 2 * PAGES * env_page(), XAC_MAY_MOVE);
    must(base != MAP_FAILED);
    must_hold(base, 3, 1, 0);
    must_eq(store(base, 0, 3, 2), COMMITTED);
    must_hold(base, 3, 2, 0);
    env_detach();
}
END_TEST

static void
store_wrongly(void *arg)
{
    uint64_t *base = attach_scanned();

    must_eq(store(base, 0, 2, 1), COMMITTED);
    switch (*(int *)arg) {
    case 0:
        env_cell(base, 70)[7] = 77;
        must_ok(xbegin());
        break;
    case 1:
        env_cell(base, 70)[7] = 77;
        must_ok(xbeginQuery());
        break;
    case 2:
        must_ok(xbeginQuery());
        env_cell(base, 70)[7] = 77;
        must_ok(xendQuery());
        break;
    default:
        must_ok(xbegin());
        *env_cell(base, 71) = 1;
        must_ok(xbeginQuery());
        env_cell(base, 70)[7] = 77;
        must_ok(xendQuery());
    }
}

START_TEST(stray_stores_stop_the_program)
{
    char output[4096], where[64];
    int how = _i, status;

    if (!scans())
        return;
    status = proc_capture(store_wrongly, &how, output, sizeof output);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    must(strstr(output, ENV_FILE) != NULL && strstr(output, "store") != NULL);
    must(strstr(output, how < 2 ? "outside a transaction" : "inside a query") != NULL);
    snprintf(where, sizeof where, "offset %zu ", 70 * env_page() + 56);
    must(strstr(output, where) != NULL);
}
END_TEST

/* step -- all pages, which are equal, change; ret whether it has committed. */
static bool
step(uint64_t *base)
{
    uint64_t seen;

    must_ok(xbegin());
    seen = *env_cell(base, 0);
    for (uint64_t p = 0; p < 8; p++) {
        must_eq(*env_cell(base, p), seen);
        *env_cell(base, p) = seen + 1;
    }
    return xend() == COMMITTED;
}

START_TEST(visitors_see_and_are_seen)
{
    uint64_t added, *base;

    if (!scans())
        return;
    must(setenv("XAC_ENGINE", "scan", 1) == 0);
    env_checking = XAC_CHECKING_FAST;
    base = visits_play(step, 40, &added);
    for (uint64_t p = 0; p < 8; p++)
        must_eq(env_get(env_cell(base, p)), added);
    env_detach();
}
END_TEST

/* close_pagemaps -- as a program does that closes descriptors which are not its own. */
static void
close_pagemaps(void)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    int n = 0;

    must(d != NULL);
    while ((e = readdir(d)) != NULL) {
        char target[64] = "";

        if (readlinkat(dirfd(d), e->d_name, target, sizeof target - 1) > 0
            && strstr(target, "/pagemap") != NULL) {
            close(atoi(e->d_name));
            n++;
        }
    }
    closedir(d);
    must(n > 0);
}

/* may_open -- may the process open descriptors? */
static void
may_open(bool may)
{
    static struct rlimit before;
    struct rlimit now;

    if (!may)
        must(getrlimit(RLIMIT_NOFILE, &before) == 0);
    now = before;
    if (!may)
        now.rlim_cur = 0;
    must(setrlimit(RLIMIT_NOFILE, &now) == 0);
}

/* The descriptor is gone, and no other can be had. */
START_TEST(failed_scan_commits_nothing)
{
    struct xac_conflict c;
    uint64_t before, *base;
    int rc;

    if (!scans())
        return;
    base = attach_scanned();
    must_eq(store(base, 0, 2, 1), COMMITTED);
    must_ok(xbegin());
    *env_cell(base, 1) = 2;
    *env_cell(base, 2) = 2;
    if (_i == 1) { /* in the query */
        must_ok(xbeginQuery());
        close_pagemaps();
        may_open(false);
        must_ok(xendQuery());
        must_eq(xValidate(), FAILED);
        must_eq(*env_cell(base, 1), 2); /* and goes on as it was */
    } else {
        close_pagemaps();
        may_open(false);
    }
    rc = xend();
    may_open(true);
    must(rc == EBADF || rc == EMFILE);
    must_ok(xConflict(&c, sizeof c));
    must_eq(c.kind, XAC_CONFLICT_RESOURCE);
    must_eq(c.error, rc);
    must_hold(base, 2, 1, 0);
    must_eq(store(base, 0, 2, 3), COMMITTED);
    before = env_traps();
    must_eq(store(base, 1, 2, 3), COMMITTED);
    must_eq(env_traps(), before + PAGES / 2);
    must_hold(base, 1, 3, 3);
    env_detach();
}
END_TEST

/* It is opened again, and no store is missed. */
START_TEST(lost_descriptor_of_the_scan_is_opened_again)
{
    uint64_t *base;

    if (!scans())
        return;
    base = attach_scanned();
    must_eq(store(base, 0, 2, 1), COMMITTED);
    must_ok(xbegin());
    for (uint64_t p = 0; p < PAGES; p += 2)
        *env_cell(base, p) = 2;
    if (_i == 1)
        must_ok(xbeginQuery());
    close_pagemaps();
    if (_i == 1)
        must_ok(xendQuery());
    must_eq(xend(), COMMITTED);
    must_hold(base, 2, 2, 0);
    env_detach();
}
END_TEST

static Suite *
scan_suite(void)
{
    Suite *s = suite_create("scan");
    TCase *tc = env_tcase(s, "scan", 60);

    tcase_add_loop_test(tc, large_transactions_stop_trapping, 0, 2);
    tcase_add_test(tc, uffd_never_scans);
    tcase_add_test(tc, rolled_back_and_queries_inside);
    tcase_add_loop_test(tc, stray_stores_stop_the_program, 0, 4);
    tcase_add_test(tc, visitors_see_and_are_seen);
    tcase_add_loop_test(tc, failed_scan_commits_nothing, 0, 2);
    tcase_add_loop_test(tc, lost_descriptor_of_the_scan_is_opened_again, 0, 2);
    return s;
}

int
main(void)
{
    return env_main(scan_suite());
}
