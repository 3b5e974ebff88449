/* SPDX-License-Identifier: MIT */
/*
 * fuzz_notes.c -- targets: the small text files of an environment.
 *
 * The input is the file.
 * backup     xac.backup: read, written, read again
 * logdir     xac.logdir, and behind a form feed the mark in the directory that it names
 * addresses  xac.addresses: an environment is opened, a file mapped, and a backup made
 * lock       xac.lock: the environment that has it is opened
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "log/backup_note.h"
#include "log/logdir.h"
#include "target.h"

/* ---- The note of a backup ----------------------------------------------------------- */

static void
run_backup(const uint8_t *data, size_t size)
{
    struct xac_backup_note note = {.n_files = 0}, again = {.n_files = 0};
    int dirfd = fuzz_fresh("backup");
    int rc;

    fuzz_put("backup/" XAC_BACKUP_NAME, data, size);
    rc = xac_backup_note_read(dirfd, &note);
    fuzz_told("reading", rc);
    if (rc == 0) {
        for (size_t i = 0; i < note.n_files; i++)
            fuzz_must(xac_backup_note_find(&note, note.file[i].path) != NULL);
        fuzz_told("writing", xac_backup_note_write(dirfd, &note));
        fuzz_must(xac_backup_note_read(dirfd, &again) == 0);
        fuzz_must(again.n_files == note.n_files && again.end_lsn == note.end_lsn);
        xac_backup_note_free(&again);
    }
    xac_backup_note_free(&note);
    (void)close(dirfd);
}

/* ---- Where the log is --------------------------------------------------------------- */

static void
run_logdir(const uint8_t *data, size_t size)
{
    static const uint8_t identity[16];
    const uint8_t *mark = memchr(data, '\f', size);
    size_t n = mark != NULL ? (size_t)(mark - data) : size;
    int logs = fuzz_fresh("logs"), dirfd = fuzz_fresh("env");
    char *path;
    int fd;
    int rc;

    fuzz_put("env/" XAC_LOGDIR_NOTE, data, n);
    if (mark != NULL)
        fuzz_put("logs/" XAC_LOGDIR_MARK, mark + 1, size - n - 1);
    rc = xac_logdir_open(dirfd, NULL, identity, &fd, &path);
    fuzz_told("opening", rc);
    if (rc == 0) {
        fuzz_must(path != NULL && path[0] == '/' && fd >= 0);
        (void)close(fd);
        free(path);
    }
    (void)close(logs);
    (void)close(dirfd);
}

/* ---- A whole environment ------------------------------------------------------------ */

#define LENGTH ((size_t)4 * 4096)

/* use -- open it, map a file, change it, back it up, close it. */
static void
use(void)
{
    volatile uint64_t *x;
    int rc = xac_init("env", XAC_NONDURABLE);

    fuzz_told("xInit", rc);
    if (rc != 0)
        return;
    x = (volatile uint64_t *)xac_mmap("env/inside.db", LENGTH);
    if (x == MAP_FAILED) {
        fuzz_told("xMmap", errno);
    } else {
        fuzz_must(xac_begin() == 0);
        x[3]++;
        fuzz_must(xac_end() == XAC_COMMITTED);
        fuzz_told("xBackup", xac_backup("copy"));
    }
    xac_err_clear();
    fuzz_told("xShutdown", xac_shutdown());
}

/* run_env -- with such a file in its directory. */
static void
run_env(const char *path, const uint8_t *data, size_t size)
{
    int copy = fuzz_fresh("copy"), shm = fuzz_fresh("shm"), dirfd = fuzz_fresh("env");
    char where[600];

    (void)close(copy);
    fuzz_must(rmdir("copy") == 0);
    (void)snprintf(where, sizeof where, "%s/shm", fuzz_scratch());
    fuzz_must(setenv("XAC_SHM_DIR", where, 1) == 0);
    fuzz_put(path, data, size);
    use();
    (void)close(shm);
    (void)close(dirfd);
}

static void
run_addresses(const uint8_t *data, size_t size)
{
    run_env("env/xac.addresses", data, size);
}

static void
run_lock(const uint8_t *data, size_t size)
{
    run_env("env/xac.lock", data, size);
}

const struct fuzz_target fuzz_note_targets[] = {{"backup", run_backup},
                                                {"logdir", run_logdir},
                                                {"addresses", run_addresses},
                                                {"lock", run_lock},
                                                {NULL, NULL}};
