/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/kit/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kit/team.h"
#include "bench/kit/util.h"
#include "bench/kit/verify.h"

/* Longest time without an answer: many times what any order takes. */
#define ANSWER_TIMEOUT_MS (15 * 60 * 1000)

enum order_kind {
    ORDER_OPEN,
    ORDER_LOAD,
    ORDER_RUN,
    ORDER_WRITE,
    ORDER_COUNTERS,
    ORDER_CLOSE,
    ORDER_VERIFY
};

static const char *const order_names[] = {"open",     "load",  "run",   "write",
                                          "counters", "close", "verify"};

struct order {
    enum order_kind kind;
    uint64_t first;    /* ORDER_RUN: number of the worker's first step */
    uint64_t end;      /* ORDER_RUN: one past the last; ORDER_WRITE: most records      */
    uint64_t start_ns; /* ORDER_RUN, ORDER_WRITE: when to begin                        */
};

/* What the parent and the writer tell each other. */
struct bench_crew_shared {
    _Atomic uint64_t written; /* records, by the writer                                 */
    _Atomic bool is_over;     /* by the parent: the steps of the slice are done         */
};

struct answer {
    int code;            /* 0 or the system's error                                   */
    char text[240];      /* words for it                                              */
    uint64_t start_ns;   /* ORDER_RUN                                                 */
    uint64_t end_ns;     /* ORDER_RUN                                                 */
    uint64_t retries;    /* ORDER_RUN                                                 */
    uint64_t warm_traps; /* ORDER_RUN: before the clock started           */
    struct bench_counters counters; /* ORDER_COUNTERS                                */
};

static volatile sig_atomic_t interrupted;

/* on_signal -- only notes it; the wait for an answer ends with EINTR. */
static void
on_signal(int sig)
{
    (void)sig;
    interrupted = 1;
}

void
bench_catch_signals(void)
{
    struct sigaction sa = {.sa_handler = on_signal};

    sigemptyset(&sa.sa_mask);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
}

bool
bench_interrupted(void)
{
    return interrupted != 0;
}

/* ---- The worker's side ------------------------------------------------------------ */

/* do_load -- the records before the measurement. */
static int
do_load(struct bench_crew *crew, void *handle)
{
    const struct bench_step step = {.kind = BENCH_STEP_INSERT};
    uint64_t retries = 0, t0, t1;
    int rc = 0;

    for (uint64_t i = 0; i < crew->job.loaded && rc == 0; i++) {
        struct bench_step one = step;

        one.record = i;
        rc = bench_job_do(&crew->job, crew->system, handle, &one, &retries, &t0, &t1);
    }
    return rc;
}

/* next_group -- one read transaction ends, if there is one, and another begins. */
static int
next_group(const struct bench_system *system, void *handle, bool there_is_one)
{
    int rc = there_is_one ? system->end_read(handle) : 0;

    return rc != 0 ? rc : system->begin_read(handle);
}

/* look_up_all -- every record that was there before; what is found does not matter. */
static int
look_up_all(const struct bench_crew *crew, void *handle)
{
    unsigned char key[BENCH_KEY_BYTES], value[BENCH_VALUE_BYTES];
    int rc = 0;

    for (uint64_t i = 0; i < crew->job.loaded && (rc == 0 || rc == ENOENT); i++) {
        bench_key_encode(bench_job_key(&crew->job, i), key);
        rc = crew->system->find(handle, key, value);
    }
    return rc == ENOENT ? 0 : rc;
}

/*
 * warm_up -- look up every record, in the slice's first group if there are groups.
 *
 * out  trapsp  page faults of that, which the slice must not be charged with
 */
static int
warm_up(const struct bench_crew *crew, void *handle, bool grouped, uint64_t *trapsp)
{
    const struct bench_system *system = crew->system;
    struct bench_counters before, after;
    int rc = bench_count(system, handle, &before);

    if (rc == 0 && grouped)
        rc = system->begin_read(handle);
    if (rc == 0)
        rc = look_up_all(crew, handle);
    if (rc == 0)
        rc = bench_count(system, handle, &after);
    if (rc == 0 && before.traps != BENCH_NONE)
        *trapsp = after.traps - before.traps;
    return rc;
}

