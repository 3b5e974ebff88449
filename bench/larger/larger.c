/* SPDX-License-Identifier: MIT */
/*
 * larger.c -- the experiment `larger`: search trees on plain mmap, and Berkeley DB, with data
 * three times as large as the memory (Thesis tables 5.1 and 5.2).
 *
 * STATIC    A tree is loaded in bulk, without a limit, its pages are forgotten by the page
 *           cache, and random keys are looked up under the limit.
 * DYNAMIC   Random keys are inserted, all are scanned, random ones are looked up.  As in the
 *           Thesis, all trees have so many keys that the array of the cache-oblivious one has
 *           just grown, and there is one of these with a key less, just before that.
 *
 * Each tree is built and measured by a process of its own in a control group with limited
 * memory, to which the pages of its file are charged.
 */
#include <config.h>

#include "bench/larger/larger.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kit/memory.h"
#include "bench/kit/micro.h"
#include "bench/kit/options.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"
#include "bench/systems/tree_kind.h"

#define KEY_BYTES   BENCH_LARGER_KEY
#define TIMES_LIMIT 3u /* the keys alone are so many times the limit */

/* Berkeley DB's cache: what it takes by itself, and what the Thesis gave it, half the memory. */
#define POOL_DEFAULT (UINT64_C(256) << 10)
#define POOL_SHARE   2u

struct options {
    struct bench_common common;
    struct bench_numbers blocks; /* of the B+-tree                                    */
    struct bench_words trees;    /* none: all                                         */
    uint64_t limit_bytes;
    uint64_t searches;
    uint64_t seed;
    bool only_static;
};

/* One tree of one test. */
struct subject {
    const char *tree;  /* "btree", "cobtree", "bdb"                                     */
    const char *pool;  /* of Berkeley DB: "default", "half"; else ""                    */
    const char *point; /* "before" a cobtree's array grows, "behind" that; else ""     */
    bool is_static;
    struct bench_larger_set set; /* not open                                           */
};

#define PAGE_BYTES 4096u /* of Berkeley DB's, and in which reads are counted            */
#define INBLOCK_BYTES \
 512u /* of what getrusage(2) counts                                 */

/* What its process found; sent through a pipe. */
struct outcome {
    int rc;
    double build_seconds;
    double scan_seconds;
    double search_seconds;
    double
        search_pages; /* pages of 4096 bytes that the searches had read from disk     */
    uint64_t size_bytes; /* of the file; 0 if not known                                 */
    uint64_t leaves;     /* of the array of a dynamic cache-oblivious tree; else 0      */
};

/* make_key -- number i; `sorted`: i-th in order. */
static void
make_key(uint64_t seed, uint64_t i, bool sorted, unsigned char key[KEY_BYTES])
{
    uint64_t number = sorted ? i << 20 : bench_key(seed, i);

    memset(key, 'k', KEY_BYTES);
    tree_key_u64(number, key);
}

/* Keys for a bulk load. */
struct source {
    uint64_t count;
    unsigned char key[KEY_BYTES];
};

static bool
next_key(void *arg, uint64_t i, const void **keyp, const void **valuep)
{
    struct source *s = arg;

    if (i >= s->count)
        return false;
    make_key(0, i, true, s->key);
    *keyp = s->key;
    *valuep = s->key; /* of size 0 */
    return true;
}

/* What a scan has seen. */
struct tally {
    uint64_t n;
    uint64_t sum; /* of a byte of each key, so that all are read */
};

static int
tally_visit(void *arg, const void *key, const void *value)
{
    struct tally *tally = arg;

    (void)value;
    tally->n++;
    tally->sum += *(const unsigned char *)key;
    return 0;
}

/* ---- One tree, in a process of its own ---------------------------------------------- */

static double
seconds_since(uint64_t began)
{
    return (double)(bench_now_ns() - began) / 1e9;
}

/* search -- random keys that are there. */
static int
search(struct bench_larger_set *s, const struct options *o, const struct subject *x,
       struct outcome *out)
{
    unsigned char key[KEY_BYTES];
    struct rusage before, after;
    uint64_t began;
    int rc = 0;

