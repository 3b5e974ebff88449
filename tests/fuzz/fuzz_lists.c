/* SPDX-License-Identifier: MIT */
/*
 * fuzz_lists.c -- targets: files that say what is to be done to a directory, or what a backup or an archive consists of.
 *
 * rewind    xac.rewind: read, written, read again; while it is there, no recovery uses the directory
 * manifest  xac.manifest of a backup (xbackup): likewise
 * archive   the manifests of an archive (xarchive): read, the next one written, read with it
 *
 * Each begins as the library writes it.  The input changes it; checksums are made right again, unless it says not to.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <xac.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/stored.h"
#include "files.h"
#include "log/manifest.h"
#include "log/rewind_note.h"
#include "recovery/archive_manifest.h"
#include "recovery/recover.h"
#include "target.h"

#define EDITS_MAX 12u
#define ROOM      512u /* that a file can become longer by                             */

/* A file as it was made. */
struct made {
    uint8_t *bytes;
    size_t n;
};

/* changed -- a copy of it, changed by the input and sealed again; the caller frees it. */
static struct made
changed(struct fuzz_input *in, const struct made *was,
        void (*seal)(uint8_t *bytes, size_t n))
{
    struct made now = {.bytes = (uint8_t *)malloc(was->n + ROOM), .n = was->n};
    bool seals = fuzz_bytes(in, 1) % 2 == 0;

    fuzz_must(now.bytes != NULL);
    memcpy(now.bytes, was->bytes, was->n);
    for (unsigned n = 0; n < EDITS_MAX && in->left > 0; n++)
        fuzz_edit(in, now.bytes, &now.n, was->n + ROOM);
    if (seals)
        seal(now.bytes, now.n);
    return now;
}

/* ---- xac.rewind ----------------------------------------------------------------------------- */

#define REWIND "rewind/" XAC_REWIND_NAME

/* rewind_make -- pages of one file, all of another one, and one that goes. */
static void
rewind_make(struct made *m)
{
    const struct xac_master_slot *master = fuzz_files_master();
    struct xac_rewind_note note = {.own_bytes = 65536, .master = *master};
    struct xac_rewind_file *f;
    int dirfd = fuzz_fresh("rewind");

    note.line = (struct xac_lineage_line){.generation = 2,
                                          .previous = 1,
                                          .start_lsn = 2 * XAC_LSN_GENERATION_ALIGN,
                                          .end_lsn = XAC_LSN_GENERATION_ALIGN,
                                          .segment_bytes = 65536};
    note.master.redo_lsn = note.line.start_lsn;
    f = xac_rewind_note_add(&note, XAC_REWIND_PAGES, "one.db");
    for (uint64_t p = 1; p < 12; p += p % 3)
        fuzz_must(f != NULL && xac_rewind_file_add(f, p) == 0);
    fuzz_must(xac_rewind_note_add(&note, XAC_REWIND_WHOLE, "below/two.db") != NULL
              && xac_rewind_note_add(&note, XAC_REWIND_GONE, "three.db") != NULL
              && xac_rewind_note_write(dirfd, &note) == 0);
    xac_rewind_note_free(&note);
    (void)close(dirfd);
    m->bytes = fuzz_get(REWIND, &m->n);
}

static void
rewind_seal(uint8_t *bytes, size_t n)
{
    struct xac_rewind_head h;

    if (n < sizeof h)
        return;
    memcpy(&h, bytes, sizeof h);
    h.body_bytes = n - sizeof h;
    h.body_check = xac_xxh64(bytes + sizeof h, n - sizeof h);
    h.checksum = xac_xxh64(&h, offsetof(struct xac_rewind_head, checksum));
    memcpy(bytes, &h, sizeof h);
}

/* rewind_same -- do two notes say the same, and nothing that leads out of the directory? */
static void
rewind_same(const struct xac_rewind_note *a, const struct xac_rewind_note *b)
{
    fuzz_must(a->n_files == b->n_files && a->whole_lsn == b->whole_lsn
              && a->own_bytes == b->own_bytes
              && memcmp(&a->master, &b->master, sizeof a->master) == 0
              && a->line.end_lsn == b->line.end_lsn);
    for (size_t i = 0; i < a->n_files; i++) {
        const struct xac_rewind_file *f = &a->file[i], *g = &b->file[i];
        uint64_t from = 0;

        fuzz_must(strcmp(f->path, g->path) == 0 && xac_stored_is_inside(f->path));
        fuzz_must(f->what == g->what && f->n_runs == g->n_runs);
        for (size_t k = 0; k < f->n_runs; k++) {
            fuzz_must(f->run[k].n > 0 && f->run[k].page >= from
                      && f->run[k].n == g->run[k].n && f->run[k].page == g->run[k].page);
            from = f->run[k].page + f->run[k].n + 1;
        }
    }
}

