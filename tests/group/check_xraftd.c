/* SPDX-License-Identifier: MIT */
/*
 * check_xraftd.c -- xraftd: what it refuses and with which words, and what does not come at random in check_group.
 *
 * GOAL    Nothing is acknowledged while two of three nodes are dead: what the third one wrote then may be gone later.  A
 *         transaction that is too large for the log's buffer, in a file that is new, is on all nodes.  Raft's log is
 *         shortened, and a node that was away goes on.  What cannot be done is refused in words.  A program at a node with a
 *         dead or stopped daemon is told nothing wrong; a program that is stopped does not keep its node from following.
 * METHOD  Three nodes on this machine, as in check_group.  XAC_SECONDS=n for a daemon that stands still (8), XAC_ROUNDS=n for programs (4).
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
#include "tests/common/env.h"

#define PATIENCE_S 60

static char words[1 << 14];

/* run -- xraftd with some arguments; ret its exit code. */
static int
run(const char *arguments)
{
    const char *top = getenv("top_builddir");
    char command[1024];
    size_t n;
    FILE *p;
    int status;

    /* With a limit, for a daemon that starts although it should not. */
    (void)snprintf(command, sizeof command, "timeout 60 %s/xraftd %s 2>&1",
                   top != NULL ? top : ".", arguments);
    p = popen(command, "re");
    must(p != NULL);
    n = fread(words, 1, sizeof words - 1, p);
    words[n] = '\0';
    status = pclose(p);
    must(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define must_say(arguments, code, text)                                    \
 do {                                                                      \
  must_eq(run(arguments), code);                                           \
  if (strstr(words, text) == NULL)                                         \
   env_fail(__FILE__, __LINE__, "xraftd %s says: %s", (arguments), words); \
 } while (0)

static void
start_all(struct group *g, const char *options)
{
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_start(g, i, options);
}

static void
stop_all(struct group *g)
{
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_stop(g, i);
}

START_TEST(nothing_is_acknowledged_without_a_majority)
{
    unsigned leader, other[2], n = 0;
    struct group g;
    uint64_t before;

    group_make(&g);
    start_all(&g, "-q");
    leader = group_await_leader(&g, PATIENCE_S);
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        if (i != leader)
            other[n++] = i;
    }
    group_await_acknowledged(&g, 50, PATIENCE_S);
    for (unsigned i = 0; i < 2; i++)
        group_kill(&g, other[i]);
    group_listen(&g, 0.2); /* what was acknowledged just before */
    before = g.n_acknowledged;
    group_listen(&g, 3);
    must_eq(g.n_acknowledged, before);
    group_kill(&g, leader); /* what it alone has was not acknowledged */
    group_kill_writer(&g);
    for (unsigned i = 0; i < 2; i++)
        group_start(&g, other[i], "-q");
    group_await_acknowledged(&g, 50, PATIENCE_S);
    group_start(&g, leader, "-q");
    group_kill_writer(&g);
    must(group_await_leader(&g, PATIENCE_S) != 0);
    group_await_agreement(&g, PATIENCE_S);
    stop_all(&g);
    group_must_agree(&g);
    group_free(&g);
}
END_TEST

/* begin -- a group with a program that writes; ret the node where it does. */
static unsigned
begin(struct group *g, struct group_status *s)
{
    group_make(g);
    start_all(g, "-q");
    group_await_acknowledged(g, 50, PATIENCE_S);
    must(group_ask(g, g->writes_to, s));
    return g->writes_to;
}

/* finish -- another generation has begun, and all nodes have what was acknowledged. */
static void
finish(struct group *g, const struct group_status *before)
{
    struct group_status s;

    group_await_acknowledged(g, 50, PATIENCE_S);
    must(group_ask(g, g->writes_to, &s));
    must(s.generation > before->generation);
    group_end_seen(g, PATIENCE_S);
    group_free(g);
}

/* The daemon of the node that leads dies, or stands still for longer than programs wait for a majority.  Their commits of that
   time are not acknowledged, and they end by themselves, though nobody tells them that another node leads. */
START_TEST(a_daemon_is_away_while_a_program_writes)
{
    double seconds = (double)env_number("XAC_SECONDS", 8);
    struct group_status s;
    struct group g;
    unsigned old = begin(&g, &s);
    uint64_t before;

    if (_i == 0)
        group_kill(&g, old);
    else
        must_ok(kill(g.node[old - 1].pid, SIGSTOP));
    group_listen(&g, 0.3); /* what was acknowledged just before */
    must(g.writer != 0);
    before = g.n_acknowledged;
    group_listen(&g, seconds);
    must_eq(g.n_acknowledged, before);
    must_eq(g.writer, 0);
    if (_i == 0) {
        group_await_acknowledged(&g, 50, PATIENCE_S);
        must(g.writes_to != old);
        group_start(&g, old, "-q");
    } else {
        must_ok(kill(g.node[old - 1].pid, SIGCONT));
    }
    finish(&g, &s);
}
END_TEST

/* A node does not follow before programs have left its environment; one that does not run cannot. */
START_TEST(a_program_that_stands_still_is_killed_when_another_node_leads)
{
    uint64_t seed = env_seed(), rounds = env_number("XAC_ROUNDS", 4);
    struct group_status s, now;
    struct group g;
    unsigned old = begin(&g, &s);

    for (uint64_t i = 0; i < rounds; i++) {
        char arguments[32];

        group_listen(&g, (double)rnd_below(&seed, 300) / 1000);
        must(g.writer != 0);
        must_ok(kill(g.writer, SIGSTOP)); /* anywhere in a commit */
        (void)snprintf(arguments, sizeof arguments, "transfer n%u", old);
        if (run(arguments) != 0)
            env_fail(__FILE__, __LINE__, "%s", words);
        for (int k = 0; k < 100 && g.writer != 0; k++)
            group_listen(&g, 0.1);
        must_eq(g.writer, 0);
        for (int k = 0; k < 100; k++) {
            must(group_ask(&g, old, &now));
            if (strcmp(now.state, "standby") == 0)
                break;
            (void)poll(NULL, 0, 100);
        }
        must_eq(strcmp(now.state, "standby"), 0);
        group_await_acknowledged(&g, 20, PATIENCE_S);
        must(g.writes_to != old);
        old = g.writes_to;
    }
    finish(&g, &s);
}
END_TEST

START_TEST(large_transactions_reach_all_nodes)
{
    struct group g;

    group_make(&g);
    start_all(&g, "-q");
    group_write_large(&g);
    group_await_agreement(&g, PATIENCE_S);
    stop_all(&g);
    for (unsigned i = 0; i < GROUP_NODES; i++)
        group_must_be_large(g.node[i].dir);
    group_free(&g);
}
END_TEST

START_TEST(a_leader_is_deposed_in_the_middle_of_a_large_transaction)
{
    uint64_t seed = env_seed();
    struct group g;

    group_make(&g);
    start_all(&g, "-q");
    for (unsigned i = 0; i < 4; i++) {
        unsigned leader = group_await_leader(&g, PATIENCE_S);
        pid_t pid = group_start_large(g.node[leader - 1].dir);

        (void)poll(NULL, 0, 200 + (int)rnd_below(&seed, 1000));
        must_ok(kill(g.node[leader - 1].pid, SIGSTOP));
        (void)poll(NULL, 0, 3000); /* another one leads */
        must_ok(kill(g.node[leader - 1].pid, SIGCONT));
        (void)kill(pid, SIGKILL);
        must_eq(waitpid(pid, NULL, 0), pid);
    }
    group_await_agreement(&g, PATIENCE_S);
    stop_all(&g);
    group_must_agree(&g);
    group_free(&g);
}
END_TEST

/* count_up -- a program that writes beside others: one in each transaction. */
static void
count_up(const char *dir, unsigned n)
{
    struct group_file *f;
    char path[64];

    must_ok(xInit(dir, XAC_DURABLE));
    (void)snprintf(path, sizeof path, "%s/counter", dir);
    f = (struct group_file *)xMmap(path, sizeof *f);
    must((void *)f != MAP_FAILED);
    for (unsigned i = 0; i < n;) {
        must_ok(xbegin());
        f->record[f->n++] = 1;
        i += xend() == COMMITTED;
    }
    must_ok(xShutdown());
}

START_TEST(programs_write_beside_each_other)
{
    enum {
        WRITERS = 4,
        EACH = 150
    };
    pid_t writer[WRITERS];
    struct group g;
    unsigned leader;
    int status;

    group_make(&g);
    start_all(&g, "-q");
    leader = group_await_leader(&g, PATIENCE_S);
    for (unsigned i = 0; i < WRITERS; i++) {
        writer[i] = proc_fork();
        if (writer[i] == 0) {
            count_up(g.node[leader - 1].dir, EACH);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        must_eq(waitpid(writer[i], &status, 0), writer[i]);
        must_eq(status, 0);
    }
    group_await_agreement(&g, PATIENCE_S);
    stop_all(&g);
    for (unsigned i = 0; i < GROUP_NODES; i++) {
        uint64_t n = 0;
        char path[64];
        int fd;

        (void)snprintf(path, sizeof path, "%s/counter", g.node[i].dir);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        must_eq(pread(fd, &n, sizeof n, 0), (ssize_t)sizeof n);
        must_eq(n, WRITERS * EACH);
        (void)close(fd);
    }
    group_free(&g);
}
END_TEST

START_TEST(a_log_that_is_shortened_serves_a_node_that_was_away)
{
    unsigned leader, away;
    struct group_status s;
    struct group g;

    group_make(&g);
    start_all(&g, "-q -s 1");
    leader = group_await_leader(&g, PATIENCE_S);
    away = leader % GROUP_NODES + 1;
    group_kill(&g, away);
    group_write_large(&g); /* 160 entries */
    do {
        group_await_acknowledged(&g, 20, PATIENCE_S);
        must(group_ask(&g, leader, &s));
    } while (s.snapshots == 0);
    group_kill_writer(&g);
    group_start(&g, away, "-q -s 1");
    group_await_agreement(&g, PATIENCE_S);
    stop_all(&g);
    group_must_agree(&g);
    for (unsigned i = 0; i < GROUP_NODES; i++)
        group_must_be_large(g.node[i].dir);
    group_free(&g);
}
END_TEST

/* must_be_listed -- the records of a node, by its daemon. */
static void
must_be_listed(unsigned number)
{
    double until = env_now() + PATIENCE_S;
    char command[128];

    (void)snprintf(command, sizeof command, "grep -q ' records$' n%u/xac.node-files",
                   number);
    while (system(command) != 0)
        group_look_again(until, "its files are not listed");
}

/* Of a node that was stopped, and of one that was killed. */
START_TEST(lost_files_are_noticed)
{
    unsigned leader, other;
    struct group g;
    char command[128];

    group_make(&g);
    start_all(&g, "-q");
    leader = group_await_leader(&g, PATIENCE_S);
    other = leader % GROUP_NODES + 1;
    group_await_acknowledged(&g, 20, PATIENCE_S);
    group_kill_writer(&g);
    must_be_listed(other);
    (void)snprintf(command, sizeof command, "n%u/xac.node-files", leader);
    must(access(command, F_OK) != 0); /* programs there may remove files */
    group_kill(&g, other);
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        if (i != other)
            group_stop(&g, i);
        (void)snprintf(command, sizeof command, "mv n%u/records kept", i);
        must_ok(system(command));
        (void)snprintf(command, sizeof command, "start n%u", i);
        must_say(command, 1, "/records: missing; put it back");
        (void)snprintf(command, sizeof command, "head -c 4096 kept >n%u/records", i);
        must_ok(system(command));
        (void)snprintf(command, sizeof command, "start n%u", i);
        must_say(command, 3, "/records: it has 4096 bytes, and had");
        (void)snprintf(command, sizeof command, "mv kept n%u/records", i);
        must_ok(system(command));
        group_start(&g, i, "-q");
    }
    group_await_acknowledged(&g, 20, PATIENCE_S);
    group_end_seen(&g, PATIENCE_S);
    must_ok(system("echo nonsense >n1/xac.node-files"));
    must_say("start n1", 3, "xac.node-files: not as xraftd writes it");
    group_free(&g);
}
END_TEST

/* What another node has voted would count here a second time.  That of an older xraftd does not name its node. */
static void
raft_of_another_node_is_refused(struct group *g)
{
    double until = env_now() + PATIENCE_S;

    must_ok(system("mv n3/raft kept && cp -a n2/raft n3"));
    must_say("start n3", 3, "Raft's files are those of node 2, and this is node 3");
    must_ok(system("rm -r n3/raft && mv kept n3/raft && rm n3/raft/xac.group"));
    group_start(g, 3, "-q");
    while (run("status n3") != 0)
        group_look_again(until, "node 3 does not start");
    group_stop(g, 3);
    must_ok(system("cmp n3/xac.group n3/raft/xac.group"));
}

/* Entries and a vote; each is put back. */
static void
damage_of_raft_is_named(void)
{
    static const char *const file[] = {"metadata1", "xac.group",
                                       "$(cd n3/raft && ls 0*-0* | head -n 1)"};
    char command[256];

    for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
        must_ok(system("cp -a n3/raft kept"));
        (void)snprintf(command, sizeof command,
                       "printf damage | dd of=n3/raft/%s conv=notrunc status=none",
                       file[i]);
        must_ok(system(command));
        must_say("start n3", 3, "aft");
        must_ok(system("rm -r n3/raft && mv kept n3/raft"));
    }
}

