/* SPDX-License-Identifier: MIT */
/*
 * disk.c -- see disk.h.
 */
#include <config.h>

#include "disk.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "disk_state.h"
#include "env.h"

#define LOG_PREFIX "xac-log"

const char *const disk_kind_name[DISK_KINDS] = {
    "all",          "none",       "prefix",     "no data", "no names", "one file old",
    "one file new", "sector old", "sector new", "random",  "garbage"};

/* A change that is not durable. */
struct change {
    const struct record_event *ev;
    uint64_t position;
    uint64_t from, to; /* bytes that change; equal if none                             */
    uint64_t size;     /* of the file afterwards                                       */
    bool is_doomed;    /* a sync of it failed: rule 5                                  */
    uint8_t *is_settled; /* by sector from `from` on: written again and synced; or NULL */
    unsigned names_settled; /* OLD_NAME, NEW_NAME: changed again, synced               */
};

#define OLD_NAME 1u /* of a rename                                                      */
#define NEW_NAME 2u

struct inode {
    uint64_t ino;
    bool is_dir, is_log, is_users;
    uint8_t *bytes; /* durable; room bytes, zero from size on                           */
    uint64_t size, room;
    uint64_t newest_size;
    struct names names; /* durable                                                      */
    struct change *change;
    size_t n_changes, changes_room;
    uint64_t hash; /* of the durable bytes, if known                                    */
    bool hash_known;
};

struct disk {
    bool has_atomic_pages;
    uint64_t root;
    uint64_t max_ino;
    struct inode **inode;
    size_t n_inodes;
};

static void *
must_alloc(void *p)
{
    must(p != NULL);
    return p;
}

/* ---- Names ------------------------------------------------------------------------- */

static void
names_remove(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->entry[i].name, name) == 0) {
            names->entry[i] = names->entry[--names->n];
            return;
        }
    }
}

static uint64_t
names_find(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->entry[i].name, name) == 0)
            return names->entry[i].ino;
    }
    return 0;
}

static void
names_set(struct names *names, const char *name, uint64_t ino)
{
    names_remove(names, name);
    must(strlen(name) < NAME_ROOM);
    names->entry = (struct entry *)must_alloc(
        realloc(names->entry, (names->n + 1) * sizeof names->entry[0]));
    memset(&names->entry[names->n], 0, sizeof names->entry[0]);
    strncpy(names->entry[names->n].name, name, NAME_ROOM - 1);
    names->entry[names->n++].ino = ino;
}

static struct names
names_copy(const struct names *from)
{
    struct names to = {.n = from->n};

    if (from->n > 0) {
        to.entry = (struct entry *)must_alloc(malloc(from->n * sizeof to.entry[0]));
        memcpy(to.entry, from->entry, from->n * sizeof to.entry[0]);
    }
    return to;
}

static void
names_remove_ino(struct names *names, uint64_t ino)
{
    for (size_t i = names->n; i > 0; i--) {
        if (names->entry[i - 1].ino == ino)
            names->entry[i - 1] = names->entry[--names->n];
    }
}

/* old_name, new_name -- of an event of a directory, of which only a rename has two. */
static const char *
old_name(const struct record_event *ev)
{
    return (const char *)(ev + 1);
}

static const char *
new_name(const struct record_event *ev)
{
    const char *name = old_name(ev);

    return ev->kind == RECORD_RENAME ? name + strlen(name) + 1 : name;
}

/* names_apply -- an event of a directory.  A rename needs no earlier name: the change that
   gave it may be one of those that are missing.  No name is left to the file but the new
   one, though: files have one link. */
static void
names_apply(struct names *names, const struct change *c)
{
    const char *name = new_name(c->ev);

    if (c->names_settled == (OLD_NAME | NEW_NAME))
        return;
    if (c->ev->kind == RECORD_RENAME) {
        if ((c->names_settled & OLD_NAME) == 0)
            names_remove(names, old_name(c->ev));
        names_remove_ino(names, c->ev->ino2);
    }
    if ((c->names_settled & NEW_NAME) != 0)
        return;
    if (c->ev->kind == RECORD_UNLINK)
        names_remove(names, name);
    else
        names_set(names, name, c->ev->ino2);
}

