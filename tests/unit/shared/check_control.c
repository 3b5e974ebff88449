/* SPDX-License-Identifier: MIT */
/*
 * check_control.c -- a damaged control region gives an error, not a crash.
 *
 * METHOD  a region with files, versions, transactions under way and log; words of its head, of
 *         its arrays and of what these name are overwritten.  A refusal must say that it is
 *         damaged; if nothing is refused, all must be readable.
 */
#include <config.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/core_world.h"
#include "tests/common/env.h"
#include "base/err.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "env/peek.h"
#include "shared/control_check.h"
#include "shared/region.h"
#include "shared/registry.h"
#include "store/version.h"

static struct xac_env *env;

static void
open_world(void)
{
    env = world_open(XAC_NONDURABLE);
    for (uint64_t i = 0; i < 3; i++)
        (void)world_put(env, i, i + 1);
    world_begin(env);
    must(world_write(env, 1));
}

static void
open_durable(void)
{
    env = world_open(XAC_DURABLE);
}

/* region_copy -- of the region's file; ret its length. */
static uint64_t
region_copy(uint8_t **copyp)
{
    struct stat st;

    must(fstat(env->shm.fd, &st) == 0);
    *copyp = aligned_alloc(4096, (size_t)st.st_size);
    must(*copyp != NULL);
    memcpy(*copyp, env->shm.base, (size_t)st.st_size);
    return (uint64_t)st.st_size;
}

START_TEST(pass_what_is_right)
{
    uint8_t *copy;
    uint64_t n = region_copy(&copy);

    if (xac_control_validate(copy, n, "copy") != 0)
        env_fail(__FILE__, __LINE__, "%s", xac_err_text());
    must_eq(xac_control_validate(copy, n - 1, "copy"), XAC_EDAMAGED); /* shorter */
    must_eq(xac_control_validate(copy, 4096, "copy"), XAC_EDAMAGED);
    must_eq(xac_control_validate(copy, 0, "copy"), XAC_EDAMAGED);
    free(copy);
}
END_TEST

