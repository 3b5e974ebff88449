/* SPDX-License-Identifier: MIT */
/*
 * check_raftd_entry.c -- entries that xraftd puts into Raft's log, and which of them count (recovery/raftd_entry.h).
 *
 * GOAL    What was made is read back.  An entry with one bit turned, shorter or longer, is refused, and so is one with right
 *         checksums that cannot be.  Of a log in which writers of several generations have left entries in any mixture, those
 *         count that a plain model of the rule lets count; and all nodes say the same, also one that begins at a snapshot.
 * METHOD  Random bytes and sequences, from a seed that is printed.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "tests/common/env.h"
#include "base/digest.h"
#include "log/log_format.h"
#include "log/log_name.h"
#include "recovery/raftd_entry.h"

#define BLOCK_BYTES 64

static const uint8_t group[XAC_RAFTD_GROUP_BYTES] = "a group's number";

/* An entry, with its bytes. */
struct made {
    size_t n;
    _Alignas(8) uint8_t bytes[1024];
};

/* seal -- e->n bytes of body are there. */
static void
seal(struct made *m, struct raftd_entry *e, uint64_t writer)
{
    memset(e->nonce, 0, sizeof e->nonce);
    memcpy(e->nonce, &writer, sizeof writer);
    raftd_entry_seal(m->bytes, e);
    m->n = raftd_entry_bytes(e->n);
    must(m->n <= sizeof m->bytes);
}

static void
make_open(struct made *m, uint32_t generation, uint64_t cut, uint32_t node,
          uint64_t writer)
{
    struct xac_raftd_open open = {.start = (cut + 4095) / 4096 * 4096,
                                  .segment_bytes = 1 << 20,
                                  .node = node};
    struct raftd_entry e = {.kind = RAFTD_OPEN,
                            .generation = generation,
                            .lsn = cut,
                            .n = sizeof open};

    memcpy(raftd_entry_body(m->bytes), &open, sizeof open);
    seal(m, &e, writer);
}

/* make_batch -- of n blocks that have a header only. */
static void
make_batch(struct made *m, uint32_t generation, uint64_t lsn, unsigned n, uint64_t writer)
{
    struct raftd_entry e = {.kind = RAFTD_BATCH,
                            .generation = generation,
                            .lsn = lsn,
                            .n = n * BLOCK_BYTES};
    uint8_t *body = (uint8_t *)raftd_entry_body(m->bytes);

    for (unsigned i = 0; i < n; i++) {
        struct xac_block blk = {.length = BLOCK_BYTES,
                                .lsn = lsn + i * BLOCK_BYTES,
                                .generation = generation};

        memcpy(body + i * BLOCK_BYTES, &blk, sizeof blk);
    }
    seal(m, &e, writer);
}

/* make_piece -- of a data file, or of xac.addresses, with 13 bytes. */
static void
make_piece(struct made *m, enum raftd_kind kind, uint32_t generation, uint64_t lsn,
           uint64_t what, uint64_t offset, uint64_t writer)
{
    struct xac_raftd_piece head = {.what = what, .offset = offset};
    struct raftd_entry e = {.kind = kind,
                            .generation = generation,
                            .lsn = lsn,
                            .n = sizeof head + 13};
    uint8_t *body = (uint8_t *)raftd_entry_body(m->bytes);

    memcpy(body, &head, sizeof head);
    memcpy(body + sizeof head, "thirteen byte", 13);
    seal(m, &e, writer);
}

static void
make_node(struct made *m, uint32_t node)
{
    struct xac_raftd_node body = {.node = node};
    struct raftd_entry e = {.kind = RAFTD_NODE,
                            .generation = 3,
                            .lsn = 8192,
                            .n = sizeof body};

    memcpy(raftd_entry_body(m->bytes), &body, sizeof body);
    seal(m, &e, 77);
}

/* make_any -- one of each kind. */
static void
make_any(struct made *m, enum raftd_kind kind)
{
    switch (kind) {
    case RAFTD_BATCH:
        make_batch(m, 3, 8192, 4, 77);
        break;
    case RAFTD_OPEN:
        make_open(m, 3, 8200, 2, 77);
        break;
    case RAFTD_NODE:
        make_node(m, 4);
        break;
    default:
        make_piece(m, kind, 3, 8192, 100, 50, 77);
    }
}

/* ---- Bytes -------------------------------------------------------------------------- */

START_TEST(what_was_made_is_read)
{
    for (enum raftd_kind kind = RAFTD_BATCH; kind < RAFTD_KINDS; kind++) {
        struct raftd_entry e;
        struct made m;

        make_any(&m, kind);
        must_ok(raftd_entry_read(m.bytes, m.n, &e));
        must_eq(e.kind, kind);
        must_eq(e.generation, 3);
        must_eq(e.nonce[0], 77);
        must_eq(e.lsn, kind == RAFTD_OPEN ? 8200 : 8192);
        must_eq(e.end, kind == RAFTD_BATCH ? 8192 + 4 * BLOCK_BYTES : e.lsn);
        must(e.body == raftd_entry_body(m.bytes));
    }
}
END_TEST