    getrusage(RUSAGE_SELF, &before);
    began = bench_now_ns();
    for (uint64_t i = 0; i < o->searches && rc == 0; i++) {
        make_key(o->seed, bench_key(o->seed + 1, i) % s->count, x->is_static, key);
        rc = s->kind->search(s, key);
    }
    out->search_seconds = seconds_since(began);
    getrusage(RUSAGE_SELF, &after);
    out->search_pages =
        (double)(after.ru_inblock - before.ru_inblock) * INBLOCK_BYTES / PAGE_BYTES;
    return rc;
}

/* build_dynamic -- inserts, and a scan of all. */
static int
build_dynamic(struct bench_larger_set *s, const struct options *o, struct outcome *out)
{
    uint64_t began = bench_now_ns();
    struct tally tally = {0};
    unsigned char key[KEY_BYTES];
    int rc = 0;

    for (uint64_t i = 0; i < s->count && rc == 0; i++) {
        make_key(o->seed, i, false, key);
        rc = s->kind->insert(s, key);
    }
    out->build_seconds = seconds_since(began);
    began = bench_now_ns();
    if (rc == 0)
        rc = s->kind->scan(s, tally_visit, &tally);
    out->scan_seconds = seconds_since(began);
    return rc != 0 ? rc : tally.n == s->count ? 0 : EBADMSG;
}

/* build_static -- all keys in order. */
static int
build_static(struct bench_larger_set *s, struct outcome *out)
{
    struct source source = {.count = s->count};
    uint64_t began = bench_now_ns();
    const void *key, *value;
    int rc = 0;

    if (s->kind->load != NULL)
        rc = s->kind->load(s, next_key, &source);
    else
        for (uint64_t i = 0; rc == 0 && next_key(&source, i, &key, &value); i++)
            rc = s->kind->insert(s, key);
    out->build_seconds = seconds_since(began);
    return rc;
}

/* check -- a cache-oblivious tree, all of it; ret 0 or a code. */
static int
check(struct bench_larger_set *s, struct outcome *out)
{
    struct cobtree_report report;
    int rc = cobtree_serial_check(&s->tree.cobtree, &report);

    out->leaves = report.leaves;
    return rc == 0 && report.entries != s->count ? EBADMSG : rc;
}

/* measure -- build and search, in the group from where the limit counts; ret 0 or a code. */
static int
measure(struct bench_larger_set *s, const struct bench_cgroup *g, const struct options *o,
        const struct subject *x, struct outcome *out)
{
    int rc = x->is_static ? 0 : bench_cgroup_enter(g);

    if (rc == 0)
        rc = s->kind->create(s);
    if (rc == 0 && !x->is_static)
        rc = build_dynamic(s, o, out);
    if (rc == 0 && x->is_static) {
        rc = build_static(s, out);
        if (rc == 0)
            rc = s->kind->forget(s);
        if (rc == 0)
            rc = bench_cgroup_enter(g);
        if (rc == 0)
            rc = s->kind->reopen(s);
    }
    out->size_bytes = s->size_bytes;
    if (rc == 0)
        rc = search(s, o, x, out);
    return rc == 0 && x->point[0] != '\0' ? check(s, out) : rc;
}

/* child -- in the group; sends what it found and ends. */
static void __attribute__((noreturn))
child(const struct bench_cgroup *g, const struct options *o, const struct subject *x,
      const char *path, int fd)
{
    struct bench_larger_set set = x->set;
    struct outcome out = {0};

    set.path = path;
    set.fd = -1;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    out.rc = measure(&set, g, o, x, &out);
    _exit(write(fd, &out, sizeof out) == (ssize_t)sizeof out ? 0 : 1);
}

/* ---- All of them --------------------------------------------------------------------- */

/* hear -- the child's outcome; ret 0, or 1 after a message. */
static int
hear(int fd, pid_t pid, struct outcome *out)
{
    ssize_t n;
    int status = 0;

    while ((n = read(fd, out, sizeof *out)) < 0 && errno == EINTR && !bench_interrupted())
        ;
    if (n < 0 && pid > 0)
        (void)kill(pid, SIGKILL);

    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || n != (ssize_t)sizeof *out)
        return bench_fail("larger: the process of a tree died (%s)",
                          WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                              : "no result");
    return out->rc == 0 ? 0 : bench_fail("larger: %s", strerror(out->rc));
}

