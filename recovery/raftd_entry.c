/* SPDX-License-Identifier: MIT */
/*
 * raftd_entry.c -- see raftd_entry.h.
 */
#include <config.h>

#include "raftd_entry.h"

#include <inttypes.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "log/group_note.h"
#include "log/log_format.h"
#include "log/log_name.h"
#include "log/recover_next.h"

#define HEAD sizeof(struct xac_raftd_head)

/* ---- Making ------------------------------------------------------------------------- */

size_t
raftd_entry_bytes(size_t n)
{
    xac_assert(n <= XAC_RAFTD_BODY_MAX);
    return HEAD + ((n + 7) & ~(size_t)7);
}

void *
raftd_entry_body(void *entry)
{
    return (uint8_t *)entry + HEAD;
}

void
raftd_entry_seal(void *entry, const struct raftd_entry *e)
{
    uint8_t *body = (uint8_t *)raftd_entry_body(entry);
    struct xac_raftd_head head = {.magic = XAC_RAFTD_MAGIC,
                                  .version = XAC_RAFTD_VERSION,
                                  .kind = (uint16_t)e->kind,
                                  .generation = e->generation,
                                  .length = (uint32_t)e->n,
                                  .lsn = e->lsn,
                                  .body_check = xac_xxh64(body, e->n)};

    xac_assert(e->kind > RAFTD_NONE);
    xac_assert(e->kind < RAFTD_KINDS);
    memset(body + e->n, 0, raftd_entry_bytes(e->n) - HEAD - e->n);
    memcpy(head.nonce, e->nonce, sizeof head.nonce);
    head.head_check = xac_xxh64(&head, offsetof(struct xac_raftd_head, head_check));
    memcpy(entry, &head, sizeof head);
}

/* ---- Reading ------------------------------------------------------------------------ */

/* wrong -- an entry that is not valid. */
static int
wrong(const char *why)
{
    xac_assert(why[0] != '\0');
    return xac_err(XAC_EDAMAGED, "entry of Raft's log: %s", why);
}

/* read_batch -- do blocks of this generation fill the body? */
static int
read_batch(struct raftd_entry *e)
{
    const uint8_t *at = (const uint8_t *)e->body;
    size_t left = e->n;

    e->end = e->lsn;
    if (left == 0)
        return wrong("no log block in it");
    while (left > 0) {
        struct xac_block blk;

        if (left < sizeof blk)
            return wrong("a part of a log block");
        memcpy(&blk, at, sizeof blk);
        if (blk.length < sizeof blk || blk.length % XAC_BLOCK_ALIGN != 0
            || blk.length > left)
            return wrong("a log block of a wrong length");
        if (blk.generation != e->generation || blk.lsn != e->end
            || blk.length > XAC_LSN_LIMIT - blk.lsn)
            return wrong("a log block of another place");
        e->end += blk.length;
        at += blk.length;
        left -= blk.length;
    }
    return 0;
}

/* read_open -- can a generation begin so? */
static int
read_open(const struct raftd_entry *e)
{
    struct xac_raftd_open open;

    if (e->n != sizeof open)
        return wrong("a wrong length");
    memcpy(&open, e->body, sizeof open);
    if (open.start != xac_next_start(e->lsn) || open.node == 0
        || open.segment_bytes < XAC_SEGMENT_HEADER
        || (open.segment_bytes & (open.segment_bytes - 1)) != 0
        || !xac_bytes_are_zero(open.reserved, sizeof open.reserved)
        || xac_bytes_are_zero(e->nonce, sizeof e->nonce))
        return wrong("a generation that no log can have");
    return 0;
}

/* read_piece -- of DATA and NOTE. */
static int
read_piece(const struct raftd_entry *e)
{
    struct xac_raftd_piece head;
    size_t n = e->n - sizeof head;

    if (e->n < sizeof head)
        return wrong("a wrong length");
    memcpy(&head, e->body, sizeof head);
    if (head.offset > UINT64_MAX - n
        || (e->kind == RAFTD_NOTE && head.offset + n > head.what))
        return wrong("a piece of no file");
    return 0;
}

/* read_node -- a number of a node. */
static int
read_node(const struct raftd_entry *e)
{
    struct xac_raftd_node node;

    if (e->n != sizeof node)
        return wrong("a wrong length");
    memcpy(&node, e->body, sizeof node);
    return node.node >= 1 && node.node <= XAC_GROUP_NODE_MAX
                   && xac_bytes_are_zero(node.reserved, sizeof node.reserved)
               ? 0
               : wrong("a number that no node has");
}

