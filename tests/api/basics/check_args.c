/* SPDX-License-Identifier: MIT */
/*
 * check_args.c -- bad arguments and calls out of order.
 *
 * GOAL    each is refused with the code and the words that xac.h promises, changes nothing
 *         on disk, and leaves the process able to go on.
 * METHOD  the public header only; the directory is compared byte by byte before and after.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"

#define NOBODY 65534

/* xMmap() as a call that returns a code. */
static int
map(const char *name, size_t length)
{
    void *base;

    errno = 0;
    base = xMmap(name, length);
    if (base != MAP_FAILED)
        return 0;
    return errno != 0 ? errno : -1;
}

/* ---- before xInit, after xShutdown ------------------------------------------------ */

static void
refuse_everything(void)
{
    struct xac_conflict conflict;
    struct xac_stats stats;
    char **names;
    size_t count;
    int local;

    must_refuse(xbegin(), XAC_ENOINIT);
    must_refuse(xend(), XAC_ENOINIT);
    must_refuse(xValidate(), XAC_ENOINIT);
    must_refuse(xAbort(), XAC_ENOINIT);
    must_refuse(xbeginQuery(), XAC_ENOINIT);
    must_refuse(xendQuery(), XAC_ENOINIT);
    must_refuse(setPageAccess(&local, READ), XAC_ENOINIT);
    must_refuse(map(ENV_FILE, env_page()), EPERM);
    must_refuse(xMunmap(ENV_FILE), XAC_ENOINIT);
    must_refuse(xCheckpoint(), XAC_ENOINIT);
    must_refuse(xArchive(&names, &count), XAC_ENOINIT);
    must_refuse(xConflict(&conflict, sizeof conflict), XAC_ENOINIT);
    must_refuse(xStats(&stats, sizeof stats), XAC_ENOINIT);
    must_refuse(xShutdown(), XAC_ENOINIT);
}

START_TEST(version_is_told_before_init)
{
    char header[64];

    (void)snprintf(header, sizeof header, "%d.%d.%d", XAC_VERSION_MAJOR,
                   XAC_VERSION_MINOR, XAC_VERSION_PATCH);
    must(strcmp(xac_version(), header) == 0);
    must_eq(xac_version_number(), XAC_VERSION_NUMBER);
}
END_TEST

START_TEST(refuse_calls_before_init)
{
    refuse_everything();
    must(!file_exists(ENV_FILE));
}
END_TEST

START_TEST(refuse_calls_after_shutdown)
{
    uint64_t *x = env_attach(NONDURABLE, 1);

    env_put(x, 7);
    env_detach();
    refuse_everything();
    must_eq(file_u64(ENV_FILE, 0), 7);
    x = env_attach(NONDURABLE, 1);
    must_eq(env_get(x), 7);
    env_detach();
}
END_TEST

START_TEST(refuse_calls_after_failed_init)
{
    must_refuse(xInit("no/such/parent", NONDURABLE), ENOENT);
    refuse_everything();
}
END_TEST

/* ---- xInit -------------------------------------------------------------------------- */

START_TEST(init_refuses_bad_arguments)
{
    struct image *before = image_take(".");

    must_refuse(xInit(NULL, NONDURABLE), EINVAL);
    must_refuse(xInit("", NONDURABLE), EINVAL);
    must_refuse(xInit(NULL, DURABLE), EINVAL);
    must_refuse(xInit(ENV_DIR, XAC_READONLY | XAC_DURABLE), EINVAL);
    must_refuse(xInit(ENV_DIR, -1), EINVAL);
    must_refuse(xInit(ENV_DIR, 0x10001), EINVAL);
    must_refuse(xInit("missing/" ENV_DIR, DURABLE), ENOENT);
    must_unchanged(before, ".");
    image_free(before);
}
END_TEST

START_TEST(init_refuses_a_file_as_directory)
{
    struct image *before;

    file_write("plain", 0, "text", 4);
    before = image_take(".");
    must_refuse(xInit("plain", DURABLE), ENOTDIR);
    must_refuse(xInit("plain/below", DURABLE), ENOTDIR);
    must_unchanged(before, ".");
    image_free(before);
}
END_TEST

