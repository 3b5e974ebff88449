/* SPDX-License-Identifier: MIT */
/*
 * group_note.c -- see group_note.h.
 */
#include <config.h>

#include "log/group_note.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"

#define FIRST_LINE   "xac-group 1\n"
#define REMOVED_LINE "removed\n"

/* The whole text is shorter than that. */
#define TEXT_BYTES 128

/* hex_put -- bytes as two digits each, with the NUL. */
static void
hex_put(char *to, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)snprintf(to + 2 * i, 3, "%02x", bytes[i]);
    xac_assert(strlen(to) == 2 * n);
}

/* hex_get -- ret false: those are no such digits. */
static bool
hex_get(const char *from, uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    xac_assert(bytes != NULL);
    for (size_t i = 0; i < n; i++) {
        const char *hi = from[2 * i] != '\0' ? strchr(digits, from[2 * i]) : NULL;
        const char *lo = hi != NULL && from[2 * i + 1] != '\0'
                             ? strchr(digits, from[2 * i + 1])
                             : NULL;

        if (lo == NULL)
            return false;
        bytes[i] = (uint8_t)((hi - digits) << 4 | (lo - digits));
    }
    return true;
}

/* format -- the text of a note; ret its length. */
static size_t
format(char text[TEXT_BYTES], const struct xac_group_note *note)
{
    char id[2 * XAC_GROUP_ID_BYTES + 1];
    int n;

    hex_put(id, note->group, sizeof note->group);
    n = snprintf(text, TEXT_BYTES, FIRST_LINE "group %s\nnode %" PRIu32 "\n%send\n", id,
                 note->node, note->is_removed ? REMOVED_LINE : "");
    xac_assert(n > 0 && n < TEXT_BYTES);
    return (size_t)n;
}

/* is_of_other_version -- is the first line that of a note, with another number? */
static bool
is_of_other_version(const char *text)
{
    size_t name = sizeof "xac-group " - 1, digits;

    xac_assert(text != NULL);
    if (strncmp(text, FIRST_LINE, name) != 0)
        return false;
    digits = strspn(text + name, "0123456789");
    return digits > 0 && text[name + digits] == '\n';
}

/* parse -- a note is right if and only if it is, byte by byte, the text of what it says. */
static int
parse(const char *text, struct xac_group_note *out)
{
    const char *id = strstr(text, "\ngroup "), *node = strstr(text, "\nnode ");
    struct xac_group_note note = {.node = 0};
    char again[TEXT_BYTES];

    xac_assert(out != NULL);
    if (strncmp(text, FIRST_LINE, sizeof FIRST_LINE - 1) != 0)
        return xac_err(is_of_other_version(text) ? XAC_EVERSION : XAC_EDAMAGED,
                       "%s: first line", XAC_GROUP_NAME);
    if (id != NULL && node != NULL && hex_get(id + 7, note.group, sizeof note.group)
        && sscanf(node, "\nnode %" SCNu32, &note.node) == 1 && note.node != 0
        && note.node <= XAC_GROUP_NODE_MAX) {
        note.is_removed = strstr(node, "\n" REMOVED_LINE) != NULL;
        (void)format(again, &note);
        if (strcmp(again, text) == 0) {
            *out = note;
            return 0;
        }
    }
    return xac_err(XAC_EDAMAGED, "%s: it does not name a group and a node",
                   XAC_GROUP_NAME);
}

int
xac_group_note_read(int dirfd, struct xac_group_note *out)
{
    char text[TEXT_BYTES + 1];
    size_t got = 0;
    int rc, fd;

    xac_assert(dirfd >= 0);
    fd = xac_sys.openat(dirfd, XAC_GROUP_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return errno == ENOENT ? ENOENT : xac_err(errno, "%s: open", XAC_GROUP_NAME);
    rc = xac_read_full(fd, text, TEXT_BYTES, 0, &got);
    (void)xac_sys.close(fd);
    if (rc != 0)
        return xac_err(rc, "%s: read", XAC_GROUP_NAME);
    text[got] = '\0';
    return parse(text, out);
}

/* replace -- the file. */
static int
replace(int dirfd, const struct xac_group_note *note)
{
    struct xac_newfile file = {.dirfd = dirfd,
                               .made = XAC_GROUP_NAME "-new",
                               .name = XAC_GROUP_NAME,
                               .is_synced = true};
    char text[TEXT_BYTES];
    size_t n = format(text, note);
    int rc = xac_newfile_replace(&file, text, n, NULL);

    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_GROUP_NAME);
}

/* removed -- ret XAC_ENOTLEADER with words. */
static int
removed(const struct xac_group_note *note)
{
    xac_assert(note->is_removed);
    return xac_err(XAC_ENOTLEADER,
                   "%s: node %" PRIu32
                   " has been removed from its group: what is here is "
                   "old, and stays so",
                   XAC_GROUP_NAME, note->node);
}

int
xac_group_note_write(int dirfd, const struct xac_group_note *note)
{
    struct xac_group_note had;
    int rc = xac_group_note_read(dirfd, &had);

    xac_assert(note->node != 0 && note->node <= XAC_GROUP_NODE_MAX);
    if (rc == 0 && memcmp(had.group, note->group, sizeof had.group) != 0)
        return xac_err(EEXIST, "%s: it is a member of another group", XAC_GROUP_NAME);
    if (rc == 0 && had.node != note->node)
        return xac_err(EEXIST, "%s: it is node %" PRIu32 " of the group", XAC_GROUP_NAME,
                       had.node);
    if (rc == 0 && had.is_removed)
        return xac_err(EEXIST, "%s: node %" PRIu32 " has been removed from the group",
                       XAC_GROUP_NAME, had.node); /* (3) */
    if (rc != ENOENT && rc != 0)
        return rc;
    /* Written again if it was there: its writer may have died before its name was durable. */
    return replace(dirfd, note);
}

int
xac_group_note_remove(int dirfd)
{
    struct xac_group_note note;
    int rc = xac_group_note_read(dirfd, &note);

    xac_assert(dirfd >= 0);
    if (rc == ENOENT)
        return xac_err(ENOENT, "%s", XAC_GROUP_NAME);
    note.is_removed = true;
    return rc == 0 ? replace(dirfd, &note) : rc;
}

int
xac_group_note_refuse(int dirfd)
{
    struct xac_group_note note;

    xac_assert(dirfd >= 0);
    if (faccessat(dirfd, XAC_GROUP_NAME, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s", XAC_GROUP_NAME);
    if (xac_group_note_read(dirfd, &note) == 0 && note.is_removed)
        return removed(&note);
    return xac_err(XAC_ENOTLEADER,
                   "%s: a member of a group, in which this node does not lead, or its "
                   "daemon does not run",
                   XAC_GROUP_NAME);
}

int
xac_group_note_refuse_tail(int dirfd)
{
    struct xac_group_note note;

    xac_assert(dirfd >= 0);
    if (faccessat(dirfd, XAC_GROUP_NAME, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s", XAC_GROUP_NAME);
    if (xac_group_note_read(dirfd, &note) == 0 && note.is_removed)
        return removed(&note); /* (3) */
    if (faccessat(dirfd, XAC_FOLLOW_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    return xac_err(
        XAC_ENOTLEADER,
        "%s: a member of a group, whose log may end with what no majority has: "
        "only those who take part can read it, or its daemon must run",
        XAC_GROUP_NAME);
}
