/* SPDX-License-Identifier: MIT */
/*
 * veb.h -- the van Emde Boas layout of a complete binary tree.
 *
 * WHAT      Where in an array each node of a complete binary tree of some height lies, so
 *           that a way from the root to a leaf crosses O(log_B N) blocks of B nodes,
 *           whatever B is.  Nothing is stored: places are computed.
 * LAYOUT    A tree of height h is cut below its h/2 upper levels.  The upper part lies
 *           first, then the lower trees from left to right, each laid out the same way
 *           (Prokop 1999; Bender, Demaine and Farach-Colton 2000; Thesis figure 5-2).
 * METHOD    The arithmetic of Brodal, Fagerberg and Jacob (SODA 2002).  The root of each lower
 *           tree lies behind the upper tree and the lower trees left of it, whose sizes
 *           depend on its depth only; so three numbers for each depth are enough.
 * NAMES     Depth 0 is the root.  Nodes are numbered by level: the root is 1, the children
 *           of i are 2i and 2i + 1.
 */
#ifndef TREES_VEB_H
#define TREES_VEB_H

#include <stdint.h>

#define VEB_HEIGHT_MAX 32

/* Of each depth that is the root's of a lower tree; each but 0 is, of exactly one cut. */
struct veb {
    unsigned height;                /* levels of the tree, at most VEB_HEIGHT_MAX    */
    uint8_t above[VEB_HEIGHT_MAX];  /* depth of the upper tree's root                */
    uint32_t upper[VEB_HEIGHT_MAX]; /* nodes of the upper tree: 2^levels - 1         */
    uint32_t lower[VEB_HEIGHT_MAX]; /* nodes of one lower tree                       */
};

/* Levels of the upper part of a tree of `height` levels, at least 2. */
static inline unsigned
veb_cut(unsigned height)
{
    return height / 2;
}

/* Cut the trees of `height` levels with roots at `depth`, and the trees that come of it. */
static inline void
veb_divide(struct veb *v, unsigned depth, unsigned height)
{
    unsigned cut = veb_cut(height), d = depth + cut;

    if (height < 2)
        return;
    v->above[d] = (uint8_t)depth;
    v->upper[d] = (UINT32_C(1) << cut) - 1;
    v->lower[d] = (uint32_t)((UINT64_C(1) << (height - cut)) - 1);
    veb_divide(v, depth, cut);
    veb_divide(v, d, height - cut);
}

static inline void
veb_init(struct veb *v, unsigned height)
{
    v->height = height;
    veb_divide(v, 0, height);
}

/*
 * veb_below -- how far behind the root of its upper tree a node lies.  Going down, the place
 * of a node at depth d is that of its ancestor at depth above[d] plus this.
 */
static inline uint64_t
veb_below(const struct veb *v, unsigned depth, uint64_t i)
{
    uint64_t upper = v->upper[depth];

    return upper + (i & upper) * v->lower[depth];
}

/* veb_place -- index in the array of node i, which is at `depth`. */
static inline uint64_t
veb_place(const struct veb *v, unsigned depth, uint64_t i)
{
    uint64_t place = 0;

    while (depth > 0) {
        unsigned above = v->above[depth];

        place += veb_below(v, depth, i);
        i >>= depth - above;
        depth = above;
    }
    return place;
}

#endif /* TREES_VEB_H */
