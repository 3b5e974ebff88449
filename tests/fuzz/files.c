/* SPDX-License-Identifier: MIT */
/*
 * files.c -- see files.h.
 */
#include <config.h>

#include "files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "../common/synth.h"
#include "checkpoint/pagesums.h"
#include "log/log.h"

#define PAGE       4096u
#define SEGMENT    8192u
#define FILES_MAX  24u
#define PIECES_MAX 2048u
#define EDITS_MAX  16u
#define ROOM       4096u /* that a file can become longer by                          */
#define STASH      "stash"

struct piece {
    unsigned kind;
    unsigned file;
    size_t at, len;
};

struct file {
    char name[NAME_MAX + 1];
    uint8_t *was; /* as made                                                         */
    size_t was_size;
    uint8_t *bytes; /* damaged                                                       */
    size_t size;
    bool is_there;
    bool is_mapped; /* its inode stands in the log: it is never made anew             */
};

static struct {
    struct synth s;
    struct file file[FILES_MAX];
    unsigned n_files;
    struct piece piece[PIECES_MAX];
    unsigned n_pieces;
} env;

/* ---- Making it ---------------------------------------------------------------------- */

static struct file *
file_named(const char *name)
{
    for (unsigned i = 0; i < env.n_files; i++) {
        if (strcmp(env.file[i].name, name) == 0)
            return &env.file[i];
    }
    return NULL;
}

static void
piece_add(unsigned kind, const char *name, size_t at, size_t len)
{
    const struct file *f = file_named(name);

    if (f == NULL || at + len > f->was_size || env.n_pieces == PIECES_MAX)
        return;
    env.piece[env.n_pieces++] = (struct piece){kind, (unsigned)(f - env.file), at, len};
}

static int
page_file(void *arg, uint32_t file, struct xac_pagesums_file *out)
{
    const struct synth_file *f = &env.s.file[file];

    (void)arg;
    out->path = f->path;
    fuzz_must(xac_identity_at(env.s.dirfd, f->path, &out->who) == 0);
    return 0;
}

/* make_sums -- checksums of all pages as the last checkpoint has left them. */
static void
make_sums(void)
{
    struct xac_pagesums sums = {.n = 0};
    struct xac_pagesums_store where = {.dirfd = env.s.dirfd,
                                       .identity = env.s.master.identity,
                                       .page_size = PAGE,
                                       .lsn = env.s.begin,
                                       .make = true,
                                       .file = page_file};

    for (uint32_t i = 0; i < env.s.n_files; i++) {
        for (uint64_t p = 0; p < env.s.file[i].pages; p++)
            fuzz_must(xac_pagesums_add(&sums, i, p, env.s.file[i].model + p * PAGE, PAGE)
                      == 0);
    }
    fuzz_must(xac_pagesums_put(&sums, &where) == 0);
    xac_pagesums_free(&sums);
}

static bool
some_open(size_t file, uint64_t page)
{
    return file == 0 && page % 2 == 1;
}

/* make_log -- small and large transactions, two checkpoints, and what is to be redone. */
static void
make_log(void)
{
    synth_open(&env.s, PAGE, SEGMENT);
    (void)synth_file(&env.s, "one.db", 5);
    (void)synth_file(&env.s, "two.db", 3);
    synth_transactions(&env.s, 8);
    synth_sync(&env.s);
    synth_checkpoint(&env.s, NULL, 1);
    synth_transactions(&env.s, 4);
    synth_begin(&env.s);
    synth_change(&env.s, 0, 2);
    synth_change(&env.s, 1, 1);
    (void)synth_commit_large(&env.s);
    synth_checkpoint(&env.s, some_open, 2);
    make_sums();
    synth_transactions(&env.s, 6);
    synth_begin(&env.s);
    synth_change(&env.s, 1, 0);
    (void)synth_commit_large(&env.s);
    synth_sync(&env.s);
    synth_transactions(&env.s, 2);
}