START_TEST(init_refuses_an_overlong_path)
{
    struct image *before = image_take(".");
    char *path = malloc(100001);

    must(path != NULL);
    memset(path, 'a', 100000);
    path[100000] = '\0';
    must_refuse(xInit(path, DURABLE), ENAMETOOLONG);
    must_unchanged(before, ".");
    free(path);
    image_free(before);
}
END_TEST

START_TEST(init_makes_the_last_component_only)
{
    must_ok(xInit(ENV_DIR, DURABLE));
    env_detach();
    must(file_exists(ENV_DIR));
    must_ok(xInit("other/", NONDURABLE));
    env_detach();
    must(file_exists("other"));
}
END_TEST

START_TEST(init_refuses_a_second_one)
{
    uint64_t *x = env_attach(DURABLE, 1);
    struct image *before;

    env_put(x, 1);
    before = image_take(".");
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_EALREADY);
    must_refuse(xInit(ENV_DIR, NONDURABLE), XAC_EALREADY);
    must_refuse(xInit("another", DURABLE), XAC_EALREADY);
    must_unchanged(before, ".");
    must_ok(xbegin());
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_EALREADY);
    x[0]++;
    must_rc(xend(), COMMITTED);
    must_eq(env_get(x), 2);
    env_detach();
    image_free(before);
}
END_TEST

static void
as_nobody(void *arg)
{
    must(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    must_refuse(xInit(arg, DURABLE), EACCES);
    must_refuse(xInit(arg, NONDURABLE), EACCES);
}

/* Root may do everything, so the child becomes nobody. */
START_TEST(init_refuses_without_permission)
{
    static const mode_t modes[] = {0755, 0555, 0700, 0000};
    struct image *before;
    uint64_t *x;
    char dir[32];

    if (getuid() != 0) {
        printf("skipped: only root may become another user\n");
        return;
    }
    x = env_attach(DURABLE, 1);
    env_put(x, 5);
    env_detach();
    before = image_take(ENV_DIR);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct image *empty;

        must(chmod(ENV_DIR, modes[i]) == 0);
        proc_run(as_nobody, strcpy(dir, ENV_DIR));
        must_unchanged(before, ENV_DIR);
        must(mkdir("empty", 0700) == 0 && chmod("empty", modes[i]) == 0);
        empty = image_take("empty");
        proc_run(as_nobody, strcpy(dir, "empty"));
        must_unchanged(empty, "empty");
        must(rmdir("empty") == 0);
        image_free(empty);
    }
    must(chmod(".", 0555) == 0);
    proc_run(as_nobody, strcpy(dir, "new"));
    must(!file_exists("new"));
    image_free(before);
}
END_TEST

/* ---- xMmap, xMunmap ------------------------------------------------------------------ */

START_TEST(map_refuses_the_environments_own_files)
{
    static const char *const names[] = {"xac.master", "xac.lock", "xac-log.00000001",
                                        "xac-data.new", "../" ENV_DIR "/xac.addresses"};
    uint64_t *x = env_attach(DURABLE, 1);
    struct image *before;

    env_put(x, 7);
    before = image_take(".");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64];

        (void)snprintf(path, sizeof path, "%s/%s", ENV_DIR, names[i]);
        must_refuse(map(path, env_page()), EINVAL);
    }
    must_unchanged(before, ".");
    image_free(before);
    must_ok(map(ENV_DIR "/user.db", env_page()));
    env_detach();
}
END_TEST

START_TEST(map_refuses_bad_arguments)
{
    size_t page = env_page();
    struct image *before;

    must_ok(xInit(ENV_DIR, NONDURABLE));
    must(mkdir("directory", 0755) == 0);
    before = image_take(".");
    must_refuse(map(NULL, page), EINVAL);
    must_refuse(map("", page), EINVAL);
    must_refuse(map(ENV_FILE, 0), EINVAL);
    must_refuse(map(ENV_FILE, 1), EINVAL);
    must_refuse(map(ENV_FILE, page - 1), EINVAL);
    must_refuse(map(ENV_FILE, page + 1), EINVAL);
    must_refuse(map(ENV_FILE, 10 * page + 512), EINVAL);
    must_refuse(map(ENV_FILE, SIZE_MAX), EINVAL);
    must_refuse(map("missing/" ENV_FILE, page), ENOENT);
    must_refuse(map("directory", page), EISDIR);
    must_unchanged(before, ".");
    env_detach();
    must(!file_exists(ENV_FILE));
    image_free(before);
}
END_TEST

