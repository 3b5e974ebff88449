/* SPDX-License-Identifier: MIT */
/*
 * raftd_intake.c -- see raftd_intake.h.
 */
#include <config.h>

#include "raftd_intake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/annot.h"
#include "base/err.h"
#include "raftd_net_format.h"

/* Each time that the leader loses track of a node takes two (6). */
#define LET_GO_MOST 8

struct raftd_held {
    struct raftd_held *next;
    struct raft_message m;
    size_t bytes; /* of its entries                                                    */
    char address[RAFTD_ADDRESS_BYTES]; /* of m                                         */
};

/* ---- Entries ------------------------------------------------------------------------ */

/* drop_entries -- of a message that libraft does not get. */
static void
drop_entries(struct raft_append_entries *a)
{
    if (a->n_entries > 0) {
        raft_free(a->entries[0].batch);
        raft_free(a->entries);
    }
    a->entries = NULL;
    a->n_entries = 0;
}

/* bytes_of -- n entries. */
static size_t
bytes_of(const struct raft_entry *entry, unsigned n)
{
    size_t bytes = 0;

    xac_assert(n > 0);
    for (unsigned i = 0; i < n; i++)
        bytes += entry[i].buf.len;
    return bytes;
}

/* n_before_file -- so many entries stand before the next one with which a file begins (5). */
static unsigned
n_before_file(const struct raft_append_entries *a)
{
    xac_assert(a->n_entries > 0);
    for (unsigned i = 1; i < a->n_entries; i++) {
        if (a->entries[i].type == RAFT_COMMAND
            && raftd_entry_begins_file(a->entries[i].buf.base, a->entries[i].buf.len))
            return i;
    }
    return a->n_entries;
}

/* copy_entries -- the first n, as libraft takes them: all bytes in one piece of memory; ret NULL: none. */
static struct raft_entry *
copy_entries(const struct raft_entry *from, unsigned n)
{
    struct raft_entry *entry = (struct raft_entry *)raft_malloc(n * sizeof *entry);
    uint8_t *at = (uint8_t *)raft_malloc(bytes_of(from, n));
    void *batch = at;

    if (entry == NULL || at == NULL) {
        raft_free(entry);
        raft_free(at);
        return NULL;
    }
    memcpy(entry, from, n * sizeof *entry);
    for (unsigned i = 0; i < n; i++) {
        memcpy(at, from[i].buf.base, from[i].buf.len);
        entry[i].buf.base = at;
        entry[i].batch = batch;
        at += from[i].buf.len;
    }
    return entry;
}

/* split -- the first n entries of a message leave it, as a message of their own; ret false: no memory. */
static bool
split(struct raft_message *m, unsigned n, struct raft_message *out)
{
    struct raft_append_entries *a = &m->append_entries;
    struct raft_entry *entry = copy_entries(a->entries, n);

    xac_assert(n < a->n_entries);
    if (entry == NULL)
        return false;
    *out = *m;
    out->append_entries.entries = entry;
    out->append_entries.n_entries = n;
    a->prev_log_index += n;
    a->prev_log_term = entry[n - 1].term;
    a->n_entries -= n;
    /* The first one has the address of the memory, as each of them. */
    memmove(a->entries, a->entries + n, a->n_entries * sizeof a->entries[0]);
    return true;
}

/* ---- What is held ------------------------------------------------------------------- */

/* unlink_first -- ret it. */
static struct raftd_held *
unlink_first(struct raftd_intake *in)
{
    struct raftd_held *h = in->first;

    xac_assert(h != NULL);
    in->first = h->next;
    if (in->first == NULL)
        in->last = &in->first;
    in->bytes -= h->bytes;
    in->n -= h->m.append_entries.n_entries;
    return h;
}

/* drop_all -- they are of no more use, or come again. */
static void
drop_all(struct raftd_intake *in)
{
    while (in->first != NULL) {
        struct raftd_held *h = unlink_first(in);

        drop_entries(&h->m.append_entries);
        free(h);
    }
    xac_assert(in->bytes == 0);
    xac_assert(in->n == 0);
}

/* shorten -- the first n entries of a message are dropped; ret false: no memory. */
static bool
shorten(struct raft_append_entries *a, unsigned n)
{
    unsigned left = a->n_entries - n;
    struct raft_entry *entry = copy_entries(a->entries + n, left);
    raft_term term = a->entries[n - 1].term;

    xac_assert(n < a->n_entries);
    if (entry == NULL)
        return false;
    drop_entries(a);
    a->prev_log_index += n;
    a->prev_log_term = term;
    a->entries = entry;
    a->n_entries = left;
    return true;
}

/* is_new -- does the message bring what is not held?  Then it has only that any more. */
static bool
is_new(const struct raftd_intake *in, struct raft_append_entries *a)
{
    if (in->first == NULL || a->prev_log_index >= in->end)
        return true;
    return a->prev_log_index + a->n_entries > in->end
           && shorten(a, (unsigned)(in->end - a->prev_log_index));
}

