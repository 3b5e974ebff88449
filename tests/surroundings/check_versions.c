/* SPDX-License-Identifier: MIT */
/*
 * check_versions.c -- programs, and participants, of other versions.
 *
 * GOAL    A program that was compiled when a structure had fewer fields gets those, and no byte
 *         behind its structure changes.  One that knows more fields finds 0 in those that the
 *         library does not know.  A structure without room for its first field is refused,
 *         and nothing of it changes.  An environment in use by another version of
 *         the library is refused; what such a one has left behind is recovered.
 * METHOD  Each function is called with every size from 0 to more than its structure has, in
 *         a buffer of other bytes, and the result is compared with the whole structure.
 *         The version in the control region is changed under a participant that sleeps.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <xac_frames.h>

#include "env.h"
#include "env/control.h"
#include "shared/layout.h"

#define BEYOND 40   /* bytes that a later version might add */
#define MARK   0x5a /* what the buffer holds before */

/* ---- structures -------------------------------------------------------------------------- */

static void *base;
static struct xac_frames *pool;

static int
call_stats(void *out, size_t size)
{
    return xStats(out, size);
}

static int
call_conflict(void *out, size_t size)
{
    return xConflict(out, size);
}

static int
call_heap_check(void *out, size_t size)
{
    int rc;

    must_ok(xbeginQuery());
    rc = xHeapCheck(base, out, size);
    must_ok(xendQuery());
    return rc;
}

static int
call_frames(void *out, size_t size)
{
    return xac_frames_get_stats(pool, out, size);
}

static const struct {
    int (*call)(void *out, size_t size);
    size_t first_bytes, all_bytes;
} structures[] = {
    {call_stats, sizeof(uint64_t), sizeof(struct xac_stats)},
    {call_conflict, sizeof(int), sizeof(struct xac_conflict)},
    {call_heap_check, sizeof(uint64_t), sizeof(struct xac_heap_totals)},
    {call_frames, sizeof(uint64_t), sizeof(struct xac_frames_stats)},
};

#define N_STRUCTURES 4

/* prepare -- every structure gets something to tell. */
static void
prepare(void)
{
    const struct xac_frames_config config = {.n_pages = 8, .n_frames = 4, .n_users = 1};
    struct xac_frames_user *user;
    struct xac_frames_pin pin;

    base = env_attach(NONDURABLE, 16);
    must_ok(xbegin());
    must(xMalloc(base, 100) != NULL);
    must_ok(xend());
    must_ok(xbegin());
    must(xMalloc(base, 100) != NULL);
    must_ok(xAbort());
    must_rc(xend(), ABORTED);

    must_ok(xac_frames_create(&config, NULL, NULL, &pool));
    must_ok(xac_frames_join(pool, &user));
    must_ok(xac_frames_fix(user, 3, 0, &pin));
    xac_frames_unfix(user, &pin);
    xac_frames_leave(user);
}

static void
finish(void)
{
    xac_frames_close(pool);
    env_detach();
}

/* Nothing is open, so that no field of xStats() changes from one call to the next. */
START_TEST(every_size_gets_the_fields_it_has_room_for)
{
    size_t all_bytes = structures[_i].all_bytes;
    unsigned char all[sizeof(struct xac_stats) + sizeof(struct xac_conflict)];
    unsigned char got[sizeof all + BEYOND];
    unsigned char nothing[sizeof all] = {0};

    prepare();
    must_ok(structures[_i].call(all, all_bytes));
    must(memcmp(all, nothing, all_bytes) != 0);
    for (size_t size = structures[_i].first_bytes; size <= all_bytes + BEYOND; size++) {
        size_t both = size < all_bytes ? size : all_bytes;

        memset(got, MARK, sizeof got);
        must_ok(structures[_i].call(got, size));
        must(memcmp(got, all, both) == 0);
        for (size_t i = both; i < size; i++)
            must_eq(got[i], 0);
        for (size_t i = size; i < sizeof got; i++)
            must_eq(got[i], MARK);
    }
    finish();
}
END_TEST

