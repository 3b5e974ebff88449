/* SPDX-License-Identifier: MIT */
/*
 * check_replacers.c -- replacement under swizzling, on traces, without frames: exact victims beside
 * small references, and what the rule "no page with children in frames" does to misses.
 *
 * A reference of a leaf is preceded by one of its parent, as in a tree; roots are not played.
 */
#include <config.h>

#include <malloc.h>

#include "frames/policies/replacer.h"
#include "swz.h"

#define N_LEAVES 20000u
#define FAN      60u /* leaves below an inner page, unless said otherwise; at least */
#define N_PAGES  (N_LEAVES + N_LEAVES / FAN + 1)
#define NONE     POLICY_NONE

struct sim {
    struct policy p;
    void *memory;
    uint32_t n, used; /* slots */
    uint32_t *slot_of, *page_in, *children, fan;
    bool has_rule, is_blocked, marks_new;
    uint64_t refs, misses, steps, evictions;
    unsigned char *visited;
};

/* barred -- each slot that a clock's hand visits is asked about once: that counts steps. */
static bool
barred(void *arg, uint32_t slot)
{
    struct sim *s = arg;

    s->steps++;
    if (s->visited != NULL)
        s->visited[slot]++;
    return s->has_rule && s->children[s->page_in[slot]] > 0;
}

static enum policy_answer
sim_take(void *arg, uint32_t slot)
{
    struct sim *s = arg;
    bool is_free = !s->is_blocked && !(s->has_rule && s->children[s->page_in[slot]] > 0);

    return is_free ? POLICY_TAKEN : POLICY_REFUSED;
}

static struct sim
sim_make(uint32_t policy, uint32_t n, uint32_t k)
{
    const struct policy_ops *ops = xac_frames_policy_ops(policy);
    struct sim s = {.n = n, .fan = FAN};
    size_t n_bytes =
        xac_frames_policy_bytes(ops, n) / POLICY_LINE * POLICY_LINE + POLICY_LINE;

    s.memory = aligned_alloc(POLICY_LINE, n_bytes);
    must(s.memory != NULL);
    memset(s.memory, 0, n_bytes);
    xac_frames_policy_open(&s.p, ops, n, s.memory);
    s.p.count_max = k;
    xac_frames_policy_init(&s.p);
    s.p.is_barred = barred;
    s.slot_of = calloc(N_PAGES, sizeof *s.slot_of);
    s.children = calloc(N_PAGES, sizeof *s.children);
    s.page_in = calloc(n, sizeof *s.page_in);
    for (uint32_t i = 0; i < N_PAGES; i++)
        s.slot_of[i] = NONE;
    return s;
}

static void
sim_free(struct sim *s)
{
    free(s->memory);
    free(s->slot_of);
    free(s->children);
    free(s->page_in);
}

static uint32_t
parent_of(const struct sim *s, uint32_t page)
{
    return page < N_LEAVES ? N_LEAVES + page / s->fan : NONE;
}

/* sim_play -- one reference; ret the page that left, or NONE. */
static uint32_t
sim_play(struct sim *s, uint32_t page)
{
    uint32_t slot = s->slot_of[page], out = NONE;

    s->refs++;
    if (slot != NONE) {
        s->p.ops->touch(&s->p, slot);
        return NONE;
    }
    s->misses++;
    if (s->used < s->n) {
        slot = s->used++;
    } else {
        slot = s->p.ops->victim(&s->p, sim_take, s);
        must(slot != NONE);
        s->evictions++;
        out = s->page_in[slot];
        s->slot_of[out] = NONE;
        if (parent_of(s, out) != NONE)
            s->children[parent_of(s, out)]--;
    }
    s->page_in[slot] = page;
    s->slot_of[page] = slot;
    if (parent_of(s, page) != NONE)
        s->children[parent_of(s, page)]++;
    s->p.ops->admit(&s->p, slot, page);
    if (s->marks_new) /* what "set on unfix" does to the fix that brings it in */
        s->p.ops->touch(&s->p, slot);
    return out;
}

