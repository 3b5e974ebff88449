/* SPDX-License-Identifier: MIT */
/*
 * check_alloc_damage.c -- the heap checker finds what is wrong.
 *
 * GOAL    each invariant of libxac/heap/alloc.h that is broken is reported in words; nothing is
 *         taken for damaged that is sound; damaged heaps are refused, not followed.
 * METHOD  a heap with allocations of all kinds; a transaction breaks one field of its
 *         format (alloc_format.h), asks the checker, and is undone.  Thousands of heaps are
 *         damaged at random; all calls on each of them must end within a bound of processor
 *         time (not of time on the clock, which other programs use, too).
 */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "env.h"
#include "heap/alloc_format.h"

#define N_PAGES 1000 /* one page of directory */

/* Where things are. */
static unsigned char *base;
static struct xac_heap_header *header;
static struct xac_chunk_entry *entry; /* directory                       */
static struct xac_chunk *chunk;       /* header of chunk 0               */
static struct xac_chunk *tail;        /* header of the large one's end   */
static struct xac_chunk *last;        /* header of the last chunk        */
static struct xac_run *run;
static unsigned run_page, slots_page, pages_page, free_page;
static uint64_t large; /* first chunk of the large allocation */
static unsigned char *object[5];

static unsigned
page_of(const void *p)
{
    return (unsigned)((size_t)((const unsigned char *)p - base) / env_page());
}

static void
make_heap(void)
{
    size_t page = env_page();

    base = env_attach(NONDURABLE, N_PAGES);
    must_ok(xbegin());
    object[0] = xMalloc(base, 100);
    object[1] = xMalloc(base, 1000);
    object[2] = xMalloc(base, 3 * page);
    object[3] = xMalloc(base, 130 * page);
    object[4] = xMalloc(base, 5 * page);
    header = (struct xac_heap_header *)(void *)base;
    entry = (struct xac_chunk_entry *)(void *)(base + page);
    chunk = (struct xac_chunk *)(void *)(base + 2 * page);
    run_page = page_of(object[0]);
    slots_page = page_of(object[1]);
    pages_page = page_of(object[2]);
    run = (struct xac_run *)(void *)(base + run_page * page);
    large = page_of(object[3]) / XAC_CHUNK_PAGES;
    tail = (struct xac_chunk *)(void *)(base + (page_of(object[3]) + 130) * page);
    must(chunk->magic == XAC_HEAP_CHUNK_MAGIC && tail->magic == XAC_HEAP_CHUNK_MAGIC);
    must(run->magic == XAC_HEAP_RUN_MAGIC);
    free_page = page_of(object[4]);
    must_ok(xFree(base, object[4]));
    must_rc(xend(), COMMITTED);
}

/* ---- one way of damage each ---------------------------------------------------------- */

struct damage {
    void (*do_it)(void);
    const char *words; /* part of what the checker says */
};

#define DAMAGE(name, statement) \
 static void name(void)         \
 {                              \
  statement;                    \
 }

DAMAGE(header_identity, header->identity++)
DAMAGE(header_pages, header->n_pages = 60)
DAMAGE(header_zero, header->identity = 0)
DAMAGE(entry_rooms, entry[0].rooms ^= 1)
DAMAGE(entry_longest, entry[0].longest--)
DAMAGE(entry_header, entry[0].header++)
DAMAGE(entry_far_header, entry[0].header = 255)
DAMAGE(entry_lost, entry[0].state = XAC_CHUNK_FREE)
DAMAGE(entry_unknown, entry[large + 4].state = 9)
DAMAGE(entry_not_blank, entry[large + 4].pid = 5)
DAMAGE(entry_meta, entry[large + 4].state = XAC_CHUNK_META)
DAMAGE(large_longer, entry[large].rooms += XAC_CHUNK_PAGES)
DAMAGE(large_shorter, entry[large].rooms -= XAC_CHUNK_PAGES)
DAMAGE(large_more_tail, entry[large].rooms++)
DAMAGE(large_less_tail, entry[large].rooms--)
DAMAGE(large_zero, entry[large].rooms = 0)
DAMAGE(large_huge, entry[large].rooms = UINT64_MAX - 5)
DAMAGE(large_broken, entry[large + 1].state = XAC_CHUNK_FREE)
DAMAGE(large_headless, entry[large].state = XAC_CHUNK_FREE)
DAMAGE(tail_freed, (tail->used &= ~UINT64_C(1), tail->slab[0].kind = XAC_SLAB_FREE))
DAMAGE(tail_stray, (chunk->used |= UINT64_C(1) << free_page,
                    chunk->slab[free_page].kind = XAC_SLAB_TAIL))
