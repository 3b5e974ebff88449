/* SPDX-License-Identifier: MIT */
/*
 * fuzz_group.c -- target: messages between the nodes of a group, before libraft gets them.
 *
 * message  the bytes of a connection, and behind them the entries and the snapshot that they carry
 *
 * The connection has a batch with an entry of each kind, and a snapshot.  The input changes entries and
 * descriptor; their checksums are made right again, unless it says not to.  Then it changes the heads around them.  What raftd_message.h lets pass is
 * read as libraft reads it: nothing that it says may lie elsewhere.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/err.h"
#include "log/log_format.h"
#include "log/log_name.h"
#include "log/recover_next.h"
#include "recovery/raftd_entry.h"
#include "recovery/raftd_message.h"
#include "target.h"

#define ENTRIES    6u
#define ENTRY_ROOM 512u
#define BYTES_MAX  8192u
#define EDITS_MAX  12u
#define GENERATION 7u

enum {
    APPEND_ENTRIES = 1,
    REQUEST_VOTE = 3,
    INSTALL_SNAPSHOT = 5
};

struct bytes {
    uint8_t at[ENTRY_ROOM] __attribute__((aligned(8)));
    size_t n;
};

static const uint8_t group[XAC_RAFTD_GROUP_BYTES] = {1, 2, 3};

/* What the input changes; and the connection that it becomes. */
static struct {
    struct bytes entry[ENTRIES], snapshot;
    uint8_t line[BYTES_MAX];
    size_t n;
} m;

/* ---- Entries -------------------------------------------------------------------------------- */

/* entry_put -- a valid one, of its kind. */
static void
entry_put(size_t i, enum raftd_kind kind, uint64_t lsn, const void *body, size_t n)
{
    struct raftd_entry e = {
        .kind = kind, .generation = GENERATION, .lsn = lsn, .nonce = {9}, .n = n};

    memcpy(raftd_entry_body(m.entry[i].at), body, n);
    raftd_entry_seal(m.entry[i].at, &e);
    m.entry[i].n = raftd_entry_bytes(n);
}

/* entries_put -- a node, a writer, its data file and block, a list of addresses, another block. */
static void
entries_put(void)
{
    const uint64_t cut = 64, start = xac_next_start(cut);
    const struct xac_raftd_node node = {.node = 3};
    const struct xac_raftd_open open = {.start = start,
                                        .segment_bytes = 65536,
                                        .node = 3};
    struct {
        struct xac_raftd_piece head;
        uint8_t bytes[24];
    } piece = {.head = {.what = 5}, .bytes = {1}};
    struct {
        struct xac_block blk;
        uint8_t records[24];
    } block = {.blk = {.length = sizeof block, .lsn = start, .generation = GENERATION}};

    entry_put(0, RAFTD_NODE, cut, &node, sizeof node);
    entry_put(1, RAFTD_OPEN, cut, &open, sizeof open);
    entry_put(2, RAFTD_DATA, start, &piece, sizeof piece);
    entry_put(3, RAFTD_BATCH, start, &block, sizeof block);
    piece.head.what = sizeof piece.bytes;
    block.blk.lsn += sizeof block;
    entry_put(4, RAFTD_NOTE, block.blk.lsn, &piece, sizeof piece);
    entry_put(5, RAFTD_BATCH, block.blk.lsn, &block, sizeof block);
}

static void
snapshot_put(void)
{
    const struct raftd_accepted a = {.generation = GENERATION,
                                     .node = 3,
                                     .start = 4096,
                                     .end = 8192,
                                     .cut = 64,
                                     .segment_bytes = 65536,
                                     .nonce = {9},
                                     .last_node = 3};

    raftd_descriptor_make(&a, group,
                          (struct xac_raftd_descriptor *)(void *)m.snapshot.at);
    m.snapshot.n = sizeof(struct xac_raftd_descriptor);
}