static void
run_rewind(const uint8_t *data, size_t size)
{
    static struct made was;
    struct fuzz_input in = {data, size};
    struct xac_recover_options options = {0};
    struct xac_rewind_note note, again;
    struct made now;
    int dirfd, rc;

    if (was.bytes == NULL)
        rewind_make(&was);
    dirfd = fuzz_fresh("rewind");
    now = changed(&in, &was, rewind_seal);
    fuzz_put(REWIND, now.bytes, now.n);
    free(now.bytes);
    rc = xac_rewind_note_read(dirfd, &note);
    fuzz_told("reading", rc);
    fuzz_must(rc == 0 || size != 0);
    if (rc == 0) {
        fuzz_told("writing", xac_rewind_note_write(dirfd, &note));
        fuzz_must(xac_rewind_note_read(dirfd, &again) == 0);
        rewind_same(&note, &again);
        xac_rewind_note_free(&again);
    }
    xac_rewind_note_free(&note);
    rc = xac_recover_dir(dirfd, &options, NULL, NULL);
    fuzz_must(rc == XAC_ENOTENV);
    fuzz_told("recovery", rc);
    (void)close(dirfd);
}

/* ---- xac.manifest --------------------------------------------------------------------------- */

#define MANIFEST "manifest/" XAC_MANIFEST_NAME

/* manifest_make -- of an increment: pages of two files, and one that was missing. */
static void
manifest_make(struct made *m)
{
    const struct xac_master_slot *master = fuzz_files_master();
    struct xac_owner owner = {.uid = getuid(), .gid = getgid(), .mode = 0600};
    struct xac_manifest out = {.master = *master};
    struct xac_manifest_head *h = &out.head;
    struct xac_manifest_file *f;
    int dirfd = fuzz_fresh("manifest");

    h->page_size = master->page_size;
    h->id[0] = 1;
    h->base[0] = 2;
    memcpy(h->identity, master->identity, sizeof h->identity);
    h->generation = master->generation;
    h->link = 1;
    h->redo_lsn = master->redo_lsn;
    h->end_lsn = master->redo_lsn + 4096;
    h->base_lsn = master->redo_lsn;
    for (int i = 0; i < 3; i++) {
        static const char *const paths[] = {"one.db", "/elsewhere/two.db", "three.db"};
        static const char *const copies[] = {"one.db", "xac-outside/2-two.db",
                                             "three.db"};

        f = xac_manifest_add(&out, paths[i], copies[i]);
        fuzz_must(f != NULL);
        f->length = (uint64_t)16 * master->page_size;
        f->owner = owner;
        f->id = (uint32_t)i + 1;
        f->is_missing = i == 2;
        for (uint64_t p = 0; p < 12 && i < 2; p += 1 + p % 3)
            fuzz_must(xac_manifest_add_page(&out, p) == 0);
    }
    fuzz_must(xac_manifest_write(&out, dirfd, &owner) == 0);
    xac_manifest_free(&out);
    (void)close(dirfd);
    m->bytes = fuzz_get(MANIFEST, &m->n);
}

static void
manifest_seal(uint8_t *bytes, size_t n)
{
    struct xac_manifest_head h;
    struct xac_master_slot master;

    if (n < sizeof h + sizeof master)
        return;
    memcpy(&master, bytes + sizeof h, sizeof master);
    master.checksum = xac_xxh64(&master, offsetof(struct xac_master_slot, checksum));
    memcpy(bytes + sizeof h, &master, sizeof master);
    memcpy(&h, bytes, sizeof h);
    h.body_check = xac_xxh64(bytes + sizeof h, n - sizeof h);
    h.checksum = xac_xxh64(&h, offsetof(struct xac_manifest_head, checksum));
    memcpy(bytes, &h, sizeof h);
}

