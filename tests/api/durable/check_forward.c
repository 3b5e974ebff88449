/* SPDX-License-Identifier: MIT */
/*
 * check_forward.c -- backups rolled forward over a log in which files come and go.
 *
 * GOAL    What was committed to a file is there, whether it was forgotten meanwhile, and mapped again, or
 *         left; a file that has got another name, or whose name has got another file, is never mixed with what
 *         the backup has: it is right, or refused in words that name the way out.
 * METHOD  Each page of a file holds one number.  A backup gets all log that has come since, and xrecover brings
 *         it to the end of that, or to the position that a refusal names.  A limit of file size kills some.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac_stats.h>

#include "../../common/env.h"
#include "../../common/tool_run.h"

#define N_PAGES 16u
#define A       ENV_DIR "/a"
#define B       ENV_DIR "/b"
#define C       ENV_DIR "/c"

/* ---- Files ------------------------------------------------------------------------ */

static uint64_t *
map(const char *name)
{
    uint64_t *x = xMmap(name, N_PAGES * env_page());

    if (x == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "mapping %s: %s", name, xLastError());
    return x;
}

/* put -- one page of a file that is mapped for it. */
static void
put(const char *name, unsigned page, uint64_t value)
{
    env_put(env_cell(map(name), page), value);
    must_ok(xMunmap(name));
}

/* fill -- every page of it. */
static void
fill(const char *name, uint64_t value)
{
    uint64_t *x = map(name);

    must_ok(xbegin());
    for (unsigned p = 0; p < N_PAGES; p++)
        *env_cell(x, p) = value;
    must_eq(xend(), COMMITTED);
    must_ok(xMunmap(name));
}

/* must_have -- a file's pages: value, but for two of them. */
static void
must_have(const char *name, uint64_t value, uint64_t at3, uint64_t at4)
{
    for (unsigned p = 0; p < N_PAGES; p++)
        must_eq(file_u64(name, p * env_page()), p == 3 ? at3 : p == 4 ? at4 : value);
}

/* leave -- nobody maps any file: let checkpoints leave them, so that the log names them no more. */
static void
leave(void)
{
    for (unsigned i = 0; i < 3; i++) {
        put(B, 0, i); /* or else a checkpoint has nothing to do */
        must_ok(xCheckpoint());
    }
}

/* start -- a backup of a file a that is 1, and a little log behind it. */
static void
start(void)
{
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, 0));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    must_eq(mkdir(ENV_DIR, 0777), 0);
    env_init(DURABLE);
    fill(A, 1);
    must_ok(xBackup("b0"));
    put(A, 3, 33);
}

/* end -- all that has been logged since is put into the backup. */
static void
end(void)
{
    must_ok(xShutdown());
    must_eq(system("cp " ENV_DIR "/xac-log.* b0/"), 0);
}

static int
roll(const char *how)
{
    char arguments[64];

    (void)snprintf(arguments, sizeof arguments, "--until %s", how);
    return tool_run("xrecover", arguments, "b0");
}

/* must_roll_before -- to where the refusal says, which is before what was refused. */
static void
must_roll_before(void)
{
    const char *at = strstr(output, "--until ");
    char *behind, how[32];
    unsigned long long lsn;

    must(at != NULL);
    lsn = strtoull(at + strlen("--until "), &behind, 10);
    must(lsn > 0 && *behind == ')');
    (void)snprintf(how, sizeof how, "%llu", lsn);
    if (roll(how) != 0)
        env_fail(__FILE__, __LINE__, "--until %s: %s", how, output);
}

/* ---- The same file ---------------------------------------------------------------- */

/* go_away -- nobody knows file a any more. */
static void
go_away(int how)
{
    if (how == 0)
        must_ok(xForget(A));
    else
        leave();
}

START_TEST(file_that_comes_back_has_all)
{
    start();
    go_away(_i);
    put(A, 4, 44);
    go_away(_i);
    put(A, 4, 45);
    end();
    must_eq(roll("end"), 0);
    must_have("b0/a", 1, 33, 45);
}
END_TEST

static _Atomic uint64_t *phase;

static void
read_long(void *arg)
{
    uint64_t *b;

    (void)arg; /* the fork has the environment and file a */
    must_ok(xMunmap(A));
    b = map(B);
    must_ok(xbeginQuery());
    must_eq(*b, 0);
    word_store(&phase[0], 1);
    proc_await(&phase[1], 1, 30);
    must_ok(xendQuery());
    must_ok(xShutdown());
}