/* A length that no address space has room for must leave no file behind. */
START_TEST(map_of_an_impossible_length_changes_nothing)
{
    size_t length = (SIZE_MAX >> 2) & ~(env_page() - 1);
    struct image *before;

    must_ok(xInit(ENV_DIR, DURABLE));
    file_write("short", 0, "abc", 3);
    before = image_take(".");
    must(map("new", length) != 0);
    must(*xLastError() != '\0');
    must(map("short", length) != 0);
    must_unchanged(before, ".");
    must_ok(map("short", env_page()));
    env_detach();
    image_free(before);
}
END_TEST

/* The rest of mapping a file several times is in check_map.c. */
START_TEST(map_knows_a_file_by_every_name)
{
    size_t page = env_page();
    uint64_t *x;

    x = env_attach(NONDURABLE, 2);
    must(link(ENV_FILE, "hard.db") == 0);
    must(symlink(ENV_FILE, "soft.db") == 0);
    must_ok(map("soft.db", 2 * page));
    must_ok(map("hard.db", page));
    must_refuse(xMunmap(ENV_FILE), XAC_EMAPPED);
    must_refuse(xMunmap("soft.db"), XAC_EMAPPED);
    must_refuse(xMunmap("hard.db"), XAC_EMAPPED);
    env_put(x, 3);
    must_ok(xMunmapAt(x));
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 3);
}
END_TEST

static void
map_as_nobody(void *arg)
{
    (void)arg;
    must(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    must_ok(xInit("open/" ENV_DIR, NONDURABLE));
    must_refuse(map("private", env_page()), EACCES);
    must_refuse(map("read-only", env_page()), EACCES);
    must_refuse(map("new", env_page()), EACCES);
    must_ok(map("open/new", env_page()));
    env_detach();
}

START_TEST(map_refuses_without_permission)
{
    struct image *before;

    if (getuid() != 0) {
        printf("skipped: only root may become another user\n");
        return;
    }
    must(mkdir("open", 0777) == 0 && chmod("open", 0777) == 0);
    file_write("private", 0, "abc", 3);
    file_write("read-only", 0, "abc", 3);
    must(chmod("private", 0600) == 0 && chmod("read-only", 0644) == 0);
    before = image_take(".");
    proc_run(map_as_nobody, NULL);
    must_unchanged(before, ".");
    image_free(before);
}
END_TEST

START_TEST(map_and_unmap_refuse_inside_a_transaction)
{
    uint64_t *x = env_attach(NONDURABLE, 1);
    struct image *before = image_take(".");

    must_ok(xbegin());
    x[0] = 11;
    must_refuse(xMunmap(ENV_FILE), XAC_EINTXN);
    must_refuse(map("second.db", env_page()), EPERM);
    must_refuse(map(ENV_FILE, env_page()), EPERM);
    must_refuse(xShutdown(), XAC_EINTXN);
    must_refuse(xCheckpoint(), XAC_EINTXN);
    must_eq(x[0], 11);
    must_rc(xend(), COMMITTED);
    must_ok(xbeginQuery());
    must_eq(x[0], 11);
    must_refuse(xMunmap(ENV_FILE), XAC_EINTXN);
    must_refuse(xShutdown(), XAC_EINTXN);
    must_eq(x[0], 11);
    must_ok(xendQuery());
    must_unchanged(before, ".");
    must(!file_exists("second.db"));
    env_detach();
    image_free(before);
}
END_TEST

START_TEST(unmap_refuses_what_is_not_mapped)
{
    (void)env_attach(NONDURABLE, 1);
    file_write("other.db", 0, "abc", 3);
    must_refuse(xMunmap(NULL), EINVAL);
    must_refuse(xMunmap(""), EINVAL);
    must_refuse(xMunmap("missing.db"), XAC_ENOTMAPPED);
    must_refuse(xMunmap("other.db"), XAC_ENOTMAPPED);
    must_ok(xMunmap(ENV_FILE));
    must_refuse(xMunmap(ENV_FILE), XAC_ENOTMAPPED);
    env_detach();
}
END_TEST

/* ---- transactions and queries out of order ---------------------------------------------- */

START_TEST(end_refuses_without_begin)
{
    uint64_t *x = env_attach(NONDURABLE, 1);

    must_refuse(xend(), XAC_ENOTXN);
    must_refuse(xendQuery(), XAC_ENOTXN);
    must_refuse(xValidate(), XAC_ENOTXN);
    must_refuse(xAbort(), XAC_ENOTXN);
    env_put(x, 1);
    must_refuse(xend(), XAC_ENOTXN);
    must_refuse(xAbort(), XAC_ENOTXN);
    env_put(x, 2);
    must_eq(env_get(x), 2);
    must_refuse(xendQuery(), XAC_ENOTXN);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 2);
}
END_TEST

