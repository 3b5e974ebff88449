/* SPDX-License-Identifier: MIT */
/*
 * check_query_steps.c -- a receiver dies in each of its system calls, and at each named step (xac_kill_point, debug
 * builds), while programs query the standby.
 *
 * GOAL    The readers see whole states of the source, none older than before, and a query that is open sees its own
 *         to its end.  The next receiver goes on where the dead one was: no transaction is missing or redone
 *         twice.  A recovery of what lies there gives a state of the source.
 * METHOD  The receiver is a child of the test, with a sender of the build at the other end.  The source makes some transactions
 *         for each death, with a checkpoint among them; it counts them, and so a second redo would show.
 *
 * XAC_STEPS_LONG=1: every system call (minutes instead of seconds), and under the address sanitizer the third time of
 * every step; of one in four otherwise.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <string.h>
#include <sys/socket.h>

#include "tests/common/sysfault.h"
#include "tests/unit/tools/query_env.h"
#include "base/annot.h"
#include "ship/receive.h"

#define PER_ROUND 9u

/* How the source goes on: in one generation of the log, or in another one each time. */
static bool turns;

/* How a receiver dies. */
struct plan {
    const char
        *point; /* kill point, or NULL: in a system call                          */
    uint64_t n; /* the n-th time                                                  */
};

static struct plan struck;
static _Atomic uint64_t *wanted, *calls, *n_done;

static void
setup_steps(void)
{
    setup();
    wanted = (_Atomic uint64_t *)proc_shared(sizeof *wanted);
    calls = (_Atomic uint64_t *)proc_shared(sizeof *calls);
    n_done = (_Atomic uint64_t *)proc_shared(sizeof *n_done);
    board->wanted = UINT64_MAX;
    board->reader_pause_us = 500; /* a part of the time it is in a query */
}

/* ---- The source ------------------------------------------------------------------------- */

/* write_rounds -- a child: PER_ROUND transactions each time `wanted` grows; one generation of the log. */
static void
write_rounds(void *arg)
{
    uint64_t seed = env_seed(), done = 0;
    uint64_t *x = (uint64_t *)env_attach(DURABLE, ACCOUNTS);

    (void)arg;
    while (word_load(&board->stop) == 0) {
        if (done == word_load(wanted)) {
            proc_sleep_us(500);
            continue;
        }
        for (uint64_t i = 0; i < PER_ROUND; i++) {
            must_ok(xbegin());
            transfer(x, &seed);
            must_rc(xend(), COMMITTED);
            if (i == PER_ROUND / 2)
                must_ok(xCheckpoint());
        }
        must_ok(xbeginQuery());
        word_store(&board->written, account_at(x, 0)->n_transactions);
        must_ok(xendQuery());
        word_store(n_done, ++done);
    }
    env_detach();
}

static void
next_round(void)
{
    if (turns) {
        write_n(PER_ROUND);
        return;
    }
    word_store(wanted, word_load(wanted) + 1);
    proc_await(n_done, word_load(wanted), 60);
}

/* ---- The receiver that dies ---------------------------------------------------------------- */

#ifdef XAC_DEBUG
static void
meet(const char *name)
{
    static uint64_t met;

    if (strcmp(name, struck.point) == 0 && ++met == struck.n)
        (void)kill(getpid(), SIGKILL);
}
#endif

/* receive -- a child: with the connection in the place of standard input and output. */
static void
receive(void *arg)
{
    const int *end = (const int *)arg;
    struct xac_receive_options o = {.dir = COPY, .in = end[1], .out = end[1]};
    struct xac_receive_report rep;

    (void)close(end[0]); /* it is the sender's: its death is the end of the connection */
#ifdef XAC_DEBUG
    if (struck.point != NULL)
        xac_kill_hook = meet;
#endif
    if (struck.point == NULL)
        sysfault_arm(SYSFAULT_DIE, SYSFAULT_FILES | SYSFAULT_GROW | SYSFAULT_LOCK,
                     struck.n, 0);
    (void)xac_receive_run(&o, &rep);
    word_store(calls, sysfault_count());
    sysfault_disarm();
}

/* send -- a child becomes the sender. */
static void
send_to(void *arg)
{
    const int *end = (const int *)arg;
    char tool[4200];

    (void)snprintf(tool, sizeof tool, "%s/xship", top());
    must(dup2(end[0], STDIN_FILENO) >= 0 && dup2(end[0], STDOUT_FILENO) >= 0);
    (void)!freopen("sender.log", "w", stderr);
    (void)execl(tool, "xship", "send", "-q", ENV_DIR, (char *)NULL);
    _exit(127);
}

