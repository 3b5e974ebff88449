/* SPDX-License-Identifier: MIT */
/*
 * holes.c -- a function for each kind of access, compiled by xac-cc: is it noticed?
 *
 * GOAL    No kind of store escapes, unless xac-cc has warned of it; no kind of load does.
 * METHOD  holes WARNED...: names of the functions that xac-cc has warned of.  Each store is made in a
 *         transaction that aborts, on a page that stays writable (XAC_CHECKING_TRUSTED): a store that
 *         is still seen afterwards has escaped.  Each load is counted as an announcement or a trap.
 *         stores_by_exempt_code must escape, so the method sees what escapes.
 */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
# include <immintrin.h>
#endif

#include <xac.h>

#include "holes.h"

#define PAGES   16
#define PAGE    4096
#define PATTERN 0xa5

unsigned char *holes_from;
int holes_ends[2];
FILE *holes_file;

struct s8 {
    int a, b;
};
struct s16 {
    long a, b;
};
struct s24 {
    long a, b, c;
};
struct s5 {
    char c[5];
};
struct s3 {
    char c[3];
};
struct s64 {
    long c[8];
};
struct s200 {
    char c[200];
};
struct bits {
    unsigned a : 3, b : 13;
    unsigned long c : 40;
};
struct __attribute__((packed)) packed {
    char c;
    int i;
    long l;
};
typedef int v16 __attribute__((vector_size(16)));
typedef int v32 __attribute__((vector_size(32), aligned(4)));
typedef double d32 __attribute__((vector_size(32), aligned(8)));

/* Instructions that the processor may not have. */
#ifdef __clang__
# define NOT_TEMPORAL __builtin_nontemporal_store(*(const v16 *)from, (v16 *)at)
#elif defined(__SSE2__)
# define NOT_TEMPORAL _mm_stream_si128((__m128i *)at, *(const __m128i *)from)
#else
# define NOT_TEMPORAL at[0] = 1
#endif
#ifdef __AVX2__
# define MASKED \
  _mm256_maskstore_epi32((int *)at, _mm256_set1_epi32(-1), _mm256_set1_epi32(n))
#else
# define MASKED at[0] = 1
#endif
#ifdef __AVX512F__
# define COMPRESSED _mm512_mask_compressstoreu_epi32(at, 0xff, _mm512_set1_epi32(n))
# define SCATTERED \
  _mm512_i32scatter_epi32(at, _mm512_set1_epi32(4), _mm512_set1_epi32(n), 4)
#else
# define COMPRESSED at[0] = 1
# define SCATTERED  at[0] = 1
#endif

/* Not inlined: they return structures. */
__attribute__((noinline)) struct s8
make8(int v)
{
    return (struct s8){v, v};
}

__attribute__((noinline)) struct s16
make16(int v)
{
    return (struct s16){v, v};
}

__attribute__((noinline)) struct s24
make24(int v)
{
    return (struct s24){v, v, v};
}

__attribute__((noinline)) struct s200
make200(int v)
{
    struct s200 s;

    memset(&s, v, sizeof s);
    return s;
}

/* ---- Stores ------------------------------------------------------------------------------- */

