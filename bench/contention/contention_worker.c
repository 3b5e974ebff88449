/* SPDX-License-Identifier: MIT */
/*
 * contention_worker.c -- the processes of the experiment `contention`, and what they do.
 *
 * The transactions are plain loads and stores, without hints and without back-off between
 * a failure and the retry other than the library's own.  A retry touches the same pages.
 */
#include <config.h>

#include "bench/contention/contention.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/util.h"
#include "bench/systems/sys_xac.h"

#define TOUCHES_MAX 32u /* reads and writes of a transaction                         */

enum order_kind {
    ORDER_OPEN,
    ORDER_RUN, /* arg: ns                                                            */
    ORDER_CLOSE
};

static const char *const order_names[] = {"open", "run", "close"};

/* What a worker counts. */
enum {
    COUNT_COMMITS,
    COUNT_ABORTS,
    COUNT_MAX_RETRIES
};

/* Longest time without an answer beyond the time of the slice. */
#define ANSWER_TIMEOUT_MS (2u * 60 * 1000)

/* A worker's own. */
struct hot {
    struct bench_hot_crew *crew;
    unsigned number;
    char file[512];
    unsigned char *base;
    size_t page_bytes;
    uint64_t n_drawn; /* random numbers so far                                        */
};

/* ---- The worker's side ------------------------------------------------------------ */

/* hot_open -- ret 0 or a code. */
static int
hot_open(struct hot *h)
{
    char env[512];
    int rc;

    h->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    snprintf(env, sizeof env, "%s/env", h->crew->dir);
    snprintf(h->file, sizeof h->file, "%s/hot", h->crew->dir);
    rc = xac_set_option(XAC_OPT_POLICY, h->crew->policy->kind);
    if (rc == 0)
        rc = xac_init(env, XAC_NONDURABLE);
    if (rc != 0)
        return rc;
    h->base = xac_mmap(h->file, h->crew->cell.pages * h->page_bytes);
    return (void *)h->base == MAP_FAILED ? errno : 0;
}

/* hot_close -- ret 0 or a code; ENOMEM if transactions aborted without room. */
static int
hot_close(struct hot *h)
{
    struct xac_stats stats = {0};
    int rc = xac_get_stats(&stats, sizeof stats), rc2;

    if (rc == 0 && stats.aborts_other != 0)
        rc = ENOMEM;
    rc2 = xac_munmap(h->file);
    rc = rc != 0 ? rc : rc2;
    rc2 = xac_shutdown();
    return rc != 0 ? rc : rc2;
}

/* draw -- the counters that the next transaction touches, one per page. */
static void
draw(struct hot *h, volatile uint64_t *touched[TOUCHES_MAX], unsigned n)
{
    uint64_t seed = bench_key(h->crew->seed, h->number);

    for (unsigned i = 0; i < n; i++) {
        uint64_t page = bench_key(seed, h->n_drawn++) % h->crew->cell.pages;

        touched[i] = (volatile uint64_t *)(h->base + page * h->page_bytes);
    }
}

/* attempt -- once; ret what xac_end() returned, or the error of xac_begin(). */
static int
attempt(const struct bench_hot_length *length, volatile uint64_t *touched[TOUCHES_MAX])
{
    int rc = xac_begin();

    if (rc != 0)
        return rc;
    for (unsigned i = 0; i < length->reads; i++)
        (void)*touched[i];
    for (unsigned i = 0; i < length->writes; i++)
        *touched[length->reads + i] += 1;
    return xac_end();
}

/* hot_run -- transactions until the time is over; ret 0 or a code. */
static int
hot_run(struct hot *h, uint64_t ns, struct bench_answer *answer)
{
    const struct bench_hot_length *length = h->crew->cell.length;
    volatile uint64_t *touched[TOUCHES_MAX];
    uint64_t retries;
    int rc;

    answer->start_ns = answer->end_ns = bench_now_ns();
    while (answer->end_ns - answer->start_ns < ns) {
        draw(h, touched, length->reads + length->writes);
        retries = 0;
        while ((rc = attempt(length, touched)) == XAC_ABORTED)
            retries++;
        if (rc != XAC_COMMITTED)
            return rc;
        answer->count[COUNT_COMMITS]++;
        answer->count[COUNT_ABORTS] += retries;
        if (retries > answer->count[COUNT_MAX_RETRIES])
            answer->count[COUNT_MAX_RETRIES] = retries;
        answer->end_ns = bench_now_ns();
    }
    return 0;
}

