/* SPDX-License-Identifier: MIT */
/*
 * check_guards.c -- touches of addresses that are in no mapping.
 *
 * GOAL    a load or a store behind the end of a mapping, before its start, or where a mapping
 *         has been, stops the program with SIGABRT and words that name the process, the file, the
 *         offset and the mistake, inside and outside of transactions.  Faults that have nothing
 *         to do with a mapping go where they went before.  No mapping fails for that.
 * METHOD  each touch happens in a child, with its output captured, with each engine.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"

#define PAGES 4u
#define OTHER "other.db"

static char output[4096];

enum when {
    OUTSIDE,
    IN_TRANSACTION,
    IN_QUERY,
    WHENS
};

/* A touch; what the child does before is up to each test's prepare(). */
struct touch {
    void *(*prepare)(const struct touch *t); /* ret where `offset` counts from         */
    int64_t offset;                          /* of the touch                           */
    enum when when;
    bool is_store;
    bool has_sigsegv; /* engine                                                       */
    uint64_t *pid;    /* shared                                                       */
};

static void
touch(void *at, bool is_store)
{
    volatile unsigned char *p = (volatile unsigned char *)at;

    if (is_store)
        *p = 1;
    else
        (void)*p;
}

static void
touch_in_child(void *arg)
{
    const struct touch *t = (const struct touch *)arg;
    unsigned char *base;

    if (t->has_sigsegv)
        must(setenv("XAC_ENGINE", "sigsegv", 1) == 0);
    base = (unsigned char *)t->prepare(t);
    *t->pid = (uint64_t)getpid();
    if (t->when == IN_TRANSACTION)
        must_ok(xbegin());
    if (t->when == IN_QUERY)
        must_ok(xbeginQuery());
    touch(base + t->offset, t->is_store);
    dprintf(STDOUT_FILENO, "the program went on\n");
}

static void
must_mention(const char *what)
{
    if (strstr(output, what) == NULL)
        env_fail(__FILE__, __LINE__, "no \"%s\" in: %s", what, output);
}

/* must_say -- the touch stops the program, with these words at that offset of the file. */
static void
must_say(struct touch t, const char *file, uint64_t offset, const char *words)
{
    char want[200];
    int status;

    t.pid = (uint64_t *)proc_shared(sizeof *t.pid);
    status = proc_capture(touch_in_child, &t, output, sizeof output);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        env_fail(__FILE__, __LINE__, "status 0x%x, not SIGABRT: %s", (unsigned)status,
                 output);
    snprintf(want, sizeof want, "libxac: process %" PRIu64 ": %s /", *t.pid,
             t.is_store ? "store to" : "load from");
    must_mention(want);
    snprintf(want, sizeof want, "/%s at offset %" PRIu64 ": ", file, offset);
    must_mention(want);
    must_mention(words);
    must_mention("libxac: hint: ");
    (void)munmap(t.pid, sizeof *t.pid);
}

/* must_say_always -- for all ways and moments of a touch. */
static void
must_say_always(struct touch t, const char *file, uint64_t offset, const char *words)
{
    for (unsigned i = 0; i < 4u * WHENS; i++) {
        t.is_store = (i & 1) != 0;
        t.has_sigsegv = (i & 2) != 0;
        t.when = (enum when)(i / 4);
        must_say(t, file, offset, words);
    }
}

/* ---- behind and before -------------------------------------------------------------------- */

static size_t
length(void)
{
    return PAGES * env_page();
}

static void *
map_whole(const struct touch *t)
{
    (void)t;
    return env_attach(DURABLE, PAGES);
}

/* map_part -- the file from its second page on. */
static void *
map_part(const struct touch *t)
{
    (void)t;
    env_init(NONDURABLE);
    return env_map_at(2, PAGES);
}

/* missed -- the words for a mapping that has been missed by so much. */
static const char *
missed(size_t distance, const char *what)
{
    static char words[200];

    snprintf(words, sizeof words,
             "the address is %zu bytes %s of the mapping of %s (%zu bytes)", distance,
             what, ENV_FILE, length());
    return words;
}

#define BEHIND "behind the end"
#define BEFORE "before the start"

START_TEST(touch_behind_the_end_stops)
{
    const size_t distance[] = {0, 8, env_page() - 1, env_page(), (size_t)1 << 20};

    for (unsigned i = 0; i < sizeof distance / sizeof distance[0]; i++) {
        uint64_t at = length() + distance[i];
        struct touch t = {.prepare = map_whole, .offset = (int64_t)at};

        if (i == 0)
            must_say_always(t, ENV_FILE, at, missed(0, BEHIND));
        else
            must_say(t, ENV_FILE, at, missed(distance[i], BEHIND));
        t.prepare = map_part;
        must_say(t, ENV_FILE, 2 * env_page() + at, missed(distance[i], BEHIND));
    }
}
END_TEST

