/* SPDX-License-Identifier: MIT */
/*
 * crashdemo.c -- writers are killed in the middle; is everything still there that they
 * had been told was committed?
 *
 * WHAT      P processes insert records into one tree, each insert a durable transaction,
 *           and write the record's number to a pipe after the insert has returned, that
 *           is after xend() returned COMMITTED.  The parent, which has no part in the
 *           environment, collects the numbers, kills all writers with SIGKILL at a
 *           random moment, runs xrecover, and has a new process look for every number.
 * FAILS     exit 1 if one acknowledged record is missing or wrong, if the tree is
 *           damaged, or if it holds what nobody inserted.  --break shows that it can:
 *           `nondurable` promises nothing after a crash, `drop-log` deletes the log.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <xac.h>

#include "trees/btree.h"

#define SEGMENT_BYTES ((size_t)256 << 20)
#define VALUE_WORDS   16u
#define PROCS_MAX     64u

/* The writers run this long after the first acknowledgement, a random time between. */
#define RUN_MS_MIN 200u
#define RUN_MS_MAX 1700u

/* Time for the first acknowledgement to come. */
#define FIRST_ACK_MS 30000

/* A record's number: the writer in the bits from here on, its count below. */
#define WRITER_SHIFT 40u

struct demo {
    char env[PATH_MAX];  /* environment directory                                     */
    char file[PATH_MAX]; /* the mapped file                                           */
    const char *xrecover;
    uint64_t seed;
    unsigned n_procs;
    bool nondurable;
    bool drop_log;
    pid_t pids[PROCS_MAX];
    uint64_t *acked; /* numbers, in the order in which they came                      */
    size_t n_acked;
    size_t acked_max;
};

/* What the checker counts while it walks the tree. */
struct census {
    const struct demo *demo;
    uint64_t n;       /* records                                                      */
    uint64_t strange; /* whose key or value nobody wrote                              */
};

/* mix64 -- finalizer of splitmix64: a bijection. */
static uint64_t
mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* record_make -- key and value of record `number`; the value begins with the number. */
static void
record_make(const struct demo *d, uint64_t number, unsigned char key[8],
            uint64_t value[VALUE_WORDS])
{
    uint64_t k = mix64(number + mix64(d->seed));

    tree_key_u64(k, key);
    value[0] = number;
    for (unsigned i = 1; i < VALUE_WORDS; i++)
        value[i] = mix64(k + i);
}

/* fail -- message with errno or xac words; ret 1. */
static int
fail(const char *what, int code)
{
    fprintf(stderr, "crashdemo: %s: %s %s\n", what, xStrerror(code), xLastError());
    return 1;
}

/* attach -- open environment, segment and tree; ret 0, or 1 after a message. */
static int
attach(const struct demo *d, struct btree *t, bool create)
{
    const struct btree_config sizes = {.key_size = 8,
                                       .value_size = VALUE_WORDS * 8,
                                       .block_size = 4096};
    void *base;
    int rc = xInit(d->env, d->nondurable ? NONDURABLE : DURABLE);

    if (rc != 0)
        return fail("xInit", rc);
    base = xMmap(d->file, SEGMENT_BYTES);
    if (base == MAP_FAILED)
        return fail("xMmap", errno);
    rc = create ? btree_create(t, base, SEGMENT_BYTES, &sizes)
                : btree_open(t, base, SEGMENT_BYTES);
    if (rc != 0)
        return fail(create ? "btree_create" : "btree_open", rc);
    t->hints = true;
    return 0;
}

/* ---- Processes that take part in the environment ---------------------------------- */

/* make_tree -- an empty tree, cleanly shut down; ret exit status. */
static int
make_tree(const struct demo *d)
{
    struct btree t;
    int rc;

    if (attach(d, &t, true) != 0)
        return 1;
    rc = xShutdown();
    return rc == 0 ? 0 : fail("xShutdown", rc);
}

/* write_until_killed -- insert, acknowledge, insert, ...; returns only on an error. */
static int
write_until_killed(const struct demo *d, unsigned writer, int ack_fd)
{
    uint64_t value[VALUE_WORDS];
    unsigned char key[8];
    struct btree t;

    if (attach(d, &t, false) != 0)
        return 1;
    for (uint64_t i = 0;; i++) {
        uint64_t number = (uint64_t)writer << WRITER_SHIFT | i;
        int rc;

        record_make(d, number, key, value);
        rc = btree_insert(&t, key, value, TREE_ADD, NULL);
        if (rc != 0)
            return fail("btree_insert", rc);
        /* 8 bytes into a pipe: all or nothing, and they outlive the writer. */
        if (write(ack_fd, &number, sizeof number) != (ssize_t)sizeof number)
            return fail("write", errno);
    }
}

/* count_record -- callback of btree_scan(). */
static int
count_record(void *arg, const void *key, const void *value)
{
    uint64_t expected[VALUE_WORDS], number;
    struct census *c = arg;
    unsigned char k[8];

    memcpy(&number, value, sizeof number);
    record_make(c->demo, number, k, expected);
    c->n++;
    if (memcmp(k, key, sizeof k) != 0 || memcmp(expected, value, sizeof expected) != 0
        || number >> WRITER_SHIFT >= c->demo->n_procs)
        c->strange++;
    return 0;
}

