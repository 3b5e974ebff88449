/* SPDX-License-Identifier: MIT */
/*
 * rewind_plan.c -- see rewind_plan.h.
 */
#include <config.h>

#include "ship/rewind_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "backup/changed.h"
#include "base/annot.h"
#include "base/err.h"
#include "base/identity.h"
#include "log/block.h"
#include "log/recover_scan.h"
#include "log/slots.h"
#include "shared/address_list.h"

#define ANEW    "remove the directory, and receive anew"
#define NO_LINE XAC_LINEAGE_NAME " does not have all generations since"

/* A file that the own log names. */
struct named {
    char *path;
    struct xac_identity who; /* before the fork, if it is named there                 */
    bool is_before, is_behind;
    bool is_other;  /* behind the fork another file has the path                      */
    uint64_t *bits; /* pages that are named                                           */
    size_t words;
};

/* Which file has an id in the generation that is being read. */
struct by_id {
    struct named **file;
    size_t n;
};

struct planning {
    const struct xac_rewind_own *own;
    struct xac_rewind_note *note;
    struct named **file; /* by path                                                   */
    size_t n_files, files_size;
    struct by_id id;
    bool is_behind; /* what is read stands behind the fork                            */
};

/* ---- The source's files ---------------------------------------------------------------- */

int
xac_rewind_theirs_add(struct xac_rewind_theirs *t, const char *path)
{
    char *copy = strdup(path);

    xac_assert(t->n_files <= t->files_size);
    if (copy != NULL && t->n_files == t->files_size) {
        size_t want = 2 * t->files_size + 16;
        char **grown = (char **)realloc(t->file, want * sizeof *grown);

        if (grown != NULL) {
            t->file = grown;
            t->files_size = want;
        }
    }
    if (copy == NULL || t->n_files == t->files_size) {
        free(copy);
        return xac_err(ENOMEM, "list of files");
    }
    t->file[t->n_files++] = copy;
    return 0;
}

void
xac_rewind_theirs_free(struct xac_rewind_theirs *t)
{
    xac_assert(t->n_files <= t->files_size);
    for (size_t i = 0; i < t->n_files; i++)
        free(t->file[i]);
    free(t->file);
    t->file = NULL;
    t->n_files = t->files_size = 0;
}

