/* SPDX-License-Identifier: MIT */
/*
 * mutate.c -- see mutate.h.
 */
#include <config.h>

#include "mutate.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "../common/env.h"

/* From doc/formats.md. */
#define SEGMENT_HEADER 4096u
#define SLOT_BYTES     512u
#define SLOT_STRIDE    4096u
#define BLOCK_HEADER   64u
#define CHECKPT_BEGIN  5u /* type of a record                                            */

const char *const mutation_name[MUTATIONS] = {"flip",   "fill",  "cut",     "remove",
                                              "swap",   "copy",  "foreign", "block",
                                              "reseal", "master"};

uint64_t
choose(struct choices *c, uint64_t n)
{
    uint64_t v = 0;

    if (c->data == NULL)
        return rnd_below(&c->seed, n);
    for (uint64_t most = n; most > 1; most = most / 256 + (most % 256 != 0)) {
        v = v << 8 | (c->left > 0 ? *c->data : 0);
        if (c->left > 0) {
            c->data++;
            c->left--;
        }
    }
    return v % n;
}

/* ---- Files ----------------------------------------------------------------------------- */

static uint64_t
get(const uint8_t *p, unsigned at, unsigned n)
{
    uint64_t v = 0;

    for (unsigned i = n; i > 0; i--)
        v = v << 8 | p[at + i - 1];
    return v;
}

static void
set(uint8_t *p, unsigned at, unsigned n, uint64_t v)
{
    for (unsigned i = 0; i < n; i++)
        p[at + i] = (uint8_t)(v >> (8 * i));
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct blob *)a)->name, ((const struct blob *)b)->name);
}

static void
blob_read(struct blobs *b, const char *dir, const char *name)
{
    struct blob *to;
    char path[600];
    struct stat st;
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    must(fd >= 0 && fstat(fd, &st) == 0);
    if (S_ISREG(st.st_mode) && st.st_size < 4 << 20) {
        b->blob = (struct blob *)realloc(b->blob, (b->n + 1) * sizeof b->blob[0]);
        must(b->blob != NULL);
        to = &b->blob[b->n++];
        snprintf(to->name, sizeof to->name, "%s", name);
        to->size = (size_t)st.st_size;
        to->bytes = (uint8_t *)malloc(to->size + 1);
        must(to->bytes != NULL);
        must(read(fd, to->bytes, to->size) == (ssize_t)to->size);
    }
    (void)close(fd);
}

struct blobs
blobs_read(const char *dir, const char *except)
{
    struct blobs b = {.n = 0};
    DIR *d = opendir(dir);
    struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.' && (except == NULL || strcmp(e->d_name, except) != 0))
            blob_read(&b, dir, e->d_name);
    }
    if (d != NULL)
        (void)closedir(d);
    if (b.n > 0)
        qsort(b.blob, b.n, sizeof b.blob[0], by_name);
    return b;
}

void
blobs_free(struct blobs *b)
{
    for (size_t i = 0; i < b->n; i++)
        free(b->blob[i].bytes);
    free(b->blob);
}

/* put -- bytes into a file, which is made if it is not there. */
static void
put(const char *dir, const char *name, const void *bytes, size_t n, uint64_t at)
{
    char path[600];
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    must(fd >= 0);
    must(pwrite(fd, bytes, n, (off_t)at) == (ssize_t)n);
    (void)close(fd);
}

static bool
is_segment(const struct blob *b)
{
    return strncmp(b->name, "xac-log.", 8) == 0 && b->size > SEGMENT_HEADER;
}

/* pick -- a file, a log segment more often than others. */
static const struct blob *
pick(const struct blobs *b, struct choices *c)
{
    const struct blob *f = &b->blob[choose(c, b->n)];

    for (int i = 0; i < 2 && !is_segment(f); i++)
        f = &b->blob[choose(c, b->n)];
    return f;
}

/* used -- bytes of a file up to its last one that is not zero. */
static size_t
used(const struct blob *b)
{
    size_t n = b->size;

    while (n > 0 && b->bytes[n - 1] == 0)
        n--;
    return n;
}

/* place -- an offset in a file, mostly where something is. */
static size_t
place(const struct blob *b, struct choices *c)
{
    size_t n = choose(c, 4) != 0 ? used(b) + 64 : b->size;

    n = n < b->size ? n : b->size;
    return n == 0 ? 0 : choose(c, n);
}

