/* SPDX-License-Identifier: MIT */
/*
 * hooks.c -- what code compiled with -fsanitize=thread calls before each load and store.
 *
 * WHAT      The functions that gcc and clang call, over xac_touch.h, in the place of the thread
 *           sanitizer's own library.  See doc/compiled.md.
 * NOT HERE  Functions of the C library (noticed.c); atomic operations on 16 bytes (wide.c).
 * ATOMICS   The compiler has the operation itself done here.  Each is sequentially consistent, which is at
 *           least what was asked for.  Those of 16 bytes are missing: a program with such does not link.
 * THREADS   Any, at any time: in signal handlers, in constructors, in children after a fork.  Outside
 *           of transactions a hook reads two words of the thread and returns.
 */
#include <config.h>

#include <stddef.h>
#include <stdint.h>

#include <xac_touch.h>

/* A function that the compiler calls: no header declares it. */
#define HOOK(type, name, ...) \
 type name(__VA_ARGS__);      \
 type name(__VA_ARGS__)

/* One that does something to bytes, given their address. */
#define TOUCH(name, touch, n)        \
 HOOK(void, __tsan_##name, void *at) \
 {                                   \
  touch(at, n);                      \
 }

/* A store is a load, too: only the store is announced. */
#define KINDS(prefix, n)                      \
 TOUCH(prefix##read##n, xac_load, n)          \
 TOUCH(prefix##write##n, xac_store, n)        \
 TOUCH(prefix##read_write##n, xac_store, n)   \
 TOUCH(prefix##volatile_read##n, xac_load, n) \
 TOUCH(prefix##volatile_write##n, xac_store, n)

KINDS(, 1)
KINDS(, 2)
KINDS(, 4)
KINDS(, 8)
KINDS(, 16)
KINDS(unaligned_, 2)
KINDS(unaligned_, 4)
KINDS(unaligned_, 8)
KINDS(unaligned_, 16)

HOOK(void, __tsan_read_range, void *at, size_t n)
{
    xac_load(at, n);
}

HOOK(void, __tsan_write_range, void *at, size_t n)
{
    xac_store(at, n);
}

HOOK(void, __tsan_vptr_read, void **at)
{
    xac_load(at, sizeof *at);
}

HOOK(void, __tsan_vptr_update, void **at, void *value)
{
    (void)value;
    xac_store(at, sizeof *at);
}

HOOK(void, __tsan_init, void)
{
}

HOOK(void, __tsan_func_entry, void *caller)
{
    (void)caller;
}

HOOK(void, __tsan_func_exit, void)
{
}

/* ---- Atomics ------------------------------------------------------------------------------ */

#define ORDER __ATOMIC_SEQ_CST

/* An operation that stores; `...` is what it returns. */
#define CHANGE(bits, type, name, ...)                                               \
 HOOK(type, __tsan_atomic##bits##_##name, volatile type *at, type value, int order) \
 {                                                                                  \
  (void)order;                                                                      \
  xac_store((const void *)(uintptr_t)at, sizeof *at);                               \
  return __VA_ARGS__;                                                               \
 }

/* expected is the program's, and may lie in a segment, too. */
#define EXCHANGE_IF(bits, type, strength)                                        \
 HOOK(int, __tsan_atomic##bits##_compare_exchange_##strength, volatile type *at, \
      type *expected, type value, int order, int order_failed)                   \
 {                                                                               \
  (void)order;                                                                   \
  (void)order_failed;                                                            \
  xac_store((const void *)(uintptr_t)at, sizeof *at);                            \
  xac_store(expected, sizeof *expected);                                         \
  return __atomic_compare_exchange_n(at, expected, value, 0, ORDER, ORDER);      \
 }

#define ATOMIC(bits, type)                                                         \
 HOOK(type, __tsan_atomic##bits##_load, const volatile type *at, int order)        \
 {                                                                                 \
  (void)order;                                                                     \
  xac_load((const void *)(uintptr_t)at, sizeof *at);                               \
  return __atomic_load_n(at, ORDER);                                               \
 }                                                                                 \
 HOOK(void, __tsan_atomic##bits##_store, volatile type *at, type value, int order) \
 {                                                                                 \
  (void)order;                                                                     \
  xac_store((const void *)(uintptr_t)at, sizeof *at);                              \
  __atomic_store_n(at, value, ORDER);                                              \
 }                                                                                 \
 CHANGE(bits, type, exchange, __atomic_exchange_n(at, value, ORDER))               \
 CHANGE(bits, type, fetch_add, __atomic_fetch_add(at, value, ORDER))               \
 CHANGE(bits, type, fetch_sub, __atomic_fetch_sub(at, value, ORDER))               \
 CHANGE(bits, type, fetch_and, __atomic_fetch_and(at, value, ORDER))               \
 CHANGE(bits, type, fetch_or, __atomic_fetch_or(at, value, ORDER))                 \
 CHANGE(bits, type, fetch_xor, __atomic_fetch_xor(at, value, ORDER))               \
 CHANGE(bits, type, fetch_nand, __atomic_fetch_nand(at, value, ORDER))             \
 EXCHANGE_IF(bits, type, strong)                                                   \
 EXCHANGE_IF(bits, type, weak)                                                     \
 HOOK(type, __tsan_atomic##bits##_compare_exchange_val, volatile type *at,         \
      type expected, type value, int order, int order_failed)                      \
 {                                                                                 \
  (void)order;                                                                     \
  (void)order_failed;                                                              \
  xac_store((const void *)(uintptr_t)at, sizeof *at);                              \
  (void)__atomic_compare_exchange_n(at, &expected, value, 0, ORDER, ORDER);        \
  return expected;                                                                 \
 }

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

HOOK(void, __tsan_atomic_thread_fence, int order)
{
    (void)order;
    __atomic_thread_fence(ORDER);
}

HOOK(void, __tsan_atomic_signal_fence, int order)
{
    (void)order;
    __atomic_signal_fence(ORDER);
}
