/* SPDX-License-Identifier: MIT */
/*
 * check_ship.c -- xship send and xship receive: a standby at the other end of a pipe.
 *
 * GOAL    The standby begins with a copy and follows while a writer commits.  Whatever is killed, and
 *         whenever, each state that the standby is seen in is one of the source, none older than one seen
 *         before, and the end is the same on both sides.  What does not fit is refused with words on both
 *         sides, and loses nothing.
 * METHOD  The programs of the build, connected by sockets (--through) and by pipes.  kill -9 of either of them
 *         at random times, from a seed that is printed.  A judge recovers copies of the standby.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <signal.h>
#include <sys/prctl.h>

#include "tests/unit/ship/standby_env.h"
#include "tests/unit/tools/ship_run.h"

/* judge_live -- while the receiver stands still, as if it had been killed. */
static uint64_t
judge_live(void)
{
    pid_t pid = receiver_pid();
    uint64_t k;

    for (int i = 0; i < 500 && pid == 0; i++) {
        proc_sleep_us(10000);
        pid = receiver_pid();
    }
    must(pid > 1);
    must_ok(kill(pid, SIGSTOP));
    proc_sleep_us(20000);
    k = judge(COPY);
    must_ok(kill(pid, SIGCONT));
    return k;
}

/* await_standby -- until a standby lies there, with so many transactions in its log. */
static void
await_standby(uint64_t k)
{
    for (int i = 0; i < 600; i++) {
        if (file_exists(COPY "/xac.master") && !file_exists(COPY "/xac.receiving")
            && judge_live() >= k)
            return;
        proc_sleep_us(50000);
    }
    env_fail(__FILE__, __LINE__, "the standby does not come to transaction %llu",
             (unsigned long long)k);
}

/* ---- Following ------------------------------------------------------------------------ */

START_TEST(a_standby_follows_through_a_socket)
{
    pid_t send, writer;

    write_n(30);
    send = start_send("", COPY, "log");
    await_standby(30);
    board->n = 200;
    writer = proc_spawn(write_some, NULL);
    proc_await(&board->written, 130, 60);
    (void)judge_live();
    proc_join(writer);
    await_standby(230);
    must_eq(end_send(send), 0);
    must_say("log", "the standby has all up to LSN");
    must_say("log", "transactions received; " COPY " has all up to LSN");
    must_eq(judge(COPY), 230);
    must_eq(must_be_state(COPY IN_COPY), 230);
    /* Nothing is left over; the slot holds back little. */
    must(!file_exists(ENV_DIR "/xac.sending-standby"));
    must_eq(tool_run("xship", "slots", ENV_DIR), 0);
    ck_says("standby: holds log back from LSN ");
    /* It goes on where it was, in another generation. */
    write_n(20);
    send = start_send("", COPY, "log");
    await_standby(250);
    must_eq(end_send(send), 0);
    must_eq(must_be_state(COPY IN_COPY), 250);
    /* The standby becomes an environment of its own, and then follows nobody. */
    must_refuse(xInit(COPY, DURABLE), XAC_ENOTLEADER);
    must(strstr(xLastError(), "xship promote") != NULL);
    must_eq(tool_run("xrecover", "", COPY), 1);
    ck_says("xship promote");
    must_eq(tool_run("xship", "promote", COPY), 0);
    ck_says("is an environment of its own");
    must_eq(tool_run("xship", "promote", COPY), 1);
    ck_says("no standby");
    must_ok(xInit(COPY, DURABLE));
    must_ok(xShutdown());
    must_eq(must_be_state(COPY IN_COPY), 250);
    send = start_send("", COPY, "log");
    must(WEXITSTATUS(proc_wait(send)) == 1);
    must_say("log", "receive anew");
}
END_TEST