DAMAGE(chunk_magic, chunk->magic++)
DAMAGE(chunk_stamp, chunk->stamp++)
DAMAGE(chunk_number, chunk->number++)
DAMAGE(chunk_present, chunk->present--)
DAMAGE(chunk_place, chunk->header++)
DAMAGE(used_lost, chunk->used &= ~(UINT64_C(1) << pages_page))
DAMAGE(used_stray, chunk->used |= UINT64_C(1) << free_page)
DAMAGE(longest_low, (chunk->longest = 3, entry[0].longest = 3))
DAMAGE(slab_unknown, chunk->slab[run_page].kind = 77)
DAMAGE(slab_second_header, chunk->slab[run_page].kind = XAC_SLAB_HEADER)
DAMAGE(slab_meta, chunk->slab[run_page].kind = XAC_SLAB_META)
DAMAGE(slab_not_meta, chunk->slab[1].kind = XAC_SLAB_RUN)
DAMAGE(slab_stray_more, chunk->slab[run_page].kind = XAC_SLAB_MORE)
DAMAGE(pages_zero, chunk->slab[pages_page].bits = 0)
DAMAGE(pages_longer, chunk->slab[pages_page].bits++)
DAMAGE(pages_shorter, chunk->slab[pages_page].bits--)
DAMAGE(pages_many, chunk->slab[pages_page].bits = 1u << 31)
DAMAGE(slots_class, chunk->slab[slots_page].class = 0)
DAMAGE(slots_bits, chunk->slab[slots_page].bits |= 1u << 20)
DAMAGE(slots_rooms, (chunk->rooms &= ~(UINT64_C(1) << chunk->slab[slots_page].class),
                     entry[0].rooms = chunk->rooms))
DAMAGE(run_magic, run->magic--)
DAMAGE(run_stamp, run->stamp ^= 4)
DAMAGE(run_class, run->class ++)
DAMAGE(run_full, run->is_full = 1)
DAMAGE(run_full_twice, (run->is_full = 1, chunk->slab[run_page].bits = 1))
DAMAGE(run_bits, run->bits[0] |= UINT64_C(1) << 63)
DAMAGE(run_rooms,
       (chunk->rooms &= ~(UINT64_C(1) << run->class), entry[0].rooms = chunk->rooms))

static const struct damage damages[] = {
    {header_identity, "no chunk header"},
    {header_pages, "present"},
    {header_zero, "heap's header"},
    {entry_rooms, "disagree"},
    {entry_longest, "disagree"},
    {entry_header, "no chunk header"},
    {entry_far_header, "no chunk header"},
    {entry_lost, "own pages"},
    {entry_unknown, "unknown state"},
    {entry_not_blank, "not blank"},
    {entry_meta, "directory"},
    {large_longer, "large allocation"},
    {large_shorter, "large allocation"},
    {large_more_tail, ""},
    {large_less_tail, "end of no large"},
    {large_zero, "impossible"},
    {large_huge, "impossible"},
    {large_broken, "large allocation"},
    {large_headless, ""},
    {tail_freed, "not"},
    {tail_stray, "end of no large"},
    {chunk_magic, "no chunk header"},
    {chunk_stamp, "no chunk header"},
    {chunk_number, "no chunk header"},
    {chunk_present, "present"},
    {chunk_place, "no chunk header"},
    {used_lost, "disagree"},
    {used_stray, "disagree"},
    {longest_low, "in a row"},
    {slab_unknown, "nothing that exists"},
    {slab_second_header, "second"},
    {slab_meta, "heap's own"},
    {slab_not_meta, "heap's own"},
    {slab_stray_more, "nothing that exists"},
    {pages_zero, "impossible"},
    {pages_longer, "not part"},
    {pages_shorter, "nothing that exists"},
    {pages_many, "impossible"},
    {slots_class, "unknown size class"},
    {slots_bits, "behind the last"},
    {slots_rooms, "rule out"},
    {run_magic, "no header of the run"},
    {run_stamp, "no header of the run"},
    {run_class, "no header of the run"},
    {run_full, "disagree on its being full"},
    {run_full_twice, "has free slots"},
    {run_bits, "behind its last slot"},
    {run_rooms, "rule out"},
};

