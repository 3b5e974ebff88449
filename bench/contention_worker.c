/* SPDX-License-Identifier: MIT */
/*
 * contention_worker.c -- the processes of the experiment `contention`, and what they do.
 *
 * The transactions are plain loads and stores, without hints and without back-off between
 * a failure and the retry other than the library's own.  A retry touches the same pages.
 */
#include <config.h>

#include "contention.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "util.h"

#define TOUCHES_MAX 32u /* reads and writes of a transaction                         */

/* Longest time without an answer beyond the time of the slice. */
#define ANSWER_TIMEOUT_MS (2 * 60 * 1000)

enum order_kind {
    ORDER_OPEN,
    ORDER_RUN,
    ORDER_CLOSE
};

static const char *const order_names[] = {"open", "run", "close"};

struct order {
    enum order_kind kind;
    uint64_t ns; /* ORDER_RUN                                                        */
};

struct answer {
    int code; /* 0 or an error                                                       */
    char text[200];
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t commits;
    uint64_t aborts;
    uint64_t max_retries;
};

/* A worker's own. */
struct hot {
    const struct bench_hot_crew *crew;
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

/* hot_close -- ret 0 or a code; ENOMEM if transactions aborted for want of room. */
static int
hot_close(struct hot *h)
{
    struct xac_stats stats = {0};
    int rc = xac_get_stats(&stats), rc2;

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
hot_run(struct hot *h, uint64_t ns, struct answer *answer)
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
        answer->commits++;
        answer->aborts += retries;
        if (retries > answer->max_retries)
            answer->max_retries = retries;
        answer->end_ns = bench_now_ns();
    }
    return 0;
}

/* obey -- carry out one order. */
static int
obey(struct hot *h, const struct order *order, struct answer *answer)
{
    switch (order->kind) {
    case ORDER_OPEN:
        return hot_open(h);
    case ORDER_RUN:
        return hot_run(h, order->ns, answer);
    case ORDER_CLOSE:
        return hot_close(h);
    }
    return EINVAL;
}

/* worker_main -- never returns. */
static void __attribute__((noreturn))
worker_main(const struct bench_hot_crew *crew, unsigned number, int socket)
{
    struct hot h = {.crew = crew, .number = number};
    struct order order;

    while (recv(socket, &order, sizeof order, 0) == (ssize_t)sizeof order) {
        struct answer answer = {0};

        answer.code = obey(&h, &order, &answer);
        if (answer.code != 0)
            snprintf(answer.text, sizeof answer.text, "%s: %s", xac_strerror(answer.code),
                     xac_last_error());
        if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
            _exit(2);
    }
    _exit(0);
}

/* ---- The parent's side ------------------------------------------------------------ */

/* hot_fork -- ret 0, or 1 after a message. */
static int
hot_fork(struct bench_hot_crew *crew, unsigned w)
{
    pid_t parent = getpid();
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return bench_fail("socketpair: %s", strerror(errno));
    fflush(NULL);
    crew->workers[w].pid = fork();
    if (crew->workers[w].pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(2);
        signal(SIGINT, SIG_IGN); /* the parent decides */
        signal(SIGTERM, SIG_DFL);
        close(pair[0]);
        worker_main(crew, w, pair[1]);
    }
    close(pair[1]);
    crew->workers[w].socket = pair[0];
    return crew->workers[w].pid > 0 ? 0 : bench_fail("fork: %s", strerror(errno));
}

/*
 * await -- until worker w has something to say; ret 0, or 1 after a message.
 *
 * The death of any worker ends it: the others may wait for what that one had.
 */
static int
await(const struct bench_hot_crew *crew, unsigned w, const struct order *order)
{
    struct pollfd p[BENCH_HOT_PROCS_MAX];
    int n;

    for (unsigned i = 0; i < crew->n_workers; i++)
        p[i] = (struct pollfd){.fd = crew->workers[i].socket,
                               .events = (short)(i == w ? POLLIN : 0)};
    n = poll(p, crew->n_workers, (int)(order->ns / 1000000) + ANSWER_TIMEOUT_MS);
    if (n <= 0)
        return bench_fail("%s: worker %u: %s: %s", crew->policy->name, w,
                          order_names[order->kind],
                          n == 0 ? "no answer" : strerror(errno));
    if (p[w].revents & POLLIN)
        return 0;
    for (unsigned i = 0; i < crew->n_workers; i++)
        if (p[i].revents != 0)
            (void)bench_fail("%s: worker %u died during %s", crew->policy->name, i,
                             order_names[order->kind]);
    return 1;
}