START_TEST(query_refuses_transaction_calls)
{
    uint64_t *x = env_attach(NONDURABLE, 1);

    must_ok(xbeginQuery());
    must_refuse(xbegin(), XAC_EINQUERY);
    must_refuse(xend(), XAC_EINQUERY);
    must_refuse(xAbort(), XAC_EINQUERY);
    must_ok(xbeginQuery());
    must_refuse(xbegin(), XAC_EINQUERY);
    must_refuse(xend(), XAC_EINQUERY);
    must_ok(xendQuery());
    must_eq(x[0], 0);
    must_ok(xendQuery());
    must_refuse(xendQuery(), XAC_ENOTXN);
    env_put(x, 9);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 9);
}
END_TEST

START_TEST(mispaired_ends_are_refused_and_harmless)
{
    uint64_t *x = env_attach(NONDURABLE, 1);

    must_ok(xbegin());
    x[0] = 1;
    must_refuse(xendQuery(), XAC_ENOTXN);
    must_ok(xbeginQuery());
    must_eq(x[0], 1);
    must_refuse(xend(), XAC_EINQUERY);
    must_refuse(xbegin(), XAC_EINQUERY);
    must_ok(xendQuery());
    must_ok(xbegin());
    must_refuse(xendQuery(), XAC_ENOTXN);
    x[1] = 2;
    must_rc(xend(), PENDING);
    must_refuse(xendQuery(), XAC_ENOTXN);
    must_rc(xend(), COMMITTED);
    must_refuse(xend(), XAC_ENOTXN);
    must_eq(env_get(&x[0]) + env_get(&x[1]), 3);
    env_detach();
}
END_TEST

static void *
begin_in_another_thread(void *arg)
{
    (void)arg;
    must_refuse(xbegin(), EBUSY);
    return NULL;
}

START_TEST(begin_refuses_a_second_thread)
{
    uint64_t *x = env_attach(NONDURABLE, 1);
    pthread_t thread;

    must_ok(xbegin());
    x[0] = 4;
    must(pthread_create(&thread, NULL, begin_in_another_thread, NULL) == 0);
    must(pthread_join(thread, NULL) == 0);
    must_eq(x[0], 4);
    must_rc(xend(), COMMITTED);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 4);
}
END_TEST

/* ---- the others --------------------------------------------------------------------------- */

START_TEST(hint_refuses_bad_arguments)
{
    size_t page = env_page();
    char *x = env_attach(NONDURABLE, 2);
    int local;

    must_ok(xbegin());
    must_refuse(setPageAccess(x, 0), EINVAL);
    must_refuse(setPageAccess(x, 2), EINVAL);
    must_refuse(setPageAccess(x, 4), EINVAL);
    must_refuse(setPageAccess(x, -1), EINVAL);
    must_refuse(setPageAccess(&local, READ), XAC_ENOTMAPPED);
    must_refuse(setPageAccess(x + 2 * page, READ), XAC_ENOTMAPPED);
    must_refuse(setPageAccess(x - 1, READ_WRITE), XAC_ENOTMAPPED);
    must(setPageAccess(NULL, READ) != 0);
    must_ok(setPageAccess(x + 2 * page - 1, READ));
    must_rc(xend(), COMMITTED);
    must_ok(xbeginQuery());
    must_refuse(setPageAccess(x, READ_WRITE), XAC_EINQUERY);
    must_ok(setPageAccess(x, READ));
    must_ok(xendQuery());
    must_ok(xMunmap(ENV_FILE));
    must_refuse(setPageAccess(x, READ), XAC_ENOTMAPPED);
    env_detach();
}
END_TEST

