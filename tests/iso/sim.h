/* SPDX-License-Identifier: MIT */
/*
 * sim.h -- participants as coroutines of one thread.
 *
 * WHAT      Switching between participants at each atomic operation, locks that know which
 *           coroutine holds them (in place of libxac/base/lock.c), a clock that stands still.
 * NOT HERE  Who is to run (explore.c), what a participant does (world.h).
 *
 * A coroutine that waits for a lock, or spins, runs again when that can make a difference.
 * If nobody can do anything but spin, the clock advances.
 */
#ifndef XAC_TEST_SIM_H
#define XAC_TEST_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_FIBERS 4

enum sim_state {
    SIM_OFF,
    SIM_BETWEEN,  /* between two steps                                             */
    SIM_MIDWAY,   /* preempted within one                                          */
    SIM_BLOCKED,  /* waits for a lock                                              */
    SIM_SPINNING, /* has yielded within a step                                     */
    SIM_DONE,
    SIM_DEAD
};

/* What a point may lead to. */
enum sim_choice {
    SIM_GO_ON,
    SIM_PREEMPT,
    SIM_DIE
};

/* What the explorer decides, and is told. */
struct sim_hooks {
    /* at a point of the running coroutine: may it be preempted or die? */
    enum sim_choice (*decide)(const volatile void *at, bool is_store);
    void (*stored)(const volatile void *at);
    void (*died)(int i);
};

void sim_init(const struct sim_hooks *hooks);

/* sim_reset -- no coroutines. */
void sim_reset(void);

/* sim_spawn -- coroutine i will run body(i); it calls sim_between() behind each step. */
void sim_spawn(int i, void (*body)(int i));
void sim_between(void);

/* sim_run -- let a coroutine run until it is between steps, preempted, or waits. */
void sim_run(int i);

/* sim_kill -- the participant dies where it stands; also by SIM_DIE. */
void sim_kill(int i);

enum sim_state sim_state(int i);
bool sim_is_runnable(int i);

/* sim_current -- the running coroutine, or -1. */
int sim_current(void);

/* sim_time_passes -- nobody can run, somebody spins: advance the clock; false: nobody. */
bool sim_time_passes(void);
uint64_t sim_clock(void);
void sim_clock_advance(uint64_t ns);

/* sim_place -- what a coroutine within a step will do next: its registers and stack. */
void sim_place(int i, const void **regs, size_t *n_regs, const void **stack,
               size_t *n_stack);

/* sim_fail -- something is wrong: say so, with the schedule, and end (explore.c). */
_Noreturn void sim_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define sim_must(cond) \
 ((cond) ? (void)0 : sim_fail(__FILE__, __LINE__, "not so: %s", #cond))

#endif /* XAC_TEST_SIM_H */
