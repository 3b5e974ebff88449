/* SPDX-License-Identifier: MIT */
/*
 * check_more.c -- what the interface offers beyond the Thesis: stable addresses, xTransact,
 * setRangeAccess, the choice of policies, and transactions of very many pages.
 *
 * GOAL    each does what include/xac.h says, in one process and in several.
 * METHOD  public header only.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "env.h"

/* ---- stable addresses ---------------------------------------------------------------- */

struct node {
    struct node *next;
    uint64_t value;
};

struct shared {
    _Atomic uint64_t address;
    _Atomic uint64_t sum;
};

static uint64_t
sum_list(const struct node *head)
{
    uint64_t sum = 0;

    must_ok(xbeginQuery());
    for (const struct node *n = head->next; n != NULL; n = n->next)
        sum += n->value;
    must_ok(xendQuery());
    return sum;
}

static void
build_list(void *arg)
{
    struct shared *s = (struct shared *)arg;
    struct node *n = (struct node *)env_attach(DURABLE, 16);
    int rc;

    do {
        must_ok(xbegin());
        n[0].next = NULL;
        for (uint64_t i = 1; i <= 100; i++) {
            n[i * 30].value = i;
            n[i * 30].next = n[0].next;
            n[0].next = &n[i * 30];
        }
    } while ((rc = xend()) == ABORTED);
    must_eq(rc, COMMITTED);
    word_store(&s->address, (uint64_t)(uintptr_t)n);
    env_detach();
}

static void
read_list(void *arg)
{
    struct shared *s = (struct shared *)arg;
    struct node *n = (struct node *)env_attach(DURABLE, 16);

    must_eq((uintptr_t)n, word_load(&s->address));
    word_store(&s->sum, sum_list(n));
    env_detach();
}

START_TEST(pointers_stay_valid_from_run_to_run)
{
    struct shared *s = (struct shared *)proc_shared(sizeof *s);

    proc_run(build_list, s);
    proc_run(read_list, s);
    must_eq(word_load(&s->sum), 5050);
}
END_TEST

