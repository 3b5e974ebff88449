/* SPDX-License-Identifier: MIT */
/*
 * check_shared.c -- pools in memory shared by processes, and processes that die: with pages
 * fixed, with the policy's lock, in the middle of a call; a fork with a queue; and fixes from
 * a SIGSEGV handler.
 *
 *   XAC_ROUNDS=n  processes killed at random moments (20)
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store.h"

#define PAGE_BYTES 64
#define N_PAGES    100

static struct store *store;
static struct xac_frames *pool;
static struct xac_frames_user *user;
static void *memory;

/* In memory that children share at the same address; they attach all the same. */
static void
pool_make(struct xac_frames_config c)
{
    struct xac_frames_io io;

    c.n_pages = N_PAGES;
    c.n_users = 8;
    c.page_bytes = PAGE_BYTES;
    c.full_tries = 50;
    store = store_make(N_PAGES, PAGE_BYTES);
    io = store_io(store);
    memory = proc_shared(xac_frames_bytes(&c));
    must_ok(xac_frames_create(&c, memory, &io, &pool));
    must_ok(xac_frames_join(pool, &user));
}

static void
pool_end(void)
{
    must_be_whole(pool, 0);
    xac_frames_leave(user);
    xac_frames_close(pool);
}

static void
add(struct xac_frames_user *who, uint64_t page, uint64_t n)
{
    struct xac_frames_pin pin;

    must_ok(xac_frames_fix(who, page, 0, &pin));
    *(uint64_t *)pin.data += n;
    xac_frames_mark_dirty(who, &pin);
    xac_frames_unfix(who, &pin);
}

static uint64_t
sum(void)
{
    uint64_t n = 0;

    must_ok(xac_frames_flush_all(user));
    for (uint64_t page = 0; page < N_PAGES; page++)
        n += *(uint64_t *)(void *)store_page(store, page);
    return n;
}

/* ---- Notes (rule 1 of pins_max) ------------------------------------------------------ */

START_TEST(refuse_more_pins_than_noted)
{
    struct xac_frames_pin pins[4];

    pool_make((struct xac_frames_config){.n_frames = 8, .pins_max = 3});
    for (uint64_t i = 0; i < 3; i++)
        must_ok(xac_frames_fix(user, i % 2, 0, &pins[i]));
    must_eq(xac_frames_fix(user, 5, 0, &pins[3]), EMFILE);
    must_eq(xac_frames_fix_many(user, 1, (uint64_t[]){6}, &pins[3]), EMFILE);
    xac_frames_unfix(user, &pins[0]);
    must_ok(xac_frames_fix(user, 5, 0, &pins[3]));
    for (int i = 1; i < 4; i++)
        xac_frames_unfix(user, &pins[i]);
    pool_end();
    pool_make((struct xac_frames_config){.n_frames = 8});
    must_eq(xac_frames_reap(pool, 1), EINVAL);
    must_eq(xac_frames_repair(pool), EINVAL);
    pool_end();
}
END_TEST

/* ---- N26: killed with pages fixed ---------------------------------------------------- */

struct child {
    _Atomic uint64_t ready;
    uint64_t seed;
    enum xac_frames_step step; /* where it dies */
    _Atomic uint64_t n_steps;  /* after so many of them */
};

static void
child_attach(struct xac_frames **minep, struct xac_frames_user **whop)
{
    struct xac_frames_io io = store_io(store);

    must_ok(xac_frames_attach(memory, &io, minep));
    must_ok(xac_frames_join(*minep, whop));
}

static void
child_fix_and_wait(void *arg)
{
    struct child *c = arg;
    struct xac_frames *mine;
    struct xac_frames_user *who;
    struct xac_frames_pin pin;

    child_attach(&mine, &who);
    for (uint64_t page = 0; page < 5; page++)
        must_ok(xac_frames_fix(who, page, 0, &pin));
    must_ok(xac_frames_fix(who, 3, 0, &pin));
    *(uint64_t *)pin.data += 7;
    xac_frames_mark_dirty(who, &pin);
    word_store(&c->ready, 1);
    for (;;)
        proc_sleep_us(100000);
}

