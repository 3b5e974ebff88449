/* SPDX-License-Identifier: MIT */
/*
 * rewind.c -- see rewind.h.
 */
#include <config.h>

#include "ship/rewind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "backup/backup_dir.h"
#include "base/annot.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/names.h"
#include "base/newfile.h"
#include "base/stored.h"
#include "base/sys.h"
#include "checkpoint/pagesums.h"
#include "log/backup_note.h"
#include "log/group_note.h"
#include "log/log_keep.h"
#include "log/log_name.h"
#include "log/logdir.h"
#include "log/master.h"
#include "log/recover_scan.h"
#include "log/replica.h"
#include "log/slots.h"
#include "log/standby_note.h"
#include "recovery/recover.h"

/* How long to wait for a frame before looking at `stop`. */
#define LOOK_MS 200

/* Runs that are asked for at a time. */
#define RUNS_MAX 4096

/* ---- What is here ---------------------------------------------------------------------- */

int
xac_rewind_own_read(struct xac_rewind_own *own)
{
    struct xac_recover_options look = {.dry_run = true};
    struct xac_recover_report rep;
    char *path = NULL;
    int rc = xac_recover_dir(own->dirfd, &look, &rep, NULL);

    xac_assert(own->dirfd >= 0);
    own->logfd = -1;
    if (rc == 0)
        rc = xac_master_read(own->dirfd, &own->master);
    if (rc == 0)
        rc = xac_lineage_read(own->dirfd, own->master.generation, &own->lineage);
    if (rc == 0)
        rc = xac_logdir_open(own->dirfd, NULL, own->master.identity, &own->logfd, &path);
    free(path);
    own->end_lsn = rep.end_lsn;
    return rc;
}

void
xac_rewind_own_close(struct xac_rewind_own *own)
{
    xac_assert(own->dir != NULL);
    xac_close_fd(&own->logfd);
}

void
xac_rewind_own_greet(const struct xac_rewind_own *own, struct xac_wire_hello *hello)
{
    const struct xac_master_slot *m = &own->master;
    const struct xac_lineage_line *line = xac_lineage_of(&own->lineage, m->generation);
    struct xac_lineage_line without = {.generation = m->generation,
                                       .start_lsn = m->start_lsn,
                                       .end_lsn = m->start_lsn,
                                       .segment_bytes = m->segment_bytes};

    xac_assert(m->generation != 0);
    hello->page_size = m->page_size;
    memcpy(hello->identity, m->identity, sizeof hello->identity);
    hello->lsn = own->end_lsn;
    xac_wire_line_put(line != NULL ? line : &without, &hello->line);
}

/* go_on -- xac.rewind was there. */
static int
go_on(struct xac_rewind *rw, struct xac_wire_hello *hello)
{
    char *path = NULL;
    int rc;

    xac_assert(rw->note.whole_lsn == 0);
    rw->is_again = true;
    rw->own.master = rw->note.master;
    rc = xac_logdir_open(rw->own.dirfd, NULL, rw->note.master.identity, &rw->own.logfd,
                         &path);
    free(path);
    if (rc == 0 && !xac_master_is_valid(&rw->note.master))
        rc = xac_err(XAC_EDAMAGED, "%s: its master record", XAC_REWIND_NAME);
    hello->page_size = rw->note.master.page_size;
    memcpy(hello->identity, rw->note.master.identity, sizeof hello->identity);
    hello->lsn = rw->note.line.start_lsn;
    xac_wire_line_put(&rw->note.line, &hello->line);
    return rc;
}

int
xac_rewind_open(struct xac_rewind *rw, struct xac_wire_hello *hello)
{
    int rc = xac_rewind_note_read(rw->own.dirfd, &rw->note);

    xac_assert(rw->w != NULL);
    rw->own.logfd = -1;
    *hello = (struct xac_wire_hello){.version = XAC_WIRE_VERSION_REWIND};
    if (rc == 0)
        return go_on(rw, hello);
    if (rc == ENOENT)
        rc = xac_group_note_refuse(rw->own.dirfd);
    if (rc == 0)
        rc = xac_rewind_own_read(&rw->own);
    if (rc == 0)
        xac_rewind_own_greet(&rw->own, hello);
    return rc;
}

