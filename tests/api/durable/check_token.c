/* SPDX-License-Identifier: MIT */
/*
 * check_token.c -- tokens in an environment that nobody replicates (xac_replication.h).
 *
 * GOAL    A token names what the thread has ended last, or what its query sees.  It is good over crashes and later
 *         generations of the log: what has stayed is said to have stayed, what a crash has taken to be lost, and nothing is
 *         said of what is not known.  A token of a copy that has parted from the environment is none of the environment.
 * METHOD  Commits by processes, threads and two environments; kills before the log is written; a copy of the directory that is
 *         opened beside the original; calls that must fail.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac_env.h>

#include "env.h"

#define N_PAGES 4

/* What a child tells. */
struct board {
    struct xac_token early, late;
    _Atomic uint64_t is_done;
};

static struct board *board;

static void
setup(void)
{
    env_setup();
    board = (struct board *)proc_shared(sizeof *board);
}

/* token_now -- the thread's. */
static struct xac_token
token_now(void)
{
    struct xac_token t;

    must_ok(xToken(&t));
    return t;
}

/* put -- a commit; ret its token. */
static struct xac_token
put(uint64_t *cell, uint64_t value)
{
    env_put(cell, value);
    return token_now();
}

/* is_before -- in the same generation. */
static bool
is_before(const struct xac_token *a, const struct xac_token *b)
{
    must_eq(a->generation, b->generation);
    must_eq(a->branch, b->branch);
    return a->lsn < b->lsn;
}

/* ---- What a token is of --------------------------------------------------------------------- */

START_TEST(a_commit_has_a_token)
{
    struct xac_token first, second, seen, none = {0};
    uint64_t *x = (uint64_t *)env_attach(DURABLE, N_PAGES);

    must_refuse(xToken(&first), XAC_ENOSTATE);
    first = put(x, 1);
    second = put(x, 2);
    must(is_before(&first, &second));
    must(first.lsn != 0 && first.generation != 0);
    for (int i = 0; i < 3; i++) {
        must_ok(xbeginQueryAfter(i == 0 ? &none : i == 1 ? &first : &second, 0));
        must_eq(x[0], 2);
        seen = token_now();
        must_eq(memcmp(&seen, &second, sizeof seen), 0);
        must_ok(xendQuery());
    }
    must_ok(xbegin()); /* what it has read is what it has seen */
    must_eq(x[0], 2);
    must_rc(xend(), COMMITTED);
    seen = token_now();
    must_eq(memcmp(&seen, &second, sizeof seen), 0);
    must_ok(xbegin());
    x[0] = 3;
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    seen = token_now();
    must_eq(memcmp(&seen, &second, sizeof seen), 0);
    must_ok(xFate(&none, 0));
    must_ok(xFate(&second, 0));
    env_detach();
}
END_TEST

START_TEST(a_query_has_the_token_of_its_state)
{
    struct xac_token before, seen, now;
    uint64_t id, *x = (uint64_t *)env_attach(DURABLE, N_PAGES);

    must_ok(xbeginQuery()); /* nothing has been committed: the start of the log */
    now = token_now();
    must_ok(xendQuery());
    before = put(x, 1);
    must(is_before(&now, &before));
    must_ok(xSnapshot(&id));
    now = put(x, 2);
    must_ok(xbeginQueryAt(id));
    must_eq(x[0], 1);
    seen = token_now();
    must_ok(xendQuery());
    must_eq(memcmp(&seen, &before, sizeof seen), 0);
    must(is_before(&seen, &now));
    env_detach();
}
END_TEST

/* commit_in_thread -- its own token, and none before. */
static void *
commit_in_thread(void *arg)
{
    uint64_t *x = (uint64_t *)xView(arg);
    struct xac_token t;

    must((void *)x != MAP_FAILED);
    must_refuse(xToken(&t), XAC_ENOSTATE);
    board->late = put(env_cell(x, 1), 7);
    must_ok(xUnview(x));
    return NULL;
}

START_TEST(each_thread_has_its_own)
{
    struct xac_token mine, again;
    pthread_t thread;
    uint64_t *x = (uint64_t *)env_attach(DURABLE, N_PAGES);

    mine = put(x, 1);
    must_ok(pthread_create(&thread, NULL, commit_in_thread, x));
    must_ok(pthread_join(thread, NULL));
    again = token_now();
    must_eq(memcmp(&mine, &again, sizeof mine), 0);
    must(is_before(&mine, &board->late));
    env_detach();
}
END_TEST

