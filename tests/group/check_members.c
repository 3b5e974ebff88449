/* SPDX-License-Identifier: MIT */
/*
 * check_members.c -- xraftd: nodes that are added to a running group, and removed from it.
 *
 * GOAL    A new node begins with an empty directory, gets everything over the network, and counts; a group in which it is
 *         needed for a majority goes on.  A node is removed.  Nothing that was acknowledged is lost while a
 *         program writes.  A number is never used again, also when another node leads.  What cannot be done is refused
 *         in words.  Each node can be removed, also the one that leads, one that has led, and one that was away: it disturbs
 *         nobody, hears of it by itself, ends, and its environment looks alive no more.  Another node leads when a user says so.
 * METHOD  Three nodes on this machine, as in check_group; the fourth is started and asked here.  XAC_ROUNDS of handing over.
 */
#include <config.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group_run.h"
#include "tests/common/env.h"
#include "tests/common/tool_run.h"

#define PATIENCE_S 90

/* A node that has been removed asks after 3 s. */
#define END_PATIENCE_S 40

/* say -- xraftd, with a command that the shell makes of it; ret the exit code. */
static int
say(const char *arguments)
{
    double until = env_now() + PATIENCE_S;
    int code;

    while ((code = tool_run("xraftd", arguments, "")) == 1
           && strstr(output, "try again later") != NULL && env_now() < until)
        (void)poll(NULL, 0, 50);
    return code;
}

/* must_add -- a node at the leader; the invitation is in a file. */
static void
must_add(const struct group *g, unsigned number, unsigned port)
{
    char arguments[256];

    (void)snprintf(arguments, sizeof arguments,
                   "add --node %u 127.0.0.1:%u n%u >invitation", number, port,
                   group_await_leader(g, PATIENCE_S));
    ck_assert_msg(say(arguments) == 0, "%s", output);
    (void)snprintf(arguments, sizeof arguments,
                   "join --node %u --invitation invitation n%u", number, number);
    ck_assert_msg(say(arguments) == 0, "%s", output);
}