/* block_pick -- a block of the log; NULL if none was found. */
static const uint8_t *
block_pick(const struct blobs *b, struct choices *c, const struct blob **inp, size_t *atp)
{
    for (int i = 0; i < 20; i++) {
        const struct blob *f = pick(b, c);
        size_t at = place(f, c) & ~(size_t)7;

        if (!is_segment(f))
            continue;
        for (; at + BLOCK_HEADER <= f->size; at += 8) {
            size_t n = get(f->bytes, (unsigned)at + 4, 4);

            if (memcmp(f->bytes + at, "XBLK", 4) == 0 && n >= BLOCK_HEADER
                && n <= f->size - at) {
                *inp = f;
                *atp = at;
                return f->bytes + at;
            }
        }
    }
    return NULL;
}

/* ---- Mutations ------------------------------------------------------------------------- */

static void
flip(const char *dir, const struct blobs *was, struct choices *c)
{
    for (uint64_t n = 1 + choose(c, 3); n > 0; n--) {
        const struct blob *f = pick(was, c);
        size_t at = place(f, c);
        uint8_t byte;

        if (f->size == 0)
            continue;
        byte = f->bytes[at] ^ (uint8_t)(1u << choose(c, 8));
        put(dir, f->name, &byte, 1, at);
    }
}

static void
fill(const char *dir, const struct blobs *was, struct choices *c)
{
    const struct blob *f = pick(was, c);
    size_t at = place(f, c);
    size_t n = choose(c, 1 + choose(c, 2) * 20000 + 600);
    uint64_t kind = choose(c, 3);
    uint8_t *bytes;

    if (choose(c, 2) == 0)
        at &= ~(size_t)511;
    n = n < f->size - at ? n : f->size - at;
    bytes = (uint8_t *)malloc(n + 1);
    must(bytes != NULL);
    for (size_t i = 0; i < n; i++)
        bytes[i] = kind == 0 ? 0 : kind == 1 ? 0xff : (uint8_t)choose(c, 256);
    put(dir, f->name, bytes, n, at);
    free(bytes);
}

static void
cut(const char *dir, const struct blobs *was, struct choices *c)
{
    const struct blob *f = pick(was, c);
    char path[600];

    snprintf(path, sizeof path, "%s/%s", dir, f->name);
    must(truncate(path,
                  (off_t)(choose(c, 5) == 0 ? f->size + choose(c, 100000) : place(f, c)))
         == 0);
}

static void
swap(const char *dir, const struct blobs *was, struct choices *c)
{
    const struct blob *a = pick(was, c);
    const struct blob *b = pick(was, c);
    char from[600], to[600], aside[600];

    snprintf(from, sizeof from, "%s/%s", dir, a->name);
    snprintf(to, sizeof to, "%s/%s", dir, b->name);
    snprintf(aside, sizeof aside, "%s/aside", dir);
    if (a != b)
        must(rename(from, aside) == 0 && rename(to, from) == 0 && rename(aside, to) == 0);
}

static void
copy(const char *dir, const struct blobs *was, struct choices *c)
{
    const struct blob *from = pick(was, c);
    const struct blob *to = pick(was, c);
    size_t at = place(from, c);
    size_t n = choose(c, 2) == 0 ? 512 * (1 + choose(c, 64)) : from->size;

    if (choose(c, 2) == 0)
        at &= ~(size_t)511;
    n = n < from->size - at ? n : from->size - at;
    put(dir, to->name, from->bytes + at, n, choose(c, 2) == 0 ? at : place(to, c));
}

static void
repeat_block(const char *dir, const struct blobs *was, struct choices *c)
{
    const struct blob *in;
    size_t at;
    const uint8_t *block = block_pick(was, c, &in, &at);
    const struct blob *to = pick(was, c);

    if (block == NULL)
        return;
    put(dir, to->name, block, get(block, 4, 4),
        choose(c, 2) == 0 ? ((used(to) + 7) & ~(size_t)7) : (place(to, c) & ~(size_t)7));
}

