/* SPDX-License-Identifier: MIT */
/*
 * archive_manifest.c -- see archive_manifest.h.
 */
#include <config.h>

#include "archive_manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/sys.h"

/* The longest manifest. */
#define TEXT_MAX ((uint64_t)1 << 30)

#define CHUNK ((size_t)1 << 20)

/* Words of a line, and characters that a word may have. */
#define WORDS_MAX 13
#define SHA_HEX   (2 * ARCHIVE_SHA_BYTES)

/* What each kind of line begins with. */
static const char *const kind_word[ARCHIVE_KINDS] = {"log", "data", "note", "file",
                                                     "backup"};

/* ---- Digests ---------------------------------------------------------------------- */

/* sha_of -- of bytes in memory; ret 0 or ENOTSUP. */
static int
sha_of(const void *bytes, size_t n, uint8_t out[ARCHIVE_SHA_BYTES])
{
    unsigned len = 0;

    return EVP_Digest(bytes, n, out, &len, EVP_sha256(), NULL) == 1 ? 0 : ENOTSUP;
}

/* add_up -- all bytes of a file to both digests. */
static int
add_up(int fd, uint8_t *chunk, EVP_MD_CTX *sha, struct xac_digester *xxh,
       uint64_t *lengthp)
{
    size_t got = 1;
    int rc = 0;

    *lengthp = 0;
    while (rc == 0 && got > 0) {
        rc = xac_read_full(fd, chunk, CHUNK, *lengthp, &got);
        if (rc == 0 && got > 0 && EVP_DigestUpdate(sha, chunk, got) != 1)
            rc = EIO;
        xac_digest_add(xxh, chunk, rc == 0 ? got : 0);
        *lengthp += got;
    }
    return rc;
}

int
archive_sum_of(int fd, struct archive_sum *out)
{
    uint8_t *chunk = (uint8_t *)malloc(CHUNK);
    EVP_MD_CTX *sha = EVP_MD_CTX_new();
    struct xac_digester xxh = {.xxh = NULL};
    struct archive_sum sum = {.length = 0};
    uint8_t word[XAC_DIGEST_MAX];
    int rc = chunk == NULL || sha == NULL ? ENOMEM : 0;

    if (rc == 0)
        rc = xac_digest_begin(&xxh, XAC_CHECKSUM_XXH3);
    if (rc == 0 && EVP_DigestInit_ex(sha, EVP_sha256(), NULL) != 1)
        rc = ENOTSUP;
    if (rc == 0)
        rc = add_up(fd, chunk, sha, &xxh, &sum.length);
    if (rc == 0 && EVP_DigestFinal_ex(sha, sum.sha, NULL) != 1)
        rc = EIO;
    if (rc == 0) {
        xac_digest_end(&xxh, word);
        memcpy(&sum.xxh, word, sizeof sum.xxh);
        *out = sum;
    }
    xac_digest_free(&xxh);
    EVP_MD_CTX_free(sha);
    free(chunk);
    return rc;
}

bool
archive_sum_is_same(const struct archive_sum *a, const struct archive_sum *b)
{
    return a->length == b->length && a->xxh == b->xxh
           && memcmp(a->sha, b->sha, sizeof a->sha) == 0;
}

/* ---- Names and objects ------------------------------------------------------------ */

bool
archive_name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789._-");

    return n > 0 && n <= ARCHIVE_NAME_MAX && name[n] == '\0' && name[0] != '.';
}

void
archive_manifest_name(char name[ARCHIVE_NAME_MAX], uint64_t number)
{
    (void)snprintf(name, ARCHIVE_NAME_MAX, ARCHIVE_MANIFEST "%010" PRIu64, number);
}

bool
archive_manifest_named(const char *name, uint64_t *numberp)
{
    char again[ARCHIVE_NAME_MAX];
    size_t n = strlen(ARCHIVE_MANIFEST);

    if (strncmp(name, ARCHIVE_MANIFEST, n) != 0)
        return false;
    *numberp = strtoull(name + n, NULL, 10);
    archive_manifest_name(again, *numberp);
    return *numberp > 0 && strcmp(name, again) == 0;
}

void
archive_free(struct archive *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->object[i].name);
        free(a->object[i].path);
    }
    free(a->object);
    *a = (struct archive){.n = 0};
}