static void
read_file(const char *name)
{
    struct file *f = &env.file[env.n_files++];
    size_t n;
    uint8_t *p = synth_get(&env.s, name, &n);

    fuzz_must(env.n_files < FILES_MAX);
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    f->was = p;
    f->was_size = n;
    f->bytes = (uint8_t *)malloc(n + ROOM);
    fuzz_must(f->bytes != NULL);
    for (size_t i = 0; i < env.s.n_files; i++)
        f->is_mapped = f->is_mapped || strcmp(name, env.s.file[i].path) == 0;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

static void
read_files(void)
{
    DIR *d = opendir(env.s.dir);
    struct dirent *e;

    fuzz_must(d != NULL);
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.')
            read_file(e->d_name);
    }
    (void)closedir(d);
    qsort(env.file, env.n_files, sizeof env.file[0], by_name);
}

/* note_pieces -- where what stands; a block that crosses segments counts in the first. */
static void
note_pieces(void)
{
    for (unsigned i = 0; i < 2; i++)
        piece_add(FUZZ_MASTER, XAC_MASTER_NAME, i * XAC_MASTER_SLOT_STRIDE,
                  sizeof(struct xac_master_slot));
    for (unsigned i = 0; i < env.n_files; i++) {
        const struct file *f = &env.file[i];

        if (strncmp(f->name, XAC_LOG_PREFIX, strlen(XAC_LOG_PREFIX)) == 0)
            piece_add(FUZZ_SEGMENT, f->name, 0, sizeof(struct xac_segment_header));
        if (strncmp(f->name, XAC_PAGESUMS_PREFIX, strlen(XAC_PAGESUMS_PREFIX)) != 0)
            continue;
        piece_add(FUZZ_SUMS, f->name, 0, sizeof(struct xac_pagesums_head));
        for (size_t at = sizeof(struct xac_pagesums_head); at < f->was_size;
             at += sizeof(struct xac_pagesum))
            piece_add(FUZZ_ENTRY, f->name, at, sizeof(struct xac_pagesum));
    }
    for (size_t i = 0; i < env.s.n_blocks; i++) {
        uint64_t lsn = env.s.block_lsn[i];
        struct xac_block head;
        char name[XAC_LOG_NAME_MAX];
        size_t at = XAC_SEGMENT_HEADER + (size_t)(lsn % SEGMENT);

        synth_read(&env.s, lsn, &head, sizeof head);
        xac_log_segment_name(name, lsn / SEGMENT + 1);
        piece_add(FUZZ_BLOCK, name, at, head.length);
    }
}

static void
remove_env(void)
{
    synth_close(&env.s);
}

static void
make(void)
{
    if (env.n_files != 0)
        return;
    /* synth.h makes its directory where this says. */
    fuzz_must(setenv("XAC_TEST_DIR", fuzz_scratch(), 1) == 0);
    fuzz_must(mkdir(STASH, 0700) == 0);
    make_log();
    read_files();
    note_pieces();
    fuzz_must(atexit(remove_env) == 0);
}

/* ---- Damage ------------------------------------------------------------------------- */

static struct file *
choose_file(struct fuzz_input *in)
{
    return &env.file[fuzz_below(in, env.n_files)];
}

/* choose_piece -- of the kinds asked for; NULL: there is none. */
static const struct piece *
choose_piece(struct fuzz_input *in, unsigned kinds)
{
    unsigned n = 0;
    uint64_t k;

    for (unsigned i = 0; i < env.n_pieces; i++)
        n += (env.piece[i].kind & kinds) != 0;
    k = fuzz_below(in, n);
    for (unsigned i = 0; i < env.n_pieces; i++) {
        if ((env.piece[i].kind & kinds) != 0 && k-- == 0)
            return &env.piece[i];
    }
    return NULL;
}

/* set_bytes -- a few bytes of a file, or the input's. */
static void
set_bytes(struct fuzz_input *in)
{
    struct file *f = choose_file(in);
    size_t at = (size_t)fuzz_below(in, f->size);
    size_t n = (size_t)fuzz_bytes(in, 1) % 32 + 1;

    for (; n > 0 && at < f->size; n--, at++)
        f->bytes[at] = (uint8_t)fuzz_bytes(in, 1);
}