/* reseal -- a block with other contents, but for the checksums (of kind 0). */
static void
reseal(const char *dir, const struct blobs *was, struct choices *c)
{
    const struct blob *in;
    size_t at;
    const uint8_t *block = block_pick(was, c, &in, &at);
    uint8_t *b;
    size_t n, records;

    if (block == NULL)
        return;
    n = get(block, 4, 4);
    b = (uint8_t *)malloc(n);
    must(b != NULL);
    memcpy(b, block, n);
    for (uint64_t k = 1 + choose(c, 3); k > 0; k--) {
        size_t where = choose(c, choose(c, 3) == 0 ? n : n < 160 ? n : 160);
        uint64_t how = choose(c, 4);

        b[where] = how == 0   ? (uint8_t)choose(c, 256)
                   : how == 1 ? 0xff
                   : how == 2 ? (uint8_t)(b[where] ^ (1u << choose(c, 8)))
                              : (uint8_t)(b[where] + 1);
    }
    records = get(b, 48, 4);
    if (records > n - BLOCK_HEADER)
        records = n - BLOCK_HEADER;
    set(b, 56, 8, XXH3_64bits(b + BLOCK_HEADER, records));
    set(b, 52, 4, 0);
    set(b, 52, 4, XXH3_64bits(b, BLOCK_HEADER) & 0xffffffff);
    put(dir, in->name, b, n, at);
    free(b);
}

/* reseal_master -- the same for both slots of the master record. */
static void
reseal_master(const char *dir, const struct blobs *was, struct choices *c)
{
    for (size_t i = 0; i < was->n; i++) {
        const struct blob *f = &was->blob[i];
        uint8_t slot[SLOT_BYTES];
        size_t field = 8 + 4 * choose(c, 24);
        uint64_t how = choose(c, 4);

        if (strcmp(f->name, "xac.master") != 0 || f->size < SLOT_STRIDE + SLOT_BYTES)
            continue;
        for (unsigned s = 0; s < 2; s++) {
            memcpy(slot, f->bytes + s * SLOT_STRIDE, SLOT_BYTES);
            set(slot, (unsigned)field, 4,
                how == 0   ? choose(c, UINT64_C(1) << 32)
                : how == 1 ? 0xffffffff
                : how == 2 ? 0
                           : get(slot, (unsigned)field, 4) + 8 * (choose(c, 9) - 4));
            set(slot, 504, 8, XXH3_64bits(slot, 504));
            put(dir, f->name, slot, SLOT_BYTES, s * SLOT_STRIDE);
        }
    }
}

/* take_foreign -- a file of another environment, under its own name or that of ours. */
static void
take_foreign(const char *dir, const struct blobs *was, const struct blobs *foreign,
             struct choices *c)
{
    const struct blob *from = pick(foreign, c);
    const struct blob *to = pick(was, c);

    if (choose(c, 2) == 0 && is_segment(from) == is_segment(to))
        put(dir, to->name, from->bytes, from->size, 0);
    else
        put(dir, from->name, from->bytes, from->size, 0);
}

enum mutation
mutate(const char *dir, const struct blobs *was, const struct blobs *foreign,
       struct choices *c, char *words, size_t words_size)
{
    enum mutation m = (enum mutation)choose(c, MUTATIONS);
    const struct blob *f;
    char path[600];

    snprintf(words, words_size, "%s", mutation_name[m]);
    switch (m) {
    case MUTATE_FLIP:
        flip(dir, was, c);
        break;
    case MUTATE_FILL:
        fill(dir, was, c);
        break;
    case MUTATE_CUT:
        cut(dir, was, c);
        break;
    case MUTATE_REMOVE:
        f = pick(was, c);
        snprintf(path, sizeof path, "%s/%s", dir, f->name);
        must(unlink(path) == 0);
        break;
    case MUTATE_SWAP:
        swap(dir, was, c);
        break;
    case MUTATE_COPY:
        copy(dir, was, c);
        break;
    case MUTATE_FOREIGN:
        take_foreign(dir, was, foreign, c);
        break;
    case MUTATE_BLOCK:
        repeat_block(dir, was, c);
        break;
    case MUTATE_RESEAL:
        reseal(dir, was, c);
        break;
    case MUTATE_MASTER:
    case MUTATIONS:
        reseal_master(dir, was, c);
        break;
    }
    return m;
}

/* ---- What is known --------------------------------------------------------------------- */

/* read_master -- the newest valid slot. */
static void
read_master(const struct blobs *b, struct known *k, uint8_t identity[16])
{
    uint64_t newest = 0;

    for (size_t i = 0; i < b->n; i++) {
        if (strcmp(b->blob[i].name, "xac.master") != 0)
            continue;
        for (unsigned s = 0; s < 2; s++) {
            const uint8_t *p = b->blob[i].bytes + s * SLOT_STRIDE;

            if (b->blob[i].size < s * SLOT_STRIDE + SLOT_BYTES
                || memcmp(p, "XACMAST1", 8) != 0 || get(p, 504, 8) != XXH3_64bits(p, 504)
                || (k->has_master && get(p, 32, 8) <= newest))
                continue;
            k->has_master = true;
            newest = get(p, 32, 8);
            memcpy(identity, p + 16, 16);
            k->segment_bytes = get(p, 40, 8);
            k->generation = (uint32_t)get(p, 48, 4);
            k->redo_lsn = get(p, 64, 8);
            k->synced_lsn = get(p, 88, 8);
        }
    }
}

