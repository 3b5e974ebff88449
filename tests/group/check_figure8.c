/* SPDX-License-Identifier: MIT */
/*
 * check_figure8.c -- figure 8 of the Raft paper, played with the libraft that xraftd is linked with.
 *
 * GOAL    A leader does not count the copies of an entry of an earlier term (section 5.4.2 of the paper): the entry is committed with one
 *         of the leader's own term, or another leader may still replace it.  So what a server has applied stays.
 *         libraft before 0.18 counts them; xraftd cannot prevent that, and configure refuses such a version.
 * METHOD  libraft's own fixture: three servers in this process, with memory for disks and network, and a clock that it moves.
 *         A message carries one entry, so that of the earlier term is on a majority before the next one is sent.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include <raft.h>
#include <raft/fixture.h>

#include "tests/common/env.h"

#define SERVERS 3

/* In milliseconds of the fixture's clock: an election may need several attempts. */
#define PATIENCE_MS 60000
/* A message there and back, and a sync, several times; much less than an election. */
#define A_WHILE_MS 200

/* Of the first entry behind the list of the servers. */
#define OLD_INDEX 2

/* By when they stand for election.  A server that still hears of a leader votes for nobody; so of two with equal logs the one
   that stands later wins. */
enum {
    FIRST = 0,
    OTHER = 1,
    LAST = 2
};

static const unsigned election_ms[SERVERS] = {1000, 1200, 1500};

/* What a server has applied, one character for each entry. */
struct machine {
    struct raft_fsm fsm;
    char applied[16];
};

static struct machine machine[SERVERS];
static struct raft_fixture fixture;
static struct raft_apply request[8];
static unsigned n_requests;

static int
apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct machine *m = (struct machine *)fsm->data;
    size_t n = strlen(m->applied);

    must_eq(buf->len, 8);
    must(n + 1 < sizeof m->applied);
    m->applied[n] = *(const char *)buf->base;
    *result = NULL;
    return 0;
}

/* The servers, none of which has begun. */
static void
make(void)
{
    struct raft_configuration all;

    must_ok(raft_fixture_init(&fixture));
    for (unsigned i = 0; i < SERVERS; i++) {
        machine[i].fsm =
            (struct raft_fsm){.version = 1, .data = &machine[i], .apply = apply};
        must_ok(raft_fixture_grow(&fixture, &machine[i].fsm));
        raft_set_pre_vote(raft_fixture_get(&fixture, i), true); /* as xraftd does */
        raft_set_max_inflight_entries(raft_fixture_get(&fixture, i), 1);
        raft_fixture_set_randomized_election_timeout(&fixture, i, election_ms[i]);
    }
    must_ok(raft_fixture_configuration(&fixture, SERVERS, &all));
    must_ok(raft_fixture_bootstrap(&fixture, &all));
    raft_configuration_close(&all);
    must_ok(raft_fixture_start(&fixture));
}

static void
await_lead(unsigned i)
{
    must(raft_fixture_step_until_state_is(&fixture, i, RAFT_LEADER, PATIENCE_MS));
    must_eq(raft_state(raft_fixture_get(&fixture, i)), RAFT_LEADER);
}

/* propose -- an entry, at a server that leads. */
static void
propose(unsigned i, char what)
{
    struct raft_buffer buf = {.len = 8, .base = raft_malloc(8)};

    must(buf.base != NULL);
    must(n_requests < sizeof request / sizeof request[0]);
    memset(buf.base, what, buf.len);
    must_ok(
        raft_apply(raft_fixture_get(&fixture, i), &request[n_requests++], &buf, 1, NULL));
}

/* write_alone -- an entry that nobody else gets; then the server dies. */
static void
write_alone(unsigned i, char what)
{
    for (unsigned k = 0; k < SERVERS; k++) {
        if (k != i)
            raft_fixture_saturate(&fixture, i, k);
    }
    propose(i, what);
    must_eq(raft_last_index(raft_fixture_get(&fixture, i)), OLD_INDEX);
    raft_fixture_step_until_elapsed(&fixture, A_WHILE_MS);
    raft_fixture_kill(&fixture, i);
}

