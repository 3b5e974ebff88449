/* SPDX-License-Identifier: MIT */
/*
 * standby.c -- see standby.h.
 */
#include <config.h>

#include "recovery/standby.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "log/rewind_note.h"
#include "log/standby_note.h"
#include "recovery/standby_redo.h"

/* A program that just looks holds the gate for a moment. */
#define GATE_TRIES 100
#define GATE_NS    UINT64_C(20000000)

/* Bytes of blocks that wait to be redone. */
#define WAITING_BYTES ((size_t)4 << 20)

static const struct xac_recover_options no_options, rewound = {.is_rewind = true};

/* ---- Opening ------------------------------------------------------------------------ */

int
xac_standby_lock(int dirfd, const char *dir, int *lockfdp)
{
    int rc;

    xac_assert(dirfd >= 0);
    *lockfdp = xac_lockfile_open(dirfd);
    if (*lockfdp < 0)
        return xac_err(errno, "%s/%s", dir, XAC_LOCK_NAME);
    rc = xac_gate_try(*lockfdp);
    for (int i = 0; i < GATE_TRIES && rc == EAGAIN; i++) {
        xac_sleep_ns(GATE_NS);
        rc = xac_gate_try(*lockfdp);
    }
    if (rc == EAGAIN)
        return xac_err(XAC_ELIVE, "%s: another process receives into it, or opens it",
                       dir);
    if (rc != 0)
        return xac_err(rc, "gate of %s", dir);
    rc = xac_attached(dirfd, dir, *lockfdp);
    return rc == XAC_ELIVE ? xac_err(rc, "%s: processes use it", dir) : rc;
}

/* must_be_standby -- before anything is written. */
static int
must_be_standby(const struct xac_standby *s)
{
    struct xac_backup_note note;
    int rc = s->options->is_rewind ? 0 : xac_rewind_note_refuse(s->dirfd);

    xac_assert(s->dirfd >= 0);
    if (rc != 0)
        return rc;
    rc = xac_backup_note_read(s->dirfd, &note);
    xac_backup_note_free(&note);
    if (rc == ENOENT)
        return xac_err(EINVAL,
                       "%s: an environment of its own, by now: it cannot follow another "
                       "one; remove it and receive anew",
                       s->dir);
    return rc == 0 ? xac_standby_note_write(s->dirfd) : rc;
}

/* read_line -- of this generation; without one in xac.history all but the branch is known. */
static int
read_line(struct xac_standby *s)
{
    const struct xac_master_slot *m = &s->r.master;
    struct xac_lineage *l = (struct xac_lineage *)malloc(sizeof *l);
    const struct xac_lineage_line *line;
    int rc = l == NULL ? xac_err(ENOMEM, "%s", XAC_LINEAGE_NAME)
                       : xac_lineage_read(s->dirfd, m->generation, l);

    xac_assert(m->start_lsn <= m->redo_lsn);
    s->line = (struct xac_lineage_line){.generation = m->generation,
                                        .start_lsn = m->start_lsn,
                                        .end_lsn = m->start_lsn,
                                        .segment_bytes = m->segment_bytes};
    line = rc == 0 ? xac_lineage_of(l, m->generation) : NULL;
    if (line != NULL)
        s->line = *line;
    free(l);
    return rc;
}

/* start -- know the log of this generation, and redo what it has, beside readers or into the files. */
static int
start(struct xac_standby *s)
{
    struct xac_recovery *r = &s->r;
    int rc = s->env == NULL ? xac_recovery_start(r, s->dirfd, s->options)
                            : xac_recovery_look(r, s->dirfd, s->options);

    if (rc != 0)
        return rc;
    r->applying = false;
    r->redo.keeping = false;
    xac_assert(r->rep.was_backup);
    r->sums = (struct xac_pagesums_store){.dirfd = s->dirfd,
                                          .identity = r->master.identity,
                                          .page_size = r->master.page_size,
                                          .lsn = r->end,
                                          .file = xac_redo_file_is,
                                          .arg = &r->redo};
    r->redo.sums_store = &r->sums;
    s->applied = r->end;
    s->prepared = r->redo.changes;
    s->n_points = 0;
    xac_replica_open(&s->log, r->logfd, s->dirfd, &r->master, r->end);
    rc = read_line(s);
    return rc == 0 && s->env != NULL ? xac_standby_go_on(s) : rc;
}

