/* SPDX-License-Identifier: MIT */
/*
 * check_linear.c -- three nodes of a group on a network that is cut, and programs at all of them that write and read.
 *
 * GOAL    Whatever is killed, stopped or cut off, and whenever: no acknowledged write is lost, or is there twice, or elsewhere;
 *         no two nodes lead at once; each query sees one state of the list, one with a token no less than that, and
 *         a linearizable one all that was acknowledged before it, and all that queries had seen before it.
 *         linear_judge.h says what is checked.
 * METHOD  Each node is in a network namespace of its own.  A writer and a reader at each node note what they do, by one clock,
 *         in files; what was killed is started again.  In the end the nodes' files must be equal, and a checker that knows
 *         nothing of the library judges all that was noted.  Random rounds, from a seed that is printed: XAC_ROUNDS of
 *         them.  A history that is wrong stays in the build directory: XAC_HISTORY=FILE tests/group/check_judge.
 */
#include <config.h>

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group_run.h"
#include "linear_file.h"
#include "linear_net.h"
#include "tests/common/env.h"

#define FILE_NAME  "list"
#define PATIENCE_S 60
#define OPTIONS    "-q -s 1 --insecure-listen"

struct test {
    struct group g;
    struct net net;
    pid_t client[BOARD_LINES]; /* 0: it does not run; the first ones write             */
    uint64_t n_lives;
    FILE *history;
    uint64_t seed;
};

/* is_writer, node_of -- of a client. */
static bool
is_writer(unsigned client)
{
    return client < GROUP_NODES;
}

static unsigned
node_of(unsigned client)
{
    return client % GROUP_NODES + 1;
}

/* ---- Clients ------------------------------------------------------------------------ */

static void
start_client(struct test *t, unsigned i)
{
    const char *top = getenv("top_builddir");
    char path[4096], dir[16], node[8], line[8], life[32], history[64];

    must_eq(t->client[i], 0);
    (void)snprintf(path, sizeof path, "%s/tests/group/linear_client",
                   top != NULL ? top : ".");
    (void)snprintf(dir, sizeof dir, "n%u", node_of(i));
    (void)snprintf(node, sizeof node, "%u", node_of(i));
    (void)snprintf(line, sizeof line, "%u", i);
    (void)snprintf(life, sizeof life, "%" PRIu64, ++t->n_lives);
    (void)snprintf(history, sizeof history, "h/%" PRIu64, t->n_lives);
    t->client[i] = proc_fork();
    if (t->client[i] == 0) {
        (void)execl(path, path, is_writer(i) ? "write" : "read", dir, FILE_NAME, node,
                    line, life, history, (char *)NULL);
        _exit(127);
    }
}

/* reap -- a client that has ended: it may have been killed, by this or by its node. */
static void
reap(struct test *t, unsigned i, int status)
{
    t->client[i] = 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return;
    if (status != 0)
        env_fail(__FILE__, __LINE__, "client %u at node %u has ended: %d", i, node_of(i),
                 status);
}

static void
kill_client(struct test *t, unsigned i)
{
    int status;

    if (t->client[i] == 0)
        return;
    (void)kill(t->client[i], SIGKILL);
    must_eq(waitpid(t->client[i], &status, 0), t->client[i]);
    reap(t, i, status);
}

/* tend -- clients that are dead are started again. */
static void
tend(struct test *t)
{
    int status;

    for (unsigned i = 0; i < BOARD_LINES; i++) {
        if (t->client[i] != 0 && waitpid(t->client[i], &status, WNOHANG) == t->client[i])
            reap(t, i, status);
        if (t->client[i] == 0)
            start_client(t, i);
    }
}

/* n_acknowledged -- by all writers, as the board says. */
static uint64_t
n_acknowledged(void)
{
    char line[BOARD_LINE + 1] = "";
    int fd = open(BOARD_NAME, O_RDONLY | O_CLOEXEC);
    uint64_t n, sum = 0;

    must(fd >= 0);
    for (off_t i = 0; i < GROUP_NODES; i++) {
        if (pread(fd, line, BOARD_LINE, i * BOARD_LINE) == BOARD_LINE
            && sscanf(line, "%*u %*s %" SCNu64, &n) == 1)
            sum += n;
    }
    (void)close(fd);
    return sum;
}

static void
pause_for(struct test *t, double seconds)
{
    double until = env_now() + seconds;

    while (env_now() < until) {
        tend(t);
        (void)poll(NULL, 0, 20);
    }
}

/* await_writes -- n more are acknowledged. */
static void
await_writes(struct test *t, uint64_t n)
{
    uint64_t goal = n_acknowledged() + n;
    double until = env_now() + PATIENCE_S;

    while (n_acknowledged() < goal) {
        group_must_run(&t->g);
        if (env_now() > until)
            (void)group_await_leader(&t->g,
                                     0); /* if there is none it shows the daemons' logs */
        if (env_now() > until)
            env_fail(__FILE__, __LINE__, "nothing is acknowledged any more");
        pause_for(t, 0.02);
    }
}

