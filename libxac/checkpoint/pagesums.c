/* SPDX-License-Identifier: MIT */
/*
 * pagesums.c -- see pagesums.h.
 */
#include <config.h>

#include "checkpoint/pagesums.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "log/recover_scan.h"
#include "shared/env_state.h"
#include "shared/registry.h"

#define RUN_MAX 512u /* entries of one write */

void
xac_pagesums_name(char name[32], uint64_t inode)
{
    (void)snprintf(name, 32, XAC_PAGESUMS_PREFIX "%016llx", (unsigned long long)inode);
}

bool
xac_pagesums_head_valid(const struct xac_pagesums_head *h, const uint8_t *identity,
                        uint32_t page_size)
{
    return memcmp(h->magic, XAC_PAGESUMS_MAGIC, sizeof h->magic) == 0 && h->version >= 1
           && h->version <= XAC_PAGESUMS_VERSION && h->page_size == page_size
           && memcmp(h->identity, identity, sizeof h->identity) == 0 && h->path_len > 0
           && h->path_len < sizeof h->path && h->path[h->path_len] == '\0'
           && h->checksum == xac_xxh64(h, offsetof(struct xac_pagesums_head, checksum));
}

struct xac_identity
xac_pagesums_who(const struct xac_pagesums_head *h)
{
    return (struct xac_identity){.device = h->device,
                                 .inode = h->inode,
                                 .birth_ns = h->birth_ns};
}

uint64_t
xac_pagesum_check(const struct xac_pagesum *e)
{
    return xac_xxh64(e, offsetof(struct xac_pagesum, check));
}

/* ---- Notes ------------------------------------------------------------------------ */

int
xac_pagesums_add(struct xac_pagesums *s, uint32_t file, uint64_t page, const void *bytes,
                 size_t page_size)
{
    xac_assert(bytes != NULL);
    xac_assert(page_size != 0);
    if (s->n == s->size) {
        size_t want = s->size == 0 ? 1024 : s->size * 2;
        struct xac_pagesums_note *more =
            (struct xac_pagesums_note *)realloc(s->note, want * sizeof more[0]);

        if (more == NULL)
            return xac_err(ENOMEM, "checksums of pages");
        s->note = more;
        s->size = want;
    }
    s->note[s->n++] = (struct xac_pagesums_note){.page = page,
                                                 .checksum = xac_xxh64(bytes, page_size),
                                                 .file = file};
    xac_assert(s->n <= s->size);
    return 0;
}

void
xac_pagesums_free(struct xac_pagesums *s)
{
    free(s->note);
    *s = (struct xac_pagesums){.n = 0};
    xac_assert(s->note == NULL);
}

static int
by_file_and_page(const void *a, const void *b)
{
    const struct xac_pagesums_note *x = (const struct xac_pagesums_note *)a;
    const struct xac_pagesums_note *y = (const struct xac_pagesums_note *)b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->page > y->page) - (x->page < y->page);
}

/* ---- A file of checksums ---------------------------------------------------------- */

/* make_new -- a file with a header and no entries, in place of what has its name. */
static int
make_new(const struct xac_pagesums_store *w, const struct xac_pagesums_file *f,
         const char *name, int *fdp)
{
    struct xac_pagesums_head h = {.version = XAC_PAGESUMS_VERSION,
                                  .page_size = w->page_size,
                                  .device = f->who.device,
                                  .inode = f->who.inode,
                                  .birth_ns = f->who.birth_ns,
                                  .path_len = (uint32_t)strlen(f->path)};
    struct xac_newfile made = {.dirfd = w->dirfd,
                               .made = XAC_PAGESUMS_NEW,
                               .name = name,
                               .is_synced = true};

    xac_assert(w->page_size != 0);
    if (h.path_len >= sizeof h.path)
        return ENAMETOOLONG;
    memcpy(h.magic, XAC_PAGESUMS_MAGIC, sizeof h.magic);
    memcpy(h.identity, w->identity, sizeof h.identity);
    memcpy(h.path, f->path, h.path_len);
    h.checksum = xac_xxh64(&h, offsetof(struct xac_pagesums_head, checksum));
    return xac_newfile_replace(&made, &h, sizeof h, fdp);
}

/*
 * open_file -- the file with the checksums of a mapped file.
 *
 * out  fdp  -1 if there is none, or none of that file, and none is to be made
 * ret  0 or errno.
 */