/* ---- Inodes ------------------------------------------------------------------------ */

static struct inode *
inode_find(const struct disk *d, uint64_t ino)
{
    for (size_t i = d->n_inodes; i > 0; i--) {
        if (d->inode[i - 1]->ino == ino)
            return d->inode[i - 1];
    }
    return NULL;
}

static struct inode *
inode_add(struct disk *d, uint64_t ino, bool is_dir)
{
    struct inode *f = (struct inode *)must_alloc(calloc(1, sizeof *f));

    f->ino = ino;
    f->is_dir = is_dir;
    if (ino > d->max_ino)
        d->max_ino = ino;
    d->inode = (struct inode **)must_alloc(
        realloc(d->inode, (d->n_inodes + 1) * sizeof d->inode[0]));
    d->inode[d->n_inodes++] = f;
    return f;
}

static void
inode_room(struct inode *f, uint64_t size)
{
    uint64_t want = f->room;

    if (size <= f->room)
        return;
    while (want < size)
        want = want == 0 ? 8192 : want * 2;
    f->bytes = (uint8_t *)must_alloc(realloc(f->bytes, want));
    memset(f->bytes + f->room, 0, want - f->room);
    f->room = want;
}

void
disk_set_atomic_pages(struct disk *d, bool is_atomic)
{
    d->has_atomic_pages = is_atomic;
}

struct disk *
disk_new(uint64_t root_ino)
{
    struct disk *d = (struct disk *)must_alloc(calloc(1, sizeof *d));

    d->root = root_ino;
    (void)inode_add(d, root_ino, true);
    return d;
}

void
disk_free(struct disk *d)
{
    for (size_t i = 0; i < d->n_inodes; i++) {
        struct inode *f = d->inode[i];

        for (size_t k = 0; k < f->n_changes; k++)
            free(f->change[k].is_settled);
        free(f->bytes);
        free(f->names.entry);
        free(f->change);
        free(f);
    }
    free(d->inode);
    free(d);
}

/* ---- Following a trace ------------------------------------------------------------- */

static void
add_change(struct inode *f, struct change c)
{
    if (f->n_changes == f->changes_room) {
        f->changes_room = f->changes_room == 0 ? 16 : f->changes_room * 2;
        f->change = (struct change *)must_alloc(
            realloc(f->change, f->changes_room * sizeof f->change[0]));
    }
    f->newest_size = c.size;
    f->change[f->n_changes++] = c;
}

/* change_of -- a write, or a new size: what it does to the bytes. */
static struct change
change_of(const struct inode *f, const struct record_event *ev, uint64_t position)
{
    struct change c = {.ev = ev, .position = position, .size = f->newest_size};

    if (ev->kind == RECORD_WRITE) {
        c.from = ev->offset;
        c.to = ev->offset + ev->len;
        if (c.to > c.size)
            c.size = c.to;
    } else if (ev->kind == RECORD_SIZE) {
        c.size = ev->offset;
        c.from = c.to = ev->offset;
        if (f->newest_size > c.size)
            c.to = f->newest_size; /* zeros from here to the old end */
    }
    return c;
}

/* apply -- the bytes [from, to) of a change. */
static void
apply(uint8_t *bytes, const struct change *c, uint64_t from, uint64_t to)
{
    from = from > c->from ? from : c->from;
    to = to < c->to ? to : c->to;
    if (from >= to)
        return;
    if (c->ev->kind == RECORD_WRITE)
        memcpy(bytes + from, (const uint8_t *)(c->ev + 1) + (from - c->from), to - from);
    else
        memset(bytes + from, 0, to - from);
}

/* settle_doomed -- the sectors of a synced change take along what older, doomed changes
   have left in the page cache. */
static void
settle_doomed(struct inode *f, const struct change *synced)
{
    for (struct change *c = f->change; c < synced; c++) {
        uint64_t first = c->from / DISK_SECTOR;
        uint64_t last = (c->to + DISK_SECTOR - 1) / DISK_SECTOR;

        if (!c->is_doomed || c->from == c->to)
            continue;
        if (c->is_settled == NULL)
            c->is_settled = (uint8_t *)must_alloc(calloc(last - first, 1));
        for (uint64_t s = synced->from / DISK_SECTOR; s * DISK_SECTOR < synced->to; s++) {
            if (s < first || s >= last || c->is_settled[s - first] != 0)
                continue;
            inode_room(f, c->to);
            apply(f->bytes, c, s * DISK_SECTOR, (s + 1) * DISK_SECTOR);
            c->is_settled[s - first] = 1;
        }
    }
}

