/* SPDX-License-Identifier: MIT */
/*
 * raftd_group.c -- see raftd_group.h.
 */
#include <config.h>

#include "raftd_group.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "group/member.h"
#include "log/group_note.h"
#include "log/log_format.h"
#include "log/log_name.h"
#include "log/recover_scan.h"
#include "ship_addr.h"
#include "tool.h"

static const char first_line[] = "libxac members 1";

bool
raftd_address_ok(const char *address)
{
    struct ship_addr at;
    uint64_t port;

    return strlen(address) < RAFTD_ADDRESS_BYTES && strpbrk(address, " \t\n") == NULL
           && ship_addr_read(address, &at) == 0 && at.path == NULL && at.host[0] != '\0'
           && tool_number(at.port, &port) && port > 0 && port <= UINT16_MAX;
}

/* ---- xac.members -------------------------------------------------------------------- */

/* text_of -- the lock is held, or no daemon runs. */
static size_t
text_of(const struct raftd_group *g, char text[RAFTD_GROUP_BYTES])
{
    char id[2 * XAC_RAFTD_GROUP_BYTES + 1];
    int n;

    for (size_t i = 0; i < XAC_RAFTD_GROUP_BYTES; i++)
        (void)snprintf(id + 2 * i, 3, "%02x", g->id[i]);
    n = snprintf(text, RAFTD_GROUP_BYTES,
                 "%s\ngroup %s\ngeneration %" PRIu32 " end %" PRIu64 " segment %" PRIu64
                 "\n",
                 first_line, id, g->begin.generation, g->begin.end,
                 g->begin.segment_bytes);
    for (unsigned i = 0; i < g->n; i++)
        n += snprintf(text + n, RAFTD_GROUP_BYTES - (size_t)n, "node %" PRIu32 " %s\n",
                      g->member[i].node, g->member[i].address);
    xac_assert((size_t)n < RAFTD_GROUP_BYTES);
    return (size_t)n;
}

size_t
raftd_group_text(struct raftd_group *g, char text[RAFTD_GROUP_BYTES])
{
    size_t n;

    (void)pthread_mutex_lock(&g->lock);
    n = text_of(g, text);
    (void)pthread_mutex_unlock(&g->lock);
    return n;
}

/* raftd_group_write -- the last file of a member (1). */
int
raftd_group_write(int dirfd, const char *dir, struct raftd_group *g)
{
    struct xac_newfile file = {.dirfd = dirfd,
                               .made = XAC_MEMBERS_NAME "-new",
                               .name = XAC_MEMBERS_NAME,
                               .is_synced = true};
    char text[RAFTD_GROUP_BYTES];
    size_t n = raftd_group_text(g, text);
    int rc = xac_newfile_replace(&file, text, n, NULL);

    return rc == 0 ? 0 : xac_err(rc, "%s/%s: write", dir, XAC_MEMBERS_NAME);
}

/* can_be -- the nodes of a group? */
static bool
can_be(const struct raftd_member *member, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct raftd_member *m = &member[i];

        if (!raftd_address_ok(m->address) || m->node == 0 || m->node > XAC_GROUP_NODE_MAX
            || (i > 0 && m->node <= m[-1].node))
            return false;
    }
    return n > 0;
}

/* is_sound -- can a group be so? */
static bool
is_sound(const struct raftd_group *g)
{
    return can_be(g->member, g->n) && xac_log_generation_ok(g->begin.generation)
           && g->begin.end % XAC_BLOCK_ALIGN == 0 && g->begin.end <= XAC_LSN_LIMIT;
}

/* parse_id -- of a group. */
static bool
parse_id(const char *line, struct raftd_group *g)
{
    if (line == NULL || strncmp(line, "group ", 6) != 0
        || strlen(line) != 6 + 2 * XAC_RAFTD_GROUP_BYTES)
        return false;
    for (size_t i = 0; i < XAC_RAFTD_GROUP_BYTES; i++) {
        unsigned byte;

        if (sscanf(line + 6 + 2 * i, "%2x", &byte) != 1)
            return false;
        g->id[i] = (uint8_t)byte;
    }
    return true;
}

