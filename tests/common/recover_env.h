/* SPDX-License-Identifier: MIT */
/*
 * recover_env.h -- what the test programs of recovery share: one environment made by hand
 * (synth.h), what its last recovery said, and short ways to run one.
 *
 * Defines things, so it is included once per program.
 */
#ifndef XAC_TEST_RECOVER_ENV_H
#define XAC_TEST_RECOVER_ENV_H

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "log/master.h"
#include "recovery/recover.h"
#include "synth.h"

static int page_bytes = 4096;

/* Stands in for the C library's: the page size of the machine that a test plays. */
int
getpagesize(void)
{
    return page_bytes;
}

static struct synth s;
static struct xac_recover_report rep;
static struct xac_master_slot next;

static inline int
recover(void)
{
    return xac_recover_dir(s.dirfd, NULL, &rep, &next);
}

static inline int
dry_run(void)
{
    struct xac_recover_options o = {.dry_run = true};

    return xac_recover_dir(s.dirfd, &o, &rep, NULL);
}

#define ck_ok(call)                                                      \
 do {                                                                    \
  int ck_rc = (call);                                                    \
  ck_assert_msg(ck_rc == 0, "%s: %d, %s", #call, ck_rc, xac_err_text()); \
 } while (0)

static void
close_synth(void)
{
    synth_close(&s);
    page_bytes = 4096;
}

static inline void
shorten(const char *name, off_t length)
{
    int fd = openat(s.dirfd, name, O_RDWR);

    ck_assert_int_eq(ftruncate(fd, length), 0);
    close(fd);
}

static inline bool
odd_pages(size_t file, uint64_t page)
{
    return file == 0 && page % 2 == 1;
}

/* A test case that closes the environment behind each test. */
static TCase *
recover_tcase(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);

    tcase_add_checked_fixture(tc, NULL, close_synth);
    tcase_set_timeout(tc, 200);
    suite_add_tcase(suite, tc);
    return tc;
}

/* Run the suite; ret exit status. */
static int
recover_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    printf("XAC_SEED=%llu\n", (unsigned long long)synth_seed());
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif /* XAC_TEST_RECOVER_ENV_H */
