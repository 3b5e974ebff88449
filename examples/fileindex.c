/* SPDX-License-Identifier: MIT */
/*
 * fileindex.c -- a durable index of a directory tree.
 *
 * WHAT      The command line: build and update, query, stat, check.  The index is a
 *           B+-tree (trees/btree.h) in the file INDEXDIR/index.db, a segment of the
 *           environment INDEXDIR; keys are paths (fileindex_paths.h), values what lstat(2)
 *           says.  Any number of processes may read and update it at once, and may be
 *           killed: what was committed stays.
 * NOT HERE  Reading the disk (fileindex_walk.c), comparing and writing in parallel
 *           (fileindex_update.c), what the output looks like (fileindex_print.c).
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <xac.h>

#include "fileindex_print.h"
#include "fileindex_update.h"

#define EXIT_NOTHING 1 /* nothing found, or some paths could not be read              */
#define EXIT_USAGE   2
#define EXIT_ERROR   3

#define FILE_NAME   "index.db"
#define BLOCK_SIZE  4096u
#define SIZE_MIN    ((uint64_t)16 << 20)
#define SIZE_STEP   ((uint64_t)1 << 20)
#define ENTRY_SPACE 800u /* bytes of segment for an entry: four times what it takes    */

static const char usage_text[] =
    "usage: fileindex build  DIR INDEXDIR [--procs N] [--one-file-system] [--size BYTES]\n"
    "       fileindex update DIR INDEXDIR [--procs N] [--one-file-system]\n"
    "       fileindex query  INDEXDIR PREFIX [--count | --paths | --null | --json]\n"
    "                        [--limit N]\n"
    "       fileindex stat   INDEXDIR [--json]\n"
    "       fileindex check  INDEXDIR\n"
    "\n"
    "A durable index of the directory tree DIR: path, size, times, mode of each file.\n"
    "\n"
    "build    make INDEXDIR and index DIR in it\n"
    "update   add what is new, change what changed, remove what vanished; also takes up\n"
    "         an interrupted build, or adds another DIR to the same index\n"
    "query    print the paths that begin with PREFIX, an absolute path, in bytewise order\n"
    "stat     print what the index holds and the room it takes\n"
    "check    verify the index\n"
    "\n"
    "  -p, --procs N            processes that build or update (default 1, at most 64)\n"
    "  -x, --one-file-system    do not go into other file systems\n"
    "  -s, --size BYTES         size of the index file, with K, M or G; it is sparse\n"
    "                           (default: room for four times as many paths)\n"
    "  -c, --count              print the number of paths only\n"
    "  -P, --paths              print the paths only\n"
    "  -0, --null               the same, each ended by a zero byte\n"
    "  -j, --json               print an object for each path, one to a line; bytes that\n"
    "                           are not UTF-8 become \\udcXX\n"
    "  -n, --limit N            stop after N paths\n"
    "  -q, --quiet              no progress, no summary\n"
    "  -h, --help               print this\n"
    "\n"
    "Exit status: 0; 1 nothing found, or some paths could not be read (the index keeps\n"
    "what it knew about them); 2 wrong usage; 3 failed.\n";

struct options {
    unsigned n_procs;
    bool one_fs;
    bool quiet;
    bool count;
    enum fi_style style;
    uint64_t size;
    uint64_t limit;
};

/* An open index. */
struct index {
    struct fi_segment segment;
    struct btree tree;
};

/* Print an error: what was done to what, and why it failed.  ret EXIT_ERROR. */
static int
fail(const char *what, const char *path, int rc)
{
    const char *more = xLastError();

    fprintf(stderr, "fileindex: %s %s: %s", what, path, xStrerror(rc));
    if (rc < 0 && more[0] != '\0')
        fprintf(stderr, " (%s)", more);
    fputc('\n', stderr);
    return EXIT_ERROR;
}

/* ---- Opening ----------------------------------------------------------------------- */

/* Name of the index file.  ret false if it is too long. */
static bool
file_name(const char *dir, char name[PATH_MAX])
{
    return snprintf(name, PATH_MAX, "%s/%s", dir, FILE_NAME) < PATH_MAX;
}

/* Make the tree, or open the one that is there. */
static int
tree_open(struct index *x, bool create)
{
    const struct btree_config config = {.key_size = FI_KEY_SIZE,
                                        .value_size = sizeof(struct fi_record),
                                        .block_size = BLOCK_SIZE};
    int rc = EEXIST;

    if (create)
        rc = btree_create(&x->tree, x->segment.base, x->segment.size, &config);
    if (rc == EEXIST)
        rc = btree_open(&x->tree, x->segment.base, x->segment.size);
    if (rc == 0
        && (x->tree.key_size != config.key_size
            || x->tree.value_size != config.value_size))
        rc = EUCLEAN;
    x->tree.hints = true;
    return rc;
}

