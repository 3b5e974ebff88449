/* SPDX-License-Identifier: MIT */
/*
 * options.c -- the table of options: see options.h.
 */
#include <config.h>

/* The table has the deprecated options, too. */
#define XAC_NO_DEPRECATED

#include "env/options.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/err.h"
#include "base/newfile.h"
#include "log/log_keep.h"
#include "shared/env_state.h"
#include "store/outofcore.h"

#define KIB  ((uint64_t)1 << 10)
#define MIB  ((uint64_t)1 << 20)
#define GIB  ((uint64_t)1 << 30)
#define HOUR (3600 * (uint64_t)1000) /* milliseconds */

/* clang-format off */
/* The variable of an option: none; one that counts if the program sets nothing; one that
   counts more than what the program sets. */
#define NO_VARIABLE            .variable = NULL
#define FILLS_IN(name)         .variable = name
#define OVERRULES(name, list)  .variable = name, .overrules = true, .words = list

/* A row: number, field; values, unit, least, most, also; default; when, whose; variable.  The
   last column says in one sentence what the option is for. */
#define ROW(opt, field, kind, of, lo, hi, or_else, dflt, at, who, from, sentence) \
    [XAC_OPT_##opt] = { \
        .name = "XAC_OPT_" #opt, .unit = of, from, .values = XAC_VALUES_##kind, \
        .least = lo, .most = hi, .also = or_else, .otherwise = dflt, \
        .when = XAC_SET_##at, .whose = XAC_OF_##who, \
        .offset = offsetof(struct xac_env_options, field), \
        .bytes = sizeof((struct xac_env_options *)NULL)->field}

/* Not "trusted": that is a promise, which only the program itself can make. */
static const struct xac_option_word checking_words[] = {
    {"strict", XAC_CHECKING_STRICT},
    {"fast", XAC_CHECKING_FAST},
    {NULL, 0}};

/* The user's words, and the names that tests and measurements need. */
static const struct xac_option_word engine_words[] = {
    {"best", XAC_ENGINE_BEST},
    {"portable", XAC_ENGINE_PORTABLE},
    {"uffd", XAC_ENGINE_UFFD},
    {"sigsegv", XAC_ENGINE_SIGSEGV},
    {"scan", XAC_ENGINE_SCAN},
    {NULL, 0}};