struct archive_object *
archive_add(struct archive *a, const struct archive_object *o)
{
    size_t room = a->room != 0 ? 2 * a->room : 64;
    struct archive_object *at;

    if (a->n == a->room) {
        at = (struct archive_object *)realloc(a->object, room * sizeof *at);
        if (at == NULL) {
            (void)xac_err(ENOMEM, "list of objects");
            return NULL;
        }
        a->object = at;
        a->room = room;
    }
    at = &a->object[a->n];
    *at = *o;
    at->name = o->name != NULL ? strdup(o->name) : NULL;
    at->path = o->path != NULL ? strdup(o->path) : NULL;
    if ((o->name != NULL && at->name == NULL) || (o->path != NULL && at->path == NULL)) {
        free(at->name);
        free(at->path);
        (void)xac_err(ENOMEM, "list of objects");
        return NULL;
    }
    a->n++;
    return at;
}

/* ---- Writing ---------------------------------------------------------------------- */

static void
put_hex(FILE *f, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%02x", bytes[i]);
}

static void
put_sum(FILE *f, const struct archive_sum *sum)
{
    fprintf(f, " %" PRIu64 " %016" PRIx64 " ", sum->length, sum->xxh);
    put_hex(f, sum->sha, sizeof sum->sha);
}

/* put_object -- its line.  The path stands last, for it may have any character but a newline. */
static void
put_object(FILE *f, const struct archive_object *o)
{
    fputs(kind_word[o->kind], f);
    if (o->kind != ARCHIVE_BACKUP) {
        put_sum(f, &o->sum);
        fprintf(f, " %s", o->name);
    }
    switch (o->kind) {
    case ARCHIVE_LOG:
        fprintf(f,
                " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64
                " %" PRIu64,
                o->generation, o->start, o->end, o->segment_bytes, o->previous_generation,
                o->previous_end, o->time_ns);
        break;
    case ARCHIVE_DATA:
        fprintf(f, " %" PRIu32 " %" PRIu64 " %" PRIu64, o->generation, o->start,
                o->serial);
        break;
    case ARCHIVE_NOTE:
        fprintf(f, " %s", o->path);
        break;
    case ARCHIVE_FILE:
        fprintf(f, " %" PRIu64 " %s", o->end, o->path);
        break;
    default:
        fprintf(f, " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                o->generation, o->start, o->end, o->segment_bytes, o->time_ns);
        break;
    }
    fputc('\n', f);
}

/* put_head -- what stands before the objects. */
static void
put_head(FILE *f, const struct archive *a, uint64_t number, uint64_t time_ns,
         bool is_full)
{
    fprintf(f, "xac-archive 1\nmanifest %" PRIu64 " %" PRIu64 " %s\nfollows %" PRIu64 " ",
            number, time_ns, is_full ? "full" : "more", a->number);
    put_hex(f, a->sha, sizeof a->sha);
    fputs("\nidentity ", f);
    put_hex(f, a->identity, sizeof a->identity);
    fprintf(f, " %" PRIu32 "\nat %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ",
            a->page_size, a->at.generation, a->at_lsn, a->at.segment_bytes,
            a->at.start_lsn);
    put_hex(f, a->at.branch, sizeof a->at.branch);
    fputc('\n', f);
}

int
archive_write(const struct archive *a, uint64_t number, uint64_t time_ns, bool is_full,
              char **textp, size_t *np)
{
    FILE *f;

    xac_assert(number > a->number); /* (2) */
    xac_assert(a->n_named <= a->n);
    *textp = NULL;
    f = open_memstream(textp, np);
    if (f == NULL)
        return xac_err(ENOMEM, "manifest");
    put_head(f, a, number, time_ns, is_full);
    for (size_t i = is_full ? 0 : a->n_named; i < a->n; i++)
        put_object(f, &a->object[i]);
    if (fflush(f) == 0)
        fprintf(f, "end %016" PRIx64 "\n", xac_xxh64(*textp, *np));
    if (fclose(f) == 0)
        return 0;
    free(*textp);
    *textp = NULL;
    return xac_err(ENOMEM, "manifest");
}

/* ---- Reading ---------------------------------------------------------------------- */

/* A manifest, as it has been read. */
struct text {
    uint64_t number, follows;
    uint8_t follows_sha[ARCHIVE_SHA_BYTES];
    uint8_t sha[ARCHIVE_SHA_BYTES]; /* of it                                          */
    bool is_full;
    char *bytes; /* owned; lines end with NUL once they have been looked at           */
    size_t n;
    char *objects; /* where the lines of objects begin                                */
    struct archive head;
};

/* take_number -- a decimal word, as we write it. */
static bool
take_number(const char *word, uint64_t most, uint64_t *outp)
{
    char *end;

    errno = 0;
    if (word[0] < '0' || word[0] > '9')
        return false;
    *outp = strtoull(word, &end, 10);
    return errno == 0 && *end == '\0' && *outp <= most;
}

/* take_hex -- n bytes. */
static bool
take_hex(const char *word, uint8_t *out, size_t n)
{
    if (strlen(word) != 2 * n || strspn(word, "0123456789abcdef") != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        char two[3] = {word[2 * i], word[2 * i + 1], '\0'};

        out[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    return true;
}

/* split -- a line into words; the last one goes to its end.  ret whether there are so many. */
static bool
split(char *line, char **word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        word[i] = line;
        if (i + 1 == n)
            return line[0] != '\0';
        line = strchr(line, ' ');
        if (line == NULL)
            return false;
        *line++ = '\0';
    }
    return false;
}

static bool
take_sum(char **word, struct archive_sum *sum)
{
    uint8_t xxh[8];

    if (!take_number(word[0], INT64_MAX, &sum->length)
        || !take_hex(word[1], xxh, sizeof xxh)
        || !take_hex(word[2], sum->sha, sizeof sum->sha))
        return false;
    sum->xxh = strtoull(word[1], NULL, 16);
    return true;
}

/* take_numbers -- words, the k-th to *outp[k]. */
static bool
take_numbers(char **word, uint64_t *const *outp, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!take_number(word[i], UINT64_MAX, outp[i]))
            return false;
    }
    return true;
}