START_TEST(what_cannot_be_done_is_refused_in_words)
{
    struct group g;

    must_say("", 2, "usage:");
    must_say("--help", 0, "usage:");
    must_say("--version", 0, "libxac");
    must_say("create db", 2, "usage:");
    must_say("start --node 1 db", 2, "usage:");
    must_say("status --quiet db", 2, "usage:");
    must_ok(mkdir("empty", 0700));
    must_say("start empty", 5, "no xac.master");
    group_make(&g);
    must_say("create -m 127.0.0.1 n1", 1, "give HOST:PORT");
    must_say("create -m 127.0.0.1:port n1", 1, "give HOST:PORT");
    must_say("create -m unix:socket n1", 1, "give HOST:PORT");
    must_say("join --secret-file secret --node 2 n2", 2, "usage:");
    must_say("start --secret-file none n2", 1, "none: No such file");
    must_say("start --tls-cert none n2", 1, "--tls-key");
    must_say("create -m 127.0.0.1:1 -m 127.0.0.1:1 n1", 1,
             "two nodes cannot listen there");
    must_say("create -m 127.0.0.1:1 n1", 1, "a member of a group already");
    must_say("join -n 4 n2", 1, "the nodes 1 to 3");
    must_say("status n1", 1, "no xraftd runs there");
    must_rc(xInit("n1", XAC_DURABLE), XAC_ENOTLEADER);
    start_all(&g, "-q");
    (void)group_await_leader(&g, PATIENCE_S);
    must_say("start n1", 4, "another xraftd runs there");
    must_say("status --json n2", 0, "\"node\": 2");
    must_say("status n3", 0, "generation");
    stop_all(&g);
    raft_of_another_node_is_refused(&g);
    damage_of_raft_is_named();
    must_ok(system("cp -a n1 n4"));
    must_say("join -n 2 n4", 1, "the member has run");
    must_ok(system("mv n2/raft/metadata1 n2/raft/metadata2 ."));
    must_say("start n2", 3, "this node has forgotten how it voted");
    must_ok(system("mv n3/raft kept"));
    must_say("start n3", 3, "have the group remove node 3");
    must_rc(xInit("n1", XAC_DURABLE), XAC_ENOTLEADER);
    group_free(&g);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("xraftd");
    TCase *t = env_tcase(s, "xraftd", 300), *away = env_tcase(s, "away", 300);

    tcase_add_test(t, nothing_is_acknowledged_without_a_majority);
    tcase_add_loop_test(away, a_daemon_is_away_while_a_program_writes, 0, 2);
    tcase_add_test(away, a_program_that_stands_still_is_killed_when_another_node_leads);
    tcase_add_test(t, large_transactions_reach_all_nodes);
    tcase_add_test(t, a_leader_is_deposed_in_the_middle_of_a_large_transaction);
    tcase_add_test(t, programs_write_beside_each_other);
    tcase_add_test(t, a_log_that_is_shortened_serves_a_node_that_was_away);
    tcase_add_test(t, lost_files_are_noticed);
    tcase_add_test(t, what_cannot_be_done_is_refused_in_words);
    return env_main(s);
}
