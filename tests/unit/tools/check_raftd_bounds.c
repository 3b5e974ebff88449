/* SPDX-License-Identifier: MIT */
/*
 * check_raftd_bounds.c -- what bounds the memory of xraftd: when Raft's log is to be shortened (recovery/raftd_gather.h),
 * what is held back until then (recovery/raftd_intake.h), and the queue (recovery/raftd_queue.h).
 *
 * GOAL    While there is no room libraft gets no entries, but hears of the leader, and commits nothing.  When there is, it gets
 *         all that has come, in order, each once; or as much as ends before the next file.  Messages that are held have a
 *         bound, and go when another node leads.
 * METHOD  The test is libraft: it notes what it is handed.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/env.h"
#include "recovery/raftd_gather.h"
#include "recovery/raftd_intake.h"
#include "recovery/raftd_queue.h"

#define TERM   7
#define LEADER 2

static const uint8_t group[XAC_RAFTD_GROUP_BYTES] = "a group's number";

/* What libraft has been handed. */
struct got {
    uint64_t prev, prev_term, commit, first, n;
    char address[32];
};

static struct {
    struct raft raft;
    struct raft_io io;
    struct raftd_intake in;
    enum raftd_room room[8]; /* as it is asked for; then the last one                   */
    unsigned n_asked, n_rooms;
    struct got got[200];
    unsigned n_got;
    bool has;
    unsigned n_behind, n_others;
} w;

/* ---- libraft, and the hand ---------------------------------------------------------- */

static void
receive(struct raft_io *io, struct raft_message *m)
{
    struct raft_append_entries *a = &m->append_entries;
    struct got *got = &w.got[w.n_got];

    must(io == &w.io);
    if (m->type != RAFT_APPEND_ENTRIES) {
        w.n_others++;
        return;
    }
    must(w.n_got++ < sizeof w.got / sizeof w.got[0]);
    *got = (struct got){.prev = a->prev_log_index,
                        .prev_term = a->prev_log_term,
                        .commit = a->leader_commit,
                        .n = a->n_entries};
    (void)snprintf(got->address, sizeof got->address, "%s", m->server_address);
    if (a->term > w.raft.current_term)
        w.raft.current_term = a->term;
    for (unsigned i = 0; i < a->n_entries; i++) { /* each has its index behind its head */
        uint64_t index;

        memcpy(&index,
               (uint8_t *)a->entries[i].buf.base + a->entries[i].buf.len - sizeof index,
               sizeof index);
        must_eq(index, a->prev_log_index + 1 + i);
    }
    if (a->n_entries > 0) {
        raft_free(a->entries[0].batch);
        raft_free(a->entries);
    }
}

static enum raftd_room
room(void *arg)
{
    unsigned i = w.n_asked < w.n_rooms ? w.n_asked : w.n_rooms - 1;

    must(arg == &w);
    w.n_asked++;
    return w.room[i];
}

static bool
has(void *arg, const struct raftd_accepted *a)
{
    must(arg == &w.has);
    must_eq(a->generation, 3);
    return w.has;
}

static int
put(void *arg, const struct raftd_item *item, const void *bytes, size_t n)
{
    must(arg == &w.has);
    must_eq(item->kind, RAFTD_ITEM_BEHIND);
    must_eq(item->snapshot.generation, 3);
    must(bytes == NULL);
    must_eq(n, 0);
    w.n_behind++;
    return 0;
}

static void
set_rooms(unsigned n, const enum raftd_room *rooms)
{
    memcpy(w.room, rooms, n * sizeof rooms[0]);
    w.n_rooms = n;
    w.n_asked = 0;
}

#define rooms(...)                                                       \
 set_rooms(sizeof((enum raftd_room[]){__VA_ARGS__}) / sizeof(w.room[0]), \
           (enum raftd_room[]){__VA_ARGS__})

static void
begin(void)
{
    static const struct raftd_raft_user user = {.arg = &w.has, .put = put, .has = has};

    w.raft.current_term = TERM;
    w.raft.commit_index = 10;
    w.io.data = &w.raft;
    raftd_intake_init(&w.in, group, &user, room, &w);
    w.in.recv = receive;
}

/* ---- Messages ----------------------------------------------------------------------- */

/* A message that comes: entries behind `prev`, of these kinds ("f": the first piece of a file, "p": another piece, "n": the
   first one of a list of addresses, "b": blocks, "c": of Raft itself), so many bytes each. */
struct sent {
    uint64_t prev, commit, node, term;
    const char *kinds;
    size_t bytes;
};

