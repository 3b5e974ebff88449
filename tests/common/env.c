/* SPDX-License-Identifier: MIT */
/*
 * env.c -- see env.h.
 */
#include <config.h>

#include "env.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char base_dir[4096]; /* of this program; tests have directories below */
static char shm_dir[64];    /* its shared memory; empty: wherever it comes to lie */
static uint64_t run_seed = 20050101;
static pid_t runner; /* of the tests, each of which is a process of its own       */

size_t
env_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

uint64_t
env_seed(void)
{
    return run_seed;
}

bool
env_is_chosen(uint64_t i)
{
    return (i + run_seed) % ENV_DEAR == 0;
}

uint64_t
env_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

double
env_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    (void)remove(path);
    return 0;
}

/* remove_all -- a directory and what is below it. */
static void
remove_all(const char *dir)
{
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/*
 * shm_open_dir -- where the tests of this program make their shared memory: what those leave
 * behind that are killed goes with the directory.  Any user may use it, as /dev/shm.
 */
static void
shm_open_dir(void)
{
    if (getenv("XAC_SHM_DIR") != NULL || access("/dev/shm", W_OK) != 0)
        return;
    snprintf(shm_dir, sizeof shm_dir, "/dev/shm/xac-test-XXXXXX");
    if (mkdtemp(shm_dir) == NULL || chmod(shm_dir, 01777) != 0
        || setenv("XAC_SHM_DIR", shm_dir, 1) != 0) {
        perror(shm_dir);
        exit(EXIT_FAILURE);
    }
}

/* shm_clear -- what tests before this one have left. */
static void
shm_clear(void)
{
    struct dirent *e;
    DIR *d = shm_dir[0] != '\0' ? opendir(shm_dir) : NULL;

    while (d != NULL && (e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.')
            (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d != NULL)
        closedir(d);
}

uint64_t env_checking = XAC_CHECKING_STRICT;

static const char *const checking_names[] = {"strict", "fast", "trusted"};

void
env_announce(void)
{
    if (env_checking != XAC_CHECKING_TRUSTED)
        must(setenv("XAC_CHECKING", checking_names[env_checking], 1) == 0);
    env_checking = XAC_CHECKING_TRUSTED;
    must_ok(xac_set_option(XAC_OPT_CHECKING, env_checking));
}

/* checking_open -- XAC_CHECKING is what tests begin with; those that need another one, ask
   for it. */
static void
checking_open(void)
{
    const char *text = getenv("XAC_CHECKING");

    for (uint64_t i = 0; text != NULL && i < 3; i++) {
        if (strcmp(text, checking_names[i]) == 0)
            env_checking = i;
    }
    if (text != NULL)
        must_ok(xac_set_option(XAC_OPT_CHECKING, env_checking));
    unsetenv("XAC_CHECKING");
}

void
env_in_memory(void)
{
    if (access("/dev/shm", W_OK) == 0)
        (void)setenv("TMPDIR", "/dev/shm", 0);
}

void
env_open(void)
{
    const char *tmp = getenv("TMPDIR");

    runner = getpid();
    setvbuf(stdout, NULL, _IOLBF, 0);
    run_seed = env_number("XAC_SEED", run_seed);
    checking_open();
    printf("seed %" PRIu64 " (XAC_SEED)\n", run_seed);
    snprintf(base_dir, sizeof base_dir, "%s/xac-test-XXXXXX", tmp ? tmp : "/tmp");
    if (mkdtemp(base_dir) == NULL || chmod(base_dir, 0755) != 0 || chdir(base_dir) != 0) {
        perror(base_dir);
        exit(EXIT_FAILURE);
    }
    shm_open_dir();
}

void
env_close(void)
{
    if (chdir("/") == 0)
        remove_all(base_dir);
    if (shm_dir[0] != '\0')
        remove_all(shm_dir);
}

int
env_main(Suite *s)
{
    int failed;
    SRunner *sr = srunner_create(s);

    env_open();
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    env_close();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void
env_setup(void)
{
    char dir[sizeof base_dir + 16];

    if (getpid() != runner) /* CK_FORK=no: a test is no process of its own */
        proc_end_with(runner);
    shm_clear();
    snprintf(dir, sizeof dir, "%s/t-XXXXXX", base_dir);
    must(mkdtemp(dir) != NULL);
    must(chmod(dir, 0755) == 0);
    must(chdir(dir) == 0);
    if (getenv("XAC_POLICY") != NULL) /* a test that chooses, does so after this */
        must_ok(xac_set_option(XAC_OPT_POLICY, env_number("XAC_POLICY", 0)));
}

TCase *
env_tcase_with(Suite *s, const char *name, double timeout_s, void (*setup)(void))
{
    TCase *tc = tcase_create(name);

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_set_timeout(tc, timeout_s);
    suite_add_tcase(s, tc);
    return tc;
}

TCase *
env_tcase(Suite *s, const char *name, double timeout_s)
{
    return env_tcase_with(s, name, timeout_s, env_setup);
}

void
env_must_rc(const char *file, int line, const char *call, int got, int want)
{
    if (got != want) {
        env_fail(file, line, "%s is %d (%s), not %d (%s); last error: %s", call, got,
                 xac_strerror(got), want, xac_strerror(want), xac_last_error());
    }
}

/*
 * Make the latest failure one that no test looks for, so that must_refuse() can tell
 * whether the call under test has left words of its own.
 */
#define STALE_OPTION (-12345)
static char stale_message[512];

void
env_stale_message(void)
{
    int rc = xac_set_option(STALE_OPTION, 0);

    if (rc != EINVAL)
        env_fail(__FILE__, __LINE__, "xSetOption of an unknown option: %d", rc);
    snprintf(stale_message, sizeof stale_message, "%s", xac_last_error());
}

void
env_must_refuse(const char *file, int line, const char *call, int got, int want)
{
    env_must_rc(file, line, call, got, want);
    if (*xac_last_error() == '\0')
        env_fail(file, line, "%s: no words in xLastError()", call);
    if (strcmp(xac_last_error(), stale_message) == 0)
        env_fail(file, line, "%s: xLastError() speaks of an older failure: %s", call,
                 stale_message);
    if (*xac_strerror(got) == '\0')
        env_fail(file, line, "%s: no text for %d", call, got);
}

/* ---- the library, in short ------------------------------------------------------- */

void
env_init(int flags)
{
    must_ok(xac_set_option(XAC_OPT_CHECKING, env_checking));
    must_ok(xac_init(ENV_DIR, flags));
}

void *
env_attach(int flags, size_t n_pages)
{
    void *base;

    env_init(flags);
    base = xac_mmap(ENV_FILE, n_pages * env_page());
    if (base == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xac_last_error());
    return base;
}

/* What a process that keeps others company does. */
struct company {
    struct env_company known;
    void (*attach)(void *arg);
    void (*detach)(void *arg);
    void *arg;
};

static void
keep_company(void *arg)
{
    const struct company *c = (const struct company *)arg;

    c->attach(c->arg);
    word_store(c->known.word, 1);
    proc_await(c->known.word, 2, UINT32_MAX);
    c->detach(c->arg);
}

struct env_company
env_company_begin(void (*attach)(void *arg), void (*detach)(void *arg), void *arg)
{
    struct company c = {.attach = attach, .detach = detach, .arg = arg};

    c.known.word = (_Atomic uint64_t *)proc_shared(sizeof *c.known.word);
    c.known.pid = proc_spawn(keep_company, &c);
    proc_await(c.known.word, 1, 20);
    return c.known;
}

void
env_company_end(const struct env_company *c)
{
    word_store(c->word, 2);
    proc_join(c->pid);
}

struct companion {
    int flags;
    size_t n_pages;
};

static void
attach_companion(void *arg)
{
    const struct companion *c = (const struct companion *)arg;

    (void)env_get((const uint64_t *)env_attach(c->flags, c->n_pages));
}

static void
detach_companion(void *arg)
{
    (void)arg;
    env_detach();
}

pid_t
env_companion(int flags, size_t n_pages)
{
    struct companion c = {.flags = flags, .n_pages = n_pages};

    return env_company_begin(attach_companion, detach_companion, &c).pid;
}

void
env_without_frames(const char *why)
{
    if (env_number("XAC_FRAMES", 0) == 0)
        return;
    printf("without frames: %s\n", why);
    must_ok(xac_set_option(XAC_OPT_FRAMES, 0));
}

void
env_let_overlap(void)
{
    uint64_t policy = env_number("XAC_POLICY", XAC_POLICY_OLDEST_WINS);

    must_ok(xac_set_option(XAC_OPT_POLICY, policy == XAC_POLICY_SERIAL
                                               ? XAC_POLICY_OLDEST_WINS
                                               : policy));
}

void
env_region(const char *dir, char path[4200])
{
    char lock[300], line[3800] = "";
    FILE *f;

    (void)snprintf(lock, sizeof lock, "%s/xac.lock", dir);
    f = fopen(lock, "re");
    must(f != NULL && fgets(line, sizeof line, f) != NULL);
    (void)fclose(f);
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '/')
        (void)snprintf(path, 4200, "%s", line);
    else
        (void)snprintf(path, 4200, "%s/%s", dir, line);
}

void
env_drop_region(const char *dir)
{
    char path[4200], beside[4300];
    struct stat st;

    (void)snprintf(beside, sizeof beside, "%s/xac.lock", dir);
    if (stat(beside, &st) != 0 || st.st_size == 0)
        return;
    env_region(dir, path);
    (void)snprintf(beside, sizeof beside, "%s.frames", path);
    if (path[0] == '/') {
        (void)unlink(path);
        (void)unlink(beside);
    }
}

void
env_detach(void)
{
    must_ok(xac_shutdown());
}

uint64_t *
env_map_at(size_t first, size_t n)
{
    void *p = xac_mmap_at(ENV_FILE, first * env_page(), n * env_page(), 0);

    if (p == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmapAt: %s", xac_last_error());
    return (uint64_t *)p;
}

void
env_increment(uint64_t *cell)
{
    int rc;

    do {
        must_ok(xac_begin());
        *(volatile uint64_t *)cell += 1;
        rc = xac_end();
    } while (rc == XAC_ABORTED);
    must_rc(rc, XAC_COMMITTED);
}

struct xac_stats
env_stats(void)
{
    struct xac_stats s;

    must_ok(xStats(&s, sizeof s));
    return s;
}

uint64_t
env_traps(void)
{
    struct xac_stats s = env_stats();

    return s.traps_read + s.traps_write;
}

void
env_put(uint64_t *cell, uint64_t value)
{
    int rc;

    do {
        must_ok(xac_begin());
        *(volatile uint64_t *)cell = value;
        rc = xac_end();
    } while (rc == XAC_ABORTED);
    must_rc(rc, XAC_COMMITTED);
}

uint64_t
env_get(const uint64_t *cell)
{
    uint64_t value;

    must_ok(xac_begin_query());
    value = *(const volatile uint64_t *)cell;
    must_ok(xac_end_query());
    return value;
}

/* ---- files ---------------------------------------------------------------------- */

static int
open_or_fail(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0666);

    if (fd < 0)
        env_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
    return fd;
}

void
file_write(const char *path, uint64_t offset, const void *data, size_t n)
{
    int fd = open_or_fail(path, O_WRONLY | O_CREAT);

    must(pwrite(fd, data, n, (off_t)offset) == (ssize_t)n);
    close(fd);
}

void
file_read(const char *path, uint64_t offset, void *data, size_t n)
{
    int fd = open_or_fail(path, O_RDONLY);
    size_t done = 0;

    while (done < n) {
        ssize_t got = pread(fd, (char *)data + done, n - done, (off_t)(offset + done));

        if (got <= 0)
            env_fail(__FILE__, __LINE__, "%s: short at %zu", path, done);
        done += (size_t)got;
    }
    close(fd);
}

uint64_t
file_u64(const char *path, uint64_t offset)
{
    uint64_t value;

    file_read(path, offset, &value, sizeof value);
    return value;
}

uint64_t
file_size(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        env_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
    return (uint64_t)st.st_size;
}

bool
file_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

size_t
file_count(const char *dir, const char *prefix)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    size_t n = 0;

    must(d != NULL);
    while ((e = readdir(d)) != NULL)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    (void)closedir(d);
    return n;
}

struct image_file {
    char name[256];
    bool is_dir;
    size_t size;
    unsigned char *bytes;
};

struct image {
    size_t count;
    struct image_file *files;
};

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct image_file *)a)->name,
                  ((const struct image_file *)b)->name);
}

