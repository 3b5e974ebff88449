/* SPDX-License-Identifier: MIT */
/*
 * check_many.c -- many processes attached, 256 transactions and queries open at once, 100
 * processes killed among them.
 *
 * GOAL    nothing in the library counts on few: 1,000 processes attach, all open transactions
 *         end as they should, a process that dies leaves nothing behind, sums are right, and the
 *         control region grows with what is live, not with what has been.
 * METHOD  each process has a page of its own with two counters; others are shared.  A paid
 *         transaction adds one to `paid` of its own page and to one shared counter, so that
 *         both have the same sum; an alone one adds one to `alone`.  A first wave of processes
 *         commits once each; 256 of them open a transaction or a query and wait inside; some
 *         of these and of the idle ones are killed; the others end, and all go on at random.
 *         A second wave takes the places of the first.
 *
 * XAC_MANY processes (400; make check-long takes 1,000), XAC_SEED.
 */
#include <config.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"

#define MANY_MAX   4000
#define MANY_LEAST 400 /* so that there are enough to be inside and to be killed   */
#define N_SHARED   64
#define N_INSIDE   256
#define DEAD_IN    70 /* killed inside a transaction or query ...                 */
#define DEAD_IDLE  30 /* ... and outside                                          */
#define N_MORE     5  /* transactions of each process at the end                  */

/* What the n-th process does while 256 are inside. */
enum role {
    ALONE = 0, /* writes its own page only                                        */
    PAID = 1,  /* writes a shared page, too: most of them fail at first           */
    READS = 2, /* writes its own page and reads what nobody writes                */
    QUERY = 3, /* adds up everything                                              */
    IDLE = 4   /* nothing                                                         */
};

struct own {
    uint64_t paid, alone;
};

/* Outside the library: survives the processes. */
struct board {
    _Atomic uint64_t ready, inside, done;
    _Atomic uint64_t n_commits, n_aborts, n_queries;
    _Atomic uint64_t paid[MANY_MAX], alone[MANY_MAX]; /* told COMMITTED */
};

/* A gate that opens once, for all. */
struct gate {
    int fd[2];
};

struct party {
    uint64_t n;
    int mode;
    struct gate go_in, go_out;
};

struct member {
    const struct party *party;
    uint64_t number;
    bool is_second_wave;
};

static struct board *board;
static uint64_t *base;

static void
gate_make(struct gate *g)
{
    must(pipe(g->fd) == 0);
}

static void
gate_open(struct gate *g)
{
    must(close(g->fd[1]) == 0);
}

/* Wait until the parent has closed its end, the only one left. */
static void
gate_pass(const struct gate *g)
{
    char c;

    must(read(g->fd[0], &c, 1) == 0);
}

static volatile uint64_t *
shared_cell(uint64_t i)
{
    return &base[i % N_SHARED * (env_page() / 8)];
}

/* A page that is read by many and never written. */
static volatile uint64_t *
quiet_cell(uint64_t i)
{
    return &base[(N_SHARED + i % N_SHARED) * (env_page() / 8)];
}

static volatile struct own *
own_page(uint64_t number)
{
    return (
        volatile struct own *)(void *)&base[(2 * N_SHARED + number) * (env_page() / 8)];
}

static size_t
n_pages(const struct party *p)
{
    return 2 * N_SHARED + p->n;
}

static enum role
role_of(uint64_t number)
{
    return number < N_INSIDE ? (enum role)(number % 4) : IDLE;
}

/* ---- members ----------------------------------------------------------------------------- */

/* Sums of paid, of the shared counters, and of alone, within a transaction or query. */
static void
add_up(const struct party *p, uint64_t sum[3])
{
    sum[0] = sum[1] = sum[2] = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        sum[0] += own_page(i)->paid;
        sum[2] += own_page(i)->alone;
    }
    for (uint64_t i = 0; i < N_SHARED; i++)
        sum[1] += *shared_cell(i);
}

static void
do_stores(uint64_t number, enum role role, uint64_t shared)
{
    if (role == PAID) {
        own_page(number)->paid++;
        *shared_cell(shared) += 1;
        return;
    }
    for (uint64_t i = 0; role == READS && i < 4; i++)
        must_eq(*quiet_cell(number + i), 0);
    own_page(number)->alone++;
}

