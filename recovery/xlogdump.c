/* SPDX-License-Identifier: MIT */
/*
 * xlogdump.c -- the tool xlogdump(1): what the log says, block by block.
 *
 * Reads segments, writes nothing, takes no lock: an environment in use may be dumped.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"
#include "log/block.h"
#include "log/log.h"
#include "log/logdir.h"
#include "log/recover_scan.h"
#include "tool.h"

const char *const tool_name = "xlogdump";

#define ANY UINT64_MAX

struct arguments {
    bool json;
    bool stale;    /* show blocks that a later generation has outdated                */
    bool blocks;   /* no records                                                      */
    uint64_t from; /* LSNs                                                            */
    uint64_t to;
    uint64_t txn; /* ANY                                                              */
    uint64_t commit;
    uint64_t at_ns; /* 0: any                                                         */
    uint64_t page;
    const char *file; /* of page; id, or end of its path                              */
    const char *dir;
    const char *log_dir; /* where the log lies, NULL: as noted                        */
};

/* A file that the log has named. */
struct file {
    uint32_t generation, id;
    char *path;
};

/* The log in segments of one size: of another before the option was changed. */
struct source {
    struct xac_scan scan;
    struct xac_block head; /* the next one; length 0: none                            */
    struct source *next;
};

struct dump {
    const struct arguments *a;
    int logfd;            /* of the directory of the log                              */
    struct source *first; /* the present size, then others                            */
    uint64_t at_lsn;      /* the block of --at; 0 none */
    bool is_seeking,
        is_found;        /* that block is looked for; a later commit has been found */
    uint32_t generation; /* newest so far                                             */
    char redo[XAC_LOG_NAME_MAX]; /* the segment that the master record names ...       */
    bool is_lost;                /* ... and there is none from there on                */
    struct file *file;
    size_t n_files;
    uint64_t n_blocks, n_bytes; /* shown                                              */
};

enum {
    OPT_FROM = 256,
    OPT_TO,
    OPT_STALE,
    OPT_BLOCKS,
    OPT_LOG_DIR,
    OPT_AT
};

