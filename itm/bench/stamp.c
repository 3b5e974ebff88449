/* SPDX-License-Identifier: MIT */
/*
 * stamp.c -- see stamp.h.
 */
#include "stamp.h"

#include <bsd/sys/tree.h>
#include <stdlib.h>

#ifdef STAMP_VOLATILE
# define NEW(w, bytes) ((void)(w), malloc(bytes))
# define DROP(w, p)    ((void)(w), free(p))
#else
# include <xac_itm.h>
# define NEW(w, bytes) xMalloc((w)->base, bytes)
# define DROP(w, p)    xFree((w)->base, p)
#endif

#define SAFE __attribute__((transaction_safe))

#define LIST_KEYS 128
#define KEYS      4096
#define BUCKETS   1024
#define KINDS     3 /* cars, rooms, flights */
#define ITEMS     256
#define CUSTOMERS 256
#define LOOKS     4 /* items of each kind that a customer looks at */

const char *const stamp_names[STAMP_LOADS] = {"list", "tree", "hash", "vacation"};

struct link {
    uint64_t key;
    struct link *next;
};

/* An element of the tree, or something that may be reserved. */
struct item {
    RB_ENTRY(item) links;
    uint64_t key;
    uint64_t total;
    uint64_t used;
    uint64_t price;
};
RB_HEAD(items, item);

struct booking {
    struct booking *next;
    uint64_t kind;
    uint64_t key;
    uint64_t price;
};

struct stamp_world {
    void *base;
    struct link *list;
    struct items tree;
    struct link *buckets[BUCKETS];
    struct items kinds[KINDS];
    struct booking *customers[CUSTOMERS];
};

SAFE static int
compare(const struct item *a, const struct item *b)
{
    return a->key < b->key ? -1 : a->key > b->key;
}

/* The macros know nothing of transactions: only the attribute of their functions is ours. */
#define TREE static __attribute__((transaction_safe, unused))
RB_PROTOTYPE_INTERNAL(items, item, links, compare, TREE)
RB_GENERATE_INTERNAL(items, item, links, compare, TREE)

SAFE static uint64_t
next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* ---- list, and a bucket of the hash table --------------------------------------------------- */

/* list_at -- where the first key not below is linked. */
SAFE static struct link **
list_at(struct link **head, uint64_t key)
{
    while (*head != NULL && (*head)->key < key)
        head = &(*head)->next;
    return head;
}

SAFE static bool
list_has(struct link **head, uint64_t key)
{
    struct link **at = list_at(head, key);

    return *at != NULL && (*at)->key == key;
}

SAFE static bool
list_insert(struct stamp_world *w, struct link **head, uint64_t key)
{
    struct link **at = list_at(head, key);
    struct link *l;

    if (*at != NULL && (*at)->key == key)
        return false;
    l = NEW(w, sizeof *l);
    l->key = key;
    l->next = *at;
    *at = l;
    return true;
}

SAFE static bool
list_remove(struct stamp_world *w, struct link **head, uint64_t key)
{
    struct link **at = list_at(head, key);
    struct link *l = *at;

    if (l == NULL || l->key != key)
        return false;
    *at = l->next;
    DROP(w, l);
    return true;
}

/* ---- tree ------------------------------------------------------------------------------------ */

SAFE static struct item *
tree_find(struct items *tree, uint64_t key)
{
    struct item wanted;

    wanted.key = key;
    return items_RB_FIND(tree, &wanted);
}

SAFE static struct item *
tree_insert(struct stamp_world *w, struct items *tree, uint64_t key)
{
    struct item *i = tree_find(tree, key);

    if (i != NULL)
        return NULL;
    i = NEW(w, sizeof *i);
    i->key = key;
    i->total = 0;
    i->used = 0;
    i->price = 0;
    items_RB_INSERT(tree, i);
    return i;
}

SAFE static bool
tree_remove(struct stamp_world *w, struct items *tree, uint64_t key)
{
    struct item *i = tree_find(tree, key);

    if (i == NULL)
        return false;
    items_RB_REMOVE(tree, i);
    DROP(w, i);
    return true;
}

/* ---- vacation -------------------------------------------------------------------------------- */

/* cheapest -- with room left, of those that a customer looks at; NULL: none. */
SAFE static struct item *
cheapest(struct items *kind, uint64_t seed)
{
    struct item *best = NULL;

    for (int i = 0; i < LOOKS; i++) {
        struct item *one = tree_find(kind, (seed >> (8 * i)) % ITEMS);

        if (one != NULL && one->used < one->total
            && (best == NULL || one->price < best->price))
            best = one;
    }
    return best;
}

