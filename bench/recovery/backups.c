/* SPDX-License-Identifier: MIT */
/*
 * backups.c -- full backups and increments of the same changes, interleaved; the chain of
 * increments restored to each of its moments.
 *
 * The bytes of a page follow from its number and how often it has been changed, which is kept here for
 * each moment; so what was restored is compared page by page.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/machine.h"
#include "bench/kit/options.h"
#include "bench/kit/util.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define MIB        (UINT64_C(1) << 20)
#define PAGE       4096u
#define ROUNDS_MAX 16
#define TXN_PAGES  64

enum way {
    WAY_LOG,
    WAY_CHECKSUMS,
    WAY_COMPARE
};

static const char *const way_name[] = {"log", "checksums", "compare"};

struct backups {
    struct bench_common common;
    uint64_t data_bytes, percent_10, rounds, seed;
    struct bench_words way;
    const char *tool;
    char dir[256];
    enum way by;
    uint8_t *base; /* the mapping                                                 */
    uint64_t n_pages;
    uint32_t *changes; /* of each page; for each moment                                */
    double full_s[ROUNDS_MAX], increment_s[ROUNDS_MAX];
    double full_bytes[ROUNDS_MAX], increment_bytes[ROUNDS_MAX];
    double first_full_s;
};

static void
usage(void)
{
    puts(
        "Full backups and increments of a file of which a part was changed, in turn.\n"
        "\n"
        "  --data BYTES    of the mapped file (1G)\n"
        "  --changed N     thousandths of its pages, changed before each round (10)\n"
        "  --rounds N      (5)\n"
        "  --way WORD      log, checksums or compare: how changed pages are found (log)\n"
        "  --tool PATH     of xbackup, which restores the chain to each moment; without it\n"
        "                  nothing is restored\n"
        "  --seed N        of the random pages (1)\n"
        "  --dir DIR       where to make a directory (.)\n"
        "  --json          one JSON object\n"
        "  --quiet         no progress bar");
}

/* parse -- as bench_options_parse. */
static bool
parse(int argc, char **argv, struct backups *b, int *statusp)
{
    const struct bench_option table[] = {
        {.name = "data", .number = &b->data_bytes, .low = MIB, .high = MIB << 20},
        {.name = "changed", .number = &b->percent_10, .low = 1, .high = 1000},
        {.name = "rounds", .number = &b->rounds, .low = 1, .high = ROUNDS_MAX},
        {.name = "way", .words = &b->way},
        {.name = "tool", .text = &b->tool},
        {.name = "seed", .number = &b->seed, .low = 0, .high = UINT64_MAX},
        BENCH_OPTION_DIR(&b->common),
        {0},
    };

    b->data_bytes = 1024 * MIB;
    b->percent_10 = 10;
    b->rounds = 5;
    b->seed = 1;
    if (!bench_options_parse(argc, argv, table, usage, &b->common, statusp))
        return false;
    *statusp = 2 * bench_options_no_quick(&b->common);
    for (unsigned w = 0; b->way.n > 0 && w < 3; w++) {
        if (strcmp(b->way.v[0], way_name[w]) == 0)
            b->by = (enum way)w;
    }
    if (*statusp == 0 && b->way.n > 0 && strcmp(b->way.v[0], way_name[b->by]) != 0)
        *statusp = 2 * bench_fail("--way: log, checksums or compare");
    return *statusp == 0;
}

/* path_of -- below the directory of the run; valid until the fourth next call. */
static const char *
path_of(const struct backups *b, const char *name, uint64_t i)
{
    static char text[4][400];
    static unsigned next;
    char *to = text[next++ % 4];

    (void)snprintf(to, sizeof text[0], "%s/%s%llu", b->dir, name, (unsigned long long)i);
    return to;
}

/* fill -- the bytes of a page that has been changed so often. */
static void
fill(uint8_t *page, uint64_t number, uint32_t changes)
{
    uint64_t key = bench_key(number + 1, changes);

    for (size_t i = 0; i < PAGE; i += sizeof key) {
        memcpy(page + i, &key, sizeof key);
        key = key * 6364136223846793005u + 1442695040888963407u;
    }
}

