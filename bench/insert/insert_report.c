/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/insert/insert.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#ifdef HAVE_BDB
# include <db.h>
#endif

#include "bench/kit/machine.h"
#include "bench/kit/util.h"

#define KTH_MAX 256u /* points of a curve */

/* bdb_version -- "5.3.28", or "none". */
static const char *
bdb_version(void)
{
#ifdef HAVE_BDB
    static char text[32];
    int major, minor, patch;

    (void)db_version(&major, &minor, &patch);
    snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
    return text;
#else
    return "none";
#endif
}

/* What each option is; the defaults are those of the experiment that it is about. */
static const struct bench_help options_help[] = {
    {"durable", NULL, "durable transactions only", NULL},
    {"nondurable", NULL, "nondurable ones only", NULL},
    {"both", NULL, "a run of each", NULL},
    {"procs", "LIST", "numbers of processes", NULL},
    {"count", "N", "steps of the workload", NULL},
    {"workload", "LIST", "what a step is", "insert"},
    {"keys", "random|sorted|paths",
     "order in which keys come; paths: of the files below /usr in the order of a walk",
     NULL},
    {"loaded", "N", "records that are there before",
     "0, or 100000 for a workload that needs some"},
    {"scan-length", "N", "records of one scan", NULL},
    {"groups", "LIST", "reads in one transaction of systems that can", NULL},
    {"warm", NULL,
     "each slice first looks up all records (with --groups in its first transaction); its "
     "clock starts behind that",
     NULL},
    {"kth", NULL, "with --json: the time of the k-th most expensive step", NULL},
    {"slices", "K", "parts of the run", NULL},
    {"systems", "LIST", "of those that xbench list names", "the usual ones"},
    {"over", "LIST",
     "a column for each of these systems: its time divided by the time of the row's system",
     "bdb,lmdb,sqlite"},
    {"hints", "on|off|both", "setPageAccess() hints of btree", NULL},
    {"cache", "BYTES", "cache of systems that have one", "all data fit"},
    {"block", "BYTES", "page or block of the trees", NULL},
    {"checkpoint", "BYTES", "log between checkpoints, 0 never", NULL},
    {"sync-bytes", "BYTES", "a write of the yardstick sync", NULL},
    {"seed", "S", "of the keys", NULL},
    {0},
};

void
bench_insert_usage(void)
{
    puts(
        "All systems do the same steps with the same keys in the same order: records have\n"
        "64-bit keys and 512-byte values, and a step is one transaction.  The run is cut in\n"
        "slices; in each slice every system does its share, in rotating order.  At the end a\n"
        "new process checks every record of every system.\n");
    bench_options_help(options_help);
    puts("\nWorkloads:");
    for (const struct bench_workload *w = bench_workloads; w->name != NULL; w++)
        printf("  %-13s  %s\n", w->name, w->words);
    puts(
        "\n"
        "Columns: us/step is the wall-clock time of a slice over its steps, median of\n"
        "slices; mean us that of the whole run; p99 and max are of single steps; procs:\n"
        "8t is eight threads of one process, for a system that several processes cannot\n"
        "open; log bytes and traps are per step; per sync: steps for each fsync; writer us:\n"
        "of the process or thread that inserts beside a search-writer; bdb/this\n"
        "is Berkeley DB's time over this system's, median of slices (above 1: faster than\n"
        "Berkeley DB), and \"mean\" behind it the ratio of the means, likewise for each\n"
        "of --over; this/mmap is its time over that of the same tree without libxac,\n"
        "this/sync over the yardstick's.  \"-\": does not apply.");
}

/* over_width -- of the column "NAME/this". */
static int
over_width(const char *name)
{
    int n = (int)strlen(name) + 5;

    return n > 8 ? n : 8;
}