/* book -- one item of each kind.  ret  the sum of their prices. */
SAFE static int64_t
book(struct stamp_world *w, uint64_t who, uint64_t seed, int64_t *np)
{
    int64_t sum = 0;

    for (uint64_t kind = 0; kind < KINDS; kind++) {
        struct item *i = cheapest(&w->kinds[kind], seed >> (5 * kind));
        struct booking *b;

        if (i == NULL)
            continue;
        b = NEW(w, sizeof *b);
        b->kind = kind;
        b->key = i->key;
        b->price = i->price;
        b->next = w->customers[who];
        w->customers[who] = b;
        i->used++;
        sum += (int64_t)i->price;
        ++*np;
    }
    return sum;
}

/* cancel_all -- of a customer. */
SAFE static int64_t
cancel_all(struct stamp_world *w, uint64_t who, int64_t *np)
{
    int64_t sum = 0;

    while (w->customers[who] != NULL) {
        struct booking *b = w->customers[who];

        tree_find(&w->kinds[b->kind], b->key)->used--;
        w->customers[who] = b->next;
        sum += (int64_t)b->price;
        ++*np;
        DROP(w, b);
    }
    return sum;
}

/* offer -- more of an item, at another price; or take it away if nobody has booked it. */
SAFE static void
offer(struct stamp_world *w, struct items *kind, uint64_t key, uint64_t price)
{
    struct item *i = tree_find(kind, key);

    if (i == NULL)
        i = tree_insert(w, kind, key);
    else if (i->used == 0 && price % 4 == 0) {
        tree_remove(w, kind, key);
        return;
    }
    i->total += 2;
    i->price = price;
}

/* ---- steps ----------------------------------------------------------------------------------- */

SAFE static void
step_list(struct stamp_world *w, struct link **head, uint64_t key, unsigned what,
          struct stamp_net *net)
{
    int64_t n = 0;
    bool found = false;

    if (what >= 2) {
        __transaction_atomic
        {
            found = list_has(head, key);
        }
    } else if (what == 1) {
        __transaction_atomic
        {
            n = list_insert(w, head, key);
        }
    } else {
        __transaction_atomic
        {
            n = -(int64_t)list_remove(w, head, key);
        }
    }
    net->n += n;
    net->sum += n * (int64_t)key;
    net->hits += found;
}

SAFE static void
step_tree(struct stamp_world *w, uint64_t key, unsigned what, struct stamp_net *net)
{
    int64_t n = 0;
    bool found = false;

    if (what >= 2) {
        __transaction_atomic
        {
            found = tree_find(&w->tree, key) != NULL;
        }
    } else if (what == 1) {
        __transaction_atomic
        {
            n = tree_insert(w, &w->tree, key) != NULL;
        }
    } else {
        __transaction_atomic
        {
            n = -(int64_t)tree_remove(w, &w->tree, key);
        }
    }
    net->n += n;
    net->sum += n * (int64_t)key;
    net->hits += found;
}

SAFE static void
step_vacation(struct stamp_world *w, uint64_t r, unsigned what, struct stamp_net *net)
{
    uint64_t who = (r >> 8) % CUSTOMERS, kind = (r >> 20) % KINDS;
    int64_t sum = 0, n = 0;
    bool found = false;

    if (what >= 2) {
        __transaction_atomic
        {
            found = cheapest(&w->kinds[kind], r >> 24) != NULL;
        }
    } else if (r % 8 < 5) {
        __transaction_atomic
        {
            sum = book(w, who, r >> 24, &n);
        }
    } else if (r % 8 < 6) {
        __transaction_atomic
        {
            sum = cancel_all(w, who, &n);
        }
        sum = -sum;
        n = -n;
    } else {
        __transaction_atomic
        {
            offer(w, &w->kinds[kind], (r >> 24) % ITEMS, (r >> 40) % 1000);
        }
    }
    net->n += n;
    net->sum += sum;
    net->hits += found;
}

SAFE void
stamp_step(struct stamp_world *w, enum stamp_load load, uint64_t *rnd,
           struct stamp_net *net)
{
    uint64_t r = next(rnd);
    unsigned what = (unsigned)(r % 4);

    r >>= 2;
    net->steps++;
    switch (load) {
    case STAMP_LIST:
        step_list(w, &w->list, r % LIST_KEYS, what, net);
        break;
    case STAMP_TREE:
        step_tree(w, r % KEYS, what, net);
        break;
    case STAMP_HASH:
        step_list(w, &w->buckets[r % KEYS % BUCKETS], r % KEYS, what, net);
        break;
    default:
        step_vacation(w, r, what, net);
    }
}

/* ---- a world, and whether it is right ---------------------------------------------------------- */

