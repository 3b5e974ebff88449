/* SPDX-License-Identifier: MIT */
/*
 * group_load.c -- what group.sh runs beside a group of three nodes.
 *
 *   group_load ports N                            N ports of 127.0.0.1 that are free now
 *   group_load prepare SYSTEM PLACE               make what records lie in; PLACE is a directory (xac), or ADDRESS:PORT
 *   group_load leads SYSTEM PLACE                 exit code 0: the node there leads; 1: another one, or it does not answer
 *   group_load put SYSTEM PLACE WRITERS SECONDS SEED
 *                                                 as many records as WRITERS processes can put, each waiting for its
 *                                                 acknowledgement; prints how many, how long, latencies, and the writers'
 *                                                 processor time
 *   group_load count SYSTEM PLACE                 how many records there are
 */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kit/util.h"
#include "group_client.h"

#define WRITERS_MAX 64u
#define PORTS_MAX   64u
#define SECONDS_MAX 3600u

/* Latencies that are kept, of each writer: beyond them only the number of records and the longest are. */
#define KEPT ((size_t)1 << 21)

/* Latencies are in units of 100 ns: up to seven minutes in 32 bits. */
#define UNIT_NS 100u

#define LOOK_NS UINT64_C(1000000)

struct writer {
    uint64_t n;      /* records                                                       */
    uint64_t end_ns; /* of the last one                                               */
    uint32_t longest;
    char words[256]; /* "": no error                                                  */
    uint32_t took[KEPT];
};

/* What the writers and their parent share. */
struct run {
    _Atomic unsigned n_ready;
    _Atomic uint64_t start_ns; /* 0: wait                                             */
    struct writer writer[WRITERS_MAX];
};

static const struct group_client *const clients[] = {&group_client_xac,
                                                     &group_client_dqlite,
                                                     &group_client_etcd};

static _Noreturn void
die(const char *what, const char *why)
{
    fprintf(stderr, "group_load: %s: %s\n", what, why);
    exit(2);
}

static const struct group_client *
client_named(const char *name)
{
    for (size_t i = 0; i < sizeof clients / sizeof clients[0]; i++) {
        if (strcmp(clients[i]->name, name) == 0)
            return clients[i];
    }
    die(name, "no such system; there are xac, dqlite and etcd");
}

static uint64_t
number(const char *text, uint64_t low, uint64_t high)
{
    uint64_t n;

    if (!bench_parse_u64(text, &n) || n < low || n > high)
        die(text, "no number that is wanted here");
    return n;
}

/* ---- A writer ----------------------------------------------------------------------- */

/* put_all -- until the time is over; ret NULL, or words. */
static const char *
put_all(const struct group_client *client, void *handle, struct writer *w, uint64_t seed,
        uint64_t until_ns)
{
    unsigned char key[BENCH_KEY_BYTES], value[BENCH_VALUE_BYTES];
    uint64_t now = bench_now_ns();

    w->end_ns = now;
    while (now < until_ns) {
        uint64_t k = bench_key(seed, w->n), took;
        const char *words;

        bench_key_encode(k, key);
        bench_value_fill(k, value);
        words = client->put(handle, key, value);
        if (words != NULL)
            return words;
        w->end_ns = bench_now_ns();
        took = (w->end_ns - now) / UNIT_NS;
        now = w->end_ns;
        if (took > w->longest)
            w->longest = (uint32_t)took;
        if (w->n < KEPT)
            w->took[w->n] = (uint32_t)took;
        w->n++;
    }
    return NULL;
}

/* write_records -- in a process of its own. */
static _Noreturn void
write_records(const struct group_client *client, const char *place, struct run *run,
              unsigned i, uint64_t seconds, uint64_t seed)
{
    struct writer *w = &run->writer[i];
    const char *words, *left;
    uint64_t start_ns;
    void *handle;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    words = client->open(place, &handle);
    if (words == NULL) {
        /* relaxed: only counted. */
        atomic_fetch_add_explicit(&run->n_ready, 1, memory_order_relaxed);
        /* relaxed: nothing else is read because of it. */
        while ((start_ns = atomic_load_explicit(&run->start_ns, memory_order_relaxed))
               == 0)
            bench_sleep_until(bench_now_ns() + LOOK_NS);
        bench_sleep_until(start_ns);
        words =
            put_all(client, handle, w, seed, start_ns + seconds * UINT64_C(1000000000));
        if (words != NULL) /* before leaving, which has words of its own */
            (void)snprintf(w->words, sizeof w->words, "%s", words);
        left = client->close(handle);
        words = words == NULL ? left : w->words;
    }
    if (words != NULL && words != w->words)
        (void)snprintf(w->words, sizeof w->words, "%s", words);
    _exit(words == NULL ? 0 : 1);
}

/* ---- All of them -------------------------------------------------------------------- */

/* reap -- a writer; in  flags  of waitpid(); ret false: none has ended. */
static bool
reap(const struct run *run, const pid_t pid[], unsigned n, int flags)
{
    int status;
    pid_t ended = waitpid(-1, &status, flags);

    if (ended <= 0)
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (pid[i] == ended && status != 0)
            die("a writer", run->writer[i].words[0] != '\0' ? run->writer[i].words
                                                            : "has been killed");
    }
    return true;
}