START_TEST(touch_before_the_start_stops)
{
    struct touch t = {.prepare = map_part, .offset = -8};

    must_say_always(t, ENV_FILE, 2 * env_page() - 8, missed(8, BEFORE));
}
END_TEST

static void *
map_two(const struct touch *t)
{
    void *x = map_whole(t);

    must(xMmap(OTHER, 64 * env_page()) != MAP_FAILED);
    return x;
}

START_TEST(the_right_file_is_named)
{
    struct touch t = {.prepare = map_two, .offset = (int64_t)length()};

    must_say_always(t, ENV_FILE, length(), missed(0, BEHIND));
}
END_TEST

/* ---- where a mapping has been ----------------------------------------------------------- */

static void *
unmap(const struct touch *t)
{
    void *x = map_two(t);

    must_ok(xMunmap(ENV_FILE));
    return x;
}

static void *
unmap_at(const struct touch *t)
{
    void *x = map_part(t);

    must_ok(xMunmapAt(x));
    return x;
}

START_TEST(touch_after_unmapping_stops)
{
    struct touch t = {.prepare = unmap};

    must_say_always(t, ENV_FILE, 0, ENV_FILE " was unmapped by xMunmap()");
    t.offset = (int64_t)length() - 1;
    must_say(t, ENV_FILE, length() - 1, ENV_FILE " was unmapped by xMunmap()");
    t = (struct touch){.prepare = unmap_at, .offset = 5};
    must_say(t, ENV_FILE, 2 * env_page() + 5, ENV_FILE " was unmapped by xMunmapAt()");
}
END_TEST

static void *
make_shorter(const struct touch *t)
{
    void *x = env_attach(NONDURABLE, 10000);

    (void)t;
    must(xMremap(x, length(), 0) == x);
    return x;
}