void
xac_rewind_close(struct xac_rewind *rw)
{
    xac_assert(rw->own.dir != NULL);
    xac_rewind_own_close(&rw->own);
    xac_rewind_theirs_free(&rw->theirs);
    xac_rewind_note_free(&rw->note);
}

/* ---- What the source has --------------------------------------------------------------- */

/* strange -- a frame that cannot come now. */
static int
strange(void)
{
    return xac_err(XAC_EDAMAGED, "the source has sent what nobody has asked for");
}

/* await -- the next frame. */
static int
await(const struct xac_rewind *rw, struct xac_wire_frame *f)
{
    int rc = xac_wire_flush(rw->w);

    xac_assert(rw->w != NULL);
    f->type = XAC_WIRE_NONE;
    while (rc == 0 && f->type == XAC_WIRE_NONE) {
        /* relaxed: nothing else is read because of it. */
        if (rw->stop != NULL && atomic_load_explicit(rw->stop, memory_order_relaxed))
            return xac_err(EPIPE, "%s: stopped before the rewind was done; run it again",
                           rw->own.dir);
        rc = xac_wire_get(rw->w, LOOK_MS, f);
    }
    if (rc == 0 && f->type == XAC_WIRE_END)
        return xac_err(EPIPE, "the source has ended before the rewind was done");
    return rc;
}

/* take_path -- of a FILE. */
static int
take_path(const struct xac_wire_frame *f, char path[XAC_WIRE_PATH_MAX + 1])
{
    size_t n = f->n - sizeof(struct xac_wire_file);

    xac_assert(f->type == XAC_WIRE_FILE);
    xac_assert(n <= XAC_WIRE_PATH_MAX);
    memcpy(path, (const struct xac_wire_file *)f->body + 1, n);
    path[n] = '\0';
    return strlen(path) == n && xac_stored_is_inside(path) ? 0 : strange();
}

/* take_lines -- the source's history. */
static int
take_lines(struct xac_lineage *l, const struct xac_wire_frame *f)
{
    const struct xac_wire_line *line = (const struct xac_wire_line *)f->body;

    xac_assert(f->type == XAC_WIRE_LINES);
    xac_assert(f->n <= XAC_LINEAGE_LINES * sizeof *line);
    if (f->n % sizeof *line != 0)
        return strange();
    l->n = 0;
    for (size_t i = 0; i < f->n / sizeof *line; i++) {
        if (!xac_wire_line_get(&line[i], &l->line[i])
            || (i > 0 && l->line[i].generation <= l->line[i - 1].generation))
            return strange();
        l->n++;
    }
    return 0;
}

/* hear_lists -- files and generations. */
static int
hear_lists(struct xac_rewind *rw)
{
    char path[XAC_WIRE_PATH_MAX + 1];
    struct xac_wire_frame f;
    int rc = await(rw, &f);

    xac_assert(rw->theirs.n_files == 0);
    while (rc == 0 && f.type == XAC_WIRE_FILE) {
        rc = take_path(&f, path);
        if (rc == 0)
            rc = xac_rewind_theirs_add(&rw->theirs, path);
        if (rc == 0)
            rc = await(rw, &f);
    }
    if (rc != 0)
        return rc;
    return f.type == XAC_WIRE_LINES ? take_lines(&rw->theirs.lineage, &f) : strange();
}