/* start -- all writers, as soon as each has opened. */
static void
start(struct run *run, const pid_t pid[], unsigned n)
{
    /* relaxed: only counted. */
    while (atomic_load_explicit(&run->n_ready, memory_order_relaxed) < n) {
        if (reap(run, pid, n, WNOHANG))
            die("a writer", "has ended");
        bench_sleep_until(bench_now_ns() + LOOK_NS);
    }
    /* relaxed: nothing else is read because of it. */
    atomic_store_explicit(&run->start_ns, bench_now_ns() + 10 * LOOK_NS,
                          memory_order_relaxed);
}

/* say -- what all have done. */
static void
say(struct run *run, unsigned n_writers)
{
    uint64_t start_ns =
        atomic_load_explicit(&run->start_ns,
                             memory_order_relaxed); /* no other process is left */
    uint64_t n = 0, end_ns = start_ns;
    uint32_t longest = 0, *took;
    size_t n_took = 0;
    struct rusage use;

    for (unsigned i = 0; i < n_writers; i++)
        n += run->writer[i].n;
    took = (uint32_t *)calloc(n + 1, sizeof took[0]);
    if (took == NULL || n == 0)
        die("put", n == 0 ? "no record was acknowledged in time" : "out of memory");
    for (unsigned i = 0; i < n_writers; i++) {
        const struct writer *w = &run->writer[i];
        size_t kept = w->n < KEPT ? w->n : KEPT;

        memcpy(took + n_took, w->took, kept * sizeof took[0]);
        n_took += kept;
        end_ns = w->end_ns > end_ns ? w->end_ns : end_ns;
        longest = w->longest > longest ? w->longest : longest;
    }
    bench_sort_u32(took, n_took);
    (void)getrusage(RUSAGE_CHILDREN, &use);
    printf("%" PRIu64 " %.4f %.1f %.1f %.1f %.3f\n", n, (double)(end_ns - start_ns) / 1e9,
           bench_percentile(took, n_took, 50) * (UNIT_NS / 1e3),
           bench_percentile(took, n_took, 99) * (UNIT_NS / 1e3),
           longest * (UNIT_NS / 1e3),
           (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec)
               + (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6);
    free(took);
}

static void
put(const struct group_client *client, const char *place, unsigned n, uint64_t seconds,
    uint64_t seed)
{
    pid_t pid[WRITERS_MAX];
    const char *words = client->share != NULL ? client->share() : NULL;
    struct run *run = (struct run *)mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (run == MAP_FAILED || words != NULL)
        die("memory", words != NULL ? words : strerror(errno));
    for (unsigned i = 0; i < n; i++) {
        pid[i] = fork();
        if (pid[i] < 0)
            die("fork", strerror(errno));
        if (pid[i] == 0)
            write_records(client, place, run, i, seconds, bench_key(seed, i));
    }
    start(run, pid, n);
    while (reap(run, pid, n, 0))
        ;
    say(run, n);
    (void)munmap(run, sizeof *run);
}

/* ---- The rest ----------------------------------------------------------------------- */

/* ports -- that are free as long as nobody else asks for one. */
static void
ports(unsigned n)
{
    int fd[PORTS_MAX];

    for (unsigned i = 0; i < n; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t len = sizeof at;

        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd[i] < 0 || bind(fd[i], (const struct sockaddr *)&at, len) != 0
            || getsockname(fd[i], (struct sockaddr *)&at, &len) != 0)
            die("port", strerror(errno));
        printf("%u\n", ntohs(at.sin_port));
    }
    for (unsigned i = 0; i < n; i++)
        (void)close(fd[i]);
}

static void
count(const struct group_client *client, const char *place)
{
    void *handle;
    uint64_t n = 0;
    const char *words = client->open(place, &handle);

    if (words == NULL)
        words = client->count(handle, &n);
    if (words == NULL)
        words = client->close(handle);
    if (words != NULL)
        die(place, words);
    printf("%" PRIu64 "\n", n);
}

/* leads -- ret the exit code. */
static int
leads(const struct group_client *client, const char *place)
{
    bool does = false;

    if (client->leads == NULL)
        die(client->name, "xraftd status says which node leads");
    return client->leads(place, &does) == NULL && does ? 0 : 1;
}

int
main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    const struct group_client *client;
    const char *words;

    if (argc == 3 && strcmp(command, "ports") == 0) {
        ports((unsigned)number(argv[2], 1, PORTS_MAX));
        return fflush(stdout) == 0 ? 0 : 2;
    }
    client = argc >= 4 ? client_named(argv[2]) : NULL;
    if (argc == 4 && strcmp(command, "prepare") == 0) {
        words = client->prepare != NULL ? client->prepare(argv[3]) : NULL;
        if (words != NULL)
            die(argv[3], words);
    } else if (argc == 4 && strcmp(command, "leads") == 0) {
        return leads(client, argv[3]);
    } else if (argc == 4 && strcmp(command, "count") == 0) {
        count(client, argv[3]);
    } else if (argc == 7 && strcmp(command, "put") == 0) {
        put(client, argv[3], (unsigned)number(argv[4], 1, WRITERS_MAX),
            number(argv[5], 1, SECONDS_MAX), number(argv[6], 0, UINT64_MAX));
    } else {
        fputs("usage: group_load ports N | prepare SYSTEM PLACE | leads SYSTEM PLACE |\n"
              "       put SYSTEM PLACE WRITERS SECONDS SEED | count SYSTEM PLACE\n",
              stderr);
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 2;
}