/* seal -- checksums of what has been changed, as far as there is enough of it. */
static void
seal(void)
{
    struct xac_raftd_head h;
    uint64_t sum;

    for (size_t i = 0; i < ENTRIES; i++) {
        struct bytes *e = &m.entry[i];

        if (e->n < sizeof h)
            continue;
        memcpy(&h, e->at, sizeof h);
        if (h.length <= e->n - sizeof h)
            h.body_check = xac_xxh64(e->at + sizeof h, h.length);
        h.head_check = xac_xxh64(&h, offsetof(struct xac_raftd_head, head_check));
        memcpy(e->at, &h, sizeof h);
    }
    if (m.snapshot.n < sizeof(struct xac_raftd_descriptor))
        return;
    sum = xac_xxh64(m.snapshot.at, offsetof(struct xac_raftd_descriptor, check));
    memcpy(m.snapshot.at + offsetof(struct xac_raftd_descriptor, check), &sum,
           sizeof sum);
}

/* ---- The connection -------------------------------------------------------------------------- */

static void
put(const void *bytes, size_t n)
{
    fuzz_must(m.n + n <= sizeof m.line);
    memcpy(m.line + m.n, bytes, n);
    m.n += n;
}

static void
put_number(uint64_t value, size_t n)
{
    put(&value, n); /* the machines of the tests are little-endian */
}

/* put_begin -- preamble, and the first fields of a head of n bytes. */
static void
put_begin(uint64_t type, uint64_t n, unsigned fields)
{
    put_number(type | UINT64_C(1) << 16, 8);
    put_number(n, 8);
    for (unsigned i = 0; i < fields; i++)
        put_number(i + 1, 8);
}

/* line_put -- a vote, the batch, the snapshot for two nodes, another vote: as libraft 0.22.1 encodes them. */
static void
line_put(void)
{
    static const uint8_t conf[] = "\1\2\0\0\0\0\0\0\0" /* format, nodes */
                                  "\1\0\0\0\0\0\0\0[::1]:1\0\1"
                                  "\2\0\0\0\0\0\0\0[::1]:2\0\1\0\0\0\0";

    m.n = 0;
    put_begin(REQUEST_VOTE, 40, 5);
    put_begin(APPEND_ENTRIES, 48 + 16 * ENTRIES, 4);
    put_number(ENTRIES, 8);
    for (size_t i = 0; i < ENTRIES; i++) {
        put_number(7, 8);
        put_number(1, 4);
        put_number(m.entry[i].n, 4);
    }
    put_number(0, 8);
    for (size_t i = 0; i < ENTRIES; i++)
        put(m.entry[i].at, m.entry[i].n);
    put_begin(INSTALL_SNAPSHOT, 56 + sizeof conf, 4);
    put_number(sizeof conf, 8);
    put(conf, sizeof conf);
    put_number(m.snapshot.n, 8);
    put_number(0, 8);
    put(m.snapshot.at, m.snapshot.n);
    put_begin(REQUEST_VOTE, 40, 5);
}

/* change -- what the input says; ret how many bytes come at a time. */
static size_t
change(struct fuzz_input *in)
{
    unsigned flags = (unsigned)fuzz_bytes(in, 1);
    size_t pieces = (size_t)fuzz_bytes(in, 1);
    unsigned heads = flags / 2 % 4;

    entries_put();
    snapshot_put();
    for (unsigned n = 0; n < EDITS_MAX && in->left > 8 * heads; n++) {
        size_t at = (size_t)fuzz_below(in, ENTRIES + 1);
        struct bytes *b = at < ENTRIES ? &m.entry[at] : &m.snapshot;

        fuzz_edit(in, b->at, &b->n, sizeof b->at);
    }
    if (flags % 2 == 0)
        seal();
    line_put();
    for (; heads > 0 && in->left > 0; heads--)
        fuzz_poke(in, m.line, m.n, (size_t)fuzz_below(in, m.n));
    return pieces + 1;
}

/* ---- What libraft reads ------------------------------------------------------------------------ */

static uint64_t
get(const uint8_t *at, unsigned n)
{
    uint64_t value = 0;

    memcpy(&value, at, n);
    return value;
}

/* take_entry -- as xraftd gets it from libraft: to the byte, so that a sanitizer finds who reads behind it. */
static bool
take_entry(struct raftd_accepted *a, const uint8_t *bytes, size_t n)
{
    uint8_t *copy = (uint8_t *)malloc(n);
    struct raftd_entry e;
    bool counts = false;
    int rc;

    fuzz_must(copy != NULL);
    memcpy(copy, bytes, n);
    (void)raftd_entry_begins_file(copy, n);
    rc = raftd_entry_read(copy, n, &e);
    fuzz_told("an entry", rc);
    if (rc == 0) {
        fuzz_must((const uint8_t *)e.body >= copy
                  && (const uint8_t *)e.body + e.n <= copy + n);
        fuzz_must(e.end >= e.lsn && e.end <= XAC_LSN_LIMIT);
        counts = raftd_entry_accept(a, &e);
        fuzz_must(a->end >= a->start && a->start >= a->cut);
    }
    free(copy);
    return counts;
}