/* skewed -- uneven as TPC-C's customers and items, with a recent end that grows. */
static uint32_t
skewed(uint64_t *seed, uint64_t i)
{
    uint64_t r = mix(seed), a = mix(seed) % 8192, b = mix(seed) % N_LEAVES;

    if (r % 10 < 4)
        return (uint32_t)((a | b) % N_LEAVES);
    if (r % 10 < 7)
        return (uint32_t)((N_LEAVES / 2 + i / 200 + (r >> 8) % 40) % N_LEAVES);
    return (uint32_t)((r >> 8) % 400 * 37 % N_LEAVES);
}

static void
sim_tree(struct sim *s, uint32_t leaf)
{
    (void)sim_play(s, parent_of(s, leaf));
    (void)sim_play(s, leaf);
}

/* trace -- warmed up, then measured; ret the rate of misses. */
static double
trace(struct sim *s, uint64_t n)
{
    uint64_t seed = env_seed();

    for (uint64_t i = 0; i < 2 * n; i++) {
        if (i == n)
            s->refs = s->misses = s->steps = s->evictions = 0;
        sim_tree(s, skewed(&seed, i));
    }
    return (double)s->misses / (double)s->refs;
}

static double
rate(uint32_t policy, uint32_t n, uint32_t k, bool marks_new, uint32_t fan, bool has_rule)
{
    struct sim s = sim_make(policy, n, k);
    double r;

    s.fan = fan;
    s.marks_new = marks_new;
    s.has_rule = has_rule;
    r = trace(&s, env_number("XAC_REFS", 60000));
    sim_free(&s);
    return r;
}

/* P01, P04 */
START_TEST(hands_visit_every_frame)
{
    static const uint32_t policies[] = {XAC_FRAMES_SWEEP, XAC_FRAMES_GCLOCK_K};

    for (uint32_t n = 9; n < 11; n++)
        for (int i = 0; i < 2; i++) {
            struct sim s = sim_make(policies[i], n, 10);
            unsigned char visited[16] = {0};

            for (uint32_t page = 0; page < n; page++)
                (void)sim_play(&s, page);
            s.visited = visited;
            s.is_blocked = true;
            must_eq(s.p.ops->victim(&s.p, sim_take, &s), NONE);
            for (uint32_t slot = 0; slot < n; slot++)
                must_eq(visited[slot], 1);
            sim_free(&s);
        }
}
END_TEST

/* P02 */
START_TEST(sweep_is_not_random)
{
    struct sim sweep = sim_make(XAC_FRAMES_SWEEP, 400, 0);
    struct sim any = sim_make(XAC_FRAMES_RANDOM, 400, 0);

    for (uint32_t i = 0; i < 50 * 500; i++) {
        (void)sim_play(&sweep, i % 500);
        (void)sim_play(&any, i % 500);
    }
    must_eq(sweep.misses, sweep.refs);
    must((double)any.misses < 0.8 * (double)any.refs);
    sim_free(&sweep);
    sim_free(&any);
}
END_TEST

/* P03: thirty lines that say what GCLOCK with k and insertion at 0 is. */
START_TEST(gclock_follows_its_definition)
{
    enum {
        N = 97,
        K = 10
    };
    struct sim s = sim_make(XAC_FRAMES_GCLOCK_K, N, K);
    uint32_t page_of[N], count[N], hand = 0, used = 0, at[2000];
    uint64_t seed = env_seed();

    for (uint32_t i = 0; i < 2000; i++)
        at[i] = NONE;
    for (uint64_t i = 0; i < env_number("XAC_REFS", 100000); i++) {
        uint32_t page = (uint32_t)(mix(&seed) % 2000 * (mix(&seed) % 2000) / 2000);
        uint32_t out = NONE, slot = at[page];

        if (slot != NONE) {
            count[slot] = K;
        } else {
            if (used < N) {
                slot = used++;
            } else {
                while (count[hand] > 0) {
                    count[hand]--;
                    hand = (hand + 1) % N;
                }
                slot = hand;
                hand = (hand + 1) % N;
                out = page_of[slot];
                at[out] = NONE;
            }
            page_of[slot] = page;
            count[slot] = 0;
            at[page] = slot;
        }
        must_eq(sim_play(&s, page), out);
        must_eq(s.p.state->hand, hand);
        must(node_count(&s.p, slot) <= K);
    }
    for (uint32_t slot = 0; slot < N; slot++)
        must_eq(node_count(&s.p, slot), count[slot]);
    sim_free(&s);
}
END_TEST

