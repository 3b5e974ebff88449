/* SPDX-License-Identifier: MIT */
/*
 * xactree_open.c -- create and open trees of libxactree, their header, errors; see
 * include/xactree.h.
 */
#include <config.h>

#include "xactree_handle.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "xactree_format.h"

#define KEY_MAX_DEFAULT    64u
#define PIECE_SIZE_DEFAULT 64u
#define BLOCK_LEAST        4096u
#define CONFIG_MOST        4096u /* bytes of a struct xactree_config of any version */

static_assert(XACTREE_KEY_MAX == VTREE_KEY_MAX, "xactree.h says what vtree.h does");
static_assert(XACTREE_VALUE_MAX == VTREE_VALUE_MAX, "xactree.h says what vtree.h does");

/* ---- Errors ------------------------------------------------------------------------ */

static _Thread_local char last_error[320];

int
xactree_err(int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(last_error, sizeof last_error, fmt, ap);
    va_end(ap);
    return code;
}

const char *
xactree_last_error(void)
{
    return last_error;
}

/* ---- Transactions ------------------------------------------------------------------ */

static int
begin(const struct xactree *t)
{
    int rc = t->env != NULL ? xac_begin_in(t->env) : xac_begin();

    return rc != 0 ? xactree_err(rc, "%s", xac_last_error()) : 0;
}

int
xactree_update(struct xactree *t, xactree_body *run, void *arg)
{
    int rc, end;

    do {
        rc = begin(t);
        if (rc != 0)
            return rc;
        rc = run(t, arg);
        end = t->env != NULL ? xac_end_in(t->env) : xac_end();
    } while (end == XAC_ABORTED);
    if (end == XAC_COMMITTED || end == XAC_PENDING)
        return rc;
    return xactree_err(end, "%s",
                       end == XAC_FAILED ? "the transaction has failed already"
                                         : xac_last_error());
}

int
xactree_query(struct xactree *t, xactree_body *run, void *arg)
{
    int rc = t->env != NULL ? xac_begin_query_in(t->env) : xac_begin_query(), end;

    if (rc != 0)
        return xactree_err(rc, "%s", xac_last_error());
    rc = run(t, arg);
    end = t->env != NULL ? xac_end_query_in(t->env) : xac_end_query();
    return end != 0 ? xactree_err(end, "%s", xac_last_error()) : rc;
}

/* ---- Configuration ----------------------------------------------------------------- */

static int
config_copy(struct xactree_config *out, size_t size, const struct xactree_config *from)
{
    size_t both = size < sizeof *from ? size : sizeof *from;

    if (out == NULL || size < sizeof size)
        return xactree_err(EINVAL, "no room for a struct xactree_config");
    memcpy(out, from, both);
    memset((char *)out + both, 0, size - both);
    out->size = size;
    return 0;
}

void
xactree_config_init(struct xactree_config *out, size_t size)
{
    (void)config_copy(out, size,
                      &(struct xactree_config){.size = sizeof *out,
                                               .key_max = KEY_MAX_DEFAULT,
                                               .piece_size = PIECE_SIZE_DEFAULT});
}

int
xactree_get_config(const struct xactree *t, struct xactree_config *out, size_t size)
{
    if (t == NULL)
        return xactree_err(EINVAL, "no tree");
    return config_copy(out, size,
                       &(struct xactree_config){.size = sizeof *out,
                                                .key_max = t->v.key_max,
                                                .piece_size = t->v.piece_size,
                                                .block_size = t->v.tree.block_size});
}