static void
read_where_taken(void *arg)
{
    struct shared *s = (struct shared *)arg;
    void *wanted = (void *)(uintptr_t)word_load(&s->address);
    uint64_t *x;
    void *p = mmap(wanted, env_page(), PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    must(p == wanted);
    x = (uint64_t *)env_attach(DURABLE, 16);
    must((void *)x != wanted);
    must(env_get(x + 30 * 2 + 1) == 1);
    env_detach();
}

START_TEST(mapping_moves_when_its_place_is_taken)
{
    struct shared *s = (struct shared *)proc_shared(sizeof *s);

    proc_run(build_list, s);
    proc_run(read_where_taken, s);
    proc_run(read_list, s); /* and comes back */
    must_eq(word_load(&s->sum), 5050);
}
END_TEST

/* ---- xTransact ------------------------------------------------------------------------ */

struct job {
    uint64_t *x;
    unsigned runs;
    int result;
};

static int
add_one(void *arg)
{
    struct job *j = (struct job *)arg;

    j->runs++;
    j->x[0]++;
    return j->result;
}

static int
add_nested(void *arg)
{
    struct job *j = (struct job *)arg;

    return xTransact(add_one, j);
}

static int
give_up(void *arg)
{
    struct job *j = (struct job *)arg;

    j->x[0] = 999;
    return xAbort();
}

START_TEST(transact_commits_or_rolls_back)
{
    struct job j = {.x = (uint64_t *)env_attach(NONDURABLE, 1)};

    must_refuse(xTransact(NULL, NULL), EINVAL);
    must_ok(xTransact(add_one, &j));
    must_eq(env_get(j.x), 1);
    j.result = -5;
    must_eq(xTransact(add_one, &j), -5);
    must_eq(env_get(j.x), 1);
    must_eq(j.runs, 2);
    j.result = 0;
    must_ok(xTransact(add_nested, &j));
    must_eq(env_get(j.x), 2);
    must_rc(xTransact(give_up, &j), ABORTED);
    must_eq(env_get(j.x), 2);
    env_detach();
    must_refuse(xTransact(add_one, &j), XAC_ENOINIT);
}
END_TEST

static void
count_waits(void *arg, unsigned attempts)
{
    unsigned *waits = (unsigned *)arg;

    must(attempts >= 1);
    ++*waits;
}

static void
add_many(void *arg)
{
    unsigned waits = 0;
    struct job j = {.x = (uint64_t *)env_attach(NONDURABLE, 1)};
    uint64_t kind = word_load((_Atomic uint64_t *)arg);

    if (kind == 1)
        must_ok(xac_set_backoff(xac_backoff_none, NULL));
    else if (kind == 2)
        must_ok(xac_set_backoff(count_waits, &waits));
    for (int i = 0; i < 2000; i++)
        must_ok(xTransact(add_one, &j));
    if (kind == 2)
        must_eq(waits, j.runs - 2000);
    env_detach();
}

START_TEST(transact_retries_until_it_commits)
{
    _Atomic uint64_t *kind = (_Atomic uint64_t *)proc_shared(sizeof *kind);
    uint64_t *x;
    pid_t child[3];

    env_let_overlap();
    word_store(kind, (uint64_t)_i);
    for (int i = 0; i < 3; i++)
        child[i] = proc_spawn(add_many, kind);
    for (int i = 0; i < 3; i++)
        proc_join(child[i]);
    x = (uint64_t *)env_attach(NONDURABLE, 1);
    must_eq(env_get(x), 6000);
    env_detach();
}
END_TEST

/* ---- setRangeAccess ------------------------------------------------------------------- */

START_TEST(range_may_be_handed_to_system_calls)
{
    pid_t companion = env_companion(NONDURABLE, 8);
    char *x = (char *)env_attach(NONDURABLE, 8);
    size_t page = env_page();
    int fd = open("plain", O_RDWR | O_CREAT, 0666);

    must(fd >= 0);
    must(ftruncate(fd, (off_t)(8 * page)) == 0);
    must(pwrite(fd, "front", 5, 0) == 5);
    must_ok(xbegin());
    must_refuse(setRangeAccess(x, 0, READ), EINVAL);
    must_refuse(setRangeAccess(x + page, 8 * page, READ), EINVAL);
    must_refuse(setRangeAccess(x, page, 17), EINVAL);
    must(pread(fd, x + 100, 3 * page, 0) == -1 && errno == EFAULT);
    must_ok(setRangeAccess(x + 100, 3 * page, READ_WRITE));
    must_eq(pread(fd, x + 100, 3 * page, 0), 3 * page);
    must_rc(xend(), COMMITTED);
    must_ok(xbeginQuery());
    must_ok(setRangeAccess(x, 4 * page, READ));
    must_eq(pwrite(fd, x, 4 * page, 0), 4 * page);
    must_refuse(setRangeAccess(x, page, READ_WRITE), XAC_EINQUERY);
    must_ok(xendQuery());
    must(pread(fd, x, 1, 0) == -1);
    close(fd);
    proc_kill(companion);
    env_detach();
    must_eq(file_u64("plain", 100) & 0xffffffffff, UINT64_C(0x746e6f7266));
}
END_TEST

/* ---- policies ------------------------------------------------------------------------- */

static void
move_about(void *arg)
{
    uint64_t seed = word_load((_Atomic uint64_t *)arg);
    uint64_t *x = (uint64_t *)env_attach(NONDURABLE, 4);
    size_t cells = env_page() / sizeof *x;

    for (int i = 0; i < 1500;) {
        uint64_t total = 0;
        int rc;

        seed = seed * UINT64_C(6364136223846793005) + 1;
        must_ok(xbegin());
        for (size_t p = 0; p < 4; p++)
            total += x[p * cells];
        must_eq(total, 4000); /* whether it is going to commit or not */
        x[(seed >> 33) % 4 * cells] -= 1;
        x[(seed >> 40) % 4 * cells] += 1;
        rc = xend();
        must(rc == COMMITTED || rc == ABORTED);
        i += rc == COMMITTED;
    }
    env_detach();
}

START_TEST(every_policy_keeps_the_total)
{
    _Atomic uint64_t *seed = (_Atomic uint64_t *)proc_shared(sizeof *seed);
    uint64_t *x, total = 0;
    pid_t child[3];

    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)_i));
    x = (uint64_t *)env_attach(NONDURABLE, 4);
    for (size_t p = 0; p < 4; p++)
        env_put(&x[p * env_page() / 8], 1000);
    env_detach();
    for (int i = 0; i < 3; i++) {
        word_store(seed, env_seed() + (uint64_t)i);
        child[i] = proc_spawn(move_about, seed);
        proc_sleep_us(2000);
    }
    for (int i = 0; i < 3; i++)
        proc_join(child[i]);
    x = (uint64_t *)env_attach(NONDURABLE, 4);
    must_ok(xbeginQuery());
    for (size_t p = 0; p < 4; p++)
        total += x[p * env_page() / 8];
    must_ok(xendQuery());
    must_eq(total, 4000);
    env_detach();
}
END_TEST