#define N_DAMAGES (sizeof damages / sizeof damages[0])

START_TEST(check_finds_damage)
{
    struct xac_heap_totals before, after;

    make_heap();
    must_ok(xbeginQuery());
    must_ok(xHeapCheck(base, &before, sizeof before));
    must_ok(xendQuery());
    must_eq(before.allocations, 4);
    for (size_t i = 0; i < N_DAMAGES; i++) {
        must_ok(xbegin());
        damages[i].do_it();
        if (xHeapCheck(base, &after, sizeof after) == 0)
            env_fail(__FILE__, __LINE__, "damage %zu was not found", i);
        must_refuse(xHeapCheck(base, &after, sizeof after), XAC_EDAMAGED);
        if (strstr(xLastError(), damages[i].words) == NULL)
            env_fail(__FILE__, __LINE__, "damage %zu: %s", i, xLastError());
        must_ok(xAbort());
        must_rc(xend(), ABORTED);
    }
    must_ok(xbeginQuery());
    must_ok(xHeapCheck(base, &after, sizeof after));
    must_ok(xendQuery());
    must(memcmp(&before, &after, sizeof before) == 0);
    printf("%zu kinds of damage found\n", N_DAMAGES);
    env_detach();
}
END_TEST

/* Calls on a damaged heap come back; nothing lies outside the segment. */
START_TEST(damaged_heaps_are_not_followed)
{
    size_t page = env_page();

    make_heap();
    for (size_t i = 0; i < N_DAMAGES; i++) {
        must_ok(xbegin());
        damages[i].do_it();
        for (size_t size = 8; size < 300 * page; size *= 2) {
            unsigned char *p = xMalloc(base, size);

            must(p == NULL || (p >= base && p + size <= base + N_PAGES * page));
        }
        for (int k = 0; k < 4; k++)
            (void)xFree(base, object[k]);
        must_ok(xAbort());
        must_rc(xend(), ABORTED);
    }
    env_detach();
}
END_TEST

DAMAGE(own_not_used, chunk->used &= ~UINT64_C(3))
DAMAGE(own_as_slots, chunk->slab[0] = chunk->slab[slots_page])
DAMAGE(header_not_used, (chunk->used &= ~UINT64_C(7), chunk->header++))

/* The pages of the heap's header and directory, and of the header of chunk 0, are given to nobody. */
START_TEST(own_pages_are_not_allocated)
{
    void (*const ways[])(void) = {own_not_used, own_as_slots, header_not_used,
                                  entry_lost};
    size_t page = env_page();

    make_heap();
    must_ok(xbegin());
    ways[_i]();
    for (int i = 0; i < 100; i++) {
        for (size_t size = 8; size <= 128 * page; size *= 2) {
            unsigned char *p = xMalloc(base, size);

            if (p != NULL && p < base + 3 * page)
                env_fail(__FILE__, __LINE__, "%d, %zu: %td", i, size, p - base);
        }
    }
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    env_detach();
}
END_TEST

/* ---- damage at random -------------------------------------------------------------------- */

#define N_HEAPS    4000 /* damaged, unless XAC_DAMAGES says otherwise */
#define HEAP_CPU_S 5    /* of processor time for one heap: usually less than 0.01 */
#define N_CHANGES  4    /* words changed in one heap, at most */