/* do_run -- the measured loop: steps first, first + n_workers, ... below end. */
static int
do_run(struct bench_crew *crew, void *handle, const struct order *order,
       struct answer *answer)
{
    const struct bench_system *system = crew->system;
    bool grouped = crew->group > 1 && system->begin_read != NULL;
    uint64_t t0, t1, n = 0;
    int rc = crew->warm ? warm_up(crew, handle, grouped, &answer->warm_traps) : 0;

    bench_sleep_until(order->start_ns);
    answer->start_ns = t1 = bench_now_ns();
    for (uint64_t i = order->first; i < order->end && rc == 0; i += crew->n_workers) {
        struct bench_step step;

        if (grouped && n++ % crew->group == 0 && !(crew->warm && n == 1))
            rc = next_group(system, handle, n > 1);
        if (rc != 0)
            break;
        crew->job.workload->make(&crew->job, i, &step);
        rc = bench_job_do(&crew->job, system, handle, &step, &answer->retries, &t0, &t1);
        crew->latencies[i] = t1 - t0 < UINT32_MAX ? (uint32_t)(t1 - t0) : UINT32_MAX;
    }
    if (grouped && n > 0) {
        int rc2 = system->end_read(handle);

        rc = rc != 0 ? rc : rc2;
        t1 = bench_now_ns();
    }
    answer->end_ns = t1;
    return rc;
}

/* do_write -- be the writer: a record, and more until the slice is over. */
static int
do_write(struct bench_crew *crew, void *handle, const struct order *order,
         struct answer *answer)
{
    struct bench_crew_shared *shared = crew->shared;
    uint64_t n = atomic_load_explicit(&shared->written, memory_order_relaxed), t0, t1;
    int rc = 0;

    bench_sleep_until(order->start_ns);
    answer->start_ns = bench_now_ns();
    do {
        const struct bench_step step = {.kind = BENCH_STEP_INSERT,
                                        .record = crew->job.loaded + n};

        rc = bench_job_do(&crew->job, crew->system, handle, &step, &answer->retries, &t0,
                          &t1);
        n += rc == 0;
    } while (rc == 0 && n < order->end
             && !atomic_load_explicit(&shared->is_over, memory_order_relaxed));
    answer->end_ns = bench_now_ns();
    atomic_store_explicit(&shared->written, n, memory_order_relaxed);
    return rc;
}

/* do_verify -- open, check, close; the handle is its own. */
static int
do_verify(struct bench_crew *crew, struct answer *answer)
{
    void *handle = NULL;
    int rc = crew->system->open(&crew->config, false, &handle), rc2;

    if (rc != 0)
        return rc;
    rc =
        bench_verify(crew->system, handle, &crew->job, answer->text, sizeof answer->text);
    rc2 = crew->system->close(handle);
    return rc != 0 ? rc : rc2;
}

/* obey -- carry out one order. */
static int
obey(struct bench_crew *crew, unsigned w, void **handlep, const struct order *order,
     struct answer *answer)
{
    int rc = EINVAL;

    switch (order->kind) {
    case ORDER_OPEN:
        rc = crew->system->open(&crew->config, w == 0, handlep);
        break;
    case ORDER_LOAD:
        rc = do_load(crew, *handlep);
        break;
    case ORDER_RUN:
        rc = do_run(crew, *handlep, order, answer);
        break;
    case ORDER_WRITE:
        rc = do_write(crew, *handlep, order, answer);
        break;
    case ORDER_COUNTERS:
        rc = bench_count(crew->system, *handlep, &answer->counters);
        break;
    case ORDER_CLOSE:
        rc = crew->system->close(*handlep);
        *handlep = NULL;
        break;
    case ORDER_VERIFY:
        rc = do_verify(crew, answer);
        break;
    }
    return rc;
}

/* has_threads -- whether the workers are threads of one process. */
static bool
has_threads(const struct bench_crew *crew)
{
    return (crew->system->abilities & BENCH_THREADS) != 0;
}