/* obey -- carry out one order. */
static int
obey(void *arg, unsigned number, const struct bench_order *order,
     struct bench_answer *answer)
{
    static struct hot h; /* one worker is a process */

    h.crew = arg;
    h.number = number;
    switch (order->kind) {
    case ORDER_OPEN:
        return hot_open(&h);
    case ORDER_RUN:
        return hot_run(&h, order->arg, answer);
    default:
        return hot_close(&h);
    }
}

/* ---- The parent's side ------------------------------------------------------------ */

int
bench_hot_start(struct bench_hot_crew *crew)
{
    const struct bench_order order = {.kind = ORDER_OPEN};
    struct bench_answer answer;
    int rc;

    crew->team = (struct bench_team){.label = crew->policy->name,
                                     .order_names = order_names,
                                     .arg = crew,
                                     .obey = obey,
                                     .explain = bench_xac_explain};
    rc = bench_team_start(&crew->team, crew->cell.procs);
    for (unsigned w = 0; w < crew->cell.procs && rc == 0; w++)
        rc = bench_team_ask(&crew->team, w, &order, &answer);
    return rc;
}

int
bench_hot_run(struct bench_hot_crew *crew, uint64_t ns, struct bench_hot_counts *out)
{
    const struct bench_order order = {.kind = ORDER_RUN,
                                      .arg = ns,
                                      .timeout_ms =
                                          (unsigned)(ns / 1000000) + ANSWER_TIMEOUT_MS};
    struct bench_answer answers[BENCH_TEAM_MAX];

    *out = (struct bench_hot_counts){.min_commits = UINT64_MAX};
    if (bench_team_ask_all(&crew->team, &order, answers) != 0)
        return 1;
    for (unsigned w = 0; w < crew->team.n; w++) {
        const uint64_t *count = answers[w].count;

        out->commits += count[COUNT_COMMITS];
        out->aborts += count[COUNT_ABORTS];
        if (count[COUNT_MAX_RETRIES] > out->max_retries)
            out->max_retries = count[COUNT_MAX_RETRIES];
        crew->commits[w] += count[COUNT_COMMITS];
        if (crew->commits[w] < out->min_commits)
            out->min_commits = crew->commits[w];
    }
    out->ns = bench_team_ns(&crew->team, answers);
    return 0;
}

int
bench_hot_close(struct bench_hot_crew *crew)
{
    const struct bench_order order = {.kind = ORDER_CLOSE};
    struct bench_answer answer;

    for (unsigned w = crew->team.n; w-- > 0;)
        if (bench_team_ask(&crew->team, w, &order, &answer) != 0)
            return 1;
    bench_hot_stop(crew);
    return 0;
}

int
bench_hot_check(const struct bench_hot_crew *crew, uint64_t commits)
{
    uint64_t wanted = commits * crew->cell.length->writes, sum = 0, counter;
    off_t page_bytes = (off_t)sysconf(_SC_PAGESIZE);
    char file[512];
    int fd;

    snprintf(file, sizeof file, "%s/hot", crew->dir);
    fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return bench_fail("%s: %s", file, strerror(errno));
    for (uint64_t i = 0; i < crew->cell.pages; i++) {
        if (pread(fd, &counter, sizeof counter, (off_t)i * page_bytes)
            != (ssize_t)sizeof counter) {
            close(fd);
            return bench_fail("%s: page %llu cannot be read", file,
                              (unsigned long long)i);
        }
        sum += counter;
    }
    close(fd);
    if (sum != wanted)
        return bench_fail("%s: the counters add up to %llu, but %llu increments were "
                          "committed",
                          crew->policy->name, (unsigned long long)sum,
                          (unsigned long long)wanted);
    return 0;
}

void
bench_hot_stop(struct bench_hot_crew *crew)
{
    bench_team_stop(&crew->team);
}
