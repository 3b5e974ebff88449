/* SPDX-License-Identifier: MIT */
/*
 * lineage.c -- see lineage.h.
 */
#include <config.h>

#include "log/lineage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "log/log_name.h"

#define NEW_NAME   XAC_LINEAGE_NAME "-new"
#define FIRST_LINE "xac-history 1\n"
#define LAST_LINE  "end\n"

/* Two generations, three numbers, a branch, blanks and a newline. */
#define LINE_BYTES (2 * 10 + 3 * 20 + 2 * XAC_BRANCH_BYTES + 6)
#define FILE_BYTES \
 (sizeof FIRST_LINE + sizeof LAST_LINE + (XAC_LINEAGE_LINES + 1) * (size_t)LINE_BYTES)

/* ---- Reading ---------------------------------------------------------------------- */

/* parse_branch -- 32 hexadecimal digits. */
static bool
parse_branch(const char *text, uint8_t branch[XAC_BRANCH_BYTES])
{
    static const char digits[] = "0123456789abcdef";

    xac_assert(text != NULL);
    for (size_t i = 0; i < XAC_BRANCH_BYTES; i++) {
        const char *high = memchr(digits, text[2 * i], 16);
        const char *low = high == NULL ? NULL : memchr(digits, text[2 * i + 1], 16);

        if (low == NULL)
            return false;
        branch[i] = (uint8_t)((high - digits) << 4 | (low - digits));
    }
    return true;
}

bool
xac_lineage_is_sound(const struct xac_lineage_line *l)
{
    xac_assert(l != NULL);
    return xac_log_generation_ok(l->generation) && l->previous < l->generation
           && l->start_lsn >= XAC_LSN_FIRST && l->start_lsn <= XAC_LSN_LIMIT
           && l->start_lsn % XAC_LSN_GENERATION_ALIGN == 0 && l->end_lsn <= l->start_lsn
           && l->end_lsn % XAC_BLOCK_ALIGN == 0 && l->segment_bytes >= XAC_SEGMENT_HEADER
           && (l->segment_bytes & (l->segment_bytes - 1)) == 0;
}

/* parse_line -- one that ends with a NUL. */
static bool
parse_line(const char *text, struct xac_lineage_line *l)
{
    char branch[2 * XAC_BRANCH_BYTES + 2] = "";

    xac_assert(text != NULL);
    return sscanf(text,
                  "%" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu64 " %33s",
                  &l->generation, &l->start_lsn, &l->segment_bytes, &l->previous,
                  &l->end_lsn, branch)
               == 6
           && strlen(branch) == (size_t)2 * XAC_BRANCH_BYTES
           && parse_branch(branch, l->branch) && xac_lineage_is_sound(l);
}

/* parse -- the whole file, which ends with a NUL; false: it is none. */
static bool
parse(char *text, uint32_t newest, struct xac_lineage *out)
{
    char *line = text + strlen(FIRST_LINE);
    uint32_t last = 0;

    xac_assert(out->n == 0);
    if (strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) != 0)
        return false;
    while (strcmp(line, LAST_LINE) != 0) {
        struct xac_lineage_line l;
        char *end = strchr(line, '\n');

        if (end == NULL || out->n == XAC_LINEAGE_LINES)
            return false;
        *end = '\0';
        if (!parse_line(line, &l) || l.generation <= last)
            return false;
        last = l.generation;
        if (l.generation <= newest) /* (1) */
            out->line[out->n++] = l;
        line = end + 1;
    }
    return true;
}

