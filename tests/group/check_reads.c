/* SPDX-License-Identifier: MIT */
/*
 * check_reads.c -- what is read at the nodes of a group: tokens, the fate of commits, linearizable queries.
 *
 * GOAL    A commit's token is seen at each node that is told of it, and one that the next leader has cut off is lost at all
 *         nodes.  What becomes of an uncertain commit is said the same everywhere, and is so.  A linearizable query sees all
 *         that was acknowledged before it, and all that such a query had seen that had ended before, at whichever node,
 *         while leaders are killed and stopped.
 * METHOD  Three nodes on this machine, with a program at each.  The test writes down when each command was sent and
 *         answered.  Random rounds, from a seed that is printed: XAC_ROUNDS of them.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "group_talk.h"
#include "tests/common/tool_run.h"

#define PATIENCE_S 60

/* A test of this program: a group, and a client at each node. */
struct test {
    struct group g;
    struct group_client at[GROUP_NODES];
    uint64_t next; /* record                                                            */
};

static void
begin_test(struct test *t)
{
    (void)signal(SIGPIPE, SIG_IGN);
    must_ok(setenv("XAC_GROUP_WAIT_MS", "1500", 1));
    group_make(&t->g);
    t->next = 1;
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        group_start(&t->g, i, "-q");
        group_client_init(&t->at[i - 1], &t->g, i);
    }
}

/* note -- what has been acknowledged is to be there at the end. */
static void
note(struct test *t, const struct group_reply *r)
{
    must_eq(r->kind, GROUP_DONE);
    must(r->last < t->next);
    must_eq(t->g.place[r->last], 0);
    t->g.place[r->last] = r->n + 1;
    t->g.n_acknowledged++;
}

static void
end_test(struct test *t)
{
    t->g.next = t->next;
    for (unsigned i = 0; i < GROUP_NODES; i++)
        group_client_end(&t->at[i]);
    group_end_equal(&t->g, PATIENCE_S);
    group_free(&t->g);
}

/* tell -- a client, and have its answer. */
#define tell(c, out, ...) \
 (group_client_send((c), __VA_ARGS__), group_client_await((c), PATIENCE_S, (out)))

/* append -- a record at the node that leads, until it is acknowledged; ret that node. */
static unsigned
append(struct test *t, struct group_reply *r)
{
    for (;;) {
        unsigned leader = group_await_leader(&t->g, PATIENCE_S);

        tell(&t->at[leader - 1], r, "append %" PRIu64, t->next++);
        if (r->kind == GROUP_DONE) {
            note(t, r);
            return leader;
        }
    }
}

/* is_between -- does the node begin or end leading? */
static bool
is_between(const struct group_reply *r)
{
    return r->kind == GROUP_GONE
           || ((r->kind == GROUP_FAILED || r->kind == GROUP_FATE)
               && (r->code == XAC_ENOTLEADER || r->code == XAC_EUNCERTAIN));
}

/* ask -- as tell, and again while the node is between leading and following, which lasts for a moment. */
#define ask(c, out, ...)     \
 do                          \
  tell(c, out, __VA_ARGS__); \
 while (is_between(out))

/* says -- xstat of a node, with that option, has these words. */
static bool
says(const struct test *t, unsigned node, const char *option, const char *words)
{
    return tool_run("xstat", option, t->g.node[node - 1].dir) == 0
           && strstr(output, words) != NULL;
}

/* shows -- xstat of a node says what it is. */
static bool
shows(const struct test *t, unsigned node, bool leads)
{
    const char *role = leads ? "leader" : "follower";
    char text[64], json[64], top[64];

    (void)snprintf(text, sizeof text, "%s, node %u of its group, generation ", role,
                   node);
    (void)snprintf(top, sizeof top, "group:      %s, node %u, generation ", role, node);
    (void)snprintf(json, sizeof json, "\"role\": \"%s\"", role);
    return says(t, node, "", text)
           && strstr(output, leads ? "on a majority up to" : "; leader: node ") != NULL
           && strstr(output, "to hear what is newest") != NULL
           && says(t, node, "--top --count 1 --watch=0.1", top)
           && strstr(output, leads ? "not on a majority; " : "; leader: node ") != NULL
           && strstr(output, leads ? "; leader:" : "not on a majority") == NULL
           && says(t, node, "--json", json)
           && says(t, node, "--prometheus", leads ? "leader\"} 1" : "leader\"} 0");
}

