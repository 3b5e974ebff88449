/* SPDX-License-Identifier: MIT */
/*
 * engine_thesis.h -- the engine `thesis`, for comparison: it notices accesses as the Thesis has it
 * (section 3.1).  Each page is mapped by an mmap of its own, and a first store is two traps, of
 * which the first is taken for a load.
 *
 * It is plugged into the library's objects (fault_engine.h), with which xbench is linked.
 */
#ifndef BENCH_ENGINE_THESIS_H
#define BENCH_ENGINE_THESIS_H

/* bench_engine_choose -- the engine of environments that this process opens from now on: `thesis`,
   or a value of XAC_ENGINE.  ret 0 or errno. */
int bench_engine_choose(const char *name);

#endif /* BENCH_ENGINE_THESIS_H */
