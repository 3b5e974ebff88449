/* SPDX-License-Identifier: MIT */
/*
 * powercut_judge.c -- see powercut.h: what a recovery has made of a crash state.
 */
#include <config.h>

#include "powercut.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "../common/env.h"
#include "base/sys.h"
#include "recovery/recover.h"

const char *const outcome_name[OUTCOMES] = {"right",  "lost",     "partial",
                                            "failed", "unstable", "stuck"};

#define FILE_PAGES (WRITERS * (ROW_PAGES / 2 + 1))

/* The two files, zeros where they end. */
struct files {
    uint8_t *bytes[2];
};

static void
files_read(const struct run *r, struct files *f)
{
    static uint8_t *buf[2];
    size_t size = FILE_PAGES * env_page();

    for (unsigned i = 0; i < 2; i++) {
        char path[500];
        ssize_t got = 0;
        int fd;

        if (buf[i] == NULL)
            buf[i] = (uint8_t *)malloc(size);
        must(buf[i] != NULL);
        f->bytes[i] = buf[i];
        snprintf(path, sizeof path, "%s/%s", r->root, work_path[i + 1]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            got = read(fd, buf[i], size);
            must(got >= 0);
            (void)close(fd);
        }
        memset(buf[i] + got, 0, size - (size_t)got);
    }
}

uint64_t
judge_hash(const struct run *r)
{
    struct files f;
    uint64_t h[2];

    files_read(r, &f);
    for (unsigned i = 0; i < 2; i++)
        h[i] = XXH3_64bits(f.bytes[i], FILE_PAGES * env_page());
    return XXH3_64bits(h, sizeof h);
}

/* The header of a writer, read from a file: number, what it has seen, check. */
static const uint64_t *
header_in(const struct files *f, unsigned w)
{
    return (const uint64_t *)(const void *)(f->bytes[0] + w * env_page());
}

void
judge_counts(const struct run *r, uint64_t n[WRITERS])
{
    struct files f;

    files_read(r, &f);
    for (unsigned w = 0; w < WRITERS; w++)
        n[w] = header_in(&f, w)[0];
}

/* judge_row -- is the row of a writer as after its transaction n? */
static bool
judge_row(const struct run *r, const struct files *f, unsigned w, char *what,
          size_t what_size)
{
    const uint64_t *h = header_in(f, w);
    uint64_t n = h[0];

    if (n != 0 && h[1 + WRITERS] != (XXH3_64bits(h + 1, WRITERS * sizeof h[0]) ^ n)) {
        snprintf(what, what_size, "writer %u: half a header of transaction %llu", w,
                 (unsigned long long)n);
        return false;
    }
    for (unsigned j = 0; j < ROW_PAGES; j++) {
        unsigned file;
        uint64_t page = work_page(w, j, &file);
        const uint8_t *bytes = f->bytes[file] + page * env_page();

        if (XXH3_64bits(bytes, env_page()) != r->page_hash[w][n][j]) {
            snprintf(what, what_size,
                     "writer %u: page %u of its row is not that of transaction %llu", w,
                     j, (unsigned long long)n);
            return false;
        }
    }
    return true;
}