static void
fill(struct stamp_world *w)
{
    for (uint64_t kind = 0; kind < KINDS; kind++) {
        for (uint64_t key = 0; key < ITEMS; key++) {
            __transaction_atomic
            {
                struct item *i = tree_insert(w, &w->kinds[kind], key);

                i->total = 100;
                i->price = 50 + 5 * (key % 10);
            }
        }
    }
}

#ifdef STAMP_VOLATILE
struct stamp_world *
stamp_create(void *base)
{
    struct stamp_world *w = calloc(1, sizeof *w);

    (void)base;
    if (w != NULL)
        fill(w);
    return w;
}

struct stamp_world *
stamp_find(void *base)
{
    (void)base;
    return NULL;
}
#else
struct stamp_world *
stamp_create(void *base)
{
    struct stamp_world *w = NULL;

    __transaction_atomic
    {
        struct stamp_world **root = xRoot(base);

        w = xMalloc(base, sizeof *w);
        if (w != NULL) {
            __builtin_memset(w, 0, sizeof *w);
            w->base = base;
            *root = w;
        }
    }
    if (w != NULL)
        fill(w);
    return w;
}

struct stamp_world *
stamp_find(void *base)
{
    struct stamp_world *w = NULL;

    __transaction_atomic
    {
        w = *(struct stamp_world **)xRoot(base);
    }
    return w;
}
#endif

/* list_add -- its elements to *found.  ret  is it sorted? */
static bool
list_add(const struct link *l, struct stamp_net *found)
{
    for (; l != NULL; l = l->next) {
        found->n++;
        found->sum += (int64_t)l->key;
        if (l->next != NULL && l->next->key <= l->key)
            return false;
    }
    return true;
}

/* tree_blacks -- black nodes on each way down; -1: it is no red-black tree. */
static int
tree_blacks(const struct item *i, const struct item *parent, struct stamp_net *found)
{
    int left, right;

    if (i == NULL)
        return 0;
    found->n++;
    found->sum += (int64_t)i->key;
    left = tree_blacks(i->links.rbe_left, i, found);
    right = tree_blacks(i->links.rbe_right, i, found);
    if (left < 0 || left != right || i->links.rbe_parent != parent
        || (parent != NULL && parent->links.rbe_color == RB_RED
            && i->links.rbe_color == RB_RED)
        || (i->links.rbe_left != NULL && i->links.rbe_left->key >= i->key)
        || (i->links.rbe_right != NULL && i->links.rbe_right->key <= i->key))
        return -1;
    return left + (i->links.rbe_color == RB_BLACK);
}

/* tree_used -- sum of what is booked; -1: more than there is. */
static int64_t
tree_used(const struct item *i)
{
    int64_t left = i == NULL ? 0 : tree_used(i->links.rbe_left);
    int64_t right = i == NULL ? 0 : tree_used(i->links.rbe_right);

    if (i == NULL)
        return 0;
    return left < 0 || right < 0 || i->used > i->total ? -1
                                                       : left + right + (int64_t)i->used;
}

static const char *
vacation_wrong(const struct stamp_world *w, struct stamp_net *found)
{
    int64_t used = 0;

    for (int kind = 0; kind < KINDS; kind++) {
        struct stamp_net all = {0};
        int64_t n = tree_used(w->kinds[kind].rbh_root);

        if (tree_blacks(w->kinds[kind].rbh_root, NULL, &all) < 0)
            return "a kind's tree is damaged";
        if (n < 0)
            return "more is booked than there is";
        used += n;
    }
    for (int who = 0; who < CUSTOMERS; who++) {
        for (const struct booking *b = w->customers[who]; b != NULL; b = b->next) {
            found->n++;
            found->sum += (int64_t)b->price;
        }
    }
    return used == found->n ? NULL : "the customers have not booked what is booked";
}

const char *
stamp_wrong(const struct stamp_world *w, enum stamp_load load,
            const struct stamp_net *net)
{
    struct stamp_net found = {0};
    const char *wrong = NULL;

    switch (load) {
    case STAMP_LIST:
        wrong = list_add(w->list, &found) ? NULL : "the list is not sorted";
        break;
    case STAMP_TREE:
        wrong = tree_blacks(w->tree.rbh_root, NULL, &found) >= 0 ? NULL
                                                                 : "the tree is damaged";
        break;
    case STAMP_HASH:
        for (int i = 0; i < BUCKETS && wrong == NULL; i++)
            wrong = list_add(w->buckets[i], &found) ? NULL : "a bucket is not sorted";
        break;
    default:
        wrong = vacation_wrong(w, &found);
    }
    if (wrong == NULL && (found.n != net->n || found.sum != net->sum))
        wrong = "the sums are not those of the steps";
    return wrong;
}