/* read_body -- by its kind. */
static int
read_body(struct raftd_entry *e)
{
    xac_assert(e->body != NULL);
    switch (e->kind) {
    case RAFTD_BATCH:
        return read_batch(e);
    case RAFTD_DATA:
    case RAFTD_NOTE:
        return read_piece(e);
    case RAFTD_OPEN:
        return read_open(e);
    case RAFTD_NODE:
        return read_node(e);
    default:
        return wrong("of no kind");
    }
}

int
raftd_entry_read(const void *bytes, size_t n, struct raftd_entry *out)
{
    const uint8_t *body = (const uint8_t *)bytes + HEAD;
    struct xac_raftd_head head;

    if (n < sizeof head)
        return wrong("too short");
    memcpy(&head, bytes, sizeof head);
    if (head.magic != XAC_RAFTD_MAGIC
        || head.head_check
               != xac_xxh64(&head, offsetof(struct xac_raftd_head, head_check)))
        return wrong("not one of xraftd");
    if (head.version != XAC_RAFTD_VERSION)
        return xac_err(XAC_EVERSION, "entry of Raft's log: version %u, this is %u",
                       head.version, XAC_RAFTD_VERSION);
    if (head.length > XAC_RAFTD_BODY_MAX || n != raftd_entry_bytes(head.length)
        || head.reserved != 0 || head.lsn % XAC_BLOCK_ALIGN != 0
        || head.lsn > XAC_LSN_LIMIT || !xac_log_generation_ok(head.generation))
        return wrong("a wrong head");
    if (head.body_check != xac_xxh64(body, head.length))
        return wrong("checksum");
    for (size_t i = head.length; i < n - HEAD; i++) {
        if (body[i] != 0)
            return wrong("something behind it");
    }
    *out = (struct raftd_entry){.kind = (enum raftd_kind)head.kind,
                                .generation = head.generation,
                                .lsn = head.lsn,
                                .body = body,
                                .n = head.length,
                                .end = head.lsn};
    memcpy(out->nonce, head.nonce, sizeof out->nonce);
    return read_body(out);
}

bool
raftd_entry_begins_file(const void *bytes, size_t n)
{
    struct xac_raftd_piece piece;
    struct xac_raftd_head head;

    if (n < HEAD + sizeof piece)
        return false;
    memcpy(&head, bytes, sizeof head);
    memcpy(&piece, (const uint8_t *)bytes + HEAD, sizeof piece);
    return head.magic == XAC_RAFTD_MAGIC
           && (head.kind == RAFTD_DATA || head.kind == RAFTD_NOTE) && piece.offset == 0;
}

/* ---- Accepting ---------------------------------------------------------------------- */

/* accept_open -- the writer changes. */
static bool
accept_open(struct raftd_accepted *a, const struct raftd_entry *e)
{
    struct xac_raftd_open open;

    if (e->generation != a->generation + 1 || e->lsn != a->end) /* (2) */
        return false;
    memcpy(&open, e->body, sizeof open);
    *a = (struct raftd_accepted){.generation = e->generation,
                                 .node = open.node,
                                 .start = open.start,
                                 .end = open.start,
                                 .cut = e->lsn,
                                 .segment_bytes = open.segment_bytes,
                                 .last_node = a->last_node};
    memcpy(a->nonce, e->nonce, sizeof a->nonce);
    xac_assert(a->start >= a->cut);
    return true;
}

/* accept_data -- the next piece, or the first one of a file (4). */
static bool
accept_data(struct raftd_accepted *a, const struct raftd_entry *e)
{
    struct xac_raftd_piece head;

    xac_assert(e->n >= sizeof head);
    memcpy(&head, e->body, sizeof head);
    if (head.offset != 0 && (head.what != a->serial || head.offset != a->data_end))
        return false;
    a->serial = head.what;
    a->data_end = head.offset + (e->n - sizeof head);
    return true;
}

/* accept_node -- (5). */
static bool
accept_node(struct raftd_accepted *a, const struct raftd_entry *e)
{
    struct xac_raftd_node node;

    xac_assert(e->n == sizeof node);
    memcpy(&node, e->body, sizeof node);
    if (node.node > a->last_node)
        a->last_node = node.node;
    return true;
}

