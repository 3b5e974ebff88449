/* SPDX-License-Identifier: MIT */
/*
 * manifest.c -- see manifest.h.
 */
#include <config.h>

#include "log/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/stored.h"
#include "base/sys.h"
#include "log/backup_note.h"
#include "log/log_name.h"
#include "log/master.h"

#define NEW_NAME       "xac-manifest-new"
#define BYTES_LEAST    (sizeof(struct xac_manifest_head) + sizeof(struct xac_master_slot))
#define NAME_MAX_BYTES 65536u

static const char unfinished_text[] =
    "A backup or a restore is being made here, or was cut short.  While this file is here,\n"
    "the directory is no backup.\n";

/* ---- In memory -------------------------------------------------------------------- */

uint64_t
xac_manifest_blocks(const struct xac_manifest *m, const struct xac_manifest_file *f)
{
    uint64_t pages = xac_manifest_pages(m, f);

    xac_assert(m->head.page_size != 0);
    return pages / XAC_PAGELIST_ENTRIES + (pages % XAC_PAGELIST_ENTRIES != 0);
}

/* grow -- room for one more element; ret the array, NULL if out of memory. */
static void *
grow(void *array, size_t n, size_t *sizep, size_t bytes)
{
    size_t want = *sizep == 0 ? 64 : *sizep * 2;
    void *more;

    xac_assert(n <= *sizep);
    if (n < *sizep)
        return array;
    more = realloc(array, want * bytes);
    if (more != NULL)
        *sizep = want;
    return more;
}

struct xac_manifest_file *
xac_manifest_add(struct xac_manifest *m, const char *path, const char *copy)
{
    struct xac_manifest_file *more =
        (struct xac_manifest_file *)grow(m->file, m->n_files, &m->files_size,
                                         sizeof m->file[0]);
    struct xac_manifest_file f = {.first_run = m->n_runs,
                                  .first_page = m->head.n_changed};

    xac_assert(path[0] != '\0');
    xac_assert(copy[0] != '\0');
    if (more != NULL)
        m->file = more;
    f.path = strdup(path);
    f.copy = strdup(copy);
    if (more == NULL || f.path == NULL || f.copy == NULL) {
        free(f.path);
        free(f.copy);
        (void)xac_err(ENOMEM, "backup: list of files");
        return NULL;
    }
    if (m->n_files > 0) {
        const struct xac_manifest_file *last = &m->file[m->n_files - 1];

        f.list_block = last->list_block + xac_manifest_blocks(m, last);
    }
    m->file[m->n_files] = f;
    return &m->file[m->n_files++];
}

int
xac_manifest_add_page(struct xac_manifest *m, uint64_t page)
{
    struct xac_manifest_file *f = &m->file[m->n_files - 1];
    struct xac_manifest_run *last = f->n_runs > 0 ? &m->run[m->n_runs - 1] : NULL;
    struct xac_manifest_run *more;

    xac_assert(m->n_files > 0);
    xac_assert(last == NULL || page >= last->page + last->n); /* (2) */
    if (last == NULL || page != last->page + last->n) {
        more = (struct xac_manifest_run *)grow(m->run, m->n_runs, &m->runs_size,
                                               sizeof m->run[0]);
        if (more == NULL)
            return xac_err(ENOMEM, "backup: list of pages");
        m->run = more;
        last = &m->run[m->n_runs++];
        *last = (struct xac_manifest_run){.page = page};
        f->n_runs++;
    }
    last->n++;
    m->head.n_changed++;
    xac_assert(m->n_runs <= m->runs_size);
    xac_assert(page == last->page + last->n - 1);
    return 0;
}

const struct xac_manifest_file *
xac_manifest_find(const struct xac_manifest *m, const char *path)
{
    xac_assert(path[0] != '\0');
    xac_assert(m->n_files <= m->files_size);
    for (size_t i = 0; i < m->n_files; i++) {
        if (strcmp(m->file[i].path, path) == 0)
            return &m->file[i];
    }
    return NULL;
}

void
xac_manifest_free(struct xac_manifest *m)
{
    for (size_t i = 0; i < m->n_files; i++) {
        free(m->file[i].path);
        free(m->file[i].copy);
    }
    free(m->file);
    free(m->run);
    *m = (struct xac_manifest){.n_files = 0};
    xac_assert(m->file == NULL);
}

