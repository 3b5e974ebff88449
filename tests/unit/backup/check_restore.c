/* SPDX-License-Identifier: MIT */
/*
 * check_restore.c -- increments and restores that are cut short, and damaged manifests.
 *
 * GOAL    what a kill, a full disk or a failing call leaves of an increment or of a restore is
 *         whole or is no backup, and the call says so; no manifest, however wrong, makes the
 *         library read or write where it must not.
 * METHOD  each system call of xBackupSince() and of xac_restore_run() in turn kills the process, or
 *         fails.  Manifests are changed at random, and get right checksums again.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "tests/common/sysfault.h"
#include "backup/restore.h"
#include "base/digest.h"
#include "base/err.h"
#include "log/manifest.h"

#define PAGES 600

/* What a child is to do, and what came of it. */
struct board {
    enum sysfault_what what;
    unsigned kinds;
    uint64_t n;
    int error;
    _Atomic uint64_t hit, failed;
};

static struct board *board;

static const char *const chain[] = {"b0", "b1", "k"};

/* ---- An environment with a chain of two ------------------------------------------- */

/* arm -- from now on; disarm -- until here. */
static void
arm(void)
{
    sysfault_arm(board->what, board->kinds, board->n, board->error);
}

static void
disarm(int rc)
{
    word_store(&board->hit, sysfault_hit() != NULL);
    sysfault_disarm();
    word_store(&board->failed, rc != 0);
    if (rc != 0)
        must(xac_last_error()[0] != '\0');
}

/* make_chain -- b0 and b1; in the environment there is one change more. */
static void
make_chain(void)
{
    uint64_t *x;

    must_eq(system("rm -rf k r b0 b1 " ENV_DIR " input.db"), 0);
    must_eq(mkdir(ENV_DIR, 0777), 0);
    env_init(DURABLE);
    x = (uint64_t *)xMmap(ENV_DIR "/f", PAGES * env_page());
    must(x != MAP_FAILED);
    for (size_t i = 0; i < PAGES; i += 7)
        env_put(env_cell(x, i), i + 1);
    must_ok(xBackup("b0"));
    env_put(env_cell(x, 3), 100);
    must_ok(xBackupSince("b1", "b0"));
    env_put(env_cell(x, 4), 101);
}

/* increment -- in a child: k since b1. */
static void
increment(void *arg)
{
    int rc;

    (void)arg;
    make_chain();
    arm();
    rc = xBackupSince("k", "b1");
    disarm(rc);
    _exit(0);
}

/* restore -- in a child: k, which is there, to r. */
static void
restore(void *arg)
{
    int rc;

    (void)arg;
    arm();
    rc = xac_restore_run(chain, 3, "r", NULL, NULL);
    disarm(rc);
    _exit(0);
}

static void
damage(void *arg, const char *what)
{
    (void)arg;
    must(what[0] != '\0');
}

/* recovered -- in a child: r is the environment at k. */
static void
recovered(void *arg)
{
    (void)arg;
    must_ok(xRecover("r"));
    must_eq(file_u64("r/f", 3 * env_page()), 100);
    must_eq(file_u64("r/f", 4 * env_page()), 101);
    must_eq(file_u64("r/f", 595 * env_page()), 596);
}

/* k_is_whole_or_none -- ret whether it is whole. */
static bool
k_is_whole_or_none(void)
{
    if (!file_exists("k/xac.manifest")) {
        if (file_exists("k"))
            must_eq(xac_restore_verify(chain, 3, damage, NULL, NULL, NULL), XAC_ENOTENV);
        return false;
    }
    must(!file_exists("k/xac.unfinished"));
    must_eq(xac_restore_verify(chain, 3, damage, NULL, NULL, NULL), 0);
    must_eq(xac_restore_run(chain, 3, "r", NULL, NULL), 0);
    proc_run(recovered, NULL);
    must_eq(system("rm -rf r"), 0);
    return true;
}

