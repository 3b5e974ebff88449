/* SPDX-License-Identifier: MIT */
/*
 * check_damage.c -- environments that are not what they should be.
 *
 * GOAL    a log that is damaged, of another environment, version or page size, and a file
 *         that was replaced, are refused with their code, file and offset; nothing on disk
 *         changes; put right again, everything committed is there.
 * METHOD  a child commits and exits without xShutdown; the parent meddles with the files
 *         (layout: doc/formats.md) and tries to recover, in place, so that inodes stay.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "env.h"

/* doc/formats.md: master slots and segment headers */
#define MASTER       ENV_DIR "/xac.master"
#define LOG_1        ENV_DIR "/xac-log.00000001"
#define HEADER_SIZE  512
#define SLOT_STRIDE  4096
#define AT_VERSION   8
#define AT_PAGE_SIZE 12
#define AT_CHECKSUM  504

#define N_COMMITS 30
/* No byte of a stamp is 0 or 255: zeros need not be logged. */
#define STAMP(i) (UINT64_C(0x5a17c0de71b5a301) + (uint64_t)(i))

/* Commit N_COMMITS stamps, two pages in each transaction, and vanish. */
static void
commit_and_vanish(void *arg)
{
    size_t page = env_page() / sizeof(uint64_t);
    uint64_t *x;

    (void)arg;
    must_ok(
        xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 1 << 17)); /* one segment, small images */
    x = env_attach(DURABLE, 4);
    for (uint64_t i = 0; i < N_COMMITS; i++) {
        must_ok(xbegin());
        x[i] = STAMP(i);
        x[page + 2 * i] = ~STAMP(i);
        must_rc(xend(), COMMITTED);
    }
}

static const char *
state_of_file(void)
{
    static char text[64];

    for (uint64_t i = 0; i < N_COMMITS; i++) {
        if (file_u64(ENV_FILE, 8 * i) != STAMP(i)
            || file_u64(ENV_FILE, env_page() + 16 * i) != ~STAMP(i)) {
            snprintf(text, sizeof text, "commit %" PRIu64 " is missing", i);
            return text;
        }
    }
    return NULL;
}

static void
must_be_complete(void)
{
    const char *wrong = state_of_file();

    if (wrong != NULL)
        env_fail(__FILE__, __LINE__, "%s", wrong);
}

/* xRecover() and xInit() both refuse, with these codes, and nothing changes. */
static void
both_refuse(int want)
{
    struct image *env = image_take(ENV_DIR);
    struct image *files = image_take(".");

    must_refuse(xRecover(ENV_DIR), want);
    must_unchanged(env, ENV_DIR);
    must_unchanged(files, ".");
    must_refuse(xInit(ENV_DIR, DURABLE), want);
    must_unchanged(env, ENV_DIR);
    must_unchanged(files, ".");
    must_refuse(xInit(ENV_DIR, NONDURABLE), want);
    must_unchanged(env, ENV_DIR);
    must_unchanged(files, ".");
    image_free(env);
    image_free(files);
}

/* Change a header field and put the checksum right again. */
static void
patch_header(const char *path, uint64_t header, uint64_t at, uint32_t value)
{
    unsigned char bytes[HEADER_SIZE];
    uint64_t sum;

    file_read(path, header, bytes, sizeof bytes);
    memcpy(bytes + at, &value, sizeof value);
    sum = XXH3_64bits(bytes, AT_CHECKSUM);
    memcpy(bytes + AT_CHECKSUM, &sum, sizeof sum);
    file_write(path, header, bytes, sizeof bytes);
}

/* The slots of the master file that were ever written. */
static void
patch_master(uint64_t at, uint32_t value)
{
    for (uint64_t slot = 0; slot < 2; slot++) {
        if (file_size(MASTER) >= slot * SLOT_STRIDE + HEADER_SIZE
            && file_u64(MASTER, slot * SLOT_STRIDE) != 0)
            patch_header(MASTER, slot * SLOT_STRIDE, at, value);
    }
}

/* The position of eight bytes in a file. */
static uint64_t
find_in_file(const char *path, uint64_t value)
{
    size_t size = file_size(path);
    unsigned char *bytes = malloc(size);
    unsigned char *hit;
    uint64_t at;

    must(bytes != NULL);
    file_read(path, 0, bytes, size);
    hit = memmem(bytes, size, &value, sizeof value);
    if (hit == NULL)
        env_fail(__FILE__, __LINE__, "%s holds no %016" PRIx64, path, value);
    at = (uint64_t)(hit - bytes);
    free(bytes);
    return at;
}