/* create -- a standby that knows nothing yet; NULL: no memory. */
static struct xac_standby *
create(int dirfd, const char *dir)
{
    struct xac_standby *s = (struct xac_standby *)calloc(1, sizeof *s);

    xac_assert(dirfd >= 0);
    if (s == NULL)
        return NULL;
    s->dirfd = dirfd;
    s->options = &no_options;
    s->log.fd = s->log.datafd = s->log.received.fd = s->r.logfd = -1;
    s->r.scan.file = (struct xac_rawfile)XAC_RAWFILE_CLOSED;
    s->room = 2 * WAITING_BYTES;
    s->dir = strdup(dir);
    s->waiting = (uint8_t *)malloc(s->room);
    if (s->dir != NULL && s->waiting != NULL)
        return s;
    xac_standby_close(s);
    return NULL;
}

/* start_with -- see xac_standby_start(). */
static int
start_with(int dirfd, const char *dir, const struct xac_recover_options *options,
           struct xac_standby **sp)
{
    struct xac_standby *s = create(dirfd, dir);
    int rc = s == NULL ? xac_err(ENOMEM, "%s", dir) : 0;

    if (rc == 0) {
        s->options = options;
        rc = must_be_standby(s);
    }
    if (rc == 0)
        rc = start(s);
    if (rc == 0)
        *sp = s;
    else if (s != NULL)
        xac_standby_close(s);
    return rc;
}

int
xac_standby_start(int dirfd, const char *dir, struct xac_standby **sp)
{
    return start_with(dirfd, dir, &no_options, sp);
}

int
xac_standby_start_rewound(int dirfd, const char *dir, struct xac_standby **sp)
{
    return start_with(dirfd, dir, &rewound, sp);
}

int
xac_standby_admit(struct xac_standby *s, struct xac_env *env)
{
    xac_assert(s->env == NULL);
    xac_assert(s->applied == s->log.durable);
    s->env = env;
    s->r.redo.replayer = &s->replayer;
    s->r.redo.changes++; /* the region does not know the files yet */
    return xac_replayer_init(&s->replayer, env);
}

int
xac_standby_join(struct xac_env *env, struct xac_standby **sp)
{
    struct xac_standby *s = create(env->dirfd, env->dir);
    int rc = s == NULL ? xac_err(ENOMEM, "%s", env->dir) : must_be_standby(s);

    if (rc == 0) {
        s->env = env;
        rc = xac_replayer_init(&s->replayer, env);
    }
    if (rc == 0)
        rc = start(s);
    if (rc == 0)
        *sp = s;
    else if (s != NULL)
        xac_standby_close(s);
    return rc;
}

void
xac_standby_close(struct xac_standby *s)
{
    xac_assert(s != NULL);
    xac_replica_close(&s->log);
    xac_recovery_free(&s->r);
    xac_replayer_fini(&s->replayer);
    free(s->waiting);
    free(s->dir);
    free(s);
}

void
xac_standby_where(const struct xac_standby *s, struct xac_standby_place *out)
{
    *out = (struct xac_standby_place){.line = s->line,
                                      .page_size = s->r.master.page_size,
                                      .durable = s->log.durable,
                                      .applied = s->applied,
                                      .redo_lsn = s->r.master.redo_lsn,
                                      .transactions = s->n_taken};
    memcpy(out->identity, s->r.master.identity, sizeof out->identity);
    xac_assert(s->applied <= s->log.durable);
}

int
xac_standby_files(const struct xac_standby *s,
                  int (*fn)(void *arg, const char *path, bool is_gone), void *arg)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < s->r.redo.n_files; i++) {
        const struct xac_redo_file *f = &s->r.redo.file[i];

        if (f->path != NULL)
            rc = fn(arg, f->path, f->is_gone);
    }
    return rc;
}

uint64_t
xac_standby_file_changes(const struct xac_standby *s)
{
    return s->r.redo.changes;
}