/* ---- Writing ---------------------------------------------------------------------- */

/* entry_bytes -- of a table's entry with names of these lengths. */
static uint64_t
entry_bytes(uint64_t path_len, uint64_t copy_len)
{
    xac_assert(path_len != 0);
    xac_assert(copy_len != 0);
    return (sizeof(struct xac_manifest_entry) + path_len + copy_len + 7) & ~UINT64_C(7);
}

/* table_put -- all entries. */
static void
table_put(const struct xac_manifest *m, uint8_t *to)
{
    for (size_t i = 0; i < m->n_files; i++) {
        const struct xac_manifest_file *f = &m->file[i];
        struct xac_manifest_entry e = {.length = f->length,
                                       .list_check = f->list_check,
                                       .n_runs = f->n_runs,
                                       .inode = f->who.inode,
                                       .birth_ns = f->who.birth_ns,
                                       .held_lsn = f->held_lsn,
                                       .file = f->id,
                                       .flags = f->is_missing ? XAC_MANIFEST_MISSING : 0,
                                       .uid = (uint32_t)f->owner.uid,
                                       .gid = (uint32_t)f->owner.gid,
                                       .mode = (uint32_t)f->owner.mode,
                                       .path_len = (uint32_t)strlen(f->path),
                                       .copy_len = (uint32_t)strlen(f->copy)};

        memcpy(to, &e, sizeof e);
        memcpy(to + sizeof e, f->path, e.path_len);
        memcpy(to + sizeof e + e.path_len, f->copy, e.copy_len);
        to += entry_bytes(e.path_len, e.copy_len);
    }
}

int
xac_manifest_write(struct xac_manifest *m, int dirfd, const struct xac_owner *owner)
{
    struct xac_newfile made = {.dirfd = dirfd,
                               .made = NEW_NAME,
                               .name = XAC_MANIFEST_NAME,
                               .owner = owner,
                               .is_synced = true};
    struct xac_manifest_head *h = &m->head;
    size_t n, at = BYTES_LEAST;
    uint8_t *bytes;
    int rc;

    memcpy(h->magic, XAC_MANIFEST_MAGIC, sizeof h->magic);
    h->version = XAC_MANIFEST_VERSION;
    h->n_files = m->n_files;
    h->n_runs = m->n_runs;
    h->table_bytes = 0;
    for (size_t i = 0; i < m->n_files; i++)
        h->table_bytes += entry_bytes(strlen(m->file[i].path), strlen(m->file[i].copy));
    n = at + h->table_bytes + m->n_runs * sizeof m->run[0];
    xac_assert(n >= BYTES_LEAST);
    xac_assert(h->redo_lsn <= h->end_lsn);
    bytes = (uint8_t *)calloc(1, n);
    if (bytes == NULL)
        return xac_err(ENOMEM, "%s", XAC_MANIFEST_NAME);
    memcpy(bytes + sizeof *h, &m->master, sizeof m->master);
    table_put(m, bytes + at);
    if (m->n_runs > 0)
        memcpy(bytes + at + h->table_bytes, m->run, m->n_runs * sizeof m->run[0]);
    h->body_check = xac_xxh64(bytes + sizeof *h, n - sizeof *h);
    h->checksum = xac_xxh64(h, offsetof(struct xac_manifest_head, checksum));
    memcpy(bytes, h, sizeof *h);
    rc = xac_newfile_replace(&made, bytes, n, NULL);
    free(bytes);
    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_MANIFEST_NAME);
}

int
xac_manifest_begin(int dirfd, const struct xac_owner *owner)
{
    struct xac_newfile f = {.dirfd = dirfd,
                            .made = XAC_UNFINISHED_NAME "-new",
                            .name = XAC_UNFINISHED_NAME,
                            .owner = owner,
                            .is_synced = true};
    int rc = xac_newfile_replace(&f, unfinished_text, sizeof unfinished_text - 1, NULL);

    xac_assert(dirfd >= 0);
    return rc == 0 ? 0 : xac_err(rc, "%s: make", XAC_UNFINISHED_NAME);
}

int
xac_manifest_unmark(int dirfd)
{
    xac_assert(dirfd >= 0);
    if (xac_sys.unlinkat(dirfd, XAC_UNFINISHED_NAME, 0) != 0 && errno != ENOENT)
        return xac_err(errno, "%s: remove", XAC_UNFINISHED_NAME);
    return 0;
}

