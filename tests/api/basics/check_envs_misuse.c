/* SPDX-License-Identifier: MIT */
/*
 * check_envs_misuse.c -- environments that are opened, used and closed wrongly (xac_env.h).
 *
 * GOAL    Wrong arguments are refused; a call that fails changes nothing, and keeps no descriptor;
 *         xac_close() closes unless a transaction or a view of another thread forbids it; the
 *         other environments of the process do not notice.
 * METHOD  One environment is misused in the way that the test names; then a commit in it, or in
 *         the next one with its name, must succeed.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac_env.h>

#include "env.h"

/* open_at -- with a file of one page, which has the name of the directory and ".db". */
static struct xac_env *
open_at(const char *dir, int flags, uint64_t **xp)
{
    char file[64];
    struct xac_options o;
    struct xac_env *env;

    xac_options_init(&o, sizeof o);
    o.flags = flags;
    env = xac_open(dir, &o);
    if (env == NULL)
        env_fail(__FILE__, __LINE__, "xac_open: %s", xac_last_error());
    (void)snprintf(file, sizeof file, "%s.db", dir);
    *xp = (uint64_t *)xac_mmap_in(env, file, env_page());
    must(*xp != MAP_FAILED);
    return env;
}

static void
increment(struct xac_env *env, uint64_t *x)
{
    int rc;

    do {
        must_ok(xac_begin_in(env));
        ++*x;
    } while ((rc = xac_end_in(env)) == XAC_ABORTED);
    must_rc(rc, XAC_COMMITTED);
}

static uint64_t
get(struct xac_env *env, const uint64_t *x)
{
    uint64_t value;

    must_ok(xac_begin_query_in(env));
    value = *x;
    must_ok(xac_end_query_in(env));
    return value;
}

/* use_anew -- an environment that this process has not open. */
static void
use_anew(const char *dir)
{
    uint64_t *x;
    struct xac_env *env = open_at(dir, XAC_DURABLE, &x);

    increment(env, x);
    must_ok(xac_close(env));
}

static void
must_not_open(const char *dir, const struct xac_options *o, int want)
{
    size_t n = file_count("/proc/self/fd", "");

    errno = 0;
    env_stale_message();
    must(xac_open(dir, o) == NULL);
    must_eq(errno, want);
    must(xac_last_error()[0] != '\0');
    must_eq(file_count("/proc/self/fd", ""), n);
}

/* ---- Arguments ------------------------------------------------------------------------- */

START_TEST(paths_that_cannot_be_are_refused)
{
    char longest[PATH_MAX + 10];

    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    must_not_open(NULL, NULL, EINVAL);
    must_not_open("", NULL, EINVAL);
    must_not_open(longest, NULL, ENAMETOOLONG);
    longest[NAME_MAX + 1] = '\0';
    must_not_open(longest, NULL, ENAMETOOLONG);
    must_not_open("no/such", NULL, ENOENT);
    file_write("file", 0, "x", 1);
    must_not_open("file", NULL, ENOTDIR);
    must_not_open("file/below", NULL, ENOTDIR);
    must_ok(symlink("loop", "loop"));
    must_not_open("loop", NULL, ELOOP);
}
END_TEST

START_TEST(options_that_cannot_be_are_refused)
{
    struct {
        struct xac_options o;
        uint64_t more[8]; /* of a program that is newer than the library */
    } newer;
    struct xac_options o;
    struct xac_env *env;

    xac_options_init(NULL, sizeof o); /* nothing */
    memset(&o, 0, sizeof o);
    xac_options_init(&o, 3); /* no room for a field */
    must_eq(o.size, 0);
    must_not_open("env", &o, EINVAL);
    xac_options_init(&o, sizeof o);
    o.reserved = 1;
    must_not_open("env", &o, EINVAL);
    xac_options_init(&o, sizeof o);
    o.size = SIZE_MAX; /* no structure is so large */
    must_not_open("env", &o, EINVAL);
    xac_options_init(&o, sizeof o);
    o.log_directory = "";
    must_not_open("env", &o, EINVAL);
    o.log_directory = "a\nb";
    must_not_open("env", &o, EINVAL);
    xac_options_init(&o, sizeof o);
    o.value[XAC_OPTIONS - 1] = 0;
    must_not_open("env", &o, EINVAL);
    xac_options_init(&newer.o, sizeof newer);
    must_eq(newer.more[7], XAC_OPTION_UNSET);
    newer.more[7] = 1;
    must_not_open("env", &newer.o, EINVAL);
    must(!file_exists("env"));
    newer.more[7] = XAC_OPTION_UNSET;
    env = xac_open("env", &newer.o);
    must(env != NULL);
    must_ok(xac_close(env));
}
END_TEST