/* End a transaction that has done its stores; if it aborts, again until it commits. */
static void
commit(uint64_t number, enum role role, uint64_t shared)
{
    uint64_t rnd = env_seed() + number;
    int rc;

    while ((rc = xend()) == ABORTED) {
        struct xac_conflict why;

        must_ok(xConflict(&why, sizeof why));
        must(role == PAID && why.kind != XAC_CONFLICT_RESOURCE);
        word_add(&board->n_aborts, 1);
        proc_sleep_us(rnd_below(&rnd, 20000));
        must_ok(xbegin());
        do_stores(number, role, shared);
    }
    must_rc(rc, COMMITTED);
    word_add(&board->n_commits, 1);
    word_add(role == PAID ? &board->paid[number] : &board->alone[number], 1);
}

static void
transact(uint64_t number, enum role role, uint64_t shared)
{
    must_ok(xbegin());
    do_stores(number, role, shared);
    commit(number, role, shared);
}

/* The shared counter for a PAID one of those inside; eight want the same. */
static uint64_t
hot_one(const struct member *m)
{
    return m->number / 4 % 8;
}

/* Be inside a transaction or query until the gate opens. */
static void
be_inside(const struct member *m)
{
    enum role role = role_of(m->number);
    uint64_t before[3], after[3];

    if (role == QUERY) {
        must_ok(xbeginQuery());
        add_up(m->party, before);
        must_eq(before[0], m->party->n);
        must_eq(before[1], m->party->n);
        must_eq(before[2], 0);
    } else if (role != IDLE) {
        must_ok(xbegin());
        do_stores(m->number, role, hot_one(m));
    }
    word_add(&board->inside, role != IDLE);
    gate_pass(&m->party->go_out);
    if (role == QUERY) {
        add_up(m->party, after);
        must(memcmp(before, after, sizeof before) == 0);
        must_ok(xendQuery());
        word_add(&board->n_queries, 1);
    } else if (role != IDLE) {
        commit(m->number, role, hot_one(m));
    }
}

static void
take_part(void *arg)
{
    const struct member *m = arg;
    uint64_t rnd = env_seed() + 31 * m->number;

    close(m->party->go_in.fd[1]);
    close(m->party->go_out.fd[1]);
    base = env_attach(m->party->mode, n_pages(m->party));
    if (!m->is_second_wave)
        transact(m->number, PAID, m->number);
    word_add(&board->ready, 1);
    gate_pass(&m->party->go_in);
    if (!m->is_second_wave)
        be_inside(m);
    for (int i = 0; i < N_MORE; i++) {
        enum role role = (enum role)rnd_below(&rnd, 3);
        uint64_t sum[3];

        if (m->number % 16 == 0) {
            must_ok(xbeginQuery());
            add_up(m->party, sum);
            must_eq(sum[0], sum[1]);
            must_ok(xendQuery());
            word_add(&board->n_queries, 1);
        }
        transact(m->number, role, rnd_next(&rnd));
    }
    env_detach();
    word_add(&board->done, 1);
}

/* ---- the control region, from outside ------------------------------------------------------ */

/* Bytes that the control region takes. */
static uint64_t
region_bytes(void)
{
    char line[4096];
    struct stat st;
    FILE *f = fopen(ENV_DIR "/xac.lock", "r");

    must(f != NULL && fgets(line, sizeof line, f) != NULL);
    fclose(f);
    line[strcspn(line, "\n")] = '\0';
    must(stat(line, &st) == 0);
    return (uint64_t)st.st_blocks * 512;
}

/* ---- the parent ------------------------------------------------------------------------------ */

static void
spawn_wave(struct party *p, pid_t *pid, struct member *members, bool is_second)
{
    gate_make(&p->go_in);
    gate_make(&p->go_out);
    word_store(&board->ready, 0);
    word_store(&board->done, 0);
    for (uint64_t i = 0; i < p->n; i++) {
        members[i] =
            (struct member){.party = p, .number = i, .is_second_wave = is_second};
        pid[i] = proc_spawn(take_part, &members[i]);
    }
    proc_await(&board->ready, p->n, 300);
}