/* ask_log -- from the start of the generation behind the fork on; out endp of all there is. */
static int
ask_log(struct xac_rewind *rw, uint32_t flags, uint64_t *endp)
{
    struct xac_wire_from from = {.lsn = rw->note.line.start_lsn, .flags = flags};
    struct xac_wire_frame f;
    int rc;

    xac_assert(rw->note.line.generation != 0);
    xac_wire_line_put(&rw->note.line, &from.line);
    rc = xac_wire_put(rw->w, XAC_WIRE_FROM, &from, sizeof from, NULL, 0);
    if (rc == 0)
        rc = await(rw, &f);
    if (rc != 0)
        return rc;
    if (f.type != XAC_WIRE_BEAT)
        return strange();
    *endp = ((const struct xac_wire_beat *)f.body)->lsn;
    return *endp <= XAC_LSN_LIMIT && *endp % XAC_BLOCK_ALIGN == 0 ? 0 : strange();
}

/* ---- The note, and the own log (1, 2) --------------------------------------------------- */

/* make_master -- the record that the standby begins with: as behind a turn to that generation. */
static int
make_master(struct xac_rewind *rw)
{
    struct xac_master_slot *m = &rw->note.master;
    const struct xac_lineage_line *line = &rw->note.line;
    struct xac_identity dir;
    int rc = xac_identity_of(rw->own.dirfd, &dir);

    xac_assert(!rw->is_again);
    if (rc != 0)
        return xac_err(rc, "%s: stat", rw->own.dir);
    *m = rw->own.master;
    m->version = XAC_FORMAT_VERSION;
    m->generation = line->generation;
    m->segment_bytes = line->segment_bytes;
    m->start_lsn = m->redo_lsn = m->end_lsn_after = line->start_lsn;
    m->begin_lsn = m->end_lsn = 0;
    m->flags &= ~(XAC_MASTER_CLEAN | XAC_MASTER_LOGGED); /* its segment comes later */
    xac_master_put_dir(m, &dir);
    xac_assert(xac_master_is_valid(m));
    return 0;
}

/* remove_name -- ret 0, also if it is not there. */
static int
remove_name(int dirfd, const char *name)
{
    xac_assert(dirfd >= 0);
    return xac_sys.unlinkat(dirfd, name, 0) == 0 || errno == ENOENT
               ? 0
               : xac_err(errno, "%s: remove", name);
}

/* begin -- (1). */
static int
begin(struct xac_rewind *rw)
{
    int rc = 0;

    xac_assert(rw->own.dirfd >= 0);
    if (!rw->is_again)
        rc = xac_rewind_note_write(rw->own.dirfd, &rw->note);
    xac_kill_point("rewind noted");
    if (rc == 0)
        rc = remove_name(rw->own.dirfd, XAC_MASTER_NAME);
    if (rc == 0 && (rc = xac_sync_dir(rw->own.dirfd)) != 0)
        rc = xac_err(rc, "%s: sync", rw->own.dir);
    return rc;
}

/* What of the own log goes. */
struct clearing {
    const struct xac_rewind *rw;
    bool is_kept;
};

/* clear_segment -- for xac_scan_names. */
static int
clear_segment(void *arg, const char *name)
{
    const struct clearing *c = (const struct clearing *)arg;
    const struct xac_rewind_note *note = &c->rw->note;
    uint64_t fork = note->line.end_lsn;
    uint64_t last = xac_log_segment_of(fork, note->own_bytes), number;

    xac_assert(c->rw->own.logfd >= 0);
    if (!xac_log_segment_named(name, &number))
        return 0;
    if (c->is_kept && number < last)
        return 0;
    return c->is_kept && number == last
               ? xac_replica_clear(c->rw->own.logfd, note->own_bytes, fork,
                                   last * note->own_bytes)
               : remove_name(c->rw->own.logfd, name);
}

/* clear_data -- likewise; those of the generation of the fork say nothing any more without their blocks. */
static int
clear_data(void *arg, const char *name)
{
    const struct clearing *c = (const struct clearing *)arg;
    uint32_t generation;
    uint64_t serial;

    xac_assert(c->rw->own.logfd >= 0);
    if (!xac_log_datafile_named(name, &generation, &serial)
        || (c->is_kept && generation <= c->rw->note.line.previous))
        return 0;
    return remove_name(c->rw->own.logfd, name);
}