static const struct option long_options[] = {
    {"at", required_argument, NULL, OPT_AT},
    {"blocks", no_argument, NULL, OPT_BLOCKS},
    {"commit", required_argument, NULL, 'c'},
    {"from", required_argument, NULL, OPT_FROM},
    {"help", no_argument, NULL, 'h'},
    {"json", no_argument, NULL, 'j'},
    {"log-dir", required_argument, NULL, OPT_LOG_DIR},
    {"page", required_argument, NULL, 'p'},
    {"stale", no_argument, NULL, OPT_STALE},
    {"to", required_argument, NULL, OPT_TO},
    {"txn", required_argument, NULL, 't'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void
usage(FILE *to)
{
    fputs(
        "usage: xlogdump [options] DIR\n"
        "Show the log of the libxac environment in directory DIR.\n"
        "\n"
        "      --from LSN       only blocks that begin at LSN or behind\n"
        "      --to LSN         only blocks that begin before LSN\n"
        "  -t, --txn N          only the transaction of that number (XBEGIN)\n"
        "  -c, --commit N       only the commit of that number\n"
        "      --at TIME        only the commit of the state that was present at a time\n"
        "  -p, --page FILE:N    only transactions that changed page N of FILE, an id or\n"
        "                       the end of a path\n"
        "      --blocks         blocks without their records\n"
        "      --stale          also what a later generation of the log has outdated\n"
        "      --log-dir PATH   the log has been moved there\n"
        "  -j, --json           one JSON object for each block\n"
        "  -h, --help           this text\n"
        "  -V, --version        version of libxac\n"
        "\n"
        "exit: 0 shown         3 damaged master record, or the log is missing\n"
        "      1 error         5 no environment\n"
        "      2 wrong usage\n",
        to);
}

/* page_read -- FILE:N. */
static bool
page_read(struct arguments *a, char *text)
{
    char *colon = strrchr(text, ':');

    if (colon == NULL || colon == text || !tool_number(colon + 1, &a->page))
        return false;
    *colon = '\0';
    a->file = text;
    return true;
}

/* option_read -- ret -1 to go on, or the exit code. */
static int
option_read(struct arguments *a, int c)
{
    bool ok = true;

    switch (c) {
    case 'c':
        ok = tool_number(optarg, &a->commit);
        break;
    case 'h':
        usage(stdout);
        return EXIT_DONE;
    case 'j':
        a->json = true;
        break;
    case 'p':
        ok = page_read(a, optarg);
        break;
    case 't':
        ok = tool_number(optarg, &a->txn);
        break;
    case 'V':
        return tool_version();
    case OPT_FROM:
        ok = tool_number(optarg, &a->from);
        break;
    case OPT_TO:
        ok = tool_number(optarg, &a->to);
        break;
    case OPT_STALE:
        a->stale = true;
        break;
    case OPT_BLOCKS:
        a->blocks = true;
        break;
    case OPT_AT:
        ok = tool_time(optarg, &a->at_ns) && a->at_ns != 0;
        break;
    case OPT_LOG_DIR:
        a->log_dir = optarg;
        break;
    default:
        ok = false;
        break;
    }
    if (ok)
        return -1;
    usage(stderr);
    return EXIT_USAGE;
}

static int
arguments_read(struct arguments *a, int argc, char **argv)
{
    int c, rc;

    while ((c = getopt_long(argc, argv, "c:hjp:t:V", long_options, NULL)) != -1) {
        rc = option_read(a, c);
        if (rc >= 0)
            return rc;
    }
    if (optind + 1 != argc || argv[optind][0] == '\0') {
        usage(stderr);
        return EXIT_USAGE;
    }
    a->dir = argv[optind];
    return -1;
}

/* ---- Files ------------------------------------------------------------------------ */

/* file_note -- remember an XFILE record. */
static int
file_note(struct dump *d, uint32_t generation, const struct xac_xfile *rec)
{
    struct file *grown;

    for (size_t i = 0; i < d->n_files; i++) {
        if (d->file[i].generation == generation && d->file[i].id == rec->file)
            return 0;
    }
    grown = (struct file *)realloc(d->file, (d->n_files + 1) * sizeof grown[0]);
    if (grown == NULL)
        return xac_err(ENOMEM, "table of files");
    d->file = grown;
    grown[d->n_files] =
        (struct file){generation, rec->file, strndup(xac_xfile_path(rec), rec->path_len)};
    return grown[d->n_files++].path != NULL ? 0 : xac_err(ENOMEM, "table of files");
}

/* file_path -- "" if the log shown has not named it. */
static const char *
file_path(const struct dump *d, uint32_t generation, uint32_t id)
{
    for (size_t i = 0; i < d->n_files; i++) {
        if (d->file[i].generation == generation && d->file[i].id == id)
            return d->file[i].path;
    }
    return "";
}

/* ---- Which blocks ----------------------------------------------------------------- */

static bool
is_wanted_file(const struct dump *d, const struct xac_block *blk, uint32_t id)
{
    const char *path = file_path(d, blk->generation, id);
    size_t n = strlen(d->a->file);
    size_t m = strlen(path);
    uint64_t number;

    if (tool_number(d->a->file, &number))
        return number == id;
    return m >= n && strcmp(path + m - n, d->a->file) == 0;
}

/* is_wanted_record -- does the record make its block one that is to be shown? */
static bool
is_wanted_record(const struct dump *d, const struct xac_block *blk,
                 const struct xac_record *rec)
{
    const struct arguments *a = d->a;

    if (a->txn != ANY)
        return rec->type == XAC_XBEGIN
               && ((const struct xac_xtxn *)(const void *)rec)->txn == a->txn;
    if (a->page != ANY) {
        const struct xac_xdata *data = (const struct xac_xdata *)(const void *)rec;

        return (rec->type == XAC_XDATA || rec->type == XAC_XCOPY) && data->page == a->page
               && is_wanted_file(d, blk, data->file);
    }
    return true;
}

static bool
is_wanted(const struct dump *d, const struct xac_block *blk)
{
    const struct xac_record *rec = NULL;

    if (blk->lsn < d->a->from || (blk->generation < d->generation && !d->a->stale))
        return false;
    if (d->a->commit != ANY && blk->commit != d->a->commit)
        return false;
    if (d->a->at_ns != 0 && blk->lsn != d->at_lsn)
        return false;
    while ((rec = xac_record_next(blk, rec)) != NULL) {
        if (is_wanted_record(d, blk, rec))
            return true;
    }
    return false;
}

/* ---- A record --------------------------------------------------------------------- */

static const char *const type_names[] = {
    [XAC_XBEGIN] = "XBEGIN",
    [XAC_XDATA] = "XDATA",
    [XAC_XCOMMIT] = "XCOMMIT",
    [XAC_XABORT] = "XABORT",
    [XAC_XCHECKPT_BEGIN] = "XCHECKPT_BEGIN",
    [XAC_XCHECKPT_END] = "XCHECKPT_END",
    [XAC_XFILE] = "XFILE",
    [XAC_XDATAFILE] = "XDATAFILE",
    [XAC_XCOPY] = "XCOPY",
    [XAC_XFORGET] = "XFORGET",
};

static const char *
type_name(unsigned type)
{
    if (type >= sizeof type_names / sizeof type_names[0] || type_names[type] == NULL)
        return "unknown";
    return type_names[type];
}

/* text_data -- what XDATA and XCOPY records say. */
static void
text_data(const struct dump *d, const struct xac_block *blk, const struct xac_record *rec)
{
    const struct xac_xdata *data = (const struct xac_xdata *)(const void *)rec;
    const struct xac_xcopy *copy = (const struct xac_xcopy *)(const void *)rec;

    if (rec->type == XAC_XDATA)
        printf(" file %" PRIu32 " page %" PRIu64 " %s, %" PRIu32 " range%s, %" PRIu32
               " bytes  %s",
               data->file, data->page,
               (rec->flags & XAC_XDATA_FULL) != 0   ? "full image"
               : (rec->flags & XAC_XDATA_BASE) != 0 ? "difference to the file"
                                                    : "difference",
               data->n_ranges, plural(data->n_ranges), rec->length,
               file_path(d, blk->generation, data->file));
    else
        printf(" file %" PRIu32 " page %" PRIu64 " %s, %" PRIu32
               " piece%s of file %" PRIu32 " page %" PRIu64 "  %s",
               copy->file, copy->page,
               (rec->flags & XAC_XDATA_FULL) != 0 ? "full image" : "difference",
               copy->n_copies, plural(copy->n_copies), copy->source_file,
               copy->source_page, file_path(d, blk->generation, copy->file));
}

static void
text_record(const struct dump *d, const struct xac_block *blk,
            const struct xac_record *rec)
{
    const struct xac_xfile *file = (const struct xac_xfile *)(const void *)rec;
    const struct xac_xdatafile *large = (const struct xac_xdatafile *)(const void *)rec;
    const struct xac_xforget *forget = (const struct xac_xforget *)(const void *)rec;
    const struct xac_xcheckpt_end *end =
        (const struct xac_xcheckpt_end *)(const void *)rec;
    char words[XAC_LOG_NAME_MAX > 40 ? XAC_LOG_NAME_MAX : 40];

    printf("    %-14s", type_name(rec->type));
    switch (rec->type) {
    case XAC_XCHECKPT_BEGIN:
        printf(" data files before it: below serial %" PRIx64,
               ((const struct xac_xcheckpt_begin *)(const void *)rec)->data_serial);
        break;
    case XAC_XBEGIN:
    case XAC_XABORT:
        printf(" transaction %" PRIu64,
               ((const struct xac_xtxn *)(const void *)rec)->txn);
        break;
    case XAC_XCOMMIT:
        printf(" %s",
               tool_time_words(((const struct xac_xcommit *)(const void *)rec)->time_ns,
                               words));
        break;
    case XAC_XDATA:
    case XAC_XCOPY:
        text_data(d, blk, rec);
        break;
    case XAC_XFILE:
        printf(" file %" PRIu32 " of %" PRIu64 " bytes, device %" PRIu64 " inode %" PRIu64
               "  %.*s",
               file->file, file->length, file->device, file->inode, (int)file->path_len,
               xac_xfile_path(file));
        break;
    case XAC_XDATAFILE:
        xac_log_datafile_name(words, blk->generation, large->serial);
        printf(" %s, %" PRIu64 " record%s, %" PRIu64 " bytes", words, large->n_records,
               plural(large->n_records), large->length);
        break;
    case XAC_XCHECKPT_END:
        printf(" begun at %" PRIu64 ", recovery reads from %" PRIu64, end->begin_lsn,
               end->redo_lsn);
        if (xac_checkpt_files(end) != 0)
            printf(", files from %" PRIu64, xac_checkpt_files(end));
        break;
    case XAC_XFORGET:
        printf(" file %" PRIu32 "  %s", forget->file,
               file_path(d, blk->generation, forget->file));
        break;
    default:
        break;
    }
    putchar('\n');
}

/* json_data -- members that XDATA and XCOPY records have. */
static void
json_data(const struct dump *d, struct json *j, const struct xac_block *blk,
          const struct xac_xdata *data)
{
    json_number(j, "file", data->file);
    json_string(j, "path", file_path(d, blk->generation, data->file));
    json_number(j, "page", data->page);
    json_bool(j, "full_image", (data->r.flags & XAC_XDATA_FULL) != 0);
    json_number(j, "ranges", data->n_ranges); /* or copies */
    if (data->r.type == XAC_XCOPY) {
        const struct xac_xcopy *copy = (const struct xac_xcopy *)(const void *)data;

        json_number(j, "source_file", copy->source_file);
        json_number(j, "source_page", copy->source_page);
    }
}

static void
json_record(const struct dump *d, struct json *j, const struct xac_block *blk,
            const struct xac_record *rec)
{
    const struct xac_xfile *file = (const struct xac_xfile *)(const void *)rec;
    const struct xac_xdatafile *large = (const struct xac_xdatafile *)(const void *)rec;
    const struct xac_xcheckpt_end *end =
        (const struct xac_xcheckpt_end *)(const void *)rec;
    char words[XAC_LOG_NAME_MAX];
    char *path;

    json_object(j, NULL);
    json_string(j, "type", type_name(rec->type));
    json_number(j, "length_bytes", rec->length);
    switch (rec->type) {
    case XAC_XCHECKPT_BEGIN:
        json_number(j, "data_serial",
                    ((const struct xac_xcheckpt_begin *)(const void *)rec)->data_serial);
        break;
    case XAC_XBEGIN:
    case XAC_XABORT:
        json_number(j, "transaction", ((const struct xac_xtxn *)(const void *)rec)->txn);
        break;
    case XAC_XCOMMIT:
        json_number(j, "time_ns",
                    ((const struct xac_xcommit *)(const void *)rec)->time_ns);
        break;
    case XAC_XDATA:
    case XAC_XCOPY:
        json_data(d, j, blk, (const struct xac_xdata *)(const void *)rec);
        break;
    case XAC_XFILE:
        path = strndup(xac_xfile_path(file), file->path_len);
        json_number(j, "file", file->file);
        json_string(j, "path", path != NULL ? path : "");
        json_number(j, "file_length_bytes", file->length);
        json_number(j, "inode", file->inode);
        json_number(j, "birth_ns", xac_xfile_birth(file));
        free(path);
        break;
    case XAC_XDATAFILE:
        xac_log_datafile_name(words, blk->generation, large->serial);
        json_string(j, "data_file", words);
        json_number(j, "data_file_bytes", large->length);
        json_number(j, "records", large->n_records);
        break;
    case XAC_XCHECKPT_END:
        json_number(j, "begin_lsn_bytes", end->begin_lsn);
        json_number(j, "redo_lsn_bytes", end->redo_lsn);
        break;
    case XAC_XFORGET:
        json_number(j, "file", ((const struct xac_xforget *)(const void *)rec)->file);
        break;
    default:
        break;
    }
    json_end(j);
}

/* ---- A block ---------------------------------------------------------------------- */

static void
show_text(const struct dump *d, const struct xac_block *blk, const struct xac_place *at)
{
    const struct xac_record *rec = NULL;

    printf("%" PRIu64 "  %s offset %" PRIu64 ", %" PRIu32 " bytes, generation %" PRIu32
           ", synced to %" PRIu64,
           blk->lsn, at->file, at->offset, blk->length, blk->generation, blk->durable);
    if (blk->commit != 0)
        printf(", commit %" PRIu64, blk->commit);
    puts(blk->generation < d->generation ? ", stale" : "");
    while (!d->a->blocks && (rec = xac_record_next(blk, rec)) != NULL)
        text_record(d, blk, rec);
}

static void
show_json(const struct dump *d, const struct xac_block *blk, const struct xac_place *at)
{
    static const char *const sums[] = {"xxh3", "md5", "sha1"};
    const struct xac_record *rec = NULL;
    struct json j = {.depth = 0};

    json_object(&j, NULL);
    json_number(&j, "lsn_bytes", blk->lsn);
    json_string(&j, "segment", at->file);
    json_number(&j, "offset_bytes", at->offset);
    json_number(&j, "length_bytes", blk->length);
    json_number(&j, "generation", blk->generation);
    json_bool(&j, "stale", blk->generation < d->generation);
    json_number(&j, "durable_lsn_bytes", blk->durable);
    json_number(&j, "commit", blk->commit);
    json_string(&j, "checksum", blk->checksum_kind < 3 ? sums[blk->checksum_kind] : "");
    if (!d->a->blocks) {
        json_array(&j, "records");
        while ((rec = xac_record_next(blk, rec)) != NULL)
            json_record(d, &j, blk, rec);
        json_end(&j);
    }
    json_end(&j);
}

/* show_hole -- bytes that hold no block of the log that goes on behind them. */
static void
show_hole(const struct dump *d, uint64_t lsn, uint64_t end, const char *why)
{
    struct json j = {.depth = 0};

    if (!d->a->json) {
        printf("%" PRIu64 "  no block up to %" PRIu64 ": %s\n", lsn, end, why);
        return;
    }
    json_object(&j, NULL);
    json_number(&j, "lsn_bytes", lsn);
    json_number(&j, "hole_end_lsn_bytes", end);
    json_string(&j, "why", why);
    json_end(&j);
}

/* seek -- is the block a commit that --at may be about? */
static void
seek(struct dump *d, const struct xac_block *blk)
{
    const struct xac_xcommit *commit = xac_block_commit(blk);

    if (commit != NULL && commit->time_ns > d->a->at_ns)
        d->is_found = true;
    else if (commit != NULL)
        d->at_lsn = blk->lsn;
}

/* one_block -- the header of the source's next one is right; is its block, and is it to be shown? */
static int
one_block(struct dump *d, struct source *s, uint64_t *nextp)
{
    const struct xac_block *head = &s->head;
    const struct xac_record *rec = NULL;
    const struct xac_block *blk;
    struct xac_place at;
    int rc;

    s->scan.id.generation = head->generation;
    rc = xac_scan_block(&s->scan, head->lsn, &blk, &at);
    *nextp = head->lsn + (blk != NULL ? blk->length : XAC_BLOCK_ALIGN);
    if (rc != 0)
        return rc;
    if (blk == NULL) {
        if (!d->is_seeking && (head->generation >= d->generation || d->a->stale))
            show_hole(d, head->lsn, *nextp, at.why);
        return 0;
    }
    if (blk->generation > d->generation)
        d->generation = blk->generation;
    while (rc == 0 && (rec = xac_record_next(blk, rec)) != NULL) {
        if (rec->type == XAC_XFILE)
            rc = file_note(d, blk->generation,
                           (const struct xac_xfile *)(const void *)rec);
    }
    if (rc == 0 && d->is_seeking)
        seek(d, blk);
    if (rc != 0 || d->is_seeking || !is_wanted(d, blk))
        return rc;
    d->n_blocks++;
    d->n_bytes += blk->length;
    (d->a->json ? show_json : show_text)(d, blk, &at);
    return 0;
}

/* earliest -- the source whose next block comes first in the log; NULL: there is none. */
static struct source *
earliest(const struct dump *d)
{
    struct source *found = NULL;

    for (struct source *s = d->first; s != NULL; s = s->next)
        if (s->head.length != 0 && (found == NULL || s->head.lsn < found->head.lsn))
            found = s;
    return found;
}

/* dump_log -- from the first segment on.  Blocks before --from are read for the names of
   files. */
static int
dump_log(struct dump *d)
{
    struct source *s;
    int rc = 0;

    for (s = d->first; s != NULL && rc == 0; s = s->next)
        rc = xac_scan_next(&s->scan, 0, &s->head);
    while (rc == 0 && !(d->is_seeking && d->is_found) && (s = earliest(d)) != NULL
           && s->head.lsn < d->a->to) {
        uint64_t next;

        rc = one_block(d, s, &next);
        if (rc == 0)
            rc = xac_scan_next(&s->scan, next, &s->head);
    }
    return rc;
}

/* seek_at -- the last commit before the first one that is later than --at. */
static int
seek_at(struct dump *d)
{
    int rc;

    if (d->a->at_ns == 0)
        return 0;
    d->is_seeking = true;
    rc = dump_log(d);
    d->is_seeking = false;
    d->generation = 0;
    return rc;
}

/* ---- Sources ---------------------------------------------------------------------- */

/* source_open -- segments of the size that master names; the newest source is at *atp. */
static int
source_open(struct dump *d, const struct xac_master_slot *master, struct source **atp)
{
    *atp = (struct source *)calloc(1, sizeof **atp);
    return *atp != NULL ? xac_scan_open(&(*atp)->scan, d->logfd, master)
                        : xac_err(ENOMEM, "buffer for the log");
}

/* open_log -- wherever it lies, and of whatever sizes its segments are. */
static int
open_log(struct dump *d, int dirfd, struct xac_master_slot *master)
{
    char *path = NULL;
    uint64_t redo_lsn;
    int rc = xac_logdir_open(dirfd, d->a->log_dir, master->identity, &d->logfd, &path);

    free(path);
    xac_log_segment_name(d->redo,
                         xac_log_segment_of(master->redo_lsn, master->segment_bytes));
    redo_lsn = master->redo_lsn;
    master->redo_lsn = 0; /* all segments there are */
    if (rc == 0)
        rc = source_open(d, master, &d->first);
    d->is_lost = rc == 0 && (master->flags & XAC_MASTER_LOGGED) != 0
                 && xac_scan_limit(&d->first->scan) <= redo_lsn;
    for (size_t i = 0; rc == 0; i++) {
        struct source *other;

        rc = xac_scan_other(&d->first->scan, &i);
        if (rc != 0 || i == d->first->scan.n_segments)
            break;
        master->segment_bytes = d->first->scan.segment[i].other_bytes;
        rc = source_open(d, master, &other);
        if (other != NULL) {
            other->next = d->first->next;
            d->first->next = other;
        }
    }
    return rc;
}

static void
close_log(struct dump *d)
{
    while (d->first != NULL) {
        struct source *s = d->first;

        d->first = s->next;
        xac_scan_close(&s->scan);
        free(s);
    }
    if (d->logfd >= 0)
        (void)xac_sys.close(d->logfd);
}

int
main(int argc, char **argv)
{
    struct arguments a = {.to = ANY, .txn = ANY, .commit = ANY, .page = ANY};
    struct dump d = {.a = &a, .logfd = -1};
    struct xac_master_slot master;
    int rc = arguments_read(&a, argc, argv);
    int dirfd;

    if (rc >= 0)
        return rc;
    rc = tool_open_dir(a.dir, &dirfd, &master);
    if (rc == 0) {
        rc = open_log(&d, dirfd, &master);
        if (rc == 0)
            rc = seek_at(&d);
        if (rc == 0)
            rc = dump_log(&d);
        if (rc == 0 && d.is_lost)
            rc = xac_scan_lost(d.redo);
        (void)xac_sys.close(dirfd);
    }
    close_log(&d);
    if (rc == 0 && !a.json)
        printf("%" PRIu64 " block%s of %" PRIu64 " bytes\n", d.n_blocks,
               plural(d.n_blocks), d.n_bytes);
    for (size_t i = 0; i < d.n_files; i++)
        free(d.file[i].path);
    free(d.file);
    return tool_flush(rc == 0 ? EXIT_DONE : tool_fail(a.dir, rc));
}
