/* SPDX-License-Identifier: MIT */
/*
 * synth.c -- see synth.h.
 */
#include <config.h>

#include "synth.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac.h>

#include "base/digest.h"
#include "base/identity.h"
#include "log/log.h"
#include "log/master.h"

#define BUFFER (UINT64_C(4) << 20)

#define must(c) ((c) ? (void)0 : die(__LINE__, #c))

static _Noreturn void
die(int line, const char *what)
{
    perror(what);
    fprintf(stderr, "synth.c:%d: %s\n", line, what);
    abort();
}

static void *
zeros(size_t n)
{
    void *p = calloc(n, 1);

    must(p != NULL);
    return p;
}

uint64_t
synth_seed(void)
{
    const char *e = getenv("XAC_SEED");

    return e != NULL ? strtoull(e, NULL, 0) : 20051117;
}

uint64_t
synth_random(struct synth *s, uint64_t below)
{
    s->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = s->random;

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

void
synth_open(struct synth *s, uint32_t page_size, uint64_t segment_bytes)
{
    const char *base = getenv("XAC_TEST_DIR");

    if (base == NULL)
        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    *s = (struct synth){.page_size = page_size, .random = synth_seed()};
    (void)snprintf(s->dir, sizeof s->dir, "%s/xac-synth-XXXXXX", base);
    must(mkdtemp(s->dir) != NULL);
    s->dirfd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(s->dirfd >= 0);
    must(xac_master_create(s->dirfd, page_size, segment_bytes, &s->master) == 0);
    s->begin = s->tail = s->durable = s->master.start_lsn;
    s->b.size = BUFFER;
    s->b.buf = (uint8_t *)zeros(BUFFER);
    xac_builder_init(&s->b, s->b.buf, BUFFER);
}

/* remove_all -- what lies in a directory, tests' copies of environments included; fd is
   closed. */
static void
remove_all(int fd)
{
    DIR *d = fdopendir(fd);
    struct dirent *e;

    must(d != NULL);
    while ((e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0
            || unlinkat(fd, e->d_name, 0) == 0)
            continue;
        remove_all(openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        (void)unlinkat(fd, e->d_name, AT_REMOVEDIR);
    }
    closedir(d);
}

void
synth_close(struct synth *s)
{
    remove_all(openat(s->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    close(s->dirfd);
    (void)rmdir(s->dir);
    free(s->b.buf);
    for (size_t i = 0; i < s->n_files; i++) {
        free(s->file[i].model);
        free(s->file[i].full_since);
        free(s->file[i].is_fresh);
    }
}

/* ---- Log bytes ---- */

static int
segment_open(struct synth *s, uint64_t number)
{
    char name[XAC_LOG_NAME_MAX];
    struct xac_segment_header h = {.magic = XAC_SEGMENT_MAGIC,
                                   .version = XAC_FORMAT_VERSION,
                                   .page_size = s->page_size,
                                   .number = number,
                                   .segment_bytes = s->master.segment_bytes};
    int fd;

    xac_log_segment_name(name, number);
    fd = openat(s->dirfd, name, O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    memcpy(h.identity, s->master.identity, sizeof h.identity);
    h.checksum = xac_xxh64(&h, offsetof(struct xac_segment_header, checksum));
    fd = openat(s->dirfd, name, O_RDWR | O_CLOEXEC | O_CREAT, 0666);
    must(fd >= 0);
    must(pwrite(fd, &h, sizeof h, 0) == (ssize_t)sizeof h);
    must(ftruncate(fd, (off_t)(XAC_SEGMENT_HEADER + s->master.segment_bytes)) == 0);
    return fd;
}

static void
transfer(struct synth *s, uint64_t lsn, uint8_t *p, size_t n, bool is_write)
{
    uint64_t bytes = s->master.segment_bytes;

    while (n > 0) {
        uint64_t at = lsn % bytes;
        size_t here = n < bytes - at ? n : (size_t)(bytes - at);
        int fd = segment_open(s, lsn / bytes + 1);
        off_t off = (off_t)(XAC_SEGMENT_HEADER + at);

        if (is_write)
            must(pwrite(fd, p, here, off) == (ssize_t)here);
        else
            must(pread(fd, p, here, off) == (ssize_t)here);
        close(fd);
        p += here;
        lsn += here;
        n -= here;
    }
}

void
synth_write(struct synth *s, uint64_t lsn, const void *p, size_t n)
{
    uint8_t *copy = (uint8_t *)zeros(n + 1);

    memcpy(copy, p, n);
    transfer(s, lsn, copy, n, true);
    free(copy);
}

void
synth_read(struct synth *s, uint64_t lsn, void *p, size_t n)
{
    transfer(s, lsn, (uint8_t *)p, n, false);
}

uint64_t
synth_append(struct synth *s, bool is_commit)
{
    struct xac_log_id id = {.generation = s->master.generation};
    uint64_t lsn = s->tail;

    memcpy(&id.identity, s->master.identity, sizeof id.identity);
    must(xac_block_close(&s->b, id, s->checksum) == 0);
    xac_block_seal((struct xac_block *)(void *)s->b.buf, lsn, s->durable,
                   is_commit ? ++s->commit : 0);
    synth_write(s, lsn, s->b.buf, s->b.used);
    must(s->n_blocks < SYNTH_BLOCKS);
    s->block_lsn[s->n_blocks++] = lsn;
    s->tail += s->b.used;
    xac_builder_init(&s->b, s->b.buf, BUFFER);
    s->b_records = 0;
    return lsn;
}

void
synth_sync(struct synth *s)
{
    s->durable = s->tail;
}

void
synth_master(struct synth *s)
{
    bool is_lost;

    must(xac_master_write(s->dirfd, &s->master, &is_lost) == 0);
}

/* ---- Files and transactions ---- */

static void
file_head(const struct synth *s, const struct synth_file *f, struct xac_xfile *head)
{
    struct stat st;

    must(fstatat(s->dirfd, f->path, &st, 0) == 0);
    *head = (struct xac_xfile){.file = f->id,
                               .length = f->pages * s->page_size,
                               .device = st.st_dev + s->device_shift,
                               .inode = st.st_ino};
}

/* birth_of -- for the XFILE record. */
static uint64_t
birth_of(const struct synth *s, const struct synth_file *f)
{
    struct xac_identity who = {.birth_ns = 0};

    if (s->born)
        must(xac_identity_at(s->dirfd, f->path, &who) == 0);
    return who.birth_ns;
}

size_t
synth_file(struct synth *s, const char *path, uint64_t pages)
{
    struct synth_file *f = &s->file[s->n_files];
    struct xac_xfile head;
    int fd = openat(s->dirfd, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    must(fd >= 0 && s->n_files < SYNTH_FILES);
    must(ftruncate(fd, (off_t)(pages * s->page_size)) == 0);
    close(fd);
    (void)snprintf(f->path, sizeof f->path, "%s", path);
    f->id = (uint32_t)s->n_files + 1;
    f->pages = pages;
    f->model = (uint8_t *)zeros(pages * s->page_size);
    f->full_since = (uint64_t *)zeros(pages * sizeof *f->full_since);
    f->is_fresh = (bool *)zeros(pages * sizeof *f->is_fresh);
    file_head(s, f, &head);
    must(xac_put_file(&s->b, &head, birth_of(s, f), path));
    (void)synth_append(s, false);
    return s->n_files++;
}

void
synth_refile(struct synth *s)
{
    for (size_t i = 0; i < s->n_files; i++) {
        struct xac_xfile head;

        file_head(s, &s->file[i], &head);
        must(xac_put_file(&s->b, &head, birth_of(s, &s->file[i]), s->file[i].path));
        (void)synth_append(s, false);
    }
}

void
synth_begin(struct synth *s)
{
    must(xac_put_txn(&s->b, XAC_XBEGIN, s->commit + 1));
}

/*
 * choose_source -- a page that has a full image since the checkpoint, the page itself (as
 * it was) or another one of its file, and copy a part of it to somewhere else.
 */
static void
choose_source(struct synth *s, const struct synth_file *f, uint64_t page,
              struct xac_page_change *c)
{
    uint64_t q = synth_random(s, f->pages);
    size_t n = 64 + (size_t)synth_random(s, s->page_size / 2);
    uint8_t *now = f->model + page * s->page_size;

    if (!f->is_fresh[q])
        return;
    c->source_file = f->id;
    c->source_page = q;
    c->source = q == page ? c->from : f->model + q * s->page_size;
    memcpy(now + synth_random(s, s->page_size - n),
           c->source + synth_random(s, s->page_size - n), n);
}

void
synth_change(struct synth *s, size_t file, uint64_t page)
{
    struct synth_file *f = &s->file[file];
    uint8_t *now = f->model + page * s->page_size;
    uint8_t *before = (uint8_t *)zeros(s->page_size);
    struct xac_page_change c = {.file = f->id,
                                .page = page,
                                .from = f->is_fresh[page] ? before : NULL,
                                .to = now};

    memcpy(before, now, s->page_size);
    if (s->copies)
        choose_source(s, f, page, &c);
    for (uint64_t n = 1 + synth_random(s, 4); n > 0; n--) {
        uint64_t at = synth_random(s, s->page_size);
        uint64_t len = 1 + synth_random(s, 24);

        for (uint64_t i = at; i < at + len && i < s->page_size; i++)
            now[i] = (uint8_t)synth_random(s, 256);
    }
    must(xac_put_change(&s->b, &c, s->page_size));
    if (!f->is_fresh[page])
        f->full_since[page] = s->begin;
    f->is_fresh[page] = true;
    s->b_records++;
    free(before);
}

void
synth_commit(struct synth *s)
{
    must(xac_put_commit(&s->b, synth_time(s->commit + 1)));
    (void)synth_append(s, true);
}

uint64_t
synth_commit_large(struct synth *s)
{
    struct xac_xdatafile head = {.serial = ++s->serial,
                                 .checksum_kind = (uint32_t)s->checksum};
    char name[XAC_LOG_NAME_MAX];
    size_t skip = sizeof(struct xac_block) + sizeof(struct xac_xtxn);
    uint8_t *data = s->b.buf + skip;

    head.length = s->b.used - skip;
    head.n_records = s->b_records;
    must(xac_digest(s->checksum, data, head.length, head.digest) == 0);
    xac_log_datafile_name(name, s->master.generation, head.serial);
    synth_put(s, name, data, head.length);
    xac_builder_init(&s->b, s->b.buf, BUFFER);
    synth_begin(s);
    must(xac_put_datafile(&s->b, &head));
    synth_commit(s);
    return head.serial;
}

void
synth_transactions(struct synth *s, size_t n)
{
    for (; n > 0; n--) {
        uint64_t changes = 1 + synth_random(s, 3);
        size_t file = (size_t)synth_random(s, s->n_files);
        uint64_t page = synth_random(s, s->file[file].pages);

        synth_begin(s);
        s->copies = synth_random(s, 2) == 0;
        for (uint64_t i = 0; i < changes && i < s->file[file].pages; i++)
            synth_change(s, file, (page + i) % s->file[file].pages);
        s->copies = false;
        synth_commit(s);
        if (synth_random(s, 3) == 0)
            synth_sync(s);
    }
}

/* write_closed -- bring the files to the state of the models, but for open pages; ret the
   redo position. */
static uint64_t
write_closed(struct synth *s, bool (*is_open)(size_t, uint64_t))
{
    uint64_t redo = s->begin;

    for (size_t i = 0; i < s->n_files; i++) {
        struct synth_file *f = &s->file[i];
        int fd = openat(s->dirfd, f->path, O_RDWR | O_CLOEXEC);

        for (uint64_t p = 0; p < f->pages; p++) {
            bool stays = is_open != NULL && is_open(i, p) && f->full_since[p] != 0;

            if (!stays)
                must(pwrite(fd, f->model + p * s->page_size, s->page_size,
                            (off_t)(p * s->page_size))
                     == (ssize_t)s->page_size);
            else if (f->full_since[p] < redo)
                redo = f->full_since[p];
            f->is_fresh[p] = false;
        }
        close(fd);
    }
    return redo;
}

void
synth_checkpoint(struct synth *s, bool (*is_open)(size_t file, uint64_t page),
                 size_t between)
{
    uint64_t redo;

    must(xac_put_checkpt_begin(&s->b, s->serial + 1));
    s->begin = synth_append(s, false);
    redo = write_closed(s, is_open);
    synth_transactions(s, between);
    for (size_t i = 0; i < s->n_files; i++) {
        struct xac_xfile head;

        file_head(s, &s->file[i], &head);
        must(xac_put_file(&s->b, &head, birth_of(s, &s->file[i]), s->file[i].path));
    }
    must(xac_put_checkpt_end(&s->b, s->begin, redo, 0));
    s->master.end_lsn = synth_append(s, false);
    s->master.begin_lsn = s->begin;
    s->master.redo_lsn = redo;
    s->master.end_lsn_after = s->tail;
    s->master.flags = 0;
    synth_sync(s);
    synth_master(s);
}

/* ---- An older format ---- */

/* slot_to_version_4 -- where all that is new was reserved. */
static void
slot_to_version_4(struct xac_master_slot *m)
{
    if (m->magic != XAC_MASTER_MAGIC)
        return;
    m->version = 4;
    m->dir_device = m->dir_inode = m->dir_birth_ns = 0;
    m->checksum = xac_xxh64(m, offsetof(struct xac_master_slot, checksum));
}

void
synth_make_version_4(struct synth *s)
{
    size_t n;
    uint8_t *master = synth_get(s, XAC_MASTER_NAME, &n);

    must(!s->born);
    for (size_t at = 0; at < n; at += XAC_MASTER_SLOT_STRIDE)
        slot_to_version_4((struct xac_master_slot *)(void *)(master + at));
    synth_put(s, XAC_MASTER_NAME, master, n);
    free(master);
    for (uint64_t k = 1; k <= s->tail / s->master.segment_bytes + 1; k++) {
        int fd = segment_open(s, k);
        struct xac_segment_header h;

        must(pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h);
        h.version = 4;
        h.checksum = xac_xxh64(&h, offsetof(struct xac_segment_header, checksum));
        must(pwrite(fd, &h, sizeof h, 0) == (ssize_t)sizeof h);
        close(fd);
    }
}

/* ---- Comparing ---- */

void
synth_put(const struct synth *s, const char *name, const void *p, size_t n)
{
    int fd = openat(s->dirfd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    must(fd >= 0 && write(fd, p, n) == (ssize_t)n);
    close(fd);
}

uint8_t *
synth_get(const struct synth *s, const char *name, size_t *np)
{
    int fd = openat(s->dirfd, name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    uint8_t *p;

    must(fd >= 0 && fstat(fd, &st) == 0);
    p = (uint8_t *)zeros((size_t)st.st_size + 1);
    must(read(fd, p, (size_t)st.st_size) == st.st_size);
    close(fd);
    *np = (size_t)st.st_size;
    return p;
}

void
synth_flip(const struct synth *s, const char *name, uint64_t offset, uint8_t mask)
{
    int fd = openat(s->dirfd, name, O_RDWR | O_CLOEXEC);
    uint8_t byte;

    must(fd >= 0 && pread(fd, &byte, 1, (off_t)offset) == 1);
    byte ^= mask;
    must(pwrite(fd, &byte, 1, (off_t)offset) == 1);
    close(fd);
}

static bool
same_bytes(const struct synth *s, size_t file, const uint8_t *want)
{
    const struct synth_file *f = &s->file[file];
    size_t n;
    uint8_t *got = synth_get(s, f->path, &n);
    bool same = n == f->pages * s->page_size && memcmp(got, want, n) == 0;

    free(got);
    return same;
}

bool
synth_same(const struct synth *s, size_t file)
{
    return same_bytes(s, file, s->file[file].model);
}

void
synth_model_save(const struct synth *s, uint8_t *copy[SYNTH_FILES])
{
    for (size_t i = 0; i < SYNTH_FILES; i++) {
        copy[i] = NULL;
        if (i < s->n_files) {
            size_t n = s->file[i].pages * s->page_size;

            copy[i] = (uint8_t *)zeros(n);
            memcpy(copy[i], s->file[i].model, n);
        }
    }
}

bool
synth_same_as(const struct synth *s, uint8_t *const copy[SYNTH_FILES])
{
    bool same = true;

    for (size_t i = 0; i < s->n_files; i++)
        same = same && same_bytes(s, i, copy[i]);
    return same;
}

void
synth_model_free(uint8_t *copy[SYNTH_FILES])
{
    for (size_t i = 0; i < SYNTH_FILES; i++)
        free(copy[i]);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp((const char *)a, (const char *)b);
}

void
synth_picture_take(const struct synth *s, struct synth_picture *p)
{
    DIR *d = fdopendir(openat(s->dirfd, ".", O_RDONLY | O_DIRECTORY));
    struct dirent *e;

    *p = (struct synth_picture){.n = 0};
    must(d != NULL);
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.')
            continue;
        p->name = (char(*)[64])realloc(p->name, (p->n + 1) * sizeof p->name[0]);
        must(p->name != NULL);
        (void)snprintf(p->name[p->n++], sizeof p->name[0], "%.63s", e->d_name);
    }
    closedir(d);
    qsort(p->name, p->n, sizeof p->name[0], by_name);
    p->bytes = (uint8_t **)zeros((p->n + 1) * sizeof *p->bytes);
    p->length = (size_t *)zeros((p->n + 1) * sizeof *p->length);
    for (size_t i = 0; i < p->n; i++)
        p->bytes[i] = synth_get(s, p->name[i], &p->length[i]);
}

bool
synth_picture_same(const struct synth *s, const struct synth_picture *p)
{
    struct synth_picture now;
    bool same;

    synth_picture_take(s, &now);
    same = now.n == p->n;
    for (size_t i = 0; same && i < p->n; i++)
        same = strcmp(now.name[i], p->name[i]) == 0 && now.length[i] == p->length[i]
               && memcmp(now.bytes[i], p->bytes[i], p->length[i]) == 0;
    synth_picture_free(&now);
    return same;
}

void
synth_picture_restore(const struct synth *s, const struct synth_picture *p)
{
    struct synth_picture now;

    synth_picture_take(s, &now);
    for (size_t i = 0; i < now.n; i++) {
        if (p->n == 0
            || bsearch(now.name[i], p->name, p->n, sizeof p->name[0], by_name) == NULL)
            (void)unlinkat(s->dirfd, now.name[i], 0);
    }
    for (size_t i = 0; i < p->n; i++)
        synth_put(s, p->name[i], p->bytes[i], p->length[i]);
    synth_picture_free(&now);
}

void
synth_picture_free(struct synth_picture *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->bytes[i]);
    free(p->bytes);
    free(p->length);
    free(p->name);
}
