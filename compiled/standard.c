/* SPDX-License-Identifier: MIT */
/*
 * standard.c -- functions of the C++ library (libstdc++) that store in what containers consist of.
 *
 * WHAT      As noticed.c.  A source of its own, for only a program in C++ has such calls.
 * TREES     std::map, std::set and their kin.  Which nodes a rebalancing stores in is not known before
 *           it is done, so it is done here.  A node's layout is a part of the library's ABI.
 * OTHERS    std::list, std::unordered_map: announced, and left to the library.
 */
#include <config.h>

#include <stdbool.h>
#include <stddef.h>

#include <xac_touch.h>

/* ---- Trees ---------------------------------------------------------------------------------- */

enum colour {
    RED = 0,
    BLACK = 1
};
enum side {
    LEFT = 0,
    RIGHT = 1
};

/*
 * A node, and the header of a tree, which has no value: its parent is the root, and its children
 * are the first and the last node.  The root's parent is the header.
 */
struct node {
    enum colour colour;
    struct node *parent;
    struct node *child[2];
};

static struct node *
get(struct node *const *at)
{
    xac_load(at, sizeof *at);
    return *at;
}

static void
set(struct node **at, struct node *n)
{
    xac_store(at, sizeof *at);
    *at = n;
}

static enum colour
colour_of(const struct node *n)
{
    if (n == NULL)
        return BLACK;
    xac_load(&n->colour, sizeof n->colour);
    return n->colour;
}

static void
paint(struct node *n, enum colour colour)
{
    xac_store(&n->colour, sizeof n->colour);
    n->colour = colour;
}

/* side_of -- which child of its parent it is. */
static enum side
side_of(const struct node *n, const struct node *parent)
{
    return get(&parent->child[LEFT]) == n ? LEFT : RIGHT;
}

/* replace -- have what leads to `old`, a child of `parent` or the root, lead to n. */
static void
replace(struct node *header, const struct node *old, struct node *parent, struct node *n)
{
    if (get(&header->parent) == old)
        set(&header->parent, n);
    else
        set(&parent->child[side_of(old, parent)], n);
}

/* rotate -- n goes down to that side, and its other child takes its place. */
static void
rotate(struct node *header, struct node *n, enum side side)
{
    struct node *up = get(&n->child[!side]), *between = get(&up->child[side]);
    struct node *parent = get(&n->parent);

    set(&n->child[!side], between);
    if (between != NULL)
        set(&between->parent, n);
    set(&up->parent, parent);
    replace(header, n, parent, up);
    set(&up->child[side], n);
    set(&n->parent, up);
}

/* furthest -- the first or the last node of a subtree. */
static struct node *
furthest(struct node *n, enum side side)
{
    for (struct node *next; (next = get(&n->child[side])) != NULL;)
        n = next;
    return n;
}

void insert_and_rebalance(bool, struct node *, struct node *, struct node *) __asm__(
    "xac_noticed__ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_");

void
insert_and_rebalance(bool to_left, struct node *n, struct node *parent,
                     struct node *header)
{
    enum side side = to_left ? LEFT : RIGHT;

    set(&n->parent, parent);
    set(&n->child[LEFT], NULL);
    set(&n->child[RIGHT], NULL);
    paint(n, RED);
    if (parent == header) {
        set(&header->parent, n);
        set(&header->child[LEFT], n);
        set(&header->child[RIGHT], n);
    } else {
        set(&parent->child[side], n);
        if (get(&header->child[side]) == parent)
            set(&header->child[side], n);
    }
    while (n != get(&header->parent) && colour_of(parent = get(&n->parent)) == RED) {
        struct node *above = get(&parent->parent);
        struct node *uncle;

        side = side_of(parent, above);
        uncle = get(&above->child[!side]);
        if (colour_of(uncle) == RED) {
            paint(parent, BLACK);
            paint(uncle, BLACK);
            paint(above, RED);
            n = above;
            continue;
        }
        if (n == get(&parent->child[!side])) {
            rotate(header, parent, side);
            n = parent;
            parent = get(&n->parent);
        }
        paint(parent, BLACK);
        paint(above, RED);
        rotate(header, above, !side);
    }
    paint(get(&header->parent), BLACK);
}

/* take_place -- of `old`, which has two children, by the node behind it. */
static void
take_place(struct node *header, struct node *old, struct node *n, struct node *parent)
{
    enum colour colour = colour_of(old);

    paint(old, colour_of(n));
    paint(n, colour);
    set(&n->child[LEFT], get(&old->child[LEFT]));
    set(&get(&n->child[LEFT])->parent, n);
    if (parent != n) {
        set(&n->child[RIGHT], get(&old->child[RIGHT]));
        set(&get(&n->child[RIGHT])->parent, n);
    }
    replace(header, old, get(&old->parent), n);
    set(&n->parent, get(&old->parent));
}

/* unlink_node -- take a node out of the tree; n, which may be NULL, comes to its place, or to that
   of the node behind it.  ret n's parent. */