START_TEST(out_parameters_must_be_there)
{
    char **names = NULL;
    size_t count = 0;

    (void)env_attach(DURABLE, 1);
    must_refuse(xArchive(NULL, &count), EINVAL);
    must_refuse(xArchive(&names, NULL), EINVAL);
    must_refuse(xArchive(NULL, NULL), EINVAL);
    must_refuse(xStats(NULL, 0), EINVAL);
    must_refuse(xConflict(NULL, 0), EINVAL);
    env_detach();
}
END_TEST

START_TEST(options_have_ranges)
{
    static const int sizes[] = {XAC_OPT_LOG_SEGMENT_BYTES, XAC_OPT_LOG_BUFFER_BYTES};
    static char long_path[PATH_MAX + 1];

    for (size_t i = 0; i < 2; i++) {
        must_rc(xSetOption(sizes[i], 65535), EINVAL);
        must_rc(xSetOption(sizes[i], 32768), EINVAL);
        must_rc(xSetOption(sizes[i], 65537), EINVAL);
        must_rc(xSetOption(sizes[i], 3 * 65536), EINVAL);
        must_rc(xSetOption(sizes[i], UINT64_C(2) << 30), EINVAL);
        must_rc(xSetOption(sizes[i], UINT64_MAX), EINVAL);
        must_ok(xSetOption(sizes[i], 65536));
        must_ok(xSetOption(sizes[i], 1 << 20));
    }
    must_rc(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 0), EINVAL);
    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 0));
    must_rc(xSetOption(XAC_OPT_CHECKSUM, 3), EINVAL);
    must_rc(xSetOption(XAC_OPT_CHECKSUM, UINT64_MAX), EINVAL);
    must_rc(xSetOption(0, 0), EINVAL);
    must_rc(xSetOption(1000, 0), EINVAL);
    must_rc(xSetLogDirectory(""), EINVAL);
    must_rc(xSetLogDirectory("a\nb"), EINVAL);
    memset(long_path, 'x', sizeof long_path - 1);
    must_rc(xSetLogDirectory(long_path), ENAMETOOLONG);
    must_ok(xSetLogDirectory("not/there"));
    must_rc(xInit(ENV_DIR, DURABLE), ENOENT);
    must_ok(xSetLogDirectory(NULL));
    must_rc(xSetOption(XAC_OPT_CHECKING, 3), EINVAL);
    must_rc(xSetOption(XAC_OPT_FULL_IMAGES, 2), EINVAL);
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    (void)env_attach(DURABLE, 1);
    must_rc(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 1 << 20), EBUSY);
    must_rc(xSetOption(XAC_OPT_FULL_IMAGES, 0), EBUSY);
    must_rc(xSetLogDirectory("log"), EBUSY);
    must_rc(xSetLogDirectory(NULL), EBUSY);
    must_rc(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 1 << 20), EBUSY);
    must_rc(xSetOption(XAC_OPT_CHECKSUM, 17), EINVAL);
    must_ok(xSetOption(XAC_OPT_CHECKSUM, XAC_CHECKSUM_SHA1));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 1 << 20));
    env_detach();
}
END_TEST

