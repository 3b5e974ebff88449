/* SPDX-License-Identifier: MIT */
/*
 * check_reads.c -- tokens and linearizable queries on the node that leads a group (libxac/shared/token.h, group.h).
 *
 * GOAL    What a majority has stays, and is said to stay; what another leader has cut off is said to be lost; before that nothing
 *         is said.  A query that wants what is newest begins behind an answer to its own question, and not before what the
 *         answer names; it ends by words when there is none.  One answer serves all who asked before it.
 * METHOD  A process plays the daemon.  The test says what a majority has, and what the daemon answers.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <inttypes.h>

#include "group_env.h"

/* While nothing is to happen. */
#define A_WHILE_US 100000

#define N_READERS 3

/* ---- The fate of a commit ----------------------------------------------------------------- */

/* commit_uncertain -- a child: transaction number board->n, which no majority has when the node is deposed. */
static void
commit_uncertain(void *arg)
{
    uint64_t *x = attach();

    (void)arg;
    must_ok(xSync()); /* a majority has what the mapping has logged */
    word_store(&stage->started, 1);
    proc_await(&stage->go, 1, 60);
    must_rc(transact(x, board->n), XAC_EUNCERTAIN);
    must_ok(xToken(&stage->token));
    must_rc(xFate(&stage->token, 60000),
            XAC_EUNCERTAIN); /* it knows that it will not know */
    must_refuse(xbeginQueryAfter(&stage->token, 0), XAC_ENOTLEADER);
    must_refuse(xbeginQueryLatest(0), XAC_ENOTLEADER);
    must_ok(xShutdown());
}

/* ask_fate -- a child: what becomes of the token; stage->rc is what is right. */
static void
ask_fate(void *arg)
{
    int rc = (int)(int64_t)word_load(&stage->rc);
    uint64_t *x = attach();

    (void)arg;
    must_rc(xFate(&stage->token, 0), rc);
    must_rc(xbeginQueryAfter(&stage->token, 0), rc);
    if (rc == 0) {
        must_eq(x[0], board->n);
        must_ok(xendQuery());
    }
    must_ok(xShutdown());
}

/* must_become -- the token has that fate, in the next generation and in the one behind it. */
static void
must_become(const struct xac_member_place *from, int rc)
{
    struct xac_member_place at = *from;

    word_store(&stage->rc, (uint64_t)(int64_t)rc);
    for (int i = 0; i < 2; i++) {
        pid_t daemon = lead(&at);

        proc_run(ask_fate, NULL);
        dethrone(daemon);
        at = cut_at(look().end_lsn);
    }
}

START_TEST(an_uncertain_commit_has_a_fate)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid;
    uint64_t held, durable;
    bool is_lost = _i == 1;

    word_store(&board->written, 100);
    board->n = 11;
    pid = proc_spawn(commit_uncertain, NULL);
    proc_await(&stage->started, 1, 60); /* it has mapped the file */
    held = hold();
    word_store(&stage->go, 1);
    durable = await_durable(held);
    dethrone(daemon);
    proc_join(pid);
    must_eq(stage->token.lsn, durable);
    at = cut_at(is_lost ? held : durable); /* as the next leader has it */
    must_eq(at.end_lsn, is_lost ? held : durable);
    must_become(&at, is_lost ? XAC_ELOST : 0);
}
END_TEST

/* commit_one -- a child: transaction number board->n, when it may. */
static void
commit_one(void *arg)
{
    uint64_t *x = attach();

    (void)arg;
    must_ok(xSync()); /* a majority has what the mapping has logged */
    word_store(&stage->started, 1);
    proc_await(&stage->go, 1, 60);
    must_rc(transact(x, board->n), COMMITTED);
    word_store(&stage->ended, 1);
    must_ok(xShutdown());
}

/* see_early -- a child: it sees a commit that no majority has yet. */
static void
see_early(void *arg)
{
    uint64_t *x = attach();
    struct xac_token t = {0};

    (void)arg;
    for (int i = 0; t.lsn <= word_load(&stage->replicated); i++) {
        must(i < 10000);
        must_ok(xbeginQuery());
        must_ok(xToken(&t));
        must_eq(x[0], t.lsn > word_load(&stage->replicated) ? 11 : 10);
        if (t.lsn > word_load(&stage->replicated))
            break; /* the query stays open */
        must_ok(xendQuery());
        proc_sleep_us(1000);
    }
    must_rc(xFate(&t, 50), XAC_EUNCERTAIN);
    word_store(&stage->started, 2);
    must_ok(xFate(&t, 60000));
    must_eq(word_load(&stage->go), 2);
    must_ok(xendQuery());
    must_ok(xShutdown());
}

