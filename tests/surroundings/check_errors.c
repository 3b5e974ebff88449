/* SPDX-License-Identifier: MIT */
/*
 * check_errors.c -- what cannot commit is told by an errno value, and is no retry.
 *
 * GOAL    xend() and xTransact() return ENOSPC, EDQUOT, ENOMEM or EIO when another attempt would
 *         fail, too, with words; the loop `while ((rc = xend()) == ABORTED)` ends.  Where a
 *         checkpoint may make room, there is one more attempt, and no third one.  A transaction
 *         that gets an errno value gives up its age and its token.
 * METHOD  system calls of the library fail; two processes take turns.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <xac.h>

#include "../common/env.h"
#include "../common/sysfault.h"

#define N_PAGES 64
#define LARGE   48 /* pages: more than a quarter of the log buffer */

static const int errors[] = {ENOSPC, EDQUOT, ENOMEM, EIO};
#define N_ERRORS (int)(sizeof errors / sizeof errors[0])

static uint64_t *base;

/* attach -- with a small log buffer, so that a transaction of LARGE pages goes to a file. */
static void
attach(bool has_checkpoints, uint64_t policy)
{
    must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_POLICY, policy));
    if (!has_checkpoints)
        must_ok(xac_set_option(XAC_OPT_CHECKPOINT_BYTES, 0));
    base = env_attach(XAC_DURABLE, N_PAGES);
}

/* store -- a number to the first pages, all of it, from the first cell on. */
static void
store(uint64_t number, size_t n_pages)
{
    for (size_t p = 0; p < n_pages; p++) {
        uint64_t *words = env_cell(base, p);

        for (size_t i = 0; i < env_page() / sizeof *words; i++)
            words[i] = number * (2 * i + 1);
    }
}

/* must_hold -- all pages of a transaction. */
static void
must_hold(uint64_t number)
{
    for (size_t p = 0; p < LARGE; p++)
        must_eq(env_get(env_cell(base, p)), number);
}

/* end_failing -- xend(), while calls that write or make room fail with that. */
static int
end_failing(int error)
{
    int rc;

    sysfault_arm(SYSFAULT_FAIL_ALL, SYSFAULT_DATA, 1, error);
    rc = xac_end();
    sysfault_disarm();
    return rc;
}

/* must_be_told -- that it was rolled back for this error. */
static void
must_be_told(int error)
{
    struct xac_conflict why;

    must(strstr(xac_last_error(), xac_strerror(error)) != NULL);
    must(strstr(xac_last_error(), "/" ENV_DIR) != NULL);
    must_ok(xac_get_conflict(&why, sizeof why));
    must_eq(why.kind, XAC_CONFLICT_RESOURCE);
    must_eq(why.error, error);
}

START_TEST(error_is_returned_and_explained)
{
    attach(false, _i / N_ERRORS == 0 ? 0 : XAC_POLICY_OPTIMISTIC);
    must_ok(xac_begin());
    store(1, LARGE);
    must_ok(xac_end());
    for (unsigned n = 0; n < 3; n++) {
        must_ok(xac_begin());
        must_ok(xac_begin()); /* a nested one says nothing of it */
        store(2, LARGE);
        must_rc(xac_end(), XAC_PENDING);
        must_refuse(end_failing(errors[_i % N_ERRORS]), errors[_i % N_ERRORS]);
        must_be_told(errors[_i % N_ERRORS]);
        must_hold(1);
    }
    must_ok(xac_begin());
    store(3, LARGE);
    must_ok(xac_end()); /* room again, in the same process */
    must_hold(3);
    env_detach();
}
END_TEST

/* ---- xTransact ------------------------------------------------------------------------- */

struct job {
    unsigned n_runs;
    int error;
};

static int
store_and_fail(void *arg)
{
    struct job *job = (struct job *)arg;

    store(++job->n_runs + 1, LARGE);
    sysfault_arm(SYSFAULT_FAIL_ALL, SYSFAULT_DATA, 1, job->error);
    return 0;
}