/* count_found -- acknowledged records that are there with their value. */
static int
count_found(const struct demo *d, struct btree *t, size_t *foundp)
{
    uint64_t value[VALUE_WORDS], there[VALUE_WORDS];
    unsigned char key[8];

    *foundp = 0;
    for (size_t i = 0; i < d->n_acked; i++) {
        int rc;

        record_make(d, d->acked[i], key, value);
        rc = btree_search(t, key, there);
        if (rc == 0 && memcmp(value, there, sizeof value) == 0)
            ++*foundp;
        else if (rc != 0 && rc != ENOENT)
            return fail("btree_search", rc);
    }
    return 0;
}

/* check_all -- print what was found and what was lost; ret exit status. */
static int
check_all(const struct demo *d)
{
    struct census census = {.demo = d};
    struct btree_report report;
    struct btree t;
    size_t found;
    int rc, rc2;

    if (attach(d, &t, false) != 0 || count_found(d, &t, &found) != 0)
        return 1;
    rc = btree_check(&t, &report);
    if (rc != 0 && rc != EUCLEAN)
        return fail("btree_check", rc);
    if (rc == 0)
        rc = btree_scan(&t, NULL, NULL, count_record, &census);
    if (rc != 0 && rc != EUCLEAN)
        return fail("btree_scan", rc);
    if (rc == 0)
        printf(
            "tree: intact; %llu records, %llu of them not acknowledged yet, %llu wrong\n",
            (unsigned long long)census.n, (unsigned long long)(census.n - found),
            (unsigned long long)census.strange);
    else
        printf("tree: damaged: %s\n", report.text);
    printf("acknowledged %zu, found %zu, lost %zu\n", d->n_acked, found,
           d->n_acked - found);
    rc2 = xShutdown();
    if (rc2 != 0)
        return fail("xShutdown", rc2);
    if (rc == 0 && census.n > found + d->n_procs) {
        fprintf(stderr,
                "crashdemo: each writer can have one record committed and not yet "
                "acknowledged, not more\n");
        return 1;
    }
    return rc == 0 && census.strange == 0 && found == d->n_acked ? 0 : 1;
}

/* ---- The parent ------------------------------------------------------------------- */

/* wait_for -- ret exit status of a child; 1 and a message if a signal ended it. */
static int
wait_for(pid_t pid, const char *what)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return fail(what, errno);
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "crashdemo: %s: %s\n", what, strsignal(WTERMSIG(status)));
        return 1;
    }
    return WEXITSTATUS(status);
}

/* in_child -- run a function in a new process; ret its exit status. */
static int
in_child(const struct demo *d, const char *what, int (*run)(const struct demo *))
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        int rc = run(d);

        fflush(NULL);
        _exit(rc);
    }
    return pid < 0 ? fail("fork", errno) : wait_for(pid, what);
}

/* start_writers -- fork them; ret the end of the pipe to read from, or -1. */
static int
start_writers(struct demo *d)
{
    pid_t parent = getpid();
    int ends[2];

    if (pipe(ends) != 0)
        return -1;
    fflush(NULL);
    for (unsigned w = 0; w < d->n_procs; w++) {
        d->pids[w] = fork();
        if (d->pids[w] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(1);
            close(ends[0]);
            _exit(write_until_killed(d, w, ends[1]));
        }
    }
    close(ends[1]);
    return ends[0];
}

/* collect -- read what has come; ret bytes, 0 at the end, -1 on an error. */
static ssize_t
collect(struct demo *d, int fd)
{
    uint64_t numbers[512];
    ssize_t n = read(fd, numbers, sizeof numbers);
    size_t k = n > 0 ? (size_t)n / sizeof numbers[0] : 0;

    if (d->n_acked + k > d->acked_max) {
        size_t max = (d->acked_max + k) * 2;
        uint64_t *p = realloc(d->acked, max * sizeof *p);

        if (p == NULL)
            return -1;
        d->acked = p;
        d->acked_max = max;
    }
    for (size_t i = 0; i < k; i++)
        d->acked[d->n_acked++] = numbers[i];
    return n;
}

/* now_ms -- CLOCK_MONOTONIC. */
static uint64_t
now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* collect_until -- ret 0 when run_ms have passed since the first acknowledgement. */
static int
collect_until(struct demo *d, int fd, unsigned run_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t end = now_ms() + FIRST_ACK_MS;
    bool first = true;

    for (uint64_t now; (now = now_ms()) < end;) {
        if (poll(&p, 1, (int)(end - now)) <= 0)
            continue;
        if (collect(d, fd) <= 0)
            return fail("the writers ended by themselves", EIO);
        if (first)
            end = now_ms() + run_ms;
        first = false;
    }
    return first ? fail("the writers", ETIMEDOUT) : 0;
}