static void
kill_with_pins(struct xac_frames_config config)
{
    struct child *c = proc_shared(sizeof *c);
    struct xac_frames_pin pin;
    pid_t pid;

    pool_make(config);
    pid = proc_spawn(child_fix_and_wait, c);
    proc_await(&c->ready, 1, 30);
    must_ok(xac_frames_fix(user, 4, 0, &pin)); /* two have it */
    proc_kill(pid);
    must_be_whole(pool, 7);
    for (uint64_t page = 10; page < 60; page++) /* others go on */
        add(user, page, 1);
    must_ok(xac_frames_reap(pool, pid));
    must_be_whole(pool, 1);
    must_ok(xac_frames_reap(pool, pid)); /* nothing more to do */
    must_be_whole(pool, 1);
    xac_frames_unfix(user, &pin);
    for (int i = 0; i < 7; i++) { /* its place is free again */
        struct xac_frames_user *more;

        must_ok(xac_frames_join(pool, &more));
        xac_frames_leave(more);
    }
    must_eq(sum(), 50 + 7);
    pool_end();
}

START_TEST(give_back_what_the_dead_had_fixed)
{
    kill_with_pins((struct xac_frames_config){.n_frames = 8, .pins_max = 10});
    kill_with_pins((struct xac_frames_config){.n_frames = 8,
                                              .pins_max = 10,
                                              .policy = XAC_FRAMES_LRU,
                                              .batch_queue = 64,
                                              .batch_threshold = 32});
}
END_TEST

/* ---- F19: killed at each step, and at random moments ---------------------------------- */

static struct child *dying;

static void
probe_die(void *arg, enum xac_frames_step step)
{
    (void)arg;
    if (step == dying->step && atomic_fetch_sub(&dying->n_steps, 1) == 1)
        (void)kill(getpid(), SIGKILL);
}

static void
child_add(void *arg)
{
    struct child *c = arg;
    struct xac_frames *mine;
    struct xac_frames_user *who;
    uint64_t seed = c->seed;

    child_attach(&mine, &who);
    dying = c;
    mine->io.probe = probe_die;
    word_store(&c->ready, 1);
    for (;;)
        add(who, mix(&seed) % 50, 0);
}

/* reap_and_repair -- while this process goes on, and when it has stopped. */
static void
reap_and_repair(pid_t pid)
{
    int rc;

    for (uint64_t i = 0; i < 2 * N_PAGES; i++) /* the store is not what is tested */
        latch_drop(store, i);
    for (uint64_t i = 0; i < N_PAGES; i++)
        atomic_store(&store->writing[i], 0);
    rc = xac_frames_reap(pool, pid);
    must(rc == 0 || rc == EAGAIN);
    for (uint64_t page = 50; page < N_PAGES; page++) /* nobody waits for the dead */
        add(user, page, 1);
    if (rc == EAGAIN) {
        if (pool->plug != NULL)
            xac_frames_locked_tell(user);
        must_ok(xac_frames_repair(pool));
    }
    must_be_whole(pool, 0);
    for (uint64_t page = 0; page < N_PAGES; page++)
        add(user, page, 1);
    must_be_whole(pool, 0);
}

static const struct xac_frames_config mortal[] = {
    {.n_frames = 16, .pins_max = 10, .hand_cells = 4},
    {.n_frames = 16, .pins_max = 10, .policy = XAC_FRAMES_LRU},
    {.n_frames = 16,
     .pins_max = 10,
     .policy = XAC_FRAMES_2Q,
     .batch_queue = 8,
     .batch_threshold = 4,
     .free_lists = 2,
     .free_batch = 2},
    {.n_frames = 16, .pins_max = 10, .policy = XAC_FRAMES_LIRS, .parts = 2},
};