/* header_ok -- a block's header, right at this LSN. */
static bool
header_ok(const uint8_t *p, uint64_t lsn, const uint8_t identity[16])
{
    uint8_t h[BLOCK_HEADER];

    if (memcmp(p, "XBLK", 4) != 0 || get(p, 8, 8) != lsn
        || memcmp(p + 16, identity, 8) != 0)
        return false;
    memcpy(h, p, sizeof h);
    set(h, 52, 4, 0);
    return get(p, 52, 4) == (XXH3_64bits(h, sizeof h) & 0xffffffff);
}

/* note_block -- a right header: what it knows, and where its block ends. */
static void
note_block(struct known *k, const uint8_t *p, uint64_t lsn)
{
    uint64_t durable = get(p, 32, 8);
    uint64_t due = k->n_ends > 0 ? k->end[k->n_ends - 1] : k->redo_lsn;

    if (get(p, 24, 4) > k->generation)
        k->has_newer = true;
    if (get(p, 24, 4) != k->generation)
        return;
    if (durable <= lsn && durable > k->synced_lsn)
        k->synced_lsn = durable;
    if (lsn != due)
        return;
    if (p[BLOCK_HEADER] == CHECKPT_BEGIN)
        k->last_begin = lsn;
    k->end = (uint64_t *)realloc(k->end, (k->n_ends + 1) * sizeof k->end[0]);
    must(k->end != NULL);
    k->end[k->n_ends++] = lsn + get(p, 4, 4);
}

void
mutate_known(const char *dir, struct known *k)
{
    struct blobs b = blobs_read(dir, NULL);
    uint8_t identity[16];
    uint8_t *log = NULL;
    uint64_t first = 0, end = 0;

    memset(k, 0, sizeof *k);
    read_master(&b, k, identity);
    /* The segments from the redo position on, as one piece: a header may cross a border. */
    for (size_t i = 0; i < b.n && k->has_master && k->segment_bytes >= 4096
                       && k->segment_bytes <= 1 << 20;
         i++) {
        uint64_t no = strtoull(b.blob[i].name + 8, NULL, 10);
        size_t n = b.blob[i].size - SEGMENT_HEADER;

        if (!is_segment(&b.blob[i]) || no <= k->redo_lsn / k->segment_bytes || no > 4096)
            continue;
        first = k->redo_lsn / k->segment_bytes * k->segment_bytes;
        if (no * k->segment_bytes > end) {
            log = (uint8_t *)realloc(log, no * k->segment_bytes - first);
            must(log != NULL);
            memset(log + (end > first ? end - first : 0), 0,
                   no * k->segment_bytes - (end > first ? end : first));
            end = no * k->segment_bytes;
        }
        n = n < k->segment_bytes ? n : k->segment_bytes;
        memcpy(log + (no - 1) * k->segment_bytes - first,
               b.blob[i].bytes + SEGMENT_HEADER, n);
    }
    for (uint64_t lsn = (k->redo_lsn + 7) & ~UINT64_C(7); lsn + BLOCK_HEADER < end;
         lsn += 8) {
        if (header_ok(log + (lsn - first), lsn, identity))
            note_block(k, log + (lsn - first), lsn);
    }
    free(log);
    blobs_free(&b);
}

void
mutate_cut_log(const char *dir, uint64_t lsn, uint64_t segment_bytes)
{
    struct blobs b = blobs_read(dir, NULL);

    for (size_t i = 0; i < b.n; i++) {
        uint64_t no = strtoull(b.blob[i].name + 8, NULL, 10);
        uint64_t from = SEGMENT_HEADER;

        if (!is_segment(&b.blob[i]) || no * segment_bytes <= lsn)
            continue;
        if (lsn > (no - 1) * segment_bytes)
            from += lsn % segment_bytes;
        memset(b.blob[i].bytes + from, 0, b.blob[i].size - from);
        put(dir, b.blob[i].name, b.blob[i].bytes, b.blob[i].size, 0);
    }
    blobs_free(&b);
}