static int
open_file(const struct xac_pagesums_store *w, const struct xac_pagesums_file *f,
          const char *name, int *fdp)
{
    struct xac_pagesums_head h;
    struct xac_identity who;
    size_t got;
    int fd = xac_sys.openat(w->dirfd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    int rc;

    xac_assert(w->dirfd >= 0);
    *fdp = -1;
    if (fd < 0 && errno != ENOENT)
        return errno;
    if (fd >= 0) {
        rc = xac_read_full(fd, &h, sizeof h, 0, &got);
        who = xac_pagesums_who(&h);
        if (rc == 0 && got == sizeof h
            && xac_pagesums_head_valid(&h, w->identity, w->page_size)
            && xac_identity_is_same(&who, &f->who) && strcmp(h.path, f->path) == 0) {
            *fdp = fd;
            return 0;
        }
        (void)xac_sys.close(fd);
        if (rc != 0)
            return rc;
    }
    return w->make ? make_new(w, f, name, fdp) : 0;
}

/* put_run -- entries of pages that are neighbours. */
static int
put_run(const struct xac_pagesums_store *w, int fd, const struct xac_pagesums_note *note,
        size_t n)
{
    struct xac_pagesum entry[RUN_MAX];

    xac_assert(n <= RUN_MAX);
    xac_assert(n > 0);
    xac_assert(fd >= 0);
    xac_assert(w->lsn != 0);
    for (size_t i = 0; i < n; i++) {
        entry[i] = (struct xac_pagesum){.page = note[i].page,
                                        .checksum = note[i].checksum,
                                        .lsn = w->lsn};
        entry[i].check = xac_pagesum_check(&entry[i]);
    }
    return xac_write_full(fd, entry, n * sizeof entry[0],
                          sizeof(struct xac_pagesums_head)
                              + note->page * sizeof entry[0]);
}

/* put_file -- entries of one file; sorted. */
static int
put_file(const struct xac_pagesums_store *w, const struct xac_pagesums_note *note,
         size_t n)
{
    struct xac_pagesums_file f;
    char name[32];
    int fd = -1;
    int rc = w->file(w->arg, note->file, &f);

    xac_assert(n > 0);
    xac_assert(note[0].file == note[n - 1].file);
    if (rc != 0)
        return rc;
    xac_pagesums_name(name, f.who.inode);
    rc = open_file(w, &f, name, &fd);
    for (size_t i = 0, run; rc == 0 && fd >= 0 && i < n; i += run) {
        run = 1;
        while (i + run < n && run < RUN_MAX && note[i + run].page == note[i].page + run)
            run++;
        rc = put_run(w, fd, note + i, run);
    }
    if (rc == 0 && fd >= 0 && xac_sys.fdatasync(fd) != 0)
        rc = errno;
    if (fd >= 0)
        (void)xac_sys.close(fd);
    return rc == 0 ? 0 : xac_err(rc, "%s: checksums of %s", name, f.path);
}

int
xac_pagesums_put(struct xac_pagesums *s, const struct xac_pagesums_store *where)
{
    int rc = 0;

    xac_assert(where->file != NULL);
    if (s->n == 0)
        return 0;
    xac_assert(where->lsn != 0);
    qsort(s->note, s->n, sizeof s->note[0], by_file_and_page);
    for (size_t i = 0, n; rc == 0 && i < s->n; i += n) {
        n = 1;
        while (i + n < s->n && s->note[i + n].file == s->note[i].file)
            n++;
        rc = put_file(where, s->note + i, n);
    }
    s->n = 0;
    xac_assert(s->n == 0);
    return rc;
}

/* ---- Forgetting ------------------------------------------------------------------- */

/*
 * xac_pagesums_drop -- remove the file, durably.
 *
 * A process that did so before may have died, or failed, before it synced the directory.  So the
 * directory is synced once even if the file is missing.  And if the sync of a removal fails, the
 * removal is taken back, so that the next call has to repeat it: another sync would succeed
 * without doing anything.
 */
int
xac_pagesums_drop(int dirfd, uint64_t inode, bool *is_syncedp)
{
    char name[32];
    bool is_there;
    int rc;

    xac_assert(dirfd >= 0);
    xac_pagesums_name(name, inode);
    is_there = xac_sys.renameat(dirfd, name, dirfd, XAC_PAGESUMS_NEW) == 0;
    if (!is_there && errno != ENOENT)
        return xac_err(errno, "%s: remove", name);
    if (!is_there && *is_syncedp)
        return 0;
    rc = xac_sync_dir(dirfd);
    if (rc != 0) {
        if (is_there)
            (void)xac_sys.renameat(dirfd, XAC_PAGESUMS_NEW, dirfd, name);
        return xac_err(rc, "%s: sync of its removal", name);
    }
    if (is_there)
        (void)xac_sys.unlinkat(dirfd, XAC_PAGESUMS_NEW, 0);
    *is_syncedp = true;
    return 0;
}

/* drop_named -- for xac_scan_names. */
static int
drop_named(void *arg, const char *name)
{
    const int *dirfd = (const int *)arg;
    unsigned long long inode;
    bool is_synced = false;
    char canonical[32];

    if (sscanf(name, XAC_PAGESUMS_PREFIX "%16llx", &inode) != 1)
        return 0;
    xac_pagesums_name(canonical, inode);
    return strcmp(name, canonical) == 0 ? xac_pagesums_drop(*dirfd, inode, &is_synced)
                                        : 0;
}

int
xac_pagesums_drop_all(int dirfd)
{
    xac_assert(dirfd >= 0);
    return xac_scan_names(dirfd, XAC_PAGESUMS_PREFIX, drop_named, &dirfd);
}

/* ---- A checkpoint's --------------------------------------------------------------- */

/* registered -- which file has that id. */
static int
registered(void *arg, uint32_t id, struct xac_pagesums_file *out)
{
    const struct xac_env *env = (const struct xac_env *)arg;
    const struct xac_file *f = xac_file_at(env, id);

    xac_assert(id != 0);
    *out = (struct xac_pagesums_file){
        .who = f->who,
        .path = (const char *)xac_shm_at(&env->shm, f->path),
    };
    return 0;
}

int
xac_pagesums_checkpoint(struct xac_env *env, struct xac_pagesums *s, uint64_t lsn)
{
    struct xac_pagesums_store where = {.dirfd = env->dirfd,
                                       .identity = (const uint8_t *)env->ctl->identity,
                                       .page_size = (uint32_t)env->page_size,
                                       .lsn = lsn,
                                       .make = true,
                                       .file = registered,
                                       .arg = env};

    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    return xac_pagesums_put(s, &where);
}
