/* SPDX-License-Identifier: MIT */
/*
 * ship_run.c -- see ship_run.h.
 */
#include <config.h>

#include "ship_run.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include <xac.h>

#include "base/err.h"
#include "checkpoint/hold.h"
#include "log/slots.h"
#include "progress.h"
#include "backup/backup.h"
#include "tool.h"

/* How often it is said how far the standby is behind. */
#define LAG_MS      1000
#define LAG_JSON_MS 100

/* ---- Signals ------------------------------------------------------------------------ */

static _Atomic bool is_told_to_stop;

bool
ship_is_stopped(void)
{
    /* relaxed: nothing else is handed over. */
    return atomic_load_explicit(&is_told_to_stop, memory_order_relaxed);
}

static void
stop(int signal)
{
    (void)signal;
    /* relaxed: nothing else is handed over. */
    atomic_store_explicit(&is_told_to_stop, true, memory_order_relaxed);
}

void
ship_catch_signals(void)
{
    struct sigaction act = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};

    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    (void)sigaction(SIGHUP, &act, NULL);
    act = (struct sigaction){.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &act, NULL);
}

/* ---- Sending ------------------------------------------------------------------------ */

/* make_slot -- one that has been lost is made anew; another one stays, and holds back enough. */
static int
make_slot(struct xac_env *env, const char *slot)
{
    const struct xac_log_slot *was;
    uint64_t lsn;
    int rc = xac_hold_make(env, slot, &lsn);

    if (rc != EEXIST)
        return rc;
    was = xac_slots_find(&env->ctl->log.followers, slot);
    if (was != NULL && xac_slot_lsn(xac_slot_load(was)) != XAC_SLOT_LOST)
        return 0;
    rc = xac_hold_drop(env, slot);
    return rc == 0 || rc == ENOENT ? xac_hold_make(env, slot, &lsn) : rc;
}

/* is_shown -- on a terminal. */
static bool
is_shown(const struct ship_job *job)
{
    return !job->is_quiet && progress_is_wanted();
}

/* A copy that is to be made. */
struct copy {
    bool is_shown;
    const char *slot, *to;
};

/* copy -- slot and backup, as a participant. */
static int
copy(void *arg, struct xac_env *env)
{
    const struct copy *c = (const struct copy *)arg;
    struct progress shown = progress_start("files and log copied");
    struct xac_backup_progress progress = {.fn = progress_show, .arg = &shown};
    int rc = make_slot(env, c->slot);

    if (rc == 0)
        rc = xac_backup_run(env, c->to, NULL, c->is_shown ? &progress : NULL, NULL);
    progress_end(&shown);
    return rc;
}

/* hold -- the slot, as a participant. */
static int
hold(void *arg, struct xac_env *env)
{
    if (env->ctl->full_images == 0)
        return xac_err(ENOTSUP,
                       "%s logs no full images (XAC_OPT_FULL_IMAGES), which would mend "
                       "pages that are written while they are read",
                       env->dir);
    return make_slot(env, (const char *)arg);
}

/* make_hold -- for struct xac_send_options. */
static int
make_hold(void *arg, const char *slot)
{
    const struct ship_job *job = (const struct ship_job *)arg;

    return tool_take_part(job->dir, NULL, "xship", hold, (void *)(uintptr_t)slot);
}

/* make_copy -- for struct xac_send_options. */
static int
make_copy(void *arg, const char *slot, const char *to)
{
    const struct ship_job *job = (const struct ship_job *)arg;
    struct copy c = {.is_shown = is_shown(job), .slot = slot, .to = to};

    return tool_take_part(job->dir, NULL, "xship", copy, &c);
}

/* show_lag -- a line on the terminal, once the work takes longer. */
static void
show_lag(void *arg, const struct xac_send_lag *lag)
{
    struct progress *shown = (struct progress *)arg;

    progress_line(shown, "standby %" PRIu64 " bytes, %.1f s behind", lag->bytes,
                  (double)lag->ns / 1e9);
}

/* say_lag -- an object on a line of its own. */
static void
say_lag(void *arg, const struct xac_send_lag *lag)
{
    const struct ship_job *job = (const struct ship_job *)arg;

    printf("{\"slot\": \"%s\", \"bytes\": %" PRIu64 ", \"ms\": %.3f}\n", job->slot,
           lag->bytes, (double)lag->ns / 1e6);
    (void)fflush(stdout);
}

int
ship_send(const struct ship_job *job, int in, int out, struct xac_send_report *rep)
{
    struct progress copied = progress_start("copy sent"), shown = progress_start("");
    struct xac_backup_progress progress = {.fn = progress_show, .arg = &copied};
    struct xac_send_options o = {.dir = job->dir,
                                 .slot = job->slot,
                                 .in = in,
                                 .out = out,
                                 .stop = &is_told_to_stop,
                                 .copy = make_copy,
                                 .hold = make_hold,
                                 .copy_arg = (void *)(uintptr_t)job,
                                 .progress = is_shown(job) ? &progress : NULL,
                                 .lag = is_shown(job) ? show_lag : NULL,
                                 .lag_arg = &shown,
                                 .lag_ms = LAG_MS};
    int rc;

    if (job->is_json) {
        o.lag = say_lag;
        o.lag_arg = (void *)(uintptr_t)job;
        o.lag_ms = LAG_JSON_MS;
    }
    rc = xac_send_run(&o, rep);

    progress_end(&copied);
    progress_end(&shown);
    return rc;
}

void
ship_say_sent(const struct ship_job *job, const struct xac_send_report *rep)
{
    if (!job->is_quiet)
        fprintf(stderr,
                "%s: %" PRIu64 " block%s of log sent; the standby has all up to LSN "
                "%" PRIu64 "\n",
                tool_name, rep->blocks, plural(rep->blocks), rep->acknowledged);
}

/* ---- Receiving ---------------------------------------------------------------------- */

/* show_behind -- likewise, at the standby. */
static void
show_behind(void *arg, uint64_t bytes)
{
    progress_line((struct progress *)arg, "%" PRIu64 " bytes behind the source", bytes);
}

int
ship_receive(const struct ship_job *job, int in, int out, struct xac_receive_report *rep)
{
    struct progress copied = progress_start("copy received"), shown = progress_start("");
    struct xac_backup_progress progress = {.fn = progress_show, .arg = &copied};
    struct xac_receive_options o = {.dir = job->dir,
                                    .in = in,
                                    .out = out,
                                    .rewinds = job->rewinds,
                                    .stop = &is_told_to_stop,
                                    .progress = is_shown(job) ? &progress : NULL,
                                    .behind = is_shown(job) ? show_behind : NULL,
                                    .behind_arg = &shown};
    int rc = xac_receive_run(&o, rep);

    progress_end(&copied);
    progress_end(&shown);
    if (rep->was_rewound && !job->is_quiet)
        fprintf(stderr,
                "%s: %s follows now: %" PRIu64
                " page%s of its files came, and what it had "
                "from LSN %" PRIu64 " on is given up\n",
                tool_name, job->dir, rep->pages, plural(rep->pages), rep->fork_lsn);
    return rc;
}

void
ship_say_received(const struct ship_job *job, const struct xac_receive_report *rep)
{
    if (!job->is_quiet)
        fprintf(stderr,
                "%s: %" PRIu64 " transaction%s received; %s has all up to LSN %" PRIu64
                "\n",
                tool_name, rep->transactions, plural(rep->transactions), job->dir,
                rep->durable);
}
