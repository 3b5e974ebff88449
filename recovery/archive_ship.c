/* SPDX-License-Identifier: MIT */
/*
 * archive_ship.c -- see archive_ship.h: the order of the steps.
 *
 *   (1) lock, notes and claim (archive_place.c); the manifests of the archive
 *   (2) the slot, and the place in the log behind what is archived; or, if there is none, a new beginning
 *   (3) blocks are read; data files, then parts and segments are put
 *   (4) the manifest, its number in the notes; the slot moves
 *   (5) a backup, if it is time: its files, and the manifest
 */
#include <config.h>

#include "archive_ship.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <xac.h>

#include "archive_job.h"
#include "base/annot.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "log/master.h"
#include "checkpoint/hold.h"
#include "tool.h"

#define NS_PER_S UINT64_C(1000000000)

/* Log that is put at once, and how long less may wait. */
#define PART_BYTES (UINT64_C(16) << 20)
#define EVERY_NS   (5 * NS_PER_S)

/* Manifests that name only what is new, one behind the other: so many must be read to restore. */
#define MORE_MAX 32

/* Between tries to reach DEST. */
#define AGAIN_NS_FIRST NS_PER_S
#define AGAIN_NS_MOST  (60 * NS_PER_S)

/* Names that are tried for an object. */
#define NAMES_MAX 1000

/* How often objects that nobody names are looked for. */
#define CLEAN_NS (3600 * NS_PER_S)

/* ---- Putting ---------------------------------------------------------------------- */

bool
archive_is_stopped(const struct archive_job *j)
{
    /* relaxed: nothing else is read because of it. */
    return j->opt->stop != NULL
           && atomic_load_explicit(j->opt->stop, memory_order_relaxed);
}

void
archive_object_name(const struct archive_job *j, char name[ARCHIVE_NAME_MAX],
                    const char *kind, const char *rest)
{
    const uint8_t *branch = j->seg.fd >= 0 ? j->seg.line.branch : j->a.at.branch;
    char id[33], of[33];

    for (size_t i = 0; i < 16; i++) {
        (void)snprintf(id + 2 * i, 3, "%02x", j->a.identity[i]);
        (void)snprintf(of + 2 * i, 3, "%02x", branch[i]);
    }
    (void)snprintf(name, ARCHIVE_NAME_MAX, "%s.%s.%s.%s", kind, id, of, rest);
}

int
archive_stage_file(struct archive_job *j, const char *name, int *fdp)
{
    struct xac_owner owner;
    int rc = xac_owner_get(j->place.dirfd, &owner);

    if (rc == 0)
        rc = xac_newfile_remake(j->store.stagefd, name, &owner, fdp);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: create", j->store.stage, name);
}

/* rest -- before the next try; *waitp grows. */
static void
rest(const struct archive_job *j, uint64_t *waitp)
{
    uint64_t until_ns = xac_clock_ns() + *waitp, now_ns;

    while (!archive_is_stopped(j) && (now_ns = xac_clock_ns()) < until_ns)
        xac_sleep_ns(until_ns - now_ns);
    *waitp = 2 * *waitp < AGAIN_NS_MOST ? 2 * *waitp : AGAIN_NS_MOST;
}

/* try_again -- after an error of DEST: a follower waits for it; ret 0, the error, or EINTR. */
static int
try_again(const struct archive_job *j, int rc, uint64_t *waitp)
{
    if (!j->opt->follows)
        return rc;
    if (*waitp == AGAIN_NS_FIRST)
        fprintf(stderr, "%s: %s: %s; trying again\n", tool_name, j->opt->dest,
                xac_err_text()[0] != '\0' ? xac_err_text() : xac_strerror(rc));
    rest(j, waitp);
    return archive_is_stopped(j) ? EINTR : 0;
}

/* put_somehow -- the first name like `name` that is free; a name that an attempt has left is not used. */
static int
put_somehow(struct archive_job *j, const char *from, const char *name,
            char used[ARCHIVE_NAME_MAX])
{
    uint64_t wait_ns = AGAIN_NS_FIRST;
    int rc = EEXIST, again;

    for (int i = 0; rc != 0 && i < NAMES_MAX;) {
        if (i == 0)
            (void)snprintf(used, ARCHIVE_NAME_MAX, "%s", name);
        else
            (void)snprintf(used, ARCHIVE_NAME_MAX, "%.180s-%d", name, i);
        rc = archive_store_put(&j->store, from, used);
        if (rc == EEXIST)
            i++;
        else if (rc != 0 && (again = try_again(j, rc, &wait_ns)) != 0)
            return again;
    }
    return rc;
}

