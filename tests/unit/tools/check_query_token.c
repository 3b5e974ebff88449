/* SPDX-License-Identifier: MIT */
/*
 * check_query_token.c -- tokens of a source at its standby, while xship receive redoes (xac_replication.h).
 *
 * GOAL    A query at the standby that waits for a token of the source sees that commit: in the same generation of the log and in
 *         later ones, over receivers that are killed, and with readers that stay. It waits as long as it may, and no longer.
 *         What a crash of the source has taken is lost at the standby, too, and so is what the standby has not got when it is
 *         promoted.  The standby does not know what is newest at the source.
 * METHOD  The tools of the build.  The source moves money, as in check_query.c, and hands its tokens to readers of the
 *         standby.  The receiver stands still, by SIGSTOP, where something is not to come.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <string.h>

#include "tests/unit/tools/query_env.h"

/* What source and reader tell each other. */
struct tokens {
    struct xac_token last;  /* of the source                                            */
    _Atomic uint64_t count; /* transactions in it                                       */
    _Atomic uint64_t order, done;
    _Atomic uint64_t wait_ms, rc;
};

static struct tokens *tokens;

static void
setup_tokens(void)
{
    setup();
    tokens = (struct tokens *)proc_shared(sizeof *tokens);
}

/* commit_one -- a child at the source: one more transaction, and its token. */
static void
commit_one(void *arg)
{
    uint64_t seed = 1, n, *x;
    bool is_lost = arg != NULL;

    if (is_lost) /* its last commit never comes to the disk */
        must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, 3600000));
    x = (uint64_t *)env_attach(DURABLE, board->pages);
    must_ok(xbegin());
    transfer(x, &seed);
    n = account_at(x, 0)->n_transactions;
    must_rc(xend(), COMMITTED);
    must_ok(xToken(&tokens->last));
    word_store(&tokens->count, n);
    if (is_lost)
        (void)raise(SIGKILL);
    env_detach();
}

/* commit -- at the source, which is another generation each time; ret its token. */
static struct xac_token
commit(void)
{
    proc_run(commit_one, NULL);
    return tokens->last;
}

/* wait_on -- a child at the standby: a query behind the last token, for each order. */
static void
wait_on(void *arg)
{
    uint64_t *x = attach();

    (void)arg;
    for (uint64_t i = 1;; i++) {
        struct xac_token seen;
        int rc;

        proc_await(&tokens->order, i, 120);
        if (word_load(&tokens->wait_ms) == UINT64_MAX)
            break;
        rc = xbeginQueryAfter(&tokens->last, (uint32_t)word_load(&tokens->wait_ms));
        if (rc == 0) {
            must(count(x, i) >= word_load(&tokens->count));
            must_ok(xToken(&seen));
            must_ok(xendQuery());
            must_ok(xFate(&tokens->last, 0));
            must_ok(xFate(&seen, 0));
            must(seen.generation >= tokens->last.generation);
        } else {
            must_rc(xFate(&tokens->last, 0),
                    rc == XAC_ELOST ? XAC_ELOST : XAC_EUNCERTAIN);
        }
        must_refuse(xbeginQueryLatest(0), XAC_ENOTLEADER);
        must(strstr(xLastError(), "what is newest at its source") != NULL);
        word_store(&tokens->rc, (uint64_t)(int64_t)rc);
        word_store(&tokens->done, i);
    }
    must_ok(xMunmap(IN_COPY));
    must_ok(xShutdown());
}

/* order -- the next query, within that time; and its code. */
static void
order(uint64_t wait_ms, int rc)
{
    uint64_t n = word_load(&tokens->order) + 1;

    word_store(&tokens->wait_ms, wait_ms);
    word_store(&tokens->order, n);
    proc_await(&tokens->done, n, 60);
    must_eq((int64_t)word_load(&tokens->rc), rc);
}

/* end_reader -- in order. */
static void
end_reader(pid_t pid)
{
    word_store(&tokens->wait_ms, UINT64_MAX);
    word_add(&tokens->order, 1);
    proc_join(pid);
}