/* Are the bytes of a structure behind those that this library knows all zero? */
static bool
rest_is_zero(const void *from, size_t size, size_t known)
{
    const unsigned char *bytes = from;

    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* What the caller wants.  It may know more fields, if it does not use them. */
static int
config_take(struct xactree_config *config, const struct xactree_config *from)
{
    xactree_config_init(config, sizeof *config);
    if (from == NULL)
        return 0;
    if (from->size < sizeof *config || from->size > CONFIG_MOST)
        return xactree_err(
            EINVAL, "config: a size of %zu bytes, not set by xactree_config_init()",
            from->size);
    if (!rest_is_zero(from, from->size, sizeof *config))
        return xactree_err(EINVAL, "config: a field that this library does not know");
    *config = *from;
    if (config->reserved != 0)
        return xactree_err(EINVAL, "config: reserved is not 0");
    if (config->key_max < 1 || config->key_max > XACTREE_KEY_MAX)
        return xactree_err(EINVAL, "config: key_max %u, not 1 to %u", config->key_max,
                           XACTREE_KEY_MAX);
    return 0;
}

/* ---- Header ------------------------------------------------------------------------ */

static uint64_t
header_sum(const struct xactree_header *h)
{
    const unsigned char *bytes = (const unsigned char *)h;
    uint64_t sum = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < offsetof(struct xactree_header, sum); i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static bool
page_is_zero(const void *page)
{
    const unsigned char *bytes = page;

    return bytes[0] == 0 && memcmp(bytes, bytes + 1, XACTREE_PAGE - 1) == 0;
}

/* What is wrong with the header that was read.  ret 0, or a code, and the words are noted. */
static int
header_refuse(const struct xactree_header *h, bool is_zero, size_t length)
{
    if (is_zero)
        return xactree_err(ENOENT, "there is no tree: the first page is zero bytes");
    if (h->magic == __builtin_bswap64(XACTREE_MAGIC))
        return xactree_err(XAC_EVERSION,
                           "the tree was made on a machine of other byte order");
    if (h->magic != XACTREE_MAGIC)
        return xactree_err(XAC_EFOREIGN,
                           "the segment holds something else: it begins with %016llx, "
                           "where a tree has %016llx",
                           (unsigned long long)h->magic,
                           (unsigned long long)XACTREE_MAGIC);
    if (h->version != XACTREE_VERSION)
        return xactree_err(XAC_EVERSION,
                           "the tree has format version %u, this library %u", h->version,
                           XACTREE_VERSION);
    if (h->sum != header_sum(h))
        return xactree_err(XAC_EDAMAGED,
                           "the tree's header is damaged: its sum is wrong");
    if (h->length > length)
        return xactree_err(ENOSPC, "the tree has %llu bytes, and only %zu are mapped",
                           (unsigned long long)h->length, length);
    return 0;
}

static int
open_body(struct xactree *t, void *arg)
{
    const struct xactree_header *at = (const void *)t->base;
    struct xactree_header h = *at;
    int rc = header_refuse(&h, h.magic == 0 && page_is_zero(at), t->length);

    (void)arg;
    if (rc != 0)
        return rc;
    rc = vtree_open(&t->v, t->base + XACTREE_PAGE, h.length - XACTREE_PAGE);
    if (rc != 0 || t->v.key_max != h.key_max || t->v.piece_size != h.piece_size
        || t->v.tree.block_size != h.block_size)
        return xactree_err(XAC_EDAMAGED, "the header of the tree's blocks is damaged");
    t->length = h.length;
    return 0;
}

/* Make the blocks, of the least size that has room for three entries if none is given. */
static int
blocks_create(struct xactree *t, const struct xactree_config *config)
{
    struct vtree_config c = {.key_max = config->key_max,
                             .piece_size = config->piece_size,
                             .block_size = config->block_size};
    int rc;

    if (c.block_size == 0)
        c.block_size = BLOCK_LEAST;
    do
        rc = vtree_create(&t->v, t->base + XACTREE_PAGE, t->length - XACTREE_PAGE, &c);
    while (rc == EINVAL && config->block_size == 0
           && (c.block_size *= 2) <= BTREE_BLOCK_MAX);
    if (rc == EINVAL)
        return xactree_err(EINVAL,
                           "config: key_max %u, piece_size %u, block_size %u: "
                           "no block has room for three entries",
                           config->key_max, config->piece_size, config->block_size);
    if (rc == EEXIST)
        return xactree_err(XAC_EFOREIGN, "the second page holds something else");
    if (rc == ENOSPC)
        return xactree_err(ENOSPC, "%zu bytes are too few for a tree", t->length);
    return rc;
}

static int
create_body(struct xactree *t, void *arg)
{
    const struct xactree_config *config = arg;
    struct xactree_header *at = (void *)t->base;
    struct xactree_header h = {.magic = XACTREE_MAGIC, .version = XACTREE_VERSION};
    int rc;

    if (at->magic == XACTREE_MAGIC)
        return xactree_err(EEXIST, "there is a tree in the segment");
    if (!page_is_zero(at))
        return xactree_err(XAC_EFOREIGN, "the segment's first page is not zero bytes");
    rc = blocks_create(t, config);
    if (rc != 0)
        return rc;
    h.length = t->length;
    h.key_max = t->v.key_max;
    h.piece_size = t->v.piece_size;
    h.block_size = t->v.tree.block_size;
    h.sum = header_sum(&h);
    xac_store(at, sizeof *at);
    *at = h;
    return 0;
}

/* ---- Create and open --------------------------------------------------------------- */

/* A handle on a segment.  ret 0; EINVAL; ENOMEM. */
static int
handle_new(struct xactree **tp, struct xac_env *env, void *base, size_t length)
{
    if (base == NULL || base == MAP_FAILED || (uintptr_t)base % XACTREE_PAGE != 0)
        return xactree_err(EINVAL, "%p is not the address of a page", base);
    *tp = calloc(1, sizeof **tp);
    if (*tp == NULL)
        return xactree_err(ENOMEM, "no memory for a handle");
    (*tp)->env = env;
    (*tp)->base = base;
    (*tp)->length = length - length % XACTREE_PAGE;
    return 0;
}

int
xactree_create(struct xactree **treep, struct xac_env *env, void *base, size_t length,
               const struct xactree_config *config)
{
    struct xactree_config c;
    struct xactree *t;
    int rc = treep == NULL ? xactree_err(EINVAL, "no place for the handle") : 0;

    if (rc == 0)
        rc = config_take(&c, config);
    if (rc == 0 && length < 2 * XACTREE_PAGE)
        rc = xactree_err(ENOSPC, "%zu bytes are too few for a tree", length);
    if (rc == 0)
        rc = handle_new(&t, env, base, length);
    if (rc != 0)
        return rc;
    rc = xactree_update(t, create_body, &c);
    if (rc != 0) {
        free(t);
        return rc;
    }
    t->v.tree.hints = true;
    *treep = t;
    return 0;
}

int
xactree_open(struct xactree **treep, struct xac_env *env, void *base, size_t length)
{
    struct xactree *t;
    int rc = treep == NULL ? xactree_err(EINVAL, "no place for the handle") : 0;

    if (rc == 0 && length < XACTREE_PAGE)
        rc = xactree_err(EINVAL, "%zu bytes are less than a page", length);
    if (rc == 0)
        rc = handle_new(&t, env, base, length);
    if (rc != 0)
        return rc;
    rc = xactree_query(t, open_body, NULL);
    if (rc != 0) {
        free(t);
        return rc;
    }
    t->v.tree.hints = true;
    *treep = t;
    return 0;
}

void
xactree_close(struct xactree *t)
{
    free(t);
}

/* ---- Verification ------------------------------------------------------------------ */

static int
check_body(struct xactree *t, void *arg)
{
    struct vtree_report *report = arg;
    const struct xactree_header *h = (const void *)t->base;

    if (h->magic != XACTREE_MAGIC || h->version != XACTREE_VERSION
        || h->sum != header_sum(h) || h->length != t->length) {
        (void)snprintf(report->tree.text, sizeof report->tree.text,
                       "header: not what it was when the tree was opened");
        return EUCLEAN;
    }
    return vtree_check(&t->v, report);
}

int
xactree_check(struct xactree *t, struct xactree_report *report, size_t size)
{
    struct vtree_report found = {.entries = 0};
    struct xactree_report r;
    int rc;

    if (t == NULL || (report != NULL && size < sizeof r.entries))
        return xactree_err(EINVAL, "no tree, or no room for a struct xactree_report");
    rc = xactree_query(t, check_body, &found);
    if (rc == EUCLEAN)
        rc = xactree_err(XAC_EDAMAGED, "%s", found.tree.text);
    if (report == NULL)
        return rc;
    r = (struct xactree_report){.entries = found.entries,
                                .pieces = found.tree.entries,
                                .height = found.tree.height,
                                .blocks = found.tree.n_blocks,
                                .blocks_used =
                                    (uint64_t)found.tree.leaves + found.tree.inners,
                                .blocks_free =
                                    (uint64_t)found.tree.free + found.tree.unused,
                                .block_size = t->v.tree.block_size};
    memcpy(r.text, found.tree.text, sizeof r.text);
    memset(report, 0, size);
    memcpy(report, &r, size < sizeof r ? size : sizeof r);
    return rc;
}