int
xac_standby_apply(struct xac_standby *s)
{
    size_t at = 0;
    int rc = 0;

    xac_assert(s->n_waiting <= s->room);
    if (s->env != NULL)
        xac_replayer_durable(&s->replayer, s->log.durable);
    while (rc == 0 && at < s->n_waiting) {
        const struct xac_block *blk =
            (const struct xac_block *)(const void *)(s->waiting + at);

        if (blk->lsn + blk->length > s->log.durable)
            break;
        rc = xac_standby_redo(s, blk);
        at += blk->length;
    }
    memmove(s->waiting, s->waiting + at, s->n_waiting - at);
    s->n_waiting -= at;
    return rc;
}

int
xac_standby_sync(struct xac_standby *s)
{
    xac_assert(s->log.durable <= s->log.end);
    return xac_replica_sync(&s->log);
}

int
xac_standby_mark(struct xac_standby *s)
{
    xac_assert(s->log.durable <= s->log.end);
    return xac_replica_sync_mark(&s->log);
}

bool
xac_standby_is_full(const struct xac_standby *s)
{
    return s->n_waiting >= WAITING_BYTES;
}

/* ---- Blocks --------------------------------------------------------------------------- */

/* wrong -- a block that has come does not belong there. */
static int
wrong(const struct xac_standby *s, const char *why)
{
    xac_assert(why[0] != '\0');
    return xac_err(XAC_EDAMAGED,
                   "log block for LSN %" PRIu64 ", generation %" PRIu32 ": %s",
                   s->log.end, s->r.master.generation, why);
}

/* check -- may the block stand at the end of this log? */
static int
check(const struct xac_standby *s, const struct xac_block *blk, size_t n)
{
    struct xac_log_id id = {.generation = s->r.master.generation};

    xac_assert((uintptr_t)blk % XAC_BLOCK_ALIGN == 0);
    memcpy(&id.identity, s->r.master.identity, sizeof id.identity);
    if (n < sizeof *blk || !xac_block_head_ok(blk, id, s->log.end) || blk->length != n)
        return wrong(s, "another one has come");
    if (blk->durable > blk->lsn)
        return wrong(s, "it says that more had been synced than there was");
    if (blk->length > XAC_LSN_LIMIT - blk->lsn)
        return wrong(s, "the log has no positions left");
    if (!xac_block_body_ok(blk))
        return wrong(s, "checksum");
    return 0;
}

/* note_places -- files that lie outside of the source have places here that the note must keep. */
static int
note_places(struct xac_standby *s, const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;
    int rc = 0;

    xac_assert(blk->length >= sizeof *blk);
    while (rc == 0 && (rec = xac_record_next(blk, rec)) != NULL) {
        const struct xac_xfile *x = (const struct xac_xfile *)(const void *)rec;
        const struct xac_redo_file *f;
        char *name;

        if (rec->type != XAC_XFILE)
            continue;
        f = xac_redo_file_find(&s->r.redo, x->file);
        name = strndup(xac_xfile_path(x), x->path_len);
        if (name == NULL || f == NULL)
            rc = xac_err(ENOMEM, "table of files");
        else if (name[0] == '/' && xac_backup_note_find(&s->r.note, name) == NULL) {
            rc = xac_backup_note_add(&s->r.note, name, f->path);
            s->note_is_old = true;
        }
        free(name);
    }
    return rc;
}

/* drain -- everything that has been taken is durable and redone. */
static int
drain(struct xac_standby *s)
{
    int rc = xac_standby_sync(s);

    if (rc == 0)
        rc = xac_standby_apply(s);
    xac_assert(rc != 0 || s->n_waiting == 0);
    return rc;
}

/* is_about_files -- does the block say anything of files? */
static bool
is_about_files(const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;

    xac_assert(blk->length >= sizeof *blk);
    while ((rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XFILE || rec->type == XAC_XFORGET)
            return true;
    }
    return false;
}

