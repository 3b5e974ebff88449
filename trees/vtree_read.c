/* SPDX-License-Identifier: MIT */
/*
 * vtree_read.c -- get, scan, count and cursors; see vtree.h.
 */
#include <config.h>

#include "vtree_piece.h"

#include <stdlib.h>

/* ---- One value --------------------------------------------------------------------- */

/* What a get needs beside the tree. */
struct fetch {
    struct piece_key key;
    unsigned char *value; /* where to, or NULL                                        */
    size_t room;          /* of value, bytes                                          */
    size_t len;           /* of the value, bytes                                      */
    size_t at;            /* where the next piece begins in the value                 */
    uint32_t piece_size;  /* bytes                                                    */
};

/* Copy a piece to where the caller wants it. */
static int
piece_get(void *arg, const void *key, const void *entry)
{
    struct fetch *f = arg;
    size_t left = head_of(entry), n = left < f->piece_size ? left : f->piece_size;

    (void)key;
    if (f->at == 0)
        f->len = left;
    if (f->at < f->room) {
        if (n > f->room - f->at)
            n = f->room - f->at;
        if (n > 0)
            memcpy(f->value + f->at, (const unsigned char *)entry + VTREE_HEAD_SIZE, n);
    }
    f->at += f->piece_size;
    return f->at < f->room ? 0 : -1;
}

static int
get_body(void *vtree, struct tree_request *r)
{
    struct vtree *v = vtree;
    struct fetch *f = r->arg;
    struct piece_key end = f->key;
    int rc;

    f->at = 0;
    piece_set(v, end.bytes, VTREE_PIECE_END);
    rc = btree_scan(&v->tree, f->key.bytes, end.bytes, piece_get, f);
    if (rc != 0 && rc != -1)
        return rc;
    return f->at > 0 ? 0 : ENOENT;
}

int
vtree_get(struct vtree *v, const void *key, size_t key_len, void *value, size_t room,
          size_t *value_lenp)
{
    struct fetch f = {.value = value, .room = room, .piece_size = v->piece_size};
    struct tree_request r = {.arg = &f};
    int rc = key_set(v, &f.key, key, key_len);

    if (rc == 0)
        rc = tree_query(get_body, v, &r);
    if (rc == 0 && value_lenp != NULL)
        *value_lenp = f.len;
    return rc;
}

int
vtree_next(struct vtree *v, const void *key, size_t key_len, void *next,
           size_t *next_lenp)
{
    struct piece_key k;
    int rc = 0;

    if (key == NULL) {
        rc = btree_first(&v->tree, k.bytes, NULL);
    } else {
        rc = key_set(v, &k, key, key_len);
        piece_set(v, k.bytes, VTREE_PIECE_END);
        if (rc == 0)
            rc = btree_seek(&v->tree, k.bytes, k.bytes, NULL);
    }
    if (rc != 0)
        return rc;
    *next_lenp = key_len_of(v, k.bytes);
    memcpy(next, k.bytes, *next_lenp);
    return 0;
}

/* ---- Ranges ------------------------------------------------------------------------ */

/* What a scan needs beside the tree. */
struct range {
    struct piece_key from, to;
    const struct vtree *v;
    vtree_visit *visit; /* scan                                                    */
    void *arg;          /* of visit                                                */
    unsigned char
        *buffer;    /* for values of several pieces; NULL as long as there are none */
    size_t room;    /* of buffer, bytes                                        */
    size_t at;      /* where the next piece begins in the value                */
    uint64_t count; /* entries                                                 */
};

/* Make room for a value of several pieces.  ret 0 or ENOMEM. */
static int
buffer_grow(struct range *range, size_t len)
{
    unsigned char *buffer;

    if (len <= range->room)
        return 0;
    buffer = realloc(range->buffer, len);
    if (buffer == NULL)
        return ENOMEM;
    range->buffer = buffer;
    range->room = len;
    return 0;
}

/* Visit an entry of one piece where it lies, one of several when its last piece is there. */
static int
piece_visit(void *arg, const void *entry_key, const void *entry)
{
    struct range *range = arg;
    const struct vtree *v = range->v;
    const unsigned char *key = entry_key;
    const unsigned char *piece = (const unsigned char *)entry + VTREE_HEAD_SIZE;
    size_t left = head_of(entry), n = left < v->piece_size ? left : v->piece_size;
    size_t len = range->at + left;

    if (range->at == 0 && left <= v->piece_size)
        return range->visit(range->arg, key, key_len_of(v, key), piece, left);
    if (buffer_grow(range, len) != 0)
        return ENOMEM;
    memcpy(range->buffer + range->at, piece, n);
    range->at += n;
    if (range->at < len)
        return 0;
    range->at = 0;
    return range->visit(range->arg, key, key_len_of(v, key), range->buffer, len);
}

