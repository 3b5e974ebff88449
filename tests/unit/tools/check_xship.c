/* SPDX-License-Identifier: MIT */
/*
 * check_xship.c -- what xship(1) makes, removes and lists; what xstat(1) says of slots.
 *
 * GOAL    Slots are the same in the file, in the region and in all outputs; wrong usage and failures
 *         have their exit codes and words.
 * METHOD  The programs of the build, on an environment that is at rest, and on one in use.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "tests/common/tool_run.h"

static void
make(void *arg)
{
    (void)arg;
    env_attach(DURABLE, 2);
    env_detach();
}

/* The child of the test is attached. */
static _Atomic uint64_t *at;

/* stay -- in a child: attached until it is killed. */
static void
stay(void *arg)
{
    uint64_t *x = (uint64_t *)env_attach(DURABLE, 2);

    (void)arg;
    env_put(x, 1);
    word_store(at, 1);
    proc_sleep_us(100000000);
}

/* must_list -- what xship slots says, as text and in JSON. */
static void
must_list(void)
{
    must_eq(tool_run("xship", "slots", ENV_DIR), 0);
    ck_says("backup-1: holds log back from LSN 4096 on\n");
    must_eq(tool_run("xship", "slots -j", ENV_DIR), 0);
    ck_says("\"name\": \"backup-1\"");
    ck_says("\"lsn\": 4096");
    ck_says("\"lost\": false");
}

START_TEST(slots_are_made_listed_and_removed)
{
    pid_t pid = 0;

    at = (_Atomic uint64_t *)proc_shared(sizeof *at);
    proc_run(make, NULL);
    must_eq(tool_run("xship", "slots", ENV_DIR), 0);
    must_eq(output[0], '\0');
    must_eq(tool_run("xship", "hold", ENV_DIR " backup-1"), 0);
    ck_says("slot backup-1 holds log back from LSN ");
    must_eq(tool_run("xship", "hold", ENV_DIR " backup-1"), 1);
    ck_says("slot backup-1");
    file_write(ENV_DIR "/xac.slots", 0, "xac-slots 1\n4096 backup-1\nend\n", 30);
    must_eq(truncate(ENV_DIR "/xac.slots", 30), 0);
    must_list();
    if (_i == 1) {
        pid = proc_spawn(stay, NULL);
        proc_await(at, 1, 20);
        must_list();
        must_eq(tool_run("xstat", "", ENV_DIR), 0);
        ck_says("  slot backup-1: holds back ");
        ck_says(" bytes of log, from LSN 4096 on\n");
        must_eq(tool_run("xstat", "--json", ENV_DIR), 0);
        must(strstr(output, "\"name\": \"backup-1\"") != NULL);
        must(strstr(output, "\"held_bytes\":") != NULL);
        must_eq(tool_run("xstat", "--prometheus", ENV_DIR), 0);
        must(strstr(output, "\nxac_log_slots{") != NULL);
    }
    must_eq(tool_run("xship", "drop", ENV_DIR " backup-1"), 0);
    must_eq(tool_run("xship", "drop", ENV_DIR " backup-1"), 1);
    must_eq(tool_run("xship", "slots", ENV_DIR), 0);
    must_eq(output[0], '\0');
    if (pid != 0)
        proc_kill(pid);
}
END_TEST

START_TEST(wrong_usage_is_refused)
{
    static const char *const wrong[] = {"",
                                        "slots",
                                        "hold " ENV_DIR,
                                        "drop",
                                        "send",
                                        "rewind",
                                        "rewind -s x " ENV_DIR,
                                        "rewind a b c",
                                        "rewind --tls-ca a " ENV_DIR,
                                        "hold -j " ENV_DIR " x",
                                        "slots " ENV_DIR " x",
                                        "--nothing slots " ENV_DIR,
                                        "slots ''"};

    proc_run(make, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        must_eq(tool_run("xship", wrong[i], ""), 2);
        ck_says("usage: xship");
    }
    must_eq(tool_run("xship", "-h", ""), 0);
    must_eq(tool_run("xship", "-V", ""), 0);
    must_eq(tool_run("xship", "slots", "nowhere"), 1);
    must_eq(tool_run("xship", "hold", "nowhere x"), 1);
    must_eq(mkdir("empty", 0777), 0);
    must_eq(tool_run("xship", "slots", "empty"), 5);
    must_eq(tool_run("xship", "hold", "empty x"), 5);
    must(!file_exists("empty/xac.master"));
    must_eq(tool_run("xship", "rewind 127.0.0.1:1", "empty"),
            5); /* nothing is copied there */
    must_eq(tool_run("xship", "rewind", "empty"), 5);
    ck_says("xship: empty: no xac.master");
    must_eq(tool_run("xship", "rewind 127.0.0.1:1", "nowhere"), 1);
    must_eq(tool_run("xship", "follow 127.0.0.1", "empty"), 1);
    ck_says("127.0.0.1: an address is HOST:PORT");
    must_eq(rmdir("empty"), 0);
    must_eq(mkdir("none", 0777), 0);
    must_eq(tool_run("xship", "promote", "none"), 1);
    ck_says("xship: none: no standby"); /* its name once */
    must_eq(rmdir("none"), 0);          /* nothing has been left in it */
    /* A node of a group, copied without its lock file. */
    must_eq(system(
                "cp -a " ENV_DIR " node && rm node/xac.lock && printf "
                "'xac-group 1\\ngroup 00112233445566778899aabbccddeeff\\nnode 1\\nend\\n'"
                " >node/xac.group"),
            0);
    must_eq(tool_run("xship", "rewind", "node </dev/null"), 1);
    must(!file_exists("node/xac.lock"));
    must_eq(tool_run("xship", "hold", ENV_DIR " 'a b'"), 1);
    ck_says("letters, digits");
    must(!file_exists("nowhere"));
    file_write(ENV_DIR "/xac.slots", 0, "nonsense", 8);
    must_eq(tool_run("xship", "slots", ENV_DIR), 3);
    ck_says("xac.slots");
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("xship");
    TCase *t = env_tcase(s, "xship", 100);

    tcase_add_loop_test(t, slots_are_made_listed_and_removed, 0, 2);
    tcase_add_test(t, wrong_usage_is_refused);
    return env_main(s);
}