/* settle_names -- a synced change of a name has the last word on it, and on its file, before older,
   doomed ones. */
static void
settle_names(struct inode *dir, const struct change *synced)
{
    const char *names[] = {old_name(synced->ev), new_name(synced->ev)};

    for (struct change *c = dir->change; c < synced; c++) {
        if (!c->is_doomed)
            continue;
        for (int i = 0; i < 2; i++) {
            if (strcmp(old_name(c->ev), names[i]) == 0)
                c->names_settled |= OLD_NAME;
            if (strcmp(new_name(c->ev), names[i]) == 0)
                c->names_settled |= NEW_NAME;
        }
        if (synced->ev->ino2 != 0 && synced->ev->ino2 == c->ev->ino2)
            c->names_settled = OLD_NAME | NEW_NAME;
    }
}

/* make_durable -- changes before a position, but for those whose sync has failed. */
static void
make_durable(struct inode *f, uint64_t before)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->n_changes; i++) {
        struct change *c = &f->change[i];

        if (c->position >= before || c->is_doomed)
            continue;
        if (f->is_dir) {
            settle_names(f, c);
            names_apply(&f->names, c);
            continue;
        }
        settle_doomed(f, c);
        inode_room(f, c->to > c->size ? c->to : c->size);
        apply(f->bytes, c, c->from, c->to);
        f->size = c->size;
        f->hash_known = false;
    }
    for (size_t i = 0; i < f->n_changes; i++) {
        if (f->change[i].position >= before || f->change[i].is_doomed)
            f->change[kept++] = f->change[i];
    }
    f->n_changes = kept;
}

static void
doom(struct inode *f, uint64_t before)
{
    for (size_t i = 0; i < f->n_changes; i++)
        f->change[i].is_doomed |= f->change[i].position < before;
}

/* note_name -- a new name may make a file a log segment, or one of the user's. */
static void
note_name(const struct disk *d, uint64_t ino, const char *name)
{
    inode_find(d, ino)->is_users = strncmp(name, "xac", 3) != 0;
    if (strncmp(name, LOG_PREFIX, strlen(LOG_PREFIX)) == 0)
        inode_find(d, ino)->is_log = true;
}

/* newest_ino -- what a name in a directory stands for, pending changes included. */
static uint64_t
newest_ino(const struct inode *dir, const char *name)
{
    struct names names = names_copy(&dir->names);
    uint64_t ino;

    for (size_t i = 0; i < dir->n_changes; i++)
        names_apply(&names, &dir->change[i]);
    ino = names_find(&names, name);
    free(names.entry);
    return ino;
}

void
disk_follow(struct disk *d, const struct record_event *ev, uint64_t position)
{
    struct inode *f = ev->kind == RECORD_NOTE ? NULL : inode_find(d, ev->ino);
    const char *name = (const char *)(ev + 1);

    if (f == NULL)
        return;
    switch ((enum record_kind)ev->kind) {
    case RECORD_CREATE:
    case RECORD_MKDIR:
        (void)inode_add(d, ev->ino2, ev->kind == RECORD_MKDIR);
        note_name(d, ev->ino2, name);
        add_change(f, (struct change){.ev = ev, .position = position});
        break;
    case RECORD_RENAME:
        must(ev->ino2 == newest_ino(f, name));
        note_name(d, ev->ino2, name + strlen(name) + 1);
        add_change(f, (struct change){.ev = ev, .position = position});
        break;
    case RECORD_UNLINK:
        add_change(f, (struct change){.ev = ev, .position = position});
        break;
    case RECORD_WRITE:
    case RECORD_SIZE:
        add_change(f, change_of(f, ev, position));
        break;
    case RECORD_SYNC_END:
        make_durable(f, ev->offset);
        break;
    case RECORD_SYNC_FAIL:
        doom(f, ev->offset);
        break;
    case RECORD_SYNC_BEGIN:
    case RECORD_NOTE:
        break;
    }
}