/* serve -- be worker w until the parent closes the socket. */
static void
serve(struct bench_crew *crew, unsigned w, int socket)
{
    struct order order;
    void *handle = NULL;

    if (!has_threads(crew))
        bench_pin(w, crew->n_members);
    while (recv(socket, &order, sizeof order, 0) == (ssize_t)sizeof order) {
        struct answer answer = {0};

        answer.code = obey(crew, w, &handle, &order, &answer);
        if (answer.code != 0 && answer.text[0] == '\0')
            snprintf(answer.text, sizeof answer.text, "%s",
                     crew->system->explain(answer.code));
        if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
            _exit(2);
    }
}

/* A worker that is a thread. */
struct seat {
    struct bench_crew *crew;
    unsigned w;
    int socket;
    pthread_t thread;
};

static void *
seat_main(void *arg)
{
    struct seat *seat = arg;

    serve(seat->crew, seat->w, seat->socket);
    return NULL;
}

/* process_main -- worker w, and the n - 1 after it in threads; never returns. */
static void __attribute__((noreturn))
process_main(struct bench_crew *crew, unsigned w, const int *sockets, unsigned n)
{
    static struct seat seats[BENCH_PROCS_MAX];

    for (unsigned i = 1; i < n; i++) {
        seats[i] = (struct seat){.crew = crew, .w = w + i, .socket = sockets[i]};
        if (pthread_create(&seats[i].thread, NULL, seat_main, &seats[i]) != 0)
            _exit(2);
    }
    serve(crew, w, sockets[0]);
    for (unsigned i = 1; i < n; i++)
        pthread_join(seats[i].thread, NULL);
    _exit(0);
}

/* ---- The parent's side ------------------------------------------------------------ */

/* process_fork -- worker w and the n - 1 after it; ret 0, or 1 after a message. */
static int
process_fork(struct bench_crew *crew, unsigned w, unsigned n)
{
    int sockets[BENCH_PROCS_MAX];
    pid_t pid = bench_team_fork(sockets, n);

    if (pid == 0)
        process_main(crew, w, sockets, n);
    for (unsigned i = 0; i < n; i++)
        crew->workers[w + i].socket = sockets[i];
    crew->workers[w].pid = pid;
    return pid < 0;
}

/* process_of -- the worker that has the process of worker w. */
static unsigned
process_of(const struct bench_crew *crew, unsigned w)
{
    return has_threads(crew) ? 0 : w;
}

/* worker_reap -- wait for the end of a process; says how if it was a signal. */
static void
worker_reap(struct bench_crew *crew, unsigned w, const char *what)
{
    struct bench_worker *worker = &crew->workers[w];
    int status = 0;

    if (worker->socket >= 0)
        close(worker->socket);
    worker->socket = -1;
    if (worker->pid <= 0)
        return;
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        ;
    worker->pid = 0;
    if (what != NULL && WIFSIGNALED(status))
        (void)bench_fail("%s: worker %u died of signal %d (%s) during %s", crew->label, w,
                         WTERMSIG(status), strsignal(WTERMSIG(status)), what);
    else if (what != NULL)
        (void)bench_fail("%s: worker %u exited with %d during %s", crew->label, w,
                         WEXITSTATUS(status), what);
}

/* tell -- send an order; a dead worker shows when the answer is read. */
static void
tell(struct bench_crew *crew, unsigned w, const struct order *order)
{
    (void)send(crew->workers[w].socket, order, sizeof *order, MSG_NOSIGNAL);
}

/*
 * await -- until worker w has answered or any worker of the crew has died.
 *
 * One that died inside the system may leave the others waiting for its locks, so the
 * death of each is looked for, not only of the one that is to speak.
 *
 * ret  0 if there is something to read from w, else 1 after a message.
 */
