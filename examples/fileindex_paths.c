/* SPDX-License-Identifier: MIT */
/*
 * fileindex_paths.c -- see fileindex_paths.h.
 */
#include <config.h>

#include "fileindex_paths.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_SIZE (FI_KEY_SIZE - 1)       /* bytes of a key before its kind            */
#define HEAD_SIZE 9u                      /* zero byte and group number                */
#define TAIL_SIZE (TEXT_SIZE - HEAD_SIZE) /* bytes of text in a group's key            */

enum kind {
    ENTRY = 0,
    LINK = 1
};

static_assert(sizeof(struct fi_record) == 64, "records have no gaps");

struct key {
    unsigned char text[TEXT_SIZE];
    unsigned char kind;
};

/* Start a key: of a path (group 0), or of what follows in a group. */
static unsigned
key_begin(struct key *key, uint64_t group)
{
    memset(key, 0, sizeof *key);
    if (group == 0)
        return 0;
    tree_key_u64(group, key->text + 1);
    return HEAD_SIZE;
}

/* Key of the counter of groups. */
static void
key_counter(struct key *key)
{
    memset(key, 0, sizeof *key);
}

/* Put as much of `rest` into a key as fits.  ret bytes taken; fewer than all: a link. */
static size_t
key_fill(struct key *key, uint64_t group, const char *rest)
{
    unsigned head = key_begin(key, group);
    size_t length = strlen(rest), room = TEXT_SIZE - head;
    size_t taken = length < room ? length : room;

    memcpy(key->text + head, rest, taken);
    key->kind = taken < length ? LINK : ENTRY;
    return taken;
}

uint64_t
fi_keys_of(uint64_t length)
{
    return length <= TEXT_SIZE ? 1 : 2 + (length - TEXT_SIZE - 1) / TAIL_SIZE;
}

/* Make a new group, and a link to it.  A caller's abort takes both back. */
static int
group_add(struct btree *t, const struct key *link, uint64_t *groupp)
{
    struct fi_record record = {0};
    struct key counter;
    int rc;

    key_counter(&counter);
    rc = btree_search(t, &counter, &record);
    if (rc != 0 && rc != ENOENT)
        return rc;
    *groupp = ++record.inode;
    rc = btree_insert(t, &counter, &record, TREE_PUT, NULL);
    return rc != 0 ? rc : btree_insert(t, link, &record, TREE_ADD, NULL);
}

int
fi_put(struct btree *t, const char *path, const struct fi_record *record)
{
    uint64_t group = 0;
    struct key key;

    for (;;) {
        struct fi_record link;
        int rc;

        path += key_fill(&key, group, path);
        if (key.kind == ENTRY)
            return btree_insert(t, &key, record, TREE_PUT, NULL);
        rc = btree_search(t, &key, &link);
        group = link.inode;
        if (rc == ENOENT)
            rc = group_add(t, &key, &group);
        if (rc != 0)
            return rc;
    }
}

/* Whether a group has no entry any more.  ret 0, ENOTEMPTY, or another code. */
static int
group_is_empty(struct btree *t, uint64_t group)
{
    struct key from, found;
    int rc;

    (void)key_begin(&from, group);
    rc = btree_seek(t, &from, &found, NULL);
    if (rc == ENOENT)
        return 0;
    if (rc == 0 && memcmp(from.text, found.text, HEAD_SIZE) == 0)
        rc = ENOTEMPTY;
    return rc;
}

/* Take out what follows in a group, then the links to groups that became empty. */
static int
group_remove(struct btree *t, uint64_t group, const char *rest)
{
    struct fi_record link;
    struct key key;
    size_t taken = key_fill(&key, group, rest);
    int rc;

    if (key.kind == ENTRY)
        return btree_delete(t, &key);
    rc = btree_search(t, &key, &link);
    if (rc == 0)
        rc = group_remove(t, link.inode, rest + taken);
    if (rc == 0)
        rc = group_is_empty(t, link.inode);
    if (rc == 0)
        rc = btree_delete(t, &key);
    return rc == ENOTEMPTY ? 0 : rc;
}

int
fi_remove(struct btree *t, const char *path)
{
    return group_remove(t, 0, path);
}

/* ---- Walking ----------------------------------------------------------------------- */

struct walk {
    struct btree *t;
    char *path;       /* of the entry visited, allocated                              */
    size_t room;      /* bytes allocated                                              */
    size_t length;    /* of what the groups on the way have contributed               */
    size_t head;      /* bytes before the text in keys of this group                  */
    const char *from; /* paths less than this are passed over                         */
    fi_visit *visit;
    void *arg;
    struct fi_keys keys;
};

/* Append the text of a key to the path, at the place of its group. */
static int
walk_append(struct walk *w, const struct key *key, size_t *lengthp)
{
    const char *text = (const char *)key->text + w->head;
    size_t n = strnlen(text, TEXT_SIZE - w->head);

    if (w->length + n + 1 > w->room) {
        size_t room = 2 * (w->length + n + 1);
        char *path = realloc(w->path, room);

        if (path == NULL)
            return ENOMEM;
        w->path = path;
        w->room = room;
    }
    memcpy(w->path + w->length, text, n);
    *lengthp = w->length + n;
    w->path[*lengthp] = '\0';
    return 0;
}

static int
walk_entry(void *arg, const void *key_bytes, const void *value)
{
    const struct key *key = key_bytes;
    struct walk *w = arg;
    const size_t outer_length = w->length, outer_head = w->head;
    struct fi_record record;
    struct key from, to;
    size_t length;
    int rc = walk_append(w, key, &length);

    if (rc != 0)
        return rc;
    memcpy(&record, value, sizeof record);
    if (key->kind == ENTRY) {
        if (strcmp(w->path, w->from) < 0)
            return 0;
        w->keys.paths++;
        if (length > w->keys.longest)
            w->keys.longest = length;
        return w->visit != NULL ? w->visit(w->arg, w->path, &record) : 0;
    }
    w->keys.links++;
    w->length = length;
    w->head = HEAD_SIZE;
    (void)key_begin(&from, record.inode);
    (void)key_begin(&to, record.inode + 1);
    rc = btree_scan(w->t, &from, &to, walk_entry, w);
    w->length = outer_length;
    w->head = outer_head;
    return rc;
}

/* All paths from `w->from` on. */
static int
walk_all(struct walk *w)
{
    struct key from;
    int rc;

    /* A link that leads to `from` is where the text of `from` would be, were it cut. */
    (void)key_fill(&from, 0, w->from[0] != '\0' ? w->from : "\1");
    from.kind = ENTRY;
    rc = btree_scan(w->t, &from, NULL, walk_entry, w);
    free(w->path);
    return rc;
}

int
fi_walk(struct btree *t, const char *from, fi_visit *visit, void *arg)
{
    struct walk w = {.t = t, .from = from, .visit = visit, .arg = arg};

    return walk_all(&w);
}

int
fi_count_keys(struct btree *t, struct fi_keys *keys)
{
    struct walk w = {.t = t, .from = ""};
    int rc = walk_all(&w);

    *keys = w.keys;
    return rc;
}
