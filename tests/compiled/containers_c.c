/* SPDX-License-Identifier: MIT */
/*
 * containers_c.c -- libbsd's trees and queues, and uthash: see containers.c.
 */
#include <stdbool.h>
#include <string.h>

#include "containers.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#define uthash_malloc(size)  take(size)
#define uthash_free(p, size) give(p)
#define uthash_fatal(text)   stop_at(__FILE__, __LINE__, text)
#ifdef HAVE_UTHASH
# include <uthash.h>
#endif

/* ---- A red-black tree and a splay tree, which stores at each search ---------------------- */

struct leaf {
    RB_ENTRY(leaf) links;
    SPLAY_ENTRY(leaf) splay;
    uint64_t key, value;
    char padding[PADDING];
};

RB_HEAD(leaves, leaf);
SPLAY_HEAD(splay, leaf);

static int
compare(const struct leaf *a, const struct leaf *b)
{
    return a->key < b->key ? -1 : a->key > b->key;
}

RB_PROTOTYPE(leaves, leaf, links, compare)
RB_GENERATE(leaves, leaf, links, compare)
SPLAY_PROTOTYPE(splay, leaf, splay, compare)
SPLAY_GENERATE(splay, leaf, splay, compare)

struct trees {
    struct leaves rb;
    struct splay splay;
};

static void *
trees_make(void)
{
    struct trees *t = (struct trees *)take_apart(sizeof *t);

    RB_INIT(&t->rb);
    SPLAY_INIT(&t->splay);
    return t;
}

static void
trees_insert(void *all, uint64_t key, uint64_t value)
{
    struct trees *t = (struct trees *)all;
    struct leaf *l = (struct leaf *)take(sizeof *l);

    l->key = key;
    l->value = value;
    must(RB_INSERT(leaves, &t->rb, l) == NULL);
    must(SPLAY_INSERT(splay, &t->splay, l) == NULL);
}

static void
trees_erase(void *all, uint64_t key)
{
    struct trees *t = (struct trees *)all;
    struct leaf wanted = {.key = key};
    struct leaf *l = RB_FIND(leaves, &t->rb, &wanted);

    must(l != NULL);
    must(RB_REMOVE(leaves, &t->rb, l) == l);
    must(SPLAY_REMOVE(splay, &t->splay, l) == l);
    give(l);
}

static uint64_t *
trees_find(void *all, uint64_t key)
{
    struct trees *t = (struct trees *)all;
    struct leaf wanted = {.key = key};
    struct leaf *l = RB_FIND(leaves, &t->rb, &wanted);

    must(SPLAY_FIND(splay, &t->splay, &wanted) == l);
    return l != NULL ? &l->value : NULL;
}

/* height -- of a subtree, in black nodes. */
static int
height(const struct leaf *l)
{
    int left, right;

    if (l == NULL)
        return 0;
    left = height(RB_LEFT(l, links));
    right = height(RB_RIGHT(l, links));
    must(left == right);
    if (RB_COLOR(l, links) == RB_BLACK)
        return left + 1;
    must(RB_LEFT(l, links) == NULL || RB_COLOR(RB_LEFT(l, links), links) == RB_BLACK);
    must(RB_RIGHT(l, links) == NULL || RB_COLOR(RB_RIGHT(l, links), links) == RB_BLACK);
    return left;
}

/* count_splay -- nodes of a subtree; its keys must be in order. */
static size_t
count_splay(const struct leaf *l, uint64_t least, uint64_t most)
{
    if (l == NULL)
        return 0;
    must(l->key >= least && l->key <= most);
    return 1 + (l->key > 0 ? count_splay(SPLAY_LEFT(l, splay), least, l->key - 1) : 0)
           + count_splay(SPLAY_RIGHT(l, splay), l->key + 1, most);
}

static void
trees_walk(void *all, tell_element *tell, void *arg)
{
    struct trees *t = (struct trees *)all;
    const struct leaf *last = NULL;
    struct leaf *l;
    size_t n = 0;

    RB_FOREACH(l, leaves, &t->rb)
    {
        must(last == NULL || last->key < l->key);
        last = l;
        n++;
        tell(l->key, l->value, arg);
    }
    (void)height(RB_ROOT(&t->rb));
    must(count_splay(SPLAY_ROOT(&t->splay), 0, UINT64_MAX - 1) == n);
}

/* ---- Queues ------------------------------------------------------------------------------ */