/* r_is_whole_or_none -- the same of what was restored. */
static bool
r_is_whole_or_none(void)
{
    const char *const one[] = {"r"};

    if (!file_exists("r/xac.master")) {
        if (file_exists("r"))
            must_eq(xac_restore_verify(one, 1, damage, NULL, NULL, NULL), XAC_ENOTENV);
        return false;
    }
    must_eq(xac_restore_verify(one, 1, damage, NULL, NULL, NULL), 0);
    proc_run(recovered, NULL);
    return true;
}

/* ---- Each call -------------------------------------------------------------------- */

static const struct plan {
    const char *name;
    enum sysfault_what what;
    unsigned kinds;
    int error;
} plans[] = {
    {"killed", SYSFAULT_DIE, SYSFAULT_EVERY, 0},
    {"fails", SYSFAULT_FAIL, SYSFAULT_FILES, EIO},
    {"no room from then on", SYSFAULT_FAIL_ALL, SYSFAULT_DATA, ENOSPC},
    {"no permission", SYSFAULT_FAIL, SYSFAULT_OPEN, EACCES},
};

#define N_PLANS (sizeof plans / sizeof plans[0])

/* each_call -- of what the child does; at the end none is left, and it has done all. */
static void
each_call(const struct plan *plan, void (*child)(void *), bool (*look)(void),
          const char *made)
{
    bool is_long = env_number("XAC_STEPS_LONG", 0) != 0;
    unsigned whole = 0, none = 0;
    char remove[40];

    (void)snprintf(remove, sizeof remove, "rm -rf %s", made);
    board->what = plan->what;
    board->kinds = plan->kinds;
    board->error = plan->error;
    for (board->n = 1;; board->n += is_long ? 1 : 1 + board->n / 12) {
        pid_t pid;
        bool is_whole;

        word_store(&board->hit, plan->what == SYSFAULT_DIE);
        word_store(&board->failed, 1);
        pid = proc_spawn(child, NULL);
        (void)proc_wait(pid);
        is_whole = look();
        whole += is_whole;
        none += !is_whole;
        must(word_load(&board->failed) != 0 || is_whole); /* success is true */
        must_eq(system(remove), 0);
        if (word_load(&board->hit) == 0)
            break;
    }
    must_eq(word_load(&board->failed), 0);
    must(none > 0);
    printf("%s: whole %u, none %u, %llu calls\n", plan->name, whole, none,
           (unsigned long long)board->n);
}

START_TEST(increment_is_whole_or_none)
{
    board = proc_shared(sizeof *board);
    each_call(&plans[_i], increment, k_is_whole_or_none, "k");
}
END_TEST

/* make_all -- in a child: the chain of three. */
static void
make_all(void *arg)
{
    (void)arg;
    make_chain();
    must_ok(xBackupSince("k", "b1"));
    env_detach();
}

START_TEST(restore_is_whole_or_none)
{
    board = proc_shared(sizeof *board);
    proc_run(make_all, NULL);
    each_call(&plans[_i], restore, r_is_whole_or_none, "r");
}
END_TEST

/* ---- Manifests -------------------------------------------------------------------- */

/* seal -- right checksums over wrong contents. */
static void
seal(uint8_t *bytes, size_t n)
{
    struct xac_manifest_head h;
    struct xac_master_slot slot;

    memcpy(&slot, bytes + sizeof h, sizeof slot);
    slot.checksum = xac_xxh64(&slot, offsetof(struct xac_master_slot, checksum));
    memcpy(bytes + sizeof h, &slot, sizeof slot);
    memcpy(&h, bytes, sizeof h);
    h.body_check = xac_xxh64(bytes + sizeof h, n - sizeof h);
    h.checksum = xac_xxh64(&h, offsetof(struct xac_manifest_head, checksum));
    memcpy(bytes, &h, sizeof h);
}

