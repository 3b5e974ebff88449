/* SPDX-License-Identifier: MIT */
/*
 * check_members.c -- xraftd: nodes that are added to a running group, and removed from it.
 *
 * GOAL    A new node begins with an empty directory, gets everything over the network, and counts; a group in which it is
 *         needed for a majority goes on.  A node is removed.  Nothing that was acknowledged is lost while a
 *         program writes.  A number is never used again, also when another node leads.  What cannot be done is refused
 *         in words.
 * METHOD  Three nodes on this machine, as in check_group; the fourth is started and asked here.
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
    /* The one that leads is not removed. */
    (void)snprintf(words, sizeof words, "remove --node %u n%u", leader, leader);
    must_eq(say(words), 1);
    ck_says("end its xraftd");
    (void)snprintf(words, sizeof words, "remove --node %u n%u", lost, lost);
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

START_TEST(what_is_no_invitation_is_refused)
{
    struct group g;

    group_make(&g);
    must_eq(say("add --node 4 n1"), 2);
    must_eq(say("remove n1"), 2);
    must_eq(say("add --node 4 127.0.0.1:1 n1"), 1);
    ck_says("no xraftd runs there");
    must_ok(system("echo hello >file"));
    must_eq(say("join --node 4 --invitation file n4"), 1);
    ck_says("not what xraftd add has printed");
    must_eq(say("join --node 4 --invitation n1/xac.members n4"), 1);
    ck_says("for node 4");
    must_eq(say("join --node 3 --invitation n1/xac.members n1"), 1);
    ck_says("a new node begins in an empty directory");
    must_eq(say("join --node 4 --invitation none n5"), 1);
    ck_says("none: No such file");
    group_free(&g);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("members");
    TCase *t = env_tcase(s, "members", 400);

    tcase_add_loop_test(t, a_node_is_added_and_counts, 0, 2);
    tcase_add_test(t, a_node_is_replaced_under_another_number);
    tcase_add_test(t, what_is_no_invitation_is_refused);
    return env_main(s);
}
