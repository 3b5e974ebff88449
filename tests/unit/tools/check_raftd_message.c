/* SPDX-License-Identifier: MIT */
/*
 * check_raftd_message.c -- messages of libraft, checked before libraft gets them (recovery/raftd_message.h).
 *
 * GOAL    What libraft sends passes, in whatever pieces it comes.  A length or a count that cannot be does not, nor does
 *         anything behind it.  Bytes at random change nothing but what is said of them.
 * METHOD  Messages as libraft 0.22.1 encodes them, whole and in pieces, and one field of each changed.  Random bytes from a
 *         seed that is printed.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "tests/common/env.h"
#include "recovery/raftd_format.h"
#include "recovery/raftd_message.h"

enum {
    APPEND_ENTRIES = 1,
    APPEND_ENTRIES_RESULT,
    REQUEST_VOTE,
    REQUEST_VOTE_RESULT,
    INSTALL_SNAPSHOT,
    TIMEOUT_NOW,
    TYPES
};

struct message {
    uint8_t bytes[4096];
    size_t n;
};

static void
put(struct message *m, uint64_t value, size_t n)
{
    must(m->n + n <= sizeof m->bytes);
    memcpy(m->bytes + m->n, &value, n); /* the machines of the tests are little-endian */
    m->n += n;
}

static void
put_zeros(struct message *m, size_t n)
{
    must(m->n + n <= sizeof m->bytes);
    memset(m->bytes + m->n, 0, n);
    m->n += n;
}

/* begin -- preamble, and the first fields of a head of n bytes. */
static void
begin(struct message *m, uint64_t type, uint64_t n, unsigned fields)
{
    m->n = 0;
    put(m, type | UINT64_C(1) << 16, 8);
    put(m, n, 8);
    for (unsigned i = 0; i < fields; i++)
        put(m, i + 1, 8);
}

/* make_batch -- with entries of these lengths; 0 ends them. */
static void
make_batch(struct message *m, const uint32_t length[])
{
    uint64_t n = 0, bytes = 0;

    while (length[n] != 0)
        n++;
    begin(m, APPEND_ENTRIES, 48 + 16 * n, 4);
    put(m, n, 8);
    for (uint64_t i = 0; i < n; i++) {
        put(m, 7, 8);
        put(m, 1, 4);
        put(m, length[i], 4);
        bytes += length[i];
    }
    put(m, 0, 8);
    put_zeros(m, (size_t)bytes);
}

#define CONF_BYTES 48
#define CONF_AT    (16 + 40)

/* make_snapshot -- with two nodes. */
static void
make_snapshot(struct message *m)
{
    begin(m, INSTALL_SNAPSHOT, 56 + CONF_BYTES, 4);
    put(m, CONF_BYTES, 8);
    put(m, 1, 1);
    put(m, 2, 8);
    for (uint64_t i = 1; i <= 2; i++) {
        put(m, i, 8);
        memcpy(m->bytes + m->n, "[::1]:1", 8);
        m->n += 8;
        put(m, 1, 1);
    }
    put_zeros(m, CONF_AT + CONF_BYTES - m->n);
    put(m, sizeof(struct xac_raftd_descriptor), 8);
    put(m, 0, 8);
    put_zeros(m, sizeof(struct xac_raftd_descriptor));
}

static void
make(struct message *m, unsigned type)
{
    static const uint32_t lengths[] = {8, 72, 1024, 0};

    switch (type) {
    case APPEND_ENTRIES:
        make_batch(m, lengths);
        break;
    case INSTALL_SNAPSHOT:
        make_snapshot(m);
        break;
    case REQUEST_VOTE:
        begin(m, type, 40, 5);
        break;
    case APPEND_ENTRIES_RESULT:
        begin(m, type, 32, 4);
        break;
    default:
        begin(m, type, 24, 3);
    }
}

static struct raftd_messages checked;

/* is_right_so_far -- a message, or its beginning.  Before it there was a long one: so what stands behind the head is something
   that could be lengths, too. */
static bool
is_right_so_far(const struct message *m)
{
    static const uint32_t lengths[] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 0};
    struct message longer;

    make_batch(&longer, lengths);
    raftd_messages_init(&checked);
    must(raftd_messages_check(&checked, longer.bytes, longer.n));
    return raftd_messages_check(&checked, m->bytes, m->n);
}

/* is_right -- a message, and another one behind it. */
static bool
is_right(const struct message *m)
{
    struct message vote;

    make(&vote, REQUEST_VOTE);
    return is_right_so_far(m) && raftd_messages_check(&checked, vote.bytes, vote.n);
}