/* take_snapshot -- ret is it one of the group? */
static bool
take_snapshot(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = (uint8_t *)malloc(n);
    struct xac_raftd_descriptor again;
    struct raftd_accepted a;
    int rc;

    fuzz_must(copy != NULL);
    memcpy(copy, bytes, n);
    rc = raftd_descriptor_read(copy, n, group, &a);
    fuzz_told("a snapshot", rc);
    if (rc == 0) {
        raftd_descriptor_make(&a, group, &again);
        fuzz_must(n == sizeof again && memcmp(copy, &again, n) == 0);
    }
    free(copy);
    return rc == 0;
}

/* take_batch -- ret the bytes behind the head. */
static uint64_t
take_batch(struct raftd_accepted *a, const uint8_t *head, size_t n, const uint8_t *behind,
           size_t left, unsigned *countp)
{
    uint64_t entries = get(head + 32, 8), at = 0;

    fuzz_must(entries <= (n - 40) / 16);
    for (uint64_t i = 0; i < entries; i++) {
        uint64_t length = get(head + 40 + 16 * i + 12, 4);

        fuzz_must(length > 0 && length % 8 == 0);
        if (at + length <= left)
            *countp += take_entry(a, behind + at, (size_t)length);
        at += length;
    }
    return at;
}

/* take_line -- all messages, the last of which may lack its end; ret entries and snapshots that count. */
static unsigned
take_line(const uint8_t *line, size_t n)
{
    struct raftd_accepted a = {.generation = GENERATION - 1, .end = 64};
    unsigned count = 0;
    size_t at = 0;

    while (n - at >= RAFTD_PREAMBLE_BYTES) {
        const uint8_t *head = line + at + RAFTD_PREAMBLE_BYTES;
        uint64_t bytes = get(line + at + 8, 8), behind = 0;
        size_t left;

        fuzz_must(bytes <= RAFTD_HEAD_MAX);
        if (n - at - RAFTD_PREAMBLE_BYTES < bytes)
            break;
        left = n - at - RAFTD_PREAMBLE_BYTES - (size_t)bytes;
        if (line[at] == APPEND_ENTRIES)
            behind = take_batch(&a, head, (size_t)bytes, head + bytes, left, &count);
        if (line[at] == INSTALL_SNAPSHOT) {
            uint64_t conf = get(head + 32, 8);

            fuzz_must(conf <= bytes - 56);
            behind = get(head + 40 + conf, 8);
            fuzz_must(behind == sizeof(struct xac_raftd_descriptor));
            if (behind <= left)
                count += take_snapshot(head + bytes, (size_t)behind);
        }
        if (behind > left)
            break;
        at += RAFTD_PREAMBLE_BYTES + (size_t)bytes + (size_t)behind;
    }
    return count;
}

static void
run_message(const uint8_t *data, size_t size)
{
    static struct raftd_messages whole, parts;
    struct fuzz_input in = {data, size};
    size_t piece = change(&in);
    bool is_right = true;

    raftd_messages_init(&whole);
    raftd_messages_init(&parts);
    (void)raftd_messages_check(&whole, m.line, m.n);
    for (size_t at = 0; at < m.n; at += piece)
        is_right = raftd_messages_check(&parts, m.line + at,
                                        piece < m.n - at ? piece : m.n - at);
    fuzz_must(is_right == !whole.is_wrong && parts.is_wrong == whole.is_wrong);
    if (is_right) {
        unsigned count = take_line(m.line, m.n);

        fuzz_must(parts.n == whole.n && parts.left == whole.left);
        fuzz_must(count == ENTRIES + 1 || size != 0);
    }
    fuzz_must(is_right || size != 0);
}

const struct fuzz_target fuzz_group_targets[] = {{"message", run_message}, {NULL, NULL}};