/* fill -- an entry of a kind. */
static void
fill(struct raft_entry *entry, char kind, uint64_t index, size_t bytes)
{
    struct xac_raftd_head head = {.magic = XAC_RAFTD_MAGIC,
                                  .kind = kind == 'b'   ? RAFTD_BATCH
                                          : kind == 'n' ? RAFTD_NOTE
                                                        : RAFTD_DATA};
    struct xac_raftd_piece piece = {.offset = kind == 'p'};
    uint8_t *to = (uint8_t *)entry->buf.base;

    must(bytes >= sizeof head + sizeof piece + sizeof index);
    memset(to, 0, bytes);
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, &piece, sizeof piece);
    memcpy(to + bytes - sizeof index, &index, sizeof index);
    entry->type = kind == 'c' ? RAFT_BARRIER : RAFT_COMMAND;
    entry->term = TERM;
}

static void
send(struct sent s)
{
    char address[32] = "10.0.0.2:7001";
    struct raft_message m = {.type = RAFT_APPEND_ENTRIES,
                             .server_id = s.node != 0 ? s.node : LEADER,
                             .server_address = address};
    struct raft_append_entries *a = &m.append_entries;
    size_t n = s.kinds != NULL ? strlen(s.kinds) : 0, bytes = s.bytes != 0 ? s.bytes : 96;
    uint8_t *batch = n > 0 ? (uint8_t *)raft_malloc(n * bytes) : NULL;

    a->term = s.term != 0 ? s.term : TERM;
    a->prev_log_index = s.prev;
    a->prev_log_term = s.prev == 0 ? 0 : TERM;
    a->leader_commit = s.commit;
    a->n_entries = (unsigned)n;
    a->entries =
        n > 0 ? (struct raft_entry *)raft_malloc(n * sizeof a->entries[0]) : NULL;
    for (size_t i = 0; i < n; i++) {
        a->entries[i].buf = (struct raft_buffer){.base = batch + i * bytes, .len = bytes};
        a->entries[i].batch = batch;
        fill(&a->entries[i], s.kinds[i], s.prev + 1 + i, bytes);
    }
    raftd_intake_take(&w.in, &w.io, &m);
    memset(address, 'x', sizeof address - 1); /* its connection may end */
}

/* must_get -- the next thing that libraft has been handed. */
static unsigned n_seen;

static void
must_get(uint64_t prev, uint64_t n, uint64_t commit)
{
    const struct got *got = &w.got[n_seen];

    must(n_seen++ < w.n_got);
    must_eq(got->prev, prev);
    must_eq(got->prev_term, TERM);
    must_eq(got->n, n);
    must_eq(got->commit, commit);
    must(strcmp(got->address, "10.0.0.2:7001") == 0);
}

static void
must_get_no_more(void)
{
    must_eq(n_seen, w.n_got);
}

static void
look(void)
{
    raftd_intake_look(&w.in, &w.io);
}

static void
finish(void)
{
    must_get_no_more();
    raftd_intake_fini(&w.in);
    must_eq(w.in.bytes, 0);
}

/* ---- Holding back ------------------------------------------------------------------- */

START_TEST(with_room_everything_goes_through)
{
    begin();
    rooms(RAFTD_ROOM_ALL);
    send((struct sent){.prev = 12, .commit = 12, .kinds = "bfppb"});
    must_get(12, 5, 12);
    send((struct sent){.prev = 17, .commit = 17});
    must_get(17, 0, 17);
    finish();
}
END_TEST

START_TEST(without_room_entries_wait_and_the_leader_is_answered)
{
    begin();
    rooms(RAFTD_ROOM_NONE);
    send((struct sent){.prev = 12, .commit = 9});
    must_get(12, 0, 9);
    send((struct sent){.prev = 12, .commit = 12}); /* nothing is committed */
    must_get(12, 0, 10);
    send((struct sent){.prev = 12, .commit = 12, .kinds = "bb"});
    must_get(12, 0, 10);
    send((struct sent){.prev = 14, .commit = 13, .kinds = "bbb"}); /* 14 is not there */
    must_get(12, 0, 10);
    send((struct sent){.prev = 17, .commit = 15});
    must_get(12, 0, 10);
    send((struct sent){.prev = 11, .commit = 15}); /* an old one */
    must_get(11, 0, 10);
    look();
    must_get_no_more();
    must_eq(w.in.bytes, 5 * 96);
    rooms(RAFTD_ROOM_ALL);
    look();
    must_get(12, 2, 12);
    must_get(14, 3, 13);
    must_eq(w.in.bytes, 0);
    send((struct sent){.prev = 17, .commit = 17, .kinds = "b"});
    must_get(17, 1, 17);
    finish();
}
END_TEST