/*
 * Open the environment and the index in it.
 *
 * in   size  bytes of the index if its file is new or empty; 0: there must be an index
 * ret  0 or an exit status, the reason printed
 */
static int
index_open(struct index *x, const char *dir, uint64_t size)
{
    char name[PATH_MAX];
    struct stat st;
    int rc;

    if (!file_name(dir, name))
        return fail("open", dir, ENAMETOOLONG);
    if (stat(name, &st) == 0)
        x->segment.size = (uint64_t)st.st_size;
    else if (size == 0)
        return fail("no index:", name, errno);
    if (x->segment.size == 0)
        x->segment.size = size;
    rc = xInit(dir, DURABLE);
    if (rc != 0)
        return fail("open", dir, rc);
    x->segment.base = xMmap(name, x->segment.size);
    if (x->segment.base == MAP_FAILED) {
        rc = fail("map", name, errno);
    } else {
        rc = tree_open(x, size != 0);
        if (rc != 0)
            rc = fail("not an index:", name, rc);
    }
    if (rc != 0)
        (void)xShutdown();
    return rc;
}

/* ret `status`, or EXIT_ERROR. */
static int
index_close(const char *dir, int status)
{
    int rc = xShutdown();

    return rc != 0 ? fail("close", dir, rc) : status;
}

/* ---- build and update -------------------------------------------------------------- */

/* Bytes for an index of these paths with room to grow. */
static uint64_t
size_for(const struct fi_list *found)
{
    uint64_t keys = 0, size;

    for (size_t i = 0; i < found->n; i++)
        keys += fi_keys_of(strlen(found->paths[i]));
    size = keys * ENTRY_SPACE;
    if (size < SIZE_MIN)
        size = SIZE_MIN;
    return (size + SIZE_STEP - 1) / SIZE_STEP * SIZE_STEP;
}

static void
print_counts(const char *dir, const struct fi_counts *c, unsigned n_procs, double seconds)
{
    uint64_t paths = c->added + c->changed + c->same + c->failed;

    printf(
        "%s: %llu paths in %.1f s, %u process%s: %llu added, %llu changed, %llu removed, "
        "%llu unchanged",
        dir, (unsigned long long)paths, seconds, n_procs, n_procs == 1 ? "" : "es",
        (unsigned long long)c->added, (unsigned long long)c->changed,
        (unsigned long long)c->removed, (unsigned long long)c->same);
    if (c->failed > 0)
        printf(", %llu not readable", (unsigned long long)c->failed);
    putchar('\n');
}

static double
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Bring an open index up to date with what was found. */
static int
update_open(const struct index *x, const char *dir, const struct fi_tree *tree,
            const struct options *o, double start)
{
    bool progress = !o->quiet && isatty(STDERR_FILENO);
    struct fi_counts counts;
    int rc = fi_update(&x->segment, dir, tree, o->n_procs, progress, &counts);

    if (rc == ENOSPC) {
        fprintf(stderr,
                "fileindex: the index or its disk is full; build one anew, if the "
                "disk has room, perhaps with --size\n");
        return EXIT_ERROR;
    }
    if (rc != 0)
        return fail("index", dir, rc);
    if (!o->quiet)
        print_counts(dir, &counts, o->n_procs, now() - start);
    return counts.failed > 0 || tree->unreadable.n > 0 ? EXIT_NOTHING : EXIT_SUCCESS;
}

/* List `dir` and bring the index, which may be new, up to date with it. */
static int
update(const char *dir, const char *index_dir, const struct options *o)
{
    struct index x = {0};
    struct fi_tree tree;
    double start = now();
    int rc = fi_tree_list(dir, o->one_fs, &tree);

    if (rc != 0) {
        fi_tree_free(&tree);
        return fail("list", dir, rc);
    }
    rc = index_open(&x, index_dir, o->size != 0 ? o->size : size_for(&tree.found));
    if (rc == 0)
        rc = index_close(index_dir, update_open(&x, dir, &tree, o, start));
    fi_tree_free(&tree);
    return rc;
}

/* build wants no index to be there, update wants one. */
static int
command_either(char *const *args, const struct options *o, bool create)
{
    char *dir = realpath(args[0], NULL);
    char name[PATH_MAX];
    bool exists = file_name(args[1], name) && access(name, F_OK) == 0;
    int rc;

    if (dir == NULL)
        return fail("list", args[0], errno);
    if (exists == create) {
        fprintf(stderr,
                exists ? "fileindex: %s exists: update it, or remove %s\n"
                       : "fileindex: no index: %s; build it in %s\n",
                name, args[1]);
        rc = EXIT_ERROR;
    } else {
        rc = update(dir, args[1], o);
    }
    free(dir);
    return rc;
}