/* ---- Disturbing --------------------------------------------------------------------- */

/* kill_leader -- its daemon, and perhaps its clients. */
static void
kill_leader(struct test *t, unsigned leader, bool with_clients)
{
    fprintf(t->history, "death %.0f\n", env_now() * 1e9);
    group_kill(&t->g, leader);
    for (unsigned i = 0; with_clients && i < BOARD_LINES; i++) {
        if (node_of(i) == leader)
            kill_client(t, i);
    }
}

static void
cut_all(struct test *t)
{
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        net_cut_off(&t->net, i);
}

/* What is done to a node that leads, or to any other; the words are printed. */
static const char *const words[] = {
    "the leader killed, with its programs",
    "the leader killed",
    "a node killed",
    "two nodes killed",
    "a writer killed",
    "a reader killed",
    "the leader stopped",
    "a node stopped",
    "a writer stopped",
    "a reader stopped",
    "the leader cut off",
    "a node cut off",
    "all cut off",
    "the leader is not heard",
    "the leader does not hear",
    "a connection cut",
};

#define N_WORDS (sizeof words / sizeof words[0])

/* A run of so few rounds sees the most important ones, each for so long that another node leads meanwhile. */
#define N_FIRST 5
#define LONG_S  4

/* disturb -- ret a process that has been stopped, or 0. */
static pid_t
disturb(struct test *t, unsigned what, unsigned leader, unsigned any)
{
    unsigned next = any % GROUP_NODES + 1;

    switch (what) {
    case 0:
    case 1:
        kill_leader(t, leader, what == 0);
        return 0;
    case 2:
    case 3:
        group_kill(&t->g, any);
        if (what == 3)
            group_kill(&t->g, next);
        return 0;
    case 4:
    case 5:
        kill_client(t, (what == 4 ? 0 : GROUP_NODES) + any - 1);
        return 0;
    case 6:
        return t->g.node[leader - 1].pid;
    case 7:
        return t->g.node[any - 1].pid;
    case 8:
        return t->client[leader - 1];
    case 9:
        return t->client[GROUP_NODES + any - 1];
    case 10:
        net_cut_off(&t->net, leader);
        return 0;
    case 11:
        net_cut_off(&t->net, any);
        return 0;
    case 12:
        cut_all(t);
        return 0;
    case 13:
    case 14:
        for (unsigned i = 1; i <= GROUP_NODES; i++)
            net_cut(&t->net, what == 13 ? leader : i, what == 13 ? i : leader);
        return 0;
    default:
        net_cut(&t->net, any, next);
        net_cut(&t->net, next, any);
        return 0;
    }
}

/* play -- a round: one or two things happen, then all is well again, and writes go on. */
static void
play(struct test *t, uint64_t round, uint64_t rounds)
{
    pid_t stopped[2] = {0, 0};
    unsigned n = 1 + (rnd_below(&t->seed, 4) == 0);
    double begun = env_now();

    for (unsigned i = 0; i < n; i++) {
        static const unsigned first[N_FIRST] = {10, 6, 0, 12, 14};
        unsigned drawn = (unsigned)rnd_below(&t->seed, N_WORDS);
        bool is_first = i == 0 && rounds <= N_FIRST;
        unsigned what = is_first ? first[round % N_FIRST] : drawn;
        unsigned any = 1 + (unsigned)rnd_below(&t->seed, GROUP_NODES),
                 leader = group_leader(&t->g);

        group_must_run(&t->g);
        stopped[i] = disturb(t, what, leader != 0 ? leader : any, any);
        if (stopped[i] != 0)
            (void)kill(stopped[i], SIGSTOP);
        printf("round %" PRIu64 ": %s (leader %u, any %u)\n", round, words[what], leader,
               any);
        pause_for(t, is_first ? LONG_S : 0.3 + (double)rnd_below(&t->seed, 4000) / 1000);
    }
    net_heal(&t->net);
    for (unsigned i = 0; i < n; i++) {
        if (stopped[i] != 0)
            (void)kill(stopped[i], SIGCONT);
    }
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        if (t->g.node[i - 1].pid == 0)
            group_start(&t->g, i, OPTIONS);
    }
    await_writes(t, 1 + rnd_below(&t->seed, 100));
    printf("round %" PRIu64 ": %.2f s, %" PRIu64 " acknowledged\n", round,
           env_now() - begun, n_acknowledged());
}

/* ---- Judging ------------------------------------------------------------------------ */

/* end_clients -- in order, so that each has noted how its last write has ended; one that its node kills may not have. */
static void
end_clients(struct test *t)
{
    for (unsigned i = 0; i < BOARD_LINES; i++) {
        if (t->client[i] != 0)
            (void)kill(t->client[i], SIGTERM);
    }
    for (unsigned i = 0; i < BOARD_LINES; i++) {
        int status;

        if (t->client[i] == 0)
            continue;
        must_eq(waitpid(t->client[i], &status, 0), t->client[i]);
        reap(t, i, status);
    }
}