/* describe -- a subject in words, for the figures. */
static void
describe(const struct subject *x, char *text, size_t bytes)
{
    unsigned long long kib = x->set.block_bytes >> 10;

    if (x->pool[0] != '\0')
        snprintf(text, bytes, "Berkeley DB, cache %llu KiB",
                 (unsigned long long)(x->set.pool_bytes >> 10));
    else if (x->set.block_bytes == 0)
        snprintf(text, bytes, "CO B-tree%s",
                 strcmp(x->point, "before") == 0   ? ", about to grow"
                 : strcmp(x->point, "behind") == 0 ? ", just grown"
                                                   : "");
    else
        snprintf(text, bytes, "B+-tree, %llu KiB%s", kib,
                 x->set.scattered ? ", random" : "");
}

/* print -- one result. */
static void
print(const struct options *o, const struct subject *x, const struct outcome *r)
{
    const char *test = x->is_static ? "static" : "dynamic";
    const char *allocation = strcmp(x->tree, "btree") != 0 ? ""
                             : x->set.scattered            ? "random"
                                                           : "sequential";
    double us_search = r->search_seconds * 1e6 / (double)o->searches;
    double us_insert = x->is_static ? -1 : r->build_seconds * 1e6 / (double)x->set.count;
    double us_scan = x->is_static ? -1 : r->scan_seconds * 1e6 / (double)x->set.count;
    double pages = r->search_pages / (double)o->searches;
    char words[64];

    describe(x, words, sizeof words);
    if (!o->common.json) {
        printf("%-8s %-28s %10.2f %12.3f %12.1f %8.2f\n", test, words, us_insert, us_scan,
               us_search, pages);
        fflush(stdout);
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "larger");
    bench_json_str(stdout, "test", test);
    bench_json_str(stdout, "tree", x->tree);
    bench_json_str(stdout, "what", words);
    bench_json_str(stdout, "point", x->point);
    bench_json_u64(stdout, "block_bytes", x->set.block_bytes);
    bench_json_str(stdout, "allocation", allocation);
    bench_json_str(stdout, "pool", x->pool);
    bench_json_u64(stdout, "pool_bytes", x->set.pool_bytes);
    bench_json_u64(stdout, "limit_bytes", o->limit_bytes);
    bench_json_u64(stdout, "count", x->set.count);
    bench_json_u64(stdout, "key_bytes_in_all", x->set.count * KEY_BYTES);
    bench_json_u64(stdout, "file_bytes", r->size_bytes);
    bench_json_num(stdout, "array_leaves", r->leaves > 0 ? (double)r->leaves : -1);
    bench_json_num(stdout, "us_per_insert", us_insert);
    bench_json_num(stdout, "us_per_scanned_record", us_scan);
    bench_json_num(stdout, "us_per_search", us_search);
    bench_json_num(stdout, "disk_pages_per_search", pages);
    bench_json_u64(stdout, "searches", o->searches);
    bench_json_u64(stdout, "seed", o->seed);
    bench_json_end(stdout);
}

/* run_subject -- one tree; ret 0, or 1 after a message. */
static int
run_subject(const struct options *o, const struct bench_cgroup *g,
            const struct subject *x, const char *dir)
{
    struct outcome out;
    char path[PATH_MAX];
    int fds[2], rc;
    pid_t pid;

    if (bench_interrupted())
        return bench_fail("interrupted");
    bench_progress(x->is_static ? "static trees" : "dynamic trees", 0, 1);
    snprintf(path, sizeof path, "%s/tree", dir);
    if (pipe2(fds, O_CLOEXEC) != 0)
        return bench_fail("pipe: %s", strerror(errno));
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        child(g, o, x, path, fds[1]);
    close(fds[1]);
    rc = hear(fds[0], pid, &out);
    close(fds[0]);
    (void)unlink(path);
    bench_progress_clear();
    if (rc == 0)
        print(o, x, &out);
    return rc;
}

