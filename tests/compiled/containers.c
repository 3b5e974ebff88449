/* SPDX-License-Identifier: MIT */
/*
 * containers.c -- container libraries that know nothing of libxac, in a segment.
 *
 * GOAL    With hooks (xac-cc) and without (traps), each in a process of its own and all in one
 *         environment: after kills at random moments, and after transactions that are rolled back,
 *         each container is sound, all hold the same elements, and what was committed is there.
 * METHOD  Each transaction inserts, erases or changes one element in all containers.
 *
 * containers kill N SEED PROGRAM...   processes of these programs, each of which is
 * containers work WHO SEED            this one, compiled in one way or another
 * containers alone N SEED             N transactions of one process
 *
 * -DANNOUNCES: compiled by xac-cc, and promises to announce each store.  XAC_POLICY in the
 * environment is a number; with DURABLY transactions are durable, and at times all processes are
 * killed.
 */
#define _GNU_SOURCE
#include "containers.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <xac.h>

#define LENGTH  ((size_t)4 << 20)
#define PAGE    4096
#define KEYS    300
#define KINDS   12 /* of containers, at most */
#define WORKERS 4
#define WITNESS \
 3 /* the one that is not killed alone: nondurable transactions need a survivor */

/* In the root area of the segment. */
struct root {
    uint64_t is_made;
    uint64_t n_committed[WORKERS];
    void *all[KINDS];
};

/* Outside of the segment; it outlives the workers. */
struct board {
    _Atomic bool ends;
    _Atomic uint64_t n_acknowledged[WORKERS];
    _Atomic uint64_t
        n_starts[WORKERS]; /* at least, since then: each may have committed one more */
};

static char *base;
static uint64_t seed;

void
stop_at(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: not so: %s; %s\n", file, line, what, xLastError());
    abort();
}

void *
take(size_t size)
{
    void *p = xMalloc(base, size);

    must(p != NULL);
    return p;
}

void *
take_apart(size_t size)
{
    return (char *)take(size + 2 * (size_t)PAGE) + PAGE;
}

void
give(void *p)
{
    must(xFree(base, p) == 0);
}

/* below -- a number below n. */
static uint64_t
below(uint64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % n;
}

/* kind -- of containers; NULL: there are fewer. */
static const struct container *
kind(size_t k)
{
    size_t n = 0;

    while (containers_c[n].name != NULL)
        n++;
    if (k < n)
        return &containers_c[k];
    return containers_cc[k - n].name != NULL ? &containers_cc[k - n] : NULL;
}

/* ---- A transaction ----------------------------------------------------------------------- */

static void
change(struct root *root, uint64_t key, bool erases, uint64_t value)
{
    bool is_there = kind(0)->find(root->all[0], key) != NULL;

    for (size_t k = 0; kind(k) != NULL; k++) {
        const struct container *c = kind(k);
        uint64_t *at = c->find(root->all[k], key);

        must((at != NULL) == is_there);
        if (at == NULL)
            c->insert(root->all[k], key, value);
        else if (erases)
            c->erase(root->all[k], key);
        else
            *at += value;
    }
}

static void
make_all(struct root *root)
{
    for (size_t k = 0; kind(k) != NULL; k++)
        root->all[k] = kind(k)->make();
    root->is_made = 1;
}

/* transact -- commit one change, and perhaps roll another one back; ret how many it has committed
   by now. */
static uint64_t
transact(unsigned who)
{
    bool is_given_up;
    uint64_t n;
    int rc;

    do {
        struct root *root;

        must(xbegin() == 0);
        root = (struct root *)xRoot(base);
        must(root != NULL);
        if (root->is_made == 0)
            make_all(root);
        change(root, below(KEYS), below(2) == 0, below(1000));
        n = ++root->n_committed[who];
        is_given_up = below(8) == 0;
        must(!is_given_up || xAbort() == 0);
        rc = xend();
        must(rc == COMMITTED || rc == ABORTED);
    } while (rc == ABORTED);
    must(!is_given_up);
    return n;
}

/* ---- What must hold ---------------------------------------------------------------------- */

struct sums {
    uint64_t n, keys, values;
};

static void
add(uint64_t key, uint64_t value, void *arg)
{
    struct sums *s = (struct sums *)arg;

    s->n++;
    s->keys += (key + 1) * (key + 7);
    s->values += value * (key + 3);
}

/* verify -- each container, and all beside each other; ret elements. */
static uint64_t
verify(const struct board *board)
{
    struct sums first = {0}, s;
    struct xac_heap_totals totals;
    const struct root *root;

    must(xbeginQuery() == 0);
    root = (const struct root *)xRoot(base);
    must(root != NULL);
    for (size_t k = 0; kind(k) != NULL && root->is_made != 0; k++) {
        s = (struct sums){0};
        kind(k)->walk(root->all[k], add, &s);
        if (k == 0)
            first = s;
        must(s.n == first.n && s.keys == first.keys && s.values == first.values);
    }
    for (unsigned who = 0; who < WORKERS && board != NULL; who++) {
        uint64_t acknowledged =
            atomic_load_explicit(&board->n_acknowledged[who], memory_order_relaxed);

        must(root->n_committed[who] >= acknowledged);
        must(root->n_committed[who]
             <= acknowledged
                    + atomic_load_explicit(&board->n_starts[who], memory_order_relaxed));
    }
    must(xHeapCheck(base, &totals, sizeof totals) == 0);
    must(xendQuery() == 0);
    return first.n;
}

