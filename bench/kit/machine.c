/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/kit/machine.h"

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __GLIBC__
# include <gnu/libc-version.h>
#endif

#include "bench/kit/util.h"

#define WORDS        128u /* bytes of what a file of the kernel says                   */
#define CACHES       8u   /* of one processor, at most                                 */
#define SECTOR_BYTES 512u /* in which /sys/block counts                                */
#define BTRFS        0x9123683eul /* of statfs(2)                                      */

#ifdef __clang__
# define COMPILER "clang " __clang_version__
#else
# define COMPILER "gcc " __VERSION__
#endif

/* read_words -- the first line of a file, without spaces at its end; "" if there is none. */
static const char *read_words(char out[WORDS], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static const char *
read_words(char out[WORDS], const char *format, ...)
{
    char path[PATH_MAX];
    va_list args;
    FILE *f;

    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    f = fopen(path, "re");
    if (f == NULL || fgets(out, WORDS, f) == NULL)
        out[0] = '\0';
    if (f != NULL)
        fclose(f);
    for (size_t n = strlen(out); n > 0 && (out[n - 1] == '\n' || out[n - 1] == ' '); n--)
        out[n - 1] = '\0';
    return out;
}

/* add -- to words of so many bytes, behind a comma if there are some already. */
static void add(char *words, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void
add(char *words, size_t size, const char *format, ...)
{
    size_t n = strlen(words);
    va_list args;

    n += (size_t)snprintf(words + n, size - n, "%s", n > 0 ? ", " : "");
    va_start(args, format);
    if (n < size)
        vsnprintf(words + n, size - n, format, args);
    va_end(args);
}

/* ---- The processor --------------------------------------------------------------------- */

/* cpu_words -- what /proc/cpuinfo says of the first processor behind "name :"; "" if nothing. */
static void
cpu_words(const char *name, char out[WORDS])
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];

    out[0] = '\0';
    while (out[0] == '\0' && f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');

        if (colon != NULL && strncmp(line, name, strlen(name)) == 0)
            (void)sscanf(colon, ": %127[^\n]", out);
    }
    if (f != NULL)
        fclose(f);
}

/* caches -- of the first processor: "L1 Data 48K, ...". */
static void
caches(char *out, size_t size)
{
    static const char dir[] = "/sys/devices/system/cpu/cpu0/cache/index";

    out[0] = '\0';
    for (unsigned i = 0; i < CACHES; i++) {
        char level[WORDS], type[WORDS], bytes[WORDS];

        read_words(level, "%s%u/level", dir, i);
        read_words(type, "%s%u/type", dir, i);
        read_words(bytes, "%s%u/size", dir, i);
        if (level[0] != '\0' && bytes[0] != '\0')
            add(out, size, "L%s %s %s", level, type, bytes);
    }
}

/* ---- Disk and file system ---------------------------------------------------------------- */

const char *
bench_fs_name(const char *path)
{
    static char type[32];
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[PATH_MAX];
    bool found = false;
    struct statfs fs;
    struct stat st;

    /* "36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw": proc_pid_mountinfo(5) */
    while (!found && f != NULL && stat(path, &st) == 0
           && fgets(line, sizeof line, f) != NULL) {
        const char *dash = strstr(line, " - ");
        unsigned major_number, minor_number;

        found = dash != NULL
                && sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) == 2
                && makedev(major_number, minor_number) == st.st_dev
                && sscanf(dash, " - %31s", type) == 1;
    }
    if (f != NULL)
        fclose(f);
    if (found)
        return type;
    if (statfs(path, &fs) != 0)
        return "unknown";
    if ((unsigned long)fs.f_type == BTRFS) /* its files have a device that no mount has */
        return "btrfs";
    snprintf(type, sizeof type, "0x%lx", (unsigned long)fs.f_type);
    return type;
}

/* disk -- that holds path: "sda, 932 GiB, Model, driver sd, cache write back"; "": no block device that we see. */
static void
disk(const char *path, char *out, size_t size)
{
    char link[64], dir[PATH_MAX], driver[PATH_MAX], file[PATH_MAX + 32], words[WORDS];
    struct stat st;

    out[0] = '\0';
    if (stat(path, &st) != 0)
        return;
    snprintf(link, sizeof link, "/sys/dev/block/%u:%u", major(st.st_dev),
             minor(st.st_dev));
    if (realpath(link, dir) == NULL)
        return;
    snprintf(file, sizeof file, "%s/partition", dir);
    if (access(file, F_OK) == 0) /* its disk is the folder above */
        *strrchr(dir, '/') = '\0';
    add(out, size, "%s", strrchr(dir, '/') + 1);
    if (read_words(words, "%s/size", dir)[0] != '\0')
        add(out, size, "%.0f GiB",
            (double)strtoull(words, NULL, 10) * SECTOR_BYTES / (double)(1 << 30));
    if (read_words(words, "%s/device/model", dir)[0] != '\0')
        add(out, size, "%s", words);
    snprintf(file, sizeof file, "%s/device/driver", dir);
    if (realpath(file, driver) != NULL)
        add(out, size, "driver %s", strrchr(driver, '/') + 1);
    if (read_words(words, "%s/queue/write_cache", dir)[0] != '\0')
        add(out, size, "cache %s", words);
}

/* ---- All of it ------------------------------------------------------------------------------- */

void
bench_machine_print(FILE *f, const char *path)
{
    char words[4 * WORDS];
    struct utsname un;

    uname(&un);
    cpu_words("model name", words);
    bench_json_str(f, "cpu", words);
    bench_json_u64(f, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    cpu_words("cpu MHz", words);
    bench_json_num(f, "cpu_mhz", words[0] != '\0' ? strtod(words, NULL) : -1);
    caches(words, sizeof words);
    bench_json_str(f, "cpu_caches", words);
    bench_json_u64(f, "memory_bytes",
                   (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    bench_json_u64(f, "page_bytes", (uint64_t)sysconf(_SC_PAGESIZE));
    disk(path, words, sizeof words);
    bench_json_str(f, "disk", words);
    bench_json_str(f, "file_system", bench_fs_name(path));
    bench_json_str(f, "kernel", un.release);
    bench_json_str(f, "machine", un.machine);
#ifdef __GLIBC__
    snprintf(words, sizeof words, "glibc %s", gnu_get_libc_version());
    bench_json_str(f, "c_library", words);
#endif
    bench_json_str(f, "compiler", COMPILER);
}