/* set_field -- of a piece, mostly near its begin. */
static void
set_field(struct fuzz_input *in, unsigned kinds)
{
    const struct piece *p = choose_piece(in, kinds);
    struct file *f;
    size_t at;

    if (p == NULL)
        return;
    f = &env.file[p->file];
    at = (size_t)fuzz_bytes(in, 1);
    if (at >= 240)
        at = (size_t)fuzz_bytes(in, 2);
    fuzz_poke(in, f->bytes + p->at, p->len, at % p->len);
}

/* repeat_piece -- the bytes of one in the place of another one. */
static void
repeat_piece(struct fuzz_input *in, unsigned kinds)
{
    const struct piece *from = choose_piece(in, kinds);
    const struct piece *to = choose_piece(in, kinds);
    struct file *f;
    size_t n;

    if (from == NULL || to == NULL)
        return;
    f = &env.file[to->file];
    n = from->len < f->size - to->at ? from->len : f->size - to->at;
    if (to->at < f->size)
        memmove(f->bytes + to->at, env.file[from->file].was + from->at, n);
}

/* resize -- a file is cut, or longer by zeros. */
static void
resize(struct fuzz_input *in)
{
    struct file *f = choose_file(in);
    size_t n = (size_t)fuzz_below(in, f->was_size + ROOM);

    if (n > f->size)
        memset(f->bytes + f->size, 0, n - f->size);
    f->size = n;
}

/* rename_file -- it gets another one's name, or one that nobody should have. */
static void
rename_file(struct fuzz_input *in)
{
    static const char *const names[] = {
        "xac-log.18446744073709551615",
        "xac-log.00000000",
        "xac-log.4294967297",
        "xac-log.00000099",
        "xac-log.-1",
        "xac-log.00000002x",
        "xac-data.00000001.ffffffffffffffff",
        "xac-data.ffffffff.00000001",
        "xac-sums.ffffffffffffffff",
        "xac-log-new",
    };
    struct file *f = choose_file(in);
    uint64_t k = fuzz_below(in, sizeof names / sizeof names[0] + env.n_files);

    if (f->is_mapped)
        return;
    if (k < sizeof names / sizeof names[0]) {
        (void)snprintf(f->name, sizeof f->name, "%s", names[k]);
    } else {
        struct file *other = &env.file[k - sizeof names / sizeof names[0]];
        char name[sizeof f->name];

        if (other->is_mapped)
            return;
        memcpy(name, f->name, sizeof name);
        memcpy(f->name, other->name, sizeof name);
        memcpy(other->name, name, sizeof name);
    }
}