static void *
move_away(const struct touch *t)
{
    unsigned char *x = map_whole(t);

    must(mmap(x + length(), env_page(), PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
         == x + length());
    must(xMremap(x, 2 * length(), XAC_MAY_MOVE) != MAP_FAILED);
    return x;
}

START_TEST(touch_after_resizing_stops)
{
    struct touch t = {.prepare = make_shorter, .offset = (int64_t)length()};
    size_t far = 10000 * env_page() - 1 - length();

    must_say_always(t, ENV_FILE, length(), missed(0, BEHIND));
    t.offset += (int64_t)far; /* the last byte that has been mapped */
    must_say(t, ENV_FILE, length() + far, missed(far, BEHIND));
    t = (struct touch){.prepare = move_away, .offset = 16, .is_store = true};
    must_say(t, ENV_FILE, 16, ENV_FILE " was moved by xMremap()");
}
END_TEST

static void *
map_again_shorter(const struct touch *t)
{
    void *x = unmap(t);

    must(xMmap(ENV_FILE, env_page()) == x);
    return x;
}

/* What has happened last is what is said. */
START_TEST(touch_behind_what_is_mapped_again_stops)
{
    struct touch t = {.prepare = map_again_shorter, .offset = (int64_t)env_page()};

    must_say(t, ENV_FILE, env_page(), "is 0 bytes behind the end of the mapping");
}
END_TEST

/* ---- views of threads, children -------------------------------------------------------- */

static void *
use_view(const struct touch *t)
{
    return xView(map_whole(t));
}

static void *
give_view_back(const struct touch *t)
{
    void *x = xView(map_whole(t));

    must(x != MAP_FAILED);
    must_ok(xUnview(x));
    for (int i = 0; i < 20; i++) /* the kernel gives the addresses to nobody else */
        must(mmap(NULL, length(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                  0)
             != MAP_FAILED);
    return x;
}

static void *view_of_thread;

static void *
view_and_end(void *base)
{
    view_of_thread = xView(base);
    must(view_of_thread != MAP_FAILED);
    return NULL;
}

static void *
let_thread_end(const struct touch *t)
{
    void *x = map_whole(t);
    pthread_t thread;

    must(pthread_create(&thread, NULL, view_and_end, x) == 0);
    must(pthread_join(thread, NULL) == 0);
    return view_of_thread;
}

START_TEST(touch_behind_a_view_stops)
{
    struct touch t = {.prepare = use_view, .offset = (int64_t)length()};

    must_say_always(t, ENV_FILE, length(), "is 0 bytes behind the end of the view of ");
    t.offset += (int64_t)env_page();
    must_say(t, ENV_FILE, length() + env_page(), "behind the end of the view of ");
    t = (struct touch){.prepare = give_view_back};
    must_say_always(t, ENV_FILE, 0, ENV_FILE " was unmapped by xUnview()");
    t.prepare = let_thread_end;
    must_say(t, ENV_FILE, 0, "was unmapped when the thread that called xView() ended");
}
END_TEST

/* go_on_in_child -- the parent ends as the child does. */
static void *
go_on_in_child(const struct touch *t)
{
    void *x = map_two(t);
    int status;
    pid_t pid;

    must_ok(xMunmap(OTHER));
    pid = fork();
    must(pid >= 0);
    if (pid == 0)
        return x;
    must(waitpid(pid, &status, 0) == pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        abort();
    _exit(1);
}

START_TEST(touch_in_a_child_stops)
{
    struct touch t = {.prepare = go_on_in_child, .offset = (int64_t)length()};

    must_say_always(t, ENV_FILE, length(), missed(0, BEHIND));
}
END_TEST

/* ---- what is not ours -------------------------------------------------------------------- */

static unsigned char *own;
static volatile sig_atomic_t n_own;

static void
open_own(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    n_own++;
    if ((unsigned char *)info->si_addr != own
        || mprotect(own, env_page(), PROT_READ | PROT_WRITE) != 0)
        _exit(77);
}

/* A page of the program itself right behind a mapping, and where one has been: its faults go to the
   program's handler. */
START_TEST(own_memory_beside_a_mapping_is_the_programs)
{
    struct sigaction sa = {.sa_sigaction = open_own, .sa_flags = SA_SIGINFO};
    unsigned char *x;

    must(sigaction(SIGSEGV, &sa, NULL) == 0);
    x = (unsigned char *)env_attach(DURABLE, PAGES);
    if (_i == 1)
        must_ok(xMunmap(ENV_FILE));
    own = _i == 1 ? x : x + length();
    must(mmap(own, env_page(), PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
         == own);
    touch(own, true);
    must_eq(n_own, 1);
    must(munmap(own, env_page()) == 0);
    env_detach();
}
END_TEST

static void *
go_far(const struct touch *t)
{
    return map_whole(t);
}

static void *
unmap_many(const struct touch *t)
{
    void *x = unmap(t);

    for (int i = 0; i < 1000; i++) {
        must(xMmap(OTHER "2", env_page()) != MAP_FAILED);
        must_ok(xMunmap(OTHER "2"));
    }
    return x;
}

/* Far from all mappings, and long after one has gone, a fault is as without the library. */
START_TEST(far_touch_is_left_alone)
{
    struct touch t = {.prepare = _i == 0 ? go_far : unmap_many,
                      .offset = _i == 0 ? (int64_t)1 << 33 : 0,
                      .pid = (uint64_t *)proc_shared(sizeof *t.pid)};
    int status = proc_capture(touch_in_child, &t, output, sizeof output);

    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}
END_TEST

/* ---- nothing fails for it ---------------------------------------------------------------- */

static unsigned
n_mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "re");
    unsigned n = 0;

    must(f != NULL);
    for (int c; (c = fgetc(f)) != EOF;)
        n += c == '\n';
    (void)fclose(f);
    return n;
}

/* Neighbours get the addresses where they belong, mappings grow where they are, and all of that
   takes no mappings of the kernel. */
START_TEST(guards_give_way)
{
    size_t page = env_page();
    uint64_t *a, *b, *c;
    unsigned before;

    env_init(_i == 0 ? DURABLE : NONDURABLE);
    a = env_map_at(0, 2);
    before = n_mappings();
    b = (uint64_t *)xMmapAt(ENV_FILE, 2 * page, 2 * page, XAC_SAME_ADDRESS);
    must(b == env_cell(a, 2));
    must_ok(xMunmapAt(b));
    must(xMremap(a, 6 * page, 0) == a);
    must(xMremap(a, page, 0) == a);
    c = (uint64_t *)xMmapAt(ENV_FILE, page, page, XAC_SAME_ADDRESS);
    must(c == env_cell(a, 1));
    must(xMremap(a, 2 * page, 0) == MAP_FAILED && errno == EADDRINUSE);
    must_ok(xMunmapAt(c));
    must(xMremap(a, 2 * page, 0) == a);
    for (int i = 0; i < 200; i++) {
        void *x = xMmap(OTHER, (size_t)(1 + i % 7) * page);

        must(x != MAP_FAILED);
        must_ok(xMunmap(OTHER));
        must(mmap(x, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                  -1, 0)
             == x);
        must(munmap(x, page) == 0);
    }
    must(n_mappings() <= before + 2);
    env_detach();
}
END_TEST

/* belongs -- say that a file belongs at that address. */
static void
belongs(const char *name, const void *address)
{
    char dir[300], line[400];
    FILE *f = fopen(ENV_DIR "/list", "we");

    must(getcwd(dir, sizeof dir) != NULL);
    snprintf(line, sizeof line, "xac-addresses 1\n%016" PRIxPTR " %s/%s\n",
             (uintptr_t)address, dir, name);
    must(f != NULL && fputs(line, f) >= 0 && fclose(f) == 0);
    must(rename(ENV_DIR "/list", ENV_DIR "/xac.addresses") == 0);
}

/* A file belongs where a thread's view has been (_i == 0), or right behind one: it is mapped there,
   though the addresses are held. */
START_TEST(held_addresses_give_way)
{
    unsigned char *x = (unsigned char *)env_attach(NONDURABLE, PAGES);
    unsigned char *view = (unsigned char *)xView(x), *wanted;

    must(view != MAP_FAILED);
    if (_i == 0)
        must_ok(xUnview(view));
    wanted = _i == 0 ? view : view + length();
    must(mmap(wanted, env_page(), PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
         == MAP_FAILED);
    belongs(OTHER, wanted);
    must(xMmapAt(OTHER, 0, 2 * env_page(), XAC_SAME_ADDRESS) == (void *)wanted);
    env_detach();
}
END_TEST

/* address_space -- bytes that are mapped. */
static size_t
address_space(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    size_t pages;

    must(f != NULL && fscanf(f, "%zu", &pages) == 1);
    (void)fclose(f);
    return pages * env_page();
}

/* What is held is bounded, and nothing is held after xShutdown(). */
START_TEST(held_addresses_are_few)
{
    size_t bytes = 1024 * env_page(), most = (size_t)66 << 20, before;
    void *x;

    env_init(NONDURABLE); /* what stays afterwards is there */
    env_detach();
    before = address_space();
    env_init(NONDURABLE);
    x = xMmap(ENV_FILE, bytes);
    must(x != MAP_FAILED);
    must_ok(xUnview(xView(x)));
    most += address_space();
    for (int i = 0; i < 200; i++)
        must_ok(xUnview(xView(x)));
    must(address_space() <= most);
    must(n_mappings() < 500);
    env_detach();
    must(address_space() < before + bytes);
}
END_TEST

/* limited -- where addresses are limited, views come and go. */
static void
limited(void *arg)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)3 << 30, .rlim_max = (rlim_t)3 << 30};
    void *x;

    (void)arg;
    must(setrlimit(RLIMIT_AS, &limit) == 0);
    x = env_attach(NONDURABLE, 4000);
    for (int i = 0; i < 100; i++) {
        void *view = xView(x);

        must(view != MAP_FAILED);
        must_ok(xUnview(view));
    }
    env_detach();
}

START_TEST(held_addresses_count_for_no_limit)
{
    proc_run(limited, NULL);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("guards");
    TCase *tc = env_tcase(s, "stop", 120);

    tcase_add_test(tc, touch_behind_the_end_stops);
    tcase_add_test(tc, touch_before_the_start_stops);
    tcase_add_test(tc, the_right_file_is_named);
    tcase_add_test(tc, touch_after_unmapping_stops);
    tcase_add_test(tc, touch_after_resizing_stops);
    tcase_add_test(tc, touch_behind_what_is_mapped_again_stops);
    tcase_add_test(tc, touch_behind_a_view_stops);
    tcase_add_test(tc, touch_in_a_child_stops);
    tc = env_tcase(s, "others", 120);
    tcase_add_loop_test(tc, own_memory_beside_a_mapping_is_the_programs, 0, 2);
    tcase_add_loop_test(tc, far_touch_is_left_alone, 0, 2);
    tcase_add_loop_test(tc, guards_give_way, 0, 2);
    tcase_add_loop_test(tc, held_addresses_give_way, 0, 2);
    tcase_add_test(tc, held_addresses_are_few);
    tcase_add_test(tc, held_addresses_count_for_no_limit);
    return env_main(s);
}