/* await_shown -- xstat of each node says what it is. */
static void
await_shown(const struct test *t)
{
    double until = env_now() + PATIENCE_S;
    unsigned n = 0;

    while (n < GROUP_NODES) {
        unsigned leader = group_await_leader(&t->g, PATIENCE_S);

        n = 0;
        for (unsigned k = 1; k <= GROUP_NODES; k++)
            n += shows(t, k, k == leader);
        if (env_now() > until)
            env_fail(__FILE__, __LINE__, "xstat says at last: %s", output);
    }
}

/* ---- Tokens ------------------------------------------------------------------------------- */

START_TEST(a_token_is_seen_at_all_nodes)
{
    struct group_reply done, r;
    unsigned leader = 0, other;
    struct test t;

    begin_test(&t);
    for (unsigned i = 0; i < 10; i++) {
        leader = append(&t, &done);
        for (unsigned k = 0; k < GROUP_NODES; k++) {
            ask(&t.at[k], &r, "read after %s 10000", done.token);
            must_eq(r.kind, GROUP_STATE);
            must(r.n > done.n);
            ask(&t.at[k], &r, "read latest 10000");
            must_eq(r.kind, GROUP_STATE);
            must(r.n > done.n);
            ask(&t.at[k], &r, "fate %s 10000", done.token);
            must_eq(r.kind, GROUP_FATE);
            must_eq(r.code, 0);
        }
    }
    await_shown(&t);
    other = leader % GROUP_NODES + 1; /* redo stands still there */
    must_ok(kill(t.g.node[other - 1].pid, SIGSTOP));
    (void)append(&t, &done);
    tell(&t.at[other - 1], &r, "read after %s 100", done.token);
    must_eq(r.kind, GROUP_FAILED);
    must_eq(r.code, ETIMEDOUT);
    tell(&t.at[other - 1], &r, "fate %s 0", done.token);
    must_eq(r.code, XAC_EUNCERTAIN);
    tell(&t.at[other - 1], &r, "read latest 100");
    must_eq(r.code, ETIMEDOUT);
    must_ok(kill(t.g.node[other - 1].pid, SIGCONT));
    ask(&t.at[other - 1], &r, "read after %s 20000", done.token);
    must_eq(r.kind, GROUP_STATE);
    must(r.n > done.n);
    end_test(&t);
}
END_TEST

/* start_all_but -- the nodes that do not run. */
static void
start_all_but(struct group *g, unsigned node)
{
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        if (i != node && g->node[i - 1].pid == 0)
            group_start(g, i, "-q");
    }
}

START_TEST(a_commit_that_nobody_else_has_is_lost)
{
    struct group_reply kept, lost, r;
    unsigned leader;
    struct test t;

    begin_test(&t);
    do { /* the node may have noticed before */
        start_all_but(&t.g, 0);
        leader = append(&t, &kept);
        for (unsigned i = 1; i <= GROUP_NODES; i++) {
            if (i != leader)
                group_kill(&t.g, i);
        }
        tell(&t.at[leader - 1], &lost, "append %" PRIu64, t.next++);
    } while (lost.kind != GROUP_UNCERTAIN);
    group_client_end(&t.at[leader - 1]);
    group_kill(&t.g, leader); /* with the only copy */
    start_all_but(&t.g, leader);
    (void)append(&t, &r);
    group_start(&t.g, leader, "-q");
    for (unsigned i = 0; i < GROUP_NODES; i++) {
        ask(&t.at[i], &r, "fate %s 20000", lost.token);
        must_eq(r.kind, GROUP_FATE);
        must_eq(r.code, XAC_ELOST);
        ask(&t.at[i], &r, "read after %s 20000", lost.token);
        must_eq(r.kind, GROUP_FAILED);
        must_eq(r.code, XAC_ELOST);
        ask(&t.at[i], &r, "fate %s 20000", kept.token);
        must_eq(r.code, 0);
        ask(&t.at[i], &r, "read after %s 20000", kept.token);
        must_eq(r.kind, GROUP_STATE);
    }
    end_test(&t);
}
END_TEST

/* ---- Uncertain commits ------------------------------------------------------------------------ */