/* ---- Reading ---------------------------------------------------------------------- */

/* A manifest as it was read: its head and master slot alone, until they say that it has the right length. */
struct text {
    const char *dir;
    uint8_t *bytes;
    size_t n; /* of the whole file                                                     */
};

/* wrong -- ret XAC_EDAMAGED. */
static int
wrong(const struct text *t, size_t offset, const char *why)
{
    xac_assert(why[0] != '\0');
    return xac_err(XAC_EDAMAGED, "%s/%s: offset %zu: %s", t->dir, XAC_MANIFEST_NAME,
                   offset, why);
}

/* head_take -- check the head by itself, and that the rest has its length. */
static int
head_take(const struct text *t, struct xac_manifest_head *h)
{
    uint64_t rest = t->n - BYTES_LEAST;
    bool is_full;

    xac_assert(t->n >= BYTES_LEAST);
    memcpy(h, t->bytes, sizeof *h);
    if (memcmp(h->magic, XAC_MANIFEST_MAGIC, sizeof h->magic) != 0)
        return wrong(t, 0, "no manifest of a backup");
    if (h->checksum != xac_xxh64(h, offsetof(struct xac_manifest_head, checksum)))
        return wrong(t, 0, "checksum of the head");
    if (h->version != XAC_MANIFEST_VERSION)
        return xac_err(XAC_EVERSION, "%s/%s: version %" PRIu32, t->dir, XAC_MANIFEST_NAME,
                       h->version);
    is_full = h->link == 0;
    if (!xac_bytes_are_zero(h->reserved, sizeof h->reserved)
        || xac_bytes_are_zero(h->id, sizeof h->id)
        || is_full != xac_bytes_are_zero(h->base, sizeof h->base) || h->page_size < 4096
        || h->page_size > 65536 || (h->page_size & (h->page_size - 1)) != 0
        || h->redo_lsn > h->end_lsn || h->end_lsn > XAC_LSN_LIMIT
        || (is_full && (h->n_runs | h->n_changed | h->base_lsn) != 0))
        return wrong(t, 0, "values of the head");
    if (h->table_bytes > rest || h->n_runs > rest / sizeof(struct xac_manifest_run)
        || h->table_bytes + h->n_runs * sizeof(struct xac_manifest_run) != rest)
        return wrong(t, 120, "another length than its parts have");
    return 0;
}

/* master_take -- the slot that a restored environment gets. */
static int
master_take(const struct text *t, struct xac_manifest *m)
{
    xac_assert(t->n >= BYTES_LEAST);
    memcpy(&m->master, t->bytes + sizeof m->head, sizeof m->master);
    if (!xac_master_is_valid(&m->master)
        || memcmp(m->master.identity, m->head.identity, sizeof m->head.identity) != 0
        || m->master.page_size != m->head.page_size
        || m->master.generation != m->head.generation
        || m->master.redo_lsn != m->head.redo_lsn)
        return wrong(t, sizeof m->head, "master record");
    return 0;
}

/* names_ok -- a path that the log can have, and a copy that lies in the backup. */
static bool
names_ok(const char *path, const char *copy, const struct xac_manifest_entry *e)
{
    return strlen(path) == e->path_len && strlen(copy) == e->copy_len
           && strchr(path, '\n') == NULL && strchr(copy, '\n') == NULL
           && (path[0] == '/' || xac_stored_is_inside(path))
           && xac_stored_is_inside(copy);
}

