/* SPDX-License-Identifier: MIT */
/*
 * wide.c -- atomic operations on 16 bytes, which are calls of libatomic.
 *
 * WHAT      As hooks.c and noticed.c: compilers call the one or the other, depending on -mcx16.  A source
 *           of its own, for only a program with such calls needs libatomic.
 */
#include <config.h>

#ifdef __SIZEOF_INT128__

# include <stdbool.h>
# include <stddef.h>
# include <stdint.h>

# include <xac_touch.h>

__extension__ typedef unsigned __int128 wide;

/* A function of libatomic, and ours, to which renamed symbols lead. */
# define OF_LIBATOMIC(type, name, ...)                                           \
  type libatomic_##name(__VA_ARGS__) __asm__("__atomic_" #name "_16");           \
  type noticed_##name(__VA_ARGS__) __asm__("xac_noticed___atomic_" #name "_16"); \
  type noticed_##name(__VA_ARGS__)

OF_LIBATOMIC(wide, load, volatile void *at, int order)
{
    xac_load((const void *)(uintptr_t)at, sizeof(wide));
    return libatomic_load(at, order);
}

OF_LIBATOMIC(void, store, volatile void *at, wide value, int order)
{
    xac_store((const void *)(uintptr_t)at, sizeof(wide));
    libatomic_store(at, value, order);
}

OF_LIBATOMIC(bool, compare_exchange, volatile void *at, void *expected, wide value,
             int order, int order_failed)
{
    xac_store((const void *)(uintptr_t)at, sizeof(wide));
    xac_store(expected, sizeof(wide));
    return libatomic_compare_exchange(at, expected, value, order, order_failed);
}

/* The same, as hooks. */
# define HOOK(type, name, ...)               \
  type __tsan_atomic128_##name(__VA_ARGS__); \
  type __tsan_atomic128_##name(__VA_ARGS__)

HOOK(wide, load, volatile void *at, int order)
{
    return noticed_load(at, order);
}

HOOK(void, store, volatile void *at, wide value, int order)
{
    noticed_store(at, value, order);
}

HOOK(int, compare_exchange_strong, volatile void *at, void *expected, wide value,
     int order, int order_failed)
{
    return noticed_compare_exchange(at, expected, value, order, order_failed);
}

HOOK(int, compare_exchange_weak, volatile void *at, void *expected, wide value, int order,
     int order_failed)
{
    return noticed_compare_exchange(at, expected, value, order, order_failed);
}

HOOK(wide, compare_exchange_val, volatile void *at, wide expected, wide value, int order,
     int order_failed)
{
    (void)noticed_compare_exchange(at, &expected, value, order, order_failed);
    return expected;
}

/* An operation that stores, and returns what it finds or, of those of libatomic only, makes. */
# define CHANGE_OF_LIBATOMIC(name)                                   \
  OF_LIBATOMIC(wide, name, volatile void *at, wide value, int order) \
  {                                                                  \
   xac_store((const void *)(uintptr_t)at, sizeof(wide));             \
   return libatomic_##name(at, value, order);                        \
  }

# define CHANGE(name)                                        \
  CHANGE_OF_LIBATOMIC(name)                                  \
  HOOK(wide, name, volatile void *at, wide value, int order) \
  {                                                          \
   return noticed_##name(at, value, order);                  \
  }

CHANGE(exchange)
CHANGE(fetch_add)
CHANGE(fetch_sub)
CHANGE(fetch_and)
CHANGE(fetch_or)
CHANGE(fetch_xor)
CHANGE(fetch_nand)
CHANGE_OF_LIBATOMIC(add_fetch)
CHANGE_OF_LIBATOMIC(sub_fetch)
CHANGE_OF_LIBATOMIC(and_fetch)
CHANGE_OF_LIBATOMIC(or_fetch)
CHANGE_OF_LIBATOMIC(xor_fetch)
CHANGE_OF_LIBATOMIC(nand_fetch)

#endif