START_TEST(refuse_a_structure_without_its_first_field)
{
    unsigned char got[sizeof(struct xac_stats)];

    prepare();
    memset(got, MARK, sizeof got);
    for (size_t size = 0; size < structures[_i].first_bytes; size++)
        must_rc(structures[_i].call(got, size), EINVAL);
    for (size_t i = 0; i < sizeof got; i++)
        must_eq(got[i], MARK);
    finish();
}
END_TEST

START_TEST(refusals_have_words)
{
    struct xac_stats stats;
    struct xac_conflict why;
    struct xac_heap_totals totals;

    prepare();
    must_refuse(xStats(&stats, 7), EINVAL);
    must(strstr(xLastError(), "7 bytes") != NULL);
    must_refuse(xConflict(&why, 3), EINVAL);
    must_ok(xbeginQuery());
    must_refuse(xHeapCheck(base, &totals, 7), EINVAL);
    must_ok(xHeapCheck(base, NULL, 0));
    must_ok(xendQuery());
    must_refuse(xStats(NULL, sizeof stats), EINVAL);
    must_refuse(xConflict(NULL, sizeof why), EINVAL);
    must_rc(xac_frames_get_stats(pool, NULL, sizeof(struct xac_frames_stats)), EINVAL);
    finish();
}
END_TEST

/* ---- two versions in one environment ----------------------------------------------------- */

/* region_path -- of the control region that the lock file names, perhaps without a directory. */
static void
region_path(char path[300])
{
    char name[256];
    FILE *f = fopen(ENV_DIR "/xac.lock", "r");

    must(f != NULL && fgets(name, sizeof name, f) != NULL);
    must_eq(fclose(f), 0);
    name[strcspn(name, "\n")] = '\0';
    (void)snprintf(path, 300, "%s%s", name[0] == '/' ? "" : ENV_DIR "/", name);
}

/* raise_version -- of that region, by n. */
static void
raise_version(int n)
{
    char path[300];
    uint32_t version;

    region_path(path);
    file_read(path, offsetof(struct xac_control, version), &version, sizeof version);
    version += (uint32_t)n;
    file_write(path, offsetof(struct xac_control, version), &version, sizeof version);
}

static void
commit_and_vanish(void *unused)
{
    uint64_t *x = env_attach(DURABLE, 1);

    (void)unused;
    env_put(x, 7);
    _exit(0);
}

START_TEST(refuse_to_join_another_version)
{
    pid_t other = env_companion(DURABLE, 1);
    uint64_t *x;

    raise_version(1);
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_EVERSION);
    must_refuse(xRecover(ENV_DIR), XAC_ELIVE);
    raise_version(-2);
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_EVERSION);
    raise_version(1);
    x = env_attach(DURABLE, 1);
    env_put(x, 1);
    env_detach();
    proc_kill(other);
}
END_TEST

START_TEST(recover_what_another_version_has_left)
{
    char path[300], frames[320];
    uint64_t *x;

    proc_run(commit_and_vanish, NULL);
    raise_version(1);
    region_path(path);
    x = env_attach(DURABLE, 1);
    must_eq(env_get(x), 7);
    env_detach();
    /* It stays: nobody knows its owner. */
    must_eq(unlink(path), 0);
    (void)snprintf(frames, sizeof frames, "%s.frames", path);
    must_eq(unlink(frames), 0);
}
END_TEST

static Suite *
versions_suite(void)
{
    Suite *s = suite_create("versions");
    TCase *tc = env_tcase(s, "structures", 60);

    tcase_add_loop_test(tc, every_size_gets_the_fields_it_has_room_for, 0, N_STRUCTURES);
    tcase_add_loop_test(tc, refuse_a_structure_without_its_first_field, 0, N_STRUCTURES);
    tcase_add_test(tc, refusals_have_words);
    tc = env_tcase(s, "participants", 60);
    tcase_add_test(tc, refuse_to_join_another_version);
    tcase_add_test(tc, recover_what_another_version_has_left);
    return s;
}

int
main(void)
{
    return env_main(versions_suite());
}