static int
compare_paths(const void *a, const void *b)
{
    xac_assert(a != NULL && b != NULL);
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* has -- does the source have it?  The list is sorted. */
static bool
has(const struct xac_rewind_theirs *t, const char *path)
{
    xac_assert(t->n_files == 0 || t->file != NULL);
    return t->n_files > 0
           && bsearch(&path, t->file, t->n_files, sizeof t->file[0], compare_paths)
                  != NULL;
}

/* ---- Names in the own log -------------------------------------------------------------- */

/* position -- where the path is, or belongs. */
static size_t
position(const struct planning *p, const char *path)
{
    size_t lo = 0, hi = p->n_files;

    xac_assert(path[0] != '\0');
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (strcmp(p->file[mid]->path, path) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* find -- NULL: the log does not name it. */
static struct named *
find(const struct planning *p, const char *path)
{
    size_t at = position(p, path);

    xac_assert(at <= p->n_files);
    return at < p->n_files && strcmp(p->file[at]->path, path) == 0 ? p->file[at] : NULL;
}

/* insert -- a file that is not there; the path becomes its own, or is freed.  NULL: out of memory. */
static struct named *
insert(struct planning *p, char *path)
{
    struct named *f = (struct named *)calloc(1, sizeof *f);
    size_t at = position(p, path);

    xac_assert(at == p->n_files || strcmp(p->file[at]->path, path) != 0);
    if (f != NULL && p->n_files == p->files_size) {
        size_t want = 2 * p->files_size + 16;
        struct named **grown =
            (struct named **)realloc(p->file, want * sizeof(struct named *));

        if (grown != NULL) {
            p->file = grown;
            p->files_size = want;
        }
    }
    if (f == NULL || p->n_files == p->files_size) {
        free(f);
        free(path);
        return NULL;
    }
    f->path = path;
    memmove(p->file + at + 1, p->file + at, (p->n_files - at) * sizeof(struct named *));
    p->file[at] = f;
    p->n_files++;
    return f;
}

/* note_id -- the file has that id from here on; ret 0 or ENOMEM. */
static int
note_id(struct planning *p, uint32_t id, struct named *f)
{
    if (id >= p->id.n) {
        size_t want = (size_t)id + 64;
        struct named **grown =
            (struct named **)realloc(p->id.file, want * sizeof(struct named *));

        xac_assert(f != NULL);
        if (grown == NULL)
            return xac_err(ENOMEM, "list of files");
        memset(grown + p->id.n, 0, (want - p->id.n) * sizeof(struct named *));
        p->id.file = grown;
        p->id.n = want;
    }
    p->id.file[id] = f;
    return 0;
}

/* note_name -- an XFILE record. */
static int
note_name(struct planning *p, const struct xac_xfile *rec)
{
    struct xac_identity who = {.device = rec->device,
                               .inode = rec->inode,
                               .birth_ns = xac_xfile_birth(rec)};
    char *path = strndup(xac_xfile_path(rec), rec->path_len);
    struct named *f = path != NULL ? find(p, path) : NULL;

    xac_assert(rec->r.type == XAC_XFILE);
    if (f != NULL)
        free(path);
    else if (path != NULL)
        f = insert(p, path);
    if (f == NULL)
        return xac_err(ENOMEM, "list of files");
    if (!p->is_behind) {
        f->is_before = true;
        f->who = who;
    } else {
        f->is_behind = true;
        f->is_other =
            f->is_other || !f->is_before || !xac_identity_is_same(&f->who, &who);
    }
    return note_id(p, rec->file, f);
}

/* read_names -- of the blocks of a generation; *reachedp: they are all there. */
static int
read_names(struct planning *p, const struct xac_master_slot *at, uint64_t to,
           uint64_t fork, bool *reachedp)
{
    uint64_t lsn = at->redo_lsn;
    const struct xac_block *blk;
    struct xac_place place;
    struct xac_scan scan;
    int rc = xac_scan_open(&scan, p->own->logfd, at);

    xac_assert(at->redo_lsn >= at->start_lsn);
    *reachedp = false;
    while (rc == 0 && lsn < to) {
        const struct xac_record *rec = NULL;

        rc = xac_scan_block(&scan, lsn, &blk, &place);
        if (rc != 0 || blk == NULL)
            break;
        p->is_behind = lsn >= fork;
        while (rc == 0 && (rec = xac_record_next(blk, rec)) != NULL) {
            if (rec->type == XAC_XFILE)
                rc = note_name(p, (const struct xac_xfile *)(const void *)rec);
        }
        lsn += blk->length;
    }
    xac_scan_close(&scan);
    *reachedp = rc == 0 && lsn == to;
    return rc;
}

/* ---- Pages ------------------------------------------------------------------------------- */

/* cut_off -- the own log does not tell enough. */
static int
cut_off(const struct planning *p, const char *why)
{
    xac_assert(why[0] != '\0');
    return xac_err(XAC_ECUTOFF,
                   "%s: its own log does not reach back to LSN %" PRIu64
                   ", where it has parted from the source (%s); " ANEW,
                   p->own->dir, p->note->line.end_lsn, why);
}

/* add_bits -- pages of a file that has got an id. */
static int
add_bits(struct named *f, const struct xac_changed_file *c)
{
    if (c->words > f->words) {
        uint64_t *grown = (uint64_t *)realloc(f->bits, c->words * sizeof *grown);

        xac_assert(c->words > 0);
        if (grown == NULL)
            return xac_err(ENOMEM, "list of pages");
        memset(grown + f->words, 0, (c->words - f->words) * sizeof *grown);
        f->bits = grown;
        f->words = c->words;
    }
    for (size_t w = 0; w < c->words; w++)
        f->bits[w] |= c->bits[w];
    return 0;
}

/* read_pages -- that blocks of a generation name from an LSN on. */
static int
read_pages(struct planning *p, const struct xac_master_slot *at, uint64_t from,
           uint64_t to)
{
    struct xac_changed c = {.n_files = 0};
    int rc = xac_changed_read(&c, p->own->logfd, at, from, to);

    xac_assert(from <= to);
    if (rc == 0 && !c.is_known)
        rc = cut_off(p, c.why);
    for (size_t id = 0; rc == 0 && id < c.n_files; id++) {
        if (c.file[id].words == 0)
            continue;
        if (id >= p->id.n || p->id.file[id] == NULL)
            rc = cut_off(p, "it does not say which files its first blocks are about");
        else
            rc = add_bits(p->id.file[id], &c.file[id]);
    }
    xac_changed_free(&c);
    return rc;
}

/* ---- The own log ------------------------------------------------------------------------- */

/* The start of the generation and the slots are where blocks begin for certain. */
#define STARTS (XAC_LOG_SLOTS + 2)

/* starts_of -- where reading names may begin in the generation of the fork: at or before `from`, ascending; ret how
   many. */
static int
starts_of(const struct planning *p, uint64_t first, uint64_t from, uint64_t *start,
          size_t *np)
{
    struct xac_log_followers f = {.wakes = 0};
    int rc = xac_slots_read(p->own->dirfd, &f);
    size_t n = 0;

    xac_assert(first <= from);
    if (rc == XAC_EDAMAGED) { /* one place less to begin at */
        xac_err_clear();
        rc = 0;
    }
    start[n++] = first;
    for (size_t i = 0; rc == 0 && i < XAC_LOG_SLOTS; i++) {
        uint64_t lsn = xac_slot_lsn(xac_slot_load(&f.slot[i]));
        size_t k = n;

        if (lsn <= first || lsn >= from)
            continue;
        for (; start[k - 1] > lsn; k--)
            start[k] = start[k - 1];
        start[k] = lsn;
        n++;
    }
    start[n++] = from;
    *np = n;
    return rc;
}

/* read_first -- the generation of the fork: names from as early as possible, pages from `from` on. */
static int
read_first(struct planning *p, const struct xac_master_slot *at, uint64_t from,
           uint64_t to)
{
    struct xac_master_slot m = *at;
    uint64_t start[STARTS];
    bool is_reached = false;
    size_t n = 0;
    int rc = starts_of(p, at->start_lsn, from, start, &n);

    xac_assert(from <= to);
    for (size_t i = 0; rc == 0 && i < n && !is_reached; i++) {
        m.redo_lsn = start[i];
        rc = read_names(p, &m, to, p->note->line.end_lsn, &is_reached);
    }
    return rc == 0 ? read_pages(p, at, from, to) : rc;
}

/* read_later -- a generation behind that of the fork. */
static int
read_later(struct planning *p, const struct xac_lineage_line *line)
{
    const struct xac_rewind_own *own = p->own;
    const struct xac_lineage_line *next =
        xac_lineage_behind(&own->lineage, line->generation);
    uint64_t to = next != NULL ? next->end_lsn : own->end_lsn;
    struct xac_master_slot at = own->master;
    bool is_reached;
    int rc;

    xac_assert(line->generation > p->note->line.previous);
    at.generation = line->generation;
    at.segment_bytes = line->segment_bytes;
    at.start_lsn = at.redo_lsn = line->start_lsn;
    free(p->id.file);
    p->id = (struct by_id){.n = 0};
    rc = read_names(p, &at, to, 0, &is_reached);
    return rc == 0 ? read_pages(p, &at, line->start_lsn, to) : rc;
}

/* read_log -- all that is behind the fork, and what may not be in the files yet. */
static int
read_log(struct planning *p, uint64_t own_end)
{
    const struct xac_rewind_own *own = p->own;
    uint32_t g = p->note->line.previous;
    const struct xac_lineage_line *line = xac_lineage_of(&own->lineage, g);
    uint64_t fork = p->note->line.end_lsn;
    struct xac_master_slot at = own->master;
    uint64_t from = fork;
    uint32_t last = g;
    int rc;

    at.generation = g;
    at.start_lsn = line != NULL ? line->start_lsn : XAC_LSN_FIRST;
    if (line != NULL)
        at.segment_bytes = line->segment_bytes;
    /* Pages that a checkpoint had not brought to their files, or was about to, may hold anything older. */
    if (own->master.generation == g && own->master.redo_lsn < fork)
        from = own->master.redo_lsn;
    p->note->own_bytes = at.segment_bytes;
    at.redo_lsn = from;
    xac_assert(at.start_lsn <= from);
    rc = read_first(p, &at, from, own_end);
    for (size_t i = 0; rc == 0 && i < own->lineage.n; i++) {
        const struct xac_lineage_line *later = &own->lineage.line[i];

        if (later->generation <= g)
            continue;
        rc = later->previous == last ? read_later(p, later) : cut_off(p, NO_LINE);
        last = later->generation;
    }
    return rc == 0 && last != own->master.generation ? cut_off(p, NO_LINE) : rc;
}

/* ---- Files -------------------------------------------------------------------------------- */

/* want_pages -- those that are named. */
static int
want_pages(struct planning *p, const struct named *f)
{
    struct xac_rewind_file *to = xac_rewind_note_add(p->note, XAC_REWIND_PAGES, f->path);
    int rc = to != NULL ? 0 : ENOMEM;

    xac_assert(f->is_before && !f->is_other);
    for (size_t w = 0; rc == 0 && w < f->words; w++) {
        for (uint64_t bits = f->bits[w]; rc == 0 && bits != 0; bits &= bits - 1)
            rc = xac_rewind_file_add(to, w * 64 + (uint64_t)__builtin_ctzll(bits));
    }
    return rc;
}

/* want -- what a file of the source's needs here. */
static int
want(struct planning *p, const char *path, const struct xac_address_list *known)
{
    const struct named *f = find(p, path);
    struct xac_identity is;
    bool is_there = xac_identity_at(p->own->dirfd, path, &is) == 0;

    xac_assert(path[0] != '/');
    if (is_there && f == NULL && xac_address_list_find(known, path) != NULL)
        return 0; /* nobody has mapped it since */
    if (is_there && f != NULL && f->is_before && !f->is_other
        && xac_identity_is_same(&f->who, &is)) /* (2) */
        return f->is_behind || f->words > 0 ? want_pages(p, f) : 0;
    return xac_rewind_note_add(p->note, XAC_REWIND_WHOLE, path) != NULL ? 0 : ENOMEM;
}

/* is_here -- as a file of the directory. */
static bool
is_here(const struct planning *p, const char *path)
{
    struct xac_identity is;

    xac_assert(p->own->dirfd >= 0);
    return path[0] != '/' && xac_identity_at(p->own->dirfd, path, &is) == 0;
}

/* lost -- the source does not have what was there at the fork. */
static int
lost(const struct planning *p, const char *path)
{
    xac_assert(is_here(p, path));
    return xac_err(XAC_EREPLACED,
                   "%s/%s: the source has no such file any more, or it has another name "
                   "there; " ANEW,
                   p->own->dir, path);
}

/* leave_rest -- files that the source does not have: those that have come since the fork go. */
static int
leave_rest(struct planning *p, const struct xac_rewind_theirs *theirs,
           const struct xac_address_list *known)
{
    int rc = 0;

    xac_assert(p->note != NULL);
    for (size_t i = 0; rc == 0 && i < p->n_files; i++) {
        const struct named *f = p->file[i];

        if (!is_here(p, f->path) || has(theirs, f->path))
            continue;
        if (f->is_before)
            rc = lost(p, f->path);
        else if (xac_rewind_note_add(p->note, XAC_REWIND_GONE, f->path) == NULL)
            rc = ENOMEM;
    }
    for (uint32_t i = 0; rc == 0 && i < known->n_lines; i++) {
        const char *path = xac_address_list_path(known, &known->line[i]);

        if (find(p, path) == NULL && is_here(p, path) && !has(theirs, path))
            rc = lost(p, path);
    }
    return rc;
}

/* plan_files -- the log has been read. */
static int
plan_files(struct planning *p, struct xac_rewind_theirs *theirs)
{
    struct xac_address_list known;
    int rc;

    xac_assert(p->note->line.generation != 0);
    memset(&known, 0, sizeof known);
    rc = xac_address_list_read(&known, p->own->dirfd);
    if (theirs->n_files > 0)
        qsort(theirs->file, theirs->n_files, sizeof theirs->file[0], compare_paths);
    for (size_t i = 0; rc == 0 && i < theirs->n_files; i++) {
        if (i == 0 || strcmp(theirs->file[i - 1], theirs->file[i]) != 0)
            rc = want(p, theirs->file[i], &known);
    }
    if (rc == 0)
        rc = leave_rest(p, theirs, &known);
    xac_address_list_free(&known);
    return rc;
}

/* ---- The whole ----------------------------------------------------------------------------- */

/* find_fork -- out own_end: where the own log ends the generation of the fork. */
static int
find_fork(const struct planning *p, const struct xac_rewind_theirs *theirs,
          uint64_t *own_end)
{
    const struct xac_rewind_own *own = p->own;
    struct xac_lineage_line *line = &p->note->line;

    xac_assert(own->master.generation != 0);
    if (!xac_lineage_fork(&theirs->lineage, &own->lineage, own->master.generation,
                          own->end_lsn, line, own_end))
        return xac_err(XAC_EFOREIGN,
                       "%s: its log and that of the source have no generation in common, "
                       "as far as both know; " ANEW,
                       own->dir);
    if (line->generation == 0)
        return xac_err(
            XAC_EFOREIGN,
            "%s: the source has begun no generation of its own behind the last "
            "one that both have: it has not been promoted",
            own->dir);
    if (*own_end < line->end_lsn)
        return xac_err(XAC_EFOREIGN,
                       "%s: its log ends generation %" PRIu32 " at LSN %" PRIu64
                       ", before that of the source, at LSN %" PRIu64 "; " ANEW,
                       own->dir, line->previous, *own_end, line->end_lsn);
    return 0;
}

/* free_names -- what has been read. */
static void
free_names(struct planning *p)
{
    xac_assert(p->n_files <= p->files_size);
    for (size_t i = 0; i < p->n_files; i++) {
        free(p->file[i]->path);
        free(p->file[i]->bits);
        free(p->file[i]);
    }
    free(p->file);
    free(p->id.file);
}

int
xac_rewind_plan(const struct xac_rewind_own *own, struct xac_rewind_theirs *theirs,
                struct xac_rewind_note *note)
{
    struct planning p = {.own = own, .note = note};
    uint64_t own_end = 0;
    int rc = find_fork(&p, theirs, &own_end);

    xac_assert(note->n_files == 0);
    if (rc == 0)
        rc = read_log(&p, own_end);
    if (rc == 0)
        rc = plan_files(&p, theirs);
    free_names(&p);
    return rc;
}