STORE(char, *(char *)at = 1)
STORE(short, *(short *)at = 1)
STORE(int, *(int *)at = 1)
STORE(long, *(long *)at = 1)
STORE(bool, *(bool *)at = true)
STORE(float, *(float *)at = 1)
STORE(double, *(double *)at = 1)
STORE(long_double, *(long double *)at = 1)
STORE(int128, *(__int128 *)at = 1)
STORE(complex, *(_Complex double *)at = 1)
STORE(float128, *(__float128 *)at = n)
STORE(complex_long, *(_Complex long double *)at = n)
STORE(overflow, (void)__builtin_add_overflow(n, n, (int *)at))
STORE(pointer, *(void **)at = at)
STORE(function, *(int (**)(const char *))at = puts)
STORE(volatile, *(volatile int *)at = 1)
STORE(volatile_long, *(volatile long *)(at + 1) = 1)
STORE(unaligned_short, *(short *)(at + 1) = 1)
STORE(unaligned_int, *(int *)(at + 1) = 1)
STORE(unaligned_long, *(long *)(at + 3) = 1)
STORE(over_a_border, *(long *)(at + PAGE - 4) = 1)
STORE(bits, ((struct bits *)at)->b = 7)
STORE(bits40, ((struct bits *)at)->c = 7)
STORE(bits_volatile, ((volatile struct bits *)at)->b = 7)
STORE(bits_added, ((struct bits *)at)->c += (unsigned)n)
STORE(packed_int, ((struct packed *)at)->i = 7)
STORE(packed_long, ((struct packed *)at)->l = 7)
STORE(vector16, *(v16 *)at = *(const v16 *)from)
STORE(vector32, *(v32 *)at = *(const v32 *)from)
STORE(vector_sum, *(d32 *)at += 1.0)
STORE(twice, *(long *)at = *(long *)at + 1; *(long *)at = *(long *)at * 3)
STORE(increment, ++*(long *)at)
STORE(or, *(int *)at |= 0x5a5a)
STORE(swap, long t = ((long *)at)[0]; ((long *)at)[0] = ((long *)at)[8] + 1;
      ((long *)at)[8] = t)
STORE(copy5, *(struct s5 *)at = *(const struct s5 *)from)
STORE(copy16, *(struct s16 *)at = *(const struct s16 *)from)
STORE(copy24, *(struct s24 *)at = *(const struct s24 *)from)
STORE(copy200, *(struct s200 *)at = *(const struct s200 *)from)
STORE(copy_within, ((long *)at)[50] = 1; ((struct s200 *)at)[0] = ((struct s200 *)at)[2])
STORE(copy3, *(struct s3 *)at = *(const struct s3 *)from)
STORE(copy64, *(struct s64 *)at = *(const struct s64 *)from)
STORE(volatile_structure, *(volatile struct s24 *)at = *(const struct s24 *)from)
STORE(zero24, *(struct s24 *)at = (struct s24){0})
STORE(zero200, *(struct s200 *)at = (struct s200){{0}})
STORE(literal, *(struct s24 *)at = (struct s24){1, 2, 3})
STORE(returned8, *(struct s8 *)at = make8(3))
STORE(returned16, *(struct s16 *)at = make16(3))
STORE(returned24, *(struct s24 *)at = make24(3))
STORE(returned200, *(struct s200 *)at = make200(3))
STORE(returned_element, ((struct s24 *)at)[from[0] & 3] = make24(3))
STORE(returned_by_pointer, struct s24 (*volatile f)(int) = make24;
      *(struct s24 *)at = f(3))
STORE(returned_first, struct s24 s = make24(3); *(struct s24 *)at = s)
STORE(loop_copy, for (int i = 0; i < n; i++)((long *)at)[i] = ((const long *)from)[i])
STORE(loop_copy_bytes, for (int i = 0; i < n; i++) at[i] = from[i])
STORE(loop_set, for (int i = 0; i < n; i++)((long *)at)[i] = 0)
STORE(loop_set32, for (int i = 0; i < 32; i++)((long *)at)[i] = 0)
STORE(loop_move, for (int i = 0; i < n; i++) at[i] = at[i + 1]; at[2 * n] = 1)
STORE(loop_set_structures,
      for (int i = 0; i < n; i++)((struct s24 *)at)[i] = (struct s24){0})
STORE(loop_add, for (int i = 0; i < n; i++)((float *)at)[i] += 1)
STORE(loop_if,
      for (int i = 0; i < n; i++) if (((const int *)from)[i]
                                      > 3)((int *)at)[i] = ((const int *)from)[i] * 2)
STORE(loop_scatter, for (int i = 0; i < n; i++)((int *)at)[from[i]] = i)
STORE(
    loop_stride, for (int i = 0; i < n; i++) {
        ((int *)at)[3 * i] = i;
        ((int *)at)[3 * i + 1] = n;
        ((int *)at)[3 * i + 2] = 1;
    })
