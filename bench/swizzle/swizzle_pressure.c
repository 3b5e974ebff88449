/* SPDX-License-Identifier: MIT */
/*
 * swizzle_pressure.c -- the figure's other half: the same look-ups with data four times as large as
 * the memory, which a control group limits.
 *
 * Each subject is a process of its own in the group, so that the page cache of its file, or its
 * frames, are all it has; the files are made before, without a limit, and forgotten by the page
 * cache.  Frames are three quarters of the memory.  The kernel is told not to read ahead in what
 * is mapped, which would fill the little memory with neighbours.
 */
#include <config.h>

#include "bench/swizzle/swizzle.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#include "bench/kit/memory.h"
#include "bench/kit/util.h"

#define PAGE_BYTES 4096u
#define LEAVES     32000u
#define LEAVES_LEAST \
 16000u /* of --scale: less memory than for a quarter of it is too little */
#define TIMES_LIMIT 4u
#define MANY        1000u /* look-ups in a query */

enum where {
    IN_FRAMES,
    IN_VIEW,
    IN_MMAP,
    N_WHERES
};

#define VIEW(kind) .where = IN_VIEW, .view = &swzb_view_##kind

static const struct subject {
    const char *what; /* as in swizzle_figure.c */
    enum where where;
    bool has_hash, is_swizzling;
    unsigned batch;               /* look-ups in a query */
    bool has_frames;              /* XAC_OPT_FRAMES */
    const struct swzb_view *view; /* in a view */
} subjects[] = {
    {.what = "hash table", .has_hash = true},
    {.what = "array"},
    {.what = "reference", .is_swizzling = true},
    {.what = "view, query for each", VIEW(trapped), .batch = 1},
    {.what = "view, 1000 in a query", VIEW(trapped), .batch = MANY},
    {.what = "view on frames, 1000", VIEW(trapped), .batch = MANY, .has_frames = true},
#ifdef HAVE_COMPILED
    {.what = "compiled, query for each", VIEW(compiled), .batch = 1},
    {.what = "compiled, 1000 in a query", VIEW(compiled), .batch = MANY},
#endif
    {.what = "plain mmap", .where = IN_MMAP},
};

struct job {
    const struct swzb_options *o;
    const struct subject *x; /* NULL: the files are made */
    const struct bench_cgroup *group;
    const char *directory;
    struct swzb_keys keys;
    uint32_t n_frames;
    size_t bytes; /* of a mapped tree */
};

struct outcome {
    int rc;
    double ops_per_s[2]; /* uniform, skewed */
};

static const struct btree_config tree_config = {.key_size = 8,
                                                .value_size = 8,
                                                .block_size = PAGE_BYTES};

/* ---- Trees --------------------------------------------------------------------------- */

/* space_open -- of so many frames, past the page cache if that can be had. */
static int
space_open(const struct job *j, uint32_t n_frames, bool is_plain, bool has_hash,
           struct swz_space **spacep)
{
    struct swz_config config = {.n_pages = SWZB_PAGES_OF(j->keys.n / SWZB_LEAF_KEYS),
                                .n_frames = n_frames,
                                .n_threads = SWZB_THREADS_MAX,
                                .is_plain = is_plain,
                                .has_hash = has_hash,
                                .is_direct = true};
    int rc;

    if (mkdir("space", 0777) != 0 && errno != EEXIST)
        return errno;
    rc = swz_open("space", &config, spacep);
    config.is_direct = false;
    return rc == EINVAL ? swz_open("space", &config, spacep) : rc;
}

static int
space_make(const struct job *j)
{
    struct swz_space *s;
    int rc = space_open(j, 4096, false, false, &s);

    if (rc != 0)
        return rc;
    rc = swzb_fill(s, j->keys.n);
    return swz_close(s) != 0 && rc == 0 ? EIO : rc;
}