#define N_ENVS 6

START_TEST(each_environment_has_its_own)
{
    struct xac_env *env[N_ENVS];
    struct xac_token t[N_ENVS], again;
    uint64_t *x;
    char name[32];

    for (size_t i = 0; i < N_ENVS; i++) {
        (void)snprintf(name, sizeof name, "db%zu", i);
        env[i] = xac_open(name, NULL);
        must(env[i] != NULL);
        (void)snprintf(name, sizeof name, "file%zu", i);
        x = (uint64_t *)xac_mmap_in(env[i], name, env_page());
        must((void *)x != MAP_FAILED);
        must_ok(xac_begin_in(env[i]));
        x[0] = i + 1;
        must_rc(xac_end_in(env[i]), COMMITTED);
        must_ok(xac_get_token_in(env[i], &t[i]));
    }
    for (size_t i = 0; i < N_ENVS; i++) { /* the last four are remembered */
        if (i < N_ENVS - 4) {
            must_refuse(xac_get_token_in(env[i], &again), XAC_ENOSTATE);
            continue;
        }
        must_ok(xac_get_token_in(env[i], &again));
        must_eq(memcmp(&t[i], &again, sizeof again), 0);
        must_ok(xac_begin_query_after_in(env[i], &t[i], 0));
        must_ok(xac_end_query_in(env[i]));
        must_ok(xac_fate_in(env[i], &t[i], 0));
    }
    must_ok(xac_close(env[N_ENVS - 1]));
    env[N_ENVS - 1] = xac_open("db5", NULL); /* whatever its address: it is another one */
    must(env[N_ENVS - 1] != NULL);
    must_refuse(xac_get_token_in(env[N_ENVS - 1], &again), XAC_ENOSTATE);
    must_ok(xac_fate_in(env[N_ENVS - 1], &t[N_ENVS - 1], 0));
    for (size_t i = 0; i < N_ENVS; i++)
        must_ok(xac_close(env[i]));
}
END_TEST

/* ---- What becomes of it ----------------------------------------------------------------------- */

/* commit_late -- a child: one commit that is on disk, and one that is not; then it is killed. */
static void
commit_late(void *arg)
{
    uint64_t *x;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, 3600000));
    x = (uint64_t *)env_attach(DURABLE, N_PAGES);
    board->early = put(x, 1);
    must_rc(xFate(&board->early, 0), XAC_EUNCERTAIN); /* it is not on disk */
    must_ok(xbeginQueryAfter(&board->early, 0));      /* but it can be seen */
    must_eq(x[0], 1);
    must_rc(xendQuery(), 0);
    must_ok(xSync());
    must_ok(xFate(&board->early, 0));
    board->late = put(x, 2);
    must_rc(xFate(&board->late, 1), XAC_EUNCERTAIN);
    (void)raise(SIGKILL);
}

START_TEST(what_a_crash_has_taken_is_lost)
{
    struct xac_token next;
    uint64_t *x;

    must_eq(proc_wait(proc_spawn(commit_late, NULL)), SIGKILL);
    x = (uint64_t *)env_attach(DURABLE, N_PAGES);
    must_eq(env_get(x), 1);
    for (int i = 0; i < 3; i++) { /* each opening is another generation */
        must_ok(xFate(&board->early, 0));
        must_refuse(xFate(&board->late, 0), XAC_ELOST);
        must_refuse(xbeginQueryAfter(&board->late, 0), XAC_ELOST);
        must(strstr(xLastError(), "has ended at LSN") != NULL);
        must_ok(xbeginQueryAfter(&board->early, 0));
        must_ok(xendQuery());
        next = put(x, 3);
        must_ok(xFate(&next, 0));
        must(next.generation > board->late.generation);
        env_detach();
        x = (uint64_t *)env_attach(DURABLE, N_PAGES);
        must_ok(xFate(&next, 0));
    }
    env_detach();
}
END_TEST