static void
flip_bit(const char *path, uint64_t at, unsigned bit)
{
    unsigned char byte;

    file_read(path, at, &byte, 1);
    byte = (unsigned char)(byte ^ (1u << bit));
    file_write(path, at, &byte, 1);
}

/* ---- versions ------------------------------------------------------------------------ */

START_TEST(refuse_master_of_another_version)
{
    struct image *env;

    proc_run(commit_and_vanish, NULL);
    env = image_take(ENV_DIR);
    patch_master(AT_VERSION, 1);
    both_refuse(XAC_EVERSION);
    patch_master(AT_VERSION, 0xffffffff);
    both_refuse(XAC_EVERSION);
    image_restore(env, ENV_DIR);
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
    image_free(env);
}
END_TEST

START_TEST(refuse_clean_master_of_another_version)
{
    (void)env_attach(DURABLE, 1);
    env_detach();
    patch_master(AT_VERSION, 1);
    both_refuse(XAC_EVERSION);
}
END_TEST

START_TEST(refuse_log_of_another_version)
{
    struct image *env;

    proc_run(commit_and_vanish, NULL);
    env = image_take(ENV_DIR);
    patch_header(LOG_1, 0, AT_VERSION, 1);
    both_refuse(XAC_EVERSION);
    image_restore(env, ENV_DIR);
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
    image_free(env);
}
END_TEST

START_TEST(refuse_another_page_size)
{
    struct image *env;

    proc_run(commit_and_vanish, NULL);
    env = image_take(ENV_DIR);
    patch_master(AT_PAGE_SIZE, (uint32_t)(4 * env_page()));
    both_refuse(XAC_EPAGESIZE);
    image_restore(env, ENV_DIR);
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
    image_free(env);
}
END_TEST

START_TEST(refuse_a_ruined_master)
{
    struct image *env;

    proc_run(commit_and_vanish, NULL);
    env = image_take(ENV_DIR);
    for (uint64_t slot = 0; slot < 2; slot++) {
        if (file_size(MASTER) > slot * SLOT_STRIDE)
            flip_bit(MASTER, slot * SLOT_STRIDE + 60, 3);
    }
    both_refuse(XAC_EDAMAGED);
    must(strstr(xLastError(), "xac.master") != NULL);
    image_restore(env, ENV_DIR);
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
    image_free(env);
}
END_TEST

/* ---- logs of others ------------------------------------------------------------------- */

static void
copy_file(const char *from, const char *to)
{
    size_t n = file_size(from);
    char *bytes = malloc(n + 1);

    must(bytes != NULL);
    file_read(from, 0, bytes, n);
    file_write(to, 0, bytes, n);
    free(bytes);
}

static void
commit_elsewhere(void *arg)
{
    uint64_t *y;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 1 << 17));
    must_ok(xInit("foreign", DURABLE));
    y = xMmap("foreign.db", env_page());
    must(y != MAP_FAILED);
    env_put(y, 1);
}

START_TEST(refuse_log_of_another_environment)
{
    struct image *env;

    proc_run(commit_and_vanish, NULL);
    proc_run(commit_elsewhere, NULL);
    env = image_take(ENV_DIR);
    copy_file("foreign/xac-log.00000001", LOG_1);
    both_refuse(XAC_EFOREIGN);
    must(strstr(xLastError(), "xac-log.00000001") != NULL);
    image_restore(env, ENV_DIR);
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
    must_ok(xRecover("foreign"));
    must_eq(file_u64("foreign.db", 0), 1);
    image_free(env);
}
END_TEST

