/* SPDX-License-Identifier: MIT */
/*
 * vtree_load.c -- bulk load, and verification of what is above the B+-tree; see vtree.h.
 */
#include <config.h>

#include "vtree_piece.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Bulk load --------------------------------------------------------------------- */

/* The entries of the caller, cut in pieces. */
struct load {
    const struct vtree *v;
    vtree_source *source;
    void *arg;
    unsigned percent;
    unsigned char *piece;     /* room for an entry's value                       */
    struct piece_key key;     /* of the piece handed out last                    */
    struct vtree_bytes bytes; /* value of the entry that is being loaded         */
    uint64_t entry;           /* its number                                      */
    uint32_t pieces, next;    /* of it: their number, and the next one           */
    int rc;                   /* why the source ended early                      */
};

/* The next entry of the caller.  ret whether there is one; l->rc says what was wrong. */
static bool
entry_begin(struct load *l)
{
    struct vtree_bytes key;

    if (!l->source(l->arg, l->entry, &key, &l->bytes))
        return false;
    l->rc = key_set(l->v, &l->key, key.data, key.len);
    if (l->bytes.len > VTREE_VALUE_MAX)
        l->rc = EINVAL;
    l->pieces = pieces_of(l->v, l->bytes.len);
    l->next = 0;
    return l->rc == 0;
}

static bool
piece_source(void *arg, uint64_t i, const void **keyp, const void **valuep)
{
    struct load *l = arg;

    if (i == 0)
        l->pieces = l->next = 0;
    if (i == 0)
        l->entry = 0;
    else if (l->next == l->pieces)
        l->entry++;
    if (l->next == l->pieces && !entry_begin(l)) {
        l->pieces = l->next = 0;
        return false;
    }
    piece_set(l->v, l->key.bytes, l->next);
    piece_fill(l->v, l->piece, l->bytes.data, l->bytes.len, l->next++);
    *keyp = l->key.bytes;
    *valuep = l->piece;
    return true;
}

/* An entry that was not loaded to its end is taken back: its last piece found no room. */
static int
load_body(void *vtree, struct tree_request *r)
{
    struct vtree *v = vtree;
    struct load *l = r->arg;
    int rc, rc2;

    l->rc = 0;
    rc = btree_load(&v->tree, piece_source, l, l->percent, NULL);
    if (rc == 0)
        return l->rc;
    if (l->next <= 1)
        return rc;
    rc2 = vtree_pieces_delete(v, l->key.bytes, 0, l->next - 1);
    return rc2 != 0 ? rc2 : rc;
}

int
vtree_load(struct vtree *v, vtree_source *source, void *arg, unsigned percent,
           uint64_t *countp)
{
    struct load l = {.v = v, .source = source, .arg = arg, .percent = percent};
    struct tree_request r = {.arg = &l};
    int rc = EINVAL;

    if (percent >= 50 && percent <= 100) {
        l.piece = malloc(v->tree.value_size);
        rc = l.piece == NULL ? ENOMEM : tree_update(load_body, v, &r);
        free(l.piece);
    }
    if (countp != NULL)
        *countp = l.entry;
    return rc;
}

/* ---- Verification ------------------------------------------------------------------ */

struct check {
    const struct vtree *v;
    struct vtree_report *report;
    unsigned char last[BTREE_KEY_MAX]; /* entry's key of the piece before              */
    size_t left;                       /* bytes of the value behind that piece         */
};

static int violation(struct check *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Note the violation in words.  ret EUCLEAN. */
static int
violation(struct check *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->report->tree.text, sizeof c->report->tree.text, fmt, ap);
    va_end(ap);
    return EUCLEAN;
}

/* A key is padded with zero bytes, a last piece too, and the pieces of a value follow each other. */
static int
check_piece(void *arg, const void *entry_key, const void *entry)
{
    struct check *c = arg;
    const struct vtree *v = c->v;
    const unsigned char *key = entry_key;
    const unsigned char *bytes = (const unsigned char *)entry + VTREE_HEAD_SIZE;
    unsigned long long at = c->report->entries;
    size_t len = key_len_of(v, key), left = head_of(entry);
    uint32_t piece = piece_of(v, key);

    if (len > v->key_max)
        return violation(c, "entry %llu: a key of %zu bytes, at most %u", at, len,
                         v->key_max);
    for (size_t i = len; i < v->key_max; i++)
        if (key[i] != 0)
            return violation(c, "entry %llu: byte %zu behind the key is not zero", at, i);
    for (size_t i = left; i < v->piece_size; i++)
        if (bytes[i] != 0)
            return violation(c, "entry %llu: byte %zu behind the value is not zero", at,
                             i);
    if (piece == 0 ? c->left != 0
                   : c->left != left || piece != piece_of(v, c->last) + 1
                         || memcmp(key, c->last, v->key_max + 2) != 0)
        return violation(c, "entry %llu: piece %u does not continue the one before", at,
                         piece);
    if (piece == 0 && left > VTREE_VALUE_MAX)
        return violation(c, "entry %llu: a value of %zu bytes", at, left);
    c->report->entries += piece == 0;
    c->left = left > v->piece_size ? left - v->piece_size : 0;
    memcpy(c->last, key, v->tree.key_size);
    return 0;
}

/* The B+-tree first: what it holds is looked at only if that is sound. */
static int
check_body(void *check, struct tree_request *r)
{
    struct check *c = check;
    struct vtree *v = r->arg;
    int rc;

    c->left = 0;
    c->report->entries = 0;
    rc = btree_check(&v->tree, &c->report->tree);
    if (rc == 0)
        rc = btree_scan(&v->tree, NULL, NULL, check_piece, c);
    if (rc == 0 && c->left != 0)
        rc = violation(c, "the last value lacks %zu bytes", c->left);
    return rc;
}

int
vtree_check(struct vtree *v, struct vtree_report *report)
{
    struct check c = {.v = v, .report = report};
    struct tree_request r = {.arg = v};

    return tree_query(check_body, &c, &r);
}