static int
command_build(char *const *args, const struct options *o)
{
    return command_either(args, o, true);
}

static int
command_update(char *const *args, const struct options *o)
{
    return command_either(args, o, false);
}

/* ---- query, stat, check ------------------------------------------------------------- */

struct query {
    const struct options *o;
    const char *prefix;
    size_t prefix_length;
    uint64_t n; /* paths found                                                        */
};

static int
query_visit(void *arg, const char *path, const struct fi_record *record)
{
    struct query *q = arg;

    if (q->n == q->o->limit || strncmp(path, q->prefix, q->prefix_length) != 0)
        return ECANCELED; /* all that begin so stand together */
    q->n++;
    if (!q->o->count)
        fi_print(q->o->style, path, record);
    return 0;
}

static int
command_query(char *const *args, const struct options *o)
{
    struct query q = {.o = o, .prefix = args[1], .prefix_length = strlen(args[1])};
    struct index x = {0};
    int rc = index_open(&x, args[0], 0);

    if (rc != 0)
        return rc;
    rc = fi_walk(&x.tree, q.prefix, query_visit, &q);
    if (rc != 0 && rc != ECANCELED)
        return index_close(args[0], fail("query", args[0], rc));
    if (o->count)
        printf("%llu\n", (unsigned long long)q.n);
    return index_close(args[0], q.n > 0 ? EXIT_SUCCESS : EXIT_NOTHING);
}

/* Sums over all records. */
struct sums {
    uint64_t files, directories, symlinks, others;
    uint64_t bytes; /* of regular files                                               */
};

static int
sums_visit(void *arg, const char *path, const struct fi_record *record)
{
    struct sums *s = arg;

    (void)path;
    if (S_ISREG(record->mode)) {
        s->files++;
        s->bytes += record->size;
    } else if (S_ISDIR(record->mode)) {
        s->directories++;
    } else if (S_ISLNK(record->mode)) {
        s->symlinks++;
    } else {
        s->others++;
    }
    return 0;
}

static void
print_stat(const struct sums *s, const struct fi_keys *k, const struct btree_report *r,
           bool json)
{
    const struct {
        const char *text, *name;
        uint64_t value;
    } lines[] = {
        {"paths", "paths", k->paths},
        {"regular files", "files", s->files},
        {"directories", "directories", s->directories},
        {"symbolic links", "symlinks", s->symlinks},
        {"others", "others", s->others},
        {"bytes in regular files", "file_bytes", s->bytes},
        {"longest path, bytes", "longest_path_bytes", k->longest},
        {"entries of the tree", "entries", r->entries},
        {"levels of the tree", "levels", r->height + 1u},
        {"blocks in use", "blocks", r->leaves + r->inners},
        {"blocks free", "free_blocks", r->free + r->unused},
        {"bytes of a block", "block_bytes", r->block_size},
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (json)
            printf("%c\"%s\":%llu", i == 0 ? '{' : ',', lines[i].name,
                   (unsigned long long)lines[i].value);
        else
            printf("%-24s %llu\n", lines[i].text, (unsigned long long)lines[i].value);
    }
    if (json)
        printf("}\n");
}

/* Verify the tree, the groups of long paths, and that nothing else is in it. */
static int
verify(struct index *x, struct fi_keys *keys, struct btree_report *report)
{
    uint64_t known;
    int rc = xbeginQuery(); /* one snapshot for all of it */

    if (rc != 0)
        return rc;
    rc = btree_check(&x->tree, report);
    if (rc == 0)
        rc = fi_count_keys(&x->tree, keys);
    known = keys->paths + keys->links + (keys->links > 0);
    if (rc == 0 && report->entries != known && report->entries != known + 1) {
        (void)snprintf(report->text, sizeof report->text,
                       "%llu entries, but only %llu that a path leads to",
                       (unsigned long long)report->entries, (unsigned long long)known);
        rc = EUCLEAN;
    }
    return xendQuery() != 0 ? EIO : rc;
}

static int
command_check(char *const *args, const struct options *o)
{
    struct btree_report report = {0};
    struct fi_keys keys = {0};
    struct index x = {0};
    int rc = index_open(&x, args[0], 0);

    if (rc != 0)
        return rc;
    rc = verify(&x, &keys, &report);
    if (rc == EUCLEAN)
        fprintf(stderr, "fileindex: %s: damaged: %s\n", args[0], report.text);
    else if (rc != 0)
        (void)fail("check", args[0], rc);
    else if (!o->quiet)
        printf("%s: sound, %llu paths\n", args[0], (unsigned long long)keys.paths);
    return index_close(args[0], rc != 0 ? EXIT_ERROR : EXIT_SUCCESS);
}