static int
zero(void *arg)
{
    (void)arg;
    return 0;
}

/* refuse_all -- calls of all kinds without an environment, which name none. */
static void
refuse_all(void)
{
    uint64_t x = 0;
    char **names = NULL;
    size_t n = 0;

    must(xac_mmap_at_in(NULL, "x", 0, 1, 0) == MAP_FAILED && errno == EPERM);
    must(xac_mremap_in(NULL, &x, 1, 0) == MAP_FAILED && errno == EPERM);
    must_refuse(xac_munmap_in(NULL, "x"), XAC_ENOINIT);
    must_refuse(xac_munmap_at_in(NULL, &x), XAC_ENOINIT);
    must_refuse(xac_forget_in(NULL, "x"), XAC_ENOINIT);
    must(xac_view_in(NULL, &x) == MAP_FAILED && errno == EPERM);
    must_refuse(xac_unview_in(NULL, &x), XAC_ENOINIT);
    must_refuse(xac_transact_in(NULL, zero, NULL), XAC_ENOINIT);
    must_refuse(xac_set_page_access_in(NULL, &x, XAC_READ), XAC_ENOINIT);
    must_refuse(xac_set_range_access_in(NULL, &x, 1, XAC_READ), XAC_ENOINIT);
    must_refuse(xac_free_in(NULL, &x, &x), XAC_ENOINIT);
    must(xac_root_in(NULL, &x) == NULL && errno == EPERM);
    must_refuse(xac_heap_check_in(NULL, &x, NULL, 0), XAC_ENOINIT);
    must_refuse(xac_archive_in(NULL, &names, &n), XAC_ENOINIT);
    must_refuse(xac_backup_in(NULL, "copy"), XAC_ENOINIT);
}

START_TEST(wrong_arguments_are_refused_in_each_call)
{
    struct xac_stats stats;
    char **names = NULL;
    uint64_t *x, other = 0;
    struct xac_env *env = open_at("env", XAC_DURABLE, &x);
    size_t n = 0;

    refuse_all();
    must_refuse(xac_get_stats_in(NULL, &stats, sizeof stats), XAC_ENOINIT);
    must(xac_mmap_in(env, NULL, 1) == MAP_FAILED && errno == EINVAL);
    must(xac_mmap_in(env, "y", 0) == MAP_FAILED && errno == EINVAL);
    must(xac_mmap_in(env, "y", SIZE_MAX) == MAP_FAILED);
    must(!file_exists("y"));
    must(xac_mmap_at_in(env, "y", 1, 1, 0) == MAP_FAILED && errno == EINVAL);
    must(xac_mmap_at_in(env, "y", 0, 1, ~0) == MAP_FAILED && errno == EINVAL);
    must(xac_mremap_in(env, &other, 1, 0) == MAP_FAILED);
    must(xac_mremap_in(env, x, 0, 0) == MAP_FAILED && errno == EINVAL);
    must_refuse(xac_munmap_in(env, NULL), EINVAL);
    must_refuse(xac_munmap_at_in(env, NULL), XAC_ENOTMAPPED);
    must_refuse(xac_forget_in(env, NULL), EINVAL);
    must(xac_view_in(env, NULL) == MAP_FAILED);
    must_refuse(xac_unview_in(env, x), XAC_ENOTMAPPED);
    must_refuse(xac_transact_in(env, NULL, NULL), EINVAL);
    must_refuse(xac_get_stats_in(env, NULL, sizeof stats), EINVAL);
    must_refuse(xac_get_stats_in(env, &stats, 0), EINVAL);
    must_refuse(xac_archive_in(env, NULL, &n), EINVAL);
    must_refuse(xac_archive_in(env, &names, NULL), EINVAL);
    must_refuse(xac_backup_in(env, NULL), EINVAL);
    must_refuse(xac_set_option_in(env, 0, 0), EINVAL);
    must_refuse(xac_set_option_in(env, -1, 0), EINVAL);
    must_refuse(xac_set_option_in(env, INT_MAX, 0), EINVAL);
    increment(env, x);
    must_eq(get(env, x), 1);
    must_ok(xac_close(env));
}
END_TEST

