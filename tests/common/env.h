/* SPDX-License-Identifier: MIT */
/*
 * env.h -- what every test program needs: a directory of its own, a seed, one way to say
 * what must hold, child processes, and pictures of a directory.
 *
 * Each test runs in an empty temporary directory, which is its current directory.  By
 * convention the environment is "db" and the mapped file "input.db".
 *
 * must() and must_rc() work in the test and in its child processes alike: in a child they
 * print and exit, and the parent's proc_join() turns that into the test's failure.
 */
#ifndef XAC_TEST_ENV_H
#define XAC_TEST_ENV_H

#include <check.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xac.h>

/* Page size of this machine, bytes. */
size_t env_page(void);

/* The run's seed: XAC_SEED, or a fixed one; printed by env_main(). */
uint64_t env_seed(void);

/* A positive number from the environment variable `name`, or `otherwise`. */
uint64_t env_number(const char *name, uint64_t otherwise);

/* What loops over many cases of one kind are divided by: under the address sanitizer each case takes some four
   times as long.  The ordinary build runs all of them. */
#ifdef __SANITIZE_ADDRESS__
# define ENV_DEAR 4
#else
# define ENV_DEAR 1
#endif

/* Of many cases of one kind, is the i-th one run?  In the ordinary build each is; under the address sanitizer one in
   ENV_DEAR, by the seed. */
bool env_is_chosen(uint64_t i);

/* Run a suite; ret exit status for main().  Temporary directories are removed. */
int env_main(Suite *s);

/* The same for programs that are not Check suites: directory made and entered; removed. */
void env_open(void);
/* Call before: directories are made in memory, unless TMPDIR says where; for tests in which nobody
   pulls the plug, and which sync so often that a disk takes most of their time. */
void env_in_memory(void);
void env_close(void);

/* Checked fixture: a fresh directory becomes the current one. */
void env_setup(void);

/* A test case with env_setup() and a timeout in seconds, added to the suite. */
TCase *env_tcase(Suite *s, const char *name, double timeout_s);

/* The same with another fixture, which calls env_setup(). */
TCase *env_tcase_with(Suite *s, const char *name, double timeout_s, void (*setup)(void));

/* Monotonic clock, seconds. */
double env_now(void);

/* ---- what must hold ------------------------------------------------------------- */

_Noreturn void env_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void env_must_rc(const char *file, int line, const char *call, int got, int want);

#define must(cond) ((cond) ? (void)0 : env_fail(__FILE__, __LINE__, "not so: %s", #cond))