/* ---- very many pages ------------------------------------------------------------------ */

/* A segment's length in pages in which n pages lie scattered. */
static size_t
room_for(size_t n)
{
    size_t n_pages = 1;

    while (n_pages < 4 * n)
        n_pages *= 2;
    return n_pages;
}

/* More scattered pages than the kernel has mappings for. */
START_TEST(transaction_touches_any_number_of_pages)
{
    size_t n_touched = env_number("XAC_WRITTEN", 70000);
    size_t n_pages = room_for(n_touched);
    unsigned char *x = (unsigned char *)env_attach(NONDURABLE, n_pages);
    size_t page = env_page();

    for (int round = 0; round < 2; round++) {
        must_ok(xbegin());
        for (size_t i = 0; i < n_touched; i++) {
            uint64_t *cell = (uint64_t *)(void *)(x + i * 78977 % n_pages * page);

            must_eq(*cell, round == 0 ? 0 : i + 1);
            *cell = i + 1 + (uint64_t)round;
        }
        if (_i == 1 && round == 1)
            must_ok(xAbort());
        must_rc(xend(), _i == 1 && round == 1 ? ABORTED : COMMITTED);
    }
    must_ok(xbeginQuery());
    for (size_t i = 0; i < n_touched; i++)
        must_eq(*(uint64_t *)(void *)(x + i * 78977 % n_pages * page),
                i + 1 + (_i == 0 ? 1 : 0));
    must_ok(xendQuery());
    env_detach();
}
END_TEST

/* In a child: store a number as another participant. */
static void
overwrite(void *arg)
{
    env_put((uint64_t *)arg, 5);
    env_detach();
}

/* Reads are recorded, too: another's write to any of them is a conflict. */
START_TEST(transaction_reads_any_number_of_pages)
{
    size_t n_read = env_number("XAC_READ", 70000);
    size_t n_pages = room_for(n_read);
    size_t words = env_page() / sizeof(uint64_t);
    uint64_t *x, sum;

    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_SELFISH)); /* the child is younger */
    x = (uint64_t *)env_attach(NONDURABLE, n_pages);
    for (int attempt = 0; attempt < 2; attempt++) {
        sum = 0;
        must_ok(xbegin());
        for (size_t i = 0; i < n_read; i++)
            sum += x[i * 78977 % n_pages * words];
        x[n_pages * words - 1] = sum + 1;
        if (attempt == 0)
            proc_run(overwrite, &x[77 * 78977 % n_pages * words]);
        must_rc(xend(), attempt == 0 ? ABORTED : COMMITTED);
    }
    must_eq(sum, 5);
    must_eq(env_get(&x[n_pages * words - 1]), 6);
    env_detach();
}
END_TEST

/* ---- who holds versions back ---------------------------------------------------------- */

static void
hold_a_query(void *arg)
{
    uint64_t *x = env_attach(NONDURABLE, 16);

    must_ok(xbeginQuery());
    must_eq(*(volatile uint64_t *)x, 0);
    word_store(arg, 1);
    proc_sleep_us(60000000);
}

