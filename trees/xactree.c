/* SPDX-License-Identifier: MIT */
/*
 * xactree.c -- entries, ranges and cursors of libxactree; see include/xactree.h.
 */
#include <config.h>

#include "xactree_handle.h"

#include <stdlib.h>

/* A cursor does not know its handle's lifetime; the caller does. */
struct xactree_cursor {
    struct xactree *tree;
    struct vtree_cursor at;
};

/* Arguments of a call, for the body that runs inside its transaction. */
struct call {
    const void *key;
    size_t key_len;
    const void *value;
    size_t value_len;
    int mode;
    void *out;    /* get                                                 */
    size_t room;  /* of out, bytes                                       */
    size_t *lenp; /* get                                                 */
    struct vtree_bytes from, to;
    bool has_from, has_to;
    xactree_visit *visit;    /* scan                                                */
    xactree_source *source;  /* load                                                */
    void *arg;               /* of these                                            */
    unsigned percent;        /* load                                                */
    uint64_t count;          /* what was counted, deleted or loaded                 */
    struct vtree_cursor *at; /* moves                                               */
    int (*move)(struct vtree_cursor *c);
};

/* Say in words what a map's code means.  ret rc */
static int
explain(const struct xactree *t, int rc)
{
    if (rc == ENOSPC)
        return xactree_err(rc, "the tree has no block left in its %zu bytes", t->length);
    if (rc == ENOMEM)
        return xactree_err(rc, "no memory");
    return rc;
}

/* ---- Arguments --------------------------------------------------------------------- */

static int
bytes_refuse(const struct xactree *t, const char *what, const void *data, size_t len,
             size_t most)
{
    if (t == NULL)
        return xactree_err(EINVAL, "no tree");
    if (data == NULL && len > 0)
        return xactree_err(EINVAL, "%s: NULL with a length of %zu", what, len);
    if (len > most)
        return xactree_err(EINVAL, "%s: %zu bytes, at most %zu", what, len, most);
    return 0;
}

static int
key_refuse(const struct xactree *t, const void *key, size_t key_len)
{
    return bytes_refuse(t, "key", key, key_len, t != NULL ? t->v.key_max : 0);
}

/* ---- Entries ----------------------------------------------------------------------- */

static int
put_body(struct xactree *t, void *arg)
{
    const struct call *c = arg;

    return explain(t, vtree_insert(&t->v, c->key, c->key_len, c->value, c->value_len,
                                   c->mode));
}

int
xactree_put(struct xactree *t, const void *key, size_t key_len, const void *value,
            size_t value_len, int mode)
{
    struct call c = {key, key_len, value, value_len, mode, .arg = NULL};
    int rc = key_refuse(t, key, key_len);

    if (rc == 0)
        rc = bytes_refuse(t, "value", value, value_len, XACTREE_VALUE_MAX);
    if (rc == 0 && (mode < XACTREE_PUT || mode > XACTREE_REPLACE))
        rc = xactree_err(EINVAL, "mode %d", mode);
    return rc != 0 ? rc : xactree_update(t, put_body, &c);
}

static int
get_body(struct xactree *t, void *arg)
{
    const struct call *c = arg;

    return vtree_get(&t->v, c->key, c->key_len, c->out, c->room, c->lenp);
}

int
xactree_get(struct xactree *t, const void *key, size_t key_len, void *value, size_t room,
            size_t *value_lenp)
{
    struct call c = {
        .key = key, .key_len = key_len, .out = value, .room = room, .lenp = value_lenp};
    int rc = key_refuse(t, key, key_len);

    if (rc == 0)
        rc = bytes_refuse(t, "value", value, room, SIZE_MAX);
    return rc != 0 ? rc : xactree_query(t, get_body, &c);
}

static int
delete_body(struct xactree *t, void *arg)
{
    const struct call *c = arg;

    return vtree_delete(&t->v, c->key, c->key_len);
}

int
xactree_delete(struct xactree *t, const void *key, size_t key_len)
{
    struct call c = {.key = key, .key_len = key_len};
    int rc = key_refuse(t, key, key_len);

    return rc != 0 ? rc : xactree_update(t, delete_body, &c);
}

/* ---- Ranges ------------------------------------------------------------------------ */