START_TEST(transact_returns_the_error)
{
    struct job job = {.error = errors[_i]};

    attach(false, 0);
    must_ok(xac_begin());
    store(1, LARGE);
    must_ok(xac_end());
    must_refuse(xac_transact(store_and_fail, &job), errors[_i]);
    sysfault_disarm();
    must_eq(job.n_runs, 1);
    must_be_told(errors[_i]);
    must_hold(1);
    env_detach();
}
END_TEST

/* ---- A checkpoint first ---------------------------------------------------------------- */

/* attempt -- a large transaction, for which writing the data file fails if `fails`. */
static int
attempt(uint64_t number, bool fails)
{
    int rc;

    must_ok(xac_begin());
    store(number, LARGE);
    if (fails) /* the first time, and no more: the checkpoint works */
        sysfault_arm(SYSFAULT_FAIL, SYSFAULT_DATA, 1, ENOSPC);
    rc = xac_end();
    must(!fails || sysfault_hit() != NULL);
    sysfault_disarm();
    return rc;
}

START_TEST(room_is_made_for_another_attempt)
{
    uint64_t checkpoints;

    env_without_frames("pages are read by calls that fail, too");
    attach(true, _i == 0 ? 0 : XAC_POLICY_OPTIMISTIC);
    must_ok(attempt(9, false)); /* what fails from now on is no growth of the store */
    checkpoints = env_stats().checkpoints;
    must_rc(attempt(1, true), XAC_ABORTED);
    must_eq(env_stats().checkpoints, checkpoints + 1);
    must_ok(attempt(2, false));
    must_hold(2);
    for (unsigned row = 0; row < 3; row++) { /* never twice in a row */
        must_rc(attempt(3, true), XAC_ABORTED);
        must_refuse(attempt(3, true), ENOSPC);
        must_be_told(ENOSPC);
    }
    must_eq(env_stats().checkpoints, checkpoints + 4);
    must_hold(2);
    env_detach();
}
END_TEST

/* ---- Others ---------------------------------------------------------------------------- */

struct board {
    _Atomic uint64_t turn, policy;
};

/* poor -- never gets room for a large transaction. */
static void
poor(void *arg)
{
    struct board *b = (struct board *)arg;

    attach(false, word_load(&b->policy));
    for (unsigned n = 0; n < 6;
         n++) { /* more than it may lose before it takes the turn */
        must_ok(xac_begin());
        store(1, LARGE);
        must_rc(end_failing(ENOSPC), ENOSPC);
    }
    word_store(&b->turn, 1);
    proc_await(&b->turn, 2, 30); /* the other one has begun */
    must_ok(xac_begin());
    store(2, LARGE);
    word_store(&b->turn, 3);
    proc_await(&b->turn, 4, 30); /* the other one has committed, beside us */
    must_rc(xac_end(), XAC_ABORTED);
    word_store(&b->turn, 5);
    env_detach();
}

START_TEST(others_go_on_beside_one_without_room)
{
    struct board *b = proc_shared(sizeof *b);
    pid_t pid;

    word_store(&b->policy, (uint64_t)_i * XAC_POLICY_OPTIMISTIC);
    pid = proc_spawn(poor, b);
    attach(false, word_load(&b->policy));
    proc_await(&b->turn, 1, 30);
    must_ok(xac_begin());
    word_store(&b->turn, 2);
    proc_await(&b->turn, 3, 30);
    *env_cell(base, 0) = 7; /* younger than the other one's first attempt */
    must_rc(xac_end(), XAC_COMMITTED);
    word_store(&b->turn, 4);
    proc_join(pid);
    must_eq(env_get(env_cell(base, 0)), 7);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("errors");
    TCase *tc = env_tcase(s, "errors", 60);

    tcase_add_loop_test(tc, error_is_returned_and_explained, 0, 2 * N_ERRORS);
    tcase_add_loop_test(tc, transact_returns_the_error, 0, N_ERRORS);
    tcase_add_loop_test(tc, room_is_made_for_another_attempt, 0, 2);
    tcase_add_loop_test(tc, others_go_on_beside_one_without_room, 0, 2);
    return env_main(s);
}