int
archive_put(struct archive_job *j, const char *from, const struct archive_object *o)
{
    char used[ARCHIVE_NAME_MAX];
    struct archive_object put = *o;
    int fd = xac_sys.openat(j->store.stagefd, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    int rc = fd < 0 ? errno : archive_sum_of(fd, &put.sum);

    xac_close_fd(&fd);
    if (rc != 0)
        return xac_err(rc, "%s/%s", j->store.stage, from);
    rc = put_somehow(j, from, o->name, used);
    if (rc != 0)
        return rc;
    put.name = used;
    if (archive_add(&j->a, &put) == NULL)
        return ENOMEM;
    j->rep->objects++;
    j->rep->bytes += put.sum.length;
    return 0;
}

/* ---- Manifests -------------------------------------------------------------------- */

/* put_manifest -- under the next number that is free: an attempt may have left one. */
static int
put_manifest(struct archive_job *j, uint64_t time_ns, bool is_full,
             uint8_t sha[ARCHIVE_SHA_BYTES])
{
    uint64_t wait_ns = AGAIN_NS_FIRST;
    char name[ARCHIVE_NAME_MAX], *text = NULL;
    size_t n;
    int rc, again, fd = -1;

    do {
        archive_manifest_name(name, ++j->newest);
        free(text);
        rc = archive_write(&j->a, j->newest, time_ns, is_full, &text, &n);
        if (rc == 0)
            rc = archive_stage_file(j, "manifest", &fd);
        if (rc != 0)
            break;
        rc = xac_write_full(fd, text, n, 0);
        if (rc == 0 && xac_sys.fsync(fd) != 0)
            rc = errno;
        xac_close_fd(&fd);
        rc = rc == 0 ? archive_store_put(&j->store, "manifest", name)
                     : xac_err(rc, "%s/manifest: write", j->store.stage);
        if (rc != 0 && rc != EEXIST && (again = try_again(j, rc, &wait_ns)) != 0) {
            rc = again;
            break;
        }
    } while (rc != 0);
    if (rc == 0 && EVP_Digest(text, n, sha, NULL, EVP_sha256(), NULL) != 1)
        rc = xac_err(ENOTSUP, "%s: SHA-256", name);
    free(text);
    return rc;
}

int
archive_name_all(struct archive_job *j)
{
    uint64_t time_ns = xac_clock_read(CLOCK_REALTIME);
    bool is_full =
        j->wants_full || j->a.number == 0 || j->newest >= j->a.full_number + MORE_MAX;
    uint8_t sha[ARCHIVE_SHA_BYTES];
    int rc = put_manifest(j, time_ns, is_full, sha);

    if (rc != 0)
        return rc;
    j->a.number = j->newest;
    memcpy(j->a.sha, sha, sizeof sha);
    j->a.time_ns = time_ns;
    if (is_full) {
        j->a.full_number = j->newest;
        j->a.full_time_ns = time_ns;
    }
    j->a.n_named = j->a.n;
    j->wants_full = false;
    j->shipped_ns = xac_clock_ns();
    rc = archive_place_note(&j->place, j->a.number, j->a.sha);
    if (rc == 0 && j->a.at.generation != 0 && j->has_source
        && j->a.at.generation == j->source.follow.id.generation)
        xac_source_keep(&j->source, j->a.at_lsn);
    j->rep->manifest = j->a.number;
    j->rep->generation = j->a.at.generation;
    j->rep->lsn = j->a.at_lsn;
    return rc;
}

/* ---- The source ------------------------------------------------------------------- */

/* hold -- as a participant: a new slot, from the redo position on. */
static int
hold(void *arg, struct xac_env *env)
{
    const struct archive_job *j = (const struct archive_job *)arg;
    uint64_t lsn;
    int rc = xac_hold_drop(env, j->slot);

    if (rc != 0 && rc != ENOENT)
        return rc;
    return xac_hold_make(env, j->slot, &lsn);
}

/* close_source */
static void
close_source(struct archive_job *j)
{
    if (j->has_source)
        xac_source_close(&j->source);
    j->has_source = false;
}

/* open_source -- and the slot's position. */
static int
open_source(struct archive_job *j, uint64_t *lsnp)
{
    int rc;

    close_source(j);
    j->has_source = true;
    rc = xac_source_open(&j->source, j->opt->dir);
    return rc == 0 ? xac_source_hold(&j->source, j->slot, lsnp) : rc;
}

/* generation_at -- the one that has the log at an LSN. */
static int
generation_at(struct archive_job *j, uint64_t lsn, uint32_t *generationp,
              uint64_t *segment_bytesp)
{
    const struct xac_master_slot *m = &j->source.master;
    struct xac_lineage *l;
    int rc;

    *generationp = m->generation;
    *segment_bytesp = m->segment_bytes;
    if (lsn >= m->start_lsn)
        return 0;
    l = (struct xac_lineage *)malloc(sizeof *l);
    rc = l == NULL ? xac_err(ENOMEM, "%s", XAC_LINEAGE_NAME)
                   : xac_lineage_read(j->source.dirfd, m->generation, l);
    *generationp = 1;
    for (size_t i = 0; rc == 0 && i < l->n && l->line[i].start_lsn <= lsn; i++) {
        *generationp = l->line[i].generation;
        *segment_bytesp = l->line[i].segment_bytes;
    }
    free(l);
    return rc;
}

/* begin_anew -- with a new slot; behind it comes a backup. */
static int
begin_anew(struct archive_job *j)
{
    uint32_t generation;
    uint64_t lsn = 0, segment_bytes;
    int rc;

    close_source(j);
    archive_segment_drop(j);
    rc = tool_take_part(j->opt->dir, NULL, "xarchive", hold, j);
    if (rc == 0)
        rc = open_source(j, &lsn);
    if (rc == 0)
        rc = generation_at(j, lsn, &generation, &segment_bytes);
    if (rc == 0)
        rc = xac_source_seek(&j->source, generation, lsn, segment_bytes);
    j->is_anew = j->wants_backup = true;
    return rc;
}

/* fits -- is what is archived a part of this log? */
static int
fits(struct archive_job *j)
{
    const struct xac_lineage_line *at = &j->a.at, *next = NULL;
    struct xac_lineage *l = (struct xac_lineage *)malloc(sizeof *l);
    struct xac_lineage_line ours;
    int rc = xac_source_line(&j->source, at->generation, &ours);

    if (rc == 0 && l == NULL)
        rc = xac_err(ENOMEM, "%s", XAC_LINEAGE_NAME);
    if (rc == 0)
        rc = xac_lineage_read(j->source.dirfd, j->source.master.generation, l);
    if (rc == 0)
        next = xac_lineage_behind(l, at->generation);
    if (rc == 0
        && (ours.generation == 0 || j->source.master.generation < at->generation
            || memcmp(ours.branch, at->branch, sizeof ours.branch) != 0
            || ours.start_lsn != at->start_lsn
            || (next != NULL && next->end_lsn < j->a.at_lsn)))
        rc = xac_err(XAC_EFOREIGN,
                     "%s: the log of %s and the one that is archived there, up to LSN "
                     "%" PRIu64 ", generation %" PRIu32
                     ", are not the same: archive to another place",
                     j->opt->dest, j->opt->dir, j->a.at_lsn, at->generation);
    free(l);
    return rc;
}

/* begin -- step 2. */
static int
begin(struct archive_job *j)
{
    struct xac_master_slot master;
    uint64_t lsn;
    int rc = xac_master_read(j->place.dirfd, &master);

    if (rc != 0)
        return rc;
    if (j->a.page_size != 0
        && memcmp(j->a.identity, master.identity, sizeof master.identity) != 0)
        return xac_err(XAC_EFOREIGN, "%s: the archive of another environment than %s",
                       j->opt->dest, j->opt->dir);
    memcpy(j->a.identity, master.identity, sizeof master.identity);
    j->a.page_size = master.page_size;
    if (j->a.at.generation == 0)
        return begin_anew(j);
    rc = open_source(j, &lsn);
    if (rc == 0 || rc == XAC_ECUTOFF) {
        int fit = fits(j);

        if (fit != 0)
            return fit;
    }
    if (rc == 0)
        rc = xac_source_seek(&j->source, j->a.at.generation, j->a.at_lsn,
                             j->a.at.segment_bytes);
    return rc;
}

/* go_on -- log that was to be read next is gone: begin anew, and say so. */
static int
go_on(struct archive_job *j)
{
    fprintf(stderr,
            "%s: %s: %s\n%s: log behind LSN %" PRIu64
            " is missing in the archive; a new backup follows\n",
            tool_name, j->opt->dir, xac_err_text(), tool_name, j->a.at_lsn);
    return begin_anew(j);
}

/* ---- The whole -------------------------------------------------------------------- */

/* gather -- step 3, until there is no more, or a part of the usual size. */
static int
gather(struct archive_job *j, bool *morep)
{
    struct xac_followed f = {.blk = NULL};
    uint64_t bytes = 0;
    int rc = 0;

    *morep = true;
    while (rc == 0 && *morep && bytes < PART_BYTES) {
        rc = xac_source_next(&j->source, &f);
        *morep = rc == 0 && f.blk != NULL;
        if (*morep) {
            bytes += f.blk->length;
            rc = archive_take(j, &f);
        }
    }
    if (rc == 0 && !j->opt->quiet && progress_is_wanted()
        && j->source.limit != XAC_FOLLOW_SEALED
        && j->source.limit >= j->source.follow.lsn)
        progress_line(&j->shown,
                      "log read up to LSN %" PRIu64 ", %" PRIu64 " bytes behind",
                      j->source.follow.lsn, j->source.limit - j->source.follow.lsn);
    return rc;
}

/* is_time -- to put the blocks that have been read? */
static bool
is_time(const struct archive_job *j)
{
    return !j->opt->follows || archive_is_stopped(j)
           || xac_clock_ns() >= j->shipped_ns + EVERY_NS;
}

/* turn -- steps 3 to 5, once; *donep: all is there. */
static int
turn(struct archive_job *j, bool *donep)
{
    bool has_more;
    int rc = gather(j, &has_more);

    *donep = false;
    if (rc == XAC_ECUTOFF)
        return go_on(j);
    if (rc == 0 && (has_more || is_time(j)))
        rc = archive_ship_all(j);
    if (rc != 0 || has_more)
        return rc;
    if (archive_is_stopped(j)) {
        *donep = true;
        return 0;
    }
    if (j->a.n == j->a.n_named && archive_backup_is_due(j))
        return archive_backup(j);
    *donep = !j->opt->follows;
    if (!*donep)
        xac_source_wait(&j->source, 1000);
    return 0;
}

/* work -- until all is there, or `stop`. */
static int
work(struct archive_job *j)
{
    uint64_t cleaned_ns = xac_clock_ns();
    bool is_done = false;
    int rc =
        archive_place_clean(&j->place, &j->store, &j->a, xac_clock_read(CLOCK_REALTIME));

    if (rc == 0)
        rc = begin(j);
    if (rc == XAC_ECUTOFF)
        rc = go_on(j);
    while (rc == 0 && !is_done) {
        rc = turn(j, &is_done);
        if (rc == 0 && j->a.n == j->a.n_named && j->seg.fd < 0
            && xac_clock_ns() >= cleaned_ns + CLEAN_NS) {
            cleaned_ns = xac_clock_ns();
            rc = archive_place_clean(&j->place, &j->store, &j->a,
                                     xac_clock_read(CLOCK_REALTIME));
        }
    }
    return rc == EINTR && archive_is_stopped(j) ? 0 : rc;
}

/* take_stock -- of the archive: the last notes, and how much log is behind the last backup. */
static void
take_stock(struct archive_job *j)
{
    static const char *const name[] = {XAC_ADDRESSES_NAME, XAC_LINEAGE_NAME};
    uint64_t end = 0;

    for (size_t i = 0; i < j->a.n; i++) {
        const struct archive_object *o = &j->a.object[i];

        for (size_t k = 0; o->kind == ARCHIVE_NOTE && k < 2; k++) {
            if (strcmp(o->path, name[k]) == 0)
                j->noted[k] = o->sum;
        }
        if (o->kind == ARCHIVE_BACKUP)
            end = o->end;
    }
    for (size_t i = 0; i < j->a.n; i++) {
        const struct archive_object *o = &j->a.object[i];

        if (o->kind == ARCHIVE_LOG && o->end > end)
            j->since_backup += o->end - (o->start > end ? o->start : end);
    }
    j->rep->manifest = j->a.number;
    j->rep->generation = j->a.at.generation;
    j->rep->lsn = j->a.at_lsn;
}

int
archive_run(const struct archive_options *options, struct archive_report *report)
{
    struct archive_job *j = (struct archive_job *)calloc(1, sizeof *j);
    int dirfd = -1, rc;

    *report = (struct archive_report){.objects = 0};
    if (j == NULL)
        return xac_err(ENOMEM, "xarchive");
    j->opt = options;
    j->rep = report;
    j->seg.fd = j->place.statefd = j->place.lockfd = -1;
    j->shown = progress_start("");
    (void)snprintf(j->slot, sizeof j->slot, "archive-%016" PRIx64,
                   xac_xxh64(options->dest, strlen(options->dest)));
    rc = tool_open_dir(options->dir, &dirfd, NULL);
    if (rc == 0)
        rc = archive_store_open(&j->store, options->dest);
    else
        j->store.dirfd = j->store.stagefd = -1;
    j->store.stop = options->stop;
    if (rc == 0)
        rc = archive_place_open(&j->place, &j->store, dirfd, options->dir);
    if (rc == 0)
        rc = archive_place_read(&j->place, &j->store, &j->a, &j->newest);
    if (rc == 0) {
        take_stock(j);
        rc = work(j);
    }
    progress_end(&j->shown);
    archive_segment_drop(j);
    close_source(j);
    archive_place_close(&j->place, &j->store);
    archive_store_close(&j->store);
    archive_free(&j->a);
    xac_close_fd(&dirfd);
    free(j);
    return rc;
}