/* map_file -- for plain mmap. */
static void *
map_file(size_t bytes)
{
    int fd = open("plain", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    void *base = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        (void)close(fd);
    if (base != MAP_FAILED)
        (void)bench_stop_reading_ahead("/plain");
    return base;
}

static int
plain_make(const struct job *j)
{
    void *base = map_file(j->bytes);
    struct btree t = {0};
    uint64_t n = j->keys.n;
    int rc;

    if (base == MAP_FAILED)
        return errno;
    rc = btree_serial_create(&t, base, j->bytes, &tree_config);
    rc = rc != 0 ? rc : btree_serial_load(&t, swzb_key_source, &n, 100, NULL);
    if (rc == 0 && msync(base, j->bytes, MS_SYNC) != 0)
        rc = errno;
    (void)munmap(base, j->bytes);
    return rc;
}

static int
view_make(const struct job *j)
{
    struct btree t = {0};
    uint64_t n = j->keys.n;
    /* Its stores are noticed by traps, whatever a part before has set. */
    int rc = xac_set_option(XAC_OPT_CHECKING, swzb_view_trapped.checking);
    void *base;

    if (rc != 0 || xac_init("db", XAC_NONDURABLE) != 0)
        return rc != 0 ? rc : EIO;
    base = xac_mmap("view", j->bytes);
    rc = base == MAP_FAILED ? EIO : btree_create(&t, base, j->bytes, &tree_config);
    rc = rc != 0 ? rc : btree_load(&t, swzb_key_source, &n, 100, NULL);
    return xac_shutdown() != 0 && rc == 0 ? EIO : rc;
}

/* forget -- on disk, and not in the page cache. */
static int
forget(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;

    if (fd < 0)
        return errno;
    if (fsync(fd) != 0)
        rc = errno;
    if (rc == 0)
        rc = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    (void)close(fd);
    return rc;
}

static int
make(const struct job *j)
{
    int rc = space_make(j);

    rc = rc != 0 ? rc : plain_make(j);
    rc = rc != 0 ? rc : view_make(j);
    rc = rc != 0 ? rc : forget("space/pages");
    rc = rc != 0 ? rc : forget("plain");
    return rc != 0 ? rc : forget("view");
}

/* ---- Look-ups ------------------------------------------------------------------------ */

/* mapped_rate -- for so long; a query for each `batch` of them, or none; -1: one has found nothing. */
static double
mapped_rate(const struct subject *x, struct btree *t, struct swzb_keys *k, uint64_t ms)
{
    unsigned batch = x->batch;
    uint64_t seed = 7, n = 0, start = bench_now_ns(), now;
    unsigned char key[8], value[8];
    int rc = 0;

    do {
        if (batch > 0)
            (void)xac_begin_query();
        for (unsigned i = 0; i < (batch > 0 ? batch : 16) && rc == 0; i++, n++) {
            tree_key_u64(swzb_key_next(k, &seed), key);
            rc = (batch > 0 ? x->view->search(t, key, value)
                            : btree_serial_search(t, key, value));
        }
        if (batch > 0)
            (void)xac_end_query();
        now = bench_now_ns();
    } while (rc == 0 && now - start < ms * 1000000);
    return rc != 0 ? -1 : (double)n * 1e9 / (double)(now - start);
}

/* frames_rate -- the same in a space. */
static double
frames_rate(struct swz_space *s, struct swzb_keys *k, uint64_t ms)
{
    struct swzb_result r;

    return swzb_run(s, 1, ms, swzb_lookup_op, k, &r) != 0 ? -1 : r.ops_per_s;
}

/* rates -- uniform, then skewed; each after the memory has been filled so; ret 0, or ENOENT. */
static int
rates(const struct job *j, struct swz_space *s, struct btree *t, struct outcome *out)
{
    struct swzb_keys k = j->keys;

    for (int i = 0; i < 2; i++) {
        k.skewed = i == 1;
        for (int warm = 1; warm >= 0; warm--) {
            uint64_t ms = j->o->seconds_ms * (1 + (unsigned)warm);

            out->ops_per_s[i] =
                s != NULL ? frames_rate(s, &k, ms) : mapped_rate(j->x, t, &k, ms);
            if (out->ops_per_s[i] < 0)
                return ENOENT;
        }
    }
    return 0;
}

/* measure_view -- in a file that the library has mapped. */
static int
measure_view(const struct job *j, struct outcome *out)
{
    const struct swzb_view *view = j->x->view;
    struct btree t = {0};
    int rc = xac_set_option(XAC_OPT_CHECKING, view->checking);
    void *base;

    if (rc == 0 && j->x->has_frames)
        rc = xac_set_option(XAC_OPT_FRAMES, j->n_frames);
    else if (rc == 0)
        rc = xac_set_option(XAC_OPT_READ_AHEAD_BYTES, 0);
    if (rc != 0 || xac_init("db", XAC_NONDURABLE) != 0)
        return rc != 0 ? rc : EIO;
    base = xac_mmap("view", j->bytes);
    rc = base == MAP_FAILED ? EIO : view->open(&t, base, j->bytes);
    if (rc == 0)
        rc = rates(j, NULL, &t, out);
    return xac_shutdown() != 0 && rc == 0 ? EIO : rc;
}

static int
measure(const struct job *j, struct outcome *out)
{
    struct swz_space *s = NULL;
    struct btree t = {0};
    void *base;
    int rc = bench_cgroup_enter(j->group);

    if (rc == 0 && j->x->where == IN_FRAMES) {
        rc = space_open(j, j->n_frames, !j->x->is_swizzling, j->x->has_hash, &s);
        if (rc == 0) {
            rc = rates(j, s, NULL, out);
            rc = swz_close(s) != 0 && rc == 0 ? EIO : rc;
        }
        return rc;
    }
    if (rc == 0 && j->x->where == IN_MMAP) {
        base = map_file(j->bytes);
        rc = base == MAP_FAILED ? errno : btree_serial_open(&t, base, j->bytes);
        return rc != 0 ? rc : rates(j, NULL, &t, out);
    }
    return rc != 0 ? rc : measure_view(j, out);
}

/* ---- Processes ----------------------------------------------------------------------- */

/* in_child -- make or measure in a process of its own; ret 0, or 1 after a message. */
static int
in_child(const struct job *j, struct outcome *out)
{
    int fds[2], status;
    ssize_t n;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return bench_fail("swizzle: pipe: %s", strerror(errno));
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        out->rc = chdir(j->directory) != 0 ? errno
                  : j->x == NULL           ? make(j)
                                           : measure(j, out);
        n = write(fds[1], out, sizeof *out);
        _exit(n == (ssize_t)sizeof *out ? 0 : 1);
    }
    (void)close(fds[1]);
    n = read(fds[0], out, sizeof *out);
    (void)close(fds[0]);
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    if (pid < 0 || n != (ssize_t)sizeof *out)
        return bench_fail("swizzle: the process of \"%s\" died",
                          j->x == NULL ? "make" : j->x->what);
    return out->rc == 0
               ? 0
               : bench_fail("swizzle: %s: %s", j->x == NULL ? "make" : j->x->what,
                            strerror(out->rc));
}