/* put_note -- one of the environment's small files, with the input's bytes. */
static void
put_note(struct fuzz_input *in)
{
    static const char *const names[] = {"xac.backup", "xac.addresses", "xac.logdir",
                                        "xac.log-of"};
    const char *name = names[fuzz_below(in, sizeof names / sizeof names[0])];
    size_t n = (size_t)fuzz_bytes(in, 1);
    int fd;

    n = n < in->left ? n : in->left;
    fd = openat(env.s.dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_must(fd >= 0 && write(fd, in->at, n) == (ssize_t)n);
    (void)close(fd);
    in->at += n;
    in->left -= n;
}

static void
edit(struct fuzz_input *in, unsigned kinds)
{
    switch (fuzz_bytes(in, 1) % 8) {
    case 0:
    case 1:
    case 2:
        set_field(in, kinds);
        break;
    case 3:
        set_bytes(in);
        break;
    case 4:
        repeat_piece(in, kinds);
        break;
    case 5:
        resize(in);
        break;
    case 6:
        if (fuzz_bytes(in, 1) % 2 == 0)
            choose_file(in)->is_there = false;
        else
            rename_file(in);
        break;
    default:
        put_note(in);
        break;
    }
}

/* ---- Sealing ------------------------------------------------------------------------ */

static void
seal_block(uint8_t *p, size_t room)
{
    struct xac_block b;
    size_t n;

    if (room < sizeof b)
        return;
    memcpy(&b, p, sizeof b);
    n = b.records_len < room - sizeof b ? b.records_len : room - sizeof b;
    b.records_check = XXH3_64bits(p + sizeof b, n);
    b.header_check = 0;
    b.header_check = (uint32_t)XXH3_64bits(&b, sizeof b);
    memcpy(p, &b, sizeof b);
}

/* seal_at -- a checksum of all bytes of the piece before it. */
static void
seal_at(uint8_t *p, size_t at)
{
    uint64_t sum = XXH3_64bits(p, at);

    memcpy(p + at, &sum, sizeof sum);
}

static void
seal(unsigned kinds)
{
    for (unsigned i = 0; i < env.n_pieces; i++) {
        const struct piece *p = &env.piece[i];
        struct file *f = &env.file[p->file];

        if ((p->kind & kinds) == 0 || p->at + p->len > f->size)
            continue;
        if (p->kind == FUZZ_MASTER)
            seal_at(f->bytes + p->at, offsetof(struct xac_master_slot, checksum));
        else if (p->kind == FUZZ_SEGMENT)
            seal_at(f->bytes + p->at, offsetof(struct xac_segment_header, checksum));
        else if (p->kind == FUZZ_SUMS)
            seal_at(f->bytes + p->at, offsetof(struct xac_pagesums_head, checksum));
        else if (p->kind == FUZZ_ENTRY)
            seal_at(f->bytes + p->at, offsetof(struct xac_pagesum, check));
        else
            seal_block(f->bytes + p->at, f->size - p->at);
    }
}

/* ---- Laying out --------------------------------------------------------------------- */

/* clear -- nothing is in the directory but the mapped files. */
static void
clear(void)
{
    DIR *d = opendir(env.s.dir);
    struct dirent *e;

    fuzz_must(d != NULL);
    while ((e = readdir(d)) != NULL) {
        const struct file *f = file_named(e->d_name);

        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0
            && (f == NULL || !f->is_mapped) && unlinkat(env.s.dirfd, e->d_name, 0) != 0)
            fuzz_must(unlinkat(env.s.dirfd, e->d_name, AT_REMOVEDIR) == 0);
    }
    (void)closedir(d);
}

/* write_file -- a mapped file is the same file again, wherever it was put. */
static void
write_file(const struct file *f)
{
    char aside[NAME_MAX + sizeof STASH "/"];
    int fd;

    (void)snprintf(aside, sizeof aside, STASH "/%s", f->name);
    if (f->is_mapped)
        (void)renameat(AT_FDCWD, aside, env.s.dirfd, f->name);
    if (f->is_mapped && !f->is_there)
        fuzz_must(renameat(env.s.dirfd, f->name, AT_FDCWD, aside) == 0);
    if (!f->is_there)
        return;
    fd = openat(env.s.dirfd, f->name, O_WRONLY | O_CLOEXEC | (f->is_mapped ? 0 : O_CREAT),
                0600);
    fuzz_must(fd >= 0 && pwrite(fd, f->bytes, f->size, 0) == (ssize_t)f->size);
    fuzz_must(ftruncate(fd, (off_t)f->size) == 0);
    (void)close(fd);
}

void
fuzz_files_damage(struct fuzz_input *in, unsigned pieces)
{
    char names[FILES_MAX][sizeof env.file[0].name];
    unsigned sealed = (unsigned)fuzz_bytes(in, 1);

    make();
    clear();
    for (unsigned i = 0; i < env.n_files; i++) {
        struct file *f = &env.file[i];

        memcpy(names[i], f->name, sizeof names[i]);
        memcpy(f->bytes, f->was, f->was_size);
        f->size = f->was_size;
        f->is_there = true;
    }
    for (unsigned n = 0; n < EDITS_MAX && in->left > 0; n++)
        edit(in, pieces);
    seal(pieces & ~sealed);
    for (unsigned i = 0; i < env.n_files; i++) {
        write_file(&env.file[i]);
        memcpy(env.file[i].name, names[i], sizeof names[i]);
    }
}

int
fuzz_files_dir(void)
{
    make();
    return env.s.dirfd;
}

const struct xac_master_slot *
fuzz_files_master(void)
{
    make();
    return &env.s.master;
}