START_TEST(a_fate_is_waited_for)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid, reader;

    word_store(&board->written, 100);
    board->n = 11;
    pid = proc_spawn(commit_one, NULL);
    proc_await(&stage->started, 1, 60);
    (void)hold();
    word_store(&stage->go, 1);
    reader = proc_spawn(see_early, NULL);
    proc_await(&stage->started, 2, 60);
    must_eq(word_load(&stage->ended), 0);
    word_store(&stage->go, 2);
    word_store(&stage->allow, UINT64_MAX);
    proc_join(reader);
    proc_join(pid);
    dethrone(daemon);
}
END_TEST

/* ---- What is newest ------------------------------------------------------------------------- */

/* read_latest -- a child: one query, within board->at ms; its code is stage->rc. */
static void
read_latest(void *arg)
{
    uint64_t *x = attach();
    int rc;

    (void)arg;
    word_add(&stage->started, 1);
    rc = xbeginQueryLatest((uint32_t)word_load(&board->at));
    word_add(&board->stop, 1); /* it has begun, or failed */
    if (rc == 0) {
        must_eq(x[0], board->n);
        must_ok(xendQuery());
    } else {
        must(strlen(xLastError()) > 0);
    }
    word_store(&stage->rc, (uint64_t)(int64_t)rc);
    word_add(&stage->ended, 1);
    must_ok(xShutdown());
}

/* begin_reading -- so many, which all ask; the daemon answers nothing. */
static void
begin_reading(pid_t *pid, uint64_t n, uint64_t wait_ms)
{
    uint64_t asked = word_load(&stage->asked);

    word_store(&board->at, wait_ms);
    word_store(&board->stop, 0);
    word_store(&stage->ended, 0);
    for (uint64_t i = 0; i < n; i++)
        pid[i] = proc_spawn(read_latest, NULL);
    proc_await(&stage->asked, asked + n, 60);
}

/* end_reading -- all of them have ended, with that code. */
static void
end_reading(const pid_t *pid, uint64_t n, int rc)
{
    for (uint64_t i = 0; i < n; i++)
        proc_join(pid[i]);
    must_eq(word_load(&stage->ended), n);
    must_eq((int64_t)word_load(&stage->rc), rc);
}

START_TEST(a_query_waits_for_an_answer_of_its_own)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid[N_READERS];

    word_store(&stage->answers, ANSWER_NOTHING);
    begin_reading(pid, 1, 50);
    end_reading(pid, 1, ETIMEDOUT);
    begin_reading(pid, N_READERS, 60000);
    proc_sleep_us(A_WHILE_US);
    must_eq(word_load(&board->stop), 0);
    word_store(&stage->answers, ANSWER_REPLICATED);
    end_reading(pid, N_READERS, 0);
    must_eq(word_load(&stage->n_answers), 1); /* for all of them */
    word_store(&stage->answers, ANSWER_NOTHING);
    begin_reading(pid, 1, 50); /* an old answer is none */
    end_reading(pid, 1, ETIMEDOUT);
    dethrone(daemon);
}
END_TEST

START_TEST(a_query_waits_for_what_the_answer_names)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), writer, pid[1];
    uint64_t held;

    word_store(&board->written, 100);
    board->n = 11;
    writer = proc_spawn(commit_one, NULL);
    proc_await(&stage->started, 1, 60);
    held = hold();
    word_store(&stage->go, 1);
    (void)await_durable(held);
    word_store(&stage->answers, ANSWER_DURABLE);
    begin_reading(pid, 1, 60000);
    proc_await(&stage->n_answers, 1, 60);
    proc_sleep_us(A_WHILE_US);
    must_eq(word_load(&board->stop), 0);
    word_store(&stage->allow, UINT64_MAX);
    proc_join(pid[0]);
    must_eq((int64_t)word_load(&stage->rc), 0);
    proc_join(writer);
    dethrone(daemon);
}
END_TEST

START_TEST(a_query_that_waits_ends_when_deposed)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid[1];

    word_store(&stage->answers, ANSWER_NOTHING);
    begin_reading(pid, 1, 60000);
    dethrone(daemon);
    end_reading(pid, 1, XAC_ENOTLEADER);
    at = cut_at(look().end_lsn);
    must_have(10);
}
END_TEST