START_TEST(a_standby_follows_through_pipes)
{
    char command[5000];

    write_n(30);
    (void)snprintf(command, sizeof command,
                   "mkfifo back && (timeout -s TERM %d %s/xship send " ENV_DIR
                   " <back | %s/xship receive " COPY " >back) 2>log",
                   3, top(), top());
    run_shell(command);
    must_say("log", "has all up to LSN");
    must_eq(must_be_state(COPY IN_COPY), 30);
}
END_TEST

START_TEST(killed_at_any_time_it_goes_on)
{
    uint64_t seed = env_seed() + (uint64_t)_i, seen = 0,
             kills = env_number("XAC_KILLS", 25);
    pid_t writer;

    must_ok(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    write_n(30);
    board->n = UINT64_MAX;
    board->pause_us = 3000; /* the judge does all transactions again each time */
    writer = proc_spawn(write_some, NULL);
    for (uint64_t i = 0; i < kills; i++) {
        pid_t send = start_send("-q", COPY, "log"), receiver;

        if (i == 6) /* the first ones may not come to a standby */
            await_standby(30);
        proc_sleep_us(rnd_below(&seed, i % 4 == 0 ? 20000 : 300000));
        receiver = receiver_pid();
        if (rnd_below(&seed, 2) == 0 && receiver > 1) {
            (void)kill(receiver, SIGKILL);
            must(WEXITSTATUS(proc_wait(send)) == 1);
        } else {
            receiver = kill_sender(send);
        }
        if (receiver > 1)
            await_gone(receiver);
        if (file_exists(COPY "/xac.master")) {
            uint64_t k = judge(COPY);

            must(k >= seen);
            seen = k;
        }
    }
    word_store(&board->stop, 1);
    proc_join(writer);
    writer = start_send("", COPY, "log");
    await_standby(word_load(&board->written));
    must_eq(end_send(writer), 0);
    must_eq(must_be_state(COPY IN_COPY), word_load(&board->written));
    must(seen > 30);
}
END_TEST

/* ---- What is refused ------------------------------------------------------------------- */

/* must_end -- a send ends by itself, with this exit code and these words. */
static void
must_end(const char *options, const char *to, int code, const char *words)
{
    int status = proc_wait(start_send(options, to, "log"));

    must(WIFEXITED(status));
    must_say("log", words);
    must_eq(WEXITSTATUS(status), code);
}

/* start_shell -- a process. */
static pid_t
start_shell(const char *command)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    must(pid > 0);
    return pid;
}

/* rewind_old -- through a socket, or over a network; until it is a standby. */
static void
rewind_old(bool is_net)
{
    char command[5000];
    pid_t source, old = 0;

    if (is_net)
        (void)snprintf(command, sizeof command,
                       "exec %s/xship serve --listen unix:sock " COPY " >log-serve 2>&1",
                       top());
    else
        (void)snprintf(command, sizeof command,
                       "exec %s/xship send --through 'exec %s/xship rewind " ENV_DIR
                       "' " COPY " >log 2>&1",
                       top(), top());
    source = start_shell(command);
    (void)snprintf(command, sizeof command,
                   "exec %s/xship rewind unix:sock " ENV_DIR " >log 2>&1", top());
    if (is_net)
        old = start_shell(command);
    for (int i = 0; i < 1000; i++) {
        if (file_exists(ENV_DIR "/xac.follow") && !file_exists(ENV_DIR "/xac.rewind"))
            break;
        proc_sleep_us(20000);
    }
    if (is_net)
        must_eq(end_send(old), 0);
    must_eq(end_send(source), 0);
}

START_TEST(the_old_source_is_rewound)
{
    pid_t send;

    write_n(30);
    send = start_send("", COPY, "log");
    await_standby(30);
    must_eq(end_send(send), 0);
    must_eq(tool_run("xship", "promote", COPY), 0);
    write_n(5);
    rewind_old(_i == 1);
    must_say("log", "follows now: ");
    must_eq(must_be_state(ENV_DIR IN_COPY), 30);
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_ENOTLEADER);
    /* Its file lay outside, and stays what it was. */
    must_eq(must_be_state(ENV_FILE), 35);
}
END_TEST