/* clear_log -- (2): what stays of it would be valid, of another branch. */
static int
clear_log(const struct xac_rewind *rw)
{
    struct clearing c = {.rw = rw, .is_kept = xac_log_is_kept(rw->own.logfd)};
    int rc = xac_scan_names(rw->own.logfd, XAC_LOG_PREFIX, clear_segment, &c);

    xac_assert(rw->note.whole_lsn == 0);
    if (rc == 0)
        rc = xac_scan_names(rw->own.logfd, XAC_DATA_PREFIX, clear_data, &c);
    if (rc == 0 && (rc = xac_sync_dir(rw->own.logfd)) != 0)
        rc = xac_err(rc, "the log of %s: sync", rw->own.dir);
    return rc;
}

/* ---- Files (3) -------------------------------------------------------------------------- */

/* A file that is being brought. */
struct bringing {
    struct xac_rewind *rw;
    const struct xac_rewind_file *f;
    int fd; /* -1: the source does not have it                                        */
    uint64_t length;
};

/* ask_file -- some of its runs, or all of it. */
static int
ask_file(const struct bringing *b, size_t from, size_t n)
{
    size_t path_len = strlen(b->f->path), padded = (path_len + 7) & ~(size_t)7;
    uint64_t page = b->rw->own.master.page_size;
    struct xac_wire_want want = {.path_len = (uint32_t)path_len, .n_runs = (uint32_t)n};
    uint8_t *body = (uint8_t *)calloc(1, padded + n * sizeof(struct xac_wire_run));
    int rc;

    xac_assert(from + n <= b->f->n_runs);
    xac_assert(n <= RUNS_MAX);
    if (body == NULL)
        return xac_err(ENOMEM, "%s", b->f->path);
    if (b->f->what == XAC_REWIND_WHOLE)
        want.flags = XAC_WIRE_WANT_WHOLE;
    memcpy(body, b->f->path, path_len);
    for (size_t i = 0; i < n; i++) {
        struct xac_wire_run run = {.offset = b->f->run[from + i].page * page,
                                   .length = b->f->run[from + i].n * page};

        memcpy(body + padded + i * sizeof run, &run, sizeof run);
    }
    rc = xac_wire_put(b->rw->w, XAC_WIRE_WANT, &want, sizeof want, body,
                      padded + n * sizeof(struct xac_wire_run));
    free(body);
    return rc;
}

/* make_parents -- the directories that the file lies in, with their names on disk. */
static int
make_parents(const struct bringing *b)
{
    const struct xac_rewind_own *own = &b->rw->own;
    struct xac_backup_file file = {.path = b->f->path, .copy = b->f->path};
    struct xac_backup_note note = {.file = &file, .n_files = 1};
    int rc = xac_backup_dir_parents(own->dirfd, own->dir, own->dirfd, b->f->path);

    xac_assert(xac_stored_is_inside(b->f->path));
    return rc == 0 ? xac_backup_dir_sync(own->dirfd, own->dir, &note) : rc;
}

/* open_file -- made if it is not there; one that comes as a whole is emptied. */
static int
open_file(struct bringing *b)
{
    const struct xac_rewind_own *own = &b->rw->own;
    struct xac_owner owner;
    const char *name;
    int at = -1;
    int rc = xac_stored_open(own->dirfd, b->f->path, O_RDWR | O_CLOEXEC, &b->fd);

    xac_assert(b->f->what != XAC_REWIND_GONE);
    if (rc == ENOENT) {
        rc = make_parents(b);
        if (rc == 0)
            rc = xac_stored_parent(own->dirfd, b->f->path, &at, &name);
        if (rc == 0)
            rc = xac_owner_of_dir(own->dirfd, &owner);
        if (rc == 0)
            rc = xac_newfile_make(at, name, &owner, &b->fd);
        xac_close_fd(&at);
    }
    if (rc == 0 && b->f->what == XAC_REWIND_WHOLE && xac_sys.ftruncate(b->fd, 0) != 0)
        rc = errno;
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: open", own->dir, b->f->path);
}