uint64_t
disk_pending(const struct disk *d)
{
    uint64_t n = 0;

    for (size_t i = 0; i < d->n_inodes; i++)
        n += d->inode[i]->n_changes;
    return n;
}

/* ---- Crash states ------------------------------------------------------------------ */

/* What is chosen for one state. */
struct choice {
    enum disk_kind kind;
    uint64_t seed;
    uint64_t ino;      /* of the one file, or of the one sector                         */
    uint64_t sector;   /* number in the file                                            */
    uint64_t position; /* prefix: up to here                                            */
    uint64_t odds;     /* of 16 that a change is there                                  */
};

/* sectors_of -- how many sectors a change concerns. */
static uint64_t
sectors_of(const struct change *c)
{
    return c->to == c->from
               ? 0
               : (c->to + DISK_SECTOR - 1) / DISK_SECTOR - c->from / DISK_SECTOR;
}

/* is_atomic -- are the file's pages never torn? */
static bool
is_atomic(const struct disk *d, const struct inode *f)
{
    return d->has_atomic_pages && f->is_users;
}

/* choose_sector -- one that has a pending write and may be torn; ret false if there is none. */
static bool
choose_sector(const struct disk *d, struct choice *ch)
{
    uint64_t n = 0, at;

    for (size_t i = 0; i < d->n_inodes; i++) {
        for (size_t k = 0; k < d->inode[i]->n_changes && !is_atomic(d, d->inode[i]); k++)
            n += sectors_of(&d->inode[i]->change[k]);
    }
    if (n == 0)
        return false;
    at = rnd_below(&ch->seed, n);
    for (size_t i = 0; i < d->n_inodes; i++) {
        if (is_atomic(d, d->inode[i]))
            continue;
        for (size_t k = 0; k < d->inode[i]->n_changes; k++) {
            const struct change *c = &d->inode[i]->change[k];

            if (at < sectors_of(c)) {
                ch->ino = d->inode[i]->ino;
                ch->sector = c->from / DISK_SECTOR + at;
                ch->position = c->position;
                return true;
            }
            at -= sectors_of(c);
        }
    }
    return false;
}

/* choose_change -- any pending change: its file, and its position. */
static bool
choose_change(const struct disk *d, struct choice *ch)
{
    uint64_t n = disk_pending(d), at;

    if (n == 0)
        return false;
    at = rnd_below(&ch->seed, n);
    for (size_t i = 0; i < d->n_inodes; i++) {
        if (at < d->inode[i]->n_changes) {
            ch->ino = d->inode[i]->ino;
            ch->position = d->inode[i]->change[at].position;
            return true;
        }
        at -= d->inode[i]->n_changes;
    }
    return false;
}

static bool
coin(struct choice *ch)
{
    return rnd_below(&ch->seed, 16) < ch->odds;
}

/* takes_bytes -- whether a sector has this change, if it has all before. */
static bool
takes_bytes(struct choice *ch, const struct inode *f, const struct change *c,
            uint64_t sector)
{
    bool is_it = f->ino == ch->ino && sector == ch->sector;

    switch (ch->kind) {
    case DISK_DROP:
    case DISK_NO_DATA:
        return false;
    case DISK_PREFIX:
        return c->position <= ch->position;
    case DISK_FILE_OLD:
        return f->ino != ch->ino;
    case DISK_FILE_NEW:
        return f->ino == ch->ino;
    case DISK_SECTOR_OLD:
        return !is_it || c->position < ch->position;
    case DISK_SECTOR_NEW:
        return is_it;
    case DISK_RANDOM:
    case DISK_GARBAGE:
        return coin(ch);
    default:
        return true;
    }
}

/* takes_change -- whether a change of size or of a name is there. */
static bool
takes_change(struct choice *ch, const struct inode *f, const struct change *c)
{
    switch (ch->kind) {
    case DISK_DROP:
    case DISK_NO_NAMES:
        return false;
    case DISK_PREFIX:
        return c->position <= ch->position;
    case DISK_FILE_OLD:
        return f->ino != ch->ino;
    case DISK_FILE_NEW:
        return f->ino == ch->ino;
    case DISK_RANDOM:
    case DISK_GARBAGE:
        return coin(ch);
    default:
        return true;
    }
}