START_TEST(go_on_after_a_death_at_any_step)
{
    for (size_t k = 0; k < sizeof mortal / sizeof mortal[0]; k++)
        for (int step = XAC_FRAMES_AT_RESERVED; step <= XAC_FRAMES_AT_LOCKED; step++)
            for (uint64_t n = 1; n <= 21; n += 10) {
                struct child *c = proc_shared(sizeof *c);
                pid_t pid;

                if (k == 0
                        ? step == XAC_FRAMES_AT_LOCKED
                        : step == XAC_FRAMES_AT_RESERVED || step == XAC_FRAMES_AT_RETIRED)
                    continue; /* not a step of this one */
                if (step == XAC_FRAMES_AT_RESERVED && n > 16)
                    continue; /* as many vacant frames there are */
                pool_make(mortal[k]);
                c->step = (enum xac_frames_step)step;
                atomic_store(&c->n_steps, n);
                pid = proc_spawn(child_add, c);
                must(WIFSIGNALED(proc_wait(pid)));
                reap_and_repair(pid);
                must_eq(sum(), 50 + N_PAGES);
                pool_end();
            }
}
END_TEST

START_TEST(go_on_after_a_death_at_any_moment)
{
    uint64_t seed = env_seed(), n_rounds = env_number("XAC_ROUNDS", 20);
    uint64_t n_repairs = 0;

    for (uint64_t round = 0; round < n_rounds; round++) {
        struct child *c = proc_shared(sizeof *c);
        pid_t pid;

        pool_make(mortal[round % 4]);
        c->seed = round;
        pid = proc_spawn(child_add, c);
        proc_await(&c->ready, 1, 30);
        proc_sleep_us(mix(&seed) % 3000);
        proc_kill(pid);
        for (uint32_t i = 0; i < 8; i++)
            n_repairs += atomic_load(&pool->seats[i].in_call) != 0;
        reap_and_repair(pid);
        must_eq(sum(), 50 + N_PAGES);
        pool_end();
    }
    printf("%llu processes killed, %llu in a call\n", (unsigned long long)n_rounds,
           (unsigned long long)n_repairs);
}
END_TEST

/* Killed in the write of a page: it stays dirty, and is written by the next who flushes. */
static void
die_on_write(struct store *s, uint64_t page)
{
    (void)s;
    if (page == 3)
        (void)kill(getpid(), SIGKILL);
}

static void
child_flush(void *arg)
{
    struct xac_frames *mine;
    struct xac_frames_user *who;

    (void)arg;
    child_attach(&mine, &who);
    add(who, 3, 9);
    store->on_write = die_on_write; /* in this process only */
    (void)xac_frames_flush(who, 3);
}

START_TEST(write_again_what_the_dead_was_writing)
{
    struct store *shared;
    pid_t pid;

    pool_make((struct xac_frames_config){.n_frames = 8, .pins_max = 4});
    shared = store;
    pid = proc_spawn(child_flush, NULL);
    must(WIFSIGNALED(proc_wait(pid)));
    shared->on_write = NULL;
    atomic_store(&shared->writing[3], 0);
    must_eq(*(uint64_t *)(void *)store_page(store, 3), 0);
    must_eq(xac_frames_reap(pool, pid), EAGAIN);
    must_ok(xac_frames_flush(user, 3));
    must_eq(*(uint64_t *)(void *)store_page(store, 3), 9);
    must_ok(xac_frames_repair(pool));
    pool_end();
}
END_TEST

/* A child's queue is its own, also in the middle of its parent's. */
static void
child_hit(void *arg)
{
    struct xac_frames_user *who;

    (void)arg;
    must_ok(xac_frames_join(pool, &who));
    must_eq(who->queues[0].n, 0);
    for (int i = 0; i < 5; i++)
        add(who, 1, 1);
    xac_frames_leave(who);
}