/* keep -- the block is to be redone later. */
static int
keep(struct xac_standby *s, const struct xac_block *blk)
{
    if (s->room - s->n_waiting < blk->length) {
        size_t want = s->n_waiting + blk->length;
        uint8_t *grown = (uint8_t *)realloc(s->waiting, want);

        if (grown == NULL)
            return xac_err(ENOMEM, "log block of %" PRIu32 " bytes", blk->length);
        s->waiting = grown;
        s->room = want;
    }
    memcpy(s->waiting + s->n_waiting, blk, blk->length);
    s->n_waiting += blk->length;
    xac_assert(s->n_waiting <= s->room);
    return 0;
}

int
xac_standby_data(struct xac_standby *s, uint64_t serial, uint64_t offset,
                 const void *bytes, size_t n)
{
    xac_assert(s->log.dirfd >= 0);
    return xac_replica_data(&s->log, serial, offset, bytes, n);
}

int
xac_standby_take(struct xac_standby *s, const struct xac_block *blk, size_t n)
{
    bool says_files;
    int rc = check(s, blk, n);

    if (rc != 0)
        return rc;
    says_files = is_about_files(blk);
    /* What has been taken is redone to the files as they were called then. */
    if (says_files)
        rc = drain(s);
    if (rc == 0 && says_files && s->env == NULL)
        rc = xac_standby_write(s);
    if (rc == 0)
        rc = xac_replica_data_end(&s->log);
    if (rc == 0)
        rc = xac_recovery_check(&s->r, blk);
    if (rc == 0 && says_files)
        rc = note_places(s, blk);
    if (rc == 0 && says_files)
        rc = xac_redo_check_files(&s->r.redo, false, true);
    if (rc == 0)
        rc = xac_replica_put(&s->log, blk);
    if (rc == 0)
        rc = keep(s, blk);
    s->n_taken += rc == 0 && xac_block_commit(blk) != NULL;
    return rc;
}

int
xac_standby_rest(struct xac_standby *s)
{
    int rc = drain(s);

    xac_assert(s->applied <= s->log.end);
    if (rc == 0)
        rc = xac_standby_mark(s);
    return rc == 0 ? xac_standby_write(s) : rc;
}

/* ---- Another generation --------------------------------------------------------------- */

/* may_turn -- can the log that is here go on with that generation? */
static int
may_turn(const struct xac_standby *s, const struct xac_lineage_line *line)
{
    uint32_t present = s->r.master.generation;

    xac_assert(s->log.durable == s->log.end);
    if (line->generation <= present)
        return wrong(s, "the source goes back to an earlier generation");
    /* Generations between may have had no block. */
    if (line->start_lsn < s->log.end
        || (line->previous == present && line->end_lsn != s->log.end))
        return xac_err(XAC_EFOREIGN,
                       "the source goes on at LSN %" PRIu64 ", generation %" PRIu32
                       ", but the log here ends at LSN %" PRIu64 ", generation %" PRIu32
                       ": the two have parted; remove %s and receive anew",
                       line->end_lsn, line->generation, s->log.end, present, s->dir);
    return 0;
}

int
xac_standby_turn(struct xac_standby *s, const struct xac_lineage_line *line)
{
    struct xac_master_slot m = s->r.master;
    int rc = drain(s);

    xac_assert(xac_lineage_is_sound(line));
    if (rc == 0)
        rc = may_turn(s, line);
    if (rc == 0)
        rc = xac_standby_end_generation(s);
    if (rc == 0 && !xac_bytes_are_zero(line->branch, sizeof line->branch))
        rc = xac_lineage_copy(s->dirfd, line);
    if (rc != 0)
        return rc;
    m.generation = line->generation;
    m.segment_bytes = line->segment_bytes;
    m.start_lsn = m.redo_lsn = m.end_lsn_after = line->start_lsn;
    m.begin_lsn = m.end_lsn = 0;
    m.flags &= ~(XAC_MASTER_CLEAN | XAC_MASTER_LOGGED); /* its segment comes later */
    rc = xac_standby_move(s, &m);
    if (rc != 0)
        return rc;
    xac_replica_close(&s->log);
    xac_recovery_free(&s->r);
    if (s->env != NULL)
        xac_replayer_mark(&s->replayer, line->start_lsn);
    return start(s); /* (4) */
}
