/* SPDX-License-Identifier: MIT */
/*
 * barriers.c -- loads and stores of single values.
 *
 * A transaction works in place: on the pages of its view, and on memory outside of segments with an
 * undo log.  So a value that has been loaded or stored before needs no second announcement
 * (RaR, RaW).  A second store (WaW) is treated like the first: between the two a
 * nested transaction may have begun, which may be cancelled alone.
 */
#include <config.h>

#include "itm.h"

typedef uint8_t type_U1;
typedef uint16_t type_U2;
typedef uint32_t type_U4;
typedef uint64_t type_U8;
typedef float type_F;
typedef double type_D;
typedef long double type_E;
typedef float _Complex type_CF;
typedef double _Complex type_CD;
typedef long double _Complex type_CE;
typedef int type_M64 __attribute__((vector_size(8)));
typedef float type_M128 __attribute__((vector_size(16)));
typedef float type_M256 __attribute__((vector_size(32)));

/* A value at any address.  Its assignment copies no padding, as memcpy() would. */
#define BOX(name)                                       \
 struct __attribute__((packed, may_alias)) box_##name { \
  type_##name value;                                    \
 };

/* A load of one kind: `place` is where the value lies, or NULL: in pieces. */
#define LOAD_AS(kind, name, attribute, place)                                \
 XAC_ITM_API attribute type_##name _ITM_##kind##name(const type_##name *at); \
 attribute type_##name _ITM_##kind##name(const type_##name *at)              \
 {                                                                           \
  struct xac_itm *t = xac_itm_now;                                           \
  const struct box_##name *box = (const struct box_##name *)(place);         \
  struct box_##name whole;                                                   \
                                                                             \
  if (__builtin_expect(box != NULL, 1))                                      \
   return box->value;                                                        \
  xac_itm_pieces(t, (void *)(uintptr_t)at, &whole, sizeof whole, false);     \
  return whole.value;                                                        \
 }

#define STORE_AS(kind, name, attribute)                                                  \
 XAC_ITM_API attribute void _ITM_##kind##name(type_##name *at, type_##name value);       \
 attribute void _ITM_##kind##name(type_##name *at, type_##name value)                    \
 {                                                                                       \
  struct xac_itm *t = xac_itm_now;                                                       \
  struct box_##name *box = (struct box_##name *)xac_itm_note(t, at, sizeof value, true); \
  struct box_##name whole;                                                               \
                                                                                         \
  if (__builtin_expect(box != NULL, 1)) {                                                \
   box->value = value;                                                                   \
   return;                                                                               \
  }                                                                                      \
  xac_itm_pieces(t, at, &whole, sizeof whole, false);                                    \
  whole.value = value;                                                                   \
  xac_itm_pieces(t, at, &whole, sizeof whole, true);                                     \
 }

/* Of a variable of the thread: it is logged, for the compiler stores without a call. */
#define LOG_OF(name)                                   \
 XAC_ITM_API void _ITM_L##name(const type_##name *at); \
 void _ITM_L##name(const type_##name *at)              \
 {                                                     \
  xac_itm_log(xac_itm_now, at, sizeof *at);            \
 }

#define BARRIERS(name, attribute)                                      \
 BOX(name)                                                             \
 LOAD_AS(R, name, attribute, xac_itm_load(t, at, sizeof *at))          \
 LOAD_AS(RaR, name, attribute, xac_itm_reload(t, at, sizeof *at))      \
 LOAD_AS(RaW, name, attribute, xac_itm_reload(t, at, sizeof *at))      \
 LOAD_AS(RfW, name, attribute, xac_itm_note(t, at, sizeof *at, false)) \
 STORE_AS(W, name, attribute)                                          \
 STORE_AS(WaR, name, attribute)                                        \
 STORE_AS(WaW, name, attribute)                                        \
 LOG_OF(name)

BARRIERS(U1, )
BARRIERS(U2, )
BARRIERS(U4, )
BARRIERS(U8, )
BARRIERS(F, )
BARRIERS(D, )
BARRIERS(E, )
BARRIERS(CF, )
BARRIERS(CD, )
BARRIERS(CE, )
BARRIERS(M64, )
BARRIERS(M128, )
BARRIERS(M256, __attribute__((target("avx"))))