void
bench_insert_print_head(const struct bench_insert_options *o)
{
    struct utsname un;

    if (o->common.json)
        return;
    uname(&un);
    printf("$ %s\n", o->common.command);
    printf("libxac %s, Berkeley DB %s, %s %s, %ld cpus, %s, pages of %ld bytes\n",
           xac_version(), bdb_version(), un.sysname, un.release,
           sysconf(_SC_NPROCESSORS_ONLN), bench_fs_name(o->common.dir),
           sysconf(_SC_PAGESIZE));
    printf(
        "%llu steps, records of %u + %u bytes, seed %llu, %llu slices, blocks of %llu bytes, "
        "cache %llu MiB\n\n",
        (unsigned long long)o->count, BENCH_KEY_BYTES, BENCH_VALUE_BYTES,
        (unsigned long long)o->seed, (unsigned long long)o->slices,
        (unsigned long long)o->block_bytes, (unsigned long long)(o->cache_bytes >> 20));
    printf("%-22s %-13s %5s %5s %-8s %-5s %9s %9s %9s %9s %9s %8s %8s %7s %9s", "system",
           "workload", "group", "procs", "durable", "hints", "us/step", "mean us",
           "p99 us", "max us", "log bytes", "per sync", "retries", "traps", "writer us");
    for (unsigned i = 0; i < o->over.n; i++)
        printf(" %*s/this %6s", over_width(o->over.v[i]) - 5, o->over.v[i], "mean");
    printf(" %9s %9s\n", "this/mmap", "this/sync");
    fflush(stdout);
}

/* cell -- a number right-aligned, "-" if it does not apply. */
static void
cell(int width, int decimals, double v)
{
    if (v < 0)
        printf(" %*s", width, "-");
    else
        printf(" %*.*f", width, decimals, v);
}

/* name_key -- "us_per_insert_median" of "us_per_%s_median"; static. */
static const char *
name_key(const char *format, const char *unit)
{
    static char key[80];
    const char *at = strstr(format, "%s");

    snprintf(key, sizeof key, "%.*s%s%s", (int)(at - format), format, unit, at + 2);
    return key;
}

/* print_times -- of slices and single steps. */
static void
print_times(FILE *f, const struct bench_insert_options *o,
            const struct bench_insert_result *r)
{
    const char *unit = r->workload->unit;

    bench_json_num(f, name_key("us_per_%s_median", unit), r->us_median);
    bench_json_num(f, name_key("us_per_%s_mean", unit), r->us_mean);
    bench_json_num(f, name_key("us_per_%s_min", unit), r->us_min);
    bench_json_num(f, name_key("us_per_%s_max", unit), r->us_max);
    bench_json_nums(f, name_key("us_per_%s_slices", unit), r->slice_us, o->slices);
    bench_json_num(f, name_key("%s_us_p50", unit), r->p50_us);
    bench_json_num(f, name_key("%s_us_p99", unit), r->p99_us);
    bench_json_num(f, name_key("%s_us_max", unit), r->max_us);
    bench_json_num(f, name_key("log_bytes_per_%s", unit), r->log_bytes);
    bench_json_num(f, "log_bytes",
                   r->log_bytes < 0 ? -1 : r->log_bytes * (double)o->count);
    bench_json_num(f, name_key("fsyncs_per_%s", unit), r->syncs);
    bench_json_num(f, name_key("%ss_per_fsync", unit), r->per_sync);
    bench_json_num(f, name_key("traps_per_%s", unit), r->traps);
    bench_json_num(f, "us_per_insert_of_writer", r->writer_us);
}

/* print_kth -- the time of the k-th most expensive step, for k = 1, 2, 3, ..., ever wider. */
static void
print_kth(FILE *f, const struct bench_insert_result *r, uint64_t count)
{
    double rank[KTH_MAX], us[KTH_MAX];
    unsigned n = 0;

    for (uint64_t k = 1; k <= count && n < KTH_MAX; k += 1 + k / 12) {
        rank[n] = (double)k;
        us[n++] = r->ns[count - k] / 1e3;
    }
    bench_json_nums(f, "kth_rank", rank, n);
    bench_json_nums(f, "kth_us", us, n);
}

/* print_ratios -- beside the other systems of the run. */
static void
print_ratios(FILE *f, const struct bench_words *over, const struct bench_insert_result *r)
{
    for (unsigned i = 0; i < over->n; i++) {
        const char *name = over->v[i];
        const struct bench_insert_ratio *ratio = &r->over[i];

        bench_json_num(f, name_key("%s_time_over_this_median", name), ratio->median);
        bench_json_num(f, name_key("%s_time_over_this_min", name), ratio->min);
        bench_json_num(f, name_key("%s_time_over_this_max", name), ratio->max);
        bench_json_num(f, name_key("%s_time_over_this_mean", name), ratio->mean);
    }
    bench_json_num(f, "this_time_over_mmap_median", r->over_mmap);
    bench_json_num(f, "this_time_over_sync_median", r->over_sync);
}