/* manifest_same -- do both name the same files and pages, all in the backup? */
static void
manifest_same(const struct xac_manifest *a, const struct xac_manifest *b)
{
    uint64_t changed = 0;

    fuzz_must(a->n_files == b->n_files && a->n_runs == b->n_runs
              && memcmp(&a->head, &b->head, sizeof a->head) == 0);
    for (size_t i = 0; i < a->n_files; i++) {
        const struct xac_manifest_file *f = &a->file[i], *g = &b->file[i];

        fuzz_must(strcmp(f->path, g->path) == 0 && strcmp(f->copy, g->copy) == 0);
        fuzz_must(xac_stored_is_inside(f->copy) && f->list_block == g->list_block);
        fuzz_must(f->length == g->length && f->first_run == g->first_run
                  && f->first_run + f->n_runs <= a->n_runs && f->first_page == changed);
        fuzz_must(xac_manifest_find(a, f->path) != NULL);
        for (size_t k = f->first_run; k < f->first_run + f->n_runs; k++) {
            fuzz_must(a->run[k].page + a->run[k].n <= xac_manifest_pages(a, f));
            changed += a->run[k].n;
        }
    }
    fuzz_must(changed == a->head.n_changed);
}

static void
run_manifest(const uint8_t *data, size_t size)
{
    static struct made was;
    struct fuzz_input in = {data, size};
    struct xac_owner owner = {.uid = getuid(), .gid = getgid(), .mode = 0600};
    struct xac_manifest m, again;
    struct made now;
    int dirfd, rc;

    if (was.bytes == NULL)
        manifest_make(&was);
    dirfd = fuzz_fresh("manifest");
    now = changed(&in, &was, manifest_seal);
    fuzz_put(MANIFEST, now.bytes, now.n);
    free(now.bytes);
    rc = xac_manifest_read(&m, dirfd, "manifest");
    fuzz_told("reading", rc);
    fuzz_must(rc == 0 || size != 0);
    if (rc == 0) {
        fuzz_told("writing", xac_manifest_write(&m, dirfd, &owner));
        fuzz_must(xac_manifest_load(&again, dirfd, "manifest") == 0);
        manifest_same(&m, &again);
        xac_manifest_free(&again);
    }
    xac_manifest_free(&m);
    (void)close(dirfd);
}

/* ---- Manifests of an archive ------------------------------------------------------------------ */

#define ARCHIVE "archive"
#define OBJECTS 5u
#define END_N   (sizeof "end 0123456789abcdef\n" - 1)
#define SHA_HEX ((size_t)2 * ARCHIVE_SHA_BYTES)

/* The first one is full; the second one follows it. */
static struct made manifests[2];

/* sha_put -- of a text, as digits. */
static void
sha_put(char *to, const uint8_t *bytes, size_t n)
{
    uint8_t sha[EVP_MAX_MD_SIZE];
    char two[3];

    fuzz_must(EVP_Digest(bytes, n, sha, NULL, EVP_sha256(), NULL) == 1);
    for (size_t i = 0; i < ARCHIVE_SHA_BYTES; i++) {
        (void)snprintf(two, sizeof two, "%02x", sha[i]);
        memcpy(to + 2 * i, two, 2);
    }
}

/* archive_make -- log, its data, a list of addresses, a backup and its file: three objects, then two more. */
static void
archive_make(void)
{
    static const char *const names[] = {"log.1", "data.1", "addresses.1", "file.1", NULL};
    static const char *const paths[] = {NULL, NULL, "xac.addresses", "xac-outside/1 two",
                                        NULL};
    struct archive a = {.page_size = 4096,
                        .at = {.generation = 1, .segment_bytes = 65536}};

    for (int i = 0; i < 2; i++) {
        char *text;
        size_t n;

        for (size_t k = i == 0 ? 0 : 3; k < (i == 0 ? 3 : OBJECTS); k++) {
            struct archive_object o = {.kind = (enum archive_kind)k,
                                       .name = (char *)(uintptr_t)names[k],
                                       .path = (char *)(uintptr_t)paths[k],
                                       .sum = {.length = 100 + k, .xxh = k},
                                       .generation = 1,
                                       .start = 4096,
                                       .end = 8192,
                                       .serial = 1,
                                       .segment_bytes = 65536,
                                       .time_ns = 5};

            fuzz_must(archive_add(&a, &o) != NULL);
        }
        fuzz_must(archive_write(&a, a.number + 1, 7, i == 0, &text, &n) == 0);
        a.number++;
        a.n_named = a.n;
        fuzz_must(EVP_Digest(text, n, a.sha, NULL, EVP_sha256(), NULL) == 1);
        manifests[i] = (struct made){.bytes = (uint8_t *)text, .n = n};
    }
    archive_free(&a);
}