/* The log that a query needs names the file, so checkpoints keep it, and it is logged that it is forgotten. */
START_TEST(file_that_is_known_to_be_forgotten_comes_back)
{
    uint64_t *a;
    struct xac_stats st;
    pid_t pid;

    start();
    phase = proc_shared(2 * sizeof *phase);
    put(B, 1, 1);
    a = map(A);
    env_put(env_cell(a, 5), 5);
    pid = proc_spawn(read_long, NULL);
    proc_await(&phase[0], 1, 30);
    put(B, 0, 2);
    must_ok(xMunmap(A));
    must_ok(xForget(A));
    must_ok(xStats(&st, sizeof st));
    must_eq(st.files_forgotten, 1);
    a = map(A);
    env_put(env_cell(a, 4), 44);
    if (_i == 1)
        env_put(env_cell(a, 5), 1);
    must_ok(xMunmap(A));
    word_store(&phase[1], 1);
    proc_join(pid);
    end();
    must_eq(roll("end"), 0);
    must_eq(file_u64("b0/a", 5 * env_page()), _i == 0 ? 5 : 1);
    must_eq(file_u64("b0/a", 4 * env_page()), 44);
    must_eq(file_u64("b0/a", 3 * env_page()), 33);
}
END_TEST

START_TEST(file_that_goes_is_as_it_was_then)
{
    start();
    go_away(_i);
    fill(B, 2);
    end();
    must_eq(roll("end"), 0);
    must_have("b0/a", 1, 33, 1);
    must_have("b0/b", 2, 2, 2);
}
END_TEST

/* A roll forward that is killed when it has begun to write goes on where it was. */
START_TEST(killed_in_the_middle)
{
    start();
    fill(A, 2);
    put(A, 3, 33);
    must_ok(xRename(A, C)); /* which the log forgets, and knows again */
    put(C, 5, 55);
    must_ok(xRename(C, A));
    put(A, 6, 66);
    put(A, 4, 44);
    end();
    must(tool_run("/bin/sh",
                  "-c 'ulimit -f 16; exec \"$top_builddir\"/xrecover --until end b0'", "")
         != 0);
    must(file_u64("b0/a", (N_PAGES - 1) * env_page()) == 1);
    must(file_exists("b0/xac.backup"));
    must_eq(roll("end"), 0);
    must_eq(file_u64("b0/a", 2 * env_page()), 2);
    must_eq(file_u64("b0/a", 3 * env_page()), 33);
    must_eq(file_u64("b0/a", 4 * env_page()), 44);
    must_eq(file_u64("b0/a", 5 * env_page()), 55);
    must_eq(file_u64("b0/a", 6 * env_page()), 66);
    must(!file_exists("b0/c"));
}
END_TEST

/* ---- Another file ----------------------------------------------------------------- */

/* make_anew -- the name gets another file, of which page 4 is 44. */
static void
make_anew(int how)
{
    if (how == 1)
        must_ok(xForget(A));
    else if (how == 2)
        leave();
    must_eq(rename(A, "kept"), 0); /* so that its inode is not used again */
    put(A, 4, 44);
}

START_TEST(file_made_anew_is_not_mixed_with_the_old_one)
{
    start();
    make_anew(_i);
    end();
    must(roll("end") != 0);
    ck_says("a: the backup has another file");
    must_have("b0/a", 1, 1, 1);
    must_roll_before();
    must_have("b0/a", 1, 33, 1);
}
END_TEST

START_TEST(file_made_anew_begins_empty)
{
    start();
    make_anew(_i);
    end();
    must_eq(tool_run("xrecover", "--until end --accept-replaced", "b0"), 0);
    must_have("b0/a", 0, 0, 44);
}
END_TEST

/* ---- Another name ----------------------------------------------------------------- */

/* call_c -- file a is called c, by other means. */
static void
call_c(int how)
{
    if (how != 2)
        go_away(how);
    must_eq(rename(A, C), 0);
    if (how == 2) /* a checkpoint notices that it is gone */
        must_ok(xForget(A));
    put(C, 4, 44);
}

START_TEST(renamed_file_is_refused)
{
    start();
    call_c(_i);
    put(C, 4, 45);
    end();
    must(roll("end") != 0);
    ck_says("a: has been called c since the backup was made");
    must(tool_run("xrecover", "--until end --accept-replaced", "b0") != 0);
    must(!file_exists("b0/c"));
    must_have("b0/a", 1, 1, 1);
    must_roll_before();
    must_have("b0/a", 1, 33, 1);
    must(!file_exists("b0/c"));
}
END_TEST

START_TEST(file_that_has_its_name_back_has_all)
{
    start();
    call_c(_i);
    must_ok(xForget(C));
    must_eq(rename(C, A), 0);
    put(A, 5, 55);
    put(A, 5, 1);
    end();
    must_eq(roll("end"), 0);
    must_have("b0/a", 1, 33, 44);
    must(!file_exists("b0/c"));
}
END_TEST