START_TEST(refuse_master_of_another_environment)
{
    struct image *env;

    proc_run(commit_and_vanish, NULL);
    proc_run(commit_elsewhere, NULL);
    env = image_take(ENV_DIR);
    copy_file("foreign/xac.master", MASTER);
    both_refuse(XAC_EFOREIGN);
    image_restore(env, ENV_DIR);
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
    image_free(env);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------- */

/* The number after "offset" in the words of the latest failure. */
static uint64_t
reported_offset(void)
{
    const char *at = strstr(xLastError(), "offset ");

    if (at == NULL)
        env_fail(__FILE__, __LINE__, "no offset in: %s", xLastError());
    return strtoull(at + strlen("offset "), NULL, 0);
}

START_TEST(refuse_a_flipped_bit_where_synced)
{
    struct image *env;
    uint64_t at;

    env_without_frames("a checkpoint for want of them makes old log unnecessary");
    proc_run(commit_and_vanish, NULL);
    env = image_take(ENV_DIR);
    for (unsigned i = 0; i < N_COMMITS - 2; i += 3) {
        at = find_in_file(LOG_1, STAMP(i));
        flip_bit(LOG_1, at + i % 8, i % 8);
        both_refuse(XAC_EDAMAGED);
        must(strstr(xLastError(), "xac-log.00000001") != NULL);
        must(reported_offset() <= at + 8);
        must(reported_offset() + 2 * env_page() + 4096 > at);
        image_restore(env, ENV_DIR);
    }
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
    image_free(env);
}
END_TEST

/*
 * Wherever a bit flips in the part of the log that had been synced: recovery refuses and
 * changes nothing, or it does not matter and all is there.
 */
START_TEST(never_lose_silently)
{
    uint64_t rnd = env_seed();
    uint64_t n_flips = env_number("XAC_FLIPS", 80);
    uint64_t n_refused = 0, last;
    struct image *env, *files;

    proc_run(commit_and_vanish, NULL);
    env = image_take(ENV_DIR);
    files = image_take(".");
    last = find_in_file(LOG_1, STAMP(N_COMMITS - 2));
    for (uint64_t i = 0; i < n_flips; i++) {
        uint64_t at = rnd_below(&rnd, last);
        unsigned bit = (unsigned)rnd_below(&rnd, 8);
        int rc;

        flip_bit(LOG_1, at, bit);
        rc = xRecover(ENV_DIR);
        if (rc == 0) {
            const char *wrong = state_of_file();

            if (wrong != NULL)
                env_fail(__FILE__, __LINE__, "bit flipped at %" PRIu64 ": %s", at, wrong);
        } else {
            n_refused++;
            flip_bit(LOG_1, at, bit);
            must_unchanged(env, ENV_DIR);
            must_unchanged(files, ".");
        }
        image_restore(env, ENV_DIR);
        image_restore(files, ".");
    }
    printf("never_lose_silently: %" PRIu64 " flips, %" PRIu64 " refused\n", n_flips,
           n_refused);
    must(n_refused > 0);
    image_free(env);
    image_free(files);
}
END_TEST

/* A missing segment is damage, too: the master record says that there was one. */
START_TEST(refuse_a_missing_log)
{
    struct image *env;

    proc_run(commit_and_vanish, NULL);
    env = image_take(ENV_DIR);
    must(unlink(LOG_1) == 0);
    must(xRecover(ENV_DIR) != 0);
    must(*xLastError() != '\0');
    must(xInit(ENV_DIR, DURABLE) != 0);
    image_restore(env, ENV_DIR);
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
    image_free(env);
}
END_TEST

/* What was not synced may be torn: garbage behind the end is no damage. */
START_TEST(accept_garbage_behind_the_end)
{
    uint64_t end, rnd = env_seed();
    unsigned char garbage[3000];

    proc_run(commit_and_vanish, NULL);
    end = find_in_file(LOG_1, ~STAMP(N_COMMITS - 1));
    for (size_t i = 0; i < sizeof garbage; i++)
        garbage[i] = (unsigned char)rnd_next(&rnd);
    file_write(LOG_1, end + 4096, garbage, sizeof garbage);
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
}
END_TEST

/* ---- replaced files ---------------------------------------------------------------------- */

START_TEST(refuse_a_file_replaced_before_recovery)
{
    struct image *replaced;

    proc_run(commit_and_vanish, NULL);
    must(rename(ENV_FILE, "kept.db") == 0);
    copy_file("kept.db", ENV_FILE);
    replaced = image_take(".");
    both_refuse(XAC_EREPLACED);
    must(strstr(xLastError(), ENV_FILE) != NULL);
    must_unchanged(replaced, ".");
    must(rename("kept.db", ENV_FILE) == 0);
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
    image_free(replaced);
}
END_TEST

START_TEST(refuse_a_file_gone_before_recovery)
{
    struct image *env;

    proc_run(commit_and_vanish, NULL);
    must(rename(ENV_FILE, "kept.db") == 0);
    env = image_take(ENV_DIR);
    must(xRecover(ENV_DIR) != 0);
    must(strstr(xLastError(), ENV_FILE) != NULL);
    must_unchanged(env, ENV_DIR);
    must(!file_exists(ENV_FILE));
    must(rename("kept.db", ENV_FILE) == 0);
    must_ok(xRecover(ENV_DIR));
    must_be_complete();
    image_free(env);
}
END_TEST

/* Between two runs that ended well, the file is the user's to replace. */
START_TEST(accept_a_file_replaced_after_shutdown)
{
    uint64_t *x = env_attach(DURABLE, 2);
    uint64_t value = 77;

    env_put(x, 1);
    env_detach();
    must(rename(ENV_FILE, "old.db") == 0);
    file_write(ENV_FILE, 0, &value, sizeof value);
    x = env_attach(DURABLE, 2);
    must_eq(env_get(x), 77);
    env_put(x + 1, 78);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 77);
    must_eq(file_u64(ENV_FILE, 8), 78);
    must_eq(file_u64("old.db", 0), 1);
}
END_TEST