/* kill_writers -- ret 0 if all ran until they were killed. */
static int
kill_writers(struct demo *d, int fd)
{
    unsigned killed = 0;

    for (unsigned w = 0; w < d->n_procs; w++)
        if (d->pids[w] > 0)
            kill(d->pids[w], SIGKILL);
    for (unsigned w = 0; w < d->n_procs; w++) {
        int status = 0;

        if (d->pids[w] > 0 && waitpid(d->pids[w], &status, 0) == d->pids[w]
            && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            killed++;
    }
    while (collect(d, fd) > 0) /* what they had sent before they died */
        ;
    if (killed == d->n_procs)
        return 0;
    fprintf(stderr, "crashdemo: only %u of %u writers were there to be killed\n", killed,
            d->n_procs);
    return 1;
}

/* drop_log -- delete every log file, which nobody should do. */
static int
drop_log(const struct demo *d)
{
    DIR *dir = opendir(d->env);
    struct dirent *e;
    int rc = 0;

    if (dir == NULL)
        return fail(d->env, errno);
    while ((e = readdir(dir)) != NULL)
        if (strncmp(e->d_name, "xac-log", 7) == 0
            && unlinkat(dirfd(dir), e->d_name, 0) != 0)
            rc = fail(e->d_name, errno);
    closedir(dir);
    return rc;
}

/* recover -- by the tool, or by the function if no tool is named; in a child. */
static int
recover(const struct demo *d)
{
    int rc;

    if (d->xrecover != NULL) {
        execlp(d->xrecover, d->xrecover, d->env, (char *)NULL);
        return fail(d->xrecover, errno);
    }
    rc = xRecover(d->env);
    return rc == 0 ? 0 : fail("xRecover", rc);
}

/* write_and_kill -- the writers' life; ret 0, or 1 after a message. */
static int
write_and_kill(struct demo *d)
{
    unsigned run_ms = RUN_MS_MIN + (unsigned)(mix64(d->seed) % (RUN_MS_MAX - RUN_MS_MIN));
    int fd = start_writers(d), rc, rc2;

    if (fd < 0)
        return fail("pipe", errno);
    rc = collect_until(d, fd, run_ms);
    rc2 = kill_writers(d, fd);
    close(fd);
    if (rc != 0 || rc2 != 0)
        return 1;
    printf("%u writers killed with SIGKILL %u ms after the first of %zu "
           "acknowledgements\n",
           d->n_procs, run_ms, d->n_acked);
    return 0;
}

/* run_demo -- make, write, kill, recover, check; ret exit status. */
static int
run_demo(struct demo *d)
{
    printf("crashdemo: %u writers, %s, seed %llu\n", d->n_procs,
           d->nondurable ? "nondurable" : "durable", (unsigned long long)d->seed);
    if (in_child(d, "making the tree", make_tree) != 0 || write_and_kill(d) != 0)
        return 1;
    if (d->drop_log && drop_log(d) != 0)
        return 1;
    printf("$ %s %s\n", d->xrecover != NULL ? d->xrecover : "xRecover()", d->env);
    if (in_child(d, "recovery", recover) != 0)
        return 1;
    return in_child(d, "the check", check_all);
}

/* usage -- ret 2. */
static int
usage(void)
{
    fputs("usage: crashdemo [--procs P] [--seed S] [--xrecover PROGRAM]\n"
          "                 [--break nondurable|drop-log] DIR\n"
          "DIR must not exist; it is made and left there.\n",
          stderr);
    return 2;
}

/* parse -- command line; ret 0, or 2 after a message. */
static int
parse(struct demo *d, int argc, char **argv)
{
    static const struct option options[] = {{"procs", required_argument, NULL, 'p'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"xrecover", required_argument, NULL, 'x'},
                                            {"break", required_argument, NULL, 'b'},
                                            {0}};
    int code;

    while ((code = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (code == 'p')
            d->n_procs = (unsigned)strtoul(optarg, NULL, 10);
        else if (code == 's')
            d->seed = strtoull(optarg, NULL, 10);
        else if (code == 'x')
            d->xrecover = optarg;
        else if (code == 'b' && strcmp(optarg, "nondurable") == 0)
            d->nondurable = true;
        else if (code == 'b' && strcmp(optarg, "drop-log") == 0)
            d->drop_log = true;
        else
            return usage();
    }
    if (optind + 1 != argc || d->n_procs < 1 || d->n_procs > PROCS_MAX)
        return usage();
    if (strlen(argv[optind]) > PATH_MAX - 16)
        return usage();
    snprintf(d->env, sizeof d->env, "%s/env", argv[optind]);
    snprintf(d->file, sizeof d->file, "%s/crash.tree", argv[optind]);
    if (mkdir(argv[optind], 0755) != 0) {
        fprintf(stderr, "crashdemo: %s: %s\n", argv[optind], strerror(errno));
        return 2;
    }
    return 0;
}

int
main(int argc, char **argv)
{
    static struct demo d = {.n_procs = 4};
    int rc;

    d.seed = now_ms() ^ (uint64_t)getpid() << 20;
    rc = parse(&d, argc, argv);
    if (rc == 0)
        rc = run_demo(&d);
    free(d.acked);
    return rc;
}