int
xac_lineage_read(int dirfd, uint32_t newest, struct xac_lineage *out)
{
    size_t got = 0;
    char *text;
    int rc;
    int fd =
        xac_sys.openat(dirfd, XAC_LINEAGE_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    xac_assert(dirfd >= 0);
    out->n = 0;
    if (fd < 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s: open", XAC_LINEAGE_NAME);
    text = (char *)malloc(FILE_BYTES + 1);
    rc = text == NULL ? ENOMEM : xac_read_full(fd, text, FILE_BYTES, 0, &got);
    (void)xac_sys.close(fd);
    if (rc == 0) {
        text[got] = '\0';
        if (strlen(text) != got || !parse(text, newest, out))
            out->n = 0;
    }
    free(text);
    return rc == 0 ? 0 : xac_err(rc, "%s: read", XAC_LINEAGE_NAME);
}

/* ---- Writing ---------------------------------------------------------------------- */

/* put_line -- ret bytes. */
static size_t
put_line(char *to, size_t room, const struct xac_lineage_line *l)
{
    size_t n =
        (size_t)snprintf(to, room,
                         "%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " ",
                         l->generation, l->start_lsn, l->segment_bytes, l->previous,
                         l->end_lsn);

    xac_assert(xac_lineage_is_sound(l));
    for (size_t i = 0; i < XAC_BRANCH_BYTES; i++)
        n += (size_t)snprintf(to + n, room - n, "%02x", l->branch[i]);
    n += (size_t)snprintf(to + n, room - n, "\n");
    return n;
}

/* write_lines -- replace the file. */
static int
write_lines(int dirfd, const struct xac_lineage *l)
{
    struct xac_newfile file = {.dirfd = dirfd,
                               .made = NEW_NAME,
                               .name = XAC_LINEAGE_NAME,
                               .is_synced = true};
    char *text = (char *)malloc(FILE_BYTES);
    size_t n;
    int rc;

    xac_assert(l->n > 0);
    if (text == NULL)
        return ENOMEM;
    n = (size_t)snprintf(text, FILE_BYTES, "%s", FIRST_LINE);
    for (size_t i = 0; i < l->n; i++)
        n += put_line(text + n, FILE_BYTES - n, &l->line[i]);
    n += (size_t)snprintf(text + n, FILE_BYTES - n, "%s", LAST_LINE);
    xac_assert(n < FILE_BYTES);
    rc = xac_newfile_replace(&file, text, n, NULL);
    free(text);
    return rc;
}

/* append -- the line, behind those that count; the oldest makes room. */
static void
append(struct xac_lineage *l, const struct xac_lineage_line *line)
{
    xac_assert(l->n == 0 || l->line[l->n - 1].generation < line->generation); /* (3) */
    if (l->n == XAC_LINEAGE_LINES)
        memmove(&l->line[0], &l->line[1], --l->n * sizeof l->line[0]);
    l->line[l->n++] = *line;
}

/* Whose branch a new line has. */
enum branch {
    BRANCH_KEPT, /* of the line before; a new one if there is none                    */
    BRANCH_DRAWN,
    BRANCH_GIVEN
};

/* choose -- the branch of a line that will stand behind those of l. */
static int
choose(const struct xac_lineage *l, enum branch whose, uint8_t branch[XAC_BRANCH_BYTES])
{
    xac_assert(l->n <= XAC_LINEAGE_LINES);
    if (whose == BRANCH_GIVEN)
        return 0;
    if (whose == BRANCH_KEPT && l->n > 0)
        memcpy(branch, l->line[l->n - 1].branch, XAC_BRANCH_BYTES);
    else if (getentropy(branch, XAC_BRANCH_BYTES) != 0)
        return errno != 0 ? errno : EIO;
    return 0;
}

/* put -- the line, in the file; ret 0 or errno, words noted if it is not writing that has failed. */
static int
put(int dirfd, struct xac_lineage_line line, enum branch whose)
{
    struct xac_lineage *l = (struct xac_lineage *)malloc(sizeof *l);
    int rc;

    xac_assert(line.previous < line.generation);
    if (l == NULL)
        return xac_err(ENOMEM, "%s", XAC_LINEAGE_NAME);
    rc = xac_lineage_read(dirfd, line.previous, l);
    if (rc == 0)
        rc = choose(l, whose, line.branch);
    if (rc == 0) {
        append(l, &line);
        rc = write_lines(dirfd, l);
    }
    free(l);
    return rc;
}

int
xac_lineage_add(int dirfd, const struct xac_lineage_line *line, bool new_branch)
{
    int rc = put(dirfd, *line, new_branch ? BRANCH_DRAWN : BRANCH_KEPT);

    xac_assert(line->generation != 0);
    if (rc == ENOSPC || rc == EDQUOT) {
        xac_err_clear(); /* an environment on a full disk can be opened */
        return 0;
    }
    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_LINEAGE_NAME);
}

int
xac_lineage_copy(int dirfd, const struct xac_lineage_line *line)
{
    int rc = put(dirfd, *line, BRANCH_GIVEN);

    xac_assert(xac_lineage_is_sound(line));
    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_LINEAGE_NAME);
}