static const struct xac_option_row table[XAC_OPTION_END] = {
    ROW(CHECKSUM, checksum, ENUM, "enum xac_checksum", 0, XAC_CHECKSUM_SHA1, 0,
        XAC_CHECKSUM_XXH3, ANY, ALL, NO_VARIABLE,
        "The checksum of log blocks."),
    ROW(CHECKPOINT_BYTES, checkpoint_bytes, RANGE, "bytes", 0, UINT64_MAX, 0,
        256 * MIB, ANY, ALL, NO_VARIABLE,
        "So many bytes of log or versions bring a checkpoint; 0: none comes by itself."),
    ROW(LOG_SEGMENT_BYTES, segment_bytes, POWER, "bytes", 64 * KIB, GIB, 64 * KIB,
        16 * MIB, BEFORE, FIRST, NO_VARIABLE,
        "The size of a segment of the log; the log buffer is a quarter of it."),
    ROW(LOG_BUFFER_BYTES, ring_bytes, POWER, "bytes", 64 * KIB, GIB, 0,
        0, BEFORE, FIRST, NO_VARIABLE,
        "Deprecated: the log buffer is a quarter of a segment."),
    ROW(STAY_MAPPED, checking, FLAG, "flag", 0, 1, 0,
        0, OUTSIDE, PROCESS, NO_VARIABLE,
        "Deprecated: sets XAC_OPT_CHECKING."),
    ROW(POLICY, policy, ENUM, "enum xac_policy_kind", 0, XAC_POLICY_SERIAL, 0,
        XAC_POLICY_SERIAL, BEFORE, FIRST, NO_VARIABLE,
        "What happens when two transactions want the same page."),
    ROW(SYNC_DELAY_MS, sync_delay_ms, RANGE, "milliseconds", 0, HOUR, 0,
        0, ANY, PROCESS, NO_VARIABLE,
        "So long may a commit stay unsynced; 0: xend() returns when it is on disk."),
    ROW(LOG_RECYCLE, log_recycle, FLAG, "flag", 0, 1, 0,
        XAC_RECYCLE_UNSAID, ANY, ALL, NO_VARIABLE,
        "Log that is no longer needed is used again, or kept for backups."),
    ROW(PAGE_CHECKSUMS, page_checksums, FLAG, "flag", 0, 1, 0,
        0, ANY, ALL, NO_VARIABLE,
        "Checkpoints keep a checksum of each page that they copy to its file."),
    ROW(FULL_IMAGES, full_images, FLAG, "flag", 0, 1, 1,
        1, BEFORE, FIRST, NO_VARIABLE,
        "The first change of a page after a checkpoint is logged as an image of the page."),
    ROW(DECLARED, announces, ENUM, "enum xac_declared", 0, XAC_DECLARED_CHECKED, 0,
        XAC_DECLARED_NONE, BEFORE, PROCESS, NO_VARIABLE,
        "Deprecated: sets XAC_OPT_CHECKING."),
    ROW(FRAMES, frames, RANGE, "pages", XAC_OUTOFCORE_LEAST, UINT32_MAX / 4, 0,
        0, BEFORE, FIRST, FILLS_IN("XAC_FRAMES"),
        "So many pages of memory hold the mapped files; 0: there is no bound."),
    ROW(READ_AHEAD_BYTES, read_ahead, RANGE, "bytes", 0, GIB, XAC_READ_AHEAD_SYSTEM,
        XAC_READ_AHEAD_SYSTEM, BEFORE, PROCESS, FILLS_IN("XAC_READ_AHEAD"),
        "So much is read ahead of pages that are touched in order."),
    ROW(MODE, mode, MODE, "permissions", 0600, 0666, 0,
        0, BEFORE, FIRST, NO_VARIABLE,
        "The permissions of the files of the environment; 0: as the environment has them."),
    ROW(WAIT_MS, wait_ms, RANGE, "milliseconds", 0, HOUR, 0,
        0, ANY, PROCESS, NO_VARIABLE,
        "So long may the begin or end of a transaction wait for others; 0: for ever, and not for threads."),
    ROW(CHECKING, checking, ENUM, "enum xac_checking", 0, XAC_CHECKING_TRUSTED, 0,
        XAC_CHECKING_FAST, OUTSIDE, PROCESS, OVERRULES("XAC_CHECKING", checking_words),
        "How closely accesses are watched: every one, or only as far as is cheap."),
    ROW(ENGINE, engine, ENUM, "XAC_ENGINE_BEST or XAC_ENGINE_PORTABLE", 0, XAC_ENGINE_BEST,
        XAC_ENGINE_PORTABLE,
        XAC_ENGINE_BEST, BEFORE, PROCESS, OVERRULES("XAC_ENGINE", engine_words),
        "How accesses are noticed: by what works best here, or by what works everywhere."),
    ROW(HISTORY, history, RANGE, "seconds", 0, UINT64_MAX, 0,
        0, BEFORE, FIRST, NO_VARIABLE,
        "States of that window stay, for queries of the past; 0: none."),
    ROW(TEAM, team, FLAG, "flag", 0, 1, 0,
        0, BEFORE, PROCESS, NO_VARIABLE,
        "All threads of the process may touch the segments in a transaction of one of them."),
    ROW(READER_LIMIT, reader_limit, RANGE, "bytes", 1 * MIB, UINT64_MAX, 0,
        0, ANY, ALL, NO_VARIABLE,
        "Queries that hold back more bytes of versions are cut off; 0: none is."),
    ROW(LOG_KEEP_BYTES, log_keep_bytes, RANGE, "bytes", 64 * KIB, UINT64_MAX, 0,
        0, ANY, ALL, NO_VARIABLE,
        "So much log is held back for a follower; 0: an eighth of the disk of the log."),
    ROW(GROUP_WAIT_MS, group_wait_ms, RANGE, "milliseconds", 100, HOUR, 100,
        5000, ANY, PROCESS, NO_VARIABLE,
        "A group's leader that hears of no majority for so long leads no more."),
};
/* clang-format on */

static_assert(XAC_OUTOFCORE_LEAST == 256, "as doc/options.md says");

const struct xac_option_row *
xac_option_find(int number)
{
    return number > 0 && number < XAC_OPTION_END && table[number].name != NULL
               ? &table[number]
               : NULL;
}