/* parse -- what the file has. */
static bool
parse(char *text, struct raftd_group *g)
{
    char *rest = NULL, *line = strtok_r(text, "\n", &rest);

    if (line == NULL || strcmp(line, first_line) != 0
        || !parse_id(strtok_r(NULL, "\n", &rest), g))
        return false;
    line = strtok_r(NULL, "\n", &rest);
    if (line == NULL
        || sscanf(line, "generation %" SCNu32 " end %" SCNu64 " segment %" SCNu64,
                  &g->begin.generation, &g->begin.end, &g->begin.segment_bytes)
               != 3)
        return false;
    g->begin.start = g->begin.cut = g->begin.end;
    g->n = 0;
    while ((line = strtok_r(NULL, "\n", &rest)) != NULL) {
        struct raftd_member *m = &g->member[g->n];

        if (g->n == RAFTD_MEMBERS_MAX
            || sscanf(line, "node %" SCNu32 " %127s", &m->node, m->address) != 2)
            return false;
        g->n++;
    }
    return is_sound(g);
}

/* read_file -- ret 0; ENOENT without words; EINVAL: it is not so; errno. */
static int
read_file(int dirfd, const char *name, struct raftd_group *g)
{
    int fd = xac_sys.openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    char text[RAFTD_GROUP_BYTES];
    size_t got = 0;
    int rc;

    if (fd < 0 && errno == ENOENT)
        return ENOENT;
    if (fd < 0)
        return xac_err(errno, "%s: open", name);
    rc = xac_read_full(fd, text, sizeof text - 1, 0, &got);
    (void)xac_sys.close(fd);
    if (rc != 0)
        return xac_err(rc, "%s: read", name);
    text[got] = '\0';
    return parse(text, g) ? 0 : EINVAL;
}

/* read_members -- ret 0; ENOENT without words; XAC_EDAMAGED; errno. */
static int
read_members(int dirfd, const char *dir, struct raftd_group *g)
{
    int rc = read_file(dirfd, XAC_MEMBERS_NAME, g);

    return rc != EINVAL ? rc
                        : xac_err(XAC_EDAMAGED, "%s/%s: not as xraftd writes it", dir,
                                  XAC_MEMBERS_NAME);
}

/* place_of -- a node among the members; NULL: it is none. */
static struct raftd_member *
place_of(struct raftd_group *g, uint32_t node)
{
    for (unsigned i = 0; i < g->n; i++) {
        if (g->member[i].node == node)
            return &g->member[i];
    }
    return NULL;
}

bool
raftd_group_address(struct raftd_group *g, uint32_t node, char out[RAFTD_ADDRESS_BYTES])
{
    const struct raftd_member *m;

    (void)pthread_mutex_lock(&g->lock);
    m = place_of(g, node);
    if (m != NULL)
        memcpy(out, m->address, RAFTD_ADDRESS_BYTES);
    (void)pthread_mutex_unlock(&g->lock);
    return m != NULL;
}

unsigned
raftd_group_members(struct raftd_group *g, struct raftd_member out[RAFTD_MEMBERS_MAX])
{
    unsigned n;

    (void)pthread_mutex_lock(&g->lock);
    n = g->n;
    memcpy(out, g->member, n * sizeof out[0]);
    (void)pthread_mutex_unlock(&g->lock);
    return n;
}

bool
raftd_group_set(struct raftd_group *g, const struct raftd_member *member, unsigned n)
{
    xac_assert(n <= RAFTD_MEMBERS_MAX);
    if (!can_be(member, n))
        return false;
    (void)pthread_mutex_lock(&g->lock);
    g->n = n;
    memcpy(g->member, member, n * sizeof member[0]);
    (void)pthread_mutex_unlock(&g->lock);
    return true;
}

int
raftd_group_read(int dirfd, const char *dir, struct raftd_group *out)
{
    struct xac_group_note note;
    int rc;

    *out = (struct raftd_group){.n = 0}; /* what the file does not have is 0 */
    (void)pthread_mutex_init(&out->lock, NULL);
    rc = read_members(dirfd, dir, out);

    if (rc == 0)
        rc = xac_group_note_read(dirfd, &note);
    if (rc == ENOENT)
        return xac_err_whole(ENOENT, "%s: no member of a group; xraftd create makes one",
                             dir);
    if (rc != 0)
        return rc;
    out->node = note.node;
    if (memcmp(out->id, note.group, sizeof out->id) != 0)
        return xac_err(XAC_EDAMAGED, "%s: %s is of another group than %s", dir,
                       XAC_MEMBERS_NAME, XAC_GROUP_NAME);
    return !note.is_removed && place_of(out, note.node) != NULL
               ? 0
               : xac_err_whole(EINVAL,
                               "%s: node %" PRIu32 " has been removed from the group",
                               dir, note.node);
}