/* ---- Closing at a wrong time ------------------------------------------------------------- */

struct closer {
    struct xac_env *env;
    uint64_t *x;
    int want;
};

static void *
close_in_thread(void *arg)
{
    const struct closer *c = (const struct closer *)arg;

    must_refuse(xac_close(c->env), c->want);
    return NULL;
}

static int
close_within(void *arg)
{
    const struct closer *c = (const struct closer *)arg;

    must_refuse(xac_close(c->env), XAC_EINTXN);
    ++*c->x;
    return 0;
}

static void
close_by_thread(struct closer *c)
{
    pthread_t t;

    must_ok(pthread_create(&t, NULL, close_in_thread, c));
    must_ok(pthread_join(t, NULL));
}

START_TEST(nobody_closes_inside_of_a_transaction)
{
    struct closer c = {.want = EBUSY};
    uint64_t *y, *view;
    struct xac_env *other = open_at("other", XAC_NONDURABLE, &y);

    c.env = open_at("env", XAC_DURABLE, &c.x);
    must_ok(xac_begin_in(c.env));
    must_refuse(xac_close(c.env), XAC_EINTXN);
    close_by_thread(&c);
    ++*c.x;
    must_ok(xac_begin_in(c.env));
    must_refuse(xac_close(c.env), XAC_EINTXN);
    must_rc(xac_end_in(c.env), XAC_PENDING);
    must_rc(xac_end_in(c.env), XAC_COMMITTED);
    must_ok(xac_begin_query_in(c.env));
    must_refuse(xac_close(c.env), XAC_EINTXN);
    close_by_thread(&c);
    must_ok(xac_end_query_in(c.env));
    must_ok(xac_transact_in(c.env, close_within, &c));
    must_eq(get(c.env, c.x), 2);
    view = (uint64_t *)xac_view_in(c.env, c.x);
    must(view != MAP_FAILED);
    close_by_thread(&c); /* this thread has views of its own */
    must_ok(xac_begin_in(c.env));
    must_refuse(xac_close(c.env), XAC_EINTXN);
    ++*view;
    must_rc(xac_end_in(c.env), XAC_COMMITTED);
    must_eq(get(c.env, view), 3);
    must_ok(xac_close(c.env)); /* with its own views */
    must_refuse(xac_close(c.env), XAC_ENOINIT);
    increment(other, y);
    must_ok(xac_close(other));
    must_eq(file_u64("env.db", 0), 3);
}
END_TEST

/* ---- Directories that go away -------------------------------------------------------------- */

START_TEST(directory_is_named_once)
{
    uint64_t *x;
    struct xac_env *env = open_at("env", XAC_DURABLE, &x);

    must_ok(mkdir("elsewhere", 0777));
    must_ok(chdir("elsewhere"));
    increment(env, x);
    must_ok(xac_checkpoint_in(env));
    increment(env, x);
    must_ok(xac_close(env));
    must(!file_exists("env"));
    must_eq(file_u64("../env.db", 0), 2);
}
END_TEST

START_TEST(another_directory_takes_the_name)
{
    uint64_t *x, *y;
    struct xac_env *env = open_at("env", XAC_DURABLE, &x), *second;

    increment(env, x);
    must_ok(rename("env", "moved"));
    second = xac_open("env", NULL);
    must(second != NULL);
    must(xac_mmap_in(second, "env.db", env_page()) == MAP_FAILED && errno == EBUSY);
    y = (uint64_t *)xac_mmap_in(second, "second.db", env_page());
    must(y != MAP_FAILED);
    increment(second, y);
    must_eq(get(second, y), 1);
    increment(env, x);
    must_eq(get(env, x), 2);
    must_not_open("moved", NULL, XAC_EALREADY);
    must_not_open("env", NULL, XAC_EALREADY);
    must_ok(xac_close(second));
    increment(env, x);
    must_ok(xac_close(env));
    must_eq(file_u64("env.db", 0), 3);
    must_eq(file_u64("second.db", 0), 1);
}
END_TEST