static void
attach(void)
{
    const char *policy = getenv("XAC_POLICY");

    must(policy == NULL || xSetOption(XAC_OPT_POLICY, strtoull(policy, NULL, 10)) == 0);
#ifdef ANNOUNCES
    must(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED) == 0);
#endif
    must(xInit("db", getenv("DURABLY") != NULL ? DURABLE : NONDURABLE) == 0);
    base = (char *)xMmapAt("data.db", 0, LENGTH, XAC_SAME_ADDRESS);
    must((void *)base != MAP_FAILED);
}

static struct board *
board_map(void)
{
    int fd = open("board", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *p;

    must(fd >= 0 && ftruncate(fd, sizeof(struct board)) == 0);
    p = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(p != MAP_FAILED);
    close(fd);
    return (struct board *)p;
}

/* ---- Processes --------------------------------------------------------------------------- */

static void
work(unsigned who)
{
    struct board *board = board_map();

    must(who < WORKERS);
    attach();
    while (!atomic_load_explicit(&board->ends, memory_order_relaxed)) {
        uint64_t n = transact(who);

        atomic_store_explicit(&board->n_acknowledged[who], n, memory_order_relaxed);
        atomic_store_explicit(&board->n_starts[who], 1, memory_order_relaxed);
    }
    must(xShutdown() == 0);
}

static pid_t
start(struct board *board, const char *program, unsigned who)
{
    char number[24], random[24];
    pid_t pid;

    snprintf(number, sizeof number, "%u", who);
    snprintf(random, sizeof random, "%" PRIu64, below(UINT32_MAX));
    atomic_fetch_add_explicit(&board->n_starts[who], 1, memory_order_relaxed);
    pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        execl(program, program, "work", number, random, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* finish -- wait for a worker, which is killed, or ends well. */
static void
finish(pid_t pid, bool is_killed)
{
    int status;

    must(!is_killed || kill(pid, SIGKILL) == 0);
    must(waitpid(pid, &status, 0) == pid);
    must(is_killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0);
}

/* kill_workers -- at random moments, one at a time or all; at last they end. */
static void
kill_workers(uint64_t n, char **programs, unsigned n_programs)
{
    struct board *board = board_map();
    pid_t pid[WORKERS];
    uint64_t sum = 0;

    memset((void *)board, 0, sizeof *board);
    for (unsigned who = 0; who < WORKERS; who++)
        pid[who] = start(board, programs[who % n_programs], who);
    while (atomic_load_explicit(&board->n_acknowledged[WITNESS], memory_order_relaxed)
           == 0)
        (void)usleep(1000);
    for (uint64_t i = 1; i <= n; i++) {
        struct timespec soon = {.tv_nsec = (long)(1000000 + below(40000000))};
        unsigned victim = (unsigned)below(WITNESS);
        bool is_all = i % 5 == 0 && getenv("DURABLY") != NULL;

        must(nanosleep(&soon, NULL) == 0);
        for (unsigned who = 0; who < WORKERS; who++) {
            if (is_all || who == victim)
                finish(pid[who], true);
        }
        if (is_all) {
            attach();
            (void)verify(board);
            must(xShutdown() == 0);
        }
        for (unsigned who = 0; who < WORKERS; who++) {
            if (is_all || who == victim)
                pid[who] = start(board, programs[(who + i) % n_programs], who);
        }
    }
    atomic_store_explicit(&board->ends, true, memory_order_relaxed);
    for (unsigned who = 0; who < WORKERS; who++)
        finish(pid[who], false);
    attach();
    n = verify(board);
    must(xShutdown() == 0);
    for (unsigned who = 0; who < WORKERS; who++)
        sum += atomic_load_explicit(&board->n_acknowledged[who], memory_order_relaxed);
    printf("%" PRIu64 " transactions, %" PRIu64 " elements\n", sum, n);
}

static void
run_alone(uint64_t n)
{
    attach();
    for (uint64_t i = 1; i <= n; i++) {
        must(transact(0) > 0);
        if (i % 100 == 0)
            (void)verify(NULL);
    }
    n = verify(NULL);
    must(xShutdown() == 0);
    printf("%" PRIu64 " elements\n", n);
}

int
main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[1] : "";
    uint64_t n = argc > 3 ? strtoull(argv[2], NULL, 10) : 0;

    seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    if (strcmp(what, "kill") == 0 && argc > 4)
        kill_workers(n, argv + 4, (unsigned)argc - 4);
    else if (strcmp(what, "work") == 0)
        work((unsigned)n);
    else if (strcmp(what, "alone") == 0)
        run_alone(n);
    else
        return 2;
    return 0;
}