/* P03: a count of 0 stays 0 however often its page is refused (erratum E8), then counts on. */
START_TEST(a_refused_page_does_not_wrap_its_count)
{
    struct sim s = sim_make(XAC_FRAMES_GCLOCK_K, 10, 10);

    for (uint32_t page = 0; page < 10; page++)
        (void)sim_play(&s, page);
    (void)sim_play(&s, 3);
    s.is_blocked = true;
    for (int i = 0; i < 20; i++) {
        must_eq(s.p.ops->victim(&s.p, sim_take, &s), NONE);
        for (uint32_t slot = 0; slot < 10; slot++)
            must(node_count(&s.p, slot) <= 10);
    }
    must_eq(node_count(&s.p, 0), 0);
    s.is_blocked = false;
    must(sim_play(&s, 1000) != NONE);
    must_eq(node_count(&s.p, s.slot_of[1000]), 0);
    sim_free(&s);
}
END_TEST

/* P05 */
START_TEST(a_page_used_once_leaves_on_the_first_pass)
{
    struct sim s = sim_make(XAC_FRAMES_GCLOCK_K, 10, 10);

    for (uint32_t page = 0; page < 10; page++)
        (void)sim_play(&s, page);
    for (uint32_t page = 0; page < 10; page++)
        if (page != 6)
            (void)sim_play(&s, page);
    must_eq(sim_play(&s, 100), 6);
    must_eq(s.steps, 7);
    sim_free(&s);
}
END_TEST

/* P06 */
START_TEST(a_larger_k_misses_less_and_looks_longer)
{
    static const uint32_t ks[] = {1, 2, 3, 5, 10};
    double last = 1, last_steps = 0;

    for (int i = 0; i < 5; i++) {
        struct sim s = sim_make(XAC_FRAMES_GCLOCK_K, 800, ks[i]);
        double r = trace(&s, env_number("XAC_REFS", 60000));
        double steps = (double)s.steps / (double)s.evictions;

        printf("k %u: misses %.2f %%, %.2f steps\n", ks[i], 100 * r, steps);
        must(r <= last * 1.002 && steps >= last_steps);
        last = r;
        last_steps = steps;
        sim_free(&s);
    }
}
END_TEST

/* ---- CAR: the clocks and lists as arrays ------------------------------------------------- */

#define CAR_MAX 512u
struct queue {
    uint32_t page[CAR_MAX];
    unsigned char bit[CAR_MAX];
    uint32_t n;
};

static struct queue t1, t2, b1, b2;

static void
push(struct queue *q, uint32_t page)
{
    q->page[q->n] = page;
    q->bit[q->n++] = 0;
}

static void
removed(struct queue *q, uint32_t i)
{
    q->n--;
    for (; i < q->n; i++) {
        q->page[i] = q->page[i + 1];
        q->bit[i] = q->bit[i + 1];
    }
}

static uint32_t
where(const struct queue *q, uint32_t page)
{
    for (uint32_t i = 0; i < q->n; i++)
        if (q->page[i] == page)
            return i;
    return NONE;
}

static uint32_t
max1(uint32_t a, uint32_t b)
{
    return a / b > 1 ? a / b : 1;
}