/* print_settings -- what is needed to repeat it. */
static void
print_settings(FILE *f, const struct bench_insert_options *o)
{
    struct utsname un;

    uname(&un);
    bench_json_u64(f, "count", o->count);
    bench_json_u64(f, "loaded", o->loaded);
    bench_json_u64(f, "slices", o->slices);
    bench_json_u64(f, "seed", o->seed);
    bench_json_u64(f, "key_bytes", BENCH_KEY_BYTES);
    bench_json_u64(f, "value_bytes", BENCH_VALUE_BYTES);
    bench_json_u64(f, "block_bytes", o->block_bytes);
    bench_json_u64(f, "cache_bytes", o->cache_bytes);
    bench_json_u64(f, "checkpoint_bytes", o->checkpoint_bytes);
    bench_json_u64(f, "sync_bytes", o->sync_bytes);
    bench_json_str(f, "library_version", xac_version());
    bench_json_str(f, "bdb_version", bdb_version());
    bench_json_str(f, "kernel", un.release);
    bench_json_str(f, "machine", un.machine);
    bench_json_u64(f, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    bench_json_u64(f, "page_bytes", (uint64_t)sysconf(_SC_PAGESIZE));
    bench_json_str(f, "filesystem", bench_fs_name(o->common.dir));
    bench_json_str(f, "command", o->common.command);
}

/* print_json -- the whole result and what is needed to repeat it. */
static void
print_json(const struct bench_insert_options *o, const struct bench_insert_result *r)
{
    static const char *const keys[] = {[BENCH_KEYS_RANDOM] = "random",
                                       [BENCH_KEYS_SORTED] = "sorted",
                                       [BENCH_KEYS_PATHS] = "paths"};
    FILE *f = stdout;

    bench_json_begin(f);
    bench_json_str(f, "experiment", o->name);
    bench_json_str(f, "workload", r->workload->name);
    bench_json_str(f, "system", r->system->name);
    bench_json_u64(f, "processes", r->procs);
    bench_json_bool(f, "are_threads", (r->system->abilities & BENCH_THREADS) != 0);
    bench_json_bool(f, "durable", r->durable);
    bench_json_str(f, "keys", keys[o->keys]);
    bench_json_u64(f, "group", r->group);
    bench_json_bool(f, "warm", o->warm);
    if (r->system->abilities & BENCH_HINTS)
        bench_json_bool(f, "hints", r->hints);
    else
        bench_json_num(f, "hints", -1);
    print_times(f, o, r);
    bench_json_u64(f, "retries", r->retries);
    bench_json_num(f, name_key("retries_per_%s", r->workload->unit),
                   (double)r->retries / (double)o->count);
    if (o->kth)
        print_kth(f, r, o->count);
    print_ratios(f, &o->over, r);
    if (r->system->abilities & BENCH_KEEPS)
        bench_json_bool(f, "verified", true);
    else
        bench_json_num(f, "verified", -1);
    print_settings(f, o);
    bench_json_end(f);
}

void
bench_insert_print_row(const struct bench_insert_options *o,
                       const struct bench_insert_result *r)
{
    const char *hints = "-";
    char procs[16];

    if (o->common.json) {
        print_json(o, r);
        return;
    }
    if (r->system->abilities & BENCH_HINTS)
        hints = r->hints ? "on" : "off";
    snprintf(procs, sizeof procs, "%u%s", r->procs,
             r->procs > 1 && (r->system->abilities & BENCH_THREADS) ? "t" : "");
    printf("%-22s %-13s %5llu %5s %-8s %-5s", r->system->name, r->workload->name,
           (unsigned long long)r->group, procs, r->durable ? "yes" : "no", hints);
    cell(9, 2, r->us_median);
    cell(9, 2, r->us_mean);
    cell(9, 1, r->p99_us);
    cell(9, 0, r->max_us);
    cell(9, 1, r->log_bytes);
    cell(8, 2, r->per_sync);
    cell(8, 0, (double)r->retries);
    cell(7, 2, r->traps);
    cell(9, 2, r->writer_us);
    for (unsigned i = 0; i < o->over.n; i++) {
        cell(over_width(o->over.v[i]), 2, r->over[i].median);
        cell(6, 2, r->over[i].mean);
    }
    cell(9, 2, r->over_mmap);
    cell(9, 2, r->over_sync);
    putchar('\n');
    fflush(stdout);
}
