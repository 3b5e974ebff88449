/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "insert.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#ifdef HAVE_BDB
# include <db.h>
#endif

#include "util.h"

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

/* xac_version -- of the header this program was compiled with. */
static const char *
xac_version(void)
{
    static char text[32];

    snprintf(text, sizeof text, "%d.%d.%d", XAC_VERSION_MAJOR, XAC_VERSION_MINOR,
             XAC_VERSION_PATCH);
    return text;
}

void
bench_insert_usage(void)
{
    puts(
        "usage: xbench insert [OPTION...]\n"
        "\n"
        "Inserts records with random 64-bit keys and 512-byte values, each insert one\n"
        "transaction.  All systems get the same keys in the same order.  The run is cut\n"
        "in slices; in each slice every system inserts its share, in rotating order.\n"
        "At the end a new process checks every record of every system.\n"
        "\n"
        "  --durable | --nondurable | --both   default --durable\n"
        "  --procs LIST       numbers of processes, e.g. 1,2; default 1\n"
        "  --count N          records; default 20000\n"
        "  --slices K         default 9\n"
        "  --systems LIST     default all; see xbench list\n"
        "  --hints on|off|both  setPageAccess() hints of btree; default on\n"
        "  --cache BYTES      cache of systems that have one; default: all data fit\n"
        "  --block BYTES      page or block of the trees; default 4096\n"
        "  --checkpoint BYTES log between checkpoints, 0 never; default 64M\n"
        "  --sync-bytes BYTES per write of the yardstick sync; default 700\n"
        "  --seed S           default 1\n"
        "  --dir DIR          where to put the files, in a directory that is removed\n"
        "                     at the end; default the current directory\n"
        "  --json             one JSON object per measurement\n"
        "  --quiet            no progress bar\n"
        "  --help\n"
        "\n"
        "Columns: us/insert is the wall-clock time of a slice over its inserts, median\n"
        "of slices; p99 and max are of single inserts; log bytes and traps are per insert;\n"
        "per sync: inserts for each fsync; bdb/this is Berkeley DB's time over this\n"
        "system's, median of slices (above 1: faster than Berkeley DB); this/sync is\n"
        "its time over the yardstick's.  \"-\": does not apply.");
}

void
bench_insert_print_head(const struct bench_insert_options *o)
{
    struct utsname un;

    if (o->json)
        return;
    uname(&un);
    printf("$ %s\n", o->command);
    printf("libxac %s, Berkeley DB %s, %s %s, %ld cpus, %s, pages of %ld bytes\n",
           xac_version(), bdb_version(), un.sysname, un.release,
           sysconf(_SC_NPROCESSORS_ONLN), bench_fs_name(o->dir), sysconf(_SC_PAGESIZE));
    printf("%llu records of %u + %u bytes, seed %llu, %llu slices, blocks of %llu bytes, "
           "cache %llu MiB\n\n",
           (unsigned long long)o->count, BENCH_KEY_BYTES, BENCH_VALUE_BYTES,
           (unsigned long long)o->seed, (unsigned long long)o->slices,
           (unsigned long long)o->block_bytes,
           (unsigned long long)(o->cache_bytes >> 20));
    printf("%-10s %5s %-8s %-5s %10s %9s %9s %9s %8s %8s %7s %9s %9s\n", "system",
           "procs", "durable", "hints", "us/insert", "p99 us", "max us", "log bytes",
           "per sync", "retries", "traps", "bdb/this", "this/sync");
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

/* print_json -- the whole result and what is needed to repeat it. */
static void
print_json(const struct bench_insert_options *o, const struct bench_insert_result *r)
{
    FILE *f = stdout;
    struct utsname un;

    uname(&un);
    bench_json_begin(f);
    bench_json_str(f, "experiment", "insert");
    bench_json_str(f, "system", r->system->name);
    bench_json_u64(f, "processes", r->procs);
    bench_json_bool(f, "durable", r->durable);
    if (r->system->abilities & BENCH_HINTS)
        bench_json_bool(f, "hints", r->hints);
    else
        bench_json_num(f, "hints", -1);
    bench_json_num(f, "us_per_insert_median", r->us_median);
    bench_json_num(f, "us_per_insert_mean", r->us_mean);
    bench_json_num(f, "us_per_insert_min", r->us_min);
    bench_json_num(f, "us_per_insert_max", r->us_max);
    bench_json_nums(f, "us_per_insert_slices", r->slice_us, o->slices);
    bench_json_num(f, "insert_us_p50", r->p50_us);
    bench_json_num(f, "insert_us_p99", r->p99_us);
    bench_json_num(f, "insert_us_max", r->max_us);
    bench_json_num(f, "log_bytes_per_insert", r->log_bytes);
    bench_json_num(f, "fsyncs_per_insert", r->syncs);
    bench_json_num(f, "inserts_per_fsync", r->per_sync);
    bench_json_num(f, "traps_per_insert", r->traps);
    bench_json_u64(f, "retries", r->retries);
    bench_json_num(f, "bdb_time_over_this_median", r->ratio);
    bench_json_num(f, "bdb_time_over_this_min", r->ratio_min);
    bench_json_num(f, "bdb_time_over_this_max", r->ratio_max);
    bench_json_num(f, "this_time_over_sync_median", r->over_sync);
    if (r->system->abilities & BENCH_KEEPS)
        bench_json_bool(f, "verified", true);
    else
        bench_json_num(f, "verified", -1);
    bench_json_u64(f, "count", o->count);
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
    bench_json_str(f, "filesystem", bench_fs_name(o->dir));
    bench_json_str(f, "command", o->command);
    bench_json_end(f);
}

void
bench_insert_print_row(const struct bench_insert_options *o,
                       const struct bench_insert_result *r)
{
    const char *hints = "-";

    if (o->json) {
        print_json(o, r);
        return;
    }
    if (r->system->abilities & BENCH_HINTS)
        hints = r->hints ? "on" : "off";
    printf("%-10s %5u %-8s %-5s", r->system->name, r->procs, r->durable ? "yes" : "no",
           hints);
    cell(10, 2, r->us_median);
    cell(9, 1, r->p99_us);
    cell(9, 0, r->max_us);
    cell(9, 1, r->log_bytes);
    cell(8, 2, r->per_sync);
    cell(8, 0, (double)r->retries);
    cell(7, 2, r->traps);
    cell(9, 2, r->ratio);
    cell(9, 2, r->over_sync);
    putchar('\n');
    fflush(stdout);
}