/* Run a body on the entries with from <= key < to. */
static int
range_run(struct xactree *t, const struct xactree_bytes *from,
          const struct xactree_bytes *to, struct call *c, xactree_body *run,
          int (*how)(struct xactree *t, xactree_body *run, void *arg))
{
    int rc = t == NULL ? xactree_err(EINVAL, "no tree") : 0;

    c->has_from = from != NULL;
    c->has_to = to != NULL;
    if (rc == 0 && from != NULL) {
        rc = key_refuse(t, from->data, from->len);
        c->from = (struct vtree_bytes){from->data, from->len};
    }
    if (rc == 0 && to != NULL) {
        rc = key_refuse(t, to->data, to->len);
        c->to = (struct vtree_bytes){to->data, to->len};
    }
    return rc != 0 ? rc : how(t, run, c);
}

static int
visit_entry(void *arg, const void *key, size_t key_len, const void *value,
            size_t value_len)
{
    const struct call *c = arg;

    return c->visit(c->arg, &(struct xactree_bytes){key, key_len},
                    &(struct xactree_bytes){value, value_len});
}

static int
scan_body(struct xactree *t, void *arg)
{
    struct call *c = arg;

    return vtree_scan(&t->v, c->has_from ? &c->from : NULL, c->has_to ? &c->to : NULL,
                      visit_entry, c);
}

int
xactree_scan(struct xactree *t, const struct xactree_bytes *from,
             const struct xactree_bytes *to, xactree_visit *visit, void *arg)
{
    struct call c = {.visit = visit, .arg = arg};

    if (visit == NULL)
        return xactree_err(EINVAL, "no function to call");
    return range_run(t, from, to, &c, scan_body, xactree_query);
}

static int
count_body(struct xactree *t, void *arg)
{
    struct call *c = arg;

    return vtree_count(&t->v, c->has_from ? &c->from : NULL, c->has_to ? &c->to : NULL,
                       &c->count);
}

int
xactree_count(struct xactree *t, const struct xactree_bytes *from,
              const struct xactree_bytes *to, uint64_t *countp)
{
    struct call c = {.count = 0};
    int rc = countp == NULL ? xactree_err(EINVAL, "no place for the count") : 0;

    if (rc == 0)
        rc = range_run(t, from, to, &c, count_body, xactree_query);
    if (rc == 0)
        *countp = c.count;
    return rc;
}

/* Is a key less than another? */
static bool
is_less(const struct vtree_bytes *a, const struct vtree_bytes *b)
{
    size_t both = a->len < b->len ? a->len : b->len;
    int order = both > 0 ? memcmp(a->data, b->data, both) : 0;

    return order != 0 ? order < 0 : a->len < b->len;
}

/* Deletes what a cursor comes to, until it comes to the end of the range. */
static int
delete_range_body(struct xactree *t, void *arg)
{
    struct call *c = arg;
    struct vtree_cursor at = {.v = &t->v};
    struct vtree_bytes key;
    int rc = c->has_from ? vtree_cursor_seek(&at, c->from.data, c->from.len)
                         : vtree_cursor_next(&at);

    for (c->count = 0; rc == 0; c->count++) {
        rc = vtree_cursor_key(&at, &key.data, &key.len);
        if (rc != 0 || (c->has_to && !is_less(&key, &c->to)))
            return rc;
        rc = vtree_delete(&t->v, key.data, key.len);
        if (rc == 0)
            rc = vtree_cursor_next(&at);
    }
    return rc == ENOENT ? 0 : rc;
}

int
xactree_delete_range(struct xactree *t, const struct xactree_bytes *from,
                     const struct xactree_bytes *to, uint64_t *countp)
{
    struct call c = {.count = 0};
    int rc = range_run(t, from, to, &c, delete_range_body, xactree_update);

    if (countp != NULL && rc == 0)
        *countp = c.count;
    return rc;
}

/* ---- Bulk load --------------------------------------------------------------------- */

static bool
source_entry(void *arg, uint64_t i, struct vtree_bytes *keyp, struct vtree_bytes *valuep)
{
    const struct call *c = arg;
    struct xactree_bytes key = {NULL, 0}, value = {NULL, 0};

    if (c->source(c->arg, i, &key, &value) == 0)
        return false;
    *keyp = (struct vtree_bytes){key.data, key.len};
    *valuep = (struct vtree_bytes){value.data, value.len};
    return true;
}