/* must_find -- with a word of a copy changed. */
#define must_find(word, value)                                 \
 do {                                                          \
  struct xac_control *c_ = (struct xac_control *)(void *)copy; \
  __typeof__(c_->word) was_ = c_->word;                        \
                                                               \
  c_->word = (value);                                          \
  if (xac_control_validate(copy, n, "copy") != XAC_EDAMAGED)   \
   env_fail(__FILE__, __LINE__, "not found: " #word);          \
  must(strstr(xac_err_text(), "control region copy") != NULL); \
  c_->word = was_;                                             \
 } while (0)

START_TEST(find_sizes_counts_and_offsets)
{
    uint8_t *copy;
    uint64_t n = region_copy(&copy), far = n + 4096;

    must_find(shm.brk, far);
    must_find(shm.brk, 64);
    must_find(shm.brk, n - 1);
    must_find(shm.extent, UINT64_MAX);
    must_find(shm.extent, 0);
    must_find(shm.free[3], far / 64);
    must_find(shm.free[3], 1);
    must_find(page_size, 4095);
    must_find(policy, 77);
    must_find(reap.rank, 0);
    must_find(chain.publish.rank, -5);
    must_find(participants.count, UINT64_MAX);
    must_find(participants.count, 65);
    must_find(participants.elem_bytes, 1);
    must_find(participants.base, 3);
    must_find(participants.chunk[0], 0);
    must_find(participants.chunk[0], far);
    must_find(participants.chunk[0], 8);
    must_find(files.count, 1000);
    must_find(files.chunk[1], far);
    must_find(txns.chunk[0], n - 64);
    must_find(txns.chunk[39], 65536);
    must_find(versions.slots.count, UINT64_C(1) << 40);
    must_find(versions.slots.base, 0);
    must_find(versions.spill, UINT64_C(1) << 40);
    must_find(chain.publishing, 1000);
    must_find(chain.unlink.n_pages, UINT32_MAX);
    must_find(turn, 99);
    must_find(chain.ring[2].n_pages, XAC_RING_PAGES + 1);
    must_find(chain.ring[2].n_pages, 2); /* the second one is none */
    must_find(chain.ring[2].page[0], far);
    must_find(chain.ring[2].page[0], UINT64_MAX);
    memset(((struct xac_control *)(void *)copy)->dir, 'x', XAC_CONTROL_DIR_BYTES);
    must_eq(xac_control_validate(copy, n, "copy"), XAC_EDAMAGED);
    free(copy);
}
END_TEST

START_TEST(find_damage_of_the_log)
{
    uint8_t *copy;
    uint64_t n = region_copy(&copy), far = n + 4096;

    must_eq(xac_control_validate(copy, n, "copy"), 0);
    must_find(log_ring, far);
    must_find(log_ring, 0);
    must_find(log.ring_bytes, 3 << 20);
    must_find(log.ring_bytes, UINT64_C(1) << 60);
    must_find(log.segment_bytes, 1);
    must_find(log.tail, 0);
    must_find(log.durable, UINT64_MAX);
    must_find(log.written, 0);
    must_find(log.written, UINT64_MAX);
    must_find(log.prepared, 0);
    must_find(log.generation, 77);
    must_find(log.page_size, 1);
    must_find(log.flush.rank, 1);
    free(copy);
}
END_TEST

/* in_copy -- where something of the region lies in a copy. */
static void *
in_copy(uint8_t *copy, const void *p)
{
    return copy + xac_shm_offset(&env->shm, p);
}

#define must_find_at(type, original, field, value)               \
 do {                                                            \
  type *p_ = (type *)in_copy(copy, (original));                  \
  __typeof__(p_->field) was_ = p_->field;                        \
                                                                 \
  p_->field = (value);                                           \
  if (xac_control_validate(copy, n, "copy") != XAC_EDAMAGED)     \
   env_fail(__FILE__, __LINE__, "not found: " #type "." #field); \
  p_->field = was_;                                              \
 } while (0)

START_TEST(find_what_elements_name)
{
    uint8_t *copy;
    uint64_t n = region_copy(&copy), far = n + 4096;
    const struct xac_page *page = world_page(env, 1);
    const struct xac_file *file = xac_file_at(env, 1);
    const struct xac_txn *txn = env->ctx.txn;
    const struct xac_entry *entry = world_entry(env, 1);
    const struct xac_vslot *frame = xac_vslot_at(env, page->head);

    must(txn != NULL && entry != NULL && page->head != 0);
    must_find_at(struct xac_file, file, root, far);
    must_find_at(struct xac_file, file, root, 64);
    must_find_at(struct xac_file, file, path, far);
    must_find_at(struct xac_file, file, path_len, 1);
    must_find_at(struct xac_file, file, path_len, UINT32_MAX);
    must_find_at(struct xac_page, page, head, UINT64_C(1) << 50);
    must_find_at(struct xac_page, page, id, 1);
    must_find_at(struct xac_page, page, access, far / 64);
    must_find_at(struct xac_txn, txn, first_block, far);
    must_find_at(struct xac_txn, txn, first_block, 0);
    must_find_at(struct xac_txn, txn, n_entries, 1000000);
    must_find_at(struct xac_txn, txn, record, far);
    must_find_at(struct xac_txn, txn, word, UINT64_MAX);
    must_find_at(struct xac_entry, entry, page, far);
    must_find_at(struct xac_entry, entry, next, far / 64);
    must_find_at(struct xac_entry, entry, slot, 12345);
    must_find_at(struct xac_vslot, frame, next, UINT64_MAX);
    must_find_at(struct xac_vslot, frame, page, 8);
    must_find_at(struct xac_vslot, frame, word, UINT64_MAX);
    free(copy);
}
END_TEST

START_TEST(random_damage_is_no_crash)
{
    uint64_t seed = env_seed(), refused = 0;
    uint8_t *copy;
    uint64_t n = region_copy(&copy);
    const struct xac_control *ctl = env->ctl;
    uint64_t brk = atomic_load_explicit(&ctl->shm.brk, memory_order_relaxed);
    unsigned rounds = (unsigned)env_number("XAC_ROUNDS", 3000);

    for (unsigned i = 0; i < rounds; i++) {
        /* The head's words up to the ring of commits, or any word. */
        uint64_t most = rnd_below(&seed, 2) ? offsetof(struct xac_control, chain) : brk;
        uint64_t *word = (uint64_t *)(void *)(copy + rnd_below(&seed, most / 8) * 8);
        uint64_t was = *word, bit = rnd_below(&seed, 64);

        *word = rnd_below(&seed, 2) ? rnd_next(&seed) : was ^ UINT64_C(1) << bit;
        refused += xac_control_validate(copy, n, "copy") != 0;
        *word = was;
    }
    must_eq(xac_control_validate(copy, n, "copy"), 0);
    must(refused > rounds / 100);
    free(copy);
}
END_TEST

/* join_damaged -- xInit() and xac_peek_open(), while the environment is in use. */
static void
join_damaged(void *arg)
{
    struct xac_env other;
    int dirfd = open(ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)arg;
    must_refuse(xac_init(ENV_DIR, XAC_NONDURABLE), XAC_EDAMAGED);
    must(strstr(xac_last_error(), "control region") != NULL);
    must_eq(xac_peek_open(dirfd, ENV_DIR, &other), XAC_EDAMAGED);
    close(dirfd);
}

static void
join_without_frames(void *arg)
{
    (void)arg;
    must_refuse(xac_init(ENV_DIR, XAC_NONDURABLE), XAC_EDAMAGED);
    must(strstr(xac_last_error(), ".frames") != NULL);
}

START_TEST(joining_a_damaged_region_is_refused)
{
    _Atomic uint64_t *count = &env->ctl->files.count, *chunk = &env->ctl->txns.chunk[1];
    uint64_t n = atomic_load_explicit(count, memory_order_relaxed);

    atomic_store_explicit(count, n + 1000, memory_order_relaxed);
    proc_run(join_damaged, NULL);
    atomic_store_explicit(count, n, memory_order_relaxed);
    atomic_store_explicit(chunk, UINT64_C(1) << 40, memory_order_relaxed);
    proc_run(join_damaged, NULL);
    atomic_store_explicit(chunk, 0, memory_order_relaxed);
    must(ftruncate(env->buffers.fd[0], 0) == 0); /* a buffer file without its frames */
    proc_run(join_without_frames, NULL);
}
END_TEST

/* take_part -- until it is killed. */
static void
take_part(void *arg)
{
    must_ok(xac_init(ENV_DIR, XAC_NONDURABLE));
    word_store((_Atomic uint64_t *)arg, 1);
    for (;;)
        proc_sleep_us(1000000);
}

/* look_on -- with nothing but the region and the lock file. */
static void
look_on(void *arg)
{
    struct xac_env look;
    int dirfd = open(ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)arg;
    must_ok(xac_peek_open(dirfd, ENV_DIR, &look));
    must(xac_registry_alive(&look, 0));
    must(!xac_registry_alive(&look, 1));
    xac_peek_close(&look);
    must_ok(xac_peek_open(dirfd, ENV_DIR, &look));
    xac_alive_drop(env->lockfd, env->self); /* whatever its number is: nobody is "we" */
    must(!xac_registry_alive(&look, 0));
    must_ok(xac_alive_take(env->lockfd, env->self));
    xac_peek_close(&look);
    close(dirfd);
}

START_TEST(who_looks_on_sees_the_dead)
{
    _Atomic uint64_t *ready = (_Atomic uint64_t *)proc_shared(sizeof *ready);
    pid_t pid = proc_spawn(take_part, (void *)(uintptr_t)ready);

    proc_await(ready, 1, 30);
    proc_kill(pid);
    proc_run(look_on, NULL);
}
END_TEST

START_TEST(damaged_free_list_loses_blocks_only)
{
    struct xac_shm *shm = &env->shm;
    uint64_t a = xac_shm_alloc(shm, 4096), b = xac_shm_alloc(shm, 4096), c, d;

    must(a != 0 && b != 0);
    xac_shm_free(shm, a, 4096);
    xac_shm_free(shm, b, 4096);
    *(uint64_t *)xac_shm_at(shm, b) = UINT64_C(1) << 40; /* what comes behind it */
    c = xac_shm_alloc(shm, 4096);
    d = xac_shm_alloc(shm, 4096);
    must_eq(c, b);
    must(d != 0 && d != a && d != b);
    memset(xac_shm_at(shm, d), 0xff, 4096);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("control");
    TCase *tc = env_tcase(s, "control", 120);

    tcase_add_checked_fixture(tc, open_world, NULL);
    tcase_add_test(tc, pass_what_is_right);
    tcase_add_test(tc, find_sizes_counts_and_offsets);
    tcase_add_test(tc, find_what_elements_name);
    tcase_add_test(tc, random_damage_is_no_crash);
    tcase_add_test(tc, joining_a_damaged_region_is_refused);
    tcase_add_test(tc, who_looks_on_sees_the_dead);
    tcase_add_test(tc, damaged_free_list_loses_blocks_only);
    tc = env_tcase(s, "log", 60);
    tcase_add_checked_fixture(tc, open_durable, NULL);
    tcase_add_test(tc, find_damage_of_the_log);
    return env_main(s);
}