static struct node *
unlink_node(struct node *header, struct node *gone, struct node **np)
{
    struct node *behind = gone, *parent, *n;

    if (get(&gone->child[LEFT]) != NULL && get(&gone->child[RIGHT]) != NULL)
        behind = furthest(get(&gone->child[RIGHT]), LEFT);
    n = get(&behind->child[LEFT]);
    if (n == NULL)
        n = get(&behind->child[RIGHT]);
    parent = get(&behind->parent);
    if (behind == gone) {
        for (enum side side = LEFT; side <= RIGHT; side++) {
            if (get(&header->child[side]) == gone)
                set(&header->child[side], n != NULL ? furthest(n, side) : parent);
        }
        replace(header, gone, parent, n);
    } else if (parent == gone) {
        parent = behind;
    } else {
        set(&parent->child[LEFT], n);
    }
    if (n != NULL)
        set(&n->parent, parent);
    if (behind != gone)
        take_place(header, gone, behind, parent);
    *np = n;
    return parent;
}

struct node *rebalance_for_erase(struct node *, struct node *) __asm__(
    "xac_noticed__ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_");

struct node *
rebalance_for_erase(struct node *gone, struct node *header)
{
    struct node *n, *parent = unlink_node(header, gone, &n);

    /* One black node is missing on the way to n. */
    while (colour_of(gone) == BLACK && n != get(&header->parent)
           && colour_of(n) == BLACK) {
        enum side side = side_of(n, parent);
        struct node *other = get(&parent->child[!side]);

        if (colour_of(other) == RED) {
            paint(other, BLACK);
            paint(parent, RED);
            rotate(header, parent, side);
            other = get(&parent->child[!side]);
        }
        if (colour_of(get(&other->child[LEFT])) == BLACK
            && colour_of(get(&other->child[RIGHT])) == BLACK) {
            paint(other, RED);
            n = parent;
            parent = get(&n->parent);
            continue;
        }
        if (colour_of(get(&other->child[!side])) == BLACK) {
            paint(get(&other->child[side]), BLACK);
            paint(other, RED);
            rotate(header, other, !side);
            other = get(&parent->child[!side]);
        }
        paint(other, colour_of(parent));
        paint(parent, BLACK);
        paint(get(&other->child[!side]), BLACK);
        rotate(header, parent, side);
        return gone;
    }
    if (colour_of(gone) == BLACK && n != NULL)
        paint(n, BLACK);
    return gone;
}

/* ---- Others --------------------------------------------------------------------------------- */

/* A function of the library, and ours, to which renamed symbols lead. */
#define STANDARD(type, name, symbol, ...)                         \
 type standard_##name(__VA_ARGS__) __asm__(symbol);               \
 type noticed_##name(__VA_ARGS__) __asm__("xac_noticed_" symbol); \
 type noticed_##name(__VA_ARGS__)

/* A node of a list, and its header. */
struct link {
    struct link *next, *previous;
};

static void
touch(struct link *at)
{
    xac_store(at, sizeof *at);
}

static void
touch_with_neighbours(struct link *at)
{
    touch(at);
    touch(at->next);
    touch(at->previous);
}

STANDARD(void, hook, "_ZNSt8__detail15_List_node_base7_M_hookEPS0_", struct link *at,
         struct link *before)
{
    touch(at);
    touch(before);
    touch(before->previous);
    standard_hook(at, before);
}

STANDARD(void, unhook, "_ZNSt8__detail15_List_node_base9_M_unhookEv", struct link *at)
{
    touch_with_neighbours(at);
    standard_unhook(at);
}

STANDARD(void, transfer, "_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_",
         struct link *before, struct link *first, struct link *end)
{
    touch_with_neighbours(before);
    touch_with_neighbours(first);
    touch_with_neighbours(end);
    standard_transfer(before, first, end);
}

STANDARD(void, reverse, "_ZNSt8__detail15_List_node_base10_M_reverseEv",
         struct link *list)
{
    struct link *at = list;

    do {
        touch(at);
        at = at->next;
    } while (at != list);
    standard_reverse(list);
}

STANDARD(void, swap, "_ZNSt8__detail15_List_node_base4swapERS0_S1_", struct link *a,
         struct link *b)
{
    touch_with_neighbours(a);
    touch_with_neighbours(b);
    standard_swap(a, b);
}

/* When a hash table is to grow: a part of the table. */
struct growth {
    float load_max;
    size_t next;
};

/* std::pair<bool, size_t>, which is returned in the same way. */
struct whether {
    bool is;
    size_t n;
};

STANDARD(size_t, next_buckets, "_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm",
         struct growth *growth, size_t n)
{
    xac_store(growth, sizeof *growth);
    return standard_next_buckets(growth, n);
}

STANDARD(struct whether, needs_buckets,
         "_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm",
         struct growth *growth, size_t n_buckets, size_t n_elements, size_t n_new)
{
    xac_store(growth, sizeof *growth);
    return standard_needs_buckets(growth, n_buckets, n_elements, n_new);
}