static int
await(struct bench_crew *crew, unsigned w, enum order_kind kind)
{
    struct pollfd p[BENCH_PROCS_MAX];
    int n;

    for (unsigned i = 0; i < crew->n_members; i++)
        p[i] =
            (struct pollfd){.fd = crew->workers[i].socket, .events = i == w ? POLLIN : 0};
    n = poll(p, crew->n_members, ANSWER_TIMEOUT_MS);
    if (interrupted)
        return bench_fail("interrupted");
    if (n <= 0)
        return bench_fail("%s: worker %u: no answer to %s", crew->label, w,
                          order_names[kind]);
    if (p[w].revents != 0)
        return 0;
    for (unsigned i = 0; i < crew->n_members; i++)
        if (p[i].revents != 0)
            worker_reap(crew, process_of(crew, i), order_names[kind]);
    return 1;
}

/* hear -- wait for the answer; ret 0, or 1 after a message. */
static int
hear(struct bench_crew *crew, unsigned w, enum order_kind kind, struct answer *answer)
{
    if (await(crew, w, kind) != 0)
        return 1;
    if (recv(crew->workers[w].socket, answer, sizeof *answer, 0)
        != (ssize_t)sizeof *answer) {
        worker_reap(crew, process_of(crew, w), order_names[kind]);
        return 1;
    }
    answer->text[sizeof answer->text - 1] = '\0';
    if (answer->code != 0)
        return bench_fail("%s: worker %u: %s: %s", crew->label, w, order_names[kind],
                          answer->text);
    return 0;
}

/* ask -- one order to one worker, and its answer. */
static int
ask(struct bench_crew *crew, unsigned w, const struct order *order, struct answer *answer)
{
    tell(crew, w, order);
    return hear(crew, w, order->kind, answer);
}

/* alloc_shared -- memory that the workers share; NULL: there is none. */
static void *
alloc_shared(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    return p != MAP_FAILED ? p : NULL;
}

/* alloc_crew -- memory of the crew; the latencies are shared with the workers. */
static int
alloc_crew(struct bench_crew *crew, unsigned n_workers, uint64_t count)
{
    unsigned n = n_workers + crew->job.workload->has_writer;

    crew->workers = calloc(n, sizeof *crew->workers);
    if (crew->workers == NULL)
        return bench_fail("out of memory");
    for (unsigned w = 0; w < n; w++)
        crew->workers[w].socket = -1;
    crew->n_workers = n_workers;
    crew->n_members = n;
    crew->latencies = alloc_shared(count * sizeof *crew->latencies);
    crew->shared = alloc_shared(sizeof *crew->shared);
    if (crew->latencies == NULL || crew->shared == NULL)
        return bench_fail("no memory for %llu latencies", (unsigned long long)count);
    return 0;
}

int
bench_crew_start(struct bench_crew *crew, const struct bench_config *config,
                 const char *label, const struct bench_job *job, uint64_t group,
                 bool warm, unsigned n_workers)
{
    const struct order order = {.kind = ORDER_OPEN};
    struct answer answer;
    unsigned n;
    int rc;

    *crew = (struct bench_crew){.system = config->system,
                                .config = *config,
                                .job = *job,
                                .group = group,
                                .warm = warm};
    snprintf(crew->label, sizeof crew->label, "%s", label);
    rc = alloc_crew(crew, n_workers, job->steps);
    n = has_threads(crew) ? crew->n_members : 1;
    for (unsigned w = 0; w < crew->n_members && rc == 0; w += n)
        rc = process_fork(crew, w, n);
    for (unsigned w = 0; w < crew->n_members && rc == 0; w++)
        rc = ask(crew, w, &order, &answer);
    return rc;
}

int
bench_crew_load(struct bench_crew *crew)
{
    const struct order order = {.kind = ORDER_LOAD};
    struct answer answer;

    return crew->job.loaded == 0 ? 0 : ask(crew, 0, &order, &answer);
}

/* write_meanwhile -- the writer's order. */
static void
write_meanwhile(struct bench_crew *crew, uint64_t most, uint64_t start_ns)
{
    const struct order order = {ORDER_WRITE, 0, most, start_ns};

    atomic_store_explicit(&crew->shared->is_over, false, memory_order_relaxed);
    tell(crew, crew->n_workers, &order);
}