STORE(four_longs, long *p = (long *)at; const long *q = (const long *)from; p[0] = q[0];
      p[1] = q[1]; p[2] = q[2]; p[3] = q[3])
STORE(eight_chars, for (int i = 0; i < 8; i++) at[i] = (unsigned char)i)
STORE(array_on_stack, char b[n]; memcpy(b, from, (size_t)n); memcpy(at, b, (size_t)n))
STORE(memcpy7, memcpy(at, from, 7))
STORE(memcpy8, memcpy(at, from, 8))
STORE(memcpy24, memcpy(at, from, 24))
STORE(memcpy200, memcpy(at, from, 200))
STORE(memcpy_n, memcpy(at, from, (size_t)n))
STORE(memcpy_builtin, __builtin_memcpy(at, from, 24))
STORE(memcpy_by_pointer, void *(*volatile f)(void *, const void *, size_t) = memcpy;
      f(at, from, 24))
STORE(memmove16, memmove(at, from, 16))
STORE(memmove_n, memmove(at, at + 1, (size_t)n); at[0] = 0)
STORE(memset8, memset(at, 0, 8))
STORE(memset24, memset(at, 0, 24))
STORE(memset200, memset(at, 7, 200))
STORE(memset_n, memset(at, 7, (size_t)n))
STORE(memset_builtin, __builtin_memset(at, 0, 40))
STORE(bzero, bzero(at, 40))
STORE(mempcpy, mempcpy(at, from, 9))
STORE(strcpy, strcpy((char *)at, "hello wo"))
STORE(strcpy_n, strcpy((char *)at, (const char *)from))
STORE(strcpy_builtin, __builtin_strcpy((char *)at, "hello"))
STORE(strncpy, strncpy((char *)at, (const char *)from, 30))
STORE(stpcpy, stpcpy((char *)at, "hello"))
STORE(stpcpy_builtin, __builtin_stpcpy((char *)at, "hello world, long"))
STORE(strcat, at[4] = 0; strcat((char *)at, "hello"))
STORE(strncat, at[4] = 0; strncat((char *)at, "hello", 3))
STORE(sprintf, sprintf((char *)at, "%d", n))
STORE(sprintf_builtin, __builtin_sprintf((char *)at, "hello"))
STORE(snprintf, snprintf((char *)at, 3, "hello %d", n))
STORE(strtok, char *save; at[3] = ' '; at[5] = 0; strtok_r((char *)at, " ", &save))
STORE(qsort, ((long *)at)[9] = 0; qsort(at, 10, sizeof(long), order))
STORE(read, must_be(read(holes_ends[0], at, 9) == 9))
STORE(readv, struct iovec v[2] = {{at, 3}, {at + 100, 4}};
      must_be(readv(holes_ends[0], v, 2) == 7))
STORE(recv, must_be(recv(holes_ends[0], at, 9, 0) == 9))
STORE(pread, must_be(pread(fileno(holes_file), at, 9, 3) == 9))
STORE(fread, rewind(holes_file); must_be(fread(at, 1, 9, holes_file) == 9))
STORE(fgets, rewind(holes_file); must_be(fgets((char *)at, 9, holes_file) != NULL))
STORE(readv_parts, struct iovec v[1] = {{at, 9}};
      must_be(preadv(fileno(holes_file), v, 1, 3) == 9))
STORE(recvfrom, must_be(recvfrom(holes_ends[0], at, 9, 0, NULL, NULL) == 9))
STORE(recvmsg, struct iovec v[1] = {{at, 9}};
      struct msghdr m = {.msg_iov = v, .msg_iovlen = 1};
      must_be(recvmsg(holes_ends[0], &m, 0) == 9))
STORE(getrandom, must_be(getrandom(at, 30, 0) == 30))
STORE(getentropy, must_be(getentropy(at, 30) == 0))
STORE(readlink, must_be(readlink("/proc/self/exe", (char *)at, 30) > 1))
STORE(getline, rewind(holes_file); char *line = NULL; memset(at, 0, 8);
      must_be(getline(&line, (size_t *)at, holes_file) > 0); free(line))
