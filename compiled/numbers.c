/* SPDX-License-Identifier: MIT */
/*
 * numbers.c -- functions of the C library that read numbers, and those of <time.h>.
 *
 * WHAT      As noticed.c.
 * NOT HERE  Functions of libm (mathematics.c): only a program with such calls needs that.
 */
#include <config.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <wchar.h>

#include "announce.h"

#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* formats are the program's */

/* ---- Numbers in texts: where the number ends ------------------------------------------------ */

#define INTEGER(type, name, c) \
 STORES_ONE(type, name, (const c *s, c **to, int base), (s, to, base))
#define FRACTION(type, name, c) STORES_ONE(type, name, (const c *s, c **to), (s, to))

INTEGER(long, strtol, char)
INTEGER(long long, strtoll, char)
INTEGER(unsigned long, strtoul, char)
INTEGER(unsigned long long, strtoull, char)
INTEGER(intmax_t, strtoimax, char)
INTEGER(uintmax_t, strtoumax, char)
FRACTION(float, strtof, char)
FRACTION(double, strtod, char)
FRACTION(long double, strtold, char)
INTEGER(long, wcstol, wchar_t)
INTEGER(long long, wcstoll, wchar_t)
INTEGER(unsigned long, wcstoul, wchar_t)
INTEGER(unsigned long long, wcstoull, wchar_t)
INTEGER(intmax_t, wcstoimax, wchar_t)
INTEGER(uintmax_t, wcstoumax, wchar_t)
FRACTION(float, wcstof, wchar_t)
FRACTION(double, wcstod, wchar_t)
FRACTION(long double, wcstold, wchar_t)

/* What newer headers of glibc call instead. */
ALSO(xac_noticed___isoc23_strtol, strtol);
ALSO(xac_noticed___isoc23_strtoll, strtoll);
ALSO(xac_noticed___isoc23_strtoul, strtoul);
ALSO(xac_noticed___isoc23_strtoull, strtoull);
ALSO(xac_noticed___isoc23_strtoimax, strtoimax);
ALSO(xac_noticed___isoc23_strtoumax, strtoumax);
ALSO(xac_noticed___isoc23_wcstol, wcstol);
ALSO(xac_noticed___isoc23_wcstoll, wcstoll);
ALSO(xac_noticed___isoc23_wcstoul, wcstoul);
ALSO(xac_noticed___isoc23_wcstoull, wcstoull);
#ifdef __GLIBC__
INTEGER(long long, strtoq, char)
INTEGER(unsigned long long, strtouq, char)
INTEGER(long long, wcstoq, wchar_t)
INTEGER(unsigned long long, wcstouq, wchar_t)
STORES(int, strfromf, (char *to, size_t n, const char *format, float x),
       (to, n, format, x), xac_store(to, n))
STORES(int, strfromd, (char *to, size_t n, const char *format, double x),
       (to, n, format, x), xac_store(to, n))
STORES(int, strfroml, (char *to, size_t n, const char *format, long double x),
       (to, n, format, x), xac_store(to, n))
#endif

/* ---- Parts of numbers, which the C library has without libm -------------------------------- */

STORES_ONE(float, frexpf, (float x, int *to), (x, to))
STORES_ONE(double, frexp, (double x, int *to), (x, to))
STORES_ONE(long double, frexpl, (long double x, int *to), (x, to))
STORES_ONE(float, modff, (float x, float *to), (x, to))
STORES_ONE(double, modf, (double x, double *to), (x, to))
STORES_ONE(long double, modfl, (long double x, long double *to), (x, to))

/* ---- Numbers at random ----------------------------------------------------------------------- */

STORES_ONE(int, rand_r, (unsigned *to), (to))
STORES(double, erand48, (unsigned short to[3]), (to), OUTS(to, 3))
STORES(long, nrand48, (unsigned short to[3]), (to), OUTS(to, 3))
STORES(long, jrand48, (unsigned short to[3]), (to), OUTS(to, 3))

/* ---- Time -------------------------------------------------------------------------------------- */

STORES_ONE(time_t, time, (time_t * to), (to))
STORES_ONE(struct tm *, gmtime_r, (const time_t *t, struct tm *to), (t, to))
STORES_ONE(struct tm *, localtime_r, (const time_t *t, struct tm *to), (t, to))
STORES_ONE(time_t, mktime, (struct tm * to), (to))
ALSO(xac_noticed_timelocal, mktime);
STORES_ONE(time_t, timegm, (struct tm * to), (to))
STORES_ONE(char *, strptime, (const char *s, const char *format, struct tm *to),
           (s, format, to))
STORES(char *, asctime_r, (const struct tm *t, char *to), (t, to), xac_store(to, 26))
STORES(char *, ctime_r, (const time_t *t, char *to), (t, to), xac_store(to, 26))
STORES(size_t, strftime, (char *to, size_t n, const char *format, const struct tm *t),
       (to, n, format, t), xac_store(to, n))
STORES(size_t, wcsftime,
       (wchar_t * to, size_t n, const wchar_t *format, const struct tm *t),
       (to, n, format, t), OUTS(to, n))
STORES_ONE(int, clock_gettime, (clockid_t clock, struct timespec *to), (clock, to))
STORES_ONE(int, clock_getres, (clockid_t clock, struct timespec *to), (clock, to))
STORES_ONE(int, timespec_get, (struct timespec * to, int base), (to, base))
STORES_ONE(int, gettimeofday, (struct timeval * to, void *zone), (to, zone))
STORES_ONE(int, nanosleep, (const struct timespec *t, struct timespec *to), (t, to))
STORES_ONE(int, clock_nanosleep,
           (clockid_t clock, int flags, const struct timespec *t, struct timespec *to),
           (clock, flags, t, to))
STORES_ONE(int, adjtime, (const struct timeval *t, struct timeval *to), (t, to))
STORES_ONE(int, getitimer, (__itimer_which_t which, struct itimerval *to), (which, to))
STORES_ONE(int, setitimer,
           (__itimer_which_t which, const struct itimerval *t, struct itimerval *to),
           (which, t, to))
STORES_ONE(int, timer_gettime, (timer_t timer, struct itimerspec *to), (timer, to))
STORES_ONE(int, timer_settime,
           (timer_t timer, int flags, const struct itimerspec *t, struct itimerspec *to),
           (timer, flags, t, to))
STORES_ONE(clock_t, times, (struct tms * to), (to))