/* ---- Making ------------------------------------------------------------------------- */

int
raftd_group_create(int dirfd, const char *dir, struct raftd_group *g,
                   int (*raft)(int dirfd, const char *dir, struct raftd_group *g))
{
    struct xac_group_note note = {.node = 1};
    struct xac_member_place place;
    struct raftd_group before = {.n = 0};
    int rc = read_members(dirfd, dir, &before);

    xac_assert(g->n > 0);
    if (rc == 0)
        return xac_err(EEXIST, "%s: a member of a group already", dir);
    if (rc != ENOENT)
        return rc;
    rc = xac_group_note_read(dirfd, &note); /* it has been killed in here */
    if (rc == ENOENT)
        rc = getentropy(note.group, sizeof note.group) == 0 ? 0 : errno;
    if (rc == 0)
        rc = xac_member_create(dir, &note, &place);
    if (rc != 0)
        return rc;
    (void)pthread_mutex_init(&g->lock, NULL);
    memcpy(g->id, note.group, sizeof g->id);
    g->node = note.node;
    g->begin = (struct raftd_accepted){.generation = place.generation,
                                       .start = place.end_lsn,
                                       .end = place.end_lsn,
                                       .cut = place.end_lsn,
                                       .segment_bytes = place.segment_bytes};
    rc = raft(dirfd, dir, g);
    return rc == 0 ? raftd_group_write(dirfd, dir, g) : rc;
}