/* has_record -- is it in the file of a node, which is at rest? */
static bool
has_record(const struct group_node *node, uint64_t record)
{
    struct group_file *f = (struct group_file *)malloc(sizeof *f);
    bool has = false;
    char path[64];

    must(f != NULL);
    (void)snprintf(path, sizeof path, "%s/records", node->dir);
    file_read(path, 0, f, sizeof *f);
    for (uint64_t i = 0; i < f->n; i++)
        has = has || f->record[i] == record;
    free(f);
    return has;
}

#define UNCERTAIN_MAX 64

/* ask_all -- the fate of a token, which all nodes say alike; ret it. */
static int
ask_all(struct test *t, const char *token)
{
    struct group_reply r;
    int code = 0;

    for (unsigned i = 0; i < GROUP_NODES; i++) {
        ask(&t->at[i], &r, "fate %s 20000", token);
        must_eq(r.kind, GROUP_FATE);
        must(r.code == 0 || r.code == XAC_ELOST);
        must(i == 0 || r.code == code);
        code = r.code;
    }
    return code;
}

START_TEST(an_uncertain_commit_has_one_fate)
{
    uint64_t seed = env_seed(), rounds = env_number("XAC_ROUNDS", 3);
    uint64_t record[UNCERTAIN_MAX], n = 0, n_lost = 0;
    int code[UNCERTAIN_MAX];
    struct group_reply r;
    struct test t;

    begin_test(&t);
    for (uint64_t i = 0; (i < rounds || n == 0) && n < UNCERTAIN_MAX; i++) {
        unsigned leader = append(&t, &r);
        uint64_t mine = t.next++;

        group_client_send(&t.at[leader - 1], "append %" PRIu64, mine);
        (void)poll(NULL, 0, (int)rnd_below(&seed, 6));
        group_kill(&t.g, leader);
        group_client_await(&t.at[leader - 1], PATIENCE_S, &r);
        if (r.kind == GROUP_DONE)
            note(&t, &r);
        (void)append(&t, &(struct group_reply){.n = 0}); /* another one leads */
        group_start(&t.g, leader, "-q");
        if (r.kind != GROUP_UNCERTAIN)
            continue;
        record[n] = mine;
        code[n] = ask_all(&t, r.token);
        n_lost += code[n] == XAC_ELOST;
        n++;
    }
    printf("%" PRIu64 " uncertain, of which %" PRIu64 " are lost\n", n, n_lost);
    end_test(&t);
    for (uint64_t i = 0; i < n; i++)
        must_eq(has_record(&t.g.node[i % GROUP_NODES], record[i]), code[i] == 0);
}
END_TEST

/* ---- A leader that stood still ------------------------------------------------------------------ */

START_TEST(a_leader_that_stood_still_shows_nothing_old)
{
    uint64_t tries = env_number("XAC_ROUNDS", 3);
    struct group_reply done, r;
    struct test t;

    begin_test(&t);
    for (uint64_t i = 0; i < tries; i++) {
        unsigned old = append(&t, &r);
        struct group_client *reader = &t.at[old - 1];
        pid_t daemon = t.g.node[old - 1].pid;

        ask(reader, &r, "read latest 10000");
        must_eq(r.kind, GROUP_STATE);
        must_ok(kill(daemon, SIGSTOP));
        t.g.node[old - 1].pid = 0; /* it does not answer */
        must(append(&t, &done) != old);
        group_client_send(reader, "read latest 3000"); /* nobody has told this node */
        (void)poll(NULL, 0, 20);
        t.g.node[old - 1].pid = daemon;
        must_ok(kill(daemon, SIGCONT));
        group_client_await(reader, PATIENCE_S, &r);
        must(r.kind != GROUP_STATE || r.n > done.n);
        printf("the old leader: answer %d, code %d\n", (int)r.kind, r.code);
    }
    end_test(&t);
}
END_TEST

/* ---- Linearizable queries ------------------------------------------------------------------------ */

/* What is known of the number of records at a moment: it was at least that before anything sent from now on. */
struct history {
    uint64_t n_least; /* acknowledged, or seen by a query that has ended      */
    uint64_t
        least[GROUP_NODES]; /* the same when the read under way was sent             */
    uint64_t n_reads[GROUP_NODES], n_appends, n_failed;
};

/* take_append -- what has become of it; ret false: it is not over. */
static bool
take_append(struct test *t, struct history *h, unsigned node)
{
    struct group_reply r;

    group_client_hear(&t->at[node], &r);
    if (r.kind == GROUP_DONE) {
        if (r.n + 1 > h->n_least)
            h->n_least = r.n + 1;
        note(t, &r);
        h->n_appends++;
    }
    return r.kind != GROUP_NONE;
}