/* take_piece -- bytes of it. */
static int
take_piece(const struct bringing *b, const struct xac_wire_frame *f)
{
    const struct xac_wire_piece *head = (const struct xac_wire_piece *)f->body;
    size_t n = f->n - sizeof *head;
    int rc;

    xac_assert(f->type == XAC_WIRE_PIECE);
    if (b->fd < 0 || head->offset > b->length || n > b->length - head->offset)
        return strange();
    rc = xac_write_full(b->fd, head + 1, n, head->offset);
    b->rw->pages += n / b->rw->own.master.page_size;
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: write", b->rw->own.dir, b->f->path);
}

/* take_answer -- FILE, pieces, WANTED. */
static int
take_answer(struct bringing *b)
{
    char path[XAC_WIRE_PATH_MAX + 1];
    struct xac_wire_frame f;
    int rc = await(b->rw, &f);

    xac_assert(b->f->what != XAC_REWIND_GONE);
    if (rc == 0 && f.type != XAC_WIRE_FILE)
        rc = strange();
    if (rc == 0)
        rc = take_path(&f, path);
    if (rc != 0)
        return rc;
    b->length = ((const struct xac_wire_file *)f.body)->length;
    if (strcmp(path, b->f->path) != 0
        || (b->length > INT64_MAX && b->length != XAC_WIRE_NO_FILE))
        return strange();
    if (b->length != XAC_WIRE_NO_FILE && b->fd < 0)
        rc = open_file(b);
    else if (b->length == XAC_WIRE_NO_FILE)
        xac_close_fd(&b->fd);
    if (rc == 0)
        rc = await(b->rw, &f);
    while (rc == 0 && f.type == XAC_WIRE_PIECE) {
        rc = take_piece(b, &f);
        if (rc == 0)
            rc = await(b->rw, &f);
    }
    return rc == 0 && f.type != XAC_WIRE_WANTED ? strange() : rc;
}

/* remove_file -- the source has none; its name is gone on disk. */
static int
remove_file(const struct xac_rewind *rw, const char *path)
{
    const char *name;
    int at = -1;
    int rc = xac_stored_parent(rw->own.dirfd, path, &at, &name);

    xac_assert(xac_stored_is_inside(path));
    if (rc == ENOENT)
        return 0;
    if (rc == 0)
        rc = remove_name(at, name);
    if (rc == 0)
        rc = xac_sync_dir(at);
    xac_close_fd(&at);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: remove", rw->own.dir, path);
}

/* bring -- what a file needs, synced. */
static int
bring(struct xac_rewind *rw, const struct xac_rewind_file *f)
{
    struct bringing b = {.rw = rw, .f = f, .fd = -1};
    size_t from = 0, n;
    int rc = 0;

    xac_assert(f->path != NULL);
    if (f->what == XAC_REWIND_GONE)
        return remove_file(rw, f->path);
    do {
        n = f->n_runs - from < RUNS_MAX ? f->n_runs - from : RUNS_MAX;
        rc = ask_file(&b, from, n);
        if (rc == 0)
            rc = take_answer(&b);
        from += n;
    } while (rc == 0 && from < f->n_runs);
    if (rc == 0 && b.fd < 0)
        return remove_file(rw, f->path);
    if (rc == 0
        && (xac_sys.ftruncate(b.fd, (off_t)b.length) != 0 || xac_sys.fsync(b.fd) != 0))
        rc = xac_err(errno, "%s/%s: sync", rw->own.dir, f->path);
    xac_close_fd(&b.fd);
    if (rc == 0 && (rc = xac_sync_parent(rw->own.dirfd, f->path)) != 0)
        rc = xac_err(rc, "%s/%s: sync of its directory", rw->own.dir, f->path);
    return rc;
}