STORE(getline_line, rewind(holes_file); size_t length = 0; *(char **)at = NULL;
      must_be(getline((char **)at, &length, holes_file) > 0); free(*(char **)at))
STORE(stat, must_be(stat("/", (struct stat *)at) == 0))
STORE(lstat, must_be(lstat("/", (struct stat *)at) == 0))
STORE(fstat, must_be(fstat(fileno(holes_file), (struct stat *)at) == 0))
STORE(time, time((time_t *)at))
STORE(clock_gettime, clock_gettime(CLOCK_REALTIME, (struct timespec *)at))
STORE(gettimeofday, gettimeofday((struct timeval *)at, NULL))
STORE(gmtime, gmtime_r(&(time_t){1}, (struct tm *)at))
STORE(localtime, localtime_r(&(time_t){1}, (struct tm *)at))
STORE(strftime, strftime((char *)at, 40, "%Y", gmtime(&(time_t){1})))
STORE(strsep, char *rest = (char *)at; at[3] = ' '; at[5] = 0; strsep(&rest, " "))
STORE(strsep_rest, char line[] = "a b"; *(char **)at = line; strsep((char **)at, " "))
STORE(memccpy, memccpy(at, from, 9, 30))
STORE(strtol, (void)strtol("12x", (char **)at, 10))
STORE(strtoll, (void)strtoll("12x", (char **)at, 10))
STORE(strtoul, (void)strtoul("12x", (char **)at, 10))
STORE(strtoull, (void)strtoull("12x", (char **)at, 10))
STORE(strtod, (void)strtod("1.5x", (char **)at))
STORE(strtof, (void)strtof("1.5x", (char **)at))
STORE(frexp, (void)frexp(n + 0.5, (int *)at))
STORE(modf, (void)modf(n + 0.5, (double *)at))
STORE(qsort_r, ((long *)at)[9] = 0; qsort_r(at, 10, sizeof(long), order_with, NULL))
STORE(atomic_store, atomic_store((_Atomic int *)at, 1))
STORE(atomic_relaxed, atomic_store_explicit((_Atomic long *)at, 1, memory_order_relaxed))
STORE(atomic_init, atomic_init((_Atomic int *)at, 1))
STORE(atomic_add, atomic_fetch_add((_Atomic int *)at, 1))
STORE(atomic_sub, atomic_fetch_sub((_Atomic short *)at, 1))
STORE(atomic_or, atomic_fetch_or((_Atomic char *)at, 2))
STORE(atomic_exchange, (void)atomic_exchange((_Atomic long *)at, 1))
STORE(atomic_increment, ++*(_Atomic int *)at)
STORE(atomic_multiply, *(_Atomic int *)at *= 3)
STORE(atomic_double, *(_Atomic double *)at = 3)
STORE(atomic_compare, int e = *(int *)at;
      atomic_compare_exchange_strong((_Atomic int *)at, &e, 1))
STORE(atomic_expected, _Atomic int x = 1;
      atomic_compare_exchange_strong(&x, (int *)at, 2))
STORE(atomic_flag, atomic_flag_clear((atomic_flag *)at))
STORE(sync_add, __sync_fetch_and_add((int *)at, 1))
STORE(sync_compare, __sync_bool_compare_and_swap((int *)at, *(int *)at, 1))
STORE(sync_lock, (void)__sync_lock_test_and_set((int *)at, 1))
STORE(atomic_structure, struct s24 s = {1, 2, 3};
      __atomic_store((struct s24 *)at, &s, __ATOMIC_SEQ_CST))