START_TEST(close_an_environment_whose_files_are_gone)
{
    uint64_t *x, *y;
    struct xac_env *other = open_at("other", XAC_NONDURABLE, &y);
    size_t n = file_count("/proc/self/fd", "");
    struct xac_env *env = open_at("env", _i == 0 ? XAC_DURABLE : XAC_NONDURABLE, &x);
    char command[] = "rm -rf env env.db";

    increment(env, x);
    must_ok(system(command));
    must(xac_close(env) != XAC_EINTXN); /* the process is detached, whatever it says */
    must_eq(file_count("/proc/self/fd", ""), n);
    increment(other, y);
    env = open_at("env", XAC_DURABLE, &x);
    must_eq(get(env, x), 0);
    increment(env, x);
    must_ok(xac_close(env));
    must_ok(xac_close(other));
}
END_TEST

/* ---- Children that cannot join --------------------------------------------------------------- */

/* close_named -- the descriptors of what has that name. */
static void
close_named(const char *name)
{
    char path[64], target[PATH_MAX];
    int n_closed = 0;

    for (int fd = 3; fd < 1 << 16; fd++) {
        ssize_t n;
        const char *last;

        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof target - 1);
        if (n <= 0)
            continue;
        target[n] = '\0';
        last = strrchr(target, '/');
        if (last != NULL && strcmp(last + 1, name) == 0) {
            must_ok(close(fd));
            n_closed++;
        }
    }
    must(n_closed > 0);
}

struct family {
    struct xac_env *env, *other;
    uint64_t *x, *y;
};

static void *
begin_in_thread(void *arg)
{
    const struct family *f = (const struct family *)arg;

    must(xac_begin_in(f->env) != 0);
    return NULL;
}

static void
join_without_file(void *arg)
{
    const struct family *f = (const struct family *)arg;
    pthread_t t;

    must_ok(rename("env.db", "hidden.db"));
    close_named("hidden.db");
    for (int i = 0; i < 3; i++) {
        must_refuse(xac_begin_in(f->env), XAC_EDESCRIPTOR);
        must_refuse(xac_end_in(f->env), XAC_ENOTXN);
    }
    must_ok(pthread_create(&t, NULL, begin_in_thread, arg));
    must_ok(pthread_join(t, NULL));
    increment(f->other, f->y);
    must_ok(rename("hidden.db", "env.db"));
    increment(f->env, f->x);
    must_eq(get(f->env, f->x), 2);
    must_ok(xac_close(f->env));
    must_ok(xac_close(f->other));
}

/* with_child -- two environments, and a child that uses them; then the parent does. */
static void
with_child(void (*fn)(void *), bool has_view)
{
    struct family f;
    struct xac_stats stats;

    f.env = open_at("env", XAC_DURABLE, &f.x);
    f.other = open_at("other", XAC_NONDURABLE, &f.y);
    if (has_view)
        f.x = (uint64_t *)xac_view_in(f.env, f.x);
    must(f.x != MAP_FAILED);
    increment(f.env, f.x);
    proc_run(fn, &f);
    must_ok(xac_begin_in(f.env)); /* cleans up */
    must_ok(xac_abort_in(f.env));
    must_rc(xac_end_in(f.env), XAC_ABORTED);
    must_ok(xac_get_stats_in(f.env, &stats, sizeof stats));
    must_eq(stats.participants, 1);
    increment(f.env, f.x);
    must_ok(xac_close(f.env));
    must_ok(xac_close(f.other));
    must_eq(file_u64("env.db", 0), 3);
}

START_TEST(child_that_fails_to_join_tries_again)
{
    with_child(join_without_file, _i == 1);
}
END_TEST

static void
close_without_directory(void *arg)
{
    const struct family *f = (const struct family *)arg;

    must_ok(rename("env", "hidden"));
    close_named("hidden");
    must_refuse(xac_begin_in(f->env), XAC_EDESCRIPTOR);
    must_refuse(xac_close(f->env), XAC_EDESCRIPTOR);
    increment(f->other, f->y);
    must_ok(rename("hidden", "env"));
    use_anew("env");
    must_ok(xac_close(f->other));
}

START_TEST(child_closes_what_it_cannot_join)
{
    with_child(close_without_directory, _i == 1);
}
END_TEST

static void
close_and_open(void *arg)
{
    const struct family *f = (const struct family *)arg;

    must_ok(xac_close(f->env)); /* never used here */
    use_anew("env");
    must_ok(xac_close(f->other));
}