/* make_file -- never changed, and on disk. */
static int
make_file(const struct backups *b, const char *path)
{
    static uint8_t chunk[256 * PAGE];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int rc = fd < 0;

    for (uint64_t page = 0; rc == 0 && page < b->n_pages; page += 256) {
        for (uint64_t i = 0; i < 256; i++)
            fill(chunk + i * PAGE, page + i, 0);
        rc = write(fd, chunk, sizeof chunk) != (ssize_t)sizeof chunk;
    }
    if (rc == 0)
        rc = fsync(fd) != 0;
    if (rc != 0)
        rc = bench_fail("%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

/* map -- the file; unmapped and mapped again, the log is not asked what has changed since. */
static int
map(struct backups *b)
{
    const char *path = path_of(b, "env/data", 0);

    if (b->base != NULL && xac_munmap(path) != 0)
        return bench_fail("xMunmap: %s", xac_last_error());
    b->base = (uint8_t *)xac_mmap(path, (size_t)b->data_bytes);
    return b->base == (uint8_t *)MAP_FAILED ? bench_fail("xMmap: %s", xac_last_error())
                                            : 0;
}

/* change -- random pages, for moment number `round`. */
static int
change(struct backups *b, uint64_t round)
{
    uint32_t *now = b->changes + round * b->n_pages;
    uint64_t n = b->n_pages * b->percent_10 / 1000;

    if (round > 0)
        memcpy(now, now - b->n_pages, b->n_pages * sizeof now[0]);
    for (uint64_t i = 0; i < n;) {
        if (xac_begin() != 0)
            return bench_fail("xbegin: %s", xac_last_error());
        for (uint64_t k = 0; k < TXN_PAGES && i < n; k++, i++) {
            uint64_t page = bench_key(b->seed + round, i) % b->n_pages;

            fill(b->base + page * PAGE, page, ++now[page]);
        }
        if (xac_end() != XAC_COMMITTED)
            return bench_fail("xend: %s", xac_last_error());
    }
    return b->by == WAY_LOG ? 0 : map(b);
}

/* size_of -- bytes on disk of the files in a directory, and below it. */
static double
size_of(const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    double sum = 0;

    while (d != NULL && (e = readdir(d)) != NULL) {
        char name[900];
        struct stat st;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (lstat(name, &st) != 0)
            continue;
        sum += S_ISDIR(st.st_mode) ? size_of(name) : 512.0 * (double)st.st_blocks;
    }
    if (d != NULL)
        closedir(d);
    return sum;
}

/* time_full -- a full backup, which is removed again unless it is the first. */
static int
time_full(struct backups *b, uint64_t round, double *secondsp, double *bytesp)
{
    const char *dir = path_of(b, round == 0 ? "b" : "full", round);
    uint64_t began = bench_now_ns();

    if (xac_backup(dir) != 0)
        return bench_fail("xBackup: %s", xac_last_error());
    *secondsp = (double)(bench_now_ns() - began) / 1e9;
    *bytesp = size_of(dir);
    if (round > 0 && bench_remove_tree(dir) != 0)
        return bench_fail("%s: %s", dir, strerror(errno));
    sync(); /* or the next one pays for the removal */
    return 0;
}

static int
time_increment(struct backups *b, uint64_t round)
{
    const char *dir = path_of(b, "b", round), *since = path_of(b, "b", round - 1);
    uint64_t began = bench_now_ns();

    if (xac_backup_since(dir, since) != 0)
        return bench_fail("xBackupSince: %s", xac_last_error());
    b->increment_s[round - 1] = (double)(bench_now_ns() - began) / 1e9;
    b->increment_bytes[round - 1] = size_of(dir);
    return 0;
}

/* one_round -- the same changes, backed up both ways; which one comes first, and has the checkpoint of
   the changes to make, alternates. */
static int
one_round(struct backups *b, uint64_t round)
{
    int rc = change(b, round);

    bench_progress("backups", round, b->rounds);
    if (rc == 0 && round % 2 == 0)
        rc = time_increment(b, round);
    if (rc == 0)
        rc = time_full(b, round, &b->full_s[round - 1], &b->full_bytes[round - 1]);
    if (rc == 0 && round % 2 == 1)
        rc = time_increment(b, round);
    return rc;
}

/* compare -- a restored file with the pages of that moment. */
static int
compare(const struct backups *b, const char *path, uint64_t round)
{
    const uint32_t *now = b->changes + round * b->n_pages;
    uint8_t want[PAGE], got[PAGE];
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;

    if (fd < 0)
        return bench_fail("%s: %s", path, strerror(errno));
    for (uint64_t page = 0; rc == 0 && page < b->n_pages; page++) {
        fill(want, page, now[page]);
        if (read(fd, got, PAGE) != (ssize_t)PAGE || memcmp(got, want, PAGE) != 0)
            rc = bench_fail("%s: page %llu is not that of moment %llu", path,
                            (unsigned long long)page, (unsigned long long)round);
    }
    close(fd);
    return rc;
}

/* restore -- by the tool, to each moment. */
static int
restore(struct backups *b)
{
    char command[8000], to[400], data[500];
    int rc = 0;

    for (uint64_t round = 0; rc == 0 && round <= b->rounds; round++) {
        size_t n = (size_t)snprintf(command, sizeof command,
                                    "%s --quiet --restore --recover", b->tool);

        bench_progress("restores", round, b->rounds + 1);
        for (uint64_t i = 0; i <= round; i++)
            n += (size_t)snprintf(command + n, sizeof command - n, " %s",
                                  path_of(b, "b", i));
        (void)snprintf(to, sizeof to, "%s", path_of(b, "restored", round));
        (void)snprintf(command + n, sizeof command - n, " %s", to);
        if (system(command) != 0)
            return bench_fail("%s", command);
        (void)snprintf(data, sizeof data, "%s/data0", to);
        rc = compare(b, data, round);
        if (rc == 0 && bench_remove_tree(to) != 0)
            rc = bench_fail("%s: %s", to, strerror(errno));
    }
    return rc;
}

static void
report(struct backups *b)
{
    size_t n = (size_t)b->rounds;
    double full_s = bench_median(b->full_s, n), inc_s = bench_median(b->increment_s, n);
    double full = bench_median(b->full_bytes, n),
           inc = bench_median(b->increment_bytes, n);

    if (b->common.json) {
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "backups");
        bench_json_str(stdout, "file_system", bench_fs_name(b->common.dir));
        bench_json_str(stdout, "way", way_name[b->by]);
        bench_json_u64(stdout, "data_bytes", b->data_bytes);
        bench_json_u64(stdout, "changed_thousandths", b->percent_10);
        bench_json_nums(stdout, "full_seconds", b->full_s, n);
        bench_json_nums(stdout, "increment_seconds", b->increment_s, n);
        bench_json_nums(stdout, "full_bytes", b->full_bytes, n);
        bench_json_nums(stdout, "increment_bytes", b->increment_bytes, n);
        bench_json_num(stdout, "times_smaller", full / inc);
        bench_json_num(stdout, "times_faster", full_s / inc_s);
        bench_json_bool(stdout, "restored", b->tool != NULL);
        bench_json_end(stdout);
        return;
    }
    printf(
        "%.0f MiB, %.1f %% of the pages changed before each of %zu rounds, %s, changes by %s\n",
        (double)b->data_bytes / (double)MIB, (double)b->percent_10 / 10, n,
        bench_fs_name(b->common.dir), way_name[b->by]);
    for (size_t i = 0; i < n; i++)
        printf("  full %8.3f s %8.2f MiB   increment %8.3f s %8.2f MiB\n", b->full_s[i],
               b->full_bytes[i] / (double)MIB, b->increment_s[i],
               b->increment_bytes[i] / (double)MIB);
    printf("an increment is %.1f times smaller and %.1f times faster (medians)%s\n",
           full / inc, full_s / inc_s,
           b->tool != NULL ? "; all moments restored and compared" : "");
}

/* prepare -- environment, file, first backup. */
static int
prepare(struct backups *b)
{
    const char *env = path_of(b, "env", 0);
    double bytes;
    char path[300];

    (void)snprintf(path, sizeof path, "%.*s", (int)strlen(env) - 1, env);
    b->n_pages = b->data_bytes / PAGE / 256 * 256;
    b->data_bytes = b->n_pages * PAGE;
    b->changes =
        (uint32_t *)calloc((size_t)((b->rounds + 1) * b->n_pages), sizeof b->changes[0]);
    if (b->changes == NULL || mkdir(path, 0700) != 0)
        return bench_fail("%s: %s", path, strerror(errno));
    if (b->by == WAY_CHECKSUMS && xac_set_option(XAC_OPT_PAGE_CHECKSUMS, 1) != 0)
        return bench_fail("option: %s", xac_last_error());
    if (make_file(b, path_of(b, "env/data", 0)) != 0)
        return 1;
    if (xac_init(path, XAC_DURABLE) != 0)
        return bench_fail("xInit: %s", xac_last_error());
    if (map(b) != 0)
        return 1;
    if (b->by == WAY_CHECKSUMS) { /* every page has been written with the option */
        for (uint64_t page = 0; page < b->n_pages; page++) {
            if (page % 1024 == 0 && xac_begin() != 0)
                return bench_fail("xbegin: %s", xac_last_error());
            fill(b->base + page * PAGE, page, ++b->changes[page]);
            if (page % 1024 == 1023 && xac_end() != XAC_COMMITTED)
                return bench_fail("xend: %s", xac_last_error());
        }
        if (b->n_pages % 1024 != 0 && xac_end() != XAC_COMMITTED)
            return bench_fail("xend: %s", xac_last_error());
    }
    return time_full(b, 0, &b->first_full_s, &bytes);
}

int
bench_backups_main(int argc, char **argv)
{
    static struct backups b;
    int rc;

    if (!parse(argc, argv, &b, &rc))
        return rc;
    bench_catch_signals();
    bench_progress_enable(b.common.quiet);
    (void)snprintf(b.dir, sizeof b.dir, "%s/xbench-XXXXXX", b.common.dir);
    if (mkdtemp(b.dir) == NULL)
        return bench_fail("%s: %s", b.dir, strerror(errno));
    rc = prepare(&b);
    for (uint64_t round = 1; rc == 0 && round <= b.rounds; round++)
        rc = bench_interrupted() ? bench_fail("interrupted") : one_round(&b, round);
    if (xac_shutdown() != 0 && rc == 0)
        rc = bench_fail("xShutdown: %s", xac_last_error());
    if (rc == 0 && b.tool != NULL)
        rc = restore(&b);
    bench_progress_clear();
    if (rc == 0)
        report(&b);
    free(b.changes);
    if (bench_remove_tree(b.dir) != 0)
        rc = bench_fail("%s: cannot be removed: %s", b.dir, strerror(errno));
    return rc;
}