/* spoil -- some of its numbers. */
static void
spoil(uint8_t *bytes, size_t n, uint64_t *rng)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       0x7fffffff,
                                       0xffffffff,
                                       UINT64_MAX,
                                       UINT64_C(1) << 62,
                                       UINT64_C(1) << 40,
                                       4096,
                                       600};

    for (uint64_t i = 1 + rnd_below(rng, 3); i > 0; i--) {
        /* Not the magic, which would end all. */
        size_t at = 12 + rnd_below(rng, (n - 12) / 4) * 4;
        uint64_t value = rnd_below(rng, 2) == 0
                             ? numbers[rnd_below(rng, sizeof numbers / sizeof numbers[0])]
                             : rnd_next(rng);
        size_t len = rnd_below(rng, 2) == 0 ? 4 : 8;

        if (at + len > n)
            len = n - at;
        if (rnd_below(rng, 3) == 0)
            bytes[at] ^= (uint8_t)(1 << rnd_below(rng, 8));
        else
            memcpy(bytes + at, &value, len);
    }
}

START_TEST(wrong_manifests_are_refused)
{
    uint64_t rng = env_seed(), cases = env_number("XAC_CASES", 1500);
    const char *const name = _i == 0 ? "b0/xac.manifest" : "k/xac.manifest";
    unsigned refused = 0, taken = 0;
    uint8_t *was, *bytes;
    size_t n;

    proc_run(make_all, NULL);
    n = (size_t)file_size(name);
    was = malloc(n);
    bytes = malloc(n);
    must(was != NULL && bytes != NULL);
    file_read(name, 0, was, n);
    for (uint64_t i = 0; i < cases; i++) {
        int rc;

        memcpy(bytes, was, n);
        spoil(bytes, n, &rng);
        seal(bytes, n);
        file_write(name, 0, bytes, n);
        rc = xac_restore_verify(chain, 3, damage, NULL, NULL, NULL);
        refused += rc != 0;
        taken += rc == 0;
        if (rc == 0 || i % 8 == 0) {
            rc = xac_restore_run(chain, 3, "r", NULL, NULL);
            must(rc == 0 || !file_exists("r/xac.master"));
            must_eq(system("rm -rf r"), 0);
        }
    }
    must(refused > cases / 4);
    printf("refused %u, taken %u\n", refused, taken);
    file_write(name, 0, was, n);
    must_eq(xac_restore_verify(chain, 3, damage, NULL, NULL, NULL), 0);
    free(was);
    free(bytes);
}
END_TEST

/* Each single byte of a manifest counts, and its length does. */
START_TEST(every_byte_of_a_manifest_is_checked)
{
    uint8_t byte;
    size_t n;

    proc_run(make_all, NULL);
    n = (size_t)file_size("k/xac.manifest");
    for (size_t at = 0; at < n; at++) {
        int rc;

        file_read("k/xac.manifest", at, &byte, 1);
        byte ^= 1;
        file_write("k/xac.manifest", at, &byte, 1);
        rc = xac_restore_verify(chain, 3, damage, NULL, NULL, NULL);
        must(rc == XAC_EDAMAGED || rc == XAC_EVERSION);
        byte ^= 1;
        file_write("k/xac.manifest", at, &byte, 1);
    }
    for (size_t less = n; less-- > 0;) {
        must_eq(truncate("k/xac.manifest", (off_t)less), 0);
        must_eq(xac_restore_verify(chain, 3, damage, NULL, NULL, NULL), XAC_EDAMAGED);
    }
}
END_TEST

/* ---- main ------------------------------------------------------------------------- */

int
main(void)
{
    Suite *s = suite_create("restore");
    TCase *tc = env_tcase(s, "restore", 300);

    env_in_memory();
    tcase_add_loop_test(tc, increment_is_whole_or_none, 0, (int)N_PLANS);
    tcase_add_loop_test(tc, restore_is_whole_or_none, 0, (int)N_PLANS);
    tcase_add_loop_test(tc, wrong_manifests_are_refused, 0, 2);
    tcase_add_test(tc, every_byte_of_a_manifest_is_checked);
    return env_main(s);
}