/* start_new -- a node that the group's structure does not have. */
static pid_t
start_new(unsigned number)
{
    const char *top = getenv("top_builddir");
    char command[512];
    pid_t pid = proc_fork();

    (void)snprintf(command, sizeof command, "exec %s/xraftd start n%u >>n%u.log 2>&1",
                   top, number, number);
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* await_status -- until that of a node has the words. */
static void
await_status(unsigned number, const char *words)
{
    double until = env_now() + PATIENCE_S;
    char dir[16];

    (void)snprintf(dir, sizeof dir, "n%u", number);
    while (tool_run("xraftd", "status", dir) != 0 || strstr(output, words) == NULL) {
        if (env_now() > until) {
            (void)system("tail -n 30 n*.log");
            env_fail(__FILE__, __LINE__, "node %u does not say %s: %s", number, words,
                     output);
        }
        (void)poll(NULL, 0, 50);
    }
}

/* await_as_far -- until a node has applied what the leader has. */
static void
await_as_far(const struct group *g, unsigned number)
{
    struct group_status s;
    char words[64];

    must(group_ask(g, group_await_leader(g, PATIENCE_S), &s));
    (void)snprintf(words, sizeof words, "replicated  %llu",
                   (unsigned long long)s.replicated);
    await_status(number, words);
    (void)snprintf(words, sizeof words, "applied     %llu",
                   (unsigned long long)s.replicated);
    await_status(number, words);
}

/* must_be_equal -- the files of two nodes at rest. */
static void
must_be_equal(const char *one, const char *other)
{
    char command[128];

    (void)snprintf(command, sizeof command, "cmp %s/records %s/records", one, other);
    must_ok(system(command));
}

/* end -- a node in order; one that has been removed may have heard of it, and have ended. */
static void
end(pid_t pid)
{
    int status;

    (void)kill(pid, SIGTERM);
    must_eq(waitpid(pid, &status, 0), pid);
    must_eq(status, 0);
}

START_TEST(a_node_is_added_and_counts)
{
    unsigned leader, other;
    struct group g;
    pid_t fourth;

    group_make(&g);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_start(&g, i, "");
    group_await_acknowledged(&g, 50, PATIENCE_S);
    if (_i == 1)
        group_write_large(&g);
    must_add(&g, 4, group_free_port());
    fourth = start_new(4);
    group_await_acknowledged(&g, 50, PATIENCE_S);
    leader = group_await_leader(&g, PATIENCE_S);
    await_status(leader, "4 voter");
    await_status(4, "4 voter");
    /* Of four nodes three are needed. */
    other = 1 + leader % GROUP_NODES;
    group_kill(&g, other);
    group_await_acknowledged(&g, 50, PATIENCE_S);
    group_start(&g, other, "");
    group_kill_writer(&g);
    group_await_agreement(&g, PATIENCE_S);
    await_as_far(&g, 4);
    end(fourth);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_stop(&g, i);
    group_must_agree(&g);
    must_be_equal("n1", "n4");
    group_free(&g);
}
END_TEST

/* has_member -- does the status that was asked for last name a node? */
static bool
has_member(unsigned number)
{
    char words[32];

    (void)snprintf(words, sizeof words, "member      %u ", number);
    return strstr(output, words) != NULL;
}

START_TEST(a_node_is_replaced_under_another_number)
{
    unsigned leader, lost;
    char words[128];
    struct group g;
    pid_t fourth;

    group_make(&g);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_start(&g, i, "");
    group_await_acknowledged(&g, 50, PATIENCE_S);
    leader = group_await_leader(&g, PATIENCE_S);
    lost = 1 + leader % GROUP_NODES;
    (void)snprintf(words, sizeof words, "add --node 4 127.0.0.1:1 n%u", lost);
    must_eq(say(words), 1);
    ck_says("leads: say it there");
    (void)snprintf(words, sizeof words, "remove --node %u n%u", lost, leader);
    ck_assert_msg(say(words) == 0, "%s", output);
    await_status(leader, "member");
    must(!has_member(lost));
    end(g.node[lost - 1].pid);
    g.node[lost - 1].pid = 0;
    group_await_acknowledged(&g, 50, PATIENCE_S);
    must_add(&g, 4, group_free_port());
    fourth = start_new(4);
    await_status(4, "4 voter");
    (void)snprintf(words, sizeof words, "remove --node 4 n%u",
                   group_await_leader(&g, PATIENCE_S));
    ck_assert_msg(say(words) == 0, "%s", output);
    end(fourth);
    /* Another node leads, and knows the number that was used. */
    group_kill_writer(&g);
    leader = group_await_leader(&g, PATIENCE_S);
    group_stop(&g, leader);
    group_start(&g, leader, "");
    (void)snprintf(words, sizeof words, "add --node 4 127.0.0.1:1 n%u",
                   group_await_leader(&g, PATIENCE_S));
    must_eq(say(words), 1);
    ck_says("numbers are used once; the next one is 5");
    (void)snprintf(words, sizeof words, "add --node 5 127.0.0.1 n%u", leader);
    must_eq(say(words), 1);
    ck_says("give HOST:PORT");
    group_await_acknowledged(&g, 20, PATIENCE_S);
    group_free(&g);
}
END_TEST

/* say_for -- a command for a node, at a node; ret the exit code. */
static int
say_for(const char *command, unsigned number, unsigned at)
{
    char words[128];

    if (number != 0)
        (void)snprintf(words, sizeof words, "%s --node %u n%u", command, number, at);
    else
        (void)snprintf(words, sizeof words, "%s n%u", command, at);
    return say(words);
}

/* start_all -- three nodes, which have acknowledged something. */
static void
start_all(struct group *g)
{
    group_make(g);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_start(g, i, "");
    group_await_acknowledged(g, 50, PATIENCE_S);
}

/* term_of -- as a node says; of a node that leads. */
static unsigned long
term_of(unsigned number)
{
    char dir[16];
    const char *at;

    (void)snprintf(dir, sizeof dir, "n%u", number);
    must_eq(tool_run("xraftd", "status", dir), 0);
    at = strstr(output, "term ");
    must(at != NULL);
    return strtoul(at + 5, NULL, 10);
}

/* await_end -- the daemon of a node that has been removed ends by itself, in order. */
static void
await_end(pid_t pid)
{
    double until = env_now() + END_PATIENCE_S;
    int status;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (env_now() > until) {
            (void)!system("tail -n 30 n*.log");
            env_fail(__FILE__, __LINE__, "a node that has been removed runs on");
        }
        (void)poll(NULL, 0, 50);
    }
    must_eq(status, 0);
}

