/* SPDX-License-Identifier: MIT */
/*
 * announce.h -- how the sources of libxac-compiled define xac_noticed_f() for a function f().
 *
 * WHAT      The macros of noticed.c and of the sources beside it.
 * NOT HERE  What programs include: noticed.h.
 * SIZES     What is announced is never less than what f() stores.  It is more where f() may stop
 *           early.  NULL may be announced: it lies in no segment.
 */
#ifndef XAC_COMPILED_ANNOUNCE_H
#define XAC_COMPILED_ANNOUNCE_H

#include <stddef.h>

#include <xac_touch.h>

/* A function that no header declares: only renamed symbols lead to it. */
#define NOTICED(type, name, ...)       \
 type xac_noticed_##name(__VA_ARGS__); \
 type xac_noticed_##name(__VA_ARGS__)

/* One that announces what the statement says, and does nothing else. */
#define STORES(type, name, parameters, arguments, statement) \
 type xac_noticed_##name parameters;                         \
 type xac_noticed_##name parameters                          \
 {                                                           \
  statement;                                                 \
  return (name)arguments;                                    \
 }

/* One that stores one object, where the argument `to` points. */
#define STORES_ONE(type, name, parameters, arguments) \
 STORES(type, name, parameters, arguments, OUT(to))

/* What such a statement consists of: an object, n objects, and a text that is cut or changed. */
#define OUT(p)     xac_store(p, sizeof *(p))
#define OUTS(p, n) xac_store(p, announce_product(n, sizeof *(p)))

/* Another name of a function: of the C library's own headers, or of a newer clang. */
#define ALSO(name, of) \
 extern __typeof__(xac_noticed_##of) name __attribute__((alias("xac_noticed_" #of)))

/* announce_product -- bytes of n elements; 0 if there cannot be such. */
static inline size_t
announce_product(size_t n, size_t size)
{
    size_t bytes;

    return __builtin_mul_overflow(n, size, &bytes) ? 0 : bytes;
}

#endif /* XAC_COMPILED_ANNOUNCE_H */