START_TEST(child_closes_what_it_never_used)
{
    with_child(close_and_open, _i == 1);
}
END_TEST

/* ---- Many ------------------------------------------------------------------------------------ */

#define N_MANY 100

START_TEST(as_many_as_there_are_descriptors)
{
    struct xac_env *env[N_MANY];
    struct rlimit was, few = {.rlim_cur = 64};
    uint64_t *y[N_MANY];
    char name[32];
    size_t n_before = file_count("/proc/self/fd", "");
    int n = 0;

    must_ok(getrlimit(RLIMIT_NOFILE, &was));
    few.rlim_max = was.rlim_max;
    if (_i == 0)
        must_ok(setrlimit(RLIMIT_NOFILE, &few));
    for (; n < N_MANY; n++) {
        (void)snprintf(name, sizeof name, "env%d", n);
        env[n] = xac_open(name, NULL);
        if (env[n] == NULL)
            break;
        (void)snprintf(name, sizeof name, "file%d", n);
        y[n] = (uint64_t *)xac_mmap_in(env[n], name, env_page());
        must(y[n] != MAP_FAILED || (_i == 0 && errno == EMFILE));
    }
    must(_i == 0 ? n > 1 && n < N_MANY && errno == EMFILE : n == N_MANY);
    for (int i = 0; i < n; i++) {
        if (y[i] != MAP_FAILED)
            increment(env[i], y[i]);
    }
    for (int i = 0; i < n; i++)
        must_ok(xac_close(env[i]));
    must_eq(file_count("/proc/self/fd", ""), n_before);
    use_anew("env0");
    must_ok(setrlimit(RLIMIT_NOFILE, &was));
}
END_TEST

#define N_THREADS 4
#define N_ROUNDS  25

static void *
open_and_close(void *arg)
{
    char name[32];

    (void)snprintf(name, sizeof name, "env%d", (int)(intptr_t)arg);
    for (int i = 0; i < N_ROUNDS; i++) {
        uint64_t *x;
        struct xac_env *env = open_at(name, i % 2 ? XAC_DURABLE : XAC_NONDURABLE, &x);

        increment(env, x);
        must_eq(get(env, x), (uint64_t)i + 1);
        must_ok(xac_close(env));
    }
    return NULL;
}

static _Atomic uint64_t n_got;

/* open_the_same -- one thread at a time has it. */
static void *
open_the_same(void *arg)
{
    for (int i = 0; i < N_ROUNDS; i++) {
        struct xac_env *env = xac_open("same", NULL);

        if (env == NULL) {
            must_eq(errno, XAC_EALREADY);
            continue;
        }
        must_eq(word_load(&n_got), 0);
        word_store(&n_got, 1);
        word_store(&n_got, 0);
        must_ok(xac_close(env));
    }
    return arg;
}

START_TEST(threads_open_and_close)
{
    pthread_t t[N_THREADS];

    for (intptr_t i = 0; i < N_THREADS; i++)
        must_ok(pthread_create(&t[i], NULL, _i == 0 ? open_and_close : open_the_same,
                               (void *)i));
    for (int i = 0; i < N_THREADS; i++)
        must_ok(pthread_join(t[i], NULL));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("envs misuse");
    TCase *tc = env_tcase(s, "misuse", 120);

    tcase_add_test(tc, paths_that_cannot_be_are_refused);
    tcase_add_test(tc, options_that_cannot_be_are_refused);
    tcase_add_test(tc, wrong_arguments_are_refused_in_each_call);
    tcase_add_test(tc, nobody_closes_inside_of_a_transaction);
    tcase_add_test(tc, directory_is_named_once);
    tcase_add_test(tc, another_directory_takes_the_name);
    tcase_add_loop_test(tc, close_an_environment_whose_files_are_gone, 0, 2);
    tcase_add_loop_test(tc, child_that_fails_to_join_tries_again, 0, 2);
    tcase_add_loop_test(tc, child_closes_what_it_cannot_join, 0, 2);
    tcase_add_loop_test(tc, child_closes_what_it_never_used, 0, 2);
    tcase_add_loop_test(tc, as_many_as_there_are_descriptors, 0, 2);
    tcase_add_loop_test(tc, threads_open_and_close, 0, 2);
    return env_main(s);
}