START_TEST(each_turned_bit_and_each_other_length_is_refused)
{
    for (enum raftd_kind kind = RAFTD_BATCH; kind < RAFTD_KINDS; kind++) {
        struct raftd_entry e;
        struct made m;

        make_any(&m, kind);
        for (size_t bit = 0; bit < 8 * m.n; bit++) {
            m.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            must(raftd_entry_read(m.bytes, m.n, &e) != 0);
            m.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        for (size_t n = 0; n < m.n + 16; n++)
            must(n == m.n || raftd_entry_read(m.bytes, n, &e) != 0);
        must_ok(raftd_entry_read(m.bytes, m.n, &e));
    }
}
END_TEST

/* change -- some bytes of the head behind magic and version, or of the body, and make the checksums right. */
static void
change(struct made *m, uint64_t *seed)
{
    struct xac_raftd_head head;
    size_t n = 1 + rnd_below(seed, 4);

    for (size_t i = 0; i < n; i++) {
        size_t at = 6 + rnd_below(seed, m->n - 6);

        m->bytes[at] = rnd_below(seed, 2) == 0
                           ? (uint8_t)rnd_next(seed)
                           : (uint8_t)(m->bytes[at] ^ (1u << rnd_below(seed, 8)));
    }
    memcpy(&head, m->bytes, sizeof head);
    if (head.length <= m->n - sizeof head)
        head.body_check = xac_xxh64(m->bytes + sizeof head, head.length);
    head.head_check = xac_xxh64(&head, offsetof(struct xac_raftd_head, head_check));
    memcpy(m->bytes, &head, sizeof head);
}

/* must_be_blocks -- they fill a BATCH, one behind the other. */
static void
must_be_blocks(const struct raftd_entry *e)
{
    const uint8_t *body = (const uint8_t *)e->body;
    struct xac_block blk;

    for (size_t at = 0; at < e->n; at += blk.length) {
        must(e->n - at >= sizeof blk);
        memcpy(&blk, body + at, sizeof blk);
        must(blk.length >= sizeof blk);
        must(blk.length <= e->n - at);
        must_eq(blk.lsn, e->lsn + at);
        must_eq(blk.generation, e->generation);
    }
}

/* must_be_sound -- an entry that was let through: what is said of it must hold. */
static void
must_be_sound(const struct raftd_entry *e, const struct made *m)
{
    struct xac_raftd_piece piece;
    struct xac_raftd_open open;
    struct xac_raftd_node node;

    must(e->kind > RAFTD_NONE);
    must(e->kind < RAFTD_KINDS);
    must(xac_log_generation_ok(e->generation));
    must_eq(raftd_entry_bytes(e->n), m->n);
    must_eq(e->lsn % 8, 0);
    must_eq(e->end - e->lsn, e->kind == RAFTD_BATCH ? e->n : 0);
    if (e->kind == RAFTD_OPEN) {
        memcpy(&open, e->body, sizeof open);
        must(open.start >= e->lsn);
        must(open.start - e->lsn < 4096);
        must_eq(open.start % 4096, 0);
        must(open.node != 0);
    } else if (e->kind == RAFTD_BATCH) {
        must_be_blocks(e);
    } else if (e->kind == RAFTD_NODE) {
        memcpy(&node, e->body, sizeof node);
        must(node.node >= 1);
        must(node.node <= 255);
    } else {
        memcpy(&piece, e->body, sizeof piece);
        must(e->kind == RAFTD_DATA || piece.offset + (e->n - sizeof piece) <= piece.what);
    }
}

START_TEST(entries_that_cannot_be_are_refused)
{
    uint64_t seed = env_seed(), rounds = env_number("XAC_ROUNDS", 300000), n_read = 0;
    struct raftd_accepted a = {.generation = 2, .end = 8192};
    struct raftd_entry e;

    for (uint64_t i = 0; i < rounds; i++) {
        struct made m;

        make_any(&m, (enum raftd_kind)(1 + i % (RAFTD_KINDS - 1)));
        change(&m, &seed);
        if (raftd_entry_read(m.bytes, m.n, &e) != 0)
            continue;
        must_be_sound(&e, &m);
        n_read++;
        (void)raftd_entry_accept(&a, &e);
        must(a.end >= a.start);
    }
    must(n_read > rounds / 100); /* else nothing has been tried */
    must(n_read < rounds / 2);
}
END_TEST

START_TEST(noise_is_refused)
{
    uint64_t seed = env_seed();
    _Alignas(8) uint8_t noise[512];
    struct raftd_accepted a;
    struct raftd_entry e;

    for (unsigned i = 0; i < 100000; i++) {
        size_t n = rnd_below(&seed, sizeof noise + 1);

        for (size_t k = 0; k < n; k++)
            noise[k] = (uint8_t)rnd_next(&seed);
        must(raftd_entry_read(noise, n, &e) != 0);
        must(raftd_descriptor_read(noise, n, group, &a) != 0);
    }
}
END_TEST

/* ---- What counts -------------------------------------------------------------------- */

START_TEST(what_a_deposed_writer_has_proposed_counts_before_the_next_open_only)
{
    struct raftd_accepted a = {.generation = 2, .end = 8200};
    struct raftd_entry e;
    struct made m;

    make_batch(&m, 2, 8200, 1, 0); /* nobody has opened generation 2 */
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(!raftd_entry_accept(&a, &e));
    make_open(&m, 3, 8192, 1, 7); /* another cut */
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(!raftd_entry_accept(&a, &e));
    make_open(&m, 3, 8200, 1, 7);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(raftd_entry_accept(&a, &e));
    must(!raftd_entry_accept(&a, &e)); /* once */
    must_eq(a.start, 12288);
    must_eq(a.cut, 8200);
    must_eq(a.node, 1);
    make_batch(&m, 3, 12288, 3, 7);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(raftd_entry_accept(&a, &e));
    must(!raftd_entry_accept(&a, &e));
    make_open(&m, 4, a.end, 2, 8);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(raftd_entry_accept(&a, &e));
    must_eq(a.cut, 12288 + 3 * BLOCK_BYTES);
    make_batch(&m, 3, a.cut, 1, 7); /* the tail of the deposed one */
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(!raftd_entry_accept(&a, &e));
    make_batch(&m, 4, a.end, 1, 7); /* another life's */
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(!raftd_entry_accept(&a, &e));
    must_eq(a.end, 16384);
}
END_TEST

START_TEST(pieces_count_in_order)
{
    struct raftd_accepted a = {.generation = 2, .end = 8192};
    struct raftd_entry e;
    struct made m;

    make_open(&m, 3, 8192, 1, 7);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(raftd_entry_accept(&a, &e));
    make_piece(&m, RAFTD_DATA, 3, a.end, 5, 13, 7);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(!raftd_entry_accept(&a, &e)); /* the first one is missing */
    make_piece(&m, RAFTD_DATA, 3, a.end, 5, 0, 7);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(raftd_entry_accept(&a, &e));
    make_piece(&m, RAFTD_DATA, 3, a.end, 6, 13, 7);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(!raftd_entry_accept(&a, &e)); /* of another file */
    make_piece(&m, RAFTD_DATA, 3, a.end, 5, 13, 7);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(raftd_entry_accept(&a, &e));
    must(!raftd_entry_accept(&a, &e));
    must_eq(a.data_end, 26);
    make_batch(&m, 3, a.end, 1, 7);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(raftd_entry_accept(&a, &e));
    must_eq(a.data_end, 0);
    make_piece(&m, RAFTD_DATA, 3, a.end, 5, 26, 7);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(!raftd_entry_accept(&a, &e)); /* its block has come */
}
END_TEST

/* The rule, written in another way: the owner of each generation, and where the log ends. */
struct model {
    uint64_t
        owner[64]; /* of a generation: its writer; 0: none has opened it            */
    uint32_t newest;
    uint64_t end;
};

/* model_takes -- does the entry count?  Of BATCH and OPEN. */
static bool
model_takes(struct model *w, const struct raftd_entry *e)
{
    uint64_t writer;

    memcpy(&writer, e->nonce, sizeof writer);
    if (e->kind == RAFTD_OPEN) {
        if (e->generation - w->newest != 1 || e->lsn != w->end)
            return false;
        w->newest = e->generation;
        w->owner[w->newest] = writer;
        w->end = (e->lsn + 4095) / 4096 * 4096;
        return true;
    }
    if (e->generation != w->newest || w->owner[e->generation] == 0
        || w->owner[e->generation] != writer || w->end != e->lsn)
        return false;
    w->end += e->n;
    return true;
}

/* must_agree -- a node and one that begins at a snapshot of it. */
static void
must_agree(const struct raftd_accepted *a)
{
    struct xac_raftd_descriptor d;
    struct raftd_accepted b;

    raftd_descriptor_make(a, group, &d);
    must_ok(raftd_descriptor_read(&d, sizeof d, group, &b));
    must(memcmp(a, &b, sizeof b) == 0);
    d.group[3] ^= 1;
    d.check = xac_xxh64(&d, offsetof(struct xac_raftd_descriptor, check));
    must_eq(raftd_descriptor_read(&d, sizeof d, group, &b), XAC_EFOREIGN);
    d.group[3] ^= 1;
    must_eq(raftd_descriptor_read(&d, sizeof d, group, &b), XAC_EDAMAGED);
}

START_TEST(any_mixture_of_writers_counts_as_the_model_says)
{
    uint64_t seed = env_seed(), n_counted = 0;

    for (unsigned round = 0; round < 2000; round++) {
        struct model w = {.newest = 1, .end = 4096 + 8 * rnd_below(&seed, 100)};
        struct raftd_accepted a;
        struct made m;

        memset(&a, 0, sizeof a);
        a.generation = 1;
        a.end = a.start = a.cut = w.end;
        a.segment_bytes = 1 << 20;
        for (unsigned i = 0; i < 100 && w.newest < 60; i++) {
            uint32_t generation = w.newest + (uint32_t)rnd_below(&seed, 3) - 1;
            uint64_t lsn =
                rnd_below(&seed, 4) > 0 ? w.end : w.end + 64 - 8 * rnd_below(&seed, 16);
            uint64_t writer =
                rnd_below(&seed, 4) > 0 ? w.owner[w.newest] : 1 + rnd_below(&seed, 3);
            struct raftd_entry e;
            bool counts;

            if (rnd_below(&seed, 5) == 0)
                make_open(&m, generation + 1, lsn, 1 + (uint32_t)rnd_below(&seed, 3),
                          1 + rnd_below(&seed, 3));
            else
                make_batch(&m, generation == 0 ? 1 : generation, lsn,
                           1 + (unsigned)rnd_below(&seed, 3), writer);
            must_ok(raftd_entry_read(m.bytes, m.n, &e));
            counts = model_takes(&w, &e);
            must_eq(raftd_entry_accept(&a, &e), counts);
            must_eq(a.end, w.end);
            must_eq(a.generation, w.newest);
            n_counted += counts;
            must_agree(&a);
        }
    }
    must(n_counted > 10000); /* else the writers have not got far */
}
END_TEST

START_TEST(a_number_that_was_used_stays_used)
{
    struct raftd_accepted a = {.generation = 2, .end = 8192}, b;
    struct xac_raftd_descriptor d;
    struct raftd_entry e;
    struct made m;

    make_node(&m, 5); /* of another generation: it counts in any case */
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(raftd_entry_accept(&a, &e));
    make_node(&m, 4);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(raftd_entry_accept(&a, &e));
    must_eq(a.last_node, 5);
    make_open(&m, 3, 8192, 2, 77);
    must_ok(raftd_entry_read(m.bytes, m.n, &e));
    must(raftd_entry_accept(&a, &e));
    must_eq(a.last_node, 5);
    raftd_descriptor_make(&a, group, &d);
    must_ok(raftd_descriptor_read(&d, sizeof d, group, &b));
    must_eq(b.last_node, 5);
    make_node(&m, 0);
    must_rc(raftd_entry_read(m.bytes, m.n, &e), XAC_EDAMAGED);
    make_node(&m, 256);
    must_rc(raftd_entry_read(m.bytes, m.n, &e), XAC_EDAMAGED);
}
END_TEST

START_TEST(a_log_has_what_it_reaches)
{
    struct raftd_accepted empty = {.generation = 5,
                                   .start = 8192,
                                   .end = 8192,
                                   .cut = 8000};
    struct raftd_accepted more = empty;

    more.end = 9000;
    for (unsigned has_led = 0; has_led < 2; has_led++) {
        bool led = has_led == 1;

        must(!raftd_accepted_is_in(&more, 5, 8992, led)); /* though it may have led */
        must(raftd_accepted_is_in(&more, 5, 9000, led));
        must(raftd_accepted_is_in(&more, 5, 9008, led));
        must(raftd_accepted_is_in(&more, 6, 0, led));
        must(!raftd_accepted_is_in(&more, 4, 9000, led));
        must(!raftd_accepted_is_in(&empty, 4, 7992, led));
        must(raftd_accepted_is_in(&empty, 4, 8000, led));
        must_eq(raftd_accepted_is_in(&empty, 4, 8008, led), led);
        must(!raftd_accepted_is_in(&empty, 3, 8000, led));
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("raftd_entry");
    TCase *c = env_tcase(s, "raftd_entry", 120);

    tcase_add_test(c, what_was_made_is_read);
    tcase_add_test(c, each_turned_bit_and_each_other_length_is_refused);
    tcase_add_test(c, entries_that_cannot_be_are_refused);
    tcase_add_test(c, noise_is_refused);
    tcase_add_test(c,
                   what_a_deposed_writer_has_proposed_counts_before_the_next_open_only);
    tcase_add_test(c, pieces_count_in_order);
    tcase_add_test(c, any_mixture_of_writers_counts_as_the_model_says);
    tcase_add_test(c, a_number_that_was_used_stays_used);
    tcase_add_test(c, a_log_has_what_it_reaches);
    return env_main(s);
}