/* stop_receiver -- it stands still; ret it. */
static pid_t
stop_receiver(void)
{
    pid_t pid = receiver_pid();

    must(pid > 1);
    must_ok(kill(pid, SIGSTOP));
    return pid;
}

START_TEST(a_standby_waits_for_tokens)
{
    pid_t send, reader, receiver;
    struct xac_token first;

    write_n(10);
    send = start_send("-q", COPY, "log");
    reader = proc_spawn(wait_on, NULL);
    first = commit();
    for (int i = 0; i < 4; i++) { /* generations, which the reader lives through */
        order(30000, 0);
        must((i == 0) == (tokens->last.generation == first.generation));
        (void)commit();
    }
    order(30000, 0);
    tokens->last = first;
    order(0, 0);
    must_eq(tool_run("xstat", "", COPY), 0);
    ck_says("  standby, generation ");
    ck_says("redone up to");
    receiver = stop_receiver();
    (void)commit();
    order(100, ETIMEDOUT);
    must_ok(kill(receiver, SIGCONT));
    order(30000, 0);
    must_ok(
        kill(receiver, SIGKILL)); /* the next one knows in which generation readers are */
    must(WEXITSTATUS(proc_wait(send)) == 1);
    await_gone(receiver);
    (void)commit();
    order(50, ETIMEDOUT);
    send = start_send("-q", COPY, "log");
    order(30000, 0);
    end_reader(reader);
    must_eq(end_send(send), 0);
}
END_TEST

START_TEST(a_token_is_lost_at_the_standby_too)
{
    struct xac_token lost;
    pid_t send, reader;

    write_n(10);
    send = start_send("-q", COPY, "log");
    reader = proc_spawn(wait_on, NULL);
    (void)commit();
    order(30000, 0);
    must_eq(proc_wait(proc_spawn(commit_one, &lost)), SIGKILL);
    lost = tokens->last;
    order(50, ETIMEDOUT); /* nobody knows yet */
    for (int i = 0; i < 2; i++) {
        (void)commit();
        order(30000, 0);
        tokens->last = lost;
        order(30000, XAC_ELOST);
    }
    end_reader(reader);
    must_eq(end_send(send), 0);
}
END_TEST

/* ask_promoted -- a child: the standby is an environment of its own, which has got all up to early. */
static void
ask_promoted(void *arg)
{
    const struct xac_token *early = (const struct xac_token *)arg;
    uint64_t *x;

    must_ok(xInit(COPY, DURABLE));
    x = (uint64_t *)xMmap(IN_COPY, ACCOUNTS * env_page());
    must((void *)x != MAP_FAILED);
    must_ok(xFate(early, 0));
    must_ok(xbeginQueryAfter(early, 0));
    must_eq(count(x, 1), word_load(&tokens->count) - 1);
    must_ok(xendQuery());
    must_refuse(xFate(&tokens->last, 0), XAC_ELOST);
    must_refuse(xbeginQueryAfter(&tokens->last, 0), XAC_ELOST);
    must_ok(xbeginQueryLatest(0));
    must_ok(xendQuery());
    must_ok(xShutdown());
}

START_TEST(what_has_not_come_is_lost_by_a_promotion)
{
    struct xac_token early;
    pid_t send, reader, receiver;

    write_n(10);
    send = start_send("-q", COPY, "log");
    reader = proc_spawn(wait_on, NULL);
    early = commit();
    order(30000, 0);
    receiver = stop_receiver();
    (void)commit();
    end_reader(reader);
    must_ok(kill(receiver, SIGKILL));
    must(WEXITSTATUS(proc_wait(send)) == 1);
    await_gone(receiver);
    must_eq(tool_run("xship", "promote", COPY), 0);
    proc_run(ask_promoted, &early);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("query_token");
    TCase *t = env_tcase_with(s, "query_token", 200, setup_tokens);

    tcase_add_test(t, a_standby_waits_for_tokens);
    tcase_add_test(t, a_token_is_lost_at_the_standby_too);
    tcase_add_test(t, what_has_not_come_is_lost_by_a_promotion);
    return env_main(s);
}