/* must_be_gone -- a node that has been removed, and knows it, is no environment that looks alive, and says why. */
static void
must_be_gone(unsigned number)
{
    static const int flags[] = {XAC_DURABLE, XAC_READONLY};
    char dir[16], path[64];
    int status;

    (void)snprintf(dir, sizeof dir, "n%u", number);
    (void)snprintf(path, sizeof path, "grep -q 'node %u has been removed' n%u.log",
                   number, number);
    must_ok(system(path));
    must_eq(tool_run("xraftd", "status", dir), 1);
    ck_says("has been removed from the group");
    must_eq(tool_run("xraftd", "start", dir), 1);
    ck_says("has been removed from the group");
    for (unsigned i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        pid_t pid = fork();

        must(pid >= 0);
        if (pid == 0) {
            must_eq(xInit(dir, flags[i]), XAC_ENOTLEADER);
            must(strstr(xLastError(), "has been removed from its group") != NULL);
            _exit(0);
        }
        must_eq(waitpid(pid, &status, 0), pid);
        must_eq(status, 0);
    }
}

/* forget -- the daemon of a node is no longer the group's; ret it. */
static pid_t
forget(struct group *g, unsigned number)
{
    pid_t pid = g->node[number - 1].pid;

    g->node[number - 1].pid = 0;
    return pid;
}

/* end_of_two -- the two nodes that are left have the same, and all that was acknowledged. */
static void
end_of_two(struct group *g, unsigned removed)
{
    unsigned leader = group_await_leader(g, PATIENCE_S);
    unsigned other = 1 + 2 + 3 - removed - leader;
    char one[16], two[16];

    group_kill_writer(g);
    group_query(g, leader); /* what it has seen is committed then */
    await_as_far(g, other);
    group_query(g, other);
    group_stop(g, other);
    group_stop(g, leader);
    (void)snprintf(one, sizeof one, "n%u", leader);
    (void)snprintf(two, sizeof two, "n%u", other);
    must_be_equal(one, two);
    group_free(g);
}

START_TEST(the_node_that_leads_is_removed)
{
    unsigned leader;
    struct group g;

    start_all(&g);
    leader = group_await_leader(&g, PATIENCE_S);
    must_eq(say_for("remove", 77, leader), 1);
    ck_says("there is no node 77");
    /* At that node itself, or at another one. */
    ck_assert_msg(say_for("remove", leader, _i == 0 ? leader : 1 + leader % 3) == 0, "%s",
                  output);
    ck_says("has been removed");
    await_end(forget(&g, leader));
    must_be_gone(leader);
    group_await_acknowledged(&g, 50, PATIENCE_S);
    await_status(group_await_leader(&g, PATIENCE_S), "member");
    must(!has_member(leader));
    end_of_two(&g, leader);
}
END_TEST

/* query_until_refused -- start a program at a node that follows; it ends when its queries are refused because the node has been
   removed.  ret its pid. */
static pid_t
query_until_refused(unsigned number)
{
    char dir[16], c;
    int ready[2], rc;
    pid_t pid;

    must_ok(pipe2(ready, O_CLOEXEC));
    (void)snprintf(dir, sizeof dir, "n%u", number);
    pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        must_ok(xInit(dir, XAC_DURABLE));
        must_eq(write(ready[1], "", 1), 1);
        while ((rc = xbeginQuery()) == 0) {
            must_ok(xendQuery());
            (void)poll(NULL, 0, 20);
        }
        must_eq(rc, XAC_ENOTLEADER);
        must(strstr(xLastError(), "this node has been removed") != NULL);
        _exit(0);
    }
    (void)close(ready[1]);
    must_eq(read(ready[0], &c, 1), 1);
    (void)close(ready[0]);
    return pid;
}

enum away {
    AWAY_STOPPED, /* as if it were cut off; it has led                                    */
    AWAY_KILLED, /* while it led                                                        */
    AWAY_ENDED,  /* in order; it has led                                                */
    AWAYS
};