/* Words of a line of each kind, the first one included. */
static const size_t n_words[ARCHIVE_KINDS] = {12, 8, 6, 7, 6};

/* is_sound -- can log have such places? */
static bool
is_sound(const struct archive_object *o, uint64_t generation)
{
    bool has_log = o->kind == ARCHIVE_LOG || o->kind == ARCHIVE_BACKUP;

    if (generation > UINT32_MAX)
        return false;
    if (!has_log)
        return true;
    return generation != 0 && o->segment_bytes >= XAC_SEGMENT_HEADER
           && (o->segment_bytes & (o->segment_bytes - 1)) == 0 && o->start <= o->end
           && o->end < UINT64_C(1) << 62;
}

/* take_rest -- what stands behind the name, which differs from kind to kind. */
static bool
take_rest(char **w, struct archive_object *o)
{
    uint64_t generation = 0, previous = 0;
    uint64_t *const of_log[] = {&generation,       &o->start, &o->end,
                                &o->segment_bytes, &previous, &o->previous_end,
                                &o->time_ns};
    uint64_t *const of_data[] = {&generation, &o->start, &o->serial};
    uint64_t *const of_backup[] = {&generation, &o->start, &o->end, &o->segment_bytes,
                                   &o->time_ns};
    bool ok;

    switch (o->kind) {
    case ARCHIVE_LOG:
        ok = take_numbers(w, of_log, 7) && previous <= UINT32_MAX;
        break;
    case ARCHIVE_DATA:
        ok = take_numbers(w, of_data, 3);
        break;
    case ARCHIVE_NOTE:
        o->path = w[0];
        ok = true;
        break;
    case ARCHIVE_FILE:
        ok = take_number(w[0], UINT64_MAX, &o->end);
        o->path = w[1];
        break;
    default:
        ok = take_numbers(w, of_backup, 5);
        break;
    }
    o->generation = (uint32_t)generation;
    o->previous_generation = (uint32_t)previous;
    return ok && is_sound(o, generation);
}