static int
all(struct job *j)
{
    struct outcome out = {0};
    int rc = in_child(j, &out);

    for (unsigned i = 0; i < sizeof subjects / sizeof subjects[0] && rc == 0; i++) {
        j->x = &subjects[i];
        rc = in_child(j, &out);
        for (int k = 0; k < 2 && rc == 0; k++)
            swzb_other_print(j->o, "pressure", j->x->what,
                             k == 0 ? "a quarter of the data" : "a quarter, skewed",
                             out.ops_per_s[k]);
    }
    return rc;
}

int
swzb_pressure(const struct swzb_options *o)
{
    uint64_t n_leaves = LEAVES * o->scale / 100;
    char directory[] = "swizzle-XXXXXX", why[200];
    struct bench_cgroup group;
    struct job j = {.o = o, .group = &group, .directory = directory};
    uint64_t limit;
    int rc;

    n_leaves = n_leaves > LEAVES_LEAST ? n_leaves : LEAVES_LEAST;
    limit = n_leaves * PAGE_BYTES / TIMES_LIMIT;
    j.keys.n = j.keys.working = n_leaves * SWZB_LEAF_KEYS;
    j.n_frames = (uint32_t)(limit / 4 * 3 / PAGE_BYTES);
    j.bytes = (size_t)SWZB_PAGES_OF(n_leaves) * PAGE_BYTES + (4 << 20);
    if (!bench_cgroup_make(&group, 0, limit, why, sizeof why)) {
        (void)fprintf(stderr, "swizzle: pressure: skipped, %s\n", why);
        return 0;
    }
    rc = mkdtemp(directory) == NULL
             ? bench_fail("swizzle: no directory: %s", strerror(errno))
             : all(&j);
    bench_cgroup_remove(&group);
    (void)bench_remove_tree(directory);
    return rc;
}