static uint64_t heap_seed; /* of the heap that is being tried */

/* too_long -- SIGPROF: a call goes on and on. */
static void
too_long(int sig)
{
    char text[80];
    int n = snprintf(text, sizeof text, "heap %llu: %d s of processor time are over\n",
                     (unsigned long long)heap_seed, HEAP_CPU_S);

    (void)sig;
    (void)!write(STDERR_FILENO, text, (size_t)n);
    abort();
}

/* allow -- so much processor time from now on; 0: no bound. */
static void
allow(int seconds)
{
    const struct itimerval bound = {.it_value.tv_sec = seconds};

    must_ok(setitimer(ITIMER_PROF, &bound, NULL));
}

/* odd_number -- the kinds of wrong numbers that bounds are forgotten for. */
static uint64_t
odd_number(uint64_t old, uint64_t *rng)
{
    switch (rnd_below(rng, 6)) {
    case 0:
        return old ^ UINT64_C(1) << rnd_below(rng, 64);
    case 1:
        return old + rnd_below(rng, 5) - 2;
    case 2:
        return rnd_below(rng, 2 * N_PAGES);
    case 3:
        return UINT64_MAX - rnd_below(rng, 200);
    case 4:
        return rnd_below(rng, UINT64_MAX) << rnd_below(rng, 64);
    default:
        return 0;
    }
}

/* make_last -- allocate in the last chunk, which has fewer pages than others. */
static void
make_last(void)
{
    size_t page = env_page();
    unsigned char *wide[N_PAGES / XAC_CHUNK_PAGES + 1];
    unsigned n = 0;

    must_ok(xbegin());
    while ((wide[n] = xMalloc(base, 62 * page)) != NULL)
        n++;
    do
        last = xMalloc(base, 30 * page);
    while (last != NULL && page_of(last) < N_PAGES / XAC_CHUNK_PAGES * XAC_CHUNK_PAGES);
    must(last != NULL);
    last = (struct xac_chunk *)(void *)(base
                                        + N_PAGES / XAC_CHUNK_PAGES * XAC_CHUNK_PAGES
                                              * page);
    must(last->magic == XAC_HEAP_CHUNK_MAGIC);
    while (n > 0)
        must_ok(xFree(base, wide[--n]));
    must_rc(xend(), COMMITTED);
}

/* damage_at_random -- words of the heap's own data. */
static void
damage_at_random(uint64_t *rng)
{
    struct place {
        void *at;
        size_t bytes;
    } const place[] = {{&header->identity, 24},
                       {&header->dir_pages, 16},
                       {entry, 20 * sizeof *entry},
                       {chunk, sizeof *chunk},
                       {&chunk->used, 32},
                       {tail, sizeof *tail},
                       {run, 64},
                       {last, sizeof *last},
                       {&last->used, 32}};
    uint64_t n = 1 + rnd_below(rng, N_CHANGES);

    for (uint64_t i = 0; i < n; i++) {
        const struct place *p = &place[rnd_below(rng, sizeof place / sizeof *place)];
        uint64_t *word = (uint64_t *)p->at + rnd_below(rng, p->bytes / sizeof(uint64_t));

        *word = odd_number(*word, rng);
    }
}

/* use_size -- what an allocation is said to hold lies in the mapping; it may move. */
static void
use_size(unsigned char *p, size_t size)
{
    size_t usable = xUsableSize(base, p);

    must(usable <= N_PAGES * env_page() - (size_t)(p - base));
    p = xRealloc(base, p, size);
    must(p == NULL || (p >= base && p + size <= base + N_PAGES * env_page()));
}