/* take_object -- from a line; name and path point into it. */
static bool
take_object(char *line, struct archive_object *o)
{
    char *w[WORDS_MAX];
    int kind = 0;

    *o = (struct archive_object){.name = NULL};
    while (kind < ARCHIVE_KINDS
           && (strncmp(line, kind_word[kind], strlen(kind_word[kind])) != 0
               || line[strlen(kind_word[kind])] != ' '))
        kind++;
    if (kind == ARCHIVE_KINDS || !split(line, w, n_words[kind]))
        return false;
    o->kind = (enum archive_kind)kind;
    if (o->kind == ARCHIVE_BACKUP)
        return take_rest(w + 1, o);
    o->name = w[4];
    return take_sum(w + 1, &o->sum) && archive_name_ok(o->name) && take_rest(w + 5, o);
}

/* next_line -- cut it off; NULL: there is none. */
static char *
next_line(char **atp)
{
    char *line = *atp, *end = line != NULL ? strchr(line, '\n') : NULL;

    if (end == NULL)
        return NULL;
    *end = '\0';
    *atp = end + 1;
    return line;
}

/* is_whole -- is the last line the digest of those before?  It is cut off. */
static bool
is_whole(struct text *t)
{
    char want[32];
    size_t n = (size_t)snprintf(want, sizeof want, "end %016x\n", 0);

    if (t->n < n || strlen(t->bytes) != t->n)
        return false;
    (void)snprintf(want, sizeof want, "end %016" PRIx64 "\n",
                   xac_xxh64(t->bytes, t->n - n));
    if (memcmp(t->bytes + t->n - n, want, n) != 0)
        return false;
    t->bytes[t->n - n] = '\0';
    return true;
}

/* take_head -- the lines before the objects. */
static bool
take_head(struct text *t)
{
    char *w[6], *line, *at = t->bytes;
    struct archive *a = &t->head;
    uint64_t generation, page_size;

    line = next_line(&at); /* the version has been looked at */
    line = next_line(&at);
    if (line == NULL || !split(line, w, 4) || strcmp(w[0], "manifest") != 0
        || !take_number(w[1], UINT64_MAX, &t->number)
        || !take_number(w[2], UINT64_MAX, &a->time_ns))
        return false;
    t->is_full = strcmp(w[3], "full") == 0;
    line = next_line(&at);
    if (line == NULL || !split(line, w, 3) || strcmp(w[0], "follows") != 0
        || !take_number(w[1], t->number - 1, &t->follows)
        || !take_hex(w[2], t->follows_sha, sizeof t->follows_sha))
        return false;
    line = next_line(&at);
    if (line == NULL || !split(line, w, 3) || strcmp(w[0], "identity") != 0
        || !take_hex(w[1], a->identity, sizeof a->identity)
        || !take_number(w[2], UINT32_MAX, &page_size))
        return false;
    line = next_line(&at);
    if (line == NULL || !split(line, w, 6) || strcmp(w[0], "at") != 0
        || !take_number(w[1], UINT32_MAX, &generation)
        || !take_number(w[2], INT64_MAX, &a->at_lsn)
        || !take_number(w[3], INT64_MAX, &a->at.segment_bytes)
        || !take_number(w[4], INT64_MAX, &a->at.start_lsn)
        || !take_hex(w[5], a->at.branch, sizeof a->at.branch))
        return false;
    a->at.generation = (uint32_t)generation;
    a->page_size = (uint32_t)page_size;
    t->objects = at;
    return page_size != 0 && (page_size & (page_size - 1)) == 0;
}

/* load -- the bytes of a manifest. */
static int
load(struct text *t, struct archive_store *s, const char *name)
{
    int fd = xac_sys.memfd_create("manifest", MFD_CLOEXEC);
    struct stat st;
    size_t got = 0;
    int rc;

    if (fd < 0)
        return xac_err(errno, "%s", name);
    rc = archive_store_get(s, name, fd);
    if (rc == ENOENT)
        rc = xac_err_whole(XAC_EDAMAGED, "%s: %s is missing", s->dest, name);
    if (rc == 0 && xac_sys.fstat(fd, &st) != 0)
        rc = xac_err(errno, "%s", name);
    if (rc == 0 && (uint64_t)st.st_size > TEXT_MAX)
        rc = xac_err(EFBIG, "%s", name);
    if (rc == 0) {
        t->n = (size_t)st.st_size;
        t->bytes = (char *)calloc(1, t->n + 1);
        rc = t->bytes == NULL ? xac_err(ENOMEM, "%s", name)
                              : xac_read_full(fd, t->bytes, t->n, 0, &got);
    }
    (void)xac_sys.close(fd);
    return rc;
}