/* car_out -- S. Bansal, D. Modha, FAST 2004, figure 2, replace(). */
static uint32_t
car_out(uint32_t p)
{
    for (;;) {
        struct queue *q = t1.n >= (p > 1 ? p : 1) ? &t1 : &t2;
        uint32_t page = q->page[0];

        if (q->bit[0] == 0) {
            removed(q, 0);
            push(q == &t1 ? &b1 : &b2, page);
            return page;
        }
        removed(q, 0);
        push(&t2, page);
    }
}

/* car_ref -- the whole of it; ret who left. */
static uint32_t
car_ref(uint32_t page, uint32_t c, uint32_t *p)
{
    uint32_t out = NONE, i;

    if ((i = where(&t1, page)) != NONE) {
        t1.bit[i] = 1;
        return NONE;
    }
    if ((i = where(&t2, page)) != NONE) {
        t2.bit[i] = 1;
        return NONE;
    }
    if (t1.n + t2.n == c)
        out = car_out(*p);
    if ((i = where(&b1, page)) != NONE) {
        *p = *p + max1(b2.n, b1.n) < c ? *p + max1(b2.n, b1.n) : c;
        removed(&b1, i);
        push(&t2, page);
    } else if ((i = where(&b2, page)) != NONE) {
        uint32_t less = max1(b1.n, b2.n);

        *p = *p > less ? *p - less : 0;
        removed(&b2, i);
        push(&t2, page);
    } else {
        if (t1.n + b1.n >= c && b1.n > 0)
            removed(&b1, 0); /* the least recent (erratum E11) */
        else if (t1.n + t2.n + b1.n + b2.n >= 2 * c)
            removed(&b2, 0);
        push(&t1, page);
    }
    return out;
}

/* ghosts_are_those_of -- P08: B1 and B2 from the oldest on, page by page. */
static void
ghosts_are_those_of(const struct policy *p)
{
    const struct queue *queues[] = {&b1, &b2};

    for (int k = 0; k < 2; k++) {
        uint32_t node = p->state->lists[2 + k].tail;

        for (uint32_t i = 0; i < queues[k]->n; i++) {
            must_eq(p->nodes[node].page, queues[k]->page[i]);
            node = node_prev(p, 0, node);
        }
        must_eq(node, NONE);
    }
}

/* P07, P08, P09 */
START_TEST(car_follows_its_definition)
{
    enum {
        C = 61
    };
    struct sim s = sim_make(XAC_FRAMES_CAR, C, 1);
    uint64_t seed = env_seed();
    uint32_t p = 0, rises = 0, falls = 0, n_at_0 = 0, n_at_c = 0;

    for (uint64_t i = 0; i < env_number("XAC_REFS", 60000); i++) {
        bool scan = i / 700 % 3 == 0;
        uint32_t page = scan ? (uint32_t)(i % 400)
                             : (uint32_t)(mix(&seed) % 300 * (mix(&seed) % 300) / 300);
        uint32_t before, out;

        if (i % 700 == 30) /* P09: at what it is clamped to */
            s.p.state->target = p = i / 700 % 2 == 0 ? C : 0;
        n_at_c += p == C && where(&b1, page) != NONE;
        n_at_0 += p == 0 && where(&b2, page) != NONE;
        before = p;
        out = car_ref(page, C, &p);

        must_eq(sim_play(&s, page), out);
        must_eq(s.p.state->target, p);
        must_eq(s.p.state->lists[0].n, t1.n);
        must_eq(s.p.state->lists[1].n, t2.n);
        must_eq(s.p.state->lists[2].n, b1.n);
        must_eq(s.p.state->lists[3].n, b2.n);
        must(t1.n + t2.n <= C && t1.n + b1.n <= C && t1.n + t2.n + b1.n + b2.n <= 2 * C);
        rises += p > before;
        falls += p < before;
        if (i % 16 == 0)
            ghosts_are_those_of(&s.p);
    }
    must(rises > 10 && falls > 10);
    must(n_at_0 > 0 && n_at_c > 0);
    sim_free(&s);
}
END_TEST