/* use -- every call that looks at the heap. */
static void
use(uint64_t *rng)
{
    size_t page = env_page();

    for (size_t size = 8; size < 300 * page; size = size * 3 / 2 + 1) {
        unsigned char *p = xMalloc(base, size);

        must(p == NULL || (p >= base && p + size <= base + N_PAGES * page));
        if (p != NULL && rnd_below(rng, 2) == 0)
            (void)xFree(base, p);
        else if (p != NULL && rnd_below(rng, 4) == 0)
            use_size(p, size / 3);
    }
    for (int k = 0; k < 4; k++)
        use_size(object[k], 1 + rnd_below(rng, 9000));
    for (int k = 0; k < 5; k++)
        use_size(base + rnd_below(rng, N_PAGES * page / 16) * 16, 100);
    for (int k = 0; k < 4; k++)
        (void)xFree(base, object[k]);
    for (int k = 0; k < 20; k++)
        (void)xFree(base, base + rnd_below(rng, N_PAGES * page / 16) * 16);
    (void)xHeapCheck(base, NULL, 0);
    (void)xRoot(base);
}

/* Whatever the heap holds, all calls end; none stores outside of the mapping. */
START_TEST(calls_on_damaged_heaps_end)
{
    struct sigaction action = {.sa_handler = too_long};
    uint64_t n = env_number("XAC_DAMAGES", N_HEAPS);
    uint64_t n_found = 0;

    make_heap();
    make_last();
    must_ok(sigaction(SIGPROF, &action, NULL));
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rng = env_seed() + i;

        heap_seed = rng;
        allow(HEAP_CPU_S);
        must_ok(xbegin());
        damage_at_random(&rng);
        n_found += xHeapCheck(base, NULL, 0) != 0;
        use(&rng);
        must_ok(xAbort());
        must_rc(xend(), ABORTED);
    }
    allow(0);
    printf("%llu damaged heaps, the checker refused %llu\n", (unsigned long long)n,
           (unsigned long long)n_found);
    must(n_found > n / 2);
    must_ok(xbeginQuery());
    must_ok(xHeapCheck(base, NULL, 0));
    must_ok(xendQuery());
    env_detach();
}
END_TEST

/* A heap may be longer than the mapping, but not than the file. */
START_TEST(heap_longer_than_its_file_is_damaged)
{
    make_heap();
    must_ok(xbegin());
    header->n_pages = N_PAGES + 1;
    must_refuse(xHeapCheck(base, NULL, 0), XAC_EDAMAGED);
    must(xRoot(base) == NULL);
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    env_detach();
}
END_TEST

/* What a thread remembers of a heap lies behind the end of a mapping that became shorter. */
START_TEST(allocate_in_mapping_made_shorter)
{
    size_t page = env_page();
    unsigned char *p;

    base = env_attach(NONDURABLE, N_PAGES);
    must_ok(xbegin());
    do
        p = xMalloc(base, 64);
    while (p != NULL && page_of(p) < 300);
    must(p != NULL);
    must_rc(xend(), COMMITTED);
    must(xMremap(base, 200 * page, 0) == base);
    must_ok(xbegin());
    p = xMalloc(base, 64);
    must(p == NULL || page_of(p) < 200);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

START_TEST(other_versions_are_refused)
{
    make_heap();
    must_ok(xbegin());
    header->version++;
    must_refuse(xHeapCheck(base, NULL, 0), XAC_EVERSION);
    must(xRoot(base) == NULL);
    header->version--;
    header->page_size *= 2;
    must_refuse(xHeapCheck(base, NULL, 0), XAC_EPAGESIZE);
    must(xRoot(base) == NULL);
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    env_detach();
}
END_TEST

static Suite *
damage_suite(void)
{
    Suite *s = suite_create("alloc damage");
    TCase *tc = env_tcase(s, "damage", 60);

    tcase_add_test(tc, check_finds_damage);
    tcase_add_test(tc, damaged_heaps_are_not_followed);
    tcase_add_loop_test(tc, own_pages_are_not_allocated, 0, 4);
    tcase_add_test(tc, other_versions_are_refused);
    tcase_add_test(tc, calls_on_damaged_heaps_end);
    tcase_add_test(tc, heap_longer_than_its_file_is_damaged);
    tcase_add_test(tc, allocate_in_mapping_made_shorter);
    return s;
}

int
main(void)
{
    return env_main(damage_suite());
}