static int
command_stat(char *const *args, const struct options *o)
{
    struct btree_report report = {0};
    struct fi_keys keys = {0};
    struct sums sums = {0};
    struct index x = {0};
    int rc = index_open(&x, args[0], 0);

    if (rc != 0)
        return rc;
    rc = verify(&x, &keys, &report);
    if (rc == 0)
        rc = fi_walk(&x.tree, "", sums_visit, &sums);
    if (rc != 0)
        return index_close(args[0], fail("read", args[0], rc));
    print_stat(&sums, &keys, &report, o->style == FI_JSON);
    return index_close(args[0], EXIT_SUCCESS);
}

/* ---- Command line ------------------------------------------------------------------ */

static const struct command {
    const char *name;
    int n_args;
    int (*run)(char *const *args, const struct options *o);
} commands[] = {
    {"build", 2, command_build}, {"update", 2, command_update},
    {"query", 2, command_query}, {"stat", 1, command_stat},
    {"check", 1, command_check},
};

static int
usage(const char *what, const char *which)
{
    fprintf(stderr, "fileindex: %s%s%s\nTry fileindex --help.\n", what,
            which != NULL ? " " : "", which != NULL ? which : "");
    return EXIT_USAGE;
}

/* A number with K, M or G behind it if `units`.  ret false if it is none, or 0. */
static bool
number(const char *text, bool units, uint64_t most, uint64_t *out)
{
    static const char letters[] = "KMG";
    const char *unit;
    unsigned shift = 0;
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno != 0 || text[0] < '0' || text[0] > '9')
        return false;
    if (units && *end != '\0' && (unit = strchr(letters, *end)) != NULL) {
        shift = 10 * (unsigned)(unit - letters + 1);
        end++;
    }
    if (*end != '\0' || *out == 0 || *out > most >> shift)
        return false;
    *out <<= shift;
    return true;
}

/* Take an option.  ret 0 or an exit status. */
static int
option(struct options *o, int letter)
{
    uint64_t n;

    switch (letter) {
    case 'p':
        if (!number(optarg, false, FI_PROCS_MAX, &n))
            return usage("not a number of processes:", optarg);
        o->n_procs = (unsigned)n;
        return 0;
    case 's':
        if (!number(optarg, true, (uint64_t)1 << 43, &o->size))
            return usage("not a size:", optarg);
        o->size = (o->size + BLOCK_SIZE - 1) / BLOCK_SIZE * BLOCK_SIZE;
        return 0;
    case 'n':
        return number(optarg, false, UINT64_MAX, &o->limit)
                   ? 0
                   : usage("not a number of paths:", optarg);
    case 'x':
        o->one_fs = true;
        return 0;
    case 'q':
        o->quiet = true;
        return 0;
    case 'c':
        o->count = true;
        return 0;
    case 'P':
        o->style = FI_PATHS;
        return 0;
    case '0':
        o->style = FI_NUL;
        return 0;
    case 'j':
        o->style = FI_JSON;
        return 0;
    default:
        return usage("wrong option", NULL);
    }
}

int
main(int argc, char **argv)
{
    static const struct option names[] = {
        {"procs", required_argument, NULL, 'p'},
        {"size", required_argument, NULL, 's'},
        {"limit", required_argument, NULL, 'n'},
        {"one-file-system", no_argument, NULL, 'x'},
        {"quiet", no_argument, NULL, 'q'},
        {"count", no_argument, NULL, 'c'},
        {"paths", no_argument, NULL, 'P'},
        {"null", no_argument, NULL, '0'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {.n_procs = 1, .limit = UINT64_MAX};
    int letter;

    while ((letter = getopt_long(argc, argv, "p:s:n:xqcP0jh", names, NULL)) != -1) {
        int rc;

        if (letter == 'h') {
            fputs(usage_text, stdout);
            return EXIT_SUCCESS;
        }
        rc = option(&o, letter);
        if (rc != 0)
            return rc;
    }
    if (optind == argc)
        return usage("no command", NULL);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        int rc;

        if (strcmp(argv[optind], commands[i].name) != 0)
            continue;
        if (argc - optind - 1 != commands[i].n_args)
            return usage("wrong number of arguments for", commands[i].name);
        rc = commands[i].run(argv + optind + 1, &o);
        if (fflush(stdout) != 0 || ferror(stdout))
            return fail("write to", "stdout", errno);
        return rc;
    }
    return usage("no such command:", argv[optind]);
}