bool
raftd_entry_accept(struct raftd_accepted *a, const struct raftd_entry *e)
{
    xac_assert(a->end >= a->start);
    if (e->kind == RAFTD_OPEN)
        return accept_open(a, e);
    if (e->kind == RAFTD_NODE)
        return accept_node(a, e);
    if (a->node == 0 || e->generation != a->generation || e->lsn != a->end
        || memcmp(e->nonce, a->nonce, sizeof a->nonce) != 0) /* (2) */
        return false;
    if (e->kind == RAFTD_DATA)
        return accept_data(a, e);
    if (e->kind == RAFTD_BATCH) {
        a->end = e->end;
        a->serial = a->data_end = 0;
    }
    return true;
}

bool
raftd_accepted_is_in(const struct raftd_accepted *a, uint32_t generation, uint64_t end,
                     bool has_led)
{
    xac_assert(a->end >= a->start);
    if (generation + 1 == a->generation && a->end == a->start)
        return has_led ? end >= a->cut : end == a->cut;
    return generation > a->generation || (generation == a->generation && end >= a->end);
}

/* ---- Snapshots ---------------------------------------------------------------------- */

void
raftd_descriptor_make(const struct raftd_accepted *a,
                      const uint8_t group[XAC_RAFTD_GROUP_BYTES],
                      struct xac_raftd_descriptor *out)
{
    *out = (struct xac_raftd_descriptor){.magic = XAC_RAFTD_SNAPSHOT_MAGIC,
                                         .version = XAC_RAFTD_VERSION,
                                         .generation = a->generation,
                                         .node = a->node,
                                         .start = a->start,
                                         .end = a->end,
                                         .cut = a->cut,
                                         .segment_bytes = a->segment_bytes,
                                         .last_node = (uint32_t)a->last_node,
                                         .serial = a->serial,
                                         .data_end = a->data_end};
    memcpy(out->group, group, sizeof out->group);
    memcpy(out->nonce, a->nonce, sizeof out->nonce);
    xac_assert(a->end >= a->start);
    out->check = xac_xxh64(out, offsetof(struct xac_raftd_descriptor, check));
}

int
raftd_descriptor_read(const void *bytes, size_t n,
                      const uint8_t group[XAC_RAFTD_GROUP_BYTES],
                      struct raftd_accepted *out)
{
    struct xac_raftd_descriptor d;

    if (n != sizeof d)
        return xac_err(XAC_EDAMAGED, "snapshot of Raft: a wrong length");
    memcpy(&d, bytes, sizeof d);
    if (d.magic != XAC_RAFTD_SNAPSHOT_MAGIC
        || d.check != xac_xxh64(&d, offsetof(struct xac_raftd_descriptor, check)))
        return xac_err(XAC_EDAMAGED, "snapshot of Raft: not one of xraftd");
    if (d.version != XAC_RAFTD_VERSION)
        return xac_err(XAC_EVERSION, "snapshot of Raft: version %u, this is %u",
                       d.version, XAC_RAFTD_VERSION);
    if (memcmp(d.group, group, sizeof d.group) != 0)
        return xac_err(XAC_EFOREIGN, "snapshot of Raft: of another group");
    if (d.reserved != 0 || !xac_bytes_are_zero(d.reserved2, sizeof d.reserved2)
        || !xac_log_generation_ok(d.generation) || d.start % XAC_BLOCK_ALIGN != 0
        || d.end % XAC_BLOCK_ALIGN != 0 || d.cut > d.start || d.start > d.end
        || d.end > XAC_LSN_LIMIT || d.segment_bytes < XAC_SEGMENT_HEADER
        || (d.segment_bytes & (d.segment_bytes - 1)) != 0)
        return xac_err(XAC_EDAMAGED, "snapshot of Raft: a log that cannot be");
    *out = (struct raftd_accepted){.generation = d.generation,
                                   .node = d.node,
                                   .start = d.start,
                                   .end = d.end,
                                   .cut = d.cut,
                                   .segment_bytes = d.segment_bytes,
                                   .last_node = d.last_node,
                                   .serial = d.serial,
                                   .data_end = d.data_end};
    memcpy(out->nonce, d.nonce, sizeof out->nonce);
    return 0;
}