/* note_order -- the list, as all nodes have it. */
static void
note_order(struct test *t)
{
    const struct linear_file *f;
    int fd;

    for (unsigned i = 2; i <= GROUP_NODES; i++) {
        char command[64];

        (void)snprintf(command, sizeof command, "cmp n1/" FILE_NAME " n%u/" FILE_NAME, i);
        must_eq(system(command), 0);
    }
    fd = open("n1/" FILE_NAME, O_RDONLY | O_CLOEXEC);
    must(fd >= 0);
    f = (const struct linear_file *)mmap(NULL, sizeof *f, PROT_READ, MAP_SHARED, fd, 0);
    must((const void *)f != MAP_FAILED);
    (void)close(fd);
    must(f->n[0] < LINEAR_RECORDS);
    for (uint64_t i = 0; i < f->n[0]; i++)
        fprintf(t->history, "order %" PRIu64 " %" PRIu64 "\n", i, f->record[i]);
    (void)munmap((void *)(uintptr_t)f, sizeof *f);
}

/* judge_all -- what everybody has noted.  The last line of a program that was killed may have no end. */
static void
judge_all(struct test *t, uint64_t rounds)
{
    struct judge_report r;

    must_ok(fclose(t->history));
    must_ok(system(
        "for f in h/*; do sed -e '$a\\' \"$f\" >line.all;"
        "[ -z \"$(tail -c 1 \"$f\")\" ] || sed -i '$d' line.all; cat line.all; done >>all"));
    t->history = fopen("all", "re");
    must(t->history != NULL);
    judge_history(t->history, stdout, &r);
    (void)fclose(t->history);
    printf("%" PRIu64 " rounds; %" PRIu64 " acknowledged, %" PRIu64 " uncertain, %" PRIu64
           " aborted, %" PRIu64 " fates; reads: %" PRIu64 " plain, %" PRIu64
           " with a token, %" PRIu64 " linearizable\n",
           rounds, r.n_acknowledged, r.n_uncertain, r.n_aborted, r.n_fates,
           r.n_reads[JUDGE_SNAPSHOT], r.n_reads[JUDGE_TOKEN], r.n_reads[JUDGE_LATEST]);
    printf(
        "from the leader's death to the next commit: median %.2f s, worst %.2f s, of %" PRIu64
        "\n",
        (double)r.wait_ns_median / 1e9, (double)r.wait_ns_max / 1e9, r.n_deaths);
    for (unsigned i = 0; i < JUDGE_WRONGS; i++) {
        if (r.n_wrong[i] > 0)
            printf("%" PRIu64 " times: %s\n", r.n_wrong[i],
                   judge_name((enum judge_wrong)i));
    }
    if (r.n_errors != 0) {
        (void)!system("cp all ${top_builddir:-.}/linear.history");
        env_fail(__FILE__, __LINE__, "%" PRIu64 " errors: see linear.history",
                 r.n_errors);
    }
    for (unsigned i = 0; i < JUDGE_KINDS; i++)
        must(r.n_reads[i] > 0);
    must(r.n_acknowledged > 0);
}

/* Rounds of one group and one history: Check cannot count the microseconds of a test of 36 minutes. */
#define ROUNDS_MOST 200

START_TEST(histories_are_linearizable)
{
    uint64_t left = env_number("XAC_ROUNDS", 3) - (uint64_t)_i * ROUNDS_MOST;
    uint64_t rounds = left < ROUNDS_MOST ? left : ROUNDS_MOST;
    struct group_site site = {.file = FILE_NAME,
                              .file_bytes = sizeof(struct linear_file)};
    struct test t = {.seed = env_seed() + (uint64_t)_i};

    net_remove(); /* of the history before */
    net_make(&t.net, &site);
    group_make_at(&t.g, &site);
    must_ok(mkdir("h", 0700));
    must_ok(system(": >" BOARD_NAME));
    t.history = fopen("all", "we");
    must(t.history != NULL);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_start(&t.g, i, OPTIONS);
    await_writes(&t, 50);
    for (uint64_t i = 0; i < rounds; i++)
        play(&t, i, rounds);
    end_clients(&t);
    group_await_agreement(&t.g, PATIENCE_S);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_stop(&t.g, i);
    note_order(&t);
    judge_all(&t, rounds);
    group_free(&t.g);
}
END_TEST

int
main(void)
{
    const char *why = net_claim();
    Suite *s = suite_create("linear");
    TCase *t = env_tcase(s, "linear", 4 * 3600);
    int rc;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (why != NULL) {
        printf("skipped: %s\n", why);
        return 77;
    }
    tcase_add_loop_test(t, histories_are_linearizable, 0,
                        (int)((env_number("XAC_ROUNDS", 3) + ROUNDS_MOST - 1)
                              / ROUNDS_MOST));
    rc = env_main(s);
    net_remove();
    return rc;
}