START_TEST(what_is_not_known_is_uncertain)
{
    struct xac_token t, ahead, old;
    uint64_t *x = (uint64_t *)env_attach(DURABLE, N_PAGES);

    t = put(x, 1);
    ahead = t;
    ahead.generation++;
    must_refuse(xFate(&ahead, 0), XAC_EUNCERTAIN);
    must_refuse(xbeginQueryAfter(&ahead, 20), ETIMEDOUT);
    ahead = t;
    ahead.lsn += 4096;
    must_refuse(xFate(&ahead, 20), XAC_EUNCERTAIN);
    must_refuse(xbeginQueryAfter(&ahead, 0), ETIMEDOUT);
    env_detach();
    must_eq(remove(ENV_DIR "/xac.history"),
            0); /* from here on nobody knows where it ended */
    x = (uint64_t *)env_attach(DURABLE, N_PAGES);
    env_detach();
    must_eq(remove(ENV_DIR "/xac.history"), 0);
    x = (uint64_t *)env_attach(DURABLE, N_PAGES);
    old = t;
    must_refuse(xFate(&old, 0), XAC_EUNCERTAIN);
    must_refuse(xbeginQueryAfter(&old, 0), XAC_ENOSTATE);
    must(strstr(xLastError(), "xac.history") != NULL);
    env_detach();
    must(x != NULL);
}
END_TEST

/* open_copy -- a child: what the copy commits. */
static void
open_copy(void *arg)
{
    uint64_t *x;

    (void)arg;
    must_ok(xInit("copy", DURABLE));
    x = (uint64_t *)xMmap("copy/f", N_PAGES * env_page());
    must((void *)x != MAP_FAILED);
    board->late = put(x, 2);
    must_ok(xShutdown());
}

START_TEST(a_copy_parts_from_the_original)
{
    struct xac_token t;
    uint64_t *x;

    env_init(DURABLE);
    x = (uint64_t *)xMmap(ENV_DIR "/f", N_PAGES * env_page());
    must((void *)x != MAP_FAILED);
    board->early = put(x, 1);
    must_ok(xShutdown());
    must_eq(system("cp -a " ENV_DIR " copy"), 0);
    proc_run(open_copy, NULL);
    env_init(DURABLE);
    x = (uint64_t *)xMmap(ENV_DIR "/f", N_PAGES * env_page());
    must((void *)x != MAP_FAILED);
    for (uint64_t i = 0; i < 4; i++) /* so that its log is not shorter */
        t = put(x, 3 + i);
    must_eq(t.generation, board->late.generation);
    must(t.lsn >= board->late.lsn);
    must_refuse(xFate(&board->late, 0), XAC_ELOST);
    must_refuse(xbeginQueryAfter(&board->late, 0), XAC_ELOST);
    must(strstr(xLastError(), "parted") != NULL);
    must_ok(xFate(&board->early, 0)); /* what they have in common */
    must_ok(xShutdown());
    env_init(DURABLE); /* and when that generation is over, too */
    must_refuse(xFate(&board->late, 0), XAC_ELOST);
    must_ok(xFate(&t, 0));
    must_ok(xShutdown());
}
END_TEST

/* ---- Calls ------------------------------------------------------------------------------------ */