/* The leader begins anew where it knows the node's log to end. */
START_TEST(what_comes_again_is_held_once)
{
    begin();
    rooms(RAFTD_ROOM_NONE);
    send((struct sent){.prev = 12, .kinds = "bb"});
    send((struct sent){.prev = 14, .kinds = "bb"});
    must_get(12, 0, 0);
    must_get(12, 0, 0);
    send((struct sent){.prev = 12, .kinds = "bbbbbb"});
    must_get(12, 0, 0);
    must_get(12, 1, 0); /* one is let go, and answered */
    must_eq(w.in.bytes, 5 * 96);
    send((struct sent){.prev = 13, .kinds = "bbbb"});
    must_get(13, 0, 0);
    must_get(13, 1, 0);
    must_eq(w.in.bytes, 4 * 96);
    rooms(RAFTD_ROOM_ALL);
    look();
    must_get(14, 2, 0);
    must_get(16, 2, 0);
    finish();
}
END_TEST

/* It does not hear the answers. */
START_TEST(what_comes_again_and_again_is_held)
{
    const char *kinds = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    uint64_t n = 0;

    begin();
    for (unsigned turn = 1; turn <= 2; turn++) {
        rooms(RAFTD_ROOM_NONE);
        for (unsigned i = 0; i < 30; i++)
            send((struct sent){.prev = 32 * turn, .kinds = kinds});
        must(w.in.bytes >= 24 * 96);
        rooms(RAFTD_ROOM_ALL);
        look();
        must_eq(w.in.bytes, 0);
    }
    for (unsigned i = 0; i < w.n_got; i++) /* each once, in order */
        n += w.got[i].n;
    must_eq(n, 64);
    n_seen = w.n_got;
    finish();
}
END_TEST

START_TEST(what_comes_when_there_is_room_again_stays_behind_what_waits)
{
    begin();
    rooms(RAFTD_ROOM_NONE);
    send((struct sent){.prev = 12, .commit = 12, .kinds = "bb"});
    must_get(12, 0, 10);
    rooms(RAFTD_ROOM_ALL);
    send((struct sent){.prev = 14, .commit = 14, .kinds = "b"});
    must_get(12, 0, 10);
    must_get(12, 2, 12);
    must_get(14, 1, 14);
    finish();
}
END_TEST

/* With room for a part: up to the next file, and then there is room again or not. */
START_TEST(a_part_ends_before_the_next_file)
{
    begin();
    rooms(RAFTD_ROOM_PART, RAFTD_ROOM_PART, RAFTD_ROOM_NONE);
    send((struct sent){.prev = 12, .commit = 30, .kinds = "ppbcfppbnb"});
    must_get(12, 0, 10);
    must_get(12, 4, 30);
    look();
    must_get_no_more();
    must_eq(w.in.bytes, 6 * 96);
    send((struct sent){.prev = 22, .commit = 30});
    must_get(16, 0, 10); /* it ends where the rest begins */
    rooms(RAFTD_ROOM_PART, RAFTD_ROOM_PART, RAFTD_ROOM_PART);
    look();
    must_get(16, 4, 30);
    must_get(20, 2, 30);
    send((struct sent){.prev = 22, .commit = 31}); /* nothing waits: it commits */
    must_get(22, 0, 31);
    finish();
}
END_TEST

START_TEST(what_waits_goes_when_another_node_leads)
{
    begin();
    rooms(RAFTD_ROOM_NONE);
    send((struct sent){.prev = 12, .kinds = "bb"});
    must_get(12, 0, 0);
    if (_i == 0) { /* of whom there is a message */
        send((struct sent){.prev = 40, .node = 3, .term = TERM + 1});
        must_get(40, 0, 0);
    } else if (_i == 1) { /* of whom nothing has come yet */
        w.raft.current_term = TERM + 1;
        look();
    } else { /* what an older one sends is none of ours */
        send((struct sent){.prev = 40, .term = TERM - 1, .kinds = "b"});
        must_get(40, 1, 0);
        must_eq(w.in.bytes, 2 * 96);
        finish();
        return;
    }
    must_eq(w.in.bytes, 0);
    rooms(RAFTD_ROOM_ALL);
    look();
    finish();
}
END_TEST

START_TEST(what_waits_has_a_bound)
{
    const size_t bytes = RAFTD_INTAKE_MOST / 16;

    begin();
    rooms(RAFTD_ROOM_NONE);
    for (unsigned i = 0; i < 40; i++) {
        send((struct sent){.prev = 12 + i, .kinds = "b", .bytes = bytes});
        must_get(12, 0, 0);
        must(w.in.bytes <= RAFTD_INTAKE_MOST);
    }
    must_eq(w.in.bytes, RAFTD_INTAKE_MOST);
    rooms(RAFTD_ROOM_ALL);
    look();
    for (unsigned i = 0; i < 16; i++)
        must_get(12 + i, 1, 0);
    finish();
}
END_TEST