/* is_valid -- may the option have that value? */
static bool
is_valid(const struct xac_option_row *r, uint64_t v)
{
    if (v == r->also)
        return true;
    if (r->values == XAC_VALUES_MODE)
        return xac_owner_mode_ok(v);
    return v >= r->least && v <= r->most
           && (r->values != XAC_VALUES_POWER || (v & (v - 1)) == 0);
}

int
xac_option_check(const char *what, int number, uint64_t value)
{
    const struct xac_option_row *r = xac_option_find(number);

    if (r == NULL)
        return xac_err(EINVAL, "%s: unknown option %d", what, number);
    if (!is_valid(r, value))
        return xac_err(EINVAL, "%s: option %d (%s), value %llu", what, number, r->name,
                       (unsigned long long)value);
    return 0;
}

bool
xac_option_is_overruled(const struct xac_option_row *row)
{
    const char *text = row->overrules ? secure_getenv(row->variable) : NULL;

    return text != NULL && *text != '\0';
}

/* checking_of -- relaxed: see env_state.h. */
static uint32_t
checking_of(const struct xac_env_options *o)
{
    return atomic_load_explicit(&o->checking, memory_order_relaxed);
}

int
xac_option_of_today(const struct xac_env_options *o, int number, uint64_t *valuep)
{
    if (number != XAC_OPT_STAY_MAPPED)
        return number;
    if (*valuep == 0)
        *valuep = XAC_CHECKING_STRICT;
    else if (checking_of(o) == XAC_CHECKING_STRICT)
        *valuep = XAC_CHECKING_FAST;
    else
        *valuep = checking_of(o);
    return XAC_OPT_CHECKING;
}

void
xac_option_store(struct xac_env_options *o, int number, uint64_t value)
{
    const struct xac_option_row *r = xac_option_find(number);
    void *field;

    xac_assert(r != NULL);
    field = (char *)o + r->offset;
    (void)xac_option_of_today(o, number, &value);
    if (number == XAC_OPT_DECLARED && value == XAC_DECLARED_TRUSTED)
        xac_option_store(o, XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED);
    if (r->bytes == sizeof(uint64_t))
        *(uint64_t *)field = value;
    else /* relaxed: some may change while other threads have transactions */
        atomic_store_explicit((_Atomic uint32_t *)field, (uint32_t)value,
                              memory_order_relaxed);
}

void
xac_options_default(struct xac_env_options *o)
{
    memset(o, 0, sizeof *o);
    for (int i = 0; i < XAC_OPTION_END; i++) {
        if (table[i].name != NULL)
            xac_option_store(o, i, table[i].otherwise);
    }
}

/* number_of -- what a variable says; ret 0 or EINVAL. */
static int
number_of(const struct xac_option_row *r, const char *text, uint64_t *valuep)
{
    const struct xac_option_word *w = r->words;
    uint64_t v;
    char *end;

    while (w != NULL && w->word != NULL && strcmp(w->word, text) != 0)
        w++;
    if (w != NULL && w->word != NULL) {
        *valuep = w->value;
        return 0;
    }
    errno = 0;
    v = strtoull(text, &end, 10);
    if (w != NULL || errno != 0 || *end != '\0' || v == UINT64_MAX || !is_valid(r, v))
        return xac_err(EINVAL, "%s=%s: not a value of %s (%s)", r->variable, text,
                       r->name, r->unit);
    *valuep = v;
    return 0;
}

int
xac_options_outside(const bool is_set[XAC_OPTION_END], struct xac_env_options *o)
{
    uint64_t value[XAC_OPTION_END];
    bool has[XAC_OPTION_END] = {false};
    int rc = 0;

    for (int i = 0; i < XAC_OPTION_END && rc == 0; i++) {
        const char *text =
            table[i].variable != NULL ? secure_getenv(table[i].variable) : NULL;

        has[i] = text != NULL && *text != '\0' && (table[i].overrules || !is_set[i]);
        if (has[i])
            rc = number_of(&table[i], text, &value[i]);
    }
    /* What the program has promised is kept in mind, whatever the variable says. */
    if (checking_of(o) == XAC_CHECKING_TRUSTED)
        o->announces = 1;
    for (int i = 0; i < XAC_OPTION_END && rc == 0; i++) {
        if (has[i])
            xac_option_store(o, i, value[i]);
    }
    return rc;
}