START_TEST(tokens_are_written_and_read)
{
    static const char *const wrong[] = {"",
                                        "1.2",
                                        "1.2.3",
                                        "1.2.000000000000000g",
                                        "1.2.00000000000000003",
                                        " 1.2.0000000000000003",
                                        "1.2.0000000000000003 ",
                                        "-1.2.0000000000000003",
                                        "+1.2.0000000000000003",
                                        "1.2.-000000000000003",
                                        "01.2.0000000000000003",
                                        "99999999999999999999.2.0000000000000003",
                                        "1.2.000000000000000A"};
    struct xac_token t = {.generation = 3, .lsn = 81920, .branch = 0xdeadbeef},
                     read = {0};
    char text[XAC_TOKEN_TEXT];

    must_ok(xTokenFormat(&t, text, sizeof text)); /* without an environment */
    must_eq(strcmp(text, "3.81920.00000000deadbeef"), 0);
    must_ok(xTokenParse(text, &read));
    must_eq(memcmp(&t, &read, sizeof t), 0);
    t = (struct xac_token){UINT64_MAX, UINT64_MAX, UINT64_MAX};
    must_ok(xTokenFormat(&t, text, sizeof text));
    must_ok(xTokenParse(text, &read));
    must_eq(memcmp(&t, &read, sizeof t), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        must_refuse(xTokenParse(wrong[i], &read), EINVAL);
    must_eq(memcmp(&t, &read, sizeof t), 0);
    must_refuse(xTokenParse(NULL, &read), EINVAL);
    must_refuse(xTokenParse(text, NULL), EINVAL);
    must_refuse(xTokenFormat(&t, text, sizeof text - 1), EINVAL);
    must_refuse(xTokenFormat(NULL, text, sizeof text), EINVAL);
}
END_TEST

START_TEST(wrong_calls_are_refused)
{
    struct xac_token t;
    uint64_t *x;

    must_refuse(xToken(&t), XAC_ENOINIT);
    must_refuse(xFate(&t, 0), XAC_ENOINIT);
    must_refuse(xbeginQueryAfter(&t, 0), XAC_ENOINIT);
    must_refuse(xbeginQueryLatest(0), XAC_ENOINIT);
    x = (uint64_t *)env_attach(DURABLE, N_PAGES);
    t = put(x, 1);
    must_refuse(xToken(NULL), EINVAL);
    must_refuse(xFate(NULL, 0), EINVAL);
    must_refuse(xbeginQueryAfter(NULL, 0), EINVAL);
    must_ok(xbegin());
    must_refuse(xToken(&t), XAC_EINTXN);
    must_refuse(xbeginQueryAfter(&t, 0), XAC_EINTXN);
    must_refuse(xbeginQueryLatest(0), XAC_EINTXN);
    must_ok(xFate(&t, 0));
    must_rc(xend(), COMMITTED);
    must_ok(xbeginQueryLatest(0)); /* nobody else could have newer ones */
    must_refuse(xbeginQueryAfter(&t, 0), XAC_EINTXN);
    must_refuse(xbeginQueryLatest(0), XAC_EINTXN);
    must_eq(x[0], 1);
    must_ok(xendQuery());
    env_detach();
}
END_TEST

START_TEST(without_a_log_there_are_none)
{
    struct xac_token t = {0};
    uint64_t *x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);

    env_put(x, 1);
    must_refuse(xToken(&t), ENOTSUP);
    must_refuse(xFate(&t, 0), ENOTSUP);
    must_refuse(xbeginQueryAfter(&t, 0), ENOTSUP);
    must_ok(xbeginQueryLatest(0));
    must_eq(x[0], 1);
    must_ok(xendQuery());
    env_detach();
    env_init(XAC_READONLY); /* nobody is attached: it sees this moment for ever */
    must_refuse(xToken(&t), ENOTSUP);
    must_refuse(xbeginQueryLatest(0), ENOTSUP);
    must_ok(xShutdown());
}
END_TEST

/* inherit -- a child of fork(): it takes part itself, and has seen what its parent has. */
static void
inherit(void *arg)
{
    uint64_t *x = (uint64_t *)arg;
    struct xac_token t;

    must_ok(xbeginQueryAfter(&board->early, 0));
    must_eq(x[0], 1);
    must_ok(xendQuery());
    must_ok(xFate(&board->early, 0));
    t = put(x, 2);
    must(is_before(&board->early, &t));
    must_ok(xbeginQueryLatest(0));
    must_ok(xendQuery());
    must_ok(xShutdown());
}

START_TEST(a_child_goes_on)
{
    uint64_t *x = (uint64_t *)env_attach(DURABLE, N_PAGES);

    board->early = put(x, 1);
    proc_run(inherit, x);
    must_eq(env_get(x), 2);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("token");
    TCase *t = env_tcase_with(s, "token", 120, setup);

    tcase_add_test(t, a_commit_has_a_token);
    tcase_add_test(t, a_query_has_the_token_of_its_state);
    tcase_add_test(t, each_thread_has_its_own);
    tcase_add_test(t, each_environment_has_its_own);
    tcase_add_test(t, what_a_crash_has_taken_is_lost);
    tcase_add_test(t, what_is_not_known_is_uncertain);
    tcase_add_test(t, a_copy_parts_from_the_original);
    tcase_add_test(t, tokens_are_written_and_read);
    tcase_add_test(t, wrong_calls_are_refused);
    tcase_add_test(t, without_a_log_there_are_none);
    tcase_add_test(t, a_child_goes_on);
    return env_main(s);
}