/* P10 */
START_TEST(car_gives_up_when_all_are_blocked_and_recovers)
{
    struct sim s = sim_make(XAC_FRAMES_CAR, 50, 1);

    for (uint32_t page = 0; page < 50; page++)
        (void)sim_play(&s, page);
    s.is_blocked = true;
    must_eq(s.p.ops->victim(&s.p, sim_take, &s), NONE);
    must(s.steps <= 2 * 50);
    s.is_blocked = false;
    must(sim_play(&s, 1000) != NONE);
    sim_free(&s);
}
END_TEST

/* C23: what is dropped is in no list, no ghost, and no hand has moved (erratum E12). */
START_TEST(car_forgets_what_is_dropped)
{
    struct sim s = sim_make(XAC_FRAMES_CAR, 12, 1);
    uint32_t t1_tail, t2_tail, slot;

    for (uint32_t page = 0; page < 12; page++)
        (void)sim_play(&s, page);
    for (uint32_t page = 0; page < 18; page += page == 5 ? 7 : 1)
        (void)sim_play(&s, page); /* 0 to 5 are used again, and then go to T2 */
    must(s.p.state->lists[0].n > 3 && s.p.state->lists[1].n > 3);
    for (int clock = 0; clock < 2; clock++) {
        uint32_t n = s.p.state->lists[clock].n, n_other = s.p.state->lists[1 - clock].n,
                 n_ghosts = s.p.state->lists[2].n + s.p.state->lists[3].n;

        t1_tail = s.p.state->lists[0].tail;
        t2_tail = s.p.state->lists[1].tail;
        slot = node_prev(&s.p, 0, s.p.state->lists[clock].tail); /* not at the hand */
        s.p.ops->forget(&s.p, slot);
        must_eq(s.p.state->lists[0].tail, t1_tail);
        must_eq(s.p.state->lists[1].tail, t2_tail);
        must_eq(s.p.state->lists[clock].n, n - 1);
        must_eq(s.p.state->lists[1 - clock].n, n_other);
        must_eq(s.p.state->lists[2].n + s.p.state->lists[3].n, n_ghosts);
        must_eq(xac_frames_ghost_find(&s.p, s.page_in[slot]), NONE);
    }
    sim_free(&s);
}
END_TEST

/* ---- Rates --------------------------------------------------------------------------- */

/* P11 */
START_TEST(car_beats_gclock_that_counts_the_first_unfix)
{
    static const uint32_t pools[] = {N_PAGES * 3 / 400, N_PAGES / 25, N_PAGES * 3 / 20};

    for (int i = 0; i < 3; i++) {
        double car = rate(XAC_FRAMES_CAR, pools[i], 1, false, FAN, false);
        double gclock = rate(XAC_FRAMES_GCLOCK_K, pools[i], 10, true, FAN, false);

        printf("%u frames: car %.2f %%, gclock on unfix %.2f %%\n", pools[i], 100 * car,
               100 * gclock);
        must(car <= 0.92 * gclock);
    }
}
END_TEST

/* scan_rate -- 75 % of a hot set, 25 % of a loop over all leaves; out how much that was. */
static double
scan_rate(uint32_t policy, uint32_t n_hot, uint32_t n, double *scannedp)
{
    struct sim s = sim_make(policy, n, 1);
    uint64_t seed = env_seed(), at = 0;
    double r;

    for (uint64_t i = 0; i < 120000; i++) {
        bool is_hot = mix(&seed) % 4 != 0;

        if (i == 60000) {
            s.refs = s.misses = 0;
            *scannedp = 0;
        }
        (void)sim_play(&s, is_hot ? (uint32_t)(mix(&seed) % n_hot)
                                  : n_hot + (uint32_t)(at++ % (N_LEAVES - n_hot)));
        *scannedp += is_hot ? 0 : 1.0 / 60000;
    }
    r = (double)s.misses / (double)s.refs;
    sim_free(&s);
    return r;
}