/* is_wanted -- whether a tree is to be measured. */
static bool
is_wanted(const struct options *o, const char *tree)
{
    for (unsigned i = 0; i < o->trees.n; i++)
        if (strcmp(o->trees.v[i], tree) == 0)
            return true;
    return o->trees.n == 0;
}

/* run_bdb -- Berkeley DB with its default cache and with a large one; ret as below. */
static int
run_bdb(const struct options *o, const struct bench_cgroup *g, struct subject x,
        const char *dir)
{
#ifdef HAVE_BDB
    int rc;

    if (!is_wanted(o, "bdb"))
        return 0;
    x.tree = "bdb";
    x.set.kind = &bench_larger_bdb;
    x.set.block_bytes = PAGE_BYTES;
    x.pool = "default";
    x.set.pool_bytes = POOL_DEFAULT;
    rc = run_subject(o, g, &x, dir);
    x.pool = "half";
    x.set.pool_bytes = o->limit_bytes / POOL_SHARE;
    return rc != 0 ? rc : run_subject(o, g, &x, dir);
#else
    (void)o, (void)g, (void)x, (void)dir;
    return 0;
#endif
}

/*
 * keys_to_grow -- with how many of our random keys, more than `count`, the array of the cache-oblivious tree
 * grows.  The order of the keys decides, so short ones will do, in memory.
 *
 * ret  0 and *np, or errno
 */
static int
keys_to_grow(uint64_t seed, uint64_t count, uint64_t *np)
{
    const struct bench_tree_kind *kind = &bench_kind_cobtree_serial;
    const struct bench_tree_config config = {.count = count,
                                             .key_size = sizeof(uint64_t)};
    size_t size = kind->size(&config);
    unsigned char key[KEY_BYTES];
    union bench_tree tree;
    void *base =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int rc;

    if (base == MAP_FAILED)
        return errno;
    rc = kind->create(&tree, base, size, &config);
    for (*np = 1; rc == 0; *np += rc == 0) {
        make_key(seed, *np - 1, false, key);
        rc = kind->insert(&tree, key, key, TREE_ADD);
    }
    (void)munmap(base, size);
    return rc == ENOSPC ? 0 : rc;
}

/* run_cobtree -- the cache-oblivious tree; one that grows with its last key also without this one; ret as below. */
static int
run_cobtree(const struct options *o, const struct bench_cgroup *g, struct subject x,
            const char *dir)
{
    int rc;

    if (!is_wanted(o, "cobtree"))
        return 0;
    if (x.is_static)
        return run_subject(o, g, &x, dir);
    x.point = "before";
    x.set.count--;
    rc = run_subject(o, g, &x, dir);
    x.point = "behind";
    x.set.count++;
    return rc != 0 ? rc : run_subject(o, g, &x, dir);
}

/* run_btree -- B+-trees of all sizes of blocks; ret as below. */
static int
run_btree(const struct options *o, const struct bench_cgroup *g, struct subject x,
          const char *dir)
{
    int rc = 0;

    if (!is_wanted(o, "btree"))
        return 0;
    x.tree = "btree";
    x.set.tree_kind = &bench_kind_btree_serial;
    for (unsigned i = 0; i < o->blocks.n && rc == 0; i++) {
        x.set.block_bytes = o->blocks.v[i];
        rc = run_subject(o, g, &x, dir);
    }
    /* Table 5.2's last line of the B+-tree. */
    x.set.block_bytes = o->blocks.v[0];
    x.set.scattered = true;
    return rc != 0 || x.is_static ? rc : run_subject(o, g, &x, dir);
}

/* run_test -- all trees of one test; ret 0, or 1 after a message. */
static int
run_test(const struct options *o, const struct bench_cgroup *g, bool is_static,
         const char *dir)
{
    struct subject x = {.tree = "cobtree",
                        .pool = "",
                        .point = "",
                        .is_static = is_static,
                        .set = {.kind = &bench_larger_tree,
                                .tree_kind = &bench_kind_cobtree_serial,
                                .count = TIMES_LIMIT * o->limit_bytes / KEY_BYTES}};
    int rc = is_static ? 0 : keys_to_grow(o->seed, x.set.count, &x.set.count);

    if (rc != 0)
        return bench_fail("larger: %s", strerror(rc));
    rc = run_cobtree(o, g, x, dir);
    if (rc == 0)
        rc = run_btree(o, g, x, dir);
    return rc != 0 ? rc : run_bdb(o, g, x, dir);
}