START_TEST(one_sender_for_a_slot)
{
    pid_t send;

    write_n(10);
    send = start_send("", COPY, "log1");
    await_standby(10);
    must_end("", "other", 1, "another process sends to the standby of slot standby");
    must_end("--slot two", COPY, 4, "another process receives into it");
    must_eq(end_send(send), 0);
    must_eq(must_be_state(COPY IN_COPY), 10);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    pid_t send;

    write_n(10);
    send = start_send("", COPY, "log");
    await_standby(10);
    must_eq(end_send(send), 0);
    /* Something else lies there: it stays. */
    must_ok(mkdir("mine", 0700));
    file_write("mine/thing", 0, "x", 1);
    must_end("", "mine", 1, "mine: holds thing, and no standby");
    must(file_exists("mine/thing"));
    must_end("--slot a/b", COPY, 1, "letters, digits");
    /* The slot has gone. */
    must_eq(tool_run("xship", "drop", ENV_DIR " standby"), 0);
    must_end("", COPY, 1, "there is no slot standby");
    /* Another environment. */
    run_shell("mv " ENV_DIR " first && mv " ENV_FILE " first.db");
    write_n(0);
    must_end("", COPY, 1, "follows another environment");
    must_eq(must_be_state(COPY IN_COPY), 10);
}
END_TEST

START_TEST(parted_logs_are_refused)
{
    pid_t send;

    write_n(10);
    run_shell("cp -a " ENV_DIR " twin");
    send = start_send("", COPY, "log");
    await_standby(10);
    must_eq(end_send(send), 0);
    write_n(5);
    send = start_send("", COPY, "log");
    await_standby(15);
    must_eq(end_send(send), 0);
    /* The twin has the same identity and goes on by itself. */
    run_shell("mv " ENV_DIR " first && mv twin " ENV_DIR);
    write_n(7);
    must_eq(tool_run("xship", "hold", ENV_DIR " standby"), 0);
    must_end("", COPY, 1, "receive anew");
    must_eq(must_be_state(COPY IN_COPY), 15);
}
END_TEST

START_TEST(strangers_are_refused)
{
    char command[5000];

    write_n(10);
    (void)snprintf(command, sizeof command,
                   "%s/xship send --through 'echo hello, who are you' " ENV_DIR
                   " >log 2>&1; test $? = 3",
                   top());
    run_shell(command);
    must_say("log", "does not speak the protocol of xship");
    (void)snprintf(command, sizeof command,
                   "%s/xship send --through 'exit 7' " ENV_DIR " >log 2>&1; test $? = 1",
                   top());
    run_shell(command);
    must_say("log", "exit code 7");
    (void)snprintf(
        command, sizeof command,
        "head -c 100000 /dev/urandom | %s/xship receive new >out 2>log; test $? = 3",
        top());
    run_shell(command);
    must_say("log", "does not speak the protocol of xship");
    (void)snprintf(command, sizeof command,
                   "%s/xship receive new </dev/null >out 2>log; test $? = 1", top());
    run_shell(command);
    must_say("log", "the connection has been cut");
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("ship");
    TCase *t = env_tcase_with(s, "ship", 300, setup);

    env_in_memory();
    tcase_add_test(t, a_standby_follows_through_a_socket);
    tcase_add_test(t, a_standby_follows_through_pipes);
    tcase_add_loop_test(t, killed_at_any_time_it_goes_on, 0, 2);
    tcase_add_loop_test(t, the_old_source_is_rewound, 0, 2);
    tcase_add_test(t, one_sender_for_a_slot);
    tcase_add_test(t, what_does_not_fit_is_refused);
    tcase_add_test(t, parted_logs_are_refused);
    tcase_add_test(t, strangers_are_refused);
    return env_main(s);
}