/* go_away -- node 3, which leads. */
static void
go_away(struct group *g, enum away how)
{
    if (how == AWAY_KILLED) {
        group_kill(g, 3);
        return;
    }
    ck_assert_msg(say_for("transfer", 0, 1) == 0, "%s", output);
    await_status(3, "standby");
    must(group_await_leader(g, PATIENCE_S) != 3);
    if (how == AWAY_ENDED)
        group_stop(g, 3);
    else
        must_ok(kill(g->node[2].pid, SIGSTOP));
}

START_TEST(a_node_that_has_led_is_removed_while_it_is_away)
{
    pid_t reader = 0, away;
    unsigned long term;
    unsigned leader;
    struct group g;
    int status;

    start_all(&g);
    ck_assert_msg(say_for("transfer", 3, 1) == 0, "%s", output);
    ck_says("node 3 leads");
    await_status(3, "writable");
    group_await_acknowledged(&g, 20, PATIENCE_S);
    go_away(&g, (enum away)_i);
    away = _i == AWAY_STOPPED ? forget(&g, 3) : 0;
    if (_i == AWAY_STOPPED) {
        must_ok(kill(away, SIGCONT));
        reader = query_until_refused(3);
        must_ok(kill(away, SIGSTOP));
    }
    leader = group_await_leader(&g, PATIENCE_S);
    ck_assert_msg(say_for("remove", 3, leader) == 0, "%s", output);
    term = term_of(leader);
    if (_i == AWAY_STOPPED) {
        must_ok(kill(away, SIGCONT));
    } else {
        group_start(&g, 3, "");
        away = forget(&g, 3);
    }
    group_await_acknowledged(&g, 50, PATIENCE_S);
    await_end(away);
    must_be_gone(3);
    if (reader != 0) {
        must_eq(waitpid(reader, &status, 0), reader);
        must_eq(status, 0);
    }
    /* It has disturbed nobody. */
    must_eq(group_await_leader(&g, PATIENCE_S), leader);
    must_eq(term_of(leader), term);
    must_eq(say_for("add", 3, leader), 2);
    must_eq(say_for("add --node 3 127.0.0.1:1", 0, leader), 1);
    ck_says("numbers are used once; the next one is 4");
    end_of_two(&g, 3);
}
END_TEST

START_TEST(it_hears_of_it_though_it_does_not_know_who_leads)
{
    struct group g;
    pid_t fourth;

    start_all(&g);
    if (group_await_leader(&g, PATIENCE_S) == 3)
        must_eq(say_for("transfer", 1, 3), 0);
    group_stop(&g, 3);
    must_add(&g, 4, group_free_port());
    must_ok(system("mkdir n4/raft && touch n4/raft/copy")); /* no copy gets there */
    fourth = start_new(4);
    await_status(group_await_leader(&g, PATIENCE_S), "4 voter");
    /* It is elected, and lets another one lead, since it has no environment. */
    (void)say_for("transfer", 4, 1); /* which may be too short to be seen */
    group_await_acknowledged(&g, 20, PATIENCE_S);
    await_status(4, "state       empty");
    must_ok(unlink("n4/raft/copy"));
    await_status(4, "state       standby");
    group_kill_writer(&g);
    ck_assert_msg(say_for("transfer", 4, 1) == 0, "%s", output);
    await_status(4, "writable");
    must_eq(say_for("remove", 3, 1), 0);
    /* Nodes 1 and 2 are asked, which ask node 4. */
    group_start(&g, 3, "");
    await_end(forget(&g, 3));
    must_be_gone(3);
    end(fourth);
    group_free(&g);
}
END_TEST

START_TEST(a_node_that_the_others_need_is_not_removed)
{
    unsigned leader, dead, other;
    struct group g;
    char words[64];

    start_all(&g);
    group_kill_writer(&g);
    group_await_agreement(
        &g, PATIENCE_S); /* so the one that dies has as much as the others */
    leader = group_await_leader(&g, PATIENCE_S);
    dead = 1 + leader % 3;
    other = 1 + 2 + 3 - leader - dead;
    group_kill(&g, dead);
    for (unsigned i = 0; i < 2; i++) {
        unsigned node = i == 0 ? other : leader;

        must_eq(say_for("remove", node, other), 1);
        (void)snprintf(words, sizeof words, "without node %u no majority", node);
        ck_says(words);
        must_eq(group_await_leader(&g, PATIENCE_S), leader);
    }
    group_await_acknowledged(&g, 20, PATIENCE_S);
    /* The one that is down can be removed, and then the group of two goes on. */
    ck_assert_msg(say_for("remove", dead, other) == 0, "%s", output);
    group_await_acknowledged(&g, 20, PATIENCE_S);
    end_of_two(&g, dead);
}
END_TEST