/* P12 */
START_TEST(car_resists_scans)
{
    static const unsigned percent[] = {60, 80, 150, 200};
    uint32_t hot = N_LEAVES / 50;

    for (int i = 0; i < 4; i++) {
        uint32_t n = hot * percent[i] / 100;
        double scanned, car = scan_rate(XAC_FRAMES_CAR, hot, n, &scanned);
        double lru = scan_rate(XAC_FRAMES_LRU, hot, n, &scanned);

        printf("pool %u %% of the hot set: car %.2f %%, lru %.2f %%, the scan %.2f %%\n",
               percent[i], 100 * car, 100 * lru, 100 * scanned);
        must(car <= (percent[i] < 100 ? 0.85 * lru : 1.01 * scanned));
    }
}
END_TEST

/*
 * P13 to P16: how much the rule changes.
 *
 * What the rule saves depends on how many inner pages there are beside the pool: 60 leaves below
 * each make them nearly as many as the frames of the small pool.  The pages of the tree of each row
 * are as full as those of its model: 200 of 4 KiB, 340 of 8 KiB.
 */
START_TEST(the_structural_rule_changes_little)
{
    static const struct {
        uint32_t policy, k, fan;
        bool marks_new;
        double bounds[2][2]; /* change of misses: pools of 2 %, of 20 % */
        const char *name;
    } rows[] = {
        {XAC_FRAMES_GCLOCK_K, 10, 200, true, {{-0.15, -0.02}, {-0.02, 0.02}}, "gclock"},
        {XAC_FRAMES_CAR, 1, FAN, false, {{-0.02, 0.02}, {-0.02, 0.02}}, "car"},
        {XAC_FRAMES_SWEEP, 0, 340, false, {{-0.12, 0}, {-0.12, 0.02}}, "sweep"},
        {XAC_FRAMES_RANDOM, 0, 340, false, {{-0.12, 0}, {-0.12, 0.02}}, "random"},
        {XAC_FRAMES_LRU, 0, 340, false, {{-0.001, 0.001}, {-0.001, 0.001}}, "lru"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int large = 0; large < 2; large++) {
            uint32_t n = large ? 4000 : 400;
            double off =
                rate(rows[i].policy, n, rows[i].k, rows[i].marks_new, rows[i].fan, false);
            double on =
                rate(rows[i].policy, n, rows[i].k, rows[i].marks_new, rows[i].fan, true);
            double change = on / off - 1;

            printf("%s, %u frames: %.3f %% to %.3f %%, %+.2f %%\n", rows[i].name, n,
                   100 * off, 100 * on, 100 * change);
            must(change >= rows[i].bounds[large][0]
                 && change <= rows[i].bounds[large][1]);
        }
}
END_TEST

/* misses_allocate_nothing -- all but the pinned pages leave, and come again. */
static void
misses_allocate_nothing(struct swz_space *s, struct swz_thread *th)
{
    uint32_t n = s->pool->region->n_frames_all;
    struct xac_frames_stats before, after;
    struct mallinfo2 memory;

    for (int round = 0; round < 8; round++) /* inner pages after what is below them */
        for (uint32_t i = 0; i < n; i++)
            (void)xac_frames_evict(th->user, i);
    swz_get_pool_stats(s, &before);
    memory = mallinfo2();
    for (uint64_t key = 0; key < 1000; key++)
        must_ok(get(th, 0, key));
    must_eq(mallinfo2().uordblks, memory.uordblks);
    swz_get_pool_stats(s, &after);
    must(after.misses - before.misses > 100);
}

/* P17 */
START_TEST(hits_lock_and_allocate_nothing)
{
    static const uint32_t policies[] = {XAC_FRAMES_NB_GCLOCK, XAC_FRAMES_SWEEP,
                                        XAC_FRAMES_RANDOM, XAC_FRAMES_GCLOCK_K,
                                        XAC_FRAMES_CAR};

    for (int i = 0; i < 5; i++) {
        struct swz_config config = {.n_pages = 4096,
                                    .n_frames = 1000,
                                    .n_threads = 2,
                                    .page_bytes = 2048,
                                    .policy = policies[i]};
        struct xac_frames_stats before, after;
        struct swz_thread *th;
        struct swz_space *s = space_of(config, 200, 16, &th);
        struct mallinfo2 memory;

        for (uint64_t key = 0; key < 1000; key++)
            must_ok(put(th, 0, key));
        for (uint64_t key = 0; key < 1000; key++)
            must_ok(get(th, 0, key));
        swz_get_pool_stats(s, &before);
        memory = mallinfo2();
        for (uint64_t key = 0; key < 1000; key++)
            must_ok(get(th, 0, key));
        must_eq(mallinfo2().uordblks, memory.uordblks);
        swz_get_pool_stats(s, &after);
        must_eq(after.locks, before.locks);
        must_eq(after.misses, before.misses);
        must_ok(swz_checkpoint(s));
        misses_allocate_nothing(s, th);
        swz_leave(th);
        must_ok(swz_close(s));
    }
}
END_TEST

/* steps_of_first_uses -- hand steps for each eviction, where no leaf is used again before it leaves. */
static double
steps_of_first_uses(uint32_t k, bool counts_first_fix)
{
    struct swz_config config = {.n_pages = 4096,
                                .n_frames = 100,
                                .n_threads = 2,
                                .page_bytes = 2048,
                                .policy = XAC_FRAMES_GCLOCK_K,
                                .weight_max = k,
                                .is_plain = true,
                                .counts_first_fix = counts_first_fix};
    struct xac_frames_stats before, after;
    struct swz_thread *th;
    struct swz_space *s = space_of(config, 200, 16, &th);

    for (uint64_t key = 0; key < 8000; key++)
        must_ok(put(th, 0, key));
    must_ok(swz_checkpoint(s)); /* no eviction passes dirty pages by */
    for (int round = 0; round < 2;
         round++) { /* one that fills the pool, one that counts */
        swz_get_pool_stats(s, &before);
        for (uint64_t key = 0; key < 8000; key += 16) /* at most one of each leaf */
            must_ok(get(th, 0, key));
    }
    swz_get_pool_stats(s, &after);
    swz_leave(th);
    must_ok(swz_close(s));
    must(after.evictions - before.evictions > 300);
    return (double)(after.sweep_steps - before.sweep_steps)
           / (double)(after.evictions - before.evictions);
}

/* B09: GCLOCK as the thesis has it lets a page that was used once survive k rounds of its hand. */
START_TEST(the_first_fix_counts_if_that_is_asked_for)
{
    for (uint32_t k = 1; k <= 5; k += 4) {
        double inserted_at_0 = steps_of_first_uses(k, false);
        double set_on_unfix = steps_of_first_uses(k, true);

        printf("k %u: %.2f steps for each eviction, %.2f if the first fix counts\n", k,
               inserted_at_0, set_on_unfix);
        must(set_on_unfix >= k + 0.8);
        must(set_on_unfix > inserted_at_0 + 0.5 * k);
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("replacers");
    TCase *tc = env_tcase(s, "replacers", 120);

    tcase_add_test(tc, hands_visit_every_frame);
    tcase_add_test(tc, sweep_is_not_random);
    tcase_add_test(tc, gclock_follows_its_definition);
    tcase_add_test(tc, a_refused_page_does_not_wrap_its_count);
    tcase_add_test(tc, a_page_used_once_leaves_on_the_first_pass);
    tcase_add_test(tc, a_larger_k_misses_less_and_looks_longer);
    tcase_add_test(tc, car_follows_its_definition);
    tcase_add_test(tc, car_gives_up_when_all_are_blocked_and_recovers);
    tcase_add_test(tc, car_forgets_what_is_dropped);
    tcase_add_test(tc, car_beats_gclock_that_counts_the_first_unfix);
    tcase_add_test(tc, car_resists_scans);
    tcase_add_test(tc, the_structural_rule_changes_little);
    tcase_add_test(tc, hits_lock_and_allocate_nothing);
    tcase_add_test(tc, the_first_fix_counts_if_that_is_asked_for);
    return env_main(s);
}
