/* SPDX-License-Identifier: MIT */
/*
 * saved.c -- see saved.h.
 */
#include <config.h>

#include "txn/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

/* Memory that stays for the next transaction, and that is got at first, of each kind. */
#define KEPT_BYTES  ((size_t)256 << 10)
#define FIRST_BYTES ((size_t)64 << 10)
#define KEPT_PIECES 3

/* Images written after which the device begins to write them, as of spilled pages. */
#define SYNC_EVERY 256

/* ---- Room ---------------------------------------------------------------------------- */

/* reserve -- room of so many bytes; what is new is zero.  In the fault handler, so mapped, not
   allocated.  ret 0 or errno. */
XAC_SIGSAFE static int
reserve(struct xac_saved_room *r, size_t bytes)
{
    size_t want = r->bytes == 0 ? FIRST_BYTES : r->bytes;
    void *at;

    if (xac_likely(bytes <= r->bytes))
        return 0;
    while (want < bytes)
        want *= 2;
    at = xac_sys.mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                      0);
    if (at == MAP_FAILED)
        return errno;
    if (r->at != NULL) {
        memcpy(at, r->at, r->bytes);
        (void)xac_sys.munmap(r->at, r->bytes);
    }
    r->at = at;
    r->bytes = want;
    xac_assert(r->at != NULL);
    xac_assert(r->bytes >= bytes);
    return 0;
}

/* give_back -- all of it that is above `kept` bytes. */
static void
give_back(struct xac_saved_room *r, size_t kept)
{
    xac_assert(r->at != NULL || r->bytes == 0);
    if (r->at == NULL || r->bytes <= kept)
        return;
    (void)xac_sys.munmap(r->at, r->bytes);
    *r = (struct xac_saved_room){.at = NULL, .bytes = 0};
    xac_assert(r->at == NULL);
}

XAC_SIGSAFE static struct xac_saved_page *
page_at(const struct xac_saved *s, uint32_t entry)
{
    xac_assert(entry < s->n_pages);
    return (struct xac_saved_page *)s->pages.at + entry;
}

/* page_for -- the same, made if missing; NULL with errno. */
XAC_SIGSAFE static struct xac_saved_page *
page_for(struct xac_saved *s, uint32_t entry)
{
    int rc = reserve(&s->pages, ((size_t)entry + 1) * sizeof(struct xac_saved_page));

    if (rc != 0) {
        errno = rc;
        return NULL;
    }
    if (entry >= s->n_pages)
        s->n_pages = (uint64_t)entry + 1; /* zero, or of an earlier transaction */
    xac_assert(page_at(s, entry)->epoch <= s->epoch);
    return page_at(s, entry);
}

/* ---- Bytes of images --------------------------------------------------------------------- */

/* piece_of -- the piece that a place lies in; *firstp: the first place in it. */
XAC_SIGSAFE static unsigned
piece_of(uint64_t place, uint64_t *firstp)
{
    unsigned k = 63 - (unsigned)__builtin_clzll(place / XAC_SAVED_PIECE + 1);

    *firstp = ((UINT64_C(1) << k) - 1) * XAC_SAVED_PIECE;
    xac_assert(place >= *firstp);
    xac_assert(place - *firstp < ((uint64_t)XAC_SAVED_PIECE << k));
    return k;
}