START_TEST(fork_in_the_middle_of_a_queue)
{
    struct xac_frames_stats s;

    pool_make((struct xac_frames_config){.n_frames = 8,
                                         .policy = XAC_FRAMES_LRU,
                                         .batch_queue = 64,
                                         .batch_threshold = 32});
    for (int i = 0; i < 5; i++)
        add(user, 0, 1);
    proc_run(child_hit, NULL);
    must_eq(user->queues[0].n, 4);
    xac_frames_locked_tell(user);
    xac_frames_get_stats(pool, &s, sizeof s);
    must_eq(s.batched, 4 + 4);
    must_eq(sum(), 10);
    pool_end();
}
END_TEST

/* ---- N27: from a fault handler --------------------------------------------------------- */

#define FAULT_THREADS 4

static _Thread_local struct xac_frames_user *faulting;
static _Thread_local uint64_t fault_seed;
static _Thread_local char *fault_page;
static size_t fault_bytes;

static void
on_fault(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    if ((char *)info->si_addr != fault_page)
        _exit(signal_number);
    for (int i = 0; i < 3; i++) {
        uint64_t page = mix(&fault_seed) % N_PAGES;
        struct xac_frames_pin pin;
        int rc;

        do
            rc = xac_frames_fix(faulting, page, 0, &pin);
        while (rc == ENOBUFS);
        if (rc != 0)
            _exit(3);
        atomic_fetch_add((_Atomic uint64_t *)pin.data, 1);
        xac_frames_mark_dirty(faulting, &pin);
        xac_frames_unfix(faulting, &pin);
    }
    (void)mprotect(fault_page, fault_bytes, PROT_READ | PROT_WRITE);
}

static void *
fault_run(void *arg)
{
    uint64_t n = env_number("XAC_FIXES", 20000) / 10;

    fault_seed = (uint64_t)(uintptr_t)arg;
    must_ok(xac_frames_join(pool, &faulting));
    fault_page = mmap(NULL, fault_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(fault_page != MAP_FAILED);
    for (uint64_t i = 0; i < n; i++) {
        *(volatile char *)fault_page = 1;
        must_eq(mprotect(fault_page, fault_bytes, PROT_NONE), 0);
    }
    must_eq(munmap(fault_page, fault_bytes), 0);
    xac_frames_leave(faulting);
    return NULL;
}

START_TEST(fix_in_a_fault_handler)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
    pthread_t threads[FAULT_THREADS];
    struct xac_frames_stats s;

    fault_bytes = env_page();
    pool_make((struct xac_frames_config){.n_frames = 16});
    must_eq(sigaction(SIGSEGV, &action, &before), 0);
    for (uintptr_t i = 0; i < FAULT_THREADS; i++)
        must_eq(pthread_create(&threads[i], NULL, fault_run, (void *)(i + 1)), 0);
    for (int i = 0; i < FAULT_THREADS; i++)
        must_eq(pthread_join(threads[i], NULL), 0);
    must_eq(sigaction(SIGSEGV, &before, NULL), 0);
    xac_frames_get_stats(pool, &s, sizeof s);
    must(s.misses > 0 && s.evictions > 0);
    must_eq(sum(), FAULT_THREADS * 3 * (env_number("XAC_FIXES", 20000) / 10));
    must_eq(atomic_load(&store->n_overlaps), 0);
    pool_end();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("frames shared by processes");
    TCase *t = env_tcase(s, "deaths", 300);

    tcase_add_test(t, refuse_more_pins_than_noted);
    tcase_add_test(t, give_back_what_the_dead_had_fixed);
    tcase_add_test(t, go_on_after_a_death_at_any_step);
    tcase_add_test(t, go_on_after_a_death_at_any_moment);
    tcase_add_test(t, write_again_what_the_dead_was_writing);
    tcase_add_test(t, fork_in_the_middle_of_a_queue);
    tcase_add_test(t, fix_in_a_fault_handler);
    return env_main(s);
}
