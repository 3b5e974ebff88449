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
#include "ship_addr.h"
#include "tool.h"

static const char first_line[] = "libxac members 1";

#define TEXT_BYTES 2048

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

/* write_members -- the last file of a member (1). */
static int
write_members(int dirfd, const char *dir, const struct raftd_group *g)
{
    struct xac_newfile file = {.dirfd = dirfd,
                               .made = XAC_MEMBERS_NAME "-new",
                               .name = XAC_MEMBERS_NAME,
                               .is_synced = true};
    char text[TEXT_BYTES];
    int n =
        snprintf(text, sizeof text,
                 "%s\ngeneration %" PRIu32 " end %" PRIu64 " segment %" PRIu64 "\n",
                 first_line, g->begin.generation, g->begin.end, g->begin.segment_bytes);
    int rc;

    for (unsigned i = 0; i < g->n; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "node %u %s\n", i + 1,
                      g->member[i]);
    xac_assert((size_t)n < sizeof text);
    rc = xac_newfile_replace(&file, text, (size_t)n, NULL);
    return rc == 0 ? 0 : xac_err(rc, "%s/%s: write", dir, XAC_MEMBERS_NAME);
}

/* is_sound -- can a group begin so? */
static bool
is_sound(const struct raftd_group *g)
{
    for (unsigned i = 0; i < g->n; i++) {
        if (!raftd_address_ok(g->member[i]))
            return false;
    }
    return g->n > 0 && xac_log_generation_ok(g->begin.generation)
           && g->begin.end % XAC_BLOCK_ALIGN == 0 && g->begin.end <= XAC_LSN_LIMIT;
}

/* parse -- what the file has. */
static bool
parse(char *text, struct raftd_group *g)
{
    char *rest = NULL, *line = strtok_r(text, "\n", &rest);
    unsigned node;

    if (line == NULL || strcmp(line, first_line) != 0)
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
        if (g->n == RAFTD_MEMBERS_MAX
            || sscanf(line, "node %u %127s", &node, g->member[g->n]) != 2
            || node != g->n + 1)
            return false;
        g->n++;
    }
    return is_sound(g);
}

/* read_members -- ret 0; ENOENT without words; XAC_EDAMAGED; errno. */
static int
read_members(int dirfd, const char *dir, struct raftd_group *g)
{
    int fd =
        xac_sys.openat(dirfd, XAC_MEMBERS_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    char text[TEXT_BYTES];
    size_t got = 0;
    int rc;

    if (fd < 0 && errno == ENOENT)
        return ENOENT;
    if (fd < 0)
        return xac_err(errno, "%s/%s: open", dir, XAC_MEMBERS_NAME);
    rc = xac_read_full(fd, text, sizeof text - 1, 0, &got);
    (void)xac_sys.close(fd);
    if (rc != 0)
        return xac_err(rc, "%s/%s: read", dir, XAC_MEMBERS_NAME);
    text[got] = '\0';
    return parse(text, g) ? 0
                          : xac_err(XAC_EDAMAGED, "%s/%s: not as xraftd writes it", dir,
                                    XAC_MEMBERS_NAME);
}

int
raftd_group_read(int dirfd, const char *dir, struct raftd_group *out)
{
    struct xac_group_note note;
    int rc;

    *out = (struct raftd_group){.n = 0}; /* what the file does not have is 0 */
    rc = read_members(dirfd, dir, out);

    if (rc == 0)
        rc = xac_group_note_read(dirfd, &note);
    if (rc == ENOENT)
        return xac_err_whole(ENOENT, "%s: no member of a group; xraftd create makes one",
                             dir);
    if (rc != 0)
        return rc;
    memcpy(out->id, note.group, sizeof out->id);
    out->node = note.node;
    return note.node >= 1 && note.node <= out->n
               ? 0
               : xac_err(XAC_EDAMAGED, "%s: node %" PRIu32 " is not in %s", dir,
                         note.node, XAC_MEMBERS_NAME);
}

/* ---- Making ------------------------------------------------------------------------- */

int
raftd_group_create(int dirfd, const char *dir, struct raftd_group *g,
                   int (*raft)(int dirfd, const char *dir, const struct raftd_group *g))
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
    memcpy(g->id, note.group, sizeof g->id);
    g->node = note.node;
    g->begin = (struct raftd_accepted){.generation = place.generation,
                                       .start = place.end_lsn,
                                       .end = place.end_lsn,
                                       .cut = place.end_lsn,
                                       .segment_bytes = place.segment_bytes};
    rc = raft(dirfd, dir, g);
    return rc == 0 ? write_members(dirfd, dir, g) : rc;
}

/* may_be_copy -- has the member never run (3)? */
static int
may_be_copy(int dirfd, const char *dir)
{
    if (faccessat(dirfd, XAC_RAFTD_DIR "/" XAC_RAFTD_LOCK, F_OK, AT_SYMLINK_NOFOLLOW)
        == 0)
        return xac_err_whole(
            EBUSY,
            "%s: the member has run; only a copy of one that has not can "
            "become another node",
            dir);
    return errno == ENOENT || errno == ENOTDIR ? 0 : xac_err(errno, "%s", dir);
}

int
raftd_group_join(int dirfd, const char *dir, uint32_t node)
{
    struct xac_group_note note;
    struct raftd_group g;
    int rc = raftd_group_read(dirfd, dir, &g);

    if (rc != 0)
        return rc;
    if (node == 0 || node > g.n)
        return xac_err(EINVAL, "%s: the group has the nodes 1 to %u", dir, g.n);
    rc = may_be_copy(dirfd, dir);
    if (rc != 0 || node == g.node)
        return rc;
    note.node = node;
    memcpy(note.group, g.id, sizeof note.group);
    if (xac_sys.unlinkat(dirfd, XAC_GROUP_NAME, 0) != 0)
        return xac_err(errno, "%s/%s: remove", dir, XAC_GROUP_NAME);
    return xac_member_create(dir, &note, NULL);
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
