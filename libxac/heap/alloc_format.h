/* SPDX-License-Identifier: MIT */
/*
 * alloc_format.h -- bytes of a heap inside a segment (alloc.h).
 *
 * All numbers have the byte order of the machine, like everything in a segment.
 * Places are page and chunk numbers, counted from the start of the segment.  A page is
 * the system's page, a chunk is 64 pages.
 *
 *   page 0         heap header, with the root area
 *   pages 1 to d   first part of the directory; d is fixed when the heap is made, such
 *                  that it covers the segment as long as it was then
 *   the rest       chunks' own pages
 *
 * Directory: one entry of 16 bytes for each chunk.  The first part covers chunks 0 to c - 1,
 * c = d * page size / 16.  If the heap grows more, it gets further parts, each as large as
 * all before it: the part that covers chunks s to 2s - 1, s = c, 2c, 4c, ..., lies at the
 * start of chunk s.  So no entry ever moves.
 *
 * A chunk is free as a whole; or part of a large allocation (whole chunks, and the first
 * pages of the chunk behind them); or part of the directory; or paged: divided into
 * pages, which are described by a chunk header in one of them.  The header is the first page
 * of the chunk that does not belong to a large allocation or to the directory.
 *
 *   heap header (page 0)          chunk header                  run (page)
 *   000  8 magic                  00  8 magic                   00 8 magic
 *   008  4 version                08  8 stamp                   08 8 stamp
 *   012  4 page size, bytes       16  8 used: bit per page      16 1 class
 *   016  8 identity               24  8 rooms                   17 1 is_full
 *   024  8 d, pages               32  8 number of the chunk     18 2 tag, 20 4 reserved
 *   032  8 pages the heap has     40  1 pages present           24   bit per slot, in
 *   040 88 reserved               41  1 longest                        words of 8 bytes
 *   128 256 root area             42  1 page of the header         then slots, from a
 *                                 44  2 tag                        multiple of 16 to the
 *                                 48    64 page descriptors        page's end
 *
 * A header of a chunk or a run is valid if and only if its magic and its stamp are right.  The
 * stamp is made from the heap's identity and the number of the page.  Both are wiped before
 * the page is used for anything else.  So a page with both is a header, and need not be
 * looked up in the directory.
 *
 * Numbers that are read are checked before use: pages against the file, page numbers against
 * the mapping.
 *
 * Version 1: the first.
 */
#ifndef XAC_ALLOC_FORMAT_H
#define XAC_ALLOC_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <xac.h>

#define XAC_HEAP_MAGIC       UINT64_C(0x0031504145484158) /* "XAHEAP1" */
#define XAC_HEAP_CHUNK_MAGIC UINT64_C(0x314b4e5548434158) /* "XACHUNK1" */
#define XAC_HEAP_RUN_MAGIC   UINT64_C(0x0000314e55524158) /* "XARUN1" */
#define XAC_HEAP_VERSION     1

#define XAC_CHUNK_PAGES 64

struct xac_heap_header {
    uint64_t magic;              /* 000 */
    uint32_t version;            /* 008 */
    uint32_t page_size;          /* 012 */
    uint64_t identity;           /* 016 random, not 0 */
    uint64_t dir_pages;          /* 024 */
    uint64_t n_pages;            /* 032 */
    uint64_t reserved[11];       /* 040 */
    uint8_t root[XAC_ROOT_SIZE]; /* 128 */
};

enum xac_chunk_state {
    XAC_CHUNK_FREE = 0,
    XAC_CHUNK_PAGED = 1,
    XAC_CHUNK_LARGE = 2, /* first chunk of a large allocation */
    XAC_CHUNK_MORE = 3,  /* another chunk of it               */
    XAC_CHUNK_META = 4,  /* the heap's own                    */
};

/* Directory entry.  All zero: free. */
struct xac_chunk_entry {
    uint64_t rooms;  /* 00 PAGED: copy of the chunk header's; LARGE: pages allocated   */
    uint32_t pid;    /* 08 PAGED: process that takes runs from it, a hint              */
    uint8_t thread;  /* 12 ... and thread of it                                        */
    uint8_t state;   /* 13 enum xac_chunk_state                                        */
    uint8_t longest; /* 14 PAGED: copy of the chunk header's                           */
    uint8_t header;  /* 15 PAGED: page of the chunk that is its header                 */
};

enum xac_slab_kind {
    XAC_SLAB_FREE = 0,
    XAC_SLAB_HEADER = 1, /* the chunk header                                           */
    XAC_SLAB_RUN = 2,   /* small slots; the page has a run header.  bits: 1 marked full */
    XAC_SLAB_SLOTS = 3, /* 2 to 8 slots without a header.  bits: bit per slot         */
    XAC_SLAB_PAGES = 4, /* first page of an allocation.  bits: its pages              */
    XAC_SLAB_MORE = 5,  /* another page of it                                         */
    XAC_SLAB_TAIL = 6,  /* end of a large allocation of the chunks before             */
    XAC_SLAB_META = 7,  /* heap header, directory                                     */
};

/* What a page of a chunk is used for. */
struct xac_slab {
    uint8_t kind;  /* 0 enum xac_slab_kind                         */
    uint8_t class; /* 1 RUN, SLOTS: size class                     */
    uint16_t tag;  /* 2 RUN, SLOTS: its process and thread, a hint */
    uint32_t bits; /* 4 */
};

/*
 * Header of a paged chunk.  `rooms` and `longest` are upper bounds: if bit c of rooms is clear, no
 * run of class c has a free slot, except runs marked full; there are never more than `longest`
 * free pages in a row.
 */
struct xac_chunk {
    uint64_t magic;                        /* 00 */
    uint64_t stamp;                        /* 08 */
    uint64_t used;                         /* 16 pages beyond `present` count as used */
    uint64_t rooms;                        /* 24 */
    uint64_t number;                       /* 32 */
    uint8_t present;                       /* 40 */
    uint8_t longest;                       /* 41 */
    uint8_t header;                        /* 42 */
    uint8_t reserved;                      /* 43 */
    uint16_t tag;                          /* 44 made from the entry's pid and thread */
    uint16_t reserved2;                    /* 46 */
    struct xac_slab slab[XAC_CHUNK_PAGES]; /* 48 */
};

/* Header of a run of small slots. */
struct xac_run {
    uint64_t magic;    /* 00 */
    uint64_t stamp;    /* 08 */
    uint8_t class;     /* 16 */
    uint8_t is_full;   /* 17 the chunk header says so too */
    uint16_t tag;      /* 18 process and thread, a hint   */
    uint32_t reserved; /* 20 */
    uint64_t bits[];   /* 24 */
};

static_assert(sizeof(struct xac_heap_header) == 128 + XAC_ROOT_SIZE, "heap header");
static_assert(offsetof(struct xac_heap_header, root) == 128, "root area");
static_assert(sizeof(struct xac_chunk_entry) == 16, "directory entry");
static_assert(sizeof(struct xac_slab) == 8, "page descriptor");
static_assert(sizeof(struct xac_chunk) == 560, "chunk header");
static_assert(offsetof(struct xac_chunk, slab) == 48, "page descriptors");
static_assert(sizeof(struct xac_run) == 24, "run header");

#endif /* XAC_ALLOC_FORMAT_H */