/* write_no_more -- end it; ret 0, or 1 after a message. */
static int
write_no_more(struct bench_crew *crew, struct bench_outcome *out)
{
    uint64_t before = crew->job.written;
    struct answer answer;

    atomic_store_explicit(&crew->shared->is_over, true, memory_order_relaxed);
    if (hear(crew, crew->n_workers, ORDER_WRITE, &answer) != 0)
        return 1;
    crew->job.written =
        atomic_load_explicit(&crew->shared->written, memory_order_relaxed);
    out->written = crew->job.written - before;
    out->writer_ns = answer.end_ns - answer.start_ns;
    out->retries += answer.retries;
    return 0;
}

int
bench_crew_run(struct bench_crew *crew, uint64_t first, uint64_t n,
               struct bench_outcome *out)
{
    uint64_t start = UINT64_MAX, end = 0, start_ns = bench_team_start_ns();
    bool has_writer = crew->n_members > crew->n_workers;
    struct answer answer;
    int rc = 0;

    if (has_writer)
        write_meanwhile(crew, first + n, start_ns);

    for (unsigned w = 0; w < crew->n_workers; w++) {
        const struct order order = {ORDER_RUN, first + w, first + n, start_ns};

        tell(crew, w, &order);
    }
    *out = (struct bench_outcome){0};
    for (unsigned w = 0; w < crew->n_workers && rc == 0; w++) {
        rc = hear(crew, w, ORDER_RUN, &answer);
        if (rc != 0)
            break;
        start = answer.start_ns < start ? answer.start_ns : start;
        end = answer.end_ns > end ? answer.end_ns : end;
        out->retries += answer.retries;
        out->warm_traps += answer.warm_traps;
    }
    out->ns = end - start;
    return rc == 0 && has_writer ? write_no_more(crew, out) : rc;
}

/* add_counters -- sum of two counters either of which may not exist. */
static uint64_t
add_counters(uint64_t a, uint64_t b)
{
    return a == BENCH_NONE || b == BENCH_NONE ? BENCH_NONE : a + b;
}

int
bench_crew_counters(struct bench_crew *crew, struct bench_counters *out)
{
    const struct order order = {.kind = ORDER_COUNTERS};
    unsigned n = crew->system->abilities & BENCH_LOCAL_COUNTS ? crew->n_members : 1;
    struct answer answer;

    *out = (struct bench_counters){0};
    for (unsigned w = 0; w < n; w++) {
        if (ask(crew, w, &order, &answer) != 0)
            return 1;
        out->log_bytes = add_counters(out->log_bytes, answer.counters.log_bytes);
        out->syncs = add_counters(out->syncs, answer.counters.syncs);
        out->traps = add_counters(out->traps, answer.counters.traps);
        out->retries += answer.counters.retries;
    }
    return 0;
}

int
bench_crew_close(struct bench_crew *crew)
{
    const struct order order = {.kind = ORDER_CLOSE};
    struct answer answer;
    int rc = 0;

    for (unsigned w = crew->n_members; w-- > 0 && rc == 0;) {
        rc = ask(crew, w, &order, &answer);
        if (rc == 0)
            worker_reap(crew, w, NULL);
    }
    return rc;
}

int
bench_crew_verify(struct bench_crew *crew)
{
    const struct order order = {.kind = ORDER_VERIFY};
    struct answer answer;
    int rc = process_fork(crew, 0, 1);

    if (rc == 0)
        rc = ask(crew, 0, &order, &answer);
    if (rc == 0)
        worker_reap(crew, 0, NULL);
    return rc;
}

void
bench_crew_stop(struct bench_crew *crew)
{
    for (unsigned w = 0; crew->workers != NULL && w < crew->n_members; w++) {
        if (crew->workers[w].pid > 0)
            kill(crew->workers[w].pid, SIGKILL);
        worker_reap(crew, w, NULL);
    }
    free(crew->workers);
    crew->workers = NULL;
    if (crew->latencies != NULL)
        munmap(crew->latencies, crew->job.steps * sizeof *crew->latencies);
    crew->latencies = NULL;
    if (crew->shared != NULL)
        munmap(crew->shared, sizeof *crew->shared);
    crew->shared = NULL;
}
