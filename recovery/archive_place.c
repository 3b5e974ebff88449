/* SPDX-License-Identifier: MIT */
/*
 * archive_place.c -- see archive_place.h.
 */
#include <config.h>

#include "archive_place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/identity.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "ship/ship_copy.h"

#define NOTE_NAME   "note"   /* claim and newest manifest                              */
#define DOOMED_NAME "doomed" /* objects that no manifest names                         */
#define LOCK_NAME   "lock"
#define STAGE       "stage"

#define NOTE_BYTES 512

/* Numbers that are tried for the first manifest. */
#define FIRST_MAX 32

#define LIST_MAX ((size_t)256 << 20)

/* ---- Notes ------------------------------------------------------------------------ */

/* replace -- a file of the notes. */
static int
replace(const struct archive_place *p, const char *name, const char *text, size_t n)
{
    struct xac_owner owner;
    struct xac_newfile f = {.dirfd = p->statefd,
                            .made = "new",
                            .name = name,
                            .owner = &owner,
                            .is_synced = true};
    int rc = xac_owner_get(p->dirfd, &owner);

    if (rc == 0)
        rc = xac_newfile_replace(&f, text, n, NULL);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s/%s: write", p->dir, p->name, name);
}

/* load -- a file of the notes; *textp NULL: it is not there. */
static int
load(const struct archive_place *p, const char *name, char **textp)
{
    int fd = xac_sys.openat(p->statefd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct stat st;
    size_t got;
    int rc = fd < 0 ? errno : 0;

    *textp = NULL;
    if (rc == ENOENT)
        return 0;
    if (rc == 0 && xac_sys.fstat(fd, &st) != 0)
        rc = errno;
    if (rc == 0 && (uint64_t)st.st_size > LIST_MAX)
        rc = EFBIG;
    if (rc == 0) {
        *textp = (char *)calloc(1, (size_t)st.st_size + 1);
        rc = *textp == NULL ? ENOMEM
                            : xac_read_full(fd, *textp, (size_t)st.st_size, 0, &got);
    }
    if (fd >= 0)
        (void)xac_sys.close(fd);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s/%s", p->dir, p->name, name);
}

/* note_write -- with the directory that they are for: a copy of it has another claim. */
static int
note_write(const struct archive_place *p)
{
    char text[NOTE_BYTES], sha[2 * ARCHIVE_SHA_BYTES + 1];
    struct xac_identity who;
    int rc = xac_identity_of(p->dirfd, &who);
    int n;

    if (rc != 0)
        return xac_err(rc, "%s", p->dir);
    for (size_t i = 0; i < ARCHIVE_SHA_BYTES; i++)
        (void)snprintf(sha + 2 * i, 3, "%02x", p->sha[i]);
    n = snprintf(text, sizeof text,
                 "xac-archiving 1\n%s\n%" PRIu64 " %" PRIu64 "\n%" PRIu64 " %s\nend\n",
                 p->claim, who.inode, who.birth_ns, p->number, sha);
    xac_assert(n > 0 && (size_t)n < sizeof text);
    return replace(p, NOTE_NAME, text, (size_t)n);
}

/* note_take -- from its text; ret false if it is not right, or not of this directory. */
static bool
note_take(struct archive_place *p, const char *text)
{
    char claim[33], sha[2 * ARCHIVE_SHA_BYTES + 1], end[4];
    struct xac_identity who, is;
    uint64_t number;

    if (xac_identity_of(p->dirfd, &is) != 0
        || sscanf(text,
                  "xac-archiving 1\n%32[0-9a-f]\n%" SCNu64 " %" SCNu64 "\n%" SCNu64
                  " %64[0-9a-f]\n%3s",
                  claim, &who.inode, &who.birth_ns, &number, sha, end)
               != 6
        || strcmp(end, "end") != 0 || strlen(claim) != 32
        || strlen(sha) != 2 * ARCHIVE_SHA_BYTES || who.inode != is.inode
        || who.birth_ns != is.birth_ns)
        return false;
    memcpy(p->claim, claim, sizeof p->claim);
    p->number = number;
    for (size_t i = 0; i < ARCHIVE_SHA_BYTES; i++) {
        char two[3] = {sha[2 * i], sha[2 * i + 1], '\0'};

        p->sha[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    return true;
}

/* notes_open -- those of the last run, or new ones. */
static int
notes_open(struct archive_place *p)
{
    uint8_t bytes[16];
    char *text;
    int rc = load(p, NOTE_NAME, &text);
    bool is_known = rc == 0 && text != NULL && note_take(p, text);

    free(text);
    if (rc != 0 || is_known)
        return rc;
    if (getentropy(bytes, sizeof bytes) != 0)
        return xac_err(errno, "random numbers");
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(p->claim + 2 * i, 3, "%02x", bytes[i]);
    return note_write(p);
}

int
archive_place_note(struct archive_place *p, uint64_t number,
                   const uint8_t sha[ARCHIVE_SHA_BYTES])
{
    xac_assert(number > p->number);
    p->number = number;
    memcpy(p->sha, sha, sizeof p->sha);
    return note_write(p);
}

/* ---- The claim -------------------------------------------------------------------- */

/* What claims DEST has. */
struct claims {
    const char *own; /* name of ours                                                  */
    bool has_own;
    char other[ARCHIVE_NAME_MAX + 1]; /* one that is not, or ""                       */
};

/* note_claim -- for archive_store_list(). */
static int
note_claim(void *arg, const char *name)
{
    struct claims *c = (struct claims *)arg;

    if (strcmp(name, c->own) == 0)
        c->has_own = true;
    else if (strncmp(name, ARCHIVE_CLAIM, strlen(ARCHIVE_CLAIM)) == 0)
        (void)snprintf(c->other, sizeof c->other, "%s", name);
    return 0;
}

/* claimed -- say who has DEST; ret EBUSY. */
static int
claimed(struct archive_store *s, const char *name)
{
    char words[200] = "";
    size_t got = 0;
    int fd = xac_sys.memfd_create("claim", MFD_CLOEXEC);

    if (fd >= 0 && archive_store_get(s, name, fd) == 0)
        (void)xac_read_full(fd, words, sizeof words - 1, 0, &got);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    words[strcspn(words, "\n")] = '\0';
    return xac_err_whole(
        EBUSY,
        "%s: belongs to another archiver, of %s; if that one is gone for "
        "good, remove the object %s",
        s->dest, words[0] != '\0' ? words : "unknown origin", name);
}

/* claim_put -- ours says who we are. */
static int
claim_put(struct archive_place *p, struct archive_store *s, const char *name)
{
    char text[400], host[100] = "";
    struct xac_owner owner;
    int fd = -1, rc = xac_owner_get(p->dirfd, &owner);
    int n;

    (void)gethostname(host, sizeof host - 1);
    n = snprintf(text, sizeof text, "%s on %s\n", p->dir, host);
    if (n >= (int)sizeof text)
        n = (int)sizeof text - 1;
    if (rc == 0)
        rc = xac_newfile_remake(s->stagefd, "claim", &owner, &fd);
    if (rc == 0)
        rc = xac_write_full(fd, text, (size_t)n, 0);
    if (rc == 0 && xac_sys.fsync(fd) != 0)
        rc = errno;
    xac_close_fd(&fd);
    if (rc != 0)
        return xac_err(rc, "%s/claim", s->stage);
    return archive_store_put(s, "claim", name);
}

/* claim -- DEST for us.  The list is read again behind it: of two who come at the same time at least one
   sees the other. */
static int
claim(struct archive_place *p, struct archive_store *s)
{
    char name[64];
    struct claims c = {.own = name};
    int rc;

    (void)snprintf(name, sizeof name, ARCHIVE_CLAIM "%s", p->claim);
    rc = archive_store_list(s, note_claim, &c);
    if (rc == 0 && c.other[0] != '\0')
        return claimed(s, c.other);
    if (rc != 0 || c.has_own)
        return rc;
    rc = claim_put(p, s, name);
    if (rc == 0)
        rc = archive_store_list(s, note_claim, &c);
    if (rc != 0 || c.other[0] == '\0')
        return rc;
    (void)archive_store_remove(s, name);
    return claimed(s, c.other);
}

/* ---- Opening ---------------------------------------------------------------------- */

/* lock -- against another archiver of the same two. */
static int
lock(struct archive_place *p, const char *dest)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    struct xac_owner owner;
    int rc = xac_owner_get(p->dirfd, &owner);

    if (rc == 0)
        rc = xac_newfile_open(p->statefd, LOCK_NAME, &owner, &p->lockfd);
    if (rc == 0 && xac_sys.lock(p->lockfd, F_OFD_SETLK, &lk) != 0)
        rc = errno;
    if (rc == EAGAIN || rc == EACCES)
        return xac_err_whole(EBUSY, "%s: another process archives it to %s", p->dir,
                             dest);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s/" LOCK_NAME, p->dir, p->name);
}

int
archive_place_open(struct archive_place *p, struct archive_store *s, int dirfd,
                   const char *dir)
{
    char *local = NULL, stage[64];
    int rc;

    *p = (struct archive_place){.dir = dir, .dirfd = dirfd, .statefd = -1, .lockfd = -1};
    (void)snprintf(p->name, sizeof p->name, ARCHIVE_STATE_PREFIX "%016" PRIx64,
                   xac_xxh64(s->dest, strlen(s->dest)));
    rc = xac_newdir_make(dirfd, p->name, dirfd);
    if (rc != 0 && rc != EEXIST)
        return xac_err(rc, "%s/%s: make", dir, p->name);
    p->statefd = xac_sys.openat(dirfd, p->name,
                                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (p->statefd < 0)
        return xac_err(errno, "%s/%s", dir, p->name);
    rc = lock(p, s->dest);
    if (rc == 0)
        rc = notes_open(p);
    if (rc == 0 && asprintf(&local, "%s/%s", dir, p->name) < 0) {
        local = NULL;
        rc = xac_err(ENOMEM, "%s", dir);
    }
    (void)snprintf(stage, sizeof stage, STAGE "-%.16s", p->claim);
    if (rc == 0)
        rc = archive_store_stage(s, p->statefd, local, stage);
    free(local);
    if (rc == 0)
        rc = claim(p, s);
    p->has_claim = rc == 0;
    return rc;
}

void
archive_place_close(struct archive_place *p, struct archive_store *s)
{
    char name[64];

    if (p->has_claim) {
        (void)snprintf(name, sizeof name, ARCHIVE_CLAIM "%s", p->claim);
        (void)archive_store_remove(s, name);
        (void)snprintf(name, sizeof name, STAGE "-%.16s", p->claim);
        (void)xac_copy_remove(s->dirfd >= 0 ? s->dirfd : p->statefd, name);
    }
    xac_close_fd(&p->lockfd);
    xac_close_fd(&p->statefd);
}

/* is_blank -- no manifest is whole: the first one has been torn, perhaps again and again. */
static bool
is_blank(struct archive_store *s, uint64_t newest)
{
    bool is_torn = newest <= FIRST_MAX;

    for (uint64_t k = 1; is_torn && k < newest; k++) {
        struct archive a;

        is_torn = archive_read(&a, s, k) == XAC_EDAMAGED;
        archive_free(&a);
    }
    return is_torn;
}

int
archive_place_read(struct archive_place *p, struct archive_store *s, struct archive *a,
                   uint64_t *numberp)
{
    uint64_t newest;
    int rc = archive_newest(s, &newest);

    *a = (struct archive){.n = 0};
    if (rc != 0)
        return rc;
    if (newest < p->number)
        return xac_err_whole(ESTALE,
                             "%s: manifest %" PRIu64 " is not there, but %" PRIu64
                             " has been: is it the right place, and is it mounted?",
                             s->dest, newest + 1, p->number);
    *numberp = newest;
    rc = archive_read(a, s, newest);
    if (rc == XAC_EDAMAGED && newest > p->number
        && (p->number > 0 || is_blank(s, newest))) {
        archive_free(a); /* torn: it has never been noted */
        rc = archive_read(a, s, p->number);
    }
    if (rc == 0 && a->number == p->number && p->number > 0
        && memcmp(a->sha, p->sha, sizeof a->sha) != 0)
        rc = xac_err(XAC_EDAMAGED, "%s: manifest %" PRIu64 " is another one than it was",
                     s->dest, p->number);
    if (rc == 0 && a->number > p->number)
        rc = archive_place_note(p, a->number, a->sha);
    return rc;
}

/* ---- Removing --------------------------------------------------------------------- */

/* A list of names. */
struct names {
    char **name;
    size_t n, room;
};

static int
names_add(struct names *l, const char *name)
{
    if (l->n == l->room) {
        size_t room = l->room != 0 ? 2 * l->room : 64;
        char **more = (char **)realloc((void *)l->name, room * sizeof *more);

        if (more == NULL)
            return xac_err(ENOMEM, "list of objects");
        l->name = more;
        l->room = room;
    }
    l->name[l->n] = strdup(name);
    return l->name[l->n++] != NULL ? 0 : xac_err(ENOMEM, "list of objects");
}

static void
names_free(struct names *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->name[i]);
    free((void *)l->name);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* names_has -- a sorted list. */
static bool
names_has(const struct names *l, const char *name)
{
    return l->n > 0
           && bsearch((const void *)&name, (const void *)l->name, l->n, sizeof name,
                      by_name)
                  != NULL;
}

static void
names_sort(struct names *l)
{
    if (l->n > 0)
        qsort((void *)l->name, l->n, sizeof *l->name, by_name);
}

/* What is looked for. */
struct look {
    const struct archive *a;
    const struct names *named;
    struct names *unnamed;
};

/* is_ours -- does the name begin like that of an object? */
static bool
is_ours(const char *name)
{
    static const char *const first[] = {"log.", "data.", "note.", "backup."};

    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        if (strncmp(name, first[i], strlen(first[i])) == 0)
            return archive_name_ok(name);
    }
    return false;
}

/* note_unnamed -- for archive_store_list(): objects that no manifest names, and manifests before the last
   full one. */
static int
note_unnamed(void *arg, const char *name)
{
    struct look *l = (struct look *)arg;
    uint64_t number;

    if (archive_manifest_named(name, &number)
            ? number >= l->a->full_number
            : !is_ours(name) || names_has(l->named, name))
        return 0;
    return names_add(l->unnamed, name);
}

/* remove_doomed -- those that were noted long ago, and are not named yet.  *keepp: they stay noted. */
static int
remove_doomed(struct archive_place *p, struct archive_store *s, const struct names *now,
              uint64_t now_ns, bool *keepp)
{
    char *text, *line, *at;
    uint64_t time_ns = 0;
    int rc = load(p, DOOMED_NAME, &text);

    *keepp = false;
    at = text;
    line = at != NULL ? strsep(&at, "\n") : NULL;
    if (line != NULL)
        time_ns = strtoull(line, NULL, 10);
    if (line != NULL && now_ns < time_ns + ARCHIVE_LINGER_NS)
        *keepp = true;
    while (rc == 0 && !*keepp && at != NULL && (line = strsep(&at, "\n")) != NULL) {
        if (names_has(now, line))
            rc = archive_store_remove(s, line);
    }
    free(text);
    return rc;
}

/* note_doomed -- all that is not named now. */
static int
note_doomed(struct archive_place *p, const struct names *now, uint64_t now_ns)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    int rc;

    if (f == NULL)
        return xac_err(ENOMEM, DOOMED_NAME);
    fprintf(f, "%" PRIu64 "\n", now_ns);
    for (size_t i = 0; i < now->n; i++)
        fprintf(f, "%s\n", now->name[i]);
    rc = fclose(f) == 0 ? replace(p, DOOMED_NAME, text, n) : xac_err(ENOMEM, DOOMED_NAME);
    free(text);
    return rc;
}

int
archive_place_clean(struct archive_place *p, struct archive_store *s,
                    const struct archive *a, uint64_t now_ns)
{
    struct names named = {.n = 0}, unnamed = {.n = 0};
    struct look l = {.a = a, .named = &named, .unnamed = &unnamed};
    bool is_kept = true;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < a->n; i++) {
        if (a->object[i].name != NULL)
            rc = names_add(&named, a->object[i].name);
    }
    names_sort(&named);
    if (rc == 0)
        rc = archive_store_list(s, note_unnamed, &l);
    names_sort(&unnamed);
    if (rc == 0)
        rc = remove_doomed(p, s, &unnamed, now_ns, &is_kept);
    if (rc == 0 && !is_kept)
        rc = note_doomed(p, &unnamed, now_ns);
    names_free(&named);
    names_free(&unnamed);
    return rc;
}