START_TEST(another_node_leads_when_it_is_told_to)
{
    uint64_t rounds = env_number("XAC_ROUNDS", 12);
    unsigned leader, dead, other;
    struct group g;
    char words[64];

    start_all(&g);
    must_eq(say_for("transfer", 9, 1), 1);
    ck_says("there is no node 9");
    for (unsigned i = 0; i < rounds; i++) {
        unsigned to, number;

        leader = group_await_leader(&g, PATIENCE_S);
        to = 1 + leader % 3;
        /* Two of three times a node is named, at whichever node. */
        ck_assert_msg(say_for("transfer", i % 3 == 0 ? 0 : to, 1 + i % 3) == 0, "%s",
                      output);
        must_eq(sscanf(output, "node %u leads", &number), 1);
        must(i % 3 == 0 ? number != leader : number == to);
        await_status(number, "writable");
        group_await_acknowledged(&g, 20, PATIENCE_S);
    }
    /* One that has died with as much as the others is not chosen. */
    group_kill_writer(&g);
    group_await_agreement(&g, PATIENCE_S);
    leader = group_await_leader(&g, PATIENCE_S);
    dead = leader == 1 ? 2 : 1;
    other = 1 + 2 + 3 - leader - dead;
    group_kill(&g, dead);
    must_eq(say_for("transfer", dead, other), 1);
    (void)snprintf(words, sizeof words, "node %u has not begun to lead", dead);
    ck_says(words);
    ck_assert_msg(say_for("transfer", 0, leader) == 0, "%s", output);
    (void)snprintf(words, sizeof words, "node %u leads", other);
    ck_says(words);
    group_start(&g, dead, "");
    group_await_acknowledged(&g, 20, PATIENCE_S);
    group_end_seen(&g, PATIENCE_S);
    group_free(&g);
}
END_TEST

START_TEST(what_is_no_invitation_is_refused)
{
    struct group g;

    group_make(&g);
    must_eq(say("add --node 4 n1"), 2);
    must_eq(say("remove n1"), 2);
    must_eq(say("transfer --json n1"), 2);
    must_eq(say("add --node 4 127.0.0.1:1 n1"), 1);
    ck_says("no xraftd runs there");
    must_ok(system("echo hello >file"));
    must_eq(say("join --node 4 --invitation file n4"), 1);
    ck_says("not what xraftd add has printed");
    must_eq(say("join --node 4 --invitation n1/xac.members n4"), 1);
    ck_says("for node 4");
    must(access("n4", F_OK) != 0); /* nothing has been made */
    must_eq(say("join --node 3 --invitation n1/xac.members n1"), 1);
    ck_says("a new node begins in an empty directory");
    must_eq(say("join --node 4 --invitation none n5"), 1);
    ck_says("none: No such file");
    must(access("n5", F_OK) != 0);
    group_free(&g);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("members");
    TCase *added = env_tcase(s, "added", 400), *removed = env_tcase(s, "removed", 400),
          *away = env_tcase(s, "away", 400), *told = env_tcase(s, "told", 400),
          *needed = env_tcase(s, "needed", 400);

    tcase_add_loop_test(added, a_node_is_added_and_counts, 0, 2);
    tcase_add_test(added, a_node_is_replaced_under_another_number);
    tcase_add_test(added, what_is_no_invitation_is_refused);
    tcase_add_loop_test(removed, the_node_that_leads_is_removed, 0, 2);
    tcase_add_test(needed, a_node_that_the_others_need_is_not_removed);
    tcase_add_test(removed, it_hears_of_it_though_it_does_not_know_who_leads);
    tcase_add_loop_test(away, a_node_that_has_led_is_removed_while_it_is_away, 0, AWAYS);
    tcase_add_test(told, another_node_leads_when_it_is_told_to);
    return env_main(s);
}