static void
map_the_replacement(void *arg)
{
    _Atomic uint64_t *step = arg;
    void *base;

    proc_await(step, 1, 20);
    must_ok(xInit(ENV_DIR, DURABLE));
    errno = 0;
    base = xMmap(ENV_FILE, 2 * env_page());
    must(base == MAP_FAILED);
    must_eq(errno, ESTALE);
    must(*xLastError() != '\0');
    env_detach();
}

START_TEST(refuse_a_file_replaced_while_mapped)
{
    _Atomic uint64_t *step = proc_shared(sizeof *step);
    pid_t child = proc_spawn(map_the_replacement, step);
    uint64_t *x = env_attach(DURABLE, 2);
    uint64_t value = 77;

    env_put(x, 1);
    must(rename(ENV_FILE, "old.db") == 0);
    file_write(ENV_FILE, 0, &value, sizeof value);
    must(truncate(ENV_FILE, (off_t)(2 * env_page())) == 0);
    word_store(step, 1);
    proc_join(child);
    must_eq(file_u64(ENV_FILE, 0), 77);
    must(rename("old.db", ENV_FILE) == 0);
    env_put(x, 2);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 2);
}
END_TEST

/* ---- shorter files ------------------------------------------------------------------------- */

START_TEST(grow_a_short_file_with_zeros)
{
    size_t page = env_page();
    unsigned char *x;

    file_write(ENV_FILE, 0, "0123456789", 10);
    x = env_attach(DURABLE, 3);
    must_eq(file_size(ENV_FILE), 3 * page);
    must_ok(xbeginQuery());
    must(memcmp(x, "0123456789", 10) == 0);
    for (size_t i = 10; i < 3 * page; i++)
        must(x[i] == 0);
    must_ok(xendQuery());
    env_detach();
    must_eq(file_size(ENV_FILE), 3 * page);
    x = env_attach(DURABLE, 1);
    env_detach();
    must_eq(file_size(ENV_FILE), 3 * page);
}
END_TEST

static void
commit_in_last_page(void *arg)
{
    size_t page = env_page() / sizeof(uint64_t);
    uint64_t *x = env_attach(DURABLE, 64);

    (void)arg;
    env_put(&x[63 * page], 99);
}

/* The file was cut after the crash: recovery makes it long enough again. */
START_TEST(recovery_extends_a_cut_file)
{
    proc_run(commit_in_last_page, NULL);
    must(truncate(ENV_FILE, 100) == 0);
    must_ok(xRecover(ENV_DIR));
    must_eq(file_size(ENV_FILE), 64 * env_page());
    must_eq(file_u64(ENV_FILE, 63 * env_page()), 99);
}
END_TEST

static Suite *
damage_suite(void)
{
    Suite *s = suite_create("damage");
    TCase *tc = env_tcase(s, "version", 20);

    tcase_add_test(tc, refuse_master_of_another_version);
    tcase_add_test(tc, refuse_clean_master_of_another_version);
    tcase_add_test(tc, refuse_log_of_another_version);
    tcase_add_test(tc, refuse_another_page_size);
    tcase_add_test(tc, refuse_a_ruined_master);
    tcase_add_test(tc, refuse_log_of_another_environment);
    tcase_add_test(tc, refuse_master_of_another_environment);

    tc = env_tcase(s, "damage", 60);
    tcase_add_test(tc, refuse_a_flipped_bit_where_synced);
    tcase_add_test(tc, never_lose_silently);
    tcase_add_test(tc, refuse_a_missing_log);
    tcase_add_test(tc, accept_garbage_behind_the_end);

    tc = env_tcase(s, "file", 20);
    tcase_add_test(tc, refuse_a_file_replaced_before_recovery);
    tcase_add_test(tc, refuse_a_file_gone_before_recovery);
    tcase_add_test(tc, accept_a_file_replaced_after_shutdown);
    tcase_add_test(tc, refuse_a_file_replaced_while_mapped);
    tcase_add_test(tc, grow_a_short_file_with_zeros);
    tcase_add_test(tc, recovery_extends_a_cut_file);
    return s;
}

int
main(void)
{
    return env_main(damage_suite());
}
