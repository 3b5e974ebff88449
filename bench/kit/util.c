/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/kit/util.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_COLUMNS 100u /* of bench_wrap() */

static bool progress_on;
static bool json_first;

static uint64_t
clock_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

uint64_t
bench_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t
bench_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void
bench_sleep_until(uint64_t ns)
{
    const struct timespec ts = {.tv_sec = (time_t)(ns / UINT64_C(1000000000)),
                                .tv_nsec = (long)(ns % UINT64_C(1000000000))};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

void
bench_pin(unsigned number, unsigned n)
{
    cpu_set_t allowed, one;
    unsigned seen = 0;

    /* One alone is best left where the scheduler, and its disk's interrupts, put it. */
    if (n < 2 || sched_getaffinity(0, sizeof allowed, &allowed) != 0
        || (unsigned)CPU_COUNT(&allowed) < n)
        return;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == number)
            CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

/* compare_double -- for qsort(3). */
static int
compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* compare_u32 -- for qsort(3). */
static int
compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

double
bench_median(const double *v, size_t n)
{
    double *copy = malloc(n * sizeof *copy);
    double m;

    if (copy == NULL || n == 0)
        abort();
    memcpy(copy, v, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, compare_double);
    m = n % 2 == 1 ? copy[n / 2] : (copy[n / 2 - 1] + copy[n / 2]) / 2;
    free(copy);
    return m;
}

void
bench_sort_u32(uint32_t *v, size_t n)
{
    qsort(v, n, sizeof *v, compare_u32);
}

uint32_t
bench_percentile(const uint32_t *sorted, size_t n, double percent)
{
    size_t rank = (size_t)ceil(percent / 100 * (double)n);

    return sorted[rank > 0 ? rank - 1 : 0];
}

/* mix64 -- finalizer of splitmix64 (Steele, Lea, Flood 2014): a bijection. */
static uint64_t
mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t
bench_key(uint64_t seed, uint64_t i)
{
    return mix64(mix64(seed) + (i + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

void
bench_key_encode(uint64_t key, unsigned char out[BENCH_KEY_BYTES])
{
    for (unsigned i = 0; i < BENCH_KEY_BYTES; i++)
        out[i] = (unsigned char)(key >> (56 - 8 * i));
}

uint64_t
bench_key_decode(const unsigned char in[BENCH_KEY_BYTES])
{
    uint64_t key = 0;

    for (unsigned i = 0; i < BENCH_KEY_BYTES; i++)
        key = key << 8 | in[i];
    return key;
}

void
bench_value_fill(uint64_t key, unsigned char out[BENCH_VALUE_BYTES])
{
    uint64_t word = mix64(key);

    for (unsigned i = 0; i < BENCH_VALUE_BYTES; i += 8) {
        word += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t w = word ^ (word >> 29);

        memcpy(out + i, &w, 8);
    }
}

bool
bench_parse_u64(const char *text, uint64_t *outp)
{
    char *end;
    unsigned shift = 0;
    unsigned long long v;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    v = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    switch (*end) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    default:
        break;
    }
    if (shift != 0)
        end++;
    if (*end != '\0' || v > UINT64_MAX >> shift)
        return false;
    *outp = (uint64_t)v << shift;
    return true;
}

int
bench_parse_number(const char *name, const char *text, uint64_t low, uint64_t high,
                   uint64_t *outp)
{
    uint64_t v;

    if (!bench_parse_u64(text, &v) || v < low || v > high)
        return bench_fail("--%s %s: a number from %llu to %llu is wanted", name, text,
                          (unsigned long long)low, (unsigned long long)high);
    *outp = v;
    return 0;
}

/* names_place -- is arg --dir or --out, perhaps abbreviated as getopt(3) allows, perhaps with "=..."? */
static bool
names_place(const char *arg)
{
    size_t len = strcspn(arg, "=");

    return len >= strlen("--di")
           && (strncmp(arg, "--dir", len) == 0 || strncmp(arg, "--out", len) == 0);
}

void
bench_join_command(char *out, size_t out_bytes, int argc, char **argv)
{
    size_t used = (size_t)snprintf(out, out_bytes, "xbench");

    for (int i = 0; i < argc && used < out_bytes; i++)
        if (!names_place(argv[i]))
            used += (size_t)snprintf(out + used, out_bytes - used, " %s", argv[i]);
        else if (strchr(argv[i], '=') == NULL)
            i++; /* the place is the next one */
}

void
bench_wrap(FILE *f, const char *text, unsigned column, unsigned indent)
{
    const char *gap = "";

    while (*text != '\0') {
        size_t n = strcspn(text, " ,");

        n += text[n] == ',';
        if (column + strlen(gap) + n > LINE_COLUMNS && column > indent) {
            fprintf(f, "\n%*s", (int)indent, "");
            column = indent;
            gap = "";
        }
        column += (unsigned)fprintf(f, "%s%.*s", gap, (int)n, text);
        gap = text[n] == ' ' ? " " : "";
        text += n + strlen(gap);
    }
    fputc('\n', f);
}

int
bench_fail(const char *fmt, ...)
{
    va_list ap;

    bench_progress_clear();
    fputs("xbench: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return 1;
}

void
bench_progress_enable(bool quiet)
{
    progress_on = !quiet && isatty(STDERR_FILENO);
}

void
bench_progress(const char *label, uint64_t done, uint64_t total)
{
    char bar[31];
    size_t filled;

    if (!progress_on || total == 0)
        return;
    filled = (size_t)(done * (sizeof bar - 1) / total);
    memset(bar, '.', sizeof bar - 1);
    memset(bar, '#', filled);
    bar[sizeof bar - 1] = '\0';
    fprintf(stderr, "\r[%s] %3u%% %-40.40s", bar, (unsigned)(done * 100 / total), label);
    fflush(stderr);
}

void
bench_progress_clear(void)
{
    if (progress_on)
        fprintf(stderr, "\r%80s\r", "");
}

/* remove_one -- callback of nftw(3); stops at the first failure. */
static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int
bench_remove_tree(const char *path)
{
    return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 ? 0 : errno;
}

int
bench_write_zeros(int fd, uint64_t at, uint64_t end)
{
    static const char zeros[1 << 16];

    while (at < end) {
        uint64_t left = end - at;
        ssize_t n = pwrite(fd, zeros, left < sizeof zeros ? (size_t)left : sizeof zeros,
                           (off_t)at);

        if (n <= 0)
            return n < 0 ? errno : EIO;
        at += (uint64_t)n;
    }
    return fsync(fd) == 0 ? 0 : errno;
}

int
bench_zero_file(const char *path, uint64_t bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc;

    if (fd < 0)
        return -1;
    rc = bench_write_zeros(fd, 0, bytes);
    if (rc != 0) {
        close(fd);
        errno = rc;
        return -1;
    }
    return fd;
}

size_t
bench_tree_bytes(uint64_t count, uint64_t entry_bytes, uint64_t block_bytes)
{
    /* Nodes split at random keys are 69% full on average; this allows for 41%. */
    uint64_t bytes = count * 5 * entry_bytes / 2;
    uint64_t unit = block_bytes < 65536 ? 65536 : block_bytes;

    return (size_t)((bytes + (UINT64_C(16) << 20) + unit - 1) / unit * unit);
}

void
bench_json_key(FILE *f, const char *key)
{
    fprintf(f, "%s\"%s\": ", json_first ? "" : ", ", key);
    json_first = false;
}

void
bench_json_begin(FILE *f)
{
    fputc('{', f);
    json_first = true;
}

void
bench_json_str(FILE *f, const char *key, const char *value)
{
    bench_json_key(f, key);
    fputc('"', f);
    for (const char *p = value; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20)
            fprintf(f, "\\u%04x", (unsigned)(unsigned char)*p);
        else if (*p == '"' || *p == '\\')
            fprintf(f, "\\%c", *p);
        else
            fputc(*p, f);
    }
    fputc('"', f);
}

void
bench_json_u64(FILE *f, const char *key, uint64_t value)
{
    bench_json_key(f, key);
    fprintf(f, "%llu", (unsigned long long)value);
}

void
bench_json_bool(FILE *f, const char *key, bool value)
{
    bench_json_key(f, key);
    fputs(value ? "true" : "false", f);
}

/* json_number -- a number, or null if it does not apply. */
static void
json_number(FILE *f, double value)
{
    if (!isfinite(value) || value < 0)
        fputs("null", f);
    else
        fprintf(f, "%.6g", value);
}

void
bench_json_num(FILE *f, const char *key, double value)
{
    bench_json_key(f, key);
    json_number(f, value);
}

void
bench_json_signed(FILE *f, const char *key, double value)
{
    bench_json_key(f, key);
    if (isfinite(value))
        fprintf(f, "%.6g", value);
    else
        fputs("null", f);
}

void
bench_json_nums(FILE *f, const char *key, const double *v, size_t n)
{
    bench_json_key(f, key);
    fputc('[', f);
    for (size_t i = 0; i < n; i++) {
        fputs(i == 0 ? "" : ", ", f);
        json_number(f, v[i]);
    }
    fputc(']', f);
}

void
bench_json_end(FILE *f)
{
    fputs("}\n", f);
    fflush(f);
}
