/* SPDX-License-Identifier: MIT */
/*
 * mathematics.c -- functions of <math.h> that store a second result.
 *
 * WHAT      As noticed.c.  A source of its own, for only a program with such calls needs libm.
 * NOT HERE  Those that the C library has itself (numbers.c).
 */
#include <config.h>

#include <math.h>

#include "announce.h"

STORES_ONE(float, remquof, (float x, float y, int *to), (x, y, to))
STORES_ONE(double, remquo, (double x, double y, int *to), (x, y, to))
STORES_ONE(long double, remquol, (long double x, long double y, int *to), (x, y, to))
STORES_ONE(float, lgammaf_r, (float x, int *to), (x, to))
STORES_ONE(double, lgamma_r, (double x, int *to), (x, to))
STORES_ONE(long double, lgammal_r, (long double x, int *to), (x, to))

#define SINE_AND_COSINE(type, name)                      \
 NOTICED(void, name, type x, type *sinep, type *cosinep) \
 {                                                       \
  OUT(sinep);                                            \
  OUT(cosinep);                                          \
  name(x, sinep, cosinep);                               \
 }

SINE_AND_COSINE(float, sincosf)
SINE_AND_COSINE(double, sincos)
SINE_AND_COSINE(long double, sincosl)