/* memory_of -- of a place, got if missing; NULL with errno. */
XAC_SIGSAFE static uint8_t *
memory_of(struct xac_saved *s, uint64_t place)
{
    size_t size = s->ctx->env->page_size;
    uint64_t first;
    unsigned k = piece_of(place, &first);

    xac_assert(k < XAC_SAVED_PIECES);
    if (xac_unlikely(s->piece[k] == NULL)) {
        void *at =
            xac_sys.mmap(NULL, (size << k) * XAC_SAVED_PIECE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (at == MAP_FAILED)
            return NULL;
        s->piece[k] = (uint8_t *)at;
    }
    return s->piece[k] + (place - first) * size;
}

/* give_pieces_back -- from that one on. */
static void
give_pieces_back(struct xac_saved *s, unsigned from)
{
    size_t size = s->ctx->env->page_size;

    xac_assert(s->n_places == 0);
    for (unsigned k = from; k < XAC_SAVED_PIECES; k++) {
        if (s->piece[k] != NULL)
            (void)xac_sys.munmap(s->piece[k], (size << k) * XAC_SAVED_PIECE);
        s->piece[k] = NULL;
    }
}

/* open_file -- which has no name; ret 0 or errno. */
XAC_SIGSAFE static int
open_file(struct xac_saved *s)
{
    if (s->fd > 0 && xac_handle_is_ours(s->fd, &s->handle))
        return 0;
    if (s->n_places > 0)
        return EBADF; /* it has no name by which it could be opened again */
    s->fd = xac_handle_keep(xac_sys.openat(xac_env_dirfd(s->ctx->env), ".",
                                           O_TMPFILE | O_RDWR | O_CLOEXEC, 0600),
                            &s->handle);
    xac_assert(s->fd != 0);
    return s->fd > 0 ? 0 : errno;
}

/* write_bytes -- to the file; ret 0 or errno. */
XAC_SIGSAFE static int
write_bytes(struct xac_saved *s, uint64_t place, const uint8_t *bytes)
{
    size_t size = s->ctx->env->page_size;
    int rc = open_file(s);

    xac_assert(bytes != NULL);
    if (rc == 0)
        rc = xac_write_full(s->fd, bytes, size, place * size);
    if (rc == 0 && place % SYNC_EVERY == SYNC_EVERY - 1)
        (void)xac_sys.sync_file_range(s->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    return rc;
}

/* keep_bytes -- at a place that is free; ret 0 or errno. */
XAC_SIGSAFE static int
keep_bytes(struct xac_saved *s, const uint8_t *bytes, uint64_t *placep)
{
    size_t size = s->ctx->env->page_size;
    uint64_t place =
        s->n_free > 0 ? ((const uint64_t *)s->free.at)[s->n_free - 1] : s->n_places;
    int rc = 0;

    xac_assert(place <= s->n_places);
    if (s->ctx->outofcore != NULL) {
        rc = write_bytes(s, place, bytes);
    } else {
        uint8_t *to = memory_of(s, place);

        if (to == NULL)
            return errno;
        memcpy(to, bytes, size);
    }
    if (rc != 0)
        return rc;
    if (s->n_free > 0)
        s->n_free--;
    else
        s->n_places++;
    *placep = place;
    xac_assert(place < s->n_places);
    return 0;
}

/* free_place -- of an image that is gone.  Without room for the list the place is not used again. */
static void
free_place(struct xac_saved *s, const struct xac_saved_image *image)
{
    xac_assert(image->place <= s->n_places);
    if (image->place == 0 || reserve(&s->free, (s->n_free + 1) * sizeof(uint64_t)) != 0)
        return;
    ((uint64_t *)s->free.at)[s->n_free++] = image->place - 1;
    xac_assert(s->n_free <= s->n_places);
}

const uint8_t *
xac_saved_bytes(struct xac_saved *s, const struct xac_saved_image *image)
{
    size_t size = s->ctx->env->page_size, got = 0;
    uint64_t place = image->place - 1;
    uint8_t *to = memory_of(s, s->ctx->outofcore == NULL ? place : 0);
    int rc = EBADF;

    xac_assert(image->place != 0);
    xac_assert(place < s->n_places);
    if (s->ctx->outofcore == NULL || to == NULL)
        return to;
    if (xac_handle_is_ours(s->fd, &s->handle))
        rc = xac_read_full(s->fd, to, size, place * size, &got);
    if (rc == 0 && got == size)
        return to;
    errno = rc != 0 ? rc : EIO;
    return NULL;
}

/* ---- Levels ---------------------------------------------------------------------------- */

int
xac_saved_start(struct xac_ctx *ctx)
{
    struct xac_saved *s = ctx->saved;

    xac_assert(ctx->save_epoch == 0);
    if (s == NULL) {
        s = (struct xac_saved *)calloc(1, sizeof *s);
        if (s == NULL)
            return ENOMEM;
        s->ctx = ctx;
        ctx->saved = s;
    }
    xac_assert(s->n_levels == 0);
    xac_assert(s->n_images == 0);
    xac_assert(s->n_opened == 0);
    return 0;
}

int
xac_saved_reserve(struct xac_saved *s)
{
    xac_assert(s->n_levels == 0 || s->ctx->save_epoch != 0);
    return reserve(&s->levels, (s->n_levels + 1) * sizeof(struct xac_saved_level));
}

void
xac_saved_push(struct xac_saved *s, uint64_t mark)
{
    uint64_t i = s->n_levels++;

    xac_assert(s->levels.bytes >= s->n_levels * sizeof(struct xac_saved_level));
    xac_assert(mark != 0);
    xac_assert(i == 0 || xac_saved_level_at(s, i - 1)->mark < mark); /* (1) */
    *xac_saved_level_at(s, i) =
        (struct xac_saved_level){.mark = mark, .first = s->n_images};
}

uint64_t
xac_saved_find(const struct xac_saved *s, uint64_t mark)
{
    uint64_t low = 0, high = s->n_levels;

    while (low < high) { /* the level is in [low, high), if it is there */
        uint64_t mid = (low + high) / 2;
        uint64_t found = xac_saved_level_at(s, mid)->mark;

        if (found == mark)
            return mid;
        if (found < mark)
            low = mid + 1;
        else
            high = mid;
    }
    xac_assert(low <= s->n_levels);
    return UINT64_MAX;
}

void
xac_saved_next_epoch(struct xac_ctx *ctx)
{
    struct xac_saved *s = ctx->saved;

    xac_assert(s != NULL);
    ctx->save_epoch = ++s->epoch;
    s->n_opened = 0;
    xac_assert(ctx->save_epoch != 0);
}

/* note_open -- a page is open; there is room for that. */
XAC_SIGSAFE static void
note_open(struct xac_saved *s, uint32_t entry)
{
    xac_assert(page_at(s, entry)->epoch != s->epoch);
    xac_assert(s->opened.bytes >= (s->n_opened + 1) * sizeof(uint32_t));
    ((uint32_t *)s->opened.at)[s->n_opened++] = entry;
    page_at(s, entry)->epoch = s->epoch;
}

XAC_SIGSAFE int
xac_saved_open(struct xac_ctx *ctx, uint32_t entry, const uint8_t *bytes)
{
    struct xac_saved *s = ctx->saved;
    struct xac_saved_image image = {.place = 0, .entry = entry};
    struct xac_saved_page *p = page_for(s, entry);
    int rc;

    xac_assert(ctx->save_epoch == s->epoch);
    xac_assert(entry < ctx->n_entries);
    if (p == NULL)
        return errno;
    if (p->epoch == s->epoch)
        return 0;
    rc = reserve(&s->opened, (s->n_opened + 1) * sizeof(uint32_t));
    if (rc != 0)
        return rc;
    if (s->n_levels > 0 && p->newest <= xac_saved_level_at(s, s->n_levels - 1)->first) {
        rc = s->n_images < UINT32_MAX ? 0 : ENOMEM;
        if (rc == 0)
            rc = reserve(&s->images, (s->n_images + 1) * sizeof image);
        if (rc == 0 && bytes != NULL)
            rc = keep_bytes(s, bytes, &image.place);
        if (rc != 0)
            return rc;
        image.place += bytes != NULL;
        image.older = p->newest;
        p->newest = (uint32_t)++s->n_images;
        *xac_saved_image_at(s, s->n_images - 1) = image;
    }
    note_open(s, entry);
    return 0;
}

int
xac_saved_open_again(struct xac_ctx *ctx, uint32_t entry)
{
    struct xac_saved *s = ctx->saved;
    int rc = reserve(&s->opened, (s->n_opened + 1) * sizeof(uint32_t));

    xac_assert(page_at(s, entry)->newest != 0);
    if (rc == 0 && !xac_saved_is_open(ctx, entry))
        note_open(s, entry);
    return rc;
}

void
xac_saved_drop(struct xac_saved *s, uint64_t level)
{
    uint64_t first = xac_saved_level_at(s, level)->first;

    xac_assert(first <= s->n_images);
    for (uint64_t i = s->n_images; i-- > first;) {
        const struct xac_saved_image *image = xac_saved_image_at(s, i);

        xac_assert(page_at(s, image->entry)->newest == i + 1); /* (4) */
        page_at(s, image->entry)->newest = image->older;
        free_place(s, image);
    }
    s->n_images = first;
    s->n_levels = level + 1;
    if (first == 0)
        s->n_places = s->n_free = 0;
    xac_debug(xac_saved_assert(s));
}

/* forget_images -- all of them. */
static void
forget_images(struct xac_saved *s)
{
    for (uint64_t i = 0; i < s->n_images; i++)
        page_at(s, xac_saved_image_at(s, i)->entry)->newest = 0;
    s->n_images = s->n_places = s->n_free = 0;
    xac_assert(s->n_images == 0);
}

void
xac_saved_merge(struct xac_saved *s, uint64_t level)
{
    uint64_t from = xac_saved_level_at(s, level)->first, to = from, below;

    xac_assert(from <= s->n_images);
    if (level == 0) {
        forget_images(s);
        s->n_levels = 0;
        return;
    }
    below = xac_saved_level_at(s, level - 1)->first;
    for (uint64_t i = from; i < s->n_images; i++) {
        struct xac_saved_image image = *xac_saved_image_at(s, i);
        struct xac_saved_page *p = page_at(s, image.entry);

        /* One of the page's that came before has set `newest` to what is left of them. */
        if (p->newest <= i)
            image.older = p->newest;
        if (image.older > below) { /* the level below has an older one */
            free_place(s, &image);
            p->newest = image.older;
        } else {
            *xac_saved_image_at(s, to) = image;
            p->newest = (uint32_t)++to;
        }
    }
    s->n_images = to;
    s->n_levels = level;
    xac_debug(xac_saved_assert(s));
}

/* ---- The end --------------------------------------------------------------------------- */

/* end_file -- it is empty for the next transaction.  If that fails, there will be a new one. */
static void
end_file(struct xac_saved *s)
{
    xac_assert(s->n_places == 0);
    if (s->fd <= 0
        || (xac_handle_is_ours(s->fd, &s->handle) && xac_sys.ftruncate(s->fd, 0) == 0))
        return;
    xac_handle_close(s->fd, &s->handle);
    s->fd = 0;
}

/* forget -- a transaction's savepoints; the epoch stays, so that no page counts as open. */
static void
forget(struct xac_ctx *ctx)
{
    struct xac_saved *s = ctx->saved;

    forget_images(s);
    s->n_levels = s->n_opened = 0;
    s->is_lost = false;
    ctx->save_epoch = 0;
    xac_assert(s->n_images == 0);
    xac_assert(s->n_levels == 0);
}

void
xac_saved_end(struct xac_ctx *ctx)
{
    struct xac_saved *s = ctx->saved;

    if (xac_likely(ctx->save_epoch == 0))
        return;
    forget(ctx);
    end_file(s);
    if (s->pages.bytes > KEPT_BYTES)
        s->n_pages = 0;
    give_back(&s->levels, KEPT_BYTES);
    give_back(&s->images, KEPT_BYTES);
    give_back(&s->pages, KEPT_BYTES);
    give_back(&s->opened, KEPT_BYTES);
    give_back(&s->free, KEPT_BYTES);
    give_pieces_back(s, KEPT_PIECES);
    xac_assert(ctx->save_epoch == 0);
}

void
xac_saved_forked(struct xac_ctx *ctx)
{
    struct xac_saved *s = ctx->saved;

    if (s == NULL)
        return;
    forget(ctx);
    xac_handle_close(s->fd, &s->handle);
    s->fd = 0;
    xac_assert(ctx->save_epoch == 0);
}

void
xac_saved_close(struct xac_ctx *ctx)
{
    struct xac_saved *s = ctx->saved;

    xac_assert(ctx->save_epoch == 0);
    if (s == NULL)
        return;
    give_back(&s->levels, 0);
    give_back(&s->images, 0);
    give_back(&s->pages, 0);
    give_back(&s->opened, 0);
    give_back(&s->free, 0);
    give_pieces_back(s, 0);
    if (s->fd > 0)
        xac_handle_close(s->fd, &s->handle);
    free(s);
    ctx->saved = NULL;
}

/* ---- Checking ---------------------------------------------------------------------------- */

#define LOOK_AT 64 /* levels, and images, that one call looks at from each end */

/* level_assert -- invariant (1). */
static void
level_assert(const struct xac_saved *s, uint64_t i)
{
    const struct xac_saved_level *l = xac_saved_level_at(s, i);

    xac_require(l->first <= s->n_images);
    if (i > 0) {
        xac_require(xac_saved_level_at(s, i - 1)->mark < l->mark);
        xac_require(xac_saved_level_at(s, i - 1)->first <= l->first);
    }
}

/* level_of -- the level that an image belongs to. */
static uint64_t
level_of(const struct xac_saved *s, uint64_t i)
{
    uint64_t low = 0, high = s->n_levels;

    xac_assert(s->n_levels > 0);
    while (high - low > 1) { /* the last one that begins at or before it */
        uint64_t mid = (low + high) / 2;

        if (xac_saved_level_at(s, mid)->first <= i)
            low = mid;
        else
            high = mid;
    }
    xac_assert(xac_saved_level_at(s, low)->first <= i);
    return low;
}

/* image_assert -- invariants (2), (4) and (6). */
static void
image_assert(const struct xac_saved *s, uint64_t i)
{
    const struct xac_saved_image *image = xac_saved_image_at(s, i);

    xac_require(image->entry < s->n_pages);
    xac_require(page_at(s, image->entry)->newest > i);
    xac_require(image->place <= s->n_places);
    xac_require(image->older <= xac_saved_level_at(s, level_of(s, i))->first);
    if (image->older != 0)
        xac_require(xac_saved_image_at(s, image->older - 1)->entry == image->entry);
}

void
xac_saved_assert(const struct xac_saved *s)
{
    xac_require(s->n_levels > 0 || s->n_images == 0);
    xac_require(s->n_free <= s->n_places);
    for (uint64_t i = 0; i < s->n_levels && i < LOOK_AT; i++) {
        level_assert(s, i);
        level_assert(s, s->n_levels - 1 - i);
    }
    for (uint64_t i = 0; i < s->n_images && i < LOOK_AT; i++) {
        image_assert(s, i);
        image_assert(s, s->n_images - 1 - i);
    }
}
