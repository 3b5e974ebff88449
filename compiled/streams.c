/* SPDX-License-Identifier: MIT */
/*
 * streams.c -- functions of the C++ library (libstdc++) that read from streams, and from texts.
 *
 * WHAT      As standard.c, a source of its own.  The object that they store is announced, and the rest
 *           is left to the library.
 * STRINGS   What a std::string has room for is announced.  If it has to grow, that is memory of operator
 *           new: not of a segment.
 */
#include <config.h>

#include <stddef.h>
#include <stdint.h>

#include "announce.h"

/* A function of the library, and ours, to which renamed symbols lead. */
#define STANDARD(type, name, symbol, ...)                         \
 type standard_##name(__VA_ARGS__) __asm__(symbol);               \
 type noticed_##name(__VA_ARGS__) __asm__("xac_noticed_" symbol); \
 type noticed_##name(__VA_ARGS__)

/* ---- in >> number ------------------------------------------------------------------------------- */

#define READS(type, name, symbol)                   \
 STANDARD(void *, name, symbol, void *in, type *to) \
 {                                                  \
  OUT(to);                                          \
  return standard_##name(in, to);                   \
 }

/* The library calls the second of a pair in the first; -O0 leaves that to it. */
#define EXTRACTS(type, name, code)                                              \
 READS(type, name, "_ZNSirsER" code)                                            \
 READS(type, wide_##name, "_ZNSt13basic_istreamIwSt11char_traitsIwEErsER" code) \
 READS(type, extract_##name, "_ZNSi10_M_extractI" code "EERSiRT_")              \
 READS(type, extract_wide_##name,                                               \
       "_ZNSt13basic_istreamIwSt11char_traitsIwEE10_M_extractI" code "EERS2_RT_")

READS(short, short, "_ZNSirsERs")
READS(int, int, "_ZNSirsERi")
READS(short, wide_short, "_ZNSt13basic_istreamIwSt11char_traitsIwEErsERs")
READS(int, wide_int, "_ZNSt13basic_istreamIwSt11char_traitsIwEErsERi")
EXTRACTS(_Bool, bool, "b")
EXTRACTS(unsigned short, ushort, "t")
EXTRACTS(unsigned, uint, "j")
EXTRACTS(long, long, "l")
EXTRACTS(unsigned long, ulong, "m")
EXTRACTS(long long, llong, "x")
EXTRACTS(unsigned long long, ullong, "y")
EXTRACTS(float, float, "f")
EXTRACTS(double, double, "d")
EXTRACTS(long double, ldouble, "e")
EXTRACTS(void *, pointer, "Pv")

/* ---- Characters ------------------------------------------------------------------------------- */

/* How many of a stream: a std::streamsize. */
typedef ptrdiff_t count;

READS(char, char, "_ZStrsIcSt11char_traitsIcEERSt13basic_istreamIT_T0_ES6_RS3_")
READS(char, get, "_ZNSi3getERc")

/* Characters that are announced if nobody says how many fit, as for scanf(). */
#define LONGEST 65536

STANDARD(void, extract_array, "_ZSt17__istream_extractRSiPcl", void *in, char *to,
         count n)
{
    if (n > 0)
        xac_store(to, n < PTRDIFF_MAX / 2 ? (size_t)n : LONGEST);
    standard_extract_array(in, to, n);
}

#define READS_ARRAY(type, name, symbol)                    \
 STANDARD(type, name, symbol, void *in, char *to, count n) \
 {                                                         \
  xac_store(to, n > 0 ? (size_t)n : 0);                    \
  return standard_##name(in, to, n);                       \
 }
#define READS_UNTIL(name, symbol)                                       \
 STANDARD(void *, name, symbol, void *in, char *to, count n, char last) \
 {                                                                      \
  xac_store(to, n > 0 ? (size_t)n : 0);                                 \
  return standard_##name(in, to, n, last);                              \
 }

READS_ARRAY(void *, read, "_ZNSi4readEPcl")
READS_ARRAY(count, readsome, "_ZNSi8readsomeEPcl")
READS_ARRAY(void *, get_array, "_ZNSi3getEPcl")
READS_ARRAY(void *, getline, "_ZNSi7getlineEPcl")
READS_UNTIL(get_until, "_ZNSi3getEPclc")
READS_UNTIL(getline_until, "_ZNSi7getlineEPclc")

/* ---- Strings ------------------------------------------------------------------------------------ */

struct string {
    char *text;
    size_t length;
    union {
        char own[16];
        size_t room;
    };
};

static void
announce_string(const struct string *s)
{
    OUT(s);
    if (s->text != s->own)
        xac_store(s->text, s->room + 1);
}

#define STRING "NSt7__cxx1112basic_stringIS4_S5_T1_EE"

STANDARD(void *, read_string,
         "_ZStrsIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_R" STRING, void *in,
         struct string *to)
{
    announce_string(to);
    return standard_read_string(in, to);
}

STANDARD(void *, getline_string,
         "_ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_R" STRING,
         void *in, struct string *to)
{
    announce_string(to);
    return standard_getline_string(in, to);
}

STANDARD(void *, getline_string_until,
         "_ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_R" STRING
         "S4_",
         void *in, struct string *to, char last)
{
    announce_string(to);
    return standard_getline_string_until(in, to, last);
}

/* ---- std::to_chars() and std::from_chars() of fractions ----------------------------------------- */

/* std::to_chars_result and std::from_chars_result, which are returned in the same way. */
struct result {
    char *at;
    int error;
};

#define CHARS(type, name, code)                                                          \
 STANDARD(struct result, to_##name, "_ZSt8to_charsPcS_" code, char *to, char *end,       \
          type x)                                                                        \
 {                                                                                       \
  xac_store(to, (size_t)(end - to));                                                     \
  return standard_to_##name(to, end, x);                                                 \
 }                                                                                       \
 STANDARD(struct result, to_##name##_in, "_ZSt8to_charsPcS_" code "St12chars_format",    \
          char *to, char *end, type x, int format)                                       \
 {                                                                                       \
  xac_store(to, (size_t)(end - to));                                                     \
  return standard_to_##name##_in(to, end, x, format);                                    \
 }                                                                                       \
 STANDARD(struct result, to_##name##_of, "_ZSt8to_charsPcS_" code "St12chars_formati",   \
          char *to, char *end, type x, int format, int digits)                           \
 {                                                                                       \
  xac_store(to, (size_t)(end - to));                                                     \
  return standard_to_##name##_of(to, end, x, format, digits);                            \
 }                                                                                       \
 STANDARD(struct result, from_##name, "_ZSt10from_charsPKcS0_R" code "St12chars_format", \
          const char *from, const char *end, type *to, int format)                       \
 {                                                                                       \
  OUT(to);                                                                               \
  return standard_from_##name(from, end, to, format);                                    \
 }

CHARS(float, float, "f")
CHARS(double, double, "d")
CHARS(long double, ldouble, "e")