/* hear -- the answer of worker w; ret 0, or 1 after a message. */
static int
hear(const struct bench_hot_crew *crew, unsigned w, const struct order *order,
     struct answer *answer)
{
    if (await(crew, w, order) != 0)
        return 1;
    if (recv(crew->workers[w].socket, answer, sizeof *answer, 0)
        != (ssize_t)sizeof *answer)
        return bench_fail("%s: worker %u died during %s", crew->policy->name, w,
                          order_names[order->kind]);
    answer->text[sizeof answer->text - 1] = '\0';
    if (answer->code != 0)
        return bench_fail("%s: worker %u: %s: %s", crew->policy->name, w,
                          order_names[order->kind], answer->text);
    return 0;
}

/* tell -- a worker that is dead shows when its answer is read. */
static void
tell(const struct bench_hot_crew *crew, unsigned w, const struct order *order)
{
    (void)send(crew->workers[w].socket, order, sizeof *order, MSG_NOSIGNAL);
}

/* reap -- end the connection with a worker and wait for its end. */
static void
reap(struct bench_hot_worker *worker)
{
    if (worker->socket >= 0)
        close(worker->socket);
    worker->socket = -1;
    while (worker->pid > 0 && waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    worker->pid = 0;
}

int
bench_hot_start(struct bench_hot_crew *crew)
{
    const struct order order = {.kind = ORDER_OPEN};
    struct answer answer;
    int rc = 0;

    crew->n_workers = crew->cell.procs;
    for (unsigned w = 0; w < crew->n_workers; w++)
        crew->workers[w] = (struct bench_hot_worker){.socket = -1};
    for (unsigned w = 0; w < crew->n_workers && rc == 0; w++)
        rc = hot_fork(crew, w);
    for (unsigned w = 0; w < crew->n_workers && rc == 0; w++) {
        tell(crew, w, &order);
        rc = hear(crew, w, &order, &answer);
    }
    return rc;
}

int
bench_hot_run(struct bench_hot_crew *crew, uint64_t ns, struct bench_hot_counts *out)
{
    const struct order order = {ORDER_RUN, ns};
    uint64_t start = UINT64_MAX, end = 0;
    struct answer answer;

    *out = (struct bench_hot_counts){.min_commits = UINT64_MAX};
    for (unsigned w = 0; w < crew->n_workers; w++)
        tell(crew, w, &order);
    for (unsigned w = 0; w < crew->n_workers; w++) {
        if (hear(crew, w, &order, &answer) != 0)
            return 1;
        start = answer.start_ns < start ? answer.start_ns : start;
        end = answer.end_ns > end ? answer.end_ns : end;
        out->commits += answer.commits;
        out->aborts += answer.aborts;
        if (answer.max_retries > out->max_retries)
            out->max_retries = answer.max_retries;
        crew->workers[w].commits += answer.commits;
        if (crew->workers[w].commits < out->min_commits)
            out->min_commits = crew->workers[w].commits;
    }
    out->ns = end - start;
    return 0;
}

int
bench_hot_close(struct bench_hot_crew *crew)
{
    const struct order order = {.kind = ORDER_CLOSE};
    struct answer answer;

    for (unsigned w = crew->n_workers; w-- > 0;) {
        tell(crew, w, &order);
        if (hear(crew, w, &order, &answer) != 0)
            return 1;
    }
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
    for (unsigned w = 0; w < crew->n_workers; w++) {
        if (crew->workers[w].pid > 0)
            kill(crew->workers[w].pid, SIGKILL);
        reap(&crew->workers[w]);
    }
    crew->n_workers = 0;
}