static int
load_body(struct xactree *t, void *arg)
{
    struct call *c = arg;
    int rc = vtree_load(&t->v, source_entry, c, c->percent, &c->count);

    if (rc == EINVAL)
        return xactree_err(
            rc,
            "entry %llu: key or value is too long, or the key is not above the one before",
            (unsigned long long)c->count);
    return explain(t, rc);
}

int
xactree_load(struct xactree *t, xactree_source *source, void *arg, unsigned percent,
             uint64_t *countp)
{
    struct call c = {.source = source, .arg = arg, .percent = percent};
    int rc = 0;

    if (t == NULL || source == NULL)
        rc = xactree_err(EINVAL, "no tree, or no function to call");
    else if (percent < 50 || percent > 100)
        rc = xactree_err(EINVAL, "percent %u, not 50 to 100", percent);
    if (rc == 0)
        rc = xactree_update(t, load_body, &c);
    if (countp != NULL)
        *countp = c.count;
    return rc;
}

/* ---- Cursors ----------------------------------------------------------------------- */

int
xactree_cursor_open(struct xactree_cursor **cursorp, struct xactree *t)
{
    struct xactree_cursor *cursor;

    if (cursorp == NULL || t == NULL)
        return xactree_err(EINVAL, "no tree, or no place for the cursor");
    cursor = calloc(1, sizeof *cursor);
    if (cursor == NULL)
        return xactree_err(ENOMEM, "no memory for a cursor");
    cursor->tree = t;
    cursor->at.v = &t->v;
    *cursorp = cursor;
    return 0;
}

void
xactree_cursor_close(struct xactree_cursor *cursor)
{
    free(cursor);
}

static int
move_body(struct xactree *t, void *arg)
{
    const struct call *c = arg;

    (void)t;
    return c->move(c->at);
}

static int
seek_body(struct xactree *t, void *arg)
{
    const struct call *c = arg;

    (void)t;
    return vtree_cursor_seek(c->at, c->key, c->key_len);
}

/* Move to a neighbour; `is_fresh`: of nowhere. */
static int
cursor_move(struct xactree_cursor *cursor, int (*move)(struct vtree_cursor *c),
            bool is_fresh)
{
    struct vtree_cursor fresh;
    struct call c = {.move = move};
    int rc;

    if (cursor == NULL)
        return xactree_err(EINVAL, "no cursor");
    fresh = (struct vtree_cursor){.v = cursor->at.v};
    c.at = is_fresh ? &fresh : &cursor->at;
    rc = xactree_query(cursor->tree, move_body, &c);
    if (rc == 0 && is_fresh)
        cursor->at = fresh;
    return rc;
}

int
xactree_cursor_first(struct xactree_cursor *cursor)
{
    return cursor_move(cursor, vtree_cursor_next, true);
}

int
xactree_cursor_last(struct xactree_cursor *cursor)
{
    return cursor_move(cursor, vtree_cursor_prev, true);
}

int
xactree_cursor_next(struct xactree_cursor *cursor)
{
    return cursor_move(cursor, vtree_cursor_next, false);
}

int
xactree_cursor_prev(struct xactree_cursor *cursor)
{
    return cursor_move(cursor, vtree_cursor_prev, false);
}

int
xactree_cursor_seek(struct xactree_cursor *cursor, const void *key, size_t key_len)
{
    struct call c = {.key = key, .key_len = key_len};
    int rc;

    if (cursor == NULL)
        return xactree_err(EINVAL, "no cursor");
    rc = key_refuse(cursor->tree, key, key_len);
    c.at = &cursor->at;
    return rc != 0 ? rc : xactree_query(cursor->tree, seek_body, &c);
}

int
xactree_cursor_key(const struct xactree_cursor *cursor, struct xactree_bytes *key)
{
    if (cursor == NULL || key == NULL)
        return xactree_err(EINVAL, "no cursor, or no place for the key");
    return vtree_cursor_key(&cursor->at, &key->data, &key->len);
}

int
xactree_cursor_value(struct xactree_cursor *cursor, void *value, size_t room,
                     size_t *value_lenp)
{
    struct xactree_bytes key;
    int rc = xactree_cursor_key(cursor, &key);

    if (rc != 0)
        return rc;
    return xactree_get(cursor->tree, key.data, key.len, value, room, value_lenp);
}