static int
piece_count(void *arg, const void *key, const void *entry)
{
    struct range *range = arg;

    (void)entry;
    range->count += piece_of(range->v, key) == 0;
    return 0;
}

static int
range_body(void *vtree, struct tree_request *r)
{
    struct vtree *v = vtree;
    struct range *range = r->arg;

    range->at = 0;
    range->count = 0;
    return btree_scan(&v->tree, r->key, r->to, r->visit, range);
}

/* Walk over the pieces of the keys from .. to-1; NULL: no bound. */
static int
range_walk(struct vtree *v, struct range *range, const struct vtree_bytes *from,
           const struct vtree_bytes *to, tree_visit *visit)
{
    struct tree_request r = {.visit = visit, .arg = range};

    range->v = v;
    if ((from != NULL && key_set(v, &range->from, from->data, from->len) != 0)
        || (to != NULL && key_set(v, &range->to, to->data, to->len) != 0))
        return EINVAL;
    r.key = from != NULL ? range->from.bytes : NULL;
    r.to = to != NULL ? range->to.bytes : NULL;
    return tree_query(range_body, v, &r);
}

int
vtree_scan(struct vtree *v, const struct vtree_bytes *from, const struct vtree_bytes *to,
           vtree_visit *visit, void *arg)
{
    struct range range = {.visit = visit, .arg = arg};
    int rc = range_walk(v, &range, from, to, piece_visit);

    free(range.buffer);
    return rc;
}

int
vtree_count(struct vtree *v, const struct vtree_bytes *from, const struct vtree_bytes *to,
            uint64_t *countp)
{
    struct range range = {.count = 0};
    int rc = range_walk(v, &range, from, to, piece_count);

    if (rc == 0)
        *countp = range.count;
    return rc;
}

/* ---- Cursors ----------------------------------------------------------------------- */

static int
seek_body(void *cursor, struct tree_request *r)
{
    struct vtree_cursor *c = cursor;

    return btree_cursor_seek(&c->at, r->key, NULL, NULL);
}

/* The next entry; if that is a piece of the same value, what follows its last piece. */
static int
next_body(void *cursor, struct tree_request *r)
{
    struct vtree_cursor *c = cursor;
    struct piece_key end;
    int rc = btree_cursor_next(&c->at, NULL, NULL);

    (void)r;
    if (rc != 0 || piece_of(c->v, c->at.key) == 0)
        return rc;
    memcpy(end.bytes, c->at.key, c->v->tree.key_size);
    piece_set(c->v, end.bytes, VTREE_PIECE_END);
    rc = btree_cursor_seek(&c->at, end.bytes, NULL, NULL);
    if (rc != 0)
        piece_set(c->v, c->at.key, 0); /* it stays where it was */
    return rc;
}

/* The entry before; that is a last piece, so from there to the first. */
static int
prev_body(void *cursor, struct tree_request *r)
{
    struct vtree_cursor *c = cursor;
    struct piece_key first;
    int rc = btree_cursor_prev(&c->at, NULL, NULL);

    (void)r;
    if (rc != 0 || piece_of(c->v, c->at.key) == 0)
        return rc;
    memcpy(first.bytes, c->at.key, c->v->tree.key_size);
    piece_set(c->v, first.bytes, 0);
    return btree_cursor_seek(&c->at, first.bytes, NULL, NULL);
}

/* Move a cursor, which is private memory: a snapshot that fails leaves it where it was. */
static int
cursor_move(struct vtree_cursor *c, tree_body *body, const unsigned char *key)
{
    struct tree_request r = {.key = key};

    c->at.t = &c->v->tree;
    return tree_query(body, c, &r);
}

int
vtree_cursor_seek(struct vtree_cursor *c, const void *key, size_t key_len)
{
    struct piece_key k;
    int rc = key_set(c->v, &k, key, key_len);

    return rc != 0 ? rc : cursor_move(c, seek_body, k.bytes);
}

int
vtree_cursor_next(struct vtree_cursor *c)
{
    return cursor_move(c, next_body, NULL);
}

int
vtree_cursor_prev(struct vtree_cursor *c)
{
    return cursor_move(c, prev_body, NULL);
}

int
vtree_cursor_key(const struct vtree_cursor *c, const void **keyp, size_t *key_lenp)
{
    if (c->at.block == 0)
        return ENOENT;
    *keyp = c->at.key;
    *key_lenp = key_len_of(c->v, c->at.key);
    return 0;
}