/* is_there -- ret 1, 0, or -1 with errno. */
static int
is_there(int dirfd, const char *name)
{
    if (faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
}

/* may_be_copy -- has the member never run (3)? */
static int
may_be_copy(int dirfd, const char *dir)
{
    int has_run = is_there(dirfd, XAC_RAFTD_DIR "/" XAC_RAFTD_LOCK);

    if (has_run > 0)
        return xac_err_whole(
            EBUSY,
            "%s: the member has run; only a copy of one that has not can "
            "become another node",
            dir);
    return has_run == 0 ? 0 : xac_err(errno, "%s", dir);
}

int
raftd_group_join(int dirfd, const char *dir, uint32_t node)
{
    struct xac_group_note note = {.node = node};
    struct raftd_group g;
    int rc = raftd_group_read(dirfd, dir, &g);

    if (rc != 0)
        return rc;
    if (place_of(&g, node) == NULL)
        return xac_err_whole(EINVAL, "%s: the group has the nodes 1 to %u", dir, g.n);
    rc = may_be_copy(dirfd, dir);
    if (rc != 0 || node == g.node)
        return rc;
    memcpy(note.group, g.id, sizeof note.group);
    if (xac_sys.unlinkat(dirfd, XAC_GROUP_NAME, 0) != 0)
        return xac_err(errno, "%s/%s: remove", dir, XAC_GROUP_NAME);
    return xac_member_create(dir, &note, NULL);
}

/* must_be_empty -- for xac_scan_names. */
static int
must_be_empty(void *arg, const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0
                   || strcmp(name, XAC_GROUP_NAME) == 0
               ? 0
               : xac_err_whole(EEXIST,
                               "%s: holds %s; a new node begins in an empty directory",
                               (const char *)arg, name);
}

int
raftd_group_invitation(const char *file, uint32_t node, struct raftd_group *out)
{
    int rc;

    *out = (struct raftd_group){.node = node};
    (void)pthread_mutex_init(&out->lock, NULL);
    rc = read_file(AT_FDCWD, file, out);
    if (rc == ENOENT)
        return xac_err(ENOENT, "%s", file);
    return rc == EINVAL || (rc == 0 && place_of(out, node) == NULL)
               ? xac_err_whole(EINVAL,
                               "%s: not what xraftd add has printed for node %" PRIu32,
                               file, node)
               : rc;
}

int
raftd_group_invited(int dirfd, const char *dir, struct raftd_group *g)
{
    struct xac_group_note note = {.node = g->node};
    int rc = xac_scan_names(dirfd, "", must_be_empty, (void *)(uintptr_t)dir);

    xac_assert(place_of(g, g->node) != NULL);
    memcpy(note.group, g->id, sizeof note.group);
    if (rc == 0)
        rc = xac_group_note_write(dirfd, &note);
    return rc == 0 ? raftd_group_write(dirfd, dir, g) : rc; /* (1), (4) */
}

/* ---- A vote ------------------------------------------------------------------------- */

int
raftd_group_remembers(int dirfd, const char *dir, uint32_t node)
{
    /* libraft writes term and vote to these in turn. */
    static const char *const votes[] = {XAC_RAFTD_DIR "/metadata1",
                                        XAC_RAFTD_DIR "/metadata2"};
    int env = is_there(dirfd, XAC_MASTER_NAME), first = is_there(dirfd, votes[0]),
        second = is_there(dirfd, votes[1]);

    if (env < 0 || first < 0 || second < 0)
        return xac_err(errno, "%s", dir);
    if (env == 0 || first > 0 || second > 0)
        return 0;
    return xac_err_whole(XAC_EDAMAGED,
                         "%s/%s: Raft's files are not there, and this node has forgotten "
                         "how it voted: without them it can lose what was acknowledged; "
                         "have the group remove node %" PRIu32 ", and add another one",
                         dir, XAC_RAFTD_DIR, node);
}

/* ---- Whose files ------------------------------------------------------------------- */

/* others_files -- ret XAC_EDAMAGED with words. */
static int
others_files(const char *dir, const struct raftd_group *g,
             const struct xac_group_note *whose)
{
    bool is_group = memcmp(whose->group, g->id, sizeof g->id) == 0;

    return xac_err_whole(XAC_EDAMAGED,
                         "%s/%s: Raft's files are those of node %" PRIu32 "%s, and this "
                         "is node %" PRIu32 ": put its own back; if they are lost, have "
                         "the group remove node %" PRIu32 ", and add another one",
                         dir, XAC_RAFTD_DIR, whose->node,
                         is_group ? "" : " of another group", g->node, g->node);
}

int
raftd_group_bind(int dirfd, const char *dir, const struct raftd_group *g)
{
    struct xac_group_note own = {.node = g->node}, noted;
    char words[XAC_ERR_BYTES];
    int fd = xac_sys.openat(dirfd, XAC_RAFTD_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int rc;

    if (fd < 0)
        return xac_err(errno, "%s/%s", dir, XAC_RAFTD_DIR);
    memcpy(own.group, g->id, sizeof own.group);
    rc = xac_group_note_read(fd, &noted);
    if (rc == ENOENT)
        rc = xac_group_note_write(fd, &own);
    else if (rc == 0
             && (noted.node != own.node
                 || memcmp(noted.group, own.group, sizeof own.group) != 0))
        rc = others_files(dir, g, &noted);
    else if (rc != 0) {
        (void)snprintf(words, sizeof words, "%s", xac_err_text());
        rc = xac_err_whole(rc, "%s/%s/%s", dir, XAC_RAFTD_DIR, words);
    }
    (void)xac_sys.close(fd);
    return rc;
}

/* ---- One daemon --------------------------------------------------------------------- */

int
raftd_lock(int dirfd, const char *dir, int *fdp)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    struct xac_owner owner;
    int rc = xac_newdir_make(dirfd, XAC_RAFTD_DIR, dirfd);

    xac_assert(dirfd >= 0);
    *fdp = -1;
    if (rc == 0 || rc == EEXIST)
        rc = xac_owner_get(dirfd, &owner);
    if (rc == 0)
        rc = xac_newfile_open(dirfd, XAC_RAFTD_DIR "/" XAC_RAFTD_LOCK, &owner, fdp);
    if (rc == 0 && xac_sys.lock(*fdp, F_OFD_SETLK, &lk) != 0)
        rc = errno;
    if (rc == EAGAIN || rc == EACCES)
        return xac_err_whole(XAC_ELIVE, "%s: another xraftd runs there", dir);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s/%s", dir, XAC_RAFTD_DIR, XAC_RAFTD_LOCK);
}