/* Each operation on a page of its own, so that none hides behind another. */
#define A(k, type) ((_Atomic(type) *)(at + (k)*PAGE))
#define ATOMICS(type, order, order_of_store)                                 \
 type e = *(type *)(at + 8 * PAGE);                                          \
 type wrong = (type)~e;                                                      \
 atomic_store_explicit(A(0, type), 3, order_of_store);                       \
 (void)atomic_exchange_explicit(A(1, type), 3, order);                       \
 (void)atomic_fetch_add_explicit(A(2, type), 3, order);                      \
 (void)atomic_fetch_sub_explicit(A(3, type), 3, order);                      \
 (void)atomic_fetch_and_explicit(A(4, type), 3, order);                      \
 (void)atomic_fetch_or_explicit(A(5, type), 0x7f, order);                    \
 (void)atomic_fetch_xor_explicit(A(6, type), 3, order);                      \
 (void)__atomic_fetch_nand((type *)(at + 7 * PAGE), 3, __ATOMIC_SEQ_CST);    \
 must_be(atomic_compare_exchange_strong_explicit(A(8, type), &e, 3, order,   \
                                                 memory_order_relaxed));     \
 while (!atomic_compare_exchange_weak_explicit(A(9, type), &wrong, 3, order, \
                                               memory_order_relaxed))        \
  continue;                                                                  \
 (void)__atomic_add_fetch((type *)(at + 10 * PAGE), 3, __ATOMIC_SEQ_CST);    \
 (void)__sync_val_compare_and_swap((type *)(at + 11 * PAGE), e, 3)

STORE(atomics8_relaxed, ATOMICS(uint8_t, memory_order_relaxed, memory_order_relaxed))
STORE(atomics8_acquire, ATOMICS(uint8_t, memory_order_acquire, memory_order_release))
STORE(atomics8_both, ATOMICS(uint8_t, memory_order_acq_rel, memory_order_seq_cst))
STORE(atomics16_relaxed, ATOMICS(uint16_t, memory_order_relaxed, memory_order_relaxed))
STORE(atomics16_release, ATOMICS(uint16_t, memory_order_release, memory_order_release))
STORE(atomics16_all, ATOMICS(uint16_t, memory_order_seq_cst, memory_order_seq_cst))
STORE(atomics32_relaxed, ATOMICS(uint32_t, memory_order_relaxed, memory_order_relaxed))
STORE(atomics32_release, ATOMICS(uint32_t, memory_order_release, memory_order_release))
STORE(atomics32_all, ATOMICS(uint32_t, memory_order_seq_cst, memory_order_seq_cst))
STORE(atomics64_relaxed, ATOMICS(uint64_t, memory_order_relaxed, memory_order_relaxed))
STORE(atomics64_acquire, ATOMICS(uint64_t, memory_order_acquire, memory_order_release))
STORE(atomics64_both, ATOMICS(uint64_t, memory_order_acq_rel, memory_order_seq_cst))
STORE(atomics128, ATOMICS(__int128, memory_order_seq_cst, memory_order_seq_cst))
STORE(by_assembler, __asm__ volatile("movl $1, %0" : "=m"(*(int *)at)))
STORE(by_assembler_pointer, __asm__ volatile("movl $1, (%0)" : : "r"(at) : "memory"))
STORE(not_temporal, __builtin_ia32_movnti64((long long *)at, 1))
STORE(not_temporal_vector, NOT_TEMPORAL)
STORE(masked, MASKED)
STORE(compressed, COMPRESSED)
STORE(scattered, SCATTERED)
STORE(
    over_longjmp, jmp_buf b; if (setjmp(b) == 0) {
        at[0] = 1;
        longjmp(b, 1);
    } at[1] = 2)
STORE(argument, sum_into((int *)at, 3, 1, 2, 3))
STORE(structures, last_into((struct s24 *)at, 2, (struct s24){1, 2, 3}, (struct s24){4}))
STORE(large_structures, last_large_into((struct s200 *)at, 1, make200(3)))
STORE(
    to_list,
    struct {
        void *next;
        int n;
    } *l = (void *)at;
    l->next = at; l->n = n)

/* order -- of two numbers; they are compared where they lie. */
int
order(const void *a, const void *b)
{
    return *(const long *)a < *(const long *)b ? -1 : *(const long *)a > *(const long *)b;
}

int
order_with(const void *a, const void *b, void *arg)
{
    (void)arg;
    return order(a, b);
}