/* mix -- the bytes of a file with pending changes: rule 1; `unit` sectors at a multiple of
   that share one fate. */
static void
mix(struct file *to, const struct inode *f, struct choice *ch, uint64_t room,
    uint64_t unit)
{
    bool is_taken = false;
    uint8_t *is_stopped = (uint8_t *)must_alloc(calloc(room / DISK_SECTOR + 1, 1));

    for (size_t k = 0; k < f->n_changes; k++) {
        const struct change *c = &f->change[k];
        uint64_t first = c->from / DISK_SECTOR;

        for (uint64_t s = first; s < first + sectors_of(c); s++) {
            if (c->is_settled != NULL && c->is_settled[s - first] != 0)
                continue;
            if (s == first || s % unit == 0)
                is_taken = is_stopped[s] == 0 && takes_bytes(ch, f, c, s);
            if (is_taken)
                apply(to->bytes, c, s * DISK_SECTOR, (s + 1) * DISK_SECTOR);
            else
                is_stopped[s] = 1;
        }
    }
    free(is_stopped);
}

/* spoil -- rule 4. */
static void
spoil(struct file *to, const struct inode *f, struct choice *ch, uint64_t room)
{
    uint64_t from = ch->sector * DISK_SECTOR;
    uint64_t end = from + DISK_SECTOR < room ? from + DISK_SECTOR : room;
    uint8_t *newest = (uint8_t *)must_alloc(calloc(room, 1));

    if (f->size > 0)
        memcpy(newest, f->bytes, f->size);
    for (size_t k = 0; k < f->n_changes; k++)
        apply(newest, &f->change[k], 0, room);
    for (uint64_t i = from; i < end; i++) {
        uint8_t was = i < f->size ? f->bytes[i] : 0;

        if (!f->is_log || was != newest[i])
            to->bytes[i] = (uint8_t)rnd_next(&ch->seed);
    }
    free(newest);
}

/* crash_file -- bytes and size. */
static void
crash_file(struct file *to, const struct inode *f, struct choice *ch,
           const struct choice *garbage, uint64_t unit)
{
    uint64_t room = f->size;
    bool is_taken = true;

    to->bytes = f->bytes;
    to->size = f->size;
    if (f->n_changes == 0)
        return;
    for (size_t k = 0; k < f->n_changes; k++) {
        const struct change *c = &f->change[k];

        room = c->size > room ? c->size : room;
        room = c->to > room ? c->to : room;
        if (c->size != (k == 0 ? f->size : f->change[k - 1].size))
            is_taken = is_taken && takes_change(ch, f, c);
        if (is_taken)
            to->size = c->size;
    }
    to->bytes = (uint8_t *)must_alloc(calloc(room + 1, 1));
    to->is_owned = true;
    if (f->size > 0)
        memcpy(to->bytes, f->bytes, f->size);
    mix(to, f, ch, room, unit);
    if (ch->kind == DISK_GARBAGE && f->ino == garbage->ino) {
        struct choice spoiler = *garbage;

        spoil(to, f, &spoiler, room);
    }
}

/* crash_dir -- rule 3. */
static void
crash_dir(struct file *to, const struct inode *f, struct choice *ch)
{
    to->names = names_copy(&f->names);
    for (size_t k = 0; k < f->n_changes; k++) {
        if (takes_change(ch, f, &f->change[k]))
            names_apply(&to->names, &f->change[k]);
    }
}

