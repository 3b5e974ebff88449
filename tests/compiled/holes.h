/* SPDX-License-Identifier: MIT */
/*
 * holes.h -- kinds of accesses: see holes.c.
 */
#ifndef XAC_TEST_HOLES_H
#define XAC_TEST_HOLES_H

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function with one kind of access at a page. */
struct kind {
    const char *name;
    void (*store)(unsigned char *at, const unsigned char *from, int n); /* or NULL */
    long (*load)(const unsigned char *at, int n);                       /* or NULL */
};

/* Ended by a NULL name; check_holes.sh makes them of the sources. */
extern const struct kind holes_c[], holes_library[], holes_cc[];
extern volatile long holes_sum;
extern unsigned char *holes_from; /* bytes to copy, outside of the segment */
extern int holes_ends[2];         /* of a pair of sockets, with bytes to be read */
extern FILE *holes_file;

void holes_must(bool is, int line);
#define must_be(is) holes_must(is, __LINE__)
int order(const void *a, const void *b);
int order_with(const void *a, const void *b, void *arg);
struct s24;
struct s200;
void sum_into(int *at, int n, ...);
void last_into(struct s24 *at, int n, ...);
void last_large_into(struct s200 *at, int n, ...);

#ifdef __cplusplus
}
#endif

#define STORE(kind, ...)                                                                \
 HOLES_C void stores_##kind(unsigned char *at, const unsigned char *from, int n);       \
 HOLES_C __attribute__((noinline)) void stores_##kind(unsigned char *at,                \
                                                      const unsigned char *from, int n) \
 {                                                                                      \
  (void)from;                                                                           \
  (void)n;                                                                              \
  __VA_ARGS__;                                                                          \
 }

#define LOAD(kind, ...)                                                              \
 HOLES_C long loads_##kind(const unsigned char *at, int n);                          \
 HOLES_C __attribute__((noinline)) long loads_##kind(const unsigned char *at, int n) \
 {                                                                                   \
  (void)n;                                                                           \
  return (long)(__VA_ARGS__);                                                        \
 }

#ifdef __cplusplus
# define HOLES_C extern "C"
#else
# define HOLES_C
#endif

#endif /* XAC_TEST_HOLES_H */