void
sum_into(int *at, int n, ...)
{
    va_list arguments;

    va_start(arguments, n);
    *at = 0;
    while (n-- > 0)
        *at += va_arg(arguments, int);
    va_end(arguments);
}

void
last_into(struct s24 *at, int n, ...)
{
    va_list arguments;

    va_start(arguments, n);
    while (n-- > 0)
        *at = va_arg(arguments, struct s24);
    va_end(arguments);
}

void
last_large_into(struct s200 *at, int n, ...)
{
    va_list arguments;

    va_start(arguments, n);
    while (n-- > 0)
        *at = va_arg(arguments, struct s200);
    va_end(arguments);
}

__attribute__((noinline, no_sanitize("thread"))) void
stores_by_exempt_code(unsigned char *at, const unsigned char *from, int n)
{
    (void)from;
    at[0] = (unsigned char)n;
}

static inline __attribute__((always_inline, no_sanitize("thread"))) void
exempt_inline(unsigned char *at)
{
    at[0] = 1;
}

STORE(by_exempt_inline, exempt_inline(at))

/* ---- Loads -------------------------------------------------------------------------------- */

__attribute__((noinline)) long
last_of(struct s200 s)
{
    return s.c[199];
}

LOAD(char, *at)
LOAD(long, *(const long *)at)
LOAD(unaligned, *(const long *)(at + 3))
LOAD(volatile, *(const volatile int *)at)
LOAD(double, *(const double *)at)
LOAD(long_double, *(const long double *)at)
LOAD(int128, (long)*(const __int128 *)at)
LOAD(bits, ((const struct bits *)at)->b)
LOAD(packed, ((const struct packed *)at)->i)
LOAD(vector16, (*(const v16 *)at)[1])
LOAD(vector32, (*(const v32 *)at)[1])
LOAD(structure, ({
         struct s24 s = *(const struct s24 *)at;
         s.a + s.c;
     }))
LOAD(large, ({
         struct s200 s = *(const struct s200 *)at;
         s.c[n] + s.c[199];
     }))
LOAD(argument, last_of(*(const struct s200 *)at))
LOAD(memcmp, memcmp(at, holes_from, 8))
LOAD(memcmp16, memcmp(at, holes_from, 16) == 0)
LOAD(strlen, (long)strnlen((const char *)at, 100))
LOAD(strcmp, strncmp((const char *)at, "ab", 2))
LOAD(strchr, (long)memchr(at, 'x', 100))
LOAD(memcpy, ({
         long v;
         memcpy(&v, at, sizeof v);
         v;
     }))
LOAD(atomic, atomic_load((_Atomic int *)(uintptr_t)at))
LOAD(atomic_relaxed,
     atomic_load_explicit((_Atomic int *)(uintptr_t)at, memory_order_relaxed))
LOAD(atomic_wide, (long)atomic_load((_Atomic __int128 *)(uintptr_t)at))
LOAD(switch, ({
         long v;
         switch (*at) {
         case 0:
             v = 1;
             break;
         case 9:
             v = 5;
             break;
         default:
             v = at[1];
         }
         v;
     }))
LOAD(loop_sum, ({
         long v = 0;
         for (int i = 0; i < n; i++)
             v += ((const int *)at)[i];
         v;
     }))
LOAD(write, write(holes_ends[1], at, 1))
LOAD(assembler, ({
         int v;
         __asm__ volatile("movl %1, %0" : "=r"(v) : "m"(*(const int *)at));
         v;
     }))

/* ---- Trying them -------------------------------------------------------------------------- */

static unsigned char *base;
static int n_wrong;
static const char *trying = "main";

void
holes_must(bool is, int line)
{
    if (!is) {
        fprintf(stderr, "holes.c:%d: in %s: not so; %s\n", line, trying, xLastError());
        abort();
    }
}

/* is_warned -- of a function: is it among the arguments? */
static bool
is_warned(const char *name, char **warned)
{
    for (; *warned != NULL; warned++) {
        if (strcmp(*warned, name) == 0)
            return true;
    }
    return false;
}