/* hold -- a message with entries, or drop it (4); ret does it bring what is held already? */
static bool
hold(struct raftd_intake *in, struct raft_message *m)
{
    struct raft_append_entries *a = &m->append_entries;
    bool is_again = in->first != NULL && a->prev_log_index < in->end;
    struct raftd_held *h = NULL;
    size_t bytes = 0;

    if (is_new(in, a)) {
        bytes = bytes_of(a->entries, a->n_entries);
        if (in->first == NULL
            || (in->bytes + bytes <= RAFTD_INTAKE_MOST
                && in->n + a->n_entries <= RAFTD_INTAKE_ENTRIES))
            h = (struct raftd_held *)calloc(1, sizeof *h);
    }
    if (h == NULL) {
        drop_entries(a);
        return is_again;
    }
    h->m = *m;
    h->bytes = bytes;
    (void)snprintf(h->address, sizeof h->address, "%s", m->server_address);
    h->m.server_address = h->address;
    *in->last = h;
    in->last = &h->next;
    in->bytes += bytes;
    in->n += a->n_entries;
    in->end = a->prev_log_index + a->n_entries;
    return is_again;
}

/* let_go -- the first message, or so many of its entries. */
static void
let_go(struct raftd_intake *in, struct raft_io *io, unsigned n)
{
    struct raftd_held *h = in->first;
    struct raft_message m;

    if (n < h->m.append_entries.n_entries && split(&h->m, n, &m)) {
        size_t bytes = bytes_of(m.append_entries.entries, n);

        h->bytes -= bytes;
        in->bytes -= bytes;
        in->n -= n;
        in->recv(io, &m);
        return;
    }
    h = unlink_first(in);
    in->recv(io, &h->m);
    free(h);
}

/* ---- Messages ----------------------------------------------------------------------- */

/* take_snapshot -- (1). */
static void
take_snapshot(struct raftd_intake *in, struct raft_io *io, struct raft_message *m)
{
    const struct raft_buffer *data = &m->install_snapshot.data;
    struct raftd_item item = {.kind = RAFTD_ITEM_BEHIND};
    bool is_known =
        raftd_descriptor_read(data->base, data->len, in->group, &item.snapshot) == 0;

    if (is_known && in->user->has(in->user->arg, &item.snapshot)) {
        in->recv(io, m);
        return;
    }
    /* Lost: the leader sends it again, until the log here reaches so far; also if there is no memory for the item. */
    if (is_known)
        (void)in->user->put(in->user->arg, &item, NULL, 0);
    raft_configuration_close(&m->install_snapshot.conf);
    raft_free(data->base);
}

/* answer -- libraft gets the message without entries (3). */
static void
answer(struct raftd_intake *in, struct raft_io *io, const struct raft_message *m)
{
    const struct raft *raft = (const struct raft *)io->data;
    struct raft_message beat = *m;
    struct raft_append_entries *a = &beat.append_entries;

    a->entries = NULL;
    a->n_entries = 0;
    if (in->first != NULL
        && in->first->m.append_entries.prev_log_index < a->prev_log_index) {
        a->prev_log_index = in->first->m.append_entries.prev_log_index;
        a->prev_log_term = in->first->m.append_entries.prev_log_term;
    }
    if (a->leader_commit > raft->commit_index)
        a->leader_commit = raft->commit_index;
    in->recv(io, &beat);
}

/* is_other -- than those that are held (2). */
static bool
is_other(const struct raftd_intake *in, raft_id node, raft_term term)
{
    return in->first != NULL
           && (in->first->m.server_id != node
               || in->first->m.append_entries.term != term);
}

/* take_entries -- a message that may have some. */
static void
take_entries(struct raftd_intake *in, struct raft_io *io, struct raft_message *m)
{
    struct raft_append_entries *a = &m->append_entries;
    bool has_entries = a->n_entries > 0, is_again = false;
    enum raftd_room room = in->room(in->arg);

    if (is_other(in, m->server_id, a->term))
        drop_all(in);
    if (in->first == NULL
        && (room == RAFTD_ROOM_ALL || (room == RAFTD_ROOM_PART && !has_entries))) {
        in->recv(io, m);
        return;
    }
    if (has_entries)
        is_again = hold(in, m);
    answer(in, io, m);
    if (is_again && in->n_let_go < LET_GO_MOST) { /* (6) */
        in->n_let_go++;
        let_go(in, io, 1);
    }
    raftd_intake_look(in, io);
}

void
raftd_intake_take(struct raftd_intake *in, struct raft_io *io, struct raft_message *m)
{
    const struct raft *raft = (const struct raft *)io->data;

    if (m->type == RAFT_INSTALL_SNAPSHOT)
        take_snapshot(in, io, m);
    else if (m->type == RAFT_APPEND_ENTRIES
             && m->append_entries.term >= raft->current_term)
        take_entries(in, io, m);
    else
        in->recv(io, m);
}

void
raftd_intake_look(struct raftd_intake *in, struct raft_io *io)
{
    const struct raft *raft = (const struct raft *)io->data;

    if (in->first != NULL && in->first->m.append_entries.term != raft->current_term)
        drop_all(in); /* another node leads, or wants to */
    while (in->first != NULL) {
        const struct raft_append_entries *a = &in->first->m.append_entries;
        enum raftd_room room = in->room(in->arg);

        if (room == RAFTD_ROOM_NONE)
            break;
        in->n_let_go = 0;
        let_go(in, io, room == RAFTD_ROOM_PART ? n_before_file(a) : a->n_entries);
    }
}

/* ---- Life --------------------------------------------------------------------------- */

void
raftd_intake_init(struct raftd_intake *in, const uint8_t *group,
                  const struct raftd_raft_user *user, enum raftd_room (*room)(void *arg),
                  void *arg)
{
    *in = (struct raftd_intake){.user = user, .room = room, .arg = arg, .group = group};
    in->last = &in->first;
}

void
raftd_intake_fini(struct raftd_intake *in)
{
    drop_all(in);
}
