/* SPDX-License-Identifier: MIT */
/*
 * points.h -- makes every atomic operation of the library a point where the explorer may
 * switch to another participant, or end one.
 *
 * Included by force before each of the library's sources that are compiled for the
 * explorer: it takes the place of the macros of <stdatomic.h>, and of the system calls
 * by which the library waits and tells the time.
 */
#ifndef XAC_TEST_POINTS_H
#define XAC_TEST_POINTS_H

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* sim_point -- before an operation; sim_stored -- behind one that may have stored. */
void sim_point(const volatile void *at, int is_store);
void sim_stored(const volatile void *at);

/* In place of the system's. */
int sim_sched_yield(void);
int sim_clock_gettime(clockid_t clock, struct timespec *ts);
int sim_nanosleep(const struct timespec *want, struct timespec *left);
#define sched_yield   sim_sched_yield
#define clock_gettime sim_clock_gettime
#define nanosleep     sim_nanosleep

#ifdef __clang__
# define SIM_LOAD(p, mo)     __c11_atomic_load(p, mo)
# define SIM_STORE(p, v, mo) __c11_atomic_store(p, v, mo)
# define SIM_SWAP(p, v, mo)  __c11_atomic_exchange(p, v, mo)
# define SIM_CAS(p, old, v, mo, fail) \
  __c11_atomic_compare_exchange_strong(p, old, v, mo, fail)
# define SIM_ADD(p, v, mo) __c11_atomic_fetch_add(p, v, mo)
# define SIM_SUB(p, v, mo) __c11_atomic_fetch_sub(p, v, mo)
# define SIM_OR(p, v, mo)  __c11_atomic_fetch_or(p, v, mo)
#else
# define SIM_LOAD(p, mo)              __atomic_load_n(p, mo)
# define SIM_STORE(p, v, mo)          __atomic_store_n(p, v, mo)
# define SIM_SWAP(p, v, mo)           __atomic_exchange_n(p, v, mo)
# define SIM_CAS(p, old, v, mo, fail) __atomic_compare_exchange_n(p, old, v, 0, mo, fail)
# define SIM_ADD(p, v, mo)            __atomic_fetch_add(p, v, mo)
# define SIM_SUB(p, v, mo)            __atomic_fetch_sub(p, v, mo)
# define SIM_OR(p, v, mo)             __atomic_fetch_or(p, v, mo)
#endif

/* SIM_OP -- an operation that stores, and what it returns. */
#define SIM_OP(P, CALL)    \
 __extension__({           \
__auto_type sim_p = (P);       \
sim_point(sim_p, 1);           \
__auto_type sim_result = CALL; \
sim_stored(sim_p);             \
sim_result;                    \
 })

#undef atomic_load_explicit
#define atomic_load_explicit(P, MO) \
 __extension__({                    \
__auto_type sim_p = (P);                \
sim_point(sim_p, 0);                    \
SIM_LOAD(sim_p, MO);                    \
 })

#undef atomic_store_explicit
#define atomic_store_explicit(P, V, MO) \
 __extension__({                        \
__auto_type sim_p = (P);                    \
__typeof__(SIM_LOAD(sim_p, 0)) sim_v = (V); \
sim_point(sim_p, 1);                        \
SIM_STORE(sim_p, sim_v, MO);                \
sim_stored(sim_p);                          \
 })

#undef atomic_exchange_explicit
#define atomic_exchange_explicit(P, V, MO) SIM_OP(P, SIM_SWAP(sim_p, V, MO))

#undef atomic_compare_exchange_strong_explicit
#define atomic_compare_exchange_strong_explicit(P, OLD, V, MO, FAIL) \
 SIM_OP(P, SIM_CAS(sim_p, OLD, V, MO, FAIL))

#undef atomic_compare_exchange_weak_explicit
#define atomic_compare_exchange_weak_explicit(P, OLD, V, MO, FAIL) \
 SIM_OP(P, SIM_CAS(sim_p, OLD, V, MO, FAIL))

#undef atomic_fetch_add_explicit
#define atomic_fetch_add_explicit(P, V, MO) SIM_OP(P, SIM_ADD(sim_p, V, MO))

#undef atomic_fetch_sub_explicit
#define atomic_fetch_sub_explicit(P, V, MO) SIM_OP(P, SIM_SUB(sim_p, V, MO))

#undef atomic_fetch_or_explicit
#define atomic_fetch_or_explicit(P, V, MO) SIM_OP(P, SIM_OR(sim_p, V, MO))

#endif /* XAC_TEST_POINTS_H */