/* bring_all -- (3). */
static int
bring_all(struct xac_rewind *rw)
{
    int rc = 0;

    xac_assert(rw->note.whole_lsn == 0);
    for (size_t i = 0; rc == 0 && i < rw->note.n_files; i++) {
        rc = bring(rw, &rw->note.file[i]);
        xac_kill_point("rewind file");
    }
    return rc;
}

/* ---- A standby (5) ----------------------------------------------------------------------- */

/* stand -- the notes of a standby whose files hold nothing from behind `end`, and its master record. */
static int
stand(const struct xac_rewind *rw, uint64_t end)
{
    struct xac_backup_note note = {.end_lsn = end,
                                   .time_ns = xac_clock_read(CLOCK_REALTIME)};
    int dirfd = rw->own.dirfd;
    struct xac_owner owner;
    int rc = remove_name(dirfd, XAC_SLOTS_NAME); /* promises about the log that went */

    xac_assert(end != 0);
    if (rc == 0)
        rc = remove_name(dirfd, XAC_RECEIVED_NAME);
    if (rc == 0)
        rc = xac_pagesums_drop_all(dirfd);
    if (rc == 0)
        rc = xac_lineage_copy(dirfd, &rw->note.line);
    if (rc == 0)
        rc = xac_backup_note_write(dirfd, &note);
    xac_kill_point("rewind backup");
    if (rc == 0)
        rc = xac_standby_note_write(dirfd);
    if (rc == 0 && (rc = xac_owner_of_dir(dirfd, &owner)) != 0)
        rc = xac_err(rc, "%s", rw->own.dir);
    if (rc == 0)
        rc = xac_backup_dir_master(dirfd, rw->own.dir, &owner, &rw->note.master);
    xac_kill_point("rewind master");
    return rc;
}

/* check_again -- does this source have the generation that the rewind was begun with? */
static int
check_again(const struct xac_rewind *rw)
{
    const struct xac_lineage_line *want = &rw->note.line;
    const struct xac_lineage_line *is =
        xac_lineage_of(&rw->theirs.lineage, want->generation);

    xac_assert(rw->is_again);
    if (is != NULL && is->start_lsn == want->start_lsn
        && memcmp(is->branch, want->branch, sizeof is->branch) == 0)
        return 0;
    return xac_err(XAC_EFOREIGN,
                   "%s: it is being rewound to LSN %" PRIu64 ", generation %" PRIu32
                   " of another source: run it again with that one; or remove the "
                   "directory, and receive anew",
                   rw->own.dir, want->start_lsn, want->generation);
}

int
xac_rewind_run(struct xac_rewind *rw)
{
    uint64_t end = 0;
    int rc = hear_lists(rw);

    xac_assert(rw->own.logfd >= 0);
    if (rc == 0)
        rc = rw->is_again ? check_again(rw)
                          : xac_rewind_plan(&rw->own, &rw->theirs, &rw->note);
    if (rc == 0 && !rw->is_again)
        rc = make_master(rw);
    if (rc == 0)
        rc = ask_log(rw, 0, &end); /* before anything is changed */
    if (rc == 0)
        rc = begin(rw);
    xac_kill_point("rewind begun");
    if (rc == 0)
        rc = clear_log(rw);
    xac_kill_point("rewind cleared");
    if (rc == 0)
        rc = bring_all(rw);
    xac_kill_point("rewind brought");
    if (rc == 0)
        rc = ask_log(rw, XAC_WIRE_FROM_GO, &end);
    if (rc == 0)
        rc = stand(rw, end);
    rw->note.whole_lsn = end;
    if (rc == 0)
        rc = xac_rewind_note_write(rw->own.dirfd, &rw->note);
    xac_kill_point("rewind stands");
    return rc;
}