struct disk_state *
disk_crash(const struct disk *d, enum disk_kind kind, uint64_t seed)
{
    static const uint64_t odds[] = {2, 8, 14, 15};
    struct choice ch = {.kind = kind, .seed = seed * DISK_KINDS + kind};
    struct choice garbage;
    struct disk_state *s;
    bool is_there = true;

    ch.odds = odds[rnd_below(&ch.seed, 4)];
    if (kind == DISK_PREFIX || kind == DISK_FILE_OLD || kind == DISK_FILE_NEW)
        is_there = choose_change(d, &ch);
    else if (kind == DISK_SECTOR_OLD || kind == DISK_SECTOR_NEW || kind == DISK_GARBAGE)
        is_there = choose_sector(d, &ch);
    if (!is_there)
        return NULL;
    garbage = ch;
    s = (struct disk_state *)must_alloc(calloc(1, sizeof *s));
    s->root = d->root;
    s->max_ino = d->max_ino;
    s->n_files = d->n_inodes;
    s->file = (struct file *)must_alloc(calloc(s->n_files, sizeof s->file[0]));
    for (size_t i = 0; i < s->n_files; i++) {
        struct inode *f = d->inode[i];
        struct file *to = &s->file[i];

        to->ino = f->ino;
        to->is_dir = f->is_dir;
        to->is_log = f->is_log;
        to->is_users = f->is_users;
        if (f->is_dir) {
            crash_dir(to, f, &ch);
            continue;
        }
        crash_file(to, f, &ch, &garbage, is_atomic(d, f) ? env_page() / DISK_SECTOR : 1);
        if (!to->is_owned && !f->hash_known) {
            f->hash = XXH3_64bits(to->bytes, to->size);
            f->hash_known = true;
        }
        to->hash = to->is_owned ? XXH3_64bits(to->bytes, to->size) : f->hash;
    }
    return s;
}

void
disk_state_free(struct disk_state *s)
{
    for (size_t i = 0; i < s->n_files; i++) {
        if (s->file[i].is_owned)
            free(s->file[i].bytes);
        free(s->file[i].names.entry);
    }
    free(s->file);
    free(s);
}

void
disk_state_detach(struct disk_state *s)
{
    for (size_t i = 0; i < s->n_files; i++) {
        struct file *f = &s->file[i];
        uint8_t *copy;

        if (f->is_dir || f->is_owned)
            continue;
        copy = (uint8_t *)must_alloc(malloc(f->size + 1));
        if (f->size > 0)
            memcpy(copy, f->bytes, f->size);
        f->bytes = copy;
        f->is_owned = true;
    }
}

const struct file *
disk_state_find(const struct disk_state *s, uint64_t ino)
{
    for (size_t i = 0; i < s->n_files; i++) {
        if (s->file[i].ino == ino)
            return &s->file[i];
    }
    return NULL;
}

static uint64_t
hash_dir(const struct disk_state *s, const struct file *dir)
{
    uint64_t sum = dir->names.n; /* a sum: the order of the names does not matter */

    for (size_t i = 0; i < dir->names.n; i++) {
        const struct entry *e = &dir->names.entry[i];
        const struct file *f = disk_state_find(s, e->ino);
        uint64_t part[3] = {XXH3_64bits(e->name, strlen(e->name)), f->size,
                            f->is_dir ? hash_dir(s, f) : f->hash};

        sum += XXH3_64bits(part, sizeof part);
    }
    return sum;
}

uint64_t
disk_state_hash(const struct disk_state *s)
{
    return hash_dir(s, disk_state_find(s, s->root));
}

/* ---- Other disks -------------------------------------------------------------------- */

/* copy_below -- a directory of a state and all in it become durable. */
static void
copy_below(struct disk *d, struct inode *to, const struct disk_state *s,
           const struct file *dir)
{
    to->names = names_copy(&dir->names);
    for (size_t i = 0; i < dir->names.n; i++) {
        const struct file *f = disk_state_find(s, dir->names.entry[i].ino);
        struct inode *copy = inode_add(d, f->ino, f->is_dir);

        copy->is_log = f->is_log;
        copy->is_users = f->is_users;
        if (f->is_dir) {
            copy_below(d, copy, s, f);
            continue;
        }
        inode_room(copy, f->size);
        if (f->size > 0)
            memcpy(copy->bytes, f->bytes, f->size);
        copy->size = copy->newest_size = f->size;
    }
}

struct disk *
disk_of_state(const struct disk_state *s)
{
    struct disk *d = disk_new(s->root);

    d->max_ino = s->max_ino;
    copy_below(d, d->inode[0], s, disk_state_find(s, s->root));
    return d;
}