/* ---- What is not published --------------------------------------------------------------------- */

#ifdef XAC_DEBUG
/* stop -- of a writer, once: its block is in the log, and its versions are not published. */
static void
stop(const char *name)
{
    if (strcmp(name, "e tail") != 0)
        return;
    xac_kill_hook = NULL;
    word_store(&stage->started, 2);
    must_ok(raise(SIGSTOP));
}

/* commit_stopping -- a child: transaction number board->n, which stands still for a while. */
static void
commit_stopping(void *arg)
{
    uint64_t *x = attach();

    (void)arg;
    must_ok(xSync()); /* a majority has what the mapping has logged */
    word_store(&stage->started, 1);
    proc_await(&stage->go, 1, 60);
    xac_kill_hook = stop;
    must_rc(transact(x, board->n), COMMITTED);
    must_ok(xShutdown());
}

/* begin_shown -- a query behind the token of the test, or one of what is newest. */
static int
begin_shown(bool is_after, uint32_t wait_ms)
{
    return is_after ? xbeginQueryAfter(&stage->token, wait_ms)
                    : xbeginQueryLatest(wait_ms);
}

/* read_shown -- a child: it has a majority take what the writer has logged, and then wants to see it; arg: behind a token.
   It attaches before the writer stops, and leaves when that goes on, because both take the publish lock. */
static void
read_shown(void *arg)
{
    uint64_t *x = attach();

    word_store(&stage->ended, 1);
    proc_await(&stage->go, 2, 60);
    must_ok(xSync());
    word_store(&stage->ended, 2);
    proc_await(&stage->go, 3, 60);
    must_ok(xFate(&stage->token, 60000));
    must_refuse(begin_shown(arg != NULL, 300), ETIMEDOUT);
    word_store(&stage->ended, 3);
    must_ok(begin_shown(arg != NULL, 60000));
    must_eq(x[0], board->n);
    must_ok(xendQuery());
    word_store(&stage->ended, 4);
    must_ok(xShutdown());
}

/* stop_writer -- a majority has a commit that is not published, stage->token; ret its process, which is stopped. */
static pid_t
stop_writer(void)
{
    pid_t writer = proc_spawn(commit_stopping, NULL);
    uint64_t before;

    proc_await(&stage->started, 1, 60);
    proc_await(&stage->ended, 1, 60);
    before = word_load(&stage->replicated);
    word_store(&stage->go, 1);
    proc_await(&stage->started, 2, 60);
    word_store(&stage->go, 2);
    proc_await(&stage->ended, 2, 60);
    proc_await(&stage->replicated, before + 1, 60);
    stage->token = (struct xac_token){.generation = stage->line.generation,
                                      .lsn = word_load(&stage->replicated)};
    return writer;
}

/* Loops: what is newest, and behind a token; the writer goes on, or dies, and the query finishes its commit. */
START_TEST(a_query_waits_for_what_is_not_published)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), writer, reader;
    bool is_after = _i % 2 == 1, dies = _i / 2 == 1;

    word_store(&board->written, 100);
    board->n = 11;
    word_store(&stage->answers, ANSWER_REPLICATED);
    reader = proc_spawn(read_shown, is_after ? &at : NULL);
    writer = stop_writer();
    word_store(&stage->go, 3);
    proc_await(&stage->ended, 3, 60);
    proc_sleep_us(A_WHILE_US);
    must_eq(word_load(&stage->ended), 3);
    must_ok(kill(writer, dies ? SIGKILL : SIGCONT));
    must_eq(proc_wait(writer), dies ? SIGKILL : 0);
    proc_join(reader);
    dethrone(daemon);
}
END_TEST
#endif /* XAC_DEBUG */

int
main(void)
{
    Suite *s = suite_create("reads");
    TCase *t = env_tcase_with(s, "reads", 200, setup_group);

    tcase_add_loop_test(t, an_uncertain_commit_has_a_fate, 0, 2);
    tcase_add_test(t, a_fate_is_waited_for);
    tcase_add_test(t, a_query_waits_for_an_answer_of_its_own);
    tcase_add_test(t, a_query_waits_for_what_the_answer_names);
#ifdef XAC_DEBUG
    tcase_add_loop_test(t, a_query_waits_for_what_is_not_published, 0, 4);
#endif
    tcase_add_test(t, a_query_that_waits_ends_when_deposed);
    return env_main(s);
}