/* read_one -- a manifest; ret 0; XAC_EDAMAGED; XAC_EVERSION; others of archive_store_get(). */
static int
read_one(struct text *t, struct archive_store *s, uint64_t number)
{
    static const char version[] = "xac-archive 1\n";
    char name[ARCHIVE_NAME_MAX];
    int rc;

    *t = (struct text){.bytes = NULL};
    archive_manifest_name(name, number);
    rc = load(t, s, name);
    if (rc == 0 && (rc = sha_of(t->bytes, t->n, t->sha)) != 0)
        (void)xac_err(rc, "%s: SHA-256", name);
    if (rc != 0)
        return rc;
    if (!is_whole(t) || strncmp(t->bytes, "xac-archive ", 12) != 0)
        return xac_err(XAC_EDAMAGED, "%s: %s is not whole", s->dest, name);
    if (strncmp(t->bytes, version, sizeof version - 1) != 0)
        return xac_err(XAC_EVERSION, "%s: %s", s->dest, name);
    if (!take_head(t) || t->number != number)
        return xac_err(XAC_EDAMAGED, "%s: %s is wrong", s->dest, name);
    return 0;
}

/* take_objects -- of a manifest, behind those before it. */
static int
take_objects(struct archive *a, const struct archive_store *s, struct text *t)
{
    struct archive_object o;
    char *line, *at = t->objects;

    while ((line = next_line(&at)) != NULL) {
        if (!take_object(line, &o))
            return xac_err(XAC_EDAMAGED,
                           "%s: " ARCHIVE_MANIFEST "%010" PRIu64 ": a line that is none",
                           s->dest, t->number);
        if (archive_add(a, &o) == NULL)
            return ENOMEM;
    }
    return 0;
}

/* merge -- the manifests, the newest first; each must be the one that the newer one follows. */
static int
merge(struct archive *a, const struct archive_store *s, struct text *t, size_t n)
{
    int rc = 0;

    for (size_t i = 1; i < n; i++) {
        if (memcmp(t[i - 1].follows_sha, t[i].sha, sizeof t[i].sha) != 0
            || memcmp(t[i - 1].head.identity, t[i].head.identity, 16) != 0)
            return xac_err(XAC_EDAMAGED,
                           "%s: " ARCHIVE_MANIFEST "%010" PRIu64
                           " is not the one that %010" PRIu64 " follows",
                           s->dest, t[i].number, t[i - 1].number);
    }
    if (!t[n - 1].is_full)
        return xac_err(XAC_EDAMAGED, "%s: no manifest names all objects", s->dest);
    *a = t[0].head;
    a->number = t[0].number;
    memcpy(a->sha, t[0].sha, sizeof a->sha);
    a->full_number = t[n - 1].number;
    a->full_time_ns = t[n - 1].head.time_ns;
    for (size_t i = n; rc == 0 && i-- > 0;)
        rc = take_objects(a, s, &t[i]);
    a->n_named = a->n;
    return rc;
}

int
archive_read(struct archive *a, struct archive_store *s, uint64_t newest)
{
    struct text *t = NULL;
    size_t n = 0, room = 0;
    uint64_t number = newest;
    int rc = 0;

    *a = (struct archive){.n = 0};
    while (rc == 0 && number != 0) {
        if (n == room) {
            struct text *more;

            room = room != 0 ? 2 * room : 16;
            more = (struct text *)realloc(t, room * sizeof *t);
            if (more == NULL) {
                rc = xac_err(ENOMEM, "manifests");
                break;
            }
            t = more;
        }
        rc = read_one(&t[n++], s, number);
        number = rc == 0 && !t[n - 1].is_full ? t[n - 1].follows : 0;
    }
    if (rc == 0 && n > 0)
        rc = merge(a, s, t, n);
    for (size_t i = 0; i < n; i++)
        free(t[i].bytes);
    free(t);
    return rc;
}

/* note_newest -- for archive_store_list(). */
static int
note_newest(void *arg, const char *name)
{
    uint64_t *newest = (uint64_t *)arg, number;

    if (archive_manifest_named(name, &number) && number > *newest)
        *newest = number;
    return 0;
}

int
archive_newest(struct archive_store *s, uint64_t *numberp)
{
    *numberp = 0;
    return archive_store_list(s, note_newest, numberp);
}