/* has_old -- has the second server the entry of the first leader's first term? */
static bool
has_old(struct raft_fixture *f, void *arg)
{
    (void)arg;
    return raft_last_index(raft_fixture_get(f, OTHER)) == OLD_INDEX;
}

static void
must_have_applied(unsigned i, const char *what)
{
    if (strcmp(machine[i].applied, what) != 0)
        env_fail(__FILE__, __LINE__, "server %u has applied \"%s\", not \"%s\"", i + 1,
                 machine[i].applied, what);
}

/* finish -- all servers run, and one of them leads: they apply the same. */
static void
finish(unsigned leader, const char *what)
{
    raft_index last;

    propose(leader, 'c');
    last = raft_last_index(raft_fixture_get(&fixture, leader));
    must(raft_fixture_step_until_applied(&fixture, SERVERS, last, PATIENCE_MS));
    for (unsigned i = 0; i < SERVERS; i++)
        must_have_applied(i, what);
    raft_fixture_close(&fixture);
}

/* (a) to (c) of the figure: the first server leads again, and its old entry comes to a majority. */
static void
play_until_majority(void)
{
    make();
    await_lead(FIRST);
    raft_fixture_step_until_elapsed(&fixture, A_WHILE_MS);
    write_alone(FIRST, 'a');
    await_lead(LAST);
    raft_fixture_step_until_elapsed(&fixture, A_WHILE_MS);
    write_alone(LAST, 'b');
    raft_fixture_revive(&fixture, FIRST);
    must(raft_fixture_step_until_state_is(&fixture, FIRST, RAFT_FOLLOWER, PATIENCE_MS));
    await_lead(FIRST);
    must(raft_fixture_step_until(&fixture, has_old, NULL, PATIENCE_MS));
    for (unsigned i = 0; i < SERVERS; i++)
        must_have_applied(i, "");
}

/* (d): nothing of the leader's own term has come to a majority. */
START_TEST(an_entry_of_an_earlier_term_is_replaced)
{
    unsigned n;

    play_until_majority();
    raft_fixture_saturate(&fixture, FIRST, OTHER);
    n = raft_fixture_n_recv(&fixture, FIRST, RAFT_APPEND_ENTRIES_RESULT);
    raft_fixture_step_until_elapsed(&fixture, A_WHILE_MS);
    must(raft_fixture_n_recv(&fixture, FIRST, RAFT_APPEND_ENTRIES_RESULT) > n);
    must_eq(raft_state(raft_fixture_get(&fixture, FIRST)), RAFT_LEADER);
    must_eq(raft_commit_index(raft_fixture_get(&fixture, FIRST)), OLD_INDEX - 1);
    must_have_applied(FIRST, "");
    raft_fixture_kill(&fixture, FIRST);
    raft_fixture_revive(&fixture, LAST);
    must(raft_fixture_step_until_state_is(&fixture, LAST, RAFT_FOLLOWER, PATIENCE_MS));
    await_lead(LAST);
    must(raft_fixture_step_until_applied(&fixture, OTHER, OLD_INDEX, PATIENCE_MS));
    must_have_applied(OTHER, "b");
    raft_fixture_revive(&fixture, FIRST);
    finish(LAST, "bc");
}
END_TEST

/* (e): with an entry of the leader's own term it is committed, and stays when another one leads. */
START_TEST(with_one_of_its_own_term_it_stays)
{
    play_until_majority();
    must(raft_fixture_step_until_applied(&fixture, OTHER, OLD_INDEX, PATIENCE_MS));
    must_have_applied(FIRST, "a");
    must_have_applied(OTHER, "a");
    raft_fixture_kill(&fixture, FIRST);
    raft_fixture_revive(&fixture, LAST);
    must(raft_fixture_step_until_state_is(&fixture, LAST, RAFT_FOLLOWER, PATIENCE_MS));
    await_lead(OTHER);
    raft_fixture_revive(&fixture, FIRST);
    finish(OTHER, "ac");
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("figure8");
    TCase *t = env_tcase(s, "figure8", 60);

    tcase_add_test(t, an_entry_of_an_earlier_term_is_replaced);
    tcase_add_test(t, with_one_of_its_own_term_it_stays);
    return env_main(s);
}