START_TEST(messages_pass_in_whatever_pieces)
{
    static struct message all;
    struct message one;

    all.n = 0;
    for (unsigned type = 1; type < TYPES; type++) {
        make(&one, type);
        must(is_right(&one));
        memcpy(all.bytes + all.n, one.bytes, one.n);
        all.n += one.n;
    }
    for (size_t piece = 1; piece <= all.n; piece++) {
        raftd_messages_init(&checked);
        for (size_t at = 0; at < all.n; at += piece)
            must(raftd_messages_check(&checked, all.bytes + at,
                                      all.n - at < piece ? all.n - at : piece));
        must_eq(checked.n, 0);
        must_eq(checked.left, 0);
    }
}
END_TEST

/* One field of a message, changed. */
static const struct {
    unsigned type;
    size_t at, n;
    uint64_t value;
} wrong[] = {
    {REQUEST_VOTE, 0, 1, 0}, /* type */
    {REQUEST_VOTE, 0, 1, TYPES},
    {REQUEST_VOTE, 8, 8, 0}, /* length of the head */
    {REQUEST_VOTE, 8, 8, 39},
    {REQUEST_VOTE, 8, 8, RAFTD_HEAD_MAX + 1},
    {REQUEST_VOTE, 8, 8, UINT64_C(1) << 40},
    {REQUEST_VOTE, 8, 8, UINT64_MAX},
    {TIMEOUT_NOW, 8, 8, 16},
    {APPEND_ENTRIES_RESULT, 8, 8, 24},
    {APPEND_ENTRIES, 8, 8, 32},
    {APPEND_ENTRIES, 16 + 32, 8, 5}, /* number of entries: the head has room for 3 */
    {APPEND_ENTRIES, 16 + 32, 8, UINT64_C(1) << 60},
    {APPEND_ENTRIES, 16 + 52, 4, 0}, /* length of the first one */
    {APPEND_ENTRIES, 16 + 52, 4, 9},
    {APPEND_ENTRIES, 16 + 52, 4, XAC_RAFTD_BODY_MAX + 80},
    {APPEND_ENTRIES, 16 + 52, 4, UINT32_MAX - 7},
    {INSTALL_SNAPSHOT, 8, 8, 48},
    {INSTALL_SNAPSHOT, 16 + 32, 8, CONF_BYTES + 1}, /* length of the configuration */
    {INSTALL_SNAPSHOT, 16 + 32, 8, UINT64_MAX - 55},
    {INSTALL_SNAPSHOT, 16 + 32, 8, 8},
    {INSTALL_SNAPSHOT, CONF_AT, 1, 2},     /* format */
    {INSTALL_SNAPSHOT, CONF_AT + 1, 8, 6}, /* number of nodes */
    {INSTALL_SNAPSHOT, CONF_AT + 1, 8, UINT64_MAX},
    {INSTALL_SNAPSHOT, CONF_AT + CONF_BYTES, 8, 129}, /* length of the snapshot */
    {INSTALL_SNAPSHOT, CONF_AT + CONF_BYTES, 8, UINT64_C(1) << 50},
};

START_TEST(what_cannot_be_is_found)
{
    struct message m;
    uint64_t head;

    make(&m, wrong[_i].type);
    must(is_right(&m));
    memcpy(&head, m.bytes + 8, sizeof head);
    memcpy(m.bytes + wrong[_i].at, &wrong[_i].value, wrong[_i].n);
    m.n = RAFTD_PREAMBLE_BYTES + (size_t)head;
    must(
        !is_right_so_far(&m)); /* at the end of its head: then libraft would believe it */
}
END_TEST

START_TEST(random_bytes_do_no_harm)
{
    struct message m;
    unsigned short dice[3] = {0};
    uint64_t seed = env_seed();
    unsigned n_wrong = 0;

    memcpy(dice, &seed, sizeof dice);
    for (unsigned round = 0; round < 20000; round++) {
        make(&m, 1 + (unsigned)nrand48(dice) % (TYPES - 1));
        for (unsigned i = 0; i < 3; i++)
            m.bytes[(size_t)nrand48(dice) % m.n] = (uint8_t)nrand48(dice);
        raftd_messages_init(&checked);
        for (unsigned i = 0; i < 3; i++)
            n_wrong += !raftd_messages_check(&checked, m.bytes, m.n);
        must(checked.n <= sizeof checked.bytes);
    }
    must(n_wrong > 0);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("raftd_message");
    TCase *t = env_tcase(s, "raftd_message", 60);

    tcase_add_test(t, messages_pass_in_whatever_pieces);
    tcase_add_loop_test(t, what_cannot_be_is_found, 0,
                        (int)(sizeof wrong / sizeof wrong[0]));
    tcase_add_test(t, random_bytes_do_no_harm);
    return env_main(s);
}