/* Somebody who wonders why versions pile up is told whom to look for. */
START_TEST(stats_name_the_oldest_reader)
{
    struct xac_stats s;
    _Atomic uint64_t *asked;
    uint64_t *x;
    pid_t child;
    size_t step = env_page() / sizeof *x;

    asked = proc_shared(sizeof *asked);
    child = proc_spawn(hold_a_query, asked);
    x = env_attach(NONDURABLE, 16);
    proc_await(asked, 1, 20);
    must_ok(xStats(&s, sizeof s));
    must_eq(s.oldest_pid, child);
    must_eq(s.oldest_behind, 0);
    must_eq(s.oldest_commit, s.commit_number);
    for (uint64_t i = 1; i <= 300; i++)
        env_put(&x[i % 10 * step], i);
    proc_sleep_us(50000);
    must_ok(xStats(&s, sizeof s));
    must_eq(s.oldest_pid, child);
    must_eq(s.oldest_behind, 300);
    must_eq(s.oldest_commit + 300, s.commit_number);
    must(s.oldest_age_ns >= 40000000 && s.oldest_age_ns < 20000000000);
    must(s.versions_held >= s.versions_oldest && s.versions_held < 100);
    proc_kill(child);
    for (uint64_t i = 1; i <= 3000; i++)
        env_put(&x[i % 10 * step], i);
    must_ok(xCheckpoint());
    must_ok(xStats(&s, sizeof s));
    must_eq(s.oldest_pid, 0);
    must_eq(s.versions_held, 0);
    env_detach();
}
END_TEST

/* ---- validation ahead of the end -------------------------------------------------------- */

START_TEST(optimistic_loser_is_told_before_its_end)
{
    struct xac_conflict why;
    uint64_t *x;
    uint64_t was;

    env_checking = XAC_CHECKING_STRICT; /* or a newcomer revokes (memory model, 34) */
    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_OPTIMISTIC));
    x = env_attach(NONDURABLE, 4);
    must_ok(xbegin());
    was = x[0];
    x[1024] = was + 1;
    must_rc(xValidate(), PENDING);
    proc_run(overwrite, x);
    must_rc(xValidate(), FAILED);
    must_eq(x[0], was); /* its snapshot stays */
    must_rc(xend(), ABORTED);
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.kind, XAC_CONFLICT_VALIDATION);
    must_eq(why.file_offset, 0);
    must_eq(env_get(x), 5);
    env_detach();
}
END_TEST

/* ---- descriptors ------------------------------------------------------------------------ */

/* A process that has used up its descriptors cannot do a checkpoint.  That harms nobody. */
START_TEST(lack_of_descriptors_poisons_nothing)
{
    uint64_t *x = env_attach(DURABLE, 1);
    struct rlimit was, low;
    int fd;

    env_put(x, 1);
    must(getrlimit(RLIMIT_NOFILE, &was) == 0);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    must(fd >= 0);
    low = was;
    low.rlim_cur = (rlim_t)fd; /* none below is free */
    must(close(fd) == 0 && setrlimit(RLIMIT_NOFILE, &low) == 0);
    must_rc(xCheckpoint(), EMFILE);
    env_put(x, 2);
    must_rc(xBackup("copy"), EMFILE);
    must(setrlimit(RLIMIT_NOFILE, &was) == 0);
    must_ok(xCheckpoint());
    must_eq(file_u64(ENV_FILE, 0), 2);
    env_put(x, 3);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 3);
}
END_TEST

static Suite *
more_suite(void)
{
    Suite *s = suite_create("more");
    TCase *tc = env_tcase(s, "addresses", 60);

    tcase_add_test(tc, pointers_stay_valid_from_run_to_run);
    tcase_add_test(tc, mapping_moves_when_its_place_is_taken);
    tc = env_tcase(s, "calls", 60);
    tcase_add_test(tc, transact_commits_or_rolls_back);
    tcase_add_loop_test(tc, transact_retries_until_it_commits, 0, 3);
    tcase_add_test(tc, range_may_be_handed_to_system_calls);
    tcase_add_test(tc, lack_of_descriptors_poisons_nothing);
    tc = env_tcase(s, "policies", 120);
    tcase_add_loop_test(tc, every_policy_keeps_the_total, 0, XAC_POLICY_SERIAL + 1);
    tc = env_tcase(s, "many pages", 240);
    tcase_add_loop_test(tc, transaction_touches_any_number_of_pages, 0, 2);
    tcase_add_test(tc, transaction_reads_any_number_of_pages);
    tcase_add_test(tc, stats_name_the_oldest_reader);
    tc = env_tcase(s, "validation", 30);
    tcase_add_test(tc, optimistic_loser_is_told_before_its_end);
    return s;
}

int
main(void)
{
    return env_main(more_suite());
}