/* must_eq -- two integers are equal; both are printed if not. */
#define must_eq(a, b)                                                    \
 do {                                                                    \
  long long a_ = (long long)(a), b_ = (long long)(b);                    \
  if (a_ != b_)                                                          \
   env_fail(__FILE__, __LINE__, "%s == %s: %lld, %lld", #a, #b, a_, b_); \
 } while (0)

/* must_rc -- a call returns this code. */
#define must_rc(call, want) env_must_rc(__FILE__, __LINE__, #call, (call), (want))

/* must_ok -- a call returns 0. */
#define must_ok(call) must_rc(call, 0)

/*
 * must_refuse -- a call fails with this code and leaves words about it, not those of an
 * earlier failure.
 */
#define must_refuse(call, want) \
 (env_stale_message(), env_must_refuse(__FILE__, __LINE__, #call, (call), (want)))
void env_stale_message(void);
void env_must_refuse(const char *file, int line, const char *call, int got, int want);

/* ---- the library, in short ------------------------------------------------------- */

#define ENV_DIR  "db"
#define ENV_FILE "input.db"

/*
 * env_without_frames -- for a test that takes something for granted that a bound on memory
 * (XAC_FRAMES) changes; before anybody attaches.  If there is one, says why, and does without.
 */
void env_without_frames(const char *why);

/*
 * env_let_overlap -- for a test of transactions that overlap: they conflict, fail, or are open at
 * the same time; before anybody attaches.  The policy is XAC_POLICY, or oldest-wins if that is not
 * set or lets no two updates overlap.
 */
void env_let_overlap(void);

/*
 * XAC_OPT_CHECKING of participants that env_init() opens.  At first what the variable
 * XAC_CHECKING says, XAC_CHECKING_STRICT without it; the variable is not there any more when a
 * test runs.
 */
extern uint64_t env_checking;

/* env_announce -- the program promises to announce every store, and is watched as env_checking has
   it so far: a store that it does not announce stops it. */
void env_announce(void);

/* xInit() on ENV_DIR, which must succeed. */
void env_init(int flags);

/* env_init() and xMmap() of ENV_FILE; ret its base. */
void *env_attach(int flags, size_t n_pages);

/*
 * A second participant that maps ENV_FILE too and then sleeps until killed with
 * proc_kill(); call before env_attach().  Processes that are alone may be treated more
 * gently (fewer traps); with it nobody is.
 */
pid_t env_companion(int flags, size_t n_pages);

/* A process that takes part and does nothing, until it is told to leave. */
struct env_company {
    pid_t pid;
    _Atomic uint64_t *word; /* 1: it is there; 2: it is to leave                       */
};

/* env_company_begin -- when this returns it has called attach(arg); then it sleeps. */
struct env_company env_company_begin(void (*attach)(void *arg), void (*detach)(void *arg),
                                     void *arg);

/* env_company_end -- when this returns it has called detach(arg), and ended. */
void env_company_end(const struct env_company *c);

/* xShutdown(), which must succeed. */
void env_detach(void);

/* Path of the control region that the lock file of an environment names. */
void env_region(const char *dir, char path[4200]);

/* env_drop_region -- one that the killed have left, as a power cut does. */
void env_drop_region(const char *dir);

/* xStats(), which must succeed; and of those the traps, of reads and writes. */
struct xac_stats env_stats(void);
uint64_t env_traps(void);

/* xMmapAt() of n pages from page `first` of ENV_FILE, which must succeed. */
uint64_t *env_map_at(size_t first, size_t n);

/* The first number of a page of a mapping. */
static inline uint64_t *
env_cell(uint64_t *base, size_t page)
{
    return base + page * env_page() / sizeof *base;
}

/* Add 1 to a number in a transaction, until it commits. */
void env_increment(uint64_t *cell);

/* Store one number in a transaction that commits, perhaps after some attempts. */
void env_put(uint64_t *cell, uint64_t value);

/* Load one number in a query. */
uint64_t env_get(const uint64_t *cell);

/* ---- child processes ------------------------------------------------------------ */

/*
 * fork(2): the child ends with this process, whatever ends that, and so does what it becomes by execve(2).  ret 0 in the
 * child; it does not fail.
 */
pid_t proc_fork(void);

/* From now on this process ends with its parent, which is that one, or was. */
void proc_end_with(pid_t parent);

/*
 * Fork a child that runs fn(arg) and _exit()s with 0, without xShutdown().  The child
 * dies with its parent.
 */
pid_t proc_spawn(void (*fn)(void *), void *arg);

/* Wait for the child; it must have exited with 0. */
void proc_join(pid_t pid);

/* Wait for the child; ret its status as from waitpid(2). */
int proc_wait(pid_t pid);

/* Run fn(arg) in a child to its end; it must exit with 0. */
void proc_run(void (*fn)(void *), void *arg);

/*
 * Run fn(arg) in a child with stderr and stdout captured.
 *
 * out  text  NUL-terminated, cut at `size`
 * ret  status as from waitpid(2).
 */
int proc_capture(void (*fn)(void *), void *arg, char *text, size_t size);

/* Whether a child that was not waited for yet has ended because something did not hold: in the test,
   or an assertion of the library. */
bool proc_any_failed(void);

/* Kill with SIGKILL and wait. */
void proc_kill(pid_t pid);

/* Zero-filled memory shared with child processes to come. */
void *proc_shared(size_t size);

/* Sleep until *word >= value; fails after `limit_s` seconds, or if a child has failed. */
void proc_await(const _Atomic uint64_t *word, uint64_t value, double limit_s);

void proc_sleep_us(uint64_t us);

/* Words in proc_shared() memory: what was stored before word_store() is seen after. */
static inline uint64_t
word_load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

static inline void
word_store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

static inline void
word_add(_Atomic uint64_t *word, uint64_t n)
{
    atomic_fetch_add_explicit(word, n, memory_order_acq_rel);
}

/* ---- files ---------------------------------------------------------------------- */

void file_write(const char *path, uint64_t offset, const void *data, size_t n);
void file_read(const char *path, uint64_t offset, void *data, size_t n);
uint64_t file_u64(const char *path, uint64_t offset);
uint64_t file_size(const char *path);
bool file_exists(const char *path);

/* Names in a directory that begin with `prefix`; "": all, . and .. too. */
size_t file_count(const char *dir, const char *prefix);

/* Names and bytes of everything in a directory (not below). */
struct image;
struct image *image_take(const char *dir);
void image_free(struct image *im);

/*
 * Compare two pictures.  The lock file is left out: it says who is alive, no more.
 *
 * ret  NULL if equal, else the first difference in words (static storage).
 */
const char *image_difference(const struct image *a, const struct image *b);

/* Make the directory as it was: bytes are rewritten in place, so inodes stay. */
void image_restore(const struct image *im, const char *dir);

/* must_unchanged -- the directory is as in the picture. */
#define must_unchanged(im, dir) env_must_unchanged(__FILE__, __LINE__, (im), (dir))
void env_must_unchanged(const char *file, int line, const struct image *im,
                        const char *dir);

/* ---- random numbers -------------------------------------------------------------- */

/* rnd_next -- SplitMix64; *state is the seed. */
uint64_t rnd_next(uint64_t *state);

/* rnd_below -- 0 <= result < n. */
uint64_t rnd_below(uint64_t *state, uint64_t n);

#endif /* XAC_TEST_ENV_H */