/* archive_seal -- the last line is the digest of those before. */
static void
archive_seal(uint8_t *bytes, size_t n)
{
    char end[END_N + 1];

    if (n < END_N)
        return;
    (void)snprintf(end, sizeof end, "end %016" PRIx64 "\n", xac_xxh64(bytes, n - END_N));
    memcpy(bytes + n - END_N, end, END_N);
}

/* follow -- the second one has the SHA-256 of the first one, in its third line. */
static void
follow(const struct made *first, struct made *second)
{
    uint8_t *line = second->bytes, *end = second->bytes + second->n;

    for (int i = 0; i < 2 && line != NULL; i++) {
        line = (uint8_t *)memchr(line, '\n', (size_t)(end - line));
        line = line != NULL ? line + 1 : NULL;
    }
    line = line != NULL ? (uint8_t *)memchr(line, '\n', (size_t)(end - line)) : NULL;
    if (line != NULL && (size_t)(line - second->bytes) >= SHA_HEX)
        sha_put((char *)line - SHA_HEX, first->bytes, first->n);
}

static void
archive_put(uint64_t number, const void *bytes, size_t n)
{
    char name[ARCHIVE_NAME_MAX], path[ARCHIVE_NAME_MAX + sizeof ARCHIVE];

    archive_manifest_name(name, number);
    (void)snprintf(path, sizeof path, ARCHIVE "/%s", name);
    fuzz_put(path, bytes, n);
}

/* archive_again -- the same objects, of which a third manifest names all. */
static void
archive_again(struct archive *a, struct archive_store *s)
{
    struct archive b;
    char *text;
    size_t n;

    fuzz_must(archive_write(a, a->number + 1, a->time_ns, true, &text, &n) == 0);
    archive_put(a->number + 1, text, n);
    free(text);
    fuzz_must(archive_read(&b, s, a->number + 1) == 0);
    fuzz_must(b.n == a->n && b.page_size == a->page_size && b.at_lsn == a->at_lsn);
    for (size_t i = 0; i < a->n; i++) {
        const struct archive_object *o = &a->object[i], *p = &b.object[i];

        fuzz_must(
            o->kind == p->kind && o->generation == p->generation && o->start == p->start
            && o->end == p->end && o->serial == p->serial && o->time_ns == p->time_ns
            && (o->kind == ARCHIVE_BACKUP || archive_sum_is_same(&o->sum, &p->sum)));
        fuzz_must(o->name == NULL ? p->name == NULL : strcmp(o->name, p->name) == 0);
        fuzz_must(o->name == NULL || archive_name_ok(o->name));
        fuzz_must(o->path == NULL ? p->path == NULL : strcmp(o->path, p->path) == 0);
    }
    archive_free(&b);
}

static void
run_archive(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    uint8_t which = (uint8_t)fuzz_bytes(&in, 1);
    struct fuzz_input none = {NULL, 0};
    struct made now[2];
    struct archive_store s;
    struct archive a;
    uint64_t newest;
    int rc;

    if (manifests[0].bytes == NULL)
        archive_make();
    (void)close(fuzz_fresh(ARCHIVE));
    for (int i = 0; i < 2; i++) {
        now[i] = changed(which % 2 == i ? &in : &none, &manifests[i], archive_seal);
        if (i == 1 && which % 4 < 2) {
            follow(&now[0], &now[1]);
            archive_seal(now[1].bytes, now[1].n);
        }
        archive_put((uint64_t)i + 1, now[i].bytes, now[i].n);
    }
    fuzz_must(archive_store_open(&s, ARCHIVE) == 0 && archive_newest(&s, &newest) == 0
              && newest == 2);
    rc = archive_read(&a, &s, newest);
    fuzz_told("reading", rc);
    fuzz_must((rc == 0 && a.n == OBJECTS) || size != 0);
    if (rc == 0)
        archive_again(&a, &s);
    archive_free(&a);
    archive_store_close(&s);
    free(now[0].bytes);
    free(now[1].bytes);
}

const struct fuzz_target fuzz_list_targets[] = {{"rewind", run_rewind},
                                                {"manifest", run_manifest},
                                                {"archive", run_archive},
                                                {NULL, NULL}};