static void
usage(void)
{
    puts(
        "Search trees on plain mmap whose keys are three times as large as the memory,\n"
        "which a control group limits, and Berkeley DB without transactions, with its\n"
        "default cache and one of half the memory.  128-byte keys, no values.  static: a\n"
        "tree loaded in bulk, forgotten by the page cache, then searched.  dynamic:\n"
        "random inserts, a scan of all, searches, with so many more keys that the whole\n"
        "array of the cache-oblivious tree has just grown, and with one less of these.\n"
        "\n"
        "  --limit BYTES    of memory; default 32M\n"
        "  --trees LIST     of cobtree, btree, bdb; default all\n"
        "  --blocks LIST    of the B+-tree; default 4K,16K,64K,256K; the first one also\n"
        "                   with blocks in random order\n"
        "  --searches N     default 1000\n"
        "  --static         no dynamic trees\n"
        "  --seed S         default 1\n"
        "  --dir DIR        where the trees go; default the current directory\n"
        "  --json, --quiet, --help");
}

/* run -- everything, in a directory and a group; ret exit status. */
static int
run(const struct options *o, const struct bench_cgroup *g)
{
    char dir[BENCH_DIR_BYTES];
    int rc = bench_dir_make(&o->common, dir);

    if (rc != 0)
        return rc;
    if (!o->common.json)
        printf("%-8s %-28s %10s %12s %12s %8s\n", "test", "what", "us/insert",
               "us/scanned", "us/search", "pages");
    rc = run_test(o, g, true, dir);
    if (rc == 0 && !o->only_static)
        rc = run_test(o, g, false, dir);
    if (bench_dir_remove(dir) != 0)
        rc = 1;
    return rc;
}

/* check_lists -- ret 0, or 1 after a message. */
static int
check_lists(const struct options *o)
{
    static const char *const trees[] = {"cobtree", "btree",
#ifdef HAVE_BDB
                                        "bdb",
#endif
                                        NULL};

    for (unsigned i = 0; i < o->blocks.n; i++)
        if ((o->blocks.v[i] & (o->blocks.v[i] - 1)) != 0)
            return bench_fail("--blocks: powers of two are wanted");
    for (unsigned i = 0; i < o->trees.n; i++) {
        unsigned k = 0;

        while (trees[k] != NULL && strcmp(trees[k], o->trees.v[i]) != 0)
            k++;
        if (trees[k] == NULL)
            return bench_fail("--trees: there is no \"%s\"", o->trees.v[i]);
    }
    return 0;
}

int
bench_larger_main(int argc, char **argv)
{
    static struct options o = {
        .blocks = {4, {4096, 16384, 65536, 262144}},
        .limit_bytes = UINT64_C(32) << 20,
        .searches = 1000,
        .seed = 1,
    };
    const struct bench_option table[] = {
        {.name = "limit",
         .number = &o.limit_bytes,
         .low = 4 << 20,
         .high = UINT64_C(1) << 40},
        {.name = "trees", .words = &o.trees},
        {.name = "blocks", .numbers = &o.blocks, .low = 2048, .high = BTREE_BLOCK_MAX},
        {.name = "searches", .number = &o.searches, .low = 1, .high = 1 << 30},
        {.name = "seed", .number = &o.seed, .high = UINT64_MAX},
        {.name = "static", .flag = &o.only_static},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    struct bench_cgroup group;
    char why[200];
    int rc;

    if (!bench_options_parse(argc, argv, table, usage, &o.common, &rc))
        return rc;
    if (check_lists(&o) != 0)
        return 2;
    if (!bench_cgroup_make(&group, 0, o.limit_bytes, why, sizeof why)) {
        if (!o.common.json)
            return bench_fail("larger: %s", why);
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "larger");
        bench_json_str(stdout, "skipped", why);
        bench_json_end(stdout);
        return 0;
    }
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    rc = run(&o, &group);
    bench_cgroup_remove(&group);
    return rc;
}