/* name_state -- the state of the file whose name changes: see work_name; UINT64_MAX: both names. */
static uint64_t
name_state(const struct run *r, const struct promise *p)
{
    uint64_t value[2] = {0, 0};
    bool is_there[2];

    for (unsigned i = 0; i < 2; i++) {
        char path[500];
        int fd;

        snprintf(path, sizeof path, "%s/%s", r->root, work_name[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        is_there[i] = fd >= 0;
        if (fd >= 0) {
            must(read(fd, &value[i], sizeof value[i]) >= 0);
            (void)close(fd);
        }
    }
    if (is_there[0] && is_there[1])
        return UINT64_MAX;
    if (value[0] != 0)
        return 3 * value[0] - 2;
    if (is_there[1])
        return value[1] != 0 ? 3 * value[1] - 1 : UINT64_MAX;
    return (p->name_reached + 2) / 3 * 3; /* not there, or it has just been made */
}

enum outcome
judge_files(const struct run *r, const struct promise *p, char *what, size_t what_size)
{
    struct files f;

    files_read(r, &f);
    for (unsigned w = 0; w < WRITERS; w++) {
        uint64_t n = header_in(&f, w)[0];

        if (n < p->acknowledged[w]) {
            snprintf(what, what_size, "writer %u: acknowledged %llu, found %llu", w,
                     (unsigned long long)p->acknowledged[w], (unsigned long long)n);
            return OUTCOME_LOST;
        }
        if (n > p->tried[w]) {
            snprintf(what, what_size, "writer %u: tried %llu, found %llu", w,
                     (unsigned long long)p->tried[w], (unsigned long long)n);
            return OUTCOME_PARTIAL;
        }
    }
    if ((r->script->flags & WITH_NAMES) != 0) {
        uint64_t t = name_state(r, p);

        if (t < p->name_reached || t > p->name_tried) {
            snprintf(what, what_size, "name: reached %llu, tried %llu, found %llu",
                     (unsigned long long)p->name_reached,
                     (unsigned long long)p->name_tried, (unsigned long long)t);
            return t < p->name_reached ? OUTCOME_LOST : OUTCOME_PARTIAL;
        }
    }
    for (unsigned w = 0; w < WRITERS; w++) {
        if (!judge_row(r, &f, w, what, what_size))
            return OUTCOME_PARTIAL;
        for (unsigned v = 0; v < WRITERS; v++) {
            uint64_t seen = header_in(&f, w)[1 + v];

            if (seen > header_in(&f, v)[0]) {
                snprintf(what, what_size, "writer %u has seen %llu of writer %u: missing",
                         w, (unsigned long long)seen, v);
                return OUTCOME_PARTIAL;
            }
        }
    }
    return OUTCOME_RIGHT;
}

/* is_unborn -- nothing has been promised and no environment is there yet. */
static bool
is_unborn(const struct promise *p, int rc)
{
    if (rc != XAC_ENOTENV && rc != ENOENT)
        return false;
    for (unsigned w = 0; w < WRITERS; w++) {
        if (p->acknowledged[w] != 0)
            return false;
    }
    return true;
}

/* go_on -- a new workload, and how the files are after it. */
static enum outcome
go_on(const struct run *r, const struct promise *p, uint64_t seed, char *what,
      size_t what_size)
{
    struct promise more = *p;
    const char *failed = work_continue(r, seed);
    enum outcome o;

    if (failed != NULL) {
        snprintf(what, what_size, "going on: %s", failed);
        return OUTCOME_STUCK;
    }
    for (unsigned w = 0; w < WRITERS; w++) {
        more.acknowledged[w] = p->acknowledged[w] + (p->acknowledged[w] < TXNS_MAX);
        more.tried[w] = p->tried[w] + 1;
    }
    o = judge_files(r, &more, what, what_size);
    return o == OUTCOME_RIGHT ? o : OUTCOME_STUCK;
}

/* note_page -- struct xac_pagesums_check's. */
static void
note_page(void *arg, const struct xac_pagesums_damage *d)
{
    char *words = arg;

    snprintf(words, 200, "page %llu of %.100s: kind %d", (unsigned long long)d->page,
             d->file, (int)d->kind);
}

/* are_pages_right -- no page that recovery would leave alone differs from its checksum; a
   directory that cannot be looked at is for recovery to judge. */
static bool
are_pages_right(const char *db, const char *when, char *what, size_t what_size)
{
    char words[200] = "";
    struct xac_pagesums_check pages = {.damage = note_page, .arg = words};
    struct xac_recover_options o = {.dry_run = true, .pages = &pages};
    int fd = xac_sys.openat(AT_FDCWD, db, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (fd < 0)
        return true;
    (void)xac_recover_dir(fd, &o, NULL, NULL);
    (void)xac_sys.close(fd);
    if (pages.damages != 0)
        snprintf(what, what_size, "checksums %s recovery: %s", when, words);
    return pages.damages == 0;
}

enum outcome
judge_recovery(const struct run *r, const struct promise *p, bool goes_on, uint64_t seed,
               char *what, size_t what_size)
{
    char db[500];
    uint64_t was;
    enum outcome o;
    int rc;

    snprintf(db, sizeof db, "%s/%s", r->root, work_path[0]);
    if (!are_pages_right(db, "before", what, what_size))
        return OUTCOME_FAILED;
    rc = xac_recover(db);
    if (rc != 0 && !is_unborn(p, rc)) {
        snprintf(what, what_size, "xRecover: %s: %s", xac_strerror(rc), xac_last_error());
        return OUTCOME_FAILED;
    }
    o = judge_files(r, p, what, what_size);
    if (o != OUTCOME_RIGHT)
        return o;
    if (!are_pages_right(db, "after", what, what_size))
        return OUTCOME_FAILED;
    if (rc == 0) {
        was = judge_hash(r);
        rc = xac_recover(db);
        if (rc != 0) {
            snprintf(what, what_size, "xRecover again: %s: %s", xac_strerror(rc),
                     xac_last_error());
            return OUTCOME_UNSTABLE;
        }
        if (judge_hash(r) != was) {
            snprintf(what, what_size, "a second recovery changes the files");
            return OUTCOME_UNSTABLE;
        }
    }
    return goes_on ? go_on(r, p, seed, what, what_size) : OUTCOME_RIGHT;
}