/* fill -- make the pages what they shall be, and writable from now on. */
static void
fill(void)
{
    must_be(xbegin() == 0);
    must_be(setRangeAccess(base, PAGES * PAGE, READ_WRITE) == 0);
    memset(base, PATTERN, PAGES * PAGE);
    must_be(xend() == COMMITTED);
}

/* is_as_filled -- is nothing else in the pages? */
static bool
is_as_filled(void)
{
    for (size_t i = 0; i < PAGES * PAGE; i++) {
        if (base[i] != PATTERN)
            return false;
    }
    return true;
}

/* escapes -- make a store in a transaction that aborts: is it there afterwards? */
static bool
escapes(const struct kind *k, int page)
{
    bool is_there;

    trying = k->name;
    must_be(send(holes_ends[1], "0123456789", 10, 0) == 10);
    must_be(xbegin() == 0);
    k->store(base + page * PAGE, holes_from, 40);
    must_be(!is_as_filled());
    must_be(xAbort() == 0);
    must_be(xend() == ABORTED);
    must_be(recv(holes_ends[0], (char[40]){0}, 40, MSG_DONTWAIT) != 0);
    must_be(xbeginQuery() == 0);
    is_there = !is_as_filled();
    must_be(xendQuery() == 0);
    return is_there;
}

static void
try_stores(const struct kind *kinds, char **warned, bool stays_writable)
{
    for (const struct kind *k = kinds; k->name != NULL; k++) {
        bool is_exempt = strcmp(k->name, "stores_by_exempt_code") == 0, is_there;

        if (k->store == NULL)
            continue;
        fill();
        is_there = escapes(k, 3);
        if (is_there ? !is_warned(k->name, warned) : is_exempt && stays_writable) {
            printf("%s %s\n", k->name,
                   is_there ? "escapes, without a warning" : "is noticed");
            n_wrong++;
        }
    }
}

/* try_loads -- each transaction begins without access. */
static void
try_loads(const struct kind *kinds)
{
    for (const struct kind *k = kinds; k->name != NULL; k++) {
        struct xac_stats before, after;

        if (k->load == NULL)
            continue;
        must_be(xbegin() == 0);
        must_be(xStats(&before, sizeof before) == 0);
        holes_sum += k->load(base + 3 * PAGE, 40);
        must_be(xStats(&after, sizeof after) == 0);
        must_be(xend() == COMMITTED);
        if (after.hints + after.traps_read == before.hints + before.traps_read) {
            printf("%s is not noticed\n", k->name);
            n_wrong++;
        }
    }
}

volatile long holes_sum;

/* attach -- with a way of checking. */
static void
attach(int checking)
{
    must_be(xSetOption(XAC_OPT_CHECKING, (uint64_t)checking) == 0);
    must_be(xInit("db", NONDURABLE) == 0);
    base = (unsigned char *)xMmap("input.db", PAGES * PAGE);
    must_be((void *)base != MAP_FAILED);
}

int
main(int argc, char **argv)
{
    const char *engine = getenv("XAC_ENGINE");

    (void)argc;
    holes_from = (unsigned char *)malloc(PAGE);
    must_be(holes_from != NULL);
    for (int i = 0; i < PAGE; i++)
        holes_from[i] = (unsigned char)(i % 200 + 1);
    holes_from[100] = 0;
    must_be(socketpair(AF_UNIX, SOCK_STREAM, 0, holes_ends) == 0);
    holes_file = tmpfile();
    must_be(holes_file != NULL && fputs("a line that is not short", holes_file) > 0
            && fflush(holes_file) == 0);

    attach(XAC_CHECKING_TRUSTED);
    try_stores(holes_c, argv + 1, engine == NULL || strcmp(engine, "uffd") == 0);
    try_stores(holes_library, argv + 1, false);
    try_stores(holes_cc, argv + 1, false);
    must_be(xShutdown() == 0);
    attach(XAC_CHECKING_STRICT);
    try_loads(holes_c);
    try_loads(holes_library);
    must_be(xShutdown() == 0);
    return n_wrong != 0;
}