/* ---- Looking ---------------------------------------------------------------------- */

const struct xac_lineage_line *
xac_lineage_of(const struct xac_lineage *l, uint32_t generation)
{
    xac_assert(l->n <= XAC_LINEAGE_LINES);
    for (size_t i = 0; i < l->n; i++) {
        if (l->line[i].generation == generation)
            return &l->line[i];
    }
    return NULL;
}

const struct xac_lineage_line *
xac_lineage_behind(const struct xac_lineage *l, uint32_t generation)
{
    xac_assert(l->n <= XAC_LINEAGE_LINES);
    for (size_t i = 0; i < l->n; i++) {
        if (l->line[i].previous == generation)
            return &l->line[i];
    }
    return NULL;
}

bool
xac_lineage_fits(const struct xac_lineage *l, const struct xac_lineage_line *last,
                 uint64_t end_lsn, uint64_t *fork_lsn)
{
    const struct xac_lineage_line *ours = xac_lineage_of(l, last->generation);
    const struct xac_lineage_line *next = xac_lineage_behind(l, last->generation);

    xac_assert(fork_lsn != NULL);
    *fork_lsn = 0;
    if (ours == NULL)
        return false;
    if (memcmp(ours->branch, last->branch, sizeof ours->branch) != 0
        || ours->start_lsn != last->start_lsn) {
        *fork_lsn = ours->end_lsn < last->end_lsn ? ours->end_lsn : last->end_lsn;
        return false;
    }
    if (next == NULL || end_lsn <= next->end_lsn)
        return true;
    *fork_lsn = next->end_lsn;
    return false;
}

/* is_complete -- does it tell of all generations, from the first one on, which has no line? */
static bool
is_complete(const struct xac_lineage *l, uint32_t last)
{
    xac_assert(last != 0);
    return l->n > 0 ? l->line[0].previous <= 1 : last == 1;
}

/* last_common -- the last generation that both have; 0: none. */
static uint32_t
last_common(const struct xac_lineage *l, const struct xac_lineage *theirs, uint32_t last)
{
    for (size_t i = l->n; i-- > 0;) {
        const struct xac_lineage_line *a = &l->line[i];
        const struct xac_lineage_line *b = xac_lineage_of(theirs, a->generation);

        xac_assert(last != 0);
        if (b != NULL && a->start_lsn == b->start_lsn
            && memcmp(a->branch, b->branch, sizeof a->branch) == 0)
            return a->generation;
    }
    return l->n > 0 && is_complete(l, last) && is_complete(theirs, last) ? 1 : 0;
}

bool
xac_lineage_fork(const struct xac_lineage *l, const struct xac_lineage *theirs,
                 uint32_t last, uint64_t end_lsn, struct xac_lineage_line *behind,
                 uint64_t *theirs_end)
{
    uint32_t common = last_common(l, theirs, last);
    const struct xac_lineage_line *next = xac_lineage_behind(l, common);
    const struct xac_lineage_line *other = xac_lineage_behind(theirs, common);

    xac_assert(xac_log_generation_ok(last));
    if (common == 0 || (other == NULL && common != last))
        return false;
    *behind = next != NULL ? *next : (struct xac_lineage_line){.generation = 0};
    *theirs_end = other != NULL ? other->end_lsn : end_lsn;
    return true;
}