START_TEST(recover_refuses_bad_arguments)
{
    struct image *before;
    uint64_t *x;
    int rc;

    must(mkdir("empty", 0755) == 0);
    file_write("plain", 0, "text", 4);
    before = image_take(".");
    must_refuse(xRecover(NULL), EINVAL);
    must_refuse(xRecover(""), EINVAL);
    must_refuse(xRecover("empty"), XAC_ENOTENV);
    rc = xRecover("missing");
    must(rc == ENOENT || rc == XAC_ENOTENV);
    rc = xRecover("plain");
    must(rc == ENOTDIR || rc == XAC_ENOTENV);
    must_unchanged(before, ".");
    image_free(before);
    before = image_take("empty");
    must_eq(xRecover("empty"), XAC_ENOTENV);
    must_unchanged(before, "empty");

    x = env_attach(DURABLE, 1);
    env_put(x, 1);
    must_refuse(xRecover(ENV_DIR), XAC_ELIVE);
    env_put(x, 2);
    env_detach();
    must_ok(xRecover(ENV_DIR));
    must_eq(file_u64(ENV_FILE, 0), 2);
    image_free(before);
}
END_TEST

START_TEST(every_code_has_words)
{
    static const int codes[] = {COMMITTED, ABORTED, PENDING, FAILED, ENOSPC, EINVAL};
    const char *texts[64];
    size_t n = 0;

    for (int code = XAC_ENOINIT; code >= XAC_ENOTENV; code--)
        texts[n++] = xStrerror(code);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        texts[n++] = xStrerror(codes[i]);
    for (size_t i = 0; i < n; i++) {
        must(texts[i] != NULL && *texts[i] != '\0');
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(texts[i], texts[k]);
    }
    must(xStrerror(-1) != NULL && xStrerror(-31999) != NULL);
    must(xStrerror(INT32_MAX) != NULL && xStrerror(INT32_MIN) != NULL);
}
END_TEST

START_TEST(last_error_is_empty_at_first)
{
    must(xLastError() != NULL);
    ck_assert_str_eq(xLastError(), "");
    must_ok(xInit(ENV_DIR, DURABLE)); /* which looks for what is not there */
    ck_assert_str_eq(xLastError(), "");
    must(xMmap(ENV_FILE, 4 * env_page()) != MAP_FAILED);
    must_ok(xbegin());
    must_rc(xend(), COMMITTED);
    must_ok(xCheckpoint());
    ck_assert_str_eq(xLastError(), "");
    env_detach();
    ck_assert_str_eq(xLastError(), "");
}
END_TEST

static Suite *
args_suite(void)
{
    Suite *s = suite_create("args");
    TCase *tc = env_tcase(s, "order", 20);

    tcase_add_test(tc, version_is_told_before_init);
    tcase_add_test(tc, refuse_calls_before_init);
    tcase_add_test(tc, refuse_calls_after_shutdown);
    tcase_add_test(tc, refuse_calls_after_failed_init);
    tcase_add_test(tc, end_refuses_without_begin);
    tcase_add_test(tc, query_refuses_transaction_calls);
    tcase_add_test(tc, mispaired_ends_are_refused_and_harmless);
    tcase_add_test(tc, begin_refuses_a_second_thread);

    tc = env_tcase(s, "init", 20);
    tcase_add_test(tc, init_refuses_bad_arguments);
    tcase_add_test(tc, init_refuses_a_file_as_directory);
    tcase_add_test(tc, init_refuses_an_overlong_path);
    tcase_add_test(tc, init_makes_the_last_component_only);
    tcase_add_test(tc, init_refuses_a_second_one);
    tcase_add_test(tc, init_refuses_without_permission);

    tc = env_tcase(s, "map", 20);
    tcase_add_test(tc, map_refuses_bad_arguments);
    tcase_add_test(tc, map_refuses_the_environments_own_files);
    tcase_add_test(tc, map_of_an_impossible_length_changes_nothing);
    tcase_add_test(tc, map_knows_a_file_by_every_name);
    tcase_add_test(tc, map_refuses_without_permission);
    tcase_add_test(tc, map_and_unmap_refuse_inside_a_transaction);
    tcase_add_test(tc, unmap_refuses_what_is_not_mapped);

    tc = env_tcase(s, "others", 20);
    tcase_add_test(tc, hint_refuses_bad_arguments);
    tcase_add_test(tc, out_parameters_must_be_there);
    tcase_add_test(tc, options_have_ranges);
    tcase_add_test(tc, recover_refuses_bad_arguments);
    tcase_add_test(tc, every_code_has_words);
    tcase_add_test(tc, last_error_is_empty_at_first);
    return s;
}

int
main(void)
{
    return env_main(args_suite());
}