static void
image_add(struct image *im, const char *dir, const char *name)
{
    char path[4096];
    struct stat st;
    struct image_file *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    must(lstat(path, &st) == 0);
    im->files = realloc(im->files, (im->count + 1) * sizeof *im->files);
    must(im->files != NULL);
    f = &im->files[im->count++];
    memset(f, 0, sizeof *f);
    snprintf(f->name, sizeof f->name, "%s", name);
    f->is_dir = S_ISDIR(st.st_mode);
    if (f->is_dir)
        return;
    f->size = (size_t)st.st_size;
    f->bytes = malloc(f->size + 1);
    must(f->bytes != NULL);
    file_read(path, 0, f->bytes, f->size);
}

struct image *
image_take(const char *dir)
{
    struct image *im = calloc(1, sizeof *im);
    DIR *d = opendir(dir);
    struct dirent *e;

    must(im != NULL);
    if (d == NULL)
        env_fail(__FILE__, __LINE__, "%s: %s", dir, strerror(errno));
    while ((e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            image_add(im, dir, e->d_name);
    }
    closedir(d);
    if (im->count != 0)
        qsort(im->files, im->count, sizeof *im->files, by_name);
    return im;
}

void
image_free(struct image *im)
{
    for (size_t i = 0; i < im->count; i++)
        free(im->files[i].bytes);
    free(im->files);
    free(im);
}

/* The next file that counts: the lock file does not. */
static const struct image_file *
image_next(const struct image *im, size_t *i)
{
    while (*i < im->count && strcmp(im->files[*i].name, "xac.lock") == 0)
        (*i)++;
    return *i < im->count ? &im->files[(*i)++] : NULL;
}

const char *
image_difference(const struct image *a, const struct image *b)
{
    static char text[512];
    const struct image_file *fa, *fb;
    size_t i = 0, j = 0;

    for (;;) {
        fa = image_next(a, &i);
        fb = image_next(b, &j);
        if (fa == NULL && fb == NULL)
            return NULL;
        if (fb == NULL || (fa != NULL && strcmp(fa->name, fb->name) < 0)) {
            snprintf(text, sizeof text, "%s is gone", fa->name);
            return text;
        }
        if (fa == NULL || strcmp(fa->name, fb->name) > 0) {
            snprintf(text, sizeof text, "%s is new", fb->name);
            return text;
        }
        if (fa->size != fb->size) {
            snprintf(text, sizeof text, "%s: size was %zu, is %zu", fa->name, fa->size,
                     fb->size);
            return text;
        }
        for (size_t k = 0; k < fa->size; k++) {
            if (fa->bytes[k] != fb->bytes[k]) {
                snprintf(text, sizeof text, "%s: byte %zu changed", fa->name, k);
                return text;
            }
        }
    }
}

void
image_restore(const struct image *im, const char *dir)
{
    char path[4096];
    struct image *now = image_take(dir);

    for (size_t i = 0; i < now->count; i++) {
        if (bsearch(&now->files[i], im->files, im->count, sizeof *im->files, by_name))
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, now->files[i].name);
        must(unlink(path) == 0);
    }
    image_free(now);
    for (size_t i = 0; i < im->count; i++) {
        if (im->files[i].is_dir)
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, im->files[i].name);
        file_write(path, 0, im->files[i].bytes, im->files[i].size);
        must(truncate(path, (off_t)im->files[i].size) == 0);
    }
}

void
env_must_unchanged(const char *file, int line, const struct image *im, const char *dir)
{
    struct image *now = image_take(dir);
    const char *difference = image_difference(im, now);

    if (difference != NULL)
        env_fail(file, line, "%s was changed: %s", dir, difference);
    image_free(now);
}

/* ---- random numbers -------------------------------------------------------------- */

uint64_t
rnd_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t
rnd_below(uint64_t *state, uint64_t n)
{
    return rnd_next(state) % n;
}