/* entry_take -- an entry at *atp, which moves behind it. */
static int
entry_take(const struct text *t, struct xac_manifest *m, size_t *atp, size_t end)
{
    struct xac_manifest_entry e;
    struct xac_manifest_file *f;
    char *path, *copy;
    bool is_out_of_memory, is_ok;

    xac_assert(*atp <= end);
    xac_assert(end <= t->n);
    if (end - *atp < sizeof e)
        return wrong(t, *atp, "entry of a file");
    memcpy(&e, t->bytes + *atp, sizeof e);
    if (e.path_len > NAME_MAX_BYTES || e.copy_len > NAME_MAX_BYTES || e.path_len == 0
        || e.copy_len == 0 || end - *atp < entry_bytes(e.path_len, e.copy_len)
        || e.length > XAC_LSN_LIMIT || (e.flags & ~XAC_MANIFEST_MISSING) != 0
        || e.n_runs > m->head.n_runs || e.reserved != 0 || (e.mode & ~0666u) != 0)
        return wrong(t, *atp, "entry of a file");
    path = strndup((const char *)t->bytes + *atp + sizeof e, e.path_len);
    copy = strndup((const char *)t->bytes + *atp + sizeof e + e.path_len, e.copy_len);
    is_out_of_memory = path == NULL || copy == NULL;
    is_ok = !is_out_of_memory && names_ok(path, copy, &e);
    f = is_ok ? xac_manifest_add(m, path, copy) : NULL;
    free(path);
    free(copy);
    if (is_out_of_memory)
        return xac_err(ENOMEM, "%s/%s", t->dir, XAC_MANIFEST_NAME);
    if (!is_ok)
        return wrong(t, *atp, "name of a file, or it leads out of the backup");
    if (f == NULL)
        return ENOMEM;
    f->length = e.length;
    f->list_check = e.list_check;
    f->n_runs = (size_t)e.n_runs;
    f->who = (struct xac_identity){.inode = e.inode, .birth_ns = e.birth_ns};
    f->owner = (struct xac_owner){.uid = e.uid, .gid = e.gid, .mode = e.mode};
    f->held_lsn = e.held_lsn;
    f->id = e.file;
    f->is_missing = (e.flags & XAC_MANIFEST_MISSING) != 0;
    *atp += (size_t)entry_bytes(e.path_len, e.copy_len);
    return 0;
}

/* runs_take -- (2) for every file, and their places in xac.changed. */
static int
runs_take(const struct text *t, struct xac_manifest *m, size_t at)
{
    uint64_t changed = 0;
    size_t n = 0;

    xac_assert(m->run == NULL);
    xac_assert(at <= t->n);
    m->n_runs = m->runs_size = (size_t)m->head.n_runs;
    m->run = (struct xac_manifest_run *)calloc(m->n_runs + 1, sizeof m->run[0]);
    if (m->run == NULL)
        return xac_err(ENOMEM, "%s", XAC_MANIFEST_NAME);
    memcpy(m->run, t->bytes + at, m->n_runs * sizeof m->run[0]);
    for (size_t i = 0; i < m->n_files; i++) {
        struct xac_manifest_file *f = &m->file[i];
        uint64_t pages = xac_manifest_pages(m, f), from = 0;

        f->first_run = n;
        f->first_page = changed;
        if (f->n_runs > m->n_runs - n)
            return wrong(t, at, "more runs than there are");
        for (size_t end = n + f->n_runs; n < end; n++) {
            const struct xac_manifest_run *run = &m->run[n];

            if (run->page < from || run->page >= pages || run->n == 0
                || run->n > pages - run->page)
                return wrong(t, at + n * sizeof *run, "run of pages");
            from = run->page + run->n;
            changed += run->n;
        }
    }
    return n == m->n_runs && changed == m->head.n_changed
               ? 0
               : wrong(t, at, "another number of pages than the head says");
}

/* parse -- everything; the head has been looked at. */
static int
parse(const struct text *t, struct xac_manifest *m)
{
    struct xac_manifest_head h;
    size_t at = BYTES_LEAST, end;
    int rc = 0;

    memcpy(&h, t->bytes, sizeof h);
    if (h.body_check != xac_xxh64(t->bytes + sizeof h, t->n - sizeof h))
        rc = wrong(t, sizeof h, "checksum of table and runs");
    m->head = h;
    m->head.n_changed = 0; /* xac_manifest_add counts */
    if (rc == 0)
        rc = master_take(t, m);
    end = at + (size_t)h.table_bytes;
    for (uint64_t i = 0; rc == 0 && i < h.n_files; i++)
        rc = entry_take(t, m, &at, end);
    m->head.n_changed = h.n_changed;
    if (rc == 0 && at != end)
        rc = wrong(t, at, "more in the table than its files");
    return rc == 0 ? runs_take(t, m, at) : rc;
}

