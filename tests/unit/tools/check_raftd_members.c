/* SPDX-License-Identifier: MIT */
/*
 * check_raftd_members.c -- what a node decides of the members of its group (recovery/raftd_decide.h).
 *
 * GOAL    A node is said to be none of the group only where that is certain: not by a node that does not lead, not while
 *         a change is under way, and not of a number that has not been used (4).  A node that has been removed commands nothing.
 *         What cannot be done is refused as what it is.  A list of members that cannot be is not taken.
 * METHOD  A node of libraft that is not started; its role and its configuration are set here.
 */
#include <config.h>

#include <string.h>

#include <raft.h>

#include "tests/common/env.h"
#include "log/group_note.h"
#include "recovery/raftd_decide.h"

const char *const tool_name = "check_raftd_members";

static struct raft_server server[3];
static struct raft raft;
static struct raftd_group group;
static struct raftd_members members;

/* What has been decided last, and how often. */
static uint32_t status;
static uint64_t value;
static unsigned n_decided;

/* make -- node 1, which leads, of the nodes 1, 2, 5; the highest number that was used by an addition is 7. */
static void
make(void)
{
    static const unsigned number[] = {1, 2, 5};

    raft =
        (struct raft){.state = RAFT_LEADER, .id = 1, .configuration_committed_index = 9};
    for (unsigned i = 0; i < 3; i++)
        server[i] = (struct raft_server){.id = number[i],
                                         .address = (char *)(uintptr_t) "127.0.0.1:7001",
                                         .role = RAFT_VOTER};
    raft.configuration = (struct raft_configuration){.servers = server, .n = 3};
    raft.configuration_committed = raft.configuration;
    group = (struct raftd_group){.node = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    raftd_members_init(&members, &raft, &group);
}

static void
decided(void *arg, uint32_t s, uint64_t v)
{
    must(arg == &members);
    status = s;
    value = v;
    n_decided++;
}

/* must_decide -- at once. */
static void
must_decide(enum raftd_ask_kind kind, uint32_t from, uint32_t node, uint32_t want)
{
    struct raftd_question q = {.kind = kind, .from = from, .node = node};

    n_decided = 0;
    raftd_decide_question(&members, &q, 7, decided, &members);
    must_eq(n_decided, 1);
    must_eq(status, want);
}

START_TEST(a_node_is_none_of_the_group_only_if_that_is_certain)
{
    static const unsigned gone[] = {3, 4, 6, 7};

    make();
    must_decide(RAFTD_ASK_MEMBER, 0, 5, RAFTD_ASK_GOOD);
    must_eq(value, 1);
    for (unsigned i = 0; i < 4; i++) {
        must_decide(RAFTD_ASK_MEMBER, gone[i], gone[i], RAFTD_ASK_GOOD);
        must_eq(value, 0);
    }
    for (unsigned node = 8; node <= XAC_GROUP_NODE_MAX; node++) /* it may come yet */
        must_decide(RAFTD_ASK_MEMBER, node, node, RAFTD_ASK_NOT_NOW);
    raft.configuration_uncommitted_index = 10; /* it may be taken back */
    must_decide(RAFTD_ASK_MEMBER, 3, 3, RAFTD_ASK_NOT_NOW);
    must_decide(RAFTD_ASK_MEMBER, 2, 2, RAFTD_ASK_GOOD);
    must_eq(value, 1);
    raft.configuration_uncommitted_index = 0;
    members.is_changing = true; /* its number is used, and it is not there yet */
    must_decide(RAFTD_ASK_MEMBER, 7, 7, RAFTD_ASK_NOT_NOW);
    members.is_changing = false;
    for (int state = RAFT_FOLLOWER; state < RAFT_LEADER; state++) {
        raft.state = (unsigned short)state;
        must_decide(RAFTD_ASK_MEMBER, 3, 3, RAFTD_ASK_NOT_NOW);
        must_decide(RAFTD_ASK_MEMBER, 2, 2, RAFTD_ASK_NOT_NOW);
    }
}
END_TEST

START_TEST(what_cannot_be_done_is_refused)
{
    make();
    must_decide(RAFTD_ASK_REMOVE, 0, 3, RAFTD_ASK_NO_NODE);
    must_decide(RAFTD_ASK_REMOVE, 0, 255, RAFTD_ASK_NO_NODE);
    must_decide(RAFTD_ASK_REMOVE, 3, 2, RAFTD_ASK_FAILED); /* it has been removed */
    must_decide(RAFTD_ASK_TRANSFER, 3, 2, RAFTD_ASK_FAILED);
    must_decide(RAFTD_ASK_TRANSFER, 2, 1, RAFTD_ASK_GOOD); /* it leads */
    must_decide((enum raftd_ask_kind)9, 2, 2, RAFTD_ASK_UNKNOWN);
    members.is_changing = true;
    must_decide(RAFTD_ASK_REMOVE, 0, 2, RAFTD_ASK_NOT_NOW);
    must_decide(RAFTD_ASK_REMOVE, 0, 1, RAFTD_ASK_NOT_NOW);
    must_decide(RAFTD_ASK_REMOVE, 0, 3, RAFTD_ASK_NO_NODE);
    members.is_changing = false;
    server[1].role = server[2].role = RAFT_STANDBY; /* nobody else counts */
    must_decide(RAFTD_ASK_REMOVE, 0, 1, RAFTD_ASK_ALONE);
    must_decide(RAFTD_ASK_TRANSFER, 0, 0, RAFTD_ASK_ALONE);
    raft.state = RAFT_FOLLOWER;
    must_decide(RAFTD_ASK_REMOVE, 0, 2, RAFTD_ASK_NOT_NOW);
    must_decide(RAFTD_ASK_TRANSFER, 0, 0, RAFTD_ASK_NOT_NOW);
}
END_TEST

/* A configuration that the file of members could not have would keep this node from starting again. */
START_TEST(a_list_that_cannot_be_is_not_taken)
{
    static char address[][24] = {"127.0.0.1:7003", "127.0.0.1:7003\nx", "", "nowhere"};

    make();
    for (size_t i = 0; i < sizeof address / sizeof address[0]; i++) {
        server[2].address = address[i];
        raft.configuration_committed_index++;
        members.has_changed = false;
        raftd_members_look(&members);
        must_eq(members.has_changed, i == 0);
        must_eq(group.n, 3);
        must(strcmp(group.member[2].address, address[0]) == 0);
    }
    server[2] = server[1]; /* twice the same */
    raft.configuration_committed_index++;
    raftd_members_look(&members);
    must(!members.has_changed);
    must_eq(group.member[2].node, 5);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("raftd_members");
    TCase *t = env_tcase(s, "raftd_members", 20);

    env_in_memory();
    tcase_add_test(t, a_node_is_none_of_the_group_only_if_that_is_certain);
    tcase_add_test(t, what_cannot_be_done_is_refused);
    tcase_add_test(t, a_list_that_cannot_be_is_not_taken);
    return env_main(s);
}
