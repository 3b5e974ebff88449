/* SPDX-License-Identifier: MIT */
/*
 * fuzz_env.c -- targets: the log with data files and everything else that a recovery reads; the
 * master record; checksums of pages.
 *
 * recover  looks (--dry-run with --check), then recovers; what has been recovered can be
 *          recovered again, and is clean then
 * master   read, written, read again
 * sums     compared, added to, compared again, dropped
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "checkpoint/pagesums.h"
#include "files.h"
#include "log/logdir.h"
#include "log/master.h"
#include "log/recover_check.h"
#include "recovery/pagesums_check.h"
#include "recovery/recover.h"

/* ---- Recovery ----------------------------------------------------------------------- */

static uint64_t told;

static void
damage_told(void *arg, const struct xac_pagesums_damage *d)
{
    (void)arg;
    told += strlen(d->file) + d->page;
}

static void
place_told(void *arg, const struct xac_place *place)
{
    (void)arg;
    if (place->why[0] == '\0')
        fuzz_fail("damage without a word at %s", place->file);
}

/* look -- as xrecover --check does. */
static void
look(int dirfd, const struct xac_recover_options *options)
{
    struct xac_pagesums_check pages = {.damage = damage_told};
    struct xac_recover_options o = *options;
    struct xac_master_slot master;
    struct xac_check_report found;
    char *path;
    int fd;
    int rc;

    o.dry_run = true;
    o.pages = &pages;
    rc = xac_recover_dir(dirfd, &o, NULL, NULL);
    fuzz_told("dry run", rc);
    if (xac_master_read(dirfd, &master) != 0
        || xac_logdir_open(dirfd, NULL, master.identity, &fd, &path) != 0)
        return;
    rc = xac_check_log(fd, &master, place_told, NULL, &found);
    fuzz_told("check", rc);
    (void)close(fd);
    free(path);
}

static void
run_recover(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct xac_recover_options options = {0};
    struct xac_recover_report report;
    struct xac_master_slot master;
    uint64_t flags = fuzz_bytes(&in, 1);
    int dirfd = fuzz_files_dir();
    int rc;

    fuzz_watch();
    options.cut = (flags & 1) != 0;
    options.forward = (flags & 2) != 0;
    options.until_lsn = (flags & 4) != 0 ? fuzz_bytes(&in, 3) : 0;
    options.until_ns = (flags & 8) != 0 ? fuzz_bytes(&in, 8) : 0;
    options.memory_bytes = (flags & 16) != 0 ? 2 * 4096 : 0;
    options.new_segment_bytes = (flags & 32) != 0 ? 4096 : 0;
    fuzz_files_damage(&in, FUZZ_MASTER | FUZZ_SEGMENT | FUZZ_BLOCK);
    look(dirfd, &options);
    rc = xac_recover_dir(dirfd, &options, &report, &master);
    if (size == 0 && rc != 0)
        fuzz_fail("without damage: %s", xac_err_text());
    fuzz_told("recovery", rc);
    if (rc != 0)
        return;
    options = (struct xac_recover_options){0};
    rc = xac_recover_dir(dirfd, &options, &report, &master);
    if (rc != 0)
        fuzz_fail("recovered, but not a second time: %d, %s", rc, xac_err_text());
}

/* ---- The master record -------------------------------------------------------------- */

static void
run_master(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct xac_master_slot was, now;
    int dirfd = fuzz_files_dir();
    bool is_lost;
    int rc;

    fuzz_watch();
    fuzz_files_damage(&in, FUZZ_MASTER);
    rc = xac_master_read(dirfd, &was);
    fuzz_must(rc == 0 || size != 0);
    if (rc == ENOENT)
        xac_err_clear();
    else
        fuzz_told("reading", rc);
    if (rc != 0)
        return;
    fuzz_must(was.segment_bytes >= XAC_SEGMENT_HEADER
              && (was.segment_bytes & (was.segment_bytes - 1)) == 0);
    now = was;
    now.flags ^= XAC_MASTER_LOGGED;
    rc = xac_master_write(dirfd, &now, &is_lost);
    fuzz_told("writing", rc);
    if (rc != 0)
        return;
    fuzz_must(xac_master_read(dirfd, &now) == 0);
    fuzz_must(now.flags == (was.flags ^ XAC_MASTER_LOGGED));
    fuzz_must(now.sequence == was.sequence + 1);
}

/* ---- Checksums of pages ------------------------------------------------------------- */

static bool
none_redone(void *arg, uint64_t inode, uint64_t page)
{
    (void)arg;
    return inode % 2 == 0 && page == 1;
}

static int
one_file(void *arg, uint32_t file, struct xac_pagesums_file *out)
{
    (void)file;
    *out = (struct xac_pagesums_file){.who = *(const struct xac_identity *)arg,
                                      .path = "one.db"};
    return 0;
}

/* verify -- ret pages compared. */
static uint64_t
verify(int dirfd)
{
    struct xac_pagesums_check c = {.damage = damage_told};

    fuzz_told("comparing", xac_pagesums_verify(dirfd, fuzz_files_master(), UINT64_MAX,
                                               none_redone, NULL, &c));
    return c.pages;
}

static void
run_sums(const uint8_t *data, size_t size)
{
    static const uint8_t page[4096];
    struct fuzz_input in = {data, size};
    int dirfd = fuzz_files_dir();
    struct xac_identity who;
    struct xac_pagesums sums = {.n = 0};
    struct xac_pagesums_store where = {.dirfd = dirfd,
                                       .identity = fuzz_files_master()->identity,
                                       .page_size = sizeof page,
                                       .lsn = 4096,
                                       .make = fuzz_bytes(&in, 1) % 2 == 0,
                                       .file = one_file,
                                       .arg = &who};

    fuzz_watch();
    fuzz_files_damage(&in, FUZZ_SUMS | FUZZ_ENTRY);
    fuzz_must(verify(dirfd) > 0 || size != 0);
    if (xac_identity_at(dirfd, "one.db", &who) == 0) {
        fuzz_must(xac_pagesums_add(&sums, 0, 1, page, sizeof page) == 0);
        fuzz_told("storing", xac_pagesums_put(&sums, &where));
        xac_pagesums_free(&sums);
        (void)verify(dirfd);
    }
    fuzz_told("dropping", xac_pagesums_drop_all(dirfd));
}

const struct fuzz_target fuzz_env_targets[] = {{"recover", run_recover},
                                               {"master", run_master},
                                               {"sums", run_sums},
                                               {NULL, NULL}};