/* take_read -- a linearizable one. */
static void
take_read(struct history *h, struct group_client *c, unsigned i)
{
    struct group_reply r;

    group_client_hear(c, &r);
    if (r.kind == GROUP_STATE) {
        if (r.n < h->least[i])
            env_fail(__FILE__, __LINE__,
                     "node %u: a query sees %" PRIu64 " records, and there were %" PRIu64
                     " before",
                     i + 1, r.n, h->least[i]);
        if (r.n > h->n_least)
            h->n_least = r.n;
        h->n_reads[i]++;
    }
    h->n_failed += r.kind == GROUP_FAILED || r.kind == GROUP_GONE;
}

/* run_for -- readers at all nodes, and a writer where the leader is, for so long. */
static void
run_for(struct test *t, struct group_client *reader, struct history *h, double seconds)
{
    double until = env_now() + seconds;
    unsigned leader = 0;

    while (env_now() < until) {
        if (leader == 0)
            leader = group_leader(&t->g);
        if (leader != 0 && !t->at[leader - 1].is_busy)
            group_client_send(&t->at[leader - 1], "append %" PRIu64, t->next++);
        else if (leader != 0 && take_append(t, h, leader - 1))
            leader = group_leader(&t->g);
        for (unsigned i = 0; i < GROUP_NODES; i++) {
            if (reader[i].is_busy) {
                take_read(h, &reader[i], i);
            } else {
                h->least[i] = h->n_least;
                group_client_send(&reader[i], "read latest 3000");
            }
        }
        (void)poll(NULL, 0, 1);
    }
    for (unsigned i = 0; i < GROUP_NODES; i++) {
        if (t->at[i].is_busy)
            (void)take_append(t, h, i);
    }
}

/* disturb -- the leader is killed, or stands still; ret the node that is to be helped again, 0 none. */
static unsigned
disturb(struct test *t, uint64_t *seed, bool *is_killedp)
{
    unsigned leader = group_leader(&t->g);

    *is_killedp = rnd_below(seed, 2) == 0;
    if (leader == 0)
        return 0;
    if (*is_killedp)
        group_kill(&t->g, leader);
    else
        must_ok(kill(t->g.node[leader - 1].pid, SIGSTOP));
    return leader;
}

START_TEST(queries_are_linearizable)
{
    uint64_t seed = env_seed(), rounds = env_number("XAC_ROUNDS", 2);
    struct group_client reader[GROUP_NODES];
    struct history h = {.n_least = 0};
    struct test t;

    begin_test(&t);
    (void)group_await_leader(&t.g, PATIENCE_S);
    for (unsigned i = 0; i < GROUP_NODES; i++)
        group_client_init(&reader[i], &t.g, i + 1);
    run_for(&t, reader, &h, 1);
    for (uint64_t i = 0; i < rounds; i++) {
        bool is_killed = false;
        unsigned node = disturb(&t, &seed, &is_killed);

        run_for(&t, reader, &h, 2.5 + (double)rnd_below(&seed, 1000) / 1000);
        if (node != 0 && is_killed)
            group_start(&t.g, node, "-q");
        else if (node != 0)
            must_ok(kill(t.g.node[node - 1].pid, SIGCONT));
        run_for(&t, reader, &h, 1);
    }
    printf("%" PRIu64 " appends, reads at the nodes: %" PRIu64 ", %" PRIu64 ", %" PRIu64
           "; %" PRIu64 " reads failed\n",
           h.n_appends, h.n_reads[0], h.n_reads[1], h.n_reads[2], h.n_failed);
    must(h.n_appends > 0);
    for (unsigned i = 0; i < GROUP_NODES; i++) {
        must(h.n_reads[i] > 0);
        group_client_end(&reader[i]);
    }
    end_test(&t);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("reads");
    TCase *t = env_tcase(s, "reads", 1200);

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    tcase_add_test(t, a_token_is_seen_at_all_nodes);
    tcase_add_test(t, a_commit_that_nobody_else_has_is_lost);
    tcase_add_test(t, an_uncertain_commit_has_one_fate);
    tcase_add_test(t, a_leader_that_stood_still_shows_nothing_old);
    tcase_add_test(t, queries_are_linearizable);
    return env_main(s);
}