/* text_read_from -- bytes of the file from an offset to `end`. */
static int
text_read_from(struct text *t, int fd, size_t at, size_t end)
{
    uint8_t *more = (uint8_t *)realloc(t->bytes, end);
    size_t got = 0;
    int rc;

    xac_assert(at < end || at == BYTES_LEAST);
    if (more == NULL)
        return xac_err(ENOMEM, "%s/%s", t->dir, XAC_MANIFEST_NAME);
    t->bytes = more;
    rc = xac_read_full(fd, t->bytes + at, end - at, at, &got);
    if (rc != 0)
        return xac_err(rc, "%s/%s: read", t->dir, XAC_MANIFEST_NAME);
    return got == end - at ? 0 : wrong(t, at + got, "became shorter while it was read");
}

/* text_read -- the file: memory for as much as its head says, if that is its length.  ret ENOENT without words. */
static int
text_read(struct text *t, int dirfd)
{
    struct xac_manifest_head h;
    struct stat st;
    int rc = 0;
    int fd =
        xac_sys.openat(dirfd, XAC_MANIFEST_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    if (fd < 0)
        return errno == ENOENT ? ENOENT
                               : xac_err(errno, "%s/%s: open", t->dir, XAC_MANIFEST_NAME);
    if (xac_sys.fstat(fd, &st) != 0)
        rc = xac_err(errno, "%s/%s: stat", t->dir, XAC_MANIFEST_NAME);
    else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < BYTES_LEAST)
        rc = wrong(t, (size_t)st.st_size, "too short");
    if (rc == 0)
        rc = text_read_from(t, fd, 0, BYTES_LEAST);
    if (rc == 0) {
        t->n = (size_t)st.st_size;
        rc = head_take(t, &h);
    }
    if (rc == 0)
        rc = text_read_from(t, fd, BYTES_LEAST, t->n);
    (void)xac_sys.close(fd);
    return rc;
}

/* is_there -- a file of that name? */
static bool
is_there(int dirfd, const char *name)
{
    struct statx st;

    xac_assert(name[0] != '\0');
    return xac_sys.statx(dirfd, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st) == 0;
}

/* no_backup -- why there is no manifest. */
static int
no_backup(int dirfd, const char *dir)
{
    if (is_there(dirfd, XAC_UNFINISHED_NAME))
        return xac_err(XAC_ENOTENV, "%s: a backup that was not finished (%s)", dir,
                       XAC_UNFINISHED_NAME);
    if (is_there(dirfd, XAC_BACKUP_NAME))
        return xac_err(
            XAC_ENOTENV,
            "%s: a backup without %s, made by an older version: increments need"
            " a new full backup",
            dir, XAC_MANIFEST_NAME);
    if (is_there(dirfd, XAC_MASTER_NAME))
        return xac_err(XAC_ENOTENV,
                       "%s: an environment and no backup, or a backup that has been"
                       " recovered and may have changed since",
                       dir);
    return xac_err(XAC_ENOTENV, "%s: no backup (no %s)", dir, XAC_MANIFEST_NAME);
}

/* check_full -- is it still as it was copied?  (1) */
static int
check_full(const struct xac_manifest *m, int dirfd, const char *dir)
{
    struct xac_backup_note note;
    int rc;

    xac_assert(xac_manifest_is_full(m));
    if (!is_there(dirfd, XAC_MASTER_NAME))
        return xac_err(XAC_ENOTENV, "%s: a backup that was not finished (no %s)", dir,
                       XAC_MASTER_NAME);
    rc = xac_backup_note_read(dirfd, &note);
    if (rc == ENOENT)
        rc = xac_err(XAC_ENOTENV, "%s: has been recovered, and is no backup any more",
                     dir);
    else if (rc == 0 && note.end_lsn != m->head.end_lsn)
        rc = xac_err(XAC_ENOTENV,
                     "%s: has been rolled forward, and is no backup any more", dir);
    xac_backup_note_free(&note);
    return rc;
}

int
xac_manifest_load(struct xac_manifest *m, int dirfd, const char *dir)
{
    struct text t = {.dir = dir};
    int rc = text_read(&t, dirfd);

    xac_assert(dirfd >= 0);
    *m = (struct xac_manifest){.n_files = 0};
    if (rc == 0)
        rc = parse(&t, m);
    free(t.bytes);
    return rc;
}

int
xac_manifest_read(struct xac_manifest *m, int dirfd, const char *dir)
{
    int rc = xac_manifest_load(m, dirfd, dir);

    if (rc == ENOENT)
        rc = no_backup(dirfd, dir);
    else if (rc == 0 && xac_manifest_is_full(m))
        rc = check_full(m, dirfd, dir);
    return rc;
}