/* By xRename().  If it is removed then, what the backup has is as it was at that moment. */
START_TEST(renamed_file_may_go)
{
    start();
    must_ok(xRename(A, C));
    put(C, 4, 44);
    if (_i == 1)
        must_ok(xRemove(C));
    end();
    must_eq(roll("end") != 0, _i == 0);
    if (_i == 0)
        ck_says("a: has been called c since the backup was made");
    else
        must_have("b0/a", 1, 33, 44);
    must(!file_exists("b0/c"));
}
END_TEST

/* Files that are made, filled, and given the name of an older one; one of the backup goes, and another one that has
   got its name, too. */
START_TEST(new_files_come_and_go)
{
    start();
    for (uint64_t i = 1; i <= 3; i++) {
        fill(B, i * 100);
        if (i > 1)
            must_ok(xRemove(C));
        must_ok(xRename(B, C));
    }
    if (_i == 1) {
        must_ok(xRemove(A));
        fill(A, 5);
        must_ok(xRemove(A));
    }
    end();
    if (roll("end") != 0)
        env_fail(__FILE__, __LINE__, "%s", output);
    must_have("b0/c", 300, 300, 300);
    must(!file_exists("b0/b"));
    must_have("b0/a", 1, 33, 1);
}
END_TEST

/* What has been made since can be made under any name. */
START_TEST(new_file_has_its_last_name)
{
    start();
    fill(B, 2);
    must_ok(xForget(B));
    must_eq(rename(B, C), 0);
    put(C, 4, 44);
    must_ok(xForget(C));
    must_eq(rename(C, ENV_DIR "/d"), 0);
    put(ENV_DIR "/d", 3, 43);
    fill(B, 7); /* another one */
    end();
    must_eq(roll("end"), 0);
    must_have("b0/a", 1, 33, 1);
    must_have("b0/d", 2, 43, 44);
    must_have("b0/b", 7, 7, 7);
    must(!file_exists("b0/c"));
}
END_TEST

/* In a later generation of the log, what has been made in an earlier one is in the backup. */
START_TEST(later_generations_know_what_has_been_made)
{
    start();
    fill(B, 2);
    must_ok(xShutdown());
    env_init(DURABLE);
    put(B, 3, 33);
    must_ok(xForget(B));
    if (_i == 0)
        put(B, 4, 44);
    else if (_i == 1)
        must_eq(rename(B, C), 0);
    else
        must_eq(rename(B, "kept"), 0);
    put(_i == 1 ? C : B, 5, 55);
    end();
    must_eq(roll("end") == 0, _i == 0);
    if (_i == 0)
        must_eq(file_u64("b0/b", 4 * env_page()), 44);
    else if (_i == 1)
        ck_says("b: has been called c since the backup was made");
    else
        ck_says("b: the backup has another file");
    must_eq(file_u64("b0/b", 3 * env_page()), _i == 0 ? 33 : 2);
}
END_TEST

/* A file that the backup has not, and that lies elsewhere, is made in the backup: once, in whatever order each
   generation of the log names the files. */
START_TEST(file_from_elsewhere_gets_one_place)
{
    start();
    fill(B, 1);
    fill("out", 2);
    must_ok(xShutdown());
    env_init(DURABLE);
    put("out", 3, 33);
    must_ok(xShutdown());
    env_init(DURABLE);
    put(A, 4, 44);
    put("out", 4, 44);
    end();
    if (roll("end") != 0)
        env_fail(__FILE__, __LINE__, "%s", output);
    must_eq(file_count("b0", "xac-later-"), 1);
    must_eq(system("mv b0/xac-later-*-out found"), 0);
    must_have("found", 2, 33, 44);
    must_have("out", 2, 33, 44);
    must_have("b0/a", 1, 33, 44);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("forward");
    TCase *tc = env_tcase(s, "forward", 120);

    tcase_add_loop_test(tc, file_that_comes_back_has_all, 0, 2);
    tcase_add_loop_test(tc, file_that_is_known_to_be_forgotten_comes_back, 0, 2);
    tcase_add_loop_test(tc, file_that_goes_is_as_it_was_then, 0, 2);
    tcase_add_test(tc, killed_in_the_middle);
    tcase_add_loop_test(tc, file_made_anew_is_not_mixed_with_the_old_one, 0, 3);
    tcase_add_loop_test(tc, file_made_anew_begins_empty, 0, 3);
    tcase_add_loop_test(tc, renamed_file_is_refused, 0, 3);
    tcase_add_loop_test(tc, file_that_has_its_name_back_has_all, 0, 3);
    tcase_add_loop_test(tc, renamed_file_may_go, 0, 2);
    tcase_add_loop_test(tc, new_files_come_and_go, 0, 2);
    tcase_add_test(tc, new_file_has_its_last_name);
    tcase_add_loop_test(tc, later_generations_know_what_has_been_made, 0, 3);
    tcase_add_test(tc, file_from_elsewhere_gets_one_place);
    return env_main(s);
}