/* Each takes memory beside its bytes. */
START_TEST(small_entries_that_wait_have_a_bound)
{
    const char *kinds = "cccccccccccccccccccccccccccccccc";

    begin();
    rooms(RAFTD_ROOM_NONE);
    for (unsigned i = 0; i < RAFTD_INTAKE_ENTRIES / 32 + 10; i++) {
        send((struct sent){.prev = 12 + 32 * i, .kinds = kinds});
        must_get(12, 0, 0);
        must(w.in.n <= RAFTD_INTAKE_ENTRIES);
    }
    must_eq(w.in.bytes, RAFTD_INTAKE_ENTRIES * 96);
    rooms(RAFTD_ROOM_ALL);
    look();
    for (unsigned i = 0; i < RAFTD_INTAKE_ENTRIES / 32; i++)
        must_get(12 + 32 * i, 32, 0);
    finish();
}
END_TEST

/* ---- Snapshots ---------------------------------------------------------------------- */

START_TEST(a_snapshot_waits_for_the_log)
{
    struct raftd_accepted a = {.generation = 3,
                               .start = 4096,
                               .end = 8192,
                               .cut = 4096,
                               .segment_bytes = 1 << 20};

    begin();
    rooms(RAFTD_ROOM_ALL);
    for (unsigned i = 0; i < 3; i++) {
        struct raft_message m = {.type = RAFT_INSTALL_SNAPSHOT};
        struct xac_raftd_descriptor *d =
            (struct xac_raftd_descriptor *)raft_malloc(sizeof *d);

        must(d != NULL);
        raftd_descriptor_make(&a, group, d);
        d->check ^= i == 2; /* damaged */
        raft_configuration_init(&m.install_snapshot.conf);
        m.install_snapshot.data = (struct raft_buffer){.base = d, .len = sizeof *d};
        w.has = i == 1;
        raftd_intake_take(&w.in, &w.io, &m);
        must_eq(w.n_others, i >= 1);
        must_eq(w.n_behind, 1);
        if (i == 1)
            raft_free(d);
    }
    finish();
}
END_TEST

/* ---- How much has gathered ---------------------------------------------------------- */

START_TEST(a_snapshot_is_due_and_then_late)
{
    struct raftd_gather g;

    raftd_gather_init(&g, 1000);
    must(!raftd_gather_add(&g, 999));
    must(raftd_gather_add(&g, 1));
    must(!raftd_gather_is_late(&g));
    must(raftd_gather_add(&g, 999));
    must(!raftd_gather_is_late(&g));
    must(raftd_gather_add(&g, 1));
    must(raftd_gather_is_late(&g));
    must_eq(raftd_gather_entries(&g, 1, 100), 2); /* 4 entries have 2000 bytes */
    must_eq(raftd_gather_entries(&g, 3, 100), 3);
    must_eq(raftd_gather_entries(&g, 0, 1), 1);
    raftd_gather_clear(&g);
    must(!raftd_gather_is_late(&g));
    must_eq(g.n_all, 4);
    must(!raftd_gather_add(&g, 999));
}
END_TEST

/* ---- The queue ---------------------------------------------------------------------- */

START_TEST(the_queue_has_one_item_that_says_that_the_node_is_behind)
{
    struct raftd_item behind = {.kind = RAFTD_ITEM_BEHIND},
                      entry = {.kind = RAFTD_ITEM_ENTRY}, *item;
    struct raftd_queue q;
    unsigned n = 0;

    raftd_queue_init(&q);
    for (unsigned turn = 0; turn < 2; turn++, n = 0) {
        for (unsigned i = 0; i < 5; i++) {
            must_ok(raftd_queue_put(&q, &behind, NULL, 0));
            must_ok(raftd_queue_put(&q, &entry, "entry", 5));
        }
        while ((item = raftd_queue_take(&q, 0)) != NULL) {
            must_eq(item->kind, n++ == 0 ? RAFTD_ITEM_BEHIND : RAFTD_ITEM_ENTRY);
            free(item);
        }
        must_eq(n, 6);
    }
    raftd_queue_fini(&q);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("raftd_bounds");
    TCase *t = env_tcase(s, "raftd_bounds", 60);

    tcase_add_test(t, with_room_everything_goes_through);
    tcase_add_test(t, without_room_entries_wait_and_the_leader_is_answered);
    tcase_add_test(t, what_comes_again_is_held_once);
    tcase_add_test(t, what_comes_again_and_again_is_held);
    tcase_add_test(t, what_comes_when_there_is_room_again_stays_behind_what_waits);
    tcase_add_test(t, a_part_ends_before_the_next_file);
    tcase_add_loop_test(t, what_waits_goes_when_another_node_leads, 0, 3);
    tcase_add_test(t, what_waits_has_a_bound);
    tcase_add_test(t, small_entries_that_wait_have_a_bound);
    tcase_add_test(t, a_snapshot_waits_for_the_log);
    tcase_add_test(t, a_snapshot_is_due_and_then_late);
    tcase_add_test(t, the_queue_has_one_item_that_says_that_the_node_is_behind);
    return env_main(s);
}