/* Kill some who are inside and some who are not; ret how many. */
static uint64_t
kill_some(const struct party *p, pid_t *pid)
{
    uint64_t rnd = env_seed(), n_in = 0, n_idle = 0;

    while (n_in < DEAD_IN || n_idle < DEAD_IDLE) {
        uint64_t i = rnd_below(&rnd, p->n);
        uint64_t *n = i < N_INSIDE ? &n_in : &n_idle;

        if (pid[i] == 0 || *n == (i < N_INSIDE ? DEAD_IN : DEAD_IDLE))
            continue;
        proc_kill(pid[i]);
        pid[i] = 0;
        *n += 1;
    }
    return n_in + n_idle;
}

static void
join_all(const struct party *p, const pid_t *pid)
{
    for (uint64_t i = 0; i < p->n; i++) {
        if (pid[i] != 0)
            proc_join(pid[i]);
    }
    close(p->go_in.fd[0]);
    close(p->go_out.fd[0]);
}

/* Every counter is what its process was told. */
static void
check_sums(const struct party *p, pid_t keeper)
{
    uint64_t sum[3];

    base = env_attach(p->mode, n_pages(p));
    proc_kill(keeper); /* it was the last one: without us, what is not durable goes */
    must_ok(xbeginQuery());
    for (uint64_t i = 0; i < p->n; i++) {
        must_eq(own_page(i)->paid, word_load(&board->paid[i]));
        must_eq(own_page(i)->alone, word_load(&board->alone[i]));
    }
    add_up(p, sum);
    must_ok(xendQuery());
    must_eq(sum[0], sum[1]);
    must_eq(sum[0] + sum[2], word_load(&board->n_commits));
    env_detach();
}

START_TEST(many_processes)
{
    static struct member members[MANY_MAX];
    static pid_t pid[MANY_MAX];
    struct party party = {.n = env_number("XAC_MANY", 400),
                          .mode = _i == 0 ? NONDURABLE : DURABLE};
    uint64_t bytes[4], n_dead;
    double start = env_now();
    pid_t keeper;

    env_without_frames("more processes than they are enough for");
    env_let_overlap();
    must(party.n >= MANY_LEAST && party.n <= MANY_MAX);
    board = proc_shared(sizeof *board);
    keeper = env_companion(party.mode, n_pages(&party));
    bytes[0] = region_bytes();
    spawn_wave(&party, pid, members, false);
    bytes[1] = region_bytes();
    printf("%" PRIu64 " processes attached after %.1f s\n", party.n, env_now() - start);
    gate_open(&party.go_in);
    proc_await(&board->inside, N_INSIDE, 120);
    n_dead = kill_some(&party, pid);
    gate_open(&party.go_out);
    proc_await(&board->done, party.n - n_dead, 300);
    join_all(&party, pid);
    bytes[2] = region_bytes();
    printf("%d inside at once, %" PRIu64 " killed, the others done after %.1f s\n",
           N_INSIDE, n_dead, env_now() - start);
    spawn_wave(&party, pid, members, true);
    gate_open(&party.go_in);
    proc_await(&board->done, party.n, 300);
    join_all(&party, pid);
    bytes[3] = region_bytes();
    check_sums(&party, keeper);
    printf("%s: %" PRIu64 " committed, %" PRIu64 " aborted, %" PRIu64 " queries, %.1f s\n"
           "control region: %" PRIu64 " KiB with 1 process, %" PRIu64
           " with all (%.1f each), %" PRIu64 " after them, %" PRIu64
           " after as many again\n",
           _i == 0 ? "nondurable" : "durable", word_load(&board->n_commits),
           word_load(&board->n_aborts), word_load(&board->n_queries), env_now() - start,
           bytes[0] / 1024, bytes[1] / 1024,
           (double)(bytes[1] - bytes[0]) / 1024 / (double)party.n, bytes[2] / 1024,
           bytes[3] / 1024);
    must(bytes[3] <= bytes[2] + bytes[2] / 8);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("many");
    TCase *tc = env_tcase(s, "many", 600);

    tcase_add_loop_test(tc, many_processes, 0, 2);
    return env_main(s);
}