/* receive_and_die -- ret false: it has not come to that, and ended in order. */
static bool
receive_and_die(struct plan plan)
{
    int end[2], status;
    pid_t to, from;

    struck = plan;
    word_store(calls, 0);
    must_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end));
    from = proc_spawn(send_to, end);
    to = proc_spawn(receive, end);
    (void)close(end[0]);
    (void)close(end[1]);
    /* It ends by its death, or because the sender does. */
    for (int i = 0; i < 2000 && waitpid(to, &status, WNOHANG) != to; i++) {
        if (i == 1000)
            (void)kill(from, SIGKILL);
        proc_sleep_us(i < 1000 ? 1000 : 10000);
    }
    proc_kill(from);
    must(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* ---- Deaths --------------------------------------------------------------------------------- */

/* must_go_on -- readers read, after a death. */
static void
must_go_on(void)
{
    uint64_t reads = atomic_load(&board->reads);

    for (int i = 0; i < 3000 && atomic_load(&board->reads) < reads + 2 * ACCOUNTS; i++)
        proc_sleep_us(2000);
    must(atomic_load(&board->reads) >= reads + 2 * ACCOUNTS);
}

/* follow -- a receiver that does not die brings the standby to the end of the source, which goes on meanwhile. */
static void
follow(void)
{
    pid_t send = start_send("-q", COPY, "log");

    next_round();
    await_seen(1, word_load(&board->written));
    must_eq(end_send(send), 0);
}

/* round_of -- the source goes on, a receiver dies, readers go on, another one takes over. */
static bool
round_of(struct plan plan, bool is_judged)
{
    uint64_t seen = word_load(&board->seen[1]);
    bool has_died;

    next_round();
    has_died = receive_and_die(plan);
    must_go_on();
    must(word_load(&board->seen[1]) >= seen);
    if (is_judged)
        must(judge() >= seen);
    follow();
    return has_died;
}

/* begin_all -- source, standby, and a reader; ret the writer. */
static pid_t
begin_all(pid_t *readerp)
{
    pid_t send, writer;

    write_n(20);
    writer = turns ? 0 : proc_spawn(write_rounds, NULL);
    next_round();
    send = start_send("-q", COPY, "log");
    *readerp = proc_spawn(read_on, (void *)1);
    await_seen(1, word_load(&board->written));
    must_eq(end_send(send), 0);
    return writer;
}

static void
end_all(pid_t writer, pid_t reader)
{
    board->wanted = 0;
    proc_join(reader);
    word_store(&board->stop, 1);
    if (writer != 0)
        proc_join(writer);
    must_eq(judge(), word_load(&board->written));
}

/* hold -- a query is open from here on; ret its process. */
static pid_t
hold(void)
{
    pid_t pid;

    word_store(&board->at[2], 0);
    word_store(&board->go[2], 0);
    pid = proc_spawn(read_long, (void *)2);
    proc_await(&board->at[2], 2, 60);
    return pid;
}

static void
let_go(pid_t held)
{
    word_store(&board->go[2], 1);
    proc_join(held);
}

START_TEST(receiver_dies_in_each_call)
{
    uint64_t step = getenv("XAC_STEPS_LONG") != NULL ? 1 : 29 * ENV_DEAR, i = 0;
    pid_t reader, writer = begin_all(&reader), held = hold();
    bool has_died = true;

    for (uint64_t n = 1 + (uint64_t)_i * 13 % step; has_died; n += step) {
        if (++i % 4 == 0) { /* another state is held */
            let_go(held);
            held = hold();
        }
        has_died = round_of((struct plan){.n = n}, i % 5 == 0);
    }
    must(i > 3);
    let_go(held);
    end_all(writer, reader);
}
END_TEST

START_TEST(receiver_dies_in_another_generation)
{
    uint64_t step = getenv("XAC_STEPS_LONG") != NULL ? 1 : 41 * ENV_DEAR, i = 0;
    pid_t reader, writer;
    bool has_died = true;

    turns = true;
    board->checkpoint_every = 4;
    writer = begin_all(&reader);
    for (uint64_t n = 5; has_died; n += step)
        has_died = round_of((struct plan){.n = n}, i++ % 3 == 0);
    must(i > 3);
    end_all(writer, reader);
}
END_TEST

/* ---- The first copy -------------------------------------------------------------------------- */

/* see_all -- a child: a program sees all that the source has. */
static void
see_all(void *arg)
{
    uint64_t *x = attach();

    (void)arg;
    for (uint64_t i = 0; i < 3000 && query(x, i) < word_load(&board->written); i++)
        proc_sleep_us(2000);
    must_eq(query(x, 0), word_load(&board->written));
    must_ok(xMunmap(IN_COPY));
    must_ok(xShutdown());
}

/* must_be_nobodys -- a directory that may become a standby, or is one: nobody opens it to write; ret is it one? */
static bool
must_be_nobodys(void)
{
    int code = file_exists(COPY "/xac.follow") ? XAC_ENOTLEADER : XAC_ENOTENV;
    int fd = open(COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return false; /* it is not there yet */
    must_refuse(xac_recover_dir(fd, NULL, NULL, NULL), code);
    (void)close(fd);
    return file_exists(COPY "/xac.master");
}

/* What a receiver leaves that dies in its first copy, or behind it. */
enum copy_end {
    COPY_PART,
    COPY_STANDBY,
    COPY_ALIVE /* it has not come to that call                                         */
};

/* copy_round -- a receiver that has nothing dies in its n-th call; the next one brings all. */
static enum copy_end
copy_round(uint64_t n)
{
    uint64_t before = word_load(&board->written);
    bool has_died, is_standby;
    pid_t send;

    must_eq(system("rm -rf " COPY), 0);
    has_died = receive_and_die((struct plan){.n = n});
    is_standby = must_be_nobodys();
    if (is_standby)
        must_eq(judge(), before);
    write_n(2);
    send = start_send("-q", COPY, "log");
    proc_run(see_all, NULL);
    must_eq(end_send(send), 0);
    must_eq(judge(), word_load(&board->written));
    return !has_died ? COPY_ALIVE : is_standby ? COPY_STANDBY : COPY_PART;
}

/* Some of its calls, and each one that makes a standby of the copy. */
START_TEST(receiver_dies_while_the_copy_comes)
{
    uint64_t step = getenv("XAC_STEPS_LONG") != NULL ? 1 : 17 * ENV_DEAR, first = 0;
    uint64_t n_ends[3] = {0};

    board->checkpoint_every = 4;
    write_n(20);
    for (uint64_t n = 1 + env_seed() % step; n_ends[COPY_ALIVE] == 0; n += step) {
        enum copy_end end = copy_round(n);

        if (end == COPY_STANDBY && n_ends[end] == 0)
            first = n;
        n_ends[end]++;
    }
    must(first > step && n_ends[COPY_PART] > 3 / ENV_DEAR);
    for (uint64_t n = first - step + 1; n < first; n++)
        n_ends[copy_round(n)]++;
    printf("%llu deaths in the copy, %llu behind it\n",
           (unsigned long long)n_ends[COPY_PART],
           (unsigned long long)n_ends[COPY_STANDBY]);
}
END_TEST

#ifdef XAC_DEBUG
static const char *const points[] = {"begin",     "entry",     "e number", "e",
                                     "e tail",    "f version", "f page",   "f",
                                     "g number",  "g state",   "g",        "i entry",
                                     "i dropped", "l",         "m",        "n slot",
                                     "n",         "o page",    "o",        "p",
                                     "r",         "s",         "s page",   "s ring",
                                     "s number",  "t before",  "t",        "gc mark"};

START_TEST(receiver_dies_at_each_step)
{
    bool is_long = getenv("XAC_STEPS_LONG") != NULL;
    pid_t reader, writer = begin_all(&reader);

    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        for (uint64_t n = 1; n <= (is_long || env_is_chosen(i) ? 3 : 1); n += 2) {
            pid_t held = n == 3 ? hold() : 0;
            bool has_died = round_of((struct plan){.point = points[i], .n = n}, n == 3);

            if (n == 1 && !has_died)
                env_fail(__FILE__, __LINE__, "%s is not met", points[i]);
            if (held != 0)
                let_go(held);
        }
    }
    end_all(writer, reader);
}
END_TEST
#endif

int
main(void)
{
    Suite *s = suite_create("query_steps");
    TCase *t = env_tcase_with(s, "query_steps", 600, setup_steps);

    env_in_memory();
    tcase_add_loop_test(t, receiver_dies_in_each_call, 0, 2);
    tcase_add_test(t, receiver_dies_in_another_generation);
    tcase_add_test(t, receiver_dies_while_the_copy_comes);
#ifdef XAC_DEBUG
    tcase_add_test(t, receiver_dies_at_each_step);
#endif
    return env_main(s);
}