struct link {
    TAILQ_ENTRY(link) tail;
    LIST_ENTRY(link) list;
    uint64_t key, value;
    char padding[PADDING];
};

TAILQ_HEAD(tail, link);
LIST_HEAD(list, link);

struct queues {
    struct tail tail;
    struct list list;
};

static void *
queues_make(void)
{
    struct queues *q = (struct queues *)take_apart(sizeof *q);

    TAILQ_INIT(&q->tail);
    LIST_INIT(&q->list);
    return q;
}

/* Odd keys come first. */
static void
queues_insert(void *all, uint64_t key, uint64_t value)
{
    struct queues *q = (struct queues *)all;
    struct link *l = (struct link *)take(sizeof *l), *after;

    l->key = key;
    l->value = value;
    if (key % 2 == 1)
        TAILQ_INSERT_HEAD(&q->tail, l, tail);
    else
        TAILQ_INSERT_TAIL(&q->tail, l, tail);
    after = TAILQ_NEXT(l, tail);
    if (after != NULL)
        LIST_INSERT_BEFORE(after, l, list);
    else if (TAILQ_FIRST(&q->tail) == l)
        LIST_INSERT_HEAD(&q->list, l, list);
    else
        LIST_INSERT_AFTER(TAILQ_PREV(l, tail, tail), l, list);
}

static struct link *
queues_link(const struct queues *q, uint64_t key)
{
    struct link *l;

    TAILQ_FOREACH(l, &q->tail, tail)
    {
        if (l->key == key)
            return l;
    }
    return NULL;
}

static void
queues_erase(void *all, uint64_t key)
{
    struct queues *q = (struct queues *)all;
    struct link *l = queues_link(q, key);

    must(l != NULL);
    TAILQ_REMOVE(&q->tail, l, tail);
    LIST_REMOVE(l, list);
    give(l);
}

static uint64_t *
queues_find(void *all, uint64_t key)
{
    struct link *l = queues_link((const struct queues *)all, key);

    return l != NULL ? &l->value : NULL;
}

static void
queues_walk(void *all, tell_element *tell, void *arg)
{
    const struct queues *q = (const struct queues *)all;
    struct link *l = LIST_FIRST(&q->list), *m;

    TAILQ_FOREACH(m, &q->tail, tail)
    {
        must(l == m);
        l = LIST_NEXT(l, list);
        tell(m->key, m->value, arg);
    }
    must(l == NULL);
}

/* ---- uthash ------------------------------------------------------------------------------- */

#ifdef HAVE_UTHASH
struct entry {
    UT_hash_handle hh;
    uint64_t key, value;
    char padding[PADDING];
};

struct table {
    struct entry *head;
};

static void *
table_make(void)
{
    struct table *t = (struct table *)take_apart(sizeof *t);

    t->head = NULL;
    return t;
}

static struct entry *
table_entry(struct table *t, uint64_t key)
{
    struct entry *e;

    HASH_FIND(hh, t->head, &key, sizeof key, e);
    return e;
}

static void
table_insert(void *all, uint64_t key, uint64_t value)
{
    struct table *t = (struct table *)all;
    struct entry *e = (struct entry *)take(sizeof *e);

    e->key = key;
    e->value = value;
    HASH_ADD(hh, t->head, key, sizeof e->key, e);
}

static void
table_erase(void *all, uint64_t key)
{
    struct table *t = (struct table *)all;
    struct entry *e = table_entry(t, key);

    must(e != NULL);
    HASH_DEL(t->head, e);
    give(e);
}

static uint64_t *
table_find(void *all, uint64_t key)
{
    struct entry *e = table_entry((struct table *)all, key);

    return e != NULL ? &e->value : NULL;
}

static void
table_walk(void *all, tell_element *tell, void *arg)
{
    struct table *t = (struct table *)all;
    size_t n = 0;

    for (struct entry *e = t->head; e != NULL; e = (struct entry *)e->hh.next) {
        must(table_entry(t, e->key) == e);
        n++;
        tell(e->key, e->value, arg);
    }
    must(n == HASH_COUNT(t->head));
}
#endif

const struct container containers_c[] = {
    {"libbsd trees", trees_make, trees_insert, trees_erase, trees_find, trees_walk},
    {"libbsd queues", queues_make, queues_insert, queues_erase, queues_find, queues_walk},
#ifdef HAVE_UTHASH
    {"uthash", table_make, table_insert, table_erase, table_find, table_walk},
#endif
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
